/* stage_window.c — $setWindowFields: fields computed from the documents around each document of its partition. */
#include "mql/show.h"
#include "mql/window.h"

typedef struct window_stage {
    const mql_expression *partition; /* NULL: one partition */
    mql_sort sort;
    bool sorted;
    mql__window_output *outputs;
    size_t n;
} window_stage;

/* ---- parsing ---- */

static err parse_edge(op *o, mql_value v, mql__window *w, const mql__step *step, mql__edge *edge) {
    if (mql_is_text(v)) {
        bool current = slice_eq(mql_as_text(v), SLICE_LIT("current"));
        edge->kind = current ? MQL__CURRENT : MQL__UNBOUNDED;
        return current || slice_eq(mql_as_text(v), SLICE_LIT("unbounded"))
                   ? OK
                   : mql_fail(o, 9, "Window bounds must be 'unbounded', 'current', or a number.");
    }
    edge->kind = MQL__AT;
    edge->step = *step;
    edge->step.by = v;
    if (w->range ? !mql_is_number(v) : !mql_as_integer(v, &edge->by)) {
        return mql_fail(o, 9,
                        w->range ? "Range-based bounds expression must be a number" : "Numeric document-based bounds must be an integer");
    }
    return OK;
}

static err parse_window(op *o, const window_stage *stage, mql_value v, mql__window *w) {
    mql_value documents = mql_member(v, SLICE_LIT("documents")), range = mql_member(v, SLICE_LIT("range")),
              unit = mql_member(v, SLICE_LIT("unit"));
    mql__step step = {.dated = !mql_is_missing(unit)};
    if (v.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 9, "'window' field must be an object");
    }
    w->given = true;
    w->range = mql_is_missing(documents) && !mql_is_missing(range);
    mql_value bounds = w->range ? range : documents;
    if (!mql_is_missing(documents) && !mql_is_missing(range)) {
        return mql_fail(o, 9, "Window bounds can specify either 'documents' or 'unit', not both.");
    }
    if (mql_is_missing(bounds)) {
        return mql_length(v) == 0 ? OK : mql_fail(o, 9, "Window must specify 'documents' or 'range'");
    }
    if (bounds.type != BSON_TYPE_ARRAY || mql_length(bounds) != 2) {
        return mql_fail(o, 9, "Window bounds must be a 2-element array: %s", mql__show(o->arena, bounds));
    }
    if (w->range && (!stage->sorted || stage->sort.n != 1 || stage->sort.parts[0].descending)) {
        return mql_fail(o, 5339902, "Range-based bounds require sortBy a single, ascending field");
    }
    if (!w->range && !stage->sorted) {
        return mql_fail(o, 5339901, "Document-based bounds require a sortBy");
    }
    if (step.dated) {
        TRY(mql__parse_unit(o, unit, &step.unit));
    }
    TRY(parse_edge(o, mql_element_at(bounds, 0), w, &step, &w->low));
    TRY(parse_edge(o, mql_element_at(bounds, 1), w, &step, &w->high));
    bool reversed = !w->range && w->low.kind == MQL__AT && w->high.kind == MQL__AT && w->low.by > w->high.by;
    return reversed ? mql_fail(o, 5339900, "Lower bound must not exceed upper bound: %s", mql__show(o->arena, bounds)) : OK;
}

/* {path: {$function: argument, window: {…}}} */
static err parse_output(mql_scope *s, const window_stage *stage, const doc_element *e, mql__window_output *output) {
    op *o = s->op;
    doc_walk w;
    doc_element member, function = {0};
    *output = (mql__window_output){.path = e->key, .fallback = mql_missing()};
    TRY(mql__check_path(o, e->key, 40234));
    if (e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 9, "The field '%.*s' must be an object", slice_shown(e->key), e->key.p);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &member);) {
        if (slice_eq(member.key, SLICE_LIT("window"))) {
            TRY(parse_window(o, stage, mql_of(&member), &output->window));
        } else if (function.key.n || !slice_starts(member.key, SLICE_LIT("$"))) {
            return mql_fail(o, 9, "Window function found an unknown argument: %.*s", slice_shown(member.key), member.key.p);
        } else {
            function = member;
        }
    }
    if (!function.key.n) {
        return mql_fail(o, 9, "Expected a $-prefixed window function, %.*s", slice_shown(e->key), e->key.p);
    }
    return mql__window_parse(s, function.key, mql_of(&function), stage->sorted, output);
}

static err check_names(op *o, mql_value argument) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("partitionBy")) && !slice_eq(e.key, SLICE_LIT("sortBy")) && !slice_eq(e.key, SLICE_LIT("output"))) {
            return mql_fail(o, 40415, "BSON field '$setWindowFields.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
    }
    return OK;
}

static err parse_windows(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    window_stage *s = arena_new(o->arena, window_stage);
    TRY(mql__is_document(o, argument, 9, "the $setWindowFields stage specification must be an object, found "));
    TRY(check_names(o, argument));
    mql_value partition = mql_member(argument, SLICE_LIT("partitionBy")), sort = mql_member(argument, SLICE_LIT("sortBy"));
    mql_value output = mql_member(argument, SLICE_LIT("output"));
    doc_walk w;
    doc_element e;
    if (output.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 40414, "BSON field '$setWindowFields.output' is missing but a required field");
    }
    if (!mql_is_missing(partition)) {
        TRY(mql_expression_parse(p->scope, partition, &s->partition));
    }
    if (sort.type == BSON_TYPE_DOCUMENT && mql_length(sort) > 0) {
        s->sorted = true;
        TRY(mql_sort_parse(o, sort.bytes, &s->sort));
    }
    TRY(mql__arena_room(o->arena, mql_length(output) * sizeof *s->outputs));
    s->outputs = arena_array(o->arena, mql__window_output, mql_length(output) + 1);
    for (doc_walk_init(&w, output.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_output(p->scope, s, &e, &s->outputs[s->n++]));
    }
    return mql__add_stage(p, kind, argument, s);
}

/* ---- at work ---- */

typedef struct window_run {
    mql__gathering gathered;
    size_t at, from, end; /* the next document, and its partition */
    arena memory;         /* for values of the partition */
    mql_value *values;    /* output o for document i is at [o * (end - from) + i - from] */
} window_run;

static err begin_partition(mql__runner *at, window_run *s) {
    const window_stage *of = at->stage->detail;
    const mql__gathered *all = s->gathered.all;
    s->from = s->at;
    for (s->end = s->at + 1; s->end < s->gathered.n && slice_eq(all[s->end].partition, all[s->at].partition);) {
        s->end++;
    }
    size_t n = s->end - s->from;
    arena_free(&s->memory);
    s->memory = arena_init_counted(at->flow->budget);
    TRY(mql__arena_room(&s->memory, n * of->n * sizeof *s->values));
    s->values = arena_array(&s->memory, mql_value, n * of->n + 1);
    mql__partition p = {at, all + s->from, n, of->sorted ? &of->sort : NULL, &s->memory};
    for (size_t i = 0; i < of->n; i++) {
        TRY(mql__window_compute(&p, &of->outputs[i], s->values + i * n));
    }
    return mql__arena_error(&s->memory);
}

static err next_windowed(mql__runner *at, mql__status *status_out, slice *document_out) {
    window_run *s = at->state;
    const window_stage *of = at->stage->detail;
    mql__gather_order order = {.partition = of->partition, .sort = of->sorted ? &of->sort : NULL};
    TRY(mql__gather(at, &s->gathered, &order, status_out));
    if (*status_out == MQL__BLOCKED || s->at == s->gathered.n) {
        return OK;
    }
    if (s->at == s->end) {
        TRY(begin_partition(at, s));
    }
    *document_out = s->gathered.all[s->at].document;
    for (size_t i = 0; i < of->n; i++) {
        mql_value v = s->values[i * (s->end - s->from) + s->at - s->from];
        TRY(mql__document_with(mql__run_of(at), *document_out, of->outputs[i].path, v, document_out));
    }
    s->at++;
    *status_out = MQL__DOCUMENT;
    return OK;
}

static void end_windows(mql__runner *at) {
    window_run *s = at->state;
    arena_free(&s->memory);
    mql__gather_free(&s->gathered);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$setWindowFields"), 0, parse_windows, .next = next_windowed, .state_bytes = sizeof(window_run), .end = end_windows},
};
const mql__stage_kinds mql__window_stages = {rows, 1};
