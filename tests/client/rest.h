/* rest.h — one request by the REST protocol, signed with the account's key: for what libtesela has no call for. */
#pragma once

/* Sends it to `endpoint` and returns the answer's body, which the caller frees. Fails the test unless the status is 2xx. */
char *rest(const char *verb, const char *path, const char *type, const char *link, const char *body);
