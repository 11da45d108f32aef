/* The handshake: hello and isMaster. The server is the primary of the replica set "globaldb", as Azure's service is.
 *
 * A client that sends topologyVersion and maxAwaitTimeMS is answered when the topology changes, which it never does, or when the time has
 * passed. If it allows exhaust, it gets such answers one after the other until it leaves. */
#include "api/mongo/compress.h"
#include "api/mongo/mongo_int.h"

enum {
    AWAIT_MS_MAX = 60 * 1000,
    AWAIT_MS_MIN = 100,    /* so that one request does not keep a loop busy with replies */
    WIRE_VERSION_MAX = 25, /* MongoDB 8.0, for bulkWrite */
    WRITE_BATCH_MAX = 100000,
    DOCUMENT_BYTES_MAX = 16 * 1024 * 1024,
    SESSION_MINUTES = 30,
};

/* A client that waits for a change of the topology. */
struct mongo_hello_state {
    net_wait wait;
    mongo_request *q;
    unsigned await_ms;
    bool is_master;
    bool streams; /* exhaust: it accepts a stream of replies */
    int32_t replies;
    arena_mark before; /* where the arena was before the reply: a stream may have any number of them */
};

/* ---- the reply ---- */

/* Clients connect to the hosts of the reply. So the reply has the name and port that this client has used, as far as they are known: the
 * name in the TLS handshake, or the address. */
slice mongo_own_host(mongo_request *q) {
    char room[HTTP_PEER_BYTES];
    const char *local = frames_local(q->frame->conn, room);
    slice name = frames_server_name(q->frame->conn);
    const char *colon = strrchr(local, ':');
    return name.n && colon ? arena_printf(q->frame->arena, "%.*s%s", (int)name.n, name.p, colon)
                           : arena_printf(q->frame->arena, "%s", local);
}

static void add_topology(mongo_request *q, mql_builder *b) {
    slice host = mongo_own_host(q);
    mongo_open_document(b, "topologyVersion");
    mongo_add_object_id(b, "processId", q->front->process_id);
    mongo_add_long(b, "counter", 0);
    mql_close(b);
    mongo_open_array(b, "hosts");
    mql_add_next(b, mql_text(q->frame->arena, host));
    mql_close(b);
    mongo_add_text(b, "setName", SLICE_LIT("globaldb"));
    mongo_add_int(b, "setVersion", 1);
    mongo_add_text(b, "me", host);
    mongo_add_text(b, "primary", host);
    mongo_add_bool(b, "secondary", false);
}

static void add_limits(mongo_request *q, mql_builder *b) {
    mongo_add_int(b, "maxBsonObjectSize", DOCUMENT_BYTES_MAX);
    mongo_add_int(b, "maxMessageSizeBytes", WIRE_MESSAGE_MAX);
    mongo_add_int(b, "maxWriteBatchSize", WRITE_BATCH_MAX);
    mongo_add_date(b, "localTime", net_loop_wall_ms(q->frame->client.loop));
    mongo_add_int(b, "logicalSessionTimeoutMinutes", SESSION_MINUTES);
    mongo_add_int(b, "connectionId", (int32_t)(q->conn->id & INT32_MAX));
    mongo_add_int(b, "minWireVersion", 0);
    mongo_add_int(b, "maxWireVersion", WIRE_VERSION_MAX);
    mongo_add_bool(b, "readOnly", false);
}

/* Those of the client's compressors that we have, in the client's order. */
static void add_compression(mongo_request *q, mql_builder *b) {
    mql_value asked = mongo_arg(q, "compression");
    doc_walk w;
    doc_element e;
    if (asked.type != BSON_TYPE_ARRAY) {
        return;
    }
    mongo_open_array(b, "compression");
    for (doc_walk_init(&w, asked.bytes); doc_walk_next(&w, &e);) {
        for (unsigned i = COMPRESS_SNAPPY; e.type == BSON_TYPE_UTF8 && i < COMPRESS_COUNT; i++) {
            if (slice_eq(doc_element_text(&e), slice_str(compress_names[i]))) {
                mql_add_next(b, mql_of(&e));
            }
        }
    }
    mql_close(b);
}

/* If speculative authentication fails, the reply does not mention it: the client then authenticates as usual, and gets the error. */
static void add_speculative(mongo_request *q, mql_builder *b) {
    mql_value asked = mongo_arg(q, "speculativeAuthenticate"), database = mql_member(asked, SLICE_LIT("db"));
    char room[ACCESS_SCRAM_REPLY_MAX];
    buf payload = {.p = room, .cap = sizeof room, .max = sizeof room};
    bool done = false;
    if (asked.type != BSON_TYPE_DOCUMENT) {
        return;
    }
    err code = mongo_sasl_start(q, asked.bytes, mql_is_text(database) ? mql_as_text(database) : q->database, &payload, &done);
    if (code == OK) {
        mongo_open_document(b, "speculativeAuthenticate");
        mongo_add_sasl(q, b, buf_view(&payload), done);
        mql_close(b);
    }
    q->op.detail_n = 0;
    q->op.protocol_code = 0;
}

static void add_hello(mongo_request *q, mql_builder *b, bool is_master) {
    mql_value asked = mongo_arg(q, "saslSupportedMechs");
    if (q->front->surface == MONGO_SERVICE) {
        mongo_add_text(b, "_t", SLICE_LIT("IsMasterResponse"));
    }
    mongo_add_bool(b, is_master ? "ismaster" : "isWritablePrimary", true);
    if (mql_truth(mongo_arg(q, "helloOk"))) {
        mongo_add_bool(b, "helloOk", true);
    }
    add_topology(q, b);
    add_limits(q, b);
    if (mql_is_text(asked)) {
        mongo_list_mechanisms(q, b, mql_as_text(asked));
    }
    add_speculative(q, b);
    add_compression(q, b);
}

/* ---- waiting ---- */

static bool cancel(net_wait *wait) {
    (void)wait; /* nothing wakes it: the topology never changes */
    return true;
}

static void await(mongo_hello_state *s);

static void taken(frames_request *frame) {
    mongo_conn *c = frames_state(frame->conn);
    mongo_hello_state *s = c->hello;
    if (frame->client.left) {
        c->hello = NULL;
        frames_end(frame);
        return;
    }
    await(s);
}

/* Ends one reply of a stream; the next one refers to its id. */
static void stream(mongo_hello_state *s) {
    mongo_request *q = s->q;
    buf *out = frames_out(q->frame);
    s->before = arena_marked(q->frame->arena);
    q->message.reply_id = ++s->replies;
    q->reply_start = wire_begin(out, &q->message, true);
    mql_begin(&q->reply, out);
    add_hello(q, &q->reply, s->is_master);
    mongo_add_double(&q->reply, "ok", 1);
    mql_built(&q->reply);
    wire_end(out, q->reply_start, &q->message, true);
    q->message.request_id = q->message.reply_id;
    arena_release(q->frame->arena, s->before);
    frames_flush(q->frame, taken);
}

static void waited(net_wait *wait) {
    mongo_hello_state *s = (mongo_hello_state *)((char *)wait - offsetof(mongo_hello_state, wait));
    mongo_request *q = s->q;
    if (s->streams && !q->frame->client.left && !net_loop_is_stopping(q->frame->client.loop)) {
        stream(s);
        return;
    }
    q->conn->hello = NULL;
    add_hello(q, mongo_answer(q), s->is_master);
    mongo_end(q);
}

static void await(mongo_hello_state *s) {
    net_wait_init(&s->wait, &s->q->frame->client, cancel, waited);
    net_wait_start(&s->wait, s->await_ms);
}

static bool is_current(mongo_request *q, mql_value version) {
    mql_value process = mql_member(version, SLICE_LIT("processId")), counter = mql_member(version, SLICE_LIT("counter"));
    return process.type == BSON_TYPE_OID && memcmp(process.bytes.p, q->front->process_id, 12) == 0 && counter.type == BSON_TYPE_INT64 &&
           doc_load_i64(counter.bytes.p) == 0;
}

static unsigned await_time(int64_t ms) {
    return ms < AWAIT_MS_MIN ? AWAIT_MS_MIN : ms > AWAIT_MS_MAX ? AWAIT_MS_MAX : (unsigned)ms;
}

static err hello(mongo_request *q, bool is_master) {
    int64_t await_ms = -1;
    mql_value version = mongo_arg(q, "topologyVersion");
    TRY(mongo_arg_count(q, "maxAwaitTimeMS", &await_ms));
    if ((await_ms >= 0) != (version.type == BSON_TYPE_DOCUMENT)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 31368,
                          "A request with 'topologyVersion' must include 'maxAwaitTimeMS', and the other way round");
    }
    frames_welcome(q->frame->conn);
    if (await_ms >= 0 && is_current(q, version) && !q->conn->hello) {
        mongo_hello_state *s = q->conn->hello = arena_new(q->frame->arena, mongo_hello_state);
        *s = (mongo_hello_state){.q = q, .await_ms = await_time(await_ms), .is_master = is_master, .streams = q->message.allows_exhaust};
        await(s);
        return OK;
    }
    add_hello(q, mongo_answer(q), is_master);
    mongo_end(q);
    return OK;
}

err mongo_hello(mongo_request *q) {
    return hello(q, false);
}

err mongo_is_master(mongo_request *q) {
    return hello(q, true);
}
