/* aad.h — Entra ID (Azure AD) tokens: JSON Web Tokens that an identity provider has signed, and the roles of their principals (roles.h).
 *
 * A token is accepted if it is signed (RS256) by one of the issuer's keys, a JSON Web Key Set in a file, and if it is from that issuer, for
 * this audience, and valid at this time, five minutes more or less. Its principal is the claim `oid`; the groups in the claim `groups`
 * count too. cjose verifies signatures; this module checks the claims.
 *
 * The emulator's way, for tests on one's own machine: any well-formed token is accepted, whoever signed it, and may do what a contributor
 * may. The caller makes sure that nobody else reaches the server.
 *
 * Read at start, then never changed: any thread. Tokens are never logged, nor shown in errors. */
#pragma once

#include "access/reach.h"
#include "access/roles.h"

typedef struct access_aad access_aad;

typedef struct access_aad_options {
    const char *issuer, *audience; /* the claims `iss` and `aud`; several audiences with commas between */
    const char *keys_file, *roles_file;
    bool any; /* the emulator's way; the others are not read then */
} access_aad_options;

enum { ACCESS_AAD_WHY_BYTES = 512 };

/* On error NULL, with the reason in `why`. */
access_aad *access_aad_open(const access_aad_options *options, char why[static ACCESS_AAD_WHY_BYTES]);
void access_aad_close(access_aad *aad); /* NULL is fine */

/* From a token. `aad` NULL: none are accepted. E_UNAUTHORIZED with a sentence. Roles live in the operation's arena. */
MUST_CHECK err access_reach_of_jwt(op *o, const access_aad *aad, slice token, access_reach *reach_out);
