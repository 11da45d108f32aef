#include "client/hash_ring.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/value.h"
#include "doc/json.h"

enum { VIRTUAL_NODES = 16, VIRTUAL_NODES_MAX = 65536, POINTS_MAX = 1 << 24, KEY_BYTES_MAX = 1 << 20 };

typedef struct point {
    uint64_t hash;
    uint32_t name;
} point;

struct hash_ring {
    char **names;
    size_t names_n;
    unsigned virtual_nodes;
    tesela_hash hash;
    void *context;
    char *hash_name;
    point *points;
    size_t n;
};

static size_t md5(void *context, const void *bytes, size_t length, unsigned char *hash_out) {
    unsigned n = 0;
    (void)context;
    return EVP_Digest(bytes, length, hash_out, &n, EVP_md5(), NULL) == 1 ? n : 0;
}

static uint64_t hash_of(const hash_ring *r, slice bytes) {
    unsigned char hash[TESELA_HASH_BYTES_MAX] = {0};
    uint64_t number = 0;
    r->hash(r->context, bytes.p, bytes.n, hash);
    for (int i = 0; i < 8; i++) {
        number = number << 8 | hash[i];
    }
    return number;
}

static int by_hash(const void *a, const void *b) {
    const point *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : (x->name > y->name) - (x->name < y->name);
}

static void place(hash_ring *r) {
    r->points = mem_zero(r->names_n * r->virtual_nodes * sizeof *r->points);
    for (size_t i = 0; i < r->names_n; i++) {
        for (unsigned v = 0; v < r->virtual_nodes; v++) {
            char text[512];
            int n = snprintf(text, sizeof text, "%s/%u", r->names[i], v);
            r->points[r->n++] = (point){hash_of(r, slice_of(text, (size_t)n)), (uint32_t)i};
        }
    }
    qsort(r->points, r->n, sizeof *r->points, by_hash);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool all_differ(char *const *names, size_t n) {
    char **sorted = mem_alloc(n * sizeof(char *));
    bool differ = true;
    memcpy(sorted, names, n * sizeof(char *));
    qsort(sorted, n, sizeof(char *), by_text);
    for (size_t i = 1; i < n && differ; i++) {
        differ = strcmp(sorted[i - 1], sorted[i]) != 0;
    }
    free(sorted);
    return differ;
}

static bool good_names(char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!*names[i] || strlen(names[i]) > 255) {
            return false;
        }
    }
    return n > 0 && all_differ(names, n);
}

hash_ring *client__hash_ring_new(char *const *names, size_t n, const tesela_hash_options *o, tesela_error *error) {
    static const tesela_hash_options defaults;
    o = o ? o : &defaults;
    unsigned nodes = o->virtual_nodes ? o->virtual_nodes : VIRTUAL_NODES;
    if (!good_names(names, n) || nodes > VIRTUAL_NODES_MAX || n > POINTS_MAX / nodes || (o->hash && !o->hash_name)) {
        client__fail(error, TESELA_BAD_ARGUMENT,
                     "A ring needs containers of different names, at most 65,536 virtual nodes, and a name for a hash of one's own.");
        return NULL;
    }
    hash_ring *r = mem_zero(sizeof *r);
    r->virtual_nodes = nodes;
    r->hash = o->hash ? o->hash : md5;
    r->context = o->context;
    r->hash_name = mem_text(o->hash ? o->hash_name : "md5", strlen(o->hash ? o->hash_name : "md5"));
    r->names = mem_zero(n * sizeof(char *));
    for (; r->names_n < n; r->names_n++) {
        r->names[r->names_n] = mem_text(names[r->names_n], strlen(names[r->names_n]));
    }
    place(r);
    return r;
}

void client__hash_ring_free(hash_ring *r) {
    if (r) {
        for (size_t i = 0; i < r->names_n; i++) {
            free(r->names[i]);
        }
        free(r->names);
        free(r->hash_name);
        free(r->points);
        free(r);
    }
}

const char *client__hash_ring_find(const hash_ring *r, const char *key) {
    buf bson = buf_init(KEY_BYTES_MAX), text = buf_init(KEY_BYTES_MAX);
    doc_element e;
    const char *name = NULL;
    if (client__value_read(slice_str(key), &bson, &e)) {
        client__value_canonical(&text, &e);
        uint64_t hash = hash_of(r, buf_view(&text));
        size_t low = 0, high = r->n;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (r->points[middle].hash < hash) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        name = r->names[r->points[low == r->n ? 0 : low].name];
    }
    buf_free(&bson);
    buf_free(&text);
    return name;
}

char *const *client__hash_ring_names(const hash_ring *r, size_t *n_out) {
    *n_out = r->names_n;
    return r->names;
}

void client__hash_ring_write(const hash_ring *r, buf *out) {
    buf_add_lit(out, "\"containers\":");
    client__texts_write(out, r->names, r->names_n);
    buf_addf(out, ",\"virtualNodes\":%u,\"hash\":", r->virtual_nodes);
    json_add_string(out, slice_str(r->hash_name));
}

hash_ring *client__hash_ring_read(slice object, const tesela_hash_options *hash, tesela_error *error) {
    tesela_texts names = {0};
    char *hash_name = client__text_member(object, "hash");
    double nodes = json_number(json_member(object, "virtualNodes"), -1);
    tesela_hash_options o = {.virtual_nodes = nodes >= 1 && nodes <= VIRTUAL_NODES_MAX ? (unsigned)nodes : 0};
    hash_ring *r = NULL;
    bool own = hash_name && strcmp(hash_name, "md5") != 0;
    if (own && hash && hash->hash && hash->hash_name && strcmp(hash->hash_name, hash_name) == 0) {
        o.hash = hash->hash;
        o.context = hash->context;
        o.hash_name = hash_name;
    }
    if (!client__texts_read(json_member(object, "containers"), &names) || !hash_name || !o.virtual_nodes ||
        nodes != (double)o.virtual_nodes) {
        client__fail(error, TESELA_BAD_ARGUMENT, "The state has no ring: it needs containers, virtualNodes and hash.");
    } else if (own && !o.hash) {
        client__fail(error, TESELA_BAD_ARGUMENT, "The state needs the hash '%s', which the options do not give.", hash_name);
    } else {
        r = client__hash_ring_new(names.texts, names.n, &o, error);
    }
    for (size_t i = 0; i < names.n; i++) {
        free(names.texts[i]);
    }
    free(names.texts);
    free(hash_name);
    return r;
}
