#include "api/mongo/change_stream.h"

#include "api/mongo/change_wide.h"
#include "api/mongo/collections.h"
#include "api/mongo/memo.h"
#include "mql/pipeline.h"

#define STAGE_STEPS ((uint64_t)100000000) /* limit for one event: about a second */
#define STAGE_MEMORY ((size_t)64 << 20)

enum { STAGES_BYTES_MAX = 64 * 1024 };

/* ---- arguments ---- */

static mql_value first_member(slice document, slice *key_out) {
    doc_walk w;
    doc_element e;
    bool any = doc_walk_init(&w, document) && doc_walk_next(&w, &e);
    *key_out = any ? e.key : SLICE_EMPTY;
    return any ? mql_of(&e) : mql_missing();
}

static mql_value argument_of(slice stages) {
    slice key;
    mql_value stage = first_member(stages, &key);
    mql_value argument = stage.type == BSON_TYPE_DOCUMENT ? first_member(stage.bytes, &key) : mql_missing();
    return slice_eq(key, SLICE_LIT("$changeStream")) ? argument : mql_missing();
}

bool mongo_is_stream(slice stages) {
    return !mql_is_missing(argument_of(stages));
}

static err wrong(mongo_request *q, const char *what) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "%s", what);
}

/* The index of a text in a list of choices; 0 if it was not given. */
static err choose(mongo_request *q, mql_value argument, const char *name, const char *const *texts, size_t n, size_t *chosen_out) {
    mql_value v = mql_member(argument, slice_str(name));
    *chosen_out = 0;
    if (mql_is_missing(v)) {
        return OK;
    }
    for (size_t i = 0; i < n && mql_is_text(v); i++) {
        if (slice_eq(mql_as_text(v), slice_str(texts[i]))) {
            *chosen_out = i;
            return OK;
        }
    }
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "The value of '%s' in $changeStream is not one that exists.", name);
}

static err read_images(mongo_request *q, mql_value argument, mongo_watch *w) {
    static const char *const now[] = {"default", "updateLookup", "whenAvailable", "required"};
    static const char *const before[] = {"off", "whenAvailable", "required"};
    size_t full, old;
    TRY(choose(q, argument, "fullDocument", now, 4, &full));
    TRY(choose(q, argument, "fullDocumentBeforeChange", before, 3, &old));
    w->full_document = full > 0;
    w->before = (mongo_image)old;
    return OK;
}

static err bad_token(mongo_request *q, const char *why) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_RESUME_TOKEN, "%s", why);
}

static err read_time(mongo_request *q, mql_value time, mongo_opening *o) {
    if (time.type != BSON_TYPE_TIMESTAMP) {
        return wrong(q, "startAtOperationTime must be a timestamp.");
    }
    o->since_s = (uint32_t)((uint64_t)doc_load_i64(time.bytes.p) >> 32);
    return OK;
}

/* Reads the start of the stream: a token or a time; otherwise now. */
static err read_start(mongo_request *q, mql_value argument, mongo_opening *o) {
    mql_value after = mql_member(argument, SLICE_LIT("resumeAfter")), begin = mql_member(argument, SLICE_LIT("startAfter"));
    mql_value time = mql_member(argument, SLICE_LIT("startAtOperationTime")), token = mql_is_missing(after) ? begin : after;
    if (!mql_is_missing(after) && !mql_is_missing(begin)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage");
    }
    if (!mql_is_missing(time) && !mql_is_missing(token)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 40674, "Only one type of resume option is allowed, but multiple were found.");
    }
    if (mql_is_missing(token)) {
        return mql_is_missing(time) ? OK : read_time(q, time, o);
    }
    if (!mongo_token_read(q->frame->arena, token, &o->position)) {
        return bad_token(q, "The resume token is malformed.");
    }
    o->ended = mongo_position_was_ended(&o->position);
    if (!o->position.n) {
        return bad_token(q, "The resume token is malformed.");
    }
    return o->ended && !mql_is_missing(after)
               ? bad_token(q, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
               : OK;
}

/* After the end of a stream: if its collection is gone, from the beginning of the one that has the name now. */
static err start_after_end(mongo_request *q, mongo_opening *o) {
    uint32_t number;
    if (!follow_position_container(o->position, &number)) {
        return bad_token(q, "The resume token is malformed.");
    }
    if (number != q->container->space->container) {
        o->position = SLICE_EMPTY;
        o->since_s = MONGO_SINCE_EVER;
    }
    return OK;
}

/* Only stages that make at most one document of each event. */
static err check_stages(mongo_request *q, slice stages) {
    static const char *const permitted[] = {"$addFields",   "$match", "$project", "$redact",      "$replaceRoot",
                                            "$replaceWith", "$set",   "$unset",   "$changeStream"};
    doc_walk w;
    doc_element e;
    slice key;
    for (doc_walk_init(&w, stages); doc_walk_next(&w, &e);) {
        bool good = false;
        first_member(e.type == BSON_TYPE_DOCUMENT ? e.value : SLICE_EMPTY, &key);
        for (size_t i = 0; i < sizeof permitted / sizeof *permitted; i++) {
            good = good || slice_eq(key, slice_str(permitted[i]));
        }
        if (!good) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_ILLEGAL_OPERATION, "%.*s is not permitted in a $changeStream pipeline",
                              slice_shown(key), key.n ? key.p : "");
        }
    }
    return OK;
}

/* Whether it is the stream of the deployment, which the database `admin` has. */
static err read_scope(mongo_request *q, mql_value argument, bool wide, bool *deployment_out) {
    bool admin = slice_eq(q->database, SLICE_LIT("admin"));
    *deployment_out = mql_truth(mql_member(argument, SLICE_LIT("allChangesForCluster")));
    if (*deployment_out && !(wide && admin)) {
        return op_fail_as(
            &q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS,
            "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, without a collection");
    }
    if (wide && admin && !*deployment_out) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "$changeStream may not be opened on the internal admin database");
    }
    return !wide || q->front->surface != MONGO_SERVICE
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_SUPPORTED, "$changeStream is supported on a collection only.");
}

/* ---- opening ---- */

static bool refuse_all(void *context, const follow_change *change) {
    (void)context;
    (void)change;
    return false;
}

static slice shard_path(arena *a, const container *c) {
    slice key;
    first_member(mongo_memo_of(c).shard_key, &key);
    return key.n ? arena_copy(a, key) : SLICE_EMPTY;
}

mongo_cursor *mongo_stream_cursor(mongo_request *q, const mongo_opening *o) {
    mongo_cursor *c = mongo_cursor_new(mongo_namespace(q->frame->arena, q->database, q->collection), q->conn->reach.serial,
                                       net_loop_memory(q->frame->client.loop));
    mongo_stream *s = c->stream = arena_new(&c->arena, mongo_stream);
    *s = (mongo_stream){.watch = o->watch, .since_s = o->since_s, .stages = arena_copy(&c->arena, o->stages)};
    s->watch.database = arena_copy(&c->arena, q->database);
    s->watch.collection = arena_copy(&c->arena, q->collection);
    c->find.now_ms = q->now_ms;
    return c;
}

err mongo_stream_error(mongo_request *q, err code) {
    if (code == E_BAD_CONTINUATION) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_RESUME_TOKEN, "The resume token is not one of this collection.");
    }
    if (code == E_BAD_REQUEST) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_HISTORY_LOST,
                          "Resume of change stream was not possible, as the resume point may no longer be in the log of changes.");
    }
    return code;
}

static void was_opened(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_batch *b;
    err code = mongo_stream_error(q, c->code);
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    slice position = q->call.follow.position;
    mongo_cursor *cursor = mongo_stream_cursor(q, q->state);
    cursor->stream->watch.shard_key = shard_path(&cursor->arena, q->container);
    cursor->container = container_take(q->container);
    buf_add_slice(&cursor->position, position);
    code = mongo_batch_begin(q, cursor, 0, &b);
    b->token = position;
    mongo_batch_answer(q, code);
}

void mongo_stream_from(call_follow *f, slice position) {
    epk min, max;
    f->start.mode = FOLLOW_VERSIONS;
    f->start.position = position;
    if (position.n && follow_position_part(position, &min, &max)) {
        f->start.min = min;
        f->start.max = max;
    }
}

/* Checks the start position; without one, takes the current position. */
static err open_follower(mongo_request *q) {
    mongo_opening *o = q->state;
    call_follow *f = &q->call.follow;
    call_follow_init(f, &q->front->core, &q->frame->client, &q->op, q->container, was_opened);
    mongo_stream_from(f, o->position);
    f->start.from_now = !o->position.n && !o->since_s;
    f->wait_ms = 0;
    f->sink = refuse_all;
    call_follow_submit(f);
    return OK;
}

static err log_is_on(mongo_request *q) {
    TRY(q->change->commit.code);
    container_give(q->container);
    q->container = NULL;
    TRY(mongo_need_collection(q));
    return q->logged(q);
}

/* Another stream may do the same at the same time. */
static err turn_log_on(mongo_request *q) {
    container_give(q->container);
    q->container = NULL;
    TRY(mongo_need_collection(q));
    if (item_versions_kept(q->container)) {
        return q->logged(q);
    }
    mongo_memo memo = mongo_memo_of(q->container);
    memo.log_minutes = MONGO_LOG_MINUTES;
    q->conflict = turn_log_on;
    mongo_change_collection(q, &memo, log_is_on);
    return OK;
}

err mongo_stream_log(mongo_request *q, mongo_handler then) {
    if (item_versions_kept(q->container)) {
        return then(q);
    }
    TRY(mongo_need_writable(q));
    if (!(q->conn->reach.verbs & ACCESS_ALTER)) {
        return op_fail_as(
            &q->op, E_FORBIDDEN, CODE_UNAUTHORIZED,
            "The first change stream of a collection turns on its log, which changes the collection: open one with a read-write key.");
    }
    q->logged = then;
    return turn_log_on(q);
}

err mongo_stream_open(mongo_request *q, slice stages) {
    mongo_opening *o = q->state = arena_new(q->frame->arena, mongo_opening);
    mql_value argument = argument_of(stages);
    bool deployment, wide = !mql_is_text(mongo_arg(q, "aggregate"));
    mongo_scope scope;
    const mql_pipeline *pipeline;
    o->stages = stages;
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return wrong(q, "The $changeStream stage takes a document.");
    }
    TRY(read_scope(q, argument, wide, &deployment));
    TRY(wide ? OK : mongo_need_collection(q));
    TRY(read_images(q, argument, &o->watch));
    TRY(read_start(q, argument, o));
    TRY(o->ended && !wide ? start_after_end(q, o) : OK);
    if (stages.n > STAGES_BYTES_MAX) { /* every getMore parses them */
        return wrong(q, "The pipeline of a change stream is too long.");
    }
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    TRY(mql_pipeline_parse(&scope.scope, stages, &pipeline));
    TRY(check_stages(q, stages));
    if (wide) {
        return mongo_wide_open(q, o, deployment);
    }
    return mongo_stream_log(q, open_follower);
}

/* ---- events ---- */

typedef struct mongo_streaming streaming;

void mongo_streaming_free(mongo_request *q) {
    streaming *s = q->streaming;
    if (s->flow) {
        mql_flow_free(s->flow);
    }
    budget_end(&s->memory);
    buf_free(&s->position);
    buf_free(&s->event);
    buf_free(&s->token);
    buf_free(&s->last);
}

/* Passes an event through the stages. */
static err run_stages(mongo_request *q, streaming *s, slice event) {
    mongo_batch *b = q->batch;
    mql_need need = MQL_NEED_TAKE;
    TRY(mql_flow_push(s->flow, event));
    while (need == MQL_NEED_TAKE) {
        mql_run r = mongo_run_of(&q->op, &b->row, &s->scope, STAGE_STEPS);
        TRY(mql_flow_step(s->flow, &r, &need));
        if (need == MQL_NEED_TAKE && !mongo_batch_add(q, b, mql_flow_take(s->flow))) {
            return b->failed != OK ? b->failed : E_TOO_LARGE;
        }
    }
    return need == MQL_NEED_INPUT
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_ILLEGAL_OPERATION, "A stage of the pipeline is not permitted in a change stream.");
}

err mongo_stream_emit(mongo_request *q, slice event) {
    mongo_batch *b = q->batch;
    if (q->streaming->flow) {
        return run_stages(q, q->streaming, event);
    }
    mongo_batch_add(q, b, event);
    return b->failed;
}

bool mongo_stream_has_room(const mongo_request *q, size_t bytes) {
    const mongo_batch *b = q->batch;
    return b->rows_n == 0 || (b->rows_n < b->rows_max && b->rows.n + bytes <= MONGO_BATCH_BYTES);
}

/* On a worker. The changes of one commit may be more than fit: then the cursor continues within the commit. */
bool mongo_stream_take(void *context, const follow_change *change) {
    mongo_request *q = context;
    streaming *s = q->streaming;
    const mongo_stream *stream = q->batch->cursor->stream;
    const mongo_watch *watch = stream->wide ? mongo_wide_watch(stream->wide) : &stream->watch;
    if (change->ts < stream->since_s) {
        return true;
    }
    buf_clear(&s->position);
    buf_clear(&s->event);
    follow_position_after(change, &s->position);
    if (stream->wide) {
        buf_clear(&s->token);
        mongo_wide_position(stream->wide, buf_view(&s->position), &s->token);
    }
    s->failed = mongo_change_event(&q->op, watch, change, buf_view(stream->wide ? &s->token : &s->position), &s->event);
    s->failed = s->failed != OK ? s->failed : buf_ok(&s->event) ? OK : budget_error(q->op.budget);
    s->full = s->failed == OK && !mongo_stream_has_room(q, s->event.n);
    if (s->failed != OK || s->full) {
        return false;
    }
    s->failed = mongo_stream_emit(q, buf_view(&s->event));
    buf_clear(&s->last);
    buf_add_slice(&s->last, buf_view(&s->position));
    return s->failed == OK;
}

/* ---- the end of a stream ----
 *
 * The events that end a stream are held by its cursor, as they are before the stages, until a batch has room for them. */

/* `with_namespace`: it is not `invalidate`. `to`: the new name after a rename; empty: none. */
static void hold_end(mongo_request *q, const char *operation, bool with_namespace, slice to) {
    mongo_cursor *c = q->batch->cursor;
    const mongo_watch *w = &c->stream->watch;
    mql_builder event = mql_build(&c->held);
    slice position = buf_view(&c->position);
    mongo_token_add(&event, SLICE_LIT("_id"), with_namespace ? position : mongo_position_ended(q->frame->arena, position));
    mongo_add_text(&event, "operationType", slice_str(operation));
    mql_add(&event, SLICE_LIT("clusterTime"), mql_timestamp(q->frame->arena, (uint32_t)(q->now_ms / 1000), 1));
    mongo_add_date(&event, "wallTime", q->now_ms);
    if (with_namespace) {
        mongo_open_document(&event, "ns");
        mongo_add_text(&event, "db", w->database);
        mongo_add_text(&event, "coll", w->collection);
        mql_close(&event);
    }
    if (to.n) {
        mongo_open_document(&event, "to");
        mongo_add_text(&event, "db", w->database);
        mongo_add_text(&event, "coll", to);
        mql_close(&event);
    }
    mql_built(&event);
}

/* Gives the held events for which the batch has room. */
static void give_held(mongo_request *q) {
    mongo_cursor *c = q->batch->cursor;
    slice rest = slice_skip(buf_view(&c->held), c->held_at), event;
    err code = buf_ok(&c->held) ? OK : E_MEMORY;
    while (code == OK && mongo_stream_has_room(q, 0) && wire_next(&rest, &event)) {
        code = mongo_stream_emit(q, event);
        c->held_at += event.n;
    }
    slice position = buf_view(&c->position);
    bool all = c->held_at >= c->held.n;
    q->batch->token = all ? mongo_position_ended(q->frame->arena, position) : arena_copy(q->frame->arena, position);
    mongo_streaming_free(q);
    mongo_batch_answer(q, code);
}

static void end_stream(mongo_request *q, const char *operation, slice to) {
    q->op.detail_n = 0;
    q->batch->cursor->ended = true;
    hold_end(q, operation, true, to);
    hold_end(q, "invalidate", false, SLICE_EMPTY);
    give_held(q);
}

/* The collection's new name, if it was renamed since the stream was opened; otherwise empty. */
static slice new_name(mongo_request *q) {
    const mongo_cursor *c = q->batch->cursor;
    container *newest = account_container_newest(q->front->core.account, c->container);
    bool renamed = newest && !slice_eq(newest->id, c->stream->watch.collection);
    slice name = renamed ? arena_copy(q->frame->arena, newest->id) : SLICE_EMPTY;
    if (newest) {
        container_give(newest);
    }
    return name;
}

/* ---- getMore ---- */

static void followed(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_batch *b = q->batch;
    streaming *s = q->streaming;
    err code = c->code != OK ? c->code : s->failed;
    slice position = s->full && s->last.n ? arena_copy(q->frame->arena, buf_view(&s->last)) : q->call.follow.position;
    if (code == E_OWNER_NOT_FOUND) {
        end_stream(q, "drop", SLICE_EMPTY);
        return;
    }
    if (c->code == OK) {
        buf_clear(&b->cursor->position);
        buf_add_slice(&b->cursor->position, position);
        b->token = position;
    }
    slice to = code == OK && !b->rows_n ? new_name(q) : SLICE_EMPTY; /* after everything that was written before */
    if (to.n) {
        end_stream(q, "rename", to);
        return;
    }
    mongo_streaming_free(q);
    mongo_batch_answer(q, c->code != OK ? mongo_stream_error(q, code) : code);
}

static err begin_stages(mongo_request *q, streaming *s, const mongo_stream *stream) {
    const mql_pipeline *pipeline;
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &s->scope));
    if (mql_length(mql_array(stream->stages)) == 1) {
        return OK;
    }
    TRY(mql_pipeline_parse(&s->scope.scope, stream->stages, &pipeline));
    s->flow = mql_flow_begin(pipeline, 1, &s->memory);
    return OK;
}

void mongo_stream_continue(mongo_request *q) {
    mongo_batch *b = q->batch;
    streaming *s = q->streaming = arena_new(q->frame->arena, streaming);
    int64_t wait_ms = MONGO_STREAM_WAIT_MS;
    call_follow *f = &q->call.follow;
    *s = (streaming){.memory = budget_init(net_loop_memory(q->frame->client.loop), STAGE_MEMORY),
                     .position = buf_init(BUF_NO_LIMIT),
                     .last = buf_init(BUF_NO_LIMIT),
                     .token = buf_init(BUF_NO_LIMIT),
                     .event = buf_init_counted(BUF_NO_LIMIT, q->op.budget)};
    err code = mongo_arg_count(q, "maxTimeMS", &wait_ms);
    code = code != OK ? code : begin_stages(q, s, b->cursor->stream);
    if (code != OK) {
        mongo_streaming_free(q);
        mongo_batch_answer(q, code);
        return;
    }
    if (b->cursor->stream->wide) {
        mongo_wide_continue(q);
        return;
    }
    if (b->cursor->ended) {
        give_held(q);
        return;
    }
    call_follow_init(f, &q->front->core, &q->frame->client, &q->op, b->cursor->container, followed);
    mongo_stream_from(f, buf_view(&b->cursor->position));
    f->items_max = b->rows_max;
    f->bytes_max = MONGO_BATCH_BYTES / 2;
    f->wait_ms = wait_ms < 0 ? 0 : wait_ms > 60000 ? 60000 : (unsigned)wait_ms;
    f->sink = mongo_stream_take;
    f->context = q;
    call_follow_submit(f);
}
