#include "api/table/adopt.h"

#include "api/table/table_int.h"
#include "doc/path.h"

static err refuse(op *o, slice name, table_error error) {
    return op_fail(o, E_BAD_REQUEST, "The container is a table, and the item breaks its rules at '%.*s': %s", slice_shown(name), name.p,
                   table_refusal_of(error)->sentence);
}

/* ---- keys ---- */

static err add_key(op *o, buf *out, slice body, slice name) {
    doc_element e;
    if (!doc_find_member(body, name, &e) || e.type != BSON_TYPE_UTF8) {
        return op_fail(o, E_BAD_REQUEST, "The container is a table: the item must have PartitionKey and RowKey, and both must be strings.");
    }
    table_error error = entity_check_key(doc_element_text(&e));
    if (error != TABLE_FINE) {
        return refuse(o, name, error);
    }
    buf_add_slice(out, doc_element_bytes(&e));
    return OK;
}

static void add_timestamp(buf *out, int64_t now_ms) {
    char bytes[8];
    doc_store_i64(bytes, now_ms);
    buf_add_byte(out, BSON_TYPE_DATE_TIME);
    buf_add(out, "Timestamp", sizeof "Timestamp");
    buf_add(out, bytes, sizeof bytes);
}

static err row_of_id(op *o, const container *c, slice id, slice *row_out) {
    table_error error = entity_check_key(id);
    *row_out = table_row_of(o->arena, c, id);
    return error == TABLE_FINE ? OK : refuse(o, SLICE_LIT("RowKey"), error);
}

/* ---- properties ---- */

static bool is_binary(const doc_element *e) {
    enum { HEAD = 5, SUBTYPE_AT = 4 };
    char subtype = e->value.p[SUBTYPE_AT];
    return subtype == BSON_SUBTYPE_BINARY || (subtype == BSON_SUBTYPE_UUID && e->value.n == HEAD + EDM_GUID_BYTES);
}

static table_error check_value(slice body, const doc_element *e) {
    edm_value v;
    if ((e->type == BSON_TYPE_BINARY && !is_binary(e)) || !edm_of_element(body, e, &v)) {
        return TABLE_VALUE_TYPE;
    }
    return v.type == EDM_DATE_TIME && !edm_time_in_range(v.number) ? TABLE_OUT_OF_RANGE : TABLE_FINE;
}

/* Ticks belong to a date. Without it, since a patch removed or replaced it, they are dropped. */
static bool has_date(slice body, const doc_element *ticks) {
    doc_element date;
    return doc_find_member(body, edm_ticks_owner(ticks->key), &date) && date.type == BSON_TYPE_DATE_TIME;
}

static table_error check_ticks(const doc_element *e) {
    int32_t rest = e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p) : -1;
    return rest >= 0 && rest < EDM_TICKS_PER_MS ? TABLE_FINE : TABLE_VALUE_TYPE;
}

static err add_property(op *o, buf *out, slice body, const doc_element *e) {
    bool ticks = edm_is_ticks(e->key);
    if (entity_is_system(e->key) || e->type == BSON_TYPE_NULL || (ticks && !has_date(body, e))) {
        return OK;
    }
    table_error error = ticks ? check_ticks(e) : entity_check_name(e->key);
    error = error == TABLE_FINE && !ticks ? check_value(body, e) : error;
    if (error != TABLE_FINE) {
        return refuse(o, e->key, error);
    }
    buf_add_slice(out, doc_element_bytes(e));
    return OK;
}

/* Stops at the limit, so that an item of many members is not searched for each of them. */
static err add_properties(op *o, buf *out, slice body) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (++n > 2 * ENTITY_PROPERTIES_MAX) { /* a property and its ticks */
            return refuse(o, e.key, TABLE_TOO_MANY_PROPERTIES);
        }
        TRY(add_property(o, out, body, &e));
    }
    return OK;
}

/* ---- the whole ---- */

static err add_entity(op *o, buf *out, int64_t now_ms, slice body) {
    buf_add(out, "\0\0\0\0", 4);
    TRY(add_key(o, out, body, SLICE_LIT("PartitionKey")));
    TRY(add_key(o, out, body, SLICE_LIT("RowKey")));
    add_timestamp(out, now_ms);
    TRY(add_properties(o, out, body));
    buf_add_byte(out, '\0');
    if (!buf_ok(out) || !arena_fits(o->arena, out->n)) {
        return E_TOO_LARGE;
    }
    doc_store_i32(out->p, (int32_t)out->n);
    return OK;
}

err adopt_entity(op *o, const container *c, int64_t now_ms, slice body, slice *stored_out) {
    buf out = buf_init_counted(LIMIT_EDITED_BYTES, o->budget);
    err code = add_entity(o, &out, now_ms, body);
    if (code == OK) {
        *stored_out = arena_copy(o->arena, buf_view(&out));
        table_error error = entity_check_limits(*stored_out, table_is_large(c));
        code = error == TABLE_FINE ? OK : refuse(o, entity_text(*stored_out, SLICE_LIT("RowKey")), error);
    }
    buf_free(&out);
    return code;
}

static const item_owner owner = {.api = "table", .adopt = adopt_entity, .row_of_id = row_of_id};

void adopt_register(void) {
    item_owner_register(&owner);
}
