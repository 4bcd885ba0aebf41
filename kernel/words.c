/* Ordered lists of words, merged into one. */

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define KEY_BITS 56 /* of a word's beginning, as vocabulary.py has it */

/* Where a list is being read: its next word, and how that begins, as a number in the order of words. */
typedef struct {
    const char *word, *end;
    size_t size;
    uint64_t beginning;
} Head;

/* Go to the word that begins here; at the end of a list there is none. */
static void set_to(Head *head, const char *at)
{
    head->word = at < head->end ? at : NULL;
    if (!head->word)
        return;
    const char *space = memchr(at, ' ', (size_t)(head->end - at));
    head->size = (size_t)((space ? space : head->end) - at);
    head->beginning = 0;
    for (size_t i = 0; i < 8; i++)
        head->beginning = head->beginning << 8 | (i < head->size ? (uint8_t)at[i] : 0);
}

static int order_of(const Head *one, const Head *other)
{
    if (one->beginning != other->beginning)
        return one->beginning < other->beginning ? -1 : 1;
    int order = memcmp(one->word, other->word, one->size < other->size ? one->size : other->size);
    return order ? order : (one->size > other->size) - (one->size < other->size);
}

/* Write the words of all lists from one key to below another, each once, and return how many bytes that took. */
static size_t merged(Head *heads, Py_ssize_t count, uint64_t low, uint64_t below, char *out)
{
    size_t written = 0;
    for (;;) {
        const Head *first = NULL;
        for (Py_ssize_t i = 0; i < count; i++)
            if (heads[i].word && (!first || order_of(&heads[i], first) < 0))
                first = &heads[i];
        if (!first || first->beginning >> (64 - KEY_BITS) >= below)
            return written;
        Head least = *first;
        if (least.beginning >> (64 - KEY_BITS) >= low) {
            if (written)
                out[written++] = ' ';
            memcpy(out + written, least.word, least.size);
            written += least.size;
        }
        for (Py_ssize_t i = 0; i < count; i++)
            if (heads[i].word && heads[i].beginning == least.beginning && !order_of(&heads[i], &least))
                set_to(&heads[i], heads[i].word + heads[i].size + 1);
    }
}

PyObject *kernel_merged_words(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !PyList_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "merged_words takes a list of texts and two keys");
    uint64_t low = PyLong_AsUnsignedLongLong(arguments[1]);
    uint64_t below = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t lists = PyList_Size(arguments[0]);
    Head *heads = calloc((size_t)lists + 1, sizeof *heads);
    char *out = NULL, *words;
    PyObject *made = NULL;
    size_t room = 1;
    Py_ssize_t size, i;
    for (i = 0; heads && i < lists && !PyBytes_AsStringAndSize(PyList_GetItem(arguments[0], i), &words, &size); i++) {
        heads[i].end = words + size;
        set_to(&heads[i], words);
        room += (size_t)size + 1;
    }
    if (!heads || (i == lists && !(out = malloc(room))))
        PyErr_NoMemory();
    else if (out)
        made = PyBytes_FromStringAndSize(out, (Py_ssize_t)merged(heads, lists, low, below, out));
    free(heads);
    free(out);
    return made;
}
