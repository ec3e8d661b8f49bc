// Products of rows of inputs with a packed weight.
//
// A weight is cut into panels of sixteen outputs; a panel is a row of steps, a step the four bytes of each of
// its outputs. Up to 6 x 4 sums stay in registers, each sum is made in the order of the columns whatever else
// is computed beside it: a row's result does not depend on its batch.
#pragma once

#include "vectors.h"

constexpr int TILE_ROWS = 6;
constexpr int TILE_PANELS = 4;
constexpr int STEP_BYTES = 64;
constexpr int GROUP = 64;         // int8: columns that share one scale of an input row
constexpr int CHUNK_ROWS = 120;   // rows whose inputs stay in the second-level cache

struct Matrix {
    const char* data;
    const float* scales;     // int8: of each output
    const int32_t* offsets;  // int8: (panel, group, output) 128 times the sum of the weights, negative
    const float* bias;       // or null
    int32_t outputs;
    int32_t columns;
};

// Rows of inputs in the kind of the product.
struct Inputs {
    char* data;
    float* scales;  // int8: (row, group)
    int64_t row_bytes;
    int32_t groups;

    char* row(int64_t at) const { return data + at * row_bytes; }
};

// Which of `size` workers this is, and its even share of some items.
struct Worker {
    int rank, size;

    int64_t from(int64_t items) const { return items * rank / size; }
    int64_t to(int64_t items) const { return items * (rank + 1) / size; }
};

template <int N>
using Constant = std::integral_constant<int, N>;

template <int ROWS, class Body>
inline void last_block(int first, int rows, Body&& body) {
    if (rows == ROWS) {
        body(Constant<ROWS>(), first);
    } else if constexpr (ROWS > 1) {
        last_block<ROWS - 1>(first, rows, body);
    }
}

// Calls body(number of rows, first row) for blocks of at most TILE_ROWS, the number known when compiled.
template <class Body>
inline void in_blocks(int rows, Body&& body) {
    int first = 0;
    for (; rows - first >= TILE_ROWS; first += TILE_ROWS) body(Constant<TILE_ROWS>(), first);
    if (first < rows) last_block<TILE_ROWS - 1>(first, rows - first, body);
}

// sums[row][panel] += steps of inputs times those of the panels, which lie `apart` bytes from each other.
template <class Kind, int ROWS, int PANELS>
inline void add_products(typename Kind::Sums (&sums)[ROWS][PANELS], const char* weights, int64_t apart,
                         const char* inputs, int64_t row_bytes, int steps) {
    for (int step = 0; step < steps; step++) {
        Words columns[PANELS];
        for (int panel = 0; panel < PANELS; panel++)
            columns[panel] = load<Words>(weights + panel * apart + step * int64_t(STEP_BYTES));
        for (int row = 0; row < ROWS; row++)
            for (int panel = 0; panel < PANELS; panel++)
                sums[row][panel] =
                    Kind::add(sums[row][panel], columns[panel], inputs + row * row_bytes + step * 4);
    }
}

template <class Kind, int ROWS, int PANELS>
inline void tile(Floats (&sums)[ROWS][PANELS], const Matrix& weight, int panel, const Inputs& inputs,
                 int row) {
    const int steps = (weight.columns + Kind::PACK - 1) / Kind::PACK;
    const int64_t apart = int64_t(steps) * STEP_BYTES;
    const char* weights = weight.data + panel * apart;
    if constexpr (!std::is_same_v<Kind, Int8>) {
        add_products<Kind, ROWS, PANELS>(sums, weights, apart, inputs.row(row), inputs.row_bytes, steps);
    } else {
        constexpr int GROUP_STEPS = GROUP / Kind::PACK;
        for (int group = 0; group < inputs.groups; group++) {
            const int first = group * GROUP_STEPS;
            Ints whole[ROWS][PANELS];
            for (int p = 0; p < PANELS; p++) {
                const int64_t at = (int64_t(panel + p) * inputs.groups + group) * LANES;
                for (int r = 0; r < ROWS; r++) whole[r][p] = load<Ints>(weight.offsets + at);
            }
            add_products<Kind, ROWS, PANELS>(whole, weights + first * int64_t(STEP_BYTES), apart,
                                             inputs.row(row) + first * 4, inputs.row_bytes,
                                             std::min(GROUP_STEPS, steps - first));
            for (int r = 0; r < ROWS; r++) {
                const float scale = inputs.scales[int64_t(row + r) * inputs.groups + group];
                for (int p = 0; p < PANELS; p++)
                    sums[r][p] += __builtin_convertvector(whole[r][p], Floats) * scale;
            }
        }
        for (int p = 0; p < PANELS; p++) {
            const Floats scales = load<Floats>(weight.scales + (panel + p) * LANES);
            for (int r = 0; r < ROWS; r++) sums[r][p] *= scales;
        }
    }
}

// Calls finish(row, panel, sums[PANELS]) for this worker's share of the panels, two or four at a time.
template <class Kind, class Finish>
inline void multiply(const Matrix& weight, const Inputs& inputs, int rows, Worker me, Finish&& finish) {
    const int64_t pairs = (weight.outputs + 2 * LANES - 1) / (2 * LANES);
    const int from = 2 * me.from(pairs), to = 2 * me.to(pairs);
    for (int chunk = 0; chunk < rows; chunk += CHUNK_ROWS) {
        const int height = std::min(CHUNK_ROWS, rows - chunk);
        for (int panel = from; panel < to;) {
            auto across = [&](auto panels) {
                constexpr int PANELS = decltype(panels)::value;
                in_blocks(height, [&](auto count, int first) {
                    constexpr int ROWS = decltype(count)::value;
                    Floats sums[ROWS][PANELS] = {};
                    tile<Kind, ROWS, PANELS>(sums, weight, panel, inputs, chunk + first);
                    for (int r = 0; r < ROWS; r++) finish(chunk + first + r, panel, sums[r], panels);
                });
                panel += PANELS;
            };
            if (to - panel >= TILE_PANELS) {
                across(Constant<TILE_PANELS>());
            } else {
                across(Constant<2>());
            }
        }
    }
}
