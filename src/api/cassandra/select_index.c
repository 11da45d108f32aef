/* SELECT by a secondary index: the condition of the core's index (query/find.h) that finds the rows. Everything is checked again on each
 * row, so the condition may find too many. */
#include "api/cassandra/select.h"

/* Types whose BSON is equal exactly if their values are. */
static bool is_exact(const cql_type *t) {
    return cql_type_identifies(t) && t->kind != CQL_VARINT && t->kind != CQL_CUSTOM && t->kind != CQL_DURATION;
}

/* = of a column; CONTAINS of a list or set. */
static bool serves(const cass_table *t, const cql_filter *f, bool *contains) {
    const cql_relation *r = f->relation;
    const cql_type *type = f->column->type;
    bool listed = type->kind == CQL_LIST || type->kind == CQL_SET;
    *contains = r->op == CQL_CONTAINS;
    bool form = r->kind == CQL_RELATION_COLUMN && r->value && (r->op == CQL_EQ || (*contains && listed));
    return f->index && form && f->column->kind != CQL_COLUMN_STATIC && !t->has_static && is_exact(*contains ? type->inner[0] : type);
}

static err condition_of(cass_selecting *g, const cql_filter *f, bool contains, slice *where_out) {
    op *o = &g->q->op;
    const cql_type *type = contains ? f->column->type->inner[0] : f->column->type;
    slice member = g->s->table->stored[cass_column_index(g->s->table, f->column)].member;
    bson_t where = BSON_INITIALIZER, path;
    cql_value v;
    buf element = buf_init_counted(BUF_NO_LIMIT, o->budget);
    TRY(cql_term_value(o, &g->q->run, f->relation->value, &(cql_receiver){.name = f->column->name, .type = type}, &v));
    if (cql_value_is_null(v)) {
        return op_fail(o, E_BAD_REQUEST, "Invalid null value for column %.*s", slice_shown(f->column->name), f->column->name.p);
    }
    bson_append_array_begin(&where, "at", -1, &path);
    bson_append_utf8(&path, "0", -1, member.p, (int)member.n);
    if (contains) {
        bson_append_null(&path, "1", -1);
    }
    bson_append_array_end(&where, &path);
    buf_add(&element, bson_get_data(&where), where.len - 1); /* without its end */
    bson_destroy(&where);
    cql_bson_add(&element, SLICE_LIT("eq"), type, v);
    buf_add_byte(&element, 0);
    bool good = buf_ok(&element);
    if (good) {
        doc_store_i32(element.p, (int32_t)element.n);
        *where_out = arena_copy(o->arena, buf_view(&element));
    }
    buf_free(&element);
    return good ? OK : budget_error(o->budget);
}

err cass_index_condition(cass_selecting *g, slice *where_out) {
    bool contains;
    *where_out = SLICE_EMPTY;
    for (uint32_t i = 0; i < g->s->where.filters_n; i++) {
        if (serves(g->s->table, &g->s->where.filters[i], &contains)) {
            return condition_of(g, &g->s->where.filters[i], contains, where_out);
        }
    }
    return OK;
}
