/*
 * reader.c - the bytes of a trace, plain or compressed, and the lines in them.
 *
 * Compression is recognised by the first bytes, never by the name.  A stream that ends
 * before its own end mark is an error: half a trace would give figures that look right.
 *
 * zlib and zstd are loaded by the first compressed trace: every other command starts without
 * them.
 */
#include "workload/reader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define CHUNK_BYTES 1024 /* inputs of a fuzzer reach across the end of one */
#else
#define CHUNK_BYTES (256 * 1024)
#endif
#define HELD_MAX (64 * 1024 * 1024)

enum packing { PLAIN, GZIP, ZSTD };

/* --- the libraries ---------------------------------------------------------------------- */

/* clang-format off */
#define EACH_OF_ZLIB(X) X(inflate) X(inflateEnd) X(inflateInit2_) X(inflateReset)
#define EACH_OF_ZSTD(X)                                                                 \
    X(ZSTD_createDStream) X(ZSTD_decompressStream) X(ZSTD_freeDStream)                  \
    X(ZSTD_getErrorName) X(ZSTD_isError)
/* clang-format on */

#define POINTER(name) __typeof__(name) *name;
static struct {
    EACH_OF_ZLIB(POINTER)
} zlib;
static struct {
    EACH_OF_ZSTD(POINTER)
} zstd;

static pthread_once_t zlib_once = PTHREAD_ONCE_INIT, zstd_once = PTHREAD_ONCE_INIT;
static bool has_zlib, has_zstd;

/* C has no way to turn an object pointer into one to a function but through memory. */
#define FIND(library, name) \
    whole = whole && (*(void **)(void *)&library.name = dlsym(handle, #name));

static void load_zlib(void)
{
    void *handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    bool whole = handle != NULL;
#define FIND_IN_ZLIB(name) FIND(zlib, name)
    EACH_OF_ZLIB(FIND_IN_ZLIB)
    has_zlib = whole;
}

static void load_zstd(void)
{
    void *handle = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    bool whole = handle != NULL;
#define FIND_IN_ZSTD(name) FIND(zstd, name)
    EACH_OF_ZSTD(FIND_IN_ZSTD)
    has_zstd = whole;
}

/* --- unpacking -------------------------------------------------------------------------- */

struct reader_source {
    int fd;             /* -1: 'memory'                              */
    const char *memory; /* what is left of it                        */
    size_t memory_count;
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool inside;  /* a packed stream has begun and not ended   */
    bool drained; /* the file has no more bytes                */
    char *raw;    /* packed bytes: from raw_start to raw_end   */
    size_t raw_start, raw_end;
};

/* Bytes as they are in the file; 0 at its end. */
static int read_raw(struct reader *reader, char *bytes, size_t room, size_t *ret_count,
                    struct error *err)
{
    struct reader_source *source = reader->source;
    if (source->fd < 0) {
        size_t count = source->memory_count < room ? source->memory_count : room;
        memcpy(bytes, source->memory, count);
        source->memory += count;
        source->memory_count -= count;
        *ret_count = count;
        return 0;
    }
    for (;;) {
        ssize_t count = read(source->fd, bytes, room);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_set(err, -errno, "%s: %s", reader->name, strerror(errno));
        *ret_count = (size_t)count;
        return 0;
    }
}

/* See that packed bytes are at hand, unless the file has ended. */
static int refill_raw(struct reader *reader, struct error *err)
{
    struct reader_source *source = reader->source;
    if (source->raw_start < source->raw_end || source->drained)
        return 0;
    size_t count = 0;
    int r = read_raw(reader, source->raw, CHUNK_BYTES, &count, err);
    if (r < 0)
        return r;
    source->raw_start = 0;
    source->raw_end = count;
    source->drained = count == 0;
    return 0;
}

static int cut_short(const struct reader *reader, const char *what, struct error *err)
{
    return error_set(err, -EINVAL,
                     "%s: the %s stream ends before its end mark, "
                     "want the whole file",
                     reader->name, what);
}

static int unpack_gzip(struct reader *reader, char *bytes, size_t room,
                       size_t *ret_count, struct error *err)
{
    struct reader_source *source = reader->source;
    z_stream *z = &source->gzip;
    z->next_out = (Bytef *)bytes;
    z->avail_out = (uInt)room;
    while (z->avail_out == room) {
        int r = refill_raw(reader, err);
        if (r < 0)
            return r;
        if (source->raw_start == source->raw_end) {
            if (source->inside)
                return cut_short(reader, "gzip", err);
            break;
        }
        if (!source->inside) {
            /* The next member of a file made by joining others. */
            zlib.inflateReset(z);
            source->inside = true;
        }
        z->next_in = (Bytef *)source->raw + source->raw_start;
        z->avail_in = (uInt)(source->raw_end - source->raw_start);
        int status = zlib.inflate(z, Z_NO_FLUSH);
        source->raw_start = source->raw_end - z->avail_in;
        if (status == Z_STREAM_END)
            source->inside = false;
        else if (status != Z_OK && status != Z_BUF_ERROR)
            return error_set(err, -EINVAL, "%s: the gzip stream is damaged (%s)",
                             reader->name, z->msg ? z->msg : "no reason given");
    }
    *ret_count = room - z->avail_out;
    return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the library writes through it. */
static int unpack_zstd(struct reader *reader, char *bytes, size_t room,
                       size_t *ret_count, struct error *err)
{
    struct reader_source *source = reader->source;
    ZSTD_outBuffer out = { bytes, room, 0 };
    while (out.pos == 0) {
        int r = refill_raw(reader, err);
        if (r < 0)
            return r;
        ZSTD_inBuffer in = { source->raw, source->raw_end, source->raw_start };
        if (in.pos == in.size && !source->inside)
            break;
        size_t status = zstd.ZSTD_decompressStream(source->zstd, &out, &in);
        if (zstd.ZSTD_isError(status))
            return error_set(err, -EINVAL, "%s: the zstd stream is damaged (%s)",
                             reader->name, zstd.ZSTD_getErrorName(status));
        source->raw_start = in.pos;
        source->inside = status != 0;
        if (source->inside && source->drained && out.pos == 0)
            return cut_short(reader, "zstd", err);
    }
    *ret_count = out.pos;
    return 0;
}

static int unpack_bytes(struct reader *reader, char *bytes, size_t room,
                        size_t *ret_count, struct error *err)
{
    struct reader_source *source = reader->source;
    switch (source->packing) {
    case GZIP:
        return unpack_gzip(reader, bytes, room, ret_count, err);
    case ZSTD:
        return unpack_zstd(reader, bytes, room, ret_count, err);
    case PLAIN:
        break;
    }
    if (source->raw_start < source->raw_end) { /* what telling the packing has read */
        size_t count = source->raw_end - source->raw_start;
        count = count < room ? count : room;
        memcpy(bytes, source->raw + source->raw_start, count);
        source->raw_start += count;
        *ret_count = count;
        return 0;
    }
    return read_raw(reader, bytes, room, ret_count, err);
}

static int begin_gzip(struct reader *reader, struct error *err)
{
    struct reader_source *source = reader->source;
    pthread_once(&zlib_once, load_zlib);
    if (!has_zlib)
        return error_set(err, -ENOENT,
                         "%s: is compressed by gzip, and libz.so.1 is not installed",
                         reader->name);
    int status = zlib.inflateInit2_(&source->gzip, 15 + 16, ZLIB_VERSION,
                                    (int)sizeof source->gzip);
    memory_checked(status == Z_OK ? source : NULL);
    source->packing = GZIP;
    source->inside = true;
    return 0;
}

static int begin_zstd(struct reader *reader, struct error *err)
{
    struct reader_source *source = reader->source;
    pthread_once(&zstd_once, load_zstd);
    if (!has_zstd)
        return error_set(err, -ENOENT,
                         "%s: is compressed by zstd, and libzstd.so.1 is not installed",
                         reader->name);
    source->zstd = memory_checked(zstd.ZSTD_createDStream());
    source->packing = ZSTD;
    source->inside = true;
    return 0;
}

/* Read the first bytes and prepare to unpack what they announce. */
static int detect_packing(struct reader *reader, struct error *err)
{
    struct reader_source *source = reader->source;
    while (source->raw_end < 4) { /* a pipe may give them one by one */
        size_t count = 0;
        int r = read_raw(reader, source->raw + source->raw_end,
                         CHUNK_BYTES - source->raw_end, &count, err);
        if (r < 0)
            return r;
        if (count == 0)
            break;
        source->raw_end += count;
    }
    if (source->raw_end == 0)
        return error_set(err, -EINVAL, "%s: the file is empty", reader->name);
    if (source->raw_end >= 2 && memcmp(source->raw, "\x1f\x8b", 2) == 0)
        return begin_gzip(reader, err);
    if (source->raw_end >= 4 && memcmp(source->raw, "\x28\xb5\x2f\xfd", 4) == 0)
        return begin_zstd(reader, err);
    return 0;
}

static int begin_reading(struct reader *reader, struct error *err)
{
    int r = detect_packing(reader, err);
    if (r == 0)
        r = reader_peek(reader, 3, err);
    if (r == 0 && reader->end == 0)
        r = error_set(err, -EINVAL, "%s: the file is empty", reader->name);
    if (r < 0) {
        reader_release(reader);
        return r;
    }
    if (reader->end >= 3 && memcmp(reader->bytes, "\xef\xbb\xbf", 3) == 0)
        reader->start = 3; /* skip a byte order mark */
    return 0;
}

static void init_reader(struct reader *reader, const char *name)
{
    *reader = (struct reader){ .name = name, .room = CHUNK_BYTES + 1 };
    reader->bytes = memory_checked(calloc(reader->room + NUMBER_PAD, 1));
    reader->source = memory_checked(calloc(1, sizeof *reader->source));
    reader->source->raw = memory_checked(malloc(CHUNK_BYTES));
    reader->source->fd = -1;
}

int reader_open(struct reader *reader, const char *path, struct error *err)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    init_reader(reader, standard ? "(standard input)" : path);
    reader->source->fd = fd;
    return begin_reading(reader, err);
}

int reader_open_memory(struct reader *reader, const char *name, const void *bytes,
                       size_t count, struct error *err)
{
    init_reader(reader, name);
    reader->source->memory = bytes;
    reader->source->memory_count = count;
    return begin_reading(reader, err);
}

void reader_release(struct reader *reader)
{
    struct reader_source *source = reader->source;
    if (source) {
        if (source->packing == GZIP)
            zlib.inflateEnd(&source->gzip);
        if (source->packing == ZSTD)
            zstd.ZSTD_freeDStream(source->zstd);
        if (source->fd > STDIN_FILENO)
            close(source->fd);
        free(source->raw);
    }
    free(source);
    free(reader->bytes);
    *reader = (struct reader){ 0 };
}

int reader_fill(struct reader *reader, struct error *err)
{
    if (reader->ended)
        return 0;
    if (reader->start > 0) {
        memmove(reader->bytes, reader->bytes + reader->start,
                reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->room - reader->end <= CHUNK_BYTES / 2) {
        if (reader->room > HELD_MAX)
            return error_set(err, -EINVAL, "%s:%llu: more than %d MiB in one piece",
                             reader->name, (unsigned long long)reader->line + 1,
                             HELD_MAX / 1024 / 1024);
        reader->room *= 2;
        reader->bytes =
            memory_checked(realloc(reader->bytes, reader->room + NUMBER_PAD));
    }
    size_t count = 0;
    int r = unpack_bytes(reader, reader->bytes + reader->end,
                         reader->room - reader->end - 1, &count, err);
    if (r < 0)
        return r;
    if (memchr(reader->bytes + reader->end, '\0', count))
        reader->binary = true;
    if (!reader->quotes && memchr(reader->bytes + reader->end, '"', count))
        reader->quotes = true;
    reader->end += count;
    reader->ended = count == 0;
    return count > 0;
}

int reader_peek(struct reader *reader, size_t want, struct error *err)
{
    while (reader->end - reader->start < want) {
        int r = reader_fill(reader, err);
        if (r <= 0)
            return r;
    }
    return 0;
}

int reader_line(struct reader *reader, char **ret_line, size_t *ret_bytes,
                struct error *err)
{
    size_t seen = 0;
    char *newline;
    for (;;) {
        char *from = reader->bytes + reader->start + seen;
        seen = reader->end - reader->start;
        newline = memchr(from, '\n', (size_t)(reader->bytes + reader->end - from));
        if (newline || seen > READER_LINE_MAX)
            break;
        int r = reader_fill(reader, err);
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    char *line = reader->bytes + reader->start;
    char *end = newline ? newline : reader->bytes + reader->end;
    if (line == end && !newline)
        return 0;
    size_t bytes = (size_t)(end - line);
    reader->line++;
    if (bytes > READER_LINE_MAX)
        return error_set(err, -EINVAL, "%s:%llu: the line is longer than %d bytes",
                         reader->name, (unsigned long long)reader->line,
                         READER_LINE_MAX);
    if (reader->binary && memchr(line, '\0', bytes))
        return error_set(err, -EINVAL,
                         "%s:%llu: a NUL byte, want text: the file is binary",
                         reader->name, (unsigned long long)reader->line);
    reader->cut = !newline;
    reader->start += bytes + (newline != NULL);
    if (bytes > 0 && line[bytes - 1] == '\r')
        bytes--;
    line[bytes] = '\0';
    *ret_line = line;
    *ret_bytes = bytes;
    return 1;
}

int reader_wrong(const struct reader *reader, const char *field, const char *value,
                 size_t value_bytes, const char *want, struct error *err)
{
    char shown[44];
    size_t count = value_bytes < 40 ? value_bytes : 40;
    for (size_t i = 0; i < count; i++)
        shown[i] = value[i] >= ' ' && value[i] < 127 ? value[i] : '?';
    snprintf(shown + count, sizeof shown - count, "%s", value_bytes > 40 ? "…" : "");
    return error_set(err, -EINVAL, "%s:%llu: %.40s is \"%s\", want %s", reader->name,
                     (unsigned long long)reader->line, field, shown, want);
}
