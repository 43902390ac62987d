#!/usr/bin/env bash
# The whole REST API with only curl and jq: every call prints its answer, and checks its status.
#
#   RSM_ADMIN_PASSWORD=… rsm server start &
#   RSM_PASSWORD=… examples/api-tour.sh [URL] [USER]
#
# It acts as an agent itself, over HTTP, so it needs nothing else. If agents are linked, its script runs on them too.
# Everything it creates is named tour-… and removed at the end.
set -euo pipefail
base=${1:-${RSM_URL:-http://127.0.0.1:18080}}
user=${2:-admin}
: "${RSM_PASSWORD:?say the password: RSM_PASSWORD=… $0 [URL] [USER]}"
run=tour-$$
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
calls=0

# Tokens are passed in files, because every user of the machine can see arguments.
use() { printf 'authorization: Bearer %s\n' "$2" >"$work/$1"; }
: >"$work/anonymous"

title() { printf '\n\033[1m# %s\033[0m\n' "$*"; }

# call STATUS CALLER METHOD PATH [BODY] [HEADER]: prints the answer; its body is then in $work/body
call() {
  local expected=$1 caller=$2 method=$3 path=$4 body=${5-} header=${6-}
  local -a options=(-sS -X "$method" -H "@$work/$caller" -o "$work/body" -D "$work/headers" -w '%{http_code}')
  if [ -n "$body" ]; then
    printf '%s' "$body" >"$work/request"
    options+=(-H 'content-type: application/json' --data-binary "@$work/request")
  fi
  [ -z "$header" ] || options+=(-H "$header")
  local status
  status=$(curl "${options[@]}" "$base$path")
  calls=$((calls + 1))
  printf '%s %s %s %s\n' "$status" "$caller" "$method" "$path"
  # The server shows a token once; keep it out of this output.
  { jq -c '(.. | objects | .token? // empty) |= "…"' "$work/body" 2>/dev/null || head -c 400 "$work/body"; } | cut -c1-400 | sed 's/^/    /'
  [ "$status" = "$expected" ] || { echo "expected $expected" >&2; exit 1; }
}
get() { jq -re "$1" "$work/body"; }

# stream CALLER PATH PATTERN: reads a stream until a line matches, or for 10 s
stream() {
  calls=$((calls + 1))
  printf '200 %s GET %s\n' "$1" "$2"
  timeout 10 curl -sSN -H "@$work/$1" "$base$2" 2>/dev/null | cut -c1-160 | sed -n "s/^/    /; p; /$3/q" >"$work/stream" || true
  cat "$work/stream"
  grep -q "$3" "$work/stream" || { echo "expected $3" >&2; exit 1; }
}

title 'health needs no token; everything else does'
call 200 anonymous GET /api/health
call 200 anonymous GET /api/ready
call 401 anonymous GET /api/hosts
call 401 anonymous GET /api/nosuch

title 'log in'
call 200 anonymous POST /api/auth/login "$(jq -n --arg username "$user" '{$username, password: env.RSM_PASSWORD}')"
use admin "$(get .data.token)"
call 401 anonymous POST /api/auth/login '{"username":"nosuch","password":"wrong"}'
call 400 anonymous POST /api/auth/login '{"username":""}'
call 200 admin GET /api/auth/me
call 404 admin GET /api/nosuch

title 'users'
call 201 admin POST /api/users '{"username":"'$run'","password":"correct horse","role":"OPERATOR","email":"tour@example.com"}'
someone=$(get .data.id)
call 409 admin POST /api/users '{"username":"'${run^^}'","password":"correct horse","role":"VIEWER"}'
call 400 admin POST /api/users '{"username":"'$run'2","password":"short","role":"KING"}'
call 200 admin GET "/api/users?search=$run"
call 200 admin GET "/api/users/$someone"
call 200 anonymous POST /api/auth/login '{"username":"'$run'","password":"correct horse"}'
use operator "$(get .data.token)"
call 403 operator GET /api/users
call 200 operator POST /api/auth/password '{"currentPassword":"correct horse","newPassword":"battery staple"}'
call 401 operator GET /api/auth/me
call 200 anonymous POST /api/auth/login '{"username":"'$run'","password":"battery staple"}'
use operator "$(get .data.token)"

title 'personal access tokens'
call 201 operator POST /api/tokens '{"name":"pipeline","role":"VIEWER","expiresInDays":30}'
token=$(get .data.id)
use pipeline "$(get .data.token)"
call 403 operator POST /api/tokens '{"name":"too much","role":"ADMIN"}'
call 200 operator GET /api/tokens
call 200 pipeline GET /api/hosts?size=1
call 403 pipeline POST /api/hosts '{"hostname":"'$run'","ip":"192.0.2.1"}'
call 200 operator DELETE "/api/tokens/$token"
call 401 pipeline GET /api/hosts

title 'hosts'
call 201 admin POST /api/hosts '{"hostname":"'$run'-a","ip":"192.0.2.10","authType":"PASSWORD","username":"root","password":"write-only","tags":{"tour":"'$run'"}}'
host=$(get .data.id)
call 400 admin POST /api/hosts '{"hostname":" ","ip":"192.0.2.11","colour":"red"}'
call 409 admin POST /api/hosts '{"hostname":"'${run^^}'-A","ip":"192.0.2.12"}'
call 200 admin PATCH "/api/hosts/$host" '{"sshPort":2222,"tags":{"rack":"7"}}'
call 200 admin GET "/api/hosts/$host"
call 404 admin GET /api/hosts/999999999
call 200 admin GET "/api/hosts?search=$run&status=OFFLINE&tag=tour:$run&page=0&size=5"
call 200 admin GET "/api/hosts?selector=%40tour:$run"
call 405 admin PUT "/api/hosts/$host"

title 'an agent: enrollment, registration, heartbeat, metrics, configuration'
call 201 admin POST /api/enrollment-tokens '{"name":"'$run'","tags":{"tour":"'$run'"},"maxUses":1,"expiresInHours":1}'
enrollment=$(get .data.id)
use enrollment "$(get .data.token)"
call 200 admin GET /api/enrollment-tokens
call 403 enrollment GET /api/hosts
call 200 enrollment POST /api/agent/register '{"agentId":"'$run'","hostname":"'$run'-b","ipAddresses":["192.0.2.20"],"os":"linux","kernel":"6.1","arch":"x86_64","cpuCores":2,"memoryMB":2048,"diskGB":20,"agentVersion":"1.0"}'
agentHost=$(get .data.hostId)
use agent "$(get .data.token)"
now() { date -u +%Y-%m-%dT%H:%M:%S.000Z; }
call 200 agent POST /api/agent/heartbeat '{"agentId":"'$run'","timestamp":"'"$(now)"'","status":"HEALTHY","uptime":3600}'
call 403 agent POST /api/agent/heartbeat '{"agentId":"another","timestamp":"'"$(now)"'","status":"HEALTHY","uptime":3600}'
call 403 agent GET /api/hosts
call 200 agent POST /api/agent/metrics '{"agentId":"'$run'","timestamp":"'"$(now)"'","cpu":{"usagePercent":12.5,"loadAvg1m":0.5,"loadAvg5m":0.4,"loadAvg15m":0.3},"memory":{"totalMB":2048,"usedMB":1024,"availableMB":1024,"usagePercent":50},"disk":[{"mountPoint":"/","totalGB":20,"usedGB":5,"usagePercent":25}],"network":{"rxBytesPerSec":1000,"txBytesPerSec":500,"connections":10}}'
call 200 agent GET "/api/agent/config?agentId=$run"
call 200 admin GET "/api/hosts/$agentHost"
call 200 admin GET "/api/hosts/$agentHost/metrics?points=10"
call 200 admin DELETE "/api/enrollment-tokens/$enrollment"

title 'scripts and their versions'
call 201 admin POST /api/scripts '{"name":"'$run'","description":"says hello","type":"BASH","content":"echo hello","timeout":60,"tags":["tour"],"category":"examples"}'
script=$(get .data.id)
call 200 admin PATCH "/api/scripts/$script" '{"content":"for i in 1 2 3; do echo \"$GREETING $i from $(hostname)\"; done"}'
call 200 admin GET "/api/scripts/$script"
call 200 admin GET "/api/scripts/$script/versions"
call 200 admin GET "/api/scripts/$script/versions/1"
call 404 admin GET "/api/scripts/$script/versions/99"
call 200 admin GET "/api/scripts?type=BASH&category=examples&tag=tour&search=$run"

title 'clusters: by host ids, and by a selector'
call 201 admin POST /api/clusters '{"name":"'$run'","description":"of the tour","hostIds":['"$host"']}'
cluster=$(get .data.id)
call 201 admin POST /api/clusters '{"name":"'$run'-dynamic","selector":"@tour:'$run'"}'
dynamic=$(get .data.id)
call 400 admin POST /api/clusters '{"name":"'$run'-bad","hostIds":[999999999]}'
call 200 admin PATCH "/api/clusters/$cluster" '{"hostIds":['"$host,$agentHost"']}'
call 200 admin GET "/api/clusters/$dynamic"
call 200 admin GET "/api/clusters?search=$run"

title 'execution: an unreachable host is reported and counts as a failure'
call 200 operator POST "/api/scripts/$script/execute" '{"hostIds":['"$host"'],"params":{"GREETING":"hello"},"async":false}' "idempotency-key: $run"
call 200 operator POST "/api/scripts/$script/execute" '{"hostIds":['"$host"'],"params":{"GREETING":"hello"},"async":false}' "idempotency-key: $run"
task=$(get .data.taskId)
call 409 operator POST "/api/scripts/$script/execute" '{"hostIds":['"$host"']}' "idempotency-key: $run"
call 400 operator POST "/api/scripts/$script/execute" '{"hostIds":['"$host"'],"batchsize":1,"params":{"LD_PRELOAD":"x"}}'
call 200 operator POST "/api/clusters/$cluster/execute" '{"scriptId":'"$script"',"params":{"GREETING":"hello"},"secretParams":{"KEY":"never shown"},"strategy":"SEQUENTIAL","queueSeconds":0,"async":false}'
secret=$(get .data.taskId)
call 200 operator GET "/api/tasks/$task"
call 200 operator GET "/api/tasks/$secret/script"
call 200 operator GET "/api/tasks/$task/logs?size=10"
stream operator "/api/tasks/$task/logs?follow=true" '^ *event: end'
call 200 operator GET "/api/tasks?status=FAILED&scriptId=$script&hostId=$host&createdBy=$run"
call 400 operator POST "/api/tasks/$secret/retry"
call 200 operator POST "/api/tasks/$secret/retry" '{"secretParams":{"KEY":"given again"},"async":false}'
call 200 operator POST "/api/tasks/$task/retry" '{"async":false}'
call 409 operator POST "/api/tasks/$task/cancel"
call 200 operator POST /api/tasks '{"script":{"content":"uptime"},"target":{"hostIds":['"$agentHost"']},"queueSeconds":60}'
waiting=$(get .data.taskId)
call 200 agent GET "/api/agent/config?agentId=$run"
call 200 operator POST "/api/tasks/$waiting/cancel"
linked=$(curl -sS -H "@$work/admin" "$base/api/hosts?size=500" | jq -c '[.data.content[] | select(.agent.connected) | .id]')
if [ "$linked" != '[]' ]; then
  call 200 operator POST "/api/scripts/$script/execute" '{"hostIds":'"$linked"',"params":{"GREETING":"hello"},"async":false}'
  ran=$(get .data.taskId)
  stream operator "/api/tasks/$ran/logs?follow=true" '^ *event: end'
  call 200 operator GET "/api/tasks/$ran/logs?hostId=$(jq -n "$linked[0]")" '' 'accept: text/plain'
fi

title 'events, metrics, the audit log, the OpenAPI document'
stream operator /api/events '^ *event: ready'
call 200 operator GET /metrics
call 403 operator GET /api/audit
call 200 admin GET '/api/audit?size=3'
call 200 admin GET "/api/audit?actor=$run&action=task.create"
call 200 anonymous GET /api/openapi.json
call 200 anonymous GET /docs

title 'what is revoked ends at once'
call 200 admin DELETE "/api/hosts/$agentHost/agent"
call 401 agent POST /api/agent/heartbeat '{"agentId":"'$run'","status":"HEALTHY"}'
call 200 admin PATCH "/api/users/$someone" '{"role":"VIEWER"}'
call 401 operator GET /api/auth/me

title 'tidy up'
call 200 admin DELETE "/api/clusters/$dynamic"
call 200 admin DELETE "/api/clusters/$cluster"
call 200 admin DELETE "/api/scripts/$script"
call 200 admin DELETE "/api/hosts/$host"
call 200 admin DELETE "/api/hosts/$agentHost?force=true"
call 200 admin DELETE "/api/users/$someone"
call 200 admin POST /api/auth/logout
call 401 admin GET /api/auth/me

printf '\n%s calls, every status as stated\n' "$calls"
