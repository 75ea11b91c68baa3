/* bridge_messages.h - the messages to berthd, a line of JSON each; docs/internals/slurm.md. */
#pragma once

#include <stdint.h>

#include "slurm/slurm_record.h"

struct verb_result;
struct arena;
struct buf;

/* Each writes one whole object into an empty buffer, without the line end. */
void bridge_message_hello(struct buf *line, const struct slurm_site *site,
                          const char *driver, int64_t now_s);
void bridge_message_job(struct buf *line, const struct slurm_job *job,
                        struct arena *scratch);
void bridge_message_node(struct buf *line, const struct slurm_node *node);
void bridge_message_done(struct buf *line, int64_t seq,
                         const struct verb_result *result, const char *text);
void bridge_message_gone(struct buf *line, uint32_t id);
void bridge_message_text(struct buf *line, const char *key, const char *text);
void bridge_message_flag(struct buf *line, const char *key);
