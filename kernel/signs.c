/* Vectors by their signs: in how many dimensions they differ from a question's, and what its numbers add up to. */

#include "kernel.h"

#include <stdlib.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_WIDE 1
#include <immintrin.h>
#endif

#define WORD_BITS 64
#define WORD_BYTES 8
#define BYTE_VALUES 256
#define WORDS_AT_ONCE 31 /* whose bits a byte can count, each giving it eight at most */
#define MOST_WORDS 1023 /* whose bits are fewer than FAR */
#define FAR UINT16_MAX /* of what may not be found: farther than anything is */

#ifdef __GNUC__
#define INLINED static inline __attribute__((always_inline))
#define BITS(word) __builtin_popcountll(word)
#else
#define INLINED static inline
static inline int BITS(uint64_t word)
{
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    return (int)((((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u) >> 56);
}
#endif

/* Signs of rows: a line per 64 dimensions, a column per row. */
typedef struct {
    const uint64_t *signs;
    Py_ssize_t words, rows;
} Signs;

/* -- distances ------------------------------------------------------------------------------------------------ */

INLINED void count_differences(Signs of, const uint64_t *question, uint16_t *apart, Py_ssize_t first)
{
    for (Py_ssize_t row = first; row < of.rows; row++) {
        Py_ssize_t differing = 0;
        for (Py_ssize_t word = 0; word < of.words; word++)
            differing += BITS(of.signs[word * of.rows + row] ^ question[word]);
        apart[row] = (uint16_t)differing;
    }
}

static void differences(Signs of, const uint64_t *question, uint16_t *apart)
{
    count_differences(of, question, apart, 0);
}

#ifdef HAS_WIDE
/* Bits of four rows at once: those of each half byte are looked up, and added up byte by byte. */
__attribute__((target("avx2,popcnt"))) static void differences_wide(Signs of, const uint64_t *question, uint16_t *apart)
{
    const __m256i bits = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2,
                                          2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    Py_ssize_t whole = of.words <= WORDS_AT_ONCE ? of.rows - of.rows % 4 : 0;
    for (Py_ssize_t row = 0; row < whole; row += 4) {
        __m256i sums = _mm256_setzero_si256();
        for (Py_ssize_t word = 0; word < of.words; word++) {
            __m256i signs = _mm256_loadu_si256((const __m256i *)(of.signs + word * of.rows + row));
            __m256i differing = _mm256_xor_si256(signs, _mm256_set1_epi64x((int64_t)question[word]));
            __m256i upper = _mm256_and_si256(_mm256_srli_epi16(differing, 4), low);
            sums = _mm256_add_epi8(sums, _mm256_shuffle_epi8(bits, _mm256_and_si256(differing, low)));
            sums = _mm256_add_epi8(sums, _mm256_shuffle_epi8(bits, upper));
        }
        uint64_t totals[4];
        _mm256_storeu_si256((__m256i *)totals, _mm256_sad_epu8(sums, _mm256_setzero_si256()));
        for (int lane = 0; lane < 4; lane++)
            apart[row + lane] = (uint16_t)totals[lane];
    }
    count_differences(of, question, apart, whole);
}
#endif

/* Count how many rows differ in how many signs, in four places by turns: one place would have to wait for itself. */
static void counted(uint16_t *apart, Py_ssize_t rows, const uint8_t *mask, int64_t *counts, Py_ssize_t size)
{
    for (Py_ssize_t row = 0; row < rows; row++)
        if (!mask || mask[row])
            counts[(row & 3) * size + apart[row]]++;
        else
            apart[row] = FAR;
}

static int all_differences(Signs of, const uint64_t *question, const uint8_t *mask, uint16_t *apart, int64_t *counts)
{
    Py_ssize_t size = of.words * WORD_BITS + 1;
    int64_t *parts = calloc((size_t)size * 4, sizeof(int64_t));
    if (parts == NULL)
        return -1;
#ifdef HAS_WIDE
    if (__builtin_cpu_supports("avx2"))
        differences_wide(of, question, apart);
    else
#endif
        differences(of, question, apart);
    counted(apart, of.rows, mask, parts, size);
    for (Py_ssize_t i = 0; i < size; i++)
        counts[i] += parts[i] + parts[size + i] + parts[2 * size + i] + parts[3 * size + i];
    free(parts);
    return 0;
}

static int all_held(PyObject *const *arguments, const char *const *names, const Py_ssize_t *sizes, int count,
                    unsigned written, Numbers *held)
{
    for (int i = 0; i < count; i++)
        if (numbers_held(arguments[i], sizes[i], (written >> i) & 1, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return -1;
        }
    return 0;
}

static PyObject *refused(Numbers *held, int count, PyObject *kind, const char *told)
{
    numbers_let_go(held, count);
    PyErr_SetString(kind, told);
    return NULL;
}

/* apart(signs uint64 words × rows, question uint64 words, apart uint16 rows, counts int64, mask bool rows or None) */
PyObject *kernel_apart(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"signs", "question", "apart", "counts", "mask"};
    static const Py_ssize_t sizes[] = {8, 8, 2, 8, 1};
    Numbers held[5];
    (void)module;
    if (count != 5)
        return PyErr_Format(PyExc_TypeError, "apart takes 5 arguments, not %zd", count);
    int buffers = arguments[4] == Py_None ? 4 : 5;
    if (all_held(arguments, names, sizes, buffers, 1u << 2 | 1u << 3, held) < 0)
        return NULL;
    Signs of = {held[0].view.buf, held[1].count, held[2].count};
    if (of.words > MOST_WORDS || held[0].count != of.words * of.rows || held[3].count != of.words * WORD_BITS + 1 ||
        (buffers == 5 && held[4].count != of.rows))
        return refused(held, buffers, PyExc_ValueError, "signs, question, apart, counts and mask are not of one size");
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = all_differences(of, held[1].view.buf, buffers == 5 ? held[4].view.buf : NULL, held[2].view.buf, held[3].view.buf);
    Py_END_ALLOW_THREADS
    numbers_let_go(held, buffers);
    if (done < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* -- sums ----------------------------------------------------------------------------------------------------- */

/* What the numbers under each byte of signs add up to, for every byte there may be. */
static uint32_t *tables_of(const int32_t *numbers, Py_ssize_t bytes)
{
    uint32_t *tables = malloc((size_t)(bytes + 1) * BYTE_VALUES * sizeof(uint32_t));
    for (Py_ssize_t byte = 0; tables != NULL && byte < bytes; byte++) {
        uint32_t *table = tables + byte * BYTE_VALUES;
        table[0] = 0;
        for (int bit = 0; bit < 8; bit++)
            for (int value = 0; value < 1 << bit; value++)
                table[(1 << bit) + value] = table[value] + (uint32_t)numbers[byte * 8 + bit];
    }
    return tables;
}

/* Write the sum of the numbers under the signs of some rows; -1 if one of them is not there. */
static int sums_of(Signs of, const int64_t *places, Py_ssize_t count, const uint32_t *tables, double *sums)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        if (places[i] < 0 || places[i] >= of.rows)
            return -1;
        for (Py_ssize_t word = 0; word < of.words; word++) {
            uint64_t bits = of.signs[word * of.rows + places[i]];
            const uint32_t *table = tables + word * WORD_BYTES * BYTE_VALUES;
            for (int byte = 0; byte < WORD_BYTES; byte++, bits >>= 8)
                sum += table[byte * BYTE_VALUES + (bits & 0xFF)];
        }
        sums[i] = (double)(int32_t)sum;
    }
    return 0;
}

/* under(signs uint64 words × rows, places int64, numbers int32 words × 64, sums float64 places) */
PyObject *kernel_under(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"signs", "places", "numbers", "sums"};
    static const Py_ssize_t sizes[] = {8, 8, 4, 8};
    Numbers held[4];
    int done;
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "under takes 4 arguments, not %zd", count);
    if (all_held(arguments, names, sizes, 4, 1u << 3, held) < 0)
        return NULL;
    Py_ssize_t words = held[2].count / WORD_BITS;
    Signs of = {held[0].view.buf, words, words ? held[0].count / words : 0};
    if (held[2].count != words * WORD_BITS || held[0].count != words * of.rows || held[3].count != held[1].count)
        return refused(held, 4, PyExc_ValueError, "signs, places, numbers and sums are not of one size");
    uint32_t *tables = tables_of(held[2].view.buf, words * WORD_BYTES);
    if (tables == NULL) {
        numbers_let_go(held, 4);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    done = sums_of(of, held[1].view.buf, held[1].count, tables, held[3].view.buf);
    free(tables);
    Py_END_ALLOW_THREADS
    if (done < 0)
        return refused(held, 4, PyExc_IndexError, "a place is beyond the last row");
    numbers_let_go(held, 4);
    Py_RETURN_NONE;
}
