/* resolver_int.h — resolvers inside: the interface, and for the library's own kinds how their state is written. */
#pragma once

#include <tesela/resolver.h>

#include "client/client_int.h"

struct tesela_texts {
    char **texts;
    size_t n;
};

typedef struct resolver_kind {
    tesela_resolver_functions functions;
    void (*save)(const void *context, buf *out); /* appends the state's members after "version" */
} resolver_kind;

struct tesela_resolver {
    tesela_resolver_functions functions;
    const resolver_kind *kind; /* NULL: the application's own */
    void *context;
};

tesela_resolver *client__resolver_of(const resolver_kind *kind, void *context);
extern const resolver_kind client__ring_kind; /* of tesela_ring_open */

/* ---- keys of items ---- */

typedef struct key_path key_path;

key_path *client__key_path_new(const char *text, tesela_error *error); /* NULL: not a path */
void client__key_path_free(key_path *p);
const char *client__key_path_text(const key_path *p);

/* Adds the item's key as JSON. TESELA_BAD_ARGUMENT: it has none, or an object or array. */
tesela_status client__key_path_find(const key_path *p, const char *item, tesela_texts *key, tesela_error *error);

/* ---- templates ---- */

typedef struct template template;

template *client__template_new(const tesela_template *from, tesela_error *error); /* NULL: malformed */
template *client__template_read(slice json, tesela_error *error);
void client__template_free(template *t);
void client__template_write(const template *t, buf *out);
char *client__template_name(const template *t, size_t number); /* the caller frees it */

/* Creates container `number` with its scripts, unless it exists. */
tesela_status client__template_create(const template *t, tesela_client *client, const char *database, size_t number, tesela_error *error);

/* ---- reading states ---- */

/* The decoded text of a member; NULL: it is no string. The caller frees it. */
char *client__text_member(slice object, const char *name);

/* The texts of an array; false: it is none, or has other elements. */
bool client__texts_read(slice array, tesela_texts *out);
void client__texts_write(buf *out, char *const *texts, size_t n); /* as a JSON array */

tesela_status client__hash_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error);
tesela_status client__range_load(slice state, tesela_resolver **out, tesela_error *error);
tesela_status client__lookup_load(slice state, tesela_resolver **out, tesela_error *error);
tesela_status client__managed_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error);
tesela_status client__spillover_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error);
tesela_status client__chained_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error);
tesela_status client__resolver_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error);

/* ---- operations on one container that a resolver named ---- */

/* The resolver of a database; NULL, with `error` filled, if none is registered. */
tesela_resolver *client__resolver_find(tesela_client *c, const char *database, tesela_error *error);
