import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from './fixtures/rsm.ts'
import { said } from './helpers/programs/said.ts'

const tests = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('runner.test'))
  .map((file) => ({ file, text: readFileSync(join('test', file), 'utf8'), isLong: file.startsWith('long/') }))

test("A18 no test sets a timeout longer than the runner's, because the runner checks only once and too early", (t) => {
  // Milliseconds of silence after which ava.config.js ends running tests.
  const asked = tests.flatMap(({ file, text, isLong }) =>
    [...text.matchAll(/\bt\.timeout\(([\d_]*)/g)].map(([call, number = '']) => ({
      call: `${file}: ${call}`,
      milliseconds: Number(number.replaceAll('_', '') || Number.NaN),
      patience: isLong ? 600_000 : 60_000,
    })),
  )
  t.true(asked.length > 10)
  t.deepEqual(
    asked.filter(({ milliseconds, patience }) => !(milliseconds < patience)).map(({ call }) => call),
    [],
  )
})

test('no test of the gate sleeps: tests wait for events with `until` or an injected clock', (t) => {
  const gate = tests.filter(({ file, isLong }) => !isLong && file.endsWith('.test.ts'))
  t.true(gate.length > 200)
  t.deepEqual(
    gate.filter(({ text }) => /\bsetTimeout\b/.test(text)).map(({ file }) => file),
    // It names setTimeout in a rule about sources.
    ['architecture.test.ts'],
  )
})

test("A18 waiting for a program's output fails as soon as the program ends, with its last output", async (t) => {
  const start = (script: string) => {
    const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }
  await t.throwsAsync(said(start('echo "no such module" >&2; exit 3')), {
    message: 'ended with 3 before it said "\\n": no such module\n',
  })
  await t.throwsAsync(said(start('echo half; kill -9 $$'), 'ready'), {
    message: 'ended with SIGKILL before it said "ready": half\n',
  })
  const early = start('exit 4')
  await new Promise((resolved) => early.once('close', resolved))
  await t.throwsAsync(said(early), { message: /^ended with 4 / })
  await t.throwsAsync(said(spawn(join(temporaryDirectory(t), 'none'))), { message: /ENOENT/ })
  t.is(await said(start('echo one; echo two; exec sleep 60'), 'two\n'), 'one\ntwo\n')
})
