/* stream.c - the event stream: a ring of lines, and clients that read it. */
#include "http/stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/subscribers.h"
#include "http/target.h"

#define BATCH_BYTES 16384 /* written for a client at a time            */
#define BATCH_LINES 64    /* asked of the store at once               */
#define BATCHES_MAX 16    /* of the store at a time, if a client may see none of it */

struct stream_line {
    uint64_t seq;
    uint64_t at; /* first byte, counted from the start of berthd */
    uint32_t count;
    uint32_t owner;
};

struct stream_client {
    struct subscriber subscriber;
    struct stream *stream;
    uint32_t uid;
    uint64_t seq;    /* last event it was sent, or that was left out */
    bool hidden;     /* events were left out that it may not see */
    uint64_t notice; /* number of the last that it was sent */
};

struct stream {
    struct stream_setup setup;
    struct subscribers subscribers;

    struct stream_line
        *lines; /* lines_max; line i since the start is at i % lines_max */
    uint64_t first, end;
    char *bytes; /* bytes_max, likewise */
    uint64_t byte_end;
    uint64_t floor; /* everything after this number is in the ring */

    char *notice; /* "event: …\ndata: …\n\n", or NULL */
    uint64_t notice_number;
};

static struct stream_line *line_at(const struct stream *stream, uint64_t i)
{
    return &stream->lines[i % stream->setup.lines_max];
}

/* ---- the ring ---- */

static void drop_oldest_line(struct stream *stream)
{
    assert(stream->first < stream->end);
    stream->floor = line_at(stream, stream->first)->seq;
    stream->first++;
}

static bool has_room(const struct stream *stream, size_t count)
{
    if (stream->first == stream->end)
        return true;
    if (stream->end - stream->first == stream->setup.lines_max)
        return false;
    uint64_t used = stream->byte_end - line_at(stream, stream->first)->at;
    return used + count <= stream->setup.bytes_max;
}

static void copy_line(struct stream *stream, const char *json, size_t count)
{
    size_t at = stream->byte_end % stream->setup.bytes_max;
    size_t straight = stream->setup.bytes_max - at;
    straight = straight < count ? straight : count;
    memcpy(stream->bytes + at, json, straight);
    memcpy(stream->bytes, json + straight, count - straight);
    stream->byte_end += count;
}

/* The first line after 'seq'. */
static uint64_t find_line(const struct stream *stream, uint64_t seq)
{
    uint64_t low = stream->first, high = stream->end;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (line_at(stream, middle)->seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void stream_add(struct stream *stream, uint64_t seq, uint32_t owner, const char *json,
                size_t count)
{
    assert(count <= STREAM_LINE_MAX);
    assert(!memchr(json, '\n', count)); /* it would end the event early */
    assert(stream->first == stream->end || seq > line_at(stream, stream->end - 1)->seq);
    while (!has_room(stream, count))
        drop_oldest_line(stream);
    *line_at(stream, stream->end++) = (struct stream_line){
        .seq = seq, .at = stream->byte_end, .count = (uint32_t)count, .owner = owner
    };
    copy_line(stream, json, count);
    subscribers_wake(&stream->subscribers);
}

void stream_notice(struct stream *stream, const char *event, const char *json)
{
    size_t bytes = strlen(event) + strlen(json) + 32;
    assert(bytes <= STREAM_LINE_MAX + 64 && !strchr(json, '\n'));
    free(stream->notice);
    stream->notice = memory_checked(malloc(bytes));
    snprintf(stream->notice, bytes, "event: %s\ndata: %s\n\n", event, json);
    stream->notice_number++;
    subscribers_wake(&stream->subscribers);
}

/* ---- what a client is sent ---- */

static bool client_may_see(const struct stream_client *client, uint32_t owner)
{
    const struct stream_setup *setup = &client->stream->setup;
    return owner == STREAM_EVERYONE || !setup->may_see ||
           setup->may_see(setup->context, client->uid, owner);
}

static void write_id(struct stream_client *client, uint64_t seq)
{
    buf_print(&client->subscriber.pending, "id: %" PRIu64 "\ndata: ", seq);
}

static void write_stored_line(void *sink, uint64_t seq, uint32_t owner,
                              const char *json, size_t count)
{
    struct stream_client *client = sink;
    assert(seq > client->seq);
    client->seq = seq;
    if (!client_may_see(client, owner)) {
        client->hidden = true;
        return;
    }
    write_id(client, seq);
    buf_add(&client->subscriber.pending, json, count);
    buf_text(&client->subscriber.pending, "\n\n");
}

static void write_lagged(struct stream_client *client)
{
    buf_print(&client->subscriber.pending,
              "event: lagged\ndata: {\"after\":%" PRIu64 "}\n\n", client->seq);
    client->subscriber.over = true;
}

/* Say once that there were events of other users' jobs, however many. */
static void write_hidden(struct stream_client *client)
{
    buf_print(&client->subscriber.pending,
              "id: %" PRIu64 "\nevent: others\ndata: {\"seq\":%" PRIu64 "}\n\n",
              client->seq, client->seq);
    client->hidden = false;
}

/* The newest notice, to a client that has everything else. */
static void write_notice(struct stream_client *client)
{
    const struct stream *stream = client->stream;
    if (client->notice == stream->notice_number || !stream->notice)
        return;
    client->notice = stream->notice_number;
    buf_text(&client->subscriber.pending, stream->notice);
}

/* Write some of the lines that are older than the ring. */
static void fill_from_store(struct stream_client *client)
{
    struct stream *stream = client->stream;
    int count = -1;
    if (stream->setup.older)
        count = stream->setup.older(stream->setup.context, client->seq, BATCH_LINES,
                                    write_stored_line, client);
    if (count < 0)
        write_lagged(client);
    else if (count == 0 && client->seq < stream->floor)
        client->seq = stream->floor; /* the store no longer has it */
}

static void write_line(struct stream_client *client, const struct stream_line *line)
{
    const struct stream *stream = client->stream;
    client->seq = line->seq;
    if (!client_may_see(client, line->owner)) {
        client->hidden = true;
        return;
    }
    size_t at = line->at % stream->setup.bytes_max;
    size_t straight = stream->setup.bytes_max - at;
    straight = straight < line->count ? straight : line->count;
    write_id(client, line->seq);
    buf_add(&client->subscriber.pending, stream->bytes + at, straight);
    buf_add(&client->subscriber.pending, stream->bytes, line->count - straight);
    buf_text(&client->subscriber.pending, "\n\n");
}

static void fill_from_ring(struct stream_client *client)
{
    const struct stream *stream = client->stream;
    for (uint64_t i = find_line(stream, client->seq);
         i < stream->end && client->subscriber.pending.count < BATCH_BYTES; i++)
        write_line(client, line_at(stream, i));
}

/* Is there nothing to send yet, and the next event in the store? */
static bool is_behind_ring(const struct stream_client *client)
{
    return client->subscriber.pending.count == 0 && !client->subscriber.over &&
           client->seq < client->stream->floor;
}

/*
 * Write what comes next for a client; nothing if there is nothing.  Events of others may fill
 * the store: a client that sees none of them is told so now and then, and others are served in
 * between.
 */
static void fill_client(struct subscriber *subscriber)
{
    struct stream_client *client =
        (struct stream_client *)subscriber; /* its first member */
    const struct stream *stream = client->stream;
    for (int i = 0; i < BATCHES_MAX && is_behind_ring(client); i++)
        fill_from_store(client);
    if (client->subscriber.pending.count == 0 && client->seq >= stream->floor)
        fill_from_ring(client);
    if (client->hidden)
        write_hidden(client);
    if (client->subscriber.pending.count == 0)
        write_notice(client);
    if (client->subscriber.pending.count == 0 && client->subscriber.beat)
        buf_text(&client->subscriber.pending, ":\n\n");
    client->subscriber.beat = false;
}

/* ---- clients ---- */

/* The event that the client has seen last.  False if the number is malformed. */
static bool read_start(const struct stream *stream, const struct http_request *request,
                       uint64_t *ret_seq)
{
    const char *text = http_query(request, "since");
    if (!text)
        text = http_header(request, "Last-Event-ID");
    *ret_seq = stream->first < stream->end ? line_at(stream, stream->end - 1)->seq
                                           : stream->floor;
    if (!text || !*text)
        return true;
    if (strcmp(text, "0") == 0) {
        *ret_seq = 0;
        return true;
    }
    return target_id(text, strlen(text), ret_seq);
}

void stream_reply(struct stream *stream, const struct http_request *request,
                  struct http_reply *reply)
{
    uint64_t seq;
    if (!read_start(stream, request, &seq)) {
        http_reply_error(reply, 400, "since", "since: want the number of an event");
        return;
    }
    if (!subscribers_have_room(&stream->subscribers, "too many are watching already",
                               reply))
        return;
    struct stream_client *client = memory_checked(calloc(1, sizeof *client));
    *client =
        (struct stream_client){ .stream = stream, .uid = request->uid, .seq = seq };
    subscribers_join(&stream->subscribers, &client->subscriber,
                     BATCH_BYTES + (BATCH_LINES + 1) * (STREAM_LINE_MAX + 64), reply);
    buf_text(&client->subscriber.pending, "retry: 2000\n\n");
}

uint32_t stream_clients(const struct stream *stream)
{
    return stream->subscribers.count;
}

void stream_open(struct stream **ret_stream, const struct stream_setup *setup)
{
    struct stream *stream = memory_checked(calloc(1, sizeof *stream));
    stream->setup = *setup;
    if (!stream->setup.lines_max)
        stream->setup.lines_max = 4096;
    if (!stream->setup.bytes_max)
        stream->setup.bytes_max = 2u << 20;
    if (!stream->setup.clients_max) /* a smaller one could be filled by a single user */
        stream->setup.clients_max = HTTP_CONNECTIONS_MAX;
    if (!stream->setup.heartbeat_ms)
        stream->setup.heartbeat_ms = 15000;
    assert(stream->setup.bytes_max >= STREAM_LINE_MAX);
    stream->floor = setup->last_seq;
    stream->lines =
        memory_checked(calloc(stream->setup.lines_max, sizeof *stream->lines));
    stream->bytes = memory_checked(malloc(stream->setup.bytes_max));
    stream->subscribers =
        (struct subscribers){ .loop = setup->loop,
                              .count_max = stream->setup.clients_max,
                              .look_ms = stream->setup.heartbeat_ms,
                              .quiet_ms = stream->setup.heartbeat_ms / 2,
                              .fill = fill_client };
    subscribers_open(&stream->subscribers);
    *ret_stream = stream;
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;
    free(stream->lines);
    free(stream->bytes);
    free(stream->notice);
    free(stream);
}

void stream_close(struct stream *stream)
{
    subscribers_close(&stream->subscribers, on_closed, stream);
}
