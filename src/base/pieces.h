/* pieces.h — many bytes, in pieces of 64 KB.
 *
 * A large buffer moves while it grows, and the system maps and clears fresh memory for it, which costs as much as filling it. Pieces do not
 * move, and the pool keeps free ones to be used again, by any thread. One thread at a time uses a `pieces`. */
#pragma once

#include <sys/uio.h>

#include "base/buf.h"

enum { PIECE_BYTES = 64 * 1024, PIECE_SMALL_BYTES = 4 * 1024 };

typedef struct piece {
    char *p;
    size_t n, cap;
} piece;

typedef struct pieces {
    piece *list; /* from `first` on: whole pieces, in order */
    size_t first, end, room;
    size_t at;   /* bytes of the first piece that were dropped */
    size_t n;    /* bytes of the whole pieces, without the dropped ones */
    size_t held; /* memory of the whole pieces */
    buf tail;    /* follows them */
} pieces;

static inline pieces pieces_init(budget *b) {
    return (pieces){.tail = buf_init_counted(BUF_NO_LIMIT, b)};
}

void pieces_free(pieces *p); /* it can be used again */

/* The buffer to append to next. It has room for `about` bytes, and more bytes make it grow as usual. Up to PIECE_SMALL_BYTES in all it is a
 * buffer of its own, so that few bytes cost little. If the budget is exceeded it has overflowed. */
buf *pieces_room(pieces *p, size_t about);

void pieces_add(pieces *p, const char *bytes, size_t n); /* copies */
void pieces_adopt(pieces *p, buf *b);                    /* appends the buffer's memory, which leaves it empty */

void pieces_join(pieces *p, pieces *more); /* appends `more`, of which nothing was dropped, and leaves it empty */

static inline size_t pieces_bytes(const pieces *p) {
    return p->n + p->tail.n;
}

static inline size_t pieces_held(const pieces *p) {
    return p->held + p->tail.cap;
}

static inline bool pieces_ok(const pieces *p) {
    return buf_ok(&p->tail);
}

/* Counts the memory against another budget from now on; NULL: none. False: it exceeds that budget, and is counted all the same. */
bool pieces_recount(pieces *p, budget *b);

unsigned pieces_view(const pieces *p, struct iovec *views, unsigned max); /* the first bytes, in at most `max` views */
void pieces_drop(pieces *p, size_t n);                                    /* the first n bytes; frees pieces that are empty then */
void pieces_copy(const pieces *p, buf *out);

/* Frees pieces of the pool that were not needed since the last call. */
void pieces_trim(void);
size_t pieces_pooled(void); /* bytes in the pool */
