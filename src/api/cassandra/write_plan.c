#include "api/cassandra/write.h"

#include "doc/json.h"

typedef struct planner {
    op *o;
    const cass_write_input *in;
    const cass_statement *s;
    const cass_table *t;
    cass_targets *targets;
    cass_mutation base;
    cass_mutation statics; /* of the base the assignments to static columns, which are in an item of their own */
    cass_mutation regular; /* … and the others */
} planner;

static err value_of(planner *p, const cql_term *term, const cql_receiver *receiver, cql_value *v) {
    return cql_term_value(p->o, p->in->run, term, receiver, v);
}

/* ---- USING ---- */

enum { TTL_MAX = 20 * 365 * 24 * 60 * 60 };

static err read_using(planner *p, const cql_using *usings) {
    cql_receiver timestamp = {.name = SLICE_LIT("[timestamp]"), .type = cql_type_of(CQL_BIGINT)};
    cql_receiver ttl = {.name = SLICE_LIT("[ttl]"), .type = cql_type_of(CQL_INT)};
    cql_value v;
    p->base.us = p->in->us;
    p->base.ttl = p->t->default_ttl;
    if (usings->timestamp) {
        if (p->in->us_is_given) {
            return op_fail(p->o, E_BAD_REQUEST, "Timestamp must be set either on BATCH or individual statements");
        }
        if (cass_mutation_is_conditional(&p->base)) {
            return op_fail(p->o, E_BAD_REQUEST, "Cannot provide custom timestamp for conditional updates");
        }
        if (p->s->counts) {
            return op_fail(p->o, E_BAD_REQUEST, "Cannot provide custom timestamp for counter updates");
        }
        TRY(value_of(p, usings->timestamp, &timestamp, &v));
        if (!v.unset && !cql_as_bigint(v, &p->base.us)) {
            return op_fail(p->o, E_BAD_REQUEST, "Invalid null value of timestamp");
        }
        if (p->base.us == INT64_MIN) {
            return op_fail(p->o, E_BAD_REQUEST, "The timestamp is out of range.");
        }
    }
    if (usings->ttl) {
        int32_t seconds = 0;
        if (p->s->counts) {
            return op_fail(p->o, E_BAD_REQUEST, "Cannot provide custom TTL for counter updates");
        }
        TRY(value_of(p, usings->ttl, &ttl, &v));
        if (!v.unset && !v.null && (!cql_as_int(v, &seconds) || seconds < 0)) {
            return op_fail(p->o, E_BAD_REQUEST, "A TTL must be greater or equal to 0, but was %d", seconds);
        }
        if (seconds > TTL_MAX) {
            return op_fail(p->o, E_BAD_REQUEST, "ttl is too large. requested (%d) maximum (%d)", seconds, TTL_MAX);
        }
        p->base.ttl = v.unset ? p->base.ttl : seconds;
    }
    return OK;
}

/* ---- changes of columns ---- */

static err plan_value(planner *p, const cass_change_plan *c, cass_assign *a) {
    *a = (cass_assign){.column = c->column, .kind = c->kind, .key = c->fixed_key, .value = cql_value_null()};
    if (c->key) {
        TRY(value_of(p, c->key, &c->key_receiver, &a->key));
        if (cql_value_is_null(a->key)) {
            return op_fail(p->o, E_BAD_REQUEST, "Invalid null %s key",
                           p->t->table.columns[c->column].type->kind == CQL_LIST ? "list index" : "map");
        }
    }
    return c->value ? value_of(p, c->value, &c->value_receiver, &a->value) : OK;
}

/* Refuses a statement that sets a column twice, or sets it and changes its elements. */
static err check_columns(planner *p) {
    enum { CHANGED = 1, SET = 2 };
    char *seen = arena_array(p->o->arena, char, p->t->table.n);
    bool inserts = p->s->tree->verb == CQL_INSERT;
    for (uint32_t i = 0; p->s->tree->verb != CQL_DELETE && i < p->s->changes_n; i++) {
        const cass_change_plan *c = &p->s->changes[i];
        char now = c->kind == CASS_ASSIGN_SET ? SET : CHANGED;
        slice name = p->t->table.columns[c->column].name;
        if (seen[c->column] && (now | seen[c->column]) & SET) {
            return inserts ? op_fail(p->o, E_BAD_REQUEST, "The column names contains duplicates")
                           : op_fail(p->o, E_BAD_REQUEST, "Multiple incompatible setting of column %.*s", slice_shown(name), name.p);
        }
        seen[c->column] |= now;
    }
    return OK;
}

static err plan_changes(planner *p) {
    TRY(check_columns(p));
    if (!arena_fits(p->o->arena, ((size_t)p->s->changes_n + 1) * sizeof(cass_assign))) {
        return budget_error(p->o->budget);
    }
    cass_assign *assigns = arena_array(p->o->arena, cass_assign, p->s->changes_n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->s->changes_n; i++) {
        const cass_change_plan *c = &p->s->changes[i];
        TRY(plan_value(p, c, &assigns[n]));
        bool adds = c->kind == CASS_ASSIGN_ADD || c->kind == CASS_ASSIGN_REMOVE || c->kind == CASS_ASSIGN_PREPEND;
        bool nothing = assigns[n].value.unset || (adds && assigns[n].value.null);
        if (adds && assigns[n].value.null && p->t->table.columns[c->column].type->kind == CQL_COUNTER) {
            return op_fail(p->o, E_BAD_REQUEST, "Invalid null value for counter increment");
        }
        n += !nothing;
    }
    p->base.assigns = assigns;
    p->base.assigns_n = n;
    return OK;
}

/* ---- targets ---- */

static err add_target(planner *p, cass_target target) {
    cass_targets *t = p->targets;
    if (t->n == CASS_TARGETS_MAX) {
        return op_fail(p->o, E_BAD_REQUEST, "The statement changes too many rows.");
    }
    if (t->n == t->room) {
        uint32_t room = t->room ? 2 * t->room : 4;
        if (!arena_fits(p->o->arena, room * sizeof *t->list)) {
            return budget_error(p->o->budget);
        }
        cass_target *list = arena_array(p->o->arena, cass_target, room);
        if (t->n) {
            memcpy(list, t->list, t->n * sizeof *list);
        }
        t->list = list;
        t->room = room;
    }
    target.container = p->in->container;
    t->list[t->n++] = target;
    return OK;
}

/* ---- INSERT ---- */

static err read_insert_keys(planner *p, cql_value *keys, bool *whole_out) {
    uint32_t n = p->t->table.partition_n + p->t->table.clustering_n;
    *whole_out = true;
    for (uint32_t i = 0; i < n; i++) {
        const cql_column *c = &p->t->table.columns[i];
        cql_receiver receiver = {.name = c->name, .type = c->type};
        if (!p->s->key_terms[i]) {
            *whole_out = false;
            continue;
        }
        TRY(value_of(p, p->s->key_terms[i], &receiver, &keys[i]));
        if (cql_value_is_null(keys[i])) {
            return op_fail(p->o, E_BAD_REQUEST, "Invalid %s value for %s %.*s", keys[i].unset ? "unset" : "null",
                           i < p->t->table.partition_n ? "partition key part" : "clustering key part", slice_shown(c->name), c->name.p);
        }
        if (i < p->t->table.partition_n && p->t->table.partition_n == 1 && keys[i].bytes.n == 0) {
            return op_fail(p->o, E_BAD_REQUEST, "Key may not be empty");
        }
    }
    return OK;
}

static bool json_name_is(slice key, slice name) {
    if (key.n >= 2 && key.p[0] == '"' && key.p[key.n - 1] == '"') {
        return slice_eq(slice_of(key.p + 1, key.n - 2), name);
    }
    return slice_eq_nocase(key, name);
}

/* INSERT JSON: columns by name; those that it lacks are null, or stay as they are. */
static err read_json(planner *p, cql_value *keys, cass_assign *assigns, uint32_t *n_out) {
    const cql_insert *insert = &p->s->tree->insert;
    cql_receiver receiver = {.name = SLICE_LIT("[json]"), .type = cql_type_of(CQL_TEXT)};
    cql_value text;
    json_root root;
    doc_walk w;
    doc_element e;
    TRY(value_of(p, insert->json, &receiver, &text));
    if (cql_value_is_null(text)) {
        return op_fail(p->o, E_BAD_REQUEST, "Got null for INSERT JSON values");
    }
    buf bson = buf_init_counted(BUF_NO_LIMIT, p->o->budget);
    err code = json_to_bson(text.bytes, NULL, &bson, &root, NULL);
    slice document = code == OK && arena_fits(p->o->arena, bson.n) ? arena_copy(p->o->arena, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&bson);
    if (!document.n) {
        return op_fail(p->o, E_BAD_REQUEST, "Could not decode JSON string as a map: '%.*s'", slice_shown(text.bytes), text.bytes.p);
    }
    bool *given = arena_array(p->o->arena, bool, p->t->table.n);
    cql_value *values = arena_array(p->o->arena, cql_value, p->t->table.n);
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        uint32_t i = 0;
        while (i < p->t->table.n && !json_name_is(e.key, p->t->table.columns[i].name)) {
            i++;
        }
        if (i == p->t->table.n) {
            return op_fail(p->o, E_BAD_REQUEST, "JSON values map contains unrecognized column: %.*s", slice_shown(e.key), e.key.p);
        }
        given[i] = true;
        values[i] = cql_value_null();
        if (e.type != BSON_TYPE_NULL) {
            TRY(cql_json_value(p->o, p->t->table.columns[i].type, &e, &values[i]));
        }
    }
    uint32_t n = 0, keys_n = p->t->table.partition_n + p->t->table.clustering_n;
    for (uint32_t i = 0; i < p->t->table.n; i++) {
        if (i < keys_n) {
            keys[i] = given[i] ? values[i] : cql_value_null();
            if (keys[i].null) {
                slice name = p->t->table.columns[i].name;
                return op_fail(p->o, E_BAD_REQUEST, "Invalid null value in condition for column %.*s", slice_shown(name), name.p);
            }
        } else if (given[i] || !insert->default_unset) {
            assigns[n++] = (cass_assign){.column = i, .kind = CASS_ASSIGN_SET, .value = given[i] ? values[i] : cql_value_null()};
        }
    }
    *n_out = n;
    return OK;
}

static bool is_static(const planner *p, const cass_assign *a) {
    return p->t->table.columns[a->column].kind == CQL_COLUMN_STATIC;
}

static void drop_conditions(cass_mutation *m) {
    m->if_exists = m->if_not_exists = false;
    m->ifs_n = 0;
}

static void add_assign(planner *p, cass_mutation *m, cass_assign *assigns, const cass_assign *a) {
    assigns[m->assigns_n++] = *a;
    m->bytes += a->key.bytes.n + a->value.bytes.n;
    m->collections += cql_type_is_multicell(p->t->table.columns[a->column].type);
}

/* Once for all rows, which share the assignments. */
static err divide(planner *p) {
    size_t n = (size_t)p->base.assigns_n + 1;
    if (!arena_fits(p->o->arena, 2 * n * sizeof(cass_assign))) {
        return budget_error(p->o->budget);
    }
    cass_assign *statics = arena_array(p->o->arena, cass_assign, n), *regular = arena_array(p->o->arena, cass_assign, n);
    p->statics = p->regular = p->base;
    p->statics.assigns = statics;
    p->regular.assigns = regular;
    p->statics.assigns_n = p->regular.assigns_n = 0;
    p->statics.inserts = false;
    for (uint32_t i = 0; i < p->base.assigns_n; i++) {
        const cass_assign *a = &p->base.assigns[i];
        is_static(p, a) ? add_assign(p, &p->statics, statics, a) : add_assign(p, &p->regular, regular, a);
    }
    return OK;
}

/* The conditions are about the row if there is one, and about the static columns otherwise; if they are not met, neither is written. */
static err add_divided(planner *p, const cql_value *partition, const cql_value *clustering, bool row) {
    cass_target target = {.mutation = p->statics};
    uint32_t statics_n = p->statics.assigns_n;
    row = row || p->regular.assigns_n;
    target.mutation.partition = partition;
    if (statics_n || (cass_mutation_is_conditional(&p->base) && !row)) {
        if (row) {
            drop_conditions(&target.mutation);
        }
        TRY(add_target(p, target));
    }
    target.mutation = p->regular;
    target.mutation.undoes = p->base.undoes || statics_n;
    target.mutation.partition = partition;
    target.mutation.clustering = clustering;
    return row ? add_target(p, target) : OK;
}

static void set_conditions(planner *p, const cql_if *ifs) {
    p->base.if_exists = ifs->exists;
    p->base.if_not_exists = ifs->not_exists;
    p->base.ifs = ifs->conditions;
    p->base.ifs_n = ifs->n;
    p->base.prevails = cass_mutation_is_conditional(&p->base);
}

static err plan_insert(planner *p) {
    const cql_insert *insert = &p->s->tree->insert;
    uint32_t n = p->t->table.partition_n + p->t->table.clustering_n;
    cql_value *keys = arena_array(p->o->arena, cql_value, n);
    bool whole = true;
    set_conditions(p, &insert->ifs);
    TRY(read_using(p, &insert->usings));
    if (insert->json) {
        cass_assign *assigns = arena_array(p->o->arena, cass_assign, p->t->table.n);
        TRY(read_json(p, keys, assigns, &p->base.assigns_n));
        p->base.assigns = assigns;
    } else {
        TRY(read_insert_keys(p, keys, &whole));
        TRY(plan_changes(p));
    }
    p->base.inserts = true;
    TRY(divide(p));
    return add_divided(p, keys, p->t->table.clustering_n ? keys + p->t->table.partition_n : keys, whole);
}

/* ---- UPDATE and DELETE ---- */

static bool is_row(const planner *p, const cql_range *r) {
    uint32_t n = p->t->table.clustering_n;
    bool row = r->start.n == n && r->end.n == n && r->start.inclusive && r->end.inclusive;
    for (uint32_t i = 0; row && i < n; i++) {
        row = slice_eq(r->start.values[i].bytes, r->end.values[i].bytes);
    }
    return row;
}

static err add_range(planner *p, const cql_value *partition, const cql_range *r, bool static_only) {
    bool deletes = p->s->tree->verb == CQL_DELETE && !p->s->changes_n;
    if (!p->t->table.clustering_n || static_only || is_row(p, r)) {
        const cql_value *clustering = !p->t->table.clustering_n ? partition : static_only ? NULL : r->start.values;
        return add_divided(p, partition, clustering, !static_only && (deletes || cass_mutation_is_conditional(&p->base)));
    }
    if (cass_mutation_is_conditional(&p->base)) {
        return op_fail(p->o, E_BAD_REQUEST,
                       "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to use IF conditions");
    }
    cass_target target = {.mutation = p->base, .ranged = true, .range = *r, .whole = !r->start.n && !r->end.n};
    target.mutation.partition = partition;
    return add_target(p, target);
}

static err plan_rows(planner *p) {
    const cql_value *keys;
    const cql_range *ranges;
    uint32_t keys_n, ranges_n;
    bool static_only = p->s->writes_static && !p->s->writes_regular && p->s->changes_n;
    TRY(divide(p));
    TRY(cql_restrict_keys(p->o, p->in->run, &p->s->where, &keys, &keys_n));
    TRY(cql_restrict_ranges(p->o, p->in->run, &p->s->where, &ranges, &ranges_n));
    if (cass_mutation_is_conditional(&p->base) && (keys_n > 1 || ranges_n > 1)) {
        return op_fail(p->o, E_BAD_REQUEST, "IN on the partition key or the clustering columns is not supported with conditional updates");
    }
    for (uint32_t i = 0; i < keys_n; i++) {
        for (uint32_t k = 0; k < ranges_n; k++) {
            TRY(add_range(p, keys + (size_t)i * p->t->table.partition_n, &ranges[k], static_only));
        }
    }
    return OK;
}

static err plan_update(planner *p) {
    set_conditions(p, &p->s->tree->update.ifs);
    TRY(read_using(p, &p->s->tree->update.usings));
    TRY(plan_changes(p));
    return p->base.assigns_n || cass_mutation_is_conditional(&p->base) ? plan_rows(p) : OK;
}

static err plan_delete(planner *p) {
    set_conditions(p, &p->s->tree->delete.ifs);
    TRY(read_using(p, &p->s->tree->delete.usings));
    p->base.ttl = 0;
    TRY(plan_changes(p));
    p->base.deletes_row = !p->s->changes_n;
    return plan_rows(p);
}

err cass_targets_add(op *o, const cass_write_input *in, cass_targets *targets) {
    planner p = {.o = o, .in = in, .s = in->statement, .t = in->statement->table, .targets = targets};
    p.base = (cass_mutation){.table = p.t, .now_s = in->now_s, .run = *in->run, .undoes = in->in_batch};
    switch (p.s->tree->verb) {
    case CQL_INSERT:
        return plan_insert(&p);
    case CQL_UPDATE:
        return plan_update(&p);
    default:
        return plan_delete(&p);
    }
}
