// Sixteen numbers at a time, and the three kinds of numbers that a product can be made of.
//
// The vectors are the compiler's own extension, so the code runs on any processor it knows; the two products
// that need instructions of their own, of bfloat16 and of bytes, have a plain form beside them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

constexpr int LANES = 16;
constexpr float ROUNDING = 12582912.0f;

typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

template <class Vector>
inline Vector load(const void* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class Vector>
inline void store(void* to, Vector vector) {
    std::memcpy(to, &vector, sizeof vector);
}

inline Floats splat(float number) { return Floats{} + number; }

inline float sum(Floats v) {
    float total[LANES];
    store(total, v);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) total[i] += total[i + width];
    return total[0];
}

inline float largest(Floats v) {
    float best[LANES];
    store(best, v);
    return *std::max_element(best, best + LANES);
}

// e to the x, within 2 units in the last place; NaN stays NaN, and below -87 the answer is about 1e-38.
[[gnu::always_inline]] inline Floats exp(Floats x) {
    x = x < -87.0f ? splat(-87.0f) : x;
    x = x > 88.0f ? splat(88.0f) : x;
    // Adding 1.5 * 2^23 rounds to a whole number, which then stands in the lowest bits.
    const Floats shifted = x * 1.44269504f + ROUNDING;
    const Floats whole = shifted - ROUNDING;
    const Floats rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    Floats series = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    series = series * rest + 8.3334519073e-3f;
    series = series * rest + 4.1665795894e-2f;
    series = series * rest + 1.6666665459e-1f;
    series = series * rest + 5.0000001201e-1f;
    series = series * rest * rest + rest + 1.0f;
    const Ints power = ((Ints)shifted + 127) << 23;  // what the rounding set above falls out
    return series * (Floats)power;
}

// Rounded to nearest even, as torch does; NaN stays NaN.
inline Halves to_bfloat16(Floats v) {
#if defined(__AVX512BF16__)
    return (Halves)_mm512_cvtneps_pbh((__m512)v);
#else
    const Words bits = (Words)v;
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return __builtin_convertvector(v == v ? rounded : Words{} + 0x7fc0, Halves);
#endif
}

inline Floats from_bfloat16(const void* from) {
    return (Floats)(__builtin_convertvector(load<Halves>(from), Words) << 16);
}

// A kind of number says how many of them make four bytes (a step), and what one step adds to a row of sums:
// sixteen columns of a weight times one number, pair or quartet of an input, which is the same for all.
struct Float32 {
    typedef float Number;
    typedef Floats Sums;
    static constexpr int PACK = 1;

    static inline Floats add(Floats sums, Words weights, const void* input) {
        return sums + (Floats)weights * *static_cast<const float*>(input);
    }
    static inline void convert(void* to, Floats v) { store(to, v); }
};

struct BFloat16 {
    typedef uint16_t Number;
    typedef Floats Sums;
    static constexpr int PACK = 2;

    static inline Floats add(Floats sums, Words weights, const void* input) {
        const uint32_t pair = *static_cast<const uint32_t*>(input);
#if defined(__AVX512BF16__)
        return (Floats)_mm512_dpbf16_ps((__m512)sums, (__m512bh)weights, (__m512bh)(Words{} + pair));
#else
        const Floats second = (Floats)(weights & 0xffff0000u), first = (Floats)(weights << 16);
        const Words high = Words{} + (pair & 0xffff0000u), low = Words{} + (pair << 16);
        return sums + second * (Floats)high + first * (Floats)low;
#endif
    }
    static inline void convert(void* to, Floats v) { store(to, to_bfloat16(v)); }
};

// Weights are signed bytes, inputs unsigned ones that stand for themselves less 128.
struct Int8 {
    typedef uint8_t Number;
    typedef Ints Sums;
    static constexpr int PACK = 4;

    static inline Ints add(Ints sums, Words weights, const void* input) {
        const uint32_t four = *static_cast<const uint32_t*>(input);
#if defined(__AVX512VNNI__)
        return (Ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)(Words{} + four), (__m512i)weights);
#else
        for (int byte = 0; byte < 4; byte++) {
            const Ints signed_weights = (Ints)(weights << (24 - 8 * byte)) >> 24;
            sums += signed_weights * static_cast<int32_t>(four >> (8 * byte) & 0xff);
        }
        return sums;
#endif
    }
};
