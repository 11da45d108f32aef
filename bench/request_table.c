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
static char *add_row_key(char *p, uint64_t number) {
    return data_add_digits(p, (uint32_t)number * 2654435761u, 10);
}

/* The partition that --path names, or one of a thousand. */
static char *add_partition_key(const request_maker *m, char *p, uint64_t number) {
    return strcmp(m->path, "/") == 0 ? data_add_digits(request__add(p, "p", 1), number % 1000, 3) : request__add_text(p, m->path);
}

static size_t entity(const request_maker *m, uint64_t number, char *out) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    char *p = add_partition_key(m, request__add_text(out, "{\"PartitionKey\":\""), number);
    p = add_row_key(request__add_text(p, "\",\"RowKey\":\""), number);
    p = data_add_number(request__add_text(p, "\",\"n\":"), (unsigned)number);
    p = request__add_text(p, ",\"when@odata.type\":\"Edm.DateTime\",\"when\":\"2024-01-02T03:04:05.6780000Z\",\"note\":\"");
    for (char *end = out + m->item_bytes - 2; p < end;) {
        size_t left = (size_t)(end - p);
        p = request__add(p, letters, left < 26 ? left : 26);
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
        p = request__add_text(p, "\r\nContent-Type: application/json;odata=nometadata\r\nPrefer: return-no-content\r\nContent-Length: ");
        p = data_add_number(p, body_bytes);
    }
    p = request__add_text(p, "\r\nHost: ");
    p = request__add_text(p, m->host);
    return request__add_text(p, "\r\nConnection: keep-alive\r\n\r\n");
}

static size_t make_get(request_maker *m, uint64_t number, char *out) {
    char path[512], *end = request__add_text(request__add_text(path, "/" ACCOUNT "/"), m->container);
    end = add_partition_key(m, request__add_text(end, "(PartitionKey='"), number);
    end = add_row_key(request__add_text(end, "',RowKey='"), number);
    memcpy(end, "')", 3);
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
