/* Non-blocking and persistent collectives of a program that knows nothing of us, and everything that completes their requests.
 * Every value is checked; a hang is the failure that a launcher's deadline finds.
 *
 * usage: requests [CYCLES]     CYCLES: how many communicators come and go */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>

#include "requests.h"

enum { COUNT = 7 };

/* What rank r gives, for the i-th element of a run. */
static int64_t given(int r, int i, int run) { return 1000 * r + 10 * i + run; }
/* The sum of all ranks'. */
static int64_t summed(int i, int run) {
    int64_t sum = 0;
    for (int r = 0; r < p; r++) sum += given(r, i, run);
    return sum;
}

/* One collective with its buffers, begun in some form. */
typedef struct {
    int kind, run, root, in_place;
    int64_t *in, *out;
    int *counts, *places, *sent, *from;
    MPI_Request request;
} Job;

static int counted(int r) { return r % 3 + 1; }

static int length(void) { return COUNT * p + 3 * p * p; }

static Job made(int kind) {
    Job job = {.kind = kind, .request = MPI_REQUEST_NULL};
    job.in = malloc(length() * sizeof *job.in);
    job.out = malloc(length() * sizeof *job.out);
    job.counts = malloc(4 * p * sizeof(int));
    job.places = job.counts + p;
    job.sent = job.places + p;
    job.from = job.sent + p;
    for (int r = 0, place = 0, start = 0; r < p; r++) {
        int alltoallv = kind == 3;
        job.counts[r] = alltoallv ? counted(r + me) : counted(r);
        job.places[r] = place;
        place += job.counts[r] + (kind == 1); /* with gaps */
        job.sent[r] = counted(me + r);
        job.from[r] = start;
        start += job.sent[r];
    }
    return job;
}

static void freed(Job *job) {
    free(job->in);
    free(job->out);
    free(job->counts);
}

/* Fills the input of a run. */
static void filled(Job *job, int run) {
    job->run = run;
    for (int i = 0; i < length(); i++) {
        job->in[i] = given(me, i, run);
        job->out[i] = -1;
    }
    if (job->kind == 7 && me == job->root) memcpy(job->out, job->in, COUNT * sizeof *job->in);
    if (job->in_place && job->kind == 4) memcpy(job->out, job->in, COUNT * sizeof *job->in);
    if (job->in_place && job->kind == 0) memcpy(job->out + me * COUNT, job->in, COUNT * sizeof *job->in);
}

static void checked(const Job *job) {
    const int64_t *out = job->out;
    int run = job->run, start = 0;
    for (int r = 0; r < me; r++) start += counted(r);
    switch (job->kind) {
    case 0: /* allgather */
        for (int r = 0; r < p; r++)
            for (int i = 0; i < COUNT; i++) CHECK(out[r * COUNT + i] == given(r, i, run));
        break;
    case 1: /* allgatherv */
        for (int r = 0; r < p; r++) {
            for (int i = 0; i < counted(r); i++) CHECK(out[job->places[r] + i] == given(r, i, run));
            CHECK(out[job->places[r] + counted(r)] == -1);
        }
        break;
    case 2: /* alltoall */
        for (int r = 0; r < p; r++)
            for (int i = 0; i < COUNT; i++) CHECK(out[r * COUNT + i] == given(r, me * COUNT + i, run));
        break;
    case 3: /* alltoallv */
        for (int r = 0; r < p; r++) {
            int offset = 0;
            for (int q = 0; q < me; q++) offset += counted(r + q);
            for (int i = 0; i < counted(r + me); i++) CHECK(out[job->places[r] + i] == given(r, offset + i, run));
        }
        break;
    case 4: /* allreduce */
        for (int i = 0; i < COUNT; i++) CHECK(out[i] == summed(i, run));
        break;
    case 5: /* reduce_scatter */
        for (int i = 0; i < counted(me); i++) CHECK(out[i] == summed(start + i, run));
        break;
    case 6: /* reduce_scatter_block */
        for (int i = 0; i < COUNT; i++) CHECK(out[i] == summed(me * COUNT + i, run));
        break;
    case 7: /* bcast */
        for (int i = 0; i < COUNT; i++) CHECK(out[i] == given(job->root, i, run));
        break;
    case 8: /* reduce */
        if (me == job->root)
            for (int i = 0; i < COUNT; i++) CHECK(out[i] == summed(i, run));
        break;
    }
}

static void begun(Job *job, MPI_Comm comm) {
    const void *in = job->in_place ? MPI_IN_PLACE : job->in;
    int64_t *out = job->out;
    MPI_Datatype word = MPI_INT64_T;
    MPI_Request *request = &job->request;
    switch (job->kind) {
    case 0: OK(MPI_Iallgather(in, COUNT, word, out, COUNT, word, comm, request)); break;
    case 1: OK(MPI_Iallgatherv(in, counted(me), word, out, job->counts, job->places, word, comm, request)); break;
    case 2: OK(MPI_Ialltoall(in, COUNT, word, out, COUNT, word, comm, request)); break;
    case 3: OK(MPI_Ialltoallv(in, job->sent, job->from, word, out, job->counts, job->places, word, comm, request)); break;
    case 4: OK(MPI_Iallreduce(in, out, COUNT, word, MPI_SUM, comm, request)); break;
    case 5: OK(MPI_Ireduce_scatter(in, out, job->counts, word, MPI_SUM, comm, request)); break;
    case 6: OK(MPI_Ireduce_scatter_block(in, out, COUNT, word, MPI_SUM, comm, request)); break;
    case 7: OK(MPI_Ibcast(out, COUNT, word, job->root, comm, request)); break;
    case 8: OK(MPI_Ireduce(in, out, COUNT, word, MPI_SUM, job->root, comm, request)); break;
    case 9: OK(MPI_Ibarrier(comm, request)); break;
    }
}

static void prepared(Job *job, MPI_Comm comm) {
    const void *in = job->in_place ? MPI_IN_PLACE : job->in;
    int64_t *out = job->out;
    MPI_Datatype word = MPI_INT64_T;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Request *request = &job->request;
    switch (job->kind) {
    case 0: OK(INIT(Allgather)(in, COUNT, word, out, COUNT, word, comm, info, request)); break;
    case 1: OK(INIT(Allgatherv)(in, counted(me), word, out, job->counts, job->places, word, comm, info, request)); break;
    case 2: OK(INIT(Alltoall)(in, COUNT, word, out, COUNT, word, comm, info, request)); break;
    case 3:
        OK(INIT(Alltoallv)(in, job->sent, job->from, word, out, job->counts, job->places, word, comm, info, request));
        break;
    case 4: OK(INIT(Allreduce)(in, out, COUNT, word, MPI_SUM, comm, info, request)); break;
    case 5: OK(INIT(Reduce_scatter)(in, out, job->counts, word, MPI_SUM, comm, info, request)); break;
    case 6: OK(INIT(Reduce_scatter_block)(in, out, COUNT, word, MPI_SUM, comm, info, request)); break;
    case 7: OK(INIT(Bcast)(out, COUNT, word, job->root, comm, info, request)); break;
    case 8: OK(INIT(Reduce)(in, out, COUNT, word, MPI_SUM, job->root, comm, info, request)); break;
    case 9: OK(INIT(Barrier)(comm, info, request)); break;
    }
}

/* Every collective, non-blocking, alone: each way of completing it. */
static void every_form_begins(MPI_Comm comm) {
    for (int kind = 0; kind < COLLECTIVES; kind++) {
        Job job = made(kind);
        for (int run = 0; run < 16; run++) {
            job.root = run % p;
            job.in_place = run % 4 == 3 && (kind == 0 || kind == 4);
            filled(&job, run);
            begun(&job, comm);
            CHECK(job.request != MPI_REQUEST_NULL);
            completed(&job.request, 1, run + me);
            CHECK(job.request == MPI_REQUEST_NULL);
            checked(&job);
        }
        freed(&job);
    }
}

/* A persistent collective of the MPI's own that is right: Intel's allgather is not. */
static int sound(int kind) {
#ifdef I_MPI_VERSION
    if (theirs && kind == 0) return COLLECTIVES - 1;
#endif
    return kind;
}

/* Every collective, persistent, started again and again, alone and all together. */
static void every_form_starts_again(MPI_Comm comm) {
    Job jobs[COLLECTIVES];
    MPI_Request requests[COLLECTIVES];
    for (int kind = 0; kind < COLLECTIVES; kind++) {
        jobs[kind] = made(sound(kind));
        jobs[kind].root = kind % p;
        jobs[kind].in_place = kind == 4;
        prepared(&jobs[kind], comm);
        requests[kind] = jobs[kind].request;
        int flag = 0;
        OK(MPI_Request_get_status(requests[kind], &flag, MPI_STATUS_IGNORE));
        CHECK(flag); /* inactive */
    }
    for (int run = 0; run < 40; run++) {
        for (int kind = 0; kind < COLLECTIVES; kind++) filled(&jobs[kind], run);
        if (run % 2 == 0) {
            OK(MPI_Startall(COLLECTIVES, requests));
            completed(requests, COLLECTIVES, me + run / 2);
        } else {
            for (int kind = 0; kind < COLLECTIVES; kind++) {
                OK(MPI_Start(&requests[kind]));
                if ((kind + run) % 3 == 0) OK(MPI_Wait(&requests[kind], MPI_STATUS_IGNORE));
            }
            OK(MPI_Waitall(COLLECTIVES, requests, MPI_STATUSES_IGNORE));
        }
        for (int kind = 0; kind < COLLECTIVES; kind++) {
            CHECK(requests[kind] == jobs[kind].request);
            checked(&jobs[kind]);
        }
    }
    for (int kind = 0; kind < COLLECTIVES; kind++) {
        OK(MPI_Request_free(&requests[kind]));
        CHECK(requests[kind] == MPI_REQUEST_NULL);
        freed(&jobs[kind]);
    }
}

/* Ours, the program's own, null and inactive requests in one array. */
static void arrays_are_mixed(MPI_Comm comm) {
    enum { OURS = 6, ALL = 2 * OURS + 3 };
    int right = (me + 1) % p, left = (me + p - 1) % p, unused[1] = {0};
    for (int run = 0; run < 24; run++) {
        Job jobs[OURS];
        int64_t to[OURS], from[OURS];
        MPI_Request requests[ALL], inactive;
        /* An inactive request of the program's own. */
        OK(MPI_Recv_init(unused, 1, MPI_INT, left, 77, comm, &inactive));
        for (int i = 0; i < OURS; i++) {
            jobs[i] = made((i * 3 + run) % COLLECTIVES);
            jobs[i].root = run % p;
            filled(&jobs[i], run + i);
            begun(&jobs[i], comm);
            requests[2 * i] = jobs[i].request;
            to[i] = given(me, i, run);
            if (i % 2 == 0) OK(MPI_Irecv(&from[i], 1, MPI_INT64_T, left, i, comm, &requests[2 * i + 1]));
            else OK(MPI_Isend(&to[i], 1, MPI_INT64_T, right, i - 1, comm, &requests[2 * i + 1]));
        }
        requests[2 * OURS] = MPI_REQUEST_NULL;
        requests[2 * OURS + 1] = inactive;
        requests[2 * OURS + 2] = MPI_REQUEST_NULL;
        int flag, index;
        MPI_Status status;
        OK(MPI_Request_get_status(requests[0], &flag, &status));
        OK(MPI_Testany(0, NULL, &index, &flag, &status));
        CHECK(flag && index == MPI_UNDEFINED);
        switch ((run + me) % 3) {
        case 0: OK(MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE)); break;
        case 1: {
            int done, indices[ALL], total = 0;
            MPI_Status statuses[ALL];
            while (total < 2 * OURS) {
                OK(MPI_Waitsome(ALL, requests, &done, indices, statuses));
                CHECK(done > 0);
                for (int k = 0; k < done; k++) {
                    CHECK(indices[k] >= 0 && indices[k] < 2 * OURS);
                    CHECK(requests[indices[k]] == MPI_REQUEST_NULL);
                    /* The status of a receive of the program's own is its own. */
                    if (indices[k] % 4 == 1) CHECK(statuses[k].MPI_SOURCE == left && statuses[k].MPI_TAG == indices[k] / 2);
                }
                total += done;
            }
            break;
        }
        default:
            for (int total = 0; total < 2 * OURS; total++) {
                OK(MPI_Waitany(ALL, requests, &index, &status));
                CHECK(index >= 0 && index < 2 * OURS && requests[index] == MPI_REQUEST_NULL);
            }
        }
        for (int i = 0; i < ALL; i++) CHECK(requests[i] == MPI_REQUEST_NULL || (i == 2 * OURS + 1 && requests[i] == inactive));
        for (int i = 0; i < OURS; i++) {
            checked(&jobs[i]);
            if (i % 2 == 0) CHECK(from[i] == given(left, i + 1, run));
            freed(&jobs[i]);
        }
        OK(MPI_Request_free(&inactive));
    }
}

/* Many runs of one shape at once, completed in different orders on different ranks, with blocking calls between them. */
static void many_of_one_shape(MPI_Comm comm) {
    enum { MANY = 12 };
    for (int kind = 0; kind < COLLECTIVES; kind++) {
        Job jobs[MANY];
        for (int i = 0; i < MANY; i++) {
            jobs[i] = made(kind);
            filled(&jobs[i], i);
            begun(&jobs[i], comm);
        }
        /* Some ranks come here before their runs are through, others after. */
        int late = me % 2;
        if (late)
            for (int i = MANY - 1; i >= 0; i--) OK(MPI_Wait(&jobs[i].request, MPI_STATUS_IGNORE));
        int64_t mine = me, sum = -1;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm));
        CHECK(sum == p * (p - 1) / 2);
        if (!late)
            for (int i = 0; i < MANY; i++) OK(MPI_Wait(&jobs[(i * 5) % MANY].request, MPI_STATUS_IGNORE));
        for (int i = 0; i < MANY; i++) {
            checked(&jobs[i]);
            freed(&jobs[i]);
        }
    }
}

/* Blocks of at most this many words. */
enum { BLOCK = 3 };

/* How many words rank r sends to rank s in a run: not as many as s to r, but in place, and sometimes nobody any. */
static int exchanged(int r, int s, int run, int in_place) {
    if (run % 9 == 8) return 0;
    return in_place ? (r + s + run) % (BLOCK + 1) : (3 * r + 5 * s + run) % (BLOCK + 1);
}

/* An alltoallv, begun or, without a request, from beginning to end. */
typedef struct {
    int run, in_place, stride;
    int64_t in[64 * BLOCK], out[2 * 64 * BLOCK];
    int sent[64], from[64], taken[64], to[64];
} Exchange;

static void exchange(Exchange *job, int run, MPI_Comm comm, MPI_Request *request) {
    job->run = run;
    job->in_place = run % 7 == 6;
    job->stride = 1 + (me + run) % 2; /* some ranks take words with gaps between them */
    MPI_Datatype type = MPI_INT64_T;
    if (job->stride == 2) {
        OK(MPI_Type_create_resized(MPI_INT64_T, 0, 16, &type));
        OK(MPI_Type_commit(&type));
    }
    for (int i = 0; i < 2 * 64 * BLOCK; i++) job->out[i] = -1;
    for (int r = 0; r < p; r++) {
        job->sent[r] = exchanged(me, r, run, job->in_place);
        job->taken[r] = exchanged(r, me, run, job->in_place);
        job->from[r] = run % 3 ? BLOCK * r : r ? job->from[r - 1] + job->sent[r - 1] : 0;
        job->to[r] = BLOCK * (p - 1 - r);
        for (int i = 0; i < job->sent[r]; i++) {
            job->in[job->from[r] + i] = given(me, 10 * r + i, run);
            if (job->in_place) job->out[job->stride * (job->to[r] + i)] = given(me, 10 * r + i, run);
        }
    }
    const void *in = job->in_place ? MPI_IN_PLACE : job->in;
    if (request)
        OK(MPI_Ialltoallv(in, job->sent, job->from, MPI_INT64_T, job->out, job->taken, job->to, type, comm, request));
    else OK(MPI_Alltoallv(in, job->sent, job->from, MPI_INT64_T, job->out, job->taken, job->to, type, comm));
    if (job->stride == 2) OK(MPI_Type_free(&type));
}

static void exchanged_right(const Exchange *job) {
    for (int r = 0; r < p; r++)
        for (int i = 0; i < BLOCK; i++) {
            const int64_t *words = job->out + job->stride * (job->to[r] + i);
            CHECK(words[0] == (i < job->taken[r] ? given(r, 10 * me + i, job->run) : -1));
            if (job->stride == 2) CHECK(words[1] == -1);
        }
}

/* Alltoallvs with other counts every time, several at once, and other collectives between them; then some of those counts again. */
static void counts_differ(MPI_Comm comm) {
    enum { AT_ONCE = 5, RUNS = 60 };
    static Exchange jobs[AT_ONCE], blocking;
    MPI_Request requests[2 * AT_ONCE];
    for (int run = 0; run < RUNS; run += AT_ONCE) {
        int64_t mine[AT_ONCE], sums[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            mine[i] = me + i;
            exchange(&jobs[i], (run + i) % 45, comm, &requests[2 * i]);
            /* Plans that were not made before. */
            OK(MPI_Iallreduce(&mine[i], &sums[i], 1, i % 2 ? MPI_INT64_T : MPI_UINT64_T, MPI_SUM, comm, &requests[2 * i + 1]));
        }
        if (run % 2) {
            exchange(&blocking, 100 + run, comm, NULL);
            exchanged_right(&blocking);
        }
        completed(requests, 2 * AT_ONCE, run / AT_ONCE + me);
        for (int i = 0; i < AT_ONCE; i++) {
            exchanged_right(&jobs[i]);
            CHECK(sums[i] == p * (p - 1) / 2 + (int64_t)p * i);
        }
    }
}

/* A rank that blocks in another call moves its collectives on. */
static void ranks_that_block_move_on(MPI_Comm comm) {
    enum { LONG = 100000, WAYS = 12 };
    int64_t *in = malloc(LONG * sizeof *in), *out = malloc(LONG * sizeof *out);
    for (int run = 0; run < 2 * WAYS; run++) {
        for (int i = 0; i < LONG; i++) in[i] = me + i + run, out[i] = -1;
        MPI_Request request;
        OK(MPI_Iallreduce(in, out, LONG, MPI_INT64_T, MPI_SUM, comm, &request));
        int64_t token = me, got = -1, all[64];
        /* The last rank waits first; the others need it only after they have blocked. */
        int waits = me == p - 1, to = p - 1;
        if (waits) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        switch (run % WAYS) {
        case 0: /* receive */
            if (waits) for (int r = 0; r < p - 1; r++) OK(MPI_Send(&token, 1, MPI_INT64_T, r, 1, comm));
            else OK(MPI_Recv(&got, 1, MPI_INT64_T, to, 1, comm, MPI_STATUS_IGNORE)), CHECK(got == p - 1);
            break;
        case 1: /* a send that waits for its receive */
            if (waits) for (int r = 0; r < p - 1; r++) OK(MPI_Recv(&got, 1, MPI_INT64_T, r, 1, comm, MPI_STATUS_IGNORE)), CHECK(got == r);
            else OK(MPI_Ssend(&token, 1, MPI_INT64_T, to, 1, comm));
            break;
        case 2:
            if (waits) for (int r = 0; r < p - 1; r++) OK(MPI_Send(&token, 1, MPI_INT64_T, r, 2, comm));
            else {
                MPI_Status status;
                OK(MPI_Probe(to, 2, comm, &status));
                CHECK(status.MPI_SOURCE == to);
                OK(MPI_Recv(&got, 1, MPI_INT64_T, to, 2, comm, MPI_STATUS_IGNORE));
            }
            break;
        case 3:
            if (waits) for (int r = 0; r < p - 1; r++) OK(MPI_Send(&token, 1, MPI_INT64_T, r, 3, comm));
            else {
                MPI_Message message;
                MPI_Status status;
                OK(MPI_Mprobe(to, 3, comm, &message, &status));
                OK(MPI_Mrecv(&got, 1, MPI_INT64_T, &message, &status));
                CHECK(got == p - 1);
            }
            break;
        case 4: OK(MPI_Sendrecv(&token, 1, MPI_INT64_T, (me + 1) % p, 4, &got, 1, MPI_INT64_T, (me + p - 1) % p, 4, comm, MPI_STATUS_IGNORE));
            CHECK(got == (me + p - 1) % p);
            break;
        case 5: OK(MPI_Allreduce(&token, &got, 1, MPI_INT64_T, MPI_MAX, comm)); CHECK(got == p - 1); break;
        case 6: OK(MPI_Barrier(comm)); break;
        case 7: got = token; OK(MPI_Bcast(&got, 1, MPI_INT64_T, p - 1, comm)); CHECK(got == p - 1); break;
        /* The MPI's own. */
        case 8: OK(MPI_Gather(&token, 1, MPI_INT64_T, all, 1, MPI_INT64_T, 0, comm)); break;
        case 9: OK(MPI_Scan(&token, &got, 1, MPI_INT64_T, MPI_SUM, comm)); CHECK(got == me * (me + 1) / 2); break;
        case 10: {
            MPI_Comm copy;
            OK(MPI_Comm_dup(comm, &copy));
            OK(MPI_Allreduce(&token, &got, 1, MPI_INT64_T, MPI_SUM, copy));
            CHECK(got == p * (p - 1) / 2);
            OK(MPI_Comm_free(&copy));
            break;
        }
        case 11: { /* counts that were not seen before: a plan is made */
            int64_t many[128];
            for (int i = 0; i < 128; i++) many[i] = me;
            OK(MPI_Allreduce(MPI_IN_PLACE, many, 65 + run, MPI_INT64_T, MPI_SUM, comm));
            CHECK(many[64 + run] == p * (p - 1) / 2);
            break;
        }
        }
        if (!waits) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < LONG; i += 999) CHECK(out[i] == p * (p - 1) / 2 + (int64_t)p * (i + run));
    }
    free(in);
    free(out);
}

/* Beginning waits for nobody: the last rank comes only after it has heard from all others, who have begun many already. */
static void beginning_waits_for_nobody(MPI_Comm comm) {
    enum { MANY = 20 };
    Job jobs[MANY];
    for (int i = 0; i < MANY; i++) {
        /* Shapes that were not seen before, twice each. */
        jobs[i] = made(i / 2 % COLLECTIVES);
        jobs[i].root = (i + 1) % p;
        filled(&jobs[i], i);
    }
    int token = 1;
    if (me == p - 1) for (int r = 0; r < p - 1; r++) OK(MPI_Recv(&token, 1, MPI_INT, r, 5, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; i++) begun(&jobs[i], comm);
    if (me < p - 1) OK(MPI_Send(&token, 1, MPI_INT, p - 1, 5, comm));
    for (int i = 0; i < MANY; i++) {
        OK(MPI_Wait(&jobs[i].request, MPI_STATUS_IGNORE));
        checked(&jobs[i]);
        freed(&jobs[i]);
    }
}

/* Communicator and datatype are freed before the collectives are through. */
static void what_is_freed_stays(void) {
    for (int run = 0; run < 8; run++) {
        MPI_Comm comm;
        MPI_Datatype every_other;
        MPI_Request requests[3];
        int64_t in[8], out[8], sparse[64 * 8];
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Type_vector(4, 1, 2, MPI_INT64_T, &every_other));
        OK(MPI_Type_commit(&every_other));
        for (int i = 0; i < 8; i++) in[i] = given(me, i, run), out[i] = -1;
        for (int i = 0; i < 64 * 8; i++) sparse[i] = -1;
        OK(MPI_Iallreduce(in, out, 8, MPI_INT64_T, MPI_SUM, comm, &requests[0]));
        OK(MPI_Iallgather(in, 1, every_other, sparse, 4, MPI_INT64_T, comm, &requests[1]));
        OK(MPI_Ibarrier(comm, &requests[2]));
        OK(MPI_Type_free(&every_other));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 8; i++) CHECK(out[i] == summed(i, run));
        for (int r = 0; r < p; r++)
            for (int i = 0; i < 4; i++) CHECK(sparse[4 * r + i] == given(r, 2 * i, run));
        CHECK(sparse[4 * p] == -1);
        /* And where the result has gaps. */
        OK(MPI_Type_create_resized(MPI_INT64_T, 0, 16, &every_other));
        OK(MPI_Type_commit(&every_other));
        for (int i = 0; i < 64 * 8; i++) sparse[i] = -1;
        OK(MPI_Iallgather(in, 3, MPI_INT64_T, sparse, 3, every_other, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Type_free(&every_other));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        for (int i = 0; i < 3 * p; i++) CHECK(sparse[2 * i] == given(i / 3, i % 3, run) && sparse[2 * i + 1] == -1);
    }
}

/* Nothing to move, and more than one message holds. */
static void nothing_and_much(MPI_Comm comm) {
    enum { MUCH = 1 << 18 };
    MPI_Request requests[4];
    int64_t none = 5, *in = malloc(MUCH * sizeof *in), *out = malloc(MUCH * sizeof *out);
    for (int i = 0; i < MUCH; i++) in[i] = me * i, out[i] = -1;
    OK(MPI_Iallreduce(&none, &none, 0, MPI_INT64_T, MPI_SUM, comm, &requests[0]));
    OK(MPI_Iallreduce(in, out, MUCH, MPI_INT64_T, MPI_SUM, comm, &requests[1]));
    OK(MPI_Ibcast(&none, 0, MPI_INT64_T, 0, comm, &requests[2]));
    OK(MPI_Ibarrier(comm, &requests[3]));
    completed(requests, 4, me);
    CHECK(none == 5);
    for (int i = 0; i < MUCH; i++) CHECK(out[i] == (int64_t)i * p * (p - 1) / 2);
    free(in);
    free(out);
}

/* Large counts, the profiling names, and what no collective allows. */
static void other_names(MPI_Comm comm) {
    MPI_Request request;
    int64_t mine = me, sum = -1;
    OK(PMPI_Iallreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm, &request));
    OK(PMPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == p * (p - 1) / 2);
#if MPI_VERSION >= 4
    MPI_Count counts[64];
    MPI_Aint places[64];
    int64_t all[64];
    for (int r = 0; r < p; r++) counts[r] = 1, places[r] = p - 1 - r;
    OK(MPI_Iallreduce_c(&mine, &sum, 1, MPI_INT64_T, MPI_MAX, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == p - 1);
    OK(MPI_Iallgatherv_c(&mine, 1, MPI_INT64_T, all, counts, places, MPI_INT64_T, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int r = 0; r < p; r++) CHECK(all[r] == p - 1 - r);
    int64_t back[64];
    OK(MPI_Ialltoallv_c(all, counts, places, MPI_INT64_T, back, counts, places, MPI_INT64_T, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int r = 0; r < p; r++) CHECK(back[r] == me);
    OK(MPI_Bcast_init_c(&mine, 1, MPI_INT64_T, 0, comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(mine == 0);
    OK(MPI_Request_free(&request));
#endif
    if (!theirs) {
        int error, class;
        OK(INIT(Barrier)(comm, MPI_INFO_NULL, &request));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        error = MPI_Cancel(&request);
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
        OK(MPI_Error_class(error, &class));
        CHECK(class == MPI_ERR_REQUEST);
        OK(MPI_Request_free(&request));
    }
}

/* Threads, each with a communicator of its own or waiting for its own request of a common one. */
typedef struct {
    MPI_Comm comm;
    Job *job;
} Work;

static void *waits(void *argument) {
    Work *work = argument;
    OK(MPI_Wait(&work->job->request, MPI_STATUS_IGNORE));
    checked(work->job);
    return NULL;
}

static void *works(void *argument) {
    Work *work = argument;
    Job job = made(4);
    for (int run = 0; run < 16; run++) {
        filled(&job, run);
        begun(&job, work->comm);
        completed(&job.request, 1, run);
        checked(&job);
        int64_t mine = me, sum = 0;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, work->comm));
        CHECK(sum == p * (p - 1) / 2);
    }
    freed(&job);
    return NULL;
}

static void threads_wait(void) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    Work work[THREADS];
    Job jobs[THREADS];
    for (int t = 0; t < THREADS; t++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &work[t].comm));
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, works, &work[t]);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int run = 0; run < COLLECTIVES; run++) {
        for (int t = 0; t < THREADS; t++) {
            jobs[t] = made((t + run) % COLLECTIVES);
            filled(&jobs[t], run);
            begun(&jobs[t], work[t % 2].comm);
            work[t].job = &jobs[t];
        }
        for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, waits, &work[t]);
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        for (int t = 0; t < THREADS; t++) freed(&jobs[t]);
    }
    for (int t = 0; t < THREADS; t++) OK(MPI_Comm_free(&work[t].comm));
}

static int descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Communicators come and go, and leave nothing behind. */
static void communicators_come_and_go(int cycles) {
    int before = 0;
    long memory = 0;
    for (int cycle = 0; cycle <= cycles; cycle++) {
        if (cycle == cycles / 10 || cycle == cycles) {
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (cycle == cycles) {
                CHECK(descriptors() == before);
                /* MPIs fill pools of their own for a while: Intel's with a megabyte or more. One of ours is more than 100 KiB. */
                CHECK((pages() - memory) * 4096 < 100L * cycles + (4 << 20));
                break;
            }
            before = descriptors();
            memory = pages();
        }
        MPI_Comm comm;
        MPI_Request request;
        int64_t mine = me + cycle, sum = -1;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm, &request));
        if (cycle % 2) OK(MPI_Comm_free(&comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(sum == p * (p - 1) / 2 + (int64_t)p * cycle);
        if (cycle % 2 == 0) OK(MPI_Comm_free(&comm));
    }
}

int main(int count, char **words) {
    int provided = begun_with(&count, &words);
    MPI_Comm others;
    beginning_waits_for_nobody(MPI_COMM_WORLD);
    every_form_begins(MPI_COMM_WORLD);
    every_form_starts_again(MPI_COMM_WORLD);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &others));
    beginning_waits_for_nobody(others);
    arrays_are_mixed(others);
    many_of_one_shape(others);
    counts_differ(others);
    ranks_that_block_move_on(others);
    nothing_and_much(others);
    other_names(others);
    OK(MPI_Comm_free(&others));
    what_is_freed_stays();
    /* Where threads outnumber the cores by far, MPIs need seconds to let each other go on. */
    if (provided == MPI_THREAD_MULTIPLE && p <= 3) threads_wait();
    if (count > 1) communicators_come_and_go(atoi(words[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) printf("requests: %d ranks, all right\n", p);
    MPI_Finalize();
    return 0;
}
