/* From a frame to the handler of its command. */
#include <assert.h>
#include <stdlib.h>

#include "api/mongo/adopt.h"
#include "api/mongo/cursors.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/mongo_int.h"
#include "api/mongo/retry.h"
#include "api/mongo/transaction.h"
#include "api/mongo/update_kind.h"
#include "api/mongo/work.h"
#include "base/memory.h"

enum {
    UNTRUSTED_FRAME_BYTES = 64 * 1024,
    IDLE_MS = 30 * 60 * 1000, /* pools of drivers keep connections for long */
};

/* ---- dispatch ---- */

static err refuse_unauthenticated(mongo_request *q) {
    return op_fail_as(&q->op, E_FORBIDDEN, CODE_UNAUTHORIZED, "command %s requires authentication", q->command->name);
}

static err check_access(mongo_request *q) {
    const mongo_command *c = q->command;
    if (c->flags & MONGO_OPEN) {
        return OK;
    }
    if (q->conn->reach.proof == ACCESS_NOBODY) {
        return refuse_unauthenticated(q);
    }
    TRY(access_reach_holds(&q->op, &q->conn->reach, access_keys_ring(q->front->keys), q->front->core.account));
    if ((q->conn->reach.verbs & c->access) != c->access) {
        return op_fail_as(&q->op, E_FORBIDDEN, CODE_UNAUTHORIZED, "not authorized on %.*s to execute command %s", slice_shown(q->database),
                          q->database.p, c->name);
    }
    return OK;
}

/* Handlers look for their arguments by name, one after the other. */
static err check_members(mongo_request *q) {
    enum { MEMBERS_MAX = 1000 };
    const wire_message *m = &q->message;
    for (size_t i = 0; i < m->members_n && i < WIRE_MEMBERS; i++) {
        q->names |= mongo_name_bit(m->members[i].key.p);
    }
    q->names = m->members_n > WIRE_MEMBERS ? UINT64_MAX : q->names;
    return m->members_n <= MEMBERS_MAX
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "A command has %d members at most.", MEMBERS_MAX);
}

static err find_command(mongo_request *q) {
    const doc_element *first = &q->message.members[0];
    if (!q->message.members_n) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_FOUND, "no such command: ''");
    }
    q->command = mongo_command_of(first->key);
    if (!q->command) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_FOUND, "no such command: '%.*s'", slice_shown(first->key), first->key.p);
    }
    if (q->command->flags & MONGO_BEYOND && q->front->surface == MONGO_SERVICE) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_SUPPORTED, "Command %s not supported.", q->command->name);
    }
    if (q->message.is_query && !(q->command->flags & MONGO_OPEN)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_UNSUPPORTED_OPCODE,
                          "Unsupported OP_QUERY command: %s. The client driver may require an upgrade.", q->command->name);
    }
    return OK;
}

static err read_database(mongo_request *q) {
    doc_element e;
    q->database = q->message.database;
    if (mongo_get(q, "$db", &e)) {
        if (e.type != BSON_TYPE_UTF8) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TYPE_MISMATCH, "BSON field '$db' is the wrong type, expected type 'string'");
        }
        q->database = doc_element_text(&e);
    }
    if (!q->database.n) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 40571, "OP_MSG requests require a $db argument");
    }
    return mongo_check_database(&q->op, q->database);
}

static err read_collection(mongo_request *q) {
    const doc_element *first = &q->message.members[0];
    if (!(q->command->flags & MONGO_NAMED)) {
        return OK;
    }
    if (first->type != BSON_TYPE_UTF8) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "collection name has invalid type %s", mql_type_name(first->type));
    }
    q->collection = doc_element_text(first);
    return mongo_check_collection(&q->op, q->collection);
}

static bool ends_transaction(const mongo_request *q) {
    return q->command->handle == mongo_commit_transaction || q->command->handle == mongo_abort_transaction;
}

static err start(mongo_request *q) {
    TRY(find_command(q));
    TRY(check_members(q));
    TRY(read_database(q));
    TRY(check_access(q));
    TRY(read_collection(q));
    if (!(q->command->flags & MONGO_OPEN)) {
        mongo_operation_begin(q);
    }
    TRY(mongo_operation_read_limit(q));
    TRY(mongo_session_read(q));
    TRY(q->session.in_transaction && !ends_transaction(q) ? mongo_transaction_enter(q) : OK);
    return q->command->handle(q);
}

static void dispatch(mongo_request *q) {
    err code = start(q);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

/* ---- requests ---- */

static mongo_request *make_request(frames_request *frame) {
    mongo_request *q = arena_alloc(frame->arena, sizeof *q);
    net_loop *loop = frame->client.loop;
    memset(&q->call.any, 0, sizeof q->call.any); /* the rest is set when a call begins */
    memset((char *)q + sizeof q->call, 0, offsetof(mongo_request, op) - sizeof q->call);
    wire_clear(&q->message);
    q->frame = frame;
    q->front = frames_context(frame->conn);
    q->conn = frames_state(frame->conn);
    q->started_us = clock_monotonic_us(net_loop_clock(loop));
    q->now_ms = net_loop_wall_ms(loop);
    op_init(&q->op, frame->arena, q->now_ms / 1000);
    q->op.arrived_us = q->started_us;
    return q;
}

/* Before authentication a message is small, whatever it is compressed to. */
static size_t expanded_max(const mongo_request *q) {
    return q->conn->reach.proof == ACCESS_NOBODY ? UNTRUSTED_FRAME_BYTES : WIRE_MESSAGE_MAX - WIRE_HEADER_BYTES;
}

static void decode_on_worker(call *c) {
    mongo_request *q = (mongo_request *)c;
    c->code = wire_read(&q->op, q->frame->frame, expanded_max(q), &q->message);
}

static size_t bytes_of(const wire_message *m) {
    size_t n = m->body.n;
    for (size_t i = 0; i < m->sequences_n; i++) {
        n += m->sequences[i].documents.n;
    }
    return n;
}

static void go_on(mongo_request *q, err code) {
    if (code == OK) {
        q->large = bytes_of(&q->message) > MONGO_LARGE_BYTES;
        dispatch(q);
        return;
    }
    frames_finish(q->frame->conn); /* what follows a malformed message cannot be trusted */
    mongo_fail(q, code);
}

static void decoded(call *c) {
    mongo_request *q = (mongo_request *)c;
    if (!q->message.more_to_come) {
        q->holds = false;
        mongo_release(q->conn);
    }
    go_on(q, c->code);
}

/* Whether the next requests of the connection must wait: until it has ended, or until it is known that it will have a reply. */
static void hold(mongo_request *q) {
    q->holds = q->conn->held = true;
}

static void begin(mongo_request *q) {
    frames_request *frame = q->frame;
    if (frame->frame.n <= MONGO_LARGE_BYTES && wire_opcode_of(frame->frame) != WIRE_COMPRESSED) {
        err code = wire_read(&q->op, frame->frame, 0, &q->message);
        q->message.more_to_come ? hold(q) : (void)0;
        go_on(q, code);
        return;
    }
    hold(q);
    q->message.request_id = wire_request_id(frame->frame);
    call_init(&q->call.any, &q->front->core, &frame->client, &q->op, NULL, decoded);
    q->call.any.tenant = call_tenant_of_none();
    call_work(&q->call.any, NET_BODIES, decode_on_worker);
}

/* After the last of them has begun, the connection may be gone. */
void mongo_release(mongo_conn *c) {
    c->held = false;
    bool more = c->waiting_n > 0 && !c->releasing; /* the caller's caller goes on by itself */
    while (more && !c->held) {
        mongo_request *q = c->waiting[0];
        memmove(&c->waiting[0], &c->waiting[1], --c->waiting_n * sizeof *c->waiting);
        more = c->releasing = c->waiting_n > 0;
        begin(q);
        if (more) {
            c->releasing = false;
        }
    }
}

static void handle(frames_request *frame) {
    mongo_request *q = make_request(frame);
    if (!q->conn->held) {
        begin(q);
        return;
    }
    assert(q->conn->waiting_n < MONGO_IN_FLIGHT); /* which bounds the requests of a connection */
    q->conn->waiting[q->conn->waiting_n++] = q;
}

static void refuse(frames_request *frame, err code) {
    mongo_request *q = make_request(frame);
    q->message.request_id = wire_request_id(frame->frame);
    q->message.is_query = wire_opcode_of(frame->frame) == WIRE_QUERY;
    mongo_fail(q, code);
}

/* ---- connections ---- */

static bool length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    (void)conn;
    return wire_length(header, bytes_out);
}

static void opened(frames_conn *conn) {
    mongo_front *front = frames_context(conn);
    mongo_conn *c = frames_state(conn);
    c->id = 1 + atomic_fetch_add(&front->connections, 1);
}

static void closed(frames_conn *conn) {
    mongo_conn_end(frames_state(conn));
}

/* ---- life ---- */

mongo_front *mongo_open(const mongo_options *options) {
    mongo_front *front = mem_zero(sizeof *front);
    random_source random;
    *front = (mongo_front){
        .frames = {.name = "mongo",
                   .header_bytes = WIRE_HEADER_BYTES,
                   .length = length,
                   .untrusted = {.frame_bytes = UNTRUSTED_FRAME_BYTES, .in_flight = 2, .in_flight_bytes = 2 * UNTRUSTED_FRAME_BYTES},
                   .trusted = {.frame_bytes = WIRE_MESSAGE_MAX,
                               .in_flight = MONGO_IN_FLIGHT,
                               .in_flight_bytes = 2 * (size_t)WIRE_MESSAGE_MAX},
                   .idle_timeout_ms = IDLE_MS,
                   .state_bytes = sizeof(mongo_conn),
                   .opened = opened,
                   .closed = closed,
                   .handle = handle,
                   .refuse = refuse},
        .core = {.account = options->account, .scripts = options->scripts, .faults = options->faults},
        .keys = options->keys,
        .attempts = options->attempts,
        .server = options->server,
        .surface = options->surface,
        .cursors = mongo_cursors_new(),
        .sessions = mongo_sessions_new(),
        .operations = mongo_operations_new(),
        .index_uses = mongo_index_uses_new(),
        .started_ms = clock_wall_ms(&clock_system),
    };
    front->frames.context = front;
    random_seed_system(&random);
    random_bytes(&random, front->process_id, sizeof front->process_id);
    atomic_init(&front->object_ids, random_u64(&random));
    mongo_commands_open();
    mongo_filter_register();
    mongo_update_register();
    mongo_adopt_register();
    return front;
}

const frames_front *mongo_frames(const mongo_front *front) {
    return &front->frames;
}

void mongo_tick(mongo_front *front) {
    mongo_cursors_tick(front->cursors, clock_monotonic_us(&clock_system));
    mongo_sessions_tick(front->sessions, clock_monotonic_us(&clock_system));
}

void mongo_stop(mongo_front *front) {
    mongo_cursors_clear(front->cursors);
}

void mongo_close(mongo_front *front) {
    mongo_cursors_free(front->cursors);
    mongo_sessions_free(front->sessions);
    mongo_operations_free(front->operations);
    mongo_index_uses_free(front->index_uses);
    free(front);
}
