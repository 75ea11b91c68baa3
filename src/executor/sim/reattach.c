/*
 * reattach.c - a simulated cluster that begins in the middle: jobs that hold GPUs already.
 *
 * What is known of a job is in the view; its true values were admitted before.  Times that the view
 * does not have are those of a job without faults: it saved nothing since it started unless it
 * reported that, and its lease began where its steps were known last.
 */
#include <math.h>

#include "executor/sim/sim_internal.h"

static int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* It goes on from where its steps were known last, at the rate it has; or from now on. */
static void run_on(struct sim_cluster *sim, job_id id)
{
    const struct job *known = &sim->view->jobs[id];
    struct sim_job *job = &sim->jobs[id];
    int64_t now_ns = sim->now_ns;
    sim->now_ns = known->anchor_ns < now_ns ? known->anchor_ns : now_ns;
    sim_make_steps(sim, id);
    sim->now_ns = now_ns;
    if (job->rate_per_s == known->rate_per_s)
        return;
    job->steps = fmin(job_steps(known, now_ns), job->truth.steps);
    sim_make_steps(sim, id);
}

int sim_reattach(void *self, const struct lease *lease, bool stopping,
                 int64_t grace_left_ns, struct error *err)
{
    struct sim_cluster *sim = self;
    const struct job *known = &sim->view->jobs[lease->job];
    struct sim_job *job = &sim->jobs[lease->job];
    if (!job_holds_seats(known))
        return executor_sim.start(sim, lease, err);
    int64_t loaded_ns = known->since_ns + job->truth.load_ns;
    job->now = (struct sim_placement){ .attempt = lease->attempt,
                                       .type = lease->type,
                                       .gpus = lease->gpus,
                                       .spread = lease->spread,
                                       .together = lease->together,
                                       .steps_max = lease->steps_max };
    job->partner = known->partner;
    job->coming = known->coming;
    job->anchor_ns = known->anchor_ns;
    job->ran_ns = later(known->anchor_ns - loaded_ns, 0);
    job->steps_kept =
        fmax(known->steps_saved,
             fmax(known->steps - (double)job->ran_ns * 1e-9 * known->rate_per_s, 0));
    job->lease_end = lease->steps_max ? known->steps + (double)lease->steps_max : 0;
    if (stopping) {
        /* Before the first step there is nothing to save. */
        int64_t pause_ns = known->recalled_ns < loaded_ns ? 0 : job->truth.pause_ns;
        job->phase = SIM_LEAVING;
        job->clean = pause_ns <= known->grace_ns;
        int64_t left_ns =
            known->recalled_ns + (job->clean ? pause_ns : known->grace_ns);
        sim_schedule(sim, lease->job, later(left_ns, sim->now_ns));
    } else if (known->state == JOB_LOADING) {
        job->phase = SIM_LOADING;
        sim_schedule(sim, lease->job, later(loaded_ns, sim->now_ns));
    } else if (known->state == JOB_IDLE) {
        job->phase = SIM_IDLE;
        job->steps_kept = job->steps;
    } else {
        run_on(sim, lease->job);
    }
    return 0;
}
