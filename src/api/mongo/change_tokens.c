/* The custom action GetChangeStreamTokens: a resume token for each physical partition, so that several clients share a collection's
 * changes. */
#include "api/mongo/change_stream_int.h"
#include "api/mongo/collections.h"
#include "item/range_info.h"

enum { TOKENS_MAX = 1000, PAGE_CHANGES = 1000, PAGE_BYTES = 4 << 20 };

typedef struct part {
    epk min, max;
    slice position;
} part;

typedef struct tokens {
    part *list;
    size_t n, at;
    uint32_t since_s; /* 0: now */
    bool reached;     /* the first change that is not before */
} tokens;

static err next_part(mongo_request *q);

static bool is_before(void *context, const follow_change *change) {
    tokens *t = ((mongo_request *)context)->state;
    t->reached = t->reached || change->ts >= t->since_s;
    return !t->reached && t->since_s > 0;
}

static void took_position(call *c) {
    mongo_request *q = (mongo_request *)c;
    tokens *t = q->state;
    err code = mongo_stream_error(q, c->code);
    if (code == OK) {
        t->list[t->at].position = q->call.follow.position;
        t->at += t->reached || !q->call.follow.more;
        code = next_part(q);
    }
    if (code != OK) {
        mongo_fail(q, code);
    }
}

static err answer(mongo_request *q) {
    const tokens *t = q->state;
    mql_builder *b = mongo_answer(q);
    mongo_open_array(b, "resumeAfterTokens");
    for (size_t i = 0; i < t->n; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        mql_builder token = mql_build(&out);
        mongo_token_add(&token, SLICE_LIT("token"), t->list[i].position);
        mql_add_next(b, mongo_member(mql_built(&token), "token"));
        buf_free(&out);
    }
    mql_close(b);
    mongo_end(q);
    return OK;
}

static err next_part(mongo_request *q) {
    tokens *t = q->state;
    if (t->at == t->n) {
        return answer(q);
    }
    part *p = &t->list[t->at];
    call_follow *f = &q->call.follow;
    t->reached = false;
    call_follow_init(f, &q->front->core, &q->frame->client, &q->op, q->container, took_position);
    f->start.mode = FOLLOW_VERSIONS;
    f->start.position = p->position;
    f->start.min = p->min;
    f->start.max = p->max;
    f->start.from_now = !t->since_s;
    f->items_max = PAGE_CHANGES;
    f->bytes_max = PAGE_BYTES;
    f->wait_ms = 0;
    f->sink = is_before;
    f->context = q;
    call_follow_submit(f);
    return OK;
}

static err take_parts(mongo_request *q) {
    tokens *t = q->state;
    range_info info;
    t->n = range_count(q->container);
    if (t->n > TOKENS_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_ILLEGAL_OPERATION, "The collection has more than %d partitions.", TOKENS_MAX);
    }
    t->list = arena_array(q->frame->arena, part, t->n);
    for (size_t i = 0; i < t->n && range_info_at(q->container, i, &info); i++) {
        t->list[i] = (part){.min = info.range.min, .max = info.range.max};
    }
    return next_part(q);
}

err mongo_stream_tokens(mongo_request *q) {
    tokens *t = q->state = arena_new(q->frame->arena, tokens);
    mql_value since = mongo_arg(q, "startAtOperationTime");
    *t = (tokens){0};
    if (!mql_is_nullish(since) && since.type != BSON_TYPE_TIMESTAMP) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "startAtOperationTime must be a timestamp.");
    }
    if (since.type == BSON_TYPE_TIMESTAMP) {
        t->since_s = (uint32_t)((uint64_t)doc_load_i64(since.bytes.p) >> 32);
    }
    TRY(mongo_need_collection(q));
    return mongo_stream_log(q, take_parts);
}
