/* Plans for gather, gatherv, scatter, scatterv, alltoallw, scan and exscan: from and to every root, in place, with counts that differ and are
 * nothing for some, of ints and of a datatype with gaps. Arguments that count at the root only are nonsense elsewhere, arrays are spoilt and
 * datatypes freed once a plan is made. Every plan runs twice, on new data; memory between the data must stay as it was. Run by
 * `cargo xtask capi`. */
#include <allhands.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8 /* ranks */, ROOM = 1 << 18, EMPTY = -1 };

static int rank, size, plans;

#define check(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "rank %d, line %d: not %s; %s\n", rank, __LINE__, #condition, allhands_last_error()); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                      \
        }                                                                                                      \
    } while (0)

/* What is sent, what is received, and what both must hold in the end. */
static int from[ROOM], to[ROOM], sent[ROOM], wanted[ROOM];

/* No address of anything. */
static void *volatile nonsense = (void *)16;

/* An int alone, and an int with one int of nothing after it. */
typedef struct {
    MPI_Datatype type;
    int stride;
} shape;
static shape shapes[2];

/* Blocks of a buffer: where each begins, how far apart its ints lie, how many there are, and from which rank to which they go. */
typedef struct {
    int number, end;
    struct {
        int place, stride, count, source, target;
    } each[MOST];
} blocks;

static void add(blocks *all, int place, int stride, int count, int source, int target) {
    int i = all->number++, end = place + count * stride;
    check(i < MOST && end < ROOM);
    all->each[i].place = place;
    all->each[i].stride = stride;
    all->each[i].count = count;
    all->each[i].source = source;
    all->each[i].target = target;
    if (end > all->end) all->end = end;
}

static void put(const blocks *all, int run, int *memory) {
    int i, j;
    for (i = 0; i < all->number; i++)
        for (j = 0; j < all->each[i].count; j++)
            memory[all->each[i].place + j * all->each[i].stride] =
                ((run * MOST + all->each[i].source) * MOST + all->each[i].target) * 20000 + j;
}

/* What a plan does: what is sent from one buffer, what is there in the other before, and what there is after. */
typedef struct {
    const char *name;
    blocks gives, has, gets;
} job;

static int most(int a, int b) { return a > b ? a : b; }

static void run_twice(const job *job, allhands_plan *plan) {
    int length = most(most(job->gives.end, job->has.end), job->gets.end) + 4, run, i;
    for (run = 0; run < 2; run++) {
        for (i = 0; i < length; i++) from[i] = to[i] = sent[i] = wanted[i] = EMPTY;
        put(&job->gives, run, from);
        put(&job->gives, run, sent);
        put(&job->has, run, to);
        put(&job->gets, run, wanted);
        if (run == 0) check(allhands_run(plan) == 0);
        if (run == 1) check(allhands_start(plan) == 0 && allhands_wait(plan) == 0);
        for (i = 0; i < length; i++) {
            if (from[i] == sent[i] && to[i] == wanted[i]) continue;
            fprintf(stderr, "rank %d: %s, run %d: int %d of %d is %d, not %d; what is sent is %d there, not %d\n", rank, job->name,
                    run, i, length, to[i], wanted[i], from[i], sent[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    check(allhands_free(&plan) == 0 && plan == NULL);
    plans++;
}

/* How one plan differs from another. */
typedef struct {
    int root, scale, in_place;
    const shape *out, *in;
    const char *options;
} way;

static void gather(const way *way) {
    int root = way->root, count = 3 * way->scale, here = rank == root, place = here && way->in_place, i;
    job job = {"gather", {0}, {0}, {0}};
    allhands_plan *plan;
    if (!place) add(&job.gives, 0, way->out->stride, count, rank, root);
    if (place) add(&job.has, rank * count * way->in->stride, way->in->stride, count, rank, root);
    for (i = 0; i < size && here; i++) add(&job.gets, i * count * way->in->stride, way->in->stride, count, i, root);
    check(allhands_gather_init(place ? MPI_IN_PLACE : from, place ? -1 : count, place ? MPI_DATATYPE_NULL : way->out->type,
                               here ? to : nonsense, here ? count : -1, here ? way->in->type : MPI_DATATYPE_NULL, root,
                               MPI_COMM_WORLD, way->options, &plan) == 0);
    run_twice(&job, plan);
}

static void scatter(const way *way) {
    int root = way->root, count = 3 * way->scale, here = rank == root, place = here && way->in_place, i;
    job job = {"scatter", {0}, {0}, {0}};
    allhands_plan *plan;
    for (i = 0; i < size && here; i++) add(&job.gives, i * count * way->out->stride, way->out->stride, count, root, i);
    if (!place) add(&job.gets, 0, way->in->stride, count, root, rank);
    check(allhands_scatter_init(here ? from : nonsense, here ? count : -1, here ? way->out->type : MPI_DATATYPE_NULL,
                                place ? MPI_IN_PLACE : to, place ? -1 : count, place ? MPI_DATATYPE_NULL : way->in->type, root,
                                MPI_COMM_WORLD, way->options, &plan) == 0);
    run_twice(&job, plan);
}

/* A count for each rank, nothing for some, and places: one after the other, or the other way round with gaps. */
static void list(const way *way, int64_t *counts, int64_t *places) {
    int64_t end = 0;
    int i, turned = way->root % 2;
    for (i = 0; i < size; i++) counts[i] = (2 * i + way->root + 1) % 4 * way->scale;
    for (i = 0; i < size; i++) {
        int one = turned ? size - 1 - i : i;
        places[one] = end;
        end += counts[one] + 3 * turned;
    }
}

static void spoil(int64_t *counts, int64_t *places) {
    int i;
    for (i = 0; i < MOST; i++) counts[i] = places[i] = -1;
}

static void gatherv(const way *way) {
    int root = way->root, here = rank == root, place = here && way->in_place, stride = way->in->stride, i;
    int64_t counts[MOST], places[MOST], *none = nonsense;
    job job = {"gatherv", {0}, {0}, {0}};
    allhands_plan *plan;
    list(way, counts, places);
    if (!place) add(&job.gives, 0, way->out->stride, counts[rank], rank, root);
    if (place) add(&job.has, places[rank] * stride, stride, counts[rank], rank, root);
    for (i = 0; i < size && here; i++) add(&job.gets, places[i] * stride, stride, counts[i], i, root);
    check(allhands_gatherv_init(place ? MPI_IN_PLACE : from, place ? -1 : counts[rank],
                                place ? MPI_DATATYPE_NULL : way->out->type, here ? to : nonsense, here ? counts : none,
                                here ? places : none, here ? way->in->type : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD, way->options,
                                &plan) == 0);
    spoil(counts, places);
    run_twice(&job, plan);
}

static void scatterv(const way *way) {
    int root = way->root, here = rank == root, place = here && way->in_place, stride = way->out->stride, i;
    int64_t counts[MOST], places[MOST], *none = nonsense;
    job job = {"scatterv", {0}, {0}, {0}};
    allhands_plan *plan;
    list(way, counts, places);
    for (i = 0; i < size && here; i++) add(&job.gives, places[i] * stride, stride, counts[i], root, i);
    if (!place) add(&job.gets, 0, way->in->stride, counts[rank], root, rank);
    check(allhands_scatterv_init(here ? from : nonsense, here ? counts : none, here ? places : none,
                                 here ? way->out->type : MPI_DATATYPE_NULL, place ? MPI_IN_PLACE : to, place ? -1 : counts[rank],
                                 place ? MPI_DATATYPE_NULL : way->in->type, root, MPI_COMM_WORLD, way->options, &plan) == 0);
    spoil(counts, places);
    run_twice(&job, plan);
}

/* Blocks of different datatypes, which are freed before the plan runs; of a block of nothing there is none. In place, what is sent makes room
 * for what comes, so it is as much. */
static int between(const way *way, int source, int target) {
    return (way->in_place ? 2 * source + 2 * target + source * target : source + 3 * target) % 4 * way->scale;
}

static void alltoallw(const way *way) {
    int64_t counts[2][MOST], places[2][MOST], *none = nonsense, end;
    MPI_Datatype types[2][MOST];
    job job = {"alltoallw", {0}, {0}, {0}};
    allhands_plan *plan;
    int side, i;
    for (side = 0; side < 2; side++) {
        for (i = 0, end = side; i < size; i++) {
            const shape *shape = way->root == 0 ? &shapes[0] : &shapes[(rank + i + side) % 2];
            int count = side == 0 ? between(way, rank, i) : between(way, i, rank);
            counts[side][i] = count;
            places[side][i] = end * (int64_t)sizeof(int);
            types[side][i] = MPI_DATATYPE_NULL;
            if (count > 0) MPI_Type_dup(shape->type, &types[side][i]);
            if (side == 0 && !way->in_place) add(&job.gives, end, shape->stride, count, rank, i);
            if (side == 1 && way->in_place) add(&job.has, end, shape->stride, count, rank, i);
            if (side == 1) add(&job.gets, end, shape->stride, count, i, rank);
            end += count * shape->stride + way->root;
        }
    }
    if (way->in_place)
        check(allhands_alltoallw_init(MPI_IN_PLACE, none, none, nonsense, to, counts[1], places[1], types[1], MPI_COMM_WORLD,
                                      way->options, &plan) == 0);
    else
        check(allhands_alltoallw_init(from, counts[0], places[0], types[0], to, counts[1], places[1], types[1], MPI_COMM_WORLD,
                                      way->options, &plan) == 0);
    for (side = 0; side < 2; side++) {
        spoil(counts[side], places[side]);
        for (i = 0; i < size; i++)
            if (types[side][i] != MPI_DATATYPE_NULL) MPI_Type_free(&types[side][i]);
    }
    run_twice(&job, plan);
}

/* Sums of the vectors of all ranks up to this one, or before it: the first gets none, and has nowhere to put it. */
static void prefixes(int exclusive, int count, int in_place, const char *options) {
    int ranks = exclusive ? rank : rank + 1, run, i;
    const void *input = in_place ? MPI_IN_PLACE : from;
    void *output = ranks == 0 && !in_place ? NULL : to;
    allhands_plan *plan;
    if (exclusive) check(allhands_exscan_init(input, output, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, options, &plan) == 0);
    else check(allhands_scan_init(input, output, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, options, &plan) == 0);
    for (run = 0; run < 2; run++) {
        for (i = 0; i < count; i++) {
            from[i] = 10 * rank + i + run;
            to[i] = in_place ? from[i] : EMPTY;
        }
        to[count] = EMPTY;
        if (run == 0) check(allhands_run(plan) == 0);
        if (run == 1) check(allhands_start(plan) == 0 && allhands_wait(plan) == 0);
        for (i = 0; i < count; i++) {
            check(from[i] == 10 * rank + i + run);
            if (ranks > 0) check(to[i] == 5 * ranks * (ranks - 1) + ranks * (i + run));
            if (ranks == 0 && !in_place) check(to[i] == EMPTY);
        }
        check(to[count] == EMPTY);
    }
    check(allhands_free(&plan) == 0);
    plans++;
}

int main(int argc, char **argv) {
    static const int scales[] = {1, 2500, 0};
    int i, exclusive;
    MPI_Datatype gaps;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(size <= MOST);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    shapes[0].type = MPI_INT;
    shapes[0].stride = 1;
    shapes[1].type = gaps;
    shapes[1].stride = 2;
    /* The library chooses, or the MPI's own collectives serve. Either end of a block has a datatype of its own. */
    for (i = 0; i < 3 * 2 * 2 * 4; i++) {
        way way;
        way.scale = scales[i % 3];
        way.in_place = i / 3 % 2;
        way.options = i / 6 % 2 ? "mpi" : NULL;
        way.out = &shapes[i / 12 % 2];
        way.in = &shapes[(i / 24 + rank) % 2];
        for (way.root = 0; way.root < size; way.root++) {
            gather(&way);
            scatter(&way);
            gatherv(&way);
            scatterv(&way);
        }
        /* All of one datatype and one after the other, or not. */
        way.root = i / 12 % 2;
        alltoallw(&way);
        for (exclusive = 0; exclusive < 2; exclusive++) prefixes(exclusive, 3 * way.scale, way.in_place, way.options);
    }
    MPI_Type_free(&gaps);
    if (rank == 0) printf("blocks are where they belong, by %d plans\n", plans);
    MPI_Finalize();
    return 0;
}
