import { readFileSync } from 'node:fs'
import test from 'ava'
import { type FormatName, formatNames, formats } from '../../../src/cli/output/formats.ts'
import type { TaskEvent } from '../../../src/client/watch.ts'
import { resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { formatOptions } from '../../fixtures/format-options.ts'

const document = readFileSync('docs/use/output.md', 'utf8')

/** The first block of code below this heading. */
function sampleOf(heading: string): string {
  const section = document.split(/^## /m).find((each) => each.startsWith(`${heading}\n`))
  return /^```\w+\n(?<text>[^]*?)^```$/m.exec(section ?? '')?.groups?.['text'] ?? ''
}

const time = '2026-11-21T03:25:15.000Z'
const results = [
  resultOf('web1', { stdoutBytes: 11 }),
  resultOf('web2', { stdoutBytes: 11 }),
  resultOf('web3', { status: 'FAILED', exitCode: 3, stdoutBytes: 11, stderrBytes: 8 }),
]
const task = taskOf(results)

/** The run that the document shows. */
const events: TaskEvent[] = [
  { type: 'task', task: { taskId: 'task-1', status: 'RUNNING', hostCount: 3 } },
  ...results.map(({ hostId, hostname }): TaskEvent => {
    const data = hostname === 'web3' ? 'nginx/1.22\n' : 'nginx/1.24\n'
    const entry = {
      id: hostId,
      hostId,
      hostname,
      stream: 'stdout',
      sequence: 0,
      timestamp: time,
      data,
    } as const
    return { type: 'output', entry }
  }),
  {
    type: 'output',
    entry: {
      id: 4,
      hostId: 3,
      hostname: 'web3',
      stream: 'stderr',
      sequence: 1,
      timestamp: time,
      data: 'too old\n',
    },
  },
  ...results.map((result): TaskEvent => ({ type: 'host', result })),
]

async function shown(name: FormatName, diff = false): Promise<string> {
  let text = ''
  const sink = { write: (more: string) => void (text += more) }
  const output = await formats[name].open(formatOptions({ stdout: sink, stderr: sink, hostCount: 3, diff }))
  for (const event of events) await output.event(event)
  await output.end(task)
  return text
}

for (const name of formatNames)
  test(`docs/use/output.md shows the actual output of ${name}`, async (t) => {
    t.is(await shown(name), sampleOf(name))
  })

test('docs/use/output.md shows the actual output of --diff', async (t) => {
  t.is(await shown('grouped', true), sampleOf('--diff'))
})

test('docs/use/output.md shows the actual task of --json', (t) => {
  t.deepEqual(JSON.parse(sampleOf('--json')), task)
})
