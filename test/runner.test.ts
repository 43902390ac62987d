import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from './fixtures/rsm.ts'
import { said } from './helpers/programs/said.ts'

const checkout = resolve('')

/** Milliseconds of silence after which a configuration of the runner ends what still runs. */
async function patienceOf(config: string): Promise<number> {
  const { default: options } = (await import(join(checkout, config))) as { default: { timeout: string } }
  const [, number, unit] = /^(\d+)(s|m)$/.exec(options.timeout) ?? []
  return Number(number) * (unit === 'm' ? 60_000 : 1_000)
}

test('A18 no test asks to be waited for longer than the runner waits: else its one look comes too early, and it never looks again', async (t) => {
  const usual = await patienceOf('ava.config.js')
  const long = Math.min(await patienceOf('ava.long.config.js'), await patienceOf('ava.waiting.config.js'))
  const patiences = {
    'faults/long/': long,
    'systemd/': await patienceOf('ava.systemd.config.js'),
    'cluster/': await patienceOf('ava.cluster.config.js'),
  }
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  const asked = files
    .filter((file) => file.endsWith('.ts') && !file.startsWith('runner.test'))
    .flatMap((file) =>
      [...readFileSync(join('test', file), 'utf8').matchAll(/\bt\.timeout\(([\d_]*)/g)].map(
        ([call, text]) => ({
          call: `${file}: ${call}`,
          milliseconds: Number(text?.replaceAll('_', '') || NaN),
          patience: Object.entries(patiences).find(([folder]) => file.startsWith(folder))?.[1] ?? usual,
        }),
      ),
    )
  t.true(asked.length > 10)
  t.deepEqual(
    asked.filter(({ milliseconds, patience }) => !(milliseconds < patience)).map(({ call }) => call),
    [],
  )
})

test('A18 who waits for a program is told at once that it has ended, and its last words', async (t) => {
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
