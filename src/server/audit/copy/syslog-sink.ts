import { spawn } from 'node:child_process'
import { RsmError } from '../../../core/errors.ts'
import { linesOf } from './head-of.ts'
import type { Sink } from './sink.ts'
import { priorityOf, syslogName } from './syslog-message.ts'

/** Milliseconds that the program may take. */
const patience = 10_000
/** Bytes of one message, the longest line among them. */
const longestMessage = 256 * 1024
/** Characters of its complaint that are kept. */
const longestComplaint = 300

const options = ['--socket-errors=on', '--prio-prefix', '--size', String(longestMessage), '--tag', syslogName]

/**
 * The syslog of this machine. Its socket takes datagrams, which Node can't send: `logger` of util-linux does, in the form that
 * rsyslog and journald both read there.
 */
export function createSyslogSink(socket: string): Sink {
  function run(text: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new RsmError('unavailable', why))
      const child = spawn('logger', ['--socket', socket, ...options], {
        env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' },
        stdio: ['pipe', 'ignore', 'pipe'],
        timeout: patience,
        killSignal: 'SIGKILL',
      })
      let complaint = ''
      child.stderr.setEncoding('utf8').on('data', (said: string) => {
        if (complaint.length < longestComplaint) complaint += said
      })
      child.on('error', ({ code, message }: NodeJS.ErrnoException) =>
        fail(code === 'ENOENT' ? 'the program logger is missing: install util-linux or bsdutils' : message),
      )
      child.on('close', (code) => {
        const said = complaint.slice(0, longestComplaint).trim()
        // It answers 0 also where a message did not go out, and says so.
        if (code === 0 && said === '') resolve()
        else fail(said || `logger ended with ${code ?? `nothing for ${patience / 1000} s`}`)
      })
      // It may end before it has read all; how it ended says why.
      child.stdin.on('error', () => undefined)
      child.stdin.end(text)
    })
  }

  return {
    settles: 0,
    wasLost: () => false,
    holds: async () => null,
    write: (lines) =>
      run(
        Buffer.concat(
          linesOf(lines).flatMap((line) => [Buffer.from(priorityOf(line)), line, Buffer.from('\n')]),
        ),
      ),
    close: async () => true,
  }
}
