/* ring_manager.c — changes a ring: from phase to phase, moving the items whose container changes. Every step can be repeated, so a change
 * that was interrupted goes on from its phase. */
#include <stdlib.h>
#include <tesela/ring.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/ring_int.h"
#include "client/routing.h"

enum { STATE_BYTES_MAX = 2 << 20, REFRESH_MS = 1000, REQUEST_MS = 5000, PASSES_MAX = 10 };

typedef struct manager {
    tesela_client *client;
    tesela_container *states;
    const char *name;
    const tesela_ring_change_options *options;
    ring_state *state;
    tesela_ring_progress progress;
} manager;

/* ---- the state's item ---- */

static tesela_status check_keys(tesela_client *c, const char *database, const char *name, tesela_error *error) {
    tesela_container *k;
    routing *r;
    tesela_status status = client__container_of(c, database, name, &k, error);
    if (status != TESELA_OK || (status = client__routing_take(k, &r, error)) != TESELA_OK) {
        return status;
    }
    for (size_t i = 0; i < r->definition.n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (slice_eq(r->definition.paths[i].steps[0], r->definition.paths[j].steps[0])) {
                status = client__fail(error, TESELA_BAD_ARGUMENT,
                                      "Container '%s' has partition key paths that share their first step; a ring cannot use it.", name);
            }
        }
    }
    client__routing_give(r);
    return status;
}

static tesela_status check_containers(tesela_client *c, const char *database, const char *const *names, size_t n, tesela_error *error) {
    tesela_status status = TESELA_OK;
    for (size_t i = 0; status == TESELA_OK && i < n; i++) {
        status = check_keys(c, database, names[i], error);
    }
    return status;
}

tesela_status tesela_ring_create(tesela_container *states, const char *name, const char *database, const char *where,
                                 const char *const *containers, size_t count, const tesela_ring_options *options, tesela_error *error) {
    ring_state s = {.phase = RING_STABLE, .epoch = 1, .refresh_ms = REFRESH_MS, .request_ms = REQUEST_MS};
    buf item = buf_init(STATE_BYTES_MAX);
    tesela_key key = tesela_key_string(name);
    if (options) {
        s.refresh_ms = options->refresh_ms ? options->refresh_ms : s.refresh_ms;
        s.request_ms = options->request_ms ? options->request_ms : s.request_ms;
    }
    key_path *path = client__key_path_new(where, error);
    s.current = client__hash_ring_new((char *const *)(uintptr_t)containers, count, options ? options->hash : NULL, error);
    s.database = (char *)(uintptr_t)database;
    s.key_path = (char *)(uintptr_t)where;
    tesela_status status = path && s.current ? check_containers(states->client, database, containers, count, error) : TESELA_BAD_ARGUMENT;
    if (status == TESELA_OK) {
        client__ring_write(&s, name, &item);
        status = tesela_item_create(states, item.p, &key, NULL, NULL, error);
    }
    client__key_path_free(path);
    client__hash_ring_free(s.current);
    buf_free(&item);
    return status;
}

static tesela_status read_state(manager *m, tesela_error *error) {
    ring_state *fresh;
    tesela_status status = client__ring_read(m->states, m->name, m->options->hash, &fresh, error);
    if (status == TESELA_OK) {
        client__ring_give(m->state);
        m->state = fresh;
    }
    return status;
}

/* Writes the state as it is in memory if nobody has written it since it was read, and reads it again. */
static tesela_status write_state(manager *m, tesela_error *error) {
    buf item = buf_init(STATE_BYTES_MAX);
    tesela_key key = tesela_key_string(m->name);
    m->state->epoch++;
    client__ring_write(m->state, m->name, &item);
    tesela_status status =
        tesela_item_replace(m->states, m->name, item.p, &key, &(tesela_item_options){.if_match = m->state->etag}, NULL, error);
    buf_free(&item);
    tesela_status again = read_state(m, status == TESELA_OK ? error : NULL);
    return status == TESELA_OK ? again : status;
}

/* ---- progress ---- */

static tesela_status report(manager *m, tesela_error *error) {
    m->progress.phase = client__ring_phases[m->state->phase];
    if (m->options->progress && !m->options->progress(m->options->context, &m->progress)) {
        return client__fail(error, TESELA_CANCELLED, "The change was stopped in phase %s; tesela_ring_resume goes on.", m->progress.phase);
    }
    return TESELA_OK;
}

/* Until every client uses the phase: none uses a state that is older than refresh_ms, and none of its requests takes longer than
 * request_ms. */
static tesela_status settle(manager *m, tesela_error *error) {
    int64_t until = client__now_us() + ((int64_t)m->state->refresh_ms + m->state->request_ms) * 1000;
    tesela_status status = TESELA_OK;
    while (status == TESELA_OK && client__now_us() < until) {
        int64_t left = until - client__now_us();
        client__sleep_us(left < 100000 ? left : 100000);
        status = report(m, error);
    }
    return status;
}

/* ---- moving ---- */

static tesela_status move_row(manager *m, tesela_container *from, slice row, uint64_t *moved, tesela_error *error) {
    tesela_texts *key = tesela_texts_new();
    arena memory = arena_init();
    char *id;
    tesela_key item_key;
    bool did = false;
    key_path *path = client__key_path_new(m->state->key_path, error);
    tesela_status status = path ? client__key_path_find(path, row.p, key, error) : TESELA_BAD_ARGUMENT;
    const char *next = status == TESELA_OK ? client__hash_ring_find(m->state->next, key->texts[0]) : NULL;
    if (next && strcmp(next, tesela_container_name(from)) != 0 && !client__ring_is_mark(row)) {
        tesela_container *to;
        status = client__container_of(m->client, m->state->database, next, &to, error);
        if (status == TESELA_OK) {
            status = client__item_name(from, row, &memory, &id, &item_key, error);
        }
        if (status == TESELA_OK) {
            status = client__ring_move(from, to, id, &item_key, &did, error);
        }
    } else if (!next && status == TESELA_BAD_ARGUMENT && path) {
        status = TESELA_OK; /* it has no key of this ring: it stays where it is */
    }
    *moved += did;
    client__key_path_free(path);
    tesela_texts_free(key);
    arena_free(&memory);
    return status;
}

static tesela_status move_container(manager *m, const char *name, uint64_t *moved, tesela_error *error) {
    tesela_container *from;
    tesela_cursor *cursor;
    const char *row;
    size_t n;
    tesela_status status = client__container_of(m->client, m->state->database, name, &from, error);
    if (status == TESELA_OK) {
        status = tesela_query(from, "SELECT * FROM c", NULL, NULL, &cursor, error);
    }
    if (status != TESELA_OK) {
        return status;
    }
    while (status == TESELA_OK && (status = tesela_cursor_next(cursor, &row, &n, error)) == TESELA_OK) {
        status = move_row(m, from, slice_of(row, n), moved, error);
        if (++m->progress.looked_at % 100 == 0 && status == TESELA_OK) {
            m->progress.moved += *moved;
            *moved = 0;
            status = report(m, error);
        }
    }
    tesela_cursor_close(cursor);
    m->progress.moved += *moved;
    *moved = 0;
    return status == TESELA_DONE ? TESELA_OK : status;
}

/* Until a pass finds nothing to move. */
static tesela_status move_all(manager *m, tesela_error *error) {
    tesela_status status = TESELA_OK;
    for (int pass = 0; status == TESELA_OK && pass < PASSES_MAX; pass++) {
        uint64_t before = m->progress.moved;
        size_t n;
        char *const *names = client__hash_ring_names(m->state->current, &n);
        for (size_t i = 0; status == TESELA_OK && i < n; i++) {
            uint64_t moved = 0;
            status = move_container(m, names[i], &moved, error);
        }
        if (status == TESELA_OK && m->progress.moved == before) {
            return TESELA_OK;
        }
    }
    return status != TESELA_OK
               ? status
               : client__fail(error, TESELA_RETRY_WITH, "Items keep coming to containers that they should leave; resume later.");
}

/* ---- marks ---- */

static tesela_status remove_marks_of(manager *m, const char *name, tesela_error *error) {
    tesela_container *k;
    tesela_cursor *cursor;
    const char *row;
    size_t n;
    tesela_status status = client__container_of(m->client, m->state->database, name, &k, error);
    if (status == TESELA_OK) {
        status = tesela_query(k, "SELECT * FROM c WHERE c._tesela_deleted = true", NULL, NULL, &cursor, error);
    }
    if (status != TESELA_OK) {
        return status;
    }
    while (status == TESELA_OK && (status = tesela_cursor_next(cursor, &row, &n, error)) == TESELA_OK) {
        arena memory = arena_init();
        char *id, *etag = client__text_member(slice_of(row, n), "_etag");
        tesela_key key;
        status = client__item_name(k, slice_of(row, n), &memory, &id, &key, error);
        if (status == TESELA_OK) {
            status = tesela_item_delete(k, id, &key, &(tesela_item_options){.if_match = etag}, NULL, error);
            status = status == TESELA_NOT_FOUND || status == TESELA_PRECONDITION_FAILED ? TESELA_OK : status;
        }
        arena_free(&memory);
        free(etag);
    }
    tesela_cursor_close(cursor);
    return status == TESELA_DONE ? TESELA_OK : status;
}

static tesela_status remove_marks(manager *m, tesela_error *error) {
    size_t n;
    char *const *names = client__hash_ring_names(m->state->next, &n);
    tesela_status status = TESELA_OK;
    for (size_t i = 0; status == TESELA_OK && i < n; i++) {
        status = remove_marks_of(m, names[i], error);
    }
    return status;
}

/* ---- phases ---- */

static tesela_status do_phase(manager *m, tesela_error *error) {
    tesela_status status = settle(m, error);
    if (status == TESELA_OK && m->state->phase == RING_MOVE) {
        status = move_all(m, error);
        if (status == TESELA_OK) { /* late movers, and writers of a state of before, have ended by then */
            status = settle(m, error);
        }
        return status == TESELA_OK ? move_all(m, error) : status;
    }
    return status == TESELA_OK && m->state->phase == RING_SETTLE ? remove_marks(m, error) : status;
}

static tesela_status next_phase(manager *m, tesela_error *error) {
    ring_state *s = m->state;
    if (s->phase == RING_SETTLE) {
        client__hash_ring_free(s->current);
        s->current = s->next;
        s->next = NULL;
        s->unavailable = false;
        s->phase = RING_STABLE;
    } else {
        s->phase++;
    }
    tesela_status status = write_state(m, error);
    return status == TESELA_PRECONDITION_FAILED && m->state ? TESELA_OK : status; /* another manager was first: go on from there */
}

static tesela_status work(manager *m, tesela_error *error) {
    tesela_status status = TESELA_OK;
    while (status == TESELA_OK && m->state->phase != RING_STABLE) {
        status = report(m, error);
        if (status == TESELA_OK) {
            status = do_phase(m, error);
        }
        if (status == TESELA_OK) {
            status = next_phase(m, error);
        }
    }
    return status;
}

static manager manager_of(tesela_client *c, tesela_container *states, const char *name, const tesela_ring_change_options *options) {
    static const tesela_ring_change_options defaults;
    return (manager){.client = c, .states = states, .name = name, .options = options ? options : &defaults};
}

static tesela_status finish(manager *m, tesela_status status, uint64_t *moved_out) {
    if (moved_out) {
        *moved_out = m->progress.moved;
    }
    client__ring_give(m->state);
    return status;
}

/* The next ring has the virtual nodes and the hash of the current one: its state is read with other containers. */
static hash_ring *with_containers(const manager *m, const char *const *names, size_t n, tesela_error *error) {
    buf object = buf_init(STATE_BYTES_MAX), text = buf_init(STATE_BYTES_MAX);
    json_walk w;
    slice name, value;
    buf_add_byte(&object, '{');
    client__hash_ring_write(m->state->current, &object);
    buf_add_byte(&object, '}');
    buf_add_lit(&text, "{\"containers\":");
    client__texts_write(&text, (char *const *)(uintptr_t)names, n);
    json_enter(buf_view(&object), &w);
    while (json_next(&w, &name, &value)) {
        if (!slice_eq(name, SLICE_LIT("\"containers\""))) {
            buf_addf(&text, ",%.*s:%.*s", (int)name.n, name.p, (int)value.n, value.p);
        }
    }
    buf_add_byte(&text, '}');
    hash_ring *ring = client__hash_ring_read(buf_view(&text), m->options->hash, error);
    buf_free(&object);
    buf_free(&text);
    return ring;
}

tesela_status tesela_ring_change(tesela_client *client, tesela_container *states, const char *name, const char *const *containers,
                                 size_t count, const tesela_ring_change_options *options, uint64_t *moved_out, tesela_error *error) {
    manager m = manager_of(client, states, name, options);
    tesela_status status = read_state(&m, error);
    if (status == TESELA_OK && m.state->phase != RING_STABLE) {
        status = client__fail(error, TESELA_CONFLICT,
                              "Another change of ring '%s' is under way, or was interrupted: call tesela_ring_resume.", name);
    }
    if (status == TESELA_OK) {
        status = check_containers(client, m.state->database, containers, count, error);
    }
    if (status == TESELA_OK) {
        m.state->next = with_containers(&m, containers, count, error);
        m.state->phase = RING_PREPARE;
        m.state->unavailable = m.options->unavailable;
        status = m.state->next ? write_state(&m, error) : TESELA_BAD_ARGUMENT;
        if (status == TESELA_PRECONDITION_FAILED) {
            status = client__fail(error, TESELA_CONFLICT, "Another change of ring '%s' has begun at the same time.", name);
        }
    }
    return finish(&m, status == TESELA_OK ? work(&m, error) : status, moved_out);
}

tesela_status tesela_ring_resume(tesela_client *client, tesela_container *states, const char *name,
                                 const tesela_ring_change_options *options, uint64_t *moved_out, tesela_error *error) {
    manager m = manager_of(client, states, name, options);
    tesela_status status = read_state(&m, error);
    return finish(&m, status == TESELA_OK ? work(&m, error) : status, moved_out);
}
