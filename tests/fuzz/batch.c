/* A batch or bulk body is rejected or run. An atomic one is all or nothing, and every write that was acknowledged is in the store. The
 * first byte chooses the container, the header key and whether the batch is atomic; the rest is the body. */
#include "world.h"

#include "api/sql/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool read_list(harness *h, slice text, slice *list_out) {
    buf bson = buf_init(1 << 20);
    json_root root;
    bool good = json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_ARRAY;
    *list_out = arena_copy(&h->arena, buf_view(&bson));
    buf_free(&bson);
    return good;
}

/* Where the operation leaves its item: a replace may rename it. */
static item_key key_after(const item_op *one) {
    item_key key = one->key;
    key.row = one->row_after.n ? one->row_after : key.row;
    return key;
}

static bool is_same(const item_key *a, const item_key *b) {
    return slice_eq(a->row, b->row) && epk_cmp(&a->epk, &b->epk) == 0;
}

static bool is_written_later(const item_key *key, const item_op *ops, size_t i, size_t n) {
    for (size_t j = i + 1; j < n; j++) {
        item_key after = key_after(&ops[j]);
        if (ops[j].code == OK && ops[j].kind != ITEM_READ && (is_same(key, &ops[j].key) || is_same(key, &after))) {
            return true;
        }
    }
    return false;
}

/* Each operation's result must match the store, unless a later operation changed the same item again. */
static void check_results(world *w, const item_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        item_key after = key_after(&ops[i]);
        bool there = ops[i].kind != ITEM_DELETE, renamed = !is_same(&after, &ops[i].key);
        if (ops[i].code == OK && there && !is_written_later(&after, ops, i, n)) {
            world_expect(w, &after, ops[i].result);
        }
        if (ops[i].code == OK && (!there || renamed) && !is_written_later(&ops[i].key, ops, i, n)) {
            world_expect_absent(w, &ops[i].key);
        }
    }
}

/* Dumps all items and all entries that refer to them. */
static buf dump_items(store *s) {
    buf out = buf_init(BUF_NO_LIMIT);
    dump_family(s, STORE_ITEMS, NULL, SLICE_EMPTY, SLICE_EMPTY, false, &out);
    dump_family(s, STORE_INDEX, NULL, SLICE_EMPTY, SLICE_EMPTY, false, &out);
    return out;
}

static void run(world *w, item_op *ops, size_t n, bool atomic) {
    bool refused = false;
    for (size_t i = 0; i < n; i++) {
        refused = refused || ops[i].code != OK;
        assert_true(ops[i].code == OK || err_lookup(ops[i].code)->http_status < 500);
    }
    if (atomic && refused) {
        return; /* was not run */
    }
    buf before = dump_items(w->h.store);
    err code = harness_commit(&w->h, w->c, ops, n, atomic);
    assert_true(atomic || code == OK);
    if (code != OK) {
        buf after = dump_items(w->h.store);
        assert_true(slice_eq(buf_view(&before), buf_view(&after)));
        buf_free(&after);
    } else {
        check_results(w, ops, n);
    }
    buf_free(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const keys[] = {NULL, "[\"a\"]", "[]", "[\"a\",1]", "[{}]"};
    world w;
    slice list;
    item_op *ops;
    size_t count;
    pkey header;
    if (n < 2) {
        return 0;
    }
    const char *key = keys[data[0] / 16 % 8 % 5];
    world_open(&w, data[0] % 8);
    op *o = harness_op(&w.h);
    sql_batch_target target = {.container = w.c, .atomic = data[0] & 8};
    if (key) {
        assert_int_equal(pkey_parse(o, slice_str(key), &header), OK);
        target.key = &header;
    }
    bool runs = !target.atomic || target.key || w.c->key.n == 0; /* as the front end decides */
    if (runs && read_list(&w.h, slice_of(data + 1, n - 1), &list) && sql_batch_read(o, &target, list, &ops, &count) == OK) {
        assert_true(count <= LIMIT_BATCH_OPERATIONS && (count > 0 || !target.atomic));
        if (count > 0) {
            run(&w, ops, count, target.atomic);
        }
    }
    world_close(&w, data[0] & 128);
    return 0;
}
