/* sort.c — sort keys. An array on the way of a path stands for its elements: of the keys that they give, the first in the sort's order
 * counts.
 *
 * Example, sort {"a.b": 1, "a.c": 1}, document {a: [{b: 1, c: 5}, {b: 2, c: 2}]}: the elements give [1, 5] and [2, 2]; the key is [1, 5].
 * Paths that meet different arrays cannot be combined ("parallel arrays"). An empty array counts as undefined, which sorts before null. */
#include "mql/sort.h"

#include "mql/expression_int.h"

/* The first name of a path, which is then skipped. */
static slice next_name(slice *rest) {
    const char *dot = memchr(rest->p, '.', rest->n);
    slice name = slice_of(rest->p, dot ? (size_t)(dot - rest->p) : rest->n);
    *rest = slice_skip(*rest, name.n + 1);
    return name;
}

/* ---- parsing ---- */

static err check_path(op *o, slice path) {
    if (path.n == 0) {
        return mql_fail(o, 40352, "FieldPath cannot be constructed with empty string");
    }
    if (path.p[path.n - 1] == '.') {
        return mql_fail(o, 40353, "FieldPath must not end with a '.'.");
    }
    for (slice rest = path; rest.n;) {
        TRY(mql__check_field_name(o, next_name(&rest)));
    }
    return OK;
}

static err parse_meta(op *o, const doc_element *e, mql_sort_part *part) {
    mql_value meta = mql_member(mql_of(e), SLICE_LIT("$meta"));
    if (e->type != BSON_TYPE_DOCUMENT || mql_length(mql_of(e)) != 1 || meta.type != BSON_TYPE_UTF8) {
        return mql_fail(o, 15974, "$sort key ordering must be specified using a number or {$meta: 'textScore'}");
    }
    if (!slice_eq(mql_as_text(meta), SLICE_LIT("textScore"))) {
        slice name = mql_as_text(meta);
        return mql_fail(o, 31138, "Illegal $meta sort: $meta: \"%.*s\"", slice_shown(name), name.p);
    }
    part->by_text_score = part->descending = true;
    return OK;
}

static err parse_part(op *o, const doc_element *e, mql_sort_part *part) {
    int64_t direction;
    *part = (mql_sort_part){.path = e->key};
    TRY(check_path(o, e->key));
    if (!mql_is_number(mql_of(e))) {
        return parse_meta(o, e, part);
    }
    if (!mql_as_integer(mql_of(e), &direction) || (direction != 1 && direction != -1)) {
        return mql_fail(o, 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)");
    }
    part->descending = direction < 0;
    return OK;
}

err mql_sort_parse(op *o, slice spec, mql_sort *sort_out) {
    doc_walk w;
    doc_element e;
    *sort_out = (mql_sort){.parts = arena_array(o->arena, mql_sort_part, MQL_SORT_PARTS_MAX)};
    for (doc_walk_init(&w, spec); doc_walk_next(&w, &e); sort_out->n++) {
        if (sort_out->n == MQL_SORT_PARTS_MAX) {
            return mql_fail(o, 13103, "too many compound keys");
        }
        TRY(parse_part(o, &e, &sort_out->parts[sort_out->n]));
    }
    return OK;
}

/* ---- keys ---- */

typedef struct place {
    mql_value value; /* what the path has led to so far */
    slice rest;      /* the path from there on; not empty at an array that is to be entered */
} place;

typedef struct maker {
    mql_run *run;
    const mql_sort *sort;
    mql_sort_visit visit;
    void *context;
} maker;

static bool first_is_index(slice rest, size_t *index_out) {
    uint64_t index;
    bool is_index = slice_to_u64(next_name(&rest), &index);
    *index_out = is_index ? (size_t)index : 0;
    return is_index;
}

/* Follows a path until it ends, meets an array that has to be expanded, or finds nothing. */
static err follow(maker *m, place *p) {
    size_t index;
    while (p->rest.n) {
        bool indexed = p->value.type == BSON_TYPE_ARRAY && first_is_index(p->rest, &index);
        if (p->value.type == BSON_TYPE_ARRAY && !indexed) {
            return OK;
        }
        TRY(mql_pay(m->run, 1 + p->value.bytes.n / 128));
        slice name = next_name(&p->rest);
        p->value = indexed                               ? mql_element_at(p->value, index)
                   : p->value.type == BSON_TYPE_DOCUMENT ? mql_member(p->value, name)
                                                         : mql_missing();
    }
    return OK;
}

static mql_value value_of_place(const place *p) {
    return mql_is_missing(p->value) || p->rest.n ? mql_null() : p->value;
}

static err offer(maker *m, const place *places) {
    mql_value values[MQL_SORT_PARTS_MAX];
    bool all_missing = true;
    for (size_t i = 0; i < m->sort->n; i++) {
        values[i] = value_of_place(&places[i]);
        all_missing = all_missing && (mql_is_missing(places[i].value) || places[i].rest.n);
    }
    return m->visit(m->context, values, all_missing);
}

/* The array that has to be expanded next; NULL: none. */
static err find_array(maker *m, const place *places, const mql_value **array_out) {
    *array_out = NULL;
    for (size_t i = 0; i < m->sort->n; i++) {
        const mql_value *v = &places[i].value;
        if (v->type != BSON_TYPE_ARRAY) {
            continue;
        }
        if (*array_out && (*array_out)->bytes.p != v->bytes.p) {
            return mql_fail(m->run->op, 2, "cannot sort with keys that are parallel arrays");
        }
        *array_out = v;
    }
    return OK;
}

static err expand(maker *m, const place *places);

/* One element in the place of its array. An element that is an array itself is not expanded again where the path ends. */
static err expand_element(maker *m, const place *places, const mql_value *array, mql_value element) {
    place inner[MQL_SORT_PARTS_MAX];
    bool expands = false;
    for (size_t i = 0; i < m->sort->n; i++) {
        inner[i] = places[i];
        if (places[i].value.type == BSON_TYPE_ARRAY && places[i].value.bytes.p == array->bytes.p) {
            inner[i].value = element;
            bool enters = inner[i].rest.n && element.type == BSON_TYPE_DOCUMENT;
            expands |= enters;
            TRY(enters ? follow(m, &inner[i]) : OK);
        }
    }
    TRY(mql_pay(m->run, 2 + m->sort->n));
    if (expands) {
        return expand(m, inner);
    }
    return offer(m, inner);
}

static err expand(maker *m, const place *places) {
    const mql_value *array;
    doc_walk w;
    doc_element e;
    TRY(find_array(m, places, &array));
    if (!array) {
        return offer(m, places);
    }
    doc_walk_init(&w, array->bytes);
    bool empty = true;
    for (; doc_walk_next(&w, &e); empty = false) {
        TRY(expand_element(m, places, array, mql_of(&e)));
    }
    return empty ? expand_element(m, places, array, (mql_value){BSON_TYPE_UNDEFINED, {"", 0}}) : OK;
}

err mql_sort_each(mql_run *r, const mql_sort *s, slice document, mql_sort_visit visit, void *context) {
    maker m = {.run = r, .sort = s, .visit = visit, .context = context};
    place places[MQL_SORT_PARTS_MAX];
    for (size_t i = 0; i < s->n; i++) {
        places[i] = (place){mql_document(document), s->parts[i].path};
        if (s->parts[i].by_text_score) {
            places[i] = (place){mql_member(r->metadata, SLICE_LIT("textScore")), SLICE_EMPTY};
        }
        TRY(follow(&m, &places[i]));
    }
    return expand(&m, places);
}

/* ---- the key of a sort ---- */

typedef struct first {
    const mql_run *run;
    const mql_sort *sort;
    mql_value best[MQL_SORT_PARTS_MAX];
    bool any;
} first;

static bool comes_first(const first *f, const mql_value *values) {
    int order = f->any ? 0 : -1;
    for (size_t i = 0; i < f->sort->n && order == 0; i++) {
        order = mql_compare_by(f->run->collation, values[i], f->best[i]);
        order = f->sort->parts[i].descending ? -order : order;
    }
    return order < 0;
}

static err keep_first(void *context, const mql_value *values, bool all_missing) {
    first *f = context;
    (void)all_missing;
    if (comes_first(f, values)) {
        memcpy(f->best, values, f->sort->n * sizeof *values);
        f->any = true;
    }
    return OK;
}

static err keep_key(const first *f, arena *a, slice *key_out) {
    buf out = buf_init(INT32_MAX);
    mql_builder b = mql_build(&out);
    for (size_t i = 0; i < f->sort->n; i++) {
        mql_add_next(&b, f->best[i]);
    }
    bool kept = mql_keep(a, &b, key_out);
    buf_free(&out);
    return kept ? OK : a->budget ? budget_error(a->budget) : E_MEMORY;
}

err mql_sort_key(mql_run *r, const mql_sort *s, slice document, slice *key_out) {
    first f = {.run = r, .sort = s};
    *key_out = SLICE_EMPTY;
    TRY(mql_sort_each(r, s, document, keep_first, &f));
    return keep_key(&f, r->arena, key_out);
}

int mql_sort_compare(const mql_sort *s, const mql_collation *collation, slice key_a, slice key_b) {
    doc_walk wa, wb;
    doc_element ea, eb;
    doc_walk_init(&wa, key_a);
    doc_walk_init(&wb, key_b);
    for (size_t i = 0; i < s->n && doc_walk_next(&wa, &ea) && doc_walk_next(&wb, &eb); i++) {
        int order = mql_compare_by(collation, mql_of(&ea), mql_of(&eb));
        if (order) {
            return s->parts[i].descending ? -order : order;
        }
    }
    return 0;
}
