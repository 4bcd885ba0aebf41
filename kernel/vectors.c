/* Vectors as small whole numbers: a first look at many rows that reads a quarter of their bytes. */

#include "kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_WIDE 1
#include <immintrin.h>
#endif

#define LARGEST_CODE 127
#define SMALLEST_STEP 1e-30f /* of a scale: what is smaller has no reciprocal, and counts as nothing */
#define WHOLE 12582912.0f /* 1.5 · 2^23: the lowest byte of a small number added to it is the nearest whole one */
#define ROUNDED_UP 1.000001 /* a little more than it is, so that rounding makes it no less */
#define ROUNDING 1e-6 /* more than float32 rounds off a product of a sum and a scale, as a share of it */
#define ADDED_AT_ONCE 128 /* numbers: the block of numpy's sums */
#define LINE_FLOATS 16 /* in a line of the processor's cache */
#define LANES 8 /* sums kept apart, so that a compiler may add them side by side */
#define ROWS_AT_ONCE 4 /* compared together: each part of a question is read once for all of them */
#define SHARES 4096 /* that the span of values is divided into, to see how many lie above */

/* -- codes ---------------------------------------------------------------------------------------------------- */

static int32_t bits_of(float number)
{
    int32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Return the largest size of a row's numbers; no number if one of them is none. */
static float peak_of(const float *row, Py_ssize_t size)
{
    int32_t peak = 0; /* sizes are ordered as their bits are, and what is no number comes last */
    float found;
    for (Py_ssize_t i = 0; i < size; i++) {
        int32_t bits = bits_of(row[i]) & INT32_MAX;
        peak = bits > peak ? bits : peak;
    }
    memcpy(&found, &peak, sizeof found);
    return found;
}

/* Return how far a row is from its codes. */
static double lost_of(const float *row, const int8_t *codes, float step, Py_ssize_t size)
{
    double lost[LANES] = {0.0};
    Py_ssize_t even = size - size % LANES;
    for (Py_ssize_t i = 0; i < even; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            double apart = (double)row[i + lane] - (double)step * codes[i + lane];
            lost[lane] += apart * apart;
        }
    for (Py_ssize_t i = even; i < size; i++) {
        double apart = (double)row[i] - (double)step * codes[i];
        lost[0] += apart * apart;
    }
    for (int lane = 1; lane < LANES; lane++)
        lost[0] += lost[lane];
    return sqrt(lost[0]);
}

/* Write a row as whole numbers of a step, and how long what is lost by that is; no number if the row has none. */
static void code_row(const float *row, int8_t *codes, float *scale, float *error, Py_ssize_t size)
{
    float peak = peak_of(row, size), step = peak / LARGEST_CODE;
    step = step > SMALLEST_STEP ? step : 0.0f;
    float steps = step > 0.0f ? 1.0f / step : 0.0f;
    for (Py_ssize_t i = 0; i < size; i++)
        codes[i] = (int8_t)(uint8_t)bits_of(row[i] * steps + WHOLE);
    *scale = step;
    *error = peak < INFINITY ? (float)(lost_of(row, codes, step, size) * ROUNDED_UP) : NAN;
}

/* coded(vectors float32 rows × size, codes int8 rows × size, scales float32 rows, errors float32 rows) */
PyObject *kernel_coded(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"vectors", "codes", "scales", "errors"};
    static const Py_ssize_t sizes[] = {4, 1, 4, 4};
    Numbers held[4];
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "coded takes 4 arguments, not %zd", count);
    for (int i = 0; i < 4; i++)
        if (numbers_held(arguments[i], sizes[i], i > 0, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return NULL;
        }
    Py_ssize_t rows = held[2].count, size = rows ? held[0].count / rows : 0;
    if (held[3].count != rows || held[0].count != rows * size || held[1].count != held[0].count) {
        numbers_let_go(held, 4);
        PyErr_SetString(PyExc_ValueError, "vectors, codes, scales and errors are not of one size");
        return NULL;
    }
    const float *vectors = held[0].view.buf;
    int8_t *codes = held[1].view.buf;
    float *scales = held[2].view.buf, *errors = held[3].view.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < rows; i++)
        code_row(vectors + i * size, codes + i * size, scales + i, errors + i, size);
    Py_END_ALLOW_THREADS
    numbers_let_go(held, 4);
    Py_RETURN_NONE;
}

/* -- products ------------------------------------------------------------------------------------------------- */

static int32_t dot(const int8_t *row, const int16_t *question, Py_ssize_t size)
{
    int32_t sum = 0; /* a question is coded so that no sum is too large */
    for (Py_ssize_t i = 0; i < size; i++)
        sum += (int32_t)row[i] * question[i];
    return sum;
}

/* Write the products of ROWS_AT_ONCE rows that follow each other. */
static void dots(const int8_t *rows, const int16_t *question, Py_ssize_t size, int32_t *sums)
{
    for (int row = 0; row < ROWS_AT_ONCE; row++)
        sums[row] = dot(rows + row * size, question, size);
}

#ifdef HAS_WIDE
__attribute__((target("avx2"))) static __m256i added_wide(__m256i sums, const int8_t *codes, __m256i asked)
{
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)codes));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(wide, asked));
}

__attribute__((target("avx2"))) static void dots_wide(const int8_t *rows, const int16_t *question, Py_ssize_t size,
                                                      int32_t *sums)
{
    __m256i one = _mm256_setzero_si256(), two = one, three = one, four = one;
    Py_ssize_t i = 0;
    for (; i + 16 <= size; i += 16) {
        __m256i asked = _mm256_loadu_si256((const __m256i *)(question + i));
        one = added_wide(one, rows + i, asked);
        two = added_wide(two, rows + size + i, asked);
        three = added_wide(three, rows + 2 * size + i, asked);
        four = added_wide(four, rows + 3 * size + i, asked);
    }
    __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(one, two), _mm256_hadd_epi32(three, four));
    __m128i whole = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storeu_si128((__m128i *)sums, whole);
    for (int row = 0; row < ROWS_AT_ONCE && i < size; row++)
        sums[row] += dot(rows + row * size + i, question + i, size - i);
}
#endif

typedef void (*Dots)(const int8_t *, const int16_t *, Py_ssize_t, int32_t *);

static Dots best_dots(void)
{
#ifdef HAS_WIDE
    if (__builtin_cpu_supports("avx2"))
        return dots_wide;
#endif
    return dots;
}

/* -- the nearest ---------------------------------------------------------------------------------------------- */

/* Rows in codes. No row lost more than `reach`, no scale is above `step`. */
typedef struct {
    const int8_t *codes;
    const float *scales;
    const uint8_t *mask; /* NULL: all may be found */
    Py_ssize_t rows, size;
    double reach, step;
} Coded;

/* A question in codes: how much one is worth, and how far a product of codes may be from that of the numbers. */
typedef struct {
    double unit, margin;
} Asked;

/* Write a question as whole numbers. The margin is no number, or none is below it, if that cannot be done. */
static Asked question_coded(const Coded *coded, const float *question, int16_t *codes)
{
    Py_ssize_t size = coded->size;
    double most = floor(INT32_MAX / (128.0 * (size ? size : 1)));
    double unit = peak_of(question, size) / (most < INT16_MAX ? most : INT16_MAX), lost = 0.0, length = 0.0;
    if (!(unit > SMALLEST_STEP && unit < INFINITY))
        return (Asked){0.0, NAN};
    for (Py_ssize_t i = 0; i < size; i++) {
        double code = floor(question[i] / unit + 0.5);
        codes[i] = (int16_t)code;
        lost += (question[i] - unit * code) * (question[i] - unit * code);
        length += unit * code * unit * code;
    }
    /* |v·q − s·u·(c·k)| ≤ |v|·|q − u·k| + |v − s·c|·|u·k|, and what float32 rounds off the product of codes. */
    double longest = LARGEST_CODE * coded->step * sqrt((double)size) + coded->reach;
    double margin = longest * sqrt(lost) + (coded->reach + longest * ROUNDING) * sqrt(length);
    return (Asked){unit, margin * ROUNDED_UP};
}

static int may_any_be_found(const Coded *coded, Py_ssize_t row, Py_ssize_t count)
{
    int is_any = coded->mask == NULL;
    for (Py_ssize_t i = 0; !is_any && i < count; i++)
        is_any = coded->mask[row + i];
    return is_any;
}

/* Compare rows that follow each other, ROWS_AT_ONCE of them at the most; what may not be found has less than any. */
static void compared_here(const Coded *coded, const int16_t *question, Py_ssize_t row, Py_ssize_t count, Dots all,
                          float *values)
{
    const int8_t *codes = coded->codes + row * coded->size;
    int32_t sums[ROWS_AT_ONCE];
    if (count == ROWS_AT_ONCE)
        all(codes, question, coded->size, sums);
    else
        for (Py_ssize_t i = 0; i < count; i++)
            sums[i] = dot(codes + i * coded->size, question, coded->size);
    for (Py_ssize_t i = 0; i < count; i++)
        values[row + i] = (float)sums[i] * coded->scales[row + i];
    for (Py_ssize_t i = 0; coded->mask && i < count; i++)
        values[row + i] = coded->mask[row + i] ? values[row + i] : -INFINITY;
}

static void compared(const Coded *coded, const int16_t *question, float *values)
{
    Dots all = best_dots();
    for (Py_ssize_t row = 0; row < coded->rows; row += ROWS_AT_ONCE) {
        Py_ssize_t count = coded->rows - row < ROWS_AT_ONCE ? coded->rows - row : ROWS_AT_ONCE;
        if (may_any_be_found(coded, row, count))
            compared_here(coded, question, row, count, all, values);
        else
            for (Py_ssize_t i = 0; i < count; i++)
                values[row + i] = -INFINITY;
    }
}

/* Return a value that `wanted` of some reach, and few more; less than any if there are not so many. All but some lie
   between −1 and 1, as cosines do, when they are multiplied by `unit`. */
static float reached(const float *values, Py_ssize_t count, float unit, Py_ssize_t wanted)
{
    uint32_t held[SHARES] = {0};
    float shares = unit * (SHARES / 2);
    for (Py_ssize_t i = 0; i < count; i++) {
        float share = values[i] * shares + SHARES / 2;
        share = share > 0.0f ? share : 0.0f;
        held[(int)(share < SHARES - 1 ? share : SHARES - 1)]++;
    }
    int share = SHARES;
    for (Py_ssize_t found = 0; share > 1 && found < wanted;)
        found += held[--share];
    /* The lowest holds what may not be found as well. One lower than it should be, as divisions are rounded. */
    return share > 1 ? (float)(share - 1 - SHARES / 2) / shares : -INFINITY;
}

/* Return a number of fewer digits that is no larger, and larger than what stands for nothing. */
static float below(double number)
{
    return number > -FLT_MAX ? nextafterf((float)number, -FLT_MAX) : -FLT_MAX;
}

/* Write the places whose values are at or above a bound; return how many, or -1 if there are more than fit. */
static Py_ssize_t gathered(const float *values, Py_ssize_t rows, float bound, int64_t *places, Py_ssize_t room)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < rows; i++)
        if (values[i] >= bound) {
            if (found == room)
                return -1;
            places[found++] = i;
        }
    return found;
}

/* Choose what may be among the nearest; say from which cosine on all of them are. -1 if that cannot be told. */
static Py_ssize_t chosen(const Coded *coded, const float *question, Py_ssize_t wanted, Numbers *places, double *lowest)
{
    Py_ssize_t found = -1;
    wanted = wanted < coded->rows ? wanted : coded->rows + 1;
    float *values = malloc((size_t)(coded->rows + 1) * sizeof(float));
    int16_t *codes = malloc((size_t)(coded->size + 1) * sizeof(int16_t));
    if (values != NULL && codes != NULL) {
        Asked asked = question_coded(coded, question, codes);
        if (asked.margin < INFINITY) {
            compared(coded, codes, values);
            *lowest = reached(values, coded->rows, (float)asked.unit, wanted);
            double bound = *lowest - 2.0 * asked.margin / asked.unit;
            found = gathered(values, coded->rows, below(bound), places->view.buf, places->count);
            *lowest = *lowest * asked.unit - asked.margin;
        }
    }
    free(values);
    free(codes);
    return found;
}

static int numbers_given(PyObject *const *arguments, Py_ssize_t *wanted, double *reach, double *step)
{
    *wanted = PyLong_AsSsize_t(arguments[0]);
    *reach = PyFloat_AsDouble(arguments[1]);
    *step = PyFloat_AsDouble(arguments[2]);
    return PyErr_Occurred() ? -1 : 0;
}

/* nearest(codes int8 rows × size, scales float32 rows, question float32 size, places int64, mask bool rows or None,
   wanted, reach, step): how many places were written, and the cosine at or above which there are no others. */
PyObject *kernel_nearest(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"codes", "scales", "question", "places", "mask"};
    static const Py_ssize_t sizes[] = {1, 4, 4, 8, 1};
    Numbers held[5];
    Coded coded;
    Py_ssize_t wanted, found;
    double lowest = -INFINITY;
    (void)module;
    if (count != 8)
        return PyErr_Format(PyExc_TypeError, "nearest takes 8 arguments, not %zd", count);
    if (numbers_given(arguments + 5, &wanted, &coded.reach, &coded.step) < 0)
        return NULL;
    int buffers = arguments[4] == Py_None ? 4 : 5;
    for (int i = 0; i < buffers; i++)
        if (numbers_held(arguments[i], sizes[i], i == 3, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return NULL;
        }
    coded.codes = held[0].view.buf, coded.scales = held[1].view.buf;
    coded.mask = buffers == 5 ? held[4].view.buf : NULL;
    coded.rows = held[1].count, coded.size = held[2].count;
    if (held[0].count != coded.rows * coded.size || wanted < 1 || (coded.mask && held[4].count != coded.rows)) {
        numbers_let_go(held, buffers);
        PyErr_SetString(PyExc_ValueError, "codes, scales, question and mask are not of one size, or nothing is wanted");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    found = chosen(&coded, held[2].view.buf, wanted, &held[3], &lowest);
    Py_END_ALLOW_THREADS
    numbers_let_go(held, buffers);
    return Py_BuildValue("nd", found, lowest);
}

/* -- cosines -------------------------------------------------------------------------------------------------- */

/* Add the sums that were kept apart as numpy does, and the products that are left. */
static double together(const double *sums, const float *row, const double *question, Py_ssize_t begin, Py_ssize_t size)
{
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; begin < size; begin++)
        sum += (double)row[begin] * question[begin];
    return sum;
}

/* Add up to ADDED_AT_ONCE products, LANES sums side by side. */
static double block_added(const float *row, const double *question, Py_ssize_t size)
{
    double sums[LANES] = {0.0};
    Py_ssize_t even = size - size % LANES;
    for (Py_ssize_t i = 0; i < even; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += (double)row[i + lane] * question[i + lane];
    return together(sums, row, question, even, size);
}

#ifdef HAS_WIDE
__attribute__((target("avx"))) static double block_added_wide(const float *row, const double *question, Py_ssize_t size)
{
    __m256d first = _mm256_setzero_pd(), last = _mm256_setzero_pd();
    Py_ssize_t even = size - size % LANES;
    double sums[LANES];
    for (Py_ssize_t i = 0; i < even; i += LANES) {
        __m256d one = _mm256_cvtps_pd(_mm_loadu_ps(row + i)), other = _mm256_cvtps_pd(_mm_loadu_ps(row + i + 4));
        first = _mm256_add_pd(first, _mm256_mul_pd(one, _mm256_loadu_pd(question + i)));
        last = _mm256_add_pd(last, _mm256_mul_pd(other, _mm256_loadu_pd(question + i + 4)));
    }
    _mm256_storeu_pd(sums, first);
    _mm256_storeu_pd(sums + 4, last);
    return together(sums, row, question, even, size);
}
#endif

typedef double (*Block)(const float *, const double *, Py_ssize_t);

static Block best_block(void)
{
#ifdef HAS_WIDE
    if (__builtin_cpu_supports("avx"))
        return block_added_wide;
#endif
    return block_added;
}

/* Add products up in the order numpy adds: what is longer than a block by halves. */
static double added(Block block, const float *row, const double *question, Py_ssize_t size)
{
    if (size <= ADDED_AT_ONCE)
        return block(row, question, size);
    Py_ssize_t half = size / 2 - size / 2 % LANES;
    return added(block, row, question, half) + added(block, row + half, question + half, size - half);
}

/* Have a row brought near before its turn comes. */
static void await(const float *row, Py_ssize_t size)
{
    for (Py_ssize_t i = 0; i < size; i += LINE_FLOATS)
        FETCH(row + i);
}

/* Write the cosine of each of some rows, all of which are there. */
static void cosines(const float *vectors, const int64_t *places, const double *question, Py_ssize_t size, Numbers *out)
{
    Block block = best_block();
    double *written = out->view.buf;
    for (Py_ssize_t i = 0; i < out->count; i++) {
        if (i + 1 < out->count)
            await(vectors + places[i + 1] * size, size);
        written[i] = added(block, vectors + places[i] * size, question, size) + 0.0; /* no zero is negative */
    }
}

static int are_there(const Numbers *places, Py_ssize_t rows)
{
    const int64_t *numbers = places->view.buf;
    for (Py_ssize_t i = 0; i < places->count; i++)
        if (numbers[i] < 0 || numbers[i] >= rows)
            return 0;
    return 1;
}

/* cosines(vectors float32 rows × size, places int64, question float64 size, out float64 places) */
PyObject *kernel_cosines(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"vectors", "places", "question", "out"};
    static const Py_ssize_t sizes[] = {4, 8, 8, 8};
    Numbers held[4];
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "cosines takes 4 arguments, not %zd", count);
    for (int i = 0; i < 4; i++)
        if (numbers_held(arguments[i], sizes[i], i == 3, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return NULL;
        }
    Py_ssize_t size = held[2].count, rows = size ? held[0].count / size : 0;
    int fits = held[0].count == rows * size && held[1].count == held[3].count, is_there = are_there(&held[1], rows);
    if (fits && is_there) {
        Py_BEGIN_ALLOW_THREADS
        cosines(held[0].view.buf, held[1].view.buf, held[2].view.buf, size, &held[3]);
        Py_END_ALLOW_THREADS
    }
    numbers_let_go(held, 4);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "vectors, places, question and out are not of one size");
    if (!is_there)
        return PyErr_Format(PyExc_IndexError, "a place is beyond the last row");
    Py_RETURN_NONE;
}
