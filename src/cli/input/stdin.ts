import { isUtf8 } from 'node:buffer'
import { fstatSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { RsmError } from '../../core/errors.ts'

/** More than any script or list of hosts that the server takes. */
const maxStdinBytes = 16 * 1024 * 1024
/** Bytes of commands that a terminal takes (contract §7). */
const maxCommandBytes = 256 * 1024

/** FIONREAD of Linux and how many bytes wait; nothing is read, for the rest may be for who comes after us. */
const countProgram =
  'my $n = pack("i", 0); exit 1 unless ioctl(STDIN, 0x541B, $n); exit(unpack("i", $n) > 0 ? 0 : 1)'
/** Milliseconds for that program. */
const countPatience = 1_000

/** Reads all of stdin as text; it can be read for one thing only. */
export interface StdinReader {
  (what: string): Promise<string>
  readonly isTaken: boolean
  /** Its bytes, as they come. */
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

/** Decodes bytes. Errors: `usage` if they are not UTF-8, because replacement characters would change what the user meant. */
export function utf8Text(bytes: Buffer, what: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw new RsmError('usage', `${what} is not UTF-8: see line ${badLine(bytes)}`, {
    hint: `convert it first, as with iconv -f ${isUtf16(bytes) ? 'UTF-16' : 'ISO-8859-1'} -t UTF-8 FILE`,
  })
}

/** The number of the first line that is not UTF-8, counted from 1. */
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

/**
 * Whether somebody gives us data on stdin, by a pipe or a file. Nothing is read, and nothing is waited for. A file that
 * others have begun to read is theirs, as in `while read host; do …; done < hosts`; so is a pipe in CI, which may hold the
 * rest of the job's script.
 */
export async function hasUnreadStdin(): Promise<boolean> {
  if ((process.env['CI'] ?? '') !== '') return false
  try {
    const stdin = fstatSync(0)
    if (stdin.isFile())
      return stdin.size > 0 && /^pos:\s*0$/m.test(readFileSync('/proc/self/fdinfo/0', 'utf8'))
    return (stdin.isFIFO() || stdin.isSocket()) && (await isWaiting())
  } catch {
    // It is closed, or there is no /proc.
    return false
  }
}

/** Whether a program is there to say how much waits; neither Node nor a shell can, without reading it. */
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

/** All of stdin, to be run by the shell of the host. Errors: `usage` where that is not for a terminal. */
export async function commandFromStdin(): Promise<string> {
  const command = await stdinReader()('the commands for the shell')
  if (Buffer.byteLength(command) > maxCommandBytes)
    throw new RsmError('usage', 'a terminal takes at most 256 KiB of commands on stdin', {
      hint: 'run it as a script: rsm exec -w HOST -',
    })
  if (command.trim() === '')
    throw new RsmError('usage', 'nothing to run: stdin is empty, and no terminal', {
      hint: 'rsm terminal HOST -- COMMAND',
    })
  return command
}
