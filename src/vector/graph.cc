// The one file that sees hnswlib (and includes it: its header has functions that are not inline). No exception leaves it.
#include "vector/graph.h"

#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <cmath>
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

} // namespace

struct vector_graph {
    search_distance distance;
    size_t dimensions;
    std::unique_ptr<hnswlib::SpaceInterface<float>> space;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> links;
};

extern "C" vector_graph *vector_graph_new(search_distance distance, size_t dimensions, size_t list, size_t room) try {
    auto g = std::make_unique<vector_graph>();
    g->distance = distance;
    g->dimensions = dimensions;
    if (distance == SEARCH_EUCLIDEAN) {
        g->space = std::make_unique<hnswlib::L2Space>(dimensions);
    } else {
        g->space = std::make_unique<hnswlib::InnerProductSpace>(dimensions);
    }
    g->links =
        std::make_unique<hnswlib::HierarchicalNSW<float>>(g->space.get(), std::max<size_t>(room, 1), LINKS, list ? list : LIST_TO_BUILD);
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
