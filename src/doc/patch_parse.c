#include <inttypes.h>

#include "base/limits.h"
#include "doc/patch_int.h"
#include "doc/path.h"

#define BAD_SYNTAX "Invalid patch request: check syntax of patch specification."

/* Resolves ~0 and ~1 as RFC 6901 does, and rejects any other character after a tilde. A NUL becomes C0 80, as in BSON keys. */
static bool unescape(arena *a, slice raw, slice *step_out) {
    if (!memchr(raw.p, '~', raw.n) && !memchr(raw.p, 0, raw.n)) {
        *step_out = raw;
        return true;
    }
    char *p = arena_alloc(a, 2 * raw.n);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];
        if (c == '~') {
            i++;
            if (i == raw.n || (raw.p[i] != '0' && raw.p[i] != '1')) {
                return false;
            }
            c = raw.p[i] == '0' ? '~' : '/';
        } else if (c == 0) {
            p[n++] = '\xC0';
            c = '\x80';
        }
        p[n++] = c;
    }
    *step_out = slice_of(p, n);
    return true;
}

bool patch__split(arena *a, slice text, patch_path *path_out) {
    slice steps[LIMIT_JSON_DEPTH];
    size_t n = 0;
    if (text.n == 0 || text.p[0] != '/') {
        return false;
    }
    slice rest = text;
    while (rest.n) {
        rest = slice_skip(rest, 1);
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        size_t step_n = slash ? (size_t)(slash - rest.p) : rest.n;
        if (n == LIMIT_JSON_DEPTH || !unescape(a, slice_of(rest.p, step_n), &steps[n++])) {
            return false;
        }
        rest = slice_skip(rest, step_n);
    }
    *path_out = (patch_path){.text = text, .steps = arena_alloc(a, n * sizeof *steps), .n = n};
    memcpy(path_out->steps, steps, n * sizeof *steps);
    return true;
}

bool patch__index(slice step, size_t *index_out) {
    uint64_t index;
    if (step.n == 0 || step.n > 10 || (step.n > 1 && step.p[0] == '0') || !slice_to_u64(step, &index)) {
        return false;
    }
    *index_out = index;
    return true;
}

/* Rejects invalid paths, and paths to the id or to system properties. */
static err check_target(op *o, size_t number, slice text) {
    static const slice system_properties[] = {SLICE_LIT("_rid"), SLICE_LIT("_ts"), SLICE_LIT("_self"), SLICE_LIT("_etag"),
                                              SLICE_LIT("_attachments")};
    patch_path path;
    if (!patch__split(o->arena, text, &path)) {
        return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX " Operation(%zu) has no valid path.", number);
    }
    for (size_t i = 0; i < sizeof system_properties / sizeof *system_properties; i++) {
        if (slice_eq(path.steps[0], system_properties[i])) {
            return op_fail(o, E_BAD_REQUEST, "Invalid patch request: Cannot patch system property %s.", system_properties[i].p);
        }
    }
    if (slice_eq(path.steps[0], SLICE_LIT("id"))) {
        return op_fail(o, E_BAD_REQUEST, "For Operation(%zu): Updating the id is not allowed.", number);
    }
    return OK;
}

static bool find_kind(slice word, patch_kind *kind_out) {
    static const slice words[] = {
        [PATCH_ADD] = SLICE_LIT("add"),       [PATCH_SET] = SLICE_LIT("set"),   [PATCH_REPLACE] = SLICE_LIT("replace"),
        [PATCH_REMOVE] = SLICE_LIT("remove"), [PATCH_INCR] = SLICE_LIT("incr"), [PATCH_MOVE] = SLICE_LIT("move"),
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_eq(word, words[i])) {
            *kind_out = (patch_kind)i;
            return true;
        }
    }
    return false;
}

static bool find_text(slice document, slice key, slice *text_out) {
    doc_element e;
    if (!doc_find_member(document, key, &e) || e.type != BSON_TYPE_UTF8) {
        return false;
    }
    *text_out = doc_element_text(&e);
    return true;
}

static err parse_operation(op *o, size_t number, const doc_element *e, patch_operation *operation) {
    slice word = SLICE_EMPTY;
    if (e->type != BSON_TYPE_DOCUMENT || !find_text(e->value, SLICE_LIT("op"), &word) || !find_kind(word, &operation->kind)) {
        return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX " Operation(%zu) is none of add, set, replace, remove, incr and move.", number);
    }
    if (!find_text(e->value, SLICE_LIT("path"), &operation->path)) {
        return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX " Operation(%zu) has no path.", number);
    }
    TRY(check_target(o, number, operation->path));
    if (operation->kind == PATCH_MOVE) {
        if (!find_text(e->value, SLICE_LIT("from"), &operation->from)) {
            return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX " Operation(%zu) has no 'from'.", number);
        }
        return check_target(o, number, operation->from);
    }
    if (operation->kind != PATCH_REMOVE && !doc_find_member(e->value, SLICE_LIT("value"), &operation->value)) {
        return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX " Operation(%zu) has no value.", number);
    }
    if (operation->kind == PATCH_INCR && !doc_is_number(operation->value.type)) {
        return op_fail(o, E_BAD_REQUEST, "For Operation(%zu): the value to increment by is not a number.", number);
    }
    return OK;
}

/* Finds the array of operations; the request itself may be that array. */
static bool find_operations(slice request, slice *array_out) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, request);
    *array_out = request;
    for (bool first = true; doc_walk_next(&w, &e); first = false) {
        if (first && slice_eq(e.key, SLICE_LIT("0"))) {
            return true;
        }
        if (slice_eq(e.key, SLICE_LIT("operations"))) {
            *array_out = e.value;
            return e.type == BSON_TYPE_ARRAY;
        }
    }
    return false;
}

err patch_parse(op *o, slice request, patch *patch_out) {
    *patch_out = (patch){0};
    slice array;
    doc_walk w;
    doc_element e;
    if (!find_operations(request, &array) || !doc_walk_init(&w, array)) {
        return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX);
    }
    if (!find_text(request, SLICE_LIT("condition"), &patch_out->condition) && doc_find_member(request, SLICE_LIT("condition"), &e) &&
        e.type != BSON_TYPE_NULL) {
        return op_fail(o, E_BAD_REQUEST, BAD_SYNTAX " The condition is no text.");
    }
    patch_out->operations = arena_array(o->arena, patch_operation, LIMIT_PATCH_OPERATIONS);
    while (doc_walk_next(&w, &e)) {
        if (patch_out->n == LIMIT_PATCH_OPERATIONS) {
            return op_fail(o, E_BAD_REQUEST, "The number of patch operations can't exceed '%d'.", LIMIT_PATCH_OPERATIONS);
        }
        TRY(parse_operation(o, patch_out->n + 1, &e, &patch_out->operations[patch_out->n]));
        patch_out->n++;
    }
    return patch_out->n && !w.corrupt ? OK : op_fail(o, E_BAD_REQUEST, BAD_SYNTAX);
}
