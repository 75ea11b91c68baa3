/*
 * state_watch.h - whether berthd's database and socket are still where they were made.
 *
 * Both are looked at once a second.  A socket that was deleted is made again.  While the
 * database is gone nothing is accepted; when it is back berthd goes on.  If another file has
 * taken its place, berthd ends: the next one reads that file.
 */
#pragma once

struct daemon;

#define STATE_WATCH_MS 1000

/* What is to be done about the database. */
enum state_watch_verdict {
    STATE_WATCH_FINE,
    STATE_WATCH_GONE,    /* refuse, and look again */
    STATE_WATCH_REPLACED /* end */
};

/* Look at both; what has changed is logged, and kept in daemon->state_trouble. */
enum state_watch_verdict state_watch_check(struct daemon *daemon);
