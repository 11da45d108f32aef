/* The candidates, and the keys that they give items. */
#include "advise/advise_int.h"

#include <stdlib.h>

#include "base/hash.h"
#include "doc/json.h"
#include "partition/epk.h"

uint32_t advise__suffix(slice text) {
    uint32_t h = 0x811c9dc5u;
    for (size_t i = 0; i < text.n; i++) {
        h = (h ^ (unsigned char)text.p[i]) * 0x01000193u;
    }
    return 1 + h % ADVISE_SUFFIXES;
}

/* ---- one key ---- */

static void add_text(buf *out, const pkey_value *v) {
    if (v->type == PKEY_STRING) {
        buf_add_slice(out, v->text);
    } else if (v->type == PKEY_NUMBER) {
        json_add_double(out, v->number);
    } else {
        buf_addf(out, "%s", v->type == PKEY_TRUE ? "true" : v->type == PKEY_FALSE ? "false" : v->type == PKEY_NULL ? "null" : "");
    }
}

/* The client would form the same text (advise_add_code). */
static void add_synthetic(buf *out, const advise_candidate *c, const pkey_value *values, uint32_t random) {
    buf other = buf_init(BUF_NO_LIMIT);
    add_text(out, &values[c->paths[0]]);
    if (c->kind == ADVISE_CONCATENATED) {
        buf_add_byte(out, '-');
        add_text(out, &values[c->paths[1]]);
    } else if (c->kind == ADVISE_RANDOM) {
        buf_addf(out, ".%u", 1 + random % ADVISE_SUFFIXES);
    } else {
        add_text(&other, &values[c->paths[1]]);
        buf_addf(out, ".%u", advise__suffix(buf_view(&other)));
    }
    buf_free(&other);
}

static void place(advise_formed *f, const pkey_value *levels, size_t n) {
    for (size_t i = 0; i < n; i++) {
        epk e;
        epk_hash_v2(&levels[i], 1, &e);
        if (i == 0) {
            f->position = ((e.bytes[0] & 0x3F) * 256 + e.bytes[1]) / 16384.0;
        }
        f->id = advise__mixed(hash_bytes(epk_view(&e), f->id + i));
    }
}

advise_formed advise__form(arena *a, const advise_candidate *c, const pkey_value *values, uint32_t random) {
    advise_formed f = {0};
    pkey_value levels[3];
    buf text = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < c->n; i++) {
        levels[i] = values[c->paths[i]];
        f.missing = f.missing || levels[i].type == PKEY_UNDEFINED;
        f.too_long = f.too_long || levels[i].text.n > LIMIT_KEY_BYTES;
    }
    if (c->kind == ADVISE_PATH || c->kind == ADVISE_HIERARCHICAL) {
        for (size_t i = 0; i < c->n; i++) {
            buf_addf(&text, "%s", i ? ", " : "");
            add_text(&text, &levels[i]);
        }
        place(&f, levels, c->n);
    } else {
        add_synthetic(&text, c, values, random);
        f.too_long = text.n > LIMIT_KEY_BYTES;
        place(&f, &(pkey_value){.type = PKEY_STRING, .text = buf_view(&text)}, 1);
    }
    size_t shown = text.n < HEAVY_TEXT_BYTES + 4 ? text.n : HEAVY_TEXT_BYTES + 4;
    char *copy = arena_alloc(a, shown + 1);
    if (shown) {
        memcpy(copy, text.p, shown);
    }
    f.text = slice_of(copy, shown);
    buf_free(&text);
    return f;
}

/* ---- which candidates ---- */

static bool usable(const advise_paths *p, size_t i) {
    return p->list[i].items > 0 && !p->list[i].has_arrays;
}

static bool same_word(slice text, const char *word) {
    return text.n >= strlen(word) && slice_eq_nocase(slice_skip(text, text.n - strlen(word)), slice_str(word));
}

/* How likely a path is a part of a key: what queries name, what is in all items, what looks like a name. */
static double promise(const advise_paths *p, size_t i) {
    static const char *const words[] = {"id", "key", "code", "name", "number", "date", "day", "host", "group", "vin", "region"};
    const advise_path *path = &p->list[i];
    double score = 100 * path->asked + 10 * path->items / p->items;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (same_word(path->path.text, words[k])) {
            score += 5;
            break;
        }
    }
    score -= path->values_n < 2 ? 4 : 0;
    score -= 8 * path->fractions / path->items + 6 * path->spaced / path->items;
    return usable(p, i) ? score : -1e9;
}

static size_t components_of(const advise_paths *p, size_t *chosen) {
    size_t n = 0;
    while (n < ADVISE_COMPONENTS) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < p->n; i++) {
            bool taken = !usable(p, i);
            for (size_t k = 0; k < n; k++) {
                taken = taken || chosen[k] == i;
            }
            if (!taken && (best == SIZE_MAX || promise(p, i) > promise(p, best))) {
                best = i;
            }
        }
        if (best == SIZE_MAX) {
            break;
        }
        chosen[n++] = best;
    }
    return n;
}

typedef struct choice {
    advise_candidate **list;
    size_t n, max;
} choice;

static void add(choice *into, advise_kind kind, size_t n, size_t a, size_t b, size_t c) {
    if (into->n == into->max) {
        return;
    }
    advise_candidate *made = calloc(1, sizeof *made);
    if (!made) {
        abort();
    }
    made->kind = kind;
    made->n = n;
    made->paths[0] = a;
    made->paths[1] = b;
    made->paths[2] = c;
    into->list[into->n++] = made;
}

/* A hierarchy goes from the broad to the narrow. What queries name alone comes first. */
static bool goes_first(const advise_paths *p, size_t a, size_t b) {
    const advise_path *left = &p->list[a], *right = &p->list[b];
    bool one_is_asked = left->asked > 2 * right->asked || right->asked > 2 * left->asked;
    return one_is_asked ? left->asked > right->asked : left->values_n <= right->values_n;
}

static void add_pair(choice *into, const advise_paths *p, size_t a, size_t b) {
    size_t first = goes_first(p, a, b) ? a : b, second = first == a ? b : a;
    bool narrower = p->list[a].values_n <= p->list[b].values_n;
    size_t few = narrower ? a : b, many = narrower ? b : a;
    add(into, ADVISE_HIERARCHICAL, 2, first, second, 0);
    add(into, ADVISE_CONCATENATED, 2, few, many, 0);
    add(into, ADVISE_PRECOMPUTED, 2, few, many, 0);
}

static void add_triple(choice *into, const advise_paths *p, size_t a, size_t b, size_t c) {
    size_t order[3] = {a, b, c};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k + 1 < 3; k++) {
            if (!goes_first(p, order[k], order[k + 1])) {
                size_t other = order[k];
                order[k] = order[k + 1];
                order[k + 1] = other;
            }
        }
    }
    add(into, ADVISE_HIERARCHICAL, 3, order[0], order[1], order[2]);
}

size_t advise__choose(const advise_paths *p, advise_candidate **list, size_t max) {
    choice into = {.list = list, .max = max};
    size_t parts[ADVISE_COMPONENTS], n = components_of(p, parts);
    for (size_t i = 0; i < p->n; i++) {
        if (usable(p, i)) {
            add(&into, ADVISE_PATH, 1, i, 0, 0);
        }
    }
    for (size_t i = 0; i < n; i++) {
        add(&into, ADVISE_RANDOM, 1, parts[i], 0, 0);
        for (size_t k = i + 1; k < n; k++) {
            add_pair(&into, p, parts[i], parts[k]);
            for (size_t m = k + 1; m < n && m < ADVISE_TRIPLE_COMPONENTS; m++) {
                add_triple(&into, p, parts[i], parts[k], parts[m]);
            }
        }
    }
    return into.n;
}
