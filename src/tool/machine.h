/* machine.h — how much memory this process may use: the machine's, or less if a control group or `ulimit -v` limits it. */
#pragma once

#include <stdint.h>

uint64_t machine_memory_bytes(void);
