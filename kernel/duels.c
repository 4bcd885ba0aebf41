/* Who of two is placed first by diversity, under many settings: a row for each, every one as far as it takes. */

#include "kernel.h"

#include <math.h>

enum { OPEN, PLACED, LOST, WON }; /* PLACED: the one has its place, and the other may still come too close to it */

#define TIED (-1)
#define DECIDED (-2)

/* What does not change from row to row. */
typedef struct {
    Py_ssize_t size;
    const double *alike; /* how like each place all are, a row for each that was compared */
    const uint8_t *compared;
    const int64_t *turns; /* in which order equals are placed, if that is known */
    double by;
} Field;

/* Return the place that gains most, of equals the one whose turn comes first; TIED if no turns are known. */
static Py_ssize_t best_of(const Field *field, const double *gains)
{
    Py_ssize_t best = 0;
    int is_tied = 0;
    for (Py_ssize_t i = 1; i < field->size; i++) {
        if (gains[i] > gains[best]) {
            best = i;
            is_tied = 0;
        } else if (gains[i] == gains[best]) {
            is_tied = 1;
            if (field->turns && field->turns[i] < field->turns[best])
                best = i;
        }
    }
    return is_tied && !field->turns ? TIED : best;
}

/* Let each gain no more than what being like the one that is placed leaves of its worth. */
static void reduce(double *gains, const double *worth, const double *alike, double others, Py_ssize_t size)
{
    for (Py_ssize_t i = 0; i < size; i++) {
        double left = worth[i] - alike[i] * others;
        gains[i] = left < gains[i] ? left : gains[i];
    }
}

/* Place until it is decided who is first. Returns DECIDED, TIED, or a place that was not compared yet. */
static Py_ssize_t duel(const Field *field, double *gains, const double *worth, double others, const int64_t *pair,
                       double *least, uint8_t *state)
{
    Py_ssize_t one = (Py_ssize_t)pair[0], other = (Py_ssize_t)pair[1];
    while (*state == OPEN || *state == PLACED) {
        if (least[0] - gains[other] > field->by) {
            *state = WON;
            break;
        }
        if (*state == OPEN && gains[one] < least[1]) {
            *state = LOST;
            break;
        }
        Py_ssize_t best = best_of(field, gains);
        if (best == TIED)
            return TIED;
        if (best == other || gains[best] == -INFINITY) {
            *state = LOST; /* else it would have been decided above */
            break;
        }
        if (best == one) {
            *state = field->by > 0.0 ? PLACED : WON;
            least[0] = gains[one];
            if (*state == WON)
                break;
        }
        if (!field->compared[best])
            return best;
        reduce(gains, worth, field->alike + best * field->size, others, field->size);
        gains[best] = -INFINITY;
    }
    return DECIDED;
}

/* Let every row go on as far as it can. Returns how many wait, with the places they wait for, or TIED. */
static Py_ssize_t duels(const Field *field, Numbers *held, Py_ssize_t rows)
{
    const double *worth = held[3].view.buf, *others = held[5].view.buf;
    const int64_t *pairs = held[6].view.buf;
    double *gains = held[4].view.buf, *least = held[7].view.buf;
    uint8_t *states = held[8].view.buf;
    int64_t *wanted = held[9].view.buf;
    Py_ssize_t waiting = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        Py_ssize_t start = row * field->size;
        Py_ssize_t place = duel(field, gains + start, worth + start, others[row], pairs + 2 * row, least + 2 * row,
                                states + row);
        if (place == TIED)
            return TIED;
        if (place != DECIDED)
            wanted[waiting++] = place;
    }
    return waiting;
}

static int fits(const Numbers *held, Py_ssize_t size, Py_ssize_t rows)
{
    const int64_t *pairs = held[6].view.buf;
    if (held[0].count != size * size || (held[2].count && held[2].count != size) || held[3].count != rows * size ||
        held[4].count != rows * size || held[6].count != 2 * rows || held[7].count != 2 * rows ||
        held[8].count != rows || held[9].count != rows)
        return 0;
    for (Py_ssize_t i = 0; i < 2 * rows; i++)
        if (pairs[i] < 0 || pairs[i] >= size)
            return 0;
    return 1;
}

/* duels(alike float64 size × size, compared uint8 size, turns int64 size or none of it, worth float64 rows × size,
   gains float64 rows × size, others float64 rows, pairs int64 rows × 2, least float64 rows × 2, states uint8 rows,
   wanted int64 rows, by) */
PyObject *kernel_duels(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"alike", "compared", "turns", "worth", "gains",
                                        "others", "pairs", "least", "states", "wanted"};
    static const Py_ssize_t sizes[] = {8, 1, 8, 8, 8, 8, 8, 8, 1, 8};
    static const int is_written[] = {0, 0, 0, 0, 1, 0, 0, 1, 1, 1};
    Numbers held[10];
    (void)module;
    if (count != 11)
        return PyErr_Format(PyExc_TypeError, "duels takes 11 arguments, not %zd", count);
    double by = PyFloat_AsDouble(arguments[10]);
    if (by == -1.0 && PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 10; i++)
        if (numbers_held(arguments[i], sizes[i], is_written[i], names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return NULL;
        }
    Py_ssize_t size = held[1].count, rows = held[5].count, waiting = 0;
    int is_sound = fits(held, size, rows);
    if (is_sound) {
        Field field = {size, held[0].view.buf, held[1].view.buf, held[2].count ? held[2].view.buf : NULL, by};
        Py_BEGIN_ALLOW_THREADS
        waiting = duels(&field, held, rows);
        Py_END_ALLOW_THREADS
    }
    numbers_let_go(held, 10);
    if (!is_sound)
        return PyErr_Format(PyExc_ValueError, "the numbers of duels are not of one size, or a place is beyond them");
    return PyLong_FromSsize_t(waiting);
}
