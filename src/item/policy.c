#include "item/policy.h"

#include <stdlib.h>

#include "base/limits.h"

enum { TERMS_OF_ITEM = 1, TERMS_PER_SCALAR = 2 };

typedef enum rule { RULE_NONE, RULE_INCLUDE, RULE_EXCLUDE } rule;

/* A step of the policy's paths. The name of an array step is "[]". */
struct index_node {
    slice name;
    rule scalar;  /* by a question mark */
    rule subtree; /* by a star */
    index_node *children;
    index_node *next;
    const index_node **sorted; /* the children by name, once all paths are read */
    size_t sorted_n;
};

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

static err add_path(op *o, index_node *root, slice path, rule r) {
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

static err add_paths(op *o, index_node *root, const bson_iter_t *list, rule r) {
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

err index_policy_parse(op *o, slice bson, index_policy *policy_out) {
    bson_t doc;
    bson_iter_t it;
    *policy_out = (index_policy){.rest_included = true};
    if (bson.n == 0) {
        return OK;
    }
    if (!bson_init_static(&doc, (const uint8_t *)bson.p, bson.n)) {
        return E_INTERNAL;
    }
    TRY(read_mode(o, &doc, policy_out));
    index_node *root = arena_new(o->arena, index_node);
    bool paths = false;
    if (bson_iter_init_find(&it, &doc, "includedPaths")) {
        TRY(add_paths(o, root, &it, RULE_INCLUDE));
        paths = true;
    }
    if (bson_iter_init_find(&it, &doc, "excludedPaths")) {
        TRY(add_paths(o, root, &it, RULE_EXCLUDE));
        paths = true;
    }
    if (paths && root->subtree == RULE_NONE && root->children) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Please provide this path in "
            "one of the sets.");
    }
    policy_out->rest_included = root->subtree != RULE_EXCLUDE;
    policy_out->root = root->children ? root : NULL;
    sort_children(o->arena, root);
    return OK;
}

/* ---- walking a document ---- */

/* Where the walk stands: `node` is the policy's step here or NULL, `included` what the deepest star above says. */
typedef struct walk {
    uint64_t *hashes; /* of scalars' terms, or NULL to count only */
    size_t n, cap;
    arena *scratch;
} walk;

static uint64_t mix(uint64_t h, const void *p, size_t n) {
    const unsigned char *at = p;
    for (; n >= 8; at += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    for (; n; at++, n--) {
        h = (h ^ *at) * 0x100000001B3u;
    }
    return h ^ (h >> 32);
}

static uint64_t hash_scalar(uint64_t path, const bson_iter_t *it) {
    bson_type_t type = bson_iter_type(it);
    if (BSON_ITER_HOLDS_NUMBER(it)) {
        double number = bson_iter_as_double(it);
        return mix(path ^ 1, &number, sizeof number);
    }
    if (type == BSON_TYPE_UTF8) {
        uint32_t n;
        const char *text = bson_iter_utf8(it, &n);
        return mix(path ^ 2, text, n);
    }
    if (type == BSON_TYPE_BOOL) {
        return mix(path ^ (bson_iter_bool(it) ? 3 : 4), &type, sizeof type);
    }
    /* Other APIs' types: the raw bytes say all there is. */
    return mix(path ^ 5 ^ (uint64_t)type, it->raw + it->d1, it->next_off > it->d1 ? it->next_off - it->d1 : 0);
}

static void emit(walk *w, uint64_t hash) {
    if (w->scratch) {
        if (w->n == w->cap) {
            size_t cap = w->cap ? w->cap * 2 : 64;
            uint64_t *grown = arena_alloc(w->scratch, cap * sizeof *grown);
            if (w->n) {
                memcpy(grown, w->hashes, w->n * sizeof *grown);
            }
            w->hashes = grown;
            w->cap = cap;
        }
        w->hashes[w->n] = hash;
    }
    w->n++;
}

static const index_node *find_child(const index_node *node, slice name) {
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

static void walk_document(walk *w, const index_node *node, bool included, bool array, uint64_t path, bson_iter_t *it);

static void walk_value(walk *w, const index_node *node, bool included, uint64_t path, const bson_iter_t *it) {
    included = node && node->subtree != RULE_NONE ? node->subtree == RULE_INCLUDE : included;
    bson_type_t type = bson_iter_type(it);
    if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY) {
        bson_iter_t inner;
        if ((node && node->children) || included) { /* nothing below can count otherwise */
            if (bson_iter_recurse(it, &inner)) {
                walk_document(w, node, included, type == BSON_TYPE_ARRAY, path, &inner);
            }
        }
        return;
    }
    if (node && node->scalar != RULE_NONE ? node->scalar == RULE_INCLUDE : included) {
        emit(w, w->scratch ? hash_scalar(path, it) : 0);
    }
}

static void walk_document(walk *w, const index_node *node, bool included, bool array, uint64_t path, bson_iter_t *it) {
    const index_node *elements = array ? find_child(node, SLICE_LIT("[]")) : NULL;
    while (bson_iter_next(it)) {
        slice name = slice_of(bson_iter_key(it), bson_iter_key_len(it));
        uint64_t here = !w->scratch ? 0 : array ? mix(path, "[]", 2) : mix(path, name.p, name.n + 1);
        walk_value(w, array ? elements : find_child(node, name), included, here, it);
    }
}

static void walk_all(walk *w, const index_policy *policy, slice document) {
    bson_iter_t it;
    if (!policy->off && bson_iter_init_from_data(&it, (const uint8_t *)document.p, document.n)) {
        walk_document(w, policy->root, policy->rest_included, false, 0, &it);
    }
}

size_t index_terms(const index_policy *policy, slice document) {
    walk w = {0};
    walk_all(&w, policy, document);
    return policy->off ? 0 : TERMS_OF_ITEM + TERMS_PER_SCALAR * w.n;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

size_t index_terms_changed(arena *scratch, const index_policy *policy, slice before, slice after) {
    walk old = {.scratch = scratch}, new = {.scratch = scratch};
    walk_all(&old, policy, before);
    walk_all(&new, policy, after);
    if (old.n) {
        qsort(old.hashes, old.n, sizeof *old.hashes, by_value);
    }
    if (new.n) {
        qsort(new.hashes, new.n, sizeof *new.hashes, by_value);
    }
    size_t i = 0, j = 0, same = 0;
    while (i < old.n && j < new.n) {
        int order = by_value(&old.hashes[i], &new.hashes[j]);
        same += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    return TERMS_PER_SCALAR * (old.n - same + new.n - same);
}
