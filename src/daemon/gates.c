/* gates.c - what must come before a job may wait for room. */
#include "daemon/gates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/units.h"

void gates_release(struct gates *gates)
{
    for (uint32_t i = 0; i < gates->count; i++) {
        free(gates->gates[i].dependencies);
        free(gates->gates[i].name);
        free(gates->gates[i].outside);
    }
    free(gates->gates);
    map_release(&gates->open);
    gates->gates = NULL;
    gates->count = gates->room = 0;
}

bool gates_needed(const struct request *request, uint32_t array_limit, int64_t now_ns)
{
    return request->hold || request->begin_ns > now_ns ||
           request->dependency_count > 0 || array_limit > 0 || request->outside;
}

void gates_add(struct gates *gates, const struct request *request, job_id job,
               uint32_t array_limit)
{
    gates->gates =
        grow_array(gates->gates, &gates->room, gates->count + 1, sizeof *gates->gates);
    uint32_t at = gates->count++; /* most come in the order of their ids */
    for (; at > 0 && gates->gates[at - 1].id > request->spec.id; at--)
        gates->gates[at] = gates->gates[at - 1];
    struct gate *gate = &gates->gates[at];
    *gate = (struct gate){
        .id = request->spec.id,
        .job = job,
        .held = request->hold,
        .begin_ns = request->begin_ns,
        .dependency_count = request->dependency_count,
        .array_id = array_limit ? request->launch.array_id : 0,
        .array_limit = array_limit,
        .uid = request->launch.uid,
        .name = memory_text(request->launch.name),
        .outside = memory_text(request->outside),
    };
    if (request->dependency_count > 0) {
        size_t bytes = request->dependency_count * sizeof *gate->dependencies;
        gate->dependencies =
            memory_resize(NULL, request->dependency_count, sizeof *gate->dependencies);
        memcpy(gate->dependencies, request->dependencies, bytes);
    }
}

struct gate *gates_find(const struct gates *gates, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = gates->count; /* they stand in the order of their ids */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (gates->gates[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < gates->count && gates->gates[low].id == id ? &gates->gates[low] : NULL;
}

static void forget(struct gates *gates, struct gate *gate)
{
    free(gate->dependencies);
    free(gate->name);
    free(gate->outside);
    size_t at = (size_t)(gate - gates->gates);
    memmove(gate, gate + 1, (gates->count - at - 1) * sizeof *gate);
    gates->count--;
}

void gates_drop(struct gates *gates, uint64_t id)
{
    struct gate *gate = gates_find(gates, id);
    if (gate)
        forget(gates, gate);
}

bool gates_hold(struct gates *gates, uint64_t id, bool held)
{
    struct gate *gate = gates_find(gates, id);
    if (gate)
        gate->held = held;
    return gate != NULL;
}

bool gates_outside(struct gates *gates, uint64_t id, const char *what)
{
    struct gate *gate = gates_find(gates, id);
    if (!gate)
        return false;
    free(gate->outside);
    gate->outside = memory_text(what);
    return true;
}

void gates_ended(struct gates *gates, uint64_t array_id)
{
    uint32_t open = array_id ? map_find(&gates->open, array_id) : MAP_NONE;
    if (open == MAP_NONE)
        return;
    if (open > 1)
        map_put(&gates->open, array_id, open - 1);
    else
        map_remove(&gates->open, array_id);
}

/* --- asking ------------------------------------------------------------------------ */

static bool is_met(const struct gates *gates, const struct gate *gate,
                   const struct dependency *dependency, bool *ret_never)
{
    if (dependency->kind == DEPENDS_SINGLETON)
        return gates->alone(gates->context, gate->id, gate->name, gate->uid);
    enum outcome outcome = gates->outcome(gates->context, dependency->id);
    bool ended = outcome == OUTCOME_OK || outcome == OUTCOME_NOT_OK;
    switch (dependency->kind) {
    case DEPENDS_AFTER:
        return ended || outcome == OUTCOME_RUNS || outcome == OUTCOME_UNKNOWN;
    case DEPENDS_ANY:
        return ended || outcome == OUTCOME_UNKNOWN;
    case DEPENDS_OK:
        *ret_never = outcome == OUTCOME_NOT_OK || outcome == OUTCOME_UNKNOWN;
        return outcome == OUTCOME_OK;
    default:
        *ret_never = outcome == OUTCOME_OK || outcome == OUTCOME_UNKNOWN;
        return outcome == OUTCOME_NOT_OK;
    }
}

static void drop_met(const struct gates *gates, struct gate *gate)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < gate->dependency_count; i++)
        if (!is_met(gates, gate, &gate->dependencies[i], &gate->never))
            gate->dependencies[left++] = gate->dependencies[i];
    gate->dependency_count = left;
}

static bool has_its_turn(const struct gates *gates, const struct gate *gate)
{
    if (!gate->array_limit)
        return true;
    uint32_t open = map_find(&gates->open, gate->array_id);
    return open == MAP_NONE || open < gate->array_limit;
}

void gates_passed(struct gates *gates, uint64_t array_id)
{
    uint32_t open = map_find(&gates->open, array_id);
    map_put(&gates->open, array_id, open == MAP_NONE ? 1 : open + 1);
}

int64_t gates_ask(struct gates *gates, int64_t now_ns,
                  void (*passed)(void *context, job_id job, uint64_t id),
                  void (*never)(void *context, job_id job, uint64_t id), void *context)
{
    int64_t again_ns = INT64_MAX;
    for (uint32_t i = 0; i < gates->count;) {
        struct gate *gate = &gates->gates[i];
        drop_met(gates, gate);
        if (gate->never) {
            never(context, gate->job, gate->id);
            forget(gates, gate);
            continue;
        }
        if (gate->begin_ns > now_ns && gate->begin_ns < again_ns)
            again_ns = gate->begin_ns;
        if (gate->held || gate->outside || gate->begin_ns > now_ns ||
            gate->dependency_count > 0 || !has_its_turn(gates, gate)) {
            i++;
            continue;
        }
        if (gate->array_limit)
            gates_passed(gates, gate->array_id);
        passed(context, gate->job, gate->id);
        forget(gates, gate);
    }
    return again_ns;
}

static const char *const wants[] = { [DEPENDS_AFTER] = "has started",
                                     [DEPENDS_OK] = "has completed",
                                     [DEPENDS_NOT_OK] = "has failed",
                                     [DEPENDS_ANY] = "has ended" };

void gates_explain(const struct gate *gate, int64_t now_ns, struct buf *text)
{
    const char *comma = "";
    if (gate->held) {
        buf_text(text, "its owner holds it");
        comma = ", ";
    }
    if (gate->outside) {
        buf_print(text, "%sSlurm waits for %.200s", comma, gate->outside);
        comma = ", ";
    }
    if (gate->begin_ns > now_ns) {
        char left[32];
        buf_print(text, "%sit may not begin for another %s", comma,
                  units_show_time(left, sizeof left,
                                  (double)(gate->begin_ns - now_ns) * 1e-9));
        comma = ", ";
    }
    for (uint32_t i = 0; i < gate->dependency_count && i < 8; i++) {
        const struct dependency *dependency = &gate->dependencies[i];
        if (dependency->kind == DEPENDS_SINGLETON)
            buf_print(text, "%san earlier job of its name is not over", comma);
        else
            buf_print(text, "%sit waits until job %" PRIu64 " %s", comma,
                      dependency->id, wants[dependency->kind]);
        comma = ", ";
    }
    if (gate->dependency_count == 0 && gate->array_limit && !*comma)
        buf_print(text, "%u jobs of its array run at once, and that many are under way",
                  gate->array_limit);
}
