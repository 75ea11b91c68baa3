/* rate_rows.c - the tables of rates that were measured, alone and beside others, and of GPUs' use. */
#include "store/rate_rows.h"

#include "model/cluster.h"
#include "model/state.h"
#include "store/db.h"

#define TRIM_EVERY 4096 /* rows written */

static int write_cell(struct rate_rows *rows, const struct rate_table *rates,
                      const char *kind, const struct rate_cell *cell, struct error *err)
{
    db_text(rows->set, 1, kind);
    db_text(rows->set, 2, rates->cluster->types[cell->type].name);
    db_int(rows->set, 3, cell->gpus);
    db_int(rows->set, 4, cell->spread);
    db_real(rows->set, 5, cell->mean);
    db_real(rows->set, 6, cell->variance);
    db_int(rows->set, 7, cell->count);
    db_int(rows->set, 8, cell->at_ns);
    int r = db_run(rows->set, err);
    if (r < 0 || ++rows->count < TRIM_EVERY)
        return r;
    rows->count = 0;
    db_int(rows->trim, 1, RATE_CELLS_MAX);
    return db_run(rows->trim, err);
}

/* What is known of two jobs that share their GPUs. */
static int write_pair(struct rate_rows *rows, const struct state *state,
                      const struct job *job, int64_t at_ns, struct error *err)
{
    const struct job *beside = &state->jobs[job->partner];
    if (!job->learned || !beside->learned || job->type_now == TYPE_NONE)
        return 0;
    const struct rate_kind *kind = &state->rates.kinds[job->learned - 1];
    const struct rate_kind *other = &state->rates.kinds[beside->learned - 1];
    const struct pair_row *row =
        pair_table_find(&state->pairs, kind->hash, other->hash, job->type_now);
    if (!row)
        return 0;
    db_text(rows->set_pair, 1, kind->name);
    db_text(rows->set_pair, 2, other->name);
    db_text(rows->set_pair, 3, state->view.cluster->types[job->type_now].name);
    db_real(rows->set_pair, 4, row->mean);
    db_int(rows->set_pair, 5, row->count);
    db_int(rows->set_pair, 6, at_ns);
    int r = db_run(rows->set_pair, err);
    if (r < 0 || ++rows->pair_count < TRIM_EVERY)
        return r;
    rows->pair_count = 0;
    db_int(rows->trim_pairs, 1, PAIR_ROWS_MAX);
    return db_run(rows->trim_pairs, err);
}

/* Of the type that this job is on: what jobs of its kind do with a GPU, and send. */
static int write_use(struct rate_rows *rows, const struct state *state,
                     const struct job *job, int64_t at_ns, struct error *err)
{
    if (!job->learned || job->type_now == TYPE_NONE)
        return 0;
    const struct rate_kind *kind = &state->rates.kinds[job->learned - 1];
    db_text(rows->set_use, 1, kind->name);
    db_text(rows->set_use, 2, state->view.cluster->types[job->type_now].name);
    db_int(rows->set_use, 3, kind->gpu_mib);
    db_real(rows->set_use, 4, (double)kind->busy[job->type_now]);
    const struct rate_sent *sent = &kind->sent[job->type_now];
    db_int(rows->set_use, 5, kind->sent_gpus);
    db_real(rows->set_use, 6, (double)sent->mean);
    db_int(rows->set_use, 7, sent->count);
    db_int(rows->set_use, 8, at_ns);
    int r = db_run(rows->set_use, err);
    if (r < 0 || ++rows->use_count < TRIM_EVERY)
        return r;
    rows->use_count = 0;
    db_int(rows->trim_uses, 1, RATE_CELLS_MAX);
    return db_run(rows->trim_uses, err);
}

int rate_rows_note(struct rate_rows *rows, const struct state *state,
                   const struct event *event, struct error *err)
{
    bool used = event->kind == EVENT_GPU_USE || event->kind == EVENT_SENT;
    if ((event->kind != EVENT_PROGRESS && !used) || !state->learns)
        return 0;
    const struct job *job = &state->jobs[event->job];
    if (event->kind == EVENT_SENT &&
        (!job->learned ||
         state->rates.kinds[job->learned - 1].sent_at_ns != event->at_ns))
        return 0; /* it has taught nothing */
    if (used)
        return write_use(rows, state, job, event->at_ns, err);
    if (job->partner != JOB_NONE)
        return write_pair(rows, state, job, event->at_ns, err);
    uint32_t kind = job->learned - 1;
    const struct rate_cell *cell =
        job->learned ? rate_table_first_cell(&state->rates, kind) : NULL;
    for (; cell; cell = rate_table_next_cell(&state->rates, cell))
        if (cell->at_ns == event->at_ns && !cell->brief &&
            cell->type == job->type_now && cell->gpus == job->gpus_now &&
            cell->spread == job->spread_now)
            return write_cell(rows, &state->rates, state->rates.kinds[kind].name, cell,
                              err);
    return 0;
}

static uint32_t find_type(const struct cluster *cluster, const char *name)
{
    uint32_t bit = cluster_types_named(cluster, name);
    return bit ? (uint32_t)__builtin_ctz(bit) : TYPE_NONE;
}

/* The newest rows, oldest first.  Those of types that the cluster has not are left: it may again. */
static int read_pairs(struct db *db, struct state *state, struct error *err)
{
    struct db_query *query = db_prepare(
        db, "SELECT kind, beside, type, kept, count FROM (SELECT * FROM pair "
            "ORDER BY at_ns DESC LIMIT ?) ORDER BY at_ns");
    db_int(query, 1, PAIR_ROWS_MAX);
    int r;
    while ((r = db_next(query, err)) == 1) {
        struct pair_row row = { .kind = rate_table_hash(db_get_text(query, 0)),
                                .beside = rate_table_hash(db_get_text(query, 1)),
                                .type = find_type(state->view.cluster,
                                                  db_get_text(query, 2)),
                                .mean = db_get_real(query, 3) };
        int64_t count = db_get_int(query, 4);
        if (row.type == TYPE_NONE || count < 1 || count > UINT32_MAX)
            continue;
        row.count = (uint32_t)count;
        pair_table_restore(&state->pairs, &row);
    }
    db_finish(query);
    return r;
}

/* Use of GPUs is for kinds of jobs that have reported: jobs of others are not paired. */
static int read_uses(struct db *db, struct state *state, struct error *err)
{
    struct db_query *query = db_prepare(db, "SELECT kind, type, gpu_mib, busy, gpus, "
                                            "sent, sent_count FROM kind_use ORDER "
                                            "BY at_ns DESC LIMIT ?");
    db_int(query, 1, RATE_CELLS_MAX);
    int r;
    while ((r = db_next(query, err)) == 1) {
        const char *name = db_get_text(query, 0);
        int64_t gpus = db_get_int(query, 4), count = db_get_int(query, 6);
        uint32_t type = find_type(state->view.cluster, db_get_text(query, 1));
        int64_t mib = db_get_int(query, 2);
        double busy = db_get_real(query, 3);
        if (type != TYPE_NONE && gpus > 0 && gpus <= UINT32_MAX && count > 0 &&
            count <= UINT32_MAX)
            rate_table_restore_sent(
                &state->rates, name, (struct rate_place){ type, (uint32_t)gpus, false },
                &(struct rate_sent){ .mean = (float)db_get_real(query, 5),
                                     .count = (uint32_t)count });
        uint32_t at = rate_table_find_kind(&state->rates, name);
        if (at == KIND_NONE || mib < 0 || mib > UINT32_MAX)
            continue;
        struct rate_kind *kind = &state->rates.kinds[at];
        if (mib > kind->gpu_mib)
            kind->gpu_mib = (uint32_t)mib;
        if (type != TYPE_NONE && busy > 0 && busy <= 1)
            kind->busy[type] = (float)busy;
    }
    db_finish(query);
    return r;
}

static int read_cells(struct db *db, struct rate_table *rates, struct error *err)
{
    struct db_query *query = db_prepare(
        db, "SELECT kind, type, gpus, spread, mean, variance, count, at_ns FROM rate "
            "ORDER BY at_ns DESC LIMIT ?");
    db_int(query, 1, RATE_CELLS_MAX);
    int r;
    while ((r = db_next(query, err)) == 1) {
        uint32_t type = find_type(rates->cluster, db_get_text(query, 1));
        int64_t gpus = db_get_int(query, 2);
        int64_t count = db_get_int(query, 6);
        if (type == TYPE_NONE || gpus < 1 || gpus > UINT32_MAX || count < 1 ||
            count > UINT32_MAX)
            continue;
        struct rate_cell cell = { .mean = db_get_real(query, 4),
                                  .variance = db_get_real(query, 5),
                                  .at_ns = db_get_int(query, 7),
                                  .gpus = (uint32_t)gpus,
                                  .count = (uint32_t)count,
                                  .type = (uint8_t)type,
                                  .spread = db_get_int(query, 3) != 0 };
        rate_table_restore(rates, db_get_text(query, 0), &cell);
    }
    db_finish(query);
    return r;
}

int rate_rows_read(struct db *db, struct state *state, struct error *err)
{
    int r = read_cells(db, &state->rates, err);
    if (r == 0)
        r = read_pairs(db, state, err);
    return r < 0 ? r : read_uses(db, state, err);
}
