/* Changes of databases, containers and offers. Each is a solo commit: `apply` checks and writes records, `publish` updates the tables once
 * the records are on disk. */
#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "account/wide.h"
#include "item/range_info.h"
#include "item/versions.h"
#include "item/waiters.h"

static int64_t now_s(const account *a) {
    return clock_wall_ms(a->items.clock) / 1000;
}

static void change_before(commit_hook *hook, commit_group *group) {
    account_change *change = (account_change *)((char *)hook - offsetof(account_change, hook));
    account__put_numbers(&group->batch, &change->account->numbers);
}

static void change_after(commit_hook *hook, err code) {
    account_change *change = (account_change *)((char *)hook - offsetof(account_change, hook));
    if (change->verb->ended) {
        change->verb->ended(change, code);
    }
    if (code == OK) {
        pthread_rwlock_wrlock(&change->account->lock);
        change->verb->publish(change);
        pthread_rwlock_unlock(&change->account->lock);
        atomic_store_explicit(&change->account->lsn, change->account->numbers.version - 1, memory_order_relaxed);
    }
}

static err change_apply(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    return change->verb->apply(change, group);
}

static void end_change(account_change *change) {
    account *a = change->account;
    bool wide = change->wide;
    change->done(change);
    if (wide) {
        atomic_fetch_sub(&a->wide, 1);
    }
}

static void change_done(commit *base) {
    account_change *change = (account_change *)base;
    if (!change->verb->goes_on || !change->verb->goes_on(change)) {
        end_change(change);
    }
}

void account__submit(account_change *change, const account_verb *verb) {
    change->commit = (commit){.solo = true, .use = verb->use, .apply = change_apply, .done = change_done};
    change->hook = (commit_hook){.before = change_before, .after = change_after};
    change->verb = verb;
    change->made = NULL;
    change->wide = change->account->items.homes_n > 1;
    atomic_fetch_add(&change->account->wide, change->wide);
    committer_submit(change->account->homes[0]->committer, &change->commit);
}

/* An offer's rid holds 24 bits: after 2^24 offers, numbers of deleted offers are reused. */
static uint32_t free_offer_number(account *a) {
    for (;;) {
        uint32_t number = a->numbers.offer++ & ((1u << 24) - 1);
        offer_node *used = NULL;
        HASH_FIND(by_number, a->offers, &number, sizeof number, used);
        if (number && !used) {
            return number;
        }
    }
}

static offer make_offer(account *a, commit_group *group, uint32_t database, uint32_t container, rid resource, throughput_setting t) {
    uint32_t number = free_offer_number(a);
    offer made = {
        .number = number,
        .rid = rid_offer(number),
        .database = database,
        .container = container,
        .resource = resource,
        .throughput = t,
        .highest = t.value,
        .ts = now_s(a),
        .version = a->numbers.version++,
    };
    account__put_offer(&group->batch, &made);
    return made;
}

/* ---- create database ---- */

static err check_serverless(const account_change *change, throughput_setting throughput) {
    if (change->account->rules.serverless && throughput.kind != THROUGHPUT_NONE) {
        return op_fail(change->op, E_BAD_REQUEST,
                       "Setting offer throughput or autopilot on container is not supported for serverless accounts.");
    }
    return OK;
}

static err apply_create_database(account_change *change, commit_group *group) {
    database_creation *create = (database_creation *)change;
    account *a = change->account;
    TRY(settings_check_name(change->op, create->id));
    TRY(check_serverless(change, create->throughput));
    TRY(throughput_check(change->op, create->throughput, false));
    if (account__find_database(a, create->id, false)) {
        return op_fail(change->op, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
    }
    bool shares = create->throughput.kind != THROUGHPUT_NONE;
    database *d = database_new(a->numbers.database++, create->id, now_s(a), a->numbers.version++, shares, SLICE_EMPTY);
    create->database_out = d;
    account__put_database(&group->batch, d);
    if (shares) {
        create->offer_out = make_offer(a, group, d->number, 0, d->rid, create->throughput);
        create->offer_made = true;
    }
    commit_link(group, &change->hook);
    return OK;
}

static void publish_create_database(account_change *change) {
    database_creation *create = (database_creation *)change;
    atomic_fetch_add(&create->database_out->refs, 1); /* one for the table, one for the caller */
    account__add_database(change->account, create->database_out);
    if (create->offer_made) {
        account__add_offer(change->account, &create->offer_out);
        account__divide_database(change->account, account__find_database(change->account, slice_str(create->database_out->id), false));
    }
}

void account_create_database(database_creation *create) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_create_database, .publish = publish_create_database};
    create->database_out = NULL;
    create->offer_made = false;
    account__submit(&create->base, &verb);
}

/* ---- delete database ---- */

err account__missing(op *o, err code) {
    return op_fail(o, code, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
}

/* ---- memo of a database ---- */

static err apply_note_database(account_change *change, commit_group *group) {
    database_noting *note = (database_noting *)change;
    account *a = change->account;
    database_node *node = account__find_database(a, note->database.text, note->database.by_rid);
    if (!node) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    if (note->memo.n > LIMIT_MEMO_BYTES || !doc_is_well_formed(note->memo, LIMIT_JSON_DEPTH)) {
        return op_fail(change->op, E_BAD_REQUEST, "A memo is a BSON document of up to %d bytes.", LIMIT_MEMO_BYTES);
    }
    const database *d = node->database;
    if (note->expected && note->expected != d->version) {
        return E_PRECONDITION;
    }
    note->database_out = database_new(d->number, slice_str(d->id), now_s(a), a->numbers.version++, d->shares_throughput, note->memo);
    change->made = node;
    a->noted = note->database_out->version;
    account__put_database(&group->batch, note->database_out);
    commit_link(group, &change->hook);
    return OK;
}

static void publish_note_database(account_change *change) {
    database_noting *note = (database_noting *)change;
    atomic_fetch_add(&note->database_out->refs, 1); /* one for the table, one for the caller */
    account__swap_database(change->made, note->database_out);
}

void account_note_database(database_noting *note) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_note_database, .publish = publish_note_database};
    note->database_out = NULL;
    account__submit(&note->base, &verb);
}

static void delete_container_records(account *a, commit_group *group, const container_node *node) {
    uint32_t database = node->database->database->number;
    const container *c = node->container;
    account__delete_container_record(&group->batch, database, c->space->container);
    account__delete_script_records(&group->batch, node);
    container_tiles *tiles = container_space_newest(c->space);
    deleted_container deleted = {.number = c->space->container, .tiles = tiles, .versions = item_versions_kept(c)};
    account__delete_bytes(&group->batch, a->homes[0], &deleted);
    if (account__is_wide(c)) {
        account__put_deleted(&group->batch, c->space->container, tiles);
    }
    container_tiles_give(tiles);
    offer_node *o = account__find_offer(a, database, c->space->container);
    if (o) {
        account__delete_offer_record(&group->batch, o->offer.number);
    }
}

/* Marks the container and its ranges as deleted, so that pending writes fail, and starts deleting its data. */
static void mark_container_deleted(account *a, container_node *node) {
    const container_tiles *tiles = node->container->space->newest;
    atomic_store(&node->container->space->deleted, true);
    for (size_t i = 0; i < tiles->map->n; i++) {
        tiles->ranges[i]->gone = true;
    }
    waiters_wake_all(node->container->space);
    if (node->container->space->parts[0].home) {
        account__reclaim_bytes(node->container, a->homes[0]);
    }
    if (account__is_wide(node->container)) {
        account__delete_in_other_homes(a, node->container);
    }
    account__remove_offer(a, account__find_offer(a, node->database->database->number, node->container->space->container));
    account__remove_container(a, node);
}

static err apply_delete_database(account_change *change, commit_group *group) {
    const account_name *name = &((database_deletion *)change)->database;
    account *a = change->account;
    database_node *d = account__find_database(a, name->text, name->by_rid);
    if (!d) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    if (!account__etag_matches(change->if_match, d->database->version, d->database->ts)) {
        return E_PRECONDITION;
    }
    for (container_node *c = d->containers; c; c = c->by_name.next) {
        delete_container_records(a, group, c);
    }
    account__delete_database_record(&group->batch, d->database->number);
    account__delete_user_records(&group->batch, d->database->number);
    account__delete_encryption_key_records(&group->batch, d);
    offer_node *o = account__find_offer(a, d->database->number, 0);
    if (o) {
        account__delete_offer_record(&group->batch, o->offer.number);
    }
    a->numbers.version++;
    change->made = d;
    commit_link(group, &change->hook);
    return OK;
}

static void publish_delete_database(account_change *change) {
    account *a = change->account;
    database_node *d = change->made;
    container_node *each, *next;
    HASH_ITER(by_name, d->containers, each, next) {
        mark_container_deleted(a, each);
    }
    account__remove_offer(a, account__find_offer(a, d->database->number, 0));
    account__remove_database(a, d);
}

void account_delete_database(database_deletion *remove) {
    static const account_verb verb = {.use = STORE_DROPS, .apply = apply_delete_database, .publish = publish_delete_database};
    account__submit(&remove->base, &verb);
}

/* ---- create container ---- */

/* The home of a new range. */
static home *place(const account *a, uint32_t container, uint32_t range) {
    return a->homes[a->placement == ACCOUNT_ROUND_ROBIN ? (container + range) % a->items.homes_n : 0];
}

static void make_space(account *a, container *c, uint32_t n) {
    uint32_t number = a->numbers.container++;
    partition_map *map = partition_map_new(&c->key, n);
    container_range **ranges = arena_array(&c->memory->arena, container_range *, n);
    range_sources *sources = arena_array(&c->memory->arena, range_sources, n);
    for (uint32_t i = 0; i < n; i++) {
        range_source *own = arena_new(&c->memory->arena, range_source);
        own->segment = a->numbers.segment++;
        ranges[i] = container_range_new(number, &map->ranges[i], own->segment, place(a, number, i));
        sources[i] = (range_sources){own, 1};
    }
    container_tiles *tiles = container_tiles_new(map, ranges, sources);
    c->space = container_space_new(number, a->items.homes_n, tiles);
    c->tiles = container_tiles_take(tiles);
    item_index_new(c, settings_indexing_policy(&c->memory->arena, c));
    account__set_rules(c, NULL);
}

/* Makes a new container, or a new version of one, with its API and memo. */
static err read_settings(account_change *change, slice properties, settings_rules rules, slice api, slice memo, container **container_out) {
    container *c = container_new();
    op inner;
    op_init(&inner, &c->memory->arena, change->op->now_s);
    err code = settings_read(&inner, properties, rules, c);
    code = code != OK ? code : settings_set_api(&inner, api, c);
    code = code != OK ? code : settings_set_memo(&inner, memo, c);
    if (code != OK) {
        if (inner.detail_n) {
            op_fail(change->op, code, "%s", inner.detail);
        }
        container_give(c);
        c = NULL;
    }
    *container_out = c;
    return code;
}

/* A container without its own throughput shares its database's, or else gets the minimum. */
static throughput_setting throughput_for(const container_creation *create, const database *d) {
    if (create->throughput.kind == THROUGHPUT_NONE && !d->shares_throughput && !create->base.account->rules.serverless) {
        return (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = THROUGHPUT_MIN};
    }
    return create->throughput;
}

/* The number of ranges of a new container: by its own throughput, or by the throughput it shares. */
static uint32_t ranges_at_first(account *a, const database_node *d, throughput_setting t, const container *c) {
    offer_node *shared = t.kind == THROUGHPUT_NONE ? account__find_offer(a, d->database->number, 0) : NULL;
    bool fixed = c->key.n == 0;
    return shared ? account__ranges_for(a, shared->offer.throughput, fixed) : account__ranges_at_creation(a, t, fixed);
}

static unsigned count_sharing(account *a, const database_node *d) {
    unsigned n = 0;
    for (container_node *c = d->containers; c; c = c->by_name.next) {
        n += !account__find_offer(a, d->database->number, c->container->space->container);
    }
    return n;
}

/* Counts on the committer, so that no write comes in between. Ranges in other stores have committers of their own: there the counts are
 * those of the last commit. */
static bool is_empty(const container *c) {
    const container_tiles *tiles = c->space->newest;
    uint64_t items = 0;
    for (size_t i = 0; i < tiles->map->n; i++) {
        const container_range *r = tiles->ranges[i];
        items += r->home->number == 0 ? r->pending.items : atomic_load(&r->items);
    }
    return items == 0;
}

static err check_replaced(const container_creation *create, const container_node *there) {
    if (!create->replaces) {
        return op_fail(create->base.op, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
    }
    if (there->container->version != create->replaces) {
        return E_PRECONDITION;
    }
    bool allowed = create->truncates || is_empty(there->container);
    return allowed ? OK : op_fail(create->base.op, E_PRECONDITION, "The container has items.");
}

static err check_new(const container_creation *create, database_node *d, const container *c) {
    account *a = create->base.account;
    op *o = create->base.op;
    bool shares = d->database->shares_throughput && create->throughput.kind == THROUGHPUT_NONE;
    TRY(check_serverless(&create->base, create->throughput));
    TRY(throughput_check(o, create->throughput, c->key.n == 0));
    TRY(create->api.n == 0 ? settings_check_new(o, c) : OK);
    TRY(account__check_encryption_policy(o, d, c));
    const container_node *there = create->any_case ? account__find_any_case(a, d, c->id) : account__find_container(a, d, c->id, false);
    TRY(there ? check_replaced(create, there) : OK);
    if (c->key.n == 0 && shares) {
        return op_fail(o, E_BAD_REQUEST, "A container that shares its database's throughput must have a partition key.");
    }
    if (shares && !there && count_sharing(a, d) >= SHARED_CONTAINERS_MAX) {
        return op_fail(o, E_SHARED_CONTAINERS,
                       "The database already has %d containers sharing its throughput. Give the new one throughput of its own.",
                       SHARED_CONTAINERS_MAX);
    }
    return OK;
}

static err apply_create_container(account_change *change, commit_group *group) {
    container_creation *create = (container_creation *)change;
    account *a = change->account;
    database_node *d = account__find_database(a, create->database.text, create->database.by_rid);
    container *c;
    if (!d) {
        return account__missing(change->op, E_OWNER_NOT_FOUND);
    }
    if (create->as_of && create->as_of < a->noted) {
        return E_RETRY_WITH;
    }
    TRY(read_settings(change, create->settings, (settings_rules){create->hierarchical_allowed, create->rows}, create->api, create->memo,
                      &c));
    err code = check_new(create, d, c);
    if (code != OK) {
        container_give(c);
        return code;
    }
    throughput_setting t = throughput_for(create, d->database);
    container_node *there = create->replaces ? account__find_container(a, d, c->id, false) : NULL;
    if (there) {
        offer_node *o = account__find_offer(a, d->database->number, there->container->space->container);
        t = o && create->throughput.kind == THROUGHPUT_NONE ? o->offer.throughput : t;
        delete_container_records(a, group, there);
    }
    create->replaced = there;
    make_space(a, c, ranges_at_first(a, d, t, c));
    rid r = rid_container(d->database->rid, c->space->container);
    memcpy(c->rid, r.bytes, sizeof c->rid);
    c->database_id = arena_copy(&c->memory->arena, slice_str(d->database->id));
    c->ts = now_s(a);
    c->version = a->numbers.version++;
    create->container_out = c;
    change->made = d;
    account__put_container(&group->batch, d->database->number, c);
    if (t.kind != THROUGHPUT_NONE) {
        create->offer_out = make_offer(a, group, d->database->number, c->space->container, r, t);
        create->offer_made = true;
    }
    commit_link(group, &change->hook);
    return OK;
}

static void publish_create_container(account_change *change) {
    const container_creation *create = (container_creation *)change;
    if (create->replaced) {
        mark_container_deleted(change->account, create->replaced);
    }
    account__add_container(change->account, change->made, container_take(create->container_out));
    if (create->offer_made) {
        account__add_offer(change->account, &create->offer_out);
    }
    account__divide(change->account, account__node_of(change->account, create->container_out));
}

void account_create_container(container_creation *create) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_create_container, .publish = publish_create_container};
    create->container_out = NULL;
    create->offer_made = false;
    create->replaced = NULL;
    account__submit(&create->base, &verb);
}

/* ---- replace, rename and delete container ---- */

err account__find_named(account_change *change, const account_name *database, const account_name *name, container_node **node_out) {
    account *a = change->account;
    database_node *d = account__find_database(a, database->text, database->by_rid);
    *node_out = d ? account__find_container(a, d, name->text, name->by_rid) : NULL;
    if (!*node_out) {
        return account__missing(change->op, d ? E_NOT_FOUND : E_OWNER_NOT_FOUND);
    }
    const container *c = (*node_out)->container;
    return account__etag_matches(change->if_match, c->version, c->ts) ? OK : E_PRECONDITION;
}

/* The properties with the old partition key, which a replace may omit or give without its version. */
static slice with_key_of(arena *into, slice properties, const container *before) {
    bson_t merged = BSON_INITIALIZER;
    bson_iter_t it;
    if (bson_iter_init_from_data(&it, (const uint8_t *)properties.p, properties.n)) {
        while (bson_iter_next(&it)) {
            if (strcmp(bson_iter_key(&it), "partitionKey") != 0) {
                bson_append_iter(&merged, bson_iter_key(&it), -1, &it);
            }
        }
    }
    if (doc_find_key(before->settings, SLICE_LIT("partitionKey"), &it)) {
        bson_append_iter(&merged, "partitionKey", -1, &it);
    }
    slice result = arena_copy(into, slice_of(bson_get_data(&merged), merged.len));
    bson_destroy(&merged);
    return result;
}

/* The key that new API versions show for containers without one. */
static bool is_system_key(const bson_iter_t *definition) {
    bson_iter_t it;
    return bson_iter_recurse(definition, &it) && bson_iter_find(&it, "systemKey") && BSON_ITER_HOLDS_BOOL(&it) && bson_iter_bool(&it);
}

/* If the client names a key at all, it must be the container's. */
static err check_key_named(op *o, slice properties, const container *before) {
    bson_iter_t it, inner, kind, each;
    if (!doc_find_key(properties, SLICE_LIT("partitionKey"), &it) || !BSON_ITER_HOLDS_DOCUMENT(&it)) {
        return OK;
    }
    if (before->key.n == 0 && is_system_key(&it)) {
        return OK;
    }
    size_t n = 0;
    bool same = bson_iter_recurse(&it, &inner) && bson_iter_recurse(&it, &kind);
    if (same && bson_iter_find(&kind, "kind")) {
        same = BSON_ITER_HOLDS_UTF8(&kind) &&
               slice_eq_nocase(doc_text(&kind), SLICE_LIT("MultiHash")) == (before->key.kind == PKEY_MULTI_HASH);
    }
    same = same && bson_iter_find(&inner, "paths") && bson_iter_recurse(&inner, &each);
    while (same && bson_iter_next(&each)) {
        same = n < before->key.n && BSON_ITER_HOLDS_UTF8(&each) && slice_eq(doc_text(&each), before->key.paths[n].text);
        n++;
    }
    return same && n == before->key.n ? OK : op_fail(o, E_BAD_REQUEST, "Document collection partition key cannot be changed.");
}

/* Fills in a new version of a container: everything that is not in the settings is taken from the old version. */
static void follow(account *a, container *c, const container *before) {
    c->space = before->space;
    c->tiles = container_space_newest(c->space);
    atomic_fetch_add(&c->space->refs, 1);
    memcpy(c->rid, before->rid, sizeof c->rid);
    c->database_id = arena_copy(&c->memory->arena, before->database_id);
    c->retired = before->retired;
    c->ts = now_s(a);
    c->version = a->numbers.version++;
}

/* By the settings' bytes. */
static bool same_expiries(const container *a, const container *b) {
    doc_element x, y;
    return a->expiries_n == b->expiries_n && doc_find_member(a->settings, SLICE_LIT("expiries"), &x) &&
           doc_find_member(b->settings, SLICE_LIT("expiries"), &y) && slice_eq(x.value, y.value);
}

/* Entries of unique keys that are new, for the items that are there. */
static err add_unique_keys(const container_replacement *replace, commit_group *group, const container *before, container *c) {
    range_usage usage = range_usage_of_all(c);
    if (c->unique_keys_n == before->unique_keys_n) {
        return OK;
    }
    if (usage.items > UNIQUE_ADD_ITEMS_MAX || usage.bytes > UNIQUE_ADD_BYTES_MAX) {
        return op_fail(replace->base.op, E_BAD_REQUEST,
                       "A unique key can be added to a container of up to %d items and %d MB; make a new container and copy the items.",
                       UNIQUE_ADD_ITEMS_MAX, UNIQUE_ADD_BYTES_MAX >> 20);
    }
    return item_unique_add(&replace->base.account->items, group, c, (unsigned)before->unique_keys_n, replace->base.op);
}

/* Entries of dropped unique keys. Of more items than can be visited in one step they are left, and go with the container. */
static err drop_unique_keys(const container_replacement *replace, commit_group *group, const container *before, const container *c) {
    range_usage usage = range_usage_of_all(c);
    bool any = false;
    for (size_t i = 0; i < before->unique_keys_n; i++) {
        any = any || (c->unique_keys[i].dropped && !before->unique_keys[i].dropped);
    }
    bool few = usage.items <= UNIQUE_ADD_ITEMS_MAX && usage.bytes <= UNIQUE_ADD_BYTES_MAX && !account__is_wide(c);
    container *old = (container *)(uintptr_t)before; /* is only read */
    return any && few ? item_unique_drop(&replace->base.account->items, group, old, c, replace->base.op) : OK;
}

/* Starts the work that a new ttl, change feed policy or indexing policy needs in the first home, in the same commit as the record. */
static void replace_first_part(container_replacement *replace, commit_group *group, const container *before, container *c) {
    const home *home = replace->base.account->homes[0];
    container_part *part = container_part_of(c->space, home);
    if (!part->home) {
        return;
    }
    bool expires_anew = (before->ttl == TTL_OFF && c->ttl != TTL_OFF) || (c->expiries_n && !same_expiries(before, c));
    if (expires_anew) {
        item_backfill_start(group, c->space->container);
        part->ttl_backfill = true;
    }
    if (before->version_minutes == 0 && c->version_minutes) {
        item_versions_start(group, c, home);
    } else if (before->version_minutes && c->version_minutes == 0) {
        item_versions_drop(&group->batch, c->space->container);
    }
    item_index_change(group, c, home, settings_indexing_policy(&c->memory->arena, c), &replace->index);
}

static err check_replacement(const container_replacement *replace, const container *before) {
    if (replace->api.n && !slice_eq(replace->api, before->api)) {
        return op_fail(replace->base.op, E_FORBIDDEN, "The container was made by the %.*s API: change it there.", slice_shown(before->api),
                       before->api.p);
    }
    if (replace->expected && replace->expected != before->version) {
        return E_PRECONDITION;
    }
    return check_key_named(replace->base.op, replace->settings, before);
}

/* Makes the new version of the container. */
static err make_replaced(container_replacement *replace, const container *before, container **container_out) {
    account_change *change = &replace->base;
    container *c;
    TRY(check_replacement(replace, before));
    slice settings = replace->settings.n ? with_key_of(change->op->arena, replace->settings, before) : before->settings;
    slice memo = replace->memo ? *replace->memo : before->memo;
    TRY(read_settings(change, settings, (settings_rules){true, settings_rows(before->settings)}, before->api, memo, &c));
    err code = settings_check_replace(change->op, before, c);
    code = code == OK ? account__check_encryption_policy_kept(change->op, before, c) : code;
    if (code != OK) {
        container_give(c);
        return code;
    }
    follow(change->account, c, before);
    *container_out = c;
    return OK;
}

static void set_wanted(container_replacement *replace, container *c, uint64_t from) {
    if (replace->wanted) {
        container_give(replace->wanted);
    }
    replace->wanted = c;
    replace->wanted_from = from;
}

/* With several homes this is called twice: first it computes `wanted`, for which the other homes are then prepared; the second call writes
 * the record. If another change replaced the container in between, it starts over. */
static err apply_replace_container(account_change *change, commit_group *group) {
    container_replacement *replace = (container_replacement *)change;
    container_node *node;
    container *c;
    TRY(account__find_named(change, &replace->database, &replace->container, &node));
    const container *before = node->container;
    TRY(make_replaced(replace, before, &c));
    if (account__is_wide(before) && (!replace->wanted || replace->wanted_from != before->version)) {
        set_wanted(replace, c, before->version);
        return OK;
    }
    err code = drop_unique_keys(replace, group, before, c);
    code = code != OK ? code : add_unique_keys(replace, group, before, c);
    if (code != OK) {
        container_give(c);
        return code;
    }
    replace->container_out = c;
    change->made = node;
    account__put_container(&group->batch, node->database->database->number, c);
    replace_first_part(replace, group, before, c);
    commit_link(group, &change->hook);
    return OK;
}

static void end_replace_container(account_change *change, err code) {
    container_replacement *replace = (container_replacement *)change;
    item_index_changed(replace->container_out, &replace->index, code);
}

static void is_ready(void *context, err code) {
    container_replacement *replace = context;
    account_change *change = &replace->base;
    if (code == OK) {
        committer_submit(change->account->homes[0]->committer, &change->commit);
    } else {
        change->commit.code = code;
        set_wanted(replace, NULL, 0);
        end_change(change);
    }
}

/* The record is written, so errors in other homes are ignored: the balancer retries them later. */
static void has_spread(void *context, err code) {
    (void)code;
    end_change(context);
}

static bool replace_further(account_change *change) {
    container_replacement *replace = (container_replacement *)change;
    if (!replace->wanted) {
        return false;
    }
    bool written = replace->container_out != NULL;
    if (change->commit.code != OK || written) {
        set_wanted(replace, NULL, 0);
    }
    if (change->commit.code != OK) {
        return false;
    }
    if (written) {
        account__spread_settings(change->account, replace->container_out, has_spread, change);
    } else {
        account__prepare_settings(change->account, replace->wanted, is_ready, replace);
    }
    return true;
}

static void publish_replace_container(account_change *change) {
    const container_replacement *replace = (container_replacement *)change;
    const container_node *node = change->made;
    bool here = node->container->space->parts[0].home != NULL;
    if (here && node->container->version_minutes && replace->container_out->version_minutes == 0) {
        item_versions_reclaim(replace->container_out, change->account->homes[0]);
    }
    account__swap_container(change->account, change->made, container_take(replace->container_out));
}

void account_replace_container(container_replacement *replace) {
    static const account_verb verb = {
        .use = STORE_GROWS,
        .apply = apply_replace_container,
        .ended = end_replace_container,
        .publish = publish_replace_container,
        .goes_on = replace_further,
    };
    replace->container_out = NULL;
    replace->wanted = NULL;
    replace->index = (index_change){0};
    account__submit(&replace->base, &verb);
}

/* The container that has the new name already, if any; E_CONFLICT unless it may be replaced. */
static err find_replaced(const container_renaming *renaming, const container_node *node, container_node **there_out) {
    op *o = renaming->base.op;
    *there_out = account__find_container(renaming->base.account, node->database, renaming->id, false);
    if (*there_out == node) {
        return op_fail(o, E_BAD_REQUEST, "The container has this name already.");
    }
    return !*there_out || renaming->replaces ? OK
                                             : op_fail(o, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
}

err account__renamed(account_change *change, const container *before, slice id, container **container_out) {
    slice settings = settings_renamed(change->op->arena, before->settings, id);
    TRY(read_settings(change, settings, (settings_rules){true, settings_rows(before->settings)}, before->api, before->memo, container_out));
    follow(change->account, *container_out, before);
    return OK;
}

static err apply_rename_container(account_change *change, commit_group *group) {
    container_renaming *renaming = (container_renaming *)change;
    container_node *node, *there;
    container *c;
    TRY(account__find_named(change, &renaming->database, &renaming->container, &node));
    TRY(settings_check_name(change->op, renaming->id));
    TRY(find_replaced(renaming, node, &there));
    TRY(account__renamed(change, node->container, renaming->id, &c));
    renaming->container_out = c;
    renaming->replaced = there;
    change->made = node;
    if (there) {
        delete_container_records(change->account, group, there);
    }
    account__put_container(&group->batch, node->database->database->number, c);
    commit_link(group, &change->hook);
    return OK;
}

static void publish_rename_container(account_change *change) {
    container_renaming *renaming = (container_renaming *)change;
    if (renaming->replaced) {
        mark_container_deleted(change->account, renaming->replaced);
    }
    account__rename_container(change->account, change->made, container_take(renaming->container_out));
}

void account_rename_container(container_renaming *renaming) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_rename_container, .publish = publish_rename_container};
    renaming->container_out = NULL;
    renaming->replaced = NULL;
    account__submit(&renaming->base, &verb);
}

static err apply_delete_container(account_change *change, commit_group *group) {
    const container_deletion *remove = (container_deletion *)change;
    container_node *node;
    TRY(account__find_named(change, &remove->database, &remove->container, &node));
    delete_container_records(change->account, group, node);
    change->account->numbers.version++;
    change->made = node;
    commit_link(group, &change->hook);
    return OK;
}

static void publish_delete_container(account_change *change) {
    mark_container_deleted(change->account, change->made);
}

void account_delete_container(container_deletion *remove) {
    static const account_verb verb = {.use = STORE_DROPS, .apply = apply_delete_container, .publish = publish_delete_container};
    account__submit(&remove->base, &verb);
}

/* ---- replace offer ---- */

static bool is_fixed(account *a, const offer *o) {
    container_node *node = NULL;
    if (o->container) {
        HASH_FIND(by_rid, a->containers_by_rid, o->resource.bytes, 8, node);
    }
    return node && node->container->key.n == 0;
}

static err check_offer(const offer_replacement *replace, const offer *o) {
    account *a = replace->base.account;
    offer_state state = account_offer_state(a, o); /* takes the lock: another home may be changing its ranges */
    offer wanted = *o;
    if (state.pending) {
        return E_OFFER_BUSY;
    }
    TRY(throughput_check(replace->base.op, replace->throughput, is_fixed(a, o)));
    wanted.throughput = replace->throughput;
    uint32_t least = throughput_minimum(&wanted, state.storage, state.containers);
    if (replace->throughput.value < least) {
        return op_fail(replace->base.op, E_BAD_REQUEST,
                       "The offer should have valid throughput values between %u and %d inclusive in increments of %d.", least,
                       THROUGHPUT_MAX, replace->throughput.kind == THROUGHPUT_AUTOSCALE ? AUTOSCALE_STEP : THROUGHPUT_STEP);
    }
    return OK;
}

static err apply_replace_offer(account_change *change, commit_group *group) {
    offer_replacement *replace = (offer_replacement *)change;
    account *a = change->account;
    uint32_t number = (uint32_t)rid_number(&replace->offer);
    offer_node *node = NULL;
    HASH_FIND(by_number, a->offers, &number, sizeof number, node);
    if (!node) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    if (!account__etag_matches(change->if_match, node->offer.version, node->offer.ts)) {
        return E_PRECONDITION;
    }
    TRY(check_offer(replace, &node->offer));
    offer o = node->offer;
    o.throughput = replace->throughput;
    o.highest = o.throughput.value > o.highest ? o.throughput.value : o.highest;
    if (replace->bucket_percents) {
        memcpy(o.bucket_percents, replace->bucket_percents, sizeof o.bucket_percents);
    }
    o.ts = now_s(a);
    o.version = a->numbers.version++;
    replace->offer_out = o;
    change->made = node;
    account__put_offer(&group->batch, &o);
    commit_link(group, &change->hook);
    return OK;
}

/* Throughput that needs no split applies at once, the rest after the balancer has made the splits. */
static void publish_replace_offer(account_change *change) {
    account *a = change->account;
    offer_node *node = change->made;
    database_node *d = NULL;
    container_node *c = NULL;
    node->offer = ((offer_replacement *)change)->offer_out;
    if (node->offer.container) {
        HASH_FIND(by_rid, a->containers_by_rid, node->offer.resource.bytes, 8, c);
        account__divide(a, c);
    } else {
        HASH_FIND(by_number, a->databases_by_number, &node->offer.database, sizeof node->offer.database, d);
        account__divide_database(a, d);
    }
    account_wake(a);
}

void account_replace_offer(offer_replacement *replace) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_replace_offer, .publish = publish_replace_offer};
    account__submit(&replace->base, &verb);
}
