#!/bin/bash -eu
# Succeeds if the version in place works. A real check: curl -fsS http://localhost:8080/health
#
# rsm: name=check, timeout=10s, description="Check the version in place"
# rsm: param DIR "directory for the versions of all hosts, by default ~/first-steps"

exec "${DIR:-$HOME/first-steps}/$RSM_HOST/current/health"
