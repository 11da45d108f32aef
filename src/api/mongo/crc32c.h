/* crc32c.h — CRC-32C (Castagnoli), the optional checksum of OP_MSG. Any thread. */
#pragma once

#include "base/slice.h"

uint32_t crc32c(slice bytes);
