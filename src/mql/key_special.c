/* key_special.c — the keys of indexes of places and of texts. */
#include <stdlib.h>

#include "base/compare.h"
#include "mql/geometry.h"
#include "mql/key_int.h"

enum { TOKENS_MAX = 20000 }; /* of a document: more than an item may have terms */

mql_index_kind mql_index_kind_of(const mql_index *x, slice *path_out) {
    *path_out = x->place;
    return x->kind;
}

void mql_key_add_cell(buf *out, geo_cell cell) {
    geo_cell_spell(out, cell);
}

/* Terms have no 00 byte: they are letters and digits. */
void mql_key_add_word(buf *out, slice term) {
    buf_add_slice(out, term);
    buf_add_byte(out, 0);
}

err mql__read_special(op *o, slice spec, const doc_element *special, mql_index *x) {
    slice kind = doc_element_text(special);
    if (slice_eq(kind, SLICE_LIT("2dsphere"))) {
        x->kind = MQL_INDEX_PLACES;
        x->place = special->key;
        x->place_parts = mql__parts_of(o->arena, special->key, &x->place_parts_n);
        return OK;
    }
    if (slice_eq(kind, SLICE_LIT("text"))) {
        x->kind = MQL_INDEX_WORDS;
        return mql_text_index_read(o, spec, &x->text);
    }
    return mql_fail(o, 67, "Unknown index plugin '%.*s'", slice_shown(kind), kind.p);
}

/* ---- the cells or words of a document ---- */

typedef struct tokens {
    mql__visit visit; /* of places */
    mql_run *run;
    search_language language;
    slice *list; /* spelled */
    size_t n, room;
    bool has_place, has_other;
} tokens;

static err add_token(tokens *t, slice token) {
    arena *a = t->run->arena;
    if (t->n == TOKENS_MAX) {
        return E_TOO_LARGE;
    }
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        slice *more = arena_array(a, slice, room);
        if (t->n) {
            memcpy(more, t->list, t->n * sizeof *more);
        }
        t->list = more;
        t->room = room;
    }
    t->list[t->n++] = token;
    return OK;
}

static err add_cells(tokens *t, const geo_shape *shape) {
    geo_cell cells[GEO_CELLS_STORED];
    size_t n = geo_cells_of(shape, &t->run->steps, cells);
    for (size_t i = 0; i < n; i++) {
        char room[GEO_CELL_BYTES];
        buf spelled = {.p = room, .cap = sizeof room, .max = sizeof room};
        mql_key_add_cell(&spelled, cells[i]);
        TRY(add_token(t, arena_copy(t->run->arena, buf_view(&spelled))));
    }
    return t->run->steps ? OK : E_QUERY_TOO_LONG;
}

static err found_place(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    tokens *t = (tokens *)v;
    mql_geometry g;
    slice reason;
    (void)position;
    (void)stop_out;
    TRY(mql_pay(v->run, 20 + value.bytes.n));
    bool read = doc_is_container(value.type) && mql_geometry_read(v->run->arena, value, &g, &reason, &v->run->steps) && g.n;
    t->has_place |= read;
    t->has_other |= !read && !mql_is_nullish(value);
    for (size_t i = 0; read && i < g.n; i++) {
        TRY(add_cells(t, &g.shapes[i]));
    }
    return OK;
}

static err find_places(tokens *t, const mql_index *x, mql_value document) {
    bool stopped;
    t->visit = (mql__visit){.run = t->run, .parts = x->place_parts, .parts_n = x->place_parts_n, .found = found_place};
    TRY(mql__visit_path(&t->visit, document, &stopped));
    return t->has_place || !t->has_other ? OK
                                         : mql_fail(t->run->op, 16755, "Can't extract geo keys: unknown or invalid GeoJSON at '%.*s'",
                                                    slice_shown(x->place), x->place.p);
}

static int order_tokens(const void *a, const void *b) {
    return slice_cmp(*(const slice *)a, *(const slice *)b);
}

static void each_once(tokens *t) {
    size_t kept = 0;
    if (t->n) {
        qsort(t->list, t->n, sizeof *t->list, order_tokens);
    }
    for (size_t i = 0; i < t->n; i++) {
        if (kept == 0 || !slice_eq(t->list[kept - 1], t->list[i])) {
            t->list[kept++] = t->list[i];
        }
    }
    t->n = kept;
}

static err found_text(void *context, mql_run *r, slice text, double weight) {
    tokens *t = context;
    search_words w = search_words_of(r->arena, t->language, text);
    (void)weight;
    TRY(mql_pay(r, text.n * 4)); /* splitting takes some 40 ns a byte */
    for (slice term; search_next(&w, &term);) {
        if (t->n == TOKENS_MAX) {
            each_once(t);
        }
        TRY(add_token(t, term));
    }
    return OK;
}

static err find_words(tokens *t, const mql_index *x, mql_value document) {
    if (!mql__text_language(&x->text, document, &t->language)) {
        return mql_fail(t->run->op, 17262, "language override unsupported: %.*s",
                        slice_shown(mql_as_text(mql_member(document, x->text.override))),
                        mql_as_text(mql_member(document, x->text.override)).p);
    }
    return mql__each_text(t->run, &x->text, document, found_text, t);
}

/* ---- keys ---- */

typedef struct special {
    const mql__listing *listing;
    const tokens *tokens;
} special;

/* One key for each token, after the values of the fields in front. */
static err list_tokens(void *context, const mql_value *values, bool all_missing) {
    const special *s = context;
    const mql__listing *l = s->listing;
    const mql_sort *pattern = &l->index->pattern;
    (void)all_missing;
    buf_clear(l->key);
    for (size_t i = 0; i < pattern->n; i++) {
        mql_key_add(l->key, l->index->collation, values[i], pattern->parts[i].descending);
    }
    for (size_t i = 0, front = l->key->n; i < s->tokens->n; i++) {
        l->key->n = front;
        l->index->kind == MQL_INDEX_WORDS ? mql_key_add_word(l->key, s->tokens->list[i]) : buf_add_slice(l->key, s->tokens->list[i]);
        TRY(buf_ok(l->key) ? l->visit(l->context, buf_view(l->key)) : E_TOO_LARGE);
    }
    return OK;
}

err mql__list_special(mql_run *r, const mql__listing *l, slice document) {
    tokens t = {.run = r};
    special s = {l, &t};
    mql_value v = mql_document(document);
    TRY(l->index->kind == MQL_INDEX_PLACES ? find_places(&t, l->index, v) : find_words(&t, l->index, v));
    each_once(&t);
    return t.n == 0              ? OK
           : l->index->pattern.n ? mql_sort_each(r, &l->index->pattern, document, list_tokens, &s)
                                 : list_tokens(&s, NULL, false);
}
