#include "access/roles.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "doc/path.h"

enum { ASSIGNMENTS_MAX = 100000 };

static bool __attribute__((format(printf, 3, 4))) fail(char *why, size_t why_n, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, why_n, format, args);
    va_end(args);
    return false;
}

static slice text_in(slice assignment, const char *name) {
    bson_iter_t it;
    return doc_find_key(assignment, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

/* Cuts "/dbs/" and the name after it off a scope. */
static bool take_name(slice *scope, slice kind, slice *name_out) {
    if (!slice_starts(*scope, kind)) {
        return false;
    }
    *scope = slice_skip(*scope, kind.n);
    const char *end = memchr(scope->p, '/', scope->n);
    *name_out = slice_of(scope->p, end ? (size_t)(end - scope->p) : scope->n);
    *scope = slice_skip(*scope, name_out->n);
    return name_out->n > 0;
}

static bool read_scope(slice scope, access_assignment *a) {
    if (slice_eq(scope, SLICE_LIT("/"))) {
        return true;
    }
    return take_name(&scope, SLICE_LIT("/dbs/"), &a->database) &&
           (scope.n == 0 || (take_name(&scope, SLICE_LIT("/colls/"), &a->container) && scope.n == 0));
}

static access_role read_role(slice word) {
    return slice_eq_nocase(word, SLICE_LIT("reader"))        ? ACCESS_READER
           : slice_eq_nocase(word, SLICE_LIT("contributor")) ? ACCESS_CONTRIBUTOR
                                                             : ACCESS_NO_ROLE;
}

static bool read_one(slice given, size_t i, access_assignment *a, char *why, size_t why_n) {
    a->principal = text_in(given, "principal");
    a->role = read_role(text_in(given, "role"));
    if (a->principal.n == 0) {
        return fail(why, why_n, "assignment %zu has no principal: the object id of a user, an application or a group", i + 1);
    }
    if (a->role == ACCESS_NO_ROLE) {
        return fail(why, why_n, "the role of assignment %zu must be reader or contributor", i + 1);
    }
    return read_scope(text_in(given, "scope"), a)
               ? true
               : fail(why, why_n, "the scope of assignment %zu must be /, /dbs/NAME or /dbs/NAME/colls/NAME", i + 1);
}

static size_t count(slice list) {
    bson_iter_t each;
    size_t n = 0;
    bson_iter_init_from_data(&each, (const uint8_t *)list.p, list.n);
    while (bson_iter_next(&each)) {
        n++;
    }
    return n;
}

static slice lower(arena *a, slice text) {
    char *p = arena_alloc_aligned(a, text.n + 1, 1);
    for (size_t i = 0; i < text.n; i++) {
        p[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] | 0x20 : text.p[i]);
    }
    return slice_of(p, text.n);
}

static int by_principal(const void *a, const void *b) {
    return slice_cmp(((const access_assignment *)a)->principal, ((const access_assignment *)b)->principal);
}

static bool read_list(arena *a, slice list, access_roles *roles_out, char *why, size_t why_n) {
    bson_iter_t each;
    size_t n = 0;
    access_assignment *made = arena_array(a, access_assignment, count(list) + 1);
    bson_iter_init_from_data(&each, (const uint8_t *)list.p, list.n);
    for (; bson_iter_next(&each); n++) {
        uint32_t bytes;
        const uint8_t *p;
        if (!BSON_ITER_HOLDS_DOCUMENT(&each) || n == ASSIGNMENTS_MAX) {
            return fail(why, why_n, "it must be an array of at most %d objects", ASSIGNMENTS_MAX);
        }
        bson_iter_document(&each, &bytes, &p);
        if (!read_one(slice_of(p, bytes), n, &made[n], why, why_n)) {
            return false;
        }
        made[n].principal = lower(a, made[n].principal);
    }
    qsort(made, n, sizeof *made, by_principal);
    *roles_out = (access_roles){.list = made, .n = n};
    return true;
}

bool access_roles_read(arena *a, slice json, access_roles *roles_out, char *why, size_t why_n) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root = JSON_OBJECT;
    *roles_out = (access_roles){0};
    bool is_list = json_to_bson(json, NULL, &bson, &root, NULL) == OK && root == JSON_ARRAY;
    slice list = arena_copy(a, buf_view(&bson));
    buf_free(&bson);
    return is_list ? read_list(a, list, roles_out, why, why_n) : fail(why, why_n, "it must be a JSON array of role assignments");
}

static bool covers(const access_assignment *a, slice database, slice container) {
    return a->database.n == 0 || (slice_eq(a->database, database) && (a->container.n == 0 || slice_eq(a->container, container)));
}

static int compare_lower(slice kept, slice given) {
    size_t n = kept.n < given.n ? kept.n : given.n;
    for (size_t i = 0; i < n; i++) {
        char c = (char)(given.p[i] >= 'A' && given.p[i] <= 'Z' ? given.p[i] | 0x20 : given.p[i]);
        if (kept.p[i] != c) {
            return (unsigned char)kept.p[i] < (unsigned char)c ? -1 : 1;
        }
    }
    return kept.n < given.n ? -1 : kept.n > given.n;
}

access_roles access_roles_of(const access_roles *all, slice principal) {
    size_t low = 0, high = all->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_lower(all->list[middle].principal, principal) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    size_t end = low;
    while (end < all->n && compare_lower(all->list[end].principal, principal) == 0) {
        end++;
    }
    return (access_roles){.list = all->list + low, .n = end - low};
}

access_role access_roles_in(const access_roles *roles, slice database, slice container) {
    access_role role = ACCESS_NO_ROLE;
    for (; roles; roles = roles->next) {
        for (size_t i = 0; i < roles->n; i++) {
            const access_assignment *a = &roles->list[i];
            role = a->role > role && covers(a, database, container) ? a->role : role;
        }
    }
    return role;
}

bool access_roles_any(const access_roles *roles) {
    return roles != NULL;
}
