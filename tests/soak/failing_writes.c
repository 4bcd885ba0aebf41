/* Loaded in front of the C library: lets the writes to the files of a store fail from a certain one on, or that one alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long seen, fail_at;
static int fail_with, fail_once;

/* Let the write with this number (0: none) fail with an error, and all behind it unless it is to fail alone. */
__attribute__((visibility("default"))) void arm(long at, int with, int once)
{
    seen = 0;
    fail_at = at;
    fail_with = with;
    fail_once = once;
}

__attribute__((visibility("default"))) long writes_seen(void)
{
    return seen;
}

static int fails(int file)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0)
        return 0;
    path[size] = 0;
    if (!strstr(path, "memory.db"))
        return 0;
    seen++;
    if (!fail_at || seen < fail_at || (fail_once && seen > fail_at))
        return 0;
    errno = fail_with;
    return 1;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, #name))
#define WRITES(name, offset)                                                                                           \
    ssize_t name(int file, const void *bytes, size_t size, offset at)                                                  \
    {                                                                                                                  \
        return fails(file) ? -1 : REAL(name, ssize_t(*)(int, const void *, size_t, offset))(file, bytes, size, at);     \
    }
#define CUTS(name, offset)                                                                                             \
    int name(int file, offset size)                                                                                    \
    {                                                                                                                  \
        return fails(file) ? -1 : REAL(name, int (*)(int, offset))(file, size);                                         \
    }
#define SYNCS(name)                                                                                                    \
    int name(int file)                                                                                                 \
    {                                                                                                                  \
        return fails(file) ? -1 : REAL(name, int (*)(int))(file);                                                       \
    }

WRITES(pwrite, off_t)
WRITES(pwrite64, off64_t)
CUTS(ftruncate, off_t)
CUTS(ftruncate64, off64_t)
SYNCS(fsync)
SYNCS(fdatasync)

ssize_t write(int file, const void *bytes, size_t size)
{
    return fails(file) ? -1 : REAL(write, ssize_t(*)(int, const void *, size_t))(file, bytes, size);
}
