/* explain: how the documents of a filter are found. The find is run, and what the core tells about it is shown in MongoDB's form. */
#include "api/mongo/filter_kind.h"
#include "api/mongo/mongo_int.h"
#include "api/mongo/plan.h"
#include "api/mongo/work.h"

typedef struct explanation {
    slice filter;
    mongo_find find;
    uint64_t returned, keys, documents, took_us;
    bool by_key;
    bool plan_only;      /* verbosity "queryPlanner" */
    query_outcome first; /* of the first page: which indexes it has used */
} explanation;

static bool count_one(void *context, const query_found *row) {
    mongo_request *q = context;
    (void)row;
    ((explanation *)q->state)->returned++;
    return true;
}

/* ---- the answer ---- */

/* "/a/?" of the core is the path a. */
static void add_index(mongo_request *q, mql_builder *b, const query_index_note *note) {
    mongo_open_document(b, "inputStage");
    mongo_add_text(b, "stage", SLICE_LIT("IXSCAN"));
    mongo_open_array(b, "paths");
    for (size_t i = 0; i < note->specs_n; i++) {
        mql_add_next(b, mql_text(q->frame->arena, note->specs[i]));
    }
    mql_close(b);
    mongo_add_text(b, "direction", SLICE_LIT("forward"));
    mql_close(b);
}

static const query_index_note *used_index(const query_outcome *outcome) {
    for (size_t i = 0; i < outcome->indexes_n; i++) {
        if (outcome->indexes[i].used) {
            return &outcome->indexes[i];
        }
    }
    return NULL;
}

static void add_plan(mongo_request *q, mql_builder *b, const query_outcome *outcome) {
    const explanation *x = q->state;
    const query_index_note *index = outcome ? used_index(outcome) : NULL;
    mongo_open_document(b, "winningPlan");
    mongo_add_text(b, "stage", slice_str(!outcome ? "EOF" : x->by_key ? "IDHACK" : index ? "FETCH" : "COLLSCAN"));
    if (x->filter.n && !x->by_key) {
        mongo_add_document(b, "filter", x->filter);
    }
    if (index && !x->by_key) {
        add_index(q, b, index);
    }
    mql_close(b);
}

static void answer(mongo_request *q, const query_outcome *outcome) {
    const explanation *x = q->state;
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "explainVersion", SLICE_LIT("1"));
    mongo_open_document(b, "queryPlanner");
    mongo_add_text(b, "namespace", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_add_bool(b, "indexFilterSet", false);
    mongo_open_document(b, "parsedQuery");
    mql_close(b);
    add_plan(q, b, outcome);
    mongo_open_array(b, "rejectedPlans");
    mql_close(b);
    mql_close(b);
    if (x->plan_only) {
        mongo_end(q);
        return;
    }
    mongo_open_document(b, "executionStats");
    mongo_add_bool(b, "executionSuccess", true);
    mongo_add_long(b, "nReturned", (int64_t)x->returned);
    mongo_add_long(b, "executionTimeMillis", (int64_t)x->took_us / 1000);
    mongo_add_long(b, "totalKeysExamined", (int64_t)x->keys);
    mongo_add_long(b, "totalDocsExamined", (int64_t)x->documents);
    mongo_add_double(b, "requestCharge", q->op.charge_ru);
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
    const explanation *x = q->state;
    call_find_init(&q->call.find, &q->front->core, &q->frame->client, &q->op, q->container, found);
    q->call.find.find.where = x->find.where;
    if (x->find.one_partition) {
        q->call.find.find.scope = query_scope_partition(&x->find.partition);
    }
    q->call.find.from = from;
    q->call.find.timed = q->call.find.notes_indexes = true;
    q->call.find.sink = count_one;
    q->call.find.context = q;
    call_find_submit(&q->call.find);
}

/* ---- the command that is explained ---- */

static slice first_filter(slice command, const char *list) {
    mql_value all = mongo_member(command, list), q = mql_member(mql_element_at(all, 0), SLICE_LIT("q"));
    return q.type == BSON_TYPE_DOCUMENT ? q.bytes : SLICE_EMPTY;
}

static slice leading_match(slice command) {
    mql_value match = mql_member(mql_element_at(mongo_member(command, "pipeline"), 0), SLICE_LIT("$match"));
    return match.type == BSON_TYPE_DOCUMENT ? match.bytes : SLICE_EMPTY;
}

static slice filter_of(slice command, slice name) {
    mql_value filter = mongo_member(command, slice_eq(name, SLICE_LIT("find")) ? "filter" : "query");
    return slice_eq(name, SLICE_LIT("update"))      ? first_filter(command, "updates")
           : slice_eq(name, SLICE_LIT("delete"))    ? first_filter(command, "deletes")
           : slice_eq(name, SLICE_LIT("aggregate")) ? leading_match(command)
           : filter.type == BSON_TYPE_DOCUMENT      ? filter.bytes
                                                    : SLICE_EMPTY;
}

static err read_command(mongo_request *q, explanation *x) {
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
            slice filter = filter_of(command, first.key);
            x->filter = filter.n > 5 ? filter : SLICE_EMPTY;
            q->collection = doc_element_text(&first);
            return mongo_check_collection(&q->op, q->collection);
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
    x->find = (mongo_find){.filter = x->filter, .now_ms = q->now_ms, .limit = UINT64_MAX};
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    if (x->filter.n) {
        TRY(mql_match_parse(&scope.scope, x->filter, &match));
    }
    x->by_key = q->container && x->filter.n && mongo_plan_point(&q->op, q->container, x->filter, &key, &alone);
    return q->container ? mongo_plan(&q->op, q->container, match, &x->find) : OK;
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
    bool known = !text.n || x->plan_only || slice_eq(text, SLICE_LIT("executionStats")) || slice_eq(text, SLICE_LIT("allPlansExecution"));
    return known ? OK
                 : op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "verbosity must be queryPlanner, executionStats or allPlansExecution");
}

err mongo_explain(mongo_request *q) {
    explanation *x = q->state = arena_new(q->frame->arena, explanation);
    TRY(read_command(q, x));
    TRY(read_verbosity(q, x));
    TRY(mongo_find_collection(q));
    mongo_work(q, q->large, plan, run);
    return OK;
}
