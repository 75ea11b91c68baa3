/* limits.c - what each user may have, what it has, and whether it may have more. */
#include "daemon/limits.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/units.h"
#include "http/quota.h"
#include "store/store.h"
#include "store/usage_rows.h"

#define FACT "limits"      /* what was set live, in the store                         */
#define FACT_MAX (1 << 20) /* bytes of it                                             */
#define BURST_S 10         /* submissions of so many seconds may come at once         */
#define KEPT_SHARE 100 /* one slot in so many is kept for root …                  */
#define KEPT_MAX 1000  /* … but no more than this                                 */

/* For all users of a machine; berth-limits(1) has the reasons. */
static const struct limit_values of_system = {
    .of = { [LIMIT_JOBS] = 50000,
            [LIMIT_WAITING] = LIMIT_NONE,
            [LIMIT_JOB_GPUS] = LIMIT_NONE,
            [LIMIT_JOB_TIME] = LIMIT_NONE,
            [LIMIT_WEIGHT] = 1000,
            [LIMIT_CLASS] = 1 << CLASS_TE | 1 << CLASS_BE,
            [LIMIT_GRACE] = 3600,
            [LIMIT_CONNECTIONS] = 64,
            [LIMIT_BYTES_IN_FLIGHT] = 32 << 20,
            [LIMIT_BYTES_STORED] = 1 << 30,
            [LIMIT_SUBMITS_PER_S] = 200 },
};

/* ---- rows of settings ---- */

static struct limit_values make_unsaid(void)
{
    struct limit_values values;
    for (int i = 0; i < LIMIT_COUNT; i++)
        values.of[i] = LIMIT_UNSAID;
    return values;
}

static struct limits_row *find_row(const struct limits *limits, enum limit_scope scope,
                                   const char *name)
{
    for (uint32_t i = 0; i < limits->row_count; i++) {
        struct limits_row *row = &limits->rows[i];
        if (row->scope == scope && (!name || strcmp(row->name, name) == 0))
            return row;
    }
    return NULL;
}

static struct limits_row *find_or_add_row(struct limits *limits, enum limit_scope scope,
                                          const char *name)
{
    struct limits_row *row = find_row(limits, scope, name);
    if (row)
        return row;
    limits->rows = grow_array(limits->rows, &limits->row_room, limits->row_count + 1,
                              sizeof *limits->rows);
    row = &limits->rows[limits->row_count++];
    *row = (struct limits_row){ .scope = scope,
                                .name = name ? memory_text(name) : NULL,
                                .file = make_unsaid(),
                                .live = make_unsaid() };
    return row;
}

static void set_live(void *context, const struct limit_setting *setting)
{
    struct limits *limits = context;
    struct limits_row *row = find_or_add_row(limits, setting->scope, setting->name);
    row->live.of[setting->key] = setting->value;
}

static void forget_live(struct limits *limits)
{
    for (uint32_t i = 0; i < limits->row_count; i++)
        limits->rows[i].live = make_unsaid();
}

static double row_value(const struct limits_row *row, enum limit key)
{
    return isnan(row->live.of[key]) ? row->file.of[key] : row->live.of[key];
}

/* ---- beginning and end ---- */

static void set_built_in(struct limits *limits, bool system)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        limits->built_in.of[i] = system ? of_system.of[i] : LIMIT_NONE;
    double half = limits->job_max / 2 > 0 ? limits->job_max / 2 : 1;
    if (system && limits->built_in.of[LIMIT_JOBS] > half)
        limits->built_in.of[LIMIT_JOBS] = half;
    limits->kept = system ? limits->job_max / KEPT_SHARE : 0;
    if (limits->kept > KEPT_MAX)
        limits->kept = KEPT_MAX;
    if (system && limits->kept == 0 && limits->job_max > 1)
        limits->kept = 1;
}

void limits_init(struct limits *limits, const struct limits_setup *setup)
{
    *limits = (struct limits){ .store = setup->store,
                               .names = setup->names,
                               .own_uid = setup->own_uid,
                               .job_max = setup->job_max };
    set_built_in(limits, setup->system);
    find_or_add_row(limits, LIMIT_DEFAULT, NULL);
    for (uint32_t i = 0; i < setup->setting_count; i++) {
        const struct limit_setting *setting = &setup->settings[i];
        struct limits_row *row = find_or_add_row(limits, setting->scope, setting->name);
        row->file.of[setting->key] = setting->value;
    }
}

void limits_release(struct limits *limits)
{
    for (uint32_t i = 0; i < limits->row_count; i++)
        free(limits->rows[i].name);
    free(limits->rows);
    free(limits->uses);
    map_release(&limits->by_uid);
    *limits = (struct limits){ 0 };
}

void limits_restart(struct limits *limits)
{
    struct json *json = NULL;
    char *text = store_fact(limits->store, FACT);
    forget_live(limits);
    if (text && json_parse(text, strlen(text), &json, NULL) == 0)
        limit_read_settings(json, set_live, limits, NULL, NULL);
    json_free(json);
    free(text);
    for (uint32_t i = 0; i < limits->use_count; i++) {
        struct limits_use *use = &limits->uses[i];
        use->jobs = use->waiting = use->coming = 0;
    }
}

/* ---- finding a limit ---- */

bool limits_is_exempt(const struct limits *limits, uint32_t uid)
{
    return uid == 0 || uid == limits->own_uid;
}

static const struct limits_row *find_row_of_user(const struct limits *limits,
                                                 uint32_t uid)
{
    const struct limits_names *names = &limits->names;
    for (uint32_t i = 0; i < limits->row_count; i++)
        if (limits->rows[i].scope == LIMIT_USER &&
            names->is_named(names->context, uid, limits->rows[i].name))
            return &limits->rows[i];
    return NULL;
}

/* The more generous of two values of a key; one that is unsaid does not count. */
static double choose_larger(enum limit key, double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    if (key == LIMIT_CLASS && isfinite(a) && isfinite(b))
        return (double)((uint32_t)a | (uint32_t)b);
    return a > b ? a : b;
}

/* The most generous of the user's groups. */
static double find_of_groups(const struct limits *limits, uint32_t uid, enum limit key,
                             const struct limits_row **ret_from)
{
    double best = LIMIT_UNSAID;
    for (uint32_t i = 0; i < limits->row_count; i++) {
        const struct limits_row *row = &limits->rows[i];
        if (row->scope != LIMIT_GROUP || isnan(row_value(row, key)) ||
            !limits->names.in_group(limits->names.context, uid, row->name))
            continue;
        double larger = choose_larger(key, best, row_value(row, key));
        if (isnan(best) || larger != best)
            *ret_from = row;
        best = larger;
    }
    return best;
}

double limits_find(const struct limits *limits, uint32_t uid, enum limit key,
                   const struct limits_row **ret_from)
{
    const struct limits_row *from = NULL;
    if (!ret_from)
        ret_from = &from;
    *ret_from = NULL;
    if (limits_is_exempt(limits, uid))
        return LIMIT_NONE;
    const struct limits_row *row = find_row_of_user(limits, uid);
    if (row && !isnan(row_value(row, key))) {
        *ret_from = row;
        return row_value(row, key);
    }
    double value = find_of_groups(limits, uid, key, ret_from);
    if (!isnan(value))
        return value;
    row = &limits->rows[0];
    bool is_said = !isnan(row_value(row, key));
    *ret_from = is_said ? row : NULL;
    return is_said ? row_value(row, key) : limits->built_in.of[key];
}

/* ---- setting live ---- */

/* What is set live for a user, a group or by default, as an object; nothing if none is. */
static void write_row(struct buf *buf, const struct limits_row *row)
{
    bool any = false;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (isnan(row->live.of[i]))
            continue;
        if (!any)
            json_write_open(buf, row->name ? row->name : "default", '{');
        any = true;
        limit_write_value(buf, limit_fields[i].name, (enum limit)i, row->live.of[i]);
    }
    if (any)
        json_write_close(buf, '}');
}

static void write_scope(struct buf *buf, const struct limits *limits,
                        enum limit_scope scope, const char *key)
{
    if (key)
        json_write_open(buf, key, '{');
    for (uint32_t i = 0; i < limits->row_count; i++)
        if (limits->rows[i].scope == scope)
            write_row(buf, &limits->rows[i]);
    if (key)
        json_write_close(buf, '}');
}

/* Store what is set live; what cannot be stored is not set. */
static int keep_live(struct limits *limits, struct error *err)
{
    struct buf buf;
    buf_init(&buf, FACT_MAX);
    json_write_open(&buf, NULL, '{');
    write_scope(&buf, limits, LIMIT_DEFAULT, NULL);
    write_scope(&buf, limits, LIMIT_USER, "users");
    write_scope(&buf, limits, LIMIT_GROUP, "groups");
    json_write_close(&buf, '}');
    int r = buf.full ? error_set(err, -EINVAL, "limits for too many names are set")
                     : store_set_fact(limits->store, FACT, buf.bytes, err);
    buf_release(&buf);
    return r;
}

static void check_only(void *context, const struct limit_setting *setting)
{
    (void)context;
    (void)setting;
}

int limits_set(struct limits *limits, const struct json *json, struct error *err)
{
    int r = limit_read_settings(json, check_only, NULL, NULL, err);
    if (r < 0)
        return r; /* nothing was changed */
    limit_read_settings(json, set_live, limits, NULL, NULL);
    return keep_live(limits, err);
}

int limits_reset(struct limits *limits, struct error *err)
{
    forget_live(limits);
    return keep_live(limits, err);
}

/* ---- what users have ---- */

static struct limits_use *find_use(struct limits *limits, uint32_t uid)
{
    uint32_t at = map_find(&limits->by_uid, uid);
    if (at != MAP_NONE)
        return &limits->uses[at];
    limits->uses = grow_array(limits->uses, &limits->use_room, limits->use_count + 1,
                              sizeof *limits->uses);
    map_put(&limits->by_uid, uid, limits->use_count);
    return &limits->uses[limits->use_count++];
}

struct limits_use limits_used(const struct limits *limits, uint32_t uid)
{
    uint32_t at = map_find(&limits->by_uid, uid);
    return at == MAP_NONE ? (struct limits_use){ 0 } : limits->uses[at];
}

int64_t limits_stored(const struct limits *limits, uint32_t uid)
{
    return usage_rows_bytes(store_usage(limits->store), uid);
}

void limits_expect_job(struct limits *limits, uint32_t uid)
{
    find_use(limits, uid)->coming++;
}

void limits_begin_job(struct limits *limits, uint32_t uid)
{
    struct limits_use *use = find_use(limits, uid);
    assert(use->coming > 0);
    use->coming--;
}

void limits_count_job(struct limits *limits, uint32_t uid, struct limits_mark *mark,
                      enum job_state state)
{
    struct limits_mark now = { .is_counted = state != JOB_FREE,
                               .waits = state == JOB_HELD || state == JOB_WAITING ||
                                        state == JOB_PLACED };
    if (now.is_counted == mark->is_counted && now.waits == mark->waits)
        return;
    struct limits_use *use = find_use(limits, uid);
    assert(use->jobs + now.is_counted >= mark->is_counted);
    assert(use->waiting + now.waits >= mark->waits);
    use->jobs = use->jobs + now.is_counted - mark->is_counted;
    use->waiting = use->waiting + now.waits - mark->waits;
    *mark = now;
}

/* ---- checks ---- */

/* Tokens come with time up to the burst; a list may take more than there are, once. */
static bool take_tokens(struct limits_bucket *bucket, double rate_per_s, uint32_t count)
{
    int64_t now_ns = clock_now_ns();
    double burst = rate_per_s * BURST_S > 1 ? rate_per_s * BURST_S : 1;
    double come = (double)(now_ns - bucket->at_ns) / NS_PER_S * rate_per_s;
    double tokens = bucket->at_ns == 0 ? burst : bucket->tokens + come;
    bucket->tokens = tokens < burst ? tokens : burst;
    bucket->at_ns = now_ns;
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= count;
    return true;
}

static int check_rate(struct limits *limits, uint32_t uid, uint32_t count,
                      struct error *err)
{
    double rate_per_s = limits_find(limits, uid, LIMIT_SUBMITS_PER_S, NULL);
    if (!isfinite(rate_per_s) ||
        take_tokens(&find_use(limits, uid)->submissions, rate_per_s, count))
        return 0;
    return error_set(err, -EBUSY,
                     "you submit jobs faster than your limit of %.6g a second",
                     rate_per_s);
}

/* Every change is recorded, so a job that is changed without end would fill the disk. */
int limits_admit_change(struct limits *limits, uint32_t uid, struct error *err)
{
    double rate_per_s = limits_find(limits, uid, LIMIT_SUBMITS_PER_S, NULL);
    if (!isfinite(rate_per_s) ||
        take_tokens(&find_use(limits, uid)->changes, rate_per_s, 1))
        return 0;
    return error_set(err, -EBUSY,
                     "you change jobs faster than your limit of %.6g a second",
                     rate_per_s);
}

static int check_counts(const struct limits *limits, uint32_t uid, uint32_t count,
                        struct error *err)
{
    struct limits_use use = limits_used(limits, uid);
    double jobs = limits_find(limits, uid, LIMIT_JOBS, NULL);
    double waiting = limits_find(limits, uid, LIMIT_WAITING, NULL);
    if ((double)use.jobs + use.coming + count > jobs)
        return error_set(err, -EDQUOT,
                         "you have %u jobs waiting or running, your limit is %.0f",
                         use.jobs + use.coming, jobs);
    if ((double)use.waiting + use.coming + count > waiting)
        return error_set(err, -EDQUOT, "you have %u jobs waiting, your limit is %.0f",
                         use.waiting + use.coming, waiting);
    return 0;
}

static size_t length_of(const char *text)
{
    return text ? strlen(text) : 0;
}

/* At the limit the requests of jobs that ended long ago make way. */
static int check_stored(struct limits *limits, uint32_t uid,
                        const struct request_texts *texts, uint32_t count,
                        struct error *err)
{
    double limit = limits_find(limits, uid, LIMIT_BYTES_STORED, NULL);
    double more = 0;
    if (!isfinite(limit))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        more += (double)(length_of(texts[i].request) + length_of(texts[i].env) +
                         length_of(texts[i].script) + USAGE_RECORD_BYTES);
    double used = (double)limits_stored(limits, uid);
    if (used + more > limit) {
        int r = usage_rows_reduce(store_usage(limits->store), uid,
                                  (int64_t)(used + more - limit), err);
        if (r < 0)
            return r;
        used = (double)limits_stored(limits, uid);
    }
    char shown[40];
    if (used + more > limit)
        return error_set(
            err, -EDQUOT,
            "%.0f bytes are stored of your jobs, and these need %.0f more; "
            "your limit is %s",
            used, more,
            limit_show_value(shown, sizeof shown, LIMIT_BYTES_STORED, limit));
    return 0;
}

/* 0, or a sentence that begins with the field. */
static int check_class(const struct limits *limits, uint32_t uid, enum job_class class,
                       struct error *err)
{
    double allowed = limits_find(limits, uid, LIMIT_CLASS, NULL);
    char shown[40];
    if (!isfinite(allowed) || ((uint32_t)allowed & (1u << class)))
        return 0;
    return error_set(err, -EINVAL, "class: %s is not allowed for you, want %s",
                     job_classes[class],
                     limit_show_value(shown, sizeof shown, LIMIT_CLASS, allowed));
}

/* Likewise. */
static int check_ceiling(const struct limits *limits, uint32_t uid, enum limit key,
                         const char *field, double value, struct error *err)
{
    double limit = limits_find(limits, uid, key, NULL);
    char asked[40], shown[40];
    if (value <= limit)
        return 0;
    return error_set(err, -EINVAL, "%s: %s is more than your limit of %s", field,
                     limit_show_value(asked, sizeof asked, key, value),
                     limit_show_value(shown, sizeof shown, key, limit));
}

int limits_check_claims(const struct limits *limits, uint32_t uid,
                        const struct limits_claims *claims, struct error *err)
{
    int r = 0;
    if (claims->class)
        r = check_class(limits, uid, *claims->class, err);
    if (r == 0 && !isnan(claims->weight))
        r = check_ceiling(limits, uid, LIMIT_WEIGHT, "weight", claims->weight, err);
    if (r == 0 && !isnan(claims->grace_s))
        r = check_ceiling(limits, uid, LIMIT_GRACE, "grace_s", claims->grace_s, err);
    return r;
}

/* A job that does not say how long it may run could run for ever. */
static int check_time(const struct limits *limits, uint32_t uid, int64_t limit_ns,
                      struct error *err)
{
    double limit = limits_find(limits, uid, LIMIT_JOB_TIME, NULL);
    char shown[40];
    if (limit_ns == 0 && isfinite(limit))
        return error_set(err, -EINVAL, "time_limit_s: want a time of at most %s (-t)",
                         limit_show_value(shown, sizeof shown, LIMIT_JOB_TIME, limit));
    return check_ceiling(limits, uid, LIMIT_JOB_TIME, "time_limit_s",
                         (double)limit_ns / NS_PER_S, err);
}

/* What one job asks for. */
static int check_request(const struct limits *limits, uint32_t uid,
                         const struct request *request, struct error *err)
{
    const struct job_spec *spec = &request->spec;
    uint32_t gpus = spec->gpus_max > spec->gpus ? spec->gpus_max : spec->gpus;
    int r = check_ceiling(limits, uid, LIMIT_JOB_GPUS, "gpus", gpus, err);
    if (r == 0)
        r = check_time(limits, uid, request->launch.limit_ns, err);
    struct limits_claims claims = { .class = &spec->class,
                                    .weight = spec->weight,
                                    .grace_s = (double)spec->grace_ns / NS_PER_S };
    return r < 0 ? r : limits_check_claims(limits, uid, &claims, err);
}

int limits_admit(struct limits *limits, uint32_t uid, const struct request *requests,
                 const struct request_texts *texts, uint32_t count, struct error *err)
{
    if (limits_is_exempt(limits, uid))
        return 0;
    int r = check_rate(limits, uid, count, err);
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = check_request(limits, uid, &requests[i], err);
    if (r == 0)
        r = check_counts(limits, uid, count, err);
    return r < 0 ? r : check_stored(limits, uid, texts, count, err);
}

uint32_t limits_slots(const struct limits *limits, uint32_t uid)
{
    return limits->job_max - (limits_is_exempt(limits, uid) ? 0 : limits->kept);
}

struct quota_limit limits_connections(const struct limits *limits, uint32_t uid)
{
    double connections = limits_find(limits, uid, LIMIT_CONNECTIONS, NULL);
    double bytes = limits_find(limits, uid, LIMIT_BYTES_IN_FLIGHT, NULL);
    return (struct quota_limit){
        .connections = isfinite(connections) ? (uint32_t)connections : UINT32_MAX,
        .bytes = isfinite(bytes) ? (uint64_t)bytes : UINT64_MAX,
    };
}
