/* The item cache: it never returns anything older than an acknowledged write, respects its memory limit, and is thread-safe. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define KEY "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"

static slice key_text(char into[32], unsigned i) {
    return slice_of(into, (size_t)snprintf(into, 32, "primary key %u", i));
}

static bool holds(item_cache *cache, unsigned i, const char *value, cache_ticket *ticket) {
    char text[32];
    const cached_item *item = item_cache_take(cache, key_text(text, i), ticket);
    if (!item) {
        return false;
    }
    bool same = slice_eq(cached_item_value(item), slice_str(value)) && cached_item_place(item).number == i;
    cached_item_give(item);
    assert_true(same);
    return true;
}

static void add(item_cache *cache, unsigned i, const char *value, const cache_ticket *ticket) {
    char text[32];
    item_cache_add(cache, ticket, key_text(text, i), slice_str(value), (item_place){1, i});
}

static void what_was_added_is_there(void **state) {
    (void)state;
    item_cache *cache = item_cache_open(10 << 20);
    cache_ticket ticket;
    for (unsigned i = 0; i < 5000; i++) {
        char value[32];
        snprintf(value, sizeof value, "value %u", i);
        assert_false(holds(cache, i, value, &ticket));
        add(cache, i, value, &ticket);
        add(cache, i, "not this one: it is there already", &ticket);
    }
    for (unsigned i = 0; i < 5000; i++) {
        char value[32];
        snprintf(value, sizeof value, "value %u", i);
        assert_true(holds(cache, i, value, &ticket));
    }
    item_cache_close(cache);
}

/* Used items stay, unused ones are evicted; an item that a reader holds stays valid after its eviction. */
static void it_stays_within_its_bytes(void **state) {
    (void)state;
    enum { BYTES = 1 << 20, N = 20000 };
    static char large[1000];
    item_cache *cache = item_cache_open(BYTES);
    cache_ticket ticket;
    char text[32];
    memset(large, 'x', sizeof large - 1);
    const cached_item *kept = NULL;
    unsigned there = 0, used = 0;
    for (unsigned i = 0; i < N; i++) {
        assert_false(holds(cache, i, large, &ticket));
        add(cache, i, large, &ticket);
        if (i == 0) {
            kept = item_cache_take(cache, key_text(text, 0), &ticket);
        }
        for (unsigned k = 1; k <= 10 && i > 100; k++) {
            used += i == N - 1 && holds(cache, k, large, &ticket);
            holds(cache, k, large, &ticket);
        }
    }
    for (unsigned i = 0; i < N; i++) {
        there += holds(cache, i, large, &ticket);
    }
    assert_in_range(there, BYTES / 1300 / 2, BYTES / 1000);
    assert_true(used >= 8); /* the ten that were read all the time */
    assert_non_null(kept);
    assert_true(slice_eq(cached_item_value(kept), slice_str(large)));
    item_cache_close(cache);
    cached_item_give(kept);
}

static void large_items_are_left_out(void **state) {
    (void)state;
    static char large[70000];
    item_cache *cache = item_cache_open(10 << 20);
    cache_ticket ticket;
    memset(large, 'x', sizeof large - 1);
    assert_false(holds(cache, 1, large, &ticket));
    add(cache, 1, large, &ticket);
    assert_false(holds(cache, 1, large, &ticket));
    item_cache_close(cache);
    cache = item_cache_open(0);
    assert_false(holds(cache, 1, "x", &ticket));
    add(cache, 1, "x", &ticket);
    assert_false(holds(cache, 1, "x", &ticket));
    item_cache_close(cache);
}

/* Keys whose words differ in pairs: under a multiplicative hash without a secret, the second word of a pair undoes the change of the first,
 * so all keys have the same hash. */
static void keys_cannot_be_made_to_share_a_bucket(void **state) {
    (void)state;
    enum { PAIRS = 12 };
    item_cache *cache = item_cache_open(64 << 20);
    for (unsigned i = 0; i < 1u << PAIRS; i++) {
        uint64_t words[2 * PAIRS];
        cache_ticket ticket;
        memset(words, 'k', sizeof words);
        for (unsigned pair = 0; pair < PAIRS; pair++) {
            words[2 * pair] ^= (uint64_t)(i >> pair & 1) << 63;
            words[2 * pair + 1] ^= (uint64_t)(i >> pair & 1) << 63 | (uint64_t)(i >> pair & 1) << 31;
        }
        slice key = slice_of(words, sizeof words);
        assert_null(item_cache_take(cache, key, &ticket));
        item_cache_add(cache, &ticket, key, SLICE_LIT("value"), (item_place){1, i + 1});
    }
    assert_in_range(item_cache_longest_chain(cache), 1, 20);
    item_cache_close(cache);
}

/* A reader that read the store before a write and adds its item after it has an old version, which must be rejected. */
static void what_is_old_is_not_taken_in(void **state) {
    (void)state;
    harness h;
    harness_open(&h);
    container *c = harness_container(&h, KEY, 400);
    item_op o;
    layout_key k;
    cache_ticket ticket;
    item_cache *cache = harness_part(c)->home->cache;
    assert_int_equal(harness_one(&h, c, &o, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}"), OK);
    layout_primary(&k, c->space->container, &o.key.epk, &o.key.partition, o.key.row);
    uint64_t before = item_cache_now(cache);
    const cached_item *old = item_cache_take(cache, layout_view(&k), &ticket);
    assert_non_null(old); /* the write added it */
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":2}"), OK);
    item_cache_add(cache, &ticket, layout_view(&k), cached_item_value(old), cached_item_place(old));
    assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), "{\"id\":\"1\",\"pk\":\"a\",\"n\":2}");
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    item_cache_add(cache, &ticket, layout_view(&k), cached_item_value(old), cached_item_place(old));
    assert_null(harness_read(&h, c, "[\"a\"]", "1"));
    item_cache_add_of(cache, before, layout_view(&k), cached_item_value(old), cached_item_place(old));
    assert_null(harness_read(&h, c, "[\"a\"]", "1"));
    item_cache_add_of(cache, item_cache_now(cache), layout_view(&k), cached_item_value(old), cached_item_place(old));
    const cached_item *added = item_cache_take(cache, layout_view(&k), &ticket); /* said to be of a snapshot after the last change */
    assert_non_null(added);
    cached_item_give(added);
    cached_item_give(old);
    container_give(c);
    harness_close(&h);
}

/* Writes that fail, alone or with their group, do not change what reads return. */
static void failed_writes_change_no_answer(void **state) {
    (void)state;
    harness h;
    harness_open(&h);
    container *c = harness_container(&h, KEY, 400);
    item_op ops[2];
    static const char one[] = "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}";
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, one), OK);
    h.plan.write_in = 1;
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":2}"), E_STORE_IO);
    assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), one);
    assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), one);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            harness_prepare(&h, c, &ops[0], i ? ITEM_UPSERT : ITEM_DELETE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":3}"), OK);
        assert_int_equal(harness_prepare(&h, c, &ops[1], ITEM_DELETE, "[\"a\"]", "nobody", NULL), OK);
        assert_int_equal(harness_commit(&h, c, ops, 2, true), E_NOT_FOUND);
        assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), one);
        assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), one);
    }
    container_give(c);
    harness_close(&h);
}

/* ---- threads ---- */

enum { ITEMS = 4, READERS = 3, WRITES = 600, READS_MIN = 10 };

typedef struct shared {
    harness h;
    container *c;
    atomic_int acknowledged[ITEMS]; /* the newest n acknowledged */
    atomic_int asked[ITEMS];        /* the newest n sent */
    atomic_bool stop;
} shared;

typedef struct reader {
    pthread_t thread;
    shared *s;
    unsigned seed;
    unsigned reads;
} reader;

static int read_n(shared *s, arena *a, unsigned item) {
    op o;
    pkey header;
    item_key k;
    item_found found;
    bson_iter_t it;
    char id[2] = {(char)('0' + item), 0};
    op_init(&o, a, HARNESS_START_S);
    if (pkey_parse(&o, SLICE_LIT("[\"a\"]"), &header) != OK || item_check_key(&o, s->c, &header, slice_str(id), &k) != OK) {
        abort();
    }
    err code = item_read(harness_items(&s->h), &o, s->c, &k, &found);
    if (code == E_NOT_FOUND) {
        return -1;
    }
    if (code != OK || !doc_find_key(found.body, SLICE_LIT("n"), &it)) {
        abort();
    }
    int n = bson_iter_int32(&it);
    item_give(&found);
    return n;
}

typedef struct wanted {
    char id;
    int n;
} wanted;

static bool note_n(void *context, const item_found *found) {
    wanted *w = context;
    bson_iter_t it;
    if (doc_find_key(found->body, SLICE_LIT("id"), &it) && doc_text(&it).p[0] == w->id && doc_find_key(found->body, SLICE_LIT("n"), &it)) {
        w->n = bson_iter_int32(&it);
    }
    return true;
}

/* The same through a feed of the partition, which takes items by place. */
static int read_n_by_feed(shared *s, arena *a, unsigned item) {
    op o;
    pkey header;
    item_key k;
    item_mark mark;
    item_cursor cursor = {.partition = &k, .n = 1};
    wanted w = {(char)('0' + item), -1};
    op_init(&o, a, HARNESS_START_S);
    if (pkey_parse(&o, SLICE_LIT("[\"a\"]"), &header) != OK || item_check_key(&o, s->c, &header, SLICE_LIT("0"), &k) != OK ||
        item_feed(harness_items(&s->h), &o, s->c, &cursor, 100, note_n, &w, &mark) != OK) {
        abort();
    }
    return w.n;
}

/* A read must not return anything older than what was acknowledged when it began, or newer than what had been sent when it ended. */
static void *read_all_the_time(void *context) {
    reader *r = context;
    arena a = arena_init();
    random_source random;
    random_seed(&random, r->seed);
    while (!atomic_load(&r->s->stop) || r->reads < READS_MIN) { /* on a busy machine a thread may start late */
        unsigned item = (unsigned)random_below(&random, ITEMS);
        int least = atomic_load(&r->s->acknowledged[item]);
        int n = r->reads % 2 ? read_n(r->s, &a, item) : read_n_by_feed(r->s, &a, item);
        int most = atomic_load(&r->s->asked[item]);
        if (n < least || n > most) {
            fprintf(stderr, "item %u: read %d, acknowledged was %d, sent %d\n", item, n, least, most);
            abort();
        }
        r->reads++;
        arena_reset(&a);
    }
    arena_free(&a);
    return NULL;
}

static void make_again(shared *s, const char *id, const char *body) {
    item_op ops[2];
    assert_int_equal(harness_prepare(&s->h, s->c, &ops[0], ITEM_DELETE, "[\"a\"]", id, NULL), OK);
    assert_int_equal(harness_prepare(&s->h, s->c, &ops[1], ITEM_CREATE, NULL, NULL, body), OK);
    assert_int_equal(harness_commit(&s->h, s->c, ops, 2, true), OK);
}

static void write_n(shared *s, random_source *random, unsigned item, int n) {
    char body[200], id[2] = {(char)('0' + item), 0};
    arena_reset(&s->h.arena);
    snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"a\",\"n\":%d,\"more\":\"%.*s\"}", item, n, (int)random_below(random, 50),
             "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    atomic_store(&s->asked[item], n);
    switch (random_below(random, 3)) {
    case 0:
        assert_int_equal(harness_write(&s->h, s->c, ITEM_UPSERT, NULL, id, body), OK);
        break;
    case 1:
        assert_int_equal(harness_write(&s->h, s->c, ITEM_EDIT, "[\"a\"]", id, "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]"), OK);
        break;
    default: /* deleted and created again in one batch: no reader may see it missing */
        make_again(s, id, body);
    }
    atomic_store(&s->acknowledged[item], n);
}

static void read_while_writing(size_t cache_bytes) {
    static shared s;
    reader readers[READERS];
    random_source random;
    memset(&s, 0, sizeof s);
    random_seed(&random, 77);
    harness_open(&s.h);
    if (!cache_bytes) {
        for (size_t i = 0; i < s.h.homes_n; i++) {
            item_cache_close(s.h.account->homes[i]->cache);
            s.h.account->homes[i]->cache = item_cache_open(0);
        }
    }
    s.c = harness_container(&s.h, KEY, 400);
    for (unsigned i = 0; i < ITEMS; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"a\",\"n\":0}", i);
        assert_int_equal(harness_write(&s.h, s.c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (reader){.s = &s, .seed = i};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all_the_time, &readers[i]), 0);
    }
    for (int n = 1; n <= WRITES; n++) {
        for (unsigned i = 0; i < ITEMS; i++) {
            write_n(&s, &random, i, n);
        }
    }
    atomic_store(&s.stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_true(readers[i].reads >= READS_MIN);
    }
    container_give(s.c);
    harness_close(&s.h);
}

static void readers_never_see_what_is_older_than_acknowledged(void **state) {
    (void)state;
    read_while_writing(1 << 20);
}

static void nor_without_a_cache(void **state) {
    (void)state;
    read_while_writing(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_there),
        cmocka_unit_test(it_stays_within_its_bytes),
        cmocka_unit_test(large_items_are_left_out),
        cmocka_unit_test(keys_cannot_be_made_to_share_a_bucket),
        cmocka_unit_test(what_is_old_is_not_taken_in),
        cmocka_unit_test(failed_writes_change_no_answer),
        cmocka_unit_test(readers_never_see_what_is_older_than_acknowledged),
        cmocka_unit_test(nor_without_a_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
