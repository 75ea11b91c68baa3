/*
 * config.h - berthd.yaml: what could be said on the command line, in a file.
 *
 *     policy: berth,age=1d
 *     listen: 127.0.0.1:7600
 *     max_jobs: 50000
 *     prices: {v100: 2.48, k80: 0.45}
 *     speeds: {v100: 1, k80: 0.15}
 *     limits: {default: {jobs: 1000}, groups: {lab: {jobs: none}}}
 *
 * The command line goes before the file.
 */
#pragma once

struct arena;
struct daemon_setup;
struct error;

/* Fill in what 'setup' does not say yet; texts live in 'arena'. */
int config_load(struct daemon_setup *setup, struct arena *arena, const char *path,
                struct error *err);
