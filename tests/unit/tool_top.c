/* `tesela top` without a terminal: rows from the server's JSON, their order, and screens that keep to their size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "doc/json.h"
#include "tool/top_view.h"

static const char answer[] =
    "{\"now\":1,\"containers\":["
    "{\"database\":\"shop\",\"container\":\"orders\",\"ranges\":2,\"items\":30,\"bytes\":3000,\"indexBytes\":300,\"shareRuPerSecond\":2000."
    "00,"
    "\"ruPerSecond\":1500.50,\"normalizedPercent\":95.5,\"requestsPerSecond\":150,\"throttledPerSecond\":12,\"latencyAverageUs\":850,"
    "\"latencyMaxUs\":12345},"
    "{\"database\":\"shop\",\"container\":\"\\u001b[31mevil\",\"api\":\"mongo\",\"ranges\":1,\"items\":1,\"bytes\":9000,\"indexBytes\":0,"
    "\"shareRuPerSecond\":null,"
    "\"ruPerSecond\":0.00,\"normalizedPercent\":0.0,\"requestsPerSecond\":0,\"throttledPerSecond\":0,\"latencyAverageUs\":0,"
    "\"latencyMaxUs\":0}],"
    "\"ranges\":["
    "{\"database\":\"shop\",\"container\":\"orders\",\"id\":\"0\",\"items\":10,\"bytes\":1000,\"indexBytes\":100,\"shareRuPerSecond\":1000."
    "00,"
    "\"ruPerSecond\":545.50,\"normalizedPercent\":54.5,\"requestsPerSecond\":55,\"throttledPerSecond\":0,\"latencyAverageUs\":700,"
    "\"latencyMaxUs\":900,\"hottest\":{\"key\":\"[\\\"cool\\\"]\",\"ruPerSecond\":1}},"
    "{\"database\":\"shop\",\"container\":\"orders\",\"id\":\"1\",\"items\":20,\"bytes\":2000,\"indexBytes\":200,\"shareRuPerSecond\":1000."
    "00,"
    "\"ruPerSecond\":955.00,\"normalizedPercent\":95.5,\"requestsPerSecond\":95,\"throttledPerSecond\":12,\"latencyAverageUs\":936,"
    "\"latencyMaxUs\":12345,\"hottest\":{\"key\":\"[\\\"hot\\\"]\",\"ruPerSecond\":900}},"
    "{\"database\":\"shop\",\"container\":\"\\u001b[31mevil\",\"id\":\"0\",\"items\":1,\"bytes\":9000,\"indexBytes\":0,\"hottest\":null}],"
    "\"total\":3,\"next\":null}";

static buf bson;

static top_rows read_rows(const char *text) {
    json_root root;
    bson = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(slice_str(text), NULL, &bson, &root, NULL), OK);
    return top_rows_read(buf_view(&bson));
}

static void free_rows(top_rows *rows) {
    free(rows->list);
    buf_free(&bson);
}

static void expect_order(const top_rows *rows, const char *expected) {
    buf text = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < rows->n; i++) {
        const top_row *row = &rows->list[i];
        buf_addf(&text, "%s%c ", slice_eq(row->container, SLICE_LIT("orders")) ? "orders" : "evil", row->range.n ? row->range.p[0] : '*');
    }
    buf_add_byte(&text, '\0');
    assert_string_equal(text.p, expected);
    buf_free(&text);
}

static void rows_are_read(void **state) {
    top_rows rows = read_rows(answer);
    (void)state;
    assert_int_equal(rows.n, 5);
    assert_int_equal(rows.containers, 2);
    assert_int_equal((int)rows.total, 3);
    const top_row *hot = &rows.list[3];
    assert_true(slice_eq(hot->range, SLICE_LIT("1")));
    assert_true(slice_eq(hot->hottest, SLICE_LIT("[\"hot\"]")));
    assert_int_equal((int)hot->bytes, 2200);
    assert_int_equal((int)hot->throttled, 12);
    assert_int_equal((int)rows.list[1].share, 0);
    free_rows(&rows);
}

static void containers_keep_their_ranges(void **state) {
    top_rows rows = read_rows(answer);
    (void)state;
    top_rows_sort(&rows, TOP_BY_NAME);
    expect_order(&rows, "orders* orders0 orders1 evil* evil0 ");
    top_rows_sort(&rows, TOP_BY_RU);
    expect_order(&rows, "orders* orders1 orders0 evil* evil0 ");
    top_rows_sort(&rows, TOP_BY_SIZE);
    expect_order(&rows, "evil* evil0 orders* orders1 orders0 ");
    top_rows_sort(&rows, TOP_BY_LATENCY);
    expect_order(&rows, "orders* orders1 orders0 evil* evil0 ");
    top_rows_sort(&rows, TOP_BY_NAME);
    expect_order(&rows, "orders* orders0 orders1 evil* evil0 ");
    free_rows(&rows);
}

/* Answers that our server never gives. */
static void other_answers_are_survived(void **state) {
    static const char *const texts[] = {
        "{}",
        "{\"containers\":7,\"ranges\":\"x\"}",
        "{\"containers\":[],\"ranges\":[{},{\"id\":\"1\"},[],null,5]}",
        "{\"containers\":[{\"id\":\"1\"},7],\"ranges\":[{\"id\":7,\"hottest\":{\"key\":5},\"ruPerSecond\":\"x\",\"items\":1e300}]}",
        "{\"containers\":[null],\"ranges\":[{\"id\":\"1\",\"normalizedPercent\":-1e300,\"bytes\":1e300},{\"id\":\"2\",\"bytes\":-1}]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        top_rows rows = read_rows(texts[i]);
        top_screen screen = {.columns = 80, .lines = 24, .endpoint = "x"};
        top_server server = {0};
        buf out = buf_init(BUF_NO_LIMIT);
        for (top_order order = 0; order < TOP_ORDERS; order++) {
            top_rows_sort(&rows, order);
            top_draw(&out, &screen, &server, &rows);
            top_write_table(&out, &rows);
        }
        buf_free(&out);
        free_rows(&rows);
    }
}

/* Counts the lines of a screen and their columns, without escapes. Only our own style and erase escapes may occur. */
static size_t measure(const buf *out, size_t *longest) {
    size_t lines = 1, columns = 0;
    *longest = 0;
    for (size_t i = 0; i < out->n; i++) {
        unsigned char c = (unsigned char)out->p[i];
        if (c == '\x1b') {
            i += 2;
            while (out->p[i] == ';' || (out->p[i] >= '0' && out->p[i] <= '9')) {
                i++;
            }
            assert_non_null(strchr("mKJH", out->p[i]));
        } else if (c == '\n') {
            lines++;
            columns = 0;
        } else if (c != '\r') {
            columns += (c & 0xC0) != 0x80;
        }
        *longest = columns > *longest ? columns : *longest;
    }
    return lines;
}

static void a_screen_keeps_to_its_size(void **state) {
    top_rows rows = read_rows(answer);
    top_server server = {
        .uptime_s = 100000, .databases = 1, .containers = 2, .ranges = 3, .connections = 4, .memory_bytes = 5e7, .faults = 2};
    (void)state;
    for (size_t columns = 46; columns <= 240; columns++) {
        top_screen screen = {.columns = columns, .lines = 10, .colour = columns % 2, .endpoint = "localhost:8081"};
        buf out = buf_init(BUF_NO_LIMIT);
        size_t longest;
        top_draw(&out, &screen, &server, &rows);
        assert_int_equal(measure(&out, &longest), 10);
        assert_in_range(longest, 30, columns - 1);
        buf_free(&out);
    }
    free_rows(&rows);
}

static bool holds(const buf *out, const char *text) {
    return memmem(out->p, out->n, text, strlen(text)) != NULL;
}

static void a_screen_says_it_all(void **state) {
    top_rows rows = read_rows(answer);
    top_server server = {.uptime_s = 3700, .databases = 1, .containers = 2, .ranges = 3, .faults = 2};
    top_screen screen = {.columns = 200, .lines = 10, .endpoint = "localhost:8081", .order = TOP_BY_RU};
    buf out = buf_init(BUF_NO_LIMIT);
    (void)state;
    top_rows_sort(&rows, TOP_BY_RU);
    top_draw(&out, &screen, &server, &rows);
    static const char *const texts[] = {"localhost:8081", "1 h 1 min",   "1 database  2 containers",
                                        "2 faults set",   "shop/orders", "95.5%",
                                        "1,500",          "2,000",       "12",
                                        "0.94 ms",        "12 ms",       "[\"hot\"]",
                                        "shop/?[31mevil", "∞",           "8.8 KB",
                                        "by RU"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!holds(&out, texts[i])) {
            fail_msg("the screen does not say %s", texts[i]);
        }
    }
    assert_false(holds(&out, "\x1b[31m")); /* with colours off there are no colour escapes */
    screen.trouble = "no server";
    screen.scroll = 4;
    buf_clear(&out);
    top_draw(&out, &screen, &server, &rows);
    assert_true(holds(&out, "no server"));
    assert_false(holds(&out, "shop/orders"));
    buf_free(&out);
    free_rows(&rows);
}

static void the_table_is_plain(void **state) {
    top_rows rows = read_rows(answer);
    buf out = buf_init(BUF_NO_LIMIT);
    (void)state;
    top_write_table(&out, &rows);
    assert_false(holds(&out, "\x1b"));
    assert_true(holds(&out, "shop/orders                                   1    95.5      955.00     1000.00       12       95"));
    assert_true(holds(&out, "[\"hot\"]\n"));
    assert_true(holds(&out, "evil (mongo) "));
    assert_true(holds(&out, "shop/orders                                 all    95.5"));
    assert_true(holds(&out, "evil (mongo)                      all       -"));
    buf_free(&out);
    free_rows(&rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(containers_keep_their_ranges),
        cmocka_unit_test(other_answers_are_survived),
        cmocka_unit_test(a_screen_keeps_to_its_size),
        cmocka_unit_test(a_screen_says_it_all),
        cmocka_unit_test(the_table_is_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
