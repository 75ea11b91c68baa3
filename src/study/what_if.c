/* what_if.c - jobs that were run once, played again: as it was, and otherwise. */
#include "study/what_if.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/sort.h"
#include "base/units.h"
#include "model/cluster.h"

#define DAY_NS (86400 * NS_PER_S)
#define HOUR_NS (3600 * NS_PER_S)
#define P95 0.95

const struct what_if_figure_name what_if_figures[WHAT_IF_FIGURES] = {
    [WHAT_IF_WAIT] = { "wait_s.mean", "waiting, mean", "s" },
    [WHAT_IF_JCT] = { "jct_s.mean", "completion time, mean", "s" },
    [WHAT_IF_JCT_P95] = { "jct_s.p95", "completion time, 95 %", "s" },
    [WHAT_IF_SLOWDOWN_TE] = { "slowdown.te.mean", "slowdown, trial jobs", "" },
    [WHAT_IF_SLOWDOWN_BE] = { "slowdown.be.mean", "slowdown, best effort", "" },
    [WHAT_IF_PREEMPTIONS] = { "preemptions", "preemptions", "" },
    [WHAT_IF_LOST] = { "lost_gpu_s", "GPU-time they cost", "GPU-s" },
    [WHAT_IF_UTILISATION] = { "gpu_utilization", "GPU-time held", "share" },
};

/* ---- blocks of time ---- */

static const struct what_if_case *first_case(const struct what_if *what)
{
    return &what->cases[0];
}

/* How many blocks of that length have counted jobs; each job's is written. */
static uint32_t divide(struct what_if *what, int64_t block_ns)
{
    const struct what_if_case *was = first_case(what);
    uint32_t count = 0;
    int64_t last = -1;
    for (uint64_t i = 0; i < was->job_count; i++) {
        what->blocks[i] = UINT32_MAX;
        if (!what->counted[i])
            continue;
        int64_t block = (was->jobs[i].submit_ns - what->from_ns) / block_ns;
        count += block != last;
        last = block;
        what->blocks[i] = count - 1;
    }
    return count;
}

static void make_blocks(struct what_if *what)
{
    static const int64_t lengths[] = { DAY_NS, HOUR_NS };
    what->blocks =
        memory_checked(calloc(first_case(what)->job_count + 1, sizeof *what->blocks));
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        what->block_count = divide(what, lengths[i]);
        what->block_ns = lengths[i];
        if (what->block_count >= WHAT_IF_BLOCKS_MIN)
            return;
    }
    what->block_ns = 0;
}

/* ---- runs ---- */

/* Figures of a whole run are of the period, which begins with this job. */
static uint64_t first_of_period(const struct what_if *what,
                                const struct what_if_case *one)
{
    uint64_t first = 0;
    while (first < one->job_count && one->jobs[first].submit_ns < what->from_ns)
        first++;
    return first < one->job_count ? first : 0;
}

static void set_up_run(struct what_if *what, uint32_t at,
                       struct what_if_outcomes *outcomes)
{
    const struct what_if_case *one = &what->cases[at];
    what->outcomes[at] = memory_checked(
        calloc(first_case(what)->job_count + 1, sizeof *what->outcomes[at]));
    what_if_outcomes_init(outcomes, &what->places, what->outcomes[at]);
    what->runs[at].setup = (struct sim_setup){
        .cluster = one->cluster,
        .rates = one->rates,
        .workload = "history",
        .jobs = one->jobs,
        .job_count = one->job_count,
        .policy = one->policy,
        .window_from = first_of_period(what, one),
        .window_to = one->job_count,
        .seed = what->seed,
        .node_changes = one->changes,
        .node_change_count = one->change_count,
        .policy_changes = one->policies,
        .policy_change_count = one->policy_count,
        .chart = what->chart,
        .observer = what_if_outcomes_observer(outcomes),
    };
}

int what_if_run(struct what_if *what, void (*progress)(void *context, double share),
                void *context, struct error *err)
{
    const struct what_if_case *was = first_case(what);
    struct what_if_outcomes outcomes[WHAT_IF_CASES_MAX] = { 0 };
    what->runs = memory_checked(calloc(what->case_count, sizeof *what->runs));
    for (uint64_t i = 0; i < was->job_count; i++)
        map_put(&what->places, was->jobs[i].id, (uint32_t)i);
    make_blocks(what);
    for (uint32_t at = 0; at < what->case_count; at++)
        set_up_run(what, at, &outcomes[at]);
    int r = sweep_run_all(what->runs, what->case_count, sweep_threads(), progress,
                          context, err);
    for (uint32_t at = 0; at < what->case_count; at++)
        what_if_outcomes_release(&outcomes[at]);
    return r;
}

void what_if_release(struct what_if *what)
{
    for (uint32_t at = 0; at < what->case_count; at++) {
        free(what->outcomes[at]);
        what->outcomes[at] = NULL;
        if (what->runs)
            sim_result_release(&what->runs[at].result);
    }
    free(what->runs);
    free(what->blocks);
    what->runs = NULL;
    what->blocks = NULL;
    map_release(&what->places);
}

/* ---- the floor of trust ---- */

/* As the figures of a run have it: between the two nearest. */
static double sorted_p95(const double *sorted, uint32_t count)
{
    if (count == 0)
        return NAN;
    double at = P95 * (count - 1);
    uint32_t below = (uint32_t)at;
    uint32_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

static double find_p95(double *values, double *scratch, uint32_t count)
{
    sort_numbers(values, scratch, count);
    return sorted_p95(values, count);
}

/* Waiting as it was recorded, or until its first start. */
static double past_wait_s(const struct job_spec *job)
{
    int64_t ns = job->past.waited_ns > 0 || job->past.preemptions > 0
                     ? job->past.waited_ns
                     : job->past.start_ns - job->submit_ns;
    return (double)ns * 1e-9;
}

struct what_if_trust what_if_trust(const struct what_if *what)
{
    const struct what_if_case *was = first_case(what);
    struct what_if_trust trust = { 0 };
    size_t room = was->job_count + 1;
    double *values = memory_checked(calloc(3 * room, sizeof *values));
    double *happened = values, *replayed = values + room, *scratch = replayed + room;
    for (uint64_t i = 0; i < was->job_count; i++) {
        const struct job_spec *job = &was->jobs[i];
        const struct what_if_outcome *outcome = &what->outcomes[0][i];
        if (!what->counted[i] || job->past.end != ENDED_COMPLETED ||
            !outcome->completed)
            continue;
        happened[trust.job_count] = (double)(job->past.end_ns - job->submit_ns) * 1e-9;
        replayed[trust.job_count] = outcome->jct_s;
        trust.jct.happened += happened[trust.job_count];
        trust.jct.replayed += outcome->jct_s;
        trust.wait.happened += past_wait_s(job);
        trust.wait.replayed += outcome->wait_s;
        trust.job_count++;
    }
    double count = trust.job_count;
    trust.jct.happened /= count;
    trust.jct.replayed /= count;
    trust.wait.happened /= count;
    trust.wait.replayed /= count;
    trust.jct_p95.happened = find_p95(happened, scratch, trust.job_count);
    trust.jct_p95.replayed = find_p95(replayed, scratch, trust.job_count);
    trust.jct.change = trust.jct.replayed / trust.jct.happened - 1;
    trust.wait.change =
        trust.wait.happened > 0 ? trust.wait.replayed / trust.wait.happened - 1 : NAN;
    trust.jct_p95.change = trust.jct_p95.replayed / trust.jct_p95.happened - 1;
    free(values);
    return trust;
}

/* ---- differences ---- */

/* What the jobs of a block add up to, in one of the runs. */
struct block_sums {
    double jobs, wait_s, jct_s, lost_gpu_s, preemptions;
    double classes[2], slowdowns[2]; /* jobs and sums, by class */
    double held_gpu_s, room_gpu_s;   /* in that time, by all jobs */
};

/* Two runs, over the jobs that ended well in both. */
struct comparing {
    const struct what_if *what;
    uint32_t job_count;
    struct block_sums *sums[2];  /* by block */
    struct sort_item *sorted[2]; /* completion times and their blocks, smallest first */
};

static void add_to_block(struct block_sums *sums, const struct job_spec *job,
                         const struct what_if_outcome *outcome)
{
    sums->jobs++;
    sums->wait_s += outcome->wait_s;
    sums->jct_s += outcome->jct_s;
    sums->lost_gpu_s += outcome->lost_gpu_s;
    sums->preemptions += outcome->preemptions;
    sums->classes[job->class]++;
    sums->slowdowns[job->class] += outcome->slowdown;
}

/* The block that a time is in; UINT32_MAX: in none. */
static uint32_t block_at(const struct what_if *what, const int64_t *starts,
                         int64_t at_ns)
{
    int64_t block_ns = what->block_ns > 0 ? what->block_ns : INT64_MAX;
    for (uint32_t b = 0; b < what->block_count; b++)
        if (at_ns >= starts[b] && at_ns - starts[b] < block_ns)
            return b;
    return UINT32_MAX;
}

/* GPUs held over the blocks, from the bins of the run's series. */
static void add_utilisation(const struct what_if *what, uint32_t at,
                            struct block_sums *sums)
{
    const struct what_if_case *was = first_case(what);
    const struct what_if_case *one = &what->cases[at];
    const struct summary *summary = &what->runs[at].result.summary;
    int64_t *starts = memory_checked(calloc(what->block_count + 1, sizeof *starts));
    uint32_t known = 0;
    int64_t length = what->block_ns > 0 ? what->block_ns : 1;
    for (uint64_t i = 0; i < was->job_count; i++)
        if (what->blocks[i] == known)
            starts[known++] = what->from_ns + (was->jobs[i].submit_ns - what->from_ns) /
                                                  length * length;
    if (what->block_ns == 0 && known > 0)
        for (uint32_t b = 0; b < known; b++)
            starts[b] = what->from_ns;
    uint32_t bins = summary->series.count;
    double bin_s = bins > 1 ? summary->series.t_s[1] - summary->series.t_s[0] : 1;
    for (uint32_t bin = 0; one->job_count > 0 && bin < bins; bin++) {
        int64_t at_ns = one->jobs[0].submit_ns +
                        (int64_t)((summary->series.t_s[bin] + bin_s / 2) * 1e9);
        uint32_t block =
            at_ns <= what->to_ns ? block_at(what, starts, at_ns) : UINT32_MAX;
        if (block == UINT32_MAX)
            continue;
        sums[block].held_gpu_s += summary->series.gpus_held[bin] * bin_s;
        sums[block].room_gpu_s += one->cluster->gpu_count * bin_s;
    }
    free(starts);
}

static void compare_jobs(struct comparing *comparing, uint32_t at)
{
    const struct what_if *what = comparing->what;
    const struct what_if_case *was = first_case(what);
    const struct what_if_outcome *sides[2] = { what->outcomes[0], what->outcomes[at] };
    size_t room = was->job_count + 1;
    struct sort_item *scratch = memory_checked(calloc(room, sizeof *scratch));
    for (uint32_t side = 0; side < 2; side++) {
        comparing->sums[side] = memory_checked(
            calloc(what->block_count + 1, sizeof *comparing->sums[side]));
        comparing->sorted[side] =
            memory_checked(calloc(room, sizeof *comparing->sorted[side]));
    }
    for (uint64_t i = 0; i < was->job_count; i++) {
        if (!what->counted[i] || !sides[0][i].completed || !sides[1][i].completed)
            continue;
        for (uint32_t side = 0; side < 2; side++) {
            add_to_block(&comparing->sums[side][what->blocks[i]], &was->jobs[i],
                         &sides[side][i]);
            comparing->sorted[side][comparing->job_count] =
                (struct sort_item){ sides[side][i].jct_s, what->blocks[i] };
        }
        comparing->job_count++;
    }
    for (uint32_t side = 0; side < 2; side++)
        sort_items(comparing->sorted[side], scratch, comparing->job_count);
    add_utilisation(what, 0, comparing->sums[0]);
    add_utilisation(what, at, comparing->sums[1]);
    free(scratch);
}

static void add_sums(struct block_sums *sums, const struct block_sums *block,
                     double times)
{
    sums->jobs += times * block->jobs;
    sums->wait_s += times * block->wait_s;
    sums->jct_s += times * block->jct_s;
    sums->lost_gpu_s += times * block->lost_gpu_s;
    sums->preemptions += times * block->preemptions;
    sums->held_gpu_s += times * block->held_gpu_s;
    sums->room_gpu_s += times * block->room_gpu_s;
    for (uint32_t class = 0; class < 2; class ++) {
        sums->classes[class] += times * block->classes[class];
        sums->slowdowns[class] += times * block->slowdowns[class];
    }
}

/* Of jobs that count as often as their block was drawn; 'jobs' of them in all. */
static double weighted_p95(const struct comparing *comparing, uint32_t side,
                           const uint32_t *drawn, double jobs)
{
    const struct sort_item *sorted = comparing->sorted[side];
    double above = (1 - P95) * (jobs - 1); /* its place, counted from the largest */
    double place = floor(above);
    double seen = 0;
    double at = NAN;
    for (uint32_t i = comparing->job_count; i-- > 0;) {
        double times = drawn[sorted[i].value];
        if (times > 0 && isnan(at) && seen + times > place)
            at = sorted[i].key;
        if (seen + times > place + 1)
            return at + (above - place) * (sorted[i].key - at);
        seen += times;
    }
    return at;
}

static double ratio(double sum, double count)
{
    return count > 0 ? sum / count : NAN;
}

/* The figures of one side, each block counted as often as it was drawn. */
static void make_figures(const struct comparing *comparing, uint32_t side,
                         const uint32_t *drawn, double figures[WHAT_IF_FIGURES])
{
    struct block_sums sums = { 0 };
    for (uint32_t b = 0; b < comparing->what->block_count; b++)
        if (drawn[b] > 0)
            add_sums(&sums, &comparing->sums[side][b], drawn[b]);
    figures[WHAT_IF_WAIT] = ratio(sums.wait_s, sums.jobs);
    figures[WHAT_IF_JCT] = ratio(sums.jct_s, sums.jobs);
    figures[WHAT_IF_JCT_P95] = weighted_p95(comparing, side, drawn, sums.jobs);
    figures[WHAT_IF_SLOWDOWN_TE] =
        ratio(sums.slowdowns[CLASS_TE], sums.classes[CLASS_TE]);
    figures[WHAT_IF_SLOWDOWN_BE] =
        ratio(sums.slowdowns[CLASS_BE], sums.classes[CLASS_BE]);
    figures[WHAT_IF_PREEMPTIONS] = sums.jobs > 0 ? sums.preemptions : NAN;
    figures[WHAT_IF_LOST] = sums.jobs > 0 ? sums.lost_gpu_s : NAN;
    figures[WHAT_IF_UTILISATION] = ratio(sums.held_gpu_s, sums.room_gpu_s);
}

static double change_of(double was, double value)
{
    return was > 0 ? value / was - 1 : NAN;
}

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The middle 95 % of what was drawn; NAN where the figure did not apply in most draws. */
static void find_middle(double *drawn, uint32_t count, double *ret_low,
                        double *ret_high)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!isnan(drawn[i]))
            drawn[known++] = drawn[i];
    *ret_low = *ret_high = NAN;
    if (known < count - count / 20)
        return;
    qsort(drawn, known, sizeof *drawn, compare_numbers);
    *ret_low = drawn[(uint32_t)(0.025 * (known - 1) + 0.5)];
    *ret_high = drawn[(uint32_t)(0.975 * (known - 1) + 0.5)];
}

static void draw_blocks(struct rng *rng, uint32_t *drawn, uint32_t count)
{
    memset(drawn, 0, count * sizeof *drawn);
    for (uint32_t i = 0; i < count; i++)
        drawn[rng_below(rng, count)]++;
}

static void find_intervals(const struct comparing *comparing, uint32_t *drawn,
                           struct what_if_difference *ret)
{
    struct rng rng;
    double(*draws)[2][WHAT_IF_DRAWS] =
        memory_checked(calloc(WHAT_IF_FIGURES, sizeof *draws));
    rng_init(&rng, comparing->what->seed, "what-if");
    for (uint32_t i = 0; i < WHAT_IF_DRAWS; i++) {
        double was[WHAT_IF_FIGURES], value[WHAT_IF_FIGURES];
        draw_blocks(&rng, drawn, comparing->what->block_count);
        make_figures(comparing, 0, drawn, was);
        make_figures(comparing, 1, drawn, value);
        for (uint32_t f = 0; f < WHAT_IF_FIGURES; f++) {
            draws[f][0][i] = value[f] - was[f];
            draws[f][1][i] = change_of(was[f], value[f]);
        }
    }
    for (uint32_t f = 0; f < WHAT_IF_FIGURES; f++) {
        find_middle(draws[f][0], WHAT_IF_DRAWS, &ret[f].low, &ret[f].high);
        find_middle(draws[f][1], WHAT_IF_DRAWS, &ret[f].change_low,
                    &ret[f].change_high);
    }
    free(draws);
}

void what_if_compare(const struct what_if *what, uint32_t at,
                     struct what_if_difference ret[WHAT_IF_FIGURES],
                     uint32_t *ret_job_count)
{
    struct comparing comparing = { .what = what };
    double was[WHAT_IF_FIGURES], value[WHAT_IF_FIGURES];
    uint32_t *drawn = memory_checked(calloc(what->block_count + 1, sizeof *drawn));
    compare_jobs(&comparing, at);
    for (uint32_t b = 0; b < what->block_count; b++)
        drawn[b] = 1;
    make_figures(&comparing, 0, drawn, was);
    make_figures(&comparing, 1, drawn, value);
    for (uint32_t f = 0; f < WHAT_IF_FIGURES; f++)
        ret[f] = (struct what_if_difference){ .was = was[f],
                                              .value = value[f],
                                              .difference = value[f] - was[f],
                                              .low = NAN,
                                              .high = NAN,
                                              .change = change_of(was[f], value[f]),
                                              .change_low = NAN,
                                              .change_high = NAN };
    if (what->block_ns > 0)
        find_intervals(&comparing, drawn, ret);
    *ret_job_count = comparing.job_count;
    for (uint32_t side = 0; side < 2; side++) {
        free(comparing.sums[side]);
        free(comparing.sorted[side]);
    }
    free(drawn);
}
