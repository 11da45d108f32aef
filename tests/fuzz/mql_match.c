/* Two BSON documents, one after the other: a filter and a document. The filter is refused with a message, or it and its negation never both
 * match, within the steps given. The same bytes are tried as a projection and as a sort. */
#include <assert.h>

#include "mql/match_tree.h"
#include "mql/project.h"
#include "mql/sort.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 200 * 1000, MEMORY = 32 * 1024 * 1024, VARIABLES = 64 };

typedef struct world {
    op op;
    arena parsed, results;
    budget budget;
    mql_value variables[VARIABLES];
} world;

static const mql_text_field text_fields[] = {{SLICE_LIT("a"), 1}, {SLICE_LIT("$**"), 2}};
static const mql_text_index text_index = {text_fields, 2, SEARCH_ENGLISH, SLICE_LIT("language")};

static mql_run run_of(world *w, slice document) {
    return (mql_run){
        .op = &w->op, .arena = &w->results, .steps = STEPS, .root = mql_document(document), .variables = w->variables, .now_ms = 1};
}

static bool parse(world *w, slice filter, bool service, const mql_match **match_out, size_t *slots) {
    mql_scope s = mql_scope_of(&w->op, service);
    s.text = &text_index;
    w->op.detail_n = 0;
    err e = mql_match_parse(&s, filter, match_out);
    assert(e == OK || e == E_MEMORY || w->op.detail_n > 0);
    *slots = s.slots;
    return e == OK && s.slots <= VARIABLES;
}

static slice negation_of(world *w, slice filter) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    slice negation;
    mql_open(&b, SLICE_LIT("$nor"), BSON_TYPE_ARRAY);
    mql_add_next(&b, mql_document(filter));
    mql_close(&b);
    bool kept = mql_keep(&w->parsed, &b, &negation);
    buf_free(&out);
    return kept ? negation : filter;
}

static void try_match(world *w, slice filter, slice document) {
    const mql_match *m, *not_m;
    size_t slots;
    bool yes, opposite;
    if (!parse(w, filter, false, &m, &slots)) {
        return;
    }
    mql_run r = run_of(w, document), again = run_of(w, document);
    mql_matched matched;
    if (mql_matches(&r, m, &yes, &matched) != OK || !parse(w, negation_of(w, filter), false, &not_m, &slots)) {
        return;
    }
    assert(yes || matched.position == -1);
    assert(mql_matches(&again, not_m, &opposite, NULL) != OK || yes != opposite);
}

static void try_project(world *w, slice projection, slice document) {
    const mql_project *p;
    slice projected;
    for (mql_project_kind kind = MQL_PROJECT_FIND; kind <= MQL_PROJECT_STAGE; kind++) {
        mql_scope s = mql_scope_of(&w->op, false);
        mql_run r = run_of(w, document);
        if (mql_project_parse(&s, projection, kind, NULL, &p) == OK && s.slots <= VARIABLES && mql_project_apply(&r, p, &projected) == OK) {
            assert(doc_is_well_formed(projected, 2 * MQL_DEPTH_MAX));
        }
    }
}

static void try_sort(world *w, slice spec, slice document) {
    mql_sort sort;
    slice key;
    mql_run r = run_of(w, document);
    if (mql_sort_parse(&w->op, spec, &sort) == OK && mql_sort_key(&r, &sort, document, &key) == OK) {
        assert(mql_length(mql_array(key)) == sort.n && mql_sort_compare(&sort, NULL, key, key) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t first = size < 5 ? 0 : (size_t)(uint32_t)doc_load_i32((const char *)data);
    if (first < 5 || first > size) {
        return 0;
    }
    slice filter = slice_of(data, first), document = slice_of(data + first, size - first);
    if (!doc_is_well_formed(filter, MQL_DEPTH_MAX) || !doc_is_well_formed(document, MQL_DEPTH_MAX)) {
        return 0;
    }
    world w = {.budget = budget_init(NULL, MEMORY)};
    w.parsed = arena_init_counted(&w.budget);
    w.results = arena_init_counted(&w.budget);
    op_init(&w.op, &w.parsed, 0);
    try_match(&w, filter, document);
    try_project(&w, filter, document);
    try_sort(&w, filter, document);
    arena_free(&w.results);
    arena_free(&w.parsed);
    return 0;
}
