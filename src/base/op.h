/* op.h — what travels with one operation through all layers: its memory, its time, its charge, its error's sentence.
 *
 * A front end makes one per request. The charge only goes up (op_charge); prices are in throughput/charge.h. */
#pragma once

#include <stdarg.h>

#include "base/arena.h"
#include "base/err.h"

/* Check points of long work, some hundred microseconds apart: there the scheduler lets other work run, and tells the work to end if its
 * client has left. */
typedef struct op_turn op_turn;
struct op_turn {
    err (*check)(op_turn *turn); /* OK: go on */
    int64_t waited_us;           /* in all, while other work ran; does not count against this work's time limit */
};

typedef struct op {
    arena *arena;              /* bytes made for this operation; gone when it ends */
    budget *budget;            /* that its memory is counted against; NULL: not bounded, the server's own work */
    op_turn *turn;             /* NULL: it is not interrupted */
    int64_t now_s;             /* wall clock at arrival, seconds */
    int64_t arrived_us;        /* monotonic; 0: not measured */
    bool low_priority;         /* refused first when throughput is short */
    uint8_t throughput_bucket; /* the throughput bucket it names, 1 to 5; 0: none */
    bool strong;               /* reads ask two replicas: they cost twice */
    bool admitted;             /* what it still does is part of what was admitted already */
    double charge_ru;
    uint32_t retry_after_ms; /* with E_THROTTLED */
    char detail[1024];       /* the exact sentence of the error; empty: the list's */
    uint32_t detail_n;
} op;

static inline void op_init(op *o, arena *a, int64_t now_s) {
    o->arena = a;
    o->budget = a ? a->budget : NULL;
    o->turn = NULL;
    o->now_s = now_s;
    o->arrived_us = 0;
    o->low_priority = o->strong = o->admitted = false;
    o->throughput_bucket = 0;
    o->charge_ru = 0;
    o->retry_after_ms = 0;
    o->detail_n = 0;
}

static inline void op_charge(op *o, double ru) {
    o->charge_ru += ru;
}

static inline err op_check(op *o) {
    return o->turn ? o->turn->check(o->turn) : OK;
}

/* By how much the work's deadline moves, because other work ran meanwhile. Bounded, since a client waits. */
enum { OP_WAITED_US_MAX = 10000000 };
static inline int64_t op_waited_us(const op *o) {
    int64_t waited = o->turn ? o->turn->waited_us : 0;
    return waited < OP_WAITED_US_MAX ? waited : OP_WAITED_US_MAX;
}

/* Notes the sentence and returns the code, so that callers write: return op_fail(o, E_CONFLICT, "…"). A sentence too long is cut. */
err op_fail(op *o, err code, const char *format, ...) __attribute__((format(printf, 3, 4)));
