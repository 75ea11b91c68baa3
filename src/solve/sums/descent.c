/*
 * descent.c - the prices that minimise g, from vertex to vertex.
 *
 * A vertex is where as many planes meet as there are types.  Each is a row of the
 * active set: either the price of one type is fixed (at a bound of the box, or where
 * the search began), or one bidder is indifferent between its home bid and another one,
 * which is a linear equation in the prices; it splits its time between them.  With N
 * the rows' normals, the gradient of g at the vertex, all split bidders at home, is a
 * combination of the rows:
 *
 *     capacity - usage = sum_i y_i n_i
 *
 * y_i is how much of the second bid its bidder takes; for a fixed price, how fast g
 * grows when that price alone is raised.  If every bidder's parts lie in 0..1 and every
 * fixed price would leave the box, the vertex is the minimum.  Otherwise one row leaves
 * the active set; the others give the direction.
 */
#include "solve/sums/descent.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"

#define STEP_MAX 400      /* for each type */
#define HOME_AGAIN_MAX 64 /* changes of home without a step */
#define PART_SLACK 1e-11  /* of a bidder's time: less is rounding */
#define WALL 1e30         /* a rise of the slope that ends every step */

struct active_row {
    bool is_price;   /* a fixed price; otherwise a bidder that is split */
    uint32_t type;   /* of the fixed price */
    uint32_t bidder; /* that is split                                         */
    struct bid home, other;
    double normal[BID_TYPES_MAX]; /* its largest entry is 1 or -1                  */
    double is;                    /* normal . price                                */
    double size;                  /* times normal: what changes hands              */
};

/* A bidder with different bids at the two ends of a piece of the edge. */
struct breakpoint {
    uint32_t bidder;
    struct bid near, far;         /* what it takes at its two ends   */
    double near_slope, far_slope; /* of g by this bidder, at the two */
};

struct descent_walk {
    struct descent *descent;
    const struct bidders *bidders;
    uint32_t k;
    struct active_row rows[BID_TYPES_MAX];
    double inverse[BID_TYPES_MAX][BID_TYPES_MAX]; /* of the normals as rows */
    double gradient[BID_TYPES_MAX];               /* split bidders at home   */
    double pull[BID_TYPES_MAX];                   /* y                      */
    double heading[BID_TYPES_MAX + 1];            /* the edge               */
    double stride;                                /* its largest entry      */
    double rounding;                              /* of sums over bidders, in GPUs */
    struct breakpoint *breakpoints;
    struct bid *mid; /* [breakpoint]: what it takes at a cut, and the slope of that */
    double *mid_slope;
    struct bid *now; /* [bidder]: what it takes at the vertex */
    uint8_t *split;  /* [bidder]: enum split_state */
};

enum split_state { WHOLE, SPLIT };

static void fix_price(struct descent_walk *walk, struct active_row *row, uint32_t type,
                      double price)
{
    *row =
        (struct active_row){ .is_price = true, .type = type, .is = price, .size = 1 };
    row->normal[type] = 1;
}

/* Indifferent between home and other: both have the same net worth. */
static void split_bidder(struct descent_walk *walk, struct active_row *row,
                         uint32_t bidder, struct bid home, struct bid other)
{
    static const double zero[BID_TYPES_MAX + 1];
    const struct bidders *bidders = walk->bidders;
    double parts[BID_TYPES_MAX + 1] = { 0 };
    double gang = bidders->gang[bidder];
    *row = (struct active_row){ .bidder = bidder, .home = home, .other = other };
    bidders_take(bidders, bidder, other, 1 / gang, parts);
    bidders_take(bidders, bidder, home, -1 / gang, parts);
    row->is = bidders_net(bidders, bidder, other, zero) -
              bidders_net(bidders, bidder, home, zero);
    double largest = 1e-300;
    for (uint32_t t = 0; t < walk->k; t++)
        largest = fmax(largest, fabs(parts[t]));
    for (uint32_t t = 0; t < walk->k; t++)
        row->normal[t] = parts[t] / largest;
    row->is /= largest;
    row->size = largest * gang;
}

/* Gauss and Jordan with the largest pivot; false when the rows do not span. */
static bool invert_rows(struct descent_walk *walk)
{
    uint32_t k = walk->k;
    double m[BID_TYPES_MAX][2 * BID_TYPES_MAX];
    for (uint32_t i = 0; i < k; i++) {
        memcpy(m[i], walk->rows[i].normal, k * sizeof(double));
        memset(m[i] + k, 0, k * sizeof(double));
        m[i][k + i] = 1;
    }
    for (uint32_t c = 0; c < k; c++) {
        uint32_t pivot = c;
        for (uint32_t i = c + 1; i < k; i++)
            if (fabs(m[i][c]) > fabs(m[pivot][c]))
                pivot = i;
        if (fabs(m[pivot][c]) < 1e-13)
            return false;
        for (uint32_t t = 0; t < 2 * k && pivot != c; t++) {
            double swap = m[c][t];
            m[c][t] = m[pivot][t];
            m[pivot][t] = swap;
        }
        double by = 1 / m[c][c];
        for (uint32_t t = c; t < 2 * k; t++)
            m[c][t] *= by;
        for (uint32_t i = 0; i < k; i++) {
            double times = m[i][c];
            if (i == c || times == 0)
                continue;
            for (uint32_t t = c; t < 2 * k; t++)
                m[i][t] -= times * m[c][t];
        }
    }
    for (uint32_t i = 0; i < k; i++)
        memcpy(walk->inverse[i], m[i] + k, k * sizeof(double));
    return true;
}

/* The vertex where the rows meet. */
static void find_vertex(struct descent_walk *walk)
{
    struct descent *d = walk->descent;
    for (uint32_t t = 0; t < walk->k; t++) {
        double price = 0;
        for (uint32_t i = 0; i < walk->k; i++)
            price += walk->inverse[t][i] * walk->rows[i].is;
        d->price[t] = fmin(fmax(price, d->low[t]), d->high[t]);
    }
    for (uint32_t i = 0; i < walk->k; i++) /* exactly, not nearly */
        if (walk->rows[i].is_price)
            d->price[walk->rows[i].type] = walk->rows[i].is;
}

static void find_gradient(struct descent_walk *walk)
{
    struct descent *d = walk->descent;
    const struct bidders *bidders = walk->bidders;
    double usage[BID_TYPES_MAX + 1] = { 0 };
    for (uint32_t b = 0; b < bidders->free_count; b++) {
        walk->now[b] = bidders_bid(bidders, b, d->price);
        usage[walk->now[b].high] += bidders->gang[b];
    }
    for (uint32_t b = bidders->free_count; b < bidders->count; b++) {
        walk->now[b] = bidders_bid(bidders, b, d->price);
        bidders_take(bidders, b, walk->now[b], 1, usage);
    }
    for (uint32_t i = 0; i < walk->k; i++) {
        const struct active_row *row = &walk->rows[i];
        if (row->is_price || bid_same(walk->now[row->bidder], row->home))
            continue;
        bidders_take(bidders, row->bidder, walk->now[row->bidder], -1, usage);
        bidders_take(bidders, row->bidder, row->home, 1, usage);
        walk->now[row->bidder] = row->home;
    }
    for (uint32_t t = 0; t < walk->k; t++)
        walk->gradient[t] = d->capacity[t] - usage[t];
    for (uint32_t i = 0; i < walk->k; i++) {
        walk->pull[i] = 0;
        for (uint32_t t = 0; t < walk->k; t++)
            walk->pull[i] += walk->inverse[t][i] * walk->gradient[t];
    }
}

/* What is left for the home bid of a row's bidder. */
static double home_part(const struct descent_walk *walk, const struct active_row *row)
{
    double part = 1;
    for (uint32_t i = 0; i < walk->k; i++)
        if (!walk->rows[i].is_price && walk->rows[i].bidder == row->bidder)
            part -= walk->pull[i] / walk->rows[i].size;
    return part;
}

/* Make the bid that a bidder takes most its home, in all its rows. */
static void change_home(struct descent_walk *walk, uint32_t bidder)
{
    uint32_t most = walk->k;
    for (uint32_t i = 0; i < walk->k; i++)
        if (!walk->rows[i].is_price && walk->rows[i].bidder == bidder &&
            (most == walk->k || walk->pull[i] / walk->rows[i].size >
                                    walk->pull[most] / walk->rows[most].size))
            most = i;
    struct bid left = walk->rows[most].home, home = walk->rows[most].other;
    for (uint32_t i = 0; i < walk->k; i++) {
        struct active_row *row = &walk->rows[i];
        if (!row->is_price && row->bidder == bidder)
            split_bidder(walk, row, bidder, home, i == most ? left : row->other);
    }
}

/*
 * How steeply g falls when this row leaves: < 0, or 0 where it does not.  'ret_sign' is
 * the direction along its column of the inverse.
 */
static double edge_fall(const struct descent_walk *walk, uint32_t i, double *ret_sign)
{
    const struct descent *d = walk->descent;
    const struct active_row *row = &walk->rows[i];
    double pull = walk->pull[i];
    *ret_sign = 1;
    if (!row->is_price) {
        double slack = walk->rounding + PART_SLACK * row->size;
        return pull < -slack ? pull : 0;
    }
    double price = d->price[row->type];
    if (pull < -walk->rounding && price < d->high[row->type])
        return pull;
    *ret_sign = -1;
    return pull > walk->rounding && price > d->low[row->type] ? -pull : 0;
}

/*
 * The row with the steepest falling edge, or k at the minimum.  A home bid with a
 * negative part is exchanged first: then ret_away names its bidder.
 */
static uint32_t choose_row(struct descent_walk *walk, double *ret_sign,
                           uint32_t *ret_away)
{
    uint32_t best = walk->k;
    double steepest = 0;
    double furthest = 0;
    *ret_away = UINT32_MAX;
    for (uint32_t i = 0; i < walk->k; i++) {
        double sign;
        double slope = edge_fall(walk, i, &sign);
        double length = 0;
        for (uint32_t t = 0; t < walk->k; t++) {
            double part = walk->inverse[t][i] * walk->descent->capacity[t];
            length += part * part;
        }
        double score = slope * slope / fmax(length, 1e-300);
        if (slope < 0 && score > steepest) {
            steepest = score;
            best = i;
            *ret_sign = sign;
        }
        if (walk->rows[i].is_price)
            continue;
        double gang = walk->bidders->gang[walk->rows[i].bidder];
        double away = -home_part(walk, &walk->rows[i]) * gang;
        if (away > walk->rounding + PART_SLACK * gang && away > furthest) {
            furthest = away;
            *ret_away = walk->rows[i].bidder;
        }
    }
    return best;
}

/* The edge of a row, cleared of rounding: fixed prices do not move. */
static void set_heading(struct descent_walk *walk, uint32_t leaving, double sign)
{
    double longest = 0;
    for (uint32_t t = 0; t < walk->k; t++) {
        walk->heading[t] = sign * walk->inverse[t][leaving];
        longest = fmax(longest, fabs(walk->heading[t]));
    }
    for (uint32_t t = 0; t < walk->k; t++)
        if (fabs(walk->heading[t]) < 1e-13 * longest)
            walk->heading[t] = 0;
    for (uint32_t i = 0; i < walk->k; i++)
        if (walk->rows[i].is_price)
            walk->heading[walk->rows[i].type] = i == leaving ? sign : 0;
    walk->heading[walk->k] = 0;
    walk->stride = longest;
}

/* How far the box reaches along the edge, and which price ends it. */
static double find_reach(const struct descent_walk *walk, uint32_t *ret_type)
{
    const struct descent *d = walk->descent;
    double furthest = INFINITY;
    *ret_type = walk->k;
    for (uint32_t t = 0; t < walk->k; t++) {
        double way = walk->heading[t];
        if (way == 0)
            continue;
        double far = ((way > 0 ? d->high[t] : d->low[t]) - d->price[t]) / way;
        if (far < furthest) {
            furthest = far;
            *ret_type = t;
        }
    }
    return fmax(furthest, 0);
}

static void move_along(const struct descent_walk *walk, double distance,
                       double *ret_price)
{
    const struct descent *d = walk->descent;
    for (uint32_t t = 0; t < walk->k; t++) {
        double price = d->price[t] + distance * walk->heading[t];
        ret_price[t] = fmin(fmax(price, d->low[t]), d->high[t]);
    }
    ret_price[walk->k] = 0;
}

static double bid_slope(const struct descent_walk *walk, uint32_t bidder,
                        struct bid bid)
{
    return -walk->bidders->gang[bidder] *
           bidders_dot(walk->bidders, bidder, bid, walk->heading);
}

/* How much the slope of g rises when this bidder goes from one bid to another. */
static double slope_rise(const struct descent_walk *walk, const struct breakpoint *w,
                         double from, double to)
{
    double rises = to - from;
    double unit = walk->bidders->gang[w->bidder] * walk->stride;
    if (walk->split[w->bidder] == SPLIT) /* must not be passed, unless it is rounding */
        return rises > 1e-9 * unit ? WALL : 0;
    return rises > 1e-12 * unit ? rises : 0;
}

/* Find the bidders with another bid at the 'far' prices than now. */
static uint32_t find_breakpoints(struct descent_walk *walk, const double *far)
{
    const struct bidders *bidders = walk->bidders;
    uint32_t count = 0;
    for (uint32_t b = 0; b < bidders->count; b++) {
        struct bid then = bidders_bid(bidders, b, far);
        if (bid_same(walk->now[b], then))
            continue;
        walk->breakpoints[count++] =
            (struct breakpoint){ .bidder = b, .near = walk->now[b], .far = then };
    }
    return count;
}

/* Drop breakpoints that do not change the slope. */
static uint32_t drop_flat_breakpoints(struct descent_walk *walk, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct breakpoint *w = &walk->breakpoints[i];
        w->near_slope = bid_slope(walk, w->bidder, w->near);
        w->far_slope = bid_slope(walk, w->bidder, w->far);
        if (slope_rise(walk, w, w->near_slope, w->far_slope) > 0)
            walk->breakpoints[kept++] = *w;
    }
    return kept;
}

/* Where on the edge its near and far bids are worth the same. */
static double find_crossing(const struct descent_walk *walk, const struct breakpoint *w)
{
    const double *price = walk->descent->price;
    double lead = bidders_net(walk->bidders, w->bidder, w->near, price) -
                  bidders_net(walk->bidders, w->bidder, w->far, price);
    return lead * walk->bidders->gang[w->bidder] / (w->far_slope - w->near_slope);
}

/* A cut of the edge at one breakpoint, and all bids there. */
struct edge_cut {
    double price[BID_TYPES_MAX + 1];
    uint32_t chosen;      /* the breakpoint at which it is */
    bool is_vertex;       /* the chosen bidder changes from near to far right there */
    double before, after; /* slope of g on its two sides                  */
};

static void evaluate_cut(struct descent_walk *walk, struct edge_cut *cut,
                         uint32_t count, double slope)
{
    struct bid *mid = walk->mid;
    double *mid_slope = walk->mid_slope;
    cut->before = slope;
    for (uint32_t i = 0; i < count; i++) {
        const struct breakpoint *w = &walk->breakpoints[i];
        mid[i] = bidders_bid(walk->bidders, w->bidder, cut->price);
        mid_slope[i] = bid_slope(walk, w->bidder, mid[i]);
        if (i != cut->chosen)
            cut->before += slope_rise(walk, w, w->near_slope, mid_slope[i]);
    }
    const struct breakpoint *w = &walk->breakpoints[cut->chosen];
    double top = bidders_net(walk->bidders, w->bidder, mid[cut->chosen], cut->price);
    double line = bidders_net(walk->bidders, w->bidder, w->near, cut->price);
    double paid = bidders_dot(walk->bidders, w->bidder, w->near, cut->price);
    cut->is_vertex = bid_same(mid[cut->chosen], w->near) ||
                     bid_same(mid[cut->chosen], w->far) ||
                     top - line <= 1e-13 * (fabs(line) + paid);
    cut->after = cut->before;
    if (cut->is_vertex)
        cut->after += slope_rise(walk, w, w->near_slope, w->far_slope);
    else
        cut->after = cut->before +=
            slope_rise(walk, w, w->near_slope, mid_slope[cut->chosen]);
}

/* Keep the nearer or the farther piece; returns how many breakpoints are on it. */
static uint32_t keep_piece(struct descent_walk *walk, const struct edge_cut *cut,
                           uint32_t count, bool nearer)
{
    const struct bid *mid = walk->mid;
    const double *mid_slope = walk->mid_slope;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct breakpoint w = walk->breakpoints[i];
        if (i == cut->chosen && cut->is_vertex)
            continue;
        if (nearer) {
            w.far = mid[i];
            w.far_slope = mid_slope[i];
        } else {
            w.near = mid[i];
            w.near_slope = mid_slope[i];
        }
        if (slope_rise(walk, &w, w.near_slope, w.far_slope) > 0)
            walk->breakpoints[kept++] = w;
    }
    return kept;
}

/* The row in which a bidder is split for the first time, or once more. */
static void split_at_breakpoint(struct descent_walk *walk, uint32_t leaving,
                                const struct breakpoint *w)
{
    struct bid home = w->near;
    for (uint32_t i = 0; i < walk->k; i++)
        if (i != leaving && !walk->rows[i].is_price &&
            walk->rows[i].bidder == w->bidder)
            home = walk->rows[i].home;
    split_bidder(walk, &walk->rows[leaving], w->bidder, home, w->far);
    walk->split[w->bidder] = SPLIT;
}

/*
 * The breakpoint at which g begins to rise, by random bisection as for a median: the
 * crossing of one bidder cuts the edge in two, and one of the pieces is done with.  On
 * average each bidder is evaluated a few times.
 */
static bool find_minimum(struct descent_walk *walk, uint32_t count, double slope,
                         double length, struct breakpoint *ret_who)
{
    uint32_t lot = 12345;
    uint32_t cuts_left = 4 * count + 64;
    while (count > 0 && cuts_left-- > 0) {
        struct edge_cut cut;
        lot = lot * 1664525 + 1013904223;
        cut.chosen = (uint32_t)((uint64_t)lot * count >> 32);
        *ret_who = walk->breakpoints[cut.chosen];
        move_along(walk, fmin(fmax(find_crossing(walk, ret_who), 0), length),
                   cut.price);
        evaluate_cut(walk, &cut, count, slope);
        if (cut.is_vertex && cut.before < 0 && cut.after >= 0)
            return true;
        bool nearer = cut.before >= 0;
        if (!nearer)
            slope = cut.after;
        count = keep_piece(walk, &cut, count, nearer);
    }
    return count == 0; /* rounding: the last one is as good as any */
}

/*
 * Follow the edge until g rises, and put what ends it in the place of the leaving row.
 */
static bool follow_edge(struct descent_walk *walk, uint32_t leaving, double slope)
{
    uint32_t end;
    double far[BID_TYPES_MAX + 1];
    struct breakpoint who = { 0 };
    double length = find_reach(walk, &end);
    assert(end < walk->k); /* the box is finite */
    move_along(walk, length, far);
    uint32_t count = drop_flat_breakpoints(walk, find_breakpoints(walk, far));
    double total = slope;
    for (uint32_t i = 0; i < count; i++)
        total +=
            slope_rise(walk, &walk->breakpoints[i], walk->breakpoints[i].near_slope,
                       walk->breakpoints[i].far_slope);
    if (total < 0) {
        const struct descent *d = walk->descent;
        fix_price(walk, &walk->rows[leaving], end,
                  walk->heading[end] > 0 ? d->high[end] : d->low[end]);
        return true;
    }
    if (!find_minimum(walk, count, slope, length, &who))
        return false;
    split_at_breakpoint(walk, leaving, &who);
    return true;
}

static void start_walk(struct descent_walk *walk, struct descent *descent,
                       struct arena *arena)
{
    const struct bidders *bidders = descent->bidders;
    double total = 0;
    walk->descent = descent; /* the rest is large, and written before it is read */
    walk->bidders = bidders;
    walk->k = bidders->type_count;
    walk->breakpoints = arena_array(arena, struct breakpoint, bidders->count + 1);
    walk->mid = arena_array(arena, struct bid, bidders->count + 1);
    walk->mid_slope = arena_array(arena, double, bidders->count + 1);
    walk->now = arena_array(arena, struct bid, bidders->count + 1);
    walk->split = arena_array(arena, uint8_t, bidders->count + 1);
    descent->price[walk->k] = 0;
    for (uint32_t t = 0; t < walk->k; t++) {
        double price = fmin(fmax(descent->price[t], descent->low[t]), descent->high[t]);
        fix_price(walk, &walk->rows[t], t, price);
        total += fabs(descent->capacity[t]);
    }
    for (uint32_t b = 0; b < bidders->count; b++)
        total += bidders->gang[b];
    walk->rounding = 1e-14 * total;
    descent->split_count = 0;
    descent->steps = 0;
}

static void add_split(struct descent *d, uint32_t bidder, struct bid bid, double part)
{
    d->split[d->split_count++] = (struct split_bid){ bidder, bid, fmax(part, 0) };
}

/* Write which bids the split bidders take, and for which part of the time. */
static void write_splits(struct descent_walk *walk)
{
    struct descent *d = walk->descent;
    for (uint32_t i = 0; i < walk->k; i++) {
        const struct active_row *row = &walk->rows[i];
        if (row->is_price || walk->split[row->bidder] == WHOLE)
            continue;
        walk->split[row->bidder] = WHOLE; /* once for each bidder */
        uint32_t first = d->split_count;
        add_split(d, row->bidder, row->home, home_part(walk, row));
        for (uint32_t l = i; l < walk->k; l++)
            if (!walk->rows[l].is_price && walk->rows[l].bidder == row->bidder)
                add_split(d, row->bidder, walk->rows[l].other,
                          walk->pull[l] / walk->rows[l].size);
        double sum = 0;
        for (uint32_t l = first; l < d->split_count; l++)
            sum += d->split[l].part;
        for (uint32_t l = first; l < d->split_count; l++)
            d->split[l].part /= sum;
    }
}

static bool drop_row(struct descent_walk *walk, uint32_t i, double sign)
{
    set_heading(walk, i, sign);
    const struct active_row *row = &walk->rows[i];
    if (!row->is_price) {
        bool still = false;
        for (uint32_t l = 0; l < walk->k; l++)
            still |= l != i && !walk->rows[l].is_price &&
                     walk->rows[l].bidder == row->bidder;
        walk->split[row->bidder] = still ? SPLIT : WHOLE;
    }
    return follow_edge(walk, i, sign * walk->pull[i]);
}

/* Prices are very high, and g is below what any shares are worth. */
static bool is_infeasible(const struct descent_walk *walk)
{
    const struct descent *d = walk->descent;
    double highest = 0;
    double sum = 0;
    for (uint32_t t = 0; t < walk->k; t++) {
        highest = fmax(highest, d->price[t]);
        sum += d->price[t] * d->capacity[t];
    }
    if (highest < d->check_price)
        return false;
    for (uint32_t b = 0; b < walk->bidders->count; b++)
        sum += walk->bidders->gang[b] *
               bidders_net(walk->bidders, b, walk->now[b], d->price);
    return sum < d->infeasible_below;
}

enum descent_end descent_run(struct descent *descent, struct arena *arena)
{
    struct descent_walk walk;
    start_walk(&walk, descent, arena);
    uint32_t turns = 0;
    while (descent->steps < STEP_MAX * (walk.k + 1) && turns < HOME_AGAIN_MAX) {
        if (!invert_rows(&walk))
            return DESCENT_LOST;
        find_vertex(&walk);
        find_gradient(&walk);
        if (is_infeasible(&walk))
            return DESCENT_INFEASIBLE;
        double sign = 0;
        uint32_t away;
        uint32_t i = choose_row(&walk, &sign, &away);
        if (i == walk.k && away == UINT32_MAX) {
            write_splits(&walk);
            return DESCENT_LOWEST;
        }
        if (i == walk.k) {
            change_home(&walk, away);
            turns++;
            continue;
        }
        turns = 0;
        descent->steps++;
        if (!drop_row(&walk, i, sign))
            return DESCENT_LOST;
    }
    return DESCENT_LOST;
}
