/* state_watch.c - whether berthd's database and socket are still where they were made. */
#include "daemon/state_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "daemon/daemon_internal.h"
#include "daemon/routes/routes.h"
#include "http/http.h"
#include "store/store.h"

/* Log a change once, not every second. */
static void set_trouble(char *trouble, size_t size, const char *text, const char *over)
{
    if (strcmp(trouble, text) == 0)
        return;
    fprintf(stderr, "berthd: %s\n", *text ? text : over);
    snprintf(trouble, size, "%s", text);
}

static void check_socket(struct daemon *daemon)
{
    struct error err = { "" };
    struct http *http = routes_http(daemon->routes);
    int r = http ? http_renew_socket(http, &err) : 0;
    if (r == 1)
        fprintf(stderr, "berthd: %s was deleted, and is made again\n",
                daemon->setup.socket);
    set_trouble(daemon->socket_trouble, sizeof daemon->socket_trouble,
                r < 0 ? err.text : "", "the socket can be used again");
}

enum state_watch_verdict state_watch_check(struct daemon *daemon)
{
    struct error err = { "" };
    check_socket(daemon);
    int r = store_check_file(daemon->store, &err);
    set_trouble(daemon->state_trouble, sizeof daemon->state_trouble,
                r < 0 ? err.text : "", "the database is back");
    return r == -ESTALE ? STATE_WATCH_REPLACED
           : r < 0      ? STATE_WATCH_GONE
                        : STATE_WATCH_FINE;
}
