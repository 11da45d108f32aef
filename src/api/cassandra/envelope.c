#include "api/cassandra/envelope.h"

#include <lz4.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>

#include "api/cassandra/notation.h"
#include "base/memory.h"

/* ---- envelopes ---- */

bool cass_envelope_length(const uint8_t *head, uint64_t *bytes_out) {
    uint32_t body = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    *bytes_out = CASS_ENVELOPE_HEAD + (uint64_t)body;
    return body <= CASS_BODY_MAX;
}

bool cass_envelope_take(slice *rest, cass_envelope *e) {
    const uint8_t *head = (const uint8_t *)rest->p;
    uint64_t n;
    if (rest->n < CASS_ENVELOPE_HEAD || !cass_envelope_length(head, &n) || n > rest->n) {
        return false;
    }
    *e = (cass_envelope){
        .version = head[0],
        .flags = head[1],
        .stream = (int16_t)(uint16_t)(head[2] << 8 | head[3]),
        .opcode = head[4],
        .body = slice_of(rest->p + CASS_ENVELOPE_HEAD, n - CASS_ENVELOPE_HEAD),
    };
    *rest = slice_skip(*rest, n);
    return true;
}

size_t cass_envelope_begin(buf *out, uint8_t version, uint8_t flags, int16_t stream, cass_opcode opcode) {
    size_t begun = out->n;
    buf_add_byte(out, (char)(version | CASS_RESPONSE));
    buf_add_byte(out, (char)flags);
    cass_put_short(out, (uint16_t)stream);
    buf_add_byte(out, (char)opcode);
    cass_put_int(out, 0);
    return begun;
}

void cass_envelope_end(buf *out, size_t begun, size_t more) {
    if (buf_ok(out) && out->n >= begun + CASS_ENVELOPE_HEAD) {
        uint32_t n = (uint32_t)(out->n - begun - CASS_ENVELOPE_HEAD + more);
        for (int i = 0; i < 4; i++) {
            out->p[begun + 5 + (size_t)i] = (char)(n >> (24 - 8 * i));
        }
    }
}

/* ---- compressed bodies ---- */

/* lz4: the length, then a block. A block expands to at most 255 times its size, so a length beyond that is a lie: no memory is taken. */
static err expand_lz4(op *o, slice block, size_t n, slice *expanded_out) {
    enum { RATIO_MAX = 255 };
    if (n > CASS_BODY_MAX || n / RATIO_MAX > block.n) {
        return op_fail(o, E_BAD_REQUEST, "The uncompressed length of an lz4 body is not true.");
    }
    if (!arena_fits(o->arena, n)) {
        return budget_error(o->budget);
    }
    char *to = arena_alloc(o->arena, n ? n : 1);
    if (n && LZ4_decompress_safe(block.p, to, (int)block.n, (int)n) != (int)n) {
        return op_fail(o, E_BAD_REQUEST, "The lz4 body is damaged, or its length is not true.");
    }
    *expanded_out = slice_of(to, n);
    return OK;
}

static err expand_snappy(op *o, slice body, slice *expanded_out) {
    size_t n = 0;
    if (snappy_uncompressed_length(body.p, body.n, &n) != SNAPPY_OK || n > CASS_BODY_MAX ||
        snappy_validate_compressed_buffer(body.p, body.n) != SNAPPY_OK) {
        return op_fail(o, E_BAD_REQUEST, "The snappy body is damaged, or its length is not true.");
    }
    if (!arena_fits(o->arena, n)) {
        return budget_error(o->budget);
    }
    char *to = arena_alloc(o->arena, n ? n : 1);
    size_t room = n;
    if (snappy_uncompress(body.p, body.n, to, &room) != SNAPPY_OK || room != n) {
        return op_fail(o, E_BAD_REQUEST, "The snappy body is damaged.");
    }
    *expanded_out = slice_of(to, n);
    return OK;
}

err cass_expand(op *o, cass_compression with, slice body, slice *expanded_out) {
    int32_t n = 0;
    *expanded_out = SLICE_EMPTY;
    switch (with) {
    case CASS_SNAPPY:
        return expand_snappy(o, body, expanded_out);
    case CASS_LZ4:
        if (!cass_take_int(&body, &n) || n < 0) {
            return op_fail(o, E_BAD_REQUEST, "An lz4 body begins with its uncompressed length.");
        }
        return expand_lz4(o, body, (size_t)n, expanded_out);
    case CASS_PLAIN:
        break;
    }
    return op_fail(o, E_BAD_REQUEST, "The body is compressed, but STARTUP named no compression.");
}

size_t cass_expanded_bytes(cass_compression with, slice body) {
    int32_t n = 0;
    size_t length = 0;
    if (with == CASS_SNAPPY) {
        return snappy_uncompressed_length(body.p, body.n, &length) == SNAPPY_OK ? length : SIZE_MAX;
    }
    return cass_take_int(&body, &n) && n >= 0 ? (size_t)n : SIZE_MAX;
}

/* The compressed form of `bytes` in new memory, or NULL if it is not shorter. */
static char *shrink(cass_compression with, slice bytes, size_t head, size_t *n_out) {
    size_t room = with == CASS_LZ4 ? (size_t)LZ4_compressBound((int)bytes.n) : snappy_max_compressed_length(bytes.n);
    char *to = mem_alloc(head + room);
    size_t n = room;
    bool good;
    if (with == CASS_LZ4) {
        int made = LZ4_compress_default(bytes.p, to + head, (int)bytes.n, (int)room);
        good = made > 0;
        n = (size_t)made;
    } else {
        good = snappy_compress(bytes.p, bytes.n, to, &n) == SNAPPY_OK;
    }
    if (!good || head + n >= bytes.n) {
        free(to);
        return NULL;
    }
    *n_out = head + n;
    return to;
}

void cass_envelope_compress(buf *out, size_t begun, cass_compression with) {
    enum { WORTH_BYTES = 512, LENGTH = 4 };
    slice body = buf_ok(out) ? slice_of(out->p + begun + CASS_ENVELOPE_HEAD, out->n - begun - CASS_ENVELOPE_HEAD) : SLICE_EMPTY;
    size_t n = 0, head = with == CASS_LZ4 ? LENGTH : 0;
    char *small = with == CASS_PLAIN || body.n < WORTH_BYTES ? NULL : shrink(with, body, head, &n);
    if (!small) {
        return;
    }
    for (size_t i = 0; i < head; i++) {
        small[i] = (char)((uint32_t)body.n >> (24 - 8 * i));
    }
    out->n = begun + CASS_ENVELOPE_HEAD;
    buf_add(out, small, n);
    out->p[begun + 1] = (char)(out->p[begun + 1] | CASS_FLAG_COMPRESSED);
    free(small);
}

/* ---- checksums of segments ---- */

/* native_protocol_v5.spec, section 2: initial value 0x875060, polynomial 0x1974F0B, the least significant byte first. */
uint32_t cass_crc24(uint64_t number, unsigned bytes) {
    uint32_t crc = 0x875060;
    for (unsigned i = 0; i < bytes; i++, number >>= 8) {
        crc ^= (uint32_t)(number & 0xFF) << 16;
        for (int bit = 0; bit < 8; bit++) {
            crc <<= 1;
            crc ^= crc & 0x1000000 ? 0x1974F0B : 0;
        }
    }
    return crc;
}

/* The CRC32 of a payload begins with four bytes of the specification. */
static uint32_t payload_crc(slice payload) {
    static const unsigned char seed[4] = {0xFA, 0x2D, 0x55, 0xCA};
    uLong crc = crc32(0, seed, sizeof seed);
    return (uint32_t)crc32(crc, (const Bytef *)payload.p, (uInt)payload.n);
}

static uint64_t load_le(const uint8_t *p, unsigned bytes) {
    uint64_t number = 0;
    for (unsigned i = bytes; i > 0; i--) {
        number = number << 8 | p[i - 1];
    }
    return number;
}

static void put_le(buf *out, uint64_t number, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++, number >>= 8) {
        buf_add_byte(out, (char)number);
    }
}

/* ---- segments ---- */

enum { LENGTH_BITS = 17, LENGTH_MASK = (1 << LENGTH_BITS) - 1 };

bool cass_segment_length(const uint8_t *head, bool lz4, uint64_t *bytes_out) {
    unsigned n = lz4 ? CASS_SEGMENT_HEAD_LZ4 : CASS_SEGMENT_HEAD_PLAIN;
    uint64_t fields = load_le(head, n - 3);
    *bytes_out = n + (fields & LENGTH_MASK) + CASS_SEGMENT_TAIL;
    return load_le(head + n - 3, 3) == cass_crc24(fields, n - 3);
}

err cass_segment_read(op *o, slice bytes, bool lz4, cass_segment *s) {
    unsigned head = lz4 ? CASS_SEGMENT_HEAD_LZ4 : CASS_SEGMENT_HEAD_PLAIN;
    const uint8_t *p = (const uint8_t *)bytes.p;
    uint64_t n;
    if (bytes.n < head + CASS_SEGMENT_TAIL || !cass_segment_length(p, lz4, &n) || n != bytes.n) {
        return op_fail(o, E_BAD_REQUEST, "The header of a frame is damaged: its CRC24 is not true.");
    }
    uint64_t fields = load_le(p, head - 3);
    slice payload = slice_of(bytes.p + head, bytes.n - head - CASS_SEGMENT_TAIL);
    if (load_le(p + bytes.n - CASS_SEGMENT_TAIL, CASS_SEGMENT_TAIL) != payload_crc(payload)) {
        return op_fail(o, E_BAD_REQUEST, "The payload of a frame is damaged: its CRC32 is not true.");
    }
    uint64_t whole = lz4 ? fields >> LENGTH_BITS & LENGTH_MASK : 0;
    *s = (cass_segment){.payload = payload, .self_contained = fields >> (lz4 ? 2 * LENGTH_BITS : LENGTH_BITS) & 1};
    return whole ? expand_lz4(o, payload, whole, &s->payload) : OK;
}

static void put_segment(buf *out, slice payload, bool lz4, bool self_contained) {
    size_t n = 0;
    char *small = lz4 && payload.n ? shrink(CASS_LZ4, payload, 0, &n) : NULL;
    slice sent = small ? slice_of(small, n) : payload;
    unsigned head = lz4 ? CASS_SEGMENT_HEAD_LZ4 - 3 : CASS_SEGMENT_HEAD_PLAIN - 3;
    uint64_t fields = sent.n | (lz4 ? (uint64_t)(small ? payload.n : 0) << LENGTH_BITS : 0) |
                      (uint64_t)self_contained << (lz4 ? 2 * LENGTH_BITS : LENGTH_BITS);
    put_le(out, fields, head);
    put_le(out, cass_crc24(fields, head), 3);
    buf_add_slice(out, sent);
    put_le(out, payload_crc(sent), CASS_SEGMENT_TAIL);
    free(small);
}

void cass_segments_write(buf *out, size_t begun, bool lz4) {
    if (!buf_ok(out)) {
        return;
    }
    size_t n = out->n - begun;
    char *envelope = mem_alloc(n ? n : 1);
    memcpy(envelope, out->p + begun, n);
    out->n = begun;
    for (size_t at = 0; at < n; at += CASS_SEGMENT_MAX) {
        size_t part = n - at < CASS_SEGMENT_MAX ? n - at : CASS_SEGMENT_MAX;
        put_segment(out, slice_of(envelope + at, part), lz4, n <= CASS_SEGMENT_MAX);
    }
    free(envelope);
}
