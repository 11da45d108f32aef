/* sandbox.h — what a script worker gives up before it reads its first frame.
 *
 * After sandbox_enter the process can compute, use memory up to a bound, talk over the sockets and pipes it already has, and end. It
 * cannot open a file, make a socket, start or signal another process, or get any of this back: a system call that is not on the list
 * fails with EPERM, and one that only an attacker would make ends the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* First of all: the environment that the engine needs and no other variable (starts the program again when that differs), no
 * descriptor but 0 to 3, the root folder as working folder. */
void sandbox_prepare(char **arguments);

/* Last, with the engine warm and its threads there. `memory_bytes` is what the process may take beyond what it has now. False, with the
 * text of a FAULT in *why, when any of it could not be done: the worker must not run then. */
bool sandbox_enter(size_t memory_bytes, const char **why);
