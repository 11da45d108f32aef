#include "api/mongo/views.h"

#include "api/mongo/change_stream.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/memo.h"
#include "mql/pipeline.h"

bool mongo_is_view(const container *c) {
    return mql_is_text(mongo_memo_option(c, "viewOn"));
}

err mongo_refuse_view(mongo_request *q) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_NOT_ON_VIEW, "Namespace %.*s.%.*s is a view, not a collection", slice_shown(q->database),
                      q->database.p, slice_shown(q->collection), q->collection.p);
}

/* ---- building pipelines ---- */

static void add_all(mql_builder *b, slice array) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, array); array.n && doc_walk_next(&w, &e);) {
        mql_add_next(b, mql_of(&e));
    }
}

static err keep_array(op *o, mql_builder *b, buf *out, slice *array_out) {
    *array_out = mongo_built_copy(o->arena, b, out);
    return array_out->n ? OK : budget_error(o->budget);
}

err mongo_join_stages(op *o, slice first, slice second, slice *both_out) {
    buf out = buf_init_counted(BUF_NO_LIMIT, o->budget);
    mql_builder b = mql_build(&out);
    add_all(&b, first);
    add_all(&b, second);
    return keep_array(o, &b, &out, both_out);
}

static void add_stage(mql_builder *b, const char *name, mql_value argument) {
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mql_add(b, slice_str(name), argument);
    mql_close(b);
}

static void add_number(arena *a, mql_builder *b, const char *name, uint64_t n) {
    add_stage(b, name, mql_int64(a, n > INT64_MAX ? INT64_MAX : (int64_t)n));
}

err mongo_find_stages(mongo_request *q, const mongo_find *f, slice *stages_out) {
    arena *a = q->frame->arena;
    buf out = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    mql_builder b = mql_build(&out);
    if (f->filter.n) {
        add_stage(&b, "$match", mql_document(f->filter));
    }
    if (f->sort.n && mql_is_missing(mongo_member(f->sort, "$natural"))) {
        add_stage(&b, "$sort", mql_document(f->sort));
    }
    if (f->skip) {
        add_number(a, &b, "$skip", f->skip);
    }
    if (f->limit != UINT64_MAX) {
        add_number(a, &b, "$limit", f->limit);
    }
    if (f->projection.n > 5) {
        add_stage(&b, "$project", mql_document(f->projection));
    }
    return keep_array(&q->op, &b, &out, stages_out);
}

/* ---- following views ---- */

/* Where a name leads to. */
typedef struct shown {
    slice collection;
    container *container; /* a reference; NULL: there is no such collection */
    slice stages;         /* empty: the name is no view */
    slice collation;      /* of the first view */
} shown;

/* One view on the way: its stages run before those that came so far. */
static err pass(op *o, const container *c, shown *s) {
    slice options = mongo_memo_of(c).options;
    mql_value collation = mongo_member(options, "collation"), pipeline = mongo_member(options, "pipeline");
    if (!s->stages.n && collation.type == BSON_TYPE_DOCUMENT) {
        s->collation = arena_copy(o->arena, collation.bytes);
    }
    s->collection = arena_copy(o->arena, mql_as_text(mongo_member(options, "viewOn")));
    return mongo_join_stages(o, pipeline.type == BSON_TYPE_ARRAY ? pipeline.bytes : SLICE_EMPTY, s->stages, &s->stages);
}

static err follow(const mongo_front *front, op *o, slice database, slice name, shown *s) {
    *s = (shown){.collection = name};
    for (int depth = 0; depth <= MONGO_VIEW_DEPTH_MAX; depth++) {
        container *c;
        err code = account_container(front->core.account, database, false, s->collection, false, &c);
        if (code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND) {
            o->detail_n = 0;
            return OK;
        }
        TRY(code);
        if (!mongo_is_view(c)) {
            s->container = c;
            return OK;
        }
        code = pass(o, c, s);
        container_give(c);
        TRY(code);
    }
    return op_fail_as(o, E_BAD_REQUEST, CODE_VIEW_DEPTH, "View depth too deep or view cycle detected; maximum depth is %d",
                      MONGO_VIEW_DEPTH_MAX);
}

err mongo_view_enter(mongo_request *q) {
    shown s;
    if (!q->container || !mongo_is_view(q->container)) {
        return OK;
    }
    TRY(follow(q->front, &q->op, q->database, q->collection, &s));
    container_give(q->container);
    q->container = s.container;
    q->view = arena_new(q->frame->arena, mongo_view);
    *q->view = (mongo_view){.stages = s.stages, .collation = s.collation};
    return OK;
}

typedef struct views {
    mql_views base;
    const mongo_front *front;
    slice database;
    unsigned used;
} views;

static err find_view(mql_views *v, op *o, slice name, slice *collection_out, slice *stages_out) {
    views *all = (views *)v;
    shown s;
    TRY(follow(all->front, o, all->database, name, &s));
    if (s.container) {
        container_give(s.container);
    }
    *collection_out = s.collection;
    *stages_out = s.stages;
    all->used += s.stages.n > 0;
    return all->used <= MONGO_VIEWS_USED_MAX
               ? OK
               : op_fail_as(o, E_BAD_REQUEST, CODE_VIEW_DEPTH, "The pipeline uses more than %d views", MONGO_VIEWS_USED_MAX);
}

mql_views *mongo_views_of(mongo_request *q) {
    views *v = arena_new(q->frame->arena, views);
    *v = (views){.base = {.find = find_view}, .front = q->front, .database = q->database};
    return &v->base;
}

/* ---- making views ---- */

/* A view may not show itself through others. */
static err check_cycle(mongo_request *q, slice name, slice on) {
    for (int depth = 0; depth <= MONGO_VIEW_DEPTH_MAX; depth++) {
        container *c;
        if (slice_eq(on, name)) {
            return op_fail_as(&q->op, E_BAD_REQUEST, 5, "View cycle detected: %.*s would show itself", slice_shown(name), name.p);
        }
        err code = account_container(q->front->core.account, q->database, false, on, false, &c);
        if (code != OK) {
            q->op.detail_n = 0;
            return code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND ? OK : code;
        }
        bool view = mongo_is_view(c);
        on = view ? arena_copy(q->frame->arena, mql_as_text(mongo_member(mongo_memo_of(c).options, "viewOn"))) : on;
        container_give(c);
        if (!view) {
            return OK;
        }
    }
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_VIEW_DEPTH, "View depth limit exceeded; maximum depth is %d", MONGO_VIEW_DEPTH_MAX);
}

static err check_pipeline(mongo_request *q, slice stages) {
    mongo_scope scope;
    const mql_pipeline *pipeline;
    mql_target target;
    if (mongo_is_stream(stages)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_OPTION_NOT_ON_VIEW, "$changeStream cannot be used in a view definition");
    }
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    scope.scope.views = mongo_views_of(q);
    TRY(mql_pipeline_parse(&scope.scope, stages, &pipeline));
    mql_pipeline_target(pipeline, &target);
    return target.kind == MQL_TARGET_NONE
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_OPTION_NOT_ON_VIEW, "$out and $merge cannot be used in a view definition");
}

err mongo_view_check(mongo_request *q, slice name) {
    slice on, stages;
    TRY(mongo_arg_text(q, "viewOn", &on));
    TRY(mongo_arg_array(q, "pipeline", &stages));
    if (!on.n) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "'viewOn' cannot be empty");
    }
    TRY(mongo_check_collection(&q->op, on));
    TRY(check_cycle(q, name, on));
    return stages.n ? check_pipeline(q, stages) : OK;
}
