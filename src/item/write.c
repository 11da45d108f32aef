/* Writing items: how the committer decides the operations of a request.
 *
 * For each operation: load the current item; check existence, etag and unique keys; number and stamp the new item; put it and all entries
 * that lead to it. A failed operation leaves neither changes nor counts; in an atomic request all others fail with it. */
#include <assert.h>

#include "base/memory.h"
#include "item/edit_int.h"
#include "item/stored.h"
#include "item/wipe.h"

enum { OPERATIONS_PER_LOOK = 8 };

/* `before`: the lsn of the item that is overwritten; 0: none. */
static item_head stamp(item_work *w, const item_op *op, uint64_t number, uint64_t before) {
    return (item_head){
        .flags = op->not_indexed ? ITEM_NOT_INDEXED : 0,
        .ts = op->preset ? op->preset->ts : clock_ts(w->now_s),
        .etag = op->preset ? op->preset->etag : 0,
        .lsn = item__take_lsn(w, before),
        .ttl = op->ttl,
        .number = number,
    };
}

static uint64_t give_numbers(container_range *range, uint32_t n) {
    uint64_t first = (uint64_t)range->rid_prefix << LAYOUT_PREFIX_SHIFT | range->pending.number_next;
    range->pending.number_next += n;
    return first;
}

static uint64_t number_of(item_work *w, const item_op *op) {
    if (!op->preset || !op->preset->number) {
        return give_numbers(w->range, 1);
    }
    w->range->late = true;
    return op->preset->number;
}

/* ---- conditions and edits ---- */

static err check_expected(const item_expected *e, const stored_item *now) {
    bool same = !e || (e->there == now->there && (!e->there || (e->number == now->place.number && e->lsn == now->head.lsn)));
    return same ? OK : E_RETRY_WITH;
}

/* An edit of an item that the same batch writes cannot be prepared outside, where that version cannot be read. */
static bool may_prepare(const item_work *w) {
    const item_commit *c = w->commit;
    return c->prepares && c->attempts < LIMIT_EDIT_ATTEMPTS && !item__written_before(c, (size_t)(w->op - c->ops));
}

static err decide_later(item_work *w) {
    w->op->is_long = true;
    w->commit->again = true;
    return E_RETRY_WITH;
}

static err run_here(item_work *w, item_op *op, const stored_item *now, item_edit_result *result_out, int32_t *ttl_out) {
    item_edit_input in = {.container = w->container, .key = &op->key, .there = now->there, .head = now->head, .body = now->body};
    bool is_long = op->is_long || item__edit_is_long(op, &in);
    if (is_long && may_prepare(w)) {
        return decide_later(w);
    }
    item_edit_budget b = {.steps = is_long ? LIMIT_EDIT_STEPS_MAX : LIMIT_EDIT_STEPS};
    op->op.detail_n = 0;
    err code = item_edit_run(&op->op, op, &in, &b, result_out, ttl_out);
    if (!b.exceeded || is_long) {
        return code;
    }
    if (may_prepare(w)) { /* it took more steps than estimated */
        return decide_later(w);
    }
    b = (item_edit_budget){.steps = LIMIT_EDIT_STEPS_MAX};
    op->op.detail_n = 0;
    return item_edit_run(&op->op, op, &in, &b, result_out, ttl_out);
}

/* Conditions and edit, applied to the current item. Uses the prepared result if the item is unchanged. */
static err judge(item_work *w, item_op *op, const stored_item *now, item_edit_result *result_out, int32_t *ttl_out) {
    const item_prepared *p = op->prepared;
    if (p && check_expected(&p->of, now) == OK) {
        *result_out = p->result;
        *ttl_out = p->ttl;
        return p->code;
    }
    return run_here(w, op, now, result_out, ttl_out);
}

/* The conditions of a write other than an edit. */
static inline err check_conditions(item_work *w, item_op *op, const stored_item *now) {
    item_edit_result none;
    int32_t ttl;
    return op->conditions_n && op->kind != ITEM_EDIT ? judge(w, op, now, &none, &ttl) : OK;
}

static err check_etag(const item_op *op, const stored_item *now) {
    bool matches = !op->if_match.n || item_etag_matches(op->if_match, item_version(&now->head), now->head.ts);
    return matches ? OK : E_PRECONDITION;
}

/* ---- each kind ---- */

/* Whether this commit has removed items at the range's current lsn. */
static bool has_removed(const item_work *w) {
    return w->batch && w->range->batch == w->batch && w->range->batch_removes;
}

/* The lsn at which this commit removed an item of the same key; 0: it did not. Long commits are not searched, and assume so. */
static uint64_t removed_at(const item_work *w, const item_op *op) {
    const item_commit *c = w->commit;
    bool same = has_removed(w) && (c->n > LIMIT_BATCH_OPERATIONS || item__written_before(c, (size_t)(op - c->ops)));
    return same ? w->range->pending.lsn : 0;
}

static err insert(item_work *w, item_op *op, slice body) {
    static const stored_item nothing = {0};
    TRY(check_conditions(w, op, &nothing));
    item_place place = {w->range->segment, number_of(w, op)};
    TRY(item__unique_check(w, &op->key, body, 0));
    TRY(item__check_room(w, &op->op, 0, LAYOUT_HEAD_BYTES + body.n));
    op->after = stamp(w, op, place.number, removed_at(w, op));
    op->result = body;
    op->created = true;
    return item__put(w, &op->key, place, &op->after, body, &nothing);
}

/* An item that is gone is removed now, and the operation sees no item. */
static err remove_if_gone(item_work *w, const item_key *key, stored_item *now) {
    if (!now->there || !item_gone(w->container, item_wipes_now(w->container), &now->head, now->body, w->now_s)) {
        return OK;
    }
    TRY(w->op->kind != ITEM_READ ? item__remove_gone(w, key, now) : OK);
    store_give(&now->pin);
    *now = (stored_item){0};
    return OK;
}

static err check_free(item_work *w, const item_key *key) {
    stored_item other;
    TRY(item__load(w, key, &other));
    err code = remove_if_gone(w, key, &other);
    store_give(&other.pin);
    return code != OK ? code : other.there ? E_CONFLICT : OK;
}

/* Gives the item the row key of its new body, if that is free. */
static err rename_item(item_work *w, const item_op *op, item_place place, item_key *key_out) {
    *key_out = op->key;
    key_out->row = op->row_after;
    TRY(check_free(w, key_out));
    item__rename(w, &op->key, key_out, place);
    return OK;
}

static err overwrite(item_work *w, item_op *op, const stored_item *now, slice body) {
    item_key renamed;
    const item_key *key = op->row_after.n ? &renamed : &op->key;
    TRY(check_etag(op, now));
    TRY(check_conditions(w, op, now));
    TRY(op->row_after.n ? rename_item(w, op, now->place, &renamed) : OK);
    TRY(item__unique_check(w, key, body, now->place.number));
    TRY(item__check_room(w, &op->op, now->body.n, body.n));
    bool fresh = op->row_after.n && has_removed(w); /* the new key may be that of a removed item */
    op->after = stamp(w, op, now->place.number, fresh ? w->range->pending.lsn : now->head.lsn);
    op->result = body;
    return item__put(w, key, now->place, &op->after, body, now);
}

static err take_away(item_work *w, item_op *op, const stored_item *now) {
    TRY(item__remove(w, &op->key, now, false));
    op->after = now->head;
    op->after.lsn = w->range->pending.lsn;
    return OK;
}

static err apply_create(item_work *w, item_op *op, const stored_item *now) {
    return now->there ? E_CONFLICT : insert(w, op, op->body);
}

static err apply_upsert(item_work *w, item_op *op, const stored_item *now) {
    return now->there ? overwrite(w, op, now, op->body) : insert(w, op, op->body);
}

static err apply_replace(item_work *w, item_op *op, const stored_item *now) {
    return now->there ? overwrite(w, op, now, op->body) : E_NOT_FOUND;
}

static err apply_delete(item_work *w, item_op *op, const stored_item *now) {
    if (!now->there) {
        return E_NOT_FOUND;
    }
    TRY(check_etag(op, now));
    TRY(check_conditions(w, op, now));
    return take_away(w, op, now);
}

static err leave(item_op *op, const stored_item *now) {
    op->left = true;
    op->after = now->head;
    op->result = now->body;
    return OK;
}

static err apply_edit(item_work *w, item_op *op, const stored_item *now) {
    item_edit_result result;
    int32_t ttl = TTL_OFF;
    if (!now->there && (op->if_match.n || item_edit_kind_of(op->edit.kind)->needs_item)) {
        return E_NOT_FOUND;
    }
    TRY(now->there ? check_etag(op, now) : OK);
    TRY(judge(w, op, now, &result, &ttl));
    op->reply = result.reply;
    op->note = result.note;
    op->properties = result.properties;
    if (result.answer == ITEM_EDIT_LEAVE || (result.answer == ITEM_EDIT_DELETE && !now->there)) {
        return leave(op, now);
    }
    if (result.answer == ITEM_EDIT_DELETE) {
        op->deleted = true;
        return take_away(w, op, now);
    }
    op->ttl = ttl;
    return now->there ? overwrite(w, op, now, result.body) : insert(w, op, result.body);
}

static err apply_read(item_work *w, item_op *op, const stored_item *now) {
    (void)w;
    if (op->expected) { /* a guard asks only that the item is unchanged, which was checked before */
        return OK;
    }
    if (!now->there) {
        return E_NOT_FOUND;
    }
    op->after = now->head;
    if (op->if_none_match.n && item_etag_matches(op->if_none_match, item_version(&now->head), now->head.ts)) {
        return E_NOT_MODIFIED;
    }
    op->result = now->body;
    return OK;
}

static err (*const appliers[])(item_work *, item_op *, const stored_item *) = {
    [ITEM_CREATE] = apply_create, [ITEM_UPSERT] = apply_upsert, [ITEM_REPLACE] = apply_replace,
    [ITEM_DELETE] = apply_delete, [ITEM_EDIT] = apply_edit,     [ITEM_READ] = apply_read,
};

/* w->range is set. */
static err apply_one(item_work *w, item_op *op) {
    stored_item now;
    w->op = op;
    w->arena = op->op.arena;
    op->range = w->range;
    TRY(item__enter_range(w, &op->key));
    TRY(item__load(w, &op->key, &now));
    err code = remove_if_gone(w, &op->key, &now);
    code = code != OK ? code : check_expected(op->expected, &now);
    if (code != OK) {
        store_give(&now.pin);
        return code;
    }
    op->before_there = now.there;
    op->before = now.head;
    op->before_body = now.body;
    op->pin = now.pin;
    return appliers[op->kind](w, op, &now);
}

/* The same for a write that its client may repeat. */
static err apply_once(item_work *w, item_op *op) {
    op->range = w->range;
    err code = item__receipt_find(w, op);
    if (code != E_NOT_FOUND) {
        return code;
    }
    TRY(apply_one(w, op));
    if (!op->left) {
        item__receipt_put(w, op);
    }
    return OK;
}

/* Limits the size of a request's results together; a single result is always accepted. */
static err check_budget(item_work *w, const item_op *op) {
    bool fits = w->result_bytes == 0 || w->result_bytes + op->result.n <= LIMIT_BATCH_RESULT_BYTES;
    w->result_bytes += fits ? op->result.n : 0;
    return fits ? OK : E_TOO_LARGE;
}

/* By the newest tiles, which are usually the same as the request's. */
static container_range *range_of(item_commit *c, const item_op *op) {
    bool is_first = op == c->ops && c->tiles == c->container->tiles;
    return is_first ? item__first_range(c) : container_route(c->tiles, &op->key.epk);
}

/* A worker reads what is missing, while the committer goes on with other commits. */
static err fetch_first(item_work *w) {
    w->commit->missed = w->commit->again = true;
    return E_RETRY_WITH;
}

/* Applies one operation, or leaves no trace of it. */
static err apply_or_cut(item_work *w, item_op *op) {
    layout_key primary, size;
    store_mark mark = store_batch_mark(&w->group->batch);
    size_t cache_mark = item_cache_mark(w->home->cache);
    container_range *range = range_of(w->commit, op);
    op->counts_before = range->pending;
    w->range = range;
    item__spell_keys(w, &op->key, &primary, &size);
    op->code = op->receipt.key.n ? apply_once(w, op) : apply_one(w, op);
    w->spelled = NULL;
    op->code = op->code == E_NOT_IN_MEMORY ? fetch_first(w) : op->code;
    op->code = op->code != OK ? op->code : check_budget(w, op);
    if (op->code != OK) {
        store_batch_cut(&w->group->batch, mark);
        item_cache_cut(w->home->cache, cache_mark);
        range->pending = op->counts_before;
    } else if (op->kind != ITEM_READ && !op->repeated) {
        counts_log_link(w->group, range);
    }
    return op->code;
}

static bool only_reads(const item_commit *c) {
    for (size_t i = 0; i < c->n; i++) {
        if (c->ops[i].kind != ITEM_READ) {
            return false;
        }
    }
    return true;
}

static err check_target(const item_commit *c) {
    if (c->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    err writable = container_check_writable(c->container, c->items->clock);
    if (writable != OK && !only_reads(c)) {
        return writable;
    }
    bool gone = c->range_id >= 0 && !partition_map_by_id(c->tiles->map, (uint32_t)c->range_id);
    return gone ? E_RANGE_GONE : OK;
}

/* A bulk request names its range; an operation with a key elsewhere gets E_RANGE_GONE. */
static bool in_named_range(item_commit *c, const item_op *op) {
    return c->range_id < 0 || range_of(c, op)->id == (uint32_t)c->range_id;
}

/* Stops between two operations if others have waited long enough; looks at the clock now and then. */
static bool makes_way(const item_work *w, item_commit *c) {
    size_t done = c->from - c->began;
    c->paused = done > 0 && done % OPERATIONS_PER_LOOK == 0 && commit_should_stop(w->group);
    return c->paused;
}

/* Applies each operation by itself; those that failed while being prepared keep their code. At an operation that is too long the commit
 * stops, and continues with it when it is submitted again: so operations are decided in order. */
static void apply_each(item_work *w, item_commit *c) {
    bool stopped = false;
    for (; c->from < c->n && (stopped || !makes_way(w, c)); c->from++) {
        item_op *op = &c->ops[c->from];
        if (stopped) {
            op->code = E_FAILED_DEPENDENCY;
        } else if (op->code == OK && !in_named_range(c, op)) {
            op->code = E_RANGE_GONE;
        } else if (op->code == OK) {
            apply_or_cut(w, op);
        }
        if (c->again) {
            return;
        }
        stopped = stopped || (c->stops_at_failure && op->code != OK);
    }
}

/* The first `n` operations were applied: restores the counts of their ranges. */
static void undo(item_commit *c, size_t n) {
    for (size_t i = n; i-- > 0;) {
        c->ops[i].range->pending = c->ops[i].counts_before;
    }
}

/* The other operations fail with operation `failed`. If that is c->n, an operation of another commit failed. */
static void fail_others(item_commit *c, size_t failed, bool applied) {
    for (size_t i = 0; i < c->n; i++) {
        if (i != failed) {
            c->ops[i].code = E_FAILED_DEPENDENCY;
            c->ops[i].undone = applied && i < failed;
        }
    }
}

static err apply_together(item_work *w, item_commit *c) {
    for (size_t i = 0; i < c->n; i++) {
        err code = apply_or_cut(w, &c->ops[i]);
        if (code != OK) {
            undo(c, i);
            fail_others(c, i, true);
            return code;
        }
    }
    return OK;
}

static size_t results_so_far(const item_commit *c) {
    size_t bytes = 0;
    for (size_t i = 0; i < c->from; i++) {
        bytes += c->ops[i].code == OK ? c->ops[i].result.n : 0;
    }
    return bytes;
}

/* Keeps those of an earlier attempt, since finished operations refer to ranges of them. */
static void renew_tiles(item_commit *c, container_tiles *newest) {
    if (c->tiles == newest) {
        return;
    }
    if (c->tiles) {
        c->past = mem_resize(c->past, (c->past_n + 1) * sizeof *c->past);
        c->past[c->past_n++] = c->tiles;
    }
    c->tiles = container_tiles_take(newest);
}

/* A range has the same home as its ancestors, so the request's tiles give the same home as the newest ones. */
static err begin(item_commit *c, home *home, commit_group *group, item_work *w_out) {
    container_part *part = container_part_of(c->container->space, home);
    renew_tiles(c, part->tiles);
    *w_out = (item_work){
        .items = c->items,
        .home = home,
        .commit = c,
        .group = group,
        .container = c->container,
        .part = part,
        .tiles = c->tiles,
        .now_s = clock_wall_ms(c->items->clock) / 1000,
        .batch = c->atomic ? home->batches : 0,
        .result_bytes = results_so_far(c),
    };
    return check_target(c);
}

/* Fails the commits of a chain before and after the failed one. The first one stands for the chain: it knows whether data was missed. */
static void fail_chain(item_commit *first, const item_commit *failed) {
    bool applied = true;
    first->again = failed->again;
    first->missed = failed->missed;
    for (item_commit *c = first; c; c = c->also) {
        applied = applied && c != failed;
        if (applied) {
            undo(c, c->n);
        }
        if (c != failed) {
            fail_others(c, c->n, applied);
        }
    }
}

/* If it fails, the committer cuts the changes; counts and notices to the cache are undone here. */
static err apply_chain(item_commit *first, home *home, commit_group *group) {
    size_t cache_mark = item_cache_mark(home->cache);
    home->batches++;
    for (item_commit *c = first; c; c = c->also) {
        item_work w;
        err code = begin(c, home, group, &w);
        code = code != OK ? code : apply_together(&w, c);
        if (code != OK) {
            fail_chain(first, c);
            item_cache_cut(home->cache, cache_mark);
            return code;
        }
    }
    return OK;
}

static err apply_all(item_commit *c, commit_group *group) {
    home *home = item__first_range(c)->home;
    item_work w;
    if (c->atomic) {
        return apply_chain(c, home, group);
    }
    TRY(begin(c, home, group, &w));
    apply_each(&w, c);
    return OK;
}

err item__commit_apply(commit *base, commit_group *group) {
    item_commit *c = (item_commit *)base;
    group->in_memory = c->prepares && !c->fetched;
    err code = apply_all(c, group);
    group->in_memory = false;
    return code;
}

/* ---- reserving numbers ---- */

static err apply_reserve(commit *base, commit_group *group) {
    (void)group; /* nothing is written: unused numbers are given out again after a restart */
    item_reserve *r = (item_reserve *)base;
    if (r->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    container_range *range = container_route(container_part_of(r->container->space, r->home)->tiles, &r->key->epk);
    r->first = give_numbers(range, r->n);
    range->reserved_next = range->pending.number_next;
    return OK;
}

static void reserve_done(commit *base) {
    item_reserve *r = (item_reserve *)base;
    r->done(r);
}

void item_reserve_submit(const items *s, item_reserve *r) {
    (void)s;
    r->home = container_route(r->container->tiles, &r->key->epk)->home;
    r->base = (commit){.queue = &container_part_of(r->container->space, r->home)->commits,
                       .use = STORE_READS,
                       .apply = apply_reserve,
                       .done = reserve_done};
    committer_submit(r->home->committer, &r->base);
}
