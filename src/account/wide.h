/* wide.h — within account/: changes of a container in its homes other than the first.
 *
 * The first home holds the container's record, which is authoritative. The work in other homes (an index of another policy, deletion of
 * data) is a solo commit in each of them, before or after the record is written. After a crash in between, the balancer or the next start
 * finds the unfinished work and completes it. */
#pragma once

#include "account/account_int.h"

bool account__is_wide(const container *c); /* it has ranges in homes other than the first */

/* Replaces settings: prepare before the record is written (`wanted` is the new container), spread after it. `done` is called on a
 * committer's thread, with OK or an error of one of the homes. */
typedef void (*wide_done)(void *context, err code);
void account__prepare_settings(account *a, container *wanted, wide_done done, void *context);
void account__spread_settings(account *a, container *c, wide_done done, void *context);

/* Whether a part of the container has its newest settings; if not, account__follow_settings spreads them again and waits. */
bool account__follows_settings(const container *c, container_part *part);
MUST_CHECK err account__follow_settings(account *a, container *c);

/* Deletes a deleted container's data in other homes, in the background. */
void account__delete_in_other_homes(account *a, container *c);
