/* canonical.c — policies in the form in which they are stored with a container and shown to clients. */
#include "index/policy_int.h"

static bool is_lean(slice rows) {
    bson_iter_t it;
    return rows.n && doc_find_key(rows, SLICE_LIT("lean"), &it) && BSON_ITER_HOLDS_BOOL(&it) && bson_iter_bool(&it);
}

slice index_policy_source(arena *a, slice properties, slice rows) {
    static const char *const others[] = {"fullTextPolicy", "vectorEmbeddingPolicy", "geospatialConfig"};
    bson_t source = BSON_INITIALIZER;
    bson_iter_t it, inner;
    bool given = doc_find_key(properties, SLICE_LIT("indexingPolicy"), &it) && BSON_ITER_HOLDS_DOCUMENT(&it);
    if (given && bson_iter_recurse(&it, &inner)) {
        while (bson_iter_next(&inner)) {
            bool other = strcmp(bson_iter_key(&inner), "lean") == 0; /* clients may not set this */
            for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
                other = other || strcmp(bson_iter_key(&inner), others[i]) == 0;
            }
            other ? (void)0 : (void)bson_append_iter(&source, NULL, 0, &inner);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (doc_find_key(properties, slice_str(others[i]), &it) && BSON_ITER_HOLDS_DOCUMENT(&it)) {
            bson_append_iter(&source, others[i], -1, &it);
        }
    }
    if (is_lean(rows)) {
        bson_append_bool(&source, "lean", -1, true);
    }
    slice made = arena_copy(a, slice_of(bson_get_data(&source), source.len));
    bson_destroy(&source);
    return made;
}

/* ---- lists of paths ---- */

static void add_text(bson_t *into, const char *key, slice text) {
    bson_append_utf8(into, key, -1, text.p, (int)text.n);
}

static bool is_spatial(slice index) {
    return slice_eq_nocase(index__text(index, "kind"), SLICE_LIT("Spatial"));
}

/* Hash indexes became range indexes, whose precision is always -1. */
static void add_index(bson_t *list, const char *key, slice index) {
    bson_t entry;
    bool shapes = is_spatial(index);
    bson_append_document_begin(list, key, -1, &entry);
    add_text(&entry, "kind", shapes ? SLICE_LIT("Spatial") : SLICE_LIT("Range"));
    add_text(&entry, "dataType", index__text(index, "dataType"));
    if (!shapes) {
        bson_append_int32(&entry, "precision", -1, -1);
    }
    bson_append_document_end(list, &entry);
}

static bool has_spatial(slice indexes) {
    doc_walk w;
    slice index;
    bool any = false;
    for (bool more = doc_walk_init(&w, indexes); more && index__next(&w, &index);) {
        any = any || is_spatial(index);
    }
    return any;
}

/* Of the root only indexes of shapes are shown: everything else is indexed alike. */
static void add_indexes(bson_t *entry, slice given, bool root) {
    doc_element e;
    doc_walk w;
    bson_t list;
    slice index;
    char number[16];
    if (!doc_find_member(given, SLICE_LIT("indexes"), &e) || e.type != BSON_TYPE_ARRAY || !doc_walk_init(&w, e.value) ||
        (root && !has_spatial(e.value))) {
        return;
    }
    bson_append_array_begin(entry, "indexes", -1, &list);
    for (uint32_t i = 0; index__next(&w, &index);) {
        if (!root || is_spatial(index)) {
            snprintf(number, sizeof number, "%u", i++);
            add_index(&list, number, index);
        }
    }
    bson_append_array_end(entry, &list);
}

static void add_path(bson_t *list, uint32_t i, slice path, slice given) {
    bson_t entry;
    char number[16];
    snprintf(number, sizeof number, "%u", i);
    bool root = slice_eq(path, SLICE_LIT("/")) || slice_eq(path, SLICE_LIT("/*"));
    bson_append_document_begin(list, number, -1, &entry);
    add_text(&entry, "path", root ? SLICE_LIT("/*") : path);
    if (given.n) {
        add_indexes(&entry, given, root);
    }
    bson_append_document_end(list, &entry);
}

/* Adds the given paths, and after them `also`, if that is not empty. */
static void add_paths(bson_t *policy, slice given, const char *name, slice also) {
    bson_t list;
    doc_element e;
    doc_walk w;
    slice entry;
    uint32_t n = 0;
    bson_append_array_begin(policy, name, -1, &list);
    if (index__has(given, name) && doc_find_member(given, slice_str(name), &e) && doc_walk_init(&w, e.value)) {
        while (index__next(&w, &entry)) {
            add_path(&list, n++, index__text(entry, "path"), entry);
        }
    }
    if (also.n) {
        add_path(&list, n, also, SLICE_EMPTY);
    }
    bson_append_array_end(policy, &list);
}

/* ---- shapes ---- */

static void add_types(bson_t *entry) {
    static const char *const types[] = {"Point", "LineString", "Polygon", "MultiPolygon"};
    bson_t list;
    bson_append_array_begin(entry, "types", -1, &list);
    for (uint32_t i = 0; i < 4; i++) {
        bson_append_utf8(&list, (const char[]){(char)('0' + i), 0}, -1, types[i], -1);
    }
    bson_append_array_end(entry, &list);
}

/* Without `types`, all types are added. */
static void add_spatial(bson_t *list, const char *key, slice given) {
    bson_t entry;
    bson_iter_t it;
    bson_append_document_begin(list, key, -1, &entry);
    add_text(&entry, "path", index__text(given, "path"));
    if (index__has(given, "types") && doc_find_key(given, SLICE_LIT("types"), &it)) {
        bson_append_iter(&entry, "types", -1, &it);
    } else {
        add_types(&entry);
    }
    if (index__has(given, "boundingBox") && doc_find_key(given, SLICE_LIT("boundingBox"), &it)) {
        bson_append_iter(&entry, "boundingBox", -1, &it);
    }
    bson_append_document_end(list, &entry);
}

static void add_spatials(bson_t *policy, slice given) {
    doc_element e;
    doc_walk w;
    bson_t list;
    slice entry;
    char number[16];
    if (!index__has(given, "spatialIndexes") || !doc_find_member(given, SLICE_LIT("spatialIndexes"), &e) || !doc_walk_init(&w, e.value)) {
        return;
    }
    bson_append_array_begin(policy, "spatialIndexes", -1, &list);
    for (uint32_t i = 0; index__next(&w, &entry); i++) {
        snprintf(number, sizeof number, "%u", i);
        add_spatial(&list, number, entry);
    }
    bson_append_array_end(policy, &list);
}

/* ---- all of it ---- */

/* Everything, unless the policy has a list of its own or excludes everything. */
static slice also_included(slice given, const index_policy *policy) {
    return policy->off || !policy->rest_included || index__has(given, "includedPaths") ? SLICE_EMPTY : SLICE_LIT("/*");
}

/* /"_etag"/? unless the policy names it, or lists no path at all. */
static slice also_excluded(slice given, const index_policy *policy) {
    doc_element e;
    doc_walk w;
    slice entry;
    bool none = !policy->root && index__has(given, "includedPaths") && doc_find_member(given, SLICE_LIT("includedPaths"), &e) &&
                doc_walk_init(&w, e.value) && !index__next(&w, &entry);
    for (const index_node *each = policy->root ? policy->root->children : NULL; each; each = each->next) {
        none |= each->scalar != RULE_NONE && slice_eq(each->name, SLICE_LIT("_etag"));
    }
    return policy->off || none ? SLICE_EMPTY : SLICE_LIT("/\"_etag\"/?");
}

/* The result must mean the same as what was given, since settings are parsed again at every start. */
void index_policy_canonical(bson_t *settings, slice given, const index_policy *read) {
    static const char *const others[] = {"compositeIndexes", "vectorIndexes", "fullTextIndexes", "keyIndexes", "round"};
    size_t others_n = sizeof others / sizeof *others - (read->keys_n ? !read->round : 2);
    bson_t policy;
    bson_iter_t it;
    bson_append_document_begin(settings, "indexingPolicy", -1, &policy);
    bson_append_utf8(&policy, "indexingMode", -1, read->off ? "none" : "consistent", -1);
    bson_append_bool(&policy, "automatic", -1, !read->off); /* as on the service: "consistent" is automatic, whatever was given */
    add_paths(&policy, given, "includedPaths", also_included(given, read));
    add_paths(&policy, given, "excludedPaths", also_excluded(given, read));
    add_spatials(&policy, given);
    for (size_t i = 0; i < others_n; i++) {
        if (index__has(given, others[i]) && doc_find_key(given, slice_str(others[i]), &it)) {
            bson_append_iter(&policy, others[i], -1, &it);
        }
    }
    bson_append_document_end(settings, &policy);
}
