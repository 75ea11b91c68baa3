/* sim_options.h - the flags that sim and compare share: cluster, workload, faults, errors. */
#pragma once

#include "base/arena.h"
#include "cmd/berth/command.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "sim/sim.h"

/* The flags themselves, for the commands' tables. */
#define SIM_OPTIONS_FLAGS \
    { "cluster", 'c', "C", \
      "preset, YAML file, TYPE:GPUS or NODESxTYPE:GPUS; or 'list'" }, \
        { "workload", 'w', "W", \
          "trace file, or preset[:setting=value,…]; or 'list'" }, \
        { "policy", 'p', "P", \
          "NAME[,setting=value…] of 'berth policies'; sim: berth" }, \
        { "flow", 0, "F", "whose packets go first: NAME[,setting=value…]; fair" }, \
        { "network", 0, "M", "how jobs that use it are followed: auto, exact, mean" }, \
        { "seed", 0, "S", "of all random numbers; 1" }, \
        { "window", 0, "A:B", \
          "figures over jobs A ≤ n < B; ends when they are done" }, \
        { "throughputs", 0, "FILE", "steps per second by kind of job and type" }, \
        { "learn-rates", 0, NULL, \
          "policies are told no rates: they learn them from reports of progress" }, \
        { "faults", 0, "mtbf=T,mttr=T", "nodes fail and come back" }, \
        { "calendar", 0, "FILE", \
          "nodes or GPUs that are unavailable, or one user's (CSV)" }, \
        { "cost-error", 0, "X", \
          "believed pause and load times err by so much (sigma)" }, \
        { "estimate-error", 0, "X", "believed run times err by so much (sigma)" }, \
        { "declare-curves", 0, NULL, "policies are told how jobs will learn" }, \
        { "format", 0, "F", "of the trace; by default recognised by its content" }, \
        { "json", 0, NULL, "for programs: one object" }, \
    { \
        "report", 0, "F.html", "write a page with plots" \
    }

struct comparison;

struct sim_options {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    const char *cluster_text;
    struct sim_setup sim;
};

/* Read the flags; 0, or an exit status after a message, or -1 if there is nothing to run. */
int sim_options_read(struct sim_options *options, const struct flags *flags);
void sim_options_release(struct sim_options *options);

/* The command line that repeats this run; lives in the arena. */
const char *sim_options_command_line(struct arena *arena, const struct flags *flags);

/* Warn on stderr of what changes the meaning of the figures, such as rejected jobs. */
void sim_options_print_warnings(const struct flags *flags,
                                const struct comparison *comparison);
