/* inspect_view.h — the text of `tesela inspect store`, from the JSON of /_tesela/store as BSON. Without side effects. */
#pragma once

#include "base/buf.h"

/* `answer` is {"stores":[…]}; unknown members are ignored, missing ones count as 0. */
void inspect_store_text(slice answer, buf *out);
