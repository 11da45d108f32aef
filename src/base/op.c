#include "base/op.h"

#include <stdio.h>

__attribute__((format(printf, 3, 0))) static void set_detail(op *o, int32_t protocol_code, const char *format, va_list args) {
    int n = vsnprintf(o->detail, sizeof o->detail, format, args);
    o->detail_n = n < 0 ? 0 : (size_t)n < sizeof o->detail ? (uint32_t)n : (uint32_t)sizeof o->detail - 1;
    o->protocol_code = protocol_code;
}

err op_fail(op *o, err code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set_detail(o, 0, format, args);
    va_end(args);
    return code;
}

err op_fail_as(op *o, err code, int32_t protocol_code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set_detail(o, protocol_code, format, args);
    va_end(args);
    return code;
}
