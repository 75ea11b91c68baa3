/* Any text as what scontrol printed: what is believed becomes a line that can be read. */
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
    bridge_message_job(&sight->line, job, &sight->scratch);
    read_back(sight);
}

static void see_node(void *self, const struct slurm_node *node)
{
    struct sight *sight = self;
    if (!json_can_say(node->name))
        return; /* names of nodes are the administrator's */
    bridge_message_node(&sight->line, node);
    read_back(sight);
}

static void see_doubt(void *self, uint32_t id, const char *why)
{
    assert(id != 0 && why[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sight sight;
    struct job_owners owners;
    struct arena arena;
    static const char known[] = "7 1001\n9 1001\n12 1001\n";
    const struct slurm_observer eyes = { &sight, see_node, see_job, see_doubt };
    arena_init(&arena, 0);
    arena_init(&sight.scratch, 0);
    buf_init(&sight.line, 64 * BRIDGE_LINE_MAX);
    char *text = arena_array(&arena, char, size + 1);
    memcpy(text, data, size);
    job_owners_read(text, size, &owners);
    job_owners_release(&owners);
    job_owners_read(known, sizeof(known) - 1, &owners);
    scontrol_jobs(text, &owners, &eyes, &arena);
    memcpy(text, data, size);
    scontrol_nodes(text, &eyes, &arena);
    job_owners_release(&owners);
    buf_release(&sight.line);
    arena_release(&sight.scratch);
    arena_release(&arena);
    return 0;
}
