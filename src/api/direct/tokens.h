/* tokens.h — typed tokens, which rntbd's frames are made of, and the frames' header. Pure functions, any thread.
 *
 *   frame    0  u32 length of header and tokens, without the payload
 *            4  request: u16 resource type, u16 operation type; answer: u32 status
 *            8  16 bytes activity id: a GUID whose first three parts are little-endian
 *           24  tokens
 *   token    u16 id · u8 type · value, at whose start strings and bytes have their length
 *   payload  u32 n · n bytes, after the tokens, if the token PayloadPresent is 1
 *
 * All numbers are little-endian. */
#pragma once

#include "base/buf.h"

enum { DIRECT_HEADER_BYTES = 24, DIRECT_ACTIVITY_BYTES = 16, DIRECT_GUID_TEXT = 36 };

typedef enum direct_type {
    DIRECT_BYTE,
    DIRECT_U16,
    DIRECT_U32,
    DIRECT_I32,
    DIRECT_U64,
    DIRECT_I64,
    DIRECT_GUID,
    DIRECT_TEXT8, /* the length is a u8, … */
    DIRECT_TEXT16,
    DIRECT_TEXT32,
    DIRECT_BYTES8,
    DIRECT_BYTES16,
    DIRECT_BYTES32,
    DIRECT_FLOAT,
    DIRECT_DOUBLE,
    DIRECT_TYPES
} direct_type;

typedef struct direct_token {
    uint16_t id;
    uint8_t type;    /* direct_type */
    slice value;     /* without its length; lies in the frame */
    uint64_t number; /* the value of an integer token, sign-extended */
} direct_token;

/* Takes the first token off. False: a type that does not exist, or bytes are missing. */
bool direct_token_take(slice *rest, direct_token *token_out);

static inline uint64_t direct_load(const void *p, size_t bytes) {
    const unsigned char *at = p;
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

/* ---- writing ---- */

void direct_add_number(buf *out, uint16_t id, direct_type type, uint64_t value); /* DIRECT_BYTE to DIRECT_I64 */
void direct_add_double(buf *out, uint16_t id, double value);
void direct_add_text(buf *out, uint16_t id, direct_type type, slice value); /* DIRECT_TEXT8, 16; a longer one sets out->overflow */

void direct_put(buf *out, uint64_t value, size_t bytes); /* a bare number */

/* The header; its length is written by direct_frame_end, which `at`, where the frame began in `out`, is given. */
void direct_frame_begin(buf *out, uint32_t status, const uint8_t activity[static DIRECT_ACTIVITY_BYTES]);
void direct_frame_end(buf *out, size_t at);

/* An activity id as text, and bytes that need not be one. */
void direct_guid_text(const uint8_t bytes[static DIRECT_ACTIVITY_BYTES], char text_out[static DIRECT_GUID_TEXT]);
