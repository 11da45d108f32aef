#include "api/sql/listing.h"
#include "throughput/charge.h"

static void add_text(bson_t *doc, const char *name, const rid *r, const char *before, const char *after) {
    buf text = buf_init(256);
    buf_add(&text, before, strlen(before));
    rid_write(&text, r);
    buf_add(&text, after, strlen(after));
    bson_append_utf8(doc, name, -1, text.p, (int)text.n);
    buf_free(&text);
}

static void add_resource(bson_t *doc, const offer *o) {
    buf text = buf_init(256);
    rid database = rid_database_of(&o->resource);
    buf_add_lit(&text, "dbs/");
    rid_write(&text, &database);
    buf_add_byte(&text, '/');
    if (o->container) {
        buf_add_lit(&text, "colls/");
        rid_write(&text, &o->resource);
        buf_add_byte(&text, '/');
    }
    bson_append_utf8(doc, "resource", -1, text.p, (int)text.n);
    buf_free(&text);
}

static void add_lanes(bson_t *content, const offer *o) {
    bson_t list, one;
    bson_append_array_begin(content, "throughputBuckets", -1, &list);
    for (unsigned i = 0, n = 0; i < THROUGHPUT_BUCKETS; i++) {
        if (o->bucket_percents[i]) {
            char key[4] = {(char)('0' + n++)};
            bson_append_document_begin(&list, key, 1, &one);
            bson_append_int32(&one, "id", -1, (int32_t)i + 1);
            bson_append_int32(&one, "maxThroughputPercentage", -1, o->bucket_percents[i]);
            bson_append_document_end(&list, &one);
        }
    }
    bson_append_array_end(content, &list);
}

static bool has_lanes(const offer *o) {
    static const uint8_t none[sizeof o->bucket_percents];
    return memcmp(o->bucket_percents, none, sizeof none) != 0;
}

static void add_increment(bson_t *settings, uint32_t percent) {
    bson_t upgrade, policy;
    bson_append_document_begin(settings, "autoUpgradePolicy", -1, &upgrade);
    bson_append_document_begin(&upgrade, "throughputPolicy", -1, &policy);
    bson_append_int32(&policy, "incrementPercent", -1, (int32_t)percent);
    bson_append_document_end(&upgrade, &policy);
    bson_append_document_end(settings, &upgrade);
}

static void add_content(bson_t *doc, const offer *o, const offer_state *state) {
    bson_t content, settings;
    bson_append_document_begin(doc, "content", -1, &content);
    bool autoscale = o->throughput.kind == THROUGHPUT_AUTOSCALE;
    uint32_t least = o->throughput.value / AUTOSCALE_RATIO;
    bson_append_int32(&content, "offerThroughput", -1, (int32_t)(autoscale ? least : throughput_provisioned(o->throughput)));
    if (autoscale) {
        bson_append_document_begin(&content, "offerAutopilotSettings", -1, &settings);
        bson_append_int32(&settings, "maxThroughput", -1, (int32_t)o->throughput.value);
        if (o->throughput.has_increment) {
            add_increment(&settings, o->throughput.increment_percent);
        }
        bson_append_document_end(&content, &settings);
    }
    bson_append_document_begin(&content, "offerMinimumThroughputParameters", -1, &settings);
    bson_append_int32(&settings, "maxThroughputEverProvisioned", -1, (int32_t)o->highest);
    bson_append_int64(&settings, "maxConsumedStorageEverInKB", -1, (int64_t)(state->storage / 1024));
    bson_append_document_end(&content, &settings);
    if (has_lanes(o)) {
        add_lanes(&content, o);
    }
    bson_append_document_end(doc, &content);
}

/* Built in place: a bson_t may point into itself and cannot be copied. */
static void make_document(const offer *o, const offer_state *state, bson_t *doc) {
    char etag[ITEM_ETAG_BYTES + 1];
    bson_init(doc);
    item_etag(etag, o->version, (uint32_t)o->ts);
    add_resource(doc, o);
    bson_append_utf8(doc, "offerType", -1, "Invalid", -1);
    add_text(doc, "offerResourceId", &o->resource, "", "");
    bson_append_utf8(doc, "offerVersion", -1, "V2", -1);
    add_content(doc, o, state);
    add_text(doc, "id", &o->rid, "", "");
    add_text(doc, "_rid", &o->rid, "", "");
    add_text(doc, "_self", &o->rid, "offers/", "/");
    bson_append_utf8(doc, "_etag", -1, etag, ITEM_ETAG_BYTES);
    bson_append_int64(doc, "_ts", -1, o->ts);
}

static slice view(const bson_t *doc) {
    return slice_of(bson_get_data(doc), doc->len);
}

static void answer(sql_request *q, const offer *o) {
    bson_t doc;
    offer_state state = account_offer_state(q->front->account, o);
    make_document(o, &state, &doc);
    sql_start(q, 200);
    sql_add_etag(q, o->version, (uint32_t)o->ts);
    sql_add_account(q);
    buf_addf(sql_fields(q),
             "x-ms-cosmos-min-throughput: %u\r\nx-ms-offer-replace-pending: %s\r\nx-ms-cosmos-instant-scale-up-value: %u\r\n"
             "x-ms-cosmos-offer-max-allowed-throughput: %d\r\n",
             state.least, state.pending ? "true" : "false", state.instant, THROUGHPUT_MAX);
    json_from_bson(sql_start_body(q), view(&doc));
    bson_destroy(&doc);
    sql_end(q);
}

/* ---- list and query ---- */

static bool list_one(void *context, const offer *o) {
    buf *out = sql_listing_add(context, o->number);
    if (out) {
        bson_t doc;
        make_document(o, &(offer_state){0}, &doc);
        json_from_bson(out, view(&doc));
        bson_destroy(&doc);
    }
    return out;
}

static void list_all(sql_listing *l) {
    account_each_offer(l->q->front->account, l->after, list_one, l);
}

void sql_offer_list(sql_request *q) {
    sql_listing_run(q, &(rid){0}, "Offers", list_all);
}

/* ---- read and replace ---- */

static err find_rid(sql_request *q, rid *rid_out) {
    if (rid_parse(q->route.child, rid_out) != RID_OFFER) {
        return op_fail(&q->op, E_NOT_FOUND, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
    }
    return OK;
}

void sql_offer_read(sql_request *q) {
    rid r;
    offer o;
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = find_rid(q, &r);
    code = code != OK ? code : account_offer(q->front->account, &r, &o);
    code == OK ? answer(q, &o) : sql_fail(q, code);
}

static bool manual_value(slice body, uint32_t *value_out) {
    doc_path path = {.steps = (slice[]){SLICE_LIT("content"), SLICE_LIT("offerThroughput")}, .steps_n = 2};
    return sql_whole(body, &path, value_out);
}

static bool autopilot_of(slice body, throughput_setting *setting_out) {
    doc_path path = {.steps = (slice[]){SLICE_LIT("content"), SLICE_LIT("offerAutopilotSettings")}, .steps_n = 2};
    bson_iter_t it;
    uint32_t n;
    const uint8_t *p;
    if (!doc_find(body, &path, &it) || !BSON_ITER_HOLDS_DOCUMENT(&it)) {
        return false;
    }
    bson_iter_document(&it, &n, &p);
    return sql_autopilot(slice_of(p, n), setting_out);
}

/* The body says manual or autoscale; the migration fields convert one into the other at the same value. */
static err read_setting(sql_request *q, slice body, throughput_setting *setting_out) {
    bson_iter_t it;
    if (doc_find_key(body, SLICE_LIT("offerVersion"), &it) && !(BSON_ITER_HOLDS_UTF8(&it) && slice_eq(doc_text(&it), SLICE_LIT("V2")))) {
        return op_fail(&q->op, E_BAD_REQUEST, "Only offers of version V2 can be replaced.");
    }
    if (autopilot_of(body, setting_out)) {
        if (sql_flag(q, FIELD_MIGRATE_TO_MANUAL)) { /* at the maximum, not at what autoscale went down to */
            *setting_out = (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = setting_out->value};
        }
        return OK;
    }
    *setting_out = (throughput_setting){0};
    if (manual_value(body, &setting_out->value)) {
        setting_out->kind = sql_flag(q, FIELD_MIGRATE_TO_AUTOPILOT) ? THROUGHPUT_AUTOSCALE : THROUGHPUT_MANUAL;
        if (setting_out->kind == THROUGHPUT_AUTOSCALE && setting_out->value <= THROUGHPUT_MAX) { /* larger values are rejected later */
            uint32_t rounded = (setting_out->value + AUTOSCALE_STEP - 1) / AUTOSCALE_STEP * AUTOSCALE_STEP;
            setting_out->value = rounded < AUTOSCALE_MIN ? AUTOSCALE_MIN : rounded;
        }
        return OK;
    }
    return op_fail(&q->op, E_BAD_REQUEST, "The offer's content has neither offerThroughput nor offerAutopilotSettings.maxThroughput.");
}

static bool read_percent(slice bucket, uint8_t *bucket_percents) {
    bson_iter_t id, percent;
    if (!doc_find_key(bucket, SLICE_LIT("id"), &id) || !doc_find_key(bucket, SLICE_LIT("maxThroughputPercentage"), &percent) ||
        !BSON_ITER_HOLDS_NUMBER(&id) || !BSON_ITER_HOLDS_NUMBER(&percent)) {
        return false;
    }
    int64_t number = bson_iter_as_int64(&id), value = bson_iter_as_int64(&percent);
    if (number < 1 || number > THROUGHPUT_BUCKETS || value < 1 || value > 100 || bucket_percents[number - 1]) {
        return false;
    }
    bucket_percents[number - 1] = (uint8_t)value;
    return true;
}

/* content.throughputBuckets: [{"id": 1, "maxThroughputPercentage": 20}, …]. If absent, the buckets stay unchanged. */
static err read_percents(sql_request *q, slice body, const uint8_t **percents_out) {
    doc_path path = {.steps = (slice[]){SLICE_LIT("content"), SLICE_LIT("throughputBuckets")}, .steps_n = 2};
    bson_iter_t it, each;
    if (!doc_find(body, &path, &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    uint8_t *bucket_percents = arena_array(q->http->arena, uint8_t, THROUGHPUT_BUCKETS);
    bool good = BSON_ITER_HOLDS_ARRAY(&it) && bson_iter_recurse(&it, &each);
    while (good && bson_iter_next(&each)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&each)) {
            bson_iter_document(&each, &n, &p);
        }
        good = n && read_percent(slice_of(p, n), bucket_percents);
    }
    *percents_out = bucket_percents;
    return good ? OK
                : op_fail(&q->op, E_BAD_REQUEST,
                          "throughputBuckets must be at most five of {\"id\": 1 to 5, \"maxThroughputPercentage\": 1 to 100}.");
}

static void replaced(sql_request *q) {
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    sql_change_code(q) == OK ? answer(q, &((offer_replacement *)q->change)->offer_out) : sql_fail(q, sql_change_code(q));
}

void sql_offer_replace(sql_request *q) {
    slice body;
    offer_replacement *replace = sql_new_change(q, offer_replacement);
    err code = find_rid(q, &replace->offer);
    code = code != OK ? code : sql_body(q, JSON_OBJECT, &body);
    code = code != OK ? code : read_setting(q, body, &replace->throughput);
    code = code != OK ? code : read_percents(q, body, &replace->bucket_percents);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, replaced);
    account_replace_offer(replace);
}
