/*
 * ring.c - the traffic of data-parallel training: compute, then a ring all-reduce.
 *
 *     ring --rank R --world N --port P --next ADDRESS --mib M --compute-ms C
 *          [--iterations I] [--losses FILE]
 *
 * Every rank is a process of its own, on a host of its own; it listens on its port and
 * sends to the next one's.  An iteration is C milliseconds of "computing" (a nap) and a
 * real all-reduce of M MiB of floats: each rank sends and receives 2 (N-1)/N of them.
 * The sums are checked.  Rank 0 prints "iteration milliseconds" as it goes; without
 * --iterations, until it is stopped.  Under Berth it reports its progress, with the
 * losses of a file, one per line, if there is one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <berth/client.h>

#define LOSSES_MAX 100000

struct ring {
    int rank, world, port;
    const char *next, *losses;
    double mib, compute_ms;
    long iterations;
    size_t chunk; /* floats in each of 'world' parts */
    float *values, *incoming;
    int out, in;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "ring: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void nap_ms(double ms)
{
    struct timespec time = { .tv_sec = (time_t)(ms / 1e3) };
    time.tv_nsec = (long)((ms - (double)time.tv_sec * 1e3) * 1e6);
    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        ;
}

/* --- the ring ----------------------------------------------------------------------- */

static int listen_on(int port)
{
    struct sockaddr_in6 own = { .sin6_family = AF_INET6,
                                .sin6_port = htons((uint16_t)port) };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) < 0 ||
        listen(fd, 4) < 0)
        die("listen");
    return fd;
}

static int connect_to(const char *address, int port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port) };
    bool old = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    if (!old && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) {
        errno = EINVAL;
        die(address);
    }
    for (int tries = 0; tries < 400; tries++) { /* the next one may come later */
        int fd = socket(old ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, old ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
                    old ? sizeof v4 : sizeof v6) == 0)
            return fd;
        close(fd);
        nap_ms(25);
    }
    die("connect");
}

static void join(struct ring *ring)
{
    int listener = listen_on(ring->port), one = 1;
    ring->out = connect_to(ring->next, ring->port);
    ring->in = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (ring->in < 0)
        die("accept");
    close(listener);
    setsockopt(ring->out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Send one part on and take another in, at the same time. */
static void exchange(struct ring *ring, const float *send_from, float *receive_to)
{
    size_t bytes = ring->chunk * sizeof(float), sent = 0, received = 0;
    while (sent < bytes || received < bytes) {
        struct pollfd wait[2] = {
            { .fd = ring->out, .events = sent < bytes ? POLLOUT : 0 },
            { .fd = ring->in, .events = received < bytes ? POLLIN : 0 },
        };
        if (poll(wait, 2, -1) < 0 && errno != EINTR)
            die("poll");
        if (sent < bytes && wait[0].revents) {
            ssize_t n = send(ring->out, (const char *)send_from + sent, bytes - sent,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN)
                die("send");
            sent += n > 0 ? (size_t)n : 0;
        }
        if (received < bytes && wait[1].revents) {
            ssize_t n = recv(ring->in, (char *)receive_to + received, bytes - received,
                             MSG_DONTWAIT);
            if (n == 0)
                exit(0); /* the ring is broken up */
            if (n < 0 && errno != EAGAIN)
                die("recv");
            received += n > 0 ? (size_t)n : 0;
        }
    }
}

static float *part(struct ring *ring, int number)
{
    int n = ring->world;
    return ring->values + ring->chunk * (size_t)(((number % n) + n) % n);
}

/* First each rank has the sum of one part, then all ranks have all parts. */
static void all_reduce(struct ring *ring)
{
    for (int step = 0; step < ring->world - 1; step++) {
        float *sum = part(ring, ring->rank - step - 1);
        exchange(ring, part(ring, ring->rank - step), ring->incoming);
        for (size_t i = 0; i < ring->chunk; i++)
            sum[i] += ring->incoming[i];
    }
    for (int step = 0; step < ring->world - 1; step++)
        exchange(ring, part(ring, ring->rank + 1 - step),
                 part(ring, ring->rank - step));
}

/* --- training ----------------------------------------------------------------------- */

static size_t read_losses(const char *name, double *losses)
{
    FILE *file = name ? fopen(name, "re") : NULL;
    size_t count = 0;
    if (name && !file)
        die(name);
    while (file && count < LOSSES_MAX && fscanf(file, "%lf", &losses[count]) == 1)
        count++;
    if (file)
        fclose(file);
    return count;
}

static void set_gradients(struct ring *ring)
{
    for (size_t i = 0; i < ring->chunk * (size_t)ring->world; i++)
        ring->values[i] = (float)(ring->rank + 1);
}

static void check_sums(const struct ring *ring)
{
    float expected = (float)(ring->world * (ring->world + 1) / 2);
    for (size_t i = 0; i < ring->chunk * (size_t)ring->world; i += 997)
        if (ring->values[i] != expected) {
            fprintf(stderr, "ring: a sum is %g, not %g\n", (double)ring->values[i],
                    (double)expected);
            exit(1);
        }
}

static void report(struct berth_client *berth, long iteration, const double *losses,
                   size_t count)
{
    if (count > 0)
        berth_client_report(
            berth, (uint64_t)iteration,
            losses[(size_t)iteration < count ? (size_t)iteration : count - 1]);
    else
        berth_client_step(berth, (uint64_t)iteration);
}

static void train(struct ring *ring)
{
    static double losses[LOSSES_MAX];
    size_t count = read_losses(ring->losses, losses);
    struct berth_client *berth = ring->rank == 0 ? berth_client_new() : NULL;
    if (ring->iterations > 0)
        berth_client_total(berth, (uint64_t)ring->iterations);
    if (ring->rank == 0)
        report(berth, 0, losses, count); /* where it begins */
    for (long i = 0; ring->iterations == 0 || i < ring->iterations; i++) {
        double begun = clock_ms();
        nap_ms(ring->compute_ms);
        set_gradients(ring);
        all_reduce(ring);
        check_sums(ring);
        if (ring->rank > 0)
            continue;
        printf("%ld %.1f\n", i, clock_ms() - begun);
        fflush(stdout);
        report(berth, i + 1, losses, count);
    }
    berth_client_free(berth);
}

int main(int argc, char **argv)
{
    struct ring ring = { .world = 2, .port = 7000, .mib = 1, .compute_ms = 50 };
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *flag = argv[i], *value = argv[i + 1];
        if (strcmp(flag, "--rank") == 0)
            ring.rank = atoi(value);
        else if (strcmp(flag, "--world") == 0)
            ring.world = atoi(value);
        else if (strcmp(flag, "--port") == 0)
            ring.port = atoi(value);
        else if (strcmp(flag, "--next") == 0)
            ring.next = value;
        else if (strcmp(flag, "--mib") == 0)
            ring.mib = atof(value);
        else if (strcmp(flag, "--compute-ms") == 0)
            ring.compute_ms = atof(value);
        else if (strcmp(flag, "--iterations") == 0)
            ring.iterations = atol(value);
        else if (strcmp(flag, "--losses") == 0)
            ring.losses = value;
        else
            return fprintf(stderr, "ring: unknown %s\n", flag), 2;
    }
    if (!ring.next || ring.world < 2 || ring.rank < 0 || ring.rank >= ring.world ||
        !(ring.mib > 0 && ring.mib < 1024))
        return fputs("ring: see the top of ring.c\n", stderr), 2;
    ring.chunk = (size_t)(ring.mib * 0x1p20 / sizeof(float) / ring.world) + 1;
    ring.values = calloc(ring.chunk * (size_t)ring.world, sizeof(float));
    ring.incoming = calloc(ring.chunk, sizeof(float));
    if (!ring.values || !ring.incoming)
        die("memory");
    join(&ring);
    train(&ring);
    free(ring.values);
    free(ring.incoming);
    return 0;
}
