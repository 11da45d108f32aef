/* Attachments: kept with their item through splits and merges, counted exactly, and written completely or not at all when the store
 * fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "item/attach.h"
#include "item_harness.h"

#define PROPERTIES "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":-1}"

static harness h;
static container *c;

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    c = harness_container(&h, PROPERTIES, 2000);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":\"b\"}"), OK);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    return 0;
}

typedef struct waited {
    attach_write base;
    waiter waiter;
} waited;

static void is_done(attach_write *w) {
    sem_post(&((waited *)w)->waiter.done);
}

static item_key key_of(const char *key, const char *id) {
    op *o = harness_op(&h);
    pkey *header = arena_new(&h.arena, pkey);
    item_key k;
    assert_int_equal(pkey_parse(o, arena_copy(&h.arena, slice_str(key)), header), OK);
    assert_int_equal(item_check_key(o, c, header, arena_copy(&h.arena, slice_str(id)), &k), OK);
    return k;
}

static err attach(attach_kind kind, const char *key, const char *item, const char *id, const char *note, waited *w) {
    char *text =
        arena_text(&h.arena, arena_printf(&h.arena, "{\"id\":\"%s\",\"contentType\":\"t\",\"media\":\"m\",\"note\":\"%s\"}", id, note));
    *w = (waited){.base = {.items = harness_items(&h),
                           .op = harness_op(&h),
                           .container = c,
                           .kind = kind,
                           .item = key_of(key, item),
                           .id = slice_str(id),
                           .body = harness_bson(&h, text),
                           .done = is_done}};
    waiter_init(&w->waiter);
    TRY(attach_submit(&w->base));
    waiter_wait(&w->waiter);
    attach_write_charge(&w->base);
    attach_write_give(&w->base);
    return w->base.base.code;
}

static err simply(attach_kind kind, const char *key, const char *item, const char *id, const char *note) {
    waited w;
    return attach(kind, key, item, id, note, &w);
}

/* All attachments of an item as "1=x 2=y "; NULL: no such item. */
static const char *all(const char *key, const char *item) {
    op *o = harness_op(&h);
    item_key k = key_of(key, item);
    attach_list list;
    attachment each;
    bson_iter_t it;
    buf text = buf_init(BUF_NO_LIMIT);
    err code = attach_open(harness_items(&h), o, c, &k, &list);
    if (code == E_OWNER_NOT_FOUND) {
        return NULL;
    }
    assert_int_equal(code, OK);
    while (attach_next(&list, &each)) {
        assert_true(doc_find_key(each.body, SLICE_LIT("note"), &it));
        buf_addf(&text, "%.*s=%.*s ", (int)each.id.n, each.id.p, (int)doc_text(&it).n, doc_text(&it).p);
    }
    attach_close(&list);
    const char *result = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return result;
}

static void lives_with_its_item(void **state) {
    (void)state;
    waited w, second;
    assert_int_equal(attach(ATTACH_CREATE, "[\"a\"]", "1", "x", "1", &w), OK);
    assert_true(w.base.created && w.base.now.number == 1);
    assert_int_equal(attach(ATTACH_CREATE, "[\"a\"]", "1", "y", "2", &second), OK);
    assert_int_equal(second.base.now.lsn, w.base.now.lsn + 1);
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "1", "x", "3"), E_CONFLICT);
    assert_int_equal(simply(ATTACH_REPLACE, "[\"a\"]", "1", "z", "3"), E_NOT_FOUND);
    assert_int_equal(simply(ATTACH_DELETE, "[\"a\"]", "1", "z", ""), E_NOT_FOUND);
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "9", "x", "3"), E_OWNER_NOT_FOUND);
    assert_string_equal(all("[\"a\"]", "1"), "x=1 y=2 ");
    harness_check(&h, c);
    assert_int_equal(simply(ATTACH_UPSERT, "[\"a\"]", "1", "x", "longer"), OK);
    assert_int_equal(simply(ATTACH_UPSERT, "[\"a\"]", "1", "z", "4"), OK);
    assert_int_equal(simply(ATTACH_DELETE, "[\"a\"]", "1", "y", ""), OK);
    assert_string_equal(all("[\"a\"]", "1"), "x=longer z=4 ");
    assert_string_equal(all("[\"b\"]", "2"), "");
    harness_check(&h, c);
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    assert_string_equal(all("[\"a\"]", "1"), "x=longer z=4 ");
    assert_int_equal(harness_write(&h, c, ITEM_REPLACE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"v\":1}"), OK);
    assert_string_equal(all("[\"a\"]", "1"), "x=longer z=4 ");
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"b\"]", "2", NULL), OK); /* the first delete since the restart */
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    assert_null(all("[\"a\"]", "1"));
    harness_check(&h, c);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_string_equal(all("[\"a\"]", "1"), "");
    harness_check(&h, c);
}

static void expires_with_its_item(void **state) {
    (void)state;
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"3\",\"pk\":\"a\",\"ttl\":5}"), OK);
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "3", "x", "1"), OK);
    clock_manual_advance(&h.clock, 6000);
    assert_null(all("[\"a\"]", "3"));
    assert_int_equal(simply(ATTACH_UPSERT, "[\"a\"]", "3", "x", "1"), E_OWNER_NOT_FOUND);
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), c, 100, &in_flight);
    while (atomic_load(&in_flight)) {
        usleep(100);
    }
    assert_int_equal(harness_count(c), 2);
    harness_check(&h, c);
}

static void goes_with_its_container(void **state) {
    (void)state;
    slice key, value;
    layout_key from, to;
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "1", "x", "1"), OK);
    layout_container(&from, c->space->container);
    to = from;
    layout_after(&to);
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "1", "y", "1"), E_OWNER_NOT_FOUND);
    store_scan *scan = store_scan_open(h.store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    assert_false(store_scan_next(scan, &key, &value));
    assert_int_equal(store_scan_close(scan), OK);
}

static void is_bounded(void **state) {
    (void)state;
    char id[16];
    static char large[ATTACH_BYTES_MAX / 2];
    for (unsigned i = 0; i < ATTACH_COUNT_MAX; i++) {
        snprintf(id, sizeof id, "n%u", i);
        assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "1", id, ""), OK);
    }
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "1", "more", ""), E_FORBIDDEN);
    assert_int_equal(simply(ATTACH_UPSERT, "[\"a\"]", "1", "n0", "x"), OK);
    memset(large, 'x', sizeof large - 1);
    assert_int_equal(simply(ATTACH_CREATE, "[\"b\"]", "2", "1", large), OK);
    assert_int_equal(simply(ATTACH_CREATE, "[\"b\"]", "2", "2", large), E_TOO_LARGE);
    harness_check(&h, c);
}

/* Each call of the store fails in turn: the attachment is written completely or not at all, and the counts are right. */
static void writes_are_whole_whatever_fails(void **state) {
    (void)state;
    unsigned *const kinds[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in};
    unsigned fired = 0;
    char note[16] = "0";
    assert_int_equal(simply(ATTACH_CREATE, "[\"a\"]", "1", "x", note), OK);
    for (unsigned i = 0; i < 3 * 8; i++) {
        char next[16], expected[32];
        snprintf(next, sizeof next, "%u", i + 1);
        *kinds[i % 3] = i / 3 + 1;
        err code = simply(ATTACH_UPSERT, "[\"a\"]", "1", "x", next);
        *kinds[i % 3] = 0;
        assert_true(code == OK || code == E_STORE_IO);
        fired += code != OK;
        memcpy(note, code == OK ? next : note, sizeof note);
        snprintf(expected, sizeof expected, "x=%s ", note);
        assert_string_equal(all("[\"a\"]", "1"), expected);
        harness_check(&h, c);
    }
    assert_true(fired >= 3); /* at least two gets and the write */
}

static void an_item_goes_whole_whatever_fails(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        bool fired = true;
        for (unsigned n = 1; fired; n++) {
            unsigned *const kinds[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in};
            assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
            assert_int_equal(simply(ATTACH_UPSERT, "[\"a\"]", "1", "x", "1"), OK);
            container_give(c);
            harness_restart(&h); /* part->attachments is unknown then */
            c = harness_found(&h, "d", "c");
            *kinds[kind] = n;
            err code = harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL);
            fired = code != OK;
            *kinds[kind] = 0;
            const char *left = all("[\"a\"]", "1");
            assert_true(fired == (left != NULL));
            harness_check(&h, c);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lives_with_its_item, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expires_with_its_item, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goes_with_its_container, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_are_whole_whatever_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_item_goes_whole_whatever_fails, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("item_attach", tests, NULL, NULL);
}
