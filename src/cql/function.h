/* function.h — the native functions and aggregates of CQL, casts and arithmetic, on values (cql/value.h).
 *
 * Everything here is scalar: it knows no rows. An aggregate is a state that takes one value per row. ttl() and writetime() are the front
 * end's, because they need the row. Numbers of all types are computed as Cassandra computes them: integers wrap around as Java's do, varint
 * and decimal are exact and of any size up to CQL_DIGITS_MAX digits, never doubles in their place.
 *
 * Pure functions but for now(), currentTimestamp(), uuid() and their kind, which take time and randomness from the run (cql/term.h). Errors
 * are E_BAD_REQUEST in Cassandra's words. */
#pragma once

#include "cql/term.h"

/* ---- scalar functions ---- */

typedef struct cql_function cql_function; /* static */

/* Finds a function by name and by the types of the arguments; an unknown type (NULL, of a bind marker or null) fits every parameter. A
 * name of two words is in `keyspace`, "system" or empty. `returns_out` depends on the arguments for some (toJson, token, min…).
 * `receiver` is the type that the result is for, or NULL: fromJson needs it. E_BAD_REQUEST: "Unknown function 'f'", "Invalid call to
 * function f, none of its type signatures match …". */
MUST_CHECK err cql_function_find(op *o, slice keyspace, slice name, const cql_type *const *arguments, uint32_t n, const cql_type *receiver,
                                 const cql_function **function_out, const cql_type **returns_out);

/* The type of parameter `i`, for a bind marker there; `known` are the types of the arguments. NULL: any type. */
const cql_type *cql_function_parameter(const cql_function *function, const cql_type *const *known, uint32_t n, uint32_t i);

/* Calls it. A null argument gives null, but for toJson, count and those that have no arguments. */
MUST_CHECK err cql_function_call(op *o, const cql_run *run, const cql_function *function, const cql_type *const *types,
                                 const cql_value *values, uint32_t n, const cql_type *returns, cql_value *value_out);

bool cql_function_is_aggregate(slice keyspace, slice name);  /* count, min, max, avg, sum */
bool cql_function_is_constant(const cql_function *function); /* the same result for the same arguments */
slice cql_function_name(const cql_function *function);       /* in Cassandra's capitals: "toTimestamp" */

/* ---- casts and arithmetic ---- */

/* cast(x AS type). E_BAD_REQUEST: "blob cannot be cast to int". */
MUST_CHECK err cql_cast(op *o, const cql_type *from, const cql_type *to, cql_value v, cql_value *value_out);

/* The type of x + y and so on: the wider of two numbers; a timestamp or date plus or minus a duration. NULL: there is no such operation,
 * with an error "the '+' operation is not supported between a and b". */
MUST_CHECK err cql_arithmetic_type(op *o, cql_term_kind operation, const cql_type *x, const cql_type *y, const cql_type **type_out);
MUST_CHECK err cql_arithmetic(op *o, cql_term_kind operation, const cql_type *x_type, cql_value x, const cql_type *y_type, cql_value y,
                              const cql_type *type, cql_value *value_out);
MUST_CHECK err cql_negate(op *o, const cql_type *type, cql_value v, cql_value *value_out);

/* ---- aggregates ---- */

typedef enum cql_aggregate_kind { CQL_COUNT_ROWS, CQL_COUNT, CQL_MIN, CQL_MAX, CQL_SUM, CQL_AVG } cql_aggregate_kind;

typedef struct cql_aggregate {
    cql_aggregate_kind kind;
    const cql_type *type; /* of the argument; NULL for count(*) */
    int64_t count;        /* rows; without nulls, but for count(*) */
    int64_t integer;      /* sum of integers; wraps around, as Java's does */
    double sum, lost;     /* sum of floats and doubles, and what rounding lost of it (Kahan) */
    cql_value value;      /* min, max; sum of a varint or decimal */
    char *room;           /* where `value` is, in the arena of the operation that added it; used again */
    size_t room_n;
} cql_aggregate;

/* E_BAD_REQUEST: there is no such aggregate for the type, as sum of text. `returns_out` is the result's type. */
MUST_CHECK err cql_aggregate_init(op *o, cql_aggregate *g, slice name, const cql_type *type, const cql_type **returns_out);
MUST_CHECK err cql_aggregate_add(op *o, cql_aggregate *g, cql_value v); /* one row */
MUST_CHECK err cql_aggregate_result(op *o, const cql_aggregate *g, cql_value *value_out);

/* ---- tokens ---- */

/* Cassandra's Murmur3Partitioner: the token of a partition key's bytes. Differs from MurmurHash3 in the last bytes, which Java extends with
 * their sign. Of an empty key, the smallest token. */
int64_t cql_token(slice key);

/* Appends the bytes of a partition key: one column's value alone; of several, each with its length and a zero byte. False: a value is
 * longer than 65535 bytes, and there are several. */
bool cql_partition_bytes(buf *out, const cql_value *values, uint32_t n);

/* ---- timeuuids ---- */

int64_t cql_timeuuid_ms(slice uuid); /* milliseconds since 1970 of a version 1 UUID */
void cql_timeuuid_make(random_source *random, int64_t now_us,
                       uint8_t uuid_out[16]); /* two calls never give the same; increasing in one thread */
