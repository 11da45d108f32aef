#include "item/row.h"

/* ---- ids of the SQL API ---- */

err row_check_id(op *o, slice id) {
    if (id.n == 0 || id.n > LIMIT_ID_BYTES) {
        return op_fail(o, E_BAD_REQUEST,
                       "The input name '%.*s' is invalid. Ensure to provide a unique non-empty string less than '%d' characters.",
                       slice_shown(id), id.p ? id.p : "", LIMIT_ID_BYTES + 1);
    }
    if (memchr(id.p, '/', id.n) || memchr(id.p, '\\', id.n)) { /* some SDKs reject more characters, the service does not */
        return op_fail(o, E_BAD_REQUEST, "The input name '%.*s' is invalid: an id may not contain '/' or '\\'.", slice_shown(id), id.p);
    }
    return OK;
}

static err text_of_id(op *o, slice body, slice *row_out) {
    doc_element id;
    if (!doc_find_member(body, SLICE_LIT("id"), &id)) {
        return op_fail(o, E_BAD_REQUEST, "The input content is invalid because the required properties - 'id; ' - are missing");
    }
    if (id.type != BSON_TYPE_UTF8) {
        return op_fail(o, E_BAD_REQUEST, "The input content is invalid because the property 'id' is not a string");
    }
    *row_out = doc_element_text(&id);
    return OK;
}

/* ---- values at paths ---- */

void row_add(buf *out, const row_definition *definition, size_t i, const doc_element *value) {
    doc_order_spell(out, value, definition->paths[i].descending);
}

static err add_path(op *o, const row_definition *definition, size_t i, slice body, buf *out) {
    doc_element value;
    const doc_path *path = &definition->paths[i].path;
    if (!doc_find_element(body, path, &value) || value.type == BSON_TYPE_UNDEFINED) {
        return op_fail(o, E_BAD_REQUEST, "The item has no value at '%.*s', which is a part of its row key. Add one.",
                       slice_shown(path->text), path->text.p);
    }
    row_add(out, definition, i, &value);
    return buf_ok(out)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "The item's row key is longer than %d bytes, or nested too deeply. Choose a shorter one.",
                         LIMIT_ROW_BYTES);
}

err row_of(op *o, arena *a, const row_definition *definition, slice body, slice *row_out) {
    *row_out = SLICE_EMPTY;
    if (definition->n == 0) {
        return text_of_id(o, body, row_out);
    }
    char room[LIMIT_ROW_BYTES];
    buf spelled = {.p = room, .cap = sizeof room, .max = sizeof room};
    for (size_t i = 0; i < definition->n; i++) {
        TRY(add_path(o, definition, i, body, &spelled));
    }
    *row_out = arena_copy(a, buf_view(&spelled));
    return OK;
}

err row_check_length(op *o, const row_definition *definition, slice row) {
    if (definition->n == 0) {
        return row.n > LIMIT_ID_BYTES ? row_check_id(o, row) : OK;
    }
    return row.n > LIMIT_ROW_BYTES ? op_fail(o, E_BAD_REQUEST, "A row key may have %d bytes at most.", LIMIT_ROW_BYTES) : OK;
}

/* ---- definitions ---- */

static err refuse_definition(op *o) {
    return op_fail(o, E_BAD_REQUEST,
                   "The row key definition must be an array of 1 to %d objects with a 'path' and, if wanted, an 'order' that is "
                   "'ascending' or 'descending'.",
                   LIMIT_ROW_PATHS);
}

static err read_path(op *o, const doc_element *element, row_path *path_out) {
    doc_element path, order;
    if (element->type != BSON_TYPE_DOCUMENT || !doc_find_member(element->value, SLICE_LIT("path"), &path) || path.type != BSON_TYPE_UTF8) {
        return refuse_definition(o);
    }
    *path_out = (row_path){0};
    if (doc_find_member(element->value, SLICE_LIT("order"), &order)) {
        slice word = order.type == BSON_TYPE_UTF8 ? doc_element_text(&order) : SLICE_EMPTY;
        path_out->descending = slice_eq(word, SLICE_LIT("descending"));
        if (!path_out->descending && !slice_eq(word, SLICE_LIT("ascending"))) {
            return refuse_definition(o);
        }
    }
    return doc_path_parse(o->arena, arena_copy(o->arena, doc_element_text(&path)), &path_out->path);
}

err row_definition_read(op *o, slice bson_array, row_definition *definition_out) {
    doc_walk walk;
    doc_element element;
    row_path *paths = arena_array(o->arena, row_path, LIMIT_ROW_PATHS);
    size_t n = 0;
    *definition_out = (row_definition){0};
    if (!doc_walk_init(&walk, bson_array)) {
        return refuse_definition(o);
    }
    while (doc_walk_next(&walk, &element)) {
        if (n == LIMIT_ROW_PATHS) {
            return refuse_definition(o);
        }
        TRY(read_path(o, &element, &paths[n++]));
    }
    *definition_out = (row_definition){paths, n};
    return n && !walk.corrupt ? OK : refuse_definition(o);
}

bool row_definition_same(const row_definition *a, const row_definition *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        same = a->paths[i].descending == b->paths[i].descending && slice_eq(a->paths[i].path.text, b->paths[i].path.text);
    }
    return same;
}
