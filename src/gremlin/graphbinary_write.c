/* graphbinary_write.c — values to GraphBinary 1. */
#include "gremlin/graphbinary_int.h"
#include "gremlin/wire_int.h"
#include "text/text.h"

static void code(buf *out, unsigned type) {
    buf_add_byte(out, (char)type);
    buf_add_byte(out, 0);
}

static void null(buf *out) {
    buf_add_lit(out, "\xfe\x01");
}

void gremlin__binary_add_text(buf *out, slice text) {
    buf_add_be32(out, (uint32_t)text.n);
    buf_add_slice(out, text);
}

/* ---- numbers ---- */

/* Two's complement, big-endian, in the fewest bytes. */
static void big(buf *out, gremlin_bigint number) {
    unsigned char bytes[16];
    size_t from = 0;
    for (int i = 15; i >= 0; i--) {
        bytes[i] = (unsigned char)number;
        number >>= 8;
    }
    while (from < 15 && ((bytes[from] == 0 && !(bytes[from + 1] & 0x80)) || (bytes[from] == 0xFF && bytes[from + 1] & 0x80))) {
        from++;
    }
    buf_add_be32(out, (uint32_t)(16 - from));
    buf_add(out, bytes + from, 16 - from);
}

/* Digits without the point, and how many of them are behind it. */
static bool decimal(buf *out, gremlin_wide bits) {
    char room[64], digits[64];
    size_t n = gremlin_decimal_write(bits, room), kept = 0;
    int64_t scale = 0, exponent = 0;
    bool behind = false;
    gremlin_bigint number;
    for (size_t i = 0; i < n; i++) {
        if (room[i] == '.') {
            behind = true;
        } else if (room[i] == 'E') {
            slice rest = slice_of(room + i + 1, n - i - 1);
            rest = rest.n && rest.p[0] == '+' ? slice_skip(rest, 1) : rest;
            (void)slice_to_i64(rest, &exponent);
            break;
        } else {
            digits[kept++] = room[i];
            scale += behind;
        }
    }
    if (!gremlin_big_read(slice_of(digits, kept), &number)) {
        return false;
    }
    code(out, CODE_BIGDECIMAL);
    buf_add_be32(out, (uint32_t)(int32_t)(scale - exponent));
    big(out, number);
    return true;
}

static void floating(buf *out, gremlin_value v) {
    if (v.type == GREMLIN_FLOAT) {
        float f = (float)v.d;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        code(out, CODE_FLOAT);
        buf_add_be32(out, bits);
    } else {
        uint64_t bits;
        memcpy(&bits, &v.d, sizeof bits);
        code(out, CODE_DOUBLE);
        buf_add_be64(out, bits);
    }
}

static void whole(buf *out, gremlin_value v) {
    switch (v.type) {
    case GREMLIN_BYTE:
        code(out, CODE_BYTE);
        buf_add_byte(out, (char)v.i);
        return;
    case GREMLIN_SHORT:
        code(out, CODE_SHORT);
        buf_add_byte(out, (char)(v.i >> 8));
        buf_add_byte(out, (char)v.i);
        return;
    case GREMLIN_INT:
        code(out, CODE_INT);
        buf_add_be32(out, (uint32_t)v.i);
        return;
    default:
        code(out, v.type == GREMLIN_DATE ? CODE_DATE : v.type == GREMLIN_TIMESTAMP ? CODE_TIMESTAMP : CODE_LONG);
        buf_add_be64(out, (uint64_t)v.i);
    }
}

static void character(buf *out, int64_t c) {
    char room[4];
    code(out, CODE_CHAR);
    buf_add(out, room, text_encode(room, (uint32_t)c));
}

static bool scalar(buf *out, gremlin_value v) {
    switch (v.type) {
    case GREMLIN_NULL:
        null(out);
        return true;
    case GREMLIN_BOOLEAN:
        code(out, CODE_BOOLEAN);
        buf_add_byte(out, v.b);
        return true;
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        floating(out, v);
        return true;
    case GREMLIN_BIGINT:
        code(out, CODE_BIGINTEGER);
        big(out, gremlin_as_big(v));
        return true;
    case GREMLIN_DECIMAL:
        return decimal(out, *v.wide);
    case GREMLIN_CHAR:
        character(out, v.i);
        return true;
    case GREMLIN_STRING:
    case GREMLIN_BINARY:
        code(out, v.type == GREMLIN_STRING ? CODE_STRING : CODE_BYTEBUFFER);
        gremlin__binary_add_text(out, gremlin_text(v));
        return true;
    case GREMLIN_UUID:
        code(out, CODE_UUID);
        buf_add(out, v.uuid, 16);
        return true;
    case GREMLIN_DURATION:
        code(out, CODE_DURATION);
        buf_add_be64(out, (uint64_t)v.duration->seconds);
        buf_add_be32(out, (uint32_t)v.duration->nanos);
        return true;
    default:
        whole(out, v);
        return true;
    }
}

/* ---- collections ---- */

static bool values(buf *out, const gremlin_value *at, size_t n) {
    bool done = true;
    buf_add_be32(out, (uint32_t)n);
    for (size_t i = 0; i < n && done && buf_ok(out); i++) {
        done = gremlin__binary_write(out, at[i]);
    }
    return done;
}

static bool list(buf *out, gremlin_value v) {
    if (v.type != GREMLIN_BULKSET) {
        code(out, v.type == GREMLIN_SET ? CODE_SET : CODE_LIST);
        return values(out, v.list->at, v.list->n);
    }
    bool done = true;
    code(out, CODE_BULKSET);
    buf_add_be32(out, (uint32_t)v.list->n);
    for (size_t i = 0; i < v.list->n && done; i++) {
        done = gremlin__binary_write(out, v.list->at[i]);
        buf_add_be64(out, (uint64_t)(v.list->bulk ? v.list->bulk[i] : 1));
    }
    return done;
}

static bool map(buf *out, const gremlin_map *m) {
    bool done = true;
    buf_add_be32(out, (uint32_t)m->n);
    for (size_t i = 0; i < m->n && done && buf_ok(out); i++) {
        done = gremlin__binary_write(out, m->at[i].key) && gremlin__binary_write(out, m->at[i].value);
    }
    return done;
}

static bool tree(buf *out, const gremlin_map *m) {
    bool done = true;
    buf_add_be32(out, (uint32_t)m->n);
    for (size_t i = 0; i < m->n && done && buf_ok(out); i++) {
        done = gremlin__binary_write(out, m->at[i].key) && tree(out, m->at[i].value.map);
    }
    return done;
}

static bool path(buf *out, const gremlin_path *p) {
    code(out, CODE_PATH);
    code(out, CODE_LIST);
    buf_add_be32(out, (uint32_t)p->n);
    for (size_t i = 0; i < p->n; i++) {
        code(out, CODE_SET);
        buf_add_be32(out, (uint32_t)p->labels[i].n);
        for (size_t j = 0; j < p->labels[i].n; j++) {
            (void)gremlin__binary_write(out, gremlin_string(p->labels[i].at[j]));
        }
    }
    code(out, CODE_LIST);
    return values(out, p->objects, p->n);
}

/* ---- elements ---- */

static bool properties(buf *out, const gremlin_property *at, size_t n, gremlin_type type) {
    bool done = true;
    if (n == 0) {
        null(out);
        return true;
    }
    code(out, CODE_LIST);
    buf_add_be32(out, (uint32_t)n);
    for (size_t i = 0; i < n && done && buf_ok(out); i++) {
        done = gremlin__binary_write(out, (gremlin_value){.type = (uint8_t)type, .property = &at[i]});
    }
    return done;
}

static bool id_and_label(buf *out, const gremlin_element *e) {
    bool done = gremlin__binary_write(out, e->id);
    gremlin__binary_add_text(out, e->label);
    return done;
}

static bool element(buf *out, const gremlin_element *e) {
    code(out, e->is_edge ? CODE_EDGE : CODE_VERTEX);
    bool done = id_and_label(out, e);
    if (e->is_edge) {
        done = done && id_and_label(out, e->in) && id_and_label(out, e->out);
        null(out);
    }
    return done && properties(out, e->properties, e->n, e->is_edge ? GREMLIN_PROPERTY : GREMLIN_VERTEX_PROPERTY);
}

static bool property(buf *out, gremlin_value v) {
    bool of_vertex = v.type == GREMLIN_VERTEX_PROPERTY, done = true;
    code(out, of_vertex ? CODE_VERTEX_PROPERTY : CODE_PROPERTY);
    if (of_vertex) {
        done = gremlin__binary_write(out, v.property->id);
    }
    gremlin__binary_add_text(out, v.property->key);
    done = done && gremlin__binary_write(out, v.property->value);
    null(out);
    return done && (!of_vertex || properties(out, v.property->metas, v.property->n, GREMLIN_PROPERTY));
}

/* A subgraph as a map of two lists: drivers have no class for TinkerGraph. */
static bool subgraph(buf *out, const gremlin_subgraph *g) {
    code(out, CODE_MAP);
    buf_add_be32(out, 2);
    (void)gremlin__binary_write(out, gremlin_string(SLICE_LIT("vertices")));
    code(out, CODE_LIST);
    bool done = values(out, g->vertices.at, g->vertices.n);
    (void)gremlin__binary_write(out, gremlin_string(SLICE_LIT("edges")));
    code(out, CODE_LIST);
    return done && values(out, g->edges.at, g->edges.n);
}

/* ---- the rest ---- */

static bool member(buf *out, gremlin_value v) {
    static const unsigned codes[GREMLIN_ENUMS] = {[GREMLIN_T] = CODE_T,
                                                  [GREMLIN_DIRECTION] = CODE_DIRECTION,
                                                  [GREMLIN_ORDER] = CODE_ORDER,
                                                  [GREMLIN_SCOPE] = CODE_SCOPE,
                                                  [GREMLIN_POP] = CODE_POP,
                                                  [GREMLIN_COLUMN] = CODE_COLUMN,
                                                  [GREMLIN_CARDINALITY] = CODE_CARDINALITY,
                                                  [GREMLIN_OPERATOR] = CODE_OPERATOR,
                                                  [GREMLIN_MERGE] = CODE_MERGE,
                                                  [GREMLIN_BARRIER] = CODE_BARRIER,
                                                  [GREMLIN_PICK] = CODE_PICK,
                                                  [GREMLIN_DT] = CODE_DT};
    code(out, codes[v.family]);
    return gremlin__binary_write(out, gremlin_string(slice_str(gremlin_member_name((gremlin_enum)v.family, v.n))));
}

static bool predicate(buf *out, const gremlin_predicate *p) {
    bool text = p->kind >= P_STARTING_WITH && p->kind <= P_NOT_REGEX;
    gremlin_value both[2] = {{.type = GREMLIN_P, .predicate = p->left}, {.type = GREMLIN_P, .predicate = p->right}};
    code(out, text ? CODE_TEXTP : CODE_P);
    gremlin__binary_add_text(out, slice_str(gremlin_p_name(p->kind)));
    return p->left ? values(out, both, p->right ? 2 : 1) : values(out, p->values, p->n);
}

static bool traverser(buf *out, const gremlin_traverser *t) {
    code(out, CODE_TRAVERSER);
    buf_add_be64(out, (uint64_t)t->bulk);
    return gremlin__binary_write(out, t->value);
}

bool gremlin__binary_write(buf *out, gremlin_value v) {
    if (v.type <= GREMLIN_BINARY) {
        return scalar(out, v);
    }
    switch (v.type) {
    case GREMLIN_LIST:
    case GREMLIN_SET:
    case GREMLIN_BULKSET:
        return list(out, v);
    case GREMLIN_MAP:
        code(out, CODE_MAP);
        return map(out, v.map);
    case GREMLIN_TREE:
        code(out, CODE_TREE);
        return tree(out, v.map);
    case GREMLIN_PATH:
        return path(out, v.path);
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        return element(out, v.element);
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
        return property(out, v);
    case GREMLIN_SUBGRAPH:
        return subgraph(out, v.subgraph);
    case GREMLIN_ENUM:
        return member(out, v);
    case GREMLIN_P:
        return predicate(out, v.predicate);
    case GREMLIN_TRAVERSER:
        return traverser(out, v.traverser);
    default:
        return false;
    }
}
