/* expand.h - one request per index of an array and point of a grid. */
#pragma once

struct draft;
struct error;
struct json;

/*
 * The draft's fields as they are, or {"jobs": […]}: the grid within
 * the array, the last parameter changing fastest.  Each job has BERTH_PARAM_NAME in its
 * environment, and {NAME} is replaced in its command, its name and its paths; {index} by
 * the array's index.
 */
int expand(const struct draft *draft, struct json **ret_body, struct error *err);
