/* stage_bucket.c — $bucket, which is written as $group and $sort; and $bucketAuto, which makes buckets of about the same size. */
#include "mql/show.h"
#include "mql/stages.h"

/* ---- options ---- */

typedef struct options {
    mql_value group_by, boundaries, fallback, output, buckets, granularity;
} options;

static err take_option(op *o, const char *stage, options *of, const doc_element *e, bool automatic, int unknown) {
    const struct {
        const char *name;
        mql_value *value;
        bool automatic, fixed;
    } rows[] = {
        {"groupBy", &of->group_by, true, true},  {"output", &of->output, true, true},    {"boundaries", &of->boundaries, false, true},
        {"default", &of->fallback, false, true}, {"buckets", &of->buckets, true, false}, {"granularity", &of->granularity, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if ((automatic ? rows[i].automatic : rows[i].fixed) && slice_eq(e->key, slice_str(rows[i].name))) {
            *rows[i].value = mql_of(e);
            return OK;
        }
    }
    return mql_fail(o, unknown, "Unrecognized option to %s: %.*s.", stage, slice_shown(e->key), e->key.p);
}

static err take_options(op *o, const char *stage, mql_value argument, bool automatic, int unknown, options *of) {
    doc_walk w;
    doc_element e;
    mql_value none = mql_missing();
    *of = (options){none, none, none, none, none, none};
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        TRY(take_option(o, stage, of, &e, automatic, unknown));
    }
    return OK;
}

static err check_group_by(op *o, const char *stage, mql_value v, int code) {
    bool path = mql_is_text(v) && slice_starts(mql_as_text(v), SLICE_LIT("$"));
    return path || v.type == BSON_TYPE_DOCUMENT
               ? OK
               : mql_fail(o, code, "The %s 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s.", stage,
                          mql__show(o->arena, v));
}

/* ---- $bucket ---- */

static err check_boundaries(op *o, mql_value boundaries) {
    doc_walk w;
    doc_element e, before = {0};
    size_t n = 0;
    if (boundaries.type != BSON_TYPE_ARRAY) {
        return mql_fail(o, 40200, "The $bucket 'boundaries' field must be an array, but found type: %s.", mql_type_name(boundaries.type));
    }
    for (doc_walk_init(&w, boundaries.bytes); doc_walk_next(&w, &e); n++) {
        if (n && mql_class(e.type) != mql_class(before.type)) {
            return mql_fail(
                o, 40193,
                "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types %s and %s.",
                mql_type_name(before.type), mql_type_name(e.type));
        }
        if (n && mql_compare(mql_of(&before), mql_of(&e)) >= 0) {
            return mql_fail(o, 40194,
                            "The 'boundaries' option to $bucket must be sorted, but elements %zu and %zu are not in ascending order (%s is "
                            "not less than %s).",
                            n - 1, n, mql__show(o->arena, mql_of(&before)), mql__show(o->arena, mql_of(&e)));
        }
        before = e;
    }
    return n >= 2 ? OK : mql_fail(o, 40192, "The $bucket 'boundaries' field must have at least 2 values, but found %zu value(s).", n);
}

static void add_literal(mql_builder *b, slice key, mql_value v) {
    if (key.n) {
        mql_open(b, key, BSON_TYPE_DOCUMENT);
    } else {
        mql_open_next(b, BSON_TYPE_DOCUMENT);
    }
    mql_add(b, SLICE_LIT("$literal"), v);
    mql_close(b);
}

/* {$gte: [groupBy, boundary]} and the like, in an array. */
static void add_comparison(mql_builder *b, slice operator, mql_value group_by, mql_value boundary) {
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mql_open(b, operator, BSON_TYPE_ARRAY);
    mql_add_next(b, group_by);
    add_literal(b, SLICE_EMPTY, boundary);
    mql_close(b);
    mql_close(b);
}

/* {case: {$and: [{$gte: …}, {$lt: …}]}, then: low} for each pair of boundaries. */
static void add_branches(mql_builder *b, const options *of) {
    doc_walk w;
    doc_element low, high;
    mql_open(b, SLICE_LIT("branches"), BSON_TYPE_ARRAY);
    doc_walk_init(&w, of->boundaries.bytes);
    for (bool more = doc_walk_next(&w, &low); more && doc_walk_next(&w, &high); low = high) {
        mql_open_next(b, BSON_TYPE_DOCUMENT);
        mql_open(b, SLICE_LIT("case"), BSON_TYPE_DOCUMENT);
        mql_open(b, SLICE_LIT("$and"), BSON_TYPE_ARRAY);
        add_comparison(b, SLICE_LIT("$gte"), of->group_by, mql_of(&low));
        add_comparison(b, SLICE_LIT("$lt"), of->group_by, mql_of(&high));
        mql_close(b);
        mql_close(b);
        add_literal(b, SLICE_LIT("then"), mql_of(&low));
        mql_close(b);
    }
    mql_close(b);
}

static void add_outputs(mql_builder *b, arena *a, mql_value output) {
    doc_walk w;
    doc_element e;
    if (!mql_is_missing(output)) {
        for (doc_walk_init(&w, output.bytes); doc_walk_next(&w, &e);) {
            mql_add_element(b, &e);
        }
        return;
    }
    mql_open(b, SLICE_LIT("count"), BSON_TYPE_DOCUMENT);
    mql_add(b, SLICE_LIT("$sum"), mql_int32(a, 1));
    mql_close(b);
}

/* The argument of $group. */
static err group_of(op *o, const options *of, slice *group_out) {
    buf out = buf_init_counted(BUF_NO_LIMIT, o->arena->budget);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("_id"), BSON_TYPE_DOCUMENT);
    mql_open(&b, SLICE_LIT("$switch"), BSON_TYPE_DOCUMENT);
    add_branches(&b, of);
    if (!mql_is_missing(of->fallback)) {
        add_literal(&b, SLICE_LIT("default"), of->fallback);
    }
    mql_close(&b);
    mql_close(&b);
    add_outputs(&b, o->arena, of->output);
    bool kept = mql_keep(o->arena, &b, group_out);
    buf_free(&out);
    return kept ? OK : mql__arena_error(o->arena);
}

static err check_output(op *o, const char *stage, mql_value output, int code) {
    return mql_is_missing(output) || output.type == BSON_TYPE_DOCUMENT
               ? OK
               : mql_fail(o, code, "The %s 'output' field must be an object, but found type: %s.", stage, mql_type_name(output.type));
}

/* A default that lies within the boundaries would be mistaken for a bucket. */
static err check_default(op *o, const options *of) {
    if (mql_is_missing(of->fallback)) {
        return OK;
    }
    mql_value low = mql_element_at(of->boundaries, 0), high = mql_element_at(of->boundaries, mql_length(of->boundaries) - 1);
    bool outside =
        mql_class(of->fallback.type) != mql_class(low.type) || mql_compare(of->fallback, low) < 0 || mql_compare(of->fallback, high) >= 0;
    return outside
               ? OK
               : mql_fail(
                     o, 40199,
                     "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.");
}

static err parse_bucket(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    options of;
    slice group, sort;
    (void)kind;
    TRY(mql__is_document(o, argument, 40201, "Argument to $bucket stage must be an object, but found type: "));
    TRY(take_options(o, "$bucket", argument, false, 40197, &of));
    if (mql_is_missing(of.group_by) || mql_is_missing(of.boundaries)) {
        return mql_fail(o, 40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
    }
    TRY(check_group_by(o, "$bucket", of.group_by, 40202));
    TRY(check_boundaries(o, of.boundaries));
    TRY(check_default(o, &of));
    TRY(check_output(o, "$bucket", of.output, 40196));
    TRY(group_of(o, &of, &group));
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("_id"), mql_int32(o->arena, 1));
    bool kept = mql_keep(o->arena, &b, &sort);
    buf_free(&out);
    TRY(kept ? OK : mql__arena_error(o->arena));
    TRY(mql__parse_stage(p, SLICE_LIT("$group"), mql_document(group)));
    return mql__parse_stage(p, SLICE_LIT("$sort"), mql_document(sort));
}

/* ---- $bucketAuto ---- */

typedef struct automatic {
    mql_sort sort; /* by the value of groupBy, which is stored beside the document */
    const mql_expression *group_by;
    mql__outputs outputs;
    uint64_t buckets;
} automatic;

static err parse_buckets(op *o, mql_value v, uint64_t *buckets_out) {
    int64_t n = 0;
    if (!mql_is_number(v) || !mql_as_integer(v, &n) || n > INT32_MAX) {
        return mql_fail(o, 40241, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s",
                        mql__show(o->arena, v));
    }
    *buckets_out = (uint64_t)n;
    return n > 0 ? OK : mql_fail(o, 40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: %s", mql__show(o->arena, v));
}

static err parse_automatic(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    automatic *a = arena_new(o->arena, automatic);
    options of;
    TRY(mql__is_document(o, argument, 40240, "The argument to $bucketAuto must be an object, but found type: "));
    TRY(take_options(o, "$bucketAuto", argument, true, 40245, &of));
    if (mql_is_missing(of.group_by) || mql_is_missing(of.buckets)) {
        return mql_fail(o, 40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified");
    }
    if (!mql_is_missing(of.granularity)) {
        return mql_fail(o, 40261, "$bucketAuto's 'granularity' is not supported");
    }
    TRY(check_group_by(o, "$bucketAuto", of.group_by, 40239));
    TRY(parse_buckets(o, of.buckets, &a->buckets));
    TRY(check_output(o, "$bucketAuto", of.output, 40244));
    TRY(mql_expression_parse(p->scope, of.group_by, &a->group_by));
    buf out = buf_init_counted(BUF_NO_LIMIT, o->arena->budget);
    mql_builder b = mql_build(&out);
    add_outputs(&b, o->arena, of.output);
    slice outputs, sort;
    bool kept = mql_keep(o->arena, &b, &outputs);
    buf_clear(&out);
    b = mql_build(&out);
    mql_add(&b, SLICE_LIT("v"), mql_int32(o->arena, 1));
    kept = mql_keep(o->arena, &b, &sort) && kept;
    buf_free(&out);
    TRY(kept ? OK : mql__arena_error(o->arena));
    TRY(mql__parse_outputs(p->scope, outputs, &a->outputs));
    TRY(mql_sort_parse(o, sort, &a->sort));
    return mql__add_stage(p, kind, argument, a);
}

typedef struct automatic_run {
    mql__gathering gathered;
    size_t given;
    uint64_t buckets; /* that were given */
} automatic_run;

static mql_value value_at(mql__gathering *g, size_t i, const automatic *a, mql_run *r, err *e) {
    mql_value v = mql_missing();
    r->root = mql_document(g->all[i].document);
    *e = *e == OK ? mql_evaluate(r, a->group_by, &v) : *e;
    return mql_is_missing(v) ? mql_null() : v;
}

/* The end of the bucket that begins at `from`: its share, and all documents whose value is that of the last one. */
static err end_of_bucket(mql__runner *at, automatic_run *s, size_t *end_out) {
    const automatic *a = at->stage->detail;
    mql__gathering *g = &s->gathered;
    mql_run *r = mql__run_of(at);
    uint64_t share = (g->n + a->buckets / 2) / a->buckets;
    size_t end = s->given + (share ? share : 1);
    err e = OK;
    if (s->buckets + 1 == a->buckets || end >= g->n) {
        *end_out = g->n;
        return OK;
    }
    mql_value last = value_at(g, end - 1, a, r, &e);
    while (e == OK && end < g->n) {
        arena_mark mark = arena_marked(r->arena);
        bool same = mql_compare_by(r->collation, value_at(g, end, a, r, &e), last) == 0;
        arena_release(r->arena, mark);
        if (!same) {
            break;
        }
        end++;
        TRY(mql_pay(r, 4));
    }
    *end_out = end;
    return e;
}

static err bucket_id(mql__runner *at, automatic_run *s, size_t end, slice *id_out) {
    const automatic *a = at->stage->detail;
    mql_run *r = mql__run_of(at);
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    err e = OK;
    mql_add(&b, SLICE_LIT("min"), value_at(&s->gathered, s->given, a, r, &e));
    mql_add(&b, SLICE_LIT("max"), value_at(&s->gathered, end < s->gathered.n ? end : end - 1, a, r, &e));
    if (e != OK) {
        buf_free(&out);
        return e;
    }
    return mql__document_made(r, &b, id_out);
}

static err give_bucket(mql__runner *at, automatic_run *s, slice *document_out) {
    const automatic *a = at->stage->detail;
    mql_run *r = mql__run_of(at);
    size_t end;
    slice id = SLICE_EMPTY;
    TRY(end_of_bucket(at, s, &end));
    TRY(bucket_id(at, s, end, &id));
    arena memory = arena_init_counted(at->flow->budget);
    mql_tally **tallies = mql__tallies_begin(&memory, &a->outputs);
    err e = OK;
    for (size_t i = s->given; e == OK && i < end; i++) {
        r->root = mql_document(s->gathered.all[i].document);
        e = mql__tallies_add(r, tallies, &a->outputs, 1);
    }
    if (e == OK) {
        e = mql__tallies_document(r, mql_document(id), tallies, &a->outputs, document_out);
    }
    mql__tallies_free(tallies, &a->outputs);
    arena_free(&memory);
    s->given = end;
    s->buckets++;
    return e;
}

/* Sorts by the value of groupBy: the documents are gathered with {v: value} as what is sorted. */
static err next_automatic(mql__runner *at, mql__status *status_out, slice *document_out) {
    automatic_run *s = at->state;
    const automatic *a = at->stage->detail;
    mql__gather_order order = {.sort = &a->sort, .value = a->group_by};
    TRY(mql__gather(at, &s->gathered, &order, status_out));
    if (*status_out == MQL__BLOCKED) {
        return OK;
    }
    *status_out = s->given < s->gathered.n ? MQL__DOCUMENT : MQL__END;
    return *status_out == MQL__DOCUMENT ? give_bucket(at, s, document_out) : OK;
}

static void end_automatic(mql__runner *at) {
    mql__gather_free(&((automatic_run *)at->state)->gathered);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$bucket"), 0, parse_bucket, .next = NULL},
    {SLICE_LIT("$bucketAuto"), 0, parse_automatic, .next = next_automatic, .state_bytes = sizeof(automatic_run), .end = end_automatic},
};
const mql__stage_kinds mql__bucket_stages = {rows, sizeof rows / sizeof *rows};
