/* slurm_features.c - what sbatch -C asks of a node. */
#include "executor/slurm/slurm_features.h"

#include <string.h>

#define BETWEEN "&,|"

bool features_can_read(const char *wanted)
{
    return *wanted && !strpbrk(wanted, "[]()*!") && !strchr(BETWEEN, *wanted);
}

static bool is_listed(const char *has, const char *name, size_t length)
{
    while (*has) {
        size_t this = strcspn(has, ",");
        if (this == length && strncmp(has, name, length) == 0)
            return true;
        has += this + (has[this] == ',');
    }
    return false;
}

bool features_match(const char *wanted, const char *has)
{
    bool match = true;
    char before = '&';
    while (*wanted) {
        size_t length = strcspn(wanted, BETWEEN);
        bool listed = is_listed(has, wanted, length);
        match = before == '|' ? match || listed : match && listed;
        before = wanted[length];
        wanted += length + (before != '\0');
    }
    return match;
}
