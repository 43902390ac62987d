import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import test from 'ava'
import { execa } from 'execa'
import { said } from '../../helpers/programs/said.ts'

const binary = resolve('bin/run.js')
const password = 'a password for the end-to-end tests'
const hosts = ['web1', 'web2', 'web3']

type Run = ReturnType<typeof run>

/** Runs the binary; an exit code other than 0 does not throw. */
function run(env: Record<string, string>, words: readonly string[], input = '') {
  return execa(process.execPath, [binary, ...words], { env, reject: false, input })
}

/** The real binary as a server and three agents, each a separate process. */
interface RealFleet {
  directory: string
  url: () => string
  rsm: (...words: string[]) => Run
  startServer: () => Promise<void>
  end: () => Promise<void>
}

async function startRealFleet(): Promise<RealFleet> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-e2e-'))
  const env: Record<string, string> = {
    XDG_CONFIG_HOME: join(directory, 'config'),
    RSM_ADMIN_PASSWORD: password,
    RSM_LOG_LEVEL: 'ERROR',
    RSM_AGENT_LOG_LEVEL: 'ERROR',
  }
  const children: Run[] = []
  let server: Run | undefined
  let port = '0'
  const fleet: RealFleet = {
    directory,
    url: () => `http://127.0.0.1:${port}`,
    rsm: (...words) => run(env, words),
    async startServer() {
      server = run(env, [
        'server',
        'start',
        '--port',
        port,
        '--data-dir',
        join(directory, 'server'),
        '--json',
      ])
      children.push(server)
      const line = await said(server)
      port = String((JSON.parse(line) as { port: number }).port)
    },
    async end() {
      for (const child of children) child.kill('SIGTERM')
      await Promise.all(children)
      await rm(directory, { recursive: true, force: true })
    },
  }
  await fleet.startServer()
  const url = `http://127.0.0.1:${port}`
  await run(env, ['login', url, '--username', 'admin', '--password-stdin'], password)
  const { stdout } = await fleet.rsm('hosts', 'join', '--max-uses', '3', '--json')
  const tokenFile = join(directory, 'enroll.token')
  await writeFile(tokenFile, (JSON.parse(String(stdout)) as { token: string }).token)
  for (const name of hosts) {
    const where = ['--hostname', name, '--data-dir', join(directory, name)]
    children.push(run(env, ['agent', 'run', '--url', url, '--enroll-token-file', tokenFile, ...where]))
  }
  const waited = await fleet.rsm('hosts', 'wait', '--new', ...hosts, '--timeout', '1m')
  if (waited.exitCode === 0) return fleet
  await fleet.end()
  throw new Error(`the agents did not link: ${waited.stderr}`)
}

let fleet: RealFleet
test.before(async () => {
  fleet = await startRealFleet()
})
test.after.always(() => fleet?.end())

test.serial(
  'a command runs on all hosts, with output under their names, and its failure sets the exit code',
  async (t) => {
    const { rsm } = fleet
    const listed = await rsm('hosts', 'list')
    for (const name of hosts) t.regex(String(listed.stdout), new RegExp(`${name}\\s+ONLINE`))

    const all = await rsm('exec', '--all', '-y', '--', 'hostname; exit 3')
    t.is(all.exitCode, 1)
    const name = String((await execa('hostname')).stdout)
    t.deepEqual(
      String(all.stdout).split('\n').toSorted(),
      hosts.map((host) => `${host}: ${name}`),
    )
    t.is((await rsm('exec', '-w', 'web2', '--', 'hostname; exit 3')).exitCode, 3)
    t.is((await rsm('exec', '-w', 'web[1-3]', '--', 'true')).exitCode, 0)
    const unknown = await rsm('exec', '-w', 'web4', '--', 'true')
    t.is(unknown.exitCode, 5)
    t.regex(String(unknown.stderr), /no such host: web4 \(did you mean web/)
  },
)

test.serial('a rolling deploy runs on its cluster one host at a time', async (t) => {
  const { rsm, directory } = fleet
  t.is((await rsm('clusters', 'add', 'web', '--hosts', 'web[1-3]')).exitCode, 0)
  const script = join(directory, 'deploy.sh')
  const journal = join(directory, 'journal')
  await writeFile(
    script,
    `echo "begin $RSM_TASK_ID" >> ${journal}; echo "version $VERSION"; echo end >> ${journal}\n`,
  )
  const words = ['--cluster', 'web', '--strategy', 'ROLLING', '--batch-size', '1', '--script', script]
  const deployed = await rsm('exec', ...words, '-p', 'VERSION=1.2.3', '--json')
  t.is(deployed.exitCode, 0)
  const task = JSON.parse(String(deployed.stdout)) as {
    status: string
    batchSize: number
    results: { hostname: string; startedAt: string; completedAt: string }[]
  }
  t.is(task.status, 'SUCCESS')
  t.deepEqual(
    task.results.map(({ hostname }) => hostname),
    hosts,
  )
  for (const [index, result] of task.results.entries()) {
    const next = task.results[index + 1]
    if (next) t.true(Date.parse(next.startedAt) >= Date.parse(result.completedAt))
  }
})

test.serial('output arrives while the script still runs', async (t) => {
  const { rsm, directory } = fleet
  const gate = join(directory, 'gate')
  // The script continues only after its first line was read, so its end proves live output.
  const running = rsm(
    'exec',
    '-w',
    'web1',
    '--',
    `echo first; until [ -e ${gate} ]; do sleep 0.05; done; echo second`,
  )
  const lines: string[] = []
  for await (const line of createInterface({ input: running.stdout })) {
    lines.push(line)
    if (lines.length === 1) await writeFile(gate, '')
  }
  t.deepEqual(lines, ['web1: first', 'web1: second'])
})

test.serial('an agent that has enrolled starts again without its token file', async (t) => {
  const { rsm, directory, url } = fleet
  const dataDir = join(directory, 'web4')
  const token = join(directory, 'token4')
  const made = JSON.parse(String((await rsm('hosts', 'join', '--json')).stdout)) as { token: string }
  await writeFile(token, made.token)
  const words = ['agent', 'run', '--url', url(), '--data-dir', dataDir, '--hostname', 'web4']
  for (const round of ['enrolling', 'enrolled']) {
    const agent = rsm(...words, '--enroll-token-file', token)
    const line = await said(agent)
    t.regex(line, /is host 4/, round)
    agent.kill('SIGTERM')
    await agent
    await rm(token, { force: true })
  }
})
