/* Many item operations in one request: a transactional batch (one partition key, all or nothing) or bulk (one range, each by itself). */
#include "api/sql/sql_int.h"
#include "throughput/charge.h"

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
        [ITEM_DELETE] = "Delete", [ITEM_PATCH] = "Patch",   [ITEM_READ] = "Read",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_eq_nocase(word, slice_str(words[i]))) {
            *kind_out = (item_kind)i;
            return true;
        }
    }
    return false;
}

/* Bodies come inside the operations, so their system properties are still there. */
static slice without_system(arena *a, slice body) {
    static const char *const names[] = {"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"};
    bson_iter_t it;
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        any = any || doc_find_key(body, slice_str(names[i]), &it);
    }
    if (!any) {
        return body;
    }
    bson_t doc, clean = BSON_INITIALIZER;
    if (bson_init_static(&doc, (const uint8_t *)body.p, body.n)) {
        bson_copy_to_excluding_noinit(&doc, &clean, "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn", NULL);
    }
    slice result = arena_copy(a, slice_of(bson_get_data(&clean), clean.len));
    bson_destroy(&clean);
    return result;
}

static err read_patch(op *o, slice operation, item_op *item) {
    slice body;
    patch *p = arena_new(o->arena, patch);
    if (!resource_of(operation, true, &body)) {
        return op_fail(o, E_BAD_REQUEST, "A Patch operation must have a resourceBody with its operations.");
    }
    TRY(patch_parse(o, body, p));
    if (p->condition.n) {
        return op_fail(o, E_BAD_REQUEST,
                       "A patch with a condition is not supported until the query language is there: use ifMatch with the item's etag.");
    }
    item->patch = p;
    return OK;
}

/* An operation's own key, in bulk; the header's otherwise. */
static err read_key(sql_request *q, slice operation, item_op *item, pkey *key, const pkey **key_out) {
    slice own = text_of(operation, "partitionKey");
    *key_out = sql_header_key(q);
    if (own.n) {
        TRY(pkey_parse(&item->op, own, key));
        if (q->commit.atomic && q->key_given && !pkey_equal(key, &q->partition)) {
            return E_KEY_MISMATCH;
        }
        *key_out = key;
    }
    return OK;
}

static err read_operation(sql_request *q, slice operation, item_op *item) {
    pkey *own = arena_new(q->http->arena, pkey);
    const pkey *key;
    if (!read_kind(text_of(operation, "operationType"), &item->kind)) {
        return op_fail(&item->op, E_BAD_REQUEST, "operationType must be Create, Upsert, Read, Replace, Delete or Patch.");
    }
    item->if_match = text_of(operation, "ifMatch");
    item->if_none_match = text_of(operation, "ifNoneMatch");
    item->key.id = text_of(operation, "id");
    TRY(read_key(q, operation, item, own, &key));
    if (item->kind == ITEM_CREATE || item->kind == ITEM_UPSERT || item->kind == ITEM_REPLACE) {
        if (!resource_of(operation, false, &item->body)) {
            return op_fail(&item->op, E_BAD_REQUEST, "The operation must have a resourceBody that is an object.");
        }
        item->body = without_system(q->http->arena, item->body);
        return item_check_body(&item->op, q->container, key, item);
    }
    TRY(item_check_key(&item->op, q->container, key, item->key.id, &item->key));
    TRY(item_check_id(&item->op, item->key.id));
    return item->kind == ITEM_PATCH ? read_patch(&item->op, operation, item) : OK;
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

static err read_operations(sql_request *q, slice list) {
    bson_iter_t each;
    size_t n = count(list), i = 0;
    if (n > LIMIT_BATCH_OPERATIONS) {
        return op_fail(&q->op, E_BAD_REQUEST, "Batch request has more operations than what is supported. The maximum is %d.",
                       LIMIT_BATCH_OPERATIONS);
    }
    if (n == 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "Batch request has no operations.");
    }
    q->commit.ops = arena_array(q->http->arena, item_op, n);
    q->commit.n = n;
    bson_iter_init_from_data(&each, (const uint8_t *)list.p, list.n);
    while (bson_iter_next(&each)) {
        item_op *item = &q->commit.ops[i++];
        uint32_t bytes;
        const uint8_t *p;
        op_init(&item->op, q->http->arena, q->op.now_s);
        if (!BSON_ITER_HOLDS_DOCUMENT(&each)) {
            return op_fail(&q->op, E_BAD_REQUEST, "Every operation of a batch must be an object.");
        }
        bson_iter_document(&each, &bytes, &p);
        item->code = read_operation(q, slice_of(p, bytes), item);
    }
    return OK;
}

static err read_target(sql_request *q) {
    uint32_t range;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    q->commit = (item_commit){.atomic = sql_flag(q, FIELD_BATCH_ATOMIC), .range_id = -1};
    if (q->commit.atomic) {
        if (!q->key_given && q->container->key.n) {
            return op_fail(&q->op, E_BAD_REQUEST, "PartitionKey value must be supplied for this operation.");
        }
        return OK;
    }
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(sql_range_id(q, &range));
        q->commit.range_id = range;
    }
    return OK;
}

/* ---- answering ---- */

static unsigned status_of(const item_op *item) {
    if (item->code != OK) {
        return err_lookup(item->code)->http_status;
    }
    return item->kind == ITEM_DELETE ? 204 : item->created ? 201 : 200;
}

static void write_result(buf *out, const container *c, const item_op *item, bool minimal) {
    const err_entry *entry = err_lookup(item->code);
    buf_addf(out, "{\"statusCode\":%u", status_of(item));
    if (entry->http_substatus) {
        buf_addf(out, ",\"subStatusCode\":%u", entry->http_substatus);
    }
    buf_add_lit(out, ",\"requestCharge\":");
    sql_write_charge(out, item->op.charge_ru);
    if (item->code == OK && item->kind != ITEM_DELETE) {
        char etag[ITEM_ETAG_BYTES + 1];
        item_etag(etag, item->after.lsn, item->after.ts);
        buf_add_lit(out, ",\"eTag\":");
        json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
        if (!minimal || item->kind == ITEM_READ) {
            buf_add_lit(out, ",\"resourceBody\":");
            sql_write_item(out, c, item->result, &item->after);
        }
    } else if (item->code != OK && item->code != E_FAILED_DEPENDENCY && item->code != E_NOT_MODIFIED) {
        buf_add_lit(out, ",\"message\":");
        json_add_string(out, item->op.detail_n ? slice_of(item->op.detail, item->op.detail_n) : slice_str(entry->sentence));
    }
    buf_add_byte(out, '}');
}

static void answer(sql_request *q) {
    bool all_ok = true, minimal = slice_eq_nocase(sql_get(q, FIELD_PREFER), SLICE_LIT("return=minimal"));
    for (size_t i = 0; i < q->commit.n; i++) {
        all_ok = all_ok && q->commit.ops[i].code == OK;
    }
    const container_range *range = container_route(q->container, &q->commit.ops[0].key.epk);
    sql_start(q, all_ok ? 200 : 207);
    sql_add_range(q, range, atomic_load_explicit(&range->lsn, memory_order_acquire));
    buf *out = sql_start_body(q);
    buf_add_byte(out, '[');
    for (size_t i = 0; i < q->commit.n; i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        write_result(out, q->container, &q->commit.ops[i], minimal);
    }
    buf_add_byte(out, ']');
    item_commit_give(&q->commit);
    sql_end(q);
}

/* The request as a whole failed: container or range gone, or the store. */
static bool failed_whole(const sql_request *q) {
    err code = q->commit.base.code;
    if (code == OK || !q->commit.atomic) { /* operations that fail by themselves leave the commit's code alone */
        return code != OK;
    }
    for (size_t i = 0; i < q->commit.n; i++) {
        if (q->commit.ops[i].code == code) {
            return false; /* one operation of a batch gave its code to the commit */
        }
    }
    return true;
}

static void written(sql_request *q) {
    if (failed_whole(q)) {
        op_charge(&q->op, CHARGE_FAILED);
        item_commit_give(&q->commit);
        sql_fail(q, q->commit.base.code);
        return;
    }
    op_charge(&q->op, item_commit_charge(&q->commit));
    answer(q);
}

/* A batch with an operation that cannot be right is not tried at all. */
static bool refused_before(sql_request *q) {
    size_t bad = q->commit.n;
    for (size_t i = 0; i < q->commit.n && bad == q->commit.n; i++) {
        bad = q->commit.ops[i].code != OK ? i : bad;
    }
    if (!q->commit.atomic || bad == q->commit.n) {
        return false;
    }
    for (size_t i = 0; i < q->commit.n; i++) {
        q->commit.ops[i].code = i == bad ? q->commit.ops[i].code : E_FAILED_DEPENDENCY;
    }
    return true;
}

void sql_item_batch(sql_request *q) {
    slice list;
    err code = read_target(q);
    code = code != OK ? code : sql_body(q, JSON_ARRAY, &list);
    code = code != OK ? code : read_operations(q, list);
    if (code != OK) {
        sql_fail(q, code);
    } else if (refused_before(q)) {
        op_charge(&q->op, CHARGE_FAILED);
        answer(q);
    } else {
        sql_submit_items(q, written);
    }
}
