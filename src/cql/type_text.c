/* type_text.c — types as CQL prints them. Reading is the parser's (parse_type.c). */
#include "cql/lexer.h"
#include "cql/type.h"
#include "cql/type_int.h"

static bool is_plain_name(slice name) {
    if (name.n == 0 || name.p[0] < 'a' || name.p[0] > 'z') {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return !cql_is_reserved(name);
}

void cql_name_write(buf *out, slice name) {
    if (is_plain_name(name)) {
        buf_add_slice(out, name);
        return;
    }
    buf_add_byte(out, '"');
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '"') {
            buf_add_byte(out, '"');
        }
        buf_add_byte(out, name.p[i]);
    }
    buf_add_byte(out, '"');
}

static const char *constructor(cql_kind kind) {
    switch (kind) {
    case CQL_LIST:
        return "list";
    case CQL_SET:
        return "set";
    case CQL_MAP:
        return "map";
    case CQL_VECTOR:
        return "vector";
    default:
        return "tuple";
    }
}

static void write_inner(buf *out, const cql_type *type) {
    buf_addf(out, "%s<", constructor(type->kind));
    for (uint32_t i = 0; i < type->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_type_write(out, type->inner[i]);
    }
    if (type->kind == CQL_VECTOR) {
        buf_addf(out, ", %u", type->dimension);
    }
    buf_add_byte(out, '>');
}

void cql_type_write(buf *out, const cql_type *type) {
    const cql__native *native = cql__native_of(type->kind);
    bool frozen = type->kind == CQL_TUPLE || (type->frozen && type->kind != CQL_VECTOR);
    if (native) {
        buf_add_slice(out, slice_str(native->name));
    } else if (type->kind == CQL_CUSTOM) {
        buf_addf(out, "'%.*s'", (int)type->name.n, type->name.p);
    } else {
        buf_add_slice(out, frozen ? SLICE_LIT("frozen<") : SLICE_EMPTY);
        if (type->kind == CQL_UDT) {
            cql_name_write(out, type->name);
        } else {
            write_inner(out, type);
        }
        buf_add_slice(out, frozen ? SLICE_LIT(">") : SLICE_EMPTY);
    }
}

slice cql_type_text(arena *a, const cql_type *type) {
    buf out = buf_init(64 * 1024);
    cql_type_write(&out, type);
    slice text = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return text;
}
