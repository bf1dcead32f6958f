#!/bin/sh
# Runs one program of the conformance suite against the control plane that KUBECONFIG names: test/api/run.sh verbs
exec "${SONDE_BUILD:-build}/test/api-$1"
