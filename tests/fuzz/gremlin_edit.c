/* Two JSON texts with a zero byte between them, an item and the argument of a change of its properties: the argument is refused, or gives a
 * document that can be read. The argument is also applied to its own bytes. */
#include <assert.h>
#include <bson/bson.h>

#include "api/gremlin/edit_kind.h"
#include "base/limits.h"
#include "doc/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply(op *o, slice body, slice argument) {
    item_edit_budget budget = {.steps = LIMIT_EDIT_STEPS_MAX};
    slice result;
    bson_t b;
    if (edit_apply(o, body, argument, &budget, &result) == OK) {
        bool good = bson_init_static(&b, (const uint8_t *)result.p, result.n) && bson_validate(&b, BSON_VALIDATE_NONE, NULL);
        assert(good);
        (void)document_is_edge(result);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t first = zero ? (size_t)(zero - data) : size;
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    buf body = buf_init(BUF_NO_LIMIT), argument = buf_init(BUF_NO_LIMIT);
    json_root of_body = JSON_ARRAY, of_argument = JSON_ARRAY;
    if (zero && json_to_bson(slice_of(data, first), NULL, &body, &of_body, NULL) == OK && of_body == JSON_OBJECT &&
        json_to_bson(slice_of(zero + 1, size - first - 1), NULL, &argument, &of_argument, NULL) == OK && of_argument == JSON_OBJECT) {
        apply(&o, buf_view(&body), buf_view(&argument));
        apply(&o, buf_view(&argument), buf_view(&argument));
    }
    buf_free(&body);
    buf_free(&argument);
    arena_free(&a);
    return 0;
}
