/* steer.h — the commands that watch, explain and change a running server; each has its own file. */
#pragma once

#include "tool/command.h"

extern const tool_command tool_top, tool_explain, tool_split, tool_merge, tool_events, tool_fault, tool_keys, tool_inspect, tool_advise,
    tool_export, tool_import, tool_copy, tool_rekey;
