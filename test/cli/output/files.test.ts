import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { Contexts } from '../../../src/cli/contexts/contexts.ts'
import { readShowOptions } from '../../../src/cli/flags/output.ts'
import { BoundedText, keptPerHost } from '../../../src/cli/output/bounded-text.ts'
import { fileNameOf, OutdirOutput, prepareOutdir } from '../../../src/cli/output/outdir.ts'
import { openOutputFile, refuseShared } from '../../../src/cli/output/output-file.ts'
import { entryOf, resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const flags = {
  output: undefined,
  outdir: undefined,
  grouped: false,
  diff: false,
  'no-prefix': false,
  raw: false,
}

test('one format goes to stdout, others to files; -b and --diff mean grouped', (t) => {
  const read = (output: string[], more = {}) => readShowOptions({ ...flags, output, ...more }, false, 'live')
  t.is(read([]).format, 'live')
  t.like(read(['junit=a=b.xml', 'NDJSON=run']), {
    format: 'live',
    files: [
      { format: 'junit', path: 'a=b.xml' },
      { format: 'ndjson', path: 'run' },
    ],
  })
  t.is(read(['junit=-']).format, 'junit')
  t.is(read(['grouped'], { grouped: true }).format, 'grouped')
  t.is(read([], { diff: true }).format, 'grouped')
  t.is(read(['grouped=file'], { diff: true }).format, 'live')
  t.is(readShowOptions(flags, true, 'live').format, undefined)
  t.throws(() => read(['junit=f', 'ndjson=f']), { message: /one file/ })
})

test('a file that is written whole replaces the previous one when complete, and keeps its mode', async (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 'report.xml')
  writeFileSync(path, 'former')
  chmodSync(path, 0o640)
  symlinkSync(path, join(directory, 'link'))
  const kept = openOutputFile(path, true)
  await kept.sink.write('lost')
  kept.discard()
  const file = openOutputFile(join(directory, 'link'), true)
  await file.sink.write('new')
  t.is(readFileSync(path, 'utf8'), 'former')
  await file.finish()
  t.is(readFileSync(path, 'utf8'), 'new')
  t.is(statSync(path).mode & 0o777, 0o640)
  t.deepEqual(
    readdirSync(directory).sort((a, b) => a.localeCompare(b)),
    ['link', 'report.xml'],
  )
})

test('the error for an unwritable file names the path that was typed, not the temporary name', (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(join(directory, 'file'), '')
  const missing = join(directory, 'no', 'r.xml')
  const told = (path: string) => t.throws(() => openOutputFile(path, true))?.message
  t.is(told(missing), `can't write ${missing}: directory ${join(directory, 'no')} does not exist`)
  t.is(
    told(join(directory, 'file', 'r.xml')),
    `can't write ${directory}/file/r.xml: a part of this path is a file`,
  )
  t.is(told(directory), `can't write ${directory}: it is a directory`)
})

test('a device is written to and never replaced; a full disk is reported', async (t) => {
  const file = openOutputFile('/dev/full', true)
  await t.throwsAsync(
    async () => {
      await file.sink.write('x')
      await file.finish()
    },
    { message: /ENOSPC/ },
  )
  t.false(statSync('/dev/full').isFile())
})

test('only regular files of --outdir are written, not pipes, which block, or links, which lead elsewhere', (t) => {
  const home = temporaryDirectory(t)
  const victim = join(home, 'victim')
  const output = { type: 'output', entry: entryOf('web1', 'x\n', { id: 1 }) } as const
  const make: ((path: string) => void)[] = [
    (path) => execFileSync('mkfifo', [path]),
    (path) => symlinkSync(victim, path),
    (path) => mkdirSync(path),
  ]
  writeFileSync(victim, 'kept')
  for (const [at, odd] of make.entries()) {
    const directory = join(home, 'out', String(at))
    prepareOutdir(directory)
    const late = new OutdirOutput(directory)
    odd(join(directory, 'web1.out'))
    t.throws(() => prepareOutdir(directory), {
      code: 'usage',
      message: /web1\.out in it is not a regular file/,
    })
    late.event(output)
    t.throws(() => late.end(taskOf([resultOf('web1')])), { message: /web1\.out is not a regular file/ })
  }
  t.is(readFileSync(victim, 'utf8'), 'kept')
  const directory = join(home, 'out', 'again')
  for (const data of ['long long\n', 'short\n']) {
    prepareOutdir(directory)
    const kept = new OutdirOutput(directory)
    kept.event({ type: 'output', entry: entryOf('web1', data, { id: 1 }) })
    kept.end(taskOf([resultOf('web1')]))
    t.is(readFileSync(join(directory, 'web1.out'), 'utf8'), data)
  }
})

test('a directory that cannot be created is reported at once', (t) => {
  t.throws(() => prepareOutdir('/proc/x/y'), {
    message: "can't write into --outdir /proc/x/y: no directory can be made there",
  })
  t.throws(() => prepareOutdir(''), { message: '--outdir needs a directory' })
  t.throws(() => new Contexts({ XDG_CONFIG_HOME: '/proc/x' }).prepare(), {
    message: 'cannot write in /proc/x/rsm: no directory can be made there',
  })
})

test('each output needs a file of its own, however its path is spelt', (t) => {
  const home = temporaryDirectory(t)
  const at = (name: string) => join(home, name)
  const there = (name: string) => writeFileSync(at(name), '')
  there('file')
  linkSync(at('file'), at('second-name'))
  symlinkSync(at('file'), at('link'))
  symlinkSync(home, at('here'))
  const shared = { message: /two formats can't go into one file/ }
  const refuse = (paths: string[], outdir?: string) =>
    refuseShared({ files: paths.map((path) => ({ path })), outdir, onStdout: true })
  for (const [one, other] of [
    ['same', './same'],
    ['same', 'here/same'],
    ['file', 'link'],
    ['file', 'second-name'],
    ['here/file', 'link'],
  ] as const)
    t.throws(() => refuse([at(one), `${home}/${other}`]), shared, `${one} ${other}`)
  t.throws(() => refuse([at('web1.out')], at('here')), { message: /has the name of a file in --outdir/ })
  t.notThrows(() => refuse(['/dev/null', '/dev/null', at('file'), at('report.xml')], home))
})

test('S07 each hostname becomes a valid file name in the directory, different from those of other hosts', (t) => {
  const names = [
    'web1',
    'web-1.example.com',
    '..',
    '.',
    '../../etc/passwd',
    '.hidden',
    '-rf',
    'a/b',
    'a%2fb',
    'ü',
    '',
    'x'.repeat(253),
    `${'x'.repeat(252)}y`,
  ]
  const files = names.map((name) => fileNameOf(name))
  t.deepEqual(files.slice(0, 2), ['web1', 'web-1.example.com'])
  for (const name of files) t.true(/^(?![.-])[\w.%-]{0,251}$/.test(name), name)
  t.is(new Set(files).size, names.length)
  t.false(existsSync('/etc/passwd.out'))
})

test('the first and the last part of too long a text are kept, with the number of characters left out', (t) => {
  for (const size of [1, 7, 1000]) {
    const text = new BoundedText(20)
    const all = Array.from({ length: 1000 }, (_, at) => String(at % 10)).join('')
    for (let at = 0; at < all.length; at += size) text.push(all.slice(at, at + size))
    t.is(text.toString(), '0123456789\n[... 980 characters left out ...]\n0123456789')
  }
  const short = new BoundedText(20)
  for (const piece of ['0123456', '7890123', '456789']) short.push(piece)
  t.is(short.toString(), '01234567890123456789')
  t.true(keptPerHost(1) <= 1024 * 1024 && keptPerHost(1_000_000) >= 8 * 1024)
})
