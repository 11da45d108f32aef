#include "client/batch_body.h"

#include <bson/bson.h>

#include "client/json.h"
#include "doc/json.h"

static void add_text(buf *out, const char *name, const char *text) {
    if (text) {
        buf_addf(out, ",\"%s\":", name);
        json_add_string(out, slice_str(text));
    }
}

static bool is_text(const char *text) {
    return !text || bson_utf8_validate(text, strlen(text), false);
}

bool client__operation_add(buf *out, const batch_operation *o) {
    if (!is_text(o->id) || !is_text(o->if_match) || (o->body && !json_is_value(slice_str(o->body)))) {
        return false;
    }
    if (out->n) {
        buf_add_byte(out, ',');
    }
    buf_addf(out, "{\"operationType\":\"%s\"", o->kind);
    add_text(out, "id", o->id);
    add_text(out, "ifMatch", o->if_match);
    if (o->key.n) {
        buf_add_lit(out, ",\"partitionKey\":");
        json_add_string(out, o->key);
    }
    if (o->body) {
        buf_add_lit(out, ",\"resourceBody\":");
        buf_add_slice(out, slice_str(o->body));
    }
    buf_add_byte(out, '}');
    return true;
}
