/* Users and permissions: the tables, finding, and records. Changes are in users_change.c. */
#include <stdlib.h>

#include "account/users_int.h"
#include "base/log.h"
#include "base/memory.h"

/* ---- objects ---- */

user *user_new(const rid *in, uint32_t number, slice id, int64_t ts, uint64_t version) {
    user *u = mem_zero(sizeof *u);
    u->refs = 1;
    u->number = number;
    u->rid = rid_user(*in, number);
    u->id = mem_text(id.p, id.n);
    u->ts = ts;
    u->version = version;
    return u;
}

static user *user_take(user *u) {
    atomic_fetch_add_explicit(&u->refs, 1, memory_order_relaxed);
    return u;
}

void user_give(user *u) {
    if (u && atomic_fetch_sub_explicit(&u->refs, 1, memory_order_acq_rel) == 1) {
        free(u->id);
        free(u);
    }
}

/* A copy of the key with its texts in the arena. */
static pkey copy_key(arena *a, const pkey *key) {
    pkey copy = *key;
    for (size_t i = 0; i < key->n; i++) {
        if (key->values[i].type == PKEY_STRING) {
            copy.values[i].text = arena_copy(a, key->values[i].text);
        }
    }
    return copy;
}

permission *permission_new(const user *of, uint32_t number, slice id, const grant *g) {
    arena a = arena_init_small();
    permission *p = arena_new(&a, permission);
    p->refs = 1;
    p->number = number;
    p->rid = rid_permission(of->rid, number);
    p->id = arena_copy(&a, id);
    p->grant = *g;
    p->grant.word = arena_copy(&a, g->word);
    p->grant.child = arena_copy(&a, g->child);
    p->grant.link = arena_copy(&a, g->link);
    p->grant.key = copy_key(&a, &g->key);
    p->arena = a;
    return p;
}

permission *permission_resolved(const permission *p, const grant *g) {
    user of = {.rid = rid_parent(&p->rid)};
    permission *made = permission_new(&of, p->number, p->id, g);
    made->ts = p->ts;
    made->version = p->version;
    return made;
}

static permission *permission_take(permission *p) {
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void permission_give(permission *p) {
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
        arena a = p->arena; /* the arena holds the permission itself */
        arena_free(&a);
    }
}

/* ---- tables ---- */

user_node *account__find_user(database_node *d, slice name, bool by_rid) {
    user_node *node = NULL;
    rid r;
    if (by_rid && rid_parse(name, &r) == RID_USER) {
        rid in = rid_database_of(&r);
        uint32_t number = (uint32_t)rid_number(&r);
        if (rid_equal(&in, &d->database->rid)) {
            HASH_FIND(by_number, d->users, &number, sizeof number, node);
        }
    }
    if (!node) {
        HASH_FIND(by_name, d->users_by_name, name.p, name.n, node);
    }
    return node;
}

permission_node *account__find_permission(user_node *u, slice name, bool by_rid) {
    permission_node *node = NULL;
    rid r;
    if (by_rid && rid_parse(name, &r) == RID_PERMISSION) {
        rid of = rid_parent(&r);
        uint32_t number = (uint32_t)rid_number(&r);
        if (rid_equal(&of, &u->user->rid)) {
            HASH_FIND(by_number, u->permissions, &number, sizeof number, node);
        }
    }
    if (!node) {
        HASH_FIND(by_name, u->permissions_by_name, name.p, name.n, node);
    }
    return node;
}

void account__add_user(database_node *d, user *u) {
    user_node *node = mem_zero(sizeof *node);
    node->user = u;
    node->database = d;
    HASH_ADD_KEYPTR(by_number, d->users, &u->number, sizeof u->number, node);
    HASH_ADD_KEYPTR(by_name, d->users_by_name, u->id, strlen(u->id), node);
}

void account__swap_user(user_node *node, user *u) {
    database_node *d = node->database;
    HASH_DELETE(by_name, d->users_by_name, node);
    node->by_number.key = &u->number; /* the same number: its place in the table stays */
    user_give(node->user);
    node->user = u;
    HASH_ADD_KEYPTR(by_name, d->users_by_name, u->id, strlen(u->id), node);
}

slice grant_resource(arena *a, const grant *g) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    buf_add_byte(&bytes, (char)g->kind);
    buf_add_slice(&bytes, rid_view(&g->container));
    buf_add_be64(&bytes, g->number);
    buf_add_be32(&bytes, (uint32_t)g->child.n);
    buf_add_slice(&bytes, g->kind == RID_NONE ? g->link : g->child);
    pkey_encode(&bytes, &g->key);
    slice view = arena_copy(a, buf_view(&bytes));
    buf_free(&bytes);
    return view;
}

static void link_permission(user_node *u, permission_node *node) {
    permission *p = node->permission;
    node->resource = grant_resource(&p->arena, &p->grant);
    HASH_ADD_KEYPTR(by_name, u->permissions_by_name, p->id.p, p->id.n, node);
    HASH_ADD_KEYPTR(by_resource, u->permissions_by_resource, node->resource.p, node->resource.n, node);
}

static void unlink_permission(user_node *u, permission_node *node) {
    HASH_DELETE(by_name, u->permissions_by_name, node);
    HASH_DELETE(by_resource, u->permissions_by_resource, node);
}

void account__add_permission(user_node *u, permission *p) {
    permission_node *node = mem_zero(sizeof *node);
    node->permission = p;
    node->user = u;
    HASH_ADD_KEYPTR(by_number, u->permissions, &p->number, sizeof p->number, node);
    link_permission(u, node);
}

void account__swap_permission(permission_node *node, permission *p) {
    unlink_permission(node->user, node);
    node->by_number.key = &p->number;
    permission_give(node->permission);
    node->permission = p;
    link_permission(node->user, node);
}

void account__remove_permission(permission_node *node) {
    HASH_DELETE(by_number, node->user->permissions, node);
    unlink_permission(node->user, node);
    permission_give(node->permission);
    free(node);
}

void account__remove_user(user_node *node) {
    permission_node *each, *next;
    HASH_ITER(by_number, node->permissions, each, next) {
        account__remove_permission(each);
    }
    HASH_DELETE(by_number, node->database->users, node);
    HASH_DELETE(by_name, node->database->users_by_name, node);
    user_give(node->user);
    free(node);
}

void account__remove_users(database_node *d) {
    user_node *each, *next;
    HASH_ITER(by_number, d->users, each, next) {
        account__remove_user(each);
    }
}

/* ---- finding ---- */

static user_node *node_of_user(account *a, const rid *user_rid) {
    rid in = rid_database_of(user_rid);
    uint32_t database = (uint32_t)rid_number(&in), number = (uint32_t)rid_number(user_rid);
    database_node *d = NULL;
    user_node *u = NULL;
    HASH_FIND(by_number, a->databases_by_number, &database, sizeof database, d);
    if (d) {
        HASH_FIND(by_number, d->users, &number, sizeof number, u);
    }
    return u;
}

err account_user(account *a, slice database, bool database_by_rid, slice name, bool by_rid, user **user_out) {
    *user_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    database_node *d = account__find_database(a, database, database_by_rid);
    user_node *node = d ? account__find_user(d, name, by_rid) : NULL;
    if (node) {
        *user_out = user_take(node->user);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : d ? E_NOT_FOUND : E_OWNER_NOT_FOUND;
}

err account_permission(account *a, const user *u, slice name, bool by_rid, permission **permission_out) {
    *permission_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    user_node *of = node_of_user(a, &u->rid);
    permission_node *node = of ? account__find_permission(of, name, by_rid) : NULL;
    if (node) {
        *permission_out = permission_take(node->permission);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : of ? E_NOT_FOUND : E_OWNER_NOT_FOUND;
}

permission *account_permission_valid(account *a, const rid *permission_rid, uint64_t version) {
    permission *found = NULL;
    permission_node *node = NULL;
    if (rid_kind_of(permission_rid) != RID_PERMISSION || rid_number(permission_rid) > UINT32_MAX) {
        return NULL;
    }
    rid of = rid_parent(permission_rid);
    uint32_t number = (uint32_t)rid_number(permission_rid);
    pthread_rwlock_rdlock(&a->lock);
    user_node *u = node_of_user(a, &of);
    if (u) {
        HASH_FIND(by_number, u->permissions, &number, sizeof number, node);
    }
    if (node && node->permission->version == version) {
        found = permission_take(node->permission);
    }
    pthread_rwlock_unlock(&a->lock);
    return found;
}

void account_each_user(account *a, const database *d, uint32_t after, bool (*visit)(void *, const user *), void *context) {
    database_node *found = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_number, a->databases_by_number, &d->number, sizeof d->number, found);
    for (user_node *node = found ? found->users : NULL; node; node = node->by_number.next) {
        if (node->user->number > after && !visit(context, node->user)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

void account_each_permission(account *a, const user *u, uint32_t after, bool (*visit)(void *, const permission *), void *context) {
    pthread_rwlock_rdlock(&a->lock);
    user_node *of = node_of_user(a, &u->rid);
    for (permission_node *node = of ? of->permissions : NULL; node; node = node->by_number.next) {
        if (node->permission->number > after && !visit(context, node->permission)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

/* ---- records ---- */

static slice key_of(char room[16], char tag, const uint32_t *numbers, size_t n) {
    room[0] = tag;
    for (size_t i = 0; i < n; i++) {
        uint32_t big = htobe32(numbers[i]);
        memcpy(room + 1 + 4 * i, &big, 4);
    }
    return slice_of(room, 1 + 4 * n);
}

static void put_record(store_batch *batch, slice key, bson_t *record) {
    store_put(batch, STORE_META, key, slice_of(bson_get_data(record), record->len));
    bson_destroy(record);
}

static uint32_t database_number(const rid *r) {
    rid in = rid_database_of(r);
    return (uint32_t)rid_number(&in);
}

static slice user_key(char room[16], const rid *user_rid) {
    return key_of(room, 'U', (uint32_t[]){database_number(user_rid), (uint32_t)rid_number(user_rid)}, 2);
}

static slice permission_key(char room[16], const rid *permission_rid) {
    rid of = rid_parent(permission_rid);
    uint32_t numbers[] = {database_number(permission_rid), (uint32_t)rid_number(&of), (uint32_t)rid_number(permission_rid)};
    return key_of(room, 'P', numbers, 3);
}

void account__put_user(store_batch *batch, const user *u) {
    char room[16];
    bson_t r = BSON_INITIALIZER;
    bson_append_utf8(&r, "id", -1, u->id, -1);
    bson_append_int64(&r, "ts", -1, u->ts);
    bson_append_int64(&r, "version", -1, (int64_t)u->version);
    put_record(batch, user_key(room, &u->rid), &r);
}

static void append_bytes(bson_t *r, const char *name, slice bytes) {
    bson_append_binary(r, name, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)(bytes.n ? bytes.p : ""), (uint32_t)bytes.n);
}

void account__put_permission(store_batch *batch, const permission *p) {
    char room[16];
    const grant *g = &p->grant;
    buf key = buf_init(BUF_NO_LIMIT);
    bson_t r = BSON_INITIALIZER;
    pkey_encode(&key, &g->key);
    append_bytes(&r, "id", p->id);
    bson_append_int64(&r, "mode", -1, g->mode);
    append_bytes(&r, "word", g->word);
    bson_append_int64(&r, "kind", -1, g->kind);
    append_bytes(&r, "container", rid_view(&g->container));
    bson_append_int64(&r, "number", -1, (int64_t)g->number);
    append_bytes(&r, "child", g->child);
    bson_append_int64(&r, "keys", -1, (int64_t)g->key.n);
    append_bytes(&r, "key", buf_view(&key));
    append_bytes(&r, "link", g->link);
    bson_append_int64(&r, "ts", -1, p->ts);
    bson_append_int64(&r, "version", -1, (int64_t)p->version);
    put_record(batch, permission_key(room, &p->rid), &r);
    buf_free(&key);
}

void account__delete_permission_record(store_batch *batch, const permission *p) {
    char room[16];
    store_delete(batch, STORE_META, permission_key(room, &p->rid));
}

/* Deletes all keys that begin with these numbers; the last number must be below UINT32_MAX. */
static void delete_run(store_batch *batch, char tag, uint32_t *numbers, size_t n) {
    char from[16], to[16];
    slice first = key_of(from, tag, numbers, n);
    numbers[n - 1]++;
    store_delete_range(batch, STORE_META, first, key_of(to, tag, numbers, n));
}

void account__delete_user_record(store_batch *batch, const user *u) {
    char room[16];
    store_delete(batch, STORE_META, user_key(room, &u->rid));
    delete_run(batch, 'P', (uint32_t[]){database_number(&u->rid), u->number}, 2);
}

void account__delete_user_records(store_batch *batch, uint32_t database) {
    delete_run(batch, 'U', (uint32_t[]){database}, 1);
    delete_run(batch, 'P', (uint32_t[]){database}, 1);
}

/* ---- loading ---- */

static int64_t number_in(slice record, const char *name) {
    bson_iter_t it;
    return doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

static slice bytes_in(slice record, const char *name) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &n, &p);
    }
    return slice_of(p, n);
}

static uint32_t key_number(slice key, size_t index) {
    uint32_t number;
    memcpy(&number, key.p + 1 + 4 * index, 4);
    return be32toh(number);
}

static database_node *database_at(account *a, uint32_t number) {
    database_node *d = NULL;
    HASH_FIND(by_number, a->databases_by_number, &number, sizeof number, d);
    return d;
}

static err damaged(const char *what, slice key) {
    log_error("account", "a record cannot be read", "of=%s number=%u", what, key.n >= 5 ? key_number(key, key.n / 4 - 1) : 0);
    return E_STORE_CORRUPT;
}

err account__load_user(account *a, slice key, slice record) {
    bson_iter_t id;
    database_node *d = key.n == 9 ? database_at(a, key_number(key, 0)) : NULL;
    if (!d || !doc_find_key(record, SLICE_LIT("id"), &id) || !BSON_ITER_HOLDS_UTF8(&id)) {
        return damaged("a user", key);
    }
    uint64_t version = (uint64_t)number_in(record, "version");
    account__add_user(d, user_new(&d->database->rid, key_number(key, 1), doc_text(&id), number_in(record, "ts"), version));
    return OK;
}

static bool read_grant(arena *a, slice record, grant *g) {
    size_t used, keys = (size_t)number_in(record, "keys");
    slice container = bytes_in(record, "container"), key = bytes_in(record, "key");
    bool none = number_in(record, "kind") == RID_NONE;
    if (container.n != (none ? 0 : 8) || keys > LIMIT_KEY_COMPONENTS) {
        return false;
    }
    *g = (grant){
        .mode = number_in(record, "mode") == PERMISSION_ALL ? PERMISSION_ALL : PERMISSION_READ,
        .word = bytes_in(record, "word"),
        .kind = (rid_kind)number_in(record, "kind"),
        .container = {.n = (uint8_t)container.n},
        .number = (uint64_t)number_in(record, "number"),
        .child = bytes_in(record, "child"),
        .link = bytes_in(record, "link"),
    };
    if (!none) {
        memcpy(g->container.bytes, container.p, container.n);
    }
    return (keys == 0 || pkey_decode(a, key, keys, &g->key, &used)) && (none || rid_kind_of(&g->container) == RID_CONTAINER);
}

err account__load_permission(account *a, slice key, slice record) {
    user_node *u = NULL;
    grant g;
    arena scratch = arena_init();
    database_node *d = key.n == 13 ? database_at(a, key_number(key, 0)) : NULL;
    if (d) {
        uint32_t number = key_number(key, 1);
        HASH_FIND(by_number, d->users, &number, sizeof number, u);
    }
    bool good = u && read_grant(&scratch, record, &g);
    if (good) {
        permission *p = permission_new(u->user, key_number(key, 2), bytes_in(record, "id"), &g);
        p->ts = number_in(record, "ts");
        p->version = (uint64_t)number_in(record, "version");
        account__add_permission(u, p);
    }
    arena_free(&scratch);
    return good ? OK : damaged("a permission", key);
}
