/* qdisc.h - print the queues that hosts and switches need for marks to have an effect. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct error;
struct dscp_levels;

enum qdisc_kind { QDISC_HTB, QDISC_ETS };

struct qdisc_setup {
    const char *device;
    uint64_t bits_per_s;
    uint32_t floor; /* per cent of the rate that every queue is guaranteed */
    enum qdisc_kind kind;
};

/* "10gbit", "200mbit", "500kbit": 1 Mbit/s to 1 Tbit/s. */
int qdisc_parse_rate(const char *text, uint64_t *ret_bits_per_s, struct error *err);

/* Whether all queues can have their floor; -EINVAL with a sentence. */
int qdisc_check(const struct qdisc_setup *setup, const struct dscp_levels *levels,
                struct error *err);

/* Print commands for a shell, and as comments what a switch without Linux needs. */
void qdisc_print(const struct qdisc_setup *setup, const struct dscp_levels *levels,
                 FILE *file);
