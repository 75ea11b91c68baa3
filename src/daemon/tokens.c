/* tokens.c - credentials that were given out. */
#include "daemon/tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/scopes.h"
#include "http/crypto.h"

struct tokens {
    struct store *store;
    struct token *list; /* by number */
    uint32_t count, room;
};

static void print_digest(const unsigned char digest[CRYPTO_DIGEST_BYTES],
                         char text[TOKEN_DIGEST_CHARS + 1])
{
    for (size_t i = 0; i < CRYPTO_DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* False if it is not what print_digest() writes. */
static bool read_digest(const char *text, unsigned char digest[CRYPTO_DIGEST_BYTES])
{
    if (strlen(text) != TOKEN_DIGEST_CHARS ||
        strspn(text, "0123456789abcdef") != TOKEN_DIGEST_CHARS)
        return false;
    for (size_t i = 0; i < CRYPTO_DIGEST_BYTES; i++) {
        const char pair[3] = { text[2 * i], text[2 * i + 1], '\0' };
        digest[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return true;
}

/* ---- the table ---- */

static void add_token(struct tokens *tokens, const struct token *token)
{
    tokens->list = grow_array(tokens->list, &tokens->room, tokens->count + 1,
                              sizeof *tokens->list);
    tokens->list[tokens->count++] = *token;
}

/* A row that cannot be understood grants nothing. */
static void take_row(void *context, const struct token_row *row)
{
    struct token token = { .row = *row,
                           .scope = scopes_find(row->scope),
                           .written_ns = row->used_ns };
    if (token.scope && read_digest(row->digest, token.digest))
        add_token(context, &token);
}

int tokens_load(struct tokens *tokens, struct error *err)
{
    struct tokens read = { .store = tokens->store };
    int r = token_rows_read(tokens->store, take_row, &read, err);
    if (r < 0) {
        free(read.list);
        return r;
    }
    free(tokens->list);
    *tokens = read;
    return 0;
}

int tokens_new(struct tokens **ret_tokens, struct store *store, struct error *err)
{
    struct tokens *tokens = memory_checked(calloc(1, sizeof *tokens));
    tokens->store = store;
    int r = tokens_load(tokens, err);
    if (r < 0)
        tokens_free(tokens);
    else
        *ret_tokens = tokens;
    return r;
}

void tokens_free(struct tokens *tokens)
{
    if (!tokens)
        return;
    free(tokens->list);
    free(tokens);
}

static struct token *find_token(const struct tokens *tokens, uint64_t id)
{
    for (uint32_t i = 0; i < tokens->count; i++)
        if (tokens->list[i].row.id == id)
            return &tokens->list[i];
    return NULL;
}

const struct token *tokens_find(const struct tokens *tokens, uint64_t id)
{
    return find_token(tokens, id);
}

const struct token *tokens_list(const struct tokens *tokens, uint32_t *ret_count)
{
    *ret_count = tokens->count;
    return tokens->list;
}

/* ---- checking ---- */

static bool is_valid(const struct token *token, int64_t now_ns)
{
    return token->row.revoked_ns == 0 &&
           (token->row.expires_ns == 0 || now_ns < token->row.expires_ns);
}

bool tokens_is_valid(const struct tokens *tokens, uint64_t id, int64_t now_ns)
{
    const struct token *token = find_token(tokens, id);
    return token && is_valid(token, now_ns);
}

const struct token *tokens_check(const struct tokens *tokens,
                                 const struct token_text *text, int64_t now_ns)
{
    unsigned char digest[CRYPTO_DIGEST_BYTES], differ = 0;
    const struct token *token = find_token(tokens, text->id);
    crypto_digest(text->secret, strlen(text->secret), digest);
    for (size_t i = 0; token && i < sizeof digest; i++)
        differ |= digest[i] ^ token->digest[i];
    return token && !differ && is_valid(token, now_ns) ? token : NULL;
}

bool tokens_note_use(struct tokens *tokens, uint64_t id, int64_t now_ns)
{
    struct token *token = find_token(tokens, id);
    if (!token)
        return false;
    token->row.used_ns = now_ns;
    if (now_ns - token->written_ns < TOKENS_USED_S * NS_PER_S)
        return false;
    token->written_ns = now_ns;
    return token_rows_update(tokens->store, &token->row, NULL) == 0;
}

/* ---- changing ---- */

static bool is_outdated(const struct token_row *row, int64_t before_ns)
{
    return (row->revoked_ns > 0 && row->revoked_ns < before_ns) ||
           (row->expires_ns > 0 && row->expires_ns < before_ns);
}

/* Forget tokens that ended long ago, in the table and here, but for the newest. */
static int drop_outdated(struct tokens *tokens, int64_t now_ns, struct error *err)
{
    int64_t before_ns = now_ns - TOKENS_KEEP_S * NS_PER_S;
    int r = token_rows_prune(tokens->store, before_ns, err);
    uint32_t kept = 0;
    for (uint32_t i = 0; r == 0 && i < tokens->count; i++)
        if (i + 1 == tokens->count || !is_outdated(&tokens->list[i].row, before_ns))
            tokens->list[kept++] = tokens->list[i];
    if (r == 0)
        tokens->count = kept;
    return r;
}

/* Of a user's ended tokens the oldest go: making and revoking many fills no table. */
static int drop_surplus(struct tokens *tokens, uint32_t uid, int64_t now_ns,
                        struct error *err)
{
    uint32_t ended = 0;
    for (uint32_t i = tokens->count; i-- > 0;) {
        struct token *token = &tokens->list[i];
        if (token->row.uid != uid || is_valid(token, now_ns) ||
            ++ended <= TOKENS_ENDED_MAX)
            continue;
        int r = token_rows_delete(tokens->store, token->row.id, err);
        if (r < 0)
            return r;
        memmove(token, token + 1, (--tokens->count - i) * sizeof *token);
    }
    return 0;
}

/* Root, and berthd's own user: agents and administrators act as that one. */
static bool is_privileged(uint32_t uid)
{
    return uid == 0 || uid == geteuid();
}

static int check_room(const struct tokens *tokens, uint32_t uid, int64_t now_ns,
                      struct error *err)
{
    uint32_t valid = 0;
    for (uint32_t i = 0; i < tokens->count; i++)
        valid += tokens->list[i].row.uid == uid && is_valid(&tokens->list[i], now_ns);
    if (valid >= TOKENS_PER_USER_MAX)
        return error_set(err, -EALREADY,
                         "this user has %u tokens: revoke one before making another",
                         valid);
    if (tokens->count >= TOKENS_MAX - (is_privileged(uid) ? 0 : TOKENS_PER_USER_MAX))
        return error_set(err, -EALREADY, "there are %u tokens: no more fit",
                         tokens->count);
    return 0;
}

static int make_secret(struct token_text *text, struct error *err)
{
    unsigned char bytes[TOKEN_TEXT_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, -errno, "getrandom: %s", strerror(errno));
    token_text_encode(bytes, text->secret);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

int tokens_create(struct tokens *tokens, uint32_t uid, uint32_t scope,
                  int64_t expires_ns, int64_t now_ns, struct token_text *ret_text,
                  struct error *err)
{
    struct token_text text = { .id = tokens->count > 0
                                         ? tokens->list[tokens->count - 1].row.id + 1
                                         : 1 };
    struct token token = { .scope = scope,
                           .row = { .id = text.id,
                                    .uid = uid,
                                    .created_ns = now_ns,
                                    .expires_ns = expires_ns } };
    int r = drop_outdated(tokens, now_ns, err);
    if (r == 0)
        r = drop_surplus(tokens, uid, now_ns, err);
    if (r == 0)
        r = check_room(tokens, uid, now_ns, err);
    if (r == 0)
        r = make_secret(&text, err);
    if (r < 0)
        return r;
    snprintf(token.row.scope, sizeof token.row.scope, "%s", scopes_name(scope));
    crypto_digest(text.secret, strlen(text.secret), token.digest);
    print_digest(token.digest, token.row.digest);
    r = token_rows_add(tokens->store, &token.row, err);
    if (r < 0)
        return r;
    add_token(tokens, &token);
    *ret_text = text;
    return 0;
}

int tokens_revoke(struct tokens *tokens, uint64_t id, int64_t now_ns, struct error *err)
{
    struct token *token = find_token(tokens, id);
    if (!token)
        return error_set(err, -ENOENT, "there is no token %" PRIu64, id);
    if (token->row.revoked_ns)
        return error_set(err, -EALREADY, "token %" PRIu64 " was revoked already", id);
    struct token_row row = token->row;
    row.revoked_ns = now_ns;
    int r = token_rows_update(tokens->store, &row, err);
    if (r == 0)
        token->row = row;
    return r;
}
