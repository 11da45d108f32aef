/* Interleavings with a reader: before every call that a page, a point read or the preparation of a split makes to its store, ranges are
 * split, merged and moved, and items written, once. Every such moment is tried, so that the test does not depend on threads meeting by
 * chance (account_reshape_threads.c does that). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"
#include "rounds.h"

#define PROPERTIES                                                                                                                         \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},"                                                \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}}"

enum { ITEMS = 24, MADE = 4, KEYS = 8, GONE = 5, AGAIN = 6, CHANGED = 7 };

static harness h;
static container *c, *first; /* the newest version, and the first one */

/* ---- a store with an interruption ---- */

typedef struct hooked_store {
    store base;
    store *inner;
} hooked_store;

static pthread_t reader;
static unsigned calls, moment; /* calls made by the reader, and the call before which it is interrupted */
static void (*interrupt)(void);

static store *inner_of(store *s) {
    if (interrupt && pthread_equal(pthread_self(), reader) && ++calls == moment) {
        void (*run)(void) = interrupt;
        interrupt = NULL;
        run();
    }
    return ((hooked_store *)s)->inner;
}

static err hooked_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    return store_get(inner_of(s), family, at, key, value_out);
}

static err hooked_write(store *s, const store_batch *batch) {
    return store_write(((hooked_store *)s)->inner, batch);
}

/* Scans come from the inner store: their steps see the state at the time they were opened. */
static store_scan *hooked_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    return store_scan_open(inner_of(s), family, at, from, to, backward);
}

static const store_snapshot *hooked_snapshot_take(store *s, bool in_memory) {
    return inner_of(s)->ops->snapshot_take(inner_of(s), in_memory);
}

static void hooked_snapshot_give(store *s, const store_snapshot *snapshot) {
    store_snapshot_give(inner_of(s), snapshot);
}

static void hooked_reclaim(store *s, store_family family, slice from, slice to) {
    store_reclaim(((hooked_store *)s)->inner, family, from, to);
}

static void hooked_close(store *s) {
    store_close(((hooked_store *)s)->inner);
    free(s);
}

static const store_ops hooked_ops = {
    .name = "hooked",
    .close = hooked_close,
    .get = hooked_get,
    .write = hooked_write,
    .scan_open = hooked_scan_open,
    .snapshot_take = hooked_snapshot_take,
    .snapshot_give = hooked_snapshot_give,
    .reclaim = hooked_reclaim,
};

static store *open_hooked(store *inner) {
    hooked_store *s = calloc(1, sizeof *s);
    *s = (hooked_store){.base.ops = &hooked_ops, .inner = inner};
    return &s->base;
}

/* ---- items ---- */

static void put(int i) {
    char body[200];
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"u\":%d}", i, i % KEYS, i);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
}

static void take_away(int i) {
    char key[16], id[16];
    snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
    snprintf(id, sizeof id, "%d", i);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, key, id, NULL), OK);
}

/* ---- interruptions ---- */

static void renew(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void write_some(void) {
    take_away(GONE);
    take_away(AGAIN);
    put(AGAIN);
    put(CHANGED);
    for (int i = ITEMS; i < ITEMS + MADE; i++) {
        put(i);
    }
}

static void split_first(void) {
    container *now = harness_found(&h, "d", "c");
    assert_int_equal(account_split(h.account, harness_op(&h), now, now->tiles->ranges[0]->id, 2), OK);
    container_give(now);
}

static void merge_first(void) {
    container *now = harness_found(&h, "d", "c");
    const container_tiles *tiles = now->tiles;
    if (tiles->map->n > 1) {
        assert_int_equal(account_merge(h.account, harness_op(&h), now, tiles->ranges[0]->id, tiles->ranges[1]->id), OK);
    }
    container_give(now);
}

/* Moves items of each range that is leaving a segment, up to this cost. */
static void move(unsigned cost_max) {
    container *now = harness_found(&h, "d", "c");
    harness_move(&h, now, cost_max);
    container_give(now);
}

static void move_a_little(void) {
    move(2);
}

/* Moves everything as the balancer does, without its pauses. */
static void move_all(void) {
    move(1000);
}

static void split_and_write(void) {
    split_first();
    write_some();
}

static void merge_and_write(void) {
    merge_first();
    write_some();
}

static void move_and_write(void) {
    move_all();
    write_some();
}

static void all_of_it(void) {
    split_first();
    write_some();
    move_all();
    split_first();
    merge_first();
    merge_first();
}

static void (*const interruptions[])(void) = {move_a_little, split_and_write, merge_and_write, move_and_write, all_of_it};

/* ---- initial states ---- */

static void unsplit(void) {
}

static void split_twice(void) {
    split_first();
    split_first();
}

static void split_and_moved(void) {
    split_twice();
    move_all();
}

static void merged_again(void) {
    split_and_moved();
    merge_first();
    merge_first();
}

static void (*const beginnings[])(void) = {unsplit, split_twice, split_and_moved, merged_again};

static void start(void (*begin)(void)) {
    harness_open_on(&h, open_hooked(store_open_memory()));
    h.rules = (account_rules){.unlimited = true, .range_throughput = 1000000, .no_merges = true};
    h.uncached = true;
    harness_restart(&h);
    c = harness_container(&h, PROPERTIES, 400);
    for (int i = 0; i < ITEMS; i++) {
        put(i);
    }
    first = container_take(c);
    begin();
    renew();
}

/* Runs `read` repeatedly, interrupted at each of its store calls in turn; under a sanitizer at every third, each time beginning with
 * another. */
static void at_every_moment(void (*read)(void), void (*const *between)(void), size_t between_n) {
    unsigned tried = 0;
    reader = pthread_self();
    for (size_t b = 0; b < sizeof beginnings / sizeof *beginnings; b++) {
        for (size_t i = 0; i < between_n; i++) {
            bool interrupted = true;
            for (unsigned at = SANITIZED ? 1 + (b + i) % 3 : 1; interrupted; at += SANITIZED ? 3 : 1, tried++) {
                start(beginnings[b]);
                calls = 0;
                moment = at;
                interrupt = between[i];
                read();
                interrupted = interrupt == NULL;
                interrupt = NULL;
                renew();
                harness_check(&h, c);
                container_give(c);
                container_give(first);
                harness_close(&h);
            }
        }
    }
    print_message("%u moments\n", tried);
}

#define AT_EVERY_MOMENT(read) at_every_moment(read, interruptions, sizeof interruptions / sizeof *interruptions)

/* ---- readers ---- */

typedef struct reading {
    unsigned left;
    unsigned seen[ITEMS + MADE];
    uint64_t last[KEYS];
} reading;

static bool see(void *context, const item_found *found) {
    reading *r = context;
    bson_iter_t it;
    if (r->left == 0) {
        return false;
    }
    r->left--;
    assert_true(doc_find_key(found->body, SLICE_LIT("u"), &it));
    int i = bson_iter_int32(&it);
    assert_true(found->head.number > r->last[i % KEYS]);
    r->last[i % KEYS] = found->head.number;
    r->seen[i]++;
    return true;
}

static void read_pages(item_cursor *cursor, int key) {
    reading r = {0};
    item_mark mark;
    while (cursor->n) {
        r.left = 5;
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, cursor, 9, see, &r, &mark), OK);
    }
    for (int i = 0; i < ITEMS + MADE; i++) {
        unsigned least = i < ITEMS && i != GONE && i != AGAIN, most = i == AGAIN ? 2 : 1;
        bool asked = key < 0 || i % KEYS == key;
        assert_in_range(r.seen[i], asked ? least : 0, asked ? most : 0);
    }
}

static void read_whole(void) {
    item_cursor cursor = harness_cursor();
    read_pages(&cursor, -1);
}

static void read_partition(void) {
    for (int key = GONE; key <= CHANGED; key++) {
        item_key partition;
        char text[16];
        item_cursor cursor = harness_cursor();
        pkey header = {.n = 1, .values = {{.type = PKEY_STRING, .text = slice_of(text, (size_t)snprintf(text, sizeof text, "p%d", key))}}};
        assert_int_equal(item_check_key(harness_op(&h), c, &header, SLICE_EMPTY, &partition), OK);
        cursor.partition = &partition;
        read_pages(&cursor, key);
    }
}

static void read_point(int i) {
    char text[16], id[16];
    pkey header = {.n = 1, .values = {{.type = PKEY_STRING, .text = slice_of(text, (size_t)snprintf(text, sizeof text, "p%d", i % KEYS))}}};
    item_key key;
    item_found found;
    slice id_found;
    op *o = harness_op(&h);
    snprintf(id, sizeof id, "%d", i);
    assert_int_equal(item_check_key(o, c, &header, slice_str(id), &key), OK);
    err code = item_read(harness_items(&h), o, c, &key, &found);
    assert_true(code == OK || (code == E_NOT_FOUND && (i == GONE || i == AGAIN)));
    if (code == OK) {
        code = item_row_of_number(harness_items(&h), o, c, &key, found.head.number, &id_found);
        assert_true(code == OK ? slice_eq(id_found, slice_str(id)) : code == E_NOT_FOUND && (i == GONE || i == AGAIN));
        item_give(&found);
    }
}

static void read_points(void) {
    for (int i = GONE - 2; i < CHANGED + 2; i++) {
        read_point(i);
    }
}

static void pages_of_all(void **state) {
    (void)state;
    AT_EVERY_MOMENT(read_whole);
}

static void pages_of_a_partition(void **state) {
    (void)state;
    AT_EVERY_MOMENT(read_partition);
}

static void points(void **state) {
    (void)state;
    AT_EVERY_MOMENT(read_points);
}

/* A cursor has no room for the stretch that a split needs: the feed returns an error, and no data is lost. */
static void read_full_cursor(void) {
    reading r = {.left = UINT32_MAX};
    item_mark mark;
    item_cursor cursor = {.n = ITEM_STRETCHES_MAX, .stretches = {{.min = epk_min(), .max = {.n = 1, .bytes = {0x3E}}}}};
    for (unsigned i = 1; i < ITEM_STRETCHES_MAX; i++) {
        item_stretch *next = &cursor.stretches[i];
        next->min = cursor.stretches[i - 1].max;
        next->max = (epk){.n = 2, .bytes = {0x3E, (unsigned char)i}};
    }
    container_give(c); /* only the feed holds the tiles that a split replaces */
    c = container_take(first);
    op *o = harness_op(&h);
    err code = item_feed(harness_items(&h), o, c, &cursor, 20, see, &r, &mark);
    assert_true(code == OK || code == E_BAD_CONTINUATION);
    assert_true(o->charge_ru > 0);
}

static void cursors_without_room(void **state) {
    (void)state;
    AT_EVERY_MOMENT(read_full_cursor);
}

/* A split only reads until it writes its map. Other splits and moves wait for it; writes do not. */
static void splits_while_written_to(void **state) {
    (void)state;
    static void (*const writes[])(void) = {write_some};
    at_every_moment(split_first, writes, 1);
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_all),         cmocka_unit_test(pages_of_a_partition),    cmocka_unit_test(points),
        cmocka_unit_test(cursors_without_room), cmocka_unit_test(splits_while_written_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
