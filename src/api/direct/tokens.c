#include "api/direct/tokens.h"

#include <assert.h>

/* How many bytes a value has, or, of strings and bytes, its length has. */
static const struct {
    uint8_t bytes;
    bool counted;
} forms[DIRECT_TYPES] = {
    [DIRECT_BYTE] = {1, false},   [DIRECT_U16] = {2, false},   [DIRECT_U32] = {4, false},    [DIRECT_I32] = {4, false},
    [DIRECT_U64] = {8, false},    [DIRECT_I64] = {8, false},   [DIRECT_GUID] = {16, false},  [DIRECT_TEXT8] = {1, true},
    [DIRECT_TEXT16] = {2, true},  [DIRECT_TEXT32] = {4, true}, [DIRECT_BYTES8] = {1, true},  [DIRECT_BYTES16] = {2, true},
    [DIRECT_BYTES32] = {4, true}, [DIRECT_FLOAT] = {4, false}, [DIRECT_DOUBLE] = {8, false},
};

enum { TOKEN_HEADER = 3 };

static uint64_t number_of(uint8_t type, slice value) {
    uint64_t number = type <= DIRECT_I64 ? direct_load(value.p, value.n) : 0;
    return type == DIRECT_I32 ? (uint64_t)(int64_t)(int32_t)number : number;
}

bool direct_token_take(slice *rest, direct_token *token_out) {
    slice s = *rest;
    if (s.n < TOKEN_HEADER || (uint8_t)s.p[2] >= DIRECT_TYPES) {
        return false;
    }
    *token_out = (direct_token){.id = (uint16_t)direct_load(s.p, 2), .type = (uint8_t)s.p[2]};
    size_t n = forms[token_out->type].bytes;
    s = slice_skip(s, TOKEN_HEADER);
    if (forms[token_out->type].counted) {
        if (s.n < n) {
            return false;
        }
        size_t length = (size_t)direct_load(s.p, n);
        s = slice_skip(s, n);
        n = length;
    }
    if (s.n < n) {
        return false;
    }
    token_out->value = slice_of(s.p, n);
    token_out->number = number_of(token_out->type, token_out->value);
    *rest = slice_skip(s, n);
    return true;
}

/* ---- writing ---- */

void direct_put(buf *out, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        buf_add_byte(out, (char)(value >> (8 * i)));
    }
}

static void add_head(buf *out, uint16_t id, direct_type type) {
    direct_put(out, id, 2);
    direct_put(out, type, 1);
}

void direct_add_number(buf *out, uint16_t id, direct_type type, uint64_t value) {
    assert(type <= DIRECT_I64);
    add_head(out, id, type);
    direct_put(out, value, forms[type].bytes);
}

void direct_add_double(buf *out, uint16_t id, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_head(out, id, DIRECT_DOUBLE);
    direct_put(out, bits, sizeof bits);
}

void direct_add_text(buf *out, uint16_t id, direct_type type, slice value) {
    assert(type == DIRECT_TEXT8 || type == DIRECT_TEXT16);
    if (value.n >> (8 * forms[type].bytes)) {
        out->overflow = true;
        return;
    }
    add_head(out, id, type);
    direct_put(out, value.n, forms[type].bytes);
    buf_add_slice(out, value);
}

void direct_frame_begin(buf *out, uint32_t status, const uint8_t activity[static DIRECT_ACTIVITY_BYTES]) {
    direct_put(out, 0, 4);
    direct_put(out, status, 4);
    buf_add(out, activity, DIRECT_ACTIVITY_BYTES);
}

void direct_frame_end(buf *out, size_t at) {
    if (!buf_ok(out)) {
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        out->p[at + i] = (char)((out->n - at) >> (8 * i));
    }
}

void direct_guid_text(const uint8_t bytes[static DIRECT_ACTIVITY_BYTES], char text_out[static DIRECT_GUID_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    static const uint8_t order[DIRECT_ACTIVITY_BYTES] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    size_t n = 0;
    for (size_t i = 0; i < DIRECT_ACTIVITY_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text_out[n++] = '-';
        }
        text_out[n++] = digits[bytes[order[i]] >> 4];
        text_out[n++] = digits[bytes[order[i]] & 15];
    }
}
