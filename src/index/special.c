/* special.c — terms of GeoJSON shapes and of texts. */
#include <stdlib.h>

#include "geo/cells.h"
#include "geo/geojson.h"
#include "index/terms_int.h"

/* Steps for all shapes of an item together. Checking that a polygon of n points does not cross itself takes n² / 4 steps. */
enum { SHAPE_STEPS = 4000000 };

/* ---- shapes ---- */

typedef struct shapes {
    index_list *list;
    uint64_t steps;
} shapes;

static void list_shape(shapes *s, index_path path, slice object) {
    geo_cell cells[GEO_CELLS_STORED];
    geo_shape shape;
    slice reason;
    doc_element type;
    index_list *l = s->list;
    if (l->large || !doc_find_member(object, SLICE_LIT("coordinates"), &type) || !geojson_read(&l->scratch, object, &shape, &reason)) {
        return;
    }
    size_t n = geo_cells_of(&shape, &s->steps, cells);
    l->large = l->n + n > INDEX_TERMS_MAX;
    for (size_t i = 0; i < n && !l->large; i++) {
        index__begin_term(l, index_path_mixed(path, INDEX_OF_CELLS));
        geo_cell_spell(&l->bytes, cells[i]);
        index__end_term(l);
    }
    arena_reset(&l->scratch);
}

static void list_below(shapes *s, index_path path, slice document, bool array);

static void list_value(shapes *s, index_path path, const doc_element *e) {
    if (e->type == BSON_TYPE_DOCUMENT) {
        list_shape(s, path, e->value);
    }
    if (doc_is_container(e->type)) {
        list_below(s, path, e->value, e->type == BSON_TYPE_ARRAY);
    }
}

/* Lists all shapes inside an object or array. */
static void list_below(shapes *s, index_path path, slice document, bool array) {
    doc_walk w;
    doc_element e;
    for (bool more = doc_walk_init(&w, document); more && !s->list->large && doc_walk_next(&w, &e);) {
        if (doc_is_container(e.type)) {
            list_value(s, array ? index_path_element(path) : index_path_member(path, e.key), &e);
        }
    }
}

/* Lists the shapes that the policy's path leads to, from its step `step` on. */
static void list_at(shapes *s, const index_spatial *of, size_t step, index_path path, const doc_element *at) {
    doc_walk w;
    doc_element e;
    if (step == of->n) {
        of->below ? list_value(s, path, at) : at->type == BSON_TYPE_DOCUMENT ? list_shape(s, path, at->value) : (void)0;
        return;
    }
    const index_step *next = &of->steps[step];
    if (at->type != (next->element ? BSON_TYPE_ARRAY : BSON_TYPE_DOCUMENT)) {
        return;
    }
    if (!next->element) {
        if (doc_find_member(at->value, next->name, &e)) {
            list_at(s, of, step + 1, index_path_member(path, next->name), &e);
        }
        return;
    }
    for (bool more = doc_walk_init(&w, at->value); more && !s->list->large && doc_walk_next(&w, &e);) {
        list_at(s, of, step + 1, index_path_element(path), &e);
    }
}

void index__list_shapes(index_list *l, const index_policy *policy, slice document) {
    shapes s = {l, SHAPE_STEPS};
    doc_element root = {.value = document, .type = BSON_TYPE_DOCUMENT};
    for (size_t i = 0; i < policy->spatials_n && !l->large; i++) {
        list_at(&s, &policy->spatials[i], 0, INDEX_PATH_ROOT, &root);
    }
}

/* ---- words ---- */

static int by_bytes(const void *a, const void *b, void *list) {
    const index_list *l = list;
    const index_term *x = a, *y = b;
    return slice_cmp(slice_of(l->bytes.p + x->at, x->n), slice_of(l->bytes.p + y->at, y->n));
}

/* Removes duplicates among the terms from `from` on; their bytes stay in the buffer unused. */
static void keep_once(index_list *l, size_t from) {
    size_t n = from;
    if (l->n > from) {
        qsort_r(l->terms + from, l->n - from, sizeof *l->terms, by_bytes, l);
    }
    for (size_t i = from; i < l->n; i++) {
        if (n == from || !slice_eq(index_list_term(l, n - 1), index_list_term(l, i))) {
            l->terms[n++] = l->terms[i];
        }
    }
    l->n = n;
}

/* Maps a word's hash to where the word was last seen in the list. This catches most repeated words; keep_once removes the others. */
enum { SEEN = 8192 };

typedef struct seen {
    uint32_t at[SEEN]; /* index of the term plus 1; 0 if empty */
} seen;

/* Removes the last term of the list if it is a known duplicate; true if it was. */
static bool take_back(index_list *l, seen *words) {
    slice last = index_list_term(l, l->n - 1);
    uint32_t *at = &words->at[index_path_member(0, last) / 4 % SEEN]; /* / 4, since one of the two lowest bits is always set */
    if (*at && slice_eq(index_list_term(l, *at - 1), last)) {
        l->bytes.n -= last.n;
        l->n--;
        return true;
    }
    *at = (uint32_t)l->n;
    return false;
}

static void list_text(index_list *l, const index_text *text, slice words) {
    search_words w = search_words_of(&l->scratch, text->language, words);
    size_t from = l->n, full = from + 2 * INDEX_TERMS_MAX, read = 0;
    seen known = {0};
    for (slice term; !l->large && search_next(&w, &term); read++) {
        index__begin_term(l, text->id);
        index_spell_string(&l->bytes, term);
        index__end_term(l);
        if (!take_back(l, &known) && l->n == full) {
            keep_once(l, from);
            known = (seen){0}; /* keep_once moved the terms */
            l->large = l->n > INDEX_TERMS_MAX;
        }
        if (read % 1024 == 1023) {
            arena_reset(&l->scratch);
        }
    }
    keep_once(l, from);
    l->large = l->large || l->n > INDEX_TERMS_MAX;
    arena_reset(&l->scratch);
}

void index__list_words(index_list *l, const index_policy *policy, slice document) {
    for (size_t i = 0; i < policy->texts_n && !l->large; i++) {
        doc_element e;
        if (doc_find_element(document, &policy->texts[i].path, &e) && e.type == BSON_TYPE_UTF8) {
            list_text(l, &policy->texts[i], doc_element_text(&e));
        }
    }
}
