// One forward pass of a Llama model over a flat row of tokens; models/llama.py says the same in torch.
//
// All workers walk the same stages, each with its share of the rows, panels or heads, and meet between them.
// The hidden state is float32 throughout; inputs of products are of the precision's kind.
#include <omp.h>

#include <thread>
#include <vector>

#include "attention.h"

struct Layer {
    const float* attention_norm;
    const float* feed_forward_norm;
    Matrix qkv, output, gate_up, down;
};

struct Model {
    const Layer* layers;
    const char* embedding;
    const float* norm;
    Matrix head;
    int32_t depth, width, feed_forward, query_heads, key_heads, head_width;
    float epsilon;
};

// Keys and values: (layer, half, head, page), a page without gaps, distances in bytes.
struct Cache {
    char* data;
    int64_t layer_bytes, half_bytes, head_bytes, page_bytes;
};

struct Batch {
    const int64_t* tokens;
    const int64_t* slots;    // where each token's key and value go: page * PAGE + place in it
    const int64_t* sampled;  // tokens whose scores are wanted
    const float *cos, *sin;  // (tokens, head width / 2)
    Rows rows;
    int32_t count, sampled_count;
};

class Barrier {
   public:
    void wait(int size) {
        if (size == 1) return;
        const int round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        // A stage ends within microseconds of its neighbours, unless another process has the processor.
        for (int tries = 0; round_.load(std::memory_order_acquire) == round; tries++)
            if (tries > 1000) {
                std::this_thread::yield();
            } else {
                rest();
            }
    }

   private:
    static void rest() {
#if defined(__x86_64__)
        _mm_pause();
#endif
    }

    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> round_{0};
};

static int64_t padded(int64_t count, int64_t unit = 2 * LANES) { return (count + unit - 1) / unit * unit; }

// Room for the stages of a pass, cut out of one piece of memory.
struct Room {
    float* hidden;         // (tokens, width)
    float* wide;           // (tokens, the largest of what else is kept as floats)
    char* queries;         // (key head, token, query head of it, head width)
    Inputs inputs, gated;  // of the products; `gated` of the last
    int64_t hidden_row, wide_row, bytes;

    Room(const Model& m, int64_t tokens, char* memory) {
        const int64_t attended = int64_t(m.query_heads) * m.head_width;
        const int64_t qkv = attended + 2 * int64_t(m.key_heads) * m.head_width;
        const int64_t widest = padded(std::max<int64_t>({m.width, qkv, m.feed_forward}), GROUP);
        bytes = 0;
        auto cut = [&](int64_t size) {
            char* piece = memory + bytes;
            bytes += padded(size, STEP_BYTES);
            return piece;
        };
        hidden_row = padded(m.width);
        wide_row = widest;
        hidden = reinterpret_cast<float*>(cut(tokens * hidden_row * 4));
        wide = reinterpret_cast<float*>(cut(tokens * widest * 4));
        queries = cut(tokens * attended * 4);
        for (Inputs* each : {&inputs, &gated}) {
            each->row_bytes = widest * 4;
            each->data = cut(tokens * each->row_bytes);
            each->scales = reinterpret_cast<float*>(cut(tokens * widest / GROUP * 4));
            each->groups = 0;
        }
    }
};

// To bytes with a scale for each group of columns. A NaN or an infinity makes its group's scale NaN.
static void quantise(const float* from, int columns, const Inputs& to, int64_t row) {
    uint8_t* bytes = reinterpret_cast<uint8_t*>(to.row(row));
    typedef uint8_t Bytes __attribute__((vector_size(LANES)));
    for (int group = 0; group < to.groups; group++) {
        const int first = group * GROUP, last = std::min(columns, first + GROUP);
        Floats most = {}, poison = {};
        for (int c = first; c < last; c += LANES) {
            const Floats v = load<Floats>(from + c), size = v < 0.0f ? -v : v;
            most = size > most ? size : most;
            poison += v * 0.0f;
        }
        const float scale = largest(most) / 127.0f;
        const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
        to.scales[row * to.groups + group] = scale + sum(poison);
        for (int c = first; c < last; c += LANES)
            store(bytes + c, __builtin_convertvector(
                                 (Words)(load<Floats>(from + c) * inverse + (ROUNDING + 128.0f)), Bytes));
    }
}

template <class Kind, class Stored>
class Pass {
   public:
    Pass(const Model& model, const Batch& batch, const Cache& cache, float* scores, Room& room)
        : m(model), batch(batch), cache(cache), scores(scores), room(room), drawn(model.depth) {}

    void run(Worker me) {
        embed(me);
        for (int layer = 0; layer < m.depth; layer++) {
            attention(layer, me);
            feed_forward(m.layers[layer], me);
        }
        score(me);
    }

   private:
    void embed(Worker me) {
        typedef typename Stored::Number Number;
        for (int64_t t = me.from(batch.count); t < me.to(batch.count); t++) {
            const char* from = m.embedding + batch.tokens[t] * m.width * sizeof(Number);
            for (int c = 0; c < m.width; c += LANES)
                if constexpr (std::is_same_v<Stored, Float32>) {
                    store(hidden(t) + c, load<Floats>(from + c * sizeof(Number)));
                } else {
                    store(hidden(t) + c, from_bfloat16(from + c * sizeof(Number)));
                }
            std::fill(hidden(t) + m.width, hidden(t + 1), 0.0f);
        }
    }

    void attention(int at, Worker me) {
        const Layer& layer = m.layers[at];
        const int64_t layer_at = at * cache.layer_bytes;
        const CacheLayer pages = {cache.data + layer_at, cache.data + layer_at + cache.half_bytes,
                                  cache.head_bytes, cache.page_bytes};
        norm_all(layer.attention_norm, me);
        multiply<Kind>(layer.qkv, input(room.inputs, m.width), batch.count, me,
                       [&](int row, int panel, const Floats* sums, auto panels) {
                           for (int p = 0; p < decltype(panels)::value; p++)
                               store(wide(row) + (panel + p) * LANES, biased(layer.qkv, panel + p, sums[p]));
                       });
        meet(me);
        for (int64_t t = me.from(batch.count); t < me.to(batch.count); t++) turn_and_write(t, pages);
        meet(me);
        attend_all(drawn[at], pages);
        meet(me);
        requantise(room.inputs, m.query_heads * m.head_width, me);
        add_product(layer.output, input(room.inputs, m.query_heads * m.head_width), me);
    }

    void feed_forward(const Layer& layer, Worker me) {
        norm_all(layer.feed_forward_norm, me);
        // Panels of gate and up stand side by side.
        multiply<Kind>(layer.gate_up, input(room.inputs, m.width), batch.count, me,
                       [&](int row, int panel, const Floats* sums, auto panels) {
                           for (int p = 0; p < decltype(panels)::value; p += 2) {
                               const Floats gate = sums[p], up = sums[p + 1];
                               const Floats silu = gate / (exp(-gate) + 1.0f);
                               keep(room.gated, row, (panel + p) / 2 * LANES, silu * up);
                           }
                       });
        meet(me);
        requantise(room.gated, m.feed_forward, me);
        add_product(layer.down, input(room.gated, m.feed_forward), me);
    }

    void score(Worker me) {
        const int rows = batch.sampled_count;
        for (int64_t r = me.from(rows); r < me.to(rows); r++) norm(batch.sampled[r], r, m.norm);
        meet(me);
        multiply<Kind>(m.head, input(room.inputs, m.width), rows, me,
                       [&](int row, int panel, const Floats* sums, auto panels) {
                           for (int p = 0; p < decltype(panels)::value; p++) {
                               const int column = (panel + p) * LANES;
                               const int left = std::min(LANES, m.head.outputs - column);
                               if (left > 0)
                                   std::memcpy(scores + int64_t(row) * m.head.outputs + column, &sums[p],
                                               left * sizeof(float));
                           }
                       });
    }

    // Rows of `hidden` are normed into the inputs; the next product may read them when this returns.
    void norm_all(const float* weight, Worker me) {
        for (int64_t t = me.from(batch.count); t < me.to(batch.count); t++) norm(t, t, weight);
        meet(me);
    }

    void norm(int64_t from, int64_t to, const float* weight) {
        const float* row = hidden(from);
        Floats squares = {};
        for (int c = 0; c < m.width; c += LANES) squares += load<Floats>(row + c) * load<Floats>(row + c);
        const float scale = 1.0f / std::sqrt(sum(squares) / m.width + m.epsilon);
        for (int c = 0; c < m.width; c += LANES)
            keep(room.inputs, to, c, load<Floats>(row + c) * scale * load<Floats>(weight + c));
        if constexpr (std::is_same_v<Kind, Int8>)
            quantise(wide(to), m.width, input(room.inputs, m.width), to);
    }

    void turn_and_write(int64_t t, const CacheLayer& pages) {
        const int width = m.head_width, group = m.query_heads / m.key_heads;
        const float* cos = batch.cos + t * (width / 2);
        const float* sin = batch.sin + t * (width / 2);
        float* row = wide(t);
        for (int head = 0; head < m.query_heads + m.key_heads; head++) turn(row + head * width, cos, sin);
        for (int head = 0; head < m.query_heads; head++)
            for (int d = 0; d < width; d += LANES)
                Stored::convert(query(head / group, t, head % group) + d * sizeof(typename Stored::Number),
                                load<Floats>(row + head * width + d));
        const float *keys = row + m.query_heads * width, *values = keys + m.key_heads * width;
        for (int head = 0; head < m.key_heads; head++) {
            const int64_t at = pages.at(head, batch.slots[t] / PAGE);
            write_token<Stored>(pages.keys + at, pages.values + at, batch.slots[t] % PAGE,
                                keys + head * width, values + head * width, width);
        }
    }

    void turn(float* vector, const float* cos, const float* sin) {
        const int half = m.head_width / 2;
        for (int i = 0; i < half; i++) {
            const float left = vector[i], right = vector[i + half];
            vector[i] = left * cos[i] - right * sin[i];
            vector[i + half] = right * cos[i] + left * sin[i];
        }
    }

    // Workers draw (row, block of tokens, key head) from one count: rows are of very different lengths.
    void attend_all(std::atomic<int>& next, const CacheLayer& pages) {
        const int block = std::max(1, QUERY_ROWS / (m.query_heads / m.key_heads));
        int mine = next++, item = 0;
        for (int row = 0; row < batch.rows.count; row++)
            for (int first = 0; first < batch.rows.span[row]; first += block)
                for (int head = 0; head < m.key_heads; head++)
                    if (item++ == mine) {
                        attend_block(row, first, std::min(block, batch.rows.span[row] - first), head, pages);
                        mine = next++;
                    }
    }

    void attend_block(int row, int first, int tokens, int head, const CacheLayer& pages) {
        thread_local Softmax<Stored> state;
        const Rows& rows = batch.rows;
        const Heads shape = {m.query_heads, m.key_heads, m.head_width};
        const int64_t token = rows.first[row] + first;
        attend(state, pages, shape, head, rows.pages + row * rows.row_pages, rows.start[row] + first, tokens,
               query(head, token, 0));
        for (int r = 0; r < tokens * shape.group(); r++) {
            const int column = (head * shape.group() + r % shape.group()) * m.head_width;
            const float scale = 1.0f / state.total[r];
            for (int d = 0; d < m.head_width; d += LANES)
                keep(room.inputs, token + r / shape.group(), column + d,
                     load<Floats>(state.mixed[r] + d) * scale);
        }
    }

    void add_product(const Matrix& weight, const Inputs& inputs, Worker me) {
        multiply<Kind>(weight, inputs, batch.count, me,
                       [&](int row, int panel, const Floats* sums, auto panels) {
                           for (int p = 0; p < decltype(panels)::value; p++) {
                               float* to = hidden(row) + (panel + p) * LANES;
                               store(to, load<Floats>(to) + biased(weight, panel + p, sums[p]));
                           }
                       });
        meet(me);
    }

    static Floats biased(const Matrix& weight, int panel, Floats sums) {
        return weight.bias ? sums + load<Floats>(weight.bias + panel * LANES) : sums;
    }

    // Sixteen numbers of an input; bytes need a whole group first, so those wait as floats for `requantise`.
    void keep(const Inputs& to, int64_t row, int column, Floats numbers) {
        if constexpr (std::is_same_v<Kind, Int8>) {
            store(wide(row) + column, numbers);
        } else {
            Kind::convert(to.row(row) + column * sizeof(typename Kind::Number), numbers);
        }
    }

    void requantise(const Inputs& to, int columns, Worker me) {
        if constexpr (std::is_same_v<Kind, Int8>) {
            for (int64_t t = me.from(batch.count); t < me.to(batch.count); t++)
                quantise(wide(t), columns, input(to, columns), t);
            meet(me);
        }
    }

    static Inputs input(Inputs inputs, int columns) {
        inputs.groups = (columns + GROUP - 1) / GROUP;
        return inputs;
    }

    float* hidden(int64_t row) { return room.hidden + row * room.hidden_row; }
    float* wide(int64_t row) { return room.wide + row * room.wide_row; }
    char* query(int64_t key_head, int64_t token, int64_t query_head) {
        const int64_t group = m.query_heads / m.key_heads;
        const int64_t at = (key_head * batch.count + token) * group + query_head;
        return room.queries + at * m.head_width * int64_t(sizeof(typename Stored::Number));
    }
    void meet(Worker me) { barrier.wait(me.size); }

    const Model& m;
    const Batch& batch;
    const Cache& cache;
    float* scores;
    Room& room;
    std::vector<std::atomic<int>> drawn;  // items of each layer's attention
    Barrier barrier;
};

template <class Kind, class Stored>
static void forward(const Model& model, const Batch& batch, const Cache& cache, float* scores, Room& room,
                    int threads) {
    Pass<Kind, Stored> pass(model, batch, cache, scores, room);
    if (threads == 1) {
        pass.run({0, 1});
        return;
    }
#pragma omp parallel num_threads(threads)
    pass.run({omp_get_thread_num(), omp_get_num_threads()});
}

extern "C" int64_t treadle_room(const Model* model, int32_t tokens) {
    return Room(*model, tokens, nullptr).bytes;
}

// precision: 0 float32, 1 bfloat16, 2 int8 with keys and values in bfloat16.
extern "C" void treadle_forward(int32_t precision, const Model* model, const Batch* batch, const Cache* cache,
                                float* scores, char* memory, int32_t threads) {
    Room room(*model, batch->count, memory);
    if (precision == 0) forward<Float32, Float32>(*model, *batch, *cache, scores, room, threads);
    if (precision == 1) forward<BFloat16, BFloat16>(*model, *batch, *cache, scores, room, threads);
    if (precision == 2) forward<Int8, BFloat16>(*model, *batch, *cache, scores, room, threads);
}
