#include "api/mongo/compress.h"

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

const char *const compress_names[COMPRESS_COUNT] = {"noop", "snappy", "zlib", "zstd"};

/* ---- expanding ---- */

static bool copy(slice bytes, char *to, size_t n) {
    if (bytes.n != n) {
        return false;
    }
    memcpy(to, bytes.p, n);
    return true;
}

static bool expand_snappy(slice bytes, char *to, size_t n) {
    size_t length = 0, room = n;
    return snappy_uncompressed_length(bytes.p, bytes.n, &length) == SNAPPY_OK && length == n &&
           snappy_uncompress(bytes.p, bytes.n, to, &room) == SNAPPY_OK && room == n;
}

static bool expand_zlib(slice bytes, char *to, size_t n) {
    uLongf room = n;
    return uncompress((Bytef *)to, &room, (const Bytef *)bytes.p, bytes.n) == Z_OK && room == n;
}

static bool expand_zstd(slice bytes, char *to, size_t n) {
    return ZSTD_decompress(to, n, bytes.p, bytes.n) == n;
}

bool compress_expand(wire_compressor with, slice bytes, char *to, size_t n) {
    static bool (*const expand[COMPRESS_COUNT])(slice, char *, size_t) = {copy, expand_snappy, expand_zlib, expand_zstd};
    return with < COMPRESS_COUNT && n > 0 && expand[with](bytes, to, n);
}

/* ---- compressing ---- */

enum { ZSTD_LEVEL = 1, ZLIB_LEVEL = 1 }; /* compression runs on loops, so speed matters most */

static size_t bound_of(wire_compressor with, size_t n) {
    return with == COMPRESS_SNAPPY ? snappy_max_compressed_length(n) : with == COMPRESS_ZLIB ? compressBound(n) : ZSTD_compressBound(n);
}

static bool compress_into(wire_compressor with, slice bytes, char *to, size_t *room) {
    if (with == COMPRESS_SNAPPY) {
        return snappy_compress(bytes.p, bytes.n, to, room) == SNAPPY_OK;
    }
    if (with == COMPRESS_ZLIB) {
        uLongf n = *room;
        bool good = compress2((Bytef *)to, &n, (const Bytef *)bytes.p, bytes.n, ZLIB_LEVEL) == Z_OK;
        *room = n;
        return good;
    }
    *room = ZSTD_compress(to, *room, bytes.p, bytes.n, ZSTD_LEVEL);
    return !ZSTD_isError(*room);
}

bool compress_add(buf *out, wire_compressor with, slice bytes) {
    if (with <= COMPRESS_NONE || with >= COMPRESS_COUNT) {
        return false;
    }
    size_t room = bound_of(with, bytes.n);
    if (!buf_reserve(out, room) || !compress_into(with, bytes, out->p + out->n, &room)) {
        return false;
    }
    out->n += room;
    return true;
}
