/* scenario_internal.h - what the files of ordeal.h share. */
#pragma once

#include "support/scenario.h"

#include "engine/engine.h"
#include "metrics/ledger.h"
#include "model/outbox.h"
#include "support/random_world.h"

struct flow_policy;
struct store;

#define SECOND INT64_C(1000000000)
#define JOBS_MAX 16
#define LINES 60 /* events that are shown before a failure */
#define LINE_BYTES 200

/* What is told of one job by events that are durable. */
struct account {
    bool accepted;
    uint32_t ends;
    bool seated;
    uint32_t gpus;
    int64_t since_ns, served_ns;
    uint32_t preemptions;
};

/* An event as it was told, until it is durable. */
struct told {
    struct event event;
    struct job job;
    uint64_t beneficiary;
};

/* An entry of the ledger as a witness has it who was there all the time. */
struct witnessed {
    struct ledger_entry entry;
    bool open;
};

enum crash { CRASH_NONE, CRASH_BEFORE, CRASH_AFTER, CRASH_AMID, CRASH_IDLE };

struct scenario {
    const struct scenario_setup *setup;
    struct random_world world;
    struct rng rng, questions;
    struct arena arena, life, instant;
    struct admission admission;
    struct faulty faulty;
    struct engine engine;
    struct ledger ledger;
    struct store *store;
    char path[256];
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow;
    bool resizes, closes, closed;
    bool refused; /* a plan was */

    struct outbox inbox;
    uint32_t next; /* spec to arrive */
    uint32_t next_durable;
    int64_t now_ns;
    int64_t deed_ns; /* when people act next */
    uint32_t deeds;  /* that they will still do */
    uint32_t pace_ms;
    uint32_t crashes; /* that will still be */
    bool calm;
    uint32_t turns_calm, turns_now;

    enum crash crash; /* in this step */
    uint32_t orders;  /* until the crash, while the executor is told */
    uint32_t commits; /* in this step */
    bool tampered;    /* the defect has been put in */

    struct account accounts[JOBS_MAX + 1];
    struct told *told;
    uint32_t told_count, told_room;

    struct ledger witness;
    struct view witness_view;
    struct job witness_jobs[JOBS_MAX + 1];
    struct witnessed *entries;
    uint32_t entry_count, entry_room;

    struct scenario_counts counts;
    char lines[LINES][LINE_BYTES];
    uint64_t line_count;
};

/* Engine and policy as they are built from the store, beside those in office. */
struct twin {
    struct engine engine;
    struct ledger ledger;
    struct arena life;
};

/* ordeal.c: what is shown of a world that breaks, and how it does */
void scenario_note(struct scenario *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void scenario_broken(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
bool scenario_chance(struct scenario *s, uint32_t percent);
struct event *scenario_add_event(struct scenario *s, enum event_kind kind, job_id job);

/* An event that speaks of a job in a slot; the public id of a slot, 0: of none. */
bool scenario_is_of_job(const struct event *event);
uint64_t scenario_id_at(const struct view *view, job_id job);

/*
 * scenario_life.c: the daemon from the store.  A twin is built beside the one in office and
 * must be equal to it; what starts again must be equal to the twin, or to what it was.
 */
void scenario_open_engine(struct scenario *s, struct engine *engine,
                          struct ledger *ledger, struct arena *life, bool listens);
void scenario_make_twin(struct scenario *s, struct twin *twin);
void scenario_close_engine(struct scenario *s, struct twin *life);
void scenario_restart(struct scenario *s, const struct twin *twin);

/* scenario_people.c: what they want */
void scenario_act_as_users(struct scenario *s);
const char *scenario_draw_settings(struct scenario *s, const struct policy *policy);
const struct flow_policy *scenario_draw_flow(struct scenario *s);

/* scenario_check.c: accounts of what is durable, by somebody who never sleeps; and checks */
void scenario_account_for(struct scenario *s, const struct told *told);
void scenario_witness(struct scenario *s, const struct told *told);
void scenario_record_entry(void *context, const struct ledger_entry *entry,
                           double wait_saved_s, bool open);
void scenario_check_placed(struct scenario *s, const struct view *view,
                           const struct event *event);
void scenario_check_all(struct scenario *s);
void scenario_check_end(struct scenario *s);
