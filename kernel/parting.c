/* What scanners find in a piece with letters of ASCII, found letter by letter: src/whyrank/analysis/words.py says what
   it is. */

#include "parting.h"
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RUNS (LONGEST_ADDRESS / 2 + 1)
#define DIGITS_OF_A_YEAR 4
#define APOSTROPHE "\xe2\x80\x99" /* which composed texts write as ASCII does */

enum { SMALL = 1, CAPITAL = 2, DIGIT = 4, UNDERSCORE = 8, JOINER = 16 };
enum { LETTER = SMALL | CAPITAL, LETTER_OR_DIGIT = LETTER | DIGIT, OF_WORDS = LETTER_OR_DIGIT | UNDERSCORE };

/* A piece, what kind of letter each of its letters is, and the same in small letters. */
typedef struct {
    const char *written;
    size_t size;
    int has_symbols; /* beyond ASCII, which part words as others do */
    uint8_t kinds[LONGEST_ADDRESS + 2]; /* nothing stands behind the last */
    char small[LONGEST_ADDRESS + 1];
} Letters;

typedef struct {
    size_t begin, end;
} Run;

static uint8_t kind_of(char letter)
{
    if (letter >= 'a' && letter <= 'z')
        return SMALL;
    if (letter >= 'A' && letter <= 'Z')
        return CAPITAL;
    if (letter >= '0' && letter <= '9')
        return DIGIT;
    if (letter == '_')
        return UNDERSCORE;
    return letter && strchr("-./:@'\\", letter) ? JOINER : 0;
}

/* Look at all letters of a piece; tell whether they are of ASCII, or signs beside such, and no more than are kept. */
static int looked_at(const char *written, size_t size, Letters *letters)
{
    int is_data = size > LONGEST_WORD, bytes = 0; /* a sum, or a key: it does not come again */
    if (size > LONGEST_ADDRESS)
        return 0;
    letters->written = written;
    letters->size = size;
    letters->has_symbols = 0;
    for (size_t i = 0; i < size; i++) {
        if (written[i] & 0x80 && bytes == 0) {
            bytes = symbol_at(written + i, size - i);
            if (bytes == 0 || size > LONGEST_WORD || !memcmp(written + i, APOSTROPHE, sizeof APOSTROPHE - 1))
                return 0;
            letters->has_symbols = 1;
        }
        bytes -= bytes > 0;
        uint8_t kind = letters->kinds[i] = kind_of(written[i]);
        letters->small[i] = (char)(written[i] | (kind == CAPITAL ? 0x20 : 0));
        is_data = is_data && kind & LETTER_OR_DIGIT;
    }
    letters->kinds[size] = letters->kinds[size + 1] = 0;
    return !is_data;
}

static const Piece *watched_for(const Table *table, const char *letters, size_t size)
{
    const Table *watched = table->watched;
    uint32_t number = found(watched, letters, size, hash_of(letters, size, watched->seed));
    return number ? &watched->pieces[number - 1] : NULL;
}

int what_is(const Table *table, const char *letters, size_t size)
{
    const Piece *word = watched_for(table, letters, size);
    return word ? word->words : 0;
}

/* Return how a word leans if it has a voice. */
static int leaning_of(const Table *table, const char *letters, size_t size)
{
    const Piece *word = watched_for(table, letters, size);
    return word ? word->leaning : 0;
}

static size_t end_of(const Letters *letters, size_t begin, uint8_t kinds)
{
    while (letters->kinds[begin] & kinds)
        begin++;
    return begin;
}

/* -- what a piece says besides its words -------------------------------------------------------------------------- */

/* Tell whether some digits may be a year: of these centuries, or beside other numbers as a date has them. */
static int may_be_year(const Letters *letters, size_t begin, size_t end)
{
    const char *written = letters->written;
    if (end - begin != DIGITS_OF_A_YEAR)
        return 0;
    if (!memcmp(written + begin, "19", 2) || !memcmp(written + begin, "20", 2))
        return 1;
    if (letters->kinds[end] & JOINER && strchr("-/.", written[end]) && letters->kinds[end + 1] & DIGIT)
        return 1;
    return begin > 1 && letters->kinds[begin - 1] & JOINER && strchr("-/.", written[begin - 1])
           && letters->kinds[begin - 2] & DIGIT;
}

/* Tell whether a piece holds what begins like a month that is a word as well, with a capital. */
static int is_like_month(const Letters *letters)
{
    static const char *const MONTHS[] = {"apr", "aug", "dec", "feb", "jan", "mai", "mar", "may", "mei", "nov", "oct"};
    for (size_t at = 0; at + 3 <= letters->size; at++)
        for (size_t i = 0; letters->kinds[at] & CAPITAL && i < sizeof MONTHS / sizeof *MONTHS; i++)
            if (!memcmp(letters->small + at, MONTHS[i], 3))
                return 1;
    return 0;
}

/* Tell whether a piece may hold a year, or -1 if a month is named, or may be. */
static int dated(const Table *table, const Letters *letters)
{
    int date = letters->has_symbols && is_like_month(letters) ? -1 : 0;
    if (date)
        return date;
    for (size_t begin = 0, end; begin < letters->size; begin = end > begin ? end : begin + 1) {
        end = end_of(letters, begin, DIGIT);
        if (may_be_year(letters, begin, end))
            date = HOLDS_YEAR;
        if (end > begin)
            continue;
        end = end_of(letters, begin, LETTER);
        if (end > begin && what_is(table, letters->small + begin, end - begin) & MONTH)
            return -1;
    }
    return date;
}

static int is_spoken(const Letters *letters, size_t at)
{
    return letters->kinds[at] & LETTER || (at < letters->size && letters->written[at] == '\'');
}

static int is_apart_before(const Letters *letters, size_t at)
{
    return at == 0 || !(letters->kinds[at - 1] & (OF_WORDS | JOINER)) || letters->written[at - 1] == '\'';
}

static int is_apart_behind(const Letters *letters, size_t at)
{
    if (at == letters->size)
        return 1;
    if (letters->written[at] == '.' || letters->written[at] == '-')
        return !(letters->kinds[at + 1] & OF_WORDS);
    return !(letters->kinds[at] & (OF_WORDS | JOINER)) || letters->written[at] == '\'';
}

/* Return how the sides of an apostrophe lean, each that is said once. */
static int sides_leaning(const Table *table, const char *word, size_t size)
{
    int leaning = 0;
    for (size_t begin = 0, end; begin < size; begin = end + 1) {
        const char *side = word + begin, *mark = memchr(side, '\'', size - begin);
        end = mark ? (size_t)(mark - word) : size;
        int is_new = 1;
        for (size_t other = 0, stop; is_new && other < begin; other = stop + 1) {
            stop = other + (size_t)((const char *)memchr(word + other, '\'', begin - other) - (word + other));
            is_new = stop - other != end - begin || memcmp(word + other, side, end - begin);
        }
        if (is_new)
            leaning += leaning_of(table, side, end - begin);
    }
    return leaning;
}

/* Count the words that stand alone in a piece, and tell how they lean together. */
static int standing_alone(const Table *table, const Letters *letters, int32_t *leaning)
{
    int words = 0;
    *leaning = 0;
    for (size_t begin = 0, end; begin < letters->size; begin++) {
        if (!is_spoken(letters, begin) || !is_apart_before(letters, begin))
            continue;
        for (end = begin; is_spoken(letters, end); end++)
            ;
        while (end > begin && !is_apart_behind(letters, end))
            end--; /* where an apostrophe is, a word may end before it */
        if (end == begin)
            continue;
        *leaning += leaning_of(table, letters->small + begin, end - begin);
        if (memchr(letters->written + begin, '\'', end - begin))
            *leaning += sides_leaning(table, letters->small + begin, end - begin);
        words++;
        begin = end - 1;
    }
    return words;
}

/* -- its words ---------------------------------------------------------------------------------------------------- */

/* Find the runs of letters of a piece that are words or identifiers. */
static int runs_found(const Letters *letters, Run *runs)
{
    int count = 0;
    for (size_t begin = 0, end; begin < letters->size; begin = end) {
        if (!(letters->kinds[begin] & OF_WORDS)) {
            end = begin + 1;
            continue;
        }
        end = end_of(letters, begin, OF_WORDS);
        for (size_t next; (next = end_of(letters, end, JOINER)) > end && letters->kinds[next] & OF_WORDS;)
            end = end_of(letters, next, OF_WORDS);
        if (end + 1 < letters->size && letters->written[end] == '+' && letters->written[end + 1] == '+')
            end += 2;
        else if (end < letters->size && letters->written[end] == '#')
            end++;
        runs[count++] = (Run){begin, end};
    }
    return count;
}

/* Tell whether a piece holds the plural of an acronym, `GPUs`. */
static int has_plural(const Letters *letters)
{
    for (size_t begin = 0, end; begin < letters->size; begin = end) {
        end = end_of(letters, begin, CAPITAL);
        if (end > begin + 1 && end < letters->size && letters->written[end] == 's' && !(letters->kinds[end + 1] & SMALL))
            return 1;
        end += end == begin;
    }
    return 0;
}

static int is_camel(const Letters *letters, Run run)
{
    uint8_t first = letters->kinds[run.begin], others = 0;
    for (size_t i = run.begin + 1; i < run.end; i++)
        others |= letters->kinds[i];
    return others & CAPITAL && (first | others) & SMALL;
}

/* Return where a hump ends that begins here, in a run of letters and digits. */
static size_t hump_end(const Letters *letters, size_t begin)
{
    if (letters->kinds[begin] & DIGIT)
        return end_of(letters, begin, DIGIT);
    size_t end = end_of(letters, begin, CAPITAL);
    if (!(letters->kinds[end] & SMALL))
        return end;
    return end > begin + 1 ? end - 1 : end_of(letters, end, SMALL);
}

static int words_widened(Parting *parting)
{
    if (parting->count < parting->room)
        return 0;
    size_t room = 2 * parting->room + 256;
    Word *wider = realloc(parting->words, room * sizeof *wider);
    if (!wider)
        return PyErr_NoMemory(), -1;
    parting->words = wider;
    parting->room = room;
    return 0;
}

/* Return the token of a word that somebody has said alone before, if it says no more. */
static PyObject *token_of(const Table *table, const char *word, size_t size)
{
    uint32_t number = found(table, word, size, hash_of(word, size, table->seed));
    return number && table->pieces[number - 1].is_bare ? table->pieces[number - 1].tokens : NULL;
}

/* Add a word in small letters, unless it is a function word. Returns its place, or -1 for none, or -2. */
static Py_ssize_t word_added(const Table *table, Parting *parting, const char *word, size_t size, Py_ssize_t whole)
{
    size = size < LONGEST_WORD ? size : LONGEST_WORD;
    if (what_is(table, word, size) & STOP_WORD)
        return -1;
    if (words_widened(parting))
        return -2;
    int is_stemmed = is_plain(word, size);
    PyObject *token = is_stemmed ? token_of(table, word, size) : NULL;
    if (!token) {
        PyObject *list = is_stemmed ? parting->asked : parting->made;
        PyObject *made = PyUnicode_DecodeUTF8(word, (Py_ssize_t)size, NULL);
        int failed = made ? PyList_Append(list, made) : -1;
        Py_XDECREF(made);
        if (failed)
            return -2;
        token = is_stemmed ? NULL : made;
    }
    Py_ssize_t asked = token ? -1 : PyList_Size(parting->asked) - 1;
    parting->words[parting->count] = (Word){token, asked, whole};
    return (Py_ssize_t)parting->count++;
}

/* Write an identifier as one word, without what joins letters to letters or digits. Returns its size. */
static size_t joined(const Letters *letters, Run run, char *word)
{
    size_t end = run.end - run.begin < LONGEST_WORD ? run.end : run.begin + LONGEST_WORD, size = 0;
    for (size_t i = run.begin; i < end; i++) {
        size_t next = i;
        while (next < end && (letters->written[next] == '-' || letters->kinds[next] & UNDERSCORE))
            next++;
        if (next > i && next < end && i > run.begin) {
            uint8_t before = letters->kinds[i - 1], behind = letters->kinds[next];
            if ((before & LETTER && behind & LETTER_OR_DIGIT) || (before & DIGIT && behind & LETTER)) {
                i = next - 1;
                continue;
            }
        }
        for (next = next > i ? next : i + 1; i < next; i++)
            word[size++] = letters->small[i];
        i = next - 1;
    }
    return size;
}

/* Find the parts of a run: what stands between signs, and humps where it has any. Returns how many. */
static size_t parts_found(const Letters *letters, Run run, Run *parts)
{
    size_t count = 0;
    for (size_t begin = run.begin, end; begin < run.end; begin = end) {
        end = end_of(letters, begin, LETTER_OR_DIGIT);
        if (end == begin) {
            end++;
            continue;
        }
        Run part = {begin, end};
        if (!is_camel(letters, part)) {
            parts[count++] = part;
            continue;
        }
        for (size_t hump = begin; hump < end; hump = parts[count - 1].end)
            parts[count++] = (Run){hump, hump_end(letters, hump)};
    }
    return count;
}

/* Add the words of a run: itself, and its parts if it has any. */
static int run_added(const Table *table, Parting *parting, const Letters *letters, Run run)
{
    Run parts[LONGEST_ADDRESS];
    char word[LONGEST_WORD];
    size_t size = run.end - run.begin < LONGEST_WORD ? run.end - run.begin : LONGEST_WORD;
    if (what_is(table, letters->small + run.begin, size) & STOP_WORD)
        return 0;
    size_t count = parts_found(letters, run, parts);
    if (!count)
        return 0;
    if (count == 1 && parts[0].begin == run.begin && parts[0].end - run.begin >= size)
        return word_added(table, parting, letters->small + run.begin, size, -1) == -2 ? -1 : 0;
    Py_ssize_t whole = word_added(table, parting, word, joined(letters, run, word), -1);
    for (size_t i = 0; whole != -2 && i < count; i++)
        if (word_added(table, parting, letters->small + parts[i].begin, parts[i].end - parts[i].begin, whole) == -2)
            return -1;
    return whole == -2 ? -1 : 0;
}

/* Tell whether English joins this to a word with an apostrophe. */
static int is_contraction(const char *letters, size_t size)
{
    return (size == 1 && strchr("stdm", *letters)) || (size == 2 && (!memcmp(letters, "re", 2) || !memcmp(letters, "ve", 2)
                                                                     || !memcmp(letters, "ll", 2)));
}

/* Add the words of a run, which may have apostrophes: without what is joined to them, and others each for itself. */
static int spoken_added(const Table *table, Parting *parting, const Letters *letters, Run run)
{
    size_t size = run.end - run.begin < LONGEST_WORD ? run.end - run.begin : LONGEST_WORD;
    if (!memchr(letters->written + run.begin, '\'', run.end - run.begin))
        return run_added(table, parting, letters, run);
    if (what_is(table, letters->small + run.begin, size) & STOP_WORD)
        return 0;
    for (size_t begin = run.begin, end; begin < run.end; begin = end + 1) {
        const char *mark = memchr(letters->written + begin, '\'', run.end - begin);
        end = mark ? (size_t)(mark - letters->written) : run.end;
        if (end == begin || (begin > run.begin && is_contraction(letters->small + begin, end - begin)))
            continue;
        if (run_added(table, parting, letters, (Run){begin, end}))
            return -1;
    }
    return 0;
}

static int piece_added(Parting *parting, Parted piece)
{
    if (parting->piece_count == parting->piece_room) {
        size_t room = 2 * parting->piece_room + 64;
        Parted *wider = realloc(parting->pieces, room * sizeof *wider);
        if (!wider)
            return PyErr_NoMemory(), -1;
        parting->pieces = wider;
        parting->piece_room = room;
    }
    parting->pieces[parting->piece_count++] = piece;
    return 0;
}

int parted(const Table *table, const char *written, size_t size, Parting *parting)
{
    Letters letters;
    Run runs[MOST_RUNS];
    if (!looked_at(written, size, &letters))
        return 0;
    int date = dated(table, &letters);
    if (date < 0 || has_plural(&letters))
        return 0;
    int32_t leaning;
    int words = standing_alone(table, &letters, &leaning), count = runs_found(&letters, runs);
    size_t first = parting->count;
    for (int i = 0; i < count; i++)
        if (spoken_added(table, parting, &letters, runs[i]))
            return -1;
    Parted piece = {written, size, first, parting->count - first, leaning, (uint16_t)words, (uint8_t)date};
    return piece_added(parting, piece) ? -1 : 1;
}

/* -- their tokens ------------------------------------------------------------------------------------------------- */

int parting_begun(Parting *parting)
{
    *parting = (Parting){.asked = PyList_New(0), .made = PyList_New(0)};
    return parting->asked && parting->made ? 0 : -1;
}

void parting_ended(Parting *parting)
{
    Py_XDECREF(parting->asked);
    Py_XDECREF(parting->made);
    free(parting->words);
    free(parting->pieces);
}

/* Return what a word comes to, borrowed; NULL with an exception if the stemmer did not say. */
static PyObject *token_said(const Word *word, PyObject *told, Py_ssize_t stems)
{
    PyObject *token = word->token ? word->token : PyList_GetItem(told, stems + word->asked);
    if (token && !PyUnicode_Check(token))
        return PyErr_SetString(PyExc_TypeError, "a stem is a text"), NULL;
    return token;
}

PyObject *parted_tokens(const Parting *parting, const Parted *piece, PyObject *told, Py_ssize_t stems)
{
    PyObject *tokens = PyList_New(0), *tuple = NULL;
    int failed = !tokens;
    for (size_t i = piece->first; !failed && i < piece->first + piece->count; i++) {
        const Word *word = &parting->words[i];
        PyObject *token = token_said(word, told, stems);
        PyObject *whole = token && word->whole >= 0 ? token_said(&parting->words[word->whole], told, stems) : NULL;
        if (token && (!whole || PyUnicode_Compare(token, whole)))
            failed = PyList_Append(tokens, token);
        failed = failed || PyErr_Occurred() != NULL;
    }
    if (!failed)
        tuple = PyList_AsTuple(tokens);
    Py_XDECREF(tokens);
    return tuple;
}
