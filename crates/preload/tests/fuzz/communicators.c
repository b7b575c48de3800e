/* `group slot=S from=P how=H seed=X`: a communicator is made from another, in place of what was in its slot; with a topology if that is how
 * `free slot=S`: one is freed, also while requests on it are under way */
#include "fuzz.h"

Group group_of(const Actor *actor, MPI_Comm comm) {
    Group group = {.comm = comm, .there = comm != MPI_COMM_NULL};
    MPI_Group members, world;
    int zero = 0;
    if (!group.there) return group;
    OK(MPI_Comm_test_inter(comm, &group.inter));
    OK(MPI_Comm_rank(comm, &group.me));
    OK(MPI_Comm_size(comm, &group.n));
    if (group.inter) {
        OK(MPI_Comm_remote_size(comm, &group.remote));
        return group;
    }
    OK(MPI_Comm_group(comm, &members));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(members, 1, &zero, world, &group.leader));
    OK(MPI_Group_free(&members));
    OK(MPI_Group_free(&world));
    return group;
}

void group_freed(Actor *actor, int slot) {
    Group *group = &actor->groups[slot];
    if (!group->there || slot == 0) return;
    released_of_slot(actor, slot);
    for (int w = 0; w < WINDOWS; w++)
        if (actor->windows[w].slot == slot) window_freed(actor, &actor->windows[w]);
    for (int i = 0; i < actor->count;) {
        Pending *pending = actor->pending[i];
        if (pending->slot == slot && pending->active && FREED_COMMUNICATORS_CRASH) {
            complete_one(actor, pending);
            i = 0;
            continue;
        }
        if (pending->slot == slot) pending->slot = -1;
        i++;
    }
    OK(MPI_Comm_free(&group->comm));
    if (group->comm != MPI_COMM_NULL) wrong(actor, "a freed communicator is not null");
    group->there = 0;
}

void run_free(Actor *actor) { group_freed(actor, number(actor->line, "slot", 1) % GROUPS); }

/* Those members of which a hash says so; never none. */
static MPI_Comm chosen(Actor *actor, const Group *from, uint64_t seed) {
    int ranks[MOST_RANKS], count = 0, member = 0;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group all, some;
    for (int r = 0; r < from->n; r++)
        if (hash(seed, r, 31, from->leader) % 3 || (r == from->n - 1 && count == 0)) {
            ranks[count++] = r;
            member |= r == from->me;
        }
    if (!member) return made;
    OK(MPI_Comm_group(from->comm, &all));
    OK(MPI_Group_incl(all, count, ranks, &some));
    OK(MPI_Comm_create_group(from->comm, some, 17, &made));
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
    return made;
}

static MPI_Comm created(Actor *actor, const Group *from, uint64_t seed) {
    MPI_Comm made;
    MPI_Group all, some;
    int range[1][3] = {{from->n - 1, seed % 2 ? 0 : from->n / 2, -1}};
    OK(MPI_Comm_group(from->comm, &all));
    OK(MPI_Group_range_incl(all, 1, range, &some));
    OK(MPI_Comm_create(from->comm, some, &made));
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
    return made;
}

/* Two groups of those of a communicator, by a hash; none if it has but one rank. */
static MPI_Comm between(Actor *actor, const Group *from, uint64_t seed, int *side) {
    MPI_Comm part, made;
    int first[2] = {-1, -1};
    if (from->n < 2) return MPI_COMM_NULL;
    for (int r = 0; r < from->n; r++) {
        int of = r == 0 ? 0 : r == 1 ? 1 : hash(seed, r, 41, from->leader) % 2;
        if (first[of] < 0) first[of] = r;
        if (r == from->me) *side = of;
    }
    OK(MPI_Comm_split(from->comm, *side, from->me, &part));
    OK(MPI_Intercomm_create(part, 0, from->comm, first[1 - *side], 19, &made));
    OK(MPI_Comm_free(&part));
    return made;
}

void run_group(Actor *actor) {
    const Line *line = actor->line;
    int slot = number(line, "slot", 1) % GROUPS, parent = number(line, "from", 0) % GROUPS, side = 0, duplicated = 0, topology = 0;
    uint64_t seed = number(line, "seed", 0);
    if (slot == 0 || slot == parent) return;
    group_freed(actor, slot);
    Group from = actor->groups[parent];
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    if (!from.there) return;
    if (is(line, "how", "dup") || is(line, "how", "idup")) {
        if (from.inter && DUPLICATED_INTERCOMMUNICATORS_HANG) return;
        side = from.side, duplicated = 1;
        if (is(line, "how", "dup")) OK(MPI_Comm_dup(from.comm, &made));
        else {
            OK(MPI_Comm_idup(from.comm, &made, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    } else if (is(line, "how", "merge")) {
        if (!from.inter) return;
        OK(MPI_Intercomm_merge(from.comm, from.side == (int)(seed % 2), &made));
    } else if (from.inter) return;
    else if (is(line, "how", "split")) {
        int colour = hash(seed, from.me, 51, from.leader) % 3;
        OK(MPI_Comm_split(from.comm, colour == 2 && seed % 2 ? MPI_UNDEFINED : colour, seed / 2 % 2 ? -from.me : from.me, &made));
    } else if (is(line, "how", "shared")) OK(MPI_Comm_split_type(from.comm, MPI_COMM_TYPE_SHARED, from.me, MPI_INFO_NULL, &made));
    else if (is(line, "how", "create_group")) made = chosen(actor, &from, seed);
    else if (is(line, "how", "create")) made = created(actor, &from, seed);
    else if (is(line, "how", "inter")) made = between(actor, &from, seed, &side);
    else made = topology_made(actor, &from, seed), topology = 1;
    Group group = group_of(actor, made);
    group.side = side;
    group.duplicated = duplicated;
    if (duplicated) group.neighbors = from.neighbors;
    if (group.there && topology) group.neighbors = neighbors_of(actor, &group);
    actor->groups[slot] = group;
    if (group.there && seed % 3 == 0) OK(MPI_Comm_set_errhandler(group.comm, MPI_ERRORS_RETURN));
}
