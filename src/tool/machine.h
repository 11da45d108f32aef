/* machine.h — how much memory this process may have: the machine's, or less where a control group or `ulimit -v` says so. */
#pragma once

#include <stdint.h>

uint64_t machine_memory_bytes(void);
