/* layout.h — how items and the small keys that lead to them lie in the store. Numbers are big-endian, so byte order is value order. */

/* clang-format off */
/*
 * STORE_ITEMS  segment u32 · number u64                                  → head (32 bytes) · BSON    an item
 *
 * STORE_INDEX  container u32 · 'p' · EPK · 'k' · partition key · row key → segment · number          its primary key
 *              container u32 · 'p' · EPK · 'o' · number u64              → segment                   creation order in a partition
 *              container u32 · 'p' · EPK · 'u' · index u8 · key · values → segment · number          a unique key
 *              container u32 · 's' · EPK · partition key · n u8          → items · bytes · index …   a partition's size; n: of the EPK
 *              container u32 · 'a' · EPK · number u64                     → attachments of the item  item/attach.c
 *              container u32 · 't' · time u32 · segment · number         → (empty)                   it says its own ttl
 *              container u32 · 'd' · time u32 · segment · number         → (empty)                   it is under the default ttl
 *
 * STORE_TERMS  'g' · segment u32 · generation u8 · path u64 · value · number u64          → (empty)   an index entry (index/key.h)
 *              'l' · container u32 · generation u8 · EPK · path · value · number u64      → (empty)   the same within a large partition
 *              'd' · container u32 · generation u8 · shape u64                            → paths …   what a shape is (index/terms.h)
 *              'g' · segment u32 · 0 · lsn u64 · ts u32 · head u32 · number u64           → (empty)   an item by its last write
 *              'l' · container u32 · 0 · EPK · lsn u64 · ts u32 · head u32 · number u64   → (empty)   the same within its partition
 *
 * STORE_VERSIONS  container u32 · 'h' · segment u32                      → log_head                  what of the hash space has its log there
 *              container u32 · 'v' · segment u32 · lsn u64               → log_entry · head · BSON   one version of an item (item/versions.h)
 *
 * of a clustered container:
 * STORE_INDEX  container u32 · 'p' · EPK · 'k' · partition key · row key → segment · head · BSON     an item, at its primary key
 * STORE_ITEMS  segment u32 · number u64                                  → 2 · its primary key       a lead
 *
 * STORE_META   'R' · container u32 · range u32                           → range_counts, u64 each
 *              'L' · slot u32                                            → number · (container · range · range_counts) …  counts.h
 *              'B' · container u32                                       → segment · number          how far the ttl backfill is
 *              'M' · container u32 · range u32                           → segment · number          how far the range's move is
 *              'I' · container u32                                       → the index's state          item/reindex.c
 */
/* clang-format on */

/* A document number holds the range's prefix in its upper bits (LAYOUT_PREFIX_SHIFT), so ranges never give the same; items of one range are
 * one run of keys in creation order. It stays with the item for life: after a split the range that has the item may be another, whose own
 * prefix is higher, so numbers go on in creation order. All entries of one item lie side by side, which makes writing the second and third
 * nearly free. Why items lie by number and not by key: docs/layout.md.
 *
 * Generation 0 is no index's: it is the order of changes, which every item is in whatever the policy says (item/changes.c). `head` is the
 * first four bytes of its EPK, so that most items of other ranges are passed without a look at them. */
/* In a clustered container (container.h) the rows of a logical partition lie side by side in key order, whatever order they came in: a
 * slice of them is one walk, and a point read one lookup. By number an item costs two, and the next in creation order lies somewhere
 * else. Such containers keep no creation order within a partition and no local entries: those of its rows that lie side by side are
 * found by walking them. */
#pragma once

#include "item/container.h"

enum { LAYOUT_PREFIX_SHIFT = 40, LAYOUT_HEAD_BYTES = 32, LAYOUT_COUNTS_BYTES = 48, LAYOUT_SIZE_BYTES = 40, LAYOUT_KEY_BYTES_MAX = 16384 };

/* The head of a stored item, little-endian, at these offsets:
 *    0  u8   layout version, 1          8  u64  lsn of the last write
 *    1  u8   flags                     16  i32  ttl of its own, 0 if none
 *    2  u16  0                         20  u32  etag of its own, 0 if the lsn makes it
 *    4  u32  _ts                       24  u64  document number */
typedef struct item_head {
    uint8_t flags;
    uint32_t ts;
    uint64_t lsn;
    int32_t ttl;
    uint64_t number;
    uint32_t etag; /* of what a transaction wrote: it told the etag before the write had its lsn */
} item_head;

enum { ITEM_NOT_INDEXED = 1 }; /* flag: written with the indexing directive Exclude */

/* Where an item is: what the primary key leads to. */
typedef struct item_place {
    uint32_t segment;
    uint64_t number;
} item_place;

/* A key under construction, on the stack. */
typedef struct layout_key {
    size_t n;
    char bytes[LAYOUT_KEY_BYTES_MAX];
} layout_key;

static inline slice layout_view(const layout_key *k) {
    return slice_of(k->bytes, k->n);
}

static inline void layout_copy(layout_key *to, const layout_key *from) { /* what there is of it, not all that there could be */
    to->n = from->n;
    memcpy(to->bytes, from->bytes, from->n);
}

typedef enum layout_tag {
    LAYOUT_PARTITION = 'p',
    LAYOUT_PRIMARY = 'k',
    LAYOUT_ORDER = 'o',
    LAYOUT_UNIQUE = 'u',
    LAYOUT_SIZE = 's',
    LAYOUT_ATTACHMENTS = 'a',
    LAYOUT_TTL_OWN = 't',
    LAYOUT_TTL_DEFAULT = 'd',
    LAYOUT_LOG_HEAD = 'h',
    LAYOUT_VERSION = 'v'
} layout_tag;

void layout_item(layout_key *k, item_place place);
void layout_primary(layout_key *k, uint32_t container, const epk *e, const pkey *key, slice id);
void layout_partitions(layout_key *k, uint32_t container,
                       const epk *e); /* what entries of logical partitions from this EPK on begin with */
void layout_order(layout_key *k, uint32_t container, const epk *e, uint64_t number);
void layout_unique(layout_key *k, uint32_t container, unsigned index, const epk *e, const pkey *key, slice values);
void layout_expiry(layout_key *k, uint32_t container, layout_tag tag, uint32_t time_s, item_place place);
void layout_attachments(layout_key *k, uint32_t container, const epk *e, uint64_t number);
void layout_all_attachments(layout_key *k, uint32_t container); /* what all of them begin with */
void layout_range(layout_key *k, uint32_t container, uint32_t range);
void layout_counts_log(layout_key *k, uint32_t slot);
void layout_backfill(layout_key *k, uint32_t container);
void layout_move(layout_key *k, uint32_t container, uint32_t range);
void layout_index_state(layout_key *k, uint32_t container);

/* What index entries begin with; then the term and the number are added, to each in turn. */
void layout_terms(layout_key *k, uint32_t segment, uint8_t generation);
void layout_local_terms(layout_key *k, uint32_t container, uint8_t generation, const epk *e); /* e NULL: of all partitions */
void layout_add_term(layout_key *k, size_t begins, slice term, uint64_t number);
bool layout_term_read(slice key, size_t begins, slice *term_out, uint64_t *number_out);
void layout_shapes(layout_key *k, uint32_t container, uint8_t generation);
void layout_shape(layout_key *k, uint32_t container, uint8_t generation, uint64_t shape);
void layout_all_terms(layout_key *k, char tag, uint32_t of); /* of a segment ('g') or container ('l', 'd'), all generations */

/* An item in the order of changes. */
typedef struct layout_change {
    uint64_t lsn;
    uint32_t ts;
    uint32_t head;
    uint64_t number;
} layout_change;
void layout_changes(layout_key *k, uint32_t segment);                              /* what those of a segment begin with */
void layout_local_changes(layout_key *k, uint32_t container, const epk *e);        /* … of a partition */
void layout_add_change(layout_key *k, size_t begins, const layout_change *change); /* added to that */
bool layout_change_read(slice key, size_t begins, layout_change *change_out);
uint32_t layout_epk_head(const epk *e);

typedef struct size_sum size_sum;
void layout_sizes(layout_key *k, uint32_t container);                               /* what all of them begin with */
void layout_size(layout_key *k, uint32_t container, const epk *e, const pkey *key); /* key NULL: before all of this EPK and later */
bool layout_size_epk(slice entry, uint32_t container, epk *epk_out);                /* false: not such an entry of the container */
bool layout_size_read(slice entry, slice value, epk *epk_out, slice *key_out, size_sum *size_out); /* the key as pkey_encode wrote it */
void layout_size_write(char bytes[LAYOUT_SIZE_BYTES], const size_sum *size);

/* ---- the log of versions ---- */

/* One segment's part of the log: the versions that a range of this part of the hash space wrote. */
typedef struct log_head {
    epk min, max;
    uint64_t born;  /* the range's lsn before its first version here */
    uint64_t floor; /* of versions up to this lsn some are gone */
} log_head;

typedef enum version_kind { VERSION_CREATE = 1, VERSION_REPLACE, VERSION_DELETE } version_kind;

/* What stands before an item in the log. Of a delete the item is the one deleted. */
typedef struct log_entry {
    version_kind kind;
    bool expired; /* a delete by ttl */
    uint32_t ts;
    uint64_t previous_lsn; /* 0: of a create */
    epk epk;
} log_entry;

enum { LAYOUT_LOG_HEAD_BYTES_MAX = 18 + 2 * EPK_BYTES_MAX, LAYOUT_LOG_ENTRY_BYTES_MAX = 15 + EPK_BYTES_MAX };

void layout_log_heads(layout_key *k, uint32_t container); /* what all of them begin with */
void layout_log_head(layout_key *k, uint32_t container, uint32_t segment);
void layout_version(layout_key *k, uint32_t container, uint32_t segment, uint64_t lsn);
bool layout_log_head_segment(slice key, uint32_t *segment_out);
bool layout_version_lsn(slice key, uint64_t *lsn_out);

size_t layout_log_head_write(char bytes[LAYOUT_LOG_HEAD_BYTES_MAX], const log_head *head); /* how many bytes it takes */
bool layout_log_head_read(slice value, log_head *head_out);
size_t layout_log_entry_write(char bytes[LAYOUT_LOG_ENTRY_BYTES_MAX], const log_entry *entry);
bool layout_log_entry_read(slice value, log_entry *entry_out, item_head *head_out, slice *body_out);

/* Bounds of whole runs: every key that begins so. */
void layout_container(layout_key *k, uint32_t container);
void layout_segment(layout_key *k, uint32_t segment);
void layout_after(layout_key *k); /* the first key beyond all that begin with this one */

void layout_place_write(char bytes[12], item_place place);
bool layout_place_read(slice value, item_place *place_out);

/* A clustered container's row: its segment, then head and body, which are `item`. False: another value. */
enum { LAYOUT_ROW_BYTES = 4 };
void layout_row_write(char bytes[LAYOUT_ROW_BYTES], uint32_t segment); /* what goes before the head */
bool layout_row_read(slice value, uint32_t *segment_out, slice *item_out);

/* What is at its place: a byte, then its primary key. False: an item, or damaged. */
enum { LAYOUT_LEAD_BYTES = 1 };
void layout_lead_write(char *bytes, slice primary); /* LAYOUT_LEAD_BYTES + primary.n */
bool layout_lead_read(slice value, slice *primary_out);

bool layout_item_read(slice key, item_place *place_out);                       /* from a STORE_ITEMS key */
bool layout_order_read(slice key, slice value, item_place *place_out);         /* from an 'o' entry */
bool layout_expiry_read(slice key, uint32_t *time_out, item_place *place_out); /* from a 't' or 'd' key */

void layout_head_write(char bytes[LAYOUT_HEAD_BYTES], const item_head *head);
bool layout_head_read(slice value, item_head *head_out, slice *body_out); /* false: not an item */

void layout_counts_write(char bytes[LAYOUT_COUNTS_BYTES], const range_counts *counts);
bool layout_counts_read(slice value, range_counts *counts_out);
void layout_counts_record(slice value, uint32_t *container_out, uint32_t *range_out, range_counts *counts_out); /* at least one is there */
