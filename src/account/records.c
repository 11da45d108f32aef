/* Databases, containers and offers as BSON in STORE_META, and back. */
#include <stdio.h>
#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "item/versions.h"
#include "item/wipe.h"

typedef struct record_key {
    char bytes[16];
    size_t n;
} record_key;

static record_key key_of(char tag, unsigned count, uint32_t first, uint32_t second) {
    record_key k = {.n = 1 + 4 * count};
    uint32_t numbers[2] = {htobe32(first), htobe32(second)};
    k.bytes[0] = tag;
    memcpy(k.bytes + 1, numbers, 4 * count);
    return k;
}

static slice view(const record_key *k) {
    return slice_of(k->bytes, k->n);
}

static void put_record(store_batch *batch, record_key k, bson_t *record) {
    store_put(batch, STORE_META, view(&k), slice_of(bson_get_data(record), record->len));
    bson_destroy(record);
}

static void delete_record(store_batch *batch, record_key k) {
    store_delete(batch, STORE_META, view(&k));
}

void account__put_numbers(store_batch *batch, const account_numbers *numbers) {
    bson_t r = BSON_INITIALIZER;
    bson_append_int64(&r, "database", -1, numbers->database);
    bson_append_int64(&r, "container", -1, numbers->container);
    bson_append_int64(&r, "segment", -1, numbers->segment);
    bson_append_int64(&r, "offer", -1, numbers->offer);
    bson_append_int64(&r, "script", -1, numbers->script);
    bson_append_int64(&r, "user", -1, numbers->user);
    bson_append_int64(&r, "permission", -1, numbers->permission);
    bson_append_int64(&r, "encryptionKey", -1, numbers->encryption_key);
    bson_append_int64(&r, "version", -1, (int64_t)numbers->version);
    put_record(batch, key_of('A', 0, 0, 0), &r);
}

void account__put_database(store_batch *batch, const database *d) {
    bson_t r = BSON_INITIALIZER;
    bson_append_utf8(&r, "id", -1, d->id, -1);
    bson_append_int64(&r, "ts", -1, d->ts);
    bson_append_int64(&r, "version", -1, (int64_t)d->version);
    bson_append_bool(&r, "shares", -1, d->shares_throughput);
    if (d->memo.n) {
        bson_t memo;
        bson_init_static(&memo, (const uint8_t *)d->memo.p, d->memo.n);
        bson_append_document(&r, "memo", -1, &memo);
    }
    put_record(batch, key_of('D', 1, d->number, 0), &r);
}

/* For each range of the map: the number of its sources, u32; then for each source: segment u32 · leaving u8. The range's own segment is
 * last. */
static void write_sources(buf *out, const container_tiles *tiles) {
    for (size_t i = 0; i < tiles->map->n; i++) {
        const range_sources *sources = &tiles->sources[i];
        buf_add_be32(out, (uint32_t)sources->n);
        for (size_t j = 0; j < sources->n; j++) {
            buf_add_be32(out, sources->list[j].segment);
            buf_add_byte(out, sources->list[j].leaving);
        }
    }
}

/* Writes the number of each range's home, u8. False: all are in the first home, and the list can be omitted. */
static bool write_homes(buf *out, const container_tiles *tiles) {
    bool any = false;
    for (size_t i = 0; i < tiles->map->n; i++) {
        any = any || tiles->ranges[i]->home->number;
        buf_add_byte(out, (char)tiles->ranges[i]->home->number);
    }
    return any;
}

static void append_tiles(bson_t *r, const container_tiles *tiles) {
    bson_t map_document;
    buf map = buf_init(BUF_NO_LIMIT), lists = buf_init(BUF_NO_LIMIT);
    partition_map_write(tiles->map, &map);
    if (bson_init_static(&map_document, (const uint8_t *)map.p, map.n)) {
        bson_append_document(r, "map", -1, &map_document);
    }
    write_sources(&lists, tiles);
    bson_append_binary(r, "sources", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)lists.p, (uint32_t)lists.n);
    buf_clear(&lists);
    if (write_homes(&lists, tiles)) {
        bson_append_binary(r, "homes", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)lists.p, (uint32_t)lists.n);
        bson_append_int64(r, "epoch", -1, (int64_t)tiles->epoch);
    }
    buf_free(&map);
    buf_free(&lists);
}

/* Containers of the SQL API store neither api nor memo, so their records are the same as those of older versions. */
static void add_memo(bson_t *record, const container *c) {
    bson_t memo;
    if (!slice_eq(c->api, SLICE_LIT("sql"))) {
        bson_append_utf8(record, "api", -1, c->api.p, (int)c->api.n);
    }
    if (c->memo.n && bson_init_static(&memo, (const uint8_t *)c->memo.p, c->memo.n)) {
        bson_append_document(record, "memo", -1, &memo);
    }
}

void account__put_container(store_batch *batch, uint32_t database, const container *c) {
    bson_t r = BSON_INITIALIZER, settings;
    bson_append_int64(&r, "ts", -1, c->ts);
    bson_append_int64(&r, "version", -1, (int64_t)c->version);
    if (bson_init_static(&settings, (const uint8_t *)c->settings.p, c->settings.n)) {
        bson_append_document(&r, "settings", -1, &settings);
    }
    append_tiles(&r, c->tiles);
    add_memo(&r, c);
    if (c->retired) {
        bson_append_bool(&r, "retired", -1, true);
    }
    put_record(batch, key_of('C', 2, database, c->space->container), &r);
}

void account__put_tiles(store_batch *batch, uint32_t container, const container_tiles *tiles) {
    bson_t r = BSON_INITIALIZER;
    append_tiles(&r, tiles);
    put_record(batch, key_of('T', 1, container, 0), &r);
}

void account__put_deleted(store_batch *batch, uint32_t container, const container_tiles *tiles) {
    bson_t r = BSON_INITIALIZER;
    append_tiles(&r, tiles);
    put_record(batch, key_of('X', 1, container, 0), &r);
}

void account__delete_deleted(store_batch *batch, uint32_t container) {
    delete_record(batch, key_of('X', 1, container, 0));
}

void account__put_offer(store_batch *batch, const offer *o) {
    bson_t r = BSON_INITIALIZER;
    bson_append_int64(&r, "database", -1, o->database);
    bson_append_int64(&r, "container", -1, o->container);
    bson_append_int64(&r, "kind", -1, o->throughput.kind);
    bson_append_int64(&r, "value", -1, o->throughput.value);
    if (o->throughput.has_increment) {
        bson_append_int64(&r, "increment", -1, o->throughput.increment_percent);
    }
    bson_append_int64(&r, "highest", -1, o->highest);
    bson_append_binary(&r, "lanes", -1, BSON_SUBTYPE_BINARY, o->bucket_percents, sizeof o->bucket_percents);
    bson_append_int64(&r, "ts", -1, o->ts);
    bson_append_int64(&r, "version", -1, (int64_t)o->version);
    put_record(batch, key_of('O', 1, o->number, 0), &r);
}

void account__delete_database_record(store_batch *batch, uint32_t database) {
    delete_record(batch, key_of('D', 1, database, 0));
}

void account__delete_container_record(store_batch *batch, uint32_t database, uint32_t container) {
    delete_record(batch, key_of('C', 2, database, container));
}

void account__delete_offer_record(store_batch *batch, uint32_t offer) {
    delete_record(batch, key_of('O', 1, offer, 0));
}

/* ---- a container's data ---- */

typedef struct key_run {
    layout_key from, to;
} key_run;

static void run_of_container(key_run *run, uint32_t container) {
    layout_container(&run->from, container);
    run->to = run->from;
    layout_after(&run->to);
}

static void run_of_segment(key_run *run, uint32_t segment) {
    layout_segment(&run->from, segment);
    run->to = run->from;
    layout_after(&run->to);
}

static void run_of_terms(key_run *run, char tag, uint32_t of) {
    layout_all_terms(&run->from, tag, of);
    run->to = run->from;
    layout_after(&run->to);
}

void account__delete_range_records(store_batch *batch, uint32_t container, uint32_t range) {
    layout_key k;
    layout_range(&k, container, range);
    store_delete(batch, STORE_META, layout_view(&k));
    layout_move(&k, container, range);
    store_delete(batch, STORE_META, layout_view(&k));
}

void account__delete_bytes(store_batch *batch, const home *home, const deleted_container *c) {
    key_run run;
    run_of_container(&run, c->number);
    store_delete_range(batch, STORE_INDEX, layout_view(&run.from), layout_view(&run.to));
    for (uint32_t segment = 0; container_tiles_segment(c->tiles, home, segment, &segment); segment++) {
        run_of_segment(&run, segment);
        store_delete_range(batch, STORE_ITEMS, layout_view(&run.from), layout_view(&run.to));
        run_of_terms(&run, 'g', segment);
        store_delete_range(batch, STORE_TERMS, layout_view(&run.from), layout_view(&run.to));
    }
    for (const char *tag = "ld"; *tag; tag++) {
        run_of_terms(&run, *tag, c->number);
        store_delete_range(batch, STORE_TERMS, layout_view(&run.from), layout_view(&run.to));
    }
    if (c->versions) {
        item_versions_drop(batch, c->number);
    }
    item_wipes_drop(batch, c->number);
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        if (c->tiles->ranges[i]->home == home) {
            account__delete_range_records(batch, c->number, c->tiles->ranges[i]->id);
        }
    }
    layout_backfill(&run.from, c->number);
    store_delete(batch, STORE_META, layout_view(&run.from));
    layout_index_state(&run.from, c->number);
    store_delete(batch, STORE_META, layout_view(&run.from));
    if (home->number) {
        delete_record(batch, key_of('T', 1, c->number, 0));
    }
}

void account__reclaim_bytes(const container *c, const home *home) {
    key_run run;
    store *store = home->store;
    run_of_container(&run, c->space->container);
    store_reclaim(store, STORE_INDEX, layout_view(&run.from), layout_view(&run.to));
    const container_tiles *tiles = container_part_of(c->space, home)->tiles;
    for (uint32_t segment = 0; container_tiles_segment(tiles, home, segment, &segment); segment++) {
        run_of_segment(&run, segment);
        store_reclaim(store, STORE_ITEMS, layout_view(&run.from), layout_view(&run.to));
        run_of_terms(&run, 'g', segment);
        store_reclaim(store, STORE_TERMS, layout_view(&run.from), layout_view(&run.to));
    }
    if (item_versions_kept(c)) {
        item_versions_reclaim(c, home);
    }
    run_of_terms(&run, 'l', c->space->container);
    store_reclaim(store, STORE_TERMS, layout_view(&run.from), layout_view(&run.to));
}

/* ---- loading ---- */

static int64_t number_in(slice record, const char *name) {
    bson_iter_t it;
    return doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

static uint32_t key_number(slice key, unsigned index) {
    uint32_t number;
    memcpy(&number, key.p + 1 + 4 * index, 4);
    return be32toh(number);
}

/* A number that an older record lacks starts at 1. */
static uint32_t next_in(slice record, const char *name) {
    uint32_t next = (uint32_t)number_in(record, name);
    return next ? next : 1;
}

static err load_numbers(account *a, slice key, slice record) {
    (void)key;
    a->numbers = (account_numbers){
        .database = (uint32_t)number_in(record, "database"),
        .container = (uint32_t)number_in(record, "container"),
        .segment = (uint32_t)number_in(record, "segment"),
        .offer = (uint32_t)number_in(record, "offer"),
        .script = next_in(record, "script"),
        .user = next_in(record, "user"),
        .permission = next_in(record, "permission"),
        .encryption_key = next_in(record, "encryptionKey"),
        .version = (uint64_t)number_in(record, "version"),
    };
    return OK;
}

static bool document_in(slice record, const char *name, slice *document_out) {
    bson_iter_t it;
    uint32_t n;
    const uint8_t *p;
    if (!doc_find_key(record, slice_str(name), &it) || !BSON_ITER_HOLDS_DOCUMENT(&it)) {
        return false;
    }
    bson_iter_document(&it, &n, &p);
    *document_out = slice_of(p, n);
    return true;
}

static err load_database(account *a, slice key, slice record) {
    bson_iter_t id, shares;
    slice memo = SLICE_EMPTY;
    if (key.n != 5 || !doc_find_key(record, SLICE_LIT("id"), &id) || !BSON_ITER_HOLDS_UTF8(&id)) {
        return E_STORE_CORRUPT;
    }
    bool shared = doc_find_key(record, SLICE_LIT("shares"), &shares) && bson_iter_as_bool(&shares);
    document_in(record, "memo", &memo);
    account__add_database(
        a, database_new(key_number(key, 0), doc_text(&id), number_in(record, "ts"), (uint64_t)number_in(record, "version"), shared, memo));
    return OK;
}

static err load_counts(container_range *range) {
    layout_key k;
    store_value value;
    range_counts counts;
    layout_range(&k, range->container, range->id);
    err code = store_get(range->home->store, STORE_META, NULL, layout_view(&k), &value);
    if (code == E_NOT_FOUND) {
        return OK; /* nothing was written to the range yet */
    }
    TRY(code);
    bool read = layout_counts_read(value.bytes, &counts);
    store_give(&value);
    if (!read) {
        return E_STORE_CORRUPT;
    }
    container_range_restore(range, &counts);
    return OK;
}

static uint32_t take_be32(slice *rest) {
    uint32_t value;
    memcpy(&value, rest->p, 4);
    *rest = slice_skip(*rest, 4);
    return be32toh(value);
}

/* Reads the source lists of all ranges, into the arena. False: not in the form of write_sources. */
static bool read_sources(arena *a, slice rest, range_sources *sources, size_t ranges_n) {
    for (size_t i = 0; i < ranges_n; i++) {
        uint32_t n = rest.n >= 4 ? take_be32(&rest) : 0;
        if (n == 0 || n > rest.n / 5) {
            return false;
        }
        range_source *list = arena_array(a, range_source, n);
        sources[i] = (range_sources){list, n};
        for (uint32_t j = 0; j < n; j++) {
            list[j].segment = take_be32(&rest);
            list[j].leaving = rest.p[0] != 0;
            rest = slice_skip(rest, 1);
        }
    }
    return rest.n == 0;
}

static slice binary_in(slice record, const char *name) {
    bson_iter_t it;
    const uint8_t *bytes = NULL;
    uint32_t n = 0;
    if (doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &n, &bytes);
    }
    return slice_of(bytes, n);
}

/* The home of a range; NULL: no such home. A record without homes was written with a single store. */
static home *home_in(account *a, slice homes, size_t range) {
    unsigned char number = range < homes.n ? (unsigned char)homes.p[range] : 0;
    return (homes.n == 0 || range < homes.n) && number < a->items.homes_n ? a->homes[number] : NULL;
}

/* Reads tiles as append_tiles wrote them. */
static err read_tiles(account *a, arena *scratch, uint32_t number, slice record, container_tiles **tiles_out) {
    slice map_document, homes = binary_in(record, "homes");
    partition_map *map = document_in(record, "map", &map_document) ? partition_map_read(map_document) : NULL;
    if (!map) {
        return E_STORE_CORRUPT;
    }
    range_sources *sources = arena_array(scratch, range_sources, map->n);
    container_range **ranges = arena_array(scratch, container_range *, map->n);
    bool good = read_sources(scratch, binary_in(record, "sources"), sources, map->n);
    for (size_t i = 0; i < map->n && good; i++) {
        good = home_in(a, homes, i) != NULL;
    }
    if (!good) {
        partition_map_free(map);
        return E_STORE_CORRUPT;
    }
    for (size_t i = 0; i < map->n; i++) {
        ranges[i] = container_range_new(number, &map->ranges[i], sources[i].list[sources[i].n - 1].segment, home_in(a, homes, i));
    }
    *tiles_out = container_tiles_new(map, ranges, sources);
    (*tiles_out)->epoch = (uint64_t)number_in(record, "epoch");
    return OK;
}

/* The newest tiles: from the container's record, or from a later split or merge in another home that the record does not contain yet. */
static err newest_tiles(account *a, arena *scratch, uint32_t number, slice record, container_tiles **tiles_out) {
    record_key k = key_of('T', 1, number, 0);
    TRY(read_tiles(a, scratch, number, record, tiles_out));
    err code = OK;
    for (size_t i = 1; i < a->items.homes_n && code == OK; i++) {
        store_value value;
        container_tiles *other = NULL;
        code = store_get(a->homes[i]->store, STORE_META, NULL, view(&k), &value);
        if (code == E_NOT_FOUND) {
            code = OK;
            continue;
        }
        if (code == OK && (uint64_t)number_in(value.bytes, "epoch") > (*tiles_out)->epoch) {
            code = read_tiles(a, scratch, number, value.bytes, &other);
        }
        store_give(&value);
        if (other) {
            container_tiles_give(*tiles_out);
            *tiles_out = other;
        }
    }
    if (code != OK) {
        container_tiles_give(*tiles_out);
    }
    return code;
}

static err load_tiles(account *a, container *c, uint32_t number, slice record, container_tiles **tiles_out) {
    TRY(newest_tiles(a, &c->memory->arena, number, record, tiles_out));
    for (size_t i = 0; i < (*tiles_out)->map->n; i++) {
        err code = load_counts((*tiles_out)->ranges[i]);
        if (code != OK) {
            container_tiles_give(*tiles_out);
            return code;
        }
    }
    return OK;
}

static err load_backfill(const container *c, container_part *part) {
    layout_key k;
    store_value value;
    layout_backfill(&k, c->space->container);
    err code = store_get(part->home->store, STORE_META, NULL, layout_view(&k), &value);
    if (code != OK && code != E_NOT_FOUND) {
        return code;
    }
    part->ttl_backfill = code == OK;
    store_give(&value);
    return OK;
}

static err load_space(account *a, container *c, slice key, slice record) {
    container_tiles *tiles;
    uint32_t number = key_number(key, 1);
    TRY(load_tiles(a, c, number, record, &tiles));
    c->space = container_space_new(number, a->items.homes_n, tiles);
    c->space->tiles_unrecorded = tiles->epoch != (uint64_t)number_in(record, "epoch");
    c->tiles = container_tiles_take(tiles);
    account__set_rules(c, NULL);
    TRY(item_index_load(c, settings_indexing_policy(&c->memory->arena, c)));
    for (size_t i = 0; i < c->space->parts_n; i++) {
        TRY(c->space->parts[i].home ? load_backfill(c, &c->space->parts[i]) : OK);
    }
    return item_wipes_load(c);
}

static err load_memo(op *o, container *c, slice record) {
    bson_iter_t it;
    slice memo = SLICE_EMPTY;
    document_in(record, "memo", &memo);
    TRY(settings_set_memo(o, memo, c));
    bool named = doc_find_key(record, SLICE_LIT("api"), &it) && BSON_ITER_HOLDS_UTF8(&it);
    return settings_set_api(o, named ? doc_text(&it) : SLICE_EMPTY, c);
}

static err load_container(account *a, slice key, slice record) {
    slice properties;
    bson_iter_t retired;
    database_node *d = NULL;
    if (key.n != 9 || !document_in(record, "settings", &properties)) {
        return E_STORE_CORRUPT;
    }
    uint32_t database = key_number(key, 0);
    HASH_FIND(by_number, a->databases_by_number, &database, sizeof database, d);
    if (!d) {
        return E_STORE_CORRUPT;
    }
    container *c = container_new();
    op o;
    op_init(&o, &c->memory->arena, 0);
    c->database_id = arena_copy(&c->memory->arena, slice_str(d->database->id));
    c->ts = number_in(record, "ts");
    c->version = (uint64_t)number_in(record, "version");
    rid r = rid_container(d->database->rid, key_number(key, 1));
    memcpy(c->rid, r.bytes, sizeof c->rid);
    err code = settings_read(&o, properties, (settings_rules){true, settings_rows(properties)}, c);
    code = code != OK ? code : load_memo(&o, c, record);
    if (code == OK) {
        code = load_space(a, c, key, record);
    }
    if (code == OK && doc_find_key(record, SLICE_LIT("retired"), &retired)) {
        c->retired = true;
        c->space->frozen_us = CONTAINER_FOREVER;
    }
    if (code != OK) {
        log_error("account", "a container's record cannot be read", "database=%u container=%u", database, key_number(key, 1));
        container_give(c);
        return code == E_STORE_IO ? code : E_STORE_CORRUPT;
    }
    account__add_container(a, d, c);
    return OK;
}

static err load_offer(account *a, slice key, slice record) {
    if (key.n != 5) {
        return E_STORE_CORRUPT;
    }
    offer o = {
        .number = key_number(key, 0),
        .rid = rid_offer(key_number(key, 0)),
        .database = (uint32_t)number_in(record, "database"),
        .container = (uint32_t)number_in(record, "container"),
        .throughput = {.kind = (throughput_kind)number_in(record, "kind"), .value = (uint32_t)number_in(record, "value")},
        .highest = (uint32_t)number_in(record, "highest"),
        .ts = number_in(record, "ts"),
        .version = (uint64_t)number_in(record, "version"),
    };
    bson_iter_t it;
    o.throughput.has_increment = doc_find_key(record, SLICE_LIT("increment"), &it);
    o.throughput.increment_percent = o.throughput.has_increment ? (uint32_t)number_in(record, "increment") : 0;
    const uint8_t *bucket_percents;
    uint32_t percents_n;
    if (doc_find_key(record, SLICE_LIT("lanes"), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &percents_n, &bucket_percents);
        memcpy(o.bucket_percents, bucket_percents, percents_n < sizeof o.bucket_percents ? percents_n : sizeof o.bucket_percents);
    }
    o.resource = rid_database(o.database);
    if (o.container) {
        o.resource = rid_container(o.resource, o.container);
    }
    account__add_offer(a, &o);
    return OK;
}

static err load_all(account *a, char tag, err (*load)(account *, slice key, slice record)) {
    char from[1] = {tag}, to[1] = {(char)(tag + 1)};
    slice key, value;
    err code = OK;
    store_scan *scan = store_scan_open(a->homes[0]->store, STORE_META, NULL, slice_of(from, 1), slice_of(to, 1), false);
    while (code == OK && store_scan_next(scan, &key, &value)) {
        code = load(a, key, value);
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

/* ---- identity of stores ---- */

/* 'H' → the account's secret, the store's number, the number of stores. An account with one store has no such record. */
typedef struct home_record {
    bool there;
    int64_t account, number, homes;
} home_record;

static err read_home(const home *h, home_record *record_out) {
    store_value value;
    record_key k = key_of('H', 0, 0, 0);
    *record_out = (home_record){0};
    err code = store_get(h->store, STORE_META, NULL, view(&k), &value);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code;
    }
    *record_out = (home_record){true, number_in(value.bytes, "account"), number_in(value.bytes, "number"), number_in(value.bytes, "homes")};
    store_give(&value);
    return OK;
}

static err write_home(const home *h, const home_record *record) {
    bson_t r = BSON_INITIALIZER;
    store_batch batch;
    store_batch_init(&batch);
    bson_append_int64(&r, "account", -1, record->account);
    bson_append_int64(&r, "number", -1, record->number);
    bson_append_int64(&r, "homes", -1, record->homes);
    put_record(&batch, key_of('H', 0, 0, 0), &r);
    err code = store_write(h->store, &batch);
    store_batch_free(&batch);
    return code;
}

static err check_home(account *a, size_t i, const home_record *first, char *why, size_t why_n) {
    home_record now, wanted = {true, first->account, (int64_t)i, (int64_t)a->items.homes_n};
    TRY(read_home(a->homes[i], &now));
    if (now.there && (now.account != first->account || now.number != (int64_t)i)) {
        snprintf(why, why_n, "store %zu was store %lld of %s account; give the stores in the order of before", i, (long long)now.number,
                 now.account == first->account ? "this" : "another");
        return E_UNAVAILABLE;
    }
    return now.there && now.homes == wanted.homes ? OK : write_home(a->homes[i], &wanted);
}

err account__check_homes(account *a, char *why, size_t why_n) {
    home_record first;
    TRY(read_home(a->homes[0], &first));
    if (first.there && first.homes > (int64_t)a->items.homes_n) {
        snprintf(why, why_n, "the account has %lld stores, and %zu were given; give all of them", (long long)first.homes, a->items.homes_n);
        return E_UNAVAILABLE;
    }
    if (a->items.homes_n == 1) {
        return OK;
    }
    if (!first.there) {
        random_source system;
        random_seed_system(&system);
        first.account = (int64_t)random_u64(&system);
    }
    for (size_t i = 0; i < a->items.homes_n; i++) {
        TRY(check_home(a, i, &first, why, why_n));
    }
    return OK;
}

/* ---- deletions that a crash interrupted ---- */

static err finish_deletion(account *a, slice key, slice record) {
    arena scratch = arena_init();
    deleted_container c = {.number = key_number(key, 0), .versions = true};
    container_tiles *tiles = NULL;
    err code = key.n == 5 ? newest_tiles(a, &scratch, c.number, record, &tiles) : E_STORE_CORRUPT;
    c.tiles = tiles;
    for (size_t i = a->items.homes_n; i-- > 0 && code == OK;) { /* the first home last: it has the record of the pending deletion */
        store_batch batch;
        store_batch_init(&batch);
        batch.use = STORE_DROPS;
        if (i > 0) {
            account__delete_bytes(&batch, a->homes[i], &c);
        } else {
            account__delete_deleted(&batch, c.number);
        }
        code = store_write(a->homes[i]->store, &batch);
        store_batch_free(&batch);
    }
    if (code != OK) { /* harmless: the next start tries again */
        log_warn("account", "a deleted container's items still take space", "container=%u code=%s", c.number, err_lookup(code)->name);
    }
    if (tiles) {
        container_tiles_give(tiles);
    }
    arena_free(&scratch);
    return OK;
}

/* ---- counts ---- */

typedef struct numbered {
    uint32_t number;
    const container *container;
} numbered;

typedef struct all_containers {
    numbered *list;
    size_t n;
} all_containers;

static int by_number_order(const void *a, const void *b) {
    uint32_t x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return (x > y) - (x < y);
}

static container_range *find_range(void *context, uint32_t number, uint32_t range) {
    const all_containers *all = context;
    numbered wanted = {.number = number};
    const numbered *found = bsearch(&wanted, all->list, all->n, sizeof wanted, by_number_order);
    const container_tiles *tiles = found ? found->container->tiles : NULL;
    const partition_range *r = tiles ? partition_map_by_id(tiles->map, range) : NULL;
    return r ? tiles->ranges[r - tiles->map->ranges] : NULL;
}

static err load_counts_log(account *a) {
    all_containers all = {.list = mem_alloc((HASH_CNT(by_rid, a->containers_by_rid) + 1) * sizeof *all.list)};
    for (container_node *node = a->containers_by_rid; node; node = node->by_rid.next) {
        all.list[all.n++] = (numbered){node->container->space->container, node->container};
    }
    qsort(all.list, all.n, sizeof *all.list, by_number_order);
    err code = OK;
    for (size_t i = 0; i < a->items.homes_n && code == OK; i++) {
        code = counts_log_load(a->homes[i]->counts, a->homes[i]->store, find_range, &all);
    }
    free(all.list);
    return code;
}

err account__load(account *a) {
    TRY(load_all(a, 'A', load_numbers));
    TRY(load_all(a, 'D', load_database));
    TRY(load_all(a, 'C', load_container));
    TRY(load_all(a, 'S', account__load_script));
    TRY(load_counts_log(a));
    for (container_node *node = a->containers_by_rid; node; node = node->by_rid.next) {
        TRY(item_index_progress(node->container));
    }
    TRY(load_all(a, 'O', load_offer));
    TRY(load_all(a, 'U', account__load_user));
    TRY(load_all(a, 'P', account__load_permission));
    TRY(load_all(a, 'K', account__load_encryption_key));
    TRY(load_all(a, 'E', account__load_event));
    TRY(load_all(a, 'X', finish_deletion));
    for (database_node *d = a->databases_by_number; d; d = d->by_number.next) {
        account__divide_database(a, d);
        for (container_node *c = d->containers; c; c = c->by_name.next) {
            account__divide(a, c);
        }
    }
    return OK;
}
