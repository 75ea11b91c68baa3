/* Any line from berthd: refused with a sentence, or a request within its limits. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "slurm/bridge_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct bridge_request request;
    struct error err = { "" };
    arena_init(&arena, 0);
    int r = bridge_request_read((const char *)data, size, &arena, &request, &err);
    assert(r == 0 || err.text[0]);
    if (r == 0) {
        assert(request.seq >= 0);
        assert(request.verb == VERB_POLL || bridge_request_job_id(&request) > 0);
        assert(request.verb != VERB_START || (request.nodes && request.node_count > 0));
        assert(!request.nodes || !strpbrk(request.nodes, " []=\n\""));
        assert(request.verb <= VERB_POLL);
    }
    arena_release(&arena);
    return 0;
}
