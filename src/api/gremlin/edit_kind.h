/* edit_kind.h — within api/gremlin: the edit ITEM_EDIT_GREMLIN (item/edit.h), which changes properties of a vertex or an edge.
 *
 * Its argument is a list of changes, made in their order:
 *
 *   {"changes":[{"set":key,"value":v,"id":guid,"cardinality":n,"meta":{…}},     a property; "flat":true: of an edge, the key, ttl
 *               {"set":key,"value":v,"of":key,"at":id},                         a meta-property of the property `of` with this id
 *               {"drop":key,"at":id}, {"drop":key,"flat":true}]}                a value of a vertex's property; a property of an edge
 *
 * A new element is made by the same changes, of a document that has only its own members (edit_apply); mostly it is plain. */
#pragma once

#include "api/gremlin/document.h"

enum { EDIT_CHANGES_MAX = 2000, EDIT_PLAIN_MAX = 16 };

void edit_register(void); /* at start */

/* Appends the changes of a target to the argument: all that it writes, or the property that it drops. `random` gives the ids of properties.
 */
MUST_CHECK err edit_add_writes(op *o, const container *c, const gremlin_target *t, bool edge, random_source *random, buf *argument);
void edit_add_drop(const container *c, const gremlin_target *t, buf *argument);

size_t edit_begin(buf *argument);
void edit_end(buf *argument, size_t at);

/* A new element with one value of each property: they are appended to its document, without changes. False: there are keys that occur
 * twice, or too many. */
bool edit_is_plain(const gremlin_target *t);
MUST_CHECK err edit_add_plain(op *o, const container *c, const gremlin_target *t, bool edge, random_source *random, buf *body);

/* The document after the changes, in the operation's arena. E_BAD_REQUEST, E_EDIT_TOO_LONG. */
MUST_CHECK err edit_apply(op *o, slice body, slice argument, item_edit_budget *b, slice *body_out);

void edit_guid(random_source *random, char text[37]);
