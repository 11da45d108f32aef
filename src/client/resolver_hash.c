/* The hash resolver: a ring of containers, and where the key is in an item. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/hash_ring.h"
#include "doc/json.h"

typedef struct hash_resolver {
    key_path *path;
    hash_ring *ring;
} hash_resolver;

static tesela_status partition_key(void *context, const char *item, tesela_texts *key, tesela_error *error) {
    return client__key_path_find(((hash_resolver *)context)->path, item, key, error);
}

static tesela_status resolve_for_create(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    const char *name = client__hash_ring_find(((hash_resolver *)context)->ring, key);
    if (!name) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The key is not a JSON value: %s", key);
    }
    tesela_texts_add(names, name);
    return TESELA_OK;
}

static tesela_status resolve_for_read(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    size_t n;
    char *const *all = client__hash_ring_names(((hash_resolver *)context)->ring, &n);
    if (key) {
        return resolve_for_create(context, key, names, error);
    }
    for (size_t i = 0; i < n; i++) {
        tesela_texts_add(names, all[i]);
    }
    return TESELA_OK;
}

static void free_hash(void *context) {
    hash_resolver *h = context;
    client__key_path_free(h->path);
    client__hash_ring_free(h->ring);
    free(h);
}

static void save(const void *context, buf *out) {
    const hash_resolver *h = context;
    buf_add_lit(out, "\"kind\":\"hash\",\"keyPath\":");
    json_add_string(out, slice_str(client__key_path_text(h->path)));
    buf_add_byte(out, ',');
    client__hash_ring_write(h->ring, out);
}

static const resolver_kind hash_kind = {{partition_key, resolve_for_create, resolve_for_read, free_hash}, save};

/* Takes the ring, which may be NULL after a failure. */
static tesela_status make(const char *key_path, hash_ring *ring, tesela_resolver **out, tesela_error *error) {
    hash_resolver *h = mem_zero(sizeof *h);
    h->ring = ring;
    h->path = ring ? client__key_path_new(key_path, error) : NULL;
    if (!h->path) {
        free_hash(h);
        return TESELA_BAD_ARGUMENT;
    }
    *out = client__resolver_of(&hash_kind, h);
    return TESELA_OK;
}

tesela_status tesela_hash_resolver_new(const char *key_path, const char *const *containers, size_t count,
                                       const tesela_hash_options *options, tesela_resolver **resolver_out, tesela_error *error) {
    *resolver_out = NULL;
    return make(key_path, client__hash_ring_new((char *const *)(uintptr_t)containers, count, options, error), resolver_out, error);
}

tesela_status client__hash_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error) {
    char *path = client__text_member(state, "keyPath");
    tesela_status status = make(path, client__hash_ring_read(state, options ? options->hash : NULL, error), out, error);
    free(path);
    return status;
}
