/* Any bytes as a message of MongoDB's wire protocol. */
#include "api/mongo/wire.h"
#include "doc/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { MEMORY_MAX = 64 << 20 };
    if (n < WIRE_HEADER_BYTES) {
        return 0;
    }
    budget limit = budget_init(NULL, MEMORY_MAX);
    arena a = arena_init_counted(&limit);
    op o;
    wire_message m;
    slice document;
    op_init(&o, &a, 0);
    if (wire_read(&o, slice_of(data, n), WIRE_MESSAGE_MAX, &m) == OK) {
        for (size_t i = 0; i < m.sequences_n; i++) {
            for (slice rest = m.sequences[i].documents; wire_next(&rest, &document);) {
                if (!doc_is_well_formed(document, WIRE_DEPTH)) {
                    __builtin_trap();
                }
            }
        }
        if (!doc_is_well_formed(m.body, WIRE_DEPTH)) {
            __builtin_trap();
        }
    }
    arena_free(&a);
    return 0;
}
