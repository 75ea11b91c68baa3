/* routes.h - one row per route of docs/api/openapi.yaml: requests to berthd, answered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/http.h"

struct daemon;
struct error;
struct routes;
struct uv_loop_s;

/* The token is read from the state folder, or made there.  It listens to the store for
 * the event stream (store_observe). */
int routes_new(struct routes **ret_routes, struct daemon *daemon,
               struct uv_loop_s *loop, struct error *err);
void routes_free(struct routes *routes);

const char *routes_token(const struct routes *routes);

/* For http_setup: the context is the struct routes. */
http_handler routes_handle;
bool routes_find_session(void *context, const char *bearer, uint32_t *ret_uid,
                         uint32_t *ret_gid);
bool routes_user_ready(void *context, uint32_t uid);
bool routes_is_public(void *context, const char *method, const char *target);

/* When the server is open: pages from before a restart find it again. */
void routes_resume(struct routes *routes, struct http *http);

/* What was written since the last call is on disk, or is not: the stream may tell. */
void routes_flush(struct routes *routes, bool durable);
