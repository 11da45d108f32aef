/* find_int.h — what the parts of finding items share. For this folder. */
#pragma once

#include "find/access.h"

enum {
    FIND_NEAR = 24, /* entries: to pass by so many costs as much as to seek */
    FIND_QUICK_ENTRIES = 64,
    FIND_SCAN_PER_LOAD = 4,
    FIND_FIRST_PROBE = 64,
    FIND_REFS_MAX = 2000000,
    FIND_SHAPES_ALL = 4098, /* more than items know (item/terms.c), and one for all others */
};

/* Items in number order. One that was excluded stays in its list, so that it can be counted when the page comes to it. */
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
    find__refs probed; /* all items of `probed_of` behind `probed_after` */
    const find_demand *probed_of;
    uint64_t probed_after;
    bool decides;     /* all demands must be met: nobody asks the items afterwards */
    find__refs large; /* items that have no entries, since they would have too many */
    unsigned looked;  /* at so many entries since the last check */
    err code;         /* … whose result it is */
} find__finder;

/* A walk through the entries of a path, or of a composite index. */
typedef struct find__walk {
    find__finder *finder;
    index_path path;
    const index_composite *composite; /* NULL: one path */
    bool backward;
    bool undefined; /* items without the path have no entry, and are meant too: those of … */
    uint64_t *shapes;
    size_t shapes_n;
    find_span *spans;
    size_t spans_n;
    slice start;        /* spelled; empty: from the beginning */
    slice start_beyond; /* the first spelling beyond all that begin so */
    bool start_whole;
    uint64_t start_number;
    bool skips;      /* entries tell which rows the condition lets through */
    uint64_t enough; /* the walk ends when the visitor has matched so many; 0: it does not */
} find__walk;

/* ---- entries.c ---- */

bool find__add_ref(find__finder *f, find__refs *r, const item_entry *e); /* false: no memory for more, and the finder has the error */
void find__free_refs(const find__finder *f, find__refs *r);
void find__sort_refs(find__refs *r);

/* Others have their turn now and then. An item takes about as long as FIND_ITEM_ENTRIES entries. */
enum { FIND_ITEM_ENTRIES = 16 };
err find__count_work(find__finder *f, unsigned entries);

bool find__next_entry(find__finder *f, item_lookup *l, item_entry *e); /* item_lookup_next; false: find__close_lookup has the reason */
err find__close_lookup(const find__finder *f, item_lookup *l);
item_lookup *find__open_span(const find__finder *f, const find_span *span, size_t most);

/* Entries of one span from number `after` + 1 on where that can be sought; adds them to `found` (if not NULL), up to `most`. */
err find__read_span(find__finder *f, const find_span *span, uint64_t after, find__refs *found, size_t most, size_t *n);

/* *n_out: how many entries the demand has, `most` if it has that many or more. */
err find__read_demand(find__finder *f, const find_demand *d, uint64_t after, find__refs *found, size_t most, size_t *n_out);

err find__find_large(find__finder *f); /* items without entries, once */

/* ---- choose.c ---- */

/* The demand with the fewest entries, if it has fewer than `most`. */
err find__smallest(find__finder *f, uint64_t after, size_t most, const find_demand **best_out);
err find__take_all(find__finder *f, const find_demand *used, uint64_t after, find__refs *found); /* its items behind `after`, by number */
const find_demand *find__a_point(const find__finder *f);
size_t find__worth(const find__finder *f);                /* how many entries it pays to collect */
size_t find__bounded(const find__finder *f, size_t most); /* … at once, if the page is quick */

/* ---- number.c ---- */

err find__offer(find__finder *f, item_ref ref);
err find__offer_all(find__finder *f, const find__refs *found); /* in number order, with those that have no entries */
err find__intersect(find__finder *f, const find_demand *used, find__refs *found);
err find__collect(find__finder *f, const find_demand *used);
err find__by_number(find__finder *f, bool *found_out);

/* ---- order.c ---- */

bool find__prepare_walk(find__walk *w); /* false: the index does not have the order */
void find__bound_walk(find__walk *w, arena *a);
bool find__goes_on(const find__walk *w);
bool find__skip(find__walk *w, slice value, uint64_t number); /* true: its row needs no item, since it is passed over */
err find__in_order(find__finder *f, find__walk *w, bool *found_out);

/* ---- shapes.c ---- */

size_t find__shapes_worth(const find__finder *f);
/* Not to be asked of a lean index, which knows no shapes. */
err find__lacking_shapes(find__walk *w, size_t most, bool *whole_out);
err find__walk_undefined(find__walk *w);

/* ---- cover.c ---- */

bool find__give_value(find__finder *f, slice spelled, uint64_t times, bool decided);
err find__covered(find__finder *f, bool *found_out);

/* ---- keys.c ---- */

err find__cover_path(find__finder *f, bool *found_out);   /* items are told by the entries of the one path that matters */
err find__in_key_order(find__finder *f, bool *found_out); /* items are loaded, in the order of the path that keys begin with */

/* ---- nearest.c ---- */

/* Offers the nearest, in any order. *found_out false: it cannot say which they are, and the others must be looked at too. */
err find__nearest(find_access *a, const find_nearest *n, item_view *v, bool *found_out);
