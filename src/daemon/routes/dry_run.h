/* dry_run.h - POST /v1/jobs?dry_run=true. */
#pragma once

struct http_reply;
struct http_request;
struct routes;

/* What would become of a job if it were submitted now; nothing is changed. */
void dry_run_answer(struct routes *routes, const struct http_request *request,
                    struct http_reply *reply);
