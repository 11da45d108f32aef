/* keys.c — key indexes: reading them from a policy, and their terms. */
#include "base/limits.h"
#include "index/policy_int.h"
#include "index/terms_int.h"

/* ---- the policy ---- */

index_path index_key_path(slice spec) {
    return index_path_mixed(index_path_member(INDEX_PATH_SHAPES, spec), INDEX_OF_KEYS);
}

static err read_key(op *o, slice spec, index_key *key) {
    *key = (index_key){.spec = spec, .id = index_key_path(spec)};
    key->many = index_path_mixed(key->id, INDEX_OF_KEYS);
    key->arrays = index_path_mixed(key->many, INDEX_OF_KEYS);
    return mql_index_parse(o, spec, &key->index);
}

err index__read_keys(op *o, slice document, index_policy *policy) {
    slice list, spec;
    doc_walk w;
    size_t n;
    TRY(index__list(o, document, "keyIndexes", LIMIT_INDEX_KEYS, &list, &n));
    index_key *keys = arena_array(o->arena, index_key, n + 1);
    for (bool more = n && doc_walk_init(&w, list); more && index__next(&w, &spec);) {
        TRY(read_key(o, arena_copy(o->arena, spec), &keys[policy->keys_n++]));
    }
    policy->keys = keys;
    return OK;
}

const index_key *index_policy_key(const index_policy *policy, index_path id) {
    for (size_t i = 0; i < policy->keys_n && !policy->off; i++) {
        if (policy->keys[i].id == id) {
            return &policy->keys[i];
        }
    }
    return NULL;
}

/* ---- terms ---- */

typedef struct lister {
    index_list *list;
    index_path path;
} lister;

static err list_one(void *context, slice key) {
    const lister *l = context;
    if (l->list->n >= INDEX_TERMS_MAX) {
        return E_TOO_LARGE;
    }
    index__begin_term(l->list, l->path);
    index_spell_string(&l->list->bytes, key);
    index__end_term(l->list);
    return OK;
}

/* An item with several keys also has a term that says so: walks in order must know. So has one with one key of an array, which is not the
 * value of the path. */
static void list_mark(index_list *l, index_path mark) {
    index__begin_term(l, mark);
    index_spell_type(&l->bytes, INDEX_NULL);
    index__end_term(l);
}

void index__list_keys(index_list *l, const index_policy *policy, slice document) {
    op o;
    op_init(&o, &l->scratch, 0);
    for (size_t i = 0; i < policy->keys_n && !l->large; i++) {
        const index_key *key = &policy->keys[i];
        size_t from = l->n;
        lister all = {l, key->id};
        l->large = mql_index_keys(key->index, &o, &l->scratch, document, list_one, &all) != OK;
        if (l->n > from + 1) {
            list_mark(l, key->many);
        } else if (l->n == from + 1 && mql_index_meets_array(key->index, document)) {
            list_mark(l, key->arrays);
        }
        arena_reset(&l->scratch);
    }
}
