import test from 'ava'
import { boot, hasSystemdRoot } from '../../helpers/programs/systemd-machine.ts'

// Skipped (2026-11-22) without a Debian root with systemd: `.ci/systemd-root DIR`, then RSM_SYSTEMD_ROOT=DIR, as root.
const whereThere = hasSystemdRoot ? test : test.skip

whereThere(
  "under systemd, rsm server upgrade replaces the unit's executable, and rolls back automatically",
  async (t) => {
    t.timeout(290_000)
    const { run } = await boot(t)
    await run(`mkdir /root/v2 && cd /opt/rsm && cp -r bin dist package.json oclif.manifest.json packaging docs /root/v2
     rm -rf /root/v2/dist/cli /root/v2/dist/server /root/v2/dist/agent; ln -s /opt/rsm/node_modules /root/v2/node_modules
     sed -i '0,/"version": "0.1.0"/s//"version": "0.2.0"/' /root/v2/package.json; chmod -R a+rX /root; mkdir /opt/bin
     for v in /opt/rsm /root/v2; do printf '#!/bin/sh\\nexec /opt/node/node %s/bin/run.js "$@"\\n' $v > /root/rsm$(basename $v); done
     printf '#!/bin/sh\\n[ "$1" = --version ] && exec echo rsm/0.3.0 linux-x64 node\\nexit 6\\n' > /root/bad
     chmod 755 /root/rsmrsm /root/rsmv2 /root/bad; cp /root/rsmrsm /opt/bin/rsm; ln -s /opt/bin/rsm /usr/local/bin/rsm`)
    await run('rsm server install --host 127.0.0.1')
    await run(`mkdir -p /etc/systemd/system/rsm-server.service.d
     printf '[Service]\\nExecStart=\\nExecStart=/opt/bin/rsm server start\\nProtectHome=no\\n' > /etc/systemd/system/rsm-server.service.d/exec.conf
     systemctl daemon-reload; systemctl restart rsm-server
     curl -fsS --retry 30 --retry-delay 1 --retry-all-errors http://127.0.0.1:18080/api/ready`)
    const status = () => run('rsm server status --json | grep -E \'"version"\'')
    t.regex(await status(), /0\.1\.0/)
    const bad = await run('rsm server upgrade /root/bad --executable /opt/bin/rsm --allow-unsigned', 6)
    t.regex(bad, /rsm 0\.3\.0 did not become ready: it ended with exit code 6; rsm 0\.1\.0 runs again/)
    t.regex(await status(), /0\.1\.0/)
    const done = await run('rsm server upgrade /root/rsmv2 --executable /opt/bin/rsm --allow-unsigned')
    t.regex(done, /systemctl: rsm-server\.service/)
    t.regex(await status(), /0\.2\.0/)
    t.is(await run('systemctl is-active rsm-server'), 'active\n')
    t.is(
      await run(
        'stat -c %U /var/lib/rsm/server/* /var/lib/rsm/server/store/* /var/lib/rsm/server/backups/* | sort -u',
      ),
      'rsm\n',
    )
    t.is(await run('rsm server doctor >/dev/null; echo $?'), '0\n')
    // An upgrade whose two processes are killed.
    await run(`rsm server upgrade /root/bad --executable /opt/bin/rsm --allow-unsigned > /root/said 2>&1 &
     until grep -q 'starting rsm 0.3.0' /root/said; do sleep 0.1; done; pkill -KILL -f 'run.js server upgrade'`)
    const cut = await run('/opt/bin/rsm.former server doctor', 1)
    t.regex(cut, /the upgrade from rsm 0\.2\.0 to 0\.3\.0, .* was interrupted, and no server is running/)
    t.regex(cut, /systemctl start rsm-server\.service: rsm 0\.3\.0 is installed/)
    await run(`mv /opt/bin/rsm.former /opt/bin/rsm; systemctl restart rsm-server
     curl -fsS --retry 30 --retry-delay 1 --retry-all-errors http://127.0.0.1:18080/api/ready`)
    t.is(await run('rsm server doctor >/dev/null; echo $?'), '0\n')
    t.is(await run('ls -d /var/lib/rsm/server/*upgrade* 2>/dev/null; true'), '')
  },
)
