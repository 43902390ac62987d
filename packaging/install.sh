#!/bin/sh
# Installs rsm on this host and runs `rsm agent install`, which joins the host to the server of a join string.
#
#   sh install.sh [--join-file FILE | --over-ssh MARK] [ARCH=SHA256…] [rsm agent install - [OPTION…]]
#
# The join string comes on stdin, or from FILE, which is removed. ARCH=SHA256 (x64, arm64) says which executable is meant;
# without it, the server is asked, whose key the join string pins. This script reads only the options --prefix and --user.
# With --over-ssh it talks to `rsm hosts join --ssh`, which sends executable and join string; its lines begin with MARK.
# Everything is in functions, so that half a download does nothing.
set -u

fail() {
  printf 'rsm: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Only what writes to the system is run as root.
as_root() {
  if [ "$mode" = user ] || [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

read_arguments() {
  join_file='' mark='' sum_x64='' sum_arm64='' prefix='' mode=system at_end=' at the end of the line'
  while [ $# -gt 0 ]; do
    case $1 in
      --join-file)
        [ $# -ge 2 ] || fail '--join-file needs a file'
        join_file=$2
        shift
        ;;
      --over-ssh)
        [ $# -ge 2 ] || fail '--over-ssh needs a mark'
        mark=$2 at_end=''
        shift
        ;;
      x64=*) sum_x64=${1#x64=} ;;
      arm64=*) sum_arm64=${1#arm64=} ;;
      rsm) break ;;
      *) fail "unknown argument: $1 (ARCH=SHA256, --join-file FILE, --over-ssh MARK, then rsm agent install - …)" ;;
    esac
    shift
  done
  for word in "$@"; do
    case $word in
      --user) mode=user ;;
      --prefix=*) prefix=${word#--prefix=} ;;
      *) [ "${before:-}" != --prefix ] || prefix=$word ;;
    esac
    before=$word
  done
  if [ -z "$prefix" ]; then
    if [ "$mode" = user ]; then prefix=$HOME/.local; else prefix=/usr/local; fi
  fi
  case $prefix in /*) ;; *) fail "--prefix is not absolute: $prefix" ;; esac
  [ "$mode" = user ] || [ "$(id -u)" = 0 ] || [ -n "$mark" ] || has sudo ||
    fail 'run this as root, or with --user at its end: then the agent is yours alone'
}

# Requirements of rsm and its scripts.
check_host() {
  [ "$(uname -s)" = Linux ] || fail "there are builds for Linux only, not for $(uname -s)"
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no build for $(uname -m), only for x86_64 and aarch64; with Node 20 the npm package runs here" ;;
  esac
  for libc in /lib/ld-musl-*; do
    if [ -e "$libc" ] && ! has_glibc; then
      fail 'this host has musl (Alpine), and rsm needs glibc 2.28 or newer: run the agent in a container with glibc'
    fi
  done
  glibc=$(ldd --version 2>/dev/null | sed -n '1s/.* \([0-9]*\.[0-9]*\).*/\1/p')
  [ -n "$glibc" ] || glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //')
  case $glibc in
    2.*)
      minor=${glibc#2.}
      [ "${minor%%[!0-9]*}" -ge 28 ] || fail "this host has glibc $glibc, and rsm needs 2.28 or newer"
      ;;
  esac
  for library in /lib*/libstdc++.so.6 /usr/lib*/libstdc++.so.6 /lib/*/libstdc++.so.6 /usr/lib/*/libstdc++.so.6; do
    [ ! -e "$library" ] || return 0
  done
  fail 'libstdc++.so.6 is missing: apt-get install libstdc++6, dnf install libstdc++, or zypper install libstdc++6'
}

has_glibc() {
  for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
    [ ! -e "$loader" ] || return 0
  done
  return 1
}

# FIELD of the join string: base64url of JSON whose strings hold no quote.
join_field() {
  printf '%s' "$json" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

read_join() {
  if [ -n "$join_file" ]; then
    join=$(cat "$join_file") || fail "can't read $join_file"
    rm -f "$join_file" || fail "can't remove $join_file, which holds a token"
  else
    [ ! -t 0 ] || fail 'the join string is missing: echo rsm-join:… | sh install.sh'
    join=$(cat)
  fi
  case $join in
    rsm-join:*) ;;
    *) fail 'stdin is not a join string: one begins with rsm-join:' ;;
  esac
  coded=$(printf '%s' "${join#rsm-join:}" | tr '_-' '/+')
  while [ $((${#coded} % 4)) != 0 ]; do coded=$coded=; done
  json=$(printf '%s' "$coded" | base64 -d 2>/dev/null)
  url=$(join_field url) pin=$(join_field fingerprint)
  case $json in
    '{"v":1,'*'}') ;;
    '{"v":1,'*) fail 'the join string was cut: its end is missing' ;;
    *) fail 'the join string was altered, or is of another version: rsm hosts join makes a new one' ;;
  esac
  case $url in
    https://* | http://*) ;;
    *) fail 'the join string was altered: its URL is invalid' ;;
  esac
  case $pin in
    '' | sha256//*) ;;
    *) fail 'the join string pins a whole certificate, which neither curl nor wget can do' ;;
  esac
}

# Downloads PATH from the server to stdout, over TLS with the key that the join string pins. Retries for about two minutes while
# the server has too many downloads, or a proxy does not reach it.
fetch() {
  if has curl; then
    if [ -n "$pin" ]; then set -- -k --pinnedpubkey "$pin" "$url$1"; else set -- "$url$1"; fi
    curl -fsS --retry 10 --retry-max-time 120 "$@"
  elif has wget && wget --help 2>&1 | grep -q pinnedpubkey; then
    if [ -n "$pin" ]; then set -- --no-check-certificate "--pinnedpubkey=$pin" "$url$1"; else set -- "$url$1"; fi
    wget -nv -O- --tries=15 --retry-on-http-error=408,429,500,502,503,504 "$@"
  else
    fail 'curl (7.39 or newer) or GNU wget is needed'
  fi
}

wanted_sum() {
  case $arch in
    x64) sum=$sum_x64 ;;
    *) sum=$sum_arm64 ;;
  esac
  if [ -z "$sum_x64$sum_arm64" ]; then
    sums=$(fetch /dl/SHA256SUMS) || fail "could not fetch $url/dl/SHA256SUMS"
    sum=$(printf '%s\n' "$sums" | sed -n "s/^\([0-9a-f]\{64\}\)  rsm-linux-$arch\$/\1/p")
  fi
  [ -n "$sum" ] || fail "the server has no build for $arch; its administrator can add one: rsm server releases add rsm-linux-$arch"
}

is_wanted() {
  case $(as_root sha256sum "$1" 2>/dev/null) in
    "$sum "*) return 0 ;;
    *) return 1 ;;
  esac
}

# Writes the executable beside its target, so that one rename puts it in place and half a file never runs.
begin_part() {
  bin=$prefix/bin
  if ! { as_root mkdir -p "$bin" && part=$(as_root mktemp "$bin/.rsm.XXXXXX"); }; then
    fail "can't write to $bin: add --prefix DIR$at_end, as --prefix /opt/rsm"
  fi
  trap 'as_root rm -f "$part"' EXIT
  # PIPE: the ssh connection has ended, so an error message could not be written.
  trap 'exit 1' HUP INT PIPE TERM
}

end_part() {
  as_root chmod 755 "$part" || fail "can't make $part executable"
  said=$("$part" --version 2>&1) ||
    fail "it does not run in $bin (mounted noexec? then add --prefix DIR on another file system): $said"
  as_root mv -f "$part" "$bin/rsm" || fail "can't write $bin/rsm"
  trap - EXIT HUP INT PIPE TERM
}

download() {
  program=$prefix/bin/rsm
  if is_wanted "$program"; then
    echo "rsm: $program is there already"
    return 0
  fi
  begin_part
  echo "rsm: fetching rsm-linux-$arch from $url"
  if has xz && fetch "/dl/rsm-linux-$arch.xz" 2>/dev/null | xz -dc 2>/dev/null | as_root tee "$part" >/dev/null && is_wanted "$part"; then
    :
  else
    fetch "/dl/rsm-linux-$arch" | as_root tee "$part" >/dev/null ||
      fail "could not fetch $url/dl/rsm-linux-$arch into $bin"
    is_wanted "$part" ||
      fail "nothing was installed: the file from $url is not the executable with the sha256 $sum"
  fi
  end_part
  echo "rsm: installed $program"
}

sum_of() {
  if [ -f "$1" ]; then sha256sum "$1" | cut -d ' ' -f 1; else echo -; fi
}

# Conversation with the command line: reports which executables are here; receives `copy SHA256 SIZE` and the executable, or
# `use PATH`; then the join string.
over_ssh() {
  if [ "$mode" != user ] && [ "$(id -u)" != 0 ]; then
    fail "$(id -un) is not root here: add --sudo, or log in with --ssh-user root"
  fi
  echo "$mark host $arch $(sum_of "$prefix/bin/rsm") $(sum_of /usr/bin/rsm)"
  read -r word sum size || exit 1
  case $word in
    use) program=$sum${size:+ $size} ;;
    copy)
      program=$prefix/bin/rsm
      begin_part
      head -c "$size" >"$part" || fail "can't write $part: is the disk full?"
      is_wanted "$part" || fail "nothing was installed: the executable arrived incomplete or damaged"
      end_part
      ;;
    *) fail "unexpected answer over ssh: $word" ;;
  esac
  echo "$mark ready"
  read -r join || exit 1
  echo "$mark result"
}

main() {
  umask 022
  read_arguments "$@"
  while [ $# -gt 0 ] && [ "$1" != rsm ]; do shift; done
  [ $# -gt 0 ] || set -- rsm agent install -
  shift
  has sha256sum || fail 'sha256sum is needed (coreutils)'
  check_host
  if [ -n "$mark" ]; then
    over_ssh
  else
    read_join
    wanted_sum
    download
  fi
  printf '%s\n' "$join" | as_root "$program" "$@"
}

main "$@"
