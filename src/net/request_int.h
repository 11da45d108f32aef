/* request_int.h — a request of any protocol while it is read and served: its memory, its count, its time-outs. For the files of this
 * folder. */
#pragma once

#include "net/conn.h"
#include "net/input.h"

/* ---- memory ---- */

/* What a request holds until its answer ends. */
typedef struct net_serving {
    budget budget; /* of the memory that the request takes, the arena's and what a front end counts */
    arena arena;
    buf bytes; /* of a large request, taken over from the connection's input */
} net_serving;

enum { NET_TAKE_OVER_BYTES = 16 * 1024 }; /* a larger request keeps the memory it was collected in */

void net_serving_init(net_serving *s, net_loop *loop, size_t own_bytes); /* budget.h has `own` */
void net_serving_free(net_serving *s);

/* From the first byte to the end of the answer a request counts in the loop's requests_live. */
static inline void net_serving_begin(net_loop *loop) {
    unsigned n = atomic_load_explicit(&loop->requests_live, memory_order_relaxed);
    atomic_store_explicit(&loop->requests_live, n + 1, memory_order_relaxed);
}
void net_serving_end(net_serving *s, net_loop *loop, bool reuse); /* its memory is given back; `reuse`: but for one block of the arena */

/* The first n of `used` bytes of the input, which are skipped. They live until the answer ends: reads reuse the loop's buffer, so they are
 * copied, or, if they are many and already collected in memory of the connection's own, taken over. */
char *net_serving_adopt(net_serving *s, net_loop *loop, net_input *in, size_t n, size_t used);
slice net_serving_take(net_serving *s, net_loop *loop, buf *collected); /* the same for bytes that a protocol collected itself */

/* ---- want of memory ---- */

/* Less than 1/part of the memory for buffers is left; part 1: none is. */
static inline bool net_memory_is_short(net_loop *loop, size_t part) {
    budget_pool *memory = &loop->shared->buffers;
    size_t spare = part > 1 ? memory->max / part : 0;
    return atomic_load_explicit(&memory->used, memory_order_relaxed) > memory->max - spare;
}

/* A large request will likely have a large answer: it is refused before it is carried out. */
static inline bool net_is_unaffordable(net_loop *loop, size_t request_bytes) {
    return request_bytes > NET_TAKE_OVER_BYTES && net_memory_is_short(loop, 8);
}

err net_starved(net_loop *loop);         /* counts a request or an answer refused for want of memory: E_BUSY_MEMORY */
bool net_answer_starved(net_loop *loop); /* an answer was cut off: for want of memory, or by the limit of answers? */

/* ---- time ---- */

typedef enum net_timing { NET_UNTIMED, NET_TIMING_HEAD, NET_TIMING_BODY } net_timing;

/* How long a request has been coming in. NET_UNTIMED before its first byte. */
typedef struct net_reading {
    uint8_t timing;   /* net_timing */
    int64_t began_ms; /* of the body */
    int64_t bytes;    /* of it that have come, but for those in `progress` */
    size_t progress;  /* bytes since the time-out was last moved */
} net_reading;

/* Sets the connection's deadline for what is still to come. `head_whole`: the head is there, so the rest must come at least_rate. */
void net_reading_time(net_reading *r, net_conn *c, bool head_whole);
static inline void net_reading_idle(net_conn *c, const net_options *options,
                                    unsigned idle_timeout_ms) { /* … for the next request's first byte */
    net_conn_deadline(c, net_conn_is_trusted(c) ? idle_timeout_ms : options->untrusted_timeout_ms);
}
bool net_reading_progress(const net_reading *r, const net_input *in,
                          net_progress *progress_out); /* false: it is small, or its head is missing */
