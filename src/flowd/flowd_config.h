/* flowd_config.h - flowd.yaml: what can be said by flags, in a file. */
#pragma once

#include "flowd/mark_target.h"

struct arena;
struct error;

/* What was said, by flags or in the file; NULL: nothing was. */
struct flowd_config {
    const char *server, *host, *backend, *levels, *token_file;
    struct cgroup_patterns patterns;
};

/* Fill in what is not said yet.  -EINVAL with "FILE:LINE: …". */
int flowd_config_load(struct flowd_config *config, struct arena *arena,
                      const char *path, struct error *err);
