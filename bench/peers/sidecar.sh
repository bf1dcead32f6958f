#!/usr/bin/env bash
# A peer of the relay: a sidecar that works as the full status design has it (its section 4): every 10 s md5sum of the
# status file, and when it changed two kubectl in a pipe.   sidecar.sh FILE CONFIGMAP NAMESPACE   (kubectl, KUBECONFIG)
STATUS_FILE=$1 STATUS_CM_NAME=$2 NAMESPACE=$3
LAST_STATUS_HASH=""

update_status_cm() {
  if [ -f "$STATUS_FILE" ]; then
    CURRENT_HASH=$(md5sum "$STATUS_FILE" | cut -d' ' -f1)
    if [ "$CURRENT_HASH" != "$LAST_STATUS_HASH" ]; then
      kubectl create configmap "$STATUS_CM_NAME" \
        --from-file=status.json="$STATUS_FILE" \
        -n "$NAMESPACE" \
        --dry-run=client -o yaml | kubectl apply -f -
      LAST_STATUS_HASH="$CURRENT_HASH"
      echo "Updated status ConfigMap"
    fi
  fi
}

while true; do
  update_status_cm
  sleep 10
done
