#include "api/cassandra/row.h"

#include <stdlib.h>

/* ---- stamps ---- */

bool cass_stamp_is_live(const cass_stamp *s, int64_t now_s) {
    return !s->ttl || s->expires_s > now_s;
}

static int64_t long_of(slice document, const char *name, int64_t otherwise) {
    return cass_option_int(document, name, otherwise);
}

/* Members that are left out are those of the row. */
static cass_stamp stamp_of(slice document, const cass_stamp *base) {
    cass_stamp s = {
        .us = long_of(document, "t", base->us), .ttl = (int32_t)long_of(document, "l", 0), .expires_s = long_of(document, "e", 0)};
    return s;
}

static bool same_stamp(const cass_stamp *a, const cass_stamp *b) {
    return a->us == b->us && a->ttl == b->ttl && (!a->ttl || a->expires_s == b->expires_s);
}

/* ---- collections ---- */

err cass_cell_divide(op *o, const cql_type *type, cql_value value, cass_stamp stamp, cass_element **elements_out, uint32_t *n_out) {
    cql_elements walk;
    cql_value v;
    const cql_type *inner;
    *elements_out = NULL;
    *n_out = 0;
    if (cql_value_is_null(value) || !cql_elements_init(&walk, type, value)) {
        return OK;
    }
    uint32_t n = type->kind == CQL_MAP ? walk.n / 2 : walk.n;
    if (!arena_fits(o->arena, n * sizeof(cass_element))) {
        return budget_error(o->budget);
    }
    cass_element *elements = arena_array(o->arena, cass_element, n + 1);
    for (uint32_t i = 0; i < n && cql_elements_next(&walk, &v, &inner); i++) {
        elements[i].stamp = stamp;
        if (type->kind == CQL_UDT) {
            elements[i].key = cql_value_smallint(o->arena, (int16_t)i);
            elements[i].value = v;
            elements[i].dead = v.null;
        } else if (type->kind == CQL_LIST) {
            elements[i].value = v;
        } else {
            elements[i].key = v;
        }
        if (type->kind == CQL_MAP && !cql_elements_next(&walk, &elements[i].value, &inner)) {
            return E_BAD_REQUEST;
        }
    }
    *elements_out = elements;
    *n_out = n;
    return OK;
}

static uint32_t field_of(const cass_element *e) {
    return e->key.bytes.n == 2 ? (uint32_t)((uint8_t)e->key.bytes.p[0] << 8 | (uint8_t)e->key.bytes.p[1]) : 0;
}

static err assemble_fields(op *o, const cql_type *type, cass_cell *cell, int64_t now_s) {
    cql_value *values = arena_array(o->arena, cql_value, type->n);
    bool any = false;
    for (uint32_t i = 0; i < type->n; i++) {
        values[i] = cql_value_null();
    }
    for (uint32_t i = 0; i < cell->n; i++) {
        const cass_element *e = &cell->elements[i];
        if (!e->dead && cass_stamp_is_live(&e->stamp, now_s) && field_of(e) < type->n) {
            values[field_of(e)] = e->value;
            any = any || !e->value.null;
        }
    }
    cell->value = cql_value_null();
    return !any || cql_value_collect(o->arena, type, values, type->n, &cell->value) ? OK : budget_error(o->budget);
}

err cass_cell_assemble(op *o, const cql_type *type, cass_cell *cell, int64_t now_s) {
    if (type->kind == CQL_UDT) {
        return assemble_fields(o, type, cell, now_s);
    }
    if (!arena_fits(o->arena, 2 * (size_t)cell->n * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    cql_value *values = arena_array(o->arena, cql_value, 2 * cell->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < cell->n; i++) {
        const cass_element *e = &cell->elements[i];
        if (e->dead || !cass_stamp_is_live(&e->stamp, now_s)) {
            continue;
        }
        if (type->kind != CQL_LIST) {
            values[n++] = e->key;
        }
        if (type->kind != CQL_SET) {
            values[n++] = e->value;
        }
    }
    cell->value = cql_value_null();
    return !n || cql_value_collect(o->arena, type, values, n, &cell->value) ? OK : budget_error(o->budget);
}

int cass_element_compare(const cql_type *type, const cass_element *a, const cass_element *b) {
    return type->kind == CQL_UDT ? slice_cmp(a->key.bytes, b->key.bytes) : cql_compare(type->inner[0], a->key, b->key);
}

/* Elements of a list are listed by their places. */
static void stamp_places(slice list, const cass_stamp *base, cass_cell *cell) {
    doc_walk w;
    doc_element e, k;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        if (e.type == BSON_TYPE_DOCUMENT && cass_member(e.value, "k", &k) && k.type == BSON_TYPE_INT32) {
            uint32_t at = (uint32_t)doc_load_i32(k.value.p);
            if (at < cell->n) {
                cell->elements[at].stamp = stamp_of(e.value, base);
            }
        }
    }
}

static int by_key(const void *a, const void *b, void *type) {
    return cass_element_compare(type, a, b);
}

/* All others by their keys, those that are deleted too. They are stored in order; should they not be, they are sorted. */
static err read_keys(op *o, const cql_type *type, slice list, const cass_stamp *base, cass_element **listed_out, uint32_t *n_out) {
    enum { BINARY_HEAD = 5 };
    doc_walk w;
    doc_element e, k;
    uint32_t most = 0, n = 0;
    bool ordered = true;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        most++;
    }
    if (!arena_fits(o->arena, 2 * (size_t)most * sizeof(cass_element))) { /* twice, for what qsort_r takes */
        return budget_error(o->budget);
    }
    cass_element *listed = arena_array(o->arena, cass_element, most + 1);
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        if (e.type != BSON_TYPE_DOCUMENT || !cass_member(e.value, "k", &k)) {
            continue;
        }
        listed[n] = (cass_element){.key = cql_value_of(k.type == BSON_TYPE_BINARY ? slice_skip(k.value, BINARY_HEAD) : SLICE_EMPTY),
                                   .stamp = stamp_of(e.value, base),
                                   .dead = long_of(e.value, "x", 0)};
        ordered = ordered && (n == 0 || cass_element_compare(type, &listed[n - 1], &listed[n]) < 0);
        n++;
    }
    if (!ordered) {
        qsort_r(listed, n, sizeof *listed, by_key, (void *)(uintptr_t)type);
    }
    *listed_out = listed;
    *n_out = n;
    return OK;
}

/* What the metadata lists is merged into the elements of the value, in the order of the keys. */
static err read_listed(op *o, const cql_type *type, slice list, const cass_stamp *base, cass_cell *cell) {
    cass_element *listed = NULL;
    uint32_t listed_n = 0, n = 0, i = 0;
    if (type->kind == CQL_LIST) {
        stamp_places(list, base, cell);
        return OK;
    }
    TRY(read_keys(o, type, list, base, &listed, &listed_n));
    if (!arena_fits(o->arena, ((size_t)cell->n + listed_n) * sizeof(cass_element))) {
        return budget_error(o->budget);
    }
    cass_element *elements = arena_array(o->arena, cass_element, cell->n + listed_n + 1);
    for (uint32_t k = 0; k < listed_n; k++) {
        while (i < cell->n && cass_element_compare(type, &cell->elements[i], &listed[k]) < 0) {
            elements[n++] = cell->elements[i++];
        }
        if (i < cell->n && cass_element_compare(type, &cell->elements[i], &listed[k]) == 0) {
            listed[k].value = cell->elements[i++].value;
        }
        elements[n++] = listed[k];
    }
    while (i < cell->n) {
        elements[n++] = cell->elements[i++];
    }
    cell->elements = elements;
    cell->n = n;
    return OK;
}

/* ---- reading ---- */

static bool find_in(slice document, slice name, doc_element *e) {
    uint64_t passed = 0;
    return document.n && doc_find_member_counted(document, name, e, &passed);
}

/* The members of an item, found by one walk. */
typedef struct members {
    doc_element *columns; /* of each column of the table; without a key: it is not there */
    slice meta, key_texts;
} members;

typedef struct meta {
    slice cells, collections, ranges;
    cass_stamp base;
} meta;

static bool is_named(const doc_element *e, slice name) {
    return e->key.n == name.n && memcmp(e->key.p, name.p, name.n) == 0;
}

/* Columns are stored in the order of the table: the next one is looked for after the last one. */
static void take_column(const cass_table *t, const doc_element *e, uint32_t *next, members *m) {
    for (uint32_t tries = 0, i = *next; tries < t->table.n; tries++, i++) {
        i = i < t->table.n ? i : 0;
        if (is_named(e, t->stored[i].member)) {
            if (!m->columns[i].key.p) {
                m->columns[i] = *e;
            }
            *next = i + 1;
            return;
        }
    }
}

/* `columns`: zeros, one for each column. */
static void find_members(const cass_table *t, slice body, doc_element *columns, members *m) {
    doc_walk w;
    doc_element e;
    uint32_t next = 0;
    *m = (members){.columns = columns};
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (is_named(&e, SLICE_LIT(CASS_META))) {
            m->meta = !m->meta.n && e.type == BSON_TYPE_DOCUMENT ? e.value : m->meta;
        } else if (is_named(&e, SLICE_LIT(CASS_KEYS))) {
            m->key_texts = !m->key_texts.n && e.type == BSON_TYPE_DOCUMENT ? e.value : m->key_texts;
        } else {
            take_column(t, &e, &next, m);
        }
    }
}

static bool column_of(const members *m, uint32_t i, doc_element *e) {
    *e = m->columns[i];
    return e->key.p;
}

static bool is_static(const cass_table *t, const members *m) {
    doc_element e;
    uint32_t first = t->table.partition_n;
    if (!t->table.clustering_n) {
        return false;
    }
    bool there = t->stored[first].as_text ? find_in(m->key_texts, t->stored[first].member, &e) : column_of(m, first, &e);
    return there && (e.type == BSON_TYPE_MINKEY || e.type == BSON_TYPE_MAXKEY);
}

/* A number as cass_option_int reads it. */
static int64_t number_of(const doc_element *e, int64_t otherwise) {
    return e->type == BSON_TYPE_INT64   ? doc_load_i64(e->value.p)
           : e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p)
           : e->type == BSON_TYPE_BOOL  ? e->value.p[0] != 0
                                        : otherwise;
}

static void read_meta(slice document, meta *m, cass_row *row) {
    doc_walk w;
    doc_element e, marker = {0};
    *m = (meta){0};
    row->marked = true;
    row->deleted_us = CASS_NEVER;
    if (document.n) {
        doc_walk_init(&w, document);
        while (doc_walk_next(&w, &e)) {
            bool nested = e.type == BSON_TYPE_DOCUMENT;
            switch (e.key.n == 1 ? e.key.p[0] : 0) {
            case 't':
                m->base.us = number_of(&e, 0);
                break;
            case 'l':
                m->base.ttl = (int32_t)number_of(&e, 0);
                break;
            case 'e':
                m->base.expires_s = number_of(&e, 0);
                break;
            case 'd':
                row->deleted_us = number_of(&e, CASS_NEVER);
                break;
            case 'm':
                marker = e;
                row->marked = nested;
                break;
            case 'c':
                m->cells = nested ? e.value : m->cells;
                break;
            case 'x':
                m->collections = nested ? e.value : m->collections;
                break;
            case 'r':
                m->ranges = e.type == BSON_TYPE_ARRAY ? e.value : m->ranges;
                break;
            default:
                break;
            }
        }
    }
    row->marker = marker.key.p && row->marked ? stamp_of(marker.value, &m->base) : m->base;
}

static void hide_old(const cass_table *t, uint32_t i, const cass_row *row, cass_cell *cell) {
    int64_t hidden = t->stored[i].dropped_us > row->deleted_us ? t->stored[i].dropped_us : row->deleted_us;
    if (cell->there && hidden != CASS_NEVER && cell->stamp.us <= hidden) {
        *cell = (cass_cell){.value = cql_value_null(), .deleted_us = CASS_NEVER};
    }
}

static err read_simple(op *o, const cass_table *t, uint32_t i, const members *in, const meta *m, int64_t now_s, cass_cell *cell) {
    doc_element e;
    slice member = t->stored[i].member;
    cell->stamp = m->base;
    bool listed = find_in(m->cells, member, &e) && e.type == BSON_TYPE_DOCUMENT;
    if (listed) {
        cell->stamp = stamp_of(e.value, &m->base);
        cell->there = cell->dead = long_of(e.value, "x", 0);
    }
    if (!cell->dead && column_of(in, i, &e) && e.type != BSON_TYPE_NULL) {
        TRY(cql_bson_read(o, t->table.columns[i].type, &e, &cell->value));
        cell->there = true;
        if (!cass_stamp_is_live(&cell->stamp, now_s)) {
            cell->dead = true;
            cell->value = cql_value_null();
        }
    }
    return OK;
}

static err read_collection(op *o, const cass_table *t, uint32_t i, const members *in, const meta *m, int64_t now_s, bool to_change,
                           cass_cell *cell) {
    const cql_type *type = t->table.columns[i].type;
    slice member = t->stored[i].member;
    doc_element e, listed = {0}, list;
    bool has_listed = find_in(m->collections, member, &listed) && listed.type == BSON_TYPE_DOCUMENT;
    cell->stamp = m->base;
    if (column_of(in, i, &e) && e.type != BSON_TYPE_NULL) {
        TRY(cql_bson_read(o, type, &e, &cell->value));
        cell->there = true;
    }
    bool expires = m->base.ttl && !cass_stamp_is_live(&m->base, now_s);
    if (!to_change && !has_listed && !expires && t->stored[i].dropped_us == CASS_NEVER) {
        return OK;
    }
    TRY(cass_cell_divide(o, type, cell->value, m->base, &cell->elements, &cell->n));
    if (has_listed) {
        cell->deleted_us = long_of(listed.value, "d", CASS_NEVER);
        if (cass_member(listed.value, "s", &list) && list.type == BSON_TYPE_ARRAY) {
            TRY(read_listed(o, type, list.value, &m->base, cell));
        }
    }
    for (uint32_t k = 0; k < cell->n; k++) {
        cass_element *el = &cell->elements[k];
        el->dead = el->dead || !cass_stamp_is_live(&el->stamp, now_s) || el->stamp.us <= t->stored[i].dropped_us;
    }
    cell->there = cell->n || cell->deleted_us != CASS_NEVER;
    return cass_cell_assemble(o, type, cell, now_s);
}

void cass_row_init(op *o, const cass_table *t, cass_row *row) {
    *row = (cass_row){.deleted_us = CASS_NEVER, .cells = arena_array(o->arena, cass_cell, t->table.n)};
    for (uint32_t i = 0; i < t->table.n; i++) {
        row->cells[i].value = cql_value_null();
        row->cells[i].deleted_us = CASS_NEVER;
    }
}

static bool is_key(const cql_column *c) {
    return c->kind == CQL_COLUMN_PARTITION || c->kind == CQL_COLUMN_CLUSTERING;
}

err cass_row_read(op *o, const cass_table *t, slice body, int64_t now_s, const bool *needed, bool to_change, cass_row *row) {
    members in;
    meta m;
    doc_element e;
    cass_row_init(o, t, row);
    find_members(t, body, arena_array(o->arena, doc_element, t->table.n), &in);
    read_meta(in.meta, &m, row);
    row->is_static = is_static(t, &in);
    if (m.ranges.n) {
        TRY(cass_ranges_read(o, m.ranges, now_s, &row->ranges, &row->ranges_n));
    }
    for (uint32_t i = 0; i < t->table.n; i++) {
        const cql_column *c = &t->table.columns[i];
        if (needed && !needed[i]) {
            continue;
        }
        if (is_key(c)) {
            if (!(row->is_static && c->kind == CQL_COLUMN_CLUSTERING) && column_of(&in, i, &e)) {
                TRY(cql_bson_read(o, c->type, &e, &row->cells[i].value));
                row->cells[i].there = true;
            }
        } else if ((c->kind == CQL_COLUMN_STATIC) == row->is_static) {
            TRY(cql_type_is_multicell(c->type) ? read_collection(o, t, i, &in, &m, now_s, to_change, &row->cells[i])
                                               : read_simple(o, t, i, &in, &m, now_s, &row->cells[i]));
            if (!cql_type_is_multicell(c->type)) {
                hide_old(t, i, row, &row->cells[i]);
            }
        }
    }
    return OK;
}

bool cass_row_is_live(const cass_table *t, const cass_row *row, int64_t now_s) {
    bool live = row->marked && row->marker.us > row->deleted_us && cass_stamp_is_live(&row->marker, now_s) && !row->is_static;
    for (uint32_t i = t->table.partition_n + t->table.clustering_n; !live && i < t->table.n; i++) {
        live = row->cells[i].there && !row->cells[i].dead && !row->cells[i].value.null;
    }
    return live;
}

/* ---- writing ---- */

typedef struct writer {
    op *o;
    const cass_table *t;
    const cass_row *row;
    int64_t now_s;
    cass_stamp base;
    int64_t until_s; /* when everything has expired; INT64_MAX: never */
    bool any;        /* something is left to remember */
} writer;

static void lasts(writer *w, const cass_stamp *s, bool dead) {
    int64_t until = dead ? w->now_s + w->t->gc_grace_s : s->ttl ? s->expires_s : INT64_MAX;
    w->any = true;
    w->until_s = until > w->until_s ? until : w->until_s;
}

static size_t open_document(buf *out, char type, slice key) {
    if (type) {
        buf_add_byte(out, type);
        buf_add_slice(out, key);
        buf_add_byte(out, 0);
    }
    size_t at = out->n;
    buf_add(out, "\0\0\0\0", 4);
    return at;
}

static void close_document(buf *out, size_t at) {
    buf_add_byte(out, 0);
    if (buf_ok(out)) {
        doc_store_i32(out->p + at, (int32_t)(out->n - at));
    }
}

static void add_long(buf *out, const char *key, int64_t number) {
    char bytes[8];
    doc_store_i64(bytes, number);
    buf_add_byte(out, BSON_TYPE_INT64);
    buf_add(out, key, strlen(key) + 1);
    buf_add(out, bytes, 8);
}

static void add_int(buf *out, const char *key, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    buf_add_byte(out, BSON_TYPE_INT32);
    buf_add(out, key, strlen(key) + 1);
    buf_add(out, bytes, 4);
}

static void add_bool(buf *out, const char *key, bool truth) {
    buf_add_byte(out, BSON_TYPE_BOOL);
    buf_add(out, key, strlen(key) + 1);
    buf_add_byte(out, truth);
}

static void add_stamp(buf *out, const cass_stamp *s, bool dead) {
    add_long(out, "t", s->us);
    if (s->ttl && !dead) {
        add_int(out, "l", s->ttl);
        add_long(out, "e", s->expires_s);
    }
    if (dead) {
        add_bool(out, "x", true);
    }
}

/* Key columns, and the key texts of those that need them. */
static err add_keys(writer *w, buf *out) {
    const cql_table *table = &w->t->table;
    uint32_t n = table->partition_n + table->clustering_n;
    bool texts = false;
    for (uint32_t i = 0; i < n; i++) {
        slice member = w->t->stored[i].member;
        texts = texts || w->t->stored[i].as_text;
        if (w->row->is_static && i >= table->partition_n) {
            if (!w->t->stored[i].as_text) {
                buf_add_byte(out, (char)(table->columns[i].descending ? BSON_TYPE_MAXKEY : BSON_TYPE_MINKEY));
                buf_add_slice(out, member);
                buf_add_byte(out, 0);
            }
        } else {
            cql_bson_add(out, member, table->columns[i].type, w->row->cells[i].value);
        }
    }
    if (!texts) {
        return OK;
    }
    size_t at = open_document(out, BSON_TYPE_DOCUMENT, SLICE_LIT(CASS_KEYS));
    for (uint32_t i = 0; i < n; i++) {
        slice text;
        if (!w->t->stored[i].as_text) {
            continue;
        }
        if (w->row->is_static && i >= table->partition_n) {
            buf_add_byte(out, (char)(table->columns[i].descending ? BSON_TYPE_MAXKEY : BSON_TYPE_MINKEY));
            buf_add_slice(out, w->t->stored[i].member);
            buf_add_byte(out, 0);
            continue;
        }
        TRY(cql_key_text(w->o, table->columns[i].type, w->row->cells[i].value, i >= table->partition_n, &text));
        cql_bson_add(out, w->t->stored[i].member, cql_type_of(CQL_TEXT), cql_value_text(text));
    }
    close_document(out, at);
    return OK;
}

static bool remembers(const writer *w, const cass_stamp *s) { /* a deletion that an older write may still meet */
    return s->us > w->row->deleted_us && w->t->gc_grace_s > 0;
}

static bool is_column(const writer *w, uint32_t i) {
    return (w->t->table.columns[i].kind == CQL_COLUMN_STATIC) == w->row->is_static;
}

static void add_values(writer *w, buf *out) {
    for (uint32_t i = w->t->table.partition_n + w->t->table.clustering_n; i < w->t->table.n; i++) {
        const cass_cell *c = &w->row->cells[i];
        if (is_column(w, i) && c->there && !c->dead && !c->value.null) {
            cql_bson_add(out, w->t->stored[i].member, w->t->table.columns[i].type, c->value);
        }
    }
}

static void add_cells(writer *w, buf *out) {
    size_t at = 0;
    for (uint32_t i = w->t->table.partition_n + w->t->table.clustering_n; i < w->t->table.n; i++) {
        const cass_cell *c = &w->row->cells[i];
        bool simple = is_column(w, i) && c->there && !cql_type_is_multicell(w->t->table.columns[i].type);
        if (!simple || (c->dead && !remembers(w, &c->stamp))) {
            continue;
        }
        lasts(w, &c->stamp, c->dead);
        if (!c->dead && same_stamp(&c->stamp, &w->base)) {
            continue;
        }
        at = at ? at : open_document(out, BSON_TYPE_DOCUMENT, SLICE_LIT("c"));
        size_t cell = open_document(out, BSON_TYPE_DOCUMENT, w->t->stored[i].member);
        add_stamp(out, &c->stamp, c->dead);
        close_document(out, cell);
    }
    if (at) {
        close_document(out, at);
    }
}

static void add_element(buf *out, uint32_t place, const cql_type *type, uint32_t at, const cass_element *e) {
    char key[16], head[5];
    snprintf(key, sizeof key, "%u", place);
    size_t begun = open_document(out, BSON_TYPE_DOCUMENT, slice_str(key));
    if (type->kind == CQL_LIST) {
        add_int(out, "k", (int32_t)at);
    } else {
        doc_store_i32(head, (int32_t)e->key.bytes.n);
        head[4] = BSON_SUBTYPE_BINARY;
        buf_add_byte(out, BSON_TYPE_BINARY);
        buf_add(out, "k", 2);
        buf_add(out, head, sizeof head);
        buf_add_slice(out, e->key.bytes);
    }
    add_stamp(out, &e->stamp, e->dead);
    close_document(out, begun);
}

/* `live` counts the elements that the value has, which is how those of a list are named. */
static void add_collection(writer *w, buf *out, uint32_t i, size_t *opened) {
    const cass_cell *c = &w->row->cells[i];
    const cql_type *type = w->t->table.columns[i].type;
    size_t at = 0, list = 0;
    uint32_t place = 0, live = 0;
    bool whole = c->deleted_us > w->row->deleted_us && w->t->gc_grace_s > 0;
    for (uint32_t k = 0; k <= c->n; k++) {
        const cass_element *e = k < c->n ? &c->elements[k] : NULL;
        bool listed = e && (e->dead ? type->kind != CQL_LIST && e->stamp.us > c->deleted_us && remembers(w, &e->stamp)
                                    : !same_stamp(&e->stamp, &w->base));
        if (e && (listed || !e->dead)) {
            lasts(w, &e->stamp, e->dead);
        }
        if ((listed || (whole && !at)) && !at) {
            *opened = *opened ? *opened : open_document(out, BSON_TYPE_DOCUMENT, SLICE_LIT("x"));
            at = open_document(out, BSON_TYPE_DOCUMENT, w->t->stored[i].member);
            if (whole) {
                add_long(out, "d", c->deleted_us);
                lasts(w, &(cass_stamp){.us = c->deleted_us}, true);
            }
        }
        if (listed) {
            list = list ? list : open_document(out, BSON_TYPE_ARRAY, SLICE_LIT("s"));
            add_element(out, place++, type, live, e);
        }
        live += e && !e->dead;
    }
    if (list) {
        close_document(out, list);
    }
    if (at) {
        close_document(out, at);
    }
}

static void add_collections(writer *w, buf *out) {
    size_t opened = 0;
    for (uint32_t i = w->t->table.partition_n + w->t->table.clustering_n; i < w->t->table.n; i++) {
        if (is_column(w, i) && w->row->cells[i].there && cql_type_is_multicell(w->t->table.columns[i].type)) {
            add_collection(w, out, i, &opened);
        }
    }
    if (opened) {
        close_document(out, opened);
    }
}

/* The stamp that most cells have: the marker's, or else that of the first value. */
static cass_stamp base_of(const writer *w) {
    if (w->row->marked && w->row->marker.us > w->row->deleted_us) {
        return w->row->marker;
    }
    for (uint32_t i = w->t->table.partition_n + w->t->table.clustering_n; i < w->t->table.n; i++) {
        const cass_cell *c = &w->row->cells[i];
        if (is_column(w, i) && c->there && !c->dead && !cql_type_is_multicell(w->t->table.columns[i].type)) {
            return c->stamp;
        }
    }
    return (cass_stamp){.us = w->row->deleted_us == CASS_NEVER ? 0 : w->row->deleted_us};
}

static void add_ranges(writer *w, buf *out) {
    if (!w->row->ranges_n) {
        return;
    }
    size_t at = open_document(out, BSON_TYPE_ARRAY, SLICE_LIT("r"));
    cass_ranges_put(out, w->row->ranges, w->row->ranges_n);
    close_document(out, at);
    w->any = true;
    for (uint32_t i = 0; i < w->row->ranges_n; i++) {
        int64_t until = w->row->ranges[i].until_s;
        w->until_s = until > w->until_s ? until : w->until_s;
    }
}

static void add_meta(writer *w, buf *out) {
    const cass_row *row = w->row;
    bool marked = row->marked && row->marker.us > row->deleted_us;
    size_t at = open_document(out, BSON_TYPE_DOCUMENT, SLICE_LIT(CASS_META));
    w->base = base_of(w);
    add_stamp(out, &w->base, false);
    if (!marked) {
        add_bool(out, "m", false);
    } else if (!row->is_static) {
        lasts(w, &row->marker, false);
    }
    if (row->deleted_us != CASS_NEVER && w->t->gc_grace_s > 0) {
        add_long(out, "d", row->deleted_us);
        lasts(w, &(cass_stamp){.us = row->deleted_us}, true);
    }
    add_cells(w, out);
    add_collections(w, out);
    add_ranges(w, out);
    close_document(out, at);
}

err cass_row_write(op *o, const cass_table *t, const cass_row *row, int64_t now_s, slice *body_out) {
    writer w = {.o = o, .t = t, .row = row, .now_s = now_s};
    buf out = buf_init_counted(LIMIT_EDITED_BYTES, o->budget);
    size_t at = open_document(&out, 0, SLICE_EMPTY);
    err code = add_keys(&w, &out);
    add_values(&w, &out);
    add_meta(&w, &out);
    if (w.until_s != INT64_MAX) {
        int64_t left = w.until_s - now_s + 1;
        add_int(&out, CASS_TTL, left < 1 ? 1 : left > INT32_MAX ? INT32_MAX : (int32_t)left);
    }
    close_document(&out, at);
    *body_out = SLICE_EMPTY;
    if (code == OK && (!buf_ok(&out) || !arena_fits(o->arena, out.n))) {
        code = op_fail(o, E_TOO_LARGE, "The row is too large.");
    } else if (code == OK && w.any && out.n > LIMIT_ITEM_BYTES) {
        code = op_fail(o, E_TOO_LARGE, "The row has %zu bytes; it may have %d.", out.n, LIMIT_ITEM_BYTES);
    } else if (code == OK && w.any) {
        *body_out = arena_copy(o->arena, buf_view(&out));
    }
    buf_free(&out);
    return code;
}

/* ---- keys ---- */

/* An element of BSON for one key column, as the key's path finds it in the item. */
static err key_element(op *o, const cass_table *t, uint32_t i, cql_value v, doc_element *e) {
    const cql_column *c = &t->table.columns[i];
    bool clustering = c->kind == CQL_COLUMN_CLUSTERING;
    doc_walk w;
    slice text;
    if (v.null || v.unset) {
        return op_fail(o, E_BAD_REQUEST, "Invalid null value in condition for column %.*s", slice_shown(c->name), c->name.p);
    }
    if (t->stored[i].as_text) {
        TRY(cql_key_text(o, c->type, v, clustering, &text));
    }
    buf out = buf_init(BUF_NO_LIMIT);
    size_t at = open_document(&out, 0, SLICE_EMPTY);
    if (t->stored[i].as_text) {
        cql_bson_add(&out, SLICE_LIT("k"), cql_type_of(CQL_TEXT), cql_value_text(text));
    } else {
        cql_bson_add(&out, SLICE_LIT("k"), c->type, v);
    }
    close_document(&out, at);
    slice document = arena_copy(o->arena, buf_view(&out));
    buf_free(&out);
    return doc_walk_init(&w, document) && doc_walk_next(&w, e)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "Key length of more than %d is too long", LIMIT_ROW_BYTES);
}

err cass_row_prefix(op *o, const cass_table *t, const container *c, const cql_value *clustering, uint32_t n, slice *prefix_out) {
    buf out = buf_init(BUF_NO_LIMIT);
    err code = OK;
    for (uint32_t i = 0; code == OK && i < n; i++) {
        doc_element e;
        code = key_element(o, t, t->table.partition_n + i, clustering[i], &e);
        if (code == OK) {
            row_add(&out, &c->row, i, &e);
        }
    }
    if (code == OK && out.n > LIMIT_ROW_BYTES) {
        code = op_fail(o, E_BAD_REQUEST, "Key length of %zu is longer than maximum of %d", out.n, LIMIT_ROW_BYTES);
    }
    *prefix_out = code == OK ? arena_copy(o->arena, buf_view(&out)) : SLICE_EMPTY;
    buf_free(&out);
    return code;
}

static slice static_prefix(op *o, const cass_table *t, const container *c) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < t->table.clustering_n; i++) {
        bool down = t->table.columns[t->table.partition_n + i].descending;
        doc_element e = {.type = down ? BSON_TYPE_MAXKEY : BSON_TYPE_MINKEY, .value = SLICE_EMPTY};
        row_add(&out, &c->row, i, &e);
    }
    slice row = arena_copy(o->arena, buf_view(&out));
    buf_free(&out);
    return row;
}

err cass_single_row(op *o, const cass_table *t, const container *c, cql_value first, slice *row_out) {
    doc_element e;
    buf out = buf_init(BUF_NO_LIMIT);
    TRY(key_element(o, t, 0, first, &e));
    row_add(&out, &c->row, 0, &e);
    *row_out = arena_copy(o->arena, buf_view(&out));
    buf_free(&out);
    return OK;
}

err cass_key_of(op *o, const cass_table *t, const container *c, const cql_value *partition, const cql_value *clustering,
                item_key *key_out) {
    pkey key = {.n = t->table.partition_n};
    slice row;
    for (uint32_t i = 0; i < t->table.partition_n; i++) {
        doc_element e;
        TRY(key_element(o, t, i, partition[i], &e));
        key.values[i] = pkey_typed_value(&e);
    }
    if (!t->table.clustering_n) {
        TRY(cass_single_row(o, t, c, partition[0], &row));
    } else if (clustering) {
        TRY(cass_row_prefix(o, t, c, clustering, t->table.clustering_n, &row));
    } else {
        row = static_prefix(o, t, c);
    }
    return item_check_key(o, c, &key, row, key_out);
}
