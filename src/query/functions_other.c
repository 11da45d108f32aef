/* functions_other.c — functions without a category. HASH is left out: Microsoft's tools name it, but do not say what it computes. */
#include "query/function_int.h"

static query_value other_iif(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    return value_is_true(&args[0]) ? args[1] : args[2];
}

/* Bytes 8 to 15 of the item's _rid, as an integer. */
static query_value other_document_id(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    return args[0].item ? value_integer((int64_t)args[0].item->number) : value_undefined();
}

const query_function query_functions_other[] = {
    {"IIF", 3, 3, true, true, other_iif},
    {"DOCUMENTID", 1, 1, false, true, other_document_id},
    {0},
};
