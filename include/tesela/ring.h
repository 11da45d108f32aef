/* tesela/ring.h — a hash ring that grows and shrinks while it is used.
 *
 *   tesela_ring_create(states, "users", "social", "/userId", names, 4, NULL, &error);          // once
 *   tesela_ring_open(client, states, "users", NULL, &resolver, &error);                        // in each process
 *   tesela_client_set_resolver(client, "social", resolver);
 *   tesela_ring_change(client, states, "users", names5, 5, NULL, NULL, &error);                // in one of them
 *
 * The ring's state is an item of a container (partition key /id), which every resolver reads again every `refresh_ms`. A change goes
 * through phases; the manager waits in each until every client must know of it:
 *
 *   stable → prepare → hold → move → settle → stable
 *   reads    current   both   both    next               the transition modes ReadCurrent, ReadBoth, ReadNext; or None during the change
 *   writes   current   wait   next    next
 *
 * In `move` only items whose container changes are moved: by the manager, and by clients that write to one of them. A delete leaves a mark
 * in the next container, so that a late mover cannot bring the item back; marks are removed in `settle`. The change can be resumed after a
 * crash at any moment, by any process.
 *
 * All processes must reach the same data: in accounts of several regions, use consistency Strong or BoundedStaleness. */
#ifndef TESELA_RING_H
#define TESELA_RING_H

#include <tesela/resolver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tesela_transition {
    TESELA_READ_CURRENT, /* from the containers of before */
    TESELA_READ_NEXT,    /* from those of after */
    TESELA_READ_BOTH,    /* from both; what is in the next one wins */
    TESELA_READ_NONE     /* TESELA_UNAVAILABLE */
} tesela_transition;

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_ring_options {
    const tesela_hash_options *hash;
    uint32_t refresh_ms; /* 1,000: how old the state may be that a resolver uses. The same for all processes: kept with the state */
    uint32_t request_ms; /* 5,000: how long a request of a client may take at most; the manager waits as long in addition. Kept too */
} tesela_ring_options;

/* Creates a ring's state over containers that exist. TESELA_CONFLICT: a ring of this name is there. */
TESELA_API tesela_status tesela_ring_create(tesela_container *states, const char *name, const char *database, const char *key_path,
                                            const char *const *containers, size_t count, const tesela_ring_options *options,
                                            tesela_error *error);

/* Opens a resolver over the ring. `options`: a hash of one's own; the rest is kept with the state. The containers must outlive it. */
TESELA_API TESELA_CHECKED tesela_status tesela_ring_open(tesela_client *client, tesela_container *states, const char *name,
                                                         const tesela_ring_options *options, tesela_resolver **resolver_out,
                                                         tesela_error *error);

/* How a resolver of tesela_ring_open reads at the moment. */
TESELA_API tesela_status tesela_ring_mode(tesela_resolver *ring, tesela_transition *mode_out, tesela_error *error);

typedef struct tesela_ring_progress {
    const char *phase;
    uint64_t looked_at, moved; /* items */
} tesela_ring_progress;

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_ring_change_options {
    bool unavailable;                                                      /* None instead of ReadBoth while items are moved */
    const tesela_hash_options *hash;                                       /* a hash of one's own */
    bool (*progress)(void *context, const tesela_ring_progress *progress); /* false: stop here, to be resumed later */
    void *context;
} tesela_ring_change_options;

/* Changes the ring to these containers, which must exist, and returns when all is moved. `moved_out` may be NULL. TESELA_CONFLICT: another
 * change is under way; call tesela_ring_resume to end it. TESELA_CANCELLED: `progress` returned false. */
TESELA_API tesela_status tesela_ring_change(tesela_client *client, tesela_container *states, const char *name,
                                            const char *const *containers, size_t count, const tesela_ring_change_options *options,
                                            uint64_t *moved_out, tesela_error *error);

/* Goes on with a change that was interrupted. TESELA_OK at once if there is none. */
TESELA_API tesela_status tesela_ring_resume(tesela_client *client, tesela_container *states, const char *name,
                                            const tesela_ring_change_options *options, uint64_t *moved_out, tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
