#include "api/cassandra/notation.h"

bool cass_take_byte(slice *rest, uint8_t *byte_out) {
    uint64_t number = 0;
    bool good = slice_take_be(rest, 1, &number);
    *byte_out = (uint8_t)number;
    return good;
}

bool cass_take_short(slice *rest, uint16_t *number_out) {
    uint64_t number = 0;
    bool good = slice_take_be(rest, 2, &number);
    *number_out = (uint16_t)number;
    return good;
}

bool cass_take_int(slice *rest, int32_t *number_out) {
    uint64_t number = 0;
    bool good = slice_take_be(rest, 4, &number);
    *number_out = (int32_t)(uint32_t)number;
    return good;
}

bool cass_take_long(slice *rest, int64_t *number_out) {
    uint64_t number = 0;
    bool good = slice_take_be(rest, 8, &number);
    *number_out = (int64_t)number;
    return good;
}

static bool take_n(slice *rest, size_t n, slice *bytes_out) {
    if (rest->n < n) {
        return false;
    }
    *bytes_out = slice_of(rest->p, n);
    *rest = slice_skip(*rest, n);
    return true;
}

bool cass_take_string(slice *rest, slice *text_out) {
    uint16_t n;
    return cass_take_short(rest, &n) && take_n(rest, n, text_out);
}

bool cass_take_long_string(slice *rest, slice *text_out) {
    int32_t n;
    return cass_take_int(rest, &n) && n >= 0 && take_n(rest, (size_t)n, text_out);
}

bool cass_take_bytes(slice *rest, slice *bytes_out, bool *null_out) {
    int32_t n;
    *bytes_out = SLICE_EMPTY;
    if (!cass_take_int(rest, &n)) {
        return false;
    }
    *null_out = n < 0;
    return n < 0 || take_n(rest, (size_t)n, bytes_out);
}

void cass_put_short(buf *out, uint16_t number) {
    char bytes[2] = {(char)(number >> 8), (char)number};
    buf_add(out, bytes, 2);
}

void cass_put_int(buf *out, int32_t number) {
    buf_add_be32(out, (uint32_t)number);
}

void cass_put_long(buf *out, int64_t number) {
    buf_add_be64(out, (uint64_t)number);
}

void cass_put_string(buf *out, slice text) {
    slice cut = slice_of(text.p, text.n > UINT16_MAX ? UINT16_MAX : text.n);
    cass_put_short(out, (uint16_t)cut.n);
    buf_add_slice(out, cut);
}

void cass_put_bytes(buf *out, slice bytes) {
    cass_put_int(out, (int32_t)bytes.n);
    buf_add_slice(out, bytes);
}

void cass_put_null(buf *out) {
    cass_put_int(out, -1);
}

void cass_put_inet(buf *out, slice address, int32_t port) {
    buf_add_byte(out, (char)address.n);
    buf_add_slice(out, address);
    cass_put_int(out, port);
}
