/* munge.c - authenticate a caller on another host by a credential of munge. */
#include "http/munge.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/error.h"
#include "base/memory.h"

#define AT_ONCE_MAX 8
#define PATIENCE_MS 5000
#define ANSWER_MAX 1024

struct munge {
    uv_loop_t *loop;
    char *socket;
    uint32_t count; /* credentials being read */
    bool closing;
};

struct munge_question {
    struct munge *munge;
    void (*done)(void *context, const struct munge_word *word); /* NULL: cancelled */
    void *context;
    uv_process_t process;
    uv_pipe_t in, out;
    uv_timer_t timer;
    uv_write_t write;
    uint32_t open; /* handles */
    char credential[MUNGE_CREDENTIAL_MAX + 1];
    char answer[ANSWER_MAX + 1];
    size_t answer_count;
    bool ended, read; /* both: there is nothing more to come */
    int64_t status;
};

static void end_of(struct munge *munge)
{
    if (munge->count == 0 && munge->closing) {
        free(munge->socket);
        free(munge);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct munge_question *question = handle->data;
    if (--question->open > 0)
        return;
    struct munge *munge = question->munge;
    free(question);
    munge->count--;
    end_of(munge);
}

/* "UID:    65534" */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at || (at > text && at[-1] != '\n'))
        return NULL;
    at += strlen(key);
    return at + strspn(at, " ");
}

static void read_answer(struct munge_question *question, struct munge_word *word)
{
    char *text = question->answer;
    text[question->answer_count] = '\0';
    char *blank = strstr(text, "\n\n"); /* the rest is the payload, whatever it says */
    *word = (struct munge_word){ .payload = "" };
    if (question->status != 0 || !blank || strlen(text) != question->answer_count)
        return;
    *blank = '\0';
    const char *status = value_of(text, "STATUS:");
    const char *uid = value_of(text, "UID:");
    char *end = NULL;
    unsigned long number = uid ? strtoul(uid, &end, 10) : 0;
    if (!status || strncmp(status, "0", 1) != 0 || (status[1] && status[1] != '\n') ||
        !uid || end == uid || number >= UINT32_MAX || (*end && *end != '\n'))
        return;
    word->good = true;
    word->uid = (uint32_t)number;
    word->payload = blank + 2;
}

static void finish_if_over(struct munge_question *question)
{
    if (!question->ended || !question->read)
        return;
    struct munge_word word;
    read_answer(question, &word);
    if (question->done)
        question->done(question->context, &word);
    question->done = NULL;
    uv_close((uv_handle_t *)&question->process, on_closed);
    uv_close((uv_handle_t *)&question->in, on_closed);
    uv_close((uv_handle_t *)&question->out, on_closed);
    uv_close((uv_handle_t *)&question->timer, on_closed);
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
    struct munge_question *question = process->data;
    question->ended = true;
    question->status = number ? 128 + number : status;
    finish_if_over(question);
}

static void on_room(uv_handle_t *handle, size_t wish, uv_buf_t *buf)
{
    struct munge_question *question = handle->data;
    *buf = uv_buf_init(question->answer + question->answer_count,
                       (unsigned)(ANSWER_MAX - question->answer_count));
}

/* An answer that does not fit (UV_ENOBUFS) is ignored. */
static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct munge_question *question = stream->data;
    if (count >= 0) {
        question->answer_count += (size_t)count;
        return;
    }
    if (count != UV_EOF)
        question->answer_count = 0;
    uv_read_stop(stream);
    question->read = true;
    if (count != UV_EOF)
        uv_process_kill(&question->process, SIGKILL);
    finish_if_over(question);
}

static void on_timer(uv_timer_t *timer)
{
    struct munge_question *question = timer->data;
    uv_process_kill(&question->process, SIGKILL);
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
    free(shutdown);
}

static void on_written(uv_write_t *write, int status)
{
    struct munge_question *question = write->data;
    uv_shutdown_t *shutdown = memory_checked(calloc(1, sizeof *shutdown));
    if (uv_is_closing((uv_handle_t *)&question->in) ||
        uv_shutdown(shutdown, (uv_stream_t *)&question->in, on_shut) < 0)
        free(shutdown);
}

static void adopt(struct munge_question *question, uv_handle_t *handle)
{
    handle->data = question;
    question->open++;
}

static int spawn(struct munge_question *question)
{
    struct munge *munge = question->munge;
    char *words[] = {
        "unmunge",     "-N", "-k", "STATUS,UID", munge->socket ? "-S" : NULL,
        munge->socket, NULL
    };
    uv_stdio_container_t pipes[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
          .data.stream = (uv_stream_t *)&question->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&question->out },
        { .flags = UV_IGNORE },
    };
    uv_process_options_t options = { .file = "unmunge",
                                     .args = words,
                                     .exit_cb = on_exit_of,
                                     .stdio = pipes,
                                     .stdio_count = 3 };
    uv_pipe_init(munge->loop, &question->in, 0);
    uv_pipe_init(munge->loop, &question->out, 0);
    uv_timer_init(munge->loop, &question->timer);
    adopt(question, (uv_handle_t *)&question->in);
    adopt(question, (uv_handle_t *)&question->out);
    adopt(question, (uv_handle_t *)&question->timer);
    adopt(question, (uv_handle_t *)&question->process);
    return uv_spawn(munge->loop, &question->process, &options);
}

int munge_ask(struct munge *munge, const char *credential,
              void (*done)(void *context, const struct munge_word *word), void *context,
              struct munge_question **ret_question, struct error *err)
{
    size_t length = strlen(credential);
    if (length > MUNGE_CREDENTIAL_MAX || strncmp(credential, "MUNGE:", 6) != 0)
        return error_set(err, -EINVAL, "munge: want a credential, as munge prints it");
    if (munge->count >= AT_ONCE_MAX)
        return error_set(err, -EAGAIN, "too many credentials are being looked at");
    struct munge_question *question = memory_checked(calloc(1, sizeof *question));
    question->munge = munge;
    question->done = done;
    question->context = context;
    memcpy(question->credential, credential, length);
    munge->count++;
    int r = spawn(question);
    if (r < 0) {
        question->done = NULL;
        question->ended = question->read = true;
        finish_if_over(question);
        return error_set(err, -ENOBUFS, "unmunge cannot be run here: %s",
                         uv_strerror(r));
    }
    uv_timer_start(&question->timer, on_timer, PATIENCE_MS, 0);
    uv_read_start((uv_stream_t *)&question->out, on_room, on_read);
    question->write.data = question;
    uv_buf_t buf = uv_buf_init(question->credential, (unsigned)length);
    if (uv_write(&question->write, (uv_stream_t *)&question->in, &buf, 1, on_written) <
        0)
        uv_process_kill(&question->process, SIGKILL);
    *ret_question = question;
    return 0;
}

void munge_forget(struct munge_question *question)
{
    question->done = NULL;
}

struct munge *munge_new(struct uv_loop_s *loop, const char *socket)
{
    struct munge *munge = memory_checked(calloc(1, sizeof *munge));
    munge->loop = loop;
    munge->socket = memory_text(socket);
    return munge;
}

void munge_free(struct munge *munge)
{
    if (!munge)
        return;
    munge->closing = true;
    end_of(munge);
}
