// Sleeps until a point of time, in seconds since 1970.
#include <stdlib.h>
#include <time.h>

int main(int count, char **words) {
    struct timespec end = {count > 1 ? atoll(words[1]) : 0, 0};
    return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, NULL);
}
