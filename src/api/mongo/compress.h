/* compress.h — the compressors of OP_COMPRESSED: snappy, zlib, zstd. Expanding never writes more bytes than the caller asks for. */
#pragma once

#include "base/buf.h"

typedef enum wire_compressor { COMPRESS_NONE, COMPRESS_SNAPPY, COMPRESS_ZLIB, COMPRESS_ZSTD, COMPRESS_COUNT } wire_compressor;

extern const char *const compress_names[COMPRESS_COUNT]; /* as `compression` of the handshake names them; "noop" for none */

/* Expands into exactly `n` bytes. False: the input has another length or is malformed, or the compressor is unknown. */
bool compress_expand(wire_compressor with, slice bytes, char *to, size_t n);

/* Appends the compressed bytes. False: it failed, or `out` has no room; its length is then as before. */
bool compress_add(buf *out, wire_compressor with, slice bytes);
