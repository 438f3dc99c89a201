/*
 * The wall clock of a server under test, for LD_PRELOAD on 64-bit Linux.
 *
 * The process is told by a file what its wall clock shows; src/clock/file.rs writes it.
 * Without that file, the wall clock is the real one. All other clocks always are.
 *
 * Nothing that tells the time locks, allocates or calls back into the C library after the start, so that a signal
 * handler, a forked child and any thread may ask for the time.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(time_t) == 8 && sizeof(long) == 8, "only 64-bit systems are supported");

#define EXPORTED __attribute__((visibility("default")))

#define MICROS_PER_SECOND 1000000
#define NANOS_PER_SECOND 1000000000

enum { FOLLOWING = 0, STANDING_STILL = 1 };

struct setting {
    uint64_t mode;
    /* FOLLOWING: the distance from the real time. STANDING_STILL: the time since the epoch. */
    int64_t micros;
};

/* Settings take turns: one is in force while the next is written into the other place. */
struct settings {
    /* How many settings there were, in Gray code: its parity says which place is in force. */
    uint64_t turn;
    struct setting places[2];
};

/* NULL for the real clock; set once, before `main`. */
static const struct settings *settings;

__attribute__((constructor)) static void map_settings(void) {
    const char *path = getenv("REDLOCK_SANDBOX_CLOCK");
    if (path == NULL) {
        return;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    struct stat found;
    if (fstat(file, &found) == 0 && found.st_size >= (off_t)sizeof *settings) {
        void *mapped = mmap(NULL, sizeof *settings, PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) {
            __atomic_store_n(&settings, mapped, __ATOMIC_RELEASE);
        }
    }
    close(file);
}

/*
 * A place is written again only after the turn has moved on from it, so what was read from it while
 * the turn stayed the same is one whole setting.
 */
static struct setting setting_in_force(void) {
    const struct settings *all = __atomic_load_n(&settings, __ATOMIC_ACQUIRE);
    struct setting seen = {.mode = FOLLOWING, .micros = 0};
    if (all == NULL) {
        return seen;
    }
    uint64_t before, after;
    do {
        before = __atomic_load_n(&all->turn, __ATOMIC_ACQUIRE);
        const struct setting *place = &all->places[__builtin_parityll(before)];
        seen.mode = __atomic_load_n(&place->mode, __ATOMIC_RELAXED);
        seen.micros = __atomic_load_n(&place->micros, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = __atomic_load_n(&all->turn, __ATOMIC_RELAXED);
    } while (before != after);
    return seen;
}

/* Straight from the kernel: the C library's function of this name is ours. */
static int real_clock(clockid_t clock, struct timespec *now) {
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static int wall_clock(clockid_t clock, struct timespec *now) {
    struct setting setting = setting_in_force();
    if (setting.mode == STANDING_STILL) {
        now->tv_sec = 0;
        now->tv_nsec = 0;
    } else if (real_clock(clock, now) != 0) {
        return -1;
    }
    now->tv_sec += setting.micros / MICROS_PER_SECOND;
    now->tv_nsec += setting.micros % MICROS_PER_SECOND * 1000;
    if (now->tv_nsec < 0) {
        now->tv_sec -= 1;
        now->tv_nsec += NANOS_PER_SECOND;
    } else if (now->tv_nsec >= NANOS_PER_SECOND) {
        now->tv_sec += 1;
        now->tv_nsec -= NANOS_PER_SECOND;
    }
    return 0;
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        return wall_clock(clock, now);
    }
    return real_clock(clock, now);
}

EXPORTED int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    if (wall_clock(CLOCK_REALTIME, &precise) != 0) {
        return -1;
    }
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    if (zone != NULL) {
        *(struct timezone *)zone = (struct timezone){0};
    }
    return 0;
}

EXPORTED time_t time(time_t *copy) {
    struct timespec precise;
    if (wall_clock(CLOCK_REALTIME, &precise) != 0) {
        return -1;
    }
    if (copy != NULL) {
        *copy = precise.tv_sec;
    }
    return precise.tv_sec;
}

/*
 * Valkey from 9.1 on asks for the wall clock once a millisecond and goes on by the processor's counter, which cannot
 * be held, if /proc/cpuinfo says that it may be relied on. Without that file it asks each time.
 */
static FILE *open_but_cpuinfo(const char *name, const char *path, const char *mode) {
    if (__atomic_load_n(&settings, __ATOMIC_ACQUIRE) != NULL && strcmp(path, "/proc/cpuinfo") == 0) {
        errno = ENOENT;
        return NULL;
    }
    FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, name);
    if (next == NULL) {
        errno = ENOSYS;
        return NULL;
    }
    return next(path, mode);
}

EXPORTED FILE *fopen(const char *restrict path, const char *restrict mode) {
    return open_but_cpuinfo("fopen", path, mode);
}

/* A macro where it is the same function. */
#ifndef fopen64
EXPORTED FILE *fopen64(const char *restrict path, const char *restrict mode) {
    return open_but_cpuinfo("fopen64", path, mode);
}
#endif
