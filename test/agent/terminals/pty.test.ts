import test, { type ExecutionContext } from 'ava'
import { PtyHost } from '../../../src/agent/terminals/pty-host.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../../helpers/until.ts'

const kib = 1024

function hostOf(t: ExecutionContext): PtyHost {
  const host = new PtyHost(temporaryDirectory(t))
  t.teardown(() => host.stop())
  return host
}

/** Runs a program on a PTY; its output is not acknowledged until `mayGoOn` settles. */
function run(host: PtyHost, id: string, argv: string[], mayGoOn?: (seen: () => number) => Promise<void>) {
  return new Promise<{ text: string; exitCode: number }>((resolve, reject) => {
    const pieces: Buffer[] = []
    let isHeld = mayGoOn !== undefined
    let held = 0
    const events = {
      opened: () => {},
      failed: (reason: string) => reject(new Error(reason)),
      output(bytes: Uint8Array) {
        pieces.push(Buffer.from(bytes))
        if (isHeld) held += bytes.length
        else host.credit(id, bytes.length)
      },
      dropped: () => {},
      exited: (exitCode: number) => resolve({ text: Buffer.concat(pieces).toString('latin1'), exitCode }),
    }
    const request = {
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      cols: 80,
      rows: 24,
      uid: process.getuid?.() ?? 0,
    }
    host.open(id, { argv, ...request }, events)
    void mayGoOn?.(() => held).then(() => {
      isHeld = false
      host.credit(id, held)
    }, reject)
  })
}

/** `length` characters of numbers, to detect missing and duplicate output. */
function pattern(length: number): string {
  return Array.from({ length: length / 16 }, (_, at) => String(at).padStart(15, '0')).join(' ') + ' '
}

/** Command that writes `pattern(length)` and ends at once. */
function writer(length: number): string[] {
  const script = `process.stdout.write(${pattern.toString()}(${length}).slice(0, ${length}))`
  return [process.execPath, '-e', script.replaceAll('\n', ' ')]
}

test('all output of a program that writes 20 KB and ends at once arrives', async (t) => {
  const host = hostOf(t)
  const wanted = 'x'.repeat(20_000)
  for (let round = 0; round < 100; round += 1) {
    const argv = ['/bin/sh', '-c', 'head -c 20000 /dev/zero | tr "\\0" x; exit 5']
    const { text, exitCode } = await run(host, `r${round}`, argv)
    if (text !== wanted || exitCode !== 5)
      return t.fail(`round ${round}: ${text.length} bytes, exit code ${exitCode}`)
  }
  return t.pass()
})

test('SIGUSR1 opens no debugger in the process of the terminals', async (t) => {
  const sockets = 'ls -l /proc/$PPID/fd | grep -c socket:'
  // A debugger would listen within milliseconds; its absence has no event to wait for.
  const argv = ['/bin/sh', '-c', `${sockets}; kill -USR1 $PPID; sleep 0.5; ${sockets}`]
  const { text } = await run(hostOf(t), 'usr1', argv)
  const [before, after] = text.split('\r\n')
  t.is(after, before)
  t.regex(text, /^\d/)
})

test('output written before the end of a program arrives even if none was acknowledged', async (t) => {
  const host = hostOf(t)
  const length = 256 * kib + 4000 // More than the window, and little enough for the rest to fit into the terminal.
  const wanted = 'x'.repeat(length)
  for (let round = 0; round < 10; round += 1) {
    const argv = ['/bin/sh', '-c', `head -c ${length} /dev/zero | tr "\\0" x`]
    // Never acknowledges: the program still ends, and all its output arrives.
    const { text } = await run(host, `r${round}`, argv, () => new Promise(() => {}))
    if (text !== wanted) return t.fail(`round ${round}: ${text.length} bytes`)
  }
  return t.pass()
})

test('1 MB of output waits for acknowledgements, and arrives unchanged', async (t) => {
  const host = hostOf(t)
  const length = 1024 * kib
  let most = 0
  const { text } = await run(host, 'one', writer(length), async (seen) => {
    await until('the window is full', () => seen() >= 256 * kib)
    await run(host, 'beside', ['/bin/echo', 'on'])
    most = seen()
  })
  t.true(most < 256 * kib + 64 * kib, `${most} bytes arrived unacknowledged`)
  t.true(text === pattern(length), `${text.length} bytes`)
})
