/* Types (cql/type.h): text, Java's class names and options of the protocol. A type that is read is written as text that reads as the same.
 */
#include <assert.h>

#include "cql/type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_custom(const cql_type *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        if (has_custom(t->inner[i])) {
            return true;
        }
    }
    return t->kind == CQL_CUSTOM || t->kind == CQL_UDT;
}

/* The text of a type reads as the same type. */
static void check_text(op *o, const cql_type *type) {
    buf text = buf_init(1 << 20);
    const cql_type *again;
    cql_type_write(&text, type);
    if (buf_ok(&text) && !has_custom(type) && cql_type_read(o, buf_view(&text), &again) == OK) {
        buf second = buf_init(1 << 20);
        cql_type_write(&second, again);
        assert(slice_eq(buf_view(&text), buf_view(&second)));
        buf_free(&second);
    }
    buf_free(&text);
}

/* So does its option in each version of the protocol, but for freezing, which the protocol does not have. */
static void check_wire(op *o, const cql_type *type) {
    for (unsigned version = 3; version <= 5; version++) {
        buf wire = buf_init(1 << 20), again = buf_init(1 << 20);
        const cql_type *back;
        cql_type_encode(&wire, type, version);
        slice rest = buf_view(&wire);
        if (buf_ok(&wire) && wire.n < 60000 && cql_type_decode(o, &rest, &back) == OK) {
            assert(rest.n == 0);
            cql_type_encode(&again, back, version);
            assert(has_custom(type) || slice_eq(buf_view(&wire), buf_view(&again)));
        }
        buf_free(&wire);
        buf_free(&again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget b = budget_init(NULL, 16 << 20);
    arena memory = arena_init_counted(&b);
    slice text = slice_of(data, size), rest = text;
    const cql_type *type;
    op o;
    op_init(&o, &memory, 0);
    if (cql_type_read(&o, text, &type) == OK) {
        check_text(&o, type);
        check_wire(&o, type);
    }
    type = cql_type_by_class(&memory, text);
    if (type) {
        check_wire(&o, type);
    }
    if (cql_type_decode(&o, &rest, &type) == OK) {
        check_text(&o, type);
        check_wire(&o, type);
    }
    arena_free(&memory);
    return 0;
}
