/*
 * What went wrong, as a word that a condition may have and as a sentence that says what to do.
 */
#include "probe/ncu/ncu.h"

enum { SENTENCE_MAX = 500 };

static const struct {
        const char *reason, *cause, *next;
} FAILURES[NCU_FAILURES] = {
        [NCU_FAILURE_NONE] = {"None", "nothing failed", ""},
        [NCU_FAILURE_NO_TOOL] =
                {"ToolNotFound", "Nsight Compute (ncu) cannot be started in this image",
                 "use a runner image that has ncu in its PATH (KRATOS_NSIGHT_COMPUTE_IMAGE on "
                 "the operator; deploy/nsight has a recipe)"},
        [NCU_FAILURE_NO_GPU] =
                {"NoGPU", "no GPU can be seen",
                 "check that the pod has a limit nvidia.com/gpu, that the runtime class "
                 "(spec.runtimeClassName) is the NVIDIA runtime's, and that nvidia-smi works on "
                 "the node"},
        [NCU_FAILURE_PERMISSION] = {"CounterPermission",
                                    "the driver lets only administrators read the GPU's counters",
                                    "set spec.profiling.permission to sysAdmin (the namespace must allow "
                                    "CAP_SYS_ADMIN), or load the node's driver with "
                                    "NVreg_RestrictProfilingToAdminUsers=0"},
        [NCU_FAILURE_IN_USE] =
                {"CountersInUse", "another tool holds the GPU's counters, mostly DCGM",
                 "keep dcgm-exporter's DaemonSet off this node while profiling, or run `dcgmi "
                 "profile --pause` there (then --resume); deleting the exporter's pod does not "
                 "help, it comes back"},
        [NCU_FAILURE_DRIVER] =
                {"DriverMismatch", "this version of Nsight Compute and the node's driver do not fit",
                 "use a runner image with an ncu that is not newer than the driver (nvidia-smi "
                 "prints its CUDA version), and no stub libcuda.so in LD_LIBRARY_PATH"},
        [NCU_FAILURE_MIG_CLOCKS] = {"MIGClockControl", "the clocks of a MIG instance cannot be locked",
                                    "profile with --clock-control none, or lock the clocks on the node with "
                                    "nvidia-smi --lock-gpu-clocks"},
        [NCU_FAILURE_NOTHING] = {"NothingProfiled", "the program ran and no kernel was profiled",
                                 "check that it launches kernels at all, and what spec.profiling leaves out: "
                                 "kernelName (a function's plain name, or regex:...) and launchSkip"},
        [NCU_FAILURE_PROGRAM] = {"ProgramFailed", "the program failed while it was profiled",
                                 "read its output in the pod's log, and check that it ends well without the "
                                 "profiler, with the same command, arguments and environment"},
        [NCU_FAILURE_NOT_LOADED] =
                {"ProgramNotLoaded", "the program's libraries do not load beside the tool",
                 "add what is missing to spec.profiling.files, or use a runner image whose C "
                 "library is at least as new as the workload's"},
        [NCU_FAILURE_NO_NUMBERS] = {"NoNumbers",
                                    "launches were profiled, but no throughput among them is a number",
                                    "profile with the set basic, and with an ncu that knows this GPU"},
        [NCU_FAILURE_OTHER] =
                {"ToolFailed", "Nsight Compute failed",
                 "read its output in the pod's log; the lines that begin with ==ERROR== are its "
                 "own"},
};

const char *ncu_failure_reason(enum ncu_failure f)
{
        return FAILURES[f].reason;
}

/* Without what it says to those who have only the tool. */
static struct str evidence_in(const char *detail)
{
        static const char *const ends[] = {" For instructions on enabling", " See https://"};
        struct str text = str_trim(str_of(detail));

        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                const char *at = text.n ? memmem(text.p, text.n, ends[i], strlen(ends[i])) : NULL;

                text.n = at ? (size_t)(at - text.p) : text.n;
        }
        while (text.n && strchr(".,;:! ", text.p[text.n - 1]))
                text.n--;
        return text;
}

const char *ncu_failure_sentence(struct arena *a, enum ncu_failure f, const char *detail)
{
        const char *cause = FAILURES[f].cause, *next = FAILURES[f].next;
        size_t fixed = strlen(cause) + strlen(next) + sizeof(": ; ") - 1;
        struct str evidence = evidence_in(detail);

        evidence.n = utf8_cut(evidence.p, evidence.n, SENTENCE_MAX > fixed ? SENTENCE_MAX - fixed : 0);
        return arena_printf(a, "%s%s%.*s%s%s", cause, evidence.n ? ": " : "", STR_ARG(evidence),
                            *next ? "; " : "", next);
}
