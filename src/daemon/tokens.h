/*
 * tokens.h - credentials that were given out: each with a user, a scope and an end.
 *
 * The store has a row per token with a digest of its secret; all of them are kept in memory,
 * so that checking one costs a digest and no query.  What is changed here holds at once, and
 * is durable with the next commit; where that fails, tokens_load() takes it back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/token_text.h"
#include "store/token_rows.h"

struct error;
struct store;
struct tokens;

#define TOKENS_MAX 4096            /* TOKENS_PER_USER_MAX of them are kept for root */
#define TOKENS_PER_USER_MAX 64     /* that are valid */
#define TOKENS_ENDED_MAX 64        /* of a user that stay listed, ... */
#define TOKENS_KEEP_S (30 * 86400) /* ... for so long                 */
#define TOKENS_USED_S 60           /* 'used' is written no more often */

struct token {
    struct token_row row;
    uint32_t scope; /* SCOPE_FLOW … SCOPE_ADMIN */
    unsigned char digest[TOKEN_TEXT_BYTES];
    int64_t written_ns; /* 'used' on disk */
};

/* Reads the table. */
int tokens_new(struct tokens **ret_tokens, struct store *store, struct error *err);
void tokens_free(struct tokens *tokens);

/* Read the table again: what was not committed never happened. */
int tokens_load(struct tokens *tokens, struct error *err);

/* A new token; its secret is told this once.  'expires_ns' 0: it does not expire. */
int tokens_create(struct tokens *tokens, uint32_t uid, uint32_t scope,
                  int64_t expires_ns, int64_t now_ns, struct token_text *ret_text,
                  struct error *err);

/*
 * The token with this secret; NULL: there is none, it was revoked, or it has expired.  Takes
 * the same time however much of a secret is right.
 */
const struct token *tokens_check(const struct tokens *tokens,
                                 const struct token_text *text, int64_t now_ns);

/* Note that it was used.  True if that was written, so that a commit is due. */
bool tokens_note_use(struct tokens *tokens, uint64_t id, int64_t now_ns);

/* Is it neither revoked nor expired? */
bool tokens_is_valid(const struct tokens *tokens, uint64_t id, int64_t now_ns);

/* -ENOENT: there is none; -EALREADY: it was revoked before. */
int tokens_revoke(struct tokens *tokens, uint64_t id, int64_t now_ns,
                  struct error *err);

/* By number; NULL: there is none. */
const struct token *tokens_find(const struct tokens *tokens, uint64_t id);

/* All of them, oldest first, those that have ended included. */
const struct token *tokens_list(const struct tokens *tokens, uint32_t *ret_count);
