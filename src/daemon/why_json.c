/* why_json.c - what holds a job back, for the routes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "daemon/daemon.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "executor/executor.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

static struct why_scene scene_of(struct daemon *daemon)
{
    struct daemon_facts facts;
    daemon_look(daemon, &facts);
    return (struct why_scene){ .engine = facts.engine,
                               .conditions = facts.conditions,
                               .reader = store_reader(facts.store),
                               .now_ns = facts.now_ns };
}

static struct json *begin(uint64_t id, const char *state, bool can_ever_run)
{
    struct json *json = json_new_object();
    json_put_count(json, "id", (int64_t)id);
    json_put_text(json, "state", state);
    json_put_flag(json, "can_ever_run", can_ever_run);
    return json;
}

static void put_reasons(struct json *json, const struct reasons *reasons)
{
    struct json *list = json_new_array();
    struct json *ahead = json_new_array();
    for (uint32_t i = 0; i < reasons->count; i++) {
        struct json *reason = json_new_object();
        json_put_text(reason, "token", reasons->list[i].token);
        json_put_text(reason, "text", reasons->list[i].text);
        json_add(list, reason);
    }
    for (uint32_t i = 0; i < reasons->ahead_count; i++)
        json_add_count(ahead, (int64_t)reasons->ahead[i].id);
    json_put(json, "reasons", list);
    json_put(json, "ahead", ahead);
    if (reasons->ahead_more > 0)
        json_put_count(json, "ahead_more", reasons->ahead_more);
}

/* One that is no longer there, from the store. */
static int of_the_past(struct db *reader, uint64_t id, struct json **ret_json,
                       struct error *err)
{
    struct reasons reasons;
    struct db_query *query =
        db_prepare(reader, "SELECT state, reason FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    if (db_next(query, NULL) != 1) {
        db_finish(query);
        return error_set(err, -ENOENT, "no job %" PRIu64, id);
    }
    const char *state = db_get_text(query, 0);
    const char *reason = db_get_text(query, 1);
    bool never = strcmp(state, "REJECTED") == 0;
    reasons_reset(&reasons);
    if (never)
        reasons_add(&reasons, "never", "it can never run: %s", reason ? reason : "");
    else
        reasons_add(&reasons, "ended", "it has ended%s%s", reason ? ": " : "",
                    reason ? reason : "");
    *ret_json = begin(id, state, !never);
    put_reasons(*ret_json, &reasons);
    db_finish(query);
    return 0;
}

/* What Slurm has to say of it, where there is one. */
static void add_slurm(struct daemon *daemon, const struct job *job,
                      struct reasons *reasons)
{
    struct daemon_facts facts;
    daemon_look(daemon, &facts);
    if (facts.trouble)
        reasons_add(reasons, "slurm_away",
                    "Slurm does not answer, and nothing starts until it does: %s",
                    facts.trouble);
    if (facts.trouble || !facts.executor_self || !facts.executor->job_reason ||
        job->state != JOB_PLACED)
        return;
    const char *reason = facts.executor->job_reason(facts.executor_self, job->id);
    if (*reason)
        reasons_add(reasons, "slurm", "Slurm was asked to start it, and says: %s",
                    reason);
}

int why_json(struct daemon *daemon, uint64_t id, struct json **ret_json,
             struct error *err)
{
    struct why_scene scene = scene_of(daemon);
    if (!scene.engine)
        return error_set(err, -EAGAIN, "the store cannot be written just now");
    job_id job = daemon_find(daemon, id);
    if (job == JOB_NONE)
        return of_the_past(scene.reader, id, ret_json, err);
    struct why why;
    why_find(&why, &scene, job);
    add_slurm(daemon, &scene.engine->state.jobs[job], &why.reasons);
    *ret_json = begin(id, rows_state(&scene.engine->state.jobs[job]), why.can_ever_run);
    put_reasons(*ret_json, &why.reasons);
    if (why.change[0])
        json_put_text(*ret_json, "smallest_change", why.change);
    return 0;
}
