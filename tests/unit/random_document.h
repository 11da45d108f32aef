/* random_document.h — random JSON texts and BSON documents from a seed, for tests. */
#pragma once

#include <bson/bson.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/random.h"

static inline void random_text(random_source *r, buf *out) {
    static const char *const pieces[] = {"a",
                                         "b",
                                         "Z",
                                         "0",
                                         " ",
                                         "/",
                                         "~",
                                         "é",
                                         "ñ",
                                         "漢字",
                                         "😀",
                                         "\x7F",
                                         "\\n",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\t",
                                         "\\u0000",
                                         "\\u00e9",
                                         "\\ud83d\\ude00",
                                         "\\ud800",
                                         "\\u001f",
                                         "plain text of some length, longer than a step"};
    uint64_t n = random_below(r, 8);
    for (uint64_t i = 0; i < n; i++) {
        const char *piece = pieces[random_below(r, sizeof pieces / sizeof *pieces)];
        buf_add(out, piece, strlen(piece));
    }
}

static inline void random_number_text(random_source *r, buf *out) {
    switch (random_below(r, 5)) {
    case 0:
        buf_addf(out, "%d", (int)random_below(r, 200) - 100);
        break;
    case 1:
        buf_addf(out, "%lld", (long long)random_u64(r));
        break;
    case 2:
        buf_addf(out, "%.2f", (double)(int32_t)random_u64(r) / 100);
        break;
    case 3:
        buf_addf(out, "%.17g", (double)(int64_t)random_u64(r) * 1e-12);
        break;
    default:
        buf_addf(out, "%d.%ue%d", (int)random_below(r, 10), (unsigned)random_u64(r), (int)random_below(r, 600) - 300);
    }
}

static inline void random_blanks(random_source *r, buf *out) {
    if (random_below(r, 8) == 0) {
        buf_add(out, " \t\r\n", 1 + random_below(r, 4));
    }
}

static inline void random_json_value(random_source *r, buf *out, unsigned depth);

/* `distinct`: keys are unique, since they begin with their position. */
static inline void random_json_container(random_source *r, buf *out, unsigned depth, bool is_array, bool distinct) {
    uint64_t n = random_below(r, depth > 3 ? 3 : random_below(r, 20) == 0 ? 70 : 9);
    buf_add_byte(out, is_array ? '[' : '{');
    for (uint64_t i = 0; i < n; i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        random_blanks(r, out);
        if (!is_array) {
            buf_add_byte(out, '"');
            if (distinct) {
                buf_addf(out, "%u", (unsigned)i);
            }
            random_text(r, out);
            buf_add_lit(out, "\"");
            random_blanks(r, out);
            buf_add_byte(out, ':');
            random_blanks(r, out);
        }
        random_json_value(r, out, depth + 1);
        random_blanks(r, out);
    }
    buf_add_byte(out, is_array ? ']' : '}');
}

static inline void random_json_value(random_source *r, buf *out, unsigned depth) {
    static const char *const words[] = {"true", "false", "null", "-0", "\"\"", "{}", "[]"};
    uint64_t kind = random_below(r, depth < 6 ? 10 : 8);
    if (kind < 3) {
        random_number_text(r, out);
    } else if (kind < 6) {
        buf_add_byte(out, '"');
        random_text(r, out);
        buf_add_byte(out, '"');
    } else if (kind < 8) {
        const char *word = words[random_below(r, sizeof words / sizeof *words)];
        buf_add(out, word, strlen(word));
    } else {
        random_json_container(r, out, depth, kind == 9, true);
    }
}

static inline void random_json_object(random_source *r, buf *out, bool distinct) {
    random_json_container(r, out, 0, false, distinct);
}

/* One element of any BSON type. */
static inline void random_bson_element(random_source *r, bson_t *into, const char *key, unsigned depth) {
    uint8_t bytes[16];
    random_bytes(r, bytes, sizeof bytes);
    bson_oid_t oid;
    bson_oid_init_from_data(&oid, bytes);
    bson_decimal128_t decimal;
    bson_t child;
    uint64_t kind = random_below(r, depth < 4 ? 19 : 17);
    if ((kind == 8 || kind == 9) && *key <= '9') {
        kind = 10; /* in arrays, libbson 1.23 reads their text back under a wrong key */
    }
    switch (kind) {
    case 0:
        bson_append_double(into, key, -1, (double)(int64_t)random_u64(r) / 1000);
        break;
    case 1:
        bson_append_utf8(into, key, -1, "text \" \\ \n é", (int)random_below(r, 2) ? -1 : 6);
        break;
    case 2:
        bson_append_binary(into, key, -1, BSON_SUBTYPE_UUID, bytes, 16);
        break;
    case 3:
        bson_append_oid(into, key, -1, &oid);
        break;
    case 4:
        bson_append_bool(into, key, -1, random_below(r, 2));
        break;
    case 5:
        bson_append_date_time(into, key, -1, (int64_t)random_below(r, 500000000000000) - 100000000000000);
        break;
    case 6:
        bson_append_null(into, key, -1);
        break;
    case 7:
        bson_append_regex(into, key, -1, "^a\"b.*$", "im");
        break;
    case 8:
        bson_append_dbpointer(into, key, -1, "collection", &oid);
        break;
    case 9:
        bson_append_code(into, key, -1, "function () { return \"x\"; }");
        break;
    case 10:
        bson_append_symbol(into, key, -1, "symbol", -1);
        break;
    case 11:
        bson_append_int32(into, key, -1, (int32_t)random_u64(r));
        break;
    case 12:
        bson_append_timestamp(into, key, -1, (uint32_t)random_u64(r), (uint32_t)random_u64(r));
        break;
    case 13:
        bson_append_int64(into, key, -1, (int64_t)random_u64(r));
        break;
    case 14:
        bson_decimal128_from_string("-12.345E+17", &decimal);
        bson_append_decimal128(into, key, -1, &decimal);
        break;
    case 15:
        (random_below(r, 2) ? bson_append_minkey : bson_append_maxkey)(into, key, -1);
        break;
    case 16:
        bson_append_undefined(into, key, -1);
        break;
    case 17:
        bson_append_document_begin(into, key, -1, &child);
        for (uint64_t i = random_below(r, 6); i > 0; i--) {
            char name[16];
            snprintf(name, sizeof name, "k%u", (unsigned)i);
            random_bson_element(r, &child, name, depth + 1);
        }
        bson_append_document_end(into, &child);
        break;
    default:
        bson_append_array_begin(into, key, -1, &child);
        for (uint64_t i = 0, n = random_below(r, 14); i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "%u", (unsigned)i);
            random_bson_element(r, &child, name, depth + 1);
        }
        bson_append_array_end(into, &child);
    }
}

static inline bson_t *random_bson(random_source *r) {
    bson_t *document = bson_new();
    for (uint64_t i = random_below(r, 20); i > 0; i--) {
        char name[32];
        snprintf(name, sizeof name, "%s%u", random_below(r, 2) ? "field" : "ein längerer Name ", (unsigned)i);
        random_bson_element(r, document, name, 0);
    }
    return document;
}
