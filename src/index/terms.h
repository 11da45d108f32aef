/* terms.h — what an item's index entries are: its terms, by the container's policy.
 *
 * A *term* is a path and a spelled value (key.h). Each indexed scalar has one, each array and object on an indexed path one that says that
 * it is there, each composite index one; a shape has some for its cells, a text one for each of its words. What paths an item has, apart
 * from those inside arrays, is its *shape*: most items of a container have one of a few, and so the index can tell which items lack a
 * property. */
#pragma once

#include "index/policy.h"

/* ---- counting, for charges ---- */

/* How many terms a document is charged for: one of its own and two for each indexed scalar and composite. */
size_t index_terms(const index_policy *policy, slice document);

/* How many of them go or come when `after` takes the place of `before`. */
size_t index_terms_changed(arena *scratch, const index_policy *policy, slice before, slice after);

/* ---- the terms themselves ---- */

enum { INDEX_TERMS_MAX = 10000 };

typedef struct index_term {
    size_t at, n; /* in the list's bytes */
} index_term;

/* Made anew for one document after the other; keeps its memory. */
typedef struct index_list {
    buf bytes;
    index_term *terms;
    size_t n, cap;
    index_path *paths; /* of the shape, in no order */
    size_t paths_n, paths_cap;
    uint64_t shape;
    arena scratch;
    bool large;     /* more than INDEX_TERMS_MAX: none are listed */
    bool lean;      /* by a lean policy: _ts and the shape are not listed */
    size_t charged; /* what index_terms says of the document, by the same walk */
    size_t ts_at;   /* the term of _ts, if there is one; those of composites follow it */
} index_list;

void index_list_free(index_list *l);

/* `ts` is the item's _ts. A policy that is off leaves the list empty. */
void index_list_make(index_list *l, const index_policy *policy, slice document, uint32_t ts);

/* The same list for another _ts: policy and document are those it was made of. Before the shape is added. */
void index_list_set_ts(index_list *l, const index_policy *policy, slice document, uint32_t ts);

/* A list as it was made, in an arena: made on one thread, used on another. */
typedef struct index_kept {
    slice bytes;
    const index_term *terms;
    const index_path *paths;
    size_t n, paths_n;
    uint64_t shape;
    bool large, lean;
    size_t charged, ts_at;
} index_kept;
const index_kept *index_list_keep(arena *a, const index_list *l); /* NULL: the arena's budget has no room for it */
void index_list_restore(index_list *l, const index_kept *kept);

/* The term by which the item is found among those of its shape (`known`), of no known shape, or among the large ones. A lean list gets the
 * last one only. */
void index_list_add_shape(index_list *l, bool known);
void index_list_sort(index_list *l); /* in byte order, each once */

static inline slice index_list_term(const index_list *l, size_t i) {
    return slice_of(l->bytes.p + l->terms[i].at, l->terms[i].n);
}
