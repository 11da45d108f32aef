#include "item/layout.h"

#include <assert.h>
#include <endian.h>

#include "item/logical_size.h"

enum { HEAD_VERSION = 1, LEAD_VERSION = 2, PLACE_BYTES = 12 };

/* ---- building keys ---- */

static void add(layout_key *k, const void *p, size_t n) {
    assert(n <= sizeof k->bytes - k->n); /* ids, keys and unique values are limited long before this */
    memcpy(k->bytes + k->n, p ? p : "", n);
    k->n += n;
}

static void add32(layout_key *k, uint32_t value) {
    value = htobe32(value);
    add(k, &value, sizeof value);
}

static void add64(layout_key *k, uint64_t value) {
    value = htobe64(value);
    add(k, &value, sizeof value);
}

static void add_key(layout_key *k, const pkey *key) {
    char space[LIMIT_KEY_LEVELS * LIMIT_KEY_BYTES * 2 + 64]; /* larger than any typed key */
    buf encoded = {.p = space, .cap = sizeof space, .max = sizeof space};
    pkey_encode(&encoded, key);
    assert(buf_ok(&encoded));
    add(k, encoded.p, encoded.n);
}

static void start(layout_key *k, uint32_t container, layout_tag tag) {
    k->n = 0;
    add32(k, container);
    k->bytes[k->n++] = (char)tag;
}

static void start_partition(layout_key *k, uint32_t container, const epk *e, layout_tag tag) {
    start(k, container, LAYOUT_PARTITION);
    add(k, e->bytes, e->n);
    k->bytes[k->n++] = (char)tag;
}

void layout_item(layout_key *k, item_place place) {
    layout_segment(k, place.segment);
    add64(k, place.number);
}

void layout_partitions(layout_key *k, uint32_t container, const epk *e) {
    start(k, container, LAYOUT_PARTITION);
    add(k, e->bytes, e->n);
}

void layout_primary(layout_key *k, uint32_t container, const epk *e, const pkey *key, slice id) {
    start_partition(k, container, e, LAYOUT_PRIMARY);
    add_key(k, key);
    add(k, id.p, id.n);
}

void layout_order(layout_key *k, uint32_t container, const epk *e, uint64_t number) {
    start_partition(k, container, e, LAYOUT_ORDER);
    add64(k, number);
}

void layout_unique(layout_key *k, uint32_t container, unsigned index, const epk *e, const pkey *key, slice values) {
    start_partition(k, container, e, LAYOUT_UNIQUE);
    k->bytes[k->n++] = (char)index;
    add_key(k, key);
    add(k, values.p, values.n);
}

void layout_expiry(layout_key *k, uint32_t container, layout_tag tag, uint32_t time_s, item_place place) {
    start(k, container, tag);
    add32(k, time_s);
    add32(k, place.segment);
    add64(k, place.number);
}

void layout_all_attachments(layout_key *k, uint32_t container) {
    start(k, container, LAYOUT_ATTACHMENTS);
}

void layout_attachments(layout_key *k, uint32_t container, const epk *e, uint64_t number) {
    layout_all_attachments(k, container);
    add(k, e->bytes, e->n);
    add64(k, number);
}

void layout_range(layout_key *k, uint32_t container, uint32_t range) {
    k->n = 0;
    k->bytes[k->n++] = 'R';
    add32(k, container);
    add32(k, range);
}

void layout_counts_log(layout_key *k, uint32_t slot) {
    k->n = 0;
    k->bytes[k->n++] = 'L';
    add32(k, slot);
}

void layout_backfill(layout_key *k, uint32_t container) {
    k->n = 0;
    k->bytes[k->n++] = 'B';
    add32(k, container);
}

void layout_move(layout_key *k, uint32_t container, uint32_t range) {
    k->n = 0;
    k->bytes[k->n++] = 'M';
    add32(k, container);
    add32(k, range);
}

void layout_index_state(layout_key *k, uint32_t container) {
    k->n = 0;
    k->bytes[k->n++] = 'I';
    add32(k, container);
}

void layout_all_terms(layout_key *k, char tag, uint32_t of) {
    k->n = 0;
    k->bytes[k->n++] = tag;
    add32(k, of);
}

void layout_terms(layout_key *k, uint32_t segment, uint8_t generation) {
    layout_all_terms(k, 'g', segment);
    k->bytes[k->n++] = (char)generation;
}

void layout_local_terms(layout_key *k, uint32_t container, uint8_t generation, const epk *e) {
    layout_all_terms(k, 'l', container);
    k->bytes[k->n++] = (char)generation;
    if (e) {
        add(k, e->bytes, e->n);
    }
}

void layout_add_term(layout_key *k, size_t begins, slice term, uint64_t number) {
    k->n = begins;
    add(k, term.p, term.n);
    add64(k, number);
}

enum { CHANGES_GENERATION = 0, CHANGE_BYTES = 24 };

void layout_changes(layout_key *k, uint32_t segment) {
    layout_terms(k, segment, CHANGES_GENERATION);
}

void layout_local_changes(layout_key *k, uint32_t container, const epk *e) {
    layout_local_terms(k, container, CHANGES_GENERATION, e);
}

void layout_add_change(layout_key *k, size_t begins, const layout_change *change) {
    k->n = begins;
    add64(k, change->lsn);
    add32(k, change->ts);
    add32(k, change->head);
    add64(k, change->number);
}

uint32_t layout_epk_head(const epk *e) {
    uint32_t head = 0;
    memcpy(&head, e->bytes, e->n < sizeof head ? e->n : sizeof head);
    return be32toh(head);
}

void layout_shapes(layout_key *k, uint32_t container, uint8_t generation) {
    layout_all_terms(k, 'd', container);
    k->bytes[k->n++] = (char)generation;
}

void layout_shape(layout_key *k, uint32_t container, uint8_t generation, uint64_t shape) {
    layout_shapes(k, container, generation);
    add64(k, shape);
}

void layout_sizes(layout_key *k, uint32_t container) {
    start(k, container, LAYOUT_SIZE);
}

void layout_size(layout_key *k, uint32_t container, const epk *e, const pkey *key) {
    layout_sizes(k, container);
    add(k, e->bytes, e->n);
    if (key) {
        add_key(k, key);
        k->bytes[k->n++] = (char)e->n;
    }
}

void layout_container(layout_key *k, uint32_t container) {
    k->n = 0;
    add32(k, container);
}

void layout_segment(layout_key *k, uint32_t segment) {
    k->n = 0;
    add32(k, segment);
}

void layout_after(layout_key *k) {
    while (k->n && (unsigned char)k->bytes[k->n - 1] == 0xFF) {
        k->n--;
    }
    if (k->n) {
        k->bytes[k->n - 1]++;
    }
}

/* ---- parsing keys ---- */

static uint32_t get32(const char *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return be32toh(value);
}

static uint64_t get64(const char *p) {
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return be64toh(value);
}

void layout_place_write(char bytes[12], item_place place) {
    uint32_t segment = htobe32(place.segment);
    uint64_t number = htobe64(place.number);
    memcpy(bytes, &segment, 4);
    memcpy(bytes + 4, &number, 8);
}

bool layout_place_read(slice value, item_place *place_out) {
    if (value.n != 12) {
        return false;
    }
    *place_out = (item_place){get32(value.p), get64(value.p + 4)};
    return true;
}

void layout_row_write(char bytes[LAYOUT_ROW_BYTES], uint32_t segment) {
    segment = htobe32(segment);
    memcpy(bytes, &segment, sizeof segment);
}

bool layout_row_read(slice value, uint32_t *segment_out, slice *item_out) {
    if (value.n <= PLACE_BYTES) {
        return false;
    }
    *segment_out = get32(value.p);
    *item_out = slice_skip(value, LAYOUT_ROW_BYTES);
    return true;
}

void layout_lead_write(char *bytes, slice primary) {
    bytes[0] = LEAD_VERSION;
    memcpy(bytes + LAYOUT_LEAD_BYTES, primary.p, primary.n);
}

bool layout_lead_read(slice value, slice *primary_out) {
    if (value.n <= LAYOUT_LEAD_BYTES || value.p[0] != LEAD_VERSION) {
        return false;
    }
    *primary_out = slice_skip(value, LAYOUT_LEAD_BYTES);
    return true;
}

bool layout_item_read(slice key, item_place *place_out) {
    return layout_place_read(key, place_out);
}

bool layout_order_read(slice key, slice value, item_place *place_out) {
    if (key.n < 13 || value.n != 4) {
        return false;
    }
    *place_out = (item_place){get32(value.p), get64(key.p + key.n - 8)};
    return true;
}

bool layout_term_read(slice key, size_t begins, slice *term_out, uint64_t *number_out) {
    if (key.n < begins + 8) {
        return false;
    }
    *term_out = slice_of(key.p + begins, key.n - begins - 8);
    *number_out = get64(key.p + key.n - 8);
    return true;
}

bool layout_change_read(slice key, size_t begins, layout_change *change_out) {
    if (key.n != begins + CHANGE_BYTES) {
        return false;
    }
    const char *p = key.p + begins;
    *change_out = (layout_change){get64(p), get32(p + 8), get32(p + 12), get64(p + 16)};
    return true;
}

bool layout_expiry_read(slice key, uint32_t *time_out, item_place *place_out) {
    if (key.n != 5 + 4 + 12) {
        return false;
    }
    *time_out = get32(key.p + 5);
    return layout_place_read(slice_skip(key, 9), place_out);
}

/* ---- the log of versions ---- */

void layout_log_heads(layout_key *k, uint32_t container) {
    start(k, container, LAYOUT_LOG_HEAD);
}

void layout_log_head(layout_key *k, uint32_t container, uint32_t segment) {
    layout_log_heads(k, container);
    add32(k, segment);
}

void layout_version(layout_key *k, uint32_t container, uint32_t segment, uint64_t lsn) {
    start(k, container, LAYOUT_VERSION);
    add32(k, segment);
    add64(k, lsn);
}

void layout_add_version_place(layout_key *k, uint16_t place) {
    if (place) {
        k->bytes[k->n++] = (char)(place >> 8);
        k->bytes[k->n++] = (char)place;
    }
}

bool layout_log_head_segment(slice key, uint32_t *segment_out) {
    if (key.n != 9 || key.p[4] != LAYOUT_LOG_HEAD) {
        return false;
    }
    *segment_out = get32(key.p + 5);
    return true;
}

bool layout_version_lsn(slice key, uint64_t *lsn_out) {
    if ((key.n != 17 && key.n != 19) || key.p[4] != LAYOUT_VERSION) {
        return false;
    }
    *lsn_out = get64(key.p + 9);
    return true;
}

uint16_t layout_version_place(slice key) {
    return key.n == 19 ? (uint16_t)((uint8_t)key.p[17] << 8 | (uint8_t)key.p[18]) : 0;
}

static char *put_epk(char *p, const epk *e) {
    *p = (char)e->n;
    memcpy(p + 1, e->bytes, e->n);
    return p + 1 + e->n;
}

static bool take_epk(slice *rest, epk *epk_out) {
    size_t n = rest->n ? (unsigned char)rest->p[0] : EPK_BYTES_MAX + 1;
    if (n > EPK_BYTES_MAX || rest->n < 1 + n) {
        return false;
    }
    epk_out->n = (uint8_t)n;
    memcpy(epk_out->bytes, rest->p + 1, n);
    *rest = slice_skip(*rest, 1 + n);
    return true;
}

size_t layout_log_head_write(char bytes[LAYOUT_LOG_HEAD_BYTES_MAX], const log_head *head) {
    uint64_t born = htobe64(head->born), floor = htobe64(head->floor);
    memcpy(bytes, &born, 8);
    memcpy(bytes + 8, &floor, 8);
    return (size_t)(put_epk(put_epk(bytes + 16, &head->min), &head->max) - bytes);
}

bool layout_log_head_read(slice value, log_head *head_out) {
    if (value.n < 16) {
        return false;
    }
    slice rest = slice_skip(value, 16);
    head_out->born = get64(value.p);
    head_out->floor = get64(value.p + 8);
    return take_epk(&rest, &head_out->min) && take_epk(&rest, &head_out->max) && rest.n == 0;
}

size_t layout_log_entry_write(char bytes[LAYOUT_LOG_ENTRY_BYTES_MAX], const log_entry *entry) {
    uint32_t ts = htobe32(entry->ts);
    uint64_t previous = htobe64(entry->previous_lsn);
    bytes[0] = (char)entry->kind;
    bytes[1] = (char)entry->expired;
    memcpy(bytes + 2, &ts, 4);
    memcpy(bytes + 6, &previous, 8);
    return (size_t)(put_epk(bytes + 14, &entry->epk) - bytes);
}

/* Divides what follows the head into body and note; a body knows its length. */
static bool divide_note(slice *body, slice *note_out) {
    int32_t n = body->n >= 5 ? doc_load_i32(body->p) : 0;
    if (n < 5 || (size_t)n > body->n) {
        return false;
    }
    *note_out = slice_skip(*body, (size_t)n);
    *body = slice_of(body->p, (size_t)n);
    return true;
}

bool layout_log_entry_read(slice value, log_entry *entry_out, item_head *head_out, slice *body_out, slice *note_out) {
    if (value.n < 14 || value.p[0] < VERSION_CREATE || value.p[0] > VERSION_DELETE) {
        return false;
    }
    slice rest = slice_skip(value, 14);
    entry_out->kind = (version_kind)value.p[0];
    entry_out->expired = value.p[1] != 0;
    entry_out->ts = get32(value.p + 2);
    entry_out->previous_lsn = get64(value.p + 6);
    return take_epk(&rest, &entry_out->epk) && layout_head_read(rest, head_out, body_out) && divide_note(body_out, note_out);
}

/* ---- values ---- */

void layout_head_write(char bytes[LAYOUT_HEAD_BYTES], const item_head *head) {
    memset(bytes, 0, LAYOUT_HEAD_BYTES);
    uint32_t ts = htole32(head->ts), ttl = htole32((uint32_t)head->ttl), etag = htole32(head->etag);
    uint64_t lsn = htole64(head->lsn), number = htole64(head->number);
    bytes[0] = HEAD_VERSION;
    bytes[1] = (char)head->flags;
    memcpy(bytes + 4, &ts, 4);
    memcpy(bytes + 8, &lsn, 8);
    memcpy(bytes + 16, &ttl, 4);
    memcpy(bytes + 20, &etag, 4);
    memcpy(bytes + 24, &number, 8);
}

bool layout_head_read(slice value, item_head *head_out, slice *body_out) {
    if (value.n < LAYOUT_HEAD_BYTES + 5 || value.p[0] != HEAD_VERSION) {
        return false;
    }
    uint32_t ts, ttl, etag;
    uint64_t lsn, number;
    memcpy(&ts, value.p + 4, 4);
    memcpy(&lsn, value.p + 8, 8);
    memcpy(&ttl, value.p + 16, 4);
    memcpy(&etag, value.p + 20, 4);
    memcpy(&number, value.p + 24, 8);
    *head_out = (item_head){(uint8_t)value.p[1], le32toh(ts), le64toh(lsn), (int32_t)le32toh(ttl), le64toh(number), le32toh(etag)};
    *body_out = slice_skip(value, LAYOUT_HEAD_BYTES);
    return true;
}

void layout_counts_write(char bytes[LAYOUT_COUNTS_BYTES], const range_counts *counts) {
    uint64_t fields[] = {htobe64(counts->lsn),   htobe64(counts->number_next), htobe64(counts->items),
                         htobe64(counts->bytes), htobe64(counts->index_bytes), htobe64(counts->partitions)};
    memcpy(bytes, fields, LAYOUT_COUNTS_BYTES);
}

bool layout_counts_read(slice value, range_counts *counts_out) {
    if (value.n != LAYOUT_COUNTS_BYTES) {
        return false;
    }
    const char *p = value.p;
    *counts_out = (range_counts){get64(p), get64(p + 8), get64(p + 16), get64(p + 24), get64(p + 32), get64(p + 40)};
    return true;
}

void layout_counts_record(slice value, uint32_t *container_out, uint32_t *range_out, range_counts *counts_out) {
    *container_out = get32(value.p);
    *range_out = get32(value.p + 4);
    bool read = layout_counts_read(slice_of(value.p + 8, LAYOUT_COUNTS_BYTES), counts_out);
    assert(read);
}

bool layout_size_epk(slice entry, uint32_t container, epk *epk_out) {
    size_t n = entry.n < 6 ? 0 : (unsigned char)entry.p[entry.n - 1];
    if (entry.n < 6 + n || n > EPK_BYTES_MAX || entry.p[4] != LAYOUT_SIZE || get32(entry.p) != container) {
        return false;
    }
    epk_out->n = (uint8_t)n;
    memcpy(epk_out->bytes, entry.p + 5, n);
    return true;
}

bool layout_size_read(slice entry, slice value, epk *epk_out, slice *key_out, size_sum *size_out) {
    if (entry.n < 6 || value.n != LAYOUT_SIZE_BYTES || !layout_size_epk(entry, get32(entry.p), epk_out)) {
        return false;
    }
    *key_out = slice_of(entry.p + 5 + epk_out->n, entry.n - 6 - epk_out->n);
    *size_out = (size_sum){get64(value.p), get64(value.p + 8), get64(value.p + 16), 1, get64(value.p + 24), get64(value.p + 32)};
    return true;
}

void layout_size_write(char bytes[LAYOUT_SIZE_BYTES], const size_sum *size) {
    uint64_t fields[] = {htobe64(size->items), htobe64(size->bytes), htobe64(size->index_bytes), htobe64(size->local),
                         htobe64(size->local_from)};
    memcpy(bytes, fields, LAYOUT_SIZE_BYTES);
}
