#include "account/settings.h"

#include <math.h>

#include "base/limits.h"
#include "partition/murmur.h"

err settings_check_name(op *o, slice name) {
    if (name.n == 0 || name.n > LIMIT_NAME_BYTES) {
        return op_fail(o, E_BAD_REQUEST,
                       "The input name '%.*s' is invalid. Ensure to provide a unique non-empty string less than '%d' characters.",
                       slice_shown(name), name.p ? name.p : "", LIMIT_NAME_BYTES);
    }
    if (memchr(name.p, 0, name.n)) {
        return op_fail(o, E_BAD_REQUEST, "The resource name presented contains an invalid character: a zero byte.");
    }
    static const char banned[] = {'/', '\\', '#', '?'};
    for (size_t i = 0; i < sizeof banned; i++) {
        if (memchr(name.p, banned[i], name.n)) {
            return op_fail(o, E_BAD_REQUEST, "The resource name presented contains invalid character '%c'.", banned[i]);
        }
    }
    if (name.p[name.n - 1] == ' ') {
        return op_fail(o, E_BAD_REQUEST, "The resource name presented contains invalid character ' ' at its end.");
    }
    return OK;
}

/* ---- partition key ---- */

static err read_kind(op *o, slice bson, settings_rules rules, pkey_definition *key) {
    bson_iter_t it;
    slice kind = doc_find_key(bson, SLICE_LIT("kind"), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_LIT("Hash");
    bool multi = slice_eq_nocase(kind, SLICE_LIT("MultiHash"));
    if (!slice_eq_nocase(kind, SLICE_LIT("Hash")) && !(multi && rules.hierarchical_allowed)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The 'kind' value '%.*s' specified in the partition key definition is invalid. Please choose 'Hash' partition type",
                       slice_shown(kind), kind.p);
    }
    key->kind = multi ? PKEY_MULTI_HASH : PKEY_HASH;
    bool given = doc_find_key(bson, SLICE_LIT("version"), &it) && BSON_ITER_HOLDS_NUMBER(&it);
    double version = given ? bson_iter_as_double(&it) : multi ? 2 : 1;
    if (version != 2 && (version != 1 || multi)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The 'version' of the partition key definition is invalid: it may be 1 or 2, and 2 for MultiHash.");
    }
    key->version = (uint8_t)version;
    return OK;
}

/* The position after the step that begins at text.p[at], or that of the first character that may not be there. */
static size_t pass_step(slice text, size_t at, bool *good_out) {
    size_t from = at;
    char quote = at < text.n && (text.p[at] == '"' || text.p[at] == '\'') ? text.p[at++] : 0;
    while (at < text.n && text.p[at] != (quote ? quote : '/')) {
        unsigned char c = (unsigned char)text.p[at];
        if (!quote && (c <= ' ' || strchr("*?[]", c))) {
            *good_out = false;
            return at;
        }
        at += quote && c == '\\' && at + 1 < text.n ? 2 : 1;
    }
    *good_out = at > from && (!quote || at < text.n);
    return quote && at < text.n ? at + 1 : at;
}

/* Where a path is no partition key path; its length: it is one. */
static size_t path_fails_at(slice path) {
    bool good = path.n > 1;
    size_t at = 0;
    while (good && at < path.n) {
        if (path.p[at] != '/') {
            return at;
        }
        at = pass_step(path, at + 1, &good);
    }
    return good ? path.n : at < path.n ? at : path.n - 1;
}

static err refuse_path(op *o, slice path) {
    return op_fail(o, E_BAD_REQUEST,
                   "The partition key component definition path '%.*s' could not be accepted, failed near position '%zu'. Partition key "
                   "paths must contain only valid characters and not contain a trailing slash or wildcard character.",
                   slice_shown(path), path.p, path_fails_at(path));
}

err settings_check_new(op *o, const container *c) {
    for (size_t i = 0; i < c->key.n; i++) {
        if (path_fails_at(c->key.paths[i].text) != c->key.paths[i].text.n) {
            return refuse_path(o, c->key.paths[i].text);
        }
    }
    return OK;
}

static err read_key_paths(op *o, const bson_iter_t *list, pkey_definition *key) {
    bson_iter_t each;
    unsigned most = key->typed && key->kind == PKEY_HASH ? LIMIT_KEY_COMPONENTS : LIMIT_KEY_LEVELS;
    if (!BSON_ITER_HOLDS_ARRAY(list) || !bson_iter_recurse(list, &each)) {
        return op_fail(o, E_BAD_REQUEST, "The partition key definition's 'paths' must be an array.");
    }
    while (bson_iter_next(&each)) {
        if (!BSON_ITER_HOLDS_UTF8(&each)) {
            return op_fail(o, E_BAD_REQUEST, "One of the specified inputs is invalid: a path of the partition key must be a string.");
        }
        if (key->n == most) {
            return op_fail(o, E_BAD_REQUEST, "Too many partition key paths: there may be %u at most.", most);
        }
        if (doc_path_parse(o->arena, arena_copy(o->arena, doc_text(&each)), &key->paths[key->n]) != OK) {
            return refuse_path(o, doc_text(&each));
        }
        key->n++;
    }
    if (key->n == 0 || (key->kind == PKEY_HASH && key->n > 1 && !key->typed)) {
        return op_fail(o, E_BAD_REQUEST, "Too many partition key paths (%u): 'Hash' takes one, 'MultiHash' up to %d.", key->n,
                       LIMIT_KEY_LEVELS);
    }
    return OK;
}

static bool flag_in(slice bson, const char *name) {
    bson_iter_t it;
    return bson.n && doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_BOOL(&it) && bson_iter_bool(&it);
}

/* The types of the components, if keys are hashed by Cassandra's tokens. */
static void read_tokens(slice rows, pkey_definition *key) {
    doc_element list, e;
    doc_walk w;
    size_t n = 0;
    if (!rows.n || !doc_find_member(rows, SLICE_LIT("tokens"), &list) || list.type != BSON_TYPE_ARRAY) {
        return;
    }
    for (doc_walk_init(&w, list.value); doc_walk_next(&w, &e) && n < LIMIT_KEY_COMPONENTS;) {
        key->token_kinds[n++] = e.type == BSON_TYPE_INT32 ? (uint8_t)doc_load_i32(e.value.p) : 0;
    }
    key->tokens = true;
}

static err read_partition_key(op *o, slice properties, settings_rules rules, container *c) {
    bson_iter_t it, paths;
    c->key = (pkey_definition){.kind = PKEY_HASH, .version = 2, .typed = flag_in(rules.rows, "typed")};
    read_tokens(rules.rows, &c->key);
    if (!doc_find_key(properties, SLICE_LIT("partitionKey"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(&it)) {
        return op_fail(o, E_BAD_REQUEST, "The partition key definition must be an object.");
    }
    uint32_t n;
    const uint8_t *p;
    bson_iter_document(&it, &n, &p);
    slice definition = slice_of(p, n);
    TRY(read_kind(o, definition, rules, &c->key));
    if (c->key.typed && c->key.version != 2) {
        return op_fail(o, E_BAD_REQUEST, "Typed partition keys need version 2 of the partition key definition.");
    }
    if (!doc_find_key(definition, SLICE_LIT("paths"), &paths)) {
        return op_fail(o, E_BAD_REQUEST, "The partition key definition has no 'paths'.");
    }
    return read_key_paths(o, &paths, &c->key);
}

/* ---- rows ---- */

static err read_rows(op *o, slice rows, container *c) {
    doc_element key, ttl, bytes;
    bool limited = rows.n && doc_find_member(rows, SLICE_LIT("rangeBytes"), &bytes) && bytes.type == BSON_TYPE_INT64;
    c->range_bytes = limited ? (uint64_t)doc_load_i64(bytes.value.p) : 0;
    c->row = (row_definition){0};
    c->ttl_member = rows.n && doc_find_member(rows, SLICE_LIT("ttl"), &ttl) && ttl.type == BSON_TYPE_UTF8
                        ? arena_copy(o->arena, doc_element_text(&ttl))
                        : SLICE_EMPTY;
    c->clustered = flag_in(rows, "clustered");
    c->ordered = !c->clustered || flag_in(rows, "ordered");
    if (rows.n == 0 || !doc_find_member(rows, SLICE_LIT("key"), &key)) {
        return OK;
    }
    return key.type == BSON_TYPE_ARRAY ? row_definition_read(o, key.value, &c->row)
                                       : op_fail(o, E_BAD_REQUEST, "The row key definition must be an array.");
}

/* ---- ttl, unique keys ---- */

static err read_ttl(op *o, slice properties, container *c) {
    bson_iter_t it;
    c->ttl = TTL_OFF;
    if (!doc_find_key(properties, SLICE_LIT("defaultTtl"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    double ttl = BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_double(&it) : 0;
    if (ttl != -1 && !(ttl >= 1 && ttl <= INT32_MAX && ttl == floor(ttl))) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The input DefaultTimeToLive is invalid. Ensure to provide a nonzero positive integer less than or equal to '%d', or -1 "
            "which means never expire.",
            INT32_MAX);
    }
    c->ttl = (int32_t)ttl;
    return OK;
}

static slice bson_slice(const bson_iter_t *array) {
    uint32_t n = 0;
    const uint8_t *p = NULL;
    bson_iter_array(array, &n, &p);
    return slice_of(p, n);
}

static err read_expiry(op *o, const bson_iter_t *each, date_expiry *expiry) {
    bson_iter_t index, seconds;
    uint32_t n;
    const uint8_t *p;
    if (!BSON_ITER_HOLDS_DOCUMENT(each) || !bson_iter_recurse(each, &index) || !bson_iter_recurse(each, &seconds) ||
        !bson_iter_find(&index, "index") || !BSON_ITER_HOLDS_DOCUMENT(&index) || !bson_iter_find(&seconds, "seconds") ||
        !BSON_ITER_HOLDS_NUMBER(&seconds)) {
        return op_fail(o, E_BAD_REQUEST, "An expiry must have an index and a number of seconds.");
    }
    bson_iter_document(&index, &n, &p);
    expiry->after_s = bson_iter_as_int64(&seconds);
    return mql_index_parse(o, arena_copy(o->arena, slice_of(p, n)), &expiry->index);
}

/* For front ends only: "expiries": [{"index": specification of a key index, "seconds": number}]. */
static err read_expiries(op *o, slice properties, container *c) {
    bson_iter_t it, each;
    if (!c->row.n || !doc_find_key(properties, SLICE_LIT("expiries"), &it) || !BSON_ITER_HOLDS_ARRAY(&it) ||
        !bson_iter_recurse(&it, &each)) {
        return OK;
    }
    date_expiry *list = arena_array(o->arena, date_expiry, LIMIT_INDEX_KEYS);
    c->expiries = list;
    while (bson_iter_next(&each)) {
        if (c->expiries_n == LIMIT_INDEX_KEYS) {
            return op_fail(o, E_BAD_REQUEST, "A container may have at most %d expiries.", LIMIT_INDEX_KEYS);
        }
        TRY(read_expiry(o, &each, &list[c->expiries_n++]));
    }
    /* Negative: items do not expire by their age. The number differs with the expiries, so a sweep notices that its settings are old. */
    uint64_t hash = hash_murmur3_128(bson_slice(&it)).h1;
    c->ttl = c->expiries_n ? -2 - (int32_t)(hash & 0x3FFFFFFF) : c->ttl;
    return OK;
}

/* Reads the retention of versions, in minutes. SDKs send 0 for "off": no versions log. */
static err read_change_feed(op *o, slice properties, container *c) {
    bson_iter_t it, inner;
    c->version_minutes = 0;
    if (!doc_find_key(properties, SLICE_LIT("changeFeedPolicy"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(&it) || !bson_iter_recurse(&it, &inner)) {
        return op_fail(o, E_BAD_REQUEST, "The change feed policy must be an object.");
    }
    if (!bson_iter_find(&inner, "retentionDuration") || BSON_ITER_HOLDS_NULL(&inner)) {
        return OK;
    }
    double minutes = BSON_ITER_HOLDS_NUMBER(&inner) ? bson_iter_as_double(&inner) : -1;
    if (!(minutes >= 0 && minutes <= LIMIT_VERSION_MINUTES && minutes == floor(minutes))) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The retention duration in the change feed policy is invalid. Ensure to provide a number of whole minutes from 0 to %d.",
            LIMIT_VERSION_MINUTES);
    }
    c->version_minutes = (uint32_t)minutes;
    return OK;
}

static err read_unique_paths(op *o, const bson_iter_t *member, unique_key *key) {
    bson_iter_t inner, each;
    if (!BSON_ITER_HOLDS_DOCUMENT(member) || !bson_iter_recurse(member, &inner) || !bson_iter_find(&inner, "paths") ||
        !BSON_ITER_HOLDS_ARRAY(&inner) || !bson_iter_recurse(&inner, &each)) {
        return op_fail(o, E_BAD_REQUEST, "A unique key must have an array of 'paths'.");
    }
    doc_path *paths = arena_array(o->arena, doc_path, LIMIT_UNIQUE_PATHS);
    key->paths = paths;
    while (bson_iter_next(&each)) {
        if (!BSON_ITER_HOLDS_UTF8(&each) || key->n == LIMIT_UNIQUE_PATHS) {
            return op_fail(o, E_BAD_REQUEST, "A unique key has more than %d paths, or one that is not a string.", LIMIT_UNIQUE_PATHS);
        }
        TRY(doc_path_parse(o->arena, arena_copy(o->arena, doc_text(&each)), &paths[key->n]));
        key->n++;
    }
    return key->n ? OK : op_fail(o, E_BAD_REQUEST, "A unique key must have at least one path.");
}

/* For front ends only: {"paths": […], "index": specification of a key index, "dropped": true}. */
static err read_unique_index(op *o, const bson_iter_t *each, unique_key *key) {
    bson_iter_t member;
    uint32_t n;
    const uint8_t *p;
    key->dropped = bson_iter_recurse(each, &member) && bson_iter_find(&member, "dropped");
    if (!bson_iter_recurse(each, &member) || !bson_iter_find(&member, "index") || !BSON_ITER_HOLDS_DOCUMENT(&member)) {
        return OK;
    }
    bson_iter_document(&member, &n, &p);
    return mql_index_parse(o, arena_copy(o->arena, slice_of(p, n)), &key->of);
}

static err read_unique_keys(op *o, slice properties, container *c) {
    bson_iter_t it, list, each;
    if (!doc_find_key(properties, SLICE_LIT("uniqueKeyPolicy"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(&it) || !bson_iter_recurse(&it, &list)) {
        return op_fail(o, E_BAD_REQUEST, "The unique key policy must be an object.");
    }
    if (!bson_iter_find(&list, "uniqueKeys")) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&list) || !bson_iter_recurse(&list, &each)) {
        return op_fail(o, E_BAD_REQUEST, "The unique key policy's 'uniqueKeys' must be an array.");
    }
    unique_key *keys = arena_array(o->arena, unique_key, LIMIT_UNIQUE_SLOTS);
    size_t in_use = 0;
    c->unique_keys = keys;
    while (bson_iter_next(&each)) {
        if (c->unique_keys_n == LIMIT_UNIQUE_SLOTS) {
            return op_fail(o, E_BAD_REQUEST,
                           "Too many unique keys of the container were dropped: make a new container and copy the items.");
        }
        TRY(read_unique_paths(o, &each, &keys[c->unique_keys_n]));
        TRY(c->row.n ? read_unique_index(o, &each, &keys[c->unique_keys_n]) : OK);
        in_use += !keys[c->unique_keys_n++].dropped;
        if (in_use > LIMIT_UNIQUE_KEYS) {
            return op_fail(o, E_BAD_REQUEST, "A container may have at most %d unique keys.", LIMIT_UNIQUE_KEYS);
        }
    }
    return OK;
}

/* ---- the canonical form ---- */

static void copy_member(bson_t *into, slice from, const char *name) {
    bson_iter_t it;
    if (doc_find_key(from, slice_str(name), &it) && !BSON_ITER_HOLDS_NULL(&it)) {
        bson_append_iter(into, name, -1, &it);
    }
}

static slice member_document(slice from, const char *name) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (doc_find_key(from, slice_str(name), &it) && BSON_ITER_HOLDS_DOCUMENT(&it)) {
        bson_iter_document(&it, &n, &p);
    }
    return slice_of(p, n);
}

/* Copies the partition key as given, adding the default kind if it names none. */
static void add_partition_key(bson_t *settings, slice given) {
    bson_t definition;
    bson_append_document_begin(settings, "partitionKey", -1, &definition);
    static const char *const names[] = {"paths", "kind", "version", "systemKey"};
    bson_iter_t it;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], "kind") == 0 && !doc_find_key(given, SLICE_LIT("kind"), &it)) {
            bson_append_utf8(&definition, "kind", -1, "Hash", -1);
        }
        copy_member(&definition, given, names[i]);
    }
    bson_append_document_end(settings, &definition);
}

static void add_defaults(bson_t *settings, slice properties) {
    bson_t inner;
    if (member_document(properties, "conflictResolutionPolicy").n) {
        copy_member(settings, properties, "conflictResolutionPolicy");
    } else {
        bson_append_document_begin(settings, "conflictResolutionPolicy", -1, &inner);
        bson_append_utf8(&inner, "mode", -1, "LastWriterWins", -1);
        bson_append_utf8(&inner, "conflictResolutionPath", -1, "/_ts", -1);
        bson_append_utf8(&inner, "conflictResolutionProcedure", -1, "", -1);
        bson_append_document_end(settings, &inner);
    }
    if (member_document(properties, "geospatialConfig").n) {
        copy_member(settings, properties, "geospatialConfig");
    } else {
        bson_append_document_begin(settings, "geospatialConfig", -1, &inner);
        bson_append_utf8(&inner, "type", -1, "Geography", -1);
        bson_append_document_end(settings, &inner);
    }
    static const char *const others[] = {"computedProperties",        "vectorEmbeddingPolicy", "fullTextPolicy",
                                         "changeFeedPolicy",          "analyticalStorageTtl",  "clientEncryptionPolicy",
                                         "materializedViewDefinition"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        copy_member(settings, properties, others[i]);
    }
}

slice settings_rows(slice settings) {
    return member_document(settings, "rows");
}

static void make_canonical(op *o, slice properties, slice rows, container *c) {
    bson_t settings = BSON_INITIALIZER;
    bson_append_utf8(&settings, "id", -1, c->id.p, (int)c->id.n);
    index_policy_canonical(&settings, member_document(properties, "indexingPolicy"), &c->index);
    if (c->key.n) {
        add_partition_key(&settings, member_document(properties, "partitionKey"));
    }
    copy_member(&settings, properties, "defaultTtl");
    if (c->expiries_n) {
        copy_member(&settings, properties, "expiries");
    }
    copy_member(&settings, properties, "uniqueKeyPolicy");
    add_defaults(&settings, properties);
    bson_t inner;
    if (rows.n && bson_init_static(&inner, (const uint8_t *)rows.p, rows.n)) {
        bson_append_document(&settings, "rows", -1, &inner);
    }
    c->settings = arena_copy(o->arena, slice_of(bson_get_data(&settings), settings.len));
    bson_destroy(&settings);
}

slice settings_indexing_policy(arena *a, const container *c) {
    return index_policy_source(a, c->settings, settings_rows(c->settings));
}

/* Uses the policy in its canonical form, the same one as the index uses, so that both yield the same terms (item/index_entries.c). Stored
 * settings are already canonical. */
static err read_index(op *o, slice properties, slice rows, container *c) {
    slice given = index_policy_source(o->arena, properties, rows);
    TRY(index_policy_parse(o, given, c->key.paths, c->key.n, &c->index));
    make_canonical(o, properties, rows, c);
    slice kept = settings_indexing_policy(o->arena, c);
    return slice_eq(given, kept) ? OK : index_policy_parse(o, kept, c->key.paths, c->key.n, &c->index);
}

err settings_read(op *o, slice properties, settings_rules rules, container *c) {
    bson_iter_t it;
    if (!doc_find_key(properties, SLICE_LIT("id"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return op_fail(o, E_BAD_REQUEST, "The input content is invalid because the required properties - 'id; ' - are missing");
    }
    c->id = arena_copy(o->arena, doc_text(&it));
    TRY(settings_check_name(o, c->id));
    TRY(read_partition_key(o, properties, rules, c));
    TRY(read_rows(o, rules.rows, c));
    TRY(read_ttl(o, properties, c));
    TRY(read_expiries(o, properties, c));
    TRY(read_change_feed(o, properties, c));
    TRY(read_unique_keys(o, properties, c));
    if (doc_find_key(properties, SLICE_LIT("indexingPolicy"), &it) && !BSON_ITER_HOLDS_DOCUMENT(&it) && !BSON_ITER_HOLDS_NULL(&it)) {
        return op_fail(o, E_BAD_REQUEST, "The indexing policy must be an object.");
    }
    return read_index(o, properties, rules.rows, c);
}

/* ---- API and memo ---- */

err settings_set_api(op *o, slice api, container *c) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    c->api = arena_copy(&c->memory->arena, api.n ? api : SLICE_LIT("sql"));
    bool good = api.n <= LIMIT_API_BYTES;
    for (size_t i = 0; good && i < api.n; i++) {
        good = api.p[i] && strchr(allowed, api.p[i]);
    }
    return good ? OK : op_fail(o, E_BAD_REQUEST, "An API's name has up to %d small letters and digits.", LIMIT_API_BYTES);
}

err settings_set_memo(op *o, slice memo, container *c) {
    bson_t document;
    if (memo.n > LIMIT_MEMO_BYTES) {
        return op_fail(o, E_TOO_LARGE, "The description of the container has %zu bytes; it may have %d. Use fewer or shorter names.",
                       memo.n, LIMIT_MEMO_BYTES);
    }
    if (memo.n && (!bson_init_static(&document, (const uint8_t *)memo.p, memo.n) || !bson_validate(&document, BSON_VALIDATE_NONE, NULL))) {
        return op_fail(o, E_BAD_REQUEST, "The description of the container is no BSON document.");
    }
    c->memo = arena_copy(&c->memory->arena, memo);
    return OK;
}

slice settings_renamed(arena *a, slice settings, slice id) {
    bson_t renamed = BSON_INITIALIZER;
    bson_iter_t it;
    bson_append_utf8(&renamed, "id", -1, id.p, (int)id.n);
    if (bson_iter_init_from_data(&it, (const uint8_t *)settings.p, settings.n)) {
        while (bson_iter_next(&it)) {
            if (strcmp(bson_iter_key(&it), "id") != 0) {
                bson_append_iter(&renamed, bson_iter_key(&it), -1, &it);
            }
        }
    }
    slice result = arena_copy(a, slice_of(bson_get_data(&renamed), renamed.len));
    bson_destroy(&renamed);
    return result;
}

/* ---- replacing ---- */

static bool same_paths(const doc_path *a, size_t a_n, const doc_path *b, size_t b_n) {
    bool same = a_n == b_n;
    for (size_t i = 0; same && i < a_n; i++) {
        same = slice_eq(a[i].text, b[i].text);
    }
    return same;
}

err settings_check_replace(op *o, const container *before, const container *after) {
    if (!slice_eq(before->id, after->id)) {
        return op_fail(o, E_BAD_REQUEST, "A container's id cannot be changed.");
    }
    if (before->key.kind != after->key.kind || before->key.version != after->key.version ||
        !same_paths(before->key.paths, before->key.n, after->key.paths, after->key.n)) {
        return op_fail(o, E_BAD_REQUEST, "Document collection partition key cannot be changed.");
    }
    if (before->key.typed != after->key.typed || before->clustered != after->clustered || before->ordered != after->ordered ||
        !row_definition_same(&before->row, &after->row)) {
        return op_fail(o, E_BAD_REQUEST, "A container's row key cannot be changed.");
    }
    bool same = before->row.n ? before->unique_keys_n <= after->unique_keys_n : before->unique_keys_n == after->unique_keys_n;
    for (size_t i = 0; same && i < before->unique_keys_n; i++) {
        const unique_key *a = &before->unique_keys[i], *b = &after->unique_keys[i];
        same = b->dropped || (!a->dropped && same_paths(a->paths, a->n, b->paths, b->n));
    }
    if (!same) {
        return op_fail(o, E_FORBIDDEN,
                       "The unique index cannot be modified. To change the unique index, remove the container and re-create a new one.");
    }
    return index_policy_check_replace(o, &before->index, &after->index);
}
