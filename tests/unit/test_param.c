/* Settings: standard values, setting them by name, and what is said about wrong ones. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/param.h"

struct settings {
    uint32_t queues;
    double weight;
    bool aware;
    int64_t round_ns;
    uint32_t order;
    struct field_buffer file;
};

static const char *const orders[] = { "fifo", "sjf", NULL };

#define AT(field) .offset = offsetof(struct settings, field)

static const struct field params[] = {
    { "queues", FIELD_COUNT, AT(queues), .standard = "2", .min = 1, .max = 16 },
    { "weight", FIELD_NUMBER, AT(weight), .standard = "1.5" },
    { "aware", FIELD_FLAG, AT(aware), .standard = "true" },
    { "round", FIELD_TIME, AT(round_ns), .standard = "6m", .min = 1, .max = 3600 },
    { "order", FIELD_CHOICE, AT(order), .standard = "fifo", .choices = orders },
    { "file", FIELD_BUFFER, AT(file), .standard = "" },
    { NULL },
};

static struct settings standard(void)
{
    struct settings s = { 0 };
    param_defaults(params, &s);
    return s;
}

static void assert_refused(const char *text, const char *why)
{
    struct settings s = standard();
    struct error err;
    assert_int_equal(param_parse(params, &s, "las", text, &err), -EINVAL);
    assert_string_equal(err.text, why);
}

static void without_settings_everything_is_standard(void **state)
{
    struct settings s = standard();
    assert_int_equal(param_parse(params, &s, "las", NULL, NULL), 0);
    assert_int_equal(param_parse(params, &s, "las", "", NULL), 0);
    assert_int_equal(s.queues, 2);
    assert_true(s.weight == 1.5);
    assert_true(s.aware);
    assert_int_equal(s.round_ns, INT64_C(360000000000));
    assert_int_equal(s.order, 0);
}

static void each_type_can_be_set(void **state)
{
    struct settings s = standard();
    const char text[] = "queues=16,weight=-2e3,aware=false,round=1h,order=sjf,"
                        "file=a b/c.jsonl";
    assert_int_equal(param_parse(params, &s, "las", text, NULL), 0);
    assert_int_equal(s.queues, 16);
    assert_true(s.weight == -2000);
    assert_false(s.aware);
    assert_int_equal(s.round_ns, INT64_C(3600000000000));
    assert_int_equal(s.order, 1);
    assert_string_equal(s.file.text, "a b/c.jsonl");
}

static void a_wrong_value_is_refused_with_what_is_wanted(void **state)
{
    assert_refused("queues=17",
                   "las: queues is \"17\", want a whole number from 1 to 16");
    assert_refused("queues=2.5",
                   "las: queues is \"2.5\", want a whole number from 1 to 16");
    assert_refused("queues=-1",
                   "las: queues is \"-1\", want a whole number from 1 to 16");
    assert_refused("weight=nan", "las: weight is \"nan\", want a number");
    assert_refused("weight=", "las: weight is \"\", want a number");
    assert_refused("aware=yes", "las: aware is \"yes\", want true or false");
    assert_refused("round=0s",
                   "las: round is \"0s\", want a time such as 90s, 10m or 2h "
                   "from 1 to 3600 seconds");
    assert_refused("order=lifo", "las: order is \"lifo\", want one of: fifo, sjf");
}

static void an_unknown_name_suggests_the_nearest(void **state)
{
    assert_refused("queue=3", "las: no setting 'queue' (did you mean 'queues'?)");
}

static void a_name_without_value_is_refused(void **state)
{
    assert_refused("aware", "las: setting 'aware' has no value, want aware=VALUE");
}

static void a_wrong_list_changes_nothing(void **state)
{
    struct settings s = standard();
    assert_int_equal(param_parse(params, &s, "las", "queues=5,aware=?", NULL), -EINVAL);
    assert_int_equal(s.queues, 2);
}

static void an_owner_without_settings_says_so(void **state)
{
    struct error err;
    param_defaults(NULL, NULL);
    assert_int_equal(param_parse(NULL, NULL, "fifo", "x=1", &err), -EINVAL);
    assert_string_equal(err.text, "fifo: no setting 'x': it has none");
}

static void a_huge_field_is_refused(void **state)
{
    static char text[1000];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = 'x';
    struct settings s = standard();
    assert_int_equal(param_parse(params, &s, "las", text, NULL), -EINVAL);
    text[6] = '=';
    assert_int_equal(param_parse(params, &s, "las", text, NULL), -EINVAL);
}

RUN_CASES(TEST(without_settings_everything_is_standard), TEST(each_type_can_be_set),
          TEST(a_wrong_value_is_refused_with_what_is_wanted),
          TEST(an_unknown_name_suggests_the_nearest),
          TEST(a_name_without_value_is_refused), TEST(a_wrong_list_changes_nothing),
          TEST(an_owner_without_settings_says_so), TEST(a_huge_field_is_refused));
