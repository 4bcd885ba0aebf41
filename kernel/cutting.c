/* The best of what was chosen, in order, with what is known of each, where that is enough to tell them apart. */

#include "kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OF_A_SHELF 5 /* its rows, groups, ids and ties, and its scope */
#define BUFFERS 4 /* of these the first are held */
#define ID_BYTES 20
#define TIE_BYTES 24

typedef struct {
    double score;
    const char *tie; /* what orders equals; nothing says nothing */
    int64_t shelf, place;
} Place;

/* Order by falling scores, equals by what breaks ties. */
static int compared(const void *one, const void *other)
{
    const Place *first = one, *second = other;
    if (first->score != second->score)
        return (first->score < second->score) - (first->score > second->score);
    return memcmp(first->tie, second->tie, TIE_BYTES);
}

/* Tell whether the order of the first `decide` of some places, and of who follows them, is certain. */
static int is_certain(const Place *places, Py_ssize_t decide, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < decide; i++) {
        if (!(places[i].score > -INFINITY))
            return 0;
        if (i + 1 < count && !(places[i].score > places[i + 1].score) &&
            (!*places[i].tie || compared(places + i, places + i + 1) >= 0))
            return 0;
    }
    return 1;
}

/* Tell whether all of some numbers differ; 0 as well if there is no room to tell. */
static int are_distinct(const uint64_t *numbers, Py_ssize_t count)
{
    size_t size = 8;
    while (size < 2 * (size_t)count)
        size *= 2;
    Py_ssize_t *table = calloc(size, sizeof(Py_ssize_t)); /* the place of a number, from 1 on */
    int is_distinct = table != NULL;
    for (Py_ssize_t i = 0; is_distinct && i < count; i++) {
        size_t slot = (size_t)(numbers[i] ^ (numbers[i] >> 32)) & (size - 1);
        while (table[slot] && numbers[table[slot] - 1] != numbers[i])
            slot = (slot + 1) & (size - 1);
        is_distinct = !table[slot];
        table[slot] = i + 1;
    }
    free(table);
    return is_distinct;
}

/* Have what is known of one place brought near: the places of an answer stand far apart. */
static void fetch(const Place *place, const Numbers *held)
{
    FETCH((const int64_t *)held[0].view.buf + place->place);
    FETCH((const uint64_t *)held[1].view.buf + place->place);
    FETCH((const char *)held[2].view.buf + place->place * ID_BYTES);
}

/* Put what is known of one place into the lists; returns -1 with an exception set if it cannot be told. */
static int told(PyObject *lists, Py_ssize_t at, const Place *place, PyObject *shelf, const Numbers *held)
{
    const char *id = (const char *)held[2].view.buf + place->place * ID_BYTES;
    const char *end = memchr(id, 0, ID_BYTES);
    PyObject *scope = PyTuple_GetItem(shelf, BUFFERS);
    Py_INCREF(scope);
    PyObject *values[] = {
        PyLong_FromLongLong(((const int64_t *)held[0].view.buf)[place->place]),
        PyFloat_FromDouble(place->score),
        PyUnicode_DecodeASCII(id, end == NULL ? ID_BYTES : end - id, NULL),
        scope,
        PyLong_FromUnsignedLongLong(((const uint64_t *)held[1].view.buf)[place->place]),
    };
    int state = 0;
    for (int i = 0; i < 5; i++) {
        if (values[i] == NULL)
            state = -1;
        else if (PyList_SetItem(PyTuple_GetItem(lists, i), at, values[i]) < 0) /* which takes the value */
            state = -1;
    }
    return state;
}

static PyObject *lists_of(const Place *places, Py_ssize_t count, PyObject *shelves, const Numbers *held)
{
    PyObject *lists = PyTuple_New(5);
    for (int i = 0; lists != NULL && i < 5; i++) {
        PyObject *list = PyList_New(count);
        if (list == NULL || PyTuple_SetItem(lists, i, list) < 0)
            Py_CLEAR(lists);
    }
    for (Py_ssize_t i = 0; lists != NULL && i < count; i++) {
        Py_ssize_t shelf = (Py_ssize_t)places[i].shelf;
        if (told(lists, i, places + i, PyTuple_GetItem(shelves, shelf), held + BUFFERS * shelf) < 0)
            Py_CLEAR(lists);
    }
    return lists;
}

/* Order what was chosen and keep the first `limit`; None if the order is not certain, or two
   of those that decide count for one source, or too few decide. */
static PyObject *cut(Place *places, Py_ssize_t count, Py_ssize_t limit, int is_all, PyObject *shelves,
                     const Numbers *held)
{
    Py_ssize_t decide = count <= limit ? count : limit + 1;
    uint64_t *groups = malloc((size_t)(decide + 1) * sizeof(uint64_t));
    int is_plain = groups != NULL && (is_all || count > limit);
    if (is_plain) {
        qsort(places, (size_t)count, sizeof(Place), compared);
        for (Py_ssize_t i = 0; i < decide; i++)
            fetch(places + i, held + BUFFERS * places[i].shelf);
        for (Py_ssize_t i = 0; i < decide; i++)
            groups[i] = ((const uint64_t *)held[BUFFERS * places[i].shelf + 1].view.buf)[places[i].place];
        is_plain = is_certain(places, decide, count) && are_distinct(groups, decide);
    }
    free(groups);
    if (!is_plain)
        Py_RETURN_NONE;
    return lists_of(places, decide < limit ? decide : limit, shelves, held);
}

/* Take places with their scores; -1 if one stands on no shelf, or there is no room. */
static int taken(Place *places, Py_ssize_t count, const Numbers *chosen, const Numbers *held, Py_ssize_t shelves)
{
    const int64_t *numbers = chosen[0].view.buf, *where = chosen[1].view.buf;
    const double *scores = chosen[2].view.buf;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] >= shelves || where[i] < 0 || where[i] >= held[BUFFERS * numbers[i]].count)
            return -1;
        const char *ties = held[BUFFERS * numbers[i] + 3].view.buf;
        places[i] = (Place){scores[i], ties + TIE_BYTES * where[i], numbers[i], where[i]};
    }
    return 0;
}

/* Hold what is known of all shelves; returns how many buffers are held, or -1 with an exception set. */
static Py_ssize_t shelves_held(PyObject *shelves, Py_ssize_t count, Numbers *held)
{
    static const char *const names[] = {"rows", "groups", "ids", "ties"};
    static const Py_ssize_t sizes[] = {8, 8, ID_BYTES, TIE_BYTES};
    for (Py_ssize_t i = 0; i < BUFFERS * count; i++) {
        PyObject *shelf = PyTuple_GetItem(shelves, i / BUFFERS);
        int part = (int)(i % BUFFERS);
        if (!PyTuple_Check(shelf) || PyTuple_Size(shelf) != OF_A_SHELF)
            PyErr_SetString(PyExc_TypeError, "a shelf is its rows, groups, ids, ties and scope");
        else if (numbers_held(PyTuple_GetItem(shelf, part), sizes[part], 0, names[part], held + i) == 0) {
            if (part == 0 || held[i].count == held[i - part].count)
                continue;
            PyErr_SetString(PyExc_ValueError, "rows, groups, ids and ties of a shelf are not of one size");
            i++;
        }
        numbers_let_go(held, (int)i);
        return -1;
    }
    return BUFFERS * count;
}

/* cut(shelves int64, places int64, scores float64, limit, is all, a tuple for each shelf): five lists, or None. */
PyObject *kernel_cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char *const names[] = {"shelves", "places", "scores"};
    Numbers chosen[3];
    PyObject *found = NULL;
    (void)module;
    if (count != 6 || !PyTuple_Check(arguments[5]))
        return PyErr_Format(PyExc_TypeError, "cut takes 6 arguments, the last a tuple of shelves");
    Py_ssize_t limit = PyNumber_AsSsize_t(arguments[3], PyExc_OverflowError), shelves = PyTuple_Size(arguments[5]);
    int is_all = PyObject_IsTrue(arguments[4]);
    if ((limit == -1 && PyErr_Occurred()) || is_all < 0)
        return NULL;
    for (int i = 0; i < 3; i++)
        if (numbers_held(arguments[i], 8, 0, names[i], &chosen[i]) < 0) {
            numbers_let_go(chosen, i);
            return NULL;
        }
    Py_ssize_t size = chosen[0].count, buffers = -1;
    Numbers *held = malloc((size_t)(BUFFERS * shelves + 1) * sizeof(Numbers));
    Place *places = malloc((size_t)(size + 1) * sizeof(Place));
    if (held == NULL || places == NULL)
        PyErr_NoMemory();
    else if (limit < 0 || chosen[1].count != size || chosen[2].count != size)
        PyErr_SetString(PyExc_ValueError, "shelves, places and scores are not of one size, or the limit is below 0");
    else if ((buffers = shelves_held(arguments[5], shelves, held)) >= 0) {
        if (taken(places, size, chosen, held, shelves) < 0)
            PyErr_SetString(PyExc_ValueError, "a place stands on no shelf");
        else
            found = cut(places, size, limit, is_all, arguments[5], held);
        numbers_let_go(held, (int)buffers);
    }
    free(held);
    free(places);
    numbers_let_go(chosen, 3);
    return found;
}
