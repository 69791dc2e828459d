// Tasks on a host of four cores, in SimGrid: `simgrid_tasks TASKS MS`; see `peers.py`.
//
// SimGrid shares cores as a fluid: nothing is dispatched, all tasks that want to run do so at once, each as fast as its share.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include <simgrid/s4u.hpp>

namespace s4u = simgrid::s4u;

constexpr int CORES = 4;
constexpr double NS_PER_S = 1e9;

static std::uint64_t wakeups = 0;

static void task(double delay_ns, double run_ns, double sleep_ns) {
    s4u::this_actor::sleep_for(delay_ns / NS_PER_S);
    for (;;) {
        wakeups++;
        s4u::this_actor::execute(run_ns);
        s4u::this_actor::sleep_for(sleep_ns / NS_PER_S);
    }
}

int main(int argc, char** argv) {
    s4u::Engine engine(&argc, argv);
    s4u::NetZone* zone = s4u::create_full_zone("all");
    s4u::Host* host = zone->create_host("host", NS_PER_S)->set_core_count(CORES);
    zone->seal();
    std::ifstream tasks(argv[1]);
    for (double delay_ns, run_ns, sleep_ns; tasks >> delay_ns >> run_ns >> sleep_ns;) {
        s4u::Actor::create("task", host, task, delay_ns, run_ns, sleep_ns);
    }
    std::clock_t start = std::clock();
    engine.run_until(std::atof(argv[2]) / 1e3);
    double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("{\"wakeups\": %llu, \"seconds\": %.6f}\n", static_cast<unsigned long long>(wakeups), seconds);
    std::fflush(stdout);
    // The tasks have no end, and need not be ended one by one.
    std::_Exit(0);
}
