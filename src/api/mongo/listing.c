/* listCollections, listDatabases, collStats, dbStats. */
#include "api/mongo/batch.h"
#include "api/mongo/memo.h"
#include "item/range_info.h"

enum { FILTER_STEPS = 1000000 };

typedef struct listing {
    mongo_request *q;
    buf out; /* documents, one after the other */
    bool names_only;
    mongo_scope scope;
    const mql_match *match; /* NULL: all */
    err code;
} listing;

static err begin(mongo_request *q, listing *l) {
    slice filter;
    *l = (listing){.q = q, .out = buf_init(BUF_NO_LIMIT)};
    TRY(mongo_arg_bool(q, "nameOnly", &l->names_only));
    TRY(mongo_arg_document(q, "filter", &filter));
    TRY(mongo_scope_begin(&q->op, false, SLICE_EMPTY, q->now_ms, &l->scope));
    return filter.n > 5 ? mql_match_parse(&l->scope.scope, filter, &l->match) : OK;
}

/* Removes the document that was added last if the filter does not want it. */
static void filter_last(listing *l, size_t start) {
    bool matches = true;
    if (l->match && l->code == OK) {
        mql_run r = mongo_run_of(&l->q->op, l->q->frame->arena, &l->scope, FILTER_STEPS);
        r.root = mql_document(slice_of(l->out.p + start, l->out.n - start));
        l->code = mql_matches(&r, l->match, &matches, NULL);
    }
    l->out.n = matches ? l->out.n : start;
}

/* ---- collections ---- */

static void add_info(mql_builder *b, const mongo_memo *memo) {
    doc_walk w;
    doc_element first;
    mongo_open_document(b, "info");
    mongo_add_bool(b, "readOnly", false);
    if (memo->uuid.n) {
        mongo_add_binary(b, "uuid", 4, memo->uuid);
    }
    mql_close(b);
    if (doc_walk_init(&w, memo->indexes) && doc_walk_next(&w, &first)) {
        mongo_add_document(b, "idIndex", first.value);
    }
}

static bool add_collection(void *context, const container *c) {
    listing *l = context;
    size_t start = l->out.n;
    mongo_memo memo = mongo_memo_of(c);
    mql_builder b = mql_build(&l->out);
    mongo_add_text(&b, "name", c->id);
    mongo_add_text(&b, "type", SLICE_LIT("collection"));
    if (!l->names_only) {
        mongo_open_document(&b, "options");
        doc_walk w;
        doc_element e;
        for (doc_walk_init(&w, memo.options); memo.options.n && doc_walk_next(&w, &e);) {
            mql_add_element(&b, &e);
        }
        mql_close(&b);
        add_info(&b, &memo);
    }
    mql_built(&b);
    filter_last(l, start);
    return l->code == OK;
}

err mongo_list_collections(mongo_request *q) {
    listing l;
    database *d;
    TRY(begin(q, &l));
    if (account_database(q->front->core.account, q->database, false, &d) == OK) {
        account_each_container(q->front->core.account, d, 0, add_collection, &l);
        database_give(d);
    }
    q->op.detail_n = l.code == OK ? 0 : q->op.detail_n;
    if (l.code != OK) {
        buf_free(&l.out);
        return l.code;
    }
    mongo_answer_list(q, mongo_namespace(q->frame->arena, q->database, SLICE_LIT("$cmd.listCollections")), &l.out);
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

static int64_t add_database(listing *l, slice name) {
    range_usage usage;
    size_t start = l->out.n;
    if (!usage_of(l->q, name, &usage)) {
        return 0;
    }
    mql_builder b = mql_build(&l->out);
    mongo_add_text(&b, "name", name);
    if (!l->names_only) {
        mongo_add_long(&b, "sizeOnDisk", (int64_t)(usage.bytes + usage.index_bytes));
        mongo_add_bool(&b, "empty", usage.items == 0);
    }
    mql_built(&b);
    filter_last(l, start);
    return l->out.n > start ? (int64_t)(usage.bytes + usage.index_bytes) : 0;
}

err mongo_list_databases(mongo_request *q) {
    listing l;
    names all = {.q = q};
    int64_t total = 0;
    TRY(begin(q, &l));
    account_each_database(q->front->core.account, 0, collect_name, &all);
    for (size_t i = 0; i < all.n && l.code == OK; i++) {
        total += add_database(&l, all.list[i]);
    }
    if (l.code != OK) {
        buf_free(&l.out);
        return l.code;
    }
    mql_builder *b = mongo_answer(q);
    slice rest = buf_view(&l.out), document;
    mongo_open_array(b, "databases");
    while (wire_next(&rest, &document)) {
        mql_add_next(b, mql_document(document));
    }
    mql_close(b);
    if (!l.names_only) {
        mongo_add_long(b, "totalSize", total);
        mongo_add_long(b, "totalSizeMb", total >> 20);
    }
    buf_free(&l.out);
    mongo_end(q);
    return OK;
}

/* ---- statistics ---- */

static err read_scale(mongo_request *q, int64_t *scale) {
    *scale = 1;
    TRY(mongo_arg_count(q, "scale", scale));
    return *scale > 0 ? OK : op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "scale has to be > 0");
}

err mongo_coll_stats(mongo_request *q) {
    int64_t scale;
    TRY(read_scale(q, &scale));
    TRY(mongo_find_collection(q));
    range_usage usage = q->container ? range_usage_of_all(q->container) : (range_usage){0};
    mql_builder *b = mongo_answer(q);
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
    mongo_end(q);
    return OK;
}

static bool count_one(void *context, const container *c) {
    int64_t *counts = context;
    counts[0]++;
    counts[1] += (int64_t)mql_length(mql_array(mongo_memo_of(c).indexes));
    return true;
}

err mongo_db_stats(mongo_request *q) {
    int64_t scale, counts[2] = {0};
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
    mongo_add_long(b, "views", 0);
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

/* ---- currentOp: the index builds in progress ---- */

static bool add_build(void *context, const container *c) {
    listing *l = context;
    uint32_t done = container_space_progress(c->space);
    if (done >= 100) {
        return true;
    }
    size_t start = l->out.n;
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
    filter_last(l, start);
    return l->code == OK;
}

/* Members of the command besides its own are conditions: {currentOp: 1, "command.createIndexes": "c"}. */
static err read_conditions(mongo_request *q, listing *l) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, q->message.body);
    for (doc_walk_next(&w, &e); doc_walk_next(&w, &e);) {
        if (memchr(e.key.p, '.', e.key.n)) {
            mql_add_element(&b, &e);
        }
    }
    slice filter = mongo_built_copy(q->frame->arena, &b, &out);
    return filter.n > 5 ? mql_match_parse(&l->scope.scope, filter, &l->match) : OK;
}

err mongo_current_op(mongo_request *q) {
    listing l;
    names all = {.q = q};
    database *d;
    TRY(begin(q, &l));
    TRY(read_conditions(q, &l));
    account_each_database(q->front->core.account, 0, collect_name, &all);
    for (size_t i = 0; i < all.n; i++) {
        if (account_database(q->front->core.account, all.list[i], false, &d) == OK) {
            account_each_container(q->front->core.account, d, 0, add_build, &l);
            database_give(d);
        }
    }
    if (l.code != OK) {
        buf_free(&l.out);
        return l.code;
    }
    mql_builder *b = mongo_answer(q);
    slice rest = buf_view(&l.out), document;
    mongo_open_array(b, "inprog");
    while (wire_next(&rest, &document)) {
        mql_add_next(b, mql_document(document));
    }
    mql_close(b);
    buf_free(&l.out);
    mongo_end(q);
    return OK;
}
