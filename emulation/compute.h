// Work for the processor: five instructions an iteration, whatever the compiler.
#include <stdint.h>

static void compute(long iterations) {
    uint64_t x = 1;
    if (iterations > 0)
        __asm__ volatile("1: imul %2, %0\n\t"
                         "add %3, %0\n\t"
                         "rol $13, %0\n\t"
                         "dec %1\n\t"
                         "jnz 1b"
                         : "+r"(x), "+r"(iterations)
                         : "r"(6364136223846793005ull), "r"(1442695040888963407ull)
                         : "cc");
}
