/* Which paths the items have, and what their values look like. */
#include "advise/advise_int.h"

#include <math.h>

#include "base/date.h"
#include "base/hash.h"

static const char *const system_names[] = {"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"};

static bool is_system(slice key) {
    for (size_t i = 0; i < sizeof system_names / sizeof *system_names; i++) {
        if (slice_eq(key, slice_str(system_names[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_plain(slice name) {
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return name.n > 0;
}

void advise__add_path_name(buf *out, slice name) {
    buf_add_byte(out, '/');
    if (is_plain(name)) {
        buf_add_slice(out, name);
        return;
    }
    buf_add_byte(out, '"');
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '"') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, name.p[i]);
    }
    buf_add_byte(out, '"');
}

uint64_t advise__mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

size_t advise__paths_find(const advise_paths *p, slice text) {
    for (size_t i = 0; i < p->n; i++) {
        if (slice_eq(p->list[i].path.text, text)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static advise_path *path_of(advise_paths *p, arena *a, slice text) {
    size_t at = advise__paths_find(p, text);
    if (at != SIZE_MAX) {
        return &p->list[at];
    }
    char *copy = arena_alloc(a, text.n + 1);
    memcpy(copy, text.p, text.n);
    doc_path path;
    if (p->n == ADVISE_PATHS || doc_path_parse(a, slice_of(copy, text.n), &path) != OK) {
        p->left_out++;
        return NULL;
    }
    advise_path *made = &p->list[p->n++];
    *made = (advise_path){.path = path, .values = arena_alloc(a, sizeof *made->values)};
    memset(made->values, 0, sizeof *made->values);
    return made;
}

/* A value that cannot be a key is undefined. */
static pkey_value scalar_of(const doc_element *e) {
    pkey_value value;
    return pkey_plain_value(e, &value) ? value : (pkey_value){.type = PKEY_UNDEFINED};
}

pkey_value advise__value_at(const advise_path *p, slice item, bool *is_array) {
    doc_element e;
    *is_array = false;
    if (!doc_find_element(item, &p->path, &e)) {
        return (pkey_value){.type = PKEY_UNDEFINED};
    }
    *is_array = e.type == BSON_TYPE_ARRAY;
    return scalar_of(&e);
}

/* A date as text, or seconds or milliseconds since 1970 between 2001 and 2100. */
bool advise__time_of(const pkey_value *v, double *seconds_out) {
    int64_t seconds;
    if (v->type == PKEY_STRING && date_parse_iso(v->text, &seconds)) {
        *seconds_out = (double)seconds;
        return true;
    }
    double n = v->type == PKEY_NUMBER ? v->number : 0;
    *seconds_out = n >= 1e12 ? n / 1000 : n;
    return (n >= 1e9 && n < 4.1e9) || (n >= 1e12 && n < 4.1e12);
}

static void note_value(advise_path *p, const pkey_value *v) {
    double time;
    uint64_t bits = 0;
    memcpy(&bits, &v->number, sizeof bits);
    p->items++;
    p->dates += advise__time_of(v, &time);
    p->fractions += v->type == PKEY_NUMBER && v->number != floor(v->number);
    if (v->type == PKEY_STRING) {
        p->text_bytes += (double)v->text.n;
        p->spaced += v->text.n && memchr(v->text.p, ' ', v->text.n) != NULL;
        bits = hash_bytes(v->text, 1);
    }
    distinct_add(p->values, advise__mixed(bits + v->type));
}

static void note_level(advise_paths *p, arena *a, slice document, buf *path, unsigned depth) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        size_t before = path->n;
        if ((depth == 0 && is_system(e.key)) || !bson_utf8_validate(e.key.p, e.key.n, false)) {
            continue; /* names with a zero byte cannot be in a path */
        }
        advise__add_path_name(path, e.key);
        if (e.type == BSON_TYPE_DOCUMENT && depth + 1 < ADVISE_DEPTH) {
            note_level(p, a, e.value, path, depth + 1);
        } else if (e.type != BSON_TYPE_DOCUMENT && path->n <= ADVISE_PATH_BYTES) {
            advise_path *of = path_of(p, a, buf_view(path));
            pkey_value v = scalar_of(&e);
            if (of && e.type == BSON_TYPE_ARRAY) {
                of->has_arrays = true;
            } else if (of && v.type != PKEY_UNDEFINED) {
                note_value(of, &v);
            }
        }
        path->n = before;
    }
}

void advise__paths_note(advise_paths *p, arena *a, slice item) {
    buf path = buf_init(BUF_NO_LIMIT);
    p->items++;
    note_level(p, a, item, &path, 0);
    buf_free(&path);
}

/* The path with the most different times; one wanted by name must hold times too. */
size_t advise__time_path(const advise_paths *p, slice wanted) {
    size_t best = SIZE_MAX;
    if (wanted.n) {
        return advise__paths_find(p, wanted);
    }
    for (size_t i = 0; i < p->n; i++) {
        const advise_path *path = &p->list[i];
        bool times = path->items > 0.9 * p->items && path->dates > 0.99 * path->items;
        if (times && (best == SIZE_MAX || path->values_n > p->list[best].values_n)) {
            best = i;
        }
    }
    return best;
}
