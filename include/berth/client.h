/*
 * berth/client.h - what a training job tells the scheduler about itself.
 *
 * Safe to leave in a program that also runs without Berth: when no scheduler
 * started it, every call returns at once.  No call blocks, none prints, and
 * none ends the program.  A handle belongs to one thread.
 *
 *     struct berth_client *berth = berth_client_new();
 *     berth_client_total(berth, steps);
 *     for (; step < steps && !berth_client_must_stop(berth); step++)
 *         berth_client_report(berth, step, train(step));
 *     if (step < steps) {
 *         save(step);
 *         berth_client_saved(berth, step);
 *     }
 *     berth_client_free(berth);
 *     return step < steps ? BERTH_EXIT_SAVED : 0;
 */
#ifndef BERTH_CLIENT_H
#define BERTH_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit with this after a checkpoint that was asked for: "saved, put me back". */
#define BERTH_EXIT_SAVED 85

struct berth_client;

/* NULL only when memory has run out; every call below accepts that NULL. */
struct berth_client *berth_client_new(void);

/* Says the newest report if it was held back, and lets go. */
void berth_client_free(struct berth_client *client);

/*
 * Report progress, as often as once per iteration; only the newest report is sent, ten
 * times a second at first and once after 20 seconds.  Returns 0, or -EINVAL if 'loss' is not a finite number.
 */
int berth_client_report(struct berth_client *client, uint64_t iteration, double loss);

/* The same where there is no loss to speak of. */
void berth_client_step(struct berth_client *client, uint64_t iteration);

/* How many iterations there will be in all: from it comes the time that is left.
 * 0: unknown. */
void berth_client_total(struct berth_client *client, uint64_t iterations);

/*
 * A checkpoint of everything before 'iteration' is on disk: what is done from now
 * on is what a preemption would lose.
 */
void berth_client_saved(struct berth_client *client, uint64_t iteration);

/*
 * True once the scheduler wants the GPUs back.  Save your state and exit; after
 * the grace period you are killed.
 *
 * The same moment brings a SIGTERM, which would end a program that does not expect
 * it.  Under Berth the first call therefore catches that signal, if the program does not;
 * so ask once before the long work begins.
 */
bool berth_client_must_stop(const struct berth_client *client);

#ifdef __cplusplus
}
#endif
#endif
