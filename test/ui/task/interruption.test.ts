import test, { type ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { onInterruption, type Signals, type Verdict } from '../../../src/ui/task/interruption.ts'

/** Listens as `exec` does; a question is answered by the test, and stays open until then. */
function listener(t: ExecutionContext, { signals = 'ask' }: { signals?: Signals } = {}) {
  const heard: string[] = []
  let answer = (_text: string | Error) => {}
  let concluded = () => {}
  const interruption = onInterruption({
    signals,
    taskId: () => 'task-1',
    decided: (verdict: Verdict) => {
      heard.push(verdict.kind === 'cancel' ? `cancel ${verdict.exit}` : 'leave')
    },
    asking: (isAsking) => {
      heard.push(isAsking ? 'asks' : 'asked')
      if (!isAsking) setImmediate(concluded)
    },
    ask: (_question, { signal }) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new RsmError('interrupted', 'interrupted')))
        answer = (text) => (text instanceof Error ? reject(text) : resolve(text))
      }),
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

// Serial: all listen to the signals of one process.
for (const [word, verdict] of [
  ['c', 'cancel 130'],
  ['Cancel ', 'cancel 130'],
  ['l', 'leave'],
] as const)
  test.serial(`a Ctrl-C on a terminal asks; ${word.trim()} is ${verdict}`, async (t) => {
    const { heard, says } = listener(t)
    signalled('SIGINT')
    await says(word)
    t.deepEqual(heard, ['asks', 'asked', verdict])
  })

test.serial('an answer that is neither decides nothing, and the next Ctrl-C asks again', async (t) => {
  const { heard, says } = listener(t)
  signalled('SIGINT')
  await says('what?')
  t.deepEqual(heard, ['asks', 'asked'])
  signalled('SIGINT')
  await says('l')
  t.deepEqual(heard.slice(2), ['asks', 'asked', 'leave'])
})

for (const [signal, verdict] of [
  ['SIGINT', 'cancel 130'],
  ['SIGTERM', 'cancel 143'],
] as const)
  test.serial(`${signal} while the question stands cancels, and takes the question away`, async (t) => {
    const { heard, says } = listener(t)
    signalled('SIGINT')
    signalled(signal)
    await says('too late')
    t.deepEqual(heard, ['asks', verdict, 'asked'])
  })

test.serial('where nobody can be asked after all it cancels', async (t) => {
  const { heard, says } = listener(t)
  signalled('SIGINT')
  await says(new RsmError('usage', 'there is no terminal to ask on'))
  t.deepEqual(heard, ['asks', 'asked', 'cancel 130'])
})

test.serial('without a terminal both cancel at once; what is settled or stopped asks nothing', async (t) => {
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
})
