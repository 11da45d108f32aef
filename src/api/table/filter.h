/* filter.h — within api/table: OData's $filter: parsed, evaluated on an entity, and translated for the core's index.
 *
 *   or      = and { "or" and }
 *   and     = unary { "and" unary }
 *   unary   = "not" unary | "(" or ")" | comparison | property        a property alone must be true
 *   comparison = property op literal | literal op property            op: eq ne gt ge lt le
 *   literal = 'text' | 5 | 5L | 5.5 | true | false | datetime'…' | guid'…' | X'…' | binary'…'
 *
 * A comparison with a property that is not there is false, also with ne. Numbers of all types compare by value; values of other different
 * types are unequal and have no order. The tree lives in the arena that it was parsed in; otherwise pure functions, any thread. */
#pragma once

#include "access/sas.h"
#include "api/table/edm.h"
#include "api/table/errors.h"

typedef enum filter_kind { FILTER_OR, FILTER_AND, FILTER_NOT, FILTER_COMPARE } filter_kind;
typedef enum filter_operator { FILTER_EQ, FILTER_NE, FILTER_GT, FILTER_GE, FILTER_LT, FILTER_LE, FILTER_OPERATORS } filter_operator;

typedef struct filter filter;
struct filter {
    filter_kind kind;
    filter *left, *right; /* or, and; not: only left */
    slice name;           /* compare */
    filter_operator op;
    edm_value value;
};

/* An empty text is no filter: *filter_out is NULL. TABLE_INVALID_INPUT with a sentence that says where. */
table_error filter_parse(op *o, slice text, const filter **filter_out);

/* Looks up a property. False: it is not there. */
typedef bool (*filter_get)(const void *context, slice name, edm_value *value_out);

/* NULL passes everything. */
bool filter_passes(const filter *f, filter_get get, const void *context);

/* ---- entities ---- */

/* A stored entity, as filter_get of filter_entity_get. */
typedef struct filter_entity {
    slice body;
    uint64_t version;
    uint32_t ts;
} filter_entity;
bool filter_entity_get(const void *entity, slice name, edm_value *value_out);

/* Also within the bounds of a shared access signature; NULL: none. */
bool filter_accepts(const filter *f, const access_sas *bounds, const filter_entity *entity);

/* ---- what the core can use ---- */

/* What a filter requires of a key; both ends may be given. */
typedef struct filter_bound {
    bool given, exclusive;
    slice value;
} filter_bound;

typedef struct filter_keys {
    bool one_partition; /* PartitionKey must equal from.value */
    filter_bound partition_from, partition_to, row_from, row_to;
} filter_keys;

/* What every entity that passes must satisfy. */
filter_keys filter_keys_of(const filter *f);

/* Whether an index can narrow down what passes, other than by the keys. Not for NULL. */
bool filter_narrows(const filter *f);

/* Whether a part of the filter that an index can answer excludes the entity. */
bool filter_excludes(const filter *f, const filter_entity *entity);

/* Conditions for a find (query/find.h) that pass what the filter passes, and nothing else: those that an index can answer (without the
 * PartitionKey, if the find is of one partition), and a custom filter (QUERY_FILTER_ODATA) for the exact test. BSON in the op's arena;
 * empty: all entities. `text` is the filter's. */
slice filter_conditions(op *o, const filter *f, slice text, bool one_partition, const access_sas *bounds);

void filter_register(void); /* registers QUERY_FILTER_ODATA; at start */
