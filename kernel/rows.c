/* Whether rows of a database say what the columns of a memory may, and whether they say more than is usual. */

#include "kernel.h"

/* What a value may be; the same in src/whyrank/storage/sqlite/rows.py, as what is told. */
enum { A_TEXT = 1, WHOLE = 2, REAL = 4, OR_NOTHING = 8, A_LIST = 16, A_LIMIT = 32 };
enum { ODD = 1, LISTED = 2, LIMITED = 4 };

static int fits(PyObject *value, int kind)
{
    if (value == Py_None)
        return (kind & OR_NOTHING) != 0;
    if (kind & A_TEXT)
        return PyUnicode_Check(value);
    return PyLong_Check(value) || ((kind & REAL) && PyFloat_Check(value));
}

/* Tell whether a text is a list that holds nothing. */
static int is_empty(PyObject *text)
{
    return PyUnicode_GetLength(text) == 2 && PyUnicode_ReadChar(text, 0) == '[' && PyUnicode_ReadChar(text, 1) == ']';
}

/* Tell what a row of at least `count` values says out of the ordinary. */
static char told_of(PyObject *row, const char *kinds, Py_ssize_t count)
{
    char told = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = PyTuple_GetItem(row, i);
        if (!fits(value, kinds[i]))
            return ODD;
        if ((kinds[i] & A_LIST) && !(PyUnicode_Check(value) && is_empty(value)))
            told |= LISTED;
        if ((kinds[i] & A_LIMIT) && value != Py_None)
            told |= LIMITED;
    }
    return told;
}

/* told(rows, kinds): a byte for each row. */
PyObject *kernel_told(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "told takes 2 arguments, not %zd", count);
    if (!PyList_Check(arguments[0]) || !PyBytes_Check(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "told takes a list of rows, and the kinds of their values");
    const char *kinds = PyBytes_AsString(arguments[1]);
    Py_ssize_t columns = PyBytes_Size(arguments[1]), rows = PyList_Size(arguments[0]);
    PyObject *told = PyBytes_FromStringAndSize(NULL, rows);
    if (told == NULL)
        return NULL;
    char *bytes = PyBytes_AsString(told);
    for (Py_ssize_t i = 0; i < rows; i++) {
        PyObject *row = PyList_GetItem(arguments[0], i);
        if (!PyTuple_Check(row) || PyTuple_Size(row) < columns) {
            Py_DECREF(told);
            return PyErr_Format(PyExc_ValueError, "row %zd has fewer values than there are kinds", i);
        }
        bytes[i] = told_of(row, kinds, columns);
    }
    return told;
}
