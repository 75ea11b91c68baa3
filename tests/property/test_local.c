/*
 * Whenever berthd goes down, every job is run once and its end is reported once.
 *
 * The executor is discarded at random moments, with all that it had not yet reported,
 * and a new one is given the orders that were not seen to be carried out; supervisors
 * are killed in between.  What a job writes shows how often it was run.
 */
#include "support/local_fixture.h"

#include <signal.h>
#include <string.h>

#include "base/rng.h"

#define JOBS 12

static const enum event_kind ends[] = { EVENT_FINISHED, EVENT_FAILED, EVENT_STOPPED,
                                        EVENT_LOST };

static uint32_t end_count(const struct local_fixture *b, job_id job)
{
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        count += local_fixture_count_events(b, job, ends[i]);
    return count;
}

static bool all_ended(const struct local_fixture *b)
{
    for (job_id job = 0; job < JOBS; job++)
        if (end_count(b, job) == 0)
            return false;
    return true;
}

static void take_up_again(struct local_fixture *b)
{
    local_fixture_reopen(b);
    for (job_id job = 0; job < b->job_count; job++)
        if (end_count(b, job) == 0)
            local_fixture_reattach(b, job, false);
    local_remove_orphans(b->local);
}

static uint32_t occurrences(const char *text, const char *word)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

/* Returns whether there was one to be killed. */
static bool kill_supervisor(struct local_fixture *b, job_id job)
{
    char path[128];
    snprintf(path, sizeof path, "%s/jobs/%u.0/claim", b->run_dir, job + 1);
    int pid = atoi(local_fixture_read_file(path));
    return pid > 1 && kill(pid, SIGKILL) == 0;
}

static void play(uint64_t seed, bool kills)
{
    struct rng rng;
    rng_init(&rng, seed, "crashes");
    struct local_fixture *b = local_fixture_new();
    bool killed[JOBS] = { false };
    for (job_id i = 0; i < JOBS; i++) {
        char command[64];
        snprintf(command, sizeof command, "echo ran; sleep 0.%02u; exit %u",
                 rng_below(&rng, 10), i % 3);
        local_fixture_start(b, local_fixture_job(b, command));
        local_fixture_sleep(b, rng_below(&rng, 4));
        if (rng_below(&rng, 3) == 0)
            take_up_again(b);
    }
    for (int turn = 0; turn < 10000 && !all_ended(b); turn++) {
        local_fixture_sleep(b, rng_below(&rng, 30));
        job_id victim = rng_below(&rng, JOBS);
        if (kills && end_count(b, victim) == 0)
            killed[victim] = kill_supervisor(b, victim) || killed[victim];
        if (rng_below(&rng, 3) == 0 && turn < 100)
            take_up_again(b);
    }
    local_fixture_sleep(b, 50);
    for (job_id job = 0; job < JOBS; job++) {
        assert_int_equal(end_count(b, job), 1);
        uint32_t ran = occurrences(local_fixture_output(b, job), "ran");
        assert_true(ran == 1 || (killed[job] && ran == 0));
        if (!killed[job])
            assert_int_equal(local_fixture_count_events(
                                 b, job, job % 3 ? EVENT_FAILED : EVENT_FINISHED),
                             1);
    }
    local_fixture_free(b);
}

static void a_restart_at_any_moment_loses_and_repeats_nothing(void **state)
{
    FOR_EACH_SEED(seed, 6)
    play(seed.now, false);
}

static void a_killed_supervisor_is_reported_once_whenever_it_happens(void **state)
{
    FOR_EACH_SEED(seed, 6)
    play(seed.now, true);
}

RUN_CASES(TEST(a_restart_at_any_moment_loses_and_repeats_nothing),
          TEST(a_killed_supervisor_is_reported_once_whenever_it_happens));
