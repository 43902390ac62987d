#!/bin/sh
# One step of a pipeline: deploys VERSION to the hosts of TARGET, first to one host, the canary, then to half of them at
# a time. A host succeeds only if the version is healthy there. The first failure stops the deploy: that host goes back to
# its previous version, and the remaining hosts keep theirs.
#
#   RSM_URL         the server
#   RSM_TOKEN_FILE  a file with a token of rsm tokens add (or RSM_TOKEN)
#   VERSION         what to deploy
#   SOURCE          directory or URL with shop-$VERSION.tar.gz, as the hosts see it
#   TARGET          which hosts: a selector, by default those with the tag role=web
#   DEPLOY_ID       names this run of the pipeline: started twice, it deploys once (optional)
#   REPORT          JUnit report, one case a host; by default report.xml
#   RETRIES         how often the check is repeated on a host, every 2 s; by default 5
#
# Exit code: 0 all hosts have it; 1 some host failed, or was not reached or skipped (the report says which); with a
# single host that host's exit code; 124 the deadline; 2 to 6 rsm itself: usage, login, server, no such host, anything else.
set -eu
: "${RSM_URL:?the server, like https://rsm.example:18080}"
: "${VERSION:?what to deploy, like 1.2.3}"
: "${SOURCE:?directory or URL with shop-$VERSION.tar.gz}"

set -- -o "junit=${REPORT:-report.xml}"
# Groups, annotations and a summary where GitHub shows them.
[ "${GITHUB_ACTIONS:-}" != true ] || set -- "$@" -o github
[ -z "${DEPLOY_ID:-}" ] || set -- "$@" --idempotency-key "deploy-$DEPLOY_ID"

here=$(dirname "$0")
exec rsm exec --hosts "${TARGET:-@role:web}" \
  --strategy rolling --batch-size 1,50% --max-failures 0 --deadline 20m \
  --script "$here/put-version.sh" --param "VERSION=$VERSION" --param "SOURCE=$SOURCE" \
  --verify "$here/is-well.sh" --verify-retries "${RETRIES:-5}" --verify-interval 2s \
  --rollback "$here/go-back.sh" \
  "$@"
