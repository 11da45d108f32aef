/* socket.c — see socket.h. */
#include "script/worker/socket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { WATCH_STACK_BYTES = 64 * 1024, READ_BYTES_MIN = 64 * 1024, KEPT_BYTES_MAX = 1024 * 1024 /* a larger buffer is freed */ };

static buf in = {.max = SCRIPT_FRAME_BYTES_MAX + 2 * READ_BYTES_MIN};
static volatile sig_atomic_t writing;
static volatile sig_atomic_t working; /* the server waits for a frame */

static void *watch(void *unused) {
    (void)unused;
    struct pollfd server = {.fd = SCRIPT_FD, .events = 0}; /* POLLHUP is reported even with no events requested */
    while (poll(&server, 1, -1) <= 0 || !(server.revents & (POLLHUP | POLLERR | POLLNVAL))) {
    }
    _exit(0);
}

void frames_watch(void) {
    pthread_t thread;
    pthread_attr_t small;
    if (pthread_attr_init(&small) != 0 || pthread_attr_setstacksize(&small, WATCH_STACK_BYTES) != 0 ||
        pthread_create(&thread, &small, watch, NULL) != 0) {
        _exit(2);
    }
    pthread_attr_destroy(&small);
}

/* Reads until `in` has n bytes; may read more if available, since one read is cheaper than two. */
static void read_until(size_t n) {
    if (!buf_reserve(&in, (n > READ_BYTES_MIN ? n : READ_BYTES_MIN) - in.n + 1)) {
        _exit(2);
    }
    while (in.n < n) {
        ssize_t got = read(SCRIPT_FD, in.p + in.n, in.cap - in.n - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            _exit(0);
        }
        in.n += (size_t)got;
    }
}

static void write_all(const void *from, size_t n) {
    const char *p = from;
    while (n > 0) {
        ssize_t put = write(SCRIPT_FD, p, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            _exit(0);
        }
        p += put;
        n -= (size_t)put;
    }
}

static size_t read_length(void) {
    const unsigned char *p = (const unsigned char *)in.p;
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

script_frame frames_read(slice *text) {
    if (in.cap > KEPT_BYTES_MAX) {
        buf_free(&in);
    }
    buf_clear(&in);
    read_until(SCRIPT_HEADER_BYTES);
    size_t n = read_length();
    if (n < 1 || n > SCRIPT_FRAME_BYTES_MAX) {
        _exit(2);
    }
    read_until(FRAMES_LENGTH_BYTES + n);
    if (in.n != FRAMES_LENGTH_BYTES + n) {
        _exit(2); /* the server never sends a second frame before our answer */
    }
    in.p[in.n] = 0;
    *text = (slice){in.p + SCRIPT_HEADER_BYTES, n - 1};
    working = 1;
    return (script_frame)in.p[FRAMES_LENGTH_BYTES];
}

void frames_write(buf *frame) {
    size_t n = frame->n - FRAMES_LENGTH_BYTES;
    for (size_t i = 0; i < FRAMES_LENGTH_BYTES; i++) {
        frame->p[i] = (char)(n >> (8 * i));
    }
    writing = 1;
    write_all(frame->p, frame->n);
    working = frame->p[FRAMES_LENGTH_BYTES] == SCRIPT_CALL;
    writing = 0;
}

void frames_end_with(const void *frame, size_t n) {
    if (working && !writing) {
        write_all(frame, n);
    }
    _exit(3);
}
