import { closeSync, fstatSync, readSync, type Stats } from 'node:fs'
import { createTwoFilesPatch } from 'diff'
import { type Attributes, fits, modeBits } from './attributes.ts'
import type { OpenDirectory } from './open-directory.ts'
import { whole } from './reading.ts'

/** Largest text that is compared line by line, in bytes (contract §13). */
export const longestText = 1024 * 1024
/** Milliseconds for one comparison. */
const patience = 10_000

export interface Comparison {
  /** Path for messages. */
  readonly path: string
  /** Null if the directory does not exist and this is a dry run. */
  readonly directory: OpenDirectory | null
  readonly name: string
  readonly previous: Stats | null
  readonly wanted: Attributes
  readonly isSameText: boolean
  /** Bytes to write. */
  readonly size: number
}

const octal = (mode: number) => `0${(mode & modeBits).toString(8)}`

function attributeLines({ previous, wanted, path }: Comparison): string[] {
  if (previous === null || fits(wanted, previous)) return []
  const { mode, uid, gid } = previous
  const lines: string[] = []
  if (wanted.mode !== (mode & modeBits))
    lines.push(`mode of ${path}: ${octal(mode)} to ${octal(wanted.mode)}`)
  const owner = `${wanted.uid ?? uid}:${wanted.gid ?? gid}`
  if (owner !== `${uid}:${gid}`) lines.push(`owner of ${path}: ${uid}:${gid} to ${owner}`)
  return lines
}

/** Null if not text: it contains NUL or is not UTF-8. */
function textOf(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Reads a file up to 1 MiB, even if it has grown. */
export function readSmall(directory: OpenDirectory, name: string): Buffer {
  const fd = directory.openFile(name)
  try {
    const bytes = Buffer.alloc(Math.min(longestText, fstatSync(fd).size))
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(fd, bytes, length, bytes.length - length, length)
    return bytes.subarray(0, length)
  } finally {
    closeSync(fd)
  }
}

/** Changes of the text as a unified diff, or a sentence if that cannot be shown. */
async function textLines(
  comparison: Comparison,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<string> {
  const { path, directory, name, previous, size } = comparison
  if (size > longestText || (previous?.size ?? 0) > longestText)
    return `${path} would change; more than 1 MiB is not shown`
  const [old, fresh] = [
    textOf(previous === null || directory === null ? Buffer.alloc(0) : readSmall(directory, name)),
    textOf(await whole(pieces)),
  ]
  if (old === null || fresh === null) return `${path} would change; it is not text`
  const before = previous === null ? '/dev/null' : path
  const patch = createTwoFilesPatch(before, path, old, fresh, '', '', {
    context: 3,
    timeout: patience,
  })
  return (
    patch?.slice(patch.indexOf('--- ')).trimEnd() ??
    `${path} would change; the difference takes too long to find`
  )
}

/** Reports what a copy would change; given the new content (`pieces`), includes a diff. */
export async function describeChanges(
  comparison: Comparison,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer> | null,
  say: (line: string) => void,
): Promise<void> {
  const { path, previous, isSameText } = comparison
  if (!isSameText) {
    if (pieces !== null) say(await textLines(comparison, pieces))
    else say(`${path} would be ${previous === null ? 'written' : 'replaced'}`)
  }
  for (const line of attributeLines(comparison)) say(line)
}
