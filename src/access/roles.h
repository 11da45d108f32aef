/* roles.h — role assignments of Entra ID principals to accounts, databases and containers, as in the service's data-plane RBAC.
 *
 * They come from a file, a JSON array:
 *
 *     [{"principal": "6f1a…", "role": "reader", "scope": "/dbs/shop/colls/orders"},
 *      {"principal": "90b2…", "role": "contributor", "scope": "/"}]
 *
 * A principal is the object id of a user, an application or a group. A scope is the account ("/"), a database ("/dbs/NAME") or a container
 * ("/dbs/NAME/colls/NAME"), and covers what is below it. Read at start, then never changed: any thread. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

typedef enum access_role { ACCESS_NO_ROLE, ACCESS_READER, ACCESS_CONTRIBUTOR } access_role;

typedef struct access_assignment {
    slice principal;
    access_role role;
    slice database, container; /* empty: all of them */
} access_assignment;

/* Assignments side by side, and further ones behind `next`. */
typedef struct access_roles access_roles;
struct access_roles {
    const access_assignment *list;
    size_t n;
    const access_roles *next;
};

/* Reads the file's text into an arena. False, with the reason in `why`: it is no such array. */
bool access_roles_read(arena *a, slice json, access_roles *roles_out, char *why, size_t why_n);

/* Those of one principal: a part of what access_roles_read gave. Ignores case. */
access_roles access_roles_of(const access_roles *all, slice principal);

/* The highest role in a scope. Both empty: the account; `container` empty: the database. */
access_role access_roles_in(const access_roles *roles, slice database, slice container);
bool access_roles_any(const access_roles *roles); /* there is a role in some scope */
