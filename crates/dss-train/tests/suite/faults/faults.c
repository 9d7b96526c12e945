/* Loaded before the C library into a process under test: the N-th operation that changes something below a folder
   fails, is cut in half, or is never made because the process is killed. Without N it counts the operations.

   FAULT_DIR    the folder
   FAULT_AT     N, from 1; 0: none
   FAULT_KIND   fail | cut | kill
   FAULT_COUNT  a file that gets the number of operations at the end */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int inside(const char *path) {
  const char *dir = getenv("FAULT_DIR");
  return dir && path && strncmp(path, dir, strlen(dir)) == 0;
}

static int inside_fd(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return inside(path);
}

static int inside_at(int fd, const char *path) {
  return path && path[0] == '/' ? inside(path) : fd != AT_FDCWD && inside_fd(fd);
}

enum { GO, FAIL, CUT };

/* What is to become of the next operation. */
static int fate(void) {
  pthread_mutex_lock(&lock);
  long at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
  int hit = ++count == at;
  pthread_mutex_unlock(&lock);
  if (!hit) return GO;
  const char *kind = getenv("FAULT_KIND");
  if (strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
  return strcmp(kind, "cut") == 0 ? CUT : FAIL;
}

/* Half an operation of this kind is none: the process ends before it. */
static int refused(void) {
  switch (fate()) {
  case GO: return 0;
  case CUT: kill(getpid(), SIGKILL);
  }
  errno = ENOSPC;
  return 1;
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("FAULT_COUNT");
  if (!path) return;
  FILE *file = fopen(path, "w");
  if (file) fprintf(file, "%ld", count), fclose(file);
}

#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & O_CREAT))
#define OPEN(name)                                                              \
  int name(const char *path, int flags, ...) {                                  \
    va_list more;                                                               \
    va_start(more, flags);                                                      \
    mode_t mode = va_arg(more, mode_t);                                         \
    va_end(more);                                                               \
    if (WRITES(flags) && inside(path) && refused()) return -1;                  \
    return REAL(name)(path, flags, mode);                                       \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *bytes, size_t n) {
  if (fd > 2 && inside_fd(fd)) {
    switch (fate()) {
    case FAIL: errno = ENOSPC; return -1;
    case CUT:
      REAL(write)(fd, bytes, n / 2);
      kill(getpid(), SIGKILL);
    }
  }
  return REAL(write)(fd, bytes, n);
}

#define ON_FD(name, parameters, arguments)                                      \
  int name parameters {                                                         \
    if (inside_fd(fd) && refused()) return -1;                                  \
    return REAL(name) arguments;                                                \
  }
ON_FD(fsync, (int fd), (fd))
ON_FD(fdatasync, (int fd), (fd))
ON_FD(ftruncate, (int fd, off_t size), (fd, size))
ON_FD(ftruncate64, (int fd, off64_t size), (fd, size))

#define ON_PATH(name, parameters, arguments)                                    \
  int name parameters {                                                         \
    if (inside(path) && refused()) return -1;                                   \
    return REAL(name) arguments;                                                \
  }
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode))
ON_PATH(rmdir, (const char *path), (path))
ON_PATH(unlink, (const char *path), (path))
ON_PATH(rename, (const char *path, const char *to), (path, to))

int unlinkat(int fd, const char *path, int flags) {
  if (inside_at(fd, path) && refused()) return -1;
  return REAL(unlinkat)(fd, path, flags);
}
