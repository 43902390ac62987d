#!/bin/bash -eu
# Runs on a host where put-version.sh failed, or is-well.sh in the end: goes back to the version of before.
#
# rsm: name=go-back, timeout=1m, description="Goes back to the version of before", tags=deploy
# rsm: param VERSION required "version that was to be put in place"
# rsm: param APP_DIR default=/srv/shop "directory of the app"

current=$(readlink "$APP_DIR/current" || true)
former=$(cat "$APP_DIR/former" 2>/dev/null || true)
# It never came into place, or was there before.
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
