/* filter.h — filters that conditions cannot say: a front end's own test of an item, as data.
 *
 * A filter is a kind, which is a small number that means the same on every node, and a BSON argument. The front end that knows the kind
 * registers its functions once, at start. A find (find.h) names filters among its conditions; each is asked of the items that the other
 * conditions leave, on the find's own thread (a worker), and shares the item's budget of steps. */
#pragma once

#include "base/op.h"
#include "item/container.h"

/* ---- kinds: add a line, never reuse a number ---- */

typedef enum query_filter_id {
    QUERY_FILTER_NONE = 0,
    QUERY_FILTER_TESTS = 56, /* from here on: of unit tests */
    QUERY_FILTER_IDS = 64
} query_filter_id;

/* ---- what a kind is given ---- */

typedef struct query_filter_input {
    slice body; /* the item, BSON */
    uint64_t number, version;
    uint32_t ts;
    slice argument;
    const void *ready;
    arena *arena; /* of the row: what is made in it is gone with the row */
} query_filter_input;

typedef struct query_filter_kind {
    uint16_t id;
    const char *name; /* for explain: "where" in filter("where") */
    /* Reads and checks an argument, once for each page: E_BAD_REQUEST with a sentence. What it makes lives in the op's arena. NULL: the
     * argument is used as it is. */
    err (*prepare)(op *o, const container *c, slice argument, const void **ready_out);
    /* Whether an item passes. Pays for its work in steps of about 10 ns by counting *steps down; at 0 it returns E_QUERY_TOO_LONG. Other
     * errors end the find. Called with many items; must depend on nothing but its input. */
    err (*passes)(op *o, const query_filter_input *in, uint64_t *steps, bool *passes_out);
} query_filter_kind;

/* At start, before the first find; again with the same kind does nothing. The kind is the caller's and stays where it is. */
void query_filter_register(const query_filter_kind *kind);
const query_filter_kind *query_filter_kind_of(int64_t id); /* NULL: nobody registered it */

/* One filter of a find, ready to be asked. */
typedef struct query_filter {
    const query_filter_kind *kind;
    slice argument;
    const void *ready;
} query_filter;
