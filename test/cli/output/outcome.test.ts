import test from 'ava'
import {
  cutLines,
  exitOfTask,
  failureLines,
  foldFailures,
  summaryLine,
  warningLines,
} from '../../../src/cli/output/outcome.ts'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import type { TaskResult } from '../../../src/core/tasks/task.ts'
import { resultOf, taskOf } from '../../fixtures/fake-server.ts'

const one: [string, Partial<TaskResult>, Partial<Task>, number][] = [
  ['success', {}, {}, 0],
  ['its remote code', { status: 'FAILED', exitCode: 3 }, {}, 3],
  ['a remote code of 255', { status: 'FAILED', exitCode: 255 }, {}, 255],
  ['killed by a signal', { status: 'FAILED', exitCode: 137, signal: 'SIGKILL' }, {}, 137],
  ['failed without a code', { status: 'FAILED', exitCode: null, error: 'no such user' }, {}, 1],
  ['a timeout', { status: 'TIMEOUT', exitCode: -1 }, {}, 124],
  ['not reachable', { status: 'UNREACHABLE', exitCode: null }, {}, 255],
  ['lost', { status: 'LOST', exitCode: null }, {}, 255],
  ['cancelled', { status: 'CANCELLED', exitCode: null }, { status: 'CANCELLED' }, 130],
]
for (const [title, result, task, exit] of one)
  test(`one host exits with ${exit}: ${title}`, (t) => {
    t.is(exitOfTask(taskOf([resultOf('web1', result)], task)), exit)
  })

test('several hosts exit with 0 if all succeeded, 130 if cancelled, and 1 otherwise', (t) => {
  const good = resultOf('web1')
  t.is(exitOfTask(taskOf([good, resultOf('web2')])), 0)
  t.is(exitOfTask(taskOf([good, resultOf('web2', { status: 'FAILED', exitCode: 7 })])), 1)
  t.is(exitOfTask(taskOf([good, resultOf('web2', { status: 'TIMEOUT', exitCode: -1 })])), 1)
  const cancelled = resultOf('web2', { status: 'CANCELLED', exitCode: null })
  t.is(exitOfTask(taskOf([good, cancelled], { status: 'CANCELLED' })), 130)
})

test('the reason names a signal that the agent reports, and otherwise shows 128 plus a signal', (t) => {
  const words = (signal: string | null, exitCode: number) =>
    foldFailures(taskOf([resultOf('web1', { status: 'FAILED', exitCode, signal })]))[0]?.reason
  t.is(words('SIGKILL', 137), 'FAILED, exit 137 (SIGKILL)')
  t.is(words(null, 137), 'FAILED, exit 137 (128 + SIGKILL)')
  t.is(words(null, 143), 'FAILED, exit 143 (128 + SIGTERM)')
  for (const code of [3, 128, 255]) t.is(words(null, code), `FAILED, exit ${code}`)
})

test('the reason for a timeout names the limit', (t) => {
  const task = taskOf([resultOf('web1', { status: 'TIMEOUT', exitCode: -1 })], { timeout: 2 })
  t.deepEqual(failureLines(foldFailures(task)), ['web1: TIMEOUT after 2 s'])
})

test('unreachable hosts with the same reason are folded, although each reason names its host', (t) => {
  const away = (name: string) =>
    resultOf(name, { status: 'UNREACHABLE', exitCode: null, error: `${name} is OFFLINE: never heard` })
  t.deepEqual(failureLines(foldFailures(taskOf([away('web1'), away('web2')]))), [
    'web[1-2]: UNREACHABLE: OFFLINE: never heard',
  ])
  t.deepEqual(failureLines(foldFailures(taskOf([away('web1')]))), [
    'web1: UNREACHABLE: web1 is OFFLINE: never heard',
  ])
})

test('silent hosts are folded, although their last heartbeats differ', (t) => {
  const silent = (hostname: string, seconds: number) =>
    resultOf(hostname, {
      status: 'UNREACHABLE',
      error: `${hostname} is OFFLINE: no heartbeat for ${seconds} s`,
    })
  const task = taskOf([silent('web1', 355), silent('web2', 145), silent('web3', 475)])
  t.deepEqual(failureLines(foldFailures(task)), [
    'web[1-3]: UNREACHABLE: OFFLINE: no heartbeat for 145 to 475 s',
  ])
  t.deepEqual(failureLines(foldFailures(taskOf([silent('web1', 355), silent('web2', 355)]))), [
    'web[1-2]: UNREACHABLE: OFFLINE: no heartbeat for 355 s',
  ])
  const away = (hostname: string, heartbeat: string, link: string) =>
    resultOf(hostname, {
      status: 'UNREACHABLE',
      error: `${hostname} is OFFLINE: no heartbeat for ${heartbeat}, no link for ${link}`,
    })
  t.deepEqual(
    failureLines(foldFailures(taskOf([away('web1', '5 min', '5 min'), away('web2', '94 s', '5 min')]))),
    ['web[1-2]: UNREACHABLE: OFFLINE: no heartbeat for 94 s to 5 min, no link for 5 min'],
  )
})

test('failures are folded by reason, most hosts first', (t) => {
  const failed = (name: string) => resultOf(name, { status: 'FAILED', exitCode: 3 })
  const away = resultOf('db1', { status: 'UNREACHABLE', exitCode: null, error: 'no agent came in 0 s' })
  const task = taskOf([resultOf('web9'), away, failed('web1'), failed('web2')])
  t.deepEqual(failureLines(foldFailures(task)), [
    'web[1-2]: FAILED, exit 3',
    'db1: UNREACHABLE: no agent came in 0 s',
  ])
  t.is(summaryLine(task), '4 hosts: 1 SUCCESS, 2 FAILED, 1 UNREACHABLE in 1.2 s (task task-1)')
})

test('failed hosts are listed before the hosts skipped because of them, however many those are', (t) => {
  const skipped = (name: string) =>
    resultOf(name, { status: 'SKIPPED', exitCode: null, error: 'not started' })
  const task = taskOf([resultOf('web1', { status: 'FAILED', exitCode: 1 }), skipped('web2'), skipped('web3')])
  t.deepEqual(failureLines(foldFailures(task)), ['web1: FAILED, exit 1', 'web[2-3]: SKIPPED: not started'])
})

test('S06 the signal and the reason from an agent are one line without control sequences', (t) => {
  const lying = { signal: '\u001b[31mSIG\n::e::', error: '\u001b]52;c;x\u0007boom\nrsm: 1 host: SUCCESS' }
  const [line = '', ...more] = failureLines(
    foldFailures(taskOf([resultOf('web1', { status: 'FAILED', exitCode: 3, ...lying })])),
  )
  t.is(line, 'web1: FAILED, exit 3 (SIG ::e::): boom rsm: 1 host: SUCCESS')
  t.deepEqual(more, [])
})

test('A16 the counts of the last line are in a fixed order, whichever host comes first', (t) => {
  const [good, bad] = [resultOf('web1'), resultOf('web2', { status: 'FAILED', exitCode: 1 })]
  const away = resultOf('web3', { status: 'UNREACHABLE', exitCode: null })
  for (const results of [
    [good, bad, away],
    [away, bad, good],
    [bad, good, away],
  ])
    t.is(summaryLine(taskOf(results)), '3 hosts: 1 SUCCESS, 1 FAILED, 1 UNREACHABLE in 1.2 s (task task-1)')
})

test('A16 cut output is reported also for a host that succeeded', (t) => {
  const cut = ['web1', 'web2'].map((name) => resultOf(name, { truncated: true }))
  t.deepEqual(cutLines(taskOf([...cut, resultOf('web3')])), [
    'web[1-2]: its output exceeded the limit; the middle is left out',
  ])
  t.deepEqual(cutLines(taskOf([resultOf('web3')])), [])
})

test('processes left running are reported also for successful hosts, with the PID for a single host', (t) => {
  const held = (pid: number) =>
    `${pid} sh still holds the output: what comes after the end of the script is dropped`
  const left = (name: string, pid: number) =>
    resultOf(name, { error: held(pid), survivors: [{ pid, command: 'sh' }] })
  t.deepEqual(warningLines(taskOf([left('web1', 71), resultOf('web3')])), [`web1: ${held(71)}`])
  t.deepEqual(warningLines(taskOf([left('web1', 71), left('web2', 8)])), [
    'web[1-2]: sh: still running with the output open',
  ])
  t.deepEqual(
    warningLines(taskOf([resultOf('web3'), resultOf('web4', { status: 'FAILED', error: held(1) })])),
    [],
  )
})
