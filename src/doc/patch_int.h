/* patch_int.h — a patch path cut into steps. For this folder. */
#pragma once

#include "doc/patch.h"

typedef struct patch_path {
    slice text;   /* as written */
    slice *steps; /* unescaped, in the form of BSON keys */
    size_t n;
} patch_path;

/* Splits `text` into steps, which live in `a`. False: not a path, or more than LIMIT_JSON_DEPTH steps. */
bool patch__split(arena *a, slice text, patch_path *path_out);

/* Reads a step as an array index; false if it is not one. */
bool patch__index(slice step, size_t *index_out);
