/* Who stays when there are too many: connections that have not authenticated, and clients that read too slowly.
 *
 *   accepted ── untrusted ── net_conn_trust ──► trusted: ends by itself, or after idle_timeout_ms
 *                  ├── nothing to do for untrusted_timeout_ms ──► closed
 *                  ├── a newcomer needs its place, and it is the loop's oldest ──► closed
 *                  └── it is the newcomer, and nobody can make room ──► surplus: told so, then closed
 *
 * Every newcomer is untrusted, a good client too: so, when all places are taken, it is let in at the cost of the oldest untrusted one,
 * which has had its time to authenticate. A loop knows its own connections only; when all places are taken, newcomers are dealt to the
 * loop that has most untrusted ones. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "net/conn_int.h"

enum {
    SURPLUS_MAX = 64,    /* connections that are told why they are refused; more are just closed */
    SURPLUS_MS = 1000,   /* how long such a one may take to send its first byte */
    RECLAIM_MS = 2000,   /* the time to judge a reader by when memory is scarce */
    COMPLAIN_MS = 10000, /* between two log lines of a kind */
};

unsigned net_complain(net_complaint *c, int64_t now_ms) {
    atomic_fetch_add_explicit(&c->total, 1, memory_order_relaxed);
    int64_t said = atomic_load_explicit(&c->said_ms, memory_order_relaxed);
    if ((said && now_ms - said < COMPLAIN_MS) ||
        !atomic_compare_exchange_strong_explicit(&c->said_ms, &said, now_ms, memory_order_relaxed, memory_order_relaxed)) {
        return 0;
    }
    uint64_t total = atomic_load_explicit(&c->total, memory_order_relaxed);
    return (unsigned)(total - atomic_exchange_explicit(&c->told, total, memory_order_relaxed));
}

/* ---- the untrusted, the oldest first ---- */

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

/* One whose request is being worked on stays: it is about to be answered. */
static net_conn *oldest_but(net_conn *newcomer) {
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
    unsigned times = net_complain(&shared->full, c->loop->now_ms);
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
        net_conn *oldest = oldest_but(c);
        if (!oldest) {
            break;
        }
        net_conn_close(oldest);
        unsigned times = net_complain(&shared->displaced, loop->now_ms);
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

/* ---- slow readers ---- */

typedef struct reader {
    net_conn *conn;
    int64_t rate;
} reader;

static int by_rate(const void *a, const void *b) {
    int64_t x = ((const reader *)a)->rate, y = ((const reader *)b)->rate;
    return (x > y) - (x < y);
}

static bool is_judged(const net_conn *c) {
    return c->queue && c->phase != CLOSED && c->loop->now_ms - c->queue->began_ms >= RECLAIM_MS;
}

/* Those that read more slowly than they must, the slowest first. */
static size_t find_slow(net_loop *loop, reader *into, size_t max) {
    size_t n = 0;
    for (net_conn *c = loop->conns; c && n < max; c = net_conn_next(c)) {
        int64_t rate = is_judged(c) ? net_conn_read_rate(c) : INT64_MAX;
        if (rate < (int64_t)loop->shared->options.least_rate) {
            into[n++] = (reader){c, rate};
        }
    }
    qsort(into, n, sizeof *into, by_rate);
    return n;
}

void net_crowd_slow(net_conn *c) {
    unsigned times = net_complain(&c->loop->shared->slow, c->loop->now_ms);
    if (times) {
        log_warn("net", "clients closed that read too slowly", "least_bytes_per_second=%u closed=%u", c->loop->shared->options.least_rate,
                 times);
    }
    net_conn_close(c);
}

void net_crowd_reclaim(net_loop *loop) {
    enum { READERS_MAX = 1024 }; /* of one tick */
    budget_pool *memory = &loop->shared->buffers;
    size_t enough = memory->max / 4 * 3, used = atomic_load_explicit(&memory->used, memory_order_relaxed);
    if (used <= enough) {
        return;
    }
    reader *slow = mem_alloc(READERS_MAX * sizeof *slow);
    size_t n = find_slow(loop, slow, READERS_MAX);
    for (size_t i = 0; i < n && used > enough; i++) {
        size_t frees = slow[i].conn->queue->weighed;
        used -= frees < used ? frees : used;
        net_crowd_slow(slow[i].conn);
    }
    free(slow);
}
