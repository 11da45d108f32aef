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

/* `word` is in lower case. */
static bool contains(slice text, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++) {
        bool ends = (text.p[i] | 0x20) == word[0] && (text.p[i + n - 1] | 0x20) == word[n - 1];
        if (ends && slice_eq_nocase(slice_of(text.p + i, n), slice_of(word, n))) {
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
    enum { LENGTH = 4 }; /* a text as BSON has it: its length with the NUL at its end, then the text */
    char *text = arena_alloc_aligned(a, LENGTH + row.n + 1, 1);
    doc_element e = {.key = SLICE_LIT("RowKey"), .value = slice_of(text, LENGTH + row.n + 1), .type = BSON_TYPE_UTF8};
    buf bytes = buf_init(BUF_NO_LIMIT);
    doc_store_i32(text, (int32_t)row.n + 1);
    memcpy(text + LENGTH, row.p ? row.p : "", row.n);
    text[LENGTH + row.n] = '\0';
    row_add(&bytes, &c->row, 0, &e);
    slice encoded = arena_copy(a, buf_view(&bytes));
    buf_free(&bytes);
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
        bool good =
            (unsigned)((c | 0x20) - 'a') < 26u || (c >= '0' && c <= ':') || c == '-' || c == '.' || c == '_' || c == '[' || c == ']';
        text[i] = good ? c : '_';
    }
    return slice_of(text, name.n);
}

slice table_account(const table_request *q) {
    return q->route.account.n ? tame(q->http->arena, q->route.account) : SLICE_LIT("devstoreaccount1");
}

static char *put(char *to, slice text) {
    memcpy(to, text.p, text.n);
    return to + text.n;
}

/* Path style if the request was. */
slice table_base(table_request *q) {
    slice host = tame(q->http->arena, q->http->host), path = q->http->path, account = table_account(q);
    slice rest = slice_skip(path, path.n > 0);
    bool in_path = slice_starts(rest, account) && (rest.n == account.n || rest.p[account.n] == '/');
    slice scheme = q->http->tls ? SLICE_LIT("https://") : SLICE_LIT("http://");
    char *text = arena_alloc_aligned(q->http->arena, scheme.n + host.n + 1 + account.n, 1), *end = put(put(text, scheme), host);
    end = in_path ? put(put(end, SLICE_LIT("/")), account) : end;
    return slice_of(text, (size_t)(end - text));
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
