/* Read-write locks whose readers do not share memory. Preloaded (LD_PRELOAD), they stand in the
   place of the C library's, with the same promise: many readers, or one writer.

   To take the C library's lock for reading is to change a number that all readers share, so a
   core takes that piece of memory away from the others each time. Here each thread has numbers of
   its own. A reader changes only its own; a writer, who is rare, looks at those of all threads
   that ever took a lock. (To look at places for 256 threads, where there are ten or one, made
   each load of OpenSSL 3.0 a quarter longer.) */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define THREADS 256
#define PLACES 4096

/* How often each thread holds a lock for reading. Locks far apart may share a place, and then a
   writer of one waits for the readers of the other as well. */
static _Atomic uint8_t reading[THREADS][PLACES] __attribute__((aligned(64)));
static atomic_int threads;
static __thread int number __attribute__((tls_model("initial-exec"))); /* from 1; 0: none yet */

/* What is kept in a pthread_rwlock_t: the number of the thread that writes, or 0. */
typedef struct { atomic_int writer; } apart;

static int me(void)
{
    if (!number) {
        number = atomic_fetch_add(&threads, 1) + 1;
        if (number > THREADS)
            abort(); /* two threads with the same numbers would not exclude a writer */
    }
    return number;
}

static _Atomic uint8_t *mine(pthread_rwlock_t *lock)
{
    return &reading[me() - 1][((uintptr_t)lock * 0x9E3779B97F4A7C15u) >> 52];
}

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *unused)
{
    atomic_init(&((apart *)lock)->writer, 0);
    return 0;
}

int pthread_rwlock_destroy(pthread_rwlock_t *unused)
{
    return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    atomic_int *writer = &((apart *)lock)->writer;
    _Atomic uint8_t *held = mine(lock);
    uint8_t before = atomic_load_explicit(held, memory_order_relaxed);
    for (;;) {
        atomic_store_explicit(held, before + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        /* Who holds it already goes on: a writer waits until nobody does. */
        if (before || !atomic_load(writer))
            return 0;
        atomic_store_explicit(held, before, memory_order_release);
        while (atomic_load(writer))
            sched_yield();
    }
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    atomic_int *writer = &((apart *)lock)->writer;
    int nobody = 0, self = me();
    while (!atomic_compare_exchange_weak(writer, &nobody, self)) {
        nobody = 0;
        sched_yield();
    }
    atomic_thread_fence(memory_order_seq_cst);
    long place = mine(lock) - reading[self - 1];
    /* A thread that gets its number only now will see that somebody writes, and wait. */
    for (int other = 0, all = atomic_load(&threads); other < all; other++)
        while (other != self - 1 && atomic_load(&reading[other][place]))
            sched_yield();
    return 0;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    atomic_int *writer = &((apart *)lock)->writer;
    if (atomic_load_explicit(writer, memory_order_relaxed) == me()) {
        atomic_store(writer, 0);
        return 0;
    }
    _Atomic uint8_t *held = mine(lock);
    uint8_t before = atomic_load_explicit(held, memory_order_relaxed);
    atomic_store_explicit(held, before - 1, memory_order_release);
    return 0;
}
