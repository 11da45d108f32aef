#include "api/cassandra/statement.h"

const cql_table_name *cass_table_name_of(const cql_statement *tree) {
    switch (tree->verb) {
    case CQL_SELECT:
        return &tree->select.table;
    case CQL_INSERT:
        return &tree->insert.table;
    case CQL_UPDATE:
        return &tree->update.table;
    case CQL_DELETE:
        return &tree->delete.table;
    default:
        return NULL;
    }
}

typedef struct analysis {
    op *o;
    const cass_table *t;
    cass_types types;
    cass_statement *s;
} analysis;

static const cql_type_source *types_of(const analysis *a) {
    return &a->types.source;
}

static err find_column(const analysis *a, slice name, const cql_column **column_out) {
    *column_out = cql_table_column(&a->t->table, name);
    return *column_out ? OK : op_fail(a->o, E_BAD_REQUEST, "Undefined column name %.*s", slice_shown(name), name.p);
}

static err prepare_term(const analysis *a, const cql_term *term, slice name, const cql_type *type) {
    return term ? cql_term_prepare(a->o, types_of(a), term, &(cql_receiver){.name = name, .type = type}, a->s->markers) : OK;
}

static err restrict_where(analysis *a, const cql_relation *where, uint32_t n, cql_restrict_for purpose, bool filtering, bool distinct,
                          bool static_only) {
    cql_restrict_input input = {.table = &a->t->table,
                                .where = where,
                                .where_n = n,
                                .purpose = purpose,
                                .allow_filtering = filtering,
                                .distinct = distinct,
                                .selects_static_only = static_only,
                                .types = types_of(a),
                                .markers = a->s->markers};
    return cql_restrict(a->o, &input, &a->s->where);
}

/* ---- SELECT ---- */

static void need_filters(analysis *a, bool *needed) {
    const cass_statement *s = a->s;
    const cql_select *select = &s->tree->select;
    for (uint32_t i = 0; i < select->where_n; i++) {
        for (uint32_t k = 0; k < select->where[i].columns_n; k++) {
            const cql_column *c = cql_table_column(&a->t->table, select->where[i].columns[k]);
            if (c) {
                needed[cass_column_index(a->t, c)] = true;
                a->s->uses_static = a->s->uses_static || c->kind == CQL_COLUMN_STATIC;
            }
        }
    }
}

static bool is_key(const cql_column *c) {
    return c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING;
}

#define GROUP_ORDER "Group by currently only support groups of columns following their declared order in the PRIMARY KEY"

/* Whether one value is given for a key column, so that GROUP BY may leave it out. */
static bool is_fixed(const analysis *a, uint32_t at) {
    const cql_select *select = &a->s->tree->select;
    for (uint32_t i = 0; i < select->where_n; i++) {
        const cql_relation *r = &select->where[i];
        for (uint32_t k = 0; r->op == CQL_EQ && r->kind != CQL_RELATION_TOKEN && r->kind != CQL_RELATION_FUNCTION && k < r->columns_n;
             k++) {
            if (slice_eq(r->columns[k], a->t->table.columns[at].name)) {
                return true;
            }
        }
    }
    return false;
}

/* GROUP BY: key columns in their order, with the whole partition key; those that = fixes may be left out. */
static err read_group(analysis *a) {
    const cql_select *select = &a->s->tree->select;
    uint32_t *group = arena_array(a->o->arena, uint32_t, select->group_n + 1);
    uint32_t next = 0;
    for (uint32_t i = 0; i < select->group_n; i++) {
        const cql_column *c;
        if (select->group[i]->kind != CQL_TERM_COLUMN) {
            return op_fail(a->o, E_BAD_REQUEST, GROUP_ORDER);
        }
        TRY(find_column(a, select->group[i]->name, &c));
        if (!is_key(c)) {
            return op_fail(a->o, E_BAD_REQUEST, "Group by is currently only supported on the columns of the PRIMARY KEY, got %.*s",
                           slice_shown(c->name), c->name.p);
        }
        group[i] = cass_column_index(a->t, c);
        for (; next < group[i]; next++) {
            if (!is_fixed(a, next)) {
                return op_fail(a->o, E_BAD_REQUEST, GROUP_ORDER);
            }
        }
        if (next++ > group[i]) {
            return op_fail(a->o, E_BAD_REQUEST, GROUP_ORDER);
        }
    }
    if (select->group_n && next < a->t->table.partition_n) {
        return op_fail(a->o, E_BAD_REQUEST, "Group by is not supported on only a part of the partition key");
    }
    a->s->group = group;
    a->s->group_n = select->group_n;
    return OK;
}

static err read_order(analysis *a) {
    const cql_select *select = &a->s->tree->select;
    uint32_t next = a->t->table.partition_n;
    bool reversed = false;
    if (!select->order_n) {
        return OK;
    }
    if (!a->s->where.whole_partition_key) {
        return op_fail(a->o, E_BAD_REQUEST, "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.");
    }
    if (a->s->where.uses_index && !a->s->where.whole_partition_key) {
        return op_fail(a->o, E_BAD_REQUEST, "ORDER BY with 2ndary indexes is not supported.");
    }
    for (uint32_t i = 0; i < select->order_n; i++) {
        const cql_column *c;
        TRY(find_column(a, select->order[i].column, &c));
        if (c->kind != CQL_COLUMN_CLUSTERING) {
            return op_fail(a->o, E_BAD_REQUEST,
                           "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got %.*s",
                           slice_shown(c->name), c->name.p);
        }
        while (next < cass_column_index(a->t, c) && next - a->t->table.partition_n < a->s->where.clustering_n) {
            next++; /* = fixes it */
        }
        bool against = select->order[i].descending != c->descending;
        if (next != cass_column_index(a->t, c)) {
            return op_fail(a->o, E_BAD_REQUEST,
                           "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY");
        }
        if (i && against != reversed) {
            return op_fail(a->o, E_BAD_REQUEST, "Unsupported order by relation");
        }
        reversed = against;
        next++;
    }
    a->s->backward = reversed;
    a->s->sorts = a->s->where.partition_in;
    return OK;
}

static err check_distinct(analysis *a) {
    const cql_select *select = &a->s->tree->select;
    for (uint32_t i = 0; select->distinct && i < a->t->table.n; i++) {
        const cql_column *c = &a->t->table.columns[i];
        if (a->s->selection->needed[i] && c->kind != CQL_COLUMN_PARTITION && c->kind != CQL_COLUMN_STATIC) {
            return op_fail(a->o, E_BAD_REQUEST,
                           "SELECT DISTINCT queries must only request partition key columns and/or static columns (not %.*s)",
                           slice_shown(c->name), c->name.p);
        }
    }
    for (uint32_t i = 0; select->distinct && i < a->t->table.partition_n; i++) {
        slice name = a->t->table.columns[i].name;
        if (!a->s->selection->needed[i]) {
            return op_fail(a->o, E_BAD_REQUEST, "SELECT DISTINCT queries must request all the partition key columns (missing %.*s)",
                           slice_shown(name), name.p);
        }
    }
    return OK;
}

static bool selects_static_only(const analysis *a) {
    bool any = false;
    for (uint32_t i = 0; i < a->t->table.n; i++) {
        cql_column_kind kind = a->t->table.columns[i].kind;
        if (a->s->selection->needed[i] && (kind == CQL_COLUMN_CLUSTERING || kind == CQL_COLUMN_REGULAR)) {
            return false;
        }
        any = any || (a->s->selection->needed[i] && kind == CQL_COLUMN_STATIC);
    }
    return any;
}

static err analyse_select(analysis *a) {
    const cql_select *select = &a->s->tree->select;
    const cql_type *number = cql_type_of(CQL_INT);
    TRY(cass_selection_make(a->o, a->t, select, types_of(a), a->s->markers, &a->s->selection));
    TRY(check_distinct(a));
    if (!a->t->system) {
        TRY(restrict_where(a, select->where, select->where_n, CQL_FOR_SELECT, select->allow_filtering, select->distinct,
                           selects_static_only(a)));
    } else {
        TRY(restrict_where(a, select->where, select->where_n, CQL_FOR_SELECT, true, select->distinct, false));
    }
    TRY(prepare_term(a, select->limit, SLICE_LIT("[limit]"), number));
    TRY(prepare_term(a, select->partition_limit, SLICE_LIT("[per_partition_limit]"), number));
    TRY(read_group(a));
    TRY(a->t->system ? OK : read_order(a));
    bool *needed = arena_array(a->o->arena, bool, a->t->table.n);
    memcpy(needed, a->s->selection->needed, a->t->table.n);
    a->s->uses_static = a->s->selection->uses_static;
    need_filters(a, needed);
    for (uint32_t i = 0; i < a->t->table.partition_n + (a->s->sorts || a->s->group_n ? a->t->table.clustering_n : 0); i++) {
        needed[i] = true; /* where a partition ends, and groups */
    }
    a->s->needed = needed;
    return OK;
}

/* ---- writes ---- */

static err check_conditions(analysis *a, const cql_if *ifs) {
    for (uint32_t i = 0; i < ifs->n; i++) {
        const cql_column *c;
        TRY(cql_condition_prepare(a->o, types_of(a), &a->t->table, &ifs->conditions[i], a->s->markers, &c));
        a->s->writes_static = a->s->writes_static || c->kind == CQL_COLUMN_STATIC;
        a->s->writes_regular = a->s->writes_regular || c->kind == CQL_COLUMN_REGULAR;
    }
    if (ifs->n && a->s->writes_static && a->s->writes_regular) {
        return op_fail(a->o, E_BAD_REQUEST,
                       "Conditions and assignments containing combination of Static and Regular columns are not supported.");
    }
    return OK;
}

static err check_using(analysis *a, const cql_using *usings) {
    TRY(prepare_term(a, usings->timestamp, SLICE_LIT("[timestamp]"), cql_type_of(CQL_BIGINT)));
    return prepare_term(a, usings->ttl, SLICE_LIT("[ttl]"), cql_type_of(CQL_INT));
}

static void note_kind(analysis *a, const cql_column *c) {
    a->s->writes_static = a->s->writes_static || c->kind == CQL_COLUMN_STATIC;
    a->s->writes_regular = a->s->writes_regular || c->kind == CQL_COLUMN_REGULAR;
    a->s->counts = a->s->counts || c->type->kind == CQL_COUNTER;
}

static err plan_change(analysis *a, const cql_column *c, cass_assign_kind kind, const cql_term *value, const cql_type *type,
                       cass_change_plan *p) {
    *p = (cass_change_plan){
        .kind = kind, .column = cass_column_index(a->t, c), .value = value, .value_receiver = {.name = c->name, .type = type}};
    note_kind(a, c);
    return prepare_term(a, value, c->name, type);
}

static err analyse_insert(analysis *a) {
    const cql_insert *insert = &a->s->tree->insert;
    uint32_t keys = a->t->table.partition_n + a->t->table.clustering_n;
    cass_change_plan *changes = arena_array(a->o->arena, cass_change_plan, insert->n + 1);
    a->s->key_terms = arena_array(a->o->arena, const cql_term *, keys);
    a->s->changes = changes;
    if (a->t->counters) {
        return op_fail(a->o, E_BAD_REQUEST, "INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    bool *given = arena_array(a->o->arena, bool, a->t->table.n);
    for (uint32_t i = 0; i < insert->n; i++) {
        const cql_column *c;
        TRY(find_column(a, insert->columns[i], &c));
        if (given[cass_column_index(a->t, c)]) {
            return op_fail(a->o, E_BAD_REQUEST, "The column names contains duplicates");
        }
        given[cass_column_index(a->t, c)] = true;
        if (is_key(c)) {
            a->s->key_terms[cass_column_index(a->t, c)] = insert->values[i];
            TRY(prepare_term(a, insert->values[i], c->name, c->type));
        } else {
            TRY(plan_change(a, c, CASS_ASSIGN_SET, insert->values[i], c->type, &changes[a->s->changes_n++]));
        }
    }
    bool static_only = a->s->writes_static && !a->s->writes_regular;
    for (uint32_t i = 0; !insert->json && i < keys; i++) {
        slice name = a->t->table.columns[i].name;
        bool may_lack = i >= a->t->table.partition_n && static_only;
        if (!a->s->key_terms[i] && !may_lack) {
            return op_fail(a->o, E_BAD_REQUEST, "Some %s are missing: %.*s",
                           i < a->t->table.partition_n ? "partition key parts" : "clustering keys", slice_shown(name), name.p);
        }
    }
    TRY(prepare_term(a, insert->json, SLICE_LIT("[json]"), cql_type_of(CQL_TEXT)));
    TRY(check_using(a, &insert->usings));
    return check_conditions(a, &insert->ifs);
}

static err plan_element(analysis *a, const cql_column *c, const cql_term *key, const cql_term *value, cass_change_plan *p) {
    const cql_type *type = c->type;
    if (!cql_type_is_multicell(type) || type->kind == CQL_UDT || (type->kind == CQL_SET && value)) {
        return op_fail(a->o, E_BAD_REQUEST, "Invalid operation (%.*s[…]) for %s column %.*s", slice_shown(c->name), c->name.p,
                       type->frozen ? "frozen collection" : "non collection", slice_shown(c->name), c->name.p);
    }
    TRY(plan_change(a, c, CASS_ASSIGN_ELEMENT, value, type->inner[type->kind == CQL_MAP ? 1 : 0], p));
    p->key = key;
    p->key_receiver = (cql_receiver){.name = c->name, .type = type->kind == CQL_LIST ? cql_type_of(CQL_INT) : type->inner[0]};
    return prepare_term(a, key, c->name, p->key_receiver.type);
}

static err plan_field(analysis *a, const cql_column *c, slice field, const cql_term *value, cass_change_plan *p) {
    for (uint32_t i = 0; c->type->kind == CQL_UDT && !c->type->frozen && i < c->type->n; i++) {
        if (slice_eq(c->type->fields[i], field)) {
            TRY(plan_change(a, c, CASS_ASSIGN_ELEMENT, value, c->type->inner[i], p));
            p->fixed_key = cql_value_smallint(a->o->arena, (int16_t)i);
            p->has_fixed_key = true;
            return OK;
        }
    }
    return op_fail(a->o, E_BAD_REQUEST, "UDT column %.*s does not have a field named %.*s, or is frozen", slice_shown(c->name), c->name.p,
                   slice_shown(field), field.p);
}

/* c = c + v and its kin. */
static err plan_operation(analysis *a, const cql_column *c, const cql_assignment *s, cass_change_plan *p) {
    const cql_type *type = c->type;
    bool multicell = cql_type_is_multicell(type) && type->kind != CQL_UDT;
    if (type->kind != CQL_COUNTER && !multicell) {
        return op_fail(a->o, E_BAD_REQUEST, "Invalid operation (%.*s = %.*s %s …) for non counter column %.*s", slice_shown(c->name),
                       c->name.p, slice_shown(c->name), c->name.p, s->kind == CQL_ASSIGN_REMOVE ? "-" : "+", slice_shown(c->name),
                       c->name.p);
    }
    if (s->kind == CQL_ASSIGN_PREPEND && type->kind != CQL_LIST) {
        return op_fail(a->o, E_BAD_REQUEST, "Invalid operation for non list column %.*s", slice_shown(c->name), c->name.p);
    }
    const cql_type *value = type->kind == CQL_COUNTER                               ? cql_type_of(CQL_BIGINT)
                            : type->kind == CQL_MAP && s->kind == CQL_ASSIGN_REMOVE ? cql_type_set(a->o->arena, type->inner[0], false)
                                                                                    : type;
    cass_assign_kind kind = s->kind == CQL_ASSIGN_ADD      ? CASS_ASSIGN_ADD
                            : s->kind == CQL_ASSIGN_REMOVE ? CASS_ASSIGN_REMOVE
                                                           : CASS_ASSIGN_PREPEND;
    return plan_change(a, c, kind, s->value, value, p);
}

static err plan_assignment(analysis *a, const cql_assignment *s, cass_change_plan *p) {
    const cql_column *c;
    TRY(find_column(a, s->column, &c));
    if (is_key(c)) {
        return op_fail(a->o, E_BAD_REQUEST, "PRIMARY KEY part %.*s found in SET part", slice_shown(c->name), c->name.p);
    }
    switch (s->kind) {
    case CQL_ASSIGN:
        if (c->type->kind == CQL_COUNTER) {
            return op_fail(a->o, E_BAD_REQUEST,
                           "Cannot set the value of counter column %.*s (counters can only be incremented/decremented, not set)",
                           slice_shown(c->name), c->name.p);
        }
        return plan_change(a, c, CASS_ASSIGN_SET, s->value, c->type, p);
    case CQL_ASSIGN_ELEMENT:
        return plan_element(a, c, s->key, s->value, p);
    case CQL_ASSIGN_FIELD:
        return plan_field(a, c, s->field, s->value, p);
    default:
        return plan_operation(a, c, s, p);
    }
}

static err check_where_of_write(analysis *a, bool whole_row) {
    const cql_restrictions *r = &a->s->where;
    const cql_table *table = &a->t->table;
    if (!r->whole_partition_key) {
        return op_fail(a->o, E_BAD_REQUEST, "Some partition key parts are missing");
    }
    if (whole_row && r->clustering_n < table->clustering_n) {
        slice name = table->columns[table->partition_n + r->clustering_n].name;
        return op_fail(a->o, E_BAD_REQUEST, "Some clustering keys are missing: %.*s", slice_shown(name), name.p);
    }
    return OK;
}

static err analyse_update(analysis *a) {
    const cql_update *update = &a->s->tree->update;
    cass_change_plan *changes = arena_array(a->o->arena, cass_change_plan, update->assignments_n + 1);
    a->s->changes = changes;
    for (uint32_t i = 0; i < update->assignments_n; i++) {
        TRY(plan_assignment(a, &update->assignments[i], &changes[a->s->changes_n++]));
    }
    TRY(check_using(a, &update->usings));
    bool static_only = a->s->writes_static && !a->s->writes_regular;
    TRY(restrict_where(a, update->where, update->where_n, CQL_FOR_UPDATE, false, false, static_only));
    TRY(check_where_of_write(a, !static_only));
    return check_conditions(a, &update->ifs);
}

static err analyse_delete(analysis *a) {
    const cql_delete *delete = &a->s->tree->delete;
    cass_change_plan *changes = arena_array(a->o->arena, cass_change_plan, delete->deletions_n + 1);
    a->s->changes = changes;
    for (uint32_t i = 0; i < delete->deletions_n; i++) {
        const cql_deletion *d = &delete->deletions[i];
        const cql_column *c;
        TRY(find_column(a, d->column, &c));
        if (is_key(c)) {
            return op_fail(a->o, E_BAD_REQUEST, "Invalid identifier %.*s for deletion (should not be a PRIMARY KEY part)",
                           slice_shown(c->name), c->name.p);
        }
        cass_change_plan *p = &changes[a->s->changes_n++];
        TRY(d->key       ? plan_element(a, c, d->key, NULL, p)
            : d->field.n ? plan_field(a, c, d->field, NULL, p)
                         : plan_change(a, c, CASS_ASSIGN_SET, NULL, c->type, p));
    }
    TRY(check_using(a, &delete->usings));
    bool static_only = a->s->writes_static && !a->s->writes_regular;
    TRY(restrict_where(a, delete->where, delete->where_n, CQL_FOR_DELETE, false, false, static_only));
    TRY(check_where_of_write(a, delete->deletions_n && !static_only));
    a->s->writes_regular = a->s->writes_regular || !delete->deletions_n;
    return check_conditions(a, &delete->ifs);
}

err cass_analyse(op *o, const cass_table *t, const cql_statement *tree, cql_receiver *markers, cass_statement *s) {
    analysis a = {.o = o, .t = t, .s = s};
    *s = (cass_statement){.tree = tree, .table = t, .markers = markers, .markers_n = tree->markers_n};
    cass_types_init(&a.types, o->arena, t->table.keyspace, t->types.types);
    switch (tree->verb) {
    case CQL_SELECT:
        return analyse_select(&a);
    case CQL_INSERT:
        return analyse_insert(&a);
    case CQL_UPDATE:
        return analyse_update(&a);
    case CQL_DELETE:
        return analyse_delete(&a);
    default:
        return op_fail(o, E_BAD_REQUEST, "%s cannot be part of a batch", cql_verb_text(tree->verb));
    }
}

bool cass_partition_markers(const cass_statement *s, uint16_t *indexes_out) {
    for (uint32_t i = 0; i < s->table->table.partition_n; i++) {
        const cql_relation *r = s->where.partition ? s->where.partition[i] : NULL;
        const cql_term *term = s->key_terms ? s->key_terms[i] : r && r->op == CQL_EQ ? r->value : NULL;
        if (!term || term->kind != CQL_TERM_BIND) {
            return false;
        }
        indexes_out[i] = (uint16_t)term->index;
    }
    return true;
}
