#include "text/search.h"

#include <libstemmer.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unictype.h>

#include "base/memory.h"
#include "doc/walk.h"
#include "text/text.h"

enum { LANGUAGES = SEARCH_PORTUGUESE + 1 };

static const struct {
    const char *name;
    search_language language;
} language_names[] = {
    {"en-US", SEARCH_ENGLISH}, {"1033", SEARCH_ENGLISH},  {"de-DE", SEARCH_GERMAN},     {"es-ES", SEARCH_SPANISH},
    {"fr-FR", SEARCH_FRENCH},  {"it-IT", SEARCH_ITALIAN}, {"pt-PT", SEARCH_PORTUGUESE}, {"pt-BR", SEARCH_PORTUGUESE},
};

bool search_language_of(slice name, search_language *language_out) {
    for (size_t i = 0; i < sizeof language_names / sizeof *language_names; i++) {
        if (slice_eq_nocase(name, slice_str(language_names[i].name))) {
            *language_out = language_names[i].language;
            return true;
        }
    }
    return false;
}

/* ---- stems: each thread has its own stemmers, created on first use ---- */

typedef struct stemmers {
    struct sb_stemmer *of[LANGUAGES];
} stemmers;

static pthread_key_t stemmers_key;
static pthread_once_t stemmers_once = PTHREAD_ONCE_INIT;

static void free_stemmers(void *p) {
    stemmers *s = p;
    for (size_t i = 0; i < LANGUAGES; i++) {
        sb_stemmer_delete(s->of[i]);
    }
    free(s);
}

static void make_key(void) {
    if (pthread_key_create(&stemmers_key, free_stemmers) != 0) {
        abort();
    }
}

static struct sb_stemmer *stemmer(search_language language) {
    static const char *const names[LANGUAGES] = {"english", "german", "spanish", "french", "italian", "portuguese"};
    pthread_once(&stemmers_once, make_key);
    stemmers *s = pthread_getspecific(stemmers_key);
    if (!s) {
        s = mem_zero(sizeof *s);
        if (pthread_setspecific(stemmers_key, s) != 0) {
            abort();
        }
    }
    if (!s->of[language]) {
        s->of[language] = sb_stemmer_new(names[language], "UTF_8");
    }
    return s->of[language];
}

static slice stem(arena *a, search_language language, slice word) {
    enum { WORD_BYTES_MAX = 256 }; /* longer runs are not stemmed */
    struct sb_stemmer *s = word.n <= WORD_BYTES_MAX && language != SEARCH_NO_LANGUAGE ? stemmer(language) : NULL;
    const sb_symbol *made = s ? sb_stemmer_stem(s, (const sb_symbol *)word.p, (int)word.n) : NULL;
    return made ? arena_copy(a, slice_of(made, (size_t)sb_stemmer_length(s))) : word;
}

/* ---- words ---- */

static bool is_of_word(uint32_t c) {
    if (c < 128) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }
    return c != TEXT_INVALID && uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_M | UC_CATEGORY_MASK_N);
}

static bool is_apostrophe(uint32_t c) {
    return c == '\'' || c == 0x2019;
}

/* Takes the next run of word characters; false at the end. */
static bool next_run(slice *rest, slice *run_out) {
    const char *p = rest->p, *end = rest->p + rest->n, *start = NULL;
    while (p < end) {
        uint32_t c, after = TEXT_INVALID;
        unsigned n = text_decode(p, end, &c);
        if (is_apostrophe(c) && start && p + n < end) {
            text_decode(p + n, end, &after);
        }
        bool inside = is_of_word(c) || is_of_word(after);
        if (!inside && start) {
            break;
        }
        start = inside && !start ? p : start;
        p += n;
    }
    *rest = slice_of(p, (size_t)(end - p));
    *run_out = start ? slice_of(start, (size_t)(p - start)) : SLICE_EMPTY;
    return start != NULL;
}

/* English stop words. The service's list is not published; with this one texts have the lengths by which the service orders the test data
 * of its SDKs. Other single letters, and digits, count. */
static bool is_stop_word(slice word) {
    static const char words[] =
        " a about above across after again against all almost along already also although always am among an and another any anyone "
        "anything are around as at away be became because become becomes been before behind being below besides between beyond both "
        "but by can cannot could did do does doing down during each either else enough etc even ever every everyone everything except "
        "few for from further had has have having he hence her here hers herself him himself his how however i if in indeed instead "
        "into is it its itself just known least less let like may maybe me might mine more most much must my myself neither never "
        "no nobody none nor not nothing now of off often on once only onto or other others otherwise our ours ourselves out over own "
        "part per perhaps quite rather really same several shall she should since so some someone something sometimes still such than "
        "that the their theirs them themselves then there these they this those though through throughout thus till to too toward "
        "towards under unless until up upon us usually very via was we well were what whatever when whenever where whether which while "
        "who whom whose why will with within without would yet you your yours yourself yourselves ";
    char spaced[20];
    if (word.n + 2 > sizeof spaced) {
        return false;
    }
    spaced[0] = ' ';
    memcpy(spaced + 1, word.p, word.n);
    spaced[word.n + 1] = ' ';
    return memmem(words, sizeof words - 1, spaced, word.n + 2) != NULL;
}

/* Folds case, and replaces curly apostrophes by straight ones. */
static slice fold(arena *a, slice run) {
    slice word = text_fold(a, run);
    static const char curly[] = "\xE2\x80\x99";
    if (!memmem(word.p, word.n, curly, 3)) {
        return word;
    }
    char *made = arena_alloc_aligned(a, word.n, 1);
    size_t n = 0;
    for (size_t i = 0; i < word.n; i++) {
        bool is_curly = word.n - i >= 3 && memcmp(word.p + i, curly, 3) == 0;
        made[n++] = is_curly ? '\'' : word.p[i];
        i += is_curly ? 2 : 0;
    }
    return slice_of(made, n);
}

bool search_next(search_words *w, slice *term_out) {
    slice run;
    w->places = 0;
    while (w->rest.n && next_run(&w->rest, &run)) {
        slice word = fold(w->arena, run);
        w->places++;
        if (w->language != SEARCH_ENGLISH || !is_stop_word(word)) {
            *term_out = stem(w->arena, w->language, word);
            return true;
        }
    }
    return false;
}

/* ---- phrases ---- */

bool search_phrase_of(arena *a, search_language language, slice text, unsigned distance, search_phrase *phrase_out) {
    slice terms[SEARCH_PHRASE_MAX] = {0}, term;
    size_t n = 0;
    search_words w = search_words_of(a, language, text);
    while (search_next(&w, &term)) {
        size_t at = n ? n - 1 + w.places : 0; /* stop words before the first term do not count */
        if (at >= SEARCH_PHRASE_MAX) {
            return false;
        }
        terms[at] = term;
        n = at + 1;
    }
    *phrase_out = (search_phrase){.terms = arena_alloc(a, (n + 1) * sizeof *terms), .terms_n = n, .distance = distance};
    memcpy(phrase_out->terms, terms, n * sizeof *terms);
    for (size_t i = 0; i < n; i++) {
        phrase_out->gaps |= (uint64_t)(terms[i].n == 0) << i;
    }
    return true;
}

/* Whether the edit distance of two terms is at most `most`: the usual dynamic programming, limited to a band. It compares bytes, so a
 * letter that is not ASCII may count twice. */
static bool is_near(slice a, slice b, unsigned most) {
    enum { NEAR_BYTES_MAX = 64 };
    if (most == 0 || a.n > NEAR_BYTES_MAX || b.n > NEAR_BYTES_MAX) {
        return slice_eq(a, b);
    }
    if ((a.n > b.n ? a.n - b.n : b.n - a.n) > most) {
        return false;
    }
    unsigned row[NEAR_BYTES_MAX + 1];
    for (size_t j = 0; j <= b.n; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a.n; i++) {
        unsigned diagonal = row[0], least = row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned change = diagonal + (a.p[i - 1] != b.p[j - 1]);
            unsigned gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < gap ? change : gap;
            least = row[j] < least ? row[j] : least;
        }
        if (least > most) {
            return false;
        }
    }
    return row[b.n] <= most;
}

/* Feeds one more term of the text, `places` after the previous term. Bit i of `state`: the text so far ends with the phrase's words 0 to i.
 * True if the whole phrase matches here. */
static bool phrase_step(const search_phrase *p, uint64_t *state, slice term, unsigned places) {
    uint64_t fits = 0;
    for (; places > 1 && *state; places--) { /* stop words of the text match stop words of the phrase */
        *state = *state << 1 & p->gaps;
    }
    uint64_t open = *state << 1 | 1;
    for (size_t i = 0; i < p->terms_n; i++) {
        if (open >> i & 1 && (p->gaps >> i & 1 || is_near(p->terms[i], term, p->distance))) {
            fits |= (uint64_t)1 << i;
        }
    }
    *state = fits;
    return p->terms_n && fits >> (p->terms_n - 1) & 1;
}

static bool spend(uint64_t *steps, uint64_t n) {
    if (steps) {
        *steps = *steps > n ? *steps - n : 0;
    }
    return !steps || *steps;
}

void search_count(arena *a, search_language language, slice text, const search_phrase *phrases, size_t n, uint32_t *counts_out,
                  uint32_t *length_out, uint64_t *steps) {
    uint64_t *states = arena_array(a, uint64_t, n + 1);
    memset(counts_out, 0, n * sizeof *counts_out);
    *length_out = 0;
    char first[2048];
    arena terms = {.at = first, .end = first + sizeof first}; /* a text may have many terms, and none is kept */
    search_words w = search_words_of(&terms, language, text);
    for (slice term; search_next(&w, &term) && spend(steps, 20 + n); ++*length_out) {
        for (size_t i = 0; i < n; i++) {
            counts_out[i] += phrase_step(&phrases[i], &states[i], term, w.places);
        }
        if (*length_out % 256 == 255) {
            arena_reset(&terms);
        }
    }
    arena_free(&terms);
}

/* ---- scores ---- */

double search_bm25(const search_statistics *s, const uint32_t *counts, size_t n, uint32_t length) {
    const double k1 = 1.2, b = 0.75;
    double documents = (double)s->documents, average = s->documents ? (double)s->terms / documents : 0, score = 0;
    for (size_t i = 0; i < n; i++) {
        if (counts[i] == 0) {
            continue;
        }
        double hits = s->hits[i] < s->documents ? (double)s->hits[i] : documents;
        double rarity = log(1 + (documents - hits + 0.5) / (hits + 0.5));
        double weight = k1 * (1 - b + b * (average > 0 ? length / average : 1));
        score += rarity * counts[i] * (k1 + 1) / (counts[i] + weight);
    }
    return score;
}

double search_rrf(const uint32_t *ranks, const double *weights, size_t n) {
    const double smoothing = 60;
    double score = 0;
    for (size_t i = 0; i < n; i++) {
        score += (weights ? weights[i] : 1) / (smoothing + ranks[i]);
    }
    return score;
}

/* ---- vectors ---- */

bool search_distance_named(slice name, search_distance *distance_out) {
    static const char *const names[] = {[SEARCH_COSINE] = "cosine", [SEARCH_DOT_PRODUCT] = "dotproduct", [SEARCH_EUCLIDEAN] = "euclidean"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(name, slice_str(names[i]))) {
            *distance_out = (search_distance)i;
            return true;
        }
    }
    return false;
}

/* Fast path for doubles, the most common elements: skips the key, an index of `digits` digits, without comparing it. False: not such an
 * element. */
static bool next_double(doc_walk *w, size_t digits, double *number_out) {
    if (*w->at != BSON_TYPE_DOUBLE || (size_t)(w->end - w->at) < 1 + digits + 1 + 8) {
        return false;
    }
    const char *value = w->at + 1 + digits + 1;
    if (value[-1] != 0 || value[-2] == 0) {
        return false;
    }
    *number_out = doc_load_double(value);
    w->at = value + 8;
    return true;
}

bool search_vector_of(arena *a, slice array, double **numbers_out, size_t *n_out) {
    enum { ELEMENT_BYTES_MIN = 1 + 2 + 4 };
    doc_walk w;
    doc_element e;
    *n_out = 0;
    if (!doc_walk_init(&w, array)) {
        return false;
    }
    double *numbers = *numbers_out = arena_alloc(a, (array.n / ELEMENT_BYTES_MIN + 1) * sizeof *numbers);
    for (size_t digits = 1, more = 10; w.at < w.end; ++*n_out) {
        if (*n_out == more) {
            digits++;
            more *= 10;
        }
        if (next_double(&w, digits, &numbers[*n_out])) {
            continue;
        }
        if (!doc_walk_next(&w, &e) || !doc_is_number(e.type)) {
            return false;
        }
        numbers[*n_out] = e.type == BSON_TYPE_INT32   ? doc_load_i32(e.value.p)
                          : e.type == BSON_TYPE_INT64 ? (double)doc_load_i64(e.value.p)
                                                      : doc_load_double(e.value.p);
    }
    return *n_out > 0;
}

static double dot(const double *a, const double *b, size_t n) {
    double sums[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (size_t j = 0; j < 4; j++) {
            sums[j] += a[i + j] * b[i + j];
        }
    }
    for (; i < n; i++) {
        sums[0] += a[i] * b[i];
    }
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

static double euclidean(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sqrt(sum);
}

static double greatest_of(const double *a, size_t n) {
    double greatest = 0;
    for (size_t i = 0; i < n; i++) {
        greatest = fmax(greatest, fabs(a[i]));
    }
    return greatest;
}

/* For numbers whose squares overflow or underflow: divides each vector by its greatest number first. */
static double cosine_scaled(const double *a, const double *b, size_t n) {
    double greatest_a = greatest_of(a, n), greatest_b = greatest_of(b, n), aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < n; i++) {
        double x = a[i] / greatest_a, y = b[i] / greatest_b;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return ab / sqrt(aa * bb);
}

static double cosine(const double *a, const double *b, size_t n) {
    double squares = dot(a, a, n) * dot(b, b, n);
    return isnormal(squares) ? dot(a, b, n) / sqrt(squares) : cosine_scaled(a, b, n);
}

double search_distance_between(search_distance kind, const double *a, const double *b, size_t n) {
    switch (kind) {
    case SEARCH_EUCLIDEAN:
        return euclidean(a, b, n);
    case SEARCH_DOT_PRODUCT:
        return dot(a, b, n);
    default:
        return cosine(a, b, n);
    }
}
