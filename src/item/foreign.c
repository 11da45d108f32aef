#include "item/foreign.h"

#include <assert.h>

#include "doc/json.h"

enum { OWNERS_MAX = 8 };

static const item_owner *owners[OWNERS_MAX];
static size_t owners_n;

static const item_owner *find(slice api) {
    for (size_t i = 0; i < owners_n; i++) {
        if (slice_eq(api, slice_str(owners[i]->api))) {
            return owners[i];
        }
    }
    return NULL;
}

void item_owner_register(const item_owner *owner) {
    const item_owner *known = find(slice_str(owner->api));
    assert(!known || known == owner); /* an API has one owner */
    assert(known || owners_n < OWNERS_MAX);
    if (!known) {
        owners[owners_n++] = owner;
    }
}

const item_owner *item_owner_of(const container *c) {
    return find(c->api);
}

void item_add_shown_id(buf *json, const item_owner *owner, slice body) {
    doc_element own;
    if (!doc_find_member(body, SLICE_LIT("id"), &own)) {
        buf text = buf_init(BUF_NO_LIMIT);
        owner->show_id(body, &text);
        buf_add_lit(json, ",\"id\":");
        json_add_string(json, buf_view(&text));
        buf_free(&text);
    }
}

err item_row_of_id(op *o, const container *c, slice id, slice *row_out) {
    const item_owner *owner = item_owner_of(c);
    *row_out = id;
    return owner ? owner->row_of_id(o, c, id, row_out) : OK;
}

err item_adopt(op *o, const container *c, int64_t now_ms, slice *body) {
    const item_owner *owner = item_owner_of(c);
    if (!owner) {
        return op_fail(o, E_FORBIDDEN, "The container was made by the %.*s API: write its items there.", slice_shown(c->api), c->api.p);
    }
    return owner->adopt(o, c, now_ms, *body, body);
}
