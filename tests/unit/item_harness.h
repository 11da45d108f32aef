/* item_harness.h — for tests of items and of the account: an account on a store in memory that can be told to fail, a clock that stands
 * still, requests in JSON that are waited for, and a check that everything in the store fits together. */
#pragma once

#include <stdlib.h>

#include "account/account.h"
#include "account/account_int.h"
#include "doc/json.h"
#include "item/stored.h"
#include "store_harness.h"

typedef struct harness {
    store *store;
    store_fault_plan plan;
    clock_manual clock;
    account *account;
    arena arena; /* of everything that a test makes; gone with the harness */
} harness;

enum { HARNESS_START_S = 1800000000 };

static inline void harness_open_account(harness *h) {
    char why[256] = "";
    account_options options = {.store = h->store, .clock = &h->clock.source, .item_cache_bytes = 1 << 20, .partition_max_throughput = 1000};
    if (account_open(&options, &h->account, why, sizeof why) != OK) {
        fail_msg("account does not open: %s", why);
    }
}

static inline void harness_open_on(harness *h, store *inner) {
    *h = (harness){.arena = arena_init(), .plan = {.code = E_STORE_IO}};
    clock_manual_init(&h->clock, (int64_t)HARNESS_START_S * 1000);
    h->store = store_open_fault(inner, &h->plan);
    harness_open_account(h);
}

static inline void harness_open(harness *h) {
    harness_open_on(h, store_open_memory());
}

static inline void harness_close(harness *h) {
    account_close(h->account);
    store_close(h->store);
    arena_free(&h->arena);
}

/* As after a restart: what is in memory goes, what is in the store comes back. */
static inline void harness_restart(harness *h) {
    account_close(h->account);
    harness_open_account(h);
}

static inline const items *harness_items(harness *h) {
    return account_items(h->account);
}

static inline int64_t harness_now_s(harness *h) {
    return h->clock.wall_ms / 1000;
}

static inline op *harness_op(harness *h) {
    op *o = arena_new(&h->arena, op);
    op_init(o, &h->arena, harness_now_s(h));
    return o;
}

static inline slice harness_bson(harness *h, const char *json) {
    buf b = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (json_to_bson(slice_str(json), NULL, &b, &root, NULL) != OK) {
        fail_msg("no JSON: %s", json);
    }
    slice bson = arena_copy(&h->arena, buf_view(&b));
    buf_free(&b);
    return bson;
}

/* ---- changes of the account ---- */

typedef struct waited_change {
    account_change base;
    waiter waiter;
} waited_change;

static inline void change_is_done(account_change *change) {
    sem_post(&((waited_change *)change)->waiter.done);
}

static inline err harness_change(harness *h, waited_change *c, void (*submit)(account_change *)) {
    c->base.account = h->account;
    c->base.op = harness_op(h);
    c->base.done = change_is_done;
    waiter_init(&c->waiter);
    submit(&c->base);
    waiter_wait(&c->waiter);
    return c->base.base.code;
}

static inline err harness_create_database(harness *h, const char *name, throughput_setting throughput) {
    waited_change c = {.base = {.database = slice_str(name), .throughput = throughput}};
    err code = harness_change(h, &c, account_create_database);
    database_give(c.base.database_out);
    return code;
}

static inline err harness_delete_database(harness *h, const char *name) {
    waited_change c = {.base = {.database = slice_str(name)}};
    return harness_change(h, &c, account_delete_database);
}

/* The container is the caller's to give back; NULL unless OK. */
static inline err harness_create_container(harness *h, const char *database, const char *properties, uint32_t throughput,
                                           container **container_out) {
    waited_change c = {.base = {.database = slice_str(database),
                                .settings = harness_bson(h, properties),
                                .hierarchical_allowed = true,
                                .throughput = {throughput ? THROUGHPUT_MANUAL : THROUGHPUT_NONE, throughput}}};
    err code = harness_change(h, &c, account_create_container);
    if (code != OK && c.base.container_out) {
        container_give(c.base.container_out);
        c.base.container_out = NULL;
    }
    *container_out = c.base.container_out;
    return code;
}

static inline err harness_replace_container(harness *h, const char *database, const char *name, const char *properties) {
    waited_change c = {.base = {.database = slice_str(database), .container = slice_str(name), .settings = harness_bson(h, properties)}};
    err code = harness_change(h, &c, account_replace_container);
    if (c.base.container_out) {
        container_give(c.base.container_out);
    }
    return code;
}

static inline err harness_delete_container(harness *h, const char *database, const char *name) {
    waited_change c = {.base = {.database = slice_str(database), .container = slice_str(name)}};
    return harness_change(h, &c, account_delete_container);
}

static inline container *harness_find(harness *h, const char *database, const char *name) {
    container *c = NULL;
    return account_container(h->account, slice_str(database), false, slice_str(name), false, &c) == OK ? c : NULL;
}

/* The one that must be there. */
static inline container *harness_found(harness *h, const char *database, const char *name) {
    container *c = harness_find(h, database, name);
    if (!c) {
        fail_msg("container %s is gone", name);
        abort();
    }
    return c;
}

/* Database "d" with this container in it. */
static inline container *harness_container(harness *h, const char *properties, uint32_t throughput) {
    container *c = NULL;
    err code = harness_create_database(h, "d", (throughput_setting){0});
    assert_true(code == OK || code == E_CONFLICT);
    assert_int_equal(harness_create_container(h, "d", properties, throughput, &c), OK);
    return c;
}

/* ---- items ---- */

/* `key` is the partition key header's JSON, or NULL; `text` the body's, or a patch's. */
static inline err harness_prepare(harness *h, const container *c, item_op *o, item_kind kind, const char *key, const char *id,
                                  const char *text) {
    pkey *header = NULL;
    *o = (item_op){.kind = kind};
    op_init(&o->op, &h->arena, harness_now_s(h));
    o->key.id = id ? arena_copy(&h->arena, slice_str(id)) : SLICE_EMPTY;
    if (key) {
        header = arena_new(&h->arena, pkey);
        TRY(pkey_parse(&o->op, arena_copy(&h->arena, slice_str(key)), header));
    }
    if (kind == ITEM_CREATE || kind == ITEM_UPSERT || kind == ITEM_REPLACE) {
        o->body = harness_bson(h, text);
        return item_check_body(&o->op, c, header, o);
    }
    if (kind == ITEM_PATCH) {
        patch *p = arena_new(&h->arena, patch);
        TRY(patch_parse(&o->op, harness_bson(h, text), p));
        o->patch = p;
    }
    return item_check_key(&o->op, c, header, o->key.id, &o->key);
}

typedef struct waited_commit {
    item_commit base;
    waiter waiter;
} waited_commit;

static inline void commit_is_done(item_commit *c) {
    sem_post(&((waited_commit *)c)->waiter.done);
}

/* The commit's code; each operation's is in it. Results are copied to the harness's arena. */
static inline err harness_commit(harness *h, container *c, item_op *ops, size_t n, bool atomic) {
    waited_commit w = {.base = {.items = harness_items(h), .container = c, .ops = ops, .n = n, .atomic = atomic, .range_id = -1}};
    w.base.done = commit_is_done;
    waiter_init(&w.waiter);
    item_commit_submit(&w.base);
    waiter_wait(&w.waiter);
    if (w.base.base.code == OK) {
        item_commit_charge(&w.base);
    }
    for (size_t i = 0; i < n; i++) {
        ops[i].result = arena_copy(&h->arena, ops[i].result);
        ops[i].before_body = arena_copy(&h->arena, ops[i].before_body);
    }
    item_commit_give(&w.base);
    return w.base.base.code;
}

/* One write: refused, failed or done. */
static inline err harness_one(harness *h, container *c, item_op *o, item_kind kind, const char *key, const char *id, const char *text) {
    TRY(harness_prepare(h, c, o, kind, key, id, text));
    return harness_commit(h, c, o, 1, true);
}

static inline err harness_write(harness *h, container *c, item_kind kind, const char *key, const char *id, const char *text) {
    item_op *o = arena_new(&h->arena, item_op);
    return harness_one(h, c, o, kind, key, id, text);
}

/* The item's JSON as it was written, in the harness's arena; NULL when it is not there. Other errors fail the test. */
static inline const char *harness_read(harness *h, const container *c, const char *key, const char *id) {
    op *o = harness_op(h);
    pkey header;
    item_key k;
    item_found found;
    assert_int_equal(pkey_parse(o, slice_str(key), &header), OK);
    assert_int_equal(item_check_key(o, c, &header, slice_str(id), &k), OK);
    err code = item_read(harness_items(h), o, c, &k, &found);
    if (code == E_NOT_FOUND) {
        return NULL;
    }
    assert_int_equal(code, OK);
    buf text = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text, found.body);
    char *result = arena_text(&h->arena, buf_view(&text));
    buf_free(&text);
    item_give(&found);
    return result;
}

static inline uint64_t harness_count(const container *c) {
    uint64_t n = 0;
    for (size_t i = 0; i < c->space->map->n; i++) {
        n += atomic_load(&c->space->ranges[i].items);
    }
    return n;
}

/* ---- feeds ---- */

typedef struct collected {
    buf ids; /* each followed by a blank */
    uint64_t last;
    size_t n, most;
} collected;

static inline bool collect(void *context, const item_found *found) {
    collected *c = context;
    bson_iter_t it;
    if (c->n == c->most) {
        return false;
    }
    assert_true(found->head.number > c->last);
    assert_int_equal(found->head.number, found->place.number);
    c->last = found->head.number;
    c->n++;
    assert_true(doc_find_key(found->body, SLICE_LIT("id"), &it));
    buf_add_slice(&c->ids, doc_text(&it));
    buf_add_byte(&c->ids, ' ');
    return true;
}

/* Ids in feed order over all ranges, or of one partition, by pages of `page`; "a b c ". */
static inline const char *harness_feed(harness *h, const container *c, const char *key, size_t page, size_t steps_max) {
    collected got = {.ids = buf_init(BUF_NO_LIMIT)};
    op *o = harness_op(h);
    item_key partition;
    pkey header;
    size_t first = 0, end = c->space->map->n;
    if (key) {
        assert_int_equal(pkey_parse(o, slice_str(key), &header), OK);
        assert_int_equal(item_check_key(o, c, &header, SLICE_EMPTY, &partition), OK);
        first = (size_t)(container_route(c, &partition.epk) - c->space->ranges);
        end = first + 1;
    }
    for (size_t i = first; i < end; i++) {
        item_scope scope = {.range = &c->space->ranges[i], .partition = key ? &partition : NULL};
        uint64_t after = 0;
        bool more = true;
        got.last = 0;
        while (more) {
            got.n = 0;
            got.most = page;
            assert_int_equal(item_feed(harness_items(h), o, c, &scope, &after, steps_max, collect, &got, &more), OK);
        }
    }
    const char *text = arena_text(&h->arena, buf_view(&got.ids));
    buf_free(&got.ids);
    return text;
}

/* ---- does everything fit together? ---- */

static inline bool store_holds(harness *h, const layout_key *k) {
    store_value value;
    err code = store_get(h->store, STORE_INDEX, NULL, layout_view(k), &value);
    assert_true(code == OK || code == E_NOT_FOUND);
    store_give(&value);
    return code == OK;
}

static inline bool leads_to(harness *h, const layout_key *k, item_place place, size_t n) {
    char bytes[12];
    layout_place_write(bytes, place);
    return get_equals(h->store, STORE_INDEX, NULL, layout_view(k), slice_of(bytes, n));
}

/* Entries that an item must have: all there, and counted. */
static inline size_t check_entries(harness *h, const container *c, item_place place, const item_head *head, slice body) {
    layout_key k;
    item_key key;
    size_t n = 2;
    assert_int_equal(head->number, place.number);
    assert_int_equal(item__key_of(c, body, &key), OK);
    assert_int_equal(container_route(c, &key.epk)->segment, place.segment);
    layout_primary(&k, c->space->container, &key.epk, &key.partition, key.id);
    assert_true(leads_to(h, &k, place, 12));
    layout_order(&k, c->space->container, &key.epk, place.number);
    assert_true(leads_to(h, &k, place, 4));
    if (c->ttl != TTL_OFF && !c->space->ttl_backfill && item__expiry_key(c, place, head, &k)) {
        assert_true(store_holds(h, &k));
    }
    return n + c->unique_keys_n;
}

/* The items of a range: each with its entries; what the range counts is what is there. Returns the entries they must have. */
static inline size_t check_range(harness *h, const container *c, const container_range *range) {
    layout_key from, to;
    slice key, value, body;
    item_place place;
    item_head head;
    uint64_t items = 0, bytes = 0;
    size_t entries = 0;
    layout_segment(&from, range->segment);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        assert_true(layout_item_read(key, &place) && layout_head_read(value, &head, &body));
        entries += check_entries(h, c, place, &head, body);
        assert_true(head.lsn <= atomic_load(&range->lsn));
        assert_true((head.number & (((uint64_t)1 << LAYOUT_PREFIX_SHIFT) - 1)) < range->written.number_next);
        items++;
        bytes += value.n;
    }
    assert_int_equal(store_scan_close(scan), OK);
    assert_int_equal(atomic_load(&range->items), items);
    assert_int_equal(atomic_load(&range->bytes), bytes);
    assert_memory_equal(&range->written, &range->pending, sizeof range->written);
    layout_range(&from, range->container, range->id);
    if (range->written.lsn) {
        char counts[32];
        layout_counts_write(counts, &range->written);
        assert_true(get_equals(h->store, STORE_META, NULL, layout_view(&from), slice_of(counts, 32)));
    }
    return entries;
}

static inline bool item_is_there(harness *h, slice place_bytes) {
    layout_key k;
    item_place place;
    store_value value;
    assert_true(layout_place_read(place_bytes, &place));
    layout_item(&k, place);
    err code = store_get(h->store, STORE_ITEMS, NULL, layout_view(&k), &value);
    store_give(&value);
    return code == OK;
}

/* Every item has its entries, every entry but those of expiry (hints, which the sweep uses up) has its item, all counts are exact. */
static inline void harness_check(harness *h, const container *c) {
    layout_key from, to;
    slice key, value;
    size_t expected = 0, found = 0;
    for (size_t i = 0; i < c->space->map->n; i++) {
        expected += check_range(h, c, &c->space->ranges[i]);
    }
    layout_container(&from, c->space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        bool hint = key.p[4] == LAYOUT_TTL_OWN || key.p[4] == LAYOUT_TTL_DEFAULT;
        found += !hint;
        assert_true(hint || value.n == 4 || item_is_there(h, value)); /* primary and unique keys lead to an item */
    }
    assert_int_equal(store_scan_close(scan), OK);
    assert_int_equal(found, expected);
}
