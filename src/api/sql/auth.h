/* auth.h — the authorization field of the SQL API, and the text that a signature covers.
 *
 * A client sends authorization: type=master&ver=1.0&sig=… (percent-encoded or not), where sig is the base64 of the HMAC-SHA256 under its
 * key over
 *
 *     lower(verb) \n  lower(resource type) \n  resource link \n  lower(x-ms-date) \n  \n
 *
 * (if the request has only a Date field, its value is on the fifth line instead of the fourth); or type=resource&ver=1&sig=… with a token
 * that the server issued; or type=aad&ver=1.0&sig=… with an Entra ID token. Pure functions, any thread; access/ring.h holds the keys.
 * Nothing here is ever logged. */
#pragma once

#include "access/ring.h"
#include "api/sql/route.h"
#include "base/op.h"

/* A decoded authorization field. */
typedef struct sql_authorization {
    bool is_token;   /* a resource token (access/token.h) */
    bool is_jwt;     /* an Entra ID token (access/aad.h); neither: a signature */
    slice signature; /* the value of sig= */
} sql_authorization;

/* E_NO_AUTHORIZATION: the field is missing. E_BAD_AUTHORIZATION: malformed. E_UNAUTHORIZED: a type that is not accepted. */
MUST_CHECK err sql_auth_read(op *o, slice field, sql_authorization *authorization_out);

/* The parts of a request that are signed. */
typedef struct sql_auth_request {
    slice verb; /* as sent: "GET" */
    const sql_route *route;
    slice x_ms_date; /* fields as sent; p NULL if absent */
    slice date;
} sql_auth_request;

/* Verifies the signature, and that the date is within 15 minutes of op->now_s. E_UNAUTHORIZED with the service's sentence, which shows the
 * text that should have been signed. It contains real line breaks, which JSON escaping turns into the service's \n. Signatures are compared
 * in constant time. */
MUST_CHECK err sql_auth_verify(op *o, const access_ring *ring, const sql_auth_request *request, slice signature, access_key *key_out);

/* sql_auth_read and sql_auth_verify, for callers that accept no resource tokens. */
MUST_CHECK err sql_auth_check(op *o, const access_ring *ring, const sql_auth_request *request, slice field, access_key *key_out);
