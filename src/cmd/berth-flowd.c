/* berth-flowd.c - the agent on each host that marks the packets of jobs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "flowd/flowd_bench.h"
#include "flowd/flowd_check.h"
#include "flowd/flowd_config.h"
#include "flowd/flowd.h"
#include "flowd/marker.h"
#include "flowd/qdisc.h"
#include "version.h"

#define BENCH_JOBS 200
#define CONFIG_FILE "/etc/berth/flowd.yaml"

static const char help[] =
    "Usage: berth-flowd [--server ADDR] [--host NAME] [--backend NAME] [flags]\n"
    "       berth-flowd --check | --print-qdisc | --bench [flags]\n"
    "\n"
    "Keeps the marks on the packets of this host's jobs equal to what berthd wants.\n"
    "\n"
    "      --server ADDR       where berthd is: a socket's path or a URL\n"
    "      --token-file FILE   holds the token for a URL\n"
    "      --host NAME         what berthd calls this host\n"
    "      --backend NAME      nft, sockets, advice or auto\n"
    "      --levels LIST       code points, best first: cs5,cs4,cs3,cs2,unmarked,cs1\n"
    "      --cgroup PATTERN    where Slurm's jobs are, with %j; may be repeated\n"
    "      --config FILE       all of this in a file: /etc/berth/flowd.yaml if it is "
    "there\n"
    "      --check             say what works here, and end\n"
    "      --print-qdisc       print queues for a host or a switch, and end\n"
    "      --device NAME       of --print-qdisc: eth0\n"
    "      --rate RATE         of --print-qdisc: 10gbit\n"
    "      --floor PERCENT     of --print-qdisc, what each queue has for itself: 5\n"
    "      --qdisc KIND        of --print-qdisc: htb or ets\n"
    "      --bench             time updates with 200 jobs of our own, and end\n"
    "      --version\n"
    "      --help              show this\n"
    "\n"
    "Prints one line when it is ready. SIGTERM ends it; nothing is marked any more.\n";

enum { RUN, CHECK, QDISC, BENCH };

enum {
    OPTION_SERVER = 256,
    OPTION_TOKEN,
    OPTION_HOST,
    OPTION_BACKEND,
    OPTION_LEVELS,
    OPTION_CGROUP,
    OPTION_CONFIG,
    OPTION_CHECK,
    OPTION_PRINT,
    OPTION_DEVICE,
    OPTION_RATE,
    OPTION_FLOOR,
    OPTION_QDISC,
    OPTION_BENCH,
    OPTION_VERSION,
    OPTION_HELP
};

static const struct option options[] = {
    { "server", required_argument, NULL, OPTION_SERVER },
    { "token-file", required_argument, NULL, OPTION_TOKEN },
    { "host", required_argument, NULL, OPTION_HOST },
    { "backend", required_argument, NULL, OPTION_BACKEND },
    { "levels", required_argument, NULL, OPTION_LEVELS },
    { "cgroup", required_argument, NULL, OPTION_CGROUP },
    { "config", required_argument, NULL, OPTION_CONFIG },
    { "check", no_argument, NULL, OPTION_CHECK },
    { "print-qdisc", no_argument, NULL, OPTION_PRINT },
    { "device", required_argument, NULL, OPTION_DEVICE },
    { "rate", required_argument, NULL, OPTION_RATE },
    { "floor", required_argument, NULL, OPTION_FLOOR },
    { "qdisc", required_argument, NULL, OPTION_QDISC },
    { "bench", no_argument, NULL, OPTION_BENCH },
    { "version", no_argument, NULL, OPTION_VERSION },
    { "help", no_argument, NULL, OPTION_HELP },
    { NULL, 0, NULL, 0 },
};

struct flowd_options {
    struct flowd_config config;
    const char *file, *device, *rate, *floor, *qdisc;
    int verb;
};

static int print_error(const char *fmt, const char *word)
{
    fputs("berth-flowd: ", stderr);
    fprintf(stderr, fmt, word);
    fputc('\n', stderr);
    return 2;
}

/* 0: go on; else the exit status plus 1. */
static int read_options(int argc, char **argv, struct flowd_options *args)
{
    struct flowd_config *config = &args->config;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case OPTION_SERVER:
            config->server = optarg;
            break;
        case OPTION_TOKEN:
            config->token_file = optarg;
            break;
        case OPTION_HOST:
            config->host = optarg;
            break;
        case OPTION_BACKEND:
            config->backend = optarg;
            break;
        case OPTION_LEVELS:
            config->levels = optarg;
            break;
        case OPTION_CGROUP:
            if (config->patterns.count == CGROUP_PATTERNS_MAX ||
                !mark_target_pattern_is_valid(optarg))
                return print_error(
                           "--cgroup: want up to 8 paths with one %%j, not %.100s",
                           optarg) +
                       1;
            config->patterns.list[config->patterns.count++] = optarg;
            break;
        case OPTION_CONFIG:
            args->file = optarg;
            break;
        case OPTION_CHECK:
            args->verb = CHECK;
            break;
        case OPTION_PRINT:
            args->verb = QDISC;
            break;
        case OPTION_DEVICE:
            args->device = optarg;
            break;
        case OPTION_RATE:
            args->rate = optarg;
            break;
        case OPTION_FLOOR:
            args->floor = optarg;
            break;
        case OPTION_QDISC:
            args->qdisc = optarg;
            break;
        case OPTION_BENCH:
            args->verb = BENCH;
            break;
        case OPTION_VERSION:
            printf("berth-flowd %s\n", BERTH_VERSION);
            return 1;
        case OPTION_HELP:
            fputs(help, stdout);
            return 1;
        default:
            return 3;
        }
    }
    if (optind < argc)
        return print_error("unexpected \"%.60s\"", argv[optind]) + 1;
    return 0;
}

/* Whether a name needs no quoting in a URL and in a shell. */
static bool is_plain_name(const char *text, size_t max)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._-");
    return length > 0 && !text[length] && length <= max;
}

static int print_qdisc(const struct flowd_options *args,
                       const struct dscp_levels *levels)
{
    struct qdisc_setup setup = { .device = args->device ? args->device : "eth0",
                                 .floor = 5 };
    const char *kind = args->qdisc ? args->qdisc : "htb";
    struct error err;
    if (!is_plain_name(setup.device, 15))
        return print_error("--device: \"%.40s\" is no name of a device", setup.device);
    if (strcmp(kind, "htb") != 0 && strcmp(kind, "ets") != 0)
        return print_error("--qdisc: want htb or ets, not \"%.40s\"", kind);
    setup.kind = kind[0] == 'h' ? QDISC_HTB : QDISC_ETS;
    if (args->floor)
        setup.floor = is_plain_name(args->floor, 3) ? (uint32_t)atoi(args->floor) : 0;
    if (qdisc_parse_rate(args->rate ? args->rate : "10gbit", &setup.bits_per_s, &err) <
            0 ||
        qdisc_check(&setup, levels, &err) < 0)
        return print_error("--%s", err.text);
    qdisc_print(&setup, levels, stdout);
    return fflush(stdout) < 0;
}

static int run_agent(const struct flowd_setup *setup, const char *backend)
{
    const struct marker *chosen[FLOWD_MARKERS_MAX];
    struct error err;
    int count = flowd_choose(backend, chosen, &err);
    if (count < 0)
        return print_error("%s", err.text) - (count != -EINVAL);
    if (strcmp(backend, "auto") == 0 && strcmp(chosen[0]->name, "advice") == 0)
        print_error("nothing is marked here%s; berth-flowd --check says why", "");
    if (flowd_run(setup, chosen, (uint32_t)count, &err) < 0)
        return print_error("%s", err.text) - 1;
    return 0;
}

/* The name of this host where berthd is on another one and has to be told; else NULL. */
static const char *default_host_name(const char *address)
{
    static char name[256];
    const char *said = address ? address : getenv("BERTH_ADDR");
    if (!said || strncmp(said, "http", 4) != 0 ||
        gethostname(name, sizeof name - 1) < 0)
        return NULL;
    name[strcspn(name, ".")] = '\0';
    return is_plain_name(name, 255) ? name : NULL;
}

static int run_verb(const struct flowd_options *args, struct flowd_setup *setup)
{
    const struct flowd_config *config = &args->config;
    const char *backend = config->backend ? config->backend : "auto";
    struct error err;
    if (dscp_levels_parse(&setup->levels,
                          config->levels ? config->levels : dscp_levels_standard,
                          &err) < 0)
        return print_error("--%s", err.text);
    if (config->host && !is_plain_name(config->host, 255))
        return print_error("--host: \"%.60s\" is no name of a host", config->host);
    if (strcmp(backend, "auto") != 0 && !marker_find(backend))
        return print_error(
            "--backend: want nft (if built in), sockets, advice or auto, not "
            "\"%.40s\"",
            backend);
    setup->address = config->server;
    setup->host = config->host ? config->host : default_host_name(config->server);
    setup->patterns =
        config->patterns.count ? config->patterns : cgroup_patterns_standard;
    if (config->token_file)
        setenv("BERTH_TOKEN_FILE", config->token_file, 1);
    switch (args->verb) {
    case CHECK:
        return flowd_check_host(setup, backend, stdout);
    case QDISC:
        return print_qdisc(args, &setup->levels);
    case BENCH:
        if (flowd_bench_markers(BENCH_JOBS, &setup->levels, stdout, &err) < 0)
            return print_error("%s", err.text) - 1;
        return 0;
    default:
        return run_agent(setup, backend);
    }
}

int main(int argc, char **argv)
{
    struct flowd_options args = { .verb = RUN };
    struct flowd_setup setup = { .address = NULL };
    struct arena arena;
    struct error err;
    int status = read_options(argc, argv, &args);
    if (status)
        return status - 1;
    arena_init(&arena, 128 << 10);
    if (!args.file && access(CONFIG_FILE, F_OK) == 0)
        args.file = CONFIG_FILE;
    if (args.file && flowd_config_load(&args.config, &arena, args.file, &err) < 0)
        status = print_error("%s", err.text);
    else
        status = run_verb(&args, &setup);
    arena_release(&arena);
    return status;
}
