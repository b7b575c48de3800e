/* `message group=G from=A to=B send=S receive=R kind=K count=C any=Y longer=L seed=X`: one message, sent and received in some way
 * `shift group=G how=H by=D kind=K count=C seed=X`: each rank sends to the one D further and receives from the one D before
 * `relay group=G at=A poll=P way=W seed=X`: all ranks but one complete all that they have under way, and then do what that one waits for, which
 *     has called MPI for nothing else meanwhile: what it has begun must be moved on in whatever function it calls */
#include "fuzz.h"

#include <sched.h>

typedef struct {
    Group group;
    const Kind *kind;
    Layout layout;
    long count, room; /* elements, and those for which there is room */
    size_t bytes;
    char *memory;
    int partner, tag, receives, any;
    uint64_t seed;
} Message;

/* Tags of a line: the message's, and that of the word before it. */
static int tag_of(const Actor *actor) { return 10 + 2 * actor->line->number; }

static void image(const Message *m, char *to, int run) {
    memset(to, UNTOUCHED, m->bytes + 64);
    for (long i = 0; i < m->count; i++) store(m->kind, element_at(&m->layout, to, i), moved(m->kind, hash(m->seed, m->group.leader, 1000 + run, i)));
}

static Message *message_made(Actor *actor, const Group *group, int partner, int receives) {
    const Line *line = actor->line;
    char text[64] = "";
    Message *m = memory(sizeof *m);
    m->group = *group;
    word(line, "kind", text, sizeof text);
    m->kind = kind_named(text);
    m->count = m->room = number(line, "count", 1);
    m->seed = number(line, "seed", 0);
    m->layout = layout_drawn(actor, m->kind, m->count, hash(m->seed, receives, 61, 0));
    if (receives && number(line, "longer", 0)) m->room += 5 * m->layout.elements;
    m->bytes = layout_bytes(&m->layout, m->room);
    m->memory = memory(m->bytes + 64);
    m->partner = partner;
    m->tag = tag_of(actor);
    m->receives = receives;
    m->any = number(line, "any", 0);
    if (receives) memset(m->memory, UNTOUCHED, m->bytes + 64);
    else image(m, m->memory, 0);
    return m;
}

static void message_checked(Actor *actor, Message *m, const MPI_Status *status, int run) {
    int count;
    char what[64], *want = memory(m->bytes + 64);
    snprintf(what, sizeof what, "a message from %d with tag %d", m->partner, m->tag);
    MPI_Status copy = *status;
    OK(MPI_Get_count(&copy, m->layout.type, &count));
    if (status->MPI_SOURCE != m->partner || status->MPI_TAG != m->tag || count * m->layout.elements != m->count)
        wrong(actor, "%s came as %d from %d with tag %d; %ld elements were expected", what, count * m->layout.elements, status->MPI_SOURCE,
            status->MPI_TAG, m->count);
    image(m, want, run);
    blanked(&m->layout, m->memory, m->count);
    compared(actor, m->kind, what, want, m->memory, m->bytes + 64);
    free(want);
}

static void message_freed(Message *m) {
    layout_freed(&m->layout);
    free(m->memory);
    free(m);
}

static void pending_completed(Actor *actor, Pending *pending, const MPI_Status *status) {
    Message *m = pending->of;
    if (m->receives) message_checked(actor, m, status, pending->run);
}

static void pending_prepared(Actor *actor, Pending *pending) {
    Message *m = pending->of;
    (void)actor;
    if (m->receives) memset(m->memory, UNTOUCHED, m->bytes + 64);
    else image(m, m->memory, pending->run);
}

static void pending_dropped(Actor *actor, Pending *pending) {
    (void)actor;
    message_freed(pending->of);
}

static void left_pending(Actor *actor, Message *m, MPI_Request request, int slot, int persistent) {
    Pending *pending = added(actor, m);
    pending->request = request;
    pending->slot = slot;
    pending->persistent = persistent;
    pending->completed = pending_completed;
    pending->prepared = pending_prepared;
    pending->dropped = pending_dropped;
    if (persistent) OK(MPI_Start(&pending->request));
}

/* With a buffer of its own, which is taken away when the message is. */
static void buffered(Actor *actor, Message *m, int begun) {
    int size, room;
    void *buffer;
    MPI_Request request;
    MPI_Comm comm = m->group.comm;
    int count = m->count / m->layout.elements;
    OK(MPI_Pack_size(count, m->layout.type, comm, &size));
    buffer = memory(size + MPI_BSEND_OVERHEAD + 64);
    OK(MPI_Buffer_attach(buffer, size + MPI_BSEND_OVERHEAD + 64));
    if (begun) {
        OK(MPI_Ibsend(m->memory, count, m->layout.type, m->partner, m->tag, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else OK(MPI_Bsend(m->memory, count, m->layout.type, m->partner, m->tag, comm));
    memset(m->memory, 0, m->bytes);
    OK(MPI_Buffer_detach(&buffer, &room));
    free(buffer);
}

static void send(Actor *actor, Message *m, const char *way, int slot, int myself) {
    MPI_Comm comm = m->group.comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = m->layout.type;
    int count = m->count / m->layout.elements, to = m->partner, persistent = !strcmp(way, "persistent");
    if (!strcmp(way, "ssend")) OK(MPI_Ssend(m->memory, count, type, to, m->tag, comm));
    else if (!strcmp(way, "bsend") && actor->thread == 0) buffered(actor, m, 0);
    else if (!strcmp(way, "ibsend") && actor->thread == 0) buffered(actor, m, 1);
    else if (!strcmp(way, "isend")) OK(MPI_Isend(m->memory, count, type, to, m->tag, comm, &request));
    else if (!strcmp(way, "issend")) OK(MPI_Issend(m->memory, count, type, to, m->tag, comm, &request));
    else if (persistent) OK(MPI_Send_init(m->memory, count, type, to, m->tag, comm, &request));
    else if (!strcmp(way, "rsend") || !strcmp(way, "irsend")) {
        if (!myself) OK(MPI_Recv(NULL, 0, MPI_INT, to, m->tag + 1, comm, MPI_STATUS_IGNORE));
        if (!strcmp(way, "rsend")) OK(MPI_Rsend(m->memory, count, type, to, m->tag, comm));
        else OK(MPI_Irsend(m->memory, count, type, to, m->tag, comm, &request));
    } else if (!strcmp(way, "freed")) {
        OK(MPI_Isend(m->memory, count, type, to, m->tag, comm, &request));
        OK(MPI_Request_free(&request));
        /* Until the end of the script, when it must have been received. */
        actor->kept = realloc(actor->kept, (actor->kept_count + 1) * sizeof *actor->kept);
        actor->kept[actor->kept_count++] = m->memory;
        m->memory = NULL;
    } else OK(MPI_Send(m->memory, count, type, to, m->tag, comm));
    if (request != MPI_REQUEST_NULL) left_pending(actor, m, request, slot, persistent);
    else message_freed(m);
}

static void receive(Actor *actor, Message *m, const char *way, int slot, int ready, int myself) {
    MPI_Comm comm = m->group.comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = m->layout.type;
    MPI_Status status, before;
    MPI_Message matched;
    int count = m->room / m->layout.elements, flag = 0, size, persistent = !strcmp(way, "persistent");
    int from = m->any == 1 ? MPI_ANY_SOURCE : m->partner, tag = m->any == 2 ? MPI_ANY_TAG : m->tag;
    int probes = !strcmp(way, "probe") || !strcmp(way, "iprobe"), matches = !strcmp(way, "mprobe") || !strcmp(way, "improbe");
    if (persistent) OK(MPI_Recv_init(m->memory, count, type, from, tag, comm, &request));
    else if (ready || myself || !strcmp(way, "irecv")) {
        OK(MPI_Irecv(m->memory, count, type, from, tag, comm, &request));
        if (ready) OK(MPI_Send(NULL, 0, MPI_INT, m->partner, m->tag + 1, comm));
    } else if (probes || matches) {
        if (!strcmp(way, "probe")) OK(MPI_Probe(from, tag, comm, &before));
        else if (!strcmp(way, "mprobe")) OK(MPI_Mprobe(from, tag, comm, &matched, &before));
        else
            while (!flag) {
                sched_yield();
                if (probes) OK(MPI_Iprobe(from, tag, comm, &flag, &before));
                else OK(MPI_Improbe(from, tag, comm, &flag, &matched, &before));
            }
        OK(MPI_Get_count(&before, type, &size));
        if (size * m->layout.elements != m->count || before.MPI_SOURCE != m->partner)
            wrong(actor, "a probe found %d from %d, not %ld from %d", size * m->layout.elements, before.MPI_SOURCE, m->count, m->partner);
        if (probes) OK(MPI_Recv(m->memory, count, type, before.MPI_SOURCE, before.MPI_TAG, comm, &status));
        else if (m->seed % 2) OK(MPI_Mrecv(m->memory, count, type, &matched, &status));
        else OK(MPI_Imrecv(m->memory, count, type, &matched, &request));
    } else OK(MPI_Recv(m->memory, count, type, from, tag, comm, &status));
    if (request != MPI_REQUEST_NULL) {
        left_pending(actor, m, request, slot, persistent);
        return;
    }
    message_checked(actor, m, &status, 0);
    message_freed(m);
}

void run_message(Actor *actor) {
    const Line *line = actor->line;
    int slot = number(line, "group", 0) % GROUPS;
    const Group *g = &actor->groups[slot];
    if (!g->there) return;
    long from = number(line, "from", 0), to = number(line, "to", 0);
    int sends, receives;
    if (g->inter) {
        int first = number(line, "seed", 0) % 2 == g->side;
        from %= first ? g->n : g->remote;
        to %= first ? g->remote : g->n;
        sends = first && from == g->me;
        receives = !first && to == g->me;
    } else {
        from %= g->n, to %= g->n;
        sends = from == g->me, receives = to == g->me;
    }
    char how[16] = "", taken[16] = "";
    word(line, "send", how, sizeof how);
    word(line, "receive", taken, sizeof taken);
    int myself = sends && receives, ready = !myself && (!strcmp(how, "rsend") || !strcmp(how, "irsend"));
    /* Whoever sends to itself begins with the receive, and must not wait in the send. */
    if (!strcmp(how, "persistent")) strcpy(taken, how);
    else if (!strcmp(taken, "persistent")) strcpy(taken, "irecv");
    if (receives) receive(actor, message_made(actor, g, from, 1), taken, slot, ready, myself);
    if (sends) send(actor, message_made(actor, g, to, 0), how, slot, myself);
}

void run_shift(Actor *actor) {
    const Line *line = actor->line;
    const Group *g = &actor->groups[number(line, "group", 0) % GROUPS];
    if (!g->there || g->inter) return;
    long by = number(line, "by", 1) % g->n;
    Message *out = message_made(actor, g, (g->me + by) % g->n, 0), *in = message_made(actor, g, (g->me + g->n - by) % g->n, 1);
    MPI_Status status;
    MPI_Request requests[2];
    int outs = out->count / out->layout.elements, ins = in->room / in->layout.elements;
    if (is(line, "how", "replace")) {
        /* Of the layout that is received, in one buffer. */
        in->room = in->count;
        ins = in->count / in->layout.elements;
        in->bytes = layout_bytes(&in->layout, in->count);
        image(in, in->memory, 0);
        OK(MPI_Sendrecv_replace(in->memory, ins, in->layout.type, out->partner, out->tag, in->partner, in->tag, g->comm, &status));
    } else if (is(line, "how", "begun")) {
        MPI_Status statuses[2];
        OK(MPI_Irecv(in->memory, ins, in->layout.type, in->partner, in->tag, g->comm, &requests[0]));
        OK(MPI_Isend(out->memory, outs, out->layout.type, out->partner, out->tag, g->comm, &requests[1]));
        OK(MPI_Waitall(2, requests, statuses));
        status = statuses[0];
    } else
        OK(MPI_Sendrecv(out->memory, outs, out->layout.type, out->partner, out->tag, in->memory, ins, in->layout.type, in->partner, in->tag, g->comm,
            &status));
    message_checked(actor, in, &status, 0);
    message_freed(in);
    message_freed(out);
}

/* ---- one rank that waits for the others ---- */

static void word_checked(Actor *actor, int got, int want) {
    if (got != want) wrong(actor, "a relayed word is %d, not %d", got, want);
}

/* Collective calls in which one rank waits for all others: whether it is one. */
static int met(Actor *actor, const Group *g, const char *poll) {
    int one = 1, all = 0, everyone[MOST_RANKS], ones[MOST_RANKS], counts[MOST_RANKS], places[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    int64_t words[4] = {0};
    MPI_Comm made;
    MPI_Win window;
    MPI_Request request;
    if (!strcmp(poll, "barrier")) OK(MPI_Barrier(g->comm));
    else if (!strcmp(poll, "allreduce")) {
        OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, g->comm));
        word_checked(actor, all, g->n);
    } else if (!strcmp(poll, "gather")) {
        /* A root for each, so that nobody can leave before all have come. */
        for (int r = 0; r < g->n; r++) OK(MPI_Gather(&one, 1, MPI_INT, everyone, 1, MPI_INT, r, g->comm));
    } else if (!strcmp(poll, "scatter")) {
        for (int r = 0; r < g->n; r++) ones[r] = 1;
        for (int r = 0; r < g->n; r++) OK(MPI_Scatter(ones, 1, MPI_INT, &all, 1, MPI_INT, r, g->comm));
        word_checked(actor, all, 1);
    } else if (!strcmp(poll, "scan")) {
        OK(MPI_Scan(&one, &all, 1, MPI_INT, MPI_SUM, g->comm));
        word_checked(actor, all, g->me + 1);
    } else if (!strcmp(poll, "alltoallw")) {
        for (int r = 0; r < g->n; r++) ones[r] = counts[r] = 1, places[r] = r * sizeof(int), types[r] = MPI_INT;
        OK(MPI_Alltoallw(ones, counts, places, types, everyone, counts, places, types, g->comm));
        for (int r = 0; r < g->n; r++) word_checked(actor, everyone[r], 1);
    } else if (!strcmp(poll, "ibarrier")) {
        OK(MPI_Ibarrier(g->comm, &request));
        for (int flag = 0; !flag;) {
            sched_yield();
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        }
    } else if (!strcmp(poll, "dup")) {
        OK(MPI_Comm_dup(g->comm, &made));
        OK(MPI_Comm_free(&made));
    } else if (!strcmp(poll, "split")) {
        OK(MPI_Comm_split(g->comm, 0, 0, &made));
        OK(MPI_Comm_free(&made));
    } else if (!strcmp(poll, "fence")) {
        OK(MPI_Win_create(words, sizeof words, sizeof *words, MPI_INFO_NULL, g->comm, &window));
        OK(MPI_Win_fence(0, window));
        OK(MPI_Win_fence(0, window));
        OK(MPI_Win_free(&window));
    } else return 0;
    return 1;
}

/* The others' part. */
static void relayed(Actor *actor, const Group *g, int at, const char *poll) {
    int value = 1000 + g->me, other = 0, tag = tag_of(actor);
    if (!strcmp(poll, "ssend")) {
        OK(MPI_Recv(&other, 1, MPI_INT, at, tag, g->comm, MPI_STATUS_IGNORE));
        word_checked(actor, other, 7 + g->me);
    } else if (!strcmp(poll, "sendrecv")) {
        OK(MPI_Sendrecv(&value, 1, MPI_INT, at, tag, &other, 1, MPI_INT, at, tag, g->comm, MPI_STATUS_IGNORE));
        word_checked(actor, other, 7 + g->me);
    } else OK(MPI_Send(&value, 1, MPI_INT, at, tag, g->comm));
}

/* Receives one word from each, posted at once, and completes them by this function. */
static void posted(Actor *actor, const Group *g, const char *poll) {
    MPI_Request requests[MOST_RANKS];
    int words[MOST_RANKS], index, flag, done, indices[MOST_RANKS], left = 0, tag = tag_of(actor);
    for (int r = 0; r < g->n; r++) {
        requests[r] = MPI_REQUEST_NULL;
        if (r == g->me) continue;
        OK(MPI_Irecv(&words[r], 1, MPI_INT, r, tag, g->comm, &requests[r]));
        left++;
    }
    if (!strcmp(poll, "waitall")) OK(MPI_Waitall(g->n, requests, MPI_STATUSES_IGNORE)), left = 0;
    while (left > 0) {
        sched_yield();
        if (!strcmp(poll, "testany")) {
            OK(MPI_Testany(g->n, requests, &index, &flag, MPI_STATUS_IGNORE));
            left -= flag;
        } else if (!strcmp(poll, "testsome")) {
            OK(MPI_Testsome(g->n, requests, &done, indices, MPI_STATUSES_IGNORE));
            left -= done;
        } else if (!strcmp(poll, "testall")) {
            OK(MPI_Testall(g->n, requests, &flag, MPI_STATUSES_IGNORE));
            if (flag) left = 0;
        } else if (!strcmp(poll, "waitany")) {
            OK(MPI_Waitany(g->n, requests, &index, MPI_STATUS_IGNORE));
            left--;
        } else
            for (int r = 0; r < g->n; r++) {
                if (requests[r] == MPI_REQUEST_NULL) continue;
                if (!strcmp(poll, "status")) {
                    OK(MPI_Request_get_status(requests[r], &flag, MPI_STATUS_IGNORE));
                    if (!flag) continue;
                }
                OK(MPI_Test(&requests[r], &flag, MPI_STATUS_IGNORE));
                left -= flag;
            }
    }
    for (int r = 0; r < g->n; r++)
        if (r != g->me) word_checked(actor, words[r], 1000 + r);
}

/* The waiting rank's part, with one other rank. */
static void awaited(Actor *actor, const Group *g, int other, const char *poll) {
    int value = -1, mine = 7 + other, flag = 0, tag = tag_of(actor);
    MPI_Status status;
    MPI_Message matched;
    if (!strcmp(poll, "ssend")) {
        OK(MPI_Ssend(&mine, 1, MPI_INT, other, tag, g->comm));
        return;
    }
    if (!strcmp(poll, "sendrecv")) OK(MPI_Sendrecv(&mine, 1, MPI_INT, other, tag, &value, 1, MPI_INT, other, tag, g->comm, &status));
    else if (!strcmp(poll, "improbe") || !strcmp(poll, "mprobe")) {
        if (poll[0] == 'm') OK(MPI_Mprobe(other, tag, g->comm, &matched, &status));
        else
            while (!flag) {
                sched_yield();
                OK(MPI_Improbe(other, tag, g->comm, &flag, &matched, &status));
            }
        OK(MPI_Mrecv(&value, 1, MPI_INT, &matched, &status));
    } else {
        if (!strcmp(poll, "probe")) OK(MPI_Probe(other, tag, g->comm, &status));
        else if (!strcmp(poll, "iprobe"))
            while (!flag) {
                sched_yield();
                OK(MPI_Iprobe(other, tag, g->comm, &flag, &status));
            }
        OK(MPI_Recv(&value, 1, MPI_INT, other, tag, g->comm, &status));
    }
    word_checked(actor, value, 1000 + other);
}

void run_relay(Actor *actor) {
    static const char *const arrays[] = {"test", "testany", "testsome", "testall", "waitany", "waitall", "status"};
    const Line *line = actor->line;
    const Group *g = &actor->groups[number(line, "group", 0) % GROUPS];
    char poll[16] = "", way[16] = "";
    if (!g->there || g->inter) return;
    int at = number(line, "at", 0) % g->n;
    word(line, "poll", poll, sizeof poll);
    word(line, "way", way, sizeof way);
    if (g->me != at) complete_some(actor, way, hash(number(line, "seed", 0), world_rank, 8, 8), 1);
    if (met(actor, g, poll)) return;
    if (g->me != at) {
        relayed(actor, g, at, poll);
        return;
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (!strcmp(poll, arrays[i])) {
            posted(actor, g, poll);
            return;
        }
    for (int r = 0; r < g->n; r++)
        if (r != g->me) awaited(actor, g, r, poll);
}
