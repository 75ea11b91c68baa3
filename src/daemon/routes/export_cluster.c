/*
 * export_cluster.c - GET /v1/export/cluster: on what and by what the exported jobs were run.
 *
 * The cluster as the policy sees it, which policy decided from when on, and when nodes went down
 * and came back and GPUs were in use by others, as the log has it.
 */
#include "daemon/routes/routes_internal.h"

#include "base/json_write.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "store/db.h"
#include "store/policy_rows.h"
#include "store/prune.h"
#include "store/store.h"

#define CHANGES_MAX "5000" /* of nodes, the newest */

static void write_types(struct buf *body, const struct cluster *cluster)
{
    json_write_open(body, "types", '[');
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        const struct accelerator *type = &cluster->types[t];
        json_write_open(body, NULL, '{');
        json_write_text(body, "name", type->name);
        json_write_exact(body, "speed", type->speed);
        if (type->usd_per_hour > 0)
            json_write_exact(body, "usd_per_hour", type->usd_per_hour);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

static void write_node(struct buf *body, const struct cluster *cluster, node_id id)
{
    const struct node *node = &cluster->nodes[id];
    char name[64];
    json_write_open(body, NULL, '{');
    json_write_text(body, "name", cluster_node_name(cluster, id, name, sizeof name));
    if (node->gpu_count > 0)
        json_write_text(body, "type", cluster->types[node->type].name);
    json_write_count(body, "gpus", node->gpu_count);
    json_write_exact(body, "cpus", node->cpu_milli / 1000.0);
    json_write_count(body, "mem_bytes", (int64_t)node->mem_mib << 20);
    json_write_count(body, "rack", node->rack);
    json_write_close(body, '}');
}

static void write_weights(struct buf *body, const char *key,
                          const struct entity *entities, uint32_t count)
{
    json_write_open(body, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_write_open(body, NULL, '{');
        json_write_text(body, "name", entities[i].name);
        json_write_exact(body, "weight", entities[i].weight);
        if (entities[i].fifo)
            json_write_flag(body, "fifo", true);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

static void write_policy(void *context, int64_t at_ns, const char *policy)
{
    struct buf *body = context;
    json_write_open(body, NULL, '{');
    json_write_time(body, "since", at_ns);
    json_write_text(body, "policy", policy);
    json_write_close(body, '}');
}

/* In the order in which they were; what nodes were before the first is not known. */
static void write_changes(struct buf *body, struct store *store)
{
    struct db_query *query = db_prepare(
        store_reader(store),
        "SELECT text FROM (SELECT seq, text FROM event WHERE job IS NULL AND kind IN "
        "('node_down', 'node_up', 'foreign') ORDER BY at_ns DESC, seq DESC "
        "LIMIT " CHANGES_MAX ") ORDER BY seq");
    json_write_open(body, "changes", '[');
    while (db_next(query, NULL) == 1)
        json_write_raw(body, NULL, db_get_text(query, 0));
    json_write_close(body, ']');
    db_finish(query);
}

static void export_cluster(struct routes *routes, const struct http_request *request,
                           uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct caller caller = routes_caller(request);
    int64_t since_ns = 0;
    if (!routes_need_engine(routes, &facts, reply) ||
        !routes_read_time(request, "since", &since_ns, reply))
        return;
    struct buf *body = &reply->body;
    const struct cluster *cluster = facts.engine->state.view.cluster;
    json_write_open(body, NULL, '{');
    json_write_text(body, "policy", facts.policy);
    json_write_count(body, "seed", (int64_t)facts.engine->seed);
    json_write_open(body, "policies", '[');
    policy_rows_read(facts.store, since_ns, write_policy, body);
    json_write_close(body, ']');
    json_write_flag(body, "first_fit", cluster->first_fit);
    write_types(body, cluster);
    json_write_open(body, "nodes", '[');
    for (node_id node = 0; node < cluster->node_count; node++)
        write_node(body, cluster, node);
    json_write_close(body, ']');
    if (caller_check_admin(&caller, NULL) == 0) {
        write_weights(body, "groups", cluster->entities, cluster->entity_count);
        write_weights(body, "users", cluster->users, cluster->user_count);
    }
    write_changes(body, facts.store);
    if (prune_history_from(facts.store) >= 0)
        json_write_time(body, "history_from", prune_history_from(facts.store));
    json_write_close(body, '}');
    buf_text(body, "\n");
}

const struct route export_cluster_routes[] = {
    { "GET", "/v1/export/cluster", SCOPES_READ, "since", export_cluster },
    { 0 },
};
