// Makes the VMs of an experiment, a process each, and their vCPUs, a thread each; records while they work.
//
//   vms EXPERIMENT SECONDS SEED
//
// Its control groups are there already. The threads are called as QEMU calls its vCPUs. Each one sleeps and computes for ever, as
// its line `th` says, from BEGIN_S on; when SECONDS of that are recorded, the program leaves /out/threads.txt, /out/iterations.txt
// and /out/sched-debug.txt, and the VMs at work.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compute.h"

enum { THREADS_MAX = 64, VMS_MAX = 64, ITERATION_NS = 10, WORD_MAX = 200, BEGIN_S = 8 };
static const int64_t SECOND_NS = 1000000000, RECORDED_BEFORE_NS = 100000000, SETTLE_NS = 80000000;
// In this time each thread wakes once alone, so that all begin with what a thread has that slept for long.
static const int64_t WARM_UP_FROM_NS = 7000000000, WARM_UP_NS = 800000000;

struct vm {
    char name[WORD_MAX], group[WORD_MAX]; // no group: the root group
    int threads;
};

struct thread {
    int vm, vcpu, number, nice, policy;
    long sleep_us, work, jitter, yields;
    char group[WORD_MAX]; // its own
    uint64_t random;
    // What it tells the others.
    _Atomic pid_t id;
    _Atomic long iterations;
};

static struct vm vms[VMS_MAX];
static struct thread *threads; // shared by the processes
static int vm_count, thread_count;

static void __attribute__((format(printf, 1, 2), noreturn)) stop(const char *format, ...) {
    va_list values;
    va_start(values, format);
    int error = errno;
    fputs("vms: ", stderr);
    vfprintf(stderr, format, values);
    fprintf(stderr, ": %s\n", strerror(error));
    exit(1);
}

static void sleep_until(int64_t ns) {
    struct timespec at = {ns / SECOND_NS, ns % SECOND_NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
}

static void __attribute__((format(printf, 2, 3))) put(const char *path, const char *format, ...) {
    va_list values;
    va_start(values, format);
    FILE *file = fopen(path, "w");
    if (!file || vfprintf(file, format, values) < 0 || fclose(file)) stop("%s", path);
    va_end(values);
}

// Into a control group, by its file for processes or for threads.
static void join(const char *group, const char *file, pid_t id) {
    char path[2 * WORD_MAX];
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", group, file);
    put(path, "%d", id);
}

// ---------------------------------------------------------------- the experiment

static long number_of(const char *word) { return strtol(strchr(word, '=') + 1, NULL, 10); }

// What is read here was checked by experiment.py.
static void read_experiment(const char *path, uint64_t seed) {
    FILE *file = fopen(path, "r");
    if (!file) stop("%s", path);
    for (char line[1000]; fgets(line, sizeof line, file);) {
        const char *what = strtok(line, " \n"), *word;
        if (!what) continue;
        if (!strcmp(what, "vm")) {
            if (vm_count == VMS_MAX) stop("more than %d VMs", VMS_MAX);
            struct vm *vm = &vms[vm_count++];
            snprintf(vm->name, sizeof vm->name, "%s", strtok(NULL, " \n"));
            if ((word = strtok(NULL, " \n"))) snprintf(vm->group, sizeof vm->group, "%s", word);
        } else if (!strcmp(what, "th")) {
            if (thread_count == THREADS_MAX) stop("more than %d threads", THREADS_MAX);
            struct thread *thread = &threads[thread_count];
            thread->number = thread_count++;
            thread->vm = vm_count - 1;
            thread->vcpu = vms[thread->vm].threads++;
            thread->work = 1000000;
            thread->random = (seed << 16) + thread_count;
            while ((word = strtok(NULL, " \n"))) {
                if (!strncmp(word, "sl=", 3)) thread->sleep_us = number_of(word);
                else if (!strncmp(word, "wk=", 3)) thread->work = number_of(word);
                else if (!strncmp(word, "jit=", 4)) thread->jitter = number_of(word);
                else if (!strncmp(word, "nice=", 5)) thread->nice = number_of(word);
                else if (!strcmp(word, "policy=batch")) thread->policy = SCHED_BATCH;
                else if (!strcmp(word, "policy=idle")) thread->policy = SCHED_IDLE;
                else if (!strcmp(word, "policy=other")) thread->policy = SCHED_OTHER;
                else if (!strncmp(word, "yield=", 6)) thread->yields = number_of(word);
                else if (!strncmp(word, "cg=", 3)) snprintf(thread->group, sizeof thread->group, "%s", word + 3);
                else stop("%s", word);
            }
        }
    }
    fclose(file);
}

// ---------------------------------------------------------------- a vCPU

// SplitMix64.
static uint64_t random_of(struct thread *thread) {
    uint64_t z = (thread->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// Evenly from the thread's jitter around a value.
static int64_t around(struct thread *thread, int64_t value) {
    int64_t most = value * thread->jitter / 100;
    return most ? value - most + (int64_t)(random_of(thread) % (2 * most + 1)) : value;
}

static void *vcpu(void *of) {
    struct thread *thread = of;
    char name[16];
    pid_t id = syscall(SYS_gettid);
    snprintf(name, sizeof name, "CPU %d/KVM", thread->vcpu);
    if (prctl(PR_SET_NAME, name) || prctl(PR_SET_TIMERSLACK, 1)) stop("%s", name);
    if (thread->nice && setpriority(PRIO_PROCESS, id, thread->nice)) stop("nice %d", thread->nice);
    if (thread->policy && sched_setscheduler(id, thread->policy, &(struct sched_param){0})) stop("policy %d", thread->policy);
    if (thread->group[0]) join(thread->group, "cgroup.threads", id);
    thread->id = id;
    sleep_until(WARM_UP_FROM_NS + WARM_UP_NS / thread_count * thread->number);
    sleep_until(BEGIN_S * SECOND_NS);
    for (;; thread->iterations++) {
        if (thread->sleep_us) {
            int64_t ns = around(thread, thread->sleep_us * 1000);
            struct timespec pause = {ns / SECOND_NS, ns % SECOND_NS};
            nanosleep(&pause, NULL);
        }
        int64_t work = around(thread, thread->work);
        if (!thread->yields) compute(work);
        for (long part = 0; part < thread->yields; part++) {
            compute(work / thread->yields);
            sched_yield();
        }
    }
    return NULL;
}

static void make_vm(int vm) {
    pid_t process = fork();
    if (process < 0) stop("fork");
    if (process > 0) return;
    if (vms[vm].group[0]) join(vms[vm].group, "cgroup.procs", getpid());
    for (int i = 0; i < thread_count; i++) {
        pthread_t handle;
        if (threads[i].vm == vm && (errno = pthread_create(&handle, NULL, vcpu, &threads[i]))) stop("pthread_create");
    }
    for (;;) pause();
}

// ---------------------------------------------------------------- the recording

static void copy(const char *from, const char *to) {
    char buffer[65536];
    FILE *source = fopen(from, "r"), *target = fopen(to, "w");
    if (!source || !target) stop("%s", from);
    for (size_t length; (length = fread(buffer, 1, sizeof buffer, source)) > 0;) fwrite(buffer, 1, length, target);
    if (ferror(source) || fclose(target)) stop("%s", to);
    fclose(source);
}

static void record(long seconds) {
    int recording = open("/sys/kernel/tracing/tracing_on", O_WRONLY);
    if (recording < 0) stop("tracing_on");
    sleep_until(BEGIN_S * SECOND_NS - 2 * RECORDED_BEFORE_NS);
    // Under CFS who wakes is behind the others by a limit at most. With this all are, whatever they ran when they were made.
    compute(SETTLE_NS / ITERATION_NS);
    sleep_until(BEGIN_S * SECOND_NS - RECORDED_BEFORE_NS);
    if (write(recording, "1", 1) != 1) stop("tracing_on");
    sleep_until((BEGIN_S + seconds) * SECOND_NS);
    if (write(recording, "0", 1) != 1) stop("tracing_on");
}

static void tell(void) {
    FILE *ids = fopen("/out/threads.txt", "w"), *iterations = fopen("/out/iterations.txt", "w");
    if (!ids || !iterations) stop("/out");
    fputs("# thread VM vCPU\n", ids);
    for (int i = 0; i < thread_count; i++) {
        const char *vm = vms[threads[i].vm].name;
        fprintf(ids, "%d %s %d\n", threads[i].id, vm, threads[i].vcpu);
        fprintf(iterations, "%s/%d: iterations of its loop body in all: %ld\n", vm, threads[i].vcpu, threads[i].iterations);
    }
    if (fclose(ids) || fclose(iterations)) stop("/out");
}

int main(int count, char **words) {
    if (count != 4) stop("vms EXPERIMENT SECONDS SEED");
    threads = mmap(NULL, THREADS_MAX * sizeof *threads, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (threads == MAP_FAILED) stop("mmap");
    read_experiment(words[1], strtoull(words[3], NULL, 10));
    for (int i = 0; i < vm_count; i++) make_vm(i);
    sleep_until(WARM_UP_FROM_NS - SECOND_NS / 20);
    for (int i = 0; i < thread_count; i++)
        if (!threads[i].id) stop("thread %d did not come up in time", i);
    record(strtol(words[2], NULL, 10));
    const char *debug = "/sys/kernel/debug/sched/debug";
    copy(access(debug, R_OK) ? "/proc/sched_debug" : debug, "/out/sched-debug.txt"); // the latter from 5.13 on
    tell();
}
