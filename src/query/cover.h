/* cover.h — queries that index entries answer without loading items: aggregates, groups and distinct values of one path, and counts of
 * items that the conditions alone decide.
 *
 * Instead of an item, such a query evaluates a document with that one property, and is told how many items it stands for. */
#pragma once

#include "find/index_access.h"
#include "query/demand.h"

find_cover query_cover_of(const query *q);

/* The path that the keys of groups, or distinct values, begin with. Keys are ordered by its value first, so walking its index entries
 * visits the keys in their order. */
typedef struct query_lead {
    find_lead by;
    slice member; /* if keys are objects: the member that holds the value */
} query_lead;

query_lead query_lead_of(const query *q);

/* The value in a key. An object key has a member for each column that is defined. */
query_value query_lead_value(const query_lead *l, const query_value *key);

/* Appends the common prefix of all index encodings that the index cannot distinguish from this key's value. */
void query_lead_encode(const query_lead *l, const query_value *key, buf *out);

/* The key for an encoded value. False: the encoding does not hold the full value, or the key has further values. */
bool query_lead_key(arena *a, const query_lead *l, slice spelled, query_value *key_out);

/* Decodes an index value, and sets *n_out to the bytes it takes. False: the encoding does not hold the full value (for a Decimal128 an
 * equal one is still returned). Text is copied to the arena. */
bool query_value_decode(arena *a, slice spelled, query_value *value_out, size_t *n_out);

/* A document with this encoded value at the path; without any property if the value is empty. *ts_out is set if the path is _ts. False: the
 * entry does not hold the value, so the item must be loaded. */
bool query_cover_item(arena *a, const find_cover *c, slice spelled, slice *body_out, uint32_t *ts_out);
