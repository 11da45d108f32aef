/* Resolvers that create containers from a template: managed, a hash ring over so many of them; and spillover, one after the other as they
 * fill. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/hash_ring.h"
#include "client/json.h"
#include "client/routing.h"
#include "doc/json.h"

enum { CONTAINERS_MAX = 1000, CHECK_EVERY = 1000 };

/* ---- managed ---- */

typedef struct managed {
    tesela_resolver *ring;
    template *from;
    char *database;
    size_t count;
} managed;

static tesela_status managed_key(void *context, const char *item, tesela_texts *key, tesela_error *error) {
    return tesela_resolver_partition_key(((managed *)context)->ring, item, key, error);
}

static tesela_status managed_create(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    return tesela_resolver_for_create(((managed *)context)->ring, key, names, error);
}

static tesela_status managed_read(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    return tesela_resolver_for_read(((managed *)context)->ring, key, names, error);
}

static void free_managed(void *context) {
    managed *m = context;
    tesela_resolver_free(m->ring);
    client__template_free(m->from);
    free(m->database);
    free(m);
}

static void save_managed(const void *context, buf *out) {
    const managed *m = context;
    buf_add_lit(out, "\"kind\":\"managed\",\"database\":");
    json_add_string(out, slice_str(m->database));
    buf_addf(out, ",\"count\":%zu,\"template\":", m->count);
    client__template_write(m->from, out);
    buf_add_lit(out, ",\"ring\":{\"version\":1,");
    m->ring->kind->save(m->ring->context, out);
    buf_add_byte(out, '}');
}

static const resolver_kind managed_kind = {{managed_key, managed_create, managed_read, free_managed}, save_managed};

static tesela_status create_all(tesela_client *client, const managed *m, tesela_error *error) {
    tesela_status status = TESELA_OK;
    for (size_t i = 0; status == TESELA_OK && i < m->count; i++) {
        status = client__template_create(m->from, client, m->database, i, error);
    }
    return status;
}

static tesela_status open_ring(managed *m, const char *key_path, const tesela_hash_options *options, tesela_error *error) {
    tesela_texts *names = tesela_texts_new();
    for (size_t i = 0; i < m->count; i++) {
        char *name = client__template_name(m->from, i);
        tesela_texts_add(names, name);
        free(name);
    }
    tesela_status status =
        tesela_hash_resolver_new(key_path, (const char *const *)(uintptr_t)names->texts, names->n, options, &m->ring, error);
    tesela_texts_free(names);
    return status;
}

tesela_status tesela_managed_resolver_new(tesela_client *client, const char *database, const char *key_path, const tesela_template *from,
                                          size_t count, const tesela_hash_options *options, tesela_resolver **resolver_out,
                                          tesela_error *error) {
    managed *m = mem_zero(sizeof *m);
    tesela_status status = TESELA_OK;
    *resolver_out = NULL;
    m->database = mem_text(database, strlen(database));
    m->count = count;
    m->from = client__template_new(from, error);
    if (!m->from) {
        status = TESELA_BAD_ARGUMENT;
    } else if (count == 0 || count > CONTAINERS_MAX) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "A managed resolver has 1 to %d containers.", CONTAINERS_MAX);
    }
    if (status == TESELA_OK) {
        status = open_ring(m, key_path, options, error);
    }
    if (status == TESELA_OK) {
        status = create_all(client, m, error);
    }
    if (status != TESELA_OK) {
        free_managed(m);
        return status;
    }
    *resolver_out = client__resolver_of(&managed_kind, m);
    return TESELA_OK;
}

static tesela_status no_client(tesela_error *error) {
    return client__fail(error, TESELA_BAD_ARGUMENT, "This state needs a client, which the options do not give.");
}

tesela_status client__managed_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error) {
    managed *m = mem_zero(sizeof *m);
    double count = json_number(json_member(state, "count"), 0);
    m->database = client__text_member(state, "database");
    m->from = client__template_read(json_member(state, "template"), error);
    tesela_status status = m->from ? TESELA_OK : TESELA_BAD_ARGUMENT;
    if (status == TESELA_OK && (!m->database || !(count >= 1 && count <= CONTAINERS_MAX))) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The state of a managed resolver needs a database and a count.");
    }
    if (status == TESELA_OK && (!options || !options->client)) {
        status = no_client(error);
    }
    if (status == TESELA_OK) {
        m->count = (size_t)count;
        status = client__resolver_load(json_member(state, "ring"), options, &m->ring, error);
    }
    if (status == TESELA_OK) {
        status = create_all(options->client, m, error);
    }
    if (status != TESELA_OK) {
        free_managed(m);
        return status;
    }
    *out = client__resolver_of(&managed_kind, m);
    return TESELA_OK;
}

/* ---- spillover ---- */

typedef struct spillover {
    tesela_client *client;
    template *from;
    char *database;
    tesela_spillover_options options;
    pthread_mutex_t lock; /* of the next two; held while a container is looked at or created */
    size_t count;         /* containers so far; the newest one takes creates */
    unsigned creates;     /* since the last look */
} spillover;

static tesela_status spillover_key(void *context, const char *item, tesela_texts *key, tesela_error *error) {
    (void)context;
    (void)item;
    (void)error;
    tesela_texts_add(key, "null");
    return TESELA_OK;
}

/* Whether a container is full, by the server's figures. */
static tesela_status look(const spillover *s, size_t number, bool *full_out, tesela_error *error) {
    char *name = client__template_name(s->from, number);
    tesela_container *k;
    client_usage used;
    *full_out = false;
    tesela_status status = tesela_container_open(s->client, s->database, name, &k, error);
    free(name);
    if (status != TESELA_OK) {
        return status;
    }
    status = client__container_usage(k, &used, error);
    if (status == TESELA_OK) {
        double limit = s->options.bytes ? (double)s->options.bytes : used.bytes_most * 0.9;
        *full_out = (s->options.items && used.items >= (double)s->options.items) || (limit > 0 && used.bytes >= limit);
    }
    tesela_container_close(k);
    return status;
}

/* Called with the lock held: goes on to the container that takes creates, which another process may have made. */
static tesela_status advance(spillover *s, tesela_error *error) {
    for (;;) {
        bool full = false;
        tesela_status status = s->count ? look(s, s->count - 1, &full, error) : TESELA_OK;
        if (status != TESELA_OK || (s->count && !full)) {
            return status;
        }
        if (s->count == CONTAINERS_MAX) {
            return client__fail(error, TESELA_LIMIT, "The spillover resolver has %d containers, which is as many as it may.",
                                CONTAINERS_MAX);
        }
        status = client__template_create(s->from, s->client, s->database, s->count, error);
        if (status != TESELA_OK) {
            return status;
        }
        s->count++;
    }
}

static tesela_status spillover_create(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    spillover *s = context;
    (void)key;
    pthread_mutex_lock(&s->lock);
    tesela_status status = TESELA_OK;
    if (s->creates++ % s->options.check_every == 0) {
        status = advance(s, error);
        s->creates = status == TESELA_OK ? 1 : 0;
    }
    size_t newest = s->count ? s->count - 1 : 0;
    pthread_mutex_unlock(&s->lock);
    if (status == TESELA_OK) {
        char *name = client__template_name(s->from, newest);
        tesela_texts_add(names, name);
        free(name);
    }
    return status;
}

/* Other processes may have added containers: those that exist after the ones known are found before each read. */
static tesela_status find_newer(spillover *s, tesela_error *error) {
    tesela_status status = TESELA_OK;
    while (status == TESELA_OK && s->count < CONTAINERS_MAX) {
        bool full;
        status = look(s, s->count, &full, error);
        s->count += status == TESELA_OK;
    }
    return status == TESELA_NOT_FOUND ? TESELA_OK : status;
}

static tesela_status spillover_read(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    spillover *s = context;
    (void)key;
    pthread_mutex_lock(&s->lock);
    tesela_status status = find_newer(s, error);
    size_t count = s->count;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; status == TESELA_OK && i < count; i++) {
        char *name = client__template_name(s->from, i);
        tesela_texts_add(names, name);
        free(name);
    }
    return status;
}

static void free_spillover(void *context) {
    spillover *s = context;
    pthread_mutex_destroy(&s->lock);
    client__template_free(s->from);
    free(s->database);
    free(s);
}

static void save_spillover(const void *context, buf *out) {
    spillover *s = (spillover *)(uintptr_t)context;
    buf_add_lit(out, "\"kind\":\"spillover\",\"database\":");
    json_add_string(out, slice_str(s->database));
    pthread_mutex_lock(&s->lock);
    buf_addf(out, ",\"count\":%zu,\"items\":%llu,\"bytes\":%llu,\"checkEvery\":%u,\"template\":", s->count,
             (unsigned long long)s->options.items, (unsigned long long)s->options.bytes, s->options.check_every);
    pthread_mutex_unlock(&s->lock);
    client__template_write(s->from, out);
}

static const resolver_kind spillover_kind = {{spillover_key, spillover_create, spillover_read, free_spillover}, save_spillover};

static spillover *spillover_new(tesela_client *client, const tesela_spillover_options *options) {
    spillover *s = mem_zero(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->client = client;
    s->options = options ? *options : (tesela_spillover_options){0};
    s->options.check_every = s->options.check_every ? s->options.check_every : CHECK_EVERY;
    return s;
}

tesela_status tesela_spillover_resolver_new(tesela_client *client, const char *database, const tesela_template *from,
                                            const tesela_spillover_options *options, tesela_resolver **resolver_out, tesela_error *error) {
    spillover *s = spillover_new(client, options);
    *resolver_out = NULL;
    s->database = mem_text(database, strlen(database));
    s->from = client__template_new(from, error);
    if (!s->from) {
        free_spillover(s);
        return TESELA_BAD_ARGUMENT;
    }
    *resolver_out = client__resolver_of(&spillover_kind, s);
    return TESELA_OK;
}

tesela_status client__spillover_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error) {
    double count = json_number(json_member(state, "count"), -1), items = json_number(json_member(state, "items"), -1);
    double bytes = json_number(json_member(state, "bytes"), -1), every = json_number(json_member(state, "checkEvery"), 0);
    if (!options || !options->client) {
        return no_client(error);
    }
    if (!(count >= 0 && count <= CONTAINERS_MAX) || !(items >= 0 && items < 1e18) || !(bytes >= 0 && bytes < 1e18) ||
        !(every >= 1 && every < 4e9)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The state of a spillover resolver needs count, items, bytes and checkEvery.");
    }
    tesela_spillover_options o = {(uint64_t)items, (uint64_t)bytes, (uint32_t)every};
    spillover *s = spillover_new(options->client, &o);
    s->count = (size_t)count;
    s->database = client__text_member(state, "database");
    s->from = client__template_read(json_member(state, "template"), error);
    if (!s->from || !s->database) {
        free_spillover(s);
        return client__fail(error, TESELA_BAD_ARGUMENT, "The state of a spillover resolver needs a database and a template.");
    }
    *out = client__resolver_of(&spillover_kind, s);
    return TESELA_OK;
}
