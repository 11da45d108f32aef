/* serve.h — `tesela serve`: opens the data folder, listens, runs until told to stop. */
#pragma once

#include "tool/command.h"

extern const tool_command tool_serve;
