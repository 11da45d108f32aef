#include "index/key.h"

#include <endian.h>
#include <math.h>

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
    return mix(of, name) | 2; /* never one of the special ones */
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

/* Sign inverted for positive numbers, all bits for negative ones. NaN comes before all, zero has one sign. */
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

static void spell_text(buf *out, slice text) {
    buf_add_byte(out, INDEX_STRING);
    for (const char *zero; text.n && (zero = memchr(text.p, 0, text.n));) {
        buf_add(out, text.p, (size_t)(zero - text.p) + 1);
        buf_add_byte(out, (char)0xFF);
        text = slice_skip(text, (size_t)(zero - text.p) + 1);
    }
    buf_add(out, text.p ? text.p : "", text.n);
}

void index_spell_string(buf *out, slice text) {
    if (text.n <= INDEX_STRING_BYTES) {
        spell_text(out, text);
        buf_add(out, "\0\1", 2);
        return;
    }
    uint32_t hash = htobe32((uint32_t)mix(0, text));
    spell_text(out, slice_of(text.p, INDEX_STRING_BYTES));
    buf_add(out, "\0\2", 2);
    buf_add(out, &hash, sizeof hash);
}

void index_spell_prefix(buf *out, slice text) {
    spell_text(out, slice_of(text.p, text.n < INDEX_STRING_BYTES ? text.n : INDEX_STRING_BYTES));
}

void index_spell_element(buf *out, const doc_element *e) {
    switch (e->type) {
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
    default: /* objects, and what only other APIs have, which queries see as objects */
        index_spell_type(out, INDEX_OBJECT);
    }
}

void index_spell_downward(buf *out, size_t from) {
    for (size_t i = from; i < out->n; i++) {
        out->p[i] = (char)~out->p[i];
    }
}

/* ---- reading ---- */

/* Up to the zero that is not an escaped one. */
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
    v->whole = spelled.p[i + 1] == 1;
    v->text = slice_of(spelled.p + 1, i - 1);
    v->n = i + 2 + (v->whole ? 0 : 4);
    return v->n <= spelled.n;
}

bool index_value_read(slice spelled, index_value *value_out) {
    uint64_t bits;
    if (spelled.n == 0 || (unsigned char)spelled.p[0] < INDEX_UNDEFINED || (unsigned char)spelled.p[0] >= INDEX_TYPE_END) {
        return false;
    }
    *value_out = (index_value){.type = (index_type)spelled.p[0], .n = 1};
    value_out->whole = value_out->type < INDEX_ARRAY;
    if (value_out->type == INDEX_STRING) {
        return read_text(spelled, value_out);
    }
    if (value_out->type != INDEX_NUMBER) {
        return true;
    }
    if (spelled.n < 1 + sizeof bits) {
        return false;
    }
    memcpy(&bits, spelled.p + 1, sizeof bits);
    value_out->number = from_sortable(be64toh(bits));
    value_out->whole = fabs(value_out->number) < INDEX_NUMBER_EXACT;
    value_out->n = 1 + sizeof bits;
    return true;
}

void index_unescape(buf *out, slice text) {
    for (size_t i = 0; i < text.n; i++) {
        buf_add_byte(out, text.p[i]);
        i += text.p[i] == 0;
    }
}
