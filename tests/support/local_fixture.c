/* local_fixture.c - real processes in a test. */
#include "support/local_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "host/launcher_client.h"

#define SERVICE_ID 64999 /* of no user: what berthd would run as */
#define LATE_MS 60000    /* far more than anything takes, also under valgrind */

static int64_t clock_ns(void *context)
{
    return clock_now_ns();
}

static int find_launch(void *context, uint64_t id, const struct launch **ret,
                       struct error *err)
{
    struct local_fixture *b = context;
    if (id == 0 || id > b->job_count)
        return error_set(err, -ENOENT, "no job %" PRIu64, id);
    *ret = &b->more[id - 1].launch;
    return 0;
}

static void store_total(void *context, job_id job, double steps)
{
    ((struct local_fixture *)context)->total = steps;
}

/* The loop reads events before it sleeps in any case. */
static void ignore_wake(void *context)
{
    uv_stop(&((struct local_fixture *)context)->loop);
}

static void open_local(struct local_fixture *b)
{
    struct error err;
    struct local_setup setup = { .loop = &b->loop,
                                 .state_dir = b->state_dir,
                                 .run_dir = b->run_dir,
                                 .run_program = b->program,
                                 .launcher = b->launcher,
                                 .view = &b->view,
                                 .outbox = &b->outbox_now,
                                 .wake = ignore_wake,
                                 .launch = find_launch,
                                 .now_ns = clock_ns,
                                 .total = store_total,
                                 .context = b };
    if (local_open(&b->local, &setup, &err) < 0)
        fail_msg("%s", err.text);
}

/* The programs are beside the folder of this test program. */
static void find_program(const char *name, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 32);
    assert_true(length > 0);
    path[length] = '\0';
    for (int up = 0; up < 2; up++)
        *strrchr(path, '/') = '\0';
    size_t used = strlen(path);
    snprintf(path + used, size - used, "/%s", name);
}

/* What berthd starts while it still is root; the test goes on as root. */
static void open_launcher(struct local_fixture *b)
{
    char program[512];
    struct error err;
    find_program("berth-launch", program, sizeof program);
    struct launcher_client_setup setup = { .program = program,
                                           .run_program = b->program,
                                           .run_dir = b->run_dir,
                                           .state_dir = b->state_dir,
                                           .service_uid = SERVICE_ID,
                                           .service_gid = SERVICE_ID };
    if (launcher_client_open(&b->launcher, &setup, &err) < 0)
        fail_msg("%s", err.text);
}

static struct local_fixture *make_fixture(bool system)
{
    struct local_fixture *b = calloc(1, sizeof *b);
    assert_non_null(b);
    snprintf(b->dir, sizeof b->dir, "/tmp/berth-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    assert_int_equal(chmod(b->dir, 0711), 0);
    snprintf(b->state_dir, sizeof b->state_dir, "%s/state", b->dir);
    snprintf(b->run_dir, sizeof b->run_dir, "%s/run", b->dir);
    assert_int_equal(mkdir(b->state_dir, system ? 0711 : 0700), 0);
    assert_int_equal(mkdir(b->run_dir, system ? 0711 : 0700), 0);
    find_program("berth-run", b->program, sizeof b->program);
    b->node = (struct node){ .gpu_count = 8, .cpu_milli = 8000 };
    b->cluster =
        (struct cluster){ .nodes = &b->node, .node_count = 1, .type_count = 1 };
    b->cluster.types[0].name = "fake";
    b->view = (struct view){ .jobs = b->jobs,
                             .job_max = FIXTURE_JOBS,
                             .cluster = &b->cluster };
    b->outbox_now = &b->outbox;
    if (system)
        open_launcher(b);
    uv_loop_init(&b->loop);
    uv_timer_init(&b->loop, &b->watchdog);
    open_local(b);
    return b;
}

struct local_fixture *local_fixture_new(void)
{
    return make_fixture(false);
}

struct local_fixture *local_fixture_new_system(void)
{
    return make_fixture(true);
}

static int remove_file(const char *path, const struct stat *stat, int kind,
                       struct FTW *where)
{
    return remove(path);
}

static void close_local(struct local_fixture *b)
{
    local_close(b->local);
    uv_timer_stop(&b->watchdog);
    uv_run(&b->loop, UV_RUN_DEFAULT);
}

void local_fixture_free(struct local_fixture *b)
{
    local_remove_orphans(b->local);
    for (job_id job = 0; job < b->job_count; job++)
        executor_local.cancel(b->local, job, NULL);
    for (int i = 0; i < 200 && local_count(b->local) > 0; i++)
        local_fixture_sleep(b, 10);
    close_local(b);
    launcher_client_close(b->launcher);
    uv_close((uv_handle_t *)&b->watchdog, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    nftw(b->dir, remove_file, 16, FTW_DEPTH | FTW_PHYS);
    outbox_release(&b->outbox);
    for (uint32_t i = 0; i < b->event_count; i++)
        free((void *)b->events[i].why);
    free(b->events);
    free(b);
}

void local_fixture_reopen(struct local_fixture *b)
{
    close_local(b);
    b->outbox.count = 0;
    open_local(b);
}

job_id local_fixture_job(struct local_fixture *b, const char *command)
{
    job_id id = b->job_count++;
    assert_true(id < FIXTURE_JOBS);
    struct local_fixture_job *more = &b->more[id];
    snprintf(more->command, sizeof more->command, "%s", command);
    more->argv[0] = "sh";
    more->argv[1] = "-c";
    more->argv[2] = more->command;
    more->env[0] = "PATH=/usr/bin:/bin";
    more->env[1] = "BERTH_RANK_OF_OTHERS=1";
    more->launch = (struct launch){ .id = id + 1,
                                    .argv = more->argv,
                                    .env = more->env,
                                    .cwd = "/",
                                    .uid = getuid(),
                                    .gid = getgid() };
    more->seat = (struct seat){ .gpus = 1 };
    b->jobs[id] = (struct job){ .id = id + 1,
                                .generation = 1,
                                .state = JOB_PLACED,
                                .grace_ns = 10 * INT64_C(1000000000) };
    return id;
}

struct launch *local_fixture_launch(struct local_fixture *b, job_id job)
{
    return &b->more[job].launch;
}

static struct lease make_lease(struct local_fixture *b, job_id job)
{
    struct local_fixture_job *more = &b->more[job];
    return (struct lease){ .job = job,
                           .generation = b->jobs[job].generation,
                           .attempt = b->jobs[job].attempt,
                           .gpus = seat_gpu_count(&more->seat),
                           .beside = JOB_NONE,
                           .seats = &more->seat,
                           .seat_count = 1,
                           .after = more->after,
                           .after_count = more->after_count,
                           .steps_max = more->steps_max };
}

void local_fixture_start(struct local_fixture *b, job_id job)
{
    struct lease lease = make_lease(b, job);
    assert_int_equal(executor_local.start(b->local, &lease, NULL), 0);
}

void local_fixture_reattach(struct local_fixture *b, job_id job, bool stopping)
{
    struct lease lease = make_lease(b, job);
    assert_int_equal(
        local_reattach(b->local, &lease, stopping, b->jobs[job].grace_ns, NULL), 0);
}

/* As an engine does: apply events, record ends, collect processes. */
static void collect_events(struct local_fixture *b)
{
    for (uint32_t i = 0; i < b->outbox.count; i++) {
        struct event *event = &b->outbox.events[i];
        b->events = grow_array(b->events, &b->event_room, b->event_count + 1,
                               sizeof *b->events);
        b->events[b->event_count] = *event;
        if (event->why)
            b->events[b->event_count].why = strdup(event->why); /* never freed */
        b->event_count++;
        if (event->kind == EVENT_STARTED)
            b->jobs[event->job].state = JOB_RUNNING;
        if (!b->uncollected)
            local_event(b->local, &b->view, event);
    }
    b->outbox.count = 0;
    local_commit(b->local, NULL);
}

static void fail_late(uv_timer_t *timer)
{
    ((struct local_fixture *)timer->data)->late = true;
    uv_stop(timer->loop); /* it runs timers first, and then waits for an event */
}

static void run_loop_once(struct local_fixture *b)
{
    uv_run(&b->loop, UV_RUN_ONCE);
    collect_events(b);
}

void local_fixture_sleep(struct local_fixture *b, uint64_t ms)
{
    b->late = false;
    b->watchdog.data = b;
    uv_timer_start(&b->watchdog, fail_late, ms, 0);
    collect_events(b);
    while (!b->late)
        run_loop_once(b);
}

static const struct event *find_event(const struct local_fixture *b, job_id job,
                                      enum event_kind kind)
{
    for (uint32_t i = b->event_count; i-- > 0;)
        if (b->events[i].job == job && b->events[i].kind == kind &&
            b->events[i].attempt == b->jobs[job].attempt)
            return &b->events[i];
    return NULL;
}

struct event local_fixture_wait_event(struct local_fixture *b, job_id job,
                                      enum event_kind kind)
{
    static const enum event_kind ends[] = { EVENT_FINISHED, EVENT_FAILED, EVENT_STOPPED,
                                            EVENT_LOST };
    b->late = false;
    b->watchdog.data = b;
    uv_timer_start(&b->watchdog, fail_late, LATE_MS, 0);
    collect_events(b);
    const struct event *found;
    while (!(found = find_event(b, job, kind))) {
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            const struct event *end = find_event(b, job, ends[i]);
            if (end)
                fail_msg("job %u: %s (%d, %s) instead of %s", job,
                         event_name(end->kind), end->exit_code,
                         end->why ? end->why : "", event_name(kind));
        }
        if (b->late)
            fail_msg("job %u: no %s", job, event_name(kind));
        run_loop_once(b);
    }
    uv_timer_stop(&b->watchdog);
    return *found;
}

uint32_t local_fixture_count_events(const struct local_fixture *b, job_id job,
                                    enum event_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->event_count; i++)
        count += b->events[i].job == job && b->events[i].kind == kind;
    return count;
}

const char *local_fixture_read_file(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "re");
    size_t count = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[count] = '\0';
    return text;
}

const char *local_fixture_output(struct local_fixture *b, job_id job)
{
    char path[128];
    snprintf(path, sizeof path, "%s/log/%u.out", b->state_dir, job + 1);
    return local_fixture_read_file(path);
}

void local_fixture_wait_for_output(struct local_fixture *b, job_id job,
                                   const char *text)
{
    for (int i = 0; i < LATE_MS / 5; i++) {
        if (strstr(local_fixture_output(b, job), text))
            return;
        local_fixture_sleep(b, 5);
    }
    fail_msg("job %u never wrote '%s'", job, text);
}

int local_fixture_read_number(struct local_fixture *b, job_id job, const char *word)
{
    const char *at = strstr(local_fixture_output(b, job), word);
    if (!at)
        fail_msg("job %u did not write '%s'", job, word);
    return at ? atoi(at + strlen(word)) : -1;
}

/* Zombies are not alive. */
bool local_fixture_is_alive(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *text = local_fixture_read_file(path), *state = strrchr(text, ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}
