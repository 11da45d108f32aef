/* The change feed's mode "all versions and deletes", read from the container's versions log (item/versions.h).
 *
 *   create    {"current":{…},"metadata":{"lsn":7,"crts":1700000000,"operationType":"create"}}
 *   replace   {"current":{…},"metadata":{"lsn":8,"crts":…,"operationType":"replace","previousImageLSN":7}}
 *   delete    {"current":{},"previous":{…},"metadata":{"lsn":9,"crts":…,"operationType":"delete","previousImageLSN":8,
 *              "timeToLiveExpired":false,"id":"1","partitionKey":{"pk":"a"}}}
 *
 * A replace does not include the previous item, as on the service. */
#include "item/versions.h"

#include "api/sql/changes.h"

enum { FRAME_BYTES = 256 /* upper bound of the JSON that surrounds an item */ };

static void write_key_value(buf *out, const pkey_value *value) {
    switch (value->type) {
    case PKEY_STRING:
        json_add_string(out, value->text);
        break;
    case PKEY_NUMBER:
        json_add_double(out, value->number);
        break;
    case PKEY_TRUE:
    case PKEY_FALSE:
        buf_add_slice(out, value->type == PKEY_TRUE ? SLICE_LIT("true") : SLICE_LIT("false"));
        break;
    default:
        buf_add_lit(out, "null");
    }
}

/* Writes the key as an object by property name; a nested property by its path. Undefined values are left out. */
static void write_key(buf *out, const pkey_definition *definition, const pkey *key) {
    bool any = false;
    buf_add_byte(out, '{');
    for (size_t i = 0; i < key->n; i++) {
        const doc_path *path = &definition->paths[i];
        if (key->values[i].type == PKEY_UNDEFINED) {
            continue;
        }
        if (any) {
            buf_add_byte(out, ',');
        }
        any = true;
        json_add_string(out, path->steps_n == 1 ? path->steps[0] : slice_skip(path->text, 1));
        buf_add_byte(out, ':');
        write_key_value(out, &key->values[i]);
    }
    buf_add_byte(out, '}');
}

static void write_deleted(sql_changes *f, const logged_version *v) {
    const container *c = f->q->container;
    buf *out = &f->body;
    bson_iter_t id;
    pkey key;
    buf_add_slice(out, v->entry.expired ? SLICE_LIT(",\"timeToLiveExpired\":true") : SLICE_LIT(",\"timeToLiveExpired\":false"));
    if (doc_find_key(v->body, SLICE_LIT("id"), &id) && pkey_extract(&f->q->op, v->body, &c->key, &key) == OK) {
        buf_add_lit(out, ",\"id\":");
        json_add_string(out, doc_text(&id));
        buf_add_lit(out, ",\"partitionKey\":");
        write_key(out, &c->key, &key);
    }
}

static void write_version(sql_changes *f, const logged_version *v) {
    static const char *const kinds[] = {[VERSION_CREATE] = "create", [VERSION_REPLACE] = "replace", [VERSION_DELETE] = "delete"};
    buf *out = &f->body;
    buf_add_slice(out, v->entry.kind == VERSION_DELETE ? SLICE_LIT("{\"current\":{},\"previous\":") : SLICE_LIT("{\"current\":"));
    sql_write_item(out, f->q->container, v->body, &v->head);
    buf_addf(out, ",\"metadata\":{\"lsn\":%lu,\"crts\":%u,\"operationType\":\"%s\"", (unsigned long)v->lsn, v->entry.ts,
             kinds[v->entry.kind]);
    if (v->entry.kind != VERSION_CREATE) {
        buf_addf(out, ",\"previousImageLSN\":%lu", (unsigned long)v->entry.previous_lsn);
    }
    if (v->entry.kind == VERSION_DELETE) {
        write_deleted(f, v);
    }
    buf_add_lit(out, "}}");
}

static bool add_version(void *context, const logged_version *v) {
    sql_changes *f = context;
    if (!sql_changes_fits(f, v->lsn, v->body.n + FRAME_BYTES)) {
        return false;
    }
    if (f->count++) {
        buf_add_byte(&f->body, ',');
    }
    write_version(f, v);
    f->last = v->lsn;
    return true;
}

err sql_versions_begin(sql_changes *f) {
    if (sql_get(f->q, FIELD_IF_NONE_MATCH).n == 0) {
        return op_fail(&f->q->op, E_BAD_REQUEST,
                       "FullFidelity Change Feed must have valid If-None-Match header. You must read the change feed from within the "
                       "retention period.");
    }
    f->call.version = add_version;
    return OK;
}
