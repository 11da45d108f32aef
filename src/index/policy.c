#include "index/policy.h"

#include <stdlib.h>

#include "base/limits.h"

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

/* Takes the next step off a path that begins with a slash; quoted steps lose their quotes. False: no such step. */
static bool next_step(slice *path, slice *step_out) {
    if (path->n < 2 || path->p[0] != '/') {
        return false;
    }
    slice rest = slice_skip(*path, 1);
    bool quoted = rest.p[0] == '"';
    size_t n = quoted ? 1 : 0;
    while (n < rest.n && rest.p[n] != (quoted ? '"' : '/')) {
        n++;
    }
    if (quoted && n == rest.n) {
        return false;
    }
    *step_out = quoted ? slice_of(rest.p + 1, n - 1) : slice_of(rest.p, n);
    *path = slice_skip(rest, quoted ? n + 1 : n);
    return step_out->n > 0 && (path->n == 0 || path->p[0] == '/');
}

static err add_path(op *o, index_node *root, slice path, index_rule r) {
    index_node *at = root;
    slice rest = path, step = SLICE_EMPTY;
    for (unsigned depth = 0; depth < LIMIT_PATH_DEPTH; depth++) {
        if (!next_step(&rest, &step)) {
            break;
        }
        bool last = rest.n == 0;
        if (last && slice_eq(step, SLICE_LIT("?"))) {
            at->scalar = r;
            return OK;
        }
        if (last && slice_eq(step, SLICE_LIT("*"))) {
            at->subtree = r;
            return OK;
        }
        at = child_of(o->arena, at, step);
        if (last) { /* older policies leave the ending out: /a means /a/? */
            at->scalar = r;
            return OK;
        }
    }
    return op_fail(
        o, E_BAD_REQUEST,
        "The indexing path '%.*s' could not be accepted, failed near position '%zu'. Please ensure that the path is a valid path.",
        (int)(path.n < 200 ? path.n : 200), path.p, path.n - rest.n);
}

static err add_paths(op *o, index_node *root, const bson_iter_t *list, index_rule r) {
    bson_iter_t each, member;
    size_t n = 0;
    if (!BSON_ITER_HOLDS_ARRAY(list) || !bson_iter_recurse(list, &each)) {
        return op_fail(o, E_BAD_REQUEST, "The indexing policy's includedPaths and excludedPaths must be arrays.");
    }
    while (bson_iter_next(&each)) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&each) || !bson_iter_recurse(&each, &member) || !bson_iter_find(&member, "path") ||
            !BSON_ITER_HOLDS_UTF8(&member)) {
            return op_fail(o, E_BAD_REQUEST, "The indexing path at position %zu has no 'path'.", n);
        }
        if (++n > LIMIT_INDEX_PATHS) {
            return op_fail(o, E_BAD_REQUEST, "The indexing policy has more than %d paths.", LIMIT_INDEX_PATHS);
        }
        uint32_t length;
        const char *text = bson_iter_utf8(&member, &length);
        TRY(add_path(o, root, slice_of(text, length), r));
    }
    return OK;
}

static err read_mode(op *o, const bson_t *doc, index_policy *policy) {
    bson_iter_t it;
    if (!bson_iter_init_find(&it, doc, "indexingMode")) {
        return OK;
    }
    uint32_t n = 0;
    const char *mode = BSON_ITER_HOLDS_UTF8(&it) ? bson_iter_utf8(&it, &n) : "";
    slice word = slice_of(mode, n);
    policy->off = slice_eq_nocase(word, SLICE_LIT("none"));
    if (!policy->off && !slice_eq_nocase(word, SLICE_LIT("consistent")) && !slice_eq_nocase(word, SLICE_LIT("lazy"))) {
        return op_fail(o, E_BAD_REQUEST, "The indexing mode '%.*s' is invalid: use consistent or none.", (int)(n < 100 ? n : 100), mode);
    }
    return OK;
}

static int by_name(const void *a, const void *b) {
    return slice_cmp((*(const index_node *const *)a)->name, (*(const index_node *const *)b)->name);
}

/* So that a large policy and a large document do not multiply. */
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
        TRY(read_composite(o, &each, &list[policy->composites_n]));
        for (size_t i = 0; i < policy->composites_n; i++) {
            if (list[i].id == list[policy->composites_n].id) {
                return bad_composite(o, "two of them are the same");
            }
        }
        policy->composites_n++;
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

static err read_paths(op *o, const bson_t *doc, index_node *root) {
    bson_iter_t it;
    bool paths = false;
    if (bson_iter_init_find(&it, doc, "includedPaths")) {
        TRY(add_paths(o, root, &it, RULE_INCLUDE));
        paths = true;
    }
    if (bson_iter_init_find(&it, doc, "excludedPaths")) {
        TRY(add_paths(o, root, &it, RULE_EXCLUDE));
        paths = true;
    }
    if (paths && root->subtree == RULE_NONE && root->children) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Please provide this path in "
            "one of the sets.");
    }
    return OK;
}

err index_policy_parse(op *o, slice bson, const doc_path *keys, size_t keys_n, index_policy *policy_out) {
    bson_t doc;
    *policy_out = (index_policy){.rest_included = true};
    if (bson.n == 0) {
        return OK;
    }
    if (!bson_init_static(&doc, (const uint8_t *)bson.p, bson.n)) {
        return E_INTERNAL;
    }
    TRY(read_mode(o, &doc, policy_out));
    index_node *root = arena_new(o->arena, index_node);
    TRY(read_paths(o, &doc, root));
    TRY(read_composites(o, &doc, policy_out));
    policy_out->rest_included = root->subtree != RULE_EXCLUDE;
    if (root->children || !policy_out->rest_included) {
        index_always(o, root, &(slice){"id", 2}, 1);
        for (size_t i = 0; i < keys_n; i++) {
            index_always(o, root, keys[i].steps, keys[i].steps_n);
        }
        policy_out->root = root;
    }
    sort_children(o->arena, root);
    return OK;
}

/* ---- asking ---- */

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
    for (size_t i = 0; i < n; i++) {
        path = steps[i].element ? index_path_element(path) : index_path_member(path, steps[i].name);
    }
    return path;
}

bool index_policy_covers(const index_policy *policy, const index_step *steps, size_t n) {
    const index_node *node = policy->root;
    bool included = policy->rest_included;
    if (policy->off || n == 0) {
        return false;
    }
    if (n == 1 && !steps[0].element && slice_eq(steps[0].name, SLICE_LIT("_ts"))) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        node = index_node_child(node, steps[i].element ? SLICE_LIT("[]") : steps[i].name);
        included = node && node->subtree != RULE_NONE ? node->subtree == RULE_INCLUDE : included;
    }
    return (node && node->always) || (node && node->scalar != RULE_NONE ? node->scalar == RULE_INCLUDE : included);
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

bool index_policy_same(const index_policy *a, const index_policy *b) {
    if (a->off || b->off) {
        return a->off == b->off;
    }
    bool same = a->rest_included == b->rest_included && same_nodes(a->root, b->root) && a->composites_n == b->composites_n;
    for (size_t i = 0; same && i < a->composites_n; i++) {
        same = has_composite(b, a->composites[i].id);
    }
    return same;
}
