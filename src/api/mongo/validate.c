/* validate: reads all documents of a collection, and then the documents of each index in the index's order, and tells what is wrong.
 *
 * An index is right if it gives each document that has a key in it once, by an entry with that key, in the order of the keys. Writes that
 * come between the two readings would look like damage: so the marks of the ranges are compared, and if they have changed, what differs is
 * read again, up to TRIES times. */
#include "api/mongo/collections.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/scan.h"
#include "item/range_info.h"
#include "mql/key.h"

enum { TRIES = 3 };
#define DOCUMENT_STEPS ((uint64_t)10000000)

typedef struct checked {
    mongo_index index;
    const mql_index *keys; /* NULL: the core keeps it by itself, such as that of _id */
    slice order;           /* the core's order by this index; empty: it has none, such as an index of places */
    uint64_t keys_n, documents_n;
    uint64_t found_n; /* documents that the index gave */
    bool misplaced;   /* they were not in its order */
    bool broken;      /* it could not be read to its end */
} checked;

typedef struct validation {
    mongo_find find;
    mongo_scan scan;
    checked *list;
    size_t n, at; /* at == n: the documents are read */
    unsigned tries;
    uint64_t marks;
    mongo_scope scope;
    const mql_match *validator; /* NULL: the collection has none */
    uint64_t documents, invalid, strange;
    bool broken; /* the documents could not be read to their end */
    arena scratch;
    buf last; /* the key of the document before */
} validation;

static validation *validation_of(const mongo_request *q) {
    return q->state;
}

static void clean(mongo_request *q) {
    validation *v = validation_of(q);
    arena_free(&v->scratch);
    buf_free(&v->last);
}

/* Differs whenever a range has a new change. */
static uint64_t marks_of(const container *c) {
    uint64_t sum = 1;
    range_info info;
    for (size_t i = 0; range_info_at(c, i, &info); i++) {
        sum = sum * 0x100000001B3u + info.mark.range_id * 0x9E3779B97F4A7C15u + info.mark.lsn;
    }
    return sum;
}

/* ---- documents ---- */

typedef struct key_list {
    arena *arena;
    slice *list;
    size_t n, room;
} key_list;

static err keep_key(void *context, slice key) {
    key_list *k = context;
    if (k->n == k->room) {
        size_t room = k->room ? 2 * k->room : 16;
        if (!arena_fits(k->arena, room * sizeof *k->list + key.n)) {
            return E_MEMORY;
        }
        slice *list = arena_array(k->arena, slice, room);
        if (k->n) {
            memcpy(list, k->list, k->n * sizeof *list);
        }
        k->list = list;
        k->room = room;
    }
    k->list[k->n++] = arena_copy(k->arena, key);
    return OK;
}

static int by_bytes(const void *a, const void *b) {
    return slice_cmp(*(const slice *)a, *(const slice *)b);
}

/* The number of different keys that a document has in an index. */
static err count_keys(mongo_request *q, const checked *x, slice document, uint64_t *n_out) {
    validation *v = validation_of(q);
    arena walk = arena_init_counted(q->op.budget);
    key_list keys = {.arena = &v->scratch};
    err code = mql_index_keys(x->keys, &q->op, &walk, document, keep_key, &keys);
    *n_out = 0;
    if (keys.n) {
        qsort(keys.list, keys.n, sizeof *keys.list, by_bytes);
    }
    for (size_t i = 0; i < keys.n; i++) {
        *n_out += i == 0 || !slice_eq(keys.list[i], keys.list[i - 1]);
    }
    arena_free(&walk);
    arena_reset(&v->scratch);
    return code;
}

static err check_schema(mongo_request *q, slice document) {
    validation *v = validation_of(q);
    bool good = true;
    if (!v->validator) {
        return OK;
    }
    mql_run r = mongo_run_of(&q->op, &v->scratch, &v->scope, DOCUMENT_STEPS);
    r.root = mql_document(document);
    err code = mql_matches(&r, v->validator, &good, NULL);
    arena_reset(&v->scratch);
    v->strange += !good;
    return code;
}

static err check_document(mongo_request *q, slice document) {
    validation *v = validation_of(q);
    v->documents++;
    if (!doc_is_well_formed(document, LIMIT_JSON_DEPTH) || mql_is_missing(mongo_member(document, "_id"))) {
        v->invalid++;
        return OK;
    }
    for (size_t i = 0; i < v->n; i++) {
        checked *x = &v->list[i];
        uint64_t n = 1;
        err code = x->keys ? count_keys(q, x, document, &n) : OK;
        if (code == E_BAD_REQUEST) { /* it cannot be in the index, and must not be there */
            q->op.detail_n = 0;
            n = 0;
        } else if (code != OK) {
            return code;
        }
        x->keys_n += n;
        x->documents_n += n > 0;
    }
    return check_schema(q, document);
}

/* ---- indexes ---- */

static err check_place(mongo_request *q, slice document) {
    validation *v = validation_of(q);
    checked *x = &v->list[v->at];
    slice key;
    TRY(mql_index_key(x->keys, &q->op, &v->scratch, document, false, &key));
    x->found_n++;
    x->misplaced = x->misplaced || !key.n || slice_cmp(key, buf_view(&v->last)) < 0;
    buf_clear(&v->last);
    buf_add_slice(&v->last, key);
    arena_reset(&v->scratch);
    return OK;
}

static bool take(mongo_request *q, slice document) {
    validation *v = validation_of(q);
    v->scan.failed = v->at == v->n ? check_document(q, document) : check_place(q, document);
    return v->scan.failed == OK;
}

static slice order_of(mongo_request *q, const checked *x) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open_next(&b, BSON_TYPE_DOCUMENT);
    mongo_open_document(&b, "key");
    mongo_add_document(&b, "key", x->index.key);
    mql_add(&b, SLICE_LIT("collation"), mongo_member(x->index.spec, "collation"));
    mql_close(&b);
    mongo_add_document(&b, "of", mongo_key_spec(q->frame->arena, &x->index));
    mql_close(&b);
    return mongo_built_copy(q->frame->arena, &b, &out);
}

static err read_index(mongo_request *q, slice spec, checked *x) {
    slice place, stem, key_spec;
    *x = (checked){0};
    if (!mongo_index_read(spec, &x->index)) {
        return E_INTERNAL;
    }
    key_spec = mongo_key_spec(q->frame->arena, &x->index);
    if (slice_eq(x->index.name, SLICE_LIT("_id_")) || !key_spec.n) {
        return OK;
    }
    TRY(mql_index_parse(&q->op, key_spec, &x->keys));
    if (mql_index_kind_of(x->keys, &place) == MQL_INDEX_VALUES && !mql_index_is_wildcard(x->keys, &stem)) {
        x->order = order_of(q, x);
    }
    return OK;
}

static err read_indexes(mongo_request *q, validation *v) {
    slice indexes = mongo_memo_of(q->container).indexes;
    doc_walk w;
    doc_element e;
    v->list = arena_array(q->frame->arena, checked, mql_length(mql_array(indexes)));
    for (doc_walk_init(&w, indexes); doc_walk_next(&w, &e);) {
        TRY(read_index(q, e.value, &v->list[v->n++]));
    }
    return OK;
}

static err read_validator(mongo_request *q, validation *v) {
    mql_value filter = mongo_member(mongo_memo_of(q->container).options, "validator");
    if (filter.type != BSON_TYPE_DOCUMENT || filter.bytes.n <= 5) {
        return OK;
    }
    TRY(mongo_scope_begin(&q->op, false, SLICE_EMPTY, q->now_ms, &v->scope));
    return mql_match_parse(&v->scope.scope, filter.bytes, &v->validator);
}

/* ---- the answer ---- */

static bool is_counted(const mongo_request *q) { /* expired documents count until they are removed */
    return q->container->ttl == TTL_OFF && !q->container->expiries_n;
}

static bool is_right(const checked *x) {
    return !x->broken && (!x->order.n || (x->found_n == x->documents_n && !x->misplaced));
}

static bool all_right(const mongo_request *q, const validation *v) {
    bool right = !v->invalid && !v->broken && (!is_counted(q) || range_usage_of_all(q->container).items == v->documents);
    for (size_t i = 0; i < v->n; i++) {
        right = right && is_right(&v->list[i]);
    }
    return right;
}

static void add_indexes(mql_builder *b, const validation *v) {
    mongo_open_document(b, "keysPerIndex");
    for (size_t i = 0; i < v->n; i++) {
        char bytes[8];
        doc_store_i64(bytes, (int64_t)v->list[i].keys_n);
        mql_add(b, v->list[i].index.name, (mql_value){BSON_TYPE_INT64, slice_of(bytes, sizeof bytes)});
    }
    mql_close(b);
}

static void add_problems(mongo_request *q, mql_builder *b, const validation *v, bool quiet) {
    arena *a = q->frame->arena;
    uint64_t counted = range_usage_of_all(q->container).items;
    mongo_open_array(b, "warnings");
    if (v->strange) {
        mql_add_next(
            b, mql_text(a, arena_printf(a, "%llu documents do not conform to the collection's validator", (unsigned long long)v->strange)));
    }
    if (!quiet) {
        mql_add_next(b, mql_text(a, SLICE_LIT("documents were written meanwhile: what differs is no proof of damage")));
    }
    mql_close(b);
    mongo_open_array(b, "errors");
    if (v->invalid) {
        mql_add_next(b, mql_text(a, arena_printf(a, "%llu documents are malformed", (unsigned long long)v->invalid)));
    }
    if (quiet && is_counted(q) && counted != v->documents) {
        mql_add_next(b, mql_text(a, arena_printf(a, "%llu documents are counted, and %llu were found", (unsigned long long)counted,
                                                 (unsigned long long)v->documents)));
    }
    if (v->broken) {
        mql_add_next(b, mql_text(a, SLICE_LIT("the documents cannot all be read: the server's log says why")));
    }
    for (size_t i = 0; quiet && i < v->n; i++) {
        const checked *x = &v->list[i];
        if (x->broken) {
            mql_add_next(b, mql_text(a, arena_printf(a, "index %.*s leads to documents that cannot be read", slice_shown(x->index.name),
                                                     x->index.name.p)));
        } else if (!is_right(x)) {
            mql_add_next(b, mql_text(a, arena_printf(a, "index %.*s has %llu of %llu documents%s", slice_shown(x->index.name),
                                                     x->index.name.p, (unsigned long long)x->found_n, (unsigned long long)x->documents_n,
                                                     x->misplaced ? ", not in their order" : "")));
        }
    }
    mql_close(b);
}

static err answer(mongo_request *q, bool quiet) {
    const validation *v = validation_of(q);
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "ns", mongo_namespace(q->frame->arena, q->database, q->collection));
    mongo_add_long(b, "nInvalidDocuments", (int64_t)v->invalid);
    mongo_add_long(b, "nNonCompliantDocuments", (int64_t)v->strange);
    mongo_add_long(b, "nrecords", (int64_t)v->documents);
    mongo_add_int(b, "nIndexes", (int32_t)v->n);
    add_indexes(b, v);
    mongo_open_document(b, "indexDetails");
    for (size_t i = 0; i < v->n; i++) {
        mql_open(b, v->list[i].index.name, BSON_TYPE_DOCUMENT);
        mongo_add_bool(b, "valid", !quiet || is_right(&v->list[i]));
        mql_close(b);
    }
    mql_close(b);
    mongo_add_bool(b, "valid", quiet ? all_right(q, v) : !v->invalid && !v->broken);
    mongo_add_bool(b, "repaired", false);
    add_problems(q, b, v, quiet);
    mongo_end(q);
    return OK;
}

/* ---- reading ---- */

static err read_all(mongo_request *q) {
    validation *v = validation_of(q);
    v->at = v->n;
    v->marks = marks_of(q->container);
    v->documents = v->invalid = v->strange = 0;
    v->broken = false;
    for (size_t i = 0; i < v->n; i++) {
        checked *x = &v->list[i];
        x->keys_n = x->documents_n = x->found_n = 0;
        x->misplaced = x->broken = false;
    }
    v->find.order = SLICE_EMPTY;
    v->scan.verified = false;
    mongo_scan_start(q, &v->scan);
    return OK;
}

/* What the store cannot read is damage too: it ends this part, and not the command. */
static err note_broken(mongo_request *q, validation *v) {
    if (v->scan.code != E_STORE_CORRUPT) {
        return v->scan.code;
    }
    q->op.detail_n = 0;
    *(v->at == v->n ? &v->broken : &v->list[v->at].broken) = true;
    return OK;
}

static err read_next(mongo_request *q) {
    validation *v = validation_of(q);
    TRY(note_broken(q, v));
    for (v->at = v->at == v->n ? 0 : v->at + 1; v->at < v->n; v->at++) {
        if (v->list[v->at].order.n) {
            buf_clear(&v->last);
            v->find.order = v->list[v->at].order;
            v->scan.verified = true;
            mongo_scan_start(q, &v->scan);
            return OK;
        }
    }
    bool quiet = marks_of(q->container) == v->marks;
    if (!quiet && !all_right(q, v) && ++v->tries < TRIES) {
        return read_all(q);
    }
    return answer(q, quiet || all_right(q, v));
}

err mongo_validate_collection(mongo_request *q) {
    bool repairs = false;
    validation *v = q->state = arena_new(q->frame->arena, validation);
    *v = (validation){.find = {.now_ms = q->now_ms, .limit = UINT64_MAX}, .scratch = arena_init_counted(q->op.budget)};
    v->last = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    v->scan = (mongo_scan){.find = &v->find, .take = take, .done = read_next};
    q->clean = clean;
    TRY(mongo_arg_bool(q, "repair", &repairs));
    if (repairs) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "validate finds damage and cannot repair it: restore a backup.");
    }
    TRY(mongo_need_collection(q));
    if (container_space_progress(q->container->space) < 100) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_CONFLICTING_OPERATION, "An index is being built: repeat the command afterwards.");
    }
    TRY(read_indexes(q, v));
    TRY(read_validator(q, v));
    return read_all(q);
}
