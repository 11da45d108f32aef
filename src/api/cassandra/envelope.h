/* envelope.h — messages of Cassandra's native protocol on the wire: envelopes, the frames around them in version 5, and compression.
 *
 * An envelope, called a frame in versions 3 and 4, numbers big-endian (native_protocol_v4.spec, section 2):
 *
 *   0  version    request 03 04 05, response 83 84 85
 *   1  flags      CASS_FLAG_…
 *   2  stream     signed; the answer has the request's, an event -1
 *   4  opcode
 *   5  length     of the body that follows
 *
 * In versions 3 and 4 the body is compressed alone. In version 5, once STARTUP is answered, envelopes are cut into *segments* (frames in
 * the specification), numbers little-endian:
 *
 *   3 bytes   payload length (17 bits), self-contained (1 bit), 6 bits unused          with lz4 5 bytes: compressed length (17),
 *   3 bytes   CRC24 of those                                                           uncompressed length (17), self-contained (1), 5
 *   payload   whole envelopes, or a part of one that is not self-contained             unused; length 0 means not compressed
 *   4 bytes   CRC32 of the payload
 *
 * Every byte is untrusted: a length or a checksum that lies is an error, and memory is taken only for lengths that were checked. Pure
 * functions, any thread. */
#pragma once

#include "base/buf.h"
#include "base/op.h"

typedef enum cass_opcode {
    CASS_ERROR = 0x00,
    CASS_STARTUP = 0x01,
    CASS_READY = 0x02,
    CASS_AUTHENTICATE = 0x03,
    CASS_OPTIONS = 0x05,
    CASS_SUPPORTED = 0x06,
    CASS_QUERY = 0x07,
    CASS_RESULT = 0x08,
    CASS_PREPARE = 0x09,
    CASS_EXECUTE = 0x0A,
    CASS_REGISTER = 0x0B,
    CASS_EVENT = 0x0C,
    CASS_BATCH = 0x0D,
    CASS_AUTH_RESPONSE = 0x0F,
    CASS_AUTH_SUCCESS = 0x10,
} cass_opcode;

enum {
    CASS_VERSION_MIN = 3,
    CASS_VERSION_MAX = 5,
    CASS_VERSION_SEGMENTS = 5, /* the first with segments */

    CASS_FLAG_COMPRESSED = 0x01,
    CASS_FLAG_TRACING = 0x02,
    CASS_FLAG_PAYLOAD = 0x04,
    CASS_FLAG_WARNING = 0x08,
    CASS_FLAG_BETA = 0x10,
    CASS_RESPONSE = 0x80, /* bit of the version */

    CASS_ENVELOPE_HEAD = 9,
    CASS_BODY_MAX = 16 * 1024 * 1024, /* as native_transport_max_frame_size */
    CASS_SEGMENT_MAX = 131071,        /* bytes of a payload */
};

typedef enum cass_compression { CASS_PLAIN, CASS_LZ4, CASS_SNAPPY } cass_compression;

typedef struct cass_envelope {
    uint8_t version; /* as sent */
    uint8_t flags;
    int16_t stream;
    uint8_t opcode;
    slice body;
} cass_envelope;

/* ---- envelopes ---- */

/* The whole length from the first CASS_ENVELOPE_HEAD bytes. False: longer than CASS_BODY_MAX, or negative. */
bool cass_envelope_length(const uint8_t *head, uint64_t *bytes_out);

/* Takes an envelope from the beginning of `rest`. False: it is not whole, and nothing was taken. */
bool cass_envelope_take(slice *rest, cass_envelope *envelope_out);

/* Starts an answer and returns its place; cass_envelope_end writes the length of the body that was appended since, and of `more`
 * bytes that follow. */
size_t cass_envelope_begin(buf *out, uint8_t version, uint8_t flags, int16_t stream, cass_opcode opcode);
void cass_envelope_end(buf *out, size_t begun, size_t more);

/* Expands a compressed body, in the operation's arena. E_BAD_REQUEST: it lies about its length, or is damaged. E_MEMORY. */
MUST_CHECK err cass_expand(op *o, cass_compression with, slice body, slice *expanded_out);

/* The length that a compressed body claims to expand to; SIZE_MAX: it is damaged. */
size_t cass_expanded_bytes(cass_compression with, slice body);

/* Replaces the body that was appended since `begun` by a compressed one, and sets the flag, if that saves bytes. */
void cass_envelope_compress(buf *out, size_t begun, cass_compression with);

/* ---- segments ---- */

enum { CASS_SEGMENT_HEAD_PLAIN = 6, CASS_SEGMENT_HEAD_LZ4 = 8, CASS_SEGMENT_TAIL = 4, CASS_SEGMENT_LEAST = 10 };

typedef struct cass_segment {
    slice payload;
    bool self_contained;
} cass_segment;

/* The whole length of a segment from its head, CASS_SEGMENT_HEAD_LZ4 bytes or more. False: the CRC24 is wrong, or a length too large. */
bool cass_segment_length(const uint8_t *head, bool lz4, uint64_t *bytes_out);

/* Reads a whole segment; an expanded payload is in the operation's arena. E_BAD_REQUEST: a checksum is wrong, or the lz4 block lies. */
MUST_CHECK err cass_segment_read(op *o, slice bytes, bool lz4, cass_segment *segment_out);

/* Replaces the envelope that was appended since `begun` by segments. */
void cass_segments_write(buf *out, size_t begun, bool lz4);

uint32_t cass_crc24(uint64_t number, unsigned bytes);
