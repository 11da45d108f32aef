/* Conditions, orders and continuations of finds: as arbitrary BSON bytes, or as JSON so that the fuzzer gets further. An accepted input
 * gives the same items with the index, without it, and in pages. */
#include "query/find.h"
#include "queryworld.h"

enum { ROWS_MAX = 64, PAGES_MAX = 100 };

typedef struct answer {
    uint64_t numbers[ROWS_MAX];
    size_t n;
} answer;

static bool take(void *context, const query_found *row) {
    answer *a = context;
    if (a->n == ROWS_MAX) {
        return false;
    }
    a->numbers[a->n++] = row->head.number;
    return true;
}

static bool is_expected(err code) {
    return code == OK || code == E_BAD_REQUEST || code == E_BAD_QUERY || code == E_BAD_CONTINUATION || code == E_QUERY_TOO_LONG ||
           code == E_VALUE_TOO_LARGE;
}

static err page(const items *s, world *w, arena *a, const query_find *f, slice *from, size_t rows, bool scans, answer *into) {
    query_find_page *p = arena_alloc(a, sizeof *p);
    op o;
    op_init(&o, a, harness_now_s(&w->h));
    query_find_init(p, s, &o, w->c, f, *from, take, into);
    p->page.ask.rows_max = rows;
    p->page.ask.scans = scans;
    p->page.ask.until_us = clock_monotonic_us(&clock_system) + QUERY_WORLD_PAGE_US;
    err code = query_find_run(p);
    assert_true(is_expected(code));
    *from = p->next;
    return code;
}

static slice next_part(slice *rest) {
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    slice part = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);
    *rest = slice_skip(*rest, part.n + (end != NULL));
    return part;
}

/* Converts JSON to BSON, or returns the bytes as they are. */
static slice bytes_of(arena *a, slice part, bool json) {
    buf b = buf_init(BUF_NO_LIMIT);
    json_root root;
    bool read = json && part.n && json_to_bson(part, NULL, &b, &root, NULL) == OK;
    slice bytes = arena_copy(a, read ? buf_view(&b) : part);
    buf_free(&b);
    return bytes;
}

/* Compares all results by the index, in pages and by a scan. */
static void compare(const items *s, world *w, arena *a, const query_find *f) {
    answer whole = {0}, pages = {0}, scanned = {0};
    slice from = SLICE_EMPTY, at = SLICE_EMPTY;
    bool one = page(s, w, a, f, &from, ROWS_MAX, false, &whole) == OK && !from.n;
    from = SLICE_EMPTY;
    bool other = page(s, w, a, f, &from, ROWS_MAX, true, &scanned) == OK && !from.n;
    if (!one || !other) {
        return;
    }
    assert_true(whole.n == scanned.n && memcmp(whole.numbers, scanned.numbers, whole.n * sizeof *whole.numbers) == 0);
    for (int n = 0; n == 0 || at.n; n++) {
        assert_true(n < PAGES_MAX);
        if (page(s, w, a, f, &at, 2, false, &pages) != OK) {
            return;
        }
    }
    assert_true(whole.n == pages.n && memcmp(whole.numbers, pages.numbers, whole.n * sizeof *whole.numbers) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    world *w;
    const items *s = query_world_open(&w);
    if (n < 1) {
        return 0;
    }
    arena a = arena_init();
    slice rest = slice_of(data + 1, n - 1);
    bool json = data[0] & 1;
    query_find f = {.limit = data[0] & 2 ? 3 : UINT64_MAX, .skip = data[0] & 4 ? 2 : 0, .scope = query_scope_all()};
    f.where = bytes_of(&a, next_part(&rest), json);
    f.order = bytes_of(&a, next_part(&rest), json);
    slice from = bytes_of(&a, rest, false);
    answer into = {0};
    if (from.n) {
        page(s, w, &a, &f, &from, 2, false, &into);
    }
    compare(s, w, &a, &f);
    arena_free(&a);
    return 0;
}
