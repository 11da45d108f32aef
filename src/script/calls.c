/* calls.c — serves the calls of scripts: takes a call as BSON, makes an answer as JSON (protocol.h). Calls are untrusted. */
#include "account/rid.h"
#include "base/limits.h"
#include "doc/json.h"
#include "query/parameters.h"
#include "query/position.h"
#include "script/functions.h"
#include "script/process.h"
#include "script/transaction.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 10000, STEPS_MAX = 20000, TEXT_PER_BYTE_MAX = 6, UUID_BYTES = 36 };

#define OTHER_KEY                                                                                                                          \
    "Requests originating from scripts cannot reference partition keys other than the one for which client request was submitted."

typedef struct request {
    script_transaction *t;
    op *op;
    slice call, options;
    buf *answer;
} request;

/* ---- reading a call ---- */

static bool member(slice document, const char *name, doc_element *e) {
    return document.n && doc_find_member(document, slice_str(name), e);
}

static slice text_member(slice document, const char *name) {
    doc_element e;
    return member(document, name, &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static bool flag_member(slice document, const char *name) {
    doc_element e;
    return member(document, name, &e) && e.type == BSON_TYPE_BOOL && e.value.p[0];
}

static slice document_member(slice document, const char *name) {
    doc_element e;
    return member(document, name, &e) && e.type == BSON_TYPE_DOCUMENT ? e.value : SLICE_EMPTY;
}

static size_t page_size(slice options) {
    bson_iter_t it;
    bool given = options.n && doc_find_key(options, SLICE_LIT("pageSize"), &it) && BSON_ITER_HOLDS_NUMBER(&it);
    double size = given ? bson_iter_as_double(&it) : PAGE_DEFAULT;
    return size == -1 || size > PAGE_MAX ? PAGE_MAX : size >= 1 ? (size_t)size : PAGE_DEFAULT;
}

/* ---- links: dbs/{name or rid}/colls/{name or rid}[/docs/{name or rid}], with or without slashes at the ends ---- */

static slice trim_slashes(slice s) {
    while (s.n && s.p[0] == '/') {
        s = slice_skip(s, 1);
    }
    while (s.n && s.p[s.n - 1] == '/') {
        s.n--;
    }
    return s;
}

/* Removes the text up to the next slash, and the slash, from `rest`; returns the text. */
static slice next_part(slice *rest) {
    const char *slash = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
    slice part = slice_of(rest->p, slash ? (size_t)(slash - rest->p) : rest->n);
    *rest = slice_skip(*rest, part.n + (slash ? 1 : 0));
    return part;
}

static bool names(slice part, slice name, const rid *own) {
    rid r;
    return slice_eq(part, name) || (rid_parse(part, &r) != RID_NONE && rid_equal(&r, own));
}

/* Removes this container's own link from the beginning of `link`; false if it is not there. */
static bool take_container(const container *c, slice *link) {
    rid own = {.n = sizeof c->rid};
    memcpy(own.bytes, c->rid, sizeof c->rid);
    rid database = rid_database_of(&own);
    *link = trim_slashes(*link);
    return slice_eq(next_part(link), SLICE_LIT("dbs")) && names(next_part(link), c->database_id, &database) &&
           slice_eq(next_part(link), SLICE_LIT("colls")) && names(next_part(link), c->id, &own);
}

static err bad_link(const request *r, slice link, const char *what) {
    return op_fail(r->op, E_BAD_REQUEST, "'%.*s' is not the link of %s of the collection that the script runs in.", slice_shown(link),
                   link.p ? link.p : "", what);
}

/* The link must be that of the collection itself, or missing. */
static err check_link(const request *r) {
    slice link = text_member(r->call, "link"), rest = link;
    bool own = link.n == 0 || (take_container(script__scope(r->t)->container, &rest) && rest.n == 0);
    return own ? OK : bad_link(r, link, "this collection, or not");
}

/* Finds the id of the document that the link names. */
static err linked_id(const request *r, slice *id_out) {
    const container *c = script__scope(r->t)->container;
    slice link = text_member(r->call, "link"), rest = link;
    rid item;
    if (!take_container(c, &rest) || !slice_eq(next_part(&rest), SLICE_LIT("docs")) || rest.n == 0) {
        return bad_link(r, link, "a document");
    }
    *id_out = rest;
    if (rest.n > LIMIT_ID_BYTES) {
        return row_check_id(r->op, rest);
    }
    if (rid_parse(rest, &item) != RID_DOCUMENT) {
        return OK;
    }
    rid in = rid_container_of(&item);
    if (memcmp(in.bytes, c->rid, sizeof c->rid) != 0) {
        return OK; /* an id that looks like a rid */
    }
    err code = script__find_number(r->t, rid_number(&item), id_out);
    *id_out = code == E_NOT_FOUND ? rest : *id_out;
    return code == E_NOT_FOUND ? OK : code;
}

/* ---- answers ---- */

void script_write_document(buf *out, const container *c, const item_head *head, slice body) {
    query_item item = {.body = body, .number = head->number, .version = item_version(head), .ts = head->ts};
    memcpy(item.container_rid, c->rid, sizeof item.container_rid);
    query_value value = value_of_item(&item);
    value_write(out, &value);
}

static void answer_document(const request *r, unsigned status, const item_head *head, slice body) {
    buf_addf(r->answer, "{\"status\":%u,\"body\":", status);
    script_write_document(r->answer, script__scope(r->t)->container, head, body);
    buf_add_byte(r->answer, '}');
}

static void answer_status(const request *r, unsigned status) {
    buf_addf(r->answer, "{\"status\":%u}", status);
}

static void answer_not_accepted(const request *r) {
    buf_add_lit(r->answer, "{\"accepted\":false}");
}

static void answer_error(const request *r, err code) {
    const err_entry *entry = err_lookup(code);
    slice sentence = r->op->detail_n ? slice_of(r->op->detail, r->op->detail_n) : slice_str(entry->sentence);
    bool text = bson_utf8_validate(sentence.p, sentence.n, true);
    buf_clear(r->answer);
    buf_addf(r->answer, "{\"status\":%u,\"message\":", entry->http_status);
    json_add_string(r->answer, text ? sentence : slice_str(entry->sentence));
    buf_add_byte(r->answer, '}');
}

/* ---- calls for one document ---- */

/* The limit applies to the JSON text. */
static err check_size(slice body) {
    if (body.n <= LIMIT_ITEM_BYTES / TEXT_PER_BYTE_MAX) {
        return OK;
    }
    buf text = buf_init(LIMIT_ITEM_BYTES);
    json_from_bson(&text, body);
    bool fits = buf_ok(&text);
    buf_free(&text);
    return fits ? OK : E_TOO_LARGE;
}

static slice new_id(request *r) {
    static const char digits[] = "0123456789abcdef";
    char *text = arena_alloc(script__arena(r->t), UUID_BYTES);
    uint64_t bits[2] = {random_u64(script__random(r->t)), random_u64(script__random(r->t))};
    for (unsigned i = 0, d = 0; i < UUID_BYTES; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        text[i] = dash ? '-' : digits[bits[d / 16] >> (4 * (d % 16)) & 15];
        d += !dash;
    }
    text[14] = '4'; /* a random UUID, RFC 4122 */
    return slice_of(text, UUID_BYTES);
}

/* Adds a new id to a document without one, as client SDKs do. */
static slice with_id(request *r, slice body) {
    doc_element id;
    if (member(body, "id", &id) || flag_member(r->options, "disableAutomaticIdGeneration")) {
        return body;
    }
    bson_t given, whole = BSON_INITIALIZER;
    slice text = new_id(r);
    if (bson_init_static(&given, (const uint8_t *)body.p, body.n)) {
        bson_concat(&whole, &given);
    }
    bson_append_utf8(&whole, "id", 2, text.p, (int)text.n);
    slice result = arena_copy(script__arena(r->t), slice_of(bson_get_data(&whole), whole.len));
    bson_destroy(&whole);
    return result;
}

static err read_body(request *r, item_op *item) {
    const script_scope *scope = script__scope(r->t);
    slice body = document_member(r->call, "body");
    if (body.n == 0) {
        return op_fail(r->op, E_BAD_REQUEST, "The document must be an object.");
    }
    body = item_without_system(script__arena(r->t), body);
    item->body = item->kind == ITEM_REPLACE ? body : with_id(r, body);
    TRY(check_size(item->body));
    err code = item_check_body(r->op, scope->container, scope->container->key.n ? &scope->key->partition : NULL, item);
    return code == E_KEY_MISMATCH ? op_fail(r->op, E_BAD_REQUEST, OTHER_KEY) : code;
}

static err read_options(request *r, item_op *item) {
    slice action = text_member(r->options, "indexAction");
    item->not_indexed = slice_eq_nocase(action, SLICE_LIT("exclude"));
    if (action.n && !item->not_indexed && !slice_eq_nocase(action, SLICE_LIT("include")) &&
        !slice_eq_nocase(action, SLICE_LIT("default"))) {
        return op_fail(r->op, E_BAD_REQUEST, "indexAction must be include, exclude or default.");
    }
    item->if_match = text_member(r->options, "etag");
    return OK;
}

static err write_document(request *r, item_kind kind) {
    item_op *item = arena_new(script__arena(r->t), item_op);
    item->kind = kind;
    TRY(read_options(r, item));
    if (kind == ITEM_REPLACE || kind == ITEM_DELETE) {
        TRY(linked_id(r, &item->key.row));
    } else {
        TRY(check_link(r));
    }
    if (kind != ITEM_DELETE) {
        TRY(read_body(r, item));
    }
    if (!script__accepts(r->t, item->body.n)) {
        answer_not_accepted(r);
        return OK;
    }
    TRY(script_transaction_write(r->t, item));
    if (kind == ITEM_DELETE) {
        answer_status(r, 204);
    } else {
        answer_document(r, item->created ? 201 : 200, &item->after, item->result);
    }
    return OK;
}

static err create(request *r) {
    return write_document(r, ITEM_CREATE);
}
static err upsert(request *r) {
    return write_document(r, ITEM_UPSERT);
}
static err replace(request *r) {
    return write_document(r, ITEM_REPLACE);
}
static err erase(request *r) {
    return write_document(r, ITEM_DELETE);
}

static err read_document(request *r) {
    slice id;
    item_found found;
    TRY(linked_id(r, &id));
    if (!script__accepts(r->t, 0)) {
        answer_not_accepted(r);
        return OK;
    }
    TRY(script__read(r->t, id, &found));
    slice known = text_member(r->options, "ifNoneMatch");
    if (known.n && item_etag_matches(known, item_version(&found.head), found.head.ts)) {
        answer_status(r, 304);
    } else {
        answer_document(r, 200, &found.head, found.body);
    }
    item_give(&found);
    return OK;
}

/* ---- lists and queries ---- */

typedef struct listing {
    request *request;
    size_t most, n, begun;
} listing;

static bool add_listed(void *context, const item_found *found) {
    listing *l = context;
    buf *out = l->request->answer;
    if (l->n == l->most || (l->n && out->n - l->begun + found->body.n > LIMIT_RESPONSE_BYTES)) {
        return false;
    }
    if (l->n++) {
        buf_add_byte(out, ',');
    }
    script_write_document(out, script__scope(l->request->t)->container, &found->head, found->body);
    return true;
}

static err begin_cursor(request *r, const query *query, query_position *position, item_cursor *cursor) {
    const script_scope *scope = script__scope(r->t);
    item_cursor_init_partition(cursor, scope->key);
    cursor->moment = script__moment(r->t);
    slice token = text_member(r->options, "continuation");
    if (token.n && !scope->tokens) {
        return E_BAD_CONTINUATION;
    }
    return token.n ? scope->tokens->read(script__arena(r->t), scope->container, token, query, position, cursor) : OK;
}

static void end_page(request *r, const query *query, const query_position *position, const item_cursor *cursor, size_t rows, bool more) {
    const script_scope *scope = script__scope(r->t);
    buf_add_byte(r->answer, ']');
    if (more && scope->tokens) {
        buf token = buf_init(BUF_NO_LIMIT);
        scope->tokens->write(&token, script__arena(r->t), scope->container, query, position, cursor, rows);
        buf_add_lit(r->answer, ",\"continuation\":");
        json_add_string(r->answer, buf_view(&token));
        buf_free(&token);
    }
    buf_add_byte(r->answer, '}');
}

static err list(request *r) {
    const script_scope *scope = script__scope(r->t);
    item_cursor *cursor = arena_new(script__arena(r->t), item_cursor);
    item_mark mark;
    TRY(check_link(r));
    TRY(begin_cursor(r, NULL, NULL, cursor));
    if (!script__accepts(r->t, 0)) {
        answer_not_accepted(r);
        return OK;
    }
    buf_add_lit(r->answer, "{\"status\":200,\"body\":[");
    listing l = {r, page_size(r->options), 0, r->answer->n};
    if (cursor->n) {
        TRY(item_feed(scope->items, r->op, scope->container, cursor, STEPS_MAX, add_listed, &l, &mark));
    }
    end_page(r, NULL, NULL, cursor, l.n, cursor->n > 0);
    return OK;
}

/* The query is a text, or {query, parameters}. */
static err read_query(request *r, query *query_out) {
    const script_scope *scope = script__scope(r->t);
    query_schema schema = query_schema_of(scope->container->settings);
    query_parameter *parameters = NULL;
    size_t n = 0;
    doc_element asked;
    slice text = text_member(r->call, "query");
    if (!text.n && member(r->call, "query", &asked) && asked.type == BSON_TYPE_DOCUMENT) {
        text = text_member(asked.value, "query");
        TRY(query_parameters_read(r->op, asked.value, &parameters, &n));
    }
    if (!text.n) {
        return query_parameters_bad_body(r->op);
    }
    return query_prepare(r->op, script__arena(r->t), text, parameters, n, &schema, query_out);
}

static void describe_page(request *r, const query *asked, item_cursor *cursor, buf *rows, query_page *p) {
    const script_scope *scope = script__scope(r->t);
    int64_t soft_left = scope->soft_us ? scope->soft_us - script_now_us() : 0;
    query_page_init(p, scope->items, r->op, scope->container, asked, cursor, rows);
    p->ask.rows_max = page_size(r->options);
    p->ask.until_us = scope->soft_us ? clock_monotonic_us(scope->items->clock) + (soft_left > 0 ? soft_left : 0) : 0;
}

static err find_functions(request *r, const query *asked, script_function *list) {
    const script_scope *scope = script__scope(r->t);
    for (unsigned i = 0; scope->function && i < asked->udfs_n; i++) {
        list[i].id = asked->udfs[i];
        err code = scope->function(scope->context, script__arena(r->t), list[i].id, &list[i].body);
        if (code != OK) {
            return code == E_NOT_FOUND ? query_udf_unknown(r->op, asked, i) : code;
        }
    }
    return OK;
}

/* User-defined functions of a query run in a second worker. */
static err run_page(request *r, query_page *p) {
    const script_scope *scope = script__scope(r->t);
    script_function list[QUERY_UDFS_MAX];
    script_functions functions;
    if (!p->ask.query->udfs_n || !scope->function) {
        return query_run_page(p);
    }
    TRY(find_functions(r, p->ask.query, list));
    script_functions_init(&functions, scope->pool, r->op->budget, list, p->ask.query->udfs_n);
    p->ask.udfs = &functions.base;
    err code = query_run_page(p);
    script_functions_end(&functions);
    return code;
}

static err query_documents(request *r) {
    arena *a = script__arena(r->t);
    query *asked = arena_new(a, query);
    query_page *p = arena_new(a, query_page);
    item_cursor *cursor = arena_new(a, item_cursor);
    buf rows = buf_init_counted(BUF_NO_LIMIT, r->op->budget);
    TRY(check_link(r));
    TRY(read_query(r, asked));
    if (!script__accepts(r->t, 0)) {
        answer_not_accepted(r);
        return OK;
    }
    describe_page(r, asked, cursor, &rows, p);
    TRY(begin_cursor(r, asked, &p->position, cursor));
    TRY(query_position_restore(p));
    err code = run_page(r, p);
    if (code == OK) {
        buf_add_lit(r->answer, "{\"status\":200,\"body\":[");
        buf_add_slice(r->answer, buf_view(&rows));
        end_page(r, asked, &p->position, cursor, p->outcome.rows, p->outcome.more);
    }
    buf_free(&rows);
    return code;
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    err (*run)(request *r);
} calls[] = {
    {"create", create},      {"upsert", upsert}, {"replace", replace},       {"delete", erase},
    {"read", read_document}, {"list", list},     {"query", query_documents},
};

/* Whether the script gets the error in its callback; other errors end the script. */
static bool is_answerable(err code) {
    unsigned status = err_lookup(code)->http_status;
    return status >= 400 && status < 500 && code != E_OWNER_NOT_FOUND;
}

err script_transaction_call(void *context, slice call, buf *answer) {
    script_transaction *t = context;
    arena_reset(script__arena(t));
    request r = {.t = t, .op = script_transaction_op(t), .call = call, .options = document_member(call, "options"), .answer = answer};
    slice name = text_member(call, "op");
    err code = E_BAD_REQUEST;
    r.op->detail_n = 0;
    if (r.op->budget) {
        budget_renew(r.op->budget); /* a script may continue after a query that exceeded the budget */
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (slice_eq(name, slice_str(calls[i].name))) {
            code = calls[i].run(&r);
            break;
        }
    }
    if (code != OK && is_answerable(code)) {
        answer_error(&r, code);
        code = OK;
    }
    return code == OK && !buf_ok(answer) ? E_TOO_LARGE : code;
}
