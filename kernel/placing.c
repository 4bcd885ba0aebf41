/* Placing by diversity, as `ranking/diversity.py` does it: MMR, to the last bit. */

#include "placing.h"

#include <math.h>
#include <stdlib.h>

int placing_made(Placing *placing, Py_ssize_t size)
{
    Py_ssize_t leaves = 1;
    if (size > INT32_MAX / 4) {
        PyErr_SetString(PyExc_ValueError, "so many are not placed");
        return -1;
    }
    while (leaves < size)
        leaves *= 2;
    placing->size = size;
    placing->leaves = leaves;
    placing->memory = malloc((size_t)(size + 1) * (sizeof(double) + 2 * sizeof(int32_t)) +
                             2 * (size_t)leaves * sizeof(int32_t));
    if (placing->memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    placing->gains = placing->memory;
    placing->held = (int32_t *)(placing->gains + size + 1);
    placing->placed = placing->held + size + 1;
    placing->winners = placing->placed + size + 1;
    return 0;
}

void placing_let_go(Placing *placing)
{
    free(placing->memory);
}

/* Tell who of two is placed first as things stand, of equals the one whose turn it is. */
static int is_first(const Placing *placing, int32_t one, int32_t other)
{
    double gain = placing->gains[one], other_gain = placing->gains[other];
    if (gain != other_gain)
        return gain > other_gain;
    return placing->turns ? placing->turns[one] <= placing->turns[other] : one <= other;
}

static int32_t winner_of(const Placing *placing, Py_ssize_t node)
{
    int32_t one = placing->winners[2 * node], other = placing->winners[2 * node + 1];
    if (one < 0 || other < 0)
        return one < 0 ? other : one;
    return is_first(placing, one, other) ? one : other;
}

/* Let a place whose gain has fallen find out how far it still gets. */
static void settle(Placing *placing, Py_ssize_t place)
{
    for (Py_ssize_t node = (placing->leaves + place) / 2; node >= 1; node /= 2)
        placing->winners[node] = winner_of(placing, node);
}

void placing_begin(Placing *placing, const double *worth, double others)
{
    placing->worth = worth;
    placing->others = others;
    placing->count = 0;
    for (Py_ssize_t i = 0; i < placing->leaves; i++)
        placing->winners[placing->leaves + i] = i < placing->size ? (int32_t)i : NOBODY;
}

void placing_admit(Placing *placing, const int64_t *tiers, int64_t tier)
{
    for (Py_ssize_t i = 0; i < placing->size; i++) {
        placing->gains[i] = tiers[i] == tier ? placing->worth[i] : -INFINITY;
        placing->held[i] = 0;
    }
    for (Py_ssize_t node = placing->leaves - 1; node >= 1; node--)
        placing->winners[node] = winner_of(placing, node);
}

/* Hold one against the next of those that are placed. Tells whether that costs it anything. */
static int falls(Placing *placing, Py_ssize_t place)
{
    int32_t next = placing->placed[placing->held[place]++];
    double left = placing->worth[place] - placing_alike(placing, next, place) * placing->others;
    if (!(left < placing->gains[place]))
        return 0;
    placing->gains[place] = left;
    return 1;
}

double placing_gain(Placing *placing, Py_ssize_t place)
{
    int is_lower = 0;
    while (placing->held[place] < placing->count && placing->gains[place] > -INFINITY)
        is_lower |= falls(placing, place);
    if (is_lower)
        settle(placing, place);
    return placing->gains[place];
}

/* Return another that gains as much as the best, or NOBODY. */
static Py_ssize_t equal_of(Placing *placing, Py_ssize_t best)
{
    double gain = placing->gains[best];
    for (Py_ssize_t i = 0; i < placing->size; i++)
        if (placing->gains[i] == gain && i != best && placing_gain(placing, i) == gain)
            return i;
    return NOBODY;
}

Py_ssize_t placing_best(Placing *placing)
{
    if (!placing->size)
        return NOBODY;
    for (;;) {
        Py_ssize_t best = placing->winners[1];
        if (placing->gains[best] == -INFINITY)
            return NOBODY;
        if (placing->held[best] < placing->count) {
            if (falls(placing, best))
                settle(placing, best);
        } else if (placing->turns || equal_of(placing, best) == NOBODY) {
            return best;
        } else {
            return TIED;
        }
    }
}

void placing_place(Placing *placing, Py_ssize_t place)
{
    placing->placed[placing->count++] = (int32_t)place;
    placing->gains[place] = -INFINITY;
    settle(placing, place);
}

/* -- from Python ---------------------------------------------------------------------------------------------- */

int pool_held(PyObject *const *arguments, Likeness *likeness, Numbers *held, Placing *placing)
{
    static const char *const names[] = {"members", "turns"};
    if (likeness_held(arguments[0], likeness) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (numbers_held(arguments[1 + i], 8, 0, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            likeness_let_go(likeness);
            return -1;
        }
    Py_ssize_t size = held[0].count;
    const int64_t *members = held[0].view.buf;
    int is_sound = !held[1].count || held[1].count == size;
    for (Py_ssize_t i = 0; is_sound && i < size; i++)
        is_sound = members[i] >= 0;
    if (!is_sound)
        PyErr_SetString(PyExc_ValueError, "there is not a turn for each place, or a member is below the first");
    if (!is_sound || placing_made(placing, size) < 0) {
        numbers_let_go(held, 2);
        likeness_let_go(likeness);
        return -1;
    }
    placing->likeness = likeness;
    placing->members = members;
    placing->turns = held[1].count ? held[1].view.buf : NULL;
    return 0;
}

void pool_let_go(Likeness *likeness, Numbers *held, Placing *placing)
{
    placing_let_go(placing);
    numbers_let_go(held, 2);
    likeness_let_go(likeness);
}

int rows_held(PyObject *const *arguments, const char *const *names, const Py_ssize_t *sizes, int first_written,
                     int count, Numbers *held)
{
    for (int i = 0; i < count; i++)
        if (numbers_held(arguments[i], sizes[i], i >= first_written, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return -1;
        }
    return 0;
}
