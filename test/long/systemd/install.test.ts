import test from 'ava'
import { boot, hasSystemdRoot } from '../../helpers/programs/systemd-machine.ts'

// Skipped (2026-11-22) without a Debian root with systemd: `.ci/systemd-root DIR`, then RSM_SYSTEMD_ROOT=DIR, as root.
const whereThere = hasSystemdRoot ? test : test.skip

whereThere(
  'under systemd, server and agent are installed, changed, restarted under a running script, and removed',
  async (t) => {
    t.timeout(290_000)
    const { run } = await boot(t)
    await run(
      `printf '#!/bin/sh\\nexec /opt/node/node /opt/rsm/bin/run.js "$@"\\n' > /root/rsm-linux-x64; chmod 755 /root/rsm-linux-x64
     cp /root/rsm-linux-x64 /usr/local/bin/rsm; cp /root/rsm-linux-x64 /root/rsm-linux-arm64`,
    )
    const installed = await run('rsm server install --host 0.0.0.0 --tls-self-signed')
    const [, fingerprint = ''] = /^fingerprint (sha256\/\/\S+)$/m.exec(installed) ?? []
    const [, password = ''] = /with the password (\S+)/.exec(installed) ?? []
    t.notRegex(
      await run('journalctl -u rsm-server'),
      new RegExp(password),
      'the password is not in the journal',
    )
    t.notRegex(await run('cat /etc/rsm/server.env'), /PASSWORD/)
    t.is(await run('stat -c "%U %a" /var/lib/rsm/server /etc/rsm/server.env'), 'rsm 700\nroot 600\n')
    t.is(await run('systemd-analyze verify rsm-server.service'), '')
    await run(
      `rsm login https://127.0.0.1:18080 --tls-fingerprint ${fingerprint} -u admin --password-stdin <<< '${password}'
     rsm server releases add /root/rsm-linux-x64; rsm server releases add /root/rsm-linux-arm64`,
    )
    const joined = await run('eval "$(rsm hosts join -t role=web)"')
    t.regex(joined, /rsm-agent runs and is linked: this is host \S+ \(@id:1\)/)
    t.is(await run('systemd-analyze verify rsm-agent.service'), '')
    t.is(await run('stat -c "%U %a" /var/lib/rsm/agent'), 'root 700\n')
    await run('test ! -e /etc/rsm/agent.token')
    t.regex(await run("rsm exec -t role=web -N 'id -un; ulimit -Sn'"), /^root\n1024\n/)

    t.regex(await run('rsm agent install --max-executions 3', 2), /\+ RSM_AGENT_MAX_EXECUTIONS=3\n[^]*--yes/)
    await run('rsm agent install --max-executions 3 --yes && rsm agent install')
    await run("rsm exec -a --detach 'for i in 1 2 3 4 5 6; do echo tick $i; sleep 1; done; echo whole'")
    await run('sleep 1; systemctl restart rsm-agent rsm-server')
    await run(
      'curl -fsSk --retry 30 --retry-delay 1 --retry-all-errors https://127.0.0.1:18080/api/ready; rsm hosts wait "@*" --timeout 30s',
    )
    const log = await run('rsm tasks wait latest >/dev/null 2>&1; rsm logs latest -N')
    t.is(
      log,
      `${[1, 2, 3, 4, 5, 6].map((i) => `tick ${i}\n`).join('')}whole\n`,
      'the script outlived both services',
    )

    await run('rsm server uninstall --remove-data --yes')
    await run('rsm agent uninstall --remove-data --yes')
    t.is(await run('id -un rsm'), 'rsm\n', 'a user that owns files elsewhere stays')
    const left = 'ls -d /etc/rsm /var/lib/rsm /etc/systemd/system/rsm-* 2>/dev/null'
    t.is(await run(left, 2), '')
    // The command exits with 1 if no unit matches.
    t.is(await run('systemctl list-unit-files "rsm-*" --no-legend', 1), '')
  },
)

whereThere(
  'under systemd, an installation that cannot work reports the reason, and the process that uses a port',
  async (t) => {
    t.timeout(290_000)
    const { run } = await boot(t)
    const rsm = '/opt/node/node /opt/rsm/bin/run.js'
    await run('(setsid /opt/node/node -e "net.createServer().listen(18080)" >/dev/null 2>&1 &) ; sleep 1')
    t.regex(await run(`${rsm} server install`, 6), /port 18080 of 127\.0\.0\.1 is in use by node \(pid \d+\)/)
    await run('test ! -e /etc/rsm')
    const served = await run(`${rsm} server install --port 18081 --data-dir /srv/rsm`)
    t.is(await run('stat -c "%U %a" /srv/rsm'), 'rsm 700\n', 'the unit may write there')
    const [, password = ''] = /with the password (\S+)/.exec(served) ?? []
    await run(`${rsm} login http://127.0.0.1:18081 -u admin --password-stdin <<< '${password}'`)
    const { join: text } = JSON.parse(await run(`${rsm} hosts join --json 2>/dev/null`)) as { join: string }
    await run(`${rsm} enrollments remove 1 --yes`)
    t.regex(
      await run(`${rsm} agent install - <<< '${text}'`, 6),
      /rsm-agent does not stay up: rsm: .*refused to register this host/,
    )
  },
)
