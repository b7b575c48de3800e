/* Collectives among neighbours in every form: blocking, begun and prepared; on cartesian grids, also rings of one and two, on graphs and on distributed
 * graphs whose edges are directed, repeated and lead back to where they begin; with datatypes that have gaps, with sizes that differ and are
 * nothing for some. What is expected is computed here; memory between the data must stay as it was.
 *
 *     neighbors [ROUNDS] */
#include "check.h"

#include <stdint.h>

#define RUNS 2
#include "forms.h"

enum { MOST_RANKS = 16, MOST_EDGES = 64 };

static int me, n;
/* An address that compilers would take for that of no numbers. */
static int *volatile unweighted;
static uint64_t state = 88172645463325252ull;

/* The same numbers on every rank. */
static int below(int limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)(state % (uint64_t)limit);
}

/* An int with one int of nothing after it, and an int alone. */
typedef struct {
    MPI_Datatype type;
    int stride;
} shape;
static shape shapes[2];

/* Of each rank its neighbours, -1 where there is none, and of each block that comes which one it is among those of its source. */
typedef struct {
    int in[MOST_RANKS], out[MOST_RANKS];
    int source[MOST_RANKS][MOST_EDGES], destination[MOST_RANKS][MOST_EDGES];
    int which[MOST_RANKS][MOST_EDGES];
} graph;

/* The first of several edges between two ranks is the first at both ends. */
static void in_order(graph *g) {
    for (int d = 0; d < n; d++)
        for (int i = 0; i < g->in[d]; i++) {
            int s = g->source[d][i], before = 0;
            if (s < 0) continue;
            for (int j = 0; j < i; j++) before += g->source[d][j] == s;
            for (int o = 0; o < g->out[s]; o++)
                if (g->destination[s][o] == d && before-- == 0) g->which[d][i] = o;
        }
}

/* A block from one rank to another, by its place at the source. */
static int value(int from, int which, int i) { return from * 1000003 + which * 10007 + i; }

static void put(int *at, int stride, int count, int from, int which) {
    for (int i = 0; i < count; i++) at[i * stride] = value(from, which, i);
}

static void same(const char *name, int form, const char *where, const int *want, const int *got, int ints) {
    for (int i = 0; i < ints; i++)
        if (want[i] != got[i]) {
            CHECK(0, "%s on %s in form %d: int %d of %d is %d, not %d", name, where, form, i, ints, got[i], want[i]);
            return;
        }
}

static void gathered(int form, const char *where, const graph *g, int count, const shape *out, const shape *in, MPI_Comm comm) {
    size_t all = (size_t)g->in[me] * count * in->stride;
    int *send = filled((size_t)count * out->stride * sizeof(int));
    int *receive = filled(all * sizeof(int)), *want = filled(all * sizeof(int));
    put(send, out->stride, count, me, 0);
    for (int i = 0; i < g->in[me]; i++)
        if (g->source[me][i] >= 0) put(want + (size_t)i * count * in->stride, in->stride, count, g->source[me][i], 0);
    RUN(form, Neighbor_allgather, neighbor_allgather, send, count, out->type, receive, count, in->type, comm);
    same("Neighbor_allgather", form, where, want, receive, (int)all);
    free(send), free(receive), free(want);
}

static void gathered_v(int form, const char *where, const graph *g, int most, const shape *out, const shape *in, MPI_Comm comm) {
    int sizes[MOST_RANKS], counts[MOST_EDGES], places[MOST_EDGES], end = 0;
    for (int r = 0; r < n; r++) sizes[r] = below(3) ? below(most) : 0;
    for (int i = g->in[me] - 1; i >= 0; i--) {
        /* What is said of a neighbour that there is not is nonsense. */
        counts[i] = g->source[me][i] < 0 ? 7 : sizes[g->source[me][i]];
        places[i] = end, end += counts[i] + i % 2;
    }
    int *send = filled((size_t)sizes[me] * out->stride * sizeof(int));
    int *receive = filled((size_t)end * in->stride * sizeof(int)), *want = filled((size_t)end * in->stride * sizeof(int));
    put(send, out->stride, sizes[me], me, 0);
    for (int i = 0; i < g->in[me]; i++)
        if (g->source[me][i] >= 0) put(want + (size_t)places[i] * in->stride, in->stride, counts[i], g->source[me][i], 0);
    RUN(form, Neighbor_allgatherv, neighbor_allgatherv, send, sizes[me], out->type, receive, counts, places, in->type, comm);
    same("Neighbor_allgatherv", form, where, want, receive, end * in->stride);
    free(send), free(receive), free(want);
}

static void exchanged(int form, const char *where, const graph *g, int count, const shape *out, const shape *in, MPI_Comm comm) {
    size_t all = (size_t)g->in[me] * count * in->stride;
    int *send = filled((size_t)g->out[me] * count * out->stride * sizeof(int));
    int *receive = filled(all * sizeof(int)), *want = filled(all * sizeof(int));
    for (int o = 0; o < g->out[me]; o++) put(send + (size_t)o * count * out->stride, out->stride, count, me, o);
    for (int i = 0; i < g->in[me]; i++)
        if (g->source[me][i] >= 0)
            put(want + (size_t)i * count * in->stride, in->stride, count, g->source[me][i], g->which[me][i]);
    RUN(form, Neighbor_alltoall, neighbor_alltoall, send, count, out->type, receive, count, in->type, comm);
    same("Neighbor_alltoall", form, where, want, receive, (int)all);
    free(send), free(receive), free(want);
}

/* Every edge has a count of its own; with one datatype, or with one for each block. `apart`: blocks have gaps between them, and come in another order. */
static void exchanged_v(int form, const char *where, const graph *g, int most, int mixed, int apart, MPI_Comm comm) {
    static int sizes[MOST_RANKS][MOST_EDGES];
    for (int r = 0; r < n; r++)
        for (int o = 0; o < g->out[r]; o++) sizes[r][o] = below(4) ? below(most) : 0;
    int sent[MOST_EDGES], from[MOST_EDGES], received[MOST_EDGES], to[MOST_EDGES], out_end = 0, in_end = 0;
    MPI_Aint from_bytes[MOST_EDGES], to_bytes[MOST_EDGES];
    MPI_Datatype out[MOST_EDGES], in[MOST_EDGES];
    int out_stride[MOST_EDGES], in_stride[MOST_EDGES];
    for (int o = 0; o < g->out[me]; o++) {
        const shape *s = &shapes[mixed ? (me + o) % 2 : 0];
        out[o] = s->type, out_stride[o] = s->stride;
        sent[o] = g->destination[me][o] < 0 ? 5 : sizes[me][o];
        from[o] = out_end, out_end += sent[o] * s->stride + (apart && o % 2), from_bytes[o] = from[o] * (MPI_Aint)sizeof(int);
    }
    for (int k = g->in[me] - 1; k >= 0; k--) {
        int i = apart ? k : g->in[me] - 1 - k;
        const shape *s = &shapes[mixed ? (me * 3 + i + 1) % 2 : 0];
        in[i] = s->type, in_stride[i] = s->stride;
        received[i] = g->source[me][i] < 0 ? 5 : sizes[g->source[me][i]][g->which[me][i]];
        to[i] = in_end, in_end += received[i] * s->stride + (apart && i % 2), to_bytes[i] = to[i] * (MPI_Aint)sizeof(int);
    }
    int *send = filled((size_t)out_end * sizeof(int)), *receive = filled((size_t)in_end * sizeof(int));
    int *want = filled((size_t)in_end * sizeof(int));
    for (int o = 0; o < g->out[me]; o++) put(send + from[o], out_stride[o], sent[o], me, o);
    for (int i = 0; i < g->in[me]; i++)
        if (g->source[me][i] >= 0) put(want + to[i], in_stride[i], received[i], g->source[me][i], g->which[me][i]);
    if (mixed)
        RUN(form, Neighbor_alltoallw, neighbor_alltoallw, send, sent, from_bytes, out, receive, received, to_bytes, in, comm);
    else
        RUN(form, Neighbor_alltoallv, neighbor_alltoallv, send, sent, from, MPI_INT, receive, received, to, MPI_INT, comm);
    same(mixed ? "Neighbor_alltoallw" : "Neighbor_alltoallv", form, where, want, receive, in_end);
    free(send), free(receive), free(want);
}

static void all_of_them(const char *where, const graph by_form[FORMS], int rounds, MPI_Comm comm) {
    static const int sizes[] = {1, 0, 3, 40, 1500, 20000};
    for (int round = 0; round < rounds; round++) {
        int size = sizes[round % 6];
        const shape *out = &shapes[round / 3 % 2], *in = &shapes[(round + me) % 2];
        for (int form = 0; form < FORMS; form++) {
            const graph *g = &by_form[form];
            gathered(form, where, g, size, out, in, comm);
            gathered_v(form, where, g, size + 1, out, in, comm);
            exchanged(form, where, g, size, out, in, comm);
            exchanged_v(form, where, g, size + 1, 0, 1, comm);
            exchanged_v(form, where, g, size + 1, 1, 1, comm);
        }
        /* Calls like the last one, and others between. */
        for (int again = 0; again < 3; again++) {
            exchanged(BLOCKING, where, &by_form[BLOCKING], size, &shapes[0], &shapes[0], comm);
            gathered(BLOCKING, where, &by_form[BLOCKING], size, &shapes[0], &shapes[0], comm);
            exchanged(BLOCKING, where, &by_form[BLOCKING], size, &shapes[0], &shapes[0], comm);
        }
        /* Of the same counts, then of others. */
        for (int again = 0; again < 6; again++) {
            uint64_t before = state;
            exchanged_v(BLOCKING, where, &by_form[BLOCKING], size + 1, 0, 0, comm);
            if (again % 3) state = before;
        }
    }
}

/* Whether this MPI has what is sent one way along a ring come from the other, where that cannot be told from the rank. MPI says that it is so. */
static int by_direction(int form) {
    int size = 1, periodic = 1, given[2] = {0, 1}, came[2] = {-1, -1};
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_SELF, 1, &size, &periodic, 0, &ring);
    RUN(form, Neighbor_alltoall, neighbor_alltoall, given, 1, MPI_INT, came, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
    return came[0] == 1;
}

static void on_grid(int dimensions, const int *dims, const int *periodic, int rounds) {
    MPI_Comm comm;
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periodic, 0, &comm);
    static graph by_form[FORMS];
    graph *g = &by_form[0];
    MPI_Comm_rank(comm, &me);
    for (int r = 0; r < n; r++) {
        g->in[r] = g->out[r] = 2 * dimensions;
        int stride = 1;
        for (int d = dimensions - 1; d >= 0; d--) {
            int at = r / stride % dims[d];
            for (int up = 0; up < 2; up++) {
                int there = at + 2 * up - 1;
                if (periodic[d]) there = (there + dims[d]) % dims[d];
                int other = there < 0 || there >= dims[d] ? -1 : r + (there - at) * stride;
                g->source[r][2 * d + up] = g->destination[r][2 * d + up] = other;
            }
            stride *= dims[d];
        }
    }
    for (int form = 0; form < FORMS; form++) {
        by_form[form] = *g;
        in_order(&by_form[form]);
        if (by_direction(form))
            for (int r = 0; r < n; r++)
                for (int i = 0; i < 2 * dimensions; i++) by_form[form].which[r][i] = i ^ 1;
    }
    char where[64];
    snprintf(where, sizeof where, "a grid of %d dimensions, the first of %d ranks", dimensions, dims[0]);
    all_of_them(where, by_form, rounds, comm);
    MPI_Comm_free(&comm);
}

static void on_graph(int rounds) {
    static graph by_form[FORMS];
    graph *g = &by_form[0];
    memset(g, 0, sizeof *g);
    /* Who is a neighbour is one of its neighbours, too. */
    for (int edge = 0; edge < n + 3; edge++) {
        int a = below(n), b = below(n);
        if (a == b) continue;
        g->destination[a][g->out[a]++] = b, g->destination[b][g->out[b]++] = a;
    }
    int ends[MOST_RANKS], edges[MOST_RANKS * MOST_EDGES], end = 0;
    for (int r = 0; r < n; r++) {
        for (int o = 0; o < g->out[r]; o++) edges[end++] = g->source[r][o] = g->destination[r][o];
        g->in[r] = g->out[r], ends[r] = end;
    }
    in_order(g);
    by_form[1] = by_form[2] = *g;
    MPI_Comm comm;
    MPI_Graph_create(MPI_COMM_WORLD, n, ends, edges, 0, &comm);
    MPI_Comm_rank(comm, &me);
    all_of_them("a graph", by_form, rounds, comm);
    MPI_Comm_free(&comm);
}

static void on_distributed_graph(int rounds, int adjacent, int most) {
    static graph by_form[FORMS];
    graph *g = &by_form[0];
    memset(g, 0, sizeof *g);
    for (int s = 0; s < n; s++)
        for (int degree = below(most); degree > 0; degree--) {
            int d = below(n), place = below(g->in[d] + 1);
            g->destination[s][g->out[s]++] = d;
            for (int i = g->in[d]++; i > place; i--) g->source[d][i] = g->source[d][i - 1];
            g->source[d][place] = s;
        }
    MPI_Comm comm, copy;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (adjacent)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g->in[me], g->source[me], unweighted, g->out[me], g->destination[me],
                                       unweighted, MPI_INFO_NULL, 0, &comm);
    else {
        /* The MPI orders neighbours as it likes. */
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &g->out[me], g->destination[me], unweighted, MPI_INFO_NULL, 0, &comm);
        int weighted, all[2 * MOST_EDGES + 2], everybody[MOST_RANKS * (2 * MOST_EDGES + 2)], weights[MOST_EDGES];
        memset(all, 0, sizeof all);
        MPI_Dist_graph_neighbors_count(comm, &all[0], &all[1], &weighted);
        MPI_Dist_graph_neighbors(comm, all[0], all + 2, weights, all[1], all + 2 + MOST_EDGES, weights);
        MPI_Allgather(all, 2 * MOST_EDGES + 2, MPI_INT, everybody, 2 * MOST_EDGES + 2, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < n; r++) {
            int *of = everybody + r * (2 * MOST_EDGES + 2);
            g->in[r] = of[0], g->out[r] = of[1];
            memcpy(g->source[r], of + 2, of[0] * sizeof(int));
            memcpy(g->destination[r], of + 2 + MOST_EDGES, of[1] * sizeof(int));
        }
    }
    in_order(g);
    by_form[1] = by_form[2] = *g;
    all_of_them("a distributed graph", by_form, rounds, comm);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_free(&comm);
    all_of_them("a copy of a distributed graph", by_form, 1, copy);
    MPI_Comm_free(&copy);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    unweighted = MPI_UNWEIGHTED;
    int rounds = count > 1 ? atoi(words[1]) : 6;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Datatype gaps;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    shapes[0] = (shape){MPI_INT, 1}, shapes[1] = (shape){gaps, 2};
    int line[] = {n}, open[] = {0, 0, 0}, closed[] = {1, 1, 1};
    on_grid(1, line, open, rounds);
    on_grid(1, line, closed, rounds);
    int two = n % 2 ? 1 : 2, box[] = {two, n / two, 1};
    on_grid(3, box, closed, rounds);
    on_grid(3, box, open, rounds);
    on_graph(rounds);
    on_distributed_graph(rounds, 1, 5);
    on_distributed_graph(rounds, 0, 7);
    on_distributed_graph(rounds, 1, 2);
    MPI_Type_free(&gaps);
    return verdict("neighbors");
}
