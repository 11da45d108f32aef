/* xml.h — within api/table: the small XML documents of access policies and service properties, as BSON and back.
 *
 * An element that has elements in it is a document of them; any other is its text:
 *
 *   <A><B>1</B><B>2</B><C/></A>     {"A": {"B": "1", "B": "2", "C": ""}}
 *
 * Attributes, comments and the prolog are skipped. Document types and CDATA are refused, and so is nesting beyond 8 levels. Pure functions.
 */
#pragma once

#include "api/table/errors.h"
#include "base/buf.h"

table_error xml_read(op *o, slice text, slice *bson_out); /* lives in the op's arena */
void xml_write(buf *out, slice bson);                     /* with the prolog */

/* ---- looking into such a document ---- */
slice xml_child(slice bson, const char *name); /* a document; empty: it is not there */
slice xml_text(slice bson, const char *name);  /* a text; p NULL: it is not there */
