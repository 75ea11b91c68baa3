/*
 * why.h - what holds a job back.
 *
 * A waiting job waits for leave (its owner's, a time, other jobs), for room, or for its
 * turn; each is looked up in the books at the moment it is asked for, and nothing is kept
 * for it.
 */
#pragma once

#include <stdint.h>

#include "model/job.h"

struct buf;
struct daemon_facts;
struct words_job;

/* The first reason, in a few words: cheap, for lists. */
void why_reason(const struct daemon_facts *facts, job_id job, struct buf *text);

/* All of them, who is ahead, what would help: a Why of docs/api/openapi.yaml. */
void why_explain(const struct daemon_facts *facts, job_id job, struct buf *json);

/* The same of a job that has ended. */
void why_ended(const struct words_job *job, struct buf *json);
