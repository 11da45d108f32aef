/* Full-text search, below the query functions: terms, phrases, counts, scores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "base/buf.h"
#include "text/search.h"

static arena memory;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static void texts_are_rows_of_terms(void **state) {
    static const struct {
        search_language language;
        const char *text, *terms;
    } cases[] = {
        {SEARCH_ENGLISH, "The Quick brown-fox, jumped over 12 lazy dogs!", "quick brown fox jump 12 lazi dog "},
        {SEARCH_ENGLISH, "", ""},
        {SEARCH_ENGLISH, " ...!? ", ""},
        {SEARCH_ENGLISH, "a I 7 x", "7 x "},
        {SEARCH_ENGLISH, "It is part of what is well known throughout", ""},
        {SEARCH_ENGLISH, "don't 'quote' rock'n'roll dogs'", "don't quot rock'n'rol dog "},
        {SEARCH_ENGLISH, "naïve CAFÉ", "naïv café "},
        {SEARCH_ENGLISH, "snake_case", "snake case "},
        {SEARCH_SPANISH, "Las bicicletas rojas", "las biciclet roj "},
        {SEARCH_GERMAN, "Häuser und Straßen", "haus und strass "},
        {SEARCH_FRENCH, "les maisons rouges", "le maison roug "},
        {SEARCH_ITALIAN, "le biciclette rosse", "le biciclett ross "},
        {SEARCH_PORTUGUESE, "as bicicletas vermelhas", "as biciclet vermelh "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        search_words w = search_words_of(&memory, cases[i].language, slice_str(cases[i].text));
        for (slice term; search_next(&w, &term);) {
            buf_add_slice(&out, term);
            buf_add_byte(&out, ' ');
        }
        buf_add_byte(&out, 0);
        assert_string_equal(out.p, cases[i].terms);
        buf_free(&out);
    }
}

static void languages_have_names(void **state) {
    search_language language;
    search_distance distance;
    (void)state;
    assert_true(search_language_of(SLICE_LIT("es-ES"), &language) && language == SEARCH_SPANISH);
    assert_true(search_language_of(SLICE_LIT("PT-br"), &language) && language == SEARCH_PORTUGUESE);
    assert_false(search_language_of(SLICE_LIT("xx-XX"), &language));
    assert_true(search_distance_named(SLICE_LIT("DotProduct"), &distance) && distance == SEARCH_DOT_PRODUCT);
    assert_false(search_distance_named(SLICE_LIT("dot"), &distance));
}

static void phrases_are_counted(void **state) {
    (void)state;
    search_phrase phrases[4];
    assert_true(search_phrase_of(&memory, SEARCH_ENGLISH, SLICE_LIT("red bicycle"), 0, &phrases[0]));
    assert_true(search_phrase_of(&memory, SEARCH_ENGLISH, SLICE_LIT("bicycles"), 0, &phrases[1]));
    assert_true(search_phrase_of(&memory, SEARCH_ENGLISH, SLICE_LIT("of the"), 0, &phrases[2]));
    assert_true(search_phrase_of(&memory, SEARCH_ENGLISH, SLICE_LIT("red red"), 0, &phrases[3]));
    uint32_t counts[4], length;
    search_count(&memory, SEARCH_ENGLISH, SLICE_LIT("Red bicycle, the red bicycles and a bicycle; red red red."), phrases, 4, counts,
                 &length, NULL);
    assert_int_equal(length, 8);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 3);
    assert_int_equal(counts[2], 0);
    assert_int_equal(counts[3], 2); /* they overlap */

    buf many = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 100; i++) {
        buf_add_lit(&many, "word ");
    }
    search_phrase too_long;
    assert_false(search_phrase_of(&memory, SEARCH_ENGLISH, buf_view(&many), 0, &too_long));
    for (int i = 0; i < 20000; i++) {
        buf_add_lit(&many, "word ");
    }
    uint64_t steps = 1000;
    search_count(&memory, SEARCH_ENGLISH, buf_view(&many), phrases, 4, counts, &length, &steps);
    assert_int_equal(steps, 0);
    assert_true(length < 100);
    buf_free(&many);
}

/* Computed by hand: 3 texts of 4, 4 and 8 terms, and a term that occurs twice in one of them. */
static void scores_are_bm25(void **state) {
    (void)state;
    uint64_t hits[] = {1, 3};
    search_statistics s = {.documents = 3, .terms = 16, .hits = hits};
    uint32_t counts[] = {2, 0};
    double rarity = log(1 + (3 - 1 + 0.5) / (1 + 0.5)), weight = 1.2 * (1 - 0.75 + 0.75 * 4 / (16.0 / 3));
    assert_true(fabs(search_bm25(&s, counts, 2, 4) - rarity * 2 * 2.2 / (2 + weight)) < 1e-12);
    uint32_t both[] = {2, 1};
    assert_true(search_bm25(&s, both, 2, 4) > search_bm25(&s, counts, 2, 4));   /* more terms, more score */
    assert_true(search_bm25(&s, counts, 2, 4) > search_bm25(&s, counts, 2, 8)); /* in a longer text they count less */
    assert_true(search_bm25(&(search_statistics){0, 0, hits}, counts, 2, 4) >= 0);
    uint32_t ranks[] = {1, 10};
    double weights[] = {2, 0.5};
    assert_true(fabs(search_rrf(ranks, NULL, 2) - (1.0 / 61 + 1.0 / 70)) < 1e-15);
    assert_true(fabs(search_rrf(ranks, weights, 2) - (2.0 / 61 + 0.5 / 70)) < 1e-15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_are_rows_of_terms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(languages_have_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(phrases_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scores_are_bm25, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("query_search", tests, NULL, NULL);
}
