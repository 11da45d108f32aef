/* Rows in key order, on in-memory stores and on RocksDB: bounds, directions, pages and cursors, against a model, through splits, merges,
 * moves, deletes, expiry and restarts; with a failing store; with forged cursors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>
#include <cmocka.h>

#include "item/rows.h"
#include "item_harness.h"
#include "rounds.h"

#define TYPED_KEY "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":-1}"

static const char *const kinds[] = {
    "{\"typed\":true,\"key\":[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}]}",
    "{\"typed\":true,\"key\":[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}],\"clustered\":true}",
};
enum { KINDS = sizeof kinds / sizeof *kinds, PARTS = 5, AS = 6, BS = 8 };

static harness h;
static container *c;
static char *folder;

static void renew(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void open_with(const char *rows, bool on_disk) {
    folder = on_disk ? make_folder() : NULL;
    harness_open_on(&h, on_disk ? open_rocks(folder) : store_open_memory());
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(harness_create_rows(&h, "d", TYPED_KEY, rows, &c), OK);
}

static void close_all(void) {
    container_give(c);
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
    }
}

/* ---- the model: rows (part, a, b), some with an expiry time ---- */

typedef struct row {
    bool there;
    int64_t until_s; /* 0: never expires */
    int value;
} row;
static row model[PARTS][AS][BS];

static const int64_t first_key = ((int64_t)1 << 53) + 1; /* at this size doubles represent only every other integer */

static bool is_there(const row *r) {
    return r->there && (r->until_s == 0 || r->until_s > harness_now_s(&h));
}

/* Equal numbers are written in different types. */
static bson_t *body_of(int part, int a, int b, int value, int ttl) {
    bson_t *body = BCON_NEW("v", BCON_INT32(value), "pk", BCON_INT64(first_key + part));
    if (value % 2) {
        BSON_APPEND_INT32(body, "a", a);
        BSON_APPEND_DOUBLE(body, "b", b);
    } else {
        bson_decimal128_t decimal;
        char text[16];
        snprintf(text, sizeof text, "%d.0", a);
        assert_true(bson_decimal128_from_string(text, &decimal));
        BSON_APPEND_DECIMAL128(body, "a", &decimal);
        BSON_APPEND_INT64(body, "b", b);
    }
    if (ttl) {
        BSON_APPEND_INT32(body, "ttl", ttl);
    }
    return body;
}

static err write_row(item_kind kind, int part, int a, int b, int value, int ttl) {
    item_op o;
    bson_t *body = body_of(part, a, b, value, ttl);
    err code = harness_prepare_bson(&h, c, &o, kind, body);
    code = code == OK ? harness_commit(&h, c, &o, 1, true) : code;
    bson_destroy(body);
    return code;
}

static void put(int part, int a, int b, int value, int ttl) {
    assert_int_equal(write_row(ITEM_UPSERT, part, a, b, value, ttl), OK);
    model[part][a][b] = (row){true, ttl ? harness_now_s(&h) + ttl : 0, value};
}

static void drop(int part, int a, int b) {
    assert_int_equal(write_row(ITEM_DELETE, part, a, b, 0, 0), is_there(&model[part][a][b]) ? OK : E_NOT_FOUND);
    model[part][a][b].there = false;
}

static item_key key_of(int part) {
    item_op o;
    bson_t *body = body_of(part, 0, 0, 0, 0);
    assert_int_equal(harness_prepare_bson(&h, c, &o, ITEM_UPSERT, body), OK);
    bson_destroy(body);
    return o.key;
}

/* ---- reading ---- */

typedef struct seen {
    int list[2 * PARTS * AS * BS][4];
    size_t n, refuse_at; /* the visitor rejects the row after this many; 0: never */
} seen;

static int number_in(slice body, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(body, slice_str(name), &it));
    if (BSON_ITER_HOLDS_DECIMAL128(&it)) {
        bson_decimal128_t decimal;
        char text[BSON_DECIMAL128_STRING];
        bson_iter_decimal128(&it, &decimal);
        bson_decimal128_to_string(&decimal, text);
        return atoi(text);
    }
    return (int)(strcmp(name, "pk") == 0 ? bson_iter_int64(&it) - first_key : (int64_t)bson_iter_as_double(&it));
}

static bool see(void *context, const item_found *found) {
    seen *s = context;
    static const char *const names[] = {"pk", "a", "b", "v"};
    if (s->refuse_at && s->n == s->refuse_at) {
        return false;
    }
    assert_true(s->n < sizeof s->list / sizeof *s->list);
    for (size_t i = 0; i < 4; i++) {
        s->list[s->n][i] = number_in(found->body, names[i]);
    }
    s->n++;
    return true;
}

/* Reads all pages of the request, and calls `between` after each. */
static void read_all(const item_rows_ask *ask, seen *s, void (*between)(void)) {
    item_rows_cursor cursor = {0};
    item_rows_page page;
    size_t pages = 0;
    s->n = 0;
    do {
        op *o = harness_op(&h);
        size_t before = s->n;
        assert_int_equal(item_rows_read(harness_items(&h), o, c, ask, &cursor, see, s, &page), OK);
        assert_int_equal(page.rows, s->n - before);
        assert_true(ask->rows_max == 0 || page.rows <= ask->rows_max);
        assert_true(o->charge_ru > 0);
        assert_true(++pages < 3000);
        cursor.place = arena_copy(&h.arena, cursor.place);
        if (between) {
            between();
        }
    } while (!cursor.ended);
}

/* Bounds on (a, b) for the rows of a partition, each with 0, 1 or 2 values. */
typedef struct limits {
    int from[2], to[2];
    size_t from_n, to_n;
    bool from_open, to_open;
} limits;

static int order_of(int a, int b, const int *bound, size_t n) {
    return n == 0 ? 0 : a != bound[0] ? (a < bound[0] ? -1 : 1) : n == 1 || b == bound[1] ? 0 : b > bound[1] ? -1 : 1;
}

static bool within(const limits *l, int a, int b) {
    int low = order_of(a, b, l->from, l->from_n), high = order_of(a, b, l->to, l->to_n);
    bool above = l->from_n == 0 || (l->from_open ? low > 0 : low >= 0);
    return above && (l->to_n == 0 || (l->to_open ? high < 0 : high <= 0));
}

static void expect_partition(int part, const limits *l, seen *s) {
    for (int a = 0; a < AS; a++) {
        for (int b = BS - 1; b >= 0; b--) {
            const row *r = &model[part][a][b];
            if (is_there(r) && (!l || within(l, a, b))) {
                int *to = s->list[s->n++];
                to[0] = part, to[1] = a, to[2] = b, to[3] = r->value;
            }
        }
    }
}

static void reverse(seen *s) {
    for (size_t i = 0; i < s->n / 2; i++) {
        int other[4];
        memcpy(other, s->list[i], sizeof other);
        memcpy(s->list[i], s->list[s->n - 1 - i], sizeof other);
        memcpy(s->list[s->n - 1 - i], other, sizeof other);
    }
}

static void assert_same(const seen *got, seen *wanted, bool backward) {
    if (backward) {
        reverse(wanted);
    }
    assert_int_equal(got->n, wanted->n);
    assert_memory_equal(got->list, wanted->list, got->n * sizeof *got->list);
}

static slice spelled(const int *values, size_t n) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < n; i++) {
        char bytes[4];
        doc_store_i32(bytes, values[i]);
        row_add(&out, &c->row, i, &(doc_element){.type = BSON_TYPE_INT32, .value = slice_of(bytes, 4)});
    }
    slice prefix = arena_copy(&h.arena, buf_view(&out));
    buf_free(&out);
    return prefix;
}

static void check_partition(int part, const limits *l, bool backward, size_t rows_max, size_t steps_max, void (*between)(void)) {
    static seen got, wanted;
    item_key key = key_of(part);
    item_rows_ask ask = item_rows_ask_partition(&key);
    ask.backward = backward;
    ask.rows_max = rows_max;
    ask.steps_max = steps_max;
    ask.from = (item_row_bound){l->from_n > 0, spelled(l->from, l->from_n), l->from_open};
    ask.to = (item_row_bound){l->to_n > 0, spelled(l->to, l->to_n), l->to_open};
    got.refuse_at = 0;
    read_all(&ask, &got, between);
    wanted.n = 0;
    expect_partition(part, l, &wanted);
    assert_same(&got, &wanted, backward);
}

static int by_hash(const void *a, const void *b) {
    item_key x = key_of(*(const int *)a), y = key_of(*(const int *)b);
    return epk_cmp(&x.epk, &y.epk);
}

/* Checks the whole container, or its part in [min, max). */
static void check_space(epk min, epk max, bool backward, size_t rows_max, size_t steps_max, void (*between)(void)) {
    static seen got, wanted;
    int parts[PARTS];
    item_rows_ask ask = item_rows_ask_space(min, max);
    ask.backward = backward;
    ask.rows_max = rows_max;
    ask.steps_max = steps_max;
    got.refuse_at = 0;
    read_all(&ask, &got, between);
    wanted.n = 0;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = i;
    }
    qsort(parts, PARTS, sizeof *parts, by_hash);
    for (int i = 0; i < PARTS; i++) {
        item_key key = key_of(parts[i]);
        if (epk_cmp(&min, &key.epk) <= 0 && epk_cmp(&key.epk, &max) < 0) {
            expect_partition(parts[i], NULL, &wanted);
        }
    }
    assert_same(&got, &wanted, backward);
}

/* ---- random lives ---- */

static random_source dice;

static uint32_t range_id(uint32_t i) {
    return c->space->newest->map->ranges[i].id;
}

static void reshape(void) {
    uint32_t n = (uint32_t)c->space->newest->map->n;
    if (n < 4 && random_below(&dice, 2)) {
        err code = account_split(h.account, harness_op(&h), c, range_id((uint32_t)random_below(&dice, n)), 2);
        assert_true(code == OK || code == E_BAD_REQUEST || code == E_CONFLICT);
    } else if (n > 1) {
        uint32_t i = (uint32_t)random_below(&dice, n - 1);
        assert_int_equal(account_merge(h.account, harness_op(&h), c, range_id(i), range_id(i + 1)), OK);
    }
    renew();
    harness_move(&h, c, 1 + (unsigned)random_below(&dice, 20));
    renew();
}

static void reshape_sometimes(void) {
    if (random_below(&dice, 12) == 0) {
        reshape();
    }
}

static void sweep(void) {
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), c, 50, &in_flight);
    while (atomic_load(&in_flight)) {
        usleep(100);
    }
}

static void one_step(void) {
    int part = (int)random_below(&dice, PARTS), a = (int)random_below(&dice, AS), b = (int)random_below(&dice, BS);
    switch (random_below(&dice, 20)) {
    case 0:
        reshape();
        break;
    case 1:
        clock_manual_advance(&h.clock, 1000 * (int64_t)random_below(&dice, 10));
        break;
    case 2:
        sweep();
        break;
    case 3:
        container_give(c);
        harness_restart(&h);
        c = harness_found(&h, "d", "c");
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        drop(part, a, b);
        break;
    default:
        put(part, a, b, (int)random_below(&dice, 1000), random_below(&dice, 4) ? 0 : 1 + (int)random_below(&dice, 30));
    }
}

static limits random_limits(void) {
    return (limits){{(int)random_below(&dice, AS), (int)random_below(&dice, BS)},
                    {(int)random_below(&dice, AS), (int)random_below(&dice, BS)},
                    random_below(&dice, 3),
                    random_below(&dice, 3),
                    random_below(&dice, 2),
                    random_below(&dice, 2)};
}

static void check_some(void) {
    limits l = random_limits();
    size_t rows_max = random_below(&dice, 2) * (1 + random_below(&dice, 5));
    size_t steps_max = random_below(&dice, 2) ? 1 + random_below(&dice, 5) : 1000;
    item_key one = key_of((int)random_below(&dice, PARTS)), other = key_of((int)random_below(&dice, PARTS));
    check_partition((int)random_below(&dice, PARTS), &l, random_below(&dice, 2), rows_max, steps_max, reshape_sometimes);
    check_space(epk_min(), epk_max(), random_below(&dice, 2), rows_max, steps_max, reshape_sometimes);
    check_space(one.epk, other.epk, random_below(&dice, 2), rows_max, 1000, NULL);
}

static void live(const char *rows, bool on_disk, uint64_t seed, int steps) {
    random_seed(&dice, seed);
    memset(model, 0, sizeof model);
    open_with(rows, on_disk);
    for (int i = 0; i < steps; i++) {
        one_step();
        if (i % 25 == 24) {
            check_some();
        }
        if (i % 100 == 99) {
            harness_check(&h, c);
        }
    }
    harness_check(&h, c);
    close_all();
}

static void rows_of_random_lives_come_in_order(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (uint64_t seed = 1; seed <= ROUNDS(4); seed++) {
            live(kinds[kind], false, seed, 600);
        }
        live(kinds[kind], true, 99, ROUNDS(300));
    }
}

/* ---- single rules ---- */

static void fill(void) {
    memset(model, 0, sizeof model);
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < AS * BS; i++) {
            int at = i * 11 % (AS * BS); /* not in key order */
            put(part, at / BS, at % BS, part + i, 0);
        }
    }
}

static void bounds_are_of_prefixes(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        open_with(kinds[kind], false);
        fill();
        for (unsigned i = 0; i < 3 * 3 * 4; i++) {
            limits l = {{2, 5}, {4, 3}, i % 3, i / 3 % 3, i / 9 % 2, i / 18};
            check_partition(1, &l, false, 0, 1000, NULL);
            check_partition(1, &l, true, 7, 1000, NULL);
        }
        limits nothing = {{4, 0}, {2, 0}, 1, 1, false, false}; /* the lower bound is above the upper one */
        check_partition(1, &nothing, false, 0, 1000, NULL);
        check_partition(1, &nothing, true, 0, 1000, NULL);
        close_all();
    }
}

static void a_refused_row_comes_first_on_the_next_page(void **state) {
    (void)state;
    static seen got;
    open_with(kinds[0], false);
    fill();
    item_key key = key_of(2);
    item_rows_ask ask = item_rows_ask_partition(&key);
    item_rows_cursor cursor = {0};
    item_rows_page page;
    got = (seen){.refuse_at = 10};
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page), OK);
    assert_false(cursor.ended);
    assert_int_equal(page.rows, 10);
    got.refuse_at = 0;
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page), OK);
    assert_true(cursor.ended);
    assert_int_equal(got.n, AS * BS);
    close_all();
}

/* A cursor is a position after a row, whether or not that row still exists. */
static void a_cursor_outlives_its_row(void **state) {
    (void)state;
    static seen got;
    open_with(kinds[0], false);
    fill();
    item_key key = key_of(2);
    item_rows_ask ask = item_rows_ask_partition(&key);
    ask.rows_max = 5;
    item_rows_cursor cursor = {0};
    item_rows_page page;
    got = (seen){0};
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page), OK);
    drop(2, got.list[4][1], got.list[4][2]);
    ask.rows_max = 1;
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page), OK);
    assert_int_equal(got.list[5][1], 0);
    assert_int_equal(got.list[5][2], got.list[4][2] - 1);
    close_all();
}

static void cursors_of_others_are_refused(void **state) {
    (void)state;
    static seen got;
    open_with(kinds[0], false);
    fill();
    item_key key = key_of(2), other = key_of(3);
    item_rows_ask ask = item_rows_ask_partition(&key), asks_other = item_rows_ask_partition(&other);
    ask.rows_max = 5;
    item_rows_cursor cursor = {0};
    item_rows_page page;
    got = (seen){0};
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page), OK);
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &asks_other, &cursor, see, &got, &page), E_BAD_CONTINUATION);
    random_seed(&dice, 7);
    static char bytes[20000];
    for (int i = 0; i < 2000; i++) { /* random bytes: an error, or rows within the request */
        size_t n = 1 + random_below(&dice, i % 10 ? 80 : sizeof bytes);
        for (size_t j = 0; j < n; j++) {
            bytes[j] = (char)random_below(&dice, 256);
        }
        bytes[0] = (char)(random_below(&dice, 4) ? 1 : bytes[0]);
        item_rows_ask all = item_rows_ask_space(epk_min(), epk_max());
        cursor = (item_rows_cursor){.place = slice_of(bytes, n)};
        got.n = 0;
        err code = item_rows_read(harness_items(&h), harness_op(&h), c, &all, &cursor, see, &got, &page);
        assert_true(code == OK || code == E_BAD_CONTINUATION);
    }
    close_all();
}

static void a_share_that_is_spent_ends_the_page(void **state) {
    (void)state;
    static seen got;
    open_with(kinds[0], false);
    fill();
    close_all();
    harness_open(&h);
    h.rules = (account_rules){.range_throughput = 1000};
    harness_restart(&h);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(harness_create_rows(&h, "d", TYPED_KEY, kinds[0], &c), OK);
    put(1, 1, 1, 1, 0);
    item_key key = key_of(1);
    item_rows_ask ask = item_rows_ask_partition(&key);
    item_rows_page page;
    err code = OK;
    for (int i = 0; i < 10000 && code == OK; i++) {
        item_rows_cursor cursor = {0};
        got = (seen){0};
        code = item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page);
    }
    assert_int_equal(code, E_THROTTLED);
    folder = NULL;
    close_all();
}

/* The store fails at its first, second, third … call: the page fails, or is right. */
static void a_failing_store_is_an_error(void **state) {
    (void)state;
    static seen got, wanted;
    for (size_t kind = 0; kind < KINDS; kind++) {
        open_with(kinds[kind], false);
        h.uncached = true;
        fill();
        container_give(c);
        harness_restart(&h);
        c = harness_found(&h, "d", "c");
        item_key key = key_of(2);
        item_rows_ask ask = item_rows_ask_partition(&key);
        wanted.n = 0;
        expect_partition(2, NULL, &wanted);
        for (unsigned what = 0; what < 2; what++) {
            for (unsigned n = 1; n < 1000; n++) {
                item_rows_cursor cursor = {0};
                item_rows_page page;
                got = (seen){0};
                h.plan.fired = 0;
                *(what ? &h.plan.scan_in : &h.plan.get_in) = n;
                err code = item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, &got, &page);
                unsigned fired = h.plan.fired;
                h.plan.get_in = h.plan.scan_in = 0;
                assert_int_equal(code, fired ? E_STORE_IO : OK);
                if (!fired) {
                    assert_same(&got, &wanted, false);
                    break;
                }
            }
        }
        close_all();
    }
}

/* ---- ids of the SQL API are rows too, in the order of their bytes ---- */

typedef struct run {
    size_t n;
    bool backward;
    layout_key last;
} run;

static bool in_order(void *context, const item_found *found) {
    run *r = context;
    layout_key k;
    item_key key;
    assert_int_equal(item__key_of(c, &h.arena, found->body, &key), OK);
    layout_primary(&k, c->space->container, &key.epk, &key.partition, key.row);
    int order = r->n ? slice_cmp(layout_view(&r->last), layout_view(&k)) : 0;
    assert_true(r->n == 0 || (r->backward ? order > 0 : order < 0));
    layout_copy(&r->last, &k);
    r->n++;
    return true;
}

static void fill_ids(void) {
    static const char *const ids[] = {"b", "a", "ab", "é", "B", "a b"};
    static const char *const keys[] = {"\"x\"", "\"y\"", "7", "null", "true", "\"\"", "-0.5"};
    static char long_key[153];
    memset(long_key, 'k', 152);
    long_key[0] = long_key[151] = '"';
    for (size_t k = 0; k < 8; k++) {
        for (size_t i = 0; i < 6; i++) {
            slice body = arena_printf(&h.arena, "{\"id\":\"%s%zu\",\"pk\":%s,\"q\":%zu}", ids[i], k, k < 7 ? keys[k] : long_key, i % 2);
            assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, arena_text(&h.arena, body)), OK);
        }
    }
}

static void ids_come_in_the_order_of_bytes(void **state) {
    (void)state;
    static const char *const definitions[] = {
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":1}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\",\"/q\"],\"kind\":\"MultiHash\",\"version\":2}}",
        "{\"id\":\"c\"}",
    };
    harness_open(&h);
    for (size_t d = 0; d < sizeof definitions / sizeof *definitions; d++) {
        c = harness_container(&h, definitions[d], 0);
        fill_ids();
        for (int i = 0; i < 4; i++) {
            item_rows_ask ask = item_rows_ask_space(epk_min(), epk_max());
            item_rows_cursor cursor = {0};
            item_rows_page page;
            run r = {.backward = ask.backward = i % 2};
            ask.rows_max = i < 2 ? 0 : 5;
            while (!cursor.ended) {
                assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, in_order, &r, &page), OK);
            }
            assert_int_equal(r.n, 48);
        }
        container_give(c);
        assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    }
    harness_close(&h);
}

/* ---- number of keys per row ---- */

#define ONE_PATH                                                                                                                           \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/"                                                                                       \
    "pk\"],\"kind\":\"Hash\",\"version\":2},\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/"                                          \
    "v/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}}"

static size_t keys_in(store_family family) {
    slice key, value;
    size_t n = 0;
    store_scan *scan = store_scan_open(h.store, family, NULL, SLICE_EMPTY, SLICE_EMPTY, false);
    while (store_scan_next(scan, &key, &value)) {
        n++;
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

/* The average over 200 rows of one partition, including the partition's size entry and the shapes. */
static size_t keys_of_rows(const char *rows, bool on_disk) {
    enum { ROWS = 200 };
    folder = on_disk ? make_folder() : NULL;
    harness_open_on(&h, on_disk ? open_rocks(folder) : store_open_memory());
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(harness_create_rows(&h, "d", ONE_PATH, rows, &c), OK);
    for (int i = 0; i < ROWS; i++) {
        bson_t *body = body_of(0, i, 0, 1, 0);
        item_op o;
        assert_int_equal(harness_prepare_bson(&h, c, &o, ITEM_CREATE, body), OK);
        assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
        bson_destroy(body);
    }
    harness_check(&h, c);
    size_t all = keys_in(STORE_ITEMS) + keys_in(STORE_INDEX) + keys_in(STORE_TERMS) + keys_in(STORE_VERSIONS);
    close_all();
    return all / ROWS;
}

/* A row of a clustered, lean table with one indexed path: the row itself, the lead by its number, its change entry, and the path's
 * entry. */
static void a_row_of_a_lean_table_has_four_keys(void **state) {
    (void)state;
    static const char lean[] = "{\"typed\":true,\"key\":[{\"path\":\"/a\"},{\"path\":\"/b\"}],\"clustered\":true,\"lean\":true}";
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        size_t by_number = keys_of_rows(kinds[0], on_disk), clustered = keys_of_rows(kinds[1], on_disk);
        assert_int_equal(keys_of_rows(lean, on_disk), 4);
        print_message("keys of a row: by number %zu, clustered %zu, lean 4\n", by_number, clustered);
        assert_true(by_number > clustered && clustered > 4);
    }
}

/* ---- cost of a row ----
 *
 * Counts lookups. With TESELA_ROWS=1000000 in the environment it also measures time, at that size: CPU time of one thread per row, the
 * minimum of several slices. */

enum { SLICE_ROWS = 1000, SLICES = 40, ROWS_PER_COMMIT = 100 };

static double cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void insert_rows(uint32_t n, bool in_order) {
    static item_op ops[ROWS_PER_COMMIT];
    for (uint32_t i = 0; i < n; i += ROWS_PER_COMMIT) {
        for (uint32_t j = 0; j < ROWS_PER_COMMIT; j++) {
            uint32_t a = in_order ? i + j : (uint32_t)((uint64_t)(i + j) * 7368787 % n); /* a prime, so each value occurs once */
            bson_t *body = BCON_NEW("pk", BCON_INT64(first_key), "a", BCON_INT32((int32_t)a), "b", BCON_INT32(0), "text",
                                    "some hundred bytes of an ordinary row, as a reading of a device has them, with a name or two");
            assert_int_equal(harness_prepare_bson(&h, c, &ops[j], ITEM_CREATE, body), OK);
            bson_destroy(body);
        }
        assert_int_equal(harness_commit(&h, c, ops, ROWS_PER_COMMIT, false), OK);
        arena_reset(&h.arena);
    }
}

static bool count_row(void *context, const item_found *found) {
    *(size_t *)context += found->body.n > 0;
    return true;
}

/* By item_rows_read. */
static double slice_cost(uint32_t n) {
    double least = 1e9;
    item_key key = key_of(0);
    for (uint32_t i = 0; i < SLICES; i++) {
        int from = (int)((uint64_t)i * 2654435761u % (n - SLICE_ROWS));
        item_rows_ask ask = item_rows_ask_partition(&key);
        item_rows_cursor cursor = {0};
        item_rows_page page;
        size_t rows = 0;
        ask.from = (item_row_bound){true, spelled(&from, 1), false};
        ask.rows_max = SLICE_ROWS;
        op *o = harness_op(&h);
        double before = cpu_us();
        assert_int_equal(item_rows_read(harness_items(&h), o, c, &ask, &cursor, count_row, &rows, &page), OK);
        double cost = (cpu_us() - before) / SLICE_ROWS;
        least = cost < least ? cost : least;
        assert_int_equal(rows, SLICE_ROWS);
    }
    return least;
}

/* By stepping over the same entries. */
static double iteration_cost(uint32_t n) {
    double least = 1e9;
    item_key key = key_of(0);
    for (uint32_t i = 0; i < SLICES; i++) {
        int from = (int)((uint64_t)i * 2654435761u % (n - SLICE_ROWS));
        layout_key low, high;
        slice k, value;
        size_t rows = 0, bytes = 0;
        layout_primary(&low, c->space->container, &key.epk, &key.partition, spelled(&from, 1));
        layout_primary(&high, c->space->container, &key.epk, &key.partition, SLICE_EMPTY);
        layout_after(&high);
        double before = cpu_us();
        store_scan *scan = store_scan_open(h.store, STORE_INDEX, NULL, layout_view(&low), layout_view(&high), false);
        while (rows < SLICE_ROWS && store_scan_next(scan, &k, &value)) {
            rows++;
            bytes += value.n;
        }
        assert_int_equal(store_scan_close(scan), OK);
        double cost = (cpu_us() - before) / SLICE_ROWS;
        least = cost < least ? cost : least;
        assert_true(rows == SLICE_ROWS && bytes > 0);
    }
    return least;
}

static void a_slice_of_a_clustered_partition_costs_about_an_iteration(void **state) {
    (void)state;
    const char *asked = getenv("TESELA_ROWS");
    uint32_t n = asked ? (uint32_t)atoi(asked) : ROUNDS(20000);
    double in_order, random, clustered, iterated;
    open_with(kinds[0], true);
    h.uncached = true;
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    insert_rows(n, true);
    in_order = slice_cost(n);
    close_all();
    open_with(kinds[0], true);
    insert_rows(n, false);
    random = slice_cost(n);
    close_all();
    open_with(kinds[1], true);
    insert_rows(n, false);
    clustered = slice_cost(n);
    iterated = iteration_cost(n);
    print_message("%u rows, us a row: in order %.2f, at random %.2f, clustered %.2f, an iteration %.2f\n", n, in_order, random, clustered,
                  iterated);
    assert_true(!asked || (clustered <= 2 * iterated + 0.05 && in_order < random));
    close_all();
}

/* The store fails the lookup after `most` lookups: a slice that needs no more is read nevertheless. */
static err slice_with_lookups(const char *rows, bool in_order, unsigned most) {
    item_key key;
    item_rows_cursor cursor = {0};
    item_rows_page page;
    size_t n = 0;
    open_with(rows, true);
    h.uncached = true;
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    insert_rows(2 * SLICE_ROWS, in_order);
    key = key_of(0);
    item_rows_ask ask = item_rows_ask_partition(&key);
    ask.rows_max = SLICE_ROWS;
    h.plan.get_in = most + 1;
    err code = item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, count_row, &n, &page);
    h.plan.get_in = 0;
    assert_true(code != OK || n == SLICE_ROWS);
    close_all();
    return code;
}

static void rows_side_by_side_need_no_lookups(void **state) {
    (void)state;
    assert_int_equal(slice_with_lookups(kinds[1], false, 0), OK);
    assert_int_equal(slice_with_lookups(kinds[0], true, 10), OK);
    assert_int_equal(slice_with_lookups(kinds[0], false, 10), E_STORE_IO);
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_of_prefixes),
        cmocka_unit_test(a_refused_row_comes_first_on_the_next_page),
        cmocka_unit_test(a_cursor_outlives_its_row),
        cmocka_unit_test(cursors_of_others_are_refused),
        cmocka_unit_test(a_share_that_is_spent_ends_the_page),
        cmocka_unit_test(a_failing_store_is_an_error),
        cmocka_unit_test(ids_come_in_the_order_of_bytes),
        cmocka_unit_test(rows_of_random_lives_come_in_order),
        cmocka_unit_test(a_row_of_a_lean_table_has_four_keys),
        cmocka_unit_test(rows_side_by_side_need_no_lookups),
        cmocka_unit_test(a_slice_of_a_clustered_partition_costs_about_an_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
