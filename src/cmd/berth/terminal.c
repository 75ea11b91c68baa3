/* terminal.c - text on the user's terminal: its width, colours, wrapping, a progress bar. */
#include "cmd/berth/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"

#define BAR_WIDTH 40
#define WRAP_MIN 24 /* fewest columns for a text beside another */
#define WRAP_INDENT 6

uint32_t terminal_text_length(const char *text)
{
    uint32_t length = 0;
    for (; *text; text++)
        length += ((unsigned char)*text & 0xc0) != 0x80;
    return length;
}

uint32_t terminal_width(FILE *file)
{
    struct winsize size;
    if (!isatty(fileno(file)))
        return 0;
    if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    return width > 0 && width < 10000 ? (uint32_t)width : 80;
}

bool terminal_has_colours(FILE *file)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(file)) && !(no && *no);
}

/* As setlocale() would choose the locale of characters. */
bool terminal_has_utf8(FILE *file)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *locale = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !(locale && *locale); i++)
        locale = getenv(names[i]);
    return isatty(fileno(file)) && locale &&
           (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}

void terminal_print_wrapped(const char *text, uint32_t used, FILE *file)
{
    uint32_t width = terminal_width(file);
    uint32_t indent = used;
    if (width && indent && width < indent + WRAP_MIN) { /* on the next line */
        indent = used = WRAP_INDENT;
        fprintf(file, "\n%*s", (int)indent, "");
    }
    while (*text) {
        size_t bytes = strcspn(text, " ");
        char word[512];
        snprintf(word, sizeof word, "%.*s", (int)bytes, text);
        uint32_t length = terminal_text_length(word);
        if (width && used > indent && used + 1 + length > width) {
            fprintf(file, "\n%*s", (int)indent, "");
            used = indent;
        } else if (used > indent) {
            fputc(' ', file);
            used++;
        }
        fputs(word, file);
        used += length;
        text += bytes;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

/*
 * Bytes of the character at 'text' if it controls the terminal, or the order in which it shows
 * a line; 0: it does neither.  Those from U+0080 to U+009F do what ESC and a letter do.
 */
static size_t count_control_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if ((c[0] > 0 && c[0] < 0x20) || c[0] == 0x7f)
        return 1;
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
        return 2;
    bool is_order = c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) ||
                                     (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
    return is_order ? 3 : 0;
}

void terminal_make_safe(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t count = count_control_bytes(from);
        *to++ = count > 0 ? '?' : *from;
        from += count > 0 ? count : 1;
    }
    *to = '\0';
}

void terminal_print_safely(const char *text)
{
    char *safe = memory_text(text);
    terminal_make_safe(safe);
    fputs(safe, stdout);
    free(safe);
}

void terminal_progress(void *context, double share)
{
    if (!isatty(STDERR_FILENO))
        return;
    char bar[BAR_WIDTH + 1];
    int full = (int)(share * BAR_WIDTH + 0.5);
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3.0f %%", bar, share * 100);
    fflush(stderr);
}

void terminal_progress_end(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
