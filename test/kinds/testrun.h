/*
 * testrun.h - TestRun (test/kinds/crd.yaml), the kind of the tests and benches of the run protocol.
 *
 * A run of any command and nothing more, so everything it does beyond reading its spec is what all kinds share.
 */
#pragma once

#include "kinds/kinds.h"

extern const struct kube_type TESTRUN;

struct testrun_settings {
        const char *pod_image;
};

/* A controller with these settings, which must outlive it. */
struct controller testrun_controller(const struct testrun_settings *settings);
