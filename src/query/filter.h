/* filter.h — custom filters: tests of an item that a front end implements, for what conditions cannot express.
 *
 * A filter is a kind, which is a small number that means the same on every node, and a BSON argument. The front end registers the kind's
 * functions at start. A find (find.h) names filters among its conditions. A filter is applied to the items that pass the other conditions,
 * on the find's thread, and shares the item's budget of steps. */
#pragma once

#include "base/op.h"
#include "item/container.h"

/* ---- kinds: add a line, never reuse a number ---- */

typedef enum query_filter_id {
    QUERY_FILTER_NONE = 0,
    QUERY_FILTER_ODATA = 1,  /* api/table/filter.h; the argument is {"text": an OData $filter} and bounds of keys */
    QUERY_FILTER_MONGO = 2,  /* api/mongo/filter_kind.h; the argument is a MongoDB filter, and what its expressions refer to */
    QUERY_FILTER_TESTS = 56, /* from here on: for unit tests */
    QUERY_FILTER_IDS = 64
} query_filter_id;

/* ---- input of a kind ---- */

typedef struct query_filter_input {
    slice body; /* the item, BSON */
    uint64_t number, version;
    uint32_t ts;
    slice argument;
    const void *ready;
    arena *arena; /* the row's: reset after the row */
} query_filter_input;

typedef struct query_filter_kind {
    uint16_t id;
    const char *name; /* for explain: "where" in filter("where") */
    /* Parses and checks an argument, once a page: E_BAD_REQUEST with a message. The result lives in the op's arena. NULL: the argument is
     * used as it is. */
    err (*prepare)(op *o, const container *c, slice argument, const void **ready_out);
    /* Whether an item passes. Decrements *steps by its work, in units of about 10 ns; at 0 it returns E_QUERY_TOO_LONG. Other errors end
     * the find. Must depend on its input only. */
    err (*passes)(op *o, const query_filter_input *in, uint64_t *steps, bool *passes_out);
} query_filter_kind;

/* Called at start, before the first find; registering the same kind again does nothing. The kind is not copied, and must stay valid. */
void query_filter_register(const query_filter_kind *kind);
const query_filter_kind *query_filter_kind_of(int64_t id); /* NULL: not registered */

/* One filter of a find, with its prepared argument. */
typedef struct query_filter {
    const query_filter_kind *kind;
    slice argument;
    const void *ready;
    bool implied; /* the key conditions beside it let through only items that pass, if no item has several keys */
} query_filter;
