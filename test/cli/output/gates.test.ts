import { readFileSync } from 'node:fs'
import test from 'ava'
import { type FormatName, formats } from '../../../src/cli/output/formats.ts'
import { exitOfTask, foldFailures, reasonOf } from '../../../src/cli/output/outcome.ts'
import type { LogEntry } from '../../../src/core/protocol/http/logs.ts'
import { resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { formatOptions } from '../../fixtures/format-options.ts'

const result = resultOf('web1', {
  status: 'FAILED',
  exitCode: 3,
  error: 'verification failed: exit code 3',
  verify: { status: 'FAILED', exitCode: 3, attempts: 1 },
  rollback: { status: 'SUCCESS', exitCode: 0 },
})
const reason = 'FAILED, exit 3: verification failed: exit code 3; rolled back'

const written: Pick<LogEntry, 'phase' | 'stream' | 'data'>[] = [
  { stream: 'stdout', data: '1.3.0 is in place' },
  { stream: 'stdout', data: 'not well\n', phase: 'VERIFY' },
  { stream: 'stdout', data: 'back ', phase: 'ROLLBACK' },
  { stream: 'stdout', data: 'to 1.2.9\n', phase: 'ROLLBACK' },
]

async function shown(name: FormatName, options = {}): Promise<string> {
  let text = ''
  const sink = { write: (more: string) => void (text += more) }
  const output = await formats[name].open(
    formatOptions({ stdout: sink, stderr: sink, hostCount: 2, ...options }),
  )
  for (const [sequence, piece] of written.entries()) {
    const entry = { id: sequence + 1, hostId: 1, hostname: 'web1', sequence, timestamp: '', ...piece }
    await output.event({ type: 'output', entry })
  }
  await output.event({ type: 'host', result })
  await output.end(taskOf([result]))
  return text
}

const live = 'web1: 1.3.0 is in place\nweb1 [verify]: not well\nweb1 [rollback]: back to 1.2.9\n'
const headed = '1.3.0 is in place\n[verify]\nnot well\n[rollback]\nback to 1.2.9\n'

test('docs/use/output.md shows the live output of gates', async (t) => {
  t.is(await shown('live'), live)
  t.true(readFileSync('docs/use/output.md', 'utf8').includes(`\`\`\`text\n${live}\`\`\``))
})

test('grouped, junit and github mark where a phase begins, but not with --raw', async (t) => {
  t.true((await shown('grouped')).includes(headed))
  t.true((await shown('github')).includes(headed))
  const junit = await shown('junit')
  t.true(junit.includes(`<system-out>${headed}</system-out>`))
  t.regex(junit, new RegExp(`<failure message="${reason}" type="FAILED"/>`))
  t.regex(junit, /<properties><property name="verify" value="FAILED, exit 3, attempts 1"\/>/)
  t.regex(junit, /<property name="rollback" value="SUCCESS, exit 0"\/><\/properties>/)
  for (const name of ['grouped', 'junit', 'github'] as const)
    t.false((await shown(name, { raw: true })).includes('[verify]'))
})

test('output without the prefix is exactly what the host wrote', async (t) => {
  const all = written.map(({ data }) => data).join('')
  t.is(await shown('live', { prefix: false, raw: true, alone: true }), all)
})

test('ndjson has the phase of each piece of output', async (t) => {
  const lines = (await shown('ndjson')).trimEnd().split('\n')
  const phases = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'output')
  t.deepEqual(
    phases.map(({ phase }) => phase),
    [undefined, 'VERIFY', 'ROLLBACK', 'ROLLBACK'],
  )
})

test('the reason says that a host was rolled back; a verification timeout exits with 124', (t) => {
  t.is(reasonOf(result, 300), reason)
  t.is(foldFailures(taskOf([result]))[0]?.reason, reason)
  t.is(exitOfTask(taskOf([result])), 3)
  t.is(exitOfTask(taskOf([{ ...result, exitCode: -1 }])), 124)
  t.is(exitOfTask(taskOf([{ ...result, exitCode: null }])), 1)
  t.is(reasonOf({ ...result, status: 'TIMEOUT', error: null }, 5), 'TIMEOUT after 5 s; rolled back')
})
