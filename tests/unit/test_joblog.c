/* A line per job, as it ends. */
#include "support/engine_run.h"

#include <string.h>

#include "metrics/joblog.h"
#include "support/world.h"

static void a_line_for_each_job_however_it_ends(void **state)
{
    const struct job_spec specs[] = {
        { .gpus = 2, .steps = 30, .grace_ns = SECONDS(2), .pause_ns = SECONDS(2) },
        { .gpus = 3, .steps = 1 },
        { .gpus = 2, .steps = 5, .submit_ns = SECONDS(10), .class = CLASS_TE },
        { .gpus = 1, .steps = 1, .submit_ns = SECONDS(20), .fails = true },
    };
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct arena arena;
    struct cluster cluster;
    struct joblog log;
    struct engine_run run;
    assert_non_null(file);
    arena_init(&arena, 0);
    assert_int_equal(cluster_load(&cluster, &arena, "1xv100:2", NULL), 0);
    joblog_begin(&log, file);
    engine_run_play(&run, &(struct engine_run_setup){
                              .cluster = &cluster,
                              .policy = policy_find("srtf"),
                              .specs = specs,
                              .spec_count = 4,
                              .observer = { .event = joblog_event, .self = &log } });
    joblog_end(&log, &run.engine.state.view, run.engine.state.job_count);
    fclose(file);

    /*
     * Job 1 runs 0..10, pauses to 12, waits for job 3 until 17 and for job 4 from 20
     * (two seconds more of pausing: 22) to 23, and has 30 - 10 - 3 steps left: to 40.
     */
    static const char *const lines[] = {
        "2,be,3,,rejected,0.000000000,,,,,,,,,,",
        "3,te,2,v100,completed,10.000000000,12.000000000,17.000000000,7.000000000,"
        "2.000000000,10.000000000,0,0,1,1.4,",
        "4,be,1,v100,failed,20.000000000,22.000000000,23.000000000,3.000000000,"
        "2.000000000,1.000000000,0,0,1,,",
        "1,be,2,v100,completed,0.000000000,0.000000000,40.000000000,40.000000000,"
        "6.000000000,68.000000000,2,0,3,1.33333333,",
    };
    char *line = strtok(text, "\n");
    assert_int_equal(strncmp(line, "id,class,gpus,type,state,", 25), 0);
    for (int i = 0; i < 4; i++) {
        line = strtok(NULL, "\n");
        assert_non_null(line);
        assert_string_equal(line, lines[i]);
    }
    assert_null(strtok(NULL, "\n"));
    joblog_release(&log);
    engine_run_release(&run);
    arena_release(&arena);
    free(text);
}

static void jobs_that_have_not_ended_are_written_at_the_end(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct joblog log;
    struct world w;
    assert_non_null(file);
    world_init(&w, 1, 4);
    joblog_begin(&log, file);
    world_queued(&w, (struct job){ .id = 42, .gpus = 1 });
    joblog_name(&log, 0, "a, \"b\"");
    joblog_end(&log, &w.state.view, w.state.job_count);
    fclose(file);
    assert_non_null(strstr(text, "42,be,1,,unfinished,0.000000000,,,,"));
    assert_non_null(strstr(text, "\"a, \"\"b\"\"\"\n"));
    joblog_release(&log);
    world_release(&w);
    free(text);
}

RUN_CASES(TEST(a_line_for_each_job_however_it_ends),
          TEST(jobs_that_have_not_ended_are_written_at_the_end));
