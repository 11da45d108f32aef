/* Decoding shared by all requests: parameters, metadata levels, tables by name, addresses. */
#include "api/table/table_int.h"
#include "doc/path.h"

err table_refuse(table_request *q, table_error error) {
    q->error = error;
    return error == TABLE_FINE ? OK : E_BAD_REQUEST;
}

err table_query_text(table_request *q, const char *name, slice *value_out) {
    return table_refuse(q, table_parameter(q->http->arena, q->http->query, name, value_out));
}

err table_read_top(table_request *q, size_t *max_out) {
    enum { PAGE = 1000 };
    slice top;
    uint64_t n = PAGE;
    TRY(table_query_text(q, "$top", &top));
    if (top.p && (!slice_to_u64(top, &n) || n == 0)) {
        return table_refuse(q, TABLE_INVALID_PARAMETER);
    }
    *max_out = n < PAGE ? (size_t)n : PAGE;
    return OK;
}

static bool contains(slice text, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++) {
        if (slice_eq_nocase(slice_of(text.p + i, n), slice_of(word, n))) {
            return true;
        }
    }
    return false;
}

bool table_prefers(slice prefer, const char *word) {
    return contains(prefer, word);
}

entity_metadata table_metadata_of(slice accept) {
    return contains(accept, "nometadata")     ? ENTITY_NO_METADATA
           : contains(accept, "fullmetadata") ? ENTITY_FULL_METADATA
                                              : ENTITY_MINIMAL_METADATA;
}

/* ---- tables ---- */

err table_find(table_request *q, slice name) {
    err code = account_container_any_case(q->front->core.account, TABLE_DATABASE, name, &q->container);
    if (code != OK || !slice_eq(q->container->api, TABLE_API)) {
        return E_OWNER_NOT_FOUND;
    }
    q->large = table_is_large(q->container);
    return OK;
}

bool table_is_large(const container *c) {
    doc_element large;
    return doc_find_member(c->memo, SLICE_LIT("large"), &large) && large.type == BSON_TYPE_BOOL && large.value.p[0];
}

slice table_row_of(arena *a, const container *c, slice row) {
    bson_t text = BSON_INITIALIZER;
    doc_element e;
    buf bytes = buf_init(BUF_NO_LIMIT);
    bson_append_utf8(&text, "RowKey", -1, row.p, (int)row.n);
    if (doc_find_member(slice_of(bson_get_data(&text), text.len), SLICE_LIT("RowKey"), &e)) {
        row_add(&bytes, &c->row, 0, &e);
    }
    slice encoded = arena_copy(a, buf_view(&bytes));
    buf_free(&bytes);
    bson_destroy(&text);
    return encoded;
}

err table_key_of(op *o, const container *c, slice partition, slice row, item_key *key_out) {
    pkey key = {.n = 1, .values = {{.type = PKEY_STRING, .text = partition}}};
    return item_check_key(o, c, &key, table_row_of(o->arena, c, row), key_out);
}

/* ---- addresses ---- */

/* Names from outside go into JSON and header fields: what no host or account has in its name is replaced. */
static slice tame(arena *a, slice name) {
    char *text = arena_text(a, name);
    for (size_t i = 0; i < name.n; i++) {
        char c = text[i];
        bool good = (unsigned)((c | 0x20) - 'a') < 26u || (c >= '0' && c <= '9') || (c && strchr("-._:[]", c));
        text[i] = good ? c : '_';
    }
    return slice_of(text, name.n);
}

slice table_account(const table_request *q) {
    return q->route.account.n ? tame(q->http->arena, q->route.account) : SLICE_LIT("devstoreaccount1");
}

/* Path style if the request was. */
slice table_base(table_request *q) {
    slice host = tame(q->http->arena, q->http->host), path = q->http->path, account = table_account(q);
    slice rest = slice_skip(path, path.n > 0);
    bool in_path = slice_starts(rest, account) && (rest.n == account.n || rest.p[account.n] == '/');
    return arena_printf(q->http->arena, "%s://%.*s%s%.*s", q->http->tls ? "https" : "http", (int)host.n, host.p, in_path ? "/" : "",
                        in_path ? (int)account.n : 0, account.p);
}

entity_view table_view(table_request *q, entity_metadata metadata) {
    return (entity_view){
        .metadata = metadata,
        .base = table_base(q),
        .account = table_account(q),
        .table = q->container ? q->container->id : q->route.table,
    };
}

/* ---- changes of tables ---- */

account_change *table_begin_change(table_request *q, size_t bytes) {
    q->change = arena_zero(q->http->arena, bytes);
    return q->change;
}

static void changed(call *c) {
    table_request *q = (table_request *)c;
    q->next(q);
}

void table_await_change(table_request *q, table_handler next) {
    q->next = next;
    call_init(&q->call.any, &q->front->core, q->http->client, &q->op, NULL, changed);
    call_await_change(&q->call.any, q->change);
}
