#include "echo_request.h"

enum { ROWS_MAX = 1000 }; /* rows per page */

/* ---- decoding ---- */

slice echo_get(slice document, const char *name, bson_type_t type) {
    doc_element e;
    uint64_t passed = 0;
    if (!doc_find_member_counted(document, slice_str(name), &e, &passed) || e.type != type) {
        return SLICE_EMPTY;
    }
    return type == BSON_TYPE_UTF8 ? doc_element_text(&e) : type == BSON_TYPE_BINARY ? slice_skip(e.value, 5) : e.value;
}

uint64_t echo_number(slice document, const char *name, uint64_t otherwise) {
    slice wide = echo_get(document, name, BSON_TYPE_INT64), narrow = echo_get(document, name, BSON_TYPE_INT32);
    return wide.n ? (uint64_t)doc_load_i64(wide.p) : narrow.n ? (uint64_t)doc_load_i32(narrow.p) : otherwise;
}

/* ---- answering ---- */

static void echo_send(frames_request *r, const bson_t *document, slice rows) {
    buf *out = frames_out(r);
    uint32_t n = (uint32_t)(8 + document->len + rows.n), stream = 0;
    memcpy(&stream, r->frame.n >= 8 ? r->frame.p + 4 : "\0\0\0", 4);
    buf_add(out, &n, 4);
    buf_add(out, &stream, 4);
    buf_add(out, bson_get_data(document), document->len);
    buf_add_slice(out, rows);
    frames_end(r);
}

void echo_answer(echo_request *e, err code, bool told) {
    bson_t answer = BSON_INITIALIZER;
    const call *c = &e->call.any;
    if (told && e->verb->tell) {
        e->verb->tell(e, &answer);
    }
    code = code == OK && !buf_ok(&e->rows) ? budget_error(e->op.budget) : code;
    slice why = e->op.detail_n ? slice_of(e->op.detail, e->op.detail_n) : slice_str(err_lookup(code)->sentence);
    BSON_APPEND_UTF8(&answer, "code", err_lookup(code)->name);
    bson_append_utf8(&answer, "why", 3, why.p, (int)why.n);
    BSON_APPEND_INT64(&answer, "retry_ms", e->op.retry_after_ms);
    BSON_APPEND_DOUBLE(&answer, "ru", e->op.charge_ru);
    BSON_APPEND_INT64(&answer, "range", c->marked ? (int64_t)c->mark.range_id : -1);
    BSON_APPEND_INT64(&answer, "lsn", c->marked ? (int64_t)c->mark.lsn : -1);
    if (e->container) {
        container_give(e->container);
    }
    buf rows = e->rows; /* e is freed with its frame */
    echo_send(e->frame, &answer, code == OK ? buf_view(&rows) : SLICE_EMPTY);
    buf_free(&rows);
    bson_destroy(&answer);
}

void echo_done(call *c) {
    echo_answer((echo_request *)c, c->code, true);
}

static void echo_refuse(frames_request *r, err code) {
    bson_t answer = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&answer, "code", err_lookup(code)->name);
    echo_send(r, &answer, SLICE_EMPTY);
    bson_destroy(&answer);
}

/* ---- authentication ---- */

err echo_authenticate(echo_request *e) {
    access_reach *reach = &((echo_conn *)frames_state(e->frame->conn))->reach;
    slice user;
    uint8_t address[16];
    access_reach_end(reach);
    err code = access_plain_check(&e->op, access_keys_ring(e->front->keys), e->front->core.account,
                                  echo_get(e->ask, "sasl", BSON_TYPE_BINARY), &user, reach);
    if (code != OK) {
        frames_peer_address(e->frame->conn, address);
        access_attempts_note(e->front->attempts, address, code);
        frames_finish(e->frame->conn);
        return code;
    }
    frames_trust(e->frame->conn);
    echo_answer(e, OK, false);
    return OK;
}

static err echo_check(echo_request *e) {
    const access_reach *reach = &((const echo_conn *)frames_state(e->frame->conn))->reach;
    slice name = echo_get(e->ask, "in", BSON_TYPE_UTF8), database = echo_get(e->ask, "db", BSON_TYPE_UTF8);
    account *a = e->front->core.account;
    TRY(access_reach_holds(&e->op, reach, access_keys_ring(e->front->keys), a));
    if (name.n && e->verb->access != ACCESS_CREATE) {
        TRY(account_container(a, database, false, name, false, &e->container));
    }
    return access_allows(reach, e->verb->access, e->container, NULL) ? OK : access_refuse(&e->op);
}

/* ---- requests ---- */

static bool echo_is_sound(slice document) {
    return doc_is_sound(document, LIMIT_JSON_DEPTH);
}

static err echo_start(echo_request *e) {
    e->verb = echo_is_sound(e->ask) ? echo_find_verb(echo_get(e->ask, "do", BSON_TYPE_UTF8)) : NULL;
    if (!e->verb) {
        return op_fail(&e->op, E_BAD_REQUEST, "A request is a BSON document whose 'do' is one of the verbs.");
    }
    TRY(e->verb->access ? echo_check(e) : OK);
    e->seen = (item_mark){.range_id = (uint32_t)echo_number(e->ask, "range", 0), .lsn = echo_number(e->ask, "lsn", 0)};
    uint64_t max = echo_number(e->ask, "max", ROWS_MAX);
    e->rows_max = max && max < ROWS_MAX ? max : ROWS_MAX;
    return e->verb->start(e);
}

static void echo_handle(frames_request *r) {
    echo_request *e = arena_new(r->arena, echo_request);
    e->front = r->context;
    e->frame = r;
    e->ask = slice_skip(r->frame, 8);
    op_init(&e->op, r->arena, net_loop_wall_ms(r->client.loop) / 1000);
    e->rows = buf_init_counted(BUF_NO_LIMIT, e->op.budget);
    err code = echo_start(e);
    if (code != OK) {
        echo_answer(e, code, false);
    }
}

static bool echo_length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    uint32_t n;
    (void)conn;
    memcpy(&n, header, 4);
    *bytes_out = n;
    return n >= 8 + 5; /* header, and the smallest document */
}

/* Called when the connection has no requests left. */
static void echo_closed(frames_conn *conn) {
    echo_conn *state = frames_state(conn);
    access_reach_end(&state->reach);
    if (state->transaction) {
        call_transaction_end(state->transaction);
    }
}

err echo_listen(echo_front *e, net_server *server, uint16_t *port_out, char *why, size_t why_n) {
    e->frames = (frames_front){
        .name = "echo",
        .header_bytes = 8,
        .length = echo_length,
        .untrusted = {.frame_bytes = 4096, .in_flight = 1, .in_flight_bytes = 4096},
        .trusted = {.frame_bytes = LIMIT_REQUEST_BYTES, .in_flight = 64, .in_flight_bytes = 2 * LIMIT_REQUEST_BYTES},
        .state_bytes = sizeof(echo_conn),
        .closed = echo_closed,
        .handle = echo_handle,
        .refuse = echo_refuse,
        .context = e,
    };
    return net_listen_frames(server, "localhost", 0, &e->frames, port_out, why, why_n);
}
