#include "item/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    PAGE_ITEMS = 256, /* changes per page */
    PAGE_BYTES = 1024 * 1024,
    UNFIT_MAX = 1024,
    GONE_MAX = 8192,
    ROOM_MIN = 2048,
    DEAD_MIN = 1024,
    PARTITIONS_MAX = 8, /* if a partition has less than this fraction of a range's items, it is too rare among the graph's results */
    NICE = 5
};

/* The graph of one vector path. Owned by its range, and lives as long. */
struct range_graph {
    range_graph *next;
    item_nearest *owner;
    container_index *index; /* `embedding` belongs to its policy */
    const index_embedding *embedding;
    uint32_t list;
    atomic_int state;

    pthread_rwlock_t lock; /* protects the next four members */
    vector_graph *graph;   /* NULL: not built yet, or given up */
    uint64_t after;        /* the graph has seen every write up to this lsn */
    uint64_t *unfit;       /* numbers of items whose vectors the graph cannot hold, ascending */
    size_t unfit_n;
    size_t bytes; /* its share of the memory limit; owned by the builder */

    pthread_mutex_t gone_lock; /* protects the numbers of items that queries found gone */
    uint64_t *gone;
    size_t gone_n;

    /* protected by the owner's lock */
    range_graph *queued_next;
    bool queued;
    container *container; /* set while it is queued */
    container_range *range;
};

struct item_nearest {
    const items *items;
    size_t bytes_max;
    atomic_size_t bytes;
    bool background;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    range_graph *first, *last; /* queue of graphs to be updated */
    bool running;
    atomic_bool stopping;
    pthread_t thread;
};

/* ---- one graph ---- */

static range_graph *graph_new(item_nearest *n, container_index *index, const index_embedding *e, const index_vector *v) {
    range_graph *g = mem_zero(sizeof *g);
    pthread_rwlockattr_t writers_first;
    g->owner = n;
    g->index = container_index_take(index);
    g->embedding = e;
    g->list = v->search_list;
    g->state = NEAREST_BUILDING;
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&g->lock, &writers_first);
    pthread_rwlockattr_destroy(&writers_first);
    pthread_mutex_init(&g->gone_lock, NULL);
    return g;
}

/* The caller has exclusive access: the graph is no longer in use, or its lock is held. */
static void empty(range_graph *g) {
    vector_graph_free(g->graph);
    free(g->unfit);
    atomic_fetch_sub(&g->owner->bytes, g->bytes);
    g->graph = NULL;
    g->unfit = NULL;
    g->unfit_n = g->bytes = 0;
    g->after = 0;
}

void range_graphs_free(range_graph *graphs) {
    for (range_graph *g = graphs, *next; g; g = next) {
        next = g->next;
        empty(g);
        free(g->gone);
        pthread_mutex_destroy(&g->gone_lock);
        pthread_rwlock_destroy(&g->lock);
        container_index_give(g->index);
        free(g);
    }
}

size_t item_nearest_dead(const range_graph *g) {
    return g->graph ? vector_graph_dead(g->graph) : 0;
}

static void give_up(range_graph *g, item_nearest_state why) {
    pthread_rwlock_wrlock(&g->lock);
    empty(g);
    g->state = (int)why;
    pthread_rwlock_unlock(&g->lock);
}

/* Makes room for this many vectors, if the memory limit allows. The lock is held, or nobody else has the graph yet. */
static bool make_room(range_graph *g, size_t room) {
    size_t bytes = vector_graph_bytes(g->embedding->dimensions, room);
    if (atomic_load(&g->owner->bytes) - g->bytes + bytes > g->owner->bytes_max) {
        return false;
    }
    atomic_fetch_add(&g->owner->bytes, bytes - g->bytes);
    g->bytes = bytes;
    if (!g->graph) {
        g->graph = vector_graph_new(g->embedding->distance, g->embedding->dimensions, g->list, room);
        return g->graph != NULL;
    }
    return vector_graph_grow(g->graph, room);
}

/* ---- updating a graph: on the builder's thread ---- */

typedef struct changed_vector {
    uint64_t number;
    const double *numbers; /* NULL: the item has no vector */
} changed_vector;

typedef struct bringing {
    item_nearest *owner;
    range_graph *graph;
    arena arena; /* reset for each page */
    changed_vector *vectors;
    size_t n, cap, bytes;
    uint64_t last_lsn;
} bringing;

static const double *vector_in(bringing *b, slice body) {
    const index_embedding *e = b->graph->embedding;
    doc_element at;
    double *numbers;
    size_t n;
    bool is = doc_find_element(body, &e->path, &at) && at.type == BSON_TYPE_ARRAY && search_vector_of(&b->arena, at.value, &numbers, &n);
    return is && n == e->dimensions ? numbers : NULL;
}

/* Changes with the same lsn stay in one page. In a merged range there can be one for each of its former ranges. */
static bool take_change(void *context, const item_found *found) {
    bringing *b = context;
    bool full = b->n >= PAGE_ITEMS || b->bytes >= PAGE_BYTES;
    if (full && found->head.lsn != b->last_lsn) {
        return false;
    }
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : PAGE_ITEMS;
        b->vectors = mem_resize(b->vectors, b->cap * sizeof *b->vectors);
    }
    b->vectors[b->n++] = (changed_vector){found->head.number, vector_in(b, found->body)};
    b->bytes += found->body.n;
    b->last_lsn = found->head.lsn;
    return true;
}

static size_t unfit_position(const range_graph *g, uint64_t number) {
    size_t at = 0;
    while (at < g->unfit_n && g->unfit[at] < number) {
        at++;
    }
    return at;
}

static void forget_unfit(range_graph *g, uint64_t number) {
    size_t at = unfit_position(g, number);
    if (at < g->unfit_n && g->unfit[at] == number) {
        memmove(g->unfit + at, g->unfit + at + 1, (--g->unfit_n - at) * sizeof *g->unfit);
    }
}

static void add_unfit(range_graph *g, uint64_t number) {
    size_t at = unfit_position(g, number);
    if (!g->unfit) {
        g->unfit = mem_alloc((UNFIT_MAX + 1) * sizeof *g->unfit);
    }
    memmove(g->unfit + at + 1, g->unfit + at, (g->unfit_n++ - at) * sizeof *g->unfit);
    g->unfit[at] = number;
}

static item_nearest_state put_vector(range_graph *g, const changed_vector *v) {
    forget_unfit(g, v->number);
    if (!v->numbers) {
        vector_graph_remove(g->graph, v->number);
        return NEAREST_FOUND;
    }
    vector_put_result put = vector_graph_put(g->graph, v->number, v->numbers);
    if (put == VECTOR_NO_ROOM) {
        if (!make_room(g, 2 * vector_graph_room(g->graph))) {
            return NEAREST_NO_MEMORY;
        }
        put = vector_graph_put(g->graph, v->number, v->numbers);
    }
    if (put == VECTOR_NO_MEMORY) {
        return NEAREST_NO_MEMORY;
    }
    if (put == VECTOR_UNFIT) {
        add_unfit(g, v->number);
    }
    return g->unfit_n > UNFIT_MAX ? NEAREST_UNFIT : NEAREST_FOUND;
}

/* Locks for one vector at a time, so that searches never wait for many. */
static item_nearest_state put_all(bringing *b) {
    range_graph *g = b->graph;
    item_nearest_state state = NEAREST_FOUND;
    for (size_t i = 0; i < b->n && state == NEAREST_FOUND && !b->owner->stopping; i++) {
        pthread_rwlock_wrlock(&g->lock);
        state = put_vector(g, &b->vectors[i]);
        pthread_rwlock_unlock(&g->lock);
    }
    return state;
}

/* Removes the items that queries found gone. */
static void remove_gone(range_graph *g) {
    pthread_mutex_lock(&g->gone_lock);
    size_t n = g->gone_n;
    uint64_t *gone = g->gone;
    g->gone = NULL;
    g->gone_n = 0;
    pthread_mutex_unlock(&g->gone_lock);
    pthread_rwlock_wrlock(&g->lock);
    for (size_t i = 0; i < n && g->graph; i++) {
        forget_unfit(g, gone[i]);
        vector_graph_remove(g->graph, gone[i]);
    }
    pthread_rwlock_unlock(&g->lock);
    free(gone);
}

/* Finds the bounds of a range. False: it no longer belongs to the container. */
static bool find_borders(container *c, const container_range *range, item_changes *changes) {
    container_tiles *tiles = container_space_newest(c->space);
    bool found = false;
    for (size_t i = 0; i < tiles->map->n && !found; i++) {
        found = tiles->ranges[i] == range;
        if (found) {
            changes->min = tiles->map->ranges[i].min;
            changes->max = tiles->map->ranges[i].max;
        }
    }
    container_tiles_give(tiles);
    return found && !c->space->deleted;
}

/* Makes sure that there is a graph. Starts anew if more of its vectors are dead than alive: removed ones, or ones of deleted items that no
 * query has met. */
static bool begin_graph(range_graph *g, const container_range *range) {
    size_t items = atomic_load_explicit(&range->items, memory_order_relaxed), room = items + items / 4;
    pthread_rwlock_wrlock(&g->lock);
    size_t known = g->graph ? vector_graph_count(g->graph) : 0, dead = g->graph ? vector_graph_dead(g->graph) : 0;
    if (dead > known + DEAD_MIN || known > 2 * items + DEAD_MIN) {
        empty(g);
    }
    bool made = g->graph || make_room(g, room > ROOM_MIN ? room : ROOM_MIN);
    pthread_rwlock_unlock(&g->lock);
    return made;
}

/* Reads and adds one page of changes. False: there are no more, or the graph was given up. */
static bool add_changes_page(bringing *b, container *c, const container_range *range) {
    range_graph *g = b->graph;
    if (!begin_graph(g, range)) {
        give_up(g, NEAREST_NO_MEMORY);
        return false;
    }
    item_changes changes = {.after = g->after, .unpriced = true};
    item_mark unused;
    op o;
    arena_reset(&b->arena);
    b->n = b->bytes = 0;
    op_init(&o, &b->arena, 0); /* at time 0 nothing is expired: a ttl may be turned off again */
    if (!find_borders(c, range, &changes) || item_changes_read(b->owner->items, &o, c, &changes, take_change, b, &unused) != OK) {
        give_up(g, NEAREST_BUILDING);
        return false;
    }
    item_nearest_state state = put_all(b);
    if (state != NEAREST_FOUND) {
        give_up(g, state);
        return false;
    }
    pthread_rwlock_wrlock(&g->lock);
    g->after = b->owner->stopping ? g->after : changes.after;
    pthread_rwlock_unlock(&g->lock);
    return changes.more && !b->owner->stopping;
}

static void update_graph(item_nearest *n, range_graph *g, container *c, const container_range *range) {
    bringing b = {.owner = n, .graph = g, .arena = arena_init()};
    remove_gone(g);
    g->state = NEAREST_BUILDING;
    while (add_changes_page(&b, c, range)) {
    }
    arena_free(&b.arena);
    free(b.vectors);
}

/* ---- the queue ---- */

static range_graph *next_queued(item_nearest *n, container **container_out, container_range **range_out) {
    pthread_mutex_lock(&n->lock);
    range_graph *g = n->first;
    if (g) {
        n->first = g->queued_next;
        n->last = n->first ? n->last : NULL;
        g->queued = false;
        *container_out = g->container;
        *range_out = g->range;
    }
    pthread_mutex_unlock(&n->lock);
    return g;
}

void item_nearest_work(item_nearest *n) {
    container *c;
    container_range *range;
    for (range_graph *g; (g = next_queued(n, &c, &range));) {
        if (!n->stopping) {
            update_graph(n, g, c, range);
        }
        container_range_give(range); /* may free the graph too */
        container_give(c);
    }
}

static void *run(void *context) {
    item_nearest *n = context;
    if (setpriority(PRIO_PROCESS, (id_t)gettid(), NICE) != 0) { /* requests come first; if this fails, the builder competes with them */
        log_debug("item", "the builder of graphs keeps its priority", "errno=%d", errno);
    }
    for (;;) {
        item_nearest_work(n);
        pthread_mutex_lock(&n->lock);
        while (!n->first && !n->stopping) {
            pthread_cond_wait(&n->wake, &n->lock);
        }
        pthread_mutex_unlock(&n->lock);
        if (n->stopping) {
            return NULL;
        }
    }
}

/* The owner's lock is held. */
static void start(item_nearest *n) {
    if (n->running || !n->background || n->stopping) {
        return;
    }
    n->running = thread_start(&n->thread, "nearest", run, n);
}

static void ask_for_more(range_graph *g, const item_view *v) {
    item_nearest *n = g->owner;
    pthread_mutex_lock(&n->lock);
    if (!g->queued && !n->stopping) {
        g->queued = true;
        g->container = container_take(v->container);
        g->range = container_range_take(v->range);
        g->queued_next = NULL;
        *(n->last ? &n->last->queued_next : &n->first) = g;
        n->last = g;
    }
    start(n); /* an earlier attempt to start the thread may have failed */
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
}

item_nearest *item_nearest_open(const items *s, size_t bytes_max, bool background) {
    item_nearest *n = mem_zero(sizeof *n);
    n->items = s;
    n->bytes_max = bytes_max;
    n->background = background;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->wake, NULL);
    return n;
}

void item_nearest_stop(item_nearest *n) {
    pthread_mutex_lock(&n->lock);
    n->stopping = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
    if (n->running) {
        pthread_join(n->thread, NULL);
        n->running = false;
    }
    item_nearest_work(n); /* builds nothing, only releases what was queued */
}

void item_nearest_close(item_nearest *n) {
    pthread_cond_destroy(&n->wake);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

/* ---- querying ---- */

static range_graph *known_graph(const container_range *range, index_path path) {
    range_graph *g = atomic_load_explicit(&range->graphs, memory_order_acquire);
    while (g && g->embedding->hash != path) {
        g = g->next;
    }
    return g;
}

static range_graph *graph_of(const item_view *v, const index_embedding *e, const index_vector *vector) {
    item_nearest *n = v->items->nearest;
    range_graph *g = known_graph(v->range, e->hash);
    if (g) {
        return g;
    }
    pthread_mutex_lock(&n->lock);
    g = known_graph(v->range, e->hash);
    if (!g) {
        g = graph_new(n, v->index, e, vector);
        g->next = v->range->graphs;
        atomic_store_explicit(&v->range->graphs, g, memory_order_release);
    }
    pthread_mutex_unlock(&n->lock);
    return g;
}

/* Collects the numbers of items changed after an lsn in the view's segments, up to NEAREST_OTHERS_MAX + 1. */
static err changes_since(const item_view *v, uint64_t after, uint64_t *numbers, size_t *n) {
    for (size_t i = 0; i < v->sources->n; i++) {
        layout_key from, to;
        slice key, unused;
        layout_change change = {.lsn = after + 1};
        layout_changes(&from, v->sources->list[i].segment);
        size_t begins = from.n;
        to = from;
        layout_after(&to);
        layout_add_change(&from, begins, &change);
        store_scan *scan = store_scan_open(v->range->home->store, STORE_TERMS, v->at, layout_view(&from), layout_view(&to), false);
        bool good = true;
        while (*n <= NEAREST_OTHERS_MAX && good && store_scan_next(scan, &key, &unused)) {
            good = layout_change_read(key, begins, &change);
            numbers[(*n)++] = change.number;
        }
        TRY(store_scan_close(scan));
        if (!good) {
            return E_STORE_CORRUPT;
        }
    }
    return OK;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

size_t item_numbers_sort(uint64_t *numbers, size_t n) {
    size_t kept = 0;
    qsort(numbers, n, sizeof *numbers, by_number);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || numbers[kept - 1] != numbers[i]) {
            numbers[kept++] = numbers[i];
        }
    }
    return kept;
}

bool item_numbers_have(const uint64_t *numbers, size_t n, uint64_t number) {
    return n && bsearch(&number, numbers, n, sizeof *numbers, by_number);
}

/* A graph is used for a whole range as it is now, or for a partition that is a good part of it, if there are enough items. */
static item_nearest_state judge(const item_view *v, const index_embedding *e, const double *numbers) {
    uint64_t all = atomic_load_explicit(&v->range->items, memory_order_relaxed);
    bool enough = v->items_n >= NEAREST_ITEMS_MIN && (!v->partition || v->items_n >= all / PARTITIONS_MAX);
    if (!v->items->nearest || !v->lsn || v->narrow || v->prefix || !enough || !vector_graph_fits(e->distance, numbers, e->dimensions)) {
        return NEAREST_OFF;
    }
    for (size_t i = 0; i < v->sources->n; i++) {
        if (v->sources->list[i].shared) {
            return NEAREST_MOVING;
        }
    }
    return NEAREST_FOUND;
}

/* Searches the graph, and reads its lsn and unfit items, under one lock. */
static void search(range_graph *g, arena *a, const double *numbers, size_t n, item_nearest_found *f, uint64_t *others) {
    f->near = arena_array(a, vector_near, n + 1);
    pthread_rwlock_rdlock(&g->lock);
    f->after = g->after;
    if (g->graph) {
        f->known = vector_graph_count(g->graph);
        f->near_n = vector_graph_search(g->graph, numbers, n, f->near);
    }
    memcpy(others, g->unfit ? g->unfit : others, g->unfit_n * sizeof *others);
    f->others_n = g->unfit_n;
    pthread_rwlock_unlock(&g->lock);
}

err item_view_nearest(const item_view *v, const index_embedding *embedding, const index_vector *vector, const double *numbers, size_t n,
                      item_nearest_found *found_out) {
    item_nearest_found *f = found_out;
    *f = (item_nearest_found){.state = judge(v, embedding, numbers)};
    if (f->state != NEAREST_FOUND) {
        return OK;
    }
    range_graph *g = f->graph = graph_of(v, embedding, vector);
    uint64_t *others = arena_array(v->op->arena, uint64_t, NEAREST_OTHERS_MAX + UNFIT_MAX + 2);
    search(g, v->op->arena, numbers, n, f, others);
    size_t since = 0;
    TRY(changes_since(v, f->after, others + f->others_n, &since));
    f->state = since > NEAREST_OTHERS_MAX ? (item_nearest_state)g->state : NEAREST_FOUND;
    if (since && g->state != NEAREST_UNFIT) {
        ask_for_more(g, v);
    }
    f->others_n = item_numbers_sort(others, f->others_n + since);
    f->others = others;
    return OK;
}

/* Numbers are never reused: if the view is at least as new as the graph, an item that is missing there was deleted. */
static void note_gone(const item_view *v, const item_nearest_found *found, uint64_t number) {
    range_graph *g = found->graph;
    if (v->lsn < found->after) {
        return;
    }
    pthread_mutex_lock(&g->gone_lock);
    if (!g->gone) {
        g->gone = mem_alloc(GONE_MAX * sizeof *g->gone);
    }
    if (g->gone_n < GONE_MAX) {
        g->gone[g->gone_n++] = number;
    }
    pthread_mutex_unlock(&g->gone_lock);
    ask_for_more(g, v);
}

err item_view_offer_near(item_view *v, const item_nearest_found *found, uint64_t number) {
    err code = item__view_try(v, number);
    if (code == E_NOT_FOUND) {
        note_gone(v, found, number);
        return OK;
    }
    return code;
}
