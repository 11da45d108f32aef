#include "api/table/merge.h"

#include "api/table/entity.h"
#include "doc/path.h"

/* ---- arguments ---- */

static slice finish(arena *a, bson_t *document) {
    slice bytes = arena_copy(a, slice_of(bson_get_data(document), document->len));
    bson_destroy(document);
    return bytes;
}

item_edit merge_edit(arena *a, slice body, bool must_exist, bool large) {
    bson_t argument = BSON_INITIALIZER, set;
    if (bson_init_static(&set, (const uint8_t *)body.p, body.n)) {
        bson_append_document(&argument, "set", -1, &set);
    }
    bson_append_bool(&argument, "must", -1, must_exist);
    bson_append_bool(&argument, "large", -1, large);
    return (item_edit){.kind = ITEM_EDIT_MERGE, .argument = finish(a, &argument)};
}

item_condition merge_condition(arena *a, slice etag) {
    bson_t argument = BSON_INITIALIZER;
    bson_append_utf8(&argument, "etag", -1, etag.p, (int)etag.n);
    return (item_condition){.kind = ITEM_CONDITION_STAMP, .argument = finish(a, &argument)};
}

static bool flag_of(slice argument, const char *name) {
    doc_element e;
    return doc_find_member(argument, slice_str(name), &e) && e.type == BSON_TYPE_BOOL && e.value.p[0];
}

/* ---- merging ---- */

/* Whether the new entity replaces this member of the stored one: it has the property, or, for ticks, the property that they belong to. */
static bool is_replaced(slice set, slice name) {
    doc_element unused;
    return doc_find_member(set, edm_is_ticks(name) ? edm_ticks_owner(name) : name, &unused);
}

static void add_members(buf *out, slice from, slice without) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, from); doc_walk_next(&w, &e);) {
        if (!without.n || !is_replaced(without, e.key)) {
            buf_add_slice(out, doc_element_bytes(&e));
        }
    }
}

/* Keys and timestamp come first, from the new entity; then the stored properties that stay; then the new ones. */
static void merge(buf *out, slice stored, slice set) {
    enum { SYSTEM_MEMBERS = 3 };
    doc_walk w;
    doc_element e;
    buf_add(out, "\0\0\0\0", 4);
    doc_walk_init(&w, set);
    for (int i = 0; i < SYSTEM_MEMBERS && doc_walk_next(&w, &e); i++) {
        buf_add_slice(out, doc_element_bytes(&e));
    }
    add_members(out, stored, set);
    while (doc_walk_next(&w, &e)) {
        buf_add_slice(out, doc_element_bytes(&e));
    }
    buf_add_byte(out, '\0');
    if (buf_ok(out)) {
        doc_store_i32(out->p, (int32_t)out->n);
    }
}

static err check_merged(op *o, slice body, bool large) {
    switch (entity_check_size(body, large)) {
    case TABLE_FINE:
        return OK;
    case TABLE_TOO_MANY_PROPERTIES:
        return op_fail(o, E_BAD_REQUEST, "%s", table_refusal_of(TABLE_TOO_MANY_PROPERTIES)->sentence);
    default:
        return op_fail(o, E_TOO_LARGE, "%s", table_refusal_of(TABLE_ENTITY_TOO_LARGE)->sentence);
    }
}

/* Each stored member is looked for in the new entity. */
static uint64_t estimate(const item_edit_input *in) {
    return item_edit_steps(in->body.n + in->argument.n) * 4 + in->body.n / 32 * (1 + in->argument.n / 2048);
}

static err apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    doc_element set;
    bool sound = doc_find_member(in->argument, SLICE_LIT("set"), &set) && set.type == BSON_TYPE_DOCUMENT;
    if (!sound || (!in->there && flag_of(in->argument, "must"))) {
        return sound ? E_NOT_FOUND : E_BAD_REQUEST;
    }
    if (!item_edit_pay(b, estimate(in))) {
        return item_edit_too_long(o);
    }
    result_out->answer = ITEM_EDIT_PUT;
    if (!in->there) {
        result_out->body = arena_copy(o->arena, set.value);
        return OK;
    }
    buf merged = buf_init(LIMIT_EDITED_BYTES);
    merge(&merged, in->body, set.value);
    result_out->body = arena_copy(o->arena, buf_view(&merged));
    buf_free(&merged);
    return check_merged(o, result_out->body, flag_of(in->argument, "large"));
}

/* ---- etags ---- */

static err check_stamp(op *o, const item_edit_input *in, item_edit_budget *b) {
    doc_element etag;
    buf now = buf_init(BUF_NO_LIMIT);
    (void)o;
    if (!in->there) {
        return E_NOT_FOUND;
    }
    if (!item_edit_pay(b, item_edit_steps(in->body.n))) {
        return item_edit_too_long(o);
    }
    entity_etag(&now, in->body, item_version(&in->head), in->head.ts);
    bool same = doc_find_member(in->argument, SLICE_LIT("etag"), &etag) && etag.type == BSON_TYPE_UTF8 &&
                slice_eq(doc_element_text(&etag), buf_view(&now));
    buf_free(&now);
    return same ? OK : E_PRECONDITION;
}

void merge_register(void) {
    static const item_edit_kind edit = {.id = ITEM_EDIT_MERGE, .name = "merge", .estimate = estimate, .apply = apply};
    static const item_condition_kind condition = {.id = ITEM_CONDITION_STAMP, .name = "etag", .check = check_stamp};
    item_edit_register(&edit);
    item_condition_register(&condition);
}
