/* plugin_check.c - find the lines of job_submit.lua that a site has filled in. */
#include "slurm/plugin_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FILE_BYTES_MAX (256 << 10)

/* What follows "local NAME =" at the start of a line; NULL: there is no such line. */
static const char *find_local(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "local ", 6) != 0 || strncmp(line + 6, name, length) != 0)
            continue;
        const char *at = line + 6 + length;
        at += strspn(at, " \t");
        if (*at == '=')
            return at + 1 + strspn(at + 1, " \t");
    }
    return NULL;
}

/* A table's text; comments in it are blanked, so that nothing in them counts. */
static char *copy_table(const char *at)
{
    const char *end = at && *at == '{' ? strchr(at, '}') : NULL;
    if (!end)
        return NULL;
    size_t count = (size_t)(end - at) - 1;
    char *table = memory_checked(calloc(count + 1, 1));
    memcpy(table, at + 1, count);
    for (char *comment = table; (comment = strstr(comment, "--"));)
        while (*comment && *comment != '\n')
            *comment++ = ' ';
    return table;
}

void plugin_check_parse(struct plugin_check *ret, const char *text)
{
    const char *heartbeat = find_local(text, "heartbeat");
    *ret = (struct plugin_check){ .managed = copy_table(find_local(text, "managed")),
                                  .has_heartbeat = heartbeat != NULL };
    size_t length = heartbeat && *heartbeat == '"' ? strcspn(heartbeat + 1, "\"\n") : 0;
    if (length < sizeof ret->heartbeat)
        snprintf(ret->heartbeat, sizeof ret->heartbeat, "%.*s", (int)length,
                 length ? heartbeat + 1 : "");
}

bool plugin_check_read(struct plugin_check *ret, const char *path)
{
    *ret = (struct plugin_check){ NULL };
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char *text = memory_checked(calloc(FILE_BYTES_MAX + 1, 1));
    size_t count = fread(text, 1, FILE_BYTES_MAX, file);
    bool good = count > 0 && !ferror(file);
    fclose(file);
    if (good)
        plugin_check_parse(ret, text);
    free(text);
    return good;
}

void plugin_check_release(struct plugin_check *plugin)
{
    free(plugin->managed);
    *plugin = (struct plugin_check){ NULL };
}

static bool is_in_name(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_' || letter == '-';
}

/* 'name = true' or '["name"] = true'. */
bool plugin_check_manages(const struct plugin_check *plugin, const char *partition)
{
    size_t length = strlen(partition);
    const char *at = plugin->managed;
    for (; at && (at = strstr(at, partition)); at += length) {
        const char *after = at + length + strspn(at + length, "\"'] \t");
        bool whole =
            (at == plugin->managed || !is_in_name(at[-1])) && !is_in_name(at[length]);
        if (whole && *after == '=' &&
            strncmp(after + 1 + strspn(after + 1, " \t"), "true", 4) == 0)
            return true;
    }
    return false;
}
