// The only program of a guest, started by its kernel as /init.
//
// The kernel hands what it does not know of its command line to us as environment:
//   nm=NAME     how to sign the results
//   wk=N        iterations of one computation (1,000,000 if absent)
//   sl=US       sleep so many microseconds before each computation (absent or 0: a hog)
//   adr=IP      own address on the virtual network; without `ask`, a server that computes `wk` iterations for each request
//   ask=IP      a client: sleep, compute, send one request to that server, wait for the reply
//   rep=BYTES   length of the replies a client asks for, and of what a sender sends (1,000 if absent)
//   to=IP       a sender: sleep, compute, send datagrams to that guest
//   bur=N       how many at a time (1 if absent)
//   rcv=1       a receiver of datagrams: compute for each
//   blk=BYTES   a reader: sleep, compute, read so much of a disk, past any cache, from where it ended before
//   thr=N       so many of them at work, each on a vCPU of its own (1 if absent)
//
// It says `data/ready` in xenstore when it is up. Dom0 answers in `data/start` when to begin (seconds since 1970, the same clock
// in all guests) and how: seconds of a period, from its begin to its window, and of that window, and how many periods. It
// leaves its figures of each window in `data/result/NUMBER/WORKER`, after the end of that period.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compute.h"

enum { PORT = 7000, CLIENTS_MAX = 16, BYTES_MAX = 256 * 1024, SAMPLES_MAX = 1 << 20 };
static const int64_t SECOND_NS = 1000000000;

struct request {
    uint32_t reply_bytes;
    char rest[124];
};

struct samples {
    size_t count;
    uint32_t tenth_us[SAMPLES_MAX]; // tenths of a microsecond
};

static struct samples delays; // how much longer than asked each sleep took
static struct samples responses; // of servers and disks
static struct samples works;     // how long each computation took
static char buffer[BYTES_MAX] __attribute__((aligned(4096)));
static int64_t start_ns, period_ns, to_window_ns, window_ns; // of each period, from its begin, a window
static long periods, period; // how many, and which we are in
static int64_t computing_ns;
static long computations, packets;
static long worker, workers;

static void stop(const char *what) {
    perror(what);
    for (;;) pause();
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * SECOND_NS + t.tv_nsec;
}

static long option(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

// ---------------------------------------------------------------- xenstore

enum { XENSTORE_READ = 2, XENSTORE_WRITE = 11, XENSTORE_ERROR = 16 };

struct xenstore_header {
    uint32_t type, request, transaction, length;
};

static void read_fully(int file, void *to, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t got = read(file, (char *)to + done, length - done);
        if (got <= 0) stop("xenstore");
        done += got;
    }
}

static int file = -1;

// Each worker asks with a file of its own.
static void close_xenstore(void) {
    close(file);
    file = -1;
}

// One question and its answer, as text. Returns whether the answer is not an error.
static int xenstore(uint32_t type, const void *body, uint32_t length, char answer[4097]) {
    if (file < 0 && (file = open("/dev/xen/xenbus", O_RDWR)) < 0) stop("/dev/xen/xenbus");
    struct xenstore_header header = {type, 0, 0, length};
    if (write(file, &header, sizeof header) < 0 || write(file, body, length) < 0) stop("xenstore");
    read_fully(file, &header, sizeof header);
    if (header.length > 4096) stop("xenstore answer too long");
    read_fully(file, answer, header.length);
    answer[header.length] = 0;
    return header.type != XENSTORE_ERROR;
}

static void tell(const char *key, const char *value) {
    char body[4096], answer[4097];
    int length = snprintf(body, sizeof body, "%s%c%s", key, 0, value);
    if (!xenstore(XENSTORE_WRITE, body, length, answer)) stop(key);
}

static void wait_for_start(void) {
    char answer[4097];
    long start, seconds, to_window, window_seconds;
    while (!xenstore(XENSTORE_READ, "data/start", sizeof "data/start", answer)) usleep(50000);
    if (sscanf(answer, "%ld %ld %ld %ld %ld", &start, &seconds, &to_window, &window_seconds, &periods) != 5) stop(answer);
    start_ns = start * SECOND_NS;
    period_ns = seconds * SECOND_NS;
    to_window_ns = to_window * SECOND_NS;
    window_ns = window_seconds * SECOND_NS;
    struct timespec begin = {start, 0};
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &begin, NULL);
}

// ---------------------------------------------------------------- results

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static char result[512];

static void __attribute__((format(printf, 1, 2))) add(const char *format, ...) {
    size_t length = strlen(result);
    va_list values;
    va_start(values, format);
    vsnprintf(result + length, sizeof result - length, format, values);
    va_end(values);
}

static void add_percentiles(const char *name, struct samples *of) {
    if (!of->count) return;
    qsort(of->tenth_us, of->count, sizeof of->tenth_us[0], ascending);
    size_t last = of->count - 1;
    add(" %s p50=%.1f p90=%.1f p99=%.1f max=%.1f", name, of->tenth_us[last / 2] / 10.0, of->tenth_us[last * 90 / 100] / 10.0,
        of->tenth_us[last * 99 / 100] / 10.0, of->tenth_us[last] / 10.0);
}

static void report(void) {
    char key[32];
    result[0] = 0;
    add("G %s", getenv("nm"));
    if (workers > 1) add(".%ld", worker);
    add(" iters=%ld work_us_mean=%.1f", computations, computations ? computing_ns / 1e3 / computations : 0.0);
    if (packets) add(" packets=%ld", packets);
    add_percentiles("wake_us", &delays);
    add_percentiles("response_us", &responses);
    add_percentiles("work_us", &works);
    snprintf(key, sizeof key, "data/result/%ld/%ld", period, worker);
    tell(key, result);
    puts(result);
    fflush(stdout);
    computing_ns = computations = packets = delays.count = responses.count = works.count = 0;
}

static int64_t end_of_period(void) {
    return start_ns + (period + 1) * period_ns;
}

// Reports each period that is over. Returns whether there is more to do.
static int go_on(void) {
    while (period < periods && now_ns() >= end_of_period()) {
        report();
        period++;
    }
    return period < periods;
}

// Whether what began then counts: it began in the period's window.
static int counts(int64_t from) {
    int64_t since = from - start_ns - period * period_ns - to_window_ns;
    return 0 <= since && since < window_ns;
}

static void note(struct samples *to, int64_t from, int64_t ns) {
    if (counts(from) && to->count < SAMPLES_MAX) to->tenth_us[to->count++] = ns / 100;
}

// ---------------------------------------------------------------- work

static void work(long iterations) {
    int64_t from = now_ns();
    compute(iterations);
    int64_t took = now_ns() - from;
    if (!counts(from)) return;
    computing_ns += took;
    computations++;
    note(&works, from, took);
}

static void sleep_us(long us) {
    if (us <= 0) return;
    struct timespec asked = {us / 1000000, us % 1000000 * 1000};
    int64_t from = now_ns();
    nanosleep(&asked, NULL);
    note(&delays, from, now_ns() - from - us * 1000);
}

static void load(const char *path) {
    int module = open(path, O_RDONLY);
    if (module < 0 || syscall(SYS_finit_module, module, "", 0) < 0) stop(path);
    close(module);
}

// ---------------------------------------------------------------- network

static void bring_up(const char *address) {
    load("/xen-netfront.ko");
    int any = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq card = {.ifr_name = "eth0"};
    for (int tries = 0; ioctl(any, SIOCGIFINDEX, &card) < 0; tries++) {
        if (tries == 600) stop("eth0");
        usleep(50000);
    }
    struct sockaddr_in *to = (struct sockaddr_in *)&card.ifr_addr;
    to->sin_family = AF_INET;
    if (!inet_aton(address, &to->sin_addr) || ioctl(any, SIOCSIFADDR, &card) < 0) stop(address);
    if (ioctl(any, SIOCGIFFLAGS, &card) < 0) stop("eth0");
    card.ifr_flags |= IFF_UP;
    if (ioctl(any, SIOCSIFFLAGS, &card) < 0) stop("eth0");
    close(any);
}

static void without_delay(int connection) {
    int yes = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static int listen_for_clients(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, CLIENTS_MAX) < 0) stop("listen");
    return listener;
}

static int connect_to(const char *address) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (!inet_aton(address, &there.sin_addr)) stop(address);
    for (int tries = 0; tries < 600; tries++) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&there, sizeof there) == 0) {
            without_delay(connection);
            return connection;
        }
        close(connection);
        usleep(100000);
    }
    stop(address);
    return -1;
}

static void serve(int listener, long iterations) {
    struct pollfd files[1 + CLIENTS_MAX] = {{.fd = listener, .events = POLLIN}};
    int count = 1;
    while (go_on()) {
        int64_t left_ms = (end_of_period() - now_ns()) / 1000000 + 1;
        if (poll(files, count, left_ms > 0 ? left_ms : 0) <= 0) continue;
        if (files[0].revents && count <= CLIENTS_MAX) {
            int client = accept(listener, NULL, NULL);
            without_delay(client);
            files[count++] = (struct pollfd){.fd = client, .events = POLLIN};
        }
        for (int i = 1; i < count; i++) {
            struct request asked;
            if (!files[i].revents) continue;
            if (recv(files[i].fd, &asked, sizeof asked, MSG_WAITALL) != sizeof asked || asked.reply_bytes > BYTES_MAX) {
                files[i].fd = -1; // poll passes over it
                continue;
            }
            work(iterations);
            send(files[i].fd, buffer, asked.reply_bytes, MSG_NOSIGNAL);
        }
    }
}

static void ask(int server, uint32_t reply_bytes) {
    struct request asked = {.reply_bytes = reply_bytes};
    int64_t from = now_ns();
    int64_t left_us = (start_ns + periods * period_ns - from) / 1000 + 1000;
    struct timeval patience = {left_us / 1000000, left_us % 1000000};
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (send(server, &asked, sizeof asked, MSG_NOSIGNAL) != sizeof asked) stop("send");
    if (recv(server, buffer, reply_bytes, MSG_WAITALL) == (ssize_t)reply_bytes) note(&responses, from, now_ns() - from);
}

static int datagrams(const char *address) {
    int any = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (address && (!inet_aton(address, &peer.sin_addr) || connect(any, (struct sockaddr *)&peer, sizeof peer) < 0)) stop(address);
    if (!address && bind(any, (struct sockaddr *)&peer, sizeof peer) < 0) stop("bind");
    return any;
}

static void send_datagrams(int to, long count, uint32_t bytes) {
    while (count-- > 0) {
        int64_t from = now_ns();
        if (send(to, buffer, bytes, 0) == (ssize_t)bytes && counts(from)) packets++;
    }
}

static void receive_datagrams(int socket, long iterations) {
    struct timeval patience = {0, 100000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (go_on()) {
        if (recv(socket, buffer, sizeof buffer, 0) <= 0) continue;
        if (counts(now_ns())) packets++;
        if (iterations) work(iterations);
    }
}

// ---------------------------------------------------------------- disk

static int open_disk(void) {
    load("/xen-blkfront.ko");
    for (int tries = 0; tries < 600; tries++) {
        int disk = open("/dev/xvda", O_RDONLY | O_DIRECT);
        if (disk >= 0) return disk;
        usleep(50000);
    }
    stop("/dev/xvda");
    return -1;
}

static void read_disk(int disk, size_t bytes) {
    int64_t from = now_ns();
    ssize_t got = read(disk, buffer, bytes);
    if (got < 0) stop("read");
    if (got < (ssize_t)bytes) lseek(disk, 0, SEEK_SET); // its end
    else note(&responses, from, now_ns() - from);
}

// Goes on as so many workers, each on a vCPU of its own.
static void multiply(void) {
    while (worker + 1 < workers && fork() == 0) worker++;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(worker, &mine);
    if (workers > 1 && sched_setaffinity(0, sizeof mine, &mine) < 0) stop("thr");
}

int main(void) {
    const char *address = getenv("adr"), *server = getenv("ask"), *target = getenv("to");
    long iterations = option("wk", 1000000), pause_us = option("sl", 0), burst = option("bur", 1);
    uint32_t bytes = option("rep", 1000), disk_bytes = option("blk", 0);
    int connection = -1, listener = -1, receiver = -1, sender = -1, disk = -1;
    workers = option("thr", 1);

    mount("dev", "/dev", "devtmpfs", 0, NULL);
    if (bytes < 1 || bytes > BYTES_MAX || disk_bytes > BYTES_MAX) stop("rep, blk");
    if (address) {
        bring_up(address);
        if (server) connection = connect_to(server);
        else if (target) sender = datagrams(target);
        else if (option("rcv", 0)) receiver = datagrams(NULL);
        else listener = listen_for_clients();
    }
    if (disk_bytes) disk = open_disk();

    tell("data/ready", "1");
    close_xenstore();
    multiply();
    // So that no page is first touched while we measure.
    memset(&delays, 0, sizeof delays);
    memset(&responses, 0, sizeof responses);
    memset(&works, 0, sizeof works);
    wait_for_start();
    if (listener >= 0) serve(listener, iterations);
    else if (receiver >= 0) receive_datagrams(receiver, iterations);
    else
        while (go_on()) {
            sleep_us(pause_us);
            work(iterations);
            if (connection >= 0) ask(connection, bytes);
            if (sender >= 0) send_datagrams(sender, burst, bytes);
            if (disk >= 0) read_disk(disk, disk_bytes);
        }
    for (;;) pause();
}
