/*
 * gavel_accounts.c - classes of jobs that are alike, the lines they run in, and what
 * lines and jobs are owed.
 *
 * A line that is due u units and runs r of them is owed u - r unit-seconds for every second.
 * A job is owed its class's part of every second, X, and pays for what it gets: where it
 * runs at the rate r and its class at p on average, r/p seconds for every second.  So equal
 * jobs make equal steps in the long run, whichever types they have been on.
 *
 *     a member of a class with X = 1/2 on one type:  +1/2 s per second while it waits,
 *                                                    -1/2 s per second while it runs
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "model/node_set.h"
#include "model/sharing.h"
#include "policy/gavel/gavel_round.h"
#include "predict/estimate.h"

#define PAIRED_CLASSES_MAX 512 /* more are not told apart where classes are paired */
#define PAIR_LINES_MIN 16384

/* --- lists of lines -------------------------------------------------------------------- */

/* Jobs that do not wait, where every job is a class of its own. */
static void list_busy(struct gavel_rounds *rounds, job_id id, bool in)
{
    uint32_t *place = &rounds->members[id].busy;
    if (rounds->by_class)
        return;
    if (in && *place == 0) {
        rounds->busy[rounds->busy_count++] = id;
        *place = rounds->busy_count;
    } else if (!in && *place > 0) {
        job_id last = rounds->busy[--rounds->busy_count];
        rounds->busy[*place - 1] = last;
        rounds->members[last].busy = *place;
        *place = 0;
    }
}

/* It is not looked at any more. */
static void line_forget(struct gavel_rounds *rounds, struct gavel_line *line)
{
    for (uint32_t which = 0; which < LIST_COUNT; which++)
        line_list(rounds, line, which, false);
    line->near = line->choice = 0;
    line->share = 0;
}

/* --- classes ------------------------------------------------------------------------- */

static uint64_t hash_job(const struct gavel_common *common, const struct view *view,
                         const struct job *job, const double *rates, uint32_t match)
{
    uint64_t hash = hash_doubles(rates, common->type_count);
    hash = hash_word(hash, (uint64_t)job->gpus << 32 | job->kind);
    hash = hash_word(hash, (uint64_t)job->types << 32 | node_set_number(job->set));
    hash = hash_word(hash, (uint64_t)match << 32 | job->entity);
    if (common->gavel->rule->deadlines_apart && !common->gavel->sharing &&
        job->deadline_ns > 0)
        hash = hash_word(hash, job->id + 1);
    if (common->gavel->sharing)
        hash ^= sharing_hash(view->rates, job);
    return hash_word(hash, hash_doubles(&job->weight, 1));
}

/* How little two jobs are alike; 0: in everything that matters, NONE: not in their gangs. */
static uint32_t count_differences(const struct gavel_common *common,
                                  const struct view *view, job_id a, job_id b)
{
    const struct job *one = &view->jobs[a];
    const struct job *two = &view->jobs[b];
    if (one->gpus != two->gpus)
        return NONE;
    bool rates = memcmp(gavel_rates(common, a), gavel_rates(common, b),
                        common->type_count * sizeof(double)) != 0;
    bool entity = common->gavel->rule->by_entity && one->entity != two->entity;
    bool shares = common->gavel->sharing && !sharing_is_alike(view->rates, one, two);
    return 64u * shares +
           32u * (node_set_number(one->set) != node_set_number(two->set)) +
           16u * (one->kind != two->kind) + 8u * rates +
           4u * (one->types != two->types) + 2u * entity + (one->weight != two->weight);
}

static uint32_t *chain_of(struct gavel_rounds *rounds, uint64_t hash)
{
    return &rounds->alike[hash & rounds->alike_mask];
}

static uint32_t find_alike(struct gavel_common *common, const struct view *view,
                           job_id id, uint64_t hash, uint32_t match)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t c = *chain_of(rounds, hash);
    while (c != NONE &&
           (rounds->classes[c].hash != hash || rounds->classes[c].match != match ||
            count_differences(common, view, rounds->classes[c].example, id) != 0))
        c = rounds->classes[c].next_alike;
    return c;
}

/* Where pairs are made of classes there can be too many: then the one most like it. */
static uint32_t find_nearest(struct gavel_common *common, const struct view *view,
                             job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t nearest = NONE;
    uint32_t least = NONE;
    for (uint32_t i = 0; i < rounds->used_count; i++) {
        const struct gavel_class *class = &rounds->classes[rounds->used[i]];
        uint32_t d = count_differences(common, view, class->example, id);
        if (d < least) {
            least = d;
            nearest = rounds->used[i];
        }
    }
    return nearest;
}

static void group_init(struct gavel_group *group, int64_t now_ns)
{
    tree_init(&group->tree);
    group->accrual = (struct accrual){ .at_ns = now_ns };
}

static void line_init(struct gavel_line *line, uint32_t column, uint32_t a, uint32_t b,
                      int64_t now_ns)
{
    *line = (struct gavel_line){ .column = column,
                                 .classes = { a, b },
                                 .due = { .at_ns = now_ns },
                                 .next_pair = { NONE, NONE } };
    group_init(&line->running[0], now_ns);
    group_init(&line->running[1], now_ns);
}

static uint32_t add_class(struct gavel_common *common, const struct view *view,
                          job_id id, uint64_t hash, uint32_t match)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t c = rounds->free_count > 0 ? rounds->free_classes[--rounds->free_count]
                                        : rounds->class_next++;
    struct gavel_class *class = &rounds->classes[c];
    *class = (struct gavel_class){ .example = id,
                                   .hash = hash,
                                   .match = match,
                                   .gang = view->jobs[id].gpus,
                                   .place = rounds->used_count,
                                   .next_alike = NONE,
                                   .first_pair = NONE };
    group_init(&class->waiting, view->now_ns);
    rounds->used[rounds->used_count++] = c;
    if (rounds->by_class) {
        uint32_t *head = chain_of(rounds, hash);
        class->next_alike = *head;
        *head = c;
    }
    for (uint32_t column = 0; column < common->type_count; column++)
        line_init(rounds_alone(common, c, column), column, c, NONE, view->now_ns);
    return c;
}

static uint32_t *pair_chain(struct gavel_rounds *rounds, uint32_t column, uint32_t a,
                            uint32_t b)
{
    uint64_t hash =
        hash_word(hash_word(HASH_WORDS_START, column), (uint64_t)a << 32 | b);
    return &rounds->pair_alike[hash & rounds->pair_mask];
}

/* Where the line after this one is named, among the pairs of a class. */
static uint32_t *next_pair(struct gavel_line *line, uint32_t c)
{
    return &line->next_pair[line->classes[0] != c];
}

static void unlink_pair(struct gavel_rounds *rounds, uint32_t at, uint32_t c)
{
    uint32_t *link = &rounds->classes[c].first_pair;
    while (*link != at)
        link = next_pair(&rounds->lines[*link], c);
    *link = *next_pair(&rounds->lines[at], c);
}

static void remove_pair(struct gavel_rounds *rounds, uint32_t at)
{
    struct gavel_line *line = &rounds->lines[at];
    uint32_t *link =
        pair_chain(rounds, line->column, line->classes[0], line->classes[1]);
    while (*link != at)
        link = &rounds->lines[*link].next;
    *link = line->next;
    unlink_pair(rounds, at, line->classes[0]);
    if (line->classes[1] != line->classes[0])
        unlink_pair(rounds, at, line->classes[1]);
    line_forget(rounds, line);
    line->next = rounds->pair_free;
    rounds->pair_free = at;
}

/* --- lines of two ------------------------------------------------------------------------ */

uint32_t accounts_pair_line(struct gavel_common *common, uint32_t column, uint32_t a,
                            uint32_t b, bool add)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t low = a < b ? a : b;
    uint32_t high = a < b ? b : a;
    uint32_t *head = pair_chain(rounds, column, low, high);
    uint32_t at = *head;
    while (at != NONE &&
           (rounds->lines[at].column != column || rounds->lines[at].classes[0] != low ||
            rounds->lines[at].classes[1] != high))
        at = rounds->lines[at].next;
    if (at != NONE || !add)
        return at;
    if (rounds->pair_free != NONE) {
        at = rounds->pair_free;
        rounds->pair_free = rounds->lines[at].next;
    } else if (rounds->pair_next < rounds->alone_count + rounds->pair_max) {
        at = rounds->pair_next++;
    } else {
        return NONE;
    }
    struct gavel_line *line = &rounds->lines[at];
    line_init(line, column, low, high, 0);
    line->next = *head;
    *head = at;
    line->next_pair[0] = rounds->classes[low].first_pair;
    rounds->classes[low].first_pair = at;
    if (high != low) {
        line->next_pair[1] = rounds->classes[high].first_pair;
        rounds->classes[high].first_pair = at;
    }
    return at;
}

/* --- credits ---------------------------------------------------------------------------- */

static double bound(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

static struct gavel_group *group_of(const struct gavel_rounds *rounds, job_id id)
{
    const struct gavel_member *member = &rounds->members[id];
    return member->line == NONE ? &rounds->classes[member->class].waiting
                                : &rounds->lines[member->line].running[member->side];
}

double accounts_credit(const struct gavel_common *common, job_id id, int64_t now_ns)
{
    const struct gavel_rounds *rounds = common->rounds;
    double credit_s = rounds->members[id].anchor_s +
                      accrual_at(&group_of(rounds, id)->accrual, now_ns);
    return bound(credit_s, CREDIT_MIN * rounds->round_s, CREDIT_MAX * rounds->round_s);
}

static double bound_due(const struct gavel_rounds *rounds,
                        const struct gavel_line *line, double due_s)
{
    double units = fmax(line_units(rounds, line), 1);
    return bound(due_s, CREDIT_MIN * units * rounds->round_s,
                 CREDIT_MAX * units * rounds->round_s);
}

double accounts_owed(const struct gavel_rounds *rounds, const struct gavel_line *line,
                     int64_t now_ns)
{
    return bound_due(rounds, line, accrual_at(&line->due, now_ns)) / rounds->round_s;
}

/* A line's slope follows from its units and those that run.  What is not due is not owed. */
static void turn_line(struct gavel_rounds *rounds, struct gavel_line *line,
                      int64_t now_ns)
{
    double units = line_units(rounds, line);
    uint32_t running = line_running(line);
    accrual_turn(&line->due, now_ns, units > 0 ? units - running : 0);
    line->due.sum_s = units > 0 ? bound_due(rounds, line, line->due.sum_s) : 0;
    line_list(rounds, line, LIST_RUNNING, running > 0);
    if (rounds->near_number > 0 && line->near != rounds->near_number && units > 0 &&
        line_key_until(rounds, line, rounds->near_until_ns) >= rounds->near_floor) {
        line->near = rounds->near_number;
        rounds->near.lines[rounds->near.count++] = (uint32_t)(line - rounds->lines);
        if (rounds->near.count == rounds->alone_count + rounds->pair_max)
            rounds->near_number = 0; /* the list is full: make another */
    }
}

/* A class is about to go: what it was due with another is due to that one alone. */
static void leave_pair(struct gavel_common *common, uint32_t at, uint32_t c,
                       int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_line *line = &rounds->lines[at];
    uint32_t other = line->classes[line->classes[0] == c];
    if (other != c && line->share > 0 && rounds->classes[other].count > 0) {
        struct gavel_line *alone = rounds_alone(common, other, line->column);
        alone->share =
            fmin(1, alone->share + line->share / rounds->classes[other].count);
        line_list(rounds, alone, LIST_DUE, true);
        turn_line(rounds, alone, now_ns);
    }
    remove_pair(rounds, at);
}

static void remove_class(struct gavel_common *common, uint32_t c, int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_class *class = &rounds->classes[c];
    while (class->first_pair != NONE)
        leave_pair(common, class->first_pair, c, now_ns);
    for (uint32_t column = 0; column < common->type_count; column++)
        line_forget(rounds, rounds_alone(common, c, column));
    if (rounds->by_class) {
        uint32_t *link = chain_of(rounds, class->hash);
        while (*link != c)
            link = &rounds->classes[*link].next_alike;
        *link = class->next_alike;
    }
    uint32_t last = rounds->used[--rounds->used_count];
    rounds->used[class->place] = last;
    rounds->classes[last].place = class->place;
    rounds->free_classes[rounds->free_count++] = c;
}

/* What a member pays per second where it makes so many steps per second. */
static void turn_running(struct gavel_rounds *rounds, struct gavel_line *line,
                         uint32_t side, int64_t now_ns)
{
    const struct gavel_class *class = &rounds->classes[line->classes[side]];
    double pays = class->pace > 0 ? line->rate[side] / class->pace : 0;
    accrual_turn(&line->running[side].accrual, now_ns, class->time - pays);
}

void accounts_turn_class(struct gavel_common *common, uint32_t c, int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_class *class = &rounds->classes[c];
    accrual_turn(&class->waiting.accrual, now_ns, class->time);
    for (uint32_t column = 0; column < common->type_count; column++) {
        struct gavel_line *line = rounds_alone(common, c, column);
        turn_line(rounds, line, now_ns);
        turn_running(rounds, line, 0, now_ns);
    }
}

void accounts_turn_pair(struct gavel_common *common, uint32_t at, int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    turn_line(rounds, &rounds->lines[at], now_ns);
    turn_running(rounds, &rounds->lines[at], 0, now_ns);
    turn_running(rounds, &rounds->lines[at], 1, now_ns);
}

/* --- queues of waiting jobs, where every job is a class of its own ------------------------- */

static uint32_t find_queue(struct gavel_rounds *rounds, const struct job *job)
{
    uint32_t empty = NONE;
    uint32_t set = node_set_number(job->set);
    for (uint32_t i = 0; i < rounds->queue_count; i++) {
        const struct gavel_queue *queue = &rounds->queues[i];
        if (queue->gpus == job->gpus && queue->types == job->types && queue->set == set)
            return i;
        if (queue->by_arrival.count == 0)
            empty = i;
    }
    uint32_t at = empty == NONE ? rounds->queue_count++ : empty;
    struct gavel_queue *queue = &rounds->queues[at];
    *queue = (struct gavel_queue){ .gpus = job->gpus, .types = job->types, .set = set };
    tree_init(&queue->by_arrival);
    tree_init(&queue->by_key);
    return at;
}

static int64_t key_of(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_call call;
    struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
    struct gavel_rows rows = { .jobs = &id, .count = 1 };
    gavel_prepare(common, view, &times, &rows, NULL, &call);
    double key_s = common->gavel->rule->key(&call, 0);
    return key_s < 9e9 ? (int64_t)(key_s * 1e9) : INT64_MAX;
}

static void enter_queue(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_member *member = &rounds->members[id];
    uint64_t ticket = common->entries[id].ticket;
    member->queue = find_queue(rounds, &view->jobs[id]);
    struct gavel_queue *queue = &rounds->queues[member->queue];
    tree_insert(&rounds->arrivals, &queue->by_arrival, id, (int64_t)ticket, ticket, 0);
    if (common->gavel->rule->key)
        tree_insert(&rounds->keys, &queue->by_key, id, key_of(common, view, id), ticket,
                    0);
}

static void leave_queue(struct gavel_common *common, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_queue *queue = &rounds->queues[rounds->members[id].queue];
    tree_remove(&rounds->arrivals, &queue->by_arrival, id);
    if (common->gavel->rule->key)
        tree_remove(&rounds->keys, &queue->by_key, id);
}

/* It waits for GPUs from now on, or does not. */
static void set_waits(struct gavel_common *common, const struct view *view, job_id id,
                      bool waits)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_member *member = &rounds->members[id];
    if (member->waits == waits)
        return;
    member->waits = waits;
    rounds->waiting_count += waits ? 1 : UINT32_MAX;
    if (rounds->by_class)
        return;
    if (waits)
        enter_queue(common, view, id);
    else
        leave_queue(common, id);
    list_busy(rounds, id, !waits);
}

void accounts_order_again(struct gavel_common *common, const struct view *view)
{
    const struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        if (!rounds->members[id].waits)
            continue;
        leave_queue(common, id);
        enter_queue(common, view, id);
    }
}

/* --- where jobs are ------------------------------------------------------------------------ */

static void enter_tree(struct gavel_common *common, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    tree_insert(&rounds->trees, &group_of(rounds, id)->tree, id,
                (int64_t)llround(-rounds->members[id].anchor_s * 1e9),
                common->entries[id].ticket, 0);
}

/* Each job knows the jobs that have it as mate, so that none keeps a mate that has gone. */
static void set_mate(struct gavel_rounds *rounds, job_id id, job_id mate)
{
    struct gavel_member *member = &rounds->members[id];
    if (member->mate == mate)
        return;
    if (member->mate != JOB_NONE) {
        job_id *link = &rounds->members[member->mate].mate_of;
        while (*link != id)
            link = &rounds->members[*link].next_mate_of;
        *link = member->next_mate_of;
    }
    member->mate = mate;
    if (mate != JOB_NONE) {
        member->next_mate_of = rounds->members[mate].mate_of;
        rounds->members[mate].mate_of = id;
    }
}

/* It is where its class waits, in the tree if it waits for GPUs. */
static void leave_group(struct gavel_common *common, const struct view *view, job_id id)
{
    int64_t now_ns = view->now_ns;
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_member *member = &rounds->members[id];
    double credit_s = accounts_credit(common, id, now_ns);
    if (member->waits || member->line != NONE)
        tree_remove(&rounds->trees, &group_of(rounds, id)->tree, id);
    set_waits(common, view, id, false);
    if (member->line != NONE) {
        turn_line(rounds, &rounds->lines[member->line], now_ns);
        rounds->classes[member->class].seated--;
    }
    member->line = NONE;
    set_mate(rounds, id, JOB_NONE);
    member->anchor_s =
        credit_s - accrual_at(&rounds->classes[member->class].waiting.accrual, now_ns);
}

static void enter_line(struct gavel_common *common, job_id id, uint32_t at,
                       int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_member *member = &rounds->members[id];
    struct gavel_line *line = &rounds->lines[at];
    double credit_s = accounts_credit(common, id, now_ns);
    member->line = at;
    member->side = line->classes[0] != member->class;
    member->anchor_s =
        credit_s - accrual_at(&line->running[member->side].accrual, now_ns);
    rounds->classes[member->class].seated++;
    enter_tree(common, id);
    turn_line(rounds, line, now_ns);
}

/*
 * The job that shares GPUs with it, now or where it is about to go.  That one's own mate can be
 * another: where a job comes to one whose partner has not stopped yet, and where a job moves
 * away from its partner.
 */
static job_id find_mate(const struct gavel_common *common, const struct view *view,
                        job_id id)
{
    const struct job *job = &view->jobs[id];
    bool moves = job->next.count > 0 && job->seats.count > 0;
    job_id mate = moves ? job->next_partner : job->partner;
    if (mate == JOB_NONE || !common->entries[mate].ticket ||
        common->rounds->members[mate].class == NONE)
        return JOB_NONE;
    uint32_t column = gavel_column_now(common, view, job);
    return gavel_column_now(common, view, &view->jobs[mate]) == column ? mate
                                                                       : JOB_NONE;
}

static void follow_one(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    struct gavel_member *member = &rounds->members[id];
    const struct job *job = &view->jobs[id];
    if (member->class == NONE)
        return; /* it is between two classes */
    bool here = job->state != JOB_FREE && job->state != JOB_HELD;
    uint32_t column = here ? gavel_column_now(common, view, job) : NONE;
    bool waits = here && column == NONE && job->state == JOB_WAITING;
    job_id mate = column == NONE ? JOB_NONE : find_mate(common, view, id);
    uint32_t line = NONE;
    if (mate != JOB_NONE)
        line = accounts_pair_line(common, column, member->class,
                                  rounds->members[mate].class, /* add= */ true);
    if (column != NONE && line == NONE)
        line = member->class * common->type_count + column;
    if (line == member->line && waits == member->waits && mate == member->mate)
        return;
    job_id mate_before = member->mate;
    if (line != member->line || waits != member->waits)
        leave_group(common, view, id);
    if (line != NONE && member->line == NONE)
        enter_line(common, id, line, view->now_ns);
    set_mate(rounds, id, mate);
    if (waits && !member->waits) {
        set_waits(common, view, id, true);
        enter_tree(common, id);
    }
    /* The other one is in another line from now on, too. */
    if (mate != JOB_NONE && mate != mate_before)
        follow_one(common, view, mate);
    if (mate_before != JOB_NONE && mate_before != mate &&
        common->entries[mate_before].ticket)
        follow_one(common, view, mate_before);
}

void accounts_follow(struct gavel_common *common, const struct view *view, job_id id)
{
    const struct gavel_member *members = common->rounds->members;
    follow_one(common, view, id);
    if (members[id].class == NONE)
        return;
    /* Jobs with another mate, or none, by events of others. */
    if (members[id].mate != JOB_NONE)
        follow_one(common, view, members[id].mate);
    for (job_id other = members[id].mate_of; other != JOB_NONE;) {
        bool parted = find_mate(common, view, other) != id;
        if (parted)
            follow_one(common, view, other);
        other = parted ? members[id].mate_of : members[other].next_mate_of;
    }
}

void accounts_add(struct gavel_common *common, const struct view *view, job_id id,
                  double credit_s)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    uint32_t match = common->estimate ? estimate_match(common->estimate, id) : 0;
    uint64_t hash = hash_job(common, view, job, gavel_rates(common, id), match);
    uint32_t c = NONE;
    bool apart = common->gavel->rule->deadlines_apart && !common->gavel->sharing &&
                 job->deadline_ns > 0;
    if (rounds->by_class && !apart)
        c = find_alike(common, view, id, hash, match);
    if (c == NONE && rounds->by_class && common->gavel->sharing &&
        rounds->used_count >= PAIRED_CLASSES_MAX)
        c = find_nearest(common, view, id);
    if (c == NONE)
        c = add_class(common, view, id, hash, match);
    rounds->members[id] = (struct gavel_member){
        .class = c,
        .line = NONE,
        .mate = JOB_NONE,
        .mate_of = JOB_NONE,
        .next_mate_of = JOB_NONE,
        .next_mover = JOB_NONE,
        .to = NONE,
    };
    rounds->classes[c].count++;
    rounds->members[id].anchor_s =
        credit_s - accrual_at(&rounds->classes[c].waiting.accrual, view->now_ns);
    accounts_turn_class(common, c, view->now_ns);
    list_busy(rounds, id, true);
    accounts_follow(common, view, id);
}

/* Another member that gives the class its rates: any will do. */
static job_id other_example(const struct gavel_common *common, uint32_t c)
{
    const struct gavel_rounds *rounds = common->rounds;
    const struct gavel_class *class = &rounds->classes[c];
    job_id found = tree_first(&rounds->trees, &class->waiting.tree);
    for (uint32_t column = 0; found == TREE_NONE && column < common->type_count;
         column++)
        found = tree_first(&rounds->trees,
                           &rounds_alone(common, c, column)->running[0].tree);
    for (uint32_t at = class->first_pair; found == TREE_NONE && at != NONE;
         at = *next_pair(&rounds->lines[at], c))
        found = tree_first(
            &rounds->trees,
            &rounds->lines[at].running[rounds->lines[at].classes[0] != c].tree);
    for (uint32_t i = 0; found == TREE_NONE && i < common->job_count; i++)
        if (rounds->members[common->jobs[i]].class == c)
            found = common->jobs[i]; /* all of them are just stopping */
    return found;
}

void accounts_remove(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t c = rounds->members[id].class;
    struct gavel_class *class = &rounds->classes[c];
    leave_group(common, view, id);
    list_busy(rounds, id, false);
    rounds->members[id].class = NONE;
    while (rounds->members[id].mate_of != JOB_NONE)
        follow_one(common, view, rounds->members[id].mate_of);
    class->count--;
    if (class->count == 0) {
        remove_class(common, c, view->now_ns);
    } else {
        if (class->example == id)
            class->example = other_example(common, c);
        accounts_turn_class(common, c, view->now_ns);
    }
}

static uint32_t *make_chains(struct arena *run, size_t count, uint32_t *ret_mask)
{
    uint32_t room = 64;
    while (room < count && room < 1u << 20)
        room *= 2;
    uint32_t *chains = arena_array(run, uint32_t, room);
    memset(chains, 0xff, room * sizeof *chains);
    *ret_mask = room - 1;
    return chains;
}

void accounts_init(struct gavel_common *common, const struct view *view,
                   struct arena *run)
{
    struct gavel_rounds *rounds = common->rounds;
    size_t jobs = view->job_max;
    size_t k = common->type_count;
    rounds->alone_count = (uint32_t)(jobs * k);
    rounds->pair_max =
        common->gavel->sharing ? PAIR_LINES_MIN + rounds->alone_count : 0;
    rounds->pair_next = rounds->alone_count;
    rounds->pair_free = NONE;
    rounds->classes = arena_array(run, struct gavel_class, jobs);
    rounds->used = arena_array(run, uint32_t, jobs);
    rounds->free_classes = arena_array(run, uint32_t, jobs);
    rounds->alike = make_chains(run, rounds->by_class ? jobs : 0, &rounds->alike_mask);
    rounds->lines = arena_array(run, struct gavel_line, jobs * k + rounds->pair_max);
    rounds->pair_alike = make_chains(run, rounds->pair_max, &rounds->pair_mask);
    rounds->members = arena_array(run, struct gavel_member, jobs);
    tree_pool_init(&rounds->trees, run, view->job_max);
    if (rounds->by_class)
        return;
    rounds->queues = arena_array(run, struct gavel_queue, jobs);
    rounds->busy = arena_array(run, job_id, jobs);
    tree_pool_init(&rounds->arrivals, run, view->job_max);
    if (common->gavel->rule->key)
        tree_pool_init(&rounds->keys, run, view->job_max);
}
