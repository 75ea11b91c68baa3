/* suggest.c - the nearest of a list of names, by edit distance. */
#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 40

static int fold_letter(char c)
{
    return tolower((unsigned char)c);
}

/*
 * Insertions, deletions, replacements and swaps of neighbours, ignoring case; long words
 * are cut.
 */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t m = strnlen(a, WORD_MAX);
    size_t n = strnlen(b, WORD_MAX);
    unsigned rows[3][WORD_MAX + 1];

    for (size_t j = 0; j <= n; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= m; i++) {
        unsigned *now = rows[i % 3];
        unsigned *last = rows[(i + 2) % 3];
        unsigned *before = rows[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned best =
                last[j - 1] + (fold_letter(a[i - 1]) != fold_letter(b[j - 1]));
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && fold_letter(a[i - 1]) == fold_letter(b[j - 2]) &&
                fold_letter(a[i - 2]) == fold_letter(b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[m % 3][n];
}

/* 0 is best; a name that contains the word, or starts it, is near at any length. */
static unsigned rank_name(const char *word, const char *name)
{
    unsigned d = edit_distance(word, name);
    if (*word && (strcasestr(name, word) || strncasecmp(word, name, strlen(name)) == 0))
        return d < 2 ? d : 2;
    return d;
}

const char *suggest_names(char *text, size_t size, const char *word,
                          const char *const *names)
{
    const char *best[2] = { NULL, NULL };
    unsigned far[2] = { 4, 4 }; /* no farther than three edits */
    if (strlen(word) < 4)
        far[0] = far[1] = 3;

    for (; *names; names++) {
        unsigned d = rank_name(word, *names);
        if (d < far[0]) {
            best[1] = best[0];
            far[1] = far[0];
            best[0] = *names;
            far[0] = d;
        } else if (d < far[1]) {
            best[1] = *names;
            far[1] = d;
        }
    }
    text[0] = '\0';
    if (best[0] && best[1] && far[1] == far[0])
        snprintf(text, size, " (did you mean '%s' or '%s'?)", best[0], best[1]);
    else if (best[0])
        snprintf(text, size, " (did you mean '%s'?)", best[0]);
    return text;
}
