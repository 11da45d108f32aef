/* Unique keys: within one logical partition, no two items have the same values at the key's paths; a missing value counts as null. */
#include <assert.h>
#include <openssl/evp.h>

#include "doc/order.h"
#include "item/stored.h"
#include "item/wipe.h"

enum { VALUE_PLAIN_MAX = 64, VALUES_PLAIN_MAX = 256, DIGEST_BYTES = 32, VALUE_BYTES_MAX = 2 * VALUE_PLAIN_MAX + 8 };

/* Long values are replaced by their digest, so that keys stay short. */
static void add_digest(buf *out, char tag, const void *p, size_t n) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_n = 0;
    EVP_Digest(p, n, digest, &digest_n, EVP_sha256(), NULL);
    buf_add_byte(out, tag);
    buf_add(out, digest, DIGEST_BYTES);
}

/* Compares by type and value, as doc/order.h does: Decimal128s 1.0 and 1.00 are the same, a date and a timestamp with the same bytes are
 * different. Values that doc/order.h cannot encode (nested too deep) are compared by their bytes. */
static void add_exact(buf *out, const bson_iter_t *it) {
    buf spelled = buf_init(BUF_NO_LIMIT);
    doc_element e = {.type = bson_iter_type(it), .value = slice_of(it->raw + it->d1, it->d1 < it->next_off ? it->next_off - it->d1 : 0)};
    doc_order_spell(&spelled, &e, false);
    add_digest(out, (char)0xFB, buf_ok(&spelled) ? spelled.p : e.value.p, buf_ok(&spelled) ? spelled.n : e.value.n);
    buf_free(&spelled);
}

static bool is_json(const bson_iter_t *it) {
    bson_type_t type = bson_iter_type(it);
    return doc_is_container(type) || doc_is_number(type) || type == BSON_TYPE_UTF8 || type == BSON_TYPE_BOOL || type == BSON_TYPE_NULL;
}

/* `exact`: compares numbers and objects exactly too. The SQL API compares numbers as doubles, and objects with the order of their
 * members. */
static void add_value(buf *out, const bson_iter_t *it, bool exact) {
    if (it && !BSON_ITER_HOLDS_NULL(it) && (exact || !is_json(it))) {
        add_exact(out, it);
        return;
    }
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
    } else { /* objects and arrays are compared by their bytes */
        add_digest(out, BSON_ITER_HOLDS_ARRAY(it) ? (char)0xFC : (char)0xFD, it->raw + it->d1, it->next_off - it->d1);
        return;
    }
    if (value->type == PKEY_STRING && value->text.n > VALUE_PLAIN_MAX) {
        add_digest(out, (char)0xFE, value->text.p, value->text.n);
    } else {
        pkey_encode(out, &one);
    }
}

static err found_key(void *context, slice key) {
    (void)key;
    *(bool *)context = true;
    return OK;
}

/* An item whose keys cannot be listed (parallel arrays) counts. */
static bool is_in(const mql_index *index, slice body) {
    arena scratch = arena_init();
    op o;
    bool found = false;
    op_init(&o, &scratch, 0);
    found = mql_index_keys(index, &o, &scratch, body, found_key, &found) != OK || found;
    arena_free(&scratch);
    return found;
}

bool item_unique_key(const container *c, unsigned index, const item_key *key, slice body, layout_key *k) {
    const unique_key *unique = &c->unique_keys[index];
    char room[LIMIT_UNIQUE_PATHS * VALUE_BYTES_MAX], short_room[1 + DIGEST_BYTES];
    buf values = {.p = room, .cap = sizeof room, .max = sizeof room};
    buf shortened = {.p = short_room, .cap = sizeof short_room, .max = sizeof short_room};
    if (unique->dropped || (unique->of && !is_in(unique->of, body))) {
        return false;
    }
    for (size_t i = 0; i < unique->n; i++) {
        bson_iter_t it;
        add_value(&values, doc_find(body, &unique->paths[i], &it) ? &it : NULL, c->key.typed);
    }
    assert(buf_ok(&values));
    if (values.n > VALUES_PLAIN_MAX) {
        add_digest(&shortened, (char)0xFF, values.p, values.n);
    }
    layout_unique(k, c->space->container, index, &key->epk, &key->partition, buf_view(shortened.n ? &shortened : &values));
    return true;
}

/* Another item has these values. If it is gone, removes it. */
static err meet_holder(item_work *w, item_place place) {
    stored_item holder;
    item_key holder_key;
    err code = item__load_place(w, place, &holder);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    if (!item_gone(w->container, item_wipes_now(w->container), &holder.head, holder.body, w->now_s)) {
        store_give(&holder.pin);
        return E_UNIQUE_KEY;
    }
    code = item__key_of(w->container, w->arena, holder.body, &holder_key);
    if (code == OK) {
        code = item__remove_gone(w, &holder_key, &holder);
    }
    store_give(&holder.pin);
    return code;
}

err item__unique_check(item_work *w, const item_key *key, slice body, uint64_t self) {
    err code = container_checks(w->container) < w->part->checks ? E_RETRY_WITH : OK; /* a unique key or an expiry was added meanwhile */
    for (unsigned i = 0; i < w->container->unique_keys_n && code == OK; i++) {
        layout_key k;
        store_value value;
        bool of_group;
        item_place place;
        if (!item_unique_key(w->container, i, key, body, &k)) {
            continue;
        }
        code = commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &of_group);
        if (code != OK) {
            code = code == E_NOT_FOUND ? OK : code;
            continue;
        }
        bool placed = layout_place_read(value.bytes, &place);
        store_give(&value);
        code = !placed ? E_STORE_CORRUPT : place.number == self ? OK : meet_holder(w, place);
    }
    return code;
}

size_t item__unique_put(const item_work *w, const item_key *key, slice body, item_place place) {
    char bytes[12];
    size_t n = 0;
    layout_place_write(bytes, place);
    for (unsigned i = 0; i < w->container->unique_keys_n; i++) {
        layout_key k;
        if (!item_unique_key(w->container, i, key, body, &k)) {
            continue;
        }
        store_put(&w->group->batch, STORE_INDEX, layout_view(&k), slice_of(bytes, 12));
        n += k.n + 12;
    }
    return n;
}

size_t item__unique_remove(const item_work *w, const item_key *key, slice body) {
    size_t n = 0;
    for (unsigned i = 0; i < w->container->unique_keys_n; i++) {
        layout_key k;
        if (!item_unique_key(w->container, i, key, body, &k)) {
            continue;
        }
        store_delete(&w->group->batch, STORE_INDEX, layout_view(&k));
        n += k.n + 12;
    }
    return n;
}

/* ---- unique keys of items that are there already ---- */

typedef struct adding {
    item_work work;
    op *op;
    unsigned from;          /* the first new key */
    const container *after; /* instead: keys that it has dropped are removed; NULL: keys are added */
    bool counts;            /* the second pass: the entries are there, their size is counted */
} adding;

static bool is_concerned(const adding *a, unsigned i) {
    return a->after ? a->after->unique_keys[i].dropped : i >= a->from;
}

/* A key is looked up in the group, which has those of the items before. */
static err add_key(adding *a, const layout_key *k, item_place place) {
    store_value value;
    bool of_group;
    char bytes[12];
    err code = commit_get(a->work.group, STORE_INDEX, layout_view(k), &value, &of_group);
    if (code == OK) {
        store_give(&value);
        return op_fail(a->op, E_UNIQUE_KEY, "Two items have the same values at the paths of the new unique key.");
    }
    TRY(code == E_NOT_FOUND ? OK : code);
    layout_place_write(bytes, place);
    store_put(&a->work.group->batch, STORE_INDEX, layout_view(k), slice_of(bytes, sizeof bytes));
    return OK;
}

static err add_keys_of(adding *a, item_place place, slice body) {
    item_work *w = &a->work;
    item_key key;
    int64_t n = 0;
    TRY(item__key_of(w->container, w->arena, body, &key));
    for (unsigned i = 0; i < w->container->unique_keys_n; i++) {
        layout_key k;
        if (!is_concerned(a, i) || !item_unique_key(w->container, i, &key, body, &k)) {
            continue;
        }
        n += (a->after ? -1 : 1) * (int64_t)(k.n + 12);
        if (a->after && !a->counts) {
            store_delete(&w->group->batch, STORE_INDEX, layout_view(&k));
        }
        TRY(a->after || a->counts ? OK : add_key(a, &k, place));
    }
    if (a->counts && n) {
        TRY(item__enter(w, &key));
        item__count_index(w, &key, n);
        counts_log_link(w->group, w->range);
    }
    return OK;
}

static err add_keys_of_segment(adding *a, uint32_t segment) {
    layout_key from, to;
    slice key, value, body;
    item_place place;
    item_head head;
    stored_item stored;
    err code = OK;
    layout_segment(&from, segment);
    layout_segment(&to, segment);
    layout_after(&to);
    store_scan *scan = store_scan_open(a->work.group->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    while (code == OK && store_scan_next(scan, &key, &value) && layout_item_read(key, &place)) {
        if (layout_head_read(value, &head, &body)) {
            code = add_keys_of(a, place, body);
        } else if ((code = item__load_place(&a->work, place, &stored)) == OK) {
            code = add_keys_of(a, place, stored.body);
            store_give(&stored.pin);
        }
        arena_reset(a->work.arena);
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

/* Counts only after all keys have proved unique, since a failed commit takes back its batch, but not the counts. */
static err change_entries(const items *s, commit_group *group, container *c, unsigned from, const container *after, op *o) {
    arena scratch = arena_init();
    const container_tiles *tiles = c->tiles;
    container_part *part = container_part_of(c->space, s->homes[0]);
    adding a = {
        .op = o,
        .from = from,
        .after = after,
        .work = {.items = s, .home = s->homes[0], .group = group, .container = c, .part = part, .tiles = part->tiles, .arena = &scratch}};
    err code = OK;
    for (size_t i = 0; i < 2 * tiles->segments_n && code == OK; i++) {
        size_t segment = i % tiles->segments_n;
        bool here = tiles->segment_homes[segment] == s->homes[0];
        a.counts = i >= tiles->segments_n;
        code = here ? add_keys_of_segment(&a, tiles->segments[segment])
                    : op_fail(o, E_BAD_REQUEST, "A unique key cannot be added to a container in several stores, or be dropped.");
    }
    arena_free(&scratch);
    return code;
}

err item_unique_add(const items *s, commit_group *group, container *c, unsigned from, op *o) {
    return change_entries(s, group, c, from, NULL, o);
}

err item_unique_drop(const items *s, commit_group *group, container *before, const container *after, op *o) {
    return change_entries(s, group, before, 0, after, o);
}
