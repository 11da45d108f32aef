#include "api/sql/binary.h"

#include "doc/json_binary.h"

enum { LARGE_BYTES = 64 * 1024 }; /* longer answers are converted by a worker */

/* ---- requests ---- */

static err keep_text(sql_request *q, const buf *text) {
    if (!arena_fits(q->http->arena, text->n)) {
        return budget_error(q->op.budget);
    }
    q->http->body = arena_copy(q->http->arena, buf_view(text));
    return OK;
}

err sql_binary_read(sql_request *q, size_t bytes_max, json_error *why) {
    if (!json_is_binary(q->http->body)) {
        return OK;
    }
    buf text = buf_init_counted(bytes_max, q->op.budget);
    err code = json_binary_to_text(q->http->body, &text, why);
    if (code == OK) {
        code = keep_text(q, &text);
    } else if (q->op.budget && q->op.budget->exceeded) {
        code = budget_error(q->op.budget);
    }
    buf_free(&text);
    return code;
}

/* ---- answers ---- */

/* "JsonText, CosmosBinary": names with commas or bars between. */
static bool lists(slice list, slice name) {
    for (size_t at = 0, end; at < list.n; at = end + 1) {
        for (end = at; end < list.n && list.p[end] != ',' && list.p[end] != '|'; end++) {
        }
        if (slice_eq_nocase(slice_trim(slice_of(list.p + at, end - at)), name)) {
            return true;
        }
    }
    return false;
}

/* A client that accepts both formats gets text. */
static bool wants_binary(const sql_request *q) {
    slice format = sql_get(q, FIELD_CONTENT_FORMAT), formats = sql_get(q, FIELD_SUPPORTED_FORMATS);
    bool has_items = (q->route.kind == SQL_ITEM || q->route.kind == SQL_ITEMS) && !sql_flag(q, FIELD_IS_QUERY_PLAN);
    bool asked = slice_eq_nocase(format, SLICE_LIT("CosmosBinary")) ||
                 (lists(formats, SLICE_LIT("CosmosBinary")) && !lists(formats, SLICE_LIT("JsonText")));
    return asked && has_items && q->status < 300;
}

typedef struct conversion {
    call call; /* first */
    sql_request *q;
    buf text, binary;
} conversion;

static void convert(call *c) {
    conversion *v = (conversion *)c;
    if (!json_binary_from_text(buf_view(&v->text), &v->binary) || !buf_ok(&v->binary)) {
        buf_clear(&v->binary); /* the text is sent instead; clients read both */
    }
}

static void converted(call *c) {
    conversion *v = (conversion *)c;
    http_request *http = v->q->http;
    buf_add_slice(http_reply_body(http), v->binary.n ? buf_view(&v->binary) : buf_view(&v->text));
    buf_free(&v->text);
    buf_free(&v->binary);
    http_reply_end(http);
}

void sql_binary_end(sql_request *q) {
    slice body = http_reply_written(q->http);
    if (!body.n || !wants_binary(q)) {
        http_reply_end(q->http);
        return;
    }
    conversion *v = arena_new(q->http->arena, conversion);
    v->q = q;
    v->text = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    v->binary = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    buf_add_slice(&v->text, body);
    if (!buf_ok(&v->text)) { /* no memory: the text is sent */
        http_reply_end(q->http);
        return;
    }
    http_reply_rewrite(q->http);
    if (v->text.n <= LARGE_BYTES) {
        convert(&v->call);
        converted(&v->call);
    } else {
        q->container = NULL; /* already given back; the tenant is taken from the path */
        sql_call_init(q, &v->call, converted);
        call_work(&v->call, NET_ANSWERS, convert);
    }
}
