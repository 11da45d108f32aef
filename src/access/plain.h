/* plain.h — SASL PLAIN (RFC 4616): a user name and a password in one message, as MongoDB's, Cassandra's and Gremlin's drivers send it.
 *
 *     [authorization identity] NUL user NUL password
 *
 * The password is an account key or a resource token. The meaning of the user name depends on the protocol: the account's name, or the
 * container that a Gremlin connection uses. Accept it only over TLS or on the same machine: the password is sent in clear. Any thread. */
#pragma once

#include "access/reach.h"

/* Views of the message. */
typedef struct access_plain {
    slice identity; /* authorization identity; mostly empty */
    slice user;
    slice password;
} access_plain;

/* E_BAD_AUTHORIZATION: malformed, not UTF-8, or longer than LIMIT_SASL_BYTES. */
MUST_CHECK err access_plain_read(op *o, slice message, access_plain *plain_out);

/* Reads the message and checks the password. E_BAD_AUTHORIZATION; errors of access_reach_of_password; E_UNAUTHORIZED also if the identity
 * is not the user's name. On an error the reach allows nothing; `user_out` is set if the message could be read. */
MUST_CHECK err access_plain_check(op *o, const access_ring *ring, account *a, slice message, slice *user_out, access_reach *reach_out);
