/* bulkWrite: inserts, updates and deletes in several collections.
 *
 * Neighbouring operations of one collection are a *run*: inserts together, updates and deletes together. A run is what an insert or an
 * update command would do; its results are added to the reply before the next run begins. */
#include "api/mongo/collections.h"
#include "api/mongo/retry.h"
#include "api/mongo/writes.h"

enum { OPERATIONS_MAX = 100000, RESULTS_BYTES_MAX = 16 << 20 };

typedef struct operation {
    slice document; /* an insert: what is inserted; otherwise empty */
    uint32_t ns;    /* an index into `names` */
    bool deletes;
} operation;

typedef struct bulk {
    slice *names;
    size_t names_n;
    operation *list;
    mongo_statement *statements; /* of the same indexes; those of inserts are not used */
    size_t n;
    size_t at, end; /* the run */
    bool ordered, errors_only;
    buf results;
    size_t results_n;
    uint64_t inserted, matched, modified, upserted, deleted, errors;
} bulk;

static bulk *bulk_of(const mongo_request *q) {
    return q->out;
}

/* ---- arguments ---- */

static err wrong(mongo_request *q, const char *what) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "%s", what);
}

static slice part(slice document, const char *name, bson_type_t type) {
    mql_value v = mongo_member(document, name);
    return v.type == type ? v.bytes : SLICE_EMPTY;
}

static err read_names(mongo_request *q, bulk *b) {
    mongo_list list;
    slice each;
    TRY(mongo_list_begin(q, "nsInfo", &list, &b->names_n));
    b->names = arena_array(q->frame->arena, slice, b->names_n + 1);
    for (size_t i = 0; mongo_list_next(&list, &each); i++) {
        mql_value ns = mongo_member(each, "ns");
        slice database, collection;
        if (!mql_is_text(ns) || !mongo_split_namespace(mql_as_text(ns), &database, &collection)) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "The ns of nsInfo must be \"database.collection\".");
        }
        TRY(mongo_check_database(&q->op, database));
        TRY(mongo_check_collection(&q->op, collection));
        b->names[i] = mql_as_text(ns);
    }
    return OK;
}

static err read_operation(mongo_request *q, const bulk *b, slice each, slice let, operation *o, mongo_statement *s) {
    doc_walk w;
    doc_element kind = {0};
    int64_t ns = -1;
    bool any = doc_walk_init(&w, each) && doc_walk_next(&w, &kind);
    bool insert = any && slice_eq(kind.key, SLICE_LIT("insert")), update = any && slice_eq(kind.key, SLICE_LIT("update"));
    o->deletes = any && slice_eq(kind.key, SLICE_LIT("delete"));
    if (!(insert || update || o->deletes) || !mql_as_integer(mql_of(&kind), &ns) || ns < 0 || (size_t)ns >= b->names_n) {
        return wrong(q, "An operation of bulkWrite begins with insert, update or delete, whose value is an index into nsInfo.");
    }
    o->ns = (uint32_t)ns;
    o->document = insert ? part(each, "document", BSON_TYPE_DOCUMENT) : SLICE_EMPTY;
    *s = (mongo_statement){.filter = part(each, "filter", BSON_TYPE_DOCUMENT),
                           .update = update ? mongo_member(each, "updateMods") : mql_missing(),
                           .array_filters = part(each, "arrayFilters", BSON_TYPE_ARRAY),
                           .sort = part(each, "sort", BSON_TYPE_DOCUMENT),
                           .collation = part(each, "collation", BSON_TYPE_DOCUMENT),
                           .variables = let,
                           .upsert = mql_truth(mongo_member(each, "upsert")),
                           .multi = mql_truth(mongo_member(each, "multi"))};
    TRY(mongo_check_hint(&q->op, mongo_member(each, "hint"), &s->hint));
    bool good = insert ? o->document.n > 0 : s->filter.n > 0;
    good = good && (!update || s->update.type == BSON_TYPE_DOCUMENT || s->update.type == BSON_TYPE_ARRAY);
    return good ? mongo_check_multi(q, s->multi)
                : wrong(q, "An insert has a document; an update has a filter and updateMods; a delete has a filter.");
}

static err read_operations(mongo_request *q, bulk *b) {
    mongo_list list;
    slice each, let;
    size_t n;
    TRY(mongo_arg_document(q, "let", &let));
    TRY(mongo_list_begin(q, "ops", &list, &n));
    if (n == 0 || n > OPERATIONS_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 16, "Write batch sizes must be between 1 and %d. Got %zu operations.", OPERATIONS_MAX, n);
    }
    if (!arena_fits(q->frame->arena, n * (sizeof *b->list + sizeof *b->statements))) {
        return budget_error(q->op.budget);
    }
    b->list = arena_array(q->frame->arena, operation, n);
    b->statements = arena_array(q->frame->arena, mongo_statement, n);
    while (mongo_list_next(&list, &each)) {
        TRY(read_operation(q, b, each, let, &b->list[b->n], &b->statements[b->n]));
        b->n++;
    }
    return OK;
}

/* ---- the reply ---- */

static err answer(mongo_request *q) {
    bulk *b = bulk_of(q);
    mql_builder *reply = mongo_answer(q);
    mongo_open_document(reply, "cursor");
    mongo_add_long(reply, "id", 0);
    mongo_open_array(reply, "firstBatch");
    buf_add_slice(frames_out(q->frame), buf_view(&b->results));
    mql_close(reply);
    mongo_add_text(reply, "ns", SLICE_LIT("admin.$cmd.bulkWrite"));
    mql_close(reply);
    mongo_add_int(reply, "nErrors", (int32_t)b->errors);
    mongo_add_int(reply, "nInserted", (int32_t)b->inserted);
    mongo_add_int(reply, "nMatched", (int32_t)b->matched);
    mongo_add_int(reply, "nModified", (int32_t)b->modified);
    mongo_add_int(reply, "nUpserted", (int32_t)b->upserted);
    mongo_add_int(reply, "nDeleted", (int32_t)b->deleted);
    mongo_end(q);
    return OK;
}

static void clean(mongo_request *q) {
    buf_free(&bulk_of(q)->results);
}

static mql_builder begin_result(bulk *b, size_t index, bool good) {
    char key[24];
    buf_add_byte(&b->results, BSON_TYPE_DOCUMENT);
    buf_add(&b->results, key, (size_t)snprintf(key, sizeof key, "%zu", b->results_n++) + 1);
    mql_builder one = mql_build(&b->results);
    mongo_add_double(&one, "ok", good);
    mongo_add_int(&one, "idx", (int32_t)index);
    return one;
}

/* From an element of writeErrors: {index, code, …}. */
static void add_error(bulk *b, size_t index, slice error) {
    doc_walk w;
    doc_element e;
    mql_builder one = begin_result(b, index, false);
    for (doc_walk_init(&w, error); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("index"))) {
            mql_add_element(&one, &e);
        }
    }
    mongo_add_int(&one, "n", 0);
    mql_built(&one);
    b->errors++;
}

static void add_success(bulk *b, size_t index) {
    const operation *o = &b->list[index];
    const mongo_statement *s = &b->statements[index];
    uint64_t n = o->document.n ? 1 : s->matched + s->upserted;
    b->inserted += o->document.n > 0;
    *(o->deletes ? &b->deleted : &b->matched) += s->matched;
    b->modified += o->deletes ? 0 : s->modified;
    b->upserted += s->upserted;
    if (b->errors_only) {
        return;
    }
    mql_builder one = begin_result(b, index, true);
    mongo_add_int(&one, "n", (int32_t)n);
    if (!o->document.n && !o->deletes) {
        mongo_add_int(&one, "nModified", (int32_t)s->modified);
    }
    if (s->upserted) {
        mongo_open_document(&one, "upserted");
        mql_add(&one, SLICE_LIT("_id"), s->upserted_id);
        mql_close(&one);
    }
    mql_built(&one);
}

/* The errors of a run by operation; empty: it has none. */
static slice *errors_of(mongo_request *q, const bulk *b, const mongo_write_errors *errors) {
    slice *list = arena_array(q->frame->arena, slice, b->end - b->at), rest = buf_view(&errors->out), error;
    for (size_t i = 0; i < errors->n; i++) { /* elements of an array: type, key, document */
        const char *zero = rest.n > 1 ? memchr(rest.p + 1, 0, rest.n - 1) : NULL;
        int64_t index = -1;
        rest = zero ? slice_skip(rest, (size_t)(zero - rest.p) + 1) : SLICE_EMPTY;
        if (wire_next(&rest, &error) && mql_as_integer(mongo_member(error, "index"), &index)) {
            list[(size_t)index - b->at] = error;
        }
    }
    return list;
}

static err add_results(mongo_request *q, mongo_write_errors *errors) {
    bulk *b = bulk_of(q);
    const slice *failed = errors_of(q, b, errors);
    for (size_t i = b->at; i < b->end && !(b->ordered && b->errors); i++) {
        slice error = failed[i - b->at];
        error.n ? add_error(b, i, error) : add_success(b, i);
    }
    buf_free(&errors->out);
    return buf_ok(&b->results) ? OK
                               : op_fail_as(&q->op, E_TOO_LARGE, CODE_DOCUMENT_TOO_LARGE, "The results are too large: use errorsOnly.");
}

/* ---- runs ---- */

static void next_run(mongo_request *q);

static err run_ended(mongo_request *q, mongo_write_errors *errors) {
    bulk *b = bulk_of(q);
    TRY(add_results(q, errors));
    b->at = b->end;
    next_run(q);
    return OK;
}

static err inserted(mongo_request *q) {
    return run_ended(q, mongo_insert_errors(q));
}

static err written(mongo_request *q) {
    return run_ended(q, &((mongo_writes *)q->state)->errors);
}

static err start_inserts(mongo_request *q) {
    bulk *b = bulk_of(q);
    size_t bytes = 0;
    for (size_t i = b->at; i < b->end; i++) {
        bytes += b->list[i].document.n;
    }
    if (!arena_fits(q->frame->arena, bytes)) {
        return budget_error(q->op.budget);
    }
    char *documents = arena_alloc(q->frame->arena, bytes), *to = documents;
    for (size_t i = b->at; i < b->end; i++) {
        memcpy(to, b->list[i].document.p, b->list[i].document.n);
        to += b->list[i].document.n;
    }
    return mongo_insert_run(q, slice_of(documents, bytes), b->at, b->ordered, inserted);
}

static err start_statements(mongo_request *q) {
    bulk *b = bulk_of(q);
    mongo_writes *w = arena_new(q->frame->arena, mongo_writes);
    *w = (mongo_writes){.list = &b->statements[b->at], .n = b->end - b->at, .base = b->at, .ordered = b->ordered, .done = written};
    mongo_writes_start(q, w);
    return OK;
}

static err start_run(mongo_request *q) {
    bulk *b = bulk_of(q);
    return b->list[b->at].document.n ? start_inserts(q) : start_statements(q);
}

static bool makes_documents(const bulk *b) {
    bool any = false;
    for (size_t i = b->at; i < b->end && !any; i++) {
        any = b->list[i].document.n || b->statements[i].upsert;
    }
    return any;
}

static void find_run(bulk *b) {
    const operation *first = &b->list[b->at];
    for (b->end = b->at; b->end < b->n; b->end++) {
        const operation *o = &b->list[b->end];
        if (o->ns != first->ns || (o->document.n > 0) != (first->document.n > 0)) {
            break;
        }
    }
}

/* Finds the collection of the next run; q->container is NULL if there is none. */
static err enter_run(mongo_request *q) {
    bulk *b = bulk_of(q);
    find_run(b);
    if (q->container) {
        container_give(q->container);
        q->container = NULL;
    }
    mongo_split_namespace(b->names[b->list[b->at].ns], &q->database, &q->collection);
    return mongo_need_writable(q);
}

/* Runs that change nothing, since there is no collection, are passed in a loop. */
static err begin_run(mongo_request *q) {
    bulk *b = bulk_of(q);
    TRY(enter_run(q));
    while (!q->container && !makes_documents(b)) {
        TRY(add_results(q, &(mongo_write_errors){0}));
        b->at = b->end;
        if (b->at == b->n) {
            return answer(q);
        }
        TRY(enter_run(q));
    }
    if (q->container) {
        return start_run(q);
    }
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .may_exist = true, .then = start_run};
    mongo_create_collection(q, c);
    return OK;
}

static void next_run(mongo_request *q) {
    const bulk *b = bulk_of(q);
    err code = b->at == b->n || (b->ordered && b->errors) ? answer(q) : begin_run(q);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

err mongo_bulk_write(mongo_request *q) {
    bulk *b = q->out = arena_new(q->frame->arena, bulk);
    *b = (bulk){.ordered = true, .results = buf_init(RESULTS_BYTES_MAX)};
    q->clean = clean;
    TRY(mongo_arg_bool(q, "ordered", &b->ordered));
    TRY(mongo_arg_bool(q, "errorsOnly", &b->errors_only));
    TRY(read_names(q, b));
    TRY(read_operations(q, b));
    next_run(q);
    return OK;
}
