#!/bin/bash
# A profiler as a shell script that says where it is. Yours has its own measure.
set -eE
report() { /sonde/sonde-pod report "$@"; }
trap 'report --fail "line $LINENO"' ERR

measure() { sleep 0.5; echo $((100 / $1)); }

report --phase Initializing --message "Reading the configuration"
best=
step=0
for gpus in 1 2 4; do
  step=$((step + 1))
  report --phase PrefillSweep --message "Measuring with $gpus GPUs" --step $step --of 3 --sub-phase Benchmarking --gpus $gpus --mapping TP=$gpus
  time=$(measure $gpus)
  if [ -z "$best" ] || [ "$time" -lt "$best" ]; then best=$time chosen=$gpus; fi
done
report --phase PlannerGeneration --message "Writing the deployment"
cat > "$SONDE_RUN_DIR/config_with_planner.yaml" <<END
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: from-shell}
spec: {services: {Frontend: {replicas: 1}, Worker: {replicas: 1, resources: {limits: {gpu: "$chosen"}}}}}
END
report --complete
