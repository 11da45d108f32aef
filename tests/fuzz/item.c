/* Items: a small program with one step per line, run on a container that the first byte chooses.
 *
 *   c{…} u{…}      create, upsert                r{…}           replace the item with the body's id and key
 *   d{…}           delete that item              p{…}[…]        patch that item
 *   t9             nine seconds pass, then a sweep
 *   f              the feed, in pages of three
 *
 * Every written item reads back unchanged, expired items are gone, and the store is consistent at the end. */
#include <sched.h>

#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool bson_of(harness *h, slice text, json_root wanted, slice *bson_out) {
    static const slice system[] = {SLICE_LIT("_rid"), SLICE_LIT("_self"), SLICE_LIT("_etag"), SLICE_LIT("_ts")};
    json_options options = {.drop = system, .drop_n = 4};
    buf bson = buf_init(1 << 20);
    json_root root;
    bool good = json_to_bson(text, &options, &bson, &root, NULL) == OK && root == wanted;
    *bson_out = arena_copy(&h->arena, buf_view(&bson));
    buf_free(&bson);
    return good;
}

/* Prepares an operation on the item that the body names; false: the body names none. */
static bool prepare(world *w, item_op *o, item_kind kind, slice text) {
    bson_iter_t it;
    *o = (item_op){.kind = kind == ITEM_REPLACE ? ITEM_UPSERT : kind};
    op_init(&o->op, &w->h.arena, harness_now_s(&w->h));
    if (!bson_of(&w->h, text, JSON_OBJECT, &o->body) || item_check_body(&o->op, w->c, NULL, o) != OK) {
        return false;
    }
    assert_true(doc_find_key(o->body, SLICE_LIT("id"), &it) && slice_eq(doc_text(&it), o->key.row));
    o->kind = kind;
    return true;
}

static void write_item(world *w, item_kind kind, slice text) {
    item_op o;
    if (!prepare(w, &o, kind, text)) {
        return;
    }
    err code = harness_commit(&w->h, w->c, &o, 1, true);
    if (code == OK && kind == ITEM_DELETE) {
        world_expect_absent(w, &o.key);
    } else if (code == OK) {
        assert_true(slice_eq(o.result, o.body) && o.op.charge_ru > 4);
        world_expect(w, &o.key, o.body);
    } else {
        assert_true(code == E_CONFLICT || code == E_NOT_FOUND || code == E_UNIQUE_KEY);
    }
}

/* The body ends where the patch begins: at the last '['. */
static void patch_item(world *w, slice text) {
    const char *at = memrchr(text.p, '[', text.n);
    item_op o;
    slice request;
    if (!at || !prepare(w, &o, ITEM_DELETE, slice_of(text.p, (size_t)(at - text.p)))) {
        return;
    }
    o.kind = ITEM_EDIT;
    if (!bson_of(&w->h, slice_skip(text, (size_t)(at - text.p)), JSON_ARRAY, &request)) {
        return;
    }
    o.edit = (item_edit){.kind = ITEM_EDIT_PATCH, .argument = request};
    if (item_edit_make_ready(&o.op, w->c, &o) != OK) {
        return;
    }
    err code = harness_commit(&w->h, w->c, &o, 1, true);
    assert_true(code == OK || err_lookup(code)->http_status < 500);
    if (code == OK) {
        world_expect(w, &o.key, o.result);
    }
}

static void pass_time(world *w, slice text) {
    uint64_t seconds = 0;
    atomic_uint in_flight = 0;
    slice_to_u64(slice_of(text.p, text.n < 6 ? text.n : 6), &seconds);
    clock_manual_advance(&w->h.clock, (int64_t)seconds * 1000);
    item_sweep(harness_items(&w->h), w->c, 3, &in_flight);
    while (in_flight) {
        sched_yield();
    }
}

static void run_line(world *w, slice line) {
    slice rest = slice_skip(line, 1);
    switch (line.p[0]) {
    case 'c':
        write_item(w, ITEM_CREATE, rest);
        break;
    case 'u':
        write_item(w, ITEM_UPSERT, rest);
        break;
    case 'r':
        write_item(w, ITEM_REPLACE, rest);
        break;
    case 'd':
        write_item(w, ITEM_DELETE, rest);
        break;
    case 'p':
        patch_item(w, rest);
        break;
    case 't':
        pass_time(w, rest);
        break;
    case 'f':
        harness_feed(&w->h, w->c, NULL, 3, 1000);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    world w;
    if (n < 2) {
        return 0;
    }
    world_open(&w, data[0] % 128 % WORLD_KINDS);
    slice input = slice_of(data + 1, n - 1);
    for (int lines = 0; input.n && lines < 40; lines++) {
        const char *end = memchr(input.p, '\n', input.n);
        slice line = slice_of(input.p, end ? (size_t)(end - input.p) : input.n);
        if (line.n) {
            run_line(&w, line);
        }
        input = slice_skip(input, line.n + 1);
    }
    world_close(&w, data[0] & 128);
    return 0;
}
