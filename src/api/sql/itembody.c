#include "api/sql/itembody.h"

#include "query/condition.h"

err sql_read_patch(op *o, const container *c, slice body, item_op *item) {
    item->edit = (item_edit){.kind = ITEM_EDIT_PATCH, .argument = body};
    TRY(item_edit_make_ready(o, c, item));
    const patch *p = item->edit.ready;
    if (p->condition.n == 0) {
        return OK;
    }
    item->conditions = arena_new(o->arena, item_condition);
    item->conditions_n = 1;
    *item->conditions = query_condition_of(o->arena, p->condition);
    return item_edit_make_ready(o, c, item);
}

unsigned sql_item_status(const item_op *item) {
    if (item->code != OK) {
        return err_lookup(item->code)->http_status;
    }
    return item->kind == ITEM_DELETE ? 204 : item->created ? 201 : 200;
}
