/* Chained resolvers: the first names a link, the link's resolver names the container. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "doc/json.h"

typedef struct chain {
    tesela_resolver *first;
    struct {
        char *name;
        tesela_resolver *resolver;
    } * links;
    size_t n;
} chain;

static tesela_resolver *link_of(const chain *c, const char *name) {
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->links[i].name, name) == 0) {
            return c->links[i].resolver;
        }
    }
    return NULL;
}

static tesela_status no_link(tesela_error *error, const char *name) {
    return client__fail(error, TESELA_BAD_ARGUMENT, "The chain has no link '%s', which its first resolver names.", name);
}

/* The parts of a key ["EU","@John"] as texts; the second may be missing. */
static bool take_apart(const char *key, char **first_out, char **second_out) {
    json_walk w;
    slice value;
    *first_out = *second_out = NULL;
    if (!json_enter(slice_str(key), &w) || w.object || !json_next(&w, NULL, &value)) {
        return false;
    }
    *first_out = mem_text(value.p, value.n);
    if (json_next(&w, NULL, &value)) {
        *second_out = mem_text(value.p, value.n);
    }
    return true;
}

static tesela_status partition_key(void *context, const char *item, tesela_texts *key, tesela_error *error) {
    chain *c = context;
    tesela_texts *first = tesela_texts_new(), *names = tesela_texts_new(), *second = tesela_texts_new();
    tesela_status status = tesela_resolver_partition_key(c->first, item, first, error);
    if (status == TESELA_OK) {
        status = tesela_resolver_for_create(c->first, first->texts[0], names, error);
    }
    tesela_resolver *next = status == TESELA_OK ? link_of(c, names->texts[0]) : NULL;
    if (status == TESELA_OK) {
        status = next ? tesela_resolver_partition_key(next, item, second, error) : no_link(error, names->texts[0]);
    }
    if (status == TESELA_OK) {
        buf text = buf_init(4 << 20);
        buf_addf(&text, "[%s,%s]", first->texts[0], second->texts[0]);
        buf_add_byte(&text, 0);
        tesela_texts_add(key, text.p);
        buf_free(&text);
    }
    tesela_texts_free(first);
    tesela_texts_free(names);
    tesela_texts_free(second);
    return status;
}

static tesela_status follow(chain *c, const char *name, const char *second, bool create, tesela_texts *names, tesela_error *error) {
    tesela_resolver *next = link_of(c, name);
    if (!next) {
        return no_link(error, name);
    }
    return create ? tesela_resolver_for_create(next, second, names, error) : tesela_resolver_for_read(next, second, names, error);
}

static tesela_status resolve(chain *c, const char *key, bool create, tesela_texts *names, tesela_error *error) {
    char *first = NULL, *second = NULL;
    tesela_texts *links = tesela_texts_new();
    tesela_status status = TESELA_OK;
    if (key && (!take_apart(key, &first, &second) || (create && !second))) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The key of a chain is an array of two keys, not %s", key);
    }
    if (status == TESELA_OK) {
        status =
            create ? tesela_resolver_for_create(c->first, first, links, error) : tesela_resolver_for_read(c->first, first, links, error);
    }
    for (size_t i = 0; status == TESELA_OK && i < links->n; i++) {
        status = follow(c, links->texts[i], second, create, names, error);
    }
    tesela_texts_free(links);
    free(first);
    free(second);
    return status;
}

static tesela_status resolve_for_create(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    return resolve(context, key, true, names, error);
}

static tesela_status resolve_for_read(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    return resolve(context, key, false, names, error);
}

static void free_chain(void *context) {
    chain *c = context;
    tesela_resolver_free(c->first);
    for (size_t i = 0; i < c->n; i++) {
        tesela_resolver_free(c->links[i].resolver);
        free(c->links[i].name);
    }
    free(c->links);
    free(c);
}

/* Parts without a state of their own are written as null; a chain that has one cannot be loaded, and tesela_resolver_save refuses it. */
static void save_part(const tesela_resolver *r, buf *out) {
    if (!r->kind || !r->kind->save) {
        out->overflow = true;
        return;
    }
    buf_add_lit(out, "{\"version\":1,");
    r->kind->save(r->context, out);
    buf_add_byte(out, '}');
}

static void save(const void *context, buf *out) {
    const chain *c = context;
    buf_add_lit(out, "\"kind\":\"chained\",\"first\":");
    save_part(c->first, out);
    buf_add_lit(out, ",\"links\":{");
    for (size_t i = 0; i < c->n; i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        json_add_string(out, slice_str(c->links[i].name));
        buf_add_byte(out, ':');
        save_part(c->links[i].resolver, out);
    }
    buf_add_byte(out, '}');
}

static const resolver_kind chain_kind = {{partition_key, resolve_for_create, resolve_for_read, free_chain}, save};

static void add_link(chain *c, const char *name, tesela_resolver *resolver) {
    c->links = mem_resize(c->links, (c->n + 1) * sizeof *c->links);
    c->links[c->n].name = mem_text(name, strlen(name));
    c->links[c->n++].resolver = resolver;
}

tesela_status tesela_chained_resolver_new(tesela_resolver *first, const tesela_link *links, size_t count, tesela_resolver **resolver_out,
                                          tesela_error *error) {
    chain *c = mem_zero(sizeof *c);
    bool good = first && count;
    c->first = first;
    for (size_t i = 0; i < count; i++) {
        good = good && links[i].name && links[i].resolver && !link_of(c, links[i].name);
        add_link(c, links[i].name ? links[i].name : "", links[i].resolver);
    }
    *resolver_out = NULL;
    if (!good) {
        free_chain(c);
        return client__fail(error, TESELA_BAD_ARGUMENT,
                            "A chain needs a first resolver and links of different names, each with a resolver.");
    }
    *resolver_out = client__resolver_of(&chain_kind, c);
    return TESELA_OK;
}

tesela_status client__chained_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error) {
    chain *c = mem_zero(sizeof *c);
    json_walk w;
    slice name, one;
    tesela_status status = client__resolver_load(json_member(state, "first"), options, &c->first, error);
    if (status == TESELA_OK && !json_enter(json_member(state, "links"), &w)) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The state of a chain has no links.");
    }
    while (status == TESELA_OK && json_next(&w, &name, &one)) {
        tesela_resolver *next = NULL;
        buf text = buf_init(1 << 16);
        bool named = json_text(name, &text);
        buf_add_byte(&text, 0);
        status = named && buf_ok(&text) ? client__resolver_load(one, options, &next, error)
                                        : client__fail(error, TESELA_BAD_ARGUMENT, "A link of the chain has too long a name.");
        if (status == TESELA_OK) {
            add_link(c, text.p, next);
        }
        buf_free(&text);
    }
    if (status != TESELA_OK) {
        free_chain(c);
        return status;
    }
    *out = client__resolver_of(&chain_kind, c);
    return TESELA_OK;
}
