#include "base/op.h"

#include <stdio.h>

err op_fail(op *o, err code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(o->detail, sizeof o->detail, format, args);
    va_end(args);
    o->detail_n = n < 0 ? 0 : (size_t)n < sizeof o->detail ? (uint32_t)n : (uint32_t)sizeof o->detail - 1;
    return code;
}
