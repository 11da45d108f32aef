/* closed_loop.h — what the tools share that drive one wire protocol: flags, connections, the loop, the line of figures.
 *
 * One thread with an epoll loop. Each connection sends a request, waits for the whole answer and sends the next. One line of JSON on
 * standard output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMULATOR_KEY "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

typedef struct loop_flags {
    const char *mode, *key;
    uint16_t port;
    int connections;
    uint64_t items;      /* that are read, or loaded */
    uint64_t next;       /* the next one that is written */
    unsigned throughput; /* of new tables; 0: the service's default */
    size_t size;         /* of an item */
    double seconds, warm_up;
    bool setup;
    const char *ask;    /* the name of a question (question.h); NULL: none */
    uint64_t least;     /* the run goes on until it has had so many answers, for a minute at most */
    bool open;          /* the server asks for no password */
    const char *format; /* of messages, if the protocol has several; NULL: the tool's default */
    uint64_t vertices;  /* of the measured graph (graph.h) */
} loop_flags;
extern loop_flags loop;

/* Reads the flags; ends the process if they make no sense. `name` and `modes` are for messages. */
void loop_parse(int argc, char **argv, const char *name, const char *modes, size_t size_max);

typedef struct loop_connection {
    int fd;
    bool done; /* it sends nothing more */
    char *in;  /* the answer that is coming; of a large one the beginning */
    size_t in_n, in_room;
    uint64_t seen; /* bytes of the answer so far */
    uint64_t sent_at;
} loop_connection;

typedef struct loop_work {
    bool fills;                                               /* runs until all items are sent, not for a time */
    void (*request)(loop_connection *c);                      /* sends one, or sets `done` */
    bool (*answered)(const loop_connection *c, bool *ok_out); /* whether the whole answer has come */
    void (*more)(void); /* prints further members of the line of figures, each with a comma before it; NULL: there are none */
} loop_work;

_Noreturn void loop_die(const char *what);
void loop_connect(loop_connection *c, size_t in_room);
void loop_send(loop_connection *c, const void *bytes, size_t n);
void loop_receive(loop_connection *c); /* some bytes, at least one */

/* Runs and prints. */
void loop_run(const loop_work *w, loop_connection *const *connections);
