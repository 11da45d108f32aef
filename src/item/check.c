/* Checks of an item before it is written: row key, partition key, ttl. */
#include "item/foreign.h"

static err read_row(op *o, const container *c, item_op *item) {
    slice row;
    TRY(row_of(o, o->arena, &c->row, item->body, &row));
    TRY(c->row.n == 0 ? row_check_id(o, row) : OK);
    item->row_after = SLICE_EMPTY;
    if (item->kind != ITEM_REPLACE) {
        item->key.row = row;
        return OK;
    }
    if (slice_eq(row, item->key.row)) {
        return OK;
    }
    if (c->row.n) {
        return op_fail(o, E_BAD_REQUEST,
                       "The item has another row key than the one addressed: a row key cannot be changed. Create another item and delete "
                       "this one.");
    }
    item->row_after = row;
    return row_check_id(o, item->key.row);
}

/* In containers of other APIs, `ttl` is a property like any other unless the container has a time to live. */
static err read_ttl(op *o, const container *c, item_op *item) {
    bson_iter_t it;
    item->ttl = TTL_OFF;
    if (c->row.n && (c->ttl == TTL_OFF || c->expiries_n)) {
        return OK;
    }
    if (!doc_find_key(item->body, c->ttl_member.n ? c->ttl_member : SLICE_LIT("ttl"), &it) || (c->row.n && BSON_ITER_HOLDS_NULL(&it))) {
        return OK;
    }
    double ttl = BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_double(&it) : 0;
    if (!(ttl == -1 || (ttl >= 1 && ttl <= INT32_MAX && ttl == (double)(int32_t)ttl))) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The input ttl is invalid. Ensure to provide a nonzero positive integer less than or equal to '%d', or -1 which means "
            "never expire.",
            INT32_MAX);
    }
    item->ttl = (int32_t)ttl;
    return OK;
}

/* A fixed container has no partition key: no key, [] and [{}] are all accepted. */
static err check_fixed(op *o, const pkey *header_key) {
    for (size_t i = 0; header_key && i < header_key->n; i++) {
        if (header_key->values[i].type != PKEY_UNDEFINED) {
            return op_fail(o, E_KEY_COMPONENTS, "PartitionKey has more components than defined the collection resource.");
        }
    }
    return OK;
}

static err read_partition(op *o, const container *c, const pkey *header_key, item_op *item) {
    if (c->key.n == 0) {
        return check_fixed(o, header_key);
    }
    TRY(pkey_extract(o, item->body, &c->key, &item->key.partition));
    if (header_key) {
        TRY(pkey_check_whole(o, &c->key, header_key));
        if (!pkey_equal(header_key, &item->key.partition)) {
            return E_KEY_MISMATCH;
        }
    }
    return pkey_check_size(o, &item->key.partition);
}

err item_check_body(op *o, const container *c, const pkey *header_key, item_op *item) {
    TRY(item->foreign_ms ? item_adopt(o, c, item->foreign_ms, &item->body) : OK);
    TRY(read_row(o, c, item));
    item->key.partition.n = 0;
    TRY(read_partition(o, c, header_key, item));
    TRY(read_ttl(o, c, item));
    epk_of(&c->key, &item->key.partition, &item->key.epk);
    return OK;
}

err item_check_key(op *o, const container *c, const pkey *header_key, slice row, item_key *key_out) {
    key_out->partition.n = 0;
    key_out->row = row;
    TRY(row_check_length(o, &c->row, row));
    if (c->key.n == 0) {
        TRY(check_fixed(o, header_key));
    } else {
        if (!header_key) {
            return op_fail(o, E_BAD_REQUEST, "PartitionKey value must be supplied for this operation.");
        }
        TRY(pkey_check_whole(o, &c->key, header_key));
        if (c->key.typed) {
            pkey_make_typed(o->arena, header_key, &key_out->partition);
        } else {
            pkey_copy(&key_out->partition, header_key);
        }
        TRY(pkey_check_size(o, &key_out->partition));
    }
    epk_of(&c->key, &key_out->partition, &key_out->epk);
    return OK;
}

/* ---- system properties ---- */

const slice item_system_properties[ITEM_SYSTEM_PROPERTIES] = {
    {"_rid", 4}, {"_self", 5}, {"_etag", 5}, {"_ts", 3}, {"_attachments", 12}, {"_lsn", 4},
};

static bool is_system(const char *name) {
    bool is = false;
    for (size_t i = 0; i < ITEM_SYSTEM_PROPERTIES; i++) {
        is = is || slice_eq(item_system_properties[i], slice_str(name));
    }
    return is;
}

slice item_without_system(arena *a, slice body) {
    bson_iter_t it;
    bool any = false;
    for (size_t i = 0; i < ITEM_SYSTEM_PROPERTIES; i++) {
        any = any || doc_find_key(body, item_system_properties[i], &it);
    }
    if (!any || !bson_iter_init_from_data(&it, (const uint8_t *)body.p, body.n)) {
        return body;
    }
    bson_t clean = BSON_INITIALIZER;
    while (bson_iter_next(&it)) {
        if (!is_system(bson_iter_key(&it))) {
            bson_append_iter(&clean, bson_iter_key(&it), -1, &it);
        }
    }
    slice result = arena_copy(a, slice_of(bson_get_data(&clean), clean.len));
    bson_destroy(&clean);
    return result;
}
