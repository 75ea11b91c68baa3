/* ordeal_internal.h - what the files of ordeal.h share. */
#pragma once

#include "support/ordeal.h"

#include "engine/engine.h"
#include "metrics/ledger.h"
#include "model/outbox.h"
#include "support/worlds.h"

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
    uint64_t for_whom;
};

/* An entry of the ledger as a witness has it who was there all the time. */
struct witnessed {
    struct ledger_entry entry;
    bool open;
};

enum crash { CRASH_NONE, CRASH_BEFORE, CRASH_AFTER, CRASH_AMID, CRASH_IDLE };

struct ordeal {
    const struct ordeal_setup *setup;
    struct worlds world;
    struct rng rng, questions;
    struct arena arena, life, instant;
    struct intake intake;
    struct ground ground;
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

    struct ordeal_counts counts;
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
void ordeal_note(struct ordeal *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ordeal_broken(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
bool ordeal_chance(struct ordeal *o, uint32_t percent);
struct event *ordeal_add_event(struct ordeal *o, enum event_kind kind, job_id job);

/* An event that speaks of a job in a slot; the public id of a slot, 0: of none. */
bool ordeal_is_of_job(const struct event *event);
uint64_t ordeal_id_at(const struct view *view, job_id job);

/*
 * ordeal_life.c: the daemon from the store.  A twin is built beside the one in office and
 * must be equal to it; what starts again must be equal to the twin, or to what it was.
 */
void ordeal_begin_life(struct ordeal *o, struct engine *engine, struct ledger *ledger,
                       struct arena *life, bool listens);
void ordeal_make_twin(struct ordeal *o, struct twin *twin);
void ordeal_end_life(struct ordeal *o, struct twin *life);
void ordeal_start_again(struct ordeal *o, const struct twin *twin);

/* ordeal_people.c: what they want */
void ordeal_let_people_act(struct ordeal *o);
const char *ordeal_some_settings(struct ordeal *o, const struct policy *policy);
const struct flow_policy *ordeal_some_flow(struct ordeal *o);

/* ordeal_check.c: accounts of what is durable, by somebody who never sleeps; and checks */
void ordeal_account_for(struct ordeal *o, const struct told *told);
void ordeal_witness(struct ordeal *o, const struct told *told);
void ordeal_write_down(void *context, const struct ledger_entry *entry,
                       double wait_saved_s, bool open);
void ordeal_check_placed(struct ordeal *o, const struct view *view,
                         const struct event *event);
void ordeal_check_all(struct ordeal *o);
void ordeal_check_end(struct ordeal *o);
