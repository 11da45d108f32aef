#include "api/sql/itembody.h"

#include "query/condition.h"

const slice sql_system_properties[SQL_SYSTEM_PROPERTIES] = {
    {"_rid", 4}, {"_self", 5}, {"_etag", 5}, {"_ts", 3}, {"_attachments", 12}, {"_lsn", 4},
};

static bool is_system(const char *name) {
    bool is = false;
    for (size_t i = 0; i < SQL_SYSTEM_PROPERTIES; i++) {
        is = is || slice_eq(sql_system_properties[i], slice_str(name));
    }
    return is;
}

slice sql_without_system(arena *a, slice body) {
    bson_iter_t it;
    bool any = false;
    for (size_t i = 0; i < SQL_SYSTEM_PROPERTIES; i++) {
        any = any || doc_find_key(body, sql_system_properties[i], &it);
    }
    if (!any || !bson_iter_init_from_data(&it, (const uint8_t *)body.p, body.n)) {
        return body;
    }
    bson_t clean = BSON_INITIALIZER;
    while (bson_iter_next(&it)) {
        if (!is_system(bson_iter_key(&it))) {
            bson_append_iter(&clean, bson_iter_key(&it), -1, &it);
        }
    }
    slice result = arena_copy(a, slice_of(bson_get_data(&clean), clean.len));
    bson_destroy(&clean);
    return result;
}

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
