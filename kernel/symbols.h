/* Signs beyond ASCII that are neither letters nor digits nor spaces: dashes, quotes, arrows, drawn lines, pictures. */

#ifndef WHYRANK_SYMBOLS_H
#define WHYRANK_SYMBOLS_H

#include <stddef.h>

/* Return how many bytes of UTF-8 the sign takes that begins here, or 0 if there is no such sign. */
int symbol_at(const char *text, size_t left);

#endif
