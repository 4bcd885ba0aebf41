/* Pieces of texts that are known, found by their letters. */

#ifndef WHYRANK_PIECES_H
#define WHYRANK_PIECES_H

#include "kernel.h"

/* As in src/whyrank/memo.py and MAX_TOKEN_LETTERS of src/whyrank/analysis/words.py: longer ones are cut, or refused. */
#define LONGEST_WORD 64
/* As in src/whyrank/analysis/pieces.py: what is longer is told of elsewhere. */
#define LONGEST_ADDRESS 256

/* A piece that is known, or a word that is watched for. */
typedef struct {
    uint64_t hash;
    PyObject *tokens; /* its only token, or a tuple of several, or NULL */
    uint32_t at;      /* where its letters begin */
    int32_t leaning;
    uint16_t size;
    uint16_t count; /* of its tokens: none, one, or SEVERAL */
    uint16_t words; /* that stand alone in it, one at least; for a word that is watched what it is */
    uint8_t dated;
    uint8_t is_bare; /* it says no more than its token, and says the same with signs around it and capitals */
} Piece;

#define SEVERAL UINT16_MAX

/* What a word is that is watched for. */
enum { STOP_WORD = 1, VOICE = 2, MONTH = 4 };

/* What of a date a piece may be, as in src/whyrank/analysis/datewords.py; months are told of elsewhere. */
enum { HOLDS_YEAR = 4 };

/* Where a piece stands, and enough of its hash to tell it from most others. */
typedef struct {
    uint32_t hash;
    uint32_t number; /* counted from 1 */
} Slot;

typedef struct Table {
    Piece *pieces;
    uint32_t count, room;
    char *letters;
    size_t used, letters_room;
    Slot *slots;
    size_t mask;
    uint64_t seed;
    size_t taken;          /* room, in pieces as they usually are */
    struct Table *watched; /* words that are no tokens, that speak for a language, or are months */
} Table;

uint64_t hash_of(const char *letters, size_t size, uint64_t seed);

/* Tell whether letters are small ones of ASCII alone. */
int is_plain(const char *letters, size_t size);

/* Return the number of a piece, counted from 1, or 0 if it is not known. */
uint32_t found(const Table *table, const char *letters, size_t size, uint64_t hash);

#endif
