/* Entities as OData JSON: metadata, annotations, etags and links. */
#include "api/table/entity.h"
#include "base/base64.h"
#include "doc/json.h"
#include "doc/path.h"

/* ---- timestamps and etags ---- */

int64_t entity_timestamp(slice body, uint64_t version, uint32_t ts) {
    doc_element e;
    bool stored = doc_find_member(body, SLICE_LIT("Timestamp"), &e) && e.type == BSON_TYPE_DATE_TIME;
    int64_t ms = stored ? doc_load_i64(e.value.p) : (int64_t)ts * 1000;
    return ms * EDM_TICKS_PER_MS + (int64_t)(version % EDM_TICKS_PER_MS);
}

void entity_etag(buf *out, slice body, uint64_t version, uint32_t ts) {
    enum { HOURS = 13, MINUTES = 16 }; /* where these end, and a colon follows */
    char room[EDM_TIME_BYTES];
    buf time = {.p = room, .cap = sizeof room, .max = sizeof room};
    edm_time_write(&time, entity_timestamp(body, version, ts));
    buf_add_lit(out, "W/\"datetime'");
    buf_add(out, room, HOURS);
    buf_add_lit(out, "%3A");
    buf_add(out, room + HOURS + 1, MINUTES - HOURS - 1);
    buf_add_lit(out, "%3A");
    buf_add(out, room + MINUTES + 1, EDM_TIME_BYTES - MINUTES - 1);
    buf_add_lit(out, "'\"");
}

/* ---- links ---- */

static bool is_plain(unsigned char c) {
    return (unsigned)((c | 0x20) - 'a') < 26u || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
}

static void add_key(buf *out, slice key) {
    for (size_t i = 0; i < key.n; i++) {
        unsigned char c = (unsigned char)key.p[i];
        if (is_plain(c)) {
            buf_add_byte(out, (char)c);
        } else {
            buf_add_byte(out, '%');
            buf_add_hex(out, slice_of(key.p + i, 1));
            if (c == '\'') {
                buf_add_lit(out, "%27");
            }
        }
    }
}

void entity_link(buf *out, slice table, slice partition, slice row) {
    buf_add_slice(out, table);
    buf_add_lit(out, "(PartitionKey='");
    add_key(out, partition);
    buf_add_lit(out, "',RowKey='");
    add_key(out, row);
    buf_add_lit(out, "')");
}

/* ---- values ---- */

/* Whether JSON alone does not tell the type. */
static bool needs_type(const edm_value *v) {
    bool finite = v->real - v->real == 0;
    return v->type == EDM_INT64 || v->type >= EDM_DATE_TIME || (v->type == EDM_DOUBLE && !finite);
}

static void write_value(buf *out, const edm_value *v) {
    switch (v->type) {
    case EDM_STRING:
        json_add_string(out, v->text);
        break;
    case EDM_INT32:
        buf_add_i64(out, v->number);
        break;
    case EDM_DOUBLE:
        edm_double_write(out, v->real);
        break;
    case EDM_BOOLEAN:
        v->number ? buf_add_lit(out, "true") : buf_add_lit(out, "false");
        break;
    default:
        buf_add_byte(out, '"');
        if (v->type == EDM_INT64) {
            buf_add_i64(out, v->number);
        } else if (v->type == EDM_DATE_TIME) {
            edm_time_write(out, v->number);
        } else if (v->type == EDM_GUID) {
            edm_guid_write(out, v->text);
        } else {
            base64_encode(out, v->text);
        }
        buf_add_byte(out, '"');
    }
}

typedef struct writer {
    buf *out;
    const entity_view *view;
    bool any; /* a comma is due */
} writer;

static void begin_member(writer *w) {
    buf_add(w->out, ",", w->any);
    w->any = true;
}

static void add_member(writer *w, slice name, const edm_value *v, bool typed) {
    if (typed) {
        begin_member(w);
        buf_add_byte(w->out, '"');
        buf_add_slice(w->out, name); /* names need no escapes */
        buf_add_lit(w->out, "@odata.type\":\"");
        buf_add_slice(w->out, slice_str(edm_names[v->type]));
        buf_add_byte(w->out, '"');
    }
    begin_member(w);
    json_add_string(w->out, name);
    buf_add_byte(w->out, ':');
    write_value(w->out, v);
}

static bool is_selected(const entity_view *v, slice name) {
    bool found = v->select == NULL;
    for (size_t i = 0; i < v->select_n && !found; i++) {
        found = slice_eq(v->select[i], name);
    }
    return found;
}

/* ---- the entity ---- */

static void add_text(writer *w, const char *name, slice value) {
    begin_member(w);
    buf_add_byte(w->out, '"');
    buf_add_slice(w->out, slice_str(name));
    buf_add_lit(w->out, "\":");
    json_add_string(w->out, value);
}

static void add_metadata(writer *w, slice body, uint64_t version, uint32_t ts) {
    const entity_view *v = w->view;
    buf text = buf_init(BUF_NO_LIMIT);
    if (v->element) {
        buf_add_slice(&text, v->base);
        buf_add_lit(&text, "/$metadata#");
        buf_add_slice(&text, v->table);
        buf_add_lit(&text, "/@Element");
        add_text(w, "odata.metadata", buf_view(&text));
        buf_clear(&text);
    }
    if (v->metadata == ENTITY_FULL_METADATA) {
        buf_addf(&text, "%.*s.%.*s", (int)v->account.n, v->account.p, (int)v->table.n, v->table.p);
        add_text(w, "odata.type", buf_view(&text));
        buf_clear(&text);
        buf_addf(&text, "%.*s/", (int)v->base.n, v->base.p);
        entity_link(&text, v->table, entity_text(body, SLICE_LIT("PartitionKey")), entity_text(body, SLICE_LIT("RowKey")));
        add_text(w, "odata.id", buf_view(&text));
        add_text(w, "odata.editLink", slice_skip(buf_view(&text), v->base.n + 1));
        buf_clear(&text);
    }
    entity_etag(&text, body, version, ts);
    add_text(w, "odata.etag", buf_view(&text));
    buf_free(&text);
}

/* The Timestamp is that of the version, in ticks. */
static bool value_of(slice body, const doc_element *e, bool stamp, int64_t timestamp, edm_value *v) {
    if (stamp && e->type == BSON_TYPE_DATE_TIME) {
        *v = (edm_value){.type = EDM_DATE_TIME, .number = timestamp};
        return true;
    }
    return edm_of_element(body, e, v);
}

void entity_write(buf *out, const entity_view *view, slice body, uint64_t version, uint32_t ts) {
    writer w = {.out = out, .view = view};
    bool annotated = view->metadata != ENTITY_NO_METADATA;
    int64_t timestamp = entity_timestamp(body, version, ts);
    doc_walk walk;
    doc_element e;
    edm_value v;
    buf_add_byte(out, '{');
    if (annotated) {
        add_metadata(&w, body, version, ts);
    }
    for (doc_walk_init(&walk, body); doc_walk_next(&walk, &e);) {
        bool stamp = slice_eq(e.key, SLICE_LIT("Timestamp"));
        if (edm_is_ticks(e.key) || !is_selected(view, e.key) || !value_of(body, &e, stamp, timestamp, &v)) {
            continue;
        }
        add_member(&w, e.key, &v, stamp ? view->metadata == ENTITY_FULL_METADATA : annotated && needs_type(&v));
    }
    buf_add_byte(out, '}');
}
