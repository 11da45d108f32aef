/* environment.h — warns of environment variables that look like settings but are not: misspelt ones, and those of the vendor's emulator. */
#pragma once

#include "tool/options.h"

/* Logs a warning for each. Values are never read: one may be a key. */
void tool_environment_check(const tool_option *options, size_t n);

/* How a server with these options treats a variable NAME=…. */
typedef enum variable_kind { VARIABLE_OTHER, VARIABLE_SETTING, VARIABLE_UNKNOWN, VARIABLE_EMULATOR } variable_kind;
variable_kind tool_variable_kind(const tool_option *options, size_t n, const char *variable);

/* What to use in tesela instead of an emulator's variable, NAME or NAME=…. Never NULL. */
const char *tool_emulator_hint(const char *variable);
