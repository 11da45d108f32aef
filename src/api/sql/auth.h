/* auth.h — the authorization field of the SQL API, and what its signatures sign.
 *
 * A client sends authorization: type=master&ver=1.0&sig=… (percent-encoded, or as it is), sig being the base64 of HMAC-SHA256 under its
 * key over
 *
 *     lower(verb) \n  lower(resource type) \n  resource link \n  lower(x-ms-date) \n  \n
 *
 * or, when there is only a Date field, with that on the fifth line instead of the fourth; or type=resource&ver=1&sig=… with a token that
 * the server made. Pure functions, any thread; keys are access/ring.h's. Nothing here is ever logged. */
#pragma once

#include "access/ring.h"
#include "api/sql/route.h"
#include "base/op.h"

/* What an authorization field holds, decoded. */
typedef struct sql_authorization {
    bool is_token;   /* a resource token (access/token.h); else a signature */
    slice signature; /* what follows sig= */
} sql_authorization;

/* E_NO_AUTHORIZATION; E_BAD_AUTHORIZATION: not of this form; E_UNAUTHORIZED: a type that is not accepted. */
MUST_CHECK err sql_auth_read(op *o, slice field, sql_authorization *authorization_out);

/* What is signed. */
typedef struct sql_auth_request {
    slice verb; /* as sent: "GET" */
    const sql_route *route;
    slice x_ms_date; /* fields as sent; p NULL if absent */
    slice date;
} sql_auth_request;

/* Checks against op->now_s, 15 minutes either way. E_UNAUTHORIZED with the service's sentence, which shows the text that should have been
 * signed. Line breaks in it are line breaks: JSON escaping makes them the service's \n. Signatures are compared in constant time. */
MUST_CHECK err sql_auth_verify(op *o, const access_ring *ring, const sql_auth_request *request, slice signature, access_key *key_out);

/* Both, for those who take no tokens. */
MUST_CHECK err sql_auth_check(op *o, const access_ring *ring, const sql_auth_request *request, slice field, access_key *key_out);
