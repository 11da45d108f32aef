/* json_binary.h — Cosmos binary JSON to JSON text and back.
 *
 * The format's facts are from Microsoft's .NET SDK (Microsoft.Azure.Cosmos/src/Json). A document is the byte 80 and one value. A value is a
 * marker byte and its operands; integers are little-endian:
 *
 *   00..1F  the integers 0 to 31
 *   20..3F  a system string: a name that items often have (json_binary_int.h)
 *   40..67  a user string: an index into a dictionary that is not part of the document; refused
 *   71..74  base64 text: u8 or u16 groups of four characters · u8 padding · bytes; a padding above 2 is complemented: the text omits it
 *   75..77  a GUID: 16 bytes; lower case, upper case, lower case between quotes
 *   78..7A  u8 length · characters of 4 bits: lower-case hexadecimal, upper-case hexadecimal, characters of dates
 *   7B..7D  u8 length · u8 base · characters of 4, 5 or 6 bits above the base
 *   7E, 7F  u8 or u16 length · characters of 7 bits
 *   80..BF  a string of 0 to 63 bytes · UTF-8
 *   C0..C2  u8, u16 or u32 length · UTF-8
 *   C3..C6  u8, u16, u24 or u32 offset of a string in the document, which is repeated here; the target is not a reference
 *   C7..CC  numbers: u64, u8, i16, i32, i64, double
 *   CD, CE  typed numbers: float, double
 *   D0..D2  null, false, true
 *   D3      a GUID as 16 bytes; becomes a string
 *   D7..DC  typed numbers: u8, i8, i16, i32, i64, u32
 *   DD..DF  u8, u16 or u32 length · bytes; becomes a string in base64
 *   E0..E7  an array: empty; of one value; u8, u16 or u32 bytes · values; the same with a count of values after the length
 *   E8..EF  an object, likewise; each value follows its name, which is a string
 *   F0, F1  a uniform number array: marker of the items · u8 or u16 count · the numbers without markers
 *   F2, F3  an array of those: F0 or F1 · marker of the items · u8 or u16 numbers per array · u8 or u16 arrays · the numbers
 *
 * Packed characters are stored from the low bits of the first byte upward. */
#pragma once

#include "doc/json.h"

enum { JSON_BINARY_FORMAT = 0x80 };

static inline bool json_is_binary(slice body) { /* no JSON text begins with that byte */
    return body.n && (unsigned char)body.p[0] == JSON_BINARY_FORMAT;
}

/* Appends the text of a document. References can expand a few bytes to a long text, so give the buffer a limit: E_TOO_LARGE beyond it.
 * E_BAD_JSON: the document is malformed, or deeper than LIMIT_JSON_DEPTH. On an error `out` is unchanged. `why` may be NULL. */
MUST_CHECK err json_binary_to_text(slice binary, buf *out, json_error *why);

/* Appends the document of a JSON text, such as json_from_bson writes. False: the text is malformed, and `out` is unchanged. The buffer
 * overflows at its limit. The writer uses system strings, GUIDs, plain strings, the smallest integer types, and lengths without counts. */
bool json_binary_from_text(slice text, buf *out);
