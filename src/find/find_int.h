/* find_int.h — shared declarations. For this folder. */
#pragma once

#include "find/index_access.h"

enum {
    FIND_NEAR = 24, /* stepping over this many entries costs as much as one seek */
    FIND_QUICK_ENTRIES = 64,
    FIND_SCAN_PER_LOAD = 4,
    FIND_FIRST_PROBE = 64,
    FIND_TRIED = 16, /* items sought in another demand's entries before it must show that it excludes any … */
    FIND_PAYS = 4,   /* … one of this many */
    FIND_REFS_MAX = 2000000,
    FIND_SHAPES_ALL = 4098, /* more than the known shapes of a range (item/index_entries.c) plus one for items of unknown shape */
};

/* Items in number order. An excluded item stays in its list, so that it is counted when the page reaches it. */
enum { FIND_SEGMENT_EXCLUDED = UINT32_MAX };

typedef struct find__refs {
    item_ref *list;
    size_t n, cap;
    size_t excluded;
} find__refs;

typedef struct find__finder {
    find_access *access;
    item_view *view;
    find_demands demands;
    find__refs probed; /* all items of `probed_of` after number `probed_after` */
    const find_demand *probed_of;
    uint64_t probed_after;
    bool decides;     /* all demands must be intersected, since the condition is not evaluated on items afterwards */
    find__refs large; /* items without entries, because they would have too many */
    unsigned looked;  /* entries read since the last check point */
    err code;         /* result of the last check point */
} find__finder;

/* A walk through the entries of a path, or of a composite index. */
typedef struct find__walk {
    find__finder *finder;
    index_path path;
    const index_composite *composite; /* NULL: one path */
    bool backward;
    bool keyed;     /* the path is that of a key index */
    bool many;      /* … and an item may have several entries */
    bool undefined; /* items without the path, which have no entry, are wanted too: those of `shapes` */
    uint64_t *shapes;
    size_t shapes_n;
    find_span *spans;
    size_t spans_n;
    slice start;        /* where to begin, spelled; empty: at the beginning */
    slice start_beyond; /* upper bound of all spellings with the prefix `start` */
    bool start_whole;
    uint64_t start_number;
    bool skips;      /* rows can be skipped by their entries alone */
    uint64_t enough; /* end the walk once the visitor has matched this many rows; 0: no such limit */
} find__walk;

/* ---- entries.c ---- */

bool find__add_ref(find__finder *f, find__refs *r, const item_entry *e); /* false: out of budget; the error is in f->code */
void find__free_refs(const find__finder *f, find__refs *r);
void find__sort_refs(find__refs *r);

/* Counts work, and runs a check point (op_check) now and then. An item counts as FIND_ITEM_ENTRIES entries. */
enum { FIND_ITEM_ENTRIES = 16 };
err find__count_work(find__finder *f, unsigned entries);

bool find__next_entry(find__finder *f, item_lookup *l, item_entry *e); /* false: at the end, or an error that find__close_lookup returns */
err find__close_lookup(const find__finder *f, item_lookup *l);
item_lookup *find__open_span(const find__finder *f, const find_span *span, size_t most);

/* Reads up to `most` entries of a span; `*n` counts them. Adds items after number `after` to `found`, if that is not NULL. A point span is
 * sought at `after` + 1; other spans are read from their beginning. */
err find__read_span(find__finder *f, const find_span *span, uint64_t after, find__refs *found, size_t most, size_t *n);

/* *n_out: the number of entries of the demand; `most` if it has that many or more. */
err find__read_demand(find__finder *f, const find_demand *d, uint64_t after, find__refs *found, size_t most, size_t *n_out);

err find__find_large(find__finder *f); /* reads the list of items without entries, once */

/* ---- long.c ---- */

/* Whether the demand is known to have `n` entries or more; they then count as read. */
bool find__is_long(find__finder *f, const find_demand *d, size_t n);
void find__note_long(find__finder *f, const find_demand *d, size_t n); /* it was seen to have that many */

/* ---- choose.c ---- */

/* The demand with the fewest entries, if it has fewer than `most`. */
err find__smallest(find__finder *f, uint64_t after, size_t most, const find_demand **best_out);
err find__take_all(find__finder *f, const find_demand *used, uint64_t after, find__refs *found); /* its items after number `after` */
const find_demand *find__first_point_demand(const find__finder *f);
size_t find__entries_worth_collecting(const find__finder *f); /* the most entries worth collecting */
size_t find__quick_limit(const find__finder *f, size_t most); /* `most`, or less if only quick work is allowed */

/* ---- in_number_order.c ---- */

err find__offer(find__finder *f, item_ref ref);
err find__offer_all(find__finder *f, const find__refs *found); /* in number order, merged with the items without entries */
err find__intersect(find__finder *f, const find_demand *used, find__refs *found);
err find__collect(find__finder *f, const find_demand *used);
err find__by_number(find__finder *f, bool *found_out);

/* ---- in_order.c ---- */

/* Whether any item of the view has several keys in the key index at this path. Such an item's place in an order may be at a key that a
 * demand does not have. */
MUST_CHECK err find__has_many(find__finder *f, index_path path, bool *many_out);
MUST_CHECK err find__has_entries(find__finder *f, index_path path, bool *any_out);
MUST_CHECK err find__prepare_walk(find__walk *w, bool *served_out); /* *served_out false: the index cannot serve the order */
void find__bound_walk(find__walk *w, arena *a);
bool find__wants_more(const find__walk *w);
bool find__skip(find__walk *w, slice value, uint64_t number); /* true: do not load the item: its row was skipped, or the page ends */
err find__in_order(find__finder *f, find__walk *w, bool *found_out);

/* ---- shapes.c ---- */

size_t find__shapes_worth_reading(const find__finder *f);
/* Not for lean indexes, which have no shapes. */
err find__lacking_shapes(find__walk *w, size_t most, bool *whole_out);
err find__walk_undefined(find__walk *w);

/* ---- cover.c ---- */

bool find__give_value(find__finder *f, slice spelled, uint64_t times, bool decided);
err find__covered(find__finder *f, bool *found_out);

/* ---- each_key.c ---- */

/* Offers one item of each key. *found_out false: the index cannot, or there are too many keys for it to pay. */
err find__each_key(find__finder *f, bool *found_out);

/* ---- in_key_order.c ---- */

err find__cover_path(find__finder *f, bool *found_out);   /* without loading items, by the entries of the one path that matters */
err find__in_key_order(find__finder *f, bool *found_out); /* loads items in the order of the path that keys begin with */

/* ---- nearest.c ---- */

/* Offers the nearest items, in any order. *found_out false: the graph could not find enough, and all other items must be read too. */
err find__nearest(find_access *a, const find_nearest *n, item_view *v, bool *found_out);
