/* Signs beyond ASCII, told by the blocks they stand in. */

#include "symbols.h"

#include <string.h>

/* Blocks in UTF-8, from the first to the last, none of whose signs is part of a word. */
static const struct {
    const char *first, *last;
    size_t size;
} BLOCKS[] = {
    {"\xe2\x80\x90", "\xe2\x80\xa7", 3},         /* dashes, quotes, bullets, dots */
    {"\xe2\x86\x90", "\xe2\x8b\xbf", 3},         /* arrows, signs of mathematics */
    {"\xe2\x94\x80", "\xe2\x9d\xb5", 3},         /* drawn lines, shapes, small pictures */
    {"\xe2\x9e\x94", "\xe2\x9e\xbf", 3},         /* arrows; digits in circles stand between */
    {"\xf0\x9f\x8c\x80", "\xf0\x9f\xab\xbf", 4}, /* pictures */
};

int symbol_at(const char *text, size_t left)
{
    for (size_t i = 0; i < sizeof BLOCKS / sizeof *BLOCKS; i++) {
        size_t size = BLOCKS[i].size;
        if (left >= size && memcmp(text, BLOCKS[i].first, size) >= 0 && memcmp(text, BLOCKS[i].last, size) <= 0)
            return (int)size;
    }
    return 0;
}
