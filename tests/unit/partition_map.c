/* The partition map: who owns a point of the hash space, who overlaps a stretch of it, and the way to storage and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include <bson/bson.h>

#include "base/random.h"
#include "partition/map.h"

static const pkey_definition v1 = {.kind = PKEY_HASH, .version = 1, .n = 1};
static const pkey_definition v2 = {.kind = PKEY_HASH, .version = 2, .n = 1};

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
    assert_null(partition_map_build(good, 2, 1));     /* an id not given out yet */
    partition_range bad[2] = {good[0], good[1]};
    bad[1].id = 0;
    assert_null(partition_map_build(bad, 2, 2)); /* a doubled id */
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
    for (int i = 0; i < 20000; i++) { /* any flipped byte: a map or none, never a crash */
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

/* Not a test of speed (sanitizers run it too): a figure to look at, with a bound only gross slips pass. */
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
        cmocka_unit_test(finding_an_owner_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
