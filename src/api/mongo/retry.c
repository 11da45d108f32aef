#include "api/mongo/retry.h"

#include <endian.h>

enum { UUID_BYTES = 16, UUID_SUBTYPE = 4, BINARY_HEAD = 5 };

/* ---- the session ---- */

static bool uuid_of(mql_value v, uint8_t uuid[static UUID_BYTES]) {
    bool is_uuid = v.type == BSON_TYPE_BINARY && v.bytes.n == BINARY_HEAD + UUID_BYTES && v.bytes.p[4] == UUID_SUBTYPE;
    if (is_uuid) {
        memcpy(uuid, v.bytes.p + BINARY_HEAD, UUID_BYTES);
    }
    return is_uuid;
}

bool mongo_session_id_of(const mongo_request *q, mql_value lsid, mongo_session_id *id_out) {
    *id_out = (mongo_session_id){.owner = q->conn->reach.serial};
    return lsid.type == BSON_TYPE_DOCUMENT && uuid_of(mql_member(lsid, SLICE_LIT("id")), id_out->uuid);
}

static err read_ids(mongo_request *q, mql_value lsid, mql_value number) {
    mongo_session *s = &q->session;
    if (!mongo_session_id_of(q, lsid, &s->id)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TYPE_MISMATCH, "The lsid is not a document with a UUID as its id.");
    }
    s->numbered = !mql_is_missing(number);
    if (s->numbered && (number.type != BSON_TYPE_INT64 || doc_load_i64(number.bytes.p) < 0)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "The txnNumber must be a non-negative 64-bit integer.");
    }
    s->number = s->numbered ? doc_load_i64(number.bytes.p) : 0;
    s->given = true;
    mql_value autocommit = mongo_arg(q, "autocommit");
    s->in_transaction = autocommit.type == BSON_TYPE_BOOL && !mql_as_bool(autocommit);
    return OK;
}

/* Statements are numbered from stmtId on. Numbers for each (stmtIds) are what routers send, not drivers. */
static err read_statement(mongo_request *q) {
    mql_value first = mongo_arg(q, "stmtId");
    if (!mql_is_missing(mongo_arg(q, "stmtIds")) || !(mql_is_missing(first) || first.type == BSON_TYPE_INT32)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "Statements are numbered by an integer stmtId, not by stmtIds.");
    }
    q->session.statement = first.type == BSON_TYPE_INT32 ? doc_load_i32(first.bytes.p) : 0;
    return OK;
}

err mongo_session_read(mongo_request *q) {
    mql_value lsid = mongo_arg(q, "lsid"), number = mongo_arg(q, "txnNumber");
    if (mql_is_missing(lsid)) {
        return mql_is_missing(number) ? OK
                                      : op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS,
                                                   "Transaction number requires a session ID to also be specified");
    }
    TRY(read_ids(q, lsid, number));
    if (!q->session.numbered || q->session.in_transaction || !(q->command->flags & MONGO_WRITES)) {
        return OK;
    }
    TRY(read_statement(q));
    session_write known = mongo_sessions_write(q->front->sessions, &q->session.id, q->session.number, q->started_us);
    if (known == SESSION_TOO_OLD) {
        return op_fail_as(
            &q->op, E_BAD_REQUEST, CODE_TRANSACTION_TOO_OLD,
            "Retryable write with txnNumber %ld is prohibited on the session, because a newer retryable write has already started.",
            (long)q->session.number);
    }
    q->session.retryable = true;
    q->session.perhaps_repeated = known == SESSION_AGAIN;
    return OK;
}

/* ---- receipts ---- */

item_receipt mongo_receipt_of(mongo_request *q, size_t statement, item_image image) {
    const mongo_session *s = &q->session;
    if (!s->retryable) {
        return (item_receipt){0};
    }
    enum { BYTES = UUID_BYTES + 8 + 8 + 4 };
    uint64_t owner = htobe64(s->id.owner), number = htobe64((uint64_t)s->number);
    uint32_t nth = htobe32((uint32_t)s->statement + (uint32_t)statement);
    char *p = arena_alloc(q->frame->arena, BYTES);
    memcpy(p, s->id.uuid, UUID_BYTES);
    memcpy(p + UUID_BYTES, &owner, 8);
    memcpy(p + UUID_BYTES + 8, &number, 8);
    memcpy(p + UUID_BYTES + 16, &nth, 4);
    return (item_receipt){slice_of(p, BYTES), image};
}

err mongo_check_multi(mongo_request *q, bool multi) {
    return multi && q->session.retryable
               ? op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "Cannot use retryable writes with multi=true")
               : OK;
}

/* ---- commands ---- */

err mongo_end_sessions(mongo_request *q) {
    doc_walk w;
    doc_element e;
    mongo_session_id id;
    mql_value list = mongo_arg(q, q->command->name);
    TRY(list.type == BSON_TYPE_ARRAY ? mongo_check_ids(q, list.bytes) : OK);
    if (list.type == BSON_TYPE_ARRAY && doc_walk_init(&w, list.bytes)) {
        while (doc_walk_next(&w, &e)) {
            if (mongo_session_id_of(q, mql_of(&e), &id)) {
                mongo_sessions_end(q->front->sessions, &id);
            }
        }
    }
    return mongo_ok(q);
}

err mongo_start_session(mongo_request *q) {
    uint8_t uuid[UUID_BYTES];
    mongo_make_uuid(q, uuid);
    mql_builder *b = mongo_answer(q);
    mongo_open_document(b, "id");
    mongo_add_binary(b, "id", UUID_SUBTYPE, slice_of(uuid, UUID_BYTES));
    mql_close(b);
    mongo_add_int(b, "timeoutMinutes", MONGO_SESSION_IDLE_S / 60);
    mongo_end(q);
    return OK;
}
