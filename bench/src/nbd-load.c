/* Random 4 KiB reads of an NBD export over several connections at once, by libnbd: for scripts/serve-speed.
 *
 *   nbd-load URI CONNECTIONS DEPTH SECONDS [PROCESS]
 *
 * A thread a connection keeps DEPTH reads outstanding. All begin together once every one is connected, and reads count that end
 * within SECONDS of then. First the export is written full, so that no holes are read. With the PROCESS of the server its
 * processor time over the same span is told, too. Prints reads a second, and microseconds: server's and client's processor time
 * a read, and how long half of all reads took at most, and 99 in 100.
 */
#include <errno.h>
#include <inttypes.h>
#include <libnbd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, MOST_DEPTH = 256, BINS = 20000 };

static const char *uri;
static int depth;
static pthread_barrier_t begin;
static atomic_bool is_over;

struct connection {
    pthread_t thread;
    uint64_t seed, reads;
    /* Reads by how many microseconds they took. */
    uint64_t took[BINS];
};

static void fail(const char *what) {
    fprintf(stderr, "nbd-load: %s: %s\n", what, nbd_get_error() ? nbd_get_error() : strerror(errno));
    exit(1);
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static struct nbd_handle *connect_to(void) {
    struct nbd_handle *nbd = nbd_create();
    if (!nbd || nbd_connect_uri(nbd, uri) == -1) fail(uri);
    return nbd;
}

static void fill(void) {
    static char data[1 << 20];
    struct nbd_handle *nbd = connect_to();
    int64_t size = nbd_get_size(nbd);
    memset(data, 0x5a, sizeof data);
    for (int64_t at = 0; at + (int64_t)sizeof data <= size; at += sizeof data)
        if (nbd_pwrite(nbd, data, sizeof data, at, 0) == -1) fail("write");
    nbd_shutdown(nbd, 0);
    nbd_close(nbd);
}

/* One of a connection's places for a read. */
struct slot {
    int64_t cookie;
    double begun;
    char data[BLOCK];
};

static void issue(struct nbd_handle *nbd, struct slot *slot, struct connection *own, uint64_t blocks) {
    own->seed = own->seed * 6364136223846793005u + 1442695040888963407u;
    slot->begun = seconds_now();
    slot->cookie =
        nbd_aio_pread(nbd, slot->data, BLOCK, (own->seed >> 33) % blocks * BLOCK, NBD_NULL_COMPLETION, 0);
    if (slot->cookie == -1) fail("read");
}

static void *read_on(void *argument) {
    struct connection *own = argument;
    struct nbd_handle *nbd = connect_to();
    uint64_t blocks = (uint64_t)nbd_get_size(nbd) / BLOCK;
    struct slot *slots = calloc(depth, sizeof *slots);
    if (!slots) fail("memory");
    pthread_barrier_wait(&begin);
    for (int i = 0; i < depth; i++) issue(nbd, &slots[i], own, blocks);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        if (nbd_poll(nbd, 100) == -1) fail("poll");
        double now = seconds_now();
        for (int i = 0; i < depth; i++) {
            int done = nbd_aio_command_completed(nbd, slots[i].cookie);
            if (done == -1) fail("read");
            if (!done) continue;
            uint64_t took = (now - slots[i].begun) * 1e6;
            own->took[took < BINS ? took : BINS - 1]++;
            own->reads++;
            issue(nbd, &slots[i], own, blocks);
        }
    }
    return NULL;
}

/* The processor time of a process, in seconds. */
static double processor_time(const char *process) {
    char path[64], line[1024];
    unsigned long user, system;
    if (!process) return 0;
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) fail(path);
    fclose(file);
    if (sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) fail(path);
    return (user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double own_time(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int quantile(const struct connection *all, int count, double share) {
    uint64_t reads = 0, below = 0;
    for (int i = 0; i < count; i++) reads += all[i].reads;
    for (int bin = 0; bin < BINS; bin++) {
        for (int i = 0; i < count; i++) below += all[i].took[bin];
        if (below >= share * reads) return bin;
    }
    return BINS;
}

int main(int count, char **words) {
    if (count < 5 || count > 6) return fprintf(stderr, "nbd-load URI CONNECTIONS DEPTH SECONDS [PROCESS]\n"), 2;
    int connections = atoi(words[2]);
    double seconds = atof(words[4]);
    const char *process = count == 6 ? words[5] : NULL;
    uri = words[1];
    depth = atoi(words[3]);
    if (connections < 1 || depth < 1 || depth > MOST_DEPTH || seconds <= 0) return fprintf(stderr, "nbd-load: numbers\n"), 2;
    fill();
    pthread_barrier_init(&begin, NULL, connections + 1);
    struct connection *all = calloc(connections, sizeof *all);
    for (int i = 0; i < connections; i++) {
        all[i].seed = i + 1;
        if (pthread_create(&all[i].thread, NULL, read_on, &all[i])) fail("thread");
    }
    pthread_barrier_wait(&begin);
    double from = seconds_now(), served = processor_time(process), asked = own_time();
    struct timespec span = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
    atomic_store(&is_over, true);
    double took = seconds_now() - from;
    served = processor_time(process) - served;
    asked = own_time() - asked;
    uint64_t reads = 0;
    for (int i = 0; i < connections; i++) {
        pthread_join(all[i].thread, NULL);
        reads += all[i].reads;
    }
    printf("%.0f %.2f %.2f %d %d\n", reads / took, served / reads * 1e6, asked / reads * 1e6, quantile(all, connections, 0.5),
           quantile(all, connections, 0.99));
    return 0;
}
