/* POST …/sprocs/{id}: runs a stored procedure over one partition key value, on a script thread. */
#include "account/scripts.h"
#include "api/sql/continuation.h"
#include "api/sql/query_position.h"
#include "api/sql/sql_int.h"

enum { LOG_FIELD_BYTES = 8 * 1024 }; /* Node.js accepts 16 KB of header fields in total */

typedef struct execution {
    call_transact call; /* must be first */
    sql_request *q;
    account_script *script;
    script_run run;
} execution;

/* ---- continuations of a script's lists and queries ---- */

static sql_scope scope_of(const container *c, const item_key *key) {
    return (sql_scope){.container = sql_container_rid(c), .min = key->epk, .end = key->epk, .plain = true};
}

static err read_token(arena *a, const container *c, slice text, const query *query, query_position *position, item_cursor *cursor) {
    sql_scope scope = scope_of(c, cursor->partition);
    slice rest = text;
    if (query) {
        TRY(sql_position_read(a, text, query, position, &rest));
    }
    return sql_continuation_read(rest, &scope, cursor);
}

static void write_token(buf *out, arena *a, const container *c, const query *query, const query_position *position,
                        const item_cursor *cursor, size_t rows) {
    sql_scope scope = scope_of(c, cursor->partition);
    if (query) {
        sql_position_write(out, a, query, position);
    }
    sql_continuation_write(out, &scope, cursor, rows);
}

const script_tokens sql_script_tokens = {read_token, write_token};

/* ---- on a script thread ---- */

static err run_once(call_transact *call, script_attempt *a) {
    execution *x = (execution *)call;
    return script_attempt_run(a, &x->run);
}

/* ---- answering ---- */

static bool is_plain(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.' || c == '~';
}

/* Percent-encodes the log, and truncates it to LOG_FIELD_BYTES. */
void sql_add_script_log(sql_request *q, slice log) {
    buf *out = sql_fields(q);
    size_t begun = out->n;
    buf_add_lit(out, "x-ms-documentdb-script-log-results: ");
    for (size_t i = 0; i < log.n && out->n - begun < LOG_FIELD_BYTES; i++) {
        if (is_plain((unsigned char)log.p[i])) {
            buf_add_byte(out, log.p[i]);
        } else {
            buf_add_byte(out, '%');
            buf_add_hex(out, slice_of(&log.p[i], 1));
        }
    }
    buf_add_lit(out, "\r\n");
}

static void answer(call *c) {
    execution *x = (execution *)c;
    sql_request *q = x->q;
    account_script_give(x->script);
    sql_call_done(q, c);
    if (c->code != OK) {
        bool numbered = c->code == E_SCRIPT_FAILED && x->run.number > 0 && x->run.number < 65535;
        q->substatus = numbered ? (uint16_t)x->run.number : q->substatus;
        sql_fail(q, c->code);
        return;
    }
    sql_start(q, 200);
    sql_add_range(q, q->mark);
    if (x->run.logging) {
        sql_add_script_log(q, x->run.log);
    }
    buf_add_slice(sql_start_body(q), x->run.body);
    sql_end(q);
}

/* ---- submitting ---- */

void sql_script_links(const container *c, arena *a, slice *self_out, slice *alt_out) {
    buf self = buf_init(BUF_NO_LIMIT);
    rid in = sql_container_rid(c), database = rid_database_of(&in);
    buf_add_lit(&self, "dbs/");
    rid_write(&self, &database);
    buf_add_lit(&self, "/colls/");
    rid_write(&self, &in);
    buf_add_byte(&self, '/');
    *self_out = arena_copy(a, buf_view(&self));
    *alt_out = arena_printf(a, "dbs/%.*s/colls/%.*s", (int)c->database_id.n, c->database_id.p, (int)c->id.n, c->id.p);
    buf_free(&self);
}

static void describe(execution *x) {
    sql_request *q = x->q;
    x->call.tokens = &sql_script_tokens;
    x->call.attempt = run_once;
    x->run = (script_run){
        .kind = "sproc",
        .id = x->script->id,
        .source = x->script->body,
        .arguments = q->http->body,
        .logging = sql_flag(q, FIELD_SCRIPT_LOGGING),
        .arena = q->http->arena,
    };
    sql_script_links(q->container, q->http->arena, &x->run.self, &x->run.alt);
}

static err prepare(execution *x) {
    sql_request *q = x->q;
    slice arguments;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    sql_call_prepare(q, call_transact_init, &x->call, answer);
    TRY(item_check_key(&q->op, q->container, sql_header_key(q), SLICE_EMPTY, &x->call.key));
    TRY(sql_seen(q, &x->call.call));
    if (slice_trim(q->http->body).n) {
        TRY(sql_body(q, JSON_ARRAY, &arguments)); /* only checked here: the engine parses the text itself */
    }
    TRY(account_find_script(q->front->account, q->container, ACCOUNT_PROCEDURE, q->route.child, q->route.child_by_rid, &x->script));
    describe(x);
    return OK;
}

void sql_script_execute(sql_request *q) {
    execution *x = arena_new(q->http->arena, execution);
    x->q = q;
    err code = prepare(x);
    if (code != OK) {
        account_script_give(x->script);
        sql_fail(q, code);
        return;
    }
    call_transact_submit(&x->call);
}
