/* source.c - batch scripts: reading them, and the flags written in them. */
#include "cmd/berth/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/draft.h"

#define WORDS_MAX 256 /* on a line */

static const struct flag draft_flags[] = { DRAFT_FLAGS, { 0 } };

int source_read(struct arena *arena, const char *path, const char **ret_text,
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
static const char *after_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || !isblank((unsigned char)line[length]))
        return NULL;
    return line + length;
}

/* The next line of a script's head, copied; NULL at its first command. */
static const char *head_line(const char **text, char *line, size_t size)
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

static bool run_by_shell(const char *text)
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

bool source_is_script(const char *text)
{
    if (strncmp(text, "#!", 2) != 0)
        return false;
    if (run_by_shell(text))
        return true;
    char line[1024];
    while (head_line(&text, line, sizeof line))
        if (after_word(line, "#SBATCH") || after_word(line, "#BERTH"))
            return true;
    return false;
}

/* A flag of ours by the word that names it, or NULL: "--time=5", "-t5", "--gpus". */
static const struct flag *flag_of(const char *word)
{
    size_t length = strcspn(word, "=") - 2;
    for (const struct flag *flag = draft_flags; flag->name; flag++)
        if (word[1] == '-' ? strncmp(word + 2, flag->name, length) == 0 &&
                                 flag->name[length] == '\0'
                           : flag->letter == word[1])
            return flag;
    return NULL;
}

/* Whether the word after this one is its value. */
static bool wants_next(const struct flag *flag, const char *word)
{
    if (!flag->value)
        return false;
    return word[1] == '-' ? !strchr(word, '=') : word[2] == '\0';
}

struct lines {
    struct draft *draft;
    const char *file;
    uint32_t line;
    struct buf passed; /* names of what is passed over */
};

static int take(void *context, const struct flag *flag, const char *value,
                struct error *err)
{
    struct lines *lines = context;
    return draft_set(lines->draft, flag->name, value, err);
}

static void pass_over(struct lines *lines, const char *word)
{
    char name[40];
    snprintf(name, sizeof name, "%.*s", word[1] == '-' ? (int)strcspn(word, "=") : 2,
             word);
    if (lines->passed.count > 0 && strstr(lines->passed.bytes, name))
        return;
    buf_print(&lines->passed, "%s%s", lines->passed.count > 0 ? ", " : "", name);
}

/* Leave out what we do not know, with its value; returns how many words are left. */
static uint32_t keep_known(struct lines *lines, char **words, uint32_t count)
{
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (words[i][0] != '-' || words[i][1] == '\0')
            continue; /* the value of one that was passed over */
        const struct flag *flag = flag_of(words[i]);
        if (!flag) {
            pass_over(lines, words[i]);
            continue;
        }
        words[kept++] = words[i];
        if (wants_next(flag, words[i]) && i + 1 < count)
            words[kept++] = words[++i];
    }
    return kept;
}

static int read_line(struct lines *lines, const char *text, bool lenient,
                     struct error *err)
{
    char *words[WORDS_MAX + 2] = { (char[]){ "script" } };
    uint32_t count, first;
    struct error inner;
    int r = form_words(lines->draft->arena, text, words + 1, WORDS_MAX, &count, &inner);
    count++;
    if (r == 0) {
        count = lenient ? keep_known(lines, words, count) : count;
        words[count] = NULL;
        r = flags_walk(draft_flags, false, (int)count, words, take, lines, &first,
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

static int read_lines(struct lines *lines, const char *text, const char *word,
                      bool lenient, struct error *err)
{
    char line[4096];
    lines->line = 0;
    while (head_line(&text, line, sizeof line)) {
        lines->line++;
        const char *rest = after_word(line, word);
        int r = rest ? read_line(lines, rest, lenient, err) : 0;
        if (r < 0)
            return r;
        if (rest && lenient) /* it was written for Slurm, and may read its names */
            json_put_flag(lines->draft->fields, "slurm_names", true);
    }
    return 0;
}

int source_lines(struct draft *draft, const char *text, const char *file,
                 const char *who, struct error *err)
{
    struct lines lines = { .draft = draft, .file = file };
    buf_init(&lines.passed, 1000);
    int r = read_lines(&lines, text, "#SBATCH", true, err);
    if (r == 0)
        r = read_lines(&lines, text, "#BERTH", false, err);
    if (r == 0 && lines.passed.count > 0 && who)
        fprintf(stderr, "berth %s: %s: passed over in #SBATCH lines: %s\n", who, file,
                lines.passed.bytes);
    buf_release(&lines.passed);
    return r;
}
