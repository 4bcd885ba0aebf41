/* Who of two is above the other where diversity has the last word, under many settings: each as far as it takes. */

#include "placing.h"

#include <math.h>
#include <stdlib.h>

enum { OPEN, LOST, WON };

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

/* -- in one setting: files are grouped, what is shown is scaled, and diversity places it ---------------------- */

typedef struct {
    Placing *placing;
    Py_ssize_t size;
    const int64_t *starts; /* of the files, one after the other */
    Py_ssize_t files;
    Py_ssize_t most; /* of a file that are shown; none if all are */
    const double *scores;
    const int64_t *tiers;
    const uint8_t *stands;
    double lambda;
    double *worth;
    uint8_t *shown;
} Contest;

/* Who stands for a memory, and how far behind it the memory is. */
typedef struct {
    Py_ssize_t of, behind;
} Standing;

static int contest_made(Contest *contest)
{
    contest->worth = malloc((size_t)(contest->size + 1) * (sizeof(double) + 1));
    contest->shown = contest->worth == NULL ? NULL : (uint8_t *)(contest->worth + contest->size + 1);
    return contest->worth == NULL ? -1 : 0;
}

static void contest_let_go(Contest *contest)
{
    free(contest->worth);
}

/* Compare the keys of two of a file: above 0 if the one is ahead, below if the other is, TIED_KEYS if no turns tell. */
#define TIED_KEYS 2
static int ahead(const Contest *contest, Py_ssize_t one, Py_ssize_t other)
{
    const int64_t *turns = contest->placing->turns;
    if (contest->tiers[one] != contest->tiers[other])
        return contest->tiers[one] > contest->tiers[other] ? 1 : -1;
    if (contest->scores[one] != contest->scores[other])
        return contest->scores[one] > contest->scores[other] ? 1 : -1;
    if (turns == NULL)
        return TIED_KEYS;
    return turns[one] < turns[other] ? 1 : -1;
}

/* Return the best of a file that stands and is not shown, NOBODY or TIED. */
static Py_ssize_t best_of_file(const Contest *contest, Py_ssize_t begin, Py_ssize_t end)
{
    Py_ssize_t best = NOBODY;
    int is_tied = 0;
    for (Py_ssize_t i = begin; i < end; i++) {
        if (!contest->stands[i] || contest->shown[i])
            continue;
        int is_ahead = best == NOBODY ? 1 : ahead(contest, i, best);
        is_tied = is_ahead == TIED_KEYS || (is_tied && is_ahead < 0);
        if (is_ahead == 1)
            best = i;
    }
    return is_tied ? TIED : best;
}

static Py_ssize_t end_of(const Contest *contest, Py_ssize_t file)
{
    return file + 1 < contest->files ? (Py_ssize_t)contest->starts[file + 1] : contest->size;
}

/* Let so many of a file be shown as may be. Returns 0 or TIED. */
static Py_ssize_t show(Contest *contest)
{
    for (Py_ssize_t file = 0; file < contest->files; file++) {
        Py_ssize_t begin = (Py_ssize_t)contest->starts[file], end = end_of(contest, file);
        int are_few = contest->most <= 0 || end - begin == 1;
        for (Py_ssize_t i = begin; i < end; i++)
            contest->shown[i] = are_few && contest->stands[i];
        for (Py_ssize_t turn = 0; !are_few && turn < contest->most; turn++) {
            Py_ssize_t best = best_of_file(contest, begin, end);
            if (best == TIED)
                return TIED;
            if (best == NOBODY)
                break;
            contest->shown[best] = 1;
        }
    }
    return 0;
}

/* Scale the scores of those that are shown from the worst to the best, as `ranking/looks.py` does. */
static void scale(Contest *contest)
{
    double low = INFINITY, high = -INFINITY;
    for (Py_ssize_t i = 0; i < contest->size; i++)
        if (contest->shown[i]) {
            low = contest->scores[i] < low ? contest->scores[i] : low;
            high = contest->scores[i] > high ? contest->scores[i] : high;
        }
    double half = high / 2 - low / 2;
    for (Py_ssize_t i = 0; i < contest->size; i++) {
        double share = half > 0 ? (contest->scores[i] / 2 - low / 2) / half : 1.0;
        share = share > 0.0 ? share < 1.0 ? share : 1.0 : 0.0;
        contest->worth[i] = contest->shown[i] ? contest->lambda * share : -INFINITY;
    }
}

/* Find who stands for the memory at a place. Returns 0 or TIED. */
static Py_ssize_t stand(const Contest *contest, Py_ssize_t place, Standing *standing)
{
    Py_ssize_t file = contest->files, before = 0;
    standing->of = place;
    standing->behind = 0;
    if (place == NOBODY || !contest->stands[place]) {
        standing->of = NOBODY;
        return 0;
    }
    if (contest->shown[place])
        return 0;
    while (contest->starts[--file] > place)
        ;
    Py_ssize_t best = place;
    for (Py_ssize_t i = (Py_ssize_t)contest->starts[file]; i < end_of(contest, file); i++) {
        if (!contest->stands[i] || i == place)
            continue;
        int is_ahead = ahead(contest, i, place), is_best = ahead(contest, i, best);
        if (is_ahead == TIED_KEYS || is_best == TIED_KEYS)
            return TIED;
        before += is_ahead > 0;
        best = is_best > 0 ? i : best;
    }
    standing->of = best;
    standing->behind = before + 1 - contest->most;
    return 0;
}

/* Tell whether the one stands and the other below it, by more than that, or not at all: WON, LOST or TIED. */
static Py_ssize_t decided(Contest *contest, Py_ssize_t one, Py_ssize_t other, double by)
{
    Placing *placing = contest->placing;
    Standing first, second;
    if (show(contest) == TIED || stand(contest, one, &first) == TIED || stand(contest, other, &second) == TIED)
        return TIED;
    if (first.of == NOBODY || second.of == NOBODY)
        return first.of == NOBODY ? LOST : WON;
    if (first.of == second.of)
        return first.behind < second.behind ? WON : LOST;
    int64_t tier = contest->tiers[first.of], other_tier = contest->tiers[second.of];
    if (tier != other_tier)
        return tier > other_tier ? WON : LOST;
    scale(contest);
    placing_begin(placing, contest->worth, 1 - contest->lambda);
    begin_below(placing, contest->tiers, tier);
    return duel(placing, first.of, second.of, by);
}

/* -- from Python ---------------------------------------------------------------------------------------------- */

/* Tell whether all of these are places, or nobody's. */
static int are_places(const Numbers *numbers, Py_ssize_t size)
{
    const int64_t *places = numbers->view.buf;
    for (Py_ssize_t i = 0; i < numbers->count; i++)
        if (places[i] < NOBODY || places[i] >= size)
            return 0;
    return 1;
}

/* Return how many rows of places a table has, or -1 if it has parts of one. */
static Py_ssize_t rows_of(const Numbers *table, Py_ssize_t size)
{
    if (!size)
        return table->count ? -1 : 1;
    return table->count && table->count % size == 0 ? table->count / size : -1;
}

/* Tell whether files follow each other from the first place to the last. */
static int are_files(const Numbers *starts, Py_ssize_t size)
{
    const int64_t *begins = starts->view.buf;
    if (!starts->count || begins[0] != 0)
        return !starts->count && !size;
    for (Py_ssize_t i = 1; i < starts->count; i++)
        if (begins[i] <= begins[i - 1])
            return 0;
    return begins[starts->count - 1] < size;
}

/* Let every row that is open be decided. Returns 0 or TIED. */
static Py_ssize_t contests(Contest *contest, const Numbers *given, const Py_ssize_t *rows, double by)
{
    const double *scores = given[1].view.buf, *lambdas = given[4].view.buf;
    const int64_t *tiers = given[2].view.buf, *pair = given[5].view.buf;
    const uint8_t *stands = given[3].view.buf;
    uint8_t *states = given[6].view.buf;
    for (Py_ssize_t row = 0; row < given[4].count; row++) {
        if (states[row] != OPEN)
            continue;
        contest->scores = scores + row % rows[0] * contest->size;
        contest->tiers = tiers + row % rows[1] * contest->size;
        contest->stands = stands + row % rows[2] * contest->size;
        contest->lambda = lambdas[row];
        Py_ssize_t told = decided(contest, (Py_ssize_t)pair[0], (Py_ssize_t)pair[1], by);
        if (told == TIED)
            return TIED;
        states[row] = (uint8_t)told;
    }
    return 0;
}

/* contests(compared, members int64 size, turns int64 size or none of it, starts int64 files, scores float64, tiers
   int64 and stands uint8 rows × size, each with rows of its own that come again, lambdas float64 rows, pair int64 2,
   states uint8 rows, most, by) */
PyObject *kernel_contests(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"starts", "scores", "tiers", "stands", "lambdas", "pair", "states"};
    static const Py_ssize_t sizes[] = {8, 8, 8, 1, 8, 8, 1};
    Likeness likeness;
    Placing placing;
    Numbers pool[2], given[7];
    (void)module;
    if (count != 12)
        return PyErr_Format(PyExc_TypeError, "contests takes 12 arguments, not %zd", count);
    Py_ssize_t most = PyNumber_AsSsize_t(arguments[10], PyExc_OverflowError);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    double by = PyFloat_AsDouble(arguments[11]);
    if ((by == -1.0 && PyErr_Occurred()) || pool_held(arguments, &likeness, pool, &placing) < 0)
        return NULL;
    if (rows_held(arguments + 3, names, sizes, 6, 7, given) < 0) {
        pool_let_go(&likeness, pool, &placing);
        return NULL;
    }
    Py_ssize_t size = placing.size, told = 0;
    Py_ssize_t rows[3] = {rows_of(&given[1], size), rows_of(&given[2], size), rows_of(&given[3], size)};
    int is_sound = rows[0] > 0 && rows[1] > 0 && rows[2] > 0 && given[5].count == 2 && are_files(&given[0], size) &&
                   given[6].count == given[4].count && are_places(&given[5], size);
    Contest contest = {&placing, size, given[0].view.buf, given[0].count, most, NULL, NULL, NULL, 0.0, NULL, NULL};
    int has_room = is_sound && contest_made(&contest) == 0;
    if (has_room)
        told = contests(&contest, given, rows, by);
    if (has_room)
        contest_let_go(&contest);
    numbers_let_go(given, 7);
    pool_let_go(&likeness, pool, &placing);
    if (!is_sound)
        return PyErr_Format(PyExc_ValueError, "the numbers of contests are not of one size, or a place is beyond them");
    return has_room ? PyBool_FromLong(told != TIED) : PyErr_NoMemory();
}
