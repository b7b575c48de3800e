/* Collectives of a program that reaches MPI by a session, and with an argument by MPI_Init as well. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void failed(int line, const char *fact) {
    fprintf(stderr, "line %d: not so: %s\n", line, fact);
    exit(3);
}

#define CHECK(fact) ((fact) ? (void)0 : failed(__LINE__, #fact))
#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Blocking, begun and on a duplicate; the number of ranks. */
static int collectives(MPI_Comm comm) {
    int me, p, sum = -1, most = -1, root;
    MPI_Request request;
    MPI_Comm copy;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &p));
    for (int run = 0; run < 3; run++) {
        int mine = me + run;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == p * (p - 1) / 2 + p * run);
        root = me;
        OK(MPI_Bcast(&root, 1, MPI_INT, run % p, comm));
        CHECK(root == run % p);
        OK(MPI_Iallreduce(&mine, &most, 1, MPI_INT, MPI_MAX, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(most == p - 1 + run);
    }
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, copy));
    CHECK(sum == p * (p - 1) / 2);
    OK(MPI_Comm_free(&copy));
    return p;
}

int main(int count, char **words) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int both = count > 1, me;
    if (both) OK(MPI_Init(&count, &words));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "allhands.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &me));
    if (both) collectives(MPI_COMM_WORLD);
    int p = collectives(comm);
    if (both) collectives(MPI_COMM_WORLD);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    if (both) OK(MPI_Finalize());
    if (me == 0) printf("sessions: %d ranks, all right\n", p);
    return 0;
}
