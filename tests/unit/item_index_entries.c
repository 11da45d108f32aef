/* Index entries of items: partitions that grow large enough for local entries, under writes and moves, and more shapes than can be known.
 * harness_check compares all entries with the items (terms_check.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item/view.h"
#include "item_harness.h"

#define V1 "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"}}"
#define V2 "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"

static harness h;
static container *c;

static void start_with(const char *properties, bool uncached) {
    harness_open(&h);
    h.uncached = uncached;
    h.rules.no_merges = true;
    harness_restart(&h);
    c = harness_container(&h, properties, 400);
}

static void start(const char *properties) {
    start_with(properties, false);
}

static void renew(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static void put(const char *partition, int id, int version) {
    char body[600];
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s\",\"v\":%d,\"l\":[%d,%d,7]}", id, partition, version, id % 5, version);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
}

static void take_away(const char *partition, int id) {
    char key[300], name[16];
    snprintf(key, sizeof key, "[\"%s\"]", partition);
    snprintf(name, sizeof name, "%d", id);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, key, name, NULL), OK);
}

static item_key key_of(const char *partition) {
    op *o = harness_op(&h);
    pkey *header = arena_new(&h.arena, pkey);
    item_key key;
    assert_int_equal(pkey_parse(o, arena_printf(&h.arena, "[\"%s\"]", partition), header), OK);
    assert_int_equal(item_check_key(o, c, header, SLICE_EMPTY, &key), OK);
    return key;
}

static uint64_t local_of(const char *partition) {
    item_key key = key_of(partition);
    terms_expected x = {.store = h.store, .container = c, .part = harness_part(c)};
    return terms_size(&x, &key).local;
}

/* ---- growing partitions ---- */

static void write_and_delete(void) {
    for (int i = 0; i < LOCAL_FROM - 12; i++) {
        put("p", i, 0);
    }
    harness_check(&h, c);
    assert_int_equal(local_of("p"), 0);
    bool some = false;
    for (int i = LOCAL_FROM - 12; i < LOCAL_FROM + 148; i++) {
        put("p", i, 0);
        put("p", i / 2, i);                  /* items with and without local entries */
        put("p", 2 * LOCAL_FROM - i, i + 1); /* also items that do not exist yet, and old ones */
        if (i % 3 == 0) {
            take_away("p", i);
            take_away("p", i / 3);
        }
        some = some || (local_of("p") != 0 && local_of("p") != LOCAL_ALL);
        if (i % 8 == 0) {
            harness_check(&h, c);
        }
    }
    assert_true(some);
    assert_true(local_of("p") == LOCAL_ALL);
    for (int i = LOCAL_FROM + 148; i < LOCAL_FROM + 188; i++) {
        put("p", i, 0);
        put("p", i, 1);
        put("other", i, 1);
    }
}

static void many_small_writes(void **state) {
    (void)state;
    start(V2);
    write_and_delete();
    stop();
}

static void without_cached_items(void **state) {
    (void)state;
    start_with(V2, true);
    write_and_delete();
    stop();
}

static err write_many(const char *partition, int from, int n, bool atomic) {
    item_op *ops = arena_array(&h.arena, item_op, (size_t)n);
    char body[200];
    for (int i = 0; i < n; i++) {
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s\",\"v\":%d,\"l\":[1,2]}", from + i, partition, i);
        assert_int_equal(harness_prepare(&h, c, &ops[i], ITEM_UPSERT, NULL, NULL, body), OK);
    }
    return harness_commit(&h, c, ops, (size_t)n, atomic);
}

static void one_large_group(void **state) {
    (void)state;
    start(V2);
    assert_int_equal(write_many("p", 0, 900, false), OK);
    harness_check(&h, c);
    assert_true(local_of("p") != LOCAL_ALL); /* the group's own items cannot be scanned */
    assert_int_equal(write_many("p", 850, 100, true), OK);
    harness_check(&h, c);
    assert_int_equal(write_many("p", 0, 100, true), OK);
    put("p", 2000, 1);
    assert_true(local_of("p") == LOCAL_ALL);
    stop();
}

static void one_that_shrinks_and_begins_anew(void **state) {
    (void)state;
    start(V2);
    assert_int_equal(write_many("p", 0, LOCAL_FROM + 28, false), OK);
    for (int i = 0; i < 6; i++) {
        put("p", i, i);
    }
    uint64_t local = local_of("p");
    assert_true(local > 0 && local != LOCAL_ALL);
    for (int i = 0; i < LOCAL_FROM + 28; i += 2) {
        take_away("p", i);
    }
    put("p", 1, 9);
    assert_int_equal(local_of("p"), local); /* small again: local entries are kept */
    harness_check(&h, c);
    for (int i = 1; i < LOCAL_FROM + 28; i += 2) {
        take_away("p", i);
    }
    harness_check(&h, c);
    put("p", 1, 1);
    assert_int_equal(local_of("p"), 0);
    assert_int_equal(write_many("p", 0, 600, false), OK);
    assert_int_equal(write_many("p", 0, 90, false), OK);
    assert_true(local_of("p") == LOCAL_ALL);
    stop();
}

/* ---- a move and a write in one group ---- */

typedef struct blocker {
    commit base;
    sem_t go_on;
} blocker;

static err wait_for_it(commit *base, commit_group *group) {
    (void)group;
    while (sem_wait(&((blocker *)base)->go_on) != 0) {
    }
    return OK;
}

static void nothing(commit *base) {
    (void)base;
}

static void move_and_write(uint32_t range, const char *partition, int id) {
    char body[200];
    item_op *o = arena_new(&h.arena, item_op);
    blocker *b = arena_new(&h.arena, blocker);
    waited_move m = {.base = {.items = harness_items(&h), .container = c, .range_id = range, .cost_max = 16, .done = move_is_done}};
    waited_commit w = {.base = {.items = harness_items(&h), .container = c, .ops = o, .n = 1, .atomic = true, .range_id = -1}};
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s\",\"again\":true}", id, partition);
    assert_int_equal(harness_prepare(&h, c, o, ITEM_UPSERT, NULL, NULL, body), OK);
    w.base.op = harness_op(&h);
    w.base.done = commit_is_done;
    waiter_init(&m.waiter);
    waiter_init(&w.waiter);
    assert_int_equal(sem_init(&b->go_on, 0, 0), 0);
    b->base = (commit){.apply = wait_for_it, .done = nothing};
    committer_submit(harness_part(c)->home->committer, &b->base); /* while it blocks, the next two become one group */
    item_move_submit(&m.base);
    assert_int_equal(item_commit_submit(&w.base), OK);
    sem_post(&b->go_on);
    waiter_wait(&m.waiter);
    waiter_wait(&w.waiter);
    assert_int_equal(m.base.base.code, OK);
    assert_int_equal(w.base.base.code, OK);
    item_commit_give(&w.base);
}

static void moved_while_it_grows(void **state) {
    (void)state;
    start(V2);
    for (int i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof name, "q%d", i);
        assert_int_equal(write_many(name, 0, 75, false), OK);
    }
    assert_int_equal(write_many("p", 0, LOCAL_FROM + 18, false), OK);
    assert_int_equal(account_split(h.account, harness_op(&h), c, c->tiles->ranges[0]->id, 2), OK);
    renew();
    item_key key = key_of("p");
    size_t i = container_position(c->tiles, &key.epk);
    assert_true(c->tiles->sources[i].n == 2 && c->tiles->sources[i].list[0].leaving);
    uint32_t range = c->tiles->ranges[i]->id;
    for (int id = 0; id < 200 && local_of("p") != LOCAL_ALL; id++) {
        move_and_write(range, "p", id);
    }
    assert_true(local_of("p") == LOCAL_ALL);
    stop();
}

/* ---- partitions that share an EPK ---- */

typedef struct asked {
    bool local;
    uint64_t items_n;
} asked;

static err note_view(void *context, item_view *v, bool *found_out) {
    *(asked *)context = (asked){v->local, v->items_n};
    *found_out = false;
    return OK;
}

static bool visit_all(void *context, const item_found *found) {
    (void)context, (void)found;
    return true;
}

static asked ask(const char *partition) {
    item_key key = key_of(partition);
    item_cursor cursor = harness_cursor();
    item_mark mark;
    item_reader reader;
    asked a = {0};
    cursor.partition = &key;
    item_reader_init(&reader, visit_all, &a, 10000);
    reader.find = note_view;
    while (cursor.n) {
        assert_int_equal(item_feed_by(harness_items(&h), harness_op(&h), c, &cursor, &reader, &mark), OK);
    }
    return a;
}

/* Whether the partition is read through local entries. */
static bool has_own_index(const char *partition) {
    return ask(partition).local;
}

static uint64_t items_of(const char *partition) {
    return ask(partition).items_n;
}

/* V1 hashes only the beginning of a string. */
static void partitions_that_hash_alike(void **state) {
    (void)state;
    char first[160], second[160];
    memset(first, 'a', sizeof first - 1);
    memset(second, 'a', sizeof second - 1);
    first[sizeof first - 1] = second[sizeof second - 1] = 0;
    second[sizeof second - 2] = 'b';
    start(V1);
    for (int i = 0; i < 600; i++) {
        put(first, i, i);
    }
    assert_true(local_of(first) == LOCAL_ALL);
    assert_true(has_own_index(first));
    assert_false(has_own_index(second)); /* it has no items: all are the other partition's */
    put(second, 1, 1);
    assert_int_equal(items_of(first), 600);
    assert_int_equal(items_of(second), 1);
    assert_false(has_own_index(first));
    assert_false(has_own_index(second));
    for (int i = 0; i < 800; i++) { /* growing local entries visits the items of both partitions */
        put(second, i % 600, i);
    }
    harness_check(&h, c);
    for (int i = 0; i < 600; i++) {
        take_away(first, i);
    }
    assert_true(has_own_index(second));
    stop();
}

/* ---- shapes ---- */

static void put_shape_of(int id, int shape) {
    char body[100];
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%d\",\"x%d\":1}", id, id, shape);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
}

static size_t shapes(void) {
    terms_expected x = {.store = h.store, .container = c, .part = harness_part(c)};
    return terms_shapes(&x, ((container_index *)harness_part(c)->index)->generation);
}

static void more_shapes_than_are_known(void **state) {
    (void)state;
    char key[16], id[16];
    start(V2);
    for (int i = 0; i < 4200; i++) {
        put_shape_of(i, i);
    }
    assert_int_equal(shapes(), 4096);
    harness_check(&h, c);
    for (int i = 0; i < 4200; i += 7) { /* their own shapes again, shapes of other items, and new ones */
        put_shape_of(i, i % 3 ? i : i % 2 ? 4199 - i : 5000 + i);
    }
    harness_check(&h, c);
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    for (int i = 0; i < 4200; i += 3) {
        snprintf(key, sizeof key, "[\"%d\"]", i);
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(harness_write(&h, c, ITEM_DELETE, key, id, NULL), OK);
    }
    assert_int_equal(shapes(), 4096);
    stop();
}

/* A failed write leaves room for its new shapes; a shape that was rejected stays rejected. */
static void shapes_of_writes_that_fail(void **state) {
    (void)state;
    char body[100];
    start(V2);
    for (int i = 0; i < 4095; i++) {
        put_shape_of(i, i);
    }
    assert_int_equal(shapes(), 4095);
    h.plan.write_in = 1;
    snprintf(body, sizeof body, "{\"id\":\"a\",\"pk\":\"a\",\"y\":1}");
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), E_STORE_IO);
    item_op *ops = arena_array(&h.arena, item_op, 3); /* a batch whose second operation fails, in a group with a successful one */
    assert_int_equal(harness_prepare(&h, c, &ops[0], ITEM_CREATE, NULL, NULL, "{\"id\":\"b\",\"pk\":\"b\",\"z\":1}"), OK);
    assert_int_equal(harness_prepare(&h, c, &ops[1], ITEM_REPLACE, NULL, "none", "{\"id\":\"none\",\"pk\":\"b\",\"z\":1}"), OK);
    assert_int_equal(harness_commit(&h, c, ops, 2, true), E_NOT_FOUND);
    assert_int_equal(shapes(), 4095);
    put_shape_of(1, 5000);
    assert_int_equal(shapes(), 4096);
    put_shape_of(2, 5001);
    put_shape_of(3, 5001);
    assert_int_equal(shapes(), 4096);
    stop();
}

/* ---- shapes with the same number ----
 *
 * Finds eight property names whose paths have the same sum as another name's path, with Wagner's generalized birthday algorithm: sums of
 * pairs that agree with the target in 16 bits, pairs of these in 32, and of those in all. */

enum { LISTS = 8, NAMES = 1 << 17, SUMS_MAX = 1 << 18 };

typedef struct part_sum {
    uint64_t sum;
    uint32_t left, right; /* indexes in the lists it was made of; for a name: its number */
} part_sum;

static uint64_t weight_of(const char *name) {
    return index_path_mixed(index_path_member(INDEX_PATH_ROOT, slice_str(name)), 1);
}

static uint64_t low_bits; /* the bits that sort_by_low compares */

static int sort_by_low(const void *a, const void *b) {
    uint64_t x = ((const part_sum *)a)->sum & low_bits, y = ((const part_sum *)b)->sum & low_bits;
    return x < y ? -1 : x > y;
}

/* Finds sums of one element of each list that agree with the target in these bits. Sorts the second list. */
static size_t join(const part_sum *a, size_t a_n, part_sum *b, size_t b_n, uint64_t bits, uint64_t target, part_sum *sums) {
    size_t n = 0;
    low_bits = bits;
    qsort(b, b_n, sizeof *b, sort_by_low);
    for (size_t i = 0; i < a_n; i++) {
        part_sum wanted = {.sum = target - a[i].sum};
        size_t low = 0, high = b_n;
        while (low < high) {
            size_t middle = (low + high) / 2;
            sort_by_low(&b[middle], &wanted) < 0 ? (low = middle + 1) : (high = middle);
        }
        for (; low < b_n && sort_by_low(&b[low], &wanted) == 0 && n < SUMS_MAX; low++) {
            sums[n++] = (part_sum){a[i].sum + b[low].sum, (uint32_t)i, (uint32_t)low};
        }
    }
    return n;
}

static void name_of(char name[static 16], unsigned list, uint32_t number) {
    snprintf(name, 16, "n%u_%u", list, number);
}

/* A list must not be sorted once sums point into it: `b` is sorted before. */
static void find_names(uint64_t target, char names[LISTS][16]) {
    static part_sum lists[LISTS][NAMES], pairs[4][SUMS_MAX], fours[2][SUMS_MAX], all[SUMS_MAX];
    size_t pairs_n[4], fours_n[2];
    for (unsigned i = 0; i < LISTS; i++) {
        for (uint32_t j = 0; j < NAMES; j++) {
            char name[16];
            name_of(name, i, j);
            lists[i][j] = (part_sum){.sum = weight_of(name), .left = j};
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        pairs_n[i] = join(lists[2 * i], NAMES, lists[2 * i + 1], NAMES, 0xFFFF, i == 3 ? target : 0, pairs[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        fours_n[i] = join(pairs[2 * i], pairs_n[2 * i], pairs[2 * i + 1], pairs_n[2 * i + 1], 0xFFFFFFFF, i ? target : 0, fours[i]);
    }
    assert_true(join(fours[0], fours_n[0], fours[1], fours_n[1], UINT64_MAX, target, all) > 0);
    for (unsigned i = 0; i < LISTS; i++) {
        const part_sum *four = &fours[i / 4][i / 4 ? all[0].right : all[0].left];
        const part_sum *pair = &pairs[i / 2][i / 2 % 2 ? four->right : four->left];
        name_of(names[i], i, lists[i][i % 2 ? pair->right : pair->left].left);
    }
}

/* The number of items that, by their shapes in the index, lack the path /x. */
static size_t without_x(void) {
    terms_expected x = {.store = h.store, .container = c, .part = harness_part(c)};
    slice key, value;
    size_t n = 0;
    layout_key from, to;
    layout_shapes(&from, c->space->container, ((container_index *)harness_part(c)->index)->generation);
    to = from;
    layout_after(&to);
    index_path path = index_path_member(INDEX_PATH_ROOT, SLICE_LIT("x"));
    store_scan *scan = store_scan_open(x.store, STORE_TERMS, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        n += !terms_has_path(value, path);
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

static void names_that_share_a_number_share_no_shape(void **state) {
    (void)state;
    char names[LISTS][16], body[400];
    find_names(weight_of("x") & ~(uint64_t)1, names); /* the lowest bit of a shape is always set */
    for (int attacker_first = 0; attacker_first < 2; attacker_first++) {
        start(V2);
        for (int turn = 0; turn < 2; turn++) {
            if (turn == attacker_first) {
                snprintf(body, sizeof body, "{\"id\":\"v\",\"pk\":\"victim\",\"x\":1}");
            } else {
                snprintf(body, sizeof body,
                         "{\"id\":\"a\",\"pk\":\"attacker\",\"%s\":1,\"%s\":1,\"%s\":1,\"%s\":1,\"%s\":1,\"%s\":1,\"%s\":1,\"%s\":1}",
                         names[0], names[1], names[2], names[3], names[4], names[5], names[6], names[7]);
            }
            assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
        }
        assert_int_equal(shapes(), 1); /* the two shapes do have the same number */
        assert_int_equal(without_x(), attacker_first);
        harness_check(&h, c); /* each item is under its own paths, or under none */
        container_give(c);
        harness_restart(&h);
        c = harness_found(&h, "d", "c");
        assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"attacker\"]", "a", NULL), OK);
        stop();
    }
}

/* ---- shapes of one group ---- */

/* Blocks the committer, so that what is submitted meanwhile becomes one group; then counts the shapes that the group added. */
typedef struct probe {
    commit base;
    sem_t entered, open;
    size_t made;
} probe;

static err probe_apply(commit *base, commit_group *group) {
    probe *p = (probe *)base;
    (void)group;
    sem_post(&p->entered);
    while (sem_wait(&p->open) != 0) {
    }
    p->made = ((container_index *)harness_part(c)->index)->shapes_made_n;
    return OK;
}

static void probe_done(commit *base) {
    sem_post(&((probe *)base)->entered);
}

static void probe_submit(probe *p, bool solo) {
    *p = (probe){.base = {.use = STORE_READS, .solo = solo, .apply = probe_apply, .done = probe_done}};
    sem_init(&p->entered, 0, 0);
    sem_init(&p->open, 0, solo ? 0 : 1);
    committer_submit(harness_part(c)->home->committer, &p->base);
}

static void a_shape_that_is_made_again_counts_once(void **state) {
    (void)state;
    static probe gate, count;
    static waited_commit first, second;
    static item_op twice[2], once;
    const char *text[] = {"{\"id\":\"1\",\"pk\":\"a\",\"new\":1}", "{\"id\":\"2\",\"pk\":\"a\",\"new\":2}"};
    start(V2);
    assert_int_equal(harness_prepare(&h, c, &twice[0], ITEM_CREATE, NULL, NULL, text[0]), OK);
    assert_int_equal(harness_prepare(&h, c, &twice[1], ITEM_CREATE, NULL, NULL, text[0]), OK); /* the same again: the whole batch is cut */
    assert_int_equal(harness_prepare(&h, c, &once, ITEM_CREATE, NULL, NULL, text[1]), OK);
    first.base = (item_commit){.items = harness_items(&h), .container = c, .ops = twice, .n = 2, .atomic = true, .range_id = -1};
    second.base = (item_commit){.items = harness_items(&h), .container = c, .ops = &once, .n = 1, .atomic = true, .range_id = -1};
    first.base.op = second.base.op = harness_op(&h);
    first.base.done = second.base.done = commit_is_done;
    waiter_init(&first.waiter);
    waiter_init(&second.waiter);
    probe_submit(&gate, true);
    while (sem_wait(&gate.entered) != 0) {
    }
    assert_int_equal(item_commit_submit(&first.base), OK);
    assert_int_equal(item_commit_submit(&second.base), OK);
    probe_submit(&count, false);
    sem_post(&gate.open);
    waiter_wait(&first.waiter);
    waiter_wait(&second.waiter);
    for (int i = 0; i < 2; i++) {
        while (sem_wait(&count.entered) != 0) {
        }
    }
    assert_int_equal(first.base.base.code, E_CONFLICT);
    assert_int_equal(second.base.base.code, OK);
    assert_int_equal(count.made, 1);
    item_commit_give(&first.base);
    item_commit_give(&second.base);
    stop();
}

/* After a restart the store fails once while the shapes are loaded. */
static void shapes_are_loaded_again_after_a_failure(void **state) {
    (void)state;
    start(V2);
    put("p", 1, 1);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"other\",\"pk\":\"p\"}"), OK);
    for (unsigned in = 1; in < 6; in++) {
        container_give(c);
        harness_restart(&h);
        c = harness_found(&h, "d", "c");
        h.plan.scan_in = in;
        err code = harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"other\",\"pk\":\"p\"}");
        assert_true(code == OK || code == E_STORE_IO);
        h.plan.scan_in = 0;
        put("p", 1, (int)in);
        put("p", 100 + (int)in, 1);
        harness_check(&h, c);
    }
    stop();
}

/* ---- terms listed before the commit ---- */

#define POLICY(rest) "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"indexingPolicy\":{" rest "}}"

static void one(item_op *o, item_kind kind, const char *key, const char *id, const char *text) {
    assert_int_equal(harness_one(&h, c, o, kind, key, id, text), OK);
}

/* A body that is written as given is listed on submit, and charged by that list. */
static void bodies_are_listed_where_they_are_submitted(void **state) {
    (void)state;
    item_op made, upserted, replaced, deleted, excluded = {0};
    start(V2);
    one(&made, ITEM_CREATE, NULL, NULL, "{\"id\":\"a\",\"pk\":\"p\",\"n\":1,\"l\":[1,2]}");
    one(&upserted, ITEM_UPSERT, NULL, NULL, "{\"id\":\"b\",\"pk\":\"p\",\"n\":{\"m\":1}}");
    one(&replaced, ITEM_REPLACE, NULL, "a", "{\"id\":\"a\",\"pk\":\"p\",\"n\":\"x\"}");
    one(&deleted, ITEM_DELETE, "[\"p\"]", "b", NULL);
    assert_true(made.terms && upserted.terms && replaced.terms && !deleted.terms);
    assert_int_equal(made.terms->charged, index_terms(&c->index, made.body));
    item_op plain = made;
    plain.terms = NULL;
    assert_true(item_price(&made, &c->index) == item_price(&plain, &c->index));
    assert_int_equal(harness_prepare(&h, c, &excluded, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"p\",\"n\":1}"), OK);
    excluded.not_indexed = true;
    assert_int_equal(harness_commit(&h, c, &excluded, 1, true), OK);
    assert_null(excluded.terms);
    stop();
}

/* A list belongs to the policy of its request. While the index has another policy, or two indexes exist, the committer makes its own
 * list. */
static void a_list_of_another_policy_is_not_used(void **state) {
    (void)state;
    static const char *const policies[] = {
        POLICY("\"includedPaths\":[{\"path\":\"/n/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]"),
        POLICY("\"compositeIndexes\":[[{\"path\":\"/n\"},{\"path\":\"/_ts\"}]]"),
        POLICY("\"indexingMode\":\"none\",\"automatic\":false"),
        V2,
    };
    char body[200];
    start(V2);
    for (int i = 0; i < 8; i++) {
        container *before = container_take(c);
        assert_int_equal(harness_replace_container(&h, "d", "c", policies[i % 4]), OK);
        renew();
        container *const versions[] = {before, c};
        for (int v = 0; v < 2; v++) { /* while the new index is built, and when it is in use */
            for (int k = 0; k < 4; k++) {
                snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"n\":%d,\"m\":[%d]}", k, k % 2, i * 10 + v, k);
                assert_int_equal(harness_write(&h, versions[k % 2], ITEM_UPSERT, NULL, NULL, body), OK);
            }
            harness_build_all(&h, c);
            harness_check(&h, c);
        }
        container_give(before);
    }
    stop();
}

/* item_commit_submit does not list many bodies; a thread that has time does, or else the committer. */
static void many_bodies_are_listed_by_who_has_time(void **state) {
    (void)state;
    enum { N = 40, BYTES = 3000 };
    static item_op ops[N];
    start(V2);
    for (int round = 0; round < 2; round++) {
        waited_commit w = {.base = {.items = harness_items(&h), .container = c, .ops = ops, .n = N, .range_id = -1, .op = harness_op(&h)}};
        for (int i = 0; i < N; i++) {
            char body[BYTES + 100];
            snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"n\":%d,\"text\":\"%0*d\"}", i, i % 3, round, BYTES, i);
            assert_int_equal(harness_prepare(&h, c, &ops[i], ITEM_UPSERT, NULL, NULL, body), OK);
        }
        assert_true(item_commit_has_long_lists(&w.base));
        if (round) {
            item_commit_list(&w.base);
            assert_false(item_commit_has_long_lists(&w.base));
        }
        assert_int_equal(harness_submit(&w), OK);
        for (int i = 0; i < N; i++) {
            assert_int_equal(ops[i].code, OK);
            assert_int_equal(ops[i].terms != NULL, round);
        }
        item_commit_give(&w.base);
        harness_check(&h, c);
    }
    stop();
}

/* A request without memory for the list is not rejected. */
static void a_list_without_room_is_the_committers(void **state) {
    (void)state;
    budget little = budget_init(NULL, 24 * 1024);
    arena counted = arena_init_counted(&little);
    buf body = buf_init(BUF_NO_LIMIT);
    item_op o;
    start(V2);
    buf_add_slice(&body, SLICE_LIT("{\"id\":\"a\",\"pk\":\"p\",\"l\":[0"));
    for (int i = 1; i < 1500; i++) {
        char number[16];
        buf_add(&body, number, (size_t)snprintf(number, sizeof number, ",%d", i));
    }
    buf_add_slice(&body, SLICE_LIT("]}"));
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_CREATE, NULL, NULL, arena_text(&h.arena, buf_view(&body))), OK);
    o.op.arena = &counted;
    assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
    assert_null(o.terms);
    assert_false(little.exceeded);
    buf_free(&body);
    stop();
    arena_free(&counted);
}

int main(void) {
    log_set_level(LOG_WARN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_small_writes),
        cmocka_unit_test(without_cached_items),
        cmocka_unit_test(one_large_group),
        cmocka_unit_test(one_that_shrinks_and_begins_anew),
        cmocka_unit_test(moved_while_it_grows),
        cmocka_unit_test(partitions_that_hash_alike),
        cmocka_unit_test(more_shapes_than_are_known),
        cmocka_unit_test(shapes_of_writes_that_fail),
        cmocka_unit_test(names_that_share_a_number_share_no_shape),
        cmocka_unit_test(a_shape_that_is_made_again_counts_once),
        cmocka_unit_test(shapes_are_loaded_again_after_a_failure),
        cmocka_unit_test(bodies_are_listed_where_they_are_submitted),
        cmocka_unit_test(a_list_of_another_policy_is_not_used),
        cmocka_unit_test(many_bodies_are_listed_by_who_has_time),
        cmocka_unit_test(a_list_without_room_is_the_committers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
