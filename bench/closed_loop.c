#include "closed_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
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

enum { CONNECTIONS_MAX = 1024, SILENCE_MS = 120000 };
static const uint64_t least_wait_ns = 60000000000;

loop_flags loop = {.key = EMULATOR_KEY, .connections = 32, .items = 10000, .size = 1024, .seconds = 3, .warm_up = 0.5, .vertices = 100000};
static const char *tool;
static histogram latencies;
static uint64_t requests, errors, answer_bytes;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void loop_die(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", tool, what, strerror(errno));
    exit(1);
}

/* ---- flags ---- */

static void usage(const char *modes) {
    fprintf(stderr,
            "usage: %s --port N [--setup] [--mode %s] [--connections 32] [--items 10000]\n"
            "       [--first N] [--size 1024] [--seconds 3] [--warm-up 0.5] [--key KEY] [--throughput RU]\n"
            "       [--ask QUESTION] [--least N] [--open] [--format NAME] [--vertices 100000]\n",
            tool, modes);
    exit(2);
}

static bool take_flag(int flag) {
    switch (flag) {
    case 'p':
        loop.port = (uint16_t)atoi(optarg);
        return true;
    case 'm':
        loop.mode = optarg;
        return true;
    case 'c':
        loop.connections = atoi(optarg);
        return true;
    case 'i':
        loop.items = strtoull(optarg, NULL, 10);
        return true;
    case 'f':
        loop.next = strtoull(optarg, NULL, 10);
        return true;
    case 's':
        loop.size = strtoull(optarg, NULL, 10);
        return true;
    case 't':
        loop.seconds = atof(optarg);
        return true;
    case 'w':
        loop.warm_up = atof(optarg);
        return true;
    case 'k':
        loop.key = optarg;
        return true;
    case 'u':
        loop.throughput = (unsigned)atoi(optarg);
        return true;
    case 'S':
        loop.setup = true;
        return true;
    case 'a':
        loop.ask = optarg;
        return true;
    case 'l':
        loop.least = strtoull(optarg, NULL, 10);
        return true;
    case 'o':
        loop.open = true;
        return true;
    case 'F':
        loop.format = optarg;
        return true;
    case 'v':
        loop.vertices = strtoull(optarg, NULL, 10);
        return true;
    default:
        return false;
    }
}

void loop_parse(int argc, char **argv, const char *name, const char *modes, size_t size_max) {
    static const struct option options[] = {
        {"port", 1, NULL, 'p'},
        {"mode", 1, NULL, 'm'},
        {"connections", 1, NULL, 'c'},
        {"items", 1, NULL, 'i'},
        {"first", 1, NULL, 'f'},
        {"size", 1, NULL, 's'},
        {"seconds", 1, NULL, 't'},
        {"warm-up", 1, NULL, 'w'},
        {"key", 1, NULL, 'k'},
        {"setup", 0, NULL, 'S'},
        {"throughput", 1, NULL, 'u'},
        {"ask", 1, NULL, 'a'},
        {"least", 1, NULL, 'l'},
        {"open", 0, NULL, 'o'},
        {"format", 1, NULL, 'F'},
        {"vertices", 1, NULL, 'v'},
        {0},
    };
    tool = name;
    for (int flag; (flag = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (!take_flag(flag)) {
            usage(modes);
        }
    }
    if (loop.port == 0 || loop.connections < 1 || loop.connections > CONNECTIONS_MAX || loop.items == 0 || loop.vertices == 0 ||
        loop.size > size_max) {
        usage(modes);
    }
}

/* ---- connections ---- */

void loop_connect(loop_connection *c, size_t in_room) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(loop.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    c->in_room = in_room;
    c->in = malloc(in_room);
    if (!c->in || c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        loop_die("connect");
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void loop_send(loop_connection *c, const void *bytes, size_t n) {
    for (const char *p = bytes; n > 0;) {
        ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0) {
            loop_die("send");
        }
        p += sent;
        n -= (size_t)sent;
    }
}

/* Bytes that do not fit are only counted: the kernel drops them without copying, so that a large answer costs the client little. */
void loop_receive(loop_connection *c) {
    enum { COUNTED_BYTES = 4 * 1024 * 1024 };
    size_t room = c->in_room - c->in_n;
    ssize_t got = room ? recv(c->fd, c->in + c->in_n, room, 0) : recv(c->fd, NULL, COUNTED_BYTES, MSG_TRUNC);
    if (got <= 0) {
        loop_die("the server closed the connection");
    }
    c->in_n += room ? (size_t)got : 0;
    c->seen += (uint64_t)got;
}

/* ---- the loop ---- */

static void send_next(loop_connection *c, const loop_work *w) {
    c->in_n = 0;
    c->seen = 0;
    c->sent_at = now_ns();
    w->request(c);
}

static void count(const loop_connection *c, uint64_t now, bool ok) {
    histogram_add(&latencies, now - c->sent_at);
    requests++;
    errors += !ok;
    answer_bytes += c->seen;
}

static void drive(const loop_work *w, loop_connection *const *connections) {
    int epoll = epoll_create1(0), active = loop.connections;
    uint64_t start = now_ns(), counted = start + (uint64_t)(loop.warm_up * 1e9), end = counted + (uint64_t)(loop.seconds * 1e9);
    for (int i = 0; i < loop.connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = connections[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i]->fd, &e);
        send_next(connections[i], w);
        active -= connections[i]->done;
    }
    while (active > 0) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, SILENCE_MS);
        for (int i = 0; i < n; i++) {
            loop_connection *c = events[i].data.ptr;
            bool ok;
            loop_receive(c);
            if (!w->answered(c, &ok)) {
                continue;
            }
            uint64_t now = now_ns();
            if (w->fills || now >= counted) {
                count(c, now, ok);
            }
            if (!w->fills && now >= end && (requests >= loop.least || now >= end + least_wait_ns)) {
                c->done = true;
            } else {
                send_next(c, w);
            }
            active -= c->done;
        }
        if (n == 0) {
            loop_die("no answer for two minutes");
        }
    }
    close(epoll);
    if (w->fills || loop.least) {
        loop.seconds = (double)(now_ns() - (w->fills ? start : counted)) / 1e9;
    }
}

void loop_run(const loop_work *w, loop_connection *const *connections) {
    struct rusage used;
    drive(w, connections);
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    double each = (double)(requests ? requests : 1);
    printf("{\"mode\":\"%s\",\"connections\":%d,\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"rate\":%.1f,\"errors\":%" PRIu64 ",", loop.mode,
           loop.connections, loop.seconds, requests, (double)requests / loop.seconds, errors);
    histogram_print(&latencies);
    printf(",\"bytesPerAnswer\":%.0f,\"clientCpuMicros\":%.2f", (double)answer_bytes / each, cpu / each);
    if (w->more) {
        w->more();
    }
    printf("}\n");
}
