/* Texts read piece by piece: what stands between two spaces is looked up, and worked out by the caller where it is new.

   A dictionary of Python does the same, with an object for every piece of every text, and a look at four places in
   memory for each; here it is two. */

#include "parting.h"

#include <stdlib.h>
#include <string.h>

#define NAME "whyrank.pieces"
#define FIRST_SLOTS 4096
#define AHEAD 8  /* pieces that are fetched while one is looked at: a table is larger than the processor's caches */
#define ROUNDS 3 /* to learn words, then pieces with words that say more, and to find all of them */
/* Bytes of an address, or tokens of a piece, that take the room of a word: nearly as in src/whyrank/analysis/pieces.py,
   which counts letters. */
#define BYTES_OF_A_PIECE 24
#define TOKENS_OF_A_PIECE 8
/* Signs that are part of no word they stand before or behind, as in src/whyrank/analysis/compounds.py. */
#define SIGNS ".,;:!?()\"*[]{}<>=~$&|^%`/@\\-"

/* Tokens on their way into a tuple, borrowed from a table, which never lets any go. */
typedef struct {
    PyObject **tokens;
    Py_ssize_t count, room;
} Tokens;

static void emptied(Table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < table->count; i++)
        Py_XDECREF(table->pieces[i].tokens);
    emptied(table->watched);
    free(table->pieces);
    free(table->letters);
    free(table->slots);
    free(table);
}

static void table_freed(PyObject *capsule)
{
    emptied(PyCapsule_GetPointer(capsule, NAME));
}

static Table *table_made(uint64_t seed)
{
    Table *table = calloc(1, sizeof *table);
    Slot *slots = calloc(FIRST_SLOTS, sizeof *slots);
    if (!table || !slots) {
        free(table);
        free(slots);
        PyErr_NoMemory();
        return NULL;
    }
    table->slots = slots;
    table->mask = FIRST_SLOTS - 1;
    table->seed = seed;
    return table;
}

uint64_t hash_of(const char *letters, size_t size, uint64_t seed)
{
    uint64_t hash = seed ^ size, word;
    for (; size >= 8; letters += 8, size -= 8) {
        memcpy(&word, letters, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, letters, size);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL; /* so that the last letters have a say in the slot */
    return hash ^ hash >> 29;
}

uint32_t found(const Table *table, const char *letters, size_t size, uint64_t hash)
{
    for (size_t slot = hash & table->mask; table->slots[slot].number; slot = (slot + 1) & table->mask) {
        if (table->slots[slot].hash != (uint32_t)(hash >> 32))
            continue;
        const Piece *piece = &table->pieces[table->slots[slot].number - 1];
        if (piece->hash == hash && piece->size == size && !memcmp(table->letters + piece->at, letters, size))
            return table->slots[slot].number;
    }
    return 0;
}

static void file(Slot *slots, size_t mask, uint64_t hash, uint32_t number)
{
    size_t slot = hash & mask;
    while (slots[slot].number)
        slot = (slot + 1) & mask;
    slots[slot] = (Slot){(uint32_t)(hash >> 32), number};
}

/* Make room for one more piece of so many letters. */
static int widened(Table *table, size_t size)
{
    if (table->count == table->room) {
        uint32_t room = table->room ? 2 * table->room : FIRST_SLOTS / 2;
        Piece *pieces = realloc(table->pieces, room * sizeof *pieces);
        if (!pieces)
            return -1;
        table->pieces = pieces;
        table->room = room;
    }
    if (table->used + size > table->letters_room) {
        size_t room = 2 * (table->letters_room + size);
        char *letters = room < UINT32_MAX ? realloc(table->letters, room) : NULL;
        if (!letters)
            return -1;
        table->letters = letters;
        table->letters_room = room;
    }
    if (2 * (size_t)(table->count + 1) > table->mask) {
        size_t mask = 2 * table->mask + 1;
        Slot *slots = calloc(mask + 1, sizeof *slots);
        if (!slots)
            return -1;
        for (uint32_t i = 0; i < table->count; i++)
            file(slots, mask, table->pieces[i].hash, i + 1);
        free(table->slots);
        table->slots = slots;
        table->mask = mask;
    }
    return 0;
}

/* Put a piece into a table that does not know it; its tokens are the table's from then on. */
static int filed(Table *table, const char *letters, size_t size, Piece piece)
{
    if (size >= UINT16_MAX)
        return PyErr_SetString(PyExc_ValueError, "a piece is too long to be remembered"), -1;
    if (widened(table, size))
        return PyErr_NoMemory(), -1;
    Py_XINCREF(piece.tokens);
    piece.at = (uint32_t)table->used;
    piece.size = (uint16_t)size;
    memcpy(table->letters + table->used, letters, size);
    table->used += size;
    table->pieces[table->count++] = piece;
    file(table->slots, table->mask, piece.hash, table->count);
    return 0;
}

/* Watch for a word, which leans to a language or away from it. */
static int word_watched(Table *table, PyObject *word, uint16_t kind, int32_t leaning)
{
    Py_ssize_t size;
    const char *letters = PyUnicode_AsUTF8AndSize(word, &size);
    if (!letters)
        return -1;
    uint64_t hash = hash_of(letters, (size_t)size, table->seed);
    uint32_t number = found(table, letters, (size_t)size, hash);
    if (!number)
        return filed(table, letters, (size_t)size, (Piece){.hash = hash, .words = kind, .leaning = leaning});
    table->pieces[number - 1].words |= kind;
    table->pieces[number - 1].leaning += leaning;
    return 0;
}

/* Watch for some words; those that lean stand in a dictionary. */
static int watched(Table *table, PyObject *words, uint16_t kind)
{
    PyObject *each = PyObject_GetIter(words), *word = NULL;
    int failed = each == NULL;
    while (!failed && (word = PyIter_Next(each))) {
        PyObject *leaning = kind == VOICE ? PyObject_GetItem(words, word) : NULL;
        long leans = leaning ? PyLong_AsLong(leaning) : 0;
        failed = PyErr_Occurred() || leans < -1 || leans > 1 || word_watched(table, word, kind, (int32_t)leans);
        if (failed && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a word leans to a language by one, or away from it");
        Py_XDECREF(leaning);
        Py_DECREF(word);
    }
    Py_XDECREF(each);
    return failed || PyErr_Occurred() ? -1 : 0;
}

PyObject *kernel_pieces(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "pieces takes function words, how words lean, and months");
    PyObject *name = PyUnicode_FromString(NAME), *capsule = NULL;
    if (!name)
        return NULL;
    uint64_t seed = (uint64_t)PyObject_Hash(name); /* another one in every process, so that nobody can plan for it */
    Py_DECREF(name);
    Table *table = table_made(seed);
    if (table && (table->watched = table_made(seed)) && !watched(table->watched, arguments[0], STOP_WORD)
        && !watched(table->watched, arguments[1], VOICE) && !watched(table->watched, arguments[2], MONTH))
        capsule = PyCapsule_New(table, NAME, table_freed);
    if (!capsule)
        emptied(table);
    return capsule;
}

/* Read what was told of a piece: its only token, or its tokens, how it leans, its words, and what of a date it is. */
static int told_of(PyObject *told, Piece *piece)
{
    PyObject *tokens;
    if (PyUnicode_Check(told)) {
        piece->count = 1;
        piece->words = 1;
        piece->tokens = told;
        piece->is_bare = 1;
        return 0;
    }
    if (!PyTuple_Check(told)) {
        PyErr_SetString(PyExc_TypeError, "this is not what a piece says");
        return -1;
    }
    unsigned short words;
    unsigned char date;
    if (!PyArg_ParseTuple(told, "O!iHb", &PyTuple_Type, &tokens, &piece->leaning, &words, &date))
        return -1;
    piece->words = words;
    piece->dated = date;
    Py_ssize_t count = PyTuple_Size(tokens);
    piece->count = count > 1 ? SEVERAL : (uint16_t)count;
    piece->tokens = count == 1 ? PyTuple_GetItem(tokens, 0) : count ? tokens : NULL;
    return 0;
}

static size_t room_for(const Piece *piece, size_t size)
{
    size_t tokens = piece->count == SEVERAL ? (size_t)PyTuple_Size(piece->tokens) : 0;
    size_t room = size > LONGEST_WORD ? size / BYTES_OF_A_PIECE : 1;
    return room > tokens / TOKENS_OF_A_PIECE ? room : tokens / TOKENS_OF_A_PIECE;
}

/* Remember what was told of a piece, unless it is known by now. */
static int remembered(Table *table, const char *letters, size_t size, PyObject *told)
{
    uint64_t hash = hash_of(letters, size, table->seed);
    Piece piece = {.hash = hash};
    if (found(table, letters, size, hash))
        return 0;
    if (told_of(told, &piece) || filed(table, letters, size, piece))
        return -1;
    table->taken += room_for(&piece, size);
    return 0;
}

/* Pieces that are not known: words that say no more than their stems, those that could be taken apart, all others. */
typedef struct {
    PyObject *plain, *rest;
    Parting parting;
} Unknown;

static int unknown_begun(Unknown *unknown)
{
    unknown->plain = PyList_New(0);
    unknown->rest = PyList_New(0);
    return parting_begun(&unknown->parting) || !unknown->plain || !unknown->rest ? -1 : 0;
}

static void unknown_ended(Unknown *unknown)
{
    Py_XDECREF(unknown->plain);
    Py_XDECREF(unknown->rest);
    parting_ended(&unknown->parting);
}

static int is_nobody(const Unknown *unknown)
{
    return !PyList_Size(unknown->plain) && !PyList_Size(unknown->rest) && !unknown->parting.piece_count;
}

/* Remember what was told of some pieces in a list, from a place in another list on. */
static int all_remembered(Table *table, PyObject *pieces, PyObject *told, Py_ssize_t from)
{
    for (Py_ssize_t i = 0; i < PyList_Size(pieces); i++) {
        PyObject *piece = PyList_GetItem(pieces, i), *one = PyList_GetItem(told, from + i);
        Py_ssize_t size;
        const char *letters = piece && one ? PyUnicode_AsUTF8AndSize(piece, &size) : NULL;
        if (!letters)
            return -1;
        Py_INCREF(piece); /* whoever is asked what it says may change the lists */
        Py_INCREF(one);
        int failed = remembered(table, letters, (size_t)size, one);
        Py_DECREF(piece);
        Py_DECREF(one);
        if (failed)
            return -1;
    }
    return 0;
}

/* Remember pieces that were taken apart, by what became of their words. */
static int parted_remembered(Table *table, const Parting *parting, PyObject *told, Py_ssize_t stems)
{
    for (size_t i = 0; i < parting->piece_count; i++) {
        const Parted *piece = &parting->pieces[i];
        PyObject *tokens = parted_tokens(parting, piece, told, stems);
        PyObject *one = tokens ? Py_BuildValue("(NiHb)", tokens, piece->leaning, piece->words, piece->dated) : NULL;
        int failed = !one || remembered(table, piece->letters, piece->size, one);
        Py_XDECREF(one);
        if (failed)
            return -1;
    }
    return 0;
}

/* Ask what some pieces say, all at once, and remember it. */
static int learned(Table *table, const Unknown *unknown, PyObject *learn)
{
    PyObject *asked = unknown->parting.asked;
    Py_ssize_t plain = PyList_Size(unknown->plain), words = PyList_Size(asked), rest = PyList_Size(unknown->rest);
    PyObject *told = plain || words || rest
                         ? PyObject_CallFunctionObjArgs(learn, unknown->plain, asked, unknown->rest, NULL)
                         : PyList_New(0);
    if (!told)
        return -1;
    int failed = !PyList_Check(told) || PyList_Size(told) != plain + words + rest || PyList_Size(asked) != words
                 || PyList_Size(unknown->plain) != plain || PyList_Size(unknown->rest) != rest;
    if (failed)
        PyErr_SetString(PyExc_TypeError, "a list is wanted of what each piece says");
    failed = failed || all_remembered(table, unknown->plain, told, 0)
             || parted_remembered(table, &unknown->parting, told, plain)
             || all_remembered(table, unknown->rest, told, plain + words);
    Py_DECREF(told);
    return failed ? -1 : 0;
}

int is_plain(const char *letters, size_t size)
{
    int strange = 0;
    for (size_t i = 0; i < size; i++)
        strange |= letters[i] < 'a' || letters[i] > 'z';
    return !strange;
}

/* List a piece that is not known. */
static int noted(const Table *table, Unknown *unknown, const char *letters, size_t size)
{
    int is_word = size <= LONGEST_WORD && is_plain(letters, size) && !what_is(table, letters, size);
    int done = is_word ? 0 : parted(table, letters, size, &unknown->parting);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *piece = PyUnicode_DecodeUTF8(letters, (Py_ssize_t)size, NULL);
    int failed = piece ? PyList_Append(is_word ? unknown->plain : unknown->rest, piece) : -1;
    Py_XDECREF(piece);
    return failed;
}

static int added(Tokens *tokens, PyObject *token)
{
    if (tokens->count == tokens->room) {
        Py_ssize_t room = 2 * tokens->room + 256;
        PyObject **wider = realloc(tokens->tokens, (size_t)room * sizeof *wider);
        if (!wider)
            return PyErr_NoMemory(), -1;
        tokens->tokens = wider;
        tokens->room = room;
    }
    tokens->tokens[tokens->count++] = token;
    return 0;
}

/* Return how many bytes a space takes here, or 0 for what is none: all that `str.split` splits at. */
static int space_at(const unsigned char *at, size_t left)
{
    if (at[0] == ' ' || (at[0] >= '\t' && at[0] <= '\r') || (at[0] >= 0x1c && at[0] <= 0x1f))
        return 1;
    if (at[0] < 0x80 || left < 2)
        return 0;
    if (at[0] == 0xc2)
        return at[1] == 0x85 || at[1] == 0xa0 ? 2 : 0;
    if (left < 3)
        return 0;
    if (at[0] == 0xe1)
        return at[1] == 0x9a && at[2] == 0x80 ? 3 : 0;
    if (at[0] == 0xe3)
        return at[1] == 0x80 && at[2] == 0x80 ? 3 : 0;
    if (at[0] != 0xe2)
        return 0;
    if (at[1] == 0x81)
        return at[2] == 0x9f ? 3 : 0;
    return at[1] == 0x80 && (at[2] <= 0x8a || at[2] == 0xa8 || at[2] == 0xa9 || at[2] == 0xaf) ? 3 : 0;
}

/* A text as it is written, and with small letters for the capitals of ASCII. */
typedef struct {
    const char *written;
    char *small;
    size_t size;
} Text;

/* Where a piece stands in a text, the word in it if signs and a capital are all it has besides, and its number in the
   table, counted from 1, or 0. */
typedef struct {
    size_t begin, size, word_begin, word_size;
    uint64_t hash; /* of the word, or of the piece if it has none */
    uint32_t number;
} Spot;

typedef struct {
    Spot *spots;
    size_t count, room;
} Spots;

static int spotted(Spots *spots, Spot spot)
{
    if (spots->count == spots->room) {
        size_t room = 2 * spots->room + 512;
        Spot *wider = realloc(spots->spots, room * sizeof *wider);
        if (!wider)
            return PyErr_NoMemory(), -1;
        spots->spots = wider;
        spots->room = room;
    }
    spots->spots[spots->count++] = spot;
    return 0;
}

static int is_sign(char letter)
{
    char small = letter | 0x20;
    return (small < 'a' || small > 'z') && letter && strchr(SIGNS, letter) != NULL;
}

/* Find the word of ASCII in a piece: no humps, and nothing around it but signs. */
static void word_found(const char *text, Spot *spot)
{
    size_t begin = spot->begin, end = begin + spot->size, capitals = 0;
    if (spot->size > LONGEST_WORD)
        return;
    while (begin < end && is_sign(text[begin]))
        begin++;
    while (begin < end && is_sign(text[end - 1]))
        end--;
    for (size_t i = begin; i < end; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            capitals++;
        else if (text[i] < 'a' || text[i] > 'z')
            return;
    }
    if (capitals && capitals < end - begin && (capitals > 1 || text[begin] > 'Z'))
        return;
    spot->word_begin = begin;
    spot->word_size = end - begin;
}

/* Return what is looked up for a piece, and remembered. */
static const char *looked_for(const Text *text, const Spot *spot, size_t *size)
{
    *size = spot->word_size ? spot->word_size : spot->size;
    return spot->word_size ? text->small + spot->word_begin : text->written + spot->begin;
}

static uint64_t hash_at(const Table *table, const Text *text, const Spot *spot)
{
    size_t size;
    const char *letters = looked_for(text, spot, &size);
    return hash_of(letters, size, table->seed);
}

/* Tell where the pieces of a text stand, and let their slots be fetched meanwhile. */
static int divided(const Table *table, const Text *text, Spots *spots)
{
    const unsigned char *letters = (const unsigned char *)text->written;
    size_t begin = 0, end;
    int space;
    while (begin < text->size) {
        if ((space = space_at(letters + begin, text->size - begin))) {
            begin += (size_t)space;
            continue;
        }
        for (end = begin + 1; end < text->size && !space_at(letters + end, text->size - end); end++)
            ;
        Spot spot = {.begin = begin, .size = end - begin};
        word_found(text->written, &spot);
        spot.hash = hash_at(table, text, &spot);
        FETCH(&table->slots[spot.hash & table->mask]);
        if (spotted(spots, spot))
            return -1;
        begin = end;
    }
    return 0;
}

static int is_written_so(const Text *text, const Spot *spot)
{
    return spot->word_size == spot->size && !memcmp(text->small + spot->begin, text->written + spot->begin, spot->size);
}

/* Return the number of a piece, or 0 if it is not known. A word that says more than its token is bound to how it is
   written, so there the piece is looked up as a whole. */
static uint32_t known(const Table *table, const Text *text, Spot *spot)
{
    size_t size;
    const char *letters = looked_for(text, spot, &size);
    uint32_t number = found(table, letters, size, spot->hash);
    if (!number || !spot->word_size || table->pieces[number - 1].is_bare || is_written_so(text, spot))
        return number;
    spot->word_size = 0;
    spot->hash = hash_at(table, text, spot);
    letters = looked_for(text, spot, &size);
    return found(table, letters, size, spot->hash);
}

/* Where pieces of a text stand that are not known, by their hashes: each is listed once, however often it is said. */
typedef struct {
    size_t *places; /* counted from 1 */
    size_t mask;
} Seen;

static int seen_begun(Seen *seen, size_t count)
{
    size_t room = 16;
    while (room < 2 * count)
        room *= 2;
    seen->mask = room - 1;
    seen->places = calloc(room, sizeof *seen->places);
    return seen->places ? 0 : (PyErr_NoMemory(), -1);
}

/* Tell whether a piece was seen before, and remember it. */
static int was_seen(Seen *seen, const Text *text, const Spots *spots, size_t at)
{
    size_t size, other_size, slot = spots->spots[at].hash & seen->mask;
    const char *letters = looked_for(text, &spots->spots[at], &size);
    for (; seen->places[slot]; slot = (slot + 1) & seen->mask) {
        const Spot *other = &spots->spots[seen->places[slot] - 1];
        const char *others = looked_for(text, other, &other_size);
        if (other->hash == spots->spots[at].hash && other_size == size && !memcmp(letters, others, size))
            return 1;
    }
    seen->places[slot] = at + 1;
    return 0;
}

/* Look up the pieces of a text that have no number yet, and list those that are not known. */
static int looked_up(const Table *table, const Text *text, const Spots *spots, Unknown *unknown)
{
    Seen seen = {0};
    int failed = 0;
    for (size_t at = 0; !failed && at < spots->count; at++) {
        if (at + AHEAD < spots->count) {
            uint32_t number = table->slots[spots->spots[at + AHEAD].hash & table->mask].number;
            if (number)
                FETCH(&table->pieces[number - 1]);
        }
        Spot *spot = &spots->spots[at];
        if (spot->number || (spot->number = known(table, text, spot)))
            continue;
        if (!seen.places && seen_begun(&seen, spots->count - at))
            return -1;
        if (was_seen(&seen, text, spots, at))
            continue;
        size_t size;
        const char *letters = looked_for(text, spot, &size);
        failed = noted(table, unknown, letters, size);
    }
    free(seen.places);
    return failed;
}

/* Look up the pieces of a text, and learn those that are not known, until all are. */
static int understood(Table *table, const Text *text, const Spots *spots, PyObject *learn)
{
    for (int round = 0; round < ROUNDS; round++) {
        Unknown unknown;
        int failed = unknown_begun(&unknown) || looked_up(table, text, spots, &unknown);
        int is_whole = !failed && is_nobody(&unknown);
        failed = failed || (!is_whole && learned(table, &unknown, learn));
        unknown_ended(&unknown);
        if (failed || is_whole)
            return failed ? -1 : 0;
    }
    return PyErr_SetString(PyExc_ValueError, "a piece was told by another name"), -1;
}

/* What pieces say besides their tokens. */
typedef struct {
    long long leaning, words;
    int dated;
} Said;

/* Put together what the pieces of a text say, which are all known by now. */
static int put_together(const Table *table, const Spots *spots, Tokens *tokens, Said *said)
{
    for (size_t at = 0; at < spots->count; at++) {
        const Piece *piece = &table->pieces[spots->spots[at].number - 1];
        said->leaning += piece->leaning;
        said->words += piece->words > 1 ? piece->words : 1;
        said->dated |= piece->dated;
        if (piece->count == 1 && added(tokens, piece->tokens))
            return -1;
        for (Py_ssize_t i = 0; piece->count == SEVERAL && i < PyTuple_Size(piece->tokens); i++)
            if (added(tokens, PyTuple_GetItem(piece->tokens, i)))
                return -1;
    }
    return 0;
}

/* Write a text in small letters. */
static int written_small(Text *text)
{
    text->small = malloc(text->size + 1);
    if (!text->small)
        return PyErr_NoMemory(), -1;
    for (size_t i = 0; i < text->size; i++)
        text->small[i] = (char)(text->written[i] | (text->written[i] >= 'A' && text->written[i] <= 'Z' ? 0x20 : 0));
    return 0;
}

static PyObject *as_tuple(const Tokens *tokens)
{
    PyObject *made = PyTuple_New(tokens->count);
    for (Py_ssize_t i = 0; made && i < tokens->count; i++) {
        Py_INCREF(tokens->tokens[i]);
        PyTuple_SetItem(made, i, tokens->tokens[i]);
    }
    return made;
}

PyObject *kernel_read(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "read takes pieces, a text and what tells of a new piece");
    Table *table = PyCapsule_GetPointer(arguments[0], NAME);
    Py_ssize_t size;
    const char *written = table ? PyUnicode_AsUTF8AndSize(arguments[1], &size) : NULL;
    if (!written)
        return NULL;
    Text text = {written, NULL, (size_t)size};
    Spots spots = {0};
    Tokens tokens = {0};
    Said said = {0};
    PyObject *read = NULL;
    if (!written_small(&text) && !divided(table, &text, &spots) && !understood(table, &text, &spots, arguments[2])
        && !put_together(table, &spots, &tokens, &said)) {
        PyObject *made = as_tuple(&tokens);
        if (made)
            read = Py_BuildValue("NLLin", made, said.words, said.leaning, said.dated, (Py_ssize_t)table->taken);
    }
    free(text.small);
    free(spots.spots);
    free(tokens.tokens);
    return read;
}
