/* Placing by diversity: whoever gains most comes next, and whoever is like it gains less from then on. */

#ifndef WHYRANK_PLACING_H
#define WHYRANK_PLACING_H

#include "likeness.h"

#define NOBODY (-1) /* is left that may be placed */
#define TIED (-2) /* several gain the same, and no turns are known */

/* Gains only fall, so one that was not held against all that are placed is at least as high as it should be: nobody is
   compared before that would make it the best. */
typedef struct {
    const Likeness *likeness;
    const int64_t *members; /* of the comparison, one at each place */
    const int64_t *turns; /* in which order equals are placed, if that is known */
    Py_ssize_t size;
    const double *worth;
    double others; /* what being like others costs */
    double *gains;
    int32_t *held; /* against how many of those that are placed */
    int32_t *placed;
    int32_t count; /* of those that are placed */
    int32_t *winners; /* a tree: at 1 the best of all, the places themselves from `leaves` on */
    Py_ssize_t leaves;
    void *memory;
} Placing;

/* Make room for pools of so many. Returns 0, or -1 with an exception set. */
int placing_made(Placing *placing, Py_ssize_t size);

void placing_let_go(Placing *placing);

/* Forget who is placed. */
void placing_begin(Placing *placing, const double *worth, double others);

/* Let those of a tier take part, and nobody else. */
void placing_admit(Placing *placing, const int64_t *tiers, int64_t tier);

/* Return who is to be placed next, NOBODY or TIED. */
Py_ssize_t placing_best(Placing *placing);

/* Give one its place. */
void placing_place(Placing *placing, Py_ssize_t place);

/* Hold one against all that are placed. Returns what it gains. */
double placing_gain(Placing *placing, Py_ssize_t place);

/* Return how like each other those at two places are. */
static inline double placing_alike(const Placing *placing, Py_ssize_t one, Py_ssize_t other)
{
    return likeness_of(placing->likeness, placing->members[one], placing->members[other]);
}

/* Hold what every function is given first: who is compared, members int64 size, turns int64 size or none of it.
   Returns 0, or -1 with an exception set. */
int pool_held(PyObject *const *arguments, Likeness *likeness, Numbers *held, Placing *placing);

void pool_let_go(Likeness *likeness, Numbers *held, Placing *placing);

/* Hold some numbers, those written from `first_written` on. Returns 0, or -1 with an exception set. */
int rows_held(PyObject *const *arguments, const char *const *names, const Py_ssize_t *sizes, int first_written,
              int count, Numbers *held);

#endif
