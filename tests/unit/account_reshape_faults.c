/* No item is lost, duplicated or out of order, whatever happens between splits and merges: writes, moves, store failures, restarts. */
#include "account_reshape_harness.h"

/* ---- failures of the store ---- */

enum { FAIL_GET, FAIL_SCAN, FAIL_WRITE, FAIL_KINDS };
enum { DO_SPLIT, DO_MERGE, DO_MOVE, DO_KINDS };

static void fail_in(unsigned kind, unsigned in) {
    h.plan.get_in = kind == FAIL_GET ? in : 0;
    h.plan.scan_in = kind == FAIL_SCAN ? in : 0;
    h.plan.write_in = kind == FAIL_WRITE ? in : 0;
    h.plan.fired = 0;
}

/* Forty items in ten partitions, in one range or two. */
static void start_with(unsigned what) {
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 40; i++) {
        put(i % 10, i, 10);
    }
    if (what != DO_SPLIT) {
        assert_int_equal(split(0, 2), OK);
    }
}

static err do_it(unsigned what) {
    if (what == DO_MOVE) {
        account_balance(h.account, 100);
        return OK;
    }
    return what == DO_SPLIT ? split(0, 2) : merge(0);
}

static size_t ranges_after(unsigned what) {
    return what == DO_MERGE ? 1 : 2;
}

/* Each store call of a split, a merge or a move fails once: afterwards the change is either complete or absent, also after a restart. */
static void failures_leave_one_map(void **state) {
    (void)state;
    for (unsigned what = 0; what < DO_KINDS; what++) {
        for (unsigned kind = 0; kind < FAIL_KINDS; kind++) {
            for (unsigned in = 1, fired = 1; fired; in++) {
                start_with(what);
                const char *feed = harness_feed(&h, c, NULL, 100, 1000);
                size_t before = ranges();
                fail_in(kind, in);
                err code = do_it(what);
                fired = h.plan.fired;
                fail_in(0, 0);
                assert_true(fired || code == OK);
                size_t after = code == OK ? ranges_after(what) : before;
                assert_int_equal(ranges(), after);
                harness_check(&h, c);
                assert_int_equal(strlen(harness_feed(&h, c, NULL, 100, 1000)), strlen(feed));
                put(3, 78, 10);
                harness_check(&h, c);
                restart();
                assert_int_equal(ranges(), after);
                put(3, 77, 10);
                move_all();
                stop();
            }
        }
    }
}

/* The write reaches the disk but reports failure: nothing more is written, and after a restart the change is complete. */
static void a_reshape_that_failed_after_the_fact_is_whole(void **state) {
    (void)state;
    for (unsigned what = 0; what < DO_KINDS; what++) {
        unsigned fired = 1;
        for (unsigned in = 1; fired; in++) {
            start_with(what);
            const char *feed = harness_feed(&h, c, NULL, 100, 1000);
            size_t before = ranges();
            h.plan.torn = h.plan.sticky = true;
            fail_in(FAIL_WRITE, in);
            err code = do_it(what);
            fired = h.plan.fired;
            bool first = range_at(0)->home->number == 0;
            bool told = fired && what != DO_MOVE && in <= (first ? 1 : 2); /* the last write only stores the duration */
            bool begun = first || in > 1 || !told;                         /* in other homes segment numbers are written first */
            assert_int_equal(code, told ? E_STORE_IO : OK);
            assert_int_equal(ranges(), code == OK ? ranges_after(what) : before);
            fail_in(0, 0);
            h.plan.torn = h.plan.sticky = false;
            restart();
            assert_int_equal(ranges(), begun ? ranges_after(what) : before);
            harness_check(&h, c);
            assert_int_equal(strlen(harness_feed(&h, c, NULL, 100, 1000)), strlen(feed));
            put(3, 77, 10);
            move_all();
            stop();
        }
    }
}

/* Sizes that do not add up mean corruption: the map stays, and everything else still works. */
static void a_split_of_damaged_sizes_is_given_up(void **state) {
    (void)state;
    start_with(DO_SPLIT);
    layout_key k;
    pkey key = {.n = 1, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("p3")}}};
    epk e;
    store_value value;
    store_batch batch;
    char damaged[LAYOUT_SIZE_BYTES];
    epk_of(&c->key, &key, &e);
    layout_size(&k, c->space->container, &e, &key);
    assert_int_equal(store_get(h.store, STORE_INDEX, NULL, layout_view(&k), &value), OK);
    slice whole = arena_copy(&h.arena, value.bytes);
    store_give(&value);
    memcpy(damaged, whole.p, sizeof damaged);
    damaged[7] ^= 1; /* the item count */
    store_batch_init(&batch);
    store_put(&batch, STORE_INDEX, layout_view(&k), slice_of(damaged, sizeof damaged));
    assert_int_equal(store_write(h.store, &batch), OK);
    assert_int_equal(split(0, 2), E_STORE_CORRUPT);
    assert_int_equal(ranges(), 1);
    put(4, 77, 10);
    store_batch_clear(&batch);
    store_put(&batch, STORE_INDEX, layout_view(&k), whole);
    assert_int_equal(store_write(h.store, &batch), OK);
    store_batch_free(&batch);
    assert_int_equal(split(0, 2), OK);
    stop();
}

/* ---- random lives, by seed ---- */

enum { KEYS = 25, IDS = 300, SEVERAL = 8 };

typedef struct model {
    bool there[IDS];   /* item i is in partition i % KEYS */
    bool deleted[IDS]; /* deleted at some time since this was cleared */
} model;

static bool check_seen(void *context, const item_found *found) {
    unsigned *seen = context;
    bson_iter_t it;
    assert_true(doc_find_key(found->body, SLICE_LIT("id"), &it));
    seen[atoi(bson_iter_utf8(&it, NULL))]++;
    return true;
}

static bool seen_three(void *context, const item_found *found) {
    struct {
        unsigned left;
        unsigned *seen;
    } *page = context;
    return page->left-- > 0 && check_seen(page->seen, found);
}

static void check_model(const model *m) {
    unsigned seen[IDS] = {0};
    item_cursor cursor = harness_cursor();
    item_mark mark;
    harness_check(&h, c);
    while (cursor.n) {
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 17, check_seen, seen, &mark), OK);
    }
    for (int i = 0; i < IDS; i++) {
        assert_int_equal(seen[i], m->there[i]);
    }
}

static void change_item(random_source *r, model *m) {
    int i = (int)random_below(r, IDS);
    char key[16], id[16];
    if (random_below(r, 3)) {
        put(i % KEYS, i, (unsigned)random_below(r, 200));
        m->there[i] = true;
    } else {
        snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(harness_write(&h, c, ITEM_DELETE, key, id, NULL), m->there[i] ? OK : E_NOT_FOUND);
        m->deleted[i] = m->deleted[i] || m->there[i];
        m->there[i] = false;
    }
}

/* ---- several items in one request, in several ranges and so in several stores; each independent ---- */

typedef struct several {
    size_t n;
    int ids[SEVERAL];
    bool deletes[SEVERAL];
    item_op ops[SEVERAL];
} several;

static void choose_several(random_source *r, const model *m, several *s) {
    char key[16], id[16], body[100];
    int from = (int)random_below(r, IDS);
    s->n = 1 + random_below(r, SEVERAL);
    for (size_t k = 0; k < s->n; k++) {
        int i = s->ids[k] = (from + 7 * (int)k) % IDS;
        s->deletes[k] = m->there[i] && random_below(r, 3) == 0;
        snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
        snprintf(id, sizeof id, "%d", i);
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"u\":%d}", i, i % KEYS, i);
        err code = s->deletes[k] ? harness_prepare(&h, c, &s->ops[k], ITEM_DELETE, key, id, NULL)
                                 : harness_prepare(&h, c, &s->ops[k], ITEM_UPSERT, NULL, NULL, body);
        assert_int_equal(code, OK);
    }
}

static void note(model *m, int i, bool there) {
    m->deleted[i] = m->deleted[i] || (m->there[i] && !there);
    m->there[i] = there;
}

static void change_several(random_source *r, model *m) {
    several s;
    choose_several(r, m, &s);
    assert_int_equal(harness_commit(&h, c, s.ops, s.n, false), OK);
    for (size_t k = 0; k < s.n; k++) {
        assert_int_equal(s.ops[k].code, OK);
        note(m, s.ids[k], !s.deletes[k]);
    }
}

/* The disks fail at some write, which may or may not be on disk, and the server restarts. Acknowledged writes must be there. */
static void change_several_badly(random_source *r, model *m) {
    several s;
    char key[16], id[16];
    bool torn = random_below(r, 2);
    choose_several(r, m, &s);
    h.plan.sticky = true;
    h.plan.torn = torn;
    fail_in(FAIL_WRITE, 1 + (unsigned)random_below(r, 2));
    err code = harness_commit(&h, c, s.ops, s.n, false);
    fail_in(0, 0);
    h.plan.sticky = h.plan.torn = false;
    restart();
    for (size_t k = 0; k < s.n; k++) {
        int i = s.ids[k];
        bool done = code == OK && s.ops[k].code == OK, was = m->there[i];
        snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
        snprintf(id, sizeof id, "%d", i);
        note(m, i, harness_read(&h, c, key, id) != NULL);
        assert_true(done ? m->there[i] == !s.deletes[k] : torn || m->there[i] == was);
    }
}

static void change_items(random_source *r, model *m) {
    for (int i = 0; i < 3; i++) {
        change_item(r, m);
    }
    if (random_below(r, 3)) {
        change_several(r, m);
    } else {
        change_several_badly(r, m);
    }
}

/* ---- ranges ---- */

/* Ranges in different stores must not be merged. */
static err merge_if_together(size_t i) {
    bool together = range_at(i)->home == range_at(i + 1)->home;
    err code = merge(i);
    assert_true(together || code == E_BAD_REQUEST);
    return together ? code : OK;
}

/* OK also if there was nothing to do. */
static err change_tiles(random_source *r) {
    uint64_t what = random_below(r, 10);
    size_t i = random_below(r, ranges());
    if (what < 4 && ranges() < 12) {
        err code = split(range_at(i)->id, 2 + (uint32_t)random_below(r, 3));
        return code == E_BAD_REQUEST ? OK : code;
    }
    if (what < 7 && i + 1 < ranges()) {
        return merge_if_together(i);
    }
    if (what < 9) {
        account_balance(h.account, 1);
        renew();
    } else {
        restart();
    }
    return OK;
}

/* The store fails at some call; or its disk fails for good, with or without the last write, and the server restarts. */
static void change_tiles_badly(random_source *r) {
    unsigned kind = (unsigned)random_below(r, FAIL_KINDS), in = 1 + (unsigned)random_below(r, 12);
    h.plan.sticky = kind == FAIL_WRITE && random_below(r, 2);
    h.plan.torn = h.plan.sticky && random_below(r, 2);
    uint64_t what = random_below(r, 3);
    size_t i = random_below(r, ranges());
    fail_in(kind, in);
    err code = what == 0                       ? split(range_at(i)->id, 2)
               : what == 1 && i + 1 < ranges() ? merge_if_together(i)
                                               : (account_balance(h.account, 1), OK);
    bool fired = h.plan.fired, ends = h.plan.sticky;
    fail_in(0, 0);
    h.plan.sticky = h.plan.torn = false;
    assert_true(code == OK || code == E_BAD_REQUEST || (fired && code == E_STORE_IO));
    if (ends) {
        restart();
    } else {
        renew();
    }
}

/* A feed that begins before all changes and ends after them must contain each permanent item exactly once. */
static void random_lives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(12); seed++) {
        random_source r;
        model m = {0};
        random_seed(&r, seed);
        account_rules rules = quiet;
        rules.range_throughput = 1000;
        start(seed % 2 ? UNIQUE : PLAIN, seed % 4 < 2 ? 1000 : 4000, rules);
        assert_true(ranges() == 1 || range_at(0)->home != range_at(1)->home || h.homes_n == 1);
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 60; i++) {
                change_item(&r, &m);
            }
            memset(m.deleted, 0, sizeof m.deleted);
            model first = m;
            unsigned seen[IDS] = {0};
            item_cursor cursor = harness_cursor();
            item_mark mark;
            while (cursor.n) {
                struct {
                    unsigned left;
                    unsigned *seen;
                } page = {1 + (unsigned)random_below(&r, 9), seen};
                assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 40, seen_three, &page, &mark), OK);
                if (random_below(&r, 4)) {
                    assert_int_equal(change_tiles(&r), OK);
                } else {
                    change_tiles_badly(&r);
                }
                change_items(&r, &m);
            }
            for (int i = 0; i < IDS; i++) {
                assert_true(m.deleted[i] || (first.there[i] ? seen[i] == 1 : seen[i] <= 1));
            }
            check_model(&m);
        }
        move_all();
        check_model(&m);
        stop();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_leave_one_map),
        cmocka_unit_test(random_lives),
        cmocka_unit_test(a_reshape_that_failed_after_the_fact_is_whole),
        cmocka_unit_test(a_split_of_damaged_sizes_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
