/* The beginning of a connection: OPTIONS, STARTUP, authentication, REGISTER. */
#include "access/plain.h"
#include "api/cassandra/cassandra_int.h"

static void put_list(buf *out, const char *name, const char *const *texts, size_t n) {
    cass_put_string(out, slice_str(name));
    cass_put_short(out, (uint16_t)n);
    for (size_t i = 0; i < n; i++) {
        cass_put_string(out, slice_str(texts[i]));
    }
}

err cass_options_message(cass_request *q) {
    static const char *const versions[] = {"3/v3", "4/v4", "5/v5"}, *const compressions[] = {"snappy", "lz4"},
                             *const cql[] = {CASS_CQL_VERSION};
    buf *out = cass_answer(q, CASS_SUPPORTED);
    cass_put_short(out, 3);
    put_list(out, "CQL_VERSION", cql, 1);
    put_list(out, "COMPRESSION", compressions, 2);
    put_list(out, "PROTOCOL_VERSIONS", versions, 3);
    cass_end(q);
    return OK;
}

/* Version 5 compresses by lz4 alone. */
static err choose_compression(cass_request *q, slice name, cass_compression *compression_out) {
    *compression_out = slice_eq_nocase(name, SLICE_LIT("lz4"))      ? CASS_LZ4
                       : slice_eq_nocase(name, SLICE_LIT("snappy")) ? CASS_SNAPPY
                                                                    : CASS_PLAIN;
    bool unknown = name.n && *compression_out == CASS_PLAIN;
    if (unknown || (*compression_out == CASS_SNAPPY && q->version >= CASS_VERSION_SEGMENTS)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL, "Unknown compression algorithm: %.*s", slice_shown(name), name.p);
    }
    return OK;
}

/* The answer to STARTUP is the last that is neither compressed nor in segments. */
err cass_startup_message(cass_request *q) {
    cass_startup s;
    cass_compression compression;
    TRY(cass_startup_read(&q->op, q->envelope.body, &s));
    if (!s.cql_version.n) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL, "Missing value CQL_VERSION in STARTUP message");
    }
    if (s.cql_version.p[0] != '3') {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL,
                          "CQL version %.*s is not supported; the server has " CASS_CQL_VERSION ".", slice_shown(s.cql_version),
                          s.cql_version.p);
    }
    TRY(choose_compression(q, s.compression, &compression));
    cass_put_string(cass_answer(q, CASS_AUTHENTICATE), SLICE_LIT("org.apache.cassandra.auth.PasswordAuthenticator"));
    q->bare = true;
    q->conn->compression = compression;
    q->conn->segments = q->conn->version >= CASS_VERSION_SEGMENTS;
    frames_welcome(q->frame->conn);
    cass_end(q);
    return OK;
}

/* ---- authentication ---- */

static err refuse(cass_request *q, err code) {
    uint8_t address[16];
    frames_peer_address(q->frame->conn, address);
    access_attempts_note(q->front->attempts, address, code);
    return op_fail_as(&q->op, code, CASS_CODE_CREDENTIALS,
                      "Provided username and/or password are incorrect: the username is the account's name, the password its key.");
}

/* The user's name is the account's; any is accepted, since there is one account. */
err cass_auth_message(cass_request *q) {
    slice token, user, body = q->envelope.body;
    access_reach reach = {0};
    bool null = false;
    if (!q->conn->version) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL, "AUTH_RESPONSE before STARTUP.");
    }
    if (!cass_take_bytes(&body, &token, &null)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL, "Malformed AUTH_RESPONSE message.");
    }
    if (!frames_is_tls(q->frame->conn) && !frames_peer_is_local(q->frame->conn)) {
        return op_fail_as(&q->op, E_UNAUTHORIZED, CASS_CODE_CREDENTIALS, "PLAIN sends the password in clear: use TLS.");
    }
    err code = access_plain_check(&q->op, access_keys_ring(q->front->keys), q->front->core.account, token, &user, &reach);
    if (code != OK) {
        return refuse(q, code);
    }
    access_reach_end(&q->conn->reach);
    q->conn->reach = reach;
    frames_trust(q->frame->conn);
    cass_put_null(cass_answer(q, CASS_AUTH_SUCCESS));
    cass_end(q);
    return OK;
}

err cass_register_message(cass_request *q) {
    unsigned kinds;
    TRY(cass_register_read(&q->op, q->envelope.body, &kinds));
    q->conn->events |= kinds;
    cass_watch(q->conn);
    return cass_answer_empty(q, CASS_READY);
}
