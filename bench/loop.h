/* loop.h — closed loops over TCP for the load generators of one protocol each: every connection sends a request, waits for the whole
 * answer, and sends the next. One thread with an epoll loop; one line of JSON on standard output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOOP_CONNECTIONS_MAX = 1024 };

typedef struct loop_connection {
    int fd;
    bool done; /* set by `request`, if there is nothing left to send */
    char *in;  /* the answer so far; `loop_input_bytes` */
    size_t in_n;
    uint64_t sent_at, number; /* `number`: the generator's own */
} loop_connection;

typedef struct loop_work {
    const char *mode;
    void (*request)(loop_connection *c);
    bool (*answered)(loop_connection *c, bool *ok_out); /* false: the answer is not whole yet. It may take what it has read out of `in` */
    bool fills;                                         /* ends when `request` says so, and is timed as a whole */
} loop_work;

/* What every generator has flags for. */
typedef struct loop_settings {
    const char *name, *mode, *key;
    uint16_t port;
    int connections;
    double seconds, warm_up;
    size_t input_bytes;
} loop_settings;

extern loop_settings loop_set;

_Noreturn void loop_die(const char *what); /* and errno */
void loop_send(const loop_connection *c, const void *bytes, size_t n);
bool loop_receive(loop_connection *c); /* what has come; ends the process if the server has closed */
const loop_work *loop_find(const loop_work *works, size_t n);

/* Connects, calls `log_in` for each connection, works, and prints the line; `more` is added to its end: "" or ",\"name\":1". */
void loop_open(loop_connection *c);
void loop_run(const loop_work *w, loop_connection *connections);
void loop_print(const char *more);
