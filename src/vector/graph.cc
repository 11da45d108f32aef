// The one file that sees hnswlib (and includes it: its header has functions that are not inline). No exception leaves it.
#include "vector/graph.h"

#define NO_MANUAL_VECTORIZATION // what it fetches ahead with it is read beyond the end of a list
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace {

// Links of a vector, and how many are looked at to choose them: more find better, and take longer to build. With these, of the ten nearest
// among 20,000 vectors of 128 numbers without any order a list of 256 finds 96 %, and practically all where there are clusters, as in real
// data.
constexpr size_t LINKS = 24, LIST_TO_BUILD = 150;

// What of a vector's numbers can be squared and summed in a float.
constexpr double GREATEST = 1e15, SMALLEST = 1e-15;

enum class shape { good, unfit, nowhere };

double greatest_of(const double *numbers, size_t n) {
    double greatest = 0;
    for (size_t i = 0; i < n; i++) {
        double size = std::fabs(numbers[i]);
        greatest = size > greatest || std::isnan(size) ? size : greatest; // NaN stays
    }
    return greatest;
}

// Cosine is the inner product of vectors of length one.
shape to_floats(search_distance distance, const double *numbers, size_t n, float *floats) {
    double greatest = greatest_of(numbers, n), scale = 1;
    if (!std::isfinite(greatest)) {
        return shape::unfit;
    }
    if (distance == SEARCH_COSINE) {
        double sum = 0;
        for (size_t i = 0; i < n && greatest > 0; i++) {
            sum += numbers[i] / greatest * (numbers[i] / greatest);
        }
        if (greatest == 0) {
            return shape::nowhere;
        }
        scale = 1 / (greatest * std::sqrt(sum));
        if (!std::isfinite(scale)) {
            return shape::unfit;
        }
    } else if (greatest > GREATEST || (greatest > 0 && greatest < SMALLEST)) {
        return shape::unfit;
    }
    for (size_t i = 0; i < n; i++) {
        floats[i] = static_cast<float>(numbers[i] * scale);
    }
    return shape::good;
}

using floats = std::unique_ptr<float[]>;

// ---- distances: several sums at once ----

typedef float lanes __attribute__((vector_size(16)));
constexpr size_t LANES = 4, SUMS = 4;

lanes load(const float *from) {
    lanes loaded;
    std::memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

// Of two numbers, or of as many as there are in lanes: what their place adds to the sum.
template <typename T> T product(T a, T b) {
    return a * b;
}

template <typename T> T squared_difference(T a, T b) {
    return (a - b) * (a - b);
}

template <lanes of_lanes(lanes, lanes), float of_one(float, float)> float summed(const float *a, const float *b, size_t n) {
    lanes sums[SUMS] = {};
    size_t i = 0;
    for (; i + LANES * SUMS <= n; i += LANES * SUMS) {
        for (size_t j = 0; j < SUMS; j++) {
            sums[j] += of_lanes(load(a + i + LANES * j), load(b + i + LANES * j));
        }
    }
    lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = (all[0] + all[1]) + (all[2] + all[3]);
    for (; i < n; i++) {
        sum += of_one(a[i], b[i]);
    }
    return sum;
}

float inner_distance(const void *a, const void *b, const void *n) {
    return 1 - summed<product<lanes>, product<float>>(static_cast<const float *>(a), static_cast<const float *>(b),
                                                      *static_cast<const size_t *>(n));
}

float euclidean_distance(const void *a, const void *b, const void *n) {
    return summed<squared_difference<lanes>, squared_difference<float>>(static_cast<const float *>(a), static_cast<const float *>(b),
                                                                        *static_cast<const size_t *>(n));
}

class space : public hnswlib::SpaceInterface<float> {
    size_t dimensions;
    bool euclidean;

  public:
    space(size_t n, search_distance distance) : dimensions(n), euclidean(distance == SEARCH_EUCLIDEAN) {
    }
    size_t get_data_size() override {
        return dimensions * sizeof(float);
    }
    hnswlib::DISTFUNC<float> get_dist_func() override {
        return euclidean ? euclidean_distance : inner_distance;
    }
    void *get_dist_func_param() override {
        return &dimensions;
    }
};

} // namespace

struct vector_graph {
    search_distance distance;
    size_t dimensions;
    std::unique_ptr<space> measure;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> links;
};

extern "C" vector_graph *vector_graph_new(search_distance distance, size_t dimensions, size_t list, size_t room) try {
    auto g = std::make_unique<vector_graph>();
    g->distance = distance;
    g->dimensions = dimensions;
    g->measure = std::make_unique<space>(dimensions, distance);
    g->links =
        std::make_unique<hnswlib::HierarchicalNSW<float>>(g->measure.get(), std::max<size_t>(room, 1), LINKS, list ? list : LIST_TO_BUILD);
    return g.release();
} catch (...) {
    return nullptr;
}

extern "C" void vector_graph_free(vector_graph *g) {
    delete g;
}

// hnswlib can give a vector another place, but what was linked to it before then leads astray. So the old one is only marked, and forgotten
// under its label.
extern "C" void vector_graph_remove(vector_graph *g, uint64_t label) {
    auto found = g->links->label_lookup_.find(label);
    if (found != g->links->label_lookup_.end()) {
        g->links->markDeletedInternal(found->second);
        g->links->label_lookup_.erase(found);
    }
}

extern "C" vector_put_result vector_graph_put(vector_graph *g, uint64_t label, const double *numbers) try {
    floats made(new float[g->dimensions]);
    if (g->links->cur_element_count == g->links->max_elements_) {
        return VECTOR_NO_ROOM;
    }
    shape found = to_floats(g->distance, numbers, g->dimensions, made.get());
    vector_graph_remove(g, label);
    if (found != shape::good) {
        return found == shape::nowhere ? VECTOR_NOWHERE : VECTOR_UNFIT;
    }
    g->links->addPoint(made.get(), label);
    return VECTOR_PUT;
} catch (...) {
    return VECTOR_UNFIT;
}

extern "C" bool vector_graph_grow(vector_graph *g, size_t room) try {
    if (room > g->links->max_elements_) {
        g->links->resizeIndex(room);
    }
    return true;
} catch (...) {
    return false;
}

extern "C" size_t vector_graph_search(const vector_graph *g, const double *numbers, size_t n, vector_near *near_out) try {
    floats made(new float[g->dimensions]);
    size_t count = vector_graph_count(g);
    if (n == 0 || count == 0 || to_floats(g->distance, numbers, g->dimensions, made.get()) != shape::good) {
        return 0;
    }
    auto found = g->links->searchKnn(made.get(), std::min(n, count));
    size_t found_n = found.size();
    for (size_t i = found_n; i-- > 0; found.pop()) {
        near_out[i] = {found.top().second, found.top().first};
    }
    return found_n;
} catch (...) {
    return 0;
}

extern "C" bool vector_graph_fits(search_distance distance, const double *numbers, size_t dimensions) try {
    floats made(new float[dimensions]);
    return to_floats(distance, numbers, dimensions, made.get()) == shape::good;
} catch (...) {
    return false;
}

extern "C" size_t vector_graph_count(const vector_graph *g) {
    return g->links->cur_element_count - g->links->num_deleted_;
}

extern "C" size_t vector_graph_dead(const vector_graph *g) {
    return g->links->num_deleted_;
}

extern "C" size_t vector_graph_room(const vector_graph *g) {
    return g->links->max_elements_;
}

// The numbers, the links of the lowest level and a few of those above, a lock and a place in the table of labels; and the locks of updates,
// of which there are as many in any graph.
extern "C" size_t vector_graph_bytes(size_t dimensions, size_t room) {
    constexpr size_t OF_LINKS = (2 * LINKS + 1 + LINKS / 16) * sizeof(hnswlib::tableint), OF_LABEL = 80;
    return hnswlib::HierarchicalNSW<float>::max_update_element_locks * sizeof(std::mutex) +
           room * (dimensions * sizeof(float) + OF_LINKS + OF_LABEL + sizeof(std::mutex) + 2 * sizeof(void *));
}
