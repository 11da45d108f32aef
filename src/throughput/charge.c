#include "throughput/charge.h"

#include <math.h>

/* The service's table: KB, RU to read, RU to write without indexing. */
static const struct price {
    double kb, read, write;
} prices[] = {
    {1, 1.00, 104.0 / 21}, {2, 1.04, 6.29},    {4, 1.14, 6.67},     {8, 1.33, 7.04},      {16, 1.67, 9.52},       {32, 2.19, 11.23},
    {64, 4.76, 22.67},     {128, 9.95, 48.19}, {256, 20.28, 98.29}, {512, 40.95, 184.57}, {1024, 145.90, 625.00}, {2048, 291.80, 1250.00},
};

enum { PRICES = sizeof prices / sizeof *prices };

/* Linear between the table's points, flat below the first, the last slope beyond the end. */
static struct price price_of(size_t bytes) {
    double kb = (double)bytes / 1024;
    if (kb <= prices[0].kb) {
        return prices[0];
    }
    unsigned i = 1;
    while (i < PRICES - 1 && kb > prices[i].kb) {
        i++;
    }
    const struct price *low = &prices[i - 1], *high = &prices[i];
    double part = (kb - low->kb) / (high->kb - low->kb);
    return (struct price){kb, low->read + part * (high->read - low->read), low->write + part * (high->write - low->write)};
}

double charge_read(size_t bytes) {
    return price_of(bytes).read;
}

double charge_create(size_t bytes, size_t terms) {
    return price_of(bytes).write + (double)terms * CHARGE_TERM;
}

double charge_replace(size_t bytes, size_t terms_changed) {
    return 2 * price_of(bytes).write + (double)terms_changed * CHARGE_TERM;
}

double charge_patch(size_t bytes, size_t terms_changed, size_t properties) {
    return charge_replace(bytes, terms_changed) + (double)properties * CHARGE_PATCHED_PROPERTY;
}

double charge_delete(size_t bytes, size_t terms) {
    return charge_create(bytes, terms);
}

double charge_script(long long cpu_us) {
    long long beyond = cpu_us - CHARGE_SCRIPT_FREE_US;
    return CHARGE_SCRIPT + (beyond > 0 ? CHARGE_SCRIPT_SECOND * (double)beyond / 1e6 : 0);
}

/* ---- queries ---- */

#define WEIGHT_DEAR 1000.0                         /* the first part of a page, at the higher price */
#define PRICE_DEAR ((17.16 - CHARGE_QUERY) / 1000) /* from the charge of 1000 rows */
#define PRICE_CHEAP ((34.72 - 17.16) / 1500)       /* from the charge of 2500 rows */
#define WEIGHT_PER_KB 0.8655
#define PRICE_ROW_KB 0.03

static double kilobytes_beyond_one(size_t bytes) {
    return bytes > 1024 ? (double)(bytes - 1024) / 1024 : 0;
}

double charge_query_weight(size_t bytes) {
    return 1 + WEIGHT_PER_KB * kilobytes_beyond_one(bytes);
}

static double price_up_to(double weight) {
    return weight <= WEIGHT_DEAR ? weight * PRICE_DEAR : WEIGHT_DEAR * PRICE_DEAR + (weight - WEIGHT_DEAR) * PRICE_CHEAP;
}

double charge_query_items(double before, double weight) {
    return price_up_to(before + weight) - price_up_to(before);
}

double charge_query_row_bytes(size_t bytes) {
    return PRICE_ROW_KB * kilobytes_beyond_one(bytes);
}

double charge_query_search(double vectors, double list) {
    return CHARGE_VECTOR * fmin(vectors, list * log2(vectors + 1));
}
