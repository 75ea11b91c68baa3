/* The job's side of the socket: what it sends and receives, and what cannot harm it. */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "berth/client.h"
#include "client/protocol.h"

/* --- time and memory are controlled by the test ----------------------------------- */

static int64_t clock_ms; /* since the test began; moved by hand */
static int allocations_left = -1;

int __wrap_clock_gettime(clockid_t which, struct timespec *now);
int __wrap_clock_gettime(clockid_t which, struct timespec *now)
{
    *now = (struct timespec){ .tv_sec = 1000 + clock_ms / 1000,
                              .tv_nsec = clock_ms % 1000 * 1000000 };
    return 0;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    if (allocations_left == 0)
        return NULL;
    if (allocations_left > 0)
        allocations_left--;
    return __real_calloc(count, size);
}

/* As printf does in some locales, which few machines have. */
static const char *decimal_point = ".";

int __wrap_snprintf(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4), nonnull(1, 3)));
int __wrap_snprintf(char *text, size_t room, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int count = vsnprintf(text, room, format, values);
    va_end(values);
    char *point = strcmp(format, "%.9g") == 0 ? strchr(text, '.') : NULL;
    size_t length = strlen(decimal_point);
    if (point && (size_t)count + length < room) {
        memmove(point + length, point + 1, strlen(point));
        memcpy(point, decimal_point, length);
    }
    return count;
}

/* --- a small berth-run ------------------------------------------------------------ */

struct peer {
    char folder[32], path[64], file[64];
    int door, line; /* the listening socket, and the newest connection */
    char said[4096];
};

static void open_door(struct peer *peer)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", peer->path);
    peer->door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(peer->door, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(peer->door, 8), 0);
}

static void close_door(struct peer *peer)
{
    close(peer->door);
    peer->door = -1;
    unlink(peer->path);
}

static bool takes_call(struct peer *peer)
{
    int line = accept4(peer->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (line < 0)
        return false;
    if (peer->line >= 0)
        close(peer->line);
    peer->line = line;
    return true;
}

/* All that was received since the last call; "": nothing.  NULL: disconnected. */
static const char *heard(struct peer *peer)
{
    size_t count = 0;
    ssize_t more;
    while ((more = recv(peer->line, peer->said + count, sizeof(peer->said) - 1 - count,
                        MSG_DONTWAIT)) > 0)
        count += (size_t)more;
    peer->said[count] = '\0';
    return more == 0 && count == 0 ? NULL : peer->said;
}

static void says(struct peer *peer, const char *text)
{
    ssize_t count = (ssize_t)strlen(text);
    assert_int_equal(send(peer->line, text, strlen(text), MSG_NOSIGNAL), count);
}

static struct berth_client *connected(struct peer *peer)
{
    struct berth_client *client = berth_client_new();
    assert_non_null(client);
    assert_true(takes_call(peer));
    assert_string_equal(heard(peer), "hello 1\n");
    return client;
}

/* putenv() keeps no copies, so that none are left over at the end. */
static char peer_at[400], file_at[400];

static void tell(char *room, size_t size, const char *name, const char *value)
{
    snprintf(room, size, "%s=%s", name, value);
    putenv(room);
}

static int setup(void **state)
{
    static struct peer peer;
    peer = (struct peer){ .folder = "/tmp/berth-client-XXXXXX", .line = -1 };
    assert_non_null(mkdtemp(peer.folder));
    snprintf(peer.path, sizeof(peer.path), "%s/job.sock", peer.folder);
    snprintf(peer.file, sizeof(peer.file), "%s/preempt", peer.folder);
    tell(peer_at, sizeof(peer_at), "BERTH_SOCKET", peer.path);
    tell(file_at, sizeof(file_at), "BERTH_PREEMPT_FILE", peer.file);
    clock_ms = 0;
    allocations_left = -1;
    decimal_point = ".";
    open_door(&peer);
    *state = &peer;
    return 0;
}

static int teardown(void **state)
{
    struct peer *peer = *state;
    close_door(peer);
    if (peer->line >= 0)
        close(peer->line);
    unlink(peer->file);
    rmdir(peer->folder);
    signal(SIGTERM, SIG_DFL);
    return 0;
}

/* --- what it sends ---------------------------------------------------------------- */

static void a_report_says_step_and_loss(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);

    assert_int_equal(berth_client_report(client, 120, 0.693), 0);
    assert_string_equal(heard(peer), "report 120 0.693\n");
    clock_ms += 1000;
    berth_client_step(client, UINT64_MAX);
    assert_string_equal(heard(peer), "report 18446744073709551615 -\n");
    berth_client_total(client, 10000);
    assert_string_equal(heard(peer), "total 10000\n");
    berth_client_total(client, 0); /* that is, unknown */
    berth_client_free(client);
    assert_null(heard(peer));
}

/* Ten a second at first, and one when the job has reported for 20 seconds. */
static void the_newest_report_is_sent_now_and_then(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);

    for (uint64_t step = 1; step <= 250; step++) {
        berth_client_report(client, step, 1.5);
        clock_ms++;
    }
    assert_string_equal(heard(peer), "report 1 1.5\nreport 101 1.5\nreport 201 1.5\n");
    clock_ms += 30000;
    berth_client_report(client, 251, 1.5);
    assert_string_equal(heard(peer), "report 251 1.5\n");
    for (uint64_t step = 252; step <= 3000; step++) {
        clock_ms++;
        berth_client_report(client, step, 1.5);
    }
    assert_string_equal(heard(peer), "report 1251 1.5\nreport 2251 1.5\n");
    berth_client_free(client);
    assert_string_equal(heard(peer), "report 3000 1.5\n");
}

static void asking_sends_the_report_that_is_due(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    berth_client_report(client, 1, 1);
    berth_client_report(client, 2, 1);
    assert_string_equal(heard(peer), "report 1 1\n");

    clock_ms += 1000;
    assert_false(berth_client_must_stop(client));
    assert_string_equal(heard(peer), "report 2 1\n");
    berth_client_free(client);
}

static void a_checkpoint_is_sent_at_once_with_the_step_before_it(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    berth_client_report(client, 1, 1);
    berth_client_report(client, 500, 0.25);
    berth_client_saved(client, 500);
    assert_string_equal(heard(peer), "report 1 1\nreport 500 0.25\nsaved 500\n");
    berth_client_free(client);
    assert_null(heard(peer));
}

static void a_loss_that_is_no_number_is_refused(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    assert_int_equal(berth_client_report(client, 1, (double)NAN), -EINVAL);
    assert_int_equal(berth_client_report(client, 1, (double)INFINITY), -EINVAL);
    assert_int_equal(berth_client_report(NULL, 1, (double)NAN), -EINVAL);
    berth_client_free(client);
    assert_null(heard(peer));
}

static void numbers_have_a_point_in_every_language(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    decimal_point = ",";
    berth_client_report(client, 1, -1.25e-30);
    assert_string_equal(heard(peer), "report 1 -1.25e-30\n");
    clock_ms += 1000;
    decimal_point = "\xd9\xab"; /* of two bytes, as in Pashto */
    berth_client_report(client, 2, 0.5);
    assert_string_equal(heard(peer), "report 2 0.5\n");
    berth_client_free(client);
}

/* --- what it receives ------------------------------------------------------------- */

static void stop_is_received_and_stays(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    assert_false(berth_client_must_stop(client));
    berth_client_report(client, 1, 1);
    berth_client_report(client, 2, 0.5);

    says(peer, "stop 60\n");
    assert_true(berth_client_must_stop(client));
    assert_string_equal(heard(peer),
                        "report 1 1\nreport 2 0.5\n"); /* nothing is held */
    close(peer->line);
    peer->line = -1;
    clock_ms += 5000;
    assert_true(berth_client_must_stop(client));
    berth_client_free(client);
}

static void words_in_pieces_and_unknown_words_are_fine(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    says(peer, "welcome to 2\nstopped\nsto");
    assert_false(berth_client_must_stop(client));
    says(peer, "p 6");
    assert_false(berth_client_must_stop(client));
    says(peer, "0\nmore");
    assert_true(berth_client_must_stop(client));
    berth_client_free(client);
}

static void the_file_tells_where_the_socket_does_not(void **state)
{
    struct peer *peer = *state;
    close_door(peer);
    struct berth_client *client = berth_client_new();
    assert_false(berth_client_must_stop(client));
    close(open(peer->file, O_CREAT | O_WRONLY, 0600));
    assert_false(berth_client_must_stop(client)); /* it checked just now */
    clock_ms += 100;
    assert_true(berth_client_must_stop(client));
    berth_client_free(client);
}

static struct berth_client *kept; /* in a child that may end with it */

/* In a process of its own: the library catches the signal once per process. */
static int in_a_child(int (*part)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(part());
    waitpid(child, &status, 0);
    return status;
}

static int hears_the_signal(void)
{
    kept = berth_client_new();
    bool before = berth_client_must_stop(kept);
    berth_client_report(kept, 1, 1);
    berth_client_report(kept, 2, 1);
    raise(SIGTERM);
    bool after = berth_client_must_stop(kept);
    return !before && after ? 0 : 1; /* it ends without another message */
}

static void the_warning_signal_counts_as_a_stop(void **state)
{
    struct peer *peer = *state;
    assert_int_equal(in_a_child(hears_the_signal), 0);
    assert_true(takes_call(peer));
    assert_string_equal(heard(peer), "hello 1\nreport 1 1\nreport 2 1\n");
}

static void ignore(int number)
{
}

static int keeps_its_handler(void)
{
    struct sigaction now;
    signal(SIGTERM, ignore);
    kept = berth_client_new();
    berth_client_must_stop(kept);
    sigaction(SIGTERM, NULL, &now);
    berth_client_free(kept);
    return now.sa_handler == ignore ? 0 : 1;
}

static void a_handler_of_the_program_stays(void **state)
{
    assert_int_equal(in_a_child(keeps_its_handler), 0);
}

static int is_told_to_end(void)
{
    raise(SIGTERM);
    return 1;
}

static int has_a_worker_that_ends(void)
{
    kept = berth_client_new();
    berth_client_must_stop(kept);
    int status = in_a_child(is_told_to_end);
    berth_client_free(kept);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 1;
}

static void a_forked_worker_ends_by_the_signal_as_usual(void **state)
{
    assert_int_equal(in_a_child(has_a_worker_that_ends), 0);
}

static int is_warned(void)
{
    raise(SIGTERM);
    return 0;
}

static int is_warned_and_then_told_to_end(void)
{
    raise(SIGTERM);
    raise(SIGTERM);
    return 1;
}

static int has_a_worker_that_is_warned(void)
{
    kept = berth_client_new();
    berth_client_must_stop(kept);
    close(open(getenv("BERTH_PREEMPT_FILE"), O_CREAT | O_WRONLY, 0600));
    int warned = in_a_child(is_warned),
        told = in_a_child(is_warned_and_then_told_to_end);
    berth_client_free(kept);
    return warned == 0 && WIFSIGNALED(told) && WTERMSIG(told) == SIGTERM ? 0 : 1;
}

static void a_forked_worker_outlives_the_warning(void **state)
{
    assert_int_equal(in_a_child(has_a_worker_that_is_warned), 0);
}

/* --- what cannot harm it ---------------------------------------------------------- */

static void without_berth_every_call_returns(void **state)
{
    unsetenv("BERTH_SOCKET");
    unsetenv("BERTH_PREEMPT_FILE");
    struct berth_client *client = berth_client_new();
    assert_non_null(client);
    assert_int_equal(berth_client_report(client, 1, 2), 0);
    berth_client_step(client, 2);
    berth_client_total(client, 3);
    berth_client_saved(client, 2);
    assert_false(berth_client_must_stop(client));
    berth_client_free(client);

    struct sigaction now;
    sigaction(SIGTERM, NULL, &now);
    assert_true(now.sa_handler == SIG_DFL);
}

static void the_null_handle_does_nothing(void **state)
{
    assert_int_equal(berth_client_report(NULL, 1, 2), 0);
    berth_client_step(NULL, 2);
    berth_client_total(NULL, 3);
    berth_client_saved(NULL, 2);
    assert_false(berth_client_must_stop(NULL));
    berth_client_free(NULL);
}

/* All that a job does, with one more allocation granted each time, until all are. */
static void every_allocation_may_fail(void **state)
{
    struct berth_client *client = NULL;
    int granted = 0;
    for (; !client; granted++) {
        assert_true(granted < 100);
        allocations_left = granted;
        client = berth_client_new();
        allocations_left = 0; /* and none later */
        berth_client_total(client, 10);
        berth_client_report(client, 1, 1);
        berth_client_saved(client, 1);
        assert_false(berth_client_must_stop(client));
    }
    assert_int_equal(granted, 2); /* it allocates once */
    berth_client_free(client);
}

static void an_impossible_path_means_no_scheduler(void **state)
{
    char path[300];
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    tell(peer_at, sizeof(peer_at), "BERTH_SOCKET", path);
    struct berth_client *client = berth_client_new();
    assert_int_equal(berth_client_report(client, 1, 1), 0);
    assert_false(berth_client_must_stop(client));
    berth_client_free(client);
}

static void errno_is_left_alone(void **state)
{
    struct peer *peer = *state;
    close_door(peer);
    errno = EDOM;
    struct berth_client *client = berth_client_new();
    clock_ms += 1000;
    berth_client_report(client, 1, 1);
    clock_ms += 1000;
    berth_client_must_stop(client);
    berth_client_free(client);
    assert_int_equal(errno, EDOM);
}

static void a_peer_that_comes_back_is_sent_the_current_state(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    berth_client_total(client, 10);
    berth_client_report(client, 3, 0.5);
    berth_client_saved(client, 2);
    heard(peer);
    close(peer->line);
    peer->line = -1;

    clock_ms += 1500;
    berth_client_step(client, 4); /* notices */
    assert_false(takes_call(peer));
    berth_client_step(client, 5);
    assert_true(takes_call(peer));
    clock_ms += 1000;
    berth_client_must_stop(client);
    assert_string_equal(heard(peer), "hello 1\ntotal 10\nsaved 2\nreport 5 -\n");
    berth_client_free(client);
}

static void a_peer_that_is_away_is_tried_once_per_second(void **state)
{
    struct peer *peer = *state;
    close_door(peer);
    struct berth_client *client = berth_client_new(); /* the first try */
    open_door(peer);
    for (int i = 0; i < 999; i++, clock_ms++)
        berth_client_report(client, 1, 1);
    assert_false(takes_call(peer));
    clock_ms++;
    berth_client_report(client, 2, 1);
    assert_true(takes_call(peer));
    assert_string_equal(heard(peer), "hello 1\nreport 2 1\n");
    berth_client_free(client);
}

static void a_peer_that_hangs_up_at_once_is_not_called_in_a_loop(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = berth_client_new();
    int calls = 0;
    for (int i = 0; i < 3000; i++, clock_ms++) {
        calls += takes_call(peer);
        if (peer->line >= 0)
            close(peer->line);
        peer->line = -1;
        berth_client_report(client, (uint64_t)i, 1);
        assert_false(berth_client_must_stop(client));
    }
    assert_in_range(calls, 2, 4);
    berth_client_free(client);
}

static void nonsense_ends_the_connection_and_nothing_else(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    char rubbish[3 * PROTOCOL_LINE_MAX];
    memset(rubbish, 's', sizeof(rubbish));
    rubbish[7] = '\0';
    assert_int_equal(send(peer->line, rubbish, sizeof(rubbish), 0), sizeof(rubbish));
    for (int i = 0; i < 3; i++)
        assert_false(berth_client_must_stop(client));
    char byte;
    assert_true(recv(peer->line, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN);
    clock_ms += 1000;
    assert_false(berth_client_must_stop(client));
    assert_true(takes_call(peer));
    assert_string_equal(heard(peer), "hello 1\n");
    berth_client_free(client);
}

static void a_line_of_the_greatest_length_is_a_line(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    char line[PROTOCOL_LINE_MAX + 1];
    memset(line, 'x', sizeof(line));
    line[PROTOCOL_LINE_MAX - 1] = '\n';
    line[PROTOCOL_LINE_MAX] = '\0';
    says(peer, line);
    says(peer, "stop 1\n");
    berth_client_must_stop(client);
    assert_true(berth_client_must_stop(client));
    berth_client_free(client);
}

/* It reads nothing for hours; then whole lines arrive, and the newest is among them. */
static void a_peer_that_does_not_read_delays_no_call(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    for (uint64_t step = 1; step <= 20000; step++, clock_ms += 1000) {
        berth_client_report(client, step, 0.123456789);
        berth_client_saved(client, step);
    }
    size_t lines = 0;
    for (int i = 0; i < 100000; i++) { /* drain while the client goes on sending */
        const char *text = heard(peer);
        assert_non_null(text);
        if (!text[0])
            break;
        for (const char *c = text; *c; c++)
            lines += *c == '\n';
    }
    assert_true(lines > 10 && lines < 40000); /* some had no room */
    clock_ms += 1000;
    berth_client_report(client, 20001, 1);
    clock_ms += 1000;
    berth_client_report(client, 20002, 1);
    const char *text = heard(peer);
    assert_non_null(strstr(text, "report 20002 1\n"));
    berth_client_free(client);
}

/* Its backlog is full: connecting would wait for an accept. */
static void a_peer_that_does_not_accept_delays_no_call(void **state)
{
    struct peer *peer = *state;
    int callers[32], count = 0, r = 0;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", peer->path);
    while (count < 32 && r == 0) {
        callers[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        r = connect(callers[count++], (struct sockaddr *)&address, sizeof(address));
    }
    assert_int_equal(r, -1);
    assert_int_equal(errno, EAGAIN);

    alarm(20); /* ends the test if it waits */
    struct berth_client *client = berth_client_new();
    berth_client_report(client, 1, 1);
    assert_false(berth_client_must_stop(client));
    alarm(0);
    while (takes_call(peer))
        ;
    clock_ms += 1000;
    berth_client_report(client, 2, 1);
    assert_true(takes_call(peer));
    assert_string_equal(heard(peer), "hello 1\nreport 2 1\n");
    berth_client_free(client);
    while (count > 0)
        close(callers[--count]);
}

static void a_dead_peer_raises_no_signal(void **state)
{
    struct peer *peer = *state;
    signal(SIGPIPE, SIG_DFL);
    struct berth_client *client = connected(peer);
    close(peer->line);
    peer->line = -1;
    for (uint64_t step = 0; step < 5; step++) {
        berth_client_saved(client, step);
        berth_client_report(client, step, 1);
    }
    berth_client_free(client);
}

/* --- forks --------------------------------------------------------------------- */

static void a_forked_child_does_not_speak_for_its_parent(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    berth_client_report(client, 1, 1);
    berth_client_report(client, 2, 1); /* held back: not for the child to send */
    assert_string_equal(heard(peer), "report 1 1\n");

    int status;
    pid_t child = fork();
    if (child == 0) {
        berth_client_free(client);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(heard(peer), "");
    assert_false(takes_call(peer));

    says(peer, "stop 1\n"); /* the parent's connection still works */
    assert_true(berth_client_must_stop(client));
    berth_client_free(client);
}

static void a_forked_child_has_its_own_connection(void **state)
{
    struct peer *peer = *state;
    struct berth_client *client = connected(peer);
    berth_client_report(client, 1, 1);
    heard(peer);

    int parents = dup(peer->line), status;
    pid_t child = fork();
    if (child == 0) {
        berth_client_report(client, 7, 1);
        berth_client_free(client);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(takes_call(peer));
    assert_string_equal(heard(peer), "hello 1\nreport 7 1\n");
    char byte;
    assert_int_equal(recv(parents, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN); /* nothing was sent, no peer disconnected */
    close(parents);
    berth_client_free(client);
}

RUN_CASES(
    CASE(a_report_says_step_and_loss), CASE(the_newest_report_is_sent_now_and_then),
    CASE(asking_sends_the_report_that_is_due),
    CASE(a_checkpoint_is_sent_at_once_with_the_step_before_it),
    CASE(a_loss_that_is_no_number_is_refused),
    CASE(numbers_have_a_point_in_every_language), CASE(a_handler_of_the_program_stays),
    CASE(a_forked_worker_ends_by_the_signal_as_usual),
    CASE(a_forked_worker_outlives_the_warning), CASE(without_berth_every_call_returns),
    CASE(stop_is_received_and_stays), CASE(words_in_pieces_and_unknown_words_are_fine),
    CASE(the_file_tells_where_the_socket_does_not), CASE(the_null_handle_does_nothing),
    CASE(every_allocation_may_fail), CASE(an_impossible_path_means_no_scheduler),
    CASE(errno_is_left_alone), CASE(a_peer_that_comes_back_is_sent_the_current_state),
    CASE(a_peer_that_is_away_is_tried_once_per_second),
    CASE(a_peer_that_hangs_up_at_once_is_not_called_in_a_loop),
    CASE(nonsense_ends_the_connection_and_nothing_else),
    CASE(a_line_of_the_greatest_length_is_a_line),
    CASE(a_peer_that_does_not_read_delays_no_call),
    CASE(a_peer_that_does_not_accept_delays_no_call),
    CASE(a_dead_peer_raises_no_signal),
    CASE(a_forked_child_does_not_speak_for_its_parent),
    CASE(a_forked_child_has_its_own_connection),
    CASE(the_warning_signal_counts_as_a_stop));
