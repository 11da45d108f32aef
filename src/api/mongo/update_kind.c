#include "api/mongo/update_kind.h"

#include "api/mongo/change_event.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/memo.h"
#include "api/mongo/mongo_int.h"
#include "mql/key.h"
#include "mql/update_description.h"

/* ---- validators ---- */

enum { COMPOUND_MAX = 64, PARALLEL = 2 /* the code of mql_sort_each */ };

struct mongo_validator {
    mongo_scope scope;
    const mql_match *match;                  /* NULL: the collection has no validator */
    bool moderate;                           /* documents that do not conform already may stay so */
    const mql_index *compound[COMPOUND_MAX]; /* indexes of several fields, of which one may be an array */
    size_t compound_n;
};

/* Of places or texts. */
static bool is_special(slice key) {
    doc_walk w;
    doc_element e;
    bool special = false;
    for (doc_walk_init(&w, key); !special && doc_walk_next(&w, &e);) {
        special = e.type == BSON_TYPE_UTF8 && !slice_eq(doc_element_text(&e), SLICE_LIT("hashed"));
    }
    return special;
}

static err read_compound(op *o, const container *c, mongo_validator *v) {
    doc_walk w;
    doc_element e;
    mongo_index x;
    for (doc_walk_init(&w, mongo_memo_of(c).indexes); v->compound_n < COMPOUND_MAX && doc_walk_next(&w, &e);) {
        bool checked = mongo_index_read(e.value, &x) && (mql_length(mql_document(x.key)) > 1 || is_special(x.key));
        slice spec = checked ? mongo_key_spec(o->arena, &x) : SLICE_EMPTY;
        TRY(spec.n ? mql_index_parse(o, spec, &v->compound[v->compound_n++]) : OK);
    }
    return OK;
}

static err ignore_key(void *context, slice key) {
    (void)context, (void)key;
    return OK;
}

/* 171 (CannotIndexParallelArrays), 16755 (a place is no geometry), 17262 (an unknown language) */
static err check_compound(op *o, arena *a, const mongo_validator *v, slice document) {
    for (size_t i = 0; i < v->compound_n; i++) {
        op inner;
        op_init(&inner, a, o->now_s);
        if (mql_index_keys(v->compound[i], &inner, a, document, ignore_key, NULL) == E_BAD_REQUEST) {
            return inner.protocol_code == PARALLEL
                       ? op_fail_as(o, E_BAD_REQUEST, 171, "cannot index parallel arrays")
                       : op_fail_as(o, E_BAD_REQUEST, inner.protocol_code, "%.*s", (int)inner.detail_n, inner.detail);
        }
    }
    return OK;
}

err mongo_validator_read(op *o, const container *c, const mongo_validator **validator_out) {
    slice options = mongo_memo_of(c).options;
    mql_value filter = mongo_member(options, "validator"), action = mongo_member(options, "validationAction"),
              level = mongo_member(options, "validationLevel");
    bool warns = mql_is_text(action) && slice_eq(mql_as_text(action), SLICE_LIT("warn"));
    bool off = mql_is_text(level) && slice_eq(mql_as_text(level), SLICE_LIT("off"));
    mongo_validator *v = arena_new(o->arena, mongo_validator);
    TRY(read_compound(o, c, v));
    if (filter.type == BSON_TYPE_DOCUMENT && !warns && !off && filter.bytes.n > 5) {
        TRY(mongo_scope_begin(o, false, SLICE_EMPTY, o->now_s * 1000, &v->scope));
        TRY(mql_match_parse(&v->scope.scope, filter.bytes, &v->match));
        v->moderate = mql_is_text(level) && slice_eq(mql_as_text(level), SLICE_LIT("moderate"));
    }
    *validator_out = v->match || v->compound_n ? v : NULL;
    return OK;
}

static err conforms(op *o, arena *a, const mongo_validator *v, slice document, uint64_t *steps, bool *good_out) {
    *good_out = true;
    if (!v || !v->match) {
        return OK;
    }
    mql_run r = mongo_run_of(o, a, &v->scope, *steps);
    r.root = mql_document(document);
    err code = mql_matches(&r, v->match, good_out, NULL);
    *steps = r.steps;
    return code;
}

err mongo_validate(op *o, arena *a, const mongo_validator *v, slice document, uint64_t *steps) {
    bool good;
    TRY(v ? check_compound(o, a, v, document) : OK);
    TRY(conforms(o, a, v, document, steps, &good));
    return good ? OK : op_fail_as(o, E_BAD_REQUEST, CODE_DOCUMENT_VALIDATION, "Document failed validation");
}

/* Of a document that there was before; empty: there was none. */
static err validate_change(op *o, arena *a, const mongo_validator *v, slice before, slice after, uint64_t *steps) {
    bool good = true;
    if (v && v->moderate && before.n) {
        TRY(conforms(o, a, v, before, steps, &good));
    }
    return good ? mongo_validate(o, a, v, after, steps) : check_compound(o, a, v, after);
}

/* ---- arguments ---- */

item_edit mongo_edit_of(arena *a, const mongo_edit_ask *ask) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    bool deletes = mql_is_missing(ask->update);
    mongo_add_document(&b, "q", ask->filter);
    mongo_add_date(&b, "now", ask->now_ms);
    if (ask->service) {
        mongo_add_bool(&b, "s", true);
    }
    if (ask->variables.n) {
        mongo_add_document(&b, "let", ask->variables);
    }
    if (ask->collation.n) {
        mongo_add_document(&b, "collation", ask->collation);
    }
    if (!deletes) {
        mql_add(&b, SLICE_LIT("u"), ask->update);
        if (ask->array_filters.n) {
            mongo_add_array(&b, "f", ask->array_filters);
        }
        mongo_add_bool(&b, "upsert", ask->upsert);
        mongo_add_int(&b, "max", ask->bytes_max);
    }
    return (item_edit){.kind = deletes ? ITEM_EDIT_MONGO_DELETE : ITEM_EDIT_MONGO_UPDATE, .argument = mongo_built_copy(a, &b, &out)};
}

typedef struct ready_edit {
    mongo_scope scope;
    const mql_match *match;
    const mql_update *update; /* NULL: a delete */
    const mongo_validator *validator;
    bool upsert;
    bool replaces; /* the whole document */
    bool images;   /* store the previous document, for change streams (pre-images) */
    size_t bytes_max;
} ready_edit;

static bool is_replacement(mql_value update) {
    doc_walk w;
    doc_element e;
    bool any = update.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, update.bytes) && doc_walk_next(&w, &e);
    return update.type == BSON_TYPE_DOCUMENT && !(any && e.key.n && e.key.p[0] == '$');
}

static bool keeps_images(const container *c) {
    mql_value images = mongo_member(mongo_memo_of(c).options, "changeStreamPreAndPostImages");
    return images.type == BSON_TYPE_DOCUMENT && mql_truth(mql_member(images, SLICE_LIT("enabled")));
}

static err prepare(op *o, const container *c, slice argument, const void **ready_out) {
    ready_edit *e = arena_new(o->arena, ready_edit);
    mql_value filter = mongo_member(argument, "q"), let = mongo_member(argument, "let"), now = mongo_member(argument, "now"),
              update = mongo_member(argument, "u"), filters = mongo_member(argument, "f"), max = mongo_member(argument, "max"),
              collation = mongo_member(argument, "collation");
    if (filter.type != BSON_TYPE_DOCUMENT || now.type != BSON_TYPE_DATE_TIME) {
        return op_fail(o, E_BAD_REQUEST, "The argument of a MongoDB update is malformed.");
    }
    bool service = mql_truth(mongo_member(argument, "s"));
    TRY(mongo_scope_begin(o, service, let.type == BSON_TYPE_DOCUMENT ? let.bytes : SLICE_EMPTY, mql_as_date(now), &e->scope));
    TRY(mongo_scope_collate(o, c, collation.type == BSON_TYPE_DOCUMENT ? collation.bytes : SLICE_EMPTY, &e->scope));
    TRY(mql_match_parse(&e->scope.scope, filter.bytes, &e->match));
    *ready_out = e;
    if (mql_is_missing(update)) {
        return OK;
    }
    e->upsert = mql_truth(mongo_member(argument, "upsert"));
    e->replaces = is_replacement(update);
    e->images = keeps_images(c);
    e->bytes_max = max.type == BSON_TYPE_INT32 ? (size_t)doc_load_i32(max.bytes.p) : 0;
    mql_update_spec spec = {.update = update,
                            .array_filters = filters.type == BSON_TYPE_ARRAY ? filters.bytes : SLICE_EMPTY,
                            .match = e->match,
                            .filter = filter.bytes};
    TRY(mql_update_parse(&e->scope.scope, &spec, &e->update));
    return mongo_validator_read(o, c, &e->validator);
}

/* ---- applying ---- */

/* {"n": 1} */
static const char matched_reply[] = "\x0C\0\0\0\x10n\0\1\0\0\0";

static slice matched(void) {
    return slice_of(matched_reply, sizeof matched_reply);
}

/* {"id": _id} */
static slice inserted(arena *a, slice document) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("id"), mongo_member(document, "_id"));
    return mongo_built_copy(a, &b, &out);
}

/* Makes the note for change streams: what the update changed, and the previous document. */
static err note_change(const item_edit_input *in, const ready_edit *e, mql_run *r, slice after, item_edit_result *result) {
    slice description = SLICE_EMPTY;
    if (!in->there || !item_versions_kept(in->container)) {
        return OK;
    }
    if (!e->replaces) {
        TRY(mql_difference_of(r, in->body, after, &description));
    }
    result->note = mongo_change_note(r->arena, description, e->images ? in->body : SLICE_EMPTY);
    return OK;
}

static err check_shard_key(op *o, const item_edit_input *in, slice document) {
    pkey partition;
    if (!in->container->key.n) {
        return OK;
    }
    TRY(pkey_extract(o, document, &in->container->key, &partition));
    return pkey_equal(&partition, &in->key->partition)
               ? OK
               : op_fail_as(o, E_BAD_REQUEST, CODE_IMMUTABLE_FIELD, "The value of the shard key of a document cannot be changed.");
}

static err put(op *o, const item_edit_input *in, const ready_edit *e, mql_run *r, item_edit_result *result) {
    mql_updated u;
    TRY(mql_update_apply(r, e->update, &u));
    if (in->there && !u.modified) {
        result->reply = matched();
        return OK;
    }
    if (e->bytes_max && u.document.n > e->bytes_max) {
        return op_fail_as(o, E_TOO_LARGE, CODE_DOCUMENT_TOO_LARGE, "The updated document is larger than %zu bytes.", e->bytes_max);
    }
    TRY(check_shard_key(o, in, u.document));
    TRY(validate_change(o, r->arena, e->validator, in->there ? in->body : SLICE_EMPTY, u.document, &r->steps));
    result->answer = ITEM_EDIT_PUT;
    result->body = u.document;
    result->reply = in->there ? SLICE_EMPTY : inserted(r->arena, u.document);
    return note_change(in, e, r, u.document, result);
}

static err decide(op *o, const item_edit_input *in, const ready_edit *e, mql_run *r, item_edit_result *result) {
    bool matches = false;
    result->answer = ITEM_EDIT_LEAVE;
    if (!in->there) {
        return e->update && e->upsert ? put(o, in, e, r, result) : OK;
    }
    r->root = mql_document(in->body);
    TRY(mql_matches(r, e->match, &matches, NULL));
    if (!matches) {
        return e->update && e->upsert ? E_CONFLICT : OK; /* the document that an upsert would insert exists */
    }
    if (!e->update) {
        result->answer = ITEM_EDIT_DELETE;
        return OK;
    }
    return put(o, in, e, r, result);
}

static uint64_t estimate(const item_edit_input *in) {
    return 50 + item_edit_steps(in->body.n + in->argument.n) * 8;
}

static err apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result) {
    const ready_edit *e = in->ready;
    mql_run r = mongo_run_of(o, o->arena, &e->scope, b->steps);
    err code = decide(o, in, e, &r, result);
    bool paid = item_edit_pay(b, b->steps - r.steps);
    return code == E_QUERY_TOO_LONG || !paid ? item_edit_too_long(o) : code;
}

void mongo_update_register(void) {
    static const item_edit_kind update = {
        .id = ITEM_EDIT_MONGO_UPDATE, .name = "update", .prepare = prepare, .estimate = estimate, .apply = apply};
    static const item_edit_kind delete = {
        .id = ITEM_EDIT_MONGO_DELETE, .name = "delete", .frees = true, .prepare = prepare, .estimate = estimate, .apply = apply};
    item_edit_register(&update);
    item_edit_register(&delete);
}
