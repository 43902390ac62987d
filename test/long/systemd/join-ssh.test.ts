import test from 'ava'
import { boot, hasSystemdRoot } from '../../helpers/programs/systemd-machine.ts'

// Skipped (2026-11-22) without a Debian root with systemd: `.ci/systemd-root DIR`, then RSM_SYSTEMD_ROOT=DIR, as root.
const whereThere = hasSystemdRoot ? test : test.skip

whereThere(
  'under systemd, hosts join --ssh ends when the agent is linked; a second run changes nothing',
  async (t) => {
    t.timeout(290_000)
    const { run } = await boot(t)
    await run(`
    printf '#!/bin/sh\\nexec /opt/node/node /opt/rsm/bin/run.js "$@"\\n' > /root/rsm-linux-x64
    chmod 755 /root/rsm-linux-x64; cp /root/rsm-linux-x64 /root/rsm-linux-arm64; cp /root/rsm-linux-x64 /usr/bin/typed
    hostname web1; echo '127.0.0.1 web1' >> /etc/hosts
    useradd -m -s /bin/bash deploy; echo 'deploy ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/deploy
    mkdir -p -m 700 /root/.ssh ~deploy/.ssh; ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
    cp /root/.ssh/id_ed25519.pub ~deploy/.ssh/authorized_keys; chown -R deploy: ~deploy/.ssh
    systemctl start ssh`)
    const installed = await run('typed server install --host 0.0.0.0 --tls-self-signed')
    const [, fingerprint = ''] = /^fingerprint (sha256\/\/\S+)$/m.exec(installed) ?? []
    const [, password = ''] = /with the password (\S+)/.exec(installed) ?? []
    await run(
      `typed login https://127.0.0.1:18080 --tls-fingerprint ${fingerprint} -u admin --password-stdin <<< '${password}'
     typed server releases add /root/rsm-linux-x64; typed server releases add /root/rsm-linux-arm64`,
    )
    const join = 'typed hosts join --ssh web1 --ssh-user deploy --sudo'
    t.regex(
      await run(join, 255),
      /^web1: UNREACHABLE: its host key is not known\n +ssh-keyscan web1 >> \/root\/\.ssh\/known_hosts$/m,
    )
    await run('ssh-keyscan web1 >> /root/.ssh/known_hosts')
    t.regex(await run(`${join} -t role=web`), /^web1: joined\n.*\nrsm: 1 host: JOINED in [\d.]+ s\n$/)
    t.regex(await run('typed exec -t role=web -N -- id -un'), /^root\n/)
    const again = JSON.parse(await run(`${join} --json 2>/dev/null`)) as { hosts: object[] }
    t.like(again.hosts[0], {
      host: 'web1',
      status: 'JOINED',
      exitCode: 0,
      copied: false,
      hostId: 1,
      hostname: 'web1',
    })
    const { content } = JSON.parse(await run('typed enrollments list --json')) as {
      content: { uses: number }[]
    }
    t.deepEqual(
      content.map(({ uses }) => uses),
      [1],
      'the unused token is removed',
    )
    await run('systemctl stop ssh')
    t.regex(await run(join, 255), /^web1: UNREACHABLE: connect to host web1 port 22: Connection refused$/m)
  },
)
