/* Requests under way: collectives and messages, one-shot and persistent, completed in every way, in any order.
 *
 * `complete way=W ranks=M some=S seed=X`: the ranks in the set M complete some of what they have under way, or all of it
 * `start of=N seed=X`: the persistent request of the line with `id=N` is started again, after its last run has been completed
 * `release of=N`: it is freed */
#include "fuzz.h"

#include <sched.h>

Pending *added(Actor *actor, void *of) {
    if (actor->count == actor->room) {
        actor->room = 2 * actor->room + 8;
        actor->pending = realloc(actor->pending, actor->room * sizeof *actor->pending);
    }
    Pending *pending = memory(sizeof *pending);
    pending->line = actor->line->number;
    pending->id = number(actor->line, "id", 0);
    pending->request = MPI_REQUEST_NULL;
    pending->slot = -1;
    pending->of = of;
    pending->active = 1;
    actor->pending[actor->count++] = pending;
    return pending;
}

static void forgotten(Actor *actor, Pending *pending) {
    int at = 0;
    while (actor->pending[at] != pending) at++;
    memmove(actor->pending + at, actor->pending + at + 1, (actor->count - at - 1) * sizeof *actor->pending);
    actor->count--;
    pending->dropped(actor, pending);
    free(pending);
}

/* MPI has completed it. */
static void through(Actor *actor, Pending *pending, MPI_Request left, const MPI_Status *status) {
    pending->active = 0;
    if (pending->persistent ? left == MPI_REQUEST_NULL : left != MPI_REQUEST_NULL)
        wrong(actor, "the request of line %d, completed, is%s null", pending->line, pending->persistent ? "" : " not");
    pending->request = left;
    pending->completed(actor, pending, status);
    if (!pending->persistent) forgotten(actor, pending);
}

void complete_one(Actor *actor, Pending *pending) {
    MPI_Status status;
    MPI_Request request = pending->request;
    OK(MPI_Wait(&request, &status));
    through(actor, pending, request, &status);
}

enum { MOST_AT_ONCE = 64 };

static const char *const ways[] = {"wait", "test", "waitall", "waitany", "waitsome", "testall", "testany", "testsome", "status", "backwards"};
enum way { WAIT, TEST, WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, STATUS, BACKWARDS, WAYS };

typedef struct {
    int count, left;
    Pending *of[MOST_AT_ONCE]; /* none where the request is null or inactive */
    MPI_Request requests[MOST_AT_ONCE];
    MPI_Status statuses[MOST_AT_ONCE];
} Array;

static void taken(Actor *actor, Array *array, int index, const MPI_Status *status) {
    if (index < 0 || index >= array->count || !array->of[index]) wrong(actor, "request %d of %d was completed, which was not active", index, array->count);
    Pending *pending = array->of[index];
    array->of[index] = NULL;
    array->left--;
    through(actor, pending, array->requests[index], status);
}

/* Some of what is under way, with null requests and inactive ones among it. */
static void gathered(Actor *actor, Array *array, uint64_t draw, int all, int testall) {
    memset(array, 0, sizeof *array);
    for (int i = 0; i < actor->count && array->count < MOST_AT_ONCE - 2; i++) {
        Pending *pending = actor->pending[i];
        if (TESTALL_REFUSES_PERSISTENT && testall && pending->persistent) continue;
        uint64_t chance = hash(draw, i, 5, 5);
        if (!all && chance % 2) continue;
        if (!pending->active && chance / 2 % 4) continue;
        if (chance / 16 % 8 == 0) array->requests[array->count++] = MPI_REQUEST_NULL;
        array->of[array->count] = pending->active ? pending : NULL;
        array->left += pending->active;
        array->requests[array->count++] = pending->request;
    }
    /* In another order. */
    for (int i = array->count - 1; i > 0 && draw / 2 % 2; i--) {
        int j = hash(draw, i, 6, 6) % (i + 1);
        Pending *of = array->of[i];
        MPI_Request request = array->requests[i];
        array->of[i] = array->of[j], array->requests[i] = array->requests[j];
        array->of[j] = of, array->requests[j] = request;
    }
}

/* A look, by whatever function; whether it completed something. */
void complete_some(Actor *actor, const char *name, uint64_t draw, int all) {
    enum way way = 0;
    while (way < WAYS - 1 && strcmp(ways[way], name)) way++;
    if (LOOKING_MOVES_NOTHING && way == STATUS) way = TEST;
    Array *a = memory(sizeof *a);
    gathered(actor, a, draw, all, way == TESTALL);
    int flag = 0, index, done, indices[MOST_AT_ONCE], ignore = draw / 4 % 2;
    /* One look is enough, sometimes. */
    int looks = all || draw / 8 % 4 ? -1 : 1 + (int)(draw / 32 % 20);
    switch (way) {
    case WAIT:
    case BACKWARDS:
        for (int i = 0; i < a->count; i++) {
            int at = way == WAIT ? i : a->count - 1 - i;
            OK(MPI_Wait(&a->requests[at], &a->statuses[at]));
            if (a->of[at]) taken(actor, a, at, &a->statuses[at]);
        }
        break;
    case TEST:
        for (int at = 0; a->left > 0 && looks; at = (at + 1) % a->count) {
            if (at == 0) looks--, sched_yield();
            if (!a->of[at]) continue;
            OK(MPI_Test(&a->requests[at], &flag, &a->statuses[at]));
            if (flag) taken(actor, a, at, &a->statuses[at]);
        }
        break;
    case STATUS:
        for (int at = 0; a->left > 0 && looks; at = (at + 1) % a->count) {
            if (at == 0) looks--, sched_yield();
            if (!a->of[at]) continue;
            OK(MPI_Request_get_status(a->requests[at], &flag, &a->statuses[at]));
            if (!flag) continue;
            int lost = STATUS_IS_LOST_AFTER_LOOKING && a->of[at]->persistent;
            OK(MPI_Wait(&a->requests[at], lost ? MPI_STATUS_IGNORE : &a->statuses[at]));
            taken(actor, a, at, &a->statuses[at]);
        }
        break;
    case WAITALL:
        OK(MPI_Waitall(a->count, a->requests, a->statuses));
        for (int i = 0; i < a->count; i++)
            if (a->of[i]) taken(actor, a, i, &a->statuses[i]);
        break;
    case TESTALL:
        while (!flag && looks--) {
            sched_yield();
            OK(MPI_Testall(a->count, a->requests, &flag, a->statuses));
        }
        for (int i = 0; i < a->count && flag; i++)
            if (a->of[i]) taken(actor, a, i, &a->statuses[i]);
        break;
    case WAITANY:
        for (int most = all || ignore ? a->left : (a->left + 1) / 2; most > 0; most--) {
            OK(MPI_Waitany(a->count, a->requests, &index, &a->statuses[0]));
            taken(actor, a, index, &a->statuses[0]);
        }
        break;
    case WAITSOME:
        while (a->left > 0) {
            OK(MPI_Waitsome(a->count, a->requests, &done, indices, a->statuses));
            if (done < 1 || done > a->left) wrong(actor, "%d of %d requests are said to be complete", done, a->left);
            for (int i = 0; i < done; i++) taken(actor, a, indices[i], &a->statuses[i]);
            if (!all && !ignore) break;
        }
        break;
    case TESTANY:
        while (a->left > 0 && looks--) {
            sched_yield();
            OK(MPI_Testany(a->count, a->requests, &index, &flag, &a->statuses[0]));
            if (flag) taken(actor, a, index, &a->statuses[0]);
        }
        break;
    case TESTSOME:
        while (a->left > 0 && looks--) {
            sched_yield();
            OK(MPI_Testsome(a->count, a->requests, &done, indices, a->statuses));
            for (int i = 0; i < done; i++) taken(actor, a, indices[i], &a->statuses[i]);
        }
        break;
    default: break;
    }
    if (a->left == 0) {
        OK(MPI_Waitany(a->count, a->requests, &index, &a->statuses[0]));
        if (index != MPI_UNDEFINED) wrong(actor, "with nothing active, MPI_Waitany completed request %d", index);
    }
    free(a);
    /* What did not fit into the array, or was not looked for. */
    for (int i = 0; all && i < actor->count;)
        if (actor->pending[i]->active) complete_one(actor, actor->pending[i]), i = 0;
        else i++;
}

void run_complete(Actor *actor) {
    char way[16] = "";
    if (!(number(actor->line, "ranks", -1) >> world_rank & 1)) return;
    word(actor->line, "way", way, sizeof way);
    complete_some(actor, way, hash(number(actor->line, "seed", 0), world_rank, 9, 9), !number(actor->line, "some", 0));
}

static int meant(const Actor *actor, const Pending *pending) {
    return pending->persistent && pending->id == number(actor->line, "of", 0);
}

/* Of a message to itself a rank has two. */
void run_start(Actor *actor) {
    for (int i = 0; i < actor->count; i++)
        if (meant(actor, actor->pending[i]) && actor->pending[i]->active) complete_one(actor, actor->pending[i]);
    for (int i = 0; i < actor->count; i++) {
        Pending *pending = actor->pending[i];
        if (!meant(actor, pending)) continue;
        pending->run++;
        pending->prepared(actor, pending);
        if (number(actor->line, "seed", 0) % 2) OK(MPI_Start(&pending->request));
        else OK(MPI_Startall(1, &pending->request));
        pending->active = 1;
    }
}

static void released(Actor *actor, Pending *pending) {
    if (pending->active) complete_one(actor, pending);
    OK(MPI_Request_free(&pending->request));
    if (pending->request != MPI_REQUEST_NULL) wrong(actor, "the freed request of line %d is not null", pending->line);
    forgotten(actor, pending);
}

void run_release(Actor *actor) {
    for (int i = 0; i < actor->count;)
        if (meant(actor, actor->pending[i])) released(actor, actor->pending[i]), i = 0;
        else i++;
}

/* Before a communicator is freed its persistent requests are. */
void released_of_slot(Actor *actor, int slot) {
    for (int i = 0; i < actor->count;)
        if (actor->pending[i]->persistent && actor->pending[i]->slot == slot) released(actor, actor->pending[i]), i = 0;
        else i++;
}

void all_ended(Actor *actor) {
    complete_some(actor, ways[hash(actor->line->number, world_rank, 1, 1) % WAYS], hash(actor->line->number, world_rank, 2, 2), 1);
    for (int i = 0; i < actor->count;)
        if (actor->pending[i]->persistent) released(actor, actor->pending[i]), i = 0;
        else i++;
}
