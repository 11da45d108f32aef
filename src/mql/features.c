/* features.c — one walk over the tables of names. */
#include "mql/features.h"

#include "mql/accumulator_int.h"
#include "mql/match_int.h"
#include "mql/pipeline_int.h"
#include "mql/update_int.h"
#include "mql/window.h"

static mql_feature stage_at(size_t position) {
    const mql__stage_kind *row = mql__stage_at(position);
    return row ? (mql_feature){row->name, row->flags & MQL__STAGE_SERVICE} : (mql_feature){0};
}

static mql_feature expression_at(size_t position) {
    const mql__operator *row = mql__operator_at(position);
    return row ? (mql_feature){slice_str(row->name), row->flags & MQL__SERVICE} : (mql_feature){0};
}

static mql_feature accumulator_at(size_t position) {
    const mql__accumulator_row *row = mql__accumulator_at(position);
    return row ? (mql_feature){slice_str(row->name), row->service} : (mql_feature){0};
}

static mql_feature window_at(size_t position) {
    return (mql_feature){mql__window_name_at(position), false};
}

static mql_feature filter_at(size_t position) {
    const mql__filter_operator *row = mql__filter_operator_at(position);
    return row ? (mql_feature){row->name, row->service} : (mql_feature){0};
}

static mql_feature shape_at(size_t position) {
    mql_feature shape = {0};
    shape.name = mql__shape_name_at(position, &shape.service);
    return shape;
}

static mql_feature update_at(size_t position) {
    const mql__modifier *row = mql__modifier_at(position);
    return row ? (mql_feature){row->name, true} : (mql_feature){0};
}

bool mql_feature_at(mql_feature_kind kind, size_t position, mql_feature *feature_out) {
    static mql_feature (*const walks[])(size_t position) = {
        [MQL_FEATURE_STAGE] = stage_at,   [MQL_FEATURE_EXPRESSION] = expression_at, [MQL_FEATURE_ACCUMULATOR] = accumulator_at,
        [MQL_FEATURE_WINDOW] = window_at, [MQL_FEATURE_FILTER] = filter_at,         [MQL_FEATURE_SHAPE] = shape_at,
        [MQL_FEATURE_UPDATE] = update_at,
    };
    *feature_out = walks[kind](position);
    return feature_out->name.n > 0;
}
