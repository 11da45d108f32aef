/* json_binary.h — Cosmos binary JSON to JSON text and back.
 *
 * The format's facts are from Microsoft's .NET SDK (Microsoft.Azure.Cosmos/src/Json). A document is the byte 80 and one value. A value is a
 * marker, and what the marker asks for; numbers are little-endian:
 *
 *   00..1F  the integers 0 to 31
 *   20..3F  a system string: a name that items often have (json_binary_int.h)
 *   40..67  a user string: of a dictionary that nobody shares with us; refused
 *   71..74  base64 text: u8 or u16 groups of four characters · u8 padding · bytes. Padding above 2 is its complement: left out of the text
 *   75..77  a GUID: 16 bytes; lower case, upper case, lower case between quotes
 *   78..7A  u8 length · characters of 4 bits: lower-case hexadecimal, upper-case, of dates
 *   7B..7D  u8 length · u8 base · characters of 4, 5 or 6 bits above the base
 *   7E, 7F  u8 or u16 length · characters of 7 bits
 *   80..BF  a string of 0 to 63 bytes · UTF-8
 *   C0..C2  u8, u16 or u32 length · UTF-8
 *   C3..C6  u8, u16, u24 or u32: where in the document a string lies that is meant here too; it is no such reference itself
 *   C7..CC  numbers: u64, u8, i16, i32, i64, double
 *   CD, CE  float, double; D7..DC u8, i8, i16, i32, i64, u32: other spellings of numbers
 *   D0..D2  null, false, true
 *   D3      a GUID as 16 bytes; DD..DF u8, u16 or u32 length · bytes. Both become text, the latter as base64
 *   E0..E7  an array: empty; of one value; u8, u16 or u32 bytes · values; the same with a count of values behind the length
 *   E8..EF  an object, likewise; each of its values has a name before it, which is a string
 *   F0, F1  numbers alike: marker of each · u8 or u16 count · the numbers without markers
 *   F2, F3  arrays of numbers alike: F0 or F1 · marker of each · u8 or u16 numbers in each · u8 or u16 arrays · the numbers
 *
 * Characters of fewer than 8 bits begin in the low bits of the first byte. */
#pragma once

#include "doc/json.h"

enum { JSON_BINARY_FORMAT = 0x80 };

static inline bool json_is_binary(slice body) { /* no JSON text begins with that byte */
    return body.n && (unsigned char)body.p[0] == JSON_BINARY_FORMAT;
}

/* Appends the text of a document. A few bytes may stand for a long text, so the buffer's limit matters: E_TOO_LARGE at it. E_BAD_JSON: it
 * is no such document, or deeper than LIMIT_JSON_DEPTH. On an error `out` is as it was. `why` may be NULL. */
MUST_CHECK err json_binary_to_text(slice binary, buf *out, json_error *why);

/* Appends the document of a text that json_from_bson wrote, or the like. False: it is no JSON text; `out` is as it was. Past the buffer's
 * limit it overflows. Written are system strings, GUIDs, plain strings, the smallest kind of each number, lengths without counts. */
bool json_binary_from_text(slice text, buf *out);
