/* GET /_tesela/keys, POST /_tesela/keys/regenerate, POST /_tesela/keys/reload: the account's keys (access/keys.h).
 *
 * Key values are returned only on request, only if the request is signed with the primary key, and only over TLS or on the same
 * machine. */
#include <openssl/crypto.h>

#include "api/admin/admin_int.h"
#include "doc/json.h"

static const char *const sources[] = {[ACCESS_KEYS_WELL_KNOWN] = "well-known", [ACCESS_KEYS_GIVEN] = "flags", [ACCESS_KEYS_FILE] = "file"};

static err check_shown(admin_request *q) {
    if (q->key != ACCESS_KEY_PRIMARY) {
        return op_fail(&q->op, E_FORBIDDEN, "Key values are shown to the primary key alone: sign with it.");
    }
    if (!q->http->tls && !http_peer_is_local(q->http)) {
        return op_fail(&q->op, E_FORBIDDEN, "Key values are sent over https only, or to the same machine.");
    }
    return OK;
}

/* Writes {"kind":…,"set":…,"key":…; `ends` closes the object. */
static void add_key(admin_request *q, access_key key, bool shown, bool ends) {
    char text[ACCESS_KEY_TEXT_BYTES];
    bool set = access_keys_text(q->admin->keys, key, text);
    buf_addf(&q->body, "{\"kind\":\"%s\",\"set\":%s", access_key_names[key], set ? "true" : "false");
    if (shown && set) {
        admin_add_text(&q->body, "key", slice_str(text));
    }
    buf_add(&q->body, "}", ends);
    OPENSSL_cleanse(text, sizeof text);
}

static void write_keys(admin_request *q, bool shown) {
    access_keys *keys = q->admin->keys;
    buf_addf(&q->body, "{\"source\":\"%s\"", sources[access_keys_source(keys)]);
    admin_add(&q->body, "changes", access_keys_changes(keys));
    buf_add_lit(&q->body, ",\"keys\":[");
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        buf_add(&q->body, ",", key != ACCESS_KEY_PRIMARY);
        add_key(q, key, shown, true);
    }
    buf_add_lit(&q->body, "]}\n");
}

err admin_keys_list(admin_request *q) {
    slice show;
    TRY(admin_param(q, "show", &show));
    bool shown = slice_eq_nocase(show, SLICE_LIT("true"));
    TRY(shown ? check_shown(q) : OK);
    write_keys(q, shown);
    return OK;
}

static err refuse(admin_request *q, const char *why) {
    return op_fail(&q->op, E_BAD_REQUEST, "%s. Nothing was changed.", why);
}

static err read_flag(admin_request *q, slice body, const char *name, bool *flag_out) {
    bson_iter_t it;
    bool there = doc_find_key(body, slice_str(name), &it);
    if (there && !BSON_ITER_HOLDS_BOOL(&it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be true or false.", name);
    }
    *flag_out = there && bson_iter_bool(&it);
    return OK;
}

err admin_keys_regenerate(admin_request *q) {
    static const char *const names[] = {"kind", "show"};
    char why[ACCESS_KEYS_WHY_BYTES];
    slice body, kind;
    access_key key;
    bool shown = false;
    TRY(admin_body(q, names, 2, &body));
    TRY(admin_text(q, body, "kind", &kind));
    TRY(read_flag(q, body, "show", &shown));
    if (!access_key_parse(kind, &key)) {
        return op_fail(&q->op, E_BAD_REQUEST, "'kind' must be primary, secondary, primaryReadonly or secondaryReadonly.");
    }
    TRY(shown ? check_shown(q) : OK);
    if (!access_keys_regenerate(q->admin->keys, key, why)) {
        return refuse(q, why);
    }
    add_key(q, key, shown, false);
    admin_add_text(&q->body, "file", slice_str(access_keys_file(q->admin->keys)));
    admin_add(&q->body, "line", (uint64_t)key + 1); /* the whole file is rewritten, one line per key */
    buf_add_lit(&q->body, "}\n");
    return OK;
}

err admin_keys_reload(admin_request *q) {
    char why[ACCESS_KEYS_WHY_BYTES];
    if (!access_keys_reload(q->admin->keys, why)) {
        return refuse(q, why);
    }
    write_keys(q, false);
    return OK;
}
