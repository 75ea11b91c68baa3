/*
 * worlds.c - seeded fault scenarios for every policy.
 *
 *     soak_worlds --seed 1234 --policy gavel-las      one scenario, the same each time
 *     soak_worlds --seeds 10000 [--from 1]            so many for each policy
 *     soak_worlds --check                             a few, and every defect must be found
 *
 * See docs/internals/worlds.md.  Scenarios run in child processes, so that a failure ends one
 * of them only: its last events are printed with the command that repeats it.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "policy/policy.h"
#include "support/scenario.h"

#define WORKERS_MAX 64
#define FAILURES_MAX 20  /* then the run ends                                  */
#define WORLD_CPU_S 60   /* a scenario takes milliseconds: more is a busy loop  */
#define CHECK_SEEDS 3    /* of each policy in 'make check'                      */
#define DEFECT_SEEDS 200 /* within which a defect must be found                 */

struct soak_request {
    uint64_t from, seeds;
    const struct policy *policy; /* NULL: all of them */
    enum defect defect;
    uint32_t workers;
    bool json, run_check, shows, one, quiet;
};

/* Memory shared by the processes: the scenario and the counts of each. */
struct soak_shared {
    _Atomic uint64_t next; /* scenario to run */
    struct {
        uint64_t world; /* that it runs */
        struct scenario_counts counts;
    } workers[WORKERS_MAX];
};

static uint32_t policy_count(void)
{
    uint32_t count = 0;
    while (policy_list[count])
        count++;
    return count;
}

static const char *store_folder(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* --- one scenario ---------------------------------------------------------------------- */

/* A failed assertion, a crash, or a scenario that does not end. */
static void report_signal(int number)
{
    scenario_report(number == SIGABRT   ? "an assertion failed"
                    : number == SIGXCPU ? "it does not end: a busy loop"
                                        : strsignal(number));
    _exit(1);
}

static void catch_signals(void)
{
    static const int numbers[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], report_signal);
}

static void report_exit(void)
{
    scenario_report("a test failed");
}

static double cpu_s(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The CPU time used so far, and WORLD_CPU_S for the next scenario. */
static void limit_cpu(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = (rlim_t)cpu_s(RUSAGE_SELF) + WORLD_CPU_S;
    setrlimit(RLIMIT_CPU, &limit);
}

static void run_scenario(const struct soak_request *request, uint64_t seed,
                         const struct policy *policy, struct scenario_counts *counts)
{
    struct scenario_setup setup = { .seed = seed,
                                    .policy = policy,
                                    .defect = request->defect,
                                    .shows = request->shows,
                                    .folder = store_folder() };
    limit_cpu();
    scenario_play(&setup, counts);
}

/* After a signal, scenarios that have begun run to their end and are counted. */
static volatile sig_atomic_t stopping;
static struct soak_shared *stopped_shared;

static void stop_soon(int number)
{
    (void)number;
    stopping = 1;
    atomic_store(&stopped_shared->next, UINT64_MAX / 2);
}

static void catch_stop_signals(struct soak_shared *shared)
{
    struct sigaction action = { .sa_handler = stop_soon, .sa_flags = SA_RESTART };
    stopped_shared = shared;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* --- many scenarios ---------------------------------------------------------------------- */

static uint64_t find_seed(const struct soak_request *request, uint64_t world)
{
    return request->from + (request->policy ? world : world / policy_count());
}

static const struct policy *find_policy(const struct soak_request *request,
                                        uint64_t world)
{
    return request->policy ? request->policy : policy_list[world % policy_count()];
}

static uint64_t world_count(const struct soak_request *request)
{
    return request->seeds * (request->policy ? 1 : policy_count());
}

static pid_t start_worker(const struct soak_request *request,
                          struct soak_shared *shared, uint32_t number)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (request->quiet && !freopen("/dev/null", "w", stderr))
        _exit(2);
    catch_signals();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    atexit(report_exit);
    uint64_t world;
    while ((world = atomic_fetch_add(&shared->next, 1)) < world_count(request)) {
        shared->workers[number].world = world;
        run_scenario(request, find_seed(request, world), find_policy(request, world),
                     &shared->workers[number].counts);
    }
    _exit(0);
}

/* Run all scenarios on all cores; returns how many failed. */
static uint32_t run_all(const struct soak_request *request,
                        struct scenario_counts *ret_counts)
{
    struct soak_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[WORKERS_MAX];
    uint32_t failures = 0;
    uint32_t refused = 0;
    uint32_t running = 0;
    if (shared == MAP_FAILED) {
        perror("soak_worlds");
        exit(2);
    }
    catch_stop_signals(shared);
    for (uint32_t i = 0; i < request->workers; i++, running++)
        pids[i] = start_worker(request, shared, i);
    while (running > 0) {
        int status;
        pid_t pid = wait(&status);
        uint32_t i = 0;
        while (i < request->workers && pids[i] != pid)
            i++;
        if (pid < 0 && errno != EINTR)
            break;
        if (i == request->workers)
            continue;
        running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        failures++;
        refused += WIFEXITED(status) && WEXITSTATUS(status) == SCENARIO_REFUSED;
        uint64_t world = shared->workers[i].world;
        if (!request->quiet)
            fprintf(stderr, "failed: seed %" PRIu64 ", policy %s\n",
                    find_seed(request, world), find_policy(request, world)->name);
        if (failures < FAILURES_MAX && !request->quiet && !stopping) {
            pids[i] = start_worker(request, shared, i);
            running++;
        } else {
            atomic_store(&shared->next, world_count(request));
        }
    }
    *ret_counts = (struct scenario_counts){ 0 };
    for (uint32_t i = 0; i < request->workers; i++) {
        const uint64_t *from = (const uint64_t *)&shared->workers[i].counts;
        uint64_t *to = (uint64_t *)ret_counts;
        for (size_t k = 0; k < sizeof *ret_counts / sizeof *to; k++)
            to[k] += from[k];
    }
    ret_counts->refused += refused;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    munmap(shared, sizeof *shared);
    return failures;
}

static uint64_t sum_faults(const struct scenario_counts *counts)
{
    uint64_t count = 0;
    for (uint32_t f = 0; f < FAULT_COUNT; f++)
        count += counts->faults[f];
    return count;
}

static void print_json(const struct soak_request *request,
                       const struct scenario_counts *counts, uint32_t failures)
{
    struct json *all = json_new_object();
    struct json *faults = json_new_object();
    uint64_t policies = request->policy ? 1 : policy_count();
    uint64_t seeds = stopping ? counts->worlds / policies : request->seeds;
    json_put_count(all, "seeds", (int64_t)seeds);
    json_put_count(all, "from", (int64_t)request->from);
    json_put_count(all, "policies", (int64_t)policies);
    json_put_count(all, "worlds", (int64_t)counts->worlds);
    json_put_count(all, "jobs", (int64_t)counts->jobs);
    json_put_count(all, "events", (int64_t)counts->events);
    json_put_count(all, "decisions", (int64_t)counts->decisions);
    json_put_count(all, "commits", (int64_t)counts->commits);
    json_put_count(all, "faults_injected", (int64_t)sum_faults(counts));
    for (uint32_t f = 0; f < FAULT_COUNT; f++)
        json_put_count(faults, fault_names[f], (int64_t)counts->faults[f]);
    json_put(all, "faults", faults);
    json_put_count(all, "rebuildings", (int64_t)counts->rebuildings);
    json_put_count(all, "refused_plans", (int64_t)counts->refused);
    json_put_count(all, "failures", failures);
    json_put_number(all, "cpu_seconds", cpu_s(RUSAGE_CHILDREN) + cpu_s(RUSAGE_SELF));
    json_print(all, stdout, true);
    json_free(all);
}

static void print_line(const struct scenario_counts *counts, uint32_t failures)
{
    printf("%" PRIu64 " worlds, %" PRIu64 " events, %" PRIu64 " decisions, %" PRIu64
           " faults, %" PRIu64 " rebuildings, %" PRIu64 " refused plans, %u failures, "
           "%.1f CPU s\n",
           counts->worlds, counts->events, counts->decisions, sum_faults(counts),
           counts->rebuildings, counts->refused, failures, cpu_s(RUSAGE_CHILDREN));
}

/* --- the short test of make check ---------------------------------------------------------- */

/* Scenarios that failed once, with an error that no smaller test shows. */
static const struct {
    uint64_t seed;
    const char *policy;
} known_failures[] = {
    { 2571, "gandiva" }, /* levels of pairs that left no room for the next one */
};

static bool run_known_failures(struct soak_request *request)
{
    struct scenario_counts counts;
    bool ok = true;
    request->seeds = 1;
    for (size_t i = 0; i < sizeof known_failures / sizeof *known_failures; i++) {
        request->from = known_failures[i].seed;
        request->policy = policy_find(known_failures[i].policy);
        ok &= run_all(request, &counts) == 0;
    }
    request->from = 1;
    request->policy = NULL;
    return ok;
}

/* Scenarios pass, every kind of fault happens, and every defect is found. */
static int run_check(struct soak_request *request)
{
    struct scenario_counts counts;
    bool all_there = true;
    bool ok;
    int number = 0;
    int failed = 0;
    printf("1..%d\n", 2 + DEFECT_COUNT);
    ok = run_known_failures(request);
    failed += !ok;
    printf("%s %d - worlds that broke something once come to their end\n",
           ok ? "ok" : "not ok", ++number);
    request->seeds = CHECK_SEEDS;
    ok = run_all(request, &counts) == 0;
    failed += !ok;
    printf("%s %d - worlds of every policy come to their end\n", ok ? "ok" : "not ok",
           ++number);
    for (uint32_t f = 0; f < FAULT_COUNT; f++)
        if (counts.faults[f] == 0) {
            printf("# %s did not happen\n", fault_names[f]);
            all_there = false;
        }
    failed += !all_there;
    printf("%s %d - everything went wrong once\n", all_there ? "ok" : "not ok",
           ++number);
    request->seeds = DEFECT_SEEDS;
    request->quiet = true;
    request->policy = policy_find("srtf");
    for (enum defect d = 1; d < DEFECT_COUNT; d++) {
        request->defect = d;
        ok = run_all(request, &counts) > 0;
        failed += !ok;
        printf("%s %d - %s is found (after %" PRIu64 " sound worlds)\n",
               ok ? "ok" : "not ok", ++number, defect_names[d], counts.worlds);
    }
    return failed ? 1 : 0;
}

/* --- arguments -------------------------------------------------------------------------------- */

static const char usage_text[] =
    "usage: soak_worlds --seed N --policy NAME [--defect NAME] [--show]\n"
    "       soak_worlds --seeds N [--from K] [--policy NAME] [--defect NAME] [--jobs "
    "N]\n"
    "                   [--json]\n"
    "       soak_worlds --check\n"
    "defects:";

static int print_usage(void)
{
    fputs(usage_text, stderr);
    for (enum defect d = 1; d < DEFECT_COUNT; d++)
        fprintf(stderr, " %s", defect_names[d]);
    fputc('\n', stderr);
    return 2;
}

static bool read_number(const char *text, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

static bool read_defect(const char *text, enum defect *ret_defect)
{
    for (enum defect d = 1; d < DEFECT_COUNT; d++)
        if (strcmp(text, defect_names[d]) == 0) {
            *ret_defect = d;
            return true;
        }
    return false;
}

static bool read_request(int argc, char **argv, struct soak_request *request)
{
    static const struct option options[] = {
        { "seed", required_argument, NULL, 's' },
        { "seeds", required_argument, NULL, 'n' },
        { "from", required_argument, NULL, 'f' },
        { "policy", required_argument, NULL, 'p' },
        { "defect", required_argument, NULL, 'd' },
        { "jobs", required_argument, NULL, 'j' },
        { "json", no_argument, NULL, 'J' },
        { "show", no_argument, NULL, 'S' },
        { "check", no_argument, NULL, 'c' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t workers = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    bool ok = true;
    int option;
    request->from = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 's':
            ok = ok && read_number(optarg, &request->from);
            request->one = true;
            break;
        case 'n':
            ok = ok && read_number(optarg, &request->seeds);
            break;
        case 'f':
            ok = ok && read_number(optarg, &request->from);
            break;
        case 'p':
            request->policy = policy_find(optarg);
            ok = ok && request->policy;
            break;
        case 'd':
            ok = ok && read_defect(optarg, &request->defect);
            break;
        case 'j':
            ok = ok && read_number(optarg, &workers);
            break;
        case 'J':
            request->json = true;
            break;
        case 'S':
            request->shows = true;
            break;
        case 'c':
            request->run_check = true;
            break;
        default:
            ok = false;
        }
    }
    request->workers = workers < 1             ? 1
                       : workers > WORKERS_MAX ? WORKERS_MAX
                                               : (uint32_t)workers;
    bool asks = request->one ? request->policy != NULL
                             : request->run_check || request->seeds > 0;
    return ok && asks && optind == argc;
}

int main(int argc, char **argv)
{
    struct soak_request request = { 0 };
    struct scenario_counts counts = { 0 };
    uint32_t failures = 0;
    if (!read_request(argc, argv, &request))
        return print_usage();
    if (request.run_check)
        return run_check(&request);
    if (request.one) {
        request.seeds = 1;
        catch_signals();
        atexit(report_exit);
        run_scenario(&request, request.from, request.policy, &counts);
    } else {
        failures = run_all(&request, &counts);
    }
    if (request.json)
        print_json(&request, &counts, failures);
    else
        print_line(&counts, failures);
    return failures ? 1 : 0;
}
