/* type_wire.c — types as [option]s of the native protocol. */
#include "cql/type.h"
#include "cql/type_int.h"

static void add_short(buf *out, size_t n) {
    buf_add_byte(out, (char)(n >> 8));
    buf_add_byte(out, (char)n);
}

static void add_string(buf *out, slice text) {
    size_t n = text.n < 65535 ? text.n : 65535;
    add_short(out, n);
    buf_add(out, text.p, n);
}

static void encode_custom(buf *out, const cql_type *type) {
    buf name = buf_init(65535);
    cql_type_write_class(&name, type);
    add_short(out, CQL_CUSTOM);
    add_string(out, buf_view(&name));
    buf_free(&name);
}

static bool version_has(cql_kind kind, unsigned version) {
    switch (kind) {
    case CQL_DATE:
    case CQL_TIME:
    case CQL_SMALLINT:
    case CQL_TINYINT:
        return version >= 4;
    case CQL_DURATION:
        return version >= 5;
    default:
        return kind != CQL_CUSTOM && kind < CQL_VECTOR;
    }
}

void cql_type_encode(buf *out, const cql_type *type, unsigned version) {
    if (!version_has(type->kind, version)) {
        encode_custom(out, type);
        return;
    }
    add_short(out, type->kind);
    if (type->kind == CQL_UDT) {
        add_string(out, type->keyspace);
        add_string(out, type->name);
    }
    if (type->kind == CQL_UDT || type->kind == CQL_TUPLE) {
        add_short(out, type->n);
    }
    for (uint32_t i = 0; i < type->n; i++) {
        if (type->kind == CQL_UDT) {
            add_string(out, type->fields ? type->fields[i] : SLICE_EMPTY);
        }
        cql_type_encode(out, type->inner[i], version);
    }
}

/* ---- decoding ---- */

static bool take_short(slice *rest, uint32_t *n_out) {
    uint64_t n;
    bool ok = slice_take_be(rest, 2, &n);
    *n_out = ok ? (uint32_t)n : 0;
    return ok;
}

static bool take_string(slice *rest, slice *text_out) {
    uint32_t n;
    if (!take_short(rest, &n) || n > rest->n) {
        return false;
    }
    *text_out = slice_of(rest->p, n);
    *rest = slice_skip(*rest, n);
    return true;
}

static bool decode(op *o, slice *rest, unsigned depth, const cql_type **type_out);

static bool decode_inner(op *o, slice *rest, unsigned depth, cql_type *t) {
    if (t->n > CQL_TYPE_INNER_MAX || t->n * (size_t)2 > rest->n || !arena_fits(o->arena, t->n * (sizeof(slice) + sizeof(void *)))) {
        return false;
    }
    const cql_type **inner = arena_array(o->arena, const cql_type *, t->n ? t->n : 1);
    slice *fields = t->kind == CQL_UDT ? arena_array(o->arena, slice, t->n ? t->n : 1) : NULL;
    for (uint32_t i = 0; i < t->n; i++) {
        if ((fields && !take_string(rest, &fields[i])) || !decode(o, rest, depth + 1, &inner[i])) {
            return false;
        }
    }
    t->inner = inner;
    t->fields = fields;
    return true;
}

static bool decode_custom(op *o, slice *rest, const cql_type **type_out) {
    slice name;
    *type_out = take_string(rest, &name) ? cql_type_by_class(o->arena, name) : NULL;
    return *type_out != NULL;
}

static bool decode(op *o, slice *rest, unsigned depth, const cql_type **type_out) {
    uint32_t id;
    if (depth >= CQL_TYPE_DEPTH || !take_short(rest, &id)) {
        return false;
    }
    if (id == CQL_CUSTOM) {
        return decode_custom(o, rest, type_out);
    }
    *type_out = id < CQL_VECTOR ? cql_type_of((cql_kind)id) : NULL;
    if (*type_out) {
        return true;
    }
    cql_type *t = arena_new(o->arena, cql_type);
    *type_out = t;
    t->kind = (cql_kind)id;
    t->frozen = id == CQL_TUPLE;
    t->n = id == CQL_MAP ? 2 : 1;
    if (id == CQL_UDT && (!take_string(rest, &t->keyspace) || !take_string(rest, &t->name))) {
        return false;
    }
    if (id == CQL_UDT || id == CQL_TUPLE) {
        if (!take_short(rest, &t->n) || !decode_inner(o, rest, depth, t)) {
            return false;
        }
        *type_out = id == CQL_TUPLE ? cql_type_freeze(o->arena, t) : t; /* what a tuple holds is frozen; the protocol does not say it */
        return true;
    }
    return (id == CQL_LIST || id == CQL_SET || id == CQL_MAP) && decode_inner(o, rest, depth, t);
}

err cql_type_decode(op *o, slice *rest, const cql_type **type_out) {
    return decode(o, rest, 0, type_out) ? OK : op_fail(o, E_BAD_REQUEST, "Malformed type in a message");
}
