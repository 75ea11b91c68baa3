/* quality.c - how soon models improve. */
#include "metrics/quality.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/memory.h"

#define POINTS_MAX 256
#define NONE UINT32_MAX
#define CLASSES_PER_OCTAVE 4
#define JOBS_LEAST 4 /* at once, so that a quarter of them is a job */

/* The reports of a job that is not done. */
struct quality_job {
    int64_t at_ns[POINTS_MAX];
    double losses[POINTS_MAX];
    int64_t served_ns[POINTS_MAX]; /* GPU-time it had used by then */
    uint32_t count;
    uint32_t stride; /* one report in so many is kept */
    uint32_t passed; /* since the last that was kept  */
    uint32_t next_free;
};

/* ---- GPU-time by loss ---- */

static const double quota[LOSS_GROUPS] = {
    [LOSS_HIGH] = 0.25, [LOSS_MEDIUM] = 0.25, [LOSS_LOW] = 0.5
};

void loss_groups_init(struct loss_groups *groups)
{
    *groups = (struct loss_groups){ .bin_ns = 1000000000 };
}

void loss_groups_release(struct loss_groups *groups)
{
    free(groups->bins);
    groups->bins = NULL;
}

/* The highest losses are in class 0. */
static uint32_t class_of(double loss)
{
    if (!(loss > 0))
        return LOSS_CLASSES - 1;
    double at = floor(-log2(loss) * CLASSES_PER_OCTAVE);
    return (uint32_t)fmin(fmax(at, 0), LOSS_CLASSES - 1);
}

/* Each two bins become one. */
static void merge_bins(struct loss_groups *groups)
{
    for (uint32_t i = 0; i < LOSS_BINS; i++)
        for (uint32_t c = 0; c < LOSS_CLASSES; c++) {
            struct loss_cell cell = groups->bins[i][c];
            groups->bins[i][c] = (struct loss_cell){ 0, 0 };
            groups->bins[i / 2][c].job_s += cell.job_s;
            groups->bins[i / 2][c].gpu_s += cell.gpu_s;
        }
    groups->bin_ns *= 2;
}

static void extend_bins(struct loss_groups *groups, int64_t to_ns)
{
    if (!groups->bins)
        groups->bins = memory_checked(calloc(LOSS_BINS, sizeof *groups->bins));
    while (to_ns > groups->bin_ns * LOSS_BINS)
        merge_bins(groups);
}

void loss_groups_add(struct loss_groups *groups, int64_t from_ns, int64_t to_ns,
                     double loss_from, double loss_to, double gpus)
{
    double span_ns = (double)(to_ns - from_ns);
    extend_bins(groups, to_ns);
    for (int64_t at_ns = from_ns; at_ns < to_ns;) {
        int64_t bin = at_ns / groups->bin_ns;
        int64_t end_ns = (bin + 1) * groups->bin_ns;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        double middle = ((double)(at_ns - from_ns) + (double)(end_ns - from_ns)) / 2;
        double loss = loss_from + (loss_to - loss_from) * middle / span_ns;
        struct loss_cell *cell = &groups->bins[bin][class_of(loss)];
        double s = (double)(end_ns - at_ns) * 1e-9;
        cell->job_s += s;
        cell->gpu_s += gpus * s;
        at_ns = end_ns;
    }
}

/* Divide the GPU-time of one bin among the groups; a class may be in more than one. */
static void share_bin(const struct loss_cell cells[LOSS_CLASSES], double job_s,
                      double gpu_s[LOSS_GROUPS])
{
    uint32_t group = 0;
    double room_s = quota[0] * job_s;
    for (uint32_t c = 0; c < LOSS_CLASSES; c++) {
        double left_s = cells[c].job_s;
        while (left_s > 0) {
            bool last = group + 1 == LOSS_GROUPS;
            double take_s = last ? left_s : fmin(left_s, room_s);
            gpu_s[group] += cells[c].gpu_s * (take_s / cells[c].job_s);
            left_s -= take_s;
            room_s -= take_s;
            if (!last && room_s <= 0)
                room_s = quota[++group] * job_s;
        }
    }
}

bool loss_groups_shares(const struct loss_groups *groups, double shares[LOSS_GROUPS])
{
    double gpu_s[LOSS_GROUPS] = { 0 };
    for (uint32_t i = 0; groups->bins && i < LOSS_BINS; i++) {
        double job_s = 0;
        for (uint32_t c = 0; c < LOSS_CLASSES; c++)
            job_s += groups->bins[i][c].job_s;
        if (job_s >= JOBS_LEAST * (double)groups->bin_ns * 1e-9)
            share_bin(groups->bins[i], job_s, gpu_s);
    }
    double sum_s = 0;
    for (uint32_t g = 0; g < LOSS_GROUPS; g++)
        sum_s += gpu_s[g];
    for (uint32_t g = 0; g < LOSS_GROUPS && sum_s > 0; g++)
        shares[g] = gpu_s[g] / sum_s;
    return sum_s > 0;
}

/* --- startup and release ------------------------------------------------------------- */

void quality_init(struct quality *quality, struct arena *run, const struct view *view,
                  uint64_t window_from, uint64_t window_to)
{
    *quality = (struct quality){ .window_from = window_from,
                                 .window_to = window_to,
                                 .first_ns = INT64_MAX,
                                 .job_free = NONE };
    quality->tracks = arena_array(run, uint32_t, view->job_max);
    quality->counted = arena_array(run, bool, view->job_max);
    series_init(&quality->series);
    loss_groups_init(&quality->groups);
}

void quality_release(struct quality *quality)
{
    loss_groups_release(&quality->groups);
    free(quality->jobs);
    quality->jobs = NULL;
}

/* --- while it runs ------------------------------------------------------------------ */

static struct quality_job *find_track(struct quality *quality, job_id job)
{
    if (quality->tracks[job] == 0) {
        uint32_t at = quality->job_free;
        if (at != NONE) {
            quality->job_free = quality->jobs[at].next_free;
        } else {
            at = quality->job_used++;
            quality->jobs = grow_array(quality->jobs, &quality->job_room,
                                       quality->job_used, sizeof *quality->jobs);
        }
        quality->jobs[at].count = quality->jobs[at].passed = 0;
        quality->jobs[at].stride = 1;
        quality->tracks[job] = at + 1;
    }
    return &quality->jobs[quality->tracks[job] - 1];
}

static void drop_track(struct quality *quality, job_id job)
{
    if (quality->tracks[job] == 0)
        return;
    uint32_t at = quality->tracks[job] - 1;
    quality->jobs[at].next_free = quality->job_free;
    quality->job_free = at;
    quality->tracks[job] = 0;
}

/* Drop every second report.  Only jobs that are restarted often have so many. */
static void thin_out_reports(struct quality_job *job)
{
    uint32_t kept = 1;
    for (uint32_t i = 2; i < job->count; i += 2, kept++) {
        job->at_ns[kept] = job->at_ns[i];
        job->losses[kept] = job->losses[i];
        job->served_ns[kept] = job->served_ns[i];
    }
    job->count = kept;
    job->stride *= 2;
}

static void keep_report(struct quality_job *job, const struct event *event,
                        const struct view *view)
{
    if (job->count == POINTS_MAX)
        thin_out_reports(job);
    job->at_ns[job->count] = event->at_ns;
    job->served_ns[job->count] = job_served_ns(&view->jobs[event->job], event->at_ns);
    job->losses[job->count++] = event->loss;
}

static void add_report(struct quality_job *job, const struct event *event,
                       const struct view *view)
{
    if (++job->passed < job->stride)
        return;
    job->passed = 0;
    keep_report(job, event, view);
}

/* --- when it is done ------------------------------------------------------------------ */

/* From submission to the first report of a loss of at most 'loss'. */
static double time_to_s(const struct quality_job *job, int64_t submit_ns, double loss,
                        double slack)
{
    uint32_t i = 0;
    while (i + 1 < job->count && job->losses[i] > loss + slack)
        i++;
    return (double)(job->at_ns[i] - submit_ns) * 1e-9;
}

/* From one report to the next: its loss, and how many GPUs it held. */
static void add_stretch(struct quality *quality, const struct quality_job *job,
                        uint32_t i, double last, double way)
{
    int64_t from_ns = job->at_ns[i - 1] - quality->first_ns;
    int64_t to_ns = job->at_ns[i] - quality->first_ns;
    if (to_ns <= from_ns)
        return;
    double before = (job->losses[i - 1] - last) / way;
    double after = (job->losses[i] - last) / way;
    double loss = (before + after) / 2;
    double gpus =
        (double)(job->served_ns[i] - job->served_ns[i - 1]) / (double)(to_ns - from_ns);
    const double values[SERIES_ROWS] = { [QUALITY_LOSS] = loss, [QUALITY_RUNNING] = 1 };
    quality->loss_s += loss * (double)(to_ns - from_ns) * 1e-9;
    series_spread(&quality->series, from_ns, to_ns, values);
    loss_groups_add(&quality->groups, from_ns, to_ns, before, after, gpus);
}

static void add_job(struct quality *quality, const struct quality_job *job,
                    int64_t submit_ns)
{
    double first = job->losses[0];
    double last = job->losses[job->count - 1];
    double way = first - last;
    if (!(way > 0))
        return; /* its loss did not fall: there is nothing to normalise by */
    quality->job_count++;
    for (uint32_t i = 0; i < LEARNING_LEVELS; i++)
        quality->level_s[i] +=
            time_to_s(job, submit_ns,
                      learning_level_loss(first, last, learning_levels[i]), way * 1e-9);
    bool is_accuracy = learning_is_accuracy(first, last);
    quality->accuracy_count += is_accuracy;
    for (uint32_t i = 0; is_accuracy && i < LEARNING_ACCURACIES; i++)
        quality->accuracy_s[i] +=
            time_to_s(job, submit_ns,
                      learning_accuracy_loss(last, learning_accuracies[i]), way * 1e-9);
    quality->loss_s += (double)(job->at_ns[0] - submit_ns) * 1e-9;
    for (uint32_t i = 1; i < job->count; i++)
        add_stretch(quality, job, i, last, way);
}

static void apply_submitted(struct quality *quality, const struct event *event)
{
    uint64_t number = quality->seen++;
    if (event->kind == EVENT_REJECTED)
        return;
    if (quality->first_ns == INT64_MAX)
        quality->first_ns = event->at_ns;
    quality->tracks[event->job] = 0;
    quality->counted[event->job] =
        number >= quality->window_from && number < quality->window_to;
}

void quality_event(void *self, const struct view *view, const struct event *event)
{
    struct quality *quality = self;
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_REJECTED:
        apply_submitted(quality, event);
        break;
    case EVENT_PROGRESS:
        if (isfinite(event->loss) && quality->counted[event->job])
            add_report(find_track(quality, event->job), event, view);
        break;
    case EVENT_FINISHED:
        if (quality->job_used == 0 || quality->tracks[event->job] == 0)
            break;
        if (isfinite(event->loss))
            keep_report(find_track(quality, event->job), event, view);
        add_job(quality, find_track(quality, event->job),
                view->jobs[event->job].submit_ns);
        drop_track(quality, event->job);
        break;
    case EVENT_FAILED:
    case EVENT_STOPPED:
    case EVENT_LOST:
    case EVENT_DROPPED:
        if (view->jobs[event->job].state == JOB_FREE) /* failed, or cancelled */
            drop_track(quality, event->job);
        break;
    default:
        break;
    }
}

double quality_mean_loss(const struct quality *quality)
{
    double sum = 0;
    uint32_t bins = 0;
    for (uint32_t i = 0; i < quality->series.bin_count; i++) {
        double running = quality->series.sums[QUALITY_RUNNING][i];
        if (running <= 0)
            continue;
        sum += quality->series.sums[QUALITY_LOSS][i] / running;
        bins++;
    }
    return bins > 0 ? sum / bins : NAN;
}
