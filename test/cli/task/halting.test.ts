import test, { type ExecutionContext } from 'ava'
import { onInterruption, type Signals, type Verdict } from '../../../src/cli/task/halting.ts'
import { RsmError } from '../../../src/core/errors.ts'

/** Handles signals like `exec`; a question stays open until the test answers it. */
function listener(t: ExecutionContext, { signals = 'ask' }: { signals?: Signals } = {}) {
  const heard: string[] = []
  let answer = (_text: string | Error) => {}
  let concluded = () => {}
  let hasAsked = false
  const interruption = onInterruption({
    signals,
    taskId: () => 'task-1',
    decided: (verdict: Verdict) => {
      heard.push(verdict.kind === 'cancel' ? `cancel ${verdict.exit}` : 'leave')
    },
    asking: (isAsking) => {
      heard.push(isAsking ? 'asks' : 'asked')
      hasAsked = false
      if (!isAsking) setImmediate(concluded)
    },
    ask: (_question, { signal }) => {
      if (hasAsked) {
        heard.push('asks again')
        setImmediate(concluded)
      }
      hasAsked = true
      return new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new RsmError('interrupted', 'interrupted')))
        answer = (text) => (text instanceof Error ? reject(text) : resolve(text))
      })
    },
  })
  t.teardown(() => interruption.stop())
  const says = (text: string | Error) =>
    new Promise<void>((resolve) => {
      concluded = resolve
      answer(text)
    })
  return { heard, says, interruption }
}

const signalled = (signal: 'SIGINT' | 'SIGTERM') => process.emit(signal, signal)

// Serial: all handle the signals of one process.
for (const [word, verdict] of [
  ['c', 'cancel 130'],
  ['Cancel ', 'cancel 130'],
  ['l', 'leave'],
  ['leave', 'leave'],
] as const)
  test.serial(`Ctrl-C on a terminal asks; the answer ${word.trim()} means ${verdict}`, async (t) => {
    const { heard, says } = listener(t)
    signalled('SIGINT')
    await says(word)
    t.deepEqual(heard, ['asks', 'asked', verdict])
  })

test.serial('any other answer repeats the question; Enter and the end of input keep watching', async (t) => {
  const { heard, says } = listener(t)
  for (const [others, keeps] of [
    [['continue', 'clear; rm x'], ''],
    [['later'], ' '],
    [['cc'], new RsmError('interrupted', 'interrupted')],
  ] as const) {
    signalled('SIGINT')
    for (const other of others) await says(other)
    t.deepEqual(heard.splice(0), ['asks', ...others.map(() => 'asks again')])
    await says(keeps)
    t.deepEqual(heard.splice(0), ['asked'])
  }
  signalled('SIGINT')
  await says('what?')
  signalled('SIGINT')
  await says('')
  t.deepEqual(heard, ['asks', 'asks again', 'cancel 130', 'asked'], 'a second Ctrl-C cancels')
})

for (const [signal, verdict] of [
  ['SIGINT', 'cancel 130'],
  ['SIGTERM', 'cancel 143'],
] as const)
  test.serial(`${signal} while the question is open cancels the task and closes the question`, async (t) => {
    const { heard, says } = listener(t)
    signalled('SIGINT')
    signalled(signal)
    await says('too late')
    t.deepEqual(heard, ['asks', verdict, 'asked'])
  })

test.serial('Ctrl-C cancels the task if the question cannot be asked', async (t) => {
  const { heard, says } = listener(t)
  signalled('SIGINT')
  await says(new RsmError('usage', 'no terminal to ask on'))
  t.deepEqual(heard, ['asks', 'asked', 'cancel 130'])
})

test.serial(
  'without a terminal both signals cancel at once; a settled or stopped task asks nothing',
  async (t) => {
    const { heard, interruption } = listener(t, { signals: 'cancel' })
    signalled('SIGINT')
    signalled('SIGTERM')
    t.deepEqual(heard, ['cancel 130', 'cancel 143'])
    interruption.stop()
    signalled('SIGTERM')
    t.is(heard.length, 2)
    const asking = listener(t)
    signalled('SIGINT')
    asking.interruption.settled()
    await asking.says('c')
    t.deepEqual(asking.heard, ['asks', 'asked'])
  },
)
