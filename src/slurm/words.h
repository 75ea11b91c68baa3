/* words.h - what is said to berthd, a line of JSON each; docs/internals/slurm.md. */
#pragma once

#include <stdint.h>

#include "slurm/record.h"

struct answer;
struct arena;
struct buf;

/* Each puts one whole object into an empty buffer, without the end of the line. */
void words_hello(struct buf *line, const struct slurm_site *site, const char *driver,
                 int64_t now_s);
void words_job(struct buf *line, const struct slurm_job *job, struct arena *scratch);
void words_node(struct buf *line, const struct slurm_node *node);
void words_done(struct buf *line, int64_t seq, const struct answer *answer,
                const char *text);
void words_gone(struct buf *line, uint32_t id);
void words_text(struct buf *line, const char *key, const char *text);
void words_flag(struct buf *line, const char *key);
