/* The partition map: which range owns a point of the hash space, which ranges overlap an interval, writing to storage and reading back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <bson/bson.h>

#include "base/random.h"
#include "partition/map.h"

static const pkey_definition v1 = {.kind = PKEY_HASH, .version = 1, .n = 1};
static const pkey_definition v2 = {.kind = PKEY_HASH, .version = 2, .n = 1};
static const pkey_definition multi = {.kind = PKEY_MULTI_HASH, .version = 2, .n = 3};

static epk bound(const char *hex) {
    epk e;
    assert_true(epk_parse(slice_str(hex), &e));
    return e;
}

/* A container that began with one range, 0, split into 1 and 2, of which 1 split into 3 and 4. */
static partition_map *split_twice(void) {
    static const uint32_t zero[] = {0};
    static const uint32_t zero_one[] = {0, 1};
    partition_range ranges[] = {
        {.id = 3, .rid_prefix = 3, .parents = zero_one, .parents_n = 2, .min = bound(""), .max = bound("10")},
        {.id = 4, .rid_prefix = 4, .parents = zero_one, .parents_n = 2, .min = bound("10"), .max = bound("20")},
        {.id = 2, .rid_prefix = 2, .parents = zero, .parents_n = 1, .min = bound("20"), .max = bound("FF"), .status = PARTITION_SPLITTING},
    };
    partition_map *map = partition_map_build(ranges, 3, 5);
    assert_non_null(map);
    return map;
}

static void a_new_container_has_equal_ranges(void **state) {
    (void)state;
    partition_map *map = partition_map_new(&v2, 4);
    assert_int_equal(map->n, 4);
    assert_int_equal(map->next_id, 4);
    for (uint32_t i = 0; i < 4; i++) {
        epk min;
        epk max;
        epk_boundary(&v2, i, 4, &min);
        epk_boundary(&v2, i + 1, 4, &max);
        assert_int_equal(map->ranges[i].id, i);
        assert_int_equal(map->ranges[i].parents_n, 0);
        assert_string_equal(partition_status_text(map->ranges[i].status), "online");
        assert_int_equal(epk_cmp(&map->ranges[i].min, &min), 0);
        assert_int_equal(epk_cmp(&map->ranges[i].max, &max), 0);
    }
    partition_map_free(map);
}

static void every_key_has_one_owner(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 7, 64, 1000};
    const pkey_definition *definitions[] = {&v1, &v2};
    for (size_t s = 0; s < 2 * sizeof sizes / sizeof sizes[0]; s++) {
        const pkey_definition *d = definitions[s % 2];
        partition_map *map = partition_map_new(d, sizes[s / 2]);
        for (int i = 0; i < 500; i++) {
            pkey key = {.n = 1, .values = {{.type = PKEY_NUMBER, .number = i}}};
            epk e;
            epk_of(d, &key, &e);
            const partition_range *range = partition_map_find(map, &e);
            assert_true(epk_cmp(&range->min, &e) <= 0 && epk_cmp(&e, &range->max) < 0);
        }
        partition_map_free(map);
    }
}

static void a_boundary_belongs_to_the_range_it_starts(void **state) {
    (void)state;
    partition_map *map = split_twice();
    static const struct {
        const char *hex;
        uint32_t id;
    } owners[] = {{"", 3}, {"00", 3}, {"0FFF", 3}, {"10", 4}, {"1000", 4}, {"1FFF", 4}, {"20", 2}, {"FE", 2}, {"FF", 2}, {"FFFF", 2}};
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        epk e = bound(owners[i].hex);
        assert_int_equal(partition_map_find(map, &e)->id, owners[i].id);
    }
    partition_map_free(map);
}

static void ids_are_found_gone_or_unknown(void **state) {
    (void)state;
    partition_map *map = split_twice();
    for (uint32_t id = 2; id <= 4; id++) {
        assert_int_equal(partition_map_by_id(map, id)->id, id);
        assert_false(partition_map_gone(map, id));
    }
    for (uint32_t id = 0; id <= 1; id++) {
        assert_null(partition_map_by_id(map, id));
        assert_true(partition_map_gone(map, id));
    }
    assert_null(partition_map_by_id(map, 5));
    assert_false(partition_map_gone(map, 5));
    assert_false(partition_map_gone(map, UINT32_MAX));
    partition_map_free(map);
}

static void stretches_overlap_a_run_of_ranges(void **state) {
    (void)state;
    partition_map *map = split_twice();
    static const struct {
        const char *min;
        const char *max;
        size_t n;
        uint32_t first;
    } cases[] = {{"", "FF", 3, 3},     {"", "10", 1, 3},       {"", "1000", 2, 3}, {"05", "10", 1, 3}, {"10", "20", 1, 4},
                 {"10", "2000", 2, 4}, {"0FFF", "1000", 2, 3}, {"30", "40", 1, 2}, {"20", "FF", 1, 2}, {"30", "30", 0, 0},
                 {"40", "30", 0, 0},   {"", "", 0, 0},         {"", "00", 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epk min = bound(cases[i].min);
        epk max = bound(cases[i].max);
        const partition_range *first = NULL;
        assert_int_equal(partition_map_overlap(map, &min, &max, &first), cases[i].n);
        if (cases[i].n) {
            assert_int_equal(first->id, cases[i].first);
        }
    }
    partition_map_free(map);
}

static void ranges_that_do_not_tile_are_no_map(void **state) {
    (void)state;
    partition_range good[] = {{.id = 0, .min = bound(""), .max = bound("10")}, {.id = 1, .min = bound("10"), .max = bound("FF")}};
    partition_map *map = partition_map_build(good, 2, 2);
    assert_non_null(map);
    partition_map_free(map);
    assert_null(partition_map_build(good, 0, 2));
    assert_null(partition_map_build(good, 1, 2));     /* ends too early */
    assert_null(partition_map_build(good + 1, 1, 2)); /* starts too late */
    assert_null(partition_map_build(good, 2, 1));     /* an id not below next_id */
    partition_range bad[2] = {good[0], good[1]};
    bad[1].id = 0;
    assert_null(partition_map_build(bad, 2, 2)); /* a duplicate id */
    bad[1] = good[1];
    bad[1].min = bound("11");
    assert_null(partition_map_build(bad, 2, 2)); /* a gap */
    bad[1].min = bound("0F");
    assert_null(partition_map_build(bad, 2, 2)); /* an overlap */
    bad[1] = good[1];
    bad[0].max = bad[1].min = bound("");
    assert_null(partition_map_build(bad, 2, 2)); /* an empty range */
}

static void expect_same(const partition_map *a, const partition_map *b) {
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->next_id, b->next_id);
    for (size_t i = 0; i < a->n; i++) {
        const partition_range *x = &a->ranges[i];
        const partition_range *y = &b->ranges[i];
        assert_int_equal(x->id, y->id);
        assert_int_equal(x->rid_prefix, y->rid_prefix);
        assert_int_equal(x->status, y->status);
        assert_int_equal(x->parents_n, y->parents_n);
        assert_memory_equal(x->parents, y->parents, x->parents_n * sizeof *x->parents);
        assert_int_equal(epk_cmp(&x->min, &y->min), 0);
        assert_int_equal(epk_cmp(&x->max, &y->max), 0);
    }
}

static void maps_come_back_from_storage(void **state) {
    (void)state;
    partition_map *maps[] = {split_twice(), partition_map_new(&v1, 1), partition_map_new(&v1, 5), partition_map_new(&v2, 300)};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        partition_map_write(maps[i], &out);
        partition_map *again = partition_map_read(buf_view(&out));
        assert_non_null(again);
        expect_same(maps[i], again);
        partition_map_free(again);
        partition_map_free(maps[i]);
        buf_free(&out);
    }
}

static void damaged_storage_is_no_map(void **state) {
    (void)state;
    partition_map *map = split_twice();
    buf out = buf_init(BUF_NO_LIMIT);
    partition_map_write(map, &out);
    assert_null(partition_map_read(SLICE_EMPTY));
    assert_null(partition_map_read(SLICE_LIT("\5\0\0\0\0")));
    for (size_t n = 0; n < out.n; n++) {
        partition_map_free(partition_map_read(slice_of(out.p, n)));
    }
    random_source r;
    random_seed(&r, 3);
    for (int i = 0; i < 20000; i++) { /* any changed byte gives a valid map or NULL, never a crash */
        size_t at = random_below(&r, out.n);
        char was = out.p[at];
        out.p[at] = (char)random_u64(&r);
        partition_map_free(partition_map_read(buf_view(&out)));
        out.p[at] = was;
    }
    bson_t *other = BCON_NEW("format", BCON_INT32(2), "nextId", BCON_INT64(1), "ranges", "[", "]");
    assert_null(partition_map_read(slice_of(bson_get_data(other), other->len)));
    bson_destroy(other);
    partition_map_free(map);
    buf_free(&out);
}

/* ---- splitting and merging ---- */

static void expect_parents(const partition_range *range, const uint32_t *parents, uint32_t n) {
    assert_int_equal(range->parents_n, n);
    assert_memory_equal(range->parents, parents, n * sizeof *parents);
}

static void a_split_and_a_merge(void **state) {
    (void)state;
    partition_map *map = partition_map_new(&v2, 2);
    epk cuts[] = {bound("05"), bound("10")};
    partition_map *split = partition_map_reshape(map, 0, 1, cuts, 3);
    assert_int_equal(map->n, 2); /* unchanged */
    assert_int_equal(split->n, 4);
    assert_int_equal(split->next_id, 5);
    static const uint32_t ids[] = {2, 3, 4, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(split->ranges[i].id, ids[i]);
        assert_int_equal(split->ranges[i].rid_prefix, ids[i]);
        expect_parents(&split->ranges[i], (const uint32_t[]){0}, i < 3);
    }
    assert_int_equal(epk_cmp(&split->ranges[1].min, &cuts[0]), 0);
    assert_int_equal(epk_cmp(&split->ranges[1].max, &cuts[1]), 0);
    partition_map *merged = partition_map_reshape(split, 1, 3, NULL, 1);
    assert_int_equal(merged->n, 2);
    assert_int_equal(merged->ranges[1].id, 5);
    expect_parents(&merged->ranges[1], (const uint32_t[]){0, 1, 3, 4}, 4);
    assert_true(partition_map_gone(merged, 4) && !partition_map_gone(merged, 2) && !partition_map_gone(merged, 6));
    partition_map_free(merged);
    partition_map_free(split);
    partition_map_free(map);
}

static void cuts_must_ascend_inside(void **state) {
    (void)state;
    partition_map *map = split_twice();
    epk at_min[] = {bound("10")};
    epk at_max[] = {bound("20")};
    epk below[] = {bound("0F")};
    epk same[] = {bound("15"), bound("15")};
    epk falling[] = {bound("16"), bound("15")};
    epk start[] = {bound("")};
    epk end[] = {bound("FF")};
    assert_null(partition_map_reshape(map, 1, 1, at_min, 2));
    assert_null(partition_map_reshape(map, 1, 1, at_max, 2));
    assert_null(partition_map_reshape(map, 1, 1, below, 2));
    assert_null(partition_map_reshape(map, 1, 1, same, 3));
    assert_null(partition_map_reshape(map, 1, 1, falling, 3));
    assert_null(partition_map_reshape(map, 0, 1, start, 2));
    assert_null(partition_map_reshape(map, 2, 1, end, 2));
    partition_map *moved = partition_map_reshape(map, 0, 3, at_min, 2); /* a cut may be at an old boundary */
    assert_int_equal(moved->n, 2);
    partition_map_free(moved);
    partition_map_free(map);
}

static void ranges_that_are_not_there_cannot_change(void **state) {
    (void)state;
    partition_map *map = split_twice();
    assert_null(partition_map_reshape(map, 0, 0, NULL, 1));
    assert_null(partition_map_reshape(map, 3, 1, NULL, 1));
    assert_null(partition_map_reshape(map, 2, 2, NULL, 1));
    assert_null(partition_map_reshape(map, 1, SIZE_MAX, NULL, 1));
    assert_null(partition_map_reshape(map, SIZE_MAX, 2, NULL, 1));
    assert_null(partition_map_reshape(map, 0, 1, NULL, 0));
    partition_map_free(map);
}

static void ids_and_ranges_have_an_end(void **state) {
    (void)state;
    partition_range one = {.id = 0, .min = epk_min(), .max = epk_max()};
    partition_map *late = partition_map_build(&one, 1, PARTITION_IDS_MAX - 2);
    epk cuts[] = {bound("10"), bound("20")};
    assert_null(partition_map_reshape(late, 0, 1, cuts, 3));
    partition_map *last = partition_map_reshape(late, 0, 1, cuts, 2);
    assert_int_equal(last->ranges[1].id, PARTITION_IDS_MAX - 1);
    assert_null(partition_map_reshape(last, 0, 2, NULL, 1));
    partition_map_free(last);
    partition_map_free(late);
    partition_map *full = partition_map_new(&v2, PARTITION_RANGES_MAX);
    epk middle;
    assert_true(epk_middle(&v2, &full->ranges[7].min, &full->ranges[7].max, &middle));
    assert_null(partition_map_reshape(full, 7, 1, &middle, 2));
    assert_null(partition_map_reshape(full, 7, 1, NULL, UINT32_MAX));
    partition_map *fewer = partition_map_reshape(full, 7, 2, NULL, 1);
    assert_int_equal(fewer->n, PARTITION_RANGES_MAX - 1);
    partition_map_free(fewer);
    partition_map_free(full);
}

static void only_the_newest_parents_are_kept(void **state) {
    (void)state;
    partition_map *map = partition_map_new(&v2, 600);
    partition_map *merged = partition_map_reshape(map, 0, 600, NULL, 1);
    const partition_range *range = &merged->ranges[0];
    assert_int_equal(range->parents_n, PARTITION_PARENTS_MAX);
    for (uint32_t i = 0; i < range->parents_n; i++) {
        assert_int_equal(range->parents[i], 600 - PARTITION_PARENTS_MAX + i);
    }
    epk cut = bound("10");
    partition_map *again = partition_map_reshape(merged, 0, 1, &cut, 2);
    assert_int_equal(again->ranges[1].parents_n, PARTITION_PARENTS_MAX);
    assert_int_equal(again->ranges[1].parents[0], 600 - PARTITION_PARENTS_MAX + 1);
    assert_int_equal(again->ranges[1].parents[PARTITION_PARENTS_MAX - 1], 600);
    assert_true(partition_map_gone(again, 0)); /* too old to be among the parents, but still gone */
    partition_map_free(again);
    partition_map_free(merged);
    partition_map_free(map);
}

/* A model of the map: for some keys, in EPK order, the id of the owning range and the ids of all former owners. */
enum { MODEL_KEYS = 300, MODEL_IDS = 2000, MODEL_STEPS = 120 };

typedef struct model {
    const pkey_definition *definition;
    epk keys[MODEL_KEYS];
    uint32_t owners[MODEL_KEYS];
    bool alive[MODEL_IDS];
    uint32_t next_id;
} model;

static int epk_order(const void *a, const void *b) {
    return epk_cmp(a, b);
}

static pkey random_key(const pkey_definition *definition, random_source *r) {
    pkey key = {.n = definition->n};
    for (size_t i = 0; i < key.n; i++) { /* few different values at the upper levels, so that many keys share prefixes */
        key.values[i] = (pkey_value){.type = PKEY_NUMBER, .number = (double)random_below(r, i + 1 < key.n ? 5 : 1u << 30)};
    }
    return key;
}

static void model_start(model *m, const pkey_definition *definition, const partition_map *map, random_source *r) {
    *m = (model){.definition = definition, .next_id = map->next_id};
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        pkey key = random_key(definition, r);
        epk_of(definition, &key, &m->keys[i]);
    }
    qsort(m->keys, MODEL_KEYS, sizeof *m->keys, epk_order);
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        m->owners[i] = partition_map_find(map, &m->keys[i])->id;
    }
    for (size_t i = 0; i < map->n; i++) {
        m->alive[map->ranges[i].id] = true;
    }
}

/* Cuts between adjacent keys, or in the middle of a range. Returns how many. */
static uint32_t random_cuts(const model *m, const partition_range *range, random_source *r, epk *cuts, uint32_t most) {
    uint32_t n = 0;
    for (size_t i = 1; i < MODEL_KEYS && n < most; i++) {
        bool inside = epk_cmp(&range->min, &m->keys[i - 1]) <= 0 && epk_cmp(&m->keys[i], &range->max) < 0;
        if (inside && epk_cmp(&m->keys[i - 1], &m->keys[i]) < 0 && random_below(r, 4) == 0) {
            epk_cut(m->definition, &m->keys[i - 1], &m->keys[i], &cuts[n++]);
        }
    }
    if (n == 0 && epk_middle(m->definition, &range->min, &range->max, &cuts[0])) {
        n = 1;
    }
    return n;
}

static void model_reshape(model *m, const partition_map *map, size_t first, size_t n, const epk *cuts, uint32_t parts) {
    for (size_t i = 0; i < n; i++) {
        m->alive[map->ranges[first + i].id] = false;
    }
    for (size_t k = 0; k < MODEL_KEYS; k++) {
        if (!m->alive[m->owners[k]]) {
            uint32_t part = 0;
            while (part + 1 < parts && epk_cmp(&cuts[part], &m->keys[k]) <= 0) {
                part++;
            }
            m->owners[k] = m->next_id + part;
        }
    }
    for (uint32_t i = 0; i < parts; i++) {
        assert_true(m->next_id < MODEL_IDS && !m->alive[m->next_id]);
        m->alive[m->next_id++] = true;
    }
}

static void expect_tiling(const partition_map *map) {
    epk at = epk_min();
    for (size_t i = 0; i < map->n; i++) {
        assert_int_equal(epk_cmp(&map->ranges[i].min, &at), 0);
        assert_true(epk_cmp(&map->ranges[i].min, &map->ranges[i].max) < 0);
        at = map->ranges[i].max;
    }
    epk end = epk_max();
    assert_int_equal(epk_cmp(&at, &end), 0);
}

static void expect_ancestry(const partition_range *range, const model *m) {
    for (uint32_t i = 0; i < range->parents_n; i++) {
        assert_true(range->parents[i] < range->id && !m->alive[range->parents[i]]);
        assert_true(i == 0 || range->parents[i - 1] < range->parents[i]);
    }
}

static void expect_model(const partition_map *map, const model *m) {
    expect_tiling(map);
    assert_int_equal(map->next_id, m->next_id);
    size_t alive = 0;
    for (uint32_t id = 0; id < m->next_id + 2; id++) {
        const partition_range *range = partition_map_by_id(map, id);
        assert_int_equal(range != NULL, m->alive[id]);
        assert_int_equal(partition_map_gone(map, id), id < m->next_id && !m->alive[id]);
        assert_true(range == NULL || range->id == id);
        alive += m->alive[id];
    }
    assert_int_equal(map->n, alive);
    for (size_t k = 0; k < MODEL_KEYS; k++) {
        assert_int_equal(partition_map_find(map, &m->keys[k])->id, m->owners[k]);
    }
    for (size_t i = 0; i < map->n; i++) {
        expect_ancestry(&map->ranges[i], m);
    }
}

static partition_map *random_reshape(model *m, partition_map *map, random_source *r) {
    epk cuts[8];
    size_t first = random_below(r, map->n);
    size_t n = 1;
    uint32_t parts = 1;
    if (random_below(r, 100) < 55) {
        parts = 1 + random_cuts(m, &map->ranges[first], r, cuts, 1 + (uint32_t)random_below(r, 7));
    } else {
        n = 1 + random_below(r, map->n - first < 6 ? map->n - first : 6);
    }
    partition_map *next = partition_map_reshape(map, first, n, cuts, parts);
    assert_non_null(next);
    model_reshape(m, map, first, n, cuts, parts);
    partition_map_free(map);
    return next;
}

static void random_reshapes_follow_the_model(void **state) {
    (void)state;
    const pkey_definition *definitions[] = {&v1, &v2, &multi};
    static model m;
    for (uint64_t seed = 1; seed <= 45; seed++) {
        random_source r;
        random_seed(&r, seed);
        const pkey_definition *d = definitions[seed % 3];
        partition_map *map = partition_map_new(d, 1 + (uint32_t)random_below(&r, 20));
        model_start(&m, d, map, &r);
        for (int step = 0; step < MODEL_STEPS; step++) {
            map = random_reshape(&m, map, &r);
            expect_model(map, &m);
        }
        buf out = buf_init(BUF_NO_LIMIT);
        partition_map_write(map, &out);
        partition_map *again = partition_map_read(buf_view(&out));
        assert_non_null(again);
        expect_same(map, again);
        expect_model(again, &m);
        partition_map_free(again);
        partition_map_free(map);
        buf_free(&out);
    }
}

/* Prints a figure rather than testing speed, since it also runs under sanitizers; the bound only catches gross regressions. */
static void finding_an_owner_is_quick(void **state) {
    (void)state;
    enum { KEYS = 1024, ROUNDS = 200 };
    static epk keys[KEYS];
    for (int i = 0; i < KEYS; i++) {
        pkey key = {.n = 1, .values = {{.type = PKEY_NUMBER, .number = i}}};
        epk_of(&v2, &key, &keys[i]);
    }
    partition_map *map = partition_map_new(&v2, 100);
    struct timespec from;
    struct timespec to;
    uint64_t sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KEYS; i++) {
            sum += partition_map_find(map, &keys[i])->id;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / (KEYS * ROUNDS);
    printf("finding the owner among 100 ranges: %.0f ns\n", ns);
    assert_true(sum > 0 && ns < 10000);
    partition_map_free(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_container_has_equal_ranges),
        cmocka_unit_test(every_key_has_one_owner),
        cmocka_unit_test(a_boundary_belongs_to_the_range_it_starts),
        cmocka_unit_test(ids_are_found_gone_or_unknown),
        cmocka_unit_test(stretches_overlap_a_run_of_ranges),
        cmocka_unit_test(ranges_that_do_not_tile_are_no_map),
        cmocka_unit_test(maps_come_back_from_storage),
        cmocka_unit_test(damaged_storage_is_no_map),
        cmocka_unit_test(a_split_and_a_merge),
        cmocka_unit_test(cuts_must_ascend_inside),
        cmocka_unit_test(ranges_that_are_not_there_cannot_change),
        cmocka_unit_test(ids_and_ranges_have_an_end),
        cmocka_unit_test(only_the_newest_parents_are_kept),
        cmocka_unit_test(random_reshapes_follow_the_model),
        cmocka_unit_test(finding_an_owner_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
