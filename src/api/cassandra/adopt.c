#include "api/cassandra/adopt.h"

#include "api/cassandra/row.h"
#include "doc/json.h"
#include "item/foreign.h"

#define IS_TABLE "The container is a table of Cassandra: "

static cass_schemas *schemas; /* made at start, kept until the process ends */

static err find_table(op *o, const container *c, const cass_table **table_out) {
    if (cass_table_of_container(schemas, o, c, table_out) != OK) {
        return op_fail(o, E_BAD_REQUEST, IS_TABLE "it has user types, so its rows are written by CQL only.");
    }
    return OK;
}

/* ---- values ---- */

static const cql_column *column_of(const cass_table *t, slice member) {
    for (uint32_t i = 0; i < t->table.n; i++) {
        if (slice_eq(t->stored[i].member, member)) {
            return &t->table.columns[i];
        }
    }
    return NULL;
}

/* Members of an item that are no columns, and mean nothing: this API's own, values of dropped columns, the id that SQL's clients send. */
static bool is_ignored(const cass_table *t, slice name) {
    bool ignored = slice_eq(name, SLICE_LIT(CASS_META)) || slice_eq(name, SLICE_LIT(CASS_KEYS)) || slice_eq(name, SLICE_LIT(CASS_TTL)) ||
                   slice_eq(name, SLICE_LIT("id"));
    for (uint32_t i = 0; !ignored && i < t->definition.dropped_n; i++) {
        ignored = slice_eq(t->definition.dropped[i].name, name);
    }
    return ignored;
}

static err read_value(op *o, const cql_column *c, const doc_element *e, cql_value *value_out) {
    err code = cql_bson_read(o, c->type, e, value_out);
    code = code == OK ? cql_value_check(o, c->type, *value_out) : code;
    code = code == OK ? cql_value_normalise(o, c->type, *value_out, value_out) : code;
    if (code == E_BAD_REQUEST) {
        slice why = arena_copy(o->arena, slice_of(o->detail, o->detail_n));
        return op_fail(o, E_BAD_REQUEST, IS_TABLE "column %.*s: %.*s", slice_shown(c->name), c->name.p, (int)why.n, why.p);
    }
    return code;
}

static err set_cell(op *o, const cql_column *c, cass_stamp stamp, cql_value v, cass_cell *cell) {
    cell->there = true;
    cell->value = v;
    cell->stamp = stamp;
    return cql_type_is_multicell(c->type) ? cass_cell_divide(o, c->type, v, stamp, &cell->elements, &cell->n) : OK;
}

static err read_member(op *o, const cass_table *t, const doc_element *e, cass_row *row) {
    const cql_column *c = column_of(t, e->key);
    cql_value v;
    if (!c) {
        return is_ignored(t, e->key) ? OK : op_fail(o, E_BAD_REQUEST, IS_TABLE "it has no column '%.*s'.", slice_shown(e->key), e->key.p);
    }
    if (e->type == BSON_TYPE_MINKEY || e->type == BSON_TYPE_MAXKEY || (c->kind == CQL_COLUMN_STATIC && e->type != BSON_TYPE_NULL)) {
        return op_fail(o, E_BAD_REQUEST, IS_TABLE "static columns are written by CQL only.");
    }
    TRY(read_value(o, c, e, &v));
    return v.null ? OK : set_cell(o, c, row->marker, v, &row->cells[cass_column_index(t, c)]);
}

/* As many members as there are columns are searched for: the time is bounded. */
static err read_members(op *o, const cass_table *t, slice body, cass_row *row) {
    enum { OWN = 4 };
    doc_walk w;
    doc_element e;
    uint32_t n = 0;
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (++n > t->table.n + t->definition.dropped_n + OWN) {
            return op_fail(o, E_BAD_REQUEST, IS_TABLE "the item has more members than it has columns.");
        }
        TRY(read_member(o, t, &e, row));
    }
    for (uint32_t i = 0; i < t->table.partition_n + t->table.clustering_n; i++) {
        slice name = t->stored[i].member;
        if (!row->cells[i].there) {
            return op_fail(o, E_BAD_REQUEST, IS_TABLE "the item must have the key column '%.*s'.", slice_shown(name), name.p);
        }
    }
    return OK;
}

err cass_adopt_row(op *o, const cass_table *t, int64_t now_ms, slice body, slice *stored_out) {
    int64_t now_s = now_ms / 1000;
    cass_row row;
    if (t->counters) {
        return op_fail(o, E_BAD_REQUEST, IS_TABLE "counters are changed by CQL only.");
    }
    if (!arena_fits(o->arena, t->table.n * sizeof(cass_cell))) {
        return budget_error(o->budget);
    }
    cass_row_init(o, t, &row);
    row.marked = true;
    row.marker = (cass_stamp){.us = now_ms * 1000, .ttl = t->default_ttl, .expires_s = t->default_ttl ? now_s + t->default_ttl : 0};
    row.deleted_us = row.marker.us - 1; /* hides what was written before to columns that are left out */
    TRY(read_members(o, t, body, &row));
    return cass_row_write(o, t, &row, now_s, stored_out);
}

static err adopt(op *o, const container *c, int64_t now_ms, slice body, slice *stored_out) {
    const cass_table *t;
    TRY(find_table(o, c, &t));
    err code = cass_adopt_row(o, t, now_ms, body, stored_out);
    cass_table_give(t);
    return code;
}

/* ---- ids ---- */

/* The values that the text of an id has, one for each column of the row key, which are `columns`. */
static err read_id(op *o, const cql_column *columns, uint32_t n, slice id, cql_value *values) {
    slice document;
    doc_element e;
    doc_walk w;
    uint32_t found = 0;
    buf json = buf_init_counted(LIMIT_EDITED_BYTES, o->budget);
    buf_add_lit(&json, "{\"id\":");
    if (n > 1) {
        buf_add_slice(&json, id);
    } else {
        buf_add_lit(&json, "[");
        json_add_string(&json, id);
        buf_add_lit(&json, "]");
    }
    buf_add_lit(&json, "}");
    err code = buf_ok(&json) ? cql_json_document(o, buf_view(&json), &document) : budget_error(o->budget);
    buf_free(&json);
    bool list = code == OK && doc_find_member(document, SLICE_LIT("id"), &e) && e.type == BSON_TYPE_ARRAY;
    for (bool more = list && doc_walk_init(&w, e.value); more && code == OK && doc_walk_next(&w, &e); found++) {
        code = found < n ? cql_json_value(o, columns[found].type, &e, &values[found]) : E_BAD_REQUEST;
        code = code == OK && values[found].null ? E_BAD_REQUEST : code;
    }
    return code == OK && found == n
               ? OK
               : op_fail(o, code == OK ? E_BAD_REQUEST : code, IS_TABLE "'%.*s' is no id of a row.", slice_shown(id), id.p);
}

static err row_of_id(op *o, const container *c, slice id, slice *row_out) {
    const cass_table *t;
    TRY(find_table(o, c, &t));
    bool clustered = t->table.clustering_n;
    uint32_t n = clustered ? t->table.clustering_n : 1;
    const cql_column *columns = t->table.columns + (clustered ? t->table.partition_n : 0);
    cql_value *values = arena_array(o->arena, cql_value, n);
    err code = read_id(o, columns, n, id, values);
    code = code != OK ? code : clustered ? cass_row_prefix(o, t, c, values, n, row_out) : cass_single_row(o, t, c, values[0], row_out);
    cass_table_give(t);
    return code;
}

void cass_adopt_register(void) {
    static const item_owner owner = {.api = "cassandra", .adopt = adopt, .row_of_id = row_of_id};
    schemas = schemas ? schemas : cass_schemas_new();
    item_owner_register(&owner);
}
