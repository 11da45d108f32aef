#include "api/cassandra/schema.h"

#include <assert.h>
#include <stdlib.h>

#include "api/cassandra/system.h"
#include "base/keyed_hash.h"
#include "base/memory.h"
#include "partition/token.h"

/* ---- BSON ---- */

slice cass_bson_copy(arena *a, bson_t *b) {
    slice copy = arena_copy(a, slice_of(bson_get_data(b), b->len));
    bson_destroy(b);
    return copy;
}

bool cass_member(slice document, const char *name, doc_element *e) {
    uint64_t passed = 0;
    return document.n && doc_find_member_counted(document, slice_str(name), e, &passed);
}

slice cass_member_text(slice document, const char *name) {
    doc_element e;
    return cass_member(document, name, &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static slice member_of_type(slice document, const char *name, bson_type_t type) {
    doc_element e;
    return cass_member(document, name, &e) && e.type == type ? e.value : SLICE_EMPTY;
}

static int64_t member_long(slice document, const char *name, int64_t otherwise) {
    doc_element e;
    if (!cass_member(document, name, &e)) {
        return otherwise;
    }
    return e.type == BSON_TYPE_INT64   ? doc_load_i64(e.value.p)
           : e.type == BSON_TYPE_INT32 ? doc_load_i32(e.value.p)
           : e.type == BSON_TYPE_BOOL  ? e.value.p[0] != 0
                                       : otherwise;
}

int64_t cass_option_int(slice options, const char *name, int64_t otherwise) {
    return member_long(options, name, otherwise);
}

/* ---- memos ---- */

static uint32_t count(slice array) {
    doc_walk w;
    doc_element e;
    uint32_t n = 0;
    if (array.n) {
        for (doc_walk_init(&w, array); doc_walk_next(&w, &e);) {
            n++;
        }
    }
    return n;
}

static void read_columns(slice list, cass_definition *d) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        d->columns[d->columns_n++] = (cass_column_definition){
            .name = cass_member_text(e.value, "n"),
            .member = cass_member_text(e.value, "m"),
            .type = cass_member_text(e.value, "t"),
            .kind = (cql_column_kind)member_long(e.value, "k", CQL_COLUMN_REGULAR),
            .descending = member_long(e.value, "d", 0),
            .dropped_us = member_long(e.value, "x", INT64_MIN),
        };
    }
}

static void read_indexes(slice list, cass_definition *d) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        d->indexes[d->indexes_n++] = (cass_index_definition){
            .name = cass_member_text(e.value, "n"),
            .column = cass_member_text(e.value, "c"),
            .target = (cql_index_target)member_long(e.value, "t", CQL_INDEX_SIMPLE),
        };
    }
}

static void read_dropped(slice list, cass_definition *d) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        d->dropped[d->dropped_n++] = (cass_dropped){
            .name = cass_member_text(e.value, "n"),
            .type = cass_member_text(e.value, "t"),
            .kind = (cql_column_kind)member_long(e.value, "k", CQL_COLUMN_REGULAR),
            .us = member_long(e.value, "us", 0),
        };
    }
}

bool cass_definition_read(arena *a, slice memo, cass_definition *d) {
    slice columns = member_of_type(memo, "columns", BSON_TYPE_ARRAY), indexes = member_of_type(memo, "indexes", BSON_TYPE_ARRAY),
          dropped = member_of_type(memo, "dropped", BSON_TYPE_ARRAY), id = member_of_type(memo, "id", BSON_TYPE_BINARY);
    enum { BINARY_HEAD = 5 };
    *d = (cass_definition){
        .id = slice_skip(id, BINARY_HEAD),
        .columns = arena_array(a, cass_column_definition, count(columns) + 1),
        .indexes = arena_array(a, cass_index_definition, count(indexes) + 1),
        .dropped = arena_array(a, cass_dropped, count(dropped) + 1),
        .options = member_of_type(memo, "options", BSON_TYPE_DOCUMENT),
    };
    if (columns.n) {
        read_columns(columns, d);
    }
    if (indexes.n) {
        read_indexes(indexes, d);
    }
    if (dropped.n) {
        read_dropped(dropped, d);
    }
    return d->columns_n && d->id.n == 16;
}

static void append_text(bson_t *b, const char *key, slice text) {
    bson_append_utf8(b, key, -1, text.n ? text.p : "", (int)text.n);
}

static void append_column(bson_t *list, uint32_t i, const cass_column_definition *c) {
    bson_t b;
    char key[16];
    snprintf(key, sizeof key, "%u", i);
    bson_append_document_begin(list, key, -1, &b);
    append_text(&b, "n", c->name);
    append_text(&b, "m", c->member);
    append_text(&b, "t", c->type);
    bson_append_int32(&b, "k", -1, (int32_t)c->kind);
    if (c->descending) {
        bson_append_bool(&b, "d", -1, true);
    }
    if (c->dropped_us != INT64_MIN) {
        bson_append_int64(&b, "x", -1, c->dropped_us);
    }
    bson_append_document_end(list, &b);
}

static void append_lists(bson_t *memo, const cass_definition *d) {
    bson_t list, b;
    char key[16];
    bson_append_array_begin(memo, "columns", -1, &list);
    for (uint32_t i = 0; i < d->columns_n; i++) {
        append_column(&list, i, &d->columns[i]);
    }
    bson_append_array_end(memo, &list);
    bson_append_array_begin(memo, "indexes", -1, &list);
    for (uint32_t i = 0; i < d->indexes_n; i++) {
        snprintf(key, sizeof key, "%u", i);
        bson_append_document_begin(&list, key, -1, &b);
        append_text(&b, "n", d->indexes[i].name);
        append_text(&b, "c", d->indexes[i].column);
        bson_append_int32(&b, "t", -1, (int32_t)d->indexes[i].target);
        bson_append_document_end(&list, &b);
    }
    bson_append_array_end(memo, &list);
    bson_append_array_begin(memo, "dropped", -1, &list);
    for (uint32_t i = 0; i < d->dropped_n; i++) {
        snprintf(key, sizeof key, "%u", i);
        bson_append_document_begin(&list, key, -1, &b);
        append_text(&b, "n", d->dropped[i].name);
        append_text(&b, "t", d->dropped[i].type);
        bson_append_int32(&b, "k", -1, (int32_t)d->dropped[i].kind);
        bson_append_int64(&b, "us", -1, d->dropped[i].us);
        bson_append_document_end(&list, &b);
    }
    bson_append_array_end(memo, &list);
}

static void append_document(bson_t *b, const char *key, slice document) {
    bson_t inner;
    if (document.n && bson_init_static(&inner, (const uint8_t *)document.p, document.n)) {
        bson_append_document(b, key, -1, &inner);
    }
}

err cass_definition_write(op *o, const cass_definition *d, slice *memo_out) {
    bson_t memo = BSON_INITIALIZER;
    bson_append_binary(&memo, "id", -1, BSON_SUBTYPE_UUID, (const uint8_t *)d->id.p, 16);
    append_lists(&memo, d);
    append_document(&memo, "options", d->options);
    *memo_out = cass_bson_copy(o->arena, &memo);
    return memo_out->n <= LIMIT_MEMO_BYTES ? OK : op_fail(o, E_BAD_REQUEST, "The table has too many columns.");
}

/* ---- settings ---- */

/* A step in quotes, since names may have any character. */
static void add_step(buf *out, slice name) {
    buf_add_lit(out, "/\"");
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '"' || name.p[i] == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, name.p[i]);
    }
    buf_add_byte(out, '"');
}

static const cass_column_definition *column_named(const cass_definition *d, slice name) {
    for (uint32_t i = 0; i < d->columns_n; i++) {
        if (slice_eq(d->columns[i].name, name)) {
            return &d->columns[i];
        }
    }
    return NULL;
}

/* Whether the key needs the column's key text beside its BSON. */
static err is_as_text(op *o, const cql_type_source *types, const cass_column_definition *c, bool *as_text_out) {
    const cql_type *type;
    *as_text_out = false;
    if (c->kind != CQL_COLUMN_PARTITION && c->kind != CQL_COLUMN_CLUSTERING) {
        return OK;
    }
    TRY(cql_type_read(o, c->type, &type));
    TRY(cql_type_resolve(o, types, type, &type));
    *as_text_out = !(c->kind == CQL_COLUMN_PARTITION ? cql_type_identifies(type) : cql_type_sorts(type));
    return OK;
}

static void key_path(buf *out, const cass_column_definition *c, bool as_text) {
    if (as_text) {
        buf_add_lit(out, "/" CASS_KEYS);
    }
    add_step(out, c->member);
}

static void append_path(bson_t *list, uint32_t i, const buf *path, bool as_object, const char *order) {
    bson_t b;
    char key[16];
    snprintf(key, sizeof key, "%u", i);
    if (!as_object) {
        bson_append_utf8(list, key, -1, path->p, (int)path->n);
        return;
    }
    bson_append_document_begin(list, key, -1, &b);
    bson_append_utf8(&b, "path", -1, path->p, (int)path->n);
    if (order) {
        bson_append_utf8(&b, "order", -1, order, -1);
    }
    bson_append_document_end(list, &b);
}

/* An index on a collection covers its elements; on a map also its members. */
static void append_indexed(bson_t *list, uint32_t *n, const cass_definition *d) {
    for (uint32_t i = 0; i < d->indexes_n; i++) {
        const cass_column_definition *c = column_named(d, d->indexes[i].column);
        buf path = buf_init(BUF_NO_LIMIT);
        if (c) {
            add_step(&path, c->member);
            buf_add_lit(&path, "/*");
            append_path(list, (*n)++, &path, true, NULL);
        }
        buf_free(&path);
    }
}

static err append_key(op *o, const cql_type_source *types, bson_t *list, const cass_definition *d, cql_column_kind kind, bool as_object) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->columns_n; i++) {
        bool as_text;
        buf path = buf_init(BUF_NO_LIMIT);
        if (d->columns[i].kind != kind) {
            continue;
        }
        err code = is_as_text(o, types, &d->columns[i], &as_text);
        if (code == OK) {
            key_path(&path, &d->columns[i], as_text);
            append_path(list, n++, &path, as_object, d->columns[i].descending ? "descending" : NULL);
        }
        buf_free(&path);
        TRY(code);
    }
    return OK;
}

static void append_policy(bson_t *settings, const cass_definition *d) {
    bson_t policy, list, all;
    uint32_t n = 0;
    bson_append_document_begin(settings, "indexingPolicy", -1, &policy);
    bson_append_utf8(&policy, "indexingMode", -1, "consistent", -1);
    bson_append_bool(&policy, "automatic", -1, true);
    bson_append_array_begin(&policy, "includedPaths", -1, &list);
    append_indexed(&list, &n, d);
    bson_append_array_end(&policy, &list);
    bson_append_array_begin(&policy, "excludedPaths", -1, &list);
    bson_append_document_begin(&list, "0", -1, &all);
    bson_append_utf8(&all, "path", -1, "/*", -1);
    bson_append_document_end(&list, &all);
    bson_append_array_end(&policy, &list);
    bson_append_document_end(settings, &policy);
}

err cass_settings_of(op *o, const cql_type_source *types, slice name, const cass_definition *d, slice *settings_out) {
    TRY(cass_types_check(o, (cass_types *)(uintptr_t)types, d)); /* the source is its first member */
    bson_t settings = BSON_INITIALIZER, key, paths;
    append_text(&settings, "id", name);
    bson_append_document_begin(&settings, "partitionKey", -1, &key);
    bson_append_array_begin(&key, "paths", -1, &paths);
    err code = append_key(o, types, &paths, d, CQL_COLUMN_PARTITION, false);
    bson_append_array_end(&key, &paths);
    bson_append_utf8(&key, "kind", -1, "Hash", -1);
    bson_append_int32(&key, "version", -1, 2);
    bson_append_document_end(&settings, &key);
    append_policy(&settings, d);
    bson_append_int32(&settings, "defaultTtl", -1, -1);
    *settings_out = cass_bson_copy(o->arena, &settings);
    return code;
}

/* The type of each partition column, so that the core hashes keys by tokens. */
static err append_tokens(op *o, const cql_type_source *types, bson_t *rows, const cass_definition *d) {
    bson_t list;
    char key[16];
    err code = OK;
    bson_append_array_begin(rows, "tokens", -1, &list);
    for (uint32_t i = 0; code == OK && i < d->columns_n && d->columns[i].kind == CQL_COLUMN_PARTITION; i++) {
        const cql_type *type;
        bool as_text;
        snprintf(key, sizeof key, "%u", i);
        code = is_as_text(o, types, &d->columns[i], &as_text);
        code = code == OK ? cql_type_read(o, d->columns[i].type, &type) : code;
        bson_append_int32(&list, key, -1, code == OK && !as_text ? (int32_t)type->kind : TOKEN_KEY_TEXT);
    }
    bson_append_array_end(rows, &list);
    return code;
}

/* Without clustering columns a partition has one row: its row key is the first column of the partition key. */
err cass_rows_of(op *o, const cql_type_source *types, const cass_definition *d, slice *rows_out) {
    static const int64_t range_bytes = (int64_t)30 << 30; /* as the service has it for this API */
    bson_t rows = BSON_INITIALIZER, list;
    bool clustered = false;
    for (uint32_t i = 0; i < d->columns_n; i++) {
        clustered = clustered || d->columns[i].kind == CQL_COLUMN_CLUSTERING;
    }
    bson_append_bool(&rows, "typed", -1, true);
    bson_append_bool(&rows, "clustered", -1, true);
    bson_append_bool(&rows, "lean", -1, true);
    bson_append_utf8(&rows, "ttl", -1, CASS_TTL, -1);
    bson_append_int64(&rows, "rangeBytes", -1, range_bytes);
    err code = append_tokens(o, types, &rows, d);
    bson_append_array_begin(&rows, "key", -1, &list);
    cass_definition first = *d;
    first.columns_n = clustered ? d->columns_n : 1;
    code = code != OK ? code : append_key(o, types, &list, &first, clustered ? CQL_COLUMN_CLUSTERING : CQL_COLUMN_PARTITION, true);
    bson_append_array_end(&rows, &list);
    *rows_out = cass_bson_copy(o->arena, &rows);
    return code;
}

/* ---- keyspaces ---- */

cass_keyspace cass_keyspace_of(const database *d) {
    slice own = member_of_type(d->memo, "cassandra", BSON_TYPE_DOCUMENT);
    return (cass_keyspace){.durable_writes = member_long(own, "durable_writes", 1),
                           .types = member_of_type(own, "types", BSON_TYPE_DOCUMENT)};
}

slice cass_keyspace_write(arena *a, const database *d, const cass_keyspace *k) {
    bson_t memo = BSON_INITIALIZER, own;
    if (d->memo.n) {
        bson_t before;
        if (bson_init_static(&before, (const uint8_t *)d->memo.p, d->memo.n)) {
            bson_copy_to_excluding_noinit(&before, &memo, "cassandra", NULL);
        }
    }
    bson_append_document_begin(&memo, "cassandra", -1, &own);
    bson_append_bool(&own, "durable_writes", -1, k->durable_writes);
    append_document(&own, "types", k->types);
    bson_append_document_end(&memo, &own);
    return cass_bson_copy(a, &memo);
}

/* ---- user types ---- */

typedef struct cass_user_type {
    struct cass_user_type *next;
    slice name;
    const cql_type *type; /* NULL: it is refused */
    slice refusal;
    uint32_t parts;
} cass_user_type;

static uint32_t parts_of(const cql_type *type) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < type->n; i++) {
        n += parts_of(type->inner[i]);
    }
    return n;
}

static err add_parts(op *o, cass_types *t, uint32_t parts) {
    t->parts += parts;
    return t->parts <= CASS_TYPE_PARTS_MAX
               ? OK
               : op_fail(o, E_BAD_REQUEST, "User types have too many fields, with all that is in them: %d at most", CASS_TYPE_PARTS_MAX);
}

static err make_field(op *o, cass_types *t, slice text, const cql_type **type_out) {
    TRY(cql_type_read(o, arena_copy(t->arena, text), type_out));
    TRY(add_parts(o, t, parts_of(*type_out)));
    return cql_type_resolve(o, &t->source, *type_out, type_out);
}

static err make_type(op *o, cass_types *t, slice name, slice fields, const cql_type **type_out) {
    doc_walk w;
    doc_element e;
    uint32_t n = count(fields), i = 0;
    cql_type *type = arena_new(t->arena, cql_type);
    slice *names = arena_array(t->arena, slice, n ? n : 1);
    const cql_type **inner = arena_array(t->arena, const cql_type *, n ? n : 1);
    if (t->depth >= CQL_TYPE_DEPTH) {
        return op_fail(o, E_BAD_REQUEST, "Types may be nested %d levels deep at most", CQL_TYPE_DEPTH);
    }
    for (doc_walk_init(&w, fields); doc_walk_next(&w, &e); i++) {
        names[i] = arena_copy(t->arena, cass_member_text(e.value, "n"));
        TRY(make_field(o, t, cass_member_text(e.value, "t"), &inner[i]));
    }
    *type = (cql_type){.kind = CQL_UDT, .n = n, .inner = inner, .keyspace = t->source.keyspace, .name = name, .fields = names};
    *type_out = type;
    return OK;
}

/* While a type is being made, it is refused: it would contain itself. */
static cass_user_type *make_user_type(cass_types *t, slice name, slice fields) {
    cass_user_type *u = arena_new(t->arena, cass_user_type);
    uint32_t before = t->parts;
    op o;
    *u = (cass_user_type){.next = t->made, .name = arena_copy(t->arena, name), .refusal = SLICE_LIT("A user type cannot contain itself")};
    t->made = u;
    op_init(&o, t->arena, 0);
    t->depth++;
    err code = make_type(&o, t, u->name, fields, &u->type);
    t->depth--;
    u->parts = t->parts - before;
    u->refusal = code == OK ? SLICE_EMPTY : arena_copy(t->arena, slice_of(o.detail, o.detail_n));
    return u;
}

static const cql_type *find_type(const cql_type_source *source, slice keyspace, slice name) {
    cass_types *t = (cass_types *)(uintptr_t)source; /* the source is its first member */
    cass_user_type *u = t->made;
    doc_element e;
    uint64_t passed = 0;
    op o;
    t->source.refusal = SLICE_EMPTY;
    if (!slice_eq(keyspace, source->keyspace) || !t->types.n) {
        return NULL;
    }
    while (u && !slice_eq(u->name, name)) {
        u = u->next;
    }
    if (u) {
        op_init(&o, t->arena, 0);
        bool fits = add_parts(&o, t, u->parts) == OK;
        t->source.refusal = fits ? u->refusal : arena_copy(t->arena, slice_of(o.detail, o.detail_n));
        return fits ? u->type : NULL;
    }
    if (!doc_find_member_counted(t->types, name, &e, &passed)) {
        return NULL;
    }
    u = make_user_type(t, name, e.value);
    t->source.refusal = u->refusal;
    return u->type;
}

void cass_types_init(cass_types *t, arena *a, slice keyspace, slice types) {
    *t = (cass_types){.source = {.find = find_type, .keyspace = keyspace}, .arena = a, .types = types};
}

err cass_types_check_all(op *o, cass_types *t) {
    doc_walk w;
    doc_element e;
    if (!t->types.n) {
        return OK;
    }
    for (doc_walk_init(&w, t->types); doc_walk_next(&w, &e);) {
        t->parts = 0;
        if (!find_type(&t->source, t->source.keyspace, e.key)) {
            return op_fail(o, E_BAD_REQUEST, "%.*s", slice_shown(t->source.refusal), t->source.refusal.p);
        }
    }
    t->parts = 0;
    return OK;
}

err cass_types_check(op *o, cass_types *t, const cass_definition *d) {
    t->parts = 0;
    for (uint32_t i = 0; i < d->columns_n; i++) {
        const cql_type *type;
        TRY(cql_type_read(o, d->columns[i].type, &type));
        TRY(cql_type_resolve(o, &t->source, type, &type));
    }
    t->parts = 0;
    return OK;
}

/* ---- tables ---- */

const cass_table *cass_table_take(const cass_table *t) {
    atomic_fetch_add_explicit(&((cass_table *)(uintptr_t)t)->refs, 1, memory_order_relaxed);
    return t;
}

void cass_table_give(const cass_table *t) {
    cass_table *own = (cass_table *)(uintptr_t)t; /* only the count changes */
    if (atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) == 1) {
        arena_free(&own->arena);
        free(own);
    }
}

static uint8_t indexed_as(const cass_definition *d, slice name) {
    static const uint8_t bits[] = {[CQL_INDEX_SIMPLE] = CQL_INDEXED_VALUES,
                                   [CQL_INDEX_VALUES] = CQL_INDEXED_VALUES,
                                   [CQL_INDEX_KEYS] = CQL_INDEXED_KEYS,
                                   [CQL_INDEX_ENTRIES] = CQL_INDEXED_ENTRIES,
                                   [CQL_INDEX_FULL] = CQL_INDEXED_FULL};
    uint8_t all = 0;
    for (uint32_t i = 0; i < d->indexes_n; i++) {
        all |= slice_eq(d->indexes[i].column, name) ? bits[d->indexes[i].target] : 0;
    }
    return all;
}

static bool has_user_type(const cql_type *t) {
    bool has = t->kind == CQL_UDT;
    for (uint32_t i = 0; !has && i < t->n; i++) {
        has = has_user_type(t->inner[i]);
    }
    return has;
}

static err make_columns(op *o, cass_table *t) {
    const cass_definition *d = &t->definition;
    cql_column *columns = arena_array(&t->arena, cql_column, d->columns_n);
    cass_stored *stored = arena_array(&t->arena, cass_stored, d->columns_n);
    uint16_t positions[2] = {0, 0};
    t->plain = true;
    for (uint32_t i = 0; i < d->columns_n; i++) {
        const cass_column_definition *c = &d->columns[i];
        const cql_type *type;
        TRY(cql_type_read(o, c->type, &type));
        TRY(cql_type_resolve(o, &t->types.source, type, &type));
        columns[i] =
            (cql_column){.name = c->name, .type = type, .kind = c->kind, .descending = c->descending, .indexed = indexed_as(d, c->name)};
        stored[i] = (cass_stored){.member = c->member, .dropped_us = c->dropped_us};
        if (c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING) {
            columns[i].position = positions[c->kind == CQL_COLUMN_CLUSTERING]++;
            stored[i].as_text = !(c->kind == CQL_COLUMN_PARTITION ? cql_type_identifies(type) : cql_type_sorts(type));
        }
        t->plain = t->plain && c->kind != CQL_COLUMN_STATIC && c->dropped_us == INT64_MIN;
        t->has_static = t->has_static || c->kind == CQL_COLUMN_STATIC;
        t->counters = t->counters || type->kind == CQL_COUNTER;
        t->uses_types = t->uses_types || has_user_type(type);
    }
    t->table.columns = columns;
    t->stored = stored;
    t->table.n = d->columns_n;
    t->table.partition_n = positions[0];
    t->table.clustering_n = positions[1];
    return OK;
}

err cass_table_new(op *o, slice keyspace, slice name, slice memo, slice types, cass_table **table_out) {
    enum { GC_GRACE_S = 864000 };
    cass_table *t = mem_zero(sizeof *t);
    op own;
    t->refs = 1;
    t->arena = arena_init_small();
    op_init(&own, &t->arena, 0);
    t->table.keyspace = arena_copy(&t->arena, keyspace);
    t->table.name = arena_copy(&t->arena, name);
    cass_types_init(&t->types, &t->arena, t->table.keyspace, types.n ? arena_copy(&t->arena, types) : SLICE_EMPTY);
    err code = cass_definition_read(&t->arena, arena_copy(&t->arena, memo), &t->definition)
                   ? make_columns(&own, t)
                   : op_fail(&own, E_BAD_REQUEST, "The table's definition cannot be read.");
    if (code != OK) {
        code = op_fail(o, code, "%.*s", (int)own.detail_n, own.detail);
        cass_table_give(t);
        return code;
    }
    t->default_ttl = (int32_t)cass_option_int(t->definition.options, "default_time_to_live", 0);
    t->gc_grace_s = (int32_t)cass_option_int(t->definition.options, "gc_grace_seconds", GC_GRACE_S);
    *table_out = t;
    return OK;
}

static cql_column_kind kind_in(const cql_create_table *s, slice name) {
    cql_column_kind kind = CQL_COLUMN_REGULAR;
    for (uint32_t i = 0; i < s->partition_n; i++) {
        kind = slice_eq(s->partition[i], name) ? CQL_COLUMN_PARTITION : kind;
    }
    for (uint32_t i = 0; i < s->clustering_n; i++) {
        kind = slice_eq(s->clustering[i], name) ? CQL_COLUMN_CLUSTERING : kind;
    }
    return kind;
}

/* Columns are written with their keys first, and in order. */
cass_table *cass_table_of_text(arena *scratch, slice text) {
    static const char id[16];
    op o;
    const cql_statement *tree;
    cass_table *t = NULL;
    slice memo;
    op_init(&o, scratch, 0);
    err code = cql_parse(&o, text, &tree);
    assert(code == OK);
    const cql_create_table *s = &tree->create_table;
    cass_definition d = {.id = slice_of(id, sizeof id), .columns = arena_array(scratch, cass_column_definition, s->columns_n)};
    for (cql_column_kind kind = CQL_COLUMN_PARTITION; kind <= CQL_COLUMN_REGULAR; kind++) {
        for (uint32_t i = 0; i < s->columns_n; i++) {
            const cql_column_definition *c = &s->columns[i];
            if (kind_in(s, c->name) == kind) {
                d.columns[d.columns_n++] = (cass_column_definition){
                    .name = c->name, .member = c->name, .type = cql_type_text(scratch, c->type), .kind = kind, .dropped_us = INT64_MIN};
            }
        }
    }
    code = cass_definition_write(&o, &d, &memo);
    code = code == OK ? cass_table_new(&o, s->table.keyspace, s->table.name, memo, SLICE_EMPTY, &t) : code;
    assert(code == OK);
    return t;
}

/* ---- the cache ---- */

enum { BUCKETS = 1024, CACHED_MAX = 8192 };

typedef struct entry entry;
struct entry {
    entry *next;
    cass_table *table;
};

struct cass_schemas {
    pthread_mutex_t lock;
    entry *buckets[BUCKETS];
    size_t n;
};

cass_schemas *cass_schemas_new(void) {
    cass_schemas *s = mem_zero(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void clear(cass_schemas *s) {
    for (size_t i = 0; i < BUCKETS; i++) {
        for (entry *e = s->buckets[i], *next; e; e = next) {
            next = e->next;
            cass_table_give(e->table);
            free(e);
        }
        s->buckets[i] = NULL;
    }
    s->n = 0;
}

void cass_schemas_free(cass_schemas *s) {
    clear(s);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static entry **bucket_of(cass_schemas *s, const unsigned char rid[8]) {
    return &s->buckets[keyed_hash_bytes(slice_of(rid, 8), 0) % BUCKETS];
}

static const cass_table *cached(cass_schemas *s, const container *c, uint64_t types_version) {
    const cass_table *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (entry *e = *bucket_of(s, c->rid); e && !found; e = e->next) {
        const cass_table *t = e->table;
        if (memcmp(t->rid, c->rid, 8) == 0 && t->serial == c->memory->serial && (!t->uses_types || t->types_version == types_version)) {
            found = cass_table_take(t);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void keep(cass_schemas *s, cass_table *t) {
    pthread_mutex_lock(&s->lock);
    if (s->n >= CACHED_MAX) {
        clear(s);
    }
    entry **b = bucket_of(s, t->rid), *e = *b;
    while (e && memcmp(e->table->rid, t->rid, 8) != 0) {
        e = e->next;
    }
    if (e) {
        cass_table_give(e->table);
    } else {
        e = mem_zero(sizeof *e);
        e->next = *b;
        *b = e;
        s->n++;
    }
    cass_table_take(t);
    e->table = t;
    pthread_mutex_unlock(&s->lock);
}

static err load(cass_schemas *s, op *o, const container *c, slice types, uint64_t types_version, const cass_table **table_out) {
    cass_table *t;
    TRY(cass_table_new(o, c->database_id, c->id, c->memo, types, &t));
    memcpy(t->rid, c->rid, 8);
    t->serial = c->memory->serial;
    t->types_version = types_version;
    keep(s, t);
    *table_out = t;
    return OK;
}

err cass_table_of_container(cass_schemas *s, op *o, const container *c, const cass_table **table_out) {
    *table_out = cached(s, c, 0);
    return *table_out ? OK : load(s, o, c, SLICE_EMPTY, 0, table_out);
}

static err find_container(cass_front *front, op *o, slice keyspace, slice name, database **database_out, container **container_out) {
    *container_out = NULL;
    if (!keyspace.n) {
        return op_fail(o, E_BAD_REQUEST, "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
    }
    if (account_database(front->core.account, keyspace, false, database_out) != OK) {
        return op_fail(o, E_BAD_REQUEST, "Keyspace %.*s does not exist", slice_shown(keyspace), keyspace.p);
    }
    err code = account_container(front->core.account, keyspace, false, name, false, container_out);
    if (code == OK && slice_eq((*container_out)->api, CASS_API)) {
        return OK;
    }
    if (code == OK) {
        container_give(*container_out);
        *container_out = NULL;
    }
    database_give(*database_out);
    return op_fail(o, E_BAD_REQUEST, "unconfigured table %.*s", slice_shown(name), name.p);
}

typedef struct container_list {
    container **list;
    size_t n, room;
} container_list;

static bool list_container(void *context, const container *c) {
    container_list *l = context;
    if (!slice_eq(c->api, CASS_API)) {
        return true;
    }
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 64;
        l->list = mem_resize(l->list, l->room * sizeof(container *));
    }
    l->list[l->n++] = container_take((container *)(uintptr_t)c);
    return true;
}

void cass_each_table(cass_front *front, const database *d, bool (*visit)(void *context, const container *c), void *context) {
    container_list l = {0};
    bool more = true;
    account_each_container(front->core.account, d, 0, list_container, &l);
    for (size_t i = 0; i < l.n; i++) {
        more = more && visit(context, l.list[i]);
        container_give(l.list[i]);
    }
    free(l.list);
}

err cass_container_find(cass_front *front, op *o, slice keyspace, slice name, container **container_out) {
    database *d;
    TRY(find_container(front, o, keyspace, name, &d, container_out));
    database_give(d);
    return OK;
}

err cass_table_find(cass_front *front, op *o, slice keyspace, slice name, const cass_table **table_out, container **container_out) {
    database *d;
    *container_out = NULL;
    if (keyspace.n && cass_system_find(keyspace, name, table_out)) {
        return *table_out ? OK : op_fail(o, E_BAD_REQUEST, "unconfigured table %.*s", slice_shown(name), name.p);
    }
    TRY(find_container(front, o, keyspace, name, &d, container_out));
    *table_out = cached(front->schemas, *container_out, d->version);
    err code = *table_out ? OK : load(front->schemas, o, *container_out, cass_keyspace_of(d).types, d->version, table_out);
    database_give(d);
    if (code != OK) {
        container_give(*container_out);
        *container_out = NULL;
    }
    return code;
}
