/* What is only moved: every collective, with memory that ranks describe in ways of their own. */
#ifndef MOVES_H
#define MOVES_H

#include "check.h"

/* Ways to say "so many ints", which differ from rank to rank: one after the other, in pairs, or with a gap after each. */
typedef struct {
    MPI_Datatype type;
    int ints;   /* of an element */
    int stride; /* ints from one to the next in memory */
} shape;

enum { SHAPES = 3 };

static void make_shapes(shape *shapes) {
    MPI_Datatype pairs, gaps;
    MPI_Type_contiguous(2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    shapes[0] = (shape){MPI_INT, 1, 1};
    shapes[1] = (shape){pairs, 2, 1};
    shapes[2] = (shape){gaps, 1, 2};
}

static void free_shapes(shape *shapes) {
    MPI_Type_free(&shapes[1].type);
    MPI_Type_free(&shapes[2].type);
}

/* What rank `from` has for rank `to`, at place `i`. */
static int value(int from, int to, int i) { return from * 1000000 + to * 10000 + i; }

static int *ints(const shape *s, int count) { return filled((size_t)(count * s->stride) * sizeof(int)); }

static void put(const shape *s, int *at, int first, int count, int from, int to) {
    for (int i = 0; i < count; i++) at[(first + i) * s->stride] = value(from, to, i);
}

static void same(const char *function, const shape *s, const int *want, const int *got, int count) {
    CHECK(memcmp(want, got, (size_t)(count * s->stride) * sizeof(int)) == 0, "%s of %d ints", function, count);
}

/* Counts of both sides are even, so that pairs fit. */
static void move_all(const shape *shapes, int count, MPI_Comm comm) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    const shape *out = &shapes[me % SHAPES], *in = &shapes[(me + count / 2) % SHAPES];
    for (int root = 0; root < n; root++) {
        int *buffer = ints(in, count), *want = ints(in, count);
        if (me == root) put(in, buffer, 0, count, root, 0);
        put(in, want, 0, count, root, 0);
        MPI_Bcast(buffer, count / in->ints, in->type, root, comm);
        same("Bcast", in, want, buffer, count);
        free(buffer), free(want);
    }
    int *send = ints(out, count * n), *receive = ints(in, count * n), *want = ints(in, count * n);
    put(out, send, 0, count, me, 0);
    for (int rank = 0; rank < n; rank++) put(in, want, rank * count, count, rank, 0);
    MPI_Allgather(send, count / out->ints, out->type, receive, count / in->ints, in->type, comm);
    same("Allgather", in, want, receive, count * n);
    memset(receive, UNTOUCHED, (size_t)(count * n * in->stride) * sizeof(int));
    put(in, receive, me * count, count, me, 0);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, count / in->ints, in->type, comm);
    same("Allgather in place", in, want, receive, count * n);

    for (int rank = 0; rank < n; rank++) {
        put(out, send, rank * count, count, me, rank);
        put(in, want, rank * count, count, rank, me);
    }
    MPI_Alltoall(send, count / out->ints, out->type, receive, count / in->ints, in->type, comm);
    same("Alltoall", in, want, receive, count * n);
    for (int rank = 0; rank < n; rank++) put(in, receive, rank * count, count, me, rank);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, count / in->ints, in->type, comm);
    same("Alltoall in place", in, want, receive, count * n);
    free(send), free(receive), free(want);
    MPI_Barrier(comm);
}

/* Different counts, in another order in memory, with holes between them. */
static void vectors_all(const shape *shapes, int count, MPI_Comm comm) {
    int me, n, counts[64], places[64], given[64], from[64], got[64], to[64], all = 0, sent = 0, came = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    const shape *out = &shapes[me % SHAPES], *in = &shapes[(me + count / 2) % SHAPES];
    for (int rank = n - 1; rank >= 0; rank--) {
        counts[rank] = rank % 3 == 1 ? 0 : count + 2 * rank;
        places[rank] = all;
        all += counts[rank] + 2;
        given[rank] = (me + rank) % 4 == 1 ? 0 : count + 2 * rank;
        from[rank] = sent;
        sent += given[rank] + 2;
        got[rank] = (me + rank) % 4 == 1 ? 0 : count + 2 * me;
        to[rank] = came;
        came += got[rank] + 2;
    }
    int *send = ints(out, sent), *receive = ints(in, all), *want = ints(in, all), c[64], p[64], d[64], q[64];
    put(out, send, 0, counts[me] < sent ? counts[me] : 0, me, 0);
    for (int rank = 0; rank < n; rank++) {
        put(in, want, places[rank], counts[rank], rank, 0);
        c[rank] = counts[rank] / in->ints, p[rank] = places[rank] / in->ints;
    }
    int *mine = ints(out, counts[me]);
    put(out, mine, 0, counts[me], me, 0);
    MPI_Allgatherv(mine, counts[me] / out->ints, out->type, receive, c, p, in->type, comm);
    same("Allgatherv", in, want, receive, all);
    memset(receive, UNTOUCHED, (size_t)(all * in->stride) * sizeof(int));
    put(in, receive, places[me], counts[me], me, 0);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, c, p, in->type, comm);
    same("Allgatherv in place", in, want, receive, all);
    free(mine), free(receive), free(want), free(send);

    send = ints(out, sent), receive = ints(in, came), want = ints(in, came);
    for (int rank = 0; rank < n; rank++) {
        put(out, send, from[rank], given[rank], me, rank);
        put(in, want, to[rank], got[rank], rank, me);
        c[rank] = given[rank] / out->ints, p[rank] = from[rank] / out->ints;
        d[rank] = got[rank] / in->ints, q[rank] = to[rank] / in->ints;
    }
    MPI_Alltoallv(send, c, p, out->type, receive, d, q, in->type, comm);
    same("Alltoallv", in, want, receive, came);
    free(send), free(receive), free(want);
}

/* Nothing, from nowhere. MPICH takes two buffers at the same place for a mistake even then. */
static void nothing(MPI_Comm comm) {
    int n, zeros[64] = {0}, spare;
    MPI_Comm_size(comm, &n);
    MPI_Bcast(NULL, 0, MPI_INT, n - 1, comm);
    MPI_Allgather(NULL, 0, MPI_INT, &spare, 0, MPI_INT, comm);
    MPI_Allgatherv(NULL, 0, MPI_INT, &spare, zeros, zeros, MPI_INT, comm);
    MPI_Alltoall(NULL, 0, MPI_INT, &spare, 0, MPI_INT, comm);
    MPI_Alltoallv(NULL, zeros, zeros, MPI_INT, &spare, zeros, zeros, MPI_INT, comm);
    MPI_Allreduce(NULL, &spare, 0, MPI_INT, MPI_SUM, comm);
    MPI_Reduce(NULL, &spare, 0, MPI_INT, MPI_SUM, n - 1, comm);
    MPI_Reduce_scatter(NULL, &spare, zeros, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(NULL, &spare, 0, MPI_INT, MPI_SUM, comm);
}

#endif
