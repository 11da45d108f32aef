#include "item/receipt.h"

#include <assert.h>
#include <endian.h>

#include "item/stored.h"

enum { VALUE_HEAD_BYTES = 6, FLAG_CREATED = 1, FLAG_DELETED = 2 };

/* ---- keys and values ---- */

static void put_u32(layout_key *k, uint32_t number) {
    uint32_t be = htobe32(number);
    memcpy(k->bytes + k->n, &be, 4);
    k->n += 4;
}

static void period_key(layout_key *k, uint32_t period) {
    k->n = 0;
    put_u32(k, 0);
    k->bytes[k->n++] = LAYOUT_RECEIPT;
    put_u32(k, period);
}

static void receipt_key(layout_key *k, uint32_t period, uint32_t container, slice key) {
    assert(key.n <= ITEM_RECEIPT_KEY_BYTES_MAX);
    period_key(k, period);
    put_u32(k, container);
    memcpy(k->bytes + k->n, key.p, key.n);
    k->n += key.n;
}

static uint32_t period_of(int64_t now_s) {
    return now_s < 0 ? 0 : (uint32_t)(now_s / ITEM_RECEIPT_PERIOD_S);
}

/* Points into `value`. */
static bool read_value(slice value, item_receipt_found *found_out) {
    if (value.n < VALUE_HEAD_BYTES) {
        return false;
    }
    uint32_t reply_n;
    memcpy(&reply_n, value.p + 2, 4);
    reply_n = be32toh(reply_n);
    slice rest = slice_skip(value, VALUE_HEAD_BYTES);
    if (reply_n > rest.n) {
        return false;
    }
    *found_out = (item_receipt_found){
        .created = value.p[0] & FLAG_CREATED,
        .deleted = value.p[0] & FLAG_DELETED,
        .image = (item_image)value.p[1],
        .reply = slice_of(rest.p, reply_n),
        .body = slice_skip(rest, reply_n),
    };
    return true;
}

static err copy_value(op *o, slice value, item_receipt_found *found_out) {
    if (!arena_fits(o->arena, value.n)) {
        return budget_error(o->budget);
    }
    return read_value(arena_copy(o->arena, value), found_out) ? OK : E_STORE_CORRUPT;
}

/* ---- within a commit ---- */

static err find_in(item_work *w, const item_op *op, uint32_t period, item_receipt_found *found_out) {
    layout_key k;
    store_value value;
    bool of_group;
    receipt_key(&k, period, w->container->space->container, op->receipt.key);
    TRY(commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &of_group));
    err code = copy_value(&w->op->op, value.bytes, found_out);
    store_give(&value);
    return code;
}

static void repeat(item_op *op, const item_receipt_found *found) {
    op->repeated = true;
    op->created = found->created;
    op->deleted = found->deleted;
    op->reply = found->reply;
    op->before_there = found->image == ITEM_IMAGE_BEFORE;
    op->before_body = found->image == ITEM_IMAGE_BEFORE ? found->body : SLICE_EMPTY;
    op->result = found->image == ITEM_IMAGE_AFTER ? found->body : SLICE_EMPTY;
}

err item__receipt_find(item_work *w, item_op *op) {
    item_receipt_found found;
    uint32_t period = period_of(w->now_s);
    w->op = op;
    err code = find_in(w, op, period, &found);
    code = code == E_NOT_FOUND && period > 0 ? find_in(w, op, period - 1, &found) : code;
    if (code == OK) {
        repeat(op, &found);
    }
    return code;
}

/* Deletes the receipts of periods that are no longer looked at. */
static void forget_old(item_work *w, uint32_t period) {
    layout_key from, to;
    if (w->home->receipt_period == period || period == 0) {
        return;
    }
    w->home->receipt_period = period;
    period_key(&from, 0);
    period_key(&to, period - 1);
    store_delete_range(&w->group->batch, STORE_INDEX, layout_view(&from), layout_view(&to));
}

static slice image_of(const item_op *op) {
    switch (op->receipt.image) {
    case ITEM_IMAGE_BEFORE:
        return op->before_there ? op->before_body : SLICE_EMPTY;
    case ITEM_IMAGE_AFTER:
        return op->result;
    default:
        return SLICE_EMPTY;
    }
}

void item__receipt_put(item_work *w, const item_op *op) {
    layout_key k;
    slice image = image_of(op);
    uint32_t period = period_of(w->now_s), reply_n = htobe32((uint32_t)op->reply.n);
    forget_old(w, period);
    receipt_key(&k, period, w->container->space->container, op->receipt.key);
    char *p = store_put_space(&w->group->batch, STORE_INDEX, layout_view(&k), VALUE_HEAD_BYTES + op->reply.n + image.n);
    p[0] = (char)((op->created ? FLAG_CREATED : 0) | (op->deleted ? FLAG_DELETED : 0));
    p[1] = (char)(image.n ? op->receipt.image : ITEM_IMAGE_NONE);
    memcpy(p + 2, &reply_n, 4);
    if (op->reply.n) {
        memcpy(p + VALUE_HEAD_BYTES, op->reply.p, op->reply.n);
    }
    if (image.n) {
        memcpy(p + VALUE_HEAD_BYTES + op->reply.n, image.p, image.n);
    }
}

/* ---- outside ---- */

static err read_at(const home *home, op *o, const container *c, uint32_t period, slice key, item_receipt_found *found_out) {
    layout_key k;
    store_value value;
    receipt_key(&k, period, c->space->container, key);
    TRY(store_get(home->store, STORE_INDEX, NULL, layout_view(&k), &value));
    err code = copy_value(o, value.bytes, found_out);
    store_give(&value);
    return code;
}

err item_receipt_read(const items *s, op *o, const container *c, slice key, item_receipt_found *found_out) {
    uint32_t period = period_of(clock_wall_ms(s->clock) / 1000);
    err code = E_NOT_FOUND;
    *found_out = (item_receipt_found){0};
    for (size_t i = 0; i < s->homes_n && code == E_NOT_FOUND; i++) {
        code = read_at(s->homes[i], o, c, period, key, found_out);
        code = code == E_NOT_FOUND && period > 0 ? read_at(s->homes[i], o, c, period - 1, key, found_out) : code;
    }
    return code;
}

void item__receipt_fetch(const items *s, const home *h, const container *c, slice key) {
    uint32_t period = period_of(clock_wall_ms(s->clock) / 1000);
    for (uint32_t i = 0; i < 2 && i <= period; i++) {
        layout_key k;
        store_value value;
        receipt_key(&k, period - i, c->space->container, key);
        if (store_get(h->store, STORE_INDEX, NULL, layout_view(&k), &value) == OK) {
            store_give(&value);
        }
    }
}
