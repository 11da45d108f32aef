#include <stdio.h>
#include <string.h>

#include "request_int.h"

/* What @azure/cosmos 4.x sends with every request, in its order. */
static const char common_fields[] = " HTTP/1.1\r\n"
                                    "x-ms-documentdb-responsecontinuationtokenlimitinkb: 1\r\n"
                                    "x-ms-documentdb-query-enablecrosspartition: true\r\n"
                                    "Cache-Control: no-cache\r\n"
                                    "x-ms-version: 2020-07-15\r\n"
                                    "User-Agent: Node.js/20.20.2 (linux; x64) azure-cosmos-js/4.10.1\r\n"
                                    "x-ms-useragent: Node.js/20.20.2 (linux; x64) azure-cosmos-js/4.10.1\r\n"
                                    "x-ms-cosmos-sdk-supportedcapabilities: 1\r\n"
                                    "x-ms-cosmos-allow-tentative-writes: true\r\n";

void request_tick(request_maker *m, time_t now) {
    if (now == m->date_s) {
        return;
    }
    m->date_s = now;
    sign_date(now, m->date, m->date_lower);
}

/* ---- the parts of a head ---- */

typedef struct signed_for {
    const char *verb, *type, *link; /* lower-case verb; link without slashes at its ends */
    size_t link_bytes;
} signed_for;

static char *add_signature(request_maker *m, char *p, signed_for what) {
    char text[512], *t = request__add_text(text, what.verb);
    *t++ = '\n';
    t = request__add_text(t, what.type);
    *t++ = '\n';
    t = request__add(t, what.link, what.link_bytes);
    *t++ = '\n';
    t = request__add(t, m->date_lower, DATE_BYTES);
    t = request__add(t, "\n\n", 2);
    p = request__add_text(p, "authorization: type%3Dmaster%26ver%3D1.0%26sig%3D");
    p += sign_text(&m->signer, text, (size_t)(t - text), p);
    return request__add(p, "\r\n", 2);
}

/* The end of a head: date, types, signature, host; and the length of the body, if there is one. */
static char *add_end(request_maker *m, char *p, signed_for what, const char *body_type, size_t body_bytes) {
    p = request__add_text(p, "x-ms-date: ");
    p = request__add(p, m->date, DATE_BYTES);
    if (body_bytes) {
        p = request__add_text(request__add_text(p, "\r\nContent-Type: "), body_type);
    }
    p = request__add_text(p, "\r\nAccept: application/json\r\n");
    p = add_signature(m, p, what);
    if (body_bytes) {
        p = request__add_text(data_add_number(request__add_text(p, "Content-Length: "), body_bytes), "\r\n");
    }
    p = request__add_text(p, "Host: ");
    p = request__add_text(p, m->host);
    return request__add_text(p, "\r\nConnection: keep-alive\r\n\r\n");
}

static char *add_partition_key(char *p, data_kind kind, uint64_t number) {
    p = request__add_text(p, "x-ms-documentdb-partitionkey: [\"");
    p += data_key(kind, number, p);
    return request__add_text(p, "\"]\r\n");
}

static size_t container_link(const request_maker *m, char *out) {
    char *p = request__add_text(out, "dbs/");
    p = request__add_text(p, m->database);
    p = request__add_text(p, "/colls/");
    return (size_t)(request__add_text(p, m->container) - out);
}

/* ---- bodies ---- */

static size_t bulk_body(const request_maker *m, uint64_t first, char *out) {
    char *p = out;
    for (uint64_t number = first; number < first + m->bulk; number++) {
        p = request__add_text(p, number == first ? "[" : ",");
        p = request__add_text(p, "{\"operationType\":\"Create\",\"partitionKey\":\"[\\\"");
        p += data_key(m->kind, number, p);
        p = request__add_text(p, "\\\"]\",\"resourceBody\":");
        p += data_item(m->kind, number, m->item_bytes, p);
        *p++ = '}';
    }
    *p++ = ']';
    return (size_t)(p - out);
}

/* ---- whole requests ---- */

static size_t make_read(request_maker *m, uint64_t number, char *out) {
    char link[256];
    size_t n = container_link(m, link);
    memcpy(link + n, "/docs/", 6);
    n += 6 + data_id(m->kind, number, link + n + 6);
    char *p = request__add(out, "GET /", 5);
    p = request__add(p, link, n);
    p = request__add(p, common_fields, sizeof common_fields - 1);
    p = add_partition_key(p, m->kind, number);
    return (size_t)(add_end(m, p, (signed_for){"get", "docs", link, n}, NULL, 0) - out);
}

static size_t make_get(request_maker *m, uint64_t number, char *out) {
    char *p = request__add(out, "GET ", 4);
    p = request__add_text(p, m->path);
    p = request__add(p, common_fields, sizeof common_fields - 1);
    p = add_partition_key(p, m->kind, number);
    return (size_t)(add_end(m, p, (signed_for){"get", "docs", m->path, strlen(m->path)}, NULL, 0) - out);
}

static size_t make_write(request_maker *m, request_kind kind, uint64_t number, char *out) {
    char link[256];
    static _Thread_local char body[REQUEST_BYTES_MAX];
    size_t n = container_link(m, link);
    size_t body_bytes = kind == REQUEST_BULK ? bulk_body(m, number, body) : data_item(m->kind, number, m->item_bytes, body);
    char *p = request__add(out, "POST /", 6);
    p = request__add(p, link, n);
    p = request__add_text(p, "/docs");
    p = request__add(p, common_fields, sizeof common_fields - 1);
    if (kind == REQUEST_BULK) {
        p = request__add_text(p, "x-ms-cosmos-is-batch-request: true\r\nx-ms-cosmos-batch-atomic: false\r\n"
                                 "x-ms-cosmos-batch-continue-on-error: true\r\nx-ms-documentdb-partitionkeyrangeid: 0\r\n");
        p = request__add_text(p, m->kind == DATA_PLAIN ? "" : "Prefer: return=minimal\r\n");
    } else {
        p = add_partition_key(p, m->kind, number);
        if (kind == REQUEST_UPSERT) {
            p = request__add_text(p, "x-ms-documentdb-is-upsert: true\r\n");
        }
    }
    p = add_end(m, p, (signed_for){"post", "docs", link, n}, "application/json", body_bytes);
    return (size_t)(request__add(p, body, body_bytes) - out);
}

size_t request_make_query(request_maker *m, uint64_t number, const char *continuation, char *out) {
    char link[256], body[1024];
    const question *ask = m->ask;
    size_t n = container_link(m, link), body_bytes = question_body(ask, number, body);
    char *p = request__add(out, "POST /", 6);
    p = request__add(p, link, n);
    p = request__add_text(p, "/docs");
    p = request__add(p, common_fields, sizeof common_fields - 1);
    p += sprintf(p, "x-ms-documentdb-isquery: True\r\nx-ms-max-item-count: %u\r\n", ask->page);
    if (ask->kind == DATA_PLAIN) {
        p = request__add_text(p, "x-ms-documentdb-partitionkeyrangeid: 0\r\n");
    } else {
        p = add_partition_key(p, ask->kind, number);
    }
    if (continuation[0]) {
        p += sprintf(p, "x-ms-continuation: %s\r\n", continuation);
    }
    p = add_end(m, p, (signed_for){"post", "docs", link, n}, "application/query+json", body_bytes);
    return (size_t)(request__add(p, body, body_bytes) - out);
}

static size_t make_execute(request_maker *m, uint64_t number, char *out) {
    char link[600];
    static _Thread_local char body[REQUEST_BYTES_MAX];
    size_t n = container_link(m, link);
    n += (size_t)snprintf(link + n, sizeof link - n, "/sprocs/%s", m->path);
    char *b = request__add(body, "[", 1);
    b += data_item(m->kind, number, m->item_bytes, b);
    size_t body_bytes = (size_t)(request__add(b, "]", 1) - body);
    char *p = request__add(out, "POST /", 6);
    p = request__add(p, link, n);
    p = request__add(p, common_fields, sizeof common_fields - 1);
    p = add_partition_key(p, m->kind, number);
    p = add_end(m, p, (signed_for){"post", "sprocs", link, n}, "application/json", body_bytes);
    return (size_t)(request__add(p, body, body_bytes) - out);
}

size_t request_make(request_maker *m, request_kind kind, uint64_t number, char *out) {
    if (kind == REQUEST_READ) {
        return make_read(m, number, out);
    }
    if (kind == REQUEST_GET) {
        return make_get(m, number, out);
    }
    if (kind == REQUEST_QUERY) {
        return request_make_query(m, number, "", out);
    }
    if (kind == REQUEST_RAW) {
        return (size_t)(request__add(out, m->raw, m->raw_bytes) - out);
    }
    if (kind == REQUEST_EXECUTE) {
        return make_execute(m, number, out);
    }
    if (kind == REQUEST_TABLE_GET || kind == REQUEST_TABLE_INSERT) {
        return request__make_table(m, kind, number, out);
    }
    return make_write(m, kind, number, out);
}

size_t request_make_database(request_maker *m, char *out) {
    char body[128];
    int n = snprintf(body, sizeof body, "{\"id\":\"%s\"}", m->database);
    char *p = request__add_text(out, "POST /dbs");
    p = request__add(p, common_fields, sizeof common_fields - 1);
    p = add_end(m, p, (signed_for){"post", "dbs", "", 0}, "application/json", (size_t)n);
    return (size_t)(request__add(p, body, (size_t)n) - out);
}

size_t request_make_container(request_maker *m, uint32_t throughput, char *out) {
    char body[512], link[128];
    int n = snprintf(body, sizeof body, "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"%s\"],\"kind\":\"Hash\",\"version\":2}%s%s}",
                     m->container, data_key_path(m->kind), m->policy[0] ? ",\"indexingPolicy\":" : "", m->policy);
    int link_bytes = snprintf(link, sizeof link, "dbs/%s", m->database);
    char *p = out + sprintf(out, "POST /%s/colls", link);
    p = request__add(p, common_fields, sizeof common_fields - 1);
    if (throughput > 0) {
        p += sprintf(p, "x-ms-offer-throughput: %u\r\n", throughput);
    }
    p = add_end(m, p, (signed_for){"post", "colls", link, (size_t)link_bytes}, "application/json", (size_t)n);
    return (size_t)(request__add(p, body, (size_t)n) - out);
}
