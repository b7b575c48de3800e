/* Communicators with a topology, and who is whose neighbour there. */
#include "fuzz.h"

/* Two dimensions, of which the first is a ring. */
static MPI_Comm cart_made(Actor *actor, const Group *from) {
    int dimensions[2] = {0, 0}, periods[2] = {1, 0};
    MPI_Comm made;
    OK(MPI_Dims_create(from->n, 2, dimensions));
    OK(MPI_Cart_create(from->comm, 2, dimensions, periods, 0, &made));
    return made;
}

/* One to three dimensions, some of them closed to rings; ranks may be left over. */
static MPI_Comm grid_made(Actor *actor, const Group *from, uint64_t seed) {
    uint64_t draw = hash(seed, 61, from->leader, from->n);
    int count = 1 + draw % 3, dimensions[3] = {0, 0, 0}, periods[3], left = from->n;
    MPI_Comm made;
    for (int d = 0; d < count; d++) periods[d] = draw >> (8 + d) & 1;
    if (draw >> 4 & 1) OK(MPI_Dims_create(from->n, count, dimensions));
    else
        for (int d = 0; d < count; d++) {
            dimensions[d] = 1 + hash(draw, d, 62, 0) % left;
            left /= dimensions[d];
        }
    OK(MPI_Cart_create(from->comm, count, dimensions, periods, draw >> 5 & 1, &made));
    return made;
}

/* Whoever is a neighbour has the other as a neighbour, too; ranks may be left over. */
static MPI_Comm graph_made(Actor *actor, const Group *from, uint64_t seed) {
    uint64_t draw = hash(seed, 63, from->leader, from->n);
    int nodes = draw % 4 ? from->n : 1 + (int)(draw / 4 % from->n), end = 0;
    int degrees[MOST_RANKS] = {0}, of[MOST_RANKS][MOST_EDGES], ends[MOST_RANKS], edges[MOST_RANKS * MOST_EDGES];
    MPI_Comm made;
    for (int e = 0; e < nodes + 2; e++) {
        int a = hash(draw, e, 64, 0) % nodes, b = hash(draw, e, 65, 0) % nodes;
        of[a][degrees[a]++] = b;
        if (a != b) of[b][degrees[b]++] = a;
    }
    for (int r = 0; r < nodes; r++) {
        for (int e = 0; e < degrees[r]; e++) edges[end++] = of[r][e];
        ends[r] = end;
    }
    OK(MPI_Graph_create(from->comm, nodes, ends, edges, draw >> 32 & 1, &made));
    return made;
}

/* Edges have a direction, may be there more than once, and may lead back to where they begin. Adjacent: each rank names its own, in an order that
 * has nothing to do with that of others; else a rank names those that leave another. */
static MPI_Comm distributed_graph_made(Actor *actor, const Group *from, uint64_t seed, int adjacent) {
    uint64_t draw = hash(seed, 66, from->leader, from->n);
    int in[MOST_RANKS] = {0}, out[MOST_RANKS], source[MOST_RANKS][MOST_EDGES], destination[MOST_RANKS][MOST_EDGES];
    int weights[MOST_EDGES] = {0}, me = from->me, reorder = (draw >> 5 & 1) && !REORDERED_GRAPHS_END_THE_JOB, named = (me + draw / 64) % from->n;
    MPI_Comm made;
    for (int s = 0; s < from->n; s++) {
        out[s] = hash(draw, s, 67, 0) % (MOST_EDGES / MOST_RANKS + 1);
        for (int e = 0; e < out[s]; e++) {
            int d = destination[s][e] = hash(draw, s, 68, e) % from->n, place = hash(draw, s, 69, e) % (in[d] + 1);
            memmove(&source[d][place + 1], &source[d][place], (in[d]++ - place) * sizeof(int));
            source[d][place] = s;
        }
    }
    if (adjacent)
        OK(MPI_Dist_graph_create_adjacent(from->comm, in[me], source[me], weights, out[me], destination[me], weights, MPI_INFO_NULL, reorder, &made));
    else OK(MPI_Dist_graph_create(from->comm, 1, &named, &out[named], destination[named], weights, MPI_INFO_NULL, reorder, &made));
    return made;
}

MPI_Comm topology_made(Actor *actor, const Group *from, uint64_t seed) {
    const Line *line = actor->line;
    int before;
    if (is(line, "how", "cart")) return cart_made(actor, from);
    if (is(line, "how", "grid")) return grid_made(actor, from, seed);
    if (is(line, "how", "graph")) return graph_made(actor, from, seed);
    OK(MPI_Topo_test(from->comm, &before));
    if (GRIDS_AND_GRAPHS_ARE_INHERITED && before != MPI_UNDEFINED) return MPI_COMM_NULL;
    return distributed_graph_made(actor, from, seed, is(line, "how", "adjacent"));
}

/* What the MPI says of this rank. */
static Neighbors told(const Actor *actor, const Group *group) {
    Neighbors n = {0};
    int topology, weighted, weights[MOST_EDGES];
    OK(MPI_Topo_test(group->comm, &topology));
    n.there = topology != MPI_UNDEFINED, n.grid = topology == MPI_CART;
    if (topology == MPI_DIST_GRAPH) {
        OK(MPI_Dist_graph_neighbors_count(group->comm, &n.in, &n.out, &weighted));
        OK(MPI_Dist_graph_neighbors(group->comm, n.in, n.source, weights, n.out, n.destination, weights));
        return n;
    }
    if (topology == MPI_CART) {
        OK(MPI_Cartdim_get(group->comm, &n.in));
        for (int d = 0; d < n.in; d++) OK(MPI_Cart_shift(group->comm, d, 1, &n.source[2 * d], &n.source[2 * d + 1]));
        n.in *= 2;
    } else if (topology == MPI_GRAPH) {
        OK(MPI_Graph_neighbors_count(group->comm, group->me, &n.in));
        OK(MPI_Graph_neighbors(group->comm, group->me, n.in, n.source));
    }
    n.out = n.in;
    memcpy(n.destination, n.source, sizeof n.source);
    return n;
}

/* The first of several edges between two ranks is the first at both ends. */
Neighbors neighbors_of(const Actor *actor, const Group *group) {
    Neighbors n = told(actor, group);
    int everybody[MOST_RANKS][MOST_EDGES];
    if (!n.there) return n;
    for (int e = n.out; e < MOST_EDGES; e++) n.destination[e] = MPI_PROC_NULL;
    /* Past what is preloaded: the first collective there is the script's. */
    OK(PMPI_Allgather(n.destination, MOST_EDGES, MPI_INT, everybody, MOST_EDGES, MPI_INT, group->comm));
    for (int i = 0; i < n.in; i++) {
        int s = n.source[i], before = 0, e = 0;
        if (s == MPI_PROC_NULL) continue;
        for (int j = 0; j < i; j++) before += n.source[j] == s;
        while (e < MOST_EDGES && (everybody[s][e] != group->me || before-- > 0)) e++;
        if (e == MOST_EDGES) wrong(actor, "rank %d does not know that rank %d is a neighbour", s, group->me);
        n.which[i] = e;
    }
    return n;
}
