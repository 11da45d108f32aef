/* script_harness.h — runs a script worker, with the test as its server at the other end of the socket.
 *
 * The program is the real one, tesela-script; its path is in the environment (TESELA_SCRIPT), which meson sets. */
#pragma once

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "script/protocol.h"

enum { WORKER_PATIENCE_MS = 60000 }; /* for a busy machine; normally nothing takes that long */

typedef struct worker {
    pid_t pid;
    int fd;
    buf in; /* the last frame's text, zero-terminated */
} worker;

static inline worker worker_start_with(const char *const *arguments, const char *const *variables) {
    int pair[2];
    char *argv[8] = {getenv("TESELA_SCRIPT")};
    char *envp[8] = {0};
    assert_non_null(argv[0]);
    for (size_t i = 0; arguments && arguments[i]; i++) {
        argv[i + 1] = strdup(arguments[i]);
    }
    for (size_t i = 0; variables[i]; i++) {
        envp[i] = strdup(variables[i]);
    }
    assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], SCRIPT_FD);
    worker w = {.fd = pair[0], .in = buf_init(BUF_NO_LIMIT)};
    assert_int_equal(0, posix_spawn(&w.pid, argv[0], &actions, NULL, argv, envp));
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    for (size_t i = 0; i < 8; i++) {
        if (i > 0) {
            free(argv[i]);
        }
        free(envp[i]);
    }
    return w;
}

/* Waits for the process to end, kills it if it does not, and returns its wait status. */
static inline int worker_end(worker *w) {
    int status = 0;
    close(w->fd);
    for (int waited = 0; waitpid(w->pid, &status, WNOHANG) == 0; waited++) {
        if (waited == 200) {
            kill(w->pid, SIGKILL);
        }
        usleep(10000);
    }
    buf_free(&w->in);
    return status;
}

static inline void worker_send(worker *w, script_frame kind, slice text) {
    size_t n = text.n + 1;
    unsigned char header[SCRIPT_HEADER_BYTES] = {(unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                                                 (unsigned char)(n >> 24), (unsigned char)kind};
    assert_int_equal(sizeof header, send(w->fd, header, sizeof header, MSG_NOSIGNAL));
    for (size_t at = 0; at < text.n;) {
        ssize_t put = send(w->fd, text.p + at, text.n - at, MSG_NOSIGNAL);
        assert_true(put > 0);
        at += (size_t)put;
    }
}

static inline bool worker_receive_bytes(worker *w, void *to, size_t n) {
    for (size_t at = 0; at < n;) {
        struct pollfd one = {.fd = w->fd, .events = POLLIN};
        assert_int_equal(1, poll(&one, 1, WORKER_PATIENCE_MS));
        ssize_t got = recv(w->fd, (char *)to + at, n - at, 0);
        if (got <= 0) {
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

/* Receives a frame into w->in and returns its kind; 0 if the worker is gone. */
static inline int worker_receive(worker *w) {
    unsigned char header[SCRIPT_HEADER_BYTES];
    if (!worker_receive_bytes(w, header, sizeof header)) {
        return 0;
    }
    size_t n = ((size_t)header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16 | (size_t)header[3] << 24) - 1;
    assert_true(n <= SCRIPT_FRAME_BYTES_MAX);
    buf_clear(&w->in);
    assert_true(buf_reserve(&w->in, n + 1));
    if (!worker_receive_bytes(w, w->in.p, n)) {
        return 0;
    }
    w->in.p[n] = 0;
    w->in.n = n;
    return header[4];
}

static inline worker worker_start(const char *const *arguments) {
    static const char *const environment[] = {SCRIPT_ENVIRONMENT, NULL};
    worker w = worker_start_with(arguments, environment);
    assert_int_equal(SCRIPT_READY, worker_receive(&w));
    return w;
}

static inline void add_quoted(buf *b, slice text) {
    buf_add_byte(b, '"');
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '"' || c == '\\') {
            buf_add_byte(b, '\\');
        }
        if (c < 0x20) {
            buf_addf(b, "\\u%04x", c);
        } else {
            buf_add_byte(b, (char)c);
        }
    }
    buf_add_byte(b, '"');
}

/* Sends a RUN; `more` is JSON text of further members, or "". */
static inline void worker_run(worker *w, slice body, const char *more) {
    buf b = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&b, "{\"id\":\"s\",\"collection\":{\"self\":\"dbs/a==/colls/b==/\",\"alt\":\"dbs/d/colls/c\"},\"logging\":true,\"body\":");
    add_quoted(&b, body);
    buf_addf(&b, "%s}", *more ? more : ",\"kind\":\"sproc\",\"args\":[]");
    worker_send(w, SCRIPT_RUN, buf_view(&b));
    buf_free(&b);
}
