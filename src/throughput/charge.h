/* charge.h — what work costs, in request units. The one price list.
 *
 * Charges come from bytes and index terms, never from time: the same request on the same data costs the same everywhere. The published
 * table of the service gives the price by size; the price per term and the number of terms per property were found by solving the charges
 * seen on the hosted service, which are all exact multiples of 1/21:
 *
 *   create {"id","pk","n","s"}    6.67 = 140/21 = 104/21 + 9 terms      two creates of 3 properties in a batch  12.57 = 2 × 132/21
 *   delete of it                  6.67                                  a create of 5 properties                 7.05 = 148/21
 *   upsert over it, one change   10.67 = 224/21 = 2 × 104/21 + 4 terms  replace, one change and one addition    11.05 = 232/21
 *
 * So a term costs 4/21, an item has one term of its own and two for each indexed scalar. Sizes are those of the stored item. */
#pragma once

#include <stddef.h>

#define CHARGE_TERM (4.0 / 21)
#define CHARGE_THROTTLED 0.38 /* a 429 answer */
#define CHARGE_FAILED 1.0     /* 404, 409, 412, 400 after a look at the store */
#define CHARGE_PATCHED_PROPERTY 0.4
#define CHARGE_METADATA_READ 2.0 /* a database or container */
#define CHARGE_METADATA_WRITE 1.0
#define CHARGE_METADATA_DELETE 2.0
#define CHARGE_FEED_MIN 1.0           /* a page with nothing in it */
#define CHARGE_QUERY 2.25             /* a page of a query, before anything is found */
#define CHARGE_QUERY_ITEM 0.01        /* an item looked at */
#define CHARGE_QUERY_ROW 0.01         /* a row in the page */
#define CHARGE_STRONG_READ_FACTOR 2.0 /* strong and bounded staleness read two replicas */

double charge_read(size_t bytes);
double charge_create(size_t bytes, size_t terms);
double charge_replace(size_t bytes, size_t terms_changed); /* terms removed + terms added */
double charge_patch(size_t bytes, size_t terms_changed, size_t properties);
double charge_delete(size_t bytes, size_t terms);
