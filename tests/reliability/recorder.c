/* Records every write, sync, truncation, removal and renaming of files below RECORDED_FOLDER into RECORDED_LOG.
 *
 * Loaded with LD_PRELOAD. A record is: kind (1 byte), length of the name (2), offset (8), length of the data (4), name,
 * data. With RECORDED_WITHOUT_SYNCS set, syncs are acknowledged and neither done nor recorded, as by a disk that lies.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static int record = -1, lies;

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("RECORDED_FOLDER"), *into = getenv("RECORDED_LOG");
    if (where == NULL || into == NULL || realpath(where, folder) == NULL)
        return;
    lies = getenv("RECORDED_WITHOUT_SYNCS") != NULL;
    record = (int)syscall(SYS_openat, AT_FDCWD, into, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* The name below the folder, "." for the folder itself, or NULL for what is not recorded. */
static const char *below(const char *path) {
    size_t length = strlen(folder);
    if (record < 0 || strncmp(path, folder, length) != 0)
        return NULL;
    if (path[length] == '\0')
        return ".";
    return path[length] == '/' ? path + length + 1 : NULL;
}

static const char *name_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    path[length] = '\0';
    return below(path);
}

static void keep(char kind, const char *name, int64_t offset, const void *data, uint32_t size) {
    unsigned char head[15];
    uint16_t letters = (uint16_t)strlen(name);
    head[0] = (unsigned char)kind;
    memcpy(head + 1, &letters, 2);
    memcpy(head + 3, &offset, 8);
    memcpy(head + 11, &size, 4);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)name, letters}, {(void *)data, size}};
    pthread_mutex_lock(&turn);
    if (syscall(SYS_writev, record, parts, 3) != (long)(sizeof head + letters + size))
        abort();
    pthread_mutex_unlock(&turn);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void kept_write(int file, const void *data, size_t size, off_t offset) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (name != NULL)
        keep('w', name, offset, data, (uint32_t)size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) {
    kept_write(file, data, size, offset);
    return REAL(pwrite64)(file, data, size, offset);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
    kept_write(file, data, size, offset);
    return REAL(pwrite)(file, data, size, offset);
}

ssize_t write(int file, const void *data, size_t size) {
    if (record >= 0 && file > 2)
        kept_write(file, data, size, lseek(file, 0, SEEK_CUR));
    return REAL(write)(file, data, size);
}

static int synced(int file, int (*sync)(int)) {
    char path[PATH_MAX];
    const char *name = record < 0 ? NULL : name_of(file, path);
    if (name != NULL && lies)
        return 0;
    int result = sync(file);
    if (name != NULL && result == 0)
        keep('s', name, 0, NULL, 0);
    return result;
}

int fsync(int file) { return synced(file, REAL(fsync)); }

int fdatasync(int file) { return synced(file, REAL(fdatasync)); }

static void kept_truncation(int file, off_t length) {
    char path[PATH_MAX];
    const char *name = record < 0 ? NULL : name_of(file, path);
    if (name != NULL)
        keep('t', name, length, NULL, 0);
}

int ftruncate64(int file, off64_t length) {
    kept_truncation(file, length);
    return REAL(ftruncate64)(file, length);
}

int ftruncate(int file, off_t length) {
    kept_truncation(file, length);
    return REAL(ftruncate)(file, length);
}

int unlink(const char *path) {
    const char *name = below(path);
    int result = REAL(unlink)(path);
    if (name != NULL && result == 0)
        keep('u', name, 0, NULL, 0);
    return result;
}

int rename(const char *from, const char *to) {
    const char *name = below(from), *other = below(to);
    int result = REAL(rename)(from, to);
    if (name != NULL && other != NULL && result == 0)
        keep('r', name, 0, other, (uint32_t)strlen(other));
    return result;
}
