/* slice.h — a view of bytes: pointer and length, never owned, never zero-terminated.
 *
 * The function that returns a slice documents how long its bytes live; most live as long as the request's arena. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct slice {
    const char *p;
    size_t n;
} slice;

#define SLICE_EMPTY ((slice){0})
#define SLICE_LIT(s) ((slice){(s), sizeof(s) - 1})

static inline slice slice_of(const void *p, size_t n) {
    return (slice){(const char *)p, n};
}

static inline slice slice_str(const char *s) {
    return (slice){s, strlen(s)};
}

static inline bool slice_eq(slice a, slice b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The first byte is compared first, so that a list of names is passed through quickly. */
static inline bool slice_is(slice s, const char *text) {
    return s.n == 0 ? *text == 0 : *text == *s.p && slice_eq(s, slice_str(text));
}

/* Compares by bytes; a prefix sorts before longer slices. */
static inline int slice_cmp(slice a, slice b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static inline bool slice_starts(slice s, slice prefix) {
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline slice slice_skip(slice s, size_t n) {
    return n >= s.n ? (slice){s.p + s.n, 0} : (slice){s.p + n, s.n - n};
}

slice slice_cut(slice s, size_t max);            /* at most so many bytes of it, cut between UTF-8 characters */
int slice_shown(slice s);                        /* length for "%.*s" in messages: at most 200 bytes, cut between UTF-8 characters */
bool slice_eq_nocase(slice a, slice b);          /* ASCII only */
slice slice_trim(slice s);                       /* removes blanks at both ends */
size_t slice_ascii(slice s);                     /* bytes at its beginning that are ASCII; a few less than there are, or all */
bool slice_to_u64(slice s, uint64_t *value_out); /* the whole slice must be decimal digits, without overflow */
bool slice_to_i64(slice s, int64_t *value_out);
bool slice_take_be(slice *rest, size_t bytes, uint64_t *number_out); /* reads and skips a big-endian number of 1 to 8 bytes */
