/*
 * gate.h - "is it worth it?" in front of any policy's preemptions: the setting worth=xion.
 *
 * The policy finds room as it always does; the gate then asks worth.h about the swap that
 * came of it, and undoes it if it does not pay.  For a trial job, which somebody is
 * waiting for, it says no only where room frees itself before the victims would have
 * left: making them leave would spare it nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/param.h"
#include "model/plan.h"
#include "policy/shared/worth.h"

struct arena;
struct reasons;

#define GATE_VICTIMS_MAX 128 /* a swap of more is let through unasked */

enum gate_choice { GATE_NONE, GATE_XION };
extern const char *const gate_choices[];

/* The row for a policy's table of settings; 'field' is a uint32_t. */
#define GATE_PARAM(type, field) \
    { \
        "worth", PARAM_CHOICE, offsetof(type, field), "none", NULL, \
            "before each preemption ask whether it pays", 0, 0, gate_choices \
    }

/* A swap that was not worth it. */
struct gate_refusal {
    uint64_t newcomer, victim; /* public ids; the first of the victims */
    uint32_t victim_count;
    struct worth_price price;
};

#define GATE_REFUSALS 32 /* the newest, for whoever asks why */

struct gate {
    uint32_t choice; /* enum gate_choice; set before gate_init() */
    struct worth worth;
    struct gate_refusal refusals[GATE_REFUSALS];
    uint32_t refusal_count; /* ever */
};

void gate_init(struct gate *gate, const struct view *view, struct arena *run);
void gate_observe(struct gate *gate, const struct view *view,
                  const struct event *event);

/*
 * Since 'mark' the plan revokes others for 'newcomer' and grants it their room.  True if
 * that may stay; otherwise it is undone.  Without a choice everything passes.
 */
bool gate_pass(struct gate *gate, const struct view *view, struct plan *plan,
               size_t mark, job_id newcomer);

/* The newest swap for this job that was not worth it, with figures. */
void gate_explain(const struct gate *gate, const struct view *view, job_id job,
                  struct reasons *reasons);
