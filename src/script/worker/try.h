/* try.h — tries actions that the sandbox forbids, from inside it; for the tests. */
#pragma once

/* Returns 0 if the action was denied, 1 if it succeeded, 2 if there is no action of that name. Some actions kill the process. */
int try_name(const char *name);
