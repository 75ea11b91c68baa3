/* sharing.c - how fast two jobs run that share their accelerators. */
#include "model/sharing.h"

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

bool sharing_rates(const struct throughput *table, const struct job *a,
                   const struct job *b, uint32_t type, uint32_t gpus, bool spread,
                   double ret_rates[2])
{
    if (throughput_pair(table, a->kind, b->kind, type, gpus, spread, ret_rates))
        return ret_rates[0] > 0;
    const struct sharing *of_a = find_model(table, a, type);
    const struct sharing *of_b = find_model(table, b, type);
    double kept[2] = { SHARED_SPEED, SHARED_SPEED };
    ret_rates[0] = ret_rates[1] = 0;
    if (of_a && of_b && !apply_model(of_a, of_b, gpus, kept))
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
           (find_model(table, a, type) && find_model(table, b, type));
}
