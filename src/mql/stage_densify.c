/* stage_densify.c — $densify: adds documents where values of a field are missing.
 *
 * The documents are gathered by partition, in the order of the field. `cursor` walks the values that should be there, from the lower bound
 * by steps; wherever it is before the next document, a document is made. */
#include "mql/show.h"
#include "mql/stage_range.h"
#include "mql/stages.h"

enum { MADE_MAX = 500000 };
typedef enum bounds { FULL, PARTITION, EXPLICIT } bounds;

typedef struct densify {
    slice field;
    mql_value partition_fields; /* an array of paths; missing: none */
    const mql_expression *partition;
    mql_sort sort;
    mql__step step;
    bounds bounds;
    mql_value low, high; /* EXPLICIT: from low up to high, which is not included; otherwise missing */
} densify;

/* ---- parsing ---- */

static err parse_bounds(op *o, densify *d, mql_value v) {
    if (mql_is_text(v)) {
        d->bounds = slice_eq(mql_as_text(v), SLICE_LIT("partition")) ? PARTITION : FULL;
        return d->bounds == PARTITION || slice_eq(mql_as_text(v), SLICE_LIT("full"))
                   ? OK
                   : mql_fail(o, 5946802, "Bounds string must either be 'full' or 'partition'");
    }
    d->bounds = EXPLICIT;
    d->low = mql_element_at(v, 0);
    d->high = mql_element_at(v, 1);
    bool dates = d->low.type == BSON_TYPE_DATE_TIME && d->high.type == BSON_TYPE_DATE_TIME;
    if (v.type != BSON_TYPE_ARRAY || mql_length(v) != 2 || !(dates || (mql_is_number(d->low) && mql_is_number(d->high)))) {
        return mql_fail(o, 5733403, "a bounding array in a range statement must have exactly two elements, both numbers or both dates");
    }
    if (dates != d->step.dated) {
        return mql_fail(o, 5733402, "if a unit is given, the bounds must be dates, and otherwise numbers");
    }
    return mql_compare(d->low, d->high) <= 0 ? OK
                                             : mql_fail(o, 5733402,
                                                        "the bounds in a range statement must be the string 'full', 'partition', or an "
                                                        "ascending array of two numbers or two dates");
}

static err parse_range(op *o, densify *d, mql_value range) {
    mql_value step = mql_member(range, SLICE_LIT("step")), unit = mql_member(range, SLICE_LIT("unit"));
    if (range.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 14, "BSON field '$densify.range' is the wrong type '%s', expected type 'object'", mql_type_name(range.type));
    }
    if (!mql_is_number(step) || !(mql_as_double(step) > 0)) {
        return mql_fail(o, 5733401, "the step parameter in a range statement must be a strictly positive numeric value");
    }
    d->step = (mql__step){.by = step, .dated = !mql_is_missing(unit)};
    if (d->step.dated) {
        int64_t whole;
        TRY(mql__parse_unit(o, unit, &d->step.unit));
        if (!mql_as_integer(step, &whole)) {
            return mql_fail(o, 6586400, "The step parameter in a range statement must be a whole number when densifying a date range");
        }
    }
    return parse_bounds(o, d, mql_member(range, SLICE_LIT("bounds")));
}

/* Builds the arguments for gathering: the partition {a: "$a", …}, and the sort {field: 1}. */
static err parse_order(mql_scope *s, densify *d) {
    op *o = s->op;
    buf out = buf_init_counted(BUF_NO_LIMIT, o->arena->budget);
    mql_builder b = mql_build(&out);
    slice sort, partition = SLICE_EMPTY;
    doc_walk w;
    doc_element e;
    mql_add(&b, d->field, mql_int32(o->arena, 1));
    bool kept = mql_keep(o->arena, &b, &sort);
    if (!mql_is_missing(d->partition_fields)) {
        buf_clear(&out);
        b = mql_build(&out);
        mql_open(&b, SLICE_LIT("v"), BSON_TYPE_ARRAY);
        for (doc_walk_init(&w, d->partition_fields.bytes); doc_walk_next(&w, &e);) {
            slice path = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
            mql_add_next(&b, mql_text(o->arena, arena_printf(o->arena, "$%.*s", (int)path.n, path.n ? path.p : "")));
        }
        mql_close(&b);
        kept = mql_keep(o->arena, &b, &partition) && kept;
    }
    buf_free(&out);
    TRY(kept ? OK : mql__arena_error(o->arena));
    if (partition.n) { /* as a document, since a partition cannot be an array */
        TRY(mql_expression_parse(s, mql_document(partition), &d->partition));
    }
    return mql_sort_parse(o, sort, &d->sort);
}

static err parse_densify(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    densify *d = arena_new(o->arena, densify);
    d->low = d->high = mql_missing();
    doc_walk w;
    doc_element e;
    TRY(mql__is_document(o, argument, 5733400, "The $densify stage specification must be an object, found "));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("field")) && !slice_eq(e.key, SLICE_LIT("range")) &&
            !slice_eq(e.key, SLICE_LIT("partitionByFields"))) {
            return mql_fail(o, 40415, "BSON field '$densify.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
    }
    mql_value field = mql_member(argument, SLICE_LIT("field")), range = mql_member(argument, SLICE_LIT("range"));
    d->partition_fields = mql_member(argument, SLICE_LIT("partitionByFields"));
    if (!mql_is_text(field) || mql_is_missing(range)) {
        return mql_fail(o, 40414, "BSON field '$densify.%s' is missing but a required field", mql_is_text(field) ? "range" : "field");
    }
    if (!mql_is_missing(d->partition_fields) && d->partition_fields.type != BSON_TYPE_ARRAY) {
        return mql_fail(o, 14, "BSON field '$densify.partitionByFields' is the wrong type '%s', expected type 'array'",
                        mql_type_name(d->partition_fields.type));
    }
    d->field = mql_as_text(field);
    TRY(mql__check_path(o, d->field, 16410));
    TRY(parse_range(o, d, range));
    if (d->bounds == PARTITION && mql_is_missing(d->partition_fields)) {
        return mql_fail(o, 5733408,
                        "one may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields");
    }
    TRY(parse_order(p->scope, d));
    return mql__add_stage(p, kind, argument, d);
}

/* ---- at work ---- */

typedef struct densify_run {
    mql__gathering gathered;
    bool begun;
    size_t at, end; /* the next document, and the end of its partition */
    bool within;    /* a partition has begun */
    bool going;     /* the cursor has not reached the upper bound */
    char cursor_bytes[16];
    mql_value cursor, low, high;
    bool includes_high;
    uint64_t made;
} densify_run;

static mql_value value_of(const densify *d, slice document) {
    return mql__value_at(mql_document(document), d->field);
}

static err check_type(mql_run *r, const densify *d, mql_value v) {
    bool fits = mql_is_nullish(v) || (d->step.dated ? v.type == BSON_TYPE_DATE_TIME : mql_is_number(v));
    return fits            ? OK
           : d->step.dated ? mql_fail(r->op, 6053600, "Encountered non-date value in collection when step has a date unit.")
                           : mql_fail(r->op, 5733201, "Densify field type must be numeric");
}

/* The range of all values, for `full`. */
static err begin(mql__runner *at, densify_run *s) {
    const densify *d = at->stage->detail;
    s->begun = true;
    s->low = d->low;
    s->high = d->high;
    s->includes_high = d->bounds != EXPLICIT;
    for (size_t i = 0; i < s->gathered.n; i++) {
        mql_value v = value_of(d, s->gathered.all[i].document);
        TRY(check_type(mql__run_of(at), d, v));
        if (d->bounds == FULL && !mql_is_nullish(v)) {
            bool first = mql_is_missing(s->low);
            s->low = first || mql_compare(v, s->low) < 0 ? v : s->low;
            s->high = first || mql_compare(v, s->high) > 0 ? v : s->high;
        }
    }
    return OK;
}

static void begin_partition(mql__runner *at, densify_run *s) {
    const densify *d = at->stage->detail;
    const mql__gathered *all = s->gathered.all;
    s->within = true;
    for (s->end = s->at + 1; s->end < s->gathered.n && slice_eq(all[s->end].partition, all[s->at].partition);) {
        s->end++;
    }
    size_t first = s->at;
    while (first < s->end && mql_is_nullish(value_of(d, all[first].document))) {
        first++;
    }
    s->going = first < s->end || d->bounds != PARTITION;
    if (d->bounds == PARTITION && s->going) {
        s->low = value_of(d, all[first].document);
        s->high = value_of(d, all[s->end - 1].document);
    }
    s->going = s->going && !mql_is_missing(s->low);
    s->cursor = s->low;
}

static void advance(mql__runner *at, densify_run *s) {
    const densify *d = at->stage->detail;
    mql_value next;
    s->going = mql__step_from(mql__run_of(at)->arena, s->cursor, &d->step, &next);
    if (s->going) { /* a number or a date: 16 bytes at most */
        memcpy(s->cursor_bytes, next.bytes.p, next.bytes.n);
        s->cursor = (mql_value){next.type, slice_of(s->cursor_bytes, next.bytes.n)};
    }
}

static bool before_high(const densify_run *s) {
    int by = s->going ? mql_compare(s->cursor, s->high) : 1;
    return by < 0 || (by == 0 && s->includes_high);
}

/* A document with the partition's fields and the cursor's value. */
static err make(mql__runner *at, densify_run *s, slice *document_out) {
    const densify *d = at->stage->detail;
    mql_run *r = mql__run_of(at);
    static const char empty[] = "\5\0\0\0";
    slice made = slice_of(empty, 5), example = s->gathered.all[s->end - 1].document;
    doc_walk w;
    doc_element e;
    if (++s->made > MADE_MAX) {
        return mql_fail(r->op, 5897900,
                        "Generated %d documents in $densify, which is over the limit of %d. Increase the "
                        "'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                        MADE_MAX + 1, MADE_MAX);
    }
    if (!mql_is_missing(d->partition_fields)) {
        for (doc_walk_init(&w, d->partition_fields.bytes); doc_walk_next(&w, &e);) {
            slice path = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
            if (path.n) {
                TRY(mql__document_with(r, made, path, mql__value_at(mql_document(example), path), &made));
            }
        }
    }
    TRY(mql__document_with(r, made, d->field, s->cursor, document_out));
    advance(at, s);
    return OK;
}

/* The next document of the partition, or one that is made; false at its end. */
static err next_in_partition(mql__runner *at, densify_run *s, bool *given_out, slice *document_out) {
    const densify *d = at->stage->detail;
    *given_out = true;
    if (s->at == s->end) {
        *given_out = before_high(s);
        return *given_out ? make(at, s, document_out) : OK;
    }
    slice document = s->gathered.all[s->at].document;
    mql_value v = value_of(d, document);
    if (!mql_is_nullish(v) && before_high(s) && mql_compare(s->cursor, v) < 0) {
        return make(at, s, document_out);
    }
    if (!mql_is_nullish(v) && s->going && mql_compare(s->cursor, v) == 0) {
        advance(at, s);
    }
    s->at++;
    *document_out = document;
    return OK;
}

static err next_densified(mql__runner *at, mql__status *status_out, slice *document_out) {
    densify_run *s = at->state;
    const densify *d = at->stage->detail;
    mql__gather_order order = {.partition = d->partition, .sort = &d->sort};
    TRY(mql__gather(at, &s->gathered, &order, status_out));
    if (*status_out == MQL__BLOCKED) {
        return OK;
    }
    if (!s->begun) {
        TRY(begin(at, s));
    }
    for (*status_out = MQL__DOCUMENT;;) {
        if (!s->within) {
            if (s->at == s->gathered.n) {
                *status_out = MQL__END;
                return OK;
            }
            begin_partition(at, s);
        }
        TRY(next_in_partition(at, s, &s->within, document_out));
        if (s->within) {
            return OK;
        }
    }
}

static void end_densify(mql__runner *at) {
    mql__gather_free(&((densify_run *)at->state)->gathered);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$densify"), 0, parse_densify, .next = next_densified, .state_bytes = sizeof(densify_run), .end = end_densify},
};
const mql__stage_kinds mql__densify_stages = {rows, 1};
