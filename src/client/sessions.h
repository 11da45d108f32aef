/* sessions.h — session tokens: what this client has seen of each range, so that its reads see its own writes.
 *
 * A response's token is `range:version#global[#region=local…]`, or several of them with commas between. The newer of two tokens of a range
 * has the higher version, then the higher global number; the numbers of regions are the larger of both. Any thread. */
#pragma once

#include "base/buf.h"

typedef struct sessions sessions;

sessions *client__sessions_new(void);
void client__sessions_free(sessions *s);

/* Remembers the tokens of an answer. `owner` is the container's name path, `rid` its resource id as the server told it (may be empty): if
 * it differs from the one before, the container is another one of the same name, and the old tokens are forgotten. */
void client__sessions_merge(sessions *s, slice owner, slice rid, slice tokens);

/* Appends the container's tokens, of all ranges, with commas between; nothing if there are none. */
void client__sessions_write(sessions *s, slice owner, buf *out);

/* Forgets a container. */
void client__sessions_forget(sessions *s, slice owner);

/* Merges token b into a (both without the range's id), as text. False: one of them is malformed, and `out` has b. */
bool client__session_merge_tokens(slice a, slice b, buf *out);
