/*
 * A profiler in C that says where it is, with nothing but the C library. Yours has its own measure().
 * The status file is replaced as a whole: temporary file, fsync, rename.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *run_dir;

/* Writes NAME of the run directory. A file that cannot be written does not end the profiler. */
__attribute__((format(printf, 2, 3))) static int write_file(const char *name, const char *format, ...)
{
        char path[4096], temporary[4096 + 4];
        va_list args;
        FILE *f;
        int bad;

        snprintf(path, sizeof(path), "%s/%s", run_dir, name);
        snprintf(temporary, sizeof(temporary), "%s.tmp", path);
        f = fopen(temporary, "w");
        if (!f)
                return -1;
        va_start(args, format);
        bad = vfprintf(f, format, args) < 0;
        va_end(args);
        bad |= fflush(f) != 0 || fsync(fileno(f)) != 0;
        bad |= fclose(f) != 0;
        return bad ? -1 : rename(temporary, path);
}

/* Texts go into JSON as they are: no quotes, backslashes or control characters in them. */
static void report(const char *phase, const char *message, int step, int steps, int gpus)
{
        if (write_file("profiling_status.json",
                       "{\"phase\": \"%s\", \"message\": \"%s\", \"progress\": {\"currentStep\": %d, "
                       "\"totalSteps\": %d},"
                       " \"gpuConfig\": {\"currentGpus\": %d, \"parallelMapping\": \"TP=%d\"}}\n",
                       phase, message, step, steps, gpus, gpus) < 0)
                perror("profiling_status.json");
}

static double measure(int gpus)
{
        nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
        return 100.0 / gpus; /* milliseconds */
}

int main(void)
{
        static const int sizes[] = {1, 2, 4};
        double best = 0;
        int chosen = 0;

        run_dir = getenv("SONDE_RUN_DIR");
        if (!run_dir)
                return fputs("SONDE_RUN_DIR is not set: this runs in a pod of Sonde's\n", stderr), 2;
        report("Initializing", "Reading the configuration", 0, 0, 0);
        for (int i = 0; i < 3; i++) {
                double time;

                report("PrefillSweep", "Measuring", i + 1, 3, sizes[i]);
                time = measure(sizes[i]);
                if (!chosen || time < best)
                        best = time, chosen = sizes[i];
        }
        report("PlannerGeneration", "Writing the deployment", 0, 0, chosen);
        if (write_file("config_with_planner.yaml",
                       "apiVersion: nvidia.com/v1alpha1\n"
                       "kind: DynamoGraphDeployment\n"
                       "metadata: {name: from-c}\n"
                       "spec: {services: {Frontend: {replicas: 1}, Worker: {replicas: 1, resources: {limits: "
                       "{gpu: \"%d\"}}}}}\n",
                       chosen) < 0) {
                report("Failed", "cannot write config_with_planner.yaml", 0, 0, 0);
                return 1;
        }
        report("Complete", "done", 0, 0, 0);
        return 0;
}
