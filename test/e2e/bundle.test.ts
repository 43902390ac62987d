import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, temporaryDirectory } from '../fixtures/rsm.ts'

const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
  commands: Record<string, object>
}
/** Names in code that ajv would generate, which rsm never does, and one in an error message. */
const isWritten = (name: string) => /^(ajv(-formats)?\/dist\/|reflect-metadata$)/.test(name)

/** Directory of the part that has a command. */
function partOf(id: string): string {
  const [topic = ''] = id.split(':')
  if (topic === 'agent') return 'dist/agent'
  return topic === 'server' || topic === 'quickstart' ? 'dist/server' : 'dist/cli'
}

test('every command is only in the bundle of its part', (t) => {
  for (const id of Object.keys(commands))
    for (const part of ['dist/cli', 'dist/agent', 'dist/server'])
      t.is(
        existsSync(join(part, 'commands', `${id.replaceAll(':', '/')}.js`)),
        part === partOf(id),
        `${part} ${id}`,
      )
})

test('the bundles need no package, and the command line contains no code of server or agent', (t) => {
  const builtIn = new Set([...builtinModules, ...builtinModules.map((name) => `node:${name}`)])
  for (const part of ['cli', 'agent', 'server'])
    for (const name of readdirSync(join('dist', part), { recursive: true }) as string[]) {
      if (!/\.c?js$/.test(name)) continue
      const text = readFileSync(join('dist', part, name), 'utf8')
      const loaded = text.matchAll(/(?:\bfrom|\bimport|\bimport\(|[^.\w]require\() ?"([a-z@][^"]*)"/g)
      const foreign = [...loaded].map(([, from = '']) => from).filter((from) => !builtIn.has(from))
      t.deepEqual(
        foreign.filter((from) => !isWritten(from)),
        [],
        `${part}/${name}`,
      )
      if (part === 'cli') t.notRegex(text, /startServer|startAgent/, name)
    }
})

/** A file and everything loaded before its first line runs. */
function loadedWith(file: string): Set<string> {
  const loaded = new Set([file])
  for (const each of loaded)
    for (const [, name = ''] of readFileSync(each, 'utf8').matchAll(/(?:from|import)"(\.[^"]+)"/g))
      loaded.add(join(each, '..', name))
  return loaded
}

test('a command starts with few files, and without node:crypto, which is slow to load', (t) => {
  for (const name of ['exec', 'hosts/list', 'tasks/wait']) {
    const loaded = [...loadedWith('dist/cli/cli.js'), ...loadedWith(`dist/cli/commands/${name}.js`)]
    t.true(new Set(loaded).size <= 6, loaded.join(', '))
    for (const file of loaded) t.notRegex(readFileSync(file, 'utf8'), /from *"node:crypto"/, file)
  }
})

test('the PostgreSQL client is in the bundle, and loaded only for a store in PostgreSQL', (t) => {
  const ofPostgres = (file: string) => readFileSync(file, 'utf8').includes('SCRAM-SHA-256')
  const start = 'dist/server/commands/server/start.js'
  const late = [...readFileSync(start, 'utf8').matchAll(/import\("([^"]*)"\)/g)]
  const loaded = [start, ...late.map(([, name = '']) => join(start, '..', name))].flatMap((file) => [
    ...loadedWith(file),
  ])
  t.true(loaded.length > 2)
  t.deepEqual(loaded.filter(ofPostgres), [])
  const all = (readdirSync('dist/server', { recursive: true }) as string[]).filter((name) =>
    name.endsWith('.js'),
  )
  t.is(all.filter((name) => ofPostgres(join('dist/server', name))).length, 1)
})

test('the code for completion is in the bundle, and loads no code that runs commands', (t) => {
  const answer = 'dist/cli/cli/completion/answer.cjs'
  const text = readFileSync(answer, 'utf8')
  t.true(text.length < 60_000, `${text.length} bytes`)
  t.deepEqual([...text.matchAll(/require\("(?!node:)[^"]*"\)/g)], [])
  const late = [...text.matchAll(/import\("([^"]*)"\)/g)].map(([, name = '']) => join(answer, '..', name))
  t.true(late.length > 0)
  for (const file of late) t.true(existsSync(file), file)
})

/** Runs from the bundle, even if the code was compiled since. */
function inBundle(t: ExecutionContext, script: string) {
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: cleanEnv(temporaryDirectory(t)),
    encoding: 'utf8',
  })
}

test('the bundle reports an unknown option like the sources', (t) => {
  const ran = inBundle(t, `(await import('./dist/cli/cli.js')).main(['whoami', '--nosuch'])`)
  t.is(ran.status, 2)
  t.is(ran.stderr, 'rsm: unknown option --nosuch\n     rsm whoami --help\n')
})

test('code that the bundle loads late works: errors are wrapped, and their stacks cleaned', (t) => {
  const ran = inBundle(
    t,
    `
    const { default: Whoami } = await import('./dist/cli/commands/whoami.js')
    try {
      Object.create(Whoami.prototype).error('many words '.repeat(30), { exit: 3 })
    } catch (error) {
      console.log(JSON.stringify({ wrapped: error.render().split('\\n').length, stack: error.stack }))
    }`,
  )
  t.is(ran.status, 0, ran.stderr)
  const { wrapped, stack } = JSON.parse(ran.stdout) as { wrapped: number; stack: string }
  t.true(wrapped > 3)
  t.regex(stack, /^Error: many words .*\n +at /)
})

test('a command after a global flag is loaded from the bundle of its part', (t) => {
  const env = cleanEnv(temporaryDirectory(t))
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, { flags: Record<string, { type: string; helpGroup?: string }> }>
  }
  const globals = Object.entries(commands['whoami']?.flags ?? {})
  t.true(globals.length > 8)
  for (const [name, { type }] of globals) {
    const value = type === 'option' ? ['http://127.0.0.1:1'] : []
    const ran = spawnSync(
      process.execPath,
      ['bin/run.js', `--${name}`, ...value, 'server', 'status', '--data-dir', '/nosuch'],
      { env, encoding: 'utf8' },
    )
    t.notRegex(ran.stderr, /internal error|unknown/, name)
    t.not(ran.status, 0, name)
  }
})

test('code compiled after the bundle runs instead of it, as does compiled code without a bundle', (t) => {
  const root = temporaryDirectory(t)
  for (const directory of ['bin', 'dist/src', 'dist/cli'])
    mkdirSync(join(root, directory), { recursive: true })
  writeFileSync(join(root, 'package.json'), '{"type": "module"}')
  for (const name of readdirSync('bin')) copyFileSync(join('bin', name), join(root, 'bin', name))
  const compiled = join(root, 'dist/src/cli.js')
  const bundle = join(root, 'dist/cli/cli.js')
  const runs = (...argv: string[]) =>
    spawnSync(process.execPath, [join(root, 'bin/run.js'), ...argv], {
      env: cleanEnv(root),
      encoding: 'utf8',
    }).stdout
  writeFileSync(compiled, `export const main = () => console.log('compiled')`)
  t.is(runs('hosts', 'list'), 'compiled\n')
  writeFileSync(bundle, `export const main = () => console.log('bundle')`)
  t.is(runs('hosts', 'list'), 'bundle\n')
  t.is(runs('server', 'start'), 'compiled\n')
  for (const [where, file, exported] of [
    ['compiled', 'dist/src/cli/completion/answer.js', 'export const answer'],
    ['bundle', 'dist/cli/cli/completion/answer.cjs', 'exports.answer'],
  ] as const) {
    mkdirSync(join(root, file, '..'), { recursive: true })
    writeFileSync(join(root, file), `${exported} = () => console.log('${where}')`)
    t.is(runs('__complete', 'bash'), `${where}\n`)
  }
  writeFileSync(bundle, `export const main = () => new Promise(() => {})`)
  const endless = spawnSync(process.execPath, [join(root, 'bin/run.js'), 'exec'], { encoding: 'utf8' })
  t.like(endless, { status: 6, stderr: 'rsm: internal error: the command waits for what never comes\n' })
  writeFileSync(bundle, `export const main = () => console.log('bundle')`)

  const record = join(root, 'dist/.tsbuildinfo')
  writeFileSync(record, '{}')
  utimesSync(bundle, 1000, 1000)
  utimesSync(record, 1000, 1000)
  t.is(runs('hosts', 'list'), 'bundle\n')
  utimesSync(record, 1001, 1001)
  t.is(runs('hosts', 'list'), 'compiled\n')
})

test('a stack trace names lines of the sources', (t) => {
  const root = temporaryDirectory(t)
  // Only the bundle: newer compiled code would run instead.
  for (const part of ['package.json', 'bin', 'dist/agent'])
    cpSync(part, join(root, part), { recursive: true })
  // Fails, because it needs the socket of an agent.
  const ran = spawnSync(process.execPath, [join(root, 'bin/run.js'), '__pty', '/tmp'], {
    env: cleanEnv(root),
    encoding: 'utf8',
  })
  t.not(ran.status, 0)
  const line = /at (?:Module\.)?serveTerminals \(src\/agent\/terminals\/pty-process\.ts:(\d+)\)/.exec(
    ran.stderr,
  )?.[1]
  t.regex(
    readFileSync('src/agent/terminals/pty-process.ts', 'utf8').split('\n')[Number(line) - 1] ?? '',
    /new Socket\(/,
    ran.stderr,
  )
})
