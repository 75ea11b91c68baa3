/* flowd_config.h - flowd.yaml: the flags of berth-flowd in a file. */
#pragma once

#include "flowd/mark_target.h"

struct error;

/* Settings from flags or the file; NULL: not set. */
struct flowd_config {
    const char *server, *host, *backend, *levels, *token_file;
    struct cgroup_patterns patterns;
};

/* Fill in what the flags left unset.  -EINVAL with "FILE:LINE: …". */
int flowd_config_load(struct flowd_config *config, struct arena *arena,
                      const char *path, struct error *err);
