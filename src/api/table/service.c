/* The service's own settings: logging, metrics and rules of CORS. They are kept in the database's memo as {"properties": {section: …}};
 * the rules of CORS have an effect, the others are kept for their clients. */
#include "api/table/table_int.h"
#include "api/table/xml.h"
#include "base/date.h"
#include "doc/path.h"
#include "throughput/charge.h"

enum { RULES_MAX = 5 };

static const char *const sections[] = {"Logging", "HourMetrics", "MinuteMetrics", "Cors"};
#define SECTIONS (sizeof sections / sizeof *sections)

#define NO_RETENTION "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
#define NO_METRICS "<Version>1.0</Version><Enabled>false</Enabled>" NO_RETENTION
static const char defaults[] =
    "<P><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>" NO_RETENTION "</Logging>"
    "<HourMetrics>" NO_METRICS "</HourMetrics><MinuteMetrics>" NO_METRICS "</MinuteMetrics><Cors/></P>";

/* ---- stored settings ---- */

/* A copy in the op's arena; empty: none are stored. */
static slice stored_properties(account *a, op *o) {
    database *d;
    if (account_database(a, TABLE_DATABASE, false, &d) != OK) {
        return SLICE_EMPTY;
    }
    slice properties = arena_copy(o->arena, xml_child(d->memo, "properties"));
    database_give(d);
    return properties;
}

/* Each section from the first document that has it. */
static slice combine(op *o, slice first, slice second) {
    bson_t whole = BSON_INITIALIZER, inner;
    doc_element e;
    slice key = SLICE_LIT("StorageServiceProperties");
    bson_append_document_begin(&whole, key.p, (int)key.n, &inner);
    for (size_t i = 0; i < SECTIONS; i++) {
        slice name = slice_str(sections[i]);
        bool there = (first.n && doc_find_member(first, name, &e)) || (second.n && doc_find_member(second, name, &e));
        bson_t section;
        if (there && e.type == BSON_TYPE_DOCUMENT && bson_init_static(&section, (const uint8_t *)e.value.p, e.value.n)) {
            bson_append_document(&inner, name.p, (int)name.n, &section);
        } else if (there) {
            bson_append_utf8(&inner, name.p, (int)name.n, "", 0);
        }
    }
    bson_append_document_end(&whole, &inner);
    slice bytes = arena_copy(o->arena, slice_of(bson_get_data(&whole), whole.len));
    bson_destroy(&whole);
    return bytes;
}

/* ---- get ---- */

void table_service_read(table_request *q) {
    slice usual;
    err code = table_allow(q, ACCESS_DESCRIBE, SLICE_EMPTY);
    code = code != OK ? code : table_refuse(q, xml_read(&q->op, slice_str(defaults), &usual));
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    op_charge(&q->op, CHARGE_METADATA_READ);
    table_start(q, 200);
    xml_write(table_xml(q), combine(&q->op, stored_properties(q->front->core.account, &q->op), xml_child(usual, "P")));
    table_end(q);
}

/* There is one region, which is never behind. */
void table_service_stats(table_request *q) {
    char now[DATE_TEXT_BYTES];
    err code = table_allow(q, ACCESS_DESCRIBE, SLICE_EMPTY);
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    table_start(q, 200);
    buf_addf(table_xml(q),
             "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>%s"
             "</LastSyncTime></GeoReplication></StorageServiceStats>",
             date_http(q->op.now_s, now));
    table_end(q);
}

/* ---- set ---- */

static table_error check_rules(slice properties) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    slice list = xml_child(properties, "Cors");
    for (doc_walk_init(&w, list); list.n && doc_walk_next(&w, &e); n++) {
        uint64_t age;
        if (e.type != BSON_TYPE_DOCUMENT || !xml_text(e.value, "AllowedOrigins").n || !xml_text(e.value, "AllowedMethods").n ||
            !slice_to_u64(xml_text(e.value, "MaxAgeInSeconds"), &age) || age > UINT32_MAX) {
            return TABLE_INVALID_XML;
        }
    }
    return n > RULES_MAX ? TABLE_INVALID_XML : TABLE_FINE;
}

static table_error check_properties(slice document, slice *properties_out) {
    doc_walk w;
    doc_element e;
    *properties_out = xml_child(document, "StorageServiceProperties");
    if (!properties_out->n) {
        return TABLE_INVALID_XML;
    }
    for (doc_walk_init(&w, *properties_out); doc_walk_next(&w, &e);) {
        bool known = false;
        for (size_t i = 0; i < SECTIONS; i++) {
            known = known || slice_eq(e.key, slice_str(sections[i]));
        }
        if (!known) {
            return TABLE_INVALID_XML;
        }
    }
    return check_rules(*properties_out);
}

static void noted(table_request *q) {
    err code = q->change->commit.code;
    database_give(((database_noting *)q->change)->database_out);
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    code == OK ? table_empty(q, 202) : table_fail(q, code);
}

static void note(table_request *q) {
    slice document, given, kept = stored_properties(q->front->core.account, &q->op);
    err code = table_refuse(q, xml_read(&q->op, q->http->body, &document));
    code = code != OK ? code : table_refuse(q, check_properties(document, &given));
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    bson_t memo = BSON_INITIALIZER, properties;
    slice all = xml_child(combine(&q->op, given, kept), "StorageServiceProperties");
    if (bson_init_static(&properties, (const uint8_t *)all.p, all.n)) {
        bson_append_document(&memo, "properties", -1, &properties);
    }
    database_noting *change = table_new_change(q, database_noting);
    change->database.text = TABLE_DATABASE;
    change->memo = arena_copy(q->http->arena, slice_of(bson_get_data(&memo), memo.len));
    bson_destroy(&memo);
    table_await_change(q, noted);
    account_note_database(change);
}

void table_service_replace(table_request *q) {
    err code = table_allow(q, ACCESS_CONFIGURE, SLICE_EMPTY);
    code == OK ? table_with_database(q, note) : table_fail(q, code);
}

/* ---- CORS ---- */

static bool in_list(slice list, slice word, bool any_case, bool prefixes) {
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        slice one = slice_trim(slice_of(list.p, comma ? (size_t)(comma - list.p) : list.n));
        bool star = prefixes && one.n && one.p[one.n - 1] == '*';
        slice start = star && word.n >= one.n - 1 ? slice_of(word.p, one.n - 1) : word;
        one.n -= star;
        if ((!star || word.n >= one.n) && (any_case ? slice_eq_nocase(one, start) : slice_eq(one, start))) {
            return true;
        }
        list = slice_skip(list, comma ? (size_t)(comma - list.p) + 1 : list.n);
    }
    return false;
}

static bool allows_headers(slice rule, slice wanted) {
    bool good = true;
    while (good && wanted.n) {
        const char *comma = memchr(wanted.p, ',', wanted.n);
        slice one = slice_trim(slice_of(wanted.p, comma ? (size_t)(comma - wanted.p) : wanted.n));
        good = !one.n || in_list(xml_text(rule, "AllowedHeaders"), one, true, true);
        wanted = slice_skip(wanted, comma ? (size_t)(comma - wanted.p) + 1 : wanted.n);
    }
    return good;
}

/* The first rule that allows the request; empty: none does. */
static slice find_rule(table_request *q, slice origin, slice method, slice headers) {
    doc_walk w;
    doc_element e;
    slice list = xml_child(stored_properties(q->front->core.account, &q->op), "Cors");
    for (doc_walk_init(&w, list); list.n && doc_walk_next(&w, &e);) {
        slice origins = e.type == BSON_TYPE_DOCUMENT ? xml_text(e.value, "AllowedOrigins") : SLICE_EMPTY;
        bool from = slice_eq(origins, SLICE_LIT("*")) || in_list(origins, origin, false, false);
        if (from && in_list(xml_text(e.value, "AllowedMethods"), method, false, false) && allows_headers(e.value, headers)) {
            return e.value;
        }
    }
    return SLICE_EMPTY;
}

static void add_origin(table_request *q, slice rule, slice origin) {
    bool any = slice_eq(xml_text(rule, "AllowedOrigins"), SLICE_LIT("*"));
    http_reply_field(q->http, "Access-Control-Allow-Origin", any ? SLICE_LIT("*") : origin);
    if (!any) {
        buf_add_lit(table_fields(q), "Access-Control-Allow-Credentials: true\r\nVary: Origin\r\n");
    }
}

void table_add_cors(table_request *q) {
    slice origin = table_get(q, TABLE_FIELD_ORIGIN);
    slice rule = origin.n ? find_rule(q, origin, q->http->verb, SLICE_EMPTY) : SLICE_EMPTY;
    if (rule.n) {
        add_origin(q, rule, origin);
        http_reply_field(q->http, "Access-Control-Expose-Headers", xml_text(rule, "ExposedHeaders"));
    }
}

void table_preflight(table_request *q) {
    slice origin = table_get(q, TABLE_FIELD_ORIGIN), method = table_get(q, TABLE_FIELD_CORS_METHOD);
    slice headers = table_get(q, TABLE_FIELD_CORS_HEADERS);
    slice rule = find_rule(q, origin, method, headers);
    if (!origin.n || !method.n || !rule.n) {
        table_fail(q, table_refuse(q, origin.n && method.n ? TABLE_NOT_ALLOWED : TABLE_HOST));
        return;
    }
    slice age = xml_text(rule, "MaxAgeInSeconds");
    table_start_bare(q, 200);
    add_origin(q, rule, origin);
    http_reply_field(q->http, "Access-Control-Allow-Methods", method);
    if (headers.n) {
        http_reply_field(q->http, "Access-Control-Allow-Headers", headers);
    }
    buf_addf(table_fields(q), "Access-Control-Max-Age: %.*s\r\n", (int)age.n, age.p);
    http_reply_body(q->http);
    table_end(q);
}
