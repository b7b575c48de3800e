/* `window slot=W group=G how=H`: a window is made in place of another, by create or allocate
 * `access slot=W how=H op=O by=D seed=X`: each rank accesses the one D further: between fences, locks, or post, start, complete and wait
 * `file group=G count=C seed=X`: a file is opened, written, read and closed by all ranks
 * `local group=G count=C seed=X`: calls that need no other rank */
#include "fuzz.h"

#include <unistd.h>

/* Words of a window for each rank. */
enum { WORDS = 4 };

void window_freed(Actor *actor, Window *window) {
    if (!window->there) return;
    int64_t *own = window->allocated ? NULL : window->memory;
    OK(MPI_Win_free(&window->window));
    free(own);
    window->there = 0;
}

static void made(Actor *actor, Window *window, int slot, int allocated) {
    const Group *group = &actor->groups[slot];
    window_freed(actor, window);
    if (!group->there || group->inter) return;
    MPI_Aint bytes = (MPI_Aint)group->n * WORDS * sizeof(int64_t);
    window->group = *group;
    window->slot = slot;
    window->allocated = allocated;
    if (allocated) OK(MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, group->comm, &window->memory, &window->window));
    else {
        window->memory = memory(bytes);
        OK(MPI_Win_create(window->memory, bytes, sizeof(int64_t), MPI_INFO_NULL, group->comm, &window->window));
    }
    window->there = 1;
}

static int64_t before(uint64_t seed, int rank, int word) { return hash(seed, rank, word, 91) >> 8; }
static int64_t put(uint64_t seed, int rank, int word) { return hash(seed, rank, word, 92) >> 8; }

typedef enum { PUT, GET, ACCUMULATE, GET_ACCUMULATE } Access;

/* What a rank does to another's words. */
static void accessed(Actor *actor, Window *window, Access access, int target, uint64_t seed, int64_t *out, int64_t *in) {
    int me = window->group.me;
    MPI_Aint at = (MPI_Aint)me * WORDS;
    for (int w = 0; w < WORDS; w++) out[w] = put(seed, me, w), in[w] = -1;
    switch (access) {
    case PUT: OK(MPI_Put(out, WORDS, MPI_INT64_T, target, at, WORDS, MPI_INT64_T, window->window)); break;
    case GET: OK(MPI_Get(in, WORDS, MPI_INT64_T, target, at, WORDS, MPI_INT64_T, window->window)); break;
    case ACCUMULATE: OK(MPI_Accumulate(out, WORDS, MPI_INT64_T, target, at, WORDS, MPI_INT64_T, MPI_SUM, window->window)); break;
    case GET_ACCUMULATE:
        OK(MPI_Get_accumulate(out, WORDS, MPI_INT64_T, in, WORDS, MPI_INT64_T, target, at, WORDS, MPI_INT64_T, MPI_BXOR, window->window));
        break;
    }
}

static void stored(const Window *window, uint64_t seed) {
    for (int w = 0; w < window->group.n * WORDS; w++) window->memory[w] = before(seed, window->group.me, w);
}

static void window_checked(Actor *actor, const Window *window, Access access, int source, int target, uint64_t seed, const int64_t *in) {
    int me = window->group.me;
    for (int w = 0; w < window->group.n * WORDS; w++) {
        int64_t want = before(seed, me, w), given = put(seed, source, w % WORDS);
        if (w / WORDS == source && access == PUT) want = given;
        if (w / WORDS == source && access == ACCUMULATE) want += given;
        if (w / WORDS == source && access == GET_ACCUMULATE) want ^= given;
        if (window->memory[w] != want) wrong(actor, "word %d of a window is %ld, not %ld", w, (long)window->memory[w], (long)want);
    }
    for (int w = 0; w < WORDS && (access == GET || access == GET_ACCUMULATE); w++)
        if (in[w] != before(seed, target, me * WORDS + w)) wrong(actor, "word %d from a window is %ld", w, (long)in[w]);
}

static void access_run(Actor *actor, Window *window) {
    const Line *line = actor->line;
    const Group *g = &window->group;
    uint64_t seed = number(line, "seed", 0);
    int by = number(line, "by", 1) % g->n, target = (g->me + by) % g->n, source = (g->me + g->n - by) % g->n;
    Access access = is(line, "op", "get") ? GET : is(line, "op", "accumulate") ? ACCUMULATE : is(line, "op", "fetch") ? GET_ACCUMULATE : PUT;
    int64_t out[WORDS], in[WORDS];
    MPI_Win win = window->window;
    if (is(line, "how", "fence") || (STARTING_MOVES_NOTHING && is(line, "how", "post"))) {
        stored(window, seed);
        OK(MPI_Win_fence(0, win));
        accessed(actor, window, access, target, seed, out, in);
        OK(MPI_Win_fence(0, win));
        window_checked(actor, window, access, source, target, seed, in);
        /* Nobody changes what others still read. */
        OK(MPI_Win_fence(0, win));
        return;
    }
    if (is(line, "how", "post")) {
        MPI_Group all, to, from;
        stored(window, seed);
        OK(MPI_Win_get_group(win, &all));
        OK(MPI_Group_incl(all, 1, &target, &to));
        OK(MPI_Group_incl(all, 1, &source, &from));
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        accessed(actor, window, access, target, seed, out, in);
        OK(MPI_Win_complete(win));
        if (seed % 2) OK(MPI_Win_wait(win));
        else
            for (int flag = 0; !flag;) OK(MPI_Win_test(win, &flag));
        OK(MPI_Group_free(&all));
        OK(MPI_Group_free(&to));
        OK(MPI_Group_free(&from));
        window_checked(actor, window, access, source, target, seed, in);
        return;
    }
    int every = is(line, "how", "lockall");
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g->me, 0, win));
    stored(window, seed);
    OK(MPI_Win_unlock(g->me, win));
    OK(MPI_Barrier(g->comm));
    if (every) OK(MPI_Win_lock_all(0, win));
    else OK(MPI_Win_lock(seed % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
    accessed(actor, window, access, target, seed, out, in);
    if (seed % 3 == 0) OK(MPI_Win_flush(target, win));
    if (every) OK(MPI_Win_unlock_all(win));
    else OK(MPI_Win_unlock(target, win));
    OK(MPI_Barrier(g->comm));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g->me, 0, win));
    window_checked(actor, window, access, source, target, seed, in);
    OK(MPI_Win_unlock(g->me, win));
    OK(MPI_Barrier(g->comm));
}

void run_window(Actor *actor) {
    if (WINDOWS_OF_THREADS_CRASH && several_threads) return;
    const Line *line = actor->line;
    Window *window = &actor->windows[number(line, "slot", 0) % WINDOWS];
    if (!strncmp(line->text, "window", 6)) made(actor, window, number(line, "group", 0) % GROUPS, is(line, "how", "allocate"));
    else if (window->there) access_run(actor, window);
}

void run_file(Actor *actor) {
    const Line *line = actor->line;
    const Group *g = &actor->groups[number(line, "group", 0) % GROUPS];
    if (!g->there || g->inter || (FILES_OF_THREADS_HANG && several_threads)) return;
    uint64_t seed = number(line, "seed", 0);
    long count = number(line, "count", 10);
    const char *folder = getenv("TMPDIR");
    int process = getpid(), from = (g->me + 1) % g->n;
    char name[256];
    OK(MPI_Bcast(&process, 1, MPI_INT, 0, g->comm));
    snprintf(name, sizeof name, "%s/allhands-fuzz-%d-%d-%d", folder ? folder : "/tmp", process, line->number, actor->thread);
    int64_t *out = memory(count * sizeof *out + 8), *in = memory(count * sizeof *in + 8);
    for (long i = 0; i < count; i++) out[i] = hash(seed, g->me, i, 71);
    MPI_File file;
    MPI_Offset bytes = count * sizeof *out;
    MPI_Status status;
    OK(MPI_File_open(g->comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at_all(file, g->me * bytes, out, count, MPI_INT64_T, &status));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(g->comm));
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, from * bytes, in, count, MPI_INT64_T, &status));
    OK(MPI_File_close(&file));
    for (long i = 0; i < count; i++)
        if (in[i] != (int64_t)hash(seed, from, i, 71)) wrong(actor, "word %ld of a file is %lx", i, (long)in[i]);
    free(in);
    free(out);
}

void run_local(Actor *actor) {
    const Group *g = &actor->groups[number(actor->line, "group", 0) % GROUPS];
    int flag, size, rank, length, count = number(actor->line, "count", 3) % 100 + 1, place = 0;
    char name[MPI_MAX_PROCESSOR_NAME], packed[1024];
    double words[128], back[128];
    if (!g->there) return;
    OK(MPI_Comm_rank(g->comm, &rank));
    OK(MPI_Comm_size(g->comm, &size));
    if (rank != g->me || size != g->n) wrong(actor, "rank %d of %d has become %d of %d", g->me, g->n, rank, size);
    OK(MPI_Initialized(&flag));
    OK(MPI_Get_processor_name(name, &length));
    if (MPI_Wtime() < 0) wrong(actor, "time runs backwards");
    for (int i = 0; i < count; i++) words[i] = i, back[i] = 2;
    OK(MPI_Pack(words, count, MPI_DOUBLE, packed, sizeof packed, &place, g->comm));
    place = 0;
    OK(MPI_Unpack(packed, sizeof packed, &place, back, count, MPI_DOUBLE, g->comm));
    if (memcmp(words, back, count * sizeof *words)) wrong(actor, "what was packed was unpacked differently");
    OK(MPI_Reduce_local(words, back, count, MPI_DOUBLE, MPI_SUM));
    for (int i = 0; i < count; i++)
        if (back[i] != 2 * i) wrong(actor, "MPI_Reduce_local: %g, not %d", back[i], 2 * i);
}
