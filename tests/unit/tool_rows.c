/* Items in files: what is written reads back the same; what is malformed is told by its line; any file goes on from any row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "doc/json.h"
#include "tool/progress.h"
#include "tool/rows.h"

static rows_reader *open_text(const char *text, size_t n, rows_format format) {
    rows_reader *r = malloc(sizeof *r);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    rewind(file);
    assert_true(rows_open(r, file, format));
    return r;
}

static void close_reader(rows_reader *r) {
    FILE *file = r->file;
    rows_close(r);
    fclose(file);
    free(r);
}

static void expect_row(rows_reader *r, const char *json, uint64_t line) {
    assert_int_equal(rows_next(r), ROWS_ITEM);
    assert_int_equal(r->row.n, strlen(json));
    assert_memory_equal(r->row.p, json, r->row.n);
    assert_int_equal(r->row_line, line);
}

static void expect_bad(rows_reader *r, rows_result result, const char *why, uint64_t line) {
    assert_int_equal(rows_next(r), result);
    assert_non_null(strstr(r->why, why));
    assert_int_equal(r->row_line, line);
}

static void lines_are_items(void **state) {
    (void)state;
    static const char text[] = "{\"a\":1}\r\n\n  \n{\"b\":\n{\"c\":[1,\"\\n\"]} \n7\n{\"d\":2}";
    rows_reader *r = open_text(text, sizeof text - 1, ROWS_LINES);
    expect_row(r, "{\"a\":1}\r", 1);
    expect_bad(r, ROWS_BAD, "not JSON", 4);
    expect_row(r, "{\"c\":[1,\"\\n\"]} ", 5);
    expect_bad(r, ROWS_BAD, "not JSON", 6);
    expect_row(r, "{\"d\":2}", 7);
    assert_int_equal(rows_next(r), ROWS_END);
    close_reader(r);
}

static void elements_of_an_array_are_items(void **state) {
    (void)state;
    static const char text[] = " [ {\"a\":\"],}\\\"{\"} ,\n[1], {\"b\":{\"c\":[]}}\n,3 ]";
    rows_reader *r = open_text(text, sizeof text - 1, ROWS_ARRAY);
    expect_row(r, "{\"a\":\"],}\\\"{\"}", 1);
    uint64_t offset = r->row_offset;
    expect_bad(r, ROWS_BAD, "must be an object", 2);
    expect_row(r, "{\"b\":{\"c\":[]}}", 2);
    expect_bad(r, ROWS_BAD, "not JSON", 3);
    assert_int_equal(rows_next(r), ROWS_END);
    assert_true(rows_seek(r, offset, 1));
    expect_row(r, "{\"a\":\"],}\\\"{\"}", 1);
    close_reader(r);
    r = open_text("{}", 2, ROWS_ARRAY);
    assert_int_equal(rows_next(r), ROWS_BROKEN);
    close_reader(r);
    r = open_text("[{\"a\":", 6, ROWS_ARRAY);
    assert_int_equal(rows_next(r), ROWS_BROKEN);
    close_reader(r);
    r = open_text("[]", 2, ROWS_ARRAY);
    assert_int_equal(rows_next(r), ROWS_END);
    close_reader(r);
}

static void records_of_a_csv_are_items(void **state) {
    (void)state;
    static const char text[] = "x.y,n,x.z,\"q\"\"q\"\n1,-0.5,\"1\",a b\n\"two\nlines\",007,,null\n1,2\n,,,\nlast,1e400,true,\"\"";
    rows_reader *r = open_text(text, sizeof text - 1, ROWS_CSV);
    expect_row(r, "{\"x\":{\"y\":1,\"z\":\"1\"},\"n\":-0.5,\"q\\\"q\":\"a b\"}", 2);
    expect_row(r, "{\"x\":{\"y\":\"two\\nlines\"},\"n\":\"007\",\"q\\\"q\":null}", 3);
    uint64_t offset = r->row_offset;
    expect_bad(r, ROWS_BAD, "2 fields, but the first line names 4 columns", 5);
    expect_row(r, "{\"x\":{}}", 6);
    expect_row(r, "{\"x\":{\"y\":\"last\",\"z\":true},\"n\":\"1e400\",\"q\\\"q\":\"\"}", 7);
    assert_int_equal(rows_next(r), ROWS_END);
    assert_true(rows_seek(r, offset, 3));
    expect_row(r, "{\"x\":{\"y\":\"two\\nlines\"},\"n\":\"007\",\"q\\\"q\":null}", 3);
    close_reader(r);
}

static void add(rows_writer *w, buf *out, const char *json, bool learns) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    assert_int_equal(json_to_bson(slice_str(json), NULL, &bson, &root, NULL), OK);
    learns ? rows_writer_learn(w, buf_view(&bson)) : rows_add(w, out, buf_view(&bson));
    buf_free(&bson);
}

/* Every format reads back what it has written. */
static void what_is_written_reads_back(void **state) {
    (void)state;
    static const char *const items[] = {
        "{\"id\":\"1\",\"a\":{\"b\":1.5,\"c\":\"true\"},\"t\":\"x,\\\"y\\\"\\r\\nz\"}",
        "{\"id\":\"2\",\"a\":{\"b\":-3,\"c\":\"\"},\"t\":null}",
        "{\"id\":\"3\",\"a\":{\"b\":true,\"c\":\"12\"},\"t\":\"\\u0001\"}",
    };
    for (rows_format format = ROWS_LINES; format <= ROWS_CSV; format++) {
        rows_writer w;
        buf out = buf_init(BUF_NO_LIMIT);
        rows_writer_open(&w, format);
        for (size_t i = 0; i < 3; i++) {
            add(&w, &out, items[i], true);
        }
        rows_begin(&w, &out);
        for (size_t i = 0; i < 3; i++) {
            add(&w, &out, items[i], false);
        }
        rows_end(&w, &out);
        rows_reader *r = open_text(out.p, out.n, format);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(rows_next(r), ROWS_ITEM);
            assert_int_equal(r->row.n, strlen(items[i]));
            assert_memory_equal(r->row.p, items[i], r->row.n);
        }
        assert_int_equal(rows_next(r), ROWS_END);
        close_reader(r);
        rows_writer_close(&w);
        buf_free(&out);
    }
}

static void what_has_no_column_is_counted(void **state) {
    (void)state;
    rows_writer w;
    buf out = buf_init(BUF_NO_LIMIT);
    rows_writer_open(&w, ROWS_CSV);
    rows_writer_columns(&w, SLICE_LIT("id, list"));
    rows_begin(&w, &out);
    add(&w, &out, "{\"id\":\"1\",\"list\":[1,\"a\"]}", false);
    add(&w, &out, "{\"id\":\"2\",\"more\":1}", false);
    assert_int_equal(w.cut, 1);
    static const char expected[] = "id,list\n\"1\",\"[1,\"\"a\"\"]\"\n\"2\",\n";
    assert_int_equal(out.n, sizeof expected - 1);
    assert_memory_equal(out.p, expected, out.n);
    rows_writer_close(&w);
    buf_free(&out);
}

static void progress_tells_rate_and_time_left(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT);
    progress_text(&out, &(progress_now){.items = 12000, .charge = 60000, .part = 0.75, .us = 10000000, .failed = 2}, 0.25);
    buf_add_byte(&out, '\0');
    assert_string_equal(out.p, "12,000 items  1,200/s  6,000 RU/s  75 %  0:05 left  2 failed");
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_items),
        cmocka_unit_test(elements_of_an_array_are_items),
        cmocka_unit_test(records_of_a_csv_are_items),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(what_has_no_column_is_counted),
        cmocka_unit_test(progress_tells_rate_and_time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
