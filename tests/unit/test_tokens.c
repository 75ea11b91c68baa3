/* Tokens in the store: checked, expired, revoked, forgotten; and the names of scopes. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "daemon/scopes.h"
#include "daemon/tokens.h"
#include "store/db.h"
#include "store/store.h"
#include "support/store_file.h"

#define DAYS(n) ((int64_t)(n)*86400 * NS_PER_S)
#define START DAYS(20000)

static char folder[64], path[80];
static struct error err;
static struct store *store;
static struct tokens *tokens;

static void works(int r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-tokens-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/berth.db", folder);
    works(store_open(&store, path, &err));
    works(tokens_new(&tokens, store, &err));
    return 0;
}

static int teardown(void **state)
{
    tokens_free(tokens);
    store_close(store);
    store_file_remove(path);
    return rmdir(folder);
}

static void open_again(void)
{
    tokens_free(tokens);
    store_close(store);
    works(store_open(&store, path, &err));
    works(tokens_new(&tokens, store, &err));
}

static struct token_text create(uint32_t uid, uint32_t scope, int64_t expires_ns)
{
    struct token_text text;
    works(tokens_create(tokens, uid, scope, expires_ns, START, &text, &err));
    works(store_commit(store, &err));
    return text;
}

static const struct token *check(const struct token_text *text)
{
    return tokens_check(tokens, text, START);
}

static void a_token_has_its_user_and_scope_after_a_restart_too(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, 0);
    open_again();
    const struct token *token = check(&text);
    assert_non_null(token);
    assert_int_equal(token->row.uid, 1000);
    assert_int_equal(token->scope, SCOPE_READ);
    assert_int_equal(token->row.created_ns, START);
    assert_int_equal(token->row.used_ns, 0);
}

/* Every byte of the file, its log included. */
static bool is_in_file(const char *end, const char *text)
{
    static char bytes[1 << 20];
    char name[100];
    snprintf(name, sizeof name, "%s%s", path, end);
    FILE *file = fopen(name, "re");
    size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    return memmem(bytes, count, text, strlen(text)) != NULL;
}

static void the_secret_is_not_on_disk(void **state)
{
    struct token_text text = create(1000, SCOPE_SUBMIT, 0);
    const struct token *token = check(&text);
    assert_true(is_in_file("-wal", token->row.digest));
    assert_false(is_in_file("-wal", text.secret));
    assert_false(is_in_file("", text.secret));
}

static void a_forged_secret_is_refused(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, 0);
    struct token_text other = create(1000, SCOPE_ADMIN, 0);
    for (size_t i = 0; i < TOKEN_TEXT_PART; i++) {
        struct token_text wrong = text;
        wrong.secret[i] = wrong.secret[i] == 'A' ? 'B' : 'A';
        assert_null(check(&wrong));
    }
    other.id = text.id; /* one token's secret with another's number */
    assert_null(check(&other));
    text.id = 99;
    assert_null(check(&text));
}

static void a_token_ends_when_it_expires(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, START + DAYS(1));
    assert_non_null(tokens_check(tokens, &text, START + DAYS(1) - 1));
    assert_null(tokens_check(tokens, &text, START + DAYS(1)));
    assert_true(tokens_is_valid(tokens, text.id, START + DAYS(1) - 1));
    assert_false(tokens_is_valid(tokens, text.id, START + DAYS(1)));
}

static void a_revoked_token_is_refused_at_once_and_for_ever(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, 0);
    works(tokens_revoke(tokens, text.id, START, &err));
    assert_null(check(&text));
    assert_false(tokens_is_valid(tokens, text.id, START));
    assert_int_equal(tokens_revoke(tokens, text.id, START, &err), -EALREADY);
    assert_int_equal(tokens_revoke(tokens, 99, START, &err), -ENOENT);
    works(store_commit(store, &err));
    open_again();
    assert_null(check(&text));
}

static void what_was_not_committed_is_taken_back(void **state)
{
    struct token_text kept = create(1000, SCOPE_READ, 0), lost;
    works(tokens_revoke(tokens, kept.id, START, &err));
    works(tokens_create(tokens, 1000, SCOPE_READ, 0, START, &lost, &err));
    store_rollback(store);
    works(tokens_load(tokens, &err));
    assert_non_null(check(&kept));
    assert_null(check(&lost));
}

static void use_is_noted_and_written_now_and_then(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, 0);
    assert_true(tokens_note_use(tokens, text.id, START + NS_PER_S));
    assert_false(tokens_note_use(tokens, text.id, START + 2 * NS_PER_S));
    assert_int_equal(tokens_find(tokens, text.id)->row.used_ns, START + 2 * NS_PER_S);
    assert_true(tokens_note_use(tokens, text.id, START + 62 * NS_PER_S));
    works(store_commit(store, &err));
    open_again();
    assert_int_equal(tokens_find(tokens, text.id)->row.used_ns, START + 62 * NS_PER_S);
}

static void a_user_has_only_so_many(void **state)
{
    struct token_text text;
    for (int i = 0; i < TOKENS_PER_USER_MAX; i++)
        text = create(1000, SCOPE_READ, 0);
    assert_int_equal(tokens_create(tokens, 1000, SCOPE_READ, 0, START, &text, &err),
                     -EALREADY);
    create(1001, SCOPE_READ, 0); /* another user is not kept from it */
    works(tokens_revoke(tokens, 1, START, &err));
    create(1000, SCOPE_READ, 0);
}

static void who_makes_and_revokes_many_leaves_room_for_others(void **state)
{
    uint32_t count;
    struct token_text kept = create(1000, SCOPE_READ, 0), last = kept;
    create(1001, SCOPE_READ, START - 1); /* of another user: it stays */
    for (int i = 0; i < 3 * TOKENS_ENDED_MAX; i++) {
        works(tokens_create(tokens, 1000, SCOPE_READ, 0, START, &last, &err));
        works(tokens_revoke(tokens, last.id, START, &err));
    }
    struct token_text next = create(1000, SCOPE_READ, 0);
    assert_int_equal(next.id, last.id + 1);
    open_again();
    tokens_list(tokens, &count);
    assert_int_equal(count, 3 + TOKENS_ENDED_MAX);
    assert_non_null(check(&kept));
    assert_non_null(tokens_find(tokens, 2));
    assert_non_null(tokens_find(tokens, last.id));
    assert_null(tokens_find(tokens, 3));
}

static void when_no_more_fit_some_are_left_for_root(void **state)
{
    struct token_text text;
    uint32_t uid = 1000;
    for (int i = 0; i < TOKENS_MAX - TOKENS_PER_USER_MAX; i++)
        works(tokens_create(tokens, uid + (uint32_t)i / TOKENS_PER_USER_MAX, SCOPE_READ,
                            0, START, &text, &err));
    assert_int_equal(tokens_create(tokens, 999, SCOPE_READ, 0, START, &text, &err),
                     -EALREADY);
    works(tokens_create(tokens, 0, SCOPE_ADMIN, 0, START, &text, &err));
}

static void ended_tokens_are_forgotten_and_their_numbers_not_used_again(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, START + DAYS(1)), later;
    create(1000, SCOPE_READ, 0);
    struct token_text last = create(1000, SCOPE_READ, START + DAYS(1));
    uint32_t count;
    works(tokens_create(tokens, 1000, SCOPE_READ, 0, START + DAYS(40), &later, &err));
    works(store_commit(store, &err));
    assert_null(tokens_find(tokens, text.id));
    assert_int_equal(later.id, last.id + 1);
    open_again();
    tokens_list(tokens, &count);
    assert_int_equal(count, 3); /* the one that was newest then, too */
    assert_null(tokens_find(tokens, text.id));
}

static void a_row_that_makes_no_sense_grants_nothing(void **state)
{
    struct token_text text = create(1000, SCOPE_READ, 0);
    struct db_query *query =
        db_prepare(store_writer(store), "UPDATE token SET scope = 'session'");
    works(db_run(query, &err));
    db_finish(query);
    works(store_commit(store, &err));
    open_again();
    assert_null(check(&text));
}

static void tokens_have_four_scopes(void **state)
{
    assert_int_equal(scopes_find("flow"), SCOPE_FLOW);
    assert_int_equal(scopes_find("read"), SCOPE_READ);
    assert_int_equal(scopes_find("submit"), SCOPE_SUBMIT);
    assert_int_equal(scopes_find("admin"), SCOPE_ADMIN);
    static const char *const wrong[] = { "session", "local",    "public", "job",
                                         "none",    "",         "Read",   "reads",
                                         "re",      "flow,read" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(scopes_find(wrong[i]), 0);
    assert_string_equal(scopes_name(SCOPE_SESSION), "session");
    assert_string_equal(scopes_name(0), "none");
}

RUN_CASES(CASE(a_token_has_its_user_and_scope_after_a_restart_too),
          CASE(the_secret_is_not_on_disk), CASE(a_forged_secret_is_refused),
          CASE(a_token_ends_when_it_expires),
          CASE(a_revoked_token_is_refused_at_once_and_for_ever),
          CASE(what_was_not_committed_is_taken_back),
          CASE(use_is_noted_and_written_now_and_then), CASE(a_user_has_only_so_many),
          CASE(who_makes_and_revokes_many_leaves_room_for_others),
          CASE(when_no_more_fit_some_are_left_for_root),
          CASE(ended_tokens_are_forgotten_and_their_numbers_not_used_again),
          CASE(a_row_that_makes_no_sense_grants_nothing),
          TEST(tokens_have_four_scopes));
