/* demand_special.c — demands of a WHERE on shapes and words. They are never exact: cells are larger than shapes, and a word is not a whole
 * phrase. Their spans are of special paths that hold no values, so no order can be walked by them (`steps` is NULL). */
#include <math.h>

#include "geo/cells.h"
#include "geo/geojson.h"
#include "query/demand_int.h"

typedef query__demand_reader reader;

static bool is_named(const query_expr *e, const char *name) {
    return e->kind == EXPR_CALL && !e->udf && e->function && slice_eq_nocase(slice_str(e->function->name), slice_str(name));
}

/* ---- shapes ---- */

static slice spelled(arena *a, geo_cell cell) {
    char space[GEO_CELL_BYTES];
    buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
    geo_cell_spell(&b, cell);
    return arena_copy(a, buf_view(&b));
}

static void add_cells(reader *r, index_path path, const geo_shape *shape, double angle, find_demand *c) {
    geo_cell_span near[GEO_CELL_SPANS_MAX];
    size_t n = geo_cells_near(shape, angle, &r->steps, near);
    c->spans = arena_array(r->arena, find_span, n + 1);
    for (size_t i = 0; i < n; i++) {
        c->spans[i] = (find_span){index_path_mixed(path, INDEX_OF_CELLS), spelled(r->arena, near[i].first),
                                  spelled(r->arena, near[i].last + 1), near[i].first == near[i].last};
    }
    c->n = n;
}

/* Reads a call with one indexed path and one constant shape. */
static bool read_shapes(reader *r, const query_select *s, const query_expr *call, double angle, const query_expr *whole, find_demand *c) {
    find_path p;
    query_value v;
    geo_shape shape;
    slice reason;
    for (size_t side = 0; side < 2 && call->items_n == 2 && r->steps; side++) {
        if (query__demand_path(s, call->items[side], &p) && index_policy_has_shapes(r->policy, p.steps, p.n) &&
            query__demand_constant(r, call->items[1 - side], &v) && v.type == TYPE_OBJECT && !v.extended &&
            geojson_read(r->arena, v.bytes, &shape, &reason)) {
            *c = (find_demand){.condition = whole};
            add_cells(r, index_path_of(p.steps, p.n), &shape, angle, c);
            return true;
        }
    }
    return false;
}

bool query__demand_shapes(reader *r, const query_select *s, const query_expr *call, find_demand *c) {
    return (is_named(call, "ST_WITHIN") || is_named(call, "ST_INTERSECTS")) && read_shapes(r, s, call, 0, call, c);
}

bool query__demand_distance(reader *r, const query_select *s, const query_expr *call, const query_expr *most, const query_expr *whole,
                            find_demand *c) {
    query_value v;
    return is_named(call, "ST_DISTANCE") && query__demand_constant(r, most, &v) && v.type == TYPE_NUMBER && isfinite(v.number) &&
           read_shapes(r, s, call, geo_angle_of(v.number), whole, c);
}

/* ---- words ---- */

typedef struct wanted {
    const index_text *text;
    search_phrase *phrases;
    size_t n;
    bool any; /* one of the phrases is enough */
} wanted;

static bool read_phrases(reader *r, const query_expr *call, wanted *w) {
    w->n = call->items_n - 1;
    w->phrases = arena_array(r->arena, search_phrase, w->n);
    for (size_t i = 0; i < w->n; i++) {
        query_value v;
        if (!query__demand_constant(r, call->items[i + 1], &v) || !query_phrase_of(r->arena, w->text->language, &v, &w->phrases[i])) {
            return false;
        }
    }
    return true;
}

/* Reads the phrases of a call, if the index has the words of its path, in the same language. */
static bool read_wanted(reader *r, const query_select *s, const query_expr *call, wanted *w) {
    find_path p;
    bool any = is_named(call, "FullTextContainsAny") || is_named(call, "FULLTEXT_CONTAINS_ANY");
    if (!any && !is_named(call, "FullTextContains") && !is_named(call, "FULLTEXT_CONTAINS") && !is_named(call, "FullTextContainsAll") &&
        !is_named(call, "FULLTEXT_CONTAINS_ALL")) {
        return false;
    }
    if (call->items_n < 2 || call->items_n > DEMAND_SPANS_MAX || !query__demand_path(s, call->items[0], &p) || !p.single) {
        return false;
    }
    *w = (wanted){.text = index_policy_text(r->policy, p.steps, p.n), .any = any};
    return w->text && w->text->language == (search_language)call->setting && read_phrases(r, call, w);
}

static slice longest(const search_phrase *p) {
    slice best = SLICE_EMPTY;
    for (size_t i = 0; i < p->terms_n; i++) {
        best = p->terms[i].n > best.n ? p->terms[i] : best;
    }
    return best;
}

static void add_word(reader *r, const wanted *w, slice word, find_demand *c) {
    char space[INDEX_VALUE_BYTES_MAX + 1];
    buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
    index_spell_string(&b, word);
    slice from = arena_copy(r->arena, buf_view(&b));
    buf_add_byte(&b, 0);
    slice to = arena_copy(r->arena, buf_view(&b));
    c->spans[c->n++] = (find_span){w->text->id, from, to, true};
}

/* Keeps the longest words, which tend to be the rarest, longest first. */
static void note_word(slice *words, size_t *n, size_t most, slice word) {
    if (word.n == 0 || (*n == most && words[most - 1].n >= word.n)) {
        return;
    }
    size_t at = *n == most ? most - 1 : (*n)++;
    for (; at > 0 && words[at - 1].n < word.n; at--) {
        words[at] = words[at - 1];
    }
    words[at] = word;
}

/* Words that must all be there, at most `most`. *never_out: one of the phrases can match nothing. */
static size_t needed(const wanted *w, slice *words, size_t most, bool *never_out) {
    size_t n = 0;
    *never_out = false;
    for (size_t i = 0; i < w->n; i++) {
        const search_phrase *p = &w->phrases[i];
        *never_out = *never_out || p->terms_n == 0;
        for (size_t j = 0; j < p->terms_n && p->distance == 0; j++) {
            note_word(words, &n, most, p->terms[j]);
        }
    }
    return n;
}

static bool read_any(reader *r, const wanted *w, find_demand *c) {
    c->spans = arena_array(r->arena, find_span, w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        if (w->phrases[i].terms_n && w->phrases[i].distance) {
            return false;
        }
        if (w->phrases[i].terms_n) {
            add_word(r, w, longest(&w->phrases[i]), c);
        }
    }
    return true;
}

enum { WORDS_MAX = 8 };

bool query__demand_words(reader *r, const query_select *s, const query_expr *call, find_demand *c) {
    wanted w;
    slice words[WORDS_MAX] = {0};
    bool never;
    if (!read_wanted(r, s, call, &w)) {
        return false;
    }
    *c = (find_demand){.condition = call};
    if (w.any) {
        return read_any(r, &w, c);
    }
    size_t n = needed(&w, words, WORDS_MAX, &never);
    c->spans = arena_array(r->arena, find_span, 2);
    if (!never && n) {
        add_word(r, &w, words[0], c);
    }
    return never || n;
}

size_t query__demand_more_words(reader *r, const query_select *s, const query_expr *call, find_demand *list, size_t room) {
    wanted w;
    slice words[WORDS_MAX] = {0};
    bool never;
    size_t made = 0;
    if (call->kind != EXPR_CALL || !read_wanted(r, s, call, &w) || w.any) {
        return 0;
    }
    size_t n = needed(&w, words, WORDS_MAX, &never);
    for (size_t i = 1; i < n && !never && made < room; i++) {
        list[made] = (find_demand){.spans = arena_array(r->arena, find_span, 2), .condition = call};
        add_word(r, &w, words[i], &list[made++]);
    }
    return made;
}
