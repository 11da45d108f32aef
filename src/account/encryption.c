#include "account/encryption.h"

#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/memory.h"

struct encryption_key_node {
    encryption_key *key;
    UT_hash_handle by_name; /* in its database's table; in order of numbers, since keys are neither renamed nor deleted */
};
typedef struct encryption_key_node key_node;

/* ---- objects ---- */

static slice text_in(slice bson, const char *name) {
    bson_iter_t it;
    return doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

static encryption_key *key_new(const rid *database, uint32_t number, slice settings) {
    encryption_key *k = mem_zero(sizeof *k + settings.n);
    k->refs = 1;
    k->number = number;
    k->rid = rid_client_encryption_key(*database, number);
    memcpy(k + 1, settings.p, settings.n);
    k->settings = slice_of(k + 1, settings.n);
    k->id = text_in(k->settings, "id");
    return k;
}

static encryption_key *key_take(encryption_key *k) {
    atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    return k;
}

void encryption_key_give(encryption_key *k) {
    if (k && atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1) {
        free(k);
    }
}

/* ---- the table ---- */

/* A database has few keys: none is found by its rid otherwise. */
static key_node *find_by_rid(const database_node *d, slice text) {
    rid r;
    key_node *node = rid_parse(text, &r) == RID_CLIENT_ENCRYPTION_KEY ? d->encryption_keys : NULL;
    while (node && !rid_equal(&node->key->rid, &r)) {
        node = node->by_name.next;
    }
    return node;
}

static key_node *find(const database_node *d, slice name, bool by_rid) {
    key_node *node = by_rid ? find_by_rid(d, name) : NULL;
    if (!node) {
        HASH_FIND(by_name, d->encryption_keys, name.p, name.n, node);
    }
    return node;
}

static void add(database_node *d, encryption_key *k) {
    key_node *node = mem_zero(sizeof *node);
    node->key = k;
    HASH_ADD_KEYPTR(by_name, d->encryption_keys, k->id.p, k->id.n, node);
}

static void swap(key_node *node, encryption_key *k) {
    encryption_key *before = node->key;
    node->key = k;
    node->by_name.key = k->id.p; /* equal text, in the new key */
    encryption_key_give(before);
}

void account__free_encryption_keys(database_node *d) {
    key_node *each, *next;
    HASH_ITER(by_name, d->encryption_keys, each, next) {
        HASH_DELETE(by_name, d->encryption_keys, each);
        encryption_key_give(each->key);
        free(each);
    }
}

err account_encryption_key(account *a, slice database, bool database_by_rid, slice name, bool by_rid, encryption_key **key_out) {
    *key_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    const database_node *d = account__find_database(a, database, database_by_rid);
    const key_node *node = d ? find(d, name, by_rid) : NULL;
    if (node) {
        *key_out = key_take(node->key);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : d ? E_NOT_FOUND : E_OWNER_NOT_FOUND;
}

void account_each_encryption_key(account *a, const database *d, uint32_t after, bool (*visit)(void *, const encryption_key *),
                                 void *context) {
    database_node *found = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_number, a->databases_by_number, &d->number, sizeof d->number, found);
    for (key_node *node = found ? found->encryption_keys : NULL; node; node = node->by_name.next) {
        if (node->key->number > after && !visit(context, node->key)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

/* ---- records ---- */

enum { KEY_BYTES = 1 + 4 + 4 };

static void spell_key(char key[KEY_BYTES], uint32_t database, uint32_t number) {
    uint32_t numbers[] = {htobe32(database), htobe32(number)};
    key[0] = 'K';
    memcpy(key + 1, numbers, sizeof numbers);
}

static void put_record(store_batch *batch, const database *d, const encryption_key *k) {
    char key[KEY_BYTES];
    bson_t r = BSON_INITIALIZER, settings;
    bson_append_int64(&r, "ts", -1, k->ts);
    bson_append_int64(&r, "version", -1, (int64_t)k->version);
    if (bson_init_static(&settings, (const uint8_t *)k->settings.p, k->settings.n)) {
        bson_append_document(&r, "settings", -1, &settings);
    }
    spell_key(key, d->number, k->number);
    store_put(batch, STORE_META, slice_of(key, KEY_BYTES), slice_of(bson_get_data(&r), r.len));
    bson_destroy(&r);
}

void account__delete_encryption_key_records(store_batch *batch, const database_node *d) {
    char key[KEY_BYTES];
    for (const key_node *node = d->encryption_keys; node; node = node->by_name.next) {
        spell_key(key, d->database->number, node->key->number);
        store_delete(batch, STORE_META, slice_of(key, KEY_BYTES));
    }
}

static int64_t number_in(slice record, const char *name) {
    bson_iter_t it;
    return doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

static slice document_in(slice bson, const char *name) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (bson.n && doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_DOCUMENT(&it)) {
        bson_iter_document(&it, &n, &p);
    }
    return slice_of(p, n);
}

err account__load_encryption_key(account *a, slice key, slice record) {
    uint32_t numbers[2] = {0};
    database_node *d = NULL;
    slice settings = document_in(record, "settings");
    if (key.n == KEY_BYTES) {
        memcpy(numbers, key.p + 1, sizeof numbers);
        uint32_t database = be32toh(numbers[0]);
        HASH_FIND(by_number, a->databases_by_number, &database, sizeof database, d);
    }
    if (!d || text_in(settings, "id").n == 0) {
        log_error("account", "a record cannot be read", "of=a client encryption key number=%u", be32toh(numbers[1]));
        return E_STORE_CORRUPT;
    }
    encryption_key *k = key_new(&d->database->rid, be32toh(numbers[1]), settings);
    k->ts = number_in(record, "ts");
    k->version = (uint64_t)number_in(record, "version");
    add(d, k);
    return OK;
}

/* ---- what a client sends ---- */

static err missing(op *o, const char *name) {
    return op_fail(o, E_BAD_REQUEST, "The input content is invalid because the required properties - '%s; ' - are missing", name);
}

static bool is_base64(slice text) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    bool good = text.n && base64_decode(&bytes, text);
    buf_free(&bytes);
    return good;
}

static err check_key(op *o, slice given) {
    static const char *const texts[] = {"id", "encryptionAlgorithm", "wrappedDataEncryptionKey"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (text_in(given, texts[i]).n == 0) {
            return missing(o, texts[i]);
        }
    }
    if (document_in(given, "keyWrapMetadata").n == 0) {
        return missing(o, "keyWrapMetadata");
    }
    if (!is_base64(text_in(given, "wrappedDataEncryptionKey"))) {
        return op_fail(o, E_BAD_REQUEST, "The property 'wrappedDataEncryptionKey' must be base64.");
    }
    return settings_check_name(o, text_in(given, "id"));
}

static err read_key(op *o, slice given, slice *settings_out) {
    static const char *const kept[] = {"id", "encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata"};
    bson_t settings = BSON_INITIALIZER;
    bson_iter_t it;
    TRY(check_key(o, given));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (doc_find_key(given, slice_str(kept[i]), &it)) {
            bson_append_iter(&settings, kept[i], -1, &it);
        }
    }
    *settings_out = arena_copy(o->arena, slice_of(bson_get_data(&settings), settings.len));
    bson_destroy(&settings);
    return settings_out->n <= ENCRYPTION_KEY_BYTES_MAX ? OK : E_TOO_LARGE;
}

/* ---- changes ---- */

static err find_database(account_change *change, const account_name *name, database_node **database_out) {
    *database_out = account__find_database(change->account, name->text, name->by_rid);
    return *database_out ? OK : account__missing(change->op, E_OWNER_NOT_FOUND);
}

static encryption_key *make(account_change *change, commit_group *group, const database *d, uint32_t number, slice settings) {
    account *a = change->account;
    encryption_key *k = key_new(&d->rid, number, settings);
    k->ts = clock_wall_ms(a->items.clock) / 1000;
    k->version = a->numbers.version++;
    put_record(&group->batch, d, k);
    commit_link(group, &change->hook);
    return k;
}

static err apply_create(account_change *change, commit_group *group) {
    encryption_key_creation *create = (encryption_key_creation *)change;
    database_node *d;
    slice settings;
    TRY(read_key(change->op, create->settings, &settings));
    TRY(find_database(change, &create->database, &d));
    if (find(d, text_in(settings, "id"), false)) {
        return op_fail(change->op, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
    }
    if (HASH_CNT(by_name, d->encryption_keys) >= ENCRYPTION_KEYS_MAX) {
        return op_fail(change->op, E_FORBIDDEN, "The database already has %d client encryption keys, as many as it may have.",
                       ENCRYPTION_KEYS_MAX);
    }
    change->made = d;
    create->key_out = make(change, group, d->database, change->account->numbers.encryption_key++, settings);
    return OK;
}

static void publish_create(account_change *change) {
    add(change->made, key_take(((encryption_key_creation *)change)->key_out));
}

void account_create_encryption_key(encryption_key_creation *create) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_create, .publish = publish_create};
    create->key_out = NULL;
    account__submit(&create->base, &verb);
}

static err apply_replace(account_change *change, commit_group *group) {
    encryption_key_replacement *replace = (encryption_key_replacement *)change;
    database_node *d;
    slice settings;
    TRY(read_key(change->op, replace->settings, &settings));
    TRY(find_database(change, &replace->database, &d));
    key_node *node = find(d, replace->key.text, replace->key.by_rid);
    if (!node) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    if (!account__etag_matches(change->if_match, node->key->version, node->key->ts)) {
        return E_PRECONDITION;
    }
    if (!slice_eq(text_in(settings, "id"), node->key->id)) {
        return op_fail(change->op, E_BAD_REQUEST, "The id of a client encryption key cannot be changed.");
    }
    change->made = node;
    replace->key_out = make(change, group, d->database, node->key->number, settings);
    return OK;
}

static void publish_replace(account_change *change) {
    swap(change->made, key_take(((encryption_key_replacement *)change)->key_out));
}

void account_replace_encryption_key(encryption_key_replacement *replace) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_replace, .publish = publish_replace};
    replace->key_out = NULL;
    account__submit(&replace->base, &verb);
}

/* ---- policies ---- */

typedef struct policy {
    op *op;
    const database_node *database;
    const pkey_definition *key;
    bool covers_keys; /* format 2: ids and partition keys may be encrypted */
} policy;

static bool is_top_level(slice path) {
    return path.n > 1 && path.p[0] == '/' && !memchr(path.p + 1, '/', path.n - 1);
}

/* `path` has one step; a partition key below it is encrypted with it. */
static bool has_partition_key(const policy *p, slice path) {
    for (size_t i = 0; i < p->key->n; i++) {
        slice key = p->key->paths[i].text;
        if (slice_eq(key, path) || (key.n > path.n && slice_starts(key, path) && key.p[path.n] == '/')) {
            return true;
        }
    }
    return false;
}

/* Keys must be found by their encrypted values, so equal ones must stay equal. */
static err check_identity(const policy *p, slice path, bool deterministic) {
    bool is_id = slice_eq(path, SLICE_LIT("/id"));
    if (!is_id && !has_partition_key(p, path)) {
        return OK;
    }
    if (!p->covers_keys) {
        return op_fail(p->op, E_BAD_REQUEST,
                       is_id ? "Path: %.*s cannot be encrypted with PolicyFormatVersion: 1. Please use PolicyFormatVersion: 2."
                             : "Path: %.*s which is part of the partition key cannot be encrypted with PolicyFormatVersion: 1. Please use "
                               "PolicyFormatVersion: 2.",
                       slice_shown(path), path.p);
    }
    if (!deterministic) {
        return op_fail(p->op, E_BAD_REQUEST,
                       is_id ? "Only Deterministic encryption type is supported for path: %.*s."
                             : "Path: %.*s which is part of the partition key has to be encrypted with Deterministic type Encryption.",
                       slice_shown(path), path.p);
    }
    return OK;
}

static err check_included(const policy *p, slice included) {
    slice path = text_in(included, "path"), key = text_in(included, "clientEncryptionKeyId"), type = text_in(included, "encryptionType");
    bool deterministic = slice_eq(type, SLICE_LIT("Deterministic"));
    if (!is_top_level(path)) {
        return op_fail(p->op, E_BAD_REQUEST, "Invalid path '%.*s' in client encryption policy: only top-level paths can be encrypted.",
                       slice_shown(path), path.p);
    }
    if (!deterministic && !slice_eq(type, SLICE_LIT("Randomized"))) {
        return op_fail(p->op, E_BAD_REQUEST, "EncryptionType of path %.*s should be either 'Deterministic' or 'Randomized'.",
                       slice_shown(path), path.p);
    }
    if (!slice_eq(text_in(included, "encryptionAlgorithm"), SLICE_LIT("AEAD_AES_256_CBC_HMAC_SHA256"))) {
        return op_fail(p->op, E_BAD_REQUEST, "EncryptionAlgorithm of path %.*s should be 'AEAD_AES_256_CBC_HMAC_SHA256'.",
                       slice_shown(path), path.p);
    }
    if (!find(p->database, key, false)) {
        return op_fail(p->op, E_BAD_REQUEST, "The client encryption key '%.*s' of path %.*s does not exist in the database.",
                       slice_shown(key), key.p, slice_shown(path), path.p);
    }
    return check_identity(p, path, deterministic);
}

typedef struct seen_path {
    slice path;
    UT_hash_handle by_path;
} seen_path;

static err check_once(const policy *p, slice path, seen_path **seen) {
    seen_path *same = NULL;
    HASH_FIND(by_path, *seen, path.p, path.n, same);
    if (same) {
        return op_fail(p->op, E_BAD_REQUEST, "Duplicate path found: %.*s in client encryption policy.", slice_shown(path), path.p);
    }
    seen_path *made = arena_new(p->op->arena, seen_path);
    made->path = path;
    HASH_ADD_KEYPTR(by_path, *seen, path.p, path.n, made);
    return OK;
}

static err check_paths(const policy *p, bson_iter_t *paths) {
    bson_iter_t each;
    seen_path *seen = NULL;
    err code = OK;
    uint32_t n;
    const uint8_t *bytes;
    if (!bson_iter_recurse(paths, &each)) {
        return E_BAD_REQUEST;
    }
    while (code == OK && bson_iter_next(&each)) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&each)) {
            code = op_fail(p->op, E_BAD_REQUEST, "The paths of a client encryption policy must be objects.");
            break;
        }
        bson_iter_document(&each, &n, &bytes);
        code = check_included(p, slice_of(bytes, n));
        code = code == OK ? check_once(p, text_in(slice_of(bytes, n), "path"), &seen) : code;
    }
    HASH_CLEAR(by_path, seen);
    return code;
}

err account__check_encryption_policy(op *o, const database_node *d, const container *c) {
    bson_iter_t it, paths;
    if (!doc_find_key(c->settings, SLICE_LIT("clientEncryptionPolicy"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    slice given = document_in(c->settings, "clientEncryptionPolicy");
    bool has_version = given.n && doc_find_key(given, SLICE_LIT("policyFormatVersion"), &it);
    int64_t version = has_version ? number_in(given, "policyFormatVersion") : 1;
    if (given.n == 0 || (version != 1 && version != 2)) {
        return op_fail(o, E_BAD_REQUEST, "A client encryption policy must be an object with a policyFormatVersion of 1 or 2.");
    }
    if (!doc_find_key(given, SLICE_LIT("includedPaths"), &paths) || !BSON_ITER_HOLDS_ARRAY(&paths)) {
        return missing(o, "includedPaths");
    }
    return check_paths(&(policy){o, d, &c->key, version == 2}, &paths);
}

/* Members may come in another order than before. */
static bool same_included(bson_iter_t *a, bson_iter_t *b) {
    static const char *const names[] = {"path", "clientEncryptionKeyId", "encryptionType", "encryptionAlgorithm"};
    uint32_t a_n, b_n;
    const uint8_t *a_p, *b_p;
    if (!BSON_ITER_HOLDS_DOCUMENT(a) || !BSON_ITER_HOLDS_DOCUMENT(b)) {
        return false;
    }
    bson_iter_document(a, &a_n, &a_p);
    bson_iter_document(b, &b_n, &b_p);
    bool same = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        same = same && slice_eq(text_in(slice_of(a_p, a_n), names[i]), text_in(slice_of(b_p, b_n), names[i]));
    }
    return same;
}

static bool paths_of(slice policy, bson_iter_t *each_out) {
    bson_iter_t paths;
    return doc_find_key(policy, SLICE_LIT("includedPaths"), &paths) && BSON_ITER_HOLDS_ARRAY(&paths) && bson_iter_recurse(&paths, each_out);
}

static bool same_policy(slice before, slice after) {
    bson_iter_t a, b;
    if (before.n == 0 || after.n == 0) {
        return before.n == after.n;
    }
    bool version_1 = number_in(before, "policyFormatVersion") < 2, still_1 = number_in(after, "policyFormatVersion") < 2;
    if (version_1 != still_1 || !paths_of(before, &a) || !paths_of(after, &b)) {
        return slice_eq(before, after);
    }
    for (;;) {
        bool more = bson_iter_next(&a);
        if (more != bson_iter_next(&b)) {
            return false;
        }
        if (!more) {
            return true;
        }
        if (!same_included(&a, &b)) {
            return false;
        }
    }
}

err account__check_encryption_policy_kept(op *o, const container *before, const container *after) {
    slice then = document_in(before->settings, "clientEncryptionPolicy"), now = document_in(after->settings, "clientEncryptionPolicy");
    return same_policy(then, now)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.");
}
