/* reset.h — `tesela reset`: empties a data folder that no server uses. */
#pragma once

#include "tool/command.h"

extern const tool_command tool_reset;
