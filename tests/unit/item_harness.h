/* item_harness.h — for tests of items and of the account: an account on an in-memory store that can be made to fail, a manual clock,
 * synchronous requests in JSON, and a consistency check of everything in the store. With TESELA_HOMES=2 in the environment the account has
 * two such stores, with ranges in both; `harness.store` then shows them as one. */
#pragma once

#include <stdlib.h>

#include "account/account.h"
#include "account/account_int.h"
#include "account/wide.h"
#include "base/memory.h"
#include "doc/json.h"
#include "item/fetch.h"
#include "item/stored.h"
#include "item/versions.h"
#include "store_harness.h"
#include "store_joined.h"
#include "terms_check.h"

typedef struct harness {
    store *store; /* all homes as one store */
    store *homes[JOINED];
    size_t homes_n;
    store_fault_plan plan;
    clock_manual clock;
    account *account;
    account_rules rules;
    bool uncached;       /* no item cache: every read goes to the store */
    size_t vector_bytes; /* memory limit of vector graphs; 0: no graphs */
    arena arena;         /* holds everything that a test allocates; freed with the harness */
    bool extended;       /* see harness_bson */
} harness;

enum { HARNESS_START_S = 1800000000 };

static inline account_options harness_options(harness *h) {
    return (account_options){
        .store = h->homes[0],
        .others = h->homes + 1,
        .others_n = h->homes_n - 1,
        .placement = ACCOUNT_ROUND_ROBIN,
        .clock = &h->clock.source,
        .item_cache_bytes = h->uncached ? 0 : 1 << 20,
        .vector_bytes = h->vector_bytes,
        .rules = h->rules,
    };
}

static inline void harness_open_account(harness *h) {
    char why[256] = "";
    account_options options = harness_options(h);
    if (account_open(&options, &h->account, why, sizeof why) != OK) {
        fail_msg("account does not open: %s", why);
    }
}

static inline size_t harness_homes(void) {
    const char *wanted = getenv("TESELA_HOMES");
    return wanted && strcmp(wanted, "2") == 0 ? 2 : 1;
}

static inline void harness_open_homes(harness *h, store *inner, store *second) {
    *h = (harness){.arena = arena_init(), .plan = {.code = E_STORE_IO}, .rules = {.range_throughput = 1000, .unlimited = true}};
    clock_manual_init(&h->clock, (int64_t)HARNESS_START_S * 1000);
    h->homes_n = second ? 2 : 1;
    h->store = h->homes[0] = store_open_fault(inner, &h->plan);
    if (second) {
        h->homes[1] = store_open_fault(second, &h->plan);
        h->store = store_open_joined(h->homes[0], h->homes[1]);
    }
    harness_open_account(h);
}

static inline void harness_open_on(harness *h, store *inner) {
    harness_open_homes(h, inner, harness_homes() > 1 ? store_open_memory() : NULL);
}

static inline void harness_open(harness *h) {
    harness_open_on(h, store_open_memory());
}

static inline void harness_close(harness *h) {
    account_close(h->account);
    store_close(h->store);
    arena_free(&h->arena);
}

/* Simulates a restart: memory is lost, and the account is loaded from the store. */
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

/* If `extended` is set, reads Extended JSON: {"$oid":"…"} is an ObjectId, as other APIs write it. */
static inline slice harness_bson(harness *h, const char *json) {
    bson_t *typed = h->extended ? bson_new_from_json((const uint8_t *)json, -1, NULL) : NULL;
    if (typed) {
        slice made = arena_copy(&h->arena, slice_of(bson_get_data(typed), typed->len));
        bson_destroy(typed);
        return made;
    }
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

static inline void change_is_done(account_change *change) {
    sem_post(&((waiter *)change->context)->done);
}

static inline void harness_change_begin(harness *h, account_change *change) {
    waiter *w = arena_new(&h->arena, waiter);
    waiter_init(w);
    change->account = h->account;
    change->op = harness_op(h);
    change->done = change_is_done;
    change->context = w;
}

static inline err harness_change_wait(account_change *change) {
    account *a = change->account;
    waiter_wait(change->context);
    while (atomic_load(&a->wide)) { /* background work of the change in other homes */
        usleep(100);
    }
    return change->commit.code;
}

/* Submits a change, waits for it, and returns its code. `submit` is the account_… function for the change's struct. */
#define harness_change(h, change, submit) (harness_change_begin((h), &(change)->base), submit(change), harness_change_wait(&(change)->base))

static inline account_name harness_name(const char *text) {
    return (account_name){.text = slice_str(text)};
}

static inline err harness_create_database(harness *h, const char *name, throughput_setting throughput) {
    database_creation c = {.id = slice_str(name), .throughput = throughput};
    err code = harness_change(h, &c, account_create_database);
    database_give(c.database_out);
    return code;
}

static inline err harness_delete_database(harness *h, const char *name) {
    database_deletion c = {.database = harness_name(name)};
    return harness_change(h, &c, account_delete_database);
}

/* Some tests run again with clustered containers, and some with lean ones (meson.build). */
static inline bool harness_lean(void) {
    return getenv("TESELA_TEST_LEAN") != NULL;
}

static inline bool harness_clustered(void) {
    return harness_lean() || getenv("TESELA_TEST_CLUSTERED") != NULL;
}

/* Clustered with creation order and local index entries in partitions. */
static inline bool harness_ordered(void) {
    const char *kind = getenv("TESELA_TEST_CLUSTERED");
    return kind && strcmp(kind, "ordered") == 0;
}

static inline slice harness_rows(harness *h) {
    return harness_lean()        ? harness_bson(h, "{\"clustered\":true,\"lean\":true}")
           : harness_ordered()   ? harness_bson(h, "{\"clustered\":true,\"ordered\":true}")
           : harness_clustered() ? harness_bson(h, "{\"clustered\":true}")
                                 : SLICE_EMPTY;
}

/* The caller must give the container back; NULL unless OK. */
static inline err harness_create_container(harness *h, const char *database, const char *properties, uint32_t throughput,
                                           container **container_out) {
    container_creation c = {.database = harness_name(database),
                            .settings = harness_bson(h, properties),
                            .hierarchical_allowed = true,
                            .rows = harness_rows(h),
                            .throughput = {.kind = throughput ? THROUGHPUT_MANUAL : THROUGHPUT_NONE, .value = throughput}};
    err code = harness_change(h, &c, account_create_container);
    if (code != OK && c.container_out) {
        container_give(c.container_out);
        c.container_out = NULL;
    }
    *container_out = c.container_out;
    return code;
}

/* Creates a container with a row definition (container_creation): `rows` is JSON. */
static inline err harness_create_rows(harness *h, const char *database, const char *properties, const char *rows,
                                      container **container_out) {
    container_creation c = {.database = harness_name(database),
                            .settings = harness_bson(h, properties),
                            .hierarchical_allowed = true,
                            .rows = harness_bson(h, rows)};
    err code = harness_change(h, &c, account_create_container);
    if (code != OK && c.container_out) {
        container_give(c.container_out);
        c.container_out = NULL;
    }
    *container_out = c.container_out;
    return code;
}

static inline err harness_replace_container(harness *h, const char *database, const char *name, const char *properties) {
    container_replacement c = {
        .database = harness_name(database), .container = harness_name(name), .settings = harness_bson(h, properties)};
    err code = harness_change(h, &c, account_replace_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

static inline err harness_delete_container(harness *h, const char *database, const char *name) {
    container_deletion c = {.database = harness_name(database), .container = harness_name(name)};
    return harness_change(h, &c, account_delete_container);
}

static inline container *harness_find(harness *h, const char *database, const char *name) {
    container *c = NULL;
    return account_container(h->account, slice_str(database), false, slice_str(name), false, &c) == OK ? c : NULL;
}

/* Finds a container that must exist. */
static inline container *harness_found(harness *h, const char *database, const char *name) {
    container *c = harness_find(h, database, name);
    if (!c) {
        fail_msg("container %s is gone", name);
        abort();
    }
    return c;
}

/* Creates database "d", if needed, and this container in it. */
static inline container *harness_container(harness *h, const char *properties, uint32_t throughput) {
    container *c = NULL;
    err code = harness_create_database(h, "d", (throughput_setting){0});
    assert_true(code == OK || code == E_CONFLICT);
    assert_int_equal(harness_create_container(h, "d", properties, throughput, &c), OK);
    return c;
}

/* ---- items ---- */

/* `key` is the JSON of the partition key header, or NULL; `text` is the JSON of the body or, for an edit, of the patch. */
static inline err harness_prepare(harness *h, const container *c, item_op *o, item_kind kind, const char *key, const char *id,
                                  const char *text) {
    pkey *header = NULL;
    *o = (item_op){.kind = kind};
    op_init(&o->op, &h->arena, harness_now_s(h));
    o->key.row = id ? arena_copy(&h->arena, slice_str(id)) : SLICE_EMPTY;
    if (key) {
        header = arena_new(&h->arena, pkey);
        TRY(pkey_parse(&o->op, arena_copy(&h->arena, slice_str(key)), header));
    }
    if (kind == ITEM_CREATE || kind == ITEM_UPSERT || kind == ITEM_REPLACE) {
        o->body = harness_bson(h, text);
        return item_check_body(&o->op, c, header, o);
    }
    if (kind == ITEM_EDIT) {
        o->edit = (item_edit){.kind = ITEM_EDIT_PATCH, .argument = harness_bson(h, text)};
        TRY(item_edit_make_ready(&o->op, c, o));
    }
    return item_check_key(&o->op, c, header, o->key.row, &o->key);
}

/* A create, upsert or replace of a BSON body, which is copied; or a delete of the item with the body's key. */
static inline err harness_prepare_bson(harness *h, const container *c, item_op *o, item_kind kind, const bson_t *body) {
    *o = (item_op){.kind = kind == ITEM_DELETE ? ITEM_UPSERT : kind};
    op_init(&o->op, &h->arena, harness_now_s(h));
    o->body = arena_copy(&h->arena, slice_of(bson_get_data(body), body->len));
    TRY(item_check_body(&o->op, c, NULL, o));
    o->kind = kind;
    return OK;
}

typedef struct waited_commit {
    item_commit base;
    waiter waiter;
} waited_commit;

static inline void commit_is_done(item_commit *c) {
    sem_post(&((waited_commit *)c)->waiter.done);
}

/* Submits, prepares long edits, and waits until everything is decided. */
static inline err harness_submit(waited_commit *w) {
    w->base.done = commit_is_done;
    w->base.prepares = true;
    for (;;) {
        waiter_init(&w->waiter);
        TRY(item_commit_submit(&w->base));
        waiter_wait(&w->waiter);
        if (!item_commit_is_undecided(&w->base)) {
            return OK;
        }
        item_commit_prepare(&w->base);
    }
}

/* Returns the commit's code; each operation has its own. Results are copied to the harness's arena. */
static inline err harness_commit(harness *h, container *c, item_op *ops, size_t n, bool atomic) {
    waited_commit w = {.base = {.items = harness_items(h), .container = c, .ops = ops, .n = n, .atomic = atomic, .range_id = -1}};
    w.base.op = harness_op(h);
    TRY(harness_submit(&w));
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

/* One write, submitted and waited for. */
static inline err harness_one(harness *h, container *c, item_op *o, item_kind kind, const char *key, const char *id, const char *text) {
    TRY(harness_prepare(h, c, o, kind, key, id, text));
    return harness_commit(h, c, o, 1, true);
}

static inline err harness_write(harness *h, container *c, item_kind kind, const char *key, const char *id, const char *text) {
    item_op *o = arena_new(&h->arena, item_op);
    return harness_one(h, c, o, kind, key, id, text);
}

/* The item's JSON as it was written, in the harness's arena; NULL if it does not exist. Other errors fail the test. */
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

/* The container's part in the home of its first range. */
static inline container_part *harness_part(const container *c) {
    return container_part_of(c->space, c->space->newest->ranges[0]->home);
}

/* The number of items, by the newest tiles. */
static inline uint64_t harness_count(const container *c) {
    uint64_t n = 0;
    for (size_t i = 0; i < c->space->newest->map->n; i++) {
        n += atomic_load(&c->space->newest->ranges[i]->items);
    }
    return n;
}

/* ---- feeds ---- */

typedef struct collected {
    buf ids; /* each followed by a space */
    uint64_t last;
    const container_range *range;
    size_t n, most;
} collected;

static inline bool collect(void *context, const item_found *found) {
    collected *c = context;
    bson_iter_t it;
    if (c->n == c->most) {
        return false;
    }
    assert_true(found->head.number > c->last || found->range != c->range); /* ascending within a range */
    assert_int_equal(found->head.number, found->place.number);
    c->last = found->head.number;
    c->range = found->range;
    c->n++;
    assert_true(doc_find_key(found->body, SLICE_LIT("id"), &it));
    buf_add_slice(&c->ids, doc_text(&it));
    buf_add_byte(&c->ids, ' ');
    return true;
}

static inline item_cursor harness_cursor(void) {
    return (item_cursor){.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
}

/* The ids in feed order, of all ranges or of one partition, read in pages of `page`: "a b c ". */
static inline const char *harness_feed(harness *h, container *c, const char *key, size_t page, size_t steps_max) {
    collected got = {.ids = buf_init(BUF_NO_LIMIT), .most = page};
    op *o = harness_op(h);
    item_key partition;
    pkey header;
    item_mark mark;
    item_cursor cursor = harness_cursor();
    if (key) {
        assert_int_equal(pkey_parse(o, slice_str(key), &header), OK);
        assert_int_equal(item_check_key(o, c, &header, SLICE_EMPTY, &partition), OK);
        cursor.partition = &partition;
    }
    while (cursor.n) {
        got.n = 0;
        assert_int_equal(item_feed(harness_items(h), o, c, &cursor, steps_max, collect, &got, &mark), OK);
    }
    const char *text = arena_text(&h->arena, buf_view(&got.ids));
    buf_free(&got.ids);
    return text;
}

/* ---- background work ---- */

typedef struct waited_move {
    item_move base;
    waiter waiter;
} waited_move;

static inline void move_is_done(item_move *m) {
    sem_post(&((waited_move *)m)->waiter.done);
}

/* Moves up to `cost_max` for each range that is leaving a segment, as the balancer does. */
static inline void harness_move(harness *h, container *c, unsigned cost_max) {
    container_tiles *tiles = container_space_newest(c->space);
    for (size_t i = 0; i < tiles->map->n; i++) {
        uint32_t id = tiles->ranges[i]->id;
        waited_move w = {.base = {.items = harness_items(h), .container = c, .range_id = id, .cost_max = cost_max, .done = move_is_done}};
        waiter_init(&w.waiter);
        item_move_submit(&w.base);
        waiter_wait(&w.waiter);
        assert_int_equal(w.base.base.code, OK);
        if (w.base.ended) {
            assert_int_equal(account__forget_sources(h->account, c, id), OK);
        }
    }
    container_tiles_give(tiles);
}

typedef struct waited_step {
    item_index_step base;
    waiter waiter;
} waited_step;

static inline void step_is_done(item_index_step *step) {
    sem_post(&((waited_step *)step)->waiter.done);
}

/* One step of building an index, or the final switch to it. *ended_out: nothing is left to build. */
static inline err harness_build_part(harness *h, container *c, home *home, unsigned cost_max, bool switches, bool *ended_out) {
    waited_step w = {
        .base = {
            .items = harness_items(h), .home = home, .container = c, .cost_max = cost_max, .switches = switches, .done = step_is_done}};
    waiter_init(&w.waiter);
    item_index_step_submit(&w.base);
    waiter_wait(&w.waiter);
    *ended_out = w.base.ended;
    return w.base.base.code;
}

/* The same in every home of the container. */
static inline err harness_build(harness *h, container *c, unsigned cost_max, bool switches, bool *ended_out) {
    *ended_out = true;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        bool ended = true;
        if (c->space->parts[i].home) {
            TRY(harness_build_part(h, c, c->space->parts[i].home, cost_max, switches, &ended));
        }
        *ended_out = *ended_out && ended;
    }
    return OK;
}

static inline bool harness_builds(const container *c) {
    bool builds = false;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        builds = builds || c->space->parts[i].building;
    }
    return builds;
}

/* Passes the newest settings to homes that missed them because a store failed, as the balancer does. */
static inline void harness_catch_up(harness *h, container *c) {
    for (size_t i = 1; i < c->space->parts_n; i++) {
        if (!account__follows_settings(c, &c->space->parts[i])) {
            assert_int_equal(account__follow_settings(h->account, c), OK);
        }
    }
}

/* Builds the rest of the index and switches to it. */
static inline void harness_build_all(harness *h, container *c) {
    bool ended = false;
    harness_catch_up(h, c);
    while (!ended) {
        assert_int_equal(harness_build(h, c, 64, false, &ended), OK);
    }
    if (harness_builds(c)) {
        assert_int_equal(harness_build(h, c, 64, true, &ended), OK);
    }
}

/* ---- consistency check ---- */

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

/* Whether the primary key of a clustered container holds the item of this place. */
static inline bool has_row(harness *h, const layout_key *k, item_place place) {
    store_value value;
    uint32_t segment;
    slice item, body;
    item_head head;
    assert_int_equal(store_get(h->store, STORE_INDEX, NULL, layout_view(k), &value), OK);
    bool same = layout_row_read(value.bytes, &segment, &item) && layout_head_read(item, &head, &body) && segment == place.segment &&
                head.number == place.number;
    store_give(&value);
    return same;
}

static inline bool is_source(const container_tiles *tiles, size_t i, uint32_t segment) {
    bool found = false;
    for (size_t j = 0; j < tiles->sources[i].n; j++) {
        found = found || tiles->sources[i].list[j].segment == segment;
    }
    return found;
}

/* Checks that an item has all its entries; returns their number. */
static inline size_t check_entries(harness *h, const container *c, item_place place, const item_head *head, slice body) {
    layout_key k;
    item_key key;
    size_t n = c->ordered ? 2 : 1;
    assert_int_equal(head->number, place.number);
    assert_int_equal(item__key_of(c, &h->arena, body, &key), OK);
    const container_part *part = container_part_of(c->space, container_route(c->space->newest, &key.epk)->home);
    assert_true(is_source(c->space->newest, container_position(c->space->newest, &key.epk), place.segment));
    layout_primary(&k, c->space->container, &key.epk, &key.partition, key.row);
    if (c->clustered) {
        assert_true(has_row(h, &k, place));
    } else {
        assert_true(leads_to(h, &k, place, 12));
    }
    if (c->ordered) {
        layout_order(&k, c->space->container, &key.epk, place.number);
        assert_true(leads_to(h, &k, place, 4));
    }
    if (c->ttl != TTL_OFF && !part->ttl_backfill && item__expiry_key(c, part, place, head, body, &k)) {
        assert_true(store_holds(h, &k));
    }
    return n + c->unique_keys_n;
}

/* Sums over all items, for comparison with the counters. */
typedef struct check_sums {
    size_sum sums; /* except partitions, which are counted from their size entries */
    size_t entries;
    size_t lead_bytes; /* size of leads, which are stored at the items' places */
} check_sums;

/* Checks that each item of a segment has its entries, and adds it to its range's sums. */
static inline void check_segment(harness *h, const container *c, uint32_t segment, check_sums *sums) {
    const container_tiles *tiles = c->space->newest;
    layout_key from, to;
    slice key, value, primary;
    item_key of;
    layout_segment(&from, segment);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        item_found found = {0};
        assert_true(layout_item_read(key, &found.place) && layout_lead_read(value, &primary) == c->clustered);
        assert_int_equal(item__fetch_value(h->store, NULL, value, &found), OK);
        assert_int_equal(item__key_of(c, &h->arena, found.body, &of), OK);
        size_t i = container_position(tiles, &of.epk);
        uint64_t number = found.head.number;
        sums[i].entries += check_entries(h, c, found.place, &found.head, found.body);
        assert_true(found.head.lsn <= atomic_load(&tiles->ranges[i]->lsn));
        assert_true(number >> LAYOUT_PREFIX_SHIFT != tiles->ranges[i]->rid_prefix ||
                    (number & (((uint64_t)1 << LAYOUT_PREFIX_SHIFT) - 1)) < tiles->ranges[i]->written.number_next);
        sums[i].sums.items++;
        sums[i].sums.bytes += LAYOUT_HEAD_BYTES + found.body.n;
        sums[i].lead_bytes += c->clustered ? key.n + value.n : 0;
        item_give(&found);
    }
    assert_int_equal(store_scan_close(scan), OK);
}

/* Checks that attachments belong to an existing item, and counts them towards their partition. */
static inline size_t check_attachments(harness *h, const container *c, check_sums *sums) {
    const container_tiles *tiles = c->space->newest;
    layout_key from, to, order;
    slice key, value;
    size_t n = 0;
    layout_all_attachments(&from, c->space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    for (; store_scan_next(scan, &key, &value); n++) {
        epk e = {.n = (uint8_t)(key.n - from.n - 8)};
        uint64_t number;
        store_value place;
        memcpy(e.bytes, key.p + from.n, e.n);
        memcpy(&number, key.p + key.n - 8, 8);
        if (c->ordered) { /* otherwise there are no 'o' entries */
            layout_order(&order, c->space->container, &e, be64toh(number));
            assert_int_equal(store_get(h->store, STORE_INDEX, NULL, layout_view(&order), &place), OK);
            store_give(&place);
        }
        sums[container_position(tiles, &e)].sums.bytes += value.n;
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

/* Checks that the counts of a range, in memory and on disk, and those of its partitions match the items. Returns the expected number of
 * entries. */
static inline size_t check_range(const container *c, size_t i, const check_sums *found) {
    const container_tiles *tiles = c->space->newest;
    const container_range *range = tiles->ranges[i];
    size_sum sizes;
    size_pieces whole = {.container = range->container, .from = tiles->map->ranges[i].min, .to = tiles->map->ranges[i].max, .n = 1};
    assert_int_equal(item_sizes_sum(range->home->store, NULL, &whole, &sizes), OK);
    assert_int_equal(atomic_load(&range->items), found->sums.items);
    assert_int_equal(atomic_load(&range->bytes), found->sums.bytes);
    assert_int_equal(sizes.items, found->sums.items);
    assert_int_equal(sizes.bytes, found->sums.bytes);
    assert_int_equal(atomic_load(&range->index_bytes), sizes.index_bytes);
    assert_int_equal(atomic_load(&range->partitions), sizes.partitions);
    range_counts pending = range->pending;
    if (pending.number_next == range->reserved_next) { /* reserved numbers that are not used yet */
        pending.number_next = range->written.number_next;
    }
    assert_memory_equal(&range->written, &pending, sizeof range->written);
    assert_null(range->watch);
    return found->entries + sizes.partitions;
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

/* Checks that all but one of the ranges with items in a segment are leaving it. */
static inline void check_sources(const container_tiles *tiles) {
    for (uint32_t segment = 0; container_tiles_segment(tiles, NULL, segment, &segment); segment++) {
        size_t users = 0, stay = 0;
        for (size_t i = 0; i < tiles->map->n; i++) {
            for (size_t j = 0; j < tiles->sources[i].n; j++) {
                const range_source *source = &tiles->sources[i].list[j];
                users += source->segment == segment;
                stay += source->segment == segment && !source->leaving;
            }
        }
        for (size_t i = 0; i < tiles->map->n; i++) {
            for (size_t j = 0; j < tiles->sources[i].n; j++) {
                const range_source *source = &tiles->sources[i].list[j];
                assert_true(source->segment != segment || source->shared == (users > 1));
            }
        }
        assert_true(stay <= 1);
    }
}

/* Checks that counts and move progress are stored for existing ranges only. */
static inline void check_records(harness *h, const container *c) {
    const container_tiles *tiles = c->space->newest;
    static const char tags[] = {'R', 'M'};
    for (size_t t = 0; t < sizeof tags; t++) {
        layout_key from, to;
        slice key, value;
        layout_range(&from, c->space->container, 0);
        layout_range(&to, c->space->container, UINT32_MAX);
        from.bytes[0] = to.bytes[0] = tags[t];
        store_scan *scan = store_scan_open(h->store, STORE_META, NULL, layout_view(&from), layout_view(&to), false);
        while (store_scan_next(scan, &key, &value)) {
            uint32_t id;
            memcpy(&id, key.p + 5, 4);
            const partition_range *range = partition_map_by_id(tiles->map, be32toh(id));
            assert_non_null(range);
            bool leaves = false;
            for (size_t j = 0; tags[t] == 'M' && j < tiles->sources[range - tiles->map->ranges].n; j++) {
                leaves = leaves || tiles->sources[range - tiles->map->ranges].list[j].leaving;
            }
            assert_true(tags[t] == 'R' || leaves);
        }
        assert_int_equal(store_scan_close(scan), OK);
    }
}

/* ---- the log of versions ---- */

typedef struct checked_version {
    log_entry entry;
    uint64_t lsn, number;
    slice key; /* the primary key of its item, which a later version may change */
} checked_version;

static inline slice version_key(harness *h, const container *c, slice body) {
    layout_key k;
    item_key key;
    assert_int_equal(item__key_of(c, &h->arena, body, &key), OK);
    layout_primary(&k, c->space->container, &key.epk, &key.partition, key.row);
    return arena_copy(&h->arena, layout_view(&k));
}

static inline size_t load_versions(harness *h, const container *c, checked_version *versions, size_t max) {
    layout_key from, to;
    slice key, value, body, note;
    item_head head;
    size_t n = 0;
    layout_version(&from, c->space->container, 0, 0);
    layout_version(&to, c->space->container, UINT32_MAX, UINT64_MAX);
    store_scan *scan = store_scan_open(h->store, STORE_VERSIONS, NULL, layout_view(&from), layout_view(&to), false);
    while (n < max && store_scan_next(scan, &key, &value)) {
        checked_version *v = &versions[n++];
        assert_true(layout_version_lsn(key, &v->lsn) && layout_log_entry_read(value, &v->entry, &head, &body, &note));
        assert_true(v->entry.kind == VERSION_DELETE ? head.lsn == v->entry.previous_lsn : head.lsn == v->lsn);
        assert_true(v->lsn <= atomic_load(&container_route(c->space->newest, &v->entry.epk)->lsn));
        v->number = head.number;
        v->key = version_key(h, c, body);
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

/* The item at a primary key; number 0: none. */
static inline item_head head_at(harness *h, slice primary) {
    store_value value;
    item_found found = {0};
    slice item;
    if (store_get(h->store, STORE_INDEX, NULL, primary, &value) != OK) {
        return found.head;
    }
    if (layout_row_read(value.bytes, &found.place.segment, &item)) {
        assert_true(layout_head_read(item, &found.head, &found.body));
    } else {
        assert_true(layout_place_read(value.bytes, &found.place));
        assert_int_equal(item__fetch(h->store, NULL, &found), OK);
    }
    store_give(&value);
    item_give(&found);
    return found.head;
}

/* Checks that the versions of an item form a chain, from the first one kept to the current item or its deletion. */
static inline void check_versions(harness *h, const container *c) {
    enum { MAX = 4000 };
    checked_version *versions = mem_alloc(MAX * sizeof *versions);
    size_t n = load_versions(h, c, versions, MAX);
    assert_true(n < MAX);
    for (size_t i = 0; i < n; i++) {
        const checked_version *v = &versions[i];
        size_t next = 0;
        bool newer = false;
        for (size_t j = 0; j < n; j++) {
            const checked_version *other = &versions[j];
            bool same = other->number == v->number;
            next += same && v->entry.kind != VERSION_DELETE && other->entry.previous_lsn == v->lsn;
            newer = newer || (same && other->lsn > v->lsn);
        }
        item_head now = head_at(h, v->key);
        bool is_there = now.number == v->number && now.lsn == v->lsn;
        assert_true(newer || is_there == (v->entry.kind != VERSION_DELETE));
        assert_int_equal(next, newer && v->entry.kind != VERSION_DELETE);
    }
    free(versions);
}

/* Checks that every item has its entries and every entry its item (except expiry entries, which are hints), that all counts are exact, and
 * that the index is complete and has no extra entries. */
static inline void harness_check(harness *h, const container *c) {
    const container_tiles *tiles = c->space->newest;
    layout_key from, to;
    slice key, value;
    size_t expected = 0, found = 0;
    uint64_t index_bytes = 0, counted = 0;
    check_sums *sums = arena_array(&h->arena, check_sums, tiles->map->n);
    check_sources(tiles);
    check_records(h, c);
    terms_check(h->account, c);
    if (item_versions_kept(c)) {
        check_versions(h, c);
    }
    for (uint32_t segment = 0; container_tiles_segment(tiles, NULL, segment, &segment); segment++) {
        check_segment(h, c, segment, sums);
    }
    expected += check_attachments(h, c, sums);
    for (size_t i = 0; i < tiles->map->n; i++) {
        expected += check_range(c, i, &sums[i]);
        counted += atomic_load(&tiles->ranges[i]->index_bytes);
        index_bytes += sums[i].lead_bytes;
    }
    layout_container(&from, c->space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        bool hint = key.p[4] == LAYOUT_TTL_OWN || key.p[4] == LAYOUT_TTL_DEFAULT;
        bool size = key.p[4] == LAYOUT_SIZE || key.p[4] == LAYOUT_ATTACHMENTS;
        found += !hint;
        bool row = !hint && !size && c->clustered && value.n > 12;
        index_bytes += hint || size ? 0 : key.n + (row ? LAYOUT_ROW_BYTES : value.n);
        assert_true(hint || size || row || value.n == 4 || item_is_there(h, value)); /* primary and unique keys must lead to an item */
    }
    assert_int_equal(store_scan_close(scan), OK);
    assert_int_equal(found, expected);
    assert_int_equal(index_bytes, counted);
}
