#!/bin/bash -eu
# Goes back from VERSION to the version before it; runs where deploy.sh or check.sh failed.
#
# rsm: name=rollback, timeout=1m, description="Go back to the previous version"
# rsm: param VERSION required "version to go back from"
# rsm: param DIR "directory for the versions of all hosts, by default ~/first-steps"

cd "${DIR:-$HOME/first-steps}/$RSM_HOST" 2>/dev/null || exit 0
[ "$(readlink current)" = "$VERSION" ] || exit 0
rm current
[ ! -L previous ] || mv previous current
echo "back to $(readlink current || echo nothing)"
