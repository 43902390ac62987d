import test from 'ava'
import { endOf, longestRun, nextStep, outputBound, type StepEnd } from '../../../src/core/tasks/gates.ts'

type Word = 'ok' | 'bad' | 'late' | 'cut' | 'lost'

const ends: Record<Word, Pick<StepEnd, 'status' | 'exitCode' | 'signal' | 'error'>> = {
  ok: { status: 'SUCCESS', exitCode: 0, signal: null, error: null },
  bad: { status: 'FAILED', exitCode: 3, signal: null, error: null },
  late: { status: 'TIMEOUT', exitCode: -1, signal: null, error: null },
  cut: { status: 'CANCELLED', exitCode: 143, signal: 'SIGTERM', error: null },
  lost: { status: 'LOST', exitCode: null, signal: null, error: 'its processes were gone' },
}

/** Steps from `script verify verify | rollback`, each the word of its end. */
function steps(text: string): [StepEnd, ...StepEnd[]] {
  const [forward = '', back] = text.split('|').map((part) => part.trim())
  const all = forward.split(' ').map(
    (word, at): StepEnd => ({
      phase: at === 0 ? 'SCRIPT' : 'VERIFY',
      attempt: at === 0 ? 1 : at,
      ...ends[word as Word],
    }),
  )
  if (back) all.push({ phase: 'ROLLBACK', attempt: 1, ...ends[back as Word] })
  return all as [StepEnd, ...StepEnd[]]
}

const verify = { retries: 1, intervalSeconds: 5, timeout: 10 }
const both = { verify, rollback: { timeout: 20 } }

const following = [
  [both, 'ok', 'VERIFY 1 after 0'],
  [both, 'ok ok', null],
  [both, 'ok bad', 'VERIFY 2 after 5'],
  [both, 'ok lost', 'VERIFY 2 after 5'],
  [both, 'ok bad ok', null],
  [both, 'ok bad late', 'ROLLBACK 1 after 0'],
  [both, 'ok bad bad | bad', null],
  [both, 'bad', 'ROLLBACK 1 after 0'],
  [both, 'late', 'ROLLBACK 1 after 0'],
  [both, 'lost', null],
  [both, 'cut', null],
  [both, 'ok cut', null],
  [{ verify }, 'bad', null],
  [{ verify }, 'ok bad bad', null],
  [{ rollback: both.rollback }, 'ok', null],
  [{ rollback: both.rollback }, 'bad', 'ROLLBACK 1 after 0'],
] as const

for (const [gates, text, expected] of following)
  test(`after ${text} with ${Object.keys(gates).join(' and ')} the next step is ${expected}`, (t) => {
    const next = nextStep(gates, steps(text), false)
    t.is(next && `${next.phase} ${next.attempt} after ${next.wait}`, expected)
    t.is(nextStep(gates, steps(text), true), null, 'no step follows a cancel')
  })

const amounting = [
  ['ok ok', 'SUCCESS', 0, null, 'SUCCESS 0 1', null],
  ['ok bad ok', 'SUCCESS', 0, null, 'SUCCESS 0 2', null],
  [
    'ok bad bad',
    'FAILED',
    3,
    'verification failed: exit code 3 (the last of 2 attempts)',
    'FAILED 3 2',
    null,
  ],
  [
    'ok bad late | ok',
    'FAILED',
    -1,
    'verification failed: timed out (the last of 2 attempts)',
    'TIMEOUT -1 2',
    'SUCCESS 0',
  ],
  [
    'ok bad lost',
    'FAILED',
    null,
    'verification failed: its processes were gone (the last of 2 attempts)',
    'FAILED null 2',
    null,
  ],
  ['bad | ok', 'FAILED', 3, null, null, 'SUCCESS 0'],
  ['bad | bad', 'FAILED', 3, 'rollback failed: exit code 3', null, 'FAILED 3'],
  ['late | lost', 'TIMEOUT', -1, 'rollback failed: its processes were gone', null, 'FAILED null'],
  ['lost', 'LOST', null, 'its processes were gone', null, null],
  ['cut', 'CANCELLED', 143, null, null, null],
  ['ok', 'CANCELLED', null, null, 'CANCELLED null 0', null],
  ['ok bad', 'CANCELLED', 3, null, 'CANCELLED 3 1', null],
  ['ok cut', 'CANCELLED', 143, null, 'CANCELLED 143 1', null],
] as const

for (const [text, status, exitCode, error, verified, rolledBack] of amounting)
  test(`${text} amounts to ${status} with exit code ${exitCode}`, (t) => {
    const end = endOf(both, steps(text))
    t.is(end.status, status)
    t.is(end.exitCode, exitCode)
    t.is(end.error, error)
    const { verify, rollback } = end
    t.is(verify && `${verify.status} ${verify.exitCode} ${verify.attempts}`, verified)
    t.is(rollback && `${rollback.status} ${rollback.exitCode}`, rolledBack)
  })

test('a failed verification reports its exit code first, then processes left running', (t) => {
  const [script, ...checks] = steps('ok bad bad')
  const left = checks.map((each) => ({ ...each, error: '71 sleep still holds' }))
  const { error } = endOf(both, [script, ...left])
  t.is(error, 'verification failed: exit code 3; 71 sleep still holds (the last of 2 attempts)')
})

test('the longest run of an execution includes all its steps and the intervals between them', (t) => {
  t.is(longestRun(30), 30)
  t.is(longestRun(30, both), 30 + 2 * 10 + 5 + 20)
  t.is(longestRun(0, both), 0)
  t.is(longestRun(30, { ...both, rollback: { timeout: 0 } }), 0)
})

test("each step may write some output, however small the task's limit", (t) => {
  t.is(outputBound(1_000_000), 1_000_000)
  t.is(outputBound(1_000_000, both), 1_000_000 + 3 * 4096)
  t.is(outputBound(1024, both), 4 * 1024)
})
