import ch.qos.logback.classic.Level;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.cloudsimplus.brokers.DatacenterBrokerSimple;
import org.cloudsimplus.cloudlets.Cloudlet;
import org.cloudsimplus.cloudlets.CloudletSimple;
import org.cloudsimplus.core.CloudSimPlus;
import org.cloudsimplus.datacenters.DatacenterSimple;
import org.cloudsimplus.hosts.HostSimple;
import org.cloudsimplus.resources.Pe;
import org.cloudsimplus.resources.PeSimple;
import org.cloudsimplus.schedulers.cloudlet.CloudletSchedulerTimeShared;
import org.cloudsimplus.util.Log;
import org.cloudsimplus.utilizationmodels.UtilizationModelFull;
import org.cloudsimplus.vms.VmSimple;

/**
 * Tasks in a virtual machine of four processors, in CloudSim Plus: {@code Tasks TASKS MS}; see {@code peers.py}.
 *
 * <p>It shares processors as a fluid: nothing is dispatched. Each run of a task is a cloudlet; when one is finished, the
 * task's next is submitted, delayed by the time that the task sleeps.
 */
public final class Tasks {
    private static final int PROCESSORS = 4;
    private static final double NS_PER_S = 1e9;

    private final CloudSimPlus simulation = new CloudSimPlus(1 / NS_PER_S);
    private final DatacenterBrokerSimple broker;
    private long finished;

    private Tasks(double seconds) {
        var processors = new ArrayList<Pe>();
        for (int number = 0; number < PROCESSORS; number++) {
            processors.add(new PeSimple(NS_PER_S));
        }
        new DatacenterSimple(simulation, List.of(new HostSimple(1 << 20, 1 << 20, 1 << 20, processors)));
        broker = new DatacenterBrokerSimple(simulation);
        broker.submitVm(new VmSimple(NS_PER_S, PROCESSORS).setCloudletScheduler(new CloudletSchedulerTimeShared()));
        simulation.terminateAt(seconds);
    }

    /** One instruction takes a nanosecond. */
    private void submit(long delayNs, long runNs, long sleepNs) {
        Cloudlet cloudlet = new CloudletSimple(runNs, 1).setUtilizationModelCpu(new UtilizationModelFull());
        cloudlet.setSubmissionDelay(delayNs / NS_PER_S);
        cloudlet.addOnFinishListener(event -> {
            finished++;
            submit(sleepNs, runNs, sleepNs);
        });
        broker.submitCloudlet(cloudlet);
    }

    public static void main(String[] args) throws IOException {
        Log.setLevel(Level.OFF);
        var tasks = new Tasks(Double.parseDouble(args[1]) / 1e3);
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] lengths = line.split(" ");
            tasks.submit(Long.parseLong(lengths[0]), Long.parseLong(lengths[1]), Long.parseLong(lengths[2]));
        }
        var threads = ManagementFactory.getThreadMXBean();
        long start = threads.getCurrentThreadCpuTime();
        tasks.simulation.start();
        double seconds = (threads.getCurrentThreadCpuTime() - start) / NS_PER_S;
        System.out.printf("{\"wakeups\": %d, \"seconds\": %.6f}%n", tasks.finished, seconds);
    }
}
