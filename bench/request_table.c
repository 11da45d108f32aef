/* Requests of the Table API, with the fields that @azure/data-tables 13.x sends, signed with SharedKeyLite. The account is in the path, as
 * emulators have it. */
#include <stdio.h>
#include <string.h>

#include "request_int.h"

#define ACCOUNT "devstoreaccount1"

static const char common_fields[] = " HTTP/1.1\r\n"
                                    "x-ms-version: 2019-02-02\r\n"
                                    "DataServiceVersion: 3.0\r\n"
                                    "x-ms-client-request-id: 5f0a7c51-92a4-4c8e-9a3f-0d6f7d0f6c11\r\n"
                                    "User-Agent: azsdk-js-data-tables/13.3.1 core-rest-pipeline/1.20.0 Node/v20.20.2 OS/(x64-Linux)\r\n"
                                    "Accept: application/json;odata=minimalmetadata\r\n"
                                    "Accept-Encoding: gzip,deflate\r\n";

/* Distinct numbers have distinct keys, in no order. */
static size_t row_key(uint64_t number, char *out) {
    return (size_t)sprintf(out, "%010u", (uint32_t)number * 2654435761u);
}

/* The partition that --path names, or one of a thousand. */
static size_t partition_key(const request_maker *m, uint64_t number, char *out) {
    return (size_t)(strcmp(m->path, "/") == 0 ? sprintf(out, "p%03u", (unsigned)(number % 1000)) : sprintf(out, "%s", m->path));
}

static size_t entity(const request_maker *m, uint64_t number, char *out) {
    char partition[sizeof m->path], row[16];
    partition_key(m, number, partition);
    row_key(number, row);
    char *p = out + sprintf(out,
                            "{\"PartitionKey\":\"%s\",\"RowKey\":\"%s\",\"n\":%u,\"when@odata.type\":\"Edm.DateTime\","
                            "\"when\":\"2024-01-02T03:04:05.6780000Z\",\"note\":\"",
                            partition, row, (unsigned)number);
    for (; p < out + m->item_bytes - 2; p++) {
        *p = (char)('a' + (p - out) % 26);
    }
    return (size_t)(request__add(p, "\"}", 2) - out);
}

static char *add_end(request_maker *m, char *p, const char *path, size_t body_bytes) {
    char text[1024], *t = request__add(text, m->date, DATE_BYTES);
    t = request__add_text(t, "\n/" ACCOUNT);
    t = request__add_text(t, path);
    p = request__add_text(p, "x-ms-date: ");
    p = request__add(p, m->date, DATE_BYTES);
    p = request__add_text(p, "\r\nAuthorization: SharedKeyLite " ACCOUNT ":");
    p += sign_base64(&m->signer, text, (size_t)(t - text), p);
    if (body_bytes) {
        p += sprintf(p, "\r\nContent-Type: application/json;odata=nometadata\r\nPrefer: return-no-content\r\nContent-Length: %zu",
                     body_bytes);
    }
    p = request__add_text(p, "\r\nHost: ");
    p = request__add_text(p, m->host);
    return request__add_text(p, "\r\nConnection: keep-alive\r\n\r\n");
}

static size_t make_get(request_maker *m, uint64_t number, char *out) {
    char path[512], partition[sizeof m->path], row[16];
    partition_key(m, number, partition);
    row_key(number, row);
    snprintf(path, sizeof path, "/" ACCOUNT "/%s(PartitionKey='%s',RowKey='%s')", m->container, partition, row);
    char *p = request__add_text(request__add(out, "GET ", 4), path);
    p = request__add(p, common_fields, sizeof common_fields - 1);
    return (size_t)(add_end(m, p, path, 0) - out);
}

static size_t make_insert(request_maker *m, uint64_t number, char *out) {
    static _Thread_local char body[REQUEST_BYTES_MAX];
    char path[128];
    size_t body_bytes = entity(m, number, body);
    snprintf(path, sizeof path, "/" ACCOUNT "/%s", m->container);
    char *p = request__add_text(request__add(out, "POST ", 5), path);
    p = request__add(p, common_fields, sizeof common_fields - 1);
    p = add_end(m, p, path, body_bytes);
    return (size_t)(request__add(p, body, body_bytes) - out);
}

size_t request__make_table(request_maker *m, request_kind kind, uint64_t number, char *out) {
    return kind == REQUEST_TABLE_GET ? make_get(m, number, out) : make_insert(m, number, out);
}
