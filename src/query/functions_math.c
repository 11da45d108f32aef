/* functions_math.c — numbers are doubles here, except in Int…, which compute with 64-bit integers and wrap around. */
#include "query/function_int.h"

/* ---- one argument ---- */

#define OF_NUMBER(name, expression)                                                                                                        \
    static query_value name(query_context *c, const query_value *args, size_t n) {                                                         \
        (void)c;                                                                                                                           \
        (void)n;                                                                                                                           \
        double x = args[0].number;                                                                                                         \
        return args[0].type == TYPE_NUMBER ? value_number(expression) : value_undefined();                                                 \
    }

OF_NUMBER(math_abs, fabs(x))
OF_NUMBER(math_acos, acos(x))
OF_NUMBER(math_asin, asin(x))
OF_NUMBER(math_atan, atan(x))
OF_NUMBER(math_ceiling, ceil(x))
OF_NUMBER(math_cos, cos(x))
OF_NUMBER(math_cot, 1 / tan(x))
OF_NUMBER(math_degrees, x * 180 / M_PI)
OF_NUMBER(math_exp, exp(x))
OF_NUMBER(math_floor, floor(x))
OF_NUMBER(math_log10, log10(x))
OF_NUMBER(math_radians, M_PI *x / 180)
OF_NUMBER(math_round, round(x)) /* halves are rounded away from zero */
OF_NUMBER(math_sign, x > 0 ? 1 : x < 0 ? -1 : x)
OF_NUMBER(math_sin, sin(x))
OF_NUMBER(math_sqrt, sqrt(x))
OF_NUMBER(math_square, x *x)
OF_NUMBER(math_tan, tan(x))
OF_NUMBER(math_trunc, trunc(x))

/* ---- other arguments ---- */

static bool are_numbers(const query_value *args, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != TYPE_NUMBER) {
            return false;
        }
    }
    return true;
}

static query_value math_atn2(query_context *c, const query_value *args, size_t n) {
    (void)c;
    return are_numbers(args, n) ? value_number(atan2(args[0].number, args[1].number)) : value_undefined();
}

static query_value math_power(query_context *c, const query_value *args, size_t n) {
    (void)c;
    return are_numbers(args, n) ? value_number(pow(args[0].number, args[1].number)) : value_undefined();
}

static query_value math_log(query_context *c, const query_value *args, size_t n) {
    (void)c;
    if (!are_numbers(args, n)) {
        return value_undefined();
    }
    double x = args[0].number, base = n > 1 ? args[1].number : M_E;
    if (n == 1) {
        return value_number(log(x));
    }
    return value_number(base == 10 ? log10(x) : base == 2 ? log2(x) : log(x) / log(base)); /* exact for the usual bases */
}

static query_value math_number_bin(query_context *c, const query_value *args, size_t n) {
    (void)c;
    double size = n > 1 ? args[1].number : 1;
    if (!are_numbers(args, n) || size == 0) {
        return value_undefined();
    }
    return value_number(floor(args[0].number / size) * size);
}

static query_value math_pi(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)args;
    (void)n;
    return value_number(M_PI);
}

static query_value math_rand(query_context *c, const query_value *args, size_t n) {
    (void)args;
    (void)n;
    uint64_t x = *c->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *c->random = x;
    return value_number((double)((x * 0x2545F4914F6CDD1D) >> 11) * 0x1p-53);
}

/* ---- integers ---- */

#define OF_INTEGERS(name, condition, expression)                                                                                           \
    static query_value name(query_context *c, const query_value *args, size_t n) {                                                         \
        (void)c;                                                                                                                           \
        int64_t a = 0, b = 0;                                                                                                              \
        if (!function_whole(&args[0], &a) || (n > 1 && !function_whole(&args[1], &b)) || !(condition)) {                                   \
            return value_undefined();                                                                                                      \
        }                                                                                                                                  \
        uint64_t x = (uint64_t)a, y = (uint64_t)b;                                                                                         \
        (void)x;                                                                                                                           \
        (void)y;                                                                                                                           \
        return value_integer((int64_t)(expression));                                                                                       \
    }

OF_INTEGERS(int_add, true, x + y)
OF_INTEGERS(int_sub, true, x - y)
OF_INTEGERS(int_mul, true, x *y)
OF_INTEGERS(int_div, b != 0, b == -1 ? (int64_t)(0 - x) : a / b) /* INT64_MIN / -1 wraps to itself */
OF_INTEGERS(int_mod, b != 0, b == -1 ? 0 : a % b)
OF_INTEGERS(int_and, true, x &y)
OF_INTEGERS(int_or, true, x | y)
OF_INTEGERS(int_xor, true, x ^ y)
OF_INTEGERS(int_not, true, ~x)
OF_INTEGERS(int_shift_left, true, x << (y & 63))
OF_INTEGERS(int_shift_right, true, a >> (y & 63))

const query_function query_functions_math[] = {
    {"ABS", 1, 1, false, true, math_abs},
    {"ACOS", 1, 1, false, true, math_acos},
    {"ASIN", 1, 1, false, true, math_asin},
    {"ATAN", 1, 1, false, true, math_atan},
    {"ATN2", 2, 2, false, true, math_atn2},
    {"CEILING", 1, 1, false, true, math_ceiling},
    {"COS", 1, 1, false, true, math_cos},
    {"COT", 1, 1, false, true, math_cot},
    {"DEGREES", 1, 1, false, true, math_degrees},
    {"EXP", 1, 1, false, true, math_exp},
    {"FLOOR", 1, 1, false, true, math_floor},
    {"LOG", 1, 2, false, true, math_log},
    {"LOG10", 1, 1, false, true, math_log10},
    {"NumberBin", 1, 2, false, true, math_number_bin},
    {"PI", 0, 0, false, true, math_pi},
    {"POWER", 2, 2, false, true, math_power},
    {"RADIANS", 1, 1, false, true, math_radians},
    {"RAND", 0, 0, false, false, math_rand},
    {"ROUND", 1, 1, false, true, math_round},
    {"SIGN", 1, 1, false, true, math_sign},
    {"SIN", 1, 1, false, true, math_sin},
    {"SQRT", 1, 1, false, true, math_sqrt},
    {"SQUARE", 1, 1, false, true, math_square},
    {"TAN", 1, 1, false, true, math_tan},
    {"TRUNC", 1, 1, false, true, math_trunc},
    {"IntAdd", 2, 2, false, true, int_add},
    {"IntBitAnd", 2, 2, false, true, int_and},
    {"IntBitLeftShift", 2, 2, false, true, int_shift_left},
    {"IntBitNot", 1, 1, false, true, int_not},
    {"IntBitOr", 2, 2, false, true, int_or},
    {"IntBitRightShift", 2, 2, false, true, int_shift_right},
    {"IntBitXor", 2, 2, false, true, int_xor},
    {"IntBitwiseAnd", 2, 2, false, true, int_and},
    {"IntBitwiseLeftShift", 2, 2, false, true, int_shift_left},
    {"IntBitwiseNot", 1, 1, false, true, int_not},
    {"IntBitwiseOr", 2, 2, false, true, int_or},
    {"IntBitwiseRightShift", 2, 2, false, true, int_shift_right},
    {"IntBitwiseXor", 2, 2, false, true, int_xor},
    {"IntDiv", 2, 2, false, true, int_div},
    {"IntMod", 2, 2, false, true, int_mod},
    {"IntMul", 2, 2, false, true, int_mul},
    {"IntMultiply", 2, 2, false, true, int_mul},
    {"IntSub", 2, 2, false, true, int_sub},
    {0},
};
