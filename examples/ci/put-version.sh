#!/bin/bash -euo pipefail
# Runs on each host: puts a version of the shop in place, asks it whether it is well, and goes back to the former
# version if it is not. docs/use/scripts.md has what the next lines say.
#
# rsm: name=put-version, timeout=2m, description="Puts a version in place; goes back if it is not well", tags=deploy
# rsm: param VERSION required "version to put in place, like 1.2.3"
# rsm: param SOURCE required "directory or URL with shop-VERSION.tar.gz"
# rsm: param APP_DIR default=/srv/shop "directory of the app: versions/, and current, which leads to one of them"

case $VERSION in
  *[!A-Za-z0-9._-]* | .*)
    echo "not a version: $VERSION" >&2
    exit 2
    ;;
esac
place=$APP_DIR/versions/$VERSION
former=$(readlink "$APP_DIR/current" || true)

# By rename, so that there is no moment without a version.
switch_to() {
  ln -sfn "$1" "$APP_DIR/current.new"
  mv -T "$APP_DIR/current.new" "$APP_DIR/current"
}

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
switch_to "versions/$VERSION"

# A real service is restarted here (systemctl restart shop) and asked by curl -fsS http://localhost:8000/health.
if timeout 10 "$APP_DIR/current/health"; then
  echo "$VERSION is in place and well"
  exit 0
fi
if [ "$former" != "versions/$VERSION" ]; then
  if [ -n "$former" ]; then switch_to "$former"; else rm "$APP_DIR/current"; fi
  rm -rf "$place"
fi
echo "$VERSION is not well; ${former:-nothing} is in place" >&2
exit 3
