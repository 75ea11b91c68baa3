/* ground_internal.h - what the files of ground.h share. */
#pragma once

#include "support/ground.h"

/* ground_wire.c: what may go wrong with what is said */
bool ground_happens(struct ground *ground, uint32_t per_mille);
struct event ground_word(const struct ground *ground, enum event_kind kind);
void ground_say(struct ground *ground, struct ground_attempt *attempt,
                struct event *event);
void ground_say_node(struct ground *ground, node_id node, enum event_kind kind);

/* ground.c: who is where; ground_present() is the one of a job that is there, or NULL */
struct ground_attempt *ground_find_own(struct ground *ground, uint64_t id,
                                       uint32_t attempt);
struct ground_attempt *ground_present(struct ground *ground, uint64_t id);
void ground_forget(struct ground *ground, struct ground_attempt *attempt);
struct ground_truth *ground_truth_of(struct ground *ground,
                                     const struct ground_attempt *attempt);

/* ground.c: what it does */
void ground_book_steps(struct ground *ground, struct ground_attempt *attempt);
void ground_make_steps(struct ground *ground, struct ground_attempt *attempt);
void ground_begin(struct ground *ground, struct ground_attempt *attempt);
void ground_leave(struct ground *ground, struct ground_attempt *attempt,
                  enum event_kind kind, bool clean);
bool ground_is_done(const struct ground_attempt *attempt);
void ground_tell_started(struct ground *ground, struct ground_attempt *attempt);
void ground_tell_end(struct ground *ground, struct ground_attempt *attempt);
