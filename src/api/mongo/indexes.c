/* createIndexes, listIndexes, dropIndexes, reIndex. The memo keeps indexes as MongoDB lists them; the container's indexing policy, unique
 * keys and time to live follow from them (memo.h). */
#include "api/mongo/batch.h"
#include "api/mongo/collections.h"
#include "mql/collation.h"
#include "mql/match_tree.h"
#include "net/delay.h"

enum { WAIT_STEP_MS = 5, WAIT_MS_MAX = 30000, INDEXES_MAX = 64, SERVICE_COMPOUND_MAX = 8, COMPOUND_MAX = 32 };

/* ---- checking a specification ---- */

static err cannot(mongo_request *q, const char *why, slice name) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_CANNOT_CREATE_INDEX, "%s: %.*s", why, slice_shown(name), name.p ? name.p : "");
}

static bool is_kind(const doc_element *e, const char *kind) {
    return e->type == BSON_TYPE_UTF8 && slice_eq(doc_element_text(e), slice_str(kind));
}

static err check_key_part(mongo_request *q, const doc_element *e) {
    if (!e->key.n || e->key.p[0] == '.' || e->key.p[e->key.n - 1] == '.' || (e->key.p[0] == '$' && !slice_eq(e->key, SLICE_LIT("$**")))) {
        return cannot(q, "Index keys cannot be an empty field or begin with '$'", e->key);
    }
    mql_value v = mql_of(e);
    if (mql_is_number(v) && mql_as_double(v) != 0) {
        return OK;
    }
    bool extra = is_kind(e, "hashed") || is_kind(e, "text");
    if (is_kind(e, "2dsphere") || (extra && q->front->surface == MONGO_FULL)) {
        return OK;
    }
    return cannot(q, "Values in the index key pattern must be numbers other than 0, 'hashed', '2dsphere' or 'text'", e->key);
}

static err check_unique(mongo_request *q, const mongo_index *x) {
    slice shard = mongo_memo_of(q->container).shard_key;
    doc_walk w, s;
    doc_element first, key;
    if (!x->unique) {
        return OK;
    }
    bool starts = !shard.n || (doc_walk_init(&w, x->key) && doc_walk_next(&w, &first) && doc_walk_init(&s, shard) &&
                               doc_walk_next(&s, &key) && slice_eq(first.key, key.key));
    return starts ? OK : cannot(q, "A unique index must begin with the shard key", x->name);
}

/* What a partial index may ask of its documents. */
static bool is_partial_filter(const mql_node *n, unsigned depth) {
    bool good = n->kind == MQL_AND || n->kind == MQL_OR || n->kind == MQL_EQ || n->kind == MQL_LT || n->kind == MQL_LTE ||
                n->kind == MQL_GT || n->kind == MQL_GTE || n->kind == MQL_IN || n->kind == MQL_EXISTS || n->kind == MQL_TYPE;
    for (const mql_node *m = n->first; m && good; m = m->next) {
        good = depth < 4 && is_partial_filter(m, depth + 1);
    }
    return good;
}

static err check_partial(mongo_request *q, const mongo_index *x) {
    mql_scope scope = mql_scope_of(&q->op, false);
    const mql_match *match;
    if (mongo_member(x->spec, "partialFilterExpression").type != BSON_TYPE_DOCUMENT) {
        return mql_is_missing(mongo_member(x->spec, "partialFilterExpression"))
                   ? OK
                   : cannot(q, "partialFilterExpression must be an object", x->name);
    }
    if (x->sparse) {
        return cannot(q, "cannot mix \"partialFilterExpression\" and \"sparse\" options", x->name);
    }
    TRY(mql_match_parse(&scope, x->partial, &match));
    return is_partial_filter(mql_match_root(match), 0) ? OK : cannot(q, "Expression not supported in partial index", x->name);
}

/* The core removes documents by their age or by dates that they hold, not by both. */
static err check_other_expiries(mongo_request *q, const mongo_memo *memo, const mongo_index *x) {
    bool by_age = !mql_is_missing(mongo_member(x->key, "_ts"));
    doc_walk w;
    doc_element e;
    mongo_index other;
    for (doc_walk_init(&w, memo->indexes); doc_walk_next(&w, &e);) {
        bool expires = mongo_index_read(e.value, &other) && other.expires;
        if (expires && by_age != !mql_is_missing(mongo_member(other.key, "_ts"))) {
            return cannot(q, "A TTL index on _ts cannot be combined with TTL indexes on other fields", x->name);
        }
    }
    return OK;
}

static err check_expiry(mongo_request *q, const mongo_memo *memo, const mongo_index *x) {
    if (!x->expires) {
        return OK;
    }
    if (mql_length(mql_document(x->key)) != 1) {
        return cannot(q, "TTL indexes are single-field indexes, compound indexes do not support TTL", x->name);
    }
    if (!mql_is_missing(mongo_member(x->key, "_id"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 197, "The field 'expireAfterSeconds' is not valid for an _id index specification");
    }
    TRY(check_other_expiries(q, memo, x));
    return x->expire_s >= 0 && x->expire_s <= INT32_MAX
               ? OK
               : cannot(q, "TTL index 'expireAfterSeconds' option must be within an acceptable range", x->name);
}

/* 197 (InvalidIndexSpecificationOption): an option that MongoDB does not have. Those that say how an index is built or stored are kept and
 * listed, and have no effect. */
static err check_names(mongo_request *q, const mongo_index *x) {
    static const char *const names[] = {"v",
                                        "key",
                                        "name",
                                        "unique",
                                        "sparse",
                                        "hidden",
                                        "weights",
                                        "collation",
                                        "partialFilterExpression",
                                        "expireAfterSeconds",
                                        "wildcardProjection",
                                        "storageEngine",
                                        "dropDups",
                                        "default_language",
                                        "language_override",
                                        "textIndexVersion",
                                        "2dsphereIndexVersion"};
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, x->spec); doc_walk_next(&w, &e);) {
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names && !known; i++) {
            known = slice_eq(e.key, slice_str(names[i]));
        }
        if (!known) {
            return op_fail_as(&q->op, E_BAD_REQUEST, 197, "The field '%.*s' is not valid for an index specification.", slice_shown(e.key),
                              e.key.p);
        }
    }
    return OK;
}

/* A wildcard index has one field, all of whose values have keys: it can be neither unique nor a TTL index. Entries for fields that its
 * projection leaves out change no result. */
static err check_wildcard(mongo_request *q, const mongo_index *x) {
    mql_value projection = mongo_member(x->spec, "wildcardProjection");
    bool wildcard = !mql_is_missing(mongo_member(x->key, "$**"));
    if (!mql_is_missing(projection) && (!wildcard || projection.type != BSON_TYPE_DOCUMENT || projection.bytes.n <= 5)) {
        return cannot(q, "The field 'wildcardProjection' must be an object that is not empty, of an index on '$**'", x->name);
    }
    if (wildcard && (x->unique || x->expires || x->sparse)) {
        return cannot(q, "Wildcard indexes can be neither unique nor sparse nor TTL indexes", x->name);
    }
    return OK;
}

static err check_options(mongo_request *q, const mongo_memo *memo, const mongo_index *x) {
    mql_value collation = mongo_member(x->spec, "collation");
    const mql_collation *opened;
    if (collation.type == BSON_TYPE_DOCUMENT) {
        TRY(mql_collation_shared(&q->op, collation.bytes, &opened));
    }
    TRY(check_names(q, x));
    TRY(check_wildcard(q, x));
    TRY(check_partial(q, x));
    return check_expiry(q, memo, x);
}

/* One text index for a collection; places and texts cannot be unique, and a text index has no collation. */
static err check_special(mongo_request *q, const mongo_memo *memo, const mongo_index *x) {
    const mql_index *parsed;
    TRY(mql_index_parse(&q->op, x->spec, &parsed));
    slice place;
    mql_index_kind kind = mql_index_kind_of(parsed, &place);
    doc_walk w;
    doc_element e;
    mongo_index other;
    if (kind != MQL_INDEX_VALUES && (x->unique || x->expires)) {
        return cannot(q, "Indexes of places and texts can be neither unique nor TTL indexes", x->name);
    }
    if (kind == MQL_INDEX_WORDS && mongo_member(x->spec, "collation").type == BSON_TYPE_DOCUMENT) {
        return cannot(q, "A text index cannot have a collation", x->name);
    }
    for (doc_walk_init(&w, memo->indexes); kind == MQL_INDEX_WORDS && doc_walk_next(&w, &e);) {
        bool same = mongo_index_read(e.value, &other) && slice_eq(other.name, x->name);
        if (!same && mongo_index_is_text(&other)) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INDEX_OPTIONS_CONFLICT, "only one text index per collection allowed");
        }
    }
    return OK;
}

/* `memo` has the other indexes. */
static err check_index(mongo_request *q, const mongo_memo *memo, const mongo_index *x) {
    doc_walk w;
    doc_element e;
    size_t n = 0, max = q->front->surface == MONGO_SERVICE ? SERVICE_COMPOUND_MAX : COMPOUND_MAX;
    for (doc_walk_init(&w, x->key); doc_walk_next(&w, &e); n++) {
        TRY(check_key_part(q, &e));
    }
    if (n == 0 || n > max) {
        return cannot(q, "An index has at least one field, and not too many", x->name);
    }
    TRY(check_options(q, memo, x));
    TRY(check_special(q, memo, x));
    return check_unique(q, x);
}

/* ---- merging into the list ---- */

/* a_1_b_-1 */
static slice default_name(arena *a, slice key) {
    buf out = buf_init(BUF_NO_LIMIT);
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, key); doc_walk_next(&w, &e);) {
        buf_add(&out, "_", out.n > 0);
        buf_add_slice(&out, e.key);
        if (e.type == BSON_TYPE_UTF8) {
            buf_addf(&out, "_%.*s", (int)doc_element_text(&e).n, doc_element_text(&e).p);
        } else {
            buf_addf(&out, "_%lld", (long long)mql_as_double(mql_of(&e)));
        }
    }
    slice name = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return name;
}

/* ---- indexes of texts, as MongoDB lists them ----
 *
 * {title: "text", body: "text"} is listed as {_fts: "text", _ftsx: 1}, with the fields among the weights. */

static bool has_kind(slice key, const char *kind) {
    doc_walk w;
    doc_element e;
    bool found = false;
    for (doc_walk_init(&w, key); !found && doc_walk_next(&w, &e);) {
        found = is_kind(&e, kind);
    }
    return found;
}

static void add_text_key(mql_builder *b, slice key) {
    doc_walk w;
    doc_element e;
    bool added = false;
    mongo_open_document(b, "key");
    for (doc_walk_init(&w, key); doc_walk_next(&w, &e);) {
        if (slice_eq(e.key, SLICE_LIT("_ftsx"))) {
            continue;
        }
        if (!is_kind(&e, "text")) {
            mql_add_element(b, &e);
        } else if (!added) {
            added = true;
            mongo_add_text(b, "_fts", SLICE_LIT("text"));
            mongo_add_int(b, "_ftsx", 1);
        }
    }
    mql_close(b);
}

/* The fields of the key, and those that only have a weight. */
static void add_weights(mql_builder *b, slice key, mql_value given) {
    doc_walk w;
    doc_element e;
    mql_value one = {BSON_TYPE_INT32, SLICE_LIT("\1\0\0\0")};
    mongo_open_document(b, "weights");
    for (doc_walk_init(&w, key); doc_walk_next(&w, &e);) {
        if (is_kind(&e, "text") && !slice_eq(e.key, SLICE_LIT("_fts")) && mql_is_missing(mql_member(given, e.key))) {
            mql_add(b, e.key, one);
        }
    }
    for (doc_walk_init(&w, given.bytes); given.type == BSON_TYPE_DOCUMENT && doc_walk_next(&w, &e);) {
        mql_add_element(b, &e);
    }
    mql_close(b);
}

static void add_default(mql_builder *b, slice given, const char *name, slice text) {
    if (mql_is_missing(mongo_member(given, name))) {
        mongo_add_text(b, name, text);
    }
}

static void add_text_options(mql_builder *b, slice given, slice key) {
    add_weights(b, key, mongo_member(given, "weights"));
    add_default(b, given, "default_language", SLICE_LIT("english"));
    add_default(b, given, "language_override", SLICE_LIT("language"));
    mongo_add_int(b, "textIndexVersion", 3);
}

/* Members that the server writes itself, or that have no meaning any more. */
static bool is_written(slice name, bool text) {
    static const char *const written[] = {"v", "key", "name", "background", "ns", "2dsphereIndexVersion", "textIndexVersion"};
    bool found = text && slice_eq(name, SLICE_LIT("weights"));
    for (size_t i = 0; i < sizeof written / sizeof *written && !found; i++) {
        found = slice_eq(name, slice_str(written[i]));
    }
    return found;
}

/* The specification as listIndexes shows it: v, key, name, then the rest. */
static slice canonical(mongo_request *q, slice given) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_value key = mongo_member(given, "key"), name = mongo_member(given, "name");
    doc_walk w;
    doc_element e;
    mongo_add_int(&b, "v", 2);
    bool text = has_kind(key.bytes, "text");
    text ? add_text_key(&b, key.bytes) : mql_add(&b, SLICE_LIT("key"), key);
    mongo_add_text(&b, "name", mql_is_text(name) ? mql_as_text(name) : default_name(q->frame->arena, key.bytes));
    for (doc_walk_init(&w, given); doc_walk_next(&w, &e);) {
        bool off = e.type == BSON_TYPE_BOOL && !e.value.p[0];
        if (!is_written(e.key, text) && !off) {
            mql_add_element(&b, &e);
        }
    }
    if (text) {
        add_text_options(&b, given, key.bytes);
    } else if (has_kind(key.bytes, "2dsphere")) {
        mongo_add_int(&b, "2dsphereIndexVersion", 3);
    }
    return mongo_built_copy(q->frame->arena, &b, &out);
}

typedef struct indexing {
    mongo_memo memo;
    size_t before, after;
    bool made_collection;
    mongo_request *q; /* the request that waits for the index */
    mongo_handler built;
    net_delay delay;
    unsigned waited_ms;
} indexing;

static indexing *begin_change(mongo_request *q) {
    indexing *c = q->state = arena_new(q->frame->arena, indexing);
    c->memo = mongo_memo_of(q->container);
    c->memo.slots = mongo_memo_slots(q->frame->arena, &c->memo);
    c->before = mql_length(mql_array(c->memo.indexes));
    return c;
}

/* 85, 86: a different index with this name or key exists. *same_out: the same index exists. */
static err compare(mongo_request *q, const mongo_memo *memo, const mongo_index *x, bool *same_out) {
    doc_walk w;
    doc_element e;
    mongo_index old;
    *same_out = false;
    for (doc_walk_init(&w, memo->indexes); doc_walk_next(&w, &e);) {
        if (!mongo_index_read(e.value, &old)) {
            continue;
        }
        bool key = mql_compare(mql_document(old.key), mql_document(x->key)) == 0, name = slice_eq(old.name, x->name);
        bool is_id = slice_eq(old.name, SLICE_LIT("_id_"));
        if (key && (is_id || (name && old.unique == x->unique && old.expires == x->expires && old.expire_s == x->expire_s))) {
            *same_out = true;
        } else if (name) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INDEX_KEY_SPECS_CONFLICT,
                              "An existing index has the same name as the requested index: %.*s", slice_shown(x->name), x->name.p);
        } else if (key) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INDEX_OPTIONS_CONFLICT, "Index already exists with a different name: %.*s",
                              slice_shown(old.name), old.name.p);
        }
    }
    return OK;
}

/* ---- createIndexes ---- */

/* The core builds the index in the background; like MongoDB, the command answers when it can be used. A build that takes long goes on after
 * the answer. */
static void look_again(net_delay *delay) {
    indexing *c = (indexing *)((char *)delay - offsetof(indexing, delay));
    mongo_request *q = c->q;
    bool built = container_space_progress(q->container->space) >= 100;
    if (built || q->frame->client.left || c->waited_ms >= WAIT_MS_MAX || net_loop_is_stopping(q->frame->client.loop)) {
        err code = c->built(q);
        if (code != OK) {
            mongo_fail(q, code);
        }
        return;
    }
    c->waited_ms += WAIT_STEP_MS;
    net_delay_start(q->frame->client.loop, &c->delay, WAIT_STEP_MS, look_again);
}

static err await_built(mongo_request *q) {
    indexing *c = q->state;
    c->q = q;
    look_again(&c->delay);
    return OK;
}

static err answer_created(mongo_request *q) {
    indexing *c = q->state;
    mql_builder *b = mongo_answer(q);
    if (q->front->surface == MONGO_SERVICE) {
        mongo_add_text(b, "_t", SLICE_LIT("CreateIndexesResponse"));
    }
    mongo_add_bool(b, "createdCollectionAutomatically", c->made_collection);
    mongo_add_int(b, "numIndexesBefore", (int32_t)c->before);
    mongo_add_int(b, "numIndexesAfter", (int32_t)c->after);
    if (c->before == c->after) {
        mongo_add_text(b, "note", SLICE_LIT("all indexes already exist"));
    }
    mongo_end(q);
    return OK;
}

/* Adds one to the memo's list. */
static void append(mongo_request *q, indexing *c, slice spec) {
    doc_walk w;
    doc_element e;
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder list = mql_build(&out);
    for (doc_walk_init(&w, c->memo.indexes); doc_walk_next(&w, &e);) {
        mql_add_next(&list, mql_of(&e));
    }
    mql_add_next(&list, mql_document(spec));
    c->memo.indexes = mongo_built_copy(q->frame->arena, &list, &out);
    c->after++;
}

/* Adds the indexes of the command to those of the memo. */
static err read_indexes(mongo_request *q, indexing *c) {
    slice given;
    doc_walk w;
    doc_element e;
    TRY(mongo_arg_array(q, "indexes", &given));
    c->after = mql_length(mql_array(c->memo.indexes));
    for (doc_walk_init(&w, given); given.n && doc_walk_next(&w, &e);) {
        mongo_index x;
        bool same;
        slice spec =
            e.type == BSON_TYPE_DOCUMENT && mongo_member(e.value, "key").type == BSON_TYPE_DOCUMENT ? canonical(q, e.value) : SLICE_EMPTY;
        if (!spec.n || !mongo_index_read(spec, &x)) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "An index has a key and a name.");
        }
        TRY(check_index(q, &c->memo, &x));
        TRY(compare(q, &c->memo, &x, &same));
        if (!same && c->after == INDEXES_MAX) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_CANNOT_CREATE_INDEX, "A collection may have %d indexes at most.", INDEXES_MAX);
        }
        same ? (void)0 : append(q, c, spec);
    }
    return OK;
}

static err create_in(mongo_request *q) {
    indexing *c = begin_change(q);
    c->made_collection = q->creation && q->creation->made;
    TRY(read_indexes(q, c));
    if (c->before == c->after) {
        return answer_created(q);
    }
    c->built = answer_created;
    mongo_change_collection(q, &c->memo, await_built);
    return OK;
}

err mongo_replace_indexes(mongo_request *q, mongo_handler then) {
    indexing *c = begin_change(q);
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder list = mql_build(&out);
    mql_add_next(&list, mql_element_at(mql_array(c->memo.indexes), 0));
    c->memo.indexes = mongo_built_copy(q->frame->arena, &list, &out);
    TRY(read_indexes(q, c));
    c->built = then;
    mongo_change_collection(q, &c->memo, await_built);
    return OK;
}

err mongo_create_indexes(mongo_request *q) {
    slice given;
    TRY(mongo_arg_array(q, "indexes", &given));
    if (!given.n) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_MISSING_FIELD, "BSON field 'createIndexes.indexes' is missing but a required field");
    }
    if (mql_length(mql_array(given)) == 0) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "Must specify at least one index to create");
    }
    TRY(mongo_need_writable(q));
    if (q->container) {
        return create_in(q);
    }
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .may_exist = true, .then = create_in};
    mongo_create_collection(q, c);
    return OK;
}

/* ---- reIndex ----
 *
 * The indexes get another round, which the core builds beside the one that is in use. Unique indexes also have entries of their own, which
 * are checked with each write and stay. */

static err answer_rebuilt(mongo_request *q) {
    const indexing *c = q->state;
    if (container_space_progress(q->container->space) < 100) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_MAX_TIME_EXPIRED, "The indexes are still being built: see currentOp.");
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_int(b, "nIndexesWas", (int32_t)c->before);
    mongo_add_int(b, "nIndexes", (int32_t)c->before);
    mongo_add_array(b, "indexes", mongo_memo_of(q->container).indexes);
    mongo_end(q);
    return OK;
}

err mongo_re_index(mongo_request *q) {
    TRY(mongo_need_collection(q));
    TRY(mongo_need_writable(q));
    indexing *c = begin_change(q);
    c->memo.round = c->memo.round == INT32_MAX ? 1 : c->memo.round + 1;
    c->built = answer_rebuilt;
    mongo_change_collection(q, &c->memo, await_built);
    return OK;
}

/* ---- listIndexes ---- */

err mongo_list_indexes(mongo_request *q) {
    doc_walk w;
    doc_element e;
    buf out = buf_init(BUF_NO_LIMIT);
    TRY(mongo_need_collection(q));
    for (doc_walk_init(&w, mongo_memo_of(q->container).indexes); doc_walk_next(&w, &e);) {
        buf_add_slice(&out, e.value);
    }
    mongo_answer_list(q, mongo_namespace(q->frame->arena, q->database, q->collection), &out);
    return OK;
}

/* ---- dropIndexes ---- */

static err answer_dropped(mongo_request *q) {
    indexing *c = q->state;
    mql_builder *b = mongo_answer(q);
    if (q->front->surface == MONGO_SERVICE) {
        mongo_add_text(b, "_t", SLICE_LIT("DropIndexesResponse"));
    }
    mongo_add_int(b, "nIndexesWas", (int32_t)c->before);
    mongo_end(q);
    return OK;
}

static bool is_named(mql_value which, const mongo_index *x) {
    doc_walk w;
    doc_element e;
    if (mql_is_text(which)) {
        return slice_eq(mql_as_text(which), x->name) || slice_eq(mql_as_text(which), SLICE_LIT("*"));
    }
    if (which.type == BSON_TYPE_DOCUMENT) {
        return mql_compare(which, mql_document(x->key)) == 0;
    }
    for (doc_walk_init(&w, which.bytes); which.type == BSON_TYPE_ARRAY && doc_walk_next(&w, &e);) {
        if (e.type == BSON_TYPE_UTF8 && slice_eq(doc_element_text(&e), x->name)) {
            return true;
        }
    }
    return false;
}

static err keep_others(mongo_request *q, indexing *c, mql_value which, mql_builder *list) {
    doc_walk w;
    doc_element e;
    mongo_index x;
    bool all = mql_is_text(which) && slice_eq(mql_as_text(which), SLICE_LIT("*"));
    for (doc_walk_init(&w, c->memo.indexes); doc_walk_next(&w, &e);) {
        bool is_id = mongo_index_read(e.value, &x) && slice_eq(x.name, SLICE_LIT("_id_")), named = is_named(which, &x);
        if (named && is_id && !all) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "cannot drop _id index");
        }
        if (!named || is_id) {
            mql_add_next(list, mql_of(&e));
            c->after++;
        }
    }
    return all || c->after < c->before
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_INDEX_NOT_FOUND, "index not found with name or key pattern");
}

err mongo_drop_indexes(mongo_request *q) {
    mql_value which = mongo_arg(q, "index");
    TRY(mongo_need_collection(q));
    TRY(mongo_need_writable(q));
    indexing *c = begin_change(q);
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder list = mql_build(&out);
    err code = keep_others(q, c, which, &list);
    c->memo.indexes = mongo_built_copy(q->frame->arena, &list, &out);
    TRY(code);
    if (c->after == c->before) {
        return answer_dropped(q);
    }
    mongo_change_collection(q, &c->memo, answer_dropped);
    return OK;
}

/* ---- collMod's index ---- */

typedef struct modification {
    mql_value seconds, hidden; /* missing: unchanged */
    mql_value seconds_before, hidden_before;
    bool unique; /* makes it unique, if no two documents have the same values */
    bool found;
} modification;

static err answer_modified(mongo_request *q) {
    const modification *m = q->state;
    mql_builder *b = mongo_answer(q);
    if (!mql_is_missing(m->seconds)) {
        mql_add(b, SLICE_LIT("expireAfterSeconds_old"), m->seconds_before);
        mql_add(b, SLICE_LIT("expireAfterSeconds_new"), m->seconds);
    }
    if (!mql_is_missing(m->hidden)) {
        mongo_add_bool(b, "hidden_old", mql_truth(m->hidden_before));
        mongo_add_bool(b, "hidden_new", mql_truth(m->hidden));
    }
    if (m->unique) {
        mongo_add_bool(b, "unique_new", true);
    }
    mongo_end(q);
    return OK;
}

static void add_modified(mql_builder *b, slice spec, const modification *m) {
    doc_walk w;
    doc_element e;
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    for (doc_walk_init(&w, spec); doc_walk_next(&w, &e);) {
        bool seconds = slice_eq(e.key, SLICE_LIT("expireAfterSeconds")) && !mql_is_missing(m->seconds);
        bool hidden = slice_eq(e.key, SLICE_LIT("hidden")) && !mql_is_missing(m->hidden);
        bool unique = slice_eq(e.key, SLICE_LIT("unique")) && m->unique;
        if (!seconds && !hidden && !unique) {
            mql_add_element(b, &e);
        }
    }
    mql_add(b, SLICE_LIT("expireAfterSeconds"), m->seconds);
    if (m->unique) {
        mongo_add_bool(b, "unique", true);
    }
    if (mql_truth(m->hidden)) {
        mongo_add_bool(b, "hidden", true);
    }
    mql_close(b);
}

/* The old version of the collection may be gone when the answer is written. */
static mql_value kept(arena *a, mql_value v) {
    return (mql_value){v.type, arena_copy(a, v.bytes)};
}

static err modify(mongo_request *q, const mongo_index *x, modification *m, mql_builder *b) {
    m->found = true;
    m->seconds_before = kept(q->frame->arena, mongo_member(x->spec, "expireAfterSeconds"));
    m->hidden_before = kept(q->frame->arena, mongo_member(x->spec, "hidden"));
    if (slice_eq(x->name, SLICE_LIT("_id_"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "can't hide or expire the _id index");
    }
    double seconds = mql_is_number(m->seconds) ? mql_as_double(m->seconds) : 0;
    if (!mql_is_missing(m->seconds) && (!mql_is_number(m->seconds) || seconds < 0 || seconds > INT32_MAX)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS,
                          "TTL index 'expireAfterSeconds' option must be within an acceptable range");
    }
    if (!mql_is_missing(m->seconds) && mql_length(mql_document(x->key)) != 1) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "TTL indexes are single-field indexes");
    }
    mongo_index unique = *x;
    unique.unique = true;
    TRY(m->unique ? check_unique(q, &unique) : OK);
    add_modified(b, x->spec, m);
    return OK;
}

static err check_modification(mongo_request *q, slice given) {
    static const char *const names[] = {"name", "keyPattern", "expireAfterSeconds", "hidden", "unique"};
    doc_walk w;
    doc_element e;
    size_t changes = 0;
    for (doc_walk_init(&w, given); doc_walk_next(&w, &e);) {
        size_t i = 0;
        while (i < sizeof names / sizeof *names && !slice_eq(e.key, slice_str(names[i]))) {
            i++;
        }
        if (i == sizeof names / sizeof *names) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "collMod cannot change '%.*s' of an index.", slice_shown(e.key),
                              e.key.p);
        }
        changes += i > 1;
    }
    return changes ? OK : op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "no expireAfterSeconds, hidden, or unique field");
}

err mongo_modify_index(mongo_request *q, mongo_memo *memo) {
    slice given;
    doc_walk w;
    doc_element e;
    mongo_index x;
    err code = OK;
    TRY(mongo_arg_document(q, "index", &given));
    TRY(check_modification(q, given));
    modification *m = q->state = arena_new(q->frame->arena, modification);
    *m = (modification){.seconds = mongo_member(given, "expireAfterSeconds"),
                        .hidden = mongo_member(given, "hidden"),
                        .unique = mql_truth(mongo_member(given, "unique"))};
    mql_value name = mongo_member(given, "name"), key = mongo_member(given, "keyPattern");
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    for (doc_walk_init(&w, memo->indexes); code == OK && doc_walk_next(&w, &e);) {
        bool read = mongo_index_read(e.value, &x);
        bool meant = read && (mql_is_text(name) ? slice_eq(mql_as_text(name), x.name)
                                                : key.type == BSON_TYPE_DOCUMENT && mql_compare(key, mql_document(x.key)) == 0);
        if (meant) {
            code = modify(q, &x, m, &b);
        } else {
            mql_add_next(&b, mql_of(&e));
        }
    }
    memo->indexes = mongo_built_copy(q->frame->arena, &b, &out);
    TRY(code);
    if (!m->found) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INDEX_NOT_FOUND, "cannot find index for collMod");
    }
    mongo_change_collection(q, memo, answer_modified);
    return OK;
}

/* ---- $indexStats ---- */

static uint64_t times_used(const mongo_request *q, const mongo_index *x) {
    uint32_t container = q->container->space->container;
    mongo_times times = {0};
    if (slice_eq(x->name, SLICE_LIT("_id_"))) {
        mongo_operations_times(q->front->operations, container, &times);
    }
    return times.by_key + mongo_index_uses_of(q->front->index_uses, container, x->name);
}

static void add_index_stats(mongo_request *q, mql_builder *b, const mongo_index *x, slice host) {
    uint64_t times = times_used(q, x);
    mongo_add_text(b, "name", x->name);
    mongo_add_document(b, "key", x->key);
    mongo_add_text(b, "host", host);
    mongo_open_document(b, "accesses");
    mongo_add_long(b, "ops", (int64_t)times);
    mql_add(b, SLICE_LIT("since"), mql_date(q->op.arena, q->front->started_ms));
    mql_close(b);
    mongo_add_document(b, "spec", x->spec);
}

err mongo_index_stats_documents(mongo_request *q, buf *out) {
    doc_walk w;
    doc_element e;
    mongo_index x;
    slice indexes = q->container ? mongo_memo_of(q->container).indexes : SLICE_EMPTY, host = mongo_own_host(q);
    for (bool more = indexes.n && doc_walk_init(&w, indexes); more && doc_walk_next(&w, &e);) {
        if (e.type == BSON_TYPE_DOCUMENT && mongo_index_read(e.value, &x)) {
            buf made = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
            mql_builder b = mql_build(&made);
            add_index_stats(q, &b, &x, host);
            buf_add_slice(out, mql_built(&b));
            buf_free(&made);
        }
    }
    return OK;
}
