/* Any query over items of every shape. The text after the first zero byte is JSON, the value of @d. The query ends within its memory
 * budget, with rows that are JSON or with an error of queries; in small pages with continuations it gives the same rows as at once. */
#include "queryworld.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PAGES_MAX = 40, ROWS_MAX = 60, SMALL_PAGE = 2, MEMORY_MAX = 16 * 1024 * 1024, OVERRUN_MAX = 512 * 1024 };

static budget memory_budget;

static bool is_expected(err code) {
    return code == OK || code == E_BAD_QUERY || code == E_QUERY_TOO_LONG || code == E_QUERY_CARDINALITY || code == E_NOT_IMPLEMENTED ||
           code == E_BAD_REQUEST || code == E_MEMORY || code == E_VALUE_TOO_LARGE;
}

/* Checks the rows as sent to the client. A query may nest deeper than our JSON reader allows. */
static void check_rows(const buf *rows, size_t expected) {
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_error why = {0};
    bson_iter_t it;
    size_t n = 0;
    bson_t document;
    buf_add_byte(&text, '[');
    buf_add_slice(&text, buf_view(rows));
    buf_add_byte(&text, ']');
    err code = json_to_bson(buf_view(&text), NULL, &bson, NULL, &why);
    if (code == OK) {
        assert_true(bson_init_static(&document, (const uint8_t *)bson.p, bson.n) && bson_iter_init(&it, &document));
        while (bson_iter_next(&it)) {
            n++;
        }
        assert_int_equal(n, expected);
    } else {
        assert_true(why.reason && strstr(why.reason, "deep"));
    }
    buf_free(&text);
    buf_free(&bson);
}

/* Reads all rows in pages of `page_rows`; false: the query failed, or there are too many rows. */
static bool run(const items *s, world *w, op *o, const query *q, size_t page_rows, buf *rows, size_t *rows_n_out) {
    buf continuation = buf_init(BUF_NO_LIMIT);
    bool good = true, more = true;
    *rows_n_out = 0;
    for (int pages = 0; more && good; pages++) {
        buf page_text = buf_init(BUF_NO_LIMIT);
        query_page p;
        budget_renew(&memory_budget);
        err code = query_world_page(s, w, o, q, page_rows, &continuation, &p, &page_text);
        assert_true(is_expected(code));
        assert_true(memory_budget.overrun <= OVERRUN_MAX);
        good = code == OK && pages < PAGES_MAX && *rows_n_out + p.outcome.rows <= ROWS_MAX;
        if (code == OK) {
            assert_true(p.outcome.rows <= page_rows);
            check_rows(&page_text, p.outcome.rows);
            buf_add_slice(rows, rows->n && p.outcome.rows ? SLICE_LIT(",") : SLICE_EMPTY);
            buf_add_slice(rows, buf_view(&page_text));
            *rows_n_out += p.outcome.rows;
            more = p.outcome.more;
            assert_true(more == (continuation.n > 0));
        }
        buf_free(&page_text);
    }
    buf_free(&continuation);
    return good;
}

/* Random values differ from page to page. */
static bool is_random(slice text) {
    for (size_t i = 0; i + 4 <= text.n; i++) {
        if (slice_eq_nocase(slice_of(text.p + i, 4), SLICE_LIT("rand"))) {
            return true;
        }
    }
    return false;
}

static void check_pages(const items *s, world *w, op *o, const query *q, slice text) {
    buf whole = buf_init(BUF_NO_LIMIT), parts = buf_init(BUF_NO_LIMIT);
    size_t whole_n, parts_n;
    if (run(s, w, o, q, LIMIT_PAGE_ITEMS_MAX, &whole, &whole_n) && run(s, w, o, q, SMALL_PAGE, &parts, &parts_n) && !is_random(text)) {
        assert_int_equal(whole_n, parts_n);
        assert_true(slice_eq(buf_view(&whole), buf_view(&parts)));
    }
    buf_free(&whole);
    buf_free(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    world *w;
    const items *s = query_world_open(&w);
    const uint8_t *end = n ? memchr(data, 0, n) : NULL;
    slice text = slice_of(data, end ? (size_t)(end - data) : n);
    if (!bson_utf8_validate(text.n ? text.p : "", text.n, true)) { /* checked before a text becomes a query */
        return 0;
    }
    slice json = end ? slice_of(end + 1, n - text.n - 1) : SLICE_EMPTY;
    memory_budget = budget_init(NULL, MEMORY_MAX);
    arena memory = arena_init_counted(&memory_budget);
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root = JSON_OBJECT;
    query_parameter d = {.name = SLICE_LIT("@d"), .value = value_null()};
    if (json.n && json_to_bson(json, NULL, &bson, &root, NULL) == OK) {
        d.value = value_document(root == JSON_OBJECT ? TYPE_OBJECT : TYPE_ARRAY, buf_view(&bson));
    }
    query q;
    op o;
    op_init(&o, &memory, harness_now_s(&w->h));
    err code = query_prepare(&o, &memory, text, &d, 1, NULL, &q);
    assert_true(code == OK || code == E_BAD_QUERY || code == E_MEMORY);
    if (code == OK) {
        check_pages(s, w, &o, &q, text);
    }
    buf_free(&bson);
    arena_free(&memory);
    return 0;
}
