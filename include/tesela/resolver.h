/* tesela/resolver.h — partitioning by the client: a resolver decides which containers of a database an item or a query goes to.
 *
 *   const char *names[] = {"users0", "users1"};
 *   tesela_hash_resolver_new("/userId", names, 2, NULL, &resolver, &error);
 *   tesela_client_set_resolver(client, "social", resolver);
 *   tesela_database_create_item(client, "social", "{\"id\":\"J1\",\"userId\":\"@John\"}", NULL, NULL, &error);
 *   tesela_database_query(client, "social", "\"@John\"", "SELECT * FROM c WHERE c.userId = '@John'", NULL, NULL, &cursor, &error);
 *
 * Keys of resolvers are JSON values as text: "\"@John\"", 42, or for reads of a range {"min":1,"max":9}, both ends included. Any thread may
 * use a resolver. */
#ifndef TESELA_RESOLVER_H
#define TESELA_RESOLVER_H

#include <tesela/cursor.h>
#include <tesela/item.h>
#include <tesela/query.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tesela_resolver tesela_resolver;

/* A list of texts that a resolver answers with. */
typedef struct tesela_texts tesela_texts;

/* Adds a copy of a text. Called by a resolver's functions. */
TESELA_API void tesela_texts_add(tesela_texts *texts, const char *text);

/* ---- the interface ---- */

/* What a resolver is made of. Each function may be called by any thread, at the same time. A failure ends the operation with that status;
 * the function fills `error`, which may be NULL. */
typedef struct tesela_resolver_functions {
    /* Adds the key of an item: one JSON value. */
    tesela_status (*partition_key)(void *context, const char *item, tesela_texts *key, tesela_error *error);
    /* Adds the name of the one container that an item of this key goes to. */
    tesela_status (*resolve_for_create)(void *context, const char *key, tesela_texts *names, tesela_error *error);
    /* Adds the names of all containers where items of this key can be; `key` NULL: of all containers. */
    tesela_status (*resolve_for_read)(void *context, const char *key, tesela_texts *names, tesela_error *error);
    /* Frees the context; may be NULL. */
    void (*free)(void *context);
} tesela_resolver_functions;

/* Makes a resolver of one's own. `functions` is copied; the context is freed with the resolver. */
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_new(const tesela_resolver_functions *functions, void *context,
                                                            tesela_resolver **resolver_out, tesela_error *error);

/* Frees a resolver that no client uses any more. NULL is allowed. */
TESELA_API void tesela_resolver_free(tesela_resolver *resolver);

/* The three functions of any resolver, for resolvers that are built on others. */
TESELA_API tesela_status tesela_resolver_partition_key(tesela_resolver *resolver, const char *item, tesela_texts *key, tesela_error *error);
TESELA_API tesela_status tesela_resolver_for_create(tesela_resolver *resolver, const char *key, tesela_texts *names, tesela_error *error);
TESELA_API tesela_status tesela_resolver_for_read(tesela_resolver *resolver, const char *key, tesela_texts *names, tesela_error *error);

/* Lists of texts, to call these functions. A text lives until the list changes. */
TESELA_API tesela_texts *tesela_texts_new(void);
TESELA_API size_t tesela_texts_count(const tesela_texts *texts);
TESELA_API const char *tesela_texts_get(const tesela_texts *texts, size_t index); /* NULL: no such text */
TESELA_API void tesela_texts_free(tesela_texts *texts);

/* ---- hash ring ---- */

enum { TESELA_HASH_BYTES_MAX = 64 };

/* A hash of bytes: writes at most TESELA_HASH_BYTES_MAX bytes and returns their number, at least 8. */
typedef size_t (*tesela_hash)(void *context, const void *bytes, size_t length, unsigned char *hash_out);

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_hash_options {
    unsigned virtual_nodes; /* 16: points on the ring for each container, at most 65,536; docs/client.md has the skew for several numbers */
    tesela_hash hash;       /* MD5 */
    void *context;          /* of the hash; must outlive the resolver */
    const char *hash_name;  /* "md5"; needed with `hash`: a saved state can be loaded only with a hash of the same name */
} tesela_hash_options;

/* Consistent hashing: each container has some points on a ring of hashes, and owns what lies before them. `key_path` is where the key is in
 * an item, such as "/userId". At least one container; names must differ. */
TESELA_API TESELA_CHECKED tesela_status tesela_hash_resolver_new(const char *key_path, const char *const *containers, size_t count,
                                                                 const tesela_hash_options *options, tesela_resolver **resolver_out,
                                                                 tesela_error *error);

/* ---- ranges, lookup ---- */

typedef struct tesela_key_range {
    const char *min; /* JSON text: a string or a number */
    const char *max; /* included, of the same type; NULL: the same as min */
    const char *container;
} tesela_key_range;

/* Ranges of keys, which must not overlap. A create whose key is in none fails with TESELA_BAD_ARGUMENT; a read of a range goes to all
 * containers that it touches. */
TESELA_API TESELA_CHECKED tesela_status tesela_range_resolver_new(const char *key_path, const tesela_key_range *ranges, size_t count,
                                                                  tesela_resolver **resolver_out, tesela_error *error);

/* Single values; several may go to one container. `otherwise` is for all other values; NULL: they fail. */
TESELA_API TESELA_CHECKED tesela_status tesela_lookup_resolver_new(const char *key_path, const tesela_key_range *values, size_t count,
                                                                   const char *otherwise, tesela_resolver **resolver_out,
                                                                   tesela_error *error);

/* ---- resolvers that create containers ---- */

/* From which new containers are made. Texts are copied. */
typedef struct tesela_template {
    const char *name;       /* with one # that becomes the number, from 0: "users-#" */
    const char *definition; /* JSON without an id: {"partitionKey":{…},"indexingPolicy":{…}} */
    tesela_throughput throughput;
    const char *const *script_ids; /* stored procedures that each container gets */
    const char *const *script_bodies;
    size_t scripts_count;
} tesela_template;

/* A hash ring over `count` containers, which are created from the template if they do not exist. The client must outlive the resolver. */
TESELA_API TESELA_CHECKED tesela_status tesela_managed_resolver_new(tesela_client *client, const char *database, const char *key_path,
                                                                    const tesela_template *from, size_t count,
                                                                    const tesela_hash_options *options, tesela_resolver **resolver_out,
                                                                    tesela_error *error);

typedef struct tesela_spillover_options {
    uint64_t items;       /* a container with so many items is full; 0: not counted */
    uint64_t bytes;       /* a container of so many bytes is full; 0: 90 % of its quota */
    uint32_t check_every; /* 1,000: creates by this resolver between two looks at the container */
} tesela_spillover_options;

/* Creates go to the newest container, and to a new one as it fills; reads go to all. Keys do not matter. Several processes may do this at
 * the same time. The client must outlive the resolver. */
TESELA_API TESELA_CHECKED tesela_status tesela_spillover_resolver_new(tesela_client *client, const char *database,
                                                                      const tesela_template *from, const tesela_spillover_options *options,
                                                                      tesela_resolver **resolver_out, tesela_error *error);

/* ---- chains ---- */

typedef struct tesela_link {
    const char *name;          /* as the first resolver calls it */
    tesela_resolver *resolver; /* decides further; freed with the chain */
} tesela_link;

/* A chain of two: `first`, such as a lookup by region, names a link, whose resolver, such as a hash ring, names the container. A key is an
 * array of both keys, ["EU","@John"]; a read with ["EU"] goes to all containers of that link. Takes all resolvers, which are freed with it,
 * also if it fails. */
TESELA_API TESELA_CHECKED tesela_status tesela_chained_resolver_new(tesela_resolver *first, const tesela_link *links, size_t count,
                                                                    tesela_resolver **resolver_out, tesela_error *error);

/* ---- state ---- */

/* The resolver's state as JSON with a version; free the text with tesela_text_free. TESELA_BAD_ARGUMENT: one of your own has none that the
 * library knows. */
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_save(tesela_resolver *resolver, char **state_out, tesela_error *error);
TESELA_API void tesela_text_free(char *text);

/* What states need beyond their text. The whole may be NULL. */
typedef struct tesela_load_options {
    tesela_client *client;           /* for managed and spillover resolvers */
    const tesela_hash_options *hash; /* for rings with a hash of one's own */
} tesela_load_options;

/* Makes a resolver from a state. Fails with TESELA_BAD_ARGUMENT if it is malformed, of another version, or needs what `options` lacks. */
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_load(const char *state, const tesela_load_options *options,
                                                             tesela_resolver **resolver_out, tesela_error *error);

/* The same in a file, written beside it and renamed, so that readers find the old or the new state. */
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_save_file(tesela_resolver *resolver, const char *path, tesela_error *error);
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_load_file(const char *path, const tesela_load_options *options,
                                                                  tesela_resolver **resolver_out, tesela_error *error);

/* The same in an item {"id":…,"state":{…}} of a container whose partition key is /id. */
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_save_item(tesela_resolver *resolver, tesela_container *container, const char *id,
                                                                  tesela_error *error);
TESELA_API TESELA_CHECKED tesela_status tesela_resolver_load_item(tesela_container *container, const char *id,
                                                                  const tesela_load_options *options, tesela_resolver **resolver_out,
                                                                  tesela_error *error);

/* ---- using a database through its resolver ---- */

/* Registers a resolver for a database; NULL: none any more. It must outlive its use by the client. */
TESELA_API void tesela_client_set_resolver(tesela_client *client, const char *database, tesela_resolver *resolver);

/* Creates, or creates or replaces, an item in the container that its key resolves to. TESELA_BAD_ARGUMENT: no
 * resolver is registered. */
TESELA_API tesela_status tesela_database_create_item(tesela_client *client, const char *database, const char *item,
                                                     const tesela_item_options *options, tesela_response **response_out,
                                                     tesela_error *error);
TESELA_API tesela_status tesela_database_upsert_item(tesela_client *client, const char *database, const char *item,
                                                     const tesela_item_options *options, tesela_response **response_out,
                                                     tesela_error *error);

/* Reads an item by its id from the containers where its key can be. `key` is the resolver's key as JSON (NULL: looks in all), `item_key`
 * the item's partition key within its container (NULL: containers without one). */
TESELA_API tesela_status tesela_database_read_item(tesela_client *client, const char *database, const char *key, const char *id,
                                                   const tesela_key *item_key, const tesela_item_options *options,
                                                   tesela_response **response_out, tesela_error *error);

/* Replaces and deletes an item, wherever of those containers it is. */
TESELA_API tesela_status tesela_database_replace_item(tesela_client *client, const char *database, const char *id, const char *item,
                                                      const tesela_item_options *options, tesela_response **response_out,
                                                      tesela_error *error);
TESELA_API tesela_status tesela_database_delete_item(tesela_client *client, const char *database, const char *key, const char *id,
                                                     const tesela_key *item_key, const tesela_item_options *options,
                                                     tesela_response **response_out, tesela_error *error);

/* Queries the containers of a key, or all (`key` NULL), one after the other, as one result. The rows of each container come in the query's
 * order; an aggregate gives one row a container. */
TESELA_API TESELA_CHECKED tesela_status tesela_database_query(tesela_client *client, const char *database, const char *key,
                                                              const char *query, const char *parameters,
                                                              const tesela_query_options *options, tesela_cursor **cursor_out,
                                                              tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
