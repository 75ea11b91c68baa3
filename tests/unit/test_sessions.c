/* Sessions: a pass opens once, a session lasts and is its user's. */
#include "support/cases.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/sessions.h"

#define NOW 1000000

static struct sessions sessions;
static char folder[32];

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-XXXXXX");
    assert_non_null(mkdtemp(folder));
    sessions_open(&sessions, folder, NOW);
    return 0;
}

static int teardown(void **state)
{
    unlink(sessions.path);
    return rmdir(folder);
}

static void get_pass(uint32_t uid, int64_t now_s, char *pass)
{
    assert_int_equal(sessions_make_pass(&sessions, uid, uid + 1, now_s, pass, NULL), 0);
}

/* A session of this user; its secret in 'secret'. */
static void come_in(uint32_t uid, int64_t now_s, char *secret)
{
    char pass[TOKEN_CHARS + 1];
    get_pass(uid, now_s, pass);
    const struct session *session = sessions_redeem_pass(&sessions, pass, now_s);
    assert_non_null(session);
    snprintf(secret, TOKEN_CHARS + 1, "%s", session->secret);
}

static void a_pass_opens_once_and_for_its_user(void **state)
{
    char pass[TOKEN_CHARS + 1];
    get_pass(7, NOW, pass);
    const struct session *session = sessions_redeem_pass(&sessions, pass, NOW);
    assert_non_null(session);
    assert_int_equal(session->uid, 7);
    assert_int_equal(session->gid, 8);
    assert_string_not_equal(session->secret, pass);
    assert_null(sessions_redeem_pass(&sessions, pass, NOW));
    assert_null(sessions_find(&sessions, pass, NOW)); /* it is no session itself */
}

static void a_session_holds_until_it_is_ended_or_old(void **state)
{
    char one[TOKEN_CHARS + 1], other[TOKEN_CHARS + 1];
    come_in(7, NOW, one);
    come_in(8, NOW + 1, other);
    uint64_t first = sessions_find(&sessions, one, NOW)->number;
    uint64_t second = sessions_find(&sessions, other, NOW)->number;
    assert_true(first > 0 && second != first);
    assert_true(sessions_holds(&sessions, first, NOW));
    sessions_end(&sessions, one);
    assert_false(sessions_holds(&sessions, first, NOW));
    assert_true(sessions_holds(&sessions, second, NOW + SESSION_S));
    assert_false(sessions_holds(&sessions, second, NOW + SESSION_S + 1));
    come_in(7, NOW, one); /* in the place of the first, with another number */
    assert_false(sessions_holds(&sessions, first, NOW));
    assert_false(sessions_holds(&sessions, 0, NOW));
}

static void a_wrong_or_empty_secret_opens_nothing(void **state)
{
    char pass[TOKEN_CHARS + 1];
    assert_null(sessions_redeem_pass(&sessions, "", NOW));
    assert_null(sessions_find(&sessions, "", NOW));
    get_pass(7, NOW, pass);
    pass[3] = pass[3] == '0' ? '1' : '0';
    assert_null(sessions_redeem_pass(&sessions, pass, NOW));
    pass[10] = '\0';
    assert_null(sessions_redeem_pass(&sessions, pass, NOW));
}

static void passes_and_sessions_expire(void **state)
{
    char pass[TOKEN_CHARS + 1], secret[TOKEN_CHARS + 1];
    get_pass(7, NOW, pass);
    assert_null(sessions_redeem_pass(&sessions, pass, NOW + PASS_S));
    come_in(7, NOW, secret);
    assert_non_null(sessions_find(&sessions, secret, NOW + SESSION_S - 1));
    assert_null(sessions_find(&sessions, secret, NOW + SESSION_S));
}

static void a_session_survives_a_restart_and_an_end_does_too(void **state)
{
    char secret[TOKEN_CHARS + 1], ended[TOKEN_CHARS + 1];
    come_in(7, NOW, secret);
    come_in(7, NOW, ended);
    sessions_end(&sessions, ended);
    sessions_set_port(&sessions, 4711);

    sessions_open(&sessions, folder, NOW + 10);
    assert_int_equal(sessions.port, 4711);
    assert_non_null(sessions_find(&sessions, secret, NOW + 10));
    assert_null(sessions_find(&sessions, ended, NOW + 10));
    sessions_open(&sessions, folder, NOW + SESSION_S);
    assert_false(sessions_any(&sessions));
}

static void a_session_file_that_others_can_read_is_ignored(void **state)
{
    char secret[TOKEN_CHARS + 1];
    struct stat there;
    come_in(7, NOW, secret);
    assert_int_equal(stat(sessions.path, &there), 0);
    assert_int_equal(there.st_mode & 0777, 0600);
    assert_int_equal(chmod(sessions.path, 0644), 0);
    sessions_open(&sessions, folder, NOW);
    assert_null(sessions_find(&sessions, secret, NOW));
}

static void malformed_lines_of_the_file_are_ignored(void **state)
{
    FILE *file = fopen(sessions.path, "w");
    assert_non_null(file);
    fprintf(file, "port 99999\nxyz 1 1 9999999999\n%0200d 1 1 1\n\1\2\3", 1);
    fclose(file);
    chmod(sessions.path, 0600);
    sessions_open(&sessions, folder, NOW);
    assert_int_equal(sessions.port, 0);
    assert_false(sessions_any(&sessions));
}

static void a_user_with_too_many_passes_loses_only_their_own(void **state)
{
    char other[TOKEN_CHARS + 1], first[TOKEN_CHARS + 1], last[TOKEN_CHARS + 1];
    come_in(7, NOW, other);
    come_in(8, NOW, first);
    for (int i = 1; i < 3 * SESSIONS_PER_USER_MAX; i++)
        come_in(8, NOW + i, last);
    assert_null(sessions_find(&sessions, first, NOW));
    assert_non_null(sessions_find(&sessions, last, NOW));
    assert_non_null(sessions_find(&sessions, other, NOW));
}

RUN_CASES(CASE(a_pass_opens_once_and_for_its_user),
          CASE(a_session_holds_until_it_is_ended_or_old),
          CASE(a_wrong_or_empty_secret_opens_nothing), CASE(passes_and_sessions_expire),
          CASE(a_session_survives_a_restart_and_an_end_does_too),
          CASE(a_session_file_that_others_can_read_is_ignored),
          CASE(malformed_lines_of_the_file_are_ignored),
          CASE(a_user_with_too_many_passes_loses_only_their_own));
