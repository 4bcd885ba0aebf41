/* The module `whyrank._kernel`: loops that numpy would need several passes for. Everything here has a twin in numpy,
   which gives the same numbers; whyrank runs without this module, and slower. */

#include "kernel.h"

#include <string.h>

/* Have numbers read from an aligned copy. Returns 0, or -1 with an exception set. */
static int aligned(Numbers *numbers)
{
    void *copy = PyMem_Malloc(numbers->view.len ? (size_t)numbers->view.len : 1);
    if (copy == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, numbers->view.buf, (size_t)numbers->view.len);
    numbers->copied = numbers->view.buf;
    numbers->view.buf = copy;
    return 0;
}

int numbers_held(PyObject *object, Py_ssize_t size, int is_written, const char *name, Numbers *numbers)
{
    int flags = is_written ? PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS;
    if (PyObject_GetBuffer(object, &numbers->view, flags) < 0)
        return -1;
    if (numbers->view.itemsize != size) {
        PyErr_Format(PyExc_ValueError, "%s: numbers of %zd bytes are wanted, not of %zd", name, size,
                     numbers->view.itemsize);
        PyBuffer_Release(&numbers->view);
        return -1;
    }
    numbers->count = numbers->view.len / size;
    numbers->copied = NULL;
    if ((uintptr_t)numbers->view.buf % (uintptr_t)size == 0)
        return 0;
    if (is_written || aligned(numbers) < 0) {
        if (is_written)
            PyErr_Format(PyExc_ValueError, "%s: numbers that are written have to be aligned", name);
        PyBuffer_Release(&numbers->view);
        return -1;
    }
    return 0;
}

void numbers_let_go(Numbers *numbers, int count)
{
    while (count-- > 0) {
        Numbers *one = &numbers[count];
        if (one->copied != NULL) {
            PyMem_Free(one->view.buf);
            one->view.buf = one->copied;
        }
        PyBuffer_Release(&one->view);
    }
}

static PyMethodDef functions[] = {
    {"coded", (PyCFunction)(void (*)(void))kernel_coded, METH_FASTCALL,
     "Write vectors as codes with a scale and an error for each row."},
    {"nearest", (PyCFunction)(void (*)(void))kernel_nearest, METH_FASTCALL,
     "Write the places of the rows of codes that may be among the nearest to a question."},
    {"cosines", (PyCFunction)(void (*)(void))kernel_cosines, METH_FASTCALL,
     "Write the products of some rows of vectors with a question."},
    {"apart", (PyCFunction)(void (*)(void))kernel_apart, METH_FASTCALL,
     "Write in how many signs each row differs from a question, and count how many differ in so many."},
    {"under", (PyCFunction)(void (*)(void))kernel_under, METH_FASTCALL,
     "Write what a question's numbers add up to under the signs of some rows."},
    {"pairs", (PyCFunction)(void (*)(void))kernel_pairs, METH_FASTCALL,
     "Find the places of a list where a word follows."},
    {"gathered", (PyCFunction)(void (*)(void))kernel_gathered, METH_FASTCALL,
     "Find the groups whose places hold a term."},
    {"sums", (PyCFunction)(void (*)(void))kernel_sums, METH_FASTCALL,
     "Add what terms give to every place."},
    {"best", (PyCFunction)(void (*)(void))kernel_best, METH_FASTCALL,
     "Find the places that terms give most to."},
    {"given", (PyCFunction)(void (*)(void))kernel_given, METH_FASTCALL,
     "Write what each term gives to each of some places."},
    {"merged_pages", (PyCFunction)(void (*)(void))kernel_merged_pages, METH_FASTCALL, "Merge pages of postings."},
    {"cut", (PyCFunction)(void (*)(void))kernel_cut, METH_FASTCALL,
     "Order what was chosen and keep the first, if no two of them are equal."},
    {"inverted", (PyCFunction)(void (*)(void))kernel_inverted, METH_FASTCALL,
     "Turn the tokens of texts into postings."},
    {NULL, NULL, 0, NULL},
};

static int filled(PyObject *module)
{
    return PyModule_AddIntConstant(module, "VERSION", KERNEL_VERSION);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)filled},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "Compiled loops of the index.",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
