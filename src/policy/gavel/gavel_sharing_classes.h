/*
 * gavel_sharing_classes.h - jobs that are alike, and what classes of them are due.  For
 * gavel_sharing.c.
 *
 * Jobs of the same kind, gang, types and weight are a class.  A line is what can run: a
 * member of a class alone on a type, or a member of one beside a member of another.
 * Solving says how many units of each line are to run at a time (pairs.h); they have
 * credits, which outlive new shares as long as the line is there.
 */
#pragma once

#include <stdint.h>

#include "policy/gavel/gavel_common.h"

#define CLASSES_MAX 512
#define LINES_MAX 16384

struct gavel_classes;

/* Class a alone on a column, or beside b; a is not above b. */
struct line_name {
    uint32_t column, a, b; /* b UINT32_MAX: alone */
};

struct gavel_line {
    struct line_name name;
    double units; /* to run at a time */
    double gang;  /* accelerators of a unit */
};

static inline struct line_name gavel_line_name(uint32_t column, uint32_t a, uint32_t b)
{
    return (struct line_name){ column, a < b ? a : b, a < b ? b : a };
}

struct gavel_classes *gavel_classes_new(struct arena *run, struct gavel_common *common,
                                        const struct view *view);
void gavel_classes_free(struct gavel_classes *classes);

/* The class of a job that comes; where there are too many, the one most like it. */
uint32_t gavel_classes_add(struct gavel_classes *classes, struct gavel_common *common,
                           const struct view *view, job_id job);
void gavel_classes_remove(struct gavel_classes *classes, uint32_t class, job_id job);

/*
 * Make shares for all jobs of the call; their classes are given in its order.  On
 * failure lines stay as they were.
 */
int gavel_classes_solve(struct gavel_classes *classes, struct gavel_common *common,
                        const struct gavel_call *call, const uint32_t *class_of,
                        struct error *err);

/* Steps per second that a member is due. */
double gavel_classes_due(const struct gavel_classes *classes, uint32_t class);

uint32_t gavel_classes_line_count(const struct gavel_classes *classes);
const struct gavel_line *gavel_classes_line(const struct gavel_classes *classes,
                                            uint32_t at);
uint32_t gavel_classes_line_at(const struct gavel_classes *classes,
                               const struct line_name *name); /* UINT32_MAX: none */

/* Unit-seconds that a line was due and did not have. */
double gavel_classes_credit(const struct gavel_classes *classes,
                            const struct gavel_line *line);
void gavel_classes_pay(struct gavel_classes *classes, const struct line_name *name,
                       double unit_s);
void gavel_classes_earn(struct gavel_classes *classes, double passed_s,
                        double credit_max_s);
