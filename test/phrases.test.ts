import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from './fixtures/rsm.ts'

const linter = resolve('.ci/phrases.js')

/** Runs the linter on a checkout with one source file. */
function lint(directory: string, text: string) {
  mkdirSync(join(directory, 'src'), { recursive: true })
  writeFileSync(join(directory, 'src/some.ts'), text)
  execFileSync('git', ['init', '--quiet'], { cwd: directory })
  execFileSync('git', ['add', '--all'], { cwd: directory })
  const { status, stderr } = spawnSync(process.execPath, [linter], { cwd: directory, encoding: 'utf8' })
  return { status, said: stderr.split('\n').filter((line) => line.startsWith('src/')) }
}

test('the linter of phrases names the line of each phrase, also of one that is broken over two lines', (t) => {
  const { status, said } = lint(
    temporaryDirectory(t),
    [
      '/** Of the store, and a name that is',
      ' * no path. */',
      "export const message = 'the host goes on'",
      "test('P45 who reads', () => {})",
    ].join('\n'),
  )
  t.is(status, 1)
  t.deepEqual(said, [
    'src/some.ts:1: "is no path": is not a X, has no X',
    'src/some.ts:3: "goes on": continue',
    'src/some.ts:1: "/** Of": begin with a noun or a verb',
    'src/some.ts:4: "test(\'P45 who": begin with a noun or a verb',
  ])
})

test('the linter of phrases accepts plain English, names of users and the middle of a comment', (t) => {
  const { status, said } = lint(
    temporaryDirectory(t),
    [
      '// There is no host that is no longer known.',
      '// What follows is the middle of a comment.',
      "export const user = 'nobody'",
      "export const text = 'scripts run as nobody; there are none, for good reason'",
    ].join('\n'),
  )
  t.deepEqual([status, said], [0, []])
})
