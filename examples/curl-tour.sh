#!/usr/bin/env bash
# The service by curl and jq alone: log in, create a host, a script and a cluster, run it, read the task, follow its log.
#
#   RSM_ADMIN_PASSWORD=… rsm server start &
#   examples/curl-tour.sh http://127.0.0.1:18080 admin PASSWORD
#
# With at least one agent linked it runs the script there; without one it shows what UNREACHABLE looks like.
set -euo pipefail
base=${1:-http://127.0.0.1:18080}
user=${2:-admin}
password=${3:?usage: curl-tour.sh URL USER PASSWORD}
run=$$

say() { printf '\n# %s\n' "$*"; }
call() { # METHOD PATH [BODY]
  curl -sS -X "$1" "$base$2" -H "authorization: Bearer $token" -H 'content-type: application/json' ${3:+-d "$3"}
}

say 'log in'
token=$(jq -n --arg username "$user" --arg password "$password" '{$username, $password}' |
  curl -sS "$base/api/auth/login" -H 'content-type: application/json' -d @- | jq -re .data.token)
echo "token ${token:0:12}…"

say 'create a host (it is OFFLINE until an agent is heard)'
call POST /api/hosts '{"hostname":"tour-'$run'","ip":"192.0.2.10","sshPort":22,"authType":"PASSWORD","username":"root","password":"secret","tags":{"tour":"yes"}}' |
  jq -c '{code, id: .data.id, hostname: .data.hostname, status: .data.status, statusReason: .data.statusReason}'

say 'a blank hostname is a field error'
call POST /api/hosts '{"hostname":" ","ip":"192.0.2.11"}' | jq -c '{code, errors}'

say 'hosts that are ONLINE'
call GET '/api/hosts?status=ONLINE' | jq -c '.data.content[] | {id, hostname, status}'
hosts=$(call GET '/api/hosts?size=500' | jq -c '[.data.content[] | select(.agent.connected) | .id]')
[ "$hosts" != '[]' ] || hosts=$(call GET "/api/hosts?search=tour-$run" | jq -c '[.data.content[].id]')

say 'create a script'
script=$(call POST /api/scripts '{"name":"tour '$run'","description":"says hello","type":"BASH","content":"for i in 1 2 3; do echo \"$GREETING $i from $(hostname)\"; sleep 0.3; done","timeout":60,"tags":["tour"]}' |
  jq -re .data.id)
echo "script $script"

say 'create a cluster'
cluster=$(call POST /api/clusters '{"name":"tour-'$run'","description":"of the tour","hostIds":'"$hosts"'}' | jq -re .data.id)
echo "cluster $cluster of hosts $hosts"

say 'run the script on the hosts'
task=$(call POST "/api/scripts/$script/execute" '{"hostIds":'"$hosts"',"params":{"GREETING":"hello"},"async":true}' |
  tee /dev/stderr | jq -re .data.taskId)

say 'follow its log until it ends (curl -N)'
curl -sSN "$base/api/tasks/$task/logs?follow=true" -H "authorization: Bearer $token" | grep -E '^(event|data)' | cut -c1-160

say 'read the task'
call GET "/api/tasks/$task" | jq -c '{status: .data.status, results: [.data.results[] | {hostname, status, exitCode, error}]}'

say 'read its log'
call GET "/api/tasks/$task/logs?size=3" | jq -c '.data.entries[] | {id, hostname, stream, data}'

say 'run it on the cluster, one host at a time'
call POST "/api/clusters/$cluster/execute" '{"scriptId":'"$script"',"params":{"GREETING":"again"},"strategy":"SEQUENTIAL","async":false}' |
  jq -c '{status: .data.status, counts: (.data.counts | with_entries(select(.value > 0)))}'

say 'tidy up'
for path in $(call GET "/api/hosts?search=tour-$run" | jq -r '.data.content[] | "/api/hosts/\(.id)"') "/api/clusters/$cluster" "/api/scripts/$script"; do
  call DELETE "$path" | jq -c '{code, data}'
done
