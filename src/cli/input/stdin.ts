import { isUtf8 } from 'node:buffer'
import { fstatSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { RsmError } from '../../core/errors.ts'

/** More than any script or host list that the server accepts. */
const maxStdinBytes = 16 * 1024 * 1024
/** Most bytes of commands for a terminal (contract §7). */
const maxCommandBytes = 256 * 1024

/** Checks for unread bytes (FIONREAD) without reading, because a later process may need them. */
const countProgram =
  'my $n = pack("i", 0); exit 1 unless ioctl(STDIN, 0x541B, $n); exit(unpack("i", $n) > 0 ? 0 : 1)'
/** Timeout of `countProgram`, in milliseconds. */
const countPatience = 1_000

/** Reads all of stdin as text. Errors: `usage` if it is used for two purposes. */
export interface StdinReader {
  (what: string): Promise<string>
  readonly isTaken: boolean
  bytes(what: string): Readable
}

export function stdinReader(): StdinReader {
  let taken: string | undefined
  const take = (what: string) => {
    if (taken !== undefined) throw new RsmError('usage', `stdin can't be both ${taken} and ${what}`)
    taken = what
  }
  const read = async (what: string) => {
    take(what)
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of process.stdin) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size > maxStdinBytes) throw new RsmError('usage', `too much on stdin for ${what}`)
    }
    return utf8Text(Buffer.concat(chunks), `${what} on stdin`)
  }
  const bytes = (what: string) => {
    take(what)
    return process.stdin
  }
  const reader: unknown = Object.defineProperties(read, {
    bytes: { value: bytes },
    isTaken: { get: () => taken !== undefined },
  })
  return reader as StdinReader
}

/** Decodes UTF-8. Errors: `usage` for other bytes, because replacement characters would change the user's input. */
export function utf8Text(bytes: Buffer, what: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw new RsmError('usage', `${what} is not UTF-8: see line ${badLine(bytes)}`, {
    hint: `convert it first, for example: iconv -f ${isUtf16(bytes) ? 'UTF-16' : 'ISO-8859-1'} -t UTF-8 FILE`,
  })
}

/** First line that is not UTF-8, counted from 1. */
function badLine(bytes: Buffer): number {
  let line = 1
  for (let from = 0; from < bytes.length; line++) {
    const end = bytes.indexOf(10, from)
    const to = end < 0 ? bytes.length : end + 1
    if (!isUtf8(bytes.subarray(from, to))) return line
    from = to
  }
  return line
}

function isUtf16(bytes: Buffer): boolean {
  const bom = bytes.toString('hex', 0, 2)
  return bom === 'fffe' || bom === 'feff'
}

/** Does the work, and warns if piped data is not used. */
export async function besideStdin<T>(
  command: { notice(text: string): void },
  stdin: StdinReader,
  hint: string,
  work: () => Promise<T>,
): Promise<T> {
  if (stdin.isTaken || process.stdin.isTTY) return work()
  const checked = hasUnreadStdin().then((isUnread) => {
    if (isUnread) command.notice(`stdin is not passed on${hint}`)
  })
  try {
    return await work()
  } finally {
    await checked
  }
}

/**
 * Whether a pipe or file on stdin has data for rsm; neither reads nor waits. Ignores a partly read file, as in
 * `while read host; do …; done < hosts`, and all stdin in CI, because it may contain the rest of the job's script.
 */
async function hasUnreadStdin(): Promise<boolean> {
  if ((process.env['CI'] ?? '') !== '') return false
  try {
    const stdin = fstatSync(0)
    if (stdin.isFile())
      return stdin.size > 0 && /^pos:\s*0$/m.test(readFileSync('/proc/self/fdinfo/0', 'utf8'))
    return (stdin.isFIFO() || stdin.isSocket()) && (await isWaiting())
  } catch {
    // stdin is closed, or there is no /proc.
    return false
  }
}

/** Whether a pipe has unread bytes. Runs perl, because neither Node nor a shell can tell without reading. */
async function isWaiting(): Promise<boolean> {
  const { spawn } = await import('node:child_process')
  return new Promise((resolve) => {
    const child = spawn('perl', ['-e', countProgram], {
      stdio: ['inherit', 'ignore', 'ignore'],
      timeout: countPatience,
    })
    child.on('error', () => resolve(false))
    child.on('close', (code) => resolve(code === 0))
  })
}

/** Reads commands for the host's shell from stdin. Errors: `usage` if empty or too large for a terminal. */
export async function commandFromStdin(): Promise<string> {
  const command = await stdinReader()('the commands for the shell')
  if (Buffer.byteLength(command) > maxCommandBytes)
    throw new RsmError('usage', 'a terminal takes at most 256 KiB of commands on stdin', {
      hint: 'run it as a script: rsm exec -w HOST -',
    })
  if (command.trim() === '')
    throw new RsmError('usage', 'nothing to run: stdin is empty and not a terminal', {
      hint: 'rsm terminal HOST -- COMMAND',
    })
  return command
}
