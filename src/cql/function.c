/* function.c — the native functions: finding and calling them. */
#include "cql/function.h"

#include "cql/function_int.h"
#include "cql/value_int.h"

static const cql_function functions[] = {
    {"token", CQL__TOKEN, 1, {0}, CQL_BIGINT},
    {"now", CQL__NOW, 0, {0}, CQL_TIMEUUID},
    {"currentTimeUUID", CQL__NOW, 0, {0}, CQL_TIMEUUID},
    {"uuid", CQL__UUID, 0, {0}, CQL_UUID},
    {"currentTimestamp", CQL__CURRENT_TIMESTAMP, 0, {0}, CQL_TIMESTAMP},
    {"currentDate", CQL__CURRENT_DATE, 0, {0}, CQL_DATE},
    {"currentTime", CQL__CURRENT_TIME, 0, {0}, CQL_TIME},
    {"minTimeuuid", CQL__MIN_TIMEUUID, 1, {CQL_TIMESTAMP}, CQL_TIMEUUID},
    {"maxTimeuuid", CQL__MAX_TIMEUUID, 1, {CQL_TIMESTAMP}, CQL_TIMEUUID},
    {"dateOf", CQL__TO_TIMESTAMP, 1, {CQL_TIMEUUID}, CQL_TIMESTAMP},
    {"unixTimestampOf", CQL__TO_UNIX_TIMESTAMP, 1, {CQL_TIMEUUID}, CQL_BIGINT},
    {"toDate", CQL__TO_DATE, 1, {CQL_TIMEUUID, CQL_TIMESTAMP}, CQL_DATE},
    {"toTimestamp", CQL__TO_TIMESTAMP, 1, {CQL_TIMEUUID, CQL_DATE}, CQL_TIMESTAMP},
    {"toUnixTimestamp", CQL__TO_UNIX_TIMESTAMP, 1, {CQL_TIMEUUID, CQL_TIMESTAMP, CQL_DATE}, CQL_BIGINT},
    {"toJson", CQL__TO_JSON, 1, {0}, CQL_TEXT},
    {"fromJson", CQL__FROM_JSON, 1, {CQL_TEXT}, CQL_CUSTOM},
#define BLOB_PAIR(lower, capital, type)                                                                                                    \
    {"blobAs" capital, CQL__BLOB_AS, 1, {CQL_BLOB}, type}, {                                                                               \
        lower "AsBlob", CQL__AS_BLOB, 1, {type}, CQL_BLOB                                                                                  \
    }
    BLOB_PAIR("ascii", "Ascii", CQL_ASCII),
    BLOB_PAIR("bigint", "Bigint", CQL_BIGINT),
    BLOB_PAIR("boolean", "Boolean", CQL_BOOLEAN),
    BLOB_PAIR("counter", "Counter", CQL_COUNTER),
    BLOB_PAIR("date", "Date", CQL_DATE),
    BLOB_PAIR("decimal", "Decimal", CQL_DECIMAL),
    BLOB_PAIR("double", "Double", CQL_DOUBLE),
    BLOB_PAIR("duration", "Duration", CQL_DURATION),
    BLOB_PAIR("float", "Float", CQL_FLOAT),
    BLOB_PAIR("inet", "Inet", CQL_INET),
    BLOB_PAIR("int", "Int", CQL_INT),
    BLOB_PAIR("smallint", "Smallint", CQL_SMALLINT),
    BLOB_PAIR("text", "Text", CQL_TEXT),
    BLOB_PAIR("time", "Time", CQL_TIME),
    BLOB_PAIR("timestamp", "Timestamp", CQL_TIMESTAMP),
    BLOB_PAIR("timeuuid", "Timeuuid", CQL_TIMEUUID),
    BLOB_PAIR("tinyint", "Tinyint", CQL_TINYINT),
    BLOB_PAIR("uuid", "Uuid", CQL_UUID),
    BLOB_PAIR("varchar", "Varchar", CQL_TEXT),
    BLOB_PAIR("varint", "Varint", CQL_VARINT),
};

/* ---- finding ---- */

static const cql_function *by_name(slice keyspace, slice name) {
    if (keyspace.n && !slice_eq(keyspace, SLICE_LIT("system"))) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (slice_eq_nocase(name, slice_str(functions[i].name))) {
            return &functions[i];
        }
    }
    return NULL;
}

bool cql_function_is_aggregate(slice keyspace, slice name) {
    static const char *const names[] = {"count", "countrows", "min", "max", "sum", "avg"};
    for (size_t i = 0; (!keyspace.n || slice_eq(keyspace, SLICE_LIT("system"))) && i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(name, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

bool cql_function_is_constant(const cql_function *f) {
    return !(f->kind >= CQL__NOW && f->kind <= CQL__CURRENT_TIME);
}

slice cql_function_name(const cql_function *f) {
    return slice_str(f->name);
}

bool cql__assignable(const cql_type *to, const cql_type *from) {
    if (to->kind == CQL_BLOB) {
        return true;
    }
    switch (from->kind) {
    case CQL_ASCII:
        return to->kind == CQL_ASCII || to->kind == CQL_TEXT;
    case CQL_TIMEUUID:
        return to->kind == CQL_TIMEUUID || to->kind == CQL_UUID;
    case CQL_TIMESTAMP:
    case CQL_BIGINT:
    case CQL_COUNTER:
        return to->kind == from->kind || to->kind == CQL_BIGINT || to->kind == CQL_TIMESTAMP || to->kind == CQL_COUNTER ||
               (to->kind == CQL_VARINT && from->kind == CQL_BIGINT);
    case CQL_INT:
        return to->kind == CQL_INT || to->kind == CQL_VARINT;
    default:
        break;
    }
    if (to->kind != from->kind || to->n != from->n || !slice_eq(to->name, from->name) || to->dimension != from->dimension) {
        return false;
    }
    for (uint32_t i = 0; i < to->n; i++) {
        if (!cql__assignable(to->inner[i], from->inner[i])) {
            return false;
        }
    }
    return true;
}

static bool accepts(const cql_function *f, const cql_type *argument) {
    if (!argument || f->argument[0] == CQL_CUSTOM) {
        return true;
    }
    for (size_t i = 0; i < CQL__ARGUMENT_TYPES && f->argument[i] != CQL_CUSTOM; i++) {
        if (cql__assignable(cql_type_of(f->argument[i]), argument)) {
            return true;
        }
    }
    return false;
}

static err fail_call(op *o, const cql_function *f) {
    buf text = buf_init(400);
    for (size_t i = 0; i < CQL__ARGUMENT_TYPES && (i == 0 || f->argument[i] != CQL_CUSTOM); i++) {
        const cql_type *argument = f->argument[i] == CQL_CUSTOM ? NULL : cql_type_of(f->argument[i]);
        buf_addf(&text, "%ssystem.%s : (", i ? ", " : "", f->name);
        if (argument) {
            cql_type_write(&text, argument);
        }
        buf_add_lit(&text, ") -> ");
        cql_type_write(&text, cql_type_of(f->returns == CQL_CUSTOM ? CQL_TEXT : f->returns));
    }
    err code = op_fail(o, E_BAD_REQUEST, "Invalid call to function %s, none of its type signatures match (known type signatures: %.*s)",
                       f->name, (int)text.n, text.p);
    buf_free(&text);
    return code;
}

err cql_function_find(op *o, slice keyspace, slice name, const cql_type *const *arguments, uint32_t n, const cql_type *receiver,
                      const cql_function **function_out, const cql_type **returns_out) {
    const cql_function *f = by_name(keyspace, name);
    *function_out = f;
    *returns_out = NULL;
    if (!f) {
        return op_fail(o, E_BAD_REQUEST, "Unknown function '%.*s%s%.*s'", slice_shown(keyspace), keyspace.p, keyspace.n ? "." : "",
                       slice_shown(name), name.p);
    }
    if (f->kind == CQL__TOKEN ? n == 0 : n != f->n) {
        return fail_call(o, f);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!accepts(f, arguments[i])) {
            return fail_call(o, f);
        }
    }
    if (f->kind == CQL__FROM_JSON && !receiver) {
        return op_fail(o, E_BAD_REQUEST, "fromJson() may only be used where the type of its result is known");
    }
    *returns_out = f->kind == CQL__FROM_JSON ? receiver : cql_type_of(f->returns);
    return OK;
}

const cql_type *cql_function_parameter(const cql_function *f, const cql_type *const *known, uint32_t n, uint32_t i) {
    if (i < n && known[i]) {
        return known[i];
    }
    return f->argument[0] == CQL_CUSTOM ? NULL : cql_type_of(f->argument[0]);
}

/* ---- calling ---- */

static cql_value date_of_ms(arena *a, int64_t ms) {
    int64_t days = ms / CQL__DAY_MS - (ms % CQL__DAY_MS < 0);
    return cql_value_int(a, (int32_t)(uint32_t)(days + INT64_C(0x80000000)));
}

/* A timeuuid, timestamp or date as milliseconds. */
static int64_t ms_of(const cql_type *type, cql_value v) {
    int64_t number = 0;
    if (type && (type->kind == CQL_TIMEUUID || type->kind == CQL_UUID)) {
        return v.bytes.n == 16 ? cql_timeuuid_ms(v.bytes) : 0;
    }
    cql_as_bigint(v, &number);
    return type && type->kind == CQL_DATE ? ((int64_t)(uint32_t)number - INT64_C(0x80000000)) * CQL__DAY_MS : number;
}

static err call_uuid(op *o, const cql_run *run, const cql_function *f, cql_value *value_out) {
    uint8_t *uuid = arena_alloc_aligned(o->arena, 16, 1);
    if (f->kind == CQL__NOW) {
        cql_timeuuid_make(run->random, run->now_us, uuid);
    } else {
        random_bytes(run->random, uuid, 16);
        uuid[6] = (uint8_t)((uuid[6] & 0x0F) | 0x40);
        uuid[8] = (uint8_t)((uuid[8] & 0x3F) | 0x80);
    }
    *value_out = cql_value_of(slice_of(uuid, 16));
    return OK;
}

static err call_bound(op *o, const cql_function *f, int64_t ms, cql_value *value_out) {
    uint8_t *uuid = arena_alloc_aligned(o->arena, 16, 1);
    bool least = f->kind == CQL__MIN_TIMEUUID;
    if (ms > INT64_C(900000000000000) || ms < -INT64_C(12219292800000)) {
        return op_fail(o, E_BAD_REQUEST, "The timestamp %lld is out of the range of a timeuuid", (long long)ms);
    }
    cql__timeuuid_of(least ? ms * 10000 : (ms + 1) * 10000 - 1, least ? 0x8080808080808080u : 0x7F7F7F7F7F7F7F7Fu, uuid);
    *value_out = cql_value_of(slice_of(uuid, 16));
    return OK;
}

static err call_token(op *o, const cql_value *values, uint32_t n, cql_value *value_out) {
    buf key = buf_init_counted(BUF_NO_LIMIT, o->budget);
    bool ok = cql_partition_bytes(&key, values, n) && buf_ok(&key);
    *value_out = cql_value_bigint(o->arena, cql_token(buf_view(&key)));
    buf_free(&key);
    return ok ? OK : op_fail(o, E_BAD_REQUEST, "Key length is longer than maximum of 65535");
}

static err call_to_json(op *o, const cql_type *type, cql_value v, cql_value *value_out) {
    buf text = buf_init_counted(BUF_NO_LIMIT, o->budget);
    cql_json_write(&text, type ? type : cql_type_of(CQL_TEXT), v);
    bool ok = buf_ok(&text) && arena_fits(o->arena, text.n);
    *value_out = ok ? cql_value_of(arena_copy(o->arena, buf_view(&text))) : cql_value_null();
    buf_free(&text);
    return ok ? OK : E_MEMORY;
}

static err call_blob_as(op *o, const cql_function *f, const cql_type *returns, cql_value v, cql_value *value_out) {
    *value_out = v;
    if (cql_value_check(o, returns, v) == OK) {
        return OK;
    }
    slice type = cql_type_text(o->arena, returns);
    return op_fail(o, E_BAD_REQUEST, "In call to function system.%s, value 0x... is not a valid binary representation for type %.*s",
                   f->name, (int)type.n, type.p);
}

static err call_now(op *o, const cql_run *run, const cql_function *f, cql_value *value_out) {
    int64_t ms = run->now_us / 1000;
    if (f->kind == CQL__CURRENT_DATE) {
        *value_out = date_of_ms(o->arena, ms);
    } else {
        *value_out = cql_value_bigint(o->arena, f->kind == CQL__CURRENT_TIMESTAMP ? ms : ms % CQL__DAY_MS * 1000000);
    }
    return OK;
}

err cql_function_call(op *o, const cql_run *run, const cql_function *f, const cql_type *const *types, const cql_value *values, uint32_t n,
                      const cql_type *returns, cql_value *value_out) {
    *value_out = cql_value_null();
    for (uint32_t i = 0; f->kind != CQL__TO_JSON && i < n; i++) {
        if (cql_value_is_null(values[i])) {
            return OK;
        }
    }
    switch (f->kind) {
    case CQL__TOKEN:
        return call_token(o, values, n, value_out);
    case CQL__NOW:
    case CQL__UUID:
        return call_uuid(o, run, f, value_out);
    case CQL__CURRENT_TIMESTAMP:
    case CQL__CURRENT_DATE:
    case CQL__CURRENT_TIME:
        return call_now(o, run, f, value_out);
    case CQL__MIN_TIMEUUID:
    case CQL__MAX_TIMEUUID:
        return call_bound(o, f, ms_of(types[0], values[0]), value_out);
    case CQL__TO_DATE:
        *value_out = date_of_ms(o->arena, ms_of(types[0], values[0]));
        return OK;
    case CQL__TO_TIMESTAMP:
    case CQL__TO_UNIX_TIMESTAMP:
        *value_out = cql_value_bigint(o->arena, ms_of(types[0], values[0]));
        return OK;
    case CQL__TO_JSON:
        return call_to_json(o, types[0], values[0], value_out);
    case CQL__FROM_JSON:
        return cql_json_read(o, returns, values[0].bytes, value_out);
    case CQL__BLOB_AS:
        return call_blob_as(o, f, returns, values[0], value_out);
    default:
        *value_out = values[0];
        return OK;
    }
}
