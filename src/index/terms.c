#include "index/terms_int.h"

#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"

enum { TERMS_OF_ITEM = 1, TERMS_PER_SCALAR = 2 };

/* Visits the properties of a document that a policy indexes. `in_array`: the value is inside an array. */
typedef struct walk walk;
struct walk {
    void (*found)(walk *w, index_path path, const doc_element *e, bool in_array);
    bool containers; /* also visit arrays and objects */
    bool always;     /* also visit nodes marked `always` */
    bool paths;      /* compute hashes of paths */
    index_list *list;
    uint64_t *hashes;
    size_t n, cap;
    size_t scalars; /* scalars that the paths include, counted so far */
    arena *scratch;
    index_path key; /* the key index being hashed */
};

static void walk_document(walk *w, const index_node *node, bool included, index_path path, bool in_array, slice document, bool array);

static void walk_value(walk *w, const index_node *node, bool included, index_path path, bool in_array, const doc_element *e) {
    included = node && node->subtree != RULE_NONE ? node->subtree == RULE_INCLUDE : included;
    bool wanted = node && node->scalar != RULE_NONE ? node->scalar == RULE_INCLUDE : included;
    bool container = doc_is_container(e->type);
    w->scalars += wanted && !container;
    wanted = wanted || (node && node->always && w->always);
    if (!container) {
        if (wanted) {
            w->found(w, path, e, in_array);
        }
        return;
    }
    if (wanted && w->containers) {
        w->found(w, path, e, in_array);
    }
    if ((node && node->children) || included) { /* otherwise nothing below is indexed */
        walk_document(w, node, included, path, in_array, e->value, e->type == BSON_TYPE_ARRAY);
    }
}

static void walk_document(walk *w, const index_node *node, bool included, index_path path, bool in_array, slice document, bool array) {
    doc_walk each;
    doc_element e;
    const index_node *elements = array ? index_node_child(node, SLICE_LIT("[]")) : NULL;
    index_path of_elements = array && w->paths ? index_path_element(path) : 0;
    if (!doc_walk_init(&each, document)) {
        return;
    }
    while (doc_walk_next(&each, &e)) {
        index_path here = array ? of_elements : w->paths ? index_path_member(path, e.key) : 0;
        walk_value(w, array ? elements : index_node_child(node, e.key), included, here, in_array || array, &e);
    }
}

static void walk_all(walk *w, const index_policy *policy, slice document) {
    if (!policy->off) {
        walk_document(w, policy->root, policy->rest_included, INDEX_PATH_ROOT, false, document, false);
    }
}

/* ---- counting ---- */

static void count_nothing(walk *w, index_path path, const doc_element *e, bool in_array) {
    (void)w, (void)path, (void)e, (void)in_array;
}

static size_t charged(const index_policy *policy, const walk *w) {
    return policy->off ? 0 : TERMS_OF_ITEM + TERMS_PER_SCALAR * (w->scalars + policy->composites_n + policy->keys_n);
}

size_t index_terms(const index_policy *policy, slice document) {
    walk w = {.found = count_nothing};
    walk_all(&w, policy, document);
    return charged(policy, &w);
}

static void add_hash(walk *w, uint64_t hash) {
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        uint64_t *grown = arena_alloc(w->scratch, cap * sizeof *grown);
        memcpy(grown, w->n ? (const void *)w->hashes : "", w->n * sizeof *grown);
        w->hashes = grown;
        w->cap = cap;
    }
    w->hashes[w->n++] = hash;
}

static uint64_t hash_value(uint64_t seed, const doc_element *e) {
    if (doc_is_number(e->type)) { /* 1 and 1.0 are one value */
        char space[16];
        buf spelled = {.p = space, .cap = sizeof space, .max = sizeof space};
        index_spell_element(&spelled, e);
        return index_path_member(seed, buf_view(&spelled));
    }
    return index_path_member(seed + (uint64_t)e->type, e->value);
}

static void hash_one(walk *w, index_path path, const doc_element *e, bool in_array) {
    (void)in_array;
    add_hash(w, hash_value(path, e));
}

static void hash_composites(walk *w, const index_policy *policy, slice document) {
    for (size_t i = 0; i < policy->composites_n; i++) {
        const index_composite *c = &policy->composites[i];
        uint64_t hash = c->id;
        for (size_t j = 0; j < c->n; j++) {
            doc_element e;
            hash = doc_find_element(document, &c->parts[j].path, &e) ? hash_value(hash, &e) : index_path_mixed(hash, 0);
        }
        add_hash(w, hash);
    }
}

static err hash_key(void *context, slice key) {
    walk *w = context;
    add_hash(w, index_path_member(w->key, key));
    return OK;
}

/* Keys of an item that cannot be listed count as unchanged. */
static void hash_keys(walk *w, const index_policy *policy, slice document) {
    arena scratch = arena_init();
    op o;
    op_init(&o, &scratch, 0);
    for (size_t i = 0; i < policy->keys_n; i++) {
        w->key = policy->keys[i].id;
        if (mql_index_keys(policy->keys[i].index, &o, &scratch, document, hash_key, w) != OK) {
            break;
        }
        arena_reset(&scratch);
    }
    arena_free(&scratch);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static walk hashes_of(arena *scratch, const index_policy *policy, slice document) {
    walk w = {.found = hash_one, .paths = true, .scratch = scratch};
    walk_all(&w, policy, document);
    if (!policy->off) {
        hash_composites(&w, policy, document);
        hash_keys(&w, policy, document);
    }
    if (w.n) {
        qsort(w.hashes, w.n, sizeof *w.hashes, by_value);
    }
    return w;
}

size_t index_terms_changed(arena *scratch, const index_policy *policy, slice before, slice after) {
    walk old = hashes_of(scratch, policy, before), new = hashes_of(scratch, policy, after);
    size_t i = 0, j = 0, same = 0;
    while (i < old.n && j < new.n) {
        int order = by_value(&old.hashes[i], &new.hashes[j]);
        same += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    return TERMS_PER_SCALAR * (old.n - same + new.n - same);
}

/* ---- listing ---- */

void index__begin_term(index_list *l, index_path path) {
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->terms = mem_resize(l->terms, l->cap * sizeof *l->terms);
    }
    l->terms[l->n].at = l->bytes.n;
    buf_add_be64(&l->bytes, path);
}

void index__end_term(index_list *l) {
    index_term *t = &l->terms[l->n++];
    t->n = l->bytes.n - t->at;
}

static void add_to_shape(index_list *l, index_path path) {
    if (l->paths_n == l->paths_cap) {
        l->paths_cap = l->paths_cap ? l->paths_cap * 2 : 64;
        l->paths = mem_resize(l->paths, l->paths_cap * sizeof *l->paths);
    }
    l->paths[l->paths_n++] = path;
    l->shape += index_path_mixed(path, 1);
}

static void list_one(walk *w, index_path path, const doc_element *e, bool in_array) {
    index_list *l = w->list;
    if (e->type == BSON_TYPE_UNDEFINED) { /* listed as missing: queries cannot distinguish the two */
        return;
    }
    if (l->n >= INDEX_TERMS_MAX) {
        l->large = true;
        return;
    }
    index__begin_term(l, path);
    index_spell_element(&l->bytes, e);
    index__end_term(l);
    if (!in_array) {
        add_to_shape(l, path);
    }
}

static void spell_composite(index_list *l, const index_composite *c, slice document, uint32_t ts) {
    for (size_t i = 0; i < c->n; i++) {
        doc_element e;
        size_t from = l->bytes.n;
        if (c->parts[i].ts) {
            index_spell_number(&l->bytes, ts);
        } else if (doc_find_element(document, &c->parts[i].path, &e)) {
            index_spell_element(&l->bytes, &e);
        } else {
            index_spell_type(&l->bytes, INDEX_UNDEFINED);
        }
        if (c->parts[i].descending) {
            index_spell_downward(&l->bytes, from);
        }
    }
}

static index_path path_of_ts(void) {
    return index_path_member(INDEX_PATH_ROOT, SLICE_LIT("_ts"));
}

static void list_composites(index_list *l, const index_policy *policy, slice document, uint32_t ts) {
    for (size_t i = 0; i < policy->composites_n; i++) {
        index__begin_term(l, policy->composites[i].id);
        spell_composite(l, &policy->composites[i], document, ts);
        index__end_term(l);
    }
}

static void list_ts(index_list *l, uint32_t ts) {
    l->ts_at = l->n;
    if (l->lean) {
        return;
    }
    index__begin_term(l, path_of_ts());
    index_spell_number(&l->bytes, ts);
    index__end_term(l);
    add_to_shape(l, path_of_ts());
}

static bool has_ts(const index_composite *c) {
    bool has = false;
    for (size_t i = 0; i < c->n; i++) {
        has = has || c->parts[i].ts;
    }
    return has;
}

/* Respells term i at the end of the buffer; its old bytes stay unused. */
static void begin_term_again(index_list *l, size_t i, index_path path) {
    l->terms[i].at = l->bytes.n;
    buf_add_be64(&l->bytes, path);
}

static void end_term_again(index_list *l, size_t i) {
    l->terms[i].n = l->bytes.n - l->terms[i].at;
}

void index_list_set_ts(index_list *l, const index_policy *policy, slice document, uint32_t ts) {
    if (policy->off || l->large) {
        return;
    }
    size_t composites = l->ts_at + !l->lean;
    if (!l->lean) {
        begin_term_again(l, l->ts_at, path_of_ts());
        index_spell_number(&l->bytes, ts);
        end_term_again(l, l->ts_at);
    }
    for (size_t i = 0; i < policy->composites_n; i++) {
        if (has_ts(&policy->composites[i])) {
            begin_term_again(l, composites + i, policy->composites[i].id);
            spell_composite(l, &policy->composites[i], document, ts);
            end_term_again(l, composites + i);
        }
    }
}

void index_list_add_shape(index_list *l, bool known) {
    if (l->lean && !l->large) {
        return;
    }
    index__begin_term(l, l->large ? INDEX_PATH_LARGE : INDEX_PATH_SHAPES);
    if (!l->large) {
        buf_add_be64(&l->bytes, known ? l->shape : 0);
    }
    index__end_term(l);
}

void index_list_make(index_list *l, const index_policy *policy, slice document, uint32_t ts) {
    walk w = {.found = list_one, .containers = true, .always = true, .paths = true, .list = l};
    l->bytes.max = BUF_NO_LIMIT;
    l->bytes.n = l->n = l->paths_n = 0;
    l->shape = 0;
    l->large = false;
    l->lean = policy->lean;
    l->charged = 0;
    if (policy->off) {
        return;
    }
    walk_all(&w, policy, document);
    l->charged = charged(policy, &w);
    if (!l->large) {
        list_ts(l, ts);
        list_composites(l, policy, document, ts);
        index__list_keys(l, policy, document);
        index__list_shapes(l, policy, document);
        index__list_words(l, policy, document);
    }
    if (l->large) {
        l->n = l->bytes.n = 0;
    }
    l->shape |= 1; /* 0 is reserved for items whose shape is not known */
}

static int by_bytes(const void *a, const void *b, void *list) {
    const index_list *l = list;
    const index_term *x = a, *y = b;
    return slice_cmp(slice_of(l->bytes.p + x->at, x->n), slice_of(l->bytes.p + y->at, y->n));
}

void index_list_sort(index_list *l) {
    size_t n = 0;
    if (l->n) {
        qsort_r(l->terms, l->n, sizeof *l->terms, by_bytes, l);
    }
    for (size_t i = 0; i < l->n; i++) {
        if (n == 0 || !slice_eq(index_list_term(l, n - 1), index_list_term(l, i))) {
            l->terms[n++] = l->terms[i];
        }
    }
    l->n = n;
}

/* ---- keeping ---- */

const index_kept *index_list_keep(arena *a, const index_list *l) {
    size_t terms = l->n * sizeof *l->terms, paths = l->paths_n * sizeof *l->paths;
    if (!arena_fits(a, l->bytes.n + terms + paths)) {
        return NULL;
    }
    index_kept *kept = arena_new(a, index_kept);
    *kept = (index_kept){
        .bytes = arena_copy(a, buf_view(&l->bytes)),
        .terms = (const void *)arena_copy(a, slice_of((const char *)l->terms, terms)).p,
        .paths = (const void *)arena_copy(a, slice_of((const char *)l->paths, paths)).p,
        .n = l->n,
        .paths_n = l->paths_n,
        .shape = l->shape,
        .large = l->large,
        .lean = l->lean,
        .charged = l->charged,
        .ts_at = l->ts_at,
    };
    return kept;
}

static void *with_room(void *p, size_t *cap, size_t n, size_t each) {
    if (*cap < n) {
        p = mem_resize(p, n * each);
        *cap = n;
    }
    return p;
}

void index_list_restore(index_list *l, const index_kept *kept) {
    l->bytes.max = BUF_NO_LIMIT;
    l->bytes.n = 0;
    buf_add_slice(&l->bytes, kept->bytes);
    l->terms = with_room(l->terms, &l->cap, kept->n, sizeof *l->terms);
    l->paths = with_room(l->paths, &l->paths_cap, kept->paths_n, sizeof *l->paths);
    if (kept->n) {
        memcpy(l->terms, kept->terms, kept->n * sizeof *l->terms);
    }
    if (kept->paths_n) {
        memcpy(l->paths, kept->paths, kept->paths_n * sizeof *l->paths);
    }
    l->n = kept->n;
    l->paths_n = kept->paths_n;
    l->shape = kept->shape;
    l->large = kept->large;
    l->lean = kept->lean;
    l->charged = kept->charged;
    l->ts_at = kept->ts_at;
}

void index_list_free(index_list *l) {
    buf_free(&l->bytes);
    arena_free(&l->scratch);
    free(l->terms);
    free(l->paths);
    *l = (index_list){0};
}
