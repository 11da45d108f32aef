/* order_int.h — numbers of doc/order.h. For this folder. */
#pragma once

#include "doc/order.h"

/* int32, int64, double and Decimal128. */
static inline bool doc__is_order_number(bson_type_t type) {
    return doc_is_number(type) || type == BSON_TYPE_DECIMAL128;
}

/* Writes a number's spelling without the bracket byte. Returns its length, at most DOC_ORDER_NUMBER_BYTES - 1. */
size_t doc__order_spell_number(char *into, const doc_element *e);

int doc__order_compare_numbers(const doc_element *a, const doc_element *b);

/* Reads an ascending spelling that doc__order_spell_number wrote, and stores the number's bytes in `value`. Returns the length read, or 0
 * if the spelling is not canonical. */
size_t doc__order_read_number(slice spelled, char value[16], bson_type_t *type_out);
