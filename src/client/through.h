/* through.h — operations on a database, by its resolver; those of a ring that is changing are in ring.c. */
#pragma once

#include "client/resolver_int.h"

/* A handle of the client's own, kept until the client is closed. */
tesela_status client__container_of(tesela_client *c, const char *database, const char *name, tesela_container **out, tesela_error *error);

typedef enum through_kind { THROUGH_CREATE, THROUGH_UPSERT, THROUGH_READ, THROUGH_REPLACE, THROUGH_DELETE } through_kind;

typedef struct through {
    through_kind kind;
    const char *key;            /* the resolver's; NULL: not known */
    const char *id, *item;      /* as the kind needs */
    const tesela_key *item_key; /* read and delete */
    const tesela_item_options *options;
} through;

/* Runs it on one container. */
tesela_status client__through_one(tesela_container *k, const through *t, tesela_response **response_out, tesela_error *error);

/* Runs it on a ring of tesela_ring_open. */
tesela_status client__ring_run(tesela_resolver *ring, const through *t, tesela_response **response_out, tesela_error *error);

/* What a query on a ring must do with rows: see ring.c. */
typedef struct ring_view ring_view;
ring_view *client__ring_view(tesela_resolver *ring, tesela_error *error);
void client__ring_view_free(ring_view *v);

/* Whether a row is shown; not if it is the mark of a delete, or was shown already. */
tesela_status client__ring_shows(ring_view *v, const char *row, bool *shows_out, tesela_error *error);
