/* notation.h — the notations of the native protocol: [int], [string], [bytes map], … (native_protocol_v5.spec, section 3).
 *
 * Readers take from the beginning of `rest` and move it. They return false if the bytes end too early or a length is negative where none
 * may be; the message is then malformed. Results point into the message. Writers append. Pure functions, any thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

bool cass_take_byte(slice *rest, uint8_t *byte_out);
bool cass_take_short(slice *rest, uint16_t *number_out);
bool cass_take_int(slice *rest, int32_t *number_out);
bool cass_take_long(slice *rest, int64_t *number_out);
bool cass_take_string(slice *rest, slice *text_out); /* also [short bytes] */
bool cass_take_long_string(slice *rest, slice *text_out);
bool cass_take_bytes(slice *rest, slice *bytes_out, bool *null_out); /* [bytes]; a negative length is null */

void cass_put_short(buf *out, uint16_t number);
void cass_put_int(buf *out, int32_t number);
void cass_put_long(buf *out, int64_t number);
void cass_put_string(buf *out, slice text); /* also [short bytes]; cut at 65535 bytes */
void cass_put_bytes(buf *out, slice bytes);
void cass_put_null(buf *out);
void cass_put_inet(buf *out, slice address, int32_t port);
