/* distance.h — the distance functions of vectors. Separate from search.h because C++ includes it too. */
#pragma once

typedef enum search_distance { SEARCH_COSINE, SEARCH_DOT_PRODUCT, SEARCH_EUCLIDEAN } search_distance;
