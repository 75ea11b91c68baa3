/* gantt.c - a ring of slots of time per accelerator. */
#include "cmd/berth/gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json.h"
#include "cmd/berth/format.h"

#define LABEL 16 /* characters before the bar */

void gantt_init(struct gantt *gantt, double slot_s)
{
    *gantt = (struct gantt){ .slot_s = slot_s };
}

void gantt_release(struct gantt *gantt)
{
    free(gantt->rows);
}

static uint64_t *slot_of(struct gantt_row *row, int64_t slot)
{
    return &row->held[slot % GANTT_SLOTS];
}

static struct gantt_row *row_named(struct gantt *gantt, const char *name)
{
    for (uint32_t i = 0; i < gantt->row_count; i++)
        if (strcmp(gantt->rows[i].name, name) == 0)
            return &gantt->rows[i];
    gantt->rows = grow_array(gantt->rows, &gantt->row_room, gantt->row_count + 1,
                             sizeof *gantt->rows);
    struct gantt_row *row = &gantt->rows[gantt->row_count++];
    *row = (struct gantt_row){ .name = "" };
    snprintf(row->name, sizeof row->name, "%.*s", GANTT_NAME, name);
    return row;
}

/* Slots that have passed since the last look are as they were then, if that is not too
 * long ago. */
static void advance(struct gantt *gantt, int64_t slot)
{
    bool recent = gantt->last && slot - gantt->last < GANTT_SLOTS;
    for (uint32_t i = 0; i < gantt->row_count; i++) {
        struct gantt_row *row = &gantt->rows[i];
        uint64_t before = recent ? *slot_of(row, gantt->last) : 0;
        if (!recent)
            memset(row->held, 0, sizeof row->held);
        for (int64_t s = gantt->last + 1; recent && s <= slot; s++)
            *slot_of(row, s) = before;
        *slot_of(row, slot) = 0;
    }
    gantt->last = slot;
}

/* Since when a job that was never preempted has run; NAN if that is not known. */
static double running_since(const struct json *jobs, uint64_t id)
{
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json *job = json_item(jobs, i);
        if (json_number_or(job, "id", 0) == (double)id)
            return json_number_or(job, "preemptions", 0) > 0
                       ? NAN
                       : json_number_or(job, "start", NAN);
    }
    return NAN;
}

static void fill_back(struct gantt *gantt, struct gantt_row *row, uint64_t id,
                      double since)
{
    if (isnan(since))
        return;
    int64_t from = (int64_t)floor(since / gantt->slot_s);
    if (from <= gantt->last - GANTT_SLOTS)
        from = gantt->last - GANTT_SLOTS + 1;
    for (int64_t s = from; s < gantt->last; s++)
        if (*slot_of(row, s) == 0)
            *slot_of(row, s) = id;
}

static void add_node(struct gantt *gantt, const struct json *node,
                     const struct json *jobs, bool first)
{
    uint32_t gpus = (uint32_t)json_number_or(node, "gpus", 0);
    const struct json *held = json_get(node, "held");
    char name[GANTT_NAME + 64];
    for (uint32_t g = 0; g < gpus && g < 64; g++) {
        snprintf(name, sizeof name, "%.12s %.8s %u", json_text_or(node, "name", ""),
                 json_text_or(node, "type", ""), g);
        name[GANTT_NAME] = '\0';
        row_named(gantt, name);
    }
    for (size_t i = 0; i < json_count(held); i++) {
        const struct json *one = json_item(held, i);
        int64_t id = 0;
        bool foreign = false;
        snprintf(name, sizeof name, "%.12s %.8s %.0f", json_text_or(node, "name", ""),
                 json_text_or(node, "type", ""), json_number_or(one, "gpu", 0));
        name[GANTT_NAME] = '\0';
        json_as_flag(json_get(one, "foreign"), &foreign);
        json_as_count(json_item(json_get(one, "jobs"), 0), &id);
        struct gantt_row *row = row_named(gantt, name);
        *slot_of(row, gantt->last) = id ? (uint64_t)id : foreign ? GANTT_FOREIGN : 0;
        if (first && id)
            fill_back(gantt, row, (uint64_t)id, running_since(jobs, (uint64_t)id));
    }
}

void gantt_add(struct gantt *gantt, const struct json *nodes, const struct json *jobs,
               double now_s)
{
    bool first = gantt->last == 0;
    advance(gantt, (int64_t)floor(now_s / gantt->slot_s));
    for (size_t i = 0; i < json_count(nodes); i++)
        add_node(gantt, json_item(nodes, i), jobs, first);
}

/* A job's last digit on its colour; neighbours differ more often than not. */
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

static void print_row(const struct gantt *gantt, const struct gantt_row *row,
                      uint32_t slots, bool colour, FILE *file)
{
    uint64_t now = row->held[gantt->last % GANTT_SLOTS];
    fprintf(file, "%-*.*s ", LABEL, LABEL, row->name);
    for (int64_t s = gantt->last - (int64_t)slots + 1; s <= gantt->last; s++)
        print_slot(s > 0 ? row->held[s % GANTT_SLOTS] : 0, colour, file);
    if (now == GANTT_FOREIGN)
        fputs(" foreign\n", file);
    else if (now)
        fprintf(file, " %llu\n", (unsigned long long)now);
    else
        fputs(" free\n", file);
}

void gantt_print(const struct gantt *gantt, FILE *file, uint32_t width,
                 uint32_t row_max, bool colour)
{
    uint32_t slots = width > LABEL + 20 ? width - LABEL - 12 : 8;
    slots = slots > GANTT_SLOTS ? GANTT_SLOTS : slots;
    char span[32];
    uint32_t shown = gantt->row_count <= row_max ? gantt->row_count
                     : row_max > 0               ? row_max - 1
                                                 : 0;
    fprintf(file, "%-*s last %s\n", LABEL, "ACCELERATOR",
            format_duration(span, sizeof span, slots * gantt->slot_s));
    for (uint32_t i = 0; i < shown; i++)
        print_row(gantt, &gantt->rows[i], slots, colour, file);
    if (shown < gantt->row_count)
        fprintf(file, "… and %u more\n", gantt->row_count - shown);
}
