#include "query/cover.h"

/* ---- which paths a query uses ---- */

typedef struct asks {
    const query *query;
    bool beyond; /* uses several paths, or something else than a path */
    bool any;
    find_path path;
} asks;

static bool same_path(const find_path *a, const find_path *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        same = a->steps[i].element == b->steps[i].element && slice_eq(a->steps[i].name, b->steps[i].name);
    }
    return same;
}

static void ask_path(asks *a, const query_expr *e) {
    find_path p;
    if (!query_path_of(a->query, e, &p) || !p.single || p.n == 0 || (a->any && !same_path(&p, &a->path))) {
        a->beyond = true;
        return;
    }
    a->path = p;
    a->any = true;
}

static void ask(asks *a, const query_expr *e) {
    if (a->beyond) {
        return;
    }
    if (e->kind == EXPR_NAME || e->kind == EXPR_MEMBER) {
        ask_path(a, e);
        return;
    }
    if (e->select || e->udf || (e->kind == EXPR_CALL && e->function && !e->function->deterministic)) {
        a->beyond = true;
        return;
    }
    for (size_t i = 0; i < e->items_n; i++) {
        ask(a, e->items[i]);
    }
}

static void ask_rows(asks *a, const query_select *s) {
    for (size_t i = 0; i < s->columns_n; i++) {
        ask(a, s->columns[i].expr);
    }
    for (size_t i = 0; i < s->group_n; i++) {
        ask(a, s->group[i]);
    }
}

/* Lists and sets keep the order of items. */
static bool order_matters(const query_select *s) {
    for (size_t i = 0; i < s->aggregates_n; i++) {
        query_aggregate_kind kind = query_aggregate_of(s->aggregates[i]->name);
        if (kind == AGGREGATE_MAKE_LIST || kind == AGGREGATE_MAKE_SET) {
            return true;
        }
    }
    return false;
}

find_cover query_cover_of(const query *q) {
    const query_select *s = q->select;
    asks rows = {.query = q};
    if (q->counts) {
        return (find_cover){.possible = true, .counts = true, .multiplicity = true};
    }
    if ((!q->aggregates && !s->distinct) || s->star || s->order_n || s->order_by_rank || s->sources_n != 1 ||
        s->sources[0].kind != SOURCE_ROOT || order_matters(s)) {
        return (find_cover){0};
    }
    ask_rows(&rows, s);
    asks all = rows;
    if (s->where) {
        ask(&all, s->where);
    }
    find_cover c = {.counts = !rows.beyond && !rows.any, .multiplicity = q->aggregates, .distinct = s->distinct};
    c.path_given = !all.beyond && all.any;
    c.path = all.path;
    c.possible = !all.beyond || c.counts;
    return c;
}

/* ---- the path that keys begin with ---- */

static const char lacking_first = INDEX_UNDEFINED, lacking_last = INDEX_TYPE_END;

/* Objects are compared member by member, in the order of names. */
static const query_column *first_column(const query_select *s) {
    const query_column *first = NULL;
    for (size_t i = 0; i < s->columns_n; i++) {
        first = !first || slice_cmp(s->columns[i].alias, first->alias) < 0 ? &s->columns[i] : first;
    }
    return first;
}

static const query_expr *lead_expr(const query *q, query_lead *l) {
    const query_select *s = q->select;
    if (q->aggregates) {
        l->by.alone = s->group_n == 1;
        return s->group_n ? s->group[0] : NULL;
    }
    const query_column *first = s->distinct && !s->star ? first_column(s) : NULL;
    l->by.alone = s->columns_n == 1;
    l->by.only_defined = s->value;
    l->member = first && !s->value ? first->alias : SLICE_EMPTY;
    return first ? first->expr : NULL;
}

/* Not with UDFs: they are called for many items at a time, so it is not known at once which items had a row. */
query_lead query_lead_of(const query *q) {
    const query_select *s = q->select;
    query_lead l = {0};
    bool possible = !s->order_n && !s->order_by_rank && s->sources_n && s->sources[0].kind == SOURCE_ROOT && !q->udfs_n;
    const query_expr *e = possible ? lead_expr(q, &l) : NULL;
    bool named = l.member.n || q->aggregates || s->value;
    l.by.given = e && named && query_path_of(q, e, &l.by.path) && l.by.path.single && l.by.path.n > 0;
    l.by.once = l.by.alone && !q->aggregates;
    l.by.in_objects = l.member.n > 0;
    l.by.sure = !s->where && (!s->value || s->distinct);
    return l;
}

/* A key from a continuation may be any value. */
static bool is_row(const query_value *key) {
    return key->type == TYPE_OBJECT && !key->item && !key->extended;
}

query_value query_lead_value(const query_lead *l, const query_value *key) {
    doc_walk w;
    doc_element e;
    if (!l->member.n) {
        return *key;
    }
    if (!is_row(key)) {
        return value_undefined();
    }
    for (doc_walk_init(&w, key->bytes); doc_walk_next(&w, &e);) {
        if (slice_eq(e.key, l->member)) {
            return value_of_element(&e);
        }
    }
    return value_undefined();
}

/* An object without the member sorts after all objects that have it; an object without any member sorts before them. */
void query_lead_encode(const query_lead *l, const query_value *key, buf *out) {
    enum { EMPTY_DOCUMENT = 5 };
    query_value v = query_lead_value(l, key);
    if (!value_is_defined(&v)) {
        bool last = l->member.n && is_row(key) && key->bytes.n > EMPTY_DOCUMENT;
        buf_add_byte(out, last ? lacking_last : lacking_first);
    } else if (!query_index_encode(out, &v) && v.type == TYPE_STRING) {
        buf_add(out, "\0\2", 2);
    }
}

static bool typed_value(arena *a, slice spelled, const index_value *v, query_value *value_out) {
    buf value = buf_init(INDEX_VALUE_BYTES_MAX);
    bson_type_t type;
    bool told = index_value_typed(spelled, v, &value, &type);
    if (told) {
        *value_out = (query_value){.type = TYPE_OBJECT, .extended = (uint8_t)type, .bytes = arena_copy(a, buf_view(&value))};
    }
    buf_free(&value);
    return told;
}

bool query_value_decode(arena *a, slice spelled, query_value *value_out, size_t *n_out) {
    index_value v;
    bool told = index_value_read(spelled, &v) && v.placed;
    *n_out = told ? v.n : 0;
    switch (told ? v.type : INDEX_TYPE_END) {
    case INDEX_UNDEFINED:
        *value_out = value_undefined();
        break;
    case INDEX_NULL:
        *value_out = value_null();
        break;
    case INDEX_FALSE:
    case INDEX_TRUE:
        *value_out = value_bool(v.type == INDEX_TRUE);
        break;
    case INDEX_NUMBER:
        *value_out = value_number(v.number);
        break;
    case INDEX_STRING: {
        buf text = buf_init(INDEX_VALUE_BYTES_MAX);
        index_unescape(&text, v.text);
        *value_out = value_string(arena_copy(a, buf_view(&text)));
        buf_free(&text);
        break;
    }
    default:
        return told && typed_value(a, spelled, &v, value_out) && v.whole;
    }
    return true;
}

bool query_lead_key(arena *a, const query_lead *l, slice spelled, query_value *key_out) {
    query_value v;
    size_t n;
    if (!l->by.alone || !query_value_decode(a, spelled, &v, &n)) {
        return false;
    }
    *key_out = l->member.n ? value_object(a, &l->member, &v, 1) : v;
    return true;
}

/* ---- a document made from an index entry ---- */

static bool append_typed(bson_t *to, slice name, slice spelled, const index_value *v, arena *a) {
    query_value typed;
    if (!typed_value(a, spelled, v, &typed)) {
        return false;
    }
    value_append(to, name.p, (int)name.n, &typed, false);
    return true;
}

static bool append_value(bson_t *to, slice name, slice spelled, const index_value *v, arena *a) {
    buf text = buf_init(INDEX_VALUE_BYTES_MAX);
    const char *key = arena_text(a, name);
    int n = (int)name.n;
    switch (v->type) {
    case INDEX_NULL:
        return bson_append_null(to, key, n);
    case INDEX_FALSE:
    case INDEX_TRUE:
        return bson_append_bool(to, key, n, v->type == INDEX_TRUE);
    case INDEX_NUMBER:
        return v->number == (double)(int64_t)v->number ? bson_append_int64(to, key, n, (int64_t)v->number)
                                                       : bson_append_double(to, key, n, v->number);
    case INDEX_STRING:
        index_unescape(&text, v->text);
        bool added = bson_append_utf8(to, key, n, text.n ? text.p : "", (int)text.n);
        buf_free(&text);
        return added;
    default:
        return append_typed(to, name, spelled, v, a);
    }
}

static bool append_path(bson_t *to, const find_cover *c, size_t i, slice spelled, const index_value *v, arena *a) {
    slice name = c->path.steps[i].name;
    if (i + 1 == c->path.n) {
        return append_value(to, name, spelled, v, a);
    }
    bson_t inner;
    bson_append_document_begin(to, arena_text(a, name), (int)name.n, &inner);
    bool added = append_path(&inner, c, i + 1, spelled, v, a);
    bson_append_document_end(to, &inner);
    return added;
}

bool query_cover_item(arena *a, const find_cover *c, slice spelled, slice *body_out, uint32_t *ts_out) {
    index_value v;
    bson_t document = BSON_INITIALIZER;
    bool told = true;
    *ts_out = 0;
    if (spelled.n) {
        told = index_value_read(spelled, &v) && v.whole;
        if (told && index_is_system(c->path.steps[0])) {
            *ts_out = (uint32_t)v.number;
        } else if (told) {
            told = append_path(&document, c, 0, spelled, &v, a);
        }
    }
    *body_out = arena_copy(a, slice_of(bson_get_data(&document), document.len));
    bson_destroy(&document);
    return told;
}
