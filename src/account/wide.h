/* wide.h — within account/: what is done to a container in all its homes but the first.
 *
 * The first home holds the container's record, and what the record says is so. What it takes in other homes (an index of another policy,
 * bytes that go) is done there by a solo commit in each, before the record is written or after it. A crash in between leaves work that the
 * balancer or the next start finds and does. */
#pragma once

#include "account/account_int.h"

bool account__is_wide(const container *c); /* it has ranges in other homes than the first */

/* A replace of settings: before the record is written (`wanted` is the container as it will be), and after it. `done` is called on a
 * committer's thread, with an error of one of the homes or OK. */
typedef void (*wide_done)(void *context, err code);
void account__prepare_settings(account *a, container *wanted, wide_done done, void *context);
void account__spread_settings(account *a, container *c, wide_done done, void *context);

/* Whether a part of the container has heard of its settings; if not, they are spread again, and waited for. */
bool account__follows_settings(const container *c, container_part *part);
MUST_CHECK err account__follow_settings(account *a, container *c);

/* The container was deleted: its bytes in other homes go, in the background. */
void account__delete_elsewhere(account *a, container *c);
