import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import test from 'ava'

/** `disk` has the files and locks that server, agent, net and cli share; `net` has the connections of agent, client and console to a server. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: ['core'],
  disk: ['disk', 'core'],
  ssh: ['ssh', 'core', 'disk'],
  server: ['server', 'core', 'disk', 'ssh'],
  net: ['net', 'core', 'disk'],
  agent: ['agent', 'core', 'disk', 'net'],
  client: ['client', 'core', 'disk', 'net'],
  cli: ['cli', 'core', 'client', 'disk', 'net', 'ssh'],
  web: ['web', 'core', 'net', 'client', 'cli'],
  install: ['install', 'core', 'disk'],
  commands: ['commands', 'cli', 'client', 'net', 'core', 'install'],
  // The entry: finds the command of a line and shows errors.
  'cli.ts': ['cli', 'core', 'disk'],
}

/** Commands that run a server or an agent in their own process, and load it only when run. */
const hosting: Readonly<Record<string, readonly string[]>> = {
  'commands/server/start.ts': ['server'],
  'commands/server/migrate.ts': ['server'],
  'commands/server/backup.ts': ['server'],
  'commands/server/restore.ts': ['server'],
  'commands/server/compact.ts': ['server'],
  'commands/server/doctor.ts': ['server'],
  'commands/server/retention.ts': ['server'],
  'commands/server/confirm-clock.ts': ['server'],
  'commands/server/confirm-restore.ts': ['server'],
  'commands/server/upgrade.ts': ['server'],
  'commands/server/reset-password.ts': ['server'],
  'commands/server/install.ts': ['server'],
  'commands/agent/run.ts': ['agent'],
  'commands/agent/install.ts': ['agent'],
  'commands/agent/selftest.ts': ['agent'],
  'commands/agent/status.ts': ['agent'],
  'commands/quickstart.ts': ['server', 'agent'],
}

/** Core decides and never acts: no outside world, no clock, no randomness. */
const coreMayImport = new Set(['croner', 'ajv', 're2js', 'typebox', 'tweetnacl'])

interface Import {
  readonly from: string
  readonly how: 'static' | 'await' | 'type'
}

const comments = /\/\*[\s\S]*?\*\/|(?<![:'"`\\])\/\/.*$/gm
const statements =
  /^[ \t]*(?:import|export)\s+(?<type>type\s)?(?:[^'"`;]*?\sfrom\s+)?(?<quote>['"])(?<from>[^'"]+)\k<quote>|\bimport\(\s*['"`](?<later>[^'"`]+)['"`]\s*\)/gm

function importsOf(text: string): Import[] {
  return [...text.replaceAll(comments, '').matchAll(statements)].map(({ groups = {} }) =>
    groups.later === undefined
      ? { from: groups.from ?? '', how: groups.type === undefined ? 'static' : 'type' }
      : { from: groups.later, how: 'await' },
  )
}

/** The rules that the imports of `file` (relative to src) break. */
function breaches(file: string, text: string): string[] {
  const own = file.split('/')[0] ?? ''
  const found: string[] = []
  for (const { from, how } of importsOf(text)) {
    const told = `${file} imports ${from}`
    if (!from.startsWith('.')) {
      if (own === 'core' && !coreMayImport.has(from.split('/')[0] ?? '')) found.push(`${told}: core is pure`)
      continue
    }
    const target = path.posix.join(path.posix.dirname(file), from)
    const room = target.split('/')[0] ?? ''
    if (target.startsWith('..')) {
      if (!from.endsWith('package.json')) found.push(`${told}: outside src`)
    } else if (hosting[file]?.includes(room)) {
      if (how === 'static') found.push(`${told}: load it by await import`)
    } else if (mayImport[own]?.includes(room) !== true) found.push(`${told}: ${own} may not`)
  }
  if (
    own === 'core' &&
    /\b(?:setTimeout|setInterval|setImmediate|Date\.now|performance\.now|Math\.random|fetch)\(|\bnew Date\(\)|\bprocess\./.test(
      text.replaceAll(comments, ''),
    )
  )
    found.push(`${file} reads a clock, a timer, chance or the process: core is pure`)
  return found
}

/** Only one folder uses blessed, which is old, so that it stays replaceable; only `rsm tui` loads it. */
const screenRoom = 'cli/tui/screen/'
const takesScreen = 'commands/tui.ts'

function screenBreaches(file: string, text: string): string[] {
  return importsOf(text).flatMap(({ from, how }) => {
    if (from === 'blessed' || from.startsWith('blessed/'))
      return file.startsWith(screenRoom) ? [] : [`${file} imports ${from}`]
    const target = path.posix.join(path.posix.dirname(file), from)
    if (how === 'type' || !target.startsWith('cli/tui/') || file.startsWith('cli/tui/')) return []
    return file === takesScreen && how === 'await'
      ? []
      : [`${file} imports ${from}: only rsm tui, when it runs`]
  })
}

/**
 * Each kind of store has a folder. Only `main.ts` opens one for a server, and `app/offline.ts` and `app/migrate.ts` for commands without
 * a running server; `server install` checks whether a directory can hold one. All other code uses a store through its ports.
 */
const kinds = ['server/storage/files/', 'server/storage/postgres/']
const openers = new Set([
  'server/main.ts',
  'server/app/offline.ts',
  'server/app/migrate.ts',
  'commands/server/install.ts',
])
const typesOnly = /^server\/storage\/(?:ports|records)\//

function portBreaches(file: string, text: string): string[] {
  return importsOf(text).flatMap(({ from, how }) => {
    const target = path.posix.join(path.posix.dirname(file), from)
    if (typesOnly.test(file) && how !== 'type' && !target.startsWith('core/') && !typesOnly.test(target))
      return [`${file} imports ${from}: beyond core a port takes types only`]
    const kind = kinds.find((folder) => target.startsWith(folder))
    if (kind === undefined || file.startsWith(kind)) return []
    return openers.has(file) ? [] : [`${file} imports ${from}: reach it through its port`]
  })
}

const src = path.resolve('src')

function sources(): string[] {
  const entries = readdirSync(src, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => path.relative(src, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
}

test('every source file follows the import rules', (t) => {
  const files = sources()
  t.true(files.length > 20, 'the sources are found')
  const found = files.flatMap((file) => breaches(file, readFileSync(path.join(src, file), 'utf8')))
  t.deepEqual(found, [])
})

test('only cli/tui/screen knows blessed, and only rsm tui loads the screen, when it runs', (t) => {
  const found = sources().flatMap((file) => screenBreaches(file, readFileSync(path.join(src, file), 'utf8')))
  t.deepEqual(found, [])
  t.true(sources().some((file) => /from 'blessed'/.test(readFileSync(path.join(src, file), 'utf8'))))
  const refused: readonly (readonly [file: string, text: string])[] = [
    ['cli/tui/tui.ts', `import blessed from 'blessed'`],
    ['cli/text/table.ts', `const b = await import('blessed/lib/program.js')`],
    ['commands/tui.ts', `import { Tui } from '../cli/tui/tui.ts'`],
    ['commands/logs.ts', `const { Tui } = await import('../cli/tui/tui.ts')`],
  ]
  for (const [file, text] of refused) t.is(screenBreaches(file, text).length, 1, text)
})

test('only main.ts, app/offline.ts, app/migrate.ts and server install know the kinds of store', (t) => {
  const found = sources().flatMap((file) => portBreaches(file, readFileSync(path.join(src, file), 'utf8')))
  t.deepEqual(found, [])
  const refused: readonly (readonly [file: string, text: string])[] = [
    ['server/services/x.ts', `import type { JsonStore } from '../storage/files/store/store.ts'`],
    ['server/services/hosts/x.ts', `const { createRelay } = await import('../../storage/files/relay.ts')`],
    ['server/services/x.ts', `import { createRelay } from '../storage/postgres/relay/relay.ts'`],
    ['server/storage/postgres/x.ts', `import type { JsonStore } from '../files/store/store.ts'`],
    ['server/storage/files/x.ts', `const { beginRun } = await import('../postgres/runs.ts')`],
    ['server/storage/ports/x.ts', `import type { KeptStatus } from '../files/presence.ts'`],
    ['server/storage/records/x.ts', `import { isoTime } from '../../../disk/clock.ts'`],
  ]
  for (const [file, text] of refused) t.is(portBreaches(file, text).length, 1, text)
  for (const file of openers) {
    const open = path.posix.relative(path.posix.dirname(file), 'server/storage/files/open.ts')
    t.deepEqual(portBreaches(file, `import { openFileStore } from './${open}'`), [])
    t.deepEqual(portBreaches(file, `const { openFileStore } = await import('./${open}')`), [])
  }
})

/** The floor of each room: one above the highest room that it imports. Null if rooms import each other in a cycle. */
function floors(imports: ReadonlyMap<string, ReadonlySet<string>>): Map<string, number> | null {
  const floor = new Map<string, number>()
  for (let before = -1; before !== floor.size; ) {
    before = floor.size
    for (const [room, others] of imports) {
      const below = [...others].map((other) => floor.get(other))
      if (!floor.has(room) && !below.includes(undefined))
        floor.set(room, 1 + Math.max(0, ...below.map((one) => one ?? 0)))
    }
  }
  return floor.size === imports.size ? floor : null
}

test('rooms of the server import downwards only, on the floors of the table in architecture.md', (t) => {
  const room = (file: string) => /^server\/([^/]+)/.exec(file)?.[1]
  const imports = new Map<string, Set<string>>()
  for (const file of sources()) {
    const own = room(file)
    if (own === undefined) continue
    const others = imports.get(own) ?? new Set()
    imports.set(own, others)
    for (const { from } of importsOf(readFileSync(path.join(src, file), 'utf8'))) {
      const other = from.startsWith('.') ? room(path.posix.join(path.posix.dirname(file), from)) : undefined
      if (other !== undefined && other !== own) others.add(other)
    }
  }
  t.deepEqual(
    [...imports.keys()].filter((name) => name.endsWith('.ts')),
    ['main.ts'],
  )
  const found = floors(imports)
  t.not(found, null, 'no rooms import each other in a cycle')
  t.true(Math.max(...(found?.values() ?? [])) <= 8, JSON.stringify([...(found ?? [])]))
  const rows = readFileSync('docs/inside/architecture.md', 'utf8').matchAll(/^\| (\d) \| (`.+?`) \|/gm)
  const documented = [...rows].flatMap(([, floor, names = '']) =>
    [...names.matchAll(/`(.+?)`/g)].map(([, name]) => `${name} ${floor}`),
  )
  t.deepEqual(documented.sort(), [...(found ?? [])].map(([name, floor]) => `${name} ${floor}`).sort())
  t.is(
    floors(
      new Map([
        ['a', new Set(['b'])],
        ['b', new Set(['a'])],
      ]),
    ),
    null,
  )
  t.deepEqual(
    floors(
      new Map([
        ['a', new Set(['b'])],
        ['b', new Set<string>()],
      ]),
    )?.get('a'),
    2,
  )
})

/** Files in import cycles, including type imports: repeatedly removes all files without imports or importers. */
function circular(importsByFile: ReadonlyMap<string, readonly string[]>): string[] {
  const left = new Map([...importsByFile].map(([file, imports]) => [file, new Set(imports)]))
  for (let before = -1; before !== left.size; ) {
    before = left.size
    const imported = new Set([...left.values()].flatMap((imports) => [...imports]))
    for (const [file, imports] of left) {
      for (const one of imports) if (!left.has(one)) imports.delete(one)
      if (imports.size === 0 || !imported.has(file)) left.delete(file)
    }
  }
  return [...left.keys()].sort()
}

test('no files import each other in a cycle, not even types', (t) => {
  const graph = sources().map((file) => {
    const found = importsOf(readFileSync(path.join(src, file), 'utf8')).filter(({ from }) =>
      from.startsWith('.'),
    )
    return [file, found.map(({ from }) => path.posix.join(path.posix.dirname(file), from))] as const
  })
  t.true(graph.flatMap(([, imports]) => imports).length > 1000)
  t.deepEqual(circular(new Map(graph)), [])
  const broken = { a: ['b', 'x'], b: ['c'], c: ['b', 'd'], d: [], e: ['e'] }
  t.deepEqual(circular(new Map(Object.entries(broken))), ['b', 'c', 'e'])
})

test('few files use their own path or that of Node, because bundling changes both', (t) => {
  const asking = sources().filter((file) =>
    /import\.meta|process\.execPath/.test(
      readFileSync(path.join(src, file), 'utf8').replaceAll(comments, ''),
    ),
  )
  t.deepEqual(asking.sort(), [
    'agent/processes/programs.ts',
    'cli.ts',
    'cli/command/own-command.ts',
    'disk/own-files.ts',
    'install/service.ts',
  ])
})

test('every folder of src has a rule', (t) => {
  const rooms = new Set(sources().flatMap((file) => (file.includes('/') ? [file.split('/')[0] ?? ''] : [])))
  for (const room of rooms) t.true(room in mayImport, room)
})

test("a fact about an agent is named in four files: its message, its measurement, the host's schema and its check", (t) => {
  const naming = sources().filter((file) => /\brunsAsRoot\b/.test(readFileSync(path.join(src, file), 'utf8')))
  t.deepEqual(naming.sort(), [
    'agent/processes/script-setting.ts',
    'core/checks/setting-checks.ts',
    'core/protocol/http/hosts.ts',
    'core/protocol/messages.ts',
  ])
})

test('imports are found in every form', (t) => {
  const text = [
    `import 'a'`,
    `import b from "b"`,
    `import {\n  type C,\n  c,\n} from 'c'`,
    `import type { D } from 'd'`,
    `export { e } from 'e'`,
    `export * from 'f'`,
    `const g = await import('g')`,
    `// import 'no'`,
    `/* import 'no' */ const url = 'http://x' // see import('no')`,
    `import h, * as i from 'h'`,
  ].join('\n')
  t.deepEqual(
    importsOf(text).map(({ from, how }) => `${from} ${how}`),
    ['a static', 'b static', 'c static', 'd type', 'e static', 'f static', 'g await', 'h static'],
  )
})

const broken: readonly (readonly [file: string, text: string])[] = [
  ['core/x.ts', `import fs from 'node:fs'`],
  ['core/x.ts', `import { createHash } from 'node:crypto'`],
  ['core/x.ts', `import http from 'http'`],
  ['core/x.ts', `const { spawn } = await import('node:child_process')`],
  ['core/x.ts', `import type { Store } from '../server/store/store.ts'`],
  ['core/x.ts', `export const now = () => Date.now()`],
  ['core/x.ts', `setTimeout(() => {}, 1)`],
  ['server/x.ts', `import { run } from '../agent/runner.ts'`],
  ['agent/x.ts', `import type { WebSockets } from '../server/listeners/web-sockets.ts'`],
  ['agent/x.ts', `import { profiles } from '../client/profiles.ts'`],
  ['client/x.ts', `import { table } from '../cli/table.ts'`],
  ['client/x.ts', `import { targets } from '../cli/names/targets.ts'`],
  ['cli/x.ts', `import { startServer } from '../server/main.ts'`],
  ['server/x.ts', `import { proxyFor } from '../net/proxy.ts'`],
  ['net/x.ts', `import { Api } from '../client/http/api.ts'`],
  ['disk/x.ts', `import { table } from '../cli/text/table.ts'`],
  ['commands/exec.ts', `import { startServer } from '../server/main.ts'`],
  ['commands/exec.ts', `const { startServer } = await import('../server/main.ts')`],
  ['commands/server/start.ts', `import { startServer } from '../../server/main.ts'`],
  ['commands/server/start.ts', `const { run } = await import('../../agent/main.ts')`],
  ['server/x.ts', `import { helper } from '../../test/helpers/server.ts'`],
]
for (const [file, text] of broken)
  test(`the rules refuse ${file}: ${text}`, (t) => {
    t.is(breaches(file, text).length, 1)
  })

const kept: readonly (readonly [file: string, text: string])[] = [
  ['core/x.ts', `import { Type } from 'typebox'\nimport { y } from './protocol/y.ts'`],
  ['server/store/x.ts', `import fs from 'node:fs'\nimport { lockFile } from '../../disk/data-directory.ts'`],
  ['commands/server/start.ts', `const { startServer } = await import('../../server/main.ts')`],
  ['commands/quickstart.ts', `const { run } = await import('../agent/main.ts')`],
  ['commands/exec.ts', `import { table } from '../cli/table.ts'`],
]
for (const [file, text] of kept)
  test(`the rules allow ${file}: ${text.replaceAll('\n', '; ')}`, (t) => {
    t.deepEqual(breaches(file, text), [])
  })
