/* The body of a batch: {"operationType":…,"id":…,"resourceBody":{…},"ifMatch":…,"partitionKey":"[…]"}, … */
#include "api/sql/batch.h"
#include "api/sql/itembody.h"
#include "item/foreign.h"

static slice text_of(slice operation, const char *name) {
    bson_iter_t it;
    return doc_find_key(operation, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

/* The operation's resourceBody: an object, or for a patch also a bare array. */
static bool resource_of(slice operation, bool array_allowed, slice *document_out) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (!doc_find_key(operation, SLICE_LIT("resourceBody"), &it)) {
        return false;
    }
    if (BSON_ITER_HOLDS_DOCUMENT(&it)) {
        bson_iter_document(&it, &n, &p);
    } else if (array_allowed && BSON_ITER_HOLDS_ARRAY(&it)) {
        bson_iter_array(&it, &n, &p);
    }
    *document_out = slice_of(p, n);
    return n > 0;
}

static bool read_kind(slice word, item_kind *kind_out) {
    static const char *const words[] = {
        [ITEM_CREATE] = "Create", [ITEM_UPSERT] = "Upsert", [ITEM_REPLACE] = "Replace",
        [ITEM_DELETE] = "Delete", [ITEM_EDIT] = "Patch",    [ITEM_READ] = "Read",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_eq_nocase(word, slice_str(words[i]))) {
            *kind_out = (item_kind)i;
            return true;
        }
    }
    return false;
}

static err read_patch(op *o, const container *c, slice operation, item_op *item) {
    slice body;
    if (!resource_of(operation, true, &body)) {
        return op_fail(o, E_BAD_REQUEST, "A Patch operation must have a resourceBody with its operations.");
    }
    return sql_read_patch(o, c, body, item);
}

/* The operation's own key if it has one (bulk), otherwise the header's. */
static err read_key(const sql_batch_target *target, slice operation, item_op *item, pkey *key, const pkey **key_out) {
    slice own = text_of(operation, "partitionKey");
    *key_out = target->key;
    if (own.n) {
        TRY(pkey_parse(&item->op, own, key));
        if (target->atomic && target->key && !pkey_equal(key, target->key)) {
            return E_KEY_MISMATCH;
        }
        *key_out = key;
    }
    return OK;
}

/* The item that the operation addresses; a new one is addressed by its body. */
static err read_row(const sql_batch_target *target, slice operation, item_op *item) {
    item->foreign_ms = target->foreign_ms;
    item->key.row = text_of(operation, "id");
    bool addressed = item->kind != ITEM_CREATE && item->kind != ITEM_UPSERT;
    return addressed ? item_row_of_id(&item->op, target->container, item->key.row, &item->key.row) : OK;
}

static err read_operation(const sql_batch_target *target, slice operation, item_op *item) {
    pkey *own = arena_new(item->op.arena, pkey);
    const pkey *key;
    if (!read_kind(text_of(operation, "operationType"), &item->kind)) {
        return op_fail(&item->op, E_BAD_REQUEST, "operationType must be Create, Upsert, Read, Replace, Delete or Patch.");
    }
    item->if_match = text_of(operation, "ifMatch");
    item->if_none_match = text_of(operation, "ifNoneMatch");
    item->foreign_ms = target->foreign_ms;
    TRY(read_row(target, operation, item));
    TRY(read_key(target, operation, item, own, &key));
    if (item->kind == ITEM_CREATE || item->kind == ITEM_UPSERT || item->kind == ITEM_REPLACE) {
        if (!resource_of(operation, false, &item->body)) {
            return op_fail(&item->op, E_BAD_REQUEST, "The operation must have a resourceBody that is an object.");
        }
        item->body = item_without_system(item->op.arena, item->body);
        return item_check_body(&item->op, target->container, key, item);
    }
    TRY(item_check_key(&item->op, target->container, key, item->key.row, &item->key));
    TRY(target->foreign_ms ? OK : row_check_id(&item->op, item->key.row));
    return item->kind == ITEM_EDIT ? read_patch(&item->op, target->container, operation, item) : OK;
}

static size_t count(slice list) {
    bson_iter_t each;
    size_t n = 0;
    if (bson_iter_init_from_data(&each, (const uint8_t *)list.p, list.n)) {
        while (bson_iter_next(&each)) {
            n++;
        }
    }
    return n;
}

err sql_batch_read(op *o, const sql_batch_target *target, slice list, item_op **ops_out, size_t *n_out) {
    bson_iter_t each;
    size_t n = count(list), i = 0;
    *ops_out = NULL;
    *n_out = 0;
    if (n > LIMIT_BATCH_OPERATIONS) {
        return op_fail(o, E_BAD_REQUEST, "Batch request has more operations than what is supported. The maximum is %d.",
                       LIMIT_BATCH_OPERATIONS);
    }
    if (n == 0 && target->atomic) {
        return op_fail(o, E_BAD_REQUEST, "Batch request has no operations.");
    }
    item_op *ops = arena_array(o->arena, item_op, n);
    bson_iter_init_from_data(&each, (const uint8_t *)list.p, list.n);
    while (bson_iter_next(&each)) {
        item_op *item = &ops[i++];
        uint32_t bytes;
        const uint8_t *p;
        op_init(&item->op, o->arena, o->now_s);
        if (!BSON_ITER_HOLDS_DOCUMENT(&each)) {
            return op_fail(o, E_BAD_REQUEST, "Every operation of a batch must be an object.");
        }
        bson_iter_document(&each, &bytes, &p);
        item->code = read_operation(target, slice_of(p, bytes), item);
    }
    *ops_out = ops;
    *n_out = n;
    return OK;
}
