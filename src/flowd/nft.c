/*
 * nft.c - mark packets by cgroup, in a table of nftables that only the agent uses.
 *
 *     table inet berth {
 *         counter j12 { }                          bytes that job 12 sends
 *         map jobs2 { cgroup of depth 2 : goto lvl0, with a timeout }
 *         map bytes2 { cgroup of depth 2 : counter }
 *         chain lvl0 { ip dscp set 40; ip6 dscp set 40; meta priority set 6 }
 *         chain out { output hook: oifname lo return; per depth, deepest first:
 *                     counter by bytes2; verdict by jobs2 }
 *     }
 *
 * A rule compares a socket's cgroup at one depth, so there is a pair of maps per depth.
 * Marks change in one transaction: packets see the old ones or the new ones.  All sockets
 * of a job are marked, also those it opens later.
 *
 * The table has an owner: the kernel removes it when the agent ends in any way.  Elements
 * also have a timeout, for an agent that hangs.  Counters are objects of their own, which
 * survive the replacement of the maps: to list counters of elements, the library would
 * search all of /sys/fs/cgroup for each name.
 */
#include "flowd/marker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>
#include <nftables/libnftables.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "flowd/dscp.h"
#include "host/capabilities.h"
#include "flowd/mark_target.h"

#define TEXT_MAX (8u << 20)

/* What the table has for a job. */
struct nft_job {
    uint64_t id, group;
    uint32_t depth, point;
};

struct nft {
    struct nft_ctx *context;
    const struct dscp_levels *levels;
    struct buf text;
    struct nft_job *jobs; /* by id */
    uint32_t count, room;
    uint32_t depths;  /* bit d: there are maps for depth d */
    int64_t until_ns; /* when the elements time out */
};

/* --- one transaction ---------------------------------------------------------------- */

static struct nft_ctx *open_context(void)
{
    struct nft_ctx *context = nft_ctx_new(NFT_CTX_DEFAULT);
    if (context) {
        nft_ctx_buffer_output(context);
        nft_ctx_buffer_error(context);
    }
    return context;
}

/* Set the first message of the library as the error, without its position. */
static int set_library_error(struct nft_ctx *context, const char *doing,
                             struct error *err)
{
    const char *text = nft_ctx_get_error_buffer(context);
    const char *mark = text ? strstr(text, "Error: ") : NULL;
    const char *from = mark ? mark + 7 : text ? text : "";
    int length = (int)strcspn(from, "\n");
    bool denied = strstr(from, "not permitted") != NULL;
    return error_set(err, denied ? -EPERM : -EIO, "%s: %.*s", doing,
                     length < 160 ? length : 160, from);
}

static int run_text(struct nft_ctx *context, const struct buf *text, const char *doing,
                    struct error *err)
{
    if (text->full)
        return error_set(err, -E2BIG, "%s: more than %u MB of rules", doing,
                         TEXT_MAX >> 20);
    if (nft_run_cmd_from_buffer(context, text->bytes) == 0)
        return 0;
    return set_library_error(context, doing, err);
}

/* --- the table ---------------------------------------------------------------------- */

static void add_chains(struct buf *text, const char *table,
                       const struct dscp_levels *levels)
{
    for (uint32_t i = 0; i < levels->count; i++) {
        const struct dscp_point *point = &levels->points[i];
        buf_print(text, "add chain inet %s lvl%u\n", table, i);
        buf_print(text, "add rule inet %s lvl%u ip dscp set %u\n", table, i,
                  point->dscp);
        buf_print(text, "add rule inet %s lvl%u ip6 dscp set %u\n", table, i,
                  point->dscp);
        buf_print(text, "add rule inet %s lvl%u meta priority set %u\n", table, i,
                  point->priority);
    }
    buf_print(text,
              "add chain inet %s out { type filter hook output priority mangle; policy "
              "accept; }\n",
              table);
}

static void add_maps(struct buf *text, const char *table, uint32_t depth)
{
    buf_print(text,
              "add map inet %s jobs%u { typeof socket cgroupv2 level %u : verdict; "
              "flags timeout; }\n",
              table, depth, depth);
    buf_print(text, "add map inet %s bytes%u { type cgroupsv2 : counter; }\n", table,
              depth);
}

/* Deepest first: a job in the cgroup of another job has its own level. */
static void add_rules(struct buf *text, const char *table, uint32_t depths)
{
    buf_print(text, "flush chain inet %s out\n", table);
    buf_print(text, "add rule inet %s out oifname \"lo\" return\n", table);
    for (uint32_t depth = MARK_TARGET_DEPTH_MAX; depth > 0; depth--)
        if (depths >> depth & 1) {
            buf_print(text,
                      "add rule inet %s out counter name socket cgroupv2 level %u map "
                      "@bytes%u\n",
                      table, depth, depth);
            buf_print(text,
                      "add rule inet %s out socket cgroupv2 level %u vmap @jobs%u\n",
                      table, depth, depth);
        }
}

/* Try everything that we use, and delete it in the same transaction. */
static int nft_probe(struct error *why)
{
    struct dscp_levels levels;
    struct buf text;
    char table[40];
    if (!capabilities_hold(CAP_NET_ADMIN)) /* the library would complain on stderr */
        return error_set(why, -EPERM, "needs CAP_NET_ADMIN");
    if (!mark_target_hierarchy())
        return error_set(why, -ENOENT, "no cgroups of version 2 are mounted");
    struct nft_ctx *context = open_context();
    if (!context)
        return error_set(why, -ENOMEM, "nftables cannot be used");
    dscp_levels_parse(&levels, dscp_levels_standard, NULL);
    snprintf(table, sizeof table, "berth_probe_%d", (int)getpid());
    buf_init(&text, TEXT_MAX);
    buf_print(&text, "add table inet %s\n", table);
    add_chains(&text, table, &levels);
    add_maps(&text, table, 1);
    add_rules(&text, table, 1u << 1);
    buf_print(&text, "delete table inet %s\n", table);
    int r = run_text(context, &text, "nftables", why);
    buf_release(&text);
    nft_ctx_free(context);
    return r;
}

static int make_table(struct nft *nft, const char *flags, struct error *err)
{
    buf_reset(&nft->text);
    /* Replace a table that was left without an owner. */
    buf_print(&nft->text, "add table inet berth\ndelete table inet berth\n");
    buf_print(&nft->text, "add table inet berth %s\n", flags);
    add_chains(&nft->text, "berth", nft->levels);
    add_rules(&nft->text, "berth", 0);
    return run_text(nft->context, &nft->text, "table inet berth", err);
}

/* Make an empty table: at the start, or after an administrator flushed the ruleset. */
static int reset_table(struct nft *nft, struct error *err)
{
    int r = make_table(nft, "{ flags owner; }", err);
    if (r < 0 && make_table(nft, "", NULL) == 0)
        r = 0; /* before Linux 5.12, where only timeouts clean up */
    if (r == 0) {
        nft->count = 0;
        nft->depths = 0;
    }
    return r;
}

static void nft_close(void *self)
{
    struct nft *nft = self;
    if (nft->context) {
        nft_run_cmd_from_buffer(nft->context, "delete table inet berth");
        nft_ctx_free(nft->context);
    }
    buf_release(&nft->text);
    free(nft->jobs);
    *nft = (struct nft){ .context = NULL };
}

static int nft_open(void *self, const struct dscp_levels *levels, struct error *err)
{
    struct nft *nft = self;
    *nft = (struct nft){ .levels = levels, .context = open_context() };
    buf_init(&nft->text, TEXT_MAX);
    if (!nft->context)
        return error_set(err, -ENOMEM, "nftables cannot be used");
    int r = reset_table(nft, err);
    if (r < 0) {
        nft_ctx_free(nft->context);
        nft->context = NULL;
        nft_close(nft);
    }
    return r == -EPERM ? error_set(err, r, "table inet berth is held by another agent")
                       : r;
}

/* --- jobs in the table -------------------------------------------------------------- */

static bool nft_reaches(const struct mark_target *target)
{
    return target->group != 0 && !target->elsewhere;
}

/* Whether a job has come, gone or moved to another cgroup. */
static bool has_other_jobs(const struct nft *nft, const struct marking *marking)
{
    if (nft->count != marking->count)
        return true;
    for (uint32_t i = 0; i < nft->count; i++)
        if (nft->jobs[i].id != marking->targets[i].id ||
            nft->jobs[i].group != marking->targets[i].group)
            return true;
    return false;
}

static uint32_t count_level_changes(const struct nft *nft,
                                    const struct marking *marking)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < nft->count; i++)
        count += nft->jobs[i].point != marking->targets[i].point;
    return count;
}

/* Whether elements would soon time out before the marks expire. */
static bool must_renew(const struct nft *nft, const struct marking *marking)
{
    return nft->until_ns < marking->until_ns &&
           nft->until_ns - marking->now_ns < (marking->until_ns - marking->now_ns) / 2;
}

static void add_depths(struct nft *nft, uint32_t more)
{
    for (uint32_t depth = 1; depth <= MARK_TARGET_DEPTH_MAX; depth++)
        if (more >> depth & 1)
            add_maps(&nft->text, "berth", depth);
    if (more)
        add_rules(&nft->text, "berth", nft->depths | more);
}

/* Add counters of new jobs and delete those of jobs that left.  Both lists are sorted. */
static void update_counters(struct nft *nft, const struct marking *marking)
{
    uint32_t a = 0, b = 0;
    while (a < nft->count || b < marking->count) {
        uint64_t old = a < nft->count ? nft->jobs[a].id : UINT64_MAX;
        uint64_t new = b < marking->count ? marking->targets[b].id : UINT64_MAX;
        if (old < new)
            buf_print(&nft->text, "delete counter inet berth j%" PRIu64 "\n", old);
        else if (new < old)
            buf_print(&nft->text, "add counter inet berth j%" PRIu64 "\n", new);
        a += old <= new;
        b += new <= old;
    }
}

/* Add an element of "jobs" (a level and a timeout) or of "bytes" (a counter). */
static void add_element(struct nft *nft, const struct mark_target *target, int64_t ms,
                        bool counter)
{
    buf_print(&nft->text, " \"%s\"", target->cgroup);
    if (counter)
        buf_print(&nft->text, " : \"j%" PRIu64 "\"", target->id);
    else
        buf_print(&nft->text, " timeout %" PRId64 "ms : goto lvl%u", ms, target->point);
}

static void add_elements(struct nft *nft, const struct marking *marking, uint32_t depth,
                         bool counters)
{
    int64_t ms = (marking->until_ns - marking->now_ns) / 1000000 + 1;
    bool any = false;
    for (uint32_t i = 0; i < marking->count; i++) {
        if (marking->targets[i].depth != depth)
            continue;
        if (!any)
            buf_print(&nft->text, "add element inet berth %s%u {",
                      counters ? "bytes" : "jobs", depth);
        else
            buf_text(&nft->text, ",");
        add_element(nft, &marking->targets[i], ms, counters);
        any = true;
    }
    if (any)
        buf_text(&nft->text, " }\n");
}

static void store_jobs(struct nft *nft, const struct marking *marking)
{
    nft->jobs =
        grow_array(nft->jobs, &nft->room, marking->count + 1, sizeof *nft->jobs);
    nft->count = marking->count;
    for (uint32_t i = 0; i < marking->count; i++) {
        const struct mark_target *target = &marking->targets[i];
        nft->jobs[i] = (struct nft_job){ .id = target->id,
                                         .group = target->group,
                                         .depth = target->depth,
                                         .point = target->point };
    }
}

static uint32_t find_depths(const struct marking *marking)
{
    uint32_t depths = 0;
    for (uint32_t i = 0; i < marking->count; i++)
        depths |= 1u << marking->targets[i].depth;
    return depths;
}

/* Change the levels of some jobs, where nothing else differs. */
static int change_levels(struct nft *nft, const struct marking *marking,
                         struct error *err)
{
    int64_t ms = (nft->until_ns - marking->now_ns) / 1000000 + 1;
    buf_reset(&nft->text);
    for (uint32_t i = 0; i < marking->count; i++) {
        const struct mark_target *target = &marking->targets[i];
        if (nft->jobs[i].point == target->point)
            continue;
        buf_print(&nft->text, "delete element inet berth jobs%u { \"%s\" }\n",
                  target->depth, target->cgroup);
        buf_print(&nft->text, "add element inet berth jobs%u {", target->depth);
        add_element(nft, target, ms, false);
        buf_text(&nft->text, " }\n");
    }
    int r = run_text(nft->context, &nft->text, "table inet berth", err);
    if (r == 0)
        store_jobs(nft, marking);
    return r;
}

static int replace_all(struct nft *nft, const struct marking *marking,
                       struct error *err)
{
    bool other_jobs = has_other_jobs(nft, marking);
    uint32_t depths = nft->depths | find_depths(marking);
    buf_reset(&nft->text);
    add_depths(nft, depths & ~nft->depths);
    for (uint32_t depth = 1; depth <= MARK_TARGET_DEPTH_MAX; depth++)
        if (nft->depths >> depth & 1) {
            buf_print(&nft->text, "flush map inet berth jobs%u\n", depth);
            if (other_jobs)
                buf_print(&nft->text, "flush map inet berth bytes%u\n", depth);
        }
    if (other_jobs)
        update_counters(nft, marking);
    for (uint32_t depth = 1; depth <= MARK_TARGET_DEPTH_MAX; depth++)
        if (depths >> depth & 1) {
            add_elements(nft, marking, depth, false);
            if (other_jobs)
                add_elements(nft, marking, depth, true);
        }
    if (nft->text.count == 0)
        return 0; /* the table is empty and stays so */
    int r = run_text(nft->context, &nft->text, "table inet berth", err);
    if (r == 0) {
        nft->depths = depths;
        nft->until_ns = marking->until_ns;
        store_jobs(nft, marking);
    }
    return r;
}

static int nft_apply(void *self, const struct marking *marking, struct error *err)
{
    struct nft *nft = self;
    if (marking->rebuild) {
        int r = reset_table(nft, err);
        return r < 0 ? r : replace_all(nft, marking, err);
    }
    if (has_other_jobs(nft, marking) || must_renew(nft, marking))
        return replace_all(nft, marking, err);
    uint32_t count = count_level_changes(nft, marking);
    if (count == 0)
        return 0;
    if (count <= marking->count / 4 && change_levels(nft, marking, NULL) == 0)
        return 0;
    return replace_all(nft, marking, err);
}

/* --- counters ----------------------------------------------------------------------- */

static void nft_bytes(void *self,
                      void (*each)(void *context, uint64_t id, uint64_t bytes),
                      void *context)
{
    struct nft *nft = self;
    struct json *json = NULL;
    if (nft->count == 0)
        return;
    nft_ctx_output_set_flags(nft->context, NFT_CTX_OUTPUT_JSON);
    int r = nft_run_cmd_from_buffer(nft->context, "list counters table inet berth");
    nft_ctx_output_set_flags(nft->context, 0);
    const char *text = nft_ctx_get_output_buffer(nft->context);
    if (r != 0 || !text || json_parse(text, strlen(text), &json, NULL) < 0)
        return;
    const struct json *list = json_get(json, "nftables");
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *counter = json_get(json_item(list, i), "counter");
        const char *name = json_as_text(json_get(counter, "name"));
        int64_t bytes;
        if (name && name[0] == 'j' && json_as_count(json_get(counter, "bytes"), &bytes))
            each(context, strtoull(name + 1, NULL, 10), (uint64_t)bytes);
    }
    json_free(json);
}

static const int needed_capabilities[] = { CAP_NET_ADMIN, -1 };

const struct marker marker_nft = {
    .name = "nft",
    .brief = "by cgroup, in a table of nftables of our own",
    .capabilities = needed_capabilities,
    .self_size = sizeof(struct nft),
    .probe = nft_probe,
    .open = nft_open,
    .reaches = nft_reaches,
    .apply = nft_apply,
    .bytes = nft_bytes,
    .close = nft_close,
};
