/* Arguments of commands, names of databases and collections. */
#include "api/mongo/memo.h"
#include "api/mongo/mongo_int.h"
#include "api/mongo/views.h"
#include "mql/collation.h"

/* ---- arguments ---- */

mql_value mongo_member(slice document, const char *name) {
    doc_element e;
    uint64_t passed = 0;
    return document.n && doc_find_member_counted(document, slice_str(name), &e, &passed) ? mql_of(&e) : mql_missing();
}

bool mongo_find_member(const mongo_request *q, const char *name, doc_element *e) {
    const wire_message *m = &q->message;
    slice key = slice_str(name);
    uint64_t passed = 0;
    for (size_t i = 0; i < m->members_n && i < WIRE_MEMBERS; i++) {
        if (slice_eq(m->members[i].key, key)) {
            *e = m->members[i];
            return true;
        }
    }
    return m->members_n > WIRE_MEMBERS && doc_find_member_counted(m->body, key, e, &passed);
}

static err wrong_type(mongo_request *q, const char *name, mql_value v, const char *expected) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TYPE_MISMATCH, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'",
                      q->command->name, name, mql_type_name(v.type), expected);
}

static err arg_of_type(mongo_request *q, const char *name, bson_type_t type, const char *expected, slice *bytes_out) {
    doc_element e;
    *bytes_out = SLICE_EMPTY;
    if (!mongo_get(q, name, &e) || mql_is_nullish(mql_of(&e))) {
        return OK;
    }
    mql_value v = mql_of(&e);
    if (v.type != type) {
        return wrong_type(q, name, v, expected);
    }
    *bytes_out = v.bytes;
    return OK;
}

err mongo_arg_document(mongo_request *q, const char *name, slice *document_out) {
    return arg_of_type(q, name, BSON_TYPE_DOCUMENT, "object", document_out);
}

err mongo_check_hint(op *o, mql_value given, mql_value *hint_out) {
    *hint_out = mql_is_nullish(given) || (given.type == BSON_TYPE_DOCUMENT && mql_length(given) == 0) ? mql_missing() : given;
    bool good = mql_is_missing(*hint_out) || mql_is_text(given) || given.type == BSON_TYPE_DOCUMENT;
    return good ? OK : op_fail_as(o, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "Hint must be a string or an object");
}

err mongo_arg_hint(mongo_request *q, mql_value *hint_out) {
    return mongo_check_hint(&q->op, mongo_arg(q, "hint"), hint_out);
}

err mongo_collation_of(mongo_request *q, slice given, slice *collation_out) {
    mql_value of_collection = q->container && !q->view ? mongo_memo_option(q->container, "collation") : mql_missing();
    slice own = q->view ? q->view->collation : of_collection.type == BSON_TYPE_DOCUMENT ? of_collection.bytes : SLICE_EMPTY;
    const mql_collation *collation;
    *collation_out = given.n ? given : own;
    if (q->view && given.n && !slice_eq(given, own)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_OPTION_NOT_ON_VIEW, "Cannot override a view's default collation");
    }
    if (collation_out->n) {
        TRY(mql_collation_shared(&q->op, *collation_out, &collation));
        *collation_out = collation ? *collation_out : SLICE_EMPTY;
    }
    return OK;
}

err mongo_arg_collation(mongo_request *q, slice *collation_out) {
    slice given;
    TRY(mongo_arg_document(q, "collation", &given));
    return mongo_collation_of(q, given, collation_out);
}

err mongo_arg_array(mongo_request *q, const char *name, slice *array_out) {
    return arg_of_type(q, name, BSON_TYPE_ARRAY, "array", array_out);
}

err mongo_arg_text(mongo_request *q, const char *name, slice *text_out) {
    TRY(arg_of_type(q, name, BSON_TYPE_UTF8, "string", text_out));
    if (text_out->n) {
        *text_out = slice_of(text_out->p + 4, text_out->n - 5);
    }
    return OK;
}

err mongo_arg_bool(mongo_request *q, const char *name, bool *truth) {
    mql_value v = mongo_arg(q, name);
    if (mql_is_nullish(v)) {
        return OK;
    }
    if (v.type != BSON_TYPE_BOOL && !mql_is_number(v)) {
        return wrong_type(q, name, v, "bool");
    }
    *truth = mql_truth(v);
    return OK;
}

err mongo_arg_count(mongo_request *q, const char *name, int64_t *number) {
    mql_value v = mongo_arg(q, name);
    if (mql_is_nullish(v)) {
        return OK;
    }
    if (!mql_is_number(v)) {
        return wrong_type(q, name, v, "long");
    }
    if (!mql_as_integer(v, number)) {
        double d = mql_as_double(v);
        if (!(d > -9e18 && d < 9e18)) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "BSON field '%s.%s' is out of range", q->command->name, name);
        }
        *number = (int64_t)d;
    }
    return OK;
}

/* A negative limit is a limit too; 0: none. */
uint64_t mongo_limit_of(int64_t limit) {
    return limit ? (limit < 0 ? -(uint64_t)limit : (uint64_t)limit) : UINT64_MAX;
}

/* ---- lists ---- */

static const wire_sequence *sequence_of(const mongo_request *q, const char *name) {
    for (size_t i = 0; i < q->message.sequences_n; i++) {
        if (slice_eq(q->message.sequences[i].name, slice_str(name))) {
            return &q->message.sequences[i];
        }
    }
    return NULL;
}

bool mongo_list_next(mongo_list *list, slice *document_out) {
    doc_element e;
    if (list->is_sequence) {
        return wire_next(&list->rest, document_out);
    }
    if (!doc_walk_next(&list->walk, &e)) {
        return false;
    }
    *document_out = e.type == BSON_TYPE_DOCUMENT ? e.value : SLICE_EMPTY;
    return true;
}

err mongo_list_begin(mongo_request *q, const char *name, mongo_list *list, size_t *n_out) {
    const wire_sequence *s = sequence_of(q, name);
    slice each, array;
    *n_out = 0;
    if (s) {
        *list = (mongo_list){.rest = s->documents, .is_sequence = true};
    } else {
        TRY(mongo_arg_array(q, name, &array));
        if (!array.n) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_MISSING_FIELD, "BSON field '%s.%s' is missing but a required field",
                              q->command->name, name);
        }
        *list = (mongo_list){0};
        doc_walk_init(&list->walk, array);
    }
    mongo_list copy = *list;
    while (mongo_list_next(&copy, &each)) {
        if (!each.n) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TYPE_MISMATCH, "BSON field '%s.%s.%zu' is the wrong type, expected type 'object'",
                              q->command->name, name, *n_out);
        }
        ++*n_out;
    }
    return OK;
}

err mongo_check_ids(mongo_request *q, slice array) {
    enum { IDS_MAX = 10000 }; /* what drivers send at most */
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (doc_walk_init(&w, array); array.n && n <= IDS_MAX && doc_walk_next(&w, &e); n++) {
    }
    return n <= IDS_MAX ? OK : op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "%s takes %d ids at most.", q->command->name, IDS_MAX);
}

/* ---- names ---- */

enum { NOT_IN_DATABASES = 1, NOT_IN_COLLECTIONS = 2, IN_NO_NAME = 3 };

static const uint8_t refused[256] = {
    [0] = IN_NO_NAME,         ['/'] = IN_NO_NAME,       ['\\'] = IN_NO_NAME,      ['$'] = IN_NO_NAME,       ['#'] = IN_NO_NAME,
    ['?'] = IN_NO_NAME,       ['.'] = NOT_IN_DATABASES, [' '] = NOT_IN_DATABASES, ['"'] = NOT_IN_DATABASES, ['*'] = NOT_IN_DATABASES,
    ['<'] = NOT_IN_DATABASES, ['>'] = NOT_IN_DATABASES, [':'] = NOT_IN_DATABASES, ['|'] = NOT_IN_DATABASES,
};

static bool has_any(slice name, uint8_t kind) {
    uint8_t seen = 0;
    for (size_t i = 0; i < name.n; i++) {
        seen |= refused[(unsigned char)name.p[i]];
    }
    return seen & kind;
}

/* MongoDB's limits for names, and the core's. */
err mongo_check_database(op *o, slice name) {
    if (!name.n || name.n > 63 || has_any(name, NOT_IN_DATABASES)) {
        if (!slice_eq(name, SLICE_LIT("$external"))) {
            return op_fail_as(o, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "Invalid database name: '%.*s'", slice_shown(name), name.p);
        }
    }
    return OK;
}

err mongo_check_collection(op *o, slice name) {
    bool hidden = slice_starts(name, SLICE_LIT("$cmd"));
    if (!name.n || name.n > 255 || name.p[0] == '.' || name.p[name.n - 1] == '.' || name.p[name.n - 1] == ' ' ||
        (has_any(name, NOT_IN_COLLECTIONS) && !hidden)) {
        return op_fail_as(o, E_BAD_REQUEST, CODE_INVALID_NAMESPACE, "Invalid collection name: '%.*s'", slice_shown(name),
                          name.p ? name.p : "");
    }
    return OK;
}

slice mongo_namespace(arena *a, slice database, slice collection) {
    char *text = arena_alloc(a, database.n + 1 + collection.n);
    memcpy(text, database.n ? database.p : "", database.n);
    text[database.n] = '.';
    memcpy(text + database.n + 1, collection.n ? collection.p : "", collection.n);
    return slice_of(text, database.n + 1 + collection.n);
}

bool mongo_split_namespace(slice text, slice *database_out, slice *collection_out) {
    const char *dot = text.n ? memchr(text.p, '.', text.n) : NULL;
    if (!dot) {
        return false;
    }
    *database_out = slice_of(text.p, (size_t)(dot - text.p));
    *collection_out = slice_skip(text, database_out->n + 1);
    return database_out->n && collection_out->n;
}

/* ---- collections ---- */

err mongo_find_collection(mongo_request *q) {
    if (q->container) { /* found before */
        return OK;
    }
    err code = account_container(q->front->core.account, q->database, false, q->collection, false, &q->container);
    q->op.detail_n = code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND ? 0 : q->op.detail_n;
    TRY(code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND ? OK : code);
    return q->container && !(q->command->flags & MONGO_VIEW) && mongo_is_view(q->container) ? mongo_refuse_view(q) : OK;
}

err mongo_need_collection(mongo_request *q) {
    TRY(mongo_find_collection(q));
    if (!q->container) {
        return op_fail_as(&q->op, E_OWNER_NOT_FOUND, CODE_NAMESPACE_NOT_FOUND, "ns does not exist: %.*s.%.*s", slice_shown(q->database),
                          q->database.p, slice_shown(q->collection), q->collection.p);
    }
    return OK;
}

err mongo_need_own(mongo_request *q) {
    TRY(mongo_find_collection(q));
    if (q->container && !slice_eq(q->container->api, MONGO_API)) {
        return op_fail_as(&q->op, E_FORBIDDEN, CODE_UNAUTHORIZED,
                          "The collection was made by another API (%.*s), which alone may write to it.", slice_shown(q->container->api),
                          q->container->api.p);
    }
    return OK;
}

err mongo_need_writable(mongo_request *q) {
    TRY(mongo_need_own(q));
    return q->container && mongo_is_view(q->container) ? mongo_refuse_view(q) : OK;
}
