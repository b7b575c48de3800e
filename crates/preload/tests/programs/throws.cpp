/* An error handler in C++ that throws: the exception goes through the MPI, and through us, to the program, which goes on. */
#include "check.h"

struct Thrown {
    int code;
};

static int destroyed;

struct Witness {
    ~Witness() { destroyed++; }
};

extern "C" void thrower(MPI_Comm *, int *code, ...) { throw Thrown{*code}; }

/* Whether a call throws, and what it has on the stack is destroyed. */
template <class Call> static bool throws(Call call) {
    int before = destroyed;
    try {
        Witness witness;
        call();
    } catch (const Thrown &thrown) {
        return thrown.code != MPI_SUCCESS && destroyed == before + 1;
    }
    return false;
}

static void sums(MPI_Comm comm, int size) {
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
    CHECK(all == size, "an allreduce after an exception gives %d", all);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(thrower, &handler);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    sums(comm, size);
    int many[64] = {0};
    for (int round = 0; round < 3; round++) {
#if !defined(MPICH_VERSION) || defined(I_MPI_VERSION)
        /* What the MPI refuses: its own function throws, called by us. The MPICH that is tested here was built to look at no argument. */
        CHECK(throws([&] { MPI_Bcast(many, 1, MPI_INT, size + 7, comm); }), "round %d: no exception from a bcast", round);
        CHECK(throws([&] { MPI_Allreduce(many, many + 8, -1, MPI_INT, MPI_SUM, comm); }), "round %d: none from an allreduce", round);
        MPI_Request request;
        CHECK(throws([&] { MPI_Ibcast(many, 1, MPI_INT, size + 7, comm, &request); }), "round %d: none from an ibcast", round);
#endif
        /* What we refuse ourselves, where a rank sends other bytes than it receives; not every MPI looks. */
        if (count > 1) {
            CHECK(throws([&] { MPI_Allgather(many, 3, MPI_INT, many + 8, 2, MPI_INT, comm); }), "round %d: none of ours", round);
        }
        sums(comm, size);
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    return verdict("throws");
}
