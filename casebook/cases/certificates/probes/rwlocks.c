/* Counts how often a process takes a read-write lock of the C library, which is how OpenSSL
   guards what its threads share. Preloaded (LD_PRELOAD), it stands before the library's own two
   functions, counts, and calls them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

typedef int take(pthread_rwlock_t *);

static atomic_long locks;

long casebook_locks(void) { return locks; }

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    static _Atomic(take *) real;
    if (!real)
        real = (take *)dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    locks++;
    return real(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    static _Atomic(take *) real;
    if (!real)
        real = (take *)dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
    locks++;
    return real(lock);
}
