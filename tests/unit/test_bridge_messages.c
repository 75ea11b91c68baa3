/* Slurm's lists of nodes and resources, requests of berthd, and messages to it. */
#include "support/cases.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "slurm/slurm_driver.h"
#include "slurm/hostlist.h"
#include "slurm/output_path.h"
#include "slurm/slurm_record.h"
#include "slurm/bridge_request.h"
#include "slurm/bridge_messages.h"

static struct arena arena;

/* The names with blanks between, or "-" for a list that is none. */
static const char *expand_list(const char *text)
{
    static char joined[512];
    struct hostlist list;
    struct error err = { "" };
    joined[0] = '\0';
    if (hostlist_expand(text, &arena, &list, &err) < 0) {
        assert_true(err.text[0]);
        return "-";
    }
    for (uint32_t i = 0, used = 0; i < list.count; i++)
        used += (uint32_t)snprintf(joined + used, sizeof(joined) - used, "%s%s",
                                   i > 0 ? " " : "", list.names[i]);
    return joined;
}

static void lists_of_nodes_are_expanded(void **state)
{
    assert_string_equal(expand_list(""), "");
    assert_string_equal(expand_list("n1"), "n1");
    assert_string_equal(expand_list("n[1-3]"), "n1 n2 n3");
    assert_string_equal(expand_list("n[1,3-4],login"), "n1 n3 n4 login");
    assert_string_equal(expand_list("n[008-011]"), "n008 n009 n010 n011");
    assert_string_equal(expand_list("r[1-2]n[1-2]-ib"),
                        "r1n1-ib r1n2-ib r2n1-ib r2n2-ib");
    assert_string_equal(expand_list("a,b,c"), "a b c");
}

static void malformed_lists_are_refused(void **state)
{
    static const char *const wrong[] = { "n[1-",   "n[",   "n]1",     "n[1-2",
                                         "n[3-1]", "n[]",  "n[a]",    "a,",
                                         ",a",     "a,,b", "n[1--2]", "n[1,]",
                                         "n[1-2]]" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        print_message("%s\n", wrong[i]);
        assert_string_equal(expand_list(wrong[i]), "-");
    }
}

static void lists_are_the_same_in_any_order(void **state)
{
    assert_true(hostlist_same("n[1-2]", "n2,n1", &arena));
    assert_false(hostlist_same("n[1-2]", "n1,n3", &arena));
    assert_false(hostlist_same("n[1-2]", "n1", &arena));
    assert_false(hostlist_same("n[", "n[", &arena));
    assert_false(hostlist_same(NULL, "n1", &arena));
}

static void a_list_of_too_many_nodes_is_refused(void **state)
{
    struct hostlist list;
    assert_int_equal(hostlist_expand("n[0-999999999]", &arena, &list, NULL), -E2BIG);
    assert_int_equal(hostlist_expand("a[0-999]b[0-999]c[0-999]", &arena, &list, NULL),
                     -E2BIG);
}

static void assert_gres(const char *text, const char *name, uint64_t count,
                        const char *type, uint64_t indexes)
{
    struct gres gres;
    gres_read(text, name, &gres);
    print_message("%s\n", text ? text : "NULL");
    assert_int_equal(gres.count, count);
    assert_string_equal(gres.type, type);
    assert_int_equal(gres.indexes, indexes);
}

static void resources_are_read_in_every_spelling(void **state)
{
    assert_gres(NULL, "gpu", 0, "", 0);
    assert_gres("", "gpu", 0, "", 0);
    assert_gres("gpu", "gpu", 1, "", 0);
    assert_gres("gres:gpu", "gpu", 1, "", 0);
    assert_gres("gres:gpu:2", "gpu", 2, "", 0);
    assert_gres("gres:gpu:v100:2", "gpu", 2, "v100", 0);
    assert_gres("gres/gpu:v100=2", "gpu", 2, "v100", 0);
    assert_gres("gres/gpu=2", "gpu", 2, "", 0);
    assert_gres("gpu:v100", "gpu", 1, "v100", 0);
    assert_gres("gpu:2080ti:1", "gpu", 1, "2080ti", 0);
    assert_gres("gpu:2K", "gpu", 2048, "", 0);
    assert_gres("gpu:v100:4(S:0-1),shard:v100:8(S:0-1)", "gpu", 4, "v100", 0);
    assert_gres("gpu:v100:4(S:0-1),shard:v100:8(S:0-1)", "shard", 8, "v100", 0);
    assert_gres("gpu:v100:3(IDX:0-1,3)", "gpu", 3, "v100", 0xb);
    assert_gres("gpu:v100:0(IDX:N/A),shard:v100:0(IDX:N/A)", "gpu", 0, "v100", 0);
    assert_gres("shard:v100:2(2/8,0/8)", "shard", 2, "v100", 0);
    assert_gres("gpus:4", "gpu", 0, "", 0);
    assert_gres("gpu:v100:many", "gpu", 0, "v100", 0);
    assert_gres("gpu:99999999999999999999", "gpu", 1, "99999999999999999999", 0);
    assert_gres("license:gpu:4,mps:100", "gpu", 0, "", 0);
}

static void several_types_are_noticed(void **state)
{
    struct gres gres;
    gres_read("gres:gpu:v100:3,gres:gpu:k80:1", "gpu", &gres);
    assert_int_equal(gres.count, 4);
    assert_true(gres.mixed);
    gres_read("gpu:v100:3,gpu:v100:1", "gpu", &gres);
    assert_false(gres.mixed);
}

static void shards_of_a_job_are_of_a_type(void **state)
{
    struct job_gres gres;
    struct slurm_job job = { .min_nodes = 1, .tres_per_node = "gres:shard:v100:3" };
    gres_of_job(&job, &gres);
    assert_int_equal(gres.gpus, 0);
    assert_int_equal(gres.shards, 3);
    assert_string_equal(gres.type, "v100");
}

static uint64_t count_job_gpus(struct slurm_job job)
{
    struct job_gres gres;
    gres_of_job(&job, &gres);
    return gres.gpus;
}

static void gpus_of_a_job_are_summed_from_any_field(void **state)
{
    assert_int_equal(count_job_gpus((struct slurm_job){ .min_nodes = 3 }), 0);
    assert_int_equal(count_job_gpus((struct slurm_job){
                         .min_nodes = 3, .tres_per_node = "gres:gpu:2" }),
                     6);
    assert_int_equal(count_job_gpus((struct slurm_job){ .min_nodes = 3,
                                                        .tres_per_job = "gres:gpu:7" }),
                     7);
    assert_int_equal(
        count_job_gpus((struct slurm_job){ .tasks = 5, .tres_per_task = "gres/gpu:1" }),
        5);
    assert_int_equal(
        count_job_gpus((struct slurm_job){
            .min_nodes = 2, .sockets_per_node = 2, .tres_per_socket = "gres:gpu:1" }),
        4);
    /* The number for the job counts where there are several. */
    assert_int_equal(
        count_job_gpus((struct slurm_job){ .min_nodes = 2,
                                           .tres_per_job = "gres:gpu:6",
                                           .tres_per_node = "gres:gpu:3" }),
        6);
    assert_int_equal(count_job_gpus((struct slurm_job){
                         .min_nodes = UINT32_MAX - 1,
                         .sockets_per_node = UINT32_MAX - 1,
                         .tres_per_socket = "gres:gpu:999999999" }) > 0,
                     1);
}

static int read_line(const char *line, struct bridge_request *request,
                     struct error *err)
{
    return bridge_request_read(line, strlen(line), &arena, request, err);
}

static void requests_are_read(void **state)
{
    struct bridge_request request;
    struct error err = { "" };
    assert_int_equal(read_line("{\"seq\":4,\"verb\":\"start\",\"job\":17,\"nodes\":"
                               "[\"n2\",\"n4\"],\"gpus_per_node\":2}",
                               &request, &err),
                     0);
    assert_int_equal(request.seq, 4);
    assert_int_equal(request.verb, VERB_START);
    assert_string_equal(request.job, "17");
    assert_string_equal(request.nodes, "n2,n4");
    assert_int_equal(request.node_count, 2);
    assert_int_equal(request.gpus_per_node, 2);

    assert_int_equal(read_line("{\"seq\":5,\"verb\":\"signal\",\"job\":\"17_3\","
                               "\"signal\":\"SIGUSR2\",\"to\":\"steps\"}",
                               &request, &err),
                     0);
    assert_string_equal(request.job, "17_3");
    assert_int_equal(bridge_request_job_id(&request), 17);
    assert_int_equal(request.signal, SIGUSR2);
    assert_int_equal(request.to, SIGNAL_STEPS);
}

static void malformed_requests_are_refused_with_their_seq(void **state)
{
    static const char *const wrong[] = {
        "{\"seq\":9,\"verb\":\"hold\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":0}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":4294967295}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"1_\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"1_2_3\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"-1\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"99999999999\"}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[\"n1;rm\"]}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[\"--help\"]}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[\"n1\"],\"cpus\":0}",
        "{\"seq\":9,\"verb\":\"comment\",\"job\":1}",
        "{\"seq\":9,\"verb\":\"comment\",\"job\":1,\"text\":\"a\\nb\"}",
        "{\"seq\":9}",
        "{\"seq\":9,\"verb\":\"dance\",\"job\":1}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"0\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"4294967295\"}",
        "{\"seq\":9,\"verb\":\"hold\",\"job\":\"1_99999999999\"}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":\"n1\"}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[]}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[\"\"]}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[7]}",
        "{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[\"n1\"],\"tasks\":\"x\"}",
        ("{\"seq\":9,\"verb\":\"start\",\"job\":1,\"nodes\":[\"n1\"],"
         "\"gpus_per_node\":1000001}"),
        "{\"seq\":9,\"verb\":\"signal\",\"job\":1,\"to\":\"all\"}",
        "{\"seq\":9,\"verb\":\"signal\",\"job\":1,\"signal\":\"STOP\",\"to\":\"all\"}",
        "{\"seq\":9,\"verb\":\"signal\",\"job\":1,\"signal\":\"USR1\"}",
        "{\"seq\":9,\"verb\":\"signal\",\"job\":1,\"signal\":\"USR1\",\"to\":\"me\"}",
        "{\"seq\":9,\"verb\":\"release\",\"job\":1,\"begin\":\"noon\"}",
        "{\"seq\":9,\"verb\":\"release\",\"job\":1,\"begin\":0}",
        "{\"seq\":9,\"verb\":\"release\",\"job\":1,\"begin\":4294967296}",
        "{\"seq\":9,\"verb\":\"release\",\"job\":1,\"nodes\":7}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct bridge_request request;
        struct error err = { "" };
        print_message("%s\n", wrong[i]);
        assert_int_equal(read_line(wrong[i], &request, &err), -EINVAL);
        assert_int_equal(request.seq, 9);
        assert_true(err.text[0]);
    }
}

static void a_line_without_a_seq_has_none(void **state)
{
    static const char *const wrong[] = { "",
                                         "7",
                                         "{",
                                         "{\"seq\":-1,\"verb\":\"poll\"}",
                                         "{\"seq\":\"x\",\"verb\":\"poll\"}",
                                         "{\"verb\":\"poll\"}" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct bridge_request request;
        struct error err = { "" };
        assert_int_equal(read_line(wrong[i], &request, &err), -EINVAL);
        assert_int_equal(request.seq, -1);
        assert_true(err.text[0]);
    }
}

static void each_verb_has_its_own_fields(void **state)
{
    struct bridge_request request;
    struct error err = { "" };
#define READ(text) assert_int_equal(read_line(text, &request, &err), 0)
    READ("{\"seq\":0,\"verb\":\"poll\"}");
    assert_int_equal(request.verb, VERB_POLL);
    READ("{\"seq\":1,\"verb\":\"hold\",\"job\":1,\"theirs\":true}");
    assert_true(request.theirs && !request.unpin);
    READ("{\"seq\":1,\"verb\":\"hold\",\"job\":1,\"unpin\":true}");
    assert_true(request.unpin && !request.theirs);
    READ("{\"seq\":1,\"verb\":\"release\",\"job\":1,\"unpin\":true,\"begin\":"
         "1700000000}");
    assert_int_equal(request.begin, 1700000000);
    assert_int_equal(request.node_count, 0);
    READ("{\"seq\":1,\"verb\":\"release\",\"job\":1,\"nodes\":[\"n1\"],\"cpus\":8,"
         "\"tasks\":2}");
    assert_string_equal(request.nodes, "n1");
    assert_int_equal(request.cpus, 8);
    assert_int_equal(request.tasks, 2);
    READ(
        "{\"seq\":1,\"verb\":\"signal\",\"job\":1,\"signal\":\"TERM\",\"to\":\"all\"}");
    assert_int_equal(request.to, SIGNAL_ALL);
    READ("{\"seq\":1,\"verb\":\"signal\",\"job\":1,\"signal\":\"TERM\",\"to\":"
         "\"batch\"}");
    assert_int_equal(request.to, SIGNAL_BATCH);
    READ("{\"seq\":1,\"verb\":\"comment\",\"job\":1,\"text\":\"n\\u00e4her\"}");
    assert_string_equal(request.text, "n\xc3\xa4her");
    READ("{\"seq\":1,\"verb\":\"cancel\",\"job\":1}");
    assert_int_equal(request.verb, VERB_CANCEL);
}

/* What comes of a record, as text. */
static const char *message_of(const struct slurm_job *job)
{
    static char text[40000];
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX);
    bridge_message_job(&line, job, &arena);
    snprintf(text, sizeof(text), "%s", line.bytes);
    buf_release(&line);
    return text;
}

static void a_message_has_the_fields_of_its_state(void **state)
{
    struct slurm_job job = { .id = 5,
                             .array_task = SLURM_NONE,
                             .array_tasks = "1-9%3",
                             .state = BRIDGE_PENDING,
                             .reason = "BeginTime",
                             .priority = 7,
                             .start = 1800000000,
                             .nodes = "n1",
                             .features = "fast",
                             .folder = "relative",
                             .output = "/out",
                             .errors = "/out" };
    const char *line = message_of(&job);
    assert_non_null(strstr(line, "\"begin\":1800000000"));
    assert_non_null(strstr(line, "\"array_tasks\":\"1-9\""));
    assert_non_null(strstr(line, "\"held\":false"));
    assert_null(strstr(line, "\"nodes\""));
    assert_null(strstr(line, "\"folder\""));
    assert_null(strstr(line, "\"errors\"")); /* the same as output */
    assert_null(strstr(line, "exit_code"));
    job.reason = "Priority"; /* then it is a guess of Slurm's */
    assert_null(strstr(message_of(&job), "begin"));
    job.reason = NULL;
    job.priority = 0;
    job.start = SLURM_PARKED_FROM;
    line = message_of(&job);
    assert_non_null(strstr(line, "\"parked\":true"));
    assert_non_null(strstr(line, "\"held\":true"));

    job.state = BRIDGE_SUSPENDED;
    job.reason = "None";
    job.errors = "/err";
    job.array_task = 4;
    line = message_of(&job);
    assert_non_null(strstr(line, "\"nodes\":[\"n1\"]"));
    assert_non_null(strstr(line, "\"errors\":\"/err\""));
    assert_non_null(strstr(line, "\"array_task\":4"));
    assert_null(strstr(line, "reason"));
    job.state = BRIDGE_FAILED;
    job.signal = 9;
    job.output = NULL;
    job.nodes = "n[1-";
    job.completing = true;
    line = message_of(&job);
    assert_non_null(strstr(line, "\"signal\":9"));
    assert_non_null(strstr(line, "\"errors\":\"/err\""));
    assert_null(strstr(line, "\"nodes\""));
    job.state = BRIDGE_UNKNOWN;
    assert_non_null(strstr(message_of(&job), "\"state\":\"UNKNOWN\""));
}

static void each_node_occurs_once_and_long_texts_are_cut(void **state)
{
    static char comment[20000];
    memset(comment, 'c', sizeof(comment) - 1);
    const struct slurm_share held[] = { { "n1", "gpu:v100:1(IDX:0)" },
                                        { "n1", "gpu:v100:1(IDX:1)" },
                                        { "n2", "gpu:v100:1(IDX:3)" },
                                        { "n3", NULL },
                                        { "n[", "gpu:v100:1(IDX:1)" } };
    struct slurm_job job = { .id = 5,
                             .array_task = SLURM_NONE,
                             .state = BRIDGE_RUNNING,
                             .comment = comment,
                             .mem_mib = UINT64_MAX,
                             .tres_per_job = "gres:gpu:v100:2,gres:gpu:k80:1",
                             .allocation = held,
                             .allocation_count = 5 };
    const char *line = message_of(&job);
    assert_non_null(strstr(line, "\"gpu_index\":{\"n1\":[0],\"n2\":[3]}"));
    assert_non_null(strstr(line, "\"gpu_types_mixed\":true"));
    assert_null(strstr(line, "mem_mib"));
    assert_true(strlen(line) < 17000);
}

static void a_node_becomes_a_message(void **state)
{
    struct buf line;
    struct slurm_node node = { .name = "n1",
                               .gres = "gpu:v100:3,gpu:k80:1",
                               .gres_used = "gpu:v100:1(IDX:2)",
                               .features = "fast,ib",
                               .reason = "caf\xe9",
                               .drain = true };
    buf_init(&line, BRIDGE_LINE_MAX);
    bridge_message_node(&line, &node);
    assert_non_null(strstr(line.bytes, "\"gpu_types_mixed\":true"));
    assert_non_null(strstr(line.bytes, "\"features\":\"fast,ib\""));
    assert_non_null(strstr(line.bytes, "\"used\":[2]"));
    assert_non_null(strstr(line.bytes, "\"drain\":true"));
    assert_null(strstr(line.bytes, "reason"));
    buf_reset(&line);
    node.features = "caf\xe9";
    bridge_message_node(&line, &node);
    assert_null(strstr(line.bytes, "features"));
    buf_reset(&line);
    node = (struct slurm_node){ .name = "n2",
                                .gres = "gpu:v100:4,shard:v100:8",
                                .gres_used = "gpu:v100:1(IDX:3),shard:v100:2(IDX:0-1)",
                                .up = true };
    bridge_message_node(&line, &node);
    assert_string_equal(
        line.bytes,
        "{\"node\":{\"name\":\"n2\",\"type\":\"v100\",\"gpus\":4,\"shards\":8,"
        "\"up\":true,\"used\":[0,1,3]}}");
    buf_reset(&line);
    node = (struct slurm_node){ .name = "n2", .features = "", .up = true };
    bridge_message_node(&line, &node);
    assert_string_equal(line.bytes,
                        "{\"node\":{\"name\":\"n2\",\"gpus\":0,\"up\":true}}");
    buf_release(&line);
}

static void results_and_hello_are_messages_too(void **state)
{
    struct buf line;
    struct slurm_site site = { .version = "22.05.8", .cluster = "lab" };
    struct verb_result answer = {
        .ok = false, .transient = true, .code = 2040, .error = "busy"
    };
    buf_init(&line, BRIDGE_LINE_MAX);
#define SAYS(text) \
    do { \
        assert_string_equal(line.bytes, text); \
        buf_reset(&line); \
    } while (0)
    bridge_message_hello(&line, &site, "libslurm", 5);
    SAYS("{\"hello\":1,\"slurm\":\"22.05.8\",\"cluster\":\"lab\",\"driver\":"
         "\"libslurm\","
         "\"now\":5}");
    site = (struct slurm_site){ .version = "\xff", .cluster = "\xff" };
    bridge_message_hello(&line, &site, "commands", 5);
    SAYS("{\"hello\":1,\"driver\":\"commands\",\"now\":5}");
    bridge_message_done(&line, 4, &answer, NULL);
    SAYS("{\"done\":{\"seq\":4,\"ok\":false,\"error\":\"busy\",\"code\":2040,"
         "\"transient\":true}}");
    answer.error[0] = '\xff';
    bridge_message_done(&line, 4, &answer, "\xff");
    SAYS("{\"done\":{\"seq\":4,\"ok\":false,\"error\":\"?\",\"code\":2040,"
         "\"transient\":true,\"text\":\"\"}}");
    bridge_message_done(&line, 4, &(struct verb_result){ .ok = true }, "#!/bin/sh");
    SAYS("{\"done\":{\"seq\":4,\"ok\":true,\"text\":\"#!/bin/sh\"}}");
    bridge_message_gone(&line, 7);
    SAYS("{\"gone\":7}");
    bridge_message_text(&line, "doubt", "a");
    SAYS("{\"doubt\":\"a\"}");
    bridge_message_text(&line, "doubt", "\xff");
    SAYS("{\"doubt\":\"?\"}");
    bridge_message_flag(&line, "synced");
    SAYS("{\"synced\":true}");
    buf_release(&line);
}

static void a_job_becomes_one_line_that_can_be_read_back(void **state)
{
    const struct slurm_share held[] = { { "n[1-2]", "gpu:v100:2(IDX:0,2)" } };
    const struct slurm_job job = {
        .id = 5,
        .array_task = SLURM_NONE,
        .name = "caf\xe9 \"x\"\n", /* not UTF-8 */
        .state = BRIDGE_RUNNING,
        .partition = "gpu",
        .nodes = "n[1-2]",
        .min_nodes = 2,
        .cpus = 6,
        .mem_mib = 100,
        .mem_per_cpu = true,
        .tres_per_node = "gres:gpu:2",
        .allocation = held,
        .allocation_count = 1,
    };
    struct buf line;
    struct json *object;
    struct error err = { "" };
    int64_t number;
    buf_init(&line, BRIDGE_LINE_MAX);
    bridge_message_job(&line, &job, &arena);
    assert_null(strchr(line.bytes, '\n'));
    assert_int_equal(json_parse(line.bytes, line.count, &object, &err), 0);
    const struct json *said = json_get(object, "job");
    assert_string_equal(json_as_text(json_get(said, "name")), "caf? \"x\"\n");
    assert_true(json_as_count(json_get(said, "gpus"), &number) && number == 4);
    assert_true(json_as_count(json_get(said, "mem_mib"), &number) && number == 300);
    assert_int_equal(json_count(json_get(said, "nodes")), 2);
    const struct json *index = json_get(json_get(said, "gpu_index"), "n2");
    assert_int_equal(json_count(index), 2);
    assert_true(json_as_count(json_item(index, 1), &number) && number == 2);
    json_free(object);
    buf_release(&line);
}

static int setup(void **state)
{
    arena_init(&arena, 4096);
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

static void output_goes_where_sbatch_puts_it(void **state)
{
    static const struct {
        const char *pattern, *path;
    } rows[] = { { "slurm-%j.out", "/lab/slurm-15.out" },
                 { "/out/%A_%a-%x.%u", "/out/12_3-a b.ada" },
                 { "%6j", "/lab/000015" },
                 { "%99j", "/lab/0000000015" },
                 { "100%%", "/lab/100%" },
                 { "%N-%n%t", "/lab/n1-00" },
                 { "%q%", "/lab/%q%" },
                 { "\\%j", "/lab/%j" } };
    struct output_fields names = { .id = 15,
                                   .array_id = 12,
                                   .array_task = 3,
                                   .name = "a b",
                                   .user = "ada",
                                   .nodes = "n[1-2]",
                                   .folder = "/lab" };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(output_path_expand(rows[i].pattern, &names, &arena),
                            rows[i].path);
    names.array_id = 0;
    names.array_task = SLURM_NONE;
    names.nodes = NULL;
    assert_string_equal(output_path_expand("%A%a%N", &names, &arena), "/lab/15%a%N");
    static char longer[5000];
    memset(longer, 'x', sizeof(longer) - 1);
    assert_null(output_path_expand(longer, &names, &arena));
}

RUN_CASES(CASE(lists_of_nodes_are_expanded), CASE(malformed_lists_are_refused),
          CASE(lists_are_the_same_in_any_order),
          CASE(a_list_of_too_many_nodes_is_refused),
          CASE(resources_are_read_in_every_spelling), CASE(several_types_are_noticed),
          CASE(shards_of_a_job_are_of_a_type),
          CASE(gpus_of_a_job_are_summed_from_any_field),
          CASE(output_goes_where_sbatch_puts_it), CASE(requests_are_read),
          CASE(malformed_requests_are_refused_with_their_seq),
          CASE(a_line_without_a_seq_has_none), CASE(each_verb_has_its_own_fields),
          CASE(a_message_has_the_fields_of_its_state),
          CASE(each_node_occurs_once_and_long_texts_are_cut),
          CASE(a_node_becomes_a_message), CASE(results_and_hello_are_messages_too),
          CASE(a_job_becomes_one_line_that_can_be_read_back));
