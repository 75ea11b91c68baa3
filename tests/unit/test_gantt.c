/* The chart in a terminal: which job held which GPU when, and what is free. */
#include "support/cases.h"

#include <string.h>

#include "base/json.h"
#include "cmd/berth/gantt.h"
#include "model/event_record.h"

static struct json *parsed(const char *text)
{
    struct json *json;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
    return json;
}

/* Update at 'at_s': job 'id' holds GPU 0 of two; 0: no job does. */
static void update(struct gantt *gantt, double at_s, int id, const char *jobs_text)
{
    char text[200];
    snprintf(text, sizeof text,
             id ? "[{\"name\":\"n\",\"type\":\"v\",\"gpus\":2,"
                  "\"held\":[{\"gpu\":0,\"jobs\":[%d]}]}]"
                : "[{\"name\":\"n\",\"type\":\"v\",\"gpus\":2,\"held\":[]}]",
             id);
    struct json *nodes = parsed(text), *jobs = parsed(jobs_text);
    gantt_update(gantt, nodes, jobs, at_s);
    json_free(nodes);
    json_free(jobs);
}

static void assert_drawn(const struct gantt *gantt, const char *want)
{
    char text[1000] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    gantt_print(gantt, file, 40, 10, false);
    fclose(file);
    if (!strstr(text, want))
        fail_msg("want \"%s\" in\n%s", want, text);
}

static void the_newest_slot_is_at_the_right(void **state)
{
    struct gantt gantt;
    gantt_init(&gantt, 1);
    update(&gantt, 1000, 17, "[]");
    update(&gantt, 1003, 18, "[]");
    update(&gantt, 1004, 0, "[]");
    assert_drawn(&gantt, "n v 0            .......7778. free\n");
    assert_drawn(&gantt, "n v 1            ............ free\n");
    gantt_release(&gantt);
}

static void a_job_that_runs_already_is_drawn_from_its_start(void **state)
{
    struct gantt gantt;
    gantt_init(&gantt, 1);
    update(&gantt, 1000, 5, "[{\"id\":5,\"start\":997.5,\"preemptions\":0}]");
    assert_drawn(&gantt, "........5555 5\n");
    gantt_release(&gantt);
    gantt_init(&gantt, 1);
    update(&gantt, 1000, 5, "[{\"id\":5,\"start\":2,\"preemptions\":1}]");
    assert_drawn(&gantt, "...........5 5\n"); /* it may have been away meanwhile */
    gantt_release(&gantt);
}

static void after_a_long_absence_nothing_is_made_up(void **state)
{
    struct gantt gantt;
    gantt_init(&gantt, 1);
    update(&gantt, 1000, 5, "[]");
    update(&gantt, 1003 + 10 * GANTT_SLOTS, 6, "[]");
    assert_drawn(&gantt, "n v 0            ...........6 6\n");
    gantt_release(&gantt);
}

/* Between two updates the stream says what happens. */
static void an_event_is_drawn_before_the_next_update(void **state)
{
    struct gantt gantt;
    struct event_record stopped = { .job = 5 };
    stopped.event = (struct event){ .kind = EVENT_STOPPED, .at_ns = 1002000000000 };
    gantt_init(&gantt, 1);
    update(&gantt, 1000, 5, "[]");
    gantt_event(&gantt, &stopped);
    update(&gantt, 1004, 0, "[]");
    assert_drawn(&gantt, "n v 0            .......55... free\n");
    gantt_release(&gantt);
}

/* Update at 'at_s': these jobs hold GPU 0 of two. */
static void update_pair(struct gantt *gantt, double at_s, const char *held)
{
    char text[200];
    snprintf(text, sizeof text,
             "[{\"name\":\"n\",\"type\":\"v\",\"gpus\":2,"
             "\"held\":[{\"gpu\":0,\"jobs\":[%s]}]}]",
             held);
    struct json *nodes = parsed(text), *jobs = parsed("[]");
    gantt_update(gantt, nodes, jobs, at_s);
    json_free(nodes);
    json_free(jobs);
}

static void a_gpu_that_two_jobs_share_has_a_line_for_each(void **state)
{
    struct gantt gantt;
    gantt_init(&gantt, 1);
    update_pair(&gantt, 1000, "5");
    update_pair(&gantt, 1002, "5,8");
    assert_drawn(&gantt, "n v 0            .........555 5\n"
                         "  beside it                 8 8\n"
                         "n v 1            ............ free\n");
    update_pair(&gantt, 1004, "8"); /* who is left alone is in the first line */
    assert_drawn(&gantt, "n v 0            .......55558 8\n"
                         "  beside it               88 \n"
                         "n v 1");
    gantt_release(&gantt);
}

/* The second line of a GPU is not left out: then the whole GPU is. */
static void what_does_not_fit_is_counted_by_gpus(void **state)
{
    struct gantt gantt;
    char text[1000] = "";
    gantt_init(&gantt, 1);
    update_pair(&gantt, 1000, "5,8");
    for (uint32_t lines = 0; lines <= 3; lines++) {
        static const char *const ends[] = { "… and 2 more\n", "… and 2 more\n",
                                            "… and 2 more\n",
                                            "n v 1            ............ free\n" };
        FILE *file = fmemopen(text, sizeof text, "w");
        gantt_print(&gantt, file, 40, lines, false);
        fclose(file);
        size_t count = strlen(text), end = strlen(ends[lines]);
        assert_true(count >= end);
        assert_string_equal(text + count - end, ends[lines]);
    }
    gantt_release(&gantt);
}

RUN_CASES(TEST(the_newest_slot_is_at_the_right),
          TEST(a_gpu_that_two_jobs_share_has_a_line_for_each),
          TEST(what_does_not_fit_is_counted_by_gpus),
          TEST(a_job_that_runs_already_is_drawn_from_its_start),
          TEST(after_a_long_absence_nothing_is_made_up),
          TEST(an_event_is_drawn_before_the_next_update));
