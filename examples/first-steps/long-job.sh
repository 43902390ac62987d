#!/bin/bash -eu
# Prints a line every second, for 15 seconds.
#
# rsm: name=long-job, timeout=1m, description="A job to follow"

for step in {1..15}; do
  echo "step $step of 15"
  sleep 1
done
