#include "api/sql/itembody.h"

#include "query/condition.h"

err sql_read_patch(op *o, const container *c, slice body, item_op *item) {
    patch *p = arena_new(o->arena, patch);
    TRY(patch_parse(o, body, p));
    item->patch = p;
    return p->condition.n ? query_condition_read(o, c, p->condition, &item->condition) : OK;
}

unsigned sql_item_status(const item_op *item) {
    if (item->code != OK) {
        return err_lookup(item->code)->http_status;
    }
    return item->kind == ITEM_DELETE ? 204 : item->created ? 201 : 200;
}
