#!/bin/bash -euo pipefail
# Runs on each host: puts a version of the shop in place. is-well.sh checks it, and go-back.sh undoes it.
# The next lines are explained in docs/use/scripts.md.
#
# rsm: name=put-version, timeout=2m, description="Put a version in place", tags=deploy
# rsm: param VERSION required "version to put in place, like 1.2.3"
# rsm: param SOURCE required "directory or URL with shop-VERSION.tar.gz"
# rsm: param APP_DIR default=/srv/shop "directory of the app: versions/, current (a link to one of them) and former"

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

# Unpack into a temporary directory, so that an interrupted download never counts as a version.
if [ ! -d "$place" ]; then
  mkdir -p "$APP_DIR/versions"
  new=$(mktemp -d "$APP_DIR/versions/.new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  fetch | tar -xzf - -C "$new"
  mv "$new" "$place"
fi

# The version for go-back.sh. Renaming leaves no moment without a version.
readlink "$APP_DIR/current" > "$APP_DIR/former" || true
ln -sfn "versions/$VERSION" "$APP_DIR/current.new"
mv -T "$APP_DIR/current.new" "$APP_DIR/current"
# A real service is restarted here: systemctl restart shop
echo "$VERSION is in place"
