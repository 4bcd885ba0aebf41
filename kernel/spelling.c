/* How a text is spelled for a table of static vectors: without what only joins words, and small letters in place of
   capitals where a word has both. Letters are those of ASCII; of other signs such as no letters, digits or spaces stand
   among: dashes, quotes, arrows, drawn lines, pictures. */

#include "kernel.h"
#include "symbols.h"

#include <string.h>

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

#define JOINER "\xe2\x80\xba"     /* as headings are joined */
#define IS_PICTURE "\xef\xb8\x8f" /* which says that a sign is a picture */

/* Tell what the sign that begins here is, which is not ASCII, and how many bytes it has; -1 for whatever else there is. */
static int sign_at(const char *text, Py_ssize_t left, int *size)
{
    *size = 3;
    if (left >= 3 && !memcmp(text, JOINER, 3))
        return SPACE;
    if (left >= 3 && !memcmp(text, IS_PICTURE, 3))
        return OTHER;
    *size = symbol_at(text, (size_t)left);
    return *size ? OTHER : -1;
}

/* Write a text with single spaces between its words, and return how many bytes that took; -1 if it has other letters. */
static Py_ssize_t spelled(const char *text, Py_ssize_t size, char *out)
{
    Py_ssize_t written = 0, i = 0;
    int before = SPACE; /* what stands in front */
    while (i < size) {
        int is_sign = (unsigned char)text[i] >= 0x80, bytes = 1;
        int kind = is_sign ? sign_at(text + i, size - i, &bytes) : kind_of((unsigned char)text[i]);
        if (kind < 0)
            return -1;
        if (kind == SPACE) {
            before = SPACE;
            i += bytes;
            continue;
        }
        if (before == SPACE && written)
            out[written++] = ' ';
        if (kind != SMALL && kind != CAPITAL) {
            memcpy(out + written, text + i, (size_t)bytes);
            written += bytes;
            i += bytes;
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

/* spelled(text) -> text, or None if it has other letters than those of ASCII */
PyObject *kernel_spelled(PyObject *module, PyObject *text)
{
    (void)module;
    return rewritten(text, spelled); /* a space is written for at least one that is read */
}
