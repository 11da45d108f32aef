/* explain: how the documents of a filter are found. Runs the find, and shows the core's explanation in MongoDB's form. */
#include "api/mongo/aggregate.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/memo.h"
#include "api/mongo/mongo_int.h"
#include "api/mongo/plan.h"
#include "api/mongo/sorter.h"
#include "api/mongo/views.h"
#include "api/mongo/work.h"
#include "mql/pipeline.h"

typedef struct explanation {
    slice command, name; /* of what is explained */
    mongo_find find;
    uint64_t returned, keys, documents, took_us;
    bool by_key;
    bool plan_only;      /* verbosity "queryPlanner" */
    bool all_plans;      /* verbosity "allPlansExecution" */
    bool stats;          /* the stages of executionStats are being written */
    query_outcome first; /* of the first page: which indexes it has used */
} explanation;

static bool count_one(void *context, const query_found *row) {
    mongo_request *q = context;
    (void)row;
    ((explanation *)q->state)->returned++;
    return true;
}

/* ---- the answer ---- */

/* The core names an index by its name, as a path: /a_1/? or /"a b"/?. */
static slice index_name(slice spec) {
    size_t quoted = spec.n > 5 && spec.p[1] == '"';
    return spec.n > 3 ? slice_of(spec.p + 1 + quoted, spec.n - 3 - 2 * quoted) : SLICE_EMPTY;
}

static slice name_of_order(slice order) {
    mql_value name = mql_member(mql_member(mql_element_at(mql_array(order), 0), SLICE_LIT("of")), SLICE_LIT("name"));
    return mql_is_text(name) ? mql_as_text(name) : SLICE_EMPTY;
}

static bool goes_down(slice order) {
    return order.n && mql_truth(mql_member(mql_element_at(mql_array(order), 0), SLICE_LIT("down")));
}

static slice used_index(const mongo_find *f, const query_outcome *outcome) {
    for (size_t i = 0; i < outcome->indexes_n && !f->order.n; i++) {
        if (outcome->indexes[i].used && outcome->indexes[i].specs_n) {
            return index_name(outcome->indexes[i].specs[0]);
        }
    }
    return f->order.n ? name_of_order(f->order) : SLICE_EMPTY;
}

/* What the stage has done; not for verbosity "queryPlanner". */
static void add_figures(mql_builder *b, const explanation *x, bool keys, bool documents) {
    if (x->stats) {
        mongo_add_long(b, "nReturned", (int64_t)x->returned);
        keys ? mongo_add_long(b, "keysExamined", (int64_t)x->keys) : (void)0;
        documents ? mongo_add_long(b, "docsExamined", (int64_t)x->documents) : (void)0;
    }
}

static void add_key_pattern(const mongo_request *q, mql_builder *b, slice name) {
    doc_walk w;
    doc_element e;
    mongo_index x;
    for (doc_walk_init(&w, mongo_memo_of(q->container).indexes); doc_walk_next(&w, &e);) {
        if (mongo_index_read(e.value, &x) && slice_eq(x.name, name)) {
            mongo_add_document(b, "keyPattern", x.key);
            mongo_add_bool(b, "isUnique", x.unique);
            mongo_add_bool(b, "isSparse", x.sparse);
            mongo_add_bool(b, "isPartial", x.partial.n > 0);
        }
    }
    mongo_add_text(b, "indexName", name);
}

static void add_index(mongo_request *q, mql_builder *b, slice name, bool down) {
    mongo_open_document(b, "inputStage");
    mongo_add_text(b, "stage", SLICE_LIT("IXSCAN"));
    add_figures(b, q->state, true, false);
    add_key_pattern(q, b, name);
    mongo_add_text(b, "direction", down ? SLICE_LIT("backward") : SLICE_LIT("forward"));
    mql_close(b);
}

/* Keys alone, or one document of each. */
static void add_keys(mongo_request *q, mql_builder *b) {
    const explanation *x = q->state;
    const mongo_find *f = &x->find;
    mongo_add_text(b, "stage", slice_str(f->each.n ? "DISTINCT_SCAN" : f->filter.n ? "COUNT_SCAN" : "RECORD_STORE_FAST_COUNT"));
    add_figures(b, x, true, f->each.n > 0);
    if (f->keys.n) {
        add_key_pattern(q, b, f->keys);
    }
}

static void add_reading(mongo_request *q, mql_builder *b, const query_outcome *outcome) {
    const explanation *x = q->state;
    const mongo_find *f = &x->find;
    if (outcome && outcome->keys_only) {
        add_keys(q, b);
        return;
    }
    slice index = outcome && !x->by_key ? used_index(f, outcome) : SLICE_EMPTY;
    mongo_add_text(b, "stage", slice_str(!outcome ? "EOF" : x->by_key ? "IDHACK" : index.n ? "FETCH" : "COLLSCAN"));
    add_figures(b, x, x->by_key, true);
    if (f->filter.n && !x->by_key) {
        mongo_add_document(b, "filter", f->filter);
    }
    if (index.n) {
        add_index(q, b, index, goes_down(f->order));
    } else if (outcome && !x->by_key) {
        mongo_add_text(b, "direction", SLICE_LIT("forward"));
    }
}

/* Reading, and above it what is made of the documents: their number, groups, or a sort in memory if no index has the order. */
static void add_plan(mongo_request *q, mql_builder *b, const char *name, const query_outcome *outcome) {
    const explanation *x = q->state;
    const mongo_find *f = &x->find;
    bool sorts = f->sort.n && !f->order.n && outcome, groups = f->value_path.n && !f->distinct;
    const char *above = !outcome ? NULL : f->count_only ? "COUNT" : groups ? "GROUP" : sorts ? "SORT" : NULL;
    mongo_open_document(b, name);
    if (above) {
        mongo_add_text(b, "stage", slice_str(above));
        if (sorts) {
            mongo_add_document(b, "sortPattern", f->sort);
            mongo_add_long(b, "memLimit", (int64_t)MONGO_SORT_BYTES);
        }
        mongo_open_document(b, "inputStage");
    }
    add_reading(q, b, outcome);
    if (above) {
        mql_close(b);
    }
    mql_close(b);
}

static void add_planner(mongo_request *q, mql_builder *b, const query_outcome *outcome) {
    const mongo_find *f = &((const explanation *)q->state)->find;
    mongo_open_document(b, "queryPlanner");
    mongo_add_text(b, "namespace", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_add_bool(b, "indexFilterSet", false);
    mongo_add_document(b, "parsedQuery", f->filter.n ? f->filter : slice_of("\5\0\0\0", 5));
    add_plan(q, b, "winningPlan", outcome);
    mongo_open_array(b, "rejectedPlans");
    mql_close(b);
    mql_close(b);
}

static void add_stats(mongo_request *q, mql_builder *b, const query_outcome *outcome) {
    explanation *x = q->state;
    mongo_open_document(b, "executionStats");
    mongo_add_bool(b, "executionSuccess", true);
    mongo_add_long(b, "nReturned", (int64_t)x->returned);
    mongo_add_long(b, "executionTimeMillis", (int64_t)x->took_us / 1000);
    mongo_add_long(b, "totalKeysExamined", (int64_t)x->keys);
    mongo_add_long(b, "totalDocsExamined", (int64_t)x->documents);
    mongo_add_double(b, "requestCharge", q->op.charge_ru);
    x->stats = true;
    add_plan(q, b, "executionStages", outcome);
    if (x->all_plans) { /* the choice is made by counting keys, not by trying plans */
        mongo_open_array(b, "allPlansExecution");
        mql_close(b);
    }
    mql_close(b);
}

static void answer(mongo_request *q, const query_outcome *outcome) {
    explanation *x = q->state;
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "explainVersion", SLICE_LIT("1"));
    add_planner(q, b, outcome);
    if (!x->plan_only) {
        add_stats(q, b, outcome);
    }
    mongo_add_document(b, "command", x->command);
    mongo_open_document(b, "serverInfo");
    mongo_add_text(b, "host", mongo_own_host(q));
    mongo_add_text(b, "version", SLICE_LIT(MONGO_VERSION));
    mql_close(b);
    mongo_end(q);
}

static void read_page(mongo_request *q, slice from);

/* All pages are read, unless only the plan is wanted: the first one tells it. */
static void found(call *c) {
    mongo_request *q = (mongo_request *)c;
    explanation *x = q->state;
    const query_outcome *outcome = &q->call.find.outcome;
    if (c->code != OK) {
        mongo_fail(q, c->code);
        return;
    }
    x->first = x->documents || x->keys ? x->first : *outcome;
    x->keys += outcome->metrics.entries;
    x->documents += outcome->metrics.read;
    x->took_us += outcome->metrics.took_us;
    if (q->call.find.next.n && !x->plan_only) {
        read_page(q, q->call.find.next);
        return;
    }
    answer(q, &x->first);
}

static void read_page(mongo_request *q, slice from) {
    const mongo_find *f = &((const explanation *)q->state)->find;
    bool sorts = f->sort.n && !f->order.n; /* then all documents are read */
    call_find_init(&q->call.find, &q->front->core, &q->frame->client, &q->op, q->container, found);
    q->call.find.find.where = f->where;
    q->call.find.find.order = f->order;
    q->call.find.find.counts = f->counts;
    q->call.find.find.each = f->each;
    q->call.find.find.skip = sorts ? 0 : f->skip;
    q->call.find.find.limit = sorts ? UINT64_MAX : f->limit;
    if (f->one_partition) {
        q->call.find.find.scope = query_scope_partition(&f->partition);
    }
    q->call.find.from = from;
    q->call.find.timed = q->call.find.notes_indexes = true;
    q->call.find.sink = count_one;
    q->call.find.context = q;
    call_find_submit(&q->call.find);
}

/* ---- the command that is explained ---- */

static slice document_in(slice command, const char *name) {
    mql_value v = mongo_member(command, name);
    return v.type == BSON_TYPE_DOCUMENT && v.bytes.n > 5 ? v.bytes : SLICE_EMPTY;
}

static slice first_filter(slice command, const char *list) {
    mql_value filter = mql_member(mql_element_at(mongo_member(command, list), 0), SLICE_LIT("q"));
    return filter.type == BSON_TYPE_DOCUMENT && filter.bytes.n > 5 ? filter.bytes : SLICE_EMPTY;
}

static uint64_t count_in(slice command, const char *name, uint64_t none) {
    int64_t n = 0;
    return mql_as_integer(mongo_member(command, name), &n) && n ? (uint64_t)(n < 0 ? -n : n) : none;
}

/* What the source does of a pipeline: its leading $match, $sort, $skip and $limit. */
static err read_stages(mongo_request *q, slice list, mongo_find *f) {
    mongo_scope scope;
    const mql_pipeline *pipeline;
    mql_source source;
    size_t stages;
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    scope.scope.views = mongo_views_of(q);
    TRY(mql_pipeline_parse(&scope.scope, list, &pipeline));
    TRY(mql_pipeline_source(&scope.scope, pipeline, &source, &stages));
    f->filter = source.filter.n > 5 ? source.filter : SLICE_EMPTY;
    f->sort = source.sort;
    f->skip = source.skip;
    f->limit = source.limit;
    mongo_want_of_source(&source, false, f);
    return OK;
}

static err read_pipeline(mongo_request *q, slice command, mongo_find *f) {
    mql_value list = mongo_member(command, "pipeline");
    return list.type == BSON_TYPE_ARRAY
               ? read_stages(q, list.bytes, f)
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_TYPE_MISMATCH, "'pipeline' option must be specified as an array");
}

/* A find in a view is a pipeline of what the view shows. */
static err read_view(mongo_request *q, slice command, mongo_find *f) {
    mql_value list = mongo_member(command, "pipeline");
    slice stages;
    TRY(list.type == BSON_TYPE_ARRAY ? OK : mongo_find_stages(q, f, &stages));
    TRY(mongo_join_stages(&q->op, q->view->stages, list.type == BSON_TYPE_ARRAY ? list.bytes : stages, &stages));
    return read_stages(q, stages, f);
}

static err read_find(mongo_request *q, slice command, slice name, mongo_find *f) {
    *f = (mongo_find){.now_ms = q->now_ms, .limit = UINT64_MAX};
    TRY(mongo_check_hint(&q->op, mongo_member(command, "hint"), &f->hint));
    if (slice_eq(name, SLICE_LIT("aggregate")) && !q->view) {
        return read_pipeline(q, command, f);
    }
    bool find = slice_eq(name, SLICE_LIT("find"));
    f->filter = slice_eq(name, SLICE_LIT("update"))   ? first_filter(command, "updates")
                : slice_eq(name, SLICE_LIT("delete")) ? first_filter(command, "deletes")
                                                      : document_in(command, find ? "filter" : "query");
    f->sort = document_in(command, "sort");
    f->skip = find ? count_in(command, "skip", 0) : 0;
    f->limit = find ? count_in(command, "limit", UINT64_MAX) : UINT64_MAX;
    f->count_only = slice_eq(name, SLICE_LIT("count"));
    if (slice_eq(name, SLICE_LIT("distinct")) && mql_is_text(mongo_member(command, "key"))) {
        f->distinct = true;
        f->value_path = mql_as_text(mongo_member(command, "key"));
    }
    return q->view ? read_view(q, command, f) : OK;
}

/* Finds the collection of the command that is explained. */
static err find_explained(mongo_request *q, explanation *x) {
    static const char *const known[] = {"aggregate", "count", "delete", "distinct", "find", "findAndModify", "update"};
    slice command;
    doc_walk w;
    doc_element first;
    TRY(mongo_arg_document(q, "explain", &command));
    if (!command.n || !doc_walk_init(&w, command) || !doc_walk_next(&w, &first) || first.type != BSON_TYPE_UTF8) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "explain needs a command of a collection.");
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (slice_eq(first.key, slice_str(known[i]))) {
            q->collection = doc_element_text(&first);
            x->command = command;
            x->name = first.key;
            TRY(mongo_check_collection(&q->op, q->collection));
            return mongo_find_collection(q);
        }
    }
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_FOUND, "Explain failed due to unknown command: %.*s", slice_shown(first.key),
                      first.key.p);
}

static err plan(mongo_request *q) {
    explanation *x = q->state;
    mongo_scope scope;
    const mql_match *match = NULL;
    item_key key;
    bool alone;
    mongo_find *f = &x->find;
    TRY(mongo_view_enter(q));
    TRY(read_find(q, x->command, x->name, f));
    TRY(mongo_collation_of(q, document_in(x->command, "collation"), &f->collation));
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    TRY(mongo_scope_collate(&q->op, q->container, f->collation, &scope));
    if (f->filter.n) {
        TRY(mql_match_parse(&scope.scope, f->filter, &match));
    }
    x->by_key = q->container && !q->view && f->filter.n && !f->sort.n && !f->collation.n && mql_is_missing(f->hint) &&
                mongo_plan_point(&q->op, q->container, f->filter, &key, &alone);
    return q->container ? mongo_plan(&q->op, q->container, match, f) : OK;
}

static void run(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
    } else if (!q->container) {
        answer(q, NULL);
    } else {
        read_page(q, SLICE_EMPTY);
    }
}

static err read_verbosity(mongo_request *q, explanation *x) {
    slice text;
    TRY(mongo_arg_text(q, "verbosity", &text));
    x->plan_only = slice_eq(text, SLICE_LIT("queryPlanner"));
    x->all_plans = !text.n || slice_eq(text, SLICE_LIT("allPlansExecution"));
    bool known = x->plan_only || x->all_plans || slice_eq(text, SLICE_LIT("executionStats"));
    return known ? OK
                 : op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "verbosity must be queryPlanner, executionStats or allPlansExecution");
}

err mongo_explain(mongo_request *q) {
    explanation *x = q->state = arena_new(q->frame->arena, explanation);
    TRY(read_verbosity(q, x));
    TRY(find_explained(q, x));
    mongo_work(q, q->large, plan, run);
    return OK;
}
