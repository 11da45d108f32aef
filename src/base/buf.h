/* buf.h — a growing byte buffer with a limit.
 *
 * The limit is set when the buffer is made. Exceeding it sets `overflow`, after which appends do nothing: check once, at the end, with
 * buf_ok(). Running out of memory ends the process (see docs/architecture.md, "Memory"). Exceeding a limit is caused by the client, and
 * becomes an error in the protocol's own form. */
#pragma once

#include <stdarg.h>

#include "base/budget.h"
#include "base/slice.h"

typedef struct buf {
    char *p;
    size_t n;
    size_t cap;
    size_t max;
    bool overflow;
    budget *budget; /* counts its memory, and limits it too; NULL: none */
} buf;

#define BUF_NO_LIMIT SIZE_MAX

static inline buf buf_init(size_t max) {
    return (buf){.max = max};
}

static inline buf buf_init_counted(size_t max, budget *b) {
    return (buf){.max = max, .budget = b};
}

void buf_free(buf *b);                 /* frees the memory; the buffer can be used again */
bool buf_grow(buf *b, size_t more);    /* makes room for `more` bytes; false: the limit is exceeded */
char *buf_take(buf *b, size_t *n_out); /* returns the bytes, which the caller frees and the budget no longer counts; empties the buffer */

static inline bool buf_ok(const buf *b) {
    return !b->overflow;
}

static inline slice buf_view(const buf *b) { /* valid until the next append */
    return (slice){b->p, b->n};
}

static inline void buf_clear(buf *b) { /* keeps the memory */
    b->n = 0;
    b->overflow = false;
}

static inline bool buf_reserve(buf *b, size_t more) {
    return b->cap - b->n >= more ? !b->overflow : buf_grow(b, more);
}

static inline void buf_add(buf *b, const void *p, size_t n) {
    if (n && buf_reserve(b, n)) {
        memcpy(b->p + b->n, p, n);
        b->n += n;
    }
}

static inline void buf_add_slice(buf *b, slice s) {
    buf_add(b, s.p, s.n);
}

static inline void buf_add_byte(buf *b, char c) {
    if (buf_reserve(b, 1)) {
        b->p[b->n++] = c;
    }
}

#define buf_add_lit(b, s) buf_add((b), (s), sizeof(s) - 1)

void buf_add_u64(buf *b, uint64_t value); /* decimal */
void buf_add_i64(buf *b, int64_t value);
void buf_add_hex(buf *b, slice bytes); /* upper case */
void buf_addf(buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_addv(buf *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* Big-endian integers: they sort by value when compared as bytes, as keys need. */
void buf_add_be32(buf *b, uint32_t value);
void buf_add_be64(buf *b, uint64_t value);
