/* Who is placed by diversity, one after the other. */

#include "placing.h"

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
