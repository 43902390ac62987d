#!/bin/bash -euo pipefail
# Runs on each host: puts a version of the shop in place. Whether it is well is asked by is-well.sh, and go-back.sh undoes it.
# docs/use/scripts.md has what the next lines say.
#
# rsm: name=put-version, timeout=2m, description="Puts a version in place", tags=deploy
# rsm: param VERSION required "version to put in place, like 1.2.3"
# rsm: param SOURCE required "directory or URL with shop-VERSION.tar.gz"
# rsm: param APP_DIR default=/srv/shop "directory of the app: versions/, current, which leads to one of them, and former"

case $VERSION in
  *[!A-Za-z0-9._-]* | .*)
    echo "not a version: $VERSION" >&2
    exit 2
    ;;
esac
place=$APP_DIR/versions/$VERSION

fetch() {
  case $SOURCE in
    http://* | https://*) curl -fsS "$SOURCE/shop-$VERSION.tar.gz" ;;
    *) cat "$SOURCE/shop-$VERSION.tar.gz" ;;
  esac
}

# Unpacked beside its place, so that a download that broke off is never taken for a version.
if [ ! -d "$place" ]; then
  mkdir -p "$APP_DIR/versions"
  new=$(mktemp -d "$APP_DIR/versions/.new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  fetch | tar -xzf - -C "$new"
  mv "$new" "$place"
fi

# What go-back.sh goes back to. By rename, so that there is no moment without a version.
readlink "$APP_DIR/current" > "$APP_DIR/former" || true
ln -sfn "versions/$VERSION" "$APP_DIR/current.new"
mv -T "$APP_DIR/current.new" "$APP_DIR/current"
# A real service is restarted here: systemctl restart shop
echo "$VERSION is in place"
