#!/usr/bin/env bash
# The nine tasks of docs/start/compared.md in pdsh, clush, ansible and rsm on the same hosts: prints each output, exit code,
# number of keys typed and time in seconds, then a table.
#
#   npm run build && bench/compared/run.sh [TASK…]
#
# The hosts are boxes of bubblewrap on this machine, each with a name, processes, a /srv, an sshd and an agent of its
# own, on loopback. Keys and settings live in a temporary directory; no file of ssh, ansible or rsm of the user is read
# or written. Needs root, bwrap, sshd, pdsh, clush, ansible and jq. Takes about four minutes.
set -u
repository=$(cd "$(dirname "$0")/../.." && pwd)
for program in bwrap /usr/sbin/sshd pdsh dshbak clush ansible ansible-playbook jq; do
  command -v "$program" >/dev/null || { echo "$program is missing" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo 'needs root, for bwrap and sshd' >&2; exit 1; }
rounds=${ROUNDS:-5}
work=$(mktemp -d)
port=$((20000 + RANDOM % 30000))
started=()
stop() {
  # Ansible keeps connections open for its next command.
  for socket in "$work"/control/*; do [ ! -S "$socket" ] || ssh -S "$socket" -O exit web 2>/dev/null; done
  kill "${started[@]}" 2>/dev/null
  wait 2>/dev/null
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 1' INT TERM

# One-time settings of the tools, so that the commands below are those that users type.
mkdir -p "$work/bin" "$work/home" "$work/typed" "$work/clustershell" /run/sshd
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config PATH=$work/bin:$PATH NO_COLOR=1
export PDSH_RCMD_TYPE=ssh PDSH_SSH_ARGS_APPEND="-F $work/ssh_config"
export CLUSTERSHELL_CFGDIR=$work/clustershell ANSIBLE_CONFIG=$work/ansible.cfg ANSIBLE_NOCOLOR=1
ln -s "$repository/bin/run.js" "$work/bin/rsm"
: >"$work/empty"
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done
for n in 1 2 3 4; do printf 'Host web%s\n  HostName 127.77.0.%s\n' $n $n; done >"$work/ssh_config"
cat >>"$work/ssh_config" <<END
Host *
  Port $port
  User root
  IdentityFile $work/user
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
printf '[Main]\nssh_options: -F %s\ncolor: never\n' "$work/ssh_config" >"$work/clustershell/clush.conf"
printf '[web]\nweb[1:3]\n' >"$work/inventory"
cat >"$work/ansible.cfg" <<END
[defaults]
inventory = $work/inventory
remote_tmp = /srv/.ansible
async_dir = /srv/.ansible_async
interpreter_python = /usr/bin/python3
[ssh_connection]
ssh_args = -C -o ControlMaster=auto -o ControlPersist=60s -F $work/ssh_config
control_path_dir = $work/control
END

# The server and the hosts. OFFLINE comes after 3 intervals; 2 s instead of 30, so that task 5 need not wait.
export RSM_ADMIN_PASSWORD='a password for the comparison'
rsm server start --port 0 --data-dir "$work/server" --heartbeat-interval 2 --log-level ERROR --json >"$work/ready" &
started+=($!)
until [ -s "$work/ready" ]; do sleep 0.1; done
url=$(jq -r .url "$work/ready")
printf %s "$RSM_ADMIN_PASSWORD" | rsm login "$url" --username admin --password-stdin 2>/dev/null
rsm hosts join --max-uses 4 --token >"$work/token"

host() {
  local name=web$1 own=$work/hosts/web$1 home box=()
  home=$(getent passwd root | cut -d: -f6)
  mkdir -p "$own"
  echo "$2" >"$own/version"
  cat >"$own/sshd" <<END
HostKey $work/host
AuthorizedKeysFile $work/user.pub
StrictModes no
UsePAM no
ListenAddress 127.77.0.$1:$port
PidFile none
Subsystem sftp internal-sftp
END
  # The hosts must not see the user's own shell settings.
  [ ! -e "$home/.bashrc" ] || box=(--ro-bind "$work/empty" "$home/.bashrc")
  bwrap --die-with-parent --unshare-pid --unshare-uts --hostname "$name" --dev-bind / / --proc /proc \
    --tmpfs /srv --bind "$own" /srv "${box[@]}" sh -c "
      /usr/sbin/sshd -D -f $own/sshd &
      exec rsm agent run --url $url --enroll-token-file $work/token --data-dir $own/agent --log-level ERROR" >/dev/null &
  started+=($!)
}
host 1 1.2.3
host 2 1.2.3
host 3 1.2.2
host 4 1.2.3
last=$!
rsm_ready() { [ "$(rsm hosts list --json | jq '[.content[] | select(.agent.connected)] | length')" = "$1" ]; }
until rsm_ready 4; do sleep 0.5; done
for n in 1 2 3 4; do until ssh -F "$work/ssh_config" web$n true 2>/dev/null; do sleep 0.2; done; done

cd "$work/typed" || exit 1
cat >deploy.sh <<'END'
#!/bin/bash -e
# rsm: param VERSION required "version to put in place"
VERSION=${1:-$VERSION}
echo "putting $VERSION in place on $(hostname)"
END
cat >roll.yml <<'END'
- hosts: web
  gather_facts: false
  serial: [1, "50%"]
  max_fail_percentage: 0
  tasks:
    - shell: test "$(hostname)" != web1
END
echo 'for i in 1 2 3 4 5 6 7 8; do echo step $i; sleep 1; done; touch /srv/done' >long.sh
printf 'port = 8080\n%.0s' $(seq 500) >app.conf
echo 'sleep 3017 & setsid sleep 3017 & sleep 3017' >stuck.sh

table=$work/table
wanted=" $* "
selected() { [ "$wanted" = '  ' ] || [[ $wanted == *" $1 "* ]]; }
title() { printf '\n== %s\n' "$*"; }

# typed TASK TOOL COMMAND: adds a command; its keys are its characters and Enter.
tasks=()
tools=()
commands=()
typed() {
  tasks+=("$1")
  tools+=("$2")
  commands+=("$3")
}

# Runs the commands added for a task in turns, so that all find the machine in the same state; shows the last output of each.
measure() {
  local rounds=$1 round at from said code
  for ((round = 1; round <= rounds; round++)); do
    for at in "${!tools[@]}"; do
      said=$work/said.${tasks[at]}.${tools[at]}
      from=$EPOCHREALTIME
      bash -c "${commands[at]}" >"$said" 2>&1
      code=$?
      awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", b - a }' >>"$said.times"
      [ "$round" = "$rounds" ] || continue
      printf '\n%s$ %s\n' "${tools[at]}" "${commands[at]}"
      sed "s|$work/||g" "$said" | head -n 40
      # shellcheck disable=SC2046
      set -- $(sort -n "$said.times")
      shift $((($# - 1) / 2))
      printf -- '-- exit %s, %s keys, %s s (%s)\n' $code $((${#commands[at]} + 1)) "$1" "$(tr '\n' ' ' <"$said.times")"
      printf '%s\t%s\t%s\t%s\t%s\n' "${tasks[at]}" "${tools[at]}" $((${#commands[at]} + 1)) "$1" $code >>"$table"
      rm "$said.times"
      set -- "$rounds"
    done
  done
  tasks=()
  tools=()
  commands=()
}

if selected 1; then
  title '1 uptime of three hosts'
  typed 1 pdsh "pdsh -w 'web[1-3]' uptime"
  typed 1 clush "clush -w 'web[1-3]' uptime"
  typed 1 ansible 'ansible web -a uptime'
  typed 1 rsm "rsm exec -w 'web[1-3]' uptime"
  measure "$rounds"
fi

if selected 2; then
  title '2 which of them differs'
  typed 2 pdsh "pdsh -w 'web[1-3]' cat /srv/version | dshbak -c"
  typed 2 clush "clush -w 'web[1-3]' --diff cat /srv/version"
  typed 2 ansible "ansible web -a 'cat /srv/version'"
  typed 2 rsm "rsm exec -w 'web[1-3]' --diff cat /srv/version"
  measure "$rounds"
fi

if selected 3; then
  title '3 a script file with a parameter'
  typed 3 pdsh "pdcp -w 'web[1-3]' deploy.sh /srv && pdsh -w 'web[1-3]' VERSION=1.2.4 bash /srv/deploy.sh"
  typed 3 clush "clush -w 'web[1-3]' VERSION=1.2.4 bash < deploy.sh"
  typed 3 ansible "ansible web -m script -a 'deploy.sh 1.2.4'"
  typed 3 rsm "rsm exec -w 'web[1-3]' --script deploy.sh -p VERSION=1.2.4"
  measure "$rounds"
fi

if selected 4; then
  title '4 one host first, then half of them; stop at a failure (web1 fails)'
  command='test $(hostname) != web1'
  typed 4 pdsh "pdsh -S -w web1 '$command' && pdsh -S -f 1 -w 'web[2-3]' '$command'"
  typed 4 clush "clush -S -w web1 '$command' && clush -S -f 1 -w 'web[2-3]' '$command'"
  typed 4 ansible 'ansible-playbook roll.yml'
  typed 4 rsm "rsm exec -w 'web[1-3]' --batch-size 1,50% '$command'"
  measure "$rounds"
fi

if selected 6; then
  title '6 one of three fails with exit 3'
  command='[ $(hostname) != web2 ] || exit 3'
  typed 6 pdsh "pdsh -S -w 'web[1-3]' '$command'"
  typed 6 clush "clush -S -w 'web[1-3]' '$command'"
  # Without -S, for comparison of the exit codes.
  typed 6b pdsh "pdsh -w 'web[1-3]' '$command'"
  typed 6b clush "clush -w 'web[1-3]' '$command'"
  typed 6 ansible "ansible web -m shell -a '$command'"
  typed 6 rsm "rsm exec -w 'web[1-3]' '$command'"
  measure "$rounds"
fi

# hung_up TOOL COMMAND: hangs up on it after 3 s, like a closed terminal, then prints how the job ended.
hung_up() {
  rm -f "$work"/hosts/*/done
  printf '\n%s$ %s\n' "$1" "$2"
  setsid bash -c "$2" >"$work/said.hung" 2>&1 &
  local client=$!
  sleep 3
  kill -HUP -- -$client 2>/dev/null
  wait $client 2>/dev/null
  sed "s|$work/||g" "$work/said.hung" | tail -n 4
  sleep 8
  echo "-- the terminal was closed after 3 s; the job finished on $(ls "$work"/hosts/*/done 2>/dev/null | wc -l) of 3 hosts"
}

if selected 7; then
  title '7 follow a long job, close the terminal, come back'
  hung_up pdsh "pdsh -w 'web[1-3]' '$(cat long.sh)'"
  hung_up clush "clush -w 'web[1-3]' '$(cat long.sh)'"
  typed 7 ansible "ansible web -B 60 -P 0 -m shell -a '$(cat long.sh)'"
  measure 1
  sleep 9
  job=$(grep -A 1 '^web1' "$work/said.7.ansible" | grep -oE 'j[0-9]+\.[0-9]+')
  typed 7b ansible "ansible web1 -m async_status -a jid=$job"
  measure 1
  hung_up rsm "rsm exec -w 'web[1-3]' '$(cat long.sh)'"
  typed 7b rsm "rsm logs -f $(rsm tasks list --limit 1 --json 2>/dev/null | jq -r '.content[0].taskId')"
  measure 1
fi

# Counts the job's processes that still run on the hosts, which have other PID namespaces, and kills them.
left() {
  local pid own pids=()
  own=$(readlink /proc/self/ns/pid)
  sleep 1
  for pid in $(pgrep -fx 'sleep 3017'); do [ "$(readlink /proc/$pid/ns/pid)" = "$own" ] || pids+=("$pid"); done
  printf -- '-- of 9 processes %s still run\n' ${#pids[@]}
  [ ${#pids[@]} = 0 ] || kill "${pids[@]}"
}

if selected 8; then
  title '8 a job that may take 3 seconds and hangs, with children'
  typed 8 pdsh "pdsh -S -u 3 -w 'web[1-3]' '$(cat stuck.sh)'"
  measure 1
  left
  typed 8 clush "clush -S -u 3 -w 'web[1-3]' '$(cat stuck.sh)'"
  measure 1
  left
  typed 8 ansible "ansible web --task-timeout 3 -m shell -a '$(cat stuck.sh)'"
  measure 1
  left
  typed 8 rsm "rsm exec -u 3 -w 'web[1-3]' '$(cat stuck.sh)'"
  measure 1
  left
fi

if selected 9; then
  title '9 a file to three hosts'
  typed 9 pdsh "pdcp -w 'web[1-3]' app.conf /srv"
  typed 9 clush "clush -w 'web[1-3]' -c app.conf --dest /srv"
  typed 9 ansible "ansible web -m copy -a 'src=app.conf dest=/srv/'"
  typed 9 rsm "rsm cp app.conf 'web[1-3]:/srv/'"
  measure "$rounds"
fi

# Last, because it breaks a host: from here on web4 accepts connections and never responds, like a machine that hangs.
if selected 5; then
  title '5 one host is down: web4 hangs'
  kill "$last"
  wait "$last" 2>/dev/null
  node -e "require('node:net').createServer(() => {}).listen($port, '127.77.0.4')" &
  started+=($!)
  printf 'web4\n' >>"$work/inventory"
  until [ "$(rsm hosts show web4 --json | jq -r .status)" = OFFLINE ]; do sleep 0.5; done
  typed 5 pdsh "pdsh -S -w 'web[1-4]' uptime"
  measure 1
  typed 5 clush "clush -S -w 'web[1-4]' uptime"
  measure 1
  typed 5 ansible 'ansible web -a uptime'
  measure 1
  typed 5 rsm "rsm exec -w 'web[1-4]' uptime"
  measure 1
fi

printf '\ntask\ttool\tkeys\tseconds\texit\n'
cat "$table"
