#!/bin/bash -eu
# Archives what deploy.sh put in place, and keeps the newest seven archives.
#
# rsm: name=backup, timeout=10m, description="Back up the program"
# rsm: param DIR "directory for the versions of all hosts, by default ~/first-steps"

umask 077
cd "${DIR:-$HOME/first-steps}/$RSM_HOST"
mkdir -p backups
archive=backups/$(date +%Y-%m-%dT%H%M%S).tar.gz
tar -czf "$archive" --exclude=./backups .
for old in $(ls -r backups | tail -n +8); do rm "backups/$old"; done
echo "$archive: $(stat -c %s "$archive") bytes"
