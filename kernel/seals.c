/* Checksums of sealed bytes: CRC-32 as zlib computes it, by products without carries, 64 bytes a step. */

#include "kernel.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_CARRYLESS 1
#include <immintrin.h>
#endif

#define SEAL_BYTES 4
#define POLYNOMIAL 0xEDB88320u /* with the lowest power in the highest bit */
#define LANE 16
#define STEP (4 * LANE)

static uint32_t bytes_left(uint32_t rest, const unsigned char *bytes, Py_ssize_t length)
{
    for (; length > 0; length--, bytes++) {
        rest ^= *bytes;
        for (int bit = 0; bit < 8; bit++)
            rest = (rest >> 1) ^ (POLYNOMIAL & (0u - (rest & 1)));
    }
    return rest;
}

#ifdef HAS_CARRYLESS
#define WITH_CARRYLESS __attribute__((target("pclmul,sse4.1")))

/* The 16 bytes that leave the same rest `distance` bytes further on, added to those that stand there. The powers of x
   are those of Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009. */
WITH_CARRYLESS static __m128i carried(__m128i lane, __m128i powers, __m128i further)
{
    __m128i low = _mm_clmulepi64_si128(lane, powers, 0x00), high = _mm_clmulepi64_si128(lane, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), further);
}

WITH_CARRYLESS static __m128i lane_at(const unsigned char *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

WITH_CARRYLESS static uint32_t checksum(const unsigned char *bytes, Py_ssize_t length)
{
    const __m128i four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4); /* x to 4·128 − 32 and 4·128 + 32 */
    const __m128i one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);  /* x to 128 − 32 and 128 + 32 */
    unsigned char last[LANE];
    if (length < STEP)
        return ~bytes_left(0xFFFFFFFFu, bytes, length);
    __m128i lanes[4];
    for (int i = 0; i < 4; i++)
        lanes[i] = lane_at(bytes + i * LANE);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(-1));
    for (bytes += STEP, length -= STEP; length >= STEP; bytes += STEP, length -= STEP)
        for (int i = 0; i < 4; i++)
            lanes[i] = carried(lanes[i], four, lane_at(bytes + i * LANE));
    for (int i = 1; i < 4; i++)
        lanes[i] = carried(lanes[i - 1], one, lanes[i]);
    for (; length >= LANE; bytes += LANE, length -= LANE)
        lanes[3] = carried(lanes[3], one, lane_at(bytes));
    _mm_storeu_si128((__m128i *)last, lanes[3]);
    return ~bytes_left(bytes_left(0, last, LANE), bytes, length);
}
#endif

int has_seals(void)
{
#ifdef HAS_CARRYLESS
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#else
    return 0;
#endif
}

/* sealed(blob): whether bytes are those that their checksum was made of; only where SEALS says that this is fast. */
PyObject *kernel_sealed(PyObject *module, PyObject *blob)
{
    char *bytes;
    Py_ssize_t length;
    uint32_t sealed;
    (void)module;
    if (PyBytes_AsStringAndSize(blob, &bytes, &length) < 0)
        return NULL;
    if (length <= SEAL_BYTES)
        return PyBool_FromLong(0);
    const unsigned char *body = (const unsigned char *)bytes + SEAL_BYTES;
    memcpy(&sealed, bytes, SEAL_BYTES);
#ifdef HAS_CARRYLESS
    if (has_seals())
        return PyBool_FromLong(checksum(body, length - SEAL_BYTES) == sealed);
#endif
    return PyBool_FromLong(~bytes_left(0xFFFFFFFFu, body, length - SEAL_BYTES) == sealed);
}
