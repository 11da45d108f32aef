/* cover.h — queries that need not load items: aggregates, groups and distinct values of one path, whose index entries tell all of it, and
 * counts of what conditions decide.
 *
 * What such a query is given in place of an item is a document with that one property, and how many items it stands for. */
#pragma once

#include "find/access.h"
#include "query/demand.h"

find_cover query_cover_of(const query *q);

/* What the keys of groups, or distinct values, begin with: a path of the item. Keys are ordered by its values first, so whoever walks its
 * index entries comes to the keys in their order. */
typedef struct query_lead {
    find_lead by;
    slice member; /* if keys are objects: this member of them is the value */
} query_lead;

query_lead query_lead_of(const query *q);

/* The value in a key, which has a member for each column that is defined. */
query_value query_lead_value(const query_lead *l, const query_value *key);

/* The common beginning of all spellings that the index does not tell apart from this key's value. */
void query_lead_spell(const query_lead *l, const query_value *key, buf *out);

/* The key of this spelled value; false: it is not told whole, or is not all of the key. */
bool query_lead_key(arena *a, const query_lead *l, slice spelled, query_value *key_out);

/* The value of a spelling and how many bytes that takes; false: it is not told whole (of a Decimal128 one that is equal comes out all the
 * same). Text is copied. */
bool query_value_spelled(arena *a, slice spelled, query_value *value_out, size_t *n_out);

/* The document that has this spelled value at the path; an empty value: has nothing there. `ts` is set if the path is _ts. False: the entry
 * does not tell the value, ask the item. */
bool query_cover_item(arena *a, const find_cover *c, slice spelled, slice *body_out, uint32_t *ts_out);
