/* frames.c — see frames.h. */
#include "script/worker/frames.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { KEPT_BYTES_MAX = 1024 * 1024 }; /* memory of a larger frame goes back */

static buf in = {.max = SCRIPT_FRAME_BYTES_MAX + 1};
static volatile sig_atomic_t writing;
static volatile sig_atomic_t working; /* the server waits for our word */

static void read_all(void *to, size_t n) {
    char *p = to;
    while (n > 0) {
        ssize_t got = read(SCRIPT_FD, p, n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            _exit(0);
        }
        p += got;
        n -= (size_t)got;
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

script_frame frames_read(slice *text) {
    unsigned char header[SCRIPT_HEADER_BYTES];
    if (in.cap > KEPT_BYTES_MAX) {
        buf_free(&in);
    }
    buf_clear(&in);
    read_all(header, sizeof header);
    size_t n = (size_t)header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16 | (size_t)header[3] << 24;
    if (n < 1 || !buf_reserve(&in, n)) {
        _exit(2);
    }
    n--; /* the kind */
    read_all(in.p, n);
    in.p[n] = 0;
    in.n = n;
    *text = buf_view(&in);
    working = 1;
    return (script_frame)header[4];
}

void frames_write(script_frame kind, slice text) {
    size_t n = text.n + 1;
    unsigned char header[SCRIPT_HEADER_BYTES] = {(unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                                                 (unsigned char)(n >> 24), (unsigned char)kind};
    writing = 1;
    write_all(header, sizeof header);
    write_all(text.p, text.n);
    working = kind == SCRIPT_CALL;
    writing = 0;
}

void frames_end_with(const void *frame, size_t n) {
    if (working && !writing) {
        write_all(frame, n);
    }
    _exit(3);
}
