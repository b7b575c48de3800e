/* One rank looks for messages that the others send only when they have completed a collective with it: whatever function it looks with must
 * move the collective on. */
#include <stdint.h>
#include <stdlib.h>

#include "requests.h"

enum { COUNT = 200000 };

static int in[COUNT], out[COUNT];

/* Until a message is there, by MPI_Iprobe or MPI_Improbe; its word. */
static int found(int matched, int from) {
    int flag = 0, word = -1;
    MPI_Message message;
    MPI_Status status;
    while (!flag)
        if (matched) OK(MPI_Improbe(from, 5, MPI_COMM_WORLD, &flag, &message, &status));
        else OK(MPI_Iprobe(from, 5, MPI_COMM_WORLD, &flag, &status));
    if (matched) OK(MPI_Mrecv(&word, 1, MPI_INT, &message, &status));
    else OK(MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, &status));
    CHECK(word == 100 + status.MPI_SOURCE);
    return word;
}

static void one_round(int round, int matched, int any, MPI_Request *request, int persistent) {
    for (int i = 0; i < COUNT; i++) in[i] = me + i + round, out[i] = -1;
    if (persistent) OK(MPI_Start(request));
    else OK(MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request));
    if (me == 0) {
        int sum = 0;
        for (int r = 1; r < p; r++) sum += found(matched, any ? MPI_ANY_SOURCE : r);
        CHECK(sum == 100 * (p - 1) + p * (p - 1) / 2);
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    } else {
        int word = 100 + me;
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        OK(MPI_Send(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
    }
    for (int i = 0; i < COUNT; i++) CHECK(out[i] == p * (p - 1) / 2 + p * (i + round));
}

int main(int count, char **words) {
    MPI_Request request, persistent;
    begun_with(&count, &words);
    OK(INIT(Allreduce)(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
    for (int round = 0; round < 24; round++) {
        int kept = round / 4 % 2;
        one_round(round, round % 2, round / 2 % 2, kept ? &persistent : &request, kept);
    }
    OK(MPI_Request_free(&persistent));
    if (me == 0) printf("probing: %d ranks, all right\n", p);
    MPI_Finalize();
    return 0;
}
