/* The edit ITEM_EDIT_PATCH: the SQL API's partial update (doc/patch.h). */
#include "doc/json.h"
#include "item/edit_int.h"

enum { TEXT_PER_BYTE_MAX = 6 /* an escaped control character */ };

static err prepare(op *o, const container *c, slice argument, const void **ready_out) {
    patch *p = arena_new(o->arena, patch);
    (void)c;
    *ready_out = p;
    return patch_parse(o, argument, p);
}

/* Every operation copies the item. */
static uint64_t estimate(const item_edit_input *in) {
    const patch *p = in->ready;
    return (p->n + 1) * item_edit_steps(in->body.n + in->argument.n);
}

/* The limit applies to the JSON text, which can be much shorter than the BSON (lists of small numbers) or somewhat longer. The text is only
 * written for large items, which are not edited on the committer's thread (LIMIT_EDIT_BYTES). */
static err check_size(slice body) {
    if (body.n <= LIMIT_ITEM_BYTES / TEXT_PER_BYTE_MAX) {
        return OK;
    }
    buf text = buf_init(LIMIT_ITEM_BYTES);
    json_from_bson(&text, body);
    bool fits = buf_ok(&text);
    buf_free(&text);
    return fits ? OK : E_TOO_LARGE;
}

static err apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    const patch *p = in->ready;
    if (!item_edit_pay(b, estimate(in))) {
        return item_edit_too_long(o);
    }
    buf patched = buf_init(LIMIT_EDITED_BYTES);
    err code = patch_apply(o, p, in->body, &patched);
    result_out->answer = ITEM_EDIT_PUT;
    result_out->body = code == OK ? arena_copy(o->arena, buf_view(&patched)) : SLICE_EMPTY;
    result_out->properties = (uint32_t)p->n;
    buf_free(&patched);
    return code == OK ? check_size(result_out->body) : code;
}

const item_edit_kind item__edit_patch = {
    .id = ITEM_EDIT_PATCH, .name = "patch", .needs_item = true, .prepare = prepare, .estimate = estimate, .apply = apply};
