/* charge.h — the price list: what operations cost in request units.
 *
 * Charges depend on bytes and index terms, never on time: the same request on the same data costs the same everywhere. The price by size is
 * the service's published table. The price per term and the number of terms per property were derived from charges observed on the hosted
 * service, which are all exact multiples of 1/21:
 *
 *   create {"id","pk","n","s"}    6.67 = 140/21 = 104/21 + 9 terms      two creates of 3 properties in a batch  12.57 = 2 × 132/21
 *   delete of it                  6.67                                  a create of 5 properties                 7.05 = 148/21
 *   upsert over it, one change   10.67 = 224/21 = 2 × 104/21 + 4 terms  replace, one change and one addition    11.05 = 232/21
 *
 * So a term costs 4/21, and an item has one term of its own and two for each indexed scalar. Sizes are those of the stored item. */
#pragma once

#include <stddef.h>

#define CHARGE_TERM (4.0 / 21)
#define CHARGE_THROTTLED 0.38 /* a 429 answer */
#define CHARGE_FAILED 1.0     /* 404, 409, 412, or 400 after a read of the store */
#define CHARGE_PATCHED_PROPERTY 0.4
#define CHARGE_METADATA_READ 2.0 /* a database or container */
#define CHARGE_METADATA_WRITE 1.0
#define CHARGE_METADATA_DELETE 2.0
#define CHARGE_FEED_MIN 1.0           /* an empty page */
#define CHARGE_STRONG_READ_FACTOR 2.0 /* strong and bounded staleness read two replicas */

#define CHARGE_CHANGES 2.0 /* a page of the change feed, even if empty; its items cost the same as a query's */

double charge_read(size_t bytes);
double charge_create(size_t bytes, size_t terms);
double charge_replace(size_t bytes, size_t terms_changed); /* terms removed + terms added */
double charge_patch(size_t bytes, size_t terms_changed, size_t properties);
double charge_delete(size_t bytes, size_t terms);

/* ---- scripts ----
 *
 * A script costs CHARGE_SCRIPT plus the charges of its reads, queries and writes. The first half second of processor time is free, which
 * only compute-heavy scripts exceed; after that a second costs CHARGE_SCRIPT_SECOND. */
#define CHARGE_SCRIPT 1.0
#define CHARGE_SCRIPT_SECOND 100.0
enum { CHARGE_SCRIPT_FREE_US = 500000 };
double charge_script(long long cpu_us);

/* ---- queries ----
 *
 * A page of a query costs CHARGE_QUERY for each range that it reads, plus the charge for its work. The data points, observed on the service
 * and in its documentation on slow queries:
 *
 *   an empty page  2.25        1000 rows of two columns   17.16      a scan of 60,951 items of 6,563 bytes    4,059.95
 *   one row        2.26        2500                       34.72
 *
 * So loading an item of up to 1 KB, with its row, costs 0.01491, or 0.01171 after the first 1000 of a page; each further KB counts as
 * 0.8655 of another item. If only an item's index entry is read (to count it, or to exclude it by a condition that the index decides), it
 * costs a tenth of that or less, and the first CHARGE_ENTRIES_FREE of a page are free. That price, and those of rows beyond one per item
 * (JOINs) and of bytes, are estimates. */
#define CHARGE_QUERY 2.25
#define CHARGE_ENTRY 0.001
#define CHARGE_QUERY_ROW 0.005    /* a row beyond one for each item loaded */
#define CHARGE_QUERY_STEP 0.00002 /* a step of evaluation, if the page fails: our choice, about 2 RU per millisecond of processor time */
#define CHARGE_UDF_CALL 0.01 /* a call of a user-defined function whose value the page used: our choice, the service's price is unknown */
enum { CHARGE_ENTRIES_FREE = 512 };

double charge_query_weight(size_t bytes);                /* weight of a loaded item: 1 up to 1 KB */
double charge_query_items(double before, double weight); /* items of `weight`, after items of weight `before` on the same page */
double charge_query_row_bytes(size_t bytes);             /* a row's JSON; the first KB is included in the item's price */

/* A vector search in a graph of `vectors` with a search list of length `list`: CHARGE_VECTOR for each vector that the graph compares. Our
 * choice; the service's price is unknown. */
#define CHARGE_VECTOR 0.01
double charge_query_search(double vectors, double list);
