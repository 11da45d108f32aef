/* Writers, point readers and feed readers run while ranges are split, merged and moved: every acknowledged write is visible at once, a feed
 * contains every item that existed throughout exactly once, and in the end every count is exact. Also for ThreadSanitizer.
 *
 * Each item has one writer, which records what it is about to write (`sent`) and what was acknowledged (`acked`). So a reader knows what it
 * may find: a state between the one acknowledged before the read began and the one sent when it ended. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

enum { WRITERS = 3, FEEDERS = 2, ITEMS = 240, KEYS = 40, RANGES_MOST = 14, RUN_MS = 1200 };

#define PROPERTIES                                                                                                                         \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":-1,"                              \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}}"

/* The state of an item: each creation and each removal increments `life`, so the item exists in odd lives. `writes` counts all writes. */
typedef struct state {
    _Atomic uint32_t life, writes;
} state;

static harness h;
static atomic_bool stopping;
static state sent[ITEMS], acked[ITEMS];
static epk epks[KEYS];
static struct { atomic_uint writes, points, feeds, pages, splits, merges, rounds; } did;

static void must(bool condition, const char *what, int item) {
    if (!condition) {
        fprintf(stderr, "broken: %s, item %d\n", what, item);
        abort();
    }
}

static pkey key_of(arena *a, int item) {
    slice text = arena_printf(a, "p%d", item % KEYS);
    return (pkey){.n = 1, .values = {{.type = PKEY_STRING, .text = text}}};
}

/* Now and then a thread looks the container up again; in between it uses old tiles. */
static void look_up(random_source *r, container **c) {
    if (*c && random_below(r, 8)) {
        return;
    }
    if (*c) {
        container_give(*c);
    }
    must(account_container(h.account, SLICE_LIT("d"), false, SLICE_LIT("c"), false, c) == OK, "container", -1);
}

static uint32_t number_in(slice body, const char *name) {
    bson_iter_t it;
    must(doc_find_key(body, slice_str(name), &it) && BSON_ITER_HOLDS_INT32(&it), name, -1);
    return (uint32_t)bson_iter_int32(&it);
}

/* ---- reading one ---- */

/* Checks an item against its states before and after the read. */
static void check_found(slice body, int item, uint32_t life, uint32_t writes) {
    uint32_t found_life = number_in(body, "life"), found_writes = number_in(body, "writes");
    must(found_life % 2 && found_life >= life && found_life <= atomic_load(&sent[item].life), "a life that was never", item);
    must(found_writes >= writes, "an acknowledged write is gone", item);
    must(found_writes <= atomic_load(&sent[item].writes), "a write that was never", item);
}

static void read_point(arena *a, const container *c, int item) {
    uint32_t life = atomic_load(&acked[item].life), writes = atomic_load(&acked[item].writes);
    pkey partition = key_of(a, item);
    item_key key;
    item_found found;
    op o;
    op_init(&o, a, HARNESS_START_S);
    must(item_check_key(&o, c, &partition, arena_printf(a, "%d", item), &key) == OK, "key", item);
    err code = item_read(account_items(h.account), &o, c, &key, &found);
    must(code == OK || code == E_NOT_FOUND, err_lookup(code)->name, item);
    if (code == OK) {
        slice id;
        check_found(found.body, item, life, writes);
        code = item_row_of_number(account_items(h.account), &o, c, &key, found.head.number, &id);
        must(code == OK ? slice_eq(id, key.row) : code == E_NOT_FOUND, "another number", item);
        must(code == OK || number_in(found.body, "life") < atomic_load(&sent[item].life), "an acknowledged number is gone", item);
        item_give(&found);
    } else {
        must(life % 2 == 0 || atomic_load(&sent[item].life) > life, "an acknowledged item is gone", item);
    }
    atomic_fetch_add(&did.points, 1);
}

static void *read_points(void *context) {
    random_source r;
    arena a = arena_init();
    container *c = NULL;
    random_seed(&r, (uintptr_t)context);
    while (!atomic_load(&stopping)) {
        look_up(&r, &c);
        read_point(&a, c, (int)random_below(&r, ITEMS));
        arena_reset(&a);
    }
    container_give(c);
    arena_free(&a);
    return NULL;
}

/* ---- writing ---- */

/* The writer's knowledge of an item. */
typedef struct known {
    uint32_t life, writes;
    uint64_t number, lsn;
} known;

static slice body_of(arena *a, random_source *r, int item, const known *k) {
    bson_t body = BSON_INITIALIZER;
    slice id = arena_printf(a, "%d", item), pk = arena_printf(a, "p%d", item % KEYS);
    char padding[300];
    int n = (int)random_below(r, sizeof padding);
    memset(padding, 'x', sizeof padding);
    bson_append_utf8(&body, "id", -1, id.p, (int)id.n);
    bson_append_utf8(&body, "pk", -1, pk.p, (int)pk.n);
    bson_append_int32(&body, "u", -1, item);
    bson_append_int32(&body, "life", -1, (int32_t)k->life);
    bson_append_int32(&body, "writes", -1, (int32_t)k->writes);
    bson_append_utf8(&body, "padding", -1, padding, n);
    slice copy = arena_copy(a, slice_of(bson_get_data(&body), body.len));
    bson_destroy(&body);
    return copy;
}

static err write_and_wait(container *c, item_op *o) {
    waited_commit w = {.base = {.items = account_items(h.account), .container = c, .ops = o, .n = 1, .atomic = true, .range_id = -1}};
    w.base.op = &o->op;
    w.base.done = commit_is_done;
    must(sem_init(&w.waiter.done, 0, 0) == 0 && item_commit_submit(&w.base) == OK, "submit", -1);
    waiter_wait(&w.waiter);
    item_commit_give(&w.base);
    return w.base.base.code;
}

/* An item's LSNs and a logical partition's document numbers increase through all splits and merges. */
static void check_stamp(const item_op *o, known *k, uint64_t *highest, int item) {
    must(o->after.lsn > k->lsn, "an lsn went back", item);
    k->lsn = o->after.lsn;
    if (o->kind == ITEM_DELETE) {
        return;
    }
    must(o->created || o->after.number == k->number, "a number changed", item);
    must(!o->created || o->after.number > *highest, "a number went back", item);
    k->number = o->after.number;
    *highest = k->number > *highest ? k->number : *highest;
}

static void write_one(random_source *r, arena *a, container *c, int item, known *k, uint64_t *highest) {
    bool there = k->life % 2, removes = there && random_below(r, 4) == 0;
    pkey partition = key_of(a, item);
    item_op o = {.kind = removes ? ITEM_DELETE : there && random_below(r, 2) ? ITEM_REPLACE : ITEM_UPSERT};
    op_init(&o.op, a, HARNESS_START_S);
    o.key.row = arena_printf(a, "%d", item);
    k->writes++;
    k->life += removes || !there;
    o.body = removes ? SLICE_EMPTY : body_of(a, r, item, k);
    err code = removes ? item_check_key(&o.op, c, &partition, o.key.row, &o.key) : item_check_body(&o.op, c, NULL, &o);
    must(code == OK, "prepare", item);
    atomic_store(&sent[item].life, k->life);
    atomic_store(&sent[item].writes, k->writes);
    code = write_and_wait(c, &o);
    must(code == OK, err_lookup(code)->name, item);
    must(removes || o.created == !there, "created", item);
    check_stamp(&o, k, highest, item);
    atomic_store(&acked[item].life, k->life);
    atomic_store(&acked[item].writes, k->writes);
    atomic_fetch_add(&did.writes, 1);
}

/* Each writer has its own items, in partitions shared by all writers. */
static void *write_items(void *context) {
    static known all[ITEMS];
    static uint64_t highest[WRITERS][KEYS];
    uintptr_t writer = (uintptr_t)context;
    random_source r;
    arena a = arena_init();
    container *c = NULL;
    random_seed(&r, 100 + writer);
    for (int i = (int)writer; i < ITEMS; i += WRITERS) {
        all[i] = (known){0};
    }
    memset(highest[writer], 0, sizeof highest[writer]);
    while (!atomic_load(&stopping)) {
        int item = (int)(random_below(&r, ITEMS / WRITERS) * WRITERS + writer);
        look_up(&r, &c);
        write_one(&r, &a, c, item, &all[item], &highest[writer][item % KEYS]);
        read_point(&a, c, item); /* it reads its own write */
        arena_reset(&a);
    }
    container_give(c);
    arena_free(&a);
    return NULL;
}

/* ---- feeds ---- */

typedef struct reading {
    uint32_t life[ITEMS], writes[ITEMS]; /* acknowledged before the read began */
    unsigned seen[ITEMS];
    uint64_t last[KEYS]; /* number */
    int key;             /* the partition that is read; -1: all of [min, max) */
    epk min, max;
    unsigned left; /* items left in the page */
} reading;

static bool see(void *context, const item_found *found) {
    reading *f = context;
    if (f->left == 0) {
        return false;
    }
    f->left--;
    int item = (int)number_in(found->body, "u"), key = item % KEYS;
    must(found->head.number > f->last[key], "out of order", item);
    f->last[key] = found->head.number;
    f->seen[item]++;
    check_found(found->body, item, f->life[item], f->writes[item]);
    return true;
}

/* Chooses the whole container, one of its current ranges, or one partition. */
static void choose_scope(random_source *r, arena *a, const container *c, reading *f, item_cursor *cursor, item_key *key) {
    f->min = epk_min();
    f->max = epk_max();
    f->key = -1;
    uint64_t what = random_below(r, 4);
    if (what == 0) {
        container_tiles *tiles = container_space_newest(c->space);
        const partition_range *range = &tiles->map->ranges[random_below(r, tiles->map->n)];
        f->min = range->min;
        f->max = range->max;
        container_tiles_give(tiles);
    } else if (what == 1) {
        op o;
        f->key = (int)random_below(r, KEYS);
        pkey partition = key_of(a, f->key);
        op_init(&o, a, HARNESS_START_S);
        must(item_check_key(&o, c, &partition, SLICE_EMPTY, key) == OK, "key", f->key);
    }
    *cursor = (item_cursor){.n = 1, .partition = what == 1 ? key : NULL, .stretches = {{.min = f->min, .max = f->max}}};
}

static bool is_asked_for(const reading *f, int item) {
    const epk *e = &epks[item % KEYS];
    return f->key >= 0 ? item % KEYS == f->key : epk_cmp(&f->min, e) <= 0 && epk_cmp(e, &f->max) < 0;
}

/* An item that lived once must be seen once; one that was recreated meanwhile may be seen in each of its lives. */
static void check_reading(const reading *f) {
    for (int i = 0; i < ITEMS; i++) {
        uint32_t before = f->life[i], after = atomic_load(&sent[i].life), lives = (after + 1) / 2 - before / 2;
        must(is_asked_for(f, i) || f->seen[i] == 0, "an item that was not asked for", i);
        must(f->seen[i] <= lives, "an item more often than it lived", i);
        must(!is_asked_for(f, i) || before % 2 == 0 || before != after || f->seen[i] == 1, "an item is missing", i);
    }
}

static void read_feed(random_source *r, arena *a, container *c, reading *f) {
    item_cursor cursor;
    item_key key;
    item_mark mark;
    arena pages = arena_init();
    *f = (reading){0};
    choose_scope(r, a, c, f, &cursor, &key);
    for (int i = 0; i < ITEMS; i++) {
        f->life[i] = atomic_load(&acked[i].life);
        f->writes[i] = atomic_load(&acked[i].writes);
    }
    unsigned most = 1 + (unsigned)random_below(r, random_below(r, 3) ? 20 : 300);
    while (cursor.n) {
        op o;
        op_init(&o, &pages, HARNESS_START_S);
        f->left = 1 + (unsigned)random_below(r, most);
        err code = item_feed(account_items(h.account), &o, c, &cursor, 1 + random_below(r, 500), see, f, &mark);
        must(code == OK, err_lookup(code)->name, -1);
        arena_reset(&pages);
        atomic_fetch_add(&did.pages, 1);
    }
    arena_free(&pages);
    check_reading(f);
    atomic_fetch_add(&did.feeds, 1);
}

static void *read_feeds(void *context) {
    random_source r;
    arena a = arena_init();
    container *c = NULL;
    reading *f = malloc(sizeof *f);
    random_seed(&r, 200 + (uintptr_t)context);
    while (!atomic_load(&stopping)) {
        look_up(&r, &c);
        read_feed(&r, &a, c, f);
        arena_reset(&a);
    }
    free(f);
    container_give(c);
    arena_free(&a);
    return NULL;
}

/* ---- splitting, merging, moving ---- */

static void reshape(random_source *r, arena *a, container *c) {
    container_tiles *tiles = container_space_newest(c->space);
    size_t n = tiles->map->n, i = random_below(r, n);
    bool splits = n < 2 || (n < RANGES_MOST && random_below(r, 2));
    uint32_t first = tiles->ranges[splits || i + 1 < n ? i : i - 1]->id, second = tiles->ranges[splits || i + 1 == n ? i : i + 1]->id;
    container_tiles_give(tiles);
    op o;
    op_init(&o, a, HARNESS_START_S);
    err code =
        splits ? account_split(h.account, &o, c, first, 2 + (uint32_t)random_below(r, 3)) : account_merge(h.account, &o, c, first, second);
    must(code == OK || code == E_RANGE_GONE || code == E_BAD_REQUEST, err_lookup(code)->name, (int)first);
    atomic_fetch_add(splits ? &did.splits : &did.merges, code == OK);
}

static void *reshape_ranges(void *context) {
    random_source r;
    arena a = arena_init();
    container *c = NULL;
    random_seed(&r, 300 + (uintptr_t)context);
    while (!atomic_load(&stopping)) {
        look_up(&r, &c);
        reshape(&r, &a, c);
        usleep((useconds_t)random_below(&r, 20000));
        arena_reset(&a);
    }
    container_give(c);
    arena_free(&a);
    return NULL;
}

static void *balance(void *context) {
    (void)context;
    while (!atomic_load(&stopping)) {
        account_balance(h.account, 10);
        atomic_fetch_add(&did.rounds, 1);
        usleep(1000);
    }
    return NULL;
}

/* ---- everything concurrently ---- */

static void check_item(container *c, int item) {
    char key[16], id[16];
    snprintf(key, sizeof key, "[\"p%d\"]", item % KEYS);
    snprintf(id, sizeof id, "%d", item);
    assert_int_equal(harness_read(&h, c, key, id) != NULL, atomic_load(&acked[item].life) % 2);
}

/* Checks everything by counts, by point reads and by a feed. */
static void check_all(void) {
    container *c = harness_found(&h, "d", "c");
    random_source r;
    reading *f = malloc(sizeof *f);
    uint64_t there = 0;
    random_seed(&r, 1);
    harness_check(&h, c);
    for (int i = 0; i < ITEMS; i++) {
        check_item(c, i);
        there += atomic_load(&acked[i].life) % 2;
    }
    assert_int_equal(harness_count(c), there);
    for (int i = 0; i < 10; i++) {
        read_feed(&r, &h.arena, c, f);
    }
    free(f);
    container_give(c);
}

/* All moves are done, and no range has its items in many segments. */
static void check_moved(void) {
    container *c = harness_found(&h, "d", "c");
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        assert_in_range(c->tiles->sources[i].n, 1, 9);
        for (size_t j = 0; j < c->tiles->sources[i].n; j++) {
            assert_false(c->tiles->sources[i].list[j].leaving);
        }
    }
    container_give(c);
}

static void start(store *s, account_rules rules, bool uncached) {
    memset(sent, 0, sizeof sent);
    memset(acked, 0, sizeof acked);
    memset(&did, 0, sizeof did);
    atomic_store(&stopping, false);
    harness_open_on(&h, s);
    h.rules = rules;
    h.uncached = uncached;
    harness_restart(&h);
    container *c = harness_container(&h, PROPERTIES, 400);
    for (int i = 0; i < KEYS; i++) {
        pkey key = key_of(&h.arena, i);
        epk_of(&c->key, &key, &epks[i]);
    }
    container_give(c);
}

static void run_all(void) {
    enum { POINTS = WRITERS, FEEDS, RESHAPER = FEEDS + FEEDERS, BALANCER, ALL };
    pthread_t threads[ALL];
    for (uintptr_t i = 0; i < ALL; i++) {
        void *(*run)(void *) = i < WRITERS    ? write_items
                               : i == POINTS  ? read_points
                               : i < RESHAPER ? read_feeds
                               : i < BALANCER ? reshape_ranges
                                              : balance;
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    }
    usleep(RUN_MS * 1000);
    atomic_store(&stopping, true);
    for (int i = 0; i < ALL; i++) {
        pthread_join(threads[i], NULL);
    }
    print_message("%u writes, %u reads, %u feeds of %u pages; %u splits, %u merges, %u rounds\n", did.writes, did.points, did.feeds,
                  did.pages, did.splits, did.merges, did.rounds);
    assert_true(did.writes > 50 && did.points > 50 && did.feeds > 2 && did.splits > 2 && did.merges > 0);
}

static void live(store *s, account_rules rules, bool uncached) {
    start(s, rules, uncached);
    run_all();
    check_all();
    while (account_balance(h.account, 1000)) {
    }
    check_moved();
    check_all();
    harness_restart(&h);
    check_all();
    harness_close(&h);
}

/* Only manual splits and merges, and moves. Without the item cache every read goes to the store, where it meets moves. */
static const account_rules by_command = {.unlimited = true, .range_throughput = 1000000, .no_merges = true};
/* The balancer splits ranges larger than this, and merges small ones. */
static const account_rules by_themselves = {.unlimited = true, .range_throughput = 1000000, .range_bytes = 20000};

static void in_memory(void **state_) {
    (void)state_;
    live(store_open_memory(), by_command, true);
}

static void in_memory_with_the_cache(void **state_) {
    (void)state_;
    live(store_open_memory(), by_themselves, false);
}

static void on_disk(void **state_) {
    (void)state_;
    char *folder = make_folder();
    live(open_rocks(folder), by_themselves, true);
    remove_folder(folder);
    free(folder);
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_memory), cmocka_unit_test(in_memory_with_the_cache), cmocka_unit_test(on_disk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
