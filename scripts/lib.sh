# shellcheck shell=bash
# What the scripts share. To be sourced.

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# step TEXT COMMAND...: runs COMMAND behind one line, TEXT and the seconds passed; shows its output only if it fails.
step() {
  local text=$1 log began=$SECONDS rc=0 pid; shift
  log=$(mktemp)
  printf '%s' "$text"
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  # shellcheck disable=SC2064
  trap "kill $pid 2>/dev/null; rm -f '$log'; exit 130" INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if [ -t 1 ] && [ $((SECONDS - began)) -ge 2 ]; then printf '\r%s  %d s' "$text" $((SECONDS - began)); fi
  done
  wait "$pid" || rc=$?
  trap - INT TERM
  if [ -t 1 ]; then printf '\r%s' "$text"; fi
  printf '  %d s\n' $((SECONDS - began))
  [ "$rc" = 0 ] || { tail -n 40 "$log" >&2; rm -f "$log"; die "failed (exit $rc): ${text%%:*}"; }
  rm -f "$log"
}
