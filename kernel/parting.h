/* New pieces whose letters are of ASCII, taken apart: what of them goes to a stemmer, and what their tokens are made of.
*/

#ifndef WHYRANK_PARTING_H
#define WHYRANK_PARTING_H

#include "pieces.h"

/* A word of a piece. */
typedef struct {
    PyObject *token;  /* what it comes to, held by the table or by `made`; NULL if a stemmer must say */
    Py_ssize_t asked; /* which of the words that a stemmer is asked for it is */
    Py_ssize_t whole; /* the word it is a part of, and none if it comes to the same; or -1 */
} Word;

/* A piece that was taken apart, and which words are its own. */
typedef struct {
    const char *letters;
    size_t size, first, count;
    int32_t leaning;
    uint16_t words;
    uint8_t dated;
} Parted;

typedef struct {
    Word *words;
    size_t count, room;
    Parted *pieces;
    size_t piece_count, piece_room;
    PyObject *asked; /* words for a stemmer */
    PyObject *made;  /* words that are tokens as they are */
} Parting;

/* Tell what a word is that is watched for, or 0. */
int what_is(const Table *table, const char *letters, size_t size);

int parting_begun(Parting *parting);
void parting_ended(Parting *parting);

/* Take a piece apart. Returns 1; 0 for one that names a month, or is read otherwise; -1 with an exception. */
int parted(const Table *table, const char *letters, size_t size, Parting *parting);

/* Return the tokens of a piece, as a tuple; the stems of what was asked for stand in a list from some place on. */
PyObject *parted_tokens(const Parting *parting, const Parted *piece, PyObject *told, Py_ssize_t stems);

#endif
