import { closeSync, fstatSync } from 'node:fs'
import type { CopyOrder } from '../../core/protocol/messages.ts'
import { apply, assertGivable, type DesiredAttributes, fits } from './attributes.ts'
import { shownNames } from './byte-names.ts'
import { type Comparison, describeChanges } from './comparison.ts'
import { Failure } from './failure.ts'
import type { OpenDirectory } from './open-directory.ts'
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
