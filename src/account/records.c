/* Databases, containers and offers as BSON in STORE_META, and back. */
#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "base/log.h"
#include "base/memory.h"
#include "item/versions.h"

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
    bson_append_int64(&r, "version", -1, (int64_t)numbers->version);
    put_record(batch, key_of('A', 0, 0, 0), &r);
}

void account__put_database(store_batch *batch, const database *d) {
    bson_t r = BSON_INITIALIZER;
    bson_append_utf8(&r, "id", -1, d->id, -1);
    bson_append_int64(&r, "ts", -1, d->ts);
    bson_append_int64(&r, "version", -1, (int64_t)d->version);
    bson_append_bool(&r, "shares", -1, d->shares_throughput);
    put_record(batch, key_of('D', 1, d->number, 0), &r);
}

/* For each range of the map how many sources it has, u32, and for each of them segment u32 · leaving u8; the range's own is the last. */
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

/* What the SQL API makes has neither: a record without them is as older servers wrote it. */
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
    bson_t r = BSON_INITIALIZER, settings, map_document;
    buf map = buf_init(BUF_NO_LIMIT), sources = buf_init(BUF_NO_LIMIT);
    write_sources(&sources, c->tiles);
    partition_map_write(c->tiles->map, &map);
    bson_append_int64(&r, "ts", -1, c->ts);
    bson_append_int64(&r, "version", -1, (int64_t)c->version);
    if (bson_init_static(&settings, (const uint8_t *)c->settings.p, c->settings.n)) {
        bson_append_document(&r, "settings", -1, &settings);
    }
    if (bson_init_static(&map_document, (const uint8_t *)map.p, map.n)) {
        bson_append_document(&r, "map", -1, &map_document);
    }
    bson_append_binary(&r, "sources", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)sources.p, (uint32_t)sources.n);
    add_memo(&r, c);
    put_record(batch, key_of('C', 2, database, c->space->container), &r);
    buf_free(&map);
    buf_free(&sources);
}

void account__put_offer(store_batch *batch, const offer *o) {
    bson_t r = BSON_INITIALIZER;
    bson_append_int64(&r, "database", -1, o->database);
    bson_append_int64(&r, "container", -1, o->container);
    bson_append_int64(&r, "kind", -1, o->throughput.kind);
    bson_append_int64(&r, "value", -1, o->throughput.value);
    bson_append_int64(&r, "highest", -1, o->highest);
    bson_append_binary(&r, "lanes", -1, BSON_SUBTYPE_BINARY, o->lanes, sizeof o->lanes);
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

/* ---- a container's bytes ---- */

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

void account__delete_bytes(store_batch *batch, const container *c, const home *home) {
    key_run run;
    const container_tiles *tiles = c->space->newest;
    run_of_container(&run, c->space->container);
    store_delete_range(batch, STORE_INDEX, layout_view(&run.from), layout_view(&run.to));
    for (uint32_t segment = 0; container_tiles_segment(tiles, home, segment, &segment); segment++) {
        run_of_segment(&run, segment);
        store_delete_range(batch, STORE_ITEMS, layout_view(&run.from), layout_view(&run.to));
        run_of_terms(&run, 'g', segment);
        store_delete_range(batch, STORE_TERMS, layout_view(&run.from), layout_view(&run.to));
    }
    for (const char *tag = "ld"; *tag; tag++) {
        run_of_terms(&run, *tag, c->space->container);
        store_delete_range(batch, STORE_TERMS, layout_view(&run.from), layout_view(&run.to));
    }
    if (item_versions_kept(c)) {
        item_versions_drop(batch, c);
    }
    for (size_t i = 0; i < tiles->map->n; i++) {
        if (tiles->ranges[i]->home == home) {
            account__delete_range_records(batch, c->space->container, tiles->ranges[i]->id);
        }
    }
    layout_backfill(&run.from, c->space->container);
    store_delete(batch, STORE_META, layout_view(&run.from));
    layout_index_state(&run.from, c->space->container);
    store_delete(batch, STORE_META, layout_view(&run.from));
}

void account__reclaim_bytes(const container *c, const home *home) {
    key_run run;
    store *store = home->store;
    run_of_container(&run, c->space->container);
    store_reclaim(store, STORE_INDEX, layout_view(&run.from), layout_view(&run.to));
    for (uint32_t segment = 0; container_tiles_segment(c->space->newest, home, segment, &segment); segment++) {
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

/* One that an older record has not is still at its beginning. */
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
        .version = (uint64_t)number_in(record, "version"),
    };
    return OK;
}

static err load_database(account *a, slice key, slice record) {
    bson_iter_t id, shares;
    if (key.n != 5 || !doc_find_key(record, SLICE_LIT("id"), &id) || !BSON_ITER_HOLDS_UTF8(&id)) {
        return E_STORE_CORRUPT;
    }
    bool shared = doc_find_key(record, SLICE_LIT("shares"), &shares) && bson_iter_as_bool(&shares);
    account__add_database(
        a, database_new(key_number(key, 0), doc_text(&id), number_in(record, "ts"), (uint64_t)number_in(record, "version"), shared));
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

static err load_counts(container_range *range) {
    layout_key k;
    store_value value;
    range_counts counts;
    layout_range(&k, range->container, range->id);
    err code = store_get(range->home->store, STORE_META, NULL, layout_view(&k), &value);
    if (code == E_NOT_FOUND) {
        return OK; /* nothing was written there yet */
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

/* The lists of all ranges, in the container's arena. False: not as write_sources left them. */
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

static err load_tiles(account *a, container *c, uint32_t number, slice record, container_tiles **tiles_out) {
    slice map_document;
    bson_iter_t it;
    const uint8_t *bytes = NULL;
    uint32_t n = 0;
    bson_subtype_t subtype;
    partition_map *map = document_in(record, "map", &map_document) ? partition_map_read(map_document) : NULL;
    if (!map) {
        return E_STORE_CORRUPT;
    }
    if (doc_find_key(record, SLICE_LIT("sources"), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, &subtype, &n, &bytes);
    }
    range_sources *sources = arena_array(&c->arena, range_sources, map->n);
    if (!read_sources(&c->arena, slice_of(bytes, n), sources, map->n)) {
        partition_map_free(map);
        return E_STORE_CORRUPT;
    }
    container_range **ranges = arena_array(&c->arena, container_range *, map->n);
    for (size_t i = 0; i < map->n; i++) {
        ranges[i] = container_range_new(number, &map->ranges[i], sources[i].list[sources[i].n - 1].segment, a->homes[0]);
    }
    *tiles_out = container_tiles_new(map, ranges, sources);
    for (size_t i = 0; i < map->n; i++) {
        err code = load_counts(ranges[i]);
        if (code != OK) {
            container_tiles_give(*tiles_out);
            return code;
        }
    }
    return OK;
}

static err load_space(account *a, container *c, slice key, slice record) {
    container_tiles *tiles;
    layout_key k;
    store_value value;
    uint32_t number = key_number(key, 1);
    TRY(load_tiles(a, c, number, record, &tiles));
    c->space = container_space_new(number, a->items.homes_n, tiles);
    c->tiles = container_tiles_take(tiles);
    container_space_set_rules(c->space, c->ttl, c->version_minutes);
    TRY(item_index_load(c, settings_indexing_policy(&c->arena, c)));
    layout_backfill(&k, number);
    err code = store_get(a->homes[0]->store, STORE_META, NULL, layout_view(&k), &value);
    if (code != OK && code != E_NOT_FOUND) {
        return code;
    }
    c->space->parts[0].ttl_backfill = code == OK;
    store_give(&value);
    return OK;
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
    op_init(&o, &c->arena, 0);
    c->database_id = arena_copy(&c->arena, slice_str(d->database->id));
    c->ts = number_in(record, "ts");
    c->version = (uint64_t)number_in(record, "version");
    rid r = rid_container(d->database->rid, key_number(key, 1));
    memcpy(c->rid, r.bytes, sizeof c->rid);
    err code = settings_read(&o, properties, (settings_rules){true, settings_rows(properties)}, c);
    code = code != OK ? code : load_memo(&o, c, record);
    if (code == OK) {
        code = load_space(a, c, key, record);
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
        .throughput = {(throughput_kind)number_in(record, "kind"), (uint32_t)number_in(record, "value")},
        .highest = (uint32_t)number_in(record, "highest"),
        .ts = number_in(record, "ts"),
        .version = (uint64_t)number_in(record, "version"),
    };
    bson_iter_t it;
    const uint8_t *lanes;
    uint32_t lanes_n;
    if (doc_find_key(record, SLICE_LIT("lanes"), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &lanes_n, &lanes);
        memcpy(o.lanes, lanes, lanes_n < sizeof o.lanes ? lanes_n : sizeof o.lanes);
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
    err code = counts_log_load(a->homes[0]->counts, a->homes[0]->store, find_range, &all);
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
    TRY(load_all(a, 'E', account__load_event));
    for (database_node *d = a->databases_by_number; d; d = d->by_number.next) {
        account__divide_database(a, d);
        for (container_node *c = d->containers; c; c = c->by_name.next) {
            account__divide(a, c);
        }
    }
    return OK;
}
