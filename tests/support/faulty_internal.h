/* faulty_internal.h - functions shared by the files of faulty.h. */
#pragma once

#include "support/faulty.h"

/* faulty_wire.c: messages and their faults; faulty_draw(): whether a fault happens */
bool faulty_draw(struct faulty *faulty, uint32_t per_mille);
struct event faulty_new_event(const struct faulty *faulty, enum event_kind kind);
void faulty_send(struct faulty *faulty, struct faulty_attempt *attempt,
                 struct event *event);
void faulty_report_node(struct faulty *faulty, node_id node, enum event_kind kind);

/* faulty.c: finding attempts; faulty_find_present(): the running one of a job, or NULL */
struct faulty_attempt *faulty_find_attempt(struct faulty *faulty, uint64_t id,
                                           uint32_t attempt);
struct faulty_attempt *faulty_find_present(struct faulty *faulty, uint64_t id);
void faulty_remove(struct faulty *faulty, struct faulty_attempt *attempt);
struct faulty_truth *faulty_truth_of(struct faulty *faulty,
                                     const struct faulty_attempt *attempt);

/* faulty.c: changes of an attempt */
void faulty_count_steps(struct faulty *faulty, struct faulty_attempt *attempt);
void faulty_run_steps(struct faulty *faulty, struct faulty_attempt *attempt);
void faulty_start_attempt(struct faulty *faulty, struct faulty_attempt *attempt);
void faulty_end_attempt(struct faulty *faulty, struct faulty_attempt *attempt,
                        enum event_kind kind, bool clean);
bool faulty_is_done(const struct faulty_attempt *attempt);
void faulty_send_started(struct faulty *faulty, struct faulty_attempt *attempt);
void faulty_send_end(struct faulty *faulty, struct faulty_attempt *attempt);
