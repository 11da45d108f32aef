/* value.c — making and reading values; the wire's [bytes]; elements of collections. */
#include "cql/value.h"

/* ---- making ---- */

static cql_value big_endian(arena *a, uint64_t number, size_t bytes) {
    char *p = arena_alloc_aligned(a, bytes, 1);
    for (size_t i = 0; i < bytes; i++) {
        p[i] = (char)(number >> (8 * (bytes - 1 - i)));
    }
    return cql_value_of(slice_of(p, bytes));
}

cql_value cql_value_bool(bool truth) {
    return cql_value_of(truth ? SLICE_LIT("\1") : SLICE_LIT("\0"));
}

cql_value cql_value_int(arena *a, int32_t number) {
    return big_endian(a, (uint32_t)number, 4);
}

cql_value cql_value_smallint(arena *a, int16_t number) {
    return big_endian(a, (uint16_t)number, 2);
}

cql_value cql_value_tinyint(arena *a, int8_t number) {
    return big_endian(a, (uint8_t)number, 1);
}

cql_value cql_value_bigint(arena *a, int64_t number) {
    return big_endian(a, (uint64_t)number, 8);
}

cql_value cql_value_double(arena *a, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return big_endian(a, bits, 8);
}

cql_value cql_value_float(arena *a, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return big_endian(a, bits, 4);
}

/* ---- reading ---- */

static bool bits_of(cql_value v, uint64_t *bits_out) {
    slice rest = v.bytes;
    return !cql_value_is_null(v) && rest.n >= 1 && rest.n <= 8 && slice_take_be(&rest, rest.n, bits_out);
}

bool cql_as_bool(cql_value v, bool *truth_out) {
    *truth_out = false;
    if (cql_value_is_null(v) || v.bytes.n != 1) {
        return false;
    }
    *truth_out = v.bytes.p[0] != 0;
    return true;
}

bool cql_as_bigint(cql_value v, int64_t *number_out) {
    uint64_t bits = 0;
    *number_out = 0;
    if (!bits_of(v, &bits) || (v.bytes.n & (v.bytes.n - 1))) {
        return false;
    }
    unsigned unused = 64 - 8 * (unsigned)v.bytes.n;
    *number_out = (int64_t)(bits << unused) >> unused;
    return true;
}

bool cql_as_int(cql_value v, int32_t *number_out) {
    int64_t number;
    bool ok = v.bytes.n <= 4 && cql_as_bigint(v, &number);
    *number_out = ok ? (int32_t)number : 0;
    return ok;
}

bool cql_as_double(cql_value v, double *number_out) {
    uint64_t bits = 0;
    *number_out = 0;
    if (!bits_of(v, &bits)) {
        return false;
    }
    if (v.bytes.n == 4) {
        uint32_t half = (uint32_t)bits;
        float number;
        memcpy(&number, &half, sizeof number);
        *number_out = number;
        return true;
    }
    memcpy(number_out, &bits, sizeof bits);
    return v.bytes.n == 8;
}

/* ---- the wire ---- */

void cql_value_encode(buf *out, cql_value v) {
    if (cql_value_is_null(v)) {
        buf_add_be32(out, v.unset ? (uint32_t)-2 : (uint32_t)-1);
        return;
    }
    buf_add_be32(out, (uint32_t)v.bytes.n);
    buf_add_slice(out, v.bytes);
}

bool cql_value_decode(slice *rest, cql_value *value_out) {
    uint64_t n;
    *value_out = cql_value_null();
    if (!slice_take_be(rest, 4, &n)) {
        return false;
    }
    int32_t length = (int32_t)(uint32_t)n;
    if (length < 0) {
        value_out->null = length != -2;
        value_out->unset = length == -2;
        return length >= -2;
    }
    if (n > rest->n) {
        return false;
    }
    *value_out = cql_value_of(slice_of(rest->p, n));
    *rest = slice_skip(*rest, n);
    return true;
}

/* ---- elements ---- */

bool cql_elements_init(cql_elements *e, const cql_type *type, cql_value v) {
    uint64_t count = 0;
    *e = (cql_elements){.type = type, .rest = v.bytes};
    if (cql_value_is_null(v)) {
        return false;
    }
    if (cql_type_is_collection(type)) {
        uint64_t values_max = v.bytes.n / 4; /* each has a length of four bytes */
        if (!slice_take_be(&e->rest, 4, &count)) {
            return false;
        }
        count *= type->kind == CQL_MAP ? 2 : 1;
        e->n = count <= values_max ? (uint32_t)count : 0;
        return count <= values_max;
    }
    e->n = type->kind == CQL_VECTOR ? type->dimension : type->n;
    return type->kind == CQL_VECTOR || type->kind == CQL_TUPLE || type->kind == CQL_UDT;
}

static bool next_fixed(cql_elements *e, cql_value *value_out) {
    int bytes = cql_type_fixed_bytes(e->type->inner[0]);
    if (bytes <= 0 || (size_t)bytes > e->rest.n) {
        return false;
    }
    *value_out = cql_value_of(slice_of(e->rest.p, (size_t)bytes));
    e->rest = slice_skip(e->rest, (size_t)bytes);
    return true;
}

bool cql_elements_next(cql_elements *e, cql_value *value_out, const cql_type **type_out) {
    if (e->at >= e->n) {
        return false;
    }
    uint32_t at = e->at++;
    *type_out = e->type->inner[e->type->kind == CQL_MAP ? at % 2 : e->type->n == 1 ? 0 : at];
    if (e->type->kind == CQL_VECTOR) {
        return next_fixed(e, value_out);
    }
    return cql_value_decode(&e->rest, value_out);
}

bool cql_value_collect(arena *a, const cql_type *type, const cql_value *values, uint32_t n, cql_value *value_out) {
    bool counted = cql_type_is_collection(type);
    size_t bytes = counted ? 4 : 0;
    for (uint32_t i = 0; i < n; i++) {
        bytes += 4 + (cql_value_is_null(values[i]) ? 0 : values[i].bytes.n);
    }
    if (!arena_fits(a, bytes)) {
        return false;
    }
    buf out = buf_init(BUF_NO_LIMIT);
    out.p = arena_alloc_aligned(a, bytes + 1, 1);
    out.cap = bytes + 1;
    if (counted) {
        buf_add_be32(&out, type->kind == CQL_MAP ? n / 2 : n);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (type->kind == CQL_VECTOR) {
            buf_add_slice(&out, values[i].bytes);
        } else {
            cql_value_encode(&out, values[i]);
        }
    }
    *value_out = cql_value_of(buf_view(&out));
    return true;
}
