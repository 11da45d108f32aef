#include "doc/order.h"
#include "mql/collation.h"
#include "mql/key_int.h"

/* ---- values ---- */

enum { CLASS_SHIFT = 2, KEY_STEPS = 4000000 };

uint8_t mql_key_class(int class) {
    return (uint8_t)(class + CLASS_SHIFT);
}

static void add_payload(buf *out, const mql_collation *c, mql_value v, unsigned depth);

/* Members one after the other, each with its class, and in an object with its name, as values compare; then a byte that sorts before all
 * classes. */
static void add_members(buf *out, const mql_collation *c, mql_value v, unsigned depth) {
    doc_walk w;
    doc_element e;
    if (depth == MQL_DEPTH_MAX || !doc_walk_init(&w, v.bytes)) {
        buf_add_slice(out, v.bytes);
        return;
    }
    while (doc_walk_next(&w, &e)) {
        buf_add_byte(out, (char)mql_key_class(mql_class(e.type)));
        if (v.type == BSON_TYPE_DOCUMENT) {
            buf_add_slice(out, e.key);
            buf_add_byte(out, 0);
        }
        add_payload(out, c, mql_of(&e), depth + 1);
    }
    buf_add_byte(out, 0);
}

/* The spelling of doc/order.h without its first byte, which is the bracket. */
static void add_ordered(buf *out, mql_value v) {
    char room[64];
    buf spelled = {.p = room, .cap = sizeof room, .max = sizeof room}, *into = v.bytes.n < sizeof room / 2 ? &spelled : out;
    size_t at = into->n;
    doc_element e = {.key = {"", 0}, .value = v.bytes, .type = v.type};
    doc_order_spell(into, &e, false);
    if (into == &spelled && buf_ok(&spelled)) {
        buf_add(out, room + 1, spelled.n - 1);
    } else if (into == out && buf_ok(out)) {
        memmove(out->p + at, out->p + at + 1, out->n - at - 1);
        out->n--;
    } else if (into == &spelled) {
        buf_add_slice(out, v.bytes);
    }
}

static void add_payload(buf *out, const mql_collation *c, mql_value v, unsigned depth) {
    switch (v.type) {
    case BSON_TYPE_EOD:
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_NULL:
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_MAXKEY:
        return;
    case BSON_TYPE_BOOL:
        buf_add_byte(out, (char)mql_as_bool(v));
        return;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        add_members(out, c, v, depth);
        return;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        c ? mql_collation_key(c, mql_as_text(v), out) : add_ordered(out, v);
        return;
    default:
        add_ordered(out, v);
    }
}

void mql_key_add(buf *out, const mql_collation *collation, mql_value v, bool descending) {
    size_t from = out->n;
    buf_add_byte(out, (char)mql_key_class(mql_class(v.type)));
    add_payload(out, collation, v, 0);
    for (size_t i = from; descending && buf_ok(out) && i < out->n; i++) {
        out->p[i] = (char)~out->p[i];
    }
}

/* ---- the index ---- */

const mql_sort *mql_index_pattern(const mql_index *x) {
    return &x->pattern;
}

const mql_collation *mql_index_collation(const mql_index *x) {
    return x->collation;
}

bool mql_index_is_wildcard(const mql_index *x, slice *stem_out) {
    *stem_out = x->stem;
    return x->wildcard;
}

/* "$**" or "a.b.$**" */
static void read_wildcard(mql_index *x) {
    static const char star[] = "$**";
    slice path = x->pattern.parts[0].path;
    size_t n = sizeof star - 1;
    x->wildcard = x->pattern.n == 1 && path.n >= n && memcmp(path.p + path.n - n, star, n) == 0;
    x->stem = x->wildcard && path.n > n ? slice_of(path.p, path.n - n - 1) : SLICE_EMPTY;
}

/* Like a sort, except that "hashed" counts as 1. It ends before a place or a text, which is *special_out then. */
static err parse_pattern(op *o, slice key, mql_sort *pattern_out, doc_element *special_out) {
    doc_walk w;
    doc_element e;
    *pattern_out = (mql_sort){.parts = arena_array(o->arena, mql_sort_part, MQL_SORT_PARTS_MAX)};
    for (doc_walk_init(&w, key); doc_walk_next(&w, &e); pattern_out->n++) {
        if (pattern_out->n == MQL_SORT_PARTS_MAX) {
            return mql_fail(o, 13103, "Index can't contain more than %d fields", MQL_SORT_PARTS_MAX);
        }
        bool descending = mql_is_number(mql_of(&e)) && mql_as_double(mql_of(&e)) < 0;
        if (e.type == BSON_TYPE_UTF8 && !slice_eq(doc_element_text(&e), SLICE_LIT("hashed"))) {
            *special_out = e;
            return OK;
        }
        pattern_out->parts[pattern_out->n] = (mql_sort_part){.path = e.key, .descending = descending};
    }
    return pattern_out->n ? OK : mql_fail(o, 67, "Index keys cannot be an empty object");
}

err mql_index_parse(op *o, slice spec, const mql_index **index_out) {
    mql_value given = mql_document(spec), key = mql_member(given, SLICE_LIT("key")), collation = mql_member(given, SLICE_LIT("collation"));
    mql_value partial = mql_member(given, SLICE_LIT("partialFilterExpression"));
    mql_index *x = arena_new(o->arena, mql_index);
    if (key.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 9, "An index has a key.");
    }
    doc_element special = {.type = BSON_TYPE_EOD};
    TRY(parse_pattern(o, key.bytes, &x->pattern, &special));
    if (special.type == BSON_TYPE_UTF8) {
        TRY(mql__read_special(o, spec, &special, x));
    } else {
        read_wildcard(x);
    }
    x->sparse = mql_truth(mql_member(given, SLICE_LIT("sparse")));
    if (collation.type == BSON_TYPE_DOCUMENT) {
        TRY(mql_collation_shared(o, collation.bytes, &x->collation));
    }
    if (partial.type == BSON_TYPE_DOCUMENT) {
        mql_scope scope = mql_scope_of(o, false);
        scope.collation = x->collation;
        TRY(mql_match_parse(&scope, partial.bytes, &x->partial));
    }
    *index_out = x;
    return OK;
}

/* ---- keys of documents ---- */

static err list_one(void *context, const mql_value *values, bool all_missing) {
    const mql__listing *l = context;
    const mql_sort *pattern = &l->index->pattern;
    if (all_missing && l->index->sparse) {
        return OK;
    }
    buf_clear(l->key);
    for (size_t i = 0; i < pattern->n; i++) {
        mql_key_add(l->key, l->index->collation, values[i], pattern->parts[i].descending);
    }
    return buf_ok(l->key) ? l->visit(l->context, buf_view(l->key)) : E_TOO_LARGE;
}

/* ---- keys of wildcard indexes ---- */

void mql_key_add_path(buf *out, slice path) {
    buf_add_slice(out, path); /* names have no 00 byte */
    buf_add_byte(out, 0);
}

typedef struct spreading {
    const mql__listing *mql__listing;
    mql_run *run;
    buf *path;
} spreading;

static err spread(const spreading *s, mql_value v, bool in_array, unsigned depth);

static err spread_members(const spreading *s, mql_value v, unsigned depth) {
    doc_walk w;
    doc_element e;
    size_t before = s->path->n;
    bool array = v.type == BSON_TYPE_ARRAY;
    for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
        if (!array) {
            buf_add(s->path, ".", before > 0);
            buf_add_slice(s->path, e.key);
        }
        TRY(spread(s, mql_of(&e), array, depth + 1));
        s->path->n = before;
    }
    return OK;
}

/* An array inside an array, and an empty document, are values themselves. */
static err spread(const spreading *s, mql_value v, bool in_array, unsigned depth) {
    const mql__listing *l = s->mql__listing;
    TRY(mql_pay(s->run, 4));
    bool enters = (v.type == BSON_TYPE_DOCUMENT || (v.type == BSON_TYPE_ARRAY && !in_array)) && mql_length(v) && depth < MQL_DEPTH_MAX;
    if (enters) {
        return spread_members(s, v, depth);
    }
    buf_clear(l->key);
    mql_key_add_path(l->key, buf_view(s->path));
    mql_key_add(l->key, l->index->collation, v, l->index->pattern.parts[0].descending);
    return buf_ok(l->key) && buf_ok(s->path) ? l->visit(l->context, buf_view(l->key)) : E_TOO_LARGE;
}

static err spread_below(mql_run *r, const mql__listing *l, slice document) {
    mql_value v = mql_document(document);
    buf path = buf_init(BUF_NO_LIMIT);
    spreading s = {l, r, &path};
    slice rest = l->index->stem;
    while (rest.n && v.type == BSON_TYPE_DOCUMENT) {
        const char *dot = memchr(rest.p, '.', rest.n);
        slice name = slice_of(rest.p, dot ? (size_t)(dot - rest.p) : rest.n);
        v = mql_member(v, name);
        rest = slice_skip(rest, name.n + (dot != NULL));
    }
    buf_add_slice(&path, l->index->stem);
    err code = rest.n && v.type == BSON_TYPE_ARRAY ? E_TOO_LARGE : rest.n || mql_is_missing(v) ? OK : spread(&s, v, false, 0);
    buf_free(&path);
    return code;
}

err mql_index_keys(const mql_index *x, op *o, arena *scratch, slice document, mql_key_visit visit, void *context) {
    buf key = buf_init(BUF_NO_LIMIT);
    mql_run r = {.op = o, .arena = scratch, .steps = KEY_STEPS, .root = mql_document(document), .collation = x->collation};
    r.cluster_time = r.user_roles = r.metadata = mql_missing();
    mql__listing l = {x, visit, context, &key};
    bool wanted = true;
    err code = x->partial ? mql_matches(&r, x->partial, &wanted, NULL) : OK;
    if (code == OK && wanted) {
        code = x->kind != MQL_INDEX_VALUES ? mql__list_special(&r, &l, document)
               : x->wildcard               ? spread_below(&r, &l, document)
                                           : mql_sort_each(&r, &x->pattern, document, list_one, &l);
    }
    buf_free(&key);
    return code;
}

static bool meets_array(mql_value v, slice rest) {
    while (rest.n && v.type == BSON_TYPE_DOCUMENT) {
        const char *dot = memchr(rest.p, '.', rest.n);
        slice name = slice_of(rest.p, dot ? (size_t)(dot - rest.p) : rest.n);
        v = mql_member(v, name);
        rest = slice_skip(rest, name.n + (dot != NULL));
    }
    return v.type == BSON_TYPE_ARRAY;
}

bool mql_index_meets_array(const mql_index *x, slice document) {
    bool meets = false;
    for (size_t i = 0; i < x->pattern.n && !meets; i++) {
        meets = meets_array(mql_document(document), x->pattern.parts[i].path);
    }
    return meets;
}

typedef struct extreme {
    buf best;
    bool last, any;
} extreme;

static err keep_extreme(void *context, slice key) {
    extreme *e = context;
    int order = e->any ? slice_cmp(key, buf_view(&e->best)) : 0;
    if (!e->any || (e->last ? order > 0 : order < 0)) {
        buf_clear(&e->best);
        buf_add_slice(&e->best, key);
        e->any = true;
    }
    return OK;
}

err mql_index_key(const mql_index *x, op *o, arena *scratch, slice document, bool last, slice *key_out) {
    extreme e = {.best = buf_init(BUF_NO_LIMIT), .last = last};
    err code = mql_index_keys(x, o, scratch, document, keep_extreme, &e);
    *key_out = code == OK && e.any ? arena_copy(scratch, buf_view(&e.best)) : SLICE_EMPTY;
    buf_free(&e.best);
    return code;
}
