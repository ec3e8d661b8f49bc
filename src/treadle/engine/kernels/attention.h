// Causal attention over pages of keys and values, several queries sharing a key head (GQA).
//
// A page holds sixteen tokens of one head, its keys laid out as a panel of a weight with the tokens as
// outputs, its values as panels with the tokens as columns. So the scores of a page and the mixing of its
// values are the products of matmul.h. Softmax goes block by block with a running maximum (Milakov and
// Gimelshein 2018). Values behind the last token are read, at weight 0: pages must be handed out blank.
#pragma once

#include <atomic>
#include <limits>

#include "matmul.h"

constexpr int PAGE = LANES;
constexpr int BLOCK_PAGES = 8;
constexpr int AHEAD = 2;  // pages
constexpr int BLOCK_KEYS = BLOCK_PAGES * PAGE;
constexpr int QUERY_ROWS = 48;  // queries of one work item, if a group of heads is not larger
constexpr int MOST_QUERY_ROWS = 64;
constexpr int MOST_WIDTH = 256;

// A layer of the cache: where page p of head h begins, in bytes from `keys` or `values`.
struct CacheLayer {
    char* keys;
    char* values;
    int64_t head_bytes, page_bytes;

    int64_t at(int head, int page) const { return head * head_bytes + page * page_bytes; }
};

// Rows of a batch: `span` tokens from token `first`, after `start` stored ones, over `row_pages` pages or
// fewer.
struct Rows {
    const int32_t *first, *span, *start;
    const int32_t* pages;
    int64_t row_pages;
    int32_t count;
};

struct Heads {
    int query, key, width;

    int group() const { return query / key; }
};

// Functions that are not inlined are kept apart for the compiler's sake: in one piece it spilled the sums.
template <class Kind>
struct Softmax {
    typename Kind::Number chances[MOST_QUERY_ROWS][BLOCK_KEYS];
    float scores[MOST_QUERY_ROWS][BLOCK_KEYS];
    float mixed[MOST_QUERY_ROWS][MOST_WIDTH];
    float best[MOST_QUERY_ROWS], total[MOST_QUERY_ROWS];
};

// Writes one token's key and value, floats (width,), to its place in a page.
template <class Kind>
inline void write_token(char* keys, char* values, int offset, const float* key, const float* value,
                        int width) {
    typedef typename Kind::Number Number;
    constexpr int PACK = Kind::PACK;
    Number *to_keys = reinterpret_cast<Number*>(keys), *to_values = reinterpret_cast<Number*>(values);
    for (int d = 0; d < width; d += LANES) {
        Number numbers[2][LANES];
        Kind::convert(numbers[0], load<Floats>(key + d));
        Kind::convert(numbers[1], load<Floats>(value + d));
        for (int i = 0; i < LANES; i++) {
            to_keys[((d + i) / PACK * PAGE + offset) * PACK + (d + i) % PACK] = numbers[0][i];
            to_values[d * PAGE + (offset / PACK * LANES + i) * PACK + offset % PACK] = numbers[1][i];
        }
    }
}

// The scores of all queries for neighbouring pages, scaled, and minus infinity where query r may not look;
// the keys of the second page lie `apart` bytes from those of the first.
template <class Kind, int PAGES>
[[gnu::noinline]] static void score(Softmax<Kind>& state, int block_page, const char* keys, int64_t apart,
                                    const char* queries, int count, Heads heads, int first_key,
                                    int first_seen) {
    const int64_t row_bytes = heads.width * int64_t(sizeof(typename Kind::Number));
    const float scale = 1.0f / std::sqrt(float(heads.width));
    in_blocks(count, [&](auto rows, int first) {
        constexpr int ROWS = decltype(rows)::value;
        Floats sums[ROWS][PAGES] = {};
        add_products<Kind, ROWS, PAGES>(sums, keys, apart, queries + first * row_bytes, row_bytes,
                                        heads.width / Kind::PACK);
        for (int r = 0; r < ROWS; r++) {
            float* scores = state.scores[first + r] + block_page * PAGE;
            for (int p = 0; p < PAGES; p++) store(scores + p * PAGE, sums[r][p] * scale);
            // A query sees the tokens before its own, and its own.
            const int seen = first_seen + (first + r) / heads.group() - first_key;
            for (int i = std::max(seen, 0); i < PAGES * PAGE; i++)
                scores[i] = -std::numeric_limits<float>::infinity();
        }
    });
}

// Turns the scores of a block into chances under the running maximum; scales down what was mixed before.
template <class Kind>
[[gnu::noinline]] static void weigh(Softmax<Kind>& state, int row, int keys, int width) {
    Floats best = splat(state.best[row]);
    for (int k = 0; k < keys; k += LANES) {
        const Floats scores = load<Floats>(state.scores[row] + k);
        best = scores > best ? scores : best;
    }
    const float top = largest(best);
    const float shrink = exp(splat(state.best[row] - top))[0];
    Floats total = {};
    for (int k = 0; k < keys; k += LANES) {
        const Floats scores = load<Floats>(state.scores[row] + k);
        const Floats hidden = splat(-std::numeric_limits<float>::infinity());
        const Floats chances = scores == hidden ? Floats{} : exp(scores - top);
        total += chances;
        Kind::convert(state.chances[row] + k, chances);
    }
    state.total[row] = state.total[row] * shrink + sum(total);
    state.best[row] = top;
    if (shrink == 1.0f) return;
    for (int d = 0; d < width; d += LANES)
        store(state.mixed[row] + d, load<Floats>(state.mixed[row] + d) * shrink);
}

template <class Kind, int PANELS>
inline void mix_panels(Softmax<Kind>& state, const char* const* values, int pages, int count, int panel) {
    constexpr int STEPS = PAGE / Kind::PACK;
    in_blocks(count, [&](auto rows, int first) {
        constexpr int ROWS = decltype(rows)::value;
        Floats sums[ROWS][PANELS] = {};
        for (int page = 0; page < pages; page++)
            add_products<Kind, ROWS, PANELS>(
                sums, values[page] + panel * STEPS * STEP_BYTES, STEPS * STEP_BYTES,
                reinterpret_cast<const char*>(state.chances[first] + page * PAGE),
                sizeof state.chances[0], STEPS);
        for (int r = 0; r < ROWS; r++)
            for (int p = 0; p < PANELS; p++) {
                float* to = state.mixed[first + r] + (panel + p) * LANES;
                store(to, load<Floats>(to) + sums[r][p]);
            }
    });
}

template <class Kind>
[[gnu::noinline]] static void mix(Softmax<Kind>& state, const char* const* values, int pages, int count,
                                  int width) {
    int panel = 0;
    for (; panel + 4 <= width / LANES; panel += 4) mix_panels<Kind, 4>(state, values, pages, count, panel);
    for (; panel < width / LANES; panel++) mix_panels<Kind, 1>(state, values, pages, count, panel);
}

inline void fetch(const char* from, int64_t bytes) {
    for (int64_t byte = 0; byte < bytes; byte += STEP_BYTES) __builtin_prefetch(from + byte, 0, 2);
}

// One key head of `count / group` neighbouring tokens of a row; queries (token, group, width) without gaps.
template <class Kind>
[[gnu::noinline]] static void attend(Softmax<Kind>& state, const CacheLayer& cache, Heads heads, int head,
                                     const int32_t* pages, int first_position, int tokens,
                                     const char* queries) {
    const int count = tokens * heads.group(), length = first_position + tokens;
    std::fill_n(state.best, count, -std::numeric_limits<float>::max());
    std::fill_n(state.total, count, 0.0f);
    for (int r = 0; r < count; r++) std::fill_n(state.mixed[r], heads.width, 0.0f);
    auto keys_of = [&](int page) { return cache.keys + cache.at(head, pages[page]); };
    for (int p = 0; p < AHEAD && p * PAGE < length; p++) fetch(keys_of(p), cache.page_bytes);
    for (int key = 0; key < length; key += BLOCK_KEYS) {
        const int at = key / PAGE, block = std::min(BLOCK_PAGES, (length - key + PAGE - 1) / PAGE);
        const char* values[BLOCK_PAGES];
        for (int p = 0; p < block; p++) {
            // What comes next lies somewhere else, where no processor looks for it by itself.
            values[p] = cache.values + cache.at(head, pages[at + p]);
            fetch(values[p], cache.page_bytes);
            if ((at + p + AHEAD) * PAGE < length) fetch(keys_of(at + p + AHEAD), cache.page_bytes);
            if (p % 2 == 0 && p + 1 < block) continue;
            const int first = p - p % 2;
            const char* keys = keys_of(at + first);
            if (first < p) {
                score<Kind, 2>(state, first, keys, keys_of(at + p) - keys, queries, count, heads,
                               key + first * PAGE, first_position + 1);
            } else {
                score<Kind, 1>(state, first, keys, 0, queries, count, heads, key + first * PAGE,
                               first_position + 1);
            }
        }
        for (int r = 0; r < count; r++) weigh(state, r, block * PAGE, heads.width);
        mix(state, values, block, count, heads.width);
    }
}
