/* The new container: the source's settings with another key, and its scripts. */
#include <stdlib.h>

#include "doc/json.h"
#include "tool/options.h"
#include "tool/rekey_int.h"

/* How long the log keeps versions: a command that was stopped can go on within a day. */
enum { LOG_MINUTES = 24 * 60 };

static bool tell(const tesela_error *error) {
    endpoint_tell("rekey", error);
    return false;
}

/* ---- definitions ---- */

static bool to_bson(slice json, buf *bson) {
    json_root root;
    buf_clear(bson);
    return json_to_bson(json, NULL, bson, &root, NULL) == OK && root == JSON_OBJECT;
}

static bool read_definition(tesela_container *k, buf *bson, tesela_error *error) {
    tesela_response *response;
    if (tesela_container_read(k, &response, error) != TESELA_OK) {
        return false;
    }
    size_t n;
    const char *body = tesela_response_body(response, &n);
    bool good = to_bson(slice_of(body, n), bson);
    tesela_response_free(response);
    return good;
}

/* What may differ between the two containers is left out: names, key, the log's policy, and what the server adds. */
static void add_settings(bson_t *out, slice definition) {
    bson_t all;
    if (bson_init_static(&all, (const uint8_t *)definition.p, definition.n)) {
        bson_copy_to_excluding_noinit(&all, out, "id", "partitionKey", "changeFeedPolicy", "_rid", "_self", "_etag", "_ts", "_docs",
                                      "_sprocs", "_triggers", "_udfs", "_conflicts", NULL);
    }
}

static void add_member(bson_t *out, slice definition, const char *name) {
    bson_iter_t it;
    if (doc_find_key(definition, slice_str(name), &it)) {
        bson_append_iter(out, name, -1, &it);
    }
}

static void add_policy(bson_t *out, int minutes) {
    bson_t policy;
    bson_append_document_begin(out, "changeFeedPolicy", -1, &policy);
    bson_append_int32(&policy, "retentionDuration", -1, minutes);
    bson_append_document_end(out, &policy);
}

static size_t add_key(bson_t *out, const char *paths) {
    bson_t key, list;
    size_t n = 0;
    bson_append_document_begin(out, "partitionKey", -1, &key);
    bson_append_array_begin(&key, "paths", -1, &list);
    for (slice rest = slice_str(paths); rest.n; n++) {
        const char *comma = memchr(rest.p, ',', rest.n);
        slice path = slice_of(rest.p, comma ? (size_t)(comma - rest.p) : rest.n);
        rest = slice_skip(rest, path.n + (comma ? 1 : 0));
        char index[16];
        snprintf(index, sizeof index, "%zu", n);
        path = slice_trim(path);
        bson_append_utf8(&list, index, -1, path.p, (int)path.n);
    }
    bson_append_array_end(&key, &list);
    bson_append_utf8(&key, "kind", -1, n > 1 ? "MultiHash" : "Hash", -1);
    bson_append_int32(&key, "version", -1, 2);
    bson_append_document_end(out, &key);
    return n;
}

static void write_json(bson_t *definition, buf *out) {
    json_from_bson(out, slice_of(bson_get_data(definition), definition->len));
    buf_add_byte(out, '\0');
    bson_destroy(definition);
}

bool rekey_has_key(const key_paths *key, const char *paths) {
    slice rest = slice_str(paths);
    size_t n = 0;
    for (; rest.n; n++) {
        const char *comma = memchr(rest.p, ',', rest.n);
        slice path = slice_of(rest.p, comma ? (size_t)(comma - rest.p) : rest.n);
        rest = slice_skip(rest, path.n + (comma ? 1 : 0));
        if (n >= key->n || !slice_eq(slice_trim(path), key->list[n].text)) {
            return false;
        }
    }
    return n == key->n;
}

/* ---- making it ---- */

static bool replace(tesela_container *k, bson_t *definition, tesela_error *error) {
    buf json = buf_init(BUF_NO_LIMIT);
    write_json(definition, &json);
    bool good = tesela_container_replace(k, json.p, NULL, error) == TESELA_OK;
    buf_free(&json);
    return good;
}

/* Replaces the policy only: 0: none. */
static bool set_policy(tesela_container *k, slice definition, int minutes, tesela_error *error) {
    bson_t changed = BSON_INITIALIZER;
    add_member(&changed, definition, "id");
    add_member(&changed, definition, "partitionKey");
    add_settings(&changed, definition);
    if (minutes) {
        add_policy(&changed, minutes);
    }
    return replace(k, &changed, error);
}

static bool make_target(rekey *r, slice source, const char *paths) {
    tesela_throughput throughput = {0};
    tesela_error error;
    bson_t definition = BSON_INITIALIZER;
    buf json = buf_init(BUF_NO_LIMIT);
    tesela_status status = tesela_container_throughput(r->from, &throughput, &error);
    if (status != TESELA_OK && status != TESELA_NOT_FOUND) {
        bson_destroy(&definition);
        return tell(&error);
    }
    bson_append_utf8(&definition, "id", -1, tesela_container_name(r->to), -1);
    size_t n = add_key(&definition, paths);
    add_settings(&definition, source);
    add_member(&definition, source, "changeFeedPolicy");
    write_json(&definition, &json);
    if (n < 1 || n > ITEM_KEY_PATHS) {
        fprintf(stderr, "tesela rekey: --key must be one to three paths such as /city or /tenant,/user, not '%s'.\n", paths);
        buf_free(&json);
        return false;
    }
    status = tesela_container_create(r->client, tesela_container_database(r->to), json.p, status == TESELA_OK ? &throughput : NULL, NULL,
                                     &error);
    buf_free(&json);
    return status == TESELA_OK || status == TESELA_CONFLICT || tell(&error);
}

static bool is_empty(tesela_container *k) {
    tesela_cursor *cursor;
    tesela_error error;
    const char *row;
    bool empty = tesela_items(k, 1, NULL, &cursor, &error) == TESELA_OK && tesela_cursor_next(cursor, &row, NULL, &error) == TESELA_DONE;
    tesela_cursor_close(cursor);
    return empty;
}

/* One that is there may be of a command that was stopped before its journal was made. */
static bool check_target(const rekey *r, const key_paths *key, const char *paths) {
    if (rekey_has_key(key, paths) && is_empty(r->to)) {
        return true;
    }
    fprintf(stderr,
            "tesela rekey: there is a container %s already, with items or another key, and no journal of it here. --undo removes it; --as "
            "names another one.\n",
            tesela_container_name(r->to));
    return false;
}

bool rekey_make(rekey *r, const char *paths) {
    buf source = buf_init(BUF_NO_LIMIT), target = buf_init(BUF_NO_LIMIT);
    tesela_error error = {0};
    key_paths key;
    arena memory = arena_init();
    bool good = (read_definition(r->from, &source, &error) || tell(&error)) && make_target(r, buf_view(&source), paths) &&
                (read_definition(r->to, &target, &error) || tell(&error)) && item_key_paths_in(buf_view(&target), &memory, &key) &&
                check_target(r, &key, paths);
    bson_iter_t it;
    bool logged = good && doc_find_key(buf_view(&source), SLICE_LIT("changeFeedPolicy"), &it);
    good = good && (logged || set_policy(r->from, buf_view(&source), LOG_MINUTES, &error) || tell(&error));
    buf_free(&source);
    buf_free(&target);
    arena_free(&memory);
    return good;
}

/* ---- what changes meanwhile ---- */

static bool same_settings(slice a, slice b) {
    bson_t x = BSON_INITIALIZER, y = BSON_INITIALIZER;
    add_settings(&x, a);
    add_settings(&y, b);
    bool same = bson_equal(&x, &y);
    bson_destroy(&x);
    bson_destroy(&y);
    return same;
}

static bool put_settings(rekey *r, slice source, slice target, tesela_error *error) {
    bson_t changed = BSON_INITIALIZER;
    add_member(&changed, target, "id");
    add_member(&changed, target, "partitionKey");
    add_settings(&changed, source);
    add_member(&changed, target, "changeFeedPolicy");
    return replace(r->to, &changed, error);
}

static bool put_script(rekey *r, tesela_script_kind kind, slice json, tesela_error *error) {
    buf bson = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
    bson_t all, bare = BSON_INITIALIZER;
    bson_iter_t it;
    bool good = to_bson(json, &bson) && doc_find_key(buf_view(&bson), SLICE_LIT("id"), &it) && BSON_ITER_HOLDS_UTF8(&it) &&
                bson_init_static(&all, (const uint8_t *)bson.p, bson.n);
    if (good) {
        bson_copy_to_excluding_noinit(&all, &bare, "_rid", "_self", "_etag", "_ts", NULL);
        good = tesela_script_define(r->to, kind, bson_iter_utf8(&it, NULL), (write_json(&bare, &text), text.p), NULL, error) == TESELA_OK;
    } else {
        bson_destroy(&bare);
    }
    buf_free(&bson);
    buf_free(&text);
    return good;
}

static bool copy_scripts(rekey *r, tesela_script_kind kind, tesela_error *error) {
    tesela_cursor *cursor;
    const char *row;
    size_t n;
    tesela_status status = tesela_scripts(r->from, kind, &cursor, error);
    bool good = status == TESELA_OK;
    while (good && (status = tesela_cursor_next(cursor, &row, &n, error)) == TESELA_OK) {
        good = put_script(r, kind, slice_of(row, n), error);
    }
    tesela_cursor_close(cursor);
    return good && status == TESELA_DONE;
}

bool rekey_sync_settings(rekey *r) {
    buf source = buf_init(BUF_NO_LIMIT), target = buf_init(BUF_NO_LIMIT);
    tesela_error error = {0};
    bson_iter_t it;
    bool good = read_definition(r->from, &source, &error) && read_definition(r->to, &target, &error);
    r->expires = good && doc_find_key(buf_view(&source), SLICE_LIT("defaultTtl"), &it);
    good = good && (same_settings(buf_view(&source), buf_view(&target)) || put_settings(r, buf_view(&source), buf_view(&target), &error));
    for (unsigned kind = TESELA_PROCEDURE; good && kind <= TESELA_FUNCTION; kind++) {
        good = copy_scripts(r, (tesela_script_kind)kind, &error);
    }
    buf_free(&source);
    buf_free(&target);
    return good || tell(&error);
}

bool rekey_end_log(tesela_container *source, tesela_container *target) {
    buf one = buf_init(BUF_NO_LIMIT), other = buf_init(BUF_NO_LIMIT);
    tesela_error error = {0};
    bson_iter_t it;
    bool good = read_definition(source, &one, &error) && read_definition(target, &other, &error);
    bool ours = good && doc_find_key(buf_view(&one), SLICE_LIT("changeFeedPolicy"), &it) &&
                !doc_find_key(buf_view(&other), SLICE_LIT("changeFeedPolicy"), &it);
    good = good && (!ours || set_policy(source, buf_view(&one), 0, &error));
    buf_free(&one);
    buf_free(&other);
    return good || tell(&error);
}
