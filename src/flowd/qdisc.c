/*
 * qdisc.c - print the queues that hosts and switches need for marks to have an effect.
 *
 * Strict priority alone starves flows: one that gets nothing backs off and takes seconds
 * to recover, and connections that get nothing for long die.  So every queue has a floor
 * of a few per cent, and the rest goes by level.
 */
#include "flowd/qdisc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flowd/dscp.h"

#define QUEUES_MAX (DSCP_POINTS_MAX + 1)
#define BUFFER_MS 20 /* of a queue at line rate */
#define BUFFER_MIN (128 << 10)
#define BURST_MIN (16 << 10) /* 1 ms at line rate, but not less */

/* A queue: control traffic is the first, then the levels with unmarked among them. */
struct qdisc_queue {
    uint8_t dscp[4];
    uint32_t dscp_count;
    bool unmarked; /* and packets with a code point that is not configured */
};

static uint32_t make_queues(const struct dscp_levels *levels,
                            struct qdisc_queue *queues)
{
    uint32_t count = 0;
    queues[count++] = (struct qdisc_queue){ .dscp = { 48, 56 }, .dscp_count = 2 };
    for (uint32_t i = 0; i < levels->count; i++) {
        uint8_t dscp = levels->points[i].dscp;
        if (i == levels->unmarked && dscp != DSCP_UNMARKED)
            queues[count++] = (struct qdisc_queue){ .dscp = { 0 },
                                                    .dscp_count = 1,
                                                    .unmarked = true };
        queues[count++] = (struct qdisc_queue){ .dscp = { dscp },
                                                .dscp_count = 1,
                                                .unmarked = dscp == DSCP_UNMARKED };
    }
    return count;
}

static uint32_t find_unmarked(const struct qdisc_queue *queues, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (queues[i].unmarked)
            return i;
    return count - 1;
}

int qdisc_parse_rate(const char *text, uint64_t *ret_bits_per_s, struct error *err)
{
    static const struct {
        const char *unit;
        uint64_t bits;
    } units[] = { { "gbit", 1000000000 }, { "mbit", 1000000 }, { "kbit", 1000 } };
    char *end = NULL;
    uint64_t bits = 0;
    unsigned long long number =
        text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    for (size_t i = 0; end && i < 3; i++)
        if (strcmp(end, units[i].unit) == 0 && number <= 1000000000)
            bits = number * units[i].bits;
    if (bits < 1000000 || bits > 1000000000000)
        return error_set(err, -EINVAL,
                         "rate: \"%.30s\"; want one like 10gbit or 200mbit", text);
    *ret_bits_per_s = bits;
    return 0;
}

int qdisc_check(const struct qdisc_setup *setup, const struct dscp_levels *levels,
                struct error *err)
{
    struct qdisc_queue queues[QUEUES_MAX + 1];
    uint32_t count = make_queues(levels, queues);
    if (setup->floor < 1 || setup->floor * count > 100)
        return error_set(err, -EINVAL, "floor: want 1 to %u per cent with %u queues",
                         100 / count, count);
    return 0;
}

static void format_queue_name(const struct qdisc_queue *queue, char *text, size_t size)
{
    char name[DSCP_NAME_MAX];
    snprintf(text, size, "%s", dscp_name(name, queue->dscp[0]));
    if (queue->dscp_count > 1) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, ", %s", dscp_name(name, queue->dscp[1]));
    }
}

/* --- filters ------------------------------------------------------------------------ */

static void print_filter(FILE *file, const char *device, const char *what,
                         const char *queue)
{
    fprintf(file, "tc filter add dev %s parent 1: %s flowid %s\n", device, what, queue);
}

/*
 * Filters use u32, which nearly every kernel has.  ARP and neighbour discovery go first:
 * starved, they would take the host off the network.
 */
static void print_filters(FILE *file, const char *device,
                          const struct qdisc_queue *queues, uint32_t count,
                          uint32_t base)
{
    char flow[16], what[96];
    snprintf(flow, sizeof flow, "1:%x", base);
    print_filter(file, device, "protocol arp prio 1 u32 match u32 0 0", flow);
    print_filter(file, device, "protocol ipv6 prio 2 u32 match ip6 protocol 58 0xff",
                 flow);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < queues[i].dscp_count; k++) {
            unsigned field = (unsigned)queues[i].dscp[k] << 2;
            snprintf(flow, sizeof flow, "1:%x", base + i);
            snprintf(what, sizeof what,
                     "protocol ip prio 3 u32 match ip dsfield 0x%02x 0xfc", field);
            print_filter(file, device, what, flow);
            snprintf(what, sizeof what,
                     "protocol ipv6 prio 4 u32 match ip6 priority 0x%02x 0xfc", field);
            print_filter(file, device, what, flow);
        }
}

/* --- the two kinds of qdisc --------------------------------------------------------- */

static uint64_t max_u64(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

/* rate is the floor of each queue, prio the order in which they share the rest. */
static void print_htb(const struct qdisc_setup *setup, const struct qdisc_queue *queues,
                      uint32_t count, FILE *file)
{
    const char *device = setup->device;
    uint64_t kbit = setup->bits_per_s / 1000;
    uint64_t burst = max_u64(kbit / 8, BURST_MIN);
    uint64_t buffer = max_u64(kbit * BUFFER_MS / 8, BUFFER_MIN);
    fprintf(file, "tc qdisc replace dev %s root handle 1: htb default %x\n", device,
            0x10 + find_unmarked(queues, count));
    fprintf(file,
            "tc class add dev %s parent 1: classid 1:1 htb rate %" PRIu64
            "kbit ceil %" PRIu64 "kbit burst %" PRIu64 " cburst %" PRIu64
            " quantum 60000\n",
            device, kbit, kbit, burst, burst);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(file,
                "tc class add dev %s parent 1:1 classid 1:%x htb prio %u rate %" PRIu64
                "kbit ceil %" PRIu64 "kbit cburst %" PRIu64 " quantum 60000\n",
                device, 0x10 + i, i, kbit * setup->floor / 100, kbit, burst);
        /* In bytes: a limit in packets would count 64 kB of segments as one. */
        fprintf(file, "tc qdisc add dev %s parent 1:%x bfifo limit %" PRIu64 "\n",
                device, 0x10 + i, buffer);
    }
    print_filters(file, device, queues, count, 0x10);
}

/* ets has either strict bands or shares: each level has half the share of the one before. */
static void print_ets(const struct qdisc_setup *setup, const struct qdisc_queue *queues,
                      uint32_t count, FILE *file)
{
    uint64_t least = 2000;
    fprintf(file, "tc qdisc replace dev %s root handle 1: ets bands %u strict 1 quanta",
            setup->device, count);
    for (uint32_t i = 1; i < count; i++)
        fprintf(file, " %" PRIu64, least << (count - 1 - i));
    fputs(" priomap", file);
    for (uint32_t i = 0; i < 16; i++)
        fprintf(file, " %u", find_unmarked(queues, count));
    fputc('\n', file);
    print_filters(file, setup->device, queues, count, 1);
}

/* --- instructions for switches ------------------------------------------------------ */

static void print_switch(const struct qdisc_setup *setup,
                         const struct qdisc_queue *queues, uint32_t count, FILE *file)
{
    char name[32];
    fputs(
        "#\n# A switch that is no Linux: on every port that jobs' packets take,\n"
        "#   - believe the code point of the header (trust DSCP), do not rewrite it;\n"
        "#   - have these queues, the highest number served first:\n#\n"
        "#       queue  code points   served                minimum\n",
        file);
    for (uint32_t i = 0; i < count; i++) {
        format_queue_name(&queues[i], name, sizeof name);
        fprintf(file, "#       %-5u  %-12s  %-20s  %u %%%s\n", count - 1 - i, name,
                "strict priority", setup->floor,
                i == 0               ? "   control traffic, routing, ARP"
                : queues[i].unmarked ? "   everybody else"
                                     : "");
    }
    fputs("#\n"
          "#   - where strict priority has no guaranteed minimum: ETS or DWRR in all "
          "but\n"
          "#     the first queue, each weight at least twice that of the queue below;\n"
          "#   - any other code point goes where unmarked packets go;\n"
          "#   - mark congestion (ECN) per queue, if hosts use it: marks keep those "
          "bits.\n"
          "# RoCE has one or two lossless classes: two levels, chosen when a job "
          "starts.\n",
          file);
}

void qdisc_print(const struct qdisc_setup *setup, const struct dscp_levels *levels,
                 FILE *file)
{
    struct qdisc_queue queues[QUEUES_MAX + 1];
    uint32_t count = make_queues(levels, queues);
    fprintf(file,
            "# A host's device, or the port of a Linux switch: %s, %" PRIu64
            " Mbit/s, %u queues.\n",
            setup->device, setup->bits_per_s / 1000000, count);
    if (setup->kind == QDISC_HTB)
        fprintf(
            file,
            "# Each has %u %% for itself; what is left goes to the first that wants "
            "it.\n",
            setup->floor);
    else
        fputs("# Control traffic first; then each queue has twice the share of the "
              "next.  For a\n# device that is itself the narrowest place: ets has no "
              "rate.\n",
              file);
    if (setup->kind == QDISC_HTB)
        print_htb(setup, queues, count, file);
    else
        print_ets(setup, queues, count, file);
    print_switch(setup, queues, count, file);
}
