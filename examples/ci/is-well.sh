#!/bin/bash -eu
# Runs on each host after put-version.sh, repeatedly until it succeeds: checks the health of the current version.
#
# rsm: name=is-well, timeout=10s, description="Check the health of the current version", tags=deploy
# rsm: param APP_DIR default=/srv/shop "directory of the app"

# A real service is asked here: curl -fsS http://localhost:8000/health
"$APP_DIR/current/health"
