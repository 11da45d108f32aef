/* Tables: create, list, delete. */
#include <stdlib.h>

#include "api/table/table_int.h"
#include "doc/json.h"
#include "doc/path.h"
#include "throughput/charge.h"

static void write_table(table_request *q, buf *out, slice name, bool element) {
    bool annotated = q->metadata != ENTITY_NO_METADATA;
    slice base = table_base(q);
    buf_add_byte(out, '{');
    if (annotated && element) {
        buf_addf(out, "\"odata.metadata\":\"%.*s/$metadata#Tables/@Element\",", (int)base.n, base.p);
    }
    if (q->metadata == ENTITY_FULL_METADATA) {
        slice account = table_account(q);
        buf_addf(out, "\"odata.type\":\"%.*s.Tables\",\"odata.id\":\"%.*s/Tables('%.*s')\",\"odata.editLink\":\"Tables('%.*s')\",",
                 (int)account.n, account.p, (int)base.n, base.p, (int)name.n, name.p, (int)name.n, name.p);
    }
    buf_add_lit(out, "\"TableName\":");
    json_add_string(out, name);
    buf_add_byte(out, '}');
}

/* ---- create ---- */

static void created(table_request *q) {
    container_creation *create = (container_creation *)q->change;
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (create->container_out) {
        container_give(create->container_out);
    }
    if (code != OK) {
        q->op.detail_n = code == E_CONFLICT ? 0 : q->op.detail_n;
        table_fail(q, code == E_CONFLICT ? table_refuse(q, TABLE_EXISTS) : code);
        return;
    }
    bool quiet = table_prefers(table_get(q, TABLE_FIELD_PREFER), "return-no-content");
    slice base = table_base(q), name = q->route.table;
    table_start(q, quiet ? 204 : 201);
    buf_addf(table_fields(q), "Location: %.*s/Tables('%.*s')\r\nPreference-Applied: return-%scontent\r\n", (int)base.n, base.p, (int)name.n,
             name.p, quiet ? "no-" : "");
    if (quiet) {
        http_reply_body(q->http);
    } else {
        write_table(q, table_json(q, q->metadata), name, true);
    }
    table_end(q);
}

/* Every property is indexed; the composite index has the order of keys across partitions. */
static slice settings_of(arena *a, slice name) {
    static const char rest[] = ",\"partitionKey\":{\"paths\":[\"/PartitionKey\"],\"kind\":\"Hash\",\"version\":2},\"indexingPolicy\":{"
                               "\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/*\"}],"
                               "\"compositeIndexes\":[[{\"path\":\"/PartitionKey\",\"order\":\"ascending\"},"
                               "{\"path\":\"/RowKey\",\"order\":\"ascending\"}]]}}";
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    slice text = arena_printf(a, "{\"id\":\"%.*s\"%s", (int)name.n, name.p, rest);
    slice settings = json_to_bson(text, NULL, &bson, &root, NULL) == OK ? arena_copy(a, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&bson);
    return settings;
}

static slice bson_of(arena *a, const char *json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    slice document = json_to_bson(slice_str(json), NULL, &bson, &root, NULL) == OK ? arena_copy(a, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&bson);
    return document;
}

/* {"maxThroughput": 4000} */
static bool read_autoscale(slice text, throughput_setting *setting_out) {
    buf bson = buf_init(LIMIT_HEADER_BYTES);
    json_root root;
    doc_element e = {0};
    bool good = json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT &&
                doc_find_member(buf_view(&bson), SLICE_LIT("maxThroughput"), &e) && e.type == BSON_TYPE_INT32 &&
                doc_load_i32(e.value.p) > 0;
    *setting_out = (throughput_setting){.kind = THROUGHPUT_AUTOSCALE, .value = good ? (uint32_t)doc_load_i32(e.value.p) : 0};
    buf_free(&bson);
    return good;
}

static err read_throughput(table_request *q, throughput_setting *setting_out) {
    slice manual = table_get(q, TABLE_FIELD_OFFER_THROUGHPUT), autoscale = table_get(q, TABLE_FIELD_OFFER_AUTOPILOT);
    uint64_t value = 0;
    *setting_out = (throughput_setting){0};
    if (manual.n && autoscale.n) {
        op_fail(&q->op, E_BAD_REQUEST, "x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings exclude each other.");
        return table_refuse(q, TABLE_INVALID_HEADER);
    }
    if (autoscale.n) {
        return read_autoscale(autoscale, setting_out) ? OK : table_refuse(q, TABLE_INVALID_HEADER);
    }
    if (!manual.n) {
        return OK;
    }
    *setting_out = (throughput_setting){.kind = THROUGHPUT_MANUAL};
    if (!slice_to_u64(manual, &value) || value > UINT32_MAX) {
        return table_refuse(q, TABLE_INVALID_HEADER);
    }
    setting_out->value = (uint32_t)value;
    return OK;
}

static err read_name(table_request *q, slice *name_out) {
    enum { BODY_MAX = 16 * 1024 };
    buf bson = buf_init(BODY_MAX);
    json_root root;
    doc_element e;
    bool good = json_to_bson(q->http->body, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT &&
                doc_find_member(buf_view(&bson), SLICE_LIT("TableName"), &e) && e.type == BSON_TYPE_UTF8;
    *name_out = good ? arena_copy(q->http->arena, doc_element_text(&e)) : SLICE_EMPTY;
    buf_free(&bson);
    return good ? OK : table_refuse(q, TABLE_INVALID_INPUT);
}

static err check_name(table_request *q, slice name) {
    if (!name.n || name.n > LIMIT_NAME_BYTES || entity_units(name) < 3 || entity_units(name) > 63) {
        return table_refuse(q, TABLE_OUT_OF_RANGE);
    }
    return table_name_is_good(name) ? OK : table_refuse(q, TABLE_INVALID_NAME);
}

static void create_container(table_request *q) {
    container_creation *create = table_new_change(q, container_creation);
    arena *a = q->http->arena;
    bool large = slice_eq_nocase(table_get(q, TABLE_FIELD_LARGE_ENTITIES), SLICE_LIT("true"));
    err code = read_throughput(q, &create->throughput);
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    create->database.text = TABLE_DATABASE;
    create->settings = settings_of(a, q->route.table);
    create->rows = bson_of(a, "{\"key\":[{\"path\":\"/RowKey\"}],\"clustered\":true,\"ordered\":true}");
    create->api = TABLE_API;
    create->memo = large ? bson_of(a, "{\"large\":true}") : SLICE_EMPTY;
    create->any_case = true;
    table_await_change(q, created);
    account_create_container(create);
}

static void database_made(table_request *q) {
    database_creation *create = (database_creation *)q->change;
    err code = q->change->commit.code;
    database_give(create->database_out);
    q->op.detail_n = 0;
    code == OK || code == E_CONFLICT ? q->after(q) : table_fail(q, code);
}

void table_with_database(table_request *q, table_handler next) {
    database *d;
    if (account_database(q->front->core.account, TABLE_DATABASE, false, &d) == OK) {
        database_give(d);
        next(q);
        return;
    }
    database_creation *create = table_new_change(q, database_creation);
    q->after = next;
    create->id = TABLE_DATABASE;
    table_await_change(q, database_made);
    account_create_database(create);
}

void table_create(table_request *q) {
    err code = read_name(q, &q->route.table);
    code = code != OK ? code : table_allow(q, ACCESS_CREATE, q->route.table);
    code = code != OK ? code : check_name(q, q->route.table);
    code == OK ? table_with_database(q, create_container) : table_fail(q, code);
}

/* ---- delete ---- */

static void deleted(table_request *q) {
    err code = q->change->commit.code;
    op_charge(&q->op, CHARGE_METADATA_DELETE);
    q->op.detail_n = 0;
    code == OK ? table_empty(q, 204) : table_fail(q, code == E_OWNER_NOT_FOUND ? E_NOT_FOUND : code);
}

void table_delete(table_request *q) {
    err code = table_allow(q, ACCESS_DROP, q->route.table);
    code = code != OK ? code : table_find(q, q->route.table);
    if (code != OK) {
        table_fail(q, code == E_OWNER_NOT_FOUND ? E_NOT_FOUND : code);
        return;
    }
    container_deletion *remove = table_new_change(q, container_deletion);
    remove->database.text = TABLE_DATABASE;
    remove->container.text = q->container->id;
    table_await_change(q, deleted);
    account_delete_container(remove);
}

/* ---- list ---- */

typedef struct listing {
    table_request *q;
    slice *names;
    size_t n, room;
} listing;

static bool list_one(void *context, const container *c) {
    listing *l = context;
    arena *a = l->q->http->arena;
    if (!slice_eq(c->api, TABLE_API)) {
        return true;
    }
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 64;
        if (!arena_fits(a, room * sizeof(slice))) {
            return false;
        }
        slice *larger = arena_array(a, slice, room);
        if (l->n) {
            memcpy(larger, l->names, l->n * sizeof(slice));
        }
        l->names = larger;
        l->room = room;
    }
    l->names[l->n++] = arena_copy(a, c->id);
    return true;
}

static int lower(char c) {
    return c >= 'A' && c <= 'Z' ? c | 0x20 : (unsigned char)c;
}

static int by_name(const void *a, const void *b) {
    const slice *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    for (size_t i = 0; i < n; i++) {
        if (lower(x->p[i]) != lower(y->p[i])) {
            return lower(x->p[i]) - lower(y->p[i]);
        }
    }
    return (x->n > y->n) - (x->n < y->n);
}

static bool get_name(const void *context, slice property, edm_value *v) {
    *v = (edm_value){.type = EDM_STRING, .text = *(const slice *)context};
    return slice_eq(property, SLICE_LIT("TableName"));
}

static void collect(table_request *q, listing *l) {
    database *d;
    if (account_database(q->front->core.account, TABLE_DATABASE, false, &d) != OK) {
        return;
    }
    account_each_container(q->front->core.account, d, 0, list_one, l);
    database_give(d);
    if (l->n) {
        qsort(l->names, l->n, sizeof(slice), by_name);
    }
}

/* Writes a page; *next_out is the name that the next one begins with, or empty. */
static void write_page(table_request *q, const listing *l, const filter *f, slice from, size_t max, slice *next_out) {
    size_t n = 0;
    *next_out = SLICE_EMPTY;
    for (size_t i = 0; i < l->n; i++) {
        if ((from.n && by_name(&l->names[i], &from) < 0) || !filter_passes(f, get_name, &l->names[i])) {
            continue;
        }
        if (n == max) {
            *next_out = l->names[i];
            break;
        }
        buf_add(&q->rows, ",", n++ > 0);
        write_table(q, &q->rows, l->names[i], false);
    }
}

static err list(table_request *q) {
    slice text, from, next;
    size_t max = 0;
    const filter *f;
    listing l = {.q = q};
    TRY(table_allow(q, ACCESS_LIST, SLICE_EMPTY));
    TRY(table_query_text(q, "$filter", &text));
    TRY(table_query_text(q, "NextTableName", &from));
    TRY(table_read_top(q, &max));
    TRY(table_refuse(q, filter_parse(&q->op, text, &f)));
    op_charge(&q->op, CHARGE_METADATA_READ);
    collect(q, &l);
    write_page(q, &l, f, from, max, &next);
    if (!buf_ok(&q->rows)) {
        return budget_error(q->op.budget);
    }
    table_start(q, 200);
    if (next.n) {
        http_reply_field(q->http, "x-ms-continuation-NextTableName", next);
    }
    slice base = table_base(q);
    buf *out = table_json(q, q->metadata);
    buf_add_byte(out, '{');
    if (q->metadata != ENTITY_NO_METADATA) {
        buf_addf(out, "\"odata.metadata\":\"%.*s/$metadata#Tables\",", (int)base.n, base.p);
    }
    buf_add_lit(out, "\"value\":[");
    buf_add_slice(out, buf_view(&q->rows));
    buf_add_lit(out, "]}");
    table_end(q);
    return OK;
}

/* Tables('people') is a list that has one table. */
static err read_one(table_request *q) {
    TRY(table_allow(q, ACCESS_LIST, SLICE_EMPTY));
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = table_find(q, q->route.table);
    if (code != OK) {
        return E_NOT_FOUND;
    }
    table_start(q, 200);
    write_table(q, table_json(q, q->metadata), q->container->id, true);
    table_end(q);
    return OK;
}

void table_list(table_request *q) {
    err code = q->route.kind == TABLE_TABLE ? read_one(q) : list(q);
    if (code != OK) {
        table_fail(q, code);
    }
}
