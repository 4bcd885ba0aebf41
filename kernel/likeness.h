/* How like each other memories are, as `ranking/likeness.py` compares them: each pair once, when it is asked for. */

#ifndef WHYRANK_LIKENESS_H
#define WHYRANK_LIKENESS_H

#include "kernel.h"

#define COMPARED_ITEMS 6

/* The memories of a comparison, and what is known of their pairs. Cells are written as they become known, so whoever
   holds one holds Python's lock as well. */
typedef struct {
    Py_ssize_t count; /* of memories; one beyond them is like nobody */
    Py_ssize_t size; /* of a vector */
    Py_ssize_t words; /* of 64 bits, in the row of a text; none where all have vectors */
    const float *vectors;
    const int64_t *which; /* row of the vectors is whose; negative if it has none */
    const uint64_t *texts;
    const int64_t *lengths; /* in words of the language */
    double *alike; /* count × count, where it is known */
    uint8_t *known;
    double (*block)(const float *, const float *, Py_ssize_t);
    Numbers held[COMPARED_ITEMS];
} Likeness;

/* Hold what a tuple (vectors float32, which int64, texts uint64, lengths int64, alike float64, known uint8) says.
   Returns 0, or -1 with an exception set. */
int likeness_held(PyObject *compared, Likeness *likeness);

void likeness_let_go(Likeness *likeness);

/* Compare two of the memories, and keep what that gives. */
double likeness_compared(const Likeness *likeness, int64_t one, int64_t other);

/* Return how like two memories are. */
static inline double likeness_of(const Likeness *likeness, int64_t one, int64_t other)
{
    if (one >= likeness->count || other >= likeness->count)
        return 0.0;
    Py_ssize_t cell = (Py_ssize_t)one * likeness->count + (Py_ssize_t)other;
    return likeness->known[cell] ? likeness->alike[cell] : likeness_compared(likeness, one, other);
}

#endif
