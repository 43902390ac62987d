#!/bin/sh
# Restarts a service on many hosts: one host first, then a quarter of them at a time, 10 s apart. It stops at the first
# host on which the service does not come up again.
#
#   examples/rolling-restart.sh SERVICE SELECTOR [OPTION…]
#   examples/rolling-restart.sh nginx @role:web --plan
set -eu
service=${1:?which service} hosts=${2:?which hosts, like 'web[1-9]' or @role:web}
shift 2
exec rsm exec -w "$hosts" --strategy rolling --batch-size 1,25% --max-failures 0 --pause 10s \
  -p "SERVICE=$service" --script - "$@" <<'END'
#!/bin/bash -eu
# rsm: name=rolling-restart, timeout=2m, param SERVICE required "unit of systemd"
systemctl restart "$SERVICE"
# Still up after 5 s: some services fail right after their start.
for second in 1 2 3 4 5; do
  sleep 1
  systemctl is-active --quiet "$SERVICE" || { systemctl status --no-pager "$SERVICE" >&2; exit 1; }
done
echo "$SERVICE is up"
END
