/* Decoding shared by all endpoints (parameters, bodies, containers, ranges), and helpers that write JSON. */
#include <math.h>
#include <stdio.h>

#include "api/admin/admin_int.h"
#include "base/percent.h"
#include "doc/json.h"

enum { BODY_BYTES_MAX = 64 * 1024, BSON_BYTES_MAX = 256 * 1024, BODY_DEPTH = 16 };

/* ---- parameters of the query ---- */

/* Encoded as in HTML forms: a plus is a blank. */
static err decode(admin_request *q, slice raw, slice *value_out) {
    char *text = arena_text(q->op.arena, raw), *decoded = arena_text(q->op.arena, raw);
    size_t n = 0;
    for (char *plus = text; (plus = strchr(plus, '+'));) {
        *plus = ' ';
    }
    if (!percent_decode(slice_of(text, raw.n), decoded, &n) || !bson_utf8_validate(decoded, n, false)) {
        return op_fail(&q->op, E_BAD_REQUEST, "The query of the URL must be UTF-8, percent-encoded.");
    }
    *value_out = slice_of(decoded, n);
    return OK;
}

err admin_param(admin_request *q, const char *name, slice *value_out) {
    slice rest = q->http->query, wanted = slice_str(name);
    *value_out = SLICE_EMPTY;
    while (rest.n) {
        const char *end = memchr(rest.p, '&', rest.n);
        slice pair = slice_of(rest.p, end ? (size_t)(end - rest.p) : rest.n);
        rest = slice_skip(rest, pair.n + 1);
        if (pair.n > wanted.n && slice_starts(pair, wanted) && pair.p[wanted.n] == '=') {
            return decode(q, slice_skip(pair, wanted.n + 1), value_out);
        }
    }
    return OK;
}

err admin_param_number(admin_request *q, const char *name, uint64_t least, uint64_t most, uint64_t *value_out) {
    slice text;
    uint64_t value;
    TRY(admin_param(q, name, &text));
    if (!text.p) {
        return OK;
    }
    if (!slice_to_u64(text, &value) || value < least || value > most) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be a number from %lu to %lu.", name, (unsigned long)least, (unsigned long)most);
    }
    *value_out = value;
    return OK;
}

/* ---- bodies ---- */

static err check_names(admin_request *q, const char *const *names, size_t names_n, slice bson) {
    doc_walk walk;
    doc_element element;
    bool good = doc_walk_init(&walk, bson);
    while (good && doc_walk_next(&walk, &element)) {
        bool known = false;
        for (size_t i = 0; i < names_n; i++) {
            known = known || slice_eq(element.key, slice_str(names[i]));
        }
        if (!known) {
            return op_fail(&q->op, E_BAD_REQUEST, "There is no property '%.*s' in this request.", slice_shown(element.key), element.key.p);
        }
    }
    return OK;
}

err admin_body(admin_request *q, const char *const *names, size_t names_n, slice *bson_out) {
    json_options options = {.depth_max = BODY_DEPTH};
    json_error why = {0};
    json_root root;
    buf bson = buf_init(BSON_BYTES_MAX);
    if (q->http->body.n > BODY_BYTES_MAX) {
        return E_TOO_LARGE;
    }
    err code = json_to_bson(q->http->body, &options, &bson, &root, &why);
    *bson_out = code == OK ? arena_copy(q->op.arena, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&bson);
    if (code == OK && root != JSON_OBJECT) {
        return op_fail(&q->op, E_BAD_REQUEST, "The body must be a JSON object.");
    }
    if (code != OK) {
        return op_fail(&q->op, E_BAD_REQUEST, "The body is no JSON: %s at byte %zu.", why.reason ? why.reason : "too much of it",
                       why.offset);
    }
    return check_names(q, names, names_n, *bson_out);
}

err admin_text(admin_request *q, slice bson, const char *name, slice *value_out) {
    bson_iter_t it;
    *value_out = SLICE_EMPTY;
    if (!doc_find_key(bson, slice_str(name), &it)) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_UTF8(&it) || doc_text(&it).n > LIMIT_NAME_BYTES) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be a string of at most %d bytes.", name, LIMIT_NAME_BYTES);
    }
    *value_out = doc_text(&it);
    return OK;
}

err admin_double(admin_request *q, slice bson, const char *name, double least, double most, double *value_out) {
    bson_iter_t it;
    if (!doc_find_key(bson, slice_str(name), &it)) {
        return OK;
    }
    double value = BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_double(&it) : NAN;
    if (!(value >= least && value <= most)) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be a number from %g to %g.", name, least, most);
    }
    *value_out = value;
    return OK;
}

/* A double holds whole numbers exactly up to 2^53; larger ones must be integers. */
err admin_number(admin_request *q, slice bson, const char *name, uint64_t least, uint64_t most, uint64_t *value_out) {
    bson_iter_t it;
    if (!doc_find_key(bson, slice_str(name), &it)) {
        return OK;
    }
    bool whole = false;
    uint64_t value = 0;
    if (BSON_ITER_HOLDS_INT(&it)) {
        int64_t number = bson_iter_as_int64(&it);
        whole = number >= 0;
        value = (uint64_t)number;
    } else if (BSON_ITER_HOLDS_DOUBLE(&it)) {
        double number = bson_iter_double(&it);
        whole = number >= 0 && number <= 0x1p53 && floor(number) == number;
        value = whole ? (uint64_t)number : 0;
    }
    if (!whole || value < least || value > most) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be a whole number from %lu to %lu.", name, (unsigned long)least,
                       (unsigned long)most);
    }
    *value_out = value;
    return OK;
}

err admin_range_id(admin_request *q, slice bson, const char *name, int64_t *id_out) {
    bson_iter_t it;
    uint64_t id = 0;
    if (!doc_find_key(bson, slice_str(name), &it)) {
        return OK;
    }
    if (BSON_ITER_HOLDS_UTF8(&it)) {
        if (!slice_to_u64(doc_text(&it), &id) || id > UINT32_MAX) {
            return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be the id of a range, such as \"0\".", name);
        }
    } else {
        TRY(admin_number(q, bson, name, 0, UINT32_MAX, &id));
    }
    *id_out = (int64_t)id;
    return OK;
}

/* ---- containers and ranges ---- */

err admin_container(admin_request *q, slice database, slice name, container **container_out) {
    *container_out = NULL;
    if (!database.n || !name.n) {
        return op_fail(&q->op, E_BAD_REQUEST, "'database' and 'container' must be given.");
    }
    if (account_container(q->admin->account, database, false, name, false, container_out) != OK) {
        return op_fail(&q->op, E_NOT_FOUND, "There is no container '%.*s' in a database '%.*s'.", slice_shown(name), name.p,
                       slice_shown(database), database.p);
    }
    return OK;
}

err admin_range(admin_request *q, const container *c, int64_t id, size_t *position_out) {
    bool possible = id >= 0 && id <= UINT32_MAX;
    range_info found;
    if (possible && range_info_by_id(c, (uint32_t)id, &found)) {
        *position_out = range_position(c, &found.range.min);
        return OK;
    }
    return possible && range_is_gone(c, (uint32_t)id)
               ? op_fail(&q->op, E_RANGE_GONE, "The range %ld is gone: it was split or merged.", (long)id)
               : op_fail(&q->op, E_NOT_FOUND, "There is no range %ld in the container.", (long)id);
}

/* ---- answers ---- */

static void add_name(buf *out, const char *name) {
    buf_addf(out, ",\"%s\":", name);
}

void admin_add(buf *out, const char *name, uint64_t value) {
    add_name(out, name);
    buf_add_u64(out, value);
}

void admin_add_text(buf *out, const char *name, slice value) {
    add_name(out, name);
    json_add_string(out, value);
}

void admin_add_decimal(buf *out, const char *name, double value, int decimals) {
    add_name(out, name);
    buf_addf(out, "%.*f", decimals, isfinite(value) ? value : 0);
}

void admin_add_id(buf *out, const char *name, uint32_t id) {
    add_name(out, name);
    buf_addf(out, "\"%u\"", id);
}
