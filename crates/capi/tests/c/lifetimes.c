/* Plans that outlive what they were made with, many of them, on several communicators at once. Run by `cargo xtask capi`. */
#include <allhands.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

#define check(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "rank %d, line %d: not %s; %s\n", rank, __LINE__, #condition, allhands_last_error()); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                      \
        }                                                                                                      \
    } while (0)

/* Columns of a matrix, of a datatype and on a communicator that are freed before the plan runs. */
static void freed(void) {
    int from[3][4], to[64][3], i, j, run;
    MPI_Datatype column;
    MPI_Comm comm;
    allhands_plan *plan;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    check(allhands_allgather_init(&from[0][1], 1, column, to, 3, MPI_INT, comm, NULL, &plan) == 0);
    MPI_Type_free(&column);
    MPI_Comm_free(&comm);
    for (run = 0; run < 4; run++) {
        for (i = 0; i < 12; i++) from[i / 4][i % 4] = 1000 * run + 10 * rank + i;
        check((run % 2 ? allhands_run(plan) : allhands_start(plan)) == 0 && allhands_wait(plan) == 0);
        for (i = 0; i < size; i++)
            for (j = 0; j < 3; j++) check(to[i][j] == 1000 * run + 10 * i + 4 * j + 1);
    }
    check(allhands_free(&plan) == 0);
}

/* Runs on two communicators, completed in another order on every other rank, blocking ones in between. */
static void crossed(void) {
    int x = rank + 1, y[3], run, sum = size * (size + 1) / 2;
    MPI_Comm other;
    allhands_plan *a, *b, *c;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    check(allhands_allreduce_init(&x, &y[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, NULL, &a) == 0);
    check(allhands_allreduce_init(&x, &y[1], 1, MPI_INT, MPI_MAX, other, NULL, &b) == 0);
    check(allhands_allreduce_init(&x, &y[2], 1, MPI_INT, MPI_SUM, other, NULL, &c) == 0);
    for (run = 0; run < 20; run++) {
        y[0] = y[1] = y[2] = -1;
        check(allhands_start(a) == 0);
        if ((rank + run) % 2) {
            check(allhands_wait(a) == 0 && y[0] == sum);
            check(allhands_run(c) == 0 && y[2] == sum);
            check(allhands_start(b) == 0 && allhands_wait(b) == 0 && y[1] == size);
        } else {
            check(allhands_run(c) == 0 && y[2] == sum);
            check(allhands_start(b) == 0 && allhands_wait(b) == 0 && y[1] == size);
            check(allhands_wait(a) == 0 && y[0] == sum);
        }
    }
    check(allhands_free(&a) == 0 && allhands_free(&b) == 0 && allhands_free(&c) == 0);
    MPI_Comm_free(&other);
}

/* Plans made and freed, and many at once. */
static void many(void) {
    enum { MOST = 50 };
    static allhands_plan *plans[MOST];
    static double x[MOST], y[MOST];
    int round, i;
    for (round = 0; round < 3; round++) {
        for (i = 0; i < MOST; i++) {
            x[i] = rank + i;
            check(allhands_allreduce_init(&x[i], &y[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, NULL, &plans[i]) == 0);
        }
        for (i = 0; i < MOST; i++) check(allhands_start(plans[i]) == 0);
        for (i = MOST - 1; i >= 0; i--) check(allhands_wait(plans[i]) == 0 && y[i] == size - 1 + i);
        for (i = 0; i < MOST; i++) check(allhands_free(&plans[i]) == 0);
    }
}

/* Nothing at all, and nobody else. */
static void little(void) {
    int x = 5, y = 0;
    allhands_plan *plan;
    check(allhands_bcast_init(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD, NULL, &plan) == 0);
    check(allhands_run(plan) == 0 && allhands_start(plan) == 0 && allhands_free(&plan) == 0);
    check(allhands_alltoall_init(&x, 1, MPI_INT, &y, 1, MPI_INT, MPI_COMM_SELF, NULL, &plan) == 0);
    check(allhands_run(plan) == 0 && y == 5 && allhands_free(&plan) == 0);
    check(allhands_reduce_init(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF, NULL, &plan) == 0);
    check(allhands_run(plan) == 0 && x == 5 && allhands_free(&plan) == 0);
}

/* The MPI's own collectives, and point-to-point messages that depend on progress, beside plans. */
static void beside(void) {
    int x = 1, y = 0, sum = 0, i;
    static int sent[100000], received[100000];
    allhands_plan *plan;
    MPI_Request request;
    check(allhands_allreduce_init(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, "mpi", &plan) == 0);
    check(allhands_start(plan) == 0);
    check(allhands_wait(plan) == 0 && y == size && allhands_free(&plan) == 0);
    check(allhands_barrier_init(MPI_COMM_WORLD, NULL, &plan) == 0);
    for (i = 0; i < 100000; i++) sent[i] = rank;
    /* Rank 0 waits in a plan while the last rank sends to it more than MPI keeps. */
    if (rank == 0) MPI_Irecv(received, 100000, MPI_INT, size - 1, 3, MPI_COMM_WORLD, &request);
    check(allhands_start(plan) == 0);
    if (rank == size - 1 && size > 1) MPI_Send(sent, 100000, MPI_INT, 0, 3, MPI_COMM_WORLD);
    if (rank == 0 && size == 1) MPI_Send(sent, 100000, MPI_INT, 0, 3, MPI_COMM_WORLD);
    check(allhands_wait(plan) == 0);
    if (rank == 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(received[99999] == size - 1);
    }
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == size);
}

/* Threads, each with a communicator and a plan of its own. The plans are made before: on Intel MPI 2021.18, broadcasts of several
 * threads hang, on whatever communicators. */
struct own {
    MPI_Comm comm;
    allhands_plan *plan;
    int x, y;
};

static void *threaded(void *argument) {
    struct own *own = argument;
    int run;
    for (run = 0; run < 40; run++) {
        own->x = rank + run;
        if (run % 3 == 0) check(allhands_run(own->plan) == 0);
        if (run % 3 != 0) check(allhands_start(own->plan) == 0 && allhands_wait(own->plan) == 0);
        check(own->y == size * (size - 1) / 2 + size * run);
    }
    return NULL;
}

static void threads(int provided) {
    struct own own[2];
    pthread_t other;
    int i;
    if (provided < MPI_THREAD_MULTIPLE) return;
    for (i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i].comm);
        check(allhands_allreduce_init(&own[i].x, &own[i].y, 1, MPI_INT, MPI_SUM, own[i].comm, NULL, &own[i].plan) == 0);
    }
    check(pthread_create(&other, NULL, threaded, &own[1]) == 0);
    threaded(&own[0]);
    pthread_join(other, NULL);
    for (i = 0; i < 2; i++) {
        check(allhands_free(&own[i].plan) == 0);
        MPI_Comm_free(&own[i].comm);
    }
}

/* What Fortran's handles are in C. */
static void from_fortran(void) {
#ifndef MPI_ABI /* which leaves Fortran's integers out */
    MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR}, handles[6];
    MPI_Fint integers[3];
    int i;
    check(allhands_comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    check(allhands_type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
    check(allhands_op_f2c(MPI_Op_c2f(MPI_MAX)) == MPI_MAX);
    for (i = 0; i < 3; i++) integers[i] = MPI_Type_c2f(types[i]);
    allhands_types_f2c(integers, 3, handles);
    for (i = 0; i < 3; i++) check(handles[i] == types[i]);
#endif
}

int main(int argc, char **argv) {
    static int x, y;
    int provided;
    allhands_plan *left;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    freed();
    crossed();
    many();
    little();
    beside();
    threads(provided);
    check(allhands_in_place() == MPI_IN_PLACE);
    from_fortran();
    /* Left to MPI_Finalize. */
    check(allhands_allreduce_init(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, NULL, &left) == 0);
    check(allhands_run(left) == 0);
    MPI_Finalize();
    if (rank == 0) printf("plans live as they should\n");
    return 0;
}
