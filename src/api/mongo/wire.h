/* wire.h — messages of the MongoDB wire protocol: reading requests, writing replies. Pure functions, any thread.
 *
 *   header         int32 length of the whole message · int32 request id · int32 id of the request that it answers · int32 opcode
 *   OP_MSG         uint32 flags · sections · uint32 CRC-32C of everything before it, if flag 0 is set
 *     section 0      byte 0 · BSON: the command
 *     section 1      byte 1 · int32 size, with itself · cstring name · BSON documents: an array argument of the command
 *   OP_QUERY       int32 flags · cstring namespace · int32 skip · int32 number · BSON: a handshake only; answered with OP_REPLY
 *   OP_REPLY       int32 flags · int64 cursor · int32 start · int32 number · BSON
 *   OP_COMPRESSED  int32 opcode · int32 length of the body · byte compressor · the compressed body of a message
 *
 * All numbers are little-endian. Facts: MongoDB's specifications ("OP_MSG", "OP_COMPRESSED"). */
#pragma once

#include "base/buf.h"
#include "base/op.h"
#include "doc/walk.h"

enum {
    WIRE_HEADER_BYTES = 16,
    WIRE_MESSAGE_MAX = 48000000,                  /* maxMessageSizeBytes */
    WIRE_BODY_MAX = 16 * 1024 * 1024 + 64 * 1024, /* a command: a document of the largest size, and the command around it */
    WIRE_SEQUENCES_MAX = 4,
    WIRE_MEMBERS = 16,
    WIRE_DEPTH = 130, /* nesting of a command: documents of LIMIT_JSON_DEPTH levels in an array */
};

typedef enum wire_opcode {
    WIRE_REPLY = 1,
    WIRE_QUERY = 2004,
    WIRE_COMPRESSED = 2012,
    WIRE_MSG = 2013,
} wire_opcode;

/* An array argument that was sent as a section of its own (section 1). */
typedef struct wire_sequence {
    slice name;
    slice documents; /* well-formed BSON documents, one after the other */
} wire_sequence;

typedef struct wire_message {
    int32_t request_id;
    int32_t reply_id;    /* the id that the reply gets */
    bool is_query;       /* OP_QUERY: the reply is an OP_REPLY */
    bool more_to_come;   /* the client wants no reply */
    bool allows_exhaust; /* the client takes several replies */
    uint8_t compressor;  /* wire_compressor of the request; its reply may use the same */
    slice database;      /* OP_QUERY: from the namespace; empty for OP_MSG, whose body has it */
    slice body;          /* well-formed BSON */
    wire_sequence sequences[WIRE_SEQUENCES_MAX];
    size_t sequences_n;
    size_t members_n;                  /* of the body */
    doc_element members[WIRE_MEMBERS]; /* the first ones */
} wire_message;

/* Empties a message, but for the list of members, which is large. */
static inline void wire_clear(wire_message *m) {
    memset(m, 0, offsetof(wire_message, members));
}

/* The length of a frame from its first four bytes. False: impossible. */
bool wire_length(const uint8_t *header, uint64_t *bytes_out);

/* Request id and opcode from a whole header, for replies to messages that cannot be read. */
int32_t wire_request_id(slice frame);
int32_t wire_opcode_of(slice frame);

/* Reads a whole frame; a compressed one is expanded into the operation's arena, up to `expanded_max` bytes. Slices point into the frame or
 * into the arena. E_BAD_REQUEST with a message: malformed; `*message_out` has what was read before. */
MUST_CHECK err wire_read(op *o, slice frame, size_t expanded_max, wire_message *message_out);

/* A copy of a readable frame, as if it had come once more with another request id; without a checksum. */
slice wire_again(arena *a, slice frame, int32_t request_id);

/* Walks the documents of a sequence. */
bool wire_next(slice *rest, slice *document_out);

/* ---- replies ---- */

/* Appends the header of a reply; the BSON document follows, then wire_end. Returns where the message begins. */
size_t wire_begin(buf *out, const wire_message *request, bool more_to_come);
/* Writes the length; then, if the request was compressed, replaces the message by a compressed one, unless `never_compressed`. */
void wire_end(buf *out, size_t start, const wire_message *request, bool never_compressed);
