import test from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import { matches } from '../../src/web/hosts/search.ts'
import { countUntil, parseCast, resizeOf, timeline } from '../../src/web/recordings/cast.ts'
import { taskOf } from '../../src/web/run/task-of.ts'
import { mostLines, OutputLines } from '../../src/web/tasks/output-lines.ts'
import { phasesOf, phaseText } from '../../src/web/tasks/task-words.ts'
import { attachedText, sequenceOf, withCtrl } from '../../src/web/terminals/terminal-text.ts'

const head = '{"version":2,"width":100,"height":30}'

test('a recording with a torn last line plays up to it, and unreasonable sizes are limited', (t) => {
  const cast = parseCast(
    `${head}\n[0.5,"o","a"]\n[1,"i","typed"]\n[9.5,"r","120x40"]\n[9.75,"o","b"]\n[10,"o","to`,
  )
  t.deepEqual([cast.cols, cast.rows], [100, 30])
  t.deepEqual(cast.events, [
    { at: 0.5, kind: 'o', data: 'a' },
    { at: 9.5, kind: 'r', data: '120x40' },
    { at: 9.75, kind: 'o', data: 'b' },
  ])
  t.deepEqual(resizeOf('120x40'), { cols: 120, rows: 40 })
  t.deepEqual(resizeOf('0x-3'), { cols: 80, rows: 24 })
  t.deepEqual(resizeOf('1000000000x24'), { cols: 1000, rows: 24 })
  t.throws(() => parseCast('{"version":1}'))
})

test('pauses of a timeline are capped, and a timeline never goes back', (t) => {
  const events = [0.5, 9.5, 9.25, 9.75].map((at) => ({ at, kind: 'o' as const, data: '' }))
  t.deepEqual(timeline(events, 2), [0.5, 2.5, 2.5, 2.75])
  t.deepEqual(timeline(events, Number.POSITIVE_INFINITY), [0.5, 9.5, 9.5, 9.75])
  t.deepEqual(
    [0, 0.5, 2.6, 3].map((moment) => countUntil([0.5, 2.5, 2.5, 2.75], moment)),
    [0, 1, 3, 4],
  )
})

test('S06 output is assembled into lines by host and stream, without control sequences, up to a limit', (t) => {
  const output = new OutputLines()
  let id = 0
  const sequences: Record<number, number> = {}
  const entry = (hostId: number, stream: 'stdout' | 'stderr', data: string) => ({
    id: id++,
    hostId,
    hostname: `web${hostId}`,
    stream,
    sequence: (sequences[hostId] = (sequences[hostId] ?? -1) + 1),
    timestamp: '',
    data,
  })
  output.push([
    entry(1, 'stdout', 'a'),
    entry(2, 'stdout', 'x\u001b[2Jy\n'),
    entry(1, 'stderr', 'e\n'),
    entry(1, 'stdout', 'b\nrest'),
  ])
  t.deepEqual(
    output.lines.map(({ hostname, stream, text }) => `${hostname} ${stream} ${text}`),
    ['web2 stdout xy', 'web1 stderr e', 'web1 stdout ab'],
  )
  output.finish()
  t.is(output.lines.at(-1)?.text, 'rest')
  t.false(output.isLater)
  output.push([entry(1, 'stdout', 'line\n'.repeat(mostLines + 10))])
  t.is(output.lines.length, mostLines)
  t.true(output.isLater)
  const tail = new OutputLines()
  tail.push([entry(2, 'stdout', 'still from the start\n')])
  t.true(tail.isLater, 'the output began in the middle')
})

test('the form becomes the body of a task, or an error that says what is missing', (t) => {
  const form = (fields: Record<string, string>) => (name: string) => fields[name] ?? ''
  const command = { type: 'BASH', content: 'uptime\nid', strategy: 'PARALLEL' }
  t.deepEqual(taskOf(form({ ...command, params: 'A=b=c\n\nX=', timeout: '5' }), { hostIds: [1, 2] }), {
    script: { type: 'BASH', content: 'uptime\nid', name: 'uptime' },
    target: { hostIds: [1, 2] },
    strategy: 'PARALLEL',
    params: { A: 'b=c', X: '' },
    timeout: 5,
  })
  t.deepEqual(
    taskOf(form({ scriptId: '7', selector: ' @env:test ', strategy: 'ROLLING', runAs: 'deploy' })),
    {
      scriptId: 7,
      target: { selector: '@env:test' },
      strategy: 'ROLLING',
      runAs: 'deploy',
    },
  )
  const faultsOf = (work: () => unknown) => t.throws(work, { instanceOf: RsmError })?.fields
  t.deepEqual(
    faultsOf(() => taskOf(form(command))),
    [{ field: 'target', message: 'Choose hosts or enter a selector.' }],
  )
  t.deepEqual(
    faultsOf(() => taskOf(form({ ...command, params: '=x' }), { hostIds: [1] })),
    [{ field: 'params', message: 'A parameter is KEY=VALUE: =x' }],
  )
})

test('gates of a form become those of the API: a command with type, a stored script by id, only given times', (t) => {
  const form = (fields: Record<string, string>) => (name: string) => fields[name] ?? ''
  const command = { type: 'BASH', content: 'true', strategy: 'ROLLING' }
  const gates = {
    'verify.script.content': 'curl -f localhost\n',
    'verify.script.type': 'BASH',
    'verify.retries': '5',
    'verify.intervalSeconds': '0.5',
    'verify.timeout': '10',
    'rollback.scriptId': '7',
  }
  const { verify, rollback } = taskOf(form({ ...command, ...gates }), { hostIds: [1] })
  t.deepEqual(verify, {
    script: { type: 'BASH', content: 'curl -f localhost\n', name: 'curl -f localhost' },
    retries: 5,
    intervalSeconds: 0.5,
    timeout: 10,
  })
  t.deepEqual(rollback, { scriptId: 7 })
  const undo = {
    'rollback.script.content': 'undo',
    'rollback.script.type': 'PYTHON',
    'rollback.script.timeout': '0',
  }
  t.deepEqual(taskOf(form({ ...command, ...undo }), { hostIds: [1] }).rollback, {
    script: { type: 'PYTHON', content: 'undo', name: 'undo', timeout: 0 },
  })
  t.false('verify' in taskOf(form({ ...command, 'verify.retries': '5' }), { hostIds: [1] }))
})

test('each phase of a host is described by its result', (t) => {
  const gate = {
    scriptId: null,
    scriptVersion: null,
    scriptName: null,
    firstLine: 'x',
    type: 'BASH' as const,
    timeout: 9,
  }
  const verifies = { verify: { ...gate, retries: 1, intervalSeconds: 0 }, rollback: null }
  const both = { ...verifies, rollback: gate }
  const open = { exitCode: null, phase: null, verify: null, rollback: null }
  const unverified = { status: 'FAILED' as const, exitCode: 3, attempts: 2 }
  const undone = { status: 'SUCCESS' as const, exitCode: 0 }
  for (const [gates, result, expected] of [
    [{ verify: null, rollback: null }, { ...open, status: 'SUCCESS', exitCode: 0 }, ''],
    [both, { ...open, status: 'PENDING' }, 'waiting; waiting; waiting'],
    [both, { ...open, status: 'RUNNING', phase: 'SCRIPT' }, 'running; waiting; waiting'],
    [both, { ...open, status: 'RUNNING', phase: 'VERIFY' }, 'succeeded; running; waiting'],
    [both, { ...open, status: 'RUNNING', phase: 'ROLLBACK' }, 'ended; ended; running'],
    [
      both,
      { ...open, status: 'FAILED', exitCode: 4, rollback: undone },
      'failed, exit 4; not run; succeeded',
    ],
    [
      both,
      { ...open, status: 'FAILED', exitCode: 3, verify: unverified, rollback: undone },
      'succeeded; failed, exit 3, 2 tries; succeeded',
    ],
    [
      both,
      { ...open, status: 'TIMEOUT', exitCode: -1, rollback: { status: 'FAILED', exitCode: 1 } },
      'timed out; not run; failed, exit 1',
    ],
    [
      verifies,
      { ...open, status: 'SUCCESS', exitCode: 0, verify: { ...undone, attempts: 1 } },
      'succeeded; succeeded',
    ],
    [verifies, { ...open, status: 'UNREACHABLE' }, 'unreachable; not run'],
  ] as const)
    t.is(phasesOf(gates, result).map(phaseText).join('; '), expected)
})

test('a line ends with its phase, even without a line feed', (t) => {
  const output = new OutputLines()
  const piece = { hostId: 1, hostname: 'web1', stream: 'stdout' as const, timestamp: '' }
  output.push([
    { ...piece, id: 0, sequence: 0, data: 'deployed, no line feed' },
    { ...piece, id: 1, sequence: 1, phase: 'VERIFY', data: 'not ' },
    { ...piece, id: 2, sequence: 2, phase: 'VERIFY', data: 'well\n' },
    { ...piece, id: 3, sequence: 3, phase: 'ROLLBACK', data: 'undone' },
  ])
  output.finish()
  t.deepEqual(
    output.lines.map(({ phase, text }) => [phase, text]),
    [
      [undefined, 'deployed, no line feed'],
      ['VERIFY', 'not well'],
      ['ROLLBACK', 'undone'],
    ],
  )
})

test('A15 declared params are sent as in the form, secret ones separately, empty ones only with a default', (t) => {
  const param = { required: false, secret: false, default: null, description: '', pattern: null }
  const declared = [
    { ...param, name: 'VERSION', required: true },
    { ...param, name: 'KEEP', default: '3' },
    { ...param, name: 'MODE', default: 'slow' },
    { ...param, name: 'DEBUG' },
    { ...param, name: 'PASSWORD', secret: true },
    { ...param, name: 'scriptId' },
  ]
  const values: Record<string, string> = {
    scriptId: '7',
    strategy: 'PARALLEL',
    params: 'LEFT=over',
    'param VERSION': '1.2.3',
    'param KEEP': '3',
    'param PASSWORD': 'hidden',
    'param scriptId': 'mine',
  }
  t.deepEqual(
    taskOf((name) => values[name] ?? '', { hostIds: [1] }, declared),
    {
      scriptId: 7,
      target: { hostIds: [1] },
      strategy: 'PARALLEL',
      params: { LEFT: 'over', VERSION: '1.2.3', KEEP: '3', MODE: '', scriptId: 'mine' },
      secretParams: { PASSWORD: 'hidden' },
    },
  )
})

test('every word of a search must occur in name, address, tags or system', (t) => {
  const host = { hostname: 'Web1', ip: '10.0.0.1', tags: { env: 'Prod' }, systemInfo: null }
  for (const search of ['', 'web', '10.0 WEB', 'env:prod', 'prod  web1'])
    t.true(matches(host, search), search)
  for (const search of ['web2', 'web env:test']) t.false(matches(host, search), search)
})

test('the text of an attachment names a reattachment, missing output and watchers', (t) => {
  t.is(attachedText({ isBack: false, omitted: 0, watchers: null }), '')
  t.is(attachedText({ isBack: true, omitted: 0, watchers: null }), 'Reattached; nothing was lost')
  t.is(
    attachedText({ isBack: true, omitted: 7, watchers: 'ann reads along' }),
    'Reattached. 7 characters of earlier output are no longer kept. ann reads along',
  )
  t.is(
    attachedText({ isBack: false, omitted: 7, watchers: 'ann reads along' }),
    '7 characters of earlier output are no longer kept. ann reads along',
  )
})

test('A15 buttons for keys that a phone lacks send the same sequences as a keyboard', (t) => {
  const plain = { isApplication: false, isCtrl: false }
  t.deepEqual(
    (['Esc', 'Tab', '←', '↑', '↓', '→'] as const).map((key) => sequenceOf(key, plain)),
    ['\u001b', '\t', '\u001b[D', '\u001b[A', '\u001b[B', '\u001b[C'],
  )
  t.is(sequenceOf('↑', { ...plain, isApplication: true }), '\u001bOA')
  t.is(sequenceOf('←', { isApplication: true, isCtrl: true }), '\u001b[1;5D')
  t.deepEqual(['c', 'C', '[', ' ', '1', 'é', '\r'].map(withCtrl), [
    '\u0003',
    '\u0003',
    '\u001b',
    '\0',
    '1',
    'é',
    '\r',
  ])
})
