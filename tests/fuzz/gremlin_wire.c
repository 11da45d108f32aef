/* A message as a client sends it: a byte with the length of the mime type, the mime type, the payload. It is refused with a message, or the
 * values in it can be written in every format, and what is written in a typed format reads as the same value. */
#include <assert.h>

#include "gremlin/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 8 * 1024 * 1024 };

static bool is_comparable(gremlin_value v);

static bool all_comparable(const gremlin_value *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!is_comparable(at[i])) {
            return false;
        }
    }
    return true;
}

/* Elements are read as references, predicates and traversals have no equality, and GraphSON writes bulk sets as lists. */
static bool is_comparable(gremlin_value v) {
    if (v.type == GREMLIN_LIST || v.type == GREMLIN_SET) {
        return all_comparable(v.list->at, v.list->n);
    }
    if (v.type == GREMLIN_MAP) {
        for (size_t i = 0; i < v.map->n; i++) {
            if (!is_comparable(v.map->at[i].key) || !is_comparable(v.map->at[i].value)) {
                return false;
            }
        }
        return v.map->n < 50;
    }
    return v.type <= GREMLIN_BINARY && v.type != GREMLIN_DURATION && v.type != GREMLIN_DECIMAL && v.type != GREMLIN_CHAR;
}

static void try_format(op *o, gremlin_format format, gremlin_value v) {
    buf out = buf_init(1 << 20);
    gremlin_value again;
    bool wrapped = format != GREMLIN_GRAPHBINARY_1; /* GraphSON is read from an object or array */
    buf_add_slice(&out, wrapped ? SLICE_LIT("[") : SLICE_EMPTY);
    bool written = gremlin_value_write(&out, format, v);
    buf_add_slice(&out, wrapped ? SLICE_LIT("]") : SLICE_EMPTY);
    bool typed = format == GREMLIN_GRAPHSON_3 || format == GREMLIN_GRAPHBINARY_1;
    if (written && buf_ok(&out) && is_comparable(v)) {
        gremlin_limits limits = {.script_bytes = 1 << 20, .steps = 400, .depth = 200};
        err e = gremlin_value_read(o, &limits, format, buf_view(&out), &again);
        assert(e == OK || e == E_MEMORY);
        if (e == OK && typed) {
            assert(gremlin_same(wrapped ? again.list->at[0] : again, v));
        }
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget b = budget_init(NULL, MEMORY);
    arena memory = arena_init_counted(&b);
    op o;
    gremlin_request request;
    op_init(&o, &memory, 0);
    err e = gremlin_request_read(&o, &gremlin_limits_of_service, slice_of(data, size), size && data[0] == '{', &request);
    assert(e == OK || e == E_MEMORY || o.detail_n > 0);
    if (e == OK && !b.exceeded) {
        for (gremlin_format format = 0; format <= GREMLIN_GRAPHBINARY_1 && !b.exceeded; format++) {
            try_format(&o, format, request.args);
        }
        gremlin_results results = gremlin_results_init(request.format, true, &b);
        buf out = buf_init_counted(BUF_NO_LIMIT, &b);
        bool added = gremlin_results_add(&results, request.bindings, 2);
        gremlin_response_write(&out, &request, 200, request.op, gremlin_null(), added ? &results : NULL);
        gremlin_results_free(&results);
        buf_free(&out);
    }
    arena_free(&memory);
    assert(b.used == 0);
    return 0;
}
