/* crc32.h — the checksum of zlib, PNG and HybridRow records. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

uint32_t crc32_of(slice bytes);
