/* Unique keys: within one logical partition, no two items have the same values at the key's paths; a missing value counts as null. */
#include <openssl/evp.h>

#include "item/stored.h"

enum { VALUES_PLAIN_MAX = 256, VALUES_BYTES_MAX = 4 * 1024 * 1024, DIGEST_BYTES = 32 };

static void add_value(buf *out, const bson_iter_t *it) {
    pkey one = {.n = 1};
    pkey_value *value = &one.values[0];
    if (!it || BSON_ITER_HOLDS_NULL(it)) {
        value->type = PKEY_NULL;
    } else if (BSON_ITER_HOLDS_BOOL(it)) {
        value->type = bson_iter_bool(it) ? PKEY_TRUE : PKEY_FALSE;
    } else if (BSON_ITER_HOLDS_NUMBER(it)) {
        *value = (pkey_value){.type = PKEY_NUMBER, .number = bson_iter_as_double(it)};
    } else if (BSON_ITER_HOLDS_UTF8(it)) {
        *value = (pkey_value){.type = PKEY_STRING, .text = doc_text(it)};
    } else { /* objects and arrays: equal when their bytes are */
        buf_add_byte(out, (char)0xFE);
        buf_add_be32(out, it->next_off - it->d1);
        buf_add(out, it->raw + it->d1, it->next_off - it->d1);
        return;
    }
    pkey_encode(out, &one);
}

/* Long values stand as their digest, so that keys stay short. */
static void shorten(buf *values) {
    if (values->n <= VALUES_PLAIN_MAX) {
        return;
    }
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_Digest(values->p, values->n, digest, &n, EVP_sha256(), NULL);
    buf_clear(values);
    buf_add_byte(values, (char)0xFF);
    buf_add(values, digest, DIGEST_BYTES);
}

static void entry_key(const item_work *w, unsigned index, const item_key *key, slice body, buf *scratch, layout_key *k) {
    const unique_key *unique = &w->container->unique_keys[index];
    buf_clear(scratch);
    for (size_t i = 0; i < unique->n; i++) {
        bson_iter_t it;
        add_value(scratch, doc_find(body, &unique->paths[i], &it) ? &it : NULL);
    }
    shorten(scratch);
    layout_unique(k, w->container->space->container, index, &key->epk, &key->partition, buf_view(scratch));
}

/* Somebody has these values. If that item is expired it makes way. */
static err meet_holder(const item_work *w, item_place place) {
    stored_item holder;
    item_key holder_key;
    err code = item__load_place(w, place, &holder);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    if (!item_expired(w->container, &holder.head, w->now_s)) {
        store_give(&holder.pin);
        return E_UNIQUE_KEY;
    }
    code = item__key_of(w->container, holder.body, &holder_key);
    if (code == OK) {
        item__remove(w, &holder_key, &holder);
    }
    store_give(&holder.pin);
    return code;
}

err item__unique_check(const item_work *w, const item_key *key, slice body, uint64_t self) {
    buf scratch = buf_init(VALUES_BYTES_MAX);
    err code = OK;
    for (unsigned i = 0; i < w->container->unique_keys_n && code == OK; i++) {
        layout_key k;
        store_value value;
        bool of_group;
        item_place place;
        entry_key(w, i, key, body, &scratch, &k);
        code = commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &of_group);
        if (code != OK) {
            code = code == E_NOT_FOUND ? OK : code;
            continue;
        }
        bool placed = layout_place_read(value.bytes, &place);
        store_give(&value);
        code = !placed ? E_STORE_CORRUPT : place.number == self ? OK : meet_holder(w, place);
    }
    buf_free(&scratch);
    return code;
}

void item__unique_put(const item_work *w, const item_key *key, slice body, item_place place) {
    buf scratch = buf_init(VALUES_BYTES_MAX);
    char bytes[12];
    layout_place_write(bytes, place);
    for (unsigned i = 0; i < w->container->unique_keys_n; i++) {
        layout_key k;
        entry_key(w, i, key, body, &scratch, &k);
        store_put(&w->group->batch, STORE_INDEX, layout_view(&k), slice_of(bytes, 12));
    }
    buf_free(&scratch);
}

void item__unique_remove(const item_work *w, const item_key *key, slice body) {
    buf scratch = buf_init(VALUES_BYTES_MAX);
    for (unsigned i = 0; i < w->container->unique_keys_n; i++) {
        layout_key k;
        entry_key(w, i, key, body, &scratch, &k);
        store_delete(&w->group->batch, STORE_INDEX, layout_view(&k));
    }
    buf_free(&scratch);
}
