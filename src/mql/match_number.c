/* match_number.c — $mod, $bitsAllSet, $bitsAnySet, $bitsAllClear, $bitsAnyClear. */
#include <math.h>

#include "mql/match_int.h"

/* ---- $mod ---- */

typedef struct mod {
    int64_t divisor, remainder;
} mod;

/* The integer part of a number; false if there is none that fits 64 bits. */
static bool whole_part(mql_value v, int64_t *whole_out) {
    if (mql_as_integer(v, whole_out)) {
        return true;
    }
    double number = mql_is_number(v) ? trunc(mql_as_double(v)) : NAN;
    if (!(number >= -0x1p63 && number < 0x1p63)) {
        return false;
    }
    *whole_out = (int64_t)number;
    return true;
}

static err parse_mod_number(mql__filter_parser *p, mql_value v, const char *what, int64_t *number_out) {
    if (!mql_is_number(v)) {
        return mql_fail(mql__op(p), 2, "malformed mod, %s not a number", what);
    }
    return whole_part(v, number_out) ? OK : mql_fail(mql__op(p), 2, "malformed mod, %s value is invalid", what);
}

err mql__parse_mod(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql_value list = mql_of(of->e);
    size_t n = mql_length(list);
    mod *m = arena_new(mql__arena(p), mod);
    if (list.type != BSON_TYPE_ARRAY) {
        return mql_fail(mql__op(p), 2, "malformed mod, needs to be an array");
    }
    if (n != 2) {
        return mql_fail(mql__op(p), 2, "malformed mod, %s elements", n < 2 ? "not enough" : "too many");
    }
    TRY(parse_mod_number(p, mql_element_at(list, 0), "divisor", &m->divisor));
    TRY(parse_mod_number(p, mql_element_at(list, 1), "remainder", &m->remainder));
    if (m->divisor == 0) {
        return mql_fail(mql__op(p), 2, "divisor cannot be 0");
    }
    *node_out = mql__node(p, MQL_MOD, of->path, list);
    (*node_out)->detail = m;
    return OK;
}

err mql__test_mod(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    (void)t;
    const mod *m = n->detail;
    int64_t number;
    *matches_out = mql_is_number(v) && whole_part(v, &number) && (m->divisor == -1 ? 0 : number % m->divisor) == m->remainder;
    return OK;
}

/* ---- bits ---- */

/* Positions of bits to test, ascending without duplicates. */
typedef struct bits {
    uint32_t *positions;
    size_t n;
} bits;

static err bad_position(mql__filter_parser *p, const doc_element *e, const char *what) {
    slice shown = mql__shown(p, e);
    return mql_fail(mql__op(p), 2, "bit positions %s%.*s", what, (int)shown.n, shown.p);
}

static err parse_position(mql__filter_parser *p, const doc_element *e, uint32_t *position_out) {
    mql_value v = mql_of(e);
    int64_t number;
    double nearest = mql_is_number(v) ? mql_as_double(v) : 0;
    if (nearest != nearest) {
        return bad_position(p, e, "cannot take a NaN: ");
    }
    if (fabs(nearest) > INT32_MAX) {
        return bad_position(p, e, "cannot be represented as a 32-bit signed integer: ");
    }
    if (!mql_as_integer(v, &number)) {
        return bad_position(p, e, "must be an integer but got: ");
    }
    if (number < 0) {
        return bad_position(p, e, "must be >= 0 but got: ");
    }
    *position_out = (uint32_t)number;
    return OK;
}

static err positions_of_array(mql__filter_parser *p, mql_value list, bits *b) {
    doc_walk w;
    doc_element e;
    b->positions = mql__new_array(p, uint32_t, mql_length(list) + 1);
    if (!b->positions) {
        return mql__room(p);
    }
    for (doc_walk_init(&w, list.bytes); doc_walk_next(&w, &e); b->n++) {
        TRY(parse_position(p, &e, &b->positions[b->n]));
    }
    return OK;
}

static bool bit_of_bytes(slice bytes, uint32_t position) {
    return position / 8 < bytes.n && (unsigned char)bytes.p[position / 8] >> position % 8 & 1;
}

static err positions_of_mask(mql__filter_parser *p, slice mask, bits *b) {
    b->positions = mql__new_array(p, uint32_t, mask.n * 8 + 1);
    if (!b->positions) {
        return mql__room(p);
    }
    for (uint32_t i = 0; i < mask.n * 8; i++) {
        if (bit_of_bytes(mask, i)) {
            b->positions[b->n++] = i;
        }
    }
    return OK;
}

static err parse_mask(mql__filter_parser *p, const doc_element *e, bits *b) {
    int64_t number = 0;
    char bytes[8];
    TRY(mql__parse_integer(p, e, &number));
    if (number < 0) {
        slice shown = mql__shown(p, e);
        return mql_fail(mql__op(p), 9, "Expected a non-negative number in: %.*s", (int)shown.n, shown.p);
    }
    doc_store_i64(bytes, number);
    return positions_of_mask(p, slice_of(bytes, sizeof bytes), b);
}

static slice binary_bytes(mql_value binary) {
    return slice_skip(binary.bytes, 5);
}

static err parse_bits(mql__filter_parser *p, mql_node_kind kind, const mql__operand *of, mql_node **node_out) {
    bits *b = arena_new(mql__arena(p), bits);
    mql_value v = mql_of(of->e);
    if (v.type == BSON_TYPE_ARRAY) {
        TRY(positions_of_array(p, v, b));
    } else if (mql_is_number(v)) {
        TRY(parse_mask(p, of->e, b));
    } else if (v.type == BSON_TYPE_BINARY) {
        TRY(positions_of_mask(p, binary_bytes(v), b));
    } else {
        slice shown = mql__shown(p, of->e);
        return mql_fail(mql__op(p), 2, "%.*s takes an Array, a number, or a BinData but received: %.*s", slice_shown(of->path),
                        of->path.p ? of->path.p : "", (int)shown.n, shown.p);
    }
    *node_out = mql__node(p, kind, of->path, v);
    (*node_out)->detail = b;
    return OK;
}

err mql__parse_bits_all_set(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_bits(p, MQL_BITS_ALL_SET, of, node_out);
}

err mql__parse_bits_any_set(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_bits(p, MQL_BITS_ANY_SET, of, node_out);
}

err mql__parse_bits_all_clear(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_bits(p, MQL_BITS_ALL_CLEAR, of, node_out);
}

err mql__parse_bits_any_clear(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_bits(p, MQL_BITS_ANY_CLEAR, of, node_out);
}

/* A negative number has its sign bit at all positions from 63 on. */
static bool bit_of_number(int64_t number, uint32_t position) {
    return number >> (position < 63 ? position : 63) & 1;
}

err mql__test_bits(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    const bits *b = n->detail;
    int64_t number = 0;
    bool is_binary = v.type == BSON_TYPE_BINARY;
    *matches_out = false;
    if (!is_binary && (!mql_is_number(v) || !mql_as_integer(v, &number))) {
        return OK;
    }
    bool set = n->kind == MQL_BITS_ALL_SET || n->kind == MQL_BITS_ANY_SET;
    bool all = n->kind == MQL_BITS_ALL_SET || n->kind == MQL_BITS_ALL_CLEAR;
    TRY(mql_pay(t->run, b->n / 8));
    for (size_t i = 0; i < b->n; i++) {
        bool bit = is_binary ? bit_of_bytes(binary_bytes(v), b->positions[i]) : bit_of_number(number, b->positions[i]);
        if ((bit == set) != all) { /* one that decides */
            *matches_out = !all;
            return OK;
        }
    }
    *matches_out = all;
    return OK;
}
