/* ring.c — a ring's state, and clients of a ring: ring_int.h explains the phases. */
#include "client/ring_int.h"

#include <stdlib.h>
#include <tesela/ring.h>

#include "base/memory.h"
#include "client/combine.h"
#include "client/json.h"
#include "client/routing.h"
#include "doc/json.h"

enum { STATE_BYTES_MAX = 2 << 20, HOLD_WAIT_US = 20000, TRIES_MAX = 100 };

const char *const client__ring_phases[] = {"stable", "prepare", "hold", "move", "settle"};

/* ---- the state ---- */

void client__ring_give(ring_state *s) {
    if (s && atomic_fetch_sub(&s->references, 1) == 1) {
        client__hash_ring_free(s->current);
        client__hash_ring_free(s->next);
        free(s->database);
        free(s->key_path);
        free(s->etag);
        free(s);
    }
}

static void write_ring(buf *out, const char *name, const hash_ring *ring) {
    if (ring) {
        buf_addf(out, ",\"%s\":{", name);
        client__hash_ring_write(ring, out);
        buf_add_byte(out, '}');
    }
}

void client__ring_write(const ring_state *s, const char *name, buf *out) {
    buf_add_lit(out, "{\"id\":");
    json_add_string(out, slice_str(name));
    buf_add_lit(out, ",\"version\":1,\"kind\":\"ring\",\"database\":");
    json_add_string(out, slice_str(s->database));
    buf_add_lit(out, ",\"keyPath\":");
    json_add_string(out, slice_str(s->key_path));
    buf_addf(out, ",\"epoch\":%llu,\"phase\":\"%s\",\"unavailable\":%s,\"refreshMs\":%u,\"requestMs\":%u", (unsigned long long)s->epoch,
             client__ring_phases[s->phase], s->unavailable ? "true" : "false", s->refresh_ms, s->request_ms);
    write_ring(out, "current", s->current);
    write_ring(out, "next", s->next);
    buf_add_byte(out, '}');
    buf_add_byte(out, 0);
}

static bool read_phase(slice item, ring_phase *out) {
    char *text = client__text_member(item, "phase");
    bool found = false;
    for (int i = RING_STABLE; text && i <= RING_SETTLE; i++) {
        if (strcmp(text, client__ring_phases[i]) == 0) {
            *out = (ring_phase)i;
            found = true;
        }
    }
    free(text);
    return found;
}

static tesela_status parse(slice item, const tesela_hash_options *hash, ring_state *s, tesela_error *error) {
    double refresh = json_number(json_member(item, "refreshMs"), 0), request = json_number(json_member(item, "requestMs"), 0);
    slice next = json_member(item, "next");
    s->database = client__text_member(item, "database");
    s->key_path = client__text_member(item, "keyPath");
    s->unavailable = json_true(json_member(item, "unavailable"));
    s->epoch = (uint64_t)json_whole(json_member(item, "epoch"), 0, INT64_C(1) << 53, 0);
    s->refresh_ms = refresh >= 1 && refresh < 1e8 ? (uint32_t)refresh : 0;
    s->request_ms = request >= 1 && request < 1e8 ? (uint32_t)request : 0;
    if (json_number(json_member(item, "version"), 0) != 1 || !read_phase(item, &s->phase) || !s->database || !s->key_path ||
        !s->refresh_ms || !s->request_ms || (s->phase != RING_STABLE) != (next.n != 0)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The ring's state is malformed, or of another version.");
    }
    s->current = client__hash_ring_read(json_member(item, "current"), hash, error);
    s->next = s->current && next.n ? client__hash_ring_read(next, hash, error) : NULL;
    return s->current && (!next.n || s->next) ? TESELA_OK : TESELA_BAD_ARGUMENT;
}

tesela_status client__ring_read(tesela_container *states, const char *name, const tesela_hash_options *hash, ring_state **out,
                                tesela_error *error) {
    tesela_response *r;
    tesela_key key = tesela_key_string(name);
    int64_t now = client__now_us(); /* before it is read: it may be older than the answer */
    *out = NULL;
    tesela_status status = tesela_item_read(states, name, &key, NULL, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    ring_state *s = mem_zero(sizeof *s);
    s->references = 1;
    s->read_us = now;
    s->etag = mem_text(tesela_response_etag(r), strlen(tesela_response_etag(r)));
    status = parse(client__response_body(r), hash, s, error);
    tesela_response_free(r);
    if (status != TESELA_OK) {
        client__ring_give(s);
        return status;
    }
    *out = s;
    return TESELA_OK;
}

/* ---- the resolver ---- */

typedef struct ring {
    tesela_client *client;
    tesela_container *states;
    char *name;
    key_path *path;
    tesela_hash_options hash;
    char *hash_name;
    pthread_mutex_t lock; /* of the state; held while it is read */
    ring_state *state;
} ring;

/* A state that is not older than refresh_ms. */
static tesela_status take(ring *r, ring_state **out, tesela_error *error) {
    tesela_status status = TESELA_OK;
    *out = NULL;
    pthread_mutex_lock(&r->lock);
    if (!r->state || client__now_us() - r->state->read_us > (int64_t)r->state->refresh_ms * 1000) {
        ring_state *fresh;
        status = client__ring_read(r->states, r->name, &r->hash, &fresh, error);
        if (status == TESELA_OK) {
            client__ring_give(r->state);
            r->state = fresh;
        } else if (status == TESELA_NO_CONNECTION || status == TESELA_TIMEOUT || status == TESELA_THROTTLED) {
            status = client__fail(error, TESELA_UNAVAILABLE, "The state of ring '%s' cannot be read at the moment.", r->name);
        }
    }
    if (status == TESELA_OK) {
        atomic_fetch_add(&r->state->references, 1);
        *out = r->state;
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

static tesela_status partition_key(void *context, const char *item, tesela_texts *key, tesela_error *error) {
    return client__key_path_find(((ring *)context)->path, item, key, error);
}

static tesela_transition mode_of(const ring_state *s) {
    switch (s->phase) {
    case RING_STABLE:
        return TESELA_READ_CURRENT;
    case RING_SETTLE:
        return TESELA_READ_NEXT;
    default:
        return s->unavailable && s->phase != RING_PREPARE ? TESELA_READ_NONE : TESELA_READ_BOTH;
    }
}

static tesela_status unavailable(tesela_error *error) {
    return client__fail(error, TESELA_UNAVAILABLE,
                        "The ring is being changed in mode None: keys that move cannot be used until that is done.");
}

static tesela_status resolve_for_create(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    ring_state *s;
    tesela_status status = take(context, &s, error);
    if (status != TESELA_OK) {
        return status;
    }
    const char *current = client__hash_ring_find(s->current, key), *next = s->next ? client__hash_ring_find(s->next, key) : current;
    bool moves = current && next && strcmp(current, next) != 0;
    if (!current) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The key is not a JSON value: %s", key);
    } else if (moves && mode_of(s) == TESELA_READ_NONE) {
        status = unavailable(error);
    } else {
        tesela_texts_add(names, s->phase >= RING_MOVE ? next : current);
    }
    client__ring_give(s);
    return status;
}

static void add_all(const hash_ring *r, tesela_texts *names) {
    size_t n;
    char *const *all = client__hash_ring_names(r, &n);
    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t k = 0; k < names->n; k++) {
            known = known || strcmp(names->texts[k], all[i]) == 0;
        }
        if (!known) {
            tesela_texts_add(names, all[i]);
        }
    }
}

/* Those of `r` that `other` lacks. */
static void add_missing(const hash_ring *r, const hash_ring *other, tesela_texts *names) {
    size_t n, m;
    char *const *mine = client__hash_ring_names(r, &n), *const *theirs = client__hash_ring_names(other, &m);
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < m; k++) {
            found = found || strcmp(mine[i], theirs[k]) == 0;
        }
        if (!found) {
            tesela_texts_add(names, mine[i]);
        }
    }
}

static void add_one(const hash_ring *r, const char *key, tesela_texts *names) {
    const char *name = client__hash_ring_find(r, key);
    if (name && !(names->n && strcmp(names->texts[names->n - 1], name) == 0)) {
        tesela_texts_add(names, name);
    }
}

/* Without a key, in this order: containers that the next ring lacks, those that both have, those that only the next one has. A ring's
 * change moves items only from earlier to later ones. */
static tesela_status resolve_for_read(void *context, const char *key, tesela_texts *names, tesela_error *error) {
    ring_state *s;
    tesela_status status = take(context, &s, error);
    if (status != TESELA_OK) {
        return status;
    }
    tesela_transition mode = mode_of(s);
    const hash_ring *rings[2] = {mode == TESELA_READ_NEXT ? s->next : s->current,
                                 mode == TESELA_READ_BOTH || mode == TESELA_READ_NONE ? s->next : NULL};
    if (!key && rings[1]) {
        add_missing(rings[0], rings[1], names);
    }
    for (int i = 0; i < 2 && rings[i]; i++) {
        if (key) {
            add_one(rings[i], key, names);
        } else {
            add_all(rings[i], names);
        }
    }
    if (key && !names->n) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The key is not a JSON value: %s", key);
    } else if (mode == TESELA_READ_NONE && (!key || names->n > 1)) {
        status = unavailable(error);
    }
    client__ring_give(s);
    return status;
}

static void free_ring(void *context) {
    ring *r = context;
    client__ring_give(r->state);
    client__key_path_free(r->path);
    pthread_mutex_destroy(&r->lock);
    free(r->hash_name);
    free(r->name);
    free(r);
}

const resolver_kind client__ring_kind = {{partition_key, resolve_for_create, resolve_for_read, free_ring}, NULL};

static char *copy(const char *text) {
    return text ? mem_text(text, strlen(text)) : NULL;
}

tesela_status tesela_ring_open(tesela_client *client, tesela_container *states, const char *name, const tesela_ring_options *options,
                               tesela_resolver **resolver_out, tesela_error *error) {
    ring *r = mem_zero(sizeof *r);
    ring_state *s = NULL;
    *resolver_out = NULL;
    pthread_mutex_init(&r->lock, NULL);
    r->client = client;
    r->states = states;
    r->name = copy(name);
    if (options && options->hash) {
        r->hash = *options->hash;
        r->hash.hash_name = r->hash_name = copy(options->hash->hash_name);
    }
    tesela_status status = take(r, &s, error);
    if (status == TESELA_OK) {
        r->path = client__key_path_new(s->key_path, error);
        status = r->path ? TESELA_OK : TESELA_BAD_ARGUMENT;
    }
    client__ring_give(s);
    if (status != TESELA_OK) {
        free_ring(r);
        return status;
    }
    *resolver_out = client__resolver_of(&client__ring_kind, r);
    return TESELA_OK;
}

tesela_status tesela_ring_mode(tesela_resolver *resolver, tesela_transition *mode_out, tesela_error *error) {
    ring_state *s;
    if (resolver->kind != &client__ring_kind) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The resolver is not one of tesela_ring_open.");
    }
    tesela_status status = take(resolver->context, &s, error);
    if (status == TESELA_OK) {
        *mode_out = mode_of(s);
        client__ring_give(s);
    }
    return status;
}

/* ---- items by name ---- */

static tesela_key_value key_value(const pkey_value *v, arena *memory) {
    switch (v->type) {
    case PKEY_STRING:
        return (tesela_key_value){.kind = TESELA_KEY_STRING, .text = arena_text(memory, v->text)};
    case PKEY_NUMBER:
        return (tesela_key_value){.kind = TESELA_KEY_NUMBER, .number = v->number};
    case PKEY_TRUE:
    case PKEY_FALSE:
        return (tesela_key_value){.kind = TESELA_KEY_BOOL, .truth = v->type == PKEY_TRUE};
    case PKEY_NULL:
        return (tesela_key_value){.kind = TESELA_KEY_NULL};
    default:
        return (tesela_key_value){.kind = TESELA_KEY_NONE};
    }
}

tesela_status client__item_name(tesela_container *k, slice item, arena *memory, char **id_out, tesela_key *key_out, tesela_error *error) {
    routing *r;
    pkey key;
    buf id = buf_init(4096);
    tesela_status status = client__routing_take(k, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    status = client__key_extract(r, item, memory, &key, error);
    client__routing_give(r);
    if (status == TESELA_OK && (!json_text(json_member(item, "id"), &id) || key.n > 3)) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The item has no id.");
    }
    if (status == TESELA_OK) {
        *id_out = arena_text(memory, buf_view(&id));
        *key_out = (tesela_key){.count = key.n};
        for (size_t i = 0; i < key.n; i++) {
            key_out->values[i] = key_value(&key.values[i], memory);
        }
    }
    buf_free(&id);
    return status;
}

/* ---- marks ---- */

bool client__ring_is_mark(slice item) {
    return json_true(json_member(item, "_tesela_deleted"));
}

/* An item with nothing but what must be in it. Paths that share their first step cannot be written so: tesela_ring_create refuses them. */
static tesela_status write_mark(tesela_container *k, const char *id, const tesela_key *key, buf *out, tesela_error *error) {
    routing *r;
    pkey values;
    buf array = buf_init(64 * 1024);
    json_walk w;
    slice value;
    tesela_status status = client__routing_take(k, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    buf_add_lit(out, "{\"id\":");
    json_add_string(out, slice_str(id));
    if (client__key_of(key, &values)) {
        pkey_write(&array, &values);
    }
    json_enter(buf_view(&array), &w);
    for (size_t i = 0; i < r->definition.n && json_next(&w, NULL, &value); i++) {
        const doc_path *p = &r->definition.paths[i];
        if (slice_eq(value, SLICE_LIT("{}")) || (p->steps_n == 1 && slice_eq(p->steps[0], SLICE_LIT("id")))) {
            continue;
        }
        for (size_t step = 0; step < p->steps_n; step++) {
            buf_add_byte(out, step ? '{' : ',');
            json_add_string(out, p->steps[step]);
            buf_add_byte(out, ':');
        }
        buf_add_slice(out, value);
        for (size_t step = 1; step < p->steps_n; step++) {
            buf_add_byte(out, '}');
        }
    }
    buf_add_lit(out, ",\"_tesela_deleted\":true}");
    buf_add_byte(out, 0);
    buf_free(&array);
    client__routing_give(r);
    return TESELA_OK;
}

/* ---- moving one item ---- */

tesela_status client__ring_move(tesela_container *from, tesela_container *to, const char *id, const tesela_key *key, bool *moved_out,
                                tesela_error *error) {
    char made[128] = ""; /* the etag of what this call has created */
    if (moved_out) {
        *moved_out = false;
    }
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        tesela_response *item, *created = NULL;
        tesela_status status = tesela_item_read(from, id, key, NULL, &item, error);
        if (status != TESELA_OK) {
            return status == TESELA_NOT_FOUND ? TESELA_OK : status; /* moved, or never there */
        }
        if (*made) { /* it changed meanwhile: what was created follows, unless somebody has written to it */
            status = tesela_item_replace(to, id, item->body, key, &(tesela_item_options){.if_match = made}, &created, error);
            status = status == TESELA_PRECONDITION_FAILED || status == TESELA_NOT_FOUND ? TESELA_OK : status;
        } else {
            status = tesela_item_create(to, item->body, key, NULL, &created, error);
            status = status == TESELA_CONFLICT ? TESELA_OK : status;
        }
        if (created) {
            snprintf(made, sizeof made, "%s", tesela_response_etag(created));
        }
        tesela_response_free(created);
        if (status == TESELA_OK) {
            status = tesela_item_delete(from, id, key, &(tesela_item_options){.if_match = tesela_response_etag(item)}, NULL, error);
            if (status == TESELA_OK && moved_out) {
                *moved_out = true;
            }
        }
        tesela_response_free(item);
        if (status != TESELA_PRECONDITION_FAILED) {
            return status == TESELA_NOT_FOUND ? TESELA_OK : status;
        }
    }
    return client__fail(error, TESELA_RETRY_WITH, "Item '%s' changes too often to be moved.", id);
}

/* ---- writes to a key's next container, where there may be marks ---- */

/* Reads what is there; *mark_out: it is a mark. */
static tesela_status look(tesela_container *k, const char *id, const tesela_key *key, tesela_response **item_out, bool *mark_out,
                          tesela_error *error) {
    tesela_status status = tesela_item_read(k, id, key, NULL, item_out, error);
    *mark_out = status == TESELA_OK && client__ring_is_mark(client__response_body(*item_out));
    return status;
}

static tesela_status gone(tesela_error *error) {
    return client__fail(error, TESELA_NOT_FOUND, "Entity with the specified id does not exist in the system.");
}

static bool may_repeat(const through *t, tesela_status status) {
    return status == TESELA_PRECONDITION_FAILED && !(t->options && t->options->if_match);
}

static tesela_status create_over_mark(tesela_container *k, const through *t, const char *id, const tesela_key *key,
                                      tesela_response **response_out, tesela_error *error) {
    tesela_response *there = NULL;
    bool mark;
    tesela_status status = client__through_one(k, t, response_out, error);
    if (status != TESELA_CONFLICT) {
        return status;
    }
    tesela_status found = look(k, id, key, &there, &mark, NULL);
    if (found == TESELA_OK && mark) {
        tesela_item_options options = t->options ? *t->options : (tesela_item_options){0};
        options.if_match = tesela_response_etag(there);
        status = tesela_item_replace(k, id, t->item, key, &options, response_out, error);
    } else if (found == TESELA_NOT_FOUND) {
        status = TESELA_PRECONDITION_FAILED; /* it vanished: create again */
    }
    tesela_response_free(there);
    return status;
}

/* A replace, or a delete, which writes a mark: only if an item is there, and no mark. */
static tesela_status change_item(tesela_container *k, const through *t, bool marks, const char *id, const tesela_key *key,
                                 tesela_response **response_out, tesela_error *error) {
    tesela_response *there = NULL;
    bool mark;
    tesela_status status = look(k, id, key, &there, &mark, error);
    if (status == TESELA_OK && mark) {
        status = gone(error);
    } else if (status == TESELA_OK) {
        tesela_item_options options = t->options ? *t->options : (tesela_item_options){0};
        options.if_match = options.if_match ? options.if_match : tesela_response_etag(there);
        if (t->kind == THROUGH_REPLACE) {
            status = tesela_item_replace(k, id, t->item, key, &options, response_out, error);
        } else if (marks) {
            buf body = buf_init(128 * 1024);
            status = write_mark(k, id, key, &body, error);
            if (status == TESELA_OK) {
                status = tesela_item_replace(k, id, body.p, key, &options, response_out, error);
            }
            buf_free(&body);
        } else {
            status = tesela_item_delete(k, id, key, &options, response_out, error);
        }
    }
    tesela_response_free(there);
    return status;
}

static tesela_status write_next(tesela_container *k, const through *t, bool marks, const char *id, const tesela_key *key,
                                tesela_response **response_out, tesela_error *error) {
    tesela_status status = TESELA_OK;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (t->kind == THROUGH_CREATE) {
            status = create_over_mark(k, t, id, key, response_out, error);
        } else if (t->kind == THROUGH_UPSERT) {
            status = client__through_one(k, t, response_out, error);
        } else {
            status = change_item(k, t, marks, id, key, response_out, error);
        }
        if (!may_repeat(t, status)) {
            break;
        }
    }
    return status;
}

/* ---- operations ---- */

typedef struct place {
    tesela_container *current, *next; /* the same if the key stays */
} place;

static tesela_status place_of(const ring *r, const ring_state *s, const char *key, place *out, tesela_error *error) {
    const char *current = client__hash_ring_find(s->current, key), *next = s->next ? client__hash_ring_find(s->next, key) : current;
    if (!current || !next) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The key is not a JSON value: %s", key);
    }
    tesela_status status = client__container_of(r->client, s->database, current, &out->current, error);
    return status == TESELA_OK ? client__container_of(r->client, s->database, next, &out->next, error) : status;
}

/* In current first, then in next, which wins. */
static tesela_status read_both(const place *p, const through *t, tesela_response **response_out, tesela_error *error) {
    tesela_response *old = NULL, *new = NULL;
    tesela_status first = client__through_one(p->current, t, &old, error);
    if (first != TESELA_OK && first != TESELA_NOT_FOUND && first != TESELA_NOT_MODIFIED) {
        return first;
    }
    tesela_status status = client__through_one(p->next, t, &new, error);
    if (status == TESELA_OK && client__ring_is_mark(client__response_body(new))) {
        status = gone(error);
        tesela_response_free(new);
        new = NULL;
    } else if (status == TESELA_NOT_FOUND && first != TESELA_NOT_FOUND) {
        status = first;
        new = old;
        old = NULL;
    }
    tesela_response_free(old);
    if (response_out) {
        *response_out = new;
    } else {
        tesela_response_free(new);
    }
    return status;
}

static tesela_status read_next(const place *p, const through *t, tesela_response **response_out, tesela_error *error) {
    tesela_response *r = NULL;
    tesela_status status = client__through_one(p->next, t, &r, error);
    if (status == TESELA_OK && client__ring_is_mark(client__response_body(r))) {
        tesela_response_free(r);
        r = NULL;
        status = gone(error);
    }
    if (response_out) {
        *response_out = r;
    } else {
        tesela_response_free(r);
    }
    return status;
}

static tesela_status write_moving(const ring_state *s, const place *p, const through *t, tesela_response **response_out,
                                  tesela_error *error) {
    arena memory = arena_init();
    char *id = (char *)(uintptr_t)t->id;
    tesela_key key = t->item_key ? *t->item_key : (tesela_key){0};
    tesela_status status = t->item ? client__item_name(p->next, slice_str(t->item), &memory, &id, &key, error) : TESELA_OK;
    if (status == TESELA_OK && t->id) {
        id = (char *)(uintptr_t)t->id;
    }
    if (status == TESELA_OK && s->phase == RING_MOVE) {
        status = client__ring_move(p->current, p->next, id, &key, NULL, error);
    }
    if (status == TESELA_OK) {
        status = write_next(p->next, t, s->phase == RING_MOVE, id, &key, response_out, error);
    }
    arena_free(&memory);
    return status;
}

/* Runs it if the phase allows; *wait_out: it must wait for the next phase. */
static tesela_status run_in(const ring *r, const ring_state *s, const through *t, tesela_response **response_out, bool *wait_out,
                            tesela_error *error) {
    place p;
    *wait_out = false;
    tesela_status status = place_of(r, s, t->key, &p, error);
    if (status != TESELA_OK) {
        return status;
    }
    if (p.current == p.next) {
        return client__through_one(p.current, t, response_out, error);
    }
    tesela_transition mode = mode_of(s);
    if (mode == TESELA_READ_NONE) {
        return unavailable(error);
    }
    if (t->kind == THROUGH_READ) {
        return mode == TESELA_READ_NEXT ? read_next(&p, t, response_out, error) : read_both(&p, t, response_out, error);
    }
    if (s->phase == RING_HOLD) {
        *wait_out = true;
        return TESELA_OK;
    }
    return s->phase >= RING_MOVE ? write_moving(s, &p, t, response_out, error) : client__through_one(p.current, t, response_out, error);
}

/* Reads and deletes without the ring's key look at the key by asking every container. */
static tesela_status run_everywhere(ring *r, const ring_state *s, const through *t, tesela_response **response_out, tesela_error *error) {
    tesela_texts *names = tesela_texts_new();
    tesela_status status = t->kind == THROUGH_READ ? resolve_for_read(r, NULL, names, error)
                                                   : client__fail(error, TESELA_BAD_ARGUMENT, "A delete on a ring needs the ring's key.");
    for (size_t i = 0; status == TESELA_OK && i < names->n; i++) {
        tesela_container *k;
        tesela_response *found = NULL;
        status = client__container_of(r->client, s->database, names->texts[i], &k, error);
        if (status == TESELA_OK) {
            tesela_status one = client__through_one(k, t, &found, error);
            tesela_texts *key = tesela_texts_new();
            if (one == TESELA_OK && !client__ring_is_mark(client__response_body(found)) &&
                partition_key(r, found->body, key, NULL) == TESELA_OK) { /* now the key is known: read it as the phase says */
                through again = *t;
                bool wait;
                again.key = key->texts[0];
                status = run_in(r, s, &again, response_out, &wait, error);
                tesela_texts_free(key);
                tesela_response_free(found);
                tesela_texts_free(names);
                return status;
            }
            tesela_texts_free(key);
            tesela_response_free(found);
            status = one == TESELA_NOT_FOUND ? TESELA_OK : one;
        }
    }
    tesela_texts_free(names);
    return status == TESELA_OK ? gone(error) : status;
}

tesela_status client__ring_run(tesela_resolver *resolver, const through *t, tesela_response **response_out, tesela_error *error) {
    ring *r = resolver->context;
    int64_t begun = client__now_us();
    for (;;) {
        ring_state *s;
        bool wait = false;
        tesela_status status = take(r, &s, error);
        if (status != TESELA_OK) {
            return status;
        }
        int64_t longest = ((int64_t)s->refresh_ms * 4 + (int64_t)s->request_ms * 4) * 1000 + 10000000;
        status = t->key ? run_in(r, s, t, response_out, &wait, error) : run_everywhere(r, s, t, response_out, error);
        client__ring_give(s);
        if (!wait) {
            return status;
        }
        if (client__now_us() - begun > longest) {
            return client__fail(error, TESELA_UNAVAILABLE,
                                "The ring's change has stopped before items are moved; resume it with tesela_ring_resume.");
        }
        client__sleep_us(HOLD_WAIT_US);
    }
}

/* ---- queries ----
 *
 * Containers that items leave are read before those that they go to (resolve_for_read), so an item that moves meanwhile is in one of them,
 * or in both: of rows with the same id and key, the first is shown. Marks are not shown. */

struct ring_view {
    distinct *seen;
    const ring *ring;
    bool both;
};

ring_view *client__ring_view(tesela_resolver *resolver, tesela_error *error) {
    ring_state *s;
    ring_view *v = mem_zero(sizeof *v);
    v->ring = resolver->context;
    v->seen = client__distinct_new(256u << 20);
    if (take(resolver->context, &s, error) == TESELA_OK) {
        v->both = mode_of(s) == TESELA_READ_BOTH;
        client__ring_give(s);
    }
    return v;
}

void client__ring_view_free(ring_view *v) {
    if (v) {
        client__distinct_free(v->seen);
        free(v);
    }
}

tesela_status client__ring_shows(ring_view *v, const char *row, bool *shows_out, tesela_error *error) {
    slice id = json_member(slice_str(row), "id");
    tesela_texts *key = tesela_texts_new();
    tesela_status status = TESELA_OK;
    *shows_out = !client__ring_is_mark(slice_str(row));
    if (*shows_out && v->both && id.n && client__key_path_find(v->ring->path, row, key, NULL) == TESELA_OK) {
        buf name = buf_init(4 << 20);
        buf_addf(&name, "[%.*s,%s]", (int)id.n, id.p, key->texts[0]);
        status = client__distinct_add(v->seen, buf_view(&name), shows_out, error);
        buf_free(&name);
    }
    tesela_texts_free(key);
    return status;
}
