/* wire_int.h — what the readers and writers of the wire formats share. For this folder. */
#pragma once

#include "gremlin/build_int.h"
#include "gremlin/wire.h"

typedef struct source {
    op *op;
    arena *arena;
    gremlin_builder *builder;
    const gremlin_limits *limits;
    unsigned depth;
} source;

MUST_CHECK err gremlin__malformed(source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
MUST_CHECK err gremlin__deeper(source *s); /* one level down; the caller subtracts it again */

/* graphson_read.c */
MUST_CHECK err gremlin__graphson_read(source *s, slice text, gremlin_value *value_out);
/* The same for a request, whose id is found even if the rest is refused. */
MUST_CHECK err gremlin__graphson_read_request(source *s, slice text, gremlin_request *request, gremlin_value *value_out);
/* graphson_write.c */
bool gremlin__graphson_write(buf *out, gremlin_format format, gremlin_value v);
/* graphbinary_read.c: takes a value off the front. `typed`: with its type code and null flag. */
MUST_CHECK err gremlin__binary_read(source *s, slice *rest, gremlin_value *value_out);
MUST_CHECK err gremlin__binary_text(source *s, slice *rest, slice *text_out);             /* length and bytes */
MUST_CHECK err gremlin__binary_size(source *s, slice *rest, size_t least, size_t *n_out); /* a count of things of `least` bytes */
/* graphbinary_write.c */
bool gremlin__binary_write(buf *out, gremlin_value v);
void gremlin__binary_add_text(buf *out, slice text);

bool gremlin__uuid_read(slice text, uint8_t bytes[16]);
void gremlin__uuid_write(buf *out, const uint8_t bytes[16]);

/* Bytecode: a list of instructions, each a list that begins with a name. */
MUST_CHECK err gremlin__instruction(source *s, gremlin_draft *d, slice name, const gremlin_items *args);
/* What makes values of parts, in any format. */
gremlin_value gremlin__binding_value(gremlin_value key, gremlin_value value);
