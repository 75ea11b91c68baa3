/* stream.c - events to whoever watches. */
#include "http/stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/subscribers.h"
#include "http/target.h"

#define BATCH_BYTES 16384 /* put together before they are handed over */
#define BATCH_LINES 64    /* asked of the store at once               */

struct line {
    uint64_t seq;
    uint64_t at; /* first byte, counted since ever */
    uint32_t count;
    uint32_t owner;
};

struct client {
    struct subscriber subscriber;
    struct stream *stream;
    uint32_t uid;
    uint64_t seq; /* the last one it was given, or passed over */
    bool hidden;  /* passed over events that it may not see    */
};

struct stream {
    struct stream_setup setup;
    struct subscribers subscribers;

    struct line *lines; /* lines_max; line i of all times is in place i % lines_max */
    uint64_t first, end;
    char *bytes; /* bytes_max, likewise */
    uint64_t byte_end;
    uint64_t floor; /* everything after this number is in the ring */
};

static struct line *line_at(const struct stream *stream, uint64_t i)
{
    return &stream->lines[i % stream->setup.lines_max];
}

/* ---- the ring ---- */

static void drop_oldest(struct stream *stream)
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

static void copy_in(struct stream *stream, const char *json, size_t count)
{
    size_t at = stream->byte_end % stream->setup.bytes_max;
    size_t straight = stream->setup.bytes_max - at;
    straight = straight < count ? straight : count;
    memcpy(stream->bytes + at, json, straight);
    memcpy(stream->bytes, json + straight, count - straight);
    stream->byte_end += count;
}

/* The first line after 'seq'. */
static uint64_t find(const struct stream *stream, uint64_t seq)
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
        drop_oldest(stream);
    *line_at(stream, stream->end++) = (struct line){
        .seq = seq, .at = stream->byte_end, .count = (uint32_t)count, .owner = owner
    };
    copy_in(stream, json, count);
    subscribers_wake(&stream->subscribers);
}

/* ---- what a client gets ---- */

static bool may_see(const struct client *client, uint32_t owner)
{
    const struct stream_setup *setup = &client->stream->setup;
    return owner == STREAM_EVERYONE || !setup->may_see ||
           setup->may_see(setup->context, client->uid, owner);
}

static void begin_event(struct client *client, uint64_t seq)
{
    buf_print(&client->subscriber.pending, "id: %" PRIu64 "\ndata: ", seq);
}

static void put_older(void *sink, uint64_t seq, uint32_t owner, const char *json,
                      size_t count)
{
    struct client *client = sink;
    assert(seq > client->seq);
    client->seq = seq;
    if (!may_see(client, owner)) {
        client->hidden = true;
        return;
    }
    begin_event(client, seq);
    buf_add(&client->subscriber.pending, json, count);
    buf_text(&client->subscriber.pending, "\n\n");
}

static void say_lagged(struct client *client)
{
    buf_print(&client->subscriber.pending,
              "event: lagged\ndata: {\"after\":%" PRIu64 "}\n\n", client->seq);
    client->subscriber.over = true;
}

/* Something happened to others: no more than that, and once for however much. */
static void say_hidden(struct client *client)
{
    buf_print(&client->subscriber.pending,
              "id: %" PRIu64 "\nevent: others\ndata: {\"seq\":%" PRIu64 "}\n\n",
              client->seq, client->seq);
    client->hidden = false;
}

/* Some of what is older than the ring. */
static void fill_from_store(struct client *client)
{
    struct stream *stream = client->stream;
    int count = -1;
    if (stream->setup.older)
        count = stream->setup.older(stream->setup.context, client->seq, BATCH_LINES,
                                    put_older, client);
    if (count < 0)
        say_lagged(client);
    else if (count == 0 && client->seq < stream->floor)
        client->seq = stream->floor; /* it is not kept any more */
}

static void put_line(struct client *client, const struct line *line)
{
    const struct stream *stream = client->stream;
    client->seq = line->seq;
    if (!may_see(client, line->owner)) {
        client->hidden = true;
        return;
    }
    size_t at = line->at % stream->setup.bytes_max;
    size_t straight = stream->setup.bytes_max - at;
    straight = straight < line->count ? straight : line->count;
    begin_event(client, line->seq);
    buf_add(&client->subscriber.pending, stream->bytes + at, straight);
    buf_add(&client->subscriber.pending, stream->bytes, line->count - straight);
    buf_text(&client->subscriber.pending, "\n\n");
}

static void fill_from_ring(struct client *client)
{
    const struct stream *stream = client->stream;
    for (uint64_t i = find(stream, client->seq);
         i < stream->end && client->subscriber.pending.count < BATCH_BYTES; i++)
        put_line(client, line_at(stream, i));
}

/* Write down what comes next for it; nothing, if there is nothing. */
static void fill(struct subscriber *subscriber)
{
    struct client *client = (struct client *)subscriber; /* it begins with it */
    const struct stream *stream = client->stream;
    while (client->subscriber.pending.count == 0 && client->seq < stream->floor &&
           !client->subscriber.over)
        fill_from_store(client);
    if (client->subscriber.pending.count == 0)
        fill_from_ring(client);
    if (client->hidden)
        say_hidden(client);
    if (client->subscriber.pending.count == 0 && client->subscriber.beat)
        buf_text(&client->subscriber.pending, ":\n\n");
    client->subscriber.beat = false;
}

/* ---- coming and going ---- */

/* The number it wants to go on after.  False if it is none. */
static bool starting_point(const struct stream *stream,
                           const struct http_request *request, uint64_t *ret_seq)
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
    if (!starting_point(stream, request, &seq)) {
        http_reply_error(reply, 400, "since", "since: want the number of an event");
        return;
    }
    if (!subscribers_have_room(&stream->subscribers, "too many are watching already",
                               reply))
        return;
    struct client *client = memory_checked(calloc(1, sizeof *client));
    *client = (struct client){ .stream = stream, .uid = request->uid, .seq = seq };
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
    if (!stream->setup.clients_max)
        stream->setup.clients_max = 64;
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
                              .fill = fill };
    subscribers_open(&stream->subscribers);
    *ret_stream = stream;
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;
    free(stream->lines);
    free(stream->bytes);
    free(stream);
}

void stream_close(struct stream *stream)
{
    subscribers_close(&stream->subscribers, on_closed, stream);
}
