#include "item/fetch.h"

#include "base/log.h"

err item__get(store *s, store_family family, const store_snapshot *at, slice key, const item_found *found, store_value *value_out) {
    return found->in_memory ? store_get_in_memory(s, family, key, value_out) : store_get(s, family, at, key, value_out);
}

static err damaged(item_found *found) {
    log_error("item", "stored item is damaged", "segment=%u number=%lu", found->place.segment, (unsigned long)found->place.number);
    item_give(found);
    return E_STORE_CORRUPT;
}

/* Without a snapshot the row may have changed since: another number or segment means that this item was deleted or moved. */
static err fetch_row(store *s, const store_snapshot *at, slice primary, item_found *found) {
    store_value value;
    uint32_t segment;
    slice item;
    TRY(item__get(s, STORE_INDEX, at, primary, found, &value));
    item_give(found); /* releases the value that held the primary key */
    found->value = value;
    if (!layout_row_read(value.bytes, &segment, &item) || !layout_head_read(item, &found->head, &found->body)) {
        return damaged(found);
    }
    if (found->head.number != found->place.number || segment != found->place.segment) {
        item_give(found);
        return at ? damaged(found) : E_NOT_FOUND;
    }
    return OK;
}

err item__fetch_value(store *s, const store_snapshot *at, slice value, item_found *found) {
    slice primary;
    if (layout_head_read(value, &found->head, &found->body)) {
        return OK;
    }
    if (!layout_lead_read(value, &primary)) {
        return damaged(found);
    }
    err code = fetch_row(s, at, primary, found);
    if (code != OK) {
        item_give(found);
    }
    return code;
}

err item__fetch(store *s, const store_snapshot *at, item_found *found) {
    layout_key k;
    layout_item(&k, found->place);
    TRY(item__get(s, STORE_ITEMS, at, layout_view(&k), found, &found->value));
    return item__fetch_value(s, at, found->value.bytes, found);
}
