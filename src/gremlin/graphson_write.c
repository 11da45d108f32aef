/* graphson_write.c — values to GraphSON 1, 2 and 3.
 *
 *              1, 2 untyped           2                          3
 *   number     1                      {"@type":"g:Int32",…}      the same
 *   list       […]                    […]                        {"@type":"g:List","@value":[…]}
 *   map        {"k":v}                {"k":v}                    {"@type":"g:Map","@value":[k,v,…]}
 *   vertex     {"id",…,"type":…}      {"@type":"g:Vertex",…}     the same
 *
 * Keys of JSON objects that are not strings are written as text. */
#include <math.h>
#include <stdio.h>

#include "base/base64.h"
#include "doc/json.h"
#include "gremlin/wire_int.h"

typedef struct writer {
    buf *out;
    gremlin_format format;
    bool typed; /* 2 and 3 */
    bool three;
    bool failed;
} writer;

static void value(writer *w, gremlin_value v);

#define add(w, text) buf_add_lit((w)->out, text)

static void open_type(writer *w, const char *type) {
    if (w->typed) {
        buf_addf(w->out, "{\"@type\":\"%s\",\"@value\":", type);
    }
}

static void close_type(writer *w) {
    if (w->typed) {
        add(w, "}");
    }
}

static void text(writer *w, slice s) {
    json_add_string(w->out, s);
}

static void member(writer *w, const char *name, bool first) {
    buf_addf(w->out, "%s\"%s\":", first ? "" : ",", name);
}

/* ---- plain values ---- */

static void number(writer *w, gremlin_value v) {
    static const char *const types[] = {
        [GREMLIN_BYTE] = "gx:Byte",         [GREMLIN_SHORT] = "gx:Int16",       [GREMLIN_INT] = "g:Int32",
        [GREMLIN_LONG] = "g:Int64",         [GREMLIN_FLOAT] = "g:Float",        [GREMLIN_DOUBLE] = "g:Double",
        [GREMLIN_BIGINT] = "gx:BigInteger", [GREMLIN_DECIMAL] = "gx:BigDecimal"};
    char room[64];
    open_type(w, types[v.type]);
    if (v.type == GREMLIN_BIGINT || v.type == GREMLIN_DECIMAL) {
        size_t n = v.type == GREMLIN_DECIMAL ? gremlin_decimal_write(*v.wide, room) : gremlin_big_write(gremlin_as_big(v), room);
        bool plain = room[n - 1] >= '0' && room[n - 1] <= '9'; /* not NaN or Infinity */
        buf_addf(w->out, plain ? "%.*s" : "\"%.*s\"", (int)n, room);
    } else if (v.type == GREMLIN_FLOAT || v.type == GREMLIN_DOUBLE) {
        if (isfinite(v.d)) {
            gremlin__show_finite(w->out, v);
        } else {
            buf_addf(w->out, "\"%s\"", isnan(v.d) ? "NaN" : v.d < 0 ? "-Infinity" : "Infinity");
        }
    } else {
        buf_add_i64(w->out, v.i);
    }
    close_type(w);
}

static void shown(writer *w, const char *type, gremlin_value v) {
    buf room = buf_init(1 << 20);
    gremlin_show(&room, v);
    open_type(w, type);
    text(w, buf_view(&room));
    close_type(w);
    buf_free(&room);
}

static void duration(writer *w, const gremlin_duration *d) {
    open_type(w, "gx:Duration");
    if (d->nanos) {
        buf_addf(w->out, "\"PT%lld.%09dS\"", (long long)d->seconds, d->nanos);
    } else {
        buf_addf(w->out, "\"PT%lldS\"", (long long)d->seconds);
    }
    close_type(w);
}

static void binary(writer *w, slice bytes) {
    open_type(w, "gx:ByteBuffer");
    add(w, "\"");
    base64_encode(w->out, bytes);
    add(w, "\"");
    close_type(w);
}

static void member_of_enum(writer *w, gremlin_value v) {
    char type[40];
    snprintf(type, sizeof type, "g:%s", gremlin_enum_name((gremlin_enum)v.family));
    open_type(w, type);
    buf_addf(w->out, "\"%s\"", gremlin_member_name((gremlin_enum)v.family, v.n));
    close_type(w);
}

static void plain(writer *w, gremlin_value v) {
    switch (v.type) {
    case GREMLIN_NULL:
        add(w, "null");
        return;
    case GREMLIN_BOOLEAN:
        buf_addf(w->out, "%s", v.b ? "true" : "false");
        return;
    case GREMLIN_STRING:
        text(w, gremlin_text(v));
        return;
    case GREMLIN_CHAR:
        shown(w, "gx:Char", v);
        return;
    case GREMLIN_UUID:
        shown(w, "g:UUID", v);
        return;
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
        open_type(w, v.type == GREMLIN_DATE ? "g:Date" : "g:Timestamp");
        buf_add_i64(w->out, v.i);
        close_type(w);
        return;
    case GREMLIN_DURATION:
        duration(w, v.duration);
        return;
    case GREMLIN_BINARY:
        binary(w, gremlin_text(v));
        return;
    default:
        number(w, v);
    }
}

/* ---- collections ---- */

static void values(writer *w, const gremlin_value *at, const int64_t *bulk, size_t n) {
    bool first = true;
    add(w, "[");
    for (size_t i = 0; i < n && buf_ok(w->out); i++) {
        for (int64_t j = 0; j < (bulk ? bulk[i] : 1) && buf_ok(w->out); j++, first = false) {
            buf_add_slice(w->out, first ? SLICE_EMPTY : SLICE_LIT(","));
            value(w, at[i]);
        }
    }
    add(w, "]");
}

static void bulk_set(writer *w, const gremlin_list *l) {
    open_type(w, "g:BulkSet");
    add(w, "[");
    for (size_t i = 0; i < l->n && buf_ok(w->out); i++) {
        buf_add_slice(w->out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        value(w, l->at[i]);
        add(w, ",");
        number(w, gremlin_long(l->bulk ? l->bulk[i] : 1));
    }
    add(w, "]");
    close_type(w);
}

/* Before GraphSON 3 a bulk set is a list with its values repeated. */
static void list(writer *w, gremlin_value v) {
    bool wrapped = w->three;
    if (wrapped && v.type == GREMLIN_BULKSET) {
        bulk_set(w, v.list);
        return;
    }
    if (wrapped) {
        open_type(w, v.type == GREMLIN_SET ? "g:Set" : "g:List");
    }
    values(w, v.list->at, v.list->bulk, v.list->n);
    if (wrapped) {
        close_type(w);
    }
}

static void key(writer *w, gremlin_value v) {
    buf room = buf_init(1 << 20);
    gremlin_show(&room, v);
    text(w, buf_view(&room));
    buf_free(&room);
}

static void map(writer *w, gremlin_value v) {
    bool flat = w->three;
    if (flat) {
        open_type(w, "g:Map");
    }
    buf_add_slice(w->out, flat ? SLICE_LIT("[") : SLICE_LIT("{"));
    for (size_t i = 0; i < v.map->n && buf_ok(w->out); i++) {
        buf_add_slice(w->out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        if (flat) {
            value(w, v.map->at[i].key);
        } else {
            key(w, v.map->at[i].key);
        }
        buf_add_slice(w->out, flat ? SLICE_LIT(",") : SLICE_LIT(":"));
        value(w, v.map->at[i].value);
    }
    buf_add_slice(w->out, flat ? SLICE_LIT("]") : SLICE_LIT("}"));
    if (flat) {
        close_type(w);
    }
}

/* 2 and 3: a list of {"key","value"}; 1: an object by id. */
static void tree(writer *w, gremlin_value v) {
    open_type(w, "g:Tree");
    buf_add_slice(w->out, w->typed ? SLICE_LIT("[") : SLICE_LIT("{"));
    for (size_t i = 0; i < v.map->n && buf_ok(w->out); i++) {
        gremlin_value node = v.map->at[i].key;
        buf_add_slice(w->out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        if (!w->typed) {
            key(w, gremlin_is_element(node) ? node.element->id : node);
            add(w, ":");
        }
        add(w, "{\"key\":");
        value(w, node);
        add(w, ",\"value\":");
        value(w, v.map->at[i].value);
        add(w, "}");
    }
    buf_add_slice(w->out, w->typed ? SLICE_LIT("]") : SLICE_LIT("}"));
    close_type(w);
}

static void path(writer *w, const gremlin_path *p) {
    open_type(w, "g:Path");
    add(w, "{\"labels\":");
    if (w->three) {
        open_type(w, "g:List");
    }
    add(w, "[");
    for (size_t i = 0; i < p->n; i++) {
        buf_add_slice(w->out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        if (w->three) {
            open_type(w, "g:Set");
        }
        add(w, "[");
        for (size_t j = 0; j < p->labels[i].n; j++) {
            buf_add_slice(w->out, j ? SLICE_LIT(",") : SLICE_EMPTY);
            text(w, p->labels[i].at[j]);
        }
        add(w, "]");
        if (w->three) {
            close_type(w);
        }
    }
    add(w, "]");
    if (w->three) {
        close_type(w);
    }
    add(w, ",\"objects\":");
    gremlin_list objects = {.n = p->n, .at = p->objects};
    list(w, (gremlin_value){.type = GREMLIN_LIST, .list = &objects});
    add(w, "}");
    close_type(w);
}

/* ---- elements ---- */

static void metas(writer *w, const gremlin_property *p) {
    member(w, "properties", false);
    add(w, "{");
    for (size_t i = 0; i < p->n; i++) {
        buf_add_slice(w->out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        text(w, p->metas[i].key);
        add(w, ":");
        value(w, p->metas[i].value);
    }
    add(w, "}");
}

/* Inside its vertex, GraphSON 1 leaves out the label, and 2 names the vertex. */
static void vertex_property(writer *w, const gremlin_property *p, bool inside) {
    open_type(w, "g:VertexProperty");
    add(w, "{");
    member(w, "id", true);
    value(w, p->id);
    member(w, "value", false);
    value(w, p->value);
    if (w->typed && !w->three && p->owner) {
        member(w, "vertex", false);
        value(w, p->owner->id);
    }
    if (w->typed || !inside) {
        member(w, "label", false);
        text(w, p->key);
    }
    if (p->n) {
        metas(w, p);
    }
    add(w, "}");
    close_type(w);
}

static void vertex_properties(writer *w, const gremlin_element *e) {
    member(w, "properties", false);
    add(w, "{");
    for (size_t i = 0; i < e->n && buf_ok(w->out); i++) {
        bool again = i && slice_eq(e->properties[i].key, e->properties[i - 1].key);
        if (!again) {
            buf_add_slice(w->out, i ? SLICE_LIT("],") : SLICE_EMPTY);
            text(w, e->properties[i].key);
            add(w, ":[");
        } else {
            add(w, ",");
        }
        vertex_property(w, &e->properties[i], true);
    }
    buf_add_slice(w->out, e->n ? SLICE_LIT("]}") : SLICE_LIT("}"));
}

static void property(writer *w, const gremlin_property *p) {
    open_type(w, "g:Property");
    add(w, "{");
    member(w, "key", true);
    text(w, p->key);
    member(w, "value", false);
    value(w, p->value);
    add(w, "}");
    close_type(w);
}

static void edge_properties(writer *w, const gremlin_element *e) {
    member(w, "properties", false);
    add(w, "{");
    for (size_t i = 0; i < e->n && buf_ok(w->out); i++) {
        buf_add_slice(w->out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        text(w, e->properties[i].key);
        add(w, ":");
        if (w->typed) {
            property(w, &e->properties[i]);
        } else {
            value(w, e->properties[i].value);
        }
    }
    add(w, "}");
}

static void ends(writer *w, const gremlin_element *e) {
    member(w, "inVLabel", false);
    text(w, e->in->label);
    member(w, "outVLabel", false);
    text(w, e->out->label);
    member(w, "inV", false);
    value(w, e->in->id);
    member(w, "outV", false);
    value(w, e->out->id);
}

static void element(writer *w, const gremlin_element *e) {
    open_type(w, e->is_edge ? "g:Edge" : "g:Vertex");
    add(w, "{");
    member(w, "id", true);
    value(w, e->id);
    member(w, "label", false);
    text(w, e->label);
    if (!w->typed) {
        member(w, "type", false);
        buf_addf(w->out, "\"%s\"", e->is_edge ? "edge" : "vertex");
    }
    if (e->is_edge) {
        ends(w, e);
    }
    if (e->n && e->is_edge) {
        edge_properties(w, e);
    } else if (e->n) {
        vertex_properties(w, e);
    }
    add(w, "}");
    close_type(w);
}

static void subgraph(writer *w, const gremlin_subgraph *g) {
    open_type(w, "tinker:graph");
    add(w, "{\"vertices\":");
    values(w, g->vertices.at, NULL, g->vertices.n);
    add(w, ",\"edges\":");
    values(w, g->edges.at, NULL, g->edges.n);
    add(w, "}");
    close_type(w);
}

/* ---- the rest ---- */

static void predicate(writer *w, const gremlin_predicate *p) {
    gremlin_value both[2];
    open_type(w, p->kind >= P_STARTING_WITH && p->kind <= P_NOT_REGEX ? "g:TextP" : "g:P");
    buf_addf(w->out, "{\"predicate\":\"%s\",\"value\":", gremlin_p_name(p->kind));
    if (p->left) {
        both[0] = (gremlin_value){.type = GREMLIN_P, .predicate = p->left};
        both[1] = (gremlin_value){.type = GREMLIN_P, .predicate = p->right};
        if (p->right) {
            values(w, both, NULL, 2);
        } else {
            value(w, both[0]);
        }
    } else if (p->n == 1 && p->kind != P_WITHIN && p->kind != P_WITHOUT) {
        value(w, p->values[0]);
    } else {
        gremlin_list items = {.n = p->n, .at = p->values};
        list(w, (gremlin_value){.type = GREMLIN_LIST, .list = &items});
    }
    add(w, "}");
    close_type(w);
}

static void traverser(writer *w, const gremlin_traverser *t) {
    open_type(w, "g:Traverser");
    add(w, "{\"bulk\":");
    value(w, gremlin_long(t->bulk));
    add(w, ",\"value\":");
    value(w, t->value);
    add(w, "}");
    close_type(w);
}

static void value(writer *w, gremlin_value v) {
    if (v.type <= GREMLIN_BINARY) {
        plain(w, v);
        return;
    }
    switch (v.type) {
    case GREMLIN_LIST:
    case GREMLIN_SET:
    case GREMLIN_BULKSET:
        list(w, v);
        return;
    case GREMLIN_MAP:
        map(w, v);
        return;
    case GREMLIN_TREE:
        tree(w, v);
        return;
    case GREMLIN_PATH:
        path(w, v.path);
        return;
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        element(w, v.element);
        return;
    case GREMLIN_VERTEX_PROPERTY:
        vertex_property(w, v.property, false);
        return;
    case GREMLIN_PROPERTY:
        property(w, v.property);
        return;
    case GREMLIN_SUBGRAPH:
        subgraph(w, v.subgraph);
        return;
    case GREMLIN_ENUM:
        member_of_enum(w, v);
        return;
    case GREMLIN_P:
        predicate(w, v.predicate);
        return;
    case GREMLIN_TRAVERSER:
        traverser(w, v.traverser);
        return;
    default:
        w->failed = true;
    }
}

bool gremlin__graphson_write(buf *out, gremlin_format format, gremlin_value v) {
    writer w = {.out = out,
                .format = format,
                .typed = format == GREMLIN_GRAPHSON_2 || format == GREMLIN_GRAPHSON_3,
                .three = format == GREMLIN_GRAPHSON_3};
    value(&w, v);
    return !w.failed;
}
