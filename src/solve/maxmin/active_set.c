/*
 * active_set.c - a crowd of which most is settled.
 *
 * A bent due is replaced by its chord over the range of levels for those who are pinned,
 * which gives them no less than they are due, and is a straight line.
 */
#include "solve/maxmin/active_set.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"

#define PIN_NONE UINT16_MAX
#define SURE 1e-12 /* a comparison is sure when it holds by this part of its terms */

void field_init(struct field *field, struct arena *arena, const struct crowd *everybody)
{
    *field =
        (struct field){ .type_count = everybody->type_count, .everybody = everybody };
    crowd_init(&field->some, arena, everybody->type_count, everybody->max);
    field->slot = arena_array(arena, uint32_t, everybody->max);
    field->place = arena_array(arena, uint32_t, everybody->max);
    field->pin = arena_array(arena, uint16_t, everybody->max);
}

static void set_room(struct field *field, const double *capacity, double part)
{
    for (uint32_t t = 0; t < field->type_count; t++) {
        field->open[t] = capacity[t] > 0;
        field->room[t] = capacity[t] * part;
    }
}

static void forget_pinned(struct field *field)
{
    memset(field->still, 0, sizeof field->still);
    memset(field->moving, 0, sizeof field->moving);
}

void field_whole(struct field *field, enum crowd_due due, const double *capacity)
{
    field->due = due;
    field->whole = true;
    field->boxed = false;
    field->sample_shift = 0;
    set_room(field, capacity, 1);
    forget_pinned(field);
}

/* What a pinned job is due: at + by z. */
struct line {
    double at, by;
};

static struct line line_of(const struct field *field, double bend)
{
    if (field->due == DUE_PLAIN)
        return (struct line){ 0, 1 };
    const struct box *box = &field->box;
    double low = crowd_due(field->due, bend, box->z_low);
    double high = crowd_due(field->due, bend, box->z_high);
    double by = (high - low) / (box->z_high - box->z_low);
    return (struct line){ low - by * box->z_low, by };
}

/* The shares of a pinned job as lines in z; the fast one is nothing for one type. */
static void pinned_lines(const struct field *field, const double *at, uint32_t slow,
                         uint32_t fast, struct line *ret_slow, struct line *ret_fast)
{
    struct line due = line_of(field, crowd_bend(field->everybody, at));
    double i = at[slow * CROWD_LANES];
    *ret_slow = (struct line){ i * due.at, i * due.by };
    *ret_fast = (struct line){ 0, 0 };
    if (fast == slow)
        return;
    double j = at[fast * CROWD_LANES], part = j / (i - j);
    *ret_fast = (struct line){ part * (i * due.at - 1), part * i * due.by };
    *ret_slow = (struct line){ 1 - ret_fast->at, -ret_fast->by };
}

static void count_pinned(struct field *field, const double *at, uint16_t pin,
                         double sign)
{
    uint32_t slow = pin & 0xff, fast = pin >> 8;
    double gang = sign * crowd_gang(field->everybody, at);
    struct line slow_line, fast_line;
    pinned_lines(field, at, slow, fast, &slow_line, &fast_line);
    field->still[slow] += gang * slow_line.at;
    field->moving[slow] += gang * slow_line.by;
    field->still[fast] += gang * fast_line.at;
    field->moving[fast] += gang * fast_line.by;
}

/*
 * On one type at all prices of the box: PIN_NONE where another may be cheaper, or where
 * that type alone is too slow: then it is 'short', and may be pinned to two.
 */
static uint16_t pin_single(const struct field *field, const double *at, double due_high,
                           bool *ret_short)
{
    const struct box *box = &field->box;
    uint32_t best = 0;
    double cost = INFINITY;
    for (uint32_t t = 0; t < field->type_count; t++) {
        double most = box->high[t] * at[t * CROWD_LANES];
        if (!field->open[t] || most >= cost)
            continue;
        best = t;
        cost = most;
    }
    *ret_short = due_high * at[best * CROWD_LANES] > 1;
    if (*ret_short)
        return PIN_NONE;
    cost *= 1 + SURE;
    for (uint32_t t = 0; t < field->type_count; t++)
        if (t != best && field->open[t] && !(box->low[t] * at[t * CROWD_LANES] > cost))
            return PIN_NONE;
    return (uint16_t)(best | best << 8);
}

/* Would type q never pay beside the pair?  Its reduced cost, at the worst corner. */
static bool never_pays(const struct box *box, const double *at, uint32_t slow,
                       uint32_t fast, uint32_t q)
{
    double slow_rate = 1 / at[slow * CROWD_LANES];
    double along = (1 / at[q * CROWD_LANES] - slow_rate) /
                   (1 / at[fast * CROWD_LANES] - slow_rate);
    double by_fast = -along, by_slow = along - 1;
    double a = by_fast * (by_fast > 0 ? box->low[fast] : box->high[fast]);
    double b = by_slow * (by_slow > 0 ? box->low[slow] : box->high[slow]);
    return box->low[q] + a + b > SURE * (fabs(a) + fabs(b));
}

/* On the same two types at all prices of the box and all levels of its range. */
static uint16_t pin_pair(const struct field *field, const double *at, double due_low,
                         double due_high)
{
    const struct box *box = &field->box;
    double middle[CROWD_TYPES];
    for (uint32_t t = 0; t < field->type_count; t++)
        middle[t] = field->open[t] ? 0.5 * (box->low[t] + box->high[t]) : CROWD_CLOSED;
    struct choice choice = crowd_choose(field->everybody, at, middle, due_high);
    uint32_t slow = choice.slow, fast = choice.fast;
    if (slow == fast)
        return PIN_NONE;
    double i = at[slow * CROWD_LANES], j = at[fast * CROWD_LANES];
    if (due_low * i < 1 || due_high * j > 1 ||
        !(box->low[fast] * j > box->high[slow] * i * (1 + SURE)))
        return PIN_NONE;
    for (uint32_t q = 0; q < field->type_count; q++)
        if (q != slow && q != fast && field->open[q] &&
            at[q * CROWD_LANES] < CROWD_NEVER && !never_pays(box, at, slow, fast, q))
            return PIN_NONE;
    return (uint16_t)(slow | fast << 8);
}

static uint16_t pin_of(const struct field *field, const double *at)
{
    if (!field->boxed)
        return PIN_NONE;
    double bend = crowd_bend(field->everybody, at);
    if (field->due == DUE_BENT && !(bend * field->box.z_high < 1))
        return PIN_NONE; /* it can never get there: the range ends beyond its own limit */
    double due_high = crowd_due(field->due, bend, field->box.z_high);
    bool short_of;
    uint16_t pin = pin_single(field, at, due_high, &short_of);
    if (!short_of)
        return pin;
    double due_low = crowd_due(field->due, bend, field->box.z_low);
    return pin_pair(field, at, due_low, due_high);
}

static void ask_slot(struct field *field, uint32_t slot)
{
    field->place[slot] = field->some.count;
    field->slot[field->some.count] = slot;
    crowd_append(&field->some, field->everybody, slot);
}

/* Is the slot in the sample?  A multiple of the golden ratio spreads them evenly. */
static bool sampled(uint32_t slot, uint32_t shift)
{
    return shift == 0 || (slot * UINT32_C(2654435769)) >> (32 - shift) == 0;
}

void field_build(struct field *field, enum crowd_due due, const double *capacity,
                 uint32_t shift, const struct box *box)
{
    const struct crowd *everybody = field->everybody;
    double gangs = 0, gangs_here = 0;
    field->due = due;
    field->whole = false;
    field->boxed = box != NULL;
    field->sample_shift = shift;
    if (box)
        field->box = *box;
    set_room(field, capacity, 1); /* who is open */
    forget_pinned(field);
    crowd_trim(&field->some, 0);
    for (uint32_t slot = 0; slot < everybody->count; slot++) {
        const double *at = crowd_at(everybody, slot);
        double gang = crowd_gang(everybody, at);
        gangs += gang;
        if (gang == 0 || !sampled(slot, shift))
            continue;
        gangs_here += gang;
        field->pin[slot] = pin_of(field, at);
        if (field->pin[slot] == PIN_NONE)
            ask_slot(field, slot);
        else
            count_pinned(field, at, field->pin[slot], 1);
    }
    set_room(field, capacity, gangs > 0 ? gangs_here / gangs : 1);
}

void field_narrow(struct field *field, const double *capacity, const struct box *box)
{
    if (field->whole || field->due != DUE_PLAIN) {
        field_build(field, field->due, capacity, field->sample_shift, box);
        return;
    }
    struct crowd *some = &field->some;
    uint32_t kept = 0;
    field->boxed = true;
    field->box = *box;
    for (uint32_t place = 0; place < some->count; place++) {
        uint32_t slot = field->slot[place];
        const double *at = crowd_at(some, place);
        field->pin[slot] = pin_of(field, at);
        if (field->pin[slot] != PIN_NONE) {
            count_pinned(field, at, field->pin[slot], 1);
            continue;
        }
        crowd_move(some, kept, place);
        field->slot[kept] = slot;
        field->place[slot] = kept++;
    }
    crowd_trim(some, kept);
}

void field_put(struct field *field, uint32_t slot)
{
    if (field->whole)
        return;
    const double *at = crowd_at(field->everybody, slot);
    field->pin[slot] = pin_of(field, at);
    if (field->pin[slot] == PIN_NONE)
        ask_slot(field, slot);
    else
        count_pinned(field, at, field->pin[slot], 1);
}

void field_drop(struct field *field, uint32_t slot)
{
    if (field->whole)
        return;
    if (field->pin[slot] != PIN_NONE) {
        count_pinned(field, crowd_at(field->everybody, slot), field->pin[slot], -1);
        return;
    }
    uint32_t place = field->place[slot], last = field->some.count - 1;
    assert(field->slot[place] == slot);
    crowd_move(&field->some, place, last);
    field->slot[place] = field->slot[last];
    field->place[field->slot[place]] = place;
    crowd_trim(&field->some, last);
}

uint32_t field_asked_count(const struct field *field)
{
    return field->whole ? field->everybody->count : field->some.count;
}

void field_ask(struct field *field, const double *price, double z,
               struct demand *ret_demand)
{
    crowd_pass(field->whole ? field->everybody : &field->some, field->due, price, z,
               ret_demand);
    field->asked += field_asked_count(field);
    for (uint32_t t = 0; t < field->type_count; t++) {
        if (!field->open[t])
            continue;
        double pinned = field->still[t] + field->moving[t] * z;
        ret_demand->usage[t] += pinned;
        ret_demand->cost += price[t] * pinned;
        ret_demand->slope += price[t] * field->moving[t];
    }
}

void field_share(const struct field *field, uint32_t slot, const struct point *points,
                 uint32_t point_count, double *ret_x)
{
    const struct crowd *everybody = field->everybody;
    const double *at = crowd_at(everybody, slot);
    for (uint32_t t = 0; t < field->type_count; t++)
        ret_x[t] = 0;
    if (!field->whole && field->pin[slot] != PIN_NONE) {
        uint32_t slow = field->pin[slot] & 0xff, fast = field->pin[slot] >> 8;
        struct line slow_line, fast_line;
        pinned_lines(field, at, slow, fast, &slow_line, &fast_line);
        for (uint32_t i = 0; i < point_count; i++) {
            const struct point *point = &points[i];
            ret_x[slow] += point->weight * (slow_line.at + slow_line.by * point->z);
            ret_x[fast] += point->weight * (fast_line.at + fast_line.by * point->z);
        }
        return;
    }
    double bend = crowd_bend(everybody, at);
    for (uint32_t i = 0; i < point_count; i++) {
        const struct point *point = &points[i];
        double due = crowd_due(field->due, bend, point->z);
        struct choice choice = crowd_choose(everybody, at, point->price, due);
        ret_x[choice.slow] += point->weight * choice.x_slow;
        ret_x[choice.fast] += point->weight * choice.x_fast;
    }
}
