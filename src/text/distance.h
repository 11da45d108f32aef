/* distance.h — by what vectors are compared. Apart from search.h, since C++ sees it too. */
#pragma once

typedef enum search_distance { SEARCH_COSINE, SEARCH_DOT_PRODUCT, SEARCH_EUCLIDEAN } search_distance;
