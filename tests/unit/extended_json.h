/* extended_json.h — documents for tests, written as Extended JSON. */
#pragma once

#include <bson/bson.h>

#include "base/arena.h"
#include "base/slice.h"

/* The document as BSON in the arena; the test fails if it cannot be read. */
static inline slice extended_json(arena *a, const char *json) {
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (!document) {
        fail_msg("%s: %s", json, error.message);
        return SLICE_EMPTY;
    }
    slice copy = arena_copy(a, slice_of(bson_get_data(document), document->len));
    bson_destroy(document);
    return copy;
}
