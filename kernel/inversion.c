/* From the tokens of texts to postings: every different term is hashed once, and its occurrences are counted into place. */

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define MOST_OFTEN 255 /* what a byte holds */
#define BLOCK_BYTES 128
#define KEY_BYTES 8
#define AHEAD 8 /* tokens that are fetched while one is looked at */

/* BLAKE2b (RFC 7693) with a digest of eight bytes and no key. */
static const uint64_t INITIAL[8] = {
    0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
    0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL,
};
static const uint8_t ORDER[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static uint64_t turned(uint64_t word, int by)
{
    return word >> by | word << (64 - by);
}

static void mixed(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = turned(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = turned(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = turned(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = turned(v[b] ^ v[c], 63);
}

static void take_block(uint64_t *state, const uint8_t *block, uint64_t taken, int is_last)
{
    uint64_t v[16], m[16];
    memcpy(m, block, sizeof m); /* the kernel is used on machines that have the lowest byte first */
    memcpy(v, state, 8 * sizeof *v);
    memcpy(v + 8, INITIAL, sizeof INITIAL);
    v[12] ^= taken;
    if (is_last)
        v[14] = ~v[14];
#if defined(__GNUC__)
#pragma GCC unroll 12 /* so that the order of each round is known when it is compiled */
#endif
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = ORDER[round];
        mixed(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        mixed(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mixed(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mixed(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mixed(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        mixed(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mixed(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mixed(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        state[i] ^= v[i] ^ v[i + 8];
}

/* Return the key of a term: its hash, as a number. */
static int64_t key_of(const char *letters, Py_ssize_t size)
{
    uint64_t state[8], taken = 0;
    uint8_t block[BLOCK_BYTES];
    memcpy(state, INITIAL, sizeof state);
    state[0] ^= 0x01010000 ^ KEY_BYTES;
    for (; size > BLOCK_BYTES; letters += BLOCK_BYTES, size -= BLOCK_BYTES) {
        memcpy(block, letters, BLOCK_BYTES);
        taken += BLOCK_BYTES;
        take_block(state, block, taken, 0);
    }
    memset(block, 0, sizeof block);
    memcpy(block, letters, (size_t)size);
    take_block(state, block, taken + (uint64_t)size, 1);
    return (int64_t)state[0];
}

/* A term that is held by one of the texts. */
typedef struct {
    PyObject *token;
    const char *letters;
    Py_ssize_t size;
    Py_hash_t hash;
    int64_t key;
    uint32_t rank; /* by key */
} Term;

/* All occurrences, text by text, and the different terms among them. */
typedef struct {
    PyObject **texts; /* their tokens, held */
    Py_ssize_t count;
    uint32_t *ends; /* where the occurrences of each end */
    uint32_t *terms_at; /* which term each occurrence is of */
    Py_ssize_t occurrences;
    Term *terms;
    uint32_t different;
    uint32_t *slots; /* terms by hash, counted from 1 */
    size_t mask;
} Texts;

static void let_go(Texts *texts)
{
    for (Py_ssize_t i = 0; texts->texts && i < texts->count; i++)
        Py_XDECREF(texts->texts[i]);
    free(texts->texts);
    free(texts->ends);
    free(texts->terms_at);
    free(texts->terms);
    free(texts->slots);
}

/* Find a term, or add it; -1 with an exception set for what is no text of Unicode. */
static int64_t placed(Texts *texts, PyObject *token)
{
    Py_ssize_t size;
    Py_hash_t hash = PyObject_Hash(token);
    if (hash == -1)
        return -1;
    size_t slot = (size_t)hash & texts->mask;
    for (; texts->slots[slot]; slot = (slot + 1) & texts->mask)
        if (texts->terms[texts->slots[slot] - 1].token == token)
            return texts->slots[slot] - 1;
    const char *letters = PyUnicode_AsUTF8AndSize(token, &size);
    if (!letters)
        return -1;
    for (slot = (size_t)hash & texts->mask; texts->slots[slot]; slot = (slot + 1) & texts->mask) {
        const Term *known = &texts->terms[texts->slots[slot] - 1];
        if (known->hash == hash && known->size == size && !memcmp(known->letters, letters, (size_t)size))
            return texts->slots[slot] - 1;
    }
    texts->terms[texts->different] = (Term){token, letters, size, hash, 0, 0};
    texts->slots[slot] = ++texts->different;
    return texts->different - 1;
}

/* Hold the tokens of all texts, and make room for their occurrences. */
static int taken_in(Texts *texts, PyObject *given)
{
    texts->count = PySequence_Size(given);
    if (texts->count < 0)
        return -1;
    texts->texts = calloc((size_t)texts->count + 1, sizeof *texts->texts);
    texts->ends = calloc((size_t)texts->count + 1, sizeof *texts->ends);
    if (!texts->texts || !texts->ends)
        return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < texts->count; i++) {
        PyObject *tokens = PySequence_GetItem(given, i);
        texts->texts[i] = tokens ? PySequence_Tuple(tokens) : NULL;
        Py_XDECREF(tokens);
        if (!texts->texts[i])
            return -1;
        texts->occurrences += PyTuple_Size(texts->texts[i]);
        if (texts->occurrences > INT32_MAX)
            return PyErr_SetString(PyExc_ValueError, "too many tokens at once"), -1;
        texts->ends[i] = (uint32_t)texts->occurrences;
    }
    size_t slots = 64;
    while (slots < 2 * (size_t)texts->occurrences)
        slots *= 2;
    texts->mask = slots - 1;
    texts->slots = calloc(slots, sizeof *texts->slots);
    texts->terms_at = malloc(((size_t)texts->occurrences + 1) * sizeof *texts->terms_at);
    texts->terms = malloc(((size_t)texts->occurrences + 1) * sizeof *texts->terms);
    if (!texts->slots || !texts->terms_at || !texts->terms)
        return PyErr_NoMemory(), -1;
    uint32_t at = 0;
    for (Py_ssize_t i = 0; i < texts->count; i++) {
        for (Py_ssize_t j = 0; at < texts->ends[i]; j++, at++) {
            if (at + AHEAD < texts->ends[i])
                FETCH(PyTuple_GetItem(texts->texts[i], j + AHEAD));
            int64_t term = placed(texts, PyTuple_GetItem(texts->texts[i], j));
            if (term < 0)
                return -1;
            texts->terms_at[at] = (uint32_t)term;
        }
    }
    return 0;
}

/* An occurrence on its way into its list. */
typedef struct {
    uint32_t text;
    uint32_t follower;
} Held;

/* A term, and the number it is ordered by. */
typedef struct {
    uint64_t number;
    Term *term;
} Ordered;

/* Order by numbers, byte by byte, the lowest first; equal ones stay in their order. As many again are spare. */
static void put_in_order(Ordered *items, Ordered *spare, uint32_t count)
{
    for (int shift = 0; shift < 64; shift += 8) {
        uint32_t begins[257] = {0};
        for (uint32_t i = 0; i < count; i++)
            begins[(items[i].number >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++)
            begins[byte + 1] += begins[byte];
        for (uint32_t i = 0; i < count; i++)
            spare[begins[items[i].number >> shift & 255]++] = items[i];
        Ordered *other = items;
        items = spare;
        spare = other;
    }
}

/* Rank the terms by their keys, and count where the list of each rank begins; those with one key have one rank. */
static int64_t ranked(Texts *texts, Ordered *sorted, Ordered *spare, uint32_t *begins)
{
    for (uint32_t i = 0; i < texts->different; i++) {
        Term *term = &texts->terms[i];
        term->key = key_of(term->letters, term->size);
        sorted[i] = (Ordered){(uint64_t)term->key ^ (uint64_t)1 << 63, term}; /* negative keys come first */
    }
    put_in_order(sorted, spare, texts->different);
    int64_t ranks = 0;
    for (uint32_t i = 0; i < texts->different; i++) {
        ranks += !i || sorted[i].number != sorted[ranks - 1].number;
        sorted[i].term->rank = (uint32_t)ranks - 1;
        sorted[ranks - 1] = sorted[i]; /* by rank from here on */
    }
    for (Py_ssize_t i = 0; i < texts->occurrences; i++)
        begins[texts->terms[texts->terms_at[i]].rank + 1]++;
    for (int64_t i = 0; i < ranks; i++)
        begins[i + 1] += begins[i];
    return ranks;
}

/* Put every occurrence into its list, in the order of the texts; `begins` then has where each list ends. */
static void distributed(const Texts *texts, uint32_t *begins, Held *held)
{
    uint32_t at = 0;
    for (Py_ssize_t i = 0; i < texts->count; i++)
        for (; at < texts->ends[i]; at++) {
            const Term *term = &texts->terms[texts->terms_at[at]];
            int64_t next = at + 1 < texts->ends[i] ? texts->terms[texts->terms_at[at + 1]].key : 0;
            held[begins[term->rank]++] = (Held){(uint32_t)i, (uint32_t)next};
        }
}

/* Words are ordered as their bytes are; those that begin alike by what comes then. */
static int by_letters(const void *one, const void *other)
{
    const Term *a = ((const Ordered *)one)->term, *b = ((const Ordered *)other)->term;
    int order = memcmp(a->letters, b->letters, (size_t)(a->size < b->size ? a->size : b->size));
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* Order the terms by their letters, and return how many bytes they take with a space between them. */
static Py_ssize_t spelled_out(const Texts *texts, Ordered *words, Ordered *spare)
{
    Py_ssize_t size = 0;
    for (uint32_t i = 0; i < texts->different; i++) {
        Term *term = &texts->terms[i];
        words[i] = (Ordered){0, term};
        for (Py_ssize_t j = 0; j < 8; j++)
            words[i].number = words[i].number << 8 | (j < term->size ? (uint8_t)term->letters[j] : 0);
        size += term->size + !!i;
    }
    put_in_order(words, spare, texts->different);
    for (uint32_t begin = 0, end; begin < texts->different; begin = end) {
        for (end = begin + 1; end < texts->different && words[end].number == words[begin].number; end++)
            ;
        if (end - begin > 1)
            qsort(words + begin, end - begin, sizeof *words, by_letters);
    }
    return size;
}

static void written_out(const Ordered *words, uint32_t count, char *at)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            *at++ = ' ';
        memcpy(at, words[i].term->letters, (size_t)words[i].term->size);
        at += words[i].term->size;
    }
}

/* Write postings out, where there is room for them: how often each text holds each term, and what follows it there. */
static void listed(const Ordered *sorted, int64_t ranks, const uint32_t *ends, const Held *held, const int64_t *given,
                   int64_t *postings, int64_t *heard, int64_t *keys, int64_t *numbers, uint8_t *often, uint32_t *next)
{
    uint32_t at = 0;
    *postings = *heard = 0;
    for (int64_t rank = 0; rank < ranks; rank++) {
        while (at < ends[rank]) {
            uint32_t text = held[at].text, times = 0;
            for (; at < ends[rank] && held[at].text == text; at++) {
                if (times == MOST_OFTEN)
                    continue;
                times++;
                if (keys)
                    next[*heard] = held[at].follower;
                ++*heard;
            }
            if (keys) {
                keys[*postings] = sorted[rank].term->key;
                numbers[*postings] = given[text];
                often[*postings] = (uint8_t)times;
            }
            ++*postings;
        }
    }
}

/* What is made of the texts, before it is written: terms by rank and by letters, occurrences by rank. */
typedef struct {
    Ordered *sorted, *words, *spare;
    uint32_t *begins; /* of the list of each rank, and then where it ends */
    Held *held;
    int64_t ranks, postings, heard;
    Py_ssize_t size; /* of all words */
} Lists;

static int has_room(Lists *lists, const Texts *texts)
{
    size_t terms = (size_t)texts->different + 1;
    lists->sorted = malloc(terms * sizeof *lists->sorted);
    lists->words = malloc(terms * sizeof *lists->words);
    lists->spare = malloc(terms * sizeof *lists->spare);
    lists->begins = calloc(terms + 1, sizeof *lists->begins);
    lists->held = malloc(((size_t)texts->occurrences + 1) * sizeof *lists->held);
    return lists->sorted && lists->words && lists->spare && lists->begins && lists->held;
}

static void room_freed(Lists *lists)
{
    free(lists->sorted);
    free(lists->words);
    free(lists->spare);
    free(lists->begins);
    free(lists->held);
}

static void made_of(Lists *lists, Texts *texts)
{
    lists->ranks = ranked(texts, lists->sorted, lists->spare, lists->begins);
    distributed(texts, lists->begins, lists->held);
    lists->size = spelled_out(texts, lists->words, lists->spare);
    listed(lists->sorted, lists->ranks, lists->begins, lists->held, NULL, &lists->postings, &lists->heard, NULL, NULL,
           NULL, NULL);
}

static PyObject *written(const Texts *texts, Lists *lists, const int64_t *given)
{
    PyObject *parts[5], *all = NULL;
    const Py_ssize_t sizes[5] = {8 * lists->postings, 8 * lists->postings, lists->postings, 4 * lists->heard,
                                 lists->size};
    char *rooms[5];
    int made = 0;
    while (made < 5 && (parts[made] = PyBytes_FromStringAndSize(NULL, sizes[made]))) {
        rooms[made] = PyBytes_AsString(parts[made]);
        made++;
    }
    if (made == 5) {
        Py_BEGIN_ALLOW_THREADS /* nobody knows of the parts yet */
        listed(lists->sorted, lists->ranks, lists->begins, lists->held, given, &lists->postings, &lists->heard,
               (int64_t *)rooms[0], (int64_t *)rooms[1], (uint8_t *)rooms[2], (uint32_t *)rooms[3]);
        written_out(lists->words, texts->different, rooms[4]);
        Py_END_ALLOW_THREADS
        all = PyTuple_Pack(5, parts[0], parts[1], parts[2], parts[3], parts[4]);
    }
    while (made)
        Py_DECREF(parts[--made]);
    return all;
}

PyObject *kernel_inverted(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "inverted takes texts and their numbers");
    Numbers numbers = {0};
    Texts texts = {0};
    Lists lists = {0};
    PyObject *made = NULL;
    if (numbers_held(arguments[1], 8, 0, "numbers", &numbers))
        return NULL;
    if (taken_in(&texts, arguments[0])) {
        ;
    } else if (numbers.count != texts.count) {
        PyErr_SetString(PyExc_ValueError, "there must be as many numbers as texts");
    } else if (!has_room(&lists, &texts)) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS
        made_of(&lists, &texts);
        Py_END_ALLOW_THREADS
        made = written(&texts, &lists, numbers.view.buf);
    }
    room_freed(&lists);
    let_go(&texts);
    numbers_let_go(&numbers, 1);
    return made;
}
