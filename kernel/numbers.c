/* The numbers of a text that may be dates, found without a look at its words. */

#include "kernel.h"
#include "symbols.h"

#include <string.h>

#define DIGITS_OF_A_YEAR 4
/* The first byte in UTF-8 of letters and signs of Europe, none of which is a digit. */
#define FIRST_OF_EUROPE 0xc2
#define LAST_OF_EUROPE 0xcf

static int is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

/* Tell whether a letter may be part of a date of digits. */
static int is_of_numbers(char letter)
{
    return is_digit(letter) || letter == '.' || letter == ',' || letter == '/' || letter == '-';
}

/* Return how many bytes the letter takes that begins here and is not of ASCII, or 0 if it may be a digit. */
static size_t strange_at(const char *text, size_t left)
{
    unsigned char first = (unsigned char)*text;
    return first >= FIRST_OF_EUROPE && first <= LAST_OF_EUROPE ? 2 : (size_t)symbol_at(text, left);
}

/* Write the runs of a text that hold as many digits as a year has, no more and no less, with a space behind each.
   Returns how many bytes that took, or -1 if other letters may be digits. */
static Py_ssize_t numbers_written(const char *text, Py_ssize_t count, char *out)
{
    Py_ssize_t written = 0;
    size_t size = (size_t)count;
    for (size_t i = 0; i < size;) {
        if (text[i] & 0x80) {
            size_t bytes = strange_at(text + i, size - i);
            if (!bytes)
                return -1;
            i += bytes;
            continue;
        }
        size_t begin = i, digits = 0;
        int has_year = 0;
        for (; i < size && is_of_numbers(text[i]); i++) {
            digits = is_digit(text[i]) ? digits + 1 : 0;
            int is_last = i + 1 == size || !is_digit(text[i + 1]);
            has_year = has_year || (is_last && digits == DIGITS_OF_A_YEAR);
        }
        if (has_year) {
            memcpy(out + written, text + begin, i - begin);
            written += (Py_ssize_t)(i - begin);
            out[written++] = ' ';
        }
        i += i == begin;
    }
    return written;
}

/* numbers(text) -> text, or None if it has other letters that may be digits */
PyObject *kernel_numbers(PyObject *module, PyObject *text)
{
    (void)module;
    return rewritten(text, numbers_written); /* the last run may have nothing behind it: one byte more is written */
}
