/* Closes connections when there are too many of them or memory is short: unauthenticated connections, and slow clients.
 *
 *   accepted ── untrusted ── net_conn_trust ──► trusted: closed by the client, or after idle_timeout_ms
 *                  ├── no request for untrusted_timeout_ms ──► closed
 *                  ├── displaced by a newcomer, as the loop's oldest ──► closed
 *                  └── a newcomer for which there is no room ──► surplus: gets a refusal, then closed
 *
 * Every newcomer is untrusted, even a good client. When connections_max is reached, a newcomer displaces the oldest untrusted connection,
 * which has had its time to authenticate. A loop knows only its own connections; so when the limit is reached, newcomers go to the loop
 * that has the most untrusted ones. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "net/conn_int.h"

enum {
    SURPLUS_MAX = 64,    /* surplus connections that get a refusal; more are just closed */
    SURPLUS_MS = 1000,   /* how long a surplus connection may take to send its first byte */
    RECLAIM_MS = 2000,   /* when memory is short, a client that has had this time must meet both of the next conditions */
    SCARCE_FACTOR = 16,  /* it is this many times faster than least_rate */
    SCARCE_S = 10,       /* it is fast enough to move the memory it holds within this many seconds */
    LAGGARDS_MAX = 1024, /* max. connections considered per tick */
    COMPLAIN_MS = 10000, /* min. time between two log lines of one kind */
};

unsigned net_count_event(net_complaint *c, int64_t now_ms) {
    atomic_fetch_add_explicit(&c->total, 1, memory_order_relaxed);
    int64_t said = atomic_load_explicit(&c->said_ms, memory_order_relaxed);
    if ((said && now_ms - said < COMPLAIN_MS) ||
        !atomic_compare_exchange_strong_explicit(&c->said_ms, &said, now_ms, memory_order_relaxed, memory_order_relaxed)) {
        return 0;
    }
    uint64_t total = atomic_load_explicit(&c->total, memory_order_relaxed);
    return (unsigned)(total - atomic_exchange_explicit(&c->reported, total, memory_order_relaxed));
}

/* ---- untrusted connections, oldest first ---- */

static void add_untrusted(net_conn *c) {
    net_loop *loop = c->loop;
    c->older = loop->untrusted_newest;
    *(c->older ? &c->older->younger : &loop->untrusted_oldest) = c;
    loop->untrusted_newest = c;
    atomic_fetch_add_explicit(&loop->untrusted_n, 1, memory_order_relaxed);
}

static void remove_untrusted(net_conn *c) {
    net_loop *loop = c->loop;
    *(c->older ? &c->older->younger : &loop->untrusted_oldest) = c->younger;
    *(c->younger ? &c->younger->older : &loop->untrusted_newest) = c->older;
    c->older = c->younger = NULL;
    atomic_fetch_sub_explicit(&loop->untrusted_n, 1, memory_order_relaxed);
}

void net_conn_trust(net_conn *c) {
    if (!c->trusted && c->phase != CLOSED) {
        c->trusted = true;
        remove_untrusted(c);
        atomic_fetch_add_explicit(&c->loop->shared->trusted, 1, memory_order_relaxed);
    }
}

bool net_conn_is_trusted(const net_conn *c) {
    return c->trusted;
}

/* ---- coming and going ---- */

bool net_crowd_take_surplus(net_shared *shared) {
    if (atomic_fetch_add_explicit(&shared->surplus, 1, memory_order_relaxed) < SURPLUS_MAX) {
        return true;
    }
    atomic_fetch_sub_explicit(&shared->surplus, 1, memory_order_relaxed);
    return false;
}

static void uncount(net_conn *c) {
    net_shared *shared = c->loop->shared;
    if (c->surplus) {
        atomic_fetch_sub_explicit(&shared->surplus, 1, memory_order_relaxed);
    } else {
        atomic_fetch_sub_explicit(&shared->connections, 1, memory_order_relaxed);
        net_peers_give(shared->peers, &c->peer);
    }
}

void net_crowd_leave(net_conn *c) {
    uncount(c);
    if (c->trusted) {
        atomic_fetch_sub_explicit(&c->loop->shared->trusted, 1, memory_order_relaxed);
    } else if (c->older || c->younger || c->loop->untrusted_oldest == c) {
        remove_untrusted(c);
    }
}

/* Skips connections whose request is being served: they are about to be answered. */
static net_conn *oldest_displaceable(net_conn *newcomer) {
    net_conn *c = newcomer->loop->untrusted_oldest;
    while (c && (c == newcomer || c->protocol->busy(c))) {
        c = c->younger;
    }
    return c;
}

static bool is_full(net_shared *shared) {
    return atomic_load_explicit(&shared->connections, memory_order_relaxed) > shared->options.connections_max;
}

static void turn_away(net_conn *c) {
    net_shared *shared = c->loop->shared;
    unsigned times = net_count_event(&shared->full, c->loop->now_ms);
    if (times) {
        log_warn("net", "too many connections", "max=%u refused=%u", shared->options.connections_max, times);
    }
    if (net_crowd_take_surplus(shared)) {
        uncount(c);
        c->surplus = true;
    } else {
        net_conn_close(c);
    }
}

void net_crowd_enter(net_conn *c) {
    net_loop *loop = c->loop;
    net_shared *shared = loop->shared;
    add_untrusted(c);
    while (!c->surplus && is_full(shared)) {
        net_conn *oldest = oldest_displaceable(c);
        if (!oldest) {
            break;
        }
        net_conn_close(oldest);
        unsigned times = net_count_event(&shared->displaced, loop->now_ms);
        if (times) {
            log_warn("net", "unauthenticated connections closed to make room", "connections_max=%u closed=%u",
                     shared->options.connections_max, times);
        }
    }
    if (!c->surplus && is_full(shared)) {
        turn_away(c);
    }
    net_conn_deadline(c, c->surplus ? SURPLUS_MS : shared->options.untrusted_timeout_ms);
}

/* ---- slow clients ---- */

void net_crowd_count_slow(net_loop *loop) {
    unsigned times = net_count_event(&loop->shared->slow, loop->now_ms);
    if (times) {
        log_warn("net", "clients ended that send or read too slowly", "least_bytes_per_second=%u ended=%u",
                 loop->shared->options.least_rate, times);
    }
}

void net_crowd_close_slow(net_conn *c) {
    net_crowd_count_slow(c->loop);
    net_conn_close(c);
}

typedef struct laggard {
    net_conn *conn;
    int64_t rate;
    size_t held_bytes;
} laggard;

static int by_rate(const void *a, const void *b) {
    int64_t x = ((const laggard *)a)->rate, y = ((const laggard *)b)->rate;
    return (x > y) - (x < y);
}

typedef bool (*progress_of)(net_conn *c, net_progress *progress_out);

/* A client that holds more memory has to be faster: otherwise a few large answers would keep all others waiting for memory. */
static int64_t least_rate(const net_conn *c, size_t held_bytes) {
    int64_t for_all = (int64_t)c->loop->shared->options.least_rate * SCARCE_FACTOR, for_held = (int64_t)held_bytes / SCARCE_S;
    return for_held > for_all ? for_held : for_all;
}

static bool lags(net_conn *c, progress_of progress, laggard *out) {
    net_progress p;
    if (c->phase == CLOSED || !progress(c, &p)) {
        return false;
    }
    int64_t ms = c->loop->now_ms - p.began_ms;
    *out = (laggard){c, p.moved_bytes * 1000 / (ms > 0 ? ms : 1), p.held_bytes};
    return ms >= RECLAIM_MS && out->rate < least_rate(c, p.held_bytes);
}

/* Closes connections, slowest first, until they have released `wanted` bytes. */
static void end_laggards(net_loop *loop, progress_of progress, size_t wanted, void (*end)(net_conn *c)) {
    laggard *list = mem_alloc(LAGGARDS_MAX * sizeof *list);
    size_t n = 0, freed = 0;
    for (net_conn *c = loop->conns; c && n < LAGGARDS_MAX; c = net_conn_next(c)) {
        n += lags(c, progress, &list[n]);
    }
    qsort(list, n, sizeof *list, by_rate);
    for (size_t i = 0; i < n && freed < wanted; i++) {
        freed += list[i].held_bytes;
        end(list[i].conn);
    }
    free(list);
}

static bool waiting(net_conn *c, net_progress *progress_out) {
    return net_conn_progress(c, progress_out) || (c->phase == OPEN && c->protocol->answering && c->protocol->answering(c, progress_out));
}

static bool sending(net_conn *c, net_progress *progress_out) {
    return c->phase == OPEN && c->protocol->receiving(c, progress_out);
}

static void end_sending(net_conn *c) {
    c->protocol->timed_out(c);
}

/* The part above three quarters of `max`. */
static size_t excess(size_t used, size_t max) {
    return used > max / 4 * 3 ? used - max / 4 * 3 : 0;
}

void net_crowd_reclaim(net_loop *loop) {
    budget_pool *buffers = &loop->shared->buffers;
    size_t answers = excess(atomic_load_explicit(&buffers->used, memory_order_relaxed), buffers->max);
    size_t bodies = excess(loop->input_bytes, loop->input_bytes_max);
    if (answers) {
        end_laggards(loop, waiting, answers, net_crowd_close_slow);
    }
    if (bodies) {
        end_laggards(loop, sending, bodies, end_sending);
    }
}
