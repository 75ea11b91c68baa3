/*
 * instance_rule.h - how a policy turns an instance into shares, for 'berth solve'.
 *
 * An instance is one moment of a cluster in a file: jobs with their rates, and accelerators
 * by type.  A policy that can answer it by a programme or a formula names that here, and
 * the names that the published system has for it.
 */
#pragma once

#include <stdbool.h>

#include "solve/solve.h"

enum instance_method {
    INSTANCE_PROGRAMME, /* programme_solve() with 'goal' */
    INSTANCE_ISOLATED,
    INSTANCE_PROPORTIONAL,
    INSTANCE_FIFO,
    INSTANCE_ALLOX,
};

/* The rates that a policy sees under aware=false. */
enum instance_blind {
    BLIND_EQUAL, /* 1 on every type                                    */
    BLIND_FIRST, /* on every type what it is on the one filled first   */
    BLIND_TRUE,  /* the true ones: it does not look at them            */
};

/* A name of the published system, and the settings it stands for. */
struct instance_name {
    const char *name;
    const char *settings;
};

struct instance_rule {
    enum instance_method method;
    enum goal goal;
    enum instance_blind blind;
    bool floors;                           /* keeps deadlines                  */
    const struct instance_name *published; /* ended by a NULL name; or NULL    */
};
