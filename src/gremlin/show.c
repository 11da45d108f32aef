/* show.c — values as text, the way Java's toString() shows them; traversals as text, for explain(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/number.h"
#include "gremlin/build_int.h"
#include "text/text.h"

/* The shortest text that reads back as the same number: 0.1, 5e-324. Returns its length. */
static size_t shortest(gremlin_value v, char room[NUMBER_TEXT_MAX]) {
    double d = v.d;
    char text[64];
    for (int digits = 1; v.type == GREMLIN_FLOAT && digits < 10; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v.d);
        d = strtod(text, NULL);
        if (strtof(text, NULL) == (float)v.d) {
            break;
        }
    }
    return number_write_double(room, d);
}

static bool has_any(slice s, const char *characters) {
    for (size_t i = 0; i < s.n; i++) {
        if (strchr(characters, s.p[i])) {
            return true;
        }
    }
    return false;
}

void gremlin__show_finite(buf *out, gremlin_value v) {
    char room[NUMBER_TEXT_MAX];
    slice text = slice_of(room, shortest(v, room));
    buf_add_slice(out, v.d == 0 && signbit(v.d) ? SLICE_LIT("-") : SLICE_EMPTY);
    buf_add_slice(out, text);
    buf_add_slice(out, has_any(text, ".e") ? SLICE_EMPTY : SLICE_LIT(".0"));
}

/* 1.25E10: the digits of the shortest text, with the point behind the first of them. */
static void show_exponent(buf *out, slice text) {
    char digits[NUMBER_TEXT_MAX + 1];
    size_t n = 0;
    int64_t exponent = 0;
    int point = -1, before = 0; /* digits before the point */
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == 'e') {
            slice rest = slice_skip(text, i + 1);
            (void)slice_to_i64(rest.n && rest.p[0] == '+' ? slice_skip(rest, 1) : rest, &exponent);
            break;
        }
        if (c == '.') {
            point = before;
        } else if (c != '-' && (n || c != '0')) {
            digits[n++] = c;
        }
        before += c >= '0' && c <= '9';
        exponent -= point >= 0 && n == 0 && c != '.'; /* zeros behind the point */
    }
    int64_t leading = point < 0 ? before : point;
    exponent += text.p[text.p[0] == '-'] == '0' ? -1 : leading - 1;
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    buf_addf(out, "%s%c.", text.p[0] == '-' ? "-" : "", n ? digits[0] : '0');
    buf_add(out, n > 1 ? digits + 1 : "0", n > 1 ? n - 1 : 1);
    buf_addf(out, "E%lld", (long long)exponent);
}

static void show_double(buf *out, gremlin_value v) {
    char room[NUMBER_TEXT_MAX];
    double size = fabs(v.d);
    if (!isfinite(v.d)) {
        buf_addf(out, "%s", isnan(v.d) ? "NaN" : v.d < 0 ? "-Infinity" : "Infinity");
    } else if (v.d != 0 && (size < 1e-3 || size >= 1e7)) { /* Java writes these with an exponent */
        show_exponent(out, slice_of(room, shortest(v, room)));
    } else {
        gremlin__show_finite(out, v);
    }
}

static void show_wide(buf *out, gremlin_value v) {
    char room[64];
    size_t n = v.type == GREMLIN_DECIMAL ? gremlin_decimal_write(*v.wide, room) : gremlin_big_write(gremlin_as_big(v), room);
    buf_add(out, room, n);
}

static void show_uuid(buf *out, const uint8_t *u) {
    for (int i = 0; i < 16; i++) {
        buf_addf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
    }
}

static void show_date(buf *out, int64_t ms) {
    int64_t days = (ms - (ms < 0 ? 86399999 : 0)) / 86400000, rest = ms - days * 86400000;
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100), part = (5 * of_year + 2) / 153;
    int64_t month = part < 10 ? part + 3 : part - 9, year = year_of_era + era * 400 + (month <= 2);
    buf_addf(out, "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld", (long long)year, (long long)month,
             (long long)(of_year - (153 * part + 2) / 5 + 1), (long long)(rest / 3600000), (long long)(rest / 60000 % 60),
             (long long)(rest / 1000 % 60));
    if (rest % 1000) {
        buf_addf(out, ".%03lld", (long long)(rest % 1000));
    }
    buf_add_lit(out, "Z");
}

static void show_items(buf *out, const gremlin_value *at, size_t n, const char *open, const char *close) {
    buf_add_slice(out, slice_str(open));
    for (size_t i = 0; i < n && buf_ok(out); i++) {
        if (i) {
            buf_add_lit(out, ", ");
        }
        gremlin_show(out, at[i]);
    }
    buf_add_slice(out, slice_str(close));
}

static void show_bulkset(buf *out, const gremlin_list *list) {
    buf_add_lit(out, "{");
    for (size_t i = 0; i < list->n && buf_ok(out); i++) {
        if (i) {
            buf_add_lit(out, ", ");
        }
        gremlin_show(out, list->at[i]);
        buf_addf(out, "=%lld", (long long)(list->bulk ? list->bulk[i] : 1));
    }
    buf_add_lit(out, "}");
}

static void show_map(buf *out, const gremlin_map *map) {
    buf_add_slice(out, map->is_entry ? SLICE_EMPTY : SLICE_LIT("{"));
    for (size_t i = 0; i < map->n && buf_ok(out); i++) {
        if (i) {
            buf_add_lit(out, ", ");
        }
        gremlin_show(out, map->at[i].key);
        buf_add_lit(out, "=");
        gremlin_show(out, map->at[i].value);
    }
    buf_add_slice(out, map->is_entry ? SLICE_EMPTY : SLICE_LIT("}"));
}

static void show_element(buf *out, const gremlin_element *e) {
    buf_add_slice(out, e->is_edge ? SLICE_LIT("e[") : SLICE_LIT("v["));
    gremlin_show(out, e->id);
    buf_add_lit(out, "]");
    if (e->is_edge) {
        buf_add_lit(out, "[");
        gremlin_show(out, e->out->id);
        buf_add_lit(out, "-");
        buf_add_slice(out, e->label);
        buf_add_lit(out, "->");
        gremlin_show(out, e->in->id);
        buf_add_lit(out, "]");
    }
}

static void show_property(buf *out, gremlin_value v) {
    buf_add_slice(out, v.type == GREMLIN_VERTEX_PROPERTY ? SLICE_LIT("vp[") : SLICE_LIT("p["));
    buf_add_slice(out, v.property->key);
    buf_add_lit(out, "->");
    gremlin_show(out, v.property->value);
    buf_add_lit(out, "]");
}

static void show_predicate(buf *out, const gremlin_predicate *p) {
    if (p->left) {
        buf_addf(out, "%s(", gremlin_p_name(p->kind));
        show_predicate(out, p->left);
        if (p->right) {
            buf_add_lit(out, ", ");
            show_predicate(out, p->right);
        }
        buf_add_lit(out, ")");
        return;
    }
    buf_add_slice(out, slice_str(gremlin_p_name(p->kind)));
    show_items(out, p->values, p->n, "(", ")");
}

static void show_character(buf *out, int64_t c) {
    char room[4];
    buf_add(out, room, text_encode(room, (uint32_t)c));
}

static void show_plain(buf *out, gremlin_value v) {
    switch (v.type) {
    case GREMLIN_NULL:
        buf_add_lit(out, "null");
        return;
    case GREMLIN_BOOLEAN:
        buf_addf(out, "%s", v.b ? "true" : "false");
        return;
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        show_double(out, v);
        return;
    case GREMLIN_BIGINT:
    case GREMLIN_DECIMAL:
        show_wide(out, v);
        return;
    case GREMLIN_CHAR:
        show_character(out, v.i);
        return;
    case GREMLIN_STRING:
        buf_add_slice(out, gremlin_text(v));
        return;
    case GREMLIN_UUID:
        show_uuid(out, v.uuid);
        return;
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
        show_date(out, v.i);
        return;
    case GREMLIN_DURATION:
        buf_addf(out, "PT%lld.%09dS", (long long)v.duration->seconds, v.duration->nanos);
        return;
    case GREMLIN_BINARY:
        buf_addf(out, "ByteBuffer[%u]", v.n);
        return;
    default:
        buf_add_i64(out, v.i);
    }
}

void gremlin_show(buf *out, gremlin_value v) {
    if (v.type <= GREMLIN_BINARY) {
        show_plain(out, v);
        return;
    }
    switch (v.type) {
    case GREMLIN_LIST:
    case GREMLIN_SET:
        show_items(out, v.list->at, v.list->n, "[", "]");
        return;
    case GREMLIN_BULKSET:
        show_bulkset(out, v.list);
        return;
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        show_map(out, v.map);
        return;
    case GREMLIN_PATH:
        show_items(out, v.path->objects, v.path->n, "path[", "]");
        return;
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        show_element(out, v.element);
        return;
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
        show_property(out, v);
        return;
    case GREMLIN_SUBGRAPH:
        buf_addf(out, "graph[vertices:%zu edges:%zu]", v.subgraph->vertices.n, v.subgraph->edges.n);
        return;
    case GREMLIN_ENUM:
        buf_addf(out, "%s", gremlin_member_name((gremlin_enum)v.family, v.n));
        return;
    case GREMLIN_P:
        show_predicate(out, v.predicate);
        return;
    case GREMLIN_TRAVERSAL:
        gremlin_show_traversal(out, v.traversal);
        return;
    case GREMLIN_TRAVERSER:
        gremlin_show(out, v.traverser->value);
        return;
    default:
        buf_add_slice(out, v.strategy->name);
    }
}

/* ---- traversals ---- */

static void show_conditions(buf *out, const gremlin_step *s) {
    for (size_t i = 0; i < s->condition_n; i++) {
        const gremlin_condition *c = &s->conditions[i];
        buf_addf(out, "%s%s", i ? ", " : "", c->absent ? "!" : "");
        buf_add_slice(out, c->kind == HAS_TOKEN ? slice_str(gremlin_member_name(GREMLIN_T, c->token)) : c->key);
        if (c->predicate) {
            buf_add_lit(out, ".");
            show_predicate(out, c->predicate);
        }
    }
}

static void show_labels(buf *out, gremlin_labels labels) {
    for (size_t i = 0; i < labels.n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_LIT("@["));
        buf_add_slice(out, labels.at[i]);
    }
    buf_add_slice(out, labels.n ? SLICE_LIT("]") : SLICE_EMPTY);
}

static void show_step(buf *out, const gremlin_step *s) {
    buf_addf(out, "%s(", gremlin_op_name(s->op));
    for (size_t i = 0; i < s->n && buf_ok(out); i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        gremlin_show(out, s->args[i]);
    }
    buf_add_lit(out, ")");
    if (s->condition_n && s->op != GREMLIN_HAS_STEP) {
        buf_add_lit(out, "[");
        show_conditions(out, s);
        buf_add_lit(out, "]");
    }
    for (size_t i = 0; i < s->by_n; i++) {
        buf_add_lit(out, ".by(");
        if (s->bys[i].traversal) {
            gremlin_show_traversal(out, s->bys[i].traversal);
        } else {
            buf_add_slice(out, s->bys[i].key);
        }
        buf_add_lit(out, ")");
    }
    show_labels(out, s->labels);
}

void gremlin_show_traversal(buf *out, const gremlin_traversal *t) {
    buf_add_lit(out, "[");
    for (size_t i = 0; i < t->n && buf_ok(out); i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        show_step(out, &t->steps[i]);
    }
    buf_add_lit(out, "]");
}
