/* gavel_released_shares.c - the published rounds: what units are due, from a policy or a record. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "policy/gavel/gavel_released.h"

/* --- shares ----------------------------------------------------------------------------- */

/*
 * What was due and not had is kept; every job starts again with half a round.  For a
 * job that is due nothing and had nothing since the last time, nothing changes.
 */
static void settle_accounts(struct gavel_common *common)
{
    struct gavel_released *r = common->released;
    double half_s = r->round_s / 2;
    double elapsed_s = r->now_s - r->reset_s;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->stirred_count; i++) {
        uint32_t row = r->stirred[i];
        struct account *accounts = &r->accounts[(size_t)row * common->type_count];
        bool any = false;
        for (uint32_t c = 0; c < common->type_count; c++) {
            struct account *account = &accounts[c];
            double due_s = account->x * elapsed_s;
            account->deficit_s += due_s - (account->time_s - half_s);
            account->time_s = half_s;
            any = any || account->x != 0;
        }
        r->is_stirred[row] = any;
        if (any)
            r->stirred[kept++] = row;
    }
    r->stirred_count = kept;
    for (uint32_t c = 0; c < common->type_count; c++)
        r->worker_time_s[c] = half_s * (double)(r->unit_count + r->hidden);
    r->reset_s = r->now_s;
}

/* Note who is due something, unit by unit in their order. */
static void note_due(struct gavel_common *common, uint32_t at)
{
    struct gavel_released *r = common->released;
    struct released_unit *unit = &r->units[at];
    const struct account *accounts = released_accounts(common, unit);
    bool any = false;
    unit->due = false;
    for (uint32_t c = 0; c < common->type_count; c++) {
        any = any || accounts[c].x != 0;
        unit->due = unit->due || accounts[c].x > 0;
    }
    if (any)
        released_stir(r, unit->row);
    if (unit->due)
        r->due[r->due_count++] = at;
}

static void list_pairs(struct gavel_common *common, struct gavel_call *call)
{
    struct gavel_released *r = common->released;
    for (uint32_t i = 0; i < common->job_count; i++)
        r->place[common->jobs[i]] = i;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        const struct released_unit *unit = &r->units[i];
        const struct account *accounts = released_accounts(common, unit);
        double rates[TYPES_MAX][2];
        if (!unit_is_pair(unit))
            continue;
        for (uint32_t c = 0; c < common->type_count; c++)
            memcpy(rates[c], accounts[c].rate, sizeof rates[c]);
        gavel_add_pair(call, r->place[unit->jobs[0]], r->place[unit->jobs[1]], rates);
    }
}

/* Units stand in order of arrival, and so do the rows of jobs and of pairs. */
static void take_shares(struct gavel_common *common, const struct gavel_call *call)
{
    struct gavel_released *r = common->released;
    uint32_t k = common->type_count;
    uint32_t jobs = 0;
    uint32_t pairs = common->job_count;
    r->due_count = 0;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        struct released_unit *unit = &r->units[i];
        uint32_t row = unit_is_pair(unit) ? pairs++ : jobs++;
        struct account *accounts = released_accounts(common, unit);
        unit->known = row < common->job_count + call->pair_count;
        for (uint32_t c = 0; c < k; c++)
            accounts[c].x = unit->known ? call->x[(size_t)row * k + c] : 0;
        note_due(common, i);
    }
}

static const struct gavel_share *find_share(const struct gavel_record *record,
                                            uint64_t first, uint64_t second)
{
    for (uint32_t i = 0; i < record->share_count; i++)
        if (record->shares[i].first == first && record->shares[i].second == second)
            return &record->shares[i];
    return NULL;
}

/* Two jobs that the record does not name as a pair may share if it names both. */
static int take_recorded(struct gavel_common *common, struct error *err)
{
    struct gavel_released *r = common->released;
    const struct gavel_recorded *recorded = &r->recorded;
    if (r->record_next == recorded->count)
        return error_set(err, -EINVAL,
                         "%.100s: no more shares, but round %" PRIu64 " needs some",
                         recorded->path, r->round);
    const struct gavel_record *record = &recorded->records[r->record_next++];
    if (record->round != r->round ||
        fabs(record->at_s - r->now_s) > 1e-6 * fmax(1, r->now_s))
        return error_set(err, -EINVAL,
                         "%.100s:%" PRIu64 ": shares of round %" PRIu64
                         " at %.3f s, but this is round %" PRIu64 " at %.3f s",
                         recorded->path, record->line, record->round, record->at_s,
                         r->round, r->now_s);
    r->due_count = 0;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        struct released_unit *unit = &r->units[i];
        struct account *accounts = released_accounts(common, unit);
        uint64_t numbers[2] = { RECORDED_ALONE, RECORDED_ALONE };
        for (uint32_t side = 0; side < 1u + unit_is_pair(unit); side++)
            numbers[side] = common->entries[unit->jobs[side]].number;
        const struct gavel_share *share = find_share(record, numbers[0], numbers[1]);
        unit->known = share || (unit_is_pair(unit) &&
                                find_share(record, numbers[0], RECORDED_ALONE) &&
                                find_share(record, numbers[1], RECORDED_ALONE));
        for (uint32_t c = 0; c < common->type_count; c++)
            accounts[c].x = share ? share->x[c] : 0;
        note_due(common, i);
    }
    return 0;
}

int released_make_shares(struct gavel_common *common, const struct view *view,
                         struct arena *scratch, struct error *err)
{
    struct gavel_released *r = common->released;
    struct gavel_call call;
    settle_accounts(common);
    r->need = r->force = false;
    if (r->recorded.path) {
        int broken = take_recorded(common, &r->broken);
        return broken < 0 ? error_set(err, broken, "%s", r->broken.text) : 0;
    }
    struct gavel_times times = { .now_s = r->now_s, .left = r->left };
    for (uint32_t i = 0; i < common->job_count; i++)
        r->left[common->jobs[i]] = r->pages[common->jobs[i]].left;
    gavel_prepare(common, view, &times, scratch, &call);
    list_pairs(common, &call);
    int result = common->gavel->rule->shares(common->self, &call, err);
    if (result == 0)
        take_shares(common, &call);
    return result;
}
