#include "item/transaction.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "item/admit.h"
#include "item/edit_int.h"
#include "item/wipe.h"
#include "item/written.h"
#include "throughput/charge.h"

/* The transaction's state for one container. */
typedef struct part part;
struct part {
    part *next;
    item_transaction *transaction;
    container *container; /* a reference */
    item_moment moment;   /* the first part's owns the snapshot; the others borrow it */
    item_writes writes;
    item_op *ops; /* the writes in order; at the commit, followed by the guards */
    size_t n, cap, writes_n;
    item_commit commit;
};

typedef enum state { OPEN, COMMITTED, EXPIRED } state;

struct item_transaction {
    item_transaction_ask ask;
    state state;
    int64_t until_us; /* 0: no deadline */
    const home *home; /* NULL until the first call */
    part *parts, **last;
    size_t parts_n;
    arena arena;
    random_source random;
    size_t n, bytes; /* number of writes and guards; bytes of items written */
    size_t counted;  /* bytes counted against the budget, besides the arena's */
    uint64_t provisional_next;
    item_found pinned; /* keeps the results of the last write alive */

    /* the commit */
    op op;
    item_commit *first; /* NULL: nothing was submitted */
    err code;
    void (*done)(void *context);
    void *context;
};

/* Counts memory outside the arena. */
static void count_memory(item_transaction *t, size_t bytes) {
    if (t->ask.budget) {
        budget_force(t->ask.budget, bytes);
        t->counted += bytes;
    }
}

/* ---- begin and end ---- */

item_transaction *item_transaction_begin(const item_transaction_ask *ask) {
    item_transaction *t = mem_zero(sizeof *t);
    t->ask = *ask;
    t->until_us = ask->lifetime_us ? clock_monotonic_us(ask->items->clock) + ask->lifetime_us : 0;
    t->last = &t->parts;
    t->arena = arena_init_counted(ask->budget);
    t->provisional_next = ITEM_PROVISIONAL;
    random_seed_system(&t->random);
    return t;
}

static void give_moments(item_transaction *t) {
    item_give(&t->pinned);
    for (part *p = t->parts; p; p = p->next) {
        if (p->moment.tiles) {
            item_moment_give(&p->moment);
        }
    }
}

static void release(item_transaction *t) {
    give_moments(t);
    if (t->first) {
        item_commit_give(t->first);
    }
    for (part *p = t->parts, *next; p; p = next) {
        next = p->next;
        item__writes_free(&p->writes);
        container_give(p->container);
        free(p->ops);
        free(p);
    }
    t->parts = NULL;
    t->first = NULL;
    arena_free(&t->arena);
    if (t->ask.budget) {
        budget_give(t->ask.budget, t->counted);
        t->counted = 0;
    }
}

void item_transaction_end(item_transaction *t) {
    release(t);
    free(t);
}

bool item_transaction_is_overdue(const item_transaction *t) {
    return t->until_us && clock_monotonic_us(t->ask.items->clock) >= t->until_us;
}

void item_transaction_expire(item_transaction *t) {
    release(t);
    t->state = EXPIRED;
}

/* ---- entering a call ---- */

static part *find_part(const item_transaction *t, const container *c) {
    part *p = t->parts;
    while (p && p->container->space != c->space) {
        p = p->next;
    }
    return p;
}

static part *add_part(item_transaction *t, container *c) {
    part *p = mem_zero(sizeof *p);
    count_memory(t, sizeof *p);
    p->transaction = t;
    p->container = container_take(c);
    item__writes_init(&p->writes, p->container, &t->arena);
    if (t->parts) {
        item_moment_take_at(c, t->home, t->parts->moment.at, &p->moment);
    } else {
        item_moment_take(c, t->home, &p->moment);
    }
    *t->last = p;
    t->last = &p->next;
    t->parts_n++;
    return p;
}

static err check_open(item_transaction *t) {
    assert(t->state != COMMITTED);
    if (t->state == OPEN && item_transaction_is_overdue(t)) {
        item_transaction_expire(t);
    }
    return t->state == EXPIRED ? E_TRANSACTION_EXPIRED : OK;
}

/* Every call begins here: finds or adds the container's part. */
static err enter(item_transaction *t, op *o, container *c, const item_key *key, part **part_out) {
    const home *home = container_route(c->tiles, &key->epk)->home;
    TRY(check_open(t));
    item_give(&t->pinned);
    if (t->home && t->home != home) {
        return E_TRANSACTION_SPREAD;
    }
    part *p = find_part(t, c);
    if (!p && t->parts_n == LIMIT_TRANSACTION_CONTAINERS) {
        return op_fail(o, E_TOO_LARGE, "A transaction may be about %d containers at most.", (int)LIMIT_TRANSACTION_CONTAINERS);
    }
    t->home = home;
    *part_out = p ? p : add_part(t, c);
    return OK;
}

static err admit(const item_transaction *t, op *o, const container *c, const item_key *key) {
    return t->ask.unsettled ? OK : item__admit(t->ask.items, o, container_route(c->tiles, &key->epk));
}

static void charge(const item_transaction *t, op *o, const container *c, const item_key *key, double ru, bool failed) {
    op_charge(o, ru);
    if (!t->ask.unsettled) {
        item__debit(t->ask.items, o, container_route(c->tiles, &key->epk), key, METER_SCRIPT, ru, failed);
    }
}

bool item_transaction_accepts(const item_transaction *t, size_t bytes) {
    return t->n < LIMIT_TRANSACTION_WRITES && t->bytes + bytes <= LIMIT_TRANSACTION_BYTES;
}

static err check_room(item_transaction *t, op *o, size_t bytes) {
    if (!item_transaction_accepts(t, bytes)) {
        return op_fail(o, E_TOO_LARGE, "A transaction may write %d items and %d MB at most.", (int)LIMIT_TRANSACTION_WRITES,
                       (int)LIMIT_TRANSACTION_BYTES >> 20);
    }
    bool fits = arena_fits(&t->arena, bytes) && (!t->ask.budget || !t->ask.budget->exceeded);
    return fits ? OK : budget_error(t->ask.budget);
}

/* ---- reading ---- */

/* As in the snapshot; an item that is gone counts as absent. */
static err read_moment(const part *p, const op *o, const item_key *key, item_found *found_out) {
    TRY(item_read_at(p->container, &p->moment, key, found_out));
    if (item_gone(p->container, item_wipes_past(p->container), &found_out->head, found_out->body, o->now_s)) {
        item_give(found_out);
        *found_out = (item_found){0};
        return E_NOT_FOUND;
    }
    return OK;
}

static err read_own(const written_item *e, item_found *found_out) {
    *found_out = (item_found){.head = e->head, .body = e->body, .place = {.number = e->head.number}};
    return e->there ? OK : E_NOT_FOUND;
}

static item_expected expect(bool there, const item_head *head) {
    return there ? (item_expected){true, head->number, head->lsn} : (item_expected){0};
}

static err guard(item_transaction *t, op *o, part *p, written_item *e, const item_key *key, slice primary, const item_expected *expected) {
    if (e && (e->written || e->guarded)) {
        return OK;
    }
    TRY(check_room(t, o, 0));
    e = e ? e : item__writes_enter(&p->writes, key, primary, expected);
    e->guarded = true;
    t->n++;
    return OK;
}

err item_transaction_read(item_transaction *t, op *o, container *c, const item_key *key, bool guarded, item_found *found_out) {
    part *p;
    layout_key k;
    *found_out = (item_found){0};
    TRY(enter(t, o, c, key, &p));
    TRY(admit(t, o, c, key));
    layout_primary(&k, c->space->container, &key->epk, &key->partition, key->row);
    written_item *e = item__writes_find(&p->writes, layout_view(&k));
    err code = e && e->written ? read_own(e, found_out) : read_moment(p, o, key, found_out);
    found_out->range = container_route(c->tiles, &key->epk);
    if (guarded && (code == OK || code == E_NOT_FOUND)) {
        item_expected expected = expect(code == OK, &found_out->head);
        err entered = guard(t, o, p, e, key, layout_view(&k), &expected);
        if (entered != OK) {
            item_give(found_out);
            code = entered;
        }
    }
    double ru = (code == OK ? charge_read(found_out->body.n) : CHARGE_FAILED) * (o->strong ? CHARGE_STRONG_READ_FACTOR : 1);
    charge(t, o, c, key, ru, code != OK);
    return code;
}

err item_transaction_moment(item_transaction *t, op *o, container *c, const item_key *key, const item_moment **moment_out) {
    part *p;
    TRY(enter(t, o, c, key, &p));
    *moment_out = &p->moment;
    return OK;
}

static bool own_row(const part *p, op *o, const item_key *key, uint64_t number, slice *row_out) {
    for (const written_item *e = p->writes.all; e; e = e->next_all) {
        if (e->written && e->there && e->head.number == number && pkey_equal(&e->key.partition, &key->partition)) {
            *row_out = arena_copy(o->arena, e->key.row);
            return true;
        }
    }
    return false;
}

err item_transaction_row_of(item_transaction *t, op *o, container *c, const item_key *key, uint64_t number, slice *row_out) {
    part *p;
    slice row;
    item_found found;
    TRY(enter(t, o, c, key, &p));
    if (own_row(p, o, key, number, row_out)) {
        return OK;
    }
    TRY(item_read_number_at(t->ask.items, o, p->container, &p->moment, key, number, &found));
    err code = row_of(o, o->arena, &p->container->row, found.body, &row);
    *row_out = code == OK ? arena_copy(o->arena, row) : SLICE_EMPTY;
    item_give(&found);
    return code == OK ? OK : E_STORE_CORRUPT;
}

/* ---- writing: makes the same decisions as the committer (item/write.c) ---- */

typedef struct writing {
    item_transaction *t;
    op *o;
    part *part;
    item_op *op;
    slice primary;
    written_item *entry; /* NULL: not touched yet */

    /* the current item */
    bool there;
    item_head head;
    slice body;

    /* a replace that changes the row key */
    item_key target;
    layout_key target_primary;
    written_item *target_entry; /* NULL: not touched yet */
} writing;

static err find_now(writing *w) {
    w->entry = item__writes_find(&w->part->writes, w->primary);
    if (w->entry && w->entry->written) {
        w->there = w->entry->there;
        w->head = w->entry->head;
        w->body = w->entry->body;
        return OK;
    }
    err code = read_moment(w->part, w->o, &w->op->key, &w->t->pinned);
    w->there = code == OK;
    w->head = w->there ? w->t->pinned.head : (item_head){0};
    w->body = w->there ? w->t->pinned.body : SLICE_EMPTY;
    return code == E_NOT_FOUND ? OK : code;
}

static err check_presence(const writing *w) {
    const item_op *op = w->op;
    if (op->kind == ITEM_CREATE && w->there) {
        return E_CONFLICT;
    }
    bool edits = op->kind == ITEM_EDIT && !op->if_match.n && !item_edit_kind_of(op->edit.kind)->needs_item;
    if (!w->there && op->kind != ITEM_CREATE && op->kind != ITEM_UPSERT && !edits) {
        return E_NOT_FOUND;
    }
    bool matches = !op->if_match.n || !w->there || item_etag_matches(op->if_match, item_version(&w->head), w->head.ts);
    return matches ? OK : E_PRECONDITION;
}

/* Decides what becomes of the item: *result_out; sets the operation's ttl from an edited body. */
static err judge(writing *w, item_edit_result *result_out) {
    item_op *op = w->op;
    item_edit_input in = {.container = w->part->container, .key = &op->key, .there = w->there, .head = w->head, .body = w->body};
    item_edit_budget b = {.steps = LIMIT_EDIT_STEPS_MAX};
    *result_out = (item_edit_result){0};
    if (item__has_condition_or_edit(op)) {
        TRY(op->ready ? OK : item_edit_make_ready(w->o, w->part->container, op));
    }
    TRY(check_presence(w));
    if (item__has_condition_or_edit(op)) {
        int32_t ttl = TTL_OFF;
        TRY(item_edit_run(w->o, op, &in, &b, result_out, &ttl));
        op->ttl = op->kind == ITEM_EDIT ? ttl : op->ttl;
    }
    if (op->kind != ITEM_EDIT) {
        result_out->answer = op->kind == ITEM_DELETE ? ITEM_EDIT_DELETE : ITEM_EDIT_PUT;
        result_out->body = op->body;
    }
    return OK;
}

/* Whether an item of the snapshot that the transaction has not written holds this unique key. Items that it has written are checked by
 * item__writes_claims. */
static err is_held(const writing *w, slice key, bool *held_out) {
    item_found found;
    item_key holder = w->op->key;
    layout_key k;
    *held_out = false;
    err code = item_unique_holder_at(w->part->container, &w->part->moment, key, &found);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code;
    }
    bool has_row = row_of(w->o, w->o->arena, &w->part->container->row, found.body, &holder.row) == OK;
    if (has_row) {
        layout_primary(&k, w->part->container->space->container, &holder.epk, &holder.partition, holder.row);
        const written_item *e = item__writes_find(&w->part->writes, layout_view(&k));
        bool own = slice_eq(layout_view(&k), w->primary) || (e && e->written);
        *held_out = !own && !item_gone(w->part->container, item_wipes_past(w->part->container), &found.head, found.body, w->o->now_s);
    }
    item_give(&found);
    return has_row ? OK : E_STORE_CORRUPT;
}

static err check_unique(const writing *w, slice body) {
    const container *c = w->part->container;
    for (unsigned i = 0; i < c->unique_keys_n; i++) {
        layout_key k;
        bool held = false;
        if (!item_unique_key(c, i, &w->op->key, body, &k)) {
            continue;
        }
        bool claimed = item__writes_claims(&w->part->writes, w->entry, layout_view(&k));
        TRY(claimed ? OK : is_held(w, layout_view(&k), &held));
        if (claimed || held) {
            return E_UNIQUE_KEY;
        }
    }
    return OK;
}

/* Appends an operation of the commit. */
static item_op *add_op(part *p) {
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 16;
        p->ops = mem_resize(p->ops, cap * sizeof *p->ops);
        count_memory(p->transaction, (cap - p->cap) * sizeof *p->ops);
        p->cap = cap;
    }
    return &p->ops[p->n++];
}

/* Lets the commit fail if the item has changed. */
static void add_guard(part *p, const op *o, const written_item *e) {
    item_op *added = add_op(p);
    *added = (item_op){.kind = ITEM_READ, .key = e->key, .expected = &e->expected};
    op_init(&added->op, &p->transaction->arena, o->now_s);
}

/* ---- another row key ---- */

/* A replace may give the item another row key, which must be free. */
static err check_target(writing *w) {
    item_found found;
    w->target = w->op->key;
    w->target.row = w->op->row_after;
    layout_primary(&w->target_primary, w->part->container->space->container, &w->target.epk, &w->target.partition, w->target.row);
    w->target_entry = item__writes_find(&w->part->writes, layout_view(&w->target_primary));
    if (w->target_entry && w->target_entry->written) {
        return w->target_entry->there ? E_CONFLICT : OK;
    }
    err code = read_moment(w->part, w->o, &w->target, &found);
    item_give(&found);
    return code == OK ? E_CONFLICT : code == E_NOT_FOUND ? OK : code;
}

/* The new key must still be free at the commit: it is checked before the item gets it. */
static void keep_target(writing *w) {
    static const item_expected free_key = {0};
    if (!w->target_entry) {
        w->target_entry = item__writes_enter(&w->part->writes, &w->target, layout_view(&w->target_primary), &free_key);
    }
    if (!w->target_entry->written) {
        add_guard(w->part, w->o, w->target_entry);
    }
}

/* ---- recording the write ---- */

/* Never 0, and far from the first lsns. */
static uint32_t new_etag(item_transaction *t) {
    return (uint32_t)random_u64(&t->random) | 0x80000000;
}

static err stamp(writing *w, item_preset *preset) {
    const item_transaction_ask *ask = &w->t->ask;
    *preset = (item_preset){.ts = clock_ts(w->o->now_s), .etag = new_etag(w->t)};
    bool numbers = !w->there && ask->number;
    return numbers ? ask->number(ask->context, w->part->container, &w->op->key, &preset->number) : OK;
}

/* Records the write for the commit. An edit is recorded by its result. */
static void keep(writing *w, const item_edit_result *result, slice body, const item_preset *preset) {
    const item_op *op = w->op;
    item_op *added = add_op(w->part);
    bool deletes = result->answer == ITEM_EDIT_DELETE;
    item_preset *kept = arena_new(&w->t->arena, item_preset);
    *kept = *preset;
    *added = (item_op){.kind = deletes                 ? ITEM_DELETE
                               : op->kind == ITEM_EDIT ? ITEM_UPSERT
                                                       : op->kind,
                       .key = w->entry->key,
                       .row_after = op->row_after.n ? w->target_entry->key.row : SLICE_EMPTY,
                       .body = body,
                       .ttl = op->ttl,
                       .not_indexed = op->not_indexed,
                       .note = deletes ? SLICE_EMPTY : arena_copy(&w->t->arena, result->note),
                       .preset = kept,
                       .expected = w->entry->written ? NULL : &w->entry->expected};
    op_init(&added->op, &w->t->arena, w->o->now_s);
    w->t->n++;
    w->t->bytes += body.n + added->note.n;
}

static void set_results(writing *w, const item_head *after, slice body) {
    item_op *op = w->op;
    op->before_there = w->there;
    op->before = w->head;
    op->before_body = w->body;
    op->after = *after;
    op->result = body;
}

/* The outcome depends on the item, so the item is guarded. */
static err leave(writing *w) {
    item_expected expected = expect(w->there, &w->head);
    w->op->left = true;
    set_results(w, &w->head, w->body);
    return guard(w->t, w->o, w->part, w->entry, &w->op->key, w->primary, &expected);
}

static err put_or_delete(writing *w, const item_edit_result *result) {
    item_op *op = w->op;
    item_preset preset;
    bool puts = result->answer == ITEM_EDIT_PUT, makes = puts && !w->there;
    slice body = puts ? result->body : SLICE_EMPTY;
    TRY(check_room(w->t, w->o, body.n));
    TRY(op->row_after.n ? check_target(w) : OK);
    TRY(puts ? check_unique(w, body) : OK);
    TRY(stamp(w, &preset));
    body = arena_copy(&w->t->arena, body);
    if (!w->entry) {
        item_expected expected = expect(w->there, &w->head);
        w->entry = item__writes_enter(&w->part->writes, &op->key, w->primary, &expected);
    }
    if (op->row_after.n) {
        keep_target(w);
    }
    keep(w, result, body, &preset);
    uint64_t number = !makes ? w->head.number : preset.number ? preset.number : w->t->provisional_next++;
    item_head after = {
        .flags = op->not_indexed ? ITEM_NOT_INDEXED : 0, .ts = preset.ts, .etag = preset.etag, .ttl = op->ttl, .number = number};
    if (op->row_after.n) {
        item__writes_rename(&w->part->writes, w->entry, w->target_entry, &after, body);
    } else {
        item__writes_set(&w->part->writes, w->entry, puts, &after, body, makes);
    }
    w->part->moment.overlay = &w->part->writes.overlay;
    op->created = makes;
    op->deleted = !puts && op->kind == ITEM_EDIT;
    set_results(w, puts ? &after : &w->head, body);
    return OK;
}

static err write_item(writing *w) {
    item_edit_result result;
    TRY(find_now(w));
    TRY(judge(w, &result));
    w->op->reply = arena_copy(&w->t->arena, result.reply);
    w->op->properties = result.properties;
    bool leaves = result.answer == ITEM_EDIT_LEAVE || (result.answer == ITEM_EDIT_DELETE && !w->there);
    return leaves ? leave(w) : put_or_delete(w, &result);
}

err item_transaction_write(item_transaction *t, op *o, container *c, item_op *op) {
    layout_key k;
    writing w = {.t = t, .o = o, .op = op};
    assert(op->kind != ITEM_READ);
    TRY(enter(t, o, c, &op->key, &w.part));
    TRY(admit(t, o, c, &op->key));
    layout_primary(&k, c->space->container, &op->key.epk, &op->key.partition, op->key.row);
    w.primary = layout_view(&k);
    op->created = op->deleted = op->left = false;
    op->code = write_item(&w);
    if (op->code != OK) {
        op->before_there = w.there;
        op->before_body = w.body;
    }
    op_init(&op->op, o->arena, o->now_s);
    charge(t, o, c, &op->key, item_price(op, &c->index), op->code != OK);
    return op->code;
}

/* ---- the commit ---- */

static item_commit writes_of(const part *p) {
    return (item_commit){.container = p->container, .ops = p->ops, .n = p->n};
}

const container *item_transaction_large(const item_transaction *t) {
    for (const part *p = t->parts; p; p = p->next) {
        item_commit writes = writes_of(p);
        if (item_commit_has_long_lists(&writes)) {
            return p->container;
        }
    }
    return NULL;
}

void item_transaction_list(item_transaction *t) {
    for (const part *p = t->parts; p && t->state == OPEN; p = p->next) {
        item_commit writes = writes_of(p);
        item_commit_list(&writes);
    }
}

static void add_guards(part *p) {
    p->writes_n = p->n;
    for (const written_item *e = p->writes.all; e; e = e->next_all) {
        if (e->guarded && !e->written) {
            add_guard(p, &p->transaction->op, e);
        }
    }
}

static bool has_written(const item_transaction *t) {
    bool any = false;
    for (const part *p = t->parts; p; p = p->next) {
        any = any || p->n > 0;
    }
    return any;
}

static void decided(item_commit *c) {
    item_transaction *t = ((part *)((char *)c - offsetof(part, commit)))->transaction;
    t->code = c->base.code;
    t->done(t->context);
}

/* Makes a chain of commits, one for each container. */
static void chain(item_transaction *t) {
    item_commit **last = &t->first;
    for (part *p = t->parts; p; p = p->next) {
        add_guards(p);
        if (p->n) {
            p->commit = (item_commit){.items = t->ask.items,
                                      .op = &t->op,
                                      .container = p->container,
                                      .ops = p->ops,
                                      .n = p->n,
                                      .atomic = true,
                                      .range_id = -1,
                                      .done = decided};
            *last = &p->commit;
            last = &p->commit.also;
        }
    }
    t->first->prepares = true;
}

err item_transaction_commit(item_transaction *t, op *o, void (*done)(void *context), void *context) {
    TRY(check_open(t));
    t->state = COMMITTED;
    t->done = done;
    t->context = context;
    op_init(&t->op, &t->arena, o->now_s);
    t->op.low_priority = o->low_priority;
    t->op.throughput_bucket = o->throughput_bucket;
    t->op.admitted = true; /* each call was admitted */
    give_moments(t);
    if (!has_written(t)) {
        done(context);
        return OK;
    }
    chain(t);
    return item_commit_submit(t->first);
}

const container *item_transaction_missed(const item_transaction *t) {
    return t->first && item_commit_is_undecided(t->first) ? t->first->container : NULL;
}

void item_transaction_fetch(item_transaction *t) {
    item_commit_prepare(t->first);
}

void item_transaction_commit_again(item_transaction *t, bool fetched) {
    t->first->prepares = fetched;
    err code = item_commit_submit(t->first);
    assert(code == OK); /* it was admitted before */
}

err item_transaction_outcome(const item_transaction *t, op *o) {
    for (const item_commit *c = t->first; c && t->code != OK; c = c->also) {
        for (size_t i = 0; i < c->n; i++) {
            if (c->ops[i].code == t->code && c->ops[i].op.detail_n) {
                return op_fail(o, t->code, "%s", c->ops[i].op.detail);
            }
        }
    }
    return t->code;
}

bool item_transaction_mark(const item_transaction *t, const container *c, item_mark *mark_out) {
    const part *p = find_part(t, c);
    if (!p || !p->writes_n || t->code != OK) {
        return false;
    }
    const item_op *last = &p->ops[p->writes_n - 1];
    *mark_out = (item_mark){last->range->id, last->range->segment, last->after.lsn};
    return true;
}
