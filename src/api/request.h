/*
 * request.h - a job as it is submitted: resources, command, dependencies; and the same in
 * JSON, as docs/api/openapi.yaml spells it.
 *
 * The command line makes one from flags, scripts and files and sends it as JSON; berthd
 * reads that, keeps the JSON in the store, and reads it again when the job starts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"
#include "model/launch.h"

struct arena;
struct error;
struct json;

enum dependency_kind {
    DEPENDS_AFTER,    /* the other has started, or ended      */
    DEPENDS_OK,       /* the other has completed              */
    DEPENDS_NOT_OK,   /* the other has failed                 */
    DEPENDS_ANY,      /* the other has ended, however         */
    DEPENDS_SINGLETON /* no other of this name and user is left */
};

struct dependency {
    enum dependency_kind kind;
    uint64_t id;
};

#define REQUEST_BYTES_MAX (8u << 20) /* of one job, as JSON */
#define REQUEST_ARGS_MAX 4096
#define REQUEST_ENV_MAX 4096
#define REQUEST_NAME_MAX 200
#define REQUEST_DEPENDENCIES_MAX 1000
#define REQUEST_SCRIPT_MAX (4u << 20)
#define REQUEST_PATH_MAX 4096 /* bytes of a path, its place holders not filled in */
#define REQUEST_GPUS_MAX 1000000

struct request {
    struct job_spec spec;
    struct launch launch;

    bool in_array;        /* launch.array_index was given; berthd sets array_id */
    uint32_t array_limit; /* so many of its array at once; 0: all */
    bool hold;
    int64_t begin_ns; /* not before; 0: at once */
    struct dependency *dependencies;
    uint32_t dependency_count;
    const char *outside; /* what another system makes it wait for; NULL: nothing */
    bool requeue;        /* goes back if its node or supervisor fails */
    uint32_t retries;    /* starts again after its own failure        */
};

/*
 * Read one; everything lives in 'arena'.  -EINVAL with "field: what is wrong" if a key is
 * unknown, of the wrong type, too large or makes no sense beside the others.
 *
 * Afterwards 'launch' and 'spec' agree on what both say, argv and env are lists (perhaps
 * empty) and paths are absolute: those that were relative are so to the job's folder.
 * The user, the job's id and its array's are not in it; times are kept to a millionth of a
 * second.
 */
int request_read(struct request *request, struct arena *arena, const struct json *json,
                 struct error *err);

/*
 * The same for a request of which 'command', 'script' and 'env' are kept elsewhere: none of
 * them has to be there.
 */
int request_read_kept(struct request *request, struct arena *arena,
                      const struct json *json, struct error *err);

/*
 * A request as the store keeps it: what starts the job apart from what schedules it, so that
 * a restart reads little.  Each is JSON; NULL: the request has no such field.
 */
struct request_texts {
    const char *request; /* all but the next two  */
    const char *env;     /* an object             */
    const char *script;  /* a text, with quotes   */
};

/* Make the texts, in 'arena'. */
void request_split(struct request_texts *texts, struct arena *arena,
                   const struct json *json);

/* The same from the text that 'json' was read from, which is faster. */
void request_split_text(struct request_texts *texts, struct arena *arena,
                        const char *text, const struct json *json);

/*
 * Write one: what request_read() makes of it is equal, if it was printed with all digits
 * (json_text_exact).  Standard values are left out.
 */
struct json *request_write(const struct request *request);

/* "TERM", "SIGUSR1", "12" to a number; 0 if there is no such signal to send. */
int request_signal(const char *text);

/* The other way round: "TERM". */
const char *request_signal_name(int number);
