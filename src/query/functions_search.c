/* functions_search.c — full text and vectors, without an index: each text is read, each vector compared. Search phrases are compiled once a
 * query. FullTextScore and RRF are allowed in ORDER BY RANK only, which computes scores with search.h. */
#include "query/function_int.h"
#include "text/search.h"

/* ---- search phrases ---- */

typedef struct wanted {
    query_value *args; /* as passed */
    size_t n;
    search_phrase *phrases;
    bool valid;
} wanted;

bool query_phrase_of(arena *a, search_language language, const query_value *v, search_phrase *phrase_out) {
    query_value term = *v;
    int64_t distance = 0;
    if (v->type == TYPE_OBJECT) {
        query_value number = value_member(a, v, SLICE_LIT("distance"));
        term = value_member(a, v, SLICE_LIT("term"));
        if (value_is_defined(&number) && (!function_whole(&number, &distance) || distance < 0 || distance > SEARCH_DISTANCE_MAX)) {
            return false;
        }
    }
    return term.type == TYPE_STRING && search_phrase_of(a, language, term.bytes, (unsigned)distance, phrase_out);
}

static wanted *compile(query_context *c, arena *a, const query_value *args, size_t n) {
    wanted *w = arena_new(a, wanted);
    w->args = arena_alloc(a, n * sizeof *w->args);
    w->phrases = arena_array(a, search_phrase, n);
    w->n = n;
    w->valid = true;
    for (size_t i = 0; i < n; i++) {
        w->args[i] = value_keep(a, &args[i]);
        w->valid &= query_phrase_of(a, (search_language)c->setting, &w->args[i], &w->phrases[i]);
    }
    return w;
}

static bool same_args(const wanted *w, const query_value *args, size_t n) {
    bool same = w->n == n;
    for (size_t i = 0; i < n && same; i++) {
        same = w->args[i].type == args[i].type && slice_eq(w->args[i].bytes, args[i].bytes);
    }
    return same;
}

/* The compiled phrases; NULL: not all are valid. The first row's phrases are cached, since they are mostly constant. */
static const wanted *take_wanted(query_context *c, const query_value *args, size_t n) {
    const wanted *w = c->prepared ? *c->prepared : NULL;
    if (!w || !same_args(w, args, n)) {
        bool keep = c->prepared && c->keep && !w;
        w = compile(c, keep ? c->keep : c->arena, args, n);
        if (keep) {
            *c->prepared = w;
        }
    }
    return w->valid ? w : NULL;
}

/* ---- full text ---- */

/* Whether at least `least` of the phrases occur in the text. */
static query_value find_phrases(query_context *c, const query_value *args, size_t n, size_t least) {
    const wanted *w = args[0].type == TYPE_STRING ? take_wanted(c, args + 1, n - 1) : NULL;
    if (!w || !function_spend(c, args[0].bytes.n / 8)) {
        return value_undefined();
    }
    uint32_t *counts = arena_alloc(c->arena, n * sizeof *counts), length;
    search_count(c->arena, (search_language)c->setting, args[0].bytes, w->phrases, w->n, counts, &length, c->steps);
    size_t found = 0;
    for (size_t i = 0; i < w->n; i++) {
        found += counts[i] > 0;
    }
    return function_spend(c, 1) ? value_bool(found >= least) : value_undefined();
}

static query_value full_text_contains(query_context *c, const query_value *args, size_t n) {
    return find_phrases(c, args, n, 1);
}

static query_value full_text_contains_all(query_context *c, const query_value *args, size_t n) {
    return find_phrases(c, args, n, n - 1);
}

static query_value full_text_contains_any(query_context *c, const query_value *args, size_t n) {
    return find_phrases(c, args, n, 1);
}

/* ---- vectors ---- */

typedef struct vector {
    slice bytes; /* the array that it was read from */
    double *numbers;
    size_t n; /* 0: not a vector */
} vector;

static vector *vector_of(arena *a, const query_value *v) {
    vector *made = arena_new(a, vector);
    if (!search_vector_of(a, v->bytes, &made->numbers, &made->n)) {
        made->n = 0;
    }
    return made;
}

/* The second vector is mostly constant, so the first row's is cached. */
static const vector *query_vector(query_context *c, const query_value *v) {
    const vector *last = c->prepared ? *c->prepared : NULL;
    if (last && slice_eq(last->bytes, v->bytes)) {
        return last;
    }
    bool keep = c->prepared && c->keep && !last;
    vector *made = vector_of(keep ? c->keep : c->arena, v);
    if (keep) {
        made->bytes = arena_copy(c->keep, v->bytes);
        *c->prepared = made;
    }
    return made;
}

/* Reads the distance from the fourth argument, {"distanceFunction": "cosine", …}; its other members are about the index. */
static bool take_distance(query_context *c, const query_value *args, size_t n, search_distance *distance_out) {
    *distance_out = (search_distance)c->setting;
    if (n < 4) {
        return n < 3 || args[2].type == TYPE_BOOL;
    }
    query_value name = value_member(c->arena, &args[3], SLICE_LIT("distanceFunction"));
    return args[2].type == TYPE_BOOL && args[3].type == TYPE_OBJECT &&
           (!value_is_defined(&name) || (name.type == TYPE_STRING && search_distance_named(name.bytes, distance_out)));
}

/* NaN: undefined. */
static double distance_of(query_context *c, const query_value *args, size_t n, search_distance *kind_out) {
    if (args[0].type != TYPE_ARRAY || args[1].type != TYPE_ARRAY || !take_distance(c, args, n, kind_out) ||
        !function_spend_bytes(c, args[0].bytes.n + args[1].bytes.n)) {
        return NAN;
    }
    const vector *a = vector_of(c->arena, &args[0]), *b = query_vector(c, &args[1]);
    if (a->n == 0 || a->n != b->n) {
        return NAN;
    }
    return search_distance_between(*kind_out, a->numbers, b->numbers, a->n);
}

static query_value vector_distance(query_context *c, const query_value *args, size_t n) {
    search_distance kind;
    double distance = distance_of(c, args, n, &kind);
    return isfinite(distance) ? value_number(distance) : value_undefined();
}

/* ---- scores in rewritten queries of plans: greater is better ---- */

static query_value vector_score(query_context *c, const query_value *args, size_t n) {
    search_distance kind;
    double distance = distance_of(c, args, n, &kind);
    return isfinite(distance) ? value_number(kind == SEARCH_EUCLIDEAN ? -distance : distance) : value_undefined();
}

static query_value full_text_word_count(query_context *c, const query_value *args, size_t n) {
    (void)n;
    uint32_t length;
    if (args[0].type != TYPE_STRING) {
        return value_undefined();
    }
    search_count(c->arena, (search_language)c->setting, args[0].bytes, NULL, 0, &length, &length, c->steps);
    return function_spend(c, 1) ? value_integer(length) : value_undefined();
}

/* Arguments: text, [terms], number of documents, number of words in them, [number of documents with each term]. */
static query_value full_text_score(query_context *c, const query_value *args, size_t n) {
    size_t terms_n, hits_n;
    (void)n;
    if (args[0].type != TYPE_STRING || args[1].type != TYPE_ARRAY || args[2].type != TYPE_NUMBER || args[3].type != TYPE_NUMBER ||
        args[4].type != TYPE_ARRAY || args[2].number < 0 || args[3].number < 0) {
        return value_undefined();
    }
    query_value *terms = function_elements(c, &args[1], &terms_n), *hits = terms ? function_elements(c, &args[4], &hits_n) : NULL;
    const wanted *w = hits && hits_n == terms_n ? take_wanted(c, terms, terms_n) : NULL;
    if (!w) {
        return value_undefined();
    }
    uint64_t *found = arena_array(c->arena, uint64_t, terms_n + 1);
    for (size_t i = 0; i < terms_n; i++) {
        found[i] = hits[i].type == TYPE_NUMBER && hits[i].number > 0 ? (uint64_t)fmin(hits[i].number, args[2].number) : 0;
    }
    uint32_t *counts = arena_array(c->arena, uint32_t, terms_n + 1), length;
    search_count(c->arena, (search_language)c->setting, args[0].bytes, w->phrases, w->n, counts, &length, c->steps);
    search_statistics statistics = {(uint64_t)fmin(args[2].number, 1e15), (uint64_t)fmin(args[3].number, 1e15), found};
    return function_spend(c, 1) ? value_number(search_bm25(&statistics, counts, w->n, length)) : value_undefined();
}

query_value query_function_rank_only(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)args;
    (void)n;
    return value_undefined();
}

const query_function query_functions_search[] = {
    {"FullTextContains", 2, 2, false, true, full_text_contains},
    {"FULLTEXT_CONTAINS", 2, 2, false, true, full_text_contains},
    {"FullTextContainsAll", 2, QUERY_ANY_NUMBER, false, true, full_text_contains_all},
    {"FULLTEXT_CONTAINS_ALL", 2, QUERY_ANY_NUMBER, false, true, full_text_contains_all},
    {"FullTextContainsAny", 2, QUERY_ANY_NUMBER, false, true, full_text_contains_any},
    {"FULLTEXT_CONTAINS_ANY", 2, QUERY_ANY_NUMBER, false, true, full_text_contains_any},
    {"FullTextScore", 2, QUERY_ANY_NUMBER, true, false, query_function_rank_only},
    {"RRF", 2, QUERY_ANY_NUMBER, true, false, query_function_rank_only},
    {"VectorDistance", 2, 4, false, true, vector_distance},
    {"_FullTextScore", 5, 5, false, true, full_text_score},
    {"_FullTextWordCount", 1, 1, false, true, full_text_word_count},
    {"_VectorScore", 2, 4, false, true, vector_score},
    {0},
};

query_function_setting query_function_setting_of(const query_function *f) {
    if (f->call == vector_distance || f->call == vector_score) {
        return SETTING_DISTANCE;
    }
    for (const query_function *each = query_functions_search; each->name; each++) {
        if (each == f) {
            return SETTING_LANGUAGE;
        }
    }
    return SETTING_NONE;
}
