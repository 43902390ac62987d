import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { Fleet } from './fleet/fleet.ts'
import { binary } from './fleet/server.ts'
import { type Sshd, startSshd } from './fleet/sshd.ts'
import { inTurn, ratioRow, untilOutput, wholeProcess } from './measure.ts'
import type { Row } from './row.ts'

const rounds = 15
/** Milliseconds that a user may wait for a Tab. */
const answerBound = 150

/** A bare client with URL and token as arguments: sends one GET with node:http and prints the number of hosts. */
export const bareGet = `
const http = require('node:http')
http.get(process.argv[1] + '/api/hosts?size=500', { headers: { authorization: 'Bearer ' + process.argv[2] } }, (answer) => {
  let text = ''
  answer.on('data', (chunk) => { text += chunk })
  answer.on('end', () => console.log(JSON.parse(text).data.content.length))
})`

/** The words of a line as fish sends them, each ended by NUL; the last one is under the cursor. */
const tabPressed = ['rsm', 'hosts', 'show', 'ho'].map((word) => `${word}\0`).join('')

/** A Node, and the environment of its rsm with server, token and caches, which are warm after the first round. */
interface Setting {
  readonly node: string
  /** Like `20.20.2`. */
  readonly version: string
  readonly env: NodeJS.ProcessEnv
  readonly fleet: Fleet
}

async function benchCommands({ node, version, env, fleet }: Setting): Promise<Row[]> {
  const rsm = (...argv: string[]) => wholeProcess(node, [binary, ...argv], { env })
  const empty = () => wholeProcess(node, ['-e', '0'])
  const on = `, Node ${version}`
  const own = await inTurn(rounds, () => rsm('--version'), empty)
  const list = await inTurn(
    rounds,
    () => rsm('hosts', 'list'),
    () => wholeProcess(node, ['-e', bareGet, fleet.url, fleet.token]),
  )
  const tab = await inTurn(
    rounds,
    () => wholeProcess(node, [binary, '__complete', 'fish'], { env, input: tabPressed }),
    empty,
  )
  const answer = ratioRow(`completion of a host's name${on}, vs node -e 0`, 'ms', tab, { atMost: 0 })
  return [
    ratioRow(`rsm --version${on}, vs node -e 0`, 'ms', own, { atMost: 2 }),
    ratioRow(`rsm hosts list${on}, vs a bare GET`, 'ms', list, { atMost: 2.5 }),
    { ...answer, goal: `≤ ${answerBound} ms`, met: answer.ours <= answerBound },
  ]
}

/** A command on one host, until its first line and until its end, vs a whole ssh. */
async function benchFirstLine({ node, version, env }: Setting, sshd: Sshd): Promise<Row[]> {
  const exec = [binary, 'exec', '-w', 'host1', '--', 'echo', 'here']
  const ssh = () => wholeProcess('ssh', [...sshd.options, '-l', userInfo().username, 'host1', 'echo', 'here'])
  const on = `, Node ${version}`
  const line = await inTurn(rounds, () => untilOutput(node, exec, { env }), ssh)
  const whole = await inTurn(rounds, () => wholeProcess(node, exec, { env }), ssh)
  const atMost = Number.parseInt(version, 10) >= 24 ? 1 : 1.5
  return [
    ratioRow(`first line of rsm exec echo${on}, vs a whole ssh`, 'ms', line, { atMost }),
    ratioRow(`rsm exec echo${on}, vs ssh`, 'ms', whole, { atMost: 2 }),
  ]
}

/** Whole processes of the command line, from spawn to exit, on each of these Nodes; server and agents run on the current one. */
export async function benchStartup(fleet: Fleet, nodes: readonly string[]): Promise<Row[]> {
  const rows: Row[] = []
  const home = await mkdtemp(join(tmpdir(), 'rsm-bench-home-'))
  const sshd = await startSshd()
  if (!sshd) process.stderr.write('sshd is missing: the first line of rsm exec is not compared with ssh\n')
  const env = { ...process.env, HOME: home, XDG_CACHE_HOME: '', RSM_URL: fleet.url, RSM_TOKEN: fleet.token }
  try {
    for (const node of nodes) {
      const version = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
      const setting = { node, version, env, fleet }
      rows.push(...(await benchCommands(setting)))
      if (sshd) rows.push(...(await benchFirstLine(setting, sshd)))
    }
  } finally {
    await sshd?.stop()
    await rm(home, { recursive: true, force: true })
  }
  return rows
}
