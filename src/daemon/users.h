/*
 * users.h - users by their number: name and group, looked up outside the loop.
 *
 * The system may ask a directory server for a user, which can take seconds.  So users are
 * looked up by a worker thread and kept; requests of a user wait until that is done.  What is
 * known is looked up again after a while, and used meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct users;
struct uv_loop_s;

#define USER_NAME_MAX 64

struct user {
    uint32_t uid, gid;
    char name[USER_NAME_MAX]; /* the number where the system has no name */
    bool named;               /* it has one */
};

/* 'loaded' is called, from the loop, when users have become known. */
struct users *users_new(struct uv_loop_s *loop, void (*loaded)(void *context),
                        void *context);

/* Freed when lookups under way have ended, which takes the loop. */
void users_free(struct users *users);

/* True if this user is known; otherwise a lookup is under way. */
bool users_ready(struct users *users, uint32_t uid);

/* Look a user up at once, unless it is known: this blocks. */
void users_load(struct users *users, uint32_t uid);

/* A user as far as it is known: only the number, where it is not. */
struct user users_find(const struct users *users, uint32_t uid);

/* Whether a user is in the group of that name, as far as it is known. */
bool users_in_group(const struct users *users, uint32_t uid, const char *group);
