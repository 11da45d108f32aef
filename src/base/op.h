/* op.h — the context of one operation in all layers: its memory, time, charge and error message.
 *
 * A front end makes one per request. The charge never decreases (op_charge); prices are in throughput/charge.h. */
#pragma once

#include <stdarg.h>

#include "base/arena.h"
#include "base/err.h"

/* Check points of long work, some hundred microseconds apart. There the scheduler lets other work run, and ends the work if its client has
 * left. */
typedef struct op_turn op_turn;
struct op_turn {
    err (*check)(op_turn *turn); /* OK: continue */
    int64_t waited_us;           /* total time spent waiting for other work; does not count against this work's time limit */
};

typedef struct op {
    arena *arena;              /* memory of this operation, freed when it ends */
    budget *budget;            /* counts its memory; NULL: unlimited, for the server's own work */
    op_turn *turn;             /* NULL: it never gives way */
    int64_t now_s;             /* wall clock at arrival, seconds */
    int64_t arrived_us;        /* monotonic; 0: not measured */
    bool low_priority;         /* refused first when throughput is short */
    uint8_t throughput_bucket; /* the throughput bucket that the request names, 1 to 5; 0: none */
    bool strong;               /* strong reads: charged twice, as for two replicas */
    bool admitted;             /* already admitted: its further work is not admitted again */
    double charge_ru;
    uint32_t retry_after_ms; /* set with E_THROTTLED */
    int32_t protocol_code;   /* the error's code in the front end's protocol; 0: the one in the list of errors */
    char detail[1024];       /* the exact error message; empty: use the one in the list of errors */
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
    o->protocol_code = 0;
    o->detail_n = 0;
}

static inline void op_charge(op *o, double ru) {
    o->charge_ru += ru;
}

static inline err op_check(op *o) {
    return o->turn ? o->turn->check(o->turn) : OK;
}

/* How much the work's deadline is postponed because other work ran meanwhile. Bounded, since a client waits. */
enum { OP_WAITED_US_MAX = 10000000 };
static inline int64_t op_waited_us(const op *o) {
    int64_t waited = o->turn ? o->turn->waited_us : 0;
    return waited < OP_WAITED_US_MAX ? waited : OP_WAITED_US_MAX;
}

/* Stores the error message and returns the code, so that callers can write: return op_fail(o, E_CONFLICT, "…"). A long message is
 * truncated. */
err op_fail(op *o, err code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, with a code of the front end's own protocol, for errors that only its language has. */
err op_fail_as(op *o, err code, int32_t protocol_code, const char *format, ...) __attribute__((format(printf, 4, 5)));
