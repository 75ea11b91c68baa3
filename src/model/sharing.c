/* sharing.c - how fast two jobs run that share their accelerators. */
#include "model/sharing.h"

#include <math.h>

#include "base/hash.h"
#include "model/pair_table.h"
#include "model/rate_table.h"
#include "model/throughput.h"

#define MEMORY_ALL 100 /* percent */

static const struct sharing *find_model(const struct throughput *table,
                                        const struct job *job, uint32_t type)
{
    if (job->kind == KIND_NONE || type >= TYPES_MAX)
        return NULL;
    const struct sharing *known = &table->rows[job->kind].sharing[type];
    return known->memory > 0 ? known : NULL;
}

/* What each keeps of its rate alone, by the model; false if they must not share. */
static bool apply_model(const struct sharing *a, const struct sharing *b, uint32_t gpus,
                        double ret_kept[2])
{
    if (gpus > 1 || a->memory + b->memory > MEMORY_ALL)
        return false;
    ret_kept[0] = 1 / (1 + a->sensitivity * b->pressure);
    ret_kept[1] = 1 / (1 + b->sensitivity * a->pressure);
    return true;
}

/* --- rules of consent ----------------------------------------------------------------- */

static bool fits_memory(const struct sharing_rules *rules, const struct job *a,
                        const struct job *b, uint32_t type)
{
    uint64_t room = type < TYPES_MAX ? rules->gpu_mib[type] : 0;
    uint64_t need = (uint64_t)a->gpu_mib + b->gpu_mib + rules->reserve_mib;
    return room == 0 || (a->gpu_mib > 0 && b->gpu_mib > 0 && need <= room);
}

/* SHARING_MAY: the rules let them. */
static enum sharing_obstacle find_rule(const struct throughput *table,
                                       const struct job *a, const struct job *b,
                                       uint32_t type)
{
    const struct sharing_rules *rules = &table->rules;
    if (!rules->by_consent)
        return SHARING_MAY;
    if (rules->forbidden)
        return SHARING_FORBIDDEN;
    if (!a->shares || !b->shares)
        return SHARING_NO_CONSENT;
    if (!rules->across_users && a->user != b->user)
        return SHARING_OTHER_USER;
    if (type >= TYPES_MAX || (rules->unshared >> type & 1))
        return SHARING_ONE_PROCESS;
    return fits_memory(rules, a, b, type) ? SHARING_MAY : SHARING_NO_MEMORY;
}

bool sharing_is_measured_alone(const struct throughput *table, const struct job *job,
                               uint32_t type)
{
    if (!job->learned || !table->learned || type >= TYPES_MAX)
        return false;
    const struct rate_kind *kind = &table->learned->kinds[job->learned - 1];
    return kind->basis[type] == RATE_MEASURED && (kind->steady >> type & 1);
}

/* --- learned kinds ---------------------------------------------------------------------- */

static const struct pair_row *find_row(const struct throughput *table,
                                       const struct job *job, const struct job *beside,
                                       uint32_t type)
{
    if (!table->beside || !table->learned || !job->learned || !beside->learned)
        return NULL;
    const struct pair_row *row =
        pair_table_find(table->beside, table->learned->kinds[job->learned - 1].hash,
                        table->learned->kinds[beside->learned - 1].hash, type);
    return row && row->count >= PAIR_SURE ? row : NULL;
}

/*
 * What each of two keeps of which nothing more is known.  Those that take turns keep all if both
 * together are busy for less than all of the time, else their part of it; those that compute at
 * once may keep more.
 */
static double untried_part(const struct throughput *table, const struct job *a,
                           const struct job *b, uint32_t type)
{
    if (!table->learned || !a->learned || !b->learned || type >= TYPES_MAX)
        return SHARED_SPEED;
    double of_a = (double)table->learned->kinds[a->learned - 1].busy[type];
    double of_b = (double)table->learned->kinds[b->learned - 1].busy[type];
    if (!(of_a > 0 && of_b > 0))
        return SHARED_SPEED;
    double kept = of_a + of_b > 1 ? 1 / (of_a + of_b) : 1;
    return table->rules.overlaps && kept < SHARED_SPEED ? SHARED_SPEED : kept;
}

/* What is expected of a job beside another; false: nothing more than of any. */
static bool find_estimate(const struct throughput *table, const struct job *job,
                          const struct job *beside, uint32_t type,
                          struct pair_estimate *ret_estimate)
{
    if (!table->beside || !table->learned || !job->learned || !beside->learned ||
        type >= TYPES_MAX)
        return false;
    const struct rate_kind *kinds = table->learned->kinds;
    return pair_table_estimate(table->beside, kinds[job->learned - 1].hash,
                               kinds[beside->learned - 1].hash, type, ret_estimate);
}

struct sharing_part sharing_part(const struct throughput *table, const struct job *job,
                                 const struct job *beside, uint32_t type)
{
    const struct pair_row *row = find_row(table, job, beside, type);
    if (row)
        return (struct sharing_part){ SHARING_MEASURED, row->kept, row->kept };
    struct pair_estimate estimate;
    double untried = untried_part(table, job, beside, type);
    if (!find_estimate(table, job, beside, type, &estimate))
        return (struct sharing_part){ SHARING_UNKNOWN, untried, 1 };
    if (!estimate.sure)
        return (struct sharing_part){ SHARING_ESTIMATED, fmax(estimate.kept, untried),
                                      1 };
    return (struct sharing_part){ SHARING_ESTIMATED, estimate.kept, estimate.high };
}

/* What each keeps, as far as anything tells; false if that is not worth it. */
static bool apply_learned(const struct throughput *table, const struct job *a,
                          const struct job *b, uint32_t type, double ret_kept[2])
{
    struct sharing_part parts[2] = { sharing_part(table, a, b, type),
                                     sharing_part(table, b, a, type) };
    for (uint32_t i = 0; i < 2; i++)
        if (parts[i].basis != SHARING_UNKNOWN)
            ret_kept[i] = parts[i].kept;
    bool both =
        (parts[0].basis == SHARING_MEASURED) == (parts[1].basis == SHARING_MEASURED);
    return !both || parts[0].most + parts[1].most >= SHARED_WORTH;
}

bool sharing_rates(const struct throughput *table, const struct job *a,
                   const struct job *b, uint32_t type, uint32_t gpus, bool spread,
                   double ret_rates[2])
{
    ret_rates[0] = ret_rates[1] = 0;
    if (find_rule(table, a, b, type) != SHARING_MAY)
        return false;
    if (throughput_pair(table, a->kind, b->kind, type, gpus, spread, ret_rates))
        return ret_rates[0] > 0;
    const struct sharing *of_a = find_model(table, a, type);
    const struct sharing *of_b = find_model(table, b, type);
    double untried = untried_part(table, a, b, type);
    double kept[2] = { untried, untried };
    ret_rates[0] = ret_rates[1] = 0;
    if (of_a && of_b && !apply_model(of_a, of_b, gpus, kept))
        return false;
    if (!apply_learned(table, a, b, type, kept))
        return false;
    double rate_a = throughput_rate(table, a, type, gpus, spread) * kept[0];
    double rate_b = throughput_rate(table, b, type, gpus, spread) * kept[1];
    if (!(rate_a > 0 && rate_b > 0))
        return false;
    ret_rates[0] = rate_a;
    ret_rates[1] = rate_b;
    return true;
}

bool sharing_is_known(const struct throughput *table, const struct job *a,
                      const struct job *b, uint32_t type, uint32_t gpus)
{
    double rates[2];
    return throughput_pair(table, a->kind, b->kind, type, gpus, false, rates) ||
           (find_model(table, a, type) && find_model(table, b, type)) ||
           (table->rules.by_consent && sharing_is_measured_alone(table, a, type) &&
            sharing_is_measured_alone(table, b, type));
}

enum sharing_obstacle sharing_obstacle(const struct throughput *table,
                                       const struct job *a, const struct job *b,
                                       uint32_t type, uint32_t gpus)
{
    double rates[2];
    enum sharing_obstacle obstacle = find_rule(table, a, b, type);
    if (obstacle != SHARING_MAY)
        return obstacle;
    if (!sharing_is_known(table, a, b, type, gpus))
        return SHARING_NOT_KNOWN;
    return sharing_rates(table, a, b, type, gpus, false, rates) ? SHARING_MAY
                                                                : SHARING_HARMFUL;
}

bool sharing_is_alike(const struct throughput *table, const struct job *a,
                      const struct job *b)
{
    if (!table->rules.by_consent || (!a->shares && !b->shares))
        return true;
    return a->shares == b->shares && a->learned == b->learned &&
           a->gpu_mib == b->gpu_mib &&
           (table->rules.across_users || a->user == b->user);
}

uint64_t sharing_hash(const struct throughput *table, const struct job *job)
{
    if (!table->rules.by_consent || !job->shares)
        return 0;
    uint64_t user = table->rules.across_users ? 0 : (uint64_t)job->user << 32;
    return hash_mix(hash_mix(user | job->gpu_mib) ^ ((uint64_t)job->learned + 1));
}
