/* POST /_tesela/explain: runs one page of a query over all ranges, and describes the execution (query/explain.h); with the rows if they are
 * wanted. With `estimate` it only says what the query would cost (query/estimate.h). */
#include "query/explain.h"

#include "account/scripts.h"
#include "api/admin/admin_int.h"
#include "doc/json.h"
#include "query/estimate.h"
#include "query/parameters.h"
#include "query/target_ranges.h"
#include "script/functions.h"

enum { ROWS_DEFAULT = 1000, ROWS_MAX = 10000 };

typedef struct asked {
    slice text;
    query_parameter *parameters;
    size_t parameters_n;
    bool key_given;
    pkey key;
    uint64_t rows;
    bool documents; /* the answer has the rows too */
    bool estimate;  /* the query is not run */

    query query;
    item_key partition;
    item_cursor cursor;
    uint64_t compile_us;
} asked;

/* ---- decoding ---- */

/* "x", or ["x", 1] for hierarchical keys; the same form as in the header field. */
static err read_key(admin_request *q, slice body, asked *a) {
    bson_iter_t it;
    buf text = buf_init(BUF_NO_LIMIT);
    a->key_given = doc_find_key(body, SLICE_LIT("partitionKey"), &it);
    if (!a->key_given) {
        return OK;
    }
    query_value v = value_of_iter(&it);
    bool list = v.type == TYPE_ARRAY;
    buf_add(&text, "[", !list);
    value_write(&text, &v);
    buf_add(&text, "]", !list);
    err code = pkey_parse(&q->op, arena_copy(q->op.arena, buf_view(&text)), &a->key);
    buf_free(&text);
    return code;
}

static err read_asked(admin_request *q, slice body, asked *a) {
    bson_iter_t it;
    if (!doc_find_key(body, SLICE_LIT("query"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "'query' must be given: a text.");
    }
    a->text = doc_text(&it);
    a->rows = ROWS_DEFAULT;
    TRY(admin_number(q, body, "maxItemCount", 1, ROWS_MAX, &a->rows));
    a->documents = doc_find_key(body, SLICE_LIT("documents"), &it) && bson_iter_as_bool(&it);
    a->estimate = doc_find_key(body, SLICE_LIT("estimate"), &it) && bson_iter_as_bool(&it);
    TRY(query_parameters_read(&q->op, body, &a->parameters, &a->parameters_n));
    return read_key(q, body, a);
}

/* ---- which part of the container ---- */

/* If WHERE fixes the partition key, it is used as if the request had named it. */
static void find_key(asked *a, const container *c, arena *arena) {
    size_t n;
    const query_range *list = a->key_given || c->key.n == 0 ? NULL : query_ranges(arena, &a->query, &c->key, &n);
    if (list && n == 1 && list[0].point && !list[0].shared) {
        a->key = list[0].key;
        a->key_given = true;
    }
}

static err aim(admin_request *q, const container *c, asked *a) {
    epk min = epk_min(), max = epk_max();
    item_cursor_init(&a->cursor, &min, &max);
    find_key(a, c, q->op.arena);
    if (!a->key_given) {
        return OK;
    }
    if (a->key.n < c->key.n && c->key.kind == PKEY_MULTI_HASH) {
        epk_prefix_range(&c->key, &a->key, &a->cursor.stretches[0].min, &a->cursor.stretches[0].max);
        a->cursor.prefix = &a->key;
        return OK;
    }
    TRY(item_check_key(&q->op, c, &a->key, SLICE_EMPTY, &a->partition));
    a->cursor.partition = &a->partition;
    return OK;
}

/* ---- running it ---- */

static void write_answer(admin_request *q, const asked *a, const query_page *page, slice rows) {
    buf key = buf_init(BUF_NO_LIMIT), explanation = buf_init(BUF_NO_LIMIT);
    if (a->cursor.partition) {
        pkey_write(&key, &a->key);
    }
    query_explained explained = {.page = page, .partition = buf_view(&key), .compile_us = a->compile_us, .charge_ru = q->op.charge_ru};
    query_explain_json(&explanation, &explained);
    buf_add_byte(&q->body, '{');
    if (a->documents) {
        buf_add_lit(&q->body, "\"documents\":[");
        buf_add_slice(&q->body, rows);
        buf_add_lit(&q->body, "],");
    }
    buf_add_slice(&q->body, slice_skip(buf_view(&explanation), 1)); /* without its brace */
    buf_free(&explanation);
    buf_free(&key);
}

/* Functions run as long as the page's time limit allows. The administrator's requests use their own worker lane, so they do not delay
 * clients. */
static err run_functions(admin_request *q, const container *c, query_page *page) {
    account_script *scripts[QUERY_UDFS_MAX] = {0};
    script_function list[QUERY_UDFS_MAX];
    script_functions functions;
    unsigned n = 0;
    err code = OK;
    for (; n < page->ask.query->udfs_n && code == OK; n++) {
        code = account_find_script(q->admin->account, c, ACCOUNT_FUNCTION, page->ask.query->udfs[n], false, &scripts[n]);
        list[n] = code == OK ? (script_function){scripts[n]->id, scripts[n]->body} : (script_function){0};
        code = code == E_NOT_FOUND ? query_udf_unknown(&q->op, page->ask.query, n) : code;
    }
    if (code == OK) {
        script_functions_init(&functions, q->admin->scripts, q->op.budget, list, n);
        page->ask.udfs = &functions.base;
        code = query_run_page(page);
        script_functions_end(&functions);
    }
    while (n) {
        account_script_give(scripts[--n]);
    }
    return code;
}

static err run_page(admin_request *q, container *c, asked *a) {
    const items *items = account_items(q->admin->account);
    buf rows = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    query_trace trace = {0};
    query_page page;
    query_page_init(&page, items, &q->op, c, &a->query, &a->cursor, &rows);
    page.ask.rows_max = a->rows;
    page.ask.until_us = account_page_deadline_us(q->admin->account);
    page.ask.timed = page.ask.notes_indexes = true;
    page.ask.trace = &trace;
    err code = a->query.udfs_n ? run_functions(q, c, &page) : query_run_page(&page);
    if (code == OK) {
        write_answer(q, a, &page, buf_view(&rows));
    }
    buf_free(&rows);
    return code;
}

/* ---- what it would cost ---- */

static void add_flag(buf *out, const char *name, bool value) {
    buf_addf(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static void write_price(buf *out, const char *name, const query_estimate_price *p) {
    buf_addf(out, ",\"%s\":{\"requestCharge\":%.2f", name, query_estimate_ru(p));
    admin_add(out, "pages", p->pages);
    admin_add(out, "ranges", p->ranges);
    admin_add_decimal(out, "rangesCharge", p->ranges_ru, 2);
    admin_add(out, "itemsLoaded", p->loaded);
    admin_add_decimal(out, "itemsCharge", p->loaded_ru, 2);
    admin_add(out, "indexEntries", p->entries);
    admin_add_decimal(out, "entriesCharge", p->entries_ru, 2);
    admin_add_decimal(out, "rowsCharge", p->rows_ru, 2);
    admin_add_decimal(out, "searchCharge", p->search_ru, 2);
    admin_add_decimal(out, "functionsCharge", p->calls_ru, 2);
    buf_add_byte(out, '}');
}

static err estimate(admin_request *q, container *c, asked *a) {
    query_estimate e;
    const query_estimate_ask ask = {account_items(q->admin->account), &q->op, c, &a->query, &a->cursor, a->rows};
    TRY(query_estimate_make(&ask, &e));
    buf *out = &q->body;
    buf_addf(out, "{\"ranges\":%lu", (unsigned long)e.ranges);
    admin_add(out, "items", e.items);
    admin_add(out, "itemBytes", e.item_bytes);
    admin_add(out, "matches", e.matches);
    admin_add(out, "entriesCounted", e.counted);
    add_flag(out, "exact", e.exact);
    add_flag(out, "capped", e.capped);
    add_flag(out, "rest", e.rest);
    add_flag(out, "covered", e.covered);
    add_flag(out, "whole", e.whole);
    add_flag(out, "joined", e.joined);
    write_price(out, "first", &e.first);
    write_price(out, "all", &e.all);
    buf_add_lit(out, "}\n");
    return OK;
}

static err prepare_and_run(admin_request *q, container *c, asked *a) {
    const clock_source *clock = account_items(q->admin->account)->clock;
    query_schema schema = query_schema_of(c->settings);
    int64_t begun = clock_monotonic_us(clock);
    TRY(query_prepare(&q->op, q->op.arena, a->text, a->parameters, a->parameters_n, &schema, &a->query));
    a->compile_us = (uint64_t)(clock_monotonic_us(clock) - begun);
    TRY(aim(q, c, a));
    return a->estimate ? estimate(q, c, a) : run_page(q, c, a);
}

/* An estimate is asked for while a query is being typed: that it is not one yet is an answer, not an error. */
static err explain(admin_request *q, container *c, asked *a) {
    err code = prepare_and_run(q, c, a);
    if (!a->estimate || (code != E_BAD_QUERY && code != E_BAD_REQUEST)) {
        return code;
    }
    slice sentence = slice_str(err_lookup(code)->sentence), detail = slice_of(q->op.detail, q->op.detail_n);
    bool told = detail.n && bson_utf8_validate(detail.p, detail.n, false);
    buf_add_lit(&q->body, "{\"problem\":");
    json_add_string(&q->body, told ? detail : sentence);
    buf_add_lit(&q->body, "}\n");
    return OK;
}

err admin_explain(admin_request *q) {
    static const char *const names[] = {"database",     "container",    "query",     "parameters",
                                        "partitionKey", "maxItemCount", "documents", "estimate"};
    slice body, database, name;
    container *c;
    asked *a = arena_new(q->op.arena, asked);
    TRY(admin_body(q, names, sizeof names / sizeof *names, &body));
    TRY(admin_text(q, body, "database", &database));
    TRY(admin_text(q, body, "container", &name));
    TRY(read_asked(q, body, a));
    TRY(admin_container(q, database, name, &c));
    err code = explain(q, c, a);
    container_give(c);
    return code;
}
