/* Functions on windows, files and communicators in which all ranks wait for each other, while a collective is under way: the last rank
 * completes that before it comes, so the others must move it on while they wait. A hang is the failure. */
#include <stdint.h>
#include <unistd.h>
#include "requests.h"

enum { LONG = 100000, WORDS = 64 };

static int64_t in[LONG], out[LONG];
static int runs;

/* When the last rank comes, and when it begins. */
enum when { AT_ONCE, LATE, AFTERWARDS };

static void begun(MPI_Request *request) {
    runs++;
    for (int i = 0; i < LONG; i++) in[i] = me + i + runs, out[i] = -1;
    OK(MPI_Iallreduce(in, out, LONG, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request));
}

static void ended(MPI_Request *request) {
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG; i += 99) CHECK(out[i] == p * (p - 1) / 2 + (int64_t)p * (i + runs));
}

/* Makes a call beside an allreduce. */
#define BESIDE(when, call)                                                                                                             \
    do {                                                                                                                               \
        MPI_Request request;                                                                                                           \
        int last = me == p - 1;                                                                                                        \
        if (!last || (when) != AFTERWARDS) begun(&request);                                                                            \
        if (last && (when) == LATE) usleep(1300 * 1000);                                                                               \
        if (last && (when) != AFTERWARDS) ended(&request);                                                                             \
        OK(call);                                                                                                                      \
        if (last && (when) == AFTERWARDS) begun(&request);                                                                             \
        if (!last || (when) == AFTERWARDS) ended(&request);                                                                            \
    } while (0)

/* On a communicator without requests of its own ranks cannot agree to meet. */
static void windows(MPI_Comm comm, int meet) {
    MPI_Win window, shared;
    int64_t words[WORDS], *memory;
    int right = (me + 1) % p, left = (me + p - 1) % p;
    for (int i = 0; i < WORDS; i++) words[i] = -1;
    BESIDE(AT_ONCE, MPI_Win_create(words, sizeof words, sizeof *words, MPI_INFO_NULL, comm, &window));
    for (int run = 0; run < 4; run++) {
        /* Only where ranks meet may one take its time, or begin afterwards. */
        enum when when = !meet || run % 2 == 0 ? AT_ONCE : run == 1 ? LATE : AFTERWARDS;
        int64_t mine = 10 * me + run;
        BESIDE(AT_ONCE, MPI_Win_fence(0, window));
        OK(MPI_Put(&mine, 1, MPI_INT64_T, right, run, 1, MPI_INT64_T, window));
        BESIDE(when, MPI_Win_fence(0, window));
        CHECK(words[run] == 10 * left + run);
    }
    BESIDE(AT_ONCE, MPI_Win_free(&window));
    CHECK(window == MPI_WIN_NULL);
    BESIDE(AT_ONCE, MPI_Win_allocate(sizeof words, sizeof *words, MPI_INFO_NULL, comm, &memory, &window));
    BESIDE(AT_ONCE, MPI_Win_allocate_shared(sizeof words, sizeof *words, MPI_INFO_NULL, comm, &memory, &shared));
    BESIDE(AT_ONCE, MPI_Win_free(&shared));
    BESIDE(AT_ONCE, MPI_Win_free(&window));
    BESIDE(AT_ONCE, MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window));
    BESIDE(AT_ONCE, MPI_Win_free(&window));
}

/* An access that the last rank completes after its allreduce. */
static void accesses(void) {
    MPI_Win window;
    MPI_Group world, other;
    int64_t word = -1, mine = 7;
    int last = p - 1;
    OK(MPI_Win_create(&word, sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    if (me == last) {
        int zero = 0;
        OK(MPI_Group_incl(world, 1, &zero, &other));
        BESIDE(AT_ONCE, MPI_Win_start(other, 0, window));
        OK(MPI_Put(&mine, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window));
        OK(MPI_Win_complete(window));
        OK(MPI_Group_free(&other));
    } else if (me == 0) {
        OK(MPI_Group_incl(world, 1, &last, &other));
        OK(MPI_Win_post(other, 0, window));
        BESIDE(AT_ONCE, MPI_Win_wait(window));
        CHECK(word == 7);
        OK(MPI_Group_free(&other));
    } else BESIDE(AT_ONCE, MPI_SUCCESS);
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&window));
}

/* What was completed before a barrier is known after it: on MPICH, which looks before it moves messages on, at once. Others may have to
 * send it first. */
#if defined MPICH_VERSION && !defined I_MPI_VERSION
enum { LOOKS = 1 };
#else
enum { LOOKS = 1000000 };
#endif

static void known(void) {
    MPI_Win window;
    MPI_Group world, other;
    int64_t word = -1;
    int zero = 0, last = p - 1;
    OK(MPI_Win_create(&word, sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, me == 0 ? &last : &zero, &other));
    for (int run = 0; run < 20; run++) {
        int flag = 1;
        if (me == 0) {
            OK(MPI_Win_post(other, 0, window));
            OK(MPI_Win_test(window, &flag));
            CHECK(!flag);
        } else if (me == last) OK(MPI_Win_start(other, 0, window));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (me == last) OK(MPI_Win_complete(window));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (me > 0) continue;
        for (int look = flag = 0; !flag && look < LOOKS; look++) OK(MPI_Win_test(window, &flag));
        CHECK(flag);
    }
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&window));
}

static void files(MPI_Comm comm) {
    MPI_File file;
    MPI_Status status;
    int64_t words[WORDS], back[WORDS];
    char name[256];
    const char *folder = getenv("TMPDIR");
    int process = getpid(), block = WORDS * sizeof *words;
    OK(MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, sizeof name, "%s/allhands-waiting-%d", folder ? folder : "/tmp", process);
    for (int i = 0; i < WORDS; i++) words[i] = 1000 * me + i;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    BESIDE(AT_ONCE, MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file));
    BESIDE(AT_ONCE, MPI_File_set_size(file, 0));
    BESIDE(AT_ONCE, MPI_File_write_at_all(file, (MPI_Offset)me * block, words, WORDS, MPI_INT64_T, &status));
    BESIDE(AT_ONCE, MPI_File_sync(file));
    BESIDE(AT_ONCE, MPI_File_read_at_all(file, (MPI_Offset)((me + 1) % p) * block, back, WORDS, MPI_INT64_T, &status));
    for (int i = 0; i < WORDS; i++) CHECK(back[i] == 1000 * ((me + 1) % p) + i);
    BESIDE(AT_ONCE, MPI_File_set_view(file, (MPI_Offset)me * block, MPI_INT64_T, MPI_INT64_T, "native", MPI_INFO_NULL));
    for (int i = 0; i < WORDS; i++) words[i] += 5;
    BESIDE(AT_ONCE, MPI_File_write_all(file, words, WORDS, MPI_INT64_T, &status));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    BESIDE(AT_ONCE, MPI_File_read_all(file, back, WORDS, MPI_INT64_T, &status));
    CHECK(!memcmp(words, back, sizeof words));
    memset(back, 0, sizeof back);
    BESIDE(AT_ONCE, MPI_File_read_at_all_begin(file, 0, back, WORDS, MPI_INT64_T));
    BESIDE(AT_ONCE, MPI_File_read_at_all_end(file, back, &status));
    CHECK(!memcmp(words, back, sizeof words));
    BESIDE(AT_ONCE, MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

static void communicators(void) {
    MPI_Group world;
    MPI_Comm made, merged;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    BESIDE(AT_ONCE, MPI_Comm_create_group(MPI_COMM_WORLD, world, 5, &made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&world));
    if (p != 2) return;
#if defined(MPICH_VERSION) && !defined(I_MPI_VERSION)
    /* MPICH 5.0.2 waits here without its progress engine, and hangs beside its own non-blocking collectives as well. */
    OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - me, 6, &made));
#else
    BESIDE(AT_ONCE, MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - me, 6, &made));
#endif
    BESIDE(AT_ONCE, MPI_Intercomm_merge(made, me, &merged));
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&made));
}

int main(int count, char **words) {
    MPI_Comm quiet;
    begun_with(&count, &words);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &quiet));
    windows(quiet, theirs);
    files(quiet);
    windows(MPI_COMM_WORLD, 1);
    accesses();
    if (p > 1) known();
    files(MPI_COMM_WORLD);
    communicators();
    OK(MPI_Comm_free(&quiet));
    if (me == 0) printf("waiting: %d ranks, all right\n", p);
    MPI_Finalize();
    return 0;
}
