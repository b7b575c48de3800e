/* `collective group=G name=N form=F kind=K op=O count=C root=R inplace=I large=L bottom=B early=E unread=U alike=A turned=T seed=S again=M`
 *
 * form: blocking, begun or persistent. C elements a block; a vector form has 0, 1 or 2 times as many, by rank. Where data only move, ranks
 * may lay them out as each likes. large: the function with large counts, where there is one. bottom: MPI_BOTTOM and an absolute address.
 * early: types and operations are freed while the collective is under way. unread: arguments that MPI does not look at, on other ranks than the
 * root or in place, are null or nonsense. alike: elements that are exchanged in place have gaps, the same on both sides. turned: the blocks of a
 * vector form lie from the last to the first. again: the same call, with other data. What neighbours do needs a communicator with a topology. */
#include "fuzz.h"

enum name {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    NAMES
};
static const char *const names[NAMES] = {"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv", "alltoallw", "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
    "neighbor_alltoallw", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"};

enum form { BLOCKING, BEGUN, PERSISTENT, FORMS };

/* What is sent or received: blocks, each with its place. */
typedef struct {
    int blocks;
    long elements[MOST_EDGES];
    Layout layouts[MOST_EDGES];
    size_t starts[MOST_EDGES], bytes;
    char *memory;
    /* What MPI gets. */
    const void *start;
    int counts[MOST_EDGES], places[MOST_EDGES];
    MPI_Count large_counts[MOST_EDGES];
    MPI_Aint large_places[MOST_EDGES];
    MPI_Datatype types[MOST_EDGES];
    MPI_Datatype absolute;
    int is_absolute, unread;
} Side;

typedef struct {
    enum name name;
    enum form form;
    Group group;
    int large, in_place, root, i_am_root, bottom, early, unread, alike, turned;
    uint64_t seed;
    long count;
    const Kind *kind;
    Operation operation;
    MPI_Op op;
    int op_mine;
    Side out, in; /* what is given, what comes */
    int layouts_freed;
} Job;

static int is_reduction(enum name name) { return name >= REDUCE; }
static int among_neighbors(enum name name) { return name >= NEIGHBOR_ALLGATHER && name <= NEIGHBOR_ALLTOALLW; }
static int has_type_for_each(enum name name) { return name == ALLTOALLW || name == NEIGHBOR_ALLTOALLW; }

/* How many elements a rank's block has, or those from one rank to another, or along one of its edges. */
static long amount(const Job *job, int from, int to) {
    int among = job->name == NEIGHBOR_ALLTOALLV || job->name == NEIGHBOR_ALLTOALLW;
    int both = among || job->name == ALLTOALLV || job->name == ALLTOALLW;
    int vector = both || job->name == GATHERV || job->name == SCATTERV || job->name == ALLGATHERV || job->name == NEIGHBOR_ALLGATHERV
                 || job->name == REDUCE_SCATTER;
    if (!vector) return job->count;
    /* In place, as much comes from a rank as goes there. */
    if (both && job->in_place && from > to) {
        int other = from;
        from = to, to = other;
    }
    return job->count * (long)(hash(job->seed, 11, from, both ? to : -1) % 3);
}

/* Ranks of the second group of an intercommunicator are others than those of the first. */
static int mine(const Job *job, int rank) { return rank + 100 * job->group.side; }
static int theirs(const Job *job, int rank) { return job->group.inter ? rank + 100 * (1 - job->group.side) : rank; }

static uint64_t drawn(const Job *job, int run, int from, int to, long index) {
    return hash(job->seed + 7919 * (uint64_t)run, job->group.leader, from * 1000 + to + 500, index);
}

static Element sent(const Job *job, int run, int from, int to, long index) { return moved(job->kind, drawn(job, run, from, to, index)); }

static Element given(const Job *job, int run, int rank, long index) {
    return reduced_from(job->operation, drawn(job, run, rank, 0, index), rank);
}

static Element reduced(const Job *job, int run, int ranks, long index) {
    Element all = given(job, run, theirs(job, 0), index);
    for (int r = 1; r < ranks; r++) all = combined(job->operation, all, given(job, run, theirs(job, r), index));
    return all;
}

/* Whether this MPI, by form, has what is sent one way along a ring come from the other where that cannot be told from the rank. MPI says that it is
 * so. */
static int by_direction[FORMS];

void rings_probed(void) {
    int size = 1, periodic = 1, given[2] = {0, 1}, came[2];
    MPI_Comm ring;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_SELF, 1, &size, &periodic, 0, &ring);
    for (enum form form = BLOCKING; form < FORMS; form++) {
        if (form == BLOCKING) MPI_Neighbor_alltoall(given, 1, MPI_INT, came, 1, MPI_INT, ring);
        else if (form == BEGUN) MPI_Ineighbor_alltoall(given, 1, MPI_INT, came, 1, MPI_INT, ring, &request);
        else {
            MPI_Neighbor_alltoall_init(given, 1, MPI_INT, came, 1, MPI_INT, ring, MPI_INFO_NULL, &request);
            MPI_Start(&request);
        }
        if (form != BLOCKING) MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (form == PERSISTENT) MPI_Request_free(&request);
        by_direction[form] = came[0] == 1;
    }
    MPI_Comm_free(&ring);
}

/* Which of its source's blocks a neighbour's is. */
static int which(const Job *job, int block) {
    const Neighbors *neighbors = &job->group.neighbors;
    if (job->name <= NEIGHBOR_ALLGATHERV) return 0;
    return neighbors->grid && by_direction[job->form] ? block ^ 1 : neighbors->which[block];
}

/* ---- buffers ---- */

/* Of a block that is exchanged in place: both ranks draw the same. */
static uint64_t drawn_alike(const Job *job, int block) {
    int me = job->group.me, each = job->name == ALLTOALLW;
    return each ? hash(job->seed, 23, me < block ? me : block, me < block ? block : me) : hash(job->seed, 23, 0, 0);
}

/* Lays blocks out one after the other, in a vector form with gaps between some. */
static void laid_out(const Actor *actor, Job *job, Side *side, int blocks, const long *elements, int gaps, uint64_t draw) {
    int each = has_type_for_each(job->name);
    /* In place, what is sent and what is received lie alike. */
    int exchanged = job->in_place && job->name >= ALLTOALL && job->name <= ALLTOALLW, turned = gaps && job->turned;
    int plain = (exchanged && !job->alike) || (PERSISTENT_GAPS_ARE_FORGOTTEN && job->form == PERSISTENT);
    long place = 0;
    side->blocks = blocks;
    for (int k = 0; k < blocks; k++) {
        int b = turned ? blocks - 1 - k : k, first = turned ? blocks - 1 : 0;
        side->elements[b] = elements[b];
        if (b != first && !each) side->layouts[b] = side->layouts[first], side->layouts[b].mine = 0;
        else if (plain) side->layouts[b] = layout_made(actor, job->kind, 0);
        else if (exchanged) side->layouts[b] = layout_drawn(actor, job->kind, job->count, drawn_alike(job, b));
        else if (!is_reduction(job->name)) side->layouts[b] = layout_drawn(actor, job->kind, job->count, hash(draw, b, 1, 1));
        else side->layouts[b] = layout_made(actor, job->kind, job->operation >= MODULAR ? hash(job->seed, 3, 3, 3) % 2 : 0);
        const Layout *layout = &side->layouts[b];
        int counts = elements[b] / layout->elements, gap = gaps && hash(draw, b, 2, 2) % 2;
        side->starts[b] = each ? side->bytes : (size_t)place * layout->extent * job->kind->size;
        side->counts[b] = side->large_counts[b] = counts;
        side->places[b] = side->large_places[b] = each ? (long)side->starts[b] : place;
        side->types[b] = layout->type;
        place += counts + gap;
        side->bytes = side->starts[b] + (size_t)(counts + gap) * layout->extent * job->kind->size;
    }
    if (blocks == 0) side->types[0] = job->kind->type;
    /* Without neighbours a rank says how much it would be, as all others do. */
    if (blocks == 0 && among_neighbors(job->name)) side->counts[0] = side->large_counts[0] = job->count;
    side->memory = memory(side->bytes + 64);
    side->start = side->memory;
}

/* The whole block as one element at an absolute address. */
static void made_absolute(const Actor *actor, Side *side) {
    MPI_Aint address;
    /* MPICH 5.0.2 never ends an MPI_Iscatterv in which a rank receives one element of no bytes. */
    if (side->counts[0] == 0) return;
    OK(MPI_Get_address(side->memory, &address));
    OK(MPI_Type_create_hindexed(1, side->counts, &address, side->types[0], &side->absolute));
    OK(MPI_Type_commit(&side->absolute));
    side->is_absolute = 1;
    side->start = MPI_BOTTOM;
    side->types[0] = side->absolute;
    side->counts[0] = side->large_counts[0] = 1;
}

/* MPI does not look at it: there are no arrays, no type, and no memory. */
static void made_unread(Side *side, uint64_t draw) {
    side->unread = 1;
    side->start = draw % 2 ? NULL : (const void *)16;
    side->types[0] = MPI_DATATYPE_NULL;
    side->counts[0] = side->large_counts[0] = -1;
}

static void filled(Side *side, int block, long index, const Kind *kind, Element element) {
    store(kind, element_at(&side->layouts[block], side->memory + side->starts[block], index), element);
}

/* Lays out both buffers. */
static void shaped(const Actor *actor, Job *job) {
    const Group *g = &job->group;
    int others = g->inter ? g->remote : g->n, vector = job->name == GATHERV || job->name == SCATTERV || job->name == ALLGATHERV
                                                       || job->name == ALLTOALLV || job->name == ALLTOALLW || job->name == NEIGHBOR_ALLGATHERV
                                                       || job->name == NEIGHBOR_ALLTOALLV || job->name == NEIGHBOR_ALLTOALLW;
    long out[MOST_EDGES], in[MOST_EDGES], whole = 0;
    int outs = 1, ins = 1;
    out[0] = in[0] = job->count;
    for (int r = 0; r < g->n; r++) whole += amount(job, r, 0);
    switch (job->name) {
    case BARRIER: outs = ins = 0; break;
    case BCAST: outs = 0; break;
    case GATHER:
    case GATHERV:
    case ALLGATHER:
    case ALLGATHERV:
        out[0] = amount(job, g->me, 0);
        ins = others;
        for (int r = 0; r < others; r++) in[r] = amount(job, r, 0);
        if ((job->name == GATHER || job->name == GATHERV) && !job->i_am_root) ins = 0;
        break;
    case SCATTER:
    case SCATTERV:
        in[0] = amount(job, g->me, 0);
        outs = job->i_am_root ? others : 0;
        for (int r = 0; r < others; r++) out[r] = amount(job, r, 0);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        outs = ins = others;
        for (int r = 0; r < others; r++) out[r] = amount(job, g->me, r), in[r] = amount(job, r, g->me);
        break;
    case NEIGHBOR_ALLTOALL:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLGATHERV:
        outs = job->name <= NEIGHBOR_ALLGATHERV ? 1 : g->neighbors.out;
        ins = g->neighbors.in;
        for (int b = 0; b < outs; b++) out[b] = amount(job, g->me, b);
        for (int b = 0; b < ins; b++) in[b] = amount(job, g->neighbors.source[b], which(job, b));
        break;
    case REDUCE: ins = job->i_am_root; break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
        out[0] = whole;
        in[0] = job->in_place ? whole : amount(job, g->me, 0);
        break;
    default: break;
    }
    /* Ranks may lay data out each as it likes; the MPIs themselves get that wrong now and then, so it is not done every time. */
    int own = job->seed % 4 ? 0 : g->me;
    laid_out(actor, job, &job->out, outs, out, vector, hash(job->seed, 21, own, 0));
    laid_out(actor, job, &job->in, ins, in, vector, hash(job->seed, 22, own, 0));
    int one_out = job->name == GATHER || job->name == GATHERV || job->name == ALLGATHER || job->name == ALLGATHERV
                  || job->name == NEIGHBOR_ALLGATHER || job->name == NEIGHBOR_ALLGATHERV;
    int one_in = job->name == SCATTER || job->name == SCATTERV || job->name == BCAST;
    if (job->bottom && one_out) made_absolute(actor, &job->out);
    if (job->bottom && one_in) made_absolute(actor, &job->in);
    if (!job->unread) return;
    int scatters = job->name == SCATTER || job->name == SCATTERV, of_root = job->name == GATHER || job->name == GATHERV || job->name == REDUCE;
    int out_unread = scatters ? !job->i_am_root : job->in_place && !is_reduction(job->name);
    int of_others = job->name == EXSCAN && g->me == 0 && !job->in_place && !EXSCAN_WANTS_MEMORY_FOR_NOTHING;
    int in_unread = scatters ? job->in_place : of_root ? !job->i_am_root : of_others;
    if (out_unread) made_unread(&job->out, hash(job->seed, 24, g->me, 0));
    if (in_unread) made_unread(&job->in, hash(job->seed, 25, g->me, 0));
}

/* What a rank's own input looks like, in the buffer where it belongs. */
static void inputs(Job *job, int run) {
    const Group *g = &job->group;
    Side *out = &job->out, *in = &job->in;
    memset(out->memory, UNTOUCHED, out->bytes + 64);
    memset(in->memory, UNTOUCHED, in->bytes + 64);
    Side *from = job->in_place && !(job->name == SCATTER || job->name == SCATTERV) ? in : out;
    int block = 0;
    switch (job->name) {
    case BARRIER: break;
    case BCAST:
        if (job->i_am_root)
            for (long i = 0; i < job->count; i++) filled(in, 0, i, job->kind, sent(job, run, mine(job, g->me), 0, i));
        break;
    case GATHER:
    case GATHERV:
    case ALLGATHER:
    case ALLGATHERV:
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLGATHERV:
        if (from == in) block = g->me;
        for (long i = 0; i < amount(job, g->me, 0); i++) filled(from, block, i, job->kind, sent(job, run, mine(job, g->me), 0, i));
        break;
    case SCATTER:
    case SCATTERV:
        for (int r = 0; r < out->blocks; r++)
            for (long i = 0; i < amount(job, r, 0); i++) filled(out, r, i, job->kind, sent(job, run, mine(job, g->me), r, i));
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
    case NEIGHBOR_ALLTOALL:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
        for (int r = 0; r < from->blocks; r++)
            for (long i = 0; i < from->elements[r]; i++) filled(from, r, i, job->kind, sent(job, run, mine(job, g->me), r, i));
        break;
    default:
        for (long i = 0; i < from->elements[0]; i++) filled(from, 0, i, job->kind, given(job, run, mine(job, g->me), i));
        break;
    }
}

/* Compares what came with what should have. */
static void verified(Actor *actor, Job *job, int run) {
    const Group *g = &job->group;
    Side *in = &job->in, want = job->in;
    int others = g->inter ? g->remote : g->n;
    char what[64];
    snprintf(what, sizeof what, "%s, run %d", names[job->name], run);
    long before = 0;
    if (job->name == BARRIER || (job->name == EXSCAN && g->me == 0)) return;
    /* The group that sends receives nothing. */
    if (g->inter && job->name == BCAST && job->root == MPI_PROC_NULL) return;
    want.memory = memory(want.bytes + 64);
    memset(want.memory, UNTOUCHED, want.bytes + 64);
    size_t bytes = want.bytes + 64;
    for (int r = 0; r < in->blocks; r++) {
        int from = among_neighbors(job->name) ? g->neighbors.source[r] : theirs(job, r);
        /* From nobody comes nothing. */
        if (from < 0) continue;
        for (long i = 0; i < in->elements[r]; i++) {
            Element e;
            switch (job->name) {
            case BCAST: e = sent(job, run, job->i_am_root ? mine(job, g->me) : theirs(job, job->root), 0, i); break;
            case SCATTER:
            case SCATTERV: e = sent(job, run, theirs(job, job->root), g->me, i); break;
            case ALLTOALL:
            case ALLTOALLV:
            case ALLTOALLW: e = sent(job, run, from, g->me, i); break;
            case NEIGHBOR_ALLGATHER:
            case NEIGHBOR_ALLGATHERV:
            case NEIGHBOR_ALLTOALL:
            case NEIGHBOR_ALLTOALLV:
            case NEIGHBOR_ALLTOALLW: e = sent(job, run, from, which(job, r), i); break;
            case REDUCE:
            case ALLREDUCE: e = reduced(job, run, others, i); break;
            case REDUCE_SCATTER:
            case REDUCE_SCATTER_BLOCK:
                if (i == 0)
                    for (int q = before = 0; q < g->me; q++) before += amount(job, q, 0);
                if (i >= amount(job, g->me, 0)) continue;
                e = reduced(job, run, others, before + i);
                break;
            case SCAN: e = reduced(job, run, g->me + 1, i); break;
            case EXSCAN: e = reduced(job, run, g->me, i); break;
            default: e = sent(job, run, from, 0, i); break;
            }
            filled(&want, r, i, job->kind, e);
        }
        blanked(&in->layouts[r], in->memory + in->starts[r], in->elements[r]);
    }
    /* Behind the result of a reduce_scatter in place lies what was read. */
    if (job->in_place && (job->name == REDUCE_SCATTER || job->name == REDUCE_SCATTER_BLOCK))
        bytes = layout_bytes(&in->layouts[0], amount(job, g->me, 0));
    /* A root that scatters in place receives nothing. */
    if (!(job->in_place && (job->name == SCATTER || job->name == SCATTERV))) compared(actor, job->kind, what, want.memory, in->memory, bytes);
    free(want.memory);
}

/* ---- calls ---- */

#define IN_FORM(large, Big, small, ...)                                                                                                  \
    (form == BLOCKING ? MPI_##Big##large(__VA_ARGS__, comm)                                                                              \
            : form == BEGUN ? MPI_I##small##large(__VA_ARGS__, comm, request)                                                            \
                            : MPI_##Big##_init##large(__VA_ARGS__, comm, MPI_INFO_NULL, request))

/* An array of which nothing may be read is none. */
#define ALL(side, of) (side->unread ? NULL : side->of)

#define CALLED(large, C, D)                                                                                                              \
    switch (job->name) {                                                                                                                 \
    case BARRIER:                                                                                                                        \
        return form == BLOCKING ? MPI_Barrier(comm)                                                                                      \
                : form == BEGUN ? MPI_Ibarrier(comm, request)                                                                            \
                                : MPI_Barrier_init(comm, MPI_INFO_NULL, request);                                                        \
    case BCAST: return IN_FORM(large, Bcast, bcast, (void *)in->start, in->C[0], in->types[0], root);                                    \
    case GATHER: return IN_FORM(large, Gather, gather, give, out->C[0], out->types[0], take, in->C[0], in->types[0], root);              \
    case GATHERV:                                                                                                                        \
        return IN_FORM(large, Gatherv, gatherv, give, out->C[0], out->types[0], take, ALL(in, C), ALL(in, D), in->types[0], root);       \
    case SCATTER: return IN_FORM(large, Scatter, scatter, give, out->C[0], out->types[0], take, in->C[0], in->types[0], root);           \
    case SCATTERV:                                                                                                                       \
        return IN_FORM(large, Scatterv, scatterv, give, ALL(out, C), ALL(out, D), out->types[0], take, in->C[0], in->types[0], root);    \
    case ALLGATHER: return IN_FORM(large, Allgather, allgather, give, out->C[0], out->types[0], take, in->C[0], in->types[0]);           \
    case ALLGATHERV: return IN_FORM(large, Allgatherv, allgatherv, give, out->C[0], out->types[0], take, in->C, in->D, in->types[0]);    \
    case ALLTOALL: return IN_FORM(large, Alltoall, alltoall, give, out->C[0], out->types[0], take, in->C[0], in->types[0]);              \
    case ALLTOALLV:                                                                                                                      \
        return IN_FORM(large, Alltoallv, alltoallv, give, ALL(out, C), ALL(out, D), out->types[0], take, in->C, in->D, in->types[0]);    \
    case ALLTOALLW:                                                                                                                      \
        return IN_FORM(large, Alltoallw, alltoallw, give, ALL(out, C), ALL(out, D), ALL(out, types), take, in->C, in->D, in->types);     \
    case NEIGHBOR_ALLGATHER:                                                                                                             \
        return IN_FORM(large, Neighbor_allgather, neighbor_allgather, give, out->C[0], out->types[0], take, in->C[0], in->types[0]);     \
    case NEIGHBOR_ALLGATHERV:                                                                                                            \
        return IN_FORM(large, Neighbor_allgatherv, neighbor_allgatherv, give, out->C[0], out->types[0], take, in->C, in->D, in->types[0]);\
    case NEIGHBOR_ALLTOALL:                                                                                                              \
        return IN_FORM(large, Neighbor_alltoall, neighbor_alltoall, give, out->C[0], out->types[0], take, in->C[0], in->types[0]);       \
    case NEIGHBOR_ALLTOALLV:                                                                                                             \
        return IN_FORM(large, Neighbor_alltoallv, neighbor_alltoallv, give, out->C, out->D, out->types[0], take, in->C, in->D,           \
            in->types[0]);                                                                                                               \
    case NEIGHBOR_ALLTOALLW: /* Its places are addresses, large or not. */                                                               \
        return IN_FORM(large, Neighbor_alltoallw, neighbor_alltoallw, give, out->C, out->large_places, out->types, take, in->C,          \
            in->large_places, in->types);                                                                                                \
    case REDUCE: return IN_FORM(large, Reduce, reduce, give, take, count, out->types[0], job->op, root);                                 \
    case ALLREDUCE: return IN_FORM(large, Allreduce, allreduce, give, take, count, out->types[0], job->op);                              \
    case REDUCE_SCATTER: return IN_FORM(large, Reduce_scatter, reduce_scatter, give, take, parts->C, out->types[0], job->op);            \
    case REDUCE_SCATTER_BLOCK:                                                                                                           \
        return IN_FORM(large, Reduce_scatter_block, reduce_scatter_block, give, take, count, out->types[0], job->op);                    \
    case SCAN: return IN_FORM(large, Scan, scan, give, take, count, out->types[0], job->op);                                             \
    case EXSCAN: return IN_FORM(large, Exscan, exscan, give, take, count, out->types[0], job->op);                                       \
    default: return MPI_SUCCESS;                                                                                                         \
    }

/* The arrays that MPI may read until the request is complete. */
typedef struct {
    int counts[MOST_RANKS];
    MPI_Count large_counts[MOST_RANKS];
} Parts;

static int called(Job *job, Parts *parts, MPI_Request *request) {
    Side *out = &job->out, *in = &job->in;
    MPI_Comm comm = job->group.comm;
    enum form form = job->form;
    const void *give = job->in_place ? MPI_IN_PLACE : out->start;
    void *take = (void *)in->start;
    int root = job->root, count = job->count;
    int of_root = job->name == GATHER || job->name == GATHERV || job->name == REDUCE;
    if (of_root && !job->i_am_root) give = out->start;
    if (job->name == SCATTER || job->name == SCATTERV) {
        give = out->start;
        if (job->in_place && job->i_am_root) take = MPI_IN_PLACE;
    }
    for (int r = 0; r < job->group.n; r++) parts->counts[r] = parts->large_counts[r] = amount(job, r, 0);
#if MPI_VERSION >= 4
    if (job->large) CALLED(_c, large_counts, large_places)
#endif
    CALLED(, counts, places)
}

static void types_freed(Job *job) {
    if (job->layouts_freed) return;
    job->layouts_freed = 1;
    Side *sides[] = {&job->out, &job->in};
    for (int s = 0; s < 2; s++) {
        for (int b = 0; b < sides[s]->blocks; b++) layout_freed(&sides[s]->layouts[b]);
        if (sides[s]->is_absolute) MPI_Type_free(&sides[s]->absolute);
    }
    if (job->op_mine) MPI_Op_free(&job->op);
}

static void job_freed(Job *job) {
    types_freed(job);
    free(job->out.memory);
    free(job->in.memory);
    free(job);
}

/* A job and what MPI reads while it is under way. */
typedef struct {
    Job *job;
    Parts parts;
} Running;

static void running_completed(Actor *actor, Pending *pending, const MPI_Status *status) {
    (void)status;
    verified(actor, ((Running *)pending->of)->job, pending->run);
}

static void running_prepared(Actor *actor, Pending *pending) {
    (void)actor;
    inputs(((Running *)pending->of)->job, pending->run);
}

static void running_dropped(Actor *actor, Pending *pending) {
    (void)actor;
    Running *running = pending->of;
    job_freed(running->job);
    free(running);
}

/* Whether MPI has it on such a communicator. */
static int suits(const Job *job) {
    if (among_neighbors(job->name)) return job->group.neighbors.there;
    if (job->group.inter && job->name != BARRIER && job->name != BCAST && job->name != ALLREDUCE && job->name != ALLGATHER) return 0;
    return !is_reduction(job->name) || operation_suits(job->operation, job->kind);
}

void run_collective(Actor *actor) {
    const Line *line = actor->line;
    int slot = number(line, "group", 0) % GROUPS;
    const Group *group = &actor->groups[slot];
    if (!group->there) return;
    Running *running = memory(sizeof *running);
    Job *job = running->job = memory(sizeof *job);
    char text[64];
    job->group = *group;
    word(line, "name", text, sizeof text);
    while (job->name < NAMES - 1 && strcmp(names[job->name], text)) job->name++;
    job->form = is(line, "form", "begun") ? BEGUN : is(line, "form", "persistent") ? PERSISTENT : BLOCKING;
    word(line, "kind", text, sizeof text);
    job->kind = kind_named(text);
    word(line, "op", text, sizeof text);
    job->operation = operation_named(text);
    job->count = number(line, "count", 1);
    job->large = number(line, "large", 0);
    job->in_place = number(line, "inplace", 0) && !group->inter && job->name != BCAST && job->name != BARRIER && !among_neighbors(job->name);
    if (IALLGATHERV_STANDS_STILL && job->name == ALLGATHERV) job->form = BLOCKING;
    if (IALLTOALLW_IN_PLACE_HANGS && job->name == ALLTOALLW && job->form != BLOCKING) job->in_place = 0;
    if (IALLTOALLV_IN_PLACE_IS_WRONG && job->name == ALLTOALLV && job->form != BLOCKING) job->in_place = 0;
    job->bottom = number(line, "bottom", 0);
    job->early = number(line, "early", 0);
    job->unread = number(line, "unread", 0);
    job->alike = number(line, "alike", 0) && !(IALLTOALLW_IN_PLACE_FORGETS_GAPS && job->name == ALLTOALLW && job->form != BLOCKING);
    job->turned = number(line, "turned", 0);
    job->seed = number(line, "seed", 0);
    if (!suits(job)) {
        free(job);
        free(running);
        return;
    }
    int root = number(line, "root", 0), rooted = job->name == BCAST || job->name == GATHER || job->name == GATHERV || job->name == SCATTER
                                               || job->name == SCATTERV || job->name == REDUCE;
    job->root = root % group->n;
    job->i_am_root = rooted && job->root == group->me;
    if (group->inter && rooted) {
        int sends = root % 2 == group->side;
        root /= 2;
        job->root = sends ? root % group->n : root % group->remote;
        job->i_am_root = sends && job->root == group->me;
        if (sends) job->root = job->i_am_root ? MPI_ROOT : MPI_PROC_NULL;
    }
    /* Only a root can gather, scatter or reduce in place. */
    if (rooted && !job->i_am_root) job->in_place = 0;
    shaped(actor, job);
    job->op = MPI_SUM;
    if (is_reduction(job->name)) job->op = operation_made(actor, job->operation, &job->op_mine);
    int run = number(line, "again", 0);
    inputs(job, run);
    MPI_Request request = MPI_REQUEST_NULL;
    OK(called(job, &running->parts, &request));
    if (job->form == BLOCKING) {
        verified(actor, job, run);
        job_freed(job);
        free(running);
        return;
    }
    Pending *pending = added(actor, running);
    pending->request = request;
    pending->run = run;
    /* What has no number is not started again. */
    if (PERSISTENT_GATHERS_RUN_ONCE && (job->name == GATHER || job->name == SCATTER)) pending->id = 0;
    pending->slot = slot;
    pending->persistent = job->form == PERSISTENT;
    pending->active = !pending->persistent;
    pending->completed = running_completed;
    pending->prepared = running_prepared;
    pending->dropped = running_dropped;
    if (pending->persistent) {
        OK(MPI_Start(&pending->request));
        pending->active = 1;
    } else if (job->early) types_freed(job);
}
