/* Foreign writes: what an owner makes of the items of other APIs, for whole bodies and for edits, short and long, in commits and in
 * transactions; containers without an owner; ids as row keys; typed values from Extended JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item/foreign.h"
#include "item/transaction.h"
#include "item_harness.h"
#include "query/typed_body.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define A "[\"a\"]"

static harness h;
static container *owned, *unowned;

/* ---- a sample owner: items have `_key` instead of `id`, a time, and no `bad` ---- */

static err adopt(op *o, const container *in, int64_t now_ms, slice body, slice *stored_out) {
    bson_t made = BSON_INITIALIZER;
    bson_iter_t it;
    (void)in;
    bson_iter_init_from_data(&it, (const uint8_t *)body.p, body.n);
    while (bson_iter_next(&it)) {
        slice name = slice_str(bson_iter_key(&it));
        if (slice_eq(name, SLICE_LIT("bad"))) {
            bson_destroy(&made);
            return op_fail(o, E_BAD_REQUEST, "no 'bad' here");
        }
        if (!slice_eq(name, SLICE_LIT("at"))) {
            bson_append_iter(&made, slice_eq(name, SLICE_LIT("id")) ? "_key" : NULL, -1, &it);
        }
    }
    bson_append_int64(&made, "at", -1, now_ms);
    *stored_out = arena_copy(o->arena, slice_of(bson_get_data(&made), made.len));
    bson_destroy(&made);
    return OK;
}

static err row_of_id(op *o, const container *in, slice id, slice *row_out) {
    slice body = harness_bson(&h, arena_printf(o->arena, "{\"_key\":\"%.*s\"}%c", (int)id.n, id.p, 0).p);
    return id.n ? row_of(o, o->arena, &in->row, body, row_out) : op_fail(o, E_BAD_REQUEST, "empty");
}

static const item_owner sample = {.api = "sample", .adopt = adopt, .row_of_id = row_of_id};

static container *make(const char *name, const char *api) {
    container_creation made = {
        .database = harness_name("d"),
        .settings = harness_bson(&h, arena_printf(&h.arena, "{\"id\":\"%s\"," KEY "}%c", name, 0).p),
        .rows = harness_bson(&h, "{\"key\":[{\"path\":\"/_key\"}]}"),
        .api = slice_str(api),
    };
    assert_int_equal(harness_change(&h, &made, account_create_container), OK);
    return made.container_out;
}

static int set_up(void **state) {
    (void)state;
    item_owner_register(&sample);
    item_owner_register(&sample); /* again: nothing happens */
    harness_open(&h);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    owned = make("owned", "sample");
    unowned = make("unowned", "other");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(owned);
    container_give(unowned);
    harness_close(&h);
    return 0;
}

/* ---- helpers ---- */

/* A write as the SQL API prepares it, at the time `ms`. */
static err prepare(item_op *o, container *c, item_kind kind, const char *id, const char *text, int64_t ms) {
    pkey *header = arena_new(&h.arena, pkey);
    *o = (item_op){.kind = kind, .foreign_ms = ms};
    op_init(&o->op, &h.arena, harness_now_s(&h));
    TRY(pkey_parse(&o->op, SLICE_LIT(A), header));
    TRY(id ? item_row_of_id(&o->op, c, slice_str(id), &o->key.row) : OK);
    if (kind == ITEM_CREATE || kind == ITEM_UPSERT || kind == ITEM_REPLACE) {
        o->body = harness_bson(&h, text);
        return item_check_body(&o->op, c, header, o);
    }
    if (kind == ITEM_EDIT) {
        o->edit = (item_edit){.kind = ITEM_EDIT_PATCH, .argument = harness_bson(&h, text)};
    }
    return item_check_key(&o->op, c, header, o->key.row, &o->key);
}

static err write_one(item_op *o, item_kind kind, const char *id, const char *text, int64_t ms) {
    TRY(prepare(o, owned, kind, id, text, ms));
    err code = harness_commit(&h, owned, o, 1, true);
    return code != OK ? code : o->code;
}

static const char *text_of(slice body) {
    buf text = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text, body);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

static const char *stored(const char *id) {
    item_op o;
    assert_int_equal(write_one(&o, ITEM_READ, id, NULL, 0), OK);
    return text_of(o.result);
}

/* ---- tests ---- */

static void whole_bodies_are_adopted(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(write_one(&o, ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}", 5), OK);
    assert_string_equal(stored("1"), "{\"_key\":\"1\",\"pk\":\"a\",\"n\":1,\"at\":5}");
    assert_int_equal(write_one(&o, ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":2}", 6), OK);
    assert_int_equal(write_one(&o, ITEM_REPLACE, "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":3}", 7), OK);
    assert_string_equal(text_of(o.result), "{\"_key\":\"1\",\"pk\":\"a\",\"n\":3,\"at\":7}");
    assert_int_equal(write_one(&o, ITEM_CREATE, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"bad\":1}", 8), E_BAD_REQUEST);
    assert_string_equal(o.op.detail, "no 'bad' here");
    assert_int_equal(write_one(&o, ITEM_REPLACE, "1", "{\"id\":\"2\",\"pk\":\"a\"}", 9), E_BAD_REQUEST);
    assert_int_equal(write_one(&o, ITEM_DELETE, "1", NULL, 10), OK);
    assert_int_equal(write_one(&o, ITEM_READ, "1", NULL, 0), E_NOT_FOUND);
    assert_int_equal(write_one(&o, ITEM_DELETE, "", NULL, 11), E_BAD_REQUEST);
}

/* Without the mark the body is the owner's own, and is stored as it is. */
static void own_writes_are_left_alone(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(write_one(&o, ITEM_CREATE, NULL, "{\"_key\":\"own\",\"pk\":\"a\",\"bad\":1}", 0), OK);
    assert_string_equal(stored("own"), "{\"_key\":\"own\",\"pk\":\"a\",\"bad\":1}");
    assert_int_equal(write_one(&o, ITEM_EDIT, "own", "[{\"op\":\"set\",\"path\":\"/bad\",\"value\":2}]", 0), OK);
    assert_string_equal(stored("own"), "{\"_key\":\"own\",\"pk\":\"a\",\"bad\":2}");
    assert_int_equal(write_one(&o, ITEM_EDIT, "own", "[{\"op\":\"set\",\"path\":\"/bad\",\"value\":3}]", 1), E_BAD_REQUEST);
}

/* Short edits run on the committer, long ones outside; both results are adopted. */
static void results_of_edits_are_adopted(void **state) {
    (void)state;
    item_op o;
    size_t n = LIMIT_EDIT_BYTES;
    char *large = arena_alloc(&h.arena, n + 100);
    int head = snprintf(large, n, "{\"id\":\"large\",\"pk\":\"a\",\"t\":\"");
    memset(large + head, 'x', n);
    strcpy(large + head + n, "\"}");
    assert_int_equal(write_one(&o, ITEM_CREATE, NULL, "{\"id\":\"small\",\"pk\":\"a\"}", 1), OK);
    assert_int_equal(write_one(&o, ITEM_CREATE, NULL, large, 1), OK);
    for (int i = 0; i < 2; i++) {
        const char *id = i ? "large" : "small";
        assert_int_equal(write_one(&o, ITEM_EDIT, id, "[{\"op\":\"set\",\"path\":\"/n\",\"value\":4}]", 20), OK);
        assert_non_null(strstr(stored(id), "\"n\":4,\"at\":20"));
        assert_int_equal(write_one(&o, ITEM_EDIT, id, "[{\"op\":\"set\",\"path\":\"/bad\",\"value\":1}]", 30), E_BAD_REQUEST);
        assert_string_equal(o.op.detail, "no 'bad' here");
        assert_null(strstr(stored(id), "bad"));
    }
}

static void transactions_adopt_too(void **state) {
    (void)state;
    item_op o, edit;
    item_transaction_ask ask = {.items = harness_items(&h)};
    item_transaction *t = item_transaction_begin(&ask);
    assert_int_equal(prepare(&o, owned, ITEM_CREATE, NULL, "{\"id\":\"t\",\"pk\":\"a\"}", 40), OK);
    assert_int_equal(item_transaction_write(t, harness_op(&h), owned, &o), OK);
    assert_int_equal(prepare(&edit, owned, ITEM_EDIT, "t", "[{\"op\":\"set\",\"path\":\"/n\",\"value\":1}]", 50), OK);
    assert_int_equal(item_transaction_write(t, harness_op(&h), owned, &edit), OK);
    assert_string_equal(text_of(edit.result), "{\"_key\":\"t\",\"pk\":\"a\",\"n\":1,\"at\":50}");
    item_transaction_end(t);
}

static void containers_without_an_owner_are_refused(void **state) {
    (void)state;
    item_op o;
    assert_null(item_owner_of(unowned));
    assert_int_equal(prepare(&o, unowned, ITEM_CREATE, NULL, "{\"_key\":\"1\",\"pk\":\"a\"}", 5), E_FORBIDDEN);
    assert_non_null(strstr(o.op.detail, "other API"));
    slice row;
    assert_int_equal(item_row_of_id(&o.op, unowned, SLICE_LIT("1"), &row), OK);
    assert_true(slice_eq(row, SLICE_LIT("1")));
}

static void extended_json_becomes_typed_values(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"d\":{\"$date\":\"2024-05-17T08:21:45Z\"},\"in\":{\"list\":[1,{\"$oid\":\"0123456789abcdef01234567\"}]},\"$\":\"$\"}",
        "{\"b\":{\"$binary\":{\"base64\":\"AQID\",\"subType\":\"00\"}}}",
    };
    for (size_t i = 0; i < 2; i++) {
        slice plain = harness_bson(&h, texts[i]), typed;
        h.extended = true;
        slice expected = harness_bson(&h, texts[i]);
        h.extended = false;
        assert_int_equal(query_typed_body(harness_op(&h), plain, &typed), OK);
        assert_true(slice_eq(typed, expected));
    }
    slice kept[] = {harness_bson(&h, "{\"a\":1,\"b\":[{}]}"),
                    harness_bson(&h, "{\"a\":{\"$date\":\"tomorrow\"},\"b\":{\"$oid\":5},\"c\":{\"$x\":[]}}")};
    for (size_t i = 0; i < 2; i++) {
        slice typed;
        assert_int_equal(query_typed_body(harness_op(&h), kept[i], &typed), OK);
        assert_true(slice_eq(typed, kept[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_bodies_are_adopted),
        cmocka_unit_test(own_writes_are_left_alone),
        cmocka_unit_test(results_of_edits_are_adopted),
        cmocka_unit_test(transactions_adopt_too),
        cmocka_unit_test(containers_without_an_owner_are_refused),
        cmocka_unit_test(extended_json_becomes_typed_values),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
