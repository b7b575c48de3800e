/* Every collective on memory that the processor may not touch: of all ranks and of some, of both buffers and of one, blocking,
 * non-blocking and persistent. The driver (see driver.c) is loaded after MPI_Init, as a program's first use of a GPU does it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define KINDS 3
#else
#define KINDS 2
#endif

static void *(*allocate)(size_t);
static void (*release)(void *);
static int (*copy)(void *, const void *, size_t);
static int (*copies)(void), (*faults)(void);
static int rank, size, wrong;

#define CHECK(right) ((right) ? 0 : (wrong++ < 5 ? printf("rank %d, line %d: wrong\n", rank, __LINE__) : 0))

/* A buffer of ints, on the device or on the host. */
struct buffer { int *at; size_t bytes; int device; };

static struct buffer make(size_t count, int device) {
    struct buffer made = {.bytes = count * sizeof(int), .device = device};
    made.at = device ? allocate(made.bytes) : malloc(made.bytes + 1);
    return made;
}
static void put(struct buffer to, const int *from) {
    if (to.device) copy(to.at, from, to.bytes);
    else memcpy(to.at, from, to.bytes);
}
static int *get(struct buffer from) {
    int *to = malloc(from.bytes + 1);
    if (from.device) copy(to, from.at, from.bytes);
    else memcpy(to, from.at, from.bytes);
    return to;
}
static void end(struct buffer buffer) {
    if (buffer.device) release(buffer.at);
    else free(buffer.at);
}

#if KINDS == 3
#define PREPARED(function, ...) \
    if (kind == 2) { \
        MPI_Request request; \
        function##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request); \
        for (int run = 0; run < 2; run++) MPI_Start(&request), MPI_Wait(&request, MPI_STATUS_IGNORE); \
        MPI_Request_free(&request); \
    }
#else
#define PREPARED(function, ...)
#endif
#define CALL(function, begun, ...) \
    do { \
        if (kind == 0) function(__VA_ARGS__, comm); \
        if (kind == 1) { \
            MPI_Request request; \
            begun(__VA_ARGS__, comm, &request); \
            MPI_Wait(&request, MPI_STATUS_IGNORE); \
        } \
        PREPARED(function, __VA_ARGS__) \
    } while (0)

static MPI_Comm comm;

static int value(int of, int i) { return of * 7919 + i * 31 + 5; }

/* n ints from each rank; the buffers of this rank are on the device or not. */
static void moves(int kind, int n, int from, int to) {
    struct buffer mine = make(n, from), all = make((size_t)n * size, to), each = make((size_t)n * size, from);
    int *host = malloc(sizeof(int) * n * size + 1), *got;
    for (int i = 0; i < n; i++) host[i] = value(rank, i);
    put(mine, host);
    CALL(MPI_Allgather, MPI_Iallgather, mine.at, n, MPI_INT, all.at, n, MPI_INT);
    got = get(all);
    for (int i = 0; i < n * size; i++) CHECK(got[i] == value(i / n, i % n));
    free(got);

    for (int i = 0; i < n * size; i++) host[i] = i / n == rank ? value(rank, i % n) : -1;
    put(all, host);
    CALL(MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.at, n, MPI_INT);
    got = get(all);
    for (int i = 0; i < n * size; i++) CHECK(got[i] == value(i / n, i % n));
    free(got);

    for (int i = 0; i < n * size; i++) host[i] = value(rank, i);
    put(each, host);
    CALL(MPI_Alltoall, MPI_Ialltoall, each.at, n, MPI_INT, all.at, n, MPI_INT);
    got = get(all);
    for (int i = 0; i < n * size; i++) CHECK(got[i] == value(i / n, rank * n + i % n));
    free(got);

    /* Blocks in the reverse order; what comes from the last rank is one less. */
    int counts[size], places[size], given[size], from_places[size];
    for (int q = 0; q < size; q++) {
        counts[q] = q == size - 1 ? n - 1 : n, places[q] = (size - 1 - q) * n;
        given[q] = rank == size - 1 ? n - 1 : n, from_places[q] = q * n;
    }
    CALL(MPI_Allgatherv, MPI_Iallgatherv, mine.at, counts[rank], MPI_INT, all.at, counts, places, MPI_INT);
    got = get(all);
    for (int q = 0; q < size; q++)
        for (int i = 0; i < counts[q]; i++) CHECK(got[places[q] + i] == value(q, i));
    free(got);
    CALL(MPI_Alltoallv, MPI_Ialltoallv, each.at, given, from_places, MPI_INT, all.at, counts, places, MPI_INT);
    got = get(all);
    for (int q = 0; q < size; q++)
        for (int i = 0; i < counts[q]; i++) CHECK(got[places[q] + i] == value(q, rank * n + i));
    free(got);

    for (int root = 0; root < size; root += size - 1) {
        for (int i = 0; i < n; i++) host[i] = rank == root ? value(root, i) : -1;
        put(mine, host);
        CALL(MPI_Bcast, MPI_Ibcast, mine.at, n, MPI_INT, root);
        got = get(mine);
        for (int i = 0; i < n; i++) CHECK(got[i] == value(root, i));
        free(got);
    }
    end(mine), end(all), end(each), free(host);
}

/* Every other int of 2n - 1; what lies between is kept. */
static void gaps(int kind, int n, int from, int to) {
    MPI_Datatype vector;
    MPI_Type_vector(n, 1, 2, MPI_INT, &vector);
    MPI_Datatype row;
    MPI_Type_create_resized(vector, 0, 2 * n * sizeof(int), &row);
    MPI_Type_commit(&row);
    struct buffer mine = make(2 * n - 1, from), all = make((size_t)2 * n * size - 1, to);
    int *host = malloc(sizeof(int) * 2 * n * size), *got;
    for (int i = 0; i < 2 * n - 1; i++) host[i] = i % 2 ? -7 : value(rank, i / 2);
    put(mine, host);
    for (int i = 0; i < 2 * n * size - 1; i++) host[i] = -9;
    put(all, host);
    CALL(MPI_Allgather, MPI_Iallgather, mine.at, 1, row, all.at, 1, row);
    got = get(all);
    for (int i = 0; i < 2 * n * size - 1; i++) CHECK(got[i] == (i % 2 ? -9 : value(i / (2 * n), i % (2 * n) / 2)));
    free(got);
    CALL(MPI_Bcast, MPI_Ibcast, mine.at, 1, row, size - 1);
    got = get(mine);
    for (int i = 0; i < 2 * n - 1; i++) CHECK(got[i] == (i % 2 ? -7 : value(size - 1, i / 2)));
    free(got);
    MPI_Type_free(&vector), MPI_Type_free(&row);
    end(mine), end(all), free(host);
}

/* Maps x -> a x + b of pairs, which do not commute, modulo a prime; pairs may have gaps. */
static int stride;
static void composed(void *left, void *right, int *count, MPI_Datatype *type) {
    int *a = left, *b = right;
    (void)type;
    for (int i = 0; i < *count; i++, a += stride, b += stride) {
        int x = b[stride / 2];
        b[stride / 2] = (int)(((long)b[0] * a[stride / 2] + x) % 10007);
        b[0] = (int)((long)a[0] * b[0] % 10007);
    }
}

static void reductions(int kind, int n, int from, int to) {
    struct buffer mine = make((size_t)n * size, from), result = make((size_t)n * size, to);
    int *host = malloc(sizeof(int) * 4 * n * size), *got, counts[size], all = size * (size - 1) / 2 * 3;
    for (int i = 0; i < n * size; i++) host[i] = 3 * rank + i;
    put(mine, host);
    CALL(MPI_Allreduce, MPI_Iallreduce, mine.at, result.at, n * size, MPI_INT, MPI_SUM);
    got = get(result);
    for (int i = 0; i < n * size; i++) CHECK(got[i] == all + size * i);
    free(got);
    if (kind < 2) {
        put(result, host);
        CALL(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, result.at, n, MPI_INT, MPI_SUM);
        got = get(result);
        for (int i = 0; i < n; i++) CHECK(got[i] == all + size * i);
        free(got);
    }
    for (int root = 0; root < size; root += size - 1) {
        CALL(MPI_Reduce, MPI_Ireduce, mine.at, rank == root ? result.at : NULL, n, MPI_INT, MPI_SUM, root);
        got = get(result);
        if (rank == root)
            for (int i = 0; i < n; i++) CHECK(got[i] == all + size * i);
        free(got);
    }
    CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, mine.at, result.at, n, MPI_INT, MPI_SUM);
    got = get(result);
    for (int i = 0; i < n; i++) CHECK(got[i] == all + size * (rank * n + i));
    free(got);
    for (int q = 0; q < size; q++) counts[q] = q == 0 ? n - 1 : n;
    CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, mine.at, result.at, counts, MPI_INT, MPI_SUM);
    got = get(result);
    for (int i = 0; i < counts[rank]; i++) CHECK(got[i] == all + size * (rank * n - (rank > 0) + i));
    free(got);
    end(mine), end(result);

    /* Pairs of ints side by side, then with a gap after each int. */
    MPI_Op op;
    MPI_Op_create(composed, 0, &op);
    for (stride = 2; stride <= 4; stride += 2) {
        MPI_Datatype part, pair;
        MPI_Type_vector(2, 1, stride / 2, MPI_INT, &part);
        MPI_Type_create_resized(part, 0, stride * sizeof(int), &pair);
        MPI_Type_commit(&pair);
        mine = make((size_t)stride * n, from), result = make((size_t)stride * n, to);
        for (int i = 0; i < stride * n; i++) host[i] = -3;
        put(result, host);
        for (int i = 0; i < n; i++) host[stride * i] = 2 + rank, host[stride * i + stride / 2] = i % 100;
        put(mine, host);
        CALL(MPI_Allreduce, MPI_Iallreduce, mine.at, result.at, n, pair, op);
        got = get(result);
        for (int i = 0; i < n; i++) {
            int a = 2, b = i % 100;
            for (int q = 1; q < size; q++) {
                int next = (int)(((long)(2 + q) * b + i % 100) % 10007);
                a = (int)((long)a * (2 + q) % 10007), b = next;
            }
            CHECK(got[stride * i] == a && got[stride * i + stride / 2] == b);
            if (stride == 4) CHECK(got[stride * i + 1] == -3);
        }
        free(got), end(mine), end(result);
        MPI_Type_free(&part), MPI_Type_free(&pair);
    }
    MPI_Op_free(&op);
    free(host);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* A collective before there is a driver. */
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size);
    void *driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    allocate = dlsym(driver, "stand_in_allocate"), release = dlsym(driver, "stand_in_free");
    copy = dlsym(driver, "stand_in_copy"), copies = dlsym(driver, "stand_in_copies");
    faults = dlsym(driver, "stand_in_faults");
    const int counts[] = {2, 1000, 40000};
    for (int place = 0; place < 5; place++) {
        /* Both, the first, the second; on all ranks; both on some ranks; the one here and the other there. */
        int from = place == 0 || place == 1 || (place == 3 && rank % 2) || (place == 4 && rank == 0);
        int to = place == 0 || place == 2 || (place == 3 && rank % 2) || (place == 4 && rank != 0);
        for (int i = 0; i < 3; i++)
            for (int kind = 0; kind < KINDS; kind++) {
                moves(kind, counts[i], from, to);
                gaps(kind, counts[i], from, to);
                reductions(kind, counts[i], from, to);
            }
    }
    CHECK(copies() > 0);
    CHECK(faults() == 0);
    int (*error)(void) = dlsym(driver, "hipGetLastError");
    if (error) CHECK(error() == 0);
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comm);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && all == 0) printf("device: %d ranks, all right\n", size);
    MPI_Finalize();
    return all != 0;
}
