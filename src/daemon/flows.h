/*
 * flows.h - which packets go first: the flow policy, what hosts count of each job's traffic,
 * and what agents on the hosts are told.
 */
#pragma once

#include "model/job.h"

struct caller;
struct engine;
struct error;
struct flow_policy;
struct flows;
struct prometheus;
struct scheduler;

#define FLOWS_SETTINGS_MAX 1024

struct flows *flows_new(struct scheduler *scheduler);

/* After http_close(), which ends the streams to agents.  Memory goes when the loop has run. */
void flows_free(struct flows *flows);

/* The policy of this start, NAME[,setting=value…]; NULL: that of the last one, or none. */
int flows_choose_policy(struct flows *flows, const char *said, struct error *err);

/* The policy and its settings, or NULL for none. */
int flows_policy(const struct flows *flows, const struct flow_policy **ret_policy,
                 char settings[FLOWS_SETTINGS_MAX], struct error *err);
const char *flows_policy_text(const struct flows *flows);

/* For administrators: switch to another flow policy; and check its name and settings only. */
int flows_set_policy(struct flows *flows, const struct caller *caller, const char *text,
                     struct error *err);
int flows_check_policy(const char *text, struct error *err);

/* Observe a new engine: counts begin again. */
void flows_observe(struct flows *flows, struct engine *engine);

/* The code point that a job's packets are to have; -1: none. */
int flows_mark(const struct flows *flows, job_id job);

void flows_write_metrics(const struct flows *flows, struct prometheus *out);
