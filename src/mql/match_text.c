/* match_text.c — $text, over the fields of a text index, by text/search.h.
 *
 * A search is words, "phrases" in quotes, and either of them negated by a minus sign. A document matches if it has one of the words or a
 * phrase, all phrases, and nothing that is negated. Words match by their stems; phrases match as they are written, without regard to case.
 * The score is MongoDB's: per word and field, weight × (2 - 2^(1 - count)) × (1/2 + count / (2 × words of the field)), and 1.1 times that
 * if the field is nothing but the word. */
#include <math.h>

#include "mql/match_int.h"
#include "text/search.h"
#include "text/text.h"

enum { WORDS_MAX = 1000 };

typedef struct literal {
    slice text; /* folded, unless case counts */
    bool negated;
} literal;

typedef struct search {
    const mql_text_index *index;
    search_language language; /* of the search; documents have their own */
    bool by_case;
    search_phrase *words; /* each has one term */
    slice *raw;           /* the words as written */
    bool *negated;        /* which words */
    size_t words_n;
    literal *phrases;
    size_t phrases_n;
} search;

/* ---- languages ---- */

static const struct {
    const char *name, *short_name;
    search_language language;
} languages[] = {
    {"english", "en", SEARCH_ENGLISH},    {"german", "de", SEARCH_GERMAN},   {"spanish", "es", SEARCH_SPANISH},
    {"french", "fr", SEARCH_FRENCH},      {"italian", "it", SEARCH_ITALIAN}, {"portuguese", "pt", SEARCH_PORTUGUESE},
    {"none", "none", SEARCH_NO_LANGUAGE},
};

static bool read_language(slice name, search_language *language_out) {
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        if (slice_eq_nocase(name, slice_str(languages[i].name)) || slice_eq_nocase(name, slice_str(languages[i].short_name))) {
            *language_out = languages[i].language;
            return true;
        }
    }
    return false;
}

static err parse_language(mql__filter_parser *p, slice name, search_language *language_out) {
    return read_language(name, language_out)
               ? OK
               : mql_fail(mql__op(p), 2, "unsupported language: \"%.*s\" for text index version 3", slice_shown(name), name.p);
}

/* ---- the index ---- */

static err unsupported_language(op *o, slice name) {
    return mql_fail(o, 67, "unsupported language: \"%.*s\" for text index version 3", slice_shown(name), name.p);
}

err mql_text_index_read(op *o, slice spec, mql_text_index *index_out) {
    mql_value given = mql_document(spec), weights = mql_member(given, SLICE_LIT("weights"));
    mql_value language = mql_member(given, SLICE_LIT("default_language")), override = mql_member(given, SLICE_LIT("language_override"));
    mql_text_field *fields = arena_array(o->arena, mql_text_field, mql_length(weights) + 1);
    doc_walk w;
    doc_element e;
    *index_out = (mql_text_index){.fields = fields, .override = SLICE_LIT("language")};
    for (doc_walk_init(&w, weights.bytes); weights.type == BSON_TYPE_DOCUMENT && doc_walk_next(&w, &e);) {
        double weight = mql_is_number(mql_of(&e)) ? mql_as_double(mql_of(&e)) : 0;
        if (!(weight >= 1 && weight < 100000)) {
            return mql_fail(o, 67, "text index weight must be in the exclusive interval (0,100000) but found: %g", weight);
        }
        fields[index_out->n++] = (mql_text_field){e.key, weight};
    }
    if (mql_is_text(override)) {
        index_out->override = mql_as_text(override);
    }
    if (mql_is_text(language) && !read_language(mql_as_text(language), &index_out->language)) {
        return unsupported_language(o, mql_as_text(language));
    }
    return index_out->n ? OK : mql_fail(o, 67, "A text index has a field at least.");
}

bool mql__text_language(const mql_text_index *x, mql_value document, search_language *language_out) {
    mql_value named = mql_member(document, x->override);
    *language_out = x->language;
    return !mql_is_text(named) || read_language(mql_as_text(named), language_out);
}

typedef struct texts {
    mql__visit visit; /* of one field */
    mql__text_visit found;
    void *context;
    double weight;
} texts;

static err found_value(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    const texts *t = (const texts *)v;
    (void)position;
    (void)stop_out;
    return value.type == BSON_TYPE_UTF8 ? t->found(t->context, v->run, mql_as_text(value), t->weight) : OK;
}

/* All strings of a document, for an index on everything. */
static err each_string(const texts *t, mql_run *r, slice container) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, container); doc_walk_next(&w, &e);) {
        TRY(mql_pay(r, 1));
        TRY(e.type == BSON_TYPE_UTF8   ? t->found(t->context, r, doc_element_text(&e), t->weight)
            : doc_is_container(e.type) ? each_string(t, r, e.value)
                                       : OK);
    }
    return OK;
}

err mql__each_text(mql_run *r, const mql_text_index *x, mql_value document, mql__text_visit found, void *context) {
    for (size_t i = 0; i < x->n; i++) {
        texts t = {.found = found, .context = context, .weight = x->fields[i].weight};
        bool stopped;
        if (slice_eq(x->fields[i].path, SLICE_LIT("$**"))) {
            TRY(each_string(&t, r, document.bytes));
            continue;
        }
        t.visit = (mql__visit){.run = r, .found = found_value};
        t.visit.parts = mql__parts_of(r->arena, x->fields[i].path, &t.visit.parts_n);
        TRY(mql__visit_path(&t.visit, document, &stopped));
    }
    return OK;
}

/* ---- the search ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes the next word or phrase. */
static bool next_piece(slice *rest, slice *piece, bool *quoted, bool *negated) {
    *negated = *quoted = false;
    while (rest->n && is_blank(rest->p[0])) {
        *rest = slice_skip(*rest, 1);
    }
    if (rest->n > 1 && rest->p[0] == '-' && !is_blank(rest->p[1])) {
        *negated = true;
        *rest = slice_skip(*rest, 1);
    }
    if (!rest->n) {
        return false;
    }
    *quoted = rest->p[0] == '"';
    *rest = slice_skip(*rest, *quoted);
    size_t n = 0;
    while (n < rest->n && (*quoted ? rest->p[n] != '"' : !is_blank(rest->p[n]) && rest->p[n] != '"')) {
        n++;
    }
    *piece = slice_of(rest->p, n);
    *rest = slice_skip(*rest, n + *quoted);
    return true;
}

static err add_words(mql__filter_parser *p, search *s, slice text, bool negated) {
    search_words w = search_words_of(mql__arena(p), s->language, text);
    for (slice term; search_next(&w, &term);) {
        if (s->words_n == WORDS_MAX) {
            return mql_fail(mql__op(p), 2, "too many words in $search");
        }
        slice *kept = arena_new(mql__arena(p), slice);
        *kept = term;
        s->words[s->words_n] = (search_phrase){.terms = kept, .terms_n = 1};
        s->negated[s->words_n] = negated;
        s->raw[s->words_n++] = text;
    }
    return OK;
}

static err add_piece(mql__filter_parser *p, search *s, slice piece, bool quoted, bool negated) {
    if (!quoted) {
        return add_words(p, s, piece, negated);
    }
    if (s->phrases_n == WORDS_MAX) {
        return mql_fail(mql__op(p), 2, "too many phrases in $search");
    }
    slice text = s->by_case ? piece : text_fold(mql__arena(p), piece);
    s->phrases[s->phrases_n++] = (literal){text, negated};
    return negated ? OK : add_words(p, s, piece, false);
}

static err parse_search(mql__filter_parser *p, slice text, search *s) {
    slice rest = text, piece;
    bool quoted, negated;
    s->words = mql__new_array(p, search_phrase, WORDS_MAX);
    s->raw = mql__new_array(p, slice, WORDS_MAX);
    s->negated = mql__new_array(p, bool, WORDS_MAX);
    s->phrases = mql__new_array(p, literal, WORDS_MAX);
    if (!s->words || !s->raw || !s->negated || !s->phrases) {
        return mql__room(p);
    }
    while (next_piece(&rest, &piece, &quoted, &negated)) {
        TRY(add_piece(p, s, piece, quoted, negated));
        TRY(mql__room(p));
    }
    return OK;
}

static err parse_option(mql__filter_parser *p, const doc_element *e, search *s, slice *text) {
    bool is_flag = slice_eq(e->key, SLICE_LIT("$caseSensitive")) || slice_eq(e->key, SLICE_LIT("$diacriticSensitive"));
    bool is_text = slice_eq(e->key, SLICE_LIT("$search")) || slice_eq(e->key, SLICE_LIT("$language"));
    if (!is_flag && !is_text) {
        return mql_fail(mql__op(p), 2, "extra fields in $text");
    }
    if (e->type != (is_flag ? BSON_TYPE_BOOL : BSON_TYPE_UTF8)) {
        return mql_fail(mql__op(p), 14, "\"%.*s\" had the wrong type. Expected %s, found %s", slice_shown(e->key), e->key.p,
                        is_flag ? "bool" : "string", mql_type_name(e->type));
    }
    if (slice_eq(e->key, SLICE_LIT("$language"))) {
        return parse_language(p, doc_element_text(e), &s->language);
    }
    if (is_text) {
        *text = doc_element_text(e);
    } else if (slice_eq(e->key, SLICE_LIT("$caseSensitive"))) {
        s->by_case = mql_as_bool(mql_of(e));
    }
    return OK;
}

static err check_place(mql__filter_parser *p, const mql__operand *of) {
    if (of->e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(mql__op(p), 2, "$text expects an object");
    }
    if (p->inside) {
        return mql_fail(mql__op(p), 2, "$text can only be applied to the top-level document");
    }
    if (p->has_text) {
        return mql_fail(mql__op(p), 2, "Too many text expressions");
    }
    return p->scope->text ? OK : mql_fail(mql__op(p), 27, "text index required for $text query");
}

err mql__parse_text(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    search *s = arena_new(mql__arena(p), search);
    doc_walk w;
    doc_element e;
    slice text = SLICE_EMPTY;
    TRY(check_place(p, of));
    p->has_text = true;
    s->index = p->scope->text;
    s->language = s->index->language;
    for (doc_walk_init(&w, of->e->value); doc_walk_next(&w, &e);) {
        TRY(parse_option(p, &e, s, &text));
    }
    if (!text.p) {
        return mql_fail(mql__op(p), 4, "Missing expected field \"$search\"");
    }
    TRY(parse_search(p, text, s));
    *node_out = mql__node(p, MQL_TEXT, SLICE_EMPTY, mql_of(of->e));
    (*node_out)->detail = s;
    return OK;
}

/* ---- testing ---- */

typedef struct tally {
    const search *search;
    search_language language; /* of the document */
    double score;
    bool found;    /* a word without a minus sign was found */
    bool refused;  /* something negated */
    bool *phrases; /* which ones were found */
} tally;

static void count_words(tally *t, slice text, double weight, const uint32_t *counts, uint32_t length) {
    const search *s = t->search;
    for (size_t i = 0; i < s->words_n; i++) {
        if (!counts[i] || (s->by_case && text_find(text, s->raw[i]) == SIZE_MAX)) {
            continue;
        }
        if (s->negated[i]) {
            t->refused = true;
            continue;
        }
        bool whole = text_equal_nocase(text, s->raw[i]);
        t->found = true;
        t->score += weight * (2 - exp2(1 - (double)counts[i])) * (0.5 + 0.5 * counts[i] / length) * (whole ? 1.1 : 1);
    }
}

static void find_phrases(tally *t, arena *a, slice text) {
    const search *s = t->search;
    slice folded = s->by_case ? text : text_fold(a, text);
    for (size_t i = 0; i < s->phrases_n; i++) {
        if (text_find(folded, s->phrases[i].text) != SIZE_MAX) {
            t->phrases[i] = true;
            t->refused |= s->phrases[i].negated;
        }
    }
}

static err test_text(void *context, mql_run *r, slice text, double weight) {
    tally *t = context;
    const search *s = t->search;
    arena_mark mark = arena_marked(r->arena);
    uint32_t *counts = arena_array(r->arena, uint32_t, s->words_n + 1), length;
    TRY(mql_pay(r, text.n / 4 * (1 + s->phrases_n)));
    if (!arena_fits(r->arena, text.n)) {
        return budget_error(r->arena->budget);
    }
    search_count(r->arena, t->language, text, s->words, s->words_n, counts, &length, &r->steps);
    count_words(t, text, weight, counts, length);
    if (s->phrases_n) {
        find_phrases(t, r->arena, text);
    }
    arena_release(r->arena, mark);
    return r->steps ? OK : E_QUERY_TOO_LONG;
}

/* {$meta: "textScore"} finds the score in the run's metadata. */
static err keep_score(mql_run *r, double score) {
    buf out = buf_init(100);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("textScore"), mql_double(r->arena, score));
    slice metadata;
    bool kept = mql_keep(r->arena, &b, &metadata);
    buf_free(&out);
    r->metadata = kept ? mql_document(metadata) : mql_missing();
    return OK;
}

err mql__test_text(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    const search *s = n->detail;
    tally of = {.search = s, .phrases = arena_array(t->run->arena, bool, s->phrases_n + 1)};
    mql__text_language(s->index, v, &of.language);
    TRY(mql__each_text(t->run, s->index, v, test_text, &of));
    bool matches = of.found && !of.refused;
    for (size_t i = 0; i < s->phrases_n && matches; i++) {
        matches = of.phrases[i] || s->phrases[i].negated;
    }
    *matches_out = matches;
    return matches ? keep_score(t->run, of.score) : OK;
}

/* ---- planning ---- */

size_t mql_text_terms(const mql_node *text, const slice **terms_out, arena *a) {
    const search *s = text->detail;
    slice *terms = arena_array(a, slice, s->words_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->words_n; i++) {
        if (!s->negated[i]) {
            terms[n++] = s->words[i].terms[0];
        }
    }
    *terms_out = terms;
    return n;
}
