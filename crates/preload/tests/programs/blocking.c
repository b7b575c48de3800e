/* Every blocking collective that liballhands_preload.so intercepts, compared with what this program computes itself.
 *
 *     blocking CYCLES     communicators that are made and freed */
#include "check.h"
#include "moves.h"
#include "reductions.h"
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void everything(MPI_Comm comm) {
    shape shapes[SHAPES];
    make_shapes(shapes);
    const int counts[] = {0, 2, 10, 3000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        move_all(shapes, counts[i], comm);
        vectors_all(shapes, counts[i], comm);
    }
    free_shapes(shapes);
    nothing(comm);
    users(comm);
}

/* Parts of the world, in other orders. */
static void parts(void) {
    int me, n;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &part);
    everything(part);
    MPI_Comm_free(&part);
    MPI_Comm_split(MPI_COMM_WORLD, me == 0 ? MPI_UNDEFINED : 1, me, &part);
    if (part != MPI_COMM_NULL) {
        everything(part);
        MPI_Comm_free(&part);
    }
}

/* Memory that only its datatype knows. */
static void absolute(void) {
    int me, n, x;
    const int counts[] = {1};
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Aint at[1];
    MPI_Datatype here;
    MPI_Get_address(&x, at);
    MPI_Type_create_hindexed(1, counts, at, MPI_INT, &here);
    MPI_Type_commit(&here);
    x = me;
    MPI_Bcast(MPI_BOTTOM, 1, here, n - 1, MPI_COMM_WORLD);
    CHECK(x == n - 1, "Bcast at MPI_BOTTOM gave %d", x);
    MPI_Type_free(&here);
}

/* Between two groups, which is the MPI's business. */
static void between(void) {
    int me, n, one = 1, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (n < 2) return;
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 7, &both);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
    CHECK(sum == (me % 2 ? (n + 1) / 2 : n / 2), "Allreduce between groups gave %d", sum);
    MPI_Barrier(both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static int raised, raised_code;

static void note(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    raised++, raised_code = *code;
}

/* A call that is wrong on every rank alike reaches the handler that the program has set, once, with the right class. (What it
 * returns then differs: MPICH 5.0 returns success. Negative counts, which it does not check, are left out.) */
#define WRONG(CLASS, CALL)                                                                         \
    do {                                                                                           \
        int class_ = MPI_SUCCESS, before_ = raised;                                                \
        CALL;                                                                                      \
        CHECK(raised == before_ + 1, #CALL " called the handler %d times", raised - before_);      \
        MPI_Error_class(raised_code, &class_);                                                     \
        CHECK(class_ == CLASS, #CALL " told the handler class %d, not %d", class_, CLASS);         \
    } while (0)

static void errors(void) {
    int n, x[64] = {0}, y[64] = {0};
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &n);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, comm);
    WRONG(MPI_ERR_ROOT, MPI_Bcast(x, 1, MPI_INT, n, comm));
    WRONG(MPI_ERR_ROOT, MPI_Reduce(x, y, 1, MPI_INT, MPI_SUM, -5, comm));
    WRONG(MPI_ERR_OP, MPI_Allreduce(x, y, 1, MPI_INT, MPI_OP_NULL, comm));
    WRONG(MPI_ERR_TYPE, MPI_Bcast(x, 1, MPI_DATATYPE_NULL, 0, comm));
    WRONG(MPI_ERR_OP, MPI_Allreduce(x, y, 1, MPI_DOUBLE, MPI_BAND, comm));
    MPI_Errhandler_free(&handler);
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
}

static long resident(void) {
    long pages = 0, ignored;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &ignored, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static int descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

/* Communicators come and go: nothing of them stays. */
static void cycles(int all) {
    int me, n, open = 0;
    long memory = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int i = 0; i < all; i++) {
        if (i == all / 4) memory = resident(), open = descriptors();
        MPI_Comm comm;
        int sum = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == n * i, "cycle %d gave %d", i, sum);
        MPI_Comm_free(&comm);
    }
    if (all == 0) return;
    long grown = resident() - memory;
    CHECK(grown < 4 << 20, "%ld bytes more after %d communicators", grown, all);
    CHECK(descriptors() <= open, "%d descriptors more after %d communicators", descriptors() - open, all);
}

static void *thread(void *argument) {
    MPI_Comm comm = *(MPI_Comm *)argument;
    const kind sum = {"MPI_INT", MPI_INT, MPI_SUM, 4, 0, 4, 0, int_give, int_sum, int_put, NULL};
    MPI_Op op;
    MPI_Datatype matrices;
    MPI_Op_create(user, 0, &op);
    MPI_Type_contiguous(4, MPI_UINT64_T, &matrices);
    MPI_Type_commit(&matrices);
    const kind own = {"matrices", matrices, op, sizeof(matrix), 0, sizeof(matrix), 0, matrix_give, matrix_product, matrix_put, NULL};
    for (int i = 0; i < 20; i++) {
        reduce_all(&sum, 1 + i % 5, comm);
        reduce_all(&own, 1 + i % 3, comm);
        nothing(comm);
        MPI_Barrier(comm);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&matrices);
    return NULL;
}

/* Threads on communicators of their own. */
static void threads(int provided) {
    enum { THREADS = 3 };
    pthread_t all[THREADS];
    MPI_Comm comms[THREADS];
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "blocking: this MPI has no MPI_THREAD_MULTIPLE, so threads are not tried\n");
        return;
    }
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    /* Collectives of several threads hang on Intel MPI 2021.18 by themselves: there each communicator gets ours before. */
    if (strstr(version, "Intel"))
        for (int i = 0; i < THREADS; i++) MPI_Barrier(comms[i]);
    for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, thread, &comms[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
}

#if MPI_VERSION >= 4
static void user_c(void *left, void *right, MPI_Count *count, MPI_Datatype *type) {
    int narrow = (int)*count;
    user(left, right, &narrow, type);
}

/* The same with large counts. */
static void large(MPI_Comm comm) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Count counts[64];
    MPI_Aint places[64];
    int x[128], y[128], want[128];
    for (int i = 0; i < n; i++) counts[i] = 2, places[i] = 2 * (n - 1 - i);
    shape plain = {MPI_INT, 1, 1};
    for (int i = 0; i < n; i++) put(&plain, want, 2 * i, 2, i, 0);
    put(&plain, x, 0, 2, me, 0);
    MPI_Allgather_c(x, 2, MPI_INT, y, 2, MPI_INT, comm);
    same("Allgather_c", &plain, want, y, 2 * n);
    for (int i = 0; i < n; i++) put(&plain, want, 2 * (n - 1 - i), 2, i, 0);
    MPI_Allgatherv_c(x, 2, MPI_INT, y, counts, places, MPI_INT, comm);
    same("Allgatherv_c", &plain, want, y, 2 * n);
    for (int i = 0; i < n; i++) put(&plain, want, 2 * i, 2, i, me), put(&plain, x, 2 * i, 2, me, i);
    MPI_Alltoall_c(x, 2, MPI_INT, y, 2, MPI_INT, comm);
    same("Alltoall_c", &plain, want, y, 2 * n);
    for (int i = 0; i < n; i++) put(&plain, want, 2 * (n - 1 - i), 2, i, me), put(&plain, x, 2 * (n - 1 - i), 2, me, i);
    MPI_Alltoallv_c(x, counts, places, MPI_INT, y, counts, places, MPI_INT, comm);
    same("Alltoallv_c", &plain, want, y, 2 * n);
    if (me == 0) put(&plain, x, 0, 2, 0, 0);
    put(&plain, want, 0, 2, 0, 0);
    MPI_Bcast_c(x, 2, MPI_INT, 0, comm);
    same("Bcast_c", &plain, want, x, 2);
    MPI_Op op;
    MPI_Op_create_c(user_c, 0, &op);
    MPI_Datatype matrices;
    MPI_Type_contiguous(4, MPI_UINT64_T, &matrices);
    MPI_Type_commit(&matrices);
    const kind k = {"matrices", matrices, op, sizeof(matrix), 0, sizeof(matrix), 0, matrix_give, matrix_product, matrix_put, NULL};
    reduce_all(&k, 3, comm);
    room in = room_for(&k, 2 * n), out = room_for(&k, 2);
    give(&k, me, 0, 2 * n, in.at);
    MPI_Allreduce_c(in.at, out.at, 2, matrices, op, comm);
    compare(&k, "Allreduce_c", n, 0, 2, out, 0);
    MPI_Reduce_c(in.at, out.at, 2, matrices, op, 0, comm);
    if (me == 0) compare(&k, "Reduce_c", n, 0, 2, out, 0);
    MPI_Reduce_scatter_block_c(in.at, out.at, 2, matrices, op, comm);
    compare(&k, "Reduce_scatter_block_c", n, 2 * me, 2, out, 0);
    MPI_Reduce_scatter_c(in.at, out.at, counts, matrices, op, comm);
    compare(&k, "Reduce_scatter_c", n, 2 * me, 2, out, 0);
    free(in.memory), free(out.memory);
    MPI_Type_free(&matrices);
    MPI_Op_free(&op);
}
#else
static void large(MPI_Comm comm) { (void)comm; }
#endif

int main(int count, char **words) {
    int provided;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    predefined(MPI_COMM_WORLD);
    everything(MPI_COMM_WORLD);
    large(MPI_COMM_WORLD);
    parts();
    absolute();
    between();
    errors();
    threads(provided);
    cycles(count > 1 ? atoi(words[1]) : 100);
    return verdict("blocking");
}
