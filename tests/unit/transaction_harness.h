/* transaction_harness.h — for tests of item/transaction.h: two containers of several ranges, on a store in memory or on RocksDB, and calls
 * that prepare, read and commit. */
#pragma once

#include "item/rows.h"
#include "item/transaction.h"
#include "item_harness.h"

#define KEYED(id, more) "{\"id\":\"" id "\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}" more "}"
#define FIRST KEYED("a", ",\"defaultTtl\":-1,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}")
#define SECOND KEYED("b", ",\"changeFeedPolicy\":{\"retentionDuration\":10}")

enum { PARTITIONS = 3, LIFETIME_S = 60 };

static harness h;
static char *folder;
static container *a, *b;
static char names[PARTITIONS][16], away[16]; /* partition keys as headers: ["p7"] */

/* ---- set up ---- */

static inline item_key key_of(const container *c, const char *header, const char *id) {
    op *o = harness_op(&h);
    pkey *parsed = arena_new(&h.arena, pkey);
    item_key key;
    assert_int_equal(pkey_parse(o, arena_copy(&h.arena, slice_str(header)), parsed), OK);
    assert_int_equal(item_check_key(o, c, parsed, arena_copy(&h.arena, slice_str(id)), &key), OK);
    return key;
}

static inline const container_range *range_of(const container *c, const char *header) {
    item_key key = key_of(c, header, "");
    return container_route(c->tiles, &key.epk);
}

/* Chooses partitions in the first home, in several ranges if it has them; and one in another home. */
static inline void choose_names(void) {
    size_t n = 0;
    *away = 0;
    for (int i = 0; n < PARTITIONS || (h.homes_n > 1 && !*away); i++) {
        char name[16];
        snprintf(name, sizeof name, "[\"p%d\"]", i);
        const container_range *in_a = range_of(a, name), *in_b = range_of(b, name);
        if (in_a->home->number == 0 && in_b->home->number == 0 && n < PARTITIONS) {
            if (n != 1 || h.homes_n > 1 || range_of(a, names[0]) != in_a) {
                memcpy(names[n++], name, sizeof name);
            }
        } else if (in_a->home->number == 1 && in_b->home->number == 1) {
            memcpy(away, name, sizeof name);
        }
    }
}

static inline void open_containers(void) {
    a = harness_container(&h, FIRST, 2000);
    container_give(harness_container(&h, KEYED("between", ""), 400)); /* homes are assigned in turn: now `a` and `b` get the same */
    b = harness_container(&h, SECOND, 2000);
    choose_names();
}

static inline int set_up(void **state) {
    (void)state;
    folder = NULL;
    harness_open(&h);
    open_containers();
    return 0;
}

static inline int set_up_rocks(void **state) {
    (void)state;
    folder = make_folder();
    harness_open_on(&h, open_rocks(folder));
    open_containers();
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    container_give(a);
    if (b) {
        container_give(b);
    }
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
    }
    return 0;
}

static inline void check_all(void) {
    harness_check(&h, a);
    if (b) {
        harness_check(&h, b);
    }
}

static inline void restart(void) {
    container_give(a);
    container_give(b);
    harness_restart(&h);
    a = harness_found(&h, "d", "a");
    b = harness_found(&h, "d", "b");
    check_all();
}

/* ---- helpers ---- */

static inline item_transaction *begin(void) {
    item_transaction_ask ask = {.items = harness_items(&h), .lifetime_us = LIFETIME_S * INT64_C(1000000)};
    return item_transaction_begin(&ask);
}

static inline const char *body_of(const char *header, const char *id, int n) {
    char text[200];
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"pk\":%.*s,\"u\":%d}", id, (int)strlen(header) - 2, header + 1, n);
    return arena_text(&h.arena, slice_str(text));
}

static inline item_op *prepare(container *c, item_kind kind, const char *header, const char *id, int n) {
    item_op *op = arena_new(&h.arena, item_op);
    char patch[100];
    snprintf(patch, sizeof patch, "[{\"op\":\"set\",\"path\":\"/u\",\"value\":%d}]", n);
    const char *text = kind == ITEM_EDIT ? patch : kind == ITEM_DELETE ? NULL : body_of(header, id, n);
    assert_int_equal(harness_prepare(&h, c, op, kind, header, id, text), OK);
    return op;
}

/* A write of the transaction; NULL: of another client. */
static inline err put(item_transaction *t, container *c, item_kind kind, const char *header, const char *id, int n) {
    item_op *op = prepare(c, kind, header, id, n);
    return t ? item_transaction_write(t, harness_op(&h), c, op) : harness_commit(&h, c, op, 1, true);
}

/* A replace that gives the item another id. */
static inline err rename_to(item_transaction *t, container *c, const char *header, const char *id, const char *to, int n) {
    item_op *op = arena_new(&h.arena, item_op);
    assert_int_equal(harness_prepare(&h, c, op, ITEM_REPLACE, header, id, body_of(header, to, n)), OK);
    return t ? item_transaction_write(t, harness_op(&h), c, op) : harness_commit(&h, c, op, 1, true);
}

static inline int number_in(slice body) {
    bson_iter_t it;
    assert_true(doc_find_key(body, SLICE_LIT("u"), &it));
    return (int)bson_iter_as_int64(&it);
}

/* The item's `n`; -1: absent. */
static inline int get(item_transaction *t, container *c, const char *header, const char *id, bool guarded) {
    item_found found;
    item_key key = key_of(c, header, id);
    err code = t ? item_transaction_read(t, harness_op(&h), c, &key, guarded, &found)
                 : item_read(harness_items(&h), harness_op(&h), c, &key, &found);
    if (code == E_NOT_FOUND) {
        return -1;
    }
    assert_int_equal(code, OK);
    int n = number_in(found.body);
    item_give(&found);
    return n;
}

static inline void signal_done(void *context) {
    sem_post(context);
}

static inline err submit_and_wait(item_transaction *t) {
    sem_t done;
    sem_init(&done, 0, 0);
    TRY(item_transaction_commit(t, harness_op(&h), signal_done, &done));
    while (sem_wait(&done) != 0) {
    }
    while (item_transaction_missed(t)) {
        item_transaction_fetch(t);
        item_transaction_commit_again(t, true);
        while (sem_wait(&done) != 0) {
        }
    }
    return item_transaction_outcome(t, harness_op(&h));
}

static inline err commit_it(item_transaction *t) {
    err code = submit_and_wait(t);
    item_transaction_end(t);
    return code;
}

static inline void make_some(void) {
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], "1", 1), OK);
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[1], "2", 2), OK);
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[2], "3", 3), OK);
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[0], "4", 4), OK);
}

/* ---- reading many ---- */

static inline bool add_number(void *context, const item_found *found) {
    buf_addf(context, "%d ", number_in(found->body));
    return true;
}

/* A partition in creation order, in pages of `steps` steps. */
static inline const char *listed(item_transaction *t, container *c, const char *header, size_t steps) {
    buf out = buf_init(BUF_NO_LIMIT);
    item_key key = key_of(c, header, "");
    item_cursor cursor;
    item_mark mark;
    item_cursor_init_partition(&cursor, &key);
    assert_int_equal(item_transaction_moment(t, harness_op(&h), c, &key, &cursor.moment), OK);
    while (cursor.n) {
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, steps, add_number, &out, &mark), OK);
    }
    const char *text = arena_text(&h.arena, buf_view(&out));
    buf_free(&out);
    return text;
}

/* Rows in key order, of one partition or (NULL) of all. */
static inline const char *rows(item_transaction *t, container *c, const char *header, bool backward, size_t rows_max) {
    buf out = buf_init(BUF_NO_LIMIT);
    item_key key = key_of(c, header ? header : names[0], "");
    item_rows_ask ask = header ? item_rows_ask_partition(&key) : item_rows_ask_space(epk_min(), epk_max());
    item_rows_cursor cursor = {0};
    item_rows_page page;
    ask.backward = backward;
    ask.rows_max = rows_max;
    assert_int_equal(item_transaction_moment(t, harness_op(&h), c, &key, &ask.moment), OK);
    while (!cursor.ended) {
        assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, add_number, &out, &page), OK);
    }
    const char *text = arena_text(&h.arena, buf_view(&out));
    buf_free(&out);
    return text;
}

/* Both kinds of store. */
#define BOTH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down), cmocka_unit_test_setup_teardown(test, set_up_rocks, tear_down)
