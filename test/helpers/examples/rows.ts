import { rm, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { readAgentState } from '../../../src/agent/reports/read-state.ts'
import { cleanEnv, runRsm } from '../../fixtures/rsm.ts'
import { realAgent } from '../agents/real-agent.ts'
import { enableTotp } from '../clients/totp.ts'
import { newReleaseKey } from '../releases/release-key.ts'
import { release } from '../releases/upgradable.ts'
import { handOut } from '../servers/hand-out.ts'
import { adminLogin } from '../servers/server.ts'
import { until } from '../until.ts'
import type { ExampleWorld } from './world.ts'

/** Needs of one example beside a server with hosts, clusters, scripts and users; an example without a row has none. */
export interface Row {
  /** Runs on a server of its own, whose hosts never reported, because it changes data that other examples use. */
  readonly alone?: true
  /** The expected exit code other than 0, and its reason. */
  readonly exit?: readonly [code: number, because: string]
  /** Creates the objects of the example; returns replacements for words in it. */
  readonly given?: (world: ExampleWorld, t: ExecutionContext) => Promise<Record<string, string>>
  /** Called repeatedly while the example runs, so that it has something to show. */
  readonly meanwhile?: (world: ExampleWorld) => Promise<unknown>
  /** Runs on a terminal: keys typed once a pattern is shown. */
  readonly typed?: readonly (readonly [shown: RegExp, keys: string])[]
  /** The shell of the line; bash by default. */
  readonly shell?: 'bash' | 'zsh' | 'fish'
  /** A command that does not end: stopped with Ctrl-C (SIGINT) once this is shown. */
  readonly until?: RegExp
}

type Given = NonNullable<Row['given']>

const run = async ({ server }: ExampleWorld, content: string, more: object = {}): Promise<string> => {
  const task = { script: { content }, target: { selector: 'web[1-3]' }, async: false, ...more }
  return (await server.data('POST', '/api/tasks', task)).taskId
}
const task: Given = async (world) => ({ TASK: await run(world, 'echo') })
const fetched: Given = async ({ server }) => {
  const fetch = { path: '/var/log/app.log', kind: 'FILE' }
  const body = { fetch, target: { selector: 'web1' }, queueSeconds: 0, async: false }
  return { TASK: (await server.data('POST', '/api/tasks', body)).taskId }
}
const upload: Given = async ({ server }) => ({
  '01KA2B': (await server.data('POST', '/api/files?size=5')).fileId,
})
const nightly: Given = async ({ server }) => {
  await server.data('POST', '/api/schedules', {
    name: 'nightly',
    cron: '30 3 29 2 *',
    script: { content: 'echo backup' },
    target: { selector: 'db1' },
  })
  return {}
}
const session: Given = async ({ server }) => {
  const [host] = (await server.data('GET', '/api/hosts?selector=web1')).content
  const { sessionId } = await server.data('POST', '/api/terminals', { hostId: host.id, cols: 80, rows: 24 })
  return { SESSION: sessionId }
}
const closedSession: Given = async (world, t) => {
  const { SESSION = '' } = await session(world, t)
  await world.server.data('DELETE', `/api/terminals/${SESSION}`)
  return { SESSION }
}
let changes = 0
const change: NonNullable<Row['meanwhile']> = ({ server }) =>
  server.data('PATCH', '/api/hosts/3', { tags: { change: String(changes++) } })
const without =
  (path: string): Given =>
  async ({ server }) => {
    await server.data('DELETE', path)
    return {}
  }
const bothPasswords: Given = async ({ home }) => {
  await writeFile(join(home, 'both-passwords'), 'a password for tests\nanother password\n', { mode: 0o600 })
  return { 'both-passwords': join(home, 'both-passwords') }
}
const enrollment: Given = async ({ server, home }) => {
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  await writeFile(join(home, 'enroll-token'), token)
  return {
    'RSM_AGENT_ENROLL_TOKEN=...': `RSM_AGENT_ENROLL_TOKEN=${token} RSM_AGENT_HOSTNAME=web9`,
    '/etc/rsm/token': join(home, 'enroll-token'),
    '--run-as deploy': `--run-as ${userInfo().username}`,
  }
}
const backupWithKeys: Given = async ({ server, home }) => {
  await writeFile(join(home, 'passphrase'), 'a passphrase for tests\n', { mode: 0o600 })
  return {
    'rsm server': `RSM_DATA_DIR=${server.dataDir} rsm server`,
    'rsm.tar.gz': join(home, `${server.token}.tar.gz`),
    '--passphrase-file passphrase': `--passphrase-file ${join(home, 'passphrase')}`,
  }
}
/** Replaces the data directory, whether the example names it or not. */
const ofServer: Given = async ({ server }) => ({
  'rsm server': `RSM_DATA_DIR=${server.dataDir} rsm server`,
  '/var/lib/rsm/server': server.dataDir,
})
/** Makes a backup with its keys; a server makes one at a time. */
async function backedUp(world: ExampleWorld, t: ExecutionContext): Promise<string> {
  await backupWithKeys(world, t)
  const file = join(world.home, 'backup.tar.gz')
  const keys = ['--with-keys', '--passphrase-file', join(world.home, 'passphrase')]
  const where = ['--data-dir', world.server.dataDir]
  await runRsm(['server', 'backup', file, ...where, ...keys], cleanEnv(world.home))
  return file
}
const joinString: Given = async ({ server, home }) => {
  const { join: text } = await server.data('POST', '/api/enrollment-tokens', { url: server.url })
  await writeFile(join(home, 'join-string'), text, { mode: 0o600 })
  return { 'join-string': join(home, 'join-string') }
}
/** Tests must not remove anything from the machine that they run on. */
const onlyShown: Given = async () => ({ uninstall: 'uninstall --dry-run' })
const dataDirectory: Given = async ({ server }) => ({
  '/var/lib/rsm/server': server.dataDir,
  'rsm server': `RSM_DATA_DIR=${server.dataDir} rsm server`,
})
const handedOut: Given = async ({ server }) => {
  await handOut(server, '#!/bin/sh\n')
  return {}
}
const executable: Given = async (world, t) => {
  const file = join(world.home, 'rsm-linux-arm64')
  await writeFile(file, '#!/bin/sh\n')
  return {
    ...(await dataDirectory(world, t)),
    'packages/rsm-linux-arm64': file,
    './rsm': file,
  }
}
const released: Given = async (world, t) => {
  await handOut(world.server, '#!/bin/sh\n', 'rsm-linux-arm64')
  return dataDirectory(world, t)
}
const signed: Given = async ({ server }) => {
  await release(server, newReleaseKey(), { version: '0.2.0', program: '', executable: '#!/bin/sh\n' })
  return { 'hosts upgrade': 'hosts upgrade --queue 0s' }
}
/** Rows by the text of the example. A row without an example fails the test, as a failing example does. */
export const rows: Readonly<Record<string, Row>> = {
  'source <(rsm completion zsh)': { shell: 'zsh' },
  'rsm completion fish | source': { shell: 'fish' },
  'RSM_AGENT_ENROLL_TOKEN=... rsm agent run --url https://rsm.example.org': {
    alone: true,
    given: enrollment,
    until: /is host \d/,
  },
  'rsm agent run --url https://rsm.example.org --enroll-token-file /etc/rsm/token --run-as deploy': {
    alone: true,
    given: enrollment,
    until: /is host \d/,
  },
  'rsm agent run --url https://rsm.example.org --run-as deploy --sandbox strict --limit memory=1G': {
    alone: true,
    given: enrollment,
    exit: [2, 'no enrollment token'],
  },
  'rsm agent install - < join-string': {
    given: async (world, t) => ({ ...(await joinString(world, t)), 'install -': 'install - --dry-run' }),
  },
  'rsm agent install --join-file join-string --run-as deploy --dry-run': { given: joinString },
  'rsm agent install --url https://rsm.example.org --enroll-token-file /etc/rsm/token --user --no-start': {
    alone: true,
    given: enrollment,
  },
  'rsm agent uninstall --remove-data --yes': { given: onlyShown },
  'rsm agent uninstall --user': { given: onlyShown },
  'rsm server uninstall --remove-data': { given: onlyShown },
  'rsm server uninstall --yes': { given: onlyShown },
  'rsm server install --host 0.0.0.0 --tls-self-signed': {
    given: async () => ({ '--tls-self-signed': '--tls-self-signed --dry-run' }),
  },
  'rsm server releases list': { given: dataDirectory },
  'rsm server releases list --data-dir /var/lib/rsm/server': { given: dataDirectory },
  'rsm server releases add packages/rsm-linux-arm64': { given: executable },
  'rsm server releases add ./rsm --name rsm-linux-x64 --data-dir /var/lib/rsm/server': { given: executable },
  'rsm server releases remove rsm-linux-arm64 --yes': { alone: true, given: released },
  'rsm server releases remove rsm-linux-arm64 --data-dir /var/lib/rsm/server': {
    alone: true,
    given: released,
    typed: [[/\?/, 'y\r']],
  },
  'rsm agent status': { exit: [5, 'no agent runs here'] },
  'rsm agent status --data-dir /tmp/web1 --json': {
    alone: true,
    given: async ({ server, home }, t) => {
      const dataDir = join(home, 'web9')
      await realAgent(t, server, { hostname: 'web9', dataDir })
      await until('it is linked', () => readAgentState(dataDir).linked)
      return { '/tmp/web1': dataDir }
    },
  },
  "rsm clusters add web -w 'web[1-3]'": { alone: true, given: without('/api/clusters/1') },
  "rsm clusters add linux --selector '@os:linux'": { alone: true },
  "rsm clusters edit web -w 'web[1-5]'": { alone: true },
  'rsm clusters remove web --yes': { alone: true },
  'rsm enrollments remove 3 --yes': { alone: true },
  "rsm webhooks add 'on call' https://alerts.example.org/rsm --event task.failed,host.offline": {
    alone: true,
    given: without('/api/webhooks/1'),
  },
  'rsm webhooks add chat https://hooks.slack.com/services/T0/B0/x --event host.offline,host.online --format slack -w @production':
    { alone: true, given: without('/api/webhooks/2') },
  "rsm webhooks edit 'on call' --event task.failed": { alone: true },
  "rsm webhooks edit 'on call' --schedule nightly": { alone: true, given: nightly },
  "rsm webhooks edit 'on call' --new-secret": { alone: true },
  "rsm webhooks edit 'on call' --disable": { alone: true },
  'rsm webhooks remove chat --yes': { alone: true },
  "rsm webhooks test 'on call'": { exit: [1, 'the receiver does not exist'] },
  'rsm events': { meanwhile: change, until: /host/, exit: [130, 'ended by Ctrl-C'] },
  'rsm events --type host,cluster': { meanwhile: change, until: /host/, exit: [130, 'ended by Ctrl-C'] },
  'rsm events --json | jq .': { meanwhile: change, until: /"host"/, exit: [130, 'ended by Ctrl-C'] },
  'rsm hosts add web1 --ip 192.0.2.10 -t role=web': { alone: true, given: without('/api/hosts/1') },
  "rsm hosts edit 'web[1-3]' -t rack=r1": { alone: true },
  "rsm hosts remove 'web[4-5]' --yes": { alone: true },
  'rsm hosts edit web1 -t role=web --untag old': { alone: true },
  "rsm hosts edit web1 --host-key ''": { alone: true },
  'rsm hosts edit @id:17 --hostname web2': {
    alone: true,
    given: async (world, t) => {
      await without('/api/hosts/2')(world, t)
      return { '@id:17': '@id:1' }
    },
  },
  'rsm hosts install web1': { alone: true, exit: [255, 'no SSH credentials'] },
  "rsm hosts install -w 'web[1-3]' --sudo --forget-credentials": {
    alone: true,
    exit: [1, 'no SSH credentials'],
  },
  "rsm hosts join --ssh 'web[01-20]' --ssh-user admin --sudo -t role=web": {
    alone: true,
    exit: [1, 'the hosts do not exist'],
    given: handedOut,
  },
  "rsm hosts join --ssh 'db[1-3]' -J bastion --ask-sudo-password --accept-new": {
    alone: true,
    exit: [1, 'the hosts do not exist'],
    given: handedOut,
    typed: [[/Password of sudo on 3 hosts: /, 'a password\r']],
  },
  'rsm hosts join --replace web1': { alone: true, typed: [[/\?/, 'y\r']] },
  'rsm hosts remove web1 --yes': { alone: true },
  'rsm hosts revoke web1 --yes': { alone: true },
  'rsm hosts upgrade web1': {
    alone: true,
    given: signed,
    exit: [255, 'its agent never linked'],
  },
  "rsm hosts upgrade -w 'web[1-5]' --batch-size 1,10%,50% --max-failures 1": {
    alone: true,
    given: signed,
    exit: [1, 'their agents never linked'],
  },
  'rsm hosts wait web1 --status OFFLINE': {
    alone: true,
    given: async (world, t) => {
      await without('/api/hosts/1')(world, t)
      await world.server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
      return {}
    },
  },
  'rsm login https://rsm.example.org': {
    alone: true,
    typed: [
      [/[Uu]ser/, 'admin\r'],
      [/[Pp]assword/, 'a password for tests\r'],
    ],
  },
  'rsm logout': { alone: true },
  'rsm logs TASK': { given: task },
  'rsm logs -f latest': { given: task },
  'rsm logs -f latest --host web1 --timestamps': { given: task },
  'rsm logs TASK -b --diff': { given: task },
  'rsm quickstart': { until: /It is up/ },
  'rsm recordings export SESSION session.cast': {
    given: async (world, t) => {
      await rm(join(world.home, 'session.cast'))
      return closedSession(world, t)
    },
  },
  'rsm recordings export latest > session.cast': { given: closedSession },
  'rsm recordings play SESSION --speed 2 --idle-limit 1s': { given: closedSession },
  'rsm scripts add disk - < disk.sh': { alone: true },
  'rsm scripts add deploy ./deploy.sh --timeout 5m': { alone: true, given: without('/api/scripts/1') },
  'rsm scripts add ./deploy.sh': { alone: true },
  'rsm scripts edit deploy': { alone: true, typed: [] },
  'rsm scripts edit deploy --file ./deploy.sh --timeout 10m': { alone: true },
  'rsm schedules list': { alone: true, given: nightly },
  'rsm schedules show nightly': { alone: true, given: nightly },
  'rsm schedules next nightly': { alone: true, given: nightly },
  'rsm schedules next nightly -n 20': { alone: true, given: nightly },
  "rsm schedules edit nightly --cron '0 4 * * *'": { alone: true, given: nightly },
  'rsm schedules edit nightly --script ./backup.sh': { alone: true, given: nightly },
  'rsm schedules pause nightly': { alone: true, given: nightly },
  'rsm schedules resume nightly': { alone: true, given: nightly },
  'rsm schedules confirm nightly': { alone: true, given: nightly },
  'rsm schedules run nightly': { alone: true, given: nightly },
  'rsm schedules remove nightly --yes': { alone: true, given: nightly },
  "rsm schedules add nightly --cron '30 3 * * 1-5' --tz Europe/Berlin -g db --script ./backup.sh --strategy rolling":
    {
      alone: true,
      given: async ({ server }) => {
        await server.data('POST', '/api/clusters', { name: 'db', selector: 'db1' })
        return {}
      },
    },
  "rsm schedules add load --cron '0 4 * * *' -w db1 --stdin ./load.sql -- psql app": { alone: true },
  "rsm schedules add sweep --every 6h -a -- 'find /var/tmp/builds -mtime +7 -delete'": { alone: true },
  'rsm schedules add probe --every 5m --jitter 1m -a --script check -p LEVEL=full': {
    alone: true,
    given: async ({ server }) => {
      await server.data('POST', '/api/scripts', { name: 'check', type: 'BASH', content: 'echo "$LEVEL"' })
      return {}
    },
  },
  'rsm scripts versions deploy 3 | rsm scripts edit deploy --file -   # back to version 3': { alone: true },
  'rsm scripts remove deploy --yes': { alone: true },
  'rsm server start': { until: /listen|http:\/\// },
  'RSM_DATA_DIR=/srv/rsm rsm server start --port 18080': {
    given: async ({ home }) => ({ '/srv/rsm': join(home, 'srv'), '18080': '0' }),
    until: /listen|http:\/\//,
  },
  'rsm server start --host 10.0.0.7 --tls-self-signed --trusted-proxy 10.0.0.5 --trusted-proxy 10.0.1.0/24': {
    given: async () => ({ '--host 10.0.0.7': '--host 127.0.0.1 --port 0' }),
    until: /listen|https:\/\//,
  },
  'rsm server start --store postgres://rsm@pg1,pg2/rsm --keys /etc/rsm/keys --server-name a': {
    given: async ({ home }) => ({
      'pg1,pg2': '127.0.0.1:1,127.0.0.1:2',
      '/etc/rsm/keys': join(home, 'shared-keys'),
      '--server-name a': `--server-name a --port 0 --data-dir ${join(home, 'server-a')}`,
    }),
    exit: [6, 'no host takes writes'],
  },
  'rsm server start --data-dir /var/lib/rsm/server --new-keys   # keys/ is lost': {
    given: async ({ home }) => ({
      '/var/lib/rsm/server': join(home, 'new-keys'),
      '--new-keys': '--new-keys --port 0',
    }),
    until: /listen|http:\/\//,
  },
  'rsm server backup /backup/rsm.tar.gz --data-dir /var/lib/rsm/server': {
    alone: true,
    given: async ({ server, home }) => ({
      '/backup/rsm.tar.gz': join(home, 'one.tar.gz'),
      '/var/lib/rsm/server': server.dataDir,
    }),
  },
  'rsm server backup rsm.tar.gz --with-keys --passphrase-file passphrase': {
    alone: true,
    given: backupWithKeys,
  },
  'rsm server backup rsm.tar.gz --store postgres://rsm@pg1,pg2/rsm': {
    given: async ({ home }) => ({
      'rsm.tar.gz': join(home, 'postgres.tar.gz'),
      'pg1,pg2': '127.0.0.1:1,127.0.0.1:2',
    }),
    exit: [6, 'no host takes writes'],
  },
  'rsm server backup --without-output - | ssh backup.example.org "cat > rsm.tar.gz"': {
    alone: true,
    given: async ({ server, home }) => ({
      'rsm server': `RSM_DATA_DIR=${server.dataDir} rsm server`,
      'ssh backup.example.org "cat > rsm.tar.gz"': `cat > ${join(home, 'three.tar.gz')}`,
    }),
  },
  'rsm server restore /backup/rsm.tar.gz --data-dir /srv/rsm': {
    alone: true,
    given: async (world, t) => ({
      '/backup/rsm.tar.gz': await backedUp(world, t),
      '/srv/rsm': join(world.home, 'restored'),
    }),
  },
  'rsm server restore rsm.tar.gz --data-dir /srv/rsm --passphrase-file passphrase': {
    alone: true,
    given: async (world, t) => ({
      'rsm.tar.gz': await backedUp(world, t),
      '/srv/rsm': join(world.home, 'restored-with-keys'),
      '--passphrase-file passphrase': `--passphrase-file ${join(world.home, 'passphrase')}`,
    }),
  },
  'rsm server migrate --from /var/lib/rsm/server --store postgres://rsm@pg1,pg2/rsm': {
    given: async ({ server }) => ({ '/var/lib/rsm/server': server.dataDir }),
    exit: [6, 'is in use by'],
  },
  'rsm server migrate --from postgres://rsm@pg1,pg2/rsm --to /srv/rsm --store-password-file /etc/rsm/store-password':
    {
      given: async ({ home }) => {
        await writeFile(join(home, 'store-password'), 'a password\n', { mode: 0o600 })
        return {
          'pg1,pg2': '127.0.0.1:1,127.0.0.1:2',
          '/srv/rsm': join(home, 'moved'),
          '/etc/rsm/store-password': join(home, 'store-password'),
        }
      },
      exit: [6, 'no host takes writes'],
    },
  'rsm server doctor': { given: ofServer },
  'rsm server doctor --data-dir /var/lib/rsm/server --json': { given: ofServer },
  'rsm server status': { given: ofServer },
  'rsm server status --json': { given: ofServer },
  'rsm server status --url https://rsm.example.org': {},
  'rsm server log-level DEBUG': { given: ofServer },
  'rsm server log-level INFO --data-dir /var/lib/rsm/server': { given: ofServer },
  'rsm server retention --dry-run': { given: ofServer },
  'rsm server retention --yes --data-dir /var/lib/rsm/server': { given: ofServer },
  'rsm server reset-password admin': {
    alone: true,
    given: ofServer,
    typed: [
      [/New password/, 'another password\r'],
      [/Repeat the new/, 'another password\r'],
    ],
  },
  'rsm server reset-password admin --password-stdin --data-dir /var/lib/rsm/server < new-password': {
    alone: true,
    given: async (world, t) => {
      await writeFile(join(world.home, 'new-password'), 'another password\n', { mode: 0o600 })
      return { '< new-password': `< ${join(world.home, 'new-password')}`, ...(await ofServer(world, t)) }
    },
  },
  'rsm server upgrade ./rsm-linux-x64': { given: ofServer, exit: [6, 'runs from Node'] },
  'rsm server upgrade ./rsm-linux-x64 --allow-unsigned   # of your own build': {
    given: ofServer,
    exit: [6, 'runs from Node'],
  },
  'rsm server upgrade ./rsm-linux-x64 --allow-downgrade --data-dir /var/lib/rsm/server': {
    given: ofServer,
    exit: [6, 'runs from Node'],
  },
  'rsm server compact': { given: ofServer },
  'rsm server compact --data-dir /var/lib/rsm/server': { given: ofServer },
  'rsm server confirm-clock': {
    given: async ({ server }) => ({
      'rsm server': `RSM_DATA_DIR=${server.dataDir} rsm server`,
    }),
  },
  'rsm server confirm-clock --data-dir /var/lib/rsm/server': {
    given: async ({ server }) => ({ '/var/lib/rsm/server': server.dataDir }),
  },
  'rsm server confirm-restore --cancel-pending': {
    given: async ({ server }) => ({
      'rsm server': `RSM_DATA_DIR=${server.dataDir} rsm server`,
    }),
    exit: [6, 'nothing is held'],
  },
  'rsm server confirm-restore --data-dir /var/lib/rsm/server': {
    given: async ({ server }) => ({ '/var/lib/rsm/server': server.dataDir }),
    exit: [6, 'nothing is held'],
  },
  'rsm tasks cancel TASK': {
    alone: true,
    given: async (world) => ({ TASK: await run(world, 'echo', { async: true, queueSeconds: 600 }) }),
  },
  'rsm tasks cancel latest --yes': {
    alone: true,
    given: async (world) => {
      await run(world, 'echo', { async: true, queueSeconds: 600 })
      return {}
    },
  },
  'rsm tasks retry latest --yes': {
    alone: true,
    exit: [1, 'its hosts never reported'],
    given: async (world) => {
      await run(world, 'echo', { queueSeconds: 0 })
      return {}
    },
  },
  'rsm tasks retry TASK': {
    given: async (world) => ({ TASK: await run(world, `fails once # ${Math.random()}`) }),
  },
  'rsm tasks retry TASK --secret-param DB_PASSWORD --detach': {
    given: async (world) => ({
      TASK: await run(world, `fails once # ${Math.random()}`, { secretParams: { DB_PASSWORD: 'x' } }),
    }),
  },
  'rsm tasks show TASK': { given: task },
  'rsm tasks show latest': { given: task },
  'rsm files remove 01KA2B --yes': { given: upload },
  'rsm tasks files TASK': { given: fetched },
  'rsm tasks files latest --outdir logs': {
    alone: true,
    exit: [5, 'its hosts never reported, so there are no files'],
    given: fetched,
  },
  'rsm tasks wait TASK': { given: task },
  'rsm tasks wait TASK1 TASK2': {
    given: async (world) => ({ TASK1: await run(world, 'echo'), TASK2: await run(world, 'echo') }),
  },
  'rsm tasks wait TASK -o junit=report.xml': { given: task },
  'rsm terminal web1 --run-as deploy -- htop': { typed: [] },
  'rsm terminal web1': { typed: [[/\$ /, '\r~.']], exit: [255, 'ended by ~.'] },
  'rsm terminal --watch SESSION': { given: session, typed: [[/\$ /, 'q']] },
  'rsm sessions end 12': {
    alone: true,
    given: async ({ server }) => {
      await server.data('POST', '/api/auth/login', adminLogin)
      const { content } = await server.data('GET', '/api/auth/sessions')
      return { 12: content.find(({ current }: { current: boolean }) => !current).id }
    },
  },
  'rsm sessions end --others': { alone: true },
  'rsm tokens add nightly --role OPERATOR --expires 30d': { alone: true },
  '(umask 077; rsm tokens add ci > rsm-token) && RSM_TOKEN_FILE=rsm-token rsm hosts list': { alone: true },
  'rsm tokens remove nightly --yes': { alone: true },
  'rsm tui': { typed: [[/quit/, 'q']] },
  'rsm tui TASK': { given: task, typed: [[/quit.*stream/s, 'q']] },
  'rsm tui latest': { given: task, typed: [[/quit.*stream/s, 'q']] },
  'rsm users add alice --role OPERATOR': {
    alone: true,
    given: without('/api/users/2'),
    typed: [
      [/[Pp]assword/, 'a password for tests\r'],
      [/[Pp]assword[^]*([Pp]assword|again|[Rr]epeat)/, 'a password for tests\r'],
    ],
  },
  'pwgen 20 1 | rsm users add ci --role VIEWER --password-stdin': {
    alone: true,
    given: without('/api/users/4'),
  },
  'rsm users edit alice --role ADMIN': { alone: true },
  'rsm users edit alice --right hosts:remove': { alone: true },
  'rsm totp enable': {
    alone: true,
    typed: [
      [/Current password/, 'a password for tests\r'],
      [/Code/, '000000\r'],
    ],
    exit: [2, 'not a code of the app'],
  },
  'rsm totp disable': {
    alone: true,
    given: async ({ server }) => {
      const { recoveryCodes } = await enableTotp(server, adminLogin.password)
      return { disable: `disable --code ${recoveryCodes[0]}` }
    },
  },
  'rsm passwd': {
    alone: true,
    typed: [
      [/Current password/, 'a password for tests\r'],
      [/New password/, 'another password\r'],
      [/Repeat the new password/, 'another password\r'],
    ],
  },
  'rsm passwd --password-stdin < both-passwords': { alone: true, given: bothPasswords },
  'rsm users edit alice --disable': { alone: true },
  'pwgen 20 1 | rsm users edit ci --password-stdin': { alone: true },
  'rsm users remove alice --yes': { alone: true },
}
