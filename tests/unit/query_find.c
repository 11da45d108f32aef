/* Finding items by conditions: the items are those that a simple filter over all items passes, with the index and without it, over several
 * ranges, with splits and merges between pages, in order, with ties. The plan, the charges and the text of explain are those of the
 * equivalent query text.
 *
 * Random items and conditions, over a store in memory and over RocksDB. A failure prints its seed; SEEDS=from-to runs others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"
#include "query/explain.h"
#include "query/filter.h"
#include "query/find.h"
#include "rounds.h"

enum { ITEMS = 300, LARGE = 160, SEEDS = 3, FINDS = 60 };

static harness h;
static container *c;
static random_source dice;
static uint64_t seed;

static uint64_t roll(uint64_t n) {
    return random_below(&dice, n);
}

/* ---- a simple filter, to compare with ---- */

static int type_of(const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_NULL:
        return 1;
    case BSON_TYPE_BOOL:
        return 2;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
        return 3;
    case BSON_TYPE_UTF8:
        return 4;
    case BSON_TYPE_ARRAY:
        return 5;
    default:
        return 6;
    }
}

static double number_of(const doc_element *e) {
    return e->type == BSON_TYPE_INT32   ? doc_load_i32(e->value.p)
           : e->type == BSON_TYPE_INT64 ? (double)doc_load_i64(e->value.p)
                                        : doc_load_double(e->value.p);
}

/* For scalars of the same type. */
static int compare(const doc_element *a, const doc_element *b) {
    double x = 0, y = 0;
    switch (type_of(a)) {
    case 1:
        return 0;
    case 2:
        return a->value.p[0] - b->value.p[0];
    case 3:
        x = number_of(a);
        y = number_of(b);
        return (x > y) - (x < y);
    default:
        return slice_cmp(doc_element_text(a), doc_element_text(b));
    }
}

static bool equal(const doc_element *a, const doc_element *b) {
    return type_of(a) == type_of(b) && (type_of(a) < 5 ? compare(a, b) == 0 : slice_eq(a->value, b->value));
}

static bool get(slice document, const char *name, doc_element *e) {
    uint64_t passed = 0;
    return doc_find_member_counted(document, slice_str(name), e, &passed);
}

static bool holds_bound(slice condition, const char *name, const doc_element *value) {
    doc_element bound;
    if (!get(condition, name, &bound)) {
        return true;
    }
    if (type_of(&bound) != type_of(value) || type_of(value) >= 5) {
        return false;
    }
    int order = compare(value, &bound);
    return name[0] == 'g' ? (name[1] == 'e' ? order >= 0 : order > 0) : (name[1] == 'e' ? order <= 0 : order < 0);
}

static bool is_type(slice name, const doc_element *value) {
    static const char *const names[] = {"", "null", "bool", "number", "string", "array", "object"};
    return slice_eq(name, slice_str("primitive")) ? type_of(value) < 5 : slice_eq(name, slice_str(names[type_of(value)]));
}

static bool test_value(slice condition, const doc_element *value) {
    doc_element e, each;
    doc_walk w;
    bool any = false;
    if (get(condition, "eq", &e)) {
        return equal(value, &e);
    }
    if (get(condition, "in", &e)) {
        for (doc_walk_init(&w, e.value); doc_walk_next(&w, &each);) {
            any = any || equal(value, &each);
        }
        return any;
    }
    if (get(condition, "begins", &e)) {
        return type_of(value) == 4 && slice_starts(doc_element_text(value), doc_element_text(&e));
    }
    if (get(condition, "is", &e)) {
        return is_type(doc_element_text(&e), value);
    }
    return get(condition, "exists", &e) || (holds_bound(condition, "ge", value) && holds_bound(condition, "gt", value) &&
                                            holds_bound(condition, "le", value) && holds_bound(condition, "lt", value));
}

/* Whether any value at the path passes. */
static bool test_path(slice condition, const doc_element *at, doc_walk steps) {
    doc_element step, next;
    doc_walk w;
    bool any = false;
    if (!doc_walk_next(&steps, &step)) {
        return test_value(condition, at);
    }
    if (step.type == BSON_TYPE_UTF8) {
        return at->type == BSON_TYPE_DOCUMENT && get(at->value, doc_element_text(&step).p, &next) && test_path(condition, &next, steps);
    }
    if (at->type == BSON_TYPE_ARRAY) {
        for (doc_walk_init(&w, at->value); doc_walk_next(&w, &next);) {
            any = any || test_path(condition, &next, steps);
        }
    }
    return any;
}

static bool passes(slice condition, slice body) {
    doc_element e, each, root = {.type = BSON_TYPE_DOCUMENT, .value = body};
    doc_walk w;
    bool all = get(condition, "and", &e), any = false;
    if (all || get(condition, "or", &e)) {
        for (doc_walk_init(&w, e.value); doc_walk_next(&w, &each);) {
            bool held = passes(each.value, body);
            any = any || held;
            all = all && held;
        }
        return get(condition, "and", &e) ? all : any;
    }
    if (get(condition, "filter", &e)) { /* the filter of these tests: the id ends with this digit */
        doc_element with, digit, id;
        assert_true(get(condition, "with", &with) && get(with.value, "digit", &digit) && get(body, "id", &id));
        slice text = doc_element_text(&id);
        return text.p[text.n - 1] - '0' == (int)number_of(&digit);
    }
    assert_true(get(condition, "at", &e));
    doc_walk_init(&w, e.value);
    bool found = test_path(condition, &root, w);
    return get(condition, "exists", &e) && !e.value.p[0] ? !found : found;
}

/* ---- a custom filter ---- */

static unsigned asked;
static err filter_error;
static uint64_t filter_steps;

static err prepare_digit(op *o, const container *of, slice argument, const void **ready_out) {
    doc_element e;
    (void)of;
    if (!argument.n || !get(argument, "digit", &e) || type_of(&e) != 3) {
        return op_fail(o, E_BAD_REQUEST, "The filter needs a digit.");
    }
    int *digit = arena_new(o->arena, int);
    *digit = (int)number_of(&e);
    *ready_out = digit;
    return OK;
}

static err ends_with_digit(op *o, const query_filter_input *in, uint64_t *steps, bool *passes_out) {
    doc_element id;
    (void)o;
    asked++;
    if (filter_steps >= *steps) {
        *steps = 0;
        return E_QUERY_TOO_LONG;
    }
    *steps -= filter_steps;
    assert_true(get(in->body, "id", &id) && in->number > 0 && in->version > 0 && in->ts > 0);
    slice text = doc_element_text(&id);
    *passes_out = text.p[text.n - 1] - '0' == *(const int *)in->ready;
    return filter_error;
}

static const query_filter_kind digits = {.id = QUERY_FILTER_TESTS, .name = "digit", .prepare = prepare_digit, .passes = ends_with_digit};

/* ---- items ---- */

static void add_scalar(buf *out) {
    static const char *const words[] = {"\"\"", "\"a\"", "\"ab\"", "\"abc\"", "\"b\"", "\"é\""};
    static const char x70[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    static const char *const others[] = {"null", "true", "false"};
    uint64_t kind = roll(10);
    if (kind < 5) {
        buf_addf(out, roll(5) ? "%d" : "%d.5", (int)roll(12) - 4);
    } else if (kind < 7) {
        buf_addf(out, "%s", words[roll(6)]);
    } else if (kind < 8) { /* longer than the index holds in full */
        buf_addf(out, "\"%s%u\"", x70, (unsigned)roll(3));
    } else {
        buf_addf(out, "%s", others[roll(3)]);
    }
}

static void add_value(buf *out) {
    static const char *const others[] = {"[]", "[1]", "[1,2]", "{}", "{\"x\":1}"};
    roll(8) ? add_scalar(out) : buf_addf(out, "%s", others[roll(5)]);
}

static void add_member(buf *out, const char *name) {
    if (roll(4)) {
        buf_addf(out, ",\"%s\":", name);
        add_value(out);
    }
}

static void add_lists(buf *out) {
    buf_add_lit(out, ",\"t\":[");
    for (uint64_t i = 0, n = roll(4); i < n; i++) {
        buf_add(out, ",", i > 0);
        add_scalar(out);
    }
    buf_add_lit(out, "],\"k\":[");
    for (uint64_t i = 0, n = roll(3); i < n; i++) {
        buf_addf(out, "%s{\"v\":", i ? "," : "");
        add_scalar(out);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
}

static void make_items(void) {
    buf text = buf_init(BUF_NO_LIMIT);
    for (unsigned i = 0; i < ITEMS + LARGE; i++) {
        char partition[16] = "large";
        if (i >= LARGE) {
            snprintf(partition, sizeof partition, "p%u", (unsigned)roll(12));
        }
        text.n = 0;
        buf_addf(&text, "{\"id\":\"%u\",\"p\":\"%s\",\"n\":%u", i, partition, (unsigned)roll(20));
        add_member(&text, "a");
        add_member(&text, "b");
        buf_add_lit(&text, ",\"o\":{\"y\":0");
        add_member(&text, "x");
        buf_add_byte(&text, '}');
        add_lists(&text);
        buf_add(&text, "}", 2);
        assert_int_equal(
            harness_write(&h, c, ITEM_CREATE, arena_text(&h.arena, arena_printf(&h.arena, "[\"%s\"]", partition)), NULL, text.p), OK);
    }
    buf_free(&text);
}

static const char settings[] =
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/p\"],\"version\":2},\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],"
    "\"excludedPaths\":[{\"path\":\"/b/?\"}],\"compositeIndexes\":[[{\"path\":\"/a\",\"order\":\"ascending\"},"
    "{\"path\":\"/n\",\"order\":\"descending\"}]]}}";

static void change_tiles(void) {
    const container_tiles *tiles = c->space->newest;
    size_t n = tiles->map->n, i = roll(n);
    switch (roll(4)) {
    case 0:
    case 1:
        if (n < 8) {
            err code = account_split(h.account, harness_op(&h), c, tiles->ranges[i]->id, 2);
            assert_true(code == OK || code == E_BAD_REQUEST);
        }
        break;
    case 2:
        if (i + 1 < n) {
            assert_int_equal(account_merge(h.account, harness_op(&h), c, tiles->ranges[i]->id, tiles->ranges[i + 1]->id), OK);
        }
        break;
    default:
        harness_move(&h, c, roll(3) ? 20 : 1000);
    }
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void open_world(store *inner) {
    harness_open_on(&h, inner);
    random_seed(&dice, seed);
    query_filter_register(&digits);
    c = harness_container(&h, settings, 0);
    make_items();
}

static void close_world(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

/* ---- random conditions and orders ---- */

static const char *const paths[] = {"[\"a\"]", "[\"b\"]", "[\"n\"]", "[\"o\",\"x\"]", "[\"t\",null]", "[\"k\",null,\"v\"]",
                                    "[\"p\"]", "[\"o\"]"};

static void add_bounds(buf *out) {
    uint64_t which = roll(3);
    if (which != 1) {
        buf_addf(out, ",\"%s\":", roll(2) ? "ge" : "gt");
        add_scalar(out);
    }
    if (which != 0) {
        buf_addf(out, ",\"%s\":", roll(2) ? "le" : "lt");
        add_scalar(out);
    }
}

static void add_test(buf *out) {
    static const char *const types[] = {"null", "bool", "number", "string", "array", "object", "primitive"};
    buf_addf(out, "{\"at\":%s", paths[roll(sizeof paths / sizeof *paths)]);
    switch (roll(8)) {
    case 0:
        buf_addf(out, ",\"exists\":%s", roll(3) ? "true" : "false");
        break;
    case 1:
        buf_addf(out, ",\"is\":\"%s\"", types[roll(7)]);
        break;
    case 2:
        buf_addf(out, ",\"begins\":\"%s\"", roll(2) ? "a" : "xxxxxx");
        break;
    case 3:
        buf_add_lit(out, ",\"in\":[");
        for (uint64_t i = 0, n = roll(4); i < n; i++) {
            buf_add(out, ",", i > 0);
            add_scalar(out);
        }
        buf_add_byte(out, ']');
        break;
    case 4:
    case 5:
        add_bounds(out);
        break;
    default:
        buf_add_lit(out, ",\"eq\":");
        add_scalar(out);
    }
    buf_add_byte(out, '}');
}

static void add_condition(buf *out, unsigned depth) {
    if (depth && roll(2)) {
        buf_addf(out, "{\"%s\":[", roll(2) ? "and" : "or");
        for (uint64_t i = 0, n = 1 + roll(3); i < n; i++) {
            buf_add(out, ",", i > 0);
            add_condition(out, depth - 1);
        }
        buf_add_lit(out, "]}");
    } else if (roll(12) == 0) {
        buf_addf(out, "{\"filter\":%d,\"with\":{\"digit\":%d}}", (int)QUERY_FILTER_TESTS, (int)roll(10));
    } else {
        add_test(out);
    }
}

/* Converts a JSON array to BSON. */
static slice list_of(const char *json) {
    doc_element e;
    slice text = arena_printf(&h.arena, "{\"list\":%s}", json);
    assert_true(get(harness_bson(&h, arena_text(&h.arena, text)), "list", &e));
    return e.value;
}

static const char *const orders[] = {NULL,
                                     NULL,
                                     "[{\"at\":[\"n\"]}]",
                                     "[{\"at\":[\"a\"],\"down\":true}]",
                                     "[{\"at\":[\"a\"],\"down\":false}]",
                                     "[{\"at\":[\"b\"]}]",
                                     "[{\"at\":[\"a\"]},{\"at\":[\"n\"],\"down\":true}]",
                                     "[{\"at\":[\"a\"],\"down\":true},{\"at\":[\"n\"]}]",
                                     "[{\"at\":[\"n\"]},{\"at\":[\"o\",\"x\"]}]"};

static query_find find_of(const char *where, const char *order) {
    return (query_find){.where = where ? harness_bson(&h, where) : SLICE_EMPTY,
                        .order = order ? list_of(order) : SLICE_EMPTY,
                        .limit = UINT64_MAX,
                        .scope = query_scope_all()};
}

static query_scope partition_scope(const char *partition) {
    op *o = harness_op(&h);
    pkey *header = arena_new(&h.arena, pkey);
    item_key *key = arena_new(&h.arena, item_key);
    assert_int_equal(pkey_parse(o, arena_printf(&h.arena, "[\"%s\"]", partition), header), OK);
    assert_int_equal(item_check_key(o, c, header, SLICE_EMPTY, key), OK);
    return query_scope_partition(key);
}

/* ---- running ---- */

typedef struct found {
    unsigned id;
    uint64_t number;
    slice body;
} found;

typedef struct answer {
    found list[ITEMS + LARGE + 1];
    size_t n, stops_at; /* the sink stops after so many */
    uint64_t read, entries;
    size_t most_read; /* in one page */
    double ru;
    err code;
} answer;

static bool take(void *context, const query_found *row) {
    answer *a = context;
    doc_element id;
    if (a->n == a->stops_at || a->n > ITEMS + LARGE) {
        return false;
    }
    assert_true(get(row->body, "id", &id) && row->head.number > 0 && row->container == c);
    a->list[a->n++] = (found){(unsigned)strtoul(doc_element_text(&id).p, NULL, 10), row->head.number, arena_copy(&h.arena, row->body)};
    return true;
}

static slice one_page(const query_find *f, slice from, size_t rows_max, bool scans, answer *a) {
    query_find_page *p = arena_alloc(&h.arena, sizeof *p);
    op *o = harness_op(&h);
    query_find_init(p, harness_items(&h), o, c, f, from, take, a);
    p->page.ask.rows_max = rows_max;
    p->page.ask.scans = scans;
    a->code = query_find_run(p);
    a->read += p->page.outcome.metrics.read;
    a->most_read = p->page.outcome.metrics.read > a->most_read ? p->page.outcome.metrics.read : a->most_read;
    a->entries += p->page.outcome.metrics.entries;
    a->ru += o->charge_ru;
    return p->next;
}

static void run_all(const query_find *f, size_t rows_max, bool scans, bool reshapes, answer *a) {
    slice from = SLICE_EMPTY;
    unsigned pages = 0;
    do {
        from = one_page(f, from, rows_max, scans, a);
        if (reshapes && roll(3) == 0) {
            change_tiles();
        }
        assert_true(++pages < 2000);
    } while (a->code == OK && from.n);
}

static answer *new_answer(void) {
    answer *a = arena_new(&h.arena, answer);
    a->stops_at = SIZE_MAX;
    return a;
}

/* ---- comparing ---- */

/* Undefined comes first. */
static int order_at(slice a, slice b, const doc_element *path) {
    doc_element steps, x = {.type = BSON_TYPE_DOCUMENT, .value = a}, y = {.type = BSON_TYPE_DOCUMENT, .value = b};
    doc_walk w;
    bool in_x = true, in_y = true;
    for (doc_walk_init(&w, path->value); doc_walk_next(&w, &steps);) {
        in_x = in_x && x.type == BSON_TYPE_DOCUMENT && get(x.value, doc_element_text(&steps).p, &x);
        in_y = in_y && y.type == BSON_TYPE_DOCUMENT && get(y.value, doc_element_text(&steps).p, &y);
    }
    int type_x = in_x ? type_of(&x) : 0, type_y = in_y ? type_of(&y) : 0;
    if (type_x != type_y || type_x == 0) {
        return type_x - type_y;
    }
    if (type_x < 5) {
        return compare(&x, &y);
    }
    query_value v = value_of_element(&x), u = value_of_element(&y);
    return value_compare(&v, &u);
}

static int order_of(slice list, const found *a, const found *b) {
    doc_element part, path, down;
    doc_walk w;
    int tie = 1;
    bool first = true;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &part); first = false) {
        assert_true(get(part.value, "at", &path));
        int sign = get(part.value, "down", &down) && down.value.p[0] ? -1 : 1;
        int order = order_at(a->body, b->body, &path);
        tie = first ? sign : tie;
        if (order) {
            return sign * order;
        }
    }
    return a->number < b->number ? -tie : tie;
}

static const char *asked_where, *asked_order;

static void check(const query_find *f, answer *a, const answer *all, const char *how) {
    bool wanted[ITEMS + LARGE] = {0};
    size_t n = 0;
    if (a->code != OK) {
        fail_msg("seed %lu, %s: %s", (unsigned long)seed, how, err_lookup(a->code)->name);
    }
    for (size_t i = 0; i < all->n; i++) {
        wanted[all->list[i].id] = !f->where.n || passes(f->where, all->list[i].body);
        n += wanted[all->list[i].id];
    }
    for (size_t i = 1; i < a->n && f->order.n; i++) {
        if (order_of(f->order, &a->list[i - 1], &a->list[i]) >= 0) {
            fail_msg("seed %lu, %s: order %s of %s: %u before %u", (unsigned long)seed, how, asked_order, asked_where, a->list[i - 1].id,
                     a->list[i].id);
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!wanted[a->list[i].id]) {
            fail_msg("seed %lu, %s: %s, order %s: item %u is too much or comes twice", (unsigned long)seed, how, asked_where,
                     asked_order ? asked_order : "none", a->list[i].id);
        }
        wanted[a->list[i].id] = false;
    }
    if (a->n != n) {
        fail_msg("seed %lu, %s: %s, order %s: %zu of %zu items", (unsigned long)seed, how, asked_where, asked_order ? asked_order : "none",
                 a->n, n);
    }
}

static void agree(store *inner) {
    uint64_t read = 0, scanned = 0;
    open_world(inner);
    for (unsigned i = 0; i < ROUNDS(FINDS); i++) {
        buf where = buf_init(BUF_NO_LIMIT);
        answer *all = new_answer(), *one = new_answer(), *pages = new_answer(), *plain = new_answer();
        add_condition(&where, 2);
        buf_add_byte(&where, 0);
        asked_where = where.p;
        asked_order = orders[roll(sizeof orders / sizeof *orders)];
        query_find f = find_of(asked_where, asked_order), everything = find_of(NULL, NULL);
        everything.scope = f.scope = roll(4) ? query_scope_all() : partition_scope(roll(2) ? "large" : "p3");
        run_all(&everything, LIMIT_FIND_ROWS, true, false, all);
        run_all(&f, LIMIT_FIND_ROWS, false, false, one);
        check(&f, one, all, "one page by the index");
        run_all(&f, LIMIT_FIND_ROWS, true, false, plain);
        check(&f, plain, all, "one page without it");
        run_all(&f, 1 + roll(30), roll(4) == 0, true, pages);
        check(&f, pages, all, "pages");
        read += one->read;
        scanned += plain->read;
        buf_free(&where);
    }
    assert_true(10 * read < 9 * scanned); /* the index is used */
    close_world();
}

static void finds_agree_with_a_plain_filter(void **state) {
    (void)state;
    unsigned from = 1, to = ROUNDS(SEEDS);
    const char *given = getenv("SEEDS");
    if (given) {
        sscanf(given, "%u-%u", &from, &to);
    }
    for (seed = from; seed <= to; seed++) {
        agree(store_open_memory());
    }
    char *folder = make_folder();
    agree(open_rocks_tail(folder, 64 * 1024));
    remove_folder(folder);
    free(folder);
}

/* ---- the same as the equivalent query text ---- */

static slice told_words(const query_page *p) {
    buf words = buf_init(BUF_NO_LIMIT);
    query_explain_words(&words, &(query_explained){.page = p, .charge_ru = p->ask.op->charge_ru});
    slice text = arena_copy(&h.arena, buf_view(&words));
    const char *line = memchr(text.p, '\n', text.n); /* skips the first line, which has the time */
    buf_free(&words);
    return slice_skip(text, (size_t)(line - text.p) + 1);
}

static void describe(query_page *p, query_trace *trace) {
    *trace = (query_trace){0};
    p->ask.trace = trace;
    p->ask.notes_indexes = true;
    p->ask.rows_max = 50;
}

static void compare_notes(const query_outcome *a, const query_outcome *b) {
    assert_int_equal(a->indexes_n, b->indexes_n);
    for (size_t i = 0; i < a->indexes_n; i++) {
        assert_true(slice_eq(a->indexes[i].specs[0], b->indexes[i].specs[0]) && slice_eq(a->indexes[i].filter, b->indexes[i].filter));
        assert_true(a->indexes[i].used == b->indexes[i].used && a->indexes[i].precise == b->indexes[i].precise);
    }
}

static void compare_with_text(const char *where, const char *order, const char *text) {
    query_find f = find_of(where, order);
    query_trace one, other;
    query_find_page *p = arena_alloc(&h.arena, sizeof *p);
    answer *a = new_answer();
    query_find_init(p, harness_items(&h), harness_op(&h), c, &f, SLICE_EMPTY, take, a);
    describe(&p->page, &one);
    assert_int_equal(query_find_run(p), OK);

    op *o = harness_op(&h);
    query q;
    query_page page;
    item_cursor cursor = harness_cursor();
    buf out = buf_init(BUF_NO_LIMIT);
    assert_int_equal(query_prepare(o, &h.arena, arena_copy(&h.arena, slice_str(text)), NULL, 0, NULL, &q), OK);
    query_page_init(&page, harness_items(&h), o, c, &q, &cursor, &out);
    describe(&page, &other);
    assert_int_equal(query_run_page(&page), OK);
    buf_free(&out);

    const query_outcome *x = &p->page.outcome, *y = &page.outcome;
    slice here = told_words(&p->page), there = told_words(&page);
    if (!slice_eq(here, there)) {
        fail_msg("%s:\n%.*sbut %s:\n%.*s", where, (int)here.n, here.p, text, (int)there.n, there.p);
    }
    assert_true(x->rows == y->rows && x->more == y->more && x->metrics.read == y->metrics.read && x->metrics.entries == y->metrics.entries);
    assert_true(x->rows > 0 && p->page.ask.op->charge_ru == o->charge_ru); /* rows are smaller than a kilobyte, so their bytes are free */
    compare_notes(x, y);
}

static void plans_are_those_of_texts(void **state) {
    (void)state;
    seed = 7;
    open_world(store_open_memory());
    for (int round = 0; round < 2; round++) {
        compare_with_text("{\"at\":[\"n\"],\"eq\":3}", NULL, "SELECT * FROM c WHERE c.n = 3");
        compare_with_text("{\"at\":[\"n\"],\"in\":[3,4]}", NULL, "SELECT * FROM c WHERE c.n IN (3, 4)");
        compare_with_text("{\"at\":[\"n\"],\"ge\":3,\"le\":5}", NULL, "SELECT * FROM c WHERE c.n BETWEEN 3 AND 5");
        compare_with_text("{\"at\":[\"n\"],\"gt\":3,\"lt\":5}", NULL, "SELECT * FROM c WHERE c.n > 3 AND c.n < 5");
        compare_with_text("{\"at\":[\"a\"],\"begins\":\"a\"}", NULL, "SELECT * FROM c WHERE STARTSWITH(c.a, \"a\")");
        compare_with_text("{\"at\":[\"a\"],\"is\":\"null\"}", NULL, "SELECT * FROM c WHERE IS_NULL(c.a)");
        compare_with_text("{\"at\":[\"o\",\"x\"],\"exists\":true}", NULL, "SELECT * FROM c WHERE IS_DEFINED(c.o.x)");
        compare_with_text("{\"at\":[\"o\",\"x\"],\"exists\":false}", NULL, "SELECT * FROM c WHERE NOT IS_DEFINED(c.o.x)");
        compare_with_text("{\"at\":[\"t\",null],\"eq\":1}", NULL, "SELECT * FROM c WHERE ARRAY_CONTAINS(c.t, 1)");
        compare_with_text("{\"at\":[\"k\",null,\"v\"],\"eq\":1}", NULL,
                          "SELECT * FROM c WHERE EXISTS(SELECT VALUE e1 FROM e1 IN c.k WHERE e1.v = 1)");
        compare_with_text("{\"at\":[\"b\"],\"eq\":1}", NULL, "SELECT * FROM c WHERE c.b = 1"); /* a path that is not indexed */
        compare_with_text("{\"and\":[{\"at\":[\"n\"],\"eq\":3},{\"at\":[\"a\"],\"ge\":0}]}", NULL,
                          "SELECT * FROM c WHERE c.n = 3 AND c.a >= 0");
        compare_with_text("{\"or\":[{\"at\":[\"n\"],\"eq\":3},{\"at\":[\"a\"],\"eq\":0}]}", NULL,
                          "SELECT * FROM c WHERE c.n = 3 OR c.a = 0");
        compare_with_text(NULL, "[{\"at\":[\"n\"]}]", "SELECT * FROM c ORDER BY c.n");
        compare_with_text("{\"at\":[\"n\"],\"le\":5}", "[{\"at\":[\"n\"],\"down\":true}]",
                          "SELECT * FROM c WHERE c.n <= 5 ORDER BY c.n DESC");
        compare_with_text(NULL, "[{\"at\":[\"a\"]},{\"at\":[\"n\"],\"down\":true}]", "SELECT * FROM c ORDER BY c.a ASC, c.n DESC");
        if (round == 0) {
            assert_int_equal(account_split(h.account, harness_op(&h), c, c->space->newest->ranges[0]->id, 3), OK);
            container_give(c);
            c = harness_found(&h, "d", "c");
        }
    }
    close_world();
}

/* ---- items and entries read ---- */

static size_t count_passing(const char *where) {
    query_find everything = find_of(NULL, NULL);
    answer *all = new_answer();
    size_t n = 0;
    run_all(&everything, LIMIT_FIND_ROWS, true, false, all);
    for (size_t i = 0; i < all->n; i++) {
        n += passes(harness_bson(&h, where), all->list[i].body);
    }
    return n;
}

static void entries_are_as_many_as_items(void **state) {
    (void)state;
    seed = 3;
    open_world(store_open_memory());
    static const char *const points[] = {"{\"at\":[\"n\"],\"eq\":3}", "{\"at\":[\"id\"],\"eq\":\"17\"}", "{\"at\":[\"n\"],\"eq\":99}"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        query_find f = find_of(points[i], NULL);
        answer *a = new_answer();
        size_t n = count_passing(points[i]);
        run_all(&f, LIMIT_FIND_ROWS, false, false, a);
        assert_int_equal(a->code, OK);
        assert_int_equal(a->n, n);
        assert_int_equal(a->read, n);    /* no item is read in vain */
        assert_int_equal(a->entries, n); /* nor an entry */
    }
    close_world();
}

/* An ordered page over many ranges reads little more than its rows: each range only until its next rows are beyond the page. */
static void ranges_are_merged(void **state) {
    (void)state;
    enum { ROWS = 20, RANGES = 6 };
    seed = 4;
    open_world(store_open_memory());
    for (unsigned i = 1; i < RANGES; i++) { /* splits the range with the most items */
        const container_tiles *tiles = c->space->newest;
        size_t most = 0;
        for (size_t j = 1; j < tiles->map->n; j++) {
            most = atomic_load(&tiles->ranges[j]->items) > atomic_load(&tiles->ranges[most]->items) ? j : most;
        }
        err code = account_split(h.account, harness_op(&h), c, tiles->ranges[most]->id, 2);
        assert_true(code == OK || code == E_BAD_REQUEST);
        container_give(c);
        c = harness_found(&h, "d", "c");
    }
    for (int i = 0; i < 10; i++) {
        harness_move(&h, c, 1000);
    }
    size_t ranges = c->space->newest->map->n;
    query_find f = find_of("{\"at\":[\"n\"],\"ge\":0}", "[{\"at\":[\"n\"]}]"), everything = find_of(NULL, NULL);
    answer *a = new_answer(), *all = new_answer();
    asked_where = asked_order = "n";
    assert_true(ranges > 2);
    run_all(&everything, LIMIT_FIND_ROWS, true, false, all);
    run_all(&f, ROWS, false, false, a);
    check(&f, a, all, "merged");
    assert_true(a->most_read <= ROWS * 3 + 2 * ranges); /* at most ROWS * (1 + 1/2 + 1/3 + …), and one more for each range */
    close_world();
}

/* ---- limits, sinks, filters ---- */

static void limits_reach_over_pages(void **state) {
    (void)state;
    seed = 5;
    open_world(store_open_memory());
    for (int ordered = 0; ordered < 2; ordered++) {
        query_find f = find_of(NULL, ordered ? "[{\"at\":[\"n\"]}]" : NULL);
        answer *whole = new_answer(), *part = new_answer();
        run_all(&f, LIMIT_FIND_ROWS, false, false, whole);
        f.skip = 13;
        f.limit = 100;
        run_all(&f, 7, false, true, part);
        assert_int_equal(part->code, OK);
        assert_int_equal(part->n, 100);
        for (size_t i = 0; i < part->n && ordered; i++) {
            assert_int_equal(part->list[i].id, whole->list[13 + i].id);
        }
    }
    close_world();
}

static void a_sink_may_stop(void **state) {
    (void)state;
    seed = 6;
    open_world(store_open_memory());
    for (int ordered = 0; ordered < 2; ordered++) {
        query_find f = find_of("{\"at\":[\"n\"],\"ge\":0}", ordered ? "[{\"at\":[\"a\"]}]" : NULL), everything = find_of(NULL, NULL);
        answer *a = new_answer(), *all = new_answer();
        slice from = SLICE_EMPTY;
        asked_where = asked_order = "stops";
        run_all(&everything, LIMIT_FIND_ROWS, true, false, all);
        do { /* rows that the sink did not take come again */
            a->stops_at = a->n + 11;
            from = one_page(&f, from, LIMIT_FIND_ROWS, false, a);
        } while (a->code == OK && from.n);
        check(&f, a, all, "a sink that stops");
    }
    close_world();
}

static err check_cancelled(op_turn *turn) {
    return --turn->waited_us > 0 ? OK : E_CANCELLED;
}

static void filters_are_asked_last_and_bounded(void **state) {
    (void)state;
    seed = 8;
    open_world(store_open_memory());
    const char *both = "{\"and\":[{\"filter\":56,\"with\":{\"digit\":3}},{\"at\":[\"n\"],\"eq\":3}]}";
    query_find f = find_of(both, NULL), alone = find_of("{\"filter\":56,\"with\":{\"digit\":3}}", NULL);
    answer *a = new_answer();
    size_t left = count_passing("{\"at\":[\"n\"],\"eq\":3}");
    asked = 0;
    run_all(&f, LIMIT_FIND_ROWS, false, false, a);
    assert_int_equal(a->code, OK);
    assert_int_equal(a->n, count_passing(both));
    assert_true(asked <= 2 * left); /* only items that the index leaves: once to decide, once for the charge */

    filter_error = E_BAD_REQUEST; /* an error of the filter ends the find */
    one_page(&alone, SLICE_EMPTY, LIMIT_FIND_ROWS, false, a);
    assert_int_equal(a->code, E_BAD_REQUEST);
    filter_error = OK;
    filter_steps = UINT64_MAX; /* so does an item that takes too long */
    one_page(&alone, SLICE_EMPTY, LIMIT_FIND_ROWS, false, a);
    assert_int_equal(a->code, E_QUERY_TOO_LONG);

    filter_steps = QUERY_CHECK_STEPS; /* op_check is called between items, and may cancel */
    op_turn turn = {.check = check_cancelled, .waited_us = 10};
    query_find_page *p = arena_alloc(&h.arena, sizeof *p);
    op *o = harness_op(&h);
    o->turn = &turn;
    asked = 0;
    query_find_init(p, harness_items(&h), o, c, &alone, SLICE_EMPTY, take, new_answer());
    assert_int_equal(query_find_run(p), E_CANCELLED);
    assert_true(asked < 30);
    filter_steps = 0;
    close_world();
}

/* ---- hostile input ---- */

static void malformed_conditions_are_refused(void **state) {
    (void)state;
    static const char *const wheres[] = {"{}",
                                         "{\"at\":[\"a\"]}",
                                         "{\"at\":\"a\",\"eq\":1}",
                                         "{\"at\":[],\"eq\":1}",
                                         "{\"at\":[null],\"eq\":1}",
                                         "{\"at\":[1],\"eq\":1}",
                                         "{\"at\":[\"a\"],\"eq\":1,\"in\":[1]}",
                                         "{\"at\":[\"a\"],\"eq\":1,\"ge\":1}",
                                         "{\"at\":[\"a\"],\"ge\":1,\"gt\":1}",
                                         "{\"at\":[\"a\"],\"le\":1,\"lt\":1}",
                                         "{\"at\":[\"a\"],\"in\":1}",
                                         "{\"at\":[\"a\"],\"is\":\"date\"}",
                                         "{\"at\":[\"a\"],\"is\":3}",
                                         "{\"at\":[\"a\"],\"begins\":3}",
                                         "{\"at\":[\"a\"],\"exists\":1}",
                                         "{\"at\":[\"a\"],\"like\":\"x\"}",
                                         "{\"and\":[]}",
                                         "{\"and\":{}}",
                                         "{\"and\":[1]}",
                                         "{\"and\":[{\"at\":[\"a\"],\"eq\":1}],\"or\":[{\"at\":[\"a\"],\"eq\":1}]}",
                                         "{\"filter\":57}",
                                         "{\"filter\":\"digit\"}",
                                         "{\"filter\":-1}",
                                         "{\"filter\":56,\"with\":1}",
                                         "{\"filter\":56,\"with\":{}}",
                                         "{\"filter\":56,\"with\":{\"digit\":1},\"eq\":1}"};
    static const char *const bad_orders[] = {"[1]", "[{}]", "[{\"at\":[\"a\",null]}]", "[{\"at\":[\"a\"],\"down\":1}]"};
    seed = 9;
    open_world(store_open_memory());
    for (size_t i = 0; i < sizeof wheres / sizeof *wheres + sizeof bad_orders / sizeof *bad_orders; i++) {
        size_t j = i - sizeof wheres / sizeof *wheres;
        bool where = i < sizeof wheres / sizeof *wheres;
        query_find f = find_of(where ? wheres[i] : NULL, where ? NULL : bad_orders[j]);
        op *o = harness_op(&h);
        query q;
        if (query_find_prepare(o, &h.arena, c, &f, &q) != E_BAD_REQUEST || o->detail_n == 0) {
            fail_msg("not refused: %s", where ? wheres[i] : bad_orders[j]);
        }
    }
    close_world();
}

static void deep_and_long_conditions_are_refused(void **state) {
    (void)state;
    seed = 10;
    open_world(store_open_memory());
    for (int kind = 0; kind < 3; kind++) {
        buf text = buf_init(BUF_NO_LIMIT);
        unsigned n = kind == 0 ? LIMIT_FIND_DEPTH + 1 : LIMIT_FIND_CONDITIONS + 1;
        buf_add_slice(&text, kind == 1 ? slice_str("{\"or\":[") : kind == 2 ? slice_str("{\"at\":[\"a\"],\"in\":[") : SLICE_EMPTY);
        for (unsigned i = 0; i < n; i++) {
            buf_addf(&text, kind == 0 ? "{\"and\":[" : kind == 1 ? "%s{\"at\":[\"a\"],\"eq\":1}" : "%s1", i ? "," : "");
        }
        buf_add_slice(&text, kind == 0 ? slice_str("{\"at\":[\"a\"],\"eq\":1}") : slice_str("]}"));
        for (unsigned i = 0; kind == 0 && i < n; i++) {
            buf_add_lit(&text, "]}");
        }
        buf_add_byte(&text, 0);
        query_find f = find_of(text.p, NULL);
        query q;
        assert_int_equal(query_find_prepare(harness_op(&h), &h.arena, c, &f, &q), E_BAD_REQUEST);
        f.where = slice_of(f.where.p, f.where.n - 1); /* not a document */
        assert_int_equal(query_find_prepare(harness_op(&h), &h.arena, c, &f, &q), E_BAD_REQUEST);
        buf_free(&text);
    }
    close_world();
}

static void continuations_of_others_are_refused(void **state) {
    (void)state;
    seed = 11;
    open_world(store_open_memory());
    query_find f = find_of("{\"at\":[\"n\"],\"ge\":0}", NULL), other = find_of("{\"at\":[\"n\"],\"ge\":1}", NULL), narrow = f;
    answer *a = new_answer();
    slice from = one_page(&f, SLICE_EMPTY, 5, false, a);
    assert_true(a->code == OK && from.n > 0);
    one_page(&other, from, 5, false, a);
    assert_int_equal(a->code, E_BAD_CONTINUATION);
    narrow.scope.min.n = 1;
    narrow.scope.min.bytes[0] = 0x20;
    one_page(&narrow, from, 5, false, a); /* the continuation reaches beyond the scope */
    assert_int_equal(a->code, E_BAD_CONTINUATION);
    for (unsigned i = 0; i < ROUNDS(2000); i++) { /* random bytes */
        slice bytes = arena_copy(&h.arena, slice_of(from.p, roll(8) ? from.n : roll(from.n)));
        for (unsigned j = 0; j < 1 + roll(3) && bytes.n; j++) {
            ((char *)(uintptr_t)bytes.p)[roll(bytes.n)] = (char)roll(256);
        }
        a->n = 0;
        one_page(&f, bytes, 5, false, a);
        assert_true(a->code == OK || a->code == E_BAD_CONTINUATION || a->code == E_QUERY_TOO_LONG);
    }
    close_world();
}

/* ---- store errors ---- */

static void a_store_that_fails_is_told(void **state) {
    (void)state;
    static const char *const wheres[] = {"{\"at\":[\"n\"],\"eq\":3}", "{\"at\":[\"n\"],\"ge\":3}", NULL};
    seed = 12;
    open_world(store_open_memory());
    harness_restart(&h); /* empties the cache */
    container_give(c);
    c = harness_found(&h, "d", "c");
    for (unsigned i = 0; i < 6; i++) {
        query_find f = find_of(wheres[i % 3], i < 3 ? NULL : "[{\"at\":[\"a\"]}]");
        answer *good = new_answer();
        run_all(&f, LIMIT_FIND_ROWS, false, false, good);
        bool fired = true;
        for (unsigned n = 1; fired && n < 40; n++) {
            answer *a = new_answer();
            h.plan = (store_fault_plan){.code = E_STORE_IO, .scan_in = n};
            run_all(&f, LIMIT_FIND_ROWS, false, false, a);
            fired = h.plan.fired > 0;
            h.plan = (store_fault_plan){0};
            assert_int_equal(a->code, fired ? E_STORE_IO : OK);
            assert_true(fired || a->n == good->n);
        }
    }
    close_world();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_agree_with_a_plain_filter),
        cmocka_unit_test(plans_are_those_of_texts),
        cmocka_unit_test(entries_are_as_many_as_items),
        cmocka_unit_test(ranges_are_merged),
        cmocka_unit_test(limits_reach_over_pages),
        cmocka_unit_test(a_sink_may_stop),
        cmocka_unit_test(filters_are_asked_last_and_bounded),
        cmocka_unit_test(malformed_conditions_are_refused),
        cmocka_unit_test(deep_and_long_conditions_are_refused),
        cmocka_unit_test(continuations_of_others_are_refused),
        cmocka_unit_test(a_store_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
