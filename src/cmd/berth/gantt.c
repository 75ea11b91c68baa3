/* gantt.c - the spans of the last minutes, drawn in slots of time. */
#include "cmd/berth/gantt.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/json.h"
#include "base/units.h"
#include "cmd/berth/format.h"
#include "model/event_record.h"

#define LABEL 16 /* characters before the bar */

static int64_t slot_at(const struct gantt *gantt, int64_t ns)
{
    return (int64_t)floor((double)ns / NS_PER_S / gantt->slot_s);
}

/* ---- allocations as berthd reports them ---- */

/* The GPUs of one node that a job holds. */
struct gantt_share {
    uint64_t job;
    struct seat seat;
};

struct gantt_shares {
    struct gantt_share *list; /* by job, then by node */
    uint32_t count, room;
};

static void add_share(struct gantt_shares *shares, uint64_t job, node_id node,
                      uint32_t gpu)
{
    uint64_t bit = UINT64_C(1) << gpu;
    for (uint32_t i = shares->count; i > 0 && shares->list[i - 1].seat.node == node;
         i--)
        if (shares->list[i - 1].job == job) {
            shares->list[i - 1].seat.gpus |= bit;
            return;
        }
    shares->list = grow_array(shares->list, &shares->room, shares->count + 1,
                              sizeof *shares->list);
    shares->list[shares->count++] =
        (struct gantt_share){ .job = job, .seat = { .node = node, .gpus = bit } };
}

static int compare_shares(const void *a, const void *b)
{
    const struct gantt_share *x = a, *y = b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->seat.node < y->seat.node ? -1 : x->seat.node > y->seat.node;
}

static void add_held(struct gantt_shares *shares, const struct json *held, node_id node)
{
    const struct json *jobs = json_get(held, "jobs");
    uint32_t gpu = (uint32_t)json_number_or(held, "gpu", 0) % 64;
    for (size_t i = 0; i < json_count(jobs); i++) {
        int64_t job = 0;
        if (json_as_count(json_item(jobs, i), &job) && job > 0)
            add_share(shares, (uint64_t)job, node, gpu);
    }
    if (json_count(jobs) == 0 && json_flag_at(held, "foreign"))
        add_share(shares, GANTT_FOREIGN, node, gpu);
}

static void add_rows(struct gantt *gantt, const struct json *node)
{
    uint32_t gpus = (uint32_t)json_number_or(node, "gpus", 0);
    gantt->first_row = grow_array(gantt->first_row, &gantt->node_room,
                                  gantt->node_count + 1, sizeof *gantt->first_row);
    gantt->first_row[gantt->node_count++] = gantt->row_count;
    gantt->rows = grow_array(gantt->rows, &gantt->row_room, gantt->row_count + 64,
                             sizeof *gantt->rows);
    for (uint32_t g = 0; g < gpus && g < 64; g++) {
        char name[GANTT_NAME + 64];
        snprintf(name, sizeof name, "%.12s %.8s %u", json_text_or(node, "name", ""),
                 json_text_or(node, "type", ""), g);
        snprintf(gantt->rows[gantt->row_count++].name, GANTT_NAME + 1, "%.*s",
                 GANTT_NAME, name);
    }
}

static void read_nodes(struct gantt *gantt, const struct json *nodes,
                       struct gantt_shares *shares)
{
    gantt->row_count = gantt->node_count = 0;
    for (size_t n = 0; n < json_count(nodes); n++) {
        const struct json *node = json_item(nodes, n), *held = json_get(node, "held");
        add_rows(gantt, node);
        for (size_t i = 0; i < json_count(held); i++)
            add_held(shares, json_item(held, i), (node_id)n);
    }
    if (shares->count > 0)
        qsort(shares->list, shares->count, sizeof *shares->list, compare_shares);
}

/* ---- events derived from them ---- */

/* Since when a job that was never preempted has run; 'now_ns' if that is not known. */
static int64_t find_start(const struct json *jobs, uint64_t id, int64_t now_ns)
{
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json *job = json_item(jobs, i);
        double start_s = json_number_or(job, "start", NAN);
        if (json_number_or(job, "id", 0) != (double)id)
            continue;
        bool is_known =
            json_number_or(job, "preemptions", 0) == 0 && start_s >= 0 && start_s < 9e9;
        return is_known ? units_ns(start_s) : now_ns;
    }
    return now_ns;
}

static bool is_held(const struct occupancy *occupancy, const struct gantt_share *share,
                    uint32_t count)
{
    uint32_t spans = 0, same = 0;
    for (const struct occupancy_span *span = occupancy_held(occupancy, share->job);
         span; span = occupancy_next(occupancy, span), spans++)
        for (uint32_t i = 0; i < count; i++)
            same +=
                share[i].seat.node == span->node && share[i].seat.gpus == span->gpus;
    return same == count && spans == count;
}

/* A job holds these shares now, whatever it held before. */
static void apply_start(struct gantt *gantt, const struct gantt_share *shares,
                        uint32_t count, int64_t at_ns)
{
    struct seat *seats = calloc(count, sizeof *seats);
    if (!seats)
        return;
    for (uint32_t i = 0; i < count; i++)
        seats[i] = shares[i].seat;
    struct event_record record = { .job = shares->job };
    record.event = (struct event){
        .kind = EVENT_PLACED, .at_ns = at_ns, .seats = seats, .seat_count = count
    };
    gantt_event(gantt, &record);
    record.event = (struct event){ .kind = EVENT_STARTED, .at_ns = at_ns };
    gantt_event(gantt, &record);
    free(seats);
}

static bool has_share(const struct gantt_shares *shares, uint64_t job)
{
    uint32_t low = 0, high = shares->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (shares->list[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low < shares->count && shares->list[low].job == job;
}

/* Jobs that hold nothing any more have stopped. */
static void apply_stops(struct gantt *gantt, const struct gantt_shares *shares,
                        int64_t at_ns)
{
    struct occupancy *occupancy = &gantt->occupancy;
    for (uint32_t i = occupancy_first(occupancy); i < occupancy->count; i++) {
        const struct occupancy_span *span = occupancy_at(occupancy, i);
        if (span->start_ns < 0 || span->end_ns >= 0 || has_share(shares, span->job))
            continue;
        struct event_record record = { .job = span->job };
        record.event = (struct event){ .kind = EVENT_STOPPED, .at_ns = at_ns };
        gantt_event(gantt, &record);
    }
}

void gantt_update(struct gantt *gantt, const struct json *nodes,
                  const struct json *jobs, double now_s)
{
    struct gantt_shares shares = { 0 };
    int64_t now_ns = units_ns(now_s), slot = slot_at(gantt, now_ns);
    bool is_first = gantt->last == 0;
    if (slot - gantt->last >= GANTT_SLOTS) { /* nothing is known of the time between */
        occupancy_release(&gantt->occupancy);
        occupancy_init(&gantt->occupancy, GANTT_SPANS);
    }
    gantt->last = slot;
    read_nodes(gantt, nodes, &shares);
    apply_stops(gantt, &shares, now_ns);
    for (uint32_t i = 0, end; i < shares.count; i = end) {
        const struct gantt_share *share = &shares.list[i];
        for (end = i + 1; end < shares.count && shares.list[end].job == share->job;)
            end++;
        if (!is_held(&gantt->occupancy, share, end - i))
            apply_start(gantt, share, end - i,
                        is_first ? find_start(jobs, share->job, now_ns) : now_ns);
    }
    free(shares.list);
}

/* ---- drawing ---- */

/* The cells of a chart: which job, by row, lane and slot; 0: none. */
struct gantt_cells {
    uint64_t *held;
    uint32_t rows, slots;
    int64_t first; /* number of the first slot */
};

#define LANES 2 /* of a row: two jobs may share a GPU */

static uint64_t *lane_of(const struct gantt_cells *cells, uint32_t row, uint32_t lane)
{
    return cells->held + ((size_t)row * LANES + lane) * cells->slots;
}

static void fill_row(const struct gantt_cells *cells, uint32_t row, uint32_t lane,
                     int64_t from, int64_t to, uint64_t job)
{
    uint64_t *held = lane_of(cells, row, lane);
    for (int64_t slot = from < 0 ? 0 : from; slot < to && slot < cells->slots; slot++)
        held[slot] = job;
}

/* A job that is left alone goes on in the first lane.  Returns the lanes in use. */
static uint32_t pack_lanes(const struct gantt_cells *cells, uint32_t row)
{
    uint64_t *first = lane_of(cells, row, 0), *second = lane_of(cells, row, 1);
    uint32_t lanes = 1;
    for (uint32_t slot = 0; slot < cells->slots; slot++) {
        if (first[slot] == 0) {
            first[slot] = second[slot];
            second[slot] = 0;
        }
        if (second[slot] != 0)
            lanes = 2;
    }
    return lanes;
}

/* A span fills the slots from the one it starts in to the one before it ends. */
static void fill_span(const struct gantt *gantt, const struct gantt_cells *cells,
                      const struct occupancy_span *span)
{
    int64_t from = slot_at(gantt, span->start_ns) - cells->first;
    int64_t to =
        span->end_ns < 0 ? cells->slots : slot_at(gantt, span->end_ns) - cells->first;
    if (span->start_ns < 0 || span->node >= gantt->node_count)
        return;
    uint32_t node_end = span->node + 1 < gantt->node_count
                            ? gantt->first_row[span->node + 1]
                            : gantt->row_count;
    for (uint64_t left = span->gpus; left; left &= left - 1) {
        uint32_t gpu = (uint32_t)__builtin_ctzll(left);
        uint32_t row = gantt->first_row[span->node] + gpu;
        if (row < node_end && row < cells->rows)
            fill_row(cells, row, span->shared >> gpu & 1, from, to, span->job);
    }
}

/* A job's last digit in a colour of its own: jobs side by side mostly differ. */
static void print_slot(uint64_t held, bool colour, FILE *file)
{
    static const char *const colours[] = { "42", "44", "45", "46", "43", "41" };
    char mark = held == 0 ? '.' : held == GANTT_FOREIGN ? 'x' : (char)('0' + held % 10);
    if (colour && held != 0)
        fprintf(file, "\033[30;%sm%c\033[0m",
                held == GANTT_FOREIGN ? "47" : colours[held % 6], mark);
    else
        fputc(mark, file);
}

/* A lane without a name is the second of its row: where it is empty, nothing is said. */
static void print_lane(const char *name, const uint64_t *held, uint32_t slots,
                       bool colour, FILE *file)
{
    uint64_t now = held[slots - 1];
    fprintf(file, "%-*.*s ", LABEL, LABEL, name ? name : "  beside it");
    for (uint32_t i = 0; i < slots; i++)
        if (name || held[i])
            print_slot(held[i], colour, file);
        else
            fputc(' ', file);
    if (now == GANTT_FOREIGN)
        fputs(" foreign\n", file);
    else if (now)
        fprintf(file, " %llu\n", (unsigned long long)now);
    else
        fputs(name ? " free\n" : "\n", file);
}

/* As many rows as fit into so many lines; a GPU that was shared has two lines. */
static uint32_t print_rows(const struct gantt *gantt, const struct gantt_cells *cells,
                           uint32_t line_max, bool colour, FILE *file)
{
    uint32_t lines = 0;
    for (uint32_t i = 0; i < cells->rows; i++)
        lines += pack_lanes(cells, i);
    if (lines > line_max || cells->rows < gantt->row_count)
        line_max -= line_max > 0; /* the last line counts the others */
    uint32_t row = 0;
    for (uint32_t line = 0; row < cells->rows; row++) {
        uint32_t lanes = pack_lanes(cells, row);
        if (line + lanes > line_max)
            break;
        line += lanes;
        for (uint32_t lane = 0; lane < lanes; lane++)
            print_lane(lane == 0 ? gantt->rows[row].name : NULL,
                       lane_of(cells, row, lane), cells->slots, colour, file);
    }
    return row;
}

void gantt_print(const struct gantt *gantt, FILE *file, uint32_t width,
                 uint32_t line_max, bool colour)
{
    uint32_t slots = width > LABEL + 20 ? width - LABEL - 12 : 8;
    slots = slots > GANTT_SLOTS ? GANTT_SLOTS : slots;
    char span[32];
    fprintf(file, "%-*s last %s\n", LABEL, "ACCELERATOR",
            format_duration(span, sizeof span, slots * gantt->slot_s));
    struct gantt_cells cells = {
        .rows = gantt->row_count < line_max ? gantt->row_count : line_max,
        .slots = slots,
        .first = gantt->last - (int64_t)slots + 1,
    };
    cells.held = calloc((size_t)cells.rows * LANES * slots + 1, sizeof *cells.held);
    if (!cells.held)
        return;
    for (uint32_t i = occupancy_first(&gantt->occupancy); i < gantt->occupancy.count;
         i++)
        fill_span(gantt, &cells, occupancy_at(&gantt->occupancy, i));
    uint32_t shown = print_rows(gantt, &cells, line_max, colour, file);
    free(cells.held);
    if (shown < gantt->row_count)
        fprintf(file, "… and %u more\n", gantt->row_count - shown);
}
