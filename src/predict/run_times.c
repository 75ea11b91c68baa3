/* run_times.c - how long finished jobs ran, and samples of that for others. */
#include "predict/run_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/sort.h"
#include "model/job.h"

#define KEYED RUN_BASIS_ALL /* bases that have a key */
#define LONGEST 100.0       /* times what it has done that a job is expected to run */
#define LEAST_S 1e-3
#define SLOPE_PRIOR 1.0 /* squares of log(declared work) that a slope of 1 stands for */
#define VISITED_MAX (4 * RUN_TIMES_OF_KEY) /* records without a ratio are passed over */

struct run_record {
    float work_s;
    float ratio;           /* to the declared work; 0: none was declared */
    uint64_t key[KEYED];   /* 0: it has none, as a job without a user */
    uint64_t older[KEYED]; /* number of the record of that key before; 0: none */
};

void run_times_init(struct run_times *times)
{
    *times = (struct run_times){ 0 };
    times->records = memory_checked(calloc(RUN_TIMES_RECORDS, sizeof *times->records));
}

void run_times_release(struct run_times *times)
{
    free(times->records);
    map_release(&times->newest);
    *times = (struct run_times){ 0 };
}

double run_times_work_s(const struct job *job, double steps)
{
    return steps / (job->rate_best_per_s > 0 ? job->rate_best_per_s : 1);
}

static uint64_t key_of(const struct job *job, enum run_basis basis)
{
    bool named = job->name || job->kind != KIND_NONE;
    if ((basis == RUN_BASIS_NAME && !named) || (basis == RUN_BASIS_USER && !job->user))
        return 0;
    uint64_t hash = hash_word(HASH_WORDS_START, (uint64_t)basis << 32 | job->gpus);
    if (basis <= RUN_BASIS_USER)
        hash = hash_word(hash, job->user);
    if (basis == RUN_BASIS_NAME)
        hash = hash_word(hash, (uint64_t)job->kind << 32 | job->name);
    return hash | 1;
}

static struct run_record *record_at(const struct run_times *times, uint64_t number)
{
    return &times->records[number % RUN_TIMES_RECORDS];
}

/* Still in the ring. */
static bool is_kept(const struct run_times *times, uint64_t number)
{
    return number > 0 && number + RUN_TIMES_RECORDS > times->count;
}

/* The oldest record makes room: keys of which it was the newest are known no more. */
static void drop_record(struct run_times *times, uint32_t place)
{
    const struct run_record *record = &times->records[place];
    for (uint32_t basis = 0; basis < KEYED; basis++)
        if (record->key[basis] && map_find(&times->newest, record->key[basis]) == place)
            map_remove(&times->newest, record->key[basis]);
}

/* The number of the record at a place. */
static uint64_t number_at(const struct run_times *times, uint32_t place)
{
    uint64_t back = (times->count - place) % RUN_TIMES_RECORDS;
    return times->count - back;
}

void run_times_add(struct run_times *times, const struct job *job, double work_s)
{
    if (!(work_s >= 0 && work_s < 1e12))
        return;
    uint64_t number = times->count + 1;
    uint32_t place = (uint32_t)(number % RUN_TIMES_RECORDS);
    if (number > RUN_TIMES_RECORDS)
        drop_record(times, place);
    double declared_s = run_times_work_s(job, job->steps_total);
    struct run_record record = { .work_s = (float)work_s };
    if (declared_s > 0)
        record.ratio = (float)fmax(work_s / declared_s, 1e-9);
    for (uint32_t basis = 0; basis < KEYED; basis++) {
        record.key[basis] = key_of(job, basis);
        if (!record.key[basis])
            continue;
        uint32_t before = map_find(&times->newest, record.key[basis]);
        record.older[basis] = before == MAP_NONE ? 0 : number_at(times, before);
        map_put(&times->newest, record.key[basis], place);
    }
    times->records[place] = record;
    times->count = number;
}

/* The newest values of one basis, the newest first; with 'ret_works' the run times as well. */
static uint32_t collect(const struct run_times *times, const struct job *job,
                        bool ratios, enum run_basis basis, double *values,
                        double *ret_works)
{
    uint32_t count = 0;
    uint64_t number = times->count;
    if (basis < KEYED) {
        uint64_t key = key_of(job, basis);
        uint32_t place = key ? map_find(&times->newest, key) : MAP_NONE;
        number = place == MAP_NONE ? 0 : number_at(times, place);
    }
    for (uint32_t visited = 0;
         is_kept(times, number) && count < RUN_TIMES_OF_KEY && visited < VISITED_MAX;
         visited++) {
        const struct run_record *record = record_at(times, number);
        double value = ratios ? (double)record->ratio : (double)record->work_s;
        if (!ratios || value > 0) {
            if (ret_works)
                ret_works[count] = (double)record->work_s;
            values[count++] = value;
        }
        number = basis < KEYED ? record->older[basis] : number - 1;
    }
    return count;
}

static void reverse(double *values, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        double swap = values[i];
        values[i] = values[count - 1 - i];
        values[count - 1 - i] = swap;
    }
}

/* Of the narrowest basis that is known well enough, oldest first. */
static uint32_t list_newest(const struct run_times *times, const struct job *job,
                            bool ratios, double *values, double *ret_works,
                            enum run_basis *ret_basis)
{
    for (enum run_basis basis = RUN_BASIS_NAME; basis < RUN_BASIS_COUNT; basis++) {
        uint32_t count = collect(times, job, ratios, basis, values, ret_works);
        *ret_basis = basis;
        if (count < RUN_TIMES_ENOUGH)
            continue;
        reverse(values, count);
        if (ret_works)
            reverse(ret_works, count);
        return count;
    }
    return 0;
}

uint32_t run_times_list(const struct run_times *times, const struct job *job,
                        bool ratios, double ret_values[RUN_TIMES_OF_KEY],
                        enum run_basis *ret_basis)
{
    return list_newest(times, job, ratios, ret_values, NULL, ret_basis);
}

/* --- run times by declared work ------------------------------------------------------ */

/*
 * The slope of log(run time) over log(declared work) among these jobs, from 0 to 1: below 1 where
 * errors of what is declared are not small beside its differences.  Few jobs leave it near 1.
 */
static double find_slope(const double *works, const double *ratios, uint32_t count)
{
    double mean_x = 0, mean_y = 0, sum_xx = 0, sum_xy = 0;
    for (uint32_t i = 0; i < count; i++) {
        double y = log(fmax(works[i], LEAST_S));
        mean_y += y / count;
        mean_x += (y - log(ratios[i])) / count;
    }
    for (uint32_t i = 0; i < count; i++) {
        double y = log(fmax(works[i], LEAST_S));
        double x = y - log(ratios[i]) - mean_x;
        sum_xx += x * x;
        sum_xy += x * (y - mean_y);
    }
    return fmin(fmax((sum_xy + SLOPE_PRIOR) / (sum_xx + SLOPE_PRIOR), 0), 1);
}

/* Ratios to the declared work become ratios to that power of it. */
static double scale_ratios(double *values, const double *works, uint32_t count)
{
    double slope = find_slope(works, values, count);
    for (uint32_t i = 0; i < count; i++)
        values[i] = works[i] / pow(fmax(works[i], LEAST_S) / values[i], slope);
    return slope;
}

/* --- samples ---------------------------------------------------------------------- */

void run_sampler_init(struct run_sampler *sampler, const struct run_times *times,
                      struct arena *arena)
{
    *sampler = (struct run_sampler){ .times = times,
                                     .arena = arena,
                                     .all = { RUN_TIMES_NONE, RUN_TIMES_NONE } };
    run_sampler_begin(sampler, 1);
}

void run_sampler_release(struct run_sampler *sampler)
{
    free(sampler->lists);
    map_release(&sampler->keys);
}

static uint32_t add_list(struct run_sampler *sampler, const double *values,
                         uint32_t count, enum run_basis basis, bool ratios,
                         double slope)
{
    double *kept = arena_array(sampler->arena, double, 2 * (size_t)count + 1);
    double scratch[RUN_TIMES_OF_KEY];
    memcpy(kept, values, count * sizeof *kept);
    memcpy(kept + count, values, count * sizeof *kept);
    sort_numbers(kept + count, scratch, count);
    uint32_t at = sampler->list_count++;
    sampler->lists =
        grow_array(sampler->lists, &sampler->list_room, at + 1, sizeof *sampler->lists);
    sampler->lists[at] = (struct run_list){ .values = kept,
                                            .sorted = kept + count,
                                            .count = count,
                                            .basis = basis,
                                            .ratios = ratios,
                                            .slope = slope };
    return at;
}

uint32_t run_sampler_enter(struct run_sampler *sampler, const struct job *job)
{
    double values[RUN_TIMES_OF_KEY];
    double works[RUN_TIMES_OF_KEY];
    double slope = 0;
    enum run_basis basis = RUN_BASIS_ALL;
    struct job plain = { .gpus = job->gpus, .kind = KIND_NONE };
    if (sampler->sizes_only)
        job = &plain;
    bool ratios = job->steps_total > 0;
    uint64_t key = hash_word(HASH_WORDS_START, (uint64_t)job->user << 32 | job->gpus);
    key = hash_word(key, (uint64_t)job->kind << 32 | job->name) ^ ratios;
    uint32_t at = map_find(&sampler->keys, key);
    if (at != MAP_NONE)
        return sampler->lists[at].count > 0 ? at : RUN_TIMES_NONE;
    uint32_t count = 0;
    if (ratios)
        count = list_newest(sampler->times, job, true, values, works, &basis);
    if (count > 0) {
        slope = scale_ratios(values, works, count);
    } else { /* no job has declared its work so far, or this one does not */
        ratios = false;
        count = run_times_list(sampler->times, job, false, values, &basis);
    }
    at = add_list(sampler, values, count, basis, ratios, slope);
    map_put(&sampler->keys, key, at);
    return count > 0 ? at : RUN_TIMES_NONE;
}

void run_sampler_begin(struct run_sampler *sampler, uint64_t seed)
{
    sampler->seed = seed;
    rng_init(&sampler->rng, seed, "run times");
}

/* How many values are larger than 'least'. */
static uint32_t count_larger(const struct run_list *list, double least)
{
    uint32_t low = 0;
    uint32_t high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->sorted[middle] > least)
            high = middle;
        else
            low = middle + 1;
    }
    return list->count - low;
}

/* Of all jobs, whatever their size. */
static const struct run_list *list_of_all(struct run_sampler *sampler, bool ratios)
{
    double values[RUN_TIMES_OF_KEY];
    double works[RUN_TIMES_OF_KEY];
    if (sampler->all[ratios] == RUN_TIMES_NONE) {
        uint32_t count =
            collect(sampler->times, NULL, ratios, RUN_BASIS_ALL, values, works);
        double slope = ratios ? scale_ratios(values, works, count) : 0;
        sampler->all[ratios] =
            add_list(sampler, values, count, RUN_BASIS_ALL, ratios, slope);
    }
    return &sampler->lists[sampler->all[ratios]];
}

/* What a value of the list is multiplied by, for the seconds of work of this job. */
static double unit_of(const struct run_list *list, const struct job *job)
{
    return list->ratios ? pow(fmax(run_times_work_s(job, job->steps_total), LEAST_S),
                              list->slope)
                        : 1;
}

/*
 * More than 'done_s': one of the list's, if there are enough that are, else one of all jobs.  Where
 * no history says more, a job is as likely as not to run as long again as it has.
 */
static double draw_longer(struct run_sampler *sampler, uint32_t at,
                          const struct job *job, double done_s)
{
    const struct run_list *list = &sampler->lists[at];
    double unit_s = unit_of(list, job);
    uint32_t larger = count_larger(list, done_s / unit_s);
    if (larger < RUN_TIMES_ENOUGH) {
        list = list_of_all(sampler, list->ratios);
        unit_s = unit_of(list, job);
        larger = count_larger(list, done_s / unit_s);
    }
    if (larger >= RUN_TIMES_ENOUGH)
        return unit_s *
               list->sorted[list->count - 1 - rng_below(&sampler->rng, larger)];
    return done_s * fmin(1 / (1 - rng_unit(&sampler->rng)), LONGEST);
}

/* What the next of the jobs submitted together gets. */
static double draw_next(struct run_sampler *sampler, struct run_list *list)
{
    if (list->seed != sampler->seed) {
        list->seed = sampler->seed;
        list->taken = 0;
        list->first = rng_below(&sampler->rng, list->count);
    }
    return list->values[(list->first + list->taken++) % list->count];
}

double run_sampler_draw(struct run_sampler *sampler, uint32_t at, const struct job *job,
                        double done_s)
{
    struct run_list *list = &sampler->lists[at];
    double work_s = done_s > 0 ? draw_longer(sampler, at, job, done_s)
                               : draw_next(sampler, list) * unit_of(list, job);
    return fmax(work_s, done_s + LEAST_S);
}

const char *run_list_basis(const struct run_list *list)
{
    static const char *const names[] = { "name", "user", "size", "all" };
    return list->ratios ? "estimate" : names[list->basis];
}
