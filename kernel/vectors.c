/* Vectors as small whole numbers: a first look at many rows that reads a quarter of their bytes. */

#include "kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_WIDE 1
#include <immintrin.h>
#endif

static int32_t dot(const int8_t *row, const int16_t *question, Py_ssize_t size)
{
    int32_t sum = 0;
    for (Py_ssize_t i = 0; i < size; i++)
        sum += (int32_t)row[i] * question[i];
    return sum;
}

#ifdef HAS_WIDE
__attribute__((target("avx2"))) static int32_t dot_wide(const int8_t *row, const int16_t *question, Py_ssize_t size)
{
    __m256i sums = _mm256_setzero_si256();
    Py_ssize_t i = 0;
    for (; i + 16 <= size; i += 16) {
        __m256i codes = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(row + i)));
        __m256i asked = _mm256_loadu_si256((const __m256i *)(question + i));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(codes, asked));
    }
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
    return _mm_cvtsi128_si32(half) + dot(row + i, question + i, size - i);
}
#endif

static void all_dots(const int8_t *codes, const float *scales, const int16_t *question, float *out, Py_ssize_t rows,
                     Py_ssize_t size)
{
    int32_t (*one)(const int8_t *, const int16_t *, Py_ssize_t) = dot;
#ifdef HAS_WIDE
    if (__builtin_cpu_supports("avx2"))
        one = dot_wide;
#endif
    for (Py_ssize_t i = 0; i < rows; i++)
        out[i] = (float)one(codes + i * size, question, size) * scales[i];
}

/* dots(codes int8 rows × size, scales float32 rows, question int16 size, out float32 rows) */
PyObject *kernel_dots(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"codes", "scales", "question", "out"};
    static const Py_ssize_t sizes[] = {1, 4, 2, 4};
    Numbers held[4];
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "dots takes 4 arguments, not %zd", count);
    for (int i = 0; i < 4; i++)
        if (numbers_held(arguments[i], sizes[i], i == 3, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return NULL;
        }
    Py_ssize_t rows = held[1].count, size = held[2].count;
    if (held[3].count != rows || held[0].count != rows * size) {
        numbers_let_go(held, 4);
        PyErr_SetString(PyExc_ValueError, "codes, scales, question and out are not of one size");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    all_dots(held[0].view.buf, held[1].view.buf, held[2].view.buf, held[3].view.buf, rows, size);
    Py_END_ALLOW_THREADS
    numbers_let_go(held, 4);
    Py_RETURN_NONE;
}
