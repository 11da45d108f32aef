/* tesela/container.h — containers, and the handle through which their items are used.
 *
 *   tesela_container *orders;
 *   tesela_container_open(client, "shop", "orders", &orders, &error);
 *
 * A handle caches the container's partition key and its ranges, and reads them again when they change. Any thread may use it. */
#ifndef TESELA_CONTAINER_H
#define TESELA_CONTAINER_H

#include <tesela/cursor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tesela_container tesela_container;

/* Creates a container from its definition as JSON, such as
 *   {"id":"orders","partitionKey":{"paths":["/customer"],"kind":"Hash","version":2}}
 * with an indexing policy, unique keys, a TTL and so on as the REST API has them. `throughput` may be NULL. TESELA_CONFLICT: it exists. */
TESELA_API tesela_status tesela_container_create(tesela_client *client, const char *database, const char *definition,
                                                 const tesela_throughput *throughput, tesela_response **response_out, tesela_error *error);

/* Opens a handle. Nothing is sent, so the container need not exist. Fails with TESELA_BAD_ARGUMENT if a name is empty or has one of / \ ?
 * #. The client must outlive the handle. */
TESELA_API TESELA_CHECKED tesela_status tesela_container_open(tesela_client *client, const char *database, const char *container,
                                                              tesela_container **container_out, tesela_error *error);

/* Frees a handle; the container stays. Close cursors and other objects made with it first. NULL is allowed. */
TESELA_API void tesela_container_close(tesela_container *container);

/* The container's name, and its database's. They live as long as the handle. */
TESELA_API const char *tesela_container_name(const tesela_container *container);
TESELA_API const char *tesela_container_database(const tesela_container *container);

/* Reads the definition. */
TESELA_API tesela_status tesela_container_read(tesela_container *container, tesela_response **response_out, tesela_error *error);

/* Replaces what can be changed of the definition: indexing policy, TTL and so on. */
TESELA_API tesela_status tesela_container_replace(tesela_container *container, const char *definition, tesela_response **response_out,
                                                  tesela_error *error);

/* Deletes the container and its items. */
TESELA_API tesela_status tesela_container_delete(tesela_container *container, tesela_response **response_out, tesela_error *error);

/* Reads and sets its throughput. TESELA_NOT_FOUND: it has none of its own (it shares its database's). */
TESELA_API tesela_status tesela_container_throughput(tesela_container *container, tesela_throughput *throughput_out, tesela_error *error);
TESELA_API tesela_status tesela_container_set_throughput(tesela_container *container, const tesela_throughput *throughput,
                                                         tesela_error *error);

/* About how many items it has, as the server counts them; -1 if the server does not say. */
TESELA_API tesela_status tesela_container_item_count(tesela_container *container, int64_t *items_out, tesela_error *error);

/* ---- ranges ---- */

/* A physical partition: the items whose effective partition key (hex text) is in [min, max). */
typedef struct tesela_range {
    const char *id;
    const char *min;
    const char *max;
} tesela_range;

typedef struct tesela_ranges tesela_ranges;

/* The container's ranges at this moment, in the order of their keys. Free them with tesela_ranges_free. */
TESELA_API TESELA_CHECKED tesela_status tesela_container_ranges(tesela_container *container, tesela_ranges **ranges_out,
                                                                tesela_error *error);

/* How many there are, and one of them; its texts live as long as the list. NULL if there is no such range. */
TESELA_API size_t tesela_ranges_count(const tesela_ranges *ranges);
TESELA_API const tesela_range *tesela_ranges_get(const tesela_ranges *ranges, size_t index);

/* Frees the list. NULL is allowed. */
TESELA_API void tesela_ranges_free(tesela_ranges *ranges);

enum { TESELA_EPK_TEXT = 321 }; /* longest effective partition key, with its zero byte */

/* The effective partition key of a key, as the hex text by which ranges are divided. `text` has room for TESELA_EPK_TEXT bytes. */
TESELA_API TESELA_CHECKED tesela_status tesela_container_epk(tesela_container *container, const tesela_key *key, char *text,
                                                             tesela_error *error);

/* ---- scripts ---- */

/* Creates a stored procedure from its JavaScript, or replaces it. */
TESELA_API tesela_status tesela_script_put(tesela_container *container, const char *id, const char *body, tesela_response **response_out,
                                           tesela_error *error);

typedef enum tesela_script_kind { TESELA_PROCEDURE, TESELA_TRIGGER, TESELA_FUNCTION } tesela_script_kind;

/* All stored procedures, triggers or user-defined functions, as JSON. */
TESELA_API TESELA_CHECKED tesela_status tesela_scripts(tesela_container *container, tesela_script_kind kind, tesela_cursor **cursor_out,
                                                       tesela_error *error);

/* Creates a script of any kind from its definition, or replaces it. `definition` is JSON with its `id` and its `body`; of a trigger also
 * `triggerType` and `triggerOperation`. */
TESELA_API tesela_status tesela_script_define(tesela_container *container, tesela_script_kind kind, const char *id, const char *definition,
                                              tesela_response **response_out, tesela_error *error);

/* Deletes a stored procedure. */
TESELA_API tesela_status tesela_script_delete(tesela_container *container, const char *id, tesela_response **response_out,
                                              tesela_error *error);

/* Runs a stored procedure in the logical partition of `key`. `arguments` is a JSON array; NULL: none. The response's body is what the
 * script set. It is not sent again after a broken connection, since it may have run. */
TESELA_API tesela_status tesela_script_run(tesela_container *container, const char *id, const tesela_key *key, const char *arguments,
                                           tesela_response **response_out, tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
