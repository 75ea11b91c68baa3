/* books.h - who holds what on which node: seats, promises, free room.  For state.c. */
#pragma once

#include "model/state.h"

/* Take what is free of the event's seats for its job and note what is promised. */
void books_reserve(struct state *state, const struct event *event);

/*
 * Accelerators of a node that will be left to the event's job by those who promise it room:
 * theirs, and those of whoever shared with them and has left already.
 */
uint64_t books_vacated(const struct state *state, const struct event *event,
                       node_id node);

/* A job leaves its seats: less what it promises there, they become free. */
void books_vacate(struct state *state, job_id job);

/* A job gives up seats it was promised and has not taken. */
void books_decline(struct state *state, job_id job);

/* Note in the job how many accelerators a row of seats has, and of which type. */
void books_count_seats(struct state *state, struct job *job,
                       const struct seat_row *row);

/* Which of a node's accelerators are in use by others: they are not free. */
void books_set_foreign(struct state *state, node_id node, uint64_t gpus);
