import { readFileSync } from 'node:fs'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'

const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
  commands: Record<string, { flags: Record<string, { helpGroup?: string }>; examples: string[] }>
}
const firsts = new Set(Object.keys(commands).map((id) => id.replace(/:.*/, '')))

test('rsm --help fits 80x24, begins with common commands, and lists each command or topic once', async (t) => {
  const env = cleanEnv(temporaryDirectory(t))
  const { stdout } = await runRsm(['--help'], env)
  t.is((await runRsm([], env)).stdout, stdout)
  const lines = stdout.trimEnd().split('\n')
  t.true(lines.length < 24, stdout)
  t.true(
    lines.every((line) => line.length <= 80),
    stdout,
  )
  const [, list = ''] = stdout.split('COMMANDS\n')
  const common = [...list.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name)
  const others = [...list.matchAll(/^ {2}[A-Z][a-z]*(?: [a-z]+)? {2,}(.*)$/gm)].flatMap(([, names = '']) =>
    names.split(', '),
  )
  t.is(common[0], 'exec')
  t.deepEqual([...common, ...others].sort(), [...firsts].sort())
  // Examples of commands are run by test/long/examples.
  const known = new Set(Object.values(commands).flatMap(({ examples }) => examples))
  const typed = [...stdout.matchAll(/\$ rsm .*?(?=  )/g)].map(([line]) => line)
  t.deepEqual(
    typed.filter((line) => !known.has(line)),
    [],
  )
  t.is(typed.length, 5)
})

test('the help of a command refers to `rsm help flags` for global flags', async (t) => {
  const env = cleanEnv(temporaryDirectory(t))
  const globals = Object.keys(commands['whoami']?.flags ?? {})
  const all = (await runRsm(['help', 'flags'], env)).stdout
  t.deepEqual(
    globals.filter((name) => !all.includes(` --${name}`)),
    [],
  )
  const { stdout } = await runRsm(['hosts', 'list', '--help'], env)
  t.regex(stdout, /\$ rsm hosts list \[SELECTOR\.\.\.\] \[OPTIONS\]\n/)
  t.regex(stdout, /\nGlobal flags, such as --json, --quiet, --url, --context: rsm help flags\n/)
  t.notRegex(stdout, /--token-file/)
  t.regex(
    (await runRsm(['agent', 'status', '--help'], env)).stdout,
    /\nGlobal flags, such as --json, --quiet: /,
  )
})

test('a command that works on this machine only refuses options that choose a server', async (t) => {
  const env = cleanEnv(temporaryDirectory(t))
  const message = 'rsm: rsm agent status has no --context, because it works on this machine only\n'
  const before = await runRsm(['--context', 'prod', 'agent', 'status'], env)
  t.is(before.exit, 2)
  t.true(before.stderr.startsWith(message), before.stderr)
  const behind = await runRsm(['agent', 'status', '--context', 'prod'], env)
  t.is(behind.exit, 2)
  t.regex(behind.stderr, /^rsm: unknown option --context: this command works on this machine only\n/)
})

test('a global flag may precede the command; one with a value may appear only once', async (t) => {
  const env = cleanEnv(temporaryDirectory(t), { RSM_TOKEN: 'x' })
  const twice = await runRsm(['--url', 'http://127.0.0.1:1', 'whoami', '--url', 'http://127.0.0.1:2'], env)
  t.is(twice.exit, 2)
  t.regex(twice.stderr, /^rsm: --url is given twice\n/)
  const { exit, stderr } = await runRsm(['--json', '--url=http://127.0.0.1:1', 'whoami', '--json'], env)
  t.is(exit, 4)
  t.like(JSON.parse(stderr), { error: { code: 'unreachable' } })
  t.regex((await runRsm(['-q', '--context', 'prod', '--version'], env)).stdout, /^rsm\/\d/)
})

test('help shows groups of flags in the order of the command', async (t) => {
  const { stdout } = await runRsm(['exec', '--help'], cleanEnv(temporaryDirectory(t)))
  t.deepEqual(
    [...stdout.matchAll(/^(\w+) FLAGS$/gm)].map(([, group]) => group),
    ['TARGETS', 'RUN', 'OUTPUT'],
  )
})
