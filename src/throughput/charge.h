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
#define CHARGE_STRONG_READ_FACTOR 2.0 /* strong and bounded staleness read two replicas */

#define CHARGE_CHANGES 2.0 /* a page of the change feed, with nothing in it too; its items cost what a query's do */

double charge_read(size_t bytes);
double charge_create(size_t bytes, size_t terms);
double charge_replace(size_t bytes, size_t terms_changed); /* terms removed + terms added */
double charge_patch(size_t bytes, size_t terms_changed, size_t properties);
double charge_delete(size_t bytes, size_t terms);

/* ---- scripts ----
 *
 * A script costs CHARGE_SCRIPT and what its reads, queries and writes cost each. Processor time is not part of it, up to a limit that only
 * scripts pass which reckon for long: half a second. What is beyond costs CHARGE_SCRIPT_SECOND a second. */
#define CHARGE_SCRIPT 1.0
#define CHARGE_SCRIPT_SECOND 100.0
enum { CHARGE_SCRIPT_FREE_US = 500000 };
double charge_script(long long cpu_us);

/* ---- queries ----
 *
 * A page of a query costs CHARGE_QUERY for each range that it comes to, and for its work. The points (seen on the service, and in its
 * documentation on slow queries):
 *
 *   an empty page  2.25        1000 rows of two columns   17.16      a scan of 60,951 items of 6,563 bytes    4,059.95
 *   one row        2.26        2500                       34.72
 *
 * So an item of up to 1 KB that is loaded, with the row it gives, costs 0.01491, after 1000 of them 0.01171; each KB more is 0.8655 of
 * another item. An item that only its index entry is asked of (it is counted, or excluded by a condition that the index knows) costs a
 * tenth of that or less, the first CHARGE_ENTRIES_FREE of a page nothing. That price, and those of more rows than items (JOINs) and of
 * bytes, are guesses of the right size. */
#define CHARGE_QUERY 2.25
#define CHARGE_ENTRY 0.001
#define CHARGE_QUERY_ROW 0.005 /* a row beyond one for each item loaded */
#define CHARGE_QUERY_STEP                                                                                                                  \
    0.00002                  /* of evaluation, by a page that ends in an error: chosen, about 2 RU for each millisecond of a processor */
#define CHARGE_UDF_CALL 0.01 /* of a user-defined function, whose value the page used: chosen, the service's price is not known */
enum { CHARGE_ENTRIES_FREE = 512 };

double charge_query_weight(size_t bytes);                /* of an item loaded: 1 up to 1 KB */
double charge_query_items(double before, double weight); /* items of this weight, after so much of the same page */
double charge_query_row_bytes(size_t bytes);             /* a row's JSON: the first KB is part of its item's price */

/* Looking for the nearest of so many vectors with a list of this length: what a graph looks at of them, each for CHARGE_VECTOR. Chosen, the
 * service's price is not known. */
#define CHARGE_VECTOR 0.01
double charge_query_search(double vectors, double list);
