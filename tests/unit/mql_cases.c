/* Runs tests/mql/NAME.cases: cases of the MongoDB query language as text. tests/mql/README.md describes the format. To add a section, add a
 * row to `sections`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "mql/accumulator.h"
#include "mql/expression.h"
#include "mql/match.h"
#include "mql/pipeline.h"
#include "mql/project.h"
#include "mql/sort.h"
#include "mql/update.h"
#include "mql/update_description.h"

enum { LINES_MAX = 200, STEPS = 100 * 1000 * 1000, VARIABLES = 64 };

typedef struct line {
    slice key, text;
    unsigned number;
} line;

typedef struct test_case {
    const char *file;
    const line *head;  /* "match: …": names the section and has its argument */
    const line *lines; /* the lines below it */
    size_t n;
    unsigned faults;
    arena *memory;
    op *op;
} test_case;

static void fault(test_case *c, const line *l, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fault(test_case *c, const line *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%u: ", c->file, l->number);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    c->faults++;
}

/* ---- values ---- */

/* Copies a document. Keys that begin with $$ lose one $: libbson reads {"$regex": …} as a regular expression, and not {"$$regex": …}. */
static void copy_unescaped(mql_builder *b, slice from) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, from); doc_walk_next(&w, &e);) {
        slice key = slice_starts(e.key, SLICE_LIT("$$")) ? slice_skip(e.key, 1) : e.key;
        if (doc_is_container(e.type)) {
            mql_open(b, key, e.type);
            copy_unescaped(b, e.value);
            mql_close(b);
        } else {
            mql_add(b, key, mql_of(&e));
        }
    }
}

/* A value of any type, from Extended JSON. */
static mql_value value_of(test_case *c, const line *l) {
    bson_error_t error;
    slice wrapped = arena_printf(c->memory, "{\"v\":%.*s}", (int)l->text.n, l->text.p);
    bson_t *bson = bson_new_from_json((const uint8_t *)wrapped.p, (ssize_t)wrapped.n, &error);
    if (!bson) {
        fault(c, l, "not Extended JSON: %s", error.message);
        return mql_missing();
    }
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    slice document;
    copy_unescaped(&b, slice_of(bson_get_data(bson), bson->len));
    assert_true(mql_keep(c->memory, &b, &document));
    bson_destroy(bson);
    buf_free(&out);
    return mql_member(mql_document(document), SLICE_LIT("v"));
}

static slice document_of(test_case *c, const line *l) {
    mql_value v = value_of(c, l);
    if (!doc_is_container(v.type)) {
        fault(c, l, "not a document");
        return SLICE_LIT("\5\0\0\0\0");
    }
    return v.bytes;
}

static const line *find_line(const test_case *c, const char *key) {
    for (size_t i = 0; i < c->n; i++) {
        if (slice_eq(c->lines[i].key, slice_str(key))) {
            return &c->lines[i];
        }
    }
    return NULL;
}

static bool key_is(const line *l, const char *key) {
    return slice_eq(l->key, slice_str(key));
}

/* ---- running ---- */

/* `index: {"a": 2, "b.c": 1}`: the fields of a text index and their weights. */
static const mql_text_index *text_index_of(test_case *c) {
    const line *l = find_line(c, "index");
    mql_text_index *index = arena_new(c->memory, mql_text_index);
    mql_text_field *fields = arena_array(c->memory, mql_text_field, 10);
    doc_walk w;
    doc_element e;
    for (bool more = l && doc_walk_init(&w, document_of(c, l)); more && doc_walk_next(&w, &e);) {
        fields[index->n++] = (mql_text_field){e.key, mql_as_double(mql_of(&e))};
    }
    index->fields = fields;
    index->override = SLICE_LIT("language");
    return l ? index : NULL;
}

static mql_scope scope_of(test_case *c) {
    return (mql_scope){.op = c->op, .service = find_line(c, "service") != NULL, .text = text_index_of(c)};
}

static mql_run run_of(test_case *c, slice root) {
    static mql_value variables[VARIABLES];
    return (mql_run){.op = c->op, .arena = c->memory, .steps = STEPS, .root = mql_document(root), .variables = variables, .now_ms = 1};
}

/* Compares what happened with the line `error: CODE MESSAGE`; the message may be the beginning of what was said. */
static bool check_error(test_case *c, const line *at, err e) {
    const line *expected = find_line(c, "error");
    slice said = slice_of(c->op->detail, c->op->detail_n);
    if (!expected) {
        if (e != OK) {
            fault(c, at, "error %d: %.*s", c->op->protocol_code, (int)said.n, said.p);
        }
        return e == OK;
    }
    slice text = arena_printf(c->memory, "%d %.*s", c->op->protocol_code, (int)said.n, said.p);
    if (e == OK) {
        fault(c, expected, "no error");
    } else if (!slice_starts(text, expected->text)) {
        fault(c, expected, "error: %.*s", (int)text.n, text.p);
    }
    return false;
}

static bool has_documents(const test_case *c) {
    return find_line(c, "yes") || find_line(c, "no");
}

static void run_match(test_case *c) {
    const mql_match *m;
    mql_scope s = scope_of(c);
    err e = mql_match_parse(&s, document_of(c, c->head), &m);
    if (e != OK || (find_line(c, "error") && !has_documents(c))) {
        check_error(c, c->head, e);
        return;
    }
    for (size_t i = 0; i < c->n; i++) {
        const line *l = &c->lines[i];
        if (!slice_starts(l->key, SLICE_LIT("yes")) && !key_is(l, "no")) {
            continue;
        }
        mql_run r = run_of(c, document_of(c, l));
        mql_matched matched = {-1};
        int64_t position = -1;
        bool matches;
        if (!check_error(c, l, mql_matches(&r, m, &matches, &matched))) {
            continue;
        }
        if (key_is(l, "no") == matches) {
            fault(c, l, "%s", matches ? "matches" : "does not match");
        } else if (!key_is(l, "no") && !key_is(l, "yes") && slice_starts(l->key, SLICE_LIT("yes score "))) {
            char score[32];
            snprintf(score, sizeof score, "%g", mql_as_double(mql_member(r.metadata, SLICE_LIT("textScore"))));
            if (!slice_eq(slice_skip(l->key, 10), slice_str(score))) {
                fault(c, l, "score %s", score);
            }
        } else if (!key_is(l, "no") && !key_is(l, "yes") &&
                   (!slice_to_i64(slice_skip(l->key, 4), &position) || position != matched.position)) {
            fault(c, l, "matched at %lld", (long long)matched.position);
        }
    }
}

/* ---- expressions ---- */

/* "A => B" as two lines; without an arrow B is empty. */
static void split_arrow(const line *l, line *left, line *right) {
    const char *arrow = memmem(l->text.p, l->text.n, " => ", 4);
    size_t n = arrow ? (size_t)(arrow - l->text.p) : l->text.n;
    *left = (line){l->key, slice_trim(slice_of(l->text.p, n)), l->number};
    *right = (line){l->key, slice_trim(slice_skip(l->text, n + 4)), l->number};
}

static slice shown(test_case *c, mql_value v) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    bson_t bson;
    mql_add(&b, SLICE_LIT("v"), v);
    slice document = mql_built(&b);
    assert_true(bson_init_static(&bson, (const uint8_t *)document.p, document.n));
    char *text = bson_as_relaxed_extended_json(&bson, NULL);
    slice copy = arena_copy(c->memory, slice_str(text));
    bson_free(text);
    buf_free(&out);
    return copy;
}

static bool exactly(mql_value a, mql_value b) {
    return a.type == b.type && slice_eq(a.bytes, b.bytes);
}

/* Compares the value or the error with what the line expects. */
static void check_value(test_case *c, const line *l, const line *expected, err e, mql_value v) {
    slice said = arena_printf(c->memory, "%d %.*s", c->op->protocol_code, (int)c->op->detail_n, c->op->detail);
    if (key_is(l, "fails")) {
        if (e == OK) {
            fault(c, l, "no error, but %.*s", (int)shown(c, v).n, shown(c, v).p);
        } else if (!slice_starts(said, expected->text)) {
            fault(c, l, "error: %.*s", (int)said.n, said.p);
        }
    } else if (e != OK) {
        fault(c, l, "error: %.*s", (int)said.n, said.p);
    } else if (!exactly(v, key_is(l, "is") ? value_of(c, expected) : mql_missing())) {
        fault(c, l, "%.*s", (int)shown(c, v).n, shown(c, v).p);
    }
}

static void run_expressions(test_case *c) {
    slice root = document_of(c, c->head);
    for (size_t i = 0; i < c->n; i++) {
        const line *l = &c->lines[i];
        const mql_expression *e;
        line text, expected;
        mql_value v = mql_missing();
        if (!key_is(l, "is") && !key_is(l, "fails") && !key_is(l, "missing")) {
            continue;
        }
        split_arrow(l, &text, &expected);
        mql_scope s = scope_of(c);
        mql_run r = run_of(c, root);
        op_init(c->op, c->memory, 0);
        err bad = mql_expression_parse(&s, value_of(c, &text), &e);
        bad = bad ? bad : mql_evaluate(&r, e, &v);
        check_value(c, l, &expected, bad, v);
    }
}

/* ---- projections ---- */

static err project(test_case *c, mql_project_kind kind, slice document, slice *projected_out) {
    const line *filter = find_line(c, "filter");
    const mql_match *match = NULL;
    const mql_project *p;
    mql_scope s = scope_of(c);
    mql_run r = run_of(c, document);
    TRY(filter ? mql_match_parse(&s, document_of(c, filter), &match) : OK);
    TRY(mql_project_parse(&s, document_of(c, c->head), kind, match, &p));
    return mql_project_apply(&r, p, projected_out);
}

static void run_project(test_case *c) {
    static const line nothing = {.text = {"{}", 2}};
    slice projected;
    if (find_line(c, "error")) {
        const line *l = find_line(c, "find");
        check_error(c, c->head, project(c, MQL_PROJECT_FIND, document_of(c, l ? l : &nothing), &projected));
        return;
    }
    for (size_t i = 0; i + 1 < c->n; i++) {
        const line *l = &c->lines[i];
        bool find = key_is(l, "find");
        if (!find && !key_is(l, "stage")) {
            continue;
        }
        err e = project(c, find ? MQL_PROJECT_FIND : MQL_PROJECT_STAGE, document_of(c, l), &projected);
        if (check_error(c, l, e) && !slice_eq(projected, document_of(c, &c->lines[i + 1]))) {
            slice text = shown(c, mql_document(projected));
            fault(c, l, "%.*s", (int)text.n, text.p);
        }
    }
}

/* Documents come in the order of the sort; each compares with each before it. */
static void run_sort(test_case *c) {
    static slice keys[LINES_MAX];
    static unsigned places[LINES_MAX];
    unsigned place = 0;
    mql_sort sort;
    err e = mql_sort_parse(c->op, document_of(c, c->head), &sort);
    for (size_t i = 0; i < c->n && e == OK; i++) {
        const line *l = &c->lines[i];
        bool ordered = key_is(l, "order");
        if (!ordered && !key_is(l, "same")) {
            continue;
        }
        mql_run r = run_of(c, SLICE_EMPTY);
        e = mql_sort_key(&r, &sort, document_of(c, l), &keys[i]);
        places[i] = place += ordered;
        for (size_t j = 0; j < i && e == OK; j++) {
            int order = mql_sort_compare(&sort, NULL, keys[j], keys[i]), back = mql_sort_compare(&sort, NULL, keys[i], keys[j]);
            if ((order < 0) != (places[j] < places[i]) || (order > 0) != (back < 0)) {
                fault(c, l, "compares %d with line %u", -order, c->lines[j].number);
            }
        }
    }
    check_error(c, c->head, e);
}

/* ---- updates ---- */

static void check_document(test_case *c, const line *l, slice is) {
    slice wanted = document_of(c, l);
    if (!slice_eq(is, wanted)) {
        bson_t bson;
        char *shown = bson_init_static(&bson, (const uint8_t *)is.p, is.n) ? bson_as_relaxed_extended_json(&bson, NULL) : NULL;
        fault(c, l, "is %s", shown ? shown : "no document");
        bson_free(shown);
    }
}

static slice optional_document(test_case *c, const char *key) {
    const line *l = find_line(c, key);
    return l ? document_of(c, l) : SLICE_EMPTY;
}

/* `from:` and `to:` or `same:` follow each other; `upsert:` has the document that is inserted. */
static void apply_update(test_case *c, const mql_update *u, const line *l, const line *next) {
    static const char empty[] = "\5\0\0\0";
    bool upsert = key_is(l, "upsert");
    mql_run r = run_of(c, upsert ? slice_of(empty, 5) : document_of(c, l));
    mql_updated updated;
    if (upsert) {
        r.root = mql_missing();
    }
    c->op->detail_n = 0;
    if (!check_error(c, l, mql_update_apply(&r, u, &updated))) {
        return;
    }
    if (upsert) {
        check_document(c, l, updated.document);
    } else if (next && (key_is(next, "to") || key_is(next, "same"))) {
        check_document(c, key_is(next, "same") ? l : next, updated.document);
        if (updated.modified != key_is(next, "to")) {
            fault(c, next, "%smodified", updated.modified ? "" : "not ");
        }
    } else {
        fault(c, l, "expects a line to: or same:");
    }
}

static void run_update(test_case *c) {
    mql_scope s = scope_of(c);
    mql_update_spec spec = {.update = value_of(c, c->head), .array_filters = optional_document(c, "filters")};
    const mql_update *u;
    bool applied = false;
    spec.filter = optional_document(c, "filter");
    if (spec.filter.n && mql_match_parse(&s, spec.filter, &spec.match) != OK) {
        fault(c, find_line(c, "filter"), "not a filter");
        return;
    }
    err e = mql_update_parse(&s, &spec, &u);
    for (size_t i = 0; e == OK && i < c->n; i++) {
        if (key_is(&c->lines[i], "from") || key_is(&c->lines[i], "upsert")) {
            apply_update(c, u, &c->lines[i], i + 1 < c->n ? &c->lines[i + 1] : NULL);
            applied = true;
        }
    }
    if (!applied) {
        check_error(c, c->head, e);
    }
}

static void run_difference(test_case *c) {
    mql_run r = run_of(c, document_of(c, c->head));
    const line *after = find_line(c, "after"), *is = find_line(c, "is");
    slice description;
    if (!after || !is) {
        fault(c, c->head, "expects the lines after: and is:");
    } else if (check_error(c, c->head, mql_difference_of(&r, r.root.bytes, document_of(c, after), &description))) {
        check_document(c, is, description);
    }
}

/* ---- accumulators ---- */

static err tally_lines(test_case *c, mql_tally *t, size_t from, size_t to) {
    size_t documents = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!key_is(&c->lines[i], "of")) {
            continue;
        }
        if (documents >= from && documents < to) {
            mql_run r = run_of(c, document_of(c, &c->lines[i]));
            TRY(mql_tally_add(&r, t));
        }
        documents++;
    }
    return OK;
}

/* The first documents by one tally, the rest by another, whose state is saved, loaded and merged. */
static err tally_in_parts(test_case *c, const mql_accumulator *a, size_t first, mql_value *value_out) {
    mql_run r = run_of(c, SLICE_LIT("\5\0\0\0\0"));
    mql_tally *tallies[] = {mql_tally_begin(c->memory, a), mql_tally_begin(c->memory, a), mql_tally_begin(c->memory, a)};
    mql_value state;
    err e = tally_lines(c, tallies[0], 0, first);
    e = e ? e : tally_lines(c, tallies[1], first, SIZE_MAX);
    e = e ? e : mql_tally_save(&r, tallies[1], &state);
    e = e ? e : mql_tally_load(&r, tallies[2], state);
    e = e ? e : mql_tally_merge(&r, tallies[0], tallies[2]);
    e = e ? e : mql_tally_value(&r, tallies[0], value_out);
    if (e == OK) {
        *value_out = (mql_value){value_out->type, arena_copy(c->memory, value_out->bytes)};
    }
    for (size_t i = 0; i < 3; i++) {
        mql_tally_free(tallies[i]);
    }
    return e;
}

static void run_accumulate(test_case *c) {
    const mql_accumulator *a;
    const line *gives = find_line(c, "gives");
    mql_scope s = scope_of(c);
    err e = mql_accumulator_parse(&s, value_of(c, c->head), &a);
    if (e != OK || !gives) {
        mql_value v;
        check_error(c, c->head, e ? e : tally_in_parts(c, a, SIZE_MAX, &v));
        return;
    }
    for (size_t first = 0; first < c->n; first++) {
        mql_value v = mql_missing();
        if (!check_error(c, gives, tally_in_parts(c, a, first, &v))) {
            return;
        }
        if (!exactly(v, value_of(c, gives))) {
            fault(c, gives, "divided after %zu: %.*s", first, (int)shown(c, v).n, shown(c, v).p);
        }
    }
}

#include "mql_cases_pipeline.h"

typedef struct section {
    const char *name;
    void (*run)(test_case *c);
} section;

static const section sections[] = {
    {"match", run_match},   {"expressions", run_expressions}, {"project", run_project},       {"sort", run_sort},
    {"update", run_update}, {"difference", run_difference},   {"accumulate", run_accumulate}, {"pipeline", run_pipeline},
};

/* ---- files ---- */

static void run_case(test_case *c) {
    arena memory = arena_init();
    op o;
    op_init(&o, &memory, 0);
    c->memory = &memory;
    c->op = &o;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (key_is(c->head, sections[i].name)) {
            sections[i].run(c);
            arena_free(&memory);
            return;
        }
    }
    fault(c, c->head, "no such section");
    arena_free(&memory);
}

static bool read_line(FILE *f, arena *memory, line *l, unsigned *number) {
    char *text = NULL;
    size_t cap = 0;
    ssize_t n = getline(&text, &cap, f);
    if (n < 0) {
        free(text);
        return false;
    }
    slice all = arena_copy(memory, slice_trim(slice_of(text, (size_t)n)));
    const char *colon = memchr(all.p, ':', all.n);
    size_t key_n = colon ? (size_t)(colon - all.p) : all.n;
    *l = (line){slice_of(all.p, key_n), slice_trim(slice_skip(all, key_n + 1)), ++*number};
    free(text);
    return true;
}

static unsigned run_lines(const char *file, const line *lines, size_t n) {
    test_case c = {.file = file, .head = lines, .lines = lines + 1, .n = n - 1};
    if (n) {
        run_case(&c);
    }
    return c.faults;
}

static void run_file(void **state) {
    const char *file = *state;
    static line lines[LINES_MAX];
    arena memory = arena_init();
    unsigned number = 0, faults = 0;
    size_t n = 0;
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    while (n < LINES_MAX && read_line(f, &memory, &lines[n], &number)) {
        slice key = lines[n].key;
        if (key.n == 0) {
            faults += run_lines(file, lines, n);
            n = 0;
        } else {
            n += key.p[0] != '#';
        }
    }
    assert_true(n < LINES_MAX);
    faults += run_lines(file, lines, n);
    fclose(f);
    arena_free(&memory);
    assert_int_equal(faults, 0);
}

int main(void) {
    enum { FILES_MAX = 100 };
    struct CMUnitTest tests[FILES_MAX];
    char pattern[4096];
    glob_t found;
    const char *folder = getenv("TESELA_MQL_CASES");
    snprintf(pattern, sizeof pattern, "%s/*.cases", folder ? folder : "tests/mql");
    if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc > FILES_MAX) {
        fprintf(stderr, "no cases at %s, or too many\n", pattern);
        return 1;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        tests[i] =
            (struct CMUnitTest){.name = strrchr(found.gl_pathv[i], '/') + 1, .test_func = run_file, .initial_state = found.gl_pathv[i]};
    }
    int failed = _cmocka_run_group_tests("mql_cases", tests, found.gl_pathc, NULL, NULL);
    globfree(&found);
    return failed;
}
