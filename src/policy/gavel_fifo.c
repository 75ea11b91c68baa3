/*
 * gavel_fifo.c - first come, first served, on the GPUs that suit.
 *
 * Jobs in order of arrival, each on one type: of those with enough free GPUs for its
 * gang the one where it runs fastest (Gavel, section 4.2, as its code has it).  The
 * first job that does not fit ends the queue.  Without rates it is the first type with
 * enough GPUs; with sharing, a job that does not fit may join another, if the two
 * together make half as much progress again as one.
 *
 * The order is by arrival alone, so a job keeps its type only until an earlier job
 * leaves one that suits it better.
 *
 * The published system without rates works otherwise, and not as it was meant to: jobs
 * keep their type; the first waiting job takes the place of one that ended, if that is
 * enough for it; and from then on every job goes to the last type on the list of those
 * with free GPUs, even beyond its capacity.  That is compat=released with aware=false.
 */
#include "policy/gavel/gavel.h"

#include <string.h>

#include "base/arena.h"
#include "base/mt19937.h"
#include "model/job.h"
#include "solve/solve.h"

/* A job that has a type, or had one; by public id. */
struct holder {
    uint64_t id;
    uint32_t column;
};

struct gavel_fifo {
    struct gavel_policy gavel;
    struct mt19937 draws;
    struct holder *holders;
    uint32_t holder_count;
};

/* --- the published system without rates --------------------------------------------- */

struct gavel_fifo_line {
    struct gavel_fifo *fifo;
    const struct gavel_call *call;
    double room[TYPES_MAX];
    uint32_t *queue; /* places in the call, without a type */
    uint32_t queue_count, served;
    uint32_t *on; /* [job] its column, or SHARES_NO_TYPE */
};

static uint64_t id_of(const struct gavel_call *call, uint32_t at)
{
    return call->view->jobs[call->jobs[at]].id;
}

/* Put the first job of the queue on 'column', unless it cannot run there. */
static bool serve_first(struct gavel_fifo_line *line, uint32_t column)
{
    const struct gavel_call *call = line->call;
    uint32_t at = line->queue[line->served];
    if (!(call->rate[(size_t)at * call->type_count + column] > 0))
        return false;
    line->on[at] = column;
    line->room[column] -= call->gang[at];
    return true;
}

/* Jobs that have a type keep it; the others are the queue. */
static void list_queue(struct gavel_fifo_line *line)
{
    const struct gavel_call *call = line->call;
    const struct gavel_fifo *fifo = line->fifo;
    uint32_t next = 0;
    for (uint32_t at = 0; at < call->job_count; at++) {
        while (next < fifo->holder_count && fifo->holders[next].id < id_of(call, at))
            next++;
        bool holds =
            next < fifo->holder_count && fifo->holders[next].id == id_of(call, at);
        line->on[at] = holds ? fifo->holders[next].column : SHARES_NO_TYPE;
        if (!holds)
            line->queue[line->queue_count++] = at;
    }
}

/*
 * Go through the holders in order: the first job of the queue may replace one that
 * ended.
 */
static void replace_departed(struct gavel_fifo_line *line)
{
    const struct gavel_call *call = line->call;
    const struct gavel_fifo *fifo = line->fifo;
    uint32_t at = 0;
    for (uint32_t i = 0; i < fifo->holder_count; i++) {
        const struct holder *holder = &fifo->holders[i];
        while (at < call->job_count && id_of(call, at) < holder->id)
            at++;
        if (at < call->job_count && id_of(call, at) == holder->id)
            line->room[holder->column] -= call->gang[at];
        else if (line->served < line->queue_count &&
                 call->gang[line->queue[line->served]] <= line->room[holder->column])
            line->served += serve_first(line, holder->column);
    }
}

/*
 * Place the rest of the queue.  A type drawn at random leaves the list when the last is
 * full.
 */
static void serve_rest(struct gavel_fifo_line *line)
{
    const struct gavel_call *call = line->call;
    uint32_t open[TYPES_MAX];
    uint32_t open_count = 0;
    for (uint32_t c = 0; c < call->type_count; c++)
        if (line->room[c] > 0)
            open[open_count++] = c;
    for (; line->served < line->queue_count && open_count > 0; line->served++) {
        double gang = call->gang[line->queue[line->served]];
        uint32_t fitting[TYPES_MAX];
        uint32_t count = 0;
        for (uint32_t i = 0; i < open_count; i++)
            if (line->room[open[i]] >= gang)
                fitting[count++] = i;
        if (count == 0)
            return;
        uint32_t drawn = fitting[mt_below(&line->fifo->draws, count)];
        uint32_t last = open[open_count - 1];
        if (!serve_first(line, last) || line->room[last] != 0)
            continue;
        open_count--;
        memmove(&open[drawn], &open[drawn + 1], (open_count - drawn) * sizeof *open);
    }
}

static void released_blind(struct gavel_fifo *fifo, struct gavel_call *call)
{
    struct gavel_fifo_line line = {
        .fifo = fifo,
        .call = call,
        .queue = arena_array(call->scratch, uint32_t, call->job_count),
        .on = arena_array(call->scratch, uint32_t, call->job_count)
    };
    memcpy(line.room, call->capacity, call->type_count * sizeof *line.room);
    list_queue(&line);
    replace_departed(&line);
    serve_rest(&line);
    uint32_t count = 0;
    for (uint32_t at = 0; at < call->job_count; at++) {
        if (line.on[at] == SHARES_NO_TYPE)
            continue;
        call->x[(size_t)at * call->type_count + line.on[at]] = 1;
        fifo->holders[count++] = (struct holder){ id_of(call, at), line.on[at] };
    }
    fifo->holder_count = count;
}

/* --- first come, first served --------------------------------------------------------- */

static int fifo_shares(void *self, struct gavel_call *call, struct error *err)
{
    struct gavel_fifo *fifo = self;
    if (call->released && !fifo->gavel.aware) {
        released_blind(fifo, call);
        return 0;
    }
    struct fifo_shares queue = { .job_count = call->job_count,
                                 .type_count = call->type_count,
                                 .pair_count = call->pair_count,
                                 .capacity = call->capacity,
                                 .gang = call->gang,
                                 .rate = call->rate,
                                 .pairs = call->pairs,
                                 .pair_rate = call->pair_rate,
                                 .aware = fifo->gavel.aware,
                                 .released = call->released };
    shares_fifo(&queue, call->scratch, call->x);
    return 0;
}

static const struct gavel_rule fifo_rule = { .shares = fifo_shares,
                                             .blind = BLIND_TRUE,
                                             .strict = true };

static int fifo_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct gavel_fifo *fifo = self;
    mt_init(&fifo->draws, seed);
    fifo->holders = arena_array(run, struct holder, view->job_max);
    return gavel_init(self, &fifo_rule, view, seed, run, err);
}

static const struct instance_rule fifo_instance = {
    .method = INSTANCE_FIFO,
    .blind = BLIND_TRUE,
    .published =
        (const struct instance_name[]){
            { "fifo_perf", "" },
            { "fifo_packed", "sharing=true" },
            { "fifo", "aware=false" },
            { 0 },
        },
};

const struct policy policy_gavel_fifo = {
    .name = "gavel-fifo",
    .brief = "first come, first served, on the accelerators that suit",
    .source = "Narayanan et al., Gavel, OSDI 2020, section 4.2",
    .params = gavel_sharing_params,
    .self_size = sizeof(struct gavel_fifo),
    .instance = &fifo_instance,
    .init = fifo_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
