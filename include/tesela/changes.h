/* tesela/changes.h — the change feed of a container. tesela/processor.h shares it between processes.
 *
 * A feed gives every item that was created or changed, in the order of the changes within a logical partition, in its latest version. Of a
 * container with a change feed policy it can give all versions and deletes instead, each as
 *   {"current":{…},"previous":{…},"metadata":{"operationType":"create","lsn":7,"crts":…}}
 * where `current` is empty for a delete, and only a delete has `previous`. */
#ifndef TESELA_CHANGES_H
#define TESELA_CHANGES_H

#include <tesela/container.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tesela_changes tesela_changes;

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_changes_options {
    bool from_now;            /* only changes after tesela_changes_open's first read; default: from the beginning */
    int64_t since;            /* seconds since 1970: changes after that time */
    const char *continuation; /* from tesela_changes_continuation; decides the ranges and the positions alone */
    const char *min, *max;    /* only this part of the key space (hex text, as in tesela_range) */
    const tesela_key *key;    /* only this logical partition */
    int page_items;           /* most items of a page */
    bool all_versions;        /* all versions and deletes; needs from_now or a continuation */
} tesela_changes_options;

/* Opens a feed. The container must outlive it. */
TESELA_API TESELA_CHECKED tesela_status tesela_changes_open(tesela_container *container, const tesela_changes_options *options,
                                                            tesela_changes **changes_out, tesela_error *error);

/* Frees a feed. NULL is allowed. */
TESELA_API void tesela_changes_close(tesela_changes *changes);

/* The next changed item, JSON text that lives until the next call. TESELA_DONE: no more changes at the moment; call again later. A range
 * that was split or merged is followed to its successors. */
TESELA_API TESELA_CHECKED tesela_status tesela_changes_next(tesela_changes *changes, const char **item_out, size_t *length_out,
                                                            tesela_error *error);

/* The next page of one range, at least one item; read them with tesela_changes_item. TESELA_DONE: no more changes at the moment. */
TESELA_API TESELA_CHECKED tesela_status tesela_changes_page(tesela_changes *changes, size_t *count_out, tesela_error *error);
TESELA_API const char *tesela_changes_item(const tesela_changes *changes, size_t index, size_t *length_out);

/* Where to go on: after the last page that was read whole. Store it when the page's items have been handled. Lives until the next call. */
TESELA_API const char *tesela_changes_continuation(tesela_changes *changes);

/* Request units so far. */
TESELA_API double tesela_changes_charge(const tesela_changes *changes);

#ifdef __cplusplus
}
#endif
#endif
