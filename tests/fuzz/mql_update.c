/* Any update of any document. The input is up to four JSON texts with a zero byte after each: a document, an update, a filter and array
 * filters; or as many documents as BSON. An update fails with a code of MongoDB's, or gives a well-formed document, the same one each time.
 * It says truly whether it modified the document. What it changed can be described. Operators that set a state do nothing the second time.
 */
#include <stdlib.h>

#include "doc/json.h"
#include "mql/update.h"
#include "mql/update_description.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { STEPS = 3 * 1000 * 1000, MEMORY_MAX = 64 * 1024 * 1024, OVERRUN_MAX = 512 * 1024, SLOTS_MAX = 1000, PARTS = 4 };

#define REQUIRE(condition)                                                                                                                 \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

typedef struct world {
    budget memory;
    arena parsing, running;
    op op;
    mql_scope scope;
    mql_value slots[SLOTS_MAX];
    buf parts[PARTS];
    bool arrays[PARTS];
} world;

/* ---- input ---- */

static void read_json(world *w, slice rest) {
    for (int i = 0; i < PARTS && rest.n; i++) {
        const char *zero = memchr(rest.p, 0, rest.n);
        slice text = zero ? slice_of(rest.p, (size_t)(zero - rest.p)) : rest;
        json_root root = JSON_OBJECT;
        if (text.n && json_to_bson(text, NULL, &w->parts[i], &root, NULL) != OK) {
            buf_clear(&w->parts[i]);
        }
        w->arrays[i] = root == JSON_ARRAY;
        rest = slice_skip(rest, text.n + 1);
    }
}

static void read_bson(world *w, slice rest) {
    for (int i = 0; i < PARTS && rest.n >= 5; i++) {
        int64_t length = doc_load_i32(rest.p);
        slice document = slice_of(rest.p, length >= 5 && (uint64_t)length <= rest.n ? (size_t)length : 0);
        if (document.n && doc_is_well_formed(document, MQL_DEPTH_MAX - 1)) {
            buf_add_slice(&w->parts[i], document);
        }
        w->arrays[i] = i == 3;
        rest = slice_skip(rest, document.n ? document.n : rest.n);
    }
}

/* ---- checks ---- */

static void check_outcome(const world *w, err e) {
    REQUIRE(e == OK || e == E_QUERY_TOO_LONG || e == E_MEMORY || (e == E_BAD_REQUEST && w->op.protocol_code != 0));
    REQUIRE(w->memory.overrun <= OVERRUN_MAX);
}

static mql_run run_on(world *w, mql_value root) {
    w->op.protocol_code = 0;
    w->op.detail_n = 0;
    budget_renew(&w->memory);
    return (mql_run){.op = &w->op, .arena = &w->running, .steps = STEPS, .root = root, .variables = w->slots, .now_ms = 1};
}

static bool apply(world *w, const mql_update *u, mql_value root, mql_updated *updated) {
    mql_run r = run_on(w, root);
    err e = mql_update_apply(&r, u, updated);
    check_outcome(w, e);
    REQUIRE(e != OK || doc_is_well_formed(updated->document, MQL_DEPTH_MAX));
    return e == OK;
}

static void check_description(world *w, slice before, slice after) {
    static const char empty[] = "\5\0\0\0";
    slice description;
    mql_run r = run_on(w, mql_missing());
    err e = mql_difference_of(&r, before, after, &description);
    check_outcome(w, e);
    if (e == OK) {
        mql_value fields = mql_member(mql_document(description), SLICE_LIT("updatedFields"));
        REQUIRE(doc_is_well_formed(description, MQL_DEPTH_MAX + 2));
        REQUIRE(!slice_eq(before, after) || slice_eq(fields.bytes, slice_of(empty, 5)));
    }
}

static bool sets_state(slice update) {
    static const char *const names[] = {"$set", "$unset", "$min", "$max", "$addToSet", "$pull", "$pullAll", "$setOnInsert", "$currentDate"};
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, update); doc_walk_next(&w, &e);) {
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            known = known || slice_eq(e.key, slice_str(names[i]));
        }
        if (!known) {
            return false;
        }
    }
    return true;
}

static void check_update(world *w, const mql_update *u, slice update, bool simple) {
    slice before = buf_view(&w->parts[0]);
    mql_updated first, again;
    if (before.n && !w->arrays[0] && apply(w, u, mql_document(before), &first)) {
        REQUIRE(first.modified == !slice_eq(first.document, before));
        REQUIRE(apply(w, u, mql_document(before), &again) && slice_eq(first.document, again.document));
        check_description(w, before, first.document);
        if (simple && sets_state(update) && apply(w, u, mql_document(first.document), &again)) {
            REQUIRE(!again.modified);
        }
    }
    apply(w, u, mql_missing(), &first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static world w;
    w.memory = budget_init(NULL, MEMORY_MAX);
    w.parsing = arena_init_counted(&w.memory);
    w.running = arena_init_counted(&w.memory);
    op_init(&w.op, &w.parsing, 0);
    w.scope = mql_scope_of(&w.op, false);
    for (int i = 0; i < PARTS; i++) {
        w.parts[i] = buf_init(BUF_NO_LIMIT);
        w.arrays[i] = false;
    }
    if (n && (data[0] == '{' || data[0] == '[')) {
        read_json(&w, slice_of(data, n));
    } else {
        read_bson(&w, slice_of(data, n));
    }
    mql_update_spec spec = {.filter = buf_view(&w.parts[2])};
    spec.update = (mql_value){w.arrays[1] ? BSON_TYPE_ARRAY : BSON_TYPE_DOCUMENT, buf_view(&w.parts[1])};
    spec.array_filters = w.arrays[3] ? buf_view(&w.parts[3]) : SLICE_EMPTY;
    bool good = spec.update.bytes.n && !w.arrays[2];
    good = good && (!spec.filter.n || mql_match_parse(&w.scope, spec.filter, &spec.match) == OK);
    const mql_update *u;
    if (good) {
        err e = mql_update_parse(&w.scope, &spec, &u);
        check_outcome(&w, e);
        if (e == OK && w.scope.slots <= SLOTS_MAX) {
            check_update(&w, u, spec.update.bytes, !spec.filter.n && !spec.array_filters.n && !w.arrays[1]);
        }
    }
    for (int i = 0; i < PARTS; i++) {
        buf_free(&w.parts[i]);
    }
    arena_free(&w.parsing);
    arena_free(&w.running);
    return 0;
}
