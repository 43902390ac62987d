#!/bin/bash -eu
# Puts a version of a small program in place. A version that ends in -bad fails its check.
#
# rsm: name=deploy, timeout=1m, description="Put a version in place"
# rsm: param VERSION required "version to put in place, like 1.2.3"
# rsm: param DIR "directory for the versions of all hosts, by default ~/first-steps"

case $VERSION in
  *[!A-Za-z0-9._-]* | [!0-9]*)
    echo "not a version: $VERSION" >&2
    exit 2
    ;;
esac
home=${DIR:-$HOME/first-steps}/$RSM_HOST
mkdir -p "$home/$VERSION"
cd "$home"

cat >"$VERSION/health" <<END
#!/bin/sh
case $VERSION in *-bad) echo '$VERSION does not answer'; exit 1 ;; esac
echo '$VERSION answers'
END
chmod +x "$VERSION/health"

# A second deploy of the same version keeps the version to go back to.
if [ "$(readlink current)" != "$VERSION" ]; then
  [ ! -L current ] || ln -sfn "$(readlink current)" previous
  ln -sfn "$VERSION" current
fi
echo "$VERSION is in place"
