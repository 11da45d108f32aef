/* Any pipeline over any documents. The input is JSON, {"p": [stages], "in": [documents], "other": [documents]}, or the same as BSON; every
 * find brings the documents of "other" that match. A pipeline fails with a code of MongoDB's, or gives well-formed documents, within its
 * steps and its memory, of which nothing is left. It gives the same whether the input comes at once or piece by piece, and whether or not
 * the source does the first stages. */
#include <stdlib.h>

#include "base/random.h"
#include "doc/json.h"
#include "mql/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum {
    STEPS = 200 * 1000,
    MEMORY_MAX = 16 * 1024 * 1024,
    OVERRUN_MAX = 1024 * 1024,
    SLOTS_MAX = 1000,
    DOCUMENTS_MAX = 64,
    TURNS_MAX = 3000
};

#define REQUIRE(condition)                                                                                                                 \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

typedef struct world {
    arena memory;
    op op;
    mql_scope scope;
    mql_value slots[SLOTS_MAX];
    mql_value other;
    slice input[DOCUMENTS_MAX];
    size_t input_n;
    random_source random;
} world;

static void check_outcome(const world *w, err e) {
    REQUIRE(e == OK || e == E_QUERY_TOO_LONG || e == E_MEMORY || (e == E_BAD_REQUEST && w->op.protocol_code != 0));
}

static mql_run run_on(world *w, mql_value root) {
    return (mql_run){
        .op = &w->op, .arena = &w->memory, .steps = STEPS, .root = root, .variables = w->slots, .now_ms = 1, .random = &w->random};
}

/* ---- what the flow needs ---- */

static err push_found(world *w, mql_flow *f) {
    mql_lookup lookup;
    const mql_match *m = NULL;
    doc_walk walk;
    doc_element e;
    mql_flow_lookup(f, &lookup);
    REQUIRE(lookup.filter.n == 0 || doc_is_well_formed(lookup.filter, MQL_DEPTH_MAX));
    err code = lookup.filter.n ? mql_match_parse(&w->scope, lookup.filter, &m) : OK;
    if (w->other.type == BSON_TYPE_ARRAY) {
        for (doc_walk_init(&walk, w->other.bytes); code == OK && doc_walk_next(&walk, &e);) {
            mql_run r = run_on(w, mql_of(&e));
            bool matches = e.type == BSON_TYPE_DOCUMENT;
            code = matches && m ? mql_matches(&r, m, &matches, NULL) : OK;
            code = code == OK && matches ? mql_flow_lookup_push(f, e.value) : code;
        }
    }
    mql_flow_lookup_end(f);
    return code;
}

static err step_to_end(world *w, mql_flow *f, const slice *input, size_t n, bool at_once, buf *out) {
    mql_run r = run_on(w, mql_missing());
    mql_need need = MQL_NEED_INPUT;
    size_t pushed = 0;
    for (int turns = 0; need != MQL_NEED_NOTHING; turns++) {
        TRY(turns < TURNS_MAX ? mql_flow_step(f, &r, &need) : E_QUERY_TOO_LONG);
        if (need == MQL_NEED_INPUT) {
            REQUIRE(pushed <= n);
            if (pushed == n) {
                mql_flow_end(f);
                pushed++;
            }
            while (pushed < n) {
                TRY(mql_flow_push(f, input[pushed++]));
                if (!at_once) {
                    break;
                }
            }
        } else if (need == MQL_NEED_LOOKUP) {
            TRY(push_found(w, f));
        } else if (need == MQL_NEED_TAKE) {
            slice taken = mql_flow_take(f);
            REQUIRE(doc_is_well_formed(taken, 2 * MQL_DEPTH_MAX));
            buf_add_slice(out, taken);
        }
    }
    return OK;
}

/* ---- the source ---- */

static bool take_source(world *w, const mql_source *source, slice *taken, size_t *n_out) {
    slice keys[DOCUMENTS_MAX];
    size_t n = 0, kept = 0;
    mql_sort sort = {0};
    if (source->sort.n && mql_sort_parse(&w->op, source->sort, &sort) != OK) {
        return false;
    }
    for (size_t i = 0; i < w->input_n; i++) {
        mql_run r = run_on(w, mql_document(w->input[i]));
        bool matches = true;
        slice key = SLICE_EMPTY;
        if ((source->match && mql_matches(&r, source->match, &matches, NULL) != OK) ||
            (sort.n && mql_sort_key(&r, &sort, w->input[i], &key) != OK)) {
            return false;
        }
        size_t at = matches ? n++ : 0;
        for (; matches && at > 0 && sort.n && mql_sort_compare(&sort, NULL, keys[at - 1], key) > 0; at--) {
            keys[at] = keys[at - 1];
            taken[at] = taken[at - 1];
        }
        if (matches) {
            keys[at] = key;
            taken[at] = w->input[i];
        }
    }
    for (uint64_t i = source->skip; i < n && kept < source->limit; i++) {
        taken[kept++] = source->counts_only ? SLICE_LIT("\5\0\0\0\0") : taken[i];
    }
    *n_out = kept;
    return true;
}

static bool run(world *w, const mql_pipeline *p, bool by_source, bool at_once, buf *out) {
    mql_source source = {.limit = UINT64_MAX};
    slice taken[DOCUMENTS_MAX];
    size_t from = 0, n;
    budget memory = budget_init(NULL, MEMORY_MAX);
    random_seed(&w->random, 1);
    w->op.protocol_code = 0;
    if (by_source && mql_pipeline_source(&w->scope, p, &source, &from) != OK) {
        return false;
    }
    if (!take_source(w, &source, taken, &n)) {
        return false;
    }
    mql_flow *f = mql_flow_begin(p, from, &memory);
    err e = step_to_end(w, f, taken, n, at_once, out);
    check_outcome(w, e);
    mql_flow_free(f);
    REQUIRE(memory.used == 0 && memory.overrun <= OVERRUN_MAX);
    return e == OK;
}

static void run_all(world *w, const mql_pipeline *p) {
    buf first = buf_init(BUF_NO_LIMIT);
    bool ran = false;
    for (int way = 0; way < 4; way++) {
        buf out = buf_init(BUF_NO_LIMIT);
        bool good = run(w, p, way & 1, way & 2, &out);
        REQUIRE(!good || !ran || slice_eq(buf_view(&out), buf_view(&first)));
        if (good && !ran) {
            buf_add_slice(&first, buf_view(&out));
            ran = true;
        }
        buf_free(&out);
    }
    buf_free(&first);
}

static void read_input(world *w, mql_value input) {
    doc_walk walk;
    doc_element e;
    w->input_n = 0;
    if (input.type == BSON_TYPE_ARRAY) {
        for (doc_walk_init(&walk, input.bytes); w->input_n < DOCUMENTS_MAX && doc_walk_next(&walk, &e);) {
            if (e.type == BSON_TYPE_DOCUMENT) {
                w->input[w->input_n++] = e.value;
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static world w;
    buf bytes = buf_init(BUF_NO_LIMIT);
    json_root root = JSON_OBJECT;
    if (n && data[0] == '{') {
        if (json_to_bson(slice_of(data, n), NULL, &bytes, &root, NULL) != OK) {
            buf_clear(&bytes);
        }
    } else if (doc_is_well_formed(slice_of(data, n), MQL_DEPTH_MAX)) {
        buf_add(&bytes, data, n);
    }
    w.memory = arena_init();
    op_init(&w.op, &w.memory, 0);
    w.scope = mql_scope_of(&w.op, false);
    mql_value all = bytes.n ? mql_document(buf_view(&bytes)) : mql_missing();
    mql_value stages = mql_member(all, SLICE_LIT("p"));
    w.other = mql_member(all, SLICE_LIT("other"));
    read_input(&w, mql_member(all, SLICE_LIT("in")));
    const mql_pipeline *p;
    if (stages.type == BSON_TYPE_ARRAY) {
        err e = mql_pipeline_parse(&w.scope, stages.bytes, &p);
        check_outcome(&w, e);
        if (e == OK && w.scope.slots <= SLOTS_MAX) {
            run_all(&w, p);
        }
    }
    arena_free(&w.memory);
    buf_free(&bytes);
    return 0;
}
