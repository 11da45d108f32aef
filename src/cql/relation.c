/* relation.c — the values of one relation, and testing a value against it. */
#include "cql/restrict_int.h"

/* ---- receivers ---- */

static slice names_of(op *o, const cql_relation *r, const char *before) {
    buf text = buf_init(1024);
    buf_add_slice(&text, slice_str(before));
    for (uint32_t i = 0; i < r->columns_n; i++) {
        buf_addf(&text, "%s%.*s", i ? "," : "", slice_shown(r->columns[i]), r->columns[i].p);
    }
    buf_add_byte(&text, ')');
    slice copy = arena_copy(o->arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

static const cql_type *tuple_of(op *o, const cql_relation *r, const cql_column *const *columns) {
    const cql_type **types = arena_array(o->arena, const cql_type *, r->columns_n + 1);
    for (uint32_t i = 0; i < r->columns_n; i++) {
        types[i] = columns[i]->type;
    }
    return cql_type_tuple(o->arena, types, r->columns_n);
}

static cql_receiver element_receiver(op *o, const cql_column *c, bool key) {
    const cql_type *type = c->type->kind == CQL_MAP ? c->type->inner[key ? 0 : 1] : c->type->n ? c->type->inner[0] : c->type;
    return (cql_receiver){arena_printf(o->arena, "%s(%.*s)", key ? "key" : "value", slice_shown(c->name), c->name.p), type};
}

static const cql_type *field_type(const cql_relation *r, const cql_column *c) {
    for (uint32_t i = 0; c->type->fields && i < c->type->n; i++) {
        if (slice_eq(c->type->fields[i], r->field)) {
            return c->type->inner[i];
        }
    }
    return c->type;
}

cql_receiver cql__relation_receiver(op *o, const cql_relation *r, const cql_column *const *columns) {
    switch (r->kind) {
    case CQL_RELATION_TOKEN:
        return (cql_receiver){SLICE_LIT("partition key token"), cql_type_of(CQL_BIGINT)};
    case CQL_RELATION_TUPLE:
        return (cql_receiver){names_of(o, r, "("), tuple_of(o, r, columns)};
    case CQL_RELATION_ELEMENT:
        return element_receiver(o, columns[0], false);
    case CQL_RELATION_FIELD:
        return (cql_receiver){r->field, field_type(r, columns[0])};
    default:
        break;
    }
    if (r->op == CQL_CONTAINS || r->op == CQL_CONTAINS_KEY) {
        return element_receiver(o, columns[0], r->op == CQL_CONTAINS_KEY);
    }
    return (cql_receiver){columns[0]->name, columns[0]->type};
}

static cql_receiver in_receiver(op *o, const cql_relation *r, const cql_receiver *one) {
    return (cql_receiver){names_of(o, r, "in("), cql_type_list(o->arena, one->type, true)};
}

static cql_receiver key_receiver(op *o, const cql_column *c) {
    cql_receiver key = element_receiver(o, c, true);
    if (c->type->kind == CQL_LIST) { /* l[i] in a condition */
        key = (cql_receiver){arena_printf(o->arena, "idx(%.*s)", slice_shown(c->name), c->name.p), cql_type_of(CQL_INT)};
    }
    return key;
}

/* ---- preparing ---- */

/* The elements of a tuple literal are those of the columns, so that a marker inside has the column's name. */
static err prepare_value(op *o, const cql_type_source *types, const cql_relation *r, const cql_column *const *columns,
                         const cql_receiver *receiver, const cql_term *term, cql_receiver *markers) {
    if (r->kind != CQL_RELATION_TUPLE || term->kind != CQL_TERM_TUPLE) {
        return cql_term_prepare(o, types, term, receiver, markers);
    }
    if (term->n != r->columns_n) {
        return op_fail(o, E_BAD_REQUEST, "Expected %u elements in value tuple, but got %u", r->columns_n, term->n);
    }
    for (uint32_t i = 0; i < term->n; i++) {
        cql_receiver column = {columns[i]->name, columns[i]->type};
        TRY(cql_term_prepare(o, types, term->items[i], &column, markers));
    }
    return OK;
}

err cql__relation_prepare(op *o, const cql_type_source *types, const cql_relation *r, const cql_column *const *columns,
                          cql_receiver *markers) {
    cql_receiver receiver = cql__relation_receiver(o, r, columns);
    if (r->key) {
        cql_receiver key = key_receiver(o, columns[0]);
        TRY(cql_term_prepare(o, types, r->key, &key, markers));
    }
    if (r->op == CQL_IN && r->value) {
        cql_receiver list = in_receiver(o, r, &receiver);
        return cql_term_prepare(o, types, r->value, &list, markers);
    }
    for (uint32_t i = 0; i < r->in_n; i++) {
        TRY(prepare_value(o, types, r, columns, &receiver, r->in[i], markers));
    }
    return r->value ? prepare_value(o, types, r, columns, &receiver, r->value, markers) : OK;
}

/* ---- conditions ---- */

static bool has_field(const cql_type *type, slice name) {
    for (uint32_t i = 0; type->kind == CQL_UDT && type->fields && i < type->n; i++) {
        if (slice_eq(type->fields[i], name)) {
            return true;
        }
    }
    return false;
}

static err check_part(op *o, const cql_relation *r, const cql_column *c) {
    slice type = cql_type_text(o->arena, c->type);
    bool whole_collection = cql_type_is_collection(c->type) && r->kind == CQL_RELATION_COLUMN;
    if (r->kind == CQL_RELATION_ELEMENT && c->type->kind != CQL_LIST && c->type->kind != CQL_MAP) {
        return op_fail(o, E_BAD_REQUEST, "Invalid element access syntax for %s column %.*s",
                       c->type->kind == CQL_SET ? "set" : "non-collection", slice_shown(c->name), c->name.p);
    }
    if (r->kind == CQL_RELATION_FIELD && !has_field(c->type, r->field)) {
        return op_fail(o, E_BAD_REQUEST, "Unknown field %.*s for column %.*s of type %.*s", slice_shown(r->field), r->field.p,
                       slice_shown(c->name), c->name.p, slice_shown(type), type.p);
    }
    if (r->op == CQL_CONTAINS_KEY ? c->type->kind != CQL_MAP : r->op == CQL_CONTAINS && !cql_type_is_collection(c->type)) {
        return op_fail(o, E_BAD_REQUEST, "Cannot use %s on column %.*s of type %.*s", cql_operator_text(r->op), slice_shown(c->name),
                       c->name.p, slice_shown(type), type.p);
    }
    if (cql__is_slice(r->op) && !whole_collection && cql_type_has_duration(c->type)) {
        return op_fail(o, E_BAD_REQUEST, "Slice conditions are not supported on durations");
    }
    return OK;
}

err cql_condition_prepare(op *o, const cql_type_source *types, const cql_table *table, const cql_relation *r, cql_receiver *markers,
                          const cql_column **column_out) {
    const cql_column *c = cql_table_column(table, r->columns[0]);
    *column_out = c;
    if (!c) {
        return op_fail(o, E_BAD_REQUEST, "Undefined column name %.*s in table %.*s.%.*s", slice_shown(r->columns[0]), r->columns[0].p,
                       slice_shown(table->keyspace), table->keyspace.p, slice_shown(table->name), table->name.p);
    }
    if (c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING) {
        return op_fail(o, E_BAD_REQUEST, "PRIMARY KEY column '%.*s' cannot have IF conditions", slice_shown(c->name), c->name.p);
    }
    if (c->type->kind == CQL_COUNTER) {
        return op_fail(o, E_BAD_REQUEST, "Conditional updates are not supported on counter tables");
    }
    TRY(check_part(o, r, c));
    return cql__relation_prepare(o, types, r, &c, markers);
}

/* ---- values ---- */

static err check_value(op *o, const cql_column *c, cql_value v) {
    if (v.unset) {
        return op_fail(o, E_BAD_REQUEST, "Invalid unset value for column %.*s", slice_shown(c->name), c->name.p);
    }
    if (v.null) {
        return op_fail(o, E_BAD_REQUEST, "Invalid null value in condition for column %.*s", slice_shown(c->name), c->name.p);
    }
    return OK;
}

/* Takes a tuple apart; elements missing at the end are null. */
static err split_tuple(op *o, const cql_relation *r, const cql_column *const *columns, const cql_type *type, cql_value tuple,
                       cql_value *into) {
    cql_elements e;
    const cql_type *inner;
    cql_value element;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->columns_n; i++) {
        into[i] = cql_value_null();
    }
    for (bool more = cql_elements_init(&e, type, tuple); more && n < r->columns_n && cql_elements_next(&e, &element, &inner); n++) {
        into[n] = element;
    }
    for (uint32_t i = 0; i < r->columns_n; i++) {
        TRY(check_value(o, columns[i], into[i]));
    }
    return OK;
}

static err one_row(op *o, const cql_run *run, const cql_relation *r, const cql_column *const *columns, const cql_receiver *receiver,
                   const cql_term *term, cql_value *into) {
    cql_value v;
    if (r->kind == CQL_RELATION_TUPLE && term->kind == CQL_TERM_TUPLE && term->n == r->columns_n) {
        for (uint32_t i = 0; i < term->n; i++) {
            cql_receiver column = {columns[i]->name, columns[i]->type};
            TRY(cql_term_value(o, run, term->items[i], &column, &into[i]));
            TRY(check_value(o, columns[i], into[i]));
        }
        return OK;
    }
    TRY(cql_term_value(o, run, term, receiver, &v));
    if (r->kind == CQL_RELATION_TUPLE) {
        return split_tuple(o, r, columns, receiver->type, v, into);
    }
    *into = v;
    return check_value(o, columns[0], v);
}

static err marker_rows(op *o, const cql_run *run, const cql_relation *r, const cql_column *const *columns, const cql_receiver *receiver,
                       const cql_value **values_out, uint32_t *n_out) {
    cql_receiver list = in_receiver(o, r, receiver);
    cql_value v, element;
    cql_elements e;
    const cql_type *inner;
    TRY(cql_term_value(o, run, r->value, &list, &v));
    TRY(check_value(o, columns[0], v));
    cql_elements_init(&e, list.type, v);
    if (!arena_fits(o->arena, ((size_t)e.n + 1) * r->columns_n * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    cql_value *values = arena_array(o->arena, cql_value, ((size_t)e.n + 1) * r->columns_n);
    *n_out = 0;
    while (cql_elements_next(&e, &element, &inner)) {
        cql_value *into = values + (size_t)*n_out * r->columns_n;
        if (r->kind == CQL_RELATION_TUPLE) {
            TRY(split_tuple(o, r, columns, inner, element, into));
        } else {
            *into = element;
        }
        (*n_out)++;
    }
    *values_out = values;
    return OK;
}

err cql__relation_values(op *o, const cql_run *run, const cql_relation *r, const cql_column *const *columns, const cql_value **values_out,
                         uint32_t *n_out) {
    cql_receiver receiver = cql__relation_receiver(o, r, columns);
    if (r->op == CQL_IN && r->value) {
        return marker_rows(o, run, r, columns, &receiver, values_out, n_out);
    }
    uint32_t n = r->op == CQL_IN ? r->in_n : 1;
    if (!arena_fits(o->arena, ((size_t)n + 1) * r->columns_n * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    cql_value *values = arena_array(o->arena, cql_value, ((size_t)n + 1) * r->columns_n);
    for (uint32_t i = 0; i < n; i++) {
        TRY(one_row(o, run, r, columns, &receiver, r->op == CQL_IN ? r->in[i] : r->value, values + (size_t)i * r->columns_n));
    }
    *values_out = values;
    *n_out = n;
    return OK;
}

/* ---- testing ---- */

static bool compares(cql_operator op, int c) {
    switch (op) {
    case CQL_EQ:
        return c == 0;
    case CQL_NE:
        return c != 0;
    case CQL_LT:
        return c < 0;
    case CQL_LE:
        return c <= 0;
    case CQL_GT:
        return c > 0;
    default:
        return c >= 0;
    }
}

static bool contains(const cql_column *column, cql_value v, cql_value sought, bool keys) {
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    bool map = column->type->kind == CQL_MAP;
    uint32_t i = 0;
    for (bool more = cql_elements_init(&e, column->type, v); more && cql_elements_next(&e, &element, &inner); i++) {
        bool wanted = !map || (i % 2 == 0) == keys;
        if (wanted && cql_compare(inner, element, sought) == 0) {
            return true;
        }
    }
    return false;
}

/* m[key], l[index] or u.field of a value; null if there is none. */
static err part_of(op *o, const cql_run *run, const cql_relation *r, const cql_column *column, cql_value v, cql_value *part_out) {
    cql_elements e;
    cql_value key, element;
    const cql_type *inner;
    int64_t index = -1;
    uint32_t i = 0;
    *part_out = cql_value_null();
    if (r->kind == CQL_RELATION_ELEMENT) {
        cql_receiver receiver = key_receiver(o, column);
        TRY(cql_term_value(o, run, r->key, &receiver, &key));
        TRY(check_value(o, column, key));
        if (column->type->kind == CQL_LIST) {
            cql_as_bigint(key, &index);
        }
    }
    for (bool more = cql_elements_init(&e, column->type, v); more && cql_elements_next(&e, &element, &inner); i++) {
        if (r->kind == CQL_RELATION_FIELD) {
            if (column->type->fields && slice_eq(column->type->fields[i], r->field)) {
                *part_out = element;
            }
        } else if (column->type->kind == CQL_MAP) {
            bool found = cql_compare(inner, element, key) == 0;
            if (!cql_elements_next(&e, &element, &inner)) {
                break;
            }
            *part_out = found ? element : *part_out;
        } else if (i == index) {
            *part_out = element;
        }
    }
    return OK;
}

static err holds_in(op *o, const cql_run *run, const cql_relation *r, const cql_column *column, const cql_receiver *receiver, cql_value v,
                    bool *holds_out) {
    cql_value one, list = cql_value_null();
    for (uint32_t i = 0; i < r->in_n && !*holds_out; i++) {
        TRY(cql_term_value(o, run, r->in[i], receiver, &one));
        *holds_out = one.null == cql_value_is_null(v) && (one.null || cql_compare(receiver->type, v, one) == 0);
    }
    if (r->value) {
        cql_receiver many = in_receiver(o, r, receiver);
        cql_elements e;
        const cql_type *inner;
        TRY(cql_term_value(o, run, r->value, &many, &list));
        TRY(check_value(o, column, list));
        for (bool more = cql_elements_init(&e, many.type, list); more && !*holds_out && cql_elements_next(&e, &one, &inner);) {
            *holds_out = !cql_value_is_null(v) && cql_compare(inner, v, one) == 0;
        }
    }
    return OK;
}

static err holds_compared(op *o, const cql_run *run, const cql_relation *r, const cql_column *column, const cql_receiver *receiver,
                          cql_value v, bool condition, bool *holds_out) {
    cql_value sought;
    TRY(cql_term_value(o, run, r->value, receiver, &sought));
    if (sought.unset || (sought.null && !condition)) {
        return check_value(o, column, sought);
    }
    if (sought.null || cql_value_is_null(v)) {
        bool same = sought.null && cql_value_is_null(v);
        if (sought.null && cql__is_slice(r->op)) {
            return op_fail(o, E_BAD_REQUEST, "Invalid comparison with null for operator \"%s\"", cql_operator_text(r->op));
        }
        *holds_out = condition && (r->op == CQL_EQ ? same : r->op == CQL_NE && !same);
        return OK;
    }
    *holds_out = compares(r->op, cql_compare(receiver->type, v, sought));
    return OK;
}

/* LIKE with % at the ends only, as Cassandra's indexes have it. */
static bool is_like(slice text, slice pattern) {
    bool open_start = pattern.n && pattern.p[0] == '%';
    bool open_end = pattern.n > 1 && pattern.p[pattern.n - 1] == '%';
    slice middle = slice_of(pattern.p + open_start, pattern.n - open_start - open_end);
    if (open_start && open_end) {
        return middle.n == 0 || (text.n && memmem(text.p, text.n, middle.p, middle.n) != NULL);
    }
    if (open_start) {
        return text.n >= middle.n && slice_eq(slice_skip(text, text.n - middle.n), middle);
    }
    return open_end ? slice_starts(text, middle) : slice_eq(text, middle);
}

err cql_relation_holds(op *o, const cql_run *run, const cql_relation *r, const cql_column *column, cql_value v, bool condition,
                       bool *holds_out) {
    const cql_column *columns[] = {column};
    cql_receiver receiver = cql__relation_receiver(o, r, columns);
    cql_value sought;
    *holds_out = false;
    if (r->kind == CQL_RELATION_ELEMENT || r->kind == CQL_RELATION_FIELD) {
        TRY(part_of(o, run, r, column, v, &v));
    }
    switch (r->op) {
    case CQL_IN:
        return holds_in(o, run, r, column, &receiver, v, holds_out);
    case CQL_CONTAINS:
    case CQL_CONTAINS_KEY:
        TRY(cql_term_value(o, run, r->value, &receiver, &sought));
        TRY(check_value(o, column, sought));
        *holds_out = contains(column, v, sought, r->op == CQL_CONTAINS_KEY);
        return OK;
    case CQL_LIKE:
        TRY(cql_term_value(o, run, r->value, &receiver, &sought));
        TRY(check_value(o, column, sought));
        *holds_out = !cql_value_is_null(v) && is_like(v.bytes, sought.bytes);
        return OK;
    case CQL_IS_NOT_NULL:
        *holds_out = !cql_value_is_null(v);
        return OK;
    default:
        return holds_compared(o, run, r, column, &receiver, v, condition, holds_out);
    }
}
