/* Continuations of feeds, as a client may send them. The first byte chooses the container and the scope, the rest is the continuation's
 * text.
 *
 * Whatever the text is, the feed ends and has only items of the scope, each once; the continuation that a page ends with reads back as it
 * was written; and used for each range separately it gives the same as for all ranges together. */
#include "api/sql/continuation.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ITEMS = 60, PAGES_MAX = 4 * ITEMS + 2 * ITEM_STRETCHES_MAX };

typedef struct page {
    const sql_scope *scope;
    const world *w;
    const item_key *partition;
    unsigned left;
    unsigned *seen;
} page;

/* Containers that were split, one of each kind; inputs do not change them. */
static world *open_split(unsigned kind) {
    static world worlds[WORLD_KINDS];
    world *w = &worlds[kind % WORLD_KINDS];
    if (w->c) {
        return w;
    }
    world_open(w, kind);
    for (int i = 0; i < ITEMS; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"b\":%d,\"u\":%d,\"v\":%d}", i, i % 9, i % 3, i, i);
        assert_int_equal(harness_write(&w->h, w->c, ITEM_CREATE, NULL, NULL, body), OK);
        if (i == ITEMS / 2) {
            err code = account_split(w->h.account, harness_op(&w->h), w->c, w->c->tiles->ranges[0]->id, 3);
            assert_true(code == OK || code == E_BAD_REQUEST); /* a fixed container cannot be split */
        }
    }
    container_give(w->c);
    w->c = harness_found(&w->h, "d", "c");
    return w;
}

static bool see(void *context, const item_found *found) {
    page *p = context;
    item_key key;
    bson_iter_t it;
    if (p->left == 0) {
        return false;
    }
    p->left--;
    assert_int_equal(item__key_of(p->w->c, NULL, found->body, &key), OK);
    if (p->partition) {
        assert_true(pkey_equal(&key.partition, &p->partition->partition));
    } else {
        assert_true(epk_cmp(&p->scope->min, &key.epk) <= 0 && epk_cmp(&key.epk, &p->scope->end) < 0);
    }
    assert_true(doc_find_key(found->body, SLICE_LIT("id"), &it));
    p->seen[atoi(bson_iter_utf8(&it, NULL))]++;
    return true;
}

static void check_cursor(const sql_scope *scope, const item_cursor *c) {
    assert_true(c->n <= ITEM_STRETCHES_MAX);
    for (size_t i = 0; i < c->n && !c->partition; i++) {
        assert_true(epk_cmp(&c->stretches[i].min, &c->stretches[i].max) < 0);
        assert_true(epk_cmp(&scope->min, &c->stretches[i].min) <= 0 && epk_cmp(&c->stretches[i].max, &scope->end) <= 0);
        assert_true(i == 0 || epk_cmp(&c->stretches[i - 1].max, &c->stretches[i].min) <= 0);
    }
}

/* A written continuation reads back the same. */
static void check_again(const sql_scope *scope, const item_cursor *c, size_t count) {
    buf text = buf_init(BUF_NO_LIMIT);
    item_cursor again = {.partition = c->partition};
    sql_continuation_write(&text, scope, c, count);
    assert_int_equal(sql_continuation_read(buf_view(&text), scope, &again), OK);
    assert_int_equal(again.n, c->n);
    for (size_t i = 0; i < c->n; i++) {
        assert_int_equal(again.stretches[i].after, c->stretches[i].after);
        assert_true(c->partition || (epk_cmp(&again.stretches[i].min, &c->stretches[i].min) == 0 &&
                                     epk_cmp(&again.stretches[i].max, &c->stretches[i].max) == 0));
    }
    buf_free(&text);
}

/* Reads all following pages; false: reading was given up. */
static bool read_on(world *w, const sql_scope *scope, item_cursor *c, unsigned *seen) {
    bool good = true;
    arena scratch = arena_init();
    for (int pages = 0; c->n; pages++) {
        op o;
        item_mark mark;
        page p = {.scope = scope, .w = w, .partition = c->partition, .left = 3, .seen = seen};
        assert_true(pages < PAGES_MAX);
        op_init(&o, &scratch, harness_now_s(&w->h));
        err code = item_feed(harness_items(&w->h), &o, w->c, c, 50, see, &p, &mark);
        if (code == E_BAD_CONTINUATION) { /* too many stretches to divide one at the end of a range */
            assert_true(c->n == ITEM_STRETCHES_MAX);
            good = false;
            break;
        }
        assert_int_equal(code, OK);
        check_cursor(scope, c);
        if (c->n) {
            check_again(scope, c, 3 - p.left);
        }
        arena_reset(&scratch);
    }
    for (int i = 0; i < ITEMS; i++) {
        assert_true(seen[i] <= 1);
    }
    arena_free(&scratch);
    return good;
}

/* A client whose range was split uses the continuation for each part: together the parts give the same as the whole. */
static void check_parts(world *w, slice text, const sql_scope *whole, const unsigned *seen) {
    const partition_map *map = w->c->tiles->map;
    unsigned together[ITEMS] = {0};
    for (size_t i = 0; i < map->n; i++) {
        sql_scope part = {.container = whole->container, .min = map->ranges[i].min, .end = map->ranges[i].max, .plain = true};
        item_cursor c = {0};
        assert_int_equal(sql_continuation_read(text, &part, &c), OK);
        assert_true(read_on(w, &part, &c, together));
    }
    assert_memory_equal(seen, together, sizeof together);
}

/* The scope is everything, one range, a part of the hash space, or one logical partition. */
static void choose_scope(const world *w, unsigned what, sql_scope *scope, item_cursor *c, item_key *key) {
    const partition_map *map = w->c->tiles->map;
    rid container = {.n = 8};
    memcpy(container.bytes, w->c->rid, 8);
    *scope = (sql_scope){.container = container, .min = epk_min(), .end = epk_max()};
    *c = (item_cursor){0};
    if (what == 1) {
        scope->min = map->ranges[map->n / 2].min;
        scope->end = map->ranges[map->n / 2].max;
        scope->plain = true;
    } else if (what == 2) {
        scope->end = map->ranges[map->n - 1].min.n ? map->ranges[map->n - 1].min : scope->end;
    } else if (what == 3) {
        key->partition =
            (pkey){.n = w->c->key.n, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("p4")}, {.type = PKEY_NUMBER, .number = 1}}};
        epk_of(&w->c->key, &key->partition, &key->epk);
        scope->min = scope->end = key->epk;
        scope->plain = true;
        c->partition = key;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    sql_scope scope;
    item_cursor c;
    item_key key;
    if (n == 0) {
        return 0;
    }
    world *w = open_split(data[0] % WORLD_KINDS);
    unsigned what = data[0] / WORLD_KINDS % 4;
    choose_scope(w, what, &scope, &c, &key);
    slice text = slice_of(data + 1, n - 1);
    if (sql_continuation_read(text, &scope, &c) == OK) {
        unsigned seen[ITEMS] = {0};
        check_cursor(&scope, &c);
        if (c.n) {
            check_again(&scope, &c, 1);
        }
        if (read_on(w, &scope, &c, seen) && what == 0) {
            check_parts(w, text, &scope, seen);
        }
    }
    return 0;
}
