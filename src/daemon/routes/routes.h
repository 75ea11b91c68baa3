/* routes.h - the HTTP server of berthd: requests of docs/api/openapi.yaml, answered. */
#pragma once

#include <stdbool.h>

struct daemon;
struct error;
struct http;
struct routes;
struct uv_loop_s;

/* The token is read from the state folder, or made there.  It listens to the store for
 * the event stream (store_observe). */
int routes_new(struct routes **ret_routes, struct daemon *daemon,
               struct uv_loop_s *loop, struct error *err);
void routes_free(struct routes *routes);

struct http *routes_http(const struct routes *routes);

/* What was written since the last call is durable, or is not: replies that waited for it are
 * sent, and the event stream goes on. */
void routes_flush(struct routes *routes, bool durable);
