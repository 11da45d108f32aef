/* follow.h — the changes of a container as one stream, with waiting.
 *
 * A *follower* reads the changes of a whole container, of a part of its hash space, or of one logical partition, over all the ranges that
 * these are in, whatever is split and merged meanwhile. Changes of one logical partition come in the order of their writes; ranges take
 * turns. Two modes: the latest version of each item (a delete leaves no trace), or every version and delete, if the container keeps a log
 * of them (item/versions.h).
 *
 * Where a follower stands is its *position*: bytes that a front end may hand out and take back, after a restart too. They name the
 * container by number, the hash space that is followed, and an lsn for each stretch of it. Nothing in them is trusted.
 *
 *     u8 version (1) · u8 mode · u8 kind (0 a part of the hash space, 1 a logical partition) · u32 container · i64 since_s · u16 stretches
 *     bound · stretches × (u64 lsn · bound)          numbers big-endian; a bound is u8 bytes · the EPK's bytes; kind 1: the EPK · lsn · the
 * EPK
 *
 * A follower that has read everything *waits*: the commit that brings the next change wakes it, from the committer's thread, as soon as
 * the change can be read. Nobody polls, so an idle follower costs its memory alone. It is woken once; it must read until there is no more,
 * and wait again. A wake is a hint: what is read may be nothing, for example after a delete in the latest mode. A follower of a logical
 * partition is woken by writes of that partition only; one of a part of the hash space by writes of the ranges that the part is in.
 *
 *     err code = follow_open(items, o, c, &start, &f);
 *     for (;;) {
 *         do { code = follow_read(f, o, c, &page, visit, context); … follow_position(f, &bytes); } while (code == OK && page.more);
 *         if (follow_wait(f, woken, context)) break;        // goes on in `woken`, which posts to the follower's loop
 *     }
 *
 * One thread at a time may use a follower, but for follow_cancel's race with the wake. It keeps the container's space, not a version of the
 * container: give it the newest one with every read. A time-out of waiting is a timer of the follower's loop that calls follow_cancel. */
#pragma once

#include "item/versions.h"

typedef struct follower follower;

typedef enum follow_mode { FOLLOW_LATEST, FOLLOW_VERSIONS, FOLLOW_MODES } follow_mode;

typedef struct follow_start {
    follow_mode mode;

    /* What is followed: a logical partition; or [min, max), of that only keys that begin with `prefix` if there is one. All of the
     * container: epk_min(), epk_max(). Copied. */
    const item_key *partition; /* its id is not looked at */
    const pkey *prefix;
    epk min, max;

    /* From where on: a position; or now; or a second (of the latest mode only); or, if none of these is given, from the beginning. */
    slice position;
    bool from_now;
    int64_t since_s;
} follow_start;

/* E_BAD_CONTINUATION: the position is none, or is of another container, another mode or another part of the hash space. E_BAD_REQUEST with
 * a sentence: the container keeps no versions, or has more ranges than one follower may have (LIMIT_FOLLOW_STRETCHES). */
MUST_CHECK err follow_open(const items *s, op *o, container *c, const follow_start *start, follower **follower_out);
void follow_close(follower *f); /* it must not wait: see follow_cancel. NULL is nothing */

/* ---- reading ---- */

typedef enum follow_kind { FOLLOW_WRITTEN, FOLLOW_CREATED, FOLLOW_REPLACED, FOLLOW_DELETED } follow_kind;

typedef struct follow_change {
    follow_kind kind; /* FOLLOW_WRITTEN in the latest mode: made or replaced */
    bool expired;     /* of a delete: by its ttl */
    uint64_t lsn, previous_lsn;
    uint32_t ts;    /* of the write, seconds */
    item_head head; /* of the item; of a delete, as it was */
    slice body;     /* likewise; BSON, until the visitor returns */
} follow_change;

/* False: the page ends before this change; it is given again, and so are those before it that have the same lsn. */
typedef bool (*follow_visit)(void *context, const follow_change *change);

typedef struct follow_page {
    size_t items_max; /* at least 1 */
    size_t bytes_max; /* of bodies; the first change is always taken. A few more may come where a merge left two changes with one lsn */
    int64_t until_us; /* monotonic: the page ends then, with what it has; 0: it need not */

    size_t n;       /* changes that were taken */
    bool more;      /* there may be more at once */
    item_mark mark; /* of the range that was read last; if n */
} follow_page;

/* The next changes. `c` is the newest version of the container. What is read is admitted and charged as item_changes_read's is; if there
 * is nothing new it costs nothing. The position moves along, or after an error stays where it was.
 * E_OWNER_NOT_FOUND: the container was deleted. E_THROTTLED, only if nothing was read. E_BAD_REQUEST with a sentence: versions that come
 * next are not kept any more. */
MUST_CHECK err follow_read(follower *f, op *o, container *c, follow_page *page, follow_visit visit, void *context);

/* Appends where the follower stands. */
void follow_position(const follower *f, buf *out);

/* ---- waiting ---- */

/* True: the follower waits, and `woken` will be called, once, unless follow_cancel says otherwise. False: there may be something new (or
 * the container is gone): read now. `woken` is called by the committer while others wait for it: it must hand over and return. It may be
 * called before follow_wait returns: who is woken uses the follower after that (a loop that waits, and is posted to, does). */
bool follow_wait(follower *f, void (*woken)(void *context), void *context);

/* True: the follower does not wait any more, and `woken` is not called. False: it did not wait, or it is being woken: `woken` has been
 * called or will be in a moment, and the follower must live until then. Any thread. */
bool follow_cancel(follower *f);

size_t follow_waiting(container_space *space); /* how many wait for changes of the container */
