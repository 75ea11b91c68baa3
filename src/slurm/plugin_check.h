/*
 * plugin_check.h - what a site has filled in in its job_submit.lua (contrib/slurm), as far as its
 * text says it.
 */
#pragma once

#include <stdbool.h>

#define PLUGIN_PATH_MAX 4096

struct plugin_check {
    char *managed; /* between the braces of 'local managed = { … }'; NULL: not there */
    bool has_heartbeat; /* there is such a line                              */
    char heartbeat
        [PLUGIN_PATH_MAX]; /* the file it names; "": none                       */
};

/* False: there is no such file, or it cannot be read. */
bool plugin_check_read(struct plugin_check *ret, const char *path);
void plugin_check_parse(struct plugin_check *ret, const char *text);
void plugin_check_release(struct plugin_check *plugin);

/* Whether it holds jobs of that partition. */
bool plugin_check_manages(const struct plugin_check *plugin, const char *partition);
