import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import test, { type ExecutionContext } from 'ava'
import { type Row, rows } from '../../helpers/examples/rows.ts'
import {
  type ExampleServer,
  type ExampleWorld,
  exampleServer,
  exampleServers,
  exampleWorld,
} from '../../helpers/examples/world.ts'
import { bashOnPty } from '../../helpers/terminals/pty.ts'

const patience = 120_000
/** Concurrent examples: more would only wait for each other. */
const atOnce = 3

const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
  commands: Record<string, { examples?: readonly string[] }>
}
const examples = [
  ...new Set(
    Object.values(commands).flatMap((command) =>
      (command.examples ?? []).map((line) => line.replace(/^\$ /, '')),
    ),
  ),
]

interface Ended {
  readonly exit: number | null
  readonly shown: string
}

async function runOnTerminal(
  t: ExecutionContext,
  world: ExampleWorld,
  line: string,
  typed: NonNullable<Row['typed']>,
): Promise<Ended> {
  const terminal = bashOnPty(t, line, world.home, world.env)
  let isOverdue = false
  const overdue = setTimeout(() => {
    isOverdue = true
    terminal.end()
  }, patience)
  for (const [shown, keys] of typed) {
    await terminal.shows(shown)
    terminal.type(keys)
  }
  const exit = await terminal.ended
  clearTimeout(overdue)
  return { exit: isOverdue ? null : exit, shown: terminal.shown }
}

/** Options that keep each shell from reading the user's configuration. */
const shells = {
  bash: ['--norc', '--noprofile'],
  zsh: ['--no-rcs'],
  fish: ['--no-config'],
} as const

async function runLine(
  t: ExecutionContext,
  world: ExampleWorld,
  line: string,
  { until, meanwhile, shell = 'bash' }: Row,
): Promise<Ended> {
  const child = spawn(shell, [...shells[shell], '-c', line], {
    cwd: world.home,
    env: world.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid ?? 0), name)
    } catch {
      // The process has ended.
    }
  }
  t.teardown(() => signal('SIGKILL'))
  const overdue = setTimeout(signal, patience, 'SIGKILL')
  let shown = ''
  let told = false
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      shown += text
      if (until === undefined || told || !until.test(shown)) return
      told = true
      signal('SIGINT')
    })
  const changing = meanwhile && setInterval(() => void meanwhile(world).catch(() => undefined), 500)
  const [code, ended] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  clearTimeout(overdue)
  clearInterval(changing)
  return { exit: code ?? 128 + (constants.signals[ended ?? 'SIGKILL'] ?? 0), shown }
}

/** Runs an example and returns its failures. */
async function runExample(
  t: ExecutionContext,
  example: string,
  shared: ExampleServer,
  another: () => Promise<ExampleServer>,
): Promise<string[]> {
  const row = rows[example] ?? {}
  const world = await exampleWorld(t, row.alone === true ? await another() : shared)
  const words = [...Object.entries((await row.given?.(world, t)) ?? {}), ...world.words]
  const line = words.reduce((text, [word, here]) => text.replaceAll(word, () => here), example)
  const ended =
    row.typed === undefined
      ? await runLine(t, world, line, row)
      : await runOnTerminal(t, world, line, row.typed)
  if (row.alone === true) await world.server.stop()
  const meant = row.exit?.[0] ?? 0
  return ended.exit === meant
    ? []
    : [`${example}: ${ended.exit}, not ${meant}: ${line}\n${ended.shown.slice(-2000)}`]
}

test('every example of every --help does what it says', async (t) => {
  const shared = await exampleServer(t)
  const another = await exampleServers(t)
  // Some examples need zsh or fish, if installed (2026-11-21: CI installs both).
  const missing = ['zsh', 'fish'].filter((shell) => spawnSync(shell, ['--version']).error)
  if (missing.length > 0) t.log(`without ${missing.join(' and ')}: their examples are not run`)
  const open = examples.filter((example) => !missing.includes(rows[example]?.shell ?? 'bash'))
  const failures: string[] = []
  const work = async () => {
    for (let example = open.shift(); example !== undefined; example = open.shift()) {
      // Restarts the timeout for each example, so that the runner sees progress.
      t.timeout(100_000)
      failures.push(
        ...(await runExample(t, example, shared, another).catch((error: unknown) => [
          `${example}: ${String(error)}`,
        ])),
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  t.deepEqual(failures, [])
})

test('the table of examples has no entry for a removed example', (t) => {
  t.deepEqual(
    Object.keys(rows).filter((row) => !examples.includes(row)),
    [],
  )
})
