#include "index/policy_int.h"

#include <stdlib.h>

enum { COMPOSITES_MAX = 100, COMPOSITE_PATHS_MAX = 8 };

/* ---- building ---- */

static index_node *child_of(arena *a, index_node *parent, slice name) {
    for (index_node *child = parent->children; child; child = child->next) {
        if (slice_eq(child->name, name)) {
            return child;
        }
    }
    index_node *child = arena_new(a, index_node);
    child->name = arena_copy(a, name);
    child->next = parent->children;
    parent->children = child;
    return child;
}

static err bad_path(op *o, slice path, size_t position) {
    return op_fail(
        o, E_BAD_REQUEST,
        "The indexing path '%.*s' could not be accepted, failed near position '%zu'. Please ensure that the path is a valid path.",
        slice_shown(path), path.p ? path.p : "", position);
}

/* Old policies omit the ending: /a means /a/?. */
static err add_steps(op *o, index_node *root, slice path, const index_read_path *read, index_rule r) {
    index_node *at = root;
    for (size_t i = 0; i < read->n; i++) {
        at = child_of(o->arena, at, read->steps[i].element ? SLICE_LIT("[]") : read->steps[i].name);
    }
    index_rule *rule = read->end == ENDS_STAR ? &at->subtree : &at->scalar;
    if (*rule != RULE_NONE && *rule != r) {
        return op_fail(o, E_BAD_REQUEST, "The indexing path '%.*s' is both included and excluded.", slice_shown(path), path.p);
    }
    *rule = r;
    return OK;
}

/* /a/[]/{x,y}/? is indexed as /a/[]/x/? and /a/[]/y/?. */
static err add_tuple(op *o, index_node *root, slice path, const index_read_path *read, size_t *paths) {
    slice rest = read->tuple;
    for (bool more = true; more;) {
        const char *comma = memchr(rest.p, ',', rest.n);
        slice member = slice_of(rest.p, comma ? (size_t)(comma - rest.p) : rest.n);
        index_read_path whole = *read;
        whole.end = ENDS_SCALAR;
        if (++*paths > LIMIT_INDEX_PATHS || !index__read_tuple_member(member, &whole)) {
            return bad_path(o, path, (size_t)(member.p - path.p));
        }
        TRY(add_steps(o, root, path, &whole, RULE_INCLUDE));
        more = comma != NULL;
        rest = slice_skip(rest, member.n + more);
    }
    return OK;
}

static err add_path(op *o, index_node *root, slice path, index_rule r, size_t *paths) {
    index_read_path read;
    size_t position;
    if (!index__read_path(path, &read, &position) || (read.tuple.n && r == RULE_EXCLUDE)) {
        return bad_path(o, path, position);
    }
    return read.tuple.n ? add_tuple(o, root, path, &read, paths) : add_steps(o, root, path, &read, r);
}

/* ---- the old "indexes" of an included path: {"kind", "dataType", "precision"} ---- */

static err check_index(op *o, slice index) {
    static const char *const types[] = {"String", "Number", "Point", "LineString", "Polygon", "MultiPolygon"};
    slice kind = index__text(index, "kind"), type = index__text(index, "dataType");
    bool shapes = slice_eq_nocase(kind, SLICE_LIT("Spatial"));
    if (!shapes && !slice_eq_nocase(kind, SLICE_LIT("Hash")) && !slice_eq_nocase(kind, SLICE_LIT("Range"))) {
        return op_fail(o, E_BAD_REQUEST,
                       "The specified index type value '%.*s' is invalid. Please choose among 'Hash', 'Range', and 'Spatial' index types.",
                       slice_shown(kind), kind.p ? kind.p : "");
    }
    if (shapes && index__has(index, "precision")) {
        return op_fail(o, E_BAD_REQUEST, "The 'Spatial' index type should not have a precision specified.");
    }
    for (size_t i = shapes ? 2 : 0; i < (shapes ? 6 : 2); i++) {
        if (slice_eq_nocase(type, slice_str(types[i]))) {
            return OK;
        }
    }
    return op_fail(o, E_BAD_REQUEST, "The specified data type value '%.*s' is invalid for the '%.*s' index type.", slice_shown(type),
                   type.p ? type.p : "", slice_shown(kind), kind.p);
}

static err check_indexes(op *o, slice entry) {
    enum { INDEXES_MAX = 16 };
    slice list, index;
    doc_walk w;
    size_t n;
    TRY(index__list(o, entry, "indexes", INDEXES_MAX, &list, &n));
    for (bool more = n && doc_walk_init(&w, list); more && index__next(&w, &index);) {
        TRY(check_index(o, index));
    }
    return OK;
}

static err add_paths(op *o, index_node *root, slice document, const char *key, index_rule r) {
    slice list, entry;
    doc_walk w;
    size_t n, paths; /* includes paths from tuples */
    TRY(index__list(o, document, key, LIMIT_INDEX_PATHS, &list, &n));
    paths = n;
    for (bool more = n && doc_walk_init(&w, list); more && index__next(&w, &entry);) {
        slice path = index__text(entry, "path");
        TRY(path.n == 0 ? bad_path(o, path, 0) : add_path(o, root, path, r, &paths));
        TRY(r == RULE_INCLUDE ? check_indexes(o, entry) : OK);
    }
    return OK;
}

static err read_mode(op *o, slice document, index_policy *policy) {
    doc_element automatic;
    slice mode = index__text(document, "indexingMode");
    if (!index__has(document, "indexingMode")) {
        return OK;
    }
    policy->off = slice_eq_nocase(mode, SLICE_LIT("none"));
    if (!policy->off && !slice_eq_nocase(mode, SLICE_LIT("consistent")) && !slice_eq_nocase(mode, SLICE_LIT("lazy"))) {
        return op_fail(o, E_BAD_REQUEST, "The indexing mode '%.*s' is invalid: use consistent or none.", slice_shown(mode),
                       mode.p ? mode.p : "");
    }
    bool given = index__has(document, "automatic") && doc_find_member(document, SLICE_LIT("automatic"), &automatic);
    if (given && automatic.type != BSON_TYPE_BOOL) {
        return op_fail(o, E_BAD_REQUEST, "The 'automatic' of an indexing policy must be true or false.");
    }
    if (policy->off && given && automatic.value.p[0]) {
        return op_fail(o, E_BAD_REQUEST, "Indexing mode value cannot be 'none' when automatic indexing is specified as 'true'.");
    }
    return OK;
}

static int by_name(const void *a, const void *b) {
    return slice_cmp((*(const index_node *const *)a)->name, (*(const index_node *const *)b)->name);
}

/* Sorted children allow binary search, so that the cost is not policy size times document size. */
static void sort_children(arena *a, index_node *node) {
    for (index_node *child = node->children; child; child = child->next) {
        sort_children(a, child);
        node->sorted_n++;
    }
    if (node->sorted_n) {
        node->sorted = arena_alloc(a, node->sorted_n * sizeof *node->sorted);
        size_t i = 0;
        for (const index_node *child = node->children; child; child = child->next) {
            node->sorted[i++] = child;
        }
        qsort(node->sorted, node->sorted_n, sizeof *node->sorted, by_name);
    }
}

/* ---- composite indexes ---- */

static err bad_composite(op *o, const char *what) {
    return op_fail(o, E_BAD_REQUEST, "The composite indexes of the indexing policy are invalid: %s.", what);
}

static index_path hash_of_path(const doc_path *path) {
    index_path hash = INDEX_PATH_ROOT;
    for (size_t i = 0; i < path->steps_n; i++) {
        hash = index_path_member(hash, path->steps[i]);
    }
    return hash;
}

static err read_part(op *o, const bson_iter_t *it, index_composite_part *part) {
    bson_iter_t member;
    if (!BSON_ITER_HOLDS_DOCUMENT(it) || !bson_iter_recurse(it, &member) || !bson_iter_find(&member, "path") ||
        !BSON_ITER_HOLDS_UTF8(&member)) {
        return bad_composite(o, "each entry must be an object with a 'path'");
    }
    slice text = doc_text(&member);
    bool star = text.n > 1 && (text.p[text.n - 1] == '*' || text.p[text.n - 1] == '?') && text.p[text.n - 2] == '/';
    if (star || doc_path_parse(o->arena, text, &part->path) != OK) {
        return bad_composite(o, "a path must name a property, without a wildcard, as in /address/city");
    }
    part->hash = hash_of_path(&part->path);
    part->ts = part->path.steps_n == 1 && slice_eq(part->path.steps[0], SLICE_LIT("_ts"));
    part->made = part->path.steps_n > 0 && index_is_system((index_step){.name = part->path.steps[0]}) && !part->ts;
    if (!bson_iter_recurse(it, &member) || !bson_iter_find(&member, "order")) {
        return OK;
    }
    slice order = BSON_ITER_HOLDS_UTF8(&member) ? doc_text(&member) : SLICE_EMPTY;
    part->descending = slice_eq_nocase(order, SLICE_LIT("descending"));
    return part->descending || slice_eq_nocase(order, SLICE_LIT("ascending"))
               ? OK
               : bad_composite(o, "an 'order' is either ascending or descending");
}

static err check_parts(op *o, const index_composite_part *parts, size_t n) {
    if (n < 2 || n > COMPOSITE_PATHS_MAX) {
        return bad_composite(o, "each has two to eight paths");
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (parts[i].hash == parts[j].hash) {
                return bad_composite(o, "a path may stand in each only once");
            }
        }
    }
    return OK;
}

static size_t count_elements(const bson_iter_t *list) {
    bson_iter_t each;
    size_t n = 0;
    if (BSON_ITER_HOLDS_ARRAY(list) && bson_iter_recurse(list, &each)) {
        while (bson_iter_next(&each)) {
            n++;
        }
    }
    return n;
}

static err read_composite(op *o, const bson_iter_t *it, index_composite *composite) {
    bson_iter_t each;
    size_t n = count_elements(it), i = 0;
    index_composite_part *parts = arena_array(o->arena, index_composite_part, n + 1);
    if (n && bson_iter_recurse(it, &each)) {
        while (bson_iter_next(&each)) {
            TRY(read_part(o, &each, &parts[i++]));
        }
    }
    TRY(check_parts(o, parts, n));
    bool turned = parts[0].descending; /* the same index scanned backward; normalised so that the first path ascends */
    for (i = 0; i < n; i++) {
        parts[i].descending ^= turned;
    }
    *composite = (index_composite){INDEX_PATH_ROOT, parts, n};
    for (i = 0; i < n; i++) {
        composite->id = index_path_mixed(composite->id, parts[i].hash + parts[i].descending);
    }
    return OK;
}

static err read_composites(op *o, const bson_t *doc, index_policy *policy) {
    bson_iter_t it, each;
    if (!bson_iter_init_find(&it, doc, "compositeIndexes") || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    size_t n = count_elements(&it);
    if (!BSON_ITER_HOLDS_ARRAY(&it) || n > COMPOSITES_MAX || !bson_iter_recurse(&it, &each)) {
        return bad_composite(o, "they are an array of at most 100 arrays");
    }
    index_composite *list = arena_array(o->arena, index_composite, n + 1);
    policy->composites = list;
    while (bson_iter_next(&each)) {
        bool again = false;
        TRY(read_composite(o, &each, &list[policy->composites_n]));
        for (size_t i = 0; i < policy->composites_n; i++) {
            again = again || list[i].id == list[policy->composites_n].id;
        }
        policy->composites_n += !again;
    }
    return OK;
}

/* ---- all of it ---- */

static void index_always(op *o, index_node *root, const slice *steps, size_t n) {
    index_node *at = root;
    for (size_t i = 0; i < n; i++) {
        at = child_of(o->arena, at, steps[i]);
    }
    at->always = true;
}

/* Marks the paths that are always indexed. */
static void index_keys(op *o, index_node *root, const doc_path *keys, size_t n) {
    index_always(o, root, &(slice){"id", 2}, 1);
    for (size_t i = 0; i < n; i++) {
        index_always(o, root, keys[i].steps, keys[i].steps_n);
    }
}

static err read_paths(op *o, slice document, index_node *root) {
    bool given = index__has(document, "includedPaths") || index__has(document, "excludedPaths");
    TRY(add_paths(o, root, document, "includedPaths", RULE_INCLUDE));
    TRY(add_paths(o, root, document, "excludedPaths", RULE_EXCLUDE));
    if (given && root->subtree == RULE_NONE && (root->children || root->scalar != RULE_NONE)) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Please provide this path in "
            "one of the sets.");
    }
    return OK;
}

static err read_all(op *o, slice document, index_node *root, index_policy *policy) {
    bson_t doc;
    if (!bson_init_static(&doc, (const uint8_t *)document.p, document.n)) {
        return E_INTERNAL;
    }
    TRY(read_mode(o, document, policy));
    TRY(read_paths(o, document, root));
    TRY(read_composites(o, &doc, policy));
    TRY(index__has(document, "lean") ? index__read_keys(o, document, policy) : OK);
    TRY(index__read_spatials(o, document, policy));
    TRY(index__read_texts(o, document, policy));
    return index__read_vectors(o, document, policy);
}

err index_policy_parse(op *o, slice bson, const doc_path *keys, size_t keys_n, index_policy *policy_out) {
    *policy_out = (index_policy){.rest_included = true};
    if (bson.n == 0) {
        return OK;
    }
    index_node *root = arena_new(o->arena, index_node);
    TRY(read_all(o, bson, root, policy_out));
    policy_out->rest_included = root->subtree != RULE_EXCLUDE;
    policy_out->lean = index__has(bson, "lean");
    bson_iter_t it;
    if (policy_out->lean && index__has(bson, "round") && doc_find_key(bson, SLICE_LIT("round"), &it)) {
        policy_out->round = BSON_ITER_HOLDS_INT32(&it) ? (uint32_t)bson_iter_int32(&it) : 0;
    }
    if (root->children || !policy_out->rest_included) {
        policy_out->root = root;
    }
    if (policy_out->root && !policy_out->lean) {
        index_keys(o, root, keys, keys_n);
    }
    sort_children(o->arena, root);
    return OK;
}

/* ---- lookups ---- */

const index_node *index_node_child(const index_node *node, slice name) {
    size_t low = 0, high = node ? node->sorted_n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_cmp(node->sorted[middle]->name, name);
        if (order == 0) {
            return node->sorted[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

index_path index_path_of(const index_step *steps, size_t n) {
    index_path path = INDEX_PATH_ROOT;
    if (n == 1 && steps[0].key) {
        return steps[0].key;
    }
    for (size_t i = 0; i < n; i++) {
        path = steps[i].element ? index_path_element(path) : index_path_member(path, steps[i].name);
    }
    return path;
}

bool index_is_system(index_step step) {
    static const char *const names[] = {"_ts", "_rid", "_self", "_etag", "_attachments"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!step.element && slice_eq(step.name, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

bool index_policy_covers(const index_policy *policy, const index_step *steps, size_t n) {
    const index_node *node = policy->root;
    bool included = policy->rest_included;
    if (policy->off || n == 0) {
        return false;
    }
    if (steps[0].key) {
        return index_policy_key(policy, steps[0].key) != NULL;
    }
    if (index_is_system(steps[0])) {
        return n == 1 && !policy->lean && slice_eq(steps[0].name, SLICE_LIT("_ts"));
    }
    for (size_t i = 0; i < n; i++) {
        node = index_node_child(node, steps[i].element ? SLICE_LIT("[]") : steps[i].name);
        included = node && node->subtree != RULE_NONE ? node->subtree == RULE_INCLUDE : included;
    }
    return (node && node->always) || (node && node->scalar != RULE_NONE ? node->scalar == RULE_INCLUDE : included);
}

static bool same_step(const index_step *a, const index_step *b) {
    return a->element == b->element && slice_eq(a->name, b->name);
}

bool index_policy_has_shapes(const index_policy *policy, const index_step *steps, size_t n) {
    for (size_t i = 0; i < policy->spatials_n && !policy->off; i++) {
        const index_spatial *s = &policy->spatials[i];
        bool is = s->n == n || (s->below && s->n < n);
        for (size_t j = 0; is && j < s->n; j++) {
            is = same_step(&s->steps[j], &steps[j]);
        }
        if (is) {
            return true;
        }
    }
    return false;
}

const index_text *index_policy_text(const index_policy *policy, const index_step *steps, size_t n) {
    index_path hash = index_path_of(steps, n);
    for (size_t i = 0; i < policy->texts_n && !policy->off; i++) {
        if (policy->texts[i].hash == hash) {
            return &policy->texts[i];
        }
    }
    return NULL;
}

/* ---- comparing ---- */

static bool same_nodes(const index_node *a, const index_node *b) {
    if (!a || !b) {
        return a == b;
    }
    bool same = a->scalar == b->scalar && a->subtree == b->subtree && a->always == b->always && a->sorted_n == b->sorted_n;
    for (size_t i = 0; same && i < a->sorted_n; i++) {
        same = slice_eq(a->sorted[i]->name, b->sorted[i]->name) && same_nodes(a->sorted[i], b->sorted[i]);
    }
    return same;
}

static bool has_composite(const index_policy *p, index_path id) {
    for (size_t i = 0; i < p->composites_n; i++) {
        if (p->composites[i].id == id) {
            return true;
        }
    }
    return false;
}

/* Compares in order: policies that differ only in order count as different, which costs at most one needless index build. */
static bool same_spatials(const index_policy *a, const index_policy *b) {
    bool same = a->spatials_n == b->spatials_n;
    for (size_t i = 0; same && i < a->spatials_n; i++) {
        const index_spatial *x = &a->spatials[i], *y = &b->spatials[i];
        same = x->n == y->n && x->below == y->below;
        for (size_t j = 0; same && j < x->n; j++) {
            same = same_step(&x->steps[j], &y->steps[j]);
        }
    }
    return same;
}

static bool same_texts(const index_policy *a, const index_policy *b) {
    bool same = a->texts_n == b->texts_n;
    for (size_t i = 0; same && i < a->texts_n; i++) {
        same = a->texts[i].id == b->texts[i].id; /* path and language */
    }
    return same;
}

static bool same_keys(const index_policy *a, const index_policy *b) {
    bool same = a->keys_n == b->keys_n;
    for (size_t i = 0; same && i < a->keys_n; i++) {
        same = index_policy_key(b, a->keys[i].id) != NULL;
    }
    return same;
}

bool index_policy_same(const index_policy *a, const index_policy *b) {
    if (a->off || b->off) {
        return a->off == b->off;
    }
    bool same = a->rest_included == b->rest_included && a->lean == b->lean && a->round == b->round && same_nodes(a->root, b->root) &&
                a->composites_n == b->composites_n && same_keys(a, b) && same_spatials(a, b) && same_texts(a, b);
    for (size_t i = 0; same && i < a->composites_n; i++) {
        same = has_composite(b, a->composites[i].id);
    }
    return same;
}
