/* Lists of postings, as their pages hold them: found, counted, added up place by place, and the best places chosen.

   Sums are of float64, added in the order in which the terms are given, so that they are those of numpy to the last
   bit. A page may be damaged and still bear its checksum: every number that says where something stands is held
   against what is there before anything is read or written. */

#include "kernel.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_WIDE 1
#endif

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "sums would not be those of numpy: numbers are computed wider than they are kept"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "pages are written with the lowest byte first"
#endif

#define BLOCK 2048             /* places looked at together: their sums stay in the first cache */
#define CHUNK 32               /* sums compared together */
#define FEW 64                 /* places more than twice the wanted, before they are looked through */
#define NEARBY 16              /* groups looked back over: neighbours meet the same few */
#define LONG_WORK 20000        /* postings or places: some fifty microseconds, worth letting others run meanwhile */
#define MOST_PLACES (1LL << 40)

enum { FIRST, BLOB, OFFSETS_AT, FREQUENCIES_AT, SIZE, FOLLOWERS_AT, HEARD, LISTED_ITEMS };
enum { LENGTHS, PER_TERM, BASE, WEIGHT, OWN, WANTED, TERMS, GIVEN_ITEMS };

/* One list of a term: narrow as in a page, or wide as numpy makes it. */
typedef struct {
    const unsigned char *offsets, *frequencies, *followers;
    const int64_t *places;
    const double *often;
    int64_t first;
    Py_ssize_t size, heard, next;
} Part;

typedef struct {
    double idf;
    Py_ssize_t begin, end; /* its parts */
} Term;

/* Terms of one field and kind of text, with all that it takes to score them. */
typedef struct {
    const uint32_t *lengths;
    const double *wide_lengths;
    const double *owns;
    const unsigned char *wanted;
    Py_ssize_t texts;
    double per_term, base, weight, own;
    Py_ssize_t begin, end; /* its terms */
} Kind;

typedef struct {
    Kind *kinds;
    Term *terms;
    Part *parts;
    Numbers *held;
    Py_ssize_t kind_count, part_count, postings;
    int held_count;
} Plan;

static uint16_t u16_at(const unsigned char *bytes, Py_ssize_t place)
{
    uint16_t number;
    memcpy(&number, bytes + 2 * place, 2);
    return number;
}

static uint32_t u32_at(const unsigned char *bytes, Py_ssize_t place)
{
    uint32_t number;
    memcpy(&number, bytes + 4 * place, 4);
    return number;
}

static int refused(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return -1;
}

/* Whether `count` things of `size` bytes stand behind `at` in `length` bytes. */
static int fits(Py_ssize_t at, Py_ssize_t count, Py_ssize_t size, Py_ssize_t length)
{
    return at >= 0 && count >= 0 && at <= length && count <= (length - at) / size;
}

/* ---- lists in a page ---------------------------------------------------------------------------------------- */

static int size_in(PyObject *tuple, Py_ssize_t item, Py_ssize_t *out)
{
    PyObject *found = PyTuple_GetItem(tuple, item);
    if (found == NULL)
        return -1;
    *out = PyLong_AsSsize_t(found);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int number_in(PyObject *tuple, Py_ssize_t item, double *out)
{
    PyObject *found = PyTuple_GetItem(tuple, item);
    if (found == NULL)
        return -1;
    *out = PyFloat_AsDouble(found);
    return *out == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* Read a list as a page holds it; the page outlives the call, because the caller holds the list. */
static int narrow_part(PyObject *listed, Part *part)
{
    Py_ssize_t first, offsets_at, frequencies_at, followers_at, length;
    PyObject *blob = PyTuple_GetItem(listed, BLOB);
    char *bytes;
    memset(part, 0, sizeof *part);
    if (blob == NULL || size_in(listed, FIRST, &first) < 0 || size_in(listed, OFFSETS_AT, &offsets_at) < 0 ||
        size_in(listed, FREQUENCIES_AT, &frequencies_at) < 0 || size_in(listed, SIZE, &part->size) < 0 ||
        size_in(listed, FOLLOWERS_AT, &followers_at) < 0 || size_in(listed, HEARD, &part->heard) < 0 ||
        PyBytes_AsStringAndSize(blob, &bytes, &length) < 0)
        return -1;
    if (first < 0 || first > MOST_PLACES || !fits(offsets_at, part->size, 2, length) ||
        !fits(frequencies_at, part->size, 1, length) || !fits(followers_at, part->heard, 4, length))
        return refused("a list stands outside of its page");
    part->first = first;
    part->offsets = (const unsigned char *)bytes + offsets_at;
    part->frequencies = (const unsigned char *)bytes + frequencies_at;
    part->followers = (const unsigned char *)bytes + followers_at;
    return 0;
}

/* pairs(listed, follower): the places where a word follows, and how often, as bytes; None if it does nowhere. */
PyObject *kernel_pairs(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Part part;
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "pairs takes 2 arguments, not %zd", count);
    if (!PyTuple_Check(arguments[0]) || PyTuple_Size(arguments[0]) != LISTED_ITEMS)
        return PyErr_Format(PyExc_TypeError, "a list of a page is wanted");
    unsigned long follower = PyLong_AsUnsignedLong(arguments[1]);
    if ((follower == (unsigned long)-1 && PyErr_Occurred()) || narrow_part(arguments[0], &part) < 0)
        return NULL;
    uint32_t wanted = (uint32_t)follower;
    Py_ssize_t matches = 0, found = 0, at = 0;
    PyThreadState *others = part.heard > LONG_WORK ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t i = 0; i < part.heard; i++)
        matches += u32_at(part.followers, i) == wanted;
    int64_t *places = matches ? malloc((size_t)matches * 8) : NULL;
    double *often = matches ? malloc((size_t)matches * 8) : NULL;
    int is_whole = 1, has_room = !matches || (places != NULL && often != NULL);
    for (Py_ssize_t i = 0; matches && has_room && i < part.size; i++) {
        Py_ssize_t end = at + part.frequencies[i];
        int times = 0;
        if (end > part.heard) {
            is_whole = 0;
            break;
        }
        for (; at < end; at++)
            times += u32_at(part.followers, at) == wanted;
        if (times) {
            places[found] = part.first + u16_at(part.offsets, i);
            often[found++] = times;
        }
    }
    if (others != NULL)
        PyEval_RestoreThread(others);
    PyObject *pairs = NULL;
    if (!has_room)
        PyErr_NoMemory();
    else if (!is_whole)
        refused("a list has fewer followers than it says");
    else if (!found)
        pairs = Py_BuildValue("");
    else
        pairs = Py_BuildValue("(y#y#)", (char *)places, found * 8, (char *)often, found * 8);
    free(places);
    free(often);
    return pairs;
}

/* ---- what a question asks, read from tuples ----------------------------------------------------------------- */

static void plan_freed(Plan *plan)
{
    numbers_let_go(plan->held, plan->held_count);
    free(plan->kinds);
    free(plan->terms);
    free(plan->parts);
    free(plan->held);
}

static PyObject *tuple_in(PyObject *tuple, Py_ssize_t item, Py_ssize_t size)
{
    PyObject *found = PyTuple_GetItem(tuple, item);
    if (found != NULL && (!PyTuple_Check(found) || (size >= 0 && PyTuple_Size(found) != size))) {
        PyErr_SetString(PyExc_TypeError, "a tuple is wanted, of another size");
        return NULL;
    }
    return found;
}

/* Count what a plan must have room for: kinds, terms and parts. */
static int counted(PyObject *kinds, Py_ssize_t counts[3])
{
    if (!PyTuple_Check(kinds)) {
        PyErr_SetString(PyExc_TypeError, "kinds are wanted in a tuple");
        return -1;
    }
    counts[0] = PyTuple_Size(kinds);
    for (Py_ssize_t i = 0; i < counts[0]; i++) {
        PyObject *given = tuple_in(kinds, i, GIVEN_ITEMS), *terms = given == NULL ? NULL : tuple_in(given, TERMS, -1);
        if (terms == NULL)
            return -1;
        counts[1] += PyTuple_Size(terms);
        for (Py_ssize_t j = 0; j < PyTuple_Size(terms); j++) {
            PyObject *term = tuple_in(terms, j, 2), *parts = term == NULL ? NULL : tuple_in(term, 1, -1);
            if (parts == NULL)
                return -1;
            counts[2] += PyTuple_Size(parts);
        }
    }
    return 0;
}

/* Hold an array of a kind for as long as the plan lasts. */
static Numbers *array_held(Plan *plan, PyObject *array, Py_ssize_t size, const char *name)
{
    Numbers *numbers = &plan->held[plan->held_count];
    if (numbers_held(array, size, 0, name, numbers) < 0)
        return NULL;
    plan->held_count++;
    return numbers;
}

static int part_read(Plan *plan, PyObject *given, Part *part)
{
    if (PyTuple_Size(given) == LISTED_ITEMS)
        return narrow_part(given, part);
    if (PyTuple_Size(given) != 2)
        return refused("a list is of a page, or places and frequencies");
    memset(part, 0, sizeof *part);
    Numbers *places = array_held(plan, PyTuple_GetItem(given, 0), 8, "places");
    Numbers *often = places == NULL ? NULL : array_held(plan, PyTuple_GetItem(given, 1), 8, "frequencies");
    if (often == NULL)
        return -1;
    if (places->count != often->count)
        return refused("places and frequencies are not of one size");
    part->places = places->view.buf;
    part->often = often->view.buf;
    part->size = places->count;
    return 0;
}

static int lengths_read(Plan *plan, PyObject *given, Kind *kind)
{
    PyObject *array = PyTuple_GetItem(given, LENGTHS);
    Numbers *lengths = array_held(plan, array, 4, "lengths");
    if (lengths == NULL) {
        PyErr_Clear();
        lengths = array_held(plan, array, 8, "lengths");
        if (lengths == NULL)
            return -1;
        kind->wide_lengths = lengths->view.buf;
    } else
        kind->lengths = lengths->view.buf;
    kind->texts = lengths->count;
    return 0;
}

static int kind_read(Plan *plan, PyObject *given, Kind *kind)
{
    PyObject *own = PyTuple_GetItem(given, OWN), *wanted = PyTuple_GetItem(given, WANTED);
    memset(kind, 0, sizeof *kind);
    if (lengths_read(plan, given, kind) < 0 || number_in(given, PER_TERM, &kind->per_term) < 0 ||
        number_in(given, BASE, &kind->base) < 0 || number_in(given, WEIGHT, &kind->weight) < 0)
        return -1;
    if (PyFloat_Check(own))
        kind->own = PyFloat_AsDouble(own);
    else {
        Numbers *owns = array_held(plan, own, 8, "own");
        if (owns == NULL)
            return -1;
        if (owns->count != kind->texts)
            return refused("lengths and own weights are not of one size");
        kind->owns = owns->view.buf;
    }
    if (wanted != Py_None) {
        Numbers *flags = array_held(plan, wanted, 1, "wanted");
        if (flags == NULL)
            return -1;
        if (flags->count != kind->texts)
            return refused("lengths and flags are not of one size");
        kind->wanted = flags->view.buf;
    }
    return 0;
}

static int term_read(Plan *plan, PyObject *given, Term *term)
{
    PyObject *parts = PyTuple_GetItem(given, 1);
    if (number_in(given, 0, &term->idf) < 0)
        return -1;
    term->begin = plan->part_count;
    for (Py_ssize_t i = 0; i < PyTuple_Size(parts); i++) {
        PyObject *part = tuple_in(parts, i, -1);
        if (part == NULL || part_read(plan, part, &plan->parts[plan->part_count]) < 0)
            return -1;
        plan->postings += plan->parts[plan->part_count++].size;
    }
    term->end = plan->part_count;
    return 0;
}

static int plan_filled(Plan *plan, PyObject *kinds)
{
    Py_ssize_t read = 0;
    for (; plan->kind_count < PyTuple_Size(kinds); plan->kind_count++) {
        PyObject *given = PyTuple_GetItem(kinds, plan->kind_count), *terms = PyTuple_GetItem(given, TERMS);
        Kind *kind = &plan->kinds[plan->kind_count];
        if (kind_read(plan, given, kind) < 0)
            return -1;
        kind->begin = read;
        for (Py_ssize_t i = 0; i < PyTuple_Size(terms); i++)
            if (term_read(plan, PyTuple_GetItem(terms, i), &plan->terms[read++]) < 0)
                return -1;
        kind->end = read;
    }
    return 0;
}

/* Read what a tuple of kinds asks. Returns 0, or -1 with an exception set and nothing held. */
static int planned(Plan *plan, PyObject *kinds)
{
    Py_ssize_t counts[3] = {0, 0, 0};
    memset(plan, 0, sizeof *plan);
    if (counted(kinds, counts) < 0)
        return -1;
    plan->kinds = calloc((size_t)counts[0] + 1, sizeof(Kind));
    plan->terms = calloc((size_t)counts[1] + 1, sizeof(Term));
    plan->parts = calloc((size_t)counts[2] + 1, sizeof(Part));
    plan->held = calloc((size_t)(3 * counts[0] + 2 * counts[2]) + 1, sizeof(Numbers));
    if (plan->kinds == NULL || plan->terms == NULL || plan->parts == NULL || plan->held == NULL)
        PyErr_NoMemory();
    else if (plan_filled(plan, kinds) == 0)
        return 0;
    plan_freed(plan);
    return -1;
}

/* ---- adding up ---------------------------------------------------------------------------------------------- */

/* Field weight · idf · tf/(tf + K) · own weight, in the order in which numpy computes it. */
static inline double worth(const Kind *kind, double idf, double often, int64_t place)
{
    double length = kind->lengths != NULL ? (double)kind->lengths[place] : kind->wide_lengths[place];
    double saturation = length * kind->per_term;
    saturation += kind->base;
    saturation += often;
    double value = often / saturation;
    value *= idf;
    value *= kind->weight;
    value *= kind->owns != NULL ? kind->owns[place] : kind->own;
    return value;
}

static inline int64_t place_in(const Part *part, Py_ssize_t i)
{
    return part->offsets != NULL ? part->first + u16_at(part->offsets, i) : part->places[i];
}

static inline double often_in(const Part *part, Py_ssize_t i)
{
    return part->frequencies != NULL ? (double)part->frequencies[i] : part->often[i];
}

/* Where some places begin and end, and their sums. */
typedef struct {
    int64_t begin, end;
    double *sums;
} Span;

/* Add what a list of a page gives, the usual way: lengths of four bytes, one weight for all, nobody passed over. */
static Py_ssize_t usual_added(const Kind *kind, double idf, const Part *part, const Span *span)
{
    const unsigned char *offsets = part->offsets, *frequencies = part->frequencies;
    const uint32_t *lengths = kind->lengths;
    const double per_term = kind->per_term, base = kind->base, weight = kind->weight, own = kind->own;
    const int64_t first = part->first, begin = span->begin;
    const uint64_t width = (uint64_t)(span->end - begin);
    double *sums = span->sums;
    Py_ssize_t i = part->next;
    for (; i < part->size; i++) {
        int64_t place = first + u16_at(offsets, i);
        if ((uint64_t)(place - begin) >= width) {
            if (place >= begin)
                break;
            continue;
        }
        double often = frequencies[i], saturation = lengths[place] * per_term;
        saturation += base;
        saturation += often;
        double value = often / saturation;
        value *= idf;
        value *= weight;
        value *= own;
        sums[place - begin] += value;
    }
    return i;
}

/* Add what any list gives. */
static Py_ssize_t any_added(const Kind *kind, double idf, const Part *part, const Span *span)
{
    Py_ssize_t i = part->next;
    for (; i < part->size; i++) {
        int64_t place = place_in(part, i);
        if (place >= span->end)
            break;
        if (place >= span->begin && (kind->wanted == NULL || kind->wanted[place]))
            span->sums[place - span->begin] += worth(kind, idf, often_in(part, i), place);
    }
    return i;
}

/* Add what terms give to the places of a span, each list from where it was left. Returns how many postings were read. */
static Py_ssize_t kinds_added(const Plan *plan, const Span *span)
{
    Py_ssize_t read = 0;
    for (const Kind *kind = plan->kinds; kind < plan->kinds + plan->kind_count; kind++) {
        int is_usual = kind->lengths != NULL && kind->owns == NULL && kind->wanted == NULL;
        Span own = *span;
        own.end = span->end < kind->texts ? span->end : kind->texts;
        for (const Term *term = plan->terms + kind->begin; term < plan->terms + kind->end; term++)
            for (Part *part = plan->parts + term->begin; part < plan->parts + term->end; part++) {
                Py_ssize_t next = is_usual && part->offsets != NULL ? usual_added(kind, term->idf, part, &own)
                                                                    : any_added(kind, term->idf, part, &own);
                read += next - part->next;
                part->next = next;
            }
    }
    return read;
}

/* Whether a list names a place that is not there, or not in its order. */
static int is_left(const Plan *plan)
{
    for (const Part *part = plan->parts; part < plan->parts + plan->part_count; part++)
        if (part->next < part->size) {
            PyErr_SetString(PyExc_IndexError, "a list names a place that is not there");
            return 1;
        }
    return 0;
}

/* sums(totals float64, kinds): add what terms give to every place. */
PyObject *kernel_sums(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Numbers totals;
    Plan plan;
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "sums takes 2 arguments, not %zd", count);
    if (planned(&plan, arguments[1]) < 0)
        return NULL;
    if (numbers_held(arguments[0], 8, 1, "totals", &totals) < 0) {
        plan_freed(&plan);
        return NULL;
    }
    Span all = {0, totals.count, totals.view.buf};
    PyThreadState *others = plan.postings > LONG_WORK ? PyEval_SaveThread() : NULL;
    kinds_added(&plan, &all);
    if (others != NULL)
        PyEval_RestoreThread(others);
    int is_bad = is_left(&plan);
    numbers_let_go(&totals, 1);
    plan_freed(&plan);
    return is_bad ? NULL : Py_BuildValue("");
}

/* ---- groups of places --------------------------------------------------------------------------------------- */

/* Groups in their order, and how often each holds a term. */
typedef struct {
    int64_t *groups;
    double *often;
    Py_ssize_t count, room;
} Gathered;

/* Have room for so many more groups. */
static int gathered_grown(Gathered *gathered, Py_ssize_t more)
{
    Py_ssize_t room = gathered->count + more;
    if (room <= gathered->room)
        return 0;
    int64_t *groups = realloc(gathered->groups, (size_t)room * 8);
    if (groups != NULL)
        gathered->groups = groups;
    double *often = groups == NULL ? NULL : realloc(gathered->often, (size_t)room * 8);
    if (often == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    gathered->often = often;
    gathered->room = room;
    return 0;
}

/* Add to a group that stands among the last few, or begin it there. Returns whether that is its place. */
static int group_added(Gathered *gathered, int64_t group, double often)
{
    Py_ssize_t at = gathered->count, least = at > NEARBY ? at - NEARBY : 0;
    while (at > least && gathered->groups[at - 1] > group)
        at--;
    if (at > 0 && gathered->groups[at - 1] == group) {
        gathered->often[at - 1] += often;
        return 1;
    }
    if (at > 0 && gathered->groups[at - 1] > group)
        return 0;
    size_t behind = (size_t)(gathered->count++ - at) * 8;
    memmove(gathered->groups + at + 1, gathered->groups + at, behind);
    memmove(gathered->often + at + 1, gathered->often + at, behind);
    gathered->groups[at] = group;
    gathered->often[at] = often;
    return 1;
}

/* Rows of numbers: for every place the groups it belongs to. */
typedef struct {
    const int64_t *groups;
    Py_ssize_t rows, places;
    int64_t group_count;
} Belonging;

/* Add a list to the groups of its places, for which there is room. Returns 1, 0 if these are not nearly in order, or
   -1 if it names a place that is not there. */
static int list_gathered(const Part *part, const Belonging *of, Gathered *into)
{
    for (Py_ssize_t i = 0; i < part->size; i++) {
        int64_t place = place_in(part, i);
        if (place < 0 || place >= of->places)
            return -1;
        double often = often_in(part, i);
        for (Py_ssize_t row = 0; row < of->rows; row++) {
            int64_t group = of->groups[row * of->places + place];
            if (group >= 0 && group < of->group_count && !group_added(into, group, often))
                return 0;
        }
    }
    return 1;
}

/* Do so, and let others run meanwhile if it takes long. Returns the same, with an exception set for -1. */
static int part_gathered(const Part *part, const Belonging *of, Gathered *into)
{
    if (gathered_grown(into, part->size * of->rows) < 0)
        return -1;
    PyThreadState *others = part->size * of->rows > LONG_WORK ? PyEval_SaveThread() : NULL;
    int state = list_gathered(part, of, into);
    if (others != NULL)
        PyEval_RestoreThread(others);
    if (state < 0)
        PyErr_SetString(PyExc_IndexError, "a list names a place that is not there");
    return state;
}

/* Add lists to the groups of their places. Returns as for one. */
static int parts_gathered(PyObject *parts, const Belonging *of, Gathered *into)
{
    int state = 1;
    for (Py_ssize_t i = 0; state == 1 && i < PyTuple_Size(parts); i++) {
        Numbers held[2];
        Plan lone = {.held = held};
        Part part;
        PyObject *given = tuple_in(parts, i, -1);
        state = given == NULL || part_read(&lone, given, &part) < 0 ? -1 : part_gathered(&part, of, into);
        numbers_let_go(held, lone.held_count);
    }
    return state;
}

/* gathered(lists, belonging, rows, groups): the groups that hold a term, and how often, as bytes. `belonging` has rows
   of a group for every place; what belongs to none has a number that no group has. None if the lists name the groups
   in an order that only sorting brings right. */
PyObject *kernel_gathered(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Numbers belonging;
    Gathered into = {0};
    Belonging of;
    PyObject *found = NULL;
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "gathered takes 4 arguments, not %zd", count);
    if (!PyTuple_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "lists are wanted in a tuple");
    of.rows = PyLong_AsSsize_t(arguments[2]);
    of.group_count = PyLong_AsLongLong(arguments[3]);
    if (PyErr_Occurred() || numbers_held(arguments[1], 8, 0, "belonging", &belonging) < 0)
        return NULL;
    of.groups = belonging.view.buf;
    of.places = of.rows > 0 ? belonging.count / of.rows : 0;
    int state = of.rows > 0 && of.places * of.rows == belonging.count ? parts_gathered(arguments[0], &of, &into)
                                                                      : refused("rows of one size are wanted");
    if (state == 1) /* where there is nothing, there is no array either */
        found = Py_BuildValue("(y#y#)", into.count ? (char *)into.groups : "", into.count * 8,
                              into.count ? (char *)into.often : "", into.count * 8);
    else if (state == 0)
        found = Py_BuildValue("");
    free(into.groups);
    free(into.often);
    numbers_let_go(&belonging, 1);
    return found;
}

/* ---- the best places ---------------------------------------------------------------------------------------- */

/* Places that may be among the best so far, in their order. */
typedef struct {
    int64_t *places;
    double *values, *scratch;
    Py_ssize_t count, room, look_at, wanted;
    double threshold;
} Best;

typedef int AnyAbove(const double *sums, double threshold);

/* The value that `number` of some values reach; orders them on the way (Hoare's selection). */
static double nth_best(double *values, Py_ssize_t count, Py_ssize_t number)
{
    Py_ssize_t low = 0, high = count - 1, place = number - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        Py_ssize_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot)
                i++;
            while (values[j] < pivot)
                j--;
            if (i <= j) {
                double kept = values[i];
                values[i++] = values[j];
                values[j--] = kept;
            }
        }
        if (place <= j)
            high = j;
        else if (place >= i)
            low = i;
        else
            break;
    }
    return values[place];
}

/* Raise the threshold to what enough places reach, and drop those below; equals of the last all stay. */
static void best_cut(Best *best)
{
    Py_ssize_t kept = 0;
    if (best->count <= best->wanted)
        return;
    memcpy(best->scratch, best->values, (size_t)best->count * 8);
    best->threshold = nth_best(best->scratch, best->count, best->wanted);
    for (Py_ssize_t i = 0; i < best->count; i++)
        if (best->values[i] >= best->threshold) {
            best->places[kept] = best->places[i];
            best->values[kept++] = best->values[i];
        }
    best->count = kept;
    best->look_at = 2 * (kept > best->wanted ? kept : best->wanted) + FEW;
}

static int best_grown(Best *best)
{
    Py_ssize_t room = best->room ? 2 * best->room : BLOCK;
    int64_t *places = realloc(best->places, (size_t)room * 8);
    if (places != NULL)
        best->places = places;
    double *values = realloc(best->values, (size_t)room * 8);
    if (values != NULL)
        best->values = values;
    double *scratch = realloc(best->scratch, (size_t)room * 8);
    if (scratch != NULL)
        best->scratch = scratch;
    if (places == NULL || values == NULL || scratch == NULL)
        return -1;
    best->room = room;
    return 0;
}

static int best_taken(Best *best, int64_t place, double value)
{
    if (best->count == best->room && best_grown(best) < 0)
        return -1;
    best->places[best->count] = place;
    best->values[best->count++] = value;
    return 0;
}

/* Whether any of a chunk of sums reaches a threshold. */
#define ANY_ABOVE                                        \
    int64_t any = 0;                                     \
    for (int i = 0; i < CHUNK; i++)                      \
        any |= -(int64_t)(sums[i] >= threshold);         \
    return any != 0;

static int any_above(const double *sums, double threshold)
{
    ANY_ABOVE
}

#ifdef HAS_WIDE
__attribute__((target("avx2"))) static int any_above_wide(const double *sums, double threshold)
{
    ANY_ABOVE
}
#endif

/* Take the places of a span whose sums are high enough, and allowed. */
static int span_taken(Best *best, const Span *span, const unsigned char *mask, AnyAbove *look)
{
    Py_ssize_t size = (Py_ssize_t)(span->end - span->begin);
    for (Py_ssize_t i = 0; i < size; i += CHUNK) {
        Py_ssize_t end = i + CHUNK < size ? i + CHUNK : size;
        if (end - i == CHUNK && !look(span->sums + i, best->threshold))
            continue;
        for (Py_ssize_t j = i; j < end; j++)
            if (span->sums[j] > 0.0 && span->sums[j] >= best->threshold &&
                (mask == NULL || mask[span->begin + j]) && best_taken(best, span->begin + j, span->sums[j]) < 0)
                return -1;
    }
    if (best->count >= best->look_at)
        best_cut(best);
    return 0;
}

static AnyAbove *quickest_look(void)
{
#ifdef HAS_WIDE
    if (__builtin_cpu_supports("avx2"))
        return any_above_wide;
#endif
    return any_above;
}

/* Go through all places, block by block. */
static int all_taken(Plan *plan, int64_t places, const unsigned char *mask, Best *best)
{
    double sums[BLOCK];
    AnyAbove *look = quickest_look();
    memset(sums, 0, sizeof sums);
    for (int64_t begin = 0; begin < places; begin += BLOCK) {
        Span span = {begin, begin + BLOCK < places ? begin + BLOCK : places, sums};
        if (!kinds_added(plan, &span))
            continue;
        if (span_taken(best, &span, mask, look) < 0)
            return -1;
        memset(sums, 0, sizeof sums);
    }
    best_cut(best);
    return 0;
}

static int best_begun(Best *best, Py_ssize_t wanted)
{
    memset(best, 0, sizeof *best);
    best->wanted = wanted;
    best->look_at = wanted < PY_SSIZE_T_MAX / 4 ? 2 * wanted + FEW : PY_SSIZE_T_MAX;
    return wanted < 1 ? refused("one place at least is wanted") : 0;
}

/* Return what was found, or NULL with an exception set; and let go of it. */
static PyObject *best_told(Best *best, int failed)
{
    const char *places = best->count ? (const char *)best->places : "";
    const char *values = best->count ? (const char *)best->values : "";
    PyObject *found = NULL;
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    else if (!failed)
        found = Py_BuildValue("(y#y#)", places, best->count * 8, values, best->count * 8);
    free(best->places);
    free(best->values);
    free(best->scratch);
    return found;
}

/* best(places, kinds, mask or None, wanted): the places with the `wanted` best sums above zero, and every one as good as
   the last of them: places int64 and sums float64, as bytes. */
PyObject *kernel_best(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Plan plan;
    Numbers mask;
    Best best;
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "best takes 4 arguments, not %zd", count);
    int64_t places = PyLong_AsLongLong(arguments[0]);
    Py_ssize_t wanted = PyLong_AsSsize_t(arguments[3]);
    int is_masked = arguments[2] != Py_None;
    if (PyErr_Occurred() || best_begun(&best, wanted) < 0 || planned(&plan, arguments[1]) < 0)
        return NULL;
    if (is_masked && numbers_held(arguments[2], 1, 0, "mask", &mask) < 0) {
        plan_freed(&plan);
        return NULL;
    }
    int failed = places < 0 || (is_masked && mask.count != places);
    for (Py_ssize_t i = 0; i < plan.kind_count; i++)
        failed = failed || plan.kinds[i].texts != places;
    if (failed)
        refused("places, lengths and mask are not of one size");
    else {
        PyThreadState *others = plan.postings + places / CHUNK > LONG_WORK ? PyEval_SaveThread() : NULL;
        failed = all_taken(&plan, places, is_masked ? mask.view.buf : NULL, &best);
        if (others != NULL)
            PyEval_RestoreThread(others);
        failed = failed || is_left(&plan);
    }
    if (is_masked)
        numbers_let_go(&mask, 1);
    plan_freed(&plan);
    return best_told(&best, failed);
}

/* ---- what each term gives to given places -------------------------------------------------------------------- */

/* Where a place stands in a list, or -1. */
static Py_ssize_t place_found(const Part *part, int64_t place)
{
    Py_ssize_t low = 0, high = part->size;
    if (!high || place < place_in(part, 0) || place > place_in(part, high - 1))
        return -1;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (place_in(part, middle) < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->size && place_in(part, low) == place ? low : -1;
}

static void places_given(const Plan *plan, const int64_t *places, Py_ssize_t count, double *out)
{
    const Kind *kind = plan->kinds;
    for (const Term *term = plan->terms + kind->begin; term < plan->terms + kind->end; term++, out += count)
        for (Py_ssize_t i = 0; i < count; i++)
            for (const Part *part = plan->parts + term->begin; part < plan->parts + term->end; part++) {
                Py_ssize_t at = place_found(part, places[i]);
                if (at >= 0) {
                    out[i] = worth(kind, term->idf, often_in(part, at), places[i]);
                    break;
                }
            }
}

/* given(kind, places int64, out float64 terms × places): what each term gives to each place; others stay as they are. */
PyObject *kernel_given(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Plan plan;
    Numbers held[2];
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "given takes 3 arguments, not %zd", count);
    if (planned(&plan, arguments[0]) < 0)
        return NULL;
    int is_held = 0, is_right = plan.kind_count == 1;
    if (!is_right)
        refused("one kind of text is wanted");
    else if (numbers_held(arguments[1], 8, 0, "places", &held[0]) < 0)
        is_right = 0;
    else if (is_held = 1, numbers_held(arguments[2], 8, 1, "out", &held[1]) < 0)
        is_right = 0;
    else {
        is_held = 2;
        const int64_t *places = held[0].view.buf;
        for (Py_ssize_t i = 0; is_right && i < held[0].count; i++)
            if (places[i] < 0 || places[i] >= plan.kinds[0].texts) {
                PyErr_SetString(PyExc_IndexError, "a place is not there");
                is_right = 0;
            }
        if (is_right && held[1].count != held[0].count * (plan.kinds[0].end - plan.kinds[0].begin))
            is_right = refused("terms, places and out are not of one size") == 0;
    }
    if (is_right) {
        PyThreadState *others = held[1].count > LONG_WORK / 8 ? PyEval_SaveThread() : NULL;
        places_given(&plan, held[0].view.buf, held[0].count, held[1].view.buf);
        if (others != NULL)
            PyEval_RestoreThread(others);
    }
    numbers_let_go(held, is_held);
    plan_freed(&plan);
    return is_right ? Py_BuildValue("") : NULL;
}
