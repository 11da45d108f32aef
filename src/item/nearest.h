/* nearest.h — the vectors of a range as graphs (vector/graph.h), built and kept up beside the writes.
 *
 * A graph is in memory alone. It begins when a query first asks for it, is filled from the order of changes (item_changes_read), and goes
 * on from there whenever a query finds it behind. It knows up to which lsn it has seen everything; what was written since, a query takes
 * from the order of changes itself. So nothing that was written is missed, and writes know nothing of graphs. Items that were deleted stay
 * until somebody meets them. After a restart, a split or a merge, a range's graphs are built anew; until then all items are read. */
#pragma once

#include "item/view.h"
#include "vector/graph.h"

/* Who builds them. */
typedef struct item_nearest item_nearest;

enum { NEAREST_ITEMS_MIN = 1000, NEAREST_OTHERS_MAX = 4096 };

/* All graphs together take `bytes_max` at most. `background`: on a thread of their own, which starts with the first one; otherwise
 * whoever opened it calls item_nearest_work. */
item_nearest *item_nearest_open(const items *s, size_t bytes_max, bool background);
void item_nearest_work(item_nearest *n); /* what was asked for up to now is built */
void item_nearest_stop(item_nearest *n); /* nothing more is built */
void item_nearest_close(item_nearest *n);

/* ---- asking ---- */

typedef enum item_nearest_state {
    NEAREST_FOUND,
    NEAREST_OFF,      /* too few items, just some of a range, or a moment that is over: looking at all of them is as well */
    NEAREST_MOVING,   /* after a split or a merge the range's items are still among others' */
    NEAREST_BUILDING, /* too many were written since */
    NEAREST_NO_MEMORY,
    NEAREST_UNFIT, /* too many of its vectors have numbers that floats cannot hold */
} item_nearest_state;

typedef struct item_nearest_found {
    item_nearest_state state;
    uint64_t known; /* vectors in the graph */
    vector_near *near;
    size_t near_n;
    const uint64_t *others; /* numbers of items that the graph does not know as they are, in order */
    size_t others_n;
    range_graph *graph;
    uint64_t after; /* the lsn up to which it has seen everything */
} item_nearest_found;

/* The vectors nearest to `numbers`, from a list of `n`: their items' numbers as labels. In the operation's arena. The embedding and the
 * vector are of the view's index. */
MUST_CHECK err item_view_nearest(const item_view *v, const index_embedding *embedding, const index_vector *vector, const double *numbers,
                                 size_t n, item_nearest_found *found_out);

/* As item_view_offer, of an item that was found so: it may be gone. */
MUST_CHECK err item_view_offer_near(item_view *v, const item_nearest_found *found, uint64_t number);

/* Lists of numbers: sorted, each once; returns how many. */
size_t item_numbers_sort(uint64_t *numbers, size_t n);
bool item_numbers_have(const uint64_t *numbers, size_t n, uint64_t number); /* of a sorted one */

/* With their range. */
void range_graphs_free(range_graph *graphs);

size_t item_nearest_dead(const range_graph *g); /* vectors that take room and are not found; for tests, with nobody at work */
