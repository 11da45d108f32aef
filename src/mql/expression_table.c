/* expression_table.c — the table of operators, joined from the rows of each kind. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "mql/expression_int.h"

static const mql__operators *const kinds[] = {
    &mql__accumulator_operators,     &mql__hash_operators,      &mql__arithmetic_operators,
    &mql__array_operators,           &mql__bits_operators,      &mql__compare_operators,
    &mql__control_operators,         &mql__convert_operators,   &mql__date_operators,
    &mql__date_arithmetic_operators, &mql__date_text_operators, &mql__math_operators,
    &mql__object_operators,          &mql__pattern_operators,   &mql__set_operators,
    &mql__string_operators,          &mql__substring_operators, &mql__variable_operators,
};

enum { KINDS = sizeof kinds / sizeof *kinds };

const mql__operator *mql__operator_at(size_t position) {
    for (size_t k = 0; k < KINDS; k++) {
        if (position < kinds[k]->n) {
            return &kinds[k]->rows[position];
        }
        position -= kinds[k]->n;
    }
    return NULL;
}

/* ---- by name: an index that is sorted when it is first used ---- */

enum { ROWS_MAX = 512 };

static struct {
    pthread_once_t once;
    const mql__operator *rows[ROWS_MAX];
    size_t n;
} sorted = {.once = PTHREAD_ONCE_INIT};

static int by_name(const void *a, const void *b) {
    return strcmp((*(const mql__operator *const *)a)->name, (*(const mql__operator *const *)b)->name);
}

static void sort_rows(void) {
    const mql__operator *row;
    while (sorted.n < ROWS_MAX && (row = mql__operator_at(sorted.n))) {
        sorted.rows[sorted.n++] = row;
    }
    assert(sorted.n < ROWS_MAX);
    qsort(sorted.rows, sorted.n, sizeof *sorted.rows, by_name);
}

const mql__operator *mql__operator_find(slice name) {
    pthread_once(&sorted.once, sort_rows);
    size_t low = 0, high = sorted.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int by = slice_cmp(name, slice_str(sorted.rows[middle]->name));
        if (by == 0) {
            return sorted.rows[middle];
        }
        *(by < 0 ? &high : &low) = by < 0 ? middle : middle + 1;
    }
    return NULL;
}
