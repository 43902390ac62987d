import { closeSync, fstatSync, type Stats } from 'node:fs'
import { createTwoFilesPatch } from 'diff'
import type { CopyOrder } from '../../core/protocol/messages.ts'
import {
  type Attributes,
  apply,
  assertGivable,
  type DesiredAttributes,
  fits,
  modeBits,
} from './attributes.ts'
import { shownNames } from './byte-names.ts'
import { Failure } from './failure.ts'
import type { OpenDirectory } from './open-directory.ts'
import { longestText, readSmall, whole } from './open-file.ts'
import { addBeside, assertMutable, assertReplaceable, Replacement, type Temporaries } from './replacement.ts'

const listedAtMost = 5

/** `/a, /b and 3 more` */
export const listed = (paths: readonly string[]): string =>
  shownNames(paths.slice(0, listedAtMost).join(', ')) +
  (paths.length > listedAtMost ? ` and ${paths.length - listedAtMost} more` : '')

/** Note about files without setuid and setgid; null without any. */
export const bareText = (paths: readonly string[]): string | null =>
  paths.length === 0
    ? null
    : `${listed(paths)}: copied without setuid and setgid, which only --mode or chmod sets`

export interface Placing {
  readonly copy: Pick<CopyOrder, 'path' | 'backup' | 'check'>
  readonly desired: DesiredAttributes
  readonly workspace: Temporaries
  /** Collects paths of new files that did not get the setuid or setgid of their source. */
  readonly bare: string[]
  /** Reports what the copy did, for people. */
  readonly say: (line: string) => void
}

/** Makes a file match the order, or reports what would change; returns whether anything did. */
export async function settle(
  { copy, workspace, say }: Placing,
  place: Comparison,
  pieces: () => AsyncIterable<Buffer> | Iterable<Buffer>,
  isPlain?: () => boolean,
): Promise<boolean> {
  const { path, directory, name, previous, wanted, isSameText } = place
  if (isSameText && previous !== null && fits(wanted, previous)) return false
  // A file with a second name is replaced, so that its other name is not changed.
  const isInPlace = isSameText && previous?.nlink === 1
  if (copy.check !== undefined) judge(place, isInPlace)
  if (directory === null || copy.check !== undefined) {
    await describeChanges(place, copy.check === 'DIFF' ? pieces() : null, say)
    return true
  }
  if (isInPlace) {
    applyTo(place, directory, workspace)
    say(`owner or mode of ${path} changed`)
    return true
  }
  const replacement = new Replacement(workspace, directory, name)
  try {
    for await (const piece of pieces()) await replacement.write(piece)
    await replacement.commit(wanted, { keepsPrevious: copy.backup === true, isPlain })
  } finally {
    await replacement.close()
  }
  say(`${path} ${previous === null ? 'written' : 'replaced'}`)
  return true
}

/** Throws the `Failure` that writing would end in, as far as it can be predicted. */
function judge({ directory, name, previous, wanted, path }: Comparison, isInPlace: boolean): void {
  if (directory === null) return
  if (isInPlace && previous !== null) {
    assertMutable(directory, name)
    return assertGivable(wanted, previous, path)
  }
  assertReplaceable(directory, name)
  addBeside(directory, name, () => directory.assertWritable())
  assertGivable(wanted, directory.ownerOfNew(), path)
}

function applyTo(
  { name, previous, wanted, path }: Comparison,
  directory: OpenDirectory,
  workspace: Temporaries,
): void {
  assertMutable(directory, name)
  const fd = directory.openFile(name)
  try {
    if (fstatSync(fd).ino !== previous?.ino) throw new Failure(`${path} has just been replaced`)
    workspace.checkCancelled()
    apply(wanted, fd, path)
    workspace.report({ changed: true })
  } finally {
    closeSync(fd)
  }
}

/** Milliseconds for one comparison. */
const patience = 10_000

interface Comparison {
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
async function describeChanges(
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
