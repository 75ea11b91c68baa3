/* error.c - a code and a sentence. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, int code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return code;
}
