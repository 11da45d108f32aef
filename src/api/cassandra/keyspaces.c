/* CREATE, ALTER and DROP of keyspaces and of user types, which their keyspace's memo has. */
#include "api/cassandra/execute.h"
#include "throughput/charge.h"

static cass_change keyspace_change(const char *change, slice name) {
    return (cass_change){.change = change, .target = "KEYSPACE", .keyspace = name};
}

static err check_name(cass_request *q, slice name, const char *what) {
    bool good = name.n && name.n <= 48;
    for (size_t i = 0; good && i < name.n; i++) {
        char c = name.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    return good ? OK
                : cass_invalid(q,
                               "%s name must not be empty, more than 48 characters long, or contain non-alphanumeric-underscore characters "
                               "(got \"%.*s\")",
                               what, slice_shown(name), name.p);
}

/* ---- looking at tables ---- */

static void look(call *c) {
    cass_request *q = (cass_request *)c;
    cass_look *l = q->state;
    c->code = l->look(q, l);
}

static void looked(call *c) {
    cass_request *q = (cass_request *)c;
    const cass_look *l = q->state;
    database *keyspace = l->keyspace; /* going on may end the request */
    err code = c->code == OK ? l->go_on(q, l) : c->code;
    if (code != OK) {
        cass_fail(q, code);
    }
    database_give(keyspace);
}

void cass_look_at_tables(cass_request *q, const cass_look *l) {
    cass_look *own = q->state = arena_new(q->frame->arena, cass_look);
    *own = *l;
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, NULL, looked);
    call_work(&q->call.any, NET_PAGES, look);
}

/* ---- throughput: a property of the statement, or an entry of the custom payload ---- */

static err number_of(cass_request *q, slice text, uint32_t *number_out) {
    uint64_t n;
    if (!slice_to_u64(text, &n) || n > THROUGHPUT_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_CONFIG, "The throughput '%.*s' is not a number of RU/s.", slice_shown(text),
                          text.p);
    }
    *number_out = (uint32_t)n;
    return OK;
}

err cass_throughput_of(cass_request *q, const cql_properties *properties, throughput_setting *t) {
    const cql_term *manual = cql_property_find(properties, SLICE_LIT("cosmosdb_provisioned_throughput"));
    const cql_term *autoscale = cql_property_find(properties, SLICE_LIT("cosmosdb_autoscale_max_throughput"));
    slice manual_text = manual ? manual->text : q->payload.provisioned_throughput;
    slice autoscale_text = autoscale ? autoscale->text : q->payload.autoscale_throughput;
    *t = (throughput_setting){0};
    if (autoscale_text.n) {
        t->kind = THROUGHPUT_AUTOSCALE;
        return number_of(q, autoscale_text, &t->value);
    }
    if (manual_text.n) {
        t->kind = THROUGHPUT_MANUAL;
        return number_of(q, manual_text, &t->value);
    }
    return OK;
}

/* ---- CREATE KEYSPACE ---- */

static err refuse_existing(cass_request *q, slice name) {
    q->error_keyspace = name;
    return op_fail_as(&q->op, E_CONFLICT, CASS_CODE_EXISTS, "Cannot add existing keyspace \"%.*s\"", slice_shown(name), name.p);
}

/* The statement is made again from the keyspace as it is now; not CREATE KEYSPACE, which has made it. */
static err repeat(cass_request *q) {
    enum { REPEATS_MAX = 10 };
    if (q->tree->verb != CQL_CREATE_KEYSPACE && q->repeats++ < REPEATS_MAX) {
        return cass_execute_other(q);
    }
    return op_fail_as(&q->op, E_PRECONDITION, CASS_CODE_CONFIG, "Another change of the keyspace came between; repeat the statement.");
}

static err noted(cass_request *q) {
    database_noting *note = (database_noting *)q->change;
    err code = q->change->commit.code;
    if (note->database_out) {
        database_give(note->database_out);
    }
    if (code == E_PRECONDITION) {
        q->op.detail_n = 0;
        return repeat(q);
    }
    TRY(code);
    return cass_answer_change(q, q->told);
}

static bool durable_writes(const cql_properties *p) {
    const cql_term *term = cql_property_find(p, SLICE_LIT("durable_writes"));
    return !term || slice_eq_nocase(term->text, SLICE_LIT("true"));
}

/* Writes the memo of a keyspace, then tells the client and the watchers. */
static err note_keyspace(cass_request *q, const database *d, const cass_keyspace *k, cass_change told) {
    database_noting *note = cass_new_change(q, database_noting);
    note->database.text = told.keyspace;
    note->memo = cass_keyspace_write(q->frame->arena, d, k);
    note->expected = d->version;
    q->told = told;
    if (note->memo.n > LIMIT_MEMO_BYTES) {
        return cass_invalid(q, "The keyspace has too many types.");
    }
    cass_await_change(q, noted);
    account_note_database(note);
    return OK;
}

static err created(cass_request *q) {
    database_creation *create = (database_creation *)q->change;
    const cql_keyspace_statement *s = &q->tree->keyspace;
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (code == E_CONFLICT) {
        q->op.detail_n = 0;
        return s->if_not_exists ? cass_answer_void(q) : refuse_existing(q, s->name);
    }
    if (code == OK && !durable_writes(&s->properties)) {
        cass_keyspace k = {.durable_writes = false};
        code = note_keyspace(q, create->database_out, &k, keyspace_change("CREATED", s->name));
        database_give(create->database_out);
        return code;
    }
    if (create->database_out) {
        database_give(create->database_out);
    }
    TRY(code);
    return cass_answer_change(q, keyspace_change("CREATED", s->name));
}

static err check_replication(cass_request *q, const cql_properties *p, bool needed) {
    const cql_term *replication = cql_property_find(p, SLICE_LIT("replication"));
    bool has_class = false;
    for (uint32_t i = 0; replication && replication->kind == CQL_TERM_MAP && i + 1 < replication->n; i += 2) {
        has_class = has_class || slice_eq(replication->items[i]->text, SLICE_LIT("class"));
    }
    if ((needed || replication) && !has_class) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_CONFIG, "Missing mandatory replication strategy class");
    }
    return OK;
}

err cass_create_keyspace(cass_request *q) {
    const cql_keyspace_statement *s = &q->tree->keyspace;
    database_creation *create = cass_new_change(q, database_creation);
    TRY(cass_allow(q, ACCESS_CREATE, NULL));
    TRY(check_name(q, s->name, "Keyspace"));
    if (cass_system_has(s->name)) {
        return refuse_existing(q, s->name);
    }
    TRY(check_replication(q, &s->properties, true));
    TRY(cass_throughput_of(q, &s->properties, &create->throughput));
    create->id = s->name;
    cass_await_change(q, created);
    account_create_database(create);
    return OK;
}

/* ---- ALTER and DROP KEYSPACE ---- */

static err find_keyspace(cass_request *q, slice name, database **d) {
    if (cass_system_has(name)) {
        return op_fail_as(&q->op, E_FORBIDDEN, CASS_CODE_UNAUTHORIZED, "%.*s keyspace is not user-modifiable.", slice_shown(name), name.p);
    }
    if (account_database(q->front->core.account, name, false, d) != OK) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_INVALID, "Keyspace '%.*s' doesn't exist", slice_shown(name), name.p);
    }
    return OK;
}

err cass_alter_keyspace(cass_request *q) {
    const cql_keyspace_statement *s = &q->tree->keyspace;
    database *d;
    TRY(cass_allow(q, ACCESS_ALTER, NULL));
    TRY(check_replication(q, &s->properties, false));
    TRY(find_keyspace(q, s->name, &d));
    cass_keyspace k = cass_keyspace_of(d);
    if (cql_property_find(&s->properties, SLICE_LIT("durable_writes"))) {
        k.durable_writes = durable_writes(&s->properties);
    }
    err code = note_keyspace(q, d, &k, keyspace_change("UPDATED", s->name));
    database_give(d);
    return code;
}

static err dropped(cass_request *q) {
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_DELETE);
    TRY(code);
    return cass_answer_change(q, keyspace_change("DROPPED", q->tree->drop.target.keyspace));
}

static bool is_foreign(void *found, const container *c) {
    *(bool *)found = !slice_eq(c->api, CASS_API);
    return !*(bool *)found;
}

err cass_drop_keyspace(cass_request *q) {
    const cql_drop *s = &q->tree->drop;
    database *d;
    bool foreign = false;
    TRY(cass_allow(q, ACCESS_DROP, NULL));
    err code = find_keyspace(q, s->target.keyspace, &d);
    if (code != OK && s->if_exists && code != E_FORBIDDEN) {
        q->op.detail_n = 0;
        q->op.protocol_code = 0;
        return cass_answer_void(q);
    }
    if (code == E_BAD_REQUEST) {
        slice name = s->target.keyspace;
        return op_fail_as(&q->op, code, CASS_CODE_CONFIG, "Cannot drop non existing keyspace '%.*s'.", slice_shown(name), name.p);
    }
    TRY(code);
    account_each_container(q->front->core.account, d, 0, is_foreign, &foreign);
    database_give(d);
    if (foreign) {
        return cass_invalid(q,
                            "The keyspace has containers of other APIs, which DROP KEYSPACE would delete too: drop the tables one by one.");
    }
    database_deletion *remove = cass_new_change(q, database_deletion);
    remove->database.text = s->target.keyspace;
    cass_await_change(q, dropped);
    account_delete_database(remove);
    return OK;
}

/* ---- user types ---- */

static slice keyspace_of(const cass_request *q, const cql_table_name *name) {
    return name->keyspace.n ? name->keyspace : q->keyspace;
}

static err find_type_keyspace(cass_request *q, const cql_table_name *name, database **d) {
    slice keyspace = keyspace_of(q, name);
    if (!keyspace.n) {
        return cass_invalid(q, "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
    }
    return find_keyspace(q, keyspace, d);
}

static void append_field(bson_t *list, uint32_t i, slice name, slice type) {
    bson_t b;
    char key[16];
    snprintf(key, sizeof key, "%u", i);
    bson_append_document_begin(list, key, -1, &b);
    bson_append_utf8(&b, "n", -1, name.p, (int)name.n);
    bson_append_utf8(&b, "t", -1, type.p, (int)type.n);
    bson_append_document_end(list, &b);
}

/* The types of a keyspace with one more, or without one (`fields` NULL). */
static slice types_with(arena *a, slice types, slice name, const bson_t *fields) {
    bson_t all = BSON_INITIALIZER, before;
    char *key = arena_text(a, name);
    if (types.n && bson_init_static(&before, (const uint8_t *)types.p, types.n)) {
        bson_copy_to_excluding_noinit(&before, &all, key, NULL);
    }
    if (fields) {
        bson_append_array(&all, key, -1, fields);
    }
    return cass_bson_copy(a, &all);
}

static err check_type(cass_request *q, const cass_types *types, const cql_type *type, slice *text_out) {
    const cql_type *resolved;
    TRY(cql_type_resolve(&q->op, &types->source, type, &resolved));
    if (resolved->kind == CQL_COUNTER) {
        return cass_invalid(q, "A user type cannot contain counters");
    }
    if (cql_type_is_multicell(resolved) && resolved->kind == CQL_UDT) {
        return cass_invalid(q, "A user type cannot contain non-frozen UDTs");
    }
    *text_out = cql_type_text(q->frame->arena, type);
    return OK;
}

static cass_change type_change(const char *change, slice keyspace, slice name) {
    return (cass_change){.change = change, .target = "TYPE", .keyspace = keyspace, .name = name};
}

static bool has_type(slice types, slice name) {
    doc_element e;
    uint64_t passed = 0;
    return types.n && doc_find_member_counted(types, name, &e, &passed);
}

static err create_type(cass_request *q, const database *d) {
    const cql_create_type *s = &q->tree->create_type;
    cass_keyspace k = cass_keyspace_of(d);
    cass_types types;
    bson_t fields = BSON_INITIALIZER;
    slice keyspace = keyspace_of(q, &s->type);
    if (has_type(k.types, s->type.name)) {
        return s->if_not_exists ? cass_answer_void(q)
                                : cass_invalid(q, "A user type of name %.*s.%.*s already exists", slice_shown(keyspace), keyspace.p,
                                               slice_shown(s->type.name), s->type.name.p);
    }
    if (s->fields_n > CASS_COLUMNS_MAX) {
        return cass_invalid(q, "A type may have %d fields at most.", CASS_COLUMNS_MAX);
    }
    cass_types_init(&types, q->frame->arena, keyspace, k.types);
    err code = OK;
    for (uint32_t i = 0; code == OK && i < s->fields_n; i++) {
        slice text = SLICE_EMPTY;
        code = check_type(q, &types, s->fields[i].type, &text);
        for (uint32_t j = 0; code == OK && j < i; j++) {
            if (slice_eq(s->fields[i].name, s->fields[j].name)) {
                code = cass_invalid(q, "Duplicate field name %.*s in type %.*s", slice_shown(s->fields[i].name), s->fields[i].name.p,
                                    slice_shown(s->type.name), s->type.name.p);
            }
        }
        if (code == OK) {
            append_field(&fields, i, s->fields[i].name, text);
        }
    }
    k.types = types_with(q->frame->arena, k.types, s->type.name, &fields);
    bson_destroy(&fields);
    TRY(code);
    return note_keyspace(q, d, &k, type_change("CREATED", keyspace, s->type.name));
}

err cass_create_type(cass_request *q) {
    database *d;
    TRY(cass_allow(q, ACCESS_CREATE, NULL));
    TRY(check_name(q, q->tree->create_type.type.name, "Type"));
    TRY(find_type_keyspace(q, &q->tree->create_type.type, &d));
    err code = create_type(q, d);
    database_give(d);
    return code;
}

typedef struct type_check {
    cass_types *types;
    op *op;
    err code;
} type_check;

static bool check_table(void *context, const container *c) {
    type_check *check = context;
    arena scratch = arena_init();
    cass_definition d;
    op o;
    op_init(&o, &scratch, 0);
    check->code = op_check(check->op);
    if (check->code == OK && cass_definition_read(&scratch, c->memo, &d) && cass_types_check(&o, check->types, &d) != OK) {
        check->code =
            op_fail(check->op, E_BAD_REQUEST, "Table %.*s could not be read: %.*s", slice_shown(c->id), c->id.p, (int)o.detail_n, o.detail);
    }
    arena_free(&scratch);
    return check->code == OK;
}

static err check_fields(cass_request *q, slice type, const cql_type *made) {
    if (made->n > CQL_TYPE_INNER_MAX) {
        return cass_invalid(q, "Type %.*s has more than %d fields", slice_shown(type), type.p, CQL_TYPE_INNER_MAX);
    }
    for (uint32_t i = 0; i < made->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (slice_eq(made->fields[i], made->fields[j])) {
                return cass_invalid(q, "Duplicate field name %.*s in type %.*s", slice_shown(made->fields[i]), made->fields[i].p,
                                    slice_shown(type), type.p);
            }
        }
    }
    return OK;
}

/* Whether all types and tables of the keyspace can be made with these types, of which one is changed. */
static err check_types(cass_request *q, const database *d, slice keyspace, slice all, slice changed) {
    cass_types types;
    type_check check = {.types = &types, .op = &q->op};
    cass_types_init(&types, q->frame->arena, keyspace, all);
    TRY(cass_types_check_all(&q->op, &types));
    TRY(check_fields(q, changed, types.source.find(&types.source, keyspace, changed)));
    cass_each_table(q->front, d, check_table, &check);
    return check.code;
}

static err no_such_type(cass_request *q, slice name) {
    return cass_invalid(q, "No user type named %.*s exists.", slice_shown(name), name.p);
}

/* ADD and RENAME of fields; their types never change. Finds the types of the keyspace as they will be. */
static err find_altered_types(cass_request *q, cass_look *l) {
    const cql_alter *s = &q->tree->alter;
    cass_types types;
    slice keyspace = keyspace_of(q, &s->table), before = cass_keyspace_of(l->keyspace).types;
    cass_types_init(&types, q->frame->arena, keyspace, before);
    const cql_type *type = types.source.find(&types.source, keyspace, s->table.name);
    if (!type) {
        return s->if_exists ? OK : no_such_type(q, s->table.name);
    }
    if (s->kind != CQL_ALTER_ADD && s->kind != CQL_ALTER_RENAME) {
        return cass_invalid(q, "Altering of types is not allowed");
    }
    bson_t fields = BSON_INITIALIZER;
    uint32_t n = 0, renamed = 0;
    for (uint32_t i = 0; i < type->n; i++) {
        slice name = type->fields[i];
        for (uint32_t j = 0; j < s->renames_n; j++) {
            if (slice_eq(s->renames[j].from, type->fields[i])) {
                name = s->renames[j].to;
                renamed++;
            }
        }
        append_field(&fields, n++, name, cql_type_text(q->frame->arena, type->inner[i]));
    }
    err code = renamed < s->renames_n ? cass_invalid(q, "Unknown field in type %.*s", slice_shown(s->table.name), s->table.name.p) : OK;
    for (uint32_t i = 0; code == OK && i < s->columns_n; i++) {
        slice text = SLICE_EMPTY;
        code = check_type(q, &types, s->columns[i].type, &text);
        if (code == OK) {
            append_field(&fields, n++, s->columns[i].name, text);
        }
    }
    slice after = types_with(q->frame->arena, before, s->table.name, &fields);
    bson_destroy(&fields);
    TRY(code);
    TRY(check_types(q, l->keyspace, keyspace, after, s->table.name));
    l->found = after;
    return OK;
}

/* Nothing was found: there is no such type, and the statement says IF EXISTS. */
static err note_types(cass_request *q, const cass_look *l, cass_change told) {
    cass_keyspace k = cass_keyspace_of(l->keyspace);
    k.types = l->found;
    return l->found.n ? note_keyspace(q, l->keyspace, &k, told) : cass_answer_void(q);
}

static err note_altered_types(cass_request *q, const cass_look *l) {
    const cql_table_name *type = &q->tree->alter.table;
    return note_types(q, l, type_change("UPDATED", keyspace_of(q, type), type->name));
}

err cass_alter_type(cass_request *q) {
    cass_look l = {.look = find_altered_types, .go_on = note_altered_types};
    TRY(cass_allow(q, ACCESS_ALTER, NULL));
    TRY(find_type_keyspace(q, &q->tree->alter.table, &l.keyspace));
    cass_look_at_tables(q, &l);
    return OK;
}

/* ---- DROP TYPE ---- */

typedef struct usage {
    op *op;
    slice keyspace, name, used_by;
    err code;
} usage;

static bool note_use(void *context, const container *c) {
    usage *u = context;
    arena scratch = arena_init();
    cass_definition d;
    op o;
    op_init(&o, &scratch, 0);
    u->code = op_check(u->op);
    bool read = u->code == OK && cass_definition_read(&scratch, c->memo, &d);
    for (uint32_t i = 0; read && i < d.columns_n && !u->used_by.n; i++) {
        const cql_type *type;
        if (cql_type_read(&o, d.columns[i].type, &type) == OK && cql_type_uses(type, u->keyspace, u->name)) {
            u->used_by = arena_copy(u->op->arena, c->id);
        }
    }
    arena_free(&scratch);
    return u->code == OK && !u->used_by.n;
}

static bool type_uses(const cass_types *types, slice keyspace, slice other, slice name) {
    const cql_type *type = types->source.find(&types->source, keyspace, other);
    bool uses = false;
    for (uint32_t i = 0; type && !uses && i < type->n; i++) {
        uses = cql_type_uses(type->inner[i], keyspace, name);
    }
    return uses;
}

/* Finds the types of the keyspace without the one that is dropped, which nothing may use. */
static err find_left_types(cass_request *q, cass_look *l) {
    const cql_drop *s = &q->tree->drop;
    slice keyspace = keyspace_of(q, &s->target), name = s->target.name, before = cass_keyspace_of(l->keyspace).types;
    usage u = {.op = &q->op, .keyspace = keyspace, .name = name};
    cass_types types;
    doc_walk w;
    doc_element e;
    if (!has_type(before, name)) {
        return s->if_exists ? OK : no_such_type(q, name);
    }
    cass_each_table(q->front, l->keyspace, note_use, &u);
    TRY(u.code);
    cass_types_init(&types, q->frame->arena, keyspace, before);
    for (doc_walk_init(&w, before); doc_walk_next(&w, &e) && !u.used_by.n;) {
        if (!slice_eq(e.key, name) && type_uses(&types, keyspace, e.key, name)) {
            u.used_by = e.key;
        }
    }
    if (u.used_by.n) {
        return cass_invalid(q, "Cannot drop user type %.*s.%.*s as it is still used by %.*s", slice_shown(keyspace), keyspace.p,
                            slice_shown(name), name.p, slice_shown(u.used_by), u.used_by.p);
    }
    l->found = types_with(q->frame->arena, before, name, NULL);
    return OK;
}

static err note_left_types(cass_request *q, const cass_look *l) {
    const cql_table_name *type = &q->tree->drop.target;
    return note_types(q, l, type_change("DROPPED", keyspace_of(q, type), type->name));
}

err cass_drop_type(cass_request *q) {
    cass_look l = {.look = find_left_types, .go_on = note_left_types};
    TRY(cass_allow(q, ACCESS_DROP, NULL));
    TRY(find_type_keyspace(q, &q->tree->drop.target, &l.keyspace));
    cass_look_at_tables(q, &l);
    return OK;
}
