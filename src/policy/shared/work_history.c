/* work_history.c - how much work finished jobs had, and what that says of others. */
#include "policy/shared/work_history.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

#define JOBS_ENOUGH 5 /* that have finished, for a guess from them         */
#define WAYS 4        /* places in the table where a record can be          */

/* Assumed of each class until there is history: log-normal, and how many jobs it counts as. */
static const struct prior {
    double median_s, sigma, count;
} priors[2] = { [CLASS_BE] = { 1800, 1.7, 4 }, [CLASS_TE] = { 180, 1.2, 4 } };

/* What jobs can have in common; the narrowest first. */
enum likeness { LIKE_NAME, LIKE_USER, LIKE_CLASS };

static uint32_t bin_of(double work_s)
{
    if (work_s <= 1)
        return 0;
    double bin = 2 * log2(work_s);
    return bin < WORK_BINS - 1 ? (uint32_t)bin : WORK_BINS - 1;
}

void work_history_init(struct work_history *history, struct arena *run)
{
    history->narrow = arena_array(run, struct work_record, WORK_RECORDS);
    history->guesses = arena_array(run, struct work_guess, WORK_GUESSES);
    for (uint32_t bin = 0; bin < WORK_BINS; bin++)
        history->middle_s[bin] = exp2(((double)bin + 0.5) / 2);
    for (uint32_t class = 0; class < 2; class ++) {
        const struct prior *prior = &priors[class];
        double sum = 0;
        float *count = history->classes[class].count;
        for (uint32_t bin = 0; bin < WORK_BINS; bin++) {
            double z = log(history->middle_s[bin] / prior->median_s) / prior->sigma;
            sum += count[bin] = (float)exp(-z * z / 2);
        }
        for (uint32_t bin = 0; bin < WORK_BINS; bin++)
            count[bin] *= (float)(prior->count / sum);
    }
}

void work_history_inherit(struct work_history *history, const struct work_history *from)
{
    memcpy(history->classes, from->classes, sizeof history->classes);
    memcpy(history->narrow, from->narrow, WORK_RECORDS * sizeof *history->narrow);
    memcpy(history->guesses, from->guesses, WORK_GUESSES * sizeof *history->guesses);
    history->finished_count = from->finished_count;
}

/* Hash of what these jobs have in common; 0: this one has no name, or no user. */
static uint64_t key_of(const struct job *job, enum likeness likeness)
{
    bool named = job->name || job->kind != KIND_NONE;
    if (likeness == LIKE_NAME ? !named : job->user == 0)
        return 0;
    uint64_t hash = hash_word(HASH_WORDS_START, (uint64_t)job->class << 32 | job->user);
    if (likeness == LIKE_NAME)
        hash = hash_word(hash, (uint64_t)job->kind << 32 | job->name);
    return hash | 1;
}

/* The record of that key, or else the one in its places that is without news for longest. */
static struct work_record *record_at(const struct work_history *history, uint64_t key)
{
    uint32_t first = (uint32_t)(hash_mix(key) % (WORK_RECORDS / WAYS)) * WAYS;
    struct work_record *oldest = &history->narrow[first];
    for (uint32_t i = 0; i < WAYS; i++) {
        struct work_record *record = &history->narrow[first + i];
        if (record->key == key)
            return record;
        oldest = record->newest < oldest->newest ? record : oldest;
    }
    return oldest;
}

/* The narrowest record with enough jobs. */
static const struct work_record *record_for(const struct work_history *history,
                                            const struct job *job,
                                            enum likeness *ret_likeness)
{
    for (enum likeness likeness = LIKE_NAME; likeness < LIKE_CLASS; likeness++) {
        uint64_t key = key_of(job, likeness);
        const struct work_record *record = key ? record_at(history, key) : NULL;
        *ret_likeness = likeness;
        if (record && record->key == key && record->jobs >= JOBS_ENOUGH)
            return record;
    }
    *ret_likeness = LIKE_CLASS;
    return &history->classes[job->class];
}

static void add_job(struct work_history *history, struct work_record *record,
                    uint32_t bin)
{
    record->count[bin]++;
    record->jobs++;
    record->newest = history->finished_count;
}

void work_history_count(struct work_history *history, const struct job *job)
{
    if (job->rate_best_per_s <= 0)
        return;
    uint32_t bin = bin_of(job->steps / job->rate_best_per_s);
    history->finished_count++;
    for (enum likeness likeness = LIKE_NAME; likeness < LIKE_CLASS; likeness++) {
        uint64_t key = key_of(job, likeness);
        if (!key)
            continue;
        struct work_record *record = record_at(history, key);
        if (record->key != key)
            *record = (struct work_record){ .key = key };
        add_job(history, record, bin);
    }
    add_job(history, &history->classes[job->class], bin);
}

const char *work_history_basis(const struct work_history *history,
                               const struct job *job, uint32_t *ret_count)
{
    static const char *const bases[] = { "its name and user", "its user", "its class" };
    enum likeness likeness;
    *ret_count = record_for(history, job, &likeness)->jobs;
    return bases[likeness];
}

/* One over the Gittins index; jobs of the class count beside a narrower record. */
static double guess_left_s(const struct work_history *history,
                           const struct work_record *record,
                           const struct work_record *class, double part, double done_s)
{
    double counts[WORK_BINS];
    double total = 0;
    double best = 0;
    double ended = 0;
    double spent_s = 0; /* by those that end */
    uint32_t first = bin_of(done_s);
    for (uint32_t bin = first & ~3u; bin < WORK_BINS;
         bin++) /* by vector instructions */
        counts[bin] = record->count[bin] + part * class->count[bin];
    for (uint32_t bin = first; bin < WORK_BINS; bin++)
        total += counts[bin];
    for (uint32_t bin = first; bin < WORK_BINS && total > 0; bin++) {
        double count = counts[bin];
        double middle_s = history->middle_s[bin];
        double after_s = middle_s - done_s;
        double end_s = after_s > 0.25 * middle_s ? after_s : 0.25 * middle_s;
        ended += count;
        spent_s += count * end_s;
        double all_s = spent_s + (total - ended) * end_s; /* grows from bin to bin */
        double index = ended / all_s;
        best = index > best ? index : best;
        if (total < 0.999 * best * all_s)
            break; /* no later bin can have a larger index */
    }
    return best > 0 ? 1 / best : done_s;
}

/* Where the guess from that record for a job that has done so much is remembered. */
static struct work_guess *guess_at(const struct work_history *history, uint64_t key,
                                   uint32_t class, double done_s)
{
    uint64_t bits;
    memcpy(&bits, &done_s, sizeof bits);
    return &history->guesses[hash_mix(key ^ class ^ bits) % WORK_GUESSES];
}

double work_history_left_s(const struct work_history *history, const struct job *job,
                           double done_s)
{
    enum likeness likeness;
    const struct work_record *record = record_for(history, job, &likeness);
    const struct work_record *class = &history->classes[job->class];
    uint64_t key = likeness == LIKE_CLASS ? 0 : record->key;
    struct work_guess *guess = guess_at(history, key, job->class, done_s);
    if (guess->jobs == class->jobs + 1 && guess->key == key &&
        guess->class == job->class && guess->done_s == done_s)
        return guess->left_s;
    double part = likeness == LIKE_CLASS
                      ? 0
                      : JOBS_ENOUGH / (class->jobs + priors[job->class].count);
    double left_s = guess_left_s(history, record, class, part, done_s);
    *guess = (struct work_guess){ key, done_s, left_s, class->jobs + 1, job->class };
    return left_s;
}
