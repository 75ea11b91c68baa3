/*
 * token_rows.h - the table of tokens: what each may do and until when, and a digest of its
 * secret.  The secret itself is nowhere.
 *
 * Writes belong to the next commit of the store, like everything else.
 */
#pragma once

#include <stdint.h>

struct error;
struct store;

#define TOKEN_DIGEST_CHARS 64

struct token_row {
    uint64_t id;
    uint32_t uid;
    char scope[16];
    char digest[TOKEN_DIGEST_CHARS + 1]; /* SHA-256 of the secret, hexadecimal */
    int64_t created_ns;
    int64_t expires_ns; /* 0: never   */
    int64_t used_ns;    /* 0: not yet */
    int64_t revoked_ns; /* 0: it is not */
};

/* Call 'take' with each token, by number. */
int token_rows_read(struct store *store,
                    void (*take)(void *context, const struct token_row *row),
                    void *context, struct error *err);

int token_rows_add(struct store *store, const struct token_row *row, struct error *err);

/* Write 'used_ns' and 'revoked_ns' again. */
int token_rows_update(struct store *store, const struct token_row *row,
                      struct error *err);

int token_rows_delete(struct store *store, uint64_t id, struct error *err);

/* Remove those that ended before that time.  The newest stays, so that no number is used
 * twice. */
int token_rows_prune(struct store *store, int64_t before_ns, struct error *err);
