#include "loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

enum { SILENCE_MS = 30000 };

loop_settings loop_set = {.connections = 32, .seconds = 3, .warm_up = 0.5, .input_bytes = 1 << 20};
static histogram latencies;
static uint64_t requests, errors;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void loop_die(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", loop_set.name, what, strerror(errno));
    exit(1);
}

void loop_send(const loop_connection *c, const void *bytes, size_t n) {
    for (const char *p = bytes; n > 0;) {
        ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0) {
            loop_die("send");
        }
        p += sent;
        n -= (size_t)sent;
    }
}

bool loop_receive(loop_connection *c) {
    ssize_t got = recv(c->fd, c->in + c->in_n, loop_set.input_bytes - c->in_n, 0);
    if (got <= 0) {
        loop_die("the server closed the connection, or an answer is too large");
    }
    c->in_n += (size_t)got;
    return true;
}

const loop_work *loop_find(const loop_work *works, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(works[i].mode, loop_set.mode) == 0) {
            return &works[i];
        }
    }
    fprintf(stderr, "%s: no mode %s\n", loop_set.name, loop_set.mode);
    exit(2);
}

void loop_open(loop_connection *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(loop_set.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    c->in = malloc(loop_set.input_bytes);
    if (c->fd < 0 || !c->in || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        loop_die("connect");
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void send_next(loop_connection *c, const loop_work *w) {
    c->in_n = 0;
    c->sent_at = now_ns();
    w->request(c);
}

typedef struct span {
    uint64_t counted, end; /* answers count from then on; no request is sent after the end */
} span;

static void take(loop_connection *c, const loop_work *w, span s) {
    bool ok = false;
    loop_receive(c);
    if (!w->answered(c, &ok)) {
        return;
    }
    uint64_t now = now_ns();
    if (w->fills || now >= s.counted) {
        histogram_add(&latencies, now - c->sent_at);
        requests++;
        errors += !ok;
    }
    if (!w->fills && now >= s.end) {
        c->done = true;
    } else {
        send_next(c, w);
    }
}

void loop_run(const loop_work *w, loop_connection *connections) {
    int epoll = epoll_create1(0), active = loop_set.connections;
    uint64_t start = now_ns(), counted = start + (uint64_t)(loop_set.warm_up * 1e9);
    span s = {counted, counted + (uint64_t)(loop_set.seconds * 1e9)};
    for (int i = 0; i < loop_set.connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &connections[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &e);
        send_next(&connections[i], w);
        active -= connections[i].done;
    }
    while (active > 0) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, SILENCE_MS);
        for (int i = 0; i < n; i++) {
            loop_connection *c = events[i].data.ptr;
            take(c, w, s);
            active -= c->done;
        }
        if (n == 0) {
            errno = ETIMEDOUT;
            loop_die("no answer");
        }
    }
    close(epoll);
    if (w->fills) {
        loop_set.seconds = (double)(now_ns() - start) / 1e9;
    }
}

void loop_print(const char *more) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("{\"mode\":\"%s\",\"connections\":%d,\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"rate\":%.1f,\"errors\":%" PRIu64 ",",
           loop_set.mode, loop_set.connections, loop_set.seconds, requests, (double)requests / loop_set.seconds, errors);
    histogram_print(&latencies);
    printf(",\"clientCpuMicros\":%.2f%s}\n", cpu / (double)(requests ? requests : 1), more);
}
