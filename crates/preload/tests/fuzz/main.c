/* usage: fuzz FILE SECONDS
 *
 * Runs the scripts in a file, one after the other. `script NAME` begins one; `threads` on a line of its own asks for MPI_THREAD_MULTIPLE; lines
 * with `thread=1` are run by a second thread, on communicators of its own. After SECONDS in one script each rank says where it is, and the job
 * ends. */
#include "fuzz.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

int world_rank, world_size, several_threads;

static Actor actors[2];
static const char *script = "none";

static const char *value_of(const Line *line, const char *key) {
    size_t length = strlen(key);
    for (const char *at = line->text; (at = strstr(at, key)); at++)
        if (at > line->text && at[-1] == ' ' && at[length] == '=') return at + length + 1;
    return NULL;
}

long number(const Line *line, const char *key, long otherwise) {
    const char *value = value_of(line, key);
    return value ? strtol(value, NULL, 10) : otherwise;
}

int word(const Line *line, const char *key, char *into, size_t room) {
    const char *value = value_of(line, key);
    size_t length = value ? strcspn(value, " \n") : 0;
    if (!value || length >= room) return 0;
    memcpy(into, value, length);
    into[length] = 0;
    return 1;
}

int is(const Line *line, const char *key, const char *value) {
    char text[64];
    return word(line, key, text, sizeof text) && !strcmp(text, value);
}

void wrong(const Actor *actor, const char *format, ...) {
    va_list rest;
    char text[600];
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    fprintf(stderr, "fuzz: script %s, rank %d of %d, line %d (%s): %s\n", script, world_rank, world_size, actor->line->number, actor->line->text,
        text);
    fflush(stderr);
    /* Launchers drop what a job says in its last moment. */
    usleep(300 * 1000);
    MPI_Abort(MPI_COMM_WORLD, 3);
    _exit(3);
}

void checked_code(const Actor *actor, int code, const char *call) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &length);
    wrong(actor, "%.60s: %s", call, text);
}

void *memory(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) abort();
    return memory;
}

/* Too long: each thread says where it is. */
static void expired(int signal) {
    char text[400];
    (void)signal;
    for (int t = 0; t < 2; t++) {
        const Line *line = actors[t].line;
        if (!line) continue;
        int length = snprintf(text, sizeof text, "fuzz: script %s, rank %d of %d hangs in line %d: %s\n", script, world_rank, world_size, line->number,
            line->text);
        if (write(2, text, length) < 0) break;
    }
    _exit(4);
}

/* ---- scripts ---- */

typedef struct {
    Line *lines;
    int count;
} Script;

static const struct {
    const char *name;
    void (*run)(Actor *);
} operations[] = {{"collective", run_collective}, {"message", run_message}, {"shift", run_shift}, {"relay", run_relay}, {"group", run_group},
    {"free", run_free}, {"complete", run_complete}, {"start", run_start}, {"release", run_release}, {"window", run_window}, {"access", run_window},
    {"file", run_file}, {"local", run_local}};

static void line_run(Actor *actor) {
    size_t length = strcspn(actor->line->text, " ");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strlen(operations[i].name) == length && !strncmp(operations[i].name, actor->line->text, length)) {
            operations[i].run(actor);
            return;
        }
    wrong(actor, "there is no such operation");
}

typedef struct {
    Actor *actor;
    const Script *script;
} Part;

static void *part_run(void *argument) {
    Part *part = argument;
    Actor *actor = part->actor;
    const Line end = {part->script->count + 1, "end"};
    for (int i = 0; i < part->script->count; i++) {
        const Line *line = &part->script->lines[i];
        int thread = several_threads ? number(line, "thread", 0) : 0;
        if (thread != actor->thread) continue;
        actor->line = line;
        line_run(actor);
    }
    actor->line = &end;
    all_ended(actor);
    for (int w = 0; w < WINDOWS; w++) window_freed(actor, &actor->windows[w]);
    for (int g = GROUPS - 1; g > 0; g--) group_freed(actor, g);
    /* All messages have been received when all ranks are here. */
    OK(MPI_Barrier(actor->groups[0].comm));
    for (int k = 0; k < actor->kept_count; k++) free(actor->kept[k]);
    free(actor->kept);
    free(actor->pending);
    actor->kept = NULL, actor->pending = NULL;
    actor->count = actor->room = actor->kept_count = 0;
    actor->line = NULL;
    return NULL;
}

static void script_run(const Script *of, const char *name, int seconds, MPI_Comm second) {
    pthread_t thread;
    const Line begin = {0, "begin"};
    script = name;
    if (world_rank == 0) {
        printf("script %s\n", name);
        fflush(stdout);
    }
    alarm(seconds);
    double begun = MPI_Wtime();
    Part parts[2] = {{&actors[0], of}, {&actors[1], of}};
    for (int t = 0; t < 1 + several_threads; t++) {
        actors[t].thread = t;
        actors[t].line = &begin;
        actors[t].groups[0] = group_of(&actors[t], t == 0 ? MPI_COMM_WORLD : second);
    }
    if (several_threads) pthread_create(&thread, NULL, part_run, &parts[1]);
    part_run(&parts[0]);
    if (several_threads) pthread_join(thread, NULL);
    if (world_rank == 0) {
        printf("ended %s after %.3f\n", name, MPI_Wtime() - begun);
        fflush(stdout);
    }
}

/* The whole file. */
static char *contents(const char *name) {
    FILE *file = fopen(name, "r");
    if (!file) {
        fprintf(stderr, "fuzz: there is no %s\n", name);
        exit(2);
    }
    size_t room = 1 << 16, length = 0, more;
    char *text = memory(room);
    while ((more = fread(text + length, 1, room - length - 1, file))) {
        length += more;
        if (length + 1 == room) text = realloc(text, room *= 2);
    }
    text[length] = 0;
    fclose(file);
    return text;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    char *text = contents(words[1]), name[64] = "first";
    int seconds = atoi(words[2]), wanted = strstr(text, "\nthreads\n") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, provided;
    signal(SIGALRM, expired);
    alarm(seconds);
    MPI_Init_thread(&count, &words, wanted, &provided);
    several_threads = wanted == MPI_THREAD_MULTIPLE && provided == MPI_THREAD_MULTIPLE;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm second = MPI_COMM_NULL;
    if (several_threads) MPI_Comm_dup(MPI_COMM_WORLD, &second);
    kinds_made();
    rings_probed();
    Script now = {memory(sizeof(Line) * strlen(text)), 0};
    int begun = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (line[0] == '#' || !strncmp(line, "set ", 4) || !strncmp(line, "ranks ", 6) || !strcmp(line, "threads")) continue;
        if (!strncmp(line, "script ", 7)) {
            if (begun) script_run(&now, name, seconds, second);
            snprintf(name, sizeof name, "%s", line + 7);
            now.count = 0;
        } else {
            now.lines[now.count] = (Line){now.count + 1, line};
            now.count++;
        }
        begun = 1;
    }
    script_run(&now, name, seconds, second);
    kinds_freed();
    if (several_threads) MPI_Comm_free(&second);
    MPI_Finalize();
    if (world_rank == 0) printf("fuzz: %d ranks, all right\n", world_size);
    return 0;
}
