/* crc32c.h — CRC-32C (Castagnoli): of RocksDB's log, and optional in MongoDB's OP_MSG. Any thread. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

uint32_t crc32c(slice bytes);
uint32_t crc32c_extend(uint32_t crc, slice more);   /* of what `crc` is of, followed by `more` */
uint32_t crc32c_by_table(uint32_t crc, slice more); /* the same, as on processors that have no instruction for it */
