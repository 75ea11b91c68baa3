/*
 * rate_table.h - how fast kinds of jobs were measured to run, by type of GPU.
 *
 * Jobs that are alike are of one kind: by the kind they declare, or by their name without
 * numbers, their program, user and GPUs.  A kind has a cell for every type, gang size and
 * shape (consolidated or spread) that one of its jobs has reported from:
 *
 *     kind              type  gpus  spread   ln(steps per second): mean, variance, count
 *     resnet/anna/1     v100     1  no       2.30  0.0004   32
 *     resnet/anna/1     k80      1  no       0.71  0.0010    9
 *
 * Of these, and of what is estimated for the other types (predict/rate_completion.h), the
 * levels are made that policies see.  A level moves only when it differs by more than
 * RATE_NOTED, so that reports do not order queues anew all the time.
 *
 * All is bounded: RATE_KINDS_MAX kinds, of which the one that was used least lately makes
 * room, in memory that is not touched before it is used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/job.h"

struct arena;
struct cluster;

#define RATE_KINDS_MAX 10000
#define RATE_CELLS_MAX (20 * RATE_KINDS_MAX)
#define RATE_NAME_MAX 160 /* bytes of a kind's name, with its NUL */
#define RATE_NOTED 0.08   /* change of a level, as a part, that is passed on */
#define RATE_CELL_NONE UINT32_MAX

enum rate_basis {
    RATE_UNKNOWN,   /* nothing tells this type from others */
    RATE_ESTIMATED, /* from other types, sizes or kinds    */
    RATE_MEASURED,
};

/* Their names, ended by NULL. */
extern const char *const rate_bases[];

/* What a kind's silent gangs sent from a type: as many bytes with every step. */
struct rate_sent {
    float mean;     /* of ln(bytes per second)                                   */
    float factor;   /* on the type's speed for the kind; 0: nothing tells it     */
    uint32_t count; /* of intervals                                              */
};

/* A type, size and shape of a kind, where jobs have reported. */
struct rate_cell {
    double mean;     /* of ln(steps per second), newer reports weighing more */
    double variance; /* of the reports around it                             */
    int64_t at_ns;   /* the newest report                                    */
    uint32_t next;   /* of the kind, or RATE_CELL_NONE                      */
    uint32_t gpus;
    uint32_t count; /* reports                                               */
    uint8_t type;
    bool spread;
    bool brief;  /* what is known is from a first interval: replaced by the next */
    int8_t away; /* reports in a row that were far above (> 0) or below the mean */
};

struct rate_kind {
    char name[RATE_NAME_MAX];
    uint64_t hash;
    int64_t used_ns;          /* a job came or reported                             */
    uint32_t jobs;            /* live ones                                          */
    uint32_t first;           /* cell, or RATE_CELL_NONE                           */
    uint32_t gpus;            /* size that the levels are for; 0: nothing is measured */
    uint32_t fitted;          /* the fit that its levels are of                     */
    bool stale;               /* measured since its levels were made                */
    uint32_t steady;          /* types, as bits, measured beyond a first interval   */
    uint8_t basis[TYPES_MAX]; /* enum rate_basis                          */
    uint32_t gpu_mib; /* the most memory of a GPU that a job of it had; 0: not known */
    float busy[TYPES_MAX]; /* part of the time that one computes, alone; 0: not known */
    uint32_t sent_gpus;    /* size of the gangs that 'sent' is of; 0: none         */
    int64_t sent_at_ns;    /* the newest interval                                  */
    struct rate_sent sent[TYPES_MAX];
    float deviation[TYPES_MAX]; /* of ln(rate), of a job to come            */
    double level[TYPES_MAX];    /* steps per second; 0: nothing is known    */
};

struct rate_table {
    const struct cluster *cluster;
    struct rate_kind *kinds;
    uint32_t kind_count, kind_max; /* a smaller bound is for tests */
    struct map index;              /* hash of the name to the kind */
    struct rate_cell *cells;
    uint32_t cell_count, cell_free;
    uint32_t fit;              /* number of the fit: grows with every one      */
    double typical[TYPES_MAX]; /* speed of a type beside others, over all kinds */
    uint32_t *stale;           /* kinds                                        */
    uint32_t stale_count;
    bool outdated; /* jobs have come whose kinds' levels are of an older fit */
};

/* A figure for people. */
struct rate_figure {
    enum rate_basis basis;
    double rate;      /* steps per second; 0: nothing is known */
    double low, high; /* holds that of a job to come four times in five; 0: not known */
    uint32_t count;   /* reports it rests on */
};

/* state_learn() makes one. */
static inline void rate_table_release(struct rate_table *rates)
{
    map_release(&rates->index);
}

/*
 * The kind of that name, added if it is new; the name is cut if it is too long.  KIND_NONE
 * when all kinds there is room for have jobs.
 */
uint32_t rate_table_add_kind(struct rate_table *rates, const char *name,
                             int64_t now_ns);

/* By which a kind is found again, also when it has made room meanwhile. */
uint64_t rate_table_hash(const char *name);

/* The same, or KIND_NONE if there is none. */
uint32_t rate_table_find_kind(const struct rate_table *rates, const char *name);

/* A job of the kind comes or goes. */
static inline void rate_table_enter(struct rate_table *rates, uint32_t kind,
                                    int64_t now_ns)
{
    rates->kinds[kind].jobs++;
    rates->kinds[kind].used_ns = now_ns;
    rates->outdated = rates->outdated || rates->kinds[kind].fitted != rates->fit;
}

static inline void rate_table_leave(struct rate_table *rates, uint32_t kind)
{
    rates->kinds[kind].jobs--;
}

/* Levels are to be made again. */
static inline bool rate_table_is_stale(const struct rate_table *rates)
{
    return rates->stale_count > 0 || rates->outdated;
}

/* Where and how large a job is. */
struct rate_place {
    uint32_t type, gpus;
    bool spread;
};

/*
 * A job of the kind made 'per_s' steps per second.  'brief': over its first interval only,
 * which may hold a warm-up; that counts while nothing better is known.
 */
void rate_table_measure(struct rate_table *rates, uint32_t kind,
                        struct rate_place place, double per_s, int64_t now_ns,
                        bool brief);

/*
 * A gang of the kind that reports nothing sent so many bytes per second: weak evidence of how
 * fast it is there beside other types.  True: what is expected of the kind has changed.
 */
bool rate_table_count_sent(struct rate_table *rates, uint32_t kind,
                           struct rate_place place, double bytes_per_s, int64_t now_ns);

/* Put back what a kind sent; one that makes no sense, or for which there is no room, is not. */
void rate_table_restore_sent(struct rate_table *rates, const char *name,
                             struct rate_place place, const struct rate_sent *sent);

/* How fast a type is for the kind beside others, while none of its jobs has reported. */
static inline double rate_table_speed(const struct rate_table *rates, uint32_t kind,
                                      uint32_t type)
{
    double factor = (double)rates->kinds[kind].sent[type].factor;
    return rates->typical[type] * (factor > 0 ? factor : 1);
}

/* Put a cell back as it was stored; false if there is no room or it makes no sense. */
bool rate_table_restore(struct rate_table *rates, const char *name,
                        const struct rate_cell *cell);

/* The first cell of a kind, then the next; NULL: no more. */
const struct rate_cell *rate_table_first_cell(const struct rate_table *rates,
                                              uint32_t kind);
const struct rate_cell *rate_table_next_cell(const struct rate_table *rates,
                                             const struct rate_cell *cell);

/*
 * What is not measured is taken to be a little faster than expected: of two types that are
 * as good the one that is not known is tried, and no other difference is outweighed.
 */
#define RATE_CURIOUS 1.02

/* At a size or shape that the levels are not for. */
double rate_table_other_per_s(const struct rate_table *rates,
                              const struct rate_kind *kind, struct rate_place place,
                              double level);

/*
 * Steps per second of the kind's whole gang there; 0 if nothing is known of the kind.  Other
 * sizes than measured ones lie between their neighbours, or go by their rate per GPU.
 */
static inline double rate_table_per_s(const struct rate_table *rates, uint32_t kind,
                                      struct rate_place place)
{
    const struct rate_kind *known = &rates->kinds[kind];
    if (place.type >= TYPES_MAX || known->gpus == 0)
        return 0;
    double level = known->level[place.type];
    if (known->basis[place.type] != RATE_MEASURED)
        level *= RATE_CURIOUS;
    return place.gpus == known->gpus && !place.spread
               ? level
               : rate_table_other_per_s(rates, known, place, level);
}

/* The same for people, with what it rests on. */
struct rate_figure rate_table_figure(const struct rate_table *rates, uint32_t kind,
                                     struct rate_place place);

/*
 * For predict/rate_completion.c: what the kind's cells say of a type at the size of its
 * levels; false: nothing.  'exact' if it was measured at that size.
 */
bool rate_table_measured(const struct rate_table *rates, const struct rate_kind *kind,
                         uint32_t type, double *ret_ln, double *ret_deviation,
                         bool *ret_exact);

/* Set a level; true if that is a change worth passing on. */
bool rate_table_set_level(struct rate_kind *kind, uint32_t type, enum rate_basis basis,
                          double ln, double deviation);
