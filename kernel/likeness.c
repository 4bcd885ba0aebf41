/* How like each other memories are: by their vectors, else by the words they share. */

#include "likeness.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_WIDE 1
#include <immintrin.h>
#endif

#define ADDED_AT_ONCE 128 /* numbers: the block of numpy's sums */
#define LANES 8 /* sums kept apart, as numpy keeps them */

/* -- by vectors ----------------------------------------------------------------------------------------------- */

/* Add the sums that were kept apart as numpy does, and the products that are left. */
static double together(const double *sums, const float *one, const float *other, Py_ssize_t begin, Py_ssize_t size)
{
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; begin < size; begin++)
        sum += (double)one[begin] * (double)other[begin];
    return sum;
}

/* Add up to ADDED_AT_ONCE products, LANES sums side by side. */
static double block_added(const float *one, const float *other, Py_ssize_t size)
{
    double sums[LANES] = {0.0};
    Py_ssize_t even = size - size % LANES;
    for (Py_ssize_t i = 0; i < even; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += (double)one[i + lane] * (double)other[i + lane];
    return together(sums, one, other, even, size);
}

#ifdef HAS_WIDE
__attribute__((target("avx"))) static double block_added_wide(const float *one, const float *other, Py_ssize_t size)
{
    __m256d first = _mm256_setzero_pd(), last = _mm256_setzero_pd();
    Py_ssize_t even = size - size % LANES;
    double sums[LANES];
    for (Py_ssize_t i = 0; i < even; i += LANES) {
        __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(one + i)), b = _mm256_cvtps_pd(_mm_loadu_ps(other + i));
        first = _mm256_add_pd(first, _mm256_mul_pd(a, b));
        a = _mm256_cvtps_pd(_mm_loadu_ps(one + i + 4)), b = _mm256_cvtps_pd(_mm_loadu_ps(other + i + 4));
        last = _mm256_add_pd(last, _mm256_mul_pd(a, b));
    }
    _mm256_storeu_pd(sums, first);
    _mm256_storeu_pd(sums + 4, last);
    return together(sums, one, other, even, size);
}
#endif

/* Add products up in the order numpy adds: what is longer than a block by halves. */
static double added(const Likeness *likeness, const float *one, const float *other, Py_ssize_t size)
{
    if (size <= ADDED_AT_ONCE)
        return likeness->block(one, other, size);
    Py_ssize_t half = size / 2 - size / 2 % LANES;
    return added(likeness, one, other, half) + added(likeness, one + half, other + half, size - half);
}

static double by_vectors(const Likeness *likeness, int64_t one, int64_t other)
{
    Py_ssize_t size = likeness->size;
    double cosine = added(likeness, likeness->vectors + one * size, likeness->vectors + other * size, size);
    return cosine > 0.0 ? cosine < 1.0 ? cosine : 1.0 : 0.0;
}

/* -- by words ------------------------------------------------------------------------------------------------- */

static int ones_in(uint64_t bits)
{
    int ones = 0;
    for (; bits; bits &= bits - 1)
        ones++;
    return ones;
}

/* Return the share of the words of two texts that both have; a word that one text alone has, has no bit. */
static double by_words(const Likeness *likeness, int64_t one, int64_t other)
{
    const uint64_t *first = likeness->texts + one * likeness->words, *second = likeness->texts + other * likeness->words;
    int64_t both = 0, either;
    if (one == other)
        both = likeness->lengths[one];
    else
        for (Py_ssize_t i = 0; i < likeness->words; i++)
            both += ones_in(first[i] & second[i]);
    either = likeness->lengths[one] + likeness->lengths[other] - both;
    return either > 0 ? (double)both / (double)either : 0.0;
}

double likeness_compared(const Likeness *likeness, int64_t one, int64_t other)
{
    Py_ssize_t cell = (Py_ssize_t)one * likeness->count + (Py_ssize_t)other;
    int64_t first = likeness->which[one], second = likeness->which[other];
    int have_vectors = first >= 0 && second >= 0;
    likeness->alike[cell] = have_vectors ? by_vectors(likeness, first, second) : by_words(likeness, one, other);
    likeness->known[cell] = 1;
    return likeness->alike[cell];
}

/* -- from Python ---------------------------------------------------------------------------------------------- */

/* Tell whether numbers are so many rows of a width; a product of what was given could overflow. */
static int are_rows(Py_ssize_t numbers, Py_ssize_t rows, Py_ssize_t width)
{
    return width ? numbers % width == 0 && numbers / width == rows : numbers == 0;
}

static int fits(const Likeness *likeness)
{
    const Numbers *held = likeness->held;
    Py_ssize_t count = likeness->count, rows = likeness->size ? held[0].count / likeness->size : 0;
    int64_t last = -1;
    for (Py_ssize_t i = 0; i < count; i++)
        last = likeness->which[i] > last ? likeness->which[i] : last;
    int are_there = likeness->size ? last == rows - 1 : last < 0 || held[0].count == 0;
    return are_there && are_rows(held[0].count, rows, likeness->size) &&
           are_rows(held[2].count, count, likeness->words) && held[3].count == count &&
           are_rows(held[4].count, count, count) && held[5].count == held[4].count;
}

/* Return how many numbers each row of a table has; there may be none. */
static Py_ssize_t width_of(const Numbers *table)
{
    return table->view.ndim == 2 ? table->view.shape[1] : 0;
}

int likeness_held(PyObject *compared, Likeness *likeness)
{
    static const char *const names[] = {"vectors", "which", "texts", "lengths", "alike", "known"};
    static const Py_ssize_t sizes[] = {4, 8, 8, 8, 8, 1};
    Numbers *held = likeness->held;
    if (!PyTuple_Check(compared) || PyTuple_Size(compared) != COMPARED_ITEMS) {
        PyErr_SetString(PyExc_TypeError, "what is compared is wanted as a tuple of six");
        return -1;
    }
    for (int i = 0; i < COMPARED_ITEMS; i++)
        if (numbers_held(PyTuple_GetItem(compared, i), sizes[i], i >= 4, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return -1;
        }
    likeness->count = held[1].count;
    likeness->size = width_of(&held[0]);
    likeness->words = width_of(&held[2]);
    likeness->vectors = held[0].view.buf;
    likeness->which = held[1].view.buf;
    likeness->texts = held[2].view.buf;
    likeness->lengths = held[3].view.buf;
    likeness->alike = held[4].view.buf;
    likeness->known = held[5].view.buf;
    likeness->block = block_added;
#ifdef HAS_WIDE
    if (__builtin_cpu_supports("avx"))
        likeness->block = block_added_wide;
#endif
    if (fits(likeness))
        return 0;
    likeness_let_go(likeness);
    PyErr_SetString(PyExc_ValueError, "what is compared is not of one size");
    return -1;
}

void likeness_let_go(Likeness *likeness)
{
    numbers_let_go(likeness->held, COMPARED_ITEMS);
}

/* alike(compared, place, others int64, out float64 others) */
PyObject *kernel_alike(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Likeness likeness;
    Numbers held[2];
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "alike takes 4 arguments, not %zd", count);
    Py_ssize_t place = PyNumber_AsSsize_t(arguments[1], PyExc_OverflowError);
    if ((place == -1 && PyErr_Occurred()) || likeness_held(arguments[0], &likeness) < 0)
        return NULL;
    if (numbers_held(arguments[2], 8, 0, "others", &held[0]) < 0) {
        likeness_let_go(&likeness);
        return NULL;
    }
    if (numbers_held(arguments[3], 8, 1, "out", &held[1]) < 0) {
        numbers_let_go(held, 1);
        likeness_let_go(&likeness);
        return NULL;
    }
    const int64_t *others = held[0].view.buf;
    double *out = held[1].view.buf;
    int is_sound = place >= 0 && held[0].count == held[1].count;
    for (Py_ssize_t i = 0; is_sound && i < held[0].count; i++)
        is_sound = others[i] >= 0;
    for (Py_ssize_t i = 0; is_sound && i < held[0].count; i++)
        out[i] = likeness_of(&likeness, place, others[i]);
    numbers_let_go(held, 2);
    likeness_let_go(&likeness);
    if (!is_sound)
        return PyErr_Format(PyExc_ValueError, "others and out are not of one size, or a place is below the first");
    Py_RETURN_NONE;
}
