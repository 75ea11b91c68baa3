/* terminal.h - text on the user's terminal: its width, colours, wrapping, a progress bar. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Columns of the terminal that 'file' is, or 0 if it is none. */
uint32_t terminal_width(FILE *file);

/* Whether to use colours: 'file' is a terminal, and NO_COLOR is not set. */
bool terminal_has_colours(FILE *file);

/* Whether an en dash is understood: 'file' is a terminal, and the locale has UTF-8. */
bool terminal_has_utf8(FILE *file);

/* Characters of a text in UTF-8. */
uint32_t terminal_text_length(const char *text);

/* Print a text to the end of the line, broken between words where the terminal ends; 'used'
 * columns of the line are taken already. */
void terminal_print_wrapped(const char *text, uint32_t used, FILE *file);

/*
 * A text that may come from another user: characters that control the terminal become '?', and
 * so do those that turn the order of a line around.
 */
void terminal_make_safe(char *text);
void terminal_print_safely(const char *text);

/* Draw a progress bar on stderr, if that is a terminal; 'context' is ignored. */
void terminal_progress(void *context, double share);
void terminal_progress_end(void);
