#include "index/entry_key.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "doc/order.h"

enum { HASH_BYTES = 4, BINARY_HEAD = 1 + 4 + 1 /* type, length, subtype */ };

/* ---- paths ---- */

static uint64_t scramble(uint64_t h) {
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDu;
    h ^= h >> 33;
    h *= 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 33);
}

static uint64_t mix(uint64_t h, slice bytes) {
    const char *p = bytes.p;
    size_t n = bytes.n;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = scramble(h ^ word) + 0x9E3779B97F4A7C15u;
    }
    uint64_t rest = 0;
    memcpy(&rest, p ? p : "", n);
    return scramble(h ^ rest ^ ((uint64_t)bytes.n << 56));
}

index_path index_path_member(index_path of, slice name) {
    return mix(of, name) | 2; /* never INDEX_PATH_SHAPES or INDEX_PATH_LARGE */
}

index_path index_path_element(index_path of) {
    return scramble(of + 0x5B5D) | 2;
}

index_path index_path_mixed(index_path a, uint64_t with) {
    return scramble(a * 31 + with) | 2;
}

/* ---- values ---- */

void index_spell_type(buf *out, index_type type) {
    buf_add_byte(out, (char)type);
}

/* Inverts the sign bit of positive numbers and all bits of negative ones. NaN sorts first; -0 becomes 0. */
static uint64_t sortable(double number) {
    uint64_t bits;
    if (isnan(number)) {
        return 0;
    }
    number = number == 0 ? 0 : number;
    memcpy(&bits, &number, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static double from_sortable(uint64_t bits) {
    double number;
    if (bits == 0) {
        return (double)NAN;
    }
    bits = bits >> 63 ? bits & ~((uint64_t)1 << 63) : ~bits;
    memcpy(&number, &bits, sizeof number);
    return number;
}

void index_spell_number(buf *out, double number) {
    uint64_t bits = htobe64(sortable(number));
    buf_add_byte(out, INDEX_NUMBER);
    buf_add(out, &bits, sizeof bits);
}

static void spell_text(buf *out, index_type type, slice text) {
    buf_add_byte(out, (char)type);
    for (const char *zero; text.n && (zero = memchr(text.p, 0, text.n));) {
        buf_add(out, text.p, (size_t)(zero - text.p) + 1);
        buf_add_byte(out, (char)0xFF);
        text = slice_skip(text, (size_t)(zero - text.p) + 1);
    }
    buf_add(out, text.p ? text.p : "", text.n);
}

static void spell_hash(buf *out, slice bytes) {
    buf_add_be32(out, (uint32_t)mix(0, bytes));
}

static void spell_ended(buf *out, index_type type, slice text) {
    if (text.n <= INDEX_STRING_BYTES) {
        spell_text(out, type, text);
        buf_add(out, "\0\1", 2);
        return;
    }
    spell_text(out, type, slice_of(text.p, INDEX_STRING_BYTES));
    buf_add(out, "\0\2", 2);
    spell_hash(out, text);
}

void index_spell_string(buf *out, slice text) {
    spell_ended(out, INDEX_STRING, text);
}

void index_spell_prefix(buf *out, slice text) {
    spell_text(out, INDEX_STRING, slice_of(text.p, text.n < INDEX_STRING_BYTES ? text.n : INDEX_STRING_BYTES));
}

/* ---- types that JSON lacks ---- */

/* Spells as doc/order.h does, except for the type byte. */
static void spell_ordered(buf *out, index_type type, const doc_element *e) {
    size_t at = out->n;
    doc_order_spell(out, e, false);
    if (out->n > at) {
        out->p[at] = (char)type;
    }
}

static void spell_binary(buf *out, const doc_element *e) {
    slice bytes = slice_skip(e->value, 5);
    if (bytes.n <= INDEX_STRING_BYTES) {
        spell_ordered(out, INDEX_BINARY, e);
        return;
    }
    buf_add_byte(out, INDEX_BINARY);
    buf_add_be32(out, (uint32_t)bytes.n);
    buf_add(out, e->value.p + 4, 1 + INDEX_STRING_BYTES);
    spell_hash(out, bytes);
}

static void spell_typed(buf *out, const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_MINKEY:
        index_spell_type(out, INDEX_MIN_KEY);
        break;
    case BSON_TYPE_MAXKEY:
        index_spell_type(out, INDEX_MAX_KEY);
        break;
    case BSON_TYPE_DECIMAL128:
        spell_ordered(out, INDEX_DECIMAL, e);
        break;
    case BSON_TYPE_BINARY:
        spell_binary(out, e);
        break;
    case BSON_TYPE_OID:
        spell_ordered(out, INDEX_OBJECT_ID, e);
        break;
    case BSON_TYPE_DATE_TIME:
        spell_ordered(out, INDEX_DATE, e);
        break;
    case BSON_TYPE_TIMESTAMP:
        spell_ordered(out, INDEX_TIMESTAMP, e);
        break;
    case BSON_TYPE_REGEX:
        spell_ended(out, INDEX_REGEX, slice_of(e->value.p, e->value.n - 1));
        break;
    case BSON_TYPE_CODE:
    case BSON_TYPE_SYMBOL:
        spell_ended(out, e->type == BSON_TYPE_CODE ? INDEX_CODE : INDEX_SYMBOL, doc_element_text(e));
        break;
    default:
        index_spell_type(out, e->type == BSON_TYPE_DBPOINTER ? INDEX_DB_POINTER : INDEX_SCOPED_CODE);
    }
}

/* ---- elements ---- */

void index_spell_element(buf *out, const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_UNDEFINED:
        index_spell_type(out, INDEX_UNDEFINED);
        break;
    case BSON_TYPE_NULL:
        index_spell_type(out, INDEX_NULL);
        break;
    case BSON_TYPE_BOOL:
        index_spell_type(out, e->value.p[0] ? INDEX_TRUE : INDEX_FALSE);
        break;
    case BSON_TYPE_INT32:
        index_spell_number(out, doc_load_i32(e->value.p));
        break;
    case BSON_TYPE_INT64:
        index_spell_number(out, (double)doc_load_i64(e->value.p));
        break;
    case BSON_TYPE_DOUBLE:
        index_spell_number(out, doc_load_double(e->value.p));
        break;
    case BSON_TYPE_UTF8:
        index_spell_string(out, doc_element_text(e));
        break;
    case BSON_TYPE_ARRAY:
        index_spell_type(out, INDEX_ARRAY);
        break;
    case BSON_TYPE_DOCUMENT:
        index_spell_type(out, INDEX_OBJECT);
        break;
    default:
        spell_typed(out, e);
    }
}

bool index_spell_equal_prefix(buf *out, const doc_element *e) {
    index_value v;
    size_t at = out->n;
    index_spell_element(out, e);
    if (!index_value_read(slice_of(out->p + at, out->n - at), &v) || v.placed) {
        return buf_ok(out);
    }
    out->n = at + v.plain_n;
    return false;
}

void index_spell_downward(buf *out, size_t from) {
    for (size_t i = from; i < out->n; i++) {
        out->p[i] = (char)~out->p[i];
    }
}

/* ---- reading ---- */

/* The text ends at the first zero byte that is not escaped. */
static bool read_text(slice spelled, index_value *v) {
    size_t i = 1;
    for (; i + 1 < spelled.n; i++) {
        if (spelled.p[i] == 0) {
            if ((unsigned char)spelled.p[i + 1] != 0xFF) {
                break;
            }
            i++;
        }
    }
    if (i + 1 >= spelled.n || (spelled.p[i + 1] != 1 && spelled.p[i + 1] != 2)) {
        return false;
    }
    v->whole = v->placed = spelled.p[i + 1] == 1;
    v->text = slice_of(spelled.p + 1, i - 1);
    v->plain_n = i + 2;
    v->n = v->plain_n + (v->whole ? 0 : HASH_BYTES);
    return v->n <= spelled.n;
}

static bool read_number(slice spelled, index_value *v) {
    uint64_t bits;
    if (spelled.n < 1 + sizeof bits) {
        return false;
    }
    memcpy(&bits, spelled.p + 1, sizeof bits);
    v->number = from_sortable(be64toh(bits));
    v->whole = v->placed = fabs(v->number) < INDEX_NUMBER_EXACT;
    v->n = v->plain_n = 1 + sizeof bits;
    return true;
}

static bool read_binary(slice spelled, index_value *v) {
    uint32_t n;
    if (spelled.n < BINARY_HEAD) {
        return false;
    }
    memcpy(&n, spelled.p + 1, sizeof n);
    n = be32toh(n);
    v->whole = v->placed = n <= INDEX_STRING_BYTES;
    v->plain_n = BINARY_HEAD + (v->whole ? n : INDEX_STRING_BYTES);
    v->n = v->plain_n + (v->whole ? 0 : HASH_BYTES);
    return v->n <= spelled.n;
}

/* Converts a spelling to that of doc/order.h: a copy with another type byte. */
static slice ordered(slice spelled, doc_bracket bracket, char space[INDEX_VALUE_BYTES_MAX]) {
    size_t n = spelled.n < INDEX_VALUE_BYTES_MAX ? spelled.n : INDEX_VALUE_BYTES_MAX;
    memcpy(space, spelled.p, n);
    space[0] = (char)bracket;
    return slice_of(space, n);
}

/* Not whole: equal Decimal128s such as 1.0 and 1.00 have the same spelling. */
static bool read_decimal(slice spelled, index_value *v) {
    char space[INDEX_VALUE_BYTES_MAX];
    bson_type_t type;
    v->placed = true;
    v->whole = false;
    bool read = doc_order_read(ordered(spelled, DOC_BRACKET_NUMBER, space), false, NULL, &type, &v->n);
    v->plain_n = v->n;
    return read;
}

static bool read_fixed(slice spelled, index_value *v, size_t n) {
    v->n = v->plain_n = n;
    return n <= spelled.n;
}

bool index_value_read(slice spelled, index_value *value_out) {
    if (spelled.n == 0 || (unsigned char)spelled.p[0] < INDEX_UNDEFINED || (unsigned char)spelled.p[0] >= INDEX_TYPE_END) {
        return false;
    }
    *value_out = (index_value){.type = (index_type)spelled.p[0], .whole = true, .placed = true};
    switch (value_out->type) {
    case INDEX_NUMBER:
        return read_number(spelled, value_out);
    case INDEX_STRING:
    case INDEX_REGEX:
    case INDEX_CODE:
    case INDEX_SYMBOL:
        return read_text(spelled, value_out);
    case INDEX_BINARY:
        return read_binary(spelled, value_out);
    case INDEX_DECIMAL:
        return read_decimal(spelled, value_out);
    case INDEX_OBJECT_ID:
        return read_fixed(spelled, value_out, 1 + 12);
    case INDEX_DATE:
    case INDEX_TIMESTAMP:
        return read_fixed(spelled, value_out, 1 + 8);
    case INDEX_ARRAY:
    case INDEX_OBJECT:
    case INDEX_DB_POINTER:
    case INDEX_SCOPED_CODE:
        value_out->whole = value_out->placed = false;
        return read_fixed(spelled, value_out, 1);
    default:
        return read_fixed(spelled, value_out, 1);
    }
}

void index_unescape(buf *out, slice text) {
    for (size_t i = 0; i < text.n; i++) {
        buf_add_byte(out, text.p[i]);
        i += text.p[i] == 0;
    }
}

/* Makes a BSON string: length, bytes, 00. */
static bool make_text(const index_value *v, buf *value) {
    size_t at = value->n;
    char length[4];
    buf_add(value, "\0\0\0\0", sizeof length);
    index_unescape(value, v->text);
    buf_add_byte(value, 0);
    doc_store_i32(length, (int32_t)(value->n - at - sizeof length));
    if (buf_ok(value)) {
        memcpy(value->p + at, length, sizeof length);
    }
    return buf_ok(value);
}

/* Makes a BSON regular expression: pattern, 00, options, 00. */
static bool make_regex(const index_value *v, buf *value) {
    index_unescape(value, v->text);
    buf_add_byte(value, 0);
    return buf_ok(value);
}

/* doc_order_read may return a narrower type; its value has at most 34 digits, so converting it by text is exact. */
static bool make_decimal(slice spelled, buf *value, bson_type_t *type_out) {
    char space[INDEX_VALUE_BYTES_MAX], text[64], bytes[16];
    buf number = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    size_t n;
    bson_decimal128_t decimal;
    if (!doc_order_read(ordered(spelled, DOC_BRACKET_NUMBER, space), false, &number, type_out, &n)) {
        return false;
    }
    if (*type_out != BSON_TYPE_DECIMAL128) {
        if (*type_out == BSON_TYPE_DOUBLE) {
            snprintf(text, sizeof text, "%.33e", doc_load_double(bytes));
        } else {
            snprintf(text, sizeof text, "%" PRId64, *type_out == BSON_TYPE_INT32 ? doc_load_i32(bytes) : doc_load_i64(bytes));
        }
        if (!bson_decimal128_from_string(text, &decimal)) {
            return false;
        }
        doc_store_i64(bytes, (int64_t)decimal.low);
        doc_store_i64(bytes + 8, (int64_t)decimal.high);
        *type_out = BSON_TYPE_DECIMAL128;
    }
    buf_add(value, bytes, sizeof bytes);
    return buf_ok(value);
}

bool index_value_typed(slice spelled, const index_value *v, buf *value, bson_type_t *type_out) {
    char space[INDEX_VALUE_BYTES_MAX];
    size_t n;
    if (!v->placed) {
        return false;
    }
    switch (v->type) {
    case INDEX_DECIMAL:
        return make_decimal(spelled, value, type_out);
    case INDEX_MIN_KEY:
    case INDEX_MAX_KEY:
        *type_out = v->type == INDEX_MIN_KEY ? BSON_TYPE_MINKEY : BSON_TYPE_MAXKEY;
        return true;
    case INDEX_BINARY:
        return doc_order_read(ordered(spelled, DOC_BRACKET_BINARY, space), false, value, type_out, &n);
    case INDEX_OBJECT_ID:
        return doc_order_read(ordered(spelled, DOC_BRACKET_OBJECT_ID, space), false, value, type_out, &n);
    case INDEX_DATE:
        return doc_order_read(ordered(spelled, DOC_BRACKET_DATE, space), false, value, type_out, &n);
    case INDEX_TIMESTAMP:
        return doc_order_read(ordered(spelled, DOC_BRACKET_TIMESTAMP, space), false, value, type_out, &n);
    case INDEX_REGEX:
        *type_out = BSON_TYPE_REGEX;
        return make_regex(v, value);
    case INDEX_CODE:
    case INDEX_SYMBOL:
        *type_out = v->type == INDEX_CODE ? BSON_TYPE_CODE : BSON_TYPE_SYMBOL;
        return make_text(v, value);
    default:
        return false;
    }
}
