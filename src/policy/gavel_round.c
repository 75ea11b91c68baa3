/* gavel_round.c - rounds by our own rules. */
#include "policy/gavel_common.h"

void gavel_rounds_init(struct gavel_common *common, const struct view *view,
                       struct arena *run)
{
}

void gavel_rounds_observe(struct gavel_common *common, const struct view *view,
                          const struct event *event)
{
}

int gavel_rounds_decide(struct gavel_common *common, const struct view *view,
                        struct plan *plan, struct arena *scratch, struct error *err)
{
    return 0;
}
