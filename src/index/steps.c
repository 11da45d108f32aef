/* steps.c — parses the paths of policies; access to the members of settings. */
#include "index/policy_int.h"

/* ---- paths ---- */

/* The length of an unquoted step: up to the next slash, or for a tuple its closing brace. */
static size_t plain_length(slice rest) {
    size_t n = 0;
    char end = rest.n && rest.p[0] == '{' ? '}' : '/';
    while (n < rest.n && rest.p[n] != end) {
        n++;
    }
    return end == '}' && n < rest.n ? n + 1 : n;
}

/* Removes the first step, with its slash, from a path and returns it without quotes. False: not a valid step. */
static bool next_step(slice *path, slice *step_out, bool *quoted_out) {
    if (path->n < 2 || path->p[0] != '/') {
        return false;
    }
    slice rest = slice_skip(*path, 1);
    char quote = rest.p[0];
    bool quoted = *quoted_out = quote == '"' || quote == '\'';
    size_t n = quoted ? 1 : plain_length(rest);
    while (quoted && n < rest.n && rest.p[n] != quote) {
        n++;
    }
    if (quoted && n == rest.n) {
        return false;
    }
    slice after = slice_skip(rest, quoted ? n + 1 : n);
    if (after.n && after.p[0] != '/') {
        return false;
    }
    *step_out = quoted ? slice_of(rest.p + 1, n - 1) : slice_of(rest.p, n);
    *path = after;
    return step_out->n > 0;
}

/* [] is any element, and [3] means the same: the index does not record positions in arrays. */
static bool is_element(slice step) {
    bool is = step.n >= 2 && step.p[0] == '[' && step.p[step.n - 1] == ']';
    for (size_t i = 1; is && i + 1 < step.n; i++) {
        is = step.p[i] >= '0' && step.p[i] <= '9';
    }
    return is;
}

static bool add_step(index_read_path *path, slice name, bool element) {
    if (path->n == LIMIT_PATH_DEPTH) {
        return false;
    }
    path->steps[path->n++] = (index_step){.name = element ? SLICE_EMPTY : name, .element = element};
    return true;
}

/* A tuple must directly follow the only [] of its path, and be followed by "/?". */
static bool take_tuple(index_read_path *path, slice step, slice rest) {
    size_t elements = 0;
    for (size_t i = 0; i < path->n; i++) {
        elements += path->steps[i].element;
    }
    path->tuple = slice_of(step.p + 1, step.n - 2);
    return path->n && path->steps[path->n - 1].element && elements == 1 && step.n > 2 && step.p[step.n - 1] == '}' &&
           slice_eq(rest, SLICE_LIT("/?"));
}

static bool take_step(index_read_path *path, slice step, bool quoted, slice rest) {
    if (quoted) {
        return add_step(path, step, false);
    }
    bool last = rest.n == 0;
    if (slice_eq(step, SLICE_LIT("?")) || slice_eq(step, SLICE_LIT("*"))) {
        path->end = step.p[0] == '?' ? ENDS_SCALAR : ENDS_STAR;
        return last;
    }
    if (step.p[0] == '{') {
        return take_tuple(path, step, rest);
    }
    return add_step(path, step, is_element(step));
}

bool index__read_path(slice text, index_read_path *path_out, size_t *position_out) {
    slice rest = text, step;
    bool quoted;
    path_out->n = 0;
    path_out->end = ENDS_PLAIN;
    path_out->tuple = SLICE_EMPTY;
    *position_out = 0;
    if (slice_eq(text, SLICE_LIT("/"))) {
        path_out->end = ENDS_STAR;
        return true;
    }
    do {
        *position_out = text.n - rest.n;
        if (!next_step(&rest, &step, &quoted) || !take_step(path_out, step, quoted, rest)) {
            return false;
        }
    } while (rest.n);
    return true;
}

bool index__read_tuple_member(slice text, index_read_path *path) {
    slice member = slice_trim(text);
    if (member.n == 0 || member.p[0] == '/') {
        return false;
    }
    while (member.n) {
        const char *slash = memchr(member.p, '/', member.n);
        slice step = slice_of(member.p, slash ? (size_t)(slash - member.p) : member.n);
        bool special = slice_eq(step, SLICE_LIT("?")) || slice_eq(step, SLICE_LIT("*")) || slice_eq(step, SLICE_LIT("[]"));
        if (step.n == 0 || special || memchr(step.p, '{', step.n) || !add_step(path, step, is_element(step))) {
            return false;
        }
        member = slice_skip(member, step.n + (slash ? 1 : 0));
        if (slash && member.n == 0) {
            return false;
        }
    }
    return true;
}

/* ---- members of settings ---- */

slice index__text(slice document, const char *key) {
    doc_element e;
    return document.n && doc_find_member(document, slice_str(key), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

bool index__has(slice document, const char *key) {
    doc_element e;
    return document.n && doc_find_member(document, slice_str(key), &e) && e.type != BSON_TYPE_NULL;
}

static size_t count(slice list) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (bool more = doc_walk_init(&w, list); more && doc_walk_next(&w, &e);) {
        n++;
    }
    return n;
}

err index__list(op *o, slice document, const char *key, size_t most, slice *list_out, size_t *n_out) {
    doc_element e;
    *list_out = SLICE_EMPTY;
    *n_out = 0;
    if (!index__has(document, key) || !doc_find_member(document, slice_str(key), &e)) {
        return OK;
    }
    *n_out = count(e.value);
    if (e.type != BSON_TYPE_ARRAY || *n_out > most) {
        return op_fail(o, E_BAD_REQUEST, "One of the specified inputs is invalid: '%s' must be an array of at most %zu.", key, most);
    }
    *list_out = e.value;
    return OK;
}

bool index__next(doc_walk *w, slice *object_out) {
    doc_element e;
    if (!doc_walk_next(w, &e)) {
        return false;
    }
    *object_out = e.type == BSON_TYPE_DOCUMENT ? e.value : SLICE_EMPTY;
    return true;
}
