#include "api/mongo/filter_kind.h"

#include "api/mongo/memo.h"
#include "api/mongo/mongo_int.h"
#include "mql/collation.h"

/* ---- scopes ---- */

/* The collection's text index. The scope's names may outlive the container's. */
static err read_text_index(op *o, const container *c, mongo_scope *s) {
    doc_walk w;
    doc_element e;
    mongo_index x;
    mql_text_index *text = arena_new(o->arena, mql_text_index);
    for (doc_walk_init(&w, mongo_memo_of(c).indexes); !s->scope.text && doc_walk_next(&w, &e);) {
        if (mongo_index_read(e.value, &x) && mongo_index_is_text(&x) && !x.hidden) {
            TRY(mql_text_index_read(o, arena_copy(o->arena, x.spec), text));
            s->scope.text = text;
        }
    }
    return OK;
}

err mongo_scope_collate(op *o, const container *c, slice collation, mongo_scope *s) {
    TRY(c && mongo_memo_has_text(c) ? read_text_index(o, c, s) : OK);
    return collation.n ? mql_collation_shared(o, collation, &s->scope.collation) : OK;
}

mql_run mongo_run_of(op *o, arena *a, const mongo_scope *s, uint64_t steps) {
    mql_run r = {.op = o, .arena = a, .steps = steps, .root = mql_missing(), .now_ms = s->now_ms, .collation = s->scope.collation};
    r.cluster_time = r.user_roles = r.metadata = mql_missing();
    if (s->scope.slots) { /* a run writes to its slots */
        r.variables = arena_array(a, mql_value, s->scope.slots);
        if (s->variables_n) {
            memcpy(r.variables, s->variables, s->variables_n * sizeof *r.variables);
        }
    }
    return r;
}

err mongo_scope_begin(op *o, bool service, slice let, int64_t now_ms, mongo_scope *s) {
    doc_walk w;
    doc_element e;
    enum { VARIABLES_MAX = 64, STEPS_MAX = 50000 }; /* of all variables together: loops evaluate them */
    uint64_t steps = STEPS_MAX;
    *s = (mongo_scope){.scope = mql_scope_of(o, service), .now_ms = now_ms};
    if (!let.n) {
        return OK;
    }
    s->variables = arena_array(o->arena, mql_value, VARIABLES_MAX);
    for (doc_walk_init(&w, let); doc_walk_next(&w, &e);) {
        const mql_expression *x;
        mql_scope bare = mql_scope_of(o, service);
        size_t slot;
        TRY(mql_expression_parse(&bare, mql_of(&e), &x));
        mql_run r = mongo_run_of(o, o->arena, &(mongo_scope){.scope = bare, .now_ms = now_ms}, steps);
        TRY(mql_scope_declare(&s->scope, e.key, &slot));
        if (slot >= VARIABLES_MAX) {
            return op_fail_as(o, E_BAD_REQUEST, CODE_BAD_VALUE, "'let' has more than %d variables", VARIABLES_MAX);
        }
        err code = mql_evaluate(&r, x, &s->variables[slot]);
        if (code == E_QUERY_TOO_LONG) {
            return op_fail_as(o, E_BAD_REQUEST, CODE_MAX_TIME_EXPIRED, "The variables of 'let' take too long to evaluate.");
        }
        TRY(code);
        steps = r.steps;
        s->variables_n = slot + 1;
    }
    return OK;
}

/* ---- the kind ---- */

typedef struct ready_filter {
    mongo_scope scope;
    const mql_match *match;
} ready_filter;

slice mongo_filter_argument(arena *a, const mongo_find *f) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mongo_add_document(&b, "q", f->filter);
    mongo_add_date(&b, "now", f->now_ms);
    if (f->variables.n) {
        mongo_add_document(&b, "let", f->variables);
    }
    if (f->collation.n) {
        mongo_add_document(&b, "collation", f->collation);
    }
    return mongo_built_copy(a, &b, &out);
}

static err prepare(op *o, const container *c, slice argument, const void **ready_out) {
    ready_filter *f = arena_new(o->arena, ready_filter);
    mql_value filter = mongo_member(argument, "q"), let = mongo_member(argument, "let"), now = mongo_member(argument, "now");
    mql_value collation = mongo_member(argument, "collation");
    if (filter.type != BSON_TYPE_DOCUMENT || now.type != BSON_TYPE_DATE_TIME) {
        return op_fail(o, E_BAD_REQUEST, "A MongoDB filter must be a document.");
    }
    TRY(mongo_scope_begin(o, false, let.type == BSON_TYPE_DOCUMENT ? let.bytes : SLICE_EMPTY, mql_as_date(now), &f->scope));
    TRY(mongo_scope_collate(o, c, collation.type == BSON_TYPE_DOCUMENT ? collation.bytes : SLICE_EMPTY, &f->scope));
    *ready_out = f;
    return mql_match_parse(&f->scope.scope, filter.bytes, &f->match);
}

static err passes(op *o, const query_filter_input *in, uint64_t *steps, bool *passes_out) {
    const ready_filter *f = in->ready;
    mql_run r = mongo_run_of(o, in->arena, &f->scope, *steps);
    r.root = mql_document(in->body);
    err code = mql_matches(&r, f->match, passes_out, NULL);
    *steps = r.steps;
    return code;
}

void mongo_filter_register(void) {
    static const query_filter_kind kind = {.id = QUERY_FILTER_MONGO, .name = "mongo", .prepare = prepare, .passes = passes};
    query_filter_register(&kind);
}
