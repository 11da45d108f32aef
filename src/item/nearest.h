/* nearest.h — graphs of a range's vectors (vector/graph.h), built and updated in the background.
 *
 * A graph is in memory only. It is created when a query first asks for it, filled from the order of changes (item_changes_read), and
 * updated whenever a query finds it behind. It knows the lsn up to which it has seen every write; a query reads later writes from the order
 * of changes itself. So no write is missed, and writers need not update graphs. Deleted items stay in the graph until a query finds one of
 * them gone. After a restart, a split or a merge, the graphs of a range are rebuilt; until then queries read all items. */
#pragma once

#include "item/view.h"
#include "vector/graph.h"

/* Builds the graphs. */
typedef struct item_nearest item_nearest;

enum { NEAREST_ITEMS_MIN = 1000, NEAREST_OTHERS_MAX = 4096 };

/* All graphs together take at most `bytes_max`. `background`: they are built on a separate thread, which starts with the first one;
 * otherwise the caller must call item_nearest_work. */
item_nearest *item_nearest_open(const items *s, size_t bytes_max, bool background);
void item_nearest_work(item_nearest *n); /* builds everything requested so far */
void item_nearest_stop(item_nearest *n); /* stops building for good */
void item_nearest_close(item_nearest *n);

/* ---- querying ---- */

typedef enum item_nearest_state {
    NEAREST_FOUND,
    NEAREST_OFF,      /* reading all items is as good: too few items, only part of a range, or an old moment */
    NEAREST_MOVING,   /* after a split or a merge the range's items are still mixed with others' */
    NEAREST_BUILDING, /* too many items were written since the graph was last updated */
    NEAREST_NO_MEMORY,
    NEAREST_UNFIT, /* too many of its vectors have values that floats cannot represent */
} item_nearest_state;

typedef struct item_nearest_found {
    item_nearest_state state;
    uint64_t known; /* number of vectors in the graph */
    vector_near *near;
    size_t near_n;
    const uint64_t *others; /* numbers of items that the graph lacks or has an old version of, ascending */
    size_t others_n;
    range_graph *graph;
    uint64_t after; /* the graph has seen all writes up to this lsn */
} item_nearest_found;

/* Finds the vectors nearest to `numbers`, from a candidate list of `n`; their labels are the items' document numbers. Allocated in the
 * operation's arena. `embedding` and `vector` belong to the view's index. */
MUST_CHECK err item_view_nearest(const item_view *v, const index_embedding *embedding, const index_vector *vector, const double *numbers,
                                 size_t n, item_nearest_found *found_out);

/* item_view_offer for an item found this way: it may have been deleted. */
MUST_CHECK err item_view_offer_near(item_view *v, const item_nearest_found *found, uint64_t number);

/* Sorts a list of numbers and removes duplicates; returns the new length. */
size_t item_numbers_sort(uint64_t *numbers, size_t n);
bool item_numbers_have(const uint64_t *numbers, size_t n, uint64_t number); /* `numbers` is sorted */

/* Called when the range is freed. */
void range_graphs_free(range_graph *graphs);

size_t item_nearest_dead(const range_graph *g); /* removed vectors that still use space; for tests, while no other thread uses the graph */
