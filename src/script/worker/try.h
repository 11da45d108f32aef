/* try.h — attempts at what the sandbox forbids, made from inside, for the tests. */
#pragma once

/* 0 when the attempt was refused, 1 when it went through, 2 when there is none of that name. Some attempts end the process. */
int try_name(const char *name);
