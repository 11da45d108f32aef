/* Authentication: SCRAM-SHA-256, SCRAM-SHA-1, PLAIN. The user is the account, the password one of its keys. */
#include <stdlib.h>

#include "access/plain.h"
#include "api/mongo/mongo_int.h"
#include "base/memory.h"

typedef struct mechanism {
    const char *name;
    bool plain;
    access_scram_kind kind;
} mechanism;

static const mechanism mechanisms[] = {
    {"SCRAM-SHA-256", false, ACCESS_SCRAM_SHA_256},
    {"SCRAM-SHA-1", false, ACCESS_SCRAM_SHA_1_MONGO},
    {"PLAIN", true, 0},
};

#define MECHANISMS (sizeof mechanisms / sizeof *mechanisms)

/* A password in clear is accepted over TLS and from the same machine. */
static bool takes_plain(const mongo_request *q) {
    return frames_is_tls(q->frame->conn) || frames_peer_is_local(q->frame->conn);
}

void mongo_list_mechanisms(mongo_request *q, mql_builder *b, slice user) {
    const access_scram_secrets *secrets = access_ring_scram(access_keys_ring(q->front->keys));
    const char *dot = user.n ? memchr(user.p, '.', user.n) : NULL;
    slice name = dot ? slice_skip(user, (size_t)(dot - user.p) + 1) : user; /* "admin.name" */
    mongo_open_array(b, "saslSupportedMechs");
    for (size_t i = 0; i < MECHANISMS; i++) {
        const mechanism *m = &mechanisms[i];
        if (m->plain ? takes_plain(q) : access_scram_offers_to(secrets, m->kind, name)) {
            mql_add_next(b, mql_text(q->frame->arena, slice_str(m->name)));
        }
    }
    mql_close(b);
}

void mongo_conn_end(mongo_conn *c) {
    access_reach_end(&c->reach);
    free(c->sasl);
    c->sasl = NULL;
}

/* ---- results ---- */

static err refuse(mongo_request *q, err code) {
    uint8_t address[16];
    frames_peer_address(q->frame->conn, address);
    access_attempts_note(q->front->attempts, address, code);
    free(q->conn->sasl);
    q->conn->sasl = NULL;
    return op_fail_as(&q->op, code, CODE_AUTHENTICATION_FAILED, "Authentication failed.");
}

static void accept(mongo_request *q, access_reach *reach) {
    access_reach_end(&q->conn->reach);
    q->conn->reach = *reach;
    frames_trust(q->frame->conn);
}

static void note_user(mongo_request *q, slice user) {
    size_t n = user.n < MONGO_NAME_SHOWN ? user.n : MONGO_NAME_SHOWN;
    memcpy(q->conn->user, n ? user.p : "", n);
    q->conn->user[n] = 0;
}

/* "n,,n=user,r=…": the name, still with SCRAM's escapes. */
static void note_scram_user(mongo_request *q, slice message) {
    for (size_t i = 0; i + 3 < message.n; i++) {
        if (memcmp(message.p + i, ",n=", 3) == 0) {
            slice rest = slice_skip(message, i + 3);
            const char *comma = memchr(rest.p, ',', rest.n);
            note_user(q, slice_of(rest.p, comma ? (size_t)(comma - rest.p) : rest.n));
            return;
        }
    }
}

/* ---- steps ---- */

static err check_plain(mongo_request *q, slice message, bool *done_out) {
    access_reach reach = {0};
    slice user = SLICE_EMPTY;
    if (!takes_plain(q)) {
        return op_fail_as(&q->op, E_UNAUTHORIZED, CODE_AUTHENTICATION_FAILED,
                          "PLAIN sends the password in clear: use TLS or SCRAM-SHA-256.");
    }
    err code = access_plain_check(&q->op, access_keys_ring(q->front->keys), q->front->core.account, message, &user, &reach);
    if (code == OK &&
        reach.proof != ACCESS_BY_KEY) { /* a resource token is for one container; MongoDB's commands are not checked for that */
        access_reach_end(&reach);
        code = E_UNAUTHORIZED;
    }
    if (code != OK) {
        return refuse(q, code);
    }
    note_user(q, user);
    accept(q, &reach);
    *done_out = true;
    return OK;
}

static err step_scram(mongo_request *q, slice message, buf *payload, bool *done_out) {
    access_reach reach = {0};
    mongo_sasl *s = q->conn->sasl;
    err code = access_scram_step(&q->op, &s->scram, access_keys_ring(q->front->keys), message, payload, &reach);
    if (code != OK) {
        return refuse(q, code);
    }
    if (s->scram.state == SCRAM_DONE) {
        accept(q, &reach);
        s->ending = !s->skips_empty;
        *done_out = s->skips_empty;
    }
    return OK;
}

static slice payload_of(slice command) {
    mql_value v = mongo_member(command, "payload");
    return v.type == BSON_TYPE_BINARY ? slice_skip(v.bytes, 5) : mql_is_text(v) ? mql_as_text(v) : SLICE_EMPTY;
}

static const mechanism *mechanism_of(slice name) {
    for (size_t i = 0; i < MECHANISMS; i++) {
        if (slice_eq(name, slice_str(mechanisms[i].name))) {
            return &mechanisms[i];
        }
    }
    return NULL;
}

err mongo_sasl_start(mongo_request *q, slice command, slice database, buf *payload, bool *done_out) {
    mql_value name = mongo_member(command, "mechanism"), options = mongo_member(command, "options");
    const mechanism *m = mql_is_text(name) ? mechanism_of(mql_as_text(name)) : NULL;
    slice message = payload_of(command);
    (void)database;
    *done_out = false;
    if (!m) {
        return op_fail_as(&q->op, E_UNAUTHORIZED, 334, "Unsupported authentication mechanism; use SCRAM-SHA-256, SCRAM-SHA-1 or PLAIN.");
    }
    q->conn->conversations++;
    if (m->plain) {
        return check_plain(q, message, done_out);
    }
    free(q->conn->sasl);
    mongo_sasl *s = q->conn->sasl = mem_zero(sizeof *s);
    s->conversation = q->conn->conversations;
    s->skips_empty = mql_truth(mql_member(options, SLICE_LIT("skipEmptyExchange")));
    access_scram_begin(&s->scram, m->kind);
    note_scram_user(q, message);
    return step_scram(q, message, payload, done_out);
}

void mongo_add_sasl(mongo_request *q, mql_builder *b, slice payload, bool done) {
    mongo_add_int(b, "conversationId", q->conn->conversations);
    mongo_add_bool(b, "done", done);
    mongo_add_binary(b, "payload", 0, payload);
}

/* ---- commands ---- */

static err answer(mongo_request *q, buf *payload, bool done) {
    mongo_add_sasl(q, mongo_answer(q), buf_view(payload), done);
    if (done) {
        free(q->conn->sasl);
        q->conn->sasl = NULL;
    }
    mongo_end(q);
    return OK;
}

err mongo_sasl_start_command(mongo_request *q) {
    char room[ACCESS_SCRAM_REPLY_MAX];
    buf payload = {.p = room, .cap = sizeof room, .max = sizeof room};
    bool done = false;
    TRY(mongo_sasl_start(q, q->message.body, q->database, &payload, &done));
    return answer(q, &payload, done);
}

err mongo_sasl_continue(mongo_request *q) {
    char room[ACCESS_SCRAM_REPLY_MAX];
    buf payload = {.p = room, .cap = sizeof room, .max = sizeof room};
    mongo_sasl *s = q->conn->sasl;
    int64_t conversation = 0;
    bool done = false;
    TRY(mongo_arg_count(q, "conversationId", &conversation));
    if (!s || conversation != s->conversation) {
        return op_fail_as(&q->op, E_UNAUTHORIZED, CODE_PROTOCOL_ERROR, "No SASL session state found");
    }
    if (s->ending) {
        return payload_of(q->message.body).n ? refuse(q, E_BAD_AUTHORIZATION) : answer(q, &payload, true);
    }
    TRY(step_scram(q, payload_of(q->message.body), &payload, &done));
    return answer(q, &payload, done);
}

err mongo_logout(mongo_request *q) {
    mongo_conn_end(q->conn);
    q->conn->user[0] = 0;
    return mongo_ok(q);
}
