/* start_conditions.c - what must come before a job may be scheduled. */
#include "daemon/start_conditions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/units.h"

void conditions_release(struct start_conditions *conditions)
{
    for (uint32_t i = 0; i < conditions->count; i++) {
        free(conditions->list[i].dependencies);
        free(conditions->list[i].name);
        free(conditions->list[i].outside);
    }
    free(conditions->list);
    map_release(&conditions->open);
    map_release(&conditions->needed);
    conditions->list = NULL;
    conditions->count = conditions->room = 0;
}

bool conditions_needed(const struct request *request, int64_t now_ns)
{
    return request->hold || request->begin_ns > now_ns ||
           request->dependency_count > 0 || request->array_limit > 0 ||
           request->outside;
}

/* One more condition names these jobs, or one less. */
static void count_needed(struct start_conditions *conditions,
                         const struct start_condition *condition, bool more)
{
    for (uint32_t i = 0; i < condition->needed_count; i++) {
        uint64_t id = condition->dependencies[i].id;
        uint32_t count = id ? map_find(&conditions->needed, id) : 0;
        if (id == 0)
            continue; /* a singleton names no job */
        if (more)
            map_put(&conditions->needed, id, count == MAP_NONE ? 1 : count + 1);
        else if (count != MAP_NONE && count > 1)
            map_put(&conditions->needed, id, count - 1);
        else
            map_remove(&conditions->needed, id);
    }
}

bool conditions_need(const struct start_conditions *conditions, uint64_t id)
{
    return map_find(&conditions->needed, id) != MAP_NONE;
}

void conditions_add(struct start_conditions *conditions, const struct request *request,
                    job_id job)
{
    conditions->list = grow_array(conditions->list, &conditions->room,
                                  conditions->count + 1, sizeof *conditions->list);
    uint32_t at = conditions->count++; /* most are added in the order of their ids */
    for (; at > 0 && conditions->list[at - 1].id > request->spec.id; at--)
        conditions->list[at] = conditions->list[at - 1];
    struct start_condition *condition = &conditions->list[at];
    *condition = (struct start_condition){
        .id = request->spec.id,
        .job = job,
        .held = request->hold,
        .begin_ns = request->begin_ns,
        .dependency_count = request->dependency_count,
        .needed_count = request->dependency_count,
        .array_id = request->array_limit ? request->launch.array_id : 0,
        .array_limit = request->array_limit,
        .uid = request->launch.uid,
        .name = memory_text(request->launch.name),
        .outside = memory_text(request->outside),
    };
    if (request->dependency_count > 0) {
        size_t bytes = request->dependency_count * sizeof *condition->dependencies;
        condition->dependencies = memory_resize(NULL, request->dependency_count,
                                                sizeof *condition->dependencies);
        memcpy(condition->dependencies, request->dependencies, bytes);
    }
    count_needed(conditions, condition, true);
}

struct start_condition *conditions_find(const struct start_conditions *conditions,
                                        uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = conditions->count; /* they are in the order of their ids */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (conditions->list[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < conditions->count && conditions->list[low].id == id
               ? &conditions->list[low]
               : NULL;
}

static void remove_condition(struct start_conditions *conditions,
                             struct start_condition *condition)
{
    count_needed(conditions, condition, false);
    free(condition->dependencies);
    free(condition->name);
    free(condition->outside);
    size_t at = (size_t)(condition - conditions->list);
    memmove(condition, condition + 1, (conditions->count - at - 1) * sizeof *condition);
    conditions->count--;
}

void conditions_drop(struct start_conditions *conditions, uint64_t id)
{
    struct start_condition *condition = conditions_find(conditions, id);
    if (condition)
        remove_condition(conditions, condition);
}

bool conditions_hold(struct start_conditions *conditions, uint64_t id, bool held)
{
    struct start_condition *condition = conditions_find(conditions, id);
    if (condition)
        condition->held = held;
    return condition != NULL;
}

bool conditions_wait_outside(struct start_conditions *conditions, uint64_t id,
                             const char *what)
{
    struct start_condition *condition = conditions_find(conditions, id);
    if (!condition)
        return false;
    free(condition->outside);
    condition->outside = memory_text(what);
    return true;
}

void conditions_count_array(struct start_conditions *conditions, uint64_t array_id,
                            bool ended)
{
    uint32_t open = map_find(&conditions->open, array_id);
    if (!ended)
        map_put(&conditions->open, array_id, open == MAP_NONE ? 1 : open + 1);
    else if (array_id == 0 || open == MAP_NONE)
        return;
    else if (open > 1)
        map_put(&conditions->open, array_id, open - 1);
    else
        map_remove(&conditions->open, array_id);
}

/* --- checking ------------------------------------------------------------------------ */

static bool is_met(const struct start_conditions *conditions,
                   const struct start_condition *condition,
                   const struct dependency *dependency, bool *ret_never)
{
    if (dependency->kind == DEPENDS_SINGLETON)
        return conditions->alone(conditions->context, condition->id, condition->name,
                                 condition->uid);
    enum outcome outcome = conditions->outcome(conditions->context, dependency->id);
    bool ended = outcome == OUTCOME_OK || outcome == OUTCOME_NOT_OK;
    if (outcome == OUTCOME_UNKNOWN)
        return true; /* it is kept until no condition names it: this was met before */
    switch (dependency->kind) {
    case DEPENDS_AFTER:
        return ended || outcome == OUTCOME_RUNS;
    case DEPENDS_ANY:
        return ended;
    case DEPENDS_OK:
        *ret_never = outcome == OUTCOME_NOT_OK;
        return outcome == OUTCOME_OK;
    default:
        *ret_never = outcome == OUTCOME_OK;
        return outcome == OUTCOME_NOT_OK;
    }
}

static void drop_met_dependencies(const struct start_conditions *conditions,
                                  struct start_condition *condition)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < condition->dependency_count; i++) {
        struct dependency dependency = condition->dependencies[i];
        if (is_met(conditions, condition, &dependency, &condition->never))
            continue;
        condition->dependencies[i] = condition->dependencies[left];
        condition->dependencies[left++] = dependency;
    }
    condition->dependency_count = left;
}

static bool is_below_array_limit(const struct start_conditions *conditions,
                                 const struct start_condition *condition)
{
    if (!condition->array_limit)
        return true;
    uint32_t open = map_find(&conditions->open, condition->array_id);
    return open == MAP_NONE || open < condition->array_limit;
}

int64_t conditions_check(struct start_conditions *conditions, int64_t now_ns,
                         void (*met)(void *context, job_id job),
                         void (*never)(void *context, job_id job), void *context)
{
    int64_t again_ns = INT64_MAX;
    for (uint32_t i = 0; i < conditions->count;) {
        struct start_condition *condition = &conditions->list[i];
        drop_met_dependencies(conditions, condition);
        if (condition->never) {
            never(context, condition->job);
            remove_condition(conditions, condition);
            continue;
        }
        if (condition->begin_ns > now_ns && condition->begin_ns < again_ns)
            again_ns = condition->begin_ns;
        if (condition->held || condition->outside || condition->begin_ns > now_ns ||
            condition->dependency_count > 0 ||
            !is_below_array_limit(conditions, condition)) {
            i++;
            continue;
        }
        if (condition->array_limit)
            conditions_count_array(conditions, condition->array_id, /* ended= */ false);
        met(context, condition->job);
        remove_condition(conditions, condition);
    }
    return again_ns;
}

static const char *const wants[] = { [DEPENDS_AFTER] = "has started",
                                     [DEPENDS_OK] = "has completed",
                                     [DEPENDS_NOT_OK] = "has failed",
                                     [DEPENDS_ANY] = "has ended" };

void conditions_explain(const struct start_condition *condition, int64_t now_ns,
                        struct buf *text)
{
    const char *comma = "";
    if (condition->held) {
        buf_text(text, "its owner holds it");
        comma = ", ";
    }
    if (condition->outside) {
        buf_print(text, "%sSlurm waits for %.200s", comma, condition->outside);
        comma = ", ";
    }
    if (condition->begin_ns > now_ns) {
        char left[32];
        buf_print(text, "%sit may not begin for another %s", comma,
                  units_show_time(left, sizeof left,
                                  (double)(condition->begin_ns - now_ns) * 1e-9));
        comma = ", ";
    }
    for (uint32_t i = 0; i < condition->dependency_count && i < 8; i++) {
        const struct dependency *dependency = &condition->dependencies[i];
        if (dependency->kind == DEPENDS_SINGLETON)
            buf_print(text, "%san earlier job of its name is not over", comma);
        else
            buf_print(text, "%sit waits until job %" PRIu64 " %s", comma,
                      dependency->id, wants[dependency->kind]);
        comma = ", ";
    }
    if (condition->dependency_count == 0 && condition->array_limit && !*comma)
        buf_print(text, "%u jobs of its array run at once, and that many are under way",
                  condition->array_limit);
}
