import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { WriteStream } from 'node:tty'
import test from 'ava'
import { sinkOf } from '../../../src/cli/output/format.ts'
import { LiveOutput } from '../../../src/cli/output/live.ts'
import { paint } from '../../../src/cli/text/screen.ts'
import { entryOf, resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { formatOptions } from '../../fixtures/format-options.ts'

class Screen {
  text = ''
  readonly isTTY: boolean
  readonly columns = 20
  #waiting: { part: string; resolve: () => void }[] = []

  constructor(isTTY = false) {
    this.isTTY = isTTY
  }

  write(text: string): void {
    this.text += text
    this.#waiting = this.#waiting.filter(({ part, resolve }) => {
      if (this.text.includes(part)) resolve()
      return !this.text.includes(part)
    })
  }

  shows(part: string): Promise<void> {
    if (this.text.includes(part)) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ part, resolve }))
  }
}

interface Settings {
  prefix?: boolean
  raw?: boolean
  alone?: boolean
  together?: boolean
  tty?: boolean
}

function screens(settings: Settings = {}) {
  const stdout = new Screen(settings.tty)
  const stderr = new Screen(settings.tty)
  const { prefix = true, raw = false, alone = false, together = true } = settings
  const output = new LiveOutput({ stdout, stderr, prefix, raw, alone, together })
  const say = (host: string, data: string, stream: 'stdout' | 'stderr' = 'stdout') =>
    output.event({ type: 'output', entry: entryOf(host, data, { stream }) })
  const task = taskOf([resultOf('web1')])
  return { stdout, stderr, output, say, end: () => output.end(), task }
}

test('each line is written with its host; lines of stderr go to stderr', async (t) => {
  const { say, stdout, stderr, end } = screens()
  await say('web1', 'one\ntwo\n')
  await say('web2', 'oops\n', 'stderr')
  await end()
  t.is(stdout.text, 'web1: one\nweb1: two\n')
  t.is(stderr.text, 'web2: oops\n')
})

test('lines of many hosts stay whole, however their pieces interleave', async (t) => {
  const { say, stdout, end } = screens()
  await say('web1', 'hel')
  await say('web2', 'wor')
  // A lone host that began its line later is shown by now.
  const later = screens({ alone: true })
  await later.say('web3', 'x')
  await later.stdout.shows('x')
  t.is(stdout.text, '')
  await say('web1', 'lo\nnext')
  await say('web2', 'ld\n')
  await end()
  t.is(stdout.text, 'web1: hello\nweb2: world\nweb1: next\n')
})

test('a line end split between two pieces is one line end', async (t) => {
  const { say, stdout, end } = screens()
  await say('web1', 'a\r')
  await say('web1', '\nb\n')
  await end()
  t.is(stdout.text, 'web1: a\nweb1: b\n')
})

test('the unfinished line of a host that has ended is written without waiting for other hosts', async (t) => {
  const { say, stdout, output } = screens()
  await say('web1', 'tail')
  await output.event({ type: 'host', result: resultOf('web1') })
  t.is(stdout.text, 'web1: tail\n')
})

test("the first part of a lone host's line is shown before the line ends", async (t) => {
  const { say, stdout, end } = screens({ alone: true })
  await say('web1', 'Password? ')
  await stdout.shows('web1: Password? ')
  await say('web1', 'ok\nnext\n')
  await end()
  t.is(stdout.text, 'web1: Password? ok\nweb1: next\n')
})

test("a lone host's unfinished line is ended before the other stream writes only if both go to the same terminal", async (t) => {
  for (const [together, expected] of [
    [true, 'key=\nvalue\n'],
    [false, 'key=value\n'],
  ] as const) {
    const { say, stdout, stderr, end } = screens({ alone: true, prefix: false, together })
    await say('web1', 'key=')
    await stdout.shows('key=')
    await say('web1', 'warn: ', 'stderr')
    await stderr.shows('warn: ')
    await say('web1', 'value\n')
    await say('web1', 'old\n', 'stderr')
    await end()
    t.is(stdout.text, expected)
    t.is(stderr.text, together ? 'warn: \nold\n' : 'warn: old\n')
  }
})

test('an incomplete control sequence of a lone host is not written', async (t) => {
  const { say, stdout, end } = screens({ alone: true })
  await say('web1', 'a\u001b[3')
  await stdout.shows('web1: a')
  await say('web1', '1mb\n')
  await end()
  t.is(stdout.text, 'web1: ab\n')
})

test('an unfinished line of one of many hosts is shown beside the output until it ends', async (t) => {
  const asides: string[] = []
  const stdout = new Screen()
  const heard = new Screen()
  const output = new LiveOutput(
    formatOptions({
      stdout,
      unfinished: (text) => {
        asides.push(text)
        heard.write(text)
      },
    }),
  )
  const say = (host: string, data: string) => output.event({ type: 'output', entry: entryOf(host, data) })
  await say('web1', 'downloading \u001b[1m..')
  await heard.shows('web1: downloading ..')
  await say('web2', 'x\n')
  await say('web1', '!\n')
  t.deepEqual(asides, ['web1: downloading ..', ''])
  t.is(stdout.text, 'web2: x\nweb1: downloading ..!\n')
})

test('a failed write of an unfinished line, between two events, is reported at the next event', async (t) => {
  // Node ends a process for a rejection that is unhandled at the next turn of the event loop.
  const dropped: unknown[] = []
  const note = (error: unknown) => void dropped.push(error)
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  const asked = new Screen()
  const full = {
    async write(text: string) {
      asked.write(text)
      throw new Error('ENOSPC')
    },
  }
  const output = new LiveOutput(formatOptions({ stdout: full, alone: true }))
  const say = (data: string) => output.event({ type: 'output', entry: entryOf('web1', data) })
  await say('part')
  await asked.shows('part')
  await setImmediate()
  t.deepEqual(dropped, [])
  await t.throwsAsync(async () => say('more\n'), { message: 'ENOSPC' })
  await t.throwsAsync(output.end(), { message: 'ENOSPC' })
})

test('control sequences are stripped, also split ones; --raw keeps them', async (t) => {
  const clean = screens()
  await clean.say('web1', 'a\u001b[3')
  await clean.say('web1', '1mb\n')
  t.is(clean.stdout.text, 'web1: ab\n')
  const raw = screens({ raw: true })
  await raw.say('web1', 'a\u001b[31mb\n')
  t.is(raw.stdout.text, 'web1: a\u001b[31mb\n')
})

test("without a prefix a lone host's output is passed on as it is", async (t) => {
  const { say, stdout, end } = screens({ prefix: false, alone: true, raw: true })
  await say('web1', 'a\r\nb')
  await end()
  t.is(stdout.text, 'a\r\nb')
  const cooked = screens({ prefix: false, alone: true })
  await cooked.say('web1', 'x')
  await cooked.end()
  t.is(cooked.stdout.text, 'x')
})

test('a host that never ends its line uses bounded memory', async (t) => {
  const { say, stdout } = screens()
  for (let count = 0; count < 20; count++) await say('web1', 'x'.repeat(100_000))
  t.true(stdout.text.length > 1_000_000)
})

// Serial: changes the environment of this process.
test.serial('NO_COLOR turns colours off unless it is empty', (t) => {
  const terminal = Object.assign(new PassThrough(), {
    isTTY: true,
    getColorDepth: (env?: object) => WriteStream.prototype.getColorDepth.call(terminal, env),
  })
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  const others = {
    ...before,
    TERM: 'xterm-256color',
    CI: undefined,
    FORCE_COLOR: undefined,
    COLORTERM: undefined,
  }
  for (const [value, depth] of [
    [undefined, 'many'],
    ['', 'many'],
    ['1', 'none'],
  ] as const) {
    process.env = Object.fromEntries(
      Object.entries({ ...others, NO_COLOR: value }).filter(([, set]) => set !== undefined),
    )
    t.is(sinkOf(terminal).colors, depth, `NO_COLOR ${value}`)
    t.is(paint('red', 'x', terminal) === 'x', depth === 'none', `NO_COLOR ${value}`)
  }
})
