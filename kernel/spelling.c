/* How a text in ASCII is spelled for a table of static vectors: without what only joins words, and small letters in
   place of capitals where a word has both. */

#include "kernel.h"

#include <stdlib.h>

enum { OTHER, SPACE, SMALL, CAPITAL, DIGIT };

/* What a letter is: as Python splits ASCII, with the signs that only join words. */
static int kind_of(unsigned char letter)
{
    if (letter >= 'a' && letter <= 'z')
        return SMALL;
    if (letter >= 'A' && letter <= 'Z')
        return CAPITAL;
    if (letter >= '0' && letter <= '9')
        return DIGIT;
    if (letter == ' ' || (letter >= '\t' && letter <= '\r') || (letter >= 0x1c && letter <= 0x1f))
        return SPACE;
    return letter == '-' || letter == '_' || letter == '/' ? SPACE : OTHER;
}

/* Write a text with single spaces between its words, and return how many letters that took; -1 if it is not ASCII. */
static Py_ssize_t spelled(const char *text, Py_ssize_t size, char *out)
{
    Py_ssize_t written = 0, i = 0;
    int before = SPACE; /* what stands in front */
    while (i < size) {
        if ((unsigned char)text[i] >= 0x80)
            return -1;
        int kind = kind_of((unsigned char)text[i]);
        if (kind == SPACE) {
            before = SPACE;
            i++;
            continue;
        }
        if (before == SPACE && written)
            out[written++] = ' ';
        if (kind != SMALL && kind != CAPITAL) {
            out[written++] = text[i++];
            before = kind;
            continue;
        }
        Py_ssize_t start = i;
        int has = 0, next = SPACE; /* which letters there are from here on without a break, and what stands behind them */
        for (; i < size; i++) {
            next = kind_of((unsigned char)text[i]);
            if (next != SMALL && next != CAPITAL)
                break;
            has |= next == SMALL ? 1 : 2;
        }
        int is_mixed = has == 3 && before != DIGIT && (i == size || next != DIGIT);
        for (Py_ssize_t j = start; j < i; j++)
            out[written++] = is_mixed && text[j] <= 'Z' ? (char)(text[j] + 'a' - 'A') : text[j];
        before = SMALL;
    }
    return written;
}

/* spelled(text) -> text, or None if it is not ASCII */
PyObject *kernel_spelled(PyObject *module, PyObject *text)
{
    (void)module;
    Py_ssize_t size;
    const char *letters = PyUnicode_AsUTF8AndSize(text, &size);
    if (!letters)
        return NULL;
    char *out = malloc((size_t)size + 1); /* a space is written for at least one that is read */
    if (!out)
        return PyErr_NoMemory();
    Py_ssize_t written = spelled(letters, size, out);
    PyObject *made = written < 0 ? Py_NewRef(Py_None) : PyUnicode_FromStringAndSize(out, written);
    free(out);
    return made;
}
