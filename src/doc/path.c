#include "doc/path.h"

#include "base/limits.h"

/* Reads the step at text.p[at] (after the slash) and writes it unescaped to `into`. Returns the position after the step, or 0 if a quote is
 * not closed. A NUL becomes C0 80, as in BSON keys. */
static size_t read_step(slice text, size_t at, char *into, size_t *n_out) {
    char quote = at < text.n && (text.p[at] == '"' || text.p[at] == '\'') ? text.p[at++] : 0;
    size_t n = 0;
    for (; at < text.n; at++) {
        char c = text.p[at];
        if (c == (quote ? quote : '/')) {
            break;
        }
        if (quote && c == '\\' && at + 1 < text.n && text.p[at + 1] == quote) {
            c = text.p[++at];
        }
        if (c == 0) {
            into[n++] = '\xC0';
            c = '\x80';
        }
        into[n++] = c;
    }
    *n_out = n;
    if (!quote) {
        return at;
    }
    return at < text.n ? at + 1 : 0;
}

err doc_path_parse(arena *a, slice text, doc_path *path_out) {
    slice steps[LIMIT_PATH_DEPTH];
    size_t steps_n = 0;
    if (text.n < 2) {
        return E_BAD_REQUEST;
    }
    text = arena_copy(a, text);
    char *into = arena_alloc(a, 2 * text.n); /* each byte may become two; each slash becomes a zero byte */
    for (size_t at = 0; at < text.n;) {
        if (text.p[at] != '/' || steps_n == LIMIT_PATH_DEPTH) {
            return E_BAD_REQUEST;
        }
        size_t n;
        at = read_step(text, at + 1, into, &n);
        if (at == 0 || n == 0) {
            return E_BAD_REQUEST;
        }
        into[n] = 0;
        steps[steps_n++] = slice_of(into, n);
        into += n + 1;
    }
    *path_out = (doc_path){.text = text, .steps = arena_alloc(a, steps_n * sizeof *steps), .steps_n = steps_n};
    memcpy(path_out->steps, steps, steps_n * sizeof *steps);
    return OK;
}

bool doc_find_member(slice bson, slice key, doc_element *element_out) {
    uint64_t passed = 0;
    return doc_find_member_counted(bson, key, element_out, &passed);
}

/* Finds the element at a path; leaves in `*holder` the document that directly contains it. */
static bool find(slice *holder, const doc_path *path, doc_element *e) {
    for (size_t i = 0; i < path->steps_n; i++) {
        if (i > 0) {
            if (e->type != BSON_TYPE_DOCUMENT) {
                return false;
            }
            *holder = e->value;
        }
        if (!doc_find_member(*holder, path->steps[i], e)) {
            return false;
        }
    }
    return path->steps_n > 0;
}

bool doc_find_element(slice bson, const doc_path *path, doc_element *element_out) {
    return find(&bson, path, element_out);
}

/* Makes an iterator as bson_iter_find would leave it: on the element, in the document that contains it. */
static bool iter_on(slice holder, const doc_element *e, bson_iter_t *iter_out) {
    size_t n = (size_t)doc_load_i32(holder.p);
    uint32_t offset = (uint32_t)(e->key.p - 1 - holder.p);
    return bson_iter_init_from_data_at_offset(iter_out, (const uint8_t *)holder.p, n, offset, (uint32_t)e->key.n);
}

bool doc_find(slice bson, const doc_path *path, bson_iter_t *iter_out) {
    doc_element e = {0};
    return find(&bson, path, &e) && iter_on(bson, &e, iter_out);
}

bool doc_find_key(slice bson, slice key, bson_iter_t *iter_out) {
    doc_element e;
    return doc_find_member(bson, key, &e) && iter_on(bson, &e, iter_out);
}
