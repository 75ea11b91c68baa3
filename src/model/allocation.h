/* allocation.h - who holds what on which node: seats, promises, free room.  For state.c. */
#pragma once

#include "model/state.h"

/* Take what is free of the event's seats for its job and note what is promised. */
void allocation_reserve(struct state *state, const struct event *event);

/*
 * Accelerators of a node that will be left to the event's job by those who promise it room:
 * theirs, and those of whoever shared with them and has left already.
 */
uint64_t allocation_vacated_gpus(const struct state *state, const struct event *event,
                                 node_id node);

/* A job leaves its seats: less what it promises there, they become free. */
void allocation_release(struct state *state, job_id job);

/* A job gives up seats it was promised and has not taken. */
void allocation_drop_pending(struct state *state, job_id job);

/* Note in the job how many accelerators a row of seats has, and of which type. */
void allocation_count_seats(struct state *state, struct job *job,
                            const struct seat_row *row);

/* Which of a node's accelerators are in use by others: they are not free. */
void allocation_set_foreign(struct state *state, node_id node, uint64_t gpus);
