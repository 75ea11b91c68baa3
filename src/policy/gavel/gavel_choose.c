/*
 * gavel_choose.c - which jobs are to run: first how many units of each line, then which
 * members of its classes.
 *
 * The first looks at lines.  The second looks at the jobs that come and at those that leave:
 * each line's members stand in the order of what they are owed, and so do the waiting ones
 * of a class, so both are found at the ends of trees.
 */
#include <math.h>
#include <string.h>

#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "policy/gavel/gavel_round.h"

#define EQUAL_S 1e-6 /* credits that differ by less are equal */

#define NEAR_PER_GPU 3 /* see use_near() */
#define NEAR_ROUNDS 8

#define SURE 1.5      /* a key that is often large enough; see choose_what_is_sure() */
#define MISSES_PART 8 /* see choose_by_key() */
#define SCANS 3       /* see choose_by_scan() */

/* --- units of a line ----------------------------------------------------------------------- */

/* The line may have other units than now: before they are counted. */
static void touch_line(struct gavel_rounds *rounds, struct gavel_line *line)
{
    if (line->choice == rounds->choice)
        return;
    line->choice = rounds->choice;
    line->want = rounds->choose_running ? 0 : line_running(line);
    rounds->touched[rounds->touched_count++] = (uint32_t)(line - rounds->lines);
}

static uint32_t jobs_per_unit(const struct gavel_line *line)
{
    return line->classes[0] == line->classes[1] ? 2 : 1; /* of the first class */
}

static double gang_of(const struct gavel_rounds *rounds, const struct gavel_line *line)
{
    return rounds->classes[line->classes[0]].gang;
}

/* The key of the unit with number n, from 0. */
static double key_of(const struct gavel_line *line, uint32_t n)
{
    uint32_t running = line_running(line);
    double bonus = n < running                 ? STAYS + line->lead
                   : n < running + line->fresh ? 0
                                               : -MOVES - line->toll;
    return line->target - n + bonus;
}

/* Units with a key of at least 'least'. */
static uint32_t count_units(const struct gavel_line *line, double least)
{
    uint32_t running = line_running(line);
    double stay = floor(line->target + STAYS + line->lead - least) + 1;
    if (stay < running)
        return stay > 0 ? (uint32_t)stay : 0;
    double come = floor(line->target - least) + 1;
    double move = floor(line->target - MOVES - line->toll - least) + 1;
    double count = fmax(running, fmin(come, running + line->fresh));
    if (count >= running + line->fresh)
        count = fmax(count, move);
    return count < line->limit ? (uint32_t)count : line->limit;
}

/* Add units to a line, or take some away. */
static void give_units(struct gavel_rounds *rounds, struct gavel_line *line, int64_t n,
                       double *room)
{
    touch_line(rounds, line);
    line->want += (uint32_t)n;
    room[line->column] -= (double)n * gang_of(rounds, line);
    rounds->classes[line->classes[0]].left -= (uint32_t)(n * jobs_per_unit(line));
    if (line_is_pair(line) && line->classes[1] != line->classes[0])
        rounds->classes[line->classes[1]].left -= (uint32_t)n;
}

/* How many units more there are members for. */
static uint32_t units_left(const struct gavel_rounds *rounds,
                           const struct gavel_line *line)
{
    uint32_t left = rounds->classes[line->classes[0]].left / jobs_per_unit(line);
    if (line_is_pair(line) && rounds->classes[line->classes[1]].left < left)
        left = rounds->classes[line->classes[1]].left;
    return left;
}

/* There may be room now on nodes that members of the class may use. */
static bool may_find_room(const struct gavel_common *common, const struct view *view,
                          const struct gavel_class *class)
{
    const struct node_set *set = common->entries[class->example].set;
    double free[TYPES_MAX + 1] = { 0 };
    for (node_id n = set ? bits_next(&set->allowed, 0) : BITS_NONE; n != BITS_NONE;
         n = bits_next(&set->allowed, n + 1)) {
        uint32_t type = view->cluster->nodes[n].type;
        if (!view->free->listed[n])
            continue;
        free[type] += bits_count(view->free->rooms[n].gpus);
        if (type != TYPE_NONE && free[type] >= class->gang)
            return true;
    }
    return !set;
}

/* Units of two classes that run together on other columns: here they would have to move. */
static uint32_t count_together_elsewhere(struct gavel_common *common,
                                         const struct gavel_line *line)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < common->type_count; c++) {
        uint32_t at = c == line->column
                          ? NONE
                          : accounts_pair_line(common, c, line->classes[0],
                                               line->classes[1], /* add= */ false);
        count += at == NONE ? 0 : line_running(&common->rounds->lines[at]);
    }
    return count;
}

/* Count the members of a class that may be chosen, if that was not done. */
static struct gavel_class *touch_class(struct gavel_common *common,
                                       const struct view *view, uint32_t c)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_class *class = &rounds->classes[c];
    if (class->choice == rounds->choice)
        return class;
    class->choice = rounds->choice;
    class->left =
        class->waiting.tree.count + (rounds->choose_running ? class->seated : 0);
    if (!rounds->choose_running && class->left > 0 && common->set_jobs > 0 &&
        !may_find_room(common, view, class))
        class->left = 0;
    class->next_waiting = class->waiting.tree.count == 1
                              ? class->waiting.tree.root
                              : tree_first(&rounds->trees, &class->waiting.tree);
    class->movers = JOB_NONE;
    class->tried = class->sure = 0;
    return class;
}

static void begin_line(struct gavel_common *common, const struct view *view,
                       uint32_t at)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_line *line = &rounds->lines[at];
    if (line->choice == rounds->choice)
        return;
    touch_line(rounds, line);
    const struct gavel_class *class = touch_class(common, view, line->classes[0]);
    if (line_is_pair(line))
        touch_class(common, view, line->classes[1]);
    uint32_t runs = line_running(line);
    double units = line_units(rounds, line);
    if (!(units > 0))
        return;
    line->fresh = class->waiting.tree.count;
    line->target = units + accounts_owed(rounds, line, view->now_ns);
    line->limit = units_left(rounds, line) + line->want;
    line_set_leads(common, view, line);
    if (line_is_pair(line)) {
        uint32_t moves = runs + count_together_elsewhere(common, line);
        line->fresh = line->limit > moves ? line->limit - moves : 0;
    }
    if (line->limit > line->want)
        rounds->listed[rounds->listed_count++] = at;
}

/*
 * Where very many lines are due something, as where every job is a class of its own, only
 * those are looked at whose keys can be among the largest in the next rounds.  A key grows
 * with time until its line runs, so what it can be at most is known.  False: there
 * are few lines.
 */
static bool use_near(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *due = &rounds->lists[LIST_DUE];
    double most =
        2 * sqrt(due->count); /* making the list costs about as much as using it */
    for (uint32_t c = 0; c < common->type_count; c++)
        most += NEAR_PER_GPU * common->capacity[c];
    if (due->count <= 2 * most) {
        rounds->near_number = 0;
        return false;
    }
    if (rounds->near_number > 0 && view->now_ns <= rounds->near_until_ns &&
        rounds->near_left > most / 2)
        return true;
    rounds->near_number = ++rounds->near_made;
    rounds->near_until_ns = view->now_ns + NEAR_ROUNDS * common->gavel->round_ns;
    uint32_t count = 0;
    for (uint32_t i = 0; i < due->count; i++)
        rounds->items[count++] =
            (struct sort_item){ -line_key_until(rounds, &rounds->lines[due->lines[i]],
                                                rounds->near_until_ns),
                                due->lines[i] };
    sort_least(rounds->items, count, (uint32_t)most);
    rounds->near.count = 0;
    for (uint32_t i = 0; i < (uint32_t)most; i++) {
        rounds->near.lines[rounds->near.count++] = rounds->items[i].value;
        rounds->lines[rounds->items[i].value].near = rounds->near_number;
    }
    rounds->near_floor = -rounds->items[(uint32_t)most].key;
    return true;
}

static double most_room(const struct gavel_common *common, const double *room)
{
    double most = 0;
    for (uint32_t c = 0; c < common->type_count; c++)
        most = room[c] > most ? room[c] : most;
    return most;
}

/* It would be listed if there were room: who it is due to waits. */
static bool is_awaited(struct gavel_common *common, struct gavel_line *line)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_class *class = &rounds->classes[line->classes[0]];
    if (line->choice == rounds->choice)
        return false; /* it was counted */
    line->choice = rounds->choice;
    line->want = line_running(line);
    return line->share > 0 && class->waiting.tree.count > 0 &&
           !common->entries[class->example].set;
}

/*
 * While jobs that run stay, lines whose units fit nowhere are counted alone.  Returns how
 * many of them could be chosen.
 */
static uint32_t begin_due_lines(struct gavel_common *common, const struct view *view,
                                const double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *due =
        use_near(common, view) ? &rounds->near : &rounds->lists[LIST_DUE];
    double most = most_room(common, room);
    uint32_t wide = 0;
    for (uint32_t i = 0; i < due->count; i++) {
        struct gavel_line *line = &rounds->lines[due->lines[i]];
        if (rounds->choose_running ||
            (!line_is_pair(line) && gang_of(rounds, line) <= most))
            begin_line(common, view, due->lines[i]);
        else if (!line_is_pair(line))
            wide += is_awaited(common, line);
    }
    return wide;
}

/* 'running': jobs that run count as well as those that wait; or these alone. */
static void begin_choice(struct gavel_common *common, const struct view *view,
                         const double *room, bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *runs = &rounds->lists[LIST_RUNNING];
    rounds->choice++;
    rounds->choose_running = running;
    rounds->listed_count = rounds->unit_count = rounds->leaver_count = 0;
    rounds->touched_count = 0;
    for (uint32_t i = 0; running && i < runs->count; i++)
        begin_line(common, view, runs->lines[i]);
    uint32_t wide = begin_due_lines(common, view, room);
    rounds->near_left = rounds->listed_count + wide;
}

/* --- which units are to run ---------------------------------------------------------------- */
/*
 * Units with the largest keys; then those on a slower type move up to a faster one with
 * room; what is left goes to any class that can use it; and two jobs that would share are
 * parted while there is room for each.
 */

/* GPUs of units on a column with a key of at least 'least'. */
static double count_gpus(const struct gavel_rounds *rounds, uint32_t column,
                         double least)
{
    double gpus = 0;
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        const struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        if (line->column == column)
            gpus += count_units(line, least) * gang_of(rounds, line);
    }
    return gpus;
}

/*
 * Of classes with many members: the units that are above the line in any case, so that only
 * those near it have to be sorted.
 */
static void choose_by_threshold(struct gavel_common *common, uint32_t column,
                                double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    double low = 0;
    double high = 0;
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        const struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        low = fmin(low, line->target - line->limit - MOVES - line->toll);
        high = fmax(high, line->target + STAYS + line->lead + 1);
    }
    double here = room[column];
    if (count_gpus(rounds, column, low) <= here)
        high = low;
    while (high - low > 1e-3) {
        double middle = (low + high) / 2;
        if (count_gpus(rounds, column, middle) <= here)
            high = middle;
        else
            low = middle;
    }
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        if (line->column != column)
            continue;
        uint32_t most = line->want + units_left(rounds, line);
        uint32_t count = count_units(line, high);
        count = count < most ? count : most;
        if (count > line->want)
            give_units(rounds, line, count - line->want, room);
    }
}

/* Equal keys always in the same order, or jobs would change places in every round. */
static bool is_ahead(const struct sort_item *one, const struct sort_item *other)
{
    return (one->key < other->key) |
           ((one->key == other->key) & (one->value < other->value));
}

/* In a heap whose first item is ahead of all, put the one at 'at' where it belongs. */
static void sift_down(struct sort_item *items, uint32_t count, uint32_t at)
{
    struct sort_item item = items[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count)
            child += is_ahead(&items[child + 1], &items[child]);
        if (!is_ahead(&items[child], &item))
            break;
        items[at] = items[child];
    }
    items[at] = item;
}

static void heap_items(struct sort_item *items, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift_down(items, count, i);
}

static uint32_t pop_item(struct sort_item *items, uint32_t *count)
{
    uint32_t value = items[0].value;
    items[0] = items[--*count];
    sift_down(items, *count, 0);
    return value;
}

/* Keep the items of lines whose units still fit, in their order. */
static void drop_what_fits_not(struct gavel_rounds *rounds, const double *room,
                               uint32_t *count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const struct gavel_line *line = &rounds->lines[rounds->items[i].value];
        if (gang_of(rounds, line) <= room[line->column])
            rounds->items[kept++] = rounds->items[i];
    }
    *count = kept;
}

/* A unit of the item's line, if there is one left that fits; false: it was the last one. */
static bool give_next(struct gavel_rounds *rounds, double *room, struct sort_item *item)
{
    struct gavel_line *line = &rounds->lines[item->value];
    if (gang_of(rounds, line) <= room[line->column] && units_left(rounds, line) > 0)
        give_units(rounds, line, 1, room);
    else
        line->limit = line->want; /* no more of it */
    item->key = -key_of(line, line->want);
    return line->want < line->limit;
}

/* The first few units: in the middle of a round there are hardly more. */
static void choose_by_scan(struct gavel_common *common, double *room, uint32_t *count)
{
    struct sort_item *items = common->rounds->items;
    for (uint32_t n = 0; n < SCANS && !gavel_is_full(common, room); n++) {
        uint32_t first = 0;
        drop_what_fits_not(common->rounds, room, count);
        for (uint32_t i = 1; i < *count; i++)
            first = is_ahead(&items[i], &items[first]) ? i : first;
        if (*count > 0 && !give_next(common->rounds, room, &items[first]))
            items[first] = items[--*count];
    }
    drop_what_fits_not(common->rounds, room, count);
}

/* Units with so large a key that few others have one, and what they would take. */
static void count_sure_units(struct gavel_rounds *rounds, double *taken)
{
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        uint32_t n = 0;
        while (line->want + n < line->limit && key_of(line, line->want + n) >= SURE)
            n++;
        line->sure = n;
        taken[line->column] += n * gang_of(rounds, line);
        rounds->classes[line->classes[0]].sure += n * jobs_per_unit(line);
        if (line_is_pair(line) && line->classes[1] != line->classes[0])
            rounds->classes[line->classes[1]].sure += n;
    }
}

/* Both 'sure' and 'left' fall as its sure units are given, so the answer stays the same. */
static bool has_members(const struct gavel_class *class)
{
    return class->sure <= class->left;
}

/*
 * On a column with room for all units of large keys they are given without looking for the
 * largest first, where their classes have members for all of them: no other units come
 * before these, and none of them is in another one's way.
 */
static void choose_what_is_sure(struct gavel_rounds *rounds, double *room)
{
    double taken[TYPES_MAX] = { 0 };
    double before[TYPES_MAX];
    count_sure_units(rounds, taken);
    memcpy(before, room, sizeof before);
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        struct gavel_class *first = &rounds->classes[line->classes[0]];
        struct gavel_class *second =
            line_is_pair(line) ? &rounds->classes[line->classes[1]] : first;
        uint32_t n = line->sure;
        if (n == 0 || taken[line->column] > before[line->column] ||
            !has_members(first) || !has_members(second))
            continue;
        give_units(rounds, line, n, room);
        first->sure -= n * jobs_per_unit(line);
        second->sure -= second == first ? 0 : n;
    }
}

/*
 * One unit after the other, the largest key first: an item is a line with the key of its
 * next unit.  Room only shrinks, so a line that does not fit is done with; when a few were
 * met, all others like them are dropped at once.
 */
static void choose_by_key(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    struct sort_item *items = rounds->items;
    uint32_t missed = 0;
    uint32_t count = 0;
    if (rounds->choose_running)
        choose_what_is_sure(rounds, room);
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        const struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        if (line->want < line->limit && gang_of(rounds, line) <= room[line->column] &&
            units_left(rounds, line) > 0)
            items[count++] =
                (struct sort_item){ -key_of(line, line->want), rounds->listed[i] };
    }
    if (!rounds->choose_running)
        choose_by_scan(common, room, &count);
    heap_items(items, count);
    while (count > 0 && !gavel_is_full(common, room)) {
        const struct gavel_line *line = &rounds->lines[items[0].value];
        missed += gang_of(rounds, line) > room[line->column];
        if (give_next(rounds, room, &items[0]))
            sift_down(items, count, 0);
        else
            pop_item(items, &count);
        if (missed * MISSES_PART > count) {
            drop_what_fits_not(rounds, room, &count);
            heap_items(items, count);
            missed = 0;
        }
    }
}

/* With a host, jobs that run there and would be stopped move only where that pays. */
static bool move_pays(const struct gavel_common *common, const struct view *view,
                      const struct gavel_line *line, uint32_t column)
{
    const struct gavel_host *host = common->gavel->host;
    uint32_t last = tree_last(&common->rounds->trees, &line->running[0].tree);
    return !host || last == TREE_NONE || line_running(line) < line->want ||
           host->move_pays(host->self, view, last, common->types[column]);
}

/* A faster column with room for units of the line, or GAVEL_NONE. */
static uint32_t faster_column(const struct gavel_common *common,
                              const struct view *view, const struct gavel_line *line,
                              const double *room)
{
    job_id example = common->rounds->classes[line->classes[0]].example;
    const double *rates = gavel_rates(common, example);
    uint32_t best = gavel_spare_column(common, example, NONE, room);
    return best == GAVEL_NONE || rates[best] <= rates[line->column] ||
                   !move_pays(common, view, line, best)
               ? GAVEL_NONE
               : best;
}

/* Units that may move: not those that stay where they run. */
static uint32_t movable_units(const struct gavel_rounds *rounds,
                              const struct gavel_line *line)
{
    return line_is_pair(line)
               ? 0
               : line->want - (rounds->choose_running ? 0 : line_running(line));
}

static bool may_move_up(const struct gavel_common *common, const struct view *view,
                        const double *room)
{
    const struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        const struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        if (movable_units(rounds, line) > 0 &&
            faster_column(common, view, line, room) != GAVEL_NONE)
            return true;
    }
    return false;
}

/* Jobs due a slower type need not use it while there is room on a faster one. */
static void move_up(struct gavel_common *common, const struct view *view, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    if (gavel_is_full(common, room) || !may_move_up(common, view, room))
        return;
    /* The jobs that are owed most first; classes always in the same order. */
    uint32_t count = rounds->listed_count;
    for (uint32_t i = 0; i < count; i++)
        rounds->items[i] = (struct sort_item){
            rounds->by_class ? 0 : -key_of(&rounds->lines[rounds->listed[i]], 0),
            rounds->listed[i]
        };
    heap_items(rounds->items, count);
    while (count > 0 && !gavel_is_full(common, room)) {
        struct gavel_line *line = &rounds->lines[pop_item(rounds->items, &count)];
        uint32_t movable = movable_units(rounds, line);
        uint32_t best;
        while (movable > 0 &&
               (best = faster_column(common, view, line, room)) != GAVEL_NONE) {
            double fits = floor(room[best] / gang_of(rounds, line));
            uint32_t n = fits < movable ? (uint32_t)fits : movable;
            give_units(rounds, line, -(int64_t)n, room);
            give_units(rounds, rounds_alone(common, line->classes[0], best), n, room);
            movable -= n;
        }
    }
}

/* A class's jobs that run and were not chosen stay, while there is room. */
static void choose_to_stay(struct gavel_common *common, uint32_t c, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t column = 0; column < common->type_count; column++) {
        struct gavel_line *line = rounds_alone(common, c, column);
        while (line->choice == rounds->choice && line->want < line_running(line) &&
               rounds->classes[c].left > 0 && rounds->classes[c].gang <= room[column])
            give_units(rounds, line, 1, room);
    }
}

/* And those that wait get what they can use. */
static void choose_to_come(struct gavel_common *common, uint32_t c, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_class *class = &rounds->classes[c];
    uint32_t column;
    while (class->left > 0 &&
           (column = gavel_spare_column(common, class->example, NONE, room)) != NONE) {
        double fits = floor(room[column] / class->gang);
        give_units(rounds, rounds_alone(common, c, column),
                   fits < class->left ? (uint32_t)fits : class->left, room);
    }
}

/* What is left over goes to any class that can use it, the one that is owed most first. */
static void choose_rest_by_credit(struct gavel_common *common, const struct view *view,
                                  double *room, bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rounds->used_count; i++) {
        const struct gavel_class *class = touch_class(common, view, rounds->used[i]);
        if (class->left == 0)
            continue;
        job_id first =
            class->next_waiting == TREE_NONE ? class->example : class->next_waiting;
        rounds->items[count++] =
            (struct sort_item){ .key = -accounts_credit(common, first, view->now_ns),
                                .value = rounds->used[i] };
    }
    sort_items(rounds->items, rounds->item_scratch, count);
    for (uint32_t i = 0; running && i < count && !gavel_is_full(common, room); i++)
        choose_to_stay(common, rounds->items[i].value, room);
    for (uint32_t i = 0; i < count && !gavel_is_full(common, room); i++)
        choose_to_come(common, rounds->items[i].value, room);
}

static bool fits_somewhere(const struct gavel_common *common,
                           const struct gavel_queue *queue, const double *room)
{
    for (uint32_t c = 0; c < common->type_count; c++)
        if (queue->types >> common->types[c] & 1 && queue->gpus <= room[c])
            return true;
    return false;
}

/* Of the queues that may fit the one whose next job came first; NULL: there is none. */
static struct gavel_queue *first_queue(struct gavel_common *common, const double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_queue *first = NULL;
    for (uint32_t i = 0; i < rounds->queue_count; i++) {
        struct gavel_queue *queue = &rounds->queues[i];
        if (queue->next != TREE_NONE && fits_somewhere(common, queue, room) &&
            (!first ||
             common->entries[queue->next].ticket < common->entries[first->next].ticket))
            first = queue;
    }
    return first;
}

/* The same where every job is a class of its own: who is due something and owed most, ... */
static void choose_rest_by_key(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    double widest = most_room(common, room);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rounds->listed_count; i++) {
        const struct gavel_line *line = &rounds->lines[rounds->listed[i]];
        const struct gavel_class *class = &rounds->classes[line->classes[0]];
        if (!line_is_pair(line) && class->left > 0 && class->gang <= widest)
            rounds->items[count++] =
                (struct sort_item){ -key_of(line, 0), line->classes[0] };
    }
    heap_items(rounds->items, count);
    while (count > 0 && !gavel_is_full(common, room)) {
        uint32_t c = pop_item(rounds->items, &count);
        if (rounds->choose_running)
            choose_to_stay(common, c, room);
        choose_to_come(common, c, room);
    }
}

/* ... then the one that came first. */
static void choose_rest_by_arrival(struct gavel_common *common, const struct view *view,
                                   double *room, bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *runs = &rounds->lists[LIST_RUNNING];
    uint32_t count = 0;
    for (uint32_t i = 0; running && i < runs->count; i++) {
        const struct gavel_line *line = &rounds->lines[runs->lines[i]];
        for (uint32_t side = 0; side < 2 && line->classes[side] != NONE; side++) {
            const struct gavel_class *class = &rounds->classes[line->classes[side]];
            if (class->left > 0)
                rounds->items[count++] =
                    (struct sort_item){ (double)common->entries[class->example].ticket,
                                        line->classes[side] };
        }
    }
    sort_items(rounds->items, rounds->item_scratch, count);
    for (uint32_t i = 0; i < count && !gavel_is_full(common, room); i++)
        choose_to_stay(common, rounds->items[i].value, room);
    for (uint32_t i = 0; i < rounds->queue_count; i++)
        rounds->queues[i].next =
            tree_first(&rounds->arrivals, &rounds->queues[i].by_arrival);
    uint32_t next = 0; /* of those that run; they may have to move */
    while (!gavel_is_full(common, room)) {
        struct gavel_queue *queue = first_queue(common, room);
        double ticket = queue ? (double)common->entries[queue->next].ticket : INFINITY;
        if (!queue && next == count)
            return;
        if (next < count && rounds->items[next].key < ticket) {
            choose_to_come(common, rounds->items[next++].value, room);
            continue;
        }
        uint32_t c = rounds->members[queue->next].class;
        queue->next = tree_next(&rounds->arrivals, queue->next);
        if (touch_class(common, view, c)->left > 0)
            choose_to_come(common, c, room);
    }
}

/* Two jobs need not share while there is room for each. */
static void part_pairs(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = rounds->touched_count; i-- > 0 && !gavel_is_full(common, room);) {
        struct gavel_line *line = &rounds->lines[rounds->touched[i]];
        if (!line_is_pair(line))
            continue;
        job_id second = rounds->classes[line->classes[1]].example;
        const double *rates = gavel_rates(common, second);
        while (line->want > 0) {
            uint32_t column = gavel_spare_column(common, second, NONE, room);
            if (column == NONE || rates[column] < rates[line->column] / 2)
                break; /* it is better off where it is */
            give_units(rounds, line, -1, room);
            give_units(rounds, rounds_alone(common, line->classes[0], line->column), 1,
                       room);
            give_units(rounds, rounds_alone(common, line->classes[1], column), 1, room);
        }
    }
}

/* Which units of which lines are to run. */
static void choose_units(struct gavel_common *common, const struct view *view,
                         double *room, bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    begin_choice(common, view, room, running);
    for (uint32_t c = 0; running && c < common->type_count; c++)
        if (room[c] > 2.0 * rounds->listed_count)
            choose_by_threshold(common, c, room);
    choose_by_key(common, room);
    if (common->gavel->rule->strict)
        return;
    if (common->gavel->aware)
        move_up(common, view, room);
    if (gavel_is_full(common, room))
        return;
    if (rounds->by_class) {
        choose_rest_by_credit(common, view, room, running);
    } else {
        choose_rest_by_key(common, room);
        choose_rest_by_arrival(common, view, room, running);
    }
    if (running)
        part_pairs(common, room);
}

/* --- which jobs they are ----------------------------------------------------------------- */

static bool is_bound(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return job->next.count > 0 || job->leaving || job->coming != JOB_NONE ||
           gavel_is_spared(common, view, job);
}

/* It, or the job that shares with it, is about to move or to end, or had better stay. */
static bool is_fixed(const struct gavel_common *common, const struct view *view,
                     job_id id)
{
    const struct job *job = &view->jobs[id];
    return is_bound(common, view, job) ||
           (job->partner != JOB_NONE &&
            is_bound(common, view, &view->jobs[job->partner]));
}

/* From 'id' on towards those that are owed more, or less: the first that can be moved. */
static job_id find_movable(const struct gavel_common *common, const struct view *view,
                           uint32_t id, bool more)
{
    const struct tree_pool *trees = &common->rounds->trees;
    while (id != TREE_NONE &&
           (common->rounds->members[id].leaves || is_fixed(common, view, id)))
        id = more ? tree_prev(trees, id) : tree_next(trees, id);
    return id == TREE_NONE ? JOB_NONE : id;
}

/* The first is owed more than the second, by more than so many rounds. */
static bool is_owed_more(const struct gavel_common *common, const struct view *view,
                         job_id one, job_id other, double rounds)
{
    double round_s = common->rounds->round_s;
    return accounts_credit(common, one, view->now_ns) -
               accounts_credit(common, other, view->now_ns) >
           rounds * round_s + EQUAL_S;
}

static void let_leave(struct gavel_rounds *rounds, job_id id)
{
    struct gavel_member *member = &rounds->members[id];
    struct gavel_class *class = &rounds->classes[member->class];
    member->leaves = true;
    member->next_mover = class->movers;
    class->movers = id;
    rounds->leavers[rounds->leaver_count++] = id;
}

static void add_unit(struct gavel_rounds *rounds, job_id first, job_id second,
                     uint32_t column)
{
    rounds->units[rounds->unit_count++] =
        (struct gavel_unit){ { first, second }, column };
    rounds->members[first].taken = true;
    rounds->members[first].to = column;
    if (second == JOB_NONE)
        return;
    rounds->members[second].taken = true;
    rounds->members[second].to = column;
}

/* The waiting member that is owed most and has no place yet. */
static job_id first_waiting(struct gavel_rounds *rounds, struct gavel_class *class)
{
    while (class->next_waiting != TREE_NONE &&
           rounds->members[class->next_waiting].taken)
        class->next_waiting = tree_next(&rounds->trees, class->next_waiting);
    return class->next_waiting == TREE_NONE ? JOB_NONE : class->next_waiting;
}

/* The member without a place that is owed most: it waits, or loses the place it has. */
static job_id take_member(struct gavel_common *common, const struct view *view,
                          uint32_t c)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_class *class = &rounds->classes[c];
    job_id best = first_waiting(rounds, class);
    double most_s =
        best == JOB_NONE ? -INFINITY : accounts_credit(common, best, view->now_ns);
    for (job_id id = class->movers; id != JOB_NONE;
         id = rounds->members[id].next_mover) {
        double credit_s = accounts_credit(common, id, view->now_ns);
        if (!rounds->members[id].taken && credit_s >= most_s) {
            best = id;
            most_s = credit_s;
        }
    }
    if (best != JOB_NONE)
        rounds->members[best].taken = true;
    return best;
}

/* Lines that are to run fewer units lose those that are owed least. */
static void empty_line(struct gavel_common *common, const struct view *view,
                       struct gavel_line *line)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t n = line_running(line);
    if (n <= line->want)
        return;
    uint32_t id = tree_last(&rounds->trees, &line->running[0].tree);
    for (; n > line->want; n--) {
        id = find_movable(common, view, id, /* more= */ true);
        if (id == JOB_NONE)
            return;
        let_leave(rounds, id);
        if (rounds->members[id].mate != JOB_NONE)
            let_leave(rounds, rounds->members[id].mate);
    }
}

/* Lines that are to run more units get members; one without a partner runs alone. */
static void fill_line(struct gavel_common *common, const struct view *view,
                      const struct gavel_line *line)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t n = line_running(line); n < line->want; n++) {
        job_id first = take_member(common, view, line->classes[0]);
        if (first == JOB_NONE)
            return;
        job_id second =
            line_is_pair(line) ? take_member(common, view, line->classes[1]) : JOB_NONE;
        add_unit(rounds, first, second, line->column);
    }
}

/* Members that wait take the places of those that are owed less by more than a round. */
static void swap_members(struct gavel_common *common, const struct view *view,
                         const struct gavel_line *line, uint32_t side)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_class *class = &rounds->classes[line->classes[side]];
    if (first_waiting(rounds, class) == JOB_NONE)
        return;
    uint32_t id = tree_last(&rounds->trees, &line->running[side].tree);
    job_id waiting;
    while ((waiting = first_waiting(rounds, class)) != JOB_NONE) {
        id = find_movable(common, view, id, /* more= */ true);
        if (id == JOB_NONE || !is_owed_more(common, view, waiting, id,
                                            STAYS + gavel_lead(common, view, id)))
            return;
        job_id mate = rounds->members[id].mate;
        if (mate != JOB_NONE && rounds->members[mate].taken)
            return;
        let_leave(rounds, id);
        add_unit(rounds, mate == JOB_NONE ? waiting : mate,
                 mate == JOB_NONE ? JOB_NONE : waiting, line->column);
    }
}

/* A member on a slower type that is owed more by enough changes places with one on a
 * faster type. */
static void exchange_members(struct gavel_common *common, const struct view *view,
                             const struct gavel_line *fast,
                             const struct gavel_line *slow)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t up = tree_first(&rounds->trees, &slow->running[0].tree);
    uint32_t down = tree_last(&rounds->trees, &fast->running[0].tree);
    for (;;) {
        up = find_movable(common, view, up, /* more= */ false);
        down = find_movable(common, view, down, /* more= */ true);
        if (up == JOB_NONE || down == JOB_NONE ||
            !is_owed_more(common, view, up, down,
                          STAYS + MOVES + gavel_lead(common, view, up) +
                              gavel_lead(common, view, down)))
            return;
        let_leave(rounds, up);
        let_leave(rounds, down);
        add_unit(rounds, up, JOB_NONE, fast->column);
        add_unit(rounds, down, JOB_NONE, slow->column);
    }
}

static void exchange_with_slower(struct gavel_common *common, const struct view *view,
                                 const struct gavel_line *fast)
{
    for (uint32_t column = 0; column < common->type_count; column++) {
        const struct gavel_line *slow = rounds_alone(common, fast->classes[0], column);
        if (line_running(slow) > 0 && fast->rate[0] > slow->rate[0])
            exchange_members(common, view, fast, slow);
    }
}

/* From units to jobs: those that come, and those that leave. */
static void choose_members(struct gavel_common *common, const struct view *view,
                           bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *runs = &rounds->lists[LIST_RUNNING];
    for (uint32_t i = 0; running && i < runs->count; i++)
        empty_line(common, view, &rounds->lines[runs->lines[i]]);
    for (uint32_t pairs = 2; pairs-- > 0;)
        for (uint32_t i = 0; i < rounds->touched_count; i++) {
            const struct gavel_line *line = &rounds->lines[rounds->touched[i]];
            if (line_is_pair(line) == (pairs > 0))
                fill_line(common, view, line);
        }
    for (uint32_t i = 0; running && i < runs->count; i++) {
        const struct gavel_line *line = &rounds->lines[runs->lines[i]];
        swap_members(common, view, line, 0);
        if (line_is_pair(line))
            swap_members(common, view, line, 1);
    }
    for (uint32_t i = 0; running && i < runs->count; i++) {
        const struct gavel_line *line = &rounds->lines[runs->lines[i]];
        if (!line_is_pair(line) && rounds->classes[line->classes[0]].count > 1)
            exchange_with_slower(common, view, line);
    }
}

void gavel_choose(struct gavel_common *common, const struct view *view, double *room,
                  bool running)
{
    choose_units(common, view, room, running);
    choose_members(common, view, running);
}

void gavel_choose_forget(struct gavel_rounds *rounds)
{
    for (uint32_t i = 0; i < rounds->leaver_count; i++) {
        struct gavel_member *member = &rounds->members[rounds->leavers[i]];
        member->leaves = member->keeps = member->taken = false;
        member->to = NONE;
    }
    for (uint32_t i = 0; i < rounds->unit_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            job_id id = rounds->units[i].jobs[side];
            if (id == JOB_NONE)
                continue;
            rounds->members[id].taken = rounds->members[id].joined = false;
            rounds->members[id].to = NONE;
        }
}
