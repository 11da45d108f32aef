/* type_class.c — types as Cassandra's Java class names, which the protocol has for custom types and old schemas have everywhere:
 *
 *   org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.UTF8Type,org.apache.cassandra.db.marshal.Int32Type)
 *   …FrozenType(…ListType(…)), …ReversedType(…), …TupleType(…,…), …VectorType(…FloatType , 3)
 *   …UserType(keyspace,6e616d65,6669656c64:…UTF8Type)        names in hexadecimal digits
 *
 * The package may be left out. */
#include "base/hex.h"
#include "cql/type.h"
#include "cql/type_int.h"

typedef struct class_reader {
    arena *memory;
    slice rest;
    bool bad;
} class_reader;

static const cql_type *read_class(class_reader *r, unsigned depth);

static void skip_blanks(class_reader *r) {
    while (r->rest.n && r->rest.p[0] == ' ') {
        r->rest = slice_skip(r->rest, 1);
    }
}

static bool take(class_reader *r, char c) {
    skip_blanks(r);
    if (r->rest.n == 0 || r->rest.p[0] != c) {
        return false;
    }
    r->rest = slice_skip(r->rest, 1);
    skip_blanks(r);
    return true;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '$' || c == '-';
}

static slice take_word(class_reader *r) {
    size_t n = 0;
    skip_blanks(r);
    while (n < r->rest.n && is_word(r->rest.p[n])) {
        n++;
    }
    slice word = slice_of(r->rest.p, n);
    r->rest = slice_skip(r->rest, n);
    r->bad |= n == 0;
    return word;
}

static slice take_hex(class_reader *r) {
    slice digits = take_word(r);
    char *bytes = arena_alloc(r->memory, digits.n / 2 + 1);
    r->bad |= digits.n % 2 != 0;
    for (size_t i = 0; i + 1 < digits.n; i += 2) {
        int high = hex_digit(digits.p[i]), low = hex_digit(digits.p[i + 1]);
        r->bad |= high < 0 || low < 0;
        bytes[i / 2] = (char)(high * 16 + low);
    }
    return slice_of(bytes, digits.n / 2);
}

static cql_type *new_type(class_reader *r, cql_kind kind, const cql_type **inner, uint32_t n) {
    cql_type *t = arena_new(r->memory, cql_type);
    *t = (cql_type){.kind = kind, .n = n, .inner = inner};
    return t;
}

/* The types up to the closing parenthesis; with `fields`, each has its name and a colon before it. */
static cql_type *read_list(class_reader *r, cql_kind kind, bool fields, unsigned depth) {
    enum { MANY = 256 };
    const cql_type *inner[MANY];
    slice names[MANY];
    uint32_t n = 0;
    while (!r->bad && !take(r, ')')) {
        r->bad |= n == MANY || (n > 0 && !take(r, ',')) || (n == 0 && fields && !take(r, ','));
        if (!r->bad && fields) {
            names[n] = take_hex(r);
            r->bad |= !take(r, ':');
        }
        if (!r->bad) {
            inner[n++] = read_class(r, depth + 1);
        }
    }
    const cql_type **kept = arena_array(r->memory, const cql_type *, n + 1);
    memcpy(kept, inner, n * sizeof *kept);
    cql_type *t = new_type(r, kind, kept, n);
    if (fields) {
        t->fields = memcpy(arena_array(r->memory, slice, n + 1), names, n * sizeof *names);
    }
    return t;
}

static const cql_type *read_udt(class_reader *r, unsigned depth) {
    slice keyspace = take_word(r);
    r->bad |= !take(r, ',');
    slice name = take_hex(r);
    cql_type *t = read_list(r, CQL_UDT, true, depth);
    t->keyspace = keyspace;
    t->name = name;
    return t;
}

static const cql_type *read_vector(class_reader *r, unsigned depth) {
    const cql_type **inner = arena_array(r->memory, const cql_type *, 1);
    uint64_t dimension = 0;
    inner[0] = read_class(r, depth + 1);
    r->bad |= !take(r, ',') || !slice_to_u64(take_word(r), &dimension) || !take(r, ')') || dimension == 0 || dimension > CQL_VECTOR_MAX;
    cql_type *t = new_type(r, CQL_VECTOR, inner, 1);
    t->dimension = (uint32_t)dimension;
    t->frozen = true;
    return t;
}

static const cql_type *read_wrapper(class_reader *r, bool frozen, unsigned depth) {
    const cql_type *inner = read_class(r, depth + 1);
    r->bad |= !take(r, ')');
    return r->bad || !frozen ? inner : cql_type_freeze(r->memory, inner);
}

static const cql_type *read_collection(class_reader *r, cql_kind kind, uint32_t n, unsigned depth) {
    cql_type *t = read_list(r, kind, false, depth);
    r->bad |= t->n != n;
    return t;
}

static const cql_type *read_arguments(class_reader *r, slice name, unsigned depth) {
    if (slice_eq(name, SLICE_LIT("FrozenType")) || slice_eq(name, SLICE_LIT("ReversedType"))) {
        return read_wrapper(r, name.p[0] == 'F', depth);
    }
    if (slice_eq(name, SLICE_LIT("UserType"))) {
        return read_udt(r, depth);
    }
    if (slice_eq(name, SLICE_LIT("VectorType"))) {
        return read_vector(r, depth);
    }
    if (slice_eq(name, SLICE_LIT("TupleType"))) {
        cql_type *t = read_list(r, CQL_TUPLE, false, depth);
        t->frozen = true;
        return t;
    }
    if (slice_eq(name, SLICE_LIT("MapType"))) {
        return read_collection(r, CQL_MAP, 2, depth);
    }
    if (slice_eq(name, SLICE_LIT("ListType")) || slice_eq(name, SLICE_LIT("SetType"))) {
        return read_collection(r, name.p[0] == 'L' ? CQL_LIST : CQL_SET, 1, depth);
    }
    r->bad = true;
    return NULL;
}

static const cql_type *read_class(class_reader *r, unsigned depth) {
    slice whole = take_word(r), package = SLICE_LIT(CQL_CLASS_PACKAGE);
    slice name = slice_starts(whole, package) ? slice_skip(whole, package.n) : whole;
    if (r->bad || depth >= CQL_TYPE_DEPTH) {
        r->bad = true;
        return cql_type_of(CQL_BLOB);
    }
    if (take(r, '(')) {
        const cql_type *t = read_arguments(r, name, depth);
        return t ? t : cql_type_of(CQL_BLOB);
    }
    const cql__native *native = cql__native_by_class(name);
    if (native) {
        return cql_type_of(native->kind);
    }
    cql_type *t = new_type(r, CQL_CUSTOM, NULL, 0);
    t->name = whole;
    return t;
}

/* Classes with arguments that CQL has no name for, such as CompositeType(…): well formed if the parentheses match. */
static bool is_balanced(slice text) {
    unsigned depth = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!is_word(c) && !strchr("(),:=> ", c)) {
            return false;
        }
        if (c == ')' && depth == 0) {
            return false;
        }
        depth += c == '(';
        depth -= c == ')';
    }
    return text.n > 0 && depth == 0 && is_word(text.p[0]);
}

const cql_type *cql_type_by_class(arena *a, slice name) {
    enum { NAME_MAX_BYTES = 65535 }; /* as long as a [string] of the protocol */
    class_reader r = {.memory = a, .rest = name};
    if (name.n > NAME_MAX_BYTES) {
        return NULL;
    }
    const cql_type *type = read_class(&r, 0);
    if (!r.bad && r.rest.n == 0) {
        return type;
    }
    if (!is_balanced(name)) {
        return NULL;
    }
    cql_type *custom = new_type(&r, CQL_CUSTOM, NULL, 0);
    custom->name = name;
    return custom;
}

/* ---- writing ---- */

static void add_hex_name(buf *out, slice name) {
    for (size_t i = 0; i < name.n; i++) {
        buf_addf(out, "%02x", (unsigned char)name.p[i]);
    }
}

static void write_fields(buf *out, const cql_type *type) {
    buf_addf(out, "UserType(%.*s,", (int)type->keyspace.n, type->keyspace.p);
    add_hex_name(out, type->name);
    for (uint32_t i = 0; i < type->n; i++) {
        buf_add_byte(out, ',');
        add_hex_name(out, type->fields ? type->fields[i] : SLICE_EMPTY);
        buf_add_byte(out, ':');
        cql_type_write_class(out, type->inner[i]);
    }
    buf_add_byte(out, ')');
}

static const char *class_of(cql_kind kind) {
    switch (kind) {
    case CQL_LIST:
        return "ListType(";
    case CQL_SET:
        return "SetType(";
    case CQL_MAP:
        return "MapType(";
    case CQL_VECTOR:
        return "VectorType(";
    default:
        return "TupleType(";
    }
}

static void write_arguments(buf *out, const cql_type *type) {
    buf_add_slice(out, slice_str(class_of(type->kind)));
    for (uint32_t i = 0; i < type->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        cql_type_write_class(out, type->inner[i]);
    }
    if (type->kind == CQL_VECTOR) {
        buf_addf(out, " , %u", type->dimension);
    }
    buf_add_byte(out, ')');
}

void cql_type_write_class(buf *out, const cql_type *type) {
    const cql__native *native = cql__native_of(type->kind);
    bool frozen = type->frozen && (cql_type_is_collection(type) || type->kind == CQL_UDT);
    if (type->kind == CQL_CUSTOM) {
        buf_add_slice(out, type->name);
        return;
    }
    buf_add_slice(out, frozen ? SLICE_LIT(CQL_CLASS_PACKAGE "FrozenType(") : SLICE_EMPTY);
    buf_add_lit(out, CQL_CLASS_PACKAGE);
    if (native) {
        buf_add_slice(out, slice_str(native->class_name));
    } else if (type->kind == CQL_UDT) {
        write_fields(out, type);
    } else {
        write_arguments(out, type);
    }
    buf_add_slice(out, frozen ? SLICE_LIT(")") : SLICE_EMPTY);
}
