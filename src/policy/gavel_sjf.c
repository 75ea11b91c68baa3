/*
 * gavel_sjf.c - shortest job first, on the GPUs that suit.
 *
 *     key(j) = steps left / fastest rate
 *
 * The job that could end soonest gets the type it is fastest on, whole; then the next,
 * of what is left, and so on; jobs that do not fit are passed over.  That is Gavel's
 * "minimise the shortest job's time" (OSDI 2020, section 4.2), taken job by job, since
 * the linear programme has the same solution.  What is left over goes to any job in
 * rounds.
 *
 * Without rates the types are alike: the first with enough free GPUs will do.
 */
#include "policy/gavel/gavel.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"

static double fastest_rate(const struct gavel_call *call, uint32_t at)
{
    double best = 0;
    for (uint32_t c = 0; c < call->type_count; c++)
        best = fmax(best, call->rate[(size_t)at * call->type_count + c]);
    return best;
}

static void give_fastest_type(struct gavel_call *call, uint32_t at, double *room)
{
    const double *rates = &call->rate[(size_t)at * call->type_count];
    uint32_t best = UINT32_MAX;
    for (uint32_t c = 0; c < call->type_count; c++)
        if (rates[c] > 0 && call->gang[at] <= room[c] &&
            (best == UINT32_MAX || rates[c] > rates[best]))
            best = c;
    if (best == UINT32_MAX)
        return;
    room[best] -= call->gang[at];
    call->x[(size_t)at * call->type_count + best] = 1;
}

/* How soon it could end. */
static double sjf_key(const struct gavel_call *call, uint32_t at)
{
    double rate_per_s = fastest_rate(call, at);
    return rate_per_s > 0 ? call->steps[at] / rate_per_s : INFINITY;
}

static int sjf_shares(void *self, struct gavel_call *call, struct error *err)
{
    struct sort_item *items =
        arena_array(call->scratch, struct sort_item, 2 * (size_t)call->job_count);
    double room[TYPES_MAX];
    uint32_t count = 0;
    memcpy(room, call->capacity, call->type_count * sizeof *room);
    for (uint32_t at = 0; at < call->job_count; at++) {
        double key_s = sjf_key(call, at);
        if (key_s < INFINITY)
            items[count++] = (struct sort_item){ .key = key_s, .value = at };
    }
    sort_items(items, items + call->job_count, count);
    for (uint32_t i = 0; i < count; i++)
        give_fastest_type(call, items[i].value, room);
    return 0;
}

static const struct gavel_rule sjf_rule = { .shares = sjf_shares,
                                            .key = sjf_key,
                                            .blind = BLIND_FIRST };

static int sjf_init(void *self, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err)
{
    return gavel_init(self, &sjf_rule, view, seed, run, err);
}

static const struct field sjf_params[] = {
    GAVEL_PARAM_AWARE,
    GAVEL_PARAMS,
    { NULL },
};

const struct policy policy_gavel_sjf = {
    .name = "gavel-sjf",
    .brief = "shortest job first, on the accelerators that suit",
    .source = "Narayanan et al., Gavel, OSDI 2020, section 4.2",
    .params = sjf_params,
    .self_size = sizeof(struct gavel_policy),
    .init = sjf_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
