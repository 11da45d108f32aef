#include "api/cassandra/system.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "api/cassandra/execute.h"
#include "api/cassandra/trace.h"

/* ---- making rows ---- */

typedef struct maker {
    cass_request *q;
    const cass_table *t;
    cass_system_rows *rows;
    cass_row *row;         /* the newest */
    slice address;         /* the server's; empty: not asked for yet */
    const cql_value *keys; /* of partitions: of others no rows are needed; NULL: of all */
    uint32_t keys_n;
    err code;
} maker;

static void new_row(maker *m) {
    cass_system_rows *r = m->rows;
    op *o = &m->q->op;
    if (r->n == r->room) {
        uint32_t room = r->room ? 2 * r->room : 16;
        if (!arena_fits(o->arena, room * sizeof(cass_row))) {
            m->code = budget_error(o->budget);
            m->row = &r->rows[0];
            return;
        }
        cass_row *rows = arena_array(o->arena, cass_row, room);
        if (r->n) {
            memcpy(rows, r->rows, r->n * sizeof *rows);
        }
        r->rows = rows;
        r->room = room;
    }
    m->row = &r->rows[r->n++];
    cass_row_init(o, m->t, m->row);
}

static const cql_type *set(maker *m, const char *name, cql_value v) {
    const cql_column *c = cql_table_column(&m->t->table, slice_str(name));
    if (!c) {
        return NULL;
    }
    cass_cell *cell = &m->row->cells[cass_column_index(m->t, c)];
    *cell = (cass_cell){.there = true, .value = v, .deleted_us = CASS_NEVER};
    return c->type;
}

static arena *memory(const maker *m) {
    return m->q->op.arena;
}

static void set_text(maker *m, const char *name, slice text) {
    set(m, name, cql_value_text(arena_copy(memory(m), text)));
}

static void set_word(maker *m, const char *name, const char *text) {
    set(m, name, cql_value_text(slice_str(text)));
}

static void set_int(maker *m, const char *name, int32_t number) {
    set(m, name, cql_value_int(memory(m), number));
}

static void set_bool(maker *m, const char *name, bool truth) {
    set(m, name, cql_value_bool(truth));
}

static void set_double(maker *m, const char *name, double number) {
    set(m, name, cql_value_double(memory(m), number));
}

static void set_bytes(maker *m, const char *name, slice bytes) {
    set(m, name, cql_value_of(arena_copy(memory(m), bytes)));
}

/* A list or set of texts, or a map of texts: keys and values in turn. */
static void set_texts(maker *m, const char *name, const slice *texts, uint32_t n) {
    const cql_column *c = cql_table_column(&m->t->table, slice_str(name));
    cql_value *values = arena_array(memory(m), cql_value, n + 1), v;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = cql_value_text(arena_copy(memory(m), texts[i]));
    }
    if (c && cql_value_collect(memory(m), c->type, values, n, &v)) {
        set(m, name, v);
    }
}

/* The address that the client has connected to; asking for it is a system call. */
static slice local_address(const maker *m) {
    char text[HTTP_PEER_BYTES];
    unsigned char bytes[16];
    frames_local(m->q->frame->conn, text);
    char *colon = strrchr(text, ':'), *host = text;
    if (colon) {
        *colon = 0;
    }
    if (host[0] == '[') {
        host++;
        host[strcspn(host, "]")] = 0;
    }
    size_t n = inet_pton(AF_INET, host, bytes) == 1 ? 4 : inet_pton(AF_INET6, host, bytes) == 1 ? 16 : 0;
    return n ? arena_copy(memory(m), slice_of(bytes, n)) : SLICE_LIT("\x7F\0\0\1");
}

static void set_inet(maker *m, const char *name) {
    m->address = m->address.n ? m->address : local_address(m);
    set(m, name, cql_value_of(m->address));
}

/* ---- system.local ---- */

/* Changes with every change of a database or container. */
static void schema_version(const cass_front *f, uint8_t uuid[16]) {
    uint64_t lsn = account_lsn(f->core.account);
    memset(uuid, 0, 16);
    for (int i = 0; i < 8; i++) {
        uuid[15 - i] = (uint8_t)(lsn >> (8 * i));
    }
    memcpy(uuid, f->host_id, 6);
    uuid[6] = 0x40;
    uuid[8] |= 0x80;
}

static void fill_local(maker *m) {
    uint8_t version[16];
    slice token = SLICE_LIT("-9223372036854775808");
    new_row(m);
    schema_version(m->q->front, version);
    set_word(m, "key", "local");
    set_word(m, "bootstrapped", "COMPLETED");
    set_word(m, "cluster_name", "tesela");
    set_word(m, "cql_version", CASS_CQL_VERSION);
    set_word(m, "data_center", "datacenter1");
    set_word(m, "native_protocol_version", "5");
    set_word(m, "partitioner", "org.apache.cassandra.dht.Murmur3Partitioner");
    set_word(m, "rack", "rack1");
    set_word(m, "release_version", CASS_RELEASE);
    set_word(m, "thrift_version", "20.1.0");
    set_int(m, "gossip_generation", 1);
    set_bytes(m, "host_id", slice_of(m->q->front->host_id, 16));
    set_bytes(m, "schema_version", slice_of(version, 16));
    set_inet(m, "broadcast_address");
    set_inet(m, "listen_address");
    set_inet(m, "rpc_address");
    set_texts(m, "tokens", &token, 1);
}

/* ---- every table ---- */

typedef void (*table_visit)(maker *m, const cass_table *t);

static size_t system_tables(const cass_table ***tables_out);

typedef struct name_list {
    arena *arena;
    slice *names;
    size_t n, room;
} name_list;

/* Copies the name: a database may be dropped right after the visit, and more may be made between two visits. */
static bool visit_database(void *context, const database *d) {
    name_list *l = context;
    if (l->n < l->room) {
        l->names[l->n++] = arena_copy(l->arena, slice_str(d->id));
    }
    return l->n < l->room;
}

static bool count_database(void *context, const database *d) {
    (void)d;
    ++*(size_t *)context;
    return true;
}

/* The keyspaces, those of the system first. Visitors may not call back into the account, so names are collected before. */
static slice *keyspaces(maker *m, size_t *n_out) {
    size_t room = 16;
    account_each_database(m->q->front->core.account, 0, count_database, &room);
    name_list l = {.arena = memory(m), .names = arena_array(memory(m), slice, room), .room = room};
    account_each_database(m->q->front->core.account, 0, visit_database, &l);
    *n_out = l.n;
    return l.names;
}

static bool is_wanted(const maker *m, slice keyspace) {
    bool wanted = !m->keys;
    for (uint32_t i = 0; i < m->keys_n && !wanted; i++) {
        wanted = slice_eq(m->keys[i].bytes, keyspace);
    }
    return wanted;
}

typedef struct each {
    maker *m;
    table_visit visit;
    slice types;
} each;

static bool visit_container(void *context, const container *c) {
    each *e = context;
    cass_table *t;
    op o;
    op_init(&o, memory(e->m), 0);
    e->m->code = op_check(&e->m->q->op);
    if (e->m->code == OK && cass_table_new(&o, c->database_id, c->id, c->memo, e->types, &t) == OK) {
        e->visit(e->m, t);
        cass_table_give(t);
    }
    return e->m->code == OK;
}

static void each_table(maker *m, table_visit visit) {
    const cass_table **own;
    size_t n, own_n = system_tables(&own);
    slice *names = keyspaces(m, &n);
    for (size_t i = 0; i < own_n; i++) {
        if (is_wanted(m, own[i]->table.keyspace)) {
            visit(m, own[i]);
        }
    }
    for (size_t i = 0; i < n && m->code == OK; i++) {
        database *d;
        if (is_wanted(m, names[i]) && account_database(m->q->front->core.account, names[i], false, &d) == OK) {
            each e = {.m = m, .visit = visit, .types = cass_keyspace_of(d).types};
            cass_each_table(m->q->front, d, visit_container, &e);
            database_give(d);
        }
    }
}

/* ---- system_schema ---- */

static const char *const own_keyspaces[] = {"system", "system_schema", "system_virtual_schema", "system_auth", "system_traces"};
enum { OWN_KEYSPACES = sizeof own_keyspaces / sizeof *own_keyspaces };

static void keyspace_row(maker *m, slice name, bool durable, bool own) {
    slice local[] = {SLICE_LIT("class"), SLICE_LIT("org.apache.cassandra.locator.LocalStrategy")};
    slice four[] = {SLICE_LIT("class"), SLICE_LIT("org.apache.cassandra.locator.NetworkTopologyStrategy"), SLICE_LIT("datacenter1"),
                    SLICE_LIT("4")};
    new_row(m);
    set_text(m, "keyspace_name", name);
    set_bool(m, "durable_writes", durable);
    set_texts(m, "replication", own ? local : four, own ? 2 : 4);
}

static void fill_keyspaces(maker *m) {
    size_t n;
    slice *names = keyspaces(m, &n);
    for (size_t i = 0; i < OWN_KEYSPACES; i++) {
        keyspace_row(m, slice_str(own_keyspaces[i]), true, true);
    }
    for (size_t i = 0; i < n; i++) {
        database *d;
        if (account_database(m->q->front->core.account, names[i], false, &d) == OK) {
            keyspace_row(m, names[i], cass_keyspace_of(d).durable_writes, false);
            database_give(d);
        }
    }
}

static double option_double(slice options, const char *name, double otherwise) {
    slice text = cass_member_text(options, name);
    char room[32];
    if (text.n && text.n < sizeof room) {
        memcpy(room, text.p, text.n);
        room[text.n] = 0;
        return strtod(room, NULL);
    }
    int64_t number = cass_option_int(options, name, INT64_MIN);
    return number == INT64_MIN ? otherwise : (double)number;
}

static void set_option_map(maker *m, slice options, const char *name, const slice *otherwise, uint32_t n) {
    enum { ENTRIES_MAX = 64 };
    slice texts[2 * ENTRIES_MAX];
    doc_element e;
    doc_walk w;
    uint32_t given = 0;
    if (!cass_member(options, name, &e) || e.type != BSON_TYPE_DOCUMENT) {
        set_texts(m, name, otherwise, n);
        return;
    }
    slice map = e.value;
    for (doc_walk_init(&w, map); doc_walk_next(&w, &e) && given < 2 * ENTRIES_MAX;) {
        texts[given++] = e.key;
        texts[given++] = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
    }
    set_texts(m, name, texts, given);
}

static slice option_text(slice options, const char *name, const char *otherwise) {
    slice text = cass_member_text(options, name);
    return text.n ? text : slice_str(otherwise);
}

static void table_row(maker *m, const cass_table *t) {
    static const slice caching[] = {{"keys", 4}, {"ALL", 3}, {"rows_per_partition", 18}, {"NONE", 4}};
    static const slice compaction[] = {{"class", 5},          {"org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy", 63},
                                       {"max_threshold", 13}, {"32", 2},
                                       {"min_threshold", 13}, {"4", 1}};
    static const slice compression[] = {
        {"chunk_length_in_kb", 18}, {"64", 2}, {"class", 5}, {"org.apache.cassandra.io.compress.LZ4Compressor", 46}};
    slice o = t->definition.options, flags[] = {SLICE_LIT("compound"), SLICE_LIT("counter")};
    new_row(m);
    set_text(m, "keyspace_name", t->table.keyspace);
    set_text(m, "table_name", t->table.name);
    set_double(m, "bloom_filter_fp_chance", option_double(o, "bloom_filter_fp_chance", 0.01));
    set_option_map(m, o, "caching", caching, 4);
    set_bool(m, "cdc", cass_option_int(o, "cdc", 0));
    set_text(m, "comment", option_text(o, "comment", ""));
    set_option_map(m, o, "compaction", compaction, 6);
    set_option_map(m, o, "compression", compression, 4);
    set_double(m, "crc_check_chance", option_double(o, "crc_check_chance", 1));
    set_double(m, "dclocal_read_repair_chance", option_double(o, "dclocal_read_repair_chance", 0.1));
    set_int(m, "default_time_to_live", t->default_ttl);
    set_texts(m, "extensions", NULL, 0);
    set_texts(m, "flags", flags, t->counters ? 2 : 1);
    set_int(m, "gc_grace_seconds", t->gc_grace_s);
    set_bytes(m, "id", t->definition.id);
    set_int(m, "max_index_interval", (int32_t)cass_option_int(o, "max_index_interval", 2048));
    set_int(m, "memtable_flush_period_in_ms", (int32_t)cass_option_int(o, "memtable_flush_period_in_ms", 0));
    set_int(m, "min_index_interval", (int32_t)cass_option_int(o, "min_index_interval", 128));
    set_double(m, "read_repair_chance", option_double(o, "read_repair_chance", 0));
    set_text(m, "speculative_retry", option_text(o, "speculative_retry", "99PERCENTILE"));
}

static void fill_tables(maker *m) {
    each_table(m, table_row);
}

static void column_rows(maker *m, const cass_table *t) {
    static const char *const kinds[] = {[CQL_COLUMN_PARTITION] = "partition_key",
                                        [CQL_COLUMN_CLUSTERING] = "clustering",
                                        [CQL_COLUMN_STATIC] = "static",
                                        [CQL_COLUMN_REGULAR] = "regular"};
    for (uint32_t i = 0; i < t->table.n; i++) {
        const cql_column *c = &t->table.columns[i];
        bool key = c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING;
        new_row(m);
        set_text(m, "keyspace_name", t->table.keyspace);
        set_text(m, "table_name", t->table.name);
        set_text(m, "column_name", c->name);
        set_word(m, "clustering_order", c->kind != CQL_COLUMN_CLUSTERING ? "none" : c->descending ? "desc" : "asc");
        set_bytes(m, "column_name_bytes", c->name);
        set_word(m, "kind", kinds[c->kind]);
        set_int(m, "position", key ? c->position : -1);
        set_text(m, "type", cql_type_text(memory(m), c->type));
    }
}

static void fill_columns(maker *m) {
    each_table(m, column_rows);
}

static void index_rows(maker *m, const cass_table *t) {
    static const char *const targets[] = {[CQL_INDEX_SIMPLE] = "%s",
                                          [CQL_INDEX_VALUES] = "values(%s)",
                                          [CQL_INDEX_KEYS] = "keys(%s)",
                                          [CQL_INDEX_ENTRIES] = "entries(%s)",
                                          [CQL_INDEX_FULL] = "full(%s)"};
    for (uint32_t i = 0; i < t->definition.indexes_n; i++) {
        const cass_index_definition *x = &t->definition.indexes[i];
        const char *form = targets[x->target];
        const cql_column *c = cql_table_column(&t->table, x->column);
        form = x->target == CQL_INDEX_SIMPLE && c && cql_type_is_multicell(c->type) ? targets[CQL_INDEX_VALUES] : form;
        buf target = buf_init(BUF_NO_LIMIT);
        const char *place = strstr(form, "%s");
        buf_add(&target, form, (size_t)(place - form));
        cql_name_write(&target, x->column);
        buf_add(&target, place + 2, strlen(place + 2));
        slice options[] = {SLICE_LIT("target"), buf_view(&target)};
        new_row(m);
        set_text(m, "keyspace_name", t->table.keyspace);
        set_text(m, "table_name", t->table.name);
        set_text(m, "index_name", x->name);
        set_word(m, "kind", "COMPOSITES");
        set_texts(m, "options", options, 2);
        buf_free(&target);
    }
}

static void fill_indexes(maker *m) {
    each_table(m, index_rows);
}

static void dropped_rows(maker *m, const cass_table *t) {
    for (uint32_t i = 0; i < t->definition.dropped_n; i++) {
        const cass_dropped *d = &t->definition.dropped[i];
        new_row(m);
        set_text(m, "keyspace_name", t->table.keyspace);
        set_text(m, "table_name", t->table.name);
        set_text(m, "column_name", d->name);
        set(m, "dropped_time", cql_value_bigint(memory(m), d->us / 1000));
        set_word(m, "kind", d->kind == CQL_COLUMN_STATIC ? "static" : "regular");
        set_text(m, "type", d->type);
    }
}

static void fill_dropped(maker *m) {
    each_table(m, dropped_rows);
}

static void type_rows(maker *m, slice keyspace, slice types) {
    enum { FIELDS_MAX = 1024 };
    slice *names = arena_array(memory(m), slice, FIELDS_MAX), *texts = arena_array(memory(m), slice, FIELDS_MAX);
    doc_walk w, fields;
    doc_element e, f;
    for (doc_walk_init(&w, types); doc_walk_next(&w, &e);) {
        uint32_t n = 0;
        for (doc_walk_init(&fields, e.value); doc_walk_next(&fields, &f) && n < FIELDS_MAX; n++) {
            names[n] = cass_member_text(f.value, "n");
            texts[n] = cass_member_text(f.value, "t");
        }
        new_row(m);
        set_text(m, "keyspace_name", keyspace);
        set_text(m, "type_name", e.key);
        set_texts(m, "field_names", names, n);
        set_texts(m, "field_types", texts, n);
    }
}

static void fill_types(maker *m) {
    size_t n;
    slice *names = keyspaces(m, &n);
    for (size_t i = 0; i < n; i++) {
        database *d;
        if (account_database(m->q->front->core.account, names[i], false, &d) == OK) {
            slice types = cass_keyspace_of(d).types;
            if (types.n) {
                type_rows(m, names[i], types);
            }
            database_give(d);
        }
    }
}

/* ---- system_traces ---- */

/* A trace shows statements of others: it is for keys of the account, not for tokens of one container. NULL: none may be shown. */
static const cass_trace *traces(maker *m, size_t *n_out) {
    op *o = &m->q->op;
    *n_out = 0;
    if (!access_allows(&m->q->conn->reach, ACCESS_READ | ACCESS_LIST, NULL, NULL)) {
        return NULL;
    }
    if (!arena_fits(o->arena, CASS_TRACES * sizeof(cass_trace))) {
        m->code = budget_error(o->budget);
        return NULL;
    }
    cass_trace *list = arena_array(o->arena, cass_trace, CASS_TRACES);
    *n_out = cass_traces_copy(m->q->front->traces, list);
    return list;
}

static void set_client(maker *m, const cass_trace *t) {
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    bool is_v4 = memcmp(t->client, mapped, sizeof mapped) == 0;
    set_bytes(m, "client", slice_of(t->client + (is_v4 ? 12 : 0), is_v4 ? 4 : 16));
}

static void set_parameters(maker *m, const cass_trace *t) {
    static const char *const levels[] = {"ANY",          "ONE",         "TWO",    "THREE",        "QUORUM",   "ALL",
                                         "LOCAL_QUORUM", "EACH_QUORUM", "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE"};
    arena *a = memory(m);
    const char *level = t->consistency < sizeof levels / sizeof *levels ? levels[t->consistency] : "?";
    slice texts[] = {SLICE_LIT("consistency_level"),
                     slice_str(level),
                     SLICE_LIT("page_size"),
                     arena_printf(a, "%d", (int)t->page_size),
                     SLICE_LIT("query"),
                     slice_of(t->text, t->text_n),
                     SLICE_LIT("request_charge"),
                     arena_printf(a, "%.2f", t->charge_ru)};
    set_texts(m, "parameters", texts, sizeof texts / sizeof *texts);
}

static void fill_sessions(maker *m) {
    size_t n;
    const cass_trace *list = traces(m, &n);
    for (size_t i = 0; i < n; i++) {
        const cass_trace *t = &list[i];
        new_row(m);
        set_bytes(m, "session_id", slice_of(t->id, sizeof t->id));
        set_client(m, t);
        set_word(m, "command", "QUERY");
        set_inet(m, "coordinator");
        set_int(m, "duration", (int32_t)t->duration_us);
        set_parameters(m, t);
        set_word(m, "request", t->verb);
        set(m, "started_at", cql_value_bigint(memory(m), t->started_us / 1000));
    }
}

static void event_row(maker *m, const cass_trace *t, uint8_t number, uint32_t elapsed_us, slice activity) {
    uint8_t id[16];
    memcpy(id, t->id, sizeof id);
    id[15] = (uint8_t)(id[15] + number);
    new_row(m);
    set_bytes(m, "session_id", slice_of(t->id, sizeof t->id));
    set_bytes(m, "event_id", slice_of(id, sizeof id));
    set_text(m, "activity", activity);
    set_inet(m, "source");
    set_int(m, "source_elapsed", (int32_t)elapsed_us);
    set_word(m, "thread", "loop");
}

static void fill_events(maker *m) {
    size_t n;
    const cass_trace *list = traces(m, &n);
    arena *a = memory(m);
    for (size_t i = 0; i < n; i++) {
        const cass_trace *t = &list[i];
        event_row(m, t, 1, 0, arena_printf(a, "Received a message of %zu bytes", t->message_bytes));
        event_row(m, t, 2, t->decoded_us, arena_printf(a, "Decoded %s", t->verb));
        event_row(m, t, 3, t->duration_us,
                  t->status ? arena_printf(a, "Failed with code 0x%04x; charged %.2f RU", (unsigned)t->status, t->charge_ru)
                            : arena_printf(a, "Answered; charged %.2f RU", t->charge_ru));
    }
}

static void fill_nothing(maker *m) {
    (void)m;
}

/* ---- definitions ---- */

#define NAMED "keyspace_name text, "
#define TABLE_OPTIONS                                                                                                                      \
    "bloom_filter_fp_chance double, caching frozen<map<text, text>>, cdc boolean, comment text, compaction frozen<map<text, text>>, "      \
    "compression frozen<map<text, text>>, crc_check_chance double, dclocal_read_repair_chance double, default_time_to_live int, "          \
    "extensions frozen<map<text, blob>>, gc_grace_seconds int, id uuid, max_index_interval int, memtable_flush_period_in_ms int, "         \
    "min_index_interval int, read_repair_chance double, speculative_retry text, "

struct cass_system {
    const char *text; /* CREATE TABLE */
    void (*fill)(maker *m);
    bool many; /* its rows are made by a worker: it has one or more for each keyspace or table */
};

static const struct cass_system definitions[] = {
    {"CREATE TABLE system.local (key text PRIMARY KEY, bootstrapped text, broadcast_address inet, cluster_name text, cql_version text, "
     "data_center text, gossip_generation int, host_id uuid, listen_address inet, native_protocol_version text, partitioner text, rack "
     "text, "
     "release_version text, rpc_address inet, schema_version uuid, thrift_version text, tokens set<text>, truncated_at map<uuid, blob>)",
     fill_local, false},
    {"CREATE TABLE system.peers (peer inet PRIMARY KEY, data_center text, host_id uuid, preferred_ip inet, rack text, release_version "
     "text, "
     "rpc_address inet, schema_version uuid, tokens set<text>)",
     fill_nothing, false},
    {"CREATE TABLE system.peers_v2 (peer inet, peer_port int, data_center text, host_id uuid, native_address inet, native_port int, "
     "preferred_ip inet, preferred_port int, rack text, release_version text, schema_version uuid, tokens set<text>, PRIMARY KEY (peer, "
     "peer_port))",
     fill_nothing, false},
    {"CREATE TABLE system.size_estimates (" NAMED "table_name text, range_start text, range_end text, mean_partition_size bigint, "
     "partitions_count bigint, PRIMARY KEY (keyspace_name, table_name, range_start, range_end))",
     fill_nothing, false},
    {"CREATE TABLE system.built_views (" NAMED "view_name text, PRIMARY KEY (keyspace_name, view_name))", fill_nothing, false},
    {"CREATE TABLE system_schema.keyspaces (" NAMED
     "durable_writes boolean, replication frozen<map<text, text>>, PRIMARY KEY (keyspace_name))",
     fill_keyspaces, true},
    {"CREATE TABLE system_schema.tables (" NAMED "table_name text, " TABLE_OPTIONS
     "flags frozen<set<text>>, PRIMARY KEY (keyspace_name, table_name))",
     fill_tables, true},
    {"CREATE TABLE system_schema.columns (" NAMED
     "table_name text, column_name text, clustering_order text, column_name_bytes blob, kind text, "
     "position int, type text, PRIMARY KEY (keyspace_name, table_name, column_name))",
     fill_columns, true},
    {"CREATE TABLE system_schema.dropped_columns (" NAMED
     "table_name text, column_name text, dropped_time timestamp, kind text, type text, "
     "PRIMARY KEY (keyspace_name, table_name, column_name))",
     fill_dropped, true},
    {"CREATE TABLE system_schema.indexes (" NAMED "table_name text, index_name text, kind text, options frozen<map<text, text>>, "
     "PRIMARY KEY (keyspace_name, table_name, index_name))",
     fill_indexes, true},
    {"CREATE TABLE system_schema.types (" NAMED "type_name text, field_names frozen<list<text>>, field_types frozen<list<text>>, "
     "PRIMARY KEY (keyspace_name, type_name))",
     fill_types, true},
    {"CREATE TABLE system_schema.functions (" NAMED
     "function_name text, argument_types frozen<list<text>>, argument_names frozen<list<text>>, "
     "body text, called_on_null_input boolean, language text, return_type text, PRIMARY KEY (keyspace_name, function_name, "
     "argument_types))",
     fill_nothing, false},
    {"CREATE TABLE system_schema.aggregates (" NAMED
     "aggregate_name text, argument_types frozen<list<text>>, final_func text, initcond text, "
     "return_type text, state_func text, state_type text, PRIMARY KEY (keyspace_name, aggregate_name, argument_types))",
     fill_nothing, false},
    {"CREATE TABLE system_schema.triggers (" NAMED "table_name text, trigger_name text, options frozen<map<text, text>>, "
     "PRIMARY KEY (keyspace_name, table_name, trigger_name))",
     fill_nothing, false},
    {"CREATE TABLE system_schema.views (" NAMED "view_name text, base_table_id uuid, base_table_name text, include_all_columns boolean, "
     "where_clause text, " TABLE_OPTIONS "PRIMARY KEY (keyspace_name, view_name))",
     fill_nothing, false},
    {"CREATE TABLE system_virtual_schema.keyspaces (" NAMED "PRIMARY KEY (keyspace_name))", fill_nothing, false},
    {"CREATE TABLE system_virtual_schema.tables (" NAMED "table_name text, comment text, PRIMARY KEY (keyspace_name, table_name))",
     fill_nothing, false},
    {"CREATE TABLE system_virtual_schema.columns (" NAMED
     "table_name text, column_name text, clustering_order text, column_name_bytes blob, "
     "kind text, position int, type text, PRIMARY KEY (keyspace_name, table_name, column_name))",
     fill_nothing, false},
    {"CREATE TABLE system_auth.roles (role text PRIMARY KEY, can_login boolean, is_superuser boolean, member_of set<text>, salted_hash "
     "text)",
     fill_nothing, false},
    {"CREATE TABLE system_traces.sessions (session_id uuid PRIMARY KEY, client inet, command text, coordinator inet, duration int, "
     "parameters map<text, text>, request text, started_at timestamp)",
     fill_sessions, false},
    {"CREATE TABLE system_traces.events (session_id uuid, event_id timeuuid, activity text, source inet, source_elapsed int, thread text, "
     "PRIMARY KEY (session_id, event_id))",
     fill_events, false},
};

enum { DEFINITIONS = sizeof definitions / sizeof *definitions };
static const cass_table *tables[DEFINITIONS]; /* made at start, then only read */

static size_t system_tables(const cass_table ***tables_out) {
    *tables_out = tables;
    return DEFINITIONS;
}

void cass_system_init(void) {
    for (size_t i = 0; i < DEFINITIONS && !tables[i]; i++) {
        arena a = arena_init();
        cass_table *t = cass_table_of_text(&a, slice_str(definitions[i].text));
        t->system = &definitions[i];
        tables[i] = t;
        arena_free(&a);
    }
}

bool cass_system_has(slice keyspace) {
    for (size_t i = 0; i < OWN_KEYSPACES; i++) {
        if (slice_eq(keyspace, slice_str(own_keyspaces[i]))) {
            return true;
        }
    }
    return false;
}

bool cass_system_find(slice keyspace, slice name, const cass_table **table_out) {
    *table_out = NULL;
    if (!slice_starts(keyspace, SLICE_LIT("system")) || !cass_system_has(keyspace)) {
        return false;
    }
    for (size_t i = 0; i < DEFINITIONS && !*table_out; i++) {
        const cql_table *t = &tables[i]->table;
        if (slice_eq(t->keyspace, keyspace) && slice_eq(t->name, name)) {
            *table_out = cass_table_take(tables[i]);
        }
    }
    return true;
}

bool cass_system_is_large(const cass_table *t) {
    return t->system->many;
}

err cass_system_read(cass_request *q, const cass_table *t, cass_system_rows *rows_out) {
    *rows_out = (cass_system_rows){0};
    maker m = {.q = q, .t = t, .rows = rows_out};
    if (t->system->many && q->statement->where.whole_partition_key) {
        TRY(cql_restrict_keys(&q->op, &q->run, &q->statement->where, &m.keys, &m.keys_n));
    }
    t->system->fill(&m);
    return m.code;
}
