/* token.h — Cassandra's tokens: the place of a partition key on the ring that its clients see.
 *
 * In containers of the Cassandra API a key's EPK (epk.h) begins with its token, so that token order is the order of the hash space and a
 * range of tokens is a part of it. Cassandra hashes a key's bytes as its protocol has them; the definition names the type of each
 * component, because BSON does not tell an int from a smallint. Pure functions, any thread. */
#pragma once

#include "partition/partition_key.h"

/* For a component whose value is the key text of its bytes (cql/value.h). */
enum { TOKEN_KEY_TEXT = 0xFF };

/* False: a component is not a value of its type, as when another API asks for such a key; no item has it. */
bool token_of(const pkey_definition *definition, const pkey *key, int64_t *token_out);
