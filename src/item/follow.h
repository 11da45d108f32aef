/* follow.h — the changes of a container as one stream, with waiting.
 *
 * A *follower* reads the changes of a whole container, of a part of its hash space, or of one logical partition, across all ranges involved
 * and through splits and merges. Changes of one logical partition come in the order of their writes; ranges take turns. There are two
 * modes: the latest version of each item (deletes leave no trace), or every version and delete, if the container keeps a log of versions
 * (item/versions.h).
 *
 * A follower's *position* is a byte string that a front end may hand to a client and take back, even after a restart. It contains the
 * container's number, the followed part of the hash space, and an lsn for each stretch of it. Positions are validated, not trusted.
 *
 * All changes of an atomic commit have one lsn. A position within them (follow_position_after) also says which of the next lsn were read:
 * those up to a place in a segment of the log.
 *
 *     u8 version (1) · u8 mode · u8 kind (0 a part of the hash space, 1 a logical partition) · u32 container · i64 since_s · u16 stretches
 *     bound · stretches × (u64 lsn · bound)          numbers big-endian; a bound is u8 bytes · the EPK's bytes; kind 1: EPK · lsn · EPK
 *                                                    version 2, within an lsn: after each lsn, u32 segment · u16 places
 *
 * A follower that has read everything *waits*: the commit that brings the next change wakes it, on the committer's thread, as soon as the
 * change can be read. There is no polling, so an idle follower costs only its memory. It is woken once; it must then read until there is no
 * more, and wait again. Wakes can be spurious: there may be nothing to read, for example after a delete in the latest mode. A follower of a
 * logical partition is woken by writes to that partition only; a follower of a part of the hash space by writes to the ranges that overlap
 * it.
 *
 *     err code = follow_open(items, o, c, &start, &f);
 *     for (;;) {
 *         do { code = follow_read(f, o, c, &page, visit, context); … follow_position(f, &bytes); } while (code == OK && page.more);
 *         if (follow_wait(f, woken, context)) break;        // continues in `woken`, which posts to the follower's loop
 *     }
 *
 * A follower may be used by one thread at a time, except that follow_cancel may race with the wake. It holds the container's space, not a
 * version of the container: pass the newest version to every read. To limit the wait, a timer on the follower's loop calls
 * follow_cancel. */
#pragma once

#include "item/versions.h"

typedef struct follower follower;

typedef enum follow_mode { FOLLOW_LATEST, FOLLOW_VERSIONS, FOLLOW_MODES } follow_mode;

typedef struct follow_start {
    follow_mode mode;

    /* What to follow: a logical partition; or [min, max), restricted to keys that begin with `prefix` if there is one. The whole container
     * is epk_min() to epk_max(). Copied. */
    const item_key *partition; /* its id is ignored */
    const pkey *prefix;
    epk min, max;

    /* Where to start: at a position; or now; or at a second (latest mode only); or, if none of these is given, at the beginning. */
    slice position;
    bool from_now;
    int64_t since_s;
} follow_start;

/* E_BAD_CONTINUATION: the position is invalid, or belongs to another container, mode or part of the hash space. E_BAD_REQUEST with an error
 * text: the container keeps no versions, or has more ranges than one follower may follow (LIMIT_FOLLOW_STRETCHES). */
MUST_CHECK err follow_open(const items *s, op *o, container *c, const follow_start *start, follower **follower_out);
void follow_close(follower *f); /* must not be waiting: see follow_cancel. NULL is allowed */

/* ---- reading ---- */

typedef enum follow_kind { FOLLOW_WRITTEN, FOLLOW_CREATED, FOLLOW_REPLACED, FOLLOW_DELETED } follow_kind;

typedef struct follow_change {
    follow_kind kind; /* always FOLLOW_WRITTEN in the latest mode: created or replaced */
    bool expired;     /* a delete by ttl */
    uint64_t lsn, previous_lsn;
    uint32_t ts;      /* time of the write, in seconds */
    item_head head;   /* head of the item; for a delete, of the deleted item */
    slice body;       /* body of the same item: BSON, valid until the visitor returns */
    uint32_t segment; /* with `place`: the order of changes with one lsn */
    uint16_t place;
    const follower *by;
    slice note; /* what the edit that wrote it noted (item_edit_result.note); empty: nothing, or the latest mode */
} follow_change;

/* False ends the page before this change. It is given again later, with any changes before it that have the same lsn. */
typedef bool (*follow_visit)(void *context, const follow_change *change);

typedef struct follow_page {
    size_t items_max; /* at least 1 */
    size_t bytes_max; /* limit for the bodies; the first change is always taken. May be exceeded slightly after a merge, since changes with
                         the same lsn stay together */
    int64_t until_us; /* monotonic deadline: the page then ends with what it has; 0: none */

    size_t n;       /* output: changes taken */
    bool more;      /* output: more changes may be ready to read */
    item_mark mark; /* output, if n > 0: mark of the last range read */
} follow_page;

/* Reads the next changes. `c` is the newest version of the container. Reads are admitted and charged as by item_changes_read; if there is
 * nothing new, they are free. Advances the position, but not after an error. E_OWNER_NOT_FOUND: the container was deleted. E_THROTTLED:
 * only if nothing was read. E_BAD_REQUEST with an error text: the next versions are past their retention. */
MUST_CHECK err follow_read(follower *f, op *o, container *c, follow_page *page, follow_visit visit, void *context);

/* Appends the follower's position. */
void follow_position(const follower *f, buf *out);

/* Within a visitor, in the versions mode: appends the position after this change. It never loses or repeats a change, even of one commit.
 */
void follow_position_after(const follow_change *change, buf *out);

/* The part of the hash space that a position follows, within the whole of it. False: it is no position, or one of a logical partition. */
bool follow_position_part(slice position, epk *min_out, epk *max_out);

/* The number of the container that a position belongs to. False: it is no position. */
bool follow_position_container(slice position, uint32_t *container_out);

/* ---- waiting ---- */

/* True: the follower waits, and `woken` will be called once unless follow_cancel prevents it. False: there may be something new, or the
 * container is gone: read now. `woken` is called on the committer's thread, which all writers wait for: it must hand over and return. It
 * may be called before follow_wait returns, so the woken code must not use the follower before then (a loop that gets a posted task meets
 * this). */
bool follow_wait(follower *f, void (*woken)(void *context), void *context);

/* True: the follower no longer waits, and `woken` will not be called. False: it was not waiting, or is being woken: `woken` has been called
 * or soon will be, and the follower must stay alive until then. Any thread. */
bool follow_cancel(follower *f);

size_t follow_waiting(container_space *space); /* number of followers that wait for changes of the container */
