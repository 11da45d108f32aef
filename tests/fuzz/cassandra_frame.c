/* Any bytes as messages of Cassandra's native protocol: a segment of version 5, an envelope, a compressed body, and the body's message. The
 * first byte chooses. */
#include "api/cassandra/message.h"
#include "api/cassandra/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_envelope(op *o, slice bytes, cass_compression with) {
    cass_envelope e;
    cass_query query;
    cass_batch batch;
    cass_startup startup;
    cass_payload payload = {0};
    unsigned kinds;
    slice body;
    while (cass_envelope_take(&bytes, &e)) {
        body = e.body;
        if (e.flags & CASS_FLAG_COMPRESSED && cass_expand(o, with, e.body, &body) != OK) {
            return;
        }
        if (e.flags & CASS_FLAG_PAYLOAD && cass_payload_read(o, &body, &payload) != OK) {
            return;
        }
        unsigned version = 3 + e.version % 3;
        err codes[] = {cass_query_read(o, body, version, &query),   cass_prepare_read(o, body, version, &query),
                       cass_execute_read(o, body, version, &query), cass_batch_read(o, body, version, &batch),
                       cass_startup_read(o, body, &startup),        cass_register_read(o, body, &kinds)};
        (void)codes;
    }
}

/* What is written is read back. */
static void round_trip(op *o, slice body, bool lz4) {
    buf out = buf_init(BUF_NO_LIMIT);
    cass_segment segment;
    cass_envelope e;
    uint64_t whole;
    size_t begun = cass_envelope_begin(&out, 5, 0, 7, CASS_RESULT);
    buf_add_slice(&out, slice_of(body.p, body.n < 1000 ? body.n : 1000));
    cass_envelope_end(&out, begun, 0);
    cass_segments_write(&out, begun, lz4);
    if (!cass_segment_length((const uint8_t *)out.p, lz4, &whole) || whole != out.n ||
        cass_segment_read(o, buf_view(&out), lz4, &segment) != OK || !segment.self_contained || !cass_envelope_take(&segment.payload, &e) ||
        e.stream != 7) {
        __builtin_trap();
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { MEMORY_MAX = 64 << 20 };
    if (n < 1 + CASS_SEGMENT_LEAST) {
        return 0;
    }
    budget limit = budget_init(NULL, MEMORY_MAX);
    arena a = arena_init_counted(&limit);
    op o;
    cass_segment segment;
    cass_page page;
    bool lz4 = data[0] & 1;
    slice bytes = slice_of(data + 1, n - 1);
    op_init(&o, &a, 0);
    if (data[0] & 2 && cass_segment_read(&o, bytes, lz4, &segment) == OK) {
        bytes = segment.payload;
    }
    read_envelope(&o, bytes, (cass_compression)((data[0] >> 2) % 3));
    round_trip(&o, bytes, lz4);
    if (cass_page_read(bytes, &page)) {
        slice again = cass_page_write(&a, &page);
        if (!slice_eq(again, bytes)) {
            __builtin_trap();
        }
    }
    arena_free(&a);
    return 0;
}
