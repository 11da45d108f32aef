/* A request's operations before and after the committer decides them (item/write.c): admitting, submitting, preparing long edits, charging.
 * Runs on the caller's threads. */
#include <assert.h>
#include <stdlib.h>

#include "item/admit.h"
#include "item/ahead.h"
#include "item/divide.h"
#include "item/edit_int.h"
#include "item/index_entries.h"
#include "item/versions.h"
#include "throughput/charge.h"

enum { FEW = 16 }; /* operations of a commit that need not take turns with those that have fewer */

/* ---- submitting ---- */

/* Some operations were already written when others had to be prepared: only the others fail. */
static void fail_rest(item_commit *c) {
    for (size_t i = c->began; i < c->n; i++) {
        c->ops[i].code = c->ops[i].code == OK || (c->again && i == c->from) ? c->base.code : c->ops[i].code;
    }
}

static void all_done(commit *base) {
    item_commit *c = (item_commit *)base;
    if (c->paused && base->code == OK) {
        item__submit_here(c);
        return;
    }
    if (base->code != OK && c->began) {
        fail_rest(c);
    }
    c->again = c->again && base->code == (c->atomic ? E_RETRY_WITH : OK); /* not if the store failed */
    c->done(c);
}

/* The operations of an atomic commit may span several ranges: each must have some of its share left. */
static err admit(item_commit *c) {
    const container_range *range = item__first_range(c);
    const epk *e = &c->ops[0].key.epk;
    TRY(item__admit(c->items, c->op, item__first_range(c)));
    for (size_t i = 1; i < c->n; i++) {
        if (epk_cmp(e, &c->ops[i].key.epk) == 0) { /* the same partition as before, as is usual */
            continue;
        }
        e = &c->ops[i].key.epk;
        container_range *next = container_route(c->container->tiles, e);
        if (next != range) {
            range = next;
            TRY(item__admit(c->items, c->op, next));
        }
    }
    return OK;
}

static err admit_all(item_commit *c) {
    if (!c->atomic) {
        item__admit_each(c);
        return OK;
    }
    for (; c; c = c->also) {
        TRY(admit(c));
    }
    return OK;
}

static bool all_refused(const item_commit *c) {
    bool all = true;
    for (size_t i = 0; i < c->n; i++) {
        all = all && c->ops[i].code == E_THROTTLED;
    }
    return all;
}

/* An atomic commit must be within one store. */
static err check_homes(item_commit *c) {
    const home *home = item__first_range(c)->home;
    for (const item_commit *each = c; each && c->items->homes_n > 1; each = each->also) {
        for (size_t i = 0; i < each->n; i++) {
            if (container_route(each->container->tiles, &each->ops[i].key.epk)->home != home) {
                return E_TRANSACTION_SPREAD;
            }
        }
    }
    return OK;
}

/* If versions are kept, a delete writes the whole item once more. */
static store_use use_of_one(const item_commit *c) {
    store_use use = STORE_READS;
    for (size_t i = 0; i < c->n; i++) {
        const item_op *op = &c->ops[i];
        bool deletes = op->kind == ITEM_DELETE || (op->kind == ITEM_EDIT && op->ready && item_edit_kind_of(op->edit.kind)->frees);
        store_use delete = item_versions_kept(c->container) ? STORE_GROWS : STORE_FREES;
        store_use one = op->kind == ITEM_READ ? STORE_READS : deletes ? delete : STORE_GROWS;
        use = one < use ? one : use;
    }
    return use;
}

static store_use use_of(const item_commit *c) {
    store_use use = STORE_READS;
    for (; c; c = c->also) {
        store_use one = use_of_one(c);
        use = one < use ? one : use;
    }
    return use;
}

/* An atomic commit fails at its first invalid operation; otherwise only that operation gets the code. */
static err make_ready(item_commit *c) {
    for (size_t i = 0; i < c->n; i++) {
        item_op *op = &c->ops[i];
        if (op->code == OK && !op->ready && item__has_condition_or_edit(op)) {
            op->code = item_edit_make_ready(&op->op, c->container, op);
            TRY(c->atomic ? op->code : OK);
        }
    }
    return OK;
}

static bool has_body(const item_op *op) {
    return op->kind == ITEM_CREATE || op->kind == ITEM_UPSERT || op->kind == ITEM_REPLACE;
}

static bool writes_body(const item_op *op) {
    return op->code == OK && has_body(op);
}

bool item_commit_has_long_lists(const item_commit *c) {
    size_t bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        bytes += writes_body(&c->ops[i]) && !c->ops[i].terms ? c->ops[i].body.n : 0;
    }
    return bytes > LIMIT_LISTED_BYTES;
}

void item_commit_list(item_commit *c) {
    for (size_t i = 0; i < c->n; i++) {
        if (writes_body(&c->ops[i]) && !c->ops[i].terms) {
            item__list_ahead(c->container, &c->ops[i], c->ops[i].body);
        }
    }
}

static err make_all_ready(item_commit *c) {
    for (; c; c = c->also) {
        assert(c->n > 0);
        TRY(make_ready(c));
        if (!item_commit_has_long_lists(c)) {
            item_commit_list(c);
        }
    }
    return OK;
}

/* Resets the results to their state before the submit. */
static void forget_results(item_op *op) {
    store_give(&op->pin);
    op->code = OK;
    op->undone = op->repeated = op->created = op->deleted = op->left = op->before_there = false;
    op->result = op->before_body = op->reply = op->note = SLICE_EMPTY;
    op->range = NULL;
}

static void begin_again(item_commit *c) {
    for (; c; c = c->also) {
        for (size_t i = c->from; i < (c->atomic ? c->n : c->from + 1); i++) {
            forget_results(&c->ops[i]);
        }
        c->again = false;
    }
}

/* Also on the committer's thread, with the rest of a commit. */
void item__submit_here(item_commit *c) {
    if (c->again) {
        begin_again(c);
    }
    c->began = c->from;
    c->paused = false;
    home *home = item__first_range(c)->home;
    container_part *part = container_part_of(c->container->space, home);
    c->base = (commit){.queue = c->n > FEW ? &part->bulk : &part->commits, .use = use_of(c), .apply = item__commit_apply, .done = all_done};
    committer_submit(home->committer, &c->base);
}

err item_commit_submit(item_commit *c) {
    assert(c->n > 0);
    if (c->parts) {
        item__divide_again(c);
        return OK;
    }
    assert(!c->also || c->atomic);
    if (!c->admitted) {
        TRY(c->atomic ? check_homes(c) : OK);
        TRY(admit_all(c));
        TRY(make_all_ready(c));
        c->admitted = true;
    }
    if (!c->atomic && all_refused(c)) {
        c->done(c);
        return OK;
    }
    if (item__is_divided(c)) {
        item__divide(c);
    } else {
        item__submit_here(c);
    }
    return OK;
}

/* ---- long edits and conditions, outside the committer ---- */

/* Whether the operation writes the item with this key; a replace may write two. */
static bool writes(const item_op *op, const item_key *key) {
    bool row = slice_eq(op->key.row, key->row) || (op->row_after.n && slice_eq(op->row_after, key->row));
    return op->kind != ITEM_READ && row && epk_cmp(&op->key.epk, &key->epk) == 0 && pkey_equal(&op->key.partition, &key->partition);
}

bool item__written_before(const item_commit *c, size_t i) {
    for (size_t j = c->from; j < i; j++) {
        if (writes(&c->ops[j], &c->ops[i].key)) {
            return true;
        }
    }
    return false;
}

static void run_outside(const item_commit *c, item_op *op, item_edit_input *in, const item_found *found) {
    item_edit_budget b = {.steps = LIMIT_EDIT_STEPS_MAX};
    item_prepared *p = arena_new(op->op.arena, item_prepared);
    p->of = (item_expected){.there = in->there, .number = found->place.number, .lsn = found->head.lsn};
    op->op.detail_n = 0;
    op->op.turn = c->op->turn;
    p->code = item_edit_run(&op->op, op, in, &b, &p->result, &p->ttl);
    op->op.turn = NULL;
    op->prepared = p;
    if (p->code == OK && op->kind == ITEM_EDIT && p->result.answer == ITEM_EDIT_PUT) {
        item__list_ahead(c->container, op, p->result.body);
    }
}

/* If the item cannot be read, the committer will report the error. */
static void prepare_one(item_commit *c, item_op *op) {
    item_found found;
    err code = item__read_now(c->container, &op->key, clock_wall_ms(c->items->clock) / 1000, &found);
    item_edit_input in = {.container = c->container, .key = &op->key, .there = code == OK, .head = found.head, .body = found.body};
    op->prepared = NULL;
    if ((code == OK || code == E_NOT_FOUND) && (op->is_long || item__edit_is_long(op, &in))) {
        run_outside(c, op, &in, &found);
    }
    item_give(&found);
}

void item_commit_prepare(item_commit *c) {
    if (c->parts) {
        item__divided_prepare(c);
        return;
    }
    if (c->missed) {
        item__fetch_ahead(c);
        return;
    }
    c->attempts++;
    for (size_t i = c->from; i < c->n; i++) {
        item_op *op = &c->ops[i];
        bool refused = op->code != OK && !c->atomic && i > c->from; /* already before the submit */
        if (item__has_condition_or_edit(op) && !refused && !item__written_before(c, i)) {
            prepare_one(c, op);
        }
    }
}

/* ---- after the commit, on the caller's thread ---- */

/* A failed edit has read the whole item, and may have rebuilt it. */
static double price_failed(const item_op *op) {
    double read = op->kind == ITEM_EDIT && op->before_there ? charge_read(op->before_body.n) : 0;
    return read > CHARGE_FAILED ? read : CHARGE_FAILED;
}

/* Reuses the count of terms that were listed by the same policy. */
static size_t terms_created(const item_op *op, const index_policy *policy) {
    bool listed = op->terms && op->listed.p == op->result.p && !op->not_indexed;
    return listed ? op->terms->charged : index_terms(policy, op->result);
}

static double price_done(const item_op *op, const index_policy *index) {
    index_policy none = {.off = true};
    const index_policy *now = op->not_indexed ? &none : index;
    const index_policy *then = op->before.flags & ITEM_NOT_INDEXED ? &none : index;
    if (op->kind == ITEM_READ || op->left || op->repeated) {
        return charge_read(op->repeated ? op->result.n + op->before_body.n : op->result.n);
    }
    if (op->kind == ITEM_DELETE || op->deleted) {
        return charge_delete(op->before_body.n, index_terms(then, op->before_body));
    }
    if (op->created) {
        return charge_create(op->result.n, terms_created(op, now));
    }
    return charge_patch(op->result.n, index_terms_changed(op->op.arena, now, op->before_body, op->result), op->properties);
}

double item_price(const item_op *op, const index_policy *index) {
    if (op->code == OK || op->undone) {
        return price_done(op, index);
    }
    return op->code == E_FAILED_DEPENDENCY || op->code == E_THROTTLED ? 0 : price_failed(op);
}

bool item_commit_failed(const item_commit *c) {
    err code = c->base.code;
    if (c->began) {
        return false; /* each operation has its own code (fail_rest) */
    }
    for (const item_commit *each = c; each && c->atomic && code != OK; each = each->also) {
        for (size_t i = 0; i < each->n; i++) {
            if (each->ops[i].code == code) {
                return false; /* an operation of the batch failed, and the commit has its code */
            }
        }
    }
    return code != OK;
}

static meter_work work_of(const item_op *op) {
    if (op->kind == ITEM_READ || op->left) {
        return METER_READ;
    }
    if (op->kind == ITEM_DELETE || op->deleted) {
        return METER_DELETE;
    }
    return op->created || op->kind == ITEM_CREATE ? METER_CREATE : METER_REPLACE;
}

static double charge_one(item_commit *c, bool failed) {
    double sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        item_op *op = &c->ops[i];
        double ru = failed ? (i == 0 ? CHARGE_FAILED : 0) : item_price(op, &c->container->index);
        op_charge(&op->op, ru);
        sum += ru;
        if (ru > 0) {
            container_range *range = op->range ? op->range : item__first_range(c);
            item__debit(c->items, c->op, range, &op->key, work_of(op), ru, op->code != OK);
        }
    }
    op_charge(c->op, sum);
    return sum;
}

double item_commit_charge(item_commit *c) {
    bool failed = item_commit_failed(c);
    double sum = 0;
    for (; c; c = c->also) {
        sum += charge_one(c, failed);
    }
    return sum;
}

static void give_one(item_commit *c) {
    for (size_t i = 0; i < c->n; i++) {
        store_give(&c->ops[i].pin);
    }
    if (c->tiles) {
        while (c->past_n) {
            container_tiles_give(c->past[--c->past_n]);
        }
        free(c->past);
        c->past = NULL;
        container_tiles_give(c->tiles);
        c->tiles = NULL;
    }
    if (c->parts) {
        item__divided_give(c);
    }
}

void item_commit_give(item_commit *c) {
    for (; c; c = c->also) {
        give_one(c);
    }
}
