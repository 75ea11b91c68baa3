/* request_source.c - what a job runs: a command, a script or a job file; its environment. */
#include "cmd/berth/request_source.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/request.h"
#include "base/yaml.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/berth/command.h"
#include "cmd/berth/flag_values.h"
#include "cmd/berth/request_builder.h"

#define WORDS_MAX 256 /* on a line */

extern char **environ;

static const struct flag builder_flags[] = { REQUEST_BUILDER_FLAGS, { 0 } };

static int read_text(struct arena *arena, const char *path, const char **ret_text,
                     struct error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct buf buf;
    buf_init(&buf, REQUEST_SCRIPT_MAX);
    int r = buf_read(&buf, path, err);
    if (r == 0 && (strlen(buf.bytes) != buf.count || !json_can_say(buf.bytes)))
        r = error_set(err, -EINVAL, "%s: is not a text in UTF-8", name);
    if (r == 0)
        *ret_text = arena_text(arena, buf.bytes);
    buf_release(&buf);
    return r;
}

/* A line of comment, "#SBATCH …" or "#BERTH …": what follows the word, or NULL. */
static const char *skip_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || !isblank((unsigned char)line[length]))
        return NULL;
    return line + length;
}

/* The next line of a script's head, copied; NULL at its first command. */
static const char *next_head_line(const char **text, char *line, size_t size)
{
    const char *start = *text;
    size_t length = strcspn(start, "\n");
    if (!*start || (*start != '#' && strspn(start, " \t\r") != length))
        return NULL;
    *text += length + (start[length] == '\n');
    while (length > 0 && start[length - 1] == '\r')
        length--;
    snprintf(line, size, "%.*s", (int)(length < size ? length : size - 1), start);
    return line;
}

static bool is_run_by_shell(const char *text)
{
    static const char *const shells[] = { "sh",  "bash", "dash", "zsh",
                                          "ksh", "fish", "csh",  "tcsh" };
    char line[256], *save;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text + 2, "\n"), text + 2);
    for (char *word = strtok_r(line, " \t\r", &save); word;
         word = strtok_r(NULL, " \t\r", &save)) {
        const char *base = strrchr(word, '/');
        base = base ? base + 1 : word;
        for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
            if (strcmp(base, shells[i]) == 0)
                return true;
        if (strcmp(base, "env") != 0 && word[0] != '-')
            return false;
    }
    return false;
}

bool request_source_is_script(const char *text)
{
    if (strncmp(text, "#!", 2) != 0)
        return false;
    if (is_run_by_shell(text))
        return true;
    char line[1024];
    while (next_head_line(&text, line, sizeof line))
        if (skip_word(line, "#SBATCH") || skip_word(line, "#BERTH"))
            return true;
    return false;
}

/* The flag of a word such as "--time=5", "-t5" or "--gpus", or NULL. */
static const struct flag *find_flag(const char *word)
{
    size_t length = strcspn(word, "=") - 2;
    for (const struct flag *flag = builder_flags; flag->name; flag++)
        if (word[1] == '-' ? strncmp(word + 2, flag->name, length) == 0 &&
                                 flag->name[length] == '\0'
                           : flag->letter == word[1])
            return flag;
    return NULL;
}

/* Whether the word after this one is its value. */
static bool takes_next_word(const struct flag *flag, const char *word)
{
    if (!flag->value)
        return false;
    return word[1] == '-' ? !strchr(word, '=') : word[2] == '\0';
}

struct script_lines {
    struct request_builder *builder;
    const char *file;
    uint32_t line;
    struct buf passed; /* names of flags that are ignored */
};

static int set_flag(void *context, const struct flag *flag, const char *value,
                    struct error *err)
{
    struct script_lines *lines = context;
    return request_builder_set(lines->builder, flag->name, value, err);
}

static void note_unknown_flag(struct script_lines *lines, const char *word)
{
    char name[40];
    snprintf(name, sizeof name, "%.*s", word[1] == '-' ? (int)strcspn(word, "=") : 2,
             word);
    if (lines->passed.count > 0 && strstr(lines->passed.bytes, name))
        return;
    buf_print(&lines->passed, "%s%s", lines->passed.count > 0 ? ", " : "", name);
}

/*
 * sbatch's flags that say which resources a job gets, by how they begin: a job without them
 * would run on something else than it asks for.  Flags that are understood are not looked up.
 */
static bool is_resource_flag(const char *word)
{
    static const char *const beginnings[] = {
        "--gpu",
        "--cpus",
        "--gres=",
        "--tres",
        "--ntasks",
        "--mem=",
        "--mem-per",
        "--mincpus",
        "--cores-per",
        "--sockets-per",
        "--threads-per",
        "--extra-node",
        "-B",
        "--nodelist",
        "-w",
        "--nodefile",
        "-F",
        "--exclude",
        "-x",
        "--exclusive",
        "--core-spec",
        "-S",
        "--thread-spec",
        "--tmp",
        "--use-min-nodes",
        "--licenses",
        "-L",
        "--reservation",
    };
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(word, beginnings[i], strlen(beginnings[i])) == 0)
            return strncmp(word, "--gpu-bind", 10) != 0 &&
                   strncmp(word, "--gpu-freq", 10) != 0;
    return false;
}

/*
 * Drop unknown flags with their values: how many words are left.  -EINVAL if one of them says
 * which resources the job gets.
 */
static int drop_unknown_flags(struct script_lines *lines, char **words, uint32_t count,
                              struct error *err)
{
    int kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (words[i][0] != '-' || words[i][1] == '\0')
            continue; /* the value of a flag that was dropped */
        const struct flag *flag = find_flag(words[i]);
        if (!flag && is_resource_flag(words[i]))
            return error_set(err, -EINVAL,
                             "%.60s: Berth has no such flag, and the job would run on "
                             "other resources than it asks for; use --gpus, "
                             "--gpus-per-node, --nodes, --cpus-per-task, --mem",
                             words[i]);
        if (!flag) {
            note_unknown_flag(lines, words[i]);
            continue;
        }
        words[kept++] = words[i];
        if (takes_next_word(flag, words[i]) && i + 1 < count)
            words[kept++] = words[++i];
    }
    return kept;
}

static int read_line(struct script_lines *lines, const char *text, bool lenient,
                     struct error *err)
{
    char *words[WORDS_MAX + 2] = { (char[]){ "script" } };
    uint32_t count, first;
    struct error inner;
    int r = flag_value_words(lines->builder->arena, text, words + 1, WORDS_MAX, &count,
                             &inner);
    count++;
    if (r == 0 && lenient)
        r = drop_unknown_flags(lines, words, count, &inner);
    count = r > 0 ? (uint32_t)r : count;
    if (r >= 0) {
        words[count] = NULL;
        r = flags_walk(builder_flags, false, (int)count, words, set_flag, lines, &first,
                       &inner);
    }
    if (r == FLAGS_HELP)
        r = error_set(&inner, -EINVAL, "--help says nothing here");
    if (r == 0 && first < count)
        r = error_set(&inner, -EINVAL, "\"%.60s\" is no flag", words[first]);
    return r == 0 ? 0
                  : error_set(err, -EINVAL, "%s:%u: %s", lines->file, lines->line,
                              inner.text);
}

static int read_lines(struct script_lines *lines, const char *text, const char *word,
                      bool lenient, struct error *err)
{
    char line[4096];
    lines->line = 0;
    while (next_head_line(&text, line, sizeof line)) {
        lines->line++;
        const char *rest = skip_word(line, word);
        int r = rest ? read_line(lines, rest, lenient, err) : 0;
        if (r < 0)
            return r;
        if (rest && lenient) /* a script for Slurm may use the SLURM_* variables */
            json_put_flag(lines->builder->fields, "slurm_names", true);
    }
    return 0;
}

int request_source_read_lines(struct request_builder *builder, const char *text,
                              const char *file, const char *verb, struct error *err)
{
    struct script_lines lines = { .builder = builder, .file = file };
    buf_init(&lines.passed, 1000);
    int r = read_lines(&lines, text, "#SBATCH", true, err);
    if (r == 0)
        r = read_lines(&lines, text, "#BERTH", false, err);
    if (r == 0 && lines.passed.count > 0 && verb)
        fprintf(stderr, "berth %s: %s: passed over in #SBATCH lines: %s\n", verb, file,
                lines.passed.bytes);
    buf_release(&lines.passed);
    return r;
}

static bool ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);
    return length > end && strcmp(text + length - end, ending) == 0;
}

static bool is_job_file(const char *path)
{
    return (ends_in(path, ".yaml") || ends_in(path, ".yml")) && access(path, F_OK) == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The job's name: that of the program, or of the script in "python -u train.py". */
static const char *derive_name(char *const *words, uint32_t count)
{
    static const char *const runners[] = { "python", "bash",  "sh",   "torchrun",
                                           "perl",   "julia", "node", "Rscript" };
    const char *base = base_name(words[0]);
    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++) {
        size_t length = strlen(runners[i]);
        if (strncmp(base, runners[i], length) != 0 ||
            base[length + strspn(base + length, "0123456789.")] != '\0')
            continue;
        for (uint32_t w = 1; w < count; w++) {
            if (strcmp(words[w], "-c") == 0)
                return base;
            if (strcmp(words[w], "-m") == 0 && w + 1 < count)
                return words[w + 1];
            if (words[w][0] != '-' && strchr(base_name(words[w]), '.'))
                return base_name(words[w]);
        }
    }
    return base;
}

/* Name the job unless a name is given: visible characters, and not too long. */
static void put_name(struct request_builder *builder, const char *name)
{
    char text[120];
    size_t count = 0;
    for (; *name && count < sizeof text - 1; name++)
        text[count++] = iscntrl((unsigned char)*name) ? '?' : *name;
    while (*name && count > 0 && (text[count - 1] & 0x80))
        count--; /* not cut within a character */
    text[count] = '\0';
    if (count > 0 && json_can_say(text) && !json_get(builder->fields, "name"))
        json_put_text(builder->fields, "name", text);
}

static int put_words(struct request_builder *builder, char *const *words,
                     uint32_t count, struct error *err)
{
    struct json *array = json_new_array();
    for (uint32_t i = 0; i < count; i++) {
        if (!json_can_say(words[i])) {
            json_free(array);
            return error_set(err, -EINVAL, "word %u of the command is not UTF-8",
                             i + 1);
        }
        json_add_text(array, words[i]);
    }
    json_put(builder->fields, "command", array);
    return 0;
}

/* "param: {lr: [0.1, 0.01], seed: 1..3}" as if it were flags. */
static int set_params(struct request_builder *builder, const struct json *params,
                      struct error *err)
{
    const char *key;
    const struct json *value;
    for (void *at = NULL; (at = json_member(params, at, &key, &value));) {
        char text[4096];
        size_t count = (size_t)snprintf(text, sizeof text, "%.60s=", key);
        size_t values = json_is_array(value) ? json_count(value) : 1;
        for (size_t i = 0; i < values && count < sizeof text; i++) {
            const struct json *item =
                json_is_array(value) ? json_item(value, i) : value;
            char *said =
                json_is_text(item) ? memory_text(json_as_text(item)) : json_text(item);
            count += (size_t)snprintf(text + count, sizeof text - count, "%s%s",
                                      i ? "," : "", said ? said : "");
            free(said);
        }
        if (count >= sizeof text)
            return error_set(err, -EINVAL, "--param: %.60s: is too long", key);
        int r = request_builder_set(builder, "param", arena_text(builder->arena, text),
                                    err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Keys of a job file that are not fields of a request. */
static int move_special_keys(struct request_builder *builder, struct error *err)
{
    const struct json *array = json_get(builder->fields, "array");
    const struct json *params = json_get(builder->fields, "param");
    const struct json *command = json_get(builder->fields, "command");
    int r = 0;
    if (array) {
        char *text =
            json_is_text(array) ? memory_text(json_as_text(array)) : json_text(array);
        r = request_builder_set(builder, "array", arena_text(builder->arena, text),
                                err);
        free(text);
    }
    if (r == 0 && params)
        r = set_params(builder, params, err);
    if (r == 0 && json_is_text(command)) {
        builder->wrap = arena_text(builder->arena, json_as_text(command));
        json_remove(builder->fields, "command");
    }
    json_remove(builder->fields, "array");
    json_remove(builder->fields, "param");
    return r;
}

/* Read a job file: its keys are those of a request, and 'array' and 'param'. */
static int read_job_file(struct request_builder *builder, const char *path,
                         struct error *err)
{
    const char *text;
    struct json *fields, *lines;
    int r = read_text(builder->arena, path, &text, err);
    if (r == 0)
        r = yaml_read(text, strlen(text), path, &fields, &lines, err);
    if (r < 0)
        return r;
    json_free(builder->fields);
    builder->fields = fields;
    builder->lines = lines;
    builder->file = path;
    struct error inner;
    r = move_special_keys(builder, &inner);
    if (r < 0)
        return error_set(err, r, "%s: %s", path, inner.text);
    return 0;
}

static int read_script(struct request_builder *builder, const struct flags *flags,
                       const char *text, const char *verb, struct error *err)
{
    const char *file =
        strcmp(flags->words[0], "-") == 0 ? "standard input" : flags->words[0];
    builder->file = file;
    if (strncmp(text, "#!", 2) != 0)
        return error_set(err, -EINVAL, "%s:1: want a first line \"#!…\"", file);
    uint32_t line = 1;
    for (const char *at = text; (at = strchr(at, '\n')); at++, line++)
        if (at[-1] == '\r')
            return error_set(err, -EINVAL,
                             "%s:%u: ends in CR LF, as on Windows: want LF alone", file,
                             line);
    int r = request_source_read_lines(builder, text, file, verb, err);
    if (r == 0)
        json_put_text(builder->fields, "script", text);
    if (r == 0 && flags->word_count > 1)
        r = put_words(builder, flags->words + 1, flags->word_count - 1, err);
    return r;
}

static bool begins_as_script(const char *path)
{
    struct stat status;
    char head[2] = "";
    FILE *file =
        stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    bool begins = fread(head, 1, 2, file) == 2 && head[0] == '#' && head[1] == '!';
    fclose(file);
    return begins;
}

/* Whether the first word is the path of a batch script. */
static bool names_script(struct request_builder *builder, const char *word,
                         const char **ret_text)
{
    return begins_as_script(word) &&
           read_text(builder->arena, word, ret_text, NULL) == 0 &&
           request_source_is_script(*ret_text);
}

static bool on_path(const char *word)
{
    char file[PATH_MAX];
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        int length = (int)strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", length, at, word);
        if (access(file, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* Refuse a word that looks like a file and cannot be run. */
static int check_mistake(const char *word, struct error *err)
{
    static const char *const endings[] = { ".yaml",   ".yml",   ".sh",
                                           ".sbatch", ".slurm", ".job" };
    struct stat status;
    bool there = stat(word, &status) == 0;
    for (size_t i = 0; !there && i < sizeof endings / sizeof *endings; i++)
        if (ends_in(word, endings[i]))
            return error_set(err, -EINVAL, "%.200s: %s", word, strerror(errno));
    bool named = strchr(word, '/') != NULL;
    if (!there || (!named && on_path(word)))
        return 0;
    if (S_ISDIR(status.st_mode)) /* "python" may be a folder here and a command */
        return named ? error_set(err, -EINVAL, "%.200s: is a folder", word) : 0;
    if (access(word, X_OK) != 0 && begins_as_script(word))
        return error_set(
            err, -EINVAL,
            "%.200s: is not executable: 'chmod +x' it, or say what runs it", word);
    if (access(word, X_OK) != 0)
        return error_set(err, -EINVAL, "%.200s:1: want a first line \"#!…\"", word);
    if (!named)
        return error_set(err, -EINVAL, "%.200s: is not on the PATH; ./%.200s is here",
                         word, word);
    return 0;
}

static int read_what_to_run(struct request_builder *builder, const struct flags *flags,
                            const char *verb, struct error *err)
{
    const char *text;
    if (flags->word_count == 0)
        return 0;
    if (!flags->dashes && strcmp(flags->words[0], "-") == 0) {
        int r = read_text(builder->arena, "-", &text, err);
        return r < 0 ? r : read_script(builder, flags, text, verb, err);
    }
    if (!flags->dashes && is_job_file(flags->words[0])) {
        if (flags->word_count > 1)
            return error_set(err, -EINVAL, "%s: a job file takes no words after it",
                             flags->words[0]);
        return read_job_file(builder, flags->words[0], err);
    }
    if (!flags->dashes && names_script(builder, flags->words[0], &text))
        return read_script(builder, flags, text, verb, err);
    int r = flags->dashes ? 0 : check_mistake(flags->words[0], err);
    return r < 0 ? r : put_words(builder, flags->words, flags->word_count, err);
}

/* --wrap: one line for a shell is the script. */
static int put_wrapped_line(struct request_builder *builder, struct error *err)
{
    if (!builder->wrap)
        return 0;
    if (json_get(builder->fields, "script") || json_get(builder->fields, "command"))
        return error_set(err, -EINVAL, "--wrap: there is a command already");
    size_t size = strlen(builder->wrap) + 16;
    char *script = arena_array(builder->arena, char, size);
    snprintf(script, size, "#!/bin/sh\n%s\n", builder->wrap);
    json_put_text(builder->fields, "script", script);
    put_name(builder, "wrap");
    return 0;
}

/* Whether a variable is named, without a value, in a list such as "A,B=c". */
static bool is_exported(const char *list, const char *name, size_t length)
{
    for (const char *at = list; at && *at;) {
        size_t part = strcspn(at, ",");
        if (part == length && strncmp(at, name, length) == 0)
            return true;
        at += part + (at[part] == ',');
    }
    return false;
}

static bool is_always_exported(const char *name, size_t length)
{
    return is_exported("HOME,LOGNAME,PATH,SHELL,USER", name, length);
}

/* Put the values that --export itself gives. */
static int put_exported_values(struct request_builder *builder, struct json *env,
                               struct error *err)
{
    char *save, *copy = arena_text(builder->arena, builder->exports);
    for (char *part = strtok_r(copy, ",", &save); part;
         part = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(part, '=');
        if (!equals)
            continue;
        *equals = '\0';
        if (!*part || !json_can_say(part) || !json_can_say(equals + 1))
            return error_set(err, -EINVAL, "--export: want NAME=value, in UTF-8");
        json_put_text(env, part, equals + 1);
    }
    return 0;
}

/* ALL is the default, as for sbatch.  A list excludes all other variables but a few. */
static int put_environment(struct request_builder *builder, const char *verb,
                           struct error *err)
{
    const char *list = builder->exports;
    bool all = !list || is_exported(list, "ALL", 3);
    const struct json *given = json_get(builder->fields, "env");
    if (given && !json_is_object(given))
        return 0; /* a mistake in a job file, found when the request is checked */
    struct json *env = json_new_object();
    uint32_t left_out = 0;
    for (char **variable = environ; *variable; variable++) {
        const char *equals = strchr(*variable, '=');
        size_t length = equals ? (size_t)(equals - *variable) : 0;
        if (length == 0 || (length == 1 && **variable == '_'))
            continue;
        if (!all && !is_always_exported(*variable, length) &&
            !is_exported(list, *variable, length))
            continue;
        char *name = memory_checked(strndup(*variable, length));
        if (json_can_say(*variable))
            json_put_text(env, name, equals + 1);
        else
            left_out++;
        free(name);
    }
    if (left_out && verb)
        fprintf(stderr, "berth %s: %u variables that are not UTF-8 are left out\n",
                verb, left_out);
    const char *key;
    const struct json *value;
    for (void *at = NULL; given && (at = json_member(given, at, &key, &value));)
        json_put(env, key, json_copy_of(value)); /* the job file takes precedence */
    int r = list ? put_exported_values(builder, env, err) : 0;
    if (r < 0)
        json_free(env);
    else
        json_put(builder->fields, "env", env);
    return r;
}

int request_source_read(struct request_builder *builder, const struct flags *flags,
                        const char *verb, struct error *err)
{
    int r = read_what_to_run(builder, flags, verb, err);
    for (uint32_t i = 0; i < flags->given_count && r == 0; i++)
        r = request_builder_set(builder, flags->given[i].flag->name,
                                flags->given[i].value, err);
    if (r == 0)
        r = put_wrapped_line(builder, err);
    if (r == 0 && builder->file)
        put_name(builder, base_name(builder->file));
    else if (r == 0 && flags->word_count > 0)
        put_name(builder, derive_name(flags->words, flags->word_count));
    if (r == 0)
        r = put_environment(builder, verb, err);
    return r;
}
