import { cp, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { FromServer } from '../../../src/core/protocol/messages.ts'
import { cleanEnv, temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../agents/scripted-agent.ts'
import { startTestServer, type TestServer } from '../servers/server.ts'
import { until } from '../until.ts'

const password = 'a password for tests'

/** The world of the examples in help: a server, its hosts and stored objects, and a user's home. */
export interface ExampleWorld {
  readonly server: TestServer
  readonly home: string
  readonly env: Record<string, string>
  /** Replacements for words of an example: the address of the server, ids, paths. */
  readonly words: Map<string, string>
}

const files: Record<string, string> = {
  'site/index.html': 'hello\n',
  'app.conf': 'port=1\n',
  'app.sql': 'select 1\n',
  'load.sql': 'select 2\n',
  'deploy.sh': '#!/bin/sh\n# rsm: name=deploy-file\necho "version $VERSION"\n',
  'setup.sh': 'echo set up\n',
  'backup.sh': 'echo backed up\n',
  motd: 'welcome\n',
  'check.sh': 'echo "checked $LEVEL"\n',
  'disk.sh': 'df -h /\n',
  'session.cast': '{"version":2,"width":80,"height":24}\n[0.1,"o","hello\\r\\n"]\n',
  password: `${password}\n`,
  'rsm-token': '',
}

/** Stubs of other programs that examples use, so that none of this machine runs in their place. */
const programs: Record<string, string> = {
  pwgen: 'echo "a password of pwgen"',
  jq: 'exec cat',
  pg_dump: 'echo "select 1"',
  ssh: 'echo "ssh: Could not resolve hostname" >&2; exit 255',
  'edit-it': 'echo "echo edited" >> "$1"',
}

async function furnishHome(t: ExecutionContext, url: string, token: string) {
  const home = temporaryDirectory(t)
  const bin = join(home, 'bin')
  for (const directory of [
    bin,
    join(home, '.zfunc'),
    join(home, '.config/fish/completions'),
    join(home, 'config/rsm'),
    join(home, 'site'),
  ])
    await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(home, name), text)
  for (const [name, text] of Object.entries(programs))
    await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  await writeFile(join(bin, 'rsm'), `#!/bin/sh\nexec ${process.execPath} ${resolve('bin/run.js')} "$@"\n`, {
    mode: 0o755,
  })
  const contexts = Object.fromEntries(['production', 'staging', 'old'].map((name) => [name, { url }]))
  await writeFile(join(home, 'config/rsm/config.json'), JSON.stringify({ current: 'production', contexts }))
  const tokens = { production: { url, token }, staging: { url, token: 'rsm_ses_none' } }
  await writeFile(join(home, 'config/rsm/tokens.json'), JSON.stringify(tokens), { mode: 0o600 })
  await writeFile(join(home, 'rsm-token'), token, { mode: 0o600 })
  return home
}

/** Links an agent that starts no processes, because scripts of the examples restart services. */
async function addAgent(t: ExecutionContext, server: TestServer, hostname: string): Promise<void> {
  const identity = await server.enroll(hostname)
  const agent = await ScriptedAgent.link(server, identity, {
    capabilities: { terminal: true, gates: true, files: true },
  })
  t.teardown(() => agent.cut())
  const failed = new Set<string>()
  agent.serve(({ script }) => {
    // The first run of a script that `fails once` fails, so that there is something to retry.
    const fails = script.includes('fails once') && !failed.has(script)
    failed.add(script)
    return { exitCode: fails ? 1 : 0, output: 'done\n' }
  })
  agent.serveTerminals()
  agent.serveCopies(server, identity)
  const over = new Set<string>()
  agent.socket.on('message', (data: Buffer) => {
    const { type, payload } = JSON.parse(data.toString()) as FromServer
    if (type !== 'TERMINAL_OPEN' && type !== 'TERMINAL_CLOSE') return
    const { sessionId } = payload
    if (type === 'TERMINAL_OPEN' && payload.command === undefined)
      agent.send('TERMINAL_OUTPUT', { sessionId, data: '$ ', sequence: 0 })
    // A server that knows the end acknowledges it with the same frame, which needs no answer.
    else if (!over.has(sessionId)) {
      over.add(sessionId)
      agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
    }
  })
}

const hostnames = ['web1', 'web2', 'web3', 'web4', 'web5', 'db1']

async function furnishServer(t: ExecutionContext, server: TestServer, linked: boolean): Promise<void> {
  for (const name of hostnames)
    if (linked) await addAgent(t, server, name)
    else await server.enroll(name)
  const { content: hosts } = await server.data('GET', '/api/hosts')
  for (const { id, hostname } of hosts)
    if (hostname !== 'db1')
      await server.data('PATCH', `/api/hosts/${id}`, { tags: { role: 'web', old: 'yes' } })
  if (linked)
    await until('the agents are linked', async () => {
      const { content } = await server.data('GET', '/api/hosts')
      return (
        content.filter((host: { agent: { connected: boolean } | null }) => host.agent?.connected).length ===
        hostnames.length
      )
    })
  await server.data('POST', '/api/clusters', { name: 'web', hostIds: [1, 2] })
  await server.data('POST', '/api/clusters', { name: 'production', selector: 'web[1-3]' })
  const script = await server.data('POST', '/api/scripts', {
    name: 'deploy',
    type: 'BASH',
    content: 'echo 1',
  })
  for (const version of [2, 3, 4])
    await server.data('PATCH', `/api/scripts/${script.id}`, { content: `echo ${version}` })
  for (const username of ['alice', 'ann', 'ci'])
    await server.data('POST', '/api/users', { username, password, role: 'OPERATOR' })
  await server.data('POST', '/api/tokens', { name: 'nightly' })
  for (const name of ['on call', 'chat'])
    await server.data('POST', '/api/webhooks', {
      name,
      url: 'https://alerts.example.org/rsm',
      events: ['agent.revoked'],
    })
  while ((await server.data('POST', '/api/enrollment-tokens', {})).id < 3);
}

async function wordsOf(server: TestServer): Promise<Map<string, string>> {
  const head = (await server.data('GET', '/api/audit?size=500')).content.at(-1)
  return new Map([
    ['https://rsm.example.org', server.url],
    ['http://127.0.0.1:18080', server.url],
    ['/var/lib/rsm/server', server.dataDir],
    ['57:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', `${head.id}:${head.hash}`],
  ])
}

export interface ExampleServer {
  readonly server: TestServer
  readonly words: ReadonlyMap<string, string>
}

// Agents without heartbeats must stay ONLINE.
const quiet = { heartbeatInterval: 600 }

/** A server with agents that run everything. */
export async function exampleServer(t: ExecutionContext): Promise<ExampleServer> {
  const server = await startTestServer(t, quiet)
  await furnishServer(t, server, true)
  return { server, words: await wordsOf(server) }
}

/** Separate servers whose hosts never reported: copies of one, because setting each one up costs more than most examples. */
export async function exampleServers(t: ExecutionContext): Promise<() => Promise<ExampleServer>> {
  const original = await startTestServer(t, quiet)
  await furnishServer(t, original, false)
  await original.stop()
  return async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'rsm-server-'))
    await cp(original.dataDir, dataDir, { recursive: true })
    const server = await startTestServer(t, { ...quiet, dataDir })
    return { server, words: await wordsOf(server) }
  }
}

/** A user who is logged in to the server, with a home directory. */
export async function exampleWorld(
  t: ExecutionContext,
  { server, words }: ExampleServer,
): Promise<ExampleWorld> {
  const home = await furnishHome(t, server.url, server.token)
  const env = cleanEnv(home, {
    PATH: `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`,
    EDITOR: 'edit-it',
    TERM: 'xterm',
    RSM_PORT: '0',
    RSM_DATA_DIR: join(home, 'server'),
    RSM_AGENT_DATA_DIR: join(home, 'agent'),
    DB_PASSWORD: 'secret',
  })
  return { server, home, env, words: new Map(words) }
}
