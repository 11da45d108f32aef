/* terms.h — the terms of an item, of which its index entries are made, by the container's policy.
 *
 * A *term* is a path and a spelled value (entry_key.h). There is one for each indexed scalar, for each array and object at an indexed path
 * (which only says that it exists), for each composite index, for each cell of a GeoJSON shape and for each word of a text. The set of
 * paths of an item, apart from those inside arrays, is its *shape*. Most items of a container share a few shapes, so the index can tell
 * which items lack a property. */
#pragma once

#include "index/policy.h"

/* ---- counting, for charges ---- */

/* The number of terms a document is charged for: one for the item and two for each indexed scalar and composite. */
size_t index_terms(const index_policy *policy, slice document);

/* The number of those terms that are removed or added if `after` replaces `before`. */
size_t index_terms_changed(arena *scratch, const index_policy *policy, slice before, slice after);

/* ---- the terms themselves ---- */

enum { INDEX_TERMS_MAX = 10000 };

typedef struct index_term {
    size_t at, n; /* offset and length in the list's `bytes` */
} index_term;

/* Reused from document to document; keeps its memory. */
typedef struct index_list {
    buf bytes;
    index_term *terms;
    size_t n, cap;
    index_path *paths; /* the shape's paths, unsorted */
    size_t paths_n, paths_cap;
    uint64_t shape;
    arena scratch;
    bool large;     /* more than INDEX_TERMS_MAX terms, so none are listed */
    bool lean;      /* the policy is lean: _ts and the shape are not listed */
    size_t charged; /* what index_terms returns for the document, counted in the same pass */
    size_t ts_at;   /* index of the term of _ts (absent if lean); those of composites follow it */
} index_list;

void index_list_free(index_list *l);

/* `ts` is the item's _ts. A policy that is off leaves the list empty. */
void index_list_make(index_list *l, const index_policy *policy, slice document, uint32_t ts);

/* Changes the list to another _ts. Policy and document must be those that it was made from. Call it before index_list_add_shape. */
void index_list_set_ts(index_list *l, const index_policy *policy, slice document, uint32_t ts);

/* A copy of a list in an arena, so that one thread can make a list and another use it. */
typedef struct index_kept {
    slice bytes;
    const index_term *terms;
    const index_path *paths;
    size_t n, paths_n;
    uint64_t shape;
    bool large, lean;
    size_t charged, ts_at;
} index_kept;
const index_kept *index_list_keep(arena *a, const index_list *l); /* NULL if it does not fit the arena's budget */
void index_list_restore(index_list *l, const index_kept *kept);

/* Adds the term that records the item's shape (0 if the shape is not `known`), or that the item is large. A lean list only gets the term
 * for large items. */
void index_list_add_shape(index_list *l, bool known);
void index_list_sort(index_list *l); /* in byte order, without duplicates */

static inline slice index_list_term(const index_list *l, size_t i) {
    return slice_of(l->bytes.p + l->terms[i].at, l->terms[i].n);
}
