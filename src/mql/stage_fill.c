/* stage_fill.c — $fill, which is written as $addFields (for values) and $setWindowFields (for the methods locf and linear). */
#include "mql/stages.h"

typedef struct filler {
    buf values, windows; /* the arguments of the two stages */
    mql_builder value_builder, window_builder;
    size_t values_n, windows_n;
} filler;

/* {f: {value: e}} becomes {f: {$ifNull: ["$f", e]}}; {f: {method: "locf"}} becomes {f: {$locf: "$f"}}. */
static err add_output(op *o, filler *f, const doc_element *e) {
    mql_value value = mql_member(mql_of(e), SLICE_LIT("value")), method = mql_member(mql_of(e), SLICE_LIT("method"));
    if (e->type != BSON_TYPE_DOCUMENT || mql_length(mql_of(e)) != 1 || (mql_is_missing(value) && !mql_is_text(method))) {
        return mql_fail(o, 6050202, "Each element of $fill's output must be a document with either 'value' or 'method'");
    }
    mql_value path = mql_text(o->arena, arena_printf(o->arena, "$%.*s", (int)e->key.n, e->key.p));
    if (!mql_is_missing(value)) {
        mql_open(&f->value_builder, e->key, BSON_TYPE_DOCUMENT);
        mql_open(&f->value_builder, SLICE_LIT("$ifNull"), BSON_TYPE_ARRAY);
        mql_add_next(&f->value_builder, path);
        mql_add_next(&f->value_builder, value);
        mql_close(&f->value_builder);
        mql_close(&f->value_builder);
        f->values_n++;
        return OK;
    }
    bool locf = slice_eq(mql_as_text(method), SLICE_LIT("locf"));
    if (!locf && !slice_eq(mql_as_text(method), SLICE_LIT("linear"))) {
        return mql_fail(o, 6050202, "Method must be either locf or linear");
    }
    mql_open(&f->window_builder, e->key, BSON_TYPE_DOCUMENT);
    mql_add(&f->window_builder, locf ? SLICE_LIT("$locf") : SLICE_LIT("$linearFill"), path);
    mql_close(&f->window_builder);
    f->windows_n++;
    return OK;
}

static err add_partition(op *o, mql_builder *b, mql_value by, mql_value fields) {
    doc_walk w;
    doc_element e;
    if (!mql_is_missing(by) && !mql_is_missing(fields)) {
        return mql_fail(o, 6050204, "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'");
    }
    mql_add(b, SLICE_LIT("partitionBy"), by);
    if (mql_is_missing(fields)) {
        return OK;
    }
    if (fields.type != BSON_TYPE_ARRAY) {
        return mql_fail(o, 14, "BSON field '$fill.partitionByFields' is the wrong type '%s', expected type 'array'",
                        mql_type_name(fields.type));
    }
    mql_open(b, SLICE_LIT("partitionBy"), BSON_TYPE_DOCUMENT);
    for (doc_walk_init(&w, fields.bytes); doc_walk_next(&w, &e);) {
        slice path = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
        TRY(mql__check_path(o, path, 16410));
        mql_add(b, e.key, mql_text(o->arena, arena_printf(o->arena, "$%.*s", (int)path.n, path.p)));
    }
    mql_close(b);
    return OK;
}

static err parse_windows(mql__stage_parser *p, filler *f, mql_value argument) {
    op *o = p->scope->op;
    buf out = buf_init_counted(BUF_NO_LIMIT, o->arena->budget);
    mql_builder b = mql_build(&out);
    slice windows;
    err e = add_partition(o, &b, mql_member(argument, SLICE_LIT("partitionBy")), mql_member(argument, SLICE_LIT("partitionByFields")));
    mql_add(&b, SLICE_LIT("sortBy"), mql_member(argument, SLICE_LIT("sortBy")));
    mql_add(&b, SLICE_LIT("output"), mql_document(mql_built(&f->window_builder)));
    bool kept = e != OK || mql_keep(o->arena, &b, &windows);
    buf_free(&out);
    TRY(e);
    TRY(kept ? OK : mql__arena_error(o->arena));
    return mql__parse_stage(p, SLICE_LIT("$setWindowFields"), mql_document(windows));
}

static err parse_stages(mql__stage_parser *p, filler *f, mql_value argument) {
    op *o = p->scope->op;
    slice values;
    if (f->windows_n) {
        TRY(parse_windows(p, f, argument));
    }
    if (f->values_n) {
        TRY(mql_keep(o->arena, &f->value_builder, &values) ? OK : mql__arena_error(o->arena));
        TRY(mql__parse_stage(p, SLICE_LIT("$addFields"), mql_document(values)));
    }
    return OK;
}

static err check_names(op *o, mql_value argument) {
    static const char *const names[] = {"partitionBy", "partitionByFields", "sortBy", "output"};
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            known = known || slice_eq(e.key, slice_str(names[i]));
        }
        if (!known) {
            return mql_fail(o, 40415, "BSON field '$fill.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
    }
    return OK;
}

static err parse_fill(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    (void)kind;
    TRY(mql__is_document(o, argument, 6050201, "The $fill stage specification must be an object, but found "));
    TRY(check_names(o, argument));
    mql_value output = mql_member(argument, SLICE_LIT("output"));
    if (output.type != BSON_TYPE_DOCUMENT || mql_length(output) == 0) {
        return mql_fail(o, 6050203, "The $fill stage must have a non-empty document 'output'");
    }
    filler f = {.values = buf_init_counted(BUF_NO_LIMIT, o->arena->budget), .windows = buf_init_counted(BUF_NO_LIMIT, o->arena->budget)};
    f.value_builder = mql_build(&f.values);
    f.window_builder = mql_build(&f.windows);
    doc_walk w;
    doc_element e;
    err code = OK;
    for (doc_walk_init(&w, output.bytes); code == OK && doc_walk_next(&w, &e);) {
        code = add_output(o, &f, &e);
    }
    if (code == OK) {
        code = parse_stages(p, &f, argument);
    }
    buf_free(&f.values);
    buf_free(&f.windows);
    return code;
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$fill"), 0, parse_fill, .next = NULL},
};
const mql__stage_kinds mql__fill_stages = {rows, 1};
