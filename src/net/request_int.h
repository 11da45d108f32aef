/* request_int.h — a request of any protocol while it is read and served: its memory, its count, its timeouts. Private to this folder. */
#pragma once

#include "net/conn.h"
#include "net/input.h"

/* ---- memory ---- */

/* Memory that a request holds until its answer ends. */
typedef struct net_serving {
    budget budget; /* for the arena, and for what the front end counts itself */
    arena arena;
    buf bytes; /* a large request's bytes, taken over from the connection's input */
} net_serving;

enum { NET_TAKE_OVER_BYTES = 16 * 1024 }; /* a request larger than this keeps the memory it was collected in */

void net_serving_init(net_serving *s, net_loop *loop, size_t own_bytes); /* own_bytes: see budget.h */
void net_serving_free(net_serving *s);

/* A request counts in the loop's requests_live from its first byte to the end of its answer. */
static inline void net_serving_begin(net_loop *loop) {
    unsigned n = atomic_load_explicit(&loop->requests_live, memory_order_relaxed);
    atomic_store_explicit(&loop->requests_live, n + 1, memory_order_relaxed);
}
void net_serving_end(net_serving *s, net_loop *loop, bool reuse); /* frees its memory; `reuse`: keeps one block of the arena */

/* Skips `used` bytes of the input and returns the first n of them, valid until the answer ends. Reads reuse the loop's buffer, so the bytes
 * are copied; if they are many and already in the connection's own memory, that memory is taken over instead. */
char *net_serving_adopt(net_serving *s, net_loop *loop, net_input *in, size_t n, size_t used);
slice net_serving_take(net_serving *s, net_loop *loop, buf *collected); /* the same for bytes that the protocol collected itself */

/* ---- memory shortage ---- */

/* Whether less than 1/part of the memory for buffers is left; with part 1, whether none is left. */
static inline bool net_memory_is_short(net_loop *loop, size_t part) {
    budget_pool *memory = &loop->shared->buffers;
    size_t spare = part > 1 ? memory->max / part : 0;
    return atomic_load_explicit(&memory->used, memory_order_relaxed) > memory->max - spare;
}

/* A large request is refused early when memory is short: it is likely to have a large answer. */
static inline bool net_is_unaffordable(net_loop *loop, size_t request_bytes) {
    return request_bytes > NET_TAKE_OVER_BYTES && net_memory_is_short(loop, 8);
}

err net_count_starved(net_loop *loop);   /* counts a request or answer refused for lack of memory; returns E_BUSY_MEMORY */
bool net_answer_starved(net_loop *loop); /* after an answer overflowed: true if memory was short, false if the answer was too large */

/* ---- time ---- */

typedef enum net_timing { NET_UNTIMED, NET_TIMING_HEAD, NET_TIMING_BODY } net_timing;

/* Progress of a request being received. NET_UNTIMED before its first byte. */
typedef struct net_reading {
    uint8_t timing;   /* net_timing */
    int64_t began_ms; /* when the body began */
    int64_t bytes;    /* bytes of the body received, not counting `progress` */
    size_t progress;  /* bytes received since the deadline was last moved */
} net_reading;

/* Sets the connection's deadline for the rest of the request. `head_whole`: the head is complete, so the rest must come at least_rate. */
void net_reading_time(net_reading *r, net_conn *c, bool head_whole);
static inline void net_reading_idle(net_conn *c, const net_options *options,
                                    unsigned idle_timeout_ms) { /* sets the deadline for the first byte of the next request */
    net_conn_deadline(c, net_conn_is_trusted(c) ? idle_timeout_ms : options->untrusted_timeout_ms);
}
bool net_reading_progress(const net_reading *r, const net_input *in,
                          net_progress *progress_out); /* false: the request is small, or its head is incomplete */
