#include "item/index_entries.h"

#include <endian.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

enum { SHAPES_MAX = 4096 };

struct item_lists {
    index_list now, before;
};

item_lists *item_lists_new(void) {
    return mem_zero(sizeof(item_lists));
}

void item_lists_free(item_lists *lists) {
    index_list_free(&lists->now);
    index_list_free(&lists->before);
    free(lists);
}

/* ---- shapes: known ones are in memory, sorted; a new one is written with its first item, and known once that is on disk ----
 *
 * The shape entry of an item is stored under its shape if that is known, otherwise under none. It must be found there again when the item
 * is removed. So a shape that was once rejected for lack of room must never be accepted later: only shapes on disk count, and none is ever
 * removed.
 *
 * The number of a shape is a sum of public hashes, so clients can choose property names whose paths get the same number as those of other
 * items. The number belongs to the paths that were written with it first. A second sum with secret hashes, the seal, distinguishes other
 * paths with the same number; an item with such paths never has a known shape. */

typedef struct known_shape {
    uint64_t shape;
    uint64_t seal;
} known_shape;

static uint64_t sealed(const container_index *index, index_path path) {
    unsigned __int128 product = (unsigned __int128)(path ^ index->shapes_secret[0]) * (index->shapes_secret[1] | 1);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t seal_of_list(const container_index *index, const index_list *l) {
    uint64_t seal = 0;
    for (size_t i = 0; i < l->paths_n; i++) {
        seal += sealed(index, l->paths[i]);
    }
    return seal;
}

static uint64_t seal_of_record(const container_index *index, slice record) {
    uint64_t seal = 0, path;
    for (size_t at = 0; at + sizeof path <= record.n; at += sizeof path) {
        memcpy(&path, record.p + at, sizeof path);
        seal += sealed(index, be64toh(path));
    }
    return seal;
}

static void choose_secret(container_index *index) {
    random_source system;
    random_seed_system(&system);
    index->shapes_secret[0] = random_u64(&system);
    index->shapes_secret[1] = random_u64(&system);
}

static size_t shape_position(const container_index *index, uint64_t shape) {
    size_t low = 0, high = index->shapes_n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->shapes[middle].shape < shape) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void know_shape(container_index *index, known_shape known) {
    size_t at = shape_position(index, known.shape);
    if (at < index->shapes_n && index->shapes[at].shape == known.shape) {
        return;
    }
    if ((index->shapes_n & (index->shapes_n - 1)) == 0) { /* the array is full at every power of two */
        index->shapes = mem_resize(index->shapes, (index->shapes_n ? 2 * index->shapes_n : 1) * sizeof *index->shapes);
    }
    memmove(index->shapes + at + 1, index->shapes + at, (index->shapes_n - at) * sizeof *index->shapes);
    index->shapes[at] = known;
    index->shapes_n++;
}

static err load_shapes(const item_work *w, container_index *index) {
    layout_key from, to;
    slice key, value;
    choose_secret(index);
    index->shapes_n = 0; /* a failed load leaves shapes with seals of an old secret */
    layout_shapes(&from, w->container->space->container, index->generation);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(w->group->store, STORE_TERMS, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        if (key.n == from.n + 8) {
            uint64_t shape;
            memcpy(&shape, key.p + from.n, 8);
            know_shape(index, (known_shape){be64toh(shape), seal_of_record(index, value)});
        }
    }
    TRY(store_scan_close(scan));
    index->shapes_loaded = true;
    return OK;
}

static void put_shape(const item_work *w, const layout_key *k, const index_list *l) {
    char *value = store_put_space(&w->group->batch, STORE_TERMS, layout_view(k), l->paths_n * sizeof *l->paths);
    for (size_t i = 0; i < l->paths_n; i++) {
        uint64_t path = htobe64(l->paths[i]);
        memcpy(value + i * sizeof path, &path, sizeof path);
    }
}

/* Drops new shapes that are no longer in the group, since their operations failed. */
static void keep_made(container_index *index, const commit_group *group) {
    size_t n = 0;
    for (size_t i = 0; i < index->shapes_made_n; i++) {
        layout_key k;
        layout_shape(&k, index->shapes_container, index->generation, index->shapes_made[i].shape);
        const store_change *change = store_batch_find(&group->batch, STORE_TERMS, layout_view(&k));
        if (change && change->kind == STORE_PUT) {
            index->shapes_made[n++] = index->shapes_made[i];
        }
    }
    index->shapes_made_n = n;
}

static container_index *index_of_hook(commit_hook *hook) {
    return (container_index *)(void *)((char *)hook - offsetof(container_index, shapes_hook));
}

static void before_write(commit_hook *hook, commit_group *group) {
    keep_made(index_of_hook(hook), group);
}

static void after_write(commit_hook *hook, err code) {
    container_index *index = index_of_hook(hook);
    for (size_t i = 0; i < index->shapes_made_n && code == OK; i++) {
        know_shape(index, index->shapes_made[i]);
    }
    index->shapes_made_n = 0;
}

static bool has_room(container_index *index, const commit_group *group) {
    if (index->shapes_n + index->shapes_made_n >= SHAPES_MAX && index->shapes_made_n) {
        keep_made(index, group);
    }
    return index->shapes_n + index->shapes_made_n < SHAPES_MAX;
}

/* A shape of an operation that was cut may still be in the list; it must not be counted twice. */
static void note_made(container_index *index, known_shape made) {
    size_t i = 0;
    while (i < index->shapes_made_n && index->shapes_made[i].shape != made.shape) {
        i++;
    }
    index->shapes_made_n += i == index->shapes_made_n;
    index->shapes_made[i] = made;
}

static void make_shape(const item_work *w, container_index *index, const layout_key *k, const index_list *l) {
    if (!index->shapes_made) {
        index->shapes_made = mem_alloc(SHAPES_MAX * sizeof *index->shapes_made);
    }
    note_made(index, (known_shape){l->shape, seal_of_list(index, l)});
    index->shapes_hook.before = before_write;
    index->shapes_hook.after = after_write;
    index->shapes_container = w->container->space->container;
    commit_link(w->group, &index->shapes_hook);
    put_shape(w, k, l);
}

/* Whether the shape of the list is known. If it is new, `adding` is set and there is room, it is written now. */
static err is_known(const item_work *w, container_index *index, const index_list *l, bool adding, bool *known_out) {
    layout_key k;
    if (!index->shapes_loaded) {
        TRY(load_shapes(w, index));
    }
    size_t at = shape_position(index, l->shape);
    if (at < index->shapes_n && index->shapes[at].shape == l->shape) {
        *known_out = index->shapes[at].seal == seal_of_list(index, l);
        return OK;
    }
    layout_shape(&k, w->container->space->container, index->generation, l->shape);
    const store_change *change = store_batch_find(&w->group->batch, STORE_TERMS, layout_view(&k));
    if (change && change->kind == STORE_PUT) {
        *known_out = seal_of_record(index, change->value) == seal_of_list(index, l);
    } else if (adding && has_room(index, w->group)) {
        make_shape(w, index, &k, l);
        *known_out = true;
    }
    return OK;
}

/* ---- lists of terms ---- */

void item__list_ahead(const container *c, item_op *op, slice body) {
    index_list l = {0};
    budget *b = op->op.arena->budget;
    if (c->index.off || op->not_indexed || (b && b->exceeded)) {
        return;
    }
    index_list_make(&l, &c->index, body, 0);
    op->terms = index_list_keep(op->op.arena, &l);
    op->listed = body;
    if (b && !op->terms) { /* out of budget: the committer lists the terms itself */
        budget_renew(b);
    }
    index_list_free(&l);
}

/* The request's settings may be older or newer than the index. */
static bool has_policy_of(container_index *index, const container *c) {
    if (index->compared != c->memory->serial) {
        index->compared = c->memory->serial;
        index->compared_same = index_policy_same(&index->policy, &c->index);
    }
    return index->compared_same;
}

static void make_list(const item_work *w, container_index *index, index_list *l, const item_head *head, slice body) {
    const item_op *op = w->op;
    if (op && op->terms && op->listed.p == body.p && has_policy_of(index, w->container)) {
        index_list_restore(l, op->terms);
        index_list_set_ts(l, &index->policy, body, head->ts);
    } else {
        index_list_make(l, &index->policy, body, head->ts);
    }
}

static err list_terms(const item_work *w, container_index *index, index_list *l, const item_head *head, slice body, bool adding) {
    bool known = false;
    if (index->policy.off || head->flags & ITEM_NOT_INDEXED) {
        l->n = 0;
        return OK;
    }
    make_list(w, index, l, head, body);
    if (l->large) {
        index->large = LARGE_SOME;
    } else if (!l->lean) {
        TRY(is_known(w, index, l, adding, &known));
    }
    index_list_add_shape(l, known);
    return OK;
}

static void put_all(const item_work *w, layout_key *k, const index_list *l, uint64_t number) {
    size_t begins = k->n;
    for (size_t i = 0; i < l->n; i++) {
        layout_add_term(k, begins, index_list_term(l, i), number);
        store_put_unsought(&w->group->batch, STORE_TERMS, layout_view(k));
    }
    k->n = begins;
}

static void delete_all(const item_work *w, layout_key *k, const index_list *l, uint64_t number) {
    size_t begins = k->n;
    for (size_t i = 0; i < l->n; i++) {
        layout_add_term(k, begins, index_list_term(l, i), number);
        store_delete_unsought(&w->group->batch, STORE_TERMS, layout_view(k));
    }
    k->n = begins;
}

/* Both lists are sorted: writes the entries that are in only one of them. */
static void put_changes(const item_work *w, layout_key *k, const index_list *before, const index_list *now, uint64_t number) {
    size_t begins = k->n, i = 0, j = 0;
    while (i < before->n || j < now->n) {
        int order = i == before->n ? 1 : j == now->n ? -1 : slice_cmp(index_list_term(before, i), index_list_term(now, j));
        if (order < 0) {
            layout_add_term(k, begins, index_list_term(before, i), number);
            store_delete_unsought(&w->group->batch, STORE_TERMS, layout_view(k));
        } else if (order > 0) {
            layout_add_term(k, begins, index_list_term(now, j), number);
            store_put_unsought(&w->group->batch, STORE_TERMS, layout_view(k));
        }
        i += order <= 0;
        j += order >= 0;
    }
    k->n = begins;
}

static bool is_local(const item_work *w, uint64_t number) {
    return number <= w->size.local || (w->size.local_from && number >= w->size.local_from);
}

static void begin_local(const item_work *w, const container_index *index, const item_key *key, layout_key *k) {
    layout_local_terms(k, w->container->space->container, index->generation, &key->epk);
}

/* ---- local entries of a partition that has grown ---- */

/* Loads the item that was at this place before the group; the group may have moved it. */
static err load_now(const item_work *w, const item_key *key, item_place place, stored_item *stored_out) {
    layout_key k;
    store_value value;
    bool of_group;
    err code = item__load_place(w, place, stored_out);
    if (code != E_NOT_FOUND) {
        return code;
    }
    layout_order(&k, w->container->space->container, &key->epk, place.number);
    TRY(commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &of_group));
    bool read = layout_order_read(layout_view(&k), value.bytes, &place);
    store_give(&value);
    return read ? item__load_place(w, place, stored_out) : E_STORE_CORRUPT;
}

/* Whether the cached item is as the group has left it. */
static bool is_untouched(const item_work *w, const cached_item *cached) {
    layout_key k;
    layout_item(&k, cached_item_place(cached));
    return !store_batch_find(&w->group->batch, STORE_ITEMS, layout_view(&k)) &&
           !store_batch_find(&w->group->batch, STORE_INDEX, cached_item_key(cached));
}

/* Loads the item from the cache, which has most of those that were written lately. NULL: it is not there. */
static const cached_item *load_cached(const item_work *w, item_place place, stored_item *stored_out) {
    const cached_item *cached = item_cache_take_place(w->home->cache, place);
    *stored_out = (stored_item){.there = true, .place = place};
    if (cached && (!is_untouched(w, cached) || !layout_head_read(cached_item_value(cached), &stored_out->head, &stored_out->body))) {
        cached_item_give(cached);
        return NULL;
    }
    return cached;
}

/* Writes the local entries of an item, unless it is of another partition with the same EPK. */
static err put_local(item_work *w, const item_key *key, const stored_item *stored) {
    layout_key k;
    container_index *both[] = {w->part->index, w->part->building};
    item_key own;
    err code = item__key_of(w->container, w->arena, stored->body, &own);
    bool ours = code == OK && pkey_equal(&own.partition, &key->partition);
    for (size_t i = 0; code == OK && ours && i < 2; i++) {
        if (both[i]) {
            index_list *l = &w->home->lists->before;
            code = list_terms(w, both[i], l, &stored->head, stored->body, true);
            begin_local(w, both[i], key, &k);
            put_all(w, &k, l, stored->place.number);
        }
    }
    return code;
}

/* Writes the local entries of one more item. */
static err localize(item_work *w, const item_key *key, item_place place) {
    stored_item stored;
    const cached_item *cached = load_cached(w, place, &stored);
    err code = cached ? OK : load_now(w, key, place, &stored);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code; /* deleted by this group */
    }
    code = put_local(w, key, &stored);
    if (cached) {
        cached_item_give(cached);
    }
    store_give(&stored.pin);
    return code;
}

/* Writes the local entries of the next few items before local_from. If no committed item is left, and local_from was given out by an
 * earlier group, all items have their entries: an item whose reserved number comes later gets its entries when it is written. A group that
 * has already written such an item does not get here, since the scan would not see that item. */
static err grow_local(item_work *w, const item_key *key) {
    layout_key from, to;
    slice entry, value;
    item_place place;
    err code = OK;
    unsigned n = 0;
    bool last = false;
    layout_order(&from, w->container->space->container, &key->epk, w->size.local + 1);
    layout_order(&to, w->container->space->container, &key->epk, w->size.local_from);
    const store_snapshot *at = w->group->in_memory ? store_snapshot_take_in_memory(w->group->store) : NULL;
    store_scan *scan = store_scan_open(w->group->store, STORE_INDEX, at, layout_view(&from), layout_view(&to), false);
    while (code == OK && n++ < LOCAL_STEP && !last) {
        last = !store_scan_next(scan, &entry, &value);
        if (!last) {
            code = layout_order_read(entry, value, &place) ? localize(w, key, place) : E_STORE_CORRUPT;
            w->size.local = code == OK ? place.number : w->size.local;
        }
    }
    err ended = store_scan_close(scan);
    if (at) {
        store_snapshot_give(w->group->store, at);
    }
    bool committed = w->size.local_from <= ((uint64_t)w->range->rid_prefix << LAYOUT_PREFIX_SHIFT | w->range->written.number_next);
    if (last && committed && code == OK && ended == OK) {
        w->size.local = LOCAL_ALL;
    }
    return code != OK ? code : ended;
}

/* No item has this number or a higher one. */
static uint64_t next_number(const item_work *w) {
    return (uint64_t)w->range->rid_prefix << LAYOUT_PREFIX_SHIFT | w->range->pending.number_next;
}

static bool wants_local(const item_work *w) {
    return w->container->key.n && w->container->ordered && w->size.items >= LOCAL_FROM && w->size.local != LOCAL_ALL &&
           !w->part->index->policy.off;
}

/* ---- writing ---- */

static err put_in(item_work *w, container_index *index, const item_key *key, item_place place, const item_head *head, slice body,
                  const stored_item *before) {
    layout_key k;
    index_list *now = &w->home->lists->now, *old = &w->home->lists->before;
    TRY(list_terms(w, index, now, head, body, true));
    old->n = 0;
    if (before->there) {
        TRY(list_terms(w, index, old, &before->head, before->body, false));
        index_list_sort(old);
        index_list_sort(now);
    }
    layout_terms(&k, place.segment, index->generation);
    put_changes(w, &k, old, now, place.number);
    if (is_local(w, place.number)) {
        begin_local(w, index, key, &k);
        put_changes(w, &k, old, now, place.number);
    }
    return OK;
}

err item__put_terms(item_work *w, const item_key *key, item_place place, const item_head *head, slice body, const stored_item *before) {
    const container_part *part = w->part;
    if (wants_local(w) && w->size.local_from && !w->range->late) {
        TRY(grow_local(w, key));
    } else if (wants_local(w) && !w->size.local_from && !before->there) {
        w->size.local_from = w->range->late ? next_number(w) : place.number;
    }
    TRY(put_in(w, part->index, key, place, head, body, before));
    return part->building ? put_in(w, part->building, key, place, head, body, before) : OK;
}

static err remove_from(item_work *w, container_index *index, const item_key *key, const stored_item *stored) {
    layout_key k;
    index_list *l = &w->home->lists->before;
    TRY(list_terms(w, index, l, &stored->head, stored->body, false));
    layout_terms(&k, stored->place.segment, index->generation);
    delete_all(w, &k, l, stored->place.number);
    if (is_local(w, stored->place.number)) {
        begin_local(w, index, key, &k);
        delete_all(w, &k, l, stored->place.number);
    }
    return OK;
}

err item__remove_terms(item_work *w, const item_key *key, const stored_item *stored) {
    const container_part *part = w->part;
    TRY(remove_from(w, part->index, key, stored));
    return part->building ? remove_from(w, part->building, key, stored) : OK;
}

static err move_in(const item_work *w, container_index *index, const stored_item *stored, uint32_t segment) {
    layout_key k;
    index_list *l = &w->home->lists->before;
    TRY(list_terms(w, index, l, &stored->head, stored->body, true));
    layout_terms(&k, stored->place.segment, index->generation);
    delete_all(w, &k, l, stored->place.number);
    layout_terms(&k, segment, index->generation);
    put_all(w, &k, l, stored->place.number);
    return OK;
}

err item__move_terms(item_work *w, const stored_item *stored, uint32_t segment) {
    const container_part *part = w->part;
    TRY(move_in(w, part->index, stored, segment));
    return part->building ? move_in(w, part->building, stored, segment) : OK;
}

err item__build_terms(item_work *w, container_index *index, const item_key *key, const stored_item *stored) {
    static const stored_item nothing = {0};
    return put_in(w, index, key, stored->place, &stored->head, stored->body, &nothing);
}
