#!/bin/bash -eu
# Runs on a host where put-version.sh or the last try of is-well.sh failed: goes back to the previous version.
#
# rsm: name=go-back, timeout=1m, description="Go back to the previous version", tags=deploy
# rsm: param VERSION required "version to go back from"
# rsm: param APP_DIR default=/srv/shop "directory of the app"

current=$(readlink "$APP_DIR/current" || true)
former=$(cat "$APP_DIR/former" 2>/dev/null || true)
# VERSION is not current, or it was current before.
if [ "$current" != "versions/$VERSION" ] || [ "$former" = "$current" ]; then
  echo "${current:-nothing} is in place"
  exit 0
fi
if [ -n "$former" ]; then
  ln -sfn "$former" "$APP_DIR/current.new"
  mv -T "$APP_DIR/current.new" "$APP_DIR/current"
else
  rm "$APP_DIR/current"
fi
rm -rf "${APP_DIR:?}/versions/$VERSION"
# A real service is restarted here: systemctl restart shop
echo "back to ${former:-nothing}"
