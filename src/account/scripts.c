#include "account/scripts.h"

#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "base/log.h"
#include "base/memory.h"

struct script_node {
    account_script *script;
    UT_hash_handle by_name; /* per container and kind; in order of numbers */
};

const char *const trigger_operation_names[TRIGGER_OPERATIONS] = {"All", "Create", "Update", "Delete", "Replace", "Upsert"};

static const rid_kind rid_kinds[ACCOUNT_SCRIPT_KINDS] = {RID_UDF, RID_TRIGGER, RID_SPROC};

/* ---- one script ---- */

static slice text_in(slice bson, const char *name) {
    bson_iter_t it;
    return doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

/* Reads the type and operation of a trigger from its settings. False: unknown values. */
static bool read_trigger(account_script *s) {
    slice type = text_in(s->settings, "triggerType"), operation = text_in(s->settings, "triggerOperation");
    s->post = slice_eq_nocase(type, SLICE_LIT("Post"));
    for (s->operation = TRIGGER_ALL; s->operation < TRIGGER_OPERATIONS; s->operation++) {
        if (slice_eq_nocase(operation, slice_str(trigger_operation_names[s->operation]))) {
            return s->post || slice_eq_nocase(type, SLICE_LIT("Pre"));
        }
    }
    return false;
}

/* `settings` are normally checked already, by read_settings before they were stored. NULL: they are invalid. */
static account_script *script_new(account_script_kind kind, rid container, uint32_t number, slice settings) {
    account_script *s = mem_alloc(sizeof *s + settings.n);
    *s = (account_script){
        .refs = 1, .kind = kind, .number = number, .rid = rid_child(container, rid_kinds[kind], number), .settings = {NULL, settings.n}};
    memcpy(s + 1, settings.p, settings.n);
    s->settings.p = (const char *)(s + 1);
    s->id = text_in(s->settings, "id");
    s->body = text_in(s->settings, "body");
    if (!s->id.n || !s->body.p || (kind == ACCOUNT_TRIGGER && !read_trigger(s))) {
        free(s);
        return NULL;
    }
    return s;
}

account_script *account_script_take(account_script *s) {
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void account_script_give(account_script *s) {
    if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        free(s);
    }
}

/* ---- tables ---- */

static int by_number_order(const script_node *a, const script_node *b) {
    return (a->script->number > b->script->number) - (a->script->number < b->script->number);
}

/* Adds a script whose number is the highest so far. */
static void add_last(container_node *c, account_script *s) {
    script_node *node = mem_zero(sizeof *node);
    node->script = s;
    HASH_ADD_KEYPTR(by_name, c->scripts[s->kind], s->id.p, s->id.n, node);
}

static void swap(container_node *c, script_node *node, account_script *s) {
    account_script *before = node->script;
    if (slice_eq(before->id, s->id)) {
        node->script = s;
        node->by_name.key = s->id.p; /* equal text, in the new script */
    } else {
        HASH_DELETE(by_name, c->scripts[s->kind], node);
        node->script = s;
        char *key = (char *)(s + 1) + (s->id.p - s->settings.p); /* s->id.p, non-const as the macro needs it */
        HASH_ADD_KEYPTR_INORDER(by_name, c->scripts[s->kind], key, s->id.n, node, by_number_order);
    }
    account_script_give(before);
}

static void drop(container_node *c, script_node *node) {
    HASH_DELETE(by_name, c->scripts[node->script->kind], node);
    account_script_give(node->script);
    free(node);
}

void account__free_scripts(container_node *c) {
    for (account_script_kind kind = 0; kind < ACCOUNT_SCRIPT_KINDS; kind++) {
        script_node *each, *next;
        HASH_ITER(by_name, c->scripts[kind], each, next) {
            drop(c, each);
        }
    }
}

/* Containers have few scripts (base/limits.h) and lookups by rid are rare, so there is no table for them. */
static script_node *find_by_rid(const container_node *c, account_script_kind kind, slice text) {
    rid r;
    script_node *node = rid_parse(text, &r) == rid_kinds[kind] ? c->scripts[kind] : NULL;
    while (node && !rid_equal(&node->script->rid, &r)) {
        node = node->by_name.next;
    }
    return node;
}

static script_node *find(const container_node *c, account_script_kind kind, slice name, bool by_rid) {
    script_node *node = by_rid ? find_by_rid(c, kind, name) : NULL;
    if (!node) {
        HASH_FIND(by_name, c->scripts[kind], name.p, name.n, node);
    }
    return node;
}

err account_find_script(account *a, const container *c, account_script_kind kind, slice name, bool by_rid, account_script **script_out) {
    *script_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    container_node *in = account__node_of(a, c);
    script_node *node = in ? find(in, kind, name, by_rid) : NULL;
    if (node) {
        *script_out = account_script_take(node->script);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : in ? E_NOT_FOUND : E_OWNER_NOT_FOUND;
}

void account_each_script(account *a, const container *c, account_script_kind kind, uint32_t after,
                         bool (*visit)(void *, const account_script *), void *context) {
    pthread_rwlock_rdlock(&a->lock);
    container_node *in = account__node_of(a, c);
    for (script_node *node = in ? in->scripts[kind] : NULL; node; node = node->by_name.next) {
        if (node->script->number > after && !visit(context, node->script)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

/* ---- records ---- */

enum { KEY_BYTES = 1 + 4 + 4 + 1 + 4, KEY_OF_CONTAINER_BYTES = 1 + 4 + 4 };

static void add_be32(char *to, uint32_t value) {
    value = htobe32(value);
    memcpy(to, &value, sizeof value);
}

static uint32_t be32_at(const char *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return be32toh(value);
}

static void key_of_container(char key[KEY_BYTES], const rid *container) {
    rid database = rid_database_of(container);
    key[0] = 'S';
    add_be32(key + 1, (uint32_t)rid_number(&database));
    add_be32(key + 5, (uint32_t)rid_number(container));
}

static void key_of(char key[KEY_BYTES], const account_script *s) {
    rid container = rid_container_of(&s->rid);
    key_of_container(key, &container);
    key[9] = (char)s->kind;
    add_be32(key + 10, s->number);
}

static void put_record(store_batch *batch, const account_script *s) {
    char key[KEY_BYTES];
    bson_t r = BSON_INITIALIZER, settings;
    bson_append_int64(&r, "ts", -1, s->ts);
    bson_append_int64(&r, "version", -1, (int64_t)s->version);
    if (bson_init_static(&settings, (const uint8_t *)s->settings.p, s->settings.n)) {
        bson_append_document(&r, "settings", -1, &settings);
    }
    key_of(key, s);
    store_put(batch, STORE_META, slice_of(key, KEY_BYTES), slice_of(bson_get_data(&r), r.len));
    bson_destroy(&r);
}

static void delete_record(store_batch *batch, const account_script *s) {
    char key[KEY_BYTES];
    key_of(key, s);
    store_delete(batch, STORE_META, slice_of(key, KEY_BYTES));
}

void account__delete_script_records(store_batch *batch, const container_node *c) {
    char from[KEY_BYTES], to[KEY_BYTES];
    rid container = {.n = sizeof c->container->rid};
    if (!c->scripts[ACCOUNT_FUNCTION] && !c->scripts[ACCOUNT_TRIGGER] && !c->scripts[ACCOUNT_PROCEDURE]) {
        return;
    }
    memcpy(container.bytes, c->container->rid, sizeof c->container->rid);
    key_of_container(from, &container);
    memcpy(to, from, KEY_OF_CONTAINER_BYTES);
    to[KEY_OF_CONTAINER_BYTES] = (char)0xFF; /* after all kinds */
    store_delete_range(batch, STORE_META, slice_of(from, KEY_OF_CONTAINER_BYTES), slice_of(to, KEY_OF_CONTAINER_BYTES + 1));
}

bool account_has_scripts(const account *a) {
    slice key, value;
    store_scan *scan = store_scan_open(a->homes[0]->store, STORE_META, NULL, SLICE_LIT("S"), SLICE_LIT("T"), false);
    bool any = store_scan_next(scan, &key, &value);
    return store_scan_close(scan) == OK && any;
}

static int64_t number_in(slice record, const char *name) {
    bson_iter_t it;
    return doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

static account_script *read_record(slice key, slice record, rid container) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (doc_find_key(record, SLICE_LIT("settings"), &it) && BSON_ITER_HOLDS_DOCUMENT(&it)) {
        bson_iter_document(&it, &n, &p);
    }
    account_script_kind kind = (unsigned char)key.p[9];
    account_script *s = p && kind < ACCOUNT_SCRIPT_KINDS ? script_new(kind, container, be32_at(key.p + 10), slice_of(p, n)) : NULL;
    if (s) {
        s->ts = number_in(record, "ts");
        s->version = (uint64_t)number_in(record, "version");
    }
    return s;
}

err account__load_script(account *a, slice key, slice record) {
    if (key.n != KEY_BYTES || be32_at(key.p + 1) == 0) {
        return E_STORE_CORRUPT;
    }
    container_node *c = NULL;
    rid container = rid_container(rid_database(be32_at(key.p + 1)), be32_at(key.p + 5));
    HASH_FIND(by_rid, a->containers_by_rid, container.bytes, container.n, c);
    account_script *s = c ? read_record(key, record, container) : NULL;
    if (!s) {
        log_error("account", "a script's record cannot be read", "database=%u container=%u number=%u", be32_at(key.p + 1),
                  be32_at(key.p + 5), be32_at(key.p + 10));
        return E_STORE_CORRUPT;
    }
    add_last(c, s);
    return OK;
}

/* ---- decoding ---- */

static const char *const properties[] = {"id", "body", "triggerType", "triggerOperation"};

static size_t properties_of(account_script_kind kind) {
    return kind == ACCOUNT_TRIGGER ? 4 : 2;
}

static err check_present(op *o, account_script_kind kind, slice given) {
    bson_iter_t it;
    buf missing = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < properties_of(kind); i++) {
        if (!doc_find_key(given, slice_str(properties[i]), &it) || BSON_ITER_HOLDS_NULL(&it)) {
            buf_addf(&missing, "%s; ", properties[i]);
        }
    }
    err code = OK;
    if (missing.n) {
        code = op_fail(o, E_BAD_REQUEST, "The input content is invalid because the required properties - '%.*s' - are missing",
                       (int)missing.n, missing.p);
    }
    buf_free(&missing);
    return code;
}

static err check_trigger(op *o, slice given) {
    account_script s = {.settings = given};
    slice type = text_in(given, "triggerType"), operation = text_in(given, "triggerOperation");
    if (!read_trigger(&s)) {
        bool type_good = s.post || slice_eq_nocase(type, SLICE_LIT("Pre"));
        slice wrong = type_good ? operation : type;
        return op_fail(o, E_BAD_REQUEST, "The input %s '%.*s' is invalid. Ensure to provide one of %s.",
                       type_good ? "TriggerOperation" : "TriggerType", slice_shown(wrong), wrong.p ? wrong.p : "",
                       type_good ? "All, Create, Update, Delete, Replace, Upsert" : "Pre, Post");
    }
    return OK;
}

/* Copies the properties that are stored, into the operation's arena. */
static err read_settings(op *o, account_script_kind kind, slice given, slice *settings_out) {
    bson_t kept = BSON_INITIALIZER;
    bson_iter_t it;
    TRY(check_present(o, kind, given));
    for (size_t i = 0; i < properties_of(kind); i++) {
        if (!doc_find_key(given, slice_str(properties[i]), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
            bson_destroy(&kept);
            return op_fail(o, E_BAD_REQUEST, "The input content is invalid because the property '%s' must be a string.", properties[i]);
        }
        bson_append_iter(&kept, properties[i], -1, &it);
    }
    *settings_out = arena_copy(o->arena, slice_of(bson_get_data(&kept), kept.len));
    bson_destroy(&kept);
    TRY(settings_check_name(o, text_in(*settings_out, "id")));
    return kind == ACCOUNT_TRIGGER ? check_trigger(o, *settings_out) : OK;
}

/* ---- changes ---- */

static err find_container(account *a, const account_name *database, const account_name *name, container_node **node_out) {
    database_node *d = account__find_database(a, database->text, database->by_rid);
    *node_out = d ? account__find_container(a, d, name->text, name->by_rid) : NULL;
    return *node_out ? OK : E_OWNER_NOT_FOUND;
}

static err taken(op *o) {
    return op_fail(o, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
}

static err check_room(op *o, const container_node *in, account_script_kind kind) {
    static const unsigned most[ACCOUNT_SCRIPT_KINDS] = {LIMIT_FUNCTIONS, LIMIT_TRIGGERS, LIMIT_PROCEDURES};
    static const char *const words[ACCOUNT_SCRIPT_KINDS] = {"user-defined functions", "triggers", "stored procedures"};
    if (HASH_CNT(by_name, in->scripts[kind]) < most[kind]) {
        return OK;
    }
    return op_fail(o, E_FORBIDDEN, "The container already has %u %s, as many as it may have.", most[kind], words[kind]);
}

/* Makes the first or a further version of a script. */
static account_script *make(account_change *change, commit_group *group, container_node *in, account_script_kind kind, uint32_t number,
                            slice settings) {
    account *a = change->account;
    rid container = {.n = sizeof in->container->rid};
    memcpy(container.bytes, in->container->rid, sizeof in->container->rid);
    account_script *s = script_new(kind, container, number, settings);
    s->ts = clock_wall_ms(a->items.clock) / 1000;
    s->version = a->numbers.version++;
    change->made = in;
    put_record(&group->batch, s);
    commit_link(group, &change->hook);
    return s;
}

static err check_etag(const account_change *change, const account_script *s) {
    return account__etag_matches(change->if_match, s->version, s->ts) ? OK : E_PRECONDITION;
}

/* Changes are solo commits: the tables have not changed since `apply`. */
static script_node *find_number(const container_node *c, const account_script *s) {
    script_node *node = c->scripts[s->kind];
    while (node && node->script->number != s->number) {
        node = node->by_name.next;
    }
    return node;
}

static void publish_version(container_node *in, account_script *s) {
    script_node *there = find_number(in, s);
    account_script_take(s);
    there ? swap(in, there, s) : add_last(in, s);
}

static err apply_create(account_change *change, commit_group *group) {
    script_creation *create = (script_creation *)change;
    container_node *in;
    slice settings;
    TRY(read_settings(change->op, create->kind, create->settings, &settings));
    TRY(find_container(change->account, &create->database, &create->container, &in));
    script_node *there = find(in, create->kind, text_in(settings, "id"), false);
    if (there && !create->upsert) {
        return taken(change->op);
    }
    TRY(there ? check_etag(change, there->script) : check_room(change->op, in, create->kind));
    uint32_t number = there ? there->script->number : change->account->numbers.script++;
    create->created = !there;
    create->script_out = make(change, group, in, create->kind, number, settings);
    return OK;
}

static void publish_create(account_change *change) {
    publish_version(change->made, ((script_creation *)change)->script_out);
}

void account_create_script(script_creation *create) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_create, .publish = publish_create};
    create->script_out = NULL;
    create->created = false;
    account__submit(&create->base, &verb);
}

static err find_script(const account_change *change, const container_node *in, account_script_kind kind, const account_name *name,
                       script_node **node_out) {
    *node_out = find(in, kind, name->text, name->by_rid);
    return *node_out ? check_etag(change, (*node_out)->script) : E_NOT_FOUND;
}

static err apply_replace(account_change *change, commit_group *group) {
    script_replacement *replace = (script_replacement *)change;
    container_node *in;
    script_node *there;
    slice settings;
    TRY(read_settings(change->op, replace->kind, replace->settings, &settings));
    TRY(find_container(change->account, &replace->database, &replace->container, &in));
    TRY(find_script(change, in, replace->kind, &replace->script, &there));
    script_node *named = find(in, replace->kind, text_in(settings, "id"), false);
    if (named && named != there) {
        return taken(change->op);
    }
    replace->script_out = make(change, group, in, replace->kind, there->script->number, settings);
    return OK;
}

static void publish_replace(account_change *change) {
    publish_version(change->made, ((script_replacement *)change)->script_out);
}

void account_replace_script(script_replacement *replace) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_replace, .publish = publish_replace};
    replace->script_out = NULL;
    account__submit(&replace->base, &verb);
}

static err apply_delete(account_change *change, commit_group *group) {
    script_deletion *remove = (script_deletion *)change;
    container_node *in;
    script_node *there;
    TRY(find_container(change->account, &remove->database, &remove->container, &in));
    TRY(find_script(change, in, remove->kind, &remove->script, &there));
    delete_record(&group->batch, there->script);
    change->account->numbers.version++;
    remove->script_out = account_script_take(there->script);
    change->made = in;
    commit_link(group, &change->hook);
    return OK;
}

static void publish_delete(account_change *change) {
    drop(change->made, find_number(change->made, ((script_deletion *)change)->script_out));
}

void account_delete_script(script_deletion *remove) {
    static const account_verb verb = {.use = STORE_FREES, .apply = apply_delete, .publish = publish_delete};
    remove->script_out = NULL;
    account__submit(&remove->base, &verb);
}
