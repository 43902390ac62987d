#!/bin/bash -eu
# Runs on each host after put-version.sh, and again until it succeeds: asks the version in place whether it is well.
#
# rsm: name=is-well, timeout=10s, description="Asks the version in place whether it is well", tags=deploy
# rsm: param APP_DIR default=/srv/shop "directory of the app"

# A real service is asked here: curl -fsS http://localhost:8000/health
"$APP_DIR/current/health"
