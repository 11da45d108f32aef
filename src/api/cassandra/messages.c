/* QUERY, PREPARE, EXECUTE and BATCH: from a message to the statement that it runs. */
#include <stdlib.h>

#include "api/cassandra/execute.h"
#include "api/cassandra/prepared.h"
#include "base/memory.h"

int64_t cass_write_time(cass_front *front, int64_t now_us) {
    int_fast64_t last = atomic_load_explicit(&front->last_us, memory_order_relaxed), next;
    do {
        next = now_us > last ? now_us : last + 1;
    } while (!atomic_compare_exchange_weak_explicit(&front->last_us, &last, next, memory_order_relaxed, memory_order_relaxed));
    return next;
}

/* ---- values ---- */

enum { NAMED_VALUES_WORK_MAX = 1000000 }; /* markers times values: each is compared with each, on the loop */

/* Values by name go to the markers of that name; by position, there must be as many as markers. */
static err bind_values(cass_request *q, const cql_statement *tree, const cql_receiver *markers) {
    const cass_params *p = &q->query.params;
    uint32_t n = tree->markers_n;
    if (!p->names && p->values_n != n) {
        return cass_invalid(q, "Invalid amount of bind variables: expected %u, got %u", n, p->values_n);
    }
    q->run.values = p->values;
    q->run.values_n = n;
    if (!p->names) {
        return OK;
    }
    if ((uint64_t)n * p->values_n > NAMED_VALUES_WORK_MAX) {
        return cass_invalid(q, "Too many values with names; bind them by position.");
    }
    cql_value *values = arena_array(q->frame->arena, cql_value, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) {
        slice name = tree->markers[i].name.n ? tree->markers[i].name : markers ? markers[i].name : SLICE_EMPTY;
        values[i].unset = true;
        for (uint32_t k = 0; k < p->values_n; k++) {
            if (slice_eq(p->names[k], name)) {
                values[i] = p->values[k];
            }
        }
    }
    q->run.values = values;
    return OK;
}

/* ---- analysis ---- */

static unsigned verbs_of(const cql_statement *tree) {
    return tree->verb == CQL_SELECT ? ACCESS_READ : tree->verb == CQL_DELETE ? ACCESS_DELETE : ACCESS_INSERT | ACCESS_UPDATE;
}

static err find_table(cass_request *q, const cql_statement *tree, slice keyspace) {
    const cql_table_name *name = cass_table_name_of(tree);
    TRY(cass_table_find(q->front, &q->op, name->keyspace.n ? name->keyspace : keyspace, name->name, &q->table, &q->container));
    if (q->table->system && tree->verb != CQL_SELECT) {
        return op_fail_as(&q->op, E_FORBIDDEN, CASS_CODE_UNAUTHORIZED, "system keyspace is not user-modifiable.");
    }
    q->reads = tree->verb == CQL_SELECT;
    return q->container ? cass_allow(q, verbs_of(tree), q->container) : OK;
}

static bool is_conditional(const cql_statement *tree) {
    const cql_if *ifs = tree->verb == CQL_INSERT ? &tree->insert.ifs : tree->verb == CQL_UPDATE ? &tree->update.ifs : &tree->delete.ifs;
    return ifs->exists || ifs->not_exists || ifs->n;
}

/* A read needs a replica, and a serial level is the condition's, not the write's. All other levels are alike here. */
static err check_level(cass_request *q) {
    const cass_params *p = &q->query.params;
    const cass_statement *s = q->statement;
    bool serial = p->consistency == CASS_SERIAL || p->consistency == CASS_LOCAL_SERIAL;
    if (s->tree->verb == CQL_SELECT) {
        return p->consistency == CASS_ANY ? cass_invalid(q, "ANY ConsistencyLevel is only supported for writes") : OK;
    }
    bool conditional = is_conditional(s->tree);
    if (conditional && p->serial_consistency != CASS_SERIAL && p->serial_consistency != CASS_LOCAL_SERIAL) {
        return cass_invalid(q, "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
    }
    if (serial) {
        return conditional ? cass_invalid(q, "%s is not supported as conditional update commit consistency.",
                                          p->consistency == CASS_SERIAL ? "SERIAL" : "LOCAL_SERIAL")
                           : cass_invalid(q, "You must use conditional updates for serializable writes");
    }
    slice name = s->table->table.name;
    return p->consistency == CASS_ANY && s->table->counters
               ? cass_invalid(q, "Consistency level ANY is not yet supported for counter table %.*s", slice_shown(name), name.p)
               : OK;
}

err cass_execute(cass_request *q) {
    TRY(check_level(q));
    return q->statement->tree->verb == CQL_SELECT ? cass_select(q) : cass_write(q);
}

static err run_text_batch(cass_request *q, const cql_statement *tree, slice keyspace, cql_receiver *markers);

static err run_tree(cass_request *q) {
    const cql_statement *tree = q->tree;
    slice keyspace = q->keyspace;
    if (!cass_table_name_of(tree) && tree->verb != CQL_BATCH) {
        return cass_execute_other(q);
    }
    cql_receiver *markers = arena_array(q->frame->arena, cql_receiver, tree->markers_n ? tree->markers_n : 1);
    if (tree->verb == CQL_BATCH) {
        return run_text_batch(q, tree, keyspace, markers);
    }
    cass_statement *s = arena_new(q->frame->arena, cass_statement);
    TRY(find_table(q, tree, keyspace));
    TRY(cass_analyse(&q->op, q->table, tree, markers, s));
    TRY(bind_values(q, tree, markers));
    q->statement = s;
    return cass_execute(q);
}

static void use_keyspace(cass_request *q) {
    if (q->query.params.keyspace.n) {
        q->keyspace = q->query.params.keyspace;
    }
}

err cass_query_message(cass_request *q) {
    use_keyspace(q);
    return run_tree(q);
}

/* ---- PREPARE ---- */

static err analyse_batch(cass_request *q, op *o, const cql_statement *tree, slice keyspace, cql_receiver *markers,
                         const cass_statement ***parts_out);

/* Parsed again, into memory of its own. */
static err make_prepared(cass_request *q, cass_prepared *p) {
    op own;
    op_init(&own, &p->arena, q->op.now_s);
    p->text = arena_copy(&p->arena, q->query.text);
    p->keyspace = arena_copy(&p->arena, q->keyspace);
    TRY(cql_parse(&own, p->text, &p->tree));
    cql_receiver *markers = arena_array(&p->arena, cql_receiver, p->tree->markers_n ? p->tree->markers_n : 1);
    p->statement = (cass_statement){.tree = p->tree, .markers = markers, .markers_n = p->tree->markers_n};
    err code = OK;
    if (p->tree->verb == CQL_BATCH) {
        const cass_statement **parts;
        code = analyse_batch(q, &own, p->tree, p->keyspace, markers, &parts);
    } else if (cass_table_name_of(p->tree)) {
        code = find_table(q, p->tree, p->keyspace);
        if (code == OK) {
            p->table = cass_table_take(q->table);
            code = cass_analyse(&own, p->table, p->tree, markers, &p->statement);
        }
    }
    if (code != OK && own.detail_n) {
        return op_fail_as(&q->op, code, own.protocol_code, "%.*s", (int)own.detail_n, own.detail);
    }
    return code;
}

static void put_markers(cass_request *q, buf *out, const cass_prepared *p) {
    const cass_statement *s = &p->statement;
    uint16_t keys[LIMIT_KEY_COMPONENTS];
    bool global = s->table;
    uint32_t pk = global && cass_partition_markers(s, keys) ? s->table->table.partition_n : 0;
    cass_put_int(out, global ? 1 : 0);
    cass_put_int(out, (int32_t)s->markers_n);
    if (q->version >= 4) {
        cass_put_int(out, (int32_t)pk);
        for (uint32_t i = 0; i < pk; i++) {
            cass_put_short(out, keys[i]);
        }
    }
    if (global) {
        cass_put_string(out, s->table->table.keyspace);
        cass_put_string(out, s->table->table.name);
    }
    for (uint32_t i = 0; i < s->markers_n; i++) {
        if (!global) {
            cass_put_string(out, p->keyspace);
            cass_put_string(out, SLICE_EMPTY);
        }
        slice name = p->tree->markers[i].name.n ? p->tree->markers[i].name : s->markers[i].name;
        cass_put_string(out, name);
        cql_type_encode(out, s->markers[i].type ? s->markers[i].type : cql_type_of(CQL_BLOB), q->version);
    }
}

static void put_result_metadata(cass_request *q, buf *out, const cass_selection *selection) {
    enum { GLOBAL = 1, NO_METADATA = 4 };
    if (!selection) {
        cass_put_int(out, NO_METADATA);
        cass_put_int(out, 0);
        return;
    }
    cass_put_int(out, GLOBAL);
    cass_put_int(out, selection->json ? 1 : (int32_t)selection->n);
    cass_metadata_put(out, selection, q->version);
}

static err answer_prepared(cass_request *q) {
    const cass_prepared *p = q->prepared;
    buf *out = cass_answer(q, CASS_RESULT);
    cass_put_int(out, CASS_RESULT_PREPARED);
    cass_put_string(out, slice_of(p->id, CASS_ID_BYTES));
    if (q->version >= CASS_VERSION_SEGMENTS) {
        cass_put_string(out, slice_of(p->result_id, CASS_ID_BYTES));
    }
    put_markers(q, out, p);
    put_result_metadata(q, out, p->statement.selection);
    cass_end(q);
    return OK;
}

err cass_prepare_message(cass_request *q) {
    use_keyspace(q);
    cass_prepared *p = mem_zero(sizeof *p);
    p->refs = 1;
    p->arena = arena_init_small();
    q->prepared = p; /* released with the request */
    TRY(make_prepared(q, p));
    cass_prepared_id(q->keyspace, q->query.text, p->id);
    buf columns = buf_init(BUF_NO_LIMIT);
    put_result_metadata(q, &columns, p->statement.selection);
    cass_prepared_id(SLICE_LIT("result"), buf_view(&columns), p->result_id);
    buf_free(&columns);
    cass_prepared_keep(q->front->prepares, p);
    return answer_prepared(q);
}

/* ---- EXECUTE ---- */

static err refuse_unprepared(cass_request *q, slice id) {
    q->unprepared = id;
    return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_UNPREPARED, "Prepared query with this id was not found: prepare it again");
}

/* The same version of the table is the same object. */
static err check_table(cass_request *q, const cass_prepared *p, slice id) {
    const cql_table *t = &p->table->table;
    err code = cass_table_find(q->front, &q->op, t->keyspace, t->name, &q->table, &q->container);
    if (code != OK || q->table != p->table) {
        cass_prepared_forget(q->front->prepares, p);
        q->op.detail_n = 0;
        return refuse_unprepared(q, id);
    }
    q->reads = p->tree->verb == CQL_SELECT;
    return q->container ? cass_allow(q, verbs_of(p->tree), q->container) : OK;
}

err cass_execute_message(cass_request *q) {
    q->prepared = cass_prepared_find(q->front->prepares, q->query.id);
    if (!q->prepared) {
        return refuse_unprepared(q, q->query.id);
    }
    q->tree = q->prepared->tree;
    if (!q->prepared->table) {
        q->keyspace = q->prepared->keyspace;
        return run_tree(q);
    }
    TRY(check_table(q, q->prepared, q->query.id));
    TRY(bind_values(q, q->tree, q->prepared->statement.markers));
    q->statement = &q->prepared->statement;
    return cass_execute(q);
}

/* ---- BATCH ---- */

static void hold(cass_request *q, const cass_table *table, container *c, cass_prepared *p) {
    cass_held *h = arena_new(q->frame->arena, cass_held);
    *h = (cass_held){.table = table, .container = c, .prepared = p, .next = q->held};
    q->held = h;
}

/* One statement of a batch in text or in a message, in the arena of `o`. */
static err analyse_part(cass_request *q, op *o, const cql_statement *tree, slice keyspace, cql_receiver *markers,
                        const cass_statement **statement_out) {
    const cql_table_name *name = cass_table_name_of(tree);
    cass_statement *s = arena_new(o->arena, cass_statement);
    const cass_table *table;
    container *c;
    if (!name || tree->verb == CQL_SELECT) {
        return op_fail(o, E_BAD_REQUEST, "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
    }
    TRY(cass_table_find(q->front, o, name->keyspace.n ? name->keyspace : keyspace, name->name, &table, &c));
    hold(q, table, c, NULL);
    if (!c) {
        return op_fail_as(o, E_FORBIDDEN, CASS_CODE_UNAUTHORIZED, "system keyspace is not user-modifiable.");
    }
    TRY(cass_allow(q, verbs_of(tree), c));
    TRY(cass_analyse(o, table, tree, markers, s));
    *statement_out = s;
    return OK;
}

/* Each statement changes a row at least, so more are refused before they are analysed. */
static err check_size(op *o, uint32_t n) {
    return n <= CASS_BATCH_ROWS ? OK : op_fail(o, E_BAD_REQUEST, "The batch changes more than %d rows.", CASS_BATCH_ROWS);
}

static err analyse_batch(cass_request *q, op *o, const cql_statement *tree, slice keyspace, cql_receiver *markers,
                         const cass_statement ***parts_out) {
    TRY(check_size(o, tree->batch.n));
    const cass_statement **parts = arena_array(o->arena, const cass_statement *, tree->batch.n ? tree->batch.n : 1);
    cql_receiver timestamp = {.name = SLICE_LIT("[timestamp]"), .type = cql_type_of(CQL_BIGINT)};
    if (tree->batch.usings.timestamp) {
        TRY(cql_term_prepare(o, NULL, tree->batch.usings.timestamp, &timestamp, markers));
    }
    for (uint32_t i = 0; i < tree->batch.n; i++) {
        TRY(analyse_part(q, o, tree->batch.statements[i], keyspace, markers, &parts[i]));
    }
    *parts_out = parts;
    return OK;
}

static err run_text_batch(cass_request *q, const cql_statement *tree, slice keyspace, cql_receiver *markers) {
    const cass_statement **parts;
    TRY(analyse_batch(q, &q->op, tree, keyspace, markers, &parts));
    TRY(bind_values(q, tree, markers));
    cass_batch_item *items = arena_array(q->frame->arena, cass_batch_item, tree->batch.n ? tree->batch.n : 1);
    for (uint32_t i = 0; i < tree->batch.n; i++) {
        items[i] = (cass_batch_item){.statement = parts[i], .values = q->run.values, .values_n = q->run.values_n};
    }
    return cass_write_batch(q, tree->batch.kind, items, tree->batch.n, &tree->batch.usings);
}

static err prepare_item(cass_request *q, const cass_batch_part *part, slice keyspace, cass_batch_item *item) {
    if (part->id.n) {
        cass_prepared *p = cass_prepared_find(q->front->prepares, part->id);
        const cass_table *table = NULL;
        container *c = NULL;
        if (!p || !p->table) {
            hold(q, NULL, NULL, p);
            return refuse_unprepared(q, part->id);
        }
        err code = cass_table_find(q->front, &q->op, p->table->table.keyspace, p->table->table.name, &table, &c);
        hold(q, table, c, p);
        if (code != OK || table != p->table) {
            cass_prepared_forget(q->front->prepares, p);
            q->op.detail_n = 0;
            return refuse_unprepared(q, part->id);
        }
        if (p->tree->verb == CQL_SELECT) {
            return cass_invalid(q, "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
        }
        TRY(cass_allow(q, verbs_of(p->tree), c));
        item->statement = &p->statement;
    } else {
        uint32_t n = part->tree->markers_n;
        TRY(analyse_part(q, &q->op, part->tree, keyspace, arena_array(q->frame->arena, cql_receiver, n ? n : 1), &item->statement));
    }
    if (item->statement->tree->markers_n != part->values_n) {
        return cass_invalid(q, "There were %u markers(?) in CQL but %u bound variables", item->statement->tree->markers_n, part->values_n);
    }
    item->values = part->values;
    item->values_n = part->values_n;
    return OK;
}

err cass_batch_message(cass_request *q) {
    TRY(check_size(&q->op, q->batch.n));
    cass_batch_item *items = arena_array(q->frame->arena, cass_batch_item, q->batch.n ? q->batch.n : 1);
    slice keyspace = q->batch.params.keyspace.n ? q->batch.params.keyspace : q->keyspace;
    for (uint32_t i = 0; i < q->batch.n; i++) {
        TRY(prepare_item(q, &q->batch.parts[i], keyspace, &items[i]));
    }
    return cass_write_batch(q, (cql_batch_kind)q->batch.kind, items, q->batch.n, NULL);
}

/* ---- statements without a table ---- */

static err use(cass_request *q) {
    slice name = q->tree->drop.target.keyspace;
    database *d;
    if (cass_system_has(name)) {
        d = NULL;
    } else if (account_database(q->front->core.account, name, false, &d) != OK) {
        return cass_invalid(q, "Keyspace '%.*s' does not exist", slice_shown(name), name.p);
    }
    if (d) {
        database_give(d);
    }
    memcpy(q->conn->keyspace, name.p, name.n);
    q->conn->keyspace[name.n] = 0;
    return cass_answer_keyspace(q, name);
}

/* What is never there cannot be dropped. */
static err drop_missing(cass_request *q) {
    const cql_drop *s = &q->tree->drop;
    slice name = q->tree->verb == CQL_DROP_TRIGGER || q->tree->verb == CQL_DROP_ROLE ? s->name : s->target.name;
    slice keyspace = s->target.keyspace.n ? s->target.keyspace : q->keyspace;
    if (s->if_exists) {
        return cass_answer_void(q);
    }
    switch (q->tree->verb) {
    case CQL_DROP_VIEW:
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_CONFIG, "Cannot drop non existing materialized view '%.*s' in keyspace '%.*s'.",
                          slice_shown(name), name.p, slice_shown(keyspace), keyspace.p);
    case CQL_DROP_TRIGGER:
        return cass_invalid(q, "Trigger %.*s was not found", slice_shown(name), name.p);
    case CQL_DROP_ROLE:
        return cass_invalid(q, "%.*s doesn't exist", slice_shown(name), name.p);
    default:
        return cass_invalid(q, "Cannot drop non existing %s '%.*s'", q->tree->verb == CQL_DROP_FUNCTION ? "function" : "aggregate",
                            slice_shown(name), name.p);
    }
}

/* In Cassandra's words for a server whose administrator has not enabled them. */
static err refuse_verb(cass_request *q) {
    switch (q->tree->verb) {
    case CQL_CREATE_VIEW:
    case CQL_ALTER_VIEW:
        return cass_invalid(q, "Materialized views are disabled. tesela has none: write to a table for each query, or index the column.");
    case CQL_CREATE_FUNCTION:
    case CQL_CREATE_AGGREGATE:
        return cass_invalid(q, "User-defined functions are disabled. tesela has none, nor has the service: compute in the application.");
    case CQL_GRANT_ROLE:
    case CQL_REVOKE_ROLE:
    case CQL_GRANT:
    case CQL_REVOKE:
    case CQL_LIST_PERMISSIONS:
        return cass_invalid(q, "%s operation is not supported by AllowAllAuthorizer", cql_verb_text(q->tree->verb));
    case CQL_CREATE_ROLE:
    case CQL_ALTER_ROLE:
    case CQL_LIST_ROLES:
    case CQL_LIST_USERS:
        return cass_invalid(q, "%s is not supported: there are no roles, clients log in with a key of the account.",
                            cql_verb_text(q->tree->verb));
    default:
        return cass_invalid(q, "%s is not supported: the service has no such statement, and neither has tesela.",
                            cql_verb_text(q->tree->verb));
    }
}

err cass_execute_other(cass_request *q) {
    switch (q->tree->verb) {
    case CQL_USE:
        return use(q);
    case CQL_TRUNCATE:
        return cass_truncate(q);
    case CQL_CREATE_KEYSPACE:
        return cass_create_keyspace(q);
    case CQL_ALTER_KEYSPACE:
        return cass_alter_keyspace(q);
    case CQL_DROP_KEYSPACE:
        return cass_drop_keyspace(q);
    case CQL_CREATE_TABLE:
        return cass_create_table(q);
    case CQL_ALTER_TABLE:
        return cass_alter_table(q);
    case CQL_DROP_TABLE:
        return cass_drop_table(q);
    case CQL_CREATE_INDEX:
        return cass_create_index(q);
    case CQL_DROP_INDEX:
        return cass_drop_index(q);
    case CQL_CREATE_TYPE:
        return cass_create_type(q);
    case CQL_ALTER_UDT:
        return cass_alter_type(q);
    case CQL_DROP_TYPE:
        return cass_drop_type(q);
    case CQL_DROP_VIEW:
    case CQL_DROP_FUNCTION:
    case CQL_DROP_AGGREGATE:
    case CQL_DROP_TRIGGER:
    case CQL_DROP_ROLE:
        return drop_missing(q);
    default:
        return refuse_verb(q);
    }
}
