/* Items and queries of a database, sent where its resolver says. */
#include "client/through.h"

#include <stdlib.h>

#include "base/memory.h"
#include "client/cursor_int.h"
#include "client/json.h"

/* ---- handles ---- */

struct kept_container {
    struct kept_container *next;
    tesela_container *container;
};

tesela_status client__container_of(tesela_client *c, const char *database, const char *name, tesela_container **out, tesela_error *error) {
    tesela_status status = TESELA_OK;
    *out = NULL;
    pthread_mutex_lock(&c->resolvers_lock);
    for (struct kept_container *k = c->containers; k && !*out; k = k->next) {
        if (strcmp(tesela_container_name(k->container), name) == 0 && strcmp(tesela_container_database(k->container), database) == 0) {
            *out = k->container;
        }
    }
    if (!*out) {
        status = tesela_container_open(c, database, name, out, error);
        if (status == TESELA_OK) {
            struct kept_container *k = mem_zero(sizeof *k);
            k->container = *out;
            k->next = c->containers;
            c->containers = k;
        }
    }
    pthread_mutex_unlock(&c->resolvers_lock);
    return status;
}

void client__containers_close(tesela_client *c) {
    for (struct kept_container *k = c->containers, *next; k; k = next) {
        next = k->next;
        tesela_container_close(k->container);
        free(k);
    }
}

/* ---- items ---- */

tesela_status client__through_one(tesela_container *k, const through *t, tesela_response **response_out, tesela_error *error) {
    switch (t->kind) {
    case THROUGH_CREATE:
        return tesela_item_create(k, t->item, NULL, t->options, response_out, error);
    case THROUGH_UPSERT:
        return tesela_item_upsert(k, t->item, NULL, t->options, response_out, error);
    case THROUGH_READ:
        return tesela_item_read(k, t->id, t->item_key, t->options, response_out, error);
    case THROUGH_REPLACE:
        return tesela_item_replace(k, t->id, t->item, NULL, t->options, response_out, error);
    case THROUGH_DELETE:
        break;
    }
    return tesela_item_delete(k, t->id, t->item_key, t->options, response_out, error);
}

/* Creates go to the one container; others to all where the key can be, until one has the item. */
static tesela_status run_on(tesela_client *c, const char *database, const tesela_texts *names, const through *t,
                            tesela_response **response_out, tesela_error *error) {
    tesela_status status = client__fail(error, TESELA_NOT_FOUND, "No container that the resolver names has the item.");
    for (size_t i = 0; i < names->n && status == TESELA_NOT_FOUND; i++) {
        tesela_container *k;
        status = client__container_of(c, database, names->texts[i], &k, error);
        if (status == TESELA_OK) {
            status = client__through_one(k, t, response_out, error);
        }
    }
    return status;
}

static tesela_status run(tesela_client *c, const char *database, through *t, tesela_response **response_out, tesela_error *error) {
    tesela_resolver *r = client__resolver_find(c, database, error);
    tesela_texts *key = tesela_texts_new(), *names = tesela_texts_new();
    tesela_status status = r ? TESELA_OK : TESELA_BAD_ARGUMENT;
    if (response_out) {
        *response_out = NULL;
    }
    if (status == TESELA_OK && t->item) {
        status = tesela_resolver_partition_key(r, t->item, key, error);
        t->key = status == TESELA_OK ? key->texts[0] : NULL;
    }
    if (status == TESELA_OK && r->kind == &client__ring_kind) {
        status = client__ring_run(r, t, response_out, error);
    } else if (status == TESELA_OK) {
        bool creates = t->kind == THROUGH_CREATE || t->kind == THROUGH_UPSERT;
        status = creates ? tesela_resolver_for_create(r, t->key, names, error) : tesela_resolver_for_read(r, t->key, names, error);
        if (status == TESELA_OK) {
            status = run_on(c, database, names, t, response_out, error);
        }
    }
    tesela_texts_free(key);
    tesela_texts_free(names);
    return status;
}

static tesela_status bad_item(tesela_error *error) {
    return client__fail(error, TESELA_BAD_ARGUMENT, "The id or the item is missing.");
}

tesela_status tesela_database_create_item(tesela_client *c, const char *database, const char *item, const tesela_item_options *options,
                                          tesela_response **response_out, tesela_error *error) {
    return item ? run(c, database, &(through){.kind = THROUGH_CREATE, .item = item, .options = options}, response_out, error)
                : bad_item(error);
}

tesela_status tesela_database_upsert_item(tesela_client *c, const char *database, const char *item, const tesela_item_options *options,
                                          tesela_response **response_out, tesela_error *error) {
    return item ? run(c, database, &(through){.kind = THROUGH_UPSERT, .item = item, .options = options}, response_out, error)
                : bad_item(error);
}

tesela_status tesela_database_read_item(tesela_client *c, const char *database, const char *key, const char *id, const tesela_key *item_key,
                                        const tesela_item_options *options, tesela_response **response_out, tesela_error *error) {
    through t = {.kind = THROUGH_READ, .key = key, .id = id, .item_key = item_key, .options = options};
    return id ? run(c, database, &t, response_out, error) : bad_item(error);
}

tesela_status tesela_database_replace_item(tesela_client *c, const char *database, const char *id, const char *item,
                                           const tesela_item_options *options, tesela_response **response_out, tesela_error *error) {
    through t = {.kind = THROUGH_REPLACE, .id = id, .item = item, .options = options};
    return id && item ? run(c, database, &t, response_out, error) : bad_item(error);
}

tesela_status tesela_database_delete_item(tesela_client *c, const char *database, const char *key, const char *id,
                                          const tesela_key *item_key, const tesela_item_options *options, tesela_response **response_out,
                                          tesela_error *error) {
    through t = {.kind = THROUGH_DELETE, .key = key, .id = id, .item_key = item_key, .options = options};
    return id ? run(c, database, &t, response_out, error) : bad_item(error);
}

/* ---- queries: one cursor after the other ---- */

typedef struct joined {
    tesela_client *client;
    char *database, *query, *parameters;
    tesela_query_options options;
    tesela_texts *names;
    size_t at;
    tesela_cursor *cursor; /* of names[at]; NULL: not open yet */
    ring_view *view;       /* NULL: not a ring */
} joined;

static tesela_status open_next(joined *j, tesela_error *error) {
    tesela_container *k;
    tesela_status status = client__container_of(j->client, j->database, j->names->texts[j->at], &k, error);
    return status == TESELA_OK ? tesela_query(k, j->query, j->parameters, &j->options, &j->cursor, error) : status;
}

static tesela_status add_page(joined *j, tesela_cursor *cursor, size_t count, tesela_error *error) {
    tesela_status status = TESELA_OK;
    for (size_t i = 0; status == TESELA_OK && i < count; i++) {
        size_t n;
        const char *row = tesela_cursor_row(j->cursor, i, &n);
        bool shows = true;
        status = j->view ? client__ring_shows(j->view, row, &shows, error) : TESELA_OK;
        if (status == TESELA_OK && shows) {
            client__cursor_add(cursor, slice_of(row, n));
        }
    }
    return status;
}

static tesela_status fill_joined(tesela_cursor *cursor, tesela_error *error) {
    joined *j = cursor->state;
    while (j->at < j->names->n) {
        tesela_status status = j->cursor ? TESELA_OK : open_next(j, error);
        if (status != TESELA_OK) {
            return status;
        }
        double charge = tesela_cursor_charge(j->cursor);
        unsigned requests = tesela_cursor_requests(j->cursor);
        size_t count;
        status = tesela_cursor_page(j->cursor, &count, error);
        cursor->charge += tesela_cursor_charge(j->cursor) - charge;
        cursor->requests += tesela_cursor_requests(j->cursor) - requests;
        if (status == TESELA_OK) {
            return add_page(j, cursor, count, error);
        }
        if (status != TESELA_DONE) {
            return status;
        }
        tesela_cursor_close(j->cursor);
        j->cursor = NULL;
        j->at++;
    }
    return TESELA_DONE;
}

static void free_joined(void *state) {
    joined *j = state;
    tesela_cursor_close(j->cursor);
    client__ring_view_free(j->view);
    tesela_texts_free(j->names);
    free(j->database);
    free(j->query);
    free(j->parameters);
    free(j);
}

static const cursor_source joined_source = {fill_joined, NULL, free_joined};

tesela_status tesela_database_query(tesela_client *c, const char *database, const char *key, const char *query, const char *parameters,
                                    const tesela_query_options *options, tesela_cursor **cursor_out, tesela_error *error) {
    tesela_resolver *r = client__resolver_find(c, database, error);
    *cursor_out = NULL;
    if (!r || !query || (options && (options->key || options->continuation || options->session_token || options->consistency))) {
        return !r ? TESELA_BAD_ARGUMENT
                  : client__fail(
                        error, TESELA_BAD_ARGUMENT,
                        "A query of a database takes a query, and no key, continuation, consistency or session token in its options.");
    }
    joined *j = mem_zero(sizeof *j);
    j->client = c;
    j->database = mem_text(database, strlen(database));
    j->query = mem_text(query, strlen(query));
    j->parameters = parameters ? mem_text(parameters, strlen(parameters)) : NULL;
    j->options = options ? *options : (tesela_query_options){0};
    j->names = tesela_texts_new();
    tesela_status status = tesela_resolver_for_read(r, key, j->names, error);
    if (status == TESELA_OK && r->kind == &client__ring_kind) {
        j->view = client__ring_view(r, error);
    }
    if (status != TESELA_OK) {
        free_joined(j);
        return status;
    }
    *cursor_out = client__cursor_new(&joined_source, j, c->response_bytes * 2);
    return TESELA_OK;
}
