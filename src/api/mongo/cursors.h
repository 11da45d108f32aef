/* cursors.h — open cursors: what getMore continues. Shared by all loops.
 *
 * A request takes a cursor out of the table while it works with it, so a cursor is used by one request at a time; a cursor that is killed
 * meanwhile is freed when it is given back. Cursors that nobody has used for ten minutes are closed; with noCursorTimeout, for half an
 * hour, as long as a session lasts. Their number and the memory that they hold are bounded, for all clients of one key by half of that: so
 * a flood of cursors with one key leaves room for the others. Ids are random, so that they cannot be guessed. Any thread. */
#pragma once

#include "api/mongo/find.h"

typedef struct mongo_cursors mongo_cursors;
typedef struct mongo_cursor mongo_cursor;

struct mongo_cursor {
    int64_t id;     /* 0: not in the table */
    uint64_t owner; /* serial of the account key that its client has used; only clients with that key may use the cursor */
    slice ns;       /* "database.collection" */
    budget memory;  /* counts everything below */
    arena arena;    /* everything that the find refers to */

    container *container; /* a reference; NULL: all results are in `held` */
    mongo_find find;
    buf position; /* where the find continues; empty: at the beginning */
    bool ended;   /* the find has no more documents */

    buf held; /* results that were computed ahead: documents, one after the other */
    size_t held_at;
    struct mongo_aggregation *aggregation; /* aggregate.h; NULL: a find */
    struct mongo_stream *stream;           /* change_stream.h; NULL: it is none */
    bool no_timeout;
    int64_t limit_ms; /* what is left of maxTimeMS; 0: there is no limit */

    struct mongo_cursor_link *link; /* private to cursors.c */
};

enum {
    MONGO_CURSORS_MAX = 10000,
    MONGO_CURSOR_IDLE_S = 600,
    MONGO_CURSOR_IDLE_LONG_S = 1800,
    MONGO_CURSOR_MEMORY_OWN =
        64 * 1024, /* more than this is drawn from the pool of requests, so that many small cursors do not use it up */
};
#define MONGO_CURSORS_HELD_MAX ((size_t)512 << 20)
#define MONGO_CURSOR_MEMORY_MAX ((size_t)256 << 20) /* of one cursor */

mongo_cursors *mongo_cursors_new(void);
void mongo_cursors_clear(mongo_cursors *t); /* while no request is served */
void mongo_cursors_free(mongo_cursors *t);
void mongo_cursors_tick(mongo_cursors *t, int64_t now_us); /* closes idle cursors */
size_t mongo_cursors_open(mongo_cursors *t);               /* number of open cursors */

mongo_cursor *mongo_cursor_new(slice ns, uint64_t owner, budget_pool *pool);
void mongo_cursor_free(mongo_cursor *c);

/* Gives the cursor an id and keeps it. E_BUSY_MEMORY: too many are open; the caller still has the cursor. */
MUST_CHECK err mongo_cursors_add(mongo_cursors *t, mongo_cursor *c, int64_t now_us);

typedef enum cursor_state { CURSOR_TAKEN, CURSOR_UNKNOWN, CURSOR_BUSY, CURSOR_OF_ANOTHER } cursor_state;

/* Takes a cursor out; give it back or free it. */
cursor_state mongo_cursors_take(mongo_cursors *t, int64_t id, uint64_t owner, mongo_cursor **cursor_out);
void mongo_cursors_give(mongo_cursors *t, mongo_cursor *c, int64_t now_us); /* back into the table; freed if it was killed meanwhile */
void mongo_cursors_drop(mongo_cursors *t, mongo_cursor *c);                 /* frees a cursor that was taken and has ended */

cursor_state mongo_cursors_kill(mongo_cursors *t, int64_t id, uint64_t owner); /* CURSOR_TAKEN: it is gone */
