/* Resolvers: the interface, lists of texts, registration. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "doc/json.h"
#include "doc/path.h"

/* ---- texts ---- */

tesela_texts *tesela_texts_new(void) {
    return mem_zero(sizeof(tesela_texts));
}

void tesela_texts_add(tesela_texts *t, const char *text) {
    t->texts = mem_resize(t->texts, (t->n + 1) * sizeof(char *));
    t->texts[t->n++] = mem_text(text, strlen(text));
}

size_t tesela_texts_count(const tesela_texts *t) {
    return t->n;
}

const char *tesela_texts_get(const tesela_texts *t, size_t index) {
    return index < t->n ? t->texts[index] : NULL;
}

void tesela_texts_free(tesela_texts *t) {
    if (t) {
        for (size_t i = 0; i < t->n; i++) {
            free(t->texts[i]);
        }
        free(t->texts);
        free(t);
    }
}

void tesela_text_free(char *text) {
    free(text);
}

bool client__texts_read(slice array, tesela_texts *out) {
    json_walk w;
    slice value;
    if (!json_enter(array, &w) || w.object) {
        return false;
    }
    while (json_next(&w, NULL, &value)) {
        buf text = buf_init(1 << 20);
        bool good = json_text(value, &text);
        buf_add_byte(&text, 0);
        good = good && buf_ok(&text);
        if (good) {
            tesela_texts_add(out, text.p);
        }
        buf_free(&text);
        if (!good) {
            return false;
        }
    }
    return !w.broken;
}

void client__texts_write(buf *out, char *const *texts, size_t n) {
    buf_add_byte(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        json_add_string(out, slice_str(texts[i]));
    }
    buf_add_byte(out, ']');
}

char *client__text_member(slice object, const char *name) {
    buf text = buf_init(1 << 20);
    char *copy = json_text(json_member(object, name), &text) ? mem_text(text.p ? text.p : "", text.n) : NULL;
    buf_free(&text);
    return copy;
}

/* ---- the interface ---- */

tesela_status tesela_resolver_new(const tesela_resolver_functions *functions, void *context, tesela_resolver **resolver_out,
                                  tesela_error *error) {
    *resolver_out = NULL;
    if (!functions->partition_key || !functions->resolve_for_create || !functions->resolve_for_read) {
        return client__fail(error, TESELA_BAD_ARGUMENT,
                            "A resolver needs three functions: partition_key, resolve_for_create, resolve_for_read.");
    }
    tesela_resolver *r = mem_zero(sizeof *r);
    r->functions = *functions;
    r->context = context;
    *resolver_out = r;
    return TESELA_OK;
}

tesela_resolver *client__resolver_of(const resolver_kind *kind, void *context) {
    tesela_resolver *r = mem_zero(sizeof *r);
    r->functions = kind->functions;
    r->kind = kind;
    r->context = context;
    return r;
}

void tesela_resolver_free(tesela_resolver *r) {
    if (r) {
        if (r->functions.free) {
            r->functions.free(r->context);
        }
        free(r);
    }
}

tesela_status tesela_resolver_partition_key(tesela_resolver *r, const char *item, tesela_texts *key, tesela_error *error) {
    tesela_status status = r->functions.partition_key(r->context, item, key, error);
    if (status == TESELA_OK && key->n != 1) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The resolver gave no key for the item.");
    }
    return status;
}

tesela_status tesela_resolver_for_create(tesela_resolver *r, const char *key, tesela_texts *names, tesela_error *error) {
    tesela_status status = r->functions.resolve_for_create(r->context, key, names, error);
    if (status == TESELA_OK && names->n != 1) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The resolver must name one container for a create.");
    }
    return status;
}

tesela_status tesela_resolver_for_read(tesela_resolver *r, const char *key, tesela_texts *names, tesela_error *error) {
    return r->functions.resolve_for_read(r->context, key, names, error);
}

/* ---- registration ---- */

void tesela_client_set_resolver(tesela_client *c, const char *database, tesela_resolver *resolver) {
    pthread_mutex_lock(&c->resolvers_lock);
    registered *r = c->resolvers;
    while (r && strcmp(r->database, database) != 0) {
        r = r->next;
    }
    if (!r) {
        r = mem_zero(sizeof *r);
        r->database = mem_text(database, strlen(database));
        r->next = c->resolvers;
        c->resolvers = r;
    }
    r->resolver = resolver;
    pthread_mutex_unlock(&c->resolvers_lock);
}

tesela_resolver *client__resolver_find(tesela_client *c, const char *database, tesela_error *error) {
    tesela_resolver *found = NULL;
    pthread_mutex_lock(&c->resolvers_lock);
    for (registered *r = c->resolvers; r; r = r->next) {
        found = strcmp(r->database, database) == 0 ? r->resolver : found;
    }
    pthread_mutex_unlock(&c->resolvers_lock);
    if (!found) {
        client__fail(error, TESELA_BAD_ARGUMENT, "No resolver is registered for database '%s': call tesela_client_set_resolver.", database);
    }
    return found;
}

/* ---- keys of items ---- */

struct key_path {
    arena memory;
    doc_path path;
    char *text;
};

key_path *client__key_path_new(const char *text, tesela_error *error) {
    key_path *p = mem_zero(sizeof *p);
    p->memory = arena_init_small();
    if (!text || doc_path_parse(&p->memory, arena_copy(&p->memory, slice_str(text)), &p->path) != OK) {
        client__fail(error, TESELA_BAD_ARGUMENT, "'%s' is not a path to a key: write /userId, or /address/city.", text ? text : "");
        client__key_path_free(p);
        return NULL;
    }
    p->text = mem_text(text, strlen(text));
    return p;
}

void client__key_path_free(key_path *p) {
    if (p) {
        arena_free(&p->memory);
        free(p->text);
        free(p);
    }
}

const char *client__key_path_text(const key_path *p) {
    return p->text;
}

static bool write_scalar(buf *out, const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_UTF8:
        json_add_string(out, doc_element_text(e));
        return true;
    case BSON_TYPE_INT32:
        buf_add_i64(out, doc_load_i32(e->value.p));
        return true;
    case BSON_TYPE_INT64:
        buf_add_i64(out, doc_load_i64(e->value.p));
        return true;
    case BSON_TYPE_DOUBLE:
        json_add_double(out, doc_load_double(e->value.p));
        return true;
    case BSON_TYPE_BOOL:
        buf_add_slice(out, e->value.p[0] ? SLICE_LIT("true") : SLICE_LIT("false"));
        return true;
    case BSON_TYPE_NULL:
        buf_add_lit(out, "null");
        return true;
    default:
        return false;
    }
}

tesela_status client__key_path_find(const key_path *p, const char *item, tesela_texts *key, tesela_error *error) {
    buf bson = buf_init(CLIENT_REQUEST_BYTES_MAX * 2), text = buf_init(1 << 20);
    doc_element e;
    json_root root;
    bool good = json_to_bson(slice_str(item), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT &&
                doc_find_element(buf_view(&bson), &p->path, &e) && write_scalar(&text, &e);
    buf_add_byte(&text, 0);
    if (good) {
        tesela_texts_add(key, text.p);
    }
    buf_free(&bson);
    buf_free(&text);
    return good ? TESELA_OK : client__fail(error, TESELA_BAD_ARGUMENT, "The item has no text, number or boolean at %s.", p->text);
}
