#include "api/mongo/wire.h"

#include "api/mongo/compress.h"
#include "base/crc32c.h"
#include "doc/walk.h"

enum {
    FLAG_CHECKSUM = 1,
    FLAG_MORE_TO_COME = 2,
    FLAG_EXHAUST_ALLOWED = 1 << 16,
    FLAGS_REQUIRED = 0xFFFF, /* unknown flags among these must be refused */
    CHECKSUM_BYTES = 4,
    COMPRESSED_HEAD_BYTES = 9,
    REPLY_AWAIT_CAPABLE = 8,
};

static err malformed(op *o, const char *what) {
    return op_fail_as(o, E_BAD_REQUEST, 9, "The message is malformed: %s.", what);
}

bool wire_length(const uint8_t *header, uint64_t *bytes_out) {
    int32_t n = doc_load_i32((const char *)header);
    *bytes_out = n > 0 ? (uint64_t)n : 0;
    return n >= WIRE_HEADER_BYTES + 5; /* no body is shorter */
}

int32_t wire_request_id(slice frame) {
    return frame.n >= WIRE_HEADER_BYTES ? doc_load_i32(frame.p + 4) : 0;
}

int32_t wire_opcode_of(slice frame) {
    return frame.n >= WIRE_HEADER_BYTES ? doc_load_i32(frame.p + 12) : 0;
}

/* ---- parts of a message ---- */

static bool take_i32(slice *rest, int32_t *number_out) {
    if (rest->n < 4) {
        return false;
    }
    *number_out = doc_load_i32(rest->p);
    *rest = slice_skip(*rest, 4);
    return true;
}

static bool take_name(slice *rest, slice *name_out) {
    const char *zero = rest->n ? memchr(rest->p, 0, rest->n) : NULL;
    if (!zero) {
        return false;
    }
    *name_out = slice_of(rest->p, (size_t)(zero - rest->p));
    *rest = slice_skip(*rest, name_out->n + 1);
    return true;
}

/* Cuts a document off by its length, without looking inside. */
bool wire_next(slice *rest, slice *document_out) {
    int32_t n = rest->n >= 5 ? doc_load_i32(rest->p) : 0;
    if (n < 5 || (size_t)n > rest->n) {
        return false;
    }
    *document_out = slice_of(rest->p, (size_t)n);
    *rest = slice_skip(*rest, (size_t)n);
    return true;
}

static bool take_document(slice *rest, unsigned depth, slice *document_out) {
    return wire_next(rest, document_out) && doc_is_sound(*document_out, depth);
}

static bool take_body(slice *rest, wire_message *m) {
    return wire_next(rest, &m->body) && doc_is_sound_listed(m->body, WIRE_DEPTH, m->members, WIRE_MEMBERS, &m->members_n);
}

/* ---- OP_MSG ---- */

static err read_sequence(op *o, slice *rest, wire_message *m) {
    int32_t size;
    slice section = *rest, each;
    if (!take_i32(rest, &size) || size < 5 || (size_t)size > section.n) {
        return malformed(o, "the size of a document sequence is wrong");
    }
    section = slice_of(section.p + 4, (size_t)size - 4);
    *rest = slice_skip(*rest, section.n);
    if (m->sequences_n == WIRE_SEQUENCES_MAX) {
        return malformed(o, "it has too many document sequences");
    }
    wire_sequence *s = &m->sequences[m->sequences_n++];
    if (!take_name(&section, &s->name)) {
        return malformed(o, "a document sequence has no name");
    }
    s->documents = section;
    while (section.n) {
        if (!take_document(&section, WIRE_DEPTH - 2, &each)) {
            return op_fail_as(o, E_BAD_REQUEST, 22, "A document sequence has a document that is not valid BSON.");
        }
    }
    return OK;
}

static err read_section(op *o, slice *rest, wire_message *m) {
    char kind = rest->p[0];
    *rest = slice_skip(*rest, 1);
    if (kind == 1) {
        return read_sequence(o, rest, m);
    }
    if (kind != 0 || m->body.n) {
        return malformed(o, "it has a section of unknown kind, or two bodies");
    }
    if (rest->n >= 4 && doc_load_i32(rest->p) > WIRE_BODY_MAX) {
        return op_fail_as(o, E_TOO_LARGE, 10334, "A command has %d bytes at most, without its document sequences.", WIRE_BODY_MAX);
    }
    return take_body(rest, m) ? OK : op_fail_as(o, E_BAD_REQUEST, 22, "The command is not valid BSON.");
}

/* No argument is given twice: none of its documents would be left out in silence. */
static err check_sequences(op *o, const wire_message *m) {
    for (size_t i = 0; i < m->sequences_n; i++) {
        slice name = m->sequences[i].name;
        doc_element e;
        uint64_t passed = 0;
        for (size_t j = 0; j < i; j++) {
            if (slice_eq(name, m->sequences[j].name)) {
                return op_fail_as(o, E_BAD_REQUEST, 40432, "Duplicate document sequence: %.*s", slice_shown(name), name.p);
            }
        }
        if (doc_find_member_counted(m->body, name, &e, &passed)) {
            return op_fail_as(o, E_BAD_REQUEST, 40433, "Duplicate field between body and document sequence %.*s", slice_shown(name),
                              name.p);
        }
    }
    return OK;
}

/* `whole` is the message with its header, which the checksum covers. */
static err read_msg(op *o, slice whole, slice rest, wire_message *m) {
    int32_t flags;
    if (!take_i32(&rest, &flags)) {
        return malformed(o, "it ends before its flags");
    }
    if (flags & FLAGS_REQUIRED & ~(FLAG_CHECKSUM | FLAG_MORE_TO_COME)) {
        return malformed(o, "it has unknown required flags");
    }
    m->more_to_come = flags & FLAG_MORE_TO_COME;
    m->allows_exhaust = flags & FLAG_EXHAUST_ALLOWED;
    if (flags & FLAG_CHECKSUM) {
        if (rest.n < CHECKSUM_BYTES) {
            return malformed(o, "it ends before its checksum");
        }
        rest.n -= CHECKSUM_BYTES;
        uint32_t sum = whole.n ? crc32c(slice_of(whole.p, whole.n - CHECKSUM_BYTES)) : 0;
        if (whole.n && sum != (uint32_t)doc_load_i32(rest.p + rest.n)) {
            return malformed(o, "its checksum is wrong");
        }
    }
    while (rest.n) {
        TRY(read_section(o, &rest, m));
    }
    return m->body.n ? check_sequences(o, m) : malformed(o, "it has no body");
}

/* ---- OP_QUERY ---- */

static err read_query(op *o, slice rest, wire_message *m) {
    int32_t unused;
    slice name;
    m->is_query = true;
    if (!take_i32(&rest, &unused) || !take_name(&rest, &name) || !take_i32(&rest, &unused) || !take_i32(&rest, &unused) ||
        !take_body(&rest, m)) {
        return malformed(o, "OP_QUERY without a valid query");
    }
    const char *dot = name.n ? memchr(name.p, '.', name.n) : NULL;
    m->database = slice_of(name.p, dot ? (size_t)(dot - name.p) : name.n);
    return OK;
}

/* ---- OP_COMPRESSED ---- */

static err expand(op *o, slice *rest, size_t max, int32_t *opcode, wire_message *m) {
    int32_t size;
    if (rest->n < COMPRESSED_HEAD_BYTES || !take_i32(rest, opcode) || !take_i32(rest, &size) || size < 1 || (size_t)size > max ||
        *opcode == WIRE_COMPRESSED) {
        return malformed(o, "the head of its compressed body is wrong");
    }
    m->compressor = (uint8_t)rest->p[0];
    slice bytes = slice_skip(*rest, 1);
    if (!arena_fits(o->arena, (size_t)size)) {
        return budget_error(o->budget);
    }
    char *to = arena_alloc(o->arena, (size_t)size);
    if (!compress_expand(m->compressor, bytes, to, (size_t)size)) {
        m->compressor = COMPRESS_NONE;
        return malformed(o, "its compressed body cannot be expanded");
    }
    *rest = slice_of(to, (size_t)size);
    return OK;
}

err wire_read(op *o, slice frame, size_t expanded_max, wire_message *m) {
    wire_clear(m);
    m->request_id = wire_request_id(frame);
    int32_t opcode = wire_opcode_of(frame);
    slice rest = slice_skip(frame, WIRE_HEADER_BYTES), whole = frame;
    if (opcode == WIRE_COMPRESSED) {
        TRY(expand(o, &rest, expanded_max, &opcode, m));
        whole = SLICE_EMPTY; /* the checksum is over a header that was not sent */
    }
    if (opcode == WIRE_MSG) {
        return read_msg(o, whole, rest, m);
    }
    if (opcode == WIRE_QUERY) {
        return read_query(o, rest, m);
    }
    return op_fail_as(o, E_BAD_REQUEST, 352, "Unsupported OP code %d: use OP_MSG.", (int)opcode);
}

slice wire_again(arena *a, slice frame, int32_t request_id) {
    slice copy = arena_copy(a, frame);
    char *p = (char *)(uintptr_t)copy.p; /* the arena's */
    int32_t flags = wire_opcode_of(copy) == WIRE_MSG ? doc_load_i32(p + WIRE_HEADER_BYTES) : 0;
    if (flags & FLAG_CHECKSUM) {
        copy.n -= CHECKSUM_BYTES;
        doc_store_i32(p, (int32_t)copy.n);
        doc_store_i32(p + WIRE_HEADER_BYTES, flags & ~FLAG_CHECKSUM);
    }
    doc_store_i32(p + 4, request_id);
    return copy;
}

/* ---- replies ---- */

static void add_i32(buf *out, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

static void add_header(buf *out, const wire_message *request, int32_t opcode) {
    add_i32(out, 0); /* the length: wire_end */
    add_i32(out, request->reply_id);
    add_i32(out, request->request_id);
    add_i32(out, opcode);
}

size_t wire_begin(buf *out, const wire_message *request, bool more_to_come) {
    size_t start = out->n;
    add_header(out, request, request->is_query ? WIRE_REPLY : WIRE_MSG);
    if (request->is_query) {
        add_i32(out, REPLY_AWAIT_CAPABLE);
        buf_add(out, "\0\0\0\0\0\0\0\0", 8); /* cursor */
        add_i32(out, 0);
        add_i32(out, 1);
    } else {
        add_i32(out, more_to_come ? FLAG_MORE_TO_COME : 0);
        buf_add_byte(out, 0);
    }
    return start;
}

static void compress_reply(buf *out, size_t start, const wire_message *request) {
    buf small = buf_init(out->max);
    slice body = slice_of(out->p + start + WIRE_HEADER_BYTES, out->n - start - WIRE_HEADER_BYTES);
    add_header(&small, request, WIRE_COMPRESSED);
    add_i32(&small, WIRE_MSG);
    add_i32(&small, (int32_t)body.n);
    buf_add_byte(&small, (char)request->compressor);
    if (compress_add(&small, request->compressor, body) && small.n < out->n - start) {
        memcpy(out->p + start, small.p, small.n);
        out->n = start + small.n;
    }
    buf_free(&small);
}

void wire_end(buf *out, size_t start, const wire_message *request, bool never_compressed) {
    if (!buf_ok(out)) {
        return;
    }
    if (request->compressor && !never_compressed && !request->is_query) {
        compress_reply(out, start, request);
    }
    doc_store_i32(out->p + start, (int32_t)(out->n - start));
}
