/* What the parts of the kernel share: buffers of one kind of number, taken from Python and given back. */

#ifndef WHYRANK_KERNEL_H
#define WHYRANK_KERNEL_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>

/* Raised with every change of what a function takes or gives, here and in src/whyrank/storage/sqlite/postings/kernel.py. */
#define KERNEL_VERSION 15

/* Have something brought near that is looked at soon. */
#if defined(__GNUC__)
#define FETCH(at) __builtin_prefetch(at)
#else
#define FETCH(at) ((void)(at))
#endif

/* A contiguous buffer, held until it is let go. Numbers that are not aligned are read from a copy of them. */
typedef struct {
    Py_buffer view;
    Py_ssize_t count;
    void *copied; /* where the numbers are that `view.buf` is a copy of; NULL if it is none */
} Numbers;

/* Hold the numbers of an object; each takes `size` bytes. Returns 0, or -1 with an exception set. */
int numbers_held(PyObject *object, Py_ssize_t size, int is_written, const char *name, Numbers *numbers);

/* Let all of some buffers go that were held. */
void numbers_let_go(Numbers *numbers, int count);

PyObject *kernel_coded(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_nearest(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_cosines(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_apart(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_under(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* postings.c */
PyObject *kernel_pairs(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_gathered(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_sums(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_best(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *kernel_given(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* merging.c */
PyObject *kernel_merged_pages(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* cutting.c */
PyObject *kernel_cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* inversion.c */
PyObject *kernel_inverted(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
