/* Any text as the output of scontrol: each accepted record becomes valid JSON. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "slurm/slurm_driver.h"
#include "slurm/slurm_record.h"
#include "slurm/bridge_request.h"
#include "slurm/scontrol.h"
#include "slurm/bridge_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_state {
    struct buf line;
    struct arena scratch;
};

static void parse_line(struct fuzz_state *state)
{
    struct json *object = NULL;
    assert(!state->line.full);
    assert(json_parse(state->line.bytes, state->line.count, &object, NULL) == 0);
    json_free(object);
    buf_reset(&state->line);
    arena_reset(&state->scratch);
}

static void check_job(void *self, const struct slurm_job *job)
{
    struct fuzz_state *state = self;
    assert(job->id != 0 && job->uid == 1001); /* squeue lists no other owner */
    bridge_message_job(&state->line, job, &state->scratch);
    parse_line(state);
}

static void ignore_job(void *self, const struct slurm_job *job)
{
}

static void check_node(void *self, const struct slurm_node *node)
{
    struct fuzz_state *state = self;
    if (!json_can_say(node->name))
        return; /* the administrator chooses names of nodes */
    bridge_message_node(&state->line, node);
    parse_line(state);
}

static void check_unreadable(void *self, uint32_t id, const char *why)
{
    assert(id != 0 && why[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_state state;
    struct arena arena;
    static const char known[] = "7 1001\n9 1001\n12 1001\n";
    const struct slurm_observer observer = { &state, check_node, check_job,
                                             check_unreadable };
    const struct slurm_observer ignoring = { NULL, check_node, ignore_job,
                                             check_unreadable };
    arena_init(&arena, 0);
    arena_init(&state.scratch, 0);
    buf_init(&state.line, 64 * BRIDGE_LINE_MAX);
    char *text = arena_array(&arena, char, size + 1);
    memcpy(text, data, size);
    char *copy = arena_array(&arena, char, size + 1);
    memcpy(copy, data, size);
    scontrol_jobs(copy, (const char *)data, size, &ignoring, &arena);
    scontrol_jobs(text, known, sizeof(known) - 1, &observer, &arena);
    memcpy(text, data, size);
    scontrol_nodes(text, &observer, &arena);
    buf_release(&state.line);
    arena_release(&state.scratch);
    arena_release(&arena);
    return 0;
}
