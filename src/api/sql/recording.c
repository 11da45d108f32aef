#include "api/sql/recording.h"

#include "base/date.h"
#include "base/recording.h"
#include "doc/walk.h"

/* NULL: not a request for items. */
static const char *operation_of(const sql_request *q) {
    bool items = q->route.kind == SQL_ITEMS, item = q->route.kind == SQL_ITEM;
    switch (q->http->method) {
    case VERB_GET:
        return item ? "read" : items ? "feed" : NULL;
    case VERB_POST:
        return !items                         ? NULL
               : sql_is_query(q)              ? "query"
               : sql_flag(q, FIELD_IS_BATCH)  ? "batch"
               : sql_flag(q, FIELD_IS_UPSERT) ? "upsert"
                                              : "create";
    case VERB_PUT:
        return item ? "replace" : NULL;
    case VERB_PATCH:
        return item ? "patch" : NULL;
    case VERB_DELETE:
        return item ? "delete" : NULL;
    default:
        return NULL;
    }
}

static void add_text(buf *out, const char *name, slice text) {
    buf_addf(out, ",\"%s\":", name);
    json_add_string(out, text);
}

/* {"/customer":"c-1"}: each component without the list's brackets. */
static void add_key(buf *out, const sql_request *q) {
    const pkey_definition *definition = &q->container->key;
    for (size_t i = 0; i < q->partition.n && i < definition->n; i++) {
        buf one = buf_init(BUF_NO_LIMIT);
        pkey_write(&one, &(pkey){.n = 1, .values = {q->partition.values[i]}});
        buf_addf(out, "%s", i ? "," : ",\"key\":{");
        json_add_string(out, definition->paths[i].text);
        buf_addf(out, ":%.*s", one.n > 2 ? (int)one.n - 2 : 2, one.n > 2 ? one.p + 1 : "{}");
        buf_free(&one);
    }
    buf_addf(out, "%s", q->partition.n && definition->n ? "}" : "");
}

/* A query's body is what the log has: "query" and "parameters". */
static void add_query(buf *out, const sql_request *q) {
    buf bson = buf_init((size_t)4 * RECORDING_LINE_BYTES);
    json_root root;
    doc_element e;
    if (q->http->body.n < RECORDING_LINE_BYTES && json_to_bson(q->http->body, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        if (doc_find_member(buf_view(&bson), SLICE_LIT("query"), &e) && e.type == BSON_TYPE_UTF8) {
            add_text(out, "query", doc_element_text(&e));
        }
        if (doc_find_member(buf_view(&bson), SLICE_LIT("parameters"), &e) && e.type == BSON_TYPE_ARRAY) {
            buf_add_lit(out, ",\"parameters\":");
            json_from_bson_array(out, e.value);
        }
    }
    buf_free(&bson);
}

void sql_record(const sql_request *q) {
    const char *operation = q->container && q->status < 400 ? operation_of(q) : NULL;
    buf line = buf_init(4 * RECORDING_LINE_BYTES);
    if (!operation || !recording_choose(q->op.now_s)) {
        return;
    }
    buf_addf(&line, "{\"time\":%ld,\"operation\":\"%s\"", (long)q->op.now_s, operation);
    add_text(&line, "database", q->container->database_id);
    add_text(&line, "container", q->container->id);
    if (q->route.kind == SQL_ITEM && !q->route.child_by_rid) {
        add_text(&line, "id", q->route.child);
    }
    if (q->key_given && !q->container->key.typed) {
        add_key(&line, q);
    }
    if (sql_is_query(q)) {
        add_query(&line, q);
    }
    buf_addf(&line, ",\"charge\":%.2f,\"count\":%lu}\n", q->op.charge_ru, (unsigned long)recording_count());
    if (buf_ok(&line)) {
        recording_write(buf_view(&line));
    }
    buf_free(&line);
}
