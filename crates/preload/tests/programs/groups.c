/* Collectives between two groups, of which the first has one rank, on a duplicated intercommunicator. Intel MPI loses messages of these
 * if one group has made more communicators than the other: ours must not be the cause. */
#include "check.h"

#define MOST 8

/* The program's groups. */
typedef struct {
    int me, n, first;
} groups;

/* From each rank of each group to the other group. */
static void scatter(MPI_Comm inter, groups of) {
    int me, own, other, words[MOST], counts[MOST], places[MOST];
    MPI_Comm_rank(inter, &me);
    MPI_Comm_size(inter, &own);
    MPI_Comm_remote_size(inter, &other);
    for (int turn = 0; turn < 24; turn++) {
        int sends = of.first != turn % 2, word = -1;
        for (int i = 0; i < MOST; i++) words[i] = turn + i, counts[i] = 1, places[i] = i;
        for (int sender = 0; sender < (sends ? own : other); sender++) {
            int root = !sends ? sender : sender == me ? MPI_ROOT : MPI_PROC_NULL, mine = sends ? -1 : turn + me;
            MPI_Scatter(words, 1, MPI_INT, &word, 1, MPI_INT, root, inter);
            CHECK(word == mine, "the other group scattered %d, not %d", word, mine);
            MPI_Scatterv(words, counts, places, MPI_INT, &word, 1, MPI_INT, root, inter);
            CHECK(word == mine, "the other group scattered %d, not %d", word, mine);
        }
    }
}

/* With requests of ours, or a blocking collective, in the group. */
static void round_of(groups of, int requests) {
    int sum;
    MPI_Comm part, inter, copy;
    MPI_Request request;
    if (requests) {
        MPI_Iallreduce(&of.me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == of.n * (of.n - 1) / 2, "the sum of all is %d", sum);
    }
    MPI_Comm_split(MPI_COMM_WORLD, of.first, of.me, &part);
    if (!requests) {
        MPI_Allreduce(&of.me, &sum, 1, MPI_INT, MPI_SUM, part);
        CHECK(sum == (of.first ? 0 : of.n * (of.n - 1) / 2), "a group's sum is %d", sum);
    }
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, of.first ? 1 : 0, 7, &inter);
    MPI_Comm_dup(inter, &copy);
    scatter(copy, of);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&inter);
}

int main(int count, char **words) {
    groups of;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &of.me);
    MPI_Comm_size(MPI_COMM_WORLD, &of.n);
    of.first = of.me == 0;
    for (int round = 0; round < 400; round++) round_of(of, round >= 200);
    return verdict("groups");
}
