/*
 * water_filling.h - levels that rise until something holds them.
 *
 * Water filling: the least level as large as can be, then the next least, and so on.  All
 * rise together; where types run out, those who could only rise on these stay, and the
 * others go on with what is left.  Built on the market (market.h): how far all can rise is
 * a question of prices, who has to stay can be read from them.  No integers, and no more
 * rounds than there are types.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;

/* Rates are in units of level: whoever has all of type t is at level rate[job][t]. */
struct filling {
    uint32_t job_count, type_count;
    const double *capacity; /* [type]       */
    const double *gang;     /* [job]        */
    const double *rate;     /* [job][type]  */
};

struct filling_answer {
    uint32_t rounds; /* how often somebody had to stay   */
    uint32_t solves; /* of markets                       */
};

/*
 * Water filling.  Writes level[job] and x[job][type]; levels are good to 'tolerance'
 * (1e-7), and the shares reach them.  0, or -EDOM with a sentence.
 */
int filling_solve(const struct filling *filling, double tolerance, double *ret_level,
                  double *ret_x, struct filling_answer *ret_answer, struct error *err);

/* One rise at a time, for those whose speeds change on the way. */
struct filler;

struct filler *filler_new(const struct filling *filling, double tolerance);
void filler_free(struct filler *filler);

/* The best level a job can have on its own, without what has run out; 0: none. */
double filler_top(const struct filler *filler, uint32_t job);

struct rise {
    double by; /* everybody can have base + by * speed, or its own top    */
    bool held; /* types ran out; false: 'most' was reached                */
};

/*
 * Raise all from base[job], which must be feasible, at speed[job] >= 0, by 'most' at most.
 * Nobody rises above its own top.  If it is held, ret_stuck[job] says who cannot go on:
 * those at their top, and those who would need what has run out.  The others never get
 * any of that again, so levels must not fall from one rise to the next.
 */
int filler_rise(struct filler *filler, const double *base, const double *speed,
                double most, struct rise *ret_rise, bool *ret_stuck, struct error *err);

/*
 * Shares for levels that were found to be feasible.  Those who are stuck have what they
 * had when they stopped, or as much; 'level' is read for the others.
 */
int filler_shares(struct filler *filler, const double *level, double *ret_x,
                  struct error *err);

uint32_t filler_solves(const struct filler *filler);
