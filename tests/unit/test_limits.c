/* Limits: whose value counts, what is counted, and what is refused with which sentence. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/request.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "daemon/limits.h"
#include "http/quota.h"
#include "store/store.h"
#include "store/usage_rows.h"
#include "support/store_file.h"

#define ADA 1001
#define BOB 1002
#define EVE 1003 /* in two groups */
#define OWN 900  /* berthd's own user */

/* Who is who is what limits.c is told. */
static bool is_named(void *context, uint32_t uid, const char *name)
{
    return strcmp(uid == ADA   ? "ada"
                  : uid == BOB ? "bob"
                  : uid == EVE ? "eve"
                               : "own",
                  name) == 0;
}

static bool is_in_group(void *context, uint32_t uid, const char *group)
{
    if (strcmp(group, "lab") == 0)
        return uid == BOB || uid == EVE;
    return strcmp(group, "staff") == 0 && uid == EVE;
}

static struct limits limits;
static struct store *store;
static struct error err;
static char folder[40], path[64];

static void open_limits(const struct limit_setting *settings, uint32_t count,
                        bool system)
{
    limits_init(&limits,
                &(struct limits_setup){ .store = store,
                                        .names = { is_named, is_in_group, NULL },
                                        .system = system,
                                        .own_uid = OWN,
                                        .job_max = 1000,
                                        .settings = settings,
                                        .setting_count = count });
    limits_restart(&limits);
}

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-limits-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/x.db", folder);
    if (store_open(&store, path, &err) < 0)
        return -1;
    open_limits(NULL, 0, true);
    return 0;
}

static int teardown(void **state)
{
    limits_release(&limits);
    store_close(store);
    store_file_remove(path);
    return rmdir(folder);
}

/* Begin again with what a file says. */
static void use_file(const struct limit_setting *settings, uint32_t count)
{
    limits_release(&limits);
    open_limits(settings, count, true);
}

static int set_live(const char *text)
{
    struct json *json = NULL;
    assert_int_equal(json_parse(text, strlen(text), &json, &err), 0);
    int r = limits_set(&limits, json, &err);
    json_free(json);
    return r;
}

static double find(uint32_t uid, enum limit key)
{
    return limits_find(&limits, uid, key, NULL);
}

/* ---- whose value counts ---- */

static void users_go_before_groups_before_the_default(void **state)
{
    const struct limit_setting file[] = {
        { LIMIT_DEFAULT, NULL, LIMIT_JOBS, 10 },
        { LIMIT_GROUP, "lab", LIMIT_JOBS, 20 },
        { LIMIT_USER, "bob", LIMIT_JOBS, 5 },
        { LIMIT_USER, "ada", LIMIT_WEIGHT, 3 },
    };
    use_file(file, 4);
    assert_true(find(ADA, LIMIT_JOBS) == 10); /* another key of hers does not matter */
    assert_true(find(ADA, LIMIT_WEIGHT) == 3);
    assert_true(find(BOB, LIMIT_JOBS) == 5); /* less than his group has */
    assert_true(find(EVE, LIMIT_JOBS) == 20);
    const struct limits_row *from;
    limits_find(&limits, EVE, LIMIT_JOBS, &from);
    assert_string_equal(from->name, "lab");
    limits_find(&limits, EVE, LIMIT_GRACE, &from);
    assert_null(from); /* built in */
}

static void of_several_groups_the_most_generous_counts(void **state)
{
    const struct limit_setting file[] = {
        { LIMIT_GROUP, "lab", LIMIT_JOBS, 20 },
        { LIMIT_GROUP, "staff", LIMIT_JOBS, 7 },
        { LIMIT_GROUP, "lab", LIMIT_CLASS, 1 << CLASS_BE },
        { LIMIT_GROUP, "staff", LIMIT_CLASS, 1 << CLASS_TE },
        { LIMIT_GROUP, "lab", LIMIT_GRACE, 100 },
        { LIMIT_GROUP, "staff", LIMIT_GRACE, LIMIT_NONE },
    };
    use_file(file, 6);
    assert_true(find(EVE, LIMIT_JOBS) == 20);
    assert_true(find(EVE, LIMIT_CLASS) == (1 << CLASS_BE | 1 << CLASS_TE));
    assert_true(isinf(find(EVE, LIMIT_GRACE)));
    assert_true(find(BOB, LIMIT_CLASS) == 1 << CLASS_BE);
}

static void root_and_berthds_user_have_no_limits(void **state)
{
    assert_int_equal(set_live("{\"default\":{\"jobs\":0,\"class\":\"be\"}}"), 0);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        assert_true(isinf(find(0, (enum limit)i)));
        assert_true(isinf(find(OWN, (enum limit)i)));
    }
    assert_int_equal(limits_connections(&limits, OWN).connections, UINT32_MAX);
    assert_int_equal(limits_slots(&limits, 0), 1000);
    assert_int_equal(limits_slots(&limits, ADA), 990); /* 1 % is kept */
}

static void a_berthd_of_one_user_limits_nothing(void **state)
{
    limits_release(&limits);
    open_limits(NULL, 0, false);
    for (int i = 0; i < LIMIT_COUNT; i++)
        assert_true(isinf(find(ADA, (enum limit)i)));
    assert_int_equal(limits_slots(&limits, ADA), 1000);
}

static void nobody_gets_more_than_half_of_the_slots_by_default(void **state)
{
    assert_true(find(ADA, LIMIT_JOBS) == 500);
}

static void what_is_set_live_wins_until_it_is_reset(void **state)
{
    const struct limit_setting file[] = { { LIMIT_DEFAULT, NULL, LIMIT_JOBS, 10 },
                                          { LIMIT_USER, "ada", LIMIT_JOBS, 20 } };
    use_file(file, 2);
    assert_int_equal(set_live("{\"default\":{\"jobs\":\"none\"},\"users\":{\"ada\":{"
                              "\"jobs\":30,\"grace\":\"2h\"}}}"),
                     0);
    assert_true(find(ADA, LIMIT_JOBS) == 30);
    assert_true(find(ADA, LIMIT_GRACE) == 7200);
    assert_true(isinf(find(BOB, LIMIT_JOBS)));
    assert_int_equal(set_live("{\"users\":{\"ada\":{\"jobs\":null}}}"), 0);
    assert_true(find(ADA, LIMIT_JOBS) == 20);
    assert_int_equal(limits_reset(&limits, &err), 0);
    assert_true(find(ADA, LIMIT_JOBS) == 20);
    assert_true(find(BOB, LIMIT_JOBS) == 10);
    assert_true(find(ADA, LIMIT_GRACE) == 3600);
}

static void what_is_set_live_survives_a_restart_if_it_was_committed(void **state)
{
    assert_int_equal(set_live("{\"groups\":{\"lab\":{\"class\":\"be\",\"bytes_stored\":"
                              "\"2G\",\"submits_per_s\":0.5}}}"),
                     0);
    assert_int_equal(store_commit(store, &err), 0);
    use_file(NULL, 0);
    assert_true(find(BOB, LIMIT_CLASS) == 1 << CLASS_BE);
    assert_true(find(BOB, LIMIT_BYTES_STORED) == 2147483648.0);
    assert_true(find(BOB, LIMIT_SUBMITS_PER_S) == 0.5);
    assert_int_equal(set_live("{\"groups\":{\"lab\":{\"class\":\"te\"}}}"), 0);
    store_rollback(store);
    limits_restart(&limits);
    assert_true(find(BOB, LIMIT_CLASS) == 1 << CLASS_BE);
}

static void wrong_settings_change_nothing(void **state)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "{\"default\":{\"jobs\":5,\"gpus\":1}}",
          "default: there is no limit \"gpus\", want jobs, waiting" },
        { "{\"default\":{\"jobs\":1.5}}",
          "default: jobs is \"1.5\", want a whole number from 0 to 1000000, or none" },
        { "{\"users\":{\"ada\":{\"grace\":\"5s\"}}}",
          "users.ada: grace is \"5s\", want a time from 1m to 7d, or none" },
        { "{\"users\":{\"ada\":{\"class\":\"te,\"}}}",
          "users.ada: class is \"te,\", want te, be or te,be" },
        { "{\"users\":{\"ada\":{\"class\":\"\"}}}", "class is \"\"" },
        { "{\"users\":{\"a\\\"b\":{}}}", "is no name" },
        { "{\"users\":{\"a\\u0001b\":{}}}", "is no name" },
        { "{\"users\":{\"\":{}}}", "is no name" },
        { "{\"users\":[]}", "users: want {NAME: {KEY: VALUE, …}, …}" },
        { "{\"everyone\":{}}", "everyone: want default, users or groups" },
        { "{\"default\":{\"weight\":true}}",
          "weight is \"\", want a number from 1 to 1000000" },
        { "{\"default\":{\"bytes_in_flight\":\"1K\"}}", "want a size from 64 KiB to" },
        { "{\"default\":{\"jobs\":-1}}", "jobs is \"-1\"" },
        { "{\"default\":{\"jobs\":\"nan\"}}", "jobs is \"nan\"" },
        { "[]", "want default, users and groups" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(set_live(cases[i].text), -EINVAL);
        if (!strstr(err.text, cases[i].sentence))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    assert_true(find(ADA, LIMIT_JOBS) == 500);
}

/* ---- counting ---- */

static void jobs_are_counted_as_they_come_and_go(void **state)
{
    struct limits_mark one = { 0 }, other = { 0 };
    limits_expect_job(&limits, ADA);
    limits_expect_job(&limits, ADA);
    assert_int_equal(limits_used(&limits, ADA).coming, 2);
    limits_begin_job(&limits, ADA);
    limits_count_job(&limits, ADA, &one, JOB_WAITING);
    limits_begin_job(&limits, ADA);
    limits_count_job(&limits, ADA, &other, JOB_HELD);
    struct limits_use use = limits_used(&limits, ADA);
    assert_int_equal(use.jobs, 2);
    assert_int_equal(use.waiting, 2);
    assert_int_equal(use.coming, 0);
    static const enum job_state life[] = { JOB_PLACED, JOB_LOADING, JOB_RUNNING,
                                           JOB_STOPPING };
    for (int i = 0; i < 4; i++) {
        limits_count_job(&limits, ADA, &one, life[i]);
        limits_count_job(&limits, ADA, &one, life[i]); /* twice is once */
        assert_int_equal(limits_used(&limits, ADA).waiting,
                         life[i] == JOB_PLACED ? 2 : 1);
    }
    limits_count_job(&limits, ADA, &one, JOB_WAITING); /* it was preempted */
    assert_int_equal(limits_used(&limits, ADA).waiting, 2);
    limits_count_job(&limits, ADA, &one, JOB_FREE);
    limits_count_job(&limits, ADA, &other, JOB_FREE);
    limits_count_job(&limits, ADA, &other, JOB_FREE);
    assert_int_equal(limits_used(&limits, ADA).jobs, 0);
    assert_int_equal(limits_used(&limits, ADA).waiting, 0);
    assert_int_equal(limits_used(&limits, BOB).jobs, 0);
}

/* ---- what is refused ---- */

static struct request plain_request(void)
{
    return (struct request){ .spec = { .gpus = 1, .grace_ns = 60 * NS_PER_S } };
}

static int admit(uint32_t uid, struct request request, uint32_t count)
{
    struct request *requests = calloc(count, sizeof *requests);
    struct request_texts *texts = calloc(count, sizeof *texts);
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = request;
        texts[i].request = "{\"command\":[\"true\"]}";
    }
    int r = limits_admit(&limits, uid, requests, texts, count, &err);
    free(requests);
    free(texts);
    return r;
}

static void refuses(struct request request, const char *sentence)
{
    assert_int_equal(admit(ADA, request, 1), -EINVAL);
    assert_string_equal(err.text, sentence);
    assert_int_equal(admit(0, request, 1), 0);
}

static void a_job_asks_for_no_more_than_its_user_may(void **state)
{
    struct request request = plain_request();
    assert_int_equal(set_live("{\"default\":{\"job_gpus\":4,\"job_time\":\"2h\","
                              "\"weight\":10,\"class\":\"be\",\"grace\":\"10m\"}}"),
                     0);
    refuses(request, "time_limit_s: want a time of at most 2h (-t)");
    request.launch.limit_ns = 7200 * NS_PER_S;
    assert_int_equal(admit(ADA, request, 1), 0); /* all of it at its limit */
    request.launch.limit_ns++;
    refuses(request, "time_limit_s: 7200s is more than your limit of 2h");
    request.launch.limit_ns = 1;
    request.spec.gpus_max = 5; /* it could grow */
    refuses(request, "gpus: 5 is more than your limit of 4");
    request.spec.gpus_max = 4;
    request.spec.weight = 10.5;
    refuses(request, "weight: 10.5 is more than your limit of 10");
    request.spec.weight = 10;
    request.spec.class = CLASS_TE;
    refuses(request, "class: te is not allowed for you, want be");
    request.spec.class = CLASS_BE;
    request.spec.grace_ns = 601 * NS_PER_S;
    refuses(request, "grace_s: 601s is more than your limit of 10m");

    enum job_class trial = CLASS_TE;
    struct limits_claims nothing = { .weight = NAN, .grace_s = NAN };
    struct limits_claims weight = { .weight = 11, .grace_s = NAN };
    struct limits_claims class = { .class = &trial, .weight = NAN, .grace_s = NAN };
    struct limits_claims grace = { .weight = NAN, .grace_s = 601 };
    assert_int_equal(limits_check_claims(&limits, ADA, &nothing, &err), 0);
    assert_int_equal(limits_check_claims(&limits, ADA, &weight, &err), -EINVAL);
    assert_int_equal(limits_check_claims(&limits, ADA, &class, &err), -EINVAL);
    assert_int_equal(limits_check_claims(&limits, ADA, &grace, &err), -EINVAL);
    assert_int_equal(limits_check_claims(&limits, 0, &grace, &err), 0);
}

static void a_user_has_no_more_jobs_than_its_limit(void **state)
{
    struct limits_mark mark = { 0 };
    assert_int_equal(set_live("{\"default\":{\"jobs\":3,\"waiting\":2}}"), 0);
    limits_count_job(&limits, ADA, &mark, JOB_RUNNING);
    assert_int_equal(admit(ADA, plain_request(), 3), -EDQUOT);
    assert_string_equal(err.text,
                        "you have 1 jobs waiting or running, your limit is 3");
    limits_expect_job(&limits, ADA);
    limits_expect_job(&limits, ADA);
    limits_count_job(&limits, ADA, &mark, JOB_FREE);
    assert_int_equal(admit(ADA, plain_request(), 1), -EDQUOT);
    assert_string_equal(err.text, "you have 2 jobs waiting, your limit is 2");
    assert_int_equal(admit(BOB, plain_request(), 2), 0);
    assert_int_equal(admit(0, plain_request(), 900), 0);
}

static void submissions_are_paid_with_tokens(void **state)
{
    assert_int_equal(set_live("{\"default\":{\"submits_per_s\":2}}"), 0);
    for (int i = 0; i < 20; i++) /* the burst of 10 s */
        assert_int_equal(admit(ADA, plain_request(), 1), 0);
    assert_int_equal(admit(ADA, plain_request(), 1), -EBUSY);
    assert_string_equal(err.text,
                        "you submit jobs faster than your limit of 2 a second");
    limits.uses[0].submissions.at_ns -=
        3 * NS_PER_S / 2; /* a second and a half goes by */
    for (int i = 0; i < 3; i++)
        assert_int_equal(admit(ADA, plain_request(), 1), 0);
    assert_int_equal(admit(ADA, plain_request(), 1), -EBUSY);
    assert_int_equal(admit(BOB, plain_request(), 1), 0);
}

static void changes_are_paid_with_tokens_of_their_own(void **state)
{
    assert_int_equal(set_live("{\"default\":{\"submits_per_s\":2}}"), 0);
    assert_int_equal(admit(ADA, plain_request(), 120), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(limits_admit_change(&limits, ADA, &err), 0);
    assert_int_equal(limits_admit_change(&limits, ADA, &err), -EBUSY);
    assert_string_equal(err.text,
                        "you change jobs faster than your limit of 2 a second");
    limits.uses[0].changes.at_ns -= NS_PER_S;
    assert_int_equal(limits_admit_change(&limits, ADA, &err), 0);
    assert_int_equal(limits_admit_change(&limits, BOB, &err), 0);
    for (int i = 0; i < 900; i++)
        assert_int_equal(limits_admit_change(&limits, 0, &err), 0);
}

static void a_long_list_leaves_a_debt(void **state)
{
    assert_int_equal(set_live("{\"default\":{\"submits_per_s\":2}}"), 0);
    assert_int_equal(admit(ADA, plain_request(), 120), 0); /* 100 more than the burst */
    limits.uses[0].submissions.at_ns -= 49 * NS_PER_S;
    assert_int_equal(admit(ADA, plain_request(), 1), -EBUSY);
    limits.uses[0].submissions.at_ns -= 2 * NS_PER_S;
    assert_int_equal(admit(ADA, plain_request(), 1), 0);
}

/* ---- what is stored ---- */

static void store_job(uint64_t id, uint32_t uid, const char *request, bool ended)
{
    struct store_job job = { .id = id,
                             .uid = uid,
                             .user = "ada",
                             .submit_ns = 1,
                             .rejected = ended ? "it never fits" : NULL,
                             .request = request };
    assert_int_equal(store_add_job(store, &job, &err), 0);
}

static void what_is_stored_of_a_user_is_counted_and_limited(void **state)
{
    char text[5000] = "{\"cwd\":\"/x\",\"command\":[\"";
    size_t head = strlen(text);
    memset(text + head, 'a', 4000);
    snprintf(text + head + 4000, sizeof text - head - 4000, "\"]}");
    int64_t size = (int64_t)strlen(text) + USAGE_RECORD_BYTES;

    assert_int_equal(set_live("{\"default\":{\"bytes_stored\":16000}}"), 0);
    store_job(1, ADA, text, true);
    store_job(2, ADA, text, false);
    assert_int_equal(limits_stored(&limits, ADA), 2 * size);
    assert_int_equal(limits_stored(&limits, BOB), 0);
    store_job(3, ADA, text, false);
    assert_int_equal(admit(ADA, plain_request(), 1), 0); /* job 1 makes way */
    int64_t now = limits_stored(&limits, ADA);
    assert_in_range(now, 2 * size + USAGE_RECORD_BYTES, 2 * size + 1200);
    char *kept = store_request(store, 1);
    assert_string_equal(kept, "{\"cwd\":\"/x\",\"command\":[\"…\"]}");
    free(kept);
    kept = store_request(store, 2);
    assert_string_equal(kept, text); /* it is still to run */
    free(kept);

    store_job(4, ADA, text, false);
    assert_int_equal(admit(ADA, plain_request(), 1), -EDQUOT);
    assert_non_null(
        strstr(err.text, " bytes are stored of your jobs, and these need "));
    assert_non_null(strstr(err.text, "your limit is 15.62 KiB"));
    assert_int_equal(admit(BOB, plain_request(), 1), 0);
    store_rollback(store);
    assert_int_equal(limits_stored(&limits, ADA), 0);
}

RUN_CASES(CASE(users_go_before_groups_before_the_default),
          CASE(of_several_groups_the_most_generous_counts),
          CASE(root_and_berthds_user_have_no_limits),
          CASE(a_berthd_of_one_user_limits_nothing),
          CASE(nobody_gets_more_than_half_of_the_slots_by_default),
          CASE(what_is_set_live_wins_until_it_is_reset),
          CASE(what_is_set_live_survives_a_restart_if_it_was_committed),
          CASE(wrong_settings_change_nothing),
          CASE(jobs_are_counted_as_they_come_and_go),
          CASE(a_job_asks_for_no_more_than_its_user_may),
          CASE(a_user_has_no_more_jobs_than_its_limit),
          CASE(submissions_are_paid_with_tokens),
          CASE(changes_are_paid_with_tokens_of_their_own),
          CASE(a_long_list_leaves_a_debt),
          CASE(what_is_stored_of_a_user_is_counted_and_limited));
