/* Charges: the service's table, and charges observed on it, to 0.01 RU. Bodies are counted by the same functions as in requests. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "doc/json.h"
#include "index/terms.h"
#include "throughput/charge.h"

static void assert_ru(double ru, double expected) {
    if (fabs(ru - expected) >= 0.005) {
        fail_msg("%f RU, expected %f", ru, expected);
    }
}

/* ---- the published table ---- */

static const double table[][3] = {{1, 1.00, 4.95},     {2, 1.04, 6.29},      {4, 1.14, 6.67},        {8, 1.33, 7.04},
                                  {16, 1.67, 9.52},    {32, 2.19, 11.23},    {64, 4.76, 22.67},      {128, 9.95, 48.19},
                                  {256, 20.28, 98.29}, {512, 40.95, 184.57}, {1024, 145.90, 625.00}, {2048, 291.80, 1250.00}};

static void the_published_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t bytes = (size_t)table[i][0] * 1024;
        assert_ru(charge_read(bytes), table[i][1]);
        assert_ru(charge_create(bytes, 0), table[i][2]);
    }
}

static void small_items_cost_what_one_kilobyte_does(void **state) {
    (void)state;
    assert_ru(charge_read(0), 1);
    assert_ru(charge_read(1023), 1);
    assert_ru(charge_create(5, 0), 4.95);
}

static void between_the_points_it_is_a_line(void **state) {
    (void)state;
    assert_ru(charge_read(1536), 1.02);
    assert_ru(charge_read(96 * 1024), (4.76 + 9.95) / 2);
    assert_ru(charge_create(3 * 1024, 0), (6.29 + 6.67) / 2);
    assert_ru(charge_read(4096 * 1024), 291.80 + 2 * 145.90); /* beyond the end: the last slope */
}

static void more_bytes_never_cost_less(void **state) {
    (void)state;
    double read = 0, write = 0;
    for (size_t bytes = 0; bytes < 5 << 20; bytes += 777) {
        assert_true(charge_read(bytes) >= read && charge_create(bytes, 0) >= write);
        read = charge_read(bytes);
        write = charge_create(bytes, 0);
    }
}

/* The rules on the same page of the documentation: 1 KB with 10 terms. */
static void the_rules_in_words(void **state) {
    (void)state;
    assert_true(fabs(charge_create(1024, 10) - 7) < 0.2);
    assert_true(fabs(charge_replace(1024, 2) - 10.8) < 0.6);
    assert_true(fabs(charge_patch(1024, 2, 2) - 11.6) < 0.6);
    assert_ru(charge_delete(1024, 10), charge_create(1024, 10));
    assert_ru(charge_patch(1024, 2, 2) - charge_replace(1024, 2), 0.8);
}

/* ---- charges observed on the hosted service ---- */

static const index_policy everything = {.rest_included = true};

static buf bson_of(const char *json) {
    buf b = buf_init(BUF_NO_LIMIT);
    json_root root;
    assert_int_equal(json_to_bson(slice_str(json), NULL, &b, &root, NULL), OK);
    return b;
}

static double create_of(const char *json) {
    buf b = bson_of(json);
    double ru = charge_create(b.n, index_terms(&everything, buf_view(&b)));
    buf_free(&b);
    return ru;
}

static double replace_of(const char *before, const char *after) {
    arena a = arena_init();
    buf old = bson_of(before), new = bson_of(after);
    double ru = charge_replace(new.n, index_terms_changed(&a, &everything, buf_view(&old), buf_view(&new)));
    buf_free(&old);
    buf_free(&new);
    arena_free(&a);
    return ru;
}

static void calibration_points(void **state) {
    (void)state;
    static const char item[] = "{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"s\":\"x\"}";
    assert_ru(charge_read(sizeof item), 1);
    assert_ru(create_of(item), 6.67);
    buf b = bson_of(item);
    assert_ru(charge_delete(b.n, index_terms(&everything, buf_view(&b))), 6.67);
    buf_free(&b);
    assert_ru(replace_of(item, "{\"id\":\"1\",\"pk\":\"a\",\"n\":2,\"s\":\"x\"}"), 10.67);
    assert_ru(replace_of(item, "{\"id\":\"1\",\"pk\":\"a\",\"n\":2,\"s\":\"x\",\"more\":true}"), 11.05);
    assert_ru(2 * create_of("{\"id\":\"1\",\"pk\":\"a\",\"n\":1}"), 12.57);
    assert_ru(create_of("{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"s\":\"x\",\"t\":2}"), 7.05);
    assert_ru(100 * create_of("{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"s\":\"x\",\"t\":2}"), 704.76);
    assert_ru(CHARGE_THROTTLED, 0.38);
    assert_ru(CHARGE_METADATA_READ, 2);
    assert_ru(CHARGE_METADATA_WRITE, 1);
}

/* ---- queries ---- */

static double page_of(size_t items, size_t bytes) {
    return CHARGE_QUERY + charge_query_items(0, (double)items * charge_query_weight(bytes));
}

static void query_named_items(void **state) {
    (void)state;
    assert_ru(page_of(0, 0), 2.25);
    assert_true(page_of(1, 100) >= 2.255 && page_of(1, 100) < 2.265); /* 2.26 */
    assert_ru(page_of(1000, 100), 17.16);
    assert_ru(page_of(2500, 100), 34.72);
    assert_true(fabs(page_of(60951, 6563) - 4059.95) < 1);
    double million = page_of(1000000, 1024);
    assert_true(million > 10000 && million < 15000);
}

/* Charging item by item gives the same sum as charging all at once. */
static void items_of_a_query_add_up(void **state) {
    (void)state;
    double weight = 0, ru = 0;
    for (size_t i = 0; i < 3000; i++) {
        double one = charge_query_weight(i % 7 * 900);
        ru += charge_query_items(weight, one);
        weight += one;
    }
    assert_true(fabs(ru - charge_query_items(0, weight)) < 1e-6);
}

static void larger_items_and_rows_cost_a_query_more(void **state) {
    (void)state;
    assert_ru(charge_query_weight(0), 1);
    assert_ru(charge_query_weight(1024), 1);
    assert_true(charge_query_weight(1025) > 1);
    assert_ru(charge_query_row_bytes(1024), 0);
    assert_ru(charge_query_row_bytes(101 * 1024), 3);
    for (size_t bytes = 1024; bytes < 2 << 20; bytes *= 2) {
        assert_true(charge_query_weight(2 * bytes) > charge_query_weight(bytes));
        assert_true(charge_query_row_bytes(2 * bytes) > charge_query_row_bytes(bytes));
    }
    assert_true(CHARGE_ENTRY * 10 < charge_query_items(0, 1));
}

static void a_search_costs_by_what_a_graph_looks_at(void **state) {
    (void)state;
    assert_ru(charge_query_search(100000, 110), 0.01 * 110 * log2(100001));
    assert_ru(charge_query_search(50, 110), 0.5); /* no more than all vectors */
    assert_ru(charge_query_search(0, 110), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_table),
        cmocka_unit_test(small_items_cost_what_one_kilobyte_does),
        cmocka_unit_test(between_the_points_it_is_a_line),
        cmocka_unit_test(more_bytes_never_cost_less),
        cmocka_unit_test(the_rules_in_words),
        cmocka_unit_test(calibration_points),
        cmocka_unit_test(query_named_items),
        cmocka_unit_test(items_of_a_query_add_up),
        cmocka_unit_test(larger_items_and_rows_cost_a_query_more),
        cmocka_unit_test(a_search_costs_by_what_a_graph_looks_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
