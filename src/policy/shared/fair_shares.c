/* fair_shares.c - share due against share got. */
#include "policy/shared/fair_shares.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "model/event.h"

#define HALF_LIFE_S 86400.0

static const double lasting_s = HALF_LIFE_S / 0.69314718055994531; /* mean life */

void fair_shares_init(struct fair_shares *shares, const struct view *view,
                      struct arena *run)
{
    *shares = (struct fair_shares){ 0 };
    shares->users.accounts = arena_array(run, struct share_account, SHARES_ACCOUNTS);
    shares->groups.accounts = arena_array(run, struct share_account, SHARES_ACCOUNTS);
    shares->held = arena_array(run, struct share_held, view->job_max);
}

void fair_shares_inherit(struct fair_shares *shares, const struct view *view,
                         const struct fair_shares *from)
{
    memcpy(shares->users.accounts, from->users.accounts,
           SHARES_ACCOUNTS * sizeof *shares->users.accounts);
    memcpy(shares->groups.accounts, from->groups.accounts,
           SHARES_ACCOUNTS * sizeof *shares->groups.accounts);
    shares->users.active = from->users.active;
    shares->groups.active = from->groups.active;
    for (job_id id = 0; id < view->job_max; id++)
        if (view->jobs[id].state != JOB_FREE)
            shares->held[id] = from->held[id];
}

static double decay_over(int64_t ns)
{
    return ns > 0 ? exp2(-(double)ns * 1e-9 / HALF_LIFE_S) : 1;
}

/* Bring an account to the present.  Most often several were last changed by one event. */
static void settle(struct fair_shares *shares, struct share_account *account,
                   int64_t now_ns)
{
    struct share_decay *decay = &shares->decay;
    if (now_ns <= account->at_ns)
        return;
    if (decay->ns != now_ns - account->at_ns) {
        decay->ns = now_ns - account->at_ns;
        decay->kept = decay_over(decay->ns);
    }
    double kept = decay->kept;
    account->gpu_s = account->gpu_s * kept + account->gpus * lasting_s * (1 - kept);
    account->at_ns = now_ns;
}

/* GPU-seconds that were had evenly between two times, as they count now. */
static double count_late(double gpu_s, int64_t start_ns, int64_t end_ns, int64_t now_ns)
{
    double span_s = (double)(end_ns - start_ns) * 1e-9;
    if (span_s > 1)
        gpu_s *= (1 - decay_over(end_ns - start_ns)) * lasting_s / span_s;
    return gpu_s * decay_over(now_ns - end_ns);
}

/* Change what an account holds; it is counted among the active while it has jobs. */
static void change_account(struct fair_shares *shares, struct share_level *level,
                           struct share_account *account, double weight, int64_t now_ns,
                           int32_t gpus, int32_t jobs)
{
    struct share_account *active = &level->active;
    settle(shares, account, now_ns);
    settle(shares, active, now_ns);
    if (account->jobs == 0 && jobs > 0) {
        account->weight = weight;
        active->weight += weight;
        active->gpu_s += account->gpu_s;
        active->jobs++;
    }
    account->gpus += (uint32_t)gpus;
    account->jobs += (uint32_t)jobs;
    active->gpus += (uint32_t)gpus;
    if (account->jobs == 0 && jobs < 0) {
        active->weight -= account->weight;
        active->gpu_s = fmax(active->gpu_s - account->gpu_s, 0);
        active->jobs--;
    }
    if (active->jobs == 0)
        active->weight = active->gpu_s = 0;
    account->renewed_ns = 0;
}

static double weight_of(const struct entity *list, uint32_t count, uint32_t number)
{
    return number > 0 && number <= count ? list[number - 1].weight : 1;
}

static struct share_account *account_of(const struct share_level *level,
                                        uint32_t number)
{
    return &level->accounts[number % SHARES_ACCOUNTS];
}

/* What a job had before the policy knew it. */
static void add_late(struct fair_shares *shares, struct share_level *level,
                     uint32_t number, int64_t now_ns, double gpu_s)
{
    struct share_account *account = account_of(level, number);
    settle(shares, account, now_ns);
    settle(shares, &level->active, now_ns);
    account->gpu_s += gpu_s;
    if (account->jobs > 0)
        level->active.gpu_s += gpu_s;
}

void fair_shares_recall(struct fair_shares *shares, const struct view *view,
                        const struct job *job, int64_t start_ns, int64_t end_ns)
{
    double gpu_s = count_late((double)job_served_ns(job, view->now_ns) * 1e-9, start_ns,
                              end_ns, view->now_ns);
    add_late(shares, &shares->users, job->user, view->now_ns, gpu_s);
    add_late(shares, &shares->groups, job->entity, view->now_ns, gpu_s);
}

void fair_shares_observe(struct fair_shares *shares, const struct view *view,
                         const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    const struct cluster *cluster = view->cluster;
    struct share_held *counted = &shares->held[event->job];
    uint32_t held = job_holds_seats(job) ? job->gpus_now : 0;
    bool counts = job->state >= JOB_WAITING;
    if (event->kind == EVENT_ADOPTED && job->first_start_ns >= 0 && !counted->counts)
        fair_shares_recall(shares, view, job, job->first_start_ns, view->now_ns);
    if (held == counted->gpus && counts == counted->counts)
        return;
    int32_t gpus = (int32_t)held - (int32_t)counted->gpus;
    int32_t jobs = (int32_t)counts - (int32_t)counted->counts;
    change_account(shares, &shares->users, account_of(&shares->users, job->user),
                   weight_of(cluster->users, cluster->user_count, job->user),
                   view->now_ns, gpus, jobs);
    change_account(shares, &shares->groups, account_of(&shares->groups, job->entity),
                   weight_of(cluster->entities, cluster->entity_count, job->entity),
                   view->now_ns, gpus, jobs);
    counted->gpus = held;
    counted->counts = counts;
}

static double bound_factor(double factor)
{
    return fmin(fmax(factor, 1 / SHARES_BOUND), SHARES_BOUND);
}

/* Due over got. */
static double find_correction(const struct share_level *level,
                              const struct share_account *account, double all_gpu_s)
{
    const struct share_account *active = &level->active;
    if (active->jobs < 2 || account->weight <= 0 || all_gpu_s <= 0)
        return 1; /* there is no other */
    double due = account->weight / active->weight;
    double unused = fmax(all_gpu_s - active->gpu_s, 0);
    double got = (account->gpu_s + due * unused) / all_gpu_s;
    return bound_factor(got > 0 ? due / got : SHARES_BOUND);
}

double fair_shares_correct(struct fair_shares *shares, struct share_level *level,
                           struct share_account *account, const struct view *view)
{
    settle(shares, account, view->now_ns);
    settle(shares, &level->active, view->now_ns);
    account->correction =
        find_correction(level, account, view->cluster->gpu_count * lasting_s);
    account->renewed_ns = view->now_ns + 1;
    return account->correction;
}
