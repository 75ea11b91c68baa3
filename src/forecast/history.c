/* history.c - what forecasts are made from. */
#include "forecast/history.h"

#include <assert.h>
#include <stdlib.h>

#include "base/grow.h"

/* A submission or an end that came while another thread read. */
struct history_entry {
    struct job job;
    bool ended;
    double work_s;
};

void history_init(struct forecast_history *history)
{
    *history = (struct forecast_history){ 0 };
    run_times_init(&history->times);
}

void history_release(struct forecast_history *history)
{
    run_times_release(&history->times);
    arrivals_release(&history->arrivals);
    free(history->aside);
    *history = (struct forecast_history){ 0 };
}

static void add_entry(struct forecast_history *history,
                      const struct history_entry *entry)
{
    if (entry->ended)
        run_times_add(&history->times, &entry->job, entry->work_s);
    else
        arrivals_add(&history->arrivals, &entry->job);
}

static void take_entry(struct forecast_history *history,
                       const struct history_entry *entry)
{
    if (history->frozen == 0) {
        add_entry(history, entry);
        return;
    }
    if (history->aside_count == HISTORY_ASIDE_MAX)
        return;
    history->aside = grow_array(history->aside, &history->aside_room,
                                history->aside_count + 1, sizeof *history->aside);
    history->aside[history->aside_count++] = *entry;
}

void history_submitted(struct forecast_history *history, const struct job *job)
{
    take_entry(history, &(struct history_entry){ .job = *job });
}

void history_ended(struct forecast_history *history, const struct job *job,
                   double work_s)
{
    take_entry(history,
               &(struct history_entry){ .job = *job, .ended = true, .work_s = work_s });
}

void history_freeze(struct forecast_history *history)
{
    history->frozen++;
}

void history_thaw(struct forecast_history *history)
{
    assert(history->frozen > 0);
    if (--history->frozen > 0)
        return;
    for (uint32_t i = 0; i < history->aside_count; i++)
        add_entry(history, &history->aside[i]);
    history->aside_count = 0;
}
