/* view.c - what follows from what a policy may know. */
#include "model/view.h"

#include "base/units.h"
#include "model/cluster.h"
#include "model/throughput.h"

static int64_t time_for(double steps, double rate_per_s)
{
    double ns = steps / rate_per_s * 1e9;
    return ns >= 9e18 ? INT64_MAX : units_round(ns);
}

static int64_t left_at(const struct view *view, const struct job *job,
                       double rate_per_s)
{
    if (job->steps_total <= 0)
        return INT64_MAX;
    double left = job->steps_total - job_steps(job, view->now_ns);
    if (left < 0)
        left = 0; /* it has outrun its estimate: it may end any moment */
    return time_for(left, rate_per_s);
}

int64_t view_work_left_ns(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    return left_at(view, job, job->rate_best_per_s);
}

int64_t view_work_left_at_most_ns(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    double rate_per_s = job->rate_best_per_s;
    for (uint32_t type = 0; job->gpus > 0 && type < view->cluster->type_count; type++) {
        double here_per_s =
            job->types >> type & 1
                ? throughput_rate(view->rates, job, type, job->gpus, job->spread)
                : 0;
        if (here_per_s > 0 && here_per_s < rate_per_s)
            rate_per_s = here_per_s;
    }
    return left_at(view, job, rate_per_s);
}

int64_t view_remaining_ns(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    bool running = job_holds_seats(job) && job->rate_per_s > 0;
    int64_t left_ns =
        left_at(view, job, running ? job->rate_per_s : job->rate_best_per_s);
    int64_t loaded_ns = job->anchor_ns + job->load_ns;
    if (job->state == JOB_LOADING && loaded_ns > view->now_ns && left_ns < INT64_MAX)
        left_ns += loaded_ns - view->now_ns;
    return left_ns;
}
