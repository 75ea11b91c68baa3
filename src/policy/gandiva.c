/*
 * gandiva.c - equal shares, and pairs by trial and error when there are not enough
 * GPUs.
 *
 * Gandiva (Xiao et al., OSDI 2018), as Gavel's authors use it as a baseline: while all
 * jobs fit, each has an equal part of every type.  When they do not, jobs without a
 * partner are paired at random with others of their size, and pairs share their GPUs; a
 * pair that turns out to make less progress together than one of them alone is
 * separated.  Pairs and single jobs have equal shares.
 *
 * It draws at most as often as there are jobs without a partner, and two jobs that cannot
 * run together on any type are not a pair.  The published system separates a pair that cannot
 * run on some type, and no other.
 */
#include "policy/gavel/gavel.h"

#include <string.h>

#include "base/arena.h"
#include "base/mt19937.h"
#include "solve/solve.h"

#define NONE UINT32_MAX

/*
 * A job's partner, by slot; the generations tell whether both slots still hold these
 * jobs.
 */
struct gandiva_partner {
    job_id other; /* JOB_NONE: it has none */
    uint32_t generation, other_generation;
};

struct gandiva {
    struct gavel_policy gavel;
    bool (*pays)(struct gavel_call *call, uint32_t first, uint32_t second);
    struct gandiva_partner *partners;
    uint32_t *place; /* by slot: index in the call */
    struct mt19937 draws;
};

static uint32_t generation_of(const struct gavel_call *call, job_id job)
{
    return call->view->jobs[job].generation;
}

static double rate_alone(const struct gavel_call *call, uint32_t at, uint32_t column)
{
    return call->rate[(size_t)at * call->type_count + column];
}

/*
 * The two make at least as much progress together as one alone, averaged over the
 * types where both can run.
 */
static bool pair_pays(struct gavel_call *call, uint32_t first, uint32_t second)
{
    uint32_t pair = gavel_pair(call, first, second);
    double sum = 0;
    uint32_t types = 0;
    for (uint32_t c = 0; pair != NONE && c < call->type_count; c++) {
        const double *rates =
            &call->pair_rate[((size_t)pair * call->type_count + c) * 2];
        if (rates[0] > 0 && rates[1] > 0) {
            sum += rates[0] / rate_alone(call, first, c) +
                   rates[1] / rate_alone(call, second, c);
            types++;
        }
    }
    return types > 0 && sum >= types;
}

static bool pair_runs_everywhere(struct gavel_call *call, uint32_t first,
                                 uint32_t second)
{
    uint32_t pair = gavel_pair(call, first, second);
    uint32_t types = 0;
    for (uint32_t c = 0; pair != NONE && c < call->type_count; c++)
        types += call->pair_rate[((size_t)pair * call->type_count + c) * 2] > 0;
    return types == call->type_count;
}

/* Whether the job still has its partner, and the pair still pays. */
static bool stays_paired(struct gandiva *gandiva, struct gavel_call *call, uint32_t at)
{
    job_id job = call->jobs[at];
    const struct gandiva_partner *partner = &gandiva->partners[job];
    if (partner->generation != generation_of(call, job) || partner->other == JOB_NONE)
        return false;
    uint32_t other = gandiva->place[partner->other];
    if (other >= call->job_count || call->jobs[other] != partner->other ||
        partner->other_generation != generation_of(call, partner->other))
        return false;
    return gandiva->pays(call, at < other ? at : other, at < other ? other : at);
}

static void set_partner(struct gandiva *gandiva, const struct gavel_call *call,
                        job_id job, job_id other)
{
    gandiva->partners[job] = (struct gandiva_partner){
        .other = other,
        .generation = generation_of(call, job),
        .other_generation = other != JOB_NONE ? generation_of(call, other) : 0,
    };
}

static void remove_at(uint32_t *list, uint32_t *count, uint32_t at)
{
    (*count)--;
    memmove(&list[at], &list[at + 1], (*count - at) * sizeof *list);
}

static bool can_share(struct gavel_call *call, uint32_t a, uint32_t b)
{
    return gavel_pair(call, a < b ? a : b, a < b ? b : a) != NONE;
}

/*
 * Pair jobs without a partner at random; returns the number of pairs and single jobs.
 */
static uint32_t pair_at_random(struct gandiva *gandiva, struct gavel_call *call)
{
    uint32_t *single = arena_array(call->scratch, uint32_t, call->job_count);
    uint32_t count = 0;
    for (uint32_t at = 0; at < call->job_count; at++)
        gandiva->place[call->jobs[at]] = at;
    for (uint32_t at = 0; at < call->job_count; at++)
        if (!stays_paired(gandiva, call, at))
            single[count++] = at;
    uint32_t pairs = (call->job_count - count) / 2;
    for (uint32_t i = 0; i < count; i++)
        set_partner(gandiva, call, call->jobs[single[i]], JOB_NONE);
    for (uint32_t draws = count; draws > 0 && count > 1; draws--) {
        uint32_t drawn[2];
        mt_sample2(&gandiva->draws, count, drawn);
        uint32_t a = single[drawn[0]];
        uint32_t b = single[drawn[1]];
        if (call->gang[a] != call->gang[b] ||
            (gandiva->pays == pair_pays && !can_share(call, a, b)))
            continue;
        set_partner(gandiva, call, call->jobs[a], call->jobs[b]);
        set_partner(gandiva, call, call->jobs[b], call->jobs[a]);
        bool ordered = drawn[0] < drawn[1];
        remove_at(single, &count, drawn[ordered]);
        remove_at(single, &count, drawn[!ordered]);
        pairs++;
    }
    return pairs + count;
}

/* Give one of the groups an equal part of every type. */
static void set_equal_share(const struct gavel_call *call, uint32_t row,
                            uint32_t groups, double gang)
{
    double *x = &call->x[(size_t)row * call->type_count];
    double sum = 0;
    for (uint32_t c = 0; c < call->type_count; c++) {
        x[c] = call->capacity[c] / groups / gang;
        sum += x[c];
    }
    for (uint32_t c = 0; c < call->type_count && sum > 1; c++)
        x[c] /= sum;
}

static void share_equally(struct gandiva *gandiva, struct gavel_call *call)
{
    double wanted = 0;
    double there = 0;
    for (uint32_t at = 0; at < call->job_count; at++)
        wanted += call->gang[at];
    for (uint32_t c = 0; c < call->type_count; c++)
        there += call->capacity[c];
    if (wanted <= there) {
        shares_isolated(call->job_count, call->type_count, call->capacity, call->gang,
                        call->x);
        return;
    }
    uint32_t groups = pair_at_random(gandiva, call);
    call->level = there / groups;
    for (uint32_t at = 0; at < call->job_count; at++) {
        job_id other = gandiva->partners[call->jobs[at]].other;
        uint32_t with = other == JOB_NONE ? NONE : gandiva->place[other];
        if (with == NONE)
            set_equal_share(call, at, groups, call->gang[at]);
        else if (at < with && gavel_pair(call, at, with) != NONE)
            set_equal_share(call, call->job_count + gavel_pair(call, at, with), groups,
                            call->gang[at]);
    }
}

static int gandiva_shares(void *self, struct gavel_call *call, struct error *err)
{
    struct gandiva *gandiva = self;
    gandiva->pays = pair_pays;
    share_equally(gandiva, call);
    return 0;
}

static int gandiva_published(void *self, struct gavel_call *call, struct error *err)
{
    struct gandiva *gandiva = self;
    gandiva->pays = pair_runs_everywhere;
    share_equally(gandiva, call);
    return 0;
}

static const struct gavel_rule gandiva_rule = { .shares = gandiva_shares,
                                                .published = gandiva_published,
                                                .blind = BLIND_TRUE,
                                                .pairs_itself = true };

static int gandiva_init(void *self, const struct view *view, uint64_t seed,
                        struct arena *run, struct error *err)
{
    struct gandiva *gandiva = self;
    gandiva->gavel.aware = gandiva->gavel.sharing = true;
    gandiva->partners = arena_array(run, struct gandiva_partner, view->job_max);
    gandiva->place = arena_array(run, uint32_t, view->job_max);
    mt_init(&gandiva->draws, seed);
    return gavel_init(self, &gandiva_rule, view, seed, run, err);
}

const struct policy policy_gandiva = {
    .name = "gandiva",
    .brief = "equal shares; when there is not enough, pairs by trial and error",
    .source = "Xiao et al., Gandiva, OSDI 2018; Gavel's baseline",
    .params = gavel_params,
    .self_size = sizeof(struct gandiva),
    .init = gandiva_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
