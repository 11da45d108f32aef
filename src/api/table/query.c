/* Queries of entities. Most find entities by the index, in the order of their keys (call_find). A filter that names one partition reads
 * its rows in order (call_rows), unless another condition leaves so few of them that the partition's index finds them sooner. The first
 * page decides that; all pages are in the same order. A page has up to 1000 entities.
 *
 * Where a page ended is the core's bytes, as base64 in x-ms-continuation-NextPartitionKey, after a letter that says which call they belong
 * to; NextRowKey is a constant, since clients expect it. */
#include "api/table/table_int.h"
#include "base/base64.h"
#include "doc/path.h"

enum { CONTINUATION_MAX = 16 * 1024 };

typedef struct find_call {
    call_find call; /* must be first */
    table_request *q;
} find_call;

struct table_query {
    slice text;
    const filter *filter;
    filter_keys keys;
    entity_view view;
    const access_sas *bounds;
    size_t max;
    item_key partition;
    bool by_rows; /* reads the rows of one partition, otherwise finds entities */
    bool tried;   /* to find them first */
    slice from;   /* the end of the previous page; empty: the first page */
};

/* ---- parameters ---- */

table_error table_select(arena *a, slice text, entity_view *view) {
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == ',';
    }
    view->select = NULL;
    view->select_n = 0;
    slice *names = arena_array(a, slice, n);
    while (text.n) {
        const char *comma = memchr(text.p, ',', text.n);
        slice name = slice_trim(slice_of(text.p, comma ? (size_t)(comma - text.p) : text.n));
        text = slice_skip(text, comma ? (size_t)(comma - text.p) + 1 : text.n);
        if (slice_eq(name, SLICE_LIT("*"))) {
            view->select = NULL;
            return TABLE_FINE;
        }
        names[view->select_n++] = name;
        view->select = names;
    }
    return view->select_n > ENTITY_PROPERTIES_MAX + 3 ? TABLE_OUT_OF_RANGE : TABLE_FINE;
}

/* ---- continuations ---- */

static void swap_letters(char *p, size_t n, const char *from, const char *to) {
    for (size_t i = 0; i < n; i++) {
        p[i] = p[i] == from[0] ? to[0] : p[i] == from[1] ? to[1] : p[i];
    }
}

static err read_continuation(table_request *q, table_query *u) {
    slice text;
    TRY(table_query_text(q, "NextPartitionKey", &text));
    if (!text.n) {
        u->by_rows = u->keys.one_partition && !filter_narrows(u->filter);
        return OK;
    }
    char *letters = arena_text(q->http->arena, text);
    buf bytes = buf_init(CONTINUATION_MAX);
    swap_letters(letters, text.n, "-_", "+/");
    u->by_rows = letters[0] == 'r';
    bool good =
        (u->by_rows ? u->keys.one_partition : letters[0] == 'f') && base64_decode(&bytes, slice_of(letters + 1, text.n - 1)) && bytes.n;
    u->from = good ? arena_copy(q->http->arena, buf_view(&bytes)) : SLICE_EMPTY;
    buf_free(&bytes);
    return good ? OK : E_BAD_CONTINUATION;
}

static void add_continuation(table_request *q, slice place) {
    buf *out = table_fields(q);
    buf text = buf_init(BUF_NO_LIMIT);
    base64_encode(&text, place);
    swap_letters(text.p, text.n, "+/", "-_");
    buf_addf(out, "x-ms-continuation-NextPartitionKey: %c%.*s\r\nx-ms-continuation-NextRowKey: NA\r\n", q->query->by_rows ? 'r' : 'f',
             (int)text.n, text.p);
    buf_free(&text);
}

/* ---- rows ---- */

/* False: the page is full, or the budget is spent. */
static bool add_entity(table_request *q, slice body, const item_head *head) {
    const table_query *u = q->query;
    uint64_t version = item_version(head);
    if (q->rows_n == u->max || q->rows.n > LIMIT_RESPONSE_BYTES) {
        return false;
    }
    buf_add(&q->rows, ",", q->rows_n > 0);
    entity_write(&q->rows, &u->view, body, version, head->ts);
    q->rows_n++;
    return buf_ok(&q->rows);
}

static bool is_excluded(void *context, const item_found *found) {
    const table_request *q = context;
    filter_entity e = {found->body, item_version(&found->head), found->head.ts};
    return filter_excludes(q->query->filter, &e);
}

static bool take_row(void *context, const item_found *found) {
    table_request *q = context;
    const table_query *u = q->query;
    filter_entity e = {found->body, item_version(&found->head), found->head.ts};
    if (q->rows_n == u->max) {
        return false;
    }
    return !filter_accepts(u->filter, u->bounds, &e) || add_entity(q, found->body, &found->head);
}

static bool take_found(void *context, const query_found *row) {
    return add_entity(context, row->body, &row->head);
}

static void drop_rows(table_request *q) {
    buf_clear(&q->rows);
    q->rows_n = 0;
}

static void find_again(call *c) {
    drop_rows(((find_call *)c)->q);
}

/* ---- the answer ---- */

static void answer(table_request *q, slice place) {
    const entity_view *v = &q->query->view;
    table_start(q, 200);
    if (place.n) {
        add_continuation(q, place);
    }
    buf *out = table_json(q, v->metadata);
    buf_add_byte(out, '{');
    if (v->metadata != ENTITY_NO_METADATA) {
        buf_addf(out, "\"odata.metadata\":\"%.*s/$metadata#%.*s\",", (int)v->base.n, v->base.p, (int)v->table.n, v->table.p);
    }
    buf_add_lit(out, "\"value\":[");
    buf_add_slice(out, buf_view(&q->rows));
    buf_add_lit(out, "]}");
    table_end(q);
}

static void finish(table_request *q, const call *c, slice place) {
    err code = c->code;
    q->fault = c->fault;
    code = code == OK && !buf_ok(&q->rows) ? budget_error(q->op.budget) : code;
    code == OK ? answer(q, place) : table_fail(q, code);
}

static void rows_read(call *c) {
    table_request *q = (table_request *)c;
    const item_rows_cursor *cursor = &q->call.rows.cursor;
    finish(q, c, cursor->ended ? SLICE_EMPTY : cursor->place);
}

static void ask_rows(table_request *q);

/* If no condition leaves few entities of the partition, its rows are read in order instead. */
static void found(call *c) {
    const find_call *f = (find_call *)c;
    table_request *q = f->q;
    if (c->code != E_QUERY_TOO_LONG || !f->call.find.narrow) {
        finish(q, c, f->call.next);
        return;
    }
    drop_rows(q);
    q->op.detail_n = 0;
    q->query->by_rows = q->query->tried = true;
    ask_rows(q);
}

/* ---- asking ---- */

static item_row_bound row_bound(table_request *q, const filter_bound *b) {
    item_key key;
    if (!b->given || table_key_of(&q->op, q->container, SLICE_LIT(""), b->value, &key) != OK) {
        q->op.detail_n = 0;
        return (item_row_bound){0}; /* longer than any row key: the filter decides */
    }
    return (item_row_bound){.given = true, .prefix = key.row, .exclusive = b->exclusive};
}

static void ask_rows(table_request *q) {
    table_query *u = q->query;
    call_rows_init(&q->call.rows, &q->front->core, q->http->client, &q->op, q->container, rows_read);
    q->call.rows.ask = item_rows_ask_partition(&u->partition);
    q->call.rows.ask.from = row_bound(q, &u->keys.row_from);
    q->call.rows.ask.to = row_bound(q, &u->keys.row_to);
    q->call.rows.ask.entered = u->tried;
    q->call.rows.ask.excludes = filter_narrows(u->filter) ? is_excluded : NULL;
    q->call.rows.cursor.place = u->from;
    q->call.rows.sink = take_row;
    q->call.rows.context = q;
    call_rows_submit(&q->call.rows);
}

/* [{"at": ["PartitionKey"]}, {"at": ["RowKey"]}], or within a partition only the latter. */
static slice key_order(arena *a, bool one_partition) {
    static const char *const names[] = {"PartitionKey", "RowKey"};
    bson_t order = BSON_INITIALIZER, one, path;
    for (unsigned i = one_partition; i < 2; i++) {
        bson_append_document_begin(&order, i > one_partition ? "1" : "0", 1, &one);
        bson_append_array_begin(&one, "at", 2, &path);
        bson_append_utf8(&path, "0", 1, names[i], -1);
        bson_append_array_end(&one, &path);
        bson_append_document_end(&order, &one);
    }
    slice bytes = arena_copy(a, slice_of(bson_get_data(&order), order.len));
    bson_destroy(&order);
    return bytes;
}

static void ask_find(table_request *q) {
    const table_query *u = q->query;
    find_call *f = arena_new(q->http->arena, find_call); /* too large for the request, of which most read one entity */
    f->q = q;
    call_find_init(&f->call, &q->front->core, q->http->client, &q->op, q->container, found);
    f->call.find.where = filter_conditions(&q->op, u->filter, u->text, u->keys.one_partition, u->bounds);
    f->call.find.order = key_order(q->http->arena, u->keys.one_partition);
    if (u->keys.one_partition) {
        f->call.find.scope = query_scope_partition(&u->partition);
        f->call.find.narrow = u->from.n == 0; /* further pages are found as the first one was */
    }
    f->call.from = u->from;
    f->call.rows_max = u->max;
    f->call.bytes_max = LIMIT_RESPONSE_BYTES;
    f->call.sink = take_found;
    f->call.context = q;
    f->call.again = find_again;
    call_find_submit(&f->call);
}

static err prepare(table_request *q) {
    table_query *u = q->query = arena_new(q->http->arena, table_query);
    slice select;
    TRY(table_allow(q, ACCESS_READ, q->route.table));
    TRY(table_find(q, q->route.table));
    u->view = table_view(q, q->metadata);
    u->bounds = table_bounds(q);
    TRY(table_query_text(q, "$select", &select));
    TRY(table_refuse(q, table_select(q->http->arena, select, &u->view)));
    TRY(table_query_text(q, "$filter", &u->text));
    TRY(table_refuse(q, filter_parse(&q->op, u->text, &u->filter)));
    u->keys = filter_keys_of(u->filter);
    if (u->keys.one_partition) {
        TRY(table_key_of(&q->op, q->container, u->keys.partition_from.value, SLICE_LIT(""), &u->partition));
    }
    TRY(table_read_top(q, &u->max));
    TRY(read_continuation(q, u));
    return OK;
}

void table_entities_query(table_request *q) {
    err code = prepare(q);
    if (code != OK) {
        table_fail(q, code);
    } else if (q->query->by_rows) {
        ask_rows(q);
    } else {
        ask_find(q);
    }
}
