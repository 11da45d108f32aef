#include "item/wipe.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "item/admit.h"
#include "item/stored.h"
#include "item/versions.h"
#include "throughput/charge.h"

enum { COST_BYTES = 4096, STEPS_PER_COST = 8, LSN_BYTES = 8 };

static const double WIPE_SHARE = 0.1;                                                 /* a tenth of the range's throughput, as documented */
static const int64_t LINGER_US = (int64_t)(LIMIT_TRANSACTION_SECONDS + 30) * 1000000; /* longer than any snapshot is kept */

/* The list belongs to the space, sorted by `prefix` and guarded by wipes_lock. Wipes are added and changed by the committer of their home,
 * and freed by the balancer's step once they are finished. */
typedef struct wipe {
    home *home;
    uint64_t lsn;     /* items written up to here are gone */
    int64_t ended_us; /* 0: items are still to be removed */
    buf at;           /* owned by the committer: the last primary key visited; empty: none */
    size_t prefix_n;
    char prefix[]; /* the common prefix of the partition's primary keys */
} wipe;

static slice prefix_of(const wipe *w) {
    return slice_of(w->prefix, w->prefix_n);
}

static void spell_prefix(layout_key *k, const container *c, const item_key *key) {
    layout_primary(k, c->space->container, &key->epk, &key->partition, SLICE_EMPTY);
}

static void spell_record(layout_key *k, slice prefix) {
    k->n = 0;
    k->bytes[k->n++] = 'W';
    memcpy(k->bytes + k->n, prefix.p, prefix.n);
    k->n += prefix.n;
}

/* ---- the list; its lock is held ---- */

/* The position of the first wipe whose prefix is not below. */
static size_t position(const container_space *space, slice prefix) {
    size_t low = 0, high = atomic_load_explicit(&space->wipes_n, memory_order_relaxed);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_cmp(prefix_of(space->wipes[middle]), prefix) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static wipe *find(const container_space *space, slice prefix) {
    size_t i = position(space, prefix);
    bool found = i < atomic_load_explicit(&space->wipes_n, memory_order_relaxed) && slice_eq(prefix_of(space->wipes[i]), prefix);
    return found ? space->wipes[i] : NULL;
}

static wipe *add(container_space *space, home *home, slice prefix) {
    size_t i = position(space, prefix), n = atomic_load_explicit(&space->wipes_n, memory_order_relaxed);
    wipe *made = mem_zero(sizeof *made + prefix.n);
    made->home = home;
    made->at = buf_init(BUF_NO_LIMIT);
    made->prefix_n = prefix.n;
    memcpy(made->prefix, prefix.p, prefix.n);
    space->wipes = mem_resize(space->wipes, (n + 1) * sizeof *space->wipes);
    memmove(space->wipes + i + 1, space->wipes + i, (n - i) * sizeof *space->wipes);
    space->wipes[i] = made;
    atomic_store_explicit(&space->wipes_n, (uint32_t)n + 1, memory_order_release);
    return made;
}

static void free_wipe(wipe *w) {
    buf_free(&w->at);
    free(w);
}

static void publish(container_space *space, home *home, slice prefix, uint64_t lsn) {
    pthread_rwlock_wrlock(&space->wipes_lock);
    wipe *w = find(space, prefix);
    bool open = w && !w->ended_us;
    w = w ? w : add(space, home, prefix);
    atomic_fetch_add(&space->wipes_open, !open);
    w->lsn = lsn;
    w->ended_us = 0;
    w->at.n = 0;
    pthread_rwlock_unlock(&space->wipes_lock);
}

void item__wipes_free(container_space *space) {
    for (size_t i = 0; i < space->wipes_n; i++) {
        free_wipe(space->wipes[i]);
    }
    free(space->wipes);
    pthread_rwlock_destroy(&space->wipes_lock);
}

/* ---- readers ---- */

/* The item's own lsn decides. An item that a transaction has written and not committed has none yet. */
static bool is_wiped(const container *c, const item_head *head, slice body) {
    op unused = {0};
    item_key key = {0};
    layout_key k;
    container_space *space = c->space;
    if (head->lsn == 0 || c->key.n == 0 || pkey_extract(&unused, body, &c->key, &key.partition) != OK) {
        return false;
    }
    epk_of(&c->key, &key.partition, &key.epk);
    spell_prefix(&k, c, &key);
    pthread_rwlock_rdlock(&space->wipes_lock);
    const wipe *w = find(space, layout_view(&k));
    bool wiped = w && head->lsn <= w->lsn;
    pthread_rwlock_unlock(&space->wipes_lock);
    return wiped;
}

bool item_gone(const container *c, bool wipes, const item_head *head, slice body, int64_t now_s) {
    return item_expired(c, head, now_s) || (wipes && is_wiped(c, head, body));
}

/* ---- making one ---- */

static home *home_of(const item_wipe *w) {
    return container_route(w->container->tiles, &w->key.epk)->home;
}

static void put_record(commit_group *group, slice prefix, uint64_t lsn) {
    layout_key k;
    uint64_t bytes = htobe64(lsn);
    spell_record(&k, prefix);
    store_put(&group->batch, STORE_META, layout_view(&k), slice_of(&bytes, LSN_BYTES));
}

/* A partition without items needs no record. */
static err note(item_work *work, item_wipe *w) {
    layout_key prefix;
    TRY(item__enter(work, &w->key));
    w->range = work->range;
    w->lsn = work->range->pending.lsn;
    w->pending = work->size.items > 0;
    if (!w->pending) {
        return OK;
    }
    if (atomic_load_explicit(&w->container->space->wipes_n, memory_order_relaxed) >= LIMIT_WIPES) {
        w->op->retry_after_ms = 1000;
        return op_fail(w->op, E_TENANT_BUSY, "The items of %d partition keys are still being deleted. Please retry this request later.",
                       LIMIT_WIPES);
    }
    w->lsn = ++work->range->pending.lsn;
    spell_prefix(&prefix, w->container, &w->key);
    put_record(work->group, layout_view(&prefix), w->lsn);
    counts_log_link(work->group, work->range);
    return OK;
}

static err apply(commit *base, commit_group *group) {
    item_wipe *w = (item_wipe *)base;
    home *home = home_of(w);
    container_part *part = container_part_of(w->container->space, home);
    w->tiles = container_tiles_take(part->tiles);
    item_work work = {
        .items = w->items, .home = home, .group = group, .container = w->container, .part = part, .tiles = w->tiles, .arena = w->op->arena};
    if (w->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    TRY(container_check_writable(w->container, w->items->clock));
    return note(&work, w);
}

/* The commit is solo: no other is decided between its write and this. */
static void is_done(commit *base) {
    item_wipe *w = (item_wipe *)base;
    layout_key prefix;
    if (base->code == OK && w->pending) {
        spell_prefix(&prefix, w->container, &w->key);
        publish(w->container->space, home_of(w), layout_view(&prefix), w->lsn);
    }
    w->done(w);
}

err item_wipe_submit(item_wipe *w) {
    assert(w->container->key.n);
    TRY(item__admit(w->items, w->op, container_route(w->container->tiles, &w->key.epk)));
    home *home = home_of(w);
    w->base = (commit){
        .queue = &container_part_of(w->container->space, home)->commits, .solo = true, .use = STORE_FREES, .apply = apply, .done = is_done};
    committer_submit(home->committer, &w->base);
    return OK;
}

void item_wipe_charge(item_wipe *w) {
    double ru = w->base.code == OK ? charge_delete(0, 0) : CHARGE_FAILED;
    container_range *range = w->range ? w->range : container_route(w->container->tiles, &w->key.epk);
    op_charge(w->op, ru);
    item__debit(w->items, w->op, range, &w->key, METER_DELETE, ru, w->base.code != OK);
}

item_mark item_wipe_mark(const item_wipe *w) {
    return (item_mark){w->range->id, w->range->segment, w->lsn};
}

void item_wipe_give(item_wipe *w) {
    if (w->tiles) {
        container_tiles_give(w->tiles);
        w->tiles = NULL;
    }
}

/* ---- the removal ---- */

static bool is_over(const wipe *w, int64_t now_us) {
    return w->ended_us && now_us - w->ended_us > LINGER_US;
}

bool item_wipes_due(const items *s, const container *c) {
    container_space *space = c->space;
    bool due = false;
    if (!item_wipes_past(c)) {
        return false;
    }
    int64_t now_us = clock_monotonic_us(s->clock);
    bool paid = atomic_load(&space->wipes_paid_us) <= now_us;
    pthread_rwlock_rdlock(&space->wipes_lock);
    for (size_t i = 0; i < space->wipes_n && !due; i++) {
        due = space->wipes[i]->ended_us ? is_over(space->wipes[i], now_us) : paid;
    }
    pthread_rwlock_unlock(&space->wipes_lock);
    return due;
}

static void forget_old(container_space *space, int64_t now_us) {
    size_t kept = 0;
    pthread_rwlock_wrlock(&space->wipes_lock);
    for (size_t i = 0; i < space->wipes_n; i++) {
        if (is_over(space->wipes[i], now_us)) {
            free_wipe(space->wipes[i]);
        } else {
            space->wipes[kept++] = space->wipes[i];
        }
    }
    atomic_store_explicit(&space->wipes_n, (uint32_t)kept, memory_order_release);
    pthread_rwlock_unlock(&space->wipes_lock);
}

static wipe *next_open(container_space *space, const home *home) {
    wipe *found = NULL;
    pthread_rwlock_rdlock(&space->wipes_lock);
    for (size_t i = 0; i < space->wipes_n && !found; i++) {
        wipe *w = space->wipes[i];
        found = w->ended_us == 0 && (!home || w->home == home) ? w : NULL;
    }
    pthread_rwlock_unlock(&space->wipes_lock);
    return found;
}

bool item_wipes_open(const container *c) {
    return item_wipes_now(c);
}

static void spend(item_wipe_step *step, const container *c, const stored_item *stored) {
    static const index_policy none = {.off = true};
    size_t cost = 1 + stored->body.n / COST_BYTES;
    const index_policy *policy = stored->head.flags & ITEM_NOT_INDEXED ? &none : &c->index;
    step->cost_left -= cost < step->cost_left ? (unsigned)cost : step->cost_left;
    step->ru += charge_delete(stored->body.n, index_terms(policy, stored->body));
}

static err remove_stored(item_work *w, item_wipe_step *step, const stored_item *stored) {
    item_key key;
    if (stored->head.lsn > step->wipe->lsn) { /* written after the wipe */
        return OK;
    }
    TRY(item__key_of(w->container, w->arena, stored->body, &key));
    TRY(item__enter(w, &key));
    store_mark mark = store_batch_mark(&w->group->batch);
    err code = item__remove(w, &key, stored, item_expired(w->container, &stored->head, w->now_s));
    if (code != OK) {
        store_batch_cut(&w->group->batch, mark);
        return code;
    }
    counts_log_link(w->group, w->range);
    step->range = w->range;
    spend(step, w->container, stored);
    return OK;
}

static bool read_place(slice value, item_place *place_out) {
    slice item, body;
    item_head head;
    if (layout_place_read(value, place_out)) {
        return true;
    }
    if (!layout_row_read(value, &place_out->segment, &item) || !layout_head_read(item, &head, &body)) {
        return false;
    }
    place_out->number = head.number;
    return true;
}

/* A damaged item was logged on loading, and stays. */
static err visit(item_work *w, item_wipe_step *step, slice value) {
    item_place place;
    stored_item stored;
    err code = read_place(value, &place) ? item__load_place(w, place, &stored) : E_STORE_CORRUPT;
    if (code == E_NOT_FOUND || code == E_STORE_CORRUPT) {
        return OK;
    }
    TRY(code);
    code = remove_stored(w, step, &stored);
    store_give(&stored.pin);
    return code;
}

static void start_key(const wipe *w, layout_key *from) {
    slice start = w->at.n ? buf_view(&w->at) : prefix_of(w);
    memcpy(from->bytes, start.p, start.n);
    from->n = start.n;
    if (w->at.n) {
        from->bytes[from->n++] = 0; /* the first key after it */
    }
}

static void end_key(const wipe *w, layout_key *to) {
    memcpy(to->bytes, w->prefix, w->prefix_n);
    to->n = w->prefix_n;
    layout_after(to);
}

/* If the store fails in the middle, the step keeps what it has done: each item is removed as a whole. */
static err remove_some(item_work *w, item_wipe_step *step) {
    layout_key from, to;
    slice key, value;
    err code = OK;
    size_t steps_left = (size_t)step->cost_max * STEPS_PER_COST;
    start_key(step->wipe, &from);
    end_key(step->wipe, &to);
    store_scan *scan = store_scan_open(w->group->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    while (code == OK && step->cost_left > 0 && steps_left-- > 0) {
        if (!store_scan_next(scan, &key, &value)) {
            step->ended = true;
            break;
        }
        code = visit(w, step, value);
        if (code == OK) {
            step->at.n = 0;
            buf_add_slice(&step->at, key);
        }
    }
    err ended = store_scan_close(scan);
    step->ended = step->ended && ended == OK;
    return code != OK ? code : ended;
}

static err step_apply(commit *base, commit_group *group) {
    item_wipe_step *step = (item_wipe_step *)base;
    container_space *space = step->container->space;
    container_part *part = container_part_of(space, step->home);
    step->wipe = space->deleted ? NULL : next_open(space, step->home);
    if (!step->wipe) {
        return OK;
    }
    layout_key k;
    arena scratch = arena_init();
    item_work w = {.items = step->items,
                   .home = step->home,
                   .group = group,
                   .container = step->container,
                   .part = part,
                   .tiles = part->tiles,
                   .arena = &scratch,
                   .now_s = clock_wall_ms(step->items->clock) / 1000};
    err code = remove_some(&w, step);
    if (code != OK) {
        log_warn("item", "deleting by partition key stopped early", "container=%u code=%s", space->container, err_lookup(code)->name);
    } else if (step->ended) {
        spell_record(&k, prefix_of(step->wipe));
        store_delete(&group->batch, STORE_META, layout_view(&k));
    }
    arena_free(&scratch);
    return OK;
}

/* Charges the range, and sets when the next step may begin. */
static void pay(const item_wipe_step *step, int64_t now_us) {
    op unused = {0};
    double rate = atomic_load_explicit(&container_range_bucket(step->range)->rate, memory_order_relaxed);
    item__debit_more(step->items, &unused, step->range, METER_DELETE, step->ru);
    atomic_store(&step->container->space->wipes_paid_us, rate > 0 ? now_us + (int64_t)(step->ru / (rate * WIPE_SHARE) * 1e6) : now_us);
}

static void advance(const item_wipe_step *step, int64_t now_us) {
    container_space *space = step->container->space;
    wipe *w = step->wipe;
    pthread_rwlock_wrlock(&space->wipes_lock);
    if (step->ended) {
        atomic_fetch_sub(&space->wipes_open, !w->ended_us);
        w->ended_us = now_us ? now_us : 1;
    }
    w->at.n = 0;
    buf_add_slice(&w->at, buf_view(&step->at));
    pthread_rwlock_unlock(&space->wipes_lock);
}

/* No reshape is decided between the step's write and this, so the range is still the container's. */
static void step_done(commit *base) {
    item_wipe_step *step = (item_wipe_step *)base;
    int64_t now_us = clock_monotonic_us(step->items->clock);
    if (base->code == OK && step->wipe) {
        advance(step, now_us);
    }
    if (base->code == OK && step->range) {
        pay(step, now_us);
    }
    buf_free(&step->at);
    step->done(step);
}

bool item_wipe_step_submit(item_wipe_step *step) {
    container_space *space = step->container->space;
    forget_old(space, clock_monotonic_us(step->items->clock));
    const wipe *next = next_open(space, NULL);
    if (!next) {
        return false;
    }
    step->home = next->home;
    step->wipe = NULL;
    step->range = NULL;
    step->cost_left = step->cost_max;
    step->ru = 0;
    step->ended = false;
    step->at = buf_init(BUF_NO_LIMIT);
    step->base = (commit){.queue = &container_part_of(space, step->home)->commits,
                          .use = item_versions_kept(step->container) ? STORE_GROWS : STORE_FREES,
                          .apply = step_apply,
                          .done = step_done};
    committer_submit(step->home->committer, &step->base);
    return true;
}

/* ---- loading and dropping ---- */

typedef struct key_pair {
    layout_key from, to;
} key_pair;

static void records_of(key_pair *run, uint32_t number) {
    layout_key container;
    layout_container(&container, number);
    spell_record(&run->from, layout_view(&container));
    layout_copy(&run->to, &run->from);
    layout_after(&run->to);
}

static err load_home(container *c, home *home) {
    key_pair run;
    slice key, value;
    records_of(&run, c->space->container);
    store_scan *scan = store_scan_open(home->store, STORE_META, NULL, layout_view(&run.from), layout_view(&run.to), false);
    while (store_scan_next(scan, &key, &value)) {
        uint64_t lsn;
        if (value.n == LSN_BYTES) {
            memcpy(&lsn, value.p, LSN_BYTES);
            publish(c->space, home, slice_skip(key, 1), be64toh(lsn));
        }
    }
    return store_scan_close(scan);
}

err item_wipes_load(container *c) {
    for (size_t i = 0; i < c->space->parts_n; i++) {
        home *home = c->space->parts[i].home;
        TRY(home ? load_home(c, home) : OK);
    }
    return OK;
}

void item_wipes_drop(store_batch *b, uint32_t number) {
    key_pair run;
    records_of(&run, number);
    store_delete_range(b, STORE_META, layout_view(&run.from), layout_view(&run.to));
}
