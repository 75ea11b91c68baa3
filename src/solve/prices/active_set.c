/*
 * active_set.c - the jobs with a choice that still depends on the prices.
 *
 * The convex due of a pinned job is replaced by its chord over the range of levels,
 * which gives the job no less than its due and is a straight line.
 */
#include "solve/prices/active_set.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"

#define PIN_NONE UINT16_MAX
#define SURE 1e-12 /* a comparison is sure when it holds by this part of its terms */

void active_set_init(struct active_set *set, struct arena *arena,
                     const struct job_batch *jobs)
{
    *set = (struct active_set){ .type_count = jobs->type_count, .jobs = jobs };
    batch_init(&set->active, arena, jobs->type_count, jobs->max);
    set->slot = arena_array(arena, uint32_t, jobs->max);
    set->place = arena_array(arena, uint32_t, jobs->max);
    set->pin = arena_array(arena, uint16_t, jobs->max);
}

static void set_room(struct active_set *set, const double *capacity, double part)
{
    for (uint32_t t = 0; t < set->type_count; t++) {
        set->open[t] = capacity[t] > 0;
        set->room[t] = capacity[t] * part;
    }
}

static void forget_pinned(struct active_set *set)
{
    memset(set->pinned_base, 0, sizeof set->pinned_base);
    memset(set->pinned_slope, 0, sizeof set->pinned_slope);
}

void active_set_take_all(struct active_set *set, enum batch_due due,
                         const double *capacity)
{
    set->due = due;
    set->all_active = true;
    set->has_box = false;
    set->sample_shift = 0;
    set_room(set, capacity, 1);
    forget_pinned(set);
}

/* What a pinned job is due: at + by z. */
struct affine {
    double at, by;
};

static struct affine due_chord(const struct active_set *set, double bend)
{
    if (set->due == DUE_LINEAR)
        return (struct affine){ 0, 1 };
    const struct price_box *box = &set->box;
    double low = batch_due(set->due, bend, box->z_low);
    double high = batch_due(set->due, bend, box->z_high);
    double by = (high - low) / (box->z_high - box->z_low);
    return (struct affine){ low - by * box->z_low, by };
}

/* The shares of a pinned job as lines in z; the fast one is nothing for one type. */
static void pinned_shares(const struct active_set *set, const double *at, uint32_t slow,
                          uint32_t fast, struct affine *ret_slow,
                          struct affine *ret_fast)
{
    struct affine due = due_chord(set, batch_bend(set->jobs, at));
    double i = at[slow * BATCH_LANES];
    *ret_slow = (struct affine){ i * due.at, i * due.by };
    *ret_fast = (struct affine){ 0, 0 };
    if (fast == slow)
        return;
    double j = at[fast * BATCH_LANES], part = j / (i - j);
    *ret_fast = (struct affine){ part * (i * due.at - 1), part * i * due.by };
    *ret_slow = (struct affine){ 1 - ret_fast->at, -ret_fast->by };
}

static void count_pinned(struct active_set *set, const double *at, uint16_t pin,
                         double sign)
{
    uint32_t slow = pin & 0xff, fast = pin >> 8;
    double gang = sign * batch_gang(set->jobs, at);
    struct affine slow_line, fast_line;
    pinned_shares(set, at, slow, fast, &slow_line, &fast_line);
    set->pinned_base[slow] += gang * slow_line.at;
    set->pinned_slope[slow] += gang * slow_line.by;
    set->pinned_base[fast] += gang * fast_line.at;
    set->pinned_slope[fast] += gang * fast_line.by;
}

/*
 * On one type at all prices of the box: PIN_NONE where another may be cheaper, or where
 * that type alone is too slow: then it is 'short', and may be pinned to two.
 */
static uint16_t pin_single(const struct active_set *set, const double *at,
                           double due_high, bool *ret_short)
{
    const struct price_box *box = &set->box;
    uint32_t best = 0;
    double cost = INFINITY;
    for (uint32_t t = 0; t < set->type_count; t++) {
        double most = box->high[t] * at[t * BATCH_LANES];
        if (!set->open[t] || most >= cost)
            continue;
        best = t;
        cost = most;
    }
    *ret_short = due_high * at[best * BATCH_LANES] > 1;
    if (*ret_short)
        return PIN_NONE;
    cost *= 1 + SURE;
    for (uint32_t t = 0; t < set->type_count; t++)
        if (t != best && set->open[t] && !(box->low[t] * at[t * BATCH_LANES] > cost))
            return PIN_NONE;
    return (uint16_t)(best | best << 8);
}

/* Would type q never pay beside the pair?  Its reduced cost, at the worst corner. */
static bool never_pays(const struct price_box *box, const double *at, uint32_t slow,
                       uint32_t fast, uint32_t q)
{
    double slow_rate = 1 / at[slow * BATCH_LANES];
    double along = (1 / at[q * BATCH_LANES] - slow_rate) /
                   (1 / at[fast * BATCH_LANES] - slow_rate);
    double by_fast = -along, by_slow = along - 1;
    double a = by_fast * (by_fast > 0 ? box->low[fast] : box->high[fast]);
    double b = by_slow * (by_slow > 0 ? box->low[slow] : box->high[slow]);
    return box->low[q] + a + b > SURE * (fabs(a) + fabs(b));
}

/* On the same two types at all prices of the box and all levels of its range. */
static uint16_t pin_pair(const struct active_set *set, const double *at, double due_low,
                         double due_high)
{
    const struct price_box *box = &set->box;
    double middle[BATCH_TYPES_MAX];
    for (uint32_t t = 0; t < set->type_count; t++)
        middle[t] = set->open[t] ? 0.5 * (box->low[t] + box->high[t]) : BATCH_CLOSED;
    struct batch_choice choice = batch_choose(set->jobs, at, middle, due_high);
    uint32_t slow = choice.slow, fast = choice.fast;
    if (slow == fast)
        return PIN_NONE;
    double i = at[slow * BATCH_LANES], j = at[fast * BATCH_LANES];
    if (due_low * i < 1 || due_high * j > 1 ||
        !(box->low[fast] * j > box->high[slow] * i * (1 + SURE)))
        return PIN_NONE;
    for (uint32_t q = 0; q < set->type_count; q++)
        if (q != slow && q != fast && set->open[q] &&
            at[q * BATCH_LANES] < BATCH_NEVER && !never_pays(box, at, slow, fast, q))
            return PIN_NONE;
    return (uint16_t)(slow | fast << 8);
}

static uint16_t choose_pin(const struct active_set *set, const double *at)
{
    if (!set->has_box)
        return PIN_NONE;
    double bend = batch_bend(set->jobs, at);
    if (set->due == DUE_CONVEX && !(bend * set->box.z_high < 1))
        return PIN_NONE; /* it can never get there: the range ends beyond its own limit */
    double due_high = batch_due(set->due, bend, set->box.z_high);
    bool short_of;
    uint16_t pin = pin_single(set, at, due_high, &short_of);
    if (!short_of)
        return pin;
    double due_low = batch_due(set->due, bend, set->box.z_low);
    return pin_pair(set, at, due_low, due_high);
}

static void activate_slot(struct active_set *set, uint32_t slot)
{
    set->place[slot] = set->active.count;
    set->slot[set->active.count] = slot;
    batch_append(&set->active, set->jobs, slot);
}

/* Is the slot in the sample?  A multiple of the golden ratio spreads them evenly. */
static bool is_sampled(uint32_t slot, uint32_t shift)
{
    return shift == 0 || (slot * UINT32_C(2654435769)) >> (32 - shift) == 0;
}

void active_set_build(struct active_set *set, enum batch_due due,
                      const double *capacity, uint32_t shift,
                      const struct price_box *box)
{
    const struct job_batch *jobs = set->jobs;
    double gangs = 0, gangs_here = 0;
    set->due = due;
    set->all_active = false;
    set->has_box = box != NULL;
    set->sample_shift = shift;
    if (box)
        set->box = *box;
    set_room(set, capacity, 1); /* sets 'open' */
    forget_pinned(set);
    batch_trim(&set->active, 0);
    for (uint32_t slot = 0; slot < jobs->count; slot++) {
        const double *at = batch_at(jobs, slot);
        double gang = batch_gang(jobs, at);
        gangs += gang;
        if (gang == 0 || !is_sampled(slot, shift))
            continue;
        gangs_here += gang;
        set->pin[slot] = choose_pin(set, at);
        if (set->pin[slot] == PIN_NONE)
            activate_slot(set, slot);
        else
            count_pinned(set, at, set->pin[slot], 1);
    }
    set_room(set, capacity, gangs > 0 ? gangs_here / gangs : 1);
}

void active_set_narrow(struct active_set *set, const double *capacity,
                       const struct price_box *box)
{
    if (set->all_active || set->due != DUE_LINEAR) {
        active_set_build(set, set->due, capacity, set->sample_shift, box);
        return;
    }
    struct job_batch *active = &set->active;
    uint32_t kept = 0;
    set->has_box = true;
    set->box = *box;
    for (uint32_t place = 0; place < active->count; place++) {
        uint32_t slot = set->slot[place];
        const double *at = batch_at(active, place);
        set->pin[slot] = choose_pin(set, at);
        if (set->pin[slot] != PIN_NONE) {
            count_pinned(set, at, set->pin[slot], 1);
            continue;
        }
        batch_copy(active, kept, active, place);
        set->slot[kept] = slot;
        set->place[slot] = kept++;
    }
    batch_trim(active, kept);
}

void active_set_add(struct active_set *set, uint32_t slot)
{
    if (set->all_active)
        return;
    const double *at = batch_at(set->jobs, slot);
    set->pin[slot] = choose_pin(set, at);
    if (set->pin[slot] == PIN_NONE)
        activate_slot(set, slot);
    else
        count_pinned(set, at, set->pin[slot], 1);
}

void active_set_remove(struct active_set *set, uint32_t slot)
{
    if (set->all_active)
        return;
    if (set->pin[slot] != PIN_NONE) {
        count_pinned(set, batch_at(set->jobs, slot), set->pin[slot], -1);
        return;
    }
    uint32_t place = set->place[slot], last = set->active.count - 1;
    assert(set->slot[place] == slot);
    batch_copy(&set->active, place, &set->active, last);
    set->slot[place] = set->slot[last];
    set->place[set->slot[place]] = place;
    batch_trim(&set->active, last);
}

void active_set_demand(struct active_set *set, const double *price, double z,
                       struct batch_demand *ret_demand)
{
    batch_pass(set->all_active ? set->jobs : &set->active, set->due, price, z,
               ret_demand);
    set->evaluated += active_set_count(set);
    for (uint32_t t = 0; t < set->type_count; t++) {
        if (!set->open[t])
            continue;
        double pinned = set->pinned_base[t] + set->pinned_slope[t] * z;
        ret_demand->usage[t] += pinned;
        ret_demand->cost += price[t] * pinned;
        ret_demand->slope += price[t] * set->pinned_slope[t];
    }
}

void active_set_share(const struct active_set *set, uint32_t slot,
                      const struct price_point *points, uint32_t point_count,
                      double *ret_x)
{
    const struct job_batch *jobs = set->jobs;
    const double *at = batch_at(jobs, slot);
    for (uint32_t t = 0; t < set->type_count; t++)
        ret_x[t] = 0;
    if (!set->all_active && set->pin[slot] != PIN_NONE) {
        uint32_t slow = set->pin[slot] & 0xff, fast = set->pin[slot] >> 8;
        struct affine slow_line, fast_line;
        pinned_shares(set, at, slow, fast, &slow_line, &fast_line);
        for (uint32_t i = 0; i < point_count; i++) {
            const struct price_point *point = &points[i];
            ret_x[slow] += point->weight * (slow_line.at + slow_line.by * point->z);
            ret_x[fast] += point->weight * (fast_line.at + fast_line.by * point->z);
        }
        return;
    }
    double bend = batch_bend(jobs, at);
    for (uint32_t i = 0; i < point_count; i++) {
        const struct price_point *point = &points[i];
        double due = batch_due(set->due, bend, point->z);
        struct batch_choice choice = batch_choose(jobs, at, point->price, due);
        ret_x[choice.slow] += point->weight * choice.x_slow;
        ret_x[choice.fast] += point->weight * choice.x_fast;
    }
}
