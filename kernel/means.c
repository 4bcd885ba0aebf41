/* The means of some rows of a table, as numpy takes and adds them, without a copy of the rows. */

#include "kernel.h"

#include <stdlib.h>

/* Write the mean of the rows with these numbers: they are added one after the other, each column by itself. */
static void mean_of(const float *table, Py_ssize_t size, const int64_t *numbers, Py_ssize_t count, float *out)
{
    for (Py_ssize_t i = 0; i < size; i++)
        out[i] = 0.0f;
    for (Py_ssize_t n = 0; n < count; n++) {
        const float *row = table + numbers[n] * size;
        for (Py_ssize_t i = 0; i < size; i++)
            out[i] += row[i];
    }
    for (Py_ssize_t i = 0; i < size; i++)
        out[i] = (float)((double)out[i] / (double)count);
}

/* Read the numbers of all lists, one behind the other, and where each ends; what is beyond the table is its end. */
static int64_t *numbers_of(PyObject *lists, Py_ssize_t rows, Py_ssize_t *ends)
{
    Py_ssize_t texts = PyList_Size(lists), all = 0, at = 0;
    for (Py_ssize_t i = 0; i < texts; i++) {
        PyObject *list = PyList_GetItem(lists, i);
        if (!PyList_Check(list))
            return (int64_t *)PyErr_Format(PyExc_TypeError, "means takes lists of numbers");
        all += PyList_Size(list);
        ends[i] = all;
    }
    int64_t *numbers = malloc((size_t)(all + 1) * sizeof *numbers);
    if (!numbers)
        return (int64_t *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < texts; i++) {
        PyObject *list = PyList_GetItem(lists, i);
        for (Py_ssize_t j = 0; at < ends[i]; j++) {
            int64_t number = PyLong_AsLongLong(PyList_GetItem(list, j));
            if (number == -1 && PyErr_Occurred()) {
                free(numbers);
                return NULL;
            }
            numbers[at++] = number < 0 ? 0 : number < rows ? number : rows - 1;
        }
    }
    return numbers;
}

/* means(table float32 rows × size, list of lists of rows, means float32 lists × size, size)
   For an empty list nothing is written. */
PyObject *kernel_means(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Numbers held[2];
    (void)module;
    if (count != 4 || !PyList_Check(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "means takes a table, a list of lists of rows, the means, and their size");
    Py_ssize_t texts = PyList_Size(arguments[1]), size = PyLong_AsSsize_t(arguments[3]);
    if (size == -1 && PyErr_Occurred())
        return NULL;
    if (numbers_held(arguments[0], 4, 0, "table", &held[0]) < 0)
        return NULL;
    if (numbers_held(arguments[2], 4, 1, "means", &held[1]) < 0) {
        numbers_let_go(held, 1);
        return NULL;
    }
    Py_ssize_t rows = size > 0 ? held[0].count / size : 0;
    Py_ssize_t *ends = NULL;
    int64_t *numbers = NULL;
    if (rows == 0 || held[0].count != rows * size || held[1].count != texts * size)
        PyErr_SetString(PyExc_ValueError, "the table and the means are not of this size");
    else if (!(ends = malloc((size_t)(texts + 1) * sizeof *ends)))
        PyErr_NoMemory();
    else
        numbers = numbers_of(arguments[1], rows, ends);
    if (numbers) {
        const float *table = held[0].view.buf;
        float *out = held[1].view.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0, begin = 0; i < texts; begin = ends[i++])
            if (ends[i] > begin)
                mean_of(table, size, numbers + begin, ends[i] - begin, out + i * size);
        Py_END_ALLOW_THREADS
    }
    int is_done = numbers != NULL;
    free(numbers);
    free(ends);
    numbers_let_go(held, 2);
    if (!is_done)
        return NULL;
    Py_RETURN_NONE;
}
