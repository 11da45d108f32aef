/* count and distinct. */
#include "api/mongo/aggregate.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/plan.h"
#include "api/mongo/scan.h"
#include "api/mongo/views.h"
#include "api/mongo/work.h"
#include "item/range_info.h"
#include "mql/collation.h"

enum { ARRAY_BYTES_MAX = 16 * 1024 * 1024, STEPS_MAX = 180 };

/* q->state begins with the find. */
static err plan(mongo_request *q) {
    mongo_scope scope;
    const mql_match *match = NULL;
    mongo_find *f = q->state;
    TRY(mongo_arg_hint(q, &f->hint));
    TRY(mongo_arg_collation(q, &f->collation));
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    TRY(mongo_scope_collate(&q->op, q->container, f->collation, &scope));
    TRY(f->filter.n ? mql_match_parse(&scope.scope, f->filter, &match) : OK);
    return q->container ? mongo_plan(&q->op, q->container, match, f) : OK;
}

static mongo_find find_of(const mongo_request *q, slice filter) {
    return (mongo_find){.filter = filter.n > 5 ? filter : SLICE_EMPTY, .now_ms = q->now_ms, .limit = UINT64_MAX};
}

static bool is_of_view(const mongo_request *q) {
    return q->container && mongo_is_view(q->container);
}

static err scan_view(mongo_request *q, const mongo_find *f, mongo_scan *scan) {
    mongo_pipeline p = {.scan = scan};
    TRY(mongo_view_enter(q));
    TRY(mongo_find_stages(q, f, &p.stages));
    TRY(mongo_join_stages(&q->op, q->view->stages, p.stages, &p.stages));
    mongo_pipeline_run(q, &p);
    return OK;
}

/* ---- count ---- */

typedef struct counting {
    mongo_find find; /* first: plan */
    mongo_scan scan;
    uint64_t n, skip, limit;
} counting;

static err answer_count(mongo_request *q) {
    counting *c = q->state;
    if (c->scan.code != OK) {
        return c->scan.code;
    }
    uint64_t all = c->n + c->scan.counted, n = all > c->skip ? all - c->skip : 0;
    n = n < c->limit ? n : c->limit;
    mql_builder *b = mongo_answer(q);
    n <= INT32_MAX ? mongo_add_int(b, "n", (int32_t)n) : mongo_add_long(b, "n", (int64_t)n);
    mongo_end(q);
    return OK;
}

static bool count_one(mongo_request *q, slice document) {
    counting *c = q->state;
    (void)document;
    if (c->limit != UINT64_MAX && c->n >= c->skip + c->limit) {
        return false;
    }
    c->n++;
    return true;
}

static void usage_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    counting *x = q->state;
    x->scan.code = c->code;
    x->n = q->call.usage.usage.items;
    err code = answer_count(q);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

static void run_count(mongo_request *q, err code) {
    counting *c = q->state;
    if (code != OK) {
        mongo_fail(q, code);
    } else if (!q->container) {
        answer_count(q);
    } else if (!c->find.filter.n && q->container->ttl == TTL_OFF && !q->transaction) {
        /* the core has counted them; expired ones would count too */
        call_usage_init(&q->call.usage, &q->front->core, &q->frame->client, &q->op, q->container, usage_read);
        call_usage_submit(&q->call.usage);
    } else {
        mongo_scan_start(q, &c->scan);
    }
}

err mongo_count(mongo_request *q) {
    counting *c = q->state = arena_new(q->frame->arena, counting);
    slice filter;
    int64_t skip = 0, limit = 0;
    TRY(mongo_arg_document(q, "query", &filter));
    TRY(mongo_arg_count(q, "skip", &skip));
    TRY(mongo_arg_count(q, "limit", &limit));
    if (skip < 0) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 51024, "BSON field 'skip' value must be >= 0");
    }
    c->skip = (uint64_t)skip;
    c->limit = mongo_limit_of(limit);
    c->find = find_of(q, filter);
    c->find.count_only = true;
    c->scan = (mongo_scan){.find = &c->find, .take = count_one, .done = answer_count};
    TRY(mongo_find_collection(q));
    if (is_of_view(q)) {
        return scan_view(q, &c->find, &c->scan);
    }
    mongo_work(q, q->large, plan, run_count);
    return OK;
}

/* ---- distinct ---- */

/* The values are kept in the order in which they were found, and their positions in a hash table. */
typedef struct distinction {
    mongo_find find; /* first: plan */
    mongo_scan scan;
    slice steps[STEPS_MAX];
    size_t steps_n;
    arena memory;
    mql_value *values;
    uint32_t *slots; /* open addressing: position + 1; 0: free. Twice as many as there is room for values, a power of two */
    size_t n, room, bytes;
    const mql_collation *collation;
} distinction;

static uint32_t *slot_of(const distinction *d, mql_value v) {
    size_t mask = d->room * 2 - 1;
    size_t at = mql_hash(d->collation, v) & mask;
    while (d->slots[at] && mql_compare_by(d->collation, d->values[d->slots[at] - 1], v) != 0) {
        at = (at + 1) & mask;
    }
    return &d->slots[at];
}

static err grow(mongo_request *q, distinction *d) {
    size_t room = d->room ? d->room * 2 : 64;
    if (!arena_fits(&d->memory, room * (sizeof *d->values + 2 * sizeof *d->slots))) {
        return budget_error(q->op.budget);
    }
    mql_value *values = arena_array(&d->memory, mql_value, room);
    if (d->n) {
        memcpy(values, d->values, d->n * sizeof *values);
    }
    d->values = values;
    d->slots = arena_array(&d->memory, uint32_t, room * 2);
    d->room = room;
    for (size_t i = 0; i < d->n; i++) {
        *slot_of(d, values[i]) = (uint32_t)i + 1;
    }
    return OK;
}

static err keep(mongo_request *q, distinction *d, mql_value v) {
    TRY(d->n == d->room ? grow(q, d) : OK);
    uint32_t *slot = slot_of(d, v);
    if (*slot) {
        return OK;
    }
    if (d->bytes + v.bytes.n > ARRAY_BYTES_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 17217, "distinct too big, 16mb cap");
    }
    if (!arena_fits(&d->memory, v.bytes.n)) {
        return budget_error(q->op.budget);
    }
    d->values[d->n] = (mql_value){v.type, arena_copy(&d->memory, v.bytes)};
    d->bytes += v.bytes.n + 16;
    *slot = (uint32_t)++d->n;
    return OK;
}

/* All values at the path; an array on the way stands for its elements, and an array at the end for its elements too. */
static err visit(mongo_request *q, distinction *d, mql_value v, size_t step, bool in_array) {
    doc_walk w;
    doc_element e;
    if (v.type == BSON_TYPE_ARRAY && !in_array) {
        for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
            TRY(visit(q, d, mql_of(&e), step, true));
        }
        int64_t position;
        if (step < d->steps_n && slice_to_i64(d->steps[step], &position) && position >= 0) {
            return visit(q, d, mql_element_at(v, (size_t)position), step + 1, false);
        }
        return OK;
    }
    if (mql_is_missing(v)) {
        return OK;
    }
    if (step == d->steps_n) {
        return keep(q, d, v);
    }
    return v.type == BSON_TYPE_DOCUMENT ? visit(q, d, mql_member(v, d->steps[step]), step + 1, false) : OK;
}

static bool take_values(mongo_request *q, slice document) {
    distinction *d = q->state;
    d->scan.failed = visit(q, d, mql_document(document), 0, false);
    return d->scan.failed == OK;
}

static void free_values(mongo_request *q) {
    arena_free(&((distinction *)q->state)->memory);
}

static err answer_distinct(mongo_request *q) {
    distinction *d = q->state;
    if (d->scan.code != OK) {
        return d->scan.code;
    }
    mql_builder *b = mongo_answer(q);
    mongo_open_array(b, "values");
    for (size_t i = 0; i < d->n; i++) {
        mql_add_next(b, d->values[i]);
    }
    mql_close(b);
    mongo_end(q);
    return OK;
}

static err split(mongo_request *q, slice path, distinction *d) {
    while (path.n && d->steps_n < STEPS_MAX) {
        const char *dot = memchr(path.p, '.', path.n);
        slice step = slice_of(path.p, dot ? (size_t)(dot - path.p) : path.n);
        d->steps[d->steps_n++] = step;
        path = slice_skip(path, step.n + 1);
    }
    return d->steps_n && !path.n ? OK : op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "The key of distinct must be a path.");
}

static void run_distinct(mongo_request *q, err code) {
    distinction *d = q->state;
    if (code != OK) {
        mongo_fail(q, code);
    } else if (!q->container) {
        answer_distinct(q);
    } else {
        mongo_scan_start(q, &d->scan);
    }
}

static err plan_distinct(mongo_request *q) {
    distinction *d = q->state;
    TRY(plan(q));
    return d->find.collation.n ? mql_collation_shared(&q->op, d->find.collation, &d->collation) : OK;
}

static err distinct_in_view(mongo_request *q, distinction *d) {
    TRY(mongo_view_enter(q));
    TRY(mongo_arg_collation(q, &d->find.collation));
    TRY(d->find.collation.n ? mql_collation_shared(&q->op, d->find.collation, &d->collation) : OK);
    return scan_view(q, &d->find, &d->scan);
}

err mongo_distinct(mongo_request *q) {
    distinction *d = q->state = arena_new(q->frame->arena, distinction);
    slice filter, key;
    d->memory = arena_init_counted(q->op.budget);
    q->clean = free_values;
    TRY(mongo_arg_document(q, "query", &filter));
    if (!mongo_may_have(q, "key") || mql_is_missing(mongo_arg(q, "key"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_MISSING_FIELD, "BSON field 'distinct.key' is missing but a required field");
    }
    TRY(mongo_arg_text(q, "key", &key));
    TRY(split(q, key, d));
    d->find = find_of(q, filter);
    d->find.value_path = key;
    d->find.distinct = true;
    d->scan = (mongo_scan){.find = &d->find, .take = take_values, .done = answer_distinct};
    TRY(mongo_find_collection(q));
    if (is_of_view(q)) {
        return distinct_in_view(q, d);
    }
    mongo_work(q, q->large, plan_distinct, run_distinct);
    return OK;
}
