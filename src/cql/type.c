/* type.c — making, comparing and resolving types. */
#include "cql/type.h"

#include "cql/type_int.h"

static const cql__native natives[] = {
    {CQL_ASCII, "ascii", "AsciiType", -1},
    {CQL_BIGINT, "bigint", "LongType", 8},
    {CQL_BLOB, "blob", "BytesType", -1},
    {CQL_BOOLEAN, "boolean", "BooleanType", 1},
    {CQL_COUNTER, "counter", "CounterColumnType", 8},
    {CQL_DECIMAL, "decimal", "DecimalType", -1},
    {CQL_DOUBLE, "double", "DoubleType", 8},
    {CQL_FLOAT, "float", "FloatType", 4},
    {CQL_INT, "int", "Int32Type", 4},
    {CQL_TIMESTAMP, "timestamp", "TimestampType", 8},
    {CQL_UUID, "uuid", "UUIDType", 16},
    {CQL_TEXT, "text", "UTF8Type", -1},
    {CQL_VARINT, "varint", "IntegerType", -1},
    {CQL_TIMEUUID, "timeuuid", "TimeUUIDType", 16},
    {CQL_INET, "inet", "InetAddressType", -1},
    {CQL_DATE, "date", "SimpleDateType", 4},
    {CQL_TIME, "time", "TimeType", 8},
    {CQL_SMALLINT, "smallint", "ShortType", 2},
    {CQL_TINYINT, "tinyint", "ByteType", 1},
    {CQL_DURATION, "duration", "DurationType", -1},
    {CQL_EMPTY, "empty", "EmptyType", 0},
};
enum { NATIVES = sizeof natives / sizeof *natives };

static const cql_type native_types[NATIVES] = {
    {.kind = CQL_ASCII},   {.kind = CQL_BIGINT}, {.kind = CQL_BLOB},     {.kind = CQL_BOOLEAN},  {.kind = CQL_COUNTER},
    {.kind = CQL_DECIMAL}, {.kind = CQL_DOUBLE}, {.kind = CQL_FLOAT},    {.kind = CQL_INT},      {.kind = CQL_TIMESTAMP},
    {.kind = CQL_UUID},    {.kind = CQL_TEXT},   {.kind = CQL_VARINT},   {.kind = CQL_TIMEUUID}, {.kind = CQL_INET},
    {.kind = CQL_DATE},    {.kind = CQL_TIME},   {.kind = CQL_SMALLINT}, {.kind = CQL_TINYINT},  {.kind = CQL_DURATION},
    {.kind = CQL_EMPTY},
};

const cql__native *cql__native_of(cql_kind kind) {
    for (size_t i = 0; i < NATIVES; i++) {
        if (natives[i].kind == kind) {
            return &natives[i];
        }
    }
    return NULL;
}

const cql__native *cql__native_by_class(slice class_name) {
    for (size_t i = 0; i < NATIVES; i++) {
        if (slice_eq(class_name, slice_str(natives[i].class_name))) {
            return &natives[i];
        }
    }
    return NULL;
}

const cql_type *cql_type_of(cql_kind kind) {
    const cql__native *native = cql__native_of(kind);
    return native ? &native_types[native - natives] : NULL;
}

const cql_type *cql_type_by_name(slice name) {
    if (slice_eq_nocase(name, SLICE_LIT("varchar"))) {
        return cql_type_of(CQL_TEXT);
    }
    for (size_t i = 0; i < NATIVES; i++) {
        if (slice_eq_nocase(name, slice_str(natives[i].name))) {
            return &native_types[i];
        }
    }
    return NULL;
}

/* ---- making ---- */

static cql_type *with_inner(arena *a, cql_kind kind, const cql_type *const *inner, uint32_t n) {
    cql_type *t = arena_new(a, cql_type);
    const cql_type **copy = arena_array(a, const cql_type *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = inner[i];
    }
    t->kind = kind;
    t->inner = copy;
    t->n = n;
    return t;
}

const cql_type *cql_type_list(arena *a, const cql_type *element, bool frozen) {
    cql_type *t = with_inner(a, CQL_LIST, &element, 1);
    t->frozen = frozen;
    return t;
}

const cql_type *cql_type_set(arena *a, const cql_type *element, bool frozen) {
    cql_type *t = with_inner(a, CQL_SET, &element, 1);
    t->frozen = frozen;
    return t;
}

const cql_type *cql_type_map(arena *a, const cql_type *key, const cql_type *value, bool frozen) {
    const cql_type *inner[] = {key, value};
    cql_type *t = with_inner(a, CQL_MAP, inner, 2);
    t->frozen = frozen;
    return t;
}

const cql_type *cql_type_tuple(arena *a, const cql_type *const *elements, uint32_t n) {
    cql_type *t = arena_new(a, cql_type);
    *t = (cql_type){.kind = CQL_TUPLE, .frozen = true, .n = n, .inner = elements};
    return t;
}

const cql_type *cql_type_freeze(arena *a, const cql_type *type) {
    bool known_frozen = type->kind == CQL_UDT && type->fields && type->frozen; /* with all that is in it */
    if (known_frozen || (type->n == 0 && type->kind != CQL_UDT)) {
        return type;
    }
    cql_type *t = with_inner(a, type->kind, type->inner, type->n);
    const cql_type **inner = (const cql_type **)(uintptr_t)t->inner;
    for (uint32_t i = 0; i < type->n; i++) {
        inner[i] = cql_type_freeze(a, type->inner[i]);
    }
    *t = *type;
    t->inner = inner;
    t->frozen = true;
    return t;
}

const cql_type *cql_type_copy(arena *a, const cql_type *type) {
    if (cql__native_of(type->kind)) {
        return cql_type_of(type->kind);
    }
    cql_type *t = arena_new(a, cql_type);
    const cql_type **inner = arena_array(a, const cql_type *, type->n ? type->n : 1);
    slice *fields = type->fields ? arena_array(a, slice, type->n ? type->n : 1) : NULL;
    for (uint32_t i = 0; i < type->n; i++) {
        inner[i] = cql_type_copy(a, type->inner[i]);
        if (fields) {
            fields[i] = arena_copy(a, type->fields[i]);
        }
    }
    *t = *type;
    t->inner = inner;
    t->fields = fields;
    t->keyspace = arena_copy(a, type->keyspace);
    t->name = arena_copy(a, type->name);
    return t;
}

/* ---- properties ---- */

bool cql_type_same(const cql_type *a, const cql_type *b) {
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind || a->frozen != b->frozen || a->n != b->n || a->dimension != b->dimension || !slice_eq(a->name, b->name) ||
        !slice_eq(a->keyspace, b->keyspace)) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (!cql_type_same(a->inner[i], b->inner[i]) || (a->fields && b->fields && !slice_eq(a->fields[i], b->fields[i]))) {
            return false;
        }
    }
    return true;
}

bool cql_type_is_number(const cql_type *t) {
    switch (t->kind) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_VARINT:
    case CQL_FLOAT:
    case CQL_DOUBLE:
    case CQL_DECIMAL:
        return true;
    default:
        return false;
    }
}

bool cql_type_has_duration(const cql_type *t) {
    if (t->kind == CQL_DURATION) {
        return true;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (cql_type_has_duration(t->inner[i])) {
            return true;
        }
    }
    return false;
}

int cql_type_fixed_bytes(const cql_type *t) {
    const cql__native *native = cql__native_of(t->kind);
    if (native) {
        return native->fixed_bytes;
    }
    int element = t->kind == CQL_VECTOR ? cql_type_fixed_bytes(t->inner[0]) : -1;
    return element >= 0 && t->dimension <= CQL_VECTOR_MAX ? element * (int)t->dimension : -1;
}

bool cql_type_uses(const cql_type *type, slice keyspace, slice name) {
    bool here = type->keyspace.n == 0 || slice_eq(type->keyspace, keyspace);
    if (type->kind == CQL_UDT && here && slice_eq(type->name, name)) {
        return true;
    }
    for (uint32_t i = 0; i < type->n; i++) {
        if (cql_type_uses(type->inner[i], keyspace, name)) {
            return true;
        }
    }
    return false;
}

/* ---- resolving ---- */

static err fail_shown(op *o, const char *message, const cql_type *type) {
    slice text = cql_type_text(o->arena, type);
    return op_fail(o, E_BAD_REQUEST, "%s%.*s", message, slice_shown(text), text.p);
}

static err resolve_udt(op *o, const cql_type_source *source, const cql_type *type, const cql_type **type_out) {
    slice keyspace = type->keyspace.n ? type->keyspace : source->keyspace;
    if (!slice_eq(keyspace, source->keyspace)) {
        return op_fail(
            o, E_BAD_REQUEST,
            "Statement on keyspace %.*s cannot refer to a user type in keyspace %.*s; user types can only be used in the keyspace "
            "they are defined in",
            slice_shown(source->keyspace), source->keyspace.p, slice_shown(keyspace), keyspace.p);
    }
    const cql_type *found = source->find ? source->find(source, keyspace, type->name) : NULL;
    if (!found && source->refusal.n) {
        return op_fail(o, E_BAD_REQUEST, "%.*s", slice_shown(source->refusal), source->refusal.p);
    }
    if (!found) {
        return op_fail(o, E_BAD_REQUEST, "Unknown type %.*s.%.*s", slice_shown(keyspace), keyspace.p, slice_shown(type->name),
                       type->name.p);
    }
    if (type->frozen) {
        *type_out = cql_type_freeze(o->arena, found);
        return OK;
    }
    for (uint32_t i = 0; i < found->n; i++) {
        if (cql_type_is_multicell(found->inner[i])) {
            return op_fail(o, E_BAD_REQUEST, "Non-frozen UDTs with nested non-frozen collections are not supported");
        }
    }
    cql_type *t = arena_new(o->arena, cql_type);
    *t = *found;
    t->frozen = false;
    *type_out = t;
    return OK;
}

static err check_collection(op *o, const cql_type *type) {
    for (uint32_t i = 0; i < type->n; i++) {
        const cql_type *inner = type->inner[i];
        if (inner->kind == CQL_COUNTER) {
            return fail_shown(o, "Counters are not allowed inside collections: ", type);
        }
        if (cql_type_is_multicell(inner)) {
            return fail_shown(o,
                              inner->kind == CQL_UDT ? "Non-frozen UDTs are not allowed inside collections: "
                                                     : "Non-frozen collections are not allowed inside collections: ",
                              type);
        }
    }
    if (type->kind == CQL_SET && type->inner[0]->kind == CQL_DURATION) {
        return fail_shown(o, "Durations are not allowed inside sets: ", type);
    }
    if (type->kind == CQL_MAP && type->inner[0]->kind == CQL_DURATION) {
        return fail_shown(o, "Durations are not allowed as map keys: ", type);
    }
    return OK;
}

static err check_resolved(op *o, const cql_type *type) {
    if (cql_type_is_collection(type)) {
        return check_collection(o, type);
    }
    for (uint32_t i = 0; type->kind == CQL_TUPLE && i < type->n; i++) {
        if (type->inner[i]->kind == CQL_COUNTER) {
            return op_fail(o, E_BAD_REQUEST, "Counters are not allowed inside tuples");
        }
    }
    if (type->kind == CQL_VECTOR && cql_type_fixed_bytes(type->inner[0]) <= 0) {
        return fail_shown(o, "Vectors of this type are not supported: ", type);
    }
    return OK;
}

static unsigned depth_of(const cql_type *type) {
    unsigned deepest = 0;
    for (uint32_t i = 0; i < type->n; i++) {
        unsigned depth = depth_of(type->inner[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static err resolve(op *o, const cql_type_source *source, const cql_type *type, const cql_type **type_out) {
    *type_out = type;
    if (type->kind == CQL_UDT && !type->fields) {
        return resolve_udt(o, source, type, type_out);
    }
    if (type->n == 0 || type->kind == CQL_UDT) {
        return OK;
    }
    cql_type *t = with_inner(o->arena, type->kind, type->inner, type->n);
    const cql_type **inner = (const cql_type **)(uintptr_t)t->inner;
    *t = *type;
    t->inner = inner;
    for (uint32_t i = 0; i < type->n; i++) {
        TRY(resolve(o, source, type->inner[i], &inner[i]));
        if (type->frozen || type->kind == CQL_TUPLE || type->kind == CQL_VECTOR) {
            inner[i] = cql_type_freeze(o->arena, inner[i]);
        }
    }
    *type_out = t;
    return check_resolved(o, t);
}

/* User types are made of user types, so a short text may name a deep type. */
err cql_type_resolve(op *o, const cql_type_source *source, const cql_type *type, const cql_type **type_out) {
    TRY(resolve(o, source, type, type_out));
    return depth_of(*type_out) > CQL_TYPE_DEPTH ? op_fail(o, E_BAD_REQUEST, "Types may be nested %d levels deep at most", CQL_TYPE_DEPTH)
                                                : OK;
}
