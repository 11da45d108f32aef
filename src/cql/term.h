/* term.h — terms with types: what a bind marker must be, and the value of a term.
 *
 * Two steps, because a statement is prepared once and executed many times:
 *
 *   cql_term_prepare   at PREPARE: checks that the term can be assigned to its receiver, and records the receiver of each bind marker
 *   cql_term_value     at execution: the value, with the bound values filled in
 *
 * A receiver is a column, an element, a limit, …: its name and its type. Errors are E_BAD_REQUEST with Cassandra's messages: `Invalid
 * STRING constant (a) for "v" of type int`. Pure functions but for now(), uuid() and their kind, which take time and randomness from the
 * run. */
#pragma once

#include "base/random.h"
#include "cql/ast.h"
#include "cql/value.h"

typedef struct cql_receiver {
    slice name; /* as shown by drivers and in errors */
    const cql_type *type;
} cql_receiver;

/* What execution has. Any member may be left zero if no function needs it. */
typedef struct cql_run {
    const cql_value *values; /* of the bind markers */
    uint32_t values_n;
    int64_t now_us;        /* wall clock, microseconds */
    random_source *random; /* for now() and uuid() */
    const cql_type_source *types;
} cql_run;

/* Checks a term against its receiver. `markers` has a place for each marker of the statement, and gets the receivers; NULL: do not
 * record. User types in hints and casts are found by `types`. */
MUST_CHECK err cql_term_prepare(op *o, const cql_type_source *types, const cql_term *term, const cql_receiver *receiver,
                                cql_receiver *markers);

/* The value of a term for a receiver. Bound values are checked (cql_value_check) and normalised. `unset` only if a marker was unset. */
MUST_CHECK err cql_term_value(op *o, const cql_run *run, const cql_term *term, const cql_receiver *receiver, cql_value *value_out);

/* The type that a term has by itself: of a function, hint, cast or arithmetic; of a constant, the type that Cassandra prefers. NULL,
 * without an error: it depends on the receiver (a bind marker, null, a string). */
MUST_CHECK err cql_term_type(op *o, const cql_type_source *types, const cql_term *term, const cql_type **type_out);

/* Whether the term contains a bind marker, or a function whose result differs from call to call. */
bool cql_term_is_constant(const cql_term *term);
