/* value_order.c — Cassandra's order of values, and bytes that sort in it.
 *
 * Sortable bytes of a value:
 *
 *   01            null, inside a tuple or user type
 *   02            the empty value of a type whose values have bytes
 *   03 body       any other value
 *
 *   integers, times    big-endian, with the sign bit inverted; a date is unsigned already
 *   boolean            00 or 01
 *   float, double      the bits; all inverted if negative, else with the sign bit set; any NaN is 7F…, larger than all
 *   texts, blobs       the bytes, 00 as 00 FF; then 00 00
 *   timeuuid           version, time from high to low, then the other bytes with inverted sign bits (Java compares them signed)
 *   uuid               version, then as for timeuuid the time if it is 1, then the bytes in order, unsigned
 *   varint             80000000 ± length in bytes, then the magnitude, inverted if negative
 *   decimal            80 for zero; 81, the exponent, the digits, 00; or 7F and the same inverted if negative
 *   collections        each element (of a map, key and value), then 00
 *   tuples, user types each element, those missing at the end as null
 */
#include <math.h>
#include <stdlib.h>

#include "base/hex.h"
#include "cql/big.h"
#include "cql/value_int.h"

enum { END = 0, NULL_ELEMENT = 1, EMPTY = 2, PRESENT = 3 };

/* ---- UUIDs ---- */

void cql__uuid_write(buf *out, slice uuid) {
    for (size_t i = 0; i < 16 && i < uuid.n; i++) {
        buf_addf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned char)uuid.p[i]);
    }
}

bool cql__uuid_read(slice text, uint8_t uuid_out[16]) {
    size_t n = 0;
    for (size_t i = 0; i < text.n && text.n == 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text.p[i] != '-') {
                return false;
            }
            continue;
        }
        int high = hex_digit(text.p[i]), low = hex_digit(text.p[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        uuid_out[n++] = (uint8_t)(high * 16 + low);
        i++;
    }
    return n == 16;
}

/* The first eight bytes with the version first, so that they sort: time_hi, time_mid, time_low for version 1; else in order. */
static void sortable_uuid(const cql_type *type, const unsigned char *u, unsigned char into[16]) {
    static const unsigned char by_time[] = {6, 7, 4, 5, 0, 1, 2, 3};
    unsigned version = u[6] >> 4;
    bool timed = type->kind == CQL_TIMEUUID;
    if (version == 1 || timed) {
        for (size_t i = 0; i < 8; i++) {
            into[i] = u[by_time[i]];
        }
    } else { /* the nibble of the version moves to the front, and those before it one place back */
        unsigned char carry = (unsigned char)(version << 4);
        for (size_t i = 0; i < 6; i++) {
            into[i] = (unsigned char)(carry | u[i] >> 4);
            carry = (unsigned char)(u[i] << 4);
        }
        into[6] = (unsigned char)(carry | (u[6] & 0x0F));
        into[7] = u[7];
    }
    for (size_t i = 8; i < 16; i++) {
        into[i] = timed ? u[i] ^ 0x80 : u[i];
    }
}

/* ---- sortable bytes ---- */

static void add_escaped(buf *out, slice bytes) {
    for (size_t i = 0; i < bytes.n; i++) {
        buf_add_byte(out, bytes.p[i]);
        if (bytes.p[i] == 0) {
            buf_add_byte(out, (char)0xFF);
        }
    }
    buf_add(out, "\0\0", 2);
}

static void add_signed(buf *out, slice bytes) {
    buf_add_byte(out, (char)(bytes.p[0] ^ 0x80));
    buf_add_slice(out, slice_skip(bytes, 1));
}

static void add_floating(buf *out, cql_value v) {
    double number = 0;
    bool nan = cql_as_double(v, &number) && isnan(number);
    bool negative = !nan && (v.bytes.p[0] & 0x80);
    for (size_t i = 0; i < v.bytes.n; i++) {
        char c = nan ? (char)(i == 0 ? 0x7F : 0xFF) : v.bytes.p[i];
        buf_add_byte(out, negative ? (char)~c : (char)(i == 0 ? c ^ 0x80 : c));
    }
}

static void add_varint(buf *out, slice bytes) {
    bool negative = bytes.p[0] & 0x80;
    mpz_t number;
    mpz_init(number);
    cql__mpz_of_bytes(number, bytes);
    size_t n = mpz_sgn(number) ? (mpz_sizeinbase(number, 2) + 7) / 8 : 0, from = out->n + 4;
    buf_add_be32(out, negative ? 0x80000000u - (uint32_t)n : 0x80000000u + (uint32_t)n);
    if (buf_reserve(out, n)) {
        mpz_export(out->p + from, NULL, 1, 1, 1, 0, number);
        for (size_t i = from; negative && i < from + n; i++) {
            out->p[i] = (char)~out->p[i];
        }
        out->n += n;
    }
    mpz_clear(number);
}

static void add_decimal_digits(buf *out, const cql__decimal *d) {
    char *text = mpz_get_str(NULL, 10, d->unscaled);
    slice digits = slice_str(text[0] == '-' ? text + 1 : text);
    bool negative = mpz_sgn(d->unscaled) < 0;
    int64_t exponent = (int64_t)digits.n - d->scale;
    size_t from = out->n + 1;
    while (digits.p[digits.n - 1] == '0') {
        digits.n--;
    }
    buf_add_byte(out, (char)(negative ? 0x7F : 0x81));
    buf_add_be64(out, (uint64_t)exponent ^ (uint64_t)1 << 63);
    buf_add_slice(out, digits);
    buf_add_byte(out, 0);
    for (size_t i = from; negative && i < out->n; i++) {
        out->p[i] = (char)~out->p[i];
    }
    free(text);
}

static void add_decimal(buf *out, cql_value v) {
    cql__decimal d = {.scale = 0};
    mpz_init(d.unscaled);
    if (!cql__decimal_of_value(&d, v)) {
        out->overflow = true; /* longer than this library computes with */
    } else if (mpz_sgn(d.unscaled) == 0) {
        buf_add_byte(out, (char)0x80);
    } else {
        add_decimal_digits(out, &d);
    }
    mpz_clear(d.unscaled);
}

static void add_elements(buf *out, const cql_type *type, cql_value v) {
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    uint32_t n = 0;
    for (bool more = cql_elements_init(&e, type, v); more && cql_elements_next(&e, &element, &inner); n++) {
        cql_sortable(out, inner, element);
    }
    if (cql_type_is_collection(type)) {
        buf_add_byte(out, END);
    }
    for (; type->kind != CQL_VECTOR && !cql_type_is_collection(type) && n < type->n; n++) {
        buf_add_byte(out, NULL_ELEMENT);
    }
}

static void add_body(buf *out, const cql_type *type, cql_value v) {
    unsigned char uuid[16];
    switch (type->kind) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_TIMESTAMP:
    case CQL_TIME:
        add_signed(out, v.bytes);
        break;
    case CQL_FLOAT:
    case CQL_DOUBLE:
        add_floating(out, v);
        break;
    case CQL_DATE:
        buf_add_slice(out, v.bytes);
        break;
    case CQL_BOOLEAN:
        buf_add_byte(out, v.bytes.p[0] != 0);
        break;
    case CQL_UUID:
    case CQL_TIMEUUID:
        sortable_uuid(type, (const unsigned char *)v.bytes.p, uuid);
        buf_add(out, uuid, sizeof uuid);
        break;
    case CQL_VARINT:
        add_varint(out, v.bytes);
        break;
    case CQL_DECIMAL:
        add_decimal(out, v);
        break;
    default:
        add_escaped(out, v.bytes);
    }
}

/* A value of a fixed size that has another one was never checked; it is sorted as bytes after all others. */
static bool is_sound(const cql_type *type, slice bytes) {
    int fixed = cql_type_fixed_bytes(type);
    return fixed < 0 || bytes.n == (size_t)fixed;
}

void cql_sortable(buf *out, const cql_type *type, cql_value v) {
    bool nested = type->n > 0;
    if (cql_value_is_null(v)) {
        buf_add_byte(out, NULL_ELEMENT);
    } else if (v.bytes.n == 0 && type->kind != CQL_TUPLE && type->kind != CQL_UDT) {
        buf_add_byte(out, EMPTY);
    } else if (!is_sound(type, v.bytes)) {
        buf_add_byte(out, PRESENT + 1);
        add_escaped(out, v.bytes);
    } else {
        buf_add_byte(out, PRESENT);
        if (nested) {
            add_elements(out, type, v);
        } else {
            add_body(out, type, v);
        }
    }
}

/* ---- comparing ---- */

static int sign_of(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_doubles(cql_value a, cql_value b) {
    double x = 0, y = 0;
    cql_as_double(a, &x);
    cql_as_double(b, &y);
    if (isnan(x) || isnan(y)) {
        return (isnan(x) != 0) - (isnan(y) != 0);
    }
    if (x == 0 && y == 0) {
        return (signbit(y) != 0) - (signbit(x) != 0);
    }
    return (x > y) - (x < y);
}

static int compare_big(const cql_type *type, cql_value a, cql_value b) {
    cql__decimal x = {.scale = 0}, y = {.scale = 0};
    int c;
    mpz_init(x.unscaled);
    mpz_init(y.unscaled);
    if (type->kind == CQL_VARINT) {
        cql__mpz_of_bytes(x.unscaled, a.bytes);
        cql__mpz_of_bytes(y.unscaled, b.bytes);
        c = mpz_cmp(x.unscaled, y.unscaled);
    } else if (cql__decimal_of_value(&x, a) && cql__decimal_of_value(&y, b)) {
        c = cql__decimal_compare(&x, &y);
    } else {
        c = slice_cmp(a.bytes, b.bytes);
    }
    mpz_clear(x.unscaled);
    mpz_clear(y.unscaled);
    return c;
}

static int compare_uuids(const cql_type *type, slice a, slice b) {
    unsigned char x[16], y[16];
    sortable_uuid(type, (const unsigned char *)a.p, x);
    sortable_uuid(type, (const unsigned char *)b.p, y);
    return memcmp(x, y, sizeof x);
}

static int compare_natives(const cql_type *type, cql_value a, cql_value b) {
    int64_t x = 0, y = 0;
    switch (type->kind) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_TIMESTAMP:
    case CQL_TIME:
        cql_as_bigint(a, &x);
        cql_as_bigint(b, &y);
        return sign_of(x, y);
    case CQL_BOOLEAN:
        return sign_of(a.bytes.p[0] != 0, b.bytes.p[0] != 0);
    case CQL_FLOAT:
    case CQL_DOUBLE:
        return compare_doubles(a, b);
    case CQL_UUID:
    case CQL_TIMEUUID:
        return compare_uuids(type, a.bytes, b.bytes);
    case CQL_VARINT:
    case CQL_DECIMAL:
        return compare_big(type, a, b);
    default:
        return slice_cmp(a.bytes, b.bytes);
    }
}

static int compare_elements(const cql_type *type, cql_value a, cql_value b) {
    bool tuple = type->kind == CQL_TUPLE || type->kind == CQL_UDT;
    cql_elements x, y;
    const cql_type *inner = NULL;
    bool more_x = cql_elements_init(&x, type, a), more_y = cql_elements_init(&y, type, b);
    for (;;) {
        cql_value element_x = cql_value_null(), element_y = cql_value_null();
        more_x = more_x && cql_elements_next(&x, &element_x, &inner);
        more_y = more_y && cql_elements_next(&y, &element_y, &inner);
        if ((!more_x && !more_y) || (!tuple && (!more_x || !more_y))) {
            return more_x - more_y;
        }
        int c = cql_compare(inner, element_x, element_y);
        if (c) {
            return c;
        }
    }
}

int cql_compare(const cql_type *type, cql_value a, cql_value b) {
    bool a_null = cql_value_is_null(a), b_null = cql_value_is_null(b);
    if (a_null || b_null) {
        return b_null - a_null;
    }
    if (type->kind == CQL_TUPLE || type->kind == CQL_UDT) {
        return compare_elements(type, a, b);
    }
    if (a.bytes.n == 0 || b.bytes.n == 0) {
        return (a.bytes.n != 0) - (b.bytes.n != 0);
    }
    bool a_sound = is_sound(type, a.bytes), b_sound = is_sound(type, b.bytes);
    if (!a_sound || !b_sound) {
        return a_sound == b_sound ? slice_cmp(a.bytes, b.bytes) : b_sound - a_sound;
    }
    return type->n ? compare_elements(type, a, b) : compare_natives(type, a, b);
}

/* ---- keys ---- */

bool cql_type_sorts(const cql_type *type) {
    switch (type->kind) {
    case CQL_ASCII:
    case CQL_TEXT:
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_BOOLEAN:
    case CQL_TIMESTAMP:
    case CQL_DATE:
    case CQL_TIME:
        return true;
    default:
        return false;
    }
}

bool cql_type_identifies(const cql_type *type) {
    switch (type->kind) {
    case CQL_UUID:
    case CQL_TIMEUUID:
    case CQL_INET:
    case CQL_VARINT:
    case CQL_DURATION:
    case CQL_BLOB:
    case CQL_CUSTOM:
        return true;
    default:
        return cql_type_sorts(type);
    }
}

/* Six bits a character, first bits first: the texts sort as the bytes do. */
static slice ordered_text(arena *a, slice bytes) {
    static const char alphabet[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    char *text = arena_alloc_aligned(a, bytes.n * 4 / 3 + 4, 1);
    size_t n = 0;
    unsigned held = 0, bits = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        held = held << 8 | (unsigned char)bytes.p[i];
        for (bits += 8; bits >= 6; bits -= 6) {
            text[n++] = alphabet[held >> (bits - 6) & 63];
        }
        held &= 0xFF;
    }
    if (bits) {
        text[n++] = alphabet[held << (6 - bits) & 63];
    }
    return slice_of(text, n);
}

err cql_key_text(op *o, const cql_type *type, cql_value v, bool clustering, slice *text_out) {
    buf bytes = buf_init_counted(64 * 1024, o->budget);
    if (clustering) {
        cql_sortable(&bytes, type, v);
    } else {
        buf_add_slice(&bytes, v.bytes);
    }
    bool ok = buf_ok(&bytes) && arena_fits(o->arena, bytes.n * 4 / 3 + 4);
    *text_out = ok ? ordered_text(o->arena, buf_view(&bytes)) : SLICE_EMPTY;
    buf_free(&bytes);
    return ok ? OK : op_fail(o, E_BAD_REQUEST, "Key length of %zu is longer than maximum of 65535", v.bytes.n);
}

/* ---- normalising ---- */

typedef struct entry {
    cql_value key, value;
    const cql_type *type;
    uint32_t position;
} entry;

static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int c = cql_compare(x->type, x->key, y->key);
    return c ? c : sign_of(x->position, y->position);
}

/* Keeps the last of equal keys of a map, the first of equal elements of a set. */
static uint32_t drop_duplicates(entry *entries, uint32_t n, bool map) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kept && cql_compare(entries[i].type, entries[kept - 1].key, entries[i].key) == 0) {
            if (map) {
                entries[kept - 1] = entries[i];
            }
            continue;
        }
        entries[kept++] = entries[i];
    }
    return kept;
}

static bool is_ordered(const cql_type *type) {
    return type->kind == CQL_SET || type->kind == CQL_MAP;
}

static bool has_ordered(const cql_type *type) {
    for (uint32_t i = 0; i < type->n; i++) {
        if (has_ordered(type->inner[i])) {
            return true;
        }
    }
    return is_ordered(type);
}

static err normalised_elements(op *o, const cql_type *type, cql_value v, cql_value **values_out, uint32_t *n_out) {
    cql_elements e;
    const cql_type *inner;
    cql_elements_init(&e, type, v);
    if (!arena_fits(o->arena, (e.n + 1) * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    cql_value *values = arena_array(o->arena, cql_value, e.n + 1);
    *n_out = 0;
    while (cql_elements_next(&e, &values[*n_out], &inner)) {
        TRY(cql_value_normalise(o, inner, values[*n_out], &values[*n_out]));
        (*n_out)++;
    }
    *values_out = values;
    return OK;
}

static err sort_entries(op *o, const cql_type *type, cql_value *values, uint32_t *n) {
    bool map = type->kind == CQL_MAP;
    uint32_t count = map ? *n / 2 : *n;
    if (!arena_fits(o->arena, (count + 1) * sizeof(entry))) {
        return budget_error(o->budget);
    }
    entry *entries = arena_array(o->arena, entry, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (entry){values[map ? 2 * i : i], values[map ? 2 * i + 1 : i], type->inner[0], i};
    }
    qsort(entries, count, sizeof *entries, compare_entries);
    count = drop_duplicates(entries, count, map);
    for (uint32_t i = 0; i < count; i++) {
        values[map ? 2 * i : i] = entries[i].key;
        if (map) {
            values[2 * i + 1] = entries[i].value;
        }
    }
    *n = map ? 2 * count : count;
    return OK;
}

err cql_value_normalise(op *o, const cql_type *type, cql_value v, cql_value *value_out) {
    cql_value *values = NULL;
    uint32_t n = 0;
    *value_out = v;
    if (cql_value_is_null(v) || v.bytes.n == 0 || !has_ordered(type) || type->kind == CQL_VECTOR) {
        return OK;
    }
    TRY(normalised_elements(o, type, v, &values, &n));
    if (is_ordered(type)) {
        TRY(sort_entries(o, type, values, &n));
    }
    return cql_value_collect(o->arena, type, values, n, value_out) ? OK : budget_error(o->budget);
}
