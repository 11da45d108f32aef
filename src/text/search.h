/* search.h — full-text search and vectors: words, scores, distances. For query functions, ranking and indexing.
 *
 * A text is a sequence of terms. A term is a run of letters, marks and digits (apostrophes inside a word included), case-folded and reduced
 * to its stem by the language's Snowball stemmer. English stop words are left out. A phrase matches where its terms are adjacent; a stop
 * word in it matches any word. Any thread. */
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
    SEARCH_NO_LANGUAGE, /* words as they are, without stems */
} search_language;

bool search_language_of(slice name, search_language *language_out); /* en-US or 1033, de-DE, es-ES, fr-FR, it-IT, pt-PT, pt-BR */

/* ---- terms ---- */

typedef struct search_words {
    slice rest;
    search_language language;
    arena *arena;    /* terms are allocated here */
    unsigned places; /* distance of the last term from the one before: 1, plus 1 for each stop word between them */
} search_words;

static inline search_words search_words_of(arena *a, search_language language, slice text) {
    return (search_words){text, language, a, 0};
}

bool search_next(search_words *w, slice *term_out);

/* ---- phrases ---- */

enum { SEARCH_PHRASE_MAX = 64, SEARCH_DISTANCE_MAX = 2 };

typedef struct search_phrase {
    slice *terms;      /* one for each word; empty for a stop word, which matches any word */
    size_t terms_n;    /* 0: only stop words; such a phrase is never found */
    uint64_t gaps;     /* bit i: terms[i] is a stop word */
    unsigned distance; /* allowed edit distance of each term */
} search_phrase;

/* False: the phrase has more than SEARCH_PHRASE_MAX words. */
bool search_phrase_of(arena *a, search_language language, slice text, unsigned distance, search_phrase *phrase_out);

/* Counts how often each phrase occurs in a text, and the text's terms. `steps` is counted down and may be NULL. */
void search_count(arena *a, search_language language, slice text, const search_phrase *phrases, size_t n, uint32_t *counts_out,
                  uint32_t *length_out, uint64_t *steps);

/* ---- scores ---- */

/* Statistics over all texts of a path, for scoring. */
typedef struct search_statistics {
    uint64_t documents;
    uint64_t terms;       /* in all documents together */
    const uint64_t *hits; /* for each phrase, the number of documents that contain it */
} search_statistics;

double search_bm25(const search_statistics *s, const uint32_t *counts, size_t n, uint32_t length);

/* Reciprocal rank fusion of ranks from 1; `weights` NULL: all 1. */
double search_rrf(const uint32_t *ranks, const double *weights, size_t n);

/* ---- vectors ---- */

bool search_distance_named(slice name, search_distance *distance_out); /* cosine, dotproduct, euclidean; any case */

/* Reads the numbers of an array (an untrusted BSON document); false if it is empty or has other elements. */
bool search_vector_of(arena *a, slice array, double **numbers_out, size_t *n_out);

/* Cosine and dot product grow with similarity, euclidean shrinks. NaN: cosine of a zero vector. */
double search_distance_between(search_distance kind, const double *a, const double *b, size_t n);
