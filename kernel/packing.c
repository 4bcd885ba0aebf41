/* Blocks of a file packed into chunks: the twin of the packer of `whyrank.ingest.chunks`, for files without markers,
   in scripts with spaces. */

#include "kernel.h"

#include <stdlib.h>

#define LETTERS_PER_TOKEN 4
#define SECTION_SHARE 4 /* a new heading starts a new chunk once the last one has this share of a full one */
#define OF_A_BLOCK 5 /* its start and end, its level and title, and whether it stays whole */

/* A block, or some lines of one that was too long. */
typedef struct {
    Py_ssize_t start, end, tokens;
    PyObject *headings; /* those above it, which somebody else holds */
    int is_heading, is_whole;
} Piece;

typedef struct {
    Py_ssize_t level;
    PyObject *title;
} Heading;

typedef struct {
    const Py_ssize_t *letters; /* of all lines before each */
    Py_ssize_t tokens, overlap; /* of a chunk, and of its end that the next one repeats */
    Piece *waiting; /* what the next chunk is made of */
    Py_ssize_t count;
    PyObject *chunks;
} Packer;

/* -- sizes ---------------------------------------------------------------------------------------------------- */

static Py_ssize_t tokens_in(Py_ssize_t letters)
{
    return (letters + LETTERS_PER_TOKEN - 1) / LETTERS_PER_TOKEN;
}

/* Estimate lines from one to before another, of which there is at least one, with the ends of lines between them. */
static Py_ssize_t tokens(const Packer *packer, Py_ssize_t start, Py_ssize_t end)
{
    return tokens_in(packer->letters[end] - packer->letters[start] + end - start - 1);
}

static int is_empty(const Packer *packer, Py_ssize_t line)
{
    return packer->letters[line] == packer->letters[line + 1];
}

/* Leave empty lines out at the beginning and at the end. */
static void narrow(const Packer *packer, Py_ssize_t *start, Py_ssize_t *end)
{
    while (*start < *end - 1 && is_empty(packer, *start))
        ++*start;
    while (*start < *end - 1 && is_empty(packer, *end - 1))
        --*end;
}

static Py_ssize_t waiting_tokens(const Packer *packer)
{
    if (!packer->count)
        return 0;
    Py_ssize_t start = packer->waiting[0].start, end = packer->waiting[packer->count - 1].end;
    narrow(packer, &start, &end);
    return tokens(packer, start, end);
}

/* -- chunks --------------------------------------------------------------------------------------------------- */

/* Return how many of its headings the first piece has in common with another; -1 with an exception set. */
static Py_ssize_t shared_with(const Piece *first, const Piece *other, Py_ssize_t shared)
{
    Py_ssize_t most = PyTuple_Size(other->headings), same = 0;
    if (first->headings == other->headings)
        return shared;
    for (; same < shared && same < most; same++) {
        int is_same = PyObject_RichCompareBool(PyTuple_GetItem(first->headings, same),
                                               PyTuple_GetItem(other->headings, same), Py_EQ);
        if (is_same <= 0)
            return is_same < 0 ? -1 : same;
    }
    return same;
}

/* Return the headings that a chunk begins under, if it is in the middle of a section; else those all stand under. */
static PyObject *above(const Packer *packer)
{
    const Piece *first = packer->waiting;
    Py_ssize_t shared = PyTuple_Size(first->headings);
    for (Py_ssize_t i = 1; first->is_heading && i < packer->count && shared >= 0; i++)
        shared = shared_with(first, packer->waiting + i, shared);
    return shared < 0 ? NULL : PyTuple_GetSlice(first->headings, 0, shared);
}

/* Close the chunk; returns -1 with an exception set if that cannot be done. */
static int flush(Packer *packer)
{
    if (!packer->count)
        return 0;
    Py_ssize_t start = packer->waiting[0].start, end = packer->waiting[packer->count - 1].end;
    Py_ssize_t first = start, last = end;
    narrow(packer, &first, &last);
    PyObject *headings = above(packer);
    PyObject *chunk = headings == NULL ? NULL : Py_BuildValue("nnnnN", start, end, first + 1, last, headings);
    int state = chunk == NULL ? -1 : PyList_Append(packer->chunks, chunk);
    Py_XDECREF(chunk);
    packer->count = 0;
    return state;
}

/* Return the last lines of a piece, as many as fit; code and tables wholly or not at all. Of none there is no line. */
static Piece tail(const Packer *packer, Piece last, Py_ssize_t room)
{
    Py_ssize_t start = last.end;
    while (start > last.start && tokens(packer, start - 1, last.end) <= room)
        start--;
    last.start = last.is_whole && start > last.start ? last.end : start;
    last.tokens = last.start < last.end ? tokens(packer, last.start, last.end) : 0;
    last.is_whole = 0;
    return last;
}

/* Close the chunk, and begin the next with a heading left dangling, or with as much of the last as fits. */
static int overflow(Packer *packer, Py_ssize_t room)
{
    Py_ssize_t all = packer->count;
    while (packer->count && packer->waiting[packer->count - 1].is_heading)
        packer->count--;
    Py_ssize_t kept = packer->count, dangling = all - kept;
    Piece last = {0};
    if (!dangling)
        last = tail(packer, packer->waiting[kept - 1], room < packer->overlap ? room : packer->overlap);
    if (flush(packer) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < dangling; i++)
        packer->waiting[i] = packer->waiting[kept + i];
    packer->count = dangling;
    if (last.start < last.end)
        packer->waiting[packer->count++] = last;
    return 0;
}

static int add(Packer *packer, Piece piece)
{
    Py_ssize_t before = waiting_tokens(packer);
    int state = 0;
    if (piece.is_heading && before >= packer->tokens / SECTION_SHARE)
        state = flush(packer);
    else if (packer->count && before + piece.tokens > packer->tokens)
        state = overflow(packer, packer->tokens - piece.tokens);
    packer->waiting[packer->count++] = piece;
    return state;
}

/* Add a block that is too long, cut at its lines; 1 if a line is too long itself. */
static int add_cut(Packer *packer, Piece block)
{
    Py_ssize_t start = block.start, length = 0;
    Py_ssize_t room = packer->tokens - packer->overlap; /* what is cut begins with the end of what stood before */
    for (Py_ssize_t line = block.start; line < block.end; line++) {
        Py_ssize_t own = tokens(packer, line, line + 1);
        if (own > packer->tokens)
            return 1;
        if (length + own > room && start < line) {
            if (add(packer, (Piece){start, line, tokens(packer, start, line), block.headings, 0, 0}) < 0)
                return -1;
            start = line, length = 0;
        }
        length += own;
    }
    return add(packer, (Piece){start, block.end, tokens(packer, start, block.end), block.headings, 0, 0});
}

/* -- files ---------------------------------------------------------------------------------------------------- */

/* Return the titles of a trail of headings, without those that have none. */
static PyObject *titles(const Heading *trail, Py_ssize_t deep)
{
    PyObject *found = PyList_New(0), *made = NULL;
    int state = found == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; state == 0 && i < deep; i++)
        if (PyUnicode_GetLength(trail[i].title))
            state = PyList_Append(found, trail[i].title);
    if (state == 0)
        made = PyList_AsTuple(found);
    Py_XDECREF(found);
    return made;
}

/* Read a block behind another; -1 with an exception set if it is none. */
static int block_read(PyObject *given, Py_ssize_t after, Py_ssize_t lines, Piece *piece, Heading *heading)
{
    Py_ssize_t numbers[3] = {0}; /* its start, its end and its level */
    if (!PyTuple_Check(given) || PyTuple_Size(given) != OF_A_BLOCK || !PyUnicode_Check(PyTuple_GetItem(given, 3))) {
        PyErr_SetString(PyExc_TypeError, "a block is its start, end, level, title, and whether it stays whole");
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        numbers[i] = PyLong_AsSsize_t(PyTuple_GetItem(given, i));
        if (numbers[i] == -1 && PyErr_Occurred())
            return -1;
    }
    int is_whole = PyObject_IsTrue(PyTuple_GetItem(given, 4));
    if (is_whole < 0)
        return -1;
    *heading = (Heading){numbers[2], PyTuple_GetItem(given, 3)};
    *piece = (Piece){numbers[0], numbers[1], 0, NULL, numbers[2] > 0, is_whole};
    if (piece->start >= after && piece->start < piece->end && piece->end <= lines)
        return 0;
    PyErr_SetString(PyExc_ValueError, "a block has no lines, or such as another has, or there are not");
    return -1;
}

/* Add all blocks; 1 if a line is too long, -1 with an exception set. */
static int all_added(Packer *packer, PyObject *blocks, Py_ssize_t lines, Heading *trail)
{
    PyObject *headings = PyTuple_New(0), *held = PyList_New(0); /* what pieces stand under, until all are packed */
    Py_ssize_t deep = 0, after = 0, count = PyTuple_Size(blocks);
    int state = headings == NULL || held == NULL || PyList_Append(held, headings) < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; state == 0 && i < count; i++) {
        Piece piece;
        Heading heading;
        state = block_read(PyTuple_GetItem(blocks, i), after, lines, &piece, &heading);
        if (state == 0 && piece.is_heading) {
            while (deep && trail[deep - 1].level >= heading.level)
                deep--;
            trail[deep++] = heading;
            Py_XDECREF(headings);
            headings = titles(trail, deep);
            state = headings == NULL ? -1 : PyList_Append(held, headings);
        }
        if (state < 0)
            break;
        after = piece.end;
        piece.headings = headings;
        piece.tokens = tokens(packer, piece.start, piece.end);
        state = piece.tokens <= packer->tokens ? add(packer, piece) : add_cut(packer, piece);
    }
    if (state == 0)
        state = flush(packer);
    Py_XDECREF(headings);
    Py_XDECREF(held);
    return state;
}

/* Write how many letters stand before each line, and before the end; -1 with an exception set. */
static int letters_counted(PyObject *lines, Py_ssize_t count, Py_ssize_t *letters)
{
    letters[0] = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t own = PyUnicode_GetLength(PyTuple_GetItem(lines, i));
        if (own < 0)
            return -1;
        letters[i + 1] = letters[i] + own;
    }
    return 0;
}

/* packed(lines, blocks, tokens, overlap): of each chunk where it starts and ends, its first and last line counted from
   1, and the headings above it; None if a line is longer than a chunk. */
PyObject *kernel_packed(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !PyTuple_Check(arguments[0]) || !PyTuple_Check(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "packed takes 4 arguments, the first two tuples of lines and of blocks");
    Packer packer = {.tokens = PyLong_AsSsize_t(arguments[2])};
    if (packer.tokens == -1 && PyErr_Occurred())
        return NULL;
    packer.overlap = PyLong_AsSsize_t(arguments[3]);
    if (packer.overlap == -1 && PyErr_Occurred())
        return NULL;
    if (packer.overlap < 0 || packer.overlap >= packer.tokens)
        return PyErr_Format(PyExc_ValueError, "chunks of %zd tokens with an overlap of %zd", packer.tokens,
                            packer.overlap);
    Py_ssize_t lines = PyTuple_Size(arguments[0]), blocks = PyTuple_Size(arguments[1]);
    Py_ssize_t *letters = malloc((size_t)(lines + 1) * sizeof(Py_ssize_t));
    Heading *trail = malloc((size_t)(blocks + 1) * sizeof(Heading));
    packer.waiting = malloc((size_t)(lines + blocks + 2) * sizeof(Piece)); /* more than there are pieces */
    packer.letters = letters;
    packer.chunks = PyList_New(0);
    int state = -1;
    if (letters == NULL || trail == NULL || packer.waiting == NULL)
        PyErr_NoMemory();
    else if (packer.chunks != NULL && letters_counted(arguments[0], lines, letters) == 0)
        state = all_added(&packer, arguments[1], lines, trail);
    free(letters);
    free(trail);
    free(packer.waiting);
    if (state)
        Py_CLEAR(packer.chunks);
    return state == 1 ? Py_NewRef(Py_None) : packer.chunks;
}
