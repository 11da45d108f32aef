/* Range and lookup resolvers: sorted ranges of keys, both ends included; a lookup has ranges of one value each. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "client/value.h"
#include "doc/json.h"

enum { KEY_BYTES_MAX = 1 << 20 };

typedef struct bound {
    buf bson;
    doc_element value; /* points into it */
    char *text;
} bound;

typedef struct key_range {
    bound min, max;
    char *container;
} key_range;

typedef struct range_resolver {
    key_path *path;
    key_range *ranges; /* by min */
    size_t n;
    bool lookup;
    char *otherwise;
} range_resolver;

static bool read_bound(slice json, bound *b) {
    b->bson = buf_init(KEY_BYTES_MAX);
    b->text = mem_text(json.n ? json.p : "", json.n);
    return client__value_read(json, &b->bson, &b->value) && !doc_is_container(b->value.type);
}

static void free_bound(bound *b) {
    buf_free(&b->bson);
    free(b->text);
}

static void free_ranges(void *context) {
    range_resolver *r = context;
    for (size_t i = 0; i < r->n; i++) {
        free_bound(&r->ranges[i].min);
        free_bound(&r->ranges[i].max);
        free(r->ranges[i].container);
    }
    client__key_path_free(r->path);
    free(r->ranges);
    free(r->otherwise);
    free(r);
}

/* ---- resolving ---- */

static tesela_status partition_key(void *context, const char *item, tesela_texts *key, tesela_error *error) {
    return client__key_path_find(((range_resolver *)context)->path, item, key, error);
}

static void add_once(tesela_texts *names, const char *name) {
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->texts[i], name) == 0) {
            return;
        }
    }
    tesela_texts_add(names, name);
}

/* Adds the containers of all ranges that touch [min, max]. */
static void add_touched(const range_resolver *r, const doc_element *min, const doc_element *max, tesela_texts *names) {
    for (size_t i = 0; i < r->n; i++) {
        if (client__value_compare(&r->ranges[i].min.value, max) <= 0 && client__value_compare(&r->ranges[i].max.value, min) >= 0) {
            add_once(names, r->ranges[i].container);
        }
    }
    if (r->otherwise && (!names->n || client__value_compare(min, max) != 0)) {
        add_once(names, r->otherwise);
    }
}

static tesela_status bad_key(tesela_error *error, const char *key) {
    return client__fail(error, TESELA_BAD_ARGUMENT, "The key is not a JSON value or a range {\"min\":…,\"max\":…}: %s", key);
}

static tesela_status resolve_for_create(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    bound b;
    bool good = read_bound(slice_str(key), &b);
    if (good) {
        add_touched(context, &b.value, &b.value, names);
    }
    free_bound(&b);
    if (good && !names->n) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The key %s is in no range of the resolver.", key);
    }
    return good ? TESELA_OK : bad_key(error, key);
}

static tesela_status resolve_for_read(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    const range_resolver *r = context;
    if (!key) {
        for (size_t i = 0; i < r->n; i++) {
            add_once(names, r->ranges[i].container);
        }
        if (r->otherwise) {
            add_once(names, r->otherwise);
        }
        return TESELA_OK;
    }
    slice min = json_member(slice_str(key), "min"), max = json_member(slice_str(key), "max");
    bool whole = !min.n && !max.n;
    bound low, high;
    bool good = read_bound(whole ? slice_str(key) : min, &low), also = read_bound(whole ? slice_str(key) : max, &high);
    if (good && also) {
        add_touched(r, &low.value, &high.value, names);
    }
    free_bound(&low);
    free_bound(&high);
    return good && also ? TESELA_OK : bad_key(error, key);
}

/* ---- state ---- */

static void save(const void *context, buf *out) {
    const range_resolver *r = context;
    buf_addf(out, "\"kind\":\"%s\",\"keyPath\":", r->lookup ? "lookup" : "range");
    json_add_string(out, slice_str(client__key_path_text(r->path)));
    buf_add_lit(out, ",\"ranges\":[");
    for (size_t i = 0; i < r->n; i++) {
        buf_addf(out, "%s{\"min\":%s,\"max\":%s,\"container\":", i ? "," : "", r->ranges[i].min.text, r->ranges[i].max.text);
        json_add_string(out, slice_str(r->ranges[i].container));
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
    if (r->otherwise) {
        buf_add_lit(out, ",\"otherwise\":");
        json_add_string(out, slice_str(r->otherwise));
    }
}

static const resolver_kind range_kind = {{partition_key, resolve_for_create, resolve_for_read, free_ranges}, save};

/* ---- making ---- */

static int by_min(const void *a, const void *b) {
    return client__value_compare(&((const key_range *)a)->min.value, &((const key_range *)b)->min.value);
}

static bool add_range(range_resolver *r, slice min, slice max, const char *container) {
    r->ranges = mem_resize(r->ranges, (r->n + 1) * sizeof *r->ranges);
    key_range *g = &r->ranges[r->n++];
    bool low = read_bound(min, &g->min), high = read_bound(max, &g->max);
    g->container = mem_text(container ? container : "", container ? strlen(container) : 0);
    return low && high && *g->container && g->min.value.type != BSON_TYPE_NULL &&
           (g->min.value.type == g->max.value.type || (doc_is_number(g->min.value.type) && doc_is_number(g->max.value.type))) &&
           client__value_compare(&g->min.value, &g->max.value) <= 0;
}

/* Values point into buffers that stay where they are, so ranges can be sorted. */
static tesela_status finish(range_resolver *r, bool good, tesela_resolver **out, tesela_error *error) {
    if (good && r->n) {
        qsort(r->ranges, r->n, sizeof *r->ranges, by_min);
    }
    for (size_t i = 1; good && i < r->n; i++) {
        good = client__value_compare(&r->ranges[i - 1].max.value, &r->ranges[i].min.value) < 0;
    }
    if (!good || !r->n || !r->path) {
        bool path = r->path != NULL;
        free_ranges(r);
        return !path ? TESELA_BAD_ARGUMENT
                     : client__fail(error, TESELA_BAD_ARGUMENT,
                                    "Ranges need a min and a max of one type, min first, and a container; they must not overlap.");
    }
    *out = client__resolver_of(&range_kind, r);
    return TESELA_OK;
}

static tesela_status make(const char *path, const tesela_key_range *ranges, size_t count, const char *otherwise, bool lookup,
                          tesela_resolver **out, tesela_error *error) {
    range_resolver *r = mem_zero(sizeof *r);
    bool good = true;
    *out = NULL;
    r->path = client__key_path_new(path, error);
    r->lookup = lookup;
    r->otherwise = otherwise ? mem_text(otherwise, strlen(otherwise)) : NULL;
    for (size_t i = 0; good && i < count; i++) {
        const char *max = ranges[i].max ? ranges[i].max : ranges[i].min;
        good = ranges[i].min && add_range(r, slice_str(ranges[i].min), slice_str(max), ranges[i].container);
    }
    return finish(r, good, out, error);
}

tesela_status tesela_range_resolver_new(const char *key_path, const tesela_key_range *ranges, size_t count, tesela_resolver **resolver_out,
                                        tesela_error *error) {
    return make(key_path, ranges, count, NULL, false, resolver_out, error);
}

tesela_status tesela_lookup_resolver_new(const char *key_path, const tesela_key_range *values, size_t count, const char *otherwise,
                                         tesela_resolver **resolver_out, tesela_error *error) {
    return make(key_path, values, count, otherwise, true, resolver_out, error);
}

static tesela_status load(slice state, bool lookup, tesela_resolver **out, tesela_error *error) {
    range_resolver *r = mem_zero(sizeof *r);
    json_walk w;
    slice one;
    char *path = client__text_member(state, "keyPath");
    r->path = client__key_path_new(path, error);
    r->lookup = lookup;
    r->otherwise = client__text_member(state, "otherwise");
    free(path);
    bool good = json_enter(json_member(state, "ranges"), &w);
    while (good && json_next(&w, NULL, &one)) {
        char *container = client__text_member(one, "container");
        good = add_range(r, json_member(one, "min"), json_member(one, "max"), container);
        free(container);
    }
    return finish(r, good && !w.broken, out, error);
}

tesela_status client__range_load(slice state, tesela_resolver **out, tesela_error *error) {
    return load(state, false, out, error);
}

tesela_status client__lookup_load(slice state, tesela_resolver **out, tesela_error *error) {
    return load(state, true, out, error);
}
