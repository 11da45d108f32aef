/* Writing items: what the committer decides for one request's operations.
 *
 * For each operation: find what is there now; check existence, etag and unique keys against it; number and stamp the item; put it and all
 * entries that lead to it. An operation that fails leaves neither changes nor counts; in an atomic request it takes the others with it. */
#include <assert.h>

#include "base/units.h"
#include "doc/json.h"
#include "item/admit.h"
#include "item/stored.h"
#include "item/versions.h"
#include "throughput/charge.h"

enum { PATCHED_BYTES_MAX = 32 * 1024 * 1024, TEXT_PER_BYTE_MAX = 6 /* a control character, escaped */ };

static item_head stamp(item_work *w, const item_op *op, uint64_t number) {
    return (item_head){
        .flags = op->not_indexed ? ITEM_NOT_INDEXED : 0,
        .ts = op->preset ? op->preset->ts : clock_ts(w->now_s),
        .etag = op->preset ? op->preset->etag : 0,
        .lsn = ++w->range->pending.lsn,
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

err item__check_room(item_work *w, op *o, size_t before, size_t after) {
    bool fixed = w->container->key.n == 0;
    uint64_t most = fixed ? w->items->limits.fixed_bytes : w->items->limits.partition_bytes;
    if (after <= before || w->size.bytes + (after - before) <= most) {
        return OK;
    }
    char shown[32];
    bytes_text(shown, sizeof shown, most);
    return fixed ? op_fail(o, E_CONTAINER_FULL, "The container has no partition key and reached its maximum size of %s.", shown)
                 : op_fail(o, E_PARTITION_FULL,
                           "Partition key reached maximum size of %s. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk", shown);
}

static err insert(item_work *w, item_op *op) {
    static const stored_item nothing = {0};
    item_place place = {w->range->segment, number_of(w, op)};
    TRY(item__unique_check(w, &op->key, op->body, 0));
    TRY(item__check_room(w, &op->op, 0, LAYOUT_HEAD_BYTES + op->body.n));
    op->after = stamp(w, op, place.number);
    op->result = op->body;
    op->created = true;
    return item__put(w, &op->key, place, &op->after, op->body, &nothing);
}

static err overwrite(item_work *w, item_op *op, const stored_item *now, slice body) {
    if (op->if_match.n && !item_etag_matches(op->if_match, item_version(&now->head), now->head.ts)) {
        return E_PRECONDITION;
    }
    TRY(item__unique_check(w, &op->key, body, now->place.number));
    TRY(item__check_room(w, &op->op, now->body.n, body.n));
    op->after = stamp(w, op, now->place.number);
    op->result = body;
    return item__put(w, &op->key, now->place, &op->after, body, now);
}

static err apply_create(item_work *w, item_op *op, const stored_item *now) {
    return now->there ? E_CONFLICT : insert(w, op);
}

static err apply_upsert(item_work *w, item_op *op, const stored_item *now) {
    return now->there ? overwrite(w, op, now, op->body) : insert(w, op);
}

static err apply_replace(item_work *w, item_op *op, const stored_item *now) {
    return now->there ? overwrite(w, op, now, op->body) : E_NOT_FOUND;
}

static err apply_delete(item_work *w, item_op *op, const stored_item *now) {
    if (!now->there) {
        return E_NOT_FOUND;
    }
    if (op->if_match.n && !item_etag_matches(op->if_match, item_version(&now->head), now->head.ts)) {
        return E_PRECONDITION;
    }
    TRY(item__remove(w, &op->key, now, false));
    op->after = now->head;
    op->after.lsn = w->range->pending.lsn;
    return OK;
}

/* The patched body must still be the same item. */
static err check_patched(item_work *w, item_op *op, slice body) {
    item_op whole = {.kind = ITEM_REPLACE, .key.row = op->key.row, .body = body};
    err code = item_check_body(&op->op, w->container, w->container->key.n ? &op->key.partition : NULL, &whole);
    if (code == E_KEY_MISMATCH) {
        return op_fail(&op->op, E_BAD_REQUEST, "A patch cannot change the item's partition key.");
    }
    op->ttl = whole.ttl;
    return code;
}

/* The limit is of the text, which can be far shorter than the BSON, as for lists of small numbers, or somewhat longer. */
static err check_patched_size(slice body) {
    if (body.n <= LIMIT_ITEM_BYTES / TEXT_PER_BYTE_MAX) {
        return OK;
    }
    buf text = buf_init(LIMIT_ITEM_BYTES);
    json_from_bson(&text, body);
    bool fits = buf_ok(&text);
    buf_free(&text);
    return fits ? OK : E_TOO_LARGE;
}

static err apply_patch(item_work *w, item_op *op, const stored_item *now) {
    if (!now->there) {
        return E_NOT_FOUND;
    }
    if (op->if_match.n && !item_etag_matches(op->if_match, item_version(&now->head), now->head.ts)) {
        return E_PRECONDITION;
    }
    if (op->condition) {
        TRY(op->condition->check(op->condition, &op->op, &now->head, now->body));
    }
    buf patched = buf_init(PATCHED_BYTES_MAX);
    err code = patch_apply(&op->op, op->patch, now->body, &patched);
    slice body = code == OK ? arena_copy(w->arena, buf_view(&patched)) : SLICE_EMPTY;
    buf_free(&patched);
    TRY(code);
    TRY(check_patched_size(body));
    TRY(check_patched(w, op, body));
    return overwrite(w, op, now, body);
}

static err apply_read(item_work *w, item_op *op, const stored_item *now) {
    (void)w;
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
    [ITEM_DELETE] = apply_delete, [ITEM_PATCH] = apply_patch,   [ITEM_READ] = apply_read,
};

/* An expired item is as good as gone: its bytes go now, and what follows finds nothing. */
static err bury(item_work *w, const item_op *op, stored_item *now) {
    if (now->there && item_expired(w->container, &now->head, w->now_s)) {
        if (op->kind != ITEM_READ) {
            TRY(item__remove(w, &op->key, now, true));
        }
        store_give(&now->pin);
        *now = (stored_item){0};
    }
    return OK;
}

static err check_expected(const item_expected *e, const stored_item *now) {
    bool same = !e || (e->there == now->there && (!e->there || (e->number == now->place.number && e->lsn == now->head.lsn)));
    return same ? OK : E_RETRY_WITH;
}

static err apply_one(item_work *w, item_op *op) {
    stored_item now;
    w->arena = op->op.arena;
    TRY(item__enter(w, &op->key));
    op->range = w->range;
    TRY(item__load(w, &op->key, &now));
    err code = bury(w, op, &now);
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

/* A request's results together stay within bounds, whatever its operations do to large items; one alone always fits. */
static err check_budget(item_work *w, const item_op *op) {
    bool fits = w->result_bytes == 0 || w->result_bytes + op->result.n <= LIMIT_BATCH_RESULT_BYTES;
    w->result_bytes += fits ? op->result.n : 0;
    return fits ? OK : E_TOO_LARGE;
}

/* One operation, or nothing of it. */
static err apply_or_leave(item_work *w, item_op *op) {
    store_mark mark = store_batch_mark(&w->group->batch);
    size_t cache_mark = item_cache_mark(w->home->cache);
    container_range *range = container_route(w->tiles, &op->key.epk);
    range_counts counts = range->pending;
    op->code = apply_one(w, op);
    op->code = op->code != OK ? op->code : check_budget(w, op);
    if (op->code != OK) {
        store_batch_cut(&w->group->batch, mark);
        item_cache_cut(w->home->cache, cache_mark);
        range->pending = counts;
    } else if (op->kind != ITEM_READ) {
        counts_log_link(w->group, range);
    }
    return op->code;
}

static void fail_others(item_commit *c, size_t failed) {
    for (size_t i = 0; i < c->n; i++) {
        if (i != failed) {
            c->ops[i].code = E_FAILED_DEPENDENCY;
            c->ops[i].undone = i < failed;
        }
    }
}

static err check_target(const item_commit *c) {
    if (c->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    bool gone = c->range_id >= 0 && !partition_map_by_id(c->tiles->map, (uint32_t)c->range_id);
    return gone ? E_RANGE_GONE : OK;
}

/* A bulk request names its range; an operation whose key lies elsewhere is told so. */
static bool in_named_range(const item_commit *c, const item_op *op) {
    return c->range_id < 0 || container_route(c->tiles, &op->key.epk)->id == (uint32_t)c->range_id;
}

/* Each by itself; those refused while they were prepared keep their code. */
static void apply_each(item_work *w, item_commit *c) {
    bool stopped = false;
    for (size_t i = 0; i < c->n; i++) {
        item_op *op = &c->ops[i];
        if (stopped) {
            op->code = E_FAILED_DEPENDENCY;
        } else if (op->code == OK && !in_named_range(c, op)) {
            op->code = E_RANGE_GONE;
        } else if (op->code == OK) {
            apply_or_leave(w, op);
        }
        stopped = stopped || (c->stops_at_failure && op->code != OK);
    }
}

static container_range *first_range(const item_commit *c) {
    return container_route(c->container->tiles, &c->ops[0].key.epk);
}

static err apply_all(commit *base, commit_group *group) {
    item_commit *c = (item_commit *)base;
    home *home = first_range(c)->home; /* a range's home is that of all its ancestors: old tiles tell it as well */
    container_part *part = container_part_of(c->container->space, home);
    c->tiles = container_tiles_take(part->tiles);
    item_work w = {
        .items = c->items,
        .home = home,
        .group = group,
        .container = c->container,
        .part = part,
        .tiles = c->tiles,
        .now_s = clock_wall_ms(c->items->clock) / 1000,
    };
    TRY(check_target(c));
    if (!c->atomic) {
        apply_each(&w, c);
        return OK;
    }
    container_range *range = container_route(c->tiles, &c->ops[0].key.epk); /* one key, one range */
    range_counts counts = range->pending;
    size_t cache_mark = item_cache_mark(home->cache);
    for (size_t i = 0; i < c->n; i++) {
        err code = apply_or_leave(&w, &c->ops[i]);
        if (code != OK) {
            range->pending = counts;
            item_cache_cut(home->cache, cache_mark);
            fail_others(c, i);
            return code; /* the committer cuts the changes */
        }
    }
    return OK;
}

static void all_done(commit *base) {
    item_commit *c = (item_commit *)base;
    c->done(c);
}

/* Bulk may be about several ranges: each must have something left of its share. */
static err admit(const item_commit *c) {
    container_range *range = first_range(c);
    TRY(item__admit(c->items, c->op, range));
    for (size_t i = 1; i < c->n && !c->atomic; i++) {
        container_range *next = container_route(c->container->tiles, &c->ops[i].key.epk);
        if (next != range) {
            range = next;
            TRY(item__admit(c->items, c->op, range));
        }
    }
    return OK;
}

/* Where versions are kept, a delete writes the whole item once more. */
static store_use use_of(const item_commit *c) {
    store_use use = STORE_READS;
    for (size_t i = 0; i < c->n; i++) {
        bool frees = c->ops[i].kind == ITEM_DELETE && !item_versions_kept(c->container);
        store_use one = c->ops[i].kind == ITEM_READ ? STORE_READS : frees ? STORE_FREES : STORE_GROWS;
        use = one < use ? one : use;
    }
    return use;
}

err item_commit_submit(item_commit *c) {
    assert(c->n > 0);
    TRY(admit(c));
    home *home = first_range(c)->home;
    c->base =
        (commit){.queue = &container_part_of(c->container->space, home)->commits, .use = use_of(c), .apply = apply_all, .done = all_done};
    committer_submit(home->committer, &c->base);
    return OK;
}

/* ---- numbers ahead of their items ---- */

static err apply_reserve(commit *base, commit_group *group) {
    (void)group; /* nothing is written: numbers that come to nothing are given out again after a restart */
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

/* ---- after the commit, on the caller's thread ---- */

/* A patch that fails has looked at all of the item, and may have made it anew. */
static double price_failed(const item_op *op) {
    double read = op->kind == ITEM_PATCH && op->before_there ? charge_read(op->before_body.n) : 0;
    return read > CHARGE_FAILED ? read : CHARGE_FAILED;
}

static double price_done(const item_op *op, const index_policy *index) {
    index_policy none = {.off = true};
    const index_policy *now = op->not_indexed ? &none : index;
    const index_policy *then = op->before.flags & ITEM_NOT_INDEXED ? &none : index;
    switch (op->kind) {
    case ITEM_READ:
        return charge_read(op->result.n);
    case ITEM_DELETE:
        return charge_delete(op->before_body.n, index_terms(then, op->before_body));
    case ITEM_PATCH:
        return charge_patch(op->result.n, index_terms_changed(op->op.arena, now, op->before_body, op->result), op->patch->n);
    default:
        return op->created ? charge_create(op->result.n, index_terms(now, op->result))
                           : charge_replace(op->result.n, index_terms_changed(op->op.arena, now, op->before_body, op->result));
    }
}

double item_price(const item_op *op, const index_policy *index) {
    if (op->code == OK || op->undone) {
        return price_done(op, index);
    }
    return op->code == E_FAILED_DEPENDENCY ? 0 : price_failed(op);
}

bool item_commit_failed(const item_commit *c) {
    err code = c->base.code;
    for (size_t i = 0; c->atomic && code != OK && i < c->n; i++) {
        if (c->ops[i].code == code) {
            return false; /* one operation of a batch gave its code to the commit */
        }
    }
    return code != OK;
}

double item_commit_charge(item_commit *c) {
    double sum = 0;
    bool failed = item_commit_failed(c);
    for (size_t i = 0; i < c->n; i++) {
        item_op *op = &c->ops[i];
        double ru = failed ? (i == 0 ? CHARGE_FAILED : 0) : item_price(op, &c->container->index);
        op_charge(&op->op, ru);
        sum += ru;
        if (ru > 0) {
            item__settle(c->items, c->op, op->range ? op->range : first_range(c), &op->key, ru, op->code != OK);
        }
    }
    op_charge(c->op, sum);
    return sum;
}

void item_commit_give(item_commit *c) {
    for (size_t i = 0; i < c->n; i++) {
        store_give(&c->ops[i].pin);
    }
    if (c->tiles) {
        container_tiles_give(c->tiles);
        c->tiles = NULL;
    }
}
