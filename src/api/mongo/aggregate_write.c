/* $out and $merge: writes what a pipeline has made.
 *
 * $out inserts into a new collection, which then takes the name of the target, with the target's indexes and options. $merge is one
 * statement for each document: an update of the document with the same values in the `on` fields, or an insert. With a pipeline as
 * whenMatched it is two: the update by that pipeline, and then the insert, which does nothing if the first has found a document. */
#include "api/mongo/aggregate_write.h"

#include "api/mongo/collections.h"
#include "api/mongo/writes.h"

typedef struct target_state {
    mongo_writes writes; /* first: q->state is both */
    mql_target target;
    slice documents; /* one after the other */
    slice temporary; /* $out: the new collection's name */
    err failed;      /* … and why it is dropped again */
    mongo_memo memo;
} target_state;

static err answer(mongo_request *q) {
    q->batch->cursor->ended = true;
    mongo_batch_answer(q, OK);
    return OK;
}

/* ---- $merge ---- */

static slice filter_on(mongo_request *q, const mql_target *t, slice document) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    for (size_t i = 0; i < t->on_n; i++) {
        mql_value v = mongo_member(document, arena_text(q->frame->arena, t->on[i]));
        mql_add(&b, t->on[i], mql_is_missing(v) ? mql_null() : v);
    }
    return mongo_built_copy(q->frame->arena, &b, &out);
}

/* {operator: {the document's members}, $setOnInsert: {_id}}; _id cannot be set in a document that exists. */
static slice update_by(mongo_request *q, const char *operator, slice document) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    doc_walk w;
    doc_element e;
    bool on_insert = strcmp(operator, "$setOnInsert") == 0, any = false;
    mongo_open_document(&b, operator);
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        if (on_insert || !slice_eq(e.key, SLICE_LIT("_id"))) {
            mql_add_element(&b, &e);
            any = true;
        }
    }
    mql_close(&b);
    mql_value id = mongo_member(document, "_id");
    if (!on_insert && !mql_is_missing(id)) {
        mongo_open_document(&b, "$setOnInsert");
        mql_add(&b, SLICE_LIT("_id"), id);
        mql_close(&b);
    }
    slice update = mongo_built_copy(q->frame->arena, &b, &out);
    return any || on_insert ? update : update_by(q, "$setOnInsert", document);
}

static void make_statement(mongo_request *q, const mql_target *t, slice document, mongo_statement *s) {
    bool keeps = t->when_matched == MQL_MATCHED_KEEP || t->when_matched == MQL_MATCHED_FAIL;
    *s = (mongo_statement){
        .filter = filter_on(q, t, document),
        .update = mql_document(t->when_matched == MQL_MATCHED_REPLACE ? document : update_by(q, keeps ? "$setOnInsert" : "$set", document)),
        .upsert = t->when_not_matched == MQL_NOT_MATCHED_INSERT,
    };
}

/* {name: {$literal: value}, …} for the variables of a pipeline: $$new, and those of `let`. Empty: an error. */
static err bind(mongo_request *q, const mql_target *t, slice document, slice *variables_out) {
    enum { LET_STEPS = 50000 };
    buf out = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    mql_builder b = mql_build(&out);
    mongo_scope scope = {.scope = mql_scope_of(&q->op, q->front->surface == MONGO_SERVICE), .now_ms = q->now_ms};
    doc_walk w;
    doc_element e;
    err code = OK;
    mongo_open_document(&b, "new");
    mongo_add_document(&b, "$literal", document);
    mql_close(&b);
    for (doc_walk_init(&w, t->let); code == OK && t->let.n && doc_walk_next(&w, &e);) {
        const mql_expression *x;
        mql_value v = mql_missing();
        code = mql_expression_parse(&scope.scope, mql_of(&e), &x);
        mql_run r = mongo_run_of(&q->op, q->frame->arena, &scope, LET_STEPS);
        r.root = mql_document(document);
        code = code != OK ? code : mql_evaluate(&r, x, &v);
        mql_open(&b, e.key, BSON_TYPE_DOCUMENT);
        mql_add(&b, SLICE_LIT("$literal"), mql_is_missing(v) ? mql_null() : v);
        mql_close(&b);
    }
    *variables_out = mongo_built_copy(q->frame->arena, &b, &out);
    return code != OK ? code : variables_out->n ? OK : budget_error(q->op.budget);
}

static size_t statements_each(const mql_target *t) {
    return t->when_matched == MQL_MATCHED_PIPELINE && t->when_not_matched == MQL_NOT_MATCHED_INSERT ? 2 : 1;
}

/* The statements of one document. */
static err add_statements(mongo_request *q, target_state *s, slice document) {
    const mql_target *t = &s->target;
    mongo_statement *one = &s->writes.list[s->writes.n];
    s->writes.n += statements_each(t);
    if (t->when_matched == MQL_MATCHED_PIPELINE) {
        *one = (mongo_statement){.filter = filter_on(q, t, document), .update = mql_array(t->pipeline)};
        TRY(bind(q, t, document, &one->variables));
        if (statements_each(t) > 1) {
            one[1] =
                (mongo_statement){.filter = one->filter, .update = mql_document(update_by(q, "$setOnInsert", document)), .upsert = true};
        }
    } else {
        make_statement(q, t, document, one);
    }
    return one->filter.n && one->update.bytes.n ? OK : budget_error(q->op.budget);
}

static err merged(mongo_request *q) {
    target_state *s = q->state;
    const mql_target *t = &s->target;
    if (s->writes.errors.n) {
        return mongo_first_error(q, &s->writes.errors);
    }
    buf_free(&s->writes.errors.out);
    for (size_t i = 0; i < s->writes.n; i += statements_each(t)) {
        const mongo_statement *one = &s->writes.list[i];
        if (t->when_matched == MQL_MATCHED_FAIL && one->matched) {
            return op_fail_as(&q->op, E_CONFLICT, CODE_DUPLICATE_KEY, "$merge found a document, and whenMatched is \"fail\"");
        }
        if (t->when_not_matched == MQL_NOT_MATCHED_FAIL && !one->matched) {
            return op_fail_as(&q->op, E_BAD_REQUEST, 13113, "$merge could not find a matching document in the target collection");
        }
    }
    return answer(q);
}

static err merge(mongo_request *q) {
    target_state *s = q->state;
    slice rest = s->documents, document;
    size_t n = 0;
    for (; wire_next(&rest, &document); n += statements_each(&s->target)) {
    }
    if (!arena_fits(q->frame->arena, n * sizeof(mongo_statement))) {
        return budget_error(q->op.budget);
    }
    s->writes.list = arena_array(q->frame->arena, mongo_statement, n + 1);
    for (rest = s->documents; wire_next(&rest, &document);) {
        TRY(add_statements(q, s, document));
    }
    s->writes.ordered = true;
    s->writes.done = merged;
    mongo_writes_start(q, &s->writes);
    return OK;
}

/* ---- $out ---- */

static err dropped(mongo_request *q) {
    return ((target_state *)q->out)->failed; /* op has its message */
}

static err drop_temporary(mongo_request *q, err failed) {
    target_state *s = q->out;
    container_deletion *remove = mongo_new_change(q, container_deletion);
    s->failed = failed;
    remove->database.text = q->database;
    remove->container.text = s->temporary;
    mongo_await_change(q, dropped);
    account_delete_container(remove);
    return OK;
}

static err renamed(mongo_request *q) {
    container_renaming *renaming = (container_renaming *)q->change;
    err code = q->change->commit.code;
    if (renaming->container_out) {
        container_give(renaming->container_out);
    }
    return code == OK ? answer(q) : drop_temporary(q, code);
}

static err inserted(mongo_request *q) {
    target_state *s = q->out;
    if (s->documents.n && mongo_insert_errors(q)->n) {
        return drop_temporary(q, mongo_first_error(q, mongo_insert_errors(q)));
    }
    container_renaming *renaming = mongo_new_change(q, container_renaming);
    renaming->database.text = q->database;
    renaming->container.text = s->temporary;
    renaming->id = s->target.collection;
    renaming->replaces = true;
    mongo_await_change(q, renamed);
    account_rename_container(renaming);
    return OK;
}

static err fill(mongo_request *q) {
    target_state *s = q->state;
    q->out = s;
    return s->documents.n ? mongo_insert_run(q, s->documents, 0, true, inserted) : inserted(q);
}

static err replace(mongo_request *q) {
    target_state *s = q->state;
    uint8_t id[12];
    buf name = buf_init(BUF_NO_LIMIT);
    mongo_make_object_id(q, id);
    buf_add_lit(&name, "tmp.agg_out.");
    buf_add_hex(&name, slice_of(id, sizeof id));
    s->temporary = arena_copy(q->frame->arena, buf_view(&name));
    buf_free(&name);
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = s->temporary, .memo = s->memo, .then = fill};
    mongo_create_collection(q, c);
    return OK;
}

/* ---- both ---- */

static err begin(mongo_request *q) {
    target_state *s = q->state;
    return s->target.kind == MQL_TARGET_MERGE ? merge(q) : replace(q);
}

static void keep_memo(mongo_request *q, mongo_memo *memo) {
    arena *a = q->frame->arena;
    mongo_memo before = mongo_memo_of(q->container);
    *memo = (mongo_memo){.shard_key = before.shard_key.n ? arena_copy(a, before.shard_key) : SLICE_EMPTY,
                         .indexes = arena_copy(a, before.indexes),
                         .options = before.options.n ? arena_copy(a, before.options) : SLICE_EMPTY};
}

err mongo_target_check(mongo_request *q, op *o, const mql_target *t) {
    if (t->kind != MQL_TARGET_NONE && (q->conn->reach.verbs & ACCESS_WRITE) != ACCESS_WRITE) {
        return op_fail_as(o, E_FORBIDDEN, CODE_UNAUTHORIZED, "not authorized to write by $out or $merge");
    }
    if (t->kind != MQL_TARGET_NONE && q->transaction) {
        return op_fail_as(o, E_BAD_REQUEST, CODE_NOT_IN_TRANSACTION, "$out and $merge cannot be used in a transaction");
    }
    if (t->kind != MQL_TARGET_NONE && t->database.n && !slice_eq(t->database, q->database)) {
        return op_fail_as(o, E_BAD_REQUEST, CODE_COMMAND_NOT_SUPPORTED, "$out and $merge write to the database of the pipeline only.");
    }
    return OK;
}

err mongo_target_write(mongo_request *q, const mql_target *t, slice documents) {
    target_state *s = q->state = arena_new(q->frame->arena, target_state);
    s->target = *t;
    s->documents = documents;
    q->collection = t->collection;
    if (q->container) {
        container_give(q->container);
        q->container = NULL;
    }
    TRY(mongo_check_collection(&q->op, q->collection));
    TRY(mongo_need_writable(q));
    bool there = q->container != NULL;
    if (there && t->kind == MQL_TARGET_OUT) {
        keep_memo(q, &s->memo);
        container_give(q->container);
        q->container = NULL;
    }
    if (there || t->kind == MQL_TARGET_OUT) {
        return begin(q);
    }
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .may_exist = true, .then = begin};
    mongo_create_collection(q, c);
    return OK;
}
