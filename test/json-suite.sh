#!/bin/bash
# What json-check accepts and rejects: our own cases in test/data/json/, and those of nst/JSONTestSuite (y_ must be
# accepted, n_ rejected, i_ may be either) from $JSON_SUITE or ../shared/json-suite when they are there. Prints TAP.
set -u
cd "$(dirname "$0")/.." || exit 2

build=${SONDE_BUILD:-build}
suite=${JSON_SUITE:-../shared/json-suite}
check=$build/test/json-check
[ -x "$check" ] || { echo "Bail out! $check is not built"; exit 1; }
points=0
ulimit -t 10 # seconds of CPU for each program

# point NAME: 0 as the status of what came before is a pass.
point() {
  local status=$? word=ok
  points=$((points + 1))
  [ $status -eq 0 ] || word='not ok'
  echo "$word $points - $1"
}

# all WANTED FILE...: every file ends json-check with a status that WANTED matches, and nothing else.
all() {
  local wanted=$1 file status bad=0
  shift
  [ $# -gt 0 ] || { echo '# there are no such files'; return 1; }
  for file in "$@"; do
    "$check" "$file" >/dev/null 2>&1
    status=$?
    [[ $status =~ ^$wanted$ ]] || { echo "# $file: exit status $status"; bad=1; }
  done
  return $bad
}

# round_trip TEXT: --echo prints it byte for byte.
round_trip() {
  local text bad=0
  for text in "$@"; do
    printf %s "$text" >"$tmp/in"
    [ "$("$check" --echo "$tmp/in")" = "$text" ] || { echo "# $text does not survive"; bad=1; }
  done
  return $bad
}

# fixpoint FILE...: what --echo prints is accepted and printed the same.
fixpoint() {
  local file bad=0
  for file in "$@"; do
    "$check" --echo "$file" >"$tmp/once"
    "$check" --echo "$tmp/once" >"$tmp/twice"
    if [ ! -s "$tmp/once" ] || ! cmp -s "$tmp/once" "$tmp/twice"; then
      echo "# $file: changes when it is written again"
      bad=1
    fi
  done
  return $bad
}

usage_errors() {
  "$check" >/dev/null 2>&1
  [ $? -eq 2 ] || return 1
  "$check" --nonsense x >/dev/null 2>&1
  [ $? -eq 2 ] || return 1
  "$check" /does/not/exist >/dev/null 2>&1
  [ $? -eq 2 ] || return 1
  "$check" --help | grep -q '^usage: '
}

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

all 0 test/data/json/accept/*.json
point 'our own valid cases are accepted'
all 1 test/data/json/reject/*.json
point 'our own invalid cases are rejected'
fixpoint test/data/json/accept/*.json
point 'what is written again stays the same'
round_trip 9007199254740993 18446744073709551615 1.0 1e400 0.1 -0 '[1E+2,-0.0,{"z":1,"a":0.10}]'
point 'numbers survive byte for byte'
usage_errors
point 'wrong usage ends with status 2'

if [ -d "$suite" ]; then
  shopt -s nullglob
  all 0 "$suite"/y_*.json
  point 'JSONTestSuite: y_ is accepted'
  all 1 "$suite"/n_*.json
  point 'JSONTestSuite: n_ is rejected'
  undecided=("$suite"/i_*.json)
  if [ ${#undecided[@]} -gt 0 ]; then
    all '[01]' "${undecided[@]}"
    point 'JSONTestSuite: i_ is accepted or rejected, nothing else'
  fi
  fixpoint "$suite"/y_*.json
  point 'JSONTestSuite: y_ written again stays the same'
fi
echo "1..$points"
