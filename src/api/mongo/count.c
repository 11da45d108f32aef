/* count and distinct. */
#include <stdlib.h>

#include "api/mongo/filter_kind.h"
#include "api/mongo/plan.h"
#include "api/mongo/scan.h"
#include "base/memory.h"
#include "item/range_info.h"

enum { ARRAY_BYTES_MAX = 16 * 1024 * 1024, STEPS_MAX = 180 };

static err plan(mongo_request *q, slice filter, mongo_find *f) {
    mongo_scope scope;
    const mql_match *match;
    *f = (mongo_find){.filter = filter.n > 5 ? filter : SLICE_EMPTY, .now_ms = q->now_ms, .limit = UINT64_MAX};
    if (!f->filter.n) {
        return OK;
    }
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    TRY(mql_match_parse(&scope.scope, f->filter, &match));
    return q->container ? mongo_plan(&q->op, q->container, match, f) : OK;
}

/* ---- count ---- */

typedef struct counting {
    mongo_find find;
    mongo_scan scan;
    uint64_t n, skip, limit;
} counting;

static err answer_count(mongo_request *q) {
    counting *c = q->state;
    if (c->scan.code != OK) {
        return c->scan.code;
    }
    uint64_t n = c->n > c->skip ? c->n - c->skip : 0;
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
    TRY(mongo_find_collection(q));
    TRY(plan(q, filter, &c->find));
    if (!q->container) {
        return answer_count(q);
    }
    if (!c->find.filter.n && q->container->ttl == TTL_OFF) { /* the core has counted them; expired ones would count too */
        call_usage_init(&q->call.usage, &q->front->core, &q->frame->client, &q->op, q->container, usage_read);
        call_usage_submit(&q->call.usage);
        return OK;
    }
    c->scan = (mongo_scan){.find = &c->find, .take = count_one, .done = answer_count};
    mongo_scan_start(q, &c->scan);
    return OK;
}

/* ---- distinct ---- */

typedef struct distinction {
    mongo_find find;
    mongo_scan scan;
    slice steps[STEPS_MAX];
    size_t steps_n;
    mql_value *values; /* sorted */
    size_t n, room, bytes;
    err failed;
} distinction;

static size_t place_of(const distinction *d, mql_value v, bool *there_out) {
    size_t low = 0, high = d->n;
    *there_out = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = mql_compare(d->values[middle], v);
        if (c == 0) {
            *there_out = true;
            return middle;
        }
        if (c < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static err keep(mongo_request *q, distinction *d, mql_value v) {
    bool there;
    size_t at = place_of(d, v, &there);
    if (there) {
        return OK;
    }
    if (d->bytes + v.bytes.n > ARRAY_BYTES_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 17217, "distinct too big, 16mb cap");
    }
    if (!arena_fits(q->frame->arena, v.bytes.n)) {
        return budget_error(q->op.budget);
    }
    if (d->n == d->room) {
        d->room = d->room ? d->room * 2 : 64;
        d->values = mem_resize(d->values, d->room * sizeof *d->values);
    }
    memmove(d->values + at + 1, d->values + at, (d->n - at) * sizeof *d->values);
    d->values[at] = (mql_value){v.type, arena_copy(q->frame->arena, v.bytes)};
    d->bytes += v.bytes.n + 16;
    d->n++;
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
    free(((distinction *)q->state)->values);
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

err mongo_distinct(mongo_request *q) {
    distinction *d = q->state = arena_new(q->frame->arena, distinction);
    slice filter, key;
    q->clean = free_values;
    TRY(mongo_arg_document(q, "query", &filter));
    TRY(mongo_arg_text(q, "key", &key));
    TRY(split(q, key, d));
    TRY(mongo_find_collection(q));
    TRY(plan(q, filter, &d->find));
    if (!q->container) {
        return answer_distinct(q);
    }
    d->scan = (mongo_scan){.find = &d->find, .take = take_values, .done = answer_distinct};
    mongo_scan_start(q, &d->scan);
    return OK;
}
