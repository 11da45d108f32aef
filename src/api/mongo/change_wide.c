#include "api/mongo/change_wide.h"

#include <stdlib.h>

#include "api/mongo/collections.h"
#include "api/mongo/views.h"
#include "base/memory.h"
#include "item/range_info.h"

static const char marker[] = "mongoStreams"; /* in the memo of a database */

/* A collection that the stream follows. */
typedef struct member {
    uint32_t number;
    container *container; /* a reference */
    mongo_watch watch;    /* its names live in `names` */
    buf names, position;
    uint64_t seen; /* of the ranges' marks: what has been read; 0: nothing */
    bool there;    /* it was found when the scope was last looked at */
} member;

struct mongo_wide {
    bool deployment;
    uint32_t database; /* number; 0: the deployment */
    mongo_watch watch; /* the stream's options */
    member *list;
    size_t n, room;
    size_t at;        /* the member whose turn it is */
    uint64_t reading; /* the marks of that member before it was read */
    budget *memory;   /* the cursor's */
    bool crowded;
    bool dropped; /* the database was, and the event for it was given */
};

/* A getMore that waits. */
typedef struct looking {
    net_delay delay;
    mongo_request *q;
    int64_t until_us;
} looking;

static mongo_wide *wide_of(const mongo_request *q) {
    return q->batch->cursor->stream->wide;
}

/* ---- members ---- */

static void free_member(member *m) {
    container_give(m->container);
    buf_free(&m->names);
    buf_free(&m->position);
}

void mongo_wide_free(mongo_wide *w) {
    for (size_t i = 0; w && i < w->n; i++) {
        free_member(&w->list[i]);
    }
    if (w) {
        free(w->list);
        free(w);
    }
}

static member *member_of(const mongo_wide *w, uint32_t number) {
    for (size_t i = 0; i < w->n; i++) {
        if (w->list[i].number == number) {
            return &w->list[i];
        }
    }
    return NULL;
}

/* Names are kept one after the other: database, collection, shard key. */
static void name_member(const mongo_wide *w, member *m, const container *c) {
    doc_walk walk;
    doc_element key;
    mongo_memo memo = mongo_memo_of(c);
    bool sharded = memo.shard_key.n && doc_walk_init(&walk, memo.shard_key) && doc_walk_next(&walk, &key);
    buf_clear(&m->names);
    buf_add_slice(&m->names, c->database_id);
    buf_add_slice(&m->names, c->id);
    buf_add_slice(&m->names, sharded ? key.key : SLICE_EMPTY);
    slice rest = buf_view(&m->names);
    m->watch = w->watch;
    if (!buf_ok(&m->names)) { /* look() reports it */
        return;
    }
    m->watch.database = slice_of(rest.p, c->database_id.n);
    m->watch.collection = slice_of(rest.p + c->database_id.n, c->id.n);
    m->watch.shard_key = slice_skip(rest, c->database_id.n + c->id.n);
}

static void add_member(mongo_wide *w, container *c) {
    if (w->n == w->room) {
        w->room = w->room ? 2 * w->room : 8;
        w->list = mem_resize(w->list, w->room * sizeof *w->list);
    }
    member *m = &w->list[w->n++];
    *m = (member){.number = c->space->container,
                  .container = container_take(c),
                  .names = buf_init_counted(BUF_NO_LIMIT, w->memory),
                  .position = buf_init_counted(BUF_NO_LIMIT, w->memory),
                  .there = true};
    name_member(w, m, c);
}

/* Differs whenever one of the ranges has a new change. */
static uint64_t marks_of(const container *c) {
    uint64_t sum = 1;
    range_info info;
    for (size_t i = 0; range_info_at(c, i, &info); i++) {
        sum = sum * 0x100000001B3u + info.mark.range_id * 0x9E3779B97F4A7C15u + info.mark.lsn;
    }
    return sum ? sum : 1;
}

/* ---- the scope ---- */

static bool is_followed(const container *c) {
    return slice_eq(c->api, MONGO_API) && !mongo_is_view(c) && !slice_starts(c->id, SLICE_LIT("tmp.agg_out."));
}

typedef struct next_database {
    uint32_t number;
    char name[LIMIT_NAME_BYTES + 1];
} next_database;

static bool take_database(void *context, const database *d) {
    next_database *next = context;
    next->number = d->number;
    snprintf(next->name, sizeof next->name, "%s", d->id);
    return false;
}

static void each_of_database(const mongo_front *front, slice name, bool (*visit)(void *, const container *), void *context) {
    database *d;
    if (account_database(front->core.account, name, false, &d) == OK) {
        account_each_container(front->core.account, d, 0, visit, context);
        database_give(d);
    }
}

static void each_in_scope(const mongo_request *q, bool deployment, bool (*visit)(void *, const container *), void *context) {
    if (!deployment) {
        each_of_database(q->front, q->database, visit, context);
        return;
    }
    next_database next = {0};
    for (uint32_t before = UINT32_MAX; before != next.number;) {
        before = next.number;
        account_each_database(q->front->core.account, before, take_database, &next);
        if (before != next.number) {
            each_of_database(q->front, slice_str(next.name), visit, context);
        }
    }
}

static bool look_at(void *context, const container *c) {
    mongo_wide *w = context;
    member *m = member_of(w, c->space->container);
    if (m) {
        m->there = true;
    } else if (is_followed(c) && item_versions_kept(c)) {
        w->crowded = w->n == MONGO_WIDE_MEMBERS_MAX;
        if (!w->crowded) {
            add_member(w, (container *)(uintptr_t)c); /* to take a reference */
        }
    }
    return !w->crowded;
}

static err look(mongo_request *q, mongo_wide *w) {
    for (size_t i = 0; i < w->n; i++) {
        w->list[i].there = false;
    }
    each_in_scope(q, w->deployment, look_at, w);
    if (w->crowded) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_ILLEGAL_OPERATION,
                          "A change stream follows %d collections at most: watch a database, or single collections.",
                          MONGO_WIDE_MEMBERS_MAX);
    }
    return w->memory->exceeded ? budget_error(w->memory) : OK;
}

/* ---- positions ---- */

static void add_position(const mongo_wide *w, const member *replaced, slice position, buf *out) {
    buf_add_byte(out, 'W');
    buf_add_be32(out, w->database);
    for (size_t i = 0; i < w->n; i++) {
        slice own = &w->list[i] == replaced ? position : buf_view(&w->list[i].position);
        if (own.n) {
            buf_add_be32(out, w->list[i].number);
            buf_add_be32(out, (uint32_t)own.n);
            buf_add_slice(out, own);
        }
    }
}

void mongo_wide_position(const mongo_wide *w, slice member_position, buf *out) {
    add_position(w, &w->list[w->at], member_position, out);
}

const mongo_watch *mongo_wide_watch(const mongo_wide *w) {
    return &w->list[w->at].watch;
}

static uint32_t take_be32(slice *rest) {
    uint32_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        n = n << 8 | (uint8_t)rest->p[i];
    }
    *rest = slice_skip(*rest, 4);
    return n;
}

static bool is_position(slice position) {
    return position.n >= 5 && position.p[0] == 'W';
}

/* Collections that are gone are left out. */
static bool read_position(mongo_wide *w, slice position) {
    if (!is_position(position)) {
        return false;
    }
    slice rest = slice_skip(position, 1);
    if (take_be32(&rest) != w->database) {
        return false;
    }
    while (rest.n >= 8) {
        member *m = member_of(w, take_be32(&rest));
        uint32_t n = take_be32(&rest);
        if (n > rest.n) {
            return false;
        }
        if (m) {
            buf_clear(&m->position);
            buf_add(&m->position, rest.p, n);
        }
        rest = slice_skip(rest, n);
    }
    return rest.n == 0;
}

/* ---- opening ---- */

/* The state of an aggregate that opens a wide stream. */
typedef struct wide_opening {
    mongo_opening *given;
    mongo_cursor *cursor;
    slice database; /* the request's */
    slice noted;    /* the database whose memo says that there are streams */
    bool deployment;
    size_t at;
} wide_opening;

static bool is_marked(const mongo_front *front, slice name) {
    database *d;
    if (account_database(front->core.account, name, false, &d) != OK) {
        return false;
    }
    bool marked = !mql_is_missing(mongo_member(d->memo, marker));
    database_give(d);
    return marked;
}

int32_t mongo_wide_log_minutes(const mongo_front *front, slice database) {
    return is_marked(front, database) || is_marked(front, SLICE_LIT("admin")) ? MONGO_LOG_MINUTES : 0;
}

static err check_may_change(mongo_request *q) {
    return q->conn->reach.verbs & ACCESS_ALTER
               ? OK
               : op_fail_as(
                     &q->op, E_FORBIDDEN, CODE_UNAUTHORIZED,
                     "The first change stream turns on the logs of its collections, which changes them: open one with a read-write key.");
}

static err positions_ready(mongo_request *q);
static err open_members(mongo_request *q);

static wide_opening *opening_of(const mongo_request *q) {
    return q->state;
}

/* The first collection of the scope without a log. */
static bool find_unlogged(void *context, const container *c) {
    container **found = context;
    if (!*found && is_followed(c) && !item_versions_kept(c)) {
        *found = container_take((container *)(uintptr_t)c);
    }
    return !*found;
}

/* Turns on the logs, one after the other. */
static err turn_on(mongo_request *q) {
    wide_opening *o = opening_of(q);
    if (q->container) {
        container_give(q->container);
        q->container = NULL;
    }
    q->database = o->database;
    each_in_scope(q, o->deployment, find_unlogged, &q->container);
    if (!q->container) {
        return open_members(q);
    }
    TRY(check_may_change(q));
    mongo_memo memo = mongo_memo_of(q->container);
    memo.log_minutes = MONGO_LOG_MINUTES;
    q->database = arena_copy(q->frame->arena, q->container->database_id);
    q->conflict = turn_on;
    mongo_change_collection(q, &memo, turn_on);
    return OK;
}

static err mark(mongo_request *q);

static err noted(mongo_request *q) {
    database_noting *note = (database_noting *)q->change;
    err code = q->change->commit.code;
    if (note->database_out) {
        database_give(note->database_out);
    }
    if (code == E_PRECONDITION) {
        q->op.detail_n = 0;
        return is_marked(q->front, opening_of(q)->noted) ? turn_on(q) : mark(q);
    }
    TRY(code);
    return turn_on(q);
}

/* Adds the marker to what other front ends keep in the memo. */
static err mark(mongo_request *q) {
    database *d;
    doc_walk w;
    doc_element e;
    q->database = opening_of(q)->noted;
    TRY(account_database(q->front->core.account, q->database, false, &d));
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    for (doc_walk_init(&w, d->memo); d->memo.n && doc_walk_next(&w, &e);) {
        mql_add_element(&b, &e);
    }
    mongo_add_bool(&b, marker, true);
    database_noting *note = mongo_new_change(q, database_noting);
    note->database.text = q->database;
    note->memo = mongo_built_copy(q->frame->arena, &b, &out);
    note->expected = d->version;
    database_give(d);
    mongo_await_change(q, noted);
    account_note_database(note);
    return OK;
}

/* Where a member without a position begins: at the end of its log, unless the stream begins in the past. */
static void took_end(call *c) {
    mongo_request *q = (mongo_request *)c;
    wide_opening *o = opening_of(q);
    mongo_wide *w = o->cursor->stream->wide;
    err code = c->code == E_OWNER_NOT_FOUND ? OK : c->code;
    if (code == OK) {
        buf_clear(&w->list[o->at].position);
        buf_add_slice(&w->list[o->at].position, q->call.follow.position);
        o->at++;
        code = positions_ready(q);
    }
    if (code != OK) {
        mongo_cursor_free(o->cursor);
        mongo_fail(q, mongo_stream_error(q, code));
    }
}

static bool refuse_all(void *context, const follow_change *change) {
    (void)context;
    (void)change;
    return false;
}

/* Checks the positions, or takes those of now, one after the other; then answers. */
static err positions_ready(mongo_request *q) {
    wide_opening *o = opening_of(q);
    mongo_wide *w = o->cursor->stream->wide;
    mongo_batch *b;
    if (o->at < w->n) {
        member *m = &w->list[o->at];
        call_follow *f = &q->call.follow;
        call_follow_init(f, &q->front->core, &q->frame->client, &q->op, m->container, took_end);
        f->start.mode = FOLLOW_VERSIONS;
        f->start.position = buf_view(&m->position);
        f->start.from_now = !o->given->position.n && !o->given->since_s;
        f->sink = refuse_all;
        call_follow_submit(f);
        return OK;
    }
    buf token = buf_init(BUF_NO_LIMIT);
    add_position(w, NULL, SLICE_EMPTY, &token);
    slice position = arena_copy(q->frame->arena, buf_view(&token));
    buf_free(&token);
    mongo_cursor *cursor = o->cursor;
    err code = mongo_batch_begin(q, cursor, 0, &b); /* owns the cursor from here on */
    b->token = position;
    mongo_batch_answer(q, code);
    return OK;
}

static uint32_t number_of(mongo_request *q) {
    database *d;
    uint32_t number = 0;
    if (account_database(q->front->core.account, q->database, false, &d) == OK) {
        number = d->number;
        database_give(d);
    }
    return number;
}

/* After the end of a stream: if its database is gone, from the beginning of the one that has the name now. */
static void start_after_end(mongo_opening *o, uint32_t database) {
    if (!o->ended || !is_position(o->position)) {
        return;
    }
    slice rest = slice_skip(o->position, 1);
    if (take_be32(&rest) != database) {
        o->position = SLICE_EMPTY;
        o->since_s = MONGO_SINCE_EVER;
    }
}

static err open_members(mongo_request *q) {
    wide_opening *o = opening_of(q);
    start_after_end(o->given, o->deployment ? 0 : number_of(q));
    mongo_cursor *c = o->cursor = mongo_stream_cursor(q, o->given);
    mongo_wide *w = c->stream->wide = mem_zero(sizeof *w);
    *w = (mongo_wide){
        .deployment = o->deployment, .database = o->deployment ? 0 : number_of(q), .watch = c->stream->watch, .memory = &c->memory};
    err code = look(q, w);
    if (code == OK && o->given->position.n && !read_position(w, o->given->position)) {
        code = op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_RESUME_TOKEN, "The resume token is not one of this stream.");
    }
    code = code != OK ? code : positions_ready(q);
    if (code != OK) {
        mongo_cursor_free(c);
    }
    return code;
}

err mongo_wide_open(mongo_request *q, mongo_opening *given, bool deployment) {
    wide_opening *o = q->state = arena_new(q->frame->arena, wide_opening);
    *o = (wide_opening){.given = given, .database = q->database, .noted = deployment ? SLICE_LIT("admin") : q->database};
    o->deployment = deployment;
    if (is_marked(q->front, o->noted)) {
        return turn_on(q);
    }
    TRY(check_may_change(q));
    q->database = o->noted;
    mongo_with_database(q, (throughput_setting){0}, mark);
    return OK;
}

/* ---- events of collections as a whole ---- */

/* `of` NULL: it is `invalidate`. `to`: the new name; NULL: none. */
static void add_event(mongo_request *q, const char *operation, const mongo_watch *of, const container *to) {
    mongo_wide *w = wide_of(q);
    buf out = buf_init(BUF_NO_LIMIT), token = buf_init(BUF_NO_LIMIT);
    mql_builder event = mql_build(&out);
    add_position(w, NULL, SLICE_EMPTY, &token);
    mongo_token_add(&event, SLICE_LIT("_id"), of ? buf_view(&token) : mongo_position_ended(q->frame->arena, buf_view(&token)));
    mongo_add_text(&event, "operationType", slice_str(operation));
    mql_add(&event, SLICE_LIT("clusterTime"), mql_timestamp(q->frame->arena, (uint32_t)(q->now_ms / 1000), 1));
    mongo_add_date(&event, "wallTime", q->now_ms);
    for (int i = 0; i < (of ? 1 + (to != NULL) : 0); i++) {
        mongo_open_document(&event, i ? "to" : "ns");
        mongo_add_text(&event, "db", i ? to->database_id : of->database);
        if (i || of->collection.n) {
            mongo_add_text(&event, "coll", i ? to->id : of->collection);
        }
        mql_close(&event);
    }
    slice built = mql_built(&event);
    q->streaming->failed = mongo_stream_emit(q, built);
    buf_free(&out);
    buf_free(&token);
}

static void remove_member(mongo_request *q, mongo_wide *w, size_t i) {
    member gone = w->list[i];
    memmove(&w->list[i], &w->list[i + 1], (--w->n - i) * sizeof *w->list);
    add_event(q, "drop", &gone.watch, NULL);
    free_member(&gone);
}

/* Dropped and renamed collections, after everything else was read. */
static void note_changes(mongo_request *q, mongo_wide *w) {
    for (size_t i = 0; i < w->n && q->streaming->failed == OK && mongo_stream_has_room(q, 0);) {
        member *m = &w->list[i];
        container *newest = account_container_newest(q->front->core.account, m->container);
        if (!newest) {
            remove_member(q, w, i);
            continue;
        }
        if (!slice_eq(newest->id, m->watch.collection)) {
            add_event(q, "rename", &m->watch, newest);
            name_member(w, m, newest);
        }
        container_give(m->container);
        m->container = newest;
        i++;
    }
}

/* The end of a database's stream. */
static bool is_over(mongo_request *q, mongo_wide *w) {
    if (w->deployment || number_of(q) == w->database || !w->database) {
        return false;
    }
    mongo_watch database = {.database = q->database};
    if (!w->dropped && mongo_stream_has_room(q, 0)) {
        add_event(q, "dropDatabase", &database, NULL);
        w->dropped = true;
    }
    if (w->dropped && mongo_stream_has_room(q, 0)) {
        add_event(q, "invalidate", NULL, NULL);
        q->batch->cursor->ended = true;
    }
    return true;
}

/* ---- getMore ---- */

static void next_member(mongo_request *q);

static void answer(mongo_request *q, err code) {
    mongo_wide *w = wide_of(q);
    buf token = buf_init(BUF_NO_LIMIT);
    add_position(w, NULL, SLICE_EMPTY, &token);
    slice position = buf_view(&token);
    q->batch->token = q->batch->cursor->ended ? mongo_position_ended(q->frame->arena, position) : arena_copy(q->frame->arena, position);
    buf_free(&token);
    mongo_streaming_free(q);
    mongo_batch_answer(q, code);
}

static void followed(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_wide *w = wide_of(q);
    mongo_streaming *s = q->streaming;
    member *m = &w->list[w->at];
    err code = c->code != OK ? c->code : s->failed;
    if (c->code == OK) {
        slice position = s->full || s->failed != OK ? buf_view(&s->last) : q->call.follow.position;
        bool unread = s->full || q->call.follow.more;
        if (position.n) {
            buf_clear(&m->position);
            buf_add_slice(&m->position, position);
        }
        m->seen = unread ? 0 : w->reading;
    }
    if (code == E_OWNER_NOT_FOUND) { /* noted when all was read */
        q->op.detail_n = 0;
        m->seen = w->reading;
        code = OK;
    }
    if (code != OK && q->batch->rows_n) { /* of other collections, whose positions have moved on */
        q->op.detail_n = 0;
        answer(q, OK);
        return;
    }
    if (code != OK || s->full) {
        answer(q, code != OK && c->code != OK ? mongo_stream_error(q, code) : code);
        return;
    }
    w->at++;
    next_member(q);
}

static void read_member(mongo_request *q, mongo_wide *w) {
    call_follow *f = &q->call.follow;
    buf_clear(&q->streaming->last);
    call_follow_init(f, &q->front->core, &q->frame->client, &q->op, w->list[w->at].container, followed);
    f->start.mode = FOLLOW_VERSIONS;
    f->start.position = buf_view(&w->list[w->at].position);
    f->items_max = q->batch->rows_max;
    f->bytes_max = MONGO_BATCH_BYTES / 2;
    f->sink = mongo_stream_take;
    f->context = q;
    call_follow_submit(f);
}

static looking *looking_of(const mongo_request *q) {
    return q->state;
}

static void begin_round(mongo_request *q);

static void looked_again(net_delay *delay) {
    mongo_request *q = ((looking *)delay)->q;
    if (q->frame->client.left || net_loop_is_stopping(q->frame->client.loop)) {
        answer(q, q->frame->client.left ? E_CANCELLED : OK);
    } else {
        begin_round(q);
    }
}

/* The end of a round: what has happened to collections as a whole; then the answer, or another round later. */
static void end_round(mongo_request *q) {
    mongo_wide *w = wide_of(q);
    looking *l = looking_of(q);
    w->at = 0;
    note_changes(q, w);
    bool over = q->streaming->failed == OK && is_over(q, w);
    bool late = clock_monotonic_us(net_loop_clock(q->frame->client.loop)) >= l->until_us;
    if (over || late || q->batch->rows_n || q->streaming->failed != OK) {
        answer(q, q->streaming->failed);
        return;
    }
    net_delay_start(q->frame->client.loop, &l->delay, MONGO_WIDE_LOOK_MS, looked_again);
}

/* The next collection that has changed since it was read. */
static void next_member(mongo_request *q) {
    mongo_wide *w = wide_of(q);
    for (; w->at < w->n; w->at++) {
        member *m = &w->list[w->at];
        w->reading = marks_of(m->container);
        if (w->reading != m->seen) {
            read_member(q, w);
            return;
        }
    }
    end_round(q);
}

static void begin_round(mongo_request *q) {
    mongo_wide *w = wide_of(q);
    err code = look(q, w);
    w->at = w->at < w->n ? w->at : 0;
    code == OK ? next_member(q) : answer(q, code);
}

void mongo_wide_continue(mongo_request *q) {
    int64_t wait_ms = MONGO_STREAM_WAIT_MS;
    looking *l = q->state = arena_new(q->frame->arena, looking);
    err code = mongo_arg_count(q, "maxTimeMS", &wait_ms);
    wait_ms = wait_ms < 0 ? 0 : wait_ms > 60000 ? 60000 : wait_ms;
    *l = (looking){.q = q, .until_us = clock_monotonic_us(net_loop_clock(q->frame->client.loop)) + wait_ms * 1000};
    code == OK ? begin_round(q) : answer(q, code);
}
