/* Two threads of each process with a communicator each, at the same time, in whatever order their collectives meet; then threads that
 * complete requests on both, of which each process waits for another one first. Needs MPI_THREAD_MULTIPLE.
 *
 *     threads [rounds] */
#include <pthread.h>

#include "check.h"

static int rounds = 300, me, n;

typedef struct {
    MPI_Comm comm;
    int number;
} task;

static void sums(MPI_Comm comm, int seed, int long_ones) {
    static const int lengths[] = {1, 5, 700, 20000};
    int length = lengths[seed % (long_ones ? 4 : 3)];
    int *mine = filled(length * sizeof *mine), *all = filled(length * sizeof *all);
    for (int i = 0; i < length; i++) mine[i] = me + seed + i, all[i] = -1;
    MPI_Allreduce(mine, all, length, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < length; i += length > 10 ? 97 : 1)
        CHECK(all[i] == n * (n - 1) / 2 + n * (seed + i), "sum %d of call %d is %d", i, seed, all[i]);
    free(mine);
    free(all);
}

static void *collectives(void *of) {
    task *own = of;
    for (int round = 0; round < rounds; round++) {
        int word = me == round % n ? round + own->number : -1;
        sums(own->comm, round + own->number, 1);
        MPI_Bcast(&word, 1, MPI_INT, round % n, own->comm);
        CHECK(word == round + own->number, "the root gave %d in round %d", word, round);
        if (round % 16 == 0) MPI_Barrier(own->comm);
    }
    return NULL;
}

/* A process waits for a collective on one communicator before it begins that on the other in a second thread: others do it the other
 * way round. */
static void *opposite(void *of) {
    task *own = of;
    for (int round = 0; round < rounds; round++) sums(own->comm, round, 0);
    return NULL;
}

static void together(void *(*what)(void *), task *tasks, int swap) {
    pthread_t other;
    pthread_create(&other, NULL, what, &tasks[!swap]);
    what(&tasks[swap]);
    pthread_join(other, NULL);
}

int main(int count, char **words) {
    int level;
    task tasks[2];
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
    if (count > 1) rounds = atoi(words[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (level < MPI_THREAD_MULTIPLE) {
        if (me == 0) fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
        return verdict("threads");
    }
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &tasks[i].comm);
        tasks[i].number = 1000 * i;
        /* First collectives of a communicator, which have more to do, one after the other. */
        MPI_Barrier(tasks[i].comm);
    }
    together(collectives, tasks, me % 2);
    together(opposite, tasks, me % 2);
    for (int i = 0; i < 2; i++) MPI_Comm_free(&tasks[i].comm);
    return verdict("threads");
}
