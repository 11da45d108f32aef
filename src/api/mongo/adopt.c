#include "api/mongo/adopt.h"

#include "api/mongo/mongo_int.h"
#include "api/mongo/update_kind.h"
#include "api/mongo/views.h"
#include "base/hex.h"
#include "item/foreign.h"

enum { OBJECT_ID_DIGITS = 24, VALIDATOR_STEPS = 20000 };

/* ---- ids as texts ---- */

static void add_extended(buf *out, mql_value id) {
    buf wrapped = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&wrapped);
    bson_t document;
    mql_add(&b, SLICE_LIT("v"), id);
    slice bytes = mql_built(&b);
    char *json = bson_init_static(&document, (const uint8_t *)bytes.p, bytes.n) ? bson_as_canonical_extended_json(&document, NULL) : NULL;
    slice text = slice_str(json ? json : ""), head = SLICE_LIT("{ \"v\" : ");
    if (slice_starts(text, head) && text.n > head.n + 2) { /* { "v" : … } */
        buf_add(out, text.p + head.n, text.n - head.n - 2);
    }
    bson_free(json);
    buf_free(&wrapped);
}

static void add_hex(buf *out, slice bytes) {
    for (size_t i = 0; i < bytes.n; i++) {
        buf_addf(out, "%02x", (unsigned)(uint8_t)bytes.p[i]);
    }
}

static void add_text_of(buf *out, mql_value id) {
    if (mql_is_text(id)) {
        buf_add_slice(out, mql_as_text(id));
    } else if (id.type == BSON_TYPE_OID) {
        add_hex(out, id.bytes);
    } else if (!mql_is_missing(id)) {
        add_extended(out, id);
    }
}

static void show_id(slice body, buf *out) {
    add_text_of(out, mongo_member(body, "_id"));
}

static bool is_object_id(slice text) {
    bool good = text.n == OBJECT_ID_DIGITS;
    for (size_t i = 0; good && i < text.n; i++) {
        good = hex_digit(text.p[i]) >= 0 && !(text.p[i] >= 'A' && text.p[i] <= 'F');
    }
    return good;
}

static mql_value object_id_of(arena *a, slice text) {
    char *bytes = arena_alloc(a, 12);
    for (size_t i = 0; i < 12; i++) {
        bytes[i] = (char)(hex_digit(text.p[2 * i]) << 4 | hex_digit(text.p[2 * i + 1]));
    }
    return (mql_value){BSON_TYPE_OID, slice_of(bytes, 12)};
}

/* Missing: it is not Extended JSON. */
static mql_value extended_of(arena *a, slice text) {
    mql_value id = mql_missing();
    slice json = arena_printf(a, "{\"v\":%.*s}", (int)text.n, text.p);
    bson_error_t why;
    bson_t *document = bson_new_from_json((const uint8_t *)json.p, (ssize_t)json.n, &why);
    if (document) {
        slice bytes = arena_copy(a, slice_of(bson_get_data(document), document->len));
        id = doc_is_well_formed(bytes, LIMIT_JSON_DEPTH) ? mongo_member(bytes, "v") : id;
        bson_destroy(document);
    }
    return id;
}

static mql_value id_of_text(arena *a, slice text) {
    mql_value id = is_object_id(text) ? object_id_of(a, text) : text.n && text.p[0] == '{' ? extended_of(a, text) : mql_missing();
    return mql_is_missing(id) ? mql_text(a, text) : id;
}

static err row_of_id(op *o, const container *c, slice text, slice *row_out) {
    mql_value id = text.n <= LIMIT_ROW_BYTES ? id_of_text(o->arena, text) : mql_missing();
    doc_element e = {.type = id.type, .value = id.bytes};
    buf row = buf_init(LIMIT_ROW_BYTES);
    if (!mql_is_missing(id)) {
        row_add(&row, &c->row, 0, &e);
    }
    bool good = buf_ok(&row) && row.n;
    *row_out = good ? arena_copy(o->arena, buf_view(&row)) : SLICE_EMPTY;
    buf_free(&row);
    return good ? OK : op_fail(o, E_BAD_REQUEST, "The id is too long for an _id.");
}

/* ---- documents ---- */

static bool is_shown_id(mql_value id, const doc_element *e) {
    buf text = buf_init(BUF_NO_LIMIT);
    add_text_of(&text, id);
    bool same = e->type == BSON_TYPE_UTF8 && slice_eq(doc_element_text(e), buf_view(&text));
    buf_free(&text);
    return same;
}

static err find_id(op *o, slice body, mql_value *id_out) {
    mql_value text = mongo_member(body, "id");
    *id_out = mongo_member(body, "_id");
    if (mql_is_missing(*id_out) && (!mql_is_text(text) || !mql_as_text(text).n)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The container is a collection of MongoDB: the item must have an '_id', or an 'id' that is a string.");
    }
    if (mql_is_missing(*id_out)) {
        *id_out = id_of_text(o->arena, mql_as_text(text));
    }
    bool bad = id_out->type == BSON_TYPE_ARRAY || id_out->type == BSON_TYPE_UNDEFINED || id_out->type == BSON_TYPE_REGEX;
    return bad ? op_fail(o, E_BAD_REQUEST, "The container is a collection of MongoDB: '_id' cannot be of type %s.",
                         mql_type_name(id_out->type))
               : OK;
}

static err adopt(op *o, const container *c, int64_t now_ms, slice body, slice *stored_out) {
    const mongo_validator *validator;
    mql_value id;
    doc_walk w;
    doc_element e;
    uint64_t steps = VALIDATOR_STEPS;
    (void)now_ms;
    if (mongo_is_view(c)) {
        return op_fail(o, E_BAD_REQUEST, "The container is a view of MongoDB: write to the collection that it shows.");
    }
    TRY(find_id(o, body, &id));
    buf out = buf_init_counted(LIMIT_EDITED_BYTES, o->budget);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("_id"), id);
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        bool is_id = slice_eq(e.key, SLICE_LIT("_id")) || (slice_eq(e.key, SLICE_LIT("id")) && is_shown_id(id, &e));
        if (!is_id) {
            mql_add_element(&b, &e);
        }
    }
    *stored_out = mongo_built_copy(o->arena, &b, &out);
    if (!stored_out->n) {
        return E_TOO_LARGE;
    }
    TRY(mongo_validator_read(o, c, &validator));
    return mongo_validate(o, o->arena, validator, *stored_out, &steps);
}

void mongo_adopt_register(void) {
    static const item_owner owner = {.api = "mongo", .adopt = adopt, .row_of_id = row_of_id, .show_id = show_id};
    item_owner_register(&owner);
}
