/* environment.h — variables that look like settings and are none: misspelt ones, and those of the vendor's emulator. */
#pragma once

#include "tool/options.h"

/* Logs a warning for each. Values are not looked at: one may be a key. */
void tool_environment_check(const tool_option *options, size_t n);

/* What a variable NAME=… is to a server with these options. */
typedef enum variable_kind { VARIABLE_OTHER, VARIABLE_SETTING, VARIABLE_UNKNOWN, VARIABLE_EMULATOR } variable_kind;
variable_kind tool_variable_kind(const tool_option *options, size_t n, const char *variable);

/* What tesela has instead of an emulator's variable, NAME or NAME=…. Never NULL. */
const char *tool_emulator_hint(const char *variable);
