/* Any bytes from a supervisor to a job's client: a word to stop, or ignored. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "berth/client.h"
#include "client/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int listener = -1;
static struct sockaddr_un address = { .sun_family = AF_UNIX };

static void remove_socket(void)
{
    unlink(address.sun_path);
}

static void open_listener(void)
{
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/berth-fuzz-%d.sock",
             (int)getpid());
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    assert(listen(listener, 8) == 0);
    setenv(PROTOCOL_ENV_SOCKET, address.sun_path, 1);
    atexit(remove_socket);
}

/* Whether some line is the word; lines after one that is too long do not count. */
static bool has_stop(const char *text, size_t size)
{
    for (const char *end; (end = memchr(text, '\n', size));) {
        size_t length = (size_t)(end - text);
        if (length >= 4 && memcmp(text, PROTOCOL_STOP, 4) == 0 &&
            (length == 4 || text[4] == ' ' || text[4] == '\0'))
            return true;
        size -= length + 1;
        text = end + 1;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char sent[256];
    if (listener < 0)
        open_listener();
    size = size < 8 * PROTOCOL_LINE_MAX ? size : 8 * PROTOCOL_LINE_MAX;
    struct berth_client *client = berth_client_new();
    int peer = accept(listener, NULL, NULL);
    assert(client && peer >= 0);
    assert(send(peer, data, size, MSG_NOSIGNAL) == (ssize_t)size);
    berth_client_total(client, size);
    bool stops = false; /* one read per call */
    for (int i = 0; i < 64 && !stops; i++)
        stops = berth_client_must_stop(client);
    assert(!stops || has_stop((const char *)data, size));
    berth_client_report(client, 1, 0.5);
    berth_client_free(client);
    while (recv(peer, sent, sizeof sent, 0) > 0)
        continue; /* what the client said */
    close(peer);
    return 0;
}
