#include "api/cassandra/selection.h"

typedef enum expression_kind {
    IS_COLUMN,
    IS_WRITETIME,
    IS_TTL_OF,
    IS_TERM, /* a constant or marker */
    IS_CALL,
    IS_TOKEN,
    IS_CAST,
    IS_ARITHMETIC,
    IS_NEGATE,
    IS_FIELD,
    IS_ELEMENT,
    IS_SLICE, /* `items` are the collection and the ends that are given, as `index` says */
    IS_AGGREGATE,
} expression_kind;

enum { SLICE_FROM = 1, SLICE_TO = 2 };

struct cass_expression {
    expression_kind kind;
    const cql_type *type;
    uint32_t index; /* of a column, field or aggregate; SLICE_… */
    const cql_term *term;
    const cql_function *function;
    const cass_expression **items;
    const cql_type **types; /* of the items */
    uint32_t n;
    slice name; /* of an aggregate */
};

typedef struct maker {
    op *o;
    const cass_table *t;
    const cql_type_source *types;
    cql_receiver *markers;
    cass_selection *selection;
    bool *needed;
    const cass_expression **aggregates;
    uint32_t aggregates_n;
    bool in_aggregate;
} maker;

enum { AGGREGATES_MAX = 256 };

/* ---- making ---- */

static err make(maker *m, const cql_term *term, const cql_type *wanted, cass_expression **expression_out);

static err make_column(maker *m, slice name, cass_expression *e) {
    const cql_column *c = cql_table_column(&m->t->table, name);
    if (!c) {
        return op_fail(m->o, E_BAD_REQUEST, "Undefined column name %.*s", slice_shown(name), name.p);
    }
    e->kind = IS_COLUMN;
    e->index = cass_column_index(m->t, c);
    e->type = c->type;
    m->needed[e->index] = true;
    m->selection->uses_static = m->selection->uses_static || c->kind == CQL_COLUMN_STATIC;
    return OK;
}

static err make_stamp(maker *m, const cql_term *term, cass_expression *e) {
    const char *what = term->kind == CQL_TERM_TTL ? "ttl" : "writetime";
    const cql_term *of = term->items[0];
    if (of->kind != CQL_TERM_COLUMN) {
        return op_fail(m->o, E_BAD_REQUEST, "Cannot use selection function %s on an element or field here", what);
    }
    TRY(make_column(m, of->name, e));
    const cql_column *c = &m->t->table.columns[e->index];
    if (c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING) {
        return op_fail(m->o, E_BAD_REQUEST, "Cannot use selection function %s on PRIMARY KEY part %.*s", what, slice_shown(c->name),
                       c->name.p);
    }
    if (cql_type_is_multicell(c->type)) {
        return op_fail(m->o, E_BAD_REQUEST, "Cannot use selection function %s on non-frozen %s %.*s", what,
                       c->type->kind == CQL_UDT ? "UDT" : "collection", slice_shown(c->name), c->name.p);
    }
    e->kind = term->kind == CQL_TERM_TTL ? IS_TTL_OF : IS_WRITETIME;
    e->type = cql_type_of(term->kind == CQL_TERM_TTL ? CQL_INT : CQL_BIGINT);
    return OK;
}

static err untyped(maker *m) {
    return op_fail(m->o, E_BAD_REQUEST, "Cannot infer the type of a selected term; add a type hint: (int) ?");
}

/* Markers and nulls take their type from their place; not every place has one. */
static err check_typed(maker *m, const cass_expression *e) {
    bool typed = true;
    for (uint32_t i = 0; i < e->n; i++) {
        typed = typed && e->items[i]->type;
    }
    return typed ? OK : untyped(m);
}

static err make_aggregate(maker *m, const cql_term *term, cass_expression *e) {
    cql_aggregate state;
    cass_expression *item = NULL;
    if (m->in_aggregate) {
        return op_fail(m->o, E_BAD_REQUEST, "aggregate functions cannot be used as arguments of aggregate functions");
    }
    if (m->aggregates_n == AGGREGATES_MAX) {
        return op_fail(m->o, E_BAD_REQUEST, "Too many aggregate functions.");
    }
    bool rows = term->star || term->n == 0 || (term->n == 1 && term->items[0]->kind == CQL_TERM_INTEGER); /* count(*), count(1) */
    if (!rows) {
        m->in_aggregate = true;
        err code = make(m, term->items[0], NULL, &item);
        m->in_aggregate = false;
        TRY(code);
        TRY(item->type ? OK : untyped(m));
    }
    e->kind = IS_AGGREGATE;
    e->name = term->name;
    e->n = item ? 1 : 0;
    e->items = arena_array(m->o->arena, const cass_expression *, 1);
    e->items[0] = item;
    e->index = m->aggregates_n;
    TRY(cql_aggregate_init(m->o, &state, term->name, item ? item->type : NULL, &e->type));
    m->aggregates[m->aggregates_n++] = e;
    return OK;
}

static bool is_token(const cql_term *term) {
    return slice_eq_nocase(term->name, SLICE_LIT("token"));
}

/* token(…) of the partition key's columns, in their order. */
static err make_token(maker *m, const cql_term *term, cass_expression *e) {
    const cql_table *table = &m->t->table;
    bool good = term->n == table->partition_n;
    for (uint32_t i = 0; good && i < term->n; i++) {
        good = term->items[i]->kind == CQL_TERM_COLUMN && slice_eq(term->items[i]->name, table->columns[i].name);
        m->needed[i] = true;
    }
    e->kind = IS_TOKEN;
    e->type = cql_type_of(CQL_BIGINT);
    return good ? OK : op_fail(m->o, E_BAD_REQUEST, "The token() function must contain only partition key components, in their order.");
}

static err make_items(maker *m, const cql_term *term, cass_expression *e) {
    e->n = term->n;
    e->items = arena_array(m->o->arena, const cass_expression *, term->n ? term->n : 1);
    e->types = arena_array(m->o->arena, const cql_type *, term->n ? term->n : 1);
    for (uint32_t i = 0; i < term->n; i++) {
        cass_expression *item;
        TRY(make(m, term->items[i], NULL, &item));
        e->items[i] = item;
        e->types[i] = item->type;
    }
    return OK;
}

/* Gives a constant or marker the type of its place. */
static err receive(maker *m, const cass_expression *item, const cql_type *type) {
    cass_expression *own = (cass_expression *)(uintptr_t)item; /* still being made */
    if (own->kind != IS_TERM || own->type || !type) {
        return OK;
    }
    own->type = type;
    return cql_term_prepare(m->o, m->types, own->term, &(cql_receiver){.name = SLICE_LIT("[selection]"), .type = type}, m->markers);
}

static err make_call(maker *m, const cql_term *term, const cql_type *wanted, cass_expression *e) {
    if (is_token(term)) {
        return make_token(m, term, e);
    }
    if (cql_function_is_aggregate(term->keyspace, term->name)) {
        return make_aggregate(m, term, e);
    }
    TRY(make_items(m, term, e));
    e->kind = IS_CALL;
    TRY(cql_function_find(m->o, term->keyspace, term->name, e->types, e->n, wanted, &e->function, &e->type));
    for (uint32_t i = 0; i < e->n; i++) {
        TRY(receive(m, e->items[i], cql_function_parameter(e->function, e->types, e->n, i)));
        e->types[i] = e->items[i]->type;
    }
    return check_typed(m, e);
}

/* The key of m[key]: a constant is of the collection's type, everything else must be. */
static err receive_key(maker *m, cass_expression *e, uint32_t i, const cql_type *type) {
    cass_expression *own = (cass_expression *)(uintptr_t)e->items[i]; /* still being made */
    own->type = own->kind == IS_TERM ? NULL : own->type;
    TRY(receive(m, own, type));
    e->types[i] = own->type;
    if (own->type && !cql_type_same(own->type, type)) {
        slice text = cql_type_text(m->o->arena, type);
        return op_fail(m->o, E_BAD_REQUEST, "The key of an element must be of type %.*s", slice_shown(text), text.p);
    }
    return OK;
}

static err make_field(maker *m, const cql_term *term, cass_expression *e) {
    TRY(make_items(m, term, e));
    const cql_type *type = e->types[0];
    if (!type || type->kind != CQL_UDT) {
        return op_fail(m->o, E_BAD_REQUEST, "Invalid field selection: only user types have a field %.*s", slice_shown(term->name),
                       term->name.p);
    }
    for (uint32_t i = 0; i < type->n; i++) {
        if (slice_eq(type->fields[i], term->name)) {
            e->kind = IS_FIELD;
            e->index = i;
            e->type = type->inner[i];
            return OK;
        }
    }
    return op_fail(m->o, E_BAD_REQUEST, "The type %.*s has no field %.*s", slice_shown(type->name), type->name.p, slice_shown(term->name),
                   term->name.p);
}

static err make_element(maker *m, const cql_term *term, cass_expression *e) {
    TRY(make_items(m, term, e));
    const cql_type *type = e->types[0];
    if (!type || !(type->kind == CQL_MAP || type->kind == CQL_SET)) {
        return op_fail(m->o, E_BAD_REQUEST, "Element selection is only allowed on sets and maps");
    }
    TRY(receive_key(m, e, 1, type->inner[0]));
    TRY(check_typed(m, e));
    e->kind = IS_ELEMENT;
    e->type = type->inner[type->kind == CQL_MAP ? 1 : 0];
    return OK;
}

/* m[from..to] of a set or map; each end may be open. */
static err make_slice(maker *m, const cql_term *term, cass_expression *e) {
    cql_term given = *term;
    given.items = arena_array(m->o->arena, const cql_term *, 3);
    given.n = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (term->items[i]) {
            e->index |= i == 1 ? SLICE_FROM : i == 2 ? SLICE_TO : 0;
            given.items[given.n++] = term->items[i];
        }
    }
    TRY(make_items(m, &given, e));
    const cql_type *type = e->types[0];
    if (!type || !(type->kind == CQL_MAP || type->kind == CQL_SET)) {
        return op_fail(m->o, E_BAD_REQUEST, "Slice selection is only allowed on sets and maps");
    }
    for (uint32_t i = 1; i < e->n; i++) {
        TRY(receive_key(m, e, i, type->inner[0]));
    }
    TRY(check_typed(m, e));
    e->kind = IS_SLICE;
    e->type = type;
    return OK;
}

static err make_arithmetic(maker *m, const cql_term *term, cass_expression *e) {
    TRY(make_items(m, term, e));
    e->kind = term->kind == CQL_TERM_NEGATE ? IS_NEGATE : IS_ARITHMETIC;
    e->term = term;
    for (uint32_t i = 0; i < e->n; i++) { /* a marker is of the other side's type */
        TRY(receive(m, e->items[i], e->types[e->n - 1 - i]));
        e->types[i] = e->items[i]->type;
    }
    TRY(check_typed(m, e));
    if (e->kind == IS_NEGATE) {
        e->type = e->types[0];
        return OK;
    }
    return cql_arithmetic_type(m->o, term->kind, e->types[0], e->types[1], &e->type);
}

static err make_term(maker *m, const cql_term *term, const cql_type *wanted, cass_expression *e) {
    e->kind = IS_TERM;
    e->term = term;
    TRY(cql_term_type(m->o, m->types, term, &e->type));
    e->type = e->type ? e->type : wanted;
    if (!e->type) {
        return OK; /* its place decides */
    }
    return cql_term_prepare(m->o, m->types, term, &(cql_receiver){.name = SLICE_LIT("[selection]"), .type = e->type}, m->markers);
}

static err make(maker *m, const cql_term *term, const cql_type *wanted, cass_expression **expression_out) {
    cass_expression *e = *expression_out = arena_new(m->o->arena, cass_expression);
    switch (term->kind) {
    case CQL_TERM_COLUMN:
        return make_column(m, term->name, e);
    case CQL_TERM_WRITETIME:
    case CQL_TERM_MAXWRITETIME:
    case CQL_TERM_TTL:
        return make_stamp(m, term, e);
    case CQL_TERM_FUNCTION:
        return make_call(m, term, wanted, e);
    case CQL_TERM_CAST:
        TRY(make_items(m, term, e));
        TRY(check_typed(m, e));
        e->kind = IS_CAST;
        return cql_type_resolve(m->o, m->types, term->type, &e->type);
    case CQL_TERM_FIELD:
        return make_field(m, term, e);
    case CQL_TERM_ELEMENT:
        return make_element(m, term, e);
    case CQL_TERM_SLICE:
        return make_slice(m, term, e);
    case CQL_TERM_NEGATE:
    case CQL_TERM_ADD:
    case CQL_TERM_SUBTRACT:
    case CQL_TERM_MULTIPLY:
    case CQL_TERM_DIVIDE:
    case CQL_TERM_MODULO:
        return make_arithmetic(m, term, e);
    default:
        return make_term(m, term, wanted, e);
    }
}

static slice name_of(maker *m, const cql_selector *s) {
    if (s->alias.n) {
        return s->alias;
    }
    buf out = buf_init(BUF_NO_LIMIT);
    cql_term_name(&out, s->term);
    slice name = arena_copy(m->o->arena, buf_view(&out));
    buf_free(&out);
    return name;
}

static err make_all(maker *m, const cql_select *select, cass_result_column *columns) {
    for (uint32_t i = 0; i < select->selectors_n; i++) {
        cass_expression *e;
        TRY(make(m, select->selectors[i].term, NULL, &e));
        if (!e->type) {
            TRY(receive(m, e, cql_type_of(CQL_TEXT)));
        }
        columns[i] = (cass_result_column){.name = name_of(m, &select->selectors[i]), .type = e->type, .expression = e};
    }
    return OK;
}

static err make_star(maker *m, cass_result_column *columns) {
    for (uint32_t i = 0; i < m->t->table.n; i++) {
        cass_expression *e = arena_new(m->o->arena, cass_expression);
        TRY(make_column(m, m->t->table.columns[i].name, e));
        columns[i] = (cass_result_column){.name = m->t->table.columns[i].name, .type = e->type, .expression = e};
    }
    return OK;
}

static const uint32_t *plain_columns(op *o, const cass_selection *s) {
    uint32_t *plain = arena_array(o->arena, uint32_t, s->n ? s->n : 1);
    bool all = !s->json;
    for (uint32_t i = 0; i < s->n && all; i++) {
        all = s->columns[i].expression->kind == IS_COLUMN;
        plain[i] = s->columns[i].expression->index;
    }
    return all ? plain : NULL;
}

err cass_selection_make(op *o, const cass_table *t, const cql_select *select, const cql_type_source *types, cql_receiver *markers,
                        const cass_selection **selection_out) {
    cass_selection *s = arena_new(o->arena, cass_selection);
    uint32_t n = select->star ? t->table.n : select->selectors_n;
    cass_result_column *columns = arena_array(o->arena, cass_result_column, n ? n : 1);
    maker m = {.o = o,
               .t = t,
               .types = types,
               .markers = markers,
               .selection = s,
               .needed = arena_array(o->arena, bool, t->table.n),
               .aggregates = arena_array(o->arena, const cass_expression *, AGGREGATES_MAX)};
    *s = (cass_selection){.table = t, .columns = columns, .n = n, .json = select->json, .needed = m.needed, .aggregates = m.aggregates};
    TRY(select->star ? make_star(&m, columns) : make_all(&m, select, columns));
    s->aggregates_n = m.aggregates_n;
    s->plain = plain_columns(o, s);
    *selection_out = s;
    return OK;
}

/* ---- evaluating ---- */

int64_t cass_token_of_row(op *o, const cass_table *t, const cass_row *row) {
    cql_value *key = arena_array(o->arena, cql_value, t->table.partition_n);
    buf bytes = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < t->table.partition_n; i++) {
        key[i] = row->cells[i].value;
    }
    bool good = cql_partition_bytes(&bytes, key, t->table.partition_n);
    int64_t token = good ? cql_token(buf_view(&bytes)) : 0;
    buf_free(&bytes);
    return token;
}

static err evaluate_stamp(const cass_scope *s, const cass_expression *e, cql_value *v) {
    const cass_cell *c = &s->row->cells[e->index];
    *v = cql_value_null();
    if (!c->there || c->dead || c->value.null) {
        return OK;
    }
    if (e->kind == IS_WRITETIME) {
        *v = cql_value_bigint(s->o->arena, c->stamp.us);
    } else if (c->stamp.ttl) {
        *v = cql_value_int(s->o->arena, (int32_t)(c->stamp.expires_s - s->now_s));
    }
    return OK;
}

static err evaluate_items(const cass_scope *s, const cass_expression *e, cql_value **values_out) {
    cql_value *values = arena_array(s->o->arena, cql_value, e->n ? e->n : 1);
    for (uint32_t i = 0; i < e->n; i++) {
        TRY(cass_evaluate(s, e->items[i], &values[i]));
    }
    *values_out = values;
    return OK;
}

static err evaluate_element(const cass_scope *s, const cass_expression *e, cql_value *v) {
    cql_value *of, key, value = cql_value_null();
    cql_elements walk;
    const cql_type *type;
    bool map = e->types[0]->kind == CQL_MAP;
    TRY(evaluate_items(s, e, &of));
    *v = cql_value_null();
    for (cql_elements_init(&walk, e->types[0], of[0]); cql_elements_next(&walk, &key, &type);) {
        bool good = !map || cql_elements_next(&walk, &value, &type);
        if (good && cql_compare(e->types[0]->inner[0], key, of[1]) == 0) {
            *v = map ? value : key;
            return OK;
        }
    }
    return OK;
}

static err evaluate_slice(const cass_scope *s, const cass_expression *e, cql_value *v) {
    cql_value *of, key;
    cql_elements walk;
    const cql_type *type, *keys = e->type->inner[0];
    bool map = e->type->kind == CQL_MAP;
    uint32_t n = 0;
    TRY(evaluate_items(s, e, &of));
    *v = cql_value_null();
    if (!cql_elements_init(&walk, e->type, of[0])) {
        return OK;
    }
    if (!arena_fits(s->o->arena, walk.n * sizeof(cql_value))) {
        return budget_error(s->o->budget);
    }
    cql_value *kept = arena_array(s->o->arena, cql_value, walk.n + 1);
    while (cql_elements_next(&walk, &key, &type)) {
        bool within = (!(e->index & SLICE_FROM) || cql_compare(keys, key, of[1]) >= 0) &&
                      (!(e->index & SLICE_TO) || cql_compare(keys, key, of[e->n - 1]) <= 0);
        kept[n] = key;
        if (map && !cql_elements_next(&walk, &kept[n + 1], &type)) {
            break;
        }
        n += within ? 1 + map : 0;
    }
    bool none = !n && cql_type_is_multicell(e->type); /* such a collection without elements is not there */
    return none || cql_value_collect(s->o->arena, e->type, kept, n, v) ? OK : budget_error(s->o->budget);
}

static err evaluate_field(const cass_scope *s, const cass_expression *e, cql_value *v) {
    cql_value *of;
    cql_elements walk;
    const cql_type *type;
    TRY(evaluate_items(s, e, &of));
    cql_elements_init(&walk, e->types[0], of[0]);
    for (uint32_t i = 0; cql_elements_next(&walk, v, &type); i++) {
        if (i == e->index) {
            return OK;
        }
    }
    *v = cql_value_null();
    return OK;
}

err cass_evaluate(const cass_scope *s, const cass_expression *e, cql_value *v) {
    cql_value *items;
    switch (e->kind) {
    case IS_COLUMN:
        *v = s->row->cells[e->index].value;
        return OK;
    case IS_WRITETIME:
    case IS_TTL_OF:
        return evaluate_stamp(s, e, v);
    case IS_TERM:
        return cql_term_value(s->o, s->run, e->term, &(cql_receiver){.name = SLICE_LIT("[selection]"), .type = e->type}, v);
    case IS_TOKEN:
        *v = cql_value_bigint(s->o->arena, cass_token_of_row(s->o, s->table, s->row));
        return OK;
    case IS_CALL:
        TRY(evaluate_items(s, e, &items));
        return cql_function_call(s->o, s->run, e->function, e->types, items, e->n, e->type, v);
    case IS_CAST:
        TRY(evaluate_items(s, e, &items));
        return cql_cast(s->o, e->types[0], e->type, items[0], v);
    case IS_ARITHMETIC:
        TRY(evaluate_items(s, e, &items));
        return cql_arithmetic(s->o, e->term->kind, e->types[0], items[0], e->types[1], items[1], e->type, v);
    case IS_NEGATE:
        TRY(evaluate_items(s, e, &items));
        return cql_negate(s->o, e->type, items[0], v);
    case IS_FIELD:
        return evaluate_field(s, e, v);
    case IS_ELEMENT:
        return evaluate_element(s, e, v);
    case IS_SLICE:
        return evaluate_slice(s, e, v);
    case IS_AGGREGATE:
        *v = s->aggregated[e->index];
        return OK;
    }
    return OK;
}

/* ---- results ---- */

void cass_metadata_put(buf *out, const cass_selection *s, unsigned version) {
    cass_put_string(out, s->table->table.keyspace);
    cass_put_string(out, s->table->table.name);
    if (s->json) {
        cass_put_string(out, SLICE_LIT("[json]"));
        cql_type_encode(out, cql_type_of(CQL_TEXT), version);
        return;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        cass_put_string(out, s->columns[i].name);
        cql_type_encode(out, s->columns[i].type, version);
    }
}

static void put_json_name(buf *out, slice name) {
    bool plain = true;
    for (size_t i = 0; i < name.n; i++) {
        plain = plain && !(name.p[i] >= 'A' && name.p[i] <= 'Z');
    }
    slice shown = name;
    if (!plain) { /* a name that CQL needs in quotes has them in JSON too */
        buf quoted = buf_init(BUF_NO_LIMIT);
        buf_add_byte(&quoted, '"');
        buf_add_slice(&quoted, name);
        buf_add_byte(&quoted, '"');
        cql_json_write(out, cql_type_of(CQL_TEXT), cql_value_text(buf_view(&quoted)));
        buf_free(&quoted);
        return;
    }
    cql_json_write(out, cql_type_of(CQL_TEXT), cql_value_text(shown));
}

static err put_json(const cass_scope *s, const cass_selection *selection, buf *out) {
    buf json = buf_init_counted(BUF_NO_LIMIT, s->o->budget);
    err code = OK;
    buf_add_byte(&json, '{');
    for (uint32_t i = 0; code == OK && i < selection->n; i++) {
        cql_value v;
        if (i) {
            buf_add_lit(&json, ", ");
        }
        put_json_name(&json, selection->columns[i].name);
        buf_add_lit(&json, ": ");
        code = cass_evaluate(s, selection->columns[i].expression, &v);
        if (code == OK) {
            cql_json_write(&json, selection->columns[i].type, v);
        }
    }
    buf_add_byte(&json, '}');
    cass_put_bytes(out, buf_view(&json));
    buf_free(&json);
    return code;
}

err cass_result_row_put(const cass_scope *s, const cass_selection *selection, buf *out) {
    if (selection->json) {
        return put_json(s, selection, out);
    }
    for (uint32_t i = 0; i < selection->n; i++) {
        cql_value v;
        TRY(cass_evaluate(s, selection->columns[i].expression, &v));
        cql_value_encode(out, v);
    }
    return OK;
}

/* ---- groups ---- */

err cass_gathering_init(op *o, const cass_selection *s, cass_gathering *g) {
    *g = (cass_gathering){.states = arena_array(o->arena, cql_aggregate, s->aggregates_n ? s->aggregates_n : 1)};
    for (uint32_t i = 0; i < s->aggregates_n; i++) {
        const cass_expression *e = s->aggregates[i];
        const cql_type *returns;
        TRY(cql_aggregate_init(o, &g->states[i], e->name, e->n ? e->items[0]->type : NULL, &returns));
    }
    cass_row_init(o, s->table, &g->first);
    return OK;
}

static cql_value kept(op *o, cql_value v) {
    return cql_value_is_null(v) ? v : cql_value_of(arena_copy(o->arena, v.bytes));
}

err cass_gathering_add(op *o, const cass_scope *s, const cass_selection *selection, cass_gathering *g) {
    if (!g->any) {
        for (uint32_t i = 0; i < s->table->table.n; i++) {
            g->first.cells[i] = s->row->cells[i];
            g->first.cells[i].value = kept(o, s->row->cells[i].value);
        }
        g->any = true;
    }
    for (uint32_t i = 0; i < selection->aggregates_n; i++) {
        const cass_expression *e = selection->aggregates[i];
        cql_value v = cql_value_null();
        if (e->n) {
            TRY(cass_evaluate(s, e->items[0], &v));
        }
        TRY(cql_aggregate_add(o, &g->states[i], v));
        if (g->states[i].value.bytes.p == v.bytes.p && v.bytes.n) { /* the row's bytes do not outlive the row */
            g->states[i].value = kept(o, v);
        }
    }
    return OK;
}

err cass_gathering_put(op *o, const cass_scope *s, const cass_selection *selection, const cass_gathering *g, buf *out) {
    cql_value *results = arena_array(o->arena, cql_value, selection->aggregates_n ? selection->aggregates_n : 1);
    cass_scope of_group = *s;
    for (uint32_t i = 0; i < selection->aggregates_n; i++) {
        TRY(cql_aggregate_result(o, &g->states[i], &results[i]));
    }
    of_group.o = o;
    of_group.row = &g->first;
    of_group.aggregated = results;
    return cass_result_row_put(&of_group, selection, out);
}
