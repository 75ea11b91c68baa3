/*
 * job_pages.h - lists of jobs of any length, read and printed page by page.
 *
 * Only one page is in memory, here and in berthd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct call;
struct flags;
struct json;

struct job_pages {
    const struct flags *flags;
    const char *path;  /* "/v1/jobs?…", without a limit                        */
    bool newest_first; /* as 'path' says                                       */
    uint64_t max;      /* jobs in all; 0: all there are                        */
    bool json;         /* print {"jobs": […]} instead of calling 'print'       */
    void (*print)(void *context, const struct json *jobs); /* each page; may be empty */
    void *context;

    /* What the last page says beside its jobs. */
    char *trouble;
    double history_from; /* seconds since 1970; 0: from the beginning */
    bool is_limited;     /* 'max' was reached                         */
    uint64_t count;      /* of jobs                                   */
};

/* 0, or an exit status after a message.  Then release it. */
int job_pages_read(struct job_pages *pages, struct call *call);
void job_pages_release(struct job_pages *pages);
