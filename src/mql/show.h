/* show.h — within mql/: values in error messages, shortened. */
#pragma once

#include "mql/value.h"

/* At most about a hundred bytes of it: {a: 1, b: "x"}. In the arena. */
const char *mql__show(arena *a, mql_value v);
