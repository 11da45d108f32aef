/* SELECT by a secondary index: the condition of the core's index (query/find.h) that finds the rows. Everything is checked again on each
 * row, so the condition may find too many: of a frozen collection it names the first element.
 *
 *   v = 5, full(v) = […]      {"at": ["v"], "eq": 5}, {"at": ["v", null], "eq": first}
 *   l CONTAINS 5              {"at": ["l", null], "eq": 5}
 *   m CONTAINS KEY 'a'        {"at": ["m", "a"], "exists": true}
 *   m['a'] = 5                {"at": ["m", "a"], "eq": 5} */
#include <math.h>

#include "api/cassandra/select.h"

/* Where the condition looks, beside the column's member, and for what. */
typedef struct sought {
    bool any_element;
    const cql_type *key_type; /* a map's; NULL: no key */
    cql_value key;
    const cql_type *type; /* NULL: it must be there, whatever it is */
    cql_value value;
} sought;

/* Types whose BSON is equal exactly if their values are. Decimals are of two forms. */
static bool is_exact(const cql_type *t) {
    bool real = t->kind == CQL_FLOAT || t->kind == CQL_DOUBLE;
    return real || (cql_type_identifies(t) && t->kind != CQL_CUSTOM && t->kind != CQL_DURATION);
}

static bool is_nan(const cql_type *t, cql_value v) {
    double number;
    return (t->kind == CQL_FLOAT || t->kind == CQL_DOUBLE) && cql_as_double(v, &number) && isnan(number);
}

/* Static rows are found with the others of a partition column, and rows whose static columns are asked for need them. */
static bool has_rows_of_one_kind(const cass_selecting *g, const cql_filter *f) {
    return f->column->kind != CQL_COLUMN_STATIC &&
           (!g->s->table->has_static || (!g->s->uses_static && f->column->kind != CQL_COLUMN_PARTITION));
}

/* ---- values ---- */

static err value_of(cass_selecting *g, const cql_filter *f, const cql_term *term, const cql_type *type, cql_value *value_out) {
    op *o = &g->q->op;
    TRY(cql_term_value(o, &g->q->run, term, &(cql_receiver){.name = f->column->name, .type = type}, value_out));
    return value_out->unset || cql_value_is_null(*value_out)
               ? op_fail(o, E_BAD_REQUEST, "Invalid %s value for column %.*s", value_out->unset ? "unset" : "null",
                         slice_shown(f->column->name), f->column->name.p)
               : OK;
}

/* The first element of a collection, or entry of a map. False: it is empty. */
static bool first_of(const cql_type *type, cql_value v, sought *s) {
    cql_elements e;
    const cql_type *inner;
    cql_value first;
    if (!cql_elements_init(&e, type, v) || !cql_elements_next(&e, &first, &inner)) {
        return false;
    }
    s->any_element = type->kind != CQL_MAP;
    s->type = inner;
    s->value = first;
    if (type->kind == CQL_MAP) {
        s->key_type = inner;
        s->key = first;
        return cql_elements_next(&e, &s->value, &s->type);
    }
    return true;
}

/* False in `*served`: the index cannot find it. */
static err read_sought(cass_selecting *g, const cql_filter *f, sought *s, bool *served) {
    const cql_relation *r = f->relation;
    const cql_type *type = f->column->type;
    *s = (sought){0};
    *served = true;
    if (r->kind == CQL_RELATION_ELEMENT || r->op == CQL_CONTAINS_KEY) {
        s->key_type = type->inner[0];
        TRY(value_of(g, f, r->key ? r->key : r->value, s->key_type, &s->key));
        s->type = r->key ? type->inner[1] : NULL;
        return r->key ? value_of(g, f, r->value, s->type, &s->value) : OK;
    }
    s->any_element = r->op == CQL_CONTAINS;
    s->type = s->any_element ? type->inner[0] : type;
    if (s->any_element && type->kind == CQL_MAP) {
        *served = false;
        return OK;
    }
    TRY(value_of(g, f, r->value, s->type, &s->value));
    if (r->op == CQL_EQ && cql_type_is_collection(type)) {
        *served = first_of(type, s->value, s);
    }
    return OK;
}

/* ---- the condition ---- */

/* A map's key as the name of a member. False: it has a zero byte, which a path cannot have, or is empty. */
static bool name_of_key(op *o, const sought *s, slice *name_out) {
    const cql_type *map = cql_type_map(o->arena, s->key_type, cql_type_of(CQL_INT), true);
    cql_value entry[] = {s->key, cql_value_int(o->arena, 0)}, v;
    buf document = buf_init_counted(BUF_NO_LIMIT, o->budget);
    doc_walk w;
    doc_element e;
    bool good = cql_value_collect(o->arena, map, entry, 2, &v);
    buf_add(&document, "\0\0\0\0", 4);
    cql_bson_add(&document, SLICE_LIT("m"), map, v);
    buf_add_byte(&document, 0);
    good = good && buf_ok(&document);
    if (good) {
        doc_store_i32(document.p, (int32_t)document.n);
        good = doc_find_member(buf_view(&document), SLICE_LIT("m"), &e) && doc_walk_init(&w, e.value) && doc_walk_next(&w, &e);
        *name_out = good ? arena_copy(o->arena, e.key) : SLICE_EMPTY;
    }
    buf_free(&document);
    return good && name_out->n && !memmem(name_out->p, name_out->n, "\xC0\x80", 2);
}

static err write_condition(op *o, slice member, const sought *s, slice key, slice *where_out) {
    bool equal = s->type && is_exact(s->type) && !is_nan(s->type, s->value);
    bson_t where = BSON_INITIALIZER, path;
    buf out = buf_init_counted(BUF_NO_LIMIT, o->budget);
    bson_append_array_begin(&where, "at", -1, &path);
    bson_append_utf8(&path, "0", -1, member.p, (int)member.n);
    if (s->any_element) {
        bson_append_null(&path, "1", -1);
    } else if (s->key_type) {
        bson_append_utf8(&path, "1", -1, key.p, (int)key.n);
    }
    bson_append_array_end(&where, &path);
    if (!equal) {
        bson_append_bool(&where, "exists", -1, true);
    }
    buf_add(&out, bson_get_data(&where), where.len - 1); /* without its end */
    bson_destroy(&where);
    if (equal) {
        cql_bson_add(&out, SLICE_LIT("eq"), s->type, s->value);
    }
    buf_add_byte(&out, 0);
    bool good = buf_ok(&out);
    if (good) {
        doc_store_i32(out.p, (int32_t)out.n);
        *where_out = arena_copy(o->arena, buf_view(&out));
    }
    buf_free(&out);
    return good ? OK : budget_error(o->budget);
}

static err condition_of(cass_selecting *g, const cql_filter *f, slice *where_out) {
    op *o = &g->q->op;
    sought s;
    bool served;
    slice key = SLICE_EMPTY;
    TRY(read_sought(g, f, &s, &served));
    served = served && (s.key_type ? is_exact(s.key_type) && !is_nan(s.key_type, s.key) && name_of_key(o, &s, &key)
                                   : is_exact(s.type) && !is_nan(s.type, s.value));
    slice member = g->s->table->stored[cass_column_index(g->s->table, f->column)].member;
    return served ? write_condition(o, member, &s, key, where_out) : OK;
}

err cass_index_condition(cass_selecting *g, slice *where_out) {
    *where_out = SLICE_EMPTY;
    for (uint32_t i = 0; !where_out->n && i < g->s->where.filters_n; i++) {
        const cql_filter *f = &g->s->where.filters[i];
        if (f->index && has_rows_of_one_kind(g, f)) {
            TRY(condition_of(g, f, where_out));
        }
    }
    return OK;
}
