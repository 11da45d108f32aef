/* key.h — keys of key indexes (index/policy.h) in a find: as an order, and as a condition.
 *
 * A key is the bytes that mql/key.h makes of an item. The order of a find may be that of the keys; a condition may be that an item has a
 * key within one of several spans. Both name the index whose entries they are about; if the container does not have it, items are tested
 * and sorted one by one. */
#pragma once

#include "index/policy.h"
#include "query/eval.h"

typedef struct query_key_span {
    slice from, to; /* keys at or after `from` and before `to`; `to` empty: no upper bound */
    bool point;     /* only the key `from` */
} query_key_span;

typedef struct query_key {
    const mql_index *pattern; /* makes the keys */
    index_path of;            /* the index that has them */
    slice name;               /* of that index, for explain */
    slice prefix;             /* an order within the entries that begin with this: the index has more paths in front of the pattern's */
    bool last;                /* an order: the last key, not the first, is the item's place */
    slice separate;           /* of `query.each`: keys that begin with this stand for one item only */
    const query_key_span *spans;
    size_t spans_n;
    const query_key_span *alone; /* narrower spans, for items with one key; alone_n 0: the same */
    size_t alone_n;
} query_key;

/* The key that is the item's place in the order, with its prefix. *key_out is empty if there is none. In the arena. */
MUST_CHECK err query_key_of_item(const query_key *k, op *o, arena *a, slice body, slice *key_out);

query_value query__eval_key(query_runner *r, const query_expr *e);
query_value query__eval_within(query_runner *r, const query_expr *e);
