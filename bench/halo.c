/* How long neighbourhood collectives take on many nodes, by who is whose neighbour and how much they exchange.
 *
 *     halo [CALLS] [PATTERN] [BYTES...]      (all patterns without; bytes of an edge: 8, 128, 1024 and 8192 without)
 *
 * Patterns, on a periodic grid of three dimensions that MPI_Dims_create makes: `faces`, the 6 neighbours of a cartesian communicator; `corners`, all 26
 * around, of a distributed graph; and `multigrid`, a distributed graph as a coarse level of algebraic multigrid has it: every rank has edges
 * with most others, in both directions, of sizes that differ by four. Calls follow each other, as in a solver; each line is `pattern collective bytes
 * microseconds`, the mean of a call on the rank that is last, the best of three rounds. What comes is checked. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, n;
/* An address that compilers would take for that of no numbers. */
static int *volatile unweighted;

/* This rank's neighbours, at both ends in the same order, and bytes of each. */
typedef struct {
    int in, out, *source, *destination, *received, *sent;
    MPI_Comm comm;
} halo;

static void sized(halo *h, int in, int out) {
    h->in = in, h->out = out;
    h->source = malloc(sizeof(int) * (in + 1)), h->received = malloc(sizeof(int) * (in + 1));
    h->destination = malloc(sizeof(int) * (out + 1)), h->sent = malloc(sizeof(int) * (out + 1));
}

static void made(halo *h) {
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h->in, h->source, unweighted, h->out, h->destination, unweighted,
                                   MPI_INFO_NULL, 0, &h->comm);
}

static int dims[3];

static int beside(const int step[3]) {
    int at[3] = {me / (dims[1] * dims[2]), me / dims[2] % dims[1], me % dims[2]}, rank = 0;
    for (int d = 0; d < 3; d++) rank = rank * dims[d] + (at[d] + step[d] + dims[d]) % dims[d];
    return rank;
}

/* Whether two ranks of a coarse level have something for each other, and how much of what is asked: a quarter to all of it. */
static int coupled(int a, int b) {
    uint64_t low = a < b ? a : b, high = a < b ? b : a, mixed = (low * 0x9e3779b97f4a7c15ull) ^ (high * 0xbf58476d1ce4e5b9ull);
    mixed ^= mixed >> 29, mixed *= 0x94d049bb133111ebull, mixed ^= mixed >> 32;
    return a == b || mixed % 8 == 0 ? 0 : 1 + (int)(mixed >> 40) % 4;
}

static halo of(const char *pattern, int bytes) {
    halo h;
    static const int periodic[3] = {1, 1, 1};
    if (!strcmp(pattern, "faces")) {
        sized(&h, 6, 6);
        MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periodic, 0, &h.comm);
        for (int e = 0; e < 6; e++) {
            int step[3] = {0, 0, 0};
            step[e / 2] = e % 2 ? 1 : -1;
            h.source[e] = h.destination[e] = beside(step), h.received[e] = h.sent[e] = bytes;
        }
    } else if (!strcmp(pattern, "corners")) {
        sized(&h, 26, 26);
        for (int e = 0, k = 0; k < 27; k++) {
            int step[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
            if (k == 13) continue;
            h.source[e] = h.destination[e] = beside(step), h.received[e] = h.sent[e] = bytes, e++;
        }
        made(&h);
    } else {
        sized(&h, n, n);
        int e = 0;
        for (int r = 0; r < n; r++)
            if (coupled(me, r)) {
                h.source[e] = h.destination[e] = r, h.received[e] = h.sent[e] = (bytes * coupled(me, r) + 3) / 4, e++;
            }
        h.in = h.out = e;
        made(&h);
    }
    return h;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    unweighted = MPI_UNWEIGHTED;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Dims_create(n, 3, dims);
    int calls = count > 1 ? atoi(words[1]) : 10;
    static const int standard[] = {8, 128, 1024, 8192};
    static const char *patterns[] = {"faces", "corners", "multigrid"}, *collectives[] = {"alltoallv", "allgather"};
    const char *only = count > 2 && atoi(words[2]) == 0 ? words[2] : NULL;
    int first = only ? 3 : 2, sizes = count > first ? count - first : 4;
    for (int p = 0; p < 3; p++)
        for (int c = 0; c < 2; c++)
            for (int s = 0; s < sizes && (!only || !strcmp(only, patterns[p])); s++) {
                int bytes = count > first ? atoi(words[first + s]) : standard[s], out = 0, in = 0, wrong = 0;
                halo h = of(patterns[p], bytes);
                int *from = malloc(sizeof(int) * (h.out + 1)), *to = malloc(sizeof(int) * (h.in + 1));
                for (int e = 0; e < h.in; e++) {
                    if (c) h.received[e] = bytes;
                    to[e] = in, in += h.received[e];
                }
                for (int e = 0; e < h.out; e++) from[e] = out, out += h.sent[e];
                char *send = malloc(out + bytes + 1), *receive = malloc(in + 1);
                memset(send, 1 + me % 100, out + bytes);
                double best = 1e30;
                for (int round = 0; round < 4; round++) {
                    memset(receive, 0, in);
                    MPI_Barrier(MPI_COMM_WORLD);
                    double begun = MPI_Wtime();
                    for (int i = 0; i < (round ? calls : 2); i++)
                        if (c) MPI_Neighbor_allgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, h.comm);
                        else MPI_Neighbor_alltoallv(send, h.sent, from, MPI_BYTE, receive, h.received, to, MPI_BYTE, h.comm);
                    double mine = (MPI_Wtime() - begun) / calls * 1e6, last;
                    MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
                    if (round && last < best) best = last;
                    for (int e = 0; e < h.in; e++)
                        for (int i = 0; i < h.received[e]; i++) wrong += receive[to[e] + i] != 1 + h.source[e] % 100;
                }
                int all = 0;
                MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                if (all) {
                    if (me == 0) fprintf(stderr, "halo: %d bytes are wrong\n", all);
                    MPI_Abort(MPI_COMM_WORLD, 3);
                }
                if (me == 0) printf("%s %s %d %.1f\n", patterns[p], collectives[c], bytes, best), fflush(stdout);
                free(from), free(to), free(send), free(receive);
                free(h.source), free(h.destination), free(h.sent), free(h.received);
                MPI_Comm_free(&h.comm);
            }
    MPI_Finalize();
    return 0;
}
