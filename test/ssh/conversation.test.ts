import { PassThrough } from 'node:stream'
import test from 'ava'
import { GivenUp, install, type Patience } from '../../src/ssh/conversation.ts'

const long = 60_000
const patience: Patience = { start: long, inspect: long, piece: long, place: long, install: long }

/** An installation that waits for its executable until `answer`; `stop` is a cancel from outside. */
function asking() {
  const [stdout, stderr, stop] = [new PassThrough(), new PassThrough(), new AbortController()]
  let answer = () => {}
  let close = () => {}
  const closed = new Promise<number | null>((resolve) => {
    close = () => resolve(null)
  })
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const end = install({
    open(line) {
      const mark = /--over-ssh (\w+)/.exec(line)?.[1]
      stdout.write(`${mark} shell\n${mark} host x64 - -\n`)
      return { stdin: new PassThrough().resume(), stdout, stderr, closed, close }
    },
    sudo: 'none',
    sudoPassword: undefined,
    options: [],
    patience,
    signal: stop.signal,
    onLine: () => {},
    executableFor: () =>
      new Promise((resolve) => {
        answer = () => resolve({ sha256: 'sum', size: 0, open: () => PassThrough.from([]) })
        asked()
      }),
    joinString: async () => 'rsm-join:',
  })
  return { stdout, stop, closed, isAsked, end, answer: () => answer() }
}

test('a cancel ends an installation with its reason, even if the connection closes first', async (t) => {
  const { stop, closed, isAsked, end, answer } = asking()
  await isAsked
  const cancel = new Error('cancelled')
  stop.abort(cancel)
  await closed
  answer()
  t.is(await t.throwsAsync(end), cancel)
})

test('an installation fails on too much output of the host, even if the connection closes first', async (t) => {
  const { stdout, closed, isAsked, end, answer } = asking()
  await isAsked
  stdout.write('x\n'.repeat(20_000))
  await closed
  answer()
  const error = await t.throwsAsync(end, { instanceOf: GivenUp })
  t.is(error.message, 'the host sent too much output')
})
