/*
 * gavel_round.h - what our own rounds are made of: classes of jobs, lines, and credits.
 *
 * Jobs that are alike are a class; a class may have one member.  A line is what can run: a
 * member of a class alone on a type, or a member of one class beside a member of another.
 * Shares say how many units of each line are to run at a time.
 *
 *     gavel_accounts.c   which job is where, and what lines and jobs are owed by now
 *     gavel_shares.c     asks the policy, and sets the units of all lines
 *     gavel_choose.c     chooses the jobs that are to run
 *     gavel_round.c      places them, and decides when
 *
 * Nothing is counted as time passes.  What is owed is a function of time, a sum and a slope
 * (struct accrual), that is set anew when the slope changes: when shares do, or when a job
 * starts or stops.  All waiting members of a class have the same slope, and so have all
 * that run in a line, so the order among them does not change with time: each such group is
 * a tree, and a round looks at its ends.
 */
#pragma once

#include "base/sort.h"
#include "base/tree.h"
#include "policy/gavel/gavel_common.h"

#define NONE UINT32_MAX

/* A sum that grows, or shrinks, with time. */
struct accrual {
    double sum_s;
    double per_s;
    int64_t at_ns;
};

static inline double accrual_at(const struct accrual *accrual, int64_t now_ns)
{
    return accrual->sum_s + accrual->per_s * (double)(now_ns - accrual->at_ns) * 1e-9;
}

static inline void accrual_turn(struct accrual *accrual, int64_t now_ns, double per_s)
{
    accrual->sum_s = accrual_at(accrual, now_ns);
    accrual->at_ns = now_ns;
    accrual->per_s = per_s;
}

/* Jobs that have equal slopes of credit, those that are owed most first. */
struct gavel_group {
    struct tree tree;
    struct accrual accrual; /* a member's credit is this and its own anchor */
};

struct gavel_class {
    uint32_t count;  /* members; 0: not in use                       */
    uint32_t seated; /* of them, in lines                            */
    double gang;
    job_id example; /* a member; it gives the class its rates       */

    /* while a round is chosen */
    uint32_t choice;     /* for which the rest is meant                       */
    uint32_t left;       /* members without a unit                            */
    uint32_t sure;       /* members that units of large keys would take       */
    uint32_t tried;      /* grants that were refused in this decision         */
    job_id next_waiting; /* the first that may not have been taken yet        */
    uint32_t movers;     /* those who lose their place: a list by next_mover   */

    struct gavel_group waiting; /* members that wait for GPUs                   */
    double time;                /* part of its time that a member is to run     */
    double pace;                /* steps per second of that time                */
    bool asked;                 /* the policy was asked since it has members    */
    uint32_t turned;            /* the number of the shares it was last turned for */
    uint32_t place;             /* in the list of classes in use                */
    uint32_t next_alike;        /* with the same hash                           */
    uint32_t first_pair;        /* line of two that it is in; NONE: it is in none */
    uint32_t match; /* reference that stands for it, where rates are estimated */
    uint64_t hash;
};

/* Lines that have something in common, in no order. */
enum gavel_list { LIST_DUE, LIST_RUNNING, LIST_COUNT };

struct gavel_line {
    uint32_t column;
    uint32_t classes[2]; /* the second NONE: alone; else not below the first      */
    uint32_t near;       /* the number of the list of near lines it is on         */
    double share;        /* alone: of a member's time; pairs: units               */
    struct accrual due;  /* unit-seconds that were due and not had                */

    /* while a round is chosen */
    uint32_t choice; /* for which the rest is meant                */
    uint32_t limit;  /* units that there are members for           */
    uint32_t fresh;  /* of them, by members that wait               */
    uint32_t want;   /* units in the next round                    */
    uint32_t sure;   /* units more that have large keys            */
    double target;   /* units due, and those owed, for one round   */
    double lead;     /* rounds that its members are ahead, for what a stop costs */
    double toll;     /* and behind where they would have to move to              */

    struct gavel_group running[2]; /* members of the first and of the second class;
                                      of two of one class all are in the first   */
    double rate[2];                /* steps per second of a member, as known     */
    uint32_t next;                 /* pairs: with the same hash, or free         */
    uint32_t next_pair[2];         /* pairs: of the first and of the second class */
    uint32_t places[LIST_COUNT];   /* in lists of lines, from 1; 0: not there     */
};

/* By slot. */
struct gavel_member {
    uint32_t class;
    uint32_t line; /* in which it runs or is about to, or NONE           */
    uint8_t side;  /* of the line                                        */
    bool waits;    /* is in the class' tree of waiting jobs              */
    bool taken;    /* has a place in the next round                      */
    bool leaves;   /* loses the place it has                             */
    bool keeps;    /* but not its GPUs                                   */
    bool joined;   /* another job comes to its GPUs in the next round    */
    job_id mate;   /* it shares them with, in its line                   */
    /* The first job that has it as mate; and the next one that has the same mate. */
    job_id mate_of, next_mate_of;
    job_id next_mover;
    uint32_t queue;  /* of jobs with the same demand, while it waits     */
    uint32_t busy;   /* its place among jobs that do not wait, from 1    */
    uint32_t to;     /* column of its new place                          */
    double anchor_s; /* credit less what its group has accrued           */
};

/* A place in the next round that no job has yet: for one job, or for two. */
struct gavel_unit {
    job_id jobs[2]; /* the first to be placed, and the one beside it or JOB_NONE */
    uint32_t column;
};

/*
 * Waiting jobs that fit where any of them fits, where every job is a class of its own: by
 * arrival, and by the policy's key.
 */
struct gavel_queue {
    uint32_t gpus, types, set;
    struct tree by_arrival, by_key;
    job_id next; /* while a round is chosen: the first that was not looked at */
};

struct gavel_rounds {
    double round_s;
    bool by_class;            /* equal jobs are one class; else every job is its own */
    int64_t end_ns;           /* of the round */
    int64_t due_ns;           /* shares are not made before then */
    bool room;                /* a job came or went since free GPUs were given away */
    bool restless;            /* the next round would not be as this one */
    uint32_t granted, placed; /* in the last plan; seen to be carried out */

    /* shares */
    struct pairs_solver *pair_solver; /* classes are paired; NULL: they are not */
    double drift;     /* how far shares may be from those of now, relative       */
    uint32_t changes; /* jobs that came or went since they were made         */
    uint32_t shares_number;
    double level; /* what every job has, in GPUs per weight; 0: it is unknown */

    /* classes and lines; class c alone on a column is line c * types + column */
    struct gavel_class *classes;
    uint32_t *used, used_count; /* classes with members */
    uint32_t *free_classes, free_count, class_next;
    uint32_t *alike, alike_mask; /* by hash */
    struct gavel_line *lines;
    uint32_t alone_count; /* lines of jobs alone; pairs follow */
    uint32_t pair_free, pair_next, pair_max;
    struct gavel_lines {
        uint32_t *lines, count;
    } lists[LIST_COUNT];             /* lines that are due something; that run */
    uint32_t *pair_alike, pair_mask; /* by hash */
    struct gavel_member *members;
    struct tree_pool trees;
    uint32_t waiting_count;
    struct gavel_queue *queues; /* where every job is a class of its own */
    uint32_t queue_count;
    struct tree_pool arrivals, keys;
    double ordered_for[TYPES_MAX]; /* capacity that keys are for */
    job_id *busy;                  /* jobs that do not wait */
    uint32_t busy_count;

    /* of very many lines that are due something, those that may be chosen soon */
    struct gavel_lines near;
    uint32_t near_number, near_made; /* of the list; 0: there is none */
    uint32_t near_left;              /* of them, waiting in the last choice */
    double near_floor;               /* what the key of no other line is above ... */
    int64_t near_until_ns;           /* ... before then */

    /* while a round is chosen */
    uint32_t choice; /* its number */
    bool choose_running;
    uint32_t *touched, touched_count; /* lines that may have other units than now */
    struct sort_item *items, *item_scratch;
    size_t item_max;
    uint32_t *listed; /* lines that are due something */
    uint32_t listed_count;
    struct gavel_unit *units;
    uint32_t unit_count;
    job_id *leavers;
    uint32_t leaver_count;
    job_id *rows; /* examples of the classes, for the call */
};

#define STAYS 1.0         /* rounds that a job is ahead where it runs */
#define MOVES 2.0         /* and behind where it would have to move to */
#define CREDIT_MAX 10.0   /* rounds that can be owed at most */
#define CREDIT_MIN (-1.0) /* rounds that a job can have had ahead of time */

static inline struct gavel_line *rounds_alone(const struct gavel_common *common,
                                              uint32_t class, uint32_t column)
{
    return &common->rounds->lines[(size_t) class * common->type_count + column];
}

static inline bool line_is_pair(const struct gavel_line *line)
{
    return line->classes[1] != NONE;
}

/* Units that run in a line. */
static inline uint32_t line_running(const struct gavel_line *line)
{
    uint32_t jobs = line->running[0].tree.count + line->running[1].tree.count;
    return line_is_pair(line) ? jobs / 2 : jobs;
}

/* Units that are due of it at a time. */
static inline double line_units(const struct gavel_rounds *rounds,
                                const struct gavel_line *line)
{
    return line_is_pair(line) ? line->share
                              : line->share * rounds->classes[line->classes[0]].count;
}

/*
 * With a host a stop has a price: a line's members that run are ahead by what it is for the
 * one that would go first, and members from other lines are behind by it.
 */
static inline void line_set_leads(const struct gavel_common *common,
                                  const struct view *view, struct gavel_line *line)
{
    const struct gavel_rounds *rounds = common->rounds;
    if (!common->gavel->host)
        return;
    uint32_t last = tree_last(&rounds->trees, &line->running[0].tree);
    line->lead = last == TREE_NONE ? 0 : gavel_lead(common, view, last);
    line->toll = gavel_lead(common, view, rounds->classes[line->classes[0]].example);
}

/* Put a line on a list, or take it off; either may be so already. */
static inline void line_list(struct gavel_rounds *rounds, struct gavel_line *line,
                             enum gavel_list which, bool in)
{
    struct gavel_lines *list = &rounds->lists[which];
    uint32_t *place = &line->places[which];
    if (in && *place == 0) {
        list->lines[list->count++] = (uint32_t)(line - rounds->lines);
        *place = list->count;
    } else if (!in && *place > 0) {
        uint32_t last = list->lines[--list->count];
        list->lines[*place - 1] = last;
        rounds->lines[last].places[which] = *place;
        *place = 0;
    }
}

/* --- gavel_choose.c ---------------------------------------------------------------------- */

/*
 * Choose who is to run with so much room on each column: all jobs, or ('running' false) only
 * those that wait, beside those that run.  The answer is in 'units' and 'leavers', and in
 * the members' flags until it is forgotten.
 */
void gavel_choose(struct gavel_common *common, const struct view *view, double *room,
                  bool running);
void gavel_choose_forget(struct gavel_rounds *rounds);

/* --- gavel_accounts.c ------------------------------------------------------------------ */

void accounts_init(struct gavel_common *common, const struct view *view,
                   struct arena *run);

/* A job comes, and is owed so much; where it is, is followed from then on; it goes. */
void accounts_add(struct gavel_common *common, const struct view *view, job_id job,
                  double credit_s);
void accounts_follow(struct gavel_common *common, const struct view *view, job_id job);
void accounts_remove(struct gavel_common *common, const struct view *view, job_id job);

/* Types have come or gone: the policy's order of waiting jobs may be another. */
void accounts_order_again(struct gavel_common *common, const struct view *view);

/* What a job is owed, in seconds of its time. */
double accounts_credit(const struct gavel_common *common, job_id job, int64_t now_ns);

/* What a line is owed, in units for a round. */
double accounts_owed(const struct gavel_rounds *rounds, const struct gavel_line *line,
                     int64_t now_ns);

/* The key of the line's first unit, as it can be at most until then. */
static inline double line_key_until(const struct gavel_rounds *rounds,
                                    const struct gavel_line *line, int64_t until_ns)
{
    return line_units(rounds, line) + accounts_owed(rounds, line, until_ns);
}

/* The line of two classes on a column; 'add': also if there was none, or NONE if full. */
uint32_t accounts_pair_line(struct gavel_common *common, uint32_t column, uint32_t a,
                            uint32_t b, bool add);

/* Shares, rates or numbers of members of a class have changed: so have slopes. */
void accounts_turn_class(struct gavel_common *common, uint32_t class, int64_t now_ns);
void accounts_turn_pair(struct gavel_common *common, uint32_t line, int64_t now_ns);
