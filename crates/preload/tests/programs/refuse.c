/* Becomes a program from which some system calls are kept, as containers keep them:
 *
 *     refuse EPERM process_vm_readv,process_vm_writev,memfd_create program arguments...
 *     refuse EFBIG 1048576 program arguments...
 *
 * The first by a seccomp filter that answers with EPERM or ENOSYS, the second by a limit on the length of files. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char *name; long number; } CALLS[] = {
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"memfd_create", SYS_memfd_create},
};

static int fail(const char *what)
{
    perror(what);
    return 1;
}

/* Answers a call with an error before the kernel looks at it. */
static int keep_from(const char *name, int error)
{
    for (size_t call = 0; call < sizeof CALLS / sizeof *CALLS; call++) {
        if (strcmp(CALLS[call].name, name) != 0) continue;
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)CALLS[call].number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    }
    errno = EINVAL;
    return -1;
}

int main(int count, char **words)
{
    if (count < 4) {
        fprintf(stderr, "refuse EPERM|ENOSYS CALL,... PROGRAM, or refuse EFBIG BYTES PROGRAM\n");
        return 2;
    }
    if (strcmp(words[1], "EFBIG") == 0) {
        rlim_t most = (rlim_t)atoll(words[2]);
        struct rlimit limit = {most, most};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return fail("setrlimit");
    } else {
        int error = strcmp(words[1], "ENOSYS") == 0 ? ENOSYS : EPERM;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("prctl");
        for (char *name = strtok(words[2], ","); name; name = strtok(NULL, ","))
            if (keep_from(name, error) != 0) return fail(name);
    }
    execvp(words[3], words + 3);
    return fail(words[3]);
}
