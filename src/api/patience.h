/*
 * patience.h - waiting until berthd has room for one more request.
 *
 * berthd answers a user that is at a limit which passes, of connections or of submissions a
 * second, with "retry_after_s".  Many commands of one user at once then come back one by one:
 * the delay doubles from try to try up to two seconds, and a random part keeps them from coming
 * back together.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_S 60 /* for commands that do something and end */

struct patience {
    double seconds; /* in all; 0: never wait, INFINITY: as long as it takes */

    /*
     * Optional.  Called before each delay and several times a second during it, with the
     * sentence of the refusal; false: give up.
     */
    bool (*wait)(void *context, const char *sentence);
    void *context;

    int64_t since_ns; /* the first refusal; 0: none yet */
    double delay_s;   /* the last one, without its random part */
};

/* A new request: nothing was refused yet. */
void patience_begin(struct patience *patience);

/* Wait before the next try; false: give up. */
bool patience_wait(struct patience *patience, const char *sentence);
