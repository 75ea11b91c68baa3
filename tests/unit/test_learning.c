/* Curves of simulated jobs: what they say, when they get somewhere, how they are written. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "model/learning.h"

static struct error err;

static struct learning curve(const char *text)
{
    struct learning learning;
    if (learning_parse_points(&learning, text, NULL, &err) < 0)
        fail_msg("%s", err.text);
    return learning;
}

static void losses_go_from_first_to_last(void **state)
{
    struct learning a = curve("exp:mu=0.5");
    assert_near(learning_loss(&a, 0), 1, 0);
    assert_near(learning_loss(&a, 3), 0.125, 1e-15);
    struct learning b = curve("inv:a=0,b=1,c=1,first=3,last=1");
    assert_near(learning_loss(&b, 0), 3, 0);
    assert_near(learning_loss(&b, 1), 2, 1e-15);
    struct learning c = curve("acc:tau=10,last=0.8");
    assert_near(learning_loss(&c, 0), 1, 0);
    assert_near(learning_loss(&c, 10), 1 - 0.8 * (1 - exp(-1)), 1e-15);
}

static void with_kmax_the_end_is_reached_there(void **state)
{
    struct learning a = curve("inv:a=0.01,b=0.2,kmax=100");
    assert_near(learning_loss(&a, 0), 1, 1e-15);
    assert_near(learning_loss(&a, 100), 0, 0);
    assert_near(learning_loss(&a, 500), 0, 0);
    assert_true(learning_loss(&a, 99) > 0);
    assert_near(learning_step(&a, 0), 100, 0);
}

static void a_step_is_the_first_at_which_the_loss_is_so(void **state)
{
    static const char *const texts[] = { "exp:mu=0.93",
                                         "exp:mu=0.5,first=9,last=-4",
                                         "inv:a=0.01,b=0.1",
                                         "inv:a=0,b=2,c=3,kmax=700",
                                         "inv:a=0.5,b=0",
                                         "acc:tau=33.3,last=0.7",
                                         "acc:tau=200,first=0.1,kmax=1000" };
    struct rng rng;
    rng_init(&rng, 1, "learning");
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct learning l = curve(texts[i]);
        double first = learning_loss(&l, 0);
        double last = learning_loss(&l, 500);
        for (uint32_t n = 0; n < 200; n++) {
            double loss = last + (first - last) * rng_unit(&rng);
            double step = learning_step(&l, loss);
            assert_true(step == floor(step));
            assert_true(learning_loss(&l, step) <= loss);
            assert_true(step == 0 || learning_loss(&l, step - 1) > loss);
        }
    }
}

static void what_is_never_reached_is_infinitely_far(void **state)
{
    struct learning a = curve("exp:mu=0.9,last=0.2");
    assert_true(isinf(learning_step(&a, 0.1)));
    assert_near(learning_step(&a, 5), 0, 0);
}

static void what_is_written_reads_the_same(void **state)
{
    static const char *const texts[] = { "exp:mu=0.1",
                                         "inv:a=0.013,b=0.25,kmax=87.5",
                                         "acc:tau=133.33333333333334,last=0.762",
                                         "exp",
                                         "acc:noise=0.05",
                                         "exp:mu=0.5,first=2.302585092994046" };
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[LEARNING_TEXT_BYTES];
        struct learning a = curve(texts[i]);
        assert_string_equal(learning_text(&a, text), texts[i]);
    }
}

static void nonsense_is_refused(void **state)
{
    static const char *const texts[] = { "",
                                         "log:a=1",
                                         "exp:mu=1",
                                         "exp:mu=-1",
                                         "exp:mu=nan",
                                         "exp:mu=0.5,first=0",
                                         "inv:a=-1",
                                         "inv:a=0,b=0",
                                         "acc:tau=0",
                                         "acc:last=2",
                                         "acc:first=0.9,last=0.5",
                                         "exp:nu=0.5",
                                         "exp:mu=0.5,,",
                                         "exp:noise=-0.1",
                                         "exp:noise=nan",
                                         "exp:kmax=inf" };
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct learning learning = { 0 };
        if (learning_parse_points(&learning, texts[i], NULL, &err) == 0)
            fail_msg("accepted: %s", texts[i]);
        assert_true(strlen(err.text) > 0);
    }
}

static void points_are_losses_of_a_training_that_was(void **state)
{
    float room[LEARNING_POINTS_MAX];
    char text[LEARNING_TEXT_BYTES];
    struct learning l;
    assert_int_equal(learning_parse_points(&l, "points:4/3/2/1", NULL, &err),
                     -EINVAL); /* no room */
    assert_int_equal(learning_parse_points(&l, "points:8/3/1/2/0.5/1", room, &err), 0);
    assert_near(learning_loss(&l, 0), 3, 0);
    assert_near(learning_loss(&l, 1), 2, 1e-12);
    assert_near(learning_loss(&l, 5), 1.25, 1e-12);
    assert_near(learning_loss(&l, 100), 1, 0);
    assert_near(learning_step(&l, 3), 0, 0);
    assert_near(learning_step(&l, 2), 1, 0);
    assert_near(learning_step(&l, 1), 2, 0); /* the first time, though it rises again */
    assert_near(learning_step(&l, 0.6), 6, 0);
    assert_true(isinf(learning_step(&l, 0.4)));
    assert_string_equal(learning_text(&l, text), "points:8/3/1/2/0.5/1");
}

static void points_that_are_none_are_refused(void **state)
{
    static const char *const texts[] = {
        "points:",        "points:4",       "points:4/1",      "points:0/2/1",
        "points:-1/2/1",  "points:nan/2/1", "points:4/1/2",    "points:4/2/x",
        "points:4/2/nan", "points:4/2/1/",  "points:4/1e31/1", "points:4/2/1 ",
        "points:4/inf/1", "points:4//1",    "points:4,2,1",    "points:1e19/2/1",
    };
    float room[LEARNING_POINTS_MAX];
    struct learning l;
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(learning_parse_points(&l, texts[i], room, &err), -EINVAL);
    char text[16 + 4 * LEARNING_POINTS_MAX] = "points:5/9";
    size_t used = strlen(text);
    for (uint32_t i = 1; i < LEARNING_POINTS_MAX; i++, used += 2)
        memcpy(text + used, "/1", 3);
    assert_int_equal(learning_parse_points(&l, text, room, &err), 0);
    memcpy(text + used, "/1", 3);
    assert_int_equal(learning_parse_points(&l, text, room, &err), -EINVAL);
}

static void the_longest_text_there_is_has_room(void **state)
{
    float room[LEARNING_POINTS_MAX];
    float again[LEARNING_POINTS_MAX];
    char text[LEARNING_TEXT_BYTES];
    struct learning l = { .family = LEARNING_POINTS,
                          .kmax = 1.0 / 3,
                          .points = room,
                          .point_count = LEARNING_POINTS_MAX };
    for (uint32_t i = 0; i < LEARNING_POINTS_MAX; i++)
        room[i] = -1.23456789e-20F * (float)(i + 1);
    struct learning read;
    assert_int_equal(learning_parse_points(&read, learning_text(&l, text), again, &err),
                     0);
    assert_memory_equal(room, again, sizeof room);
    assert_true(read.kmax == l.kmax);
}

RUN_CASES(TEST(losses_go_from_first_to_last), TEST(with_kmax_the_end_is_reached_there),
          TEST(a_step_is_the_first_at_which_the_loss_is_so),
          TEST(what_is_never_reached_is_infinitely_far),
          TEST(what_is_written_reads_the_same), TEST(nonsense_is_refused),
          TEST(points_are_losses_of_a_training_that_was),
          TEST(points_that_are_none_are_refused),
          TEST(the_longest_text_there_is_has_room));
