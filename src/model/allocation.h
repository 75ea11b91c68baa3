/* allocation.h - which job holds what on which node.  For state.c and recovery. */
#pragma once

#include "model/state.h"

/* Take what is free of the event's seats, and note which shares of them are pending. */
void allocation_reserve(struct state *state, const struct event *event);

/*
 * GPUs of a node that the event's job gets when its victims stop: theirs, and those that
 * their former partners shared.
 */
uint64_t allocation_vacated_gpus(const struct state *state, const struct event *event,
                                 node_id node);

/* Free a job's seats, less the shares that are pending for other jobs. */
void allocation_release(struct state *state, job_id job);

/* Drop the pending allocation of a job that has not started. */
void allocation_drop_pending(struct state *state, job_id job);

/* Note in the job how many accelerators a row of seats has, and of which type. */
void allocation_count_seats(struct state *state, struct job *job,
                            const struct seat_row *row);

/* Set which of a node's GPUs others use: they are not free. */
void allocation_set_foreign(struct state *state, node_id node, uint64_t gpus);
