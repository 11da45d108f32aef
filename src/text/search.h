/* search.h — full text and vectors: words, scores, distances. For the functions of queries, and for what ranks and indexes.
 *
 * A text is a row of terms: runs of letters, marks and digits (an apostrophe inside a word belongs to it), without case, reduced to their
 * stems by the language's Snowball stemmer. In English the most usual words are left out. A phrase is found where its terms stand side by
 * side, words left out not counting. Any thread. */
#pragma once

#include "base/arena.h"
#include "text/distance.h"

typedef enum search_language {
    SEARCH_ENGLISH,
    SEARCH_GERMAN,
    SEARCH_SPANISH,
    SEARCH_FRENCH,
    SEARCH_ITALIAN,
    SEARCH_PORTUGUESE,
} search_language;

bool search_language_of(slice name, search_language *language_out); /* en-US, de-DE, es-ES, fr-FR, it-IT, pt-PT, pt-BR */

/* ---- terms ---- */

typedef struct search_words {
    slice rest;
    search_language language;
    arena *arena;    /* terms are made here */
    unsigned places; /* from the term before to the last one: 1, and 1 more for each word left out between them */
} search_words;

static inline search_words search_words_of(arena *a, search_language language, slice text) {
    return (search_words){text, language, a, 0};
}

bool search_next(search_words *w, slice *term_out);

/* ---- phrases ---- */

enum { SEARCH_PHRASE_MAX = 64, SEARCH_DISTANCE_MAX = 2 };

typedef struct search_phrase {
    slice *terms;      /* one for each place; empty: a word that is left out, where any may stand */
    size_t terms_n;    /* 0: nothing but words that are left out; it is never found */
    uint64_t gaps;     /* a bit for each place without a term */
    unsigned distance; /* how many letters of each term may differ */
} search_phrase;

/* False: it has more than SEARCH_PHRASE_MAX words. */
bool search_phrase_of(arena *a, search_language language, slice text, unsigned distance, search_phrase *phrase_out);

/* How often each phrase is in a text, and how many terms that has. `steps` is counted down and may be NULL. */
void search_count(arena *a, search_language language, slice text, const search_phrase *phrases, size_t n, uint32_t *counts_out,
                  uint32_t *length_out, uint64_t *steps);

/* ---- scores ---- */

/* What a score needs to know of all texts of the path. */
typedef struct search_statistics {
    uint64_t documents;
    uint64_t terms;       /* in all of them */
    const uint64_t *hits; /* for each phrase, how many documents have it */
} search_statistics;

double search_bm25(const search_statistics *s, const uint32_t *counts, size_t n, uint32_t length);

/* Reciprocal rank fusion of ranks from 1; `weights` NULL: all 1. */
double search_rrf(const uint32_t *ranks, const double *weights, size_t n);

/* ---- vectors ---- */

bool search_distance_named(slice name, search_distance *distance_out); /* cosine, dotproduct, euclidean; any case */

/* The numbers of an array (a BSON document, any bytes); false: there is something else in it, or nothing. */
bool search_vector_of(arena *a, slice array, double **numbers_out, size_t *n_out);

/* Cosine and dot product grow with likeness, euclidean shrinks. NaN: there is no direction to compare. */
double search_distance_between(search_distance kind, const double *a, const double *b, size_t n);
