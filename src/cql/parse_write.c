/* parse_write.c — terms and relations as text. */
#include "cql/parse.h"

static void write_items(buf *out, const cql_term *t, const char *separator) {
    for (uint32_t i = 0; i < t->n; i++) {
        buf_add_slice(out, i ? slice_str(separator) : SLICE_EMPTY);
        cql_term_write(out, t->items[i]);
    }
}

static void write_string(buf *out, slice text) {
    buf_add_byte(out, '\'');
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\'') {
            buf_add_byte(out, '\'');
        }
        buf_add_byte(out, text.p[i]);
    }
    buf_add_byte(out, '\'');
}

static void write_pairs(buf *out, const cql_term *t) {
    uint32_t step = t->kind == CQL_TERM_MAP ? 2 : 1;
    buf_add_byte(out, '{');
    for (uint32_t i = 0; i < t->n; i += step) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        if (t->kind == CQL_TERM_MAP) {
            cql_term_write(out, t->items[i]);
        } else {
            cql_name_write(out, t->names[i]);
        }
        buf_add_lit(out, ": ");
        cql_term_write(out, t->items[i + step - 1]);
    }
    buf_add_byte(out, '}');
}

static void write_operand(buf *out, const cql_term *t) {
    bool operation = t->kind >= CQL_TERM_NEGATE && t->kind <= CQL_TERM_MODULO;
    buf_add_slice(out, operation ? SLICE_LIT("(") : SLICE_EMPTY);
    cql_term_write(out, t);
    buf_add_slice(out, operation ? SLICE_LIT(")") : SLICE_EMPTY);
}

static void write_operation(buf *out, const cql_term *t) {
    static const char *const symbols[] = {" + ", " - ", " * ", " / ", " % "};
    if (t->kind == CQL_TERM_NEGATE) {
        buf_add_byte(out, '-');
        write_operand(out, t->items[0]);
        return;
    }
    write_operand(out, t->items[0]);
    buf_add_slice(out, slice_str(symbols[t->kind - CQL_TERM_ADD]));
    write_operand(out, t->items[1]);
}

static void write_function(buf *out, const cql_term *t) {
    if (t->keyspace.n) {
        cql_name_write(out, t->keyspace);
        buf_add_byte(out, '.');
    }
    if (slice_eq(t->name, SLICE_LIT("token"))) {
        buf_add_slice(out, t->name);
    } else {
        cql_name_write(out, t->name);
    }
    buf_add_byte(out, '(');
    buf_add_slice(out, t->star ? SLICE_LIT("*") : SLICE_EMPTY);
    write_items(out, t, ", ");
    buf_add_byte(out, ')');
}

static void write_wrapped(buf *out, const char *before, const cql_term *t, const char *after) {
    buf_add_slice(out, slice_str(before));
    write_items(out, t, ", ");
    buf_add_slice(out, slice_str(after));
}

static void write_typed(buf *out, const cql_term *t) {
    if (t->kind == CQL_TERM_CAST) {
        write_wrapped(out, "cast(", t, " as ");
        cql_type_write(out, t->type);
        buf_add_byte(out, ')');
        return;
    }
    buf_add_byte(out, '(');
    cql_type_write(out, t->type);
    buf_add_lit(out, ") ");
    cql_term_write(out, t->items[0]);
}

static void write_selected(buf *out, const cql_term *t) {
    cql_term_write(out, t->items[0]);
    if (t->kind == CQL_TERM_FIELD) {
        buf_add_byte(out, '.');
        cql_name_write(out, t->name);
        return;
    }
    buf_add_byte(out, '[');
    if (t->items[1]) {
        cql_term_write(out, t->items[1]);
    }
    if (t->kind == CQL_TERM_SLICE) {
        buf_add_lit(out, "..");
        if (t->items[2]) {
            cql_term_write(out, t->items[2]);
        }
    }
    buf_add_byte(out, ']');
}

static void write_constant(buf *out, const cql_term *t) {
    switch (t->kind) {
    case CQL_TERM_STRING:
        write_string(out, t->text);
        break;
    case CQL_TERM_HEX:
        buf_addf(out, "0x%.*s", (int)t->text.n, t->text.p);
        break;
    case CQL_TERM_NULL:
        buf_add_lit(out, "null");
        break;
    case CQL_TERM_BIND:
        buf_add_byte(out, '?');
        break;
    case CQL_TERM_COLUMN:
        cql_name_write(out, t->name);
        break;
    default:
        buf_add_slice(out, t->text);
    }
}

void cql_term_write(buf *out, const cql_term *t) {
    switch (t->kind) {
    case CQL_TERM_LIST:
        write_wrapped(out, "[", t, "]");
        break;
    case CQL_TERM_SET:
        write_wrapped(out, "{", t, "}");
        break;
    case CQL_TERM_TUPLE:
        write_wrapped(out, "(", t, ")");
        break;
    case CQL_TERM_MAP:
    case CQL_TERM_UDT:
        write_pairs(out, t);
        break;
    case CQL_TERM_FUNCTION:
        write_function(out, t);
        break;
    case CQL_TERM_HINT:
    case CQL_TERM_CAST:
        write_typed(out, t);
        break;
    case CQL_TERM_FIELD:
    case CQL_TERM_ELEMENT:
    case CQL_TERM_SLICE:
        write_selected(out, t);
        break;
    case CQL_TERM_WRITETIME:
        write_wrapped(out, "writetime(", t, ")");
        break;
    case CQL_TERM_MAXWRITETIME:
        write_wrapped(out, "maxwritetime(", t, ")");
        break;
    case CQL_TERM_TTL:
        write_wrapped(out, "ttl(", t, ")");
        break;
    default:
        if (t->kind >= CQL_TERM_NEGATE && t->kind <= CQL_TERM_MODULO) {
            write_operation(out, t);
        } else {
            write_constant(out, t);
        }
    }
}

/* Cassandra names the column of a native function with its keyspace, but for count(*). */
void cql_term_name(buf *out, const cql_term *t) {
    if (t->kind == CQL_TERM_COLUMN) {
        buf_add_slice(out, t->name);
    } else if (t->kind == CQL_TERM_FUNCTION && t->star) {
        buf_add_lit(out, "count");
    } else if (t->kind == CQL_TERM_FUNCTION && !t->keyspace.n) {
        buf_add_lit(out, "system.");
        buf_add_slice(out, t->name);
        buf_add_byte(out, '(');
        for (uint32_t i = 0; i < t->n; i++) {
            buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
            cql_term_name(out, t->items[i]);
        }
        buf_add_byte(out, ')');
    } else {
        cql_term_write(out, t);
    }
}

/* ---- relations ---- */

static void write_columns(buf *out, const cql_relation *r) {
    for (uint32_t i = 0; i < r->columns_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_name_write(out, r->columns[i]);
    }
}

static void write_left(buf *out, const cql_relation *r) {
    bool several = r->kind == CQL_RELATION_TUPLE || r->kind == CQL_RELATION_TOKEN;
    buf_add_slice(out, r->kind == CQL_RELATION_TOKEN ? SLICE_LIT("token") : SLICE_EMPTY);
    buf_add_slice(out, several ? SLICE_LIT("(") : SLICE_EMPTY);
    write_columns(out, r);
    buf_add_slice(out, several ? SLICE_LIT(")") : SLICE_EMPTY);
    if (r->kind == CQL_RELATION_FUNCTION) {
        buf_add_lit(out, "()");
    } else if (r->kind == CQL_RELATION_ELEMENT) {
        buf_add_byte(out, '[');
        cql_term_write(out, r->key);
        buf_add_byte(out, ']');
    } else if (r->kind == CQL_RELATION_FIELD) {
        buf_add_byte(out, '.');
        cql_name_write(out, r->field);
    }
}

void cql_relation_write(buf *out, const cql_relation *r) {
    write_left(out, r);
    buf_addf(out, " %s ", cql_operator_text(r->op));
    if (r->op == CQL_IS_NOT_NULL) {
        buf_add_lit(out, "null");
    } else if (r->value) {
        cql_term_write(out, r->value);
    } else {
        buf_add_byte(out, '(');
        for (uint32_t i = 0; i < r->in_n; i++) {
            buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
            cql_term_write(out, r->in[i]);
        }
        buf_add_byte(out, ')');
    }
}
