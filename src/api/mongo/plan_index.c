#include "api/mongo/plan_index.h"

#include <math.h>

#include "api/mongo/mongo_int.h"
#include "mql/collation.h"

enum { IN_MAX = 1000, SPANS_MAX = 1000, USABLE_MAX = 64 };

typedef struct usable {
    mongo_index index;
    slice spec; /* as the container's policy has it */
    const mql_index *keys;
} usable;

struct mongo_planner {
    op *op;
    const mongo_find *find;
    const mql_collation *collation;
    usable list[USABLE_MAX];
    size_t n;
    bool built;             /* no index is being built */
    bool marks_arrays;      /* as in the memo */
    const usable *deciding; /* see mongo_planner_decide; NULL: none */
};

/* ---- the collection's indexes ---- */

static bool is_hinted(const mongo_find *f, const mongo_index *x) {
    return mql_is_missing(f->hint) ||
           (mql_is_text(f->hint) ? slice_eq(mql_as_text(f->hint), x->name) : mql_compare(f->hint, mql_document(x->key)) == 0);
}

static bool is_natural(mql_value hint) {
    return hint.type == BSON_TYPE_DOCUMENT && !mql_is_missing(mql_member(hint, SLICE_LIT("$natural")));
}

static err add_usable(mongo_planner *p, const mongo_index *x) {
    slice spec = mongo_key_spec(p->op->arena, x);
    if (!spec.n || x->hidden || p->n == USABLE_MAX) {
        return OK;
    }
    usable *u = &p->list[p->n++];
    *u = (usable){.index = *x, .spec = spec};
    return mql_index_parse(p->op, spec, &u->keys);
}

err mongo_planner_begin(op *o, const container *c, const mongo_find *f, mongo_planner **planner_out) {
    mongo_planner *p = *planner_out = arena_new(o->arena, mongo_planner);
    mongo_memo memo = mongo_memo_of(c);
    doc_walk list;
    doc_element e;
    mongo_index x;
    bool hinted = mql_is_missing(f->hint) || is_natural(f->hint);
    *p = (mongo_planner){.op = o, .find = f};
    p->marks_arrays = memo.marks_arrays;
    p->built = slice_eq(c->api, MONGO_API) && container_space_progress(c->space) >= 100;
    if (f->collation.n) {
        TRY(mql_collation_shared(o, f->collation, &p->collation));
    }
    for (doc_walk_init(&list, memo.indexes); doc_walk_next(&list, &e);) {
        if (e.type == BSON_TYPE_DOCUMENT && mongo_index_read(e.value, &x) && is_hinted(f, &x)) {
            hinted = true;
            TRY(add_usable(p, &x));
        }
    }
    return hinted ? OK
                  : op_fail_as(o, E_BAD_REQUEST, CODE_BAD_VALUE,
                               "error processing query: hint provided does not correspond to an existing index");
}

/* ---- values that entries stand for ---- */

static bool is_nan(mql_value v) {
    double d = mql_is_number(v) ? mql_as_double(v) : 0;
    return d != d;
}

/* An array or a document that equals the value has no key that says so; null is a class of its own. */
static bool is_indexed_value(mql_value v) {
    switch (v.type) {
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DECIMAL128:
        return !is_nan(v);
    case BSON_TYPE_UTF8:
    case BSON_TYPE_OID:
    case BSON_TYPE_BOOL:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_TIMESTAMP:
    case BSON_TYPE_BINARY:
        return true;
    default:
        return false;
    }
}

static bool is_number_step(slice step) {
    for (size_t i = 0; i < step.n; i++) {
        if (step.p[i] < '0' || step.p[i] > '9') {
            return false;
        }
    }
    return true;
}

/* A numeric step may be a position in an array, or a name. */
static bool has_number_step(const mql_node *n) {
    for (size_t i = 0; i < n->parts_n; i++) {
        if (is_number_step(n->parts[i])) {
            return true;
        }
    }
    return false;
}

static bool is_lower(mql_node_kind kind) {
    return kind == MQL_GT || kind == MQL_GTE;
}

static bool is_upper(mql_node_kind kind) {
    return kind == MQL_LT || kind == MQL_LTE;
}

static bool is_plain_in(mql_value list) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    bool good = list.type == BSON_TYPE_ARRAY;
    for (doc_walk_init(&w, list.bytes); good && doc_walk_next(&w, &e); n++) {
        good = n < IN_MAX && is_indexed_value(mql_of(&e));
    }
    return good && n > 0;
}

static bool has_text(mql_value v) {
    doc_walk w;
    doc_element e;
    bool found = mql_is_text(v);
    for (doc_walk_init(&w, v.bytes); v.type == BSON_TYPE_ARRAY && !found && doc_walk_next(&w, &e);) {
        found = e.type == BSON_TYPE_UTF8;
    }
    return found;
}

/* Whether the node is a condition on the field that keys of this index can serve. Strings must compare as the index compares them. */
static bool serves(const mongo_planner *p, const usable *u, const mql_node *n, slice path) {
    if (!n->parts_n || !slice_eq(n->path, path) || has_number_step(n)) {
        return false;
    }
    bool text = n->kind == MQL_REGEX || has_text(n->value);
    if (text && mql_index_collation(u->keys) != p->collation) {
        return false;
    }
    switch (n->kind) {
    case MQL_EQ:
        return is_indexed_value(n->value) || n->value.type == BSON_TYPE_NULL;
    case MQL_LT:
    case MQL_LTE:
    case MQL_GT:
    case MQL_GTE:
        return is_indexed_value(n->value) && n->value.type != BSON_TYPE_TIMESTAMP && n->value.type != BSON_TYPE_BINARY;
    case MQL_IN:
        return is_plain_in(n->value);
    case MQL_REGEX:
        return !p->collation && mql_regex_prefix(p->op->arena, n).n > 0;
    default:
        return false;
    }
}

/* ---- spans ---- */

typedef struct span {
    slice from, to;
    bool value; /* the keys of one value, whose spelling is `from` */
    bool point;
} span;

typedef struct spans {
    span *list;
    size_t n, room;
} spans;

static spans spans_new(arena *a, size_t room) {
    return (spans){.list = arena_array(a, span, room + 1), .room = room};
}

/* The end of all keys that begin with these bytes. */
static slice after(arena *a, slice key) {
    char *end = arena_array(a, char, key.n + 1);
    size_t n = key.n;
    memcpy(end, key.p, n);
    while (n && (unsigned char)end[n - 1] == 0xFF) {
        n--;
    }
    if (n) {
        end[n - 1]++;
    }
    return slice_of(end, n);
}

static slice inverted(arena *a, slice key) {
    char *out = arena_array(a, char, key.n + 1);
    for (size_t i = 0; i < key.n; i++) {
        out[i] = (char)~key.p[i];
    }
    return slice_of(out, key.n);
}

static slice joined(arena *a, slice x, slice y) {
    char *out = arena_array(a, char, x.n + y.n + 1);
    memcpy(out, x.n ? x.p : "", x.n);
    memcpy(out + x.n, y.n ? y.p : "", y.n);
    return slice_of(out, x.n + y.n);
}

static slice spelled(arena *a, const mql_collation *c, mql_value v) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_key_add(&out, c, v, false);
    slice key = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return key;
}

static slice class_start(arena *a, int class) {
    char byte = (char)mql_key_class(class);
    return arena_copy(a, slice_of(&byte, 1));
}

static void add_span(spans *s, slice from, slice to) {
    if (s->n < s->room) {
        s->list[s->n++] = (span){.from = from, .to = to};
    }
}

static void add_value(arena *a, spans *s, slice key) {
    if (s->n < s->room) {
        s->list[s->n++] = (span){.from = key, .to = after(a, key), .value = true};
    }
}

/* The keys on one side of a bound, within its class. NaN, which sorts before all numbers, is less than none. */
static span side_of(arena *a, const mql_collation *c, const mql_node *n) {
    slice key = spelled(a, c, n->value), class = class_start(a, mql_class(n->value.type));
    if (is_upper(n->kind) && mql_is_number(n->value)) {
        return (span){.from = after(a, spelled(a, c, mql_double(a, NAN))), .to = n->kind == MQL_LTE ? after(a, key) : key};
    }
    return is_lower(n->kind) ? (span){.from = n->kind == MQL_GT ? after(a, key) : key, .to = after(a, class)}
                             : (span){.from = class, .to = n->kind == MQL_LTE ? after(a, key) : key};
}

/* Strings that begin with the expression's prefix; a regular expression also matches itself. */
static spans spans_of_regex(arena *a, const mql_node *n) {
    spans s = spans_new(a, 2);
    slice prefix = spelled(a, NULL, mql_text(a, mql_regex_prefix(a, n))), class = class_start(a, mql_class(BSON_TYPE_REGEX));
    prefix.n -= 2; /* without the end of the string */
    add_span(&s, prefix, after(a, prefix));
    add_span(&s, class, after(a, class));
    return s;
}

static spans spans_of_list(arena *a, const mql_collation *c, mql_value list) {
    spans s = spans_new(a, mql_length(list));
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, list.bytes); doc_walk_next(&w, &e);) {
        add_value(a, &s, spelled(a, c, mql_of(&e)));
    }
    return s;
}

/* The spans of one condition, upward. */
static spans spans_of_condition(arena *a, const mql_collation *c, const mql_node *n) {
    spans s = spans_new(a, 1);
    if (n->kind == MQL_IN) {
        return spans_of_list(a, c, n->value);
    }
    if (n->kind == MQL_REGEX) {
        return spans_of_regex(a, n);
    }
    if (n->kind == MQL_EQ) {
        slice key = spelled(a, c, n->value);
        n->value.type == BSON_TYPE_NULL ? add_span(&s, class_start(a, 0), after(a, key)) : add_value(a, &s, key);
    } else {
        s.list[s.n++] = side_of(a, c, n);
    }
    return s;
}

/* Two bounds of one field. */
static spans spans_between(arena *a, const mql_collation *c, const mql_node *x, const mql_node *y) {
    spans s = spans_new(a, 1);
    slice from = side_of(a, c, is_lower(x->kind) ? x : y).from, to = side_of(a, c, is_lower(x->kind) ? y : x).to;
    add_span(&s, from, slice_cmp(from, to) < 0 ? to : from);
    return s;
}

/* The same span of a descending field. */
static span descended(arena *a, span s) {
    slice from = s.value ? inverted(a, s.from) : after(a, inverted(a, s.to));
    return (span){.from = from, .to = after(a, inverted(a, s.from))};
}

/* Puts the spans of the next field behind those of the fields before it. */
static spans extended(arena *a, const spans *before, const spans *next, bool descending) {
    spans made = spans_new(a, before->n * next->n);
    for (size_t i = 0; i < before->n; i++) {
        for (size_t j = 0; j < next->n; j++) {
            span one = descending ? descended(a, next->list[j]) : next->list[j];
            add_span(&made, joined(a, before->list[i].from, one.from), joined(a, before->list[i].from, one.to));
        }
    }
    return made;
}

/* ---- the conditions on an index's fields ---- */

/* The conjuncts of a filter: the node itself, or the children of an $and. */
static const mql_node *conjuncts(const mql_node *n) {
    return n->kind == MQL_AND ? n->first : n;
}

static const mql_node *next_conjunct(const mql_node *of, const mql_node *n) {
    return of->kind == MQL_AND ? n->next : NULL;
}

static bool is_equality(const mql_node *n) {
    return n->kind == MQL_EQ && n->value.type != BSON_TYPE_NULL;
}

/* The best condition on the field: an equality, a list, or one side of a range. *other_out: the other side. */
static const mql_node *condition_on(const mongo_planner *p, const usable *u, const mql_node *of, slice path, const mql_node **other_out) {
    const mql_node *best = NULL;
    *other_out = NULL;
    for (const mql_node *n = conjuncts(of); n; n = next_conjunct(of, n)) {
        if (!serves(p, u, n, path)) {
            continue;
        }
        bool opposite = best && ((is_lower(best->kind) && is_upper(n->kind)) || (is_upper(best->kind) && is_lower(n->kind)));
        if (opposite && mql_class(best->value.type) == mql_class(n->value.type)) {
            *other_out = n;
        }
        if (!best || is_equality(n) || (n->kind == MQL_IN && !is_equality(best))) {
            best = n;
        }
    }
    *other_out = best && (is_lower(best->kind) || is_upper(best->kind)) ? *other_out : NULL;
    return best;
}

static slice root_of(slice path) {
    const char *dot = memchr(path.p, '.', path.n);
    return dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
}

/* Fields of one array may be met by different elements: only fields with different beginnings are combined. */
static bool is_apart(const mql_sort *pattern, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(root_of(pattern->parts[i].path), root_of(pattern->parts[n].path))) {
            return false;
        }
    }
    return true;
}

/* How many of the index's first fields the filter sets equal to one value each; *prefix_out: their keys. */
static size_t equal_fields(const mongo_planner *p, const usable *u, const mql_node *of, size_t most, slice *prefix_out) {
    const mql_sort *pattern = mql_index_pattern(u->keys);
    buf out = buf_init(BUF_NO_LIMIT);
    size_t n = 0;
    for (; of && n < pattern->n && n < most; n++) {
        const mql_node *other, *c = condition_on(p, u, of, pattern->parts[n].path, &other);
        if (!c || !is_equality(c) || !is_apart(pattern, n)) {
            break;
        }
        mql_key_add(&out, mql_index_collation(u->keys), c->value, pattern->parts[n].descending);
    }
    *prefix_out = arena_copy(p->op->arena, buf_view(&out));
    buf_free(&out);
    return n;
}

/* ---- partial and sparse indexes ---- */

static bool excludes_null(const mql_node *n) {
    return n->kind == MQL_EXISTS || is_equality(n) || is_lower(n->kind) || is_upper(n->kind) || n->kind == MQL_IN || n->kind == MQL_REGEX;
}

/* Whether every document that matches `n` matches `wanted`. */
static bool implies(const mongo_planner *p, const mql_node *n, const mql_node *wanted) {
    if (!slice_eq(n->path, wanted->path)) {
        return false;
    }
    if (wanted->kind == MQL_EXISTS) {
        return excludes_null(n) && (n->kind != MQL_IN || is_plain_in(n->value));
    }
    bool same = n->kind == wanted->kind && mql_compare(n->value, wanted->value) == 0;
    if (same || (!is_lower(wanted->kind) && !is_upper(wanted->kind))) {
        return same;
    }
    bool ordered = is_equality(n) || is_lower(n->kind) == is_lower(wanted->kind);
    if (!ordered || mql_class(n->value.type) != mql_class(wanted->value.type) ||
        (!is_equality(n) && !is_lower(n->kind) && !is_upper(n->kind))) {
        return false;
    }
    int order = mql_compare_by(p->collation, n->value, wanted->value);
    bool strict = (wanted->kind == MQL_GT || wanted->kind == MQL_LT) && n->kind != wanted->kind;
    return is_lower(wanted->kind) ? (strict ? order > 0 : order >= 0) : (strict ? order < 0 : order <= 0);
}

static bool implies_one(const mongo_planner *p, const mql_node *of, const mql_node *wanted) {
    for (const mql_node *n = of ? conjuncts(of) : NULL; n; n = next_conjunct(of, n)) {
        if (implies(p, n, wanted)) {
            return true;
        }
    }
    return false;
}

/* Whether all documents that the filter wants are in the index. */
static bool has_all(const mongo_planner *p, const usable *u, const mql_node *of) {
    if (u->index.partial.n) {
        mql_scope scope = mql_scope_of(p->op, false);
        const mql_match *partial;
        if (mql_match_parse(&scope, u->index.partial, &partial) != OK) {
            return false;
        }
        const mql_node *root = mql_match_root(partial);
        for (const mql_node *n = conjuncts(root); n; n = next_conjunct(root, n)) {
            if (!implies_one(p, of, n)) {
                return false;
            }
        }
    }
    slice place;
    if (u->index.sparse && mql_index_kind_of(u->keys, &place) == MQL_INDEX_VALUES) {
        mql_node first = {.kind = MQL_EXISTS, .path = mql_index_pattern(u->keys)->parts[0].path};
        return implies_one(p, of, &first);
    }
    return true;
}

/* ---- conditions for the core ---- */

static mql_value binary(arena *a, slice bytes) {
    char *out = arena_array(a, char, bytes.n + 5);
    doc_store_i32(out, (int32_t)bytes.n);
    out[4] = 0;
    memcpy(out + 5, bytes.n ? bytes.p : "", bytes.n);
    return (mql_value){BSON_TYPE_BINARY, slice_of(out, bytes.n + 5)};
}

static void add_spans(arena *a, mql_builder *b, const char *name, const spans *s) {
    mongo_open_array(b, name);
    for (size_t i = 0; i < s->n; i++) {
        mql_open_next(b, BSON_TYPE_ARRAY);
        mql_add_next(b, binary(a, s->list[i].from));
        if (!s->list[i].point) {
            mql_add_next(b, binary(a, s->list[i].to));
        }
        mql_close(b);
    }
    mql_close(b);
}

/* Fills in the spans that every matching document has a key in; `alone_out`: narrower ones, of documents with one key; `used_out`: how many
 * conditions they stand for. False: none. */
static bool spans_of(const mongo_planner *p, const usable *u, const mql_node *of, spans *out, spans *alone_out, size_t *used_out) {
    const mql_sort *pattern = mql_index_pattern(u->keys);
    const mql_collation *collation = mql_index_collation(u->keys);
    arena *a = p->op->arena;
    size_t i = 0;
    bool equal = true;
    *out = spans_new(a, 1);
    *alone_out = (spans){0};
    *used_out = 0;
    out->list[out->n++] = (span){0};
    for (; i < pattern->n && equal && is_apart(pattern, i); i++) {
        const mql_node *other, *c = condition_on(p, u, of, pattern->parts[i].path, &other);
        spans next = c ? spans_of_condition(a, collation, c) : (spans){0};
        if (!c || next.n * out->n > SPANS_MAX) {
            break;
        }
        if (other) {
            spans both = spans_between(a, collation, c, other);
            *alone_out = extended(a, out, &both, pattern->parts[i].descending);
        }
        *out = extended(a, out, &next, pattern->parts[i].descending);
        equal = is_equality(c) || c->kind == MQL_IN;
        *used_out += 1 + (other != NULL);
    }
    for (size_t j = 0; j < out->n && equal && i == pattern->n; j++) { /* every field has a value: these are the keys */
        out->list[j].point = true;
    }
    return i > 0;
}

static void add_condition(const mongo_planner *p, mql_builder *b, const usable *u, const spans *s, const spans *alone) {
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mongo_add_document(b, "key", u->spec);
    add_spans(p->op->arena, b, "within", s);
    if (alone->n) {
        add_spans(p->op->arena, b, "alone", alone);
    }
    mql_close(b);
}

/* ---- wildcard indexes: conditions on one path each ---- */

static bool is_below(slice path, slice stem) {
    return !stem.n || (path.n > stem.n && slice_starts(path, stem) && path.p[stem.n] == '.') || slice_eq(path, stem);
}

/* Whether a wildcard index serves a condition. It has no entries for missing fields. */
static bool serves_any_path(const mongo_planner *p, const usable *u, const mql_node *n, slice stem) {
    bool null = n->kind == MQL_EQ && n->value.type == BSON_TYPE_NULL;
    bool id = slice_eq(n->path, SLICE_LIT("_id")) || slice_starts(n->path, SLICE_LIT("_id."));
    return !null && !id && n->path.n && is_below(n->path, stem) && serves(p, u, n, n->path);
}

static void add_wildcard(const mongo_planner *p, mql_builder *b, const usable *u, const mql_node *n) {
    arena *a = p->op->arena;
    buf path = buf_init(BUF_NO_LIMIT);
    spans before = spans_new(a, 1), alone = {0}, next = spans_of_condition(a, mql_index_collation(u->keys), n);
    mql_key_add_path(&path, n->path);
    slice prefix = arena_copy(a, buf_view(&path));
    buf_free(&path);
    add_span(&before, prefix, SLICE_EMPTY);
    spans s = extended(a, &before, &next, mql_index_pattern(u->keys)->parts[0].descending);
    add_condition(p, b, u, &s, &alone);
}

static bool add_wildcards(const mongo_planner *p, mql_builder *b, const usable *u, const mql_node *of, slice stem) {
    bool any = false;
    for (const mql_node *n = conjuncts(of); n; n = next_conjunct(of, n)) {
        if (serves_any_path(p, u, n, stem)) {
            any = true;
            b ? add_wildcard(p, b, u, n) : (void)0;
        }
    }
    return any;
}

/* ---- indexes of places and words ---- */

static bool is_geo(const mql_node *n) {
    return n->kind == MQL_GEO_WITHIN || n->kind == MQL_GEO_INTERSECTS || n->kind == MQL_NEAR;
}

/* The condition that the cells or words of the index serve. */
static const mql_node *special_condition(const usable *u, const mql_node *of) {
    slice place;
    bool words = mql_index_kind_of(u->keys, &place) == MQL_INDEX_WORDS;
    for (const mql_node *n = conjuncts(of); n; n = next_conjunct(of, n)) {
        if (words ? n->kind == MQL_TEXT : is_geo(n) && slice_eq(n->path, place) && !has_number_step(n)) {
            return n;
        }
    }
    return NULL;
}

static spans spans_of_words(arena *a, const mql_node *text) {
    const slice *terms;
    size_t n = mql_text_terms(text, &terms, a);
    spans s = spans_new(a, n + 1);
    buf key = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < n; i++) {
        buf_clear(&key);
        mql_key_add_word(&key, terms[i]);
        slice from = arena_copy(a, buf_view(&key));
        add_span(&s, from, after(a, from));
    }
    if (!n) { /* a search without words finds nothing: no term is empty */
        add_span(&s, SLICE_LIT("\0"), SLICE_LIT("\0\1"));
    }
    buf_free(&key);
    return s;
}

static slice cell_key(arena *a, geo_cell cell) {
    char room[GEO_CELL_BYTES];
    buf key = {.p = room, .cap = sizeof room, .max = sizeof room};
    mql_key_add_cell(&key, cell);
    return arena_copy(a, buf_view(&key));
}

static spans spans_of_cells(arena *a, const mql_node *geo, double most) {
    const geo_cell_span *cells;
    size_t n = mql_geo_cells(a, geo, most, &cells);
    spans s = spans_new(a, n);
    for (size_t i = 0; i < n; i++) {
        add_span(&s, cell_key(a, cells[i].first), cell_key(a, cells[i].last + 1));
    }
    return s;
}

/* The spans of the fields in front, which all need values, and of the cells or words. */
static bool spans_of_special(const mongo_planner *p, const usable *u, const mql_node *of, spans *out) {
    const mql_sort *pattern = mql_index_pattern(u->keys);
    const mql_node *special = special_condition(u, of), *other;
    arena *a = p->op->arena;
    if (!special) {
        return false;
    }
    *out = spans_new(a, 1);
    out->list[out->n++] = (span){0};
    for (size_t i = 0; i < pattern->n; i++) {
        const mql_node *c = condition_on(p, u, of, pattern->parts[i].path, &other);
        bool valued = c && (is_equality(c) || c->kind == MQL_IN) && is_apart(pattern, i);
        spans next = valued ? spans_of_condition(a, mql_index_collation(u->keys), c) : (spans){0};
        if (!valued || next.n * out->n > SPANS_MAX) {
            return false;
        }
        *out = extended(a, out, &next, pattern->parts[i].descending);
    }
    double most = p->find->near_most > 0 ? p->find->near_most : INFINITY;
    spans last = special->kind == MQL_TEXT ? spans_of_words(a, special) : spans_of_cells(a, special, most);
    bool served = last.n && last.n * out->n <= SPANS_MAX;
    *out = served ? extended(a, out, &last, false) : *out;
    return served;
}

static bool is_special(const usable *u) {
    slice place;
    return mql_index_kind_of(u->keys, &place) != MQL_INDEX_VALUES;
}

static bool is_served(const mongo_planner *p, const usable *u, const mql_node *n) {
    const mql_node *other;
    slice stem;
    spans s;
    if (is_special(u)) {
        return has_all(p, u, n) && spans_of_special(p, u, n, &s);
    }
    if (mql_index_is_wildcard(u->keys, &stem)) {
        return add_wildcards(p, NULL, u, n, stem) && has_all(p, u, n);
    }
    return condition_on(p, u, n, mql_index_pattern(u->keys)->parts[0].path, &other) && has_all(p, u, n);
}

bool mongo_planner_is_useful(const mongo_planner *p, const mql_node *n) {
    bool useful = false;
    for (size_t i = 0; i < p->n && !useful; i++) {
        useful = is_served(p, &p->list[i], n);
    }
    return useful;
}

void mongo_planner_add(const mongo_planner *p, mql_builder *b, const mql_node *n) {
    for (size_t i = 0; i < p->n; i++) {
        spans s, alone;
        slice stem;
        size_t used;
        if (!is_served(p, &p->list[i], n)) {
            continue;
        }
        if (mql_index_is_wildcard(p->list[i].keys, &stem)) {
            add_wildcards(p, b, &p->list[i], n, stem);
        } else if (is_special(&p->list[i])) {
            alone = (spans){0};
            spans_of_special(p, &p->list[i], n, &s) ? add_condition(p, b, &p->list[i], &s, &alone) : (void)0;
        } else if (spans_of(p, &p->list[i], n, &s, &alone, &used)) {
            add_condition(p, b, &p->list[i], &s, &alone);
        }
    }
}

/* ---- what keys alone tell ---- */

/* Whether keys in the condition's spans tell that a document matches. A key of null does not tell what is null. */
static bool is_told(const mql_node *n) {
    return is_equality(n) || is_lower(n->kind) || is_upper(n->kind) || n->kind == MQL_IN;
}

/* Whether the documents with keys in the index's spans are those that match. */
static bool decides(const mongo_planner *p, const usable *u, const mql_node *root) {
    spans s, alone;
    slice stem;
    size_t used, all = 0;
    if (is_special(u) || mql_index_is_wildcard(u->keys, &stem) || !has_all(p, u, root)) {
        return false;
    }
    for (const mql_node *n = root ? conjuncts(root) : NULL; n; n = next_conjunct(root, n), all++) {
        if (!is_told(n)) {
            return false;
        }
    }
    return !root || (spans_of(p, u, root, &s, &alone, &used) && used == all);
}

static bool has_number_name(slice path) {
    for (bool more = true; more;) {
        const char *dot = memchr(path.p, '.', path.n);
        slice name = slice_of(path.p, dot ? (size_t)(dot - path.p) : path.n);
        more = dot != NULL;
        if (is_number_step(name)) {
            return true;
        }
        path = slice_skip(path, name.n + more);
    }
    return false;
}

/* Whether the key tells the value at the path: strings must not compare equal that the find tells apart. */
static bool tells_path(const mongo_planner *p, const usable *u, slice path, size_t *at_out) {
    const mql_sort *pattern = mql_index_pattern(u->keys);
    const mql_collation *c = mql_index_collation(u->keys);
    bool found = false;
    for (size_t i = 0; i < pattern->n && !found; i++) {
        found = slice_eq(pattern->parts[i].path, path);
        *at_out = i;
    }
    return found && (!c || c == p->collation) && !has_number_name(path);
}

/* The keys in which the field after the prefix is null: it may be missing too, which is no value. */
static mql_value keys_of_null(const mongo_planner *p, const usable *u, slice prefix, size_t at) {
    buf key = buf_init(BUF_NO_LIMIT);
    buf_add_slice(&key, prefix);
    mql_key_add(&key, mql_index_collation(u->keys), mql_null(), mql_index_pattern(u->keys)->parts[at].descending);
    mql_value bytes = binary(p->op->arena, buf_view(&key));
    buf_free(&key);
    return bytes;
}

static slice each_of(const mongo_planner *p, const usable *u, const mql_node *root, const mongo_find *f, size_t at) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    slice prefix;
    mongo_add_document(&b, "key", u->spec);
    if (f->distinct) {
        equal_fields(p, u, root, at, &prefix);
        mql_add(&b, SLICE_LIT("separate"), keys_of_null(p, u, prefix, at));
        mongo_add_bool(&b, "any", !root);
    }
    return mongo_built_copy(p->op->arena, &b, &out);
}

/* Whether the index gives one document of each value. Distinct values need the fields in front of theirs to have one value, to tell which
 * keys are of documents without a value. */
static bool gives_each(const mongo_planner *p, const usable *u, const mql_node *root, const mongo_find *f, size_t *at_out) {
    slice prefix;
    bool arrays_known = p->marks_arrays || (f->distinct && !root);
    return arrays_known && tells_path(p, u, f->value_path, at_out) && decides(p, u, root) &&
           (!f->distinct || equal_fields(p, u, root, *at_out, &prefix) == *at_out);
}

err mongo_planner_decide(mongo_planner *p, const mql_node *root, mongo_find *f) {
    size_t at = 0, best_at = 0;
    for (size_t i = 0; i < p->n && p->built; i++) {
        const usable *u = &p->list[i];
        bool good = f->value_path.n ? gives_each(p, u, root, f, &at) : f->count_only && root && decides(p, u, root);
        bool shorter = !p->deciding || mql_index_pattern(u->keys)->n < mql_index_pattern(p->deciding->keys)->n;
        if (good && shorter) {
            p->deciding = u;
            best_at = at;
        }
    }
    if (p->deciding) {
        f->keys = p->deciding->index.name;
        f->counts = f->counts || !f->value_path.n;
        f->each = f->value_path.n ? each_of(p, p->deciding, root, f, best_at) : SLICE_EMPTY;
    }
    return OK;
}

void mongo_planner_add_deciding(const mongo_planner *p, mql_builder *b, const mql_node *root) {
    spans s, alone;
    size_t used;
    if (spans_of(p, p->deciding, root, &s, &alone, &used)) {
        add_condition(p, b, p->deciding, &s, &alone);
    }
}

/* ---- the order ---- */

/* Whether the index's fields from `from` on are the sort's; *down_out: all in the opposite direction. */
static bool has_order(const mql_sort *pattern, size_t from, const mql_sort *sort, bool *down_out) {
    if (from + sort->n > pattern->n) {
        return false;
    }
    *down_out = pattern->parts[from].descending != sort->parts[0].descending;
    for (size_t i = 0; i < sort->n; i++) {
        const mql_sort_part *x = &pattern->parts[from + i], *y = &sort->parts[i];
        if (y->by_text_score || !slice_eq(x->path, y->path) || (x->descending != y->descending) != *down_out) {
            return false;
        }
    }
    return true;
}

/* The specification of the index's fields from `from` on, of all documents. */
static void add_suffix(mql_builder *b, const usable *u, size_t from) {
    doc_walk w;
    doc_element e;
    size_t i = 0;
    mongo_open_document(b, "key");
    mongo_open_document(b, "key");
    for (doc_walk_init(&w, u->index.key); doc_walk_next(&w, &e); i++) {
        if (i >= from) {
            mql_add_element(b, &e);
        }
    }
    mql_close(b);
    mql_add(b, SLICE_LIT("collation"), mongo_member(u->spec, "collation"));
    mql_close(b);
}

static slice order_by(const mongo_planner *p, const usable *u, size_t from, slice prefix, bool down) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open_next(&b, BSON_TYPE_DOCUMENT);
    add_suffix(&b, u, from);
    mongo_add_document(&b, "of", u->spec);
    if (prefix.n) {
        mql_add(&b, SLICE_LIT("prefix"), binary(p->op->arena, prefix));
    }
    mongo_add_bool(&b, "down", down);
    mql_close(&b);
    return mongo_built_copy(p->op->arena, &b, &out);
}

slice mongo_planner_order(const mongo_planner *p, const mql_node *root, const mql_sort *sort) {
    for (size_t i = 0; i < p->n && p->built && sort->n; i++) {
        const usable *u = &p->list[i];
        slice prefix;
        bool down;
        if (is_special(u)) {
            continue;
        }
        size_t equal = equal_fields(p, u, root, SIZE_MAX, &prefix);
        if (mql_index_collation(u->keys) != p->collation || !has_all(p, u, root)) {
            continue;
        }
        for (size_t from = 0; from <= equal; from++) {
            if (has_order(mql_index_pattern(u->keys), from, sort, &down)) {
                equal_fields(p, u, root, from, &prefix);
                return order_by(p, u, from, prefix, down);
            }
        }
    }
    return SLICE_EMPTY;
}
