/*
 * gavel_fifo.c - first come, first served, on the GPUs that suit.
 *
 * Jobs in order of arrival, each on one type: of those with enough free GPUs for its
 * gang the one where it runs fastest (Gavel, section 4.2, as its code has it).  The
 * first job that does not fit ends the queue.  Without rates it is the first type with
 * enough GPUs; with sharing, a job that does not fit may join another, if the two
 * together make half as much progress again as one.
 *
 * The order is by arrival alone, so a job keeps its type only until an earlier job
 * leaves one that suits it better.
 */
#include "policy/gavel/gavel.h"

#include "solve/solve.h"

static int fifo_shares(void *self, struct gavel_call *call, struct error *err)
{
    const struct gavel_policy *gavel = self;
    struct fifo_shares queue = { .job_count = call->job_count,
                                 .type_count = call->type_count,
                                 .pair_count = call->pair_count,
                                 .capacity = call->capacity,
                                 .gang = call->gang,
                                 .rate = call->rate,
                                 .pairs = call->pairs,
                                 .pair_rate = call->pair_rate,
                                 .aware = gavel->aware };
    shares_fifo(&queue, call->scratch, call->x);
    return 0;
}

static const struct gavel_rule fifo_rule = { .shares = fifo_shares,
                                             .published = gavel_published_fifo,
                                             .blind = BLIND_TRUE,
                                             .in_order = true,
                                             .strict = true };

static int fifo_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    return gavel_init(self, &fifo_rule, view, seed, run, err);
}

static const struct instance_rule fifo_instance = {
    .method = INSTANCE_FIFO,
    .blind = BLIND_TRUE,
    .published =
        (const struct instance_name[]){
            { "fifo_perf", "" },
            { "fifo_packed", "sharing=true" },
            { "fifo", "aware=false" },
            { 0 },
        },
};

const struct policy policy_gavel_fifo = {
    .name = "gavel-fifo",
    .brief = "first come, first served, on the accelerators that suit",
    .source = "Narayanan et al., Gavel, OSDI 2020, section 4.2",
    .params = gavel_sharing_params,
    .self_size = sizeof(struct gavel_policy),
    .instance = &fifo_instance,
    .init = fifo_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
