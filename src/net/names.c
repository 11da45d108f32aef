#include "net/names.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/http.h"

static const struct {
    const char *name;
    http_own_field own;
} own_names[] = {{"host", HTTP_OWN_HOST},
                 {"origin", HTTP_OWN_ORIGIN},
                 {"expect", HTTP_OWN_EXPECT},
                 {"upgrade", HTTP_OWN_UPGRADE},
                 {"transfer-encoding", HTTP_OWN_TRANSFER_ENCODING},
                 {"content-length", HTTP_OWN_CONTENT_LENGTH},
                 {"connection", HTTP_OWN_CONNECTION},
                 {"proxy-connection", HTTP_OWN_PROXY_CONNECTION}};

bool http__name_equals(slice lower, const char *p, size_t n) {
    size_t i = 0;
    if (n < 8) {
        for (; i < n && (p[i] | 0x20) == lower.p[i]; i++) {
        }
        return i == n;
    }
    for (; i + 8 < n; i += 8) {
        if (http__eight_lower(p + i) != http__eight_lower(lower.p + i)) {
            return false;
        }
    }
    return http__eight_lower(p + n - 8) == http__eight_lower(lower.p + n - 8);
}

static http_name *slot_of(http_names *names, slice name) {
    unsigned i = http__name_hash(name.p, name.n);
    while (names->slots[i].name.p && !slice_eq(names->slots[i].name, name)) {
        i = (i + 1) % HTTP_NAME_SLOTS;
    }
    return &names->slots[i];
}

http_names *http_names_new(const char *const *fields, size_t fields_n) {
    assert(fields_n <= HTTP_FIELDS_MAX);
    http_names *names = mem_zero(sizeof *names);
    for (size_t i = 0; i < fields_n; i++) {
        slice name = slice_str(fields[i]);
        assert(name.n == strspn(name.p, "abcdefghijklmnopqrstuvwxyz0123456789-"));
        http_name *e = slot_of(names, name);
        assert(name.n > 0 && !e->name.p); /* no name is asked for twice */
        *e = (http_name){.name = name, .field = (int8_t)i};
    }
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++) {
        slice name = slice_str(own_names[i].name);
        http_name *e = slot_of(names, name);
        if (!e->name.p) {
            *e = (http_name){.name = name, .field = -1};
        }
        e->own = (uint8_t)own_names[i].own;
    }
    return names;
}

void http_names_free(http_names *names) {
    free(names);
}

int http_names_find(const http_names *names, slice name, http_own_field *own_out) {
    const http_name *e = http__name_find(names, name.p, name.n);
    *own_out = e ? (http_own_field)e->own : HTTP_OWN_NONE;
    return e ? e->field : -1;
}
