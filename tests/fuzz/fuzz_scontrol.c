/* Any text as what scontrol printed: what is believed becomes a line that can be read. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "slurm/driver.h"
#include "slurm/record.h"
#include "slurm/request.h"
#include "slurm/scontrol.h"
#include "slurm/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sight {
    struct buf line;
    struct arena scratch;
};

static void read_back(struct sight *sight)
{
    struct json *object = NULL;
    assert(!sight->line.full);
    assert(json_parse(sight->line.bytes, sight->line.count, &object, NULL) == 0);
    json_free(object);
    buf_reset(&sight->line);
    arena_reset(&sight->scratch);
}

static void see_job(void *self, const struct slurm_job *job)
{
    struct sight *sight = self;
    assert(job->id != 0 && job->uid == 1001); /* all that squeue knows are hers */
    words_job(&sight->line, job, &sight->scratch);
    read_back(sight);
}

static void see_node(void *self, const struct slurm_node *node)
{
    struct sight *sight = self;
    if (!json_can_say(node->name))
        return; /* names of nodes are the administrator's */
    words_node(&sight->line, node);
    read_back(sight);
}

static void see_doubt(void *self, uint32_t id, const char *why)
{
    assert(id != 0 && why[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sight sight;
    struct owners owners;
    struct arena arena;
    static const char known[] = "7 1001\n9 1001\n12 1001\n";
    const struct eyes eyes = { &sight, see_node, see_job, see_doubt };
    arena_init(&arena, 0);
    arena_init(&sight.scratch, 0);
    buf_init(&sight.line, 64 * LINE_MAX_BYTES);
    char *text = arena_array(&arena, char, size + 1);
    memcpy(text, data, size);
    owners_read(text, size, &owners);
    owners_release(&owners);
    owners_read(known, sizeof(known) - 1, &owners);
    scontrol_jobs(text, &owners, &eyes, &arena);
    memcpy(text, data, size);
    scontrol_nodes(text, &eyes, &arena);
    owners_release(&owners);
    buf_release(&sight.line);
    arena_release(&sight.scratch);
    arena_release(&arena);
    return 0;
}
