/* Gather, gatherv, scatter, scatterv, scan, exscan, alltoallv and alltoallw in every form: blocking, begun and prepared; from and to every root,
 * in place, with datatypes that have gaps, with counts that differ and are nothing for some, and with counts that change from call to call. What
 * is expected is computed here; memory between the data must stay as it was.
 *
 *     blocks [ROUNDS] */
#include "check.h"

#include <stdint.h>

#define RUNS 1
#include "forms.h"

static int me, n;
/* No address of anything. */
static void *volatile nonsense = (void *)16;
static uint64_t state = 88172645463325252ull;

/* The same numbers on every rank. */
static int below(int limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)(state % (uint64_t)limit);
}

/* An int with one int of nothing after it, and an int alone. */
static MPI_Datatype gaps;
typedef struct {
    MPI_Datatype type;
    int stride;
} shape;
static shape shapes[2];

static int value(int from, int to, int i) { return from * 1000003 + to * 1009 + i; }

static void put(int *at, int stride, int count, int from, int to) {
    for (int i = 0; i < count; i++) at[i * stride] = value(from, to, i);
}

static void same(const char *name, int form, const int *want, const int *got, int ints) {
    for (int i = 0; i < ints; i++)
        if (want[i] != got[i]) {
            CHECK(0, "%s in form %d: int %d of %d is %d, not %d", name, form, i, ints, got[i], want[i]);
            return;
        }
}

static void gathered(int form, int root, int count, const shape *out, const shape *in, int in_place, MPI_Comm comm) {
    size_t all = (size_t)n * count * in->stride;
    int *send = filled((size_t)count * out->stride * sizeof(int));
    int *receive = filled(all * sizeof(int)), *want = filled(all * sizeof(int));
    put(send, out->stride, count, me, root);
    int at_root = me == root, place = at_root && in_place;
    if (at_root)
        for (int r = 0; r < n; r++) put(want + (size_t)r * count * in->stride, in->stride, count, r, root);
    if (place) put(receive + (size_t)me * count * in->stride, in->stride, count, me, root);
    const void *from = place ? MPI_IN_PLACE : send;
    /* What counts at the root only is nonsense elsewhere. */
    void *to = at_root ? (void *)receive : nonsense;
    RUN(form, Gather, gather, from, count, out->type, to, at_root ? count : -1,
        at_root ? in->type : MPI_DATATYPE_NULL, root, comm);
    same("Gather", form, want, receive, (int)all);
    free(send), free(receive), free(want);
}

static void scattered(int form, int root, int count, const shape *out, const shape *in, int in_place, MPI_Comm comm) {
    size_t all = (size_t)n * count * out->stride, mine = (size_t)count * in->stride;
    int *send = filled(all * sizeof(int)), *receive = filled(mine * sizeof(int)), *want = filled(mine * sizeof(int));
    int at_root = me == root, place = at_root && in_place;
    for (int r = 0; r < n; r++) put(send + (size_t)r * count * out->stride, out->stride, count, root, r);
    if (!place) put(want, in->stride, count, root, me);
    const void *from = at_root ? (void *)send : nonsense;
    RUN(form, Scatter, scatter, from, at_root ? count : -1, at_root ? out->type : MPI_DATATYPE_NULL,
        place ? MPI_IN_PLACE : receive, count, in->type, root, comm);
    same("Scatter", form, want, receive, (int)mine);
    free(send), free(receive), free(want);
}

/* Counts of all ranks, which only the root is told, and places with gaps between blocks, in another order. */
static int drawn(int *counts, int *places, int most) {
    int end = 0;
    for (int r = 0; r < n; r++) counts[r] = below(3) ? below(most) : 0;
    for (int r = n - 1; r >= 0; r--) places[r] = end, end += counts[r] + below(3);
    return end;
}

static void gathered_v(int form, int root, int most, const shape *out, const shape *in, int in_place, MPI_Comm comm) {
    int counts[n], places[n], end = drawn(counts, places, most), count = counts[me];
    int *send = filled((size_t)count * out->stride * sizeof(int));
    int *receive = filled((size_t)end * in->stride * sizeof(int)), *want = filled((size_t)end * in->stride * sizeof(int));
    int at_root = me == root, place = at_root && in_place;
    put(send, out->stride, count, me, root);
    if (at_root)
        for (int r = 0; r < n; r++) put(want + places[r] * in->stride, in->stride, counts[r], r, root);
    if (place) put(receive + places[me] * in->stride, in->stride, count, me, root);
    /* Others have no arrays at all. */
    const int *numbers = at_root ? counts : (const int *)nonsense, *at = at_root ? places : (const int *)nonsense;
    RUN(form, Gatherv, gatherv, place ? MPI_IN_PLACE : (void *)send, count, out->type, at_root ? (void *)receive : NULL,
        numbers, at, in->type, root, comm);
    same("Gatherv", form, want, receive, end * in->stride);
    free(send), free(receive), free(want);
}

static void scattered_v(int form, int root, int most, const shape *out, const shape *in, int in_place, MPI_Comm comm) {
    int counts[n], places[n], end = drawn(counts, places, most), count = counts[me];
    int *send = filled((size_t)end * out->stride * sizeof(int));
    int *receive = filled((size_t)count * in->stride * sizeof(int)), *want = filled((size_t)count * in->stride * sizeof(int));
    int at_root = me == root, place = at_root && in_place;
    for (int r = 0; r < n; r++) put(send + places[r] * out->stride, out->stride, counts[r], root, r);
    if (!place) put(want, in->stride, count, root, me);
    const int *numbers = at_root ? counts : (const int *)nonsense, *at = at_root ? places : (const int *)nonsense;
    RUN(form, Scatterv, scatterv, at_root ? (void *)send : NULL, numbers, at, out->type, place ? MPI_IN_PLACE : (void *)receive,
        count, in->type, root, comm);
    same("Scatterv", form, want, receive, count * in->stride);
    free(send), free(receive), free(want);
}

/* Every pair has a count of its own; with one datatype, or with one for each block. */
static void exchanged(int form, int most, int mixed, int in_place, MPI_Comm comm) {
    int matrix[n][n], sent[n], from[n], received[n], to[n], out_end = 0, in_end = 0;
    MPI_Datatype out[n], in[n];
    int out_stride[n], in_stride[n];
    for (int s = 0; s < n; s++)
        for (int d = 0; d < n; d++) {
            matrix[s][d] = below(4) ? below(most) : 0;
            /* In place, what is sent makes room for what comes. */
            if (in_place && d < s) matrix[s][d] = matrix[d][s];
        }
    for (int r = 0; r < n; r++) {
        const shape *o = &shapes[mixed ? (me + r) % 2 : 0], *i = &shapes[mixed ? (me * 3 + r + 1) % 2 : 0];
        out[r] = o->type, out_stride[r] = o->stride, in[r] = i->type, in_stride[r] = i->stride;
        sent[r] = matrix[me][r], received[r] = matrix[r][me];
        from[r] = out_end, out_end += sent[r] * out_stride[r] + r % 2;
        to[r] = in_end, in_end += received[r] * in_stride[r] + (r + 1) % 2;
    }
    int *send = filled((size_t)out_end * sizeof(int)), *receive = filled((size_t)in_end * sizeof(int));
    int *want = filled((size_t)in_end * sizeof(int));
    for (int r = 0; r < n; r++) {
        put(send + from[r], out_stride[r], sent[r], me, r);
        put(want + to[r], in_stride[r], received[r], r, me);
        if (in_place) put(receive + to[r], in_stride[r], received[r], me, r);
    }
    /* In place these are not looked at. */
    const int *none = (const int *)nonsense;
    if (mixed) {
        for (int r = 0; r < n; r++) from[r] *= sizeof(int), to[r] *= sizeof(int);
        if (in_place) RUN(form, Alltoallw, alltoallw, MPI_IN_PLACE, none, none, (const MPI_Datatype *)nonsense, receive, received, to, in, comm);
        else RUN(form, Alltoallw, alltoallw, send, sent, from, out, receive, received, to, in, comm);
    } else {
        if (in_place) RUN(form, Alltoallv, alltoallv, MPI_IN_PLACE, none, none, MPI_DATATYPE_NULL, receive, received, to, MPI_INT, comm);
        else RUN(form, Alltoallv, alltoallv, send, sent, from, MPI_INT, receive, received, to, MPI_INT, comm);
    }
    same(mixed ? "Alltoallw" : "Alltoallv", form, want, receive, in_end);
    free(send), free(receive), free(want);
}

/* x -> a x + b, of two words each: composing them keeps the order of ranks. */
static void compose(void *left, void *right, int *count, MPI_Datatype *type) {
    uint32_t *a = left, *b = right;
    (void)type;
    for (int i = 0; i < *count; i++) {
        uint32_t factor = b[2 * i] * a[2 * i], constant = b[2 * i] * a[2 * i + 1] + b[2 * i + 1];
        b[2 * i] = factor, b[2 * i + 1] = constant;
    }
}

static void prefixes(int form, int count, int in_place, MPI_Op op, MPI_Datatype map, MPI_Comm comm) {
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        long *send = filled(count * sizeof(long)), *receive = filled(count * sizeof(long)), *want = filled(count * sizeof(long));
        for (int i = 0; i < count; i++) send[i] = me + 7 * i;
        int ranks = exclusive ? me : me + 1;
        for (int i = 0; i < count && ranks > 0; i++) want[i] = ranks * (ranks - 1) / 2 + 7L * i * ranks;
        if (in_place) memcpy(receive, send, count * sizeof(long));
        void *from = in_place ? MPI_IN_PLACE : send;
        if (exclusive) RUN(form, Exscan, exscan, from, receive, count, MPI_LONG, MPI_SUM, comm);
        else RUN(form, Scan, scan, from, receive, count, MPI_LONG, MPI_SUM, comm);
        /* The first rank of an exscan gets nothing, and what it has there is anything. */
        if (ranks > 0) same(exclusive ? "Exscan" : "Scan", form, (int *)want, (int *)receive, 2 * count);
        free(send), free(receive), free(want);

        uint32_t *maps = filled(count * 8), *result = filled(count * 8), *all = filled(count * 8);
        for (int i = 0; i < count; i++) {
            maps[2 * i] = 3 + 2 * me, maps[2 * i + 1] = i + me;
            uint32_t factor = 1, constant = 0;
            for (int r = 0; r < ranks; r++) constant = constant * (3 + 2 * r) + i + r, factor *= 3 + 2 * r;
            all[2 * i] = factor, all[2 * i + 1] = constant;
        }
        if (in_place) memcpy(result, maps, count * 8);
        from = in_place ? MPI_IN_PLACE : (void *)maps;
        if (exclusive) RUN(form, Exscan, exscan, from, result, count, map, op, comm);
        else RUN(form, Scan, scan, from, result, count, map, op, comm);
        if (ranks > 0) same("a scan of maps", form, (int *)all, (int *)result, 2 * count);
        free(maps), free(result), free(all);
    }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rounds = count > 1 ? atoi(words[1]) : 12;
    MPI_Op op;
    MPI_Datatype map;
    MPI_Op_create(compose, 0, &op);
    MPI_Type_contiguous(2, MPI_UINT32_T, &map);
    MPI_Type_commit(&map);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    shapes[0] = (shape){MPI_INT, 1}, shapes[1] = (shape){gaps, 2};
    /* The world, and the same ranks the other way round. */
    MPI_Comm turned;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm comms[] = {MPI_COMM_WORLD, turned};
    static const int sizes[] = {1, 0, 3, 40, 1500, 40000};
    for (int round = 0; round < rounds; round++)
        for (int c = 0; c < 2; c++) {
            MPI_Comm comm = comms[c];
            MPI_Comm_rank(comm, &me);
            MPI_Comm_size(comm, &n);
            int size = sizes[round % 6], root = (round + c) % n, in_place = round / 2 % 2;
            const shape *out = &shapes[round / 3 % 2], *in = &shapes[(round + me) % 2];
            for (int form = 0; form < FORMS; form++) {
                gathered(form, root, size, out, in, in_place, comm);
                scattered(form, root, size, out, in, in_place, comm);
                gathered_v(form, root, size + 1, out, in, in_place, comm);
                scattered_v(form, root, size + 1, out, in, in_place, comm);
                exchanged(form, size + 1, 0, in_place, comm);
                exchanged(form, size + 1, 1, in_place, comm);
                prefixes(form, size, in_place, op, map, comm);
            }
            /* Calls like the last one, and others between. */
            for (int again = 0; again < 3; again++) {
                gathered(BLOCKING, root, size, &shapes[0], &shapes[0], again == 2, comm);
                scattered(BLOCKING, root, size, &shapes[0], &shapes[0], 0, comm);
                prefixes(BLOCKING, size, 0, op, map, comm);
            }
        }
    MPI_Comm_free(&turned);
    MPI_Type_free(&gaps), MPI_Type_free(&map), MPI_Op_free(&op);
    return verdict("blocks");
}
