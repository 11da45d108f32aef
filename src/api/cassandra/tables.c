/* CREATE, ALTER, DROP and TRUNCATE of tables, and their indexes. */
#include <stdlib.h>

#include "api/cassandra/execute.h"
#include "throughput/charge.h"

static cass_change table_change(const char *change, slice keyspace, slice name) {
    return (cass_change){.change = change, .target = "TABLE", .keyspace = keyspace, .name = name};
}

static slice keyspace_of(const cass_request *q, const cql_table_name *name) {
    return name->keyspace.n ? name->keyspace : q->keyspace;
}

static err refuse_system(cass_request *q, slice keyspace) {
    return op_fail_as(&q->op, E_FORBIDDEN, CASS_CODE_UNAUTHORIZED, "%.*s keyspace is not user-modifiable.", slice_shown(keyspace),
                      keyspace.p);
}

/* ---- options ---- */

static void append_option(bson_t *options, const cql_property *p) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(p->name.n < 63 ? p->name.n : 63), p->name.p);
    int64_t number;
    if (p->value->kind == CQL_TERM_MAP) {
        bson_t map;
        bson_append_document_begin(options, name, -1, &map);
        for (uint32_t i = 0; i + 1 < p->value->n; i += 2) {
            slice key = p->value->items[i]->text, value = p->value->items[i + 1]->text;
            bson_append_utf8(&map, key.p, (int)key.n, value.p, (int)value.n);
        }
        bson_append_document_end(options, &map);
    } else if (p->value->kind == CQL_TERM_INTEGER && slice_to_i64(p->value->text, &number)) {
        bson_append_int64(options, name, -1, number);
    } else if (p->value->kind == CQL_TERM_BOOLEAN) {
        bson_append_bool(options, name, -1, slice_eq_nocase(p->value->text, SLICE_LIT("true")));
    } else {
        bson_append_utf8(options, name, -1, p->value->text.n ? p->value->text.p : "", (int)p->value->text.n);
    }
}

static bool is_text(const cql_term *term) {
    return term->text.p && !memchr(term->text.p, 0, term->text.n);
}

/* Options are texts, numbers, truths and maps of these. */
static bool is_option(const cql_term *value) {
    bool good = value->kind == CQL_TERM_MAP || is_text(value);
    for (uint32_t i = 0; value->kind == CQL_TERM_MAP && i < value->n; i++) {
        good = good && is_text(value->items[i]);
    }
    return good;
}

static bool is_known(slice name) {
    static const char *const names[] = {"bloom_filter_fp_chance",
                                        "caching",
                                        "cdc",
                                        "comment",
                                        "compaction",
                                        "compression",
                                        "crc_check_chance",
                                        "dclocal_read_repair_chance",
                                        "default_time_to_live",
                                        "extensions",
                                        "gc_grace_seconds",
                                        "id",
                                        "max_index_interval",
                                        "memtable_flush_period_in_ms",
                                        "min_index_interval",
                                        "read_repair_chance",
                                        "speculative_retry",
                                        "additional_write_policy",
                                        "read_repair",
                                        "memtable"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq(name, slice_str(names[i]))) {
            return true;
        }
    }
    return slice_starts(name, SLICE_LIT("cosmosdb_"));
}

/* Options are kept and shown again; those that given ones replace go. */
static err merge_options(cass_request *q, slice before, const cql_properties *properties, slice *options_out) {
    bson_t options = BSON_INITIALIZER;
    doc_walk w;
    doc_element e;
    err code = OK;
    if (before.n) {
        for (doc_walk_init(&w, before); doc_walk_next(&w, &e);) {
            if (!cql_property_find(properties, e.key)) {
                bson_t whole;
                bson_iter_t it;
                if (bson_init_static(&whole, (const uint8_t *)before.p, before.n) && bson_iter_init_find(&it, &whole, e.key.p)) {
                    bson_append_iter(&options, NULL, 0, &it);
                }
            }
        }
    }
    for (uint32_t i = 0; code == OK && i < properties->n; i++) {
        slice name = properties->items[i].name;
        if (!is_known(name)) {
            code = op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_SYNTAX, "Unknown property '%.*s'", slice_shown(name), name.p);
        } else if (!is_option(properties->items[i].value)) {
            code = op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_SYNTAX, "Invalid value for property '%.*s'", slice_shown(name), name.p);
        } else if (!slice_eq(name, SLICE_LIT("id"))) {
            append_option(&options, &properties->items[i]);
        }
    }
    *options_out = cass_bson_copy(q->frame->arena, &options);
    int64_t ttl = cass_option_int(*options_out, "default_time_to_live", 0);
    if (code == OK && (ttl < 0 || ttl > 630720000)) {
        code = op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_CONFIG,
                          "default_time_to_live must be from 0 to 630720000 (20 years), but was %lld", (long long)ttl);
    }
    return code;
}

/* ---- CREATE TABLE ---- */

typedef struct creation {
    const cql_create_table *s;
    slice keyspace;
    cass_definition d;
    throughput_setting throughput;
} creation;

static int position_in(const slice *names, uint32_t n, slice name) {
    for (uint32_t i = 0; i < n; i++) {
        if (slice_eq(names[i], name)) {
            return (int)i;
        }
    }
    return -1;
}

static int compare_columns(const void *a, const void *b) {
    const cass_column_definition *x = a, *y = b;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : slice_cmp(x->name, y->name);
}

static err check_column(cass_request *q, const cass_types *types, const cql_column_definition *c, cql_column_kind kind, slice *text_out) {
    const cql_type *type;
    slice name = c->name;
    bool reserved = slice_eq(name, SLICE_LIT(CASS_META)) || slice_eq(name, SLICE_LIT(CASS_KEYS)) || slice_eq(name, SLICE_LIT(CASS_TTL));
    for (size_t i = 0; i < ITEM_SYSTEM_PROPERTIES; i++) {
        reserved = reserved || slice_eq(name, item_system_properties[i]);
    }
    if (reserved || !name.n || memchr(name.p, 0, name.n)) {
        return cass_invalid(q, "The name %.*s is reserved: choose another for the column.", slice_shown(name), name.p);
    }
    TRY(cql_type_resolve(&q->op, &types->source, c->type, &type));
    bool key = kind == CQL_COLUMN_PARTITION || kind == CQL_COLUMN_CLUSTERING;
    if (key && cql_type_is_multicell(type)) {
        return cass_invalid(q, "Invalid non-frozen %s type for PRIMARY KEY component %.*s",
                            type->kind == CQL_UDT ? "user-defined" : "collection", slice_shown(name), name.p);
    }
    if (key && type->kind == CQL_COUNTER) {
        return cass_invalid(q, "counter type is not supported for PRIMARY KEY column '%.*s'", slice_shown(name), name.p);
    }
    if (key && cql_type_has_duration(type)) {
        return cass_invalid(q, "duration type is not supported for PRIMARY KEY column '%.*s'", slice_shown(name), name.p);
    }
    *text_out = cql_type_text(q->frame->arena, c->type);
    return OK;
}

static err too_many_columns(cass_request *q) {
    return cass_invalid(q, "A table may have %d columns at most.", CASS_COLUMNS_MAX);
}

static err check_keys(cass_request *q, const cql_create_table *s) {
    if (s->columns_n > CASS_COLUMNS_MAX) {
        return too_many_columns(q);
    }
    if (s->primary_keys != 1) {
        return cass_invalid(q, s->primary_keys ? "Multiple PRIMARY KEYs specified (exactly one required)"
                                               : "No PRIMARY KEY specified (exactly one required)");
    }
    if (s->partition_n > LIMIT_KEY_COMPONENTS || s->clustering_n > LIMIT_ROW_PATHS) {
        return cass_invalid(q, "A primary key may have %d partition key columns and %d clustering columns at most.", LIMIT_KEY_COMPONENTS,
                            LIMIT_ROW_PATHS);
    }
    for (uint32_t i = 0; i < s->partition_n + s->clustering_n; i++) {
        slice name = i < s->partition_n ? s->partition[i] : s->clustering[i - s->partition_n];
        bool known = false, twice = false;
        for (uint32_t k = 0; k < i; k++) {
            twice = twice || slice_eq(k < s->partition_n ? s->partition[k] : s->clustering[k - s->partition_n], name);
        }
        for (uint32_t k = 0; k < s->columns_n; k++) {
            known = known || slice_eq(s->columns[k].name, name);
        }
        if (!known || twice) {
            return cass_invalid(q, twice ? "Column '%.*s' is in the PRIMARY KEY twice" : "Unknown column '%.*s' referenced in PRIMARY KEY",
                                slice_shown(name), name.p);
        }
    }
    return OK;
}

static err read_order(cass_request *q, const cql_create_table *s, cass_definition *d) {
    for (uint32_t i = 0; i < s->order_n; i++) {
        if (i >= s->clustering_n || !slice_eq(s->order[i].column, s->clustering[i])) {
            return cass_invalid(q, "Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive");
        }
        for (uint32_t k = 0; k < d->columns_n; k++) {
            if (slice_eq(d->columns[k].name, s->order[i].column)) {
                d->columns[k].descending = s->order[i].descending;
            }
        }
    }
    if (s->order_n && s->order_n != s->clustering_n) {
        return cass_invalid(q, "Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive");
    }
    return OK;
}

static err check_counters(cass_request *q, const cass_definition *d) {
    uint32_t counters = 0, others = 0;
    for (uint32_t i = 0; i < d->columns_n; i++) {
        bool key = d->columns[i].kind == CQL_COLUMN_PARTITION || d->columns[i].kind == CQL_COLUMN_CLUSTERING;
        bool counter = slice_eq(d->columns[i].type, SLICE_LIT("counter"));
        counters += !key && counter;
        others += !key && !counter;
    }
    return counters && others ? cass_invalid(q, "Cannot mix counter and non counter columns in the same table") : OK;
}

static err define(cass_request *q, const cass_types *types, creation *c) {
    const cql_create_table *s = c->s;
    cass_definition *d = &c->d;
    uint8_t id[16];
    d->columns = arena_array(q->frame->arena, cass_column_definition, s->columns_n + 1);
    random_bytes(net_loop_random(q->frame->client.loop), id, sizeof id);
    id[6] = (uint8_t)((id[6] & 0x0F) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3F) | 0x80);
    d->id = arena_copy(q->frame->arena, slice_of(id, sizeof id));
    for (uint32_t i = 0; i < s->columns_n; i++) {
        const cql_column_definition *column = &s->columns[i];
        int partition = position_in(s->partition, s->partition_n, column->name),
            clustering = position_in(s->clustering, s->clustering_n, column->name);
        cql_column_kind kind = partition >= 0      ? CQL_COLUMN_PARTITION
                               : clustering >= 0   ? CQL_COLUMN_CLUSTERING
                               : column->is_static ? CQL_COLUMN_STATIC
                                                   : CQL_COLUMN_REGULAR;
        for (uint32_t k = 0; k < i; k++) {
            if (slice_eq(s->columns[k].name, column->name)) {
                return cass_invalid(q, "Duplicate column '%.*s' declaration for table '%.*s'", slice_shown(column->name), column->name.p,
                                    slice_shown(s->table.name), s->table.name.p);
            }
        }
        if (kind == CQL_COLUMN_STATIC && !s->clustering_n) {
            return cass_invalid(q, "Static columns are only useful (and thus allowed) if the table has at least one clustering column");
        }
        cass_column_definition *to = &d->columns[d->columns_n++];
        *to = (cass_column_definition){.name = column->name, .member = column->name, .kind = kind, .dropped_us = INT64_MIN};
        TRY(check_column(q, types, column, kind, &to->type));
    }
    cass_column_definition *sorted = arena_array(q->frame->arena, cass_column_definition, d->columns_n + 1);
    uint32_t n = 0, keys = s->partition_n + s->clustering_n;
    for (uint32_t i = 0; i < keys; i++) {
        slice name = i < s->partition_n ? s->partition[i] : s->clustering[i - s->partition_n];
        for (uint32_t k = 0; k < d->columns_n; k++) {
            if (slice_eq(d->columns[k].name, name)) {
                sorted[n++] = d->columns[k];
            }
        }
    }
    for (uint32_t k = 0; k < d->columns_n; k++) {
        if (d->columns[k].kind == CQL_COLUMN_STATIC || d->columns[k].kind == CQL_COLUMN_REGULAR) {
            sorted[n++] = d->columns[k];
        }
    }
    qsort(sorted + keys, n - keys, sizeof *sorted, compare_columns);
    d->columns = sorted;
    TRY(read_order(q, s, d));
    return check_counters(q, d);
}

static err table_made(cass_request *q) {
    container_creation *create = (container_creation *)q->change;
    const cql_create_table *s = &q->tree->create_table;
    slice keyspace = keyspace_of(q, &s->table);
    err code = q->change->commit.code;
    if (create->container_out) {
        container_give(create->container_out);
    }
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (code == E_CONFLICT) {
        q->op.detail_n = 0;
        if (s->if_not_exists) {
            return cass_answer_void(q);
        }
        q->error_keyspace = keyspace;
        q->error_table = s->table.name;
        return op_fail_as(&q->op, code, CASS_CODE_EXISTS, "Cannot add already existing table \"%.*s\" to keyspace \"%.*s\"",
                          slice_shown(s->table.name), s->table.name.p, slice_shown(keyspace), keyspace.p);
    }
    TRY(code);
    return cass_answer_change(q, table_change("CREATED", keyspace, s->table.name));
}

static err create_table(cass_request *q, const database *d) {
    creation c = {.s = &q->tree->create_table, .keyspace = keyspace_of(q, &q->tree->create_table.table)};
    container_creation *create = cass_new_change(q, container_creation);
    cass_types types;
    cass_types_init(&types, q->frame->arena, c.keyspace, arena_copy(q->frame->arena, cass_keyspace_of(d).types));
    if (c.s->compact) {
        return cass_invalid(q, "COMPACT STORAGE tables are not supported.");
    }
    TRY(check_keys(q, c.s));
    TRY(define(q, &types, &c));
    TRY(merge_options(q, SLICE_EMPTY, &c.s->properties, &c.d.options));
    TRY(cass_throughput_of(q, &c.s->properties, &create->throughput));
    TRY(cass_settings_of(&q->op, &types.source, c.s->table.name, &c.d, &create->settings));
    TRY(cass_rows_of(&q->op, &types.source, &c.d, &create->rows));
    TRY(cass_definition_write(&q->op, &c.d, &create->memo));
    create->database.text = c.keyspace;
    create->api = CASS_API;
    cass_await_change(q, table_made);
    account_create_container(create);
    return OK;
}

err cass_create_table(cass_request *q) {
    slice keyspace = keyspace_of(q, &q->tree->create_table.table), name = q->tree->create_table.table.name;
    database *d;
    TRY(cass_allow(q, ACCESS_CREATE, NULL));
    if (cass_system_has(keyspace)) {
        return refuse_system(q, keyspace);
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (name.n > 48 || !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return cass_invalid(q, "\"%.*s\" is not a valid table name (must be alphanumeric character or underscore only: [a-zA-Z_0-9]+)",
                                slice_shown(name), name.p);
        }
    }
    if (!keyspace.n) {
        return cass_invalid(q, "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
    }
    if (account_database(q->front->core.account, keyspace, false, &d) != OK) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_CONFIG, "Keyspace %.*s doesn't exist", slice_shown(keyspace), keyspace.p);
    }
    err code = create_table(q, d);
    database_give(d);
    return code;
}

/* ---- changing a table's definition ---- */

static err changed(cass_request *q) {
    container_replacement *replace = (container_replacement *)q->change;
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (replace->container_out) {
        container_give(replace->container_out);
    }
    if (code == E_PRECONDITION) {
        return op_fail_as(&q->op, code, CASS_CODE_CONFIG, "Another change of the table came between; repeat the statement.");
    }
    TRY(code);
    return cass_answer_change(q, q->told);
}

static err replace_definition(cass_request *q, const cass_definition *d, cass_change told) {
    container_replacement *replace = cass_new_change(q, container_replacement);
    slice *memo = arena_new(q->frame->arena, slice);
    cass_types types;
    cass_types_init(&types, q->frame->arena, q->table->table.keyspace, q->table->types.types);
    TRY(cass_definition_write(&q->op, d, memo));
    TRY(cass_settings_of(&q->op, &types.source, q->container->id, d, &replace->settings));
    replace->database.text = q->table->table.keyspace;
    replace->container.text = q->container->id;
    replace->memo = memo;
    replace->expected = q->container->version;
    replace->api = CASS_API;
    q->told = told;
    cass_await_change(q, changed);
    account_replace_container(replace);
    return OK;
}

static err find_table(cass_request *q, const cql_table_name *name, unsigned verbs, bool if_exists, bool *answered) {
    slice keyspace = keyspace_of(q, name);
    *answered = false;
    if (cass_system_has(keyspace)) {
        return refuse_system(q, keyspace);
    }
    err code = cass_table_find(q->front, &q->op, keyspace, name->name, &q->table, &q->container);
    if (code != OK && if_exists) {
        q->op.detail_n = 0;
        *answered = true;
        return cass_answer_void(q);
    }
    TRY(code);
    return cass_allow(q, verbs, NULL);
}

/* ---- ALTER TABLE ---- */

static int column_at(const cass_definition *d, slice name) {
    for (uint32_t i = 0; i < d->columns_n; i++) {
        if (slice_eq(d->columns[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

static bool member_is_used(const cass_definition *d, slice member) {
    for (uint32_t i = 0; i < d->columns_n; i++) {
        if (slice_eq(d->columns[i].member, member)) {
            return true;
        }
    }
    return false;
}

static err add_columns(cass_request *q, cass_definition *d) {
    const cql_alter *s = &q->tree->alter;
    cass_types types;
    cass_column_definition *columns = arena_array(q->frame->arena, cass_column_definition, d->columns_n + s->columns_n + 1);
    cass_types_init(&types, q->frame->arena, q->table->table.keyspace, q->table->types.types);
    memcpy(columns, d->columns, d->columns_n * sizeof *columns);
    d->columns = columns;
    for (uint32_t i = 0; i < s->columns_n; i++) {
        const cql_column_definition *c = &s->columns[i];
        if (column_at(d, c->name) >= 0) {
            if (s->if_not_exists) {
                continue;
            }
            return cass_invalid(q, "Invalid column name %.*s because it conflicts with an existing column", slice_shown(c->name),
                                c->name.p);
        }
        cass_column_definition made = {
            .name = c->name, .member = c->name, .kind = c->is_static ? CQL_COLUMN_STATIC : CQL_COLUMN_REGULAR, .dropped_us = INT64_MIN};
        if (c->is_static && !q->table->table.clustering_n) {
            return cass_invalid(q, "Static columns are only useful (and thus allowed) if the table has at least one clustering column");
        }
        TRY(check_column(q, &types, c, made.kind, &made.type));
        for (uint32_t k = 0; k < d->dropped_n; k++) {
            if (slice_eq(d->dropped[k].name, c->name)) {
                made.dropped_us = d->dropped[k].us > made.dropped_us ? d->dropped[k].us : made.dropped_us;
                if (!slice_eq(d->dropped[k].type, made.type)) {
                    return cass_invalid(q,
                                        "Cannot re-add previously dropped column '%.*s' of type %.*s, incompatible with previous type %.*s",
                                        slice_shown(c->name), c->name.p, slice_shown(made.type), made.type.p,
                                        slice_shown(d->dropped[k].type), d->dropped[k].type.p);
                }
            }
        }
        for (unsigned k = 2; member_is_used(d, made.member); k++) {
            made.member = arena_printf(q->frame->arena, "%.*s~%u", (int)c->name.n, c->name.p, k);
        }
        d->columns[d->columns_n++] = made;
    }
    uint32_t keys = q->table->table.partition_n + q->table->table.clustering_n;
    qsort(d->columns + keys, d->columns_n - keys, sizeof *d->columns, compare_columns);
    return d->columns_n <= CASS_COLUMNS_MAX ? check_counters(q, d) : too_many_columns(q);
}

static err drop_columns(cass_request *q, cass_definition *d) {
    const cql_alter *s = &q->tree->alter;
    cass_dropped *dropped = arena_array(q->frame->arena, cass_dropped, d->dropped_n + s->dropped_n + 1);
    memcpy(dropped, d->dropped, d->dropped_n * sizeof *dropped);
    d->dropped = dropped;
    for (uint32_t i = 0; i < s->dropped_n; i++) {
        int at = column_at(d, s->dropped[i]);
        if (at < 0) {
            if (s->columns_if_exist) {
                continue;
            }
            return cass_invalid(q, "Column %.*s was not found in table %.*s", slice_shown(s->dropped[i]), s->dropped[i].p,
                                slice_shown(q->table->table.name), q->table->table.name.p);
        }
        cass_column_definition *c = &d->columns[at];
        if (c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING) {
            return cass_invalid(q, "Cannot drop PRIMARY KEY part %.*s", slice_shown(c->name), c->name.p);
        }
        for (uint32_t k = 0; k < d->indexes_n; k++) {
            if (slice_eq(d->indexes[k].column, c->name)) {
                return cass_invalid(q, "Cannot drop column %.*s because it has dependent secondary indexes (%.*s)", slice_shown(c->name),
                                    c->name.p, slice_shown(d->indexes[k].name), d->indexes[k].name.p);
            }
        }
        d->dropped[d->dropped_n++] =
            (cass_dropped){.name = c->name, .type = c->type, .kind = c->kind, .us = cass_write_time(q->front, q->now_us)};
        memmove(c, c + 1, (d->columns_n - (uint32_t)at - 1) * sizeof *c);
        d->columns_n--;
    }
    return OK;
}

static err rename_columns(cass_request *q, cass_definition *d) {
    const cql_alter *s = &q->tree->alter;
    for (uint32_t i = 0; i < s->renames_n; i++) {
        int at = column_at(d, s->renames[i].from);
        if (at < 0) {
            if (s->columns_if_exist) {
                continue;
            }
            return cass_invalid(q, "Cannot rename unknown column %.*s in keyspace %.*s", slice_shown(s->renames[i].from),
                                s->renames[i].from.p, slice_shown(q->table->table.keyspace), q->table->table.keyspace.p);
        }
        if (d->columns[at].kind != CQL_COLUMN_PARTITION && d->columns[at].kind != CQL_COLUMN_CLUSTERING) {
            return cass_invalid(q, "Cannot rename non PRIMARY KEY column %.*s", slice_shown(s->renames[i].from), s->renames[i].from.p);
        }
        if (column_at(d, s->renames[i].to) >= 0) {
            return cass_invalid(q, "Cannot rename column %.*s to %.*s in keyspace; another column of that name already exist",
                                slice_shown(s->renames[i].from), s->renames[i].from.p, slice_shown(s->renames[i].to), s->renames[i].to.p);
        }
        for (uint32_t k = 0; k < d->indexes_n; k++) {
            if (slice_eq(d->indexes[k].column, d->columns[at].name)) {
                d->indexes[k].column = s->renames[i].to;
            }
        }
        d->columns[at].name = s->renames[i].to;
    }
    return OK;
}

/* ---- throughput of a table ---- */

static err offered(cass_request *q) {
    err code = q->change->commit.code;
    TRY(code);
    return replace_definition(q, q->state, q->told);
}

static err set_throughput(cass_request *q, cass_definition *d, throughput_setting t) {
    offer_replacement *replace = cass_new_change(q, offer_replacement);
    database *own;
    offer found;
    TRY(account_database(q->front->core.account, q->table->table.keyspace, false, &own));
    bool has = false;
    uint32_t number = own->number;
    database_give(own);
    has = account_offer_of(q->front->core.account, number, q->container->space->container, &found);
    if (!has) {
        return cass_invalid(q, "The table shares the throughput of its keyspace: it has none of its own to change.");
    }
    replace->offer = found.rid;
    replace->throughput = t;
    q->state = d;
    cass_await_change(q, offered);
    account_replace_offer(replace);
    return OK;
}

err cass_alter_table(cass_request *q) {
    const cql_alter *s = &q->tree->alter;
    bool answered;
    throughput_setting throughput = {0};
    TRY(find_table(q, &s->table, ACCESS_ALTER, s->if_exists, &answered));
    if (answered) {
        return OK;
    }
    cass_definition *d = arena_new(q->frame->arena, cass_definition);
    if (!cass_definition_read(q->frame->arena, arena_copy(q->frame->arena, q->container->memo), d)) {
        return E_INTERNAL;
    }
    switch (s->kind) {
    case CQL_ALTER_ADD:
        TRY(add_columns(q, d));
        break;
    case CQL_ALTER_DROP:
        TRY(drop_columns(q, d));
        break;
    case CQL_ALTER_RENAME:
        TRY(rename_columns(q, d));
        break;
    case CQL_ALTER_OPTIONS:
        TRY(merge_options(q, d->options, &s->properties, &d->options));
        TRY(cass_throughput_of(q, &s->properties, &throughput));
        break;
    case CQL_ALTER_TYPE:
        return cass_invalid(q, "Altering of types is not allowed");
    case CQL_ALTER_DROP_COMPACT:
        return cass_invalid(q, "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
    }
    q->told = table_change("UPDATED", q->table->table.keyspace, q->table->table.name);
    return throughput.kind != THROUGHPUT_NONE ? set_throughput(q, d, throughput) : replace_definition(q, d, q->told);
}

/* ---- DROP and TRUNCATE ---- */

static err table_dropped(cass_request *q) {
    TRY(q->change->commit.code);
    op_charge(&q->op, CHARGE_METADATA_DELETE);
    return cass_answer_change(q, q->told);
}

/* Its definition is not read, so that a table of which a user type is missing can be dropped too. */
err cass_drop_table(cass_request *q) {
    const cql_drop *s = &q->tree->drop;
    slice keyspace = keyspace_of(q, &s->target);
    if (cass_system_has(keyspace)) {
        return refuse_system(q, keyspace);
    }
    err code = cass_container_find(q->front, &q->op, keyspace, s->target.name, &q->container);
    if (code != OK && s->if_exists) {
        q->op.detail_n = 0;
        return cass_answer_void(q);
    }
    TRY(code);
    TRY(cass_allow(q, ACCESS_DROP, NULL));
    q->told = table_change("DROPPED", keyspace, s->target.name);
    container_deletion *remove = cass_new_change(q, container_deletion);
    remove->database.text = keyspace;
    remove->container.text = s->target.name;
    cass_await_change(q, table_dropped);
    account_delete_container(remove);
    return OK;
}

static err table_truncated(cass_request *q) {
    container_creation *create = (container_creation *)q->change;
    err code = q->change->commit.code;
    if (create->container_out) {
        container_give(create->container_out);
    }
    TRY(code);
    return cass_answer_void(q);
}

/* One change puts a container of the same definition, which never held a row, in the place of the old one. E_PRECONDITION: another change
 * of the table came in between. */
err cass_truncate(cass_request *q) {
    bool answered;
    cass_types types;
    TRY(find_table(q, &q->tree->drop.target, ACCESS_DELETE, false, &answered));
    container_creation *create = cass_new_change(q, container_creation);
    cass_types_init(&types, q->frame->arena, q->table->table.keyspace, q->table->types.types);
    TRY(cass_settings_of(&q->op, &types.source, q->table->table.name, &q->table->definition, &create->settings));
    TRY(cass_rows_of(&q->op, &types.source, &q->table->definition, &create->rows));
    TRY(cass_definition_write(&q->op, &q->table->definition, &create->memo));
    create->database.text = q->table->table.keyspace;
    create->api = CASS_API;
    create->replaces = q->container->version;
    create->truncates = true;
    cass_await_change(q, table_truncated);
    account_create_container(create);
    return OK;
}

/* ---- indexes ---- */

static const char *target_text(cql_index_target target) {
    static const char *const texts[] = {"simple", "values", "keys", "entries", "full"};
    return texts[target];
}

/* Of a collection, the values are indexed if the statement does not say what. */
static cql_index_target target_of(const cql_column *c, cql_index_target target) {
    return target == CQL_INDEX_SIMPLE && cql_type_is_collection(c->type) ? CQL_INDEX_VALUES : target;
}

static err check_index(cass_request *q, const cql_column *c, cql_index_target target) {
    bool collection = cql_type_is_collection(c->type), frozen = collection && c->type->frozen;
    if (target == CQL_INDEX_FULL && !frozen) {
        return cass_invalid(q, "full() indexes can only be created on frozen collections");
    }
    if (frozen && target != CQL_INDEX_FULL) {
        return cass_invalid(q, "Cannot create %s() index on frozen column %.*s. Frozen collections only support full() indexes",
                            target_text(target), slice_shown(c->name), c->name.p);
    }
    if (!collection && target != CQL_INDEX_SIMPLE) {
        return cass_invalid(q, "Cannot create %s() index on %.*s. Non-collection columns support only simple indexes", target_text(target),
                            slice_shown(c->name), c->name.p);
    }
    if ((target == CQL_INDEX_KEYS || target == CQL_INDEX_ENTRIES) && c->type->kind != CQL_MAP) {
        return cass_invalid(q, "Cannot create index on %s of column %.*s with non-map type", target_text(target), slice_shown(c->name),
                            c->name.p);
    }
    if (c->type->kind == CQL_UDT && !c->type->frozen) {
        return cass_invalid(q, "Secondary indexes are not supported on non-frozen UDTs");
    }
    if (q->table->counters) {
        return cass_invalid(q, "Secondary indexes are not supported on counter tables");
    }
    if (cql_type_has_duration(c->type)) {
        return cass_invalid(q, "Secondary indexes are not supported on %s",
                            c->type->kind == CQL_DURATION ? "duration columns" : "columns containing durations");
    }
    return OK;
}

static slice index_name(cass_request *q, const cql_create_index *s, const cass_definition *d) {
    slice table = q->table->table.name, column = s->columns[0];
    slice name = s->name.n ? s->name : arena_printf(q->frame->arena, "%.*s_%.*s_idx", (int)table.n, table.p, (int)column.n, column.p);
    for (uint32_t i = 0, k = 1; !s->name.n && i < d->indexes_n; i++) {
        if (slice_eq(d->indexes[i].name, name)) {
            name = arena_printf(q->frame->arena, "%.*s_%.*s_idx_%u", (int)table.n, table.p, (int)column.n, column.p, k++);
            i = UINT32_MAX;
        }
    }
    return name;
}

err cass_create_index(cass_request *q) {
    const cql_create_index *s = &q->tree->create_index;
    bool answered;
    TRY(find_table(q, &s->table, ACCESS_ALTER, false, &answered));
    if (s->custom || s->columns_n != 1) {
        return cass_invalid(q, s->custom ? "Custom indexes are not supported." : "Only CUSTOM indexes support multiple columns");
    }
    const cql_column *c = cql_table_column(&q->table->table, s->columns[0]);
    if (!c) {
        return cass_invalid(q, "Undefined column name %.*s in table %.*s", slice_shown(s->columns[0]), s->columns[0].p,
                            slice_shown(q->table->table.name), q->table->table.name.p);
    }
    cql_index_target target = target_of(c, s->targets[0]);
    TRY(check_index(q, c, target));
    cass_definition *d = arena_new(q->frame->arena, cass_definition);
    if (!cass_definition_read(q->frame->arena, arena_copy(q->frame->arena, q->container->memo), d)) {
        return E_INTERNAL;
    }
    slice name = index_name(q, s, d);
    for (uint32_t i = 0; i < d->indexes_n; i++) {
        bool same = slice_eq(d->indexes[i].column, c->name) && target_of(c, d->indexes[i].target) == target;
        if (slice_eq(d->indexes[i].name, name) || same) {
            return s->if_not_exists ? cass_answer_void(q)
                                    : cass_invalid(q, "Index %.*s %s", slice_shown(name), name.p,
                                                   same ? "is a duplicate of an existing index" : "already exists");
        }
    }
    if (d->indexes_n == CASS_INDEXES_MAX) {
        return cass_invalid(q, "A table may have %d indexes at most.", CASS_INDEXES_MAX);
    }
    d->indexes[d->indexes_n++] = (cass_index_definition){.name = name, .column = c->name, .target = target};
    return replace_definition(q, d, table_change("UPDATED", q->table->table.keyspace, q->table->table.name));
}

typedef struct index_search {
    op *op;
    slice index, table;
    err code;
} index_search;

static bool has_index(void *context, const container *c) {
    index_search *s = context;
    arena scratch = arena_init();
    cass_definition d;
    s->code = op_check(s->op);
    bool read = s->code == OK && cass_definition_read(&scratch, c->memo, &d);
    for (uint32_t i = 0; read && i < d.indexes_n && !s->table.n; i++) {
        if (slice_eq(d.indexes[i].name, s->index)) {
            s->table = arena_copy(s->op->arena, c->id);
        }
    }
    arena_free(&scratch);
    return s->code == OK && !s->table.n;
}

static err find_index(cass_request *q, cass_look *l) {
    index_search search = {.op = &q->op, .index = q->tree->drop.target.name};
    cass_each_table(q->front, l->keyspace, has_index, &search);
    l->found = search.table;
    return search.code;
}

static err refuse_missing_index(cass_request *q) {
    const cql_drop *s = &q->tree->drop;
    slice keyspace = keyspace_of(q, &s->target);
    return s->if_exists ? cass_answer_void(q)
                        : cass_invalid(q, "Index '%.*s' could not be found in any of the tables of keyspace '%.*s'",
                                       slice_shown(s->target.name), s->target.name.p, slice_shown(keyspace), keyspace.p);
}

static err drop_index_of(cass_request *q, const cass_look *l) {
    const cql_drop *s = &q->tree->drop;
    slice keyspace = keyspace_of(q, &s->target);
    bool answered;
    if (!l->found.n) {
        return refuse_missing_index(q);
    }
    TRY(find_table(q, &(cql_table_name){.keyspace = keyspace, .name = l->found}, ACCESS_ALTER, false, &answered));
    cass_definition *definition = arena_new(q->frame->arena, cass_definition);
    if (!cass_definition_read(q->frame->arena, arena_copy(q->frame->arena, q->container->memo), definition)) {
        return E_INTERNAL;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < definition->indexes_n; i++) {
        if (!slice_eq(definition->indexes[i].name, s->target.name)) {
            definition->indexes[n++] = definition->indexes[i];
        }
    }
    definition->indexes_n = n;
    return replace_definition(q, definition, table_change("UPDATED", q->table->table.keyspace, q->table->table.name));
}

err cass_drop_index(cass_request *q) {
    cass_look l = {.look = find_index, .go_on = drop_index_of};
    slice keyspace = keyspace_of(q, &q->tree->drop.target);
    TRY(cass_allow(q, ACCESS_ALTER, NULL));
    if (!keyspace.n) {
        return cass_invalid(q, "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
    }
    if (account_database(q->front->core.account, keyspace, false, &l.keyspace) != OK) {
        return refuse_missing_index(q);
    }
    cass_look_at_tables(q, &l);
    return OK;
}
