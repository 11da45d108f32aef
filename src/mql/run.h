/* run.h — what evaluation in the MongoDB language needs besides values: memory, a budget of steps, variables, the time. */
#pragma once

#include "base/op.h"
#include "base/random.h"
#include "mql/value.h"

typedef struct mql_run {
    op *op;                         /* for error messages; its arena is not used for results */
    arena *arena;                   /* results live here; the caller resets it, after each document for example */
    uint64_t steps;                 /* counted down, in units of about 10 ns; at 0 evaluation fails with E_QUERY_TOO_LONG */
    mql_value root;                 /* the document: $$ROOT */
    mql_value *variables;           /* values of user-defined variables ($let, $map, the command's `let`), by their slots */
    int64_t now_ms;                 /* $$NOW */
    mql_value cluster_time;         /* $$CLUSTER_TIME, a timestamp; missing: not available */
    mql_value user_roles;           /* $$USER_ROLES, an array; missing: not available */
    mql_value metadata;             /* what {$meta: name} returns, a document: {textScore: 1.5}; missing: nothing */
    random_source *random;          /* $rand; NULL: the system's */
    const mql_collation *collation; /* NULL: strings compare by bytes */
} mql_run;

enum { MQL_STEPS_CHECK = 18 }; /* work gives way each time the steps below 2^18 are used up */

/* Pay before doing the work. */
MUST_CHECK static inline err mql_pay(mql_run *r, uint64_t steps) {
    if (steps > r->steps) {
        r->steps = 0;
        return E_QUERY_TOO_LONG;
    }
    uint64_t before = r->steps;
    r->steps -= steps;
    return ((before ^ r->steps) >> MQL_STEPS_CHECK) && r->op ? op_check(r->op) : OK; /* long work may be ended by others */
}

/* Fails with one of MongoDB's own codes, such as 2 (BadValue) or 17287, which reaches the client through op.protocol_code. */
#define mql_fail(o, mongo_code, ...) op_fail_as((o), E_BAD_REQUEST, (mongo_code), __VA_ARGS__)
