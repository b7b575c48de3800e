/* How long an alltoallv takes on many nodes, by who talks to whom and how much.
 *
 *     exchange [CALLS] [BYTES...]      (bytes of a pair on average; 8, 128, 1024 and 8192 without)
 *
 * Patterns: `all`, every pair as much; `tenth`, one pair in ten, ten times as much; `skewed`, every pair by a power law (the k-th of all pairs
 * in a random order has a share of 1/k). Each has a communicator of its own, as the exchanges of a solver do, and calls follow each other. Each line is `pattern
 * bytes microseconds`, the mean of a call on the rank that is last, the best of three rounds. What comes is checked. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, n;
static uint64_t state;

static uint64_t drawn(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* Bytes of every pair, the same matrix on every rank. */
static void fill(int *matrix, const char *pattern, int bytes) {
    int pairs = n * n;
    state = 0x9e3779b97f4a7c15ull;
    if (!strcmp(pattern, "all"))
        for (int i = 0; i < pairs; i++) matrix[i] = bytes;
    else if (!strcmp(pattern, "tenth"))
        for (int i = 0; i < pairs; i++) matrix[i] = drawn() % 10 ? 0 : 10 * bytes;
    else {
        int *order = malloc(sizeof *order * pairs);
        double harmonic = 0;
        for (int i = 0; i < pairs; i++) order[i] = i, harmonic += 1.0 / (i + 1);
        for (int i = pairs - 1; i > 0; i--) {
            int j = (int)(drawn() % (uint64_t)(i + 1)), other = order[j];
            order[j] = order[i], order[i] = other;
        }
        for (int k = 0; k < pairs; k++) matrix[order[k]] = (int)((double)bytes * pairs / harmonic / (k + 1));
        free(order);
    }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int calls = count > 1 ? atoi(words[1]) : 10;
    static const int standard[] = {8, 128, 1024, 8192};
    static const char *patterns[] = {"all", "tenth", "skewed"};
    int *matrix = malloc(sizeof *matrix * n * n);
    int *sent = malloc(sizeof *sent * n), *from = malloc(sizeof *from * n);
    int *received = malloc(sizeof *received * n), *to = malloc(sizeof *to * n);
    for (int p = 0; p < 3; p++)
        for (int s = 0; s < (count > 2 ? count - 2 : 4); s++) {
            int bytes = count > 2 ? atoi(words[2 + s]) : standard[s], out = 0, in = 0, wrong = 0;
            fill(matrix, patterns[p], bytes);
            for (int r = 0; r < n; r++) {
                sent[r] = matrix[me * n + r], from[r] = out, out += sent[r];
                received[r] = matrix[r * n + me], to[r] = in, in += received[r];
            }
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            char *send = malloc(out + 1), *receive = malloc(in + 1);
            for (int r = 0; r < n; r++) memset(send + from[r], 1 + (me * 7 + r) % 100, sent[r]);
            double best = 1e30;
            for (int round = 0; round < 4; round++) {
                memset(receive, 0, in);
                MPI_Barrier(MPI_COMM_WORLD);
                double begun = MPI_Wtime();
                for (int i = 0; i < (round ? calls : 2); i++)
                    MPI_Alltoallv(send, sent, from, MPI_BYTE, receive, received, to, MPI_BYTE, comm);
                double mine = (MPI_Wtime() - begun) / calls * 1e6, last;
                MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
                if (round && last < best) best = last;
                for (int r = 0; r < n; r++)
                    for (int i = 0; i < received[r]; i++) wrong += receive[to[r] + i] != 1 + (r * 7 + me) % 100;
            }
            int all = 0;
            MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            if (all) {
                if (me == 0) fprintf(stderr, "exchange: %d bytes are wrong\n", all);
                MPI_Abort(MPI_COMM_WORLD, 3);
            }
            if (me == 0) printf("%s %d %.1f\n", patterns[p], bytes, best), fflush(stdout);
            free(send), free(receive);
            MPI_Comm_free(&comm);
        }
    MPI_Finalize();
    return 0;
}
