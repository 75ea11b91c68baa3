/* rates.c - GET /v1/rates: how fast each kind of job runs on each type, alone and beside others. */
#include "daemon/rates.h"

#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "daemon/users.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "model/throughput.h"

static void write_figure(struct buf *body, const struct rate_figure *figure)
{
    json_write_text(body, "basis", rate_bases[figure->basis]);
    if (figure->count > 0 && figure->basis == RATE_MEASURED)
        json_write_count(body, "n", figure->count);
    if (figure->basis == RATE_UNKNOWN)
        return;
    json_write_number(body, "steps_per_s", figure->rate);
    json_write_number(body, "low", figure->low);
    json_write_number(body, "high", figure->high);
}

static void write_rate(struct buf *body, const struct rate_table *rates, uint32_t kind,
                       struct rate_place place)
{
    struct rate_figure figure = rate_table_figure(rates, kind, place);
    if (figure.basis == RATE_UNKNOWN)
        return;
    json_write_open(body, NULL, '{');
    json_write_text(body, "kind", rates->kinds[kind].name);
    json_write_text(body, "type", rates->cluster->types[place.type].name);
    json_write_count(body, "gpus", place.gpus);
    json_write_flag(body, "spread", place.spread);
    write_figure(body, &figure);
    json_write_close(body, '}');
}

/* What was measured, and what follows for other types at the kind's first size. */
static void write_kind(struct buf *body, const struct rate_table *rates, uint32_t kind)
{
    uint32_t measured = 0;
    uint32_t gpus = rates->kinds[kind].gpus;
    for (const struct rate_cell *cell = rate_table_first_cell(rates, kind); cell;
         cell = rate_table_next_cell(rates, cell)) {
        write_rate(body, rates, kind,
                   (struct rate_place){ cell->type, cell->gpus, cell->spread });
        if (cell->gpus == gpus && !cell->spread)
            measured |= (uint32_t)1 << cell->type;
    }
    if (gpus == 0)
        gpus = rates->kinds[kind].sent_gpus; /* its jobs report nothing */
    for (uint32_t t = 0; gpus > 0 && t < rates->cluster->type_count; t++)
        if (!(measured >> t & 1) && rates->cluster->types[t].gpu_count > 0)
            write_rate(body, rates, kind, (struct rate_place){ t, gpus, false });
}

/*
 * Kinds that are made of a job's name, program, user and GPUs are for that user, as their jobs
 * are; those that jobs declare are for all.
 */
static bool may_see(const struct rate_kind *kind, const char *user, bool all)
{
    const char *gpus = strrchr(kind->name, ':');
    size_t count = strlen(user);
    if (all || !gpus || strspn(gpus + 1, "0123456789") != strlen(gpus + 1))
        return true;
    return (size_t)(gpus - kind->name) > count && gpus[-1 - (ptrdiff_t)count] == ':' &&
           strncmp(gpus - count, user, count) == 0;
}

/* Which kinds a caller is shown. */
struct shown {
    const struct rate_table *rates;
    const char *user;
    bool all;         /* kinds of all users */
    const char *only; /* this kind, or NULL */
};

/* The kind, unless it has made room or is not shown to the caller. */
static const struct rate_kind *find_shown(const struct shown *shown, uint64_t hash)
{
    uint32_t kind = map_find(&shown->rates->index, hash);
    return kind != MAP_NONE &&
                   may_see(&shown->rates->kinds[kind], shown->user, shown->all)
               ? &shown->rates->kinds[kind]
               : NULL;
}

static bool open_pair(struct buf *body, const struct shown *shown, uint64_t kind,
                      uint64_t beside, uint32_t type, enum rate_basis basis)
{
    const struct rate_kind *own = find_shown(shown, kind);
    const struct rate_kind *other = find_shown(shown, beside);
    bool now = shown->only || basis == RATE_MEASURED ||
               (own && other && own->jobs > 0 && other->jobs > 0);
    if (!own || !other || !now || (shown->only && strcmp(shown->only, own->name) != 0))
        return false;
    json_write_open(body, NULL, '{');
    json_write_text(body, "kind", own->name);
    json_write_text(body, "beside", other->name);
    json_write_text(body, "type", shown->rates->cluster->types[type].name);
    json_write_text(body, "basis", rate_bases[basis]);
    return true;
}

static void write_estimate(struct buf *body, const struct shown *shown,
                           const struct pair_table *pairs, uint64_t kind,
                           uint64_t beside, uint32_t type)
{
    struct pair_estimate estimate;
    if (pair_table_find(pairs, kind, beside, type) ||
        !pair_table_estimate(pairs, kind, beside, type, &estimate) ||
        !open_pair(body, shown, kind, beside, type, RATE_ESTIMATED))
        return;
    json_write_number(body, "kept", estimate.kept);
    json_write_number(body, "low", estimate.low);
    json_write_number(body, "high", estimate.high);
    json_write_close(body, '}');
}

/*
 * What kinds keep of their rates beside others.  Estimates are of kinds that have jobs now, or of
 * the one that is asked for.
 */
static void write_pairs(struct buf *body, const struct pair_table *pairs,
                        const struct shown *shown)
{
    json_write_open(body, "pairs", '[');
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct pair_row *row = &pairs->rows[i];
        if (!open_pair(body, shown, row->kind, row->beside, row->type, RATE_MEASURED))
            continue;
        json_write_number(body, "kept", row->mean);
        json_write_count(body, "n", row->count);
        json_write_close(body, '}');
    }
    for (uint32_t t = 0; t < shown->rates->cluster->type_count; t++) {
        const struct pair_fit *fit = &pairs->fits[t];
        for (uint32_t a = 0; a < fit->count; a++)
            for (uint32_t b = 0; b < fit->count; b++)
                write_estimate(body, shown, pairs, fit->kinds[a].kind,
                               fit->kinds[b].kind, t);
    }
    json_write_close(body, ']');
}

static void show_rates(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    const struct state *state = routes_need_engine(routes, &facts, reply);
    if (!state)
        return;
    struct caller caller = routes_caller(request);
    struct user user = users_find(facts.users, caller.uid);
    bool all = caller_check_admin(&caller, NULL) == 0;
    const char *only = http_query(request, "kind");
    json_write_open(&reply->body, NULL, '{');
    json_write_open(&reply->body, "rates", '[');
    for (uint32_t k = 0; k < state->rates.kind_count; k++) {
        const struct rate_kind *kind = &state->rates.kinds[k];
        if (may_see(kind, user.name, all) && (!only || strcmp(only, kind->name) == 0))
            write_kind(&reply->body, &state->rates, k);
    }
    json_write_close(&reply->body, ']');
    write_pairs(&reply->body, &state->pairs,
                &(struct shown){ &state->rates, user.name, all, only });
    buf_text(&reply->body, "}\n");
}

/* The rate that a table told, which is not learned. */
static bool is_told(const struct view *view, const struct job *job, uint32_t type,
                    double *ret_rate)
{
    *ret_rate = job->kind == KIND_NONE
                    ? 0
                    : throughput_rate(view->rates, job, type, job->gpus, false);
    return job->kind != KIND_NONE;
}

void rates_write_job(struct buf *body, const struct state *state, job_id id)
{
    const struct view *view = &state->view;
    const struct job *job = &view->jobs[id];
    if (job->gpus == 0)
        return;
    if (job->shares)
        json_write_flag(body, "shared", true);
    if (job->learned)
        json_write_text(body, "kind", state->rates.kinds[job->learned - 1].name);
    json_write_open(body, "rates", '[');
    for (uint32_t t = 0; t < view->cluster->type_count; t++) {
        double told;
        if (!(job->types >> t & 1))
            continue;
        json_write_open(body, NULL, '{');
        json_write_text(body, "type", view->cluster->types[t].name);
        if (is_told(view, job, t, &told)) {
            json_write_text(body, "basis", "told");
            json_write_number(body, "steps_per_s", told);
        } else if (job->learned) {
            struct rate_figure figure =
                rate_table_figure(&state->rates, job->learned - 1,
                                  (struct rate_place){ t, job->gpus, false });
            figure.rate *= job->pace;
            figure.low *= job->pace;
            figure.high *= job->pace;
            write_figure(body, &figure);
        } else {
            json_write_text(body, "basis", rate_bases[RATE_UNKNOWN]);
        }
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

const struct route rate_routes[] = {
    { "GET", "/v1/rates", SCOPES_READ, "kind", show_rates },
    { 0 },
};
