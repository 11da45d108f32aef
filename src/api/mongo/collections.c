#include "api/mongo/collections.h"

#include "account/rid.h"
#include "api/mongo/change_wide.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/views.h"
#include "doc/json.h"
#include "item/range_info.h"
#include "mql/match_tree.h"
#include "throughput/charge.h"

slice mongo_json(arena *a, const char *json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    slice document = json_to_bson(slice_str(json), NULL, &bson, &root, NULL) == OK ? arena_copy(a, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&bson);
    return document;
}

static void answer_or_fail(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
    }
}

/* ---- databases ---- */

static err database_made(mongo_request *q) {
    database_creation *create = (database_creation *)q->change;
    err code = q->change->commit.code;
    if (create->database_out) {
        database_give(create->database_out);
    }
    if (code != OK && code != E_CONFLICT) {
        return code;
    }
    q->op.detail_n = 0;
    return q->after(q);
}

void mongo_with_database(mongo_request *q, throughput_setting throughput, mongo_handler then) {
    database *d;
    if (account_database(q->front->core.account, q->database, false, &d) == OK) {
        database_give(d);
        answer_or_fail(q, then(q));
        return;
    }
    database_creation *create = mongo_new_change(q, database_creation);
    q->after = then;
    q->op.detail_n = 0;
    create->id = q->database;
    create->throughput = throughput;
    mongo_await_change(q, database_made);
    account_create_database(create);
}

/* ---- making a collection ---- */

static err exists(mongo_request *q) {
    return op_fail_as(&q->op, E_CONFLICT, CODE_NAMESPACE_EXISTS, "Collection %.*s.%.*s already exists.", slice_shown(q->database),
                      q->database.p, slice_shown(q->creation->collection), q->creation->collection.p);
}

static err make_collection(mongo_request *q);

static err collection_made(mongo_request *q) {
    container_creation *create = (container_creation *)q->change;
    mongo_creation *c = q->creation;
    err code = q->change->commit.code;
    q->container = create->container_out;
    if (code == E_RETRY_WITH) { /* the first wide change stream of its database or of the deployment came between */
        q->op.detail_n = 0;
        return make_collection(q);
    }
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (code == E_CONFLICT && c->may_exist) {
        q->op.detail_n = 0;
        q->collection = c->collection;
        TRY(mongo_need_writable(q));
        return q->container ? c->then(q) : E_RETRY_WITH; /* it was dropped again */
    }
    if (code == E_CONFLICT) {
        return exists(q);
    }
    if (code == E_PRECONDITION) {
        return op_fail_as(&q->op, code, CODE_INVALID_OPTIONS,
                          "Only an empty collection can be sharded: its documents would have to be moved to other partitions.");
    }
    TRY(code);
    c->made = true;
    return c->then(q);
}

static err make_collection(mongo_request *q) {
    mongo_creation *c = q->creation;
    uint8_t uuid[16];
    container_creation *create = mongo_new_change(q, container_creation);
    mongo_make_uuid(q, uuid);
    c->memo.uuid = arena_copy(q->frame->arena, slice_of(uuid, sizeof uuid));
    c->memo.marks_arrays = true;
    if (!c->memo.indexes.n) {
        c->memo.indexes = mongo_memo_of(&(container){0}).indexes;
    }
    if (mql_is_missing(mongo_member(c->memo.options, "viewOn"))) {
        create->as_of = account_lsn(q->front->core.account);
        c->memo.log_minutes = mongo_wide_log_minutes(q->front, q->database);
    }
    TRY(mongo_settings_of(&q->op, c->collection, &c->memo, &create->settings));
    create->database.text = q->database;
    create->rows = mongo_json(q->frame->arena, mongo_rows_json);
    create->api = MONGO_API;
    create->memo = mongo_memo_write(q->frame->arena, &c->memo);
    create->throughput = c->throughput;
    create->replaces = c->replaces;
    mongo_await_change(q, collection_made);
    account_create_container(create);
    return OK;
}

void mongo_create_collection(mongo_request *q, mongo_creation *c) {
    q->creation = c;
    mongo_with_database(q, (throughput_setting){0}, make_collection);
}

err mongo_check_shard_key(op *o, slice key) {
    doc_walk w;
    doc_element e;
    bool good = doc_walk_init(&w, key) && doc_walk_next(&w, &e) && e.key.n && e.key.p[0] != '$' && !memchr(e.key.p, 0, e.key.n);
    return good && !doc_walk_next(&w, &e) ? OK
                                          : op_fail_as(o, E_BAD_REQUEST, CODE_BAD_VALUE, "A shard key has one field: {field: \"hashed\"}.");
}

/* ---- changing a collection ---- */

static err collection_changed(mongo_request *q) {
    container_replacement *replace = (container_replacement *)q->change;
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (code == OK) {
        container_give(q->container);
        q->container = replace->container_out;
    } else if (replace->container_out) {
        container_give(replace->container_out);
    }
    if (code == E_UNIQUE_KEY) {
        return op_fail_as(&q->op, code, CODE_DUPLICATE_KEY,
                          "E11000 duplicate key error collection: %.*s.%.*s: two documents have the same values; the index was not built",
                          slice_shown(q->database), q->database.p, slice_shown(q->container->id), q->container->id.p);
    }
    if (code == E_PRECONDITION && q->conflict) {
        q->op.detail_n = 0;
        return q->conflict(q);
    }
    if (code == E_PRECONDITION) {
        return op_fail_as(&q->op, code, CODE_CONFLICTING_OPERATION, "Another change of the collection came between; repeat the command.");
    }
    TRY(code);
    return q->after(q);
}

void mongo_change_collection(mongo_request *q, const mongo_memo *memo, mongo_handler then) {
    container_replacement *replace = mongo_new_change(q, container_replacement);
    slice *bytes = arena_new(q->frame->arena, slice);
    *bytes = mongo_memo_write(q->frame->arena, memo);
    err code = mongo_settings_of(&q->op, q->container->id, memo, &replace->settings);
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    q->after = then;
    replace->database.text = q->database;
    replace->container.text = q->container->id;
    replace->memo = bytes;
    replace->expected = q->container->version;
    replace->api = MONGO_API;
    mongo_await_change(q, collection_changed);
    account_replace_container(replace);
}

/* ---- create ---- */

static err created(mongo_request *q) {
    return mongo_ok(q);
}

/* Options that listCollections shows again. */
static slice options_of(mongo_request *q) {
    static const char *const names[] = {
        "viewOn", "pipeline", "validator", "validationLevel", "validationAction", "collation", "changeStreamPreAndPostImages"};
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mql_add(&b, slice_str(names[i]), mongo_arg(q, names[i]));
    }
    return mongo_built_copy(q->frame->arena, &b, &out);
}

static err refuse_options(mongo_request *q) {
    static const struct {
        const char *name, *instead;
    } refused[] = {
        {"capped", "a TTL index removes old documents, and a change stream follows new ones"},
        {"timeseries", "use a collection with an index on the time"},
        {"clusteredIndex", "documents are kept by their _id anyway"},
        {"encryptedFields", "encrypt on the client"},
        {"expireAfterSeconds", "create a TTL index"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mql_value v = mongo_arg(q, refused[i].name);
        if (!mql_is_nullish(v) && !(v.type == BSON_TYPE_BOOL && !mql_as_bool(v))) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "The option '%s' of create is not supported: %s.",
                              refused[i].name, refused[i].instead);
        }
    }
    return OK;
}

static bool is_one_of(mql_value v, const char *const *texts, size_t n) {
    bool found = mql_is_missing(v);
    for (size_t i = 0; i < n && !found; i++) {
        found = mql_is_text(v) && slice_eq(mql_as_text(v), slice_str(texts[i]));
    }
    return found;
}

/* A validator is a filter of one document by itself. */
static bool is_possible_validator(const mql_node *n, unsigned depth) {
    bool good = n->kind != MQL_TEXT && n->kind != MQL_NEAR;
    for (const mql_node *m = n->first; m && good; m = m->next) {
        good = depth < LIMIT_JSON_DEPTH && is_possible_validator(m, depth + 1);
    }
    return good;
}

/* `validator`, `validationLevel` and `validationAction` of create and collMod. */
static err check_validation(mongo_request *q) {
    static const char *const levels[] = {"off", "strict", "moderate"}, *const actions[] = {"error", "warn"};
    slice validator;
    mongo_scope scope;
    const mql_match *match;
    TRY(mongo_arg_document(q, "validator", &validator));
    if (!is_one_of(mongo_arg(q, "validationLevel"), levels, 3) || !is_one_of(mongo_arg(q, "validationAction"), actions, 2)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE,
                          "validationLevel is \"off\", \"strict\" or \"moderate\", and validationAction \"error\" or \"warn\".");
    }
    if (validator.n <= 5) {
        return OK;
    }
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, SLICE_EMPTY, q->now_ms, &scope));
    TRY(mql_match_parse(&scope.scope, validator, &match));
    return is_possible_validator(mql_match_root(match), 0)
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_FEATURE_NOT_ALLOWED, "$text and $near are not allowed in a validator.");
}

static err check_plain(mongo_request *q) {
    return mql_is_missing(mongo_arg(q, "pipeline"))
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "'pipeline' requires 'viewOn' to also be specified");
}

err mongo_create(mongo_request *q) {
    TRY(refuse_options(q));
    TRY(check_validation(q));
    TRY(mongo_find_collection(q));
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .then = created, .memo = {.options = options_of(q)}};
    if (q->container) {
        q->creation = c;
        return exists(q);
    }
    TRY(mql_is_missing(mongo_arg(q, "viewOn")) ? check_plain(q) : mongo_view_check(q, q->collection));
    mongo_create_collection(q, c);
    return OK;
}

/* ---- drop ---- */

static err dropped(mongo_request *q) {
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_DELETE);
    if (code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND) {
        return op_fail_as(&q->op, code, CODE_NAMESPACE_NOT_FOUND, "ns not found");
    }
    TRY(code);
    mongo_answer(q);
    if (!mongo_is_view(q->container)) {
        mongo_add_int(&q->reply, "nIndexesWas", (int32_t)mql_length(mql_array(mongo_memo_of(q->container).indexes)));
    }
    mongo_add_text(&q->reply, "ns", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_end(q);
    return OK;
}

err mongo_drop(mongo_request *q) {
    TRY(mongo_need_own(q));
    if (!q->container) { /* since MongoDB 7.0 this is not an error */
        return mongo_ok(q);
    }
    container_deletion *remove = mongo_new_change(q, container_deletion);
    remove->database.text = q->database;
    remove->container.text = q->collection;
    mongo_await_change(q, dropped);
    account_delete_container(remove);
    return OK;
}

static bool is_foreign(void *found, const container *c) {
    *(bool *)found = !slice_eq(c->api, MONGO_API);
    return !*(bool *)found;
}

static err database_dropped(mongo_request *q) {
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_DELETE);
    TRY(code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND ? OK : code);
    q->op.detail_n = 0;
    mongo_add_text(mongo_answer(q), "dropped", q->database);
    mongo_end(q);
    return OK;
}

err mongo_drop_database(mongo_request *q) {
    database *d;
    bool foreign = false;
    if (account_database(q->front->core.account, q->database, false, &d) != OK) {
        q->op.detail_n = 0;
        return mongo_ok(q);
    }
    account_each_container(q->front->core.account, d, 0, is_foreign, &foreign);
    database_give(d);
    if (foreign) {
        return op_fail_as(
            &q->op, E_FORBIDDEN, CODE_ILLEGAL_OPERATION,
            "The database has containers of other APIs, which dropDatabase would delete too: drop the collections one by one.");
    }
    database_deletion *remove = mongo_new_change(q, database_deletion);
    remove->database.text = q->database;
    mongo_await_change(q, database_dropped);
    account_delete_database(remove);
    return OK;
}

/* ---- rename ---- */

static err renamed(mongo_request *q) {
    container_renaming *renaming = (container_renaming *)q->change;
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (renaming->container_out) {
        container_give(renaming->container_out);
    }
    if (code == E_CONFLICT) {
        return op_fail_as(&q->op, code, CODE_NAMESPACE_EXISTS, "target namespace exists");
    }
    TRY(code);
    return mongo_ok(q);
}

err mongo_rename(mongo_request *q) {
    mql_value from = mongo_arg(q, "renameCollection"), to = mongo_arg(q, "to");
    slice database, target_database, target;
    bool replaces = false;
    if (!mql_is_text(from) || !mql_is_text(to) || !mongo_split_namespace(mql_as_text(from), &database, &q->collection) ||
        !mongo_split_namespace(mql_as_text(to), &target_database, &target)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE,
                          "renameCollection and to must be namespaces: \"database.collection\"");
    }
    TRY(mongo_arg_bool(q, "dropTarget", &replaces));
    TRY(mongo_check_collection(&q->op, target));
    if (!slice_eq(database, target_database)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_SUPPORTED, "A collection cannot be renamed into another database.");
    }
    q->database = database;
    TRY(mongo_need_collection(q));
    TRY(slice_eq(q->container->api, MONGO_API) ? OK : access_refuse(&q->op));
    container_renaming *renaming = mongo_new_change(q, container_renaming);
    renaming->database.text = database;
    renaming->container.text = q->collection;
    renaming->id = target;
    renaming->replaces = replaces;
    mongo_await_change(q, renamed);
    account_rename_container(renaming);
    return OK;
}

/* ---- collMod ---- */

static slice modified_options(mongo_request *q, slice before) {
    static const char *const names[] = {"validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages"};
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mql_value v = mongo_arg(q, names[i]);
        mql_add(&b, slice_str(names[i]), mql_is_missing(v) ? mongo_member(before, names[i]) : v);
    }
    mql_add(&b, SLICE_LIT("collation"), mongo_member(before, "collation"));
    return mongo_built_copy(q->frame->arena, &b, &out);
}

/* A view's pipeline and what it shows are replaced together. */
static err modify_view(mongo_request *q) {
    if (mql_is_missing(mongo_arg(q, "viewOn")) || mql_is_missing(mongo_arg(q, "pipeline"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "Must specify both 'viewOn' and 'pipeline' when modifying a view");
    }
    TRY(mongo_view_check(q, q->collection));
    mongo_memo memo = mongo_memo_of(q->container);
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("viewOn"), mongo_arg(q, "viewOn"));
    mql_add(&b, SLICE_LIT("pipeline"), mongo_arg(q, "pipeline"));
    mql_add(&b, SLICE_LIT("collation"), mongo_member(memo.options, "collation"));
    memo.options = mongo_built_copy(q->frame->arena, &b, &out);
    mongo_change_collection(q, &memo, mongo_ok);
    return OK;
}

/* Members of the command besides those of any command. */
static err check_modified(mongo_request *q) {
    static const char *const names[] = {"index",  "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages",
                                        "viewOn", "pipeline",  "comment",         "writeConcern",     "maxTimeMS",
                                        "lsid",   "txnNumber", "apiVersion",      "apiStrict",        "apiDeprecationErrors"};
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, q->message.body);
    for (doc_walk_next(&w, &e); doc_walk_next(&w, &e);) {
        bool known = e.key.n && e.key.p[0] == '$';
        for (size_t i = 0; i < sizeof names / sizeof *names && !known; i++) {
            known = slice_eq(e.key, slice_str(names[i]));
        }
        if (!known) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "collMod cannot change '%.*s'.", slice_shown(e.key), e.key.p);
        }
    }
    return OK;
}

err mongo_coll_mod(mongo_request *q) {
    TRY(mongo_need_collection(q));
    TRY(mongo_need_own(q));
    TRY(check_modified(q));
    if (mongo_is_view(q->container)) {
        return modify_view(q);
    }
    TRY(check_validation(q));
    if (!mql_is_missing(mongo_arg(q, "viewOn"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "'viewOn' is only supported when modifying a view");
    }
    mongo_memo memo = mongo_memo_of(q->container);
    memo.options = modified_options(q, memo.options);
    if (!mql_is_missing(mongo_arg(q, "index"))) {
        return mongo_modify_index(q, &memo);
    }
    mongo_change_collection(q, &memo, mongo_ok);
    return OK;
}

/* ---- shardCollection ---- */

static err answer_sharded(mongo_request *q) {
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "_t", SLICE_LIT("ShardCollectionResponse"));
    mongo_add_text(b, "collectionsharded", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_end(q);
    return OK;
}

/* An empty collection is replaced by a sharded one: its indexes, options and throughput stay. */
static err shard_existing(mongo_request *q, mongo_creation *c) {
    mongo_memo before = mongo_memo_of(q->container);
    if (before.shard_key.n) {
        return slice_eq(before.shard_key, c->memo.shard_key)
                   ? answer_sharded(q)
                   : op_fail_as(&q->op, E_BAD_REQUEST, 23, "The collection is sharded already, by another key.");
    }
    c->memo.indexes = arena_copy(q->frame->arena, before.indexes);
    c->memo.options = before.options.n ? arena_copy(q->frame->arena, before.options) : SLICE_EMPTY;
    c->replaces = q->container->version;
    container_give(q->container);
    q->container = NULL;
    return make_collection(q);
}

err mongo_shard_collection(mongo_request *q) {
    mql_value name = mongo_arg(q, "shardCollection");
    slice key;
    if (!mql_is_text(name) || !mongo_split_namespace(mql_as_text(name), &q->database, &q->collection)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "shardCollection must be a namespace: \"database.collection\"");
    }
    TRY(mongo_check_database(&q->op, q->database));
    TRY(mongo_check_collection(&q->op, q->collection));
    TRY(mongo_arg_document(q, "key", &key));
    TRY(mongo_check_shard_key(&q->op, key));
    TRY(mongo_need_writable(q));
    mongo_creation *c = q->creation = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .memo = {.shard_key = key}, .then = answer_sharded};
    if (q->container) {
        return shard_existing(q, c);
    }
    mongo_create_collection(q, c);
    return OK;
}
