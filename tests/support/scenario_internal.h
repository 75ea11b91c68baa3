/* scenario_internal.h - structs and functions shared by the files of scenario.h. */
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
#define LINES 60 /* events that are printed before a failure */
#define LINE_BYTES 200

/* An account of one job, from durable events. */
struct job_account {
    bool accepted;
    uint32_t ends;
    bool seated;
    uint32_t gpus;
    int64_t since_ns, served_ns;
    uint32_t preemptions;
};

/* An event of the engine that is not durable yet. */
struct observed_event {
    struct event event;
    struct job job;
    uint64_t beneficiary;
};

/* An entry of the witness: a ledger that is never restarted. */
struct witnessed_entry {
    struct ledger_entry entry;
    bool open;
};

enum crash { CRASH_NONE, CRASH_BEFORE, CRASH_AFTER, CRASH_AMID, CRASH_IDLE };

struct scenario {
    const struct scenario_setup *setup;
    struct random_world world;
    struct rng rng, questions;
    struct arena arena, engine_arena, instant;
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
    bool refused; /* a plan was refused */

    struct outbox inbox;
    uint32_t next; /* spec to be submitted */
    uint32_t next_durable;
    int64_t now_ns;
    int64_t action_ns; /* of the next action of users */
    uint32_t actions_left;
    uint32_t pace_ms;
    uint32_t crashes; /* that are left */
    bool quiet;
    uint32_t turns_quiet, turns_now;

    enum crash crash; /* in this step */
    uint32_t orders;  /* until a crash while orders are given */
    uint32_t commits; /* in this step */
    bool tampered;    /* the defect has been made */

    struct job_account accounts[JOBS_MAX + 1];
    struct observed_event *observed;
    uint32_t observed_count, observed_room;

    struct ledger witness;
    struct view witness_view;
    struct job witness_jobs[JOBS_MAX + 1];
    struct witnessed_entry *entries;
    uint32_t entry_count, entry_room;

    struct scenario_counts counts;
    char lines[LINES][LINE_BYTES];
    uint64_t line_count;
};

/* An engine recovered from the store, beside the current one. */
struct scenario_twin {
    struct engine engine;
    struct ledger ledger;
    struct arena engine_arena;
};

/* scenario.c: the log of the last events, and how a scenario fails */
void scenario_log(struct scenario *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void scenario_broken(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
bool scenario_draw(struct scenario *s, uint32_t percent);
struct event *scenario_add_event(struct scenario *s, enum event_kind kind, job_id job);

/* Whether an event is about a job in a slot; the public id of a slot, or 0. */
bool scenario_is_of_job(const struct event *event);
uint64_t scenario_id_at(const struct view *view, job_id job);

/*
 * scenario_restart.c: the engine, and its recovery from the store.  A twin is recovered beside
 * the current engine and must be equal to it; after a crash the new engine must be equal to
 * the twin, or to the old engine.
 */
void scenario_open_engine(struct scenario *s, struct engine *engine,
                          struct ledger *ledger, struct arena *engine_arena,
                          bool listens);
void scenario_make_twin(struct scenario *s, struct scenario_twin *twin);
void scenario_close_engine(struct scenario *s, struct scenario_twin *closed);
void scenario_restart(struct scenario *s, const struct scenario_twin *twin);

/* scenario_users.c: actions of users and administrators */
void scenario_act_as_users(struct scenario *s);
const char *scenario_draw_settings(struct scenario *s, const struct policy *policy);
const struct flow_policy *scenario_draw_flow(struct scenario *s);

/* scenario_check.c: accounts of durable events, and checks */
void scenario_account_for(struct scenario *s, const struct observed_event *observed);
void scenario_witness(struct scenario *s, const struct observed_event *observed);
void scenario_record_entry(void *context, const struct ledger_entry *entry,
                           double wait_saved_s, bool open);
void scenario_check_placed(struct scenario *s, const struct view *view,
                           const struct event *event);
void scenario_check_all(struct scenario *s);
void scenario_check_end(struct scenario *s);
