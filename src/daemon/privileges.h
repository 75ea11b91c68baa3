/*
 * privileges.h - berthd for all users gives up root's rights before it serves anybody.
 *
 * Started as root, it makes its folders, starts berth-launch for what needs root, and
 * becomes a user of its own, for good.
 */
#pragma once

#include <stdint.h>

struct daemon_setup;
struct error;

#define PRIVILEGES_USER "berth"

struct service_user {
    const char *name;
    uint32_t uid, gid;
};

/* The user that berthd is to run as; NULL: the standard one. */
int privileges_find_user(struct service_user *user, const char *name,
                         struct error *err);

/* Files in the state folder that an earlier berthd wrote as root become the user's. */
void privileges_hand_over(const char *state_dir, const struct service_user *user);

/* Become that user, with its groups and without any capability. */
int privileges_drop(const struct service_user *user, struct error *err);
