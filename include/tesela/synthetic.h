/* tesela/synthetic.h — synthetic partition keys: values that spread load which one property would concentrate.
 *
 *   concatenation        "device-7-2018-03-01" of two properties; reads that know both go to one partition
 *   random suffix        "2018-03-01.137": spreads writes evenly; a read of the day asks for all suffixes
 *   precomputed suffix   "2018-03-01.52", the suffix a hash of another property: a read that knows that property goes to one partition
 *
 * Suffixes are from 1 to `suffixes`, 400 by habit. All texts are written into the caller's room; TESELA_LIMIT: it is too small. */
#ifndef TESELA_SYNTHETIC_H
#define TESELA_SYNTHETIC_H

#include <tesela/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Joins texts with a separator between them. */
TESELA_API TESELA_CHECKED tesela_status tesela_synthetic_join(const char *const *parts, size_t count, const char *separator, char *room,
                                                              size_t room_bytes);

/* "base.N" with N random in 1…suffixes, from the system's random source. */
TESELA_API TESELA_CHECKED tesela_status tesela_synthetic_random(const char *base, unsigned suffixes, char *room, size_t room_bytes);

/* "base.N" with N in 1…suffixes computed from `property` (the first 8 bytes of its SHA-256, big-endian, modulo suffixes, plus 1). The same
 * on every machine. */
TESELA_API TESELA_CHECKED tesela_status tesela_synthetic_hashed(const char *base, const char *property, unsigned suffixes, char *room,
                                                                size_t room_bytes);

/* "base.N" for a given N: to read all suffixes, one after the other. */
TESELA_API TESELA_CHECKED tesela_status tesela_synthetic_suffix(const char *base, unsigned suffix, char *room, size_t room_bytes);

#ifdef __cplusplus
}
#endif
#endif
