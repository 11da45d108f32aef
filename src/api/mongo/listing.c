/* listCollections, listDatabases, collStats, dbStats, currentOp, top. */
#include <unistd.h>

#include "api/mongo/batch.h"
#include "api/mongo/memo.h"
#include "api/mongo/views.h"
#include "api/mongo/work.h"
#include "item/range_info.h"

enum { LIST_BYTES_MAX = 64 << 20, OPERATIONS_TIMES_BYTES = 16 << 20 };

/* A list is made and filtered as one piece of work; nothing is evaluated while the account's tables are visited. */
typedef struct listing {
    mongo_request *q;
    buf out; /* documents, one after the other */
    bool names_only;
    slice filter; /* empty: all */
} listing;

static void free_listing(mongo_request *q) {
    buf_free(&((listing *)q->state)->out);
}

static err begin(mongo_request *q, listing **listing_out) {
    listing *l = *listing_out = q->state = arena_new(q->frame->arena, listing);
    *l = (listing){.q = q, .out = buf_init(LIST_BYTES_MAX)};
    q->clean = free_listing;
    TRY(mongo_arg_bool(q, "nameOnly", &l->names_only));
    TRY(mongo_arg_document(q, "filter", &l->filter));
    l->filter = l->filter.n > 5 ? l->filter : SLICE_EMPTY;
    return OK;
}

static err keep_matching(listing *l, const mongo_scope *scope, const mql_match *match, buf *kept) {
    mongo_request *q = l->q;
    slice rest = buf_view(&l->out), document;
    arena row = arena_init_counted(q->op.budget);
    mql_run r = mongo_run_of(&q->op, &row, scope, q->steps);
    err code = OK;
    while (code == OK && wire_next(&rest, &document)) {
        bool matches = false;
        r.root = mql_document(document);
        code = mql_matches(&r, match, &matches, NULL);
        buf_add_slice(kept, matches ? document : SLICE_EMPTY);
        code = code != OK ? code : op_check(&q->op);
    }
    arena_free(&row);
    return code;
}

/* Removes the documents that the filter does not want. */
static err filter_list(listing *l) {
    mongo_scope scope;
    const mql_match *match;
    if (!buf_ok(&l->out)) {
        return E_MEMORY;
    }
    if (!l->filter.n) {
        return OK;
    }
    TRY(mongo_scope_begin(&l->q->op, false, SLICE_EMPTY, l->q->now_ms, &scope));
    TRY(mql_match_parse(&scope.scope, l->filter, &match));
    buf kept = buf_init(LIST_BYTES_MAX);
    err code = keep_matching(l, &scope, match, &kept);
    buf_free(&l->out);
    l->out = kept;
    return code;
}

/* ---- collections ---- */

static void add_info(mql_builder *b, const mongo_memo *memo, bool view) {
    doc_walk w;
    doc_element first;
    mongo_open_document(b, "info");
    mongo_add_bool(b, "readOnly", view);
    if (memo->uuid.n && !view) {
        mongo_add_binary(b, "uuid", 4, memo->uuid);
    }
    mql_close(b);
    if (!view && doc_walk_init(&w, memo->indexes) && doc_walk_next(&w, &first)) {
        mongo_add_document(b, "idIndex", first.value);
    }
}

static bool add_collection(void *context, const container *c) {
    listing *l = context;
    mongo_memo memo = mongo_memo_of(c);
    mql_builder b = mql_build(&l->out);
    mongo_add_text(&b, "name", c->id);
    mongo_add_text(&b, "type", mongo_is_view(c) ? SLICE_LIT("view") : SLICE_LIT("collection"));
    if (!l->names_only) {
        mongo_open_document(&b, "options");
        doc_walk w;
        doc_element e;
        for (doc_walk_init(&w, memo.options); memo.options.n && doc_walk_next(&w, &e);) {
            mql_add_element(&b, &e);
        }
        mql_close(&b);
        add_info(&b, &memo, mongo_is_view(c));
    }
    mql_built(&b);
    return buf_ok(&l->out);
}

static err list_collections(mongo_request *q) {
    listing *l = q->state;
    database *d;
    buf_clear(&l->out);
    if (account_database(q->front->core.account, q->database, false, &d) == OK) {
        account_each_container(q->front->core.account, d, 0, add_collection, l);
        database_give(d);
    }
    return filter_list(l);
}

static void answer_collections(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    slice ns = mongo_namespace(q->frame->arena, q->database, SLICE_LIT("$cmd.listCollections"));
    mongo_answer_list(q, ns, &((listing *)q->state)->out);
}

err mongo_list_collections(mongo_request *q) {
    listing *l;
    TRY(begin(q, &l));
    mongo_work(q, l->filter.n > 0, list_collections, answer_collections);
    return OK;
}

/* ---- databases ---- */

static bool add_usage(void *context, const container *c) {
    range_usage one = range_usage_of_all(c), *sum = context;
    sum->items += one.items;
    sum->bytes += one.bytes;
    sum->index_bytes += one.index_bytes;
    return true;
}

typedef struct names {
    mongo_request *q;
    slice *list;
    size_t n, room;
} names;

/* The visitor may not call back into the account, so the names are collected first. */
static bool collect_name(void *context, const database *d) {
    names *all = context;
    arena *a = all->q->frame->arena;
    if (all->n == all->room) {
        size_t room = all->room ? all->room * 2 : 32;
        slice *larger = arena_array(a, slice, room);
        if (all->n) {
            memcpy(larger, all->list, all->n * sizeof *larger);
        }
        all->list = larger;
        all->room = room;
    }
    all->list[all->n++] = arena_copy(a, slice_str(d->id));
    return true;
}

static bool usage_of(mongo_request *q, slice name, range_usage *usage_out) {
    database *d;
    *usage_out = (range_usage){0};
    if (account_database(q->front->core.account, name, false, &d) != OK) {
        q->op.detail_n = 0;
        return false;
    }
    account_each_container(q->front->core.account, d, 0, add_usage, usage_out);
    database_give(d);
    return true;
}

static void add_database(listing *l, slice name) {
    range_usage usage;
    if (!usage_of(l->q, name, &usage)) {
        return;
    }
    mql_builder b = mql_build(&l->out);
    mongo_add_text(&b, "name", name);
    if (!l->names_only) {
        mongo_add_long(&b, "sizeOnDisk", (int64_t)(usage.bytes + usage.index_bytes));
        mongo_add_bool(&b, "empty", usage.items == 0);
    }
    mql_built(&b);
}

static err list_databases(mongo_request *q) {
    listing *l = q->state;
    names all = {.q = q};
    buf_clear(&l->out);
    account_each_database(q->front->core.account, 0, collect_name, &all);
    for (size_t i = 0; i < all.n; i++) {
        add_database(l, all.list[i]);
    }
    return filter_list(l);
}

/* The documents as an array; returns the sum of their members `sizeOnDisk`. */
static int64_t add_list(mql_builder *b, const char *name, const listing *l) {
    slice rest = buf_view(&l->out), document;
    int64_t total = 0;
    mongo_open_array(b, name);
    while (wire_next(&rest, &document)) {
        mql_value size = mongo_member(document, "sizeOnDisk");
        mql_add_next(b, mql_document(document));
        total += size.type == BSON_TYPE_INT64 ? doc_load_i64(size.bytes.p) : 0;
    }
    mql_close(b);
    return total;
}

static void answer_databases(mongo_request *q, err code) {
    const listing *l = q->state;
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    mql_builder *b = mongo_answer(q);
    int64_t total = add_list(b, "databases", l);
    if (!l->names_only) {
        mongo_add_long(b, "totalSize", total);
        mongo_add_long(b, "totalSizeMb", total >> 20);
    }
    mongo_end(q);
}

err mongo_list_databases(mongo_request *q) {
    listing *l;
    TRY(begin(q, &l));
    mongo_work(q, l->filter.n > 0, list_databases, answer_databases);
    return OK;
}

/* ---- statistics ---- */

static err read_scale(mongo_request *q, int64_t *scale) {
    *scale = 1;
    TRY(mongo_arg_count(q, "scale", scale));
    return *scale > 0
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, 51024, "BSON field 'scale' value must be >= 1, actual value '%lld'", (long long)*scale);
}

static void add_coll_stats(mongo_request *q, mql_builder *b, int64_t scale) {
    range_usage usage = q->container ? range_usage_of_all(q->container) : (range_usage){0};
    mongo_add_text(b, "ns", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_add_long(b, "size", (int64_t)usage.bytes / scale);
    mongo_add_long(b, "count", (int64_t)usage.items);
    mongo_add_long(b, "avgObjSize", usage.items ? (int64_t)(usage.bytes / usage.items) : 0);
    mongo_add_long(b, "storageSize", (int64_t)usage.bytes / scale);
    mongo_add_bool(b, "capped", false);
    mongo_add_int(b, "nindexes", q->container ? (int32_t)mql_length(mql_array(mongo_memo_of(q->container).indexes)) : 0);
    mongo_add_long(b, "totalIndexSize", (int64_t)usage.index_bytes / scale);
    mongo_add_long(b, "totalSize", (int64_t)(usage.bytes + usage.index_bytes) / scale);
    mongo_add_int(b, "scaleFactor", (int32_t)scale);
}

err mongo_coll_stats(mongo_request *q) {
    int64_t scale;
    TRY(read_scale(q, &scale));
    TRY(mongo_find_collection(q));
    add_coll_stats(q, mongo_answer(q), scale);
    mongo_end(q);
    return OK;
}

static void add_latency(mql_builder *b, const char *name, const mongo_times *t, unsigned uses) {
    uint64_t us = 0, count = 0;
    for (int use = 0; use < USES; use++) {
        us += uses & 1u << use ? t->us[use] : 0;
        count += uses & 1u << use ? t->count[use] : 0;
    }
    mongo_open_document(b, name);
    mongo_add_long(b, "latency", (int64_t)us);
    mongo_add_long(b, "ops", (int64_t)count);
    mql_close(b);
}

static void add_latencies(mongo_request *q, mql_builder *b) {
    enum { WRITES = 1 << USE_INSERT | 1 << USE_UPDATE | 1 << USE_REMOVE, READS = 1 << USE_QUERIES | 1 << USE_GETMORE };
    mongo_times times;
    mongo_operations_times(q->front->operations, q->container->space->container, &times);
    mongo_open_document(b, "latencyStats");
    add_latency(b, "reads", &times, READS);
    add_latency(b, "writes", &times, WRITES);
    add_latency(b, "commands", &times, 1 << USE_COMMANDS);
    mql_close(b);
}

/* The members of the stage {$collStats: {…}} that begins the pipeline. */
static err read_coll_stats(mongo_request *q, slice *argument_out, int64_t *scale_out) {
    static const char *const names[] = {"count", "storageStats", "latencyStats", "queryExecStats"};
    mql_value argument = mql_member(mql_element_at(mql_array(mongo_arg(q, "pipeline").bytes), 0), SLICE_LIT("$collStats"));
    doc_walk w;
    doc_element e;
    *argument_out = argument.type == BSON_TYPE_DOCUMENT ? argument.bytes : SLICE_EMPTY;
    for (doc_walk_init(&w, *argument_out); argument_out->n && doc_walk_next(&w, &e);) {
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            known = known || slice_eq(e.key, slice_str(names[i]));
        }
        if (!known || e.type != BSON_TYPE_DOCUMENT) {
            return op_fail_as(&q->op, E_BAD_REQUEST, known ? CODE_TYPE_MISMATCH : CODE_UNKNOWN_FIELD,
                              "'$collStats.%.*s' is unknown, or no document.", slice_shown(e.key), e.key.p);
        }
    }
    mql_value scale = mql_member(mongo_member(*argument_out, "storageStats"), SLICE_LIT("scale"));
    *scale_out = 1;
    return mql_is_missing(scale) || (mql_as_integer(scale, scale_out) && *scale_out > 0)
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "scale has to be > 0");
}

/* What $collStats gives: {ns, host, localTime}, and what it is asked for. */
err mongo_coll_stats_document(mongo_request *q, buf *out) {
    slice argument;
    int64_t scale;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    TRY(mongo_need_collection(q));
    TRY(read_coll_stats(q, &argument, &scale));
    mql_builder b = mql_build(out);
    mongo_add_text(&b, "ns", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_add_text(&b, "host", slice_str(host));
    mongo_add_date(&b, "localTime", q->now_ms);
    if (!mql_is_missing(mongo_member(argument, "latencyStats"))) {
        add_latencies(q, &b);
    }
    if (!mql_is_missing(mongo_member(argument, "storageStats"))) {
        mongo_open_document(&b, "storageStats");
        add_coll_stats(q, &b, scale);
        mql_close(&b);
    }
    if (!mql_is_missing(mongo_member(argument, "count"))) {
        mongo_add_long(&b, "count", (int64_t)range_usage_of_all(q->container).items);
    }
    mql_built(&b);
    return OK;
}

static bool count_one(void *context, const container *c) {
    int64_t *counts = context; /* of collections, indexes, views */
    bool view = mongo_is_view(c);
    counts[0] += !view;
    counts[1] += view ? 0 : (int64_t)mql_length(mql_array(mongo_memo_of(c).indexes));
    counts[2] += view;
    return true;
}

err mongo_db_stats(mongo_request *q) {
    int64_t scale, counts[3] = {0};
    range_usage usage;
    database *d;
    TRY(read_scale(q, &scale));
    usage_of(q, q->database, &usage);
    if (account_database(q->front->core.account, q->database, false, &d) == OK) {
        account_each_container(q->front->core.account, d, 0, count_one, counts);
        database_give(d);
    }
    q->op.detail_n = 0;
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "db", q->database);
    mongo_add_long(b, "collections", counts[0]);
    mongo_add_long(b, "views", counts[2]);
    mongo_add_long(b, "objects", (int64_t)usage.items);
    mongo_add_double(b, "avgObjSize", usage.items ? (double)usage.bytes / (double)usage.items : 0);
    mongo_add_double(b, "dataSize", (double)usage.bytes / (double)scale);
    mongo_add_double(b, "storageSize", (double)usage.bytes / (double)scale);
    mongo_add_long(b, "indexes", counts[1]);
    mongo_add_double(b, "indexSize", (double)usage.index_bytes / (double)scale);
    mongo_add_double(b, "totalSize", (double)(usage.bytes + usage.index_bytes) / (double)scale);
    mongo_add_long(b, "scaleFactor", scale);
    mongo_end(q);
    return OK;
}

err mongo_data_size(mongo_request *q) {
    mql_value name = mongo_arg(q, "dataSize");
    if (!mql_is_text(name) || !mongo_split_namespace(mql_as_text(name), &q->database, &q->collection)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "dataSize must be a namespace: \"database.collection\"");
    }
    TRY(mongo_find_collection(q));
    range_usage usage = q->container ? range_usage_of_all(q->container) : (range_usage){0};
    mql_builder *b = mongo_answer(q);
    mongo_add_bool(b, "estimate", false);
    mongo_add_long(b, "size", (int64_t)usage.bytes);
    mongo_add_long(b, "numObjects", (int64_t)usage.items);
    mongo_end(q);
    return OK;
}

/* ---- currentOp: commands and index builds in progress ---- */

static bool add_build(void *context, const container *c) {
    listing *l = context;
    uint32_t done = container_space_progress(c->space);
    if (done >= 100) {
        return true;
    }
    mql_builder b = mql_build(&l->out);
    mongo_add_text(&b, "op", SLICE_LIT("command"));
    mongo_add_text(&b, "ns", mongo_namespace(l->q->frame->arena, c->database_id, c->id));
    mongo_open_document(&b, "command");
    mongo_add_text(&b, "createIndexes", c->id);
    mongo_add_text(&b, "$db", c->database_id);
    mql_close(&b);
    slice percent = arena_printf(l->q->frame->arena, "Index Build (background) Index Build (background): %u %%", done);
    mongo_add_text(&b, "msg", percent);
    mongo_open_document(&b, "progress");
    mongo_add_int(&b, "done", (int32_t)done);
    mongo_add_int(&b, "total", 100);
    mql_close(&b);
    mql_built(&b);
    return buf_ok(&l->out);
}

/* Members of the command besides those of any command are conditions: {currentOp: 1, "command.createIndexes": "c"}. */
static slice conditions_of(mongo_request *q) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, q->message.body);
    for (doc_walk_next(&w, &e); doc_walk_next(&w, &e);) {
        bool known = e.key.n && (e.key.p[0] == '$' || slice_eq(e.key, SLICE_LIT("lsid")) || slice_eq(e.key, SLICE_LIT("comment")));
        if (!known && !slice_eq(e.key, SLICE_LIT("maxTimeMS"))) {
            mql_add_element(&b, &e);
        }
    }
    return mongo_built_copy(q->frame->arena, &b, &out);
}

/* Visits the containers of all databases. */
static void each_container(mongo_request *q, bool (*visit)(void *context, const container *c), void *context) {
    names all = {.q = q};
    database *d;
    account_each_database(q->front->core.account, 0, collect_name, &all);
    for (size_t i = 0; i < all.n; i++) {
        if (account_database(q->front->core.account, all.list[i], false, &d) == OK) {
            account_each_container(q->front->core.account, d, 0, visit, context);
            database_give(d);
        }
    }
    q->op.detail_n = 0;
}

static void list_current(listing *l) {
    mongo_operations_list(l->q->front, clock_monotonic_us(net_loop_clock(l->q->frame->client.loop)), &l->out);
    each_container(l->q, add_build, l);
}

void mongo_current_documents(mongo_request *q, buf *out) {
    listing l = {.q = q, .out = *out};
    list_current(&l);
    *out = l.out;
}

static err list_operations(mongo_request *q) {
    listing *l = q->state;
    buf_clear(&l->out);
    list_current(l);
    return filter_list(l);
}

static void answer_operations(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    add_list(mongo_answer(q), "inprog", q->state);
    mongo_end(q);
}

err mongo_current_op(mongo_request *q) {
    listing *l;
    TRY(begin(q, &l));
    l->filter = conditions_of(q);
    l->filter = l->filter.n > 5 ? l->filter : SLICE_EMPTY;
    mongo_work(q, l->filter.n > 0, list_operations, answer_operations);
    return OK;
}

/* ---- top: how often each collection was used since the start, and for how long ---- */

typedef struct topping {
    mongo_request *q;
    mql_builder b;
} topping;

static void add_use(mql_builder *b, const char *name, const mongo_times *t, unsigned uses) {
    uint64_t us = 0, count = 0;
    for (int use = 0; use < USES; use++) {
        us += uses & 1u << use ? t->us[use] : 0;
        count += uses & 1u << use ? t->count[use] : 0;
    }
    mongo_open_document(b, name);
    mongo_add_long(b, "time", (int64_t)us);
    mongo_add_long(b, "count", (int64_t)count);
    mql_close(b);
}

static bool add_times(void *context, const container *c) {
    enum { WRITES = 1 << USE_INSERT | 1 << USE_UPDATE | 1 << USE_REMOVE, ALL = (1 << USES) - 1 };
    static const char *const names[USES] = {"queries", "getmore", "insert", "update", "remove", "commands"};
    topping *top = context;
    mongo_times times;
    mongo_operations_times(top->q->front->operations, c->space->container, &times);
    mql_open(&top->b, mongo_namespace(top->q->frame->arena, c->database_id, c->id), BSON_TYPE_DOCUMENT);
    add_use(&top->b, "total", &times, ALL);
    add_use(&top->b, "readLock", &times, ALL & ~WRITES);
    add_use(&top->b, "writeLock", &times, WRITES);
    for (int use = 0; use < USES; use++) {
        add_use(&top->b, names[use], &times, 1u << use);
    }
    mql_close(&top->b);
    return buf_ok(&((listing *)top->q->state)->out);
}

static err list_times(mongo_request *q) {
    listing *l = q->state;
    buf_clear(&l->out);
    topping top = {q, mql_build(&l->out)};
    mongo_add_text(&top.b, "note", SLICE_LIT("all times in microseconds"));
    each_container(q, add_times, &top);
    mql_built(&top.b);
    return buf_ok(&l->out) && buf_ok(frames_out(q->frame)) ? OK : E_MEMORY;
}

static void answer_times(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    mongo_add_document(mongo_answer(q), "totals", buf_view(&((listing *)q->state)->out));
    mongo_end(q);
}

err mongo_top(mongo_request *q) {
    listing *l;
    TRY(begin(q, &l));
    l->out.max = OPERATIONS_TIMES_BYTES;
    mongo_work(q, true, list_times, answer_times);
    return OK;
}
