import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { Differ } from '../../../src/cli/output/differ.ts'
import { appendStepSummary, GithubOutput, stepSummary } from '../../../src/cli/output/github.ts'
import { GroupedOutput } from '../../../src/cli/output/grouped.ts'
import { JunitOutput } from '../../../src/cli/output/junit.ts'
import { hostPrefix } from '../../../src/cli/output/live.ts'
import { foldFailures } from '../../../src/cli/output/outcome.ts'
import { resultStatuses } from '../../../src/core/tasks/task.ts'
import { entryOf, resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { formatOptions } from '../../fixtures/format-options.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

function paper() {
  const texts: string[] = []
  return { texts, all: () => texts.join(''), sink: { write: (text: string) => void texts.push(text) } }
}

test('JUnit: a failed script is a failure, a host that cannot run it an error, a skipped host skipped', async (t) => {
  const { sink, all } = paper()
  const results = resultStatuses.map((status, at) => resultOf(`web${at + 1}`, { status, duration: null }))
  await new JunitOutput(formatOptions({ stdout: sink })).end(taskOf(results))
  const verdicts = [...all().matchAll(/<(failure|error|skipped) message="(\w+)/g)].map(
    ([, kind, status]) => `${status} ${kind}`,
  )
  t.deepEqual(new Set(verdicts).size, resultStatuses.length - 1)
  for (const verdict of [
    'FAILED failure',
    'TIMEOUT failure',
    'UNREACHABLE error',
    'LOST error',
    'RUNNING error',
    'PENDING error',
    'SKIPPED skipped',
    'CANCELLED error',
  ])
    t.true(verdicts.includes(verdict), verdict)
  t.regex(all(), /tests="9" failures="2" errors="5" skipped="1"/)
  const never = resultOf('web1', { status: 'CANCELLED', startedAt: null })
  const second = paper()
  await new JunitOutput(formatOptions({ stdout: second.sink })).end(taskOf([never]))
  t.regex(second.all(), /<skipped message="CANCELLED"\/>/)
})

test("a step summary stays within GitHub's limit, and text of hosts cannot leave its cell", (t) => {
  const error = `x | y </td></table><script>\`[a](b)\`\n# ${'z'.repeat(5000)}`
  const results = Array.from({ length: 2000 }, (_, at) =>
    resultOf(`web${at}`, { status: 'LOST', error: `${at} ${error}` }),
  )
  const task = taskOf(results)
  const text = stepSummary(task, foldFailures(task), 100_000)
  t.true(Buffer.byteLength(text) <= 100_000)
  t.regex(text, /\n\d+ more rows left out\n\n$/)
  const rows = text.split('\n').filter((line) => line.startsWith('| web'))
  t.true(rows.length > 5)
  for (const row of rows) t.regex(row, /^\| [^|<>`[\]]+ \| [^|<>`[\]]+ \|$/)
  const path = join(temporaryDirectory(t), 'summary.md')
  writeFileSync(path, 'x'.repeat(1024 * 1024 - 10))
  appendStepSummary(path, task, foldFailures(task))
  t.is(readFileSync(path, 'utf8').length, 1024 * 1024 - 10)
})

test('GitHub: the output of a lone host is printed as it is written', async (t) => {
  const { sink, texts, all } = paper()
  const output = new GithubOutput(formatOptions({ stdout: sink, alone: true, hostCount: 1 }))
  const say = (data: string, stream: 'stdout' | 'stderr' = 'stdout') =>
    output.event({ type: 'output', entry: entryOf('web1', data, { stream }) })
  await say('one\ntw')
  t.deepEqual(texts, ['::group::web1\n', 'one\n'])
  await say('oops\n', 'stderr')
  await say('o\n::end')
  await output.end(taskOf([resultOf('web1')]))
  t.is(all(), '::group::web1\none\noops\ntwo\n: :end\n::endgroup::\n')
})

test('GitHub: skipped hosts are warnings, and at most ten reasons are printed', async (t) => {
  const failed = (exitCode: number) => resultOf(`web${exitCode}`, { status: 'FAILED', exitCode })
  const skipped = ['db1', 'db2'].map((name) => resultOf(name, { status: 'SKIPPED' }))
  const few = paper()
  await new GithubOutput(formatOptions({ stdout: few.sink })).end(taskOf([failed(1), ...skipped]))
  t.regex(few.all(), /^::error title=web1::FAILED, exit 1$/m)
  t.regex(few.all(), /^::warning title=db\[1-2\]::SKIPPED$/m)
  const many = paper()
  const results = Array.from({ length: 20 }, (_, at) => failed(at + 1))
  await new GithubOutput(formatOptions({ stdout: many.sink })).end(taskOf(results))
  t.is(many.all().match(/^::error /gm)?.length, 10)
})

test('grouped: hosts without output are named if others have output, and are in no group', async (t) => {
  const { sink, all } = paper()
  const said: string[] = []
  const output = new GroupedOutput(formatOptions({ stdout: sink, notice: (text) => void said.push(text) }))
  await output.event({ type: 'output', entry: entryOf('web1', 'x\n') })
  const results = ['web1', 'web2', 'web3'].map((name) => resultOf(name))
  await output.end(taskOf([...results, resultOf('web4', { status: 'FAILED' })]))
  t.deepEqual(said, ['no output: web[2-3]'])
  t.false(all().includes('web[2-3]'))
})

test('grouped: output that differs only in line ends or colours is one group', async (t) => {
  const { sink, all } = paper()
  const output = new GroupedOutput(formatOptions({ stdout: sink }))
  for (const [host, data] of [
    ['web1', 'x\n'],
    ['web2', 'x\r\n'],
    ['web3', '\u001b[31mx\u001b[0m\n'],
  ] as const)
    await output.event({ type: 'output', entry: entryOf(host, data) })
  await output.end(taskOf([resultOf('web1'), resultOf('web2'), resultOf('web3')]))
  t.regex(all(), /^-+\nweb\[1-3\] \(3\)\n-+\nx\n$/)
})

test('comparing has a total time limit, and tells when it was exceeded', (t) => {
  const lines = (seed: number) =>
    Array.from({ length: 20_000 }, (_, at) => `${Math.imul(at + 1, seed) >>> 0}\n`).join('')
  const text = lines(2654435761)
  let now = 0
  let took = 1999
  const differ = new Differ('web1', text, 'none', () => (now += took))
  t.is(differ.unified('web2', `${text}x\n`)?.split('\n').at(-2), '+x')
  t.false(differ.isSpent)
  // A comparison gets the remaining time: 1 ms is too little for two texts that have nothing in common.
  took = 1
  t.is(differ.unified('web3', lines(40503)), undefined)
  t.true(differ.isSpent)
  t.is(differ.unified('web4', text), undefined)
  t.is(new Differ('a', 'x\ny', 'none').unified('b', 'x\nz\n')?.split('\n')[2], '@@ -1,2 +1,2 @@')
})

test('a host has the same colour in every run; stderr is distinguished without colours too', (t) => {
  t.is(hostPrefix('web1', 'stdout', 'none'), 'web1: ')
  t.is(hostPrefix('web1', 'stdout', 'many'), hostPrefix('web1', 'stdout', 'many'))
  const prefixes = Array.from({ length: 50 }, (_, at) =>
    hostPrefix(`web${at}`, 'stdout', 'many').replace(/web\d+/, ''),
  )
  t.true(new Set(prefixes).size >= 10)
  t.true(hostPrefix('web1', 'stderr', 'basic').includes('[4;'))
})
