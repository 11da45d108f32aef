#include "base/pieces.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

/* ---- the pool ---- */

enum { POOL_PIECES = 256 };

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static char *pool[POOL_PIECES];
static size_t pool_n, pool_least; /* least: the smallest pool_n since the last trim */

static char *take_piece(void) {
    pthread_mutex_lock(&pool_lock);
    char *p = pool_n ? pool[--pool_n] : NULL;
    pool_least = pool_n < pool_least ? pool_n : pool_least;
    pthread_mutex_unlock(&pool_lock);
    return p ? p : mem_alloc(PIECE_BYTES);
}

static void give_piece(char *p, size_t cap) {
    pthread_mutex_lock(&pool_lock);
    bool kept = cap == PIECE_BYTES && pool_n < POOL_PIECES;
    if (kept) {
        pool[pool_n++] = p;
    }
    pthread_mutex_unlock(&pool_lock);
    if (!kept) {
        free(p);
    }
}

void pieces_trim(void) {
    char *spare[POOL_PIECES];
    size_t n;
    pthread_mutex_lock(&pool_lock);
    n = pool_least;
    for (size_t i = 0; i < n; i++) {
        spare[i] = pool[--pool_n];
    }
    pool_least = pool_n;
    pthread_mutex_unlock(&pool_lock);
    while (n) {
        free(spare[--n]);
    }
}

size_t pieces_pooled(void) {
    pthread_mutex_lock(&pool_lock);
    size_t n = pool_n;
    pthread_mutex_unlock(&pool_lock);
    return n * PIECE_BYTES;
}

/* ---- pieces ---- */

static void append(pieces *p, piece one) {
    if (p->first && p->end == p->room) {
        memmove(p->list, p->list + p->first, (p->end - p->first) * sizeof *p->list);
        p->end -= p->first;
        p->first = 0;
    }
    if (p->end == p->room) {
        p->room = p->room ? 2 * p->room : 16;
        p->list = mem_resize(p->list, p->room * sizeof *p->list);
    }
    p->list[p->end++] = one;
    p->n += one.n;
    p->held += one.cap;
}

/* The tail becomes a whole piece. What it counted stays counted. */
static void seal(pieces *p) {
    buf *tail = &p->tail;
    if (tail->n) {
        append(p, (piece){tail->p, tail->n, tail->cap});
        tail->p = NULL;
        tail->n = tail->cap = 0;
    }
}

static void release(piece *one, budget *b) {
    give_piece(one->p, one->cap);
    if (b) {
        budget_give(b, one->cap);
    }
}

static void free_tail(pieces *p) {
    if (p->tail.cap == PIECE_BYTES) {
        release(&(piece){p->tail.p, 0, p->tail.cap}, p->tail.budget);
        p->tail = buf_init_counted(BUF_NO_LIMIT, p->tail.budget);
    } else {
        buf_free(&p->tail);
    }
}

void pieces_free(pieces *p) {
    for (size_t i = p->first; i < p->end; i++) {
        release(&p->list[i], p->tail.budget);
    }
    free(p->list);
    free_tail(p);
    *p = pieces_init(p->tail.budget);
}

/* Lends the empty tail a piece of the pool. */
static bool begin_piece(buf *tail) {
    if (tail->budget && !budget_take(tail->budget, PIECE_BYTES)) {
        tail->overflow = true;
        return false;
    }
    tail->p = take_piece();
    tail->cap = PIECE_BYTES;
    return true;
}

/* The few bytes that came before move to a piece of the pool. */
static void outgrow_small(pieces *p) {
    buf small = p->tail;
    p->tail = buf_init_counted(BUF_NO_LIMIT, small.budget);
    begin_piece(&p->tail);
    buf_add(&p->tail, small.p, small.n);
    buf_free(&small);
}

buf *pieces_room(pieces *p, size_t about) {
    buf *tail = &p->tail;
    bool small = p->end == p->first && tail->n + about <= PIECE_SMALL_BYTES;
    if (small || tail->overflow || tail->cap - tail->n >= about) {
        return tail;
    }
    if (tail->cap && tail->cap < PIECE_BYTES) {
        outgrow_small(p);
    }
    if (!tail->overflow && tail->cap - tail->n < about) {
        seal(p);
        if (!tail->cap) { /* otherwise it is empty, and grows for what does not fit into one piece */
            begin_piece(tail);
        }
    }
    return tail;
}

void pieces_add(pieces *p, const char *bytes, size_t n) {
    while (n && pieces_ok(p)) {
        buf *tail = pieces_room(p, n <= PIECE_SMALL_BYTES ? n : PIECE_SMALL_BYTES + 1);
        size_t room = tail->cap - tail->n, part = n <= PIECE_SMALL_BYTES || n < room ? n : room;
        buf_add(tail, bytes, part);
        bytes += part;
        n -= part;
    }
}

void pieces_adopt(pieces *p, buf *b) {
    seal(p);
    if (p->tail.budget) {
        budget_force(p->tail.budget, b->cap);
    }
    piece one = {.cap = b->cap};
    one.p = buf_take(b, &one.n);
    append(p, one);
}

void pieces_join(pieces *p, pieces *more) {
    assert(more->at == 0);
    budget *own = more->tail.budget;
    seal(p);
    seal(more);
    pieces_recount(more, p->tail.budget);
    for (size_t i = more->first; i < more->end; i++) {
        append(p, more->list[i]);
    }
    more->first = more->end;
    more->n = more->held = 0;
    pieces_free(more);
    more->tail.budget = own;
}

bool pieces_recount(pieces *p, budget *b) {
    budget *before = p->tail.budget;
    size_t held = pieces_held(p);
    bool fits = !b || budget_take(b, held);
    if (!fits) {
        budget_force(b, held);
    }
    if (before) {
        budget_give(before, held);
    }
    p->tail.budget = b;
    return fits;
}

unsigned pieces_view(const pieces *p, struct iovec *views, unsigned max) {
    unsigned n = 0;
    for (size_t i = p->first; i < p->end && n < max; i++) {
        size_t at = i == p->first ? p->at : 0;
        views[n++] = (struct iovec){.iov_base = p->list[i].p + at, .iov_len = p->list[i].n - at};
    }
    if (n < max && p->tail.n) {
        views[n++] = (struct iovec){.iov_base = p->tail.p, .iov_len = p->tail.n};
    }
    return n;
}

/* A large piece that is mostly dropped moves to a smaller one. */
static void shrink_first(pieces *p) {
    piece *one = &p->list[p->first];
    if (p->first == p->end || p->at <= PIECE_BYTES || p->at <= one->n - p->at) {
        return;
    }
    piece rest = {.n = one->n - p->at, .cap = one->n - p->at};
    rest.p = mem_alloc(rest.cap);
    memcpy(rest.p, one->p + p->at, rest.n);
    if (p->tail.budget) {
        budget_give(p->tail.budget, one->cap - rest.cap);
    }
    p->held -= one->cap - rest.cap;
    free(one->p);
    *one = rest;
    p->at = 0;
}

void pieces_drop(pieces *p, size_t n) {
    seal(p);
    while (n && p->first < p->end) {
        piece *one = &p->list[p->first];
        size_t left = one->n - p->at, part = n < left ? n : left;
        p->n -= part;
        p->at += part;
        n -= part;
        if (p->at == one->n) {
            p->held -= one->cap;
            release(one, p->tail.budget);
            p->first++;
            p->at = 0;
        }
    }
    shrink_first(p);
}

void pieces_copy(const pieces *p, buf *out) {
    for (size_t i = p->first; i < p->end; i++) {
        size_t at = i == p->first ? p->at : 0;
        buf_add(out, p->list[i].p + at, p->list[i].n - at);
    }
    buf_add(out, p->tail.p, p->tail.n);
}
