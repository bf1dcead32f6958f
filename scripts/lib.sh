# shellcheck shell=bash
# What the scripts share. To be sourced.

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

as_root=() # how to become root: nothing when we are, or sudo

# step TEXT COMMAND...: runs COMMAND behind one line, TEXT and the seconds passed; shows its output only if it fails.
# An interrupt ends COMMAND with all that it started, or waits for its end when it is to run whole (whole=1 step ...).
step() {
  local text=$1 log began=$SECONDS rc=0 pid stop=; shift
  log=$(mktemp)
  printf '%s' "$text"
  set -m # a process group of its own
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  set +m
  trap 'stop=130' INT
  trap 'stop=129' HUP
  trap 'stop=143' TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2 || :
    if [ -n "$stop" ] && [ -z "${whole:-}" ]; then "${as_root[@]}" kill -TERM -- "-$pid" 2>/dev/null || :; fi
    if [ -t 1 ] && [ $((SECONDS - began)) -ge 2 ]; then printf '\r%s  %d s%s' "$text" $((SECONDS - began)) "${stop:+, then stop}"; fi
  done
  wait "$pid" || rc=$?
  trap - INT HUP TERM
  if [ -n "$stop" ]; then echo; rm -f "$log"; exit "$stop"; fi
  if [ -t 1 ]; then printf '\r%s' "$text"; fi
  printf '  %d s\n' $((SECONDS - began))
  [ "$rc" = 0 ] || { tail -n 40 "$log" >&2; rm -f "$log"; die "failed (exit $rc): ${text%%:*}"; }
  rm -f "$log"
}
