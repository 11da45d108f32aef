/* number.h — arithmetic on the four number types, with MongoDB's rules for the type of the result: int32 grows to int64 and then to double,
 * a double makes a double, a Decimal128 makes a Decimal128 (IEEE 754 decimal128, round half to even; decimal.h). Any thread. */
#pragma once

#include "mql/decimal.h"
#include "mql/run.h"

/* Both operands are numbers. The result lives in the arena. */
mql_value mql_sum(arena *a, mql_value x, mql_value y);
mql_value mql_difference(arena *a, mql_value x, mql_value y);
mql_value mql_product(arena *a, mql_value x, mql_value y);

/* The same for updates ($inc, $mul), where int64 does not grow: false if it would overflow. */
bool mql_sum_exact(arena *a, mql_value x, mql_value y, mql_value *sum_out);
bool mql_product_exact(arena *a, mql_value x, mql_value y, mql_value *product_out);

/* The type of the result for operands of these types: the wider one, in the order int32, int64, double, Decimal128. */
bson_type_t mql_number_type(bson_type_t x, bson_type_t y);
/* An integer as int32 if it fits and neither operand was an int64, otherwise as int64. */
mql_value mql_integer(arena *a, bson_type_t type, int64_t number);
/* A number of any type as a decimal; doubles are rounded to 15 digits, as MongoDB does. */
bson_decimal128_t mql_to_decimal(mql_value v);

/* A double as a decimal, exactly up to 34 digits: 0.1 becomes 0.1000000000000000055511151231257827. */
bson_decimal128_t mql_decimal_exact(double number);

/* A number converted to a type, as $toInt and the others do: fractions are cut off. False if it is out of the type's range; NaN and
 * infinities are out of range of the integers. */
bool mql_number_to(arena *a, mql_value v, bson_type_t type, mql_value *number_out);
