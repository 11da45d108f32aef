#include "request.h"

#include <stdio.h>
#include <string.h>

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

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static char *add(char *p, const char *text, size_t n) {
    memcpy(p, text, n);
    return p + n;
}

static char *add_text(char *p, const char *text) {
    return add(p, text, strlen(text));
}

static char *add_hex(char *p, uint64_t v, int digits) {
    for (int i = digits - 1; i >= 0; i--, v >>= 4) {
        p[i] = "0123456789abcdef"[v & 15];
    }
    return p + digits;
}

void request_guid(uint64_t number, char *out) {
    uint64_t a = mix(number), b = mix(a ^ number);
    char *p = add_hex(out, a >> 32, 8);
    *p++ = '-';
    p = add_hex(p, a >> 16, 4);
    *p++ = '-';
    p = add_hex(p, a, 4);
    *p++ = '-';
    p = add_hex(p, b >> 48, 4);
    *p++ = '-';
    add_hex(p, b, 12);
}

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
    char text[512], *t = add_text(text, what.verb);
    *t++ = '\n';
    t = add_text(t, what.type);
    *t++ = '\n';
    t = add(t, what.link, what.link_bytes);
    *t++ = '\n';
    t = add(t, m->date_lower, DATE_BYTES);
    t = add(t, "\n\n", 2);
    p = add_text(p, "authorization: type%3Dmaster%26ver%3D1.0%26sig%3D");
    p += sign_text(&m->signer, text, (size_t)(t - text), p);
    return add(p, "\r\n", 2);
}

/* The end of a head: date, types, signature, host; and the length of the body, if there is one. */
static char *add_end(request_maker *m, char *p, signed_for what, size_t body_bytes) {
    p = add_text(p, "x-ms-date: ");
    p = add(p, m->date, DATE_BYTES);
    p = add_text(p, body_bytes ? "\r\nContent-Type: application/json\r\nAccept: application/json\r\n" : "\r\nAccept: application/json\r\n");
    p = add_signature(m, p, what);
    if (body_bytes) {
        p += sprintf(p, "Content-Length: %zu\r\n", body_bytes);
    }
    p = add_text(p, "Host: ");
    p = add_text(p, m->host);
    return add_text(p, "\r\nConnection: keep-alive\r\n\r\n");
}

static char *add_partition_key(char *p, const char *guid) {
    p = add_text(p, "x-ms-documentdb-partitionkey: [\"");
    p = add(p, guid, GUID_BYTES);
    return add_text(p, "\"]\r\n");
}

static size_t container_link(const request_maker *m, char *out) {
    char *p = add_text(out, "dbs/");
    p = add_text(p, m->database);
    p = add_text(p, "/colls/");
    return (size_t)(add_text(p, m->container) - out);
}

/* ---- bodies ---- */

/* Letters that differ from item to item, eight for each turn of the mixer. */
static char *add_letters(char *p, uint64_t number, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t bits = mix(number * 1024 + i);
        for (size_t j = i; j < i + 8 && j < n; j++, bits >>= 8) {
            p[j] = (char)('a' + (bits & 0xff) % 26);
        }
    }
    return p + n;
}

static size_t item_body(const request_maker *m, uint64_t number, char *out) {
    char guid[GUID_BYTES];
    request_guid(number, guid);
    char *p = add_text(out, "{\"id\":\"");
    p = add(p, guid, GUID_BYTES);
    p = add_text(p, "\",\"pk\":\"");
    p = add(p, guid, GUID_BYTES);
    p += sprintf(p,
                 "\",\"number\":%llu,\"price\":%.2f,\"active\":%s,\"city\":\"Madrid\",\"tags\":[\"alpha\",\"beta\"],"
                 "\"address\":{\"street\":\"Calle de Toledo %u\",\"zip\":\"%05u\"},\"note\":\"",
                 (unsigned long long)number, (double)(number % 100000) / 100.0, number % 2 ? "true" : "false", (unsigned)(number % 200),
                 (unsigned)(number % 52000));
    size_t used = (size_t)(p - out) + 2;
    if (used < m->item_bytes) {
        p = add_letters(p, number, m->item_bytes - used);
    }
    p = add(p, "\"}", 2);
    return (size_t)(p - out);
}

static size_t bulk_body(const request_maker *m, uint64_t first, char *out) {
    char *p = out, guid[GUID_BYTES];
    for (uint64_t number = first; number < first + m->bulk; number++) {
        request_guid(number, guid);
        p = add_text(p, number == first ? "[" : ",");
        p = add_text(p, "{\"operationType\":\"Create\",\"partitionKey\":\"[\\\"");
        p = add(p, guid, GUID_BYTES);
        p = add_text(p, "\\\"]\",\"resourceBody\":");
        p += item_body(m, number, p);
        *p++ = '}';
    }
    *p++ = ']';
    return (size_t)(p - out);
}

/* ---- whole requests ---- */

static size_t make_read(request_maker *m, uint64_t number, char *out) {
    char link[256], guid[GUID_BYTES];
    size_t n = container_link(m, link);
    request_guid(number, guid);
    memcpy(link + n, "/docs/", 6);
    memcpy(link + n + 6, guid, GUID_BYTES);
    n += 6 + GUID_BYTES;
    char *p = add(out, "GET /", 5);
    p = add(p, link, n);
    p = add(p, common_fields, sizeof common_fields - 1);
    p = add_partition_key(p, guid);
    return (size_t)(add_end(m, p, (signed_for){"get", "docs", link, n}, 0) - out);
}

static size_t make_get(request_maker *m, uint64_t number, char *out) {
    char guid[GUID_BYTES];
    request_guid(number, guid);
    char *p = add(out, "GET ", 4);
    p = add_text(p, m->path);
    p = add(p, common_fields, sizeof common_fields - 1);
    p = add_partition_key(p, guid);
    return (size_t)(add_end(m, p, (signed_for){"get", "docs", m->path, strlen(m->path)}, 0) - out);
}

static size_t make_write(request_maker *m, request_kind kind, uint64_t number, char *out) {
    char link[256], guid[GUID_BYTES];
    static _Thread_local char body[REQUEST_BYTES_MAX];
    size_t n = container_link(m, link), body_bytes = kind == REQUEST_BULK ? bulk_body(m, number, body) : item_body(m, number, body);
    char *p = add(out, "POST /", 6);
    p = add(p, link, n);
    p = add_text(p, "/docs");
    p = add(p, common_fields, sizeof common_fields - 1);
    if (kind == REQUEST_BULK) {
        p = add_text(p, "x-ms-cosmos-is-batch-request: true\r\nx-ms-cosmos-batch-atomic: false\r\n"
                        "x-ms-cosmos-batch-continue-on-error: true\r\nx-ms-documentdb-partitionkeyrangeid: 0\r\n");
    } else {
        request_guid(number, guid);
        p = add_partition_key(p, guid);
        if (kind == REQUEST_UPSERT) {
            p = add_text(p, "x-ms-documentdb-is-upsert: true\r\n");
        }
    }
    p = add_end(m, p, (signed_for){"post", "docs", link, n}, body_bytes);
    return (size_t)(add(p, body, body_bytes) - out);
}

size_t request_make(request_maker *m, request_kind kind, uint64_t number, char *out) {
    if (kind == REQUEST_READ) {
        return make_read(m, number, out);
    }
    if (kind == REQUEST_GET) {
        return make_get(m, number, out);
    }
    return make_write(m, kind, number, out);
}

size_t request_make_database(request_maker *m, char *out) {
    char body[128];
    int n = snprintf(body, sizeof body, "{\"id\":\"%s\"}", m->database);
    char *p = add_text(out, "POST /dbs");
    p = add(p, common_fields, sizeof common_fields - 1);
    p = add_end(m, p, (signed_for){"post", "dbs", "", 0}, (size_t)n);
    return (size_t)(add(p, body, (size_t)n) - out);
}

size_t request_make_container(request_maker *m, uint32_t throughput, char *out) {
    char body[256], link[128];
    int n =
        snprintf(body, sizeof body, "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", m->container);
    int link_bytes = snprintf(link, sizeof link, "dbs/%s", m->database);
    char *p = out + sprintf(out, "POST /%s/colls", link);
    p = add(p, common_fields, sizeof common_fields - 1);
    if (throughput > 0) {
        p += sprintf(p, "x-ms-offer-throughput: %u\r\n", throughput);
    }
    p = add_end(m, p, (signed_for){"post", "colls", link, (size_t)link_bytes}, (size_t)n);
    return (size_t)(add(p, body, (size_t)n) - out);
}
