/* layout.h — the layout of items, and of the small keys that lead to them, in the store. Numbers are big-endian, so byte order is value
 * order. */

/* clang-format off */
/*
 * STORE_ITEMS  segment u32 · number u64                                  → head (32 bytes) · BSON    an item
 *
 * STORE_INDEX  container u32 · 'p' · EPK · 'k' · partition key · row key → segment · number          its primary key
 *              container u32 · 'p' · EPK · 'o' · number u64              → segment                   creation order in a partition
 *              container u32 · 'p' · EPK · 'u' · index u8 · key · values → segment · number          a unique key
 *              container u32 · 's' · EPK · partition key · n u8          → items · bytes · index …   a partition's size; n: EPK length
 *              container u32 · 'a' · EPK · number u64                     → attachments of the item  item/attach.c
 *              container u32 · 't' · time u32 · segment · number         → (empty)                   expiry, by its own ttl
 *              container u32 · 'd' · time u32 · segment · number         → (empty)                   expiry, by the default ttl
 *              0 u32 · 'r' · period u32 · container u32 · receipt       → outcome                   a write that may be repeated: item/receipt.h
 *
 * STORE_TERMS  'g' · segment u32 · generation u8 · path u64 · value · number u64          → (empty)   an index entry (index/entry_key.h)
 *              'l' · container u32 · generation u8 · EPK · path · value · number u64      → (empty)   the same within a large partition
 *              'd' · container u32 · generation u8 · shape u64                            → paths …   the paths of a shape (index/terms.h)
 *              'g' · segment u32 · 0 · lsn u64 · ts u32 · head u32 · number u64           → (empty)   an item by its last write
 *              'l' · container u32 · 0 · EPK · lsn u64 · ts u32 · head u32 · number u64   → (empty)   the same within its partition
 *
 * STORE_VERSIONS  container u32 · 'h' · segment u32                      → log_head                  which hash range its versions cover
 *              container u32 · 'v' · segment u32 · lsn u64               → log_entry · head · BSON · note   one version of an item (item/versions.h)
 *              container u32 · 'v' · segment u32 · lsn u64 · place u16   → log_entry · head · BSON · note   a further one of the same lsn
 *
 * In a clustered container:
 * STORE_INDEX  container u32 · 'p' · EPK · 'k' · partition key · row key → segment · head · BSON     an item, at its primary key
 * STORE_ITEMS  segment u32 · number u64                                  → 2 · its primary key       a lead
 *
 * STORE_META   'R' · container u32 · range u32                           → range_counts, u64 each
 *              'L' · slot u32                                            → number · (container · range · range_counts) …  counts.h
 *              'B' · container u32                                       → segment · number          progress of the ttl backfill
 *              'M' · container u32 · range u32                           → segment · number          progress of the range's move
 *              'I' · container u32                                       → the index's state          item/reindex.c
 *              'W' · container u32 · 'p' · EPK · 'k' · partition key     → lsn u64                   a partition being deleted: item/wipe.c
 */
/* clang-format on */

/* The upper bits of a document number hold the prefix of its range (LAYOUT_PREFIX_SHIFT), so two ranges never give out the same number, and
 * the items of a range are one run of keys in creation order. An item keeps its number for life. After a split the item may belong to
 * another range; that range's own prefix is higher, so numbers still follow creation order. The STORE_INDEX entries of an item lie close
 * together, which makes writing the second and third nearly free. docs/layout.md explains why items are stored by number and not by key.
 *
 * Generation 0 belongs to no index: it is the order of changes, which includes every item whatever the indexing policy (item/changes.c).
 * Its `head` is the first four bytes of the item's EPK; readers use it to skip most items of other ranges without loading them. */
/* In a clustered container (container.h) the rows of a logical partition are stored side by side in key order, whatever the order of
 * creation. A slice of rows is one scan, and a point read is one lookup. In other containers an item takes two lookups, and the next item
 * in key order is stored elsewhere. A clustered container keeps creation order within a partition and local index entries only if it was
 * made `ordered`; otherwise the rows of a partition are found by scanning them. */
#pragma once

#include "item/container.h"

enum { LAYOUT_PREFIX_SHIFT = 40, LAYOUT_HEAD_BYTES = 32, LAYOUT_COUNTS_BYTES = 48, LAYOUT_SIZE_BYTES = 40, LAYOUT_KEY_BYTES_MAX = 16384 };

/* The head of a stored item, little-endian, at these offsets:
 *    0  u8   layout version, 1          8  u64  lsn of the last write
 *    1  u8   flags                     16  i32  own ttl; 0: none
 *    2  u16  0                         20  u32  own etag; 0: made from the lsn
 *    4  u32  _ts                       24  u64  document number */
typedef struct item_head {
    uint8_t flags;
    uint32_t ts;
    uint64_t lsn;
    int32_t ttl;
    uint64_t number;
    uint32_t etag; /* set by a transaction, which reports the etag before the write gets its lsn; 0: none */
} item_head;

enum { ITEM_NOT_INDEXED = 1 }; /* flag: written with the indexing directive Exclude */

/* Where an item is stored; its primary key leads here. */
typedef struct item_place {
    uint32_t segment;
    uint64_t number;
} item_place;

/* A key being built, on the stack. */
typedef struct layout_key {
    size_t n;
    char bytes[LAYOUT_KEY_BYTES_MAX];
} layout_key;

static inline slice layout_view(const layout_key *k) {
    return slice_of(k->bytes, k->n);
}

static inline void layout_copy(layout_key *to, const layout_key *from) { /* copies only the bytes in use */
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
    LAYOUT_RECEIPT = 'r',
    LAYOUT_LOG_HEAD = 'h',
    LAYOUT_VERSION = 'v'
} layout_tag;

void layout_item(layout_key *k, item_place place);
void layout_primary(layout_key *k, uint32_t container, const epk *e, const pkey *key, slice id);
void layout_partitions(layout_key *k, uint32_t container,
                       const epk *e); /* prefix of the entries of all logical partitions from this EPK on */
void layout_order(layout_key *k, uint32_t container, const epk *e, uint64_t number);
void layout_unique(layout_key *k, uint32_t container, unsigned index, const epk *e, const pkey *key, slice values);
void layout_expiry(layout_key *k, uint32_t container, layout_tag tag, uint32_t time_s, item_place place);
void layout_attachments(layout_key *k, uint32_t container, const epk *e, uint64_t number);
void layout_all_attachments(layout_key *k, uint32_t container); /* prefix of all attachments of the container */
void layout_range(layout_key *k, uint32_t container, uint32_t range);
void layout_counts_log(layout_key *k, uint32_t slot);
void layout_backfill(layout_key *k, uint32_t container);
void layout_move(layout_key *k, uint32_t container, uint32_t range);
void layout_index_state(layout_key *k, uint32_t container);

/* Prefix of index entries. layout_add_term then appends a term and a number, for each entry in turn. */
void layout_terms(layout_key *k, uint32_t segment, uint8_t generation);
void layout_local_terms(layout_key *k, uint32_t container, uint8_t generation, const epk *e); /* e NULL: prefix for all partitions */
void layout_add_term(layout_key *k, size_t begins, slice term, uint64_t number);
bool layout_term_read(slice key, size_t begins, slice *term_out, uint64_t *number_out);
void layout_shapes(layout_key *k, uint32_t container, uint8_t generation);
void layout_shape(layout_key *k, uint32_t container, uint8_t generation, uint64_t shape);
void layout_all_terms(layout_key *k, char tag, uint32_t of); /* prefix of all generations in a segment ('g') or container ('l', 'd') */

/* An entry of the order of changes. */
typedef struct layout_change {
    uint64_t lsn;
    uint32_t ts;
    uint32_t head;
    uint64_t number;
} layout_change;
void layout_changes(layout_key *k, uint32_t segment);                              /* prefix of the changes in a segment */
void layout_local_changes(layout_key *k, uint32_t container, const epk *e);        /* prefix of the changes in a partition */
void layout_add_change(layout_key *k, size_t begins, const layout_change *change); /* appends a change to that prefix */
bool layout_change_read(slice key, size_t begins, layout_change *change_out);
uint32_t layout_epk_head(const epk *e);

typedef struct size_sum size_sum;
void layout_sizes(layout_key *k, uint32_t container);                               /* prefix of all sizes in the container */
void layout_size(layout_key *k, uint32_t container, const epk *e, const pkey *key); /* key NULL: sorts before all of this EPK and later */
bool layout_size_epk(slice entry, uint32_t container, epk *epk_out);                /* false: not a size entry of this container */
bool layout_size_read(slice entry, slice value, epk *epk_out, slice *key_out, size_sum *size_out); /* *key_out: as by pkey_encode */
void layout_size_write(char bytes[LAYOUT_SIZE_BYTES], const size_sum *size);

/* ---- the log of versions ---- */

/* Describes one segment's part of the log: the hash range of the range that wrote these versions. */
typedef struct log_head {
    epk min, max;
    uint64_t born;  /* the range's lsn before its first version in this segment */
    uint64_t floor; /* some versions up to this lsn have been removed */
} log_head;

typedef enum version_kind { VERSION_CREATE = 1, VERSION_REPLACE, VERSION_DELETE } version_kind;

/* Precedes the item in a log record. For a delete, the item is the one that was deleted. */
typedef struct log_entry {
    version_kind kind;
    bool expired; /* deleted by its ttl */
    uint32_t ts;
    uint64_t previous_lsn; /* 0 for a create */
    epk epk;
} log_entry;

enum { LAYOUT_LOG_HEAD_BYTES_MAX = 18 + 2 * EPK_BYTES_MAX, LAYOUT_LOG_ENTRY_BYTES_MAX = 15 + EPK_BYTES_MAX };

void layout_log_heads(layout_key *k, uint32_t container); /* prefix of all log heads of the container */
void layout_log_head(layout_key *k, uint32_t container, uint32_t segment);
void layout_version(layout_key *k, uint32_t container, uint32_t segment, uint64_t lsn);
void layout_add_version_place(layout_key *k, uint16_t place); /* appends the place among versions of the same lsn; nothing for the first */
bool layout_log_head_segment(slice key, uint32_t *segment_out);
bool layout_version_lsn(slice key, uint64_t *lsn_out);
uint16_t layout_version_place(slice key); /* for a key that layout_version_lsn accepts */

size_t layout_log_head_write(char bytes[LAYOUT_LOG_HEAD_BYTES_MAX], const log_head *head); /* returns the bytes used */
bool layout_log_head_read(slice value, log_head *head_out);
size_t layout_log_entry_write(char bytes[LAYOUT_LOG_ENTRY_BYTES_MAX], const log_entry *entry);
/* What follows the body is its note: BSON, or nothing. */
bool layout_log_entry_read(slice value, log_entry *entry_out, item_head *head_out, slice *body_out, slice *note_out);

/* Prefixes of whole runs of keys. */
void layout_container(layout_key *k, uint32_t container);
void layout_segment(layout_key *k, uint32_t segment);
void layout_after(layout_key *k); /* the first key after all keys with this prefix */

void layout_place_write(char bytes[12], item_place place);
bool layout_place_read(slice value, item_place *place_out);

/* A row of a clustered container: its segment, then its head and body, which are `item`. False: some other value. */
enum { LAYOUT_ROW_BYTES = 4 };
void layout_row_write(char bytes[LAYOUT_ROW_BYTES], uint32_t segment); /* writes what precedes the head */
bool layout_row_read(slice value, uint32_t *segment_out, slice *item_out);

/* A lead: the value at the item's place in a clustered container, one byte and then the primary key. False: an item, or damaged. */
enum { LAYOUT_LEAD_BYTES = 1 };
void layout_lead_write(char *bytes, slice primary); /* writes LAYOUT_LEAD_BYTES + primary.n bytes */
bool layout_lead_read(slice value, slice *primary_out);

bool layout_item_read(slice key, item_place *place_out);                       /* parses a STORE_ITEMS key */
bool layout_order_read(slice key, slice value, item_place *place_out);         /* parses an 'o' entry */
bool layout_expiry_read(slice key, uint32_t *time_out, item_place *place_out); /* parses a 't' or 'd' key */

void layout_head_write(char bytes[LAYOUT_HEAD_BYTES], const item_head *head);
bool layout_head_read(slice value, item_head *head_out, slice *body_out); /* false: not an item */

void layout_counts_write(char bytes[LAYOUT_COUNTS_BYTES], const range_counts *counts);
bool layout_counts_read(slice value, range_counts *counts_out);
void layout_counts_record(slice value, uint32_t *container_out, uint32_t *range_out, range_counts *counts_out); /* value: not empty */
