/* Pages of several segments merged into those of one: lists are copied from page to page as they lie there.

   A page is laid out as pages.py says; one that is not what it says is found out before anything of it is copied. */

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 8 /* the checksum, and the number of terms */
#define TERM_BYTES 16
#define POSTING_BYTES 3
#define FOLLOWER_BYTES 4
#define MOST_OFFSET UINT16_MAX

/* A page, and its term that is next; numbers count from the first of its segment. */
typedef struct {
    const unsigned char *bytes;
    uint32_t terms, postings, heard, at;
    int64_t key, last;
} Page;

/* A segment that is being read, page by page. */
typedef struct {
    Page *pages;
    size_t count, at;
    int64_t shift; /* from the first number of the segment that is made to its own */
} Source;

/* Bytes of one kind, growing. */
typedef struct {
    unsigned char *bytes;
    size_t used, room;
} Bytes;

/* The parts of the page that is being made. */
typedef struct {
    Bytes keys, ends, follower_ends, offsets, frequencies, followers;
} Parts;

/* Pages that are made, one behind the other: where each ends, and its lowest key. */
typedef struct {
    Bytes pages, bounds, keys;
} Made;

/* What is asked for: keys from `low` to below another, if there is one, without the numbers that are gone. */
typedef struct {
    int64_t low, below;
    int has_end;
    const uint8_t *gone;
    size_t flags; /* how many numbers are told of in `gone`: none, or all */
    uint64_t page_bytes;
} Wanted;

enum { FINE, NO_MEMORY, BROKEN };

static uint32_t u4(const unsigned char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* Make room for so many bytes more; return where they go, or nothing. */
static unsigned char *room_for(Bytes *bytes, size_t size)
{
    if (bytes->used + size > bytes->room) {
        size_t room = 2 * (bytes->room + size);
        unsigned char *wider = realloc(bytes->bytes, room);
        if (!wider)
            return NULL;
        bytes->bytes = wider;
        bytes->room = room;
    }
    return bytes->bytes + bytes->used;
}

static int more(Bytes *bytes, const void *from, size_t size)
{
    if (!size)
        return FINE;
    unsigned char *at = room_for(bytes, size);
    if (!at)
        return NO_MEMORY;
    memcpy(at, from, size);
    bytes->used += size;
    return FINE;
}

/* Tell whether keys ascend, and lists and followers end no earlier than those before them. */
static int is_ordered(Page *page)
{
    const unsigned char *ends = page->bytes + HEAD_BYTES + 8 * (size_t)page->terms;
    const unsigned char *follower_ends = ends + 4 * (size_t)page->terms;
    for (size_t i = 0; i < page->terms; i++) {
        int64_t key;
        memcpy(&key, page->bytes + HEAD_BYTES + 8 * i, sizeof key);
        if (i && (key <= page->last || u4(ends + 4 * i) < u4(ends + 4 * i - 4)
                  || u4(follower_ends + 4 * i) < u4(follower_ends + 4 * i - 4)))
            return 0;
        page->last = key;
        page->key = i ? page->key : key;
    }
    return 1;
}

static int opened(Page *page, const unsigned char *bytes, size_t size)
{
    uint64_t terms = size >= HEAD_BYTES ? u4(bytes + HEAD_BYTES - 4) : 0, after = HEAD_BYTES + TERM_BYTES * terms;
    if (!terms || after > size)
        return BROKEN;
    *page = (Page){.bytes = bytes, .terms = (uint32_t)terms};
    page->postings = u4(bytes + HEAD_BYTES + 12 * terms - 4);
    page->heard = u4(bytes + after - 4);
    if (size != after + (uint64_t)POSTING_BYTES * page->postings + (uint64_t)FOLLOWER_BYTES * page->heard)
        return BROKEN;
    return is_ordered(page) ? FINE : BROKEN;
}

/* Go to the next key that is asked for; return the page it stands on, or nothing at the end. */
static Page *next(Source *source, const Wanted *wanted)
{
    for (; source->at < source->count; source->at++) {
        Page *page = &source->pages[source->at];
        for (; page->at < page->terms; page->at++) {
            memcpy(&page->key, page->bytes + HEAD_BYTES + 8 * (size_t)page->at, sizeof page->key);
            if (wanted->has_end && page->key >= wanted->below)
                return NULL;
            if (page->key >= wanted->low)
                return page;
        }
    }
    return NULL;
}

/* Where the list of a page's next term stands, and how long it is. */
typedef struct {
    const unsigned char *offsets, *frequencies, *followers;
    uint32_t postings, heard;
} List;

/* Find the list of a page's next term; it has a follower for every occurrence, or none. */
static int list_of(const Page *page, List *list)
{
    const unsigned char *ends = page->bytes + HEAD_BYTES + 8 * (size_t)page->terms;
    const unsigned char *follower_ends = ends + 4 * (size_t)page->terms, *offsets = follower_ends + 4 * (size_t)page->terms;
    size_t at = page->at;
    uint32_t begin = at ? u4(ends + 4 * at - 4) : 0, low = at ? u4(follower_ends + 4 * at - 4) : 0;
    list->offsets = offsets + 2 * (size_t)begin;
    list->frequencies = offsets + 2 * (size_t)page->postings + begin;
    list->followers = offsets + POSTING_BYTES * (size_t)page->postings + FOLLOWER_BYTES * (size_t)low;
    list->postings = u4(ends + 4 * at) - begin;
    list->heard = u4(follower_ends + 4 * at) - low;
    uint64_t often = 0;
    for (uint32_t i = 0; i < list->postings; i++)
        often += list->frequencies[i];
    return list->heard && list->heard != often ? BROKEN : FINE;
}

/* Add one list to the page, without what is gone. */
static int added(Parts *parts, const List *list, int64_t shift, const Wanted *wanted)
{
    unsigned char *offsets = room_for(&parts->offsets, 2 * (size_t)list->postings + 1);
    unsigned char *frequencies = room_for(&parts->frequencies, (size_t)list->postings + 1);
    unsigned char *followers = room_for(&parts->followers, FOLLOWER_BYTES * (size_t)list->heard + 1);
    const unsigned char *from = list->followers;
    size_t kept = 0;
    if (!offsets || !frequencies || !followers)
        return NO_MEMORY;
    for (uint32_t i = 0; i < list->postings; i++) {
        size_t bytes = list->heard ? FOLLOWER_BYTES * (size_t)list->frequencies[i] : 0;
        uint16_t offset;
        memcpy(&offset, list->offsets + 2 * (size_t)i, sizeof offset);
        int64_t number = shift + offset;
        if (number > MOST_OFFSET || (wanted->flags && (size_t)number >= wanted->flags))
            return BROKEN;
        if (!wanted->flags || !wanted->gone[number]) {
            offset = (uint16_t)number;
            memcpy(offsets + 2 * kept, &offset, sizeof offset);
            frequencies[kept++] = list->frequencies[i];
            memcpy(followers, from, bytes);
            followers += bytes;
        }
        from += bytes;
    }
    parts->offsets.used += 2 * kept;
    parts->frequencies.used += kept;
    parts->followers.used = (size_t)(followers - parts->followers.bytes);
    return FINE;
}

/* Write out the page that was begun, if one was. */
static int closed(Parts *parts, Made *made)
{
    uint32_t terms = (uint32_t)(parts->keys.used / 8);
    if (!terms)
        return FINE;
    Bytes *all[] = {&parts->keys, &parts->ends, &parts->follower_ends, &parts->offsets, &parts->frequencies,
                    &parts->followers};
    int failed = more(&made->keys, parts->keys.bytes, 8) | more(&made->pages, &terms, sizeof terms);
    for (int i = 0; i < 6; i++) {
        failed |= more(&made->pages, all[i]->bytes, all[i]->used);
        all[i]->used = 0;
    }
    uint64_t end = made->pages.used;
    return failed | more(&made->bounds, &end, sizeof end);
}

/* Add the lists that the sources have of a term, and go on behind it. */
static int gathered(Source *sources, size_t count, int64_t key, const Wanted *wanted, Parts *parts)
{
    for (size_t i = 0; i < count; i++) {
        Page *page = sources[i].at < sources[i].count ? &sources[i].pages[sources[i].at] : NULL;
        List list;
        int failed;
        if (!page || page->at >= page->terms || page->key != key)
            continue;
        if ((failed = list_of(page, &list)) || (failed = added(parts, &list, sources[i].shift, wanted)))
            return failed;
        page->at++;
    }
    return FINE;
}

/* Find the lowest key that is next somewhere; return whether there is one. */
static int least(Source *sources, size_t count, const Wanted *wanted, int64_t *key)
{
    int is_there = 0;
    for (size_t i = 0; i < count; i++) {
        const Page *page = next(&sources[i], wanted);
        if (page && (!is_there || page->key < *key)) {
            *key = page->key;
            is_there = 1;
        }
    }
    return is_there;
}

/* Merge what the sources hold of the keys that are asked for. A page ends where the bytes of all terms before one pass
   the next multiple of what a page aims at. */
static int merged(Source *sources, size_t count, const Wanted *wanted, Parts *parts, Made *made)
{
    uint64_t written = 0, place = 0; /* bytes of all terms so far, and which page the last one stands on */
    int64_t key = 0;
    int failed = FINE;
    while (least(sources, count, wanted, &key)) {
        if (written / wanted->page_bytes != place && (failed = closed(parts, made)))
            return failed;
        place = written / wanted->page_bytes;
        size_t postings = parts->frequencies.used, heard = parts->followers.used;
        if ((failed = gathered(sources, count, key, wanted, parts)))
            return failed;
        if (parts->frequencies.used == postings)
            continue; /* whoever held the term is gone */
        uint32_t end = (uint32_t)parts->frequencies.used, follower_end = (uint32_t)(parts->followers.used / 4);
        if ((failed = more(&parts->keys, &key, sizeof key) | more(&parts->ends, &end, sizeof end)
                      | more(&parts->follower_ends, &follower_end, sizeof follower_end)))
            return failed;
        written += TERM_BYTES + POSTING_BYTES * (end - postings) + parts->followers.used - heard;
    }
    return closed(parts, made);
}

/* Open the pages of a segment, which come with its first number; their keys go on from page to page. */
static int held(PyObject *told, int64_t first, Source *source)
{
    PyObject *blobs;
    long long begins;
    char *bytes;
    Py_ssize_t size;
    if (!PyTuple_Check(told))
        return PyErr_SetString(PyExc_TypeError, "a segment is a number and its pages"), -1;
    if (!PyArg_ParseTuple(told, "LO!", &begins, &PyTuple_Type, &blobs))
        return -1;
    if (begins < first || (uint64_t)begins - (uint64_t)first > MOST_OFFSET)
        return PyErr_SetString(PyExc_ValueError, "a segment is too far from the first number"), -1;
    source->count = (size_t)PyTuple_Size(blobs);
    source->shift = begins - first;
    source->pages = calloc(source->count + 1, sizeof *source->pages);
    if (!source->pages)
        return PyErr_NoMemory(), -1;
    for (size_t i = 0; i < source->count; i++) {
        Page *page = &source->pages[i];
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(blobs, (Py_ssize_t)i), &bytes, &size) < 0)
            return -1;
        if (opened(page, (const unsigned char *)bytes, (size_t)size) || (i && page->key <= page[-1].last))
            return PyErr_SetString(PyExc_ValueError, "a page is not what it says"), -1;
    }
    return 0;
}

static PyObject *listed(const Made *made)
{
    size_t count = made->bounds.used / 8;
    PyObject *pages = PyList_New((Py_ssize_t)count);
    uint64_t begin = 0, end;
    for (size_t i = 0; pages && i < count; i++, begin = end) {
        int64_t key;
        memcpy(&key, made->keys.bytes + 8 * i, sizeof key);
        memcpy(&end, made->bounds.bytes + 8 * i, sizeof end);
        PyObject *page = Py_BuildValue("Ly#", (long long)key, (char *)made->pages.bytes + begin, (Py_ssize_t)(end - begin));
        if (!page) {
            Py_DECREF(pages);
            return NULL;
        }
        PyList_SetItem(pages, (Py_ssize_t)i, page);
    }
    return pages;
}

static PyObject *pages_of(Source *sources, size_t count, const Wanted *wanted)
{
    Parts parts = {0};
    Made made = {0};
    PyObject *pages = NULL;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = merged(sources, count, wanted, &parts, &made);
    Py_END_ALLOW_THREADS
    if (failed & NO_MEMORY)
        PyErr_NoMemory();
    else if (failed)
        PyErr_SetString(PyExc_ValueError, "a page is not what it says");
    else
        pages = listed(&made);
    Bytes *all[] = {&parts.keys, &parts.ends, &parts.follower_ends, &parts.offsets, &parts.frequencies,
                    &parts.followers, &made.pages, &made.bounds, &made.keys};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->bytes);
    return pages;
}

PyObject *kernel_merged_pages(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 6 || !PyTuple_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "merged_pages takes segments, a first number, two keys, who is gone, a size");
    Py_ssize_t segments = PyTuple_Size(arguments[0]);
    long long first = PyLong_AsLongLong(arguments[1]);
    Wanted wanted = {.low = PyErr_Occurred() ? 0 : PyLong_AsLongLong(arguments[2])};
    wanted.has_end = arguments[3] != Py_None;
    wanted.below = PyErr_Occurred() || !wanted.has_end ? 0 : PyLong_AsLongLong(arguments[3]);
    wanted.page_bytes = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(arguments[5]);
    Numbers gone;
    if (PyErr_Occurred() || numbers_held(arguments[4], 1, 0, "gone", &gone))
        return NULL;
    wanted.gone = gone.view.buf;
    wanted.flags = (size_t)gone.count;
    Source *sources = calloc((size_t)segments + 1, sizeof *sources);
    PyObject *pages = NULL;
    Py_ssize_t i = 0;
    if (!sources)
        PyErr_NoMemory();
    else if (!wanted.page_bytes)
        PyErr_SetString(PyExc_ValueError, "a page aims at some bytes");
    else
        for (; i < segments && !held(PyTuple_GetItem(arguments[0], i), first, &sources[i]); i++)
            ;
    if (!PyErr_Occurred())
        pages = pages_of(sources, (size_t)segments, &wanted);
    for (i = 0; sources && i < segments; i++)
        free(sources[i].pages);
    free(sources);
    numbers_let_go(&gone, 1);
    return pages;
}
