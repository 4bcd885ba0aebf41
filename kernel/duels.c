/* Who is placed by diversity: the first of a pool one after the other, or who of two comes first, under many settings. */

#include "placing.h"

#include <math.h>

enum { OPEN, LOST, WON };

/* -- one after the other -------------------------------------------------------------------------------------- */

/* Return the highest tier, or the highest below another. */
static int64_t next_below(const int64_t *tiers, Py_ssize_t size, int64_t tier, int is_first)
{
    int64_t next = INT64_MIN;
    for (Py_ssize_t i = 0; i < size; i++)
        if ((is_first || tiers[i] < tier) && tiers[i] > next)
            next = tiers[i];
    return next;
}

/* Place so many, or until all that are wanted have their place. Returns how many are placed, or TIED. */
static Py_ssize_t place_all(Placing *placing, const int64_t *tiers, const uint8_t *wanted, Py_ssize_t most,
                            int64_t *order, double *gains)
{
    Py_ssize_t missing = 0;
    int64_t tier = next_below(tiers, placing->size, 0, 1);
    for (Py_ssize_t i = 0; i < placing->size; i++)
        missing += wanted[i] != 0;
    if (!missing)
        missing = -1; /* nobody is waited for */
    while (tier > INT64_MIN && placing->count < most && missing) {
        placing_admit(placing, tiers, tier);
        while (placing->count < most && missing) {
            Py_ssize_t best = placing_best(placing);
            if (best == TIED)
                return TIED;
            if (best == NOBODY)
                break;
            order[placing->count] = best;
            gains[placing->count] = placing->gains[best];
            placing_place(placing, best);
            missing -= wanted[best] != 0;
        }
        tier = next_below(tiers, placing->size, tier, 0);
    }
    return placing->count;
}

/* -- who of two comes first ----------------------------------------------------------------------------------- */

/* Return how much one is left with at least, however much it is like whoever may come before it. */
static double least_of(const Placing *placing, Py_ssize_t place)
{
    double most = 0.0;
    for (Py_ssize_t i = 0; i < placing->size; i++)
        if (i != place && placing->worth[i] > -INFINITY) {
            double alike = placing_alike(placing, place, i);
            most = alike > most ? alike : most;
        }
    return placing->worth[place] - most * placing->others;
}

/* Place whoever stands in tiers above, in whatever order, and let those of this one begin. */
static void begin_below(Placing *placing, const int64_t *tiers, int64_t tier)
{
    for (Py_ssize_t i = 0; i < placing->size; i++)
        if (tiers[i] > tier && placing->worth[i] > -INFINITY)
            placing->placed[placing->count++] = (int32_t)i;
    placing_admit(placing, tiers, tier);
}

/* Place until it is known who is first, its gain above the other's by more than this: WON, LOST or TIED. Gains only
   fall, and not below what being most like somebody leaves: often that tells before either is placed. */
static Py_ssize_t duel(Placing *placing, Py_ssize_t one, Py_ssize_t other, double by)
{
    double least = least_of(placing, one), least_other = least_of(placing, other);
    int is_placed = 0;
    for (;;) {
        if (least - placing_gain(placing, other) > by)
            return WON;
        if (!is_placed && placing_gain(placing, one) < least_other)
            return LOST;
        Py_ssize_t best = placing_best(placing);
        if (best == TIED)
            return TIED;
        if (best == other || best == NOBODY)
            return LOST; /* else it would have been decided above */
        if (best == one) {
            if (!(by > 0.0))
                return WON;
            least = placing->gains[one];
            is_placed = 1;
        }
        placing_place(placing, best);
    }
}

/* -- from Python ---------------------------------------------------------------------------------------------- */

/* What both functions are given first: who is compared, who stands at each place, and turns, if they are known. */
static int pool_held(PyObject *const *arguments, Likeness *likeness, Numbers *held, Placing *placing)
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

static void pool_let_go(Likeness *likeness, Numbers *held, Placing *placing)
{
    placing_let_go(placing);
    numbers_let_go(held, 2);
    likeness_let_go(likeness);
}

static int rows_held(PyObject *const *arguments, const char *const *names, const Py_ssize_t *sizes, int first_written,
                     int count, Numbers *held)
{
    for (int i = 0; i < count; i++)
        if (numbers_held(arguments[i], sizes[i], i >= first_written, names[i], &held[i]) < 0) {
            numbers_let_go(held, i);
            return -1;
        }
    return 0;
}

static int are_places(const Numbers *numbers, Py_ssize_t size)
{
    const int64_t *places = numbers->view.buf;
    for (Py_ssize_t i = 0; i < numbers->count; i++)
        if (places[i] < 0 || places[i] >= size)
            return 0;
    return 1;
}

/* Let every row that is open be decided. Returns 0 or TIED. */
static Py_ssize_t duels(Placing *placing, const Numbers *rows, double by)
{
    const int64_t *tiers = rows[0].view.buf, *pairs = rows[3].view.buf;
    const double *worth = rows[1].view.buf, *others = rows[2].view.buf;
    uint8_t *states = rows[4].view.buf;
    for (Py_ssize_t row = 0; row < rows[2].count; row++) {
        Py_ssize_t start = row * placing->size, one = (Py_ssize_t)pairs[2 * row];
        if (states[row] != OPEN)
            continue;
        placing_begin(placing, worth + start, others[row]);
        begin_below(placing, tiers + start, tiers[start + one]);
        Py_ssize_t told = duel(placing, one, (Py_ssize_t)pairs[2 * row + 1], by);
        if (told == TIED)
            return TIED;
        states[row] = (uint8_t)told;
    }
    return 0;
}

/* duels(compared, members int64 size, turns int64 size or none of it, tiers int64 rows × size, worth float64 rows ×
   size, others float64 rows, pairs int64 rows × 2, states uint8 rows, by) */
PyObject *kernel_duels(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"tiers", "worth", "others", "pairs", "states"};
    static const Py_ssize_t sizes[] = {8, 8, 8, 8, 1};
    Likeness likeness;
    Placing placing;
    Numbers pool[2], rows[5];
    (void)module;
    if (count != 9)
        return PyErr_Format(PyExc_TypeError, "duels takes 9 arguments, not %zd", count);
    double by = PyFloat_AsDouble(arguments[8]);
    if ((by == -1.0 && PyErr_Occurred()) || pool_held(arguments, &likeness, pool, &placing) < 0)
        return NULL;
    if (rows_held(arguments + 3, names, sizes, 4, 5, rows) < 0) {
        pool_let_go(&likeness, pool, &placing);
        return NULL;
    }
    Py_ssize_t cells = rows[2].count * placing.size, told = 0;
    int is_sound = rows[0].count == cells && rows[1].count == cells && rows[3].count == 2 * rows[2].count &&
                   rows[4].count == rows[2].count && are_places(&rows[3], placing.size);
    if (is_sound)
        told = duels(&placing, rows, by);
    numbers_let_go(rows, 5);
    pool_let_go(&likeness, pool, &placing);
    if (!is_sound)
        return PyErr_Format(PyExc_ValueError, "the numbers of duels are not of one size, or a place is beyond them");
    return PyBool_FromLong(told != TIED);
}

/* placed(compared, members int64 size, turns int64 size or none of it, tiers int64 size, worth float64 size, wanted
   uint8 size, order int64 size, gains float64 size, others, most) */
PyObject *kernel_placed(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"tiers", "worth", "wanted", "order", "gains"};
    static const Py_ssize_t sizes[] = {8, 8, 1, 8, 8};
    Likeness likeness;
    Placing placing;
    Numbers pool[2], rows[5];
    (void)module;
    if (count != 10)
        return PyErr_Format(PyExc_TypeError, "placed takes 10 arguments, not %zd", count);
    double others = PyFloat_AsDouble(arguments[8]);
    if (others == -1.0 && PyErr_Occurred())
        return NULL;
    Py_ssize_t most = PyNumber_AsSsize_t(arguments[9], PyExc_OverflowError);
    if ((most == -1 && PyErr_Occurred()) || pool_held(arguments, &likeness, pool, &placing) < 0)
        return NULL;
    if (rows_held(arguments + 3, names, sizes, 3, 5, rows) < 0) {
        pool_let_go(&likeness, pool, &placing);
        return NULL;
    }
    Py_ssize_t size = placing.size, told = 0;
    int is_sound = 1;
    for (int i = 0; i < 5; i++)
        is_sound = is_sound && rows[i].count == size;
    if (is_sound) {
        placing_begin(&placing, rows[1].view.buf, others);
        told = place_all(&placing, rows[0].view.buf, rows[2].view.buf, most, rows[3].view.buf, rows[4].view.buf);
    }
    numbers_let_go(rows, 5);
    pool_let_go(&likeness, pool, &placing);
    if (!is_sound)
        return PyErr_Format(PyExc_ValueError, "the numbers of a pool are not of one size");
    return PyLong_FromSsize_t(told);
}
