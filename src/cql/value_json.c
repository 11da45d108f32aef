/* value_json.c — values as Cassandra's JSON.
 *
 *   numbers         numbers; NaN and the infinities are null
 *   texts, uuid, inet, date, time, timestamp, duration, blob   strings; a blob as "0x…", a timestamp as "2024-02-29 12:34:56.789Z"
 *   list, set, tuple, vector    arrays
 *   map             object; a key that is no string is the JSON of the key, in quotes
 *   user type       object, all fields in order; names with capitals have double quotes inside: "\"Name\""
 */
#include <math.h>
#include <stdio.h>

#include "cql/big.h"
#include "cql/value_int.h"
#include "doc/json.h"

/* ---- writing ---- */

static void write_string(buf *out, slice text) {
    buf_add_byte(out, '"');
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        static const char escapes[] = "btn\0fr";
        if (c == '"' || c == '\\') {
            buf_add_byte(out, '\\');
            buf_add_byte(out, (char)c);
        } else if (c >= 8 && c <= 13 && c != 11) {
            buf_add_byte(out, '\\');
            buf_add_byte(out, escapes[c - 8]);
        } else if (c < 0x20) {
            buf_addf(out, "\\u%04x", c);
        } else {
            buf_add_byte(out, (char)c);
        }
    }
    buf_add_byte(out, '"');
}

static void write_key(buf *out, const cql_type *type, cql_value key) {
    buf text = buf_init_counted(out->max, out->budget);
    cql_json_write(&text, type, key);
    out->overflow |= text.overflow;
    if (text.n && text.p[0] == '"') {
        buf_add_slice(out, buf_view(&text));
    } else {
        write_string(out, buf_view(&text));
    }
    buf_free(&text);
}

static bool has_capitals(slice name) {
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] >= 'A' && name.p[i] <= 'Z') {
            return true;
        }
    }
    return false;
}

static void write_field(buf *out, slice name) {
    if (!has_capitals(name)) {
        write_string(out, name);
        return;
    }
    buf_add_lit(out, "\"\\\"");
    buf_add_slice(out, name);
    buf_add_lit(out, "\\\"\"");
}

static void write_object(buf *out, const cql_type *type, cql_value v) {
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    uint32_t i = 0;
    buf_add_byte(out, '{');
    for (bool more = cql_elements_init(&e, type, v); more && cql_elements_next(&e, &element, &inner); i++) {
        bool key = type->kind == CQL_MAP && i % 2 == 0;
        buf_add_slice(out, i && (key || type->kind == CQL_UDT) ? SLICE_LIT(", ") : SLICE_EMPTY);
        if (key) {
            write_key(out, inner, element);
            buf_add_lit(out, ": ");
            continue;
        }
        if (type->kind == CQL_UDT) {
            write_field(out, type->fields ? type->fields[i] : SLICE_EMPTY);
            buf_add_lit(out, ": ");
        }
        cql_json_write(out, inner, element);
    }
    for (; type->kind == CQL_UDT && i < type->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        write_field(out, type->fields ? type->fields[i] : SLICE_EMPTY);
        buf_add_lit(out, ": null");
    }
    buf_add_byte(out, '}');
}

static void write_array(buf *out, const cql_type *type, cql_value v) {
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    uint32_t i = 0;
    buf_add_byte(out, '[');
    for (bool more = cql_elements_init(&e, type, v); more && cql_elements_next(&e, &element, &inner); i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_json_write(out, inner, element);
    }
    buf_add_byte(out, ']');
}

static void write_quoted(buf *out, const cql_type *type, cql_value v) {
    int64_t ms = 0;
    buf_add_byte(out, '"');
    if (type->kind == CQL_TIMESTAMP && cql_as_bigint(v, &ms)) {
        cql__write_timestamp(out, ms, ' ');
    } else if ((type->kind == CQL_BLOB || type->kind == CQL_CUSTOM) && v.bytes.n == 0) {
        buf_add_lit(out, "0x");
    } else {
        cql_value_write_bare(out, type, v);
    }
    buf_add_byte(out, '"');
}

static void write_number(buf *out, const cql_type *type, cql_value v) {
    double number = 0;
    if (v.bytes.n == 0) {
        buf_add_lit(out, "\"\"");
    } else if ((type->kind == CQL_FLOAT || type->kind == CQL_DOUBLE) && cql_as_double(v, &number) && !isfinite(number)) {
        buf_add_lit(out, "null");
    } else {
        cql_value_write_bare(out, type, v);
    }
}

void cql_json_write(buf *out, const cql_type *type, cql_value v) {
    if (cql_value_is_null(v)) {
        buf_add_lit(out, "null");
    } else if (type->kind == CQL_ASCII || type->kind == CQL_TEXT) {
        write_string(out, v.bytes);
    } else if (cql_type_is_number(type) || type->kind == CQL_BOOLEAN) {
        write_number(out, type, v);
    } else if (type->kind == CQL_MAP || type->kind == CQL_UDT) {
        write_object(out, type, v);
    } else if (type->n) {
        write_array(out, type, v);
    } else {
        write_quoted(out, type, v);
    }
}

/* ---- reading ----
 *
 * BSON has no numbers of any size, so those that are not 64-bit integers pass through it as text: {"\0n": "1.50"}. */

static const char exact_key[] = "\xC0\x80n"; /* as doc/json.h stores a zero byte in a key */

static bool is_exact_number(const doc_element *e, slice *digits_out) {
    doc_walk w;
    doc_element inner;
    if (e->type != BSON_TYPE_DOCUMENT || !doc_walk_init(&w, e->value) || !doc_walk_next(&w, &inner) || inner.type != BSON_TYPE_UTF8 ||
        !slice_eq(inner.key, slice_str(exact_key))) {
        return false;
    }
    *digits_out = doc_element_text(&inner);
    return true;
}

/* The length of the number at `p`: sign, digits, point, exponent, in any order that the BSON reader or the type refuses later. */
static size_t number_length(const char *p, const char *end, bool *exact_out) {
    size_t n = 0;
    *exact_out = false;
    while (p + n < end && strchr("0123456789+-.eE", p[n]) && p[n]) {
        *exact_out |= n && !(p[n] >= '0' && p[n] <= '9');
        n++;
    }
    *exact_out |= n > 18;
    return n;
}

/* By JSON's grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static bool is_json_number(slice s) {
    size_t i = s.n && s.p[0] == '-', digits = 0, from = i;
    for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
    }
    if (i == from || (s.p[from] == '0' && i > from + 1)) {
        return false;
    }
    if (i < s.n && s.p[i] == '.') {
        for (i++, digits = i; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
        }
        if (i == digits) {
            return false;
        }
    }
    if (i < s.n && (s.p[i] | 0x20) == 'e') {
        i += 1 + (i + 1 < s.n && (s.p[i + 1] == '+' || s.p[i + 1] == '-'));
        for (digits = i; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
        }
        if (i == digits) {
            return false;
        }
    }
    return i == s.n;
}

static const char *add_number(buf *out, const char *p, const char *end) {
    bool exact;
    size_t n = number_length(p, end, &exact);
    if (exact && is_json_number(slice_of(p, n))) {
        buf_add_lit(out, "{\"\\u0000n\":\"");
        buf_add(out, p, n);
        buf_add_lit(out, "\"}");
    } else {
        buf_add(out, p, n);
    }
    return p + n;
}

/* Copies JSON, with numbers that BSON cannot hold as objects. */
static void keep_numbers(buf *out, slice json) {
    const char *p = json.p, *end = json.p + json.n;
    bool string = false;
    while (p < end) {
        if (!string && ((*p >= '0' && *p <= '9') || *p == '-')) {
            p = add_number(out, p, end);
            continue;
        }
        if (string && *p == '\\' && p + 1 < end) {
            buf_add_byte(out, *p++);
        } else if (*p == '"') {
            string = !string;
        }
        buf_add_byte(out, *p++);
    }
}

/* The value as JSON in an error. */
static err fail_shown(op *o, const char *message, const doc_element *e) {
    buf text = buf_init(400);
    if (e->type == BSON_TYPE_UTF8) {
        slice s = doc_element_text(e);
        buf_add(&text, s.p, (size_t)slice_shown(s));
    } else if (e->type == BSON_TYPE_INT32 || e->type == BSON_TYPE_INT64) {
        buf_add_i64(&text, e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p) : doc_load_i64(e->value.p));
    } else if (e->type == BSON_TYPE_DOUBLE) {
        cql__write_double(&text, doc_load_double(e->value.p));
    } else if (e->type == BSON_TYPE_BOOL) {
        buf_add_slice(&text, e->value.p[0] ? SLICE_LIT("true") : SLICE_LIT("false"));
    } else {
        buf_add_slice(&text, e->type == BSON_TYPE_ARRAY ? SLICE_LIT("a list") : SLICE_LIT("a map"));
    }
    err code = op_fail(o, E_BAD_REQUEST, "%s: %.*s", message, (int)text.n, text.p);
    buf_free(&text);
    return code;
}

/* A JSON number as text, for the types that are read from text. */
static slice number_text(op *o, const doc_element *e) {
    buf text = buf_init(64);
    slice digits;
    if (is_exact_number(e, &digits)) {
        return digits;
    }
    if (e->type == BSON_TYPE_DOUBLE) {
        cql__write_double(&text, doc_load_double(e->value.p));
    } else {
        buf_add_i64(&text, e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p) : doc_load_i64(e->value.p));
    }
    slice copy = arena_copy(o->arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

static err read_number(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    bool integer = type->kind != CQL_FLOAT && type->kind != CQL_DOUBLE && type->kind != CQL_DECIMAL;
    slice digits;
    if (is_exact_number(e, &digits)) {
        return cql_value_of_text(o, type, digits, value_out);
    }
    if (e->type == BSON_TYPE_UTF8) {
        return cql_value_of_text(o, type, doc_element_text(e), value_out);
    }
    if (!doc_is_number(e->type) || (integer && e->type == BSON_TYPE_DOUBLE)) {
        slice name = cql_type_text(o->arena, type);
        char message[80];
        snprintf(message, sizeof message, "Expected a%s %.*s value, but got a %s", strchr("aeiou", name.p[0]) ? "n" : "", (int)name.n,
                 name.p,
                 e->type == BSON_TYPE_DOUBLE ? "Double"
                 : e->type == BSON_TYPE_BOOL ? "Boolean"
                                             : "value");
        return fail_shown(o, message, e);
    }
    return cql_value_of_text(o, type, number_text(o, e), value_out);
}

static err read_simple(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    bool numeric = type->kind == CQL_TIMESTAMP || type->kind == CQL_DATE || type->kind == CQL_TIME;
    if (cql_type_is_number(type)) {
        return read_number(o, type, e, value_out);
    }
    if (type->kind == CQL_BOOLEAN && e->type == BSON_TYPE_BOOL) {
        *value_out = cql_value_bool(e->value.p[0] != 0);
        return OK;
    }
    if (numeric && (e->type == BSON_TYPE_INT32 || e->type == BSON_TYPE_INT64)) {
        return cql_value_of_text(o, type, number_text(o, e), value_out);
    }
    if (e->type != BSON_TYPE_UTF8) {
        slice name = cql_type_text(o->arena, type);
        char message[80];
        snprintf(message, sizeof message, "Expected a string representation of a %.*s value, but got", (int)name.n, name.p);
        return fail_shown(o, message, e);
    }
    if ((type->kind == CQL_BLOB || type->kind == CQL_CUSTOM) && !slice_starts(doc_element_text(e), SLICE_LIT("0x"))) {
        return op_fail(o, E_BAD_REQUEST, "String representation of blob is missing 0x prefix: %.*s", slice_shown(doc_element_text(e)),
                       doc_element_text(e).p);
    }
    return cql_value_of_text(o, type, doc_element_text(e), value_out);
}

/* A growing list of values in the arena. */
typedef struct values {
    cql_value *items;
    uint32_t n, room;
} values;

static err add_value(op *o, values *list, cql_value v) {
    if (list->n == list->room) {
        uint32_t room = list->room ? list->room * 2 : 8;
        if (!arena_fits(o->arena, room * sizeof(cql_value))) {
            return budget_error(o->budget);
        }
        cql_value *items = arena_array(o->arena, cql_value, room);
        if (list->n) {
            memcpy(items, list->items, list->n * sizeof *items);
        }
        list->items = items;
        list->room = room;
    }
    list->items[list->n++] = v;
    return OK;
}

static err read_array(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    bool tuple = type->kind == CQL_TUPLE;
    values list = {0};
    doc_walk w;
    doc_element inner;
    if (e->type != BSON_TYPE_ARRAY) {
        return fail_shown(o, tuple ? "Expected a list representation of a tuple, but got" : "Expected a list, but got", e);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &inner);) {
        cql_value element;
        if (tuple && list.n == type->n) {
            return op_fail(o, E_BAD_REQUEST, "Tuple contains extra items (expected %u)", type->n);
        }
        if (!tuple && inner.type == BSON_TYPE_NULL) {
            return op_fail(o, E_BAD_REQUEST, "Invalid null element in %s", type->kind == CQL_SET ? "set" : "list");
        }
        TRY(cql_json_value(o, type->inner[tuple ? list.n : 0], &inner, &element));
        TRY(add_value(o, &list, element));
    }
    if (type->kind == CQL_VECTOR && list.n != type->dimension) {
        return op_fail(o, E_BAD_REQUEST, "List had %u elements, but expected %u", list.n, type->dimension);
    }
    return cql_value_collect(o->arena, type, list.items, list.n, value_out) ? OK : budget_error(o->budget);
}

/* Keys of maps are strings in JSON: what they hold is JSON again for types that are not written as strings. */
static err read_key(op *o, const cql_type *type, slice key, cql_value *value_out) {
    if (type->n) {
        return cql_json_read(o, type, key, value_out);
    }
    slice text = type->kind == CQL_BLOB && slice_starts(key, SLICE_LIT("0x")) ? slice_skip(key, 2) : key;
    return cql_value_of_text(o, type, text, value_out);
}

static err read_map(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    values list = {0};
    doc_walk w;
    doc_element inner;
    if (e->type != BSON_TYPE_DOCUMENT) {
        return fail_shown(o, "Expected a map, but got", e);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &inner);) {
        cql_value key, value;
        if (inner.type == BSON_TYPE_NULL) {
            return op_fail(o, E_BAD_REQUEST, "Invalid null value in map");
        }
        TRY(read_key(o, type->inner[0], arena_copy(o->arena, inner.key), &key));
        TRY(cql_json_value(o, type->inner[1], &inner, &value));
        TRY(add_value(o, &list, key));
        TRY(add_value(o, &list, value));
    }
    return cql_value_collect(o->arena, type, list.items, list.n, value_out) ? OK : budget_error(o->budget);
}

/* A name in JSON is folded as in CQL: "\"Name\"" is Name, "Name" is name. */
static bool names_field(slice key, slice field) {
    if (key.n >= 2 && key.p[0] == '"' && key.p[key.n - 1] == '"') {
        return slice_eq(slice_of(key.p + 1, key.n - 2), field);
    }
    return slice_eq_nocase(key, field) && !has_capitals(field);
}

static bool find_field(slice document, slice field, doc_element *element_out) {
    doc_walk w;
    for (doc_walk_init(&w, document); doc_walk_next(&w, element_out);) {
        if (names_field(element_out->key, field)) {
            return true;
        }
    }
    return false;
}

static err check_fields(op *o, const cql_type *type, slice document) {
    doc_walk w;
    doc_element inner;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &inner);) {
        bool known = false;
        for (uint32_t i = 0; i < type->n && !known; i++) {
            known = type->fields && names_field(inner.key, type->fields[i]);
        }
        if (!known) {
            return op_fail(o, E_BAD_REQUEST, "Unknown field '%.*s' in value of user defined type %.*s", slice_shown(inner.key), inner.key.p,
                           slice_shown(type->name), type->name.p);
        }
    }
    return OK;
}

static err read_udt(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    values list = {0};
    if (e->type != BSON_TYPE_DOCUMENT) {
        return fail_shown(o, "Expected a map, but got", e);
    }
    TRY(check_fields(o, type, e->value));
    for (uint32_t i = 0; i < type->n; i++) {
        cql_value field = cql_value_null();
        doc_element inner;
        if (type->fields && find_field(e->value, type->fields[i], &inner)) {
            TRY(cql_json_value(o, type->inner[i], &inner, &field));
        }
        TRY(add_value(o, &list, field));
    }
    return cql_value_collect(o->arena, type, list.items, list.n, value_out) ? OK : budget_error(o->budget);
}

static err read_value(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    if (e->type == BSON_TYPE_NULL) {
        *value_out = cql_value_null();
        return OK;
    }
    switch (type->kind) {
    case CQL_LIST:
    case CQL_SET:
    case CQL_TUPLE:
    case CQL_VECTOR:
        return read_array(o, type, e, value_out);
    case CQL_MAP:
        return read_map(o, type, e, value_out);
    case CQL_UDT:
        return read_udt(o, type, e, value_out);
    default:
        return read_simple(o, type, e, value_out);
    }
}

err cql_json_value(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    TRY(read_value(o, type, e, value_out));
    return cql_value_normalise(o, type, *value_out, value_out);
}

err cql_json_document(op *o, slice json, slice *bson_out) {
    buf text = buf_init_counted(BUF_NO_LIMIT, o->budget), bson = buf_init_counted(BUF_NO_LIMIT, o->budget);
    json_root root;
    keep_numbers(&text, json);
    bool ok = buf_ok(&text) && json_to_bson(buf_view(&text), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT &&
              arena_fits(o->arena, bson.n);
    *bson_out = ok ? arena_copy(o->arena, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&text);
    buf_free(&bson);
    if (o->budget && o->budget->exceeded) {
        return budget_error(o->budget);
    }
    return ok ? OK : op_fail(o, E_BAD_REQUEST, "Could not decode JSON string as a map: %.*s", slice_shown(json), json.p);
}

err cql_json_read(op *o, const cql_type *type, slice json, cql_value *value_out) {
    buf wrapped = buf_init_counted(json.n + 16, o->budget);
    slice document;
    doc_walk w;
    doc_element e, second;
    buf_add_lit(&wrapped, "{\"v\":");
    buf_add_slice(&wrapped, json);
    buf_add_byte(&wrapped, '}');
    err code = buf_ok(&wrapped) ? cql_json_document(o, buf_view(&wrapped), &document) : budget_error(o->budget);
    buf_free(&wrapped);
    if (code != OK || !doc_walk_init(&w, document) || !doc_walk_next(&w, &e) || doc_walk_next(&w, &second)) {
        return o->budget && o->budget->exceeded
                   ? budget_error(o->budget)
                   : op_fail(o, E_BAD_REQUEST, "Could not decode JSON string '%.*s'", slice_shown(json), json.p);
    }
    return cql_json_value(o, type, &e, value_out);
}
