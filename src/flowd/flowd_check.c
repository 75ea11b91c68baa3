/* flowd_check.c - report which markers work on this host, and whether berthd answers. */
#include "flowd/flowd_check.h"

#include <string.h>

#include "api/call.h"
#include "base/error.h"
#include "flowd/flowd.h"
#include "flowd/marker.h"
#include "host/capabilities.h"

static void print_row(FILE *file, bool good, const char *what, const char *text)
{
    fprintf(file, "%-4s %-8s %s\n", good ? "ok" : "NO", what, text);
}

static void print_markers(FILE *file)
{
    for (size_t i = 0; marker_list[i]; i++) {
        struct error why;
        bool works = marker_list[i]->probe(&why) == 0;
        print_row(file, works, marker_list[i]->name,
                  works ? marker_list[i]->brief : why.text);
    }
    if (!marker_find("nft"))
        print_row(file, false, "nft", "built without libnftables");
}

static void print_berthd(const struct flowd_setup *setup, FILE *file)
{
    struct call *call = NULL;
    struct error err;
    char text[400];
    int r = call_open(&call, setup->address, &err);
    if (r == 0) {
        call_hurry(call, 5);
        r = call_json(call, "GET", "/v1/flows", NULL, NULL, &err);
    }
    if (r == 0)
        snprintf(text, sizeof text, "answers at %.300s", call_address(call));
    else
        snprintf(text, sizeof text, "%s", err.text);
    print_row(file, r == 0, "berthd", text);
    call_close(call);
}

static void print_levels(const struct dscp_levels *levels, FILE *file)
{
    char name[DSCP_NAME_MAX];
    fputs("     levels  ", file);
    for (uint32_t i = 0; i < levels->count; i++)
        fprintf(file, " %s:%u", dscp_name(name, levels->points[i].dscp),
                levels->points[i].priority);
    fputc('\n', file);
}

int flowd_check_host(const struct flowd_setup *setup, const char *backend, FILE *file)
{
    const struct marker *chosen[FLOWD_MARKERS_MAX];
    struct error err;
    char capabilities[200];
    print_markers(file);
    int count = flowd_choose(backend, chosen, &err);
    bool marks = count > 0 && strcmp(chosen[0]->name, "advice") != 0;
    if (count < 0)
        fprintf(file, "     used     none: %s\n", err.text);
    else
        fprintf(file, "     used     %s%s%s%s\n", chosen[0]->name,
                count > 1 ? ", and for jobs without a cgroup " : "",
                count > 1 ? chosen[1]->name : "",
                marks ? "" : ": nothing will be marked");
    capabilities_describe(capabilities, sizeof capabilities);
    fprintf(file, "     capabilities held: %s\n", capabilities);
    print_levels(&setup->levels, file);
    print_berthd(setup, file);
    return marks ? 0 : 1;
}
