/* route.h — URL paths of the SQL API: which resource a path names, and the type and link that the client signs for it.
 *
 * A path alternates words and names: /dbs/{d}/colls/{c}/docs/{id}. If it ends on a word it names the feed (the plural kinds below), if on
 * a name the resource. Names are percent-decoded, so they can contain any character. Empty segments are skipped anywhere, as on the
 * service. Words match in any case.
 *
 * By name or by id: a path is by id when its database segment reads as a database's resource id; each further level stays by id as long
 * as it reads as an id of the right kind under the level above. Everything else is a name: so an item id that happens to look like a
 * resource id, such as a GUID in base64, is a name if the database is given by name. A database could still be *named* like an id: if a
 * lookup by id finds nothing at a `_by_rid` level, the caller should try the name. */
#pragma once

#include "account/rid.h"
#include "base/arena.h"
#include "base/err.h"

typedef enum sql_kind {
    SQL_ACCOUNT,
    SQL_DATABASES,
    SQL_DATABASE,
    SQL_CONTAINERS,
    SQL_CONTAINER,
    SQL_ITEMS,
    SQL_ITEM,
    SQL_PKRANGES,
    SQL_PKRANGE,
    SQL_OFFERS,
    SQL_OFFER,
    SQL_SPROCS,
    SQL_SPROC,
    SQL_TRIGGERS,
    SQL_TRIGGER,
    SQL_UDFS,
    SQL_UDF,
    SQL_USERS,
    SQL_USER,
    SQL_PERMISSIONS,
    SQL_PERMISSION,
    SQL_CONFLICTS,
    SQL_CONFLICT,
    SQL_ATTACHMENTS,
    SQL_ATTACHMENT,
    SQL_CLIENT_ENCRYPTION_KEYS,
    SQL_CLIENT_ENCRYPTION_KEY,
    SQL_PARTITION_KEY_DELETE,
} sql_kind;

typedef struct sql_route {
    sql_kind kind;

    slice database;
    slice container;
    slice owner; /* the user of a permission, the item of an attachment */
    slice child; /* the last name, below a container, a user, a database (users and keys) or the account (offers) */

    bool database_by_rid; /* these levels are resource ids, parsed into the fields below */
    bool container_by_rid;
    bool owner_by_rid;
    bool child_by_rid;
    rid database_rid;
    rid container_rid;
    rid owner_rid;
    rid child_rid;

    slice type;     /* the resource type that the client signs: "docs"; "" for the account */
    slice link;     /* the resource link that it signs: "dbs/d/colls/c/docs/id"; for a feed its parent's: "dbs/d/colls/c" */
    slice link_rid; /* alternative to sign if the path is by id, and for offers: the last id alone, in lower case; else p is NULL */
} sql_route;

/* The route's slices live in `a`. E_BAD_URL: no such path, a bad escape, or a name that is not UTF-8. */
MUST_CHECK err sql_route_parse(arena *a, slice path, sql_route *route_out);
